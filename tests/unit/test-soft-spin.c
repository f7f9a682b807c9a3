// SPDX-License-Identifier: GPL-2.0-only
/*
 * Parked vCPUs: a loop that waits is found, one that does anything else is not, and wherever a parked vCPU is taken
 * to, it is in the state of one that has executed the loop until then.
 */
#include "lines-fixture.h"
#include "soft/spin.h"

#include <string.h>

#define FLAG		0x200000ull	/* what the loop reads */
#define FOREVER_NS	1000000u

struct loop {
	const char *name, *code;
	u64 len;
	bool parks;
};
#define LOOP(name, parks, code)	{ name, code, sizeof(code) - 1, parks }

/* RBX is FLAG, R12 a place of its own, R13 another in the same line as FLAG. */
static const struct loop loops[] = {
	LOOP("load, test, pause", true, "\x48\x8b\x03" "\x48\x85\xc0" "\x75\x04" "\xf3\x90" "\xeb\xf4" "\xf4"),
	LOOP("pause, compare with memory", true, "\xf3\x90" "\x83\x3b\x00" "\x74\xf9" "\xf4"),
	/* Two PAUSEs an iteration, in three blocks and more. */
	LOOP("two pauses", true, "\x83\x3b\x00" "\x75\x0c" "\xf3\x90" "\x83\x7b\x08\x00" "\x75\x04" "\xf3\x90" "\xeb\xef" "\xf4"),
	LOOP("a subroutine's stack is written", false, "\xe8\x07\x00\x00\x00" "\x83\x3b\x00" "\x74\xf6" "\xf4\x90" "\xf3\x90\xc3"),
	LOOP("counts in a register", false, "\x48\xff\xc1" "\xf3\x90" "\x83\x3b\x00" "\x74\xf6" "\xf4"),
	LOOP("counts in memory", false, "\x49\xff\x04\x24" "\xf3\x90" "\x83\x3b\x00" "\x74\xf5" "\xf4"),
	LOOP("stores the same again", false, "\x49\x89\x04\x24" "\xf3\x90" "\x83\x3b\x00" "\x74\xf5" "\xf4"),
	LOOP("a locked operation", false, "\xf0\x41\x83\x0c\x24\x00" "\xf3\x90" "\x83\x3b\x00" "\x74\xf3" "\xf4"),
	LOOP("reads the clock", false, "\x0f\x31" "\xf3\x90" "\x83\x3b\x00" "\x74\xf7" "\xf4"),
	LOOP("reads a port", false, "\xe4\x80" "\xf3\x90" "\x83\x3b\x00" "\x74\xf7" "\xf4"),
	LOOP("a fence", false, "\x0f\xae\xf0" "\xf3\x90" "\x83\x3b\x00" "\x74\xf6" "\xf4"),
	LOOP("no pause", false, "\x83\x3b\x00" "\x74\xfb" "\xf4"),
};

static u32 nr_unparked;

static void on_unpark(struct vcpu *vcpu)
{
	nr_unparked++;
	vcpu->parked = false;
}

struct spin {
	struct lines_fixture t;
	struct soft_cpu *c, *other;
};

static void spin_setup(struct spin *s, const struct loop *loop, bool no_park)
{
	struct x86_state state;

	lines_setup(&s->t, 1, 2, 1, NULL);
	s->t.f->vm.unpark = on_unpark;
	s->t.f->vm.no_park = no_park;
	s->c = lines_cpu(&s->t, 0, 0, 0);
	s->other = lines_cpu(&s->t, 0, 1, 0);
	soft_fixture_load(s->t.f, FIXTURE_CODE, loop->code, loop->len);
	soft_fixture_long(s->t.f, s->c->vcpu->id, &state);
	state.gpr[X86_RBX] = FLAG;
	state.gpr[12] = FLAG + 4096;
	soft_fixture_set(s->t.f, s->c->vcpu->id, &state);
	nr_unparked = 0;
}

static void expect_same(const struct soft_cpu *a, const struct soft_cpu *b)
{
	u32 i;

	g_assert_cmpuint(soft_units(a), ==, soft_units(b));
	g_assert_cmpuint(a->insns, ==, b->insns);
	g_assert_cmpuint(a->accesses, ==, b->accesses);
	g_assert_cmphex(a->rip, ==, b->rip);
	g_assert_cmphex(a->af, ==, b->af);
	g_assert_cmpmem(a->gpr, sizeof(a->gpr), b->gpr, sizeof(b->gpr));
	for (i = 0; i < NR_SOFT_STATS; i++)
		g_assert_cmpuint(a->stat[i], ==, b->stat[i]);
	for (i = 0; i < NR_SOFT_TIMES; i++)
		g_assert_cmpuint(a->spent[i], ==, b->spent[i]);
}

