/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How far a matrix is, and about how long the rest takes. Parts have weights, so that a small one does not promise that a
 * large one will be as quick. Times are g_get_monotonic_time()'s, us. Main thread only.
 */
#ifndef HOST_TOOLS_PROGRESS_H
#define HOST_TOOLS_PROGRESS_H

#include <glib.h>

#include "base/types.h"

struct progress {
	u32 of, done;		/* parts in all; those that have ended, before this run, too */
	u32 slots;		/* so many at once */
	double waiting;		/* weight of the parts that have not begun */
	double weight, took;	/* of the parts that ended in this run: their weight, and us */
	s64 began;
	GArray *running;	/* private */
	bool tty, shown;	/* on a terminal: one line, which is up now */
};

/* `before` parts of `of` are done already, and the others weigh `waiting`. progress_clear(). */
void progress_init(struct progress *p, u32 of, u32 before, double waiting, u32 slots, bool tty, s64 now);
void progress_clear(struct progress *p);
/* A part begins; `id` is the caller's. */
void progress_start(struct progress *p, const void *id, double weight, s64 now);
/* It has ended. Not `counts`: it was interrupted, or could not be run, and tells nothing. */
void progress_end(struct progress *p, const void *id, bool counts, s64 now);
/* us; -1 as long as none has ended. */
s64 progress_left(const struct progress *p, s64 now);
/* "3 of 24 done, 2 running, 1 min 5 s so far, about 7 min left"; g_free(). */
char *progress_text(const struct progress *p, s64 now);
/* Write it: on a terminal over the last one, else a line of its own. */
void progress_show(struct progress *p, s64 now);
/* On a terminal: take the line away, before something else is written. */
void progress_hide(struct progress *p);

#endif
