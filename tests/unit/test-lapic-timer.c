// SPDX-License-Identifier: GPL-2.0-only
/* The local APIC's timer; every expectation is the SDM's (vol. 3A chapter 10). */
#include <glib.h>
#include <string.h>

#include "lapic-fixture.h"

static void test_one_shot(void)
{
	struct lapic l;

	fresh(&l, 0);
	/* Divide by 16 (0b0011): 1000 counts of 16 ns. */
	g_assert_cmpuint(todo(&l, APIC_TDCR, 0x3, 0), ==, 0);
	g_assert_cmpuint(todo(&l, APIC_LVT_TIMER, 0x40, 0), ==, 0);
	g_assert_cmpuint(todo(&l, APIC_TMICT, 1000, 500), ==, LAPIC_TODO_TIMER);
	g_assert_cmpuint(lapic_timer_due(&l), ==, 16500);
	g_assert_cmpuint(lapic_read(&l, APIC_TMICT, 500), ==, 1000);
	g_assert_cmpuint(lapic_read(&l, APIC_TMCCT, 500), ==, 1000);
	g_assert_cmpuint(lapic_read(&l, APIC_TMCCT, 500 + 16), ==, 999);
	g_assert_cmpuint(lapic_read(&l, APIC_TMCCT, 500 + 8000), ==, 500);
	g_assert_cmpuint(lapic_read(&l, APIC_TMCCT, 16499), ==, 1);
	g_assert_cmpuint(lapic_read(&l, APIC_TMCCT, 16500), ==, 0);
	/* Not yet due: an event that came early does nothing. */
	g_assert_cmpint(lapic_timer_fire(&l, 16499), ==, -1);
	g_assert_cmpuint(lapic_timer_due(&l), ==, 16500);
	g_assert_cmphex(lapic_timer_fire(&l, 16600), ==, 0x40);
	g_assert_cmphex(lapic_pending(&l), ==, 0x40);
	g_assert_true(lapic_timer_due(&l) == CLOCK_NEVER);
	g_assert_cmpint(lapic_timer_fire(&l, 99999), ==, -1);
	g_assert_cmpuint(lapic_read(&l, APIC_TMCCT, 99999), ==, 0);
	g_assert_cmpuint(lapic_read(&l, APIC_TMICT, 99999), ==, 1000);
	/* A count of 0 stops it. */
	todo(&l, APIC_TMICT, 10, 100000);
	g_assert_cmpuint(lapic_timer_due(&l), ==, 100160);
	g_assert_cmpuint(todo(&l, APIC_TMICT, 0, 100001), ==, LAPIC_TODO_TIMER);
	g_assert_true(lapic_timer_due(&l) == CLOCK_NEVER);
	g_assert_cmpuint(lapic_read(&l, APIC_TMCCT, 100002), ==, 0);
}

static void test_divider(void)
{
	static const struct { u32 code, divide; } table[] = {
		{ 0x0, 2 }, { 0x1, 4 }, { 0x2, 8 }, { 0x3, 16 }, { 0x8, 32 }, { 0x9, 64 }, { 0xa, 128 }, { 0xb, 1 },
	};
	struct lapic l;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		fresh(&l, 0);
		todo(&l, APIC_LVT_TIMER, 0x40, 0);
		todo(&l, APIC_TDCR, table[i].code, 0);
		todo(&l, APIC_TMICT, 1000000, 0);
		g_assert_cmpuint(lapic_timer_due(&l), ==, 1000000ull * table[i].divide);
	}
	/* A change in mid-count keeps the count and goes on at the new rate. */
	fresh(&l, 0);
	todo(&l, APIC_LVT_TIMER, 0x40, 0);
	todo(&l, APIC_TDCR, 0xb, 0);
	todo(&l, APIC_TMICT, 1000000, 0);
	g_assert_cmpuint(todo(&l, APIC_TDCR, 0x3, 400000), ==, LAPIC_TODO_TIMER);
	g_assert_cmpuint(lapic_read(&l, APIC_TMCCT, 400000), ==, 600000);
	g_assert_cmpuint(lapic_timer_due(&l), ==, 400000 + 600000 * 16);
	/* Bit 2 is reserved. */
	todo(&l, APIC_TDCR, 0xffffffff, 400000);
	g_assert_cmphex(lapic_read(&l, APIC_TDCR, 400000), ==, 0xb);
	/* The largest count of all does not overflow. */
	todo(&l, APIC_TDCR, 0xa, 0);
	todo(&l, APIC_TMICT, 0xffffffff, 7);
	g_assert_cmpuint(lapic_timer_due(&l), ==, 7 + 0xffffffffull * 128);
}

