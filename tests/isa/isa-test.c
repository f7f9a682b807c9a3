// SPDX-License-Identifier: GPL-2.0-only
/*
 * isa-test: the soft engine's instructions against the host's. TAP, one line a family;
 * what differs is explained on stderr. Exit status 0 if nothing does.
 */
#include <glib.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "isa.h"

struct options {
	gint64 seed, count, one;
	char *family;
	gint explain;
	gboolean native_only;
	gboolean memory;
	gboolean list;
};

struct test {
	struct options opt;
	struct isa_native *native;
	struct isa_soft *soft;		/* NULL with --native-only */
	struct isa_snippet s;
	struct isa_image image;
	struct isa_outcome a, b;
	u64 by_maker;			/* differences that are those of CPUs' makers */
};

/* Both sides of one snippet; true if they agree. */
static bool test_run(struct test *t)
{
	isa_native_run(t->native, &t->s, &t->image, &t->a);
	if (t->soft)
		isa_soft_run(t->soft, &t->s, &t->image, &t->b);
	else
		isa_native_run(t->native, &t->s, &t->image, &t->b);
	if (isa_equal(&t->s, &t->a, &t->b))
		return true;
	if (!t->soft || !isa_differs_by_maker(&t->s, &t->a, &t->b))
		return false;
	t->by_maker++;
	return true;
}

static void test_explain(struct test *t, u64 bad)
{
	if (bad <= (u64)t->opt.explain)
		isa_explain(stderr, &t->s, &t->image, &t->a, &t->b);
}

/* What ended the snippets of a family but the INT3 behind them, by vector; [32] those that ran on. */
struct ends {
	u64 by_vector[33];
};

/* One family; how many of its snippets differ. */
static u64 test_family(struct test *t, u32 family, u64 *tried, struct ends *ends)
{
	u64 from = t->opt.one >= 0 ? (u64)t->opt.one : 0;
	u64 to = t->opt.one >= 0 ? from + 1 : (u64)t->opt.count, bad = 0;

	*tried = 0;
	memset(ends, 0, sizeof(*ends));
	for (u64 n = from; n < to; n++) {
		if (n == from || n % 64 == 0)
			isa_generate_image(&t->image, (u64)t->opt.seed, family, n);
		isa_generate(&t->s, (u64)t->opt.seed, family, n);
		++*tried;
		if (!test_run(t))
			test_explain(t, ++bad);
		if (t->a.regs.rip != ISA_CODE + t->s.at + t->s.len + 1)
			ends->by_vector[MIN((u32)t->a.vector, 32)]++;
	}
	if (t->opt.one >= 0)
		isa_explain(stderr, &t->s, &t->image, &t->a, &t->b);
	return bad;
}

static u64 test_hand(struct test *t, u64 *tried)
{
	u64 bad = 0;

	*tried = 0;
	for (u32 n = 0; n < isa_nr_hand(); n++) {
		if (t->opt.one >= 0 && t->opt.one != n)
			continue;
		isa_hand(&t->s, &t->image, n);
		++*tried;
		if (!test_run(t))
			test_explain(t, ++bad);
		else if (t->opt.one >= 0)
			isa_explain(stderr, &t->s, &t->image, &t->a, &t->b);
	}
	return bad;
}

static void print_ends(const struct ends *ends)
{
	static const char *const names[] = {
		"DE", "DB", "NMI", "BP", "OF", "BR", "UD", "NM", "DF", "9", "TS", "NP", "SS", "GP", "PF", "15", "MF", "AC",
		"MC", "XM",
	};

	for (u32 i = 0; i < 32; i++)
		if (ends->by_vector[i])
			printf(", %s %" PRIu64, i < ARRAY_SIZE(names) ? names[i] : "?", ends->by_vector[i]);
	if (ends->by_vector[32])
		printf(", endless %" PRIu64, ends->by_vector[32]);
}

static bool wanted(const struct test *t, const char *name)
{
	return !t->opt.family || !strcmp(t->opt.family, name);
}

