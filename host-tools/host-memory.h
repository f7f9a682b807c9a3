/* SPDX-License-Identifier: GPL-2.0-only */
/* What memory the host has, its control groups' limits among it, and what of it a cell takes. Bytes. Any thread. */
#ifndef HOST_TOOLS_HOST_MEMORY_H
#define HOST_TOOLS_HOST_MEMORY_H

#include "job.h"

struct host_memory {
	u64 total, free;	/* UINT64_MAX where the host does not tell */
	char *limit;		/* the control group whose limit is below the host's memory; NULL = none is */
};

/* From /proc and /sys/fs/cgroup (both versions) below `root`, "" but in tests. host_memory_clear(). */
void host_memory_read(const char *root, struct host_memory *m);
void host_memory_clear(struct host_memory *m);
/* What one VMM takes for the cell, should its guest touch all of its RAM. */
u64 host_memory_of_cell(const struct cell *cell);

#endif
