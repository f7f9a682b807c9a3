/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Host-side counters and histograms. counters.def names every counter; this
 * file gives each an index. A counter that the engine cannot observe is marked
 * in the .def and prints n/a, never 0.
 *
 * A vCPU's array is written by any thread that acts for the vCPU (its own, a
 * userfaultfd service thread), with relaxed atomics, and read by any thread.
 */
#ifndef CORE_COUNTERS_H
#define CORE_COUNTERS_H

#include "base/types.h"

enum counter {
#define COUNTER(name, unit, scope, engines, meaning)	COUNTER_##name,
#include "core/counters.def"
#undef COUNTER
	NR_COUNTERS
};

/* Who can observe a counter. */
#define OBS_KVM		BIT(0)	/* the kvm engine, from exits and upcalls */
#define OBS_SOFT	BIT(1)	/* the soft engine */
#define OBS_APIC	BIT(2)	/* only with a userspace local APIC */
#define OBS_EPT		BIT(3)	/* only while second-level faults are served here */
#define OBS_GUEST	BIT(4)	/* the guest kernel, through the channel or /proc */
#define OBS_KSTAT	BIT(5)	/* KVM's binary statistics */
#define OBS_DISK	BIT(6)	/* only with a disk */
#define OBS_LINES	BIT(7)	/* only with a memory model */

struct counter_desc {
	const char *name;
	const char *unit;	/* "events", "ns", ... */
	const char *scope;	/* "vcpu" or "vm" */
	u32 engines;		/* OBS_* */
	const char *meaning;
};
extern const struct counter_desc counter_desc[NR_COUNTERS];

struct counters {
	_Atomic u64 v[NR_COUNTERS];
};

static inline void counter_add(struct counters *c, enum counter i, u64 n)
{
	__atomic_fetch_add((u64 *)&c->v[i], n, __ATOMIC_RELAXED);
}

static inline u64 counter_read(const struct counters *c, enum counter i)
{
	return __atomic_load_n((const u64 *)&c->v[i], __ATOMIC_RELAXED);
}

/* log2 histogram of durations: bucket i counts values in [2^i, 2^(i+1)) ns; 0 counts 0 and 1. */
#define HIST_BUCKETS	40

struct hist {
	_Atomic u64 count, sum, min, max;	/* min is UINT64_MAX while empty */
	_Atomic u64 bucket[HIST_BUCKETS];
};

void hist_init(struct hist *h);
/* Any thread. */
void hist_add(struct hist *h, u64 value);
/* A region begins: from here on min and max are those of its values. The rest goes on counting. Any thread. */
void hist_begin(struct hist *h);
/*
 * out = later - earlier. Extremes cannot be subtracted: min and max are those of `later`, so
 * `earlier` is to be a copy made at a hist_begin() and no other region may have begun since.
 */
void hist_sub(struct hist *out, const struct hist *later, const struct hist *earlier);
/* A quantile (0..1), interpolated inside its bucket; 0 if empty. */
double hist_quantile(const struct hist *h, double q);

#endif