static bool parse(struct options *opt, int *argc, char ***argv)
{
	const GOptionEntry entries[] = {
		{ "seed", 's', 0, G_OPTION_ARG_INT64, &opt->seed, "another set of snippets (1)", "N" },
		{ "count", 'n', 0, G_OPTION_ARG_INT64, &opt->count, "snippets a family (10000)", "N" },
		{ "family", 'f', 0, G_OPTION_ARG_STRING, &opt->family, "only this family, or hand", "NAME" },
		{ "one", 'o', 0, G_OPTION_ARG_INT64, &opt->one, "only this snippet of the family, explained", "N" },
		{ "explain", 'e', 0, G_OPTION_ARG_INT, &opt->explain, "explain so many of each family (3)", "N" },
		{ "native-only", 0, 0, G_OPTION_ARG_NONE, &opt->native_only, "the host twice, for tests of the test", NULL },
		{ "memory", 'm', 0, G_OPTION_ARG_NONE, &opt->memory,
		  "soft under a memory model, other CPUs taking lines away", NULL },
		{ "list", 'l', 0, G_OPTION_ARG_NONE, &opt->list, "names of families", NULL },
		{ "tap", 0, G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_NONE, &(gboolean){ FALSE }, "", NULL },
		{ 0 }
	};
	GOptionContext *context = g_option_context_new("- the soft engine's instructions against the host's");
	GError *error = NULL;
	bool ok;

	g_option_context_add_main_entries(context, entries, NULL);
	ok = g_option_context_parse(context, argc, argv, &error);
	if (!ok)
		fprintf(stderr, "error: %s\n", error->message);
	g_clear_error(&error);
	g_option_context_free(context);
	return ok;
}

/* What the memory model makes different has to have happened. */
static void test_waits(struct test *t, u32 *points, u32 *failed)
{
	u64 waits = isa_soft_waits(t->soft);

	printf("%s %u - instructions waited for lines, and were begun anew: %" PRIu64 "\n", waits ? "ok" : "not ok",
	       ++*points, waits);
	*failed += !waits;
}

static void test_all(struct test *t, u32 *points, u32 *failed)
{
	struct ends ends;
	u64 tried, bad;

	if (wanted(t, "hand")) {
		bad = test_hand(t, &tried);
		printf("%s %u - hand: %" PRIu64 " tried, %" PRIu64 " differ\n", bad ? "not ok" : "ok", ++*points, tried, bad);
		*failed += !!bad;
	}
	for (u32 i = 0; i < isa_nr_families(); i++) {
		if (!wanted(t, isa_family_name(i)))
			continue;
		bad = test_family(t, i, &tried, &ends);
		printf("%s %u - %s: %" PRIu64 " tried, %" PRIu64 " differ", bad ? "not ok" : "ok", ++*points,
		       isa_family_name(i), tried, bad);
		print_ends(&ends);
		putchar('\n');
		fflush(stdout);
		*failed += !!bad;
	}
	if (t->by_maker)
		printf("# %" PRIu64 " more differ as Intel's CPUs do from AMD's (maker.c)\n", t->by_maker);
}

int main(int argc, char **argv)
{
	struct test *t = g_aligned_alloc0(1, sizeof(*t), _Alignof(struct test));
	u32 points = 0, failed = 0;

	t->opt = (struct options){ .seed = 1, .count = 10000, .one = -1, .explain = 3 };
	if (!parse(&t->opt, &argc, &argv))
		return 2;
	if (t->opt.list) {
		puts("hand");
		for (u32 i = 0; i < isa_nr_families(); i++)
			puts(isa_family_name(i));
		return 0;
	}
	t->native = isa_native_new();
	if (!t->native)
		return 3;
	if (!t->opt.native_only)
		t->soft = isa_soft_new(isa_native_has_fsgsbase(t->native), t->opt.memory);
	test_all(t, &points, &failed);
	if (t->soft && t->opt.memory && !t->opt.family)
		test_waits(t, &points, &failed);
	printf("1..%u\n", points);
	if (!points)
		fprintf(stderr, "error: no family %s (--list)\n", t->opt.family);
	if (t->soft)
		isa_soft_free(t->soft);
	isa_native_free(t->native);
	g_free(t->opt.family);
	g_aligned_free(t);
	return failed ? 1 : points ? 0 : 2;
}
