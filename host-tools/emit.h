/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A matrix as work for other hosts (docs/sweeps.md): a shell script of jobs that each run one cell by `faultbed sweep --cells` and keep it as
 * a file; `faultbed sweep --collect` makes the result of the files. Main thread only.
 */
#ifndef HOST_TOOLS_EMIT_H
#define HOST_TOOLS_EMIT_H

#include <stdio.h>

#include "job.h"

struct emit {
	const char *kind;		/* "slurm" or "parallel" */
	const char *output;		/* the result's path, -o */
	u32 throttle;			/* slurm: tasks at once, 0 = as Slurm likes */
	char *const *arguments;		/* of faultbed sweep but for --emit, --throttle, --retry, --cells and -o; NULL at the end */
	bool retry;			/* run those again that did not end well; what becomes of them is collected */
};

/* Is `kind` one of those? Reported if not. */
bool emit_kind(const char *kind);
/*
 * Write the script for the cells of the job that have not been tried. An enum status, reported: bad input for a matrix that cannot be split,
 * or if there is nothing to do.
 */
int emit_script(FILE *to, const struct job *job, const struct emit *e);
/* "1-3,7": numbers of the cells that have not been tried; "" if all have. g_free(). */
char *emit_missing(const struct job *job);

#endif
