// SPDX-License-Identifier: GPL-2.0-only
/*
 * The local APIC's timer: one-shot, periodic and TSC-deadline (SDM 3A 10.5.4).
 *
 * The count is never stepped. `timer_start` and `timer_period` say when the
 * running count began and how long a full one takes, and every register is
 * worked out from them; a masked timer goes on counting but costs no event.
 * timer_start may lie "before 0" after a change of divider: only differences of
 * it are used, and those are right modulo 2^64.
 */
#include "machine/lapic-internal.h"

#include "base/log.h"

_Static_assert(NSEC_PER_SEC % LAPIC_TIMER_HZ == 0, "one count is a whole number of ns");

static u32 timer_mode(const struct lapic *l)
{
	return l->lvt_timer & APIC_LVT_MODE;
}

static bool timer_counts(u32 mode)
{
	return mode == APIC_LVT_ONESHOT || mode == APIC_LVT_PERIODIC;
}

/* ns of one count: the divider's bits 0, 1 and 3 give 2, 4, ... 128 and, all set, 1. */
static u64 timer_tick(const struct lapic *l)
{
	u32 code = (l->timer_divide & 3) | (l->timer_divide & 8) >> 1;

	return (1ull << ((code + 1) & 7)) * (NSEC_PER_SEC / LAPIC_TIMER_HZ);
}

/* ns of a full count in the mode in force. */
static u64 timer_full(const struct lapic *l)
{
	u64 period = l->timer_initial * timer_tick(l);

	if (period && timer_mode(l) == APIC_LVT_PERIODIC && period < LAPIC_MIN_PERIOD)
		period = LAPIC_MIN_PERIOD;
	return period;
}

/*
 * When the guest's TSC reaches `tsc`, in ns, rounded up so that the TSC is never short of it; `now` or before if it
 * is that far. The TSC is modulo 2^64, so only its distance from what it is now says where a value lies:
 * the guest may have set it to anything.
 */
static u64 timer_tsc_to_ns(const struct lapic *l, u64 tsc, u64 now)
{
	unsigned __int128 cycles = (unsigned __int128)now * l->tsc_hz / NSEC_PER_SEC, ns;
	u64 at = (u64)cycles + (u64)l->tsc_offset;

	if (tsc <= at)
		cycles -= MIN((u64)cycles, at - tsc);
	else
		cycles += tsc - at;
	ns = (cycles * NSEC_PER_SEC + l->tsc_hz - 1) / l->tsc_hz;
	return ns < CLOCK_NEVER ? (u64)ns : CLOCK_NEVER;
}

/* A deadline that passed while the timer was masked is spent, without an interrupt. */
static void timer_settle(struct lapic *l, u64 now)
{
	if (l->tsc_deadline && (l->lvt_timer & APIC_LVT_MASKED) &&
	    timer_tsc_to_ns(l, l->tsc_deadline, now) <= now)
		l->tsc_deadline = 0;
}

/*
 * Work out timer_due. An expiration that is due but has not been delivered yet
 * (the vCPU was in the VMM when it came) stays due, or a guest that rewrites the
 * LVT entry at the wrong moment would lose an interrupt.
 */
static void timer_arm(struct lapic *l, u64 now)
{
	bool expired = l->timer_due <= now;
	u64 elapsed = now - l->timer_start;

	if ((l->lvt_timer & APIC_LVT_MASKED))
		l->timer_due = CLOCK_NEVER;
	else if (timer_mode(l) == APIC_LVT_DEADLINE)
		l->timer_due = l->tsc_deadline ? timer_tsc_to_ns(l, l->tsc_deadline, now) : CLOCK_NEVER;
	else if (expired)
		return;
	else if (!l->timer_period)
		l->timer_due = CLOCK_NEVER;
	else if (timer_mode(l) == APIC_LVT_PERIODIC)
		l->timer_due = now + l->timer_period - elapsed % l->timer_period;
	else
		l->timer_due = elapsed < l->timer_period ? now + l->timer_period - elapsed : CLOCK_NEVER;
}

static void timer_stop(struct lapic *l)
{
	l->timer_initial = 0;
	l->timer_start = 0;
	l->timer_period = 0;
	l->tsc_deadline = 0;
	l->timer_due = CLOCK_NEVER;
}

void lapic_timer_reset(struct lapic *l)
{
	timer_stop(l);
	l->timer_divide = 0;
	l->lvt_timer = APIC_LVT_MASKED;
}

