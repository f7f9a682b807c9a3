/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Injection: distributions of delays, the scopes they apply to, and their
 * accounting. A `struct inject` is built from the scenario's [inject] keys before
 * the VM starts and its rules are constant then. Each vCPU and point has its own
 * seeded stream, so the delays of one vCPU do not depend on what others do.
 *
 * Keys (section [inject]), value a distribution unless said otherwise:
 *   ipi.all | ipi.self | ipi.smt | ipi.socket | ipi.remote | ipi.node.A-B
 *   ipi.vectors = 0xLO..0xHI      only IPIs with such a vector (default all of 0x10..0xff)
 *   ept.all | ept.first_touch | ept.refault_delay | ept.write_protect_delay | ept.node.N (node of the page)
 *   ept.refault = RATE            pages a second whose mapping is dropped, "2000/s"
 *   ept.write_protect = RATE      pages a second whose mapping loses the right to be written
 *   ept.count = yes|no            serve second-level faults here to count them, with no delay
 *   timer.all, exit.all
 *   blk.all | blk.read | blk.write | blk.flush
 *   blk.depth = N                 at most N disk requests wait out their delays at once (default: any number)
 * The most specific rule that matches wins: node pair, then class, then all. The
 * distribution "none" gives no delay (a rule that removes a wider one's).
 *
 * A boot that waited for every first touch would take minutes, so nothing is
 * delayed before the guest's command starts (`on`).
 */
#ifndef CORE_INJECT_H
#define CORE_INJECT_H

#include <glib.h>

#include "base/rng.h"
#include "base/types.h"
#include "core/counters.h"
#include "core/topology.h"

enum inject_point {
#define INJECT_POINT(name, engines, meaning)	INJECT_##name,
#include "core/inject.def"
#undef INJECT_POINT
	NR_INJECT_POINTS
};

enum dist_kind {
	DIST_NONE,
	DIST_FIXED,		/* a */
	DIST_UNIFORM,		/* a..b */
	DIST_EXP,		/* mean a */
	DIST_LOGNORMAL,		/* median a, sigma (of the logarithm) s */
	DIST_PARETO,		/* minimum a, shape s */
	DIST_TRACE,		/* durations of a file, one a line, in turn from a seeded start */
};

struct dist {
	enum dist_kind kind;
	double a, b, s;		/* a, b in ns */
	u64 *trace;		/* ns, owned */
	u32 nr_trace;
};

/*
 * "fixed:5us", "uniform:2us..8us", "exp:5us", "lognormal:2us,0.5",
 * "pareto:1us,2.5", "trace:FILE" (relative to `dir` if not absolute). Units ns,
 * us, ms, s. -EINVAL with *err (g_free()) naming what is wrong and what would be
 * right: no unit, negative, above 10 s, uniform's ends reversed, sigma not in (0,10],
 * alpha not above 0, an unreadable, empty or malformed trace (with its line).
 */
int dist_parse(struct dist *dist, const char *text, const char *dir, char **err);
void dist_destroy(struct dist *dist);
/* One delay in ns, at most 10 s. `pos` is the trace position of the stream. */
u64 dist_draw(const struct dist *dist, struct rng *rng, u32 *pos);
/* The smallest delay the distribution can give, ns. */
u64 dist_min(const struct dist *dist);
/* Mean in ns, for reports; INFINITY for a Pareto with alpha <= 1. */
double dist_mean(const struct dist *dist);

/* Why a second-level fault happens. Classes of the point `ept`, in this order. */
enum ept_cause {
	EPT_FIRST_TOUCH,	/* the page had no mapping yet */
	EPT_REFAULT,		/* its mapping was dropped */
	EPT_WRITE_PROTECT,	/* a write, and its mapping allows reads only */
	NR_EPT_CAUSES
};

/* "first_touch", "refault", "write_protect". */
const char *ept_cause_name(enum ept_cause cause);

/* What a disk is asked for. Classes of the point `blk`, in this order. */
enum blk_op {
	BLK_READ,
	BLK_WRITE,
	BLK_FLUSH,
	BLK_OTHER,		/* get-id, and what the device does not know */
	NR_BLK_OPS
};

/* "read", "write", "flush", "other". */
const char *blk_op_name(enum blk_op op);

/* What an event is, for the match; members that do not apply are 0. */
struct inject_event {
	enum distance_class class;	/* ipi */
	u32 src_node, dst_node;		/* ipi: of the vCPUs; ept: vCPU's node and page's node */
	u8 vector;			/* ipi */
	enum ept_cause ept;		/* ept */
	enum blk_op blk;		/* blk */
};

struct inject_stream {
	struct rng rng;
	u32 trace_pos;
	GMutex lock;		/* a service thread and the vCPU's own may draw */
};

struct inject_rule;

struct inject {
	struct inject_rule *rules;		/* (c) */
	u32 nr_rules;				/* (c) */
	bool active[NR_INJECT_POINTS];		/* (c) the one predictable branch */
	_Atomic bool on;			/* (a) delays are given while set: command's start to end */
	bool ept_serve;				/* (c) second-level faults must be served in the VMM */
	u64 ept_refault_per_s;			/* (c) 0 = none */
	u64 ept_protect_per_s;			/* (c) 0 = none */
	u8 ipi_vector_min, ipi_vector_max;	/* (c) */
	u32 blk_depth;				/* (c) 0 = no limit */
	u32 nr_vcpus;				/* (c) */
	struct inject_stream (*stream)[NR_INJECT_POINTS];	/* per vCPU */
	/* (a) by class; ept: by cause; blk: by operation */
	struct hist hist[NR_INJECT_POINTS][NR_DISTANCE_CLASSES];
};

void inject_init(struct inject *inj);
/* Add one key. -EINVAL with *err (g_free()); the nearest valid key is named for an unknown one. */
int inject_add(struct inject *inj, const char *key, const char *value, const char *dir, char **err);
/* Do the rules name nodes that there are? -EINVAL with *err (g_free()). */
int inject_check_nodes(const struct inject *inj, u32 nr_nodes, char **err);
/* Allocate and seed the streams. Call once, after the last inject_add(). */
void inject_start(struct inject *inj, u32 nr_vcpus, u64 seed);
/* Begin all streams afresh, as inject_start() would: each repeat has its own seed. Any thread. */
void inject_seed(struct inject *inj, u64 seed);
void inject_destroy(struct inject *inj);
/*
 * Does anything have to be drawn for an event at this point now? The one
 * predictable branch that a point with nothing to inject costs.
 */
static inline bool inject_enabled(const struct inject *inj, enum inject_point point)
{
	return __builtin_expect(inj->active[point], 0) &&
	       __atomic_load_n((const bool *)&inj->on, __ATOMIC_RELAXED);
}

/*
 * The delay in ns for one event at a point, drawn from vcpu's stream and
 * accounted; 0 if no rule matches. Callers test inject_enabled() first. Any
 * thread.
 */
u64 inject_delay(struct inject *inj, enum inject_point point, u32 vcpu,
		 const struct inject_event *ev);
/* The smallest delay any rule of the point can give, ns; CLOCK_NEVER-like UINT64_MAX if no rule. */
u64 inject_min(const struct inject *inj, enum inject_point point);
const char *inject_point_name(enum inject_point point);
/* What a class of the point is called: "remote", "first_touch", "read", ... */
const char *inject_class_name(enum inject_point point, u32 class);

#endif
