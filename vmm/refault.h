/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * inject.ept.refault = RATE: drops second-level mappings of pages that the guest
 * has touched, at random and evenly in time, while injection is on. Contents
 * stay; the next access is a second-level fault again. This is how host swapping or
 * post-copy migration looks to a guest. Runs on the service clock.
 */
#ifndef VMM_REFAULT_H
#define VMM_REFAULT_H

#include "core/engine.h"

struct refault {
	struct vm *vm;
	struct rng rng;
	struct clock_event tick;
	u64 last;		/* ns of the last tick */
	u64 owed;		/* page-nanoseconds not yet dropped: rate * time, less what was done */
};

void refault_init(struct refault *r, struct vm *vm);
/* A command begins, and its stream of random pages with it; ends by itself with injection. */
void refault_start(struct refault *r, u64 now, u64 seed);

#endif
