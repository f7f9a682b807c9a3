// SPDX-License-Identifier: GPL-2.0-only
/* A scenario's [cost]: what its forms come to, what they may not come to, and that the digest tells. */
#include <string.h>

#include "cost-change.h"
#include "cost-file.h"

struct fixture {
	struct cost_model model, simple;
};

static char *model_path(const char *name)
{
	g_autofree char *here = g_path_get_dirname(__FILE__);

	return g_build_filename(here, "..", "..", "cost-models", name, NULL);
}

static void fixture_init(struct fixture *f, const void *unused)
{
	g_autofree char *ep = model_path("ivb-ep.ini"), *simple = model_path("simple.ini");

	g_assert_cmpint(cost_file_load(ep, &f->model), ==, 0);
	g_assert_cmpint(cost_file_load(simple, &f->simple), ==, 0);
}

static void fixture_clear(struct fixture *f, const void *unused)
{
}

/* ivb-ep with up to three changes, "KEY=VALUE"; NULL: none. */
static int change(const struct cost_model *from, struct cost_model *m, const char *a, const char *b, const char *c)
{
	const char *set[5] = { "run.command=true", "vm.engine=soft" };
	static const char *const origin[] = { "o:1", "o:2", "o:3", "o:4", "o:5" };
	struct scenario *s;
	u32 nr = 2;
	int ret;

	for (const char *const *k = (const char *const[]){ a, b, c, NULL }; *k; k++)
		set[nr++] = *k;
	s = scenario_of("made", set, origin, nr);
	if (!s)
		return 1;
	*m = *from;
	ret = cost_change(m, s);
	scenario_free(s);
	return ret;
}

static void test_forms(struct fixture *f, const void *unused)
{
	struct cost_model m;

	g_assert_cmpint(change(&f->model, &m, "cost.cpi=1.25", "cost.dram_local=*1.2", "cost.line_remote_clean=low"), ==, 0);
	g_assert_cmpuint(cost(&m, cpi), ==, COST_CYCLE * 5 / 4);
	g_assert_cmpuint(cost(&m, dram_local), ==, 86400);
	g_assert_cmpuint(cost(&m, line_remote_clean), ==, 63000);
	g_assert_cmpuint(cost(&m, dram_remote), ==, cost(&f->model, dram_remote));
	g_assert_true(m.changed);
	g_assert_cmpint(change(&f->model, &m, "cost.line_remote_dirty=high", "cost.link_line=high", "cost.misses=1"), ==, 0);
	g_assert_cmpuint(cost(&m, line_remote_dirty), ==, 128000);
	/* Computed, not estimated: the range is the number. */
	g_assert_cmpuint(cost(&m, link_line), ==, cost(&f->model, link_line));
	g_assert_cmpuint(cost(&m, misses), ==, 1);
	/* Near may be slower than far: it is an experiment. */
	g_assert_cmpint(change(&f->model, &m, "cost.dram_local=500ns", NULL, NULL), ==, 0);
	g_assert_cmpint(change(&f->model, &m, "cost.line_remote_dirty=36ns", "cost.line_remote_clean=30ns", NULL), ==, 0);
	g_assert_cmpint(change(&f->model, &m, "cost.clock=*1.2", NULL, NULL), ==, 0);
	g_assert_cmpuint(cost(&m, clock), ==, 3360000000ull);
}

static void test_digest(struct fixture *f, const void *unused)
{
	struct cost_model a, b;

	g_assert_cmpint(change(&f->model, &a, NULL, NULL, NULL), ==, 0);
	g_assert_cmpstr(a.digest, ==, f->model.digest);
	g_assert_cmpint(change(&f->model, &a, "cost.dram_local=*1", "cost.lock=18", NULL), ==, 0);
	g_assert_cmpstr(a.digest, ==, f->model.digest);
	g_assert_false(a.changed);
	/* What it comes to counts, not how it was said. */
	g_assert_cmpint(change(&f->model, &a, "cost.dram_local=*1.5", "cost.lock=9", NULL), ==, 0);
	g_assert_cmpint(change(&f->model, &b, "cost.lock=*0.5", "cost.dram_local=108ns", NULL), ==, 0);
	g_assert_cmpstr(a.digest, !=, f->model.digest);
	g_assert_cmpstr(a.digest, ==, b.digest);
	g_assert_cmpint(change(&f->model, &b, "cost.lock=*0.5", "cost.dram_local=109ns", NULL), ==, 0);
	g_assert_cmpstr(a.digest, !=, b.digest);
}

static void test_quantum(struct fixture *f, const void *unused)
{
	struct cost_model m;

	g_assert_cmpint(change(&f->model, &m, "cost.quantum=*0.25", NULL, NULL), ==, 0);
	g_assert_cmpuint(cost(&m, quantum), ==, 8);	/* 7.5 */
	/* A line must not come sooner than what one vCPU may be ahead of another. */
	g_assert_cmpint(change(&f->model, &m, "cost.line_socket_clean=*0.8", NULL, NULL), <, 0);
	g_assert_cmpint(change(&f->model, &m, "cost.line_socket_clean=*0.8", "cost.quantum=auto", NULL), ==, 0);
	g_assert_cmpuint(cost(&m, quantum), ==, 24);
	g_assert_cmpint(change(&f->model, &m, "cost.quantum=31ns", NULL, NULL), <, 0);
	g_assert_cmpint(change(&f->model, &m, "cost.ipi_smt=20ns", NULL, NULL), <, 0);
	g_assert_cmpint(change(&f->model, &m, "cost.quantum=*0", NULL, NULL), <, 0);
}

static void test_refused(struct fixture *f, const void *unused)
{
	static const char *const bad[] = {
		"cost.line_remot_dirty=1ns", "cost.cpi=fast", "cost.cpi=*fast", "cost.cpi=*-1", "cost.cpi=*", "cost.cpi=*1001",
		"cost.cpi=auto", "cost.dram_local=70", "cost.lock=", "cost.lock=18 (14..22)", "cost.lock=lower", "cost.misses=0",
	};
	/* Known when the model is. */
	static const char *const late[] = { "cost.misses=*100", "cost.cache_l1_ways=7", "cost.l2_ways=*3", "cost.smt_slowdown=*0.5" };
	struct cost_model m;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		if (change(&f->model, &m, bad[i], NULL, NULL) != 1)
			g_error("%s was taken", bad[i]);
	for (i = 0; i < ARRAY_SIZE(late); i++)
		if (change(&f->model, &m, late[i], NULL, NULL) >= 0)
			g_error("%s was taken", late[i]);
	g_assert_cmpint(change(&f->simple, &m, "cost.dram_local=*1.2", NULL, NULL), <, 0);
	g_assert_cmpint(change(&f->simple, &m, "cost.quantum=auto", NULL, NULL), <, 0);
	g_assert_cmpint(change(&f->simple, &m, "cost.cpi=*1.2", NULL, NULL), ==, 0);
	g_assert_cmpint(change(&f->model, &m, "cost.cpi=1", "vm.engine=kvm", NULL), ==, 1);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
#define ADD(name) \
	g_test_add("/cost-change/" #name, struct fixture, NULL, fixture_init, test_##name, fixture_clear)
	ADD(forms);
	ADD(digest);
	ADD(quantum);
	ADD(refused);
	return g_test_run();
}
