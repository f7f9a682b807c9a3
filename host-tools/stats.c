// SPDX-License-Identifier: GPL-2.0-only
#include "stats.h"

#include <glib.h>
#include <math.h>
#include <stdlib.h>

void stats_add(struct stats *s, double value)
{
	double delta = value - s->mean;

	s->n++;
	s->mean += delta / s->n;
	s->sum_sq += delta * (value - s->mean);
}

double stats_stderr(const struct stats *s)
{
	if (s->n < 2)
		return NAN;
	return sqrt(s->sum_sq / (s->n - 1) / s->n);
}

/* The larger of x and something that can be divided by. */
static double nonzero(double x)
{
	return fabs(x) < 1e-300 ? 1e-300 : x;
}

/*
 * The continued fraction of the incomplete beta function (DLMF 8.17.22),
 * evaluated by Lentz's method; converges fast for x < (a + 1) / (a + b + 2).
 */
static double beta_fraction(double a, double b, double x)
{
	double c = 1, d = 1 / nonzero(1 - (a + b) * x / (a + 1)), f = d;

	for (int m = 1; m < 500; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		double step;

		d = 1 / nonzero(1 + even * d);
		c = nonzero(1 + even / c);
		f *= c * d;
		d = 1 / nonzero(1 + odd * d);
		c = nonzero(1 + odd / c);
		step = c * d;
		f *= step;
		if (fabs(step - 1) < 1e-14)
			break;
	}
	return f;
}

/* The regularised incomplete beta function. */
static double beta_inc(double a, double b, double x)
{
	double front;

	if (x <= 0)
		return 0;
	if (x >= 1)
		return 1;
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double student_cdf(double t, double df)
{
	double tail = beta_inc(df / 2, 0.5, df / (df + t * t)) / 2;

	return t > 0 ? 1 - tail : tail;
}

double student_quantile(double p, double df)
{
	double lo = 0, hi = 1;

	while (student_cdf(hi, df) < p && hi < 1e9)
		hi *= 2;
	for (int i = 0; i < 200 && hi - lo > 1e-12 * hi; i++) {
		double mid = (lo + hi) / 2;

		if (student_cdf(mid, df) < p)
			lo = mid;
		else
			hi = mid;
	}
	return (lo + hi) / 2;
}

/* Degrees of freedom after Satterthwaite; the variances are not both 0. */
static double welch_df(double va, u32 n_a, double vb, u32 n_b)
{
	return (va + vb) * (va + vb) / (va * va / (n_a - 1) + vb * vb / (n_b - 1));
}

double welch_half_width(double stderr_a, u32 n_a, double stderr_b, u32 n_b, double confidence)
{
	double va = stderr_a * stderr_a, vb = stderr_b * stderr_b;

	if (n_a < 2 || n_b < 2)
		return NAN;
	/* Values that never differ leave no doubt to measure. */
	if (va + vb == 0)
		return 0;
	return student_quantile(0.5 + confidence / 2, welch_df(va, n_a, vb, n_b)) * sqrt(va + vb);
}

double welch_p(double difference, double stderr_a, u32 n_a, double stderr_b, u32 n_b)
{
	double va = stderr_a * stderr_a, vb = stderr_b * stderr_b;

	if (n_a < 2 || n_b < 2 || isnan(difference))
		return NAN;
	if (va + vb == 0)
		return difference == 0;
	return 2 * student_cdf(-fabs(difference) / sqrt(va + vb), welch_df(va, n_a, vb, n_b));
}

/* NANs last, so that the others can be gone through in order. */
static int by_value(const void *a, const void *b)
{
	double x = **(double *const *)a, y = **(double *const *)b;

	if (isnan(x) || isnan(y))
		return isnan(x) - isnan(y);
	return (x > y) - (x < y);
}

void holm_adjust(double *p, u32 n)
{
	double **order = g_new(double *, n), most = 0;
	u32 tests = 0, i;

	for (i = 0; i < n; i++) {
		order[i] = &p[i];
		tests += !isnan(p[i]);
	}
	if (n)
		qsort(order, n, sizeof(*order), by_value);
	for (i = 0; i < tests; i++) {
		most = MAX(most, MIN(*order[i] * (tests - i), 1));
		*order[i] = most;
	}
	g_free(order);
}