static void test_periodic(void)
{
	struct lapic l;

	fresh(&l, 0);
	todo(&l, APIC_TDCR, 0xb, 0);
	todo(&l, APIC_LVT_TIMER, 0x40 | APIC_LVT_PERIODIC, 0);
	todo(&l, APIC_TMICT, 1000000, 0);
	g_assert_cmpuint(lapic_timer_due(&l), ==, 1000000);
	/* Fired late: the phase holds. */
	g_assert_cmphex(lapic_timer_fire(&l, 1000700), ==, 0x40);
	g_assert_cmpuint(lapic_timer_due(&l), ==, 2000000);
	g_assert_cmpuint(lapic_read(&l, APIC_TMCCT, 1250000), ==, 750000);
	/* Three periods late: one interrupt, then on the grid again. */
	g_assert_cmphex(lapic_timer_fire(&l, 4999999), ==, 0x40);
	g_assert_cmpuint(lapic_timer_due(&l), ==, 5000000);
	g_assert_cmphex(lapic_timer_fire(&l, 5000000), ==, 0x40);
	g_assert_cmpuint(lapic_timer_due(&l), ==, 6000000);
	/* Masked: counts on, fires nothing; unmasked: the next period's end. */
	g_assert_cmpuint(todo(&l, APIC_LVT_TIMER, 0x40 | APIC_LVT_PERIODIC | APIC_LVT_MASKED, 5500000), ==,
			 LAPIC_TODO_TIMER);
	g_assert_true(lapic_timer_due(&l) == CLOCK_NEVER);
	g_assert_cmpuint(lapic_read(&l, APIC_TMCCT, 7250000), ==, 750000);
	todo(&l, APIC_LVT_TIMER, 0x41 | APIC_LVT_PERIODIC, 7600000);
	g_assert_cmpuint(lapic_timer_due(&l), ==, 8000000);
	g_assert_cmphex(lapic_timer_fire(&l, 8000000), ==, 0x41);
}

/* A period below the floor is served at the floor; the count never reads above its initial value. */
static void test_periodic_floor(void)
{
	struct lapic l;
	u64 now;

	fresh(&l, 0);
	todo(&l, APIC_TDCR, 0xb, 0);
	todo(&l, APIC_LVT_TIMER, 0x40 | APIC_LVT_PERIODIC, 0);
	todo(&l, APIC_TMICT, 1, 0);
	g_assert_cmpuint(lapic_timer_due(&l), ==, LAPIC_MIN_PERIOD);
	for (now = 0; now < 3 * LAPIC_MIN_PERIOD; now += 777)
		g_assert_cmpuint(lapic_read(&l, APIC_TMCCT, now), <=, 1);
	lapic_timer_fire(&l, LAPIC_MIN_PERIOD);
	g_assert_cmpuint(lapic_timer_due(&l), ==, 2 * LAPIC_MIN_PERIOD);
	/* Through the back door: a short one-shot count turned periodic. */
	todo(&l, APIC_LVT_TIMER, 0x40, 0);
	todo(&l, APIC_TMICT, 50, 1000000);
	todo(&l, APIC_LVT_TIMER, 0x40 | APIC_LVT_PERIODIC, 1000010);
	g_assert_cmpuint(lapic_timer_due(&l), ==, 1000050);
	lapic_timer_fire(&l, 1000050);
	g_assert_cmpuint(lapic_timer_due(&l), ==, 1000050 + LAPIC_MIN_PERIOD);
	/* And by a faster divider. */
	todo(&l, APIC_TDCR, 0xa, 1000060);
	todo(&l, APIC_TMICT, 1000, 2000000);
	g_assert_cmpuint(lapic_timer_due(&l), ==, 2128000);
	todo(&l, APIC_TDCR, 0xb, 2000000);
	lapic_timer_fire(&l, 3000000);
	g_assert_cmpuint(lapic_timer_due(&l) - 3000000, <=, LAPIC_MIN_PERIOD);
	lapic_timer_fire(&l, lapic_timer_due(&l));
	g_assert_cmpuint(lapic_timer_due(&l), >=, 3000000 + LAPIC_MIN_PERIOD);
}

