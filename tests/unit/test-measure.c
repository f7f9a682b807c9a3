// SPDX-License-Identifier: GPL-2.0-only
/* faultbed cost-model --measure: what is written of made-up figures, loaded again. */
#include <glib.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>

#include "cost-file.h"
#include "measure.h"

/* A machine of one socket and two cores without siblings. */
static const char one_socket[] = "marked\n"
				 "counter /proc/vmstat pgfault 12\n"
				 "report tsc_mhz 2445.431 MHz\n"
				 "report model.cpi 0.470 cycles\n"
				 "report model.lock 5.028 cycles\n"
				 "report model.fence 48.6 cycles\n"
				 "report model.pause 100.1 cycles\n"
				 "report model.l2_hit 9.04 cycles\n"
				 "report model.l3_hit 24.8 ns\n"
				 "report model.line_socket_dirty 38.5 ns\n"
				 "report model.line_socket_clean 80.8 ns\n"
				 "report model.dram_local 155.8 ns\n"
				 "report model.misses 12.6 misses\n"
				 "report model.stream_l2 0.734 ns\n"
				 "report model.stream_l3 3.383 ns\n"
				 "report model.stream_dram 7.316 ns\n"
				 "report tlb.reach_first 64.000 pages\n"
				 "report tlb.reach_second 2048.000 pages\n"
				 "report model.l2_tlb_hit 17.896 cycles\n"
				 "report tlb.walk_cycles 45.836 cycles\n";

struct fixture {
	struct measure m;
	struct measure_host host;
	struct cost_model simple, got;
};

static void fixture_init(struct fixture *f, const void *unused)
{
	measure_init(&f->m);
	f->host = (struct measure_host){ .cpu = g_strdup("Some CPU of 2 cores"), .date = g_strdup("2024-02-29"),
					 .cpus = 2, .sockets = 1, .cache = { { 32, 8 }, { 512, 8 }, { 32768, 16 } } };
	cost_default(&f->simple);
}

static void fixture_clear(struct fixture *f, const void *unused)
{
	measure_destroy(&f->m);
	measure_host_clear(&f->host);
}

/* Write and load; the text, g_free(). */
static char *load(struct fixture *f)
{
	g_autofree char *dir = g_dir_make_tmp("faultbed-test-XXXXXX", NULL);
	g_autofree char *path = g_build_filename(dir, "x.ini", NULL);
	char *text = measure_text(&f->m, &f->host, &f->simple);

	g_assert_nonnull(text);
	g_assert_true(g_file_set_contents(path, text, -1, NULL));
	g_assert_cmpint(cost_file_load(path, &f->got), ==, 0);
	g_remove(path);
	g_rmdir(dir);
	g_assert_true(f->got.memory);
	return text;
}

static void test_one_socket(struct fixture *f, const void *unused)
{
	g_autofree char *text = NULL;

	measure_take(&f->m, one_socket);
	text = load(f);
	g_assert_cmpuint(cost(&f->got, clock), ==, 2445000000);
	g_assert_cmpuint(cost(&f->got, cpi), ==, (u64)(0.470 * COST_CYCLE + 0.5));
	g_assert_cmpuint(cost(&f->got, line_socket_dirty), ==, 38500);
	g_assert_cmpuint(cost(&f->got, line_remote_dirty), ==, 38500);
	g_assert_cmpuint(cost(&f->got, dram_remote), ==, 155800);
	g_assert_cmpuint(cost(&f->got, misses), ==, 13);
	g_assert_cmpuint(cost(&f->got, l2_entries), ==, 2048);
	g_assert_cmpuint(cost(&f->got, cache_l3_kib), ==, 32768);
	g_assert_cmpuint(cost(&f->got, smt_slowdown), ==, COST_RATIO);
	g_assert_cmpuint(cost(&f->got, exception), ==, cost(&f->simple, exception));
	g_assert_cmpuint(cost(&f->got, quantum), ==, 38);
	g_assert_nonnull(strstr(text, "\n# Not measured: simple's.\nexception = 715.000\n"));
	g_assert_nonnull(strstr(text, "\n# One socket: no remote measured: as line_socket_dirty.\nline_remote_dirty = 38.500ns\n"));
	g_assert_nonnull(strstr(text, "\n# Measured on Some CPU of 2 cores, 2024-02-29: median of 1, 24.8..24.8 (memory-probe, model.l3_hit).\n"
				      "l3_hit = 24.800ns\n"));
}

