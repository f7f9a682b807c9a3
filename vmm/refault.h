/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Takes rights of second-level mappings away, at random and evenly in time, of pages that
 * the guest has touched, while injection is on. Contents stay.
 *
 * inject.ept.refault = RATE drops mappings: the next access is a second-level fault again.
 * This is how host swapping or post-copy migration looks to a guest.
 * inject.ept.write_protect = RATE leaves them readable: the next write is a fault, as when live
 * migration logs what is dirty. Runs on the service clock.
 */
#ifndef VMM_REFAULT_H
#define VMM_REFAULT_H

#include "core/engine.h"

/* One of the two. */
struct refault_kind {
	struct vm *vm;
	enum gpa_rights left;	/* what a page keeps */
	enum counter counter;	/* of pages that lost rights */
	u64 stream;		/* of random numbers */
	u64 rate;		/* pages a second */
	struct rng rng;
	struct clock_event tick;
	u64 last;		/* ns of the last tick */
	u64 owed;		/* page-nanoseconds not yet done: rate * time, less what was done */
};

struct refault {
	struct refault_kind drop, protect;
};

void refault_init(struct refault *r, struct vm *vm);
/* A command begins, and its stream of random pages with it; ends by itself with injection. */
void refault_start(struct refault *r, u64 now, u64 seed);
/* Take it off the VM's clock, before `r` goes. */
void refault_stop(struct refault *r);

#endif