/* Is the loop found? If it is, in the same state as without parking at any time, in small steps and large ones. */
static void test_loop(const void *data)
{
	const struct loop *loop = data;
	struct spin a, b;
	u64 ns = 20000, begin, spinning;
	u32 i;

	spin_setup(&a, loop, false);
	spin_setup(&b, loop, true);
	g_assert_cmpint(soft_run(a.c->vcpu, ns), ==, RUN_DEADLINE);
	g_assert_cmpint(soft_run(b.c->vcpu, ns), ==, RUN_DEADLINE);
	g_assert_cmpint(a.c->vcpu->parked, ==, loop->parks);
	g_assert_false(b.c->vcpu->parked);
	expect_same(a.c, b.c);
	begin = soft_units(a.c);
	spinning = a.c->spent[TIME_spinning];
	for (i = 0; loop->parks && i < 600; i++) {
		ns += i % 100 == 99 ? 100000 : i % 37;
		soft_spin_until(a.c->vcpu, ns);
		soft_run(b.c->vcpu, ns);
		soft_settle(a.c);
		soft_settle(b.c);
		expect_same(a.c, b.c);
	}
	/* But for an iteration in hand at either end. */
	if (loop->parks)
		g_assert_cmpuint(a.c->spent[TIME_spinning] - spinning + a.c->spin.period.units, >, soft_units(a.c) - begin);
	lines_teardown(&a.t);
	lines_teardown(&b.t);
}

/* Who wakes it: a store to a line that it reads, and to no other; then it sees what was stored, as soon as one that spun. */
static void test_wake(void)
{
	struct spin a, b;
	struct spin *s;
	u64 done[2];
	u32 i;

	spin_setup(&a, &loops[0], false);
	spin_setup(&b, &loops[0], true);
	for (i = 0; i < 2; i++) {
		s = i ? &b : &a;
		soft_run(s->c->vcpu, 20000);
		lines_at(s->other, soft_units_of(s->c->svm, 20000));
		lines_access(&s->t, s->other, (FLAG + 4096) / LINE_BYTES, LINE_WRITE);
		g_assert_cmpuint(nr_unparked, ==, 0);
		g_assert_cmpint(s->c->vcpu->parked, ==, !i);
		lines_access(&s->t, s->other, FLAG / LINE_BYTES, LINE_WRITE);
		*(u64 *)soft_fixture_ram(s->t.f, FLAG, 8) = 1;
		g_assert_cmpuint(nr_unparked, ==, i ? 0 : 1);
		nr_unparked = 0;
		g_assert_false(s->c->vcpu->parked);
		/* HLT is where it gets out. */
		g_assert_cmpint(soft_run(s->c->vcpu, FOREVER_NS), ==, RUN_HLT);
		done[i] = soft_units(s->c);
	}
	g_assert_cmpuint(done[0], ==, done[1]);
	expect_same(a.c, b.c);
	lines_teardown(&a.t);
	lines_teardown(&b.t);
}

/* A line that goes in the middle of an iteration that has read it already: that iteration is no proof of the next. */
static void test_late(void)
{
	struct spin s;
	u64 ns;

	/* At every place of the loop where a turn may end, before and after it is watched. */
	for (ns = 100; ns < 700; ns++) {
		spin_setup(&s, &loops[0], false);
		soft_run(s.c->vcpu, ns);
		if (!s.c->vcpu->parked) {
			lines_at(s.other, soft_units(s.c));
			lines_access(&s.t, s.other, FLAG / LINE_BYTES, LINE_WRITE);
			*(u64 *)soft_fixture_ram(s.t.f, FLAG, 8) = 1;
			g_assert_cmpint(soft_run(s.c->vcpu, FOREVER_NS), ==, RUN_HLT);
		}
		lines_teardown(&s.t);
	}
}

/* What a device writes, code that is written, and a page that is taken away wake it as well. */
static void test_wake_all(void)
{
	struct spin s;

	spin_setup(&s, &loops[0], false);
	soft_run(s.c->vcpu, 20000);
	g_assert_true(s.c->vcpu->parked);
	soft_gpa_written(&s.t.f->vm, FLAG, 8);
	g_assert_false(s.c->vcpu->parked);
	soft_run(s.c->vcpu, 40000);
	g_assert_true(s.c->vcpu->parked);
	soft_gpa_lowered(&s.t.f->vm, FLAG, PAGE_SIZE, GPA_NONE);
	g_assert_false(s.c->vcpu->parked);
	soft_run(s.c->vcpu, 80000);
	g_assert_true(s.c->vcpu->parked);
	soft_gpa_written(&s.t.f->vm, FIXTURE_CODE, 1);
	g_assert_false(s.c->vcpu->parked);
	lines_teardown(&s.t);
}

int main(int argc, char **argv)
{
	u32 i;

	g_test_init(&argc, &argv, NULL);
	for (i = 0; i < ARRAY_SIZE(loops); i++) {
		g_autofree char *path = g_strdup_printf("/soft-spin/loop/%s", loops[i].name);

		g_test_add_data_func(path, &loops[i], test_loop);
	}
	g_test_add_func("/soft-spin/wake", test_wake);
	g_test_add_func("/soft-spin/late", test_late);
	g_test_add_func("/soft-spin/wake_all", test_wake_all);
	return g_test_run();
}
