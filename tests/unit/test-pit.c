// SPDX-License-Identifier: GPL-2.0-only
/* The 8254 as Linux's calibration loops and clock event driver use it. */
#include <glib.h>

#include "fake-engine.h"
#include "machine/lapic.h"
#include "machine/machine.h"

#define VECTOR	0x30
/* ns by which n PIT ticks are over. */
#define TICKS(n)	(((u64)(n) * NSEC_PER_SEC + PIT_HZ - 1) / PIT_HZ)

static struct fake_vm *fresh(void)
{
	struct fake_vm *f = fake_vm_new("1x2x1", APIC_XAPIC);

	g_assert_cmpint(machine_init(&f->vm), ==, 0);
	f->vm.machine->ioapic.redir[2] = VECTOR;
	return f;
}

static void done(struct fake_vm *f)
{
	machine_destroy(&f->vm);
	fake_vm_free(f);
}

static u8 in(struct fake_vm *f, u16 port)
{
	return (u8)fake_in(f, port, 1);
}

static void out(struct fake_vm *f, u16 port, u8 v)
{
	fake_out(f, port, 1, v);
}

static u16 in16(struct fake_vm *f, u16 port)
{
	u16 low = in(f, port);

	return (u16)(low | in(f, port) << 8);
}

static void out16(struct fake_vm *f, u16 port, u16 v)
{
	out(f, port, (u8)v);
	out(f, port, v >> 8);
}

static u16 latch(struct fake_vm *f, u32 counter)
{
	out(f, 0x43, (u8)(counter << 6));
	return in16(f, (u16)(0x40 + counter));
}

/* Interrupts that arrive until `until`, stepping the clock from event to event. */
static u32 ticks_until(struct fake_vm *f, u64 until)
{
	u32 n = 0;

	while (clock_first(&f->vm.vcpu[0]->clock) <= until) {
		f->now = MAX(f->now, clock_first(&f->vm.vcpu[0]->clock));
		fake_run(f, 0);
		n += fake_take(f, 0) == VECTOR;
	}
	f->now = until;
	return n;
}

/* pit_calibrate_tsc(): mode 0 on counter 2, gate up, wait for bit 5 of port 0x61. */
static void test_calibrate(void)
{
	struct fake_vm *f = fresh();
	u16 count = PIT_HZ / 20;	/* 50 ms */
	u64 start;

	f->now = 12345;
	out(f, 0x61, (in(f, 0x61) & ~0x02) | 0x01);
	out(f, 0x43, 0xb0);
	out16(f, 0x42, count);
	start = f->now;
	g_assert_cmphex(in(f, 0x61) & 0x20, ==, 0);
	f->now = start + TICKS(count) - 1000;
	g_assert_cmphex(in(f, 0x61) & 0x20, ==, 0);
	f->now = start + TICKS(count);
	g_assert_cmphex(in(f, 0x61) & 0x20, ==, 0x20);
	f->now += NSEC_PER_SEC;
	g_assert_cmphex(in(f, 0x61) & 0x20, ==, 0x20);
	g_assert_cmpuint(ticks_until(f, f->now + NSEC_PER_SEC), ==, 0);
	done(f);
}

/* quick_pit_calibrate(): counter 2 from 0xffff; the high byte must step down every 256 ticks. */
static void test_quick_calibrate(void)
{
	struct fake_vm *f = fresh();
	u32 msb;

	out(f, 0x61, 0x01);
	out(f, 0x43, 0xb0);
	out16(f, 0x42, 0xffff);
	for (msb = 0xff; msb > 0x80; msb--) {
		f->now = TICKS((0xff - msb) * 256 + 128);
		in(f, 0x42);
		g_assert_cmphex(in(f, 0x42), ==, msb);
	}
	done(f);
}

