/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Snapshots of the counters that any Linux guest has: /proc/vmstat,
 * /proc/interrupts and /proc/stat, and the change between two of them.
 *
 * procstat_take() only reads: the files' text is kept and parsed when the
 * change is asked for, so that taking one costs little next to a mark. One
 * thread at a time for each snapshot.
 */
#ifndef LIB_PROCSTAT_H
#define LIB_PROCSTAT_H

#include "lib/util.h"

enum procstat_file {
	PROCSTAT_VMSTAT,
	PROCSTAT_INTERRUPTS,
	PROCSTAT_STAT,
	NR_PROCSTAT_FILES
};

struct procstat {
	char *text[NR_PROCSTAT_FILES];	/* NUL terminated, "" = could not be read */
	size_t size[NR_PROCSTAT_FILES];
};

/* Room for this machine's files, already touched. Exits where there is no memory. */
void procstat_init(struct procstat *s);
void procstat_take(struct procstat *s);

/* Path of a file, as the counter's source. */
const char *procstat_source(enum procstat_file file);

/*
 * Value of one counter of a snapshot, under the name that procstat_changes()
 * gives it. 0, or -ENOENT.
 */
int procstat_value(const struct procstat *s, enum procstat_file file, const char *name, u64 *value);

typedef void (*procstat_fn)(void *ctx, const char *source, const char *name, u64 delta);

/*
 * Call fn for each counter that grew from *before to *after. Names: those of
 * /proc/vmstat without its gauges (nr_*, except nr_tlb_*); rows of
 * /proc/interrupts, summed over CPUs (TLB, RES, CAL, LOC, numbers as irq_N);
 * ctxt, processes, intr, softirq and cpu_user_ns ... cpu_steal_ns of
 * /proc/stat. Each CPU time is in whole ticks of 10 ms.
 */
void procstat_changes(const struct procstat *before, const struct procstat *after, procstat_fn fn,
		      void *ctx);

#endif