/* What kvm-unit-tests' apic test asks of a change between one-shot and periodic. */
static void test_mode_change(void)
{
	struct lapic l;

	fresh(&l, 0);
	todo(&l, APIC_TDCR, 0xb, 0);
	todo(&l, APIC_LVT_TIMER, 0x40, 0);
	todo(&l, APIC_TMICT, 1000000, 0);
	/* Running one-shot to periodic: goes on, then wraps. */
	todo(&l, APIC_LVT_TIMER, 0x40 | APIC_LVT_PERIODIC, 600000);
	g_assert_cmpuint(lapic_read(&l, APIC_TMCCT, 600000), ==, 400000);
	g_assert_cmpuint(lapic_timer_due(&l), ==, 1000000);
	lapic_timer_fire(&l, 1000000);
	g_assert_cmpuint(lapic_timer_due(&l), ==, 2000000);
	/* Back to one-shot in mid-period: not reset, ends at 0. */
	todo(&l, APIC_LVT_TIMER, 0x40, 1700000);
	g_assert_cmpuint(lapic_read(&l, APIC_TMCCT, 1700000), ==, 300000);
	g_assert_cmpuint(lapic_timer_due(&l), ==, 2000000);
	lapic_timer_fire(&l, 2000000);
	g_assert_cmpuint(lapic_read(&l, APIC_TMCCT, 2100000), ==, 0);
	/* A count that has ended stays at 0 when the mode becomes periodic. */
	todo(&l, APIC_LVT_TIMER, 0x40 | APIC_LVT_PERIODIC, 2200000);
	g_assert_cmpuint(lapic_read(&l, APIC_TMCCT, 2300000), ==, 0);
	g_assert_true(lapic_timer_due(&l) == CLOCK_NEVER);
	/* The same when nobody delivered the expiration in between. */
	todo(&l, APIC_LVT_TIMER, 0x40 | APIC_LVT_MASKED, 3000000);
	todo(&l, APIC_TMICT, 1000, 3000000);
	todo(&l, APIC_LVT_TIMER, 0x40 | APIC_LVT_PERIODIC, 4000000);
	g_assert_true(lapic_timer_due(&l) == CLOCK_NEVER);
	/* TSC-deadline disarms and clears; so does leaving it. */
	todo(&l, APIC_TMICT, 1000000, 5000000);
	todo(&l, APIC_LVT_TIMER, 0x40 | APIC_LVT_DEADLINE, 5000000);
	g_assert_true(lapic_timer_due(&l) == CLOCK_NEVER);
	g_assert_cmpuint(lapic_read(&l, APIC_TMICT, 5000000), ==, 0);
	g_assert_true(wrmsr(&l, MSR_IA32_TSC_DEADLINE, 1ull << 40, 5000000));
	g_assert_cmpuint(rdmsr(&l, MSR_IA32_TSC_DEADLINE, 5000000), ==, 1ull << 40);
	todo(&l, APIC_LVT_TIMER, 0x40, 5000000);
	g_assert_true(lapic_timer_due(&l) == CLOCK_NEVER);
	g_assert_cmpuint(rdmsr(&l, MSR_IA32_TSC_DEADLINE, 5000000), ==, 0);
	/* The reserved fourth mode counts nothing. */
	todo(&l, APIC_LVT_TIMER, 0x40 | APIC_LVT_DEADLINE | APIC_LVT_PERIODIC, 5000000);
	todo(&l, APIC_TMICT, 1000, 5000000);
	g_assert_true(lapic_timer_due(&l) == CLOCK_NEVER);
	g_assert_cmpuint(lapic_read(&l, APIC_TMCCT, 5000000), ==, 0);
}

/* An expiration that is due but not delivered survives a rewrite of the LVT entry, and is delivered once. */
static void test_rewrite_at_expiry(void)
{
	struct lapic l;

	fresh(&l, 0);
	todo(&l, APIC_TDCR, 0xb, 0);
	todo(&l, APIC_LVT_TIMER, 0x40, 0);
	todo(&l, APIC_TMICT, 1000, 0);
	todo(&l, APIC_LVT_TIMER, 0x42, 1500);
	g_assert_cmpuint(lapic_timer_due(&l), ==, 1000);
	g_assert_cmphex(lapic_timer_fire(&l, 1500), ==, 0x42);
	g_assert_true(lapic_timer_due(&l) == CLOCK_NEVER);
	todo(&l, APIC_TMICT, 1000, 2000);
	todo(&l, APIC_TDCR, 0x3, 3500);
	g_assert_cmpuint(lapic_timer_due(&l), ==, 3000);
	/* A new count replaces it. */
	todo(&l, APIC_TMICT, 1000, 3600);
	g_assert_cmpuint(lapic_timer_due(&l), ==, 3600 + 16000);
}

