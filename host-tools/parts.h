/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finished parts of a run (part-file.h) beside its result, RESULT.json.parts/KEY.jsonl, so that a run that was ended, by whatever, goes on
 * where it was, and so that several hosts can each run some of the cells.
 *
 * The key is a checksum of all that a part's records depend on. So a part of anything else is never taken for this one's. RESULT.json.parts/lock
 * is locked: its byte 0 by a run of the whole matrix for itself, by runs of some cells together; byte N by one that runs cell N. The locks
 * go with the process. Main thread only.
 */
#ifndef HOST_TOOLS_PARTS_H
#define HOST_TOOLS_PARTS_H

#include "part-file.h"

/* How a run uses the folder. */
enum parts_use {
	PARTS_ALL,	/* the whole matrix, for itself */
	PARTS_SOME,	/* some cells of it, while others may be run by others */
	PARTS_LOOK,	/* nothing is run: what is there, whichever host made it */
};

/* The folder of the result at `output`; g_free(). */
char *parts_folder(const char *output);
/*
 * Makes the folder and locks it, if anything is to be run. With `retry` parts that did not end well are not taken. NULL (reported) if that cannot be, or another run is at it: then *status is an enum status.
 */
struct parts *parts_open(const char *output, const struct job *job, enum parts_use use, bool retry, int *status);
void parts_close(struct parts *p);
/* If this part was finished before: put it into the job. repeat < 0: all repeats of the cell. */
bool parts_take(struct parts *p, struct job *job, u32 cell, int repeat);
/*
 * This part has ended: keep it if there is nothing to be done about how it ended (done, the guest's command failed, the guest died). A
 * file that cannot be written is a warning.
 */
void parts_keep(struct parts *p, const struct job *job, u32 cell, int repeat, int status, const char *records);
/* Put what a part has into its cell. */
void parts_put(struct job *job, struct cell *cell, const part_file *f);

#endif
