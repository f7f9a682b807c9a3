// SPDX-License-Identifier: GPL-2.0-only
/* Dropping second-level mappings at a rate. */
#include "refault.h"

/* Fine enough that a page's drops are spread, coarse enough to cost nothing. */
#define REFAULT_TICK_NS		NSEC_PER_MSEC
/* Random picks for one page before giving up: most of a large, little used RAM was never touched. */
#define REFAULT_TRIES		64
/* A stream number that no vCPU's injection uses. */
#define REFAULT_STREAM		0x7265666175ull
/* Never owe more than this much time's worth after a stall of the service loop. */
#define REFAULT_MAX_LAG_NS	(100 * NSEC_PER_MSEC)

static bool refault_one(struct refault *r)
{
	struct vm *vm = r->vm;
	u64 pages = vm->mem.size >> PAGE_SHIFT;
	u32 try, i;

	for (try = 0; try < REFAULT_TRIES; try++) {
		u64 off = (rng_next(&r->rng) % pages) << PAGE_SHIFT;

		for (i = 0; i < vm->mem.nr_slots; i++) {
			const struct memslot *s = &vm->mem.slot[i];

			if (off < s->offset || off - s->offset >= s->size)
				continue;
			if (vm->engine->gpa_lowered(vm, s->gpa + off - s->offset, PAGE_SIZE) > 0) {
				counter_add(&vm->counters, COUNTER_ept_dropped, 1);
				return true;
			}
		}
	}
	return false;
}

static void refault_tick(void *ctx, u64 arg, u64 due, u64 now)
{
	struct refault *r = ctx;
	u64 rate = r->vm->inject.ept_refault_per_s;

	if (!r->vm->inject.on)
		return;
	r->owed += MIN(now - r->last, REFAULT_MAX_LAG_NS) * rate;
	r->last = now;
	while (r->owed >= NSEC_PER_SEC) {
		r->owed -= NSEC_PER_SEC;
		if (!refault_one(r))
			break;
	}
	clock_schedule(&r->vm->service, &r->tick, now + REFAULT_TICK_NS);
}

void refault_init(struct refault *r, struct vm *vm)
{
	r->vm = vm;
	clock_event_init(&r->tick, refault_tick, r, 0);
}

void refault_start(struct refault *r, u64 now, u64 seed)
{
	if (!r->vm->inject.ept_refault_per_s)
		return;
	rng_seed(&r->rng, seed, REFAULT_STREAM);
	r->last = now;
	r->owed = 0;
	clock_schedule(&r->vm->service, &r->tick, now + REFAULT_TICK_NS);
}
