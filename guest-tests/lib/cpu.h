/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CPUs of this guest: binding threads, CPU lists, and who is whose sibling,
 * as /sys says it. No state; any thread.
 */
#ifndef LIB_CPU_H
#define LIB_CPU_H

#include "lib/util.h"

#define CPU_MAX		1024

/* CPU numbers in a set, as a bit a CPU. */
struct cpu_mask {
	u64 word[CPU_MAX / 64];
};

static inline bool cpu_mask_test(const struct cpu_mask *m, u32 cpu)
{
	return cpu < CPU_MAX && (m->word[cpu / 64] >> (cpu % 64) & 1);
}

static inline void cpu_mask_set(struct cpu_mask *m, u32 cpu)
{
	m->word[cpu / 64] |= 1ull << (cpu % 64);
}

u32 cpu_mask_count(const struct cpu_mask *m);
bool cpu_mask_equal(const struct cpu_mask *a, const struct cpu_mask *b);
/* "0-3,8" into *m; false if it is malformed. An empty list is a valid empty mask. */
bool cpu_mask_parse(const char *text, struct cpu_mask *m);
/* *m as "0-3,8". */
void cpu_mask_format(const struct cpu_mask *m, char *buf, size_t size);
/* Read a cpulist file. 0, or -errno (-EINVAL: not a list). */
int cpu_mask_read(const char *path, struct cpu_mask *m);

/* Bind the calling thread to one CPU. 0, or -errno. */
int cpu_bind(u32 cpu);

/* How far one CPU is from another, nearest first. */
enum cpu_class {
	CPU_SELF,
	CPU_SMT,
	CPU_SOCKET,
	CPU_REMOTE,
	NR_CPU_CLASSES
};

const char *cpu_class_name(enum cpu_class class);

struct cpu_map {
	u32 nr;				/* highest online CPU + 1 */
	u32 nr_nodes;			/* highest node with a CPU + 1 */
	struct cpu_mask online;
	int core[CPU_MAX];		/* lowest CPU of its core; -1 = not online */
	int package[CPU_MAX];		/* lowest CPU of its package */
	int node[CPU_MAX];		/* 0 without NUMA */
};

/* Read it from /sys. 0, or -errno when /sys has no CPUs. */
int cpu_map_read(struct cpu_map *map);
enum cpu_class cpu_map_class(const struct cpu_map *map, u32 a, u32 b);

#endif
