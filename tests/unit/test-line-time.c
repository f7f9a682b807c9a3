// SPDX-License-Identifier: GPL-2.0-only
/* What a core feels of lines' ways: queues, streams, misses that overlap, stores that wait in their buffer. */
#include <string.h>

#include "lines-fixture.h"

#define A_LINE	1024u		/* the first of a page */

/* --- instructions that wait --- */

/* A line stays with who has it for a third of the next one's wait, and goes to those who asked in their order. */
static void test_queue(void)
{
	struct soft_cpu *a, *b, *far;
	struct lines_fixture t;
	u64 dirty, now, lock;

	lines_setup(&t, 2, 2, 1, NULL);
	a = lines_cpu(&t, 0, 0, 0), b = lines_cpu(&t, 0, 1, 0), far = lines_cpu(&t, 1, 0, 0);
	dirty = ps_of(&t, line_socket_dirty);
	lock = cost(&t.f->vm.cost, lock);
	lines_write(&t, a, A_LINE);
	now = lines_later(&t);
	g_assert_true(lines_try(&t, b, A_LINE, LINE_LOCKED));
	g_assert_cmpuint(soft_units(b), ==, now + dirty + lock);
	lines_at(a, now + dirty / 3 - 1);
	g_assert_false(lines_try(&t, a, A_LINE, LINE_READ));
	g_assert_cmpuint(soft_units(a), ==, now + dirty / 3 - 1);
	g_assert_false(line_filter_hit(a, A_LINE, false));
	g_assert_true(lines_try(&t, far, A_LINE, LINE_LOCKED));
	g_assert_cmpuint(soft_units(far), ==, now + dirty + ps_of(&t, line_remote_dirty) + lock);
	/* Now it is b's: whoever had it is one more that wants it. */
	lines_at(a, now + dirty / 3);
	a->insns++;
	g_assert_true(lines_try(&t, a, A_LINE, LINE_READ));
	g_assert_cmpuint(soft_units(a), ==, now + dirty + 2 * ps_of(&t, line_remote_dirty));
	/* Each gets it at its time, for nothing more. */
	now = soft_units(b);
	g_assert_false(lines_try(&t, b, A_LINE, LINE_LOCKED));
	g_assert_cmpuint(soft_units(b), ==, now);
	g_assert_cmpuint(t.ls->line[A_LINE].owner, ==, b->core->id + 1);
	g_assert_false(lines_try(&t, far, A_LINE, LINE_LOCKED));
	g_assert_cmpuint(t.ls->line[A_LINE].owner, ==, far->core->id + 1);
	g_assert_false(lines_try(&t, a, A_LINE, LINE_READ));
	g_assert_cmpuint(t.ls->line[A_LINE].owner, ==, 0);
	g_assert_false(t.ls->line[A_LINE].queued);
	g_assert_cmpuint(t.ls->nr_queues, ==, 0);
	lines_teardown(&t);
}

/* Who does not come for its line is not waited for longer than 500 ns. */
static void test_late(void)
{
	struct soft_cpu *a, *b, *far;
	struct lines_fixture t;
	u64 done;

	lines_setup(&t, 2, 2, 1, NULL);
	a = lines_cpu(&t, 0, 0, 0), b = lines_cpu(&t, 0, 1, 0), far = lines_cpu(&t, 1, 0, 0);
	lines_write(&t, a, A_LINE);
	lines_later(&t);
	g_assert_true(lines_try(&t, b, A_LINE, LINE_LOCKED));
	done = b->turn.done;
	lines_at(a, done + ps(&t, 500000));
	a->insns++;
	g_assert_true(lines_try(&t, a, A_LINE, LINE_LOCKED));
	lines_at(far, done + ps(&t, 501000));
	g_assert_true(lines_try(&t, far, A_LINE, LINE_LOCKED));
	g_assert_false(b->turn.waiting);
	g_assert_true(a->turn.waiting);
	/* It has to ask again. */
	lines_at(b, done + ps(&t, 501000));
	b->insns++;
	g_assert_true(lines_try(&t, b, A_LINE, LINE_LOCKED));
	lines_teardown(&t);
}

