// SPDX-License-Identifier: GPL-2.0-only
/* Cost models: the project's own against the built-in default, and what is said of a bad one. */
#include <errno.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cost-file.h"

struct fixture {
	char *dir, *path, *said;
	char *good;		/* the text of cost-models/simple.ini */
	struct cost_model m;
};

static void fixture_init(struct fixture *f, const void *unused)
{
	g_autofree char *here = g_path_get_dirname(__FILE__);
	g_autofree char *simple = g_build_filename(here, "..", "..", "cost-models", "simple.ini", NULL);

	f->dir = g_dir_make_tmp("faultbed-test-XXXXXX", NULL);
	g_assert_nonnull(f->dir);
	f->path = g_build_filename(f->dir, "x.ini", NULL);
	g_assert_true(g_file_get_contents(simple, &f->good, NULL, NULL));
}

static void fixture_clear(struct fixture *f, const void *unused)
{
	g_remove(f->path);
	g_rmdir(f->dir);
	g_free(f->path);
	g_free(f->dir);
	g_free(f->said);
	g_free(f->good);
}

static int load(struct fixture *f, const char *text)
{
	FILE *capture = tmpfile();
	int err = dup(STDERR_FILENO), ret;
	long end;

	g_assert_true(g_file_set_contents(f->path, text, -1, NULL));
	g_clear_pointer(&f->said, g_free);
	g_assert_nonnull(capture);
	fflush(stderr);
	dup2(fileno(capture), STDERR_FILENO);
	ret = cost_file_load(f->path, &f->m);
	fflush(stderr);
	dup2(err, STDERR_FILENO);
	close(err);
	end = lseek(fileno(capture), 0, SEEK_END);
	f->said = g_malloc0(end + 1);
	g_assert_cmpint(pread(fileno(capture), f->said, end, 0), ==, end);
	fclose(capture);
	return ret;
}

/* The good text with the line of `key` made into `line` (NULL: left out); *nr is its number. */
static char *with(struct fixture *f, const char *key, const char *line, u32 *nr)
{
	g_auto(GStrv) lines = g_strsplit(f->good, "\n", -1);
	g_autofree char *begin = g_strdup_printf("%s = ", key);
	GString *out = g_string_new(NULL);
	u32 i, found = 0;

	for (i = 0; lines[i]; i++) {
		bool hit = g_str_has_prefix(lines[i], begin);

		if (hit)
			found = i + 1;
		if (!hit || line)
			g_string_append_printf(out, "%s%s", hit ? line : lines[i], lines[i + 1] ? "\n" : "");
	}
	g_assert_cmpuint(found, >, 0);
	*nr = found;
	return g_string_free(out, FALSE);
}

/* Refused, with FILE:LINE of the key and these words. */
static void bad(struct fixture *f, const char *key, const char *line, const char *words)
{
	u32 nr;
	g_autofree char *text = with(f, key, line, &nr);
	g_autofree char *where = NULL;

	g_assert_cmpint(load(f, text), ==, -EINVAL);
	where = line ? g_strdup_printf("%s:%u: cost.", f->path, nr) : g_strdup_printf("%s: cost.", f->path);
	if (!strstr(f->said, where) || !strstr(f->said, words))
		g_error("expected \"%s\" and \"%s\" in: %s", where, words, f->said);
}

static void test_simple(struct fixture *f, const void *unused)
{
	struct cost_model def;
	g_autofree char *digest = g_compute_checksum_for_string(G_CHECKSUM_SHA256, f->good, -1);
	u32 i;

	g_assert_cmpint(load(f, f->good), ==, 0);
	g_assert_cmpstr(f->said, ==, "");
	g_assert_cmpstr(f->m.name, ==, "x");
	g_assert_cmpstr(f->m.digest, ==, digest);
	cost_default(&def);
	g_assert_cmpstr(def.name, ==, "simple");
	for (i = 0; i < NR_COSTS; i++)
		if (def.v[i] != f->m.v[i])
			g_error("%s: %llu in the file, %llu built in", cost_desc[i].name,
				(unsigned long long)f->m.v[i], (unsigned long long)def.v[i]);
	g_assert_cmpint(cost_check(&def, "built in"), ==, 0);
}

