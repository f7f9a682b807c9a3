/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What waits in a clock, for snapshots. Functions and what they work on are
 * pointers, which mean nothing in another process, so each kind of event that can
 * wait in this clock has a name; whoever owns the clock lists them.
 */
#ifndef CORE_CLOCK_STATE_H
#define CORE_CLOCK_STATE_H

#include "core/clock.h"
#include "core/saver.h"

/* One kind of event: a timer, or messages with this function and context. */
struct clock_known {
	const char *name;
	struct clock_event *timer;	/* NULL = messages */
	clock_fn fn;
	void *ctx;
};

/*
 * Move the clock's events, inside a section that the caller has begun. Loading drops
 * what waits and restores due times and the order of equal ones; an event of a name
 * that is not known fails it, as does saving one. No thread may be using the clock.
 */
void clock_transfer(struct saver *s, struct clock *clock, const struct clock_known *known, u32 nr_known);

#endif