/* However often an instruction's lines are taken from it, in turn, in the end it goes on. */
static void test_bounded(void)
{
	struct soft_cpu *a, *b;
	struct lines_fixture t;
	u32 waits = 0, i;

	lines_setup(&t, 1, 2, 1, NULL);
	a = lines_cpu(&t, 0, 0, 0), b = lines_cpu(&t, 0, 1, 0);
	for (i = 0; i < 100; i++) {
		u64 insn = a->insns;

		lines_write(&t, b, A_LINE + (i & 1));
		a->insns = insn;
		waits += lines_try(&t, a, A_LINE + (i & 1), LINE_LOCKED);
	}
	g_assert_cmpuint(waits, ==, 8);
	/* The next one waits again. */
	lines_write(&t, b, A_LINE);
	g_assert_true(lines_try(&t, a, A_LINE, LINE_LOCKED));
	lines_teardown(&t);
}

/* ENTER overwrites what it has read, so it cannot be begun anew half-way. */
static void test_enter(void)
{
	/* enter 0, 5; hlt */
	static const u8 code[] = { 0xc8, 0x00, 0x00, 0x05, 0xf4 };
	struct soft_cpu *c, *other;
	struct lines_fixture t;
	struct x86_state s;
	u64 *stack, i;

	lines_setup(&t, 1, 2, 1, NULL);
	c = lines_cpu(&t, 0, 0, 0), other = lines_cpu(&t, 0, 1, 0);
	soft_fixture_load(t.f, FIXTURE_CODE, code, sizeof(code));
	soft_fixture_long(t.f, 0, &s);
	/* What is read lies a quadword below what is pushed then, and its last part in another core's line. */
	s.gpr[X86_RSP] = FIXTURE_STACK + 40;
	s.gpr[X86_RBP] = FIXTURE_STACK + 24;
	soft_fixture_set(t.f, 0, &s);
	stack = (u64 *)soft_fixture_ram(t.f, FIXTURE_STACK - 64, 128) + 8;
	for (i = 0; i < 8; i++)
		stack[i] = 100 + i;
	stack[-1] = 99;
	lines_write(&t, other, FIXTURE_STACK / LINE_BYTES - 1);
	g_assert_cmpint(soft_fixture_run(t.f, 0, NSEC_PER_MSEC), ==, RUN_HLT);
	g_assert_cmpuint(c->lines_from[LINE_FROM_SOCKET], >, 0);
	g_assert_cmphex(stack[4], ==, FIXTURE_STACK + 24);
	g_assert_cmpuint(stack[3], ==, 102);
	g_assert_cmpuint(stack[2], ==, 101);
	g_assert_cmpuint(stack[1], ==, 100);
	g_assert_cmpuint(stack[0], ==, 99);
	g_assert_cmphex(stack[-1], ==, FIXTURE_STACK + 32);
	lines_teardown(&t);
}

/* --- loads --- */

/* The time of reading `n` lines one after the other, the first that of `line`. */
static u64 read_lines(struct lines_fixture *t, struct soft_cpu *c, u64 line, u32 n, enum line_kind kind)
{
	u64 before = soft_units(c);

	for (; n--; line++) {
		c->insns += 1000;	/* nothing overlaps but what the prefetcher does */
		lines_access(t, c, line, kind);
	}
	return soft_units(c) - before;
}

