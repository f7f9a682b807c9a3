// SPDX-License-Identifier: GPL-2.0-only
/* Loops that wait: how they are found, and where a parked vCPU would be. See spin.h. */
#include "soft/spin.h"

#include <string.h>

#include "soft/line-model.h"
#include "soft/profile.h"

/* A loop is at most this long, and has so many PAUSEs. */
#define SPIN_INSNS	256u
#define SPIN_PAUSES	4u
/* Iterations alike before one is recorded, which costs some host time. */
#define SPIN_SAME	2u

static u64 pause_units(const struct soft_cpu *c, u64 pauses)
{
	return c->svm->lines ? pauses * c->svm->lines->pause : 0;
}

static void spin_here(const struct soft_cpu *c, struct soft_spin_place *p)
{
	p->units = soft_units(c);
	p->insns = c->insns;
	p->accesses = c->accesses;
	p->af = c->af;
	p->rip = c->rip;
	memcpy(p->gpr, c->gpr, sizeof(p->gpr));
}

/* This is the head now. */
static void spin_begin(struct soft_cpu *c)
{
	struct soft_spin *s = &c->spin;

	spin_here(c, &s->head);
	s->sysflags = c->sysflags;
	s->cpl = c->cpl;
	s->pauses = s->at_pauses = s->same = 0;
	s->loud = s->watch = s->refused = false;
}

static bool spin_at_head(const struct soft_cpu *c)
{
	const struct soft_spin *s = &c->spin;

	return c->rip == s->head.rip && c->af == s->head.af && c->sysflags == s->sysflags && c->cpl == s->cpl &&
	       !memcmp(c->gpr, s->head.gpr, sizeof(s->head.gpr));
}

/* The first time any iteration's length is the loop's; after that all have to be alike. */
static bool spin_period(struct soft_cpu *c)
{
	struct soft_spin *s = &c->spin;
	struct soft_spin_place now;

	spin_here(c, &now);
	now.units -= s->head.units;
	now.insns -= s->head.insns;
	now.accesses -= s->head.accesses;
	now.pauses = s->pauses;
	if (!s->same)
		s->period = now;
	return now.units == s->period.units && now.insns == s->period.insns && now.accesses == s->period.accesses &&
	       now.pauses == s->period.pauses;
}

/* The head moves on by n iterations, all of them like the one before. */
static void spin_advance(struct soft_cpu *c, u64 n)
{
	struct soft_spin *s = &c->spin;

	s->head.units += n * s->period.units;
	s->head.insns += n * s->period.insns;
	s->head.accesses += n * s->period.accesses;
	c->spent[TIME_spinning] += n * s->period.units;
	soft_sample_loop(c, s->head.units, n);
}

/*
 * Every instruction of the loop has been looked at: nothing but its lines, and events, can end it. The filter has them
 * all, or soft_line() would have been asked.
 */
static bool spin_is_wait(const struct soft_cpu *c)
{
	return c->spin.watch && !c->spin.impure && c->filter && c->svm->vm->unpark && !c->svm->vm->no_park;
}

/* Not now: turns would end where another thread's do, or something is to be delivered. */
static bool spin_may_park(const struct soft_cpu *c)
{
	return c->vcpu->near_until <= soft_ns(c->svm, soft_units(c)) && !c->broken && !c->shadow && !c->nmi_pending;
}

/* A PAUSE at a place that is not the head, or not as the head was. */
static void spin_elsewhere(struct soft_cpu *c)
{
	struct soft_spin *s = &c->spin;

	if (s->loud || s->pauses >= SPIN_PAUSES || c->insns - s->head.insns > SPIN_INSNS)
		spin_begin(c);
}