/* The median of several runs, and the range. */
static void test_median(struct fixture *f, const void *unused)
{
	g_autofree char *text = NULL;

	measure_take(&f->m, one_socket);
	measure_take(&f->m, "report model.l3_hit 90.5 ns\n");
	measure_take(&f->m, "report model.l3_hit 26.0 ns\n");
	text = load(f);
	g_assert_cmpuint(cost(&f->got, l3_hit), ==, 26000);
	g_assert_nonnull(strstr(text, "median of 3, 24.8..90.5 (memory-probe, model.l3_hit)"));
}

/* Figures that contradict each other still make a model, which says what it changed. */
static void test_contradictions(struct fixture *f, const void *unused)
{
	g_autofree char *text = NULL;

	measure_take(&f->m, one_socket);
	for (u32 i = 0; i < 2; i++)
		measure_take(&f->m, "report model.l3_hit 45 ns\nreport model.line_socket_dirty 30 ns\n"
				    "report model.line_socket_clean 33 ns\nreport model.stream_dram 500 ns\n"
				    "report model.stream_l2 20 ns\nreport model.dram_local 40 ns\n"
				    "report model.line_remote_clean 10 ns\nreport model.line_remote_dirty 11 ns\n"
				    "report model.stream_remote 0.1 ns\nreport model.dram_remote 12 ns\n"
				    "report model.line_sibling 99 ns\n");
	text = load(f);
	g_assert_cmpuint(cost(&f->got, line_socket_dirty), ==, 45000);
	g_assert_cmpuint(cost(&f->got, line_remote_clean), ==, 45000);
	g_assert_cmpuint(cost(&f->got, dram_local), ==, 45000);
	g_assert_cmpuint(cost(&f->got, stream_dram), <=, cost(&f->got, dram_local));
	g_assert_nonnull(strstr(text, "That was 30ns, and a cost model has nothing that contradicts l3_hit."));
}

/* Caches as no cache of the model can be, or none told. */
static void test_caches(struct fixture *f, const void *unused)
{
	measure_take(&f->m, one_socket);
	f->host.cache[0] = (struct measure_cache){ 48, 12 };
	f->host.cache[1] = (struct measure_cache){ 1280, 10 };
	f->host.cache[2] = (struct measure_cache){ 31457, 7 };
	g_free(load(f));
	g_assert_cmpuint(cost(&f->got, cache_l1_ways), ==, 12);
	g_assert_cmpuint(cost(&f->got, cache_l2_ways), ==, 10);
	g_assert_cmpuint(cost(&f->got, cache_l3_kib), ==, 31457);
	memset(f->host.cache, 0, sizeof(f->host.cache));
	g_free(load(f));
	g_assert_cmpuint(cost(&f->got, cache_l1_kib), ==, 32);
}

static void test_missing(struct fixture *f, const void *unused)
{
	measure_take(&f->m, "report tsc_mhz 2445.431 MHz\n");
	g_assert_null(measure_text(&f->m, &f->host, &f->simple));
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
#define ADD(name, fn)	g_test_add("/measure/" name, struct fixture, NULL, fixture_init, fn, fixture_clear)
	ADD("one-socket", test_one_socket);
	ADD("median", test_median);
	ADD("contradictions", test_contradictions);
	ADD("caches", test_caches);
	ADD("missing", test_missing);
	return g_test_run();
}
