// SPDX-License-Identifier: GPL-2.0-only
/*
 * Do the numbers of a cost model fit together? Only what holds for every machine is
 * asked for: a profile of an odd one must pass, and one with two lines swapped must not.
 */
#include "cost-check.h"

#include <errno.h>
#include <string.h>

#include "cost-file.h"

#define LINES_A_KIB	(1024 / 64)

struct check {
	const struct cost_model *m;
	GPtrArray *keys;		/* NULL: the model came from no file */
	const char *origin;
	const char *section;		/* that `keys` are in, NULL: each in its own */
	struct scenario_problems *problems;
};

/* Where a key stands, or the whole model's place if it came from no file. */
static const char *origin_of(const struct check *c, enum cost_id id)
{
	const char *section = c->section ? c->section : cost_section_of(id);
	const struct scenario_key *k = c->keys ? scenario_key_find(c->keys, section, cost_desc[id].name) : NULL;

	return k ? k->origin : c->origin;
}

static bool power_of_two(u64 n)
{
	return n && !(n & (n - 1));
}

/* A TLB is looked up by the low bits of the page number, so its sets are a power of two. */
static void check_tlbs(const struct check *c)
{
	static const enum cost_id tlb[][2] = {
		{ COST_l1d_4k_entries, COST_l1d_4k_ways }, { COST_l1d_2m_entries, COST_l1d_2m_ways },
		{ COST_l1d_1g_entries, COST_l1d_1g_ways }, { COST_l1i_4k_entries, COST_l1i_4k_ways },
		{ COST_l1i_2m_entries, COST_l1i_2m_ways }, { COST_l2_entries, COST_l2_ways },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(tlb); i++) {
		const char *name = cost_desc[tlb[i][1]].name, *of = cost_desc[tlb[i][0]].name;
		u64 entries = c->m->v[tlb[i][0]], ways = c->m->v[tlb[i][1]], sets = entries / ways;

		if (entries % ways)
			scenario_problem(c->problems, origin_of(c, tlb[i][1]),
					 "cost.%s: %llu ways do not divide the %llu entries of %s", name,
					 (unsigned long long)ways, (unsigned long long)entries, of);
		else if (!power_of_two(sets))
			scenario_problem(c->problems, origin_of(c, tlb[i][1]),
					 "cost.%s: %llu entries of %llu ways make %llu sets, which is no power of two",
					 name, (unsigned long long)entries, (unsigned long long)ways,
					 (unsigned long long)sets);
	}
}

/*
 * Within one quantum a CPU may be ahead of another, so what the one does must not reach
 * the other sooner (DESIGN: the lookahead of the lockstep).
 */
static void check_quantum_ipi(const struct check *c)
{
	static const enum cost_id latency[] = { COST_ipi_smt, COST_ipi_socket, COST_ipi_remote };
	u64 quantum = cost(c->m, quantum);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(latency); i++)
		if (c->m->v[latency[i]] < quantum)
			scenario_problem(c->problems, origin_of(c, latency[i]),
					 "cost.%s: %lluns is shorter than the quantum of %lluns, and an interrupt would come before it was sent",
					 cost_desc[latency[i]].name, (unsigned long long)c->m->v[latency[i]],
					 (unsigned long long)quantum);
}

/* The same of lines. A core's own threads are not far apart: they are stepped as one. */
static void check_quantum_lines(const struct check *c)
{
	static const enum cost_id latency[] = { COST_line_socket_clean, COST_line_socket_dirty, COST_line_remote_clean,
						COST_line_remote_dirty };
	enum cost_id least = latency[0], at;
	u32 i;

	for (i = 1; i < ARRAY_SIZE(latency); i++)
		if (c->m->v[latency[i]] < c->m->v[least])
			least = latency[i];
	/* Of a change it may be the one or the other. */
	at = c->section && !scenario_key_find(c->keys, c->section, "quantum") ? least : COST_quantum;
	if (cost(c->m, quantum) * 1000 > c->m->v[least])
		scenario_problem(c->problems, origin_of(c, at),
				 "cost.quantum: %lluns is more than the %gns of %s, the shortest way of a line between two cores; it is that at most%s",
				 (unsigned long long)cost(c->m, quantum), (double)c->m->v[least] / 1e3,
				 cost_desc[least].name, c->section ? " (cost.quantum = auto makes it so)" : "");
}

struct cache_keys {
	enum cost_id kib, ways;
	bool indexed;	/* by address bits, so its sets are a power of two */
};

/* An L3 is made of slices chosen by a hash, as many as there are cores: any number of sets. */
static const struct cache_keys caches[] = {
	{ COST_cache_l1_kib, COST_cache_l1_ways, true },
	{ COST_cache_l2_kib, COST_cache_l2_ways, true },
	{ COST_cache_l3_kib, COST_cache_l3_ways, false },
};

static void check_cache(const struct check *c, const struct cache_keys *k)
{
	u64 lines = c->m->v[k->kib] * LINES_A_KIB, ways = c->m->v[k->ways], sets = lines / ways;
	const char *name = cost_desc[k->ways].name, *of = cost_desc[k->kib].name;

	if (lines % ways)
		scenario_problem(c->problems, origin_of(c, k->ways),
				 "memory.%s: %llu ways do not divide the %llu lines of 64 bytes that %s makes", name,
				 (unsigned long long)ways, (unsigned long long)lines, of);
	else if (k->indexed && !power_of_two(sets))
		scenario_problem(c->problems, origin_of(c, k->ways),
				 "memory.%s: %llu lines (%s) of %llu ways make %llu sets, which is no power of two",
				 name, (unsigned long long)lines, of, (unsigned long long)ways, (unsigned long long)sets);
}