bool soft_spin(struct soft_cpu *c)
{
	struct soft_spin *s = &c->spin;
	bool wait, park;

	s->paused = false;
	s->pauses++;
	if (s->loud || c->insns - s->head.insns > SPIN_INSNS || !spin_at_head(c)) {
		spin_elsewhere(c);
		return false;
	}
	if (!spin_period(c)) {
		spin_begin(c);
		return false;
	}
	s->same++;
	c->spent[TIME_pause] -= pause_units(c, s->pauses);
	s->pauses = s->at_pauses = 0;
	spin_advance(c, 1);
	wait = spin_is_wait(c);
	park = wait && spin_may_park(c);
	if (s->watch)
		s->refused = !wait;
	s->watch = !s->watch && !s->refused && s->same >= SPIN_SAME;
	if (s->watch) {
		s->nr = 0;
		s->impure = false;
	}
	if (!park)
		return false;
	s->watch = false;
	c->vcpu->parked = true;
	soft_spin_until(c->vcpu, c->until);
	return true;
}

void soft_spin_place(struct soft_cpu *c, bool well)
{
	struct soft_spin *s = &c->spin;
	struct soft_spin_place *p = &s->place[s->nr];

	if (!well || s->nr == SPIN_PLACES) {
		s->watch = false;
		s->refused = true;
		return;
	}
	s->nr++;
	spin_here(c, p);
	p->units -= s->head.units;
	p->insns -= s->head.insns;
	p->accesses -= s->head.accesses;
	p->pauses = s->pauses + s->paused;
}

/* The first place at or after `into` units of an iteration: the last one is the next head. */
static const struct soft_spin_place *spin_place(const struct soft_spin *s, u64 into)
{
	u32 i;

	for (i = 0; i + 1 < s->nr && s->place[i].units < into; i++)
		;
	return &s->place[i];
}

/* PAUSEs of the iteration in hand, booked like any other until the iteration is whole. */
static void spin_book_pauses(struct soft_cpu *c, u32 pauses)
{
	struct soft_spin *s = &c->spin;

	c->stat[STAT_pauses] += (u64)pauses - s->at_pauses;
	c->spent[TIME_pause] += pause_units(c, pauses) - pause_units(c, s->at_pauses);
	s->at_pauses = s->pauses = pauses;
}

void soft_spin_until(struct vcpu *vcpu, u64 ns)
{
	struct soft_cpu *c = soft_cpu(vcpu);
	struct soft_spin *s = &c->spin;
	u64 now = soft_units(c), limit = soft_units_of(c->svm, ns), whole, into;
	struct soft_spin_place at = { 0 };

	if (now >= limit)
		return;
	whole = (limit - s->head.units) / s->period.units;
	into = (limit - s->head.units) % s->period.units;
	if (into) {
		at = *spin_place(s, into);
		if (at.units == s->period.units) {
			whole++;
			into = 0;
		}
	}
	if (whole) {
		c->left -= (s64)(s->head.units + whole * s->period.units - now);
		now = s->head.units + whole * s->period.units;
		spin_book_pauses(c, 0);
		c->rip = s->head.rip;
		memcpy(c->gpr, s->head.gpr, sizeof(s->head.gpr));
		c->stat[STAT_pauses] += whole * s->period.pauses;
		spin_advance(c, whole);
	}
	if (!into) {
		at = s->head;
		at.units = at.insns = at.accesses = at.pauses = 0;
	}
	spin_book_pauses(c, at.pauses);
	c->insns = s->head.insns + at.insns;
	c->accesses = s->head.accesses + at.accesses;
	c->af = at.af;
	c->rip = at.rip;
	memcpy(c->gpr, at.gpr, sizeof(at.gpr));
	c->left -= (s64)(s->head.units + at.units - now);
}

void soft_spin_wake_all(struct soft_vm *svm)
{
	u32 i;

	for (i = 0; i < svm->vm->topo.nr_cpus; i++)
		if (svm->vm->vcpu[i] && svm->vm->vcpu[i]->engine)
			soft_spin_wake(soft_cpu(svm->vm->vcpu[i]));
}

void soft_spin_reset(struct soft_cpu *c)
{
	c->vcpu->parked = false;
	c->vcpu->near_until = 0;
	memset(&c->spin, 0, sizeof(c->spin));
}
