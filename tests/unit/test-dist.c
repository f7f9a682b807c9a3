// SPDX-License-Identifier: GPL-2.0-only
/*
 * Distributions against theory: N draws with a fixed seed, so a failure is never
 * a matter of luck. Bounds are five standard errors.
 */
#include <errno.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/inject.h"

#define N	100000

static void parse(struct dist *d, const char *text)
{
	char *err = NULL;

	if (dist_parse(d, text, NULL, &err))
		g_error("%s: %s", text, err);
}

static int compare(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static u64 *draw(const char *text)
{
	u64 *v = g_new(u64, N);
	struct dist d;
	struct rng rng;
	u32 pos = 0;

	parse(&d, text);
	rng_seed(&rng, 42, 0);
	for (u32 i = 0; i < N; i++)
		v[i] = dist_draw(&d, &rng, &pos);
	qsort(v, N, sizeof(*v), compare);
	dist_destroy(&d);
	return v;
}

static double mean(const u64 *v)
{
	double sum = 0;

	for (u32 i = 0; i < N; i++)
		sum += (double)v[i];
	return sum / N;
}

/*
 * The q-quantile lies where the distribution function is q, give or take the
 * binomial error of q: compare with the theory's quantiles at q -+ that error.
 */
static void check_quantiles(const u64 *v, double (*quantile)(double q))
{
	static const double q[] = { 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99 };

	for (u32 i = 0; i < G_N_ELEMENTS(q); i++) {
		double error = 5 * sqrt(q[i] * (1 - q[i]) / N);
		double seen = (double)v[(u32)(q[i] * N)];

		g_assert_cmpfloat(seen, >=, quantile(q[i] - error) - 1);
		g_assert_cmpfloat(seen, <=, quantile(q[i] + error) + 1);
	}
}

static void test_fixed(void)
{
	u64 *v = draw("fixed:5us");

	g_assert_cmpuint(v[0], ==, 5000);
	g_assert_cmpuint(v[N - 1], ==, 5000);
	g_free(v);
	v = draw("fixed:0ns");
	g_assert_cmpuint(v[N - 1], ==, 0);
	g_free(v);
	v = draw("fixed:1.5ms");
	g_assert_cmpuint(v[0], ==, 1500000);
	g_free(v);
}

static double uniform_quantile(double q) { return 2000 + 6000 * q; }

static void test_uniform(void)
{
	u64 *v = draw("uniform:2us..8us");

	g_assert_cmpuint(v[0], >=, 2000);
	g_assert_cmpuint(v[N - 1], <=, 8000);
	g_assert_cmpfloat(fabs(mean(v) - 5000), <, 5 * 6000 / sqrt(12.0 * N));
	check_quantiles(v, uniform_quantile);
	g_free(v);
}

static double exp_quantile(double q) { return -5000 * log(1 - q); }

static void test_exp(void)
{
	u64 *v = draw("exp:5us");

	g_assert_cmpfloat(fabs(mean(v) - 5000), <, 5 * 5000 / sqrt(N));
	check_quantiles(v, exp_quantile);
	g_free(v);
}

/* Median 2 us, sigma 0.5: exp(mu + sigma * z) with z by bisection of the error function. */
static double lognormal_quantile(double q)
{
	double lo = -10, hi = 10;

	for (u32 i = 0; i < 80; i++) {
		double z = (lo + hi) / 2;

		if (0.5 * erfc(-z / sqrt(2)) < q)
			lo = z;
		else
			hi = z;
	}
	return 2000 * exp(0.5 * lo);
}

static void test_lognormal(void)
{
	u64 *v = draw("lognormal:2us,0.5");
	double m = 2000 * exp(0.125), sd = m * sqrt(exp(0.25) - 1);

	g_assert_cmpfloat(fabs(mean(v) - m), <, 5 * sd / sqrt(N));
	check_quantiles(v, lognormal_quantile);
	g_free(v);
}

static double pareto_quantile(double q) { return 1000 * pow(1 - q, -1 / 2.5); }

static void test_pareto(void)
{
	u64 *v = draw("pareto:1us,2.5");
	double m = 1000 * 2.5 / 1.5, sd = 1000 * sqrt(2.5 / (1.5 * 1.5 * 0.5));

	g_assert_cmpuint(v[0], >=, 1000);
	g_assert_cmpfloat(fabs(mean(v) - m), <, 5 * sd / sqrt(N));
	check_quantiles(v, pareto_quantile);
	g_free(v);
	/* A tail without a mean stays within the limit. */
	v = draw("pareto:1ms,0.1");
	g_assert_cmpuint(v[N - 1], ==, 10 * NSEC_PER_SEC);
	g_free(v);
}

static void test_summaries(void)
{
	static const struct { const char *text; double mean; u64 min; } t[] = {
		{ "fixed:5us", 5000, 5000 }, { "uniform:2us..8us", 5000, 2000 }, { "exp:5us", 5000, 0 },
		{ "pareto:1us,2", 2000, 1000 }, { "pareto:1us,1", INFINITY, 1000 },
	};
	struct dist d;

	for (u32 i = 0; i < ARRAY_SIZE(t); i++) {
		parse(&d, t[i].text);
		g_assert_cmpfloat(dist_mean(&d), ==, t[i].mean);
		g_assert_cmpuint(dist_min(&d), ==, t[i].min);
		dist_destroy(&d);
	}
	parse(&d, "lognormal:2us,0.5");
	g_assert_cmpfloat(fabs(dist_mean(&d) - 2000 * exp(0.125)), <, 1e-6);
	g_assert_cmpuint(dist_min(&d), ==, 0);
}

static void test_malformed(void)
{
	/* What is written, and a word of the answer that says what is wrong or right. */
	static const struct { const char *text, *word; } t[] = {
		{ "", "distribution" }, { "5us", "fixed:5us" }, { "fixed", "fixed:5us" },
		{ "fixed:", "duration" }, { "fixed:5", "unit" }, { "fixed:-5us", "negative" },
		{ "fixed:5 us", "unit" }, { "fixed:5min", "unit" }, { "fixed:11s", "10s" },
		{ "fixed:5e3us", "unit" }, { "fixed:0x5us", "unit" }, { "fixed:.5us", "duration" },
		{ "fixed:5.us", "duration" }, { "fixed:1.2.3us", "duration" }, { "fixed:nanus", "duration" },
		{ "fixed:99999999999999999999s", "10s" }, { "fixd:5us", "fixed" }, { "normal:5us", "lognormal" },
		{ "uniform:5us", ".." }, { "uniform:8us..2us", "reversed" }, { "uniform:2us..", "duration" },
		{ "exp:0us", "mean" }, { "lognormal:2us", "SIGMA" }, { "lognormal:2us,0", "above 0" },
		{ "lognormal:2us,11", "at most 10" }, { "lognormal:0us,1", "median" },
		{ "lognormal:2us,inf", "number" }, { "lognormal:2us,nan", "number" }, { "lognormal:2us,1e1", "number" },
		{ "pareto:1us", "ALPHA" }, { "pareto:1us,0", "above 0" }, { "pareto:0ns,2", "minimum" },
		{ "pareto:1us,-1", "above 0" }, { "trace:", "file" }, { "trace:/nonexistent", "read" },
		{ "trace:/dev/zero", "regular" },
	};

	for (u32 i = 0; i < ARRAY_SIZE(t); i++) {
		char *err = NULL;
		struct dist d;

		if (dist_parse(&d, t[i].text, NULL, &err) != -EINVAL || !err || !strstr(err, t[i].word))
			g_error("\"%s\": \"%s\" does not say \"%s\"", t[i].text, err ? err : "(accepted)",
				t[i].word);
		g_assert_null(strchr(err, '\n'));
		g_free(err);
		dist_destroy(&d);
	}
}

static void test_trace(void)
{
	char *dir = g_dir_make_tmp("test-dist-XXXXXX", NULL);
	char *path = g_build_filename(dir, "trace", NULL);
	struct rng rng = { { 1, 2, 3, 4 } };
	u32 pos = UINT32_MAX - 1;
	char *err = NULL;
	struct dist d;

	g_assert_true(g_file_set_contents(path, "# measured\n5us\n\n  1ms \n7ns", -1, NULL));
	g_assert_cmpint(dist_parse(&d, "trace:trace", dir, &err), ==, 0);
	g_assert_cmpuint(d.nr_trace, ==, 3);
	g_assert_cmpuint(dist_min(&d), ==, 7);
	g_assert_cmpfloat(dist_mean(&d), ==, (5000 + 1000000 + 7) / 3.0);
	/* In turn, from anywhere, around the end of the counter as well. */
	pos = 1;
	g_assert_cmpuint(dist_draw(&d, &rng, &pos), ==, 1000000);
	g_assert_cmpuint(dist_draw(&d, &rng, &pos), ==, 7);
	g_assert_cmpuint(dist_draw(&d, &rng, &pos), ==, 5000);
	pos = UINT32_MAX;
	dist_draw(&d, &rng, &pos);
	g_assert_cmpuint(dist_draw(&d, &rng, &pos), ==, 5000);
	dist_destroy(&d);

	g_assert_true(g_file_set_contents(path, "5us\n5\n", -1, NULL));
	g_assert_cmpint(dist_parse(&d, "trace:trace", dir, &err), ==, -EINVAL);
	g_assert_nonnull(strstr(err, "trace:2:"));	/* the line */
	g_clear_pointer(&err, g_free);
	dist_destroy(&d);

	g_assert_true(g_file_set_contents(path, "# nothing\n\n", -1, NULL));
	g_assert_cmpint(dist_parse(&d, "trace:trace", dir, &err), ==, -EINVAL);
	g_assert_nonnull(strstr(err, "no durations"));
	g_clear_pointer(&err, g_free);
	dist_destroy(&d);

	g_assert_true(g_file_set_contents(path, "5us\0\n", 5, NULL));
	g_assert_cmpint(dist_parse(&d, "trace:trace", dir, &err), ==, -EINVAL);
	g_assert_nonnull(strstr(err, "not text"));
	g_clear_pointer(&err, g_free);
	dist_destroy(&d);

	g_remove(path);
	g_rmdir(dir);
	g_free(path);
	g_free(dir);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/dist/fixed", test_fixed);
	g_test_add_func("/dist/uniform", test_uniform);
	g_test_add_func("/dist/exp", test_exp);
	g_test_add_func("/dist/lognormal", test_lognormal);
	g_test_add_func("/dist/pareto", test_pareto);
	g_test_add_func("/dist/summaries", test_summaries);
	g_test_add_func("/dist/malformed", test_malformed);
	g_test_add_func("/dist/trace", test_trace);
	return g_test_run();
}
