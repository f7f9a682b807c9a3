// SPDX-License-Identifier: GPL-2.0-only
/* The memory model's protocol and distances against the numbers of the cost model. */
#include <errno.h>
#include <string.h>

#include "lines-fixture.h"

#define A_LINE	1000u

static void test_exclusive(void)
{
	struct lines_fixture t;
	struct soft_cpu *c;

	lines_setup(&t, 2, 2, 2, NULL);
	c = lines_cpu(&t, 0, 0, 0);
	g_assert_cmpuint(lines_read(&t, c, A_LINE), ==, ps_of(&t, dram_local));
	g_assert_cmpuint(t.ls->line[A_LINE].owner, ==, c->core->id + 1);
	g_assert_false(t.ls->line[A_LINE].modified);
	g_assert_cmpuint(lines_read(&t, c, A_LINE), ==, 0);
	/* Nobody is asked when it is written, and from then on not even the model. */
	g_assert_false(line_filter_hit(c, A_LINE, true));
	g_assert_cmpuint(lines_write(&t, c, A_LINE), ==, 0);
	g_assert_true(t.ls->line[A_LINE].modified);
	g_assert_true(line_filter_hit(c, A_LINE, true));
	g_assert_cmpuint(lines_read(&t, c, NODE_LINES + A_LINE), ==, ps_of(&t, dram_remote));
	lines_teardown(&t);
}

static void test_shared(void)
{
	struct lines_fixture t;
	struct soft_cpu *a, *b, *far, *far2;
	const struct line *l;

	lines_setup(&t, 2, 2, 2, NULL);
	a = lines_cpu(&t, 0, 0, 0), b = lines_cpu(&t, 0, 1, 0), far = lines_cpu(&t, 1, 0, 0), far2 = lines_cpu(&t, 1, 1, 1);
	l = &t.ls->line[A_LINE];
	lines_read(&t, a, A_LINE);
	g_assert_cmpuint(lines_read(&t, b, A_LINE), ==, ps_of(&t, line_socket_clean));
	g_assert_cmpuint(l->owner, ==, 0);
	g_assert_cmpuint(lines_read(&t, far, A_LINE), ==, ps_of(&t, line_remote_clean));
	g_assert_cmpuint(lines_read(&t, far2, A_LINE), ==, ps_of(&t, l3_hit));
	g_assert_cmphex(l->sockets, ==, 3);
	g_assert_cmphex(l->cores, ==, 15);
	/* Shared, it is written by none of them without asking. */
	g_assert_cmpuint(lines_read(&t, a, A_LINE), ==, 0);
	g_assert_true(line_filter_hit(a, A_LINE, false));
	g_assert_false(line_filter_hit(a, A_LINE, true));
	g_assert_cmpuint(lines_write(&t, a, A_LINE), ==, ps_of(&t, line_remote_clean));
	g_assert_cmphex(l->sockets, ==, 1);
	g_assert_cmphex(l->cores, ==, a->core->bit);
	g_assert_false(line_filter_hit(b, A_LINE, false));
	g_assert_false(line_cache_has(&far->core->l1, A_LINE));
	g_assert_false(line_cache_has(&t.ls->socket[1].l3, A_LINE));
	lines_teardown(&t);
}

static void test_dirty(void)
{
	struct lines_fixture t;
	struct soft_cpu *a, *b, *far;

	lines_setup(&t, 2, 2, 2, NULL);
	a = lines_cpu(&t, 0, 0, 0), b = lines_cpu(&t, 0, 1, 0), far = lines_cpu(&t, 1, 0, 0);
	g_assert_cmpuint(lines_write(&t, a, A_LINE), ==, ps_of(&t, dram_local));
	g_assert_cmpuint(lines_read(&t, b, A_LINE), ==, ps_of(&t, line_socket_dirty));
	g_assert_true(t.ls->line[A_LINE].stale);
	/* Taken from one that only reads it. */
	g_assert_cmpuint(lines_write(&t, a, A_LINE), ==, ps_of(&t, line_socket_clean));
	g_assert_cmpuint(lines_write(&t, b, A_LINE), ==, ps_of(&t, line_socket_dirty));
	g_assert_cmpuint(lines_read(&t, far, A_LINE), ==, ps_of(&t, line_remote_dirty));
	/* It went home on its way. */
	g_assert_cmpuint(t.ls->node_busy[0], ==, t.now + ps_of(&t, dram_line));
	g_assert_false(t.ls->line[A_LINE].stale);
	g_assert_cmpuint(lines_write(&t, b, A_LINE), ==, ps_of(&t, line_remote_clean));
	g_assert_cmpuint(lines_write(&t, far, A_LINE), ==, ps_of(&t, line_remote_dirty));
	g_assert_cmpuint(a->lines_from[LINE_FROM_DRAM_LOCAL], ==, 1);
	g_assert_cmpuint(far->lines_from[LINE_FROM_REMOTE], ==, 2);
	lines_teardown(&t);
}

