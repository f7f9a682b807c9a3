// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random accesses of all vCPUs against plain sets of holders, and the directory, the caches and the filters against
 * each other after each.
 */
#include <string.h>

#include "lines-fixture.h"

#define NR_LINES	192u
#define MAX_CORES	96u

/* Who may have a line: those that accessed it since another wrote it. */
struct holders {
	bool has[MAX_CORES];
	int owner;		/* core that wrote it last, or read it when nobody had it; -1: none */
};

struct random_test {
	struct lines_fixture t;
	struct rng rng;
	struct holders line[NR_LINES];
	u32 nr_cores;
	u64 waits, owners, shared;
};

/* Every fourth one of another node's. */
static u64 line_of(u32 i)
{
	return (i & 3 ? 0 : NODE_LINES) + 4096 + i;
}

static void check_filters(const struct random_test *r, const struct soft_core *core, u64 line)
{
	const struct line *l = &r->t.ls->line[line];
	bool in_l1 = line_cache_has(&core->l1, line);
	u32 i;

	for (i = 0; i < core->nr_threads; i++) {
		const struct soft_cpu *c = core->thread[i];

		if (!line_filter_hit(c, line, false))
			continue;
		g_assert_true(in_l1);
		if (line_filter_hit(c, line, true)) {
			g_assert_cmpuint(l->owner, ==, core->id + 1);
			g_assert_true(l->modified);
			g_assert_cmpuint(l->writer, ==, c->thread + 1);
			g_assert_false(l->queued);
		}
	}
}

static void check_core(const struct random_test *r, u32 i, u32 id)
{
	const struct soft_lines *ls = r->t.ls;
	const struct soft_core *core = &ls->core[id];
	u64 line = line_of(i);
	const struct line *l = &ls->line[line];
	bool l1 = line_cache_has(&core->l1, line), l2 = line_cache_has(&core->l2, line);

	g_assert_true(!l1 || l2);
	g_assert_true(!l2 || l->sockets & BIT(core->socket));
	g_assert_true(!l2 || l->cores & core->bit);
	if (ls->exact)
		g_assert_cmpint(l2, ==, !!(l->cores & core->bit));
	g_assert_true(!l2 || r->line[i].has[id]);
	if (l->owner)
		g_assert_cmpint(l2, ==, l->owner == id + 1);
	check_filters(r, core, line);
}

static void check_line(const struct random_test *r, u32 i)
{
	const struct soft_lines *ls = r->t.ls;
	u64 line = line_of(i);
	const struct line *l = &ls->line[line];
	u32 s, id, queues = 0;

	g_assert_true(l->owner || (!l->modified && !l->writer));
	g_assert_true(!l->stale || l->sockets);
	for (s = 0; s < ls->nr_sockets; s++)
		g_assert_cmpint(line_cache_has(&ls->socket[s].l3, line), ==, !!(l->sockets & BIT(s)));
	if (l->owner) {
		g_assert_cmphex(l->sockets, ==, BIT(ls->core[l->owner - 1].socket));
		g_assert_cmpint(r->line[i].owner, ==, l->owner - 1);
	}
	for (id = 0; id < ls->nr_cores; id++)
		check_core(r, i, id);
	for (s = 0; s < ls->nr_queues; s++)
		queues += ls->queue[s].line == line;
	g_assert_cmpuint(queues, ==, l->queued);
}

static void note(struct random_test *r, u32 i, u32 core, bool write, bool alone)
{
	struct holders *h = &r->line[i];

	if (write) {
		memset(h->has, 0, sizeof(h->has));
		h->owner = (int)core;
	} else if (h->owner != (int)core) {
		h->owner = alone ? (int)core : -1;
	}
	h->has[core] = true;
}