u32 lapic_timer_current(const struct lapic *l, u64 now)
{
	u64 elapsed = now - l->timer_start, count;

	if (!l->timer_period || !timer_counts(timer_mode(l)))
		return 0;
	if (elapsed >= l->timer_period) {
		if (timer_mode(l) == APIC_LVT_ONESHOT)
			return 0;
		elapsed %= l->timer_period;
	}
	count = DIV_ROUND_UP(l->timer_period - elapsed, timer_tick(l));
	/* A period at its floor is longer than the count that the guest set. */
	return count < l->timer_initial ? count : l->timer_initial;
}

/* Let the count that is running end `left` ns from now, out of a full one as the registers now say. */
static void timer_rebase(struct lapic *l, u64 left, u64 now)
{
	l->timer_period = timer_full(l);
	l->timer_start = now - (l->timer_period - left);
}

/*
 * The mode has changed. To or from TSC-deadline disarms the timer (10.5.4.1);
 * between one-shot and periodic the count goes on, and a one-shot count that has
 * reached 0 stays there, which is how processors behave (and kvm-unit-tests'
 * apic test expects).
 */
static void timer_change_mode(struct lapic *l, u32 old, u64 now)
{
	u64 elapsed = now - l->timer_start;

	if (!timer_counts(old) || !timer_counts(timer_mode(l))) {
		timer_stop(l);
		return;
	}
	if (!l->timer_period)
		return;
	if (old == APIC_LVT_PERIODIC) {
		u64 left = l->timer_period - elapsed % l->timer_period;
		u64 full = timer_full(l);

		timer_rebase(l, left < full ? left : full, now);
	} else if (elapsed < l->timer_period) {
		timer_rebase(l, l->timer_period - elapsed, now);
	} else {
		l->timer_period = 0;
	}
}

void lapic_timer_set_lvt(struct lapic *l, u32 lvt, u64 now)
{
	u32 old = timer_mode(l);

	timer_settle(l, now);
	l->lvt_timer = lvt;
	if (timer_mode(l) != old)
		timer_change_mode(l, old, now);
	timer_arm(l, now);
}

void lapic_timer_set_initial(struct lapic *l, u32 initial, u64 now)
{
	if (!timer_counts(timer_mode(l)))
		return;
	l->timer_initial = initial;
	l->timer_start = now;
	l->timer_period = timer_full(l);
	l->timer_due = CLOCK_NEVER;
	timer_arm(l, now);
}

void lapic_timer_set_divide(struct lapic *l, u32 divide, u64 now)
{
	u32 count = lapic_timer_current(l, now);

	l->timer_divide = divide;
	/* The count stays what it is and goes on at the new rate; one at 0 has ended. */
	if (!count)
		return;
	timer_rebase(l, count * timer_tick(l), now);
	timer_arm(l, now);
}

void lapic_timer_set_deadline(struct lapic *l, u64 tsc, u64 now)
{
	if (timer_mode(l) != APIC_LVT_DEADLINE)
		return;
	l->tsc_deadline = tsc;
	timer_arm(l, now);
}

u64 lapic_timer_deadline(struct lapic *l, u64 now)
{
	timer_settle(l, now);
	return timer_mode(l) == APIC_LVT_DEADLINE ? l->tsc_deadline : 0;
}

void lapic_set_tsc_offset(struct lapic *l, s64 offset, u64 now)
{
	timer_settle(l, now);
	l->tsc_offset = offset;
	if (l->tsc_deadline)
		timer_arm(l, now);
}

bool lapic_timer_periodic(const struct lapic *l)
{
	return timer_mode(l) == APIC_LVT_PERIODIC;
}

u64 lapic_timer_due(const struct lapic *l)
{
	return l->timer_due;
}

int lapic_timer_fire(struct lapic *l, u64 now)
{
	u8 vector = l->lvt_timer & APIC_LVT_VECTOR;

	/* An event that a register write has overtaken. */
	if (l->timer_due > now)
		return -1;
	if (timer_mode(l) == APIC_LVT_PERIODIC && l->timer_period) {
		/* From the due time, not from now, so that the phase holds; missed periods fold into one. */
		u64 missed = (now - l->timer_due) / l->timer_period;

		l->timer_start = l->timer_due + missed * l->timer_period;
		l->timer_due = l->timer_start + l->timer_period;
	} else {
		l->tsc_deadline = 0;
		l->timer_due = CLOCK_NEVER;
		/* An expiration of periodic mode came late, and a one-shot count is running already. */
		if (timer_mode(l) == APIC_LVT_ONESHOT)
			timer_arm(l, now);
	}
	/* An unmasked timer means an enabled APIC; only the vector can be wrong. */
	return lapic_set_irr(l, vector, false) ? vector : -1;
}
