// SPDX-License-Identifier: GPL-2.0-only
#include <glib.h>
#include <math.h>

#include "base/rng.h"

#define N	200000

/* The reference sequence of xoshiro256** from the state {1, 2, 3, 4}. */
static void test_reference(void)
{
	static const u64 expected[] = {
		11520ull, 0ull, 1509978240ull, 1215971899390074240ull, 1216172134540287360ull,
		607988272756665600ull,
	};
	struct rng rng = { { 1, 2, 3, 4 } };

	for (u32 i = 0; i < ARRAY_SIZE(expected); i++)
		g_assert_cmpuint(rng_next(&rng), ==, expected[i]);
}

static void test_streams(void)
{
	struct rng a, b;
	u64 first[3][4];

	rng_seed(&a, 1, 0);
	rng_seed(&b, 1, 0);
	for (u32 i = 0; i < 1000; i++)
		g_assert_cmpuint(rng_next(&a), ==, rng_next(&b));

	/* Neither a neighbouring stream nor a neighbouring seed shares or shifts values. */
	for (u64 i = 0; i < 3; i++) {
		rng_seed(&a, i == 2 ? 2 : 1, i == 1);
		for (u32 j = 0; j < 4; j++)
			first[i][j] = rng_next(&a);
	}
	for (u32 i = 0; i < 12; i++)
		for (u32 j = 0; j < i; j++)
			g_assert_cmpuint((&first[0][0])[i], !=, (&first[0][0])[j]);
}

/* Streams are uncorrelated: the correlation of N pairs has a standard deviation of 1/sqrt(N). */
static void test_independence(void)
{
	for (u64 stream = 1; stream < 6; stream++) {
		struct rng a, b;
		double sum = 0;

		rng_seed(&a, 7, 0);
		rng_seed(&b, 7, stream);
		for (u32 i = 0; i < N; i++)
			sum += (rng_unit(&a) - 0.5) * (rng_unit(&b) - 0.5) * 12;
		g_assert_cmpfloat(fabs(sum / N), <, 5 / sqrt(N));
	}
}

static void test_unit(void)
{
	struct rng rng = { { 0 } };
	double sum = 0, squares = 0;

	/* The two extremes of the generator, made by hand: rng_next() gives rotl(s1 * 5, 7) * 9. */
	rng.s[1] = 0;
	rng.s[0] = 1;
	g_assert_cmpfloat(rng_unit(&rng), >, 0);

	rng_seed(&rng, 3, 0);
	for (u32 i = 0; i < N; i++) {
		double u = rng_unit(&rng);

		g_assert_cmpfloat(u, >, 0);
		g_assert_cmpfloat(u, <, 1);
		sum += u;
		squares += u * u;
	}
	g_assert_cmpfloat(fabs(sum / N - 0.5), <, 5 * sqrt(1.0 / 12 / N));
	g_assert_cmpfloat(fabs(squares / N - 1.0 / 3), <, 0.005);
	/* The largest value of the formula stays below 1. */
	g_assert_cmpfloat(((double)(UINT64_MAX >> 12) + 0.5) * 0x1p-52, <, 1);
}

static void test_normal(void)
{
	double sum = 0, squares = 0;
	u32 within = 0;
	struct rng rng;

	rng_seed(&rng, 5, 0);
	for (u32 i = 0; i < N; i++) {
		double z = rng_normal(&rng);

		sum += z;
		squares += z * z;
		within += fabs(z) < 1.959964;
	}
	g_assert_cmpfloat(fabs(sum / N), <, 5 / sqrt(N));
	g_assert_cmpfloat(fabs(squares / N - 1), <, 0.02);
	g_assert_cmpfloat(fabs((double)within / N - 0.95), <, 0.003);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/rng/reference", test_reference);
	g_test_add_func("/rng/streams", test_streams);
	g_test_add_func("/rng/independence", test_independence);
	g_test_add_func("/rng/unit", test_unit);
	g_test_add_func("/rng/normal", test_normal);
	return g_test_run();
}