static void test_stream(void)
{
	struct lines_fixture t;
	struct soft_cpu *c;
	u64 lat, rate;

	lines_setup(&t, 1, 1, 1, NULL);
	c = lines_cpu(&t, 0, 0, 0);
	lat = ps_of(&t, dram_local), rate = ps_of(&t, stream_dram);
	lines_later(&t);
	g_assert_cmpuint(read_lines(&t, c, A_LINE, 2, LINE_READ), ==, 2 * lat);
	/* The third was asked for with the second; from there on one comes each so often. */
	g_assert_cmpuint(read_lines(&t, c, A_LINE + 2, 1, LINE_READ), ==, 0);
	g_assert_cmpuint(read_lines(&t, c, A_LINE + 3, 61, LINE_READ), ==, 61 * rate);
	/* A page's end ends it. */
	g_assert_cmpuint(read_lines(&t, c, A_LINE + 64, 2, LINE_READ), ==, 2 * lat);
	/* REP's is one from its second line on, and what it writes is not fetched. */
	lines_later(&t);
	g_assert_cmpuint(read_lines(&t, c, A_LINE + 640, 1, LINE_STREAM_READ), ==, lat);
	g_assert_cmpuint(read_lines(&t, c, A_LINE + 641, 63, LINE_STREAM_READ), ==, 62 * rate);
	lines_later(&t);
	g_assert_cmpuint(read_lines(&t, c, A_LINE + 1280, 64, LINE_STREAM_WRITE), ==, 62 * rate);
	lines_teardown(&t);
}

static void test_first_line(void)
{
	struct lines_fixture t;
	struct soft_cpu *c;

	lines_setup(&t, 1, 1, 1, NULL);
	c = lines_cpu(&t, 0, 0, 0);
	lines_later(&t);
	/* Line 0 is no stream's next one. */
	g_assert_cmpuint(read_lines(&t, c, 0, 2, LINE_READ), ==, 2 * ps_of(&t, dram_local));
	lines_teardown(&t);
}

static void load(struct lines_fixture *t, struct soft_cpu *c, u64 line, u32 insns, u8 base)
{
	t->op.dst = X86_RBX;
	t->op.base = base;
	c->insns += insns - 1;
	c->left -= (s64)(insns * c->cpi);
	lines_access(t, c, line, LINE_READ);
	t->op.base = GPR_ZERO;
}

/* Ten misses at once, of loads that do not hang on each other and are no further apart than the reorder buffer reaches. */
static void test_window(void)
{
	u32 gap[] = { 16, 16, 167, 168, 16 }, i;
	u64 lat, start, took[5];
	struct cost_model model;
	struct lines_fixture t;
	struct soft_cpu *c;

	soft_fixture_memory(&model);
	model.v[COST_dram_line] = 0;	/* memory has room for all of them */
	lines_setup(&t, 1, 1, 1, &model);
	c = lines_cpu(&t, 0, 0, 0);
	lat = ps_of(&t, dram_local);
	start = lines_later(&t);
	for (i = 0; i < 10; i++)
		load(&t, c, A_LINE + 3 * i, 1, GPR_ZERO);
	g_assert_cmpuint(soft_units(c) - start, ==, lat + 10 * c->cpi);
	load(&t, c, A_LINE + 3 * i, 1, GPR_ZERO);
	g_assert_cmpuint(soft_units(c) - start, ==, 2 * lat + 11 * c->cpi);
	for (i = 0; i < 5; i++) {
		lines_later(&t);
		load(&t, c, A_LINE + 200 + 6 * i, 1, GPR_ZERO);
		start = soft_units(c);
		load(&t, c, A_LINE + 300 + 6 * i, gap[i], i == 4 ? X86_RBX : GPR_ZERO);
		took[i] = soft_units(c) - start - gap[i] * c->cpi;
	}
	g_assert_cmpuint(took[0], ==, 0);
	g_assert_cmpuint(took[2], ==, 0);
	g_assert_cmpuint(took[3], ==, lat);	/* too far away */
	g_assert_cmpuint(took[4], ==, lat);	/* its address was loaded by the one before */
	lines_teardown(&t);
}

