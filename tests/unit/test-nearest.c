// SPDX-License-Identifier: GPL-2.0-only
#include <glib.h>

#include "base/nearest.h"

static void test_distance(void)
{
	static const struct { const char *a, *b; u32 distance; } t[] = {
		{ "", "", 0 }, { "abc", "abc", 0 }, { "abc", "ABC", 0 }, { "", "abc", 3 },
		{ "abc", "", 3 }, { "abc", "abd", 1 }, { "abc", "ab", 1 }, { "abc", "xabc", 1 },
		{ "abcd", "abdc", 1 }, { "ab", "ba", 1 }, { "kitten", "sitting", 3 },
		/* The restricted form: a swapped pair is not changed again. */
		{ "ca", "abc", 3 },
	};

	for (u32 i = 0; i < ARRAY_SIZE(t); i++) {
		g_assert_cmpuint(edit_distance(t[i].a, t[i].b), ==, t[i].distance);
		g_assert_cmpuint(edit_distance(t[i].b, t[i].a), ==, t[i].distance);
	}
}

static void test_long_words(void)
{
	char a[200], b[200];

	memset(a, 'a', sizeof(a));
	memset(b, 'b', sizeof(b));
	a[199] = b[199] = '\0';
	g_assert_cmpuint(edit_distance(a, b), ==, 63);
	g_assert_cmpuint(edit_distance(a, a), ==, 0);
}

static void test_nearest(void)
{
	static const char *const names[] = { "memory", NULL, "nodes", "topology", "node" };
	const u32 n = ARRAY_SIZE(names);

	g_assert_cmpstr(nearest_name("memroy", names, n), ==, "memory");
	g_assert_cmpstr(nearest_name("Topologie", names, n), ==, "topology");
	g_assert_cmpstr(nearest_name("nodes", names, n), ==, "nodes");
	/* Equally near: the first. */
	g_assert_cmpstr(nearest_name("nodex", names, n), ==, "nodes");
	g_assert_null(nearest_name("xyzzy", names, n));
	g_assert_null(nearest_name("", names, n));
	g_assert_null(nearest_name("memory", names, 0));
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/nearest/distance", test_distance);
	g_test_add_func("/nearest/long-words", test_long_words);
	g_test_add_func("/nearest/nearest", test_nearest);
	return g_test_run();
}