static void test_deadline(void)
{
	struct lapic l;

	fresh(&l, 0);
	/* Ignored in another mode. */
	g_assert_true(wrmsr(&l, MSR_IA32_TSC_DEADLINE, 2500, 0));
	g_assert_true(lapic_timer_due(&l) == CLOCK_NEVER);
	g_assert_cmpuint(rdmsr(&l, MSR_IA32_TSC_DEADLINE, 0), ==, 0);
	todo(&l, APIC_LVT_TIMER, 0x40 | APIC_LVT_DEADLINE, 0);
	g_assert_true(wrmsr(&l, MSR_IA32_TSC_DEADLINE, 2500, 0));
	g_assert_cmpuint(lapic_timer_due(&l), ==, 1000);
	/* Rounded up: at 2501 cycles the TSC must have reached the deadline. */
	wrmsr(&l, MSR_IA32_TSC_DEADLINE, 2501, 0);
	g_assert_cmpuint(lapic_timer_due(&l), ==, 1001);
	g_assert_cmpuint(lapic_read(&l, APIC_TMCCT, 0), ==, 0);
	todo(&l, APIC_TMICT, 77, 0);
	g_assert_cmpuint(lapic_read(&l, APIC_TMICT, 0), ==, 0);
	g_assert_cmphex(lapic_timer_fire(&l, 1001), ==, 0x40);
	g_assert_cmpuint(rdmsr(&l, MSR_IA32_TSC_DEADLINE, 1001), ==, 0);
	g_assert_true(lapic_timer_due(&l) == CLOCK_NEVER);
	/* In the past: at once. 0 disarms. */
	wrmsr(&l, MSR_IA32_TSC_DEADLINE, 1, 5000);
	g_assert_cmpuint(lapic_timer_due(&l), <=, 5000);
	wrmsr(&l, MSR_IA32_TSC_DEADLINE, 0, 5000);
	g_assert_true(lapic_timer_due(&l) == CLOCK_NEVER);
	/* Farther than any clock. */
	wrmsr(&l, MSR_IA32_TSC_DEADLINE, UINT64_MAX, 5000);
	g_assert_cmpuint(lapic_timer_due(&l), >, 1ull << 60);
	/* Masked when it passes: spent. */
	wrmsr(&l, MSR_IA32_TSC_DEADLINE, 25000, 0);
	todo(&l, APIC_LVT_TIMER, 0x40 | APIC_LVT_DEADLINE | APIC_LVT_MASKED, 100);
	g_assert_true(lapic_timer_due(&l) == CLOCK_NEVER);
	g_assert_cmpuint(rdmsr(&l, MSR_IA32_TSC_DEADLINE, 9999), ==, 25000);
	todo(&l, APIC_LVT_TIMER, 0x40 | APIC_LVT_DEADLINE, 10001);
	g_assert_cmpuint(rdmsr(&l, MSR_IA32_TSC_DEADLINE, 10001), ==, 0);
	g_assert_true(lapic_timer_due(&l) == CLOCK_NEVER);

	/* Not offered: #GP, and the LVT bit does not stick. */
	lapic_init(&l, 0, true, false, false, TSC_HZ);
	todo(&l, APIC_SVR, 0x1ff, 0);
	g_assert_false(wrmsr(&l, MSR_IA32_TSC_DEADLINE, 2500, 0));
	todo(&l, APIC_LVT_TIMER, 0x40 | APIC_LVT_DEADLINE, 0);
	g_assert_cmphex(lapic_read(&l, APIC_LVT_TIMER, 0), ==, 0x40);
}

