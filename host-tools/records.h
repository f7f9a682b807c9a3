/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads what the VMM wrote (docs/records.md) into the cells of a job. A file that
 * ends in mid-line, or has lines that are no records, loses just those lines.
 */
#ifndef HOST_TOOLS_RECORDS_H
#define HOST_TOOLS_RECORDS_H

#include "job.h"

/*
 * Each record of the file goes to the cell of its name. Returns how many lines
 * were no records (0 if there is no file); which line the first is, behind
 * which cell's, and what is wrong with it is in *why (g_free()) then.
 */
u32 records_read(struct job *job, const char *path, char **why);
/* The same for text in memory. */
u32 records_parse(struct job *job, const char *text, size_t len, char **why);
/*
 * The same for a repeat that had a VM of its own (repeat < 0: all of them had one). The cell's records `vm` and `end` are those of the first
 * repeat whose end was not "done", else of the first one, in whatever order they come.
 */
u32 records_of_repeat(struct job *job, struct cell *cell, int repeat, const char *text, size_t len, char **why);

#endif
