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
 * Write to path, whose folders are made: under another name first, then renamed.
 * -errno, reported.
 */
int result_write(JsonNode *result, const char *path);
/* Read and check schema and shape; NULL after a message. json_node_unref(). */
JsonNode *result_read(const char *path);
/* As text: objects a member a line, arrays of plain values on one. g_free(). */
char *result_to_text(JsonNode *result);

#endif