/* A miss that overlaps has its turn at the memory from when it was asked for, not from when the first one is there. */
static void test_issue(void)
{
	struct soft_cpu *c, *other;
	struct cost_model model;
	struct lines_fixture t;
	u64 lat, busy, start, gap;

	soft_fixture_memory(&model);
	model.v[COST_dram_line] = 20000;
	lines_setup(&t, 1, 2, 1, &model);
	c = lines_cpu(&t, 0, 0, 0), other = lines_cpu(&t, 0, 1, 0);
	lat = ps_of(&t, dram_local);
	busy = ps_of(&t, dram_line);
	gap = 16 * c->cpi;
	g_assert_cmpuint(gap, <, busy);
	lines_later(&t);
	load(&t, c, A_LINE, 1, GPR_ZERO);
	start = soft_units(c) - lat;
	load(&t, c, A_LINE + 3, 16, GPR_ZERO);
	g_assert_cmpuint(t.ls->node_busy[0], ==, start + 2 * busy);
	/* It waited behind the first one, a part of which was that one's way. */
	g_assert_cmpuint(soft_units(c), ==, start + busy + lat);
	g_assert_cmpuint(c->spent[TIME_stall_queue], ==, busy - gap);
	/* Another core that comes when both are through finds nobody there. */
	lines_at(other, start + 2 * busy);
	g_assert_cmpuint(lines_access(&t, other, A_LINE + 6, LINE_WALK), ==, lat);
	lines_teardown(&t);
}

/* --- stores --- */

static void test_stores(void)
{
	struct lines_fixture t;
	struct soft_cpu *c;
	u64 lat, start, line;
	u32 i;

	lines_setup(&t, 1, 1, 1, NULL);
	c = lines_cpu(&t, 0, 0, 0);
	lat = ps_of(&t, dram_local), line = ps_of(&t, dram_line);
	start = lines_later(&t);
	for (i = 0; i < 10; i++)
		lines_access(&t, c, A_LINE + 3 * i, LINE_WRITE);
	g_assert_cmpuint(soft_units(c), ==, start);
	/* The next one has to wait for the first to be done. */
	lines_access(&t, c, A_LINE + 3 * i, LINE_WRITE);
	g_assert_cmpuint(soft_units(c) - start, ==, lat);
	/* And what must not pass them, for the last. */
	lines_access(&t, c, A_LINE, LINE_LOCKED);
	g_assert_cmpuint(soft_units(c) - start, ==, lat + 10 * line + t.ls->lock);
	start = lines_later(&t);
	lines_access(&t, c, A_LINE + 100, LINE_WRITE);
	soft_line_fence(c);
	g_assert_cmpuint(soft_units(c) - start, ==, lat + t.ls->fence);
	start = lines_later(&t);
	lines_access(&t, c, A_LINE + 200, LINE_WRITE);
	soft_lines_drain(c);
	g_assert_cmpuint(soft_units(c) - start, ==, lat);
	lines_teardown(&t);
}

/* The buffer's room is the most that a cost model may ask for. */
static void test_most_stores(void)
{
	struct cost_model model;
	struct lines_fixture t;
	struct soft_cpu *c;
	u64 start;
	u32 i;

	g_assert_cmpfloat(cost_desc[COST_misses].max, <=, LINE_NR_STORES);
	soft_fixture_memory(&model);
	model.v[COST_misses] = (u64)cost_desc[COST_misses].max;
	lines_setup(&t, 1, 1, 1, &model);
	c = lines_cpu(&t, 0, 0, 0);
	start = lines_later(&t);
	for (i = 0; i < cost(&model, misses); i++)
		lines_access(&t, c, A_LINE + 3 * i, LINE_WRITE);
	g_assert_cmpuint(soft_units(c), ==, start);
	lines_access(&t, c, A_LINE + 3 * i, LINE_WRITE);
	g_assert_cmpuint(soft_units(c) - start, ==, ps_of(&t, dram_local));
	lines_teardown(&t);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/line-time/queue", test_queue);
	g_test_add_func("/line-time/late", test_late);
	g_test_add_func("/line-time/bounded", test_bounded);
	g_test_add_func("/line-time/enter", test_enter);
	g_test_add_func("/line-time/stream", test_stream);
	g_test_add_func("/line-time/first-line", test_first_line);
	g_test_add_func("/line-time/window", test_window);
	g_test_add_func("/line-time/issue", test_issue);
	g_test_add_func("/line-time/stores", test_stores);
	g_test_add_func("/line-time/most-stores", test_most_stores);
	return g_test_run();
}
