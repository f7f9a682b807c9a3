/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The guest's topology: sockets x cores x threads, APIC ids, CPU order, NUMA
 * nodes and distances. CPUID, MADT, SRAT, SLIT, injection classes and the cost
 * model all derive from this one object. Constant once topology_init() has
 * returned 0; any thread may read it.
 */
#ifndef CORE_TOPOLOGY_H
#define CORE_TOPOLOGY_H

#include "base/types.h"

#define TOPOLOGY_MAX_CPUS	512
#define TOPOLOGY_MAX_NODES	32
#define XAPIC_MAX_ID		254	/* 255 is the broadcast id (SDM 3A 10.6.2.1) */

enum cpu_order {
	CPU_ORDER_SIBLINGS_LAST,	/* first threads of all cores, then the second threads */
	CPU_ORDER_SIBLINGS_ADJACENT,
};

/* How far one vCPU is from another; the classes that injection and counters use. */
enum distance_class {
	DISTANCE_SELF,
	DISTANCE_SMT,		/* same core */
	DISTANCE_SOCKET,	/* same socket, other core */
	DISTANCE_REMOTE,	/* other socket */
	NR_DISTANCE_CLASSES
};

/* What a scenario says; zero or NULL members mean the default. */
struct topology_params {
	u32 sockets, cores, threads;
	enum cpu_order order;
	bool x2apic;			/* allow APIC ids above XAPIC_MAX_ID */
	u32 nodes;			/* 0 = one a socket */
	u64 memory;			/* bytes of guest RAM */
	const u64 *node_memory;		/* per node, NULL = even split; 0 = a memoryless node */
	const u32 *distance;		/* NULL = 10 local, 21 remote */
	u32 nr_distance;		/* 2 = "local,remote", or nodes * nodes, row by row */
};

struct topology_cpu {
	u32 apic_id;
	u32 socket, core, thread;	/* core within the socket, thread within the core */
	u32 node;
};

struct topology {
	u32 sockets, cores, threads;
	u32 nr_cpus;
	enum cpu_order order;
	u32 thread_bits, core_bits, socket_bits;	/* widths of the APIC id's fields */
	u32 l3_per_socket;	/* nodes above sockets split a socket's L3, else 1 */
	u32 l3_shift;		/* CPUs with equal apic_id >> l3_shift share an L3 */
	u32 nr_nodes;
	u64 node_memory[TOPOLOGY_MAX_NODES];		/* bytes, page aligned */
	u32 distance[TOPOLOGY_MAX_NODES][TOPOLOGY_MAX_NODES];	/* as in SLIT */
	struct topology_cpu cpu[TOPOLOGY_MAX_CPUS];	/* by CPU number */
};

/*
 * "2x10x2" into sockets, cores and threads: three positive decimal numbers.
 * -EINVAL for anything else; *err then says what and what would be right
 * (caller frees with g_free()).
 */
int topology_parse(const char *text, u32 *sockets, u32 *cores, u32 *threads, char **err);

/*
 * Fill *topo. -EINVAL with *err set (g_free() it): a count of zero, more than
 * TOPOLOGY_MAX_CPUS vCPUs, an APIC id above 254 without x2apic, a node count
 * that does not divide by or into sockets sensibly (nodes above sockets split a
 * socket's cores and L3 evenly or are refused), memory smaller than the nodes
 * need (16 MiB a node that has memory; 64 MiB at node 0), node_memory that does
 * not add up, a distance matrix of the wrong size, not 10 on the diagonal or
 * not above 10 (and at most 254) off it.
 */
int topology_init(struct topology *topo, const struct topology_params *params, char **err);

/* The distance class between two CPU numbers. */
enum distance_class topology_class(const struct topology *topo, u32 a, u32 b);
/* Is there an APIC id above XAPIC_MAX_ID (which includes: more CPUs than that)? */
bool topology_needs_x2apic(const struct topology *topo);
/* "self", "smt", "socket", "remote". */
const char *distance_class_name(enum distance_class class);
/* CPU number of an APIC id, or -1. */
int topology_cpu_of_apic_id(const struct topology *topo, u32 apic_id);

#endif
