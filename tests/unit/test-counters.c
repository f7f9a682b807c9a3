// SPDX-License-Identifier: GPL-2.0-only
#include <glib.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "core/counters.h"

static void test_table(void)
{
	for (u32 i = 0; i < NR_COUNTERS; i++) {
		const struct counter_desc *d = &counter_desc[i];

		g_assert_true(g_regex_match_simple("^[a-z][a-z0-9_]*$", d->name, 0, 0));
		g_assert_true(!strcmp(d->scope, "vcpu") || !strcmp(d->scope, "vm"));
		g_assert_true(!strcmp(d->unit, "events") || !strcmp(d->unit, "ns") || !strcmp(d->unit, "bytes"));
		g_assert_cmpint(g_str_has_suffix(d->name, "_ns"), ==, !strcmp(d->unit, "ns"));
		g_assert_cmphex(d->engines, !=, 0);
		for (u32 j = 0; j < i; j++)
			g_assert_cmpstr(d->name, !=, counter_desc[j].name);
	}
}

static void test_buckets(void)
{
	static const struct { u64 value; u32 bucket; } t[] = {
		{ 0, 0 }, { 1, 0 }, { 2, 1 }, { 3, 1 }, { 4, 2 }, { 1023, 9 }, { 1024, 10 },
		{ (1ull << 39) - 1, 38 }, { 1ull << 39, 39 }, { 1ull << 40, 39 }, { UINT64_MAX, 39 },
	};

	for (u32 i = 0; i < ARRAY_SIZE(t); i++) {
		struct hist h;

		hist_init(&h);
		hist_add(&h, t[i].value);
		for (u32 b = 0; b < HIST_BUCKETS; b++)
			g_assert_cmpuint(h.bucket[b], ==, b == t[i].bucket);
		g_assert_cmpuint(h.min, ==, t[i].value);
		g_assert_cmpuint(h.max, ==, t[i].value);
		/* One value: every quantile is that value. */
		g_assert_cmpfloat(hist_quantile(&h, 0.5), ==, (double)t[i].value);
	}
}

static void test_empty(void)
{
	struct hist h;

	hist_init(&h);
	g_assert_cmpuint(h.count, ==, 0);
	g_assert_cmpuint(h.min, ==, UINT64_MAX);
	g_assert_cmpfloat(hist_quantile(&h, 0.5), ==, 0);
}

/* Interpolation inside a bucket: uniform values give every quantile to within 2%. */
static void test_quantiles(void)
{
	double last = 0;
	struct hist h;

	hist_init(&h);
	for (u64 v = 0; v < 100000; v++)
		hist_add(&h, v);
	g_assert_cmpuint(h.count, ==, 100000);
	g_assert_cmpuint(h.sum, ==, 4999950000ull);
	for (u32 i = 1; i < 100; i++) {
		double q = hist_quantile(&h, i / 100.0);

		g_assert_cmpfloat(fabs(q - i * 1000.0), <, 20.0 * i + 2);
		g_assert_cmpfloat(q, >=, last);
		last = q;
	}
	g_assert_cmpfloat(hist_quantile(&h, 0), ==, 0);
	g_assert_cmpfloat(hist_quantile(&h, 1), ==, 99999);
	g_assert_cmpfloat(hist_quantile(&h, 2), ==, 99999);	/* out of range: clamped */
	g_assert_cmpfloat(hist_quantile(&h, -1), ==, 0);
}

static void test_sub(void)
{
	struct hist early, late, diff;

	hist_init(&late);
	for (u32 i = 0; i < 100; i++)
		hist_add(&late, 5);
	memcpy(&early, &late, sizeof(early));
	for (u32 i = 0; i < 50; i++)
		hist_add(&late, 1000);
	hist_sub(&diff, &late, &early);
	g_assert_cmpuint(diff.count, ==, 50);
	g_assert_cmpuint(diff.sum, ==, 50000);
	g_assert_cmpuint(diff.bucket[2], ==, 0);
	g_assert_cmpuint(diff.bucket[9], ==, 50);
	g_assert_cmpuint(diff.max, ==, 1000);
}

static gpointer add_thread(gpointer data)
{
	struct hist *h = data;
	struct rng rng;

	rng_seed(&rng, 1, 0);
	for (u32 i = 0; i < 50000; i++)
		hist_add(h, rng_next(&rng) % 1000 + 10);
	return NULL;
}

/* No addition is lost, whoever adds. */
/* A region's extremes are its own, whatever came before it. */
static void test_region(void)
{
	struct hist live, from, diff;

	hist_init(&live);
	hist_add(&live, 1);
	hist_add(&live, 1000000000);
	from = live;
	hist_begin(&live);
	hist_add(&live, 5000000);
	hist_add(&live, 6000000);
	hist_sub(&diff, &live, &from);
	g_assert_cmpuint(diff.count, ==, 2);
	g_assert_cmpuint(diff.sum, ==, 11000000);
	g_assert_cmpuint(diff.min, ==, 5000000);
	g_assert_cmpuint(diff.max, ==, 6000000);
	g_assert_cmpfloat(hist_quantile(&diff, 0), >=, 5000000);
	g_assert_cmpfloat(hist_quantile(&diff, 1), <=, 6000000);
}

static void test_threads(void)
{
	struct hist one, all;
	GThread *t[4];

	hist_init(&one);
	hist_init(&all);
	add_thread(&one);
	for (u32 i = 0; i < 4; i++)
		t[i] = g_thread_new("add", add_thread, &all);
	for (u32 i = 0; i < 4; i++)
		g_thread_join(t[i]);
	g_assert_cmpuint(all.count, ==, 4 * one.count);
	g_assert_cmpuint(all.sum, ==, 4 * one.sum);
	g_assert_cmpuint(all.min, ==, one.min);
	g_assert_cmpuint(all.max, ==, one.max);
	for (u32 b = 0; b < HIST_BUCKETS; b++)
		g_assert_cmpuint(all.bucket[b], ==, 4 * one.bucket[b]);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/counters/table", test_table);
	g_test_add_func("/hist/buckets", test_buckets);
	g_test_add_func("/hist/empty", test_empty);
	g_test_add_func("/hist/quantiles", test_quantiles);
	g_test_add_func("/hist/sub", test_sub);
	g_test_add_func("/hist/region", test_region);
	g_test_add_func("/hist/threads", test_threads);
	return g_test_run();
}
