// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <glib.h>
#include <inttypes.h>
#include <string.h>

#include "core/topology.h"

#define NODE_MIN	(16 * MIB)
#define NODE0_MIN	(64 * MIB)
#define LOCAL_DISTANCE	10u
#define REMOTE_DISTANCE	21u
#define MAX_DISTANCE	254u	/* 255 means "no path" in a SLIT (ACPI 6.5 section 5.2.17) */

static int fail(char **err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int fail(char **err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (err)
		*err = g_strdup_vprintf(fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* A positive decimal number without sign, space or leading zero; 0 if there is none. */
static u32 parse_count(const char **text)
{
	const char *p = *text;
	u64 n = 0;

	if (*p < '1' || *p > '9')
		return 0;
	for (; *p >= '0' && *p <= '9'; p++) {
		n = n * 10 + (u64)(*p - '0');
		if (n > UINT32_MAX)
			return 0;
	}
	*text = p;
	return (u32)n;
}

int topology_parse(const char *text, u32 *sockets, u32 *cores, u32 *threads, char **err)
{
	u32 *const count[3] = { sockets, cores, threads };
	const char *p = text;

	for (int i = 0; i < 3; i++) {
		*count[i] = parse_count(&p);
		if (!*count[i] || *p != (i < 2 ? 'x' : '\0'))
			return fail(err, "topology \"%s\" is not SOCKETSxCORESxTHREADS: three positive numbers such as 2x10x2 (cores are per socket, threads per core)",
				    text);
		p++;
	}
	return 0;
}

/* Bits that number n things. */
static u32 bits_for(u32 n)
{
	u32 bits = 0;

	while ((1ull << bits) < n)
		bits++;
	return bits;
}

static int init_counts(struct topology *t, const struct topology_params *p, char **err)
{
	u64 nr;

	if (!p->sockets || !p->cores || !p->threads)
		return fail(err, "topology %ux%ux%u has a count of zero: sockets, cores and threads must each be at least 1",
			    p->sockets, p->cores, p->threads);
	/* Each factor is bounded first, so that the product cannot overflow. */
	if (p->sockets > TOPOLOGY_MAX_CPUS || p->cores > TOPOLOGY_MAX_CPUS ||
	    p->threads > TOPOLOGY_MAX_CPUS ||
	    (nr = (u64)p->sockets * p->cores * p->threads) > TOPOLOGY_MAX_CPUS)
		return fail(err, "topology %ux%ux%u has more than %u vCPUs, the most supported",
			    p->sockets, p->cores, p->threads, TOPOLOGY_MAX_CPUS);
	t->sockets = p->sockets;
	t->cores = p->cores;
	t->threads = p->threads;
	t->nr_cpus = (u32)nr;
	t->order = p->order;
	return 0;
}

static int init_nodes(struct topology *t, const struct topology_params *p, char **err)
{
	u32 nodes = p->nodes ? p->nodes : t->sockets;

	if (nodes > TOPOLOGY_MAX_NODES)
		return fail(err, "%u NUMA nodes are more than %u, the most supported%s", nodes,
			    TOPOLOGY_MAX_NODES,
			    p->nodes ? "" : "; set nodes (the default is one a socket)");
	t->nr_nodes = nodes;
	t->l3_per_socket = 1;
	if (nodes <= t->sockets) {
		if (t->sockets % nodes)
			return fail(err, "nodes = %u does not divide %u sockets evenly", nodes,
				    t->sockets);
		return 0;
	}
	/*
	 * A node inside a socket needs an L3 of its own: one L3 over two nodes
	 * fails the topology_sane() check of Linux's arch/x86/kernel/smpboot.c.
	 */
	if (nodes % t->sockets || t->cores % (nodes / t->sockets))
		return fail(err, "nodes = %u cannot split %u sockets of %u cores evenly: nodes above the sockets must be a multiple of them that divides the cores of each",
			    nodes, t->sockets, t->cores);
	t->l3_per_socket = nodes / t->sockets;
	return 0;
}

/*
 * Each field of an APIC id is as wide as its count rounded up to a power of two
 * needs (SDM 3A 8.9 [9.9]). Where nodes split a socket, the core field has the L3
 * domain above the core within it, so that domains are power-of-two spans too.
 */
static int init_ids(struct topology *t, const struct topology_params *p, char **err)
{
	u32 cores_per_l3 = t->cores / t->l3_per_socket;
	u32 max_id;

	t->thread_bits = bits_for(t->threads);
	t->l3_shift = t->thread_bits + bits_for(cores_per_l3);
	t->core_bits = bits_for(cores_per_l3) + bits_for(t->l3_per_socket);
	t->socket_bits = bits_for(t->sockets);

	for (u32 socket = 0; socket < t->sockets; socket++) {
		for (u32 core = 0; core < t->cores; core++) {
			for (u32 thread = 0; thread < t->threads; thread++) {
				u32 flat = socket * t->cores + core;
				u32 n = t->order == CPU_ORDER_SIBLINGS_LAST ?
					thread * t->sockets * t->cores + flat :
					flat * t->threads + thread;
				struct topology_cpu *cpu = &t->cpu[n];

				cpu->socket = socket;
				cpu->core = core;
				cpu->thread = thread;
				cpu->node = t->nr_nodes <= t->sockets ?
					    socket / (t->sockets / t->nr_nodes) :
					    socket * t->l3_per_socket + core / cores_per_l3;
				cpu->apic_id = socket << (t->thread_bits + t->core_bits) |
					       (core / cores_per_l3) << t->l3_shift |
					       (core % cores_per_l3) << t->thread_bits | thread;
			}
		}
	}
	max_id = (t->sockets - 1) << (t->thread_bits + t->core_bits) |
		 (t->l3_per_socket - 1) << t->l3_shift |
		 (cores_per_l3 - 1) << t->thread_bits | (t->threads - 1);
	if (max_id > XAPIC_MAX_ID && !p->x2apic)
		return fail(err, "topology %ux%ux%u needs APIC ids up to %u, but an xAPIC has ids to %u only: use apic = x2apic where the engine has it, or fewer vCPUs",
			    t->sockets, t->cores, t->threads, max_id, XAPIC_MAX_ID);
	return 0;
}

static int check_node_memory(const struct topology *t, char **err)
{
	for (u32 n = 0; n < t->nr_nodes; n++) {
		u64 min = n ? NODE_MIN : NODE0_MIN;

		if (n && !t->node_memory[n])
			continue;	/* a memoryless node */
		if (t->node_memory[n] < min)
			return fail(err, "node %u would have %" PRIu64 " KiB of memory, but needs %" PRIu64 " MiB: give more memory or fewer nodes",
				    n, t->node_memory[n] / 1024, min >> 20);
	}
	return 0;
}

static int init_memory(struct topology *t, const struct topology_params *p, char **err)
{
	u64 sum = 0;

	if (!p->memory || p->memory % PAGE_SIZE || p->memory > UINT64_MAX / 2)
		return fail(err, "memory of %" PRIu64 " bytes is not a positive multiple of %llu",
			    p->memory, PAGE_SIZE);
	if (!p->node_memory) {
		/* In large pages where possible: a large page over two nodes belongs to neither. */
		u64 unit = p->memory % (2 * MIB) ? PAGE_SIZE : 2 * MIB;
		u64 units = p->memory / unit;

		for (u32 n = 0; n < t->nr_nodes; n++)
			t->node_memory[n] = (units / t->nr_nodes +
					     (n < units % t->nr_nodes)) * unit;
		return check_node_memory(t, err);
	}
	for (u32 n = 0; n < t->nr_nodes; n++) {
		u64 size = p->node_memory[n];

		if (size % PAGE_SIZE)
			return fail(err, "node %u's memory of %" PRIu64 " bytes is not a multiple of %llu",
				    n, size, PAGE_SIZE);
		if (size > p->memory - sum)
			return fail(err, "the nodes' memory adds up to more than memory = %" PRIu64 " bytes",
				    p->memory);
		sum += size;
		t->node_memory[n] = size;
	}
	if (sum != p->memory)
		return fail(err, "the nodes' memory adds up to %" PRIu64 " bytes, not to memory = %" PRIu64,
			    sum, p->memory);
	return check_node_memory(t, err);
}

static u32 given_distance(const struct topology *t, const struct topology_params *p, u32 i, u32 j)
{
	if (!p->distance)
		return i == j ? LOCAL_DISTANCE : REMOTE_DISTANCE;
	if (p->nr_distance == 2)
		return p->distance[i != j];
	return p->distance[i * t->nr_nodes + j];
}

static int init_distance(struct topology *t, const struct topology_params *p, char **err)
{
	if (p->distance && p->nr_distance != 2 && p->nr_distance != t->nr_nodes * t->nr_nodes)
		return fail(err, "distance has %u values: %u nodes need two (local,remote) or %u (%u rows of %u)",
			    p->nr_distance, t->nr_nodes, t->nr_nodes * t->nr_nodes, t->nr_nodes,
			    t->nr_nodes);
	/* With one node the remote value is used nowhere, but may still be a typing error. */
	if (p->distance && p->nr_distance == 2 && t->nr_nodes == 1 &&
	    (p->distance[1] <= LOCAL_DISTANCE || p->distance[1] > MAX_DISTANCE))
		return fail(err, "distance to another node is %u: it must be above %u and at most %u",
			    p->distance[1], LOCAL_DISTANCE, MAX_DISTANCE);
	for (u32 i = 0; i < t->nr_nodes; i++) {
		for (u32 j = 0; j < t->nr_nodes; j++) {
			u32 d = given_distance(t, p, i, j);

			if (i == j && d != LOCAL_DISTANCE)
				return fail(err, "distance from node %u to itself is %u: it must be %u",
					    i, d, LOCAL_DISTANCE);
			if (i != j && (d <= LOCAL_DISTANCE || d > MAX_DISTANCE))
				return fail(err, "distance from node %u to node %u is %u: it must be above %u and at most %u",
					    i, j, d, LOCAL_DISTANCE, MAX_DISTANCE);
			t->distance[i][j] = d;
		}
	}
	return 0;
}

int topology_init(struct topology *topo, const struct topology_params *params, char **err)
{
	int ret;

	memset(topo, 0, sizeof(*topo));
	ret = init_counts(topo, params, err);
	if (!ret)
		ret = init_nodes(topo, params, err);
	if (!ret)
		ret = init_ids(topo, params, err);
	if (!ret)
		ret = init_memory(topo, params, err);
	if (!ret)
		ret = init_distance(topo, params, err);
	return ret;
}

enum distance_class topology_class(const struct topology *topo, u32 a, u32 b)
{
	const struct topology_cpu *x = &topo->cpu[a], *y = &topo->cpu[b];

	if (a == b)
		return DISTANCE_SELF;
	if (x->socket != y->socket)
		return DISTANCE_REMOTE;
	return x->core == y->core ? DISTANCE_SMT : DISTANCE_SOCKET;
}

const char *distance_class_name(enum distance_class class)
{
	static const char *const name[NR_DISTANCE_CLASSES] = {
		[DISTANCE_SELF] = "self",
		[DISTANCE_SMT] = "smt",
		[DISTANCE_SOCKET] = "socket",
		[DISTANCE_REMOTE] = "remote",
	};

	return (u32)class < NR_DISTANCE_CLASSES ? name[class] : "?";
}

int topology_cpu_of_apic_id(const struct topology *topo, u32 apic_id)
{
	u32 cores_per_l3 = topo->cores / topo->l3_per_socket;
	u32 thread = apic_id & (BIT(topo->thread_bits) - 1);
	u32 in_l3 = (apic_id & (BIT(topo->l3_shift) - 1)) >> topo->thread_bits;
	u32 in_socket = apic_id & (BIT(topo->thread_bits + topo->core_bits) - 1);
	u32 l3 = in_socket >> topo->l3_shift;
	u32 socket = apic_id >> (topo->thread_bits + topo->core_bits);
	u32 flat;

	if (thread >= topo->threads || in_l3 >= cores_per_l3 || l3 >= topo->l3_per_socket ||
	    socket >= topo->sockets)
		return -1;
	flat = socket * topo->cores + l3 * cores_per_l3 + in_l3;
	if (topo->order == CPU_ORDER_SIBLINGS_LAST)
		return (int)(thread * topo->sockets * topo->cores + flat);
	return (int)(flat * topo->threads + thread);
}

bool topology_needs_x2apic(const struct topology *topo)
{
	for (u32 i = 0; i < topo->nr_cpus; i++)
		if (topo->cpu[i].apic_id > XAPIC_MAX_ID)
			return true;
	return false;
}
