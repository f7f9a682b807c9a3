/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A finished part of a run, a cell or one repeat of it, as a file KEY.jsonl: a line that says which part of what it is and how it ended, then
 * the records that its VMM wrote. Whole or not there; what was changed or cut off since is found by a checksum. Main thread only.
 */
#ifndef HOST_TOOLS_PART_FILE_H
#define HOST_TOOLS_PART_FILE_H

#include "job.h"

/* The member of `of` that is this host's; only where time is the host's. */
#define PART_HOST	"host"

typedef struct part_file {
	char *path;
	char *cell;
	int repeat;		/* -1 = all of the cell's */
	JsonObject *of;		/* all that the records depend on, name to value: part_of() */
	int status;		/* enum status */
	char *why, *records;
} part_file;

/*
 * Every key of the cell's scenario, checksums of kernel, initramfs, disk, cost model, traces of delays and VMM, and the options. `sums` has
 * the checksums of files that were read before, path to text, both owned. json_object_unref().
 */
JsonObject *part_of(const struct job *job, const struct cell *cell, GHashTable *sums);
/* KEY.jsonl; g_free(). */
char *part_name(const struct cell *cell, int repeat, JsonObject *of);
/* The file's text; g_free(). */
char *part_text(const struct cell *cell, int repeat, JsonObject *of, int status, const char *records);
/* NULL if there is none by that name, or (*bad set, g_free()) it is none or not as it was written. */
part_file *part_read(const char *path, char **bad);
void part_file_free(part_file *f);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(part_file, part_file_free)
/* What differs between two, but for the host: "vm.topology is 1x2x1 there, 2x1x1 here; ..." NULL if nothing does. g_free(). */
char *part_differs(JsonObject *there, JsonObject *here);

#endif