static void test_units(struct fixture *f, const void *unused)
{
	u32 nr;
	g_autofree char *a = with(f, "clock", "clock = 3100MHz", &nr), *b = with(f, "cpi", "cpi = 0.125", &nr);
	g_autofree char *c = with(f, "ipi_remote", "ipi_remote = 0.002ms", &nr);

	g_assert_cmpint(load(f, a), ==, 0);
	g_assert_cmpuint(cost(&f->m, clock), ==, 3100000000u);
	g_assert_cmpint(load(f, b), ==, 0);
	g_assert_cmpuint(cost(&f->m, cpi), ==, COST_CYCLE / 8);
	g_assert_cmpint(load(f, c), ==, 0);
	g_assert_cmpuint(cost(&f->m, ipi_remote), ==, 2000);
}

static void test_bad(struct fixture *f, const void *unused)
{
	bad(f, "clock", "clock = 2.8", "has no unit");
	bad(f, "clock", "clock = 2.8Ghz", "did you mean GHz?");
	bad(f, "clock", "clock = 1MHz", "is not between 100MHz and 10GHz");
	bad(f, "cpi", "cpi = 1ns", "is not a number of cycles");
	bad(f, "cpi", "cpi = -1", "is not a number of cycles");
	bad(f, "cpi", "cpi = 1e3", "is not a number of cycles");
	bad(f, "cpi", "cpi = 0", "is not between 0.125 and 64 cycles");
	bad(f, "cpi", "cpi =", "is not a number of cycles");
	bad(f, "cpi", "cpi = 1 # one", "a comment is a whole line");
	bad(f, "rep_bytes", "rep_bytes = 0.0015", "steps of 1/256");
	bad(f, "io", "io = 1000", "has no unit");
	bad(f, "io", "io = 1s", "is not between 0ns and 10ms");
	bad(f, "l2_ways", "l2_ways = 0", "is not between 1 and 64");
	bad(f, "l2_ways", "l2_ways = 4.0", "is not a whole number");
	bad(f, "l2_ways", "l2_wayz = 4", "did you mean l2_ways?");
	bad(f, "l2_ways", NULL, "cost.l2_ways is missing: second-level TLB");
	bad(f, "l2_ways", "l2_ways = 5", "do not divide the 512 entries of l2_entries");
}

/* Sets that are no power of two: 1536 / 4. The message is at the ways, where the reader looks for both. */
static void test_sets(struct fixture *f, const void *unused)
{
	u32 nr;
	g_autofree char *text = with(f, "l2_entries", "l2_entries = 1536", &nr);

	g_assert_cmpint(load(f, text), ==, -EINVAL);
	g_assert_nonnull(strstr(f->said, "cost.l2_ways: 1536 entries of 4 ways make 384 sets"));
}

/* The text is good but for one thing that is no key's value. */
static void test_form(struct fixture *f, const void *unused)
{
	g_autofree char *twice = g_strconcat(f->good, "cpi = 2\n", NULL);
	g_autofree char *section = g_strconcat(f->good, "[more]\n", NULL);

	g_assert_cmpint(load(f, twice), ==, -EINVAL);
	g_assert_nonnull(strstr(f->said, "a second time"));
	g_assert_cmpint(load(f, section), ==, -EINVAL);
	g_assert_nonnull(strstr(f->said, "a cost model has [cost] only"));
	g_assert_cmpint(load(f, ""), ==, -EINVAL);
	g_assert_nonnull(strstr(f->said, "cost.clock is missing"));
	g_remove(f->path);
	g_assert_cmpint(cost_file_load(f->dir, &f->m), ==, -EINVAL);
	g_assert_cmpint(cost_file_load(f->path, &f->m), ==, -EINVAL);
}

static void test_quantum(struct fixture *f, const void *unused)
{
	bad(f, "ipi_smt", "ipi_smt = 999ns", "cost.ipi_smt: 999ns is shorter than the quantum of 1000ns");
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
#define ADD(name) \
	g_test_add("/cost-file/" #name, struct fixture, NULL, fixture_init, test_##name, fixture_clear)
	ADD(simple);
	ADD(units);
	ADD(bad);
	ADD(sets);
	ADD(form);
	ADD(quantum);
	return g_test_run();
}
