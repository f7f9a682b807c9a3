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
	char *good;		/* the text of cost-models/simple.ini, or that with a [memory] */
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

/* A machine of no make: round figures, each different, so that a mix-up shows. */
static const char memory_text[] =
	"[memory]\n"
	"cache_l1_kib = 32\ncache_l1_ways = 8\ncache_l2_kib = 256\ncache_l2_ways = 8\n"
	"cache_l3_kib = 25600\ncache_l3_ways = 20\n"
	"l2_hit = 8\nl3_hit = 11ns\nline_sibling = 8.5ns\nline_socket_clean = 33ns\nline_socket_dirty = 36ns\n"
	"line_remote_clean = 90ns\nline_remote_dirty = 115ns\nline_hop = 60ns\nsocket_links = 1\n"
	"dram_local = 70ns\ndram_remote = 0.13us\ndram_line = 1.07ns\nlink_line = 2ns\nl3_line = 1.5ns\n"
	"stream_l2 = 1ns\nstream_l3 = 2.5ns\nstream_dram = 6ns\nstream_remote = 9ns\n"
	"miss_window = 168\nmisses = 10\nlock = 20\nfence = 33\npause = 10\nsmt_slowdown = 1.55\njitter = 2ns\n";

static void fixture_init_memory(struct fixture *f, const void *unused)
{
	g_autofree char *plain = NULL;
	g_auto(GStrv) parts = NULL;

	fixture_init(f, unused);
	plain = f->good;
	parts = g_strsplit(plain, "\nquantum = 1us\n", -1);
	g_assert_cmpuint(g_strv_length(parts), ==, 2);
	f->good = g_strconcat(parts[0], "\nquantum = 32ns\n", parts[1], memory_text, NULL);
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

/* Refused, with FILE:LINE of the key, its section and these words. */
static void bad_in(struct fixture *f, const char *section, const char *key, const char *line, const char *words)
{
	u32 nr;
	g_autofree char *text = with(f, key, line, &nr);
	g_autofree char *where = NULL;

	g_assert_cmpint(load(f, text), ==, -EINVAL);
	where = line ? g_strdup_printf("%s:%u: %s.", f->path, nr, section) : g_strdup_printf("%s: %s.", f->path, section);
	if (!strstr(f->said, where) || !strstr(f->said, words))
		g_error("expected \"%s\" and \"%s\" in: %s", where, words, f->said);
}

static void bad(struct fixture *f, const char *key, const char *line, const char *words)
{
	bad_in(f, "cost", key, line, words);
}

static void bad_memory(struct fixture *f, const char *key, const char *line, const char *words)
{
	bad_in(f, "memory", key, line, words);
}

/* Accepted with that line, and nothing said. */
static void fine(struct fixture *f, const char *key, const char *line)
{
	u32 nr;
	g_autofree char *text = with(f, key, line, &nr);

	if (load(f, text))
		g_error("%s: %s", line, f->said);
	g_assert_cmpstr(f->said, ==, "");
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
	g_assert_false(f->m.memory);
	g_assert_false(def.memory);
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
	g_assert_nonnull(strstr(f->said, "a cost model has [cost] and, if it models caches, [memory]"));
	g_free(section);
	section = g_strconcat(f->good, "[memroy]\n", NULL);
	g_assert_cmpint(load(f, section), ==, -EINVAL);
	g_assert_nonnull(strstr(f->said, "unknown section [memroy]; did you mean [memory]?"));
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

static void test_memory(struct fixture *f, const void *unused)
{
	g_assert_cmpint(load(f, f->good), ==, 0);
	g_assert_cmpstr(f->said, ==, "");
	g_assert_true(f->m.memory);
	g_assert_cmpuint(cost(&f->m, quantum), ==, 32);
	g_assert_cmpuint(cost(&f->m, cache_l3_kib), ==, 25600);
	g_assert_cmpuint(cost(&f->m, l2_hit), ==, 8 * COST_CYCLE);
	g_assert_cmpuint(cost(&f->m, line_sibling), ==, 8500);
	g_assert_cmpuint(cost(&f->m, dram_line), ==, 1070);
	g_assert_cmpuint(cost(&f->m, dram_remote), ==, 130000);
	g_assert_cmpuint(cost(&f->m, smt_slowdown), ==, 397);	/* 1.55 * 256 = 396.8 */
	g_assert_cmpint(cost_check(&f->m, "read"), ==, 0);
}

/* Present means all of it, and each key in its own section. */
static void test_memory_form(struct fixture *f, const void *unused)
{
	g_autofree char *simple = g_strndup(f->good, strstr(f->good, "[memory]") - f->good);
	g_autofree char *empty = g_strconcat(simple, " [memory]\t\n", NULL);
	g_autofree char *strayed = g_strconcat(simple, "l3_hit = 11ns\n", NULL);
	g_autofree char *late = g_strconcat(f->good, "cpi = 1\n", NULL);

	g_assert_cmpint(load(f, empty), ==, -EINVAL);
	g_assert_nonnull(strstr(f->said, "memory.cache_l1_kib is missing: a core's L1 data cache"));
	g_assert_nonnull(strstr(f->said, "memory.jitter is missing: "));
	g_assert_cmpint(load(f, strayed), ==, -EINVAL);
	g_assert_nonnull(strstr(f->said, ": cost.l3_hit: no key of [cost]; it belongs to [memory]"));
	g_assert_cmpint(load(f, late), ==, -EINVAL);
	g_assert_null(strstr(f->said, "missing"));
	g_assert_nonnull(strstr(f->said, ": memory.cpi: no key of [memory]; it belongs to [cost]"));
	bad_memory(f, "pause", NULL, "memory.pause is missing: PAUSE");
	bad_memory(f, "l3_hit", "l3_hti = 11ns", "did you mean l3_hit?");
}

static void test_memory_units(struct fixture *f, const void *unused)
{
	bad_memory(f, "l3_hit", "l3_hit = 11", "\"11\" has no unit: write it like 1.5ns (units are ns, us, ms)");
	bad_memory(f, "l3_hit", "l3_hit = 11ps", "the unknown unit \"ps\"; did you mean ns?");
	bad_memory(f, "l3_hit", "l3_hit = -11ns", "is not a time: a number and its unit");
	bad_memory(f, "l3_hit", "l3_hit = 1.ns", "no digit after the point");
	bad_memory(f, "l3_hit", "l3_hit = 1e3ns", "unknown unit");
	bad_memory(f, "l3_hit", "l3_hit =", "is not a time");
	bad_memory(f, "l3_hit", "l3_hit = 1ms", "\"1ms\" is not between 0ns and 10000ns");
	bad_memory(f, "l3_hit", "l3_hit = 99999999999999999999ns", "99999999999999999999ns");
	bad_memory(f, "jitter", "jitter = 0.0001ns", "is nothing: such times are counted in steps of 0.001ns");
	bad_memory(f, "smt_slowdown", "smt_slowdown = 1.5ns", "is not a ratio");
	bad_memory(f, "smt_slowdown", "smt_slowdown = -1.5", "is not a ratio");
	bad_memory(f, "smt_slowdown", "smt_slowdown = 0.9", "\"0.9\" is not between 1 and 8");
	bad_memory(f, "smt_slowdown", "smt_slowdown = 1.5 # half", "a comment is a whole line");
	bad_memory(f, "misses", "misses = 10ns", "is not a whole number");
	bad_memory(f, "misses", "misses = 65", "\"65\" is not between 1 and 64");
	fine(f, "jitter", "jitter = 0ns");
	fine(f, "line_hop", "line_hop = 0.001ms");
	g_assert_cmpuint(cost(&f->m, line_hop), ==, 1000000);
}

static void test_memory_caches(struct fixture *f, const void *unused)
{
	u32 nr;
	g_autofree char *sets = with(f, "cache_l2_kib", "cache_l2_kib = 384", &nr);

	bad_memory(f, "cache_l1_ways", "cache_l1_ways = 7",
		   "7 ways do not divide the 512 lines of 64 bytes that cache_l1_kib makes");
	bad_memory(f, "cache_l3_ways", "cache_l3_ways = 19", "19 ways do not divide the 409600 lines");
	bad_memory(f, "cache_l2_kib", "cache_l2_kib = 16", "16 KiB cannot include the 32 KiB of cache_l1_kib");
	bad_memory(f, "cache_l3_kib", "cache_l3_kib = 120", "120 KiB cannot include the 256 KiB of cache_l2_kib");
	g_assert_cmpint(load(f, sets), ==, -EINVAL);
	g_assert_nonnull(strstr(f->said, ": memory.cache_l2_ways: 6144 lines (cache_l2_kib) of 8 ways make 768 sets"));
	/* The L3's 20480 sets are no power of two, and that is as it should be. */
	fine(f, "cache_l1_ways", "cache_l1_ways = 64");
}

static void test_memory_distances(struct fixture *f, const void *unused)
{
	bad_memory(f, "l2_hit", "l2_hit = 31", "11.0714ns is more than the 11ns of l3_hit; it is that at most");
	bad_memory(f, "l3_hit", "l3_hit = 34ns", "34ns is more than the 33ns of line_socket_clean");
	bad_memory(f, "l3_hit", "l3_hit = 71ns", "71ns is more than the 70ns of dram_local");
	bad_memory(f, "line_sibling", "line_sibling = 37ns", "is more than the 36ns of line_socket_dirty");
	bad_memory(f, "line_socket_clean", "line_socket_clean = 91ns", "is more than the 90ns of line_remote_clean");
	bad_memory(f, "line_socket_dirty", "line_socket_dirty = 116ns", "is more than the 115ns of line_remote_dirty");
	bad_memory(f, "dram_local", "dram_local = 130.001ns", "130.001ns is more than the 130ns of dram_remote");
	bad_memory(f, "stream_l2", "stream_l2 = 2.6ns", "is more than the 2.5ns of stream_l3");
	bad_memory(f, "stream_l2", "stream_l2 = 2.9ns", "is more than the 2.85714ns of l2_hit");
	bad_memory(f, "stream_l3", "stream_l3 = 6.5ns", "is more than the 6ns of stream_dram");
	bad_memory(f, "stream_l3", "stream_l3 = 11.5ns", "is more than the 11ns of l3_hit");
	bad_memory(f, "stream_dram", "stream_dram = 9.5ns", "is more than the 9ns of stream_remote");
	bad_memory(f, "stream_dram", "stream_dram = 71ns", "is more than the 70ns of dram_local");
	bad_memory(f, "stream_remote", "stream_remote = 131ns", "is more than the 130ns of dram_remote");
	/* Equal is fine: a machine without distance. And lines may be slower than memory, as on POWER7. */
	fine(f, "line_remote_dirty", "line_remote_dirty = 36ns");
	fine(f, "line_remote_dirty", "line_remote_dirty = 443ns");
	fine(f, "line_socket_clean", "line_socket_clean = 40ns");
	fine(f, "line_sibling", "line_sibling = 36ns");
}

static void test_memory_quantum(struct fixture *f, const void *unused)
{
	bad(f, "quantum", "quantum = 34ns", "34ns is more than the 33ns of line_socket_clean, the shortest way");
	bad(f, "quantum", "quantum = 1us", "it is that at most");
	fine(f, "quantum", "quantum = 33ns");
}

/* A model that was made, not read. */
static void test_check(struct fixture *f, const void *unused)
{
	struct cost_model m;

	g_assert_cmpint(load(f, f->good), ==, 0);
	m = f->m;
	cost(&m, dram_local) = cost(&m, dram_remote) + 1;
	g_assert_cmpint(cost_check(&m, "made"), ==, -EINVAL);
	m = f->m;
	cost(&m, cache_l1_ways) = 0;
	g_assert_cmpint(cost_check(&m, "made"), ==, -EINVAL);
	m = f->m;
	cost(&m, smt_slowdown) = COST_RATIO - 1;
	g_assert_cmpint(cost_check(&m, "made"), ==, -EINVAL);
	m = f->m;
	m.memory = false;
	g_assert_cmpint(cost_check(&m, "made"), ==, -EINVAL);
	cost_default(&m);
	cost(&m, l2_ways) = 0;
	g_assert_cmpint(cost_check(&m, "made"), ==, -EINVAL);
}

static char *models_folder(void)
{
	g_autofree char *here = g_path_get_dirname(__FILE__);

	return g_build_filename(here, "..", "..", "cost-models", NULL);
}

/* Every profile of the project's loads without a word, and all but simple have a memory model. */
static void test_profiles(struct fixture *f, const void *unused)
{
	g_autofree char *folder = models_folder();
	g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
	const char *name;
	u32 nr = 0;

	g_assert_nonnull(dir);
	while ((name = g_dir_read_name(dir))) {
		g_autofree char *path = g_build_filename(folder, name, NULL);

		if (!g_str_has_suffix(name, ".ini"))
			continue;
		g_assert_cmpint(cost_file_load(path, &f->m), ==, 0);
		g_assert_cmpint(f->m.memory, ==, strcmp(name, "simple.ini") != 0);
		g_assert_cmpuint(strlen(f->m.name), ==, strlen(name) - strlen(".ini"));
		nr++;
	}
	g_assert_cmpuint(nr, >=, 7);
}

/* The control has ivb-ep's numbers and no distances: nothing else may differ. */
static void test_flat(struct fixture *f, const void *unused)
{
	static const enum cost_id same_as[][2] = {
		{ COST_ipi_remote, COST_ipi_socket }, { COST_line_remote_clean, COST_line_socket_clean },
		{ COST_line_remote_dirty, COST_line_socket_dirty }, { COST_dram_remote, COST_dram_local },
		{ COST_stream_remote, COST_stream_dram },
	};
	static const enum cost_id none[] = { COST_line_hop, COST_link_line, COST_socket_links };
	g_autofree char *folder = models_folder(), *ep = g_build_filename(folder, "ivb-ep.ini", NULL);
	g_autofree char *flat = g_build_filename(folder, "flat.ini", NULL);
	struct cost_model want;
	u32 i;

	g_assert_cmpint(cost_file_load(ep, &want), ==, 0);
	g_assert_cmpint(cost_file_load(flat, &f->m), ==, 0);
	for (i = 0; i < ARRAY_SIZE(same_as); i++)
		want.v[same_as[i][0]] = want.v[same_as[i][1]];
	for (i = 0; i < ARRAY_SIZE(none); i++)
		want.v[none[i]] = f->m.v[none[i]];
	g_assert_cmpuint(cost(&f->m, line_hop), ==, 0);
	g_assert_cmpuint(cost(&f->m, link_line), ==, 0);
	for (i = 0; i < NR_COSTS; i++)
		if (f->m.v[i] != want.v[i])
			g_error("%s: %llu, not %llu", cost_desc[i].name, (unsigned long long)f->m.v[i],
				(unsigned long long)want.v[i]);
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
#undef ADD
#define ADD(name) \
	g_test_add("/cost-file/" #name, struct fixture, NULL, fixture_init_memory, test_##name, fixture_clear)
	ADD(memory);
	ADD(memory_form);
	ADD(memory_units);
	ADD(memory_caches);
	ADD(memory_distances);
	ADD(memory_quantum);
	ADD(check);
	ADD(profiles);
	ADD(flat);
	return g_test_run();
}
