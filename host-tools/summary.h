/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the repeats of a cell come to: means and standard errors of counters,
 * reports and rates, histograms put together. Pure functions on JSON objects.
 */
#ifndef HOST_TOOLS_SUMMARY_H
#define HOST_TOOLS_SUMMARY_H

#include <json-glib/json-glib.h>

#include "base/types.h"

/* Fewer whole rounds than this make a rate that the next run need not repeat. */
#define SUMMARY_FEW_ROUNDS	10

/*
 * The member `summary` of a cell. `vm` may be NULL (the guest never was ready).
 * Repeats whose command failed are left out and counted.
 *
 *   repeats, failed		how many are in it, how many are not
 *   time			{unit, mean, stderr, n} of a repeat's measured region
 *   counters, reports		name to {unit, source?, mean, stderr, n}
 *   rates			name to {unit, mean, stderr, n, time, trust[], remarks[]}
 *   na				name to why
 *   histograms			name to {count, sum, mean, min, max, buckets}
 *   warnings			each once
 *
 * stderr is null below two values. Rates are those of every counter of events,
 * over the measured region, and those that the load reports itself.
 */
JsonObject *summary_build(JsonObject *vm, JsonArray *repeats);

/* Members with a default where they are missing or of another type. */
double summary_number(JsonObject *o, const char *name, double otherwise);
const char *summary_string(JsonObject *o, const char *name, const char *otherwise);
/* NULL if there is none. */
JsonObject *summary_object(JsonObject *o, const char *name);
JsonArray *summary_array(JsonObject *o, const char *name);

#endif
