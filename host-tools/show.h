/* SPDX-License-Identifier: GPL-2.0-only */
/* A result as text, in the manner of `perf stat --repeat`. */
#ifndef HOST_TOOLS_SHOW_H
#define HOST_TOOLS_SHOW_H

#include <json-glib/json-glib.h>
#include <stdio.h>

#include "base/types.h"

/* A result that result_read() took. With `all`, counters from a second source and of the engine too. */
void show_result(FILE *to, JsonNode *result, bool all);

/*
 * Text that files and guests had a part in, without what could drive a terminal: control
 * characters but \n and \t become '?'.
 */
void show_text(FILE *to, const char *text);

/* Parts that show.c and show-table.c share. */

/* Columns of a counter's name. */
#define NAME_WIDTH	34

/* All cells side by side. */
void show_table(FILE *to, JsonObject *root, bool all);
/* A figure's mean, with decimals only where it is small. g_free(). */
char *show_mean(JsonObject *figure);
/* Second sources, files of /proc and the engine's own statistics are for --all. */
bool show_listed(const char *name, JsonObject *counter, bool all);

#endif
