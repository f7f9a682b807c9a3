/* SPDX-License-Identifier: GPL-2.0-only */
/* Two results, figure by figure. Pure but for what it prints. */
#ifndef HOST_TOOLS_COMPARE_H
#define HOST_TOOLS_COMPARE_H

#include <json-glib/json-glib.h>
#include <stdio.h>

#include "base/types.h"

/* What `faultbed compare` exits with. */
enum compare_status {
	COMPARE_VERDICT = 0,	/* compared, and the verdict is about performance */
	COMPARE_NO_VERDICT = 1,	/* compared, but no verdict can be given: trust, too few repeats */
	COMPARE_REFUSED = 2,	/* bad input, or results that are not of the same scenario */
};

/*
 * Scenario keys that differ between two results, "key: a | b" each. Left out are
 * those that one compares on purpose (kernel, initramfs) and those that move no
 * mean (how many repeats, seed, time limits).
 */
GPtrArray *compare_scenarios(JsonObject *a, JsonObject *b);

/* One figure of a cell in both results. */
struct compare_figure {
	double mean_a, mean_b;
	double difference;	/* b - a */
	double half;		/* of the 95% interval of the difference; NAN if there is none */
	double percent;		/* of a; NAN if that is 0 */
	u32 n_a, n_b;
};

/* a and b are members of counters, reports or rates. */
void compare_figures(JsonObject *a, JsonObject *b, struct compare_figure *out);

/* Print all; two results that result_read() took. Cells are matched by name. An enum compare_status. */
int compare_results(FILE *to, JsonNode *a, JsonNode *b, const char *name_a, const char *name_b, bool all);

#endif
