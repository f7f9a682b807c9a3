// SPDX-License-Identifier: GPL-2.0-only
/* Instructions that wait for a line: what an interrupt that comes meanwhile pushes, and what locked ones of two lines pay. */
#include "lines-fixture.h"
#include "soft-guest.h"

#define A_LINE	1024u			/* the first of a page */
#define DATA	0x80000ull		/* the first byte of a line */
#define RESUME	X86_EFLAGS_RF

struct wait_test {
	struct lines_fixture t;
	struct guest g;
	struct soft_cpu *other;
};

/* One vCPU that runs code, and another, of another core, whose lines it wants. */
static void wait_setup(struct wait_test *w)
{
	lines_setup(&w->t, 1, 2, 1, NULL);
	w->other = lines_cpu(&w->t, 0, 1, 0);
	w->g = (struct guest){ .f = w->t.f, .c = lines_cpu(&w->t, 0, 0, 0) };
	soft_fixture_long(w->t.f, 0, &w->g.s);
	guest_gate(&w->g, 0x61, FIXTURE_CS, guest_handler(0x61), GATE_INT, 0);
	CODE(&w->g, guest_handler(0x61), "\xf4");
	w->g.s.idt = (struct x86_table){ .base = GUEST_IDT, .limit = 0xfff };
	w->g.s.rflags = X86_EFLAGS_FIXED | X86_EFLAGS_IF;
}

static u64 line_of(gpa_t gpa)
{
	return gpa / LINE_BYTES;
}

/* Run for as long as it takes until the vCPU waits. */
static void run_to_wait(struct wait_test *w)
{
	struct soft_cpu *c = w->g.c;
	u64 ns = soft_ns(c->svm, soft_units(c));

	while (!c->turn.waiting)
		g_assert_cmpint(soft_fixture_run(w->t.f, 0, ++ns), ==, RUN_DEADLINE);
}

/* What interrupts push while an instruction waits in the middle of what it does, or before it has begun. */
static void test_resume(void)
{
	static const struct {
		const char *code;
		u64 len, rsi, rcx;	/* the line behind DATA's is another core's */
		u64 before, rip, pushed;
	} test[] = {
		/* rep lodsb; hlt: after three bytes, before the first, and where it had been interrupted */
		{ "\xf3\xac\xf4", 3, DATA + LINE_BYTES - 3, 9, 0, 0, RESUME },
		{ "\xf3\xac\xf4", 3, DATA + LINE_BYTES, 9, 0, 0, 0 },
		{ "\xf3\xac\xf4", 3, DATA + LINE_BYTES, 9, RESUME, 0, RESUME },
		/* rep movsb, whose last byte is no stream; repe cmpsb */
		{ "\xf3\xa4\xf4", 3, DATA + LINE_BYTES - 3, 4, 0, 0, RESUME },
		{ "\xf3\xa6\xf4", 3, DATA + LINE_BYTES - 3, 9, 0, 0, RESUME },
		/* rep outsb */
		{ "\xf3\x6e\xf4", 3, DATA + LINE_BYTES - 3, 9, 0, 0, RESUME },
		{ "\xf3\x6e\xf4", 3, DATA + LINE_BYTES, 9, 0, 0, 0 },
		/* lodsb; mov al, [rsi]; nop and mov: RF is the first one's, and stays as long as that is not done */
		{ "\xac\xf4", 2, DATA + LINE_BYTES, 9, 0, 0, 0 },
		{ "\x8a\x06\xf4", 3, DATA + LINE_BYTES, 9, RESUME, 0, RESUME },
		{ "\x90\x8a\x06\xf4", 4, DATA + LINE_BYTES, 9, RESUME, 1, 0 },
	};
	struct wait_test w;
	struct soft_cpu *c;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(test); i++) {
		wait_setup(&w);
		c = w.g.c;
		guest_code(&w.g, FIXTURE_CODE, test[i].code, test[i].len);
		w.g.s.gpr[X86_RSI] = test[i].rsi;
		w.g.s.gpr[X86_RDI] = DATA + 0x1000;
		w.g.s.gpr[X86_RCX] = test[i].rcx;
		w.g.s.rflags |= test[i].before;
		soft_fixture_set(w.t.f, 0, &w.g.s);
		lines_write(&w.t, w.other, line_of(DATA + LINE_BYTES));
		lines_later(&w.t);
		run_to_wait(&w);
		g_assert_cmpint(w.t.f->vm.engine->inject(&w.t.f->cpu[0], 0x61), ==, 0);
		g_assert_cmpint(soft_fixture_run(w.t.f, 0, NSEC_PER_SEC), ==, RUN_HLT);
		g_assert_cmphex(guest_u64(&w.g, FIXTURE_STACK - 40), ==, FIXTURE_CODE + test[i].rip);
		g_assert_cmphex(guest_u64(&w.g, FIXTURE_STACK - 24) & RESUME, ==, test[i].pushed);
		g_assert_cmphex(c->sysflags & RESUME, ==, 0);
		lines_teardown(&w.t);
	}
}