/* Each cache has what the one before it has. */
static void check_caches(const struct check *c)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(caches); i++)
		check_cache(c, &caches[i]);
	for (i = 1; i < ARRAY_SIZE(caches); i++)
		if (c->m->v[caches[i].kib] < c->m->v[caches[i - 1].kib])
			scenario_problem(c->problems, origin_of(c, caches[i].kib),
					 "memory.%s: %llu KiB cannot include the %llu KiB of %s",
					 cost_desc[caches[i].kib].name, (unsigned long long)c->m->v[caches[i].kib],
					 (unsigned long long)c->m->v[caches[i - 1].kib],
					 cost_desc[caches[i - 1].kib].name);
}

/* In ps, also what is written in cycles. */
static double picoseconds(const struct cost_model *m, enum cost_id id)
{
	if (cost_desc[id].kind == COST_KIND_CYCLES)
		return (double)m->v[id] / (double)COST_CYCLE * 1e12 / (double)cost(m, clock);
	return (double)m->v[id];
}

/* What is nearer, or one of a sequence, does not take longer. */
static void check_distances(const struct check *c)
{
	static const struct {
		enum cost_id less, more;
	} order[] = {
		{ COST_l2_hit, COST_l3_hit },
		{ COST_l3_hit, COST_line_socket_clean },
		{ COST_l3_hit, COST_line_socket_dirty },
		{ COST_l3_hit, COST_dram_local },
		{ COST_line_sibling, COST_line_socket_dirty },
		{ COST_line_socket_clean, COST_line_remote_clean },
		{ COST_line_socket_dirty, COST_line_remote_dirty },
		{ COST_dram_local, COST_dram_remote },
		{ COST_stream_l2, COST_stream_l3 },
		{ COST_stream_l3, COST_stream_dram },
		{ COST_stream_dram, COST_stream_remote },
		{ COST_stream_l2, COST_l2_hit },
		{ COST_stream_l3, COST_l3_hit },
		{ COST_stream_dram, COST_dram_local },
		{ COST_stream_remote, COST_dram_remote },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(order); i++) {
		double less = picoseconds(c->m, order[i].less), more = picoseconds(c->m, order[i].more);

		if (less > more)
			scenario_problem(c->problems, origin_of(c, order[i].less),
					 "memory.%s: %.6gns is more than the %.6gns of %s; it is that at most",
					 cost_desc[order[i].less].name, less / 1e3, more / 1e3,
					 cost_desc[order[i].more].name);
	}
}

void cost_check_model(const struct cost_model *m, GPtrArray *keys, const char *origin,
		      struct scenario_problems *problems)
{
	const struct check c = { .m = m, .keys = keys, .origin = origin, .problems = problems };

	check_tlbs(&c);
	check_quantum_ipi(&c);
	if (!m->memory)
		return;
	check_quantum_lines(&c);
	check_caches(&c);
	check_distances(&c);
}

/* How many of a value make one of what stands in a file. */
static double unit_of(const struct cost_desc *d)
{
	switch (d->kind) {
	case COST_KIND_CYCLES:
		return (double)COST_CYCLE;
	case COST_KIND_RATIO:
		return (double)COST_RATIO;
	case COST_KIND_NS:
	case COST_KIND_COUNT:
	case COST_KIND_HZ:
	case COST_KIND_PS:
		break;
	}
	return 1;
}

/* A file's values were judged as they were read. Half a step is what reading rounds off. */
static void check_ranges(const struct check *c)
{
	const struct cost_model *m = c->m;
	u32 i;

	for (i = 0; i < NR_COSTS; i++) {
		const struct cost_desc *d = &cost_desc[i];
		double unit = unit_of(d), v = (double)m->v[i];

		if (d->memory && !m->memory) {
			if (m->v[i])
				scenario_problem(c->problems, origin_of(c, i),
						 "memory.%s has a value, but the model has no [memory]", d->name);
		} else if (v < d->min * unit - 0.5 || v > d->max * unit + 0.5) {
			scenario_problem(c->problems, origin_of(c, i), "%s.%s: %g is not between %g and %g",
					 c->section ? c->section : cost_section_of(i), d->name, v / unit, d->min, d->max);
		}
	}
}

void cost_check_change(const struct cost_model *m, GPtrArray *keys, const char *origin,
		       struct scenario_problems *problems)
{
	const struct check c = { .m = m, .keys = keys, .origin = origin, .section = "cost", .problems = problems };
	u32 before = problems->count;

	check_ranges(&c);
	if (problems->count != before)
		return;
	check_tlbs(&c);
	check_quantum_ipi(&c);
	if (!m->memory)
		return;
	check_quantum_lines(&c);
	check_caches(&c);
}

int cost_check(const struct cost_model *model, const char *origin)
{
	struct scenario_problems problems;
	const struct check c = { .m = model, .origin = origin, .problems = &problems };
	u32 count;

	scenario_problems_init(&problems);
	check_ranges(&c);
	if (!problems.count)
		cost_check_model(model, NULL, origin, &problems);
	count = problems.count;
	scenario_problems_destroy(&problems);
	return count ? -EINVAL : 0;
}