/* The deadline is a value of the guest's TSC, which the guest moves as it likes (2.5 cycles a ns here). */
static void test_deadline_offset(void)
{
	struct lapic l;

	fresh(&l, 0);
	todo(&l, APIC_LVT_TIMER, 0x40 | APIC_LVT_DEADLINE, 0);
	wrmsr(&l, MSR_IA32_TSC_DEADLINE, 25000, 0);
	lapic_set_tsc_offset(&l, 2500, 0);
	g_assert_cmpuint(lapic_timer_due(&l), ==, 9000);
	g_assert_cmpuint(rdmsr(&l, MSR_IA32_TSC_DEADLINE, 0), ==, 25000);
	/* Set back to 0 after 5 us. */
	lapic_set_tsc_offset(&l, -12500, 5000);
	g_assert_cmpuint(lapic_timer_due(&l), ==, 15000);
	wrmsr(&l, MSR_IA32_TSC_DEADLINE, 2501, 6000);
	g_assert_cmpuint(lapic_timer_due(&l), ==, 6001);
	/* One that the move has passed is due, and armed until it fires. */
	lapic_set_tsc_offset(&l, 30000, 6000);
	g_assert_cmpuint(lapic_timer_due(&l), <=, 6000);
	g_assert_cmpuint(rdmsr(&l, MSR_IA32_TSC_DEADLINE, 6000), ==, 2501);
	g_assert_cmphex(lapic_timer_fire(&l, 6000), ==, 0x40);
	g_assert_true(lapic_timer_due(&l) == CLOCK_NEVER);
	/* Set far ahead: a small value is long past. */
	lapic_set_tsc_offset(&l, 1ll << 60, 7000);
	wrmsr(&l, MSR_IA32_TSC_DEADLINE, 5, 7000);
	g_assert_cmpuint(lapic_timer_due(&l), <=, 7000);
	/* Set to 2^63 at 10 us: the upper half of its values is as good as the lower. */
	lapic_set_tsc_offset(&l, (s64)((1ull << 63) - 25000), 10000);
	wrmsr(&l, MSR_IA32_TSC_DEADLINE, (1ull << 63) + 2500, 10000);
	g_assert_cmpuint(lapic_timer_due(&l), ==, 11000);
	wrmsr(&l, MSR_IA32_TSC_DEADLINE, (1ull << 63) - 1, 10000);
	g_assert_cmpuint(lapic_timer_due(&l), <=, 10000);
	/* Set to 1000 cycles before it wraps. */
	lapic_set_tsc_offset(&l, -26000, 10000);
	wrmsr(&l, MSR_IA32_TSC_DEADLINE, UINT64_MAX - 499, 10000);
	g_assert_cmpuint(lapic_timer_due(&l), ==, 10200);
	wrmsr(&l, MSR_IA32_TSC_DEADLINE, 500, 10000);
	g_assert_cmpuint(lapic_timer_due(&l), <=, 10000);
	/* Set to 0: farther than any run. */
	lapic_set_tsc_offset(&l, -25000, 10000);
	wrmsr(&l, MSR_IA32_TSC_DEADLINE, UINT64_MAX, 10000);
	g_assert_cmpuint(lapic_timer_due(&l), >, 1ull << 61);
	/* Masked when a move passes it: spent. */
	wrmsr(&l, MSR_IA32_TSC_DEADLINE, 25000, 10000);
	todo(&l, APIC_LVT_TIMER, 0x40 | APIC_LVT_DEADLINE | APIC_LVT_MASKED, 10000);
	lapic_set_tsc_offset(&l, 25000, 10000);
	g_assert_cmpuint(rdmsr(&l, MSR_IA32_TSC_DEADLINE, 10000), ==, 0);
	/* Nothing armed: nothing moves. */
	fresh(&l, 0);
	lapic_set_tsc_offset(&l, 1000, 0);
	g_assert_true(lapic_timer_due(&l) == CLOCK_NEVER);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/lapic/timer/one-shot", test_one_shot);
	g_test_add_func("/lapic/timer/divider", test_divider);
	g_test_add_func("/lapic/timer/periodic", test_periodic);
	g_test_add_func("/lapic/timer/periodic-floor", test_periodic_floor);
	g_test_add_func("/lapic/timer/mode-change", test_mode_change);
	g_test_add_func("/lapic/timer/rewrite-at-expiry", test_rewrite_at_expiry);
	g_test_add_func("/lapic/timer/deadline", test_deadline);
	g_test_add_func("/lapic/timer/deadline-offset", test_deadline_offset);
	return g_test_run();
}
