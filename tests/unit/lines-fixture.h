/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A memory model with nothing executed on it, for its tests: vCPUs whose clocks the test sets, and accesses that
 * they make. The numbers are soft_fixture_memory()'s, or what the test makes of them.
 */
#ifndef TESTS_LINES_FIXTURE_H
#define TESTS_LINES_FIXTURE_H

#include "soft-fixture.h"
#include "soft/line-model.h"

#define NODE_MIB	4u
#define NODE_LINES	((u64)NODE_MIB * MIB / LINE_BYTES)

struct lines_fixture {
	struct soft_fixture *f;
	struct soft_lines *ls;
	struct soft_op op;	/* the instruction in hand of all accesses */
	u64 now;		/* units */
};

static inline void lines_setup(struct lines_fixture *t, u32 sockets, u32 cores, u32 threads, const struct cost_model *m)
{
	struct topology_params params = { .sockets = sockets, .cores = cores, .threads = threads, .memory = 4 * GIB };
	struct cost_model model;

	soft_fixture_memory(&model);
	*t = (struct lines_fixture){ .f = soft_fixture_new_on(NODE_MIB, &params, m ? m : &model) };
	t->ls = ((struct soft_vm *)t->f->vm.engine_data)->lines;
	t->op.base = t->op.index = GPR_ZERO;
	t->op.dst = DST_LOCKED;
}

static inline void lines_teardown(struct lines_fixture *t)
{
	soft_fixture_free(t->f);
}

static inline u64 ps(const struct lines_fixture *t, u64 picoseconds)
{
	return soft_units_of_ps(t->f->vm.engine_data, picoseconds);
}
/* What a key of the cost model is, in units. */
#define ps_of(t, key)	ps((t), cost(&(t)->f->vm.cost, key))

static inline struct soft_cpu *lines_cpu(const struct lines_fixture *t, u32 socket, u32 core, u32 thread)
{
	const struct topology *topo = &t->f->vm.topo;
	u32 i;

	for (i = 0; i < topo->nr_cpus; i++)
		if (topo->cpu[i].socket == socket && topo->cpu[i].core == core && topo->cpu[i].thread == thread)
			return soft_cpu(t->f->vm.vcpu[i]);
	g_assert_not_reached();
}

static inline void lines_at(struct soft_cpu *c, u64 units)
{
	c->end = units;
	c->left = 0;
}

/* All that is under way is done, and all clocks show the same. */
static inline u64 lines_later(struct lines_fixture *t)
{
	u32 i;

	t->now += ps(t, 10000000);
	for (i = 0; i < t->f->vm.topo.nr_cpus; i++) {
		lines_at(soft_cpu(t->f->vm.vcpu[i]), t->now);
		soft_cpu(t->f->vm.vcpu[i])->insns += 1000;
	}
	return t->now;
}

/* One access, as an instruction of its own would make it; the time that it costs. */
static inline u64 lines_access(struct lines_fixture *t, struct soft_cpu *c, u64 line, enum line_kind kind)
{
	u64 before = soft_units(c);

	c->insns++;
	c->cur = &t->op;
	if (kind == LINE_LOCKED || !line_filter_hit(c, line, line_kind_writes(kind)))
		g_assert_false(soft_line(c, line, kind, false));
	c->cur = NULL;
	return soft_units(c) - before;
}

/* The same by an instruction that waits for its line: true if it has to be begun anew. */
static inline bool lines_try(struct lines_fixture *t, struct soft_cpu *c, u64 line, enum line_kind kind)
{
	bool waits = false;

	c->cur = &t->op;
	if (kind == LINE_LOCKED || !line_filter_hit(c, line, line_kind_writes(kind)))
		waits = soft_line(c, line, kind, true);
	c->cur = NULL;
	return waits;
}

/* Once nothing else is under way: what a load costs that is waited for, and what taking a line for writing costs. */
static inline u64 lines_read(struct lines_fixture *t, struct soft_cpu *c, u64 line)
{
	lines_later(t);
	return lines_access(t, c, line, LINE_WALK);
}
static inline u64 lines_write(struct lines_fixture *t, struct soft_cpu *c, u64 line)
{
	lines_later(t);
	return lines_access(t, c, line, LINE_LOCKED) - cost(&t->f->vm.cost, lock);
}

#endif