static u64 misses(const struct soft_cpu *c)
{
	return counter_read(&c->vcpu->counters, COUNTER_llc_misses);
}

/* What is counted as missed by the last-level cache, and what is not. */
static void test_misses(void)
{
	struct lines_fixture t;
	struct soft_cpu *a, *b, *far;

	lines_setup(&t, 2, 2, 2, NULL);
	a = lines_cpu(&t, 0, 0, 0), b = lines_cpu(&t, 0, 1, 0), far = lines_cpu(&t, 1, 0, 0);
	lines_read(&t, a, A_LINE);
	lines_read(&t, a, NODE_LINES + A_LINE);
	g_assert_cmpuint(misses(a), ==, 2);
	/* In L1; of the same socket, clean, to write, modified; in L3. */
	lines_read(&t, a, A_LINE);
	lines_read(&t, b, A_LINE);
	lines_write(&t, b, A_LINE);
	lines_read(&t, a, A_LINE);
	g_assert_cmpuint(misses(a), ==, 2);
	g_assert_cmpuint(misses(b), ==, 0);
	/* Of the other socket, modified, and clean but to write. */
	lines_read(&t, far, A_LINE);
	lines_write(&t, b, A_LINE);
	lines_write(&t, far, A_LINE);
	g_assert_cmpuint(misses(far), ==, 2);
	g_assert_cmpuint(misses(b), ==, 1);
	/* A store's line comes later, but comes; that of a REP string's destination does not. */
	lines_later(&t);
	lines_access(&t, far, A_LINE + 200, LINE_WRITE);
	g_assert_cmpuint(misses(far), ==, 3);
	lines_access(&t, far, A_LINE + 300, LINE_STREAM_WRITE);
	lines_access(&t, far, A_LINE + 301, LINE_STREAM_WRITE);
	g_assert_cmpuint(misses(far), ==, 3);
	lines_access(&t, far, A_LINE + 400, LINE_STREAM_READ);
	g_assert_cmpuint(misses(far), ==, 4);
	lines_teardown(&t);
}

/* Sockets that are not linked are as many hops away as their numbers differ in bits. */
static void test_hops(void)
{
	struct cost_model model;
	struct lines_fixture t;

	soft_fixture_memory(&model);
	model.v[COST_socket_links] = 2;
	lines_setup(&t, 4, 1, 1, &model);
	lines_write(&t, lines_cpu(&t, 0, 0, 0), A_LINE);
	g_assert_cmpuint(lines_write(&t, lines_cpu(&t, 1, 0, 0), A_LINE), ==, ps_of(&t, line_remote_dirty));
	g_assert_cmpuint(lines_write(&t, lines_cpu(&t, 3, 0, 0), A_LINE), ==, ps_of(&t, line_remote_dirty));
	g_assert_cmpuint(lines_write(&t, lines_cpu(&t, 0, 0, 0), A_LINE), ==, ps_of(&t, line_remote_dirty) + ps_of(&t, line_hop));
	/* Clean, it comes from the nearest that has it, and taking it waits for the farthest. */
	lines_read(&t, lines_cpu(&t, 1, 0, 0), A_LINE);
	g_assert_cmpuint(lines_read(&t, lines_cpu(&t, 3, 0, 0), A_LINE), ==, ps_of(&t, line_remote_clean));
	g_assert_cmpuint(lines_write(&t, lines_cpu(&t, 1, 0, 0), A_LINE), ==, ps_of(&t, line_remote_clean));
	lines_read(&t, lines_cpu(&t, 2, 0, 0), A_LINE);
	g_assert_cmpuint(lines_write(&t, lines_cpu(&t, 1, 0, 0), A_LINE), ==, ps_of(&t, line_remote_clean) + ps_of(&t, line_hop));
	g_assert_cmpuint(lines_read(&t, lines_cpu(&t, 3, 0, 0), A_LINE + 1), ==, ps_of(&t, dram_remote) + ps_of(&t, line_hop));
	g_assert_cmpuint(lines_read(&t, lines_cpu(&t, 3, 0, 0), 3 * NODE_LINES + 1), ==, ps_of(&t, dram_local));
	lines_teardown(&t);
}

