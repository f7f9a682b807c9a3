// SPDX-License-Identifier: GPL-2.0-only
/* How far a matrix is: the time left by the weights of what has ended. */
#include <glib.h>

#include "progress.h"

#define S	((s64)G_USEC_PER_SEC)

static void expect(const struct progress *p, s64 now, const char *text)
{
	g_autofree char *got = progress_text(p, now);

	g_assert_cmpstr(got, ==, text);
}

static void test_one_by_one(void)
{
	int a, b, c;
	struct progress p;

	progress_init(&p, 4, 1, 3, 1, false, 100 * S);
	expect(&p, 100 * S, "1 of 4 done, 0 s so far");
	progress_start(&p, &a, 1, 100 * S);
	g_assert_cmpint(progress_left(&p, 105 * S), ==, -1);
	expect(&p, 105 * S, "1 of 4 done, 1 running, 5 s so far");
	progress_end(&p, &a, true, 110 * S);
	expect(&p, 110 * S, "2 of 4 done, 10 s so far, about 20 s left");
	progress_start(&p, &b, 1, 110 * S);
	g_assert_cmpint(progress_left(&p, 114 * S), ==, 16 * S);
	/* One that takes longer than the others leaves its followers their time. */
	g_assert_cmpint(progress_left(&p, 180 * S), ==, 10 * S);
	expect(&p, 180 * S, "2 of 4 done, 1 running, 1 min 20 s so far, about 10 s left");
	progress_end(&p, &b, true, 180 * S);
	g_assert_cmpint(progress_left(&p, 180 * S), ==, 40 * S);
	progress_start(&p, &c, 1, 180 * S);
	progress_end(&p, &c, true, 181 * S);
	expect(&p, 3781 * S, "4 of 4 done, 1 h 1 min so far");
	progress_clear(&p);
}

/* A part of ten times the weight takes ten times as long; what was interrupted tells nothing. */
static void test_weights(void)
{
	int small, other, large;
	struct progress p;

	progress_init(&p, 3, 0, 12, 2, false, 0);
	progress_start(&p, &small, 1, 0);
	progress_start(&p, &other, 1, 0);
	progress_end(&p, &other, false, 1 * S);
	g_assert_cmpint(progress_left(&p, 1 * S), ==, -1);
	progress_end(&p, &small, true, 30 * S);
	/* 10 parts of weight on two CPUs would be 150 s, but it is one piece. */
	progress_start(&p, &large, 10, 30 * S);
	g_assert_cmpint(progress_left(&p, 30 * S), ==, 300 * S);
	expect(&p, 30 * S, "2 of 3 done, 1 running, 30 s so far, about 5 min left");
	progress_clear(&p);
}

static void test_side_by_side(void)
{
	int id[4];
	struct progress p;

	progress_init(&p, 200, 0, 200, 2, false, 0);
	for (u32 i = 0; i < 4; i += 2) {
		s64 began = i / 2 * 60 * S;

		progress_start(&p, &id[i], 1, began);
		progress_start(&p, &id[i + 1], 1, began);
		progress_end(&p, &id[i], true, began + 60 * S);
		progress_end(&p, &id[i + 1], true, began + 60 * S);
	}
	/* 196 minutes of work on two. */
	expect(&p, 120 * S, "4 of 200 done, 2 min 0 s so far, about 1 h 38 min left");
	progress_clear(&p);
}

/* Nothing to do: no division by what is not there. */
static void test_nothing(void)
{
	struct progress p;

	progress_init(&p, 2, 2, 0, 0, false, 0);
	expect(&p, 0, "2 of 2 done, 0 s so far");
	g_assert_cmpint(progress_left(&p, 0), ==, 0);
	progress_clear(&p);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/progress/one-by-one", test_one_by_one);
	g_test_add_func("/progress/weights", test_weights);
	g_test_add_func("/progress/side-by-side", test_side_by_side);
	g_test_add_func("/progress/nothing", test_nothing);
	return g_test_run();
}