static void test_gate(void)
{
	struct fake_vm *f = fresh();

	/* Gate down: loaded, not counting. */
	out(f, 0x43, 0xb0);
	out16(f, 0x42, 1000);
	f->now = TICKS(5000);
	g_assert_cmpuint(latch(f, 2), ==, 1000);
	out(f, 0x61, 0x01);
	f->now += TICKS(400);
	g_assert_cmpuint(latch(f, 2), ==, 600);
	/* Held in mode 0, and going on. */
	out(f, 0x61, 0x00);
	f->now += TICKS(100000);
	g_assert_cmpuint(latch(f, 2), ==, 600);
	g_assert_cmphex(in(f, 0x61) & 0x20, ==, 0);
	out(f, 0x61, 0x01);
	f->now += TICKS(599);
	g_assert_cmphex(in(f, 0x61) & 0x20, ==, 0);
	f->now += TICKS(2);
	g_assert_cmphex(in(f, 0x61) & 0x20, ==, 0x20);
	/* Mode 1: low from the gate's rise for the count. */
	out(f, 0x61, 0x00);
	out(f, 0x43, 0xb2);
	out16(f, 0x42, 1000);
	g_assert_cmphex(in(f, 0x61) & 0x20, ==, 0x20);
	out(f, 0x61, 0x01);
	g_assert_cmphex(in(f, 0x61) & 0x20, ==, 0);
	f->now += TICKS(1001);
	g_assert_cmphex(in(f, 0x61) & 0x20, ==, 0x20);
	/* Mode 2: restarted by the gate. */
	out(f, 0x43, 0xb4);
	out16(f, 0x42, 1000);
	f->now += TICKS(300);
	g_assert_cmpuint(latch(f, 2), ==, 700);
	out(f, 0x61, 0x00);
	out(f, 0x61, 0x01);
	g_assert_cmpuint(latch(f, 2), ==, 1000);
	/* Mode 3: high for the first half, low for the second. */
	out(f, 0x43, 0xb6);
	out16(f, 0x42, 1000);
	g_assert_cmphex(in(f, 0x61) & 0x20, ==, 0x20);
	f->now += TICKS(501);
	g_assert_cmphex(in(f, 0x61) & 0x20, ==, 0);
	f->now += TICKS(500);
	g_assert_cmphex(in(f, 0x61) & 0x20, ==, 0x20);
	/* Speaker bit is kept, others read as they are driven. */
	out(f, 0x61, 0xff);
	g_assert_cmphex(in(f, 0x61) & 0xcf, ==, 0x03);
	done(f);
}

static void test_refresh_bit(void)
{
	struct fake_vm *f = fresh();
	u32 i, toggles = 0;
	u8 last = in(f, 0x61) & 0x10;

	for (i = 0; i < 1000; i++) {
		u8 bit;

		f->now += 1000;
		bit = in(f, 0x61) & 0x10;
		toggles += bit != last;
		last = bit;
	}
	g_assert_cmpuint(toggles, ==, 66);
	done(f);
}

/* clockevent: periodic, mode 2. */
static void test_periodic(void)
{
	struct fake_vm *f = fresh();
	u16 count = PIT_HZ / 100;

	out(f, 0x43, 0x34);
	out16(f, 0x40, count);
	g_assert_cmpuint(clock_first(&f->vm.vcpu[0]->clock), ==, TICKS(count));
	g_assert_cmpuint(ticks_until(f, NSEC_PER_SEC), ==, 100);
	g_assert_cmpuint(latch(f, 0), <=, count);
	/* The host had no time for 10.5 periods: one interrupt, then on the old grid. */
	f->now = TICKS((u64)count * 110 + count / 2);
	fake_run(f, 0);
	g_assert_cmpint(fake_take(f, 0), ==, VECTOR);
	g_assert_cmpuint(clock_first(&f->vm.vcpu[0]->clock), ==, TICKS((u64)count * 111));
	/* A new mode stops it until a count comes. */
	out(f, 0x43, 0x34);
	g_assert_true(clock_first(&f->vm.vcpu[0]->clock) == CLOCK_NEVER);
	out(f, 0x40, 0x10);
	g_assert_true(clock_first(&f->vm.vcpu[0]->clock) == CLOCK_NEVER);
	out(f, 0x40, 0x10);
	g_assert_true(clock_first(&f->vm.vcpu[0]->clock) != CLOCK_NEVER);
	done(f);
}

/* clockevent: one-shot, mode 4; and its shutdown, mode 0 with count 0. */
static void test_one_shot(void)
{
	struct fake_vm *f = fresh();
	u64 start;

	out(f, 0x43, 0x38);
	f->now = start = 777777;
	out16(f, 0x40, 5000);
	g_assert_cmpuint(clock_first(&f->vm.vcpu[0]->clock), >=, start + TICKS(5000));
	g_assert_cmpuint(clock_first(&f->vm.vcpu[0]->clock), <=, start + TICKS(5002));
	g_assert_cmpuint(ticks_until(f, start + NSEC_PER_SEC), ==, 1);
	/* Each reload is one more. */
	out16(f, 0x40, 5000);
	out16(f, 0x40, 6000);
	g_assert_cmpuint(ticks_until(f, f->now + NSEC_PER_SEC), ==, 1);
	out(f, 0x43, 0x30);
	out16(f, 0x40, 0);
	g_assert_cmpuint(ticks_until(f, f->now + TICKS(65535)), ==, 0);
	g_assert_cmpuint(ticks_until(f, f->now + NSEC_PER_SEC), ==, 1);
	/* The first byte of a new count stops mode 0. */
	out16(f, 0x40, 1000);
	out(f, 0x40, 0x10);
	g_assert_cmpuint(ticks_until(f, f->now + NSEC_PER_SEC), ==, 0);
	done(f);
}

