/* SPDX-License-Identifier: GPL-2.0-only */
/* The command line of faultbed run, and what is decided from it. Main thread only. */
#ifndef HOST_TOOLS_RUN_OPTIONS_H
#define HOST_TOOLS_RUN_OPTIONS_H

#include "job.h"

struct run_options {
	char **set, **vary, **files;
	char *output, *engine, *kernel, *initrd, *appliance_kernel, *snapshot, *save_snapshot;
	char *trace, *trace_events, *trace_from;
	gboolean console, all, quiet, no_snapshot, no_park, profile, interleave, resume;
	int jobs;
};

/*
 * Choose the engine, say on the first line which and why, and settle all of the job that hangs on it. An enum status, reported: bad
 * input, or what this host or engine does not have.
 */
int run_choose(struct job *job, const struct run_options *opt);

#endif
