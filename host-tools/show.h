/* SPDX-License-Identifier: GPL-2.0-only */
/* A result as text, in the manner of `perf stat --repeat`. */
#ifndef HOST_TOOLS_SHOW_H
#define HOST_TOOLS_SHOW_H

#include <json-glib/json-glib.h>
#include <stdio.h>

#include "base/types.h"

/* A result that result_read() took. With `all`, counters from a second source and of the engine too. */
void show_result(FILE *to, JsonNode *result, bool all);

#endif