static void step(struct random_test *r)
{
	static const enum line_kind kinds[] = { LINE_READ, LINE_READ, LINE_WRITE, LINE_LOCKED, LINE_STREAM_READ,
						LINE_STREAM_WRITE, LINE_WALK };
	u32 i = (u32)(rng_next(&r->rng) % NR_LINES), nr = r->t.f->vm.topo.nr_cpus;
	struct soft_cpu *c = soft_cpu(r->t.f->vm.vcpu[rng_next(&r->rng) % nr]);
	enum line_kind kind = kinds[rng_next(&r->rng) % ARRAY_SIZE(kinds)];
	bool retry = kind == LINE_READ || kind == LINE_LOCKED, alone;
	u64 line = line_of(i);

	/* Few lines are wanted by many. */
	if (rng_next(&r->rng) & 1)
		line = line_of(i %= 8);
	alone = !r->t.ls->line[line].sockets;
	r->t.now += rng_next(&r->rng) % 20000;
	lines_at(c, MAX(soft_units(c), r->t.now));
	c->insns += rng_next(&r->rng) & 1;
	if (retry && rng_next(&r->rng) & 1) {
		bool waits = lines_try(&r->t, c, line, kind);

		r->waits += waits;
		if (!waits)
			note(r, i, c->core->id, line_kind_writes(kind), alone);
	} else {
		lines_access(&r->t, c, line, kind);
		note(r, i, c->core->id, line_kind_writes(kind), alone);
	}
	r->owners += !!r->t.ls->line[line].owner;
	r->shared += __builtin_popcountll(r->t.ls->line[line].cores) > 1;
	check_line(r, i);
}

static void run(u32 sockets, u32 cores, u32 threads, bool small, u32 steps)
{
	struct random_test *r = g_new0(struct random_test, 1);
	struct cost_model model;
	u32 i, n;

	soft_fixture_memory(&model);
	model.v[COST_jitter] = 3000;
	/* So small that half of the lines do not fit; or large enough for all. */
	model.v[COST_cache_l1_kib] = small ? 1 : 32;
	model.v[COST_cache_l2_kib] = small ? 2 : 64;
	model.v[COST_cache_l3_kib] = small ? 6 : 512;
	lines_setup(&r->t, sockets, cores, threads, &model);
	r->nr_cores = sockets * cores;
	rng_seed(&r->rng, 1, sockets * 100 + cores);
	for (i = 0; i < NR_LINES; i++)
		r->line[i].owner = -1;
	for (n = 0; n < steps; n++) {
		step(r);
		for (i = 0; n % 64 == 0 && i < NR_LINES; i++)
			check_line(r, i);
	}
	/* All that may happen has. */
	g_assert_cmpuint(r->waits, >, steps / 100);
	g_assert_cmpuint(r->owners, >, steps / 10);
	g_assert_cmpuint(r->shared, >, steps / 10);
	/* Where all fits, nothing is lost either. */
	for (i = 0; !small && i < NR_LINES; i++)
		for (n = 0; n < r->nr_cores; n++)
			g_assert_cmpint(line_cache_has(&r->t.ls->core[n].l2, line_of(i)), ==, r->line[i].has[n]);
	lines_teardown(&r->t);
	g_free(r);
}

static void test_small(void)
{
	run(2, 2, 2, true, 40000);
}

static void test_large(void)
{
	run(2, 2, 2, false, 40000);
}

static void test_sockets(void)
{
	run(8, 2, 1, true, 20000);
}

/* More cores than the directory has bits. */
static void test_many_small(void)
{
	run(8, 10, 1, true, 20000);
}

static void test_many_large(void)
{
	run(8, 10, 1, false, 20000);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/lines/random/small", test_small);
	g_test_add_func("/lines/random/large", test_large);
	g_test_add_func("/lines/random/sockets", test_sockets);
	g_test_add_func("/lines/random/more-cores-than-bits/small", test_many_small);
	g_test_add_func("/lines/random/more-cores-than-bits/large", test_many_large);
	return g_test_run();
}