static void run_locked(struct wait_test *w, u64 at)
{
	w->g.s.gpr[X86_RBX] = at;
	soft_fixture_set(w->t.f, 0, &w->g.s);
	lines_later(&w->t);
	w->g.c->spent[TIME_stall_lock] = w->g.c->spent[TIME_stall_socket] = 0;
	g_assert_cmpint(soft_fixture_run(w->t.f, 0, NSEC_PER_SEC), ==, RUN_HLT);
}

/* lock inc dword [rbx]; hlt, with the operand in one line or two, of which so many are another core's. */
static void test_locked(void)
{
	static const struct {
		u64 at;
		u32 lines, theirs;
	} test[] = {
		{ DATA, 1, 0 }, { DATA, 1, 1 }, { DATA + LINE_BYTES - 2, 2, 0 }, { DATA + LINE_BYTES - 2, 2, 1 },
		{ DATA + LINE_BYTES - 2, 2, 2 },
	};
	struct wait_test w;
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(test); i++) {
		wait_setup(&w);
		CODE(&w.g, FIXTURE_CODE, "\xf0\xff\x03\xf4");
		/* Walks set the pages' flags before, by locked operations of theirs. */
		run_locked(&w, DATA + 0x1000);
		for (k = 0; k < test[i].lines; k++)
			lines_write(&w.t, k < test[i].theirs ? w.other : w.g.c, line_of(test[i].at) + k);
		run_locked(&w, test[i].at);
		g_assert_cmpuint(w.g.c->spent[TIME_stall_lock], ==, cost(&w.t.f->vm.cost, lock));
		g_assert_cmpuint(w.g.c->spent[TIME_stall_socket], ==, test[i].theirs * ps_of(&w.t, line_socket_dirty));
		g_assert_cmpuint(*(u16 *)soft_fixture_ram(w.t.f, test[i].at, 4), ==, 1);
		lines_teardown(&w.t);
	}
}

/* A walk's locked update of a flag is an operation of its own, beside that of the instruction it serves. */
static void test_walk(void)
{
	struct wait_test w;
	u64 first;

	wait_setup(&w);
	CODE(&w.g, FIXTURE_CODE, "\xf0\xff\x03\xf4");
	run_locked(&w, DATA);
	first = w.g.c->spent[TIME_stall_lock];
	/* Another page, in whose entry A and D are to be set. */
	run_locked(&w, DATA + 2 * MIB);
	g_assert_cmpuint(w.g.c->spent[TIME_stall_lock], ==, 2 * cost(&w.t.f->vm.cost, lock));
	g_assert_cmpuint(first, >, w.g.c->spent[TIME_stall_lock]);
	lines_teardown(&w.t);
}

