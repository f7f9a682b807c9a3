/* SPDX-License-Identifier: GPL-2.0-only */
/* Means, their errors, and the interval of a difference of means. Pure functions. */
#ifndef HOST_TOOLS_STATS_H
#define HOST_TOOLS_STATS_H

#include "base/types.h"

struct stats {
	u32 n;
	double mean;
	double sum_sq;		/* of the deviations from the mean */
};

/* Add one value (Welford's method: no cancellation, one pass). */
void stats_add(struct stats *s, double value);
/* Standard error of the mean; NAN below two values. */
double stats_stderr(const struct stats *s);

/* P(T <= t) of Student's distribution with df > 0 degrees of freedom. */
double student_cdf(double t, double df);
/* t with P(T <= t) = p, for 0.5 <= p < 1. */
double student_quantile(double p, double df);

/*
 * Half the width of the interval of b's mean minus a's at the given confidence
 * (0.95), variances not taken to be equal (Welch 1947; degrees of freedom after
 * Satterthwaite). Given as mean, standard error and number of values. NAN if one
 * side has fewer than two values.
 */
double welch_half_width(double stderr_a, u32 n_a, double stderr_b, u32 n_b, double confidence);

/*
 * The chance of means at least `difference` apart if both sides were of the same mean: two-sided, Welch's test. NAN where there is no
 * interval. Values that never differ leave no doubt: 1 if the difference is 0, else 0.
 */
double welch_p(double difference, double stderr_a, u32 n_a, double stderr_b, u32 n_b);

/*
 * p values corrected for their number, in place: the chance of any false one among all whose result is below x is at most x (Holm 1979).
 * NANs are no tests and stay.
 */
void holm_adjust(double *p, u32 n);


#endif