/* The fastest rates a guest can ask for are served at the floor. */
static void test_floor(void)
{
	static const u16 counts[] = { 1, 2, 3, 50, 119, 120 };
	u32 i, mode;

	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		for (mode = 2; mode <= 3; mode++) {
			struct fake_vm *f = fresh();
			u32 n;

			out(f, 0x43, (u8)(0x30 | mode << 1));
			out16(f, 0x40, counts[i]);
			n = ticks_until(f, NSEC_PER_SEC);
			/* A tick of the PIT is 0.84 us: the floor is met to within one. */
			g_assert_cmpuint(n, <=, NSEC_PER_SEC / (PIT_MIN_PERIOD - 1000));
			g_assert_cmpuint(n, >, 4000);
			done(f);
		}
	}
}

static void test_read_back(void)
{
	struct fake_vm *f = fresh();

	out(f, 0x43, 0x34);
	/* Status before a count: null count, mode 2, both bytes. */
	out(f, 0x43, 0xe2);
	g_assert_cmphex(in(f, 0x40) & 0x7f, ==, 0x74);
	out16(f, 0x40, 10000);
	f->now = TICKS(1234);
	/* Both latched: status first, then the count, which stands still. */
	out(f, 0x43, 0xc2);
	f->now = TICKS(5000);
	g_assert_cmphex(in(f, 0x40), ==, 0xb4);
	g_assert_cmpuint(in16(f, 0x40), ==, 10000 - 1234);
	g_assert_cmpuint(in16(f, 0x40), ==, 10000 - 5000);
	/* A second latch command before the first was read changes nothing. */
	out(f, 0x43, 0x00);
	f->now = TICKS(6000);
	out(f, 0x43, 0x00);
	g_assert_cmpuint(in16(f, 0x40), ==, 5000);
	/* One byte only. */
	out(f, 0x43, 0x54);
	out(f, 0x41, 200);
	f->now += TICKS(50);
	g_assert_cmpuint(in(f, 0x41), ==, 150);
	g_assert_cmpuint(in(f, 0x41), ==, 150);
	out(f, 0x43, 0x64);
	out(f, 0x41, 2);
	g_assert_cmpuint(in(f, 0x41), ==, 2);
	f->now += TICKS(10);
	g_assert_cmpuint(in(f, 0x41), ==, 1);
	/* BCD: 0 is ten thousand. */
	out(f, 0x43, 0xb1);
	out(f, 0x61, 1);
	out16(f, 0x42, 0x0000);
	f->now += TICKS(1);
	g_assert_cmphex(latch(f, 2), ==, 0x9999);
	f->now += TICKS(9990);
	g_assert_cmphex(latch(f, 2), ==, 0x0009);
	done(f);
}

/* Reads by a CPU whose clock is behind the one that programmed it see the count's beginning, not its end. */
static void test_time_behind(void)
{
	struct fake_vm *f = fresh();

	f->now = 1000000;
	out(f, 0x61, 1);
	out(f, 0x43, 0xb0);
	out16(f, 0x42, 5000);
	f->now = 999000;
	g_assert_cmpuint(latch(f, 2), ==, 5000);
	g_assert_cmphex(in(f, 0x61) & 0x20, ==, 0);
	done(f);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/pit/calibrate", test_calibrate);
	g_test_add_func("/pit/quick-calibrate", test_quick_calibrate);
	g_test_add_func("/pit/gate", test_gate);
	g_test_add_func("/pit/refresh-bit", test_refresh_bit);
	g_test_add_func("/pit/periodic", test_periodic);
	g_test_add_func("/pit/one-shot", test_one_shot);
	g_test_add_func("/pit/floor", test_floor);
	g_test_add_func("/pit/read-back", test_read_back);
	g_test_add_func("/pit/time-behind", test_time_behind);
	return g_test_run();
}