/* A core's own line is its own until another one's request has reached it, and after that if nobody comes for it. */
static void test_own(void)
{
	struct soft_cpu *a, *b;
	struct lines_fixture t;
	u64 l2, done, now;
	u32 late, i;

	for (late = 0; late < 2; late++) {
		lines_setup(&t, 1, 2, 1, NULL);
		a = lines_cpu(&t, 0, 0, 0), b = lines_cpu(&t, 0, 1, 0);
		l2 = cost(&t.f->vm.cost, l2_hit);
		for (i = 0; i < 3; i++)		/* L1 has 16 sets of 2 */
			lines_write(&t, a, A_LINE + 16 * i);
		now = lines_later(&t);
		g_assert_false(line_cache_has(&a->core->l1, A_LINE));
		g_assert_true(lines_try(&t, b, A_LINE, LINE_LOCKED));
		done = b->turn.done;
		lines_at(a, late ? done + ps(&t, 501000) : now + 1);
		a->insns += 1000;
		now = soft_units(a);
		g_assert_false(lines_try(&t, a, A_LINE, LINE_READ));
		g_assert_cmpuint(soft_units(a) - now, ==, l2);
		g_assert_cmpuint(a->lines_from[LINE_FROM_L2], ==, 1);
		g_assert_cmpuint(a->lines_from[LINE_FROM_SIBLING], ==, 0);
		g_assert_cmpint(b->turn.waiting, ==, !late);
		lines_teardown(&t);
	}
	/* The same of one that it may only read. */
	lines_setup(&t, 1, 3, 1, NULL);
	a = lines_cpu(&t, 0, 0, 0), b = lines_cpu(&t, 0, 1, 0);
	lines_write(&t, lines_cpu(&t, 0, 2, 0), A_LINE);
	for (i = 0; i < 3; i++)
		lines_read(&t, a, A_LINE + 16 * i);
	lines_later(&t);
	g_assert_true(lines_try(&t, b, A_LINE, LINE_LOCKED));
	lines_at(a, b->turn.done + ps(&t, 501000));
	a->insns += 1000;
	now = soft_units(a);
	g_assert_false(lines_try(&t, a, A_LINE, LINE_READ));
	g_assert_cmpuint(soft_units(a) - now, ==, l2);
	lines_teardown(&t);
}

/* Two threads of a core wait for a line: what one has brought, the other has waited for, and is out of the queue. */
static void test_both_threads(void)
{
	struct soft_cpu *a, *b[2];
	struct lines_fixture t;
	u64 now;
	u32 i;

	lines_setup(&t, 1, 2, 2, NULL);
	a = lines_cpu(&t, 0, 0, 0), b[0] = lines_cpu(&t, 0, 1, 0), b[1] = lines_cpu(&t, 0, 1, 1);
	lines_write(&t, a, A_LINE);
	lines_later(&t);
	for (i = 0; i < 2; i++)
		g_assert_true(lines_try(&t, b[i], A_LINE, LINE_LOCKED));
	g_assert_cmpuint(b[1]->turn.done, ==, b[0]->turn.done + ps_of(&t, line_sibling));
	for (i = 0; i < 2; i++) {
		now = soft_units(b[i]);
		g_assert_false(lines_try(&t, b[i], A_LINE, LINE_LOCKED));
		g_assert_cmpuint(soft_units(b[i]), ==, now);
		g_assert_false(b[i]->turn.waiting);
	}
	g_assert_false(t.ls->line[A_LINE].queued);
	g_assert_cmpuint(t.ls->nr_queues, ==, 0);
	lines_teardown(&t);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/line-wait/resume", test_resume);
	g_test_add_func("/line-wait/locked", test_locked);
	g_test_add_func("/line-wait/walk", test_walk);
	g_test_add_func("/line-wait/own", test_own);
	g_test_add_func("/line-wait/both-threads", test_both_threads);
	return g_test_run();
}
