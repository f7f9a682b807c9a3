/* SPDX-License-Identifier: GPL-2.0-only */
/* The command line of faultbed run and faultbed sweep, and what is decided from it. Main thread only. */
#ifndef HOST_TOOLS_RUN_OPTIONS_H
#define HOST_TOOLS_RUN_OPTIONS_H

#include "job.h"

struct run_options {
	char **set, **vary, **files;
	char *output, *engine, *kernel, *initrd, *appliance_kernel, *snapshot, *save_snapshot;
	char *trace, *trace_events, *trace_from, *memory, *connect;
	gboolean console, all, quiet, no_snapshot, no_park, profile, interleave, resume, check;
	int jobs;
	/* faultbed sweep only. */
	char *cells;		/* run just these, into the folder of finished parts */
	gboolean retry;		/* do not take parts that did not end well */
	gboolean missing, collect;	/* run nothing: name the cells that are not finished, make the result of those that are */
	char *emit;		/* run nothing: write jobs for other hosts */
	int throttle;
};

/* For g_option_context_set_main_group(). */
GOptionGroup *run_options_group(struct run_options *opt);
void run_options_clear(struct run_options *opt);
/*
 * The options that stand for a --set, and the --set: for job_new(). NULL (reported) if one of them does not. Paths are the caller's, so
 * they are made absolute.
 */
GPtrArray *run_sets(const struct run_options *opt);

/*
 * Choose the engine, say on the first line which and why, and settle all of the job that hangs on it. An enum status, reported: bad
 * input, or what this host or engine does not have.
 */
int run_choose(struct job *job, const struct run_options *opt);
/* Does this host's KVM run VMs? Asks the VMM. */
bool run_kvm_usable(void);
/* All of it: read the scenario, choose, run, show, write. An enum status. The arguments are for the result's provenance. */
int run_file(const struct run_options *opt, int argc, char **argv);
/* Of a job whose cells have been run: show the result and write it. `status`, or a worse one. */
int run_result(struct job *job, const struct run_options *opt, int status, int argc, char **argv);
/*
 * What faultbed sweep does instead of running: opt->missing, emit or collect, with what is there of the job's cells in it. As
 * run_file(); to collect what is not all there is STATUS_INTERRUPTED.
 */
int sweep_look(struct job *job, const struct run_options *opt, int argc, char **argv);
/* The time of day, for a job's begin and finish; g_free(). */
char *run_now(void);

#endif