/* L1 has 16 sets of 2, L2 16 of 4. */
static void test_capacity(void)
{
	struct lines_fixture t;
	struct soft_cpu *a;
	u64 i;

	lines_setup(&t, 2, 2, 1, NULL);
	a = lines_cpu(&t, 0, 0, 0);
	for (i = 0; i < 3; i++)
		lines_write(&t, a, A_LINE + 16 * i);
	g_assert_false(line_filter_hit(a, A_LINE, false));
	g_assert_cmpuint(lines_read(&t, a, A_LINE), ==, cost(&t.f->vm.cost, l2_hit));
	g_assert_cmpuint(t.ls->line[A_LINE].owner, ==, a->core->id + 1);
	/* Of L2's set the one used longest ago goes. */
	for (i = 3; i < 5; i++)
		lines_read(&t, a, A_LINE + 16 * i);
	g_assert_true(line_cache_has(&a->core->l2, A_LINE));
	g_assert_false(line_cache_has(&a->core->l2, A_LINE + 16));
	g_assert_false(line_cache_has(&a->core->l1, A_LINE + 16));
	g_assert_cmpuint(t.ls->line[A_LINE + 16].owner, ==, 0);
	g_assert_true(t.ls->line[A_LINE + 16].stale);
	g_assert_cmpuint(lines_read(&t, a, A_LINE + 16), ==, ps_of(&t, l3_hit));
	g_assert_cmpuint(lines_read(&t, lines_cpu(&t, 1, 0, 0), A_LINE + 16), ==, ps_of(&t, line_remote_clean));
	lines_teardown(&t);
}

/* L3 has 256 sets of 4: another core's lines push one out, and the copies above it with it. */
static void test_inclusion(void)
{
	struct lines_fixture t;
	struct soft_cpu *a, *b;
	u64 i;

	lines_setup(&t, 2, 2, 1, NULL);
	a = lines_cpu(&t, 0, 0, 0), b = lines_cpu(&t, 0, 1, 0);
	lines_write(&t, a, A_LINE);
	for (i = 1; i < 4; i++)
		lines_read(&t, b, A_LINE + 256 * i);
	g_assert_true(line_filter_hit(a, A_LINE, true));
	lines_read(&t, b, A_LINE + 256 * i);
	g_assert_false(line_filter_hit(a, A_LINE, false));
	g_assert_false(line_cache_has(&a->core->l1, A_LINE));
	g_assert_false(line_cache_has(&a->core->l2, A_LINE));
	g_assert_cmpuint(t.ls->line[A_LINE].owner, ==, 0);
	g_assert_cmpuint(t.ls->line[A_LINE].sockets, ==, 0);
	g_assert_false(t.ls->line[A_LINE].stale);
	/* Memory was busy with the line that came, then with the one that went. */
	g_assert_cmpuint(t.ls->node_busy[0], ==, t.now + 2 * ps_of(&t, dram_line));
	g_assert_cmpuint(lines_read(&t, a, A_LINE), ==, ps_of(&t, dram_local));
	lines_teardown(&t);
}

/* A line that all want at once goes from one to the next, each transfer in full; times of a line are in cycles. */
static void test_contended(void)
{
	struct soft_cpu *a, *b, *far;
	struct lines_fixture t;
	u64 first, second, sum;

	lines_setup(&t, 2, 2, 1, NULL);
	a = lines_cpu(&t, 0, 0, 0), b = lines_cpu(&t, 0, 1, 0), far = lines_cpu(&t, 1, 0, 0);
	lines_write(&t, a, A_LINE);
	lines_later(&t);
	first = lines_access(&t, b, A_LINE, LINE_LOCKED) - t.ls->lock;
	second = lines_access(&t, far, A_LINE, LINE_LOCKED) - t.ls->lock;
	sum = ps_of(&t, line_socket_dirty) + ps_of(&t, line_remote_dirty);
	g_assert_cmpuint(first, ==, ps_of(&t, line_socket_dirty));
	g_assert_cmpuint(second, >, sum - COST_CYCLE);
	g_assert_cmpuint(second, <=, sum);
	/* Those who only read it one after the other wait for its place in L3. */
	lines_read(&t, a, A_LINE);
	lines_later(&t);
	lines_access(&t, b, A_LINE, LINE_WALK);
	sum = ps_of(&t, line_remote_clean) + ps_of(&t, l3_line);
	second = lines_access(&t, lines_cpu(&t, 1, 1, 0), A_LINE, LINE_WALK);
	g_assert_cmpuint(second, >=, ps_of(&t, l3_hit));
	g_assert_cmpuint(second, <=, ps_of(&t, l3_hit) + ps_of(&t, l3_line));
	lines_teardown(&t);
}

