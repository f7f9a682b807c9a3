// SPDX-License-Identifier: GPL-2.0-only
/* Taking rights of second-level mappings away at a rate. */
#include "refault.h"

/* Fine enough that pages are spread in time, coarse enough to cost nothing. */
#define REFAULT_TICK_NS		NSEC_PER_MSEC
/* Random picks for one page before giving up: most of a large, little used RAM was never touched. */
#define REFAULT_TRIES		64
/* Stream numbers that no vCPU's injection uses. */
#define REFAULT_STREAM		0x7265666175ull
#define PROTECT_STREAM		0x70726f7465ull
/*
 * Never owe more than this much time's worth: after a stall of the service loop, and
 * where pages that have the right cannot be found as fast as they are asked for.
 */
#define REFAULT_MAX_LAG_NS	(100 * NSEC_PER_MSEC)

static bool refault_one(struct refault_kind *k)
{
	struct vm *vm = k->vm;
	u64 pages = vm->mem.size >> PAGE_SHIFT;
	u32 try, i;

	for (try = 0; try < REFAULT_TRIES; try++) {
		u64 off = (rng_next(&k->rng) % pages) << PAGE_SHIFT;

		for (i = 0; i < vm->mem.nr_slots; i++) {
			const struct memslot *s = &vm->mem.slot[i];

			if (off < s->offset || off - s->offset >= s->size)
				continue;
			if (vm->engine->gpa_lowered(vm, s->gpa + off - s->offset, PAGE_SIZE, k->left) > 0) {
				counter_add(&vm->counters, k->counter, 1);
				return true;
			}
		}
	}
	return false;
}

static void refault_tick(void *ctx, u64 arg, u64 due, u64 now)
{
	struct refault_kind *k = ctx;

	if (!k->vm->inject.on)
		return;
	k->owed += MIN(now - k->last, REFAULT_MAX_LAG_NS) * k->rate;
	k->owed = MIN(k->owed, REFAULT_MAX_LAG_NS * k->rate + NSEC_PER_SEC);
	k->last = now;
	while (k->owed >= NSEC_PER_SEC) {
		k->owed -= NSEC_PER_SEC;
		if (!refault_one(k))
			break;
	}
	clock_schedule(&k->vm->service, &k->tick, now + REFAULT_TICK_NS);
}

static void kind_init(struct refault_kind *k, struct vm *vm, enum gpa_rights left, enum counter counter, u64 stream,
		      u64 rate)
{
	*k = (struct refault_kind){ .vm = vm, .left = left, .counter = counter, .stream = stream, .rate = rate };
	clock_event_init(&k->tick, refault_tick, k, 0);
}

static void kind_start(struct refault_kind *k, u64 now, u64 seed)
{
	if (!k->rate)
		return;
	rng_seed(&k->rng, seed, k->stream);
	k->last = now;
	k->owed = 0;
	clock_schedule(&k->vm->service, &k->tick, now + REFAULT_TICK_NS);
}

void refault_init(struct refault *r, struct vm *vm)
{
	kind_init(&r->drop, vm, GPA_NONE, COUNTER_ept_dropped, REFAULT_STREAM, vm->inject.ept_refault_per_s);
	kind_init(&r->protect, vm, GPA_READ, COUNTER_ept_protected, PROTECT_STREAM, vm->inject.ept_protect_per_s);
}

void refault_start(struct refault *r, u64 now, u64 seed)
{
	kind_start(&r->drop, now, seed);
	kind_start(&r->protect, now, seed);
}

void refault_stop(struct refault *r)
{
	clock_schedule(&r->drop.vm->service, &r->drop.tick, CLOCK_NEVER);
	clock_schedule(&r->protect.vm->service, &r->protect.tick, CLOCK_NEVER);
}
