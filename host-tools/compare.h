/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Results against each other: which cells belong together, whether they can be compared, what differs and whether that
 * is noise. Cells of other results against those of the first, or, of one result, against the cell with the factor's
 * first value. The factor is the guest's kernel and its knobs; all else has to be equal. Main thread only.
 *
 * One headline of each pair decides. It is named before the run (run.headline), or is the load's own rate. Two thresholds have to
 * be reached, one absolute and one of the first's mean, and no chance of less than 1 - confidence may explain it (Welch's test, after Holm
 * over the headlines of all pairs). The other figures of a pair are corrected for their number (Holm), and decide nothing.
 */
#ifndef HOST_TOOLS_COMPARE_H
#define HOST_TOOLS_COMPARE_H

#include <json-glib/json-glib.h>
#include <stdio.h>

#include "base/types.h"

/* What `faultbed compare` exits with; of several the one that stands last here. */
enum compare_status {
	COMPARE_VERDICT = 0,	/* each pair has a verdict */
	COMPARE_NO_VERDICT = 1,	/* one has none: no clock to trust, too few repeats, too much noise, or no partner */
	COMPARE_FAILED = 6,	/* there is a verdict that was asked for with --fail-on */
	COMPARE_REFUSED = 2,	/* bad input, or what differs besides the factor */
};

enum compare_verdict {
	VERDICT_NONE,		/* `why` says what is missing */
	VERDICT_OPEN,		/* the interval has both a difference that counts and one that does not */
	VERDICT_SAME,		/* no difference that reaches the thresholds */
	VERDICT_HIGHER,
	VERDICT_LOWER,
};

/* Which verdicts --fail-on means. */
enum compare_fail_on { FAIL_ON_NOTHING, FAIL_ON_WORSE, FAIL_ON_DIFFERENT };

struct compare_options {
	bool all;		/* figures of second sources and of the engine, too */
	const char *headline;	/* named after the run; NULL = as the runs say */
	double confidence;	/* 0.95 */
	double least_percent;	/* of the first's mean, that a difference has to be */
	double least;		/* in the headline's unit */
};

/* What the command line has if it says nothing. */
#define COMPARE_OPTIONS	{ .confidence = 0.95, .least_percent = 1 }

/* One figure of two cells. Strings are the results'. */
struct compare_figure {
	const char *group;	/* "rates", "reports" or "counters" */
	const char *name, *unit;
	double mean_a, mean_b;
	double difference;	/* b - a */
	double half;		/* of its interval; NAN = none */
	double percent;		/* of a; NAN if that is 0 */
	double p;		/* after Holm, once compare_settle() was there; NAN = no test */
	u32 n_a, n_b;
};

struct compare_pair {
	const char *name_a, *name_b;	/* of the results or of the factor's values */
	char *cell;			/* what both have in common */
	JsonObject *a, *b;		/* cells */
	GArray *figures;		/* struct compare_figure, without the headline */
	struct compare_figure headline;	/* name NULL = there is none */
	bool named_after;		/* by --headline */
	bool other_image;		/* the kernels are two images */
	bool apart;			/* one was run after the other, not by turns */
	enum compare_verdict verdict;
	char *why;			/* VERDICT_NONE */
};

struct compare {
	struct compare_options options;
	GPtrArray *pairs;	/* struct compare_pair */
	GPtrArray *differs;	/* char *, "key: a | b": what is not the factor, each once */
	GPtrArray *alone;	/* char *: cells that have no partner */
};

/* Are the numbers in their ranges? Reported, with the option's name, if not. */
bool compare_options_ok(const struct compare_options *o);
struct compare *compare_new(const struct compare_options *options);
void compare_free(struct compare *c);
/*
 * Pair the cells of two results that result_read() took, which have to stay until compare_free(): by name, or, where each has one cell, as
 * they are.
 */
void compare_add(struct compare *c, JsonNode *a, JsonNode *b, const char *name_a, const char *name_b);
/* Pair the cells of one result along its factor. false if nothing in it varies the factor. */
bool compare_within(struct compare *c, JsonNode *result);
/* All pairs are there: correct for their number, give verdicts. */
void compare_settle(struct compare *c);
/* Can each headline be what is asked for? Reported if not: of a count neither more nor less is worse. */
bool compare_fail_on_ok(const struct compare *c, enum compare_fail_on fail_on);
/* An enum compare_status. */
int compare_status(const struct compare *c, enum compare_fail_on fail_on);
/* Tables and verdicts; control characters of the results are made harmless. */
void compare_print(const struct compare *c, FILE *to);

/* The name of the figure that decides of a cell alone, and in *group where it is; NULL if the cell has none. */
const char *compare_headline(JsonObject *cell, const char **group);
/* a and b are members of counters, reports or rates. */
void compare_figures(JsonObject *a, JsonObject *b, double confidence, struct compare_figure *out);
/* Is higher better (1), or lower (-1)? By the unit; 0 = neither is. */
int compare_direction(const struct compare_figure *f);
/* How many repeats a side it may take to tell a difference that counts, with the spread seen; 0 = cannot be said. */
u32 compare_repeats_needed(const struct compare_pair *p, const struct compare_options *o);

/* compare-match.c: what differs between two cells and is not the factor, added to `differs`. The results are those of the cells. */
void compare_differences(struct compare *c, JsonObject *result_a, JsonObject *cell_a, JsonObject *result_b, JsonObject *cell_b);
/* compare.c: a pair of two cells, which is c's. */
struct compare_pair *compare_pair_add(struct compare *c, JsonObject *cell_a, JsonObject *cell_b, const char *name_a,
				      const char *name_b, char *cell);

#endif