/* Lines of one node all at once: one comes each dram_line, and from afar one each link_line at most. */
static void test_bandwidth(void)
{
	struct lines_fixture t;
	u64 i, wait = 0;

	lines_setup(&t, 1, 8, 1, NULL);
	lines_later(&t);
	for (i = 0; i < 8; i++) {
		wait = lines_access(&t, lines_cpu(&t, 0, (u32)i, 0), A_LINE + 3 * i, LINE_WALK);
		g_assert_cmpuint(wait, ==, ps_of(&t, dram_local) + i * ps_of(&t, dram_line));
	}
	lines_teardown(&t);
	lines_setup(&t, 2, 8, 1, NULL);
	lines_later(&t);
	for (i = 0; i < 8; i++)
		wait = lines_access(&t, lines_cpu(&t, 0, (u32)i, 0), NODE_LINES + 3 * i, LINE_WALK);
	g_assert_cmpuint(wait, ==, ps_of(&t, dram_remote) + 7 * MAX(ps_of(&t, dram_line), ps_of(&t, link_line)));
	lines_teardown(&t);
}

static void test_siblings(void)
{
	struct lines_fixture t;
	struct soft_cpu *a, *b;

	lines_setup(&t, 1, 2, 2, NULL);
	a = lines_cpu(&t, 0, 0, 0), b = lines_cpu(&t, 0, 0, 1);
	g_assert_true(a->core == b->core);
	lines_write(&t, a, A_LINE);
	g_assert_cmpuint(lines_read(&t, b, A_LINE), ==, ps_of(&t, line_sibling));
	g_assert_false(line_filter_hit(a, A_LINE, true));
	g_assert_cmpuint(lines_read(&t, b, A_LINE), ==, 0);
	g_assert_cmpuint(lines_write(&t, a, A_LINE), ==, 0);
	g_assert_false(line_filter_hit(b, A_LINE, false));
	g_assert_cmpuint(lines_write(&t, b, A_LINE), ==, ps_of(&t, line_sibling));
	g_assert_cmpuint(lines_write(&t, a, A_LINE), ==, ps_of(&t, line_sibling));
	lines_teardown(&t);
}

static void test_smt(void)
{
	struct lines_fixture t;
	struct soft_cpu *a, *b;
	u64 cpi;

	lines_setup(&t, 1, 2, 2, NULL);
	a = lines_cpu(&t, 0, 0, 0), b = lines_cpu(&t, 0, 0, 1);
	cpi = cost(&t.f->vm.cost, cpi);
	b->vcpu->mp_state = VCPU_HALTED;
	lines_cpu(&t, 0, 1, 0)->vcpu->mp_state = VCPU_RUNNABLE;
	soft_lines_share_core(a);
	g_assert_cmpuint(a->cpi, ==, cpi);
	b->vcpu->mp_state = VCPU_RUNNABLE;
	soft_lines_share_core(a);
	g_assert_cmpuint(a->cpi, ==, cpi * 3 / 2);
	b->vcpu->mp_state = VCPU_HALTED;
	soft_lines_share_core(a);
	g_assert_cmpuint(a->cpi, ==, cpi);
	lines_teardown(&t);
}

/* What the directory cannot name is refused. */
static void test_refused(void)
{
	static const struct {
		u32 sockets, cores, threads;
		int ret;
	} shape[] = {
		{ 9, 1, 1, -EINVAL }, { 1, 1, 8, -EINVAL }, { 1, 255, 1, -EINVAL }, { 8, 32, 1, -EINVAL },
		{ 8, 31, 1, 0 }, { 1, 254, 1, 0 }, { 4, 8, 7, 0 },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(shape); i++) {
		struct vm vm = { .topo = { .sockets = shape[i].sockets, .cores = shape[i].cores, .threads = shape[i].threads } };
		struct soft_vm svm = { .vm = &vm };

		vm.topo.nr_cpus = shape[i].sockets * shape[i].cores * shape[i].threads;
		soft_fixture_memory(&svm.cost);
		svm.hz = cost(&svm.cost, clock);
		soft_clock_init(&svm);
		g_assert_cmpint(soft_lines_create(&svm), ==, shape[i].ret);
		soft_lines_destroy(&svm);
	}
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/lines/exclusive", test_exclusive);
	g_test_add_func("/lines/shared", test_shared);
	g_test_add_func("/lines/dirty", test_dirty);
	g_test_add_func("/lines/misses", test_misses);
	g_test_add_func("/lines/hops", test_hops);
	g_test_add_func("/lines/capacity", test_capacity);
	g_test_add_func("/lines/inclusion", test_inclusion);
	g_test_add_func("/lines/contended", test_contended);
	g_test_add_func("/lines/bandwidth", test_bandwidth);
	g_test_add_func("/lines/siblings", test_siblings);
	g_test_add_func("/lines/smt", test_smt);
	g_test_add_func("/lines/refused", test_refused);
	return g_test_run();
}
