/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The result file, schema "faultbed-result/1": built from a job, written whole or
 * not at all, read back. Main thread only.
 */
#ifndef HOST_TOOLS_RESULT_JSON_H
#define HOST_TOOLS_RESULT_JSON_H

#include <json-glib/json-glib.h>

#include "job.h"

#define RESULT_SCHEMA	"faultbed-result/1"

/* The whole result. Members keep their order; what depends on this host is in `provenance`. */
JsonNode *result_build(const struct job *job, int argc, char **argv);
/*
 * Before anything runs: can a result be written there? Makes the folder if there is
 * none (and says so). -errno, reported.
 */
int result_target(const char *path);
/*
 * Write to path, whose folders are made. A regular file is written under another name
 * first, then renamed; a device, FIFO or symbolic link is written as it is.
 * -errno, reported.
 */
int result_write(JsonNode *result, const char *path);
/* Read and check schema and shape; NULL after a message. json_node_unref(). */
JsonNode *result_read(const char *path);
/* Is JSON nested deeper than any that we write? json-glib's parser recurses, so this comes first. */
bool result_too_deep(const char *text, size_t len);
/* As text: objects a member a line, arrays of plain values on one. g_free(). */
char *result_to_text(JsonNode *result);

#endif
