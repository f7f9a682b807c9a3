/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the check of an experiment says (experiments/lib/Experiment.pm), kept line by line and
 * printed as a table. Main thread only.
 */
#ifndef HOST_TOOLS_EXPERIMENT_H
#define HOST_TOOLS_EXPERIMENT_H

#include <glib.h>
#include <stdio.h>

#include "base/types.h"

#define EXPERIMENT_COLUMNS	5

enum experiment_kind {
	EXPERIMENT_ROW,		/* quantity, published, measured, note */
	EXPERIMENT_CLAIM,	/* what must hold, "", detail, verdict */
	EXPERIMENT_EXPECT,	/* what was published, "", detail, verdict; a miss is no failure */
	EXPERIMENT_NOTE,
	EXPERIMENT_ERROR,	/* the check could not go on */
};

struct experiment_line {
	enum experiment_kind kind;
	char *column[EXPERIMENT_COLUMNS];	/* kind, text, published, measured, verdict */
};

/* One experiment. */
struct experiment {
	char *name, *title;
	GPtrArray *lines;	/* struct experiment_line */
	u32 claims, broken;	/* claims, and how many of them do not hold */
	u32 expected, missed;	/* expectations, and how many of them are missed */
	double seconds;		/* of host time, runs and check */
	int status;		/* enum status; STATUS_COMMAND_FAILED if a claim does not hold */
};

struct experiment *experiment_new(const char *name, const char *title);
void experiment_free(struct experiment *e);
/* One line of the check's output; NULL, or what is wrong with it. g_free(). */
char *experiment_line(struct experiment *e, const char *line);
/* Published beside measured, the claims, notes. */
void experiment_table(FILE *to, const struct experiment *e);
/*
 * All lines as a file of columns: experiment, then those of the check. -errno,
 * reported.
 */
int experiment_write(const char *path, GPtrArray *experiments);

#endif
