// SPDX-License-Identifier: GPL-2.0-only
/* A cache's tags against lists in the order of use. */
#include <glib.h>

#include "base/rng.h"
#include "soft/line-cache.h"

#define NR_LINES	400u

/* The lines of each set, the latest first. */
struct model {
	GList *set[64];
	u32 sets, ways;
};

static void check(struct line_cache *cache, struct model *m, struct rng *rng)
{
	u64 line = rng_next(rng) % NR_LINES, victim = UINT64_MAX;
	GList **set = &m->set[line % m->sets], *at = g_list_find(*set, GUINT_TO_POINTER((guint)line + 1));
	bool out;

	g_assert_cmpint(line_cache_has(cache, line), ==, !!at);
	switch (rng_next(rng) % 4) {
	case 0:
		g_assert_cmpint(line_cache_remove(cache, line), ==, !!at);
		*set = g_list_delete_link(*set, at);
		break;
	case 1:
		g_assert_cmpint(line_cache_use(cache, line), ==, !!at);
		if (at) {
			*set = g_list_delete_link(*set, at);
			*set = g_list_prepend(*set, GUINT_TO_POINTER((guint)line + 1));
		}
		break;
	default:
		if (at)
			break;
		out = line_cache_insert(cache, line, &victim);
		g_assert_cmpint(out, ==, g_list_length(*set) == m->ways);
		if (out) {
			GList *last = g_list_last(*set);

			g_assert_cmpuint(victim, ==, GPOINTER_TO_UINT(last->data) - 1);
			*set = g_list_delete_link(*set, last);
		}
		*set = g_list_prepend(*set, GUINT_TO_POINTER((guint)line + 1));
	}
}

static void run(u64 kib, u64 ways)
{
	struct model m = { .sets = (u32)(kib * 16 / ways), .ways = (u32)ways };
	struct line_cache cache;
	struct rng rng;
	u32 i;

	line_cache_create(&cache, kib, ways);
	g_assert_cmpuint(cache.sets, ==, m.sets);
	g_assert_cmpuint(m.sets, <=, G_N_ELEMENTS(m.set));
	rng_seed(&rng, kib, ways);
	for (i = 0; i < 100000; i++)
		check(&cache, &m, &rng);
	line_cache_clear(&cache);
	for (i = 0; i < NR_LINES; i++)
		g_assert_false(line_cache_has(&cache, i));
	line_cache_destroy(&cache);
	for (i = 0; i < m.sets; i++)
		g_list_free(m.set[i]);
}

static void test_tags(void)
{
	run(1, 1);
	run(4, 4);
	run(8, 8);
	run(1, 16);
	run(9, 6);	/* 24 sets: no power of two */
	run(15, 20);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/line-cache/tags", test_tags);
	return g_test_run();
}
