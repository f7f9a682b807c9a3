/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A cost model: what the soft engine charges and how large its TLBs are. Plain
 * numbers, constant once the VM is built; vmm/cost-file.c reads them from
 * cost-models/NAME.ini, where each carries its source. No engine but soft uses it.
 */
#ifndef CORE_COST_H
#define CORE_COST_H

#include "base/types.h"

/* Cycles are kept with 8 fractional bits: COST_CYCLE of them make one. */
#define COST_CYCLE	256ull

enum cost_id {
#define COST(field, kind, min, max, meaning)	COST_##field,
#include "core/cost.def"
#undef COST
	NR_COSTS
};

enum cost_kind {
	COST_KIND_CYCLES,	/* value in 1/COST_CYCLE cycles */
	COST_KIND_NS,		/* value in ns */
	COST_KIND_COUNT,	/* as it is */
	COST_KIND_HZ,		/* value in Hz */
	COST_KIND_RATIO,	/* value in 1/COST_RATIO */
	COST_KIND_PS,		/* value in ps */
};
#define COST_RATIO	256ull

struct cost_desc {
	const char *name;
	enum cost_kind kind;
	bool memory;		/* of [memory] */
	double min, max;	/* as written in a file: cycles, ns, count, Hz, a ratio; of PS, ps */
	const char *meaning;
};
extern const struct cost_desc cost_desc[NR_COSTS];

struct cost_model {
	char name[64];
	char digest[65];	/* SHA-256 of the file's text, hex: part of a snapshot's key and of results */
	bool memory;		/* there is a [memory]: caches and lines are modelled; if not, its values are 0 */
	bool changed;		/* by a scenario (vmm/cost-change.h): no longer what the file says */
	u64 v[NR_COSTS];	/* in the unit of the kind */
	u64 low[NR_COSTS], high[NR_COSTS];	/* of an estimate, where the file believes it to lie; else the value */
};

/* The section of a key: "memory" or "cost". */
static inline const char *cost_section_of(u32 id)
{
	return cost_desc[id].memory ? "memory" : "cost";
}

/* Fill in `simple`, the model of cost-models/simple.ini, for tests that have no file. Any thread. */
void cost_default(struct cost_model *model);

/* The value of a cost: cost(m, l2_ways). */
#define cost(model, field)	((model)->v[COST_##field])

#endif
