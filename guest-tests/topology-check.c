// SPDX-License-Identifier: GPL-2.0-only
/*
 * topology-check: print the topology that this guest's kernel sees, and check it
 * against what the host was asked for:
 *
 *   FAULTBED_TOPOLOGY   2x10x2: sockets, cores of each, threads of each
 *   FAULTBED_CPU_ORDER  siblings-last (default) or siblings-adjacent
 *   FAULTBED_NODES      number of NUMA nodes
 *   FAULTBED_DISTANCE   rows with ; and numbers with ,
 *   FAULTBED_APIC_IDS   by CPU number, with ,
 *
 * Checked: CPUs online; who shares a core, a package and each cache (L1 and L2
 * by core, L3 by socket, or by node where nodes split a socket); the nodes' CPUs
 * and distances; APIC ids by /proc/cpuinfo and by CPUID on each CPU, with the
 * leaves that the CPU's vendor uses. What is unset is printed and not checked.
 * Every mismatch is one line, on stdout; exit 1 if there was any.
 */
#include <cpuid.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cpu.h"
#include "lib/util.h"

#define SYS_CPU "/sys/devices/system/cpu"
#define SYS_NODE "/sys/devices/system/node"
#define NODE_MAX 64
#define LIST_TEXT 512

/* Where a CPU should be. */
struct place {
	u32 socket, core, thread, node;
	u32 apic_id;
};

struct want {
	bool topology, nodes, distance, apic_ids;	/* which parts were asked for */
	u32 sockets, cores, threads, nr_cpus;
	u32 nr_nodes;
	u32 dist[NODE_MAX][NODE_MAX];
	struct place cpu[CPU_MAX];
};

struct seen {
	u32 nr_cpus;			/* highest online + 1 */
	struct cpu_mask online;
	bool amd;
	char vendor[16];
	int apic_id[CPU_MAX];		/* -1 = not in /proc/cpuinfo */
};

struct check {
	struct want want;
	struct seen seen;
	u32 mismatches;
};

static void mismatch(struct check *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void mismatch(struct check *c, const char *fmt, ...)
{
	va_list ap;

	c->mismatches++;
	fputs("MISMATCH ", stdout);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

/* --- what was asked for --- */

/* Numbers separated by `sep` into out[]; how many, or exit on rubbish or more than max. */
static u32 parse_numbers(const char *name, char *text, const char *sep, u32 *out, u32 max)
{
	char *save = NULL;
	u32 n = 0;
	u64 v;

	for (char *p = strtok_r(text, sep, &save); p; p = strtok_r(NULL, sep, &save)) {
		if (n == max || !parse_u64(p, 0, UINT32_MAX, &v))
			die(EXIT_USAGE, "%s: bad number \"%s\", or too many", name, p);
		out[n++] = (u32)v;
	}
	return n;
}

static char *env_copy(const char *name)
{
	const char *text = getenv(name);
	char *copy;

	if (!text || !*text)
		return NULL;
	copy = strdup(text);
	if (!copy)
		die(EXIT_MISMATCH, "no memory");
	return copy;
}

/* Fill in socket, core, thread and node of each CPU, as the order and the node count say. */
static void place_cpus(struct want *w, bool adjacent)
{
	u32 per_socket = w->nr_nodes > w->sockets ? w->nr_nodes / w->sockets : 1;

	for (u32 n = 0; n < w->nr_cpus; n++) {
		struct place *p = &w->cpu[n];
		u32 core = adjacent ? n / w->threads : n % (w->sockets * w->cores);

		p->thread = adjacent ? n % w->threads : n / (w->sockets * w->cores);
		p->socket = core / w->cores;
		p->core = core % w->cores;
		if (w->nr_nodes > w->sockets)
			p->node = p->socket * per_socket + p->core / (w->cores / per_socket);
		else
			p->node = p->socket / (w->sockets / w->nr_nodes);
	}
}

static void want_distance(struct want *w)
{
	char *text = env_copy("FAULTBED_DISTANCE"), *save = NULL;
	u32 row[NODE_MAX];
	u32 r = 0;

	if (!text)
		return;
	for (char *p = strtok_r(text, ";", &save); p; p = strtok_r(NULL, ";", &save), r++) {
		if (r >= w->nr_nodes ||
		    parse_numbers("FAULTBED_DISTANCE", p, ",", row, NODE_MAX) != w->nr_nodes)
			die(EXIT_USAGE, "FAULTBED_DISTANCE: not %u rows of %u numbers", w->nr_nodes,
			    w->nr_nodes);
		memcpy(w->dist[r], row, w->nr_nodes * sizeof(row[0]));
	}
	if (r != w->nr_nodes)
		die(EXIT_USAGE, "FAULTBED_DISTANCE: %u rows for %u nodes", r, w->nr_nodes);
	w->distance = true;
	free(text);
}

static void read_want(struct want *w)
{
	char *text = env_copy("FAULTBED_TOPOLOGY");
	const char *order = getenv("FAULTBED_CPU_ORDER");
	u32 count[3], ids[CPU_MAX];

	if (!text)
		return;
	if (parse_numbers("FAULTBED_TOPOLOGY", text, "x", count, 3) != 3 || !count[0] ||
	    !count[1] || !count[2] || (u64)count[0] * count[1] * count[2] > CPU_MAX)
		die(EXIT_USAGE, "FAULTBED_TOPOLOGY: not SOCKETSxCORESxTHREADS");
	free(text);
	w->topology = true;
	w->sockets = count[0];
	w->cores = count[1];
	w->threads = count[2];
	w->nr_cpus = w->sockets * w->cores * w->threads;

	if (order && strcmp(order, "siblings-last") && strcmp(order, "siblings-adjacent"))
		die(EXIT_USAGE, "FAULTBED_CPU_ORDER: neither siblings-last nor siblings-adjacent");
	w->nodes = getenv("FAULTBED_NODES") != NULL;
	w->nr_nodes = (u32)env_u64("FAULTBED_NODES", w->sockets);
	if (!w->nr_nodes || w->nr_nodes > NODE_MAX ||
	    (w->nr_nodes <= w->sockets ? w->sockets % w->nr_nodes :
	     w->nr_nodes % w->sockets || w->cores % (w->nr_nodes / w->sockets)))
		die(EXIT_USAGE, "FAULTBED_NODES: %u does not fit %u sockets of %u cores",
		    w->nr_nodes, w->sockets, w->cores);
	place_cpus(w, order && !strcmp(order, "siblings-adjacent"));
	want_distance(w);

	text = env_copy("FAULTBED_APIC_IDS");
	if (!text)
		return;
	if (parse_numbers("FAULTBED_APIC_IDS", text, ",", ids, CPU_MAX) != w->nr_cpus)
		die(EXIT_USAGE, "FAULTBED_APIC_IDS: not one number for each of %u CPUs",
		    w->nr_cpus);
	for (u32 n = 0; n < w->nr_cpus; n++)
		w->cpu[n].apic_id = ids[n];
	w->apic_ids = true;
	free(text);
}

/* --- what is there --- */

static void read_seen(struct seen *s)
{
	size_t size = 4u << 20;
	char *text = malloc(size), *save = NULL;
	int cpu = -1, ret;

	ret = cpu_mask_read(SYS_CPU "/online", &s->online);
	if (ret) {
		errno = -ret;
		die_errno(EXIT_UNSUPPORTED, SYS_CPU "/online");
	}
	for (u32 n = 0; n < CPU_MAX; n++) {
		s->apic_id[n] = -1;
		if (cpu_mask_test(&s->online, n))
			s->nr_cpus = n + 1;
	}
	if (!text || read_file("/proc/cpuinfo", text, size) < 0)
		die(EXIT_UNSUPPORTED, "/proc/cpuinfo cannot be read");
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		const char *value = strchr(line, ':');

		if (!value)
			continue;
		value += value[1] == ' ' ? 2 : 1;
		if (!strncmp(line, "processor", 9))
			cpu = atoi(value);
		else if (!strncmp(line, "vendor_id", 9))
			snprintf(s->vendor, sizeof(s->vendor), "%s", value);
		else if (!strncmp(line, "apicid", 6) && cpu >= 0 && cpu < CPU_MAX)
			s->apic_id[cpu] = atoi(value);
	}
	free(text);
	s->amd = !strcmp(s->vendor, "AuthenticAMD") || !strcmp(s->vendor, "HygonGenuine");
}

/* --- checks --- */

/* Compare a cpulist file with the CPUs that should be in it. */
static void check_list(struct check *c, const char *path, const struct cpu_mask *want)
{
	char is[LIST_TEXT], should[LIST_TEXT];
	struct cpu_mask got;
	int ret = cpu_mask_read(path, &got);

	cpu_mask_format(want, should, sizeof(should));
	if (ret) {
		mismatch(c, "%s: cannot be read (%s), should be %s", path, strerror(-ret), should);
		return;
	}
	if (cpu_mask_equal(&got, want))
		return;
	cpu_mask_format(&got, is, sizeof(is));
	mismatch(c, "%s: is %s, should be %s", path, *is ? is : "empty", should);
}

enum share {
	SHARE_CORE,
	SHARE_SOCKET,
	SHARE_L3,
};

/* The CPUs that share a core, a socket or an L3 with CPU n. */
static void sharers(const struct want *w, u32 n, enum share what, struct cpu_mask *m)
{
	const struct place *a = &w->cpu[n];

	memset(m, 0, sizeof(*m));
	for (u32 i = 0; i < w->nr_cpus; i++) {
		const struct place *b = &w->cpu[i];
		bool same = a->socket == b->socket;

		if (what == SHARE_CORE)
			same = same && a->core == b->core;
		else if (what == SHARE_L3 && w->nr_nodes > w->sockets)
			same = same && a->node == b->node;
		if (same)
			cpu_mask_set(m, i);
	}
}

static void check_online(struct check *c)
{
	struct cpu_mask want;
	char path[] = SYS_CPU "/online";

	memset(&want, 0, sizeof(want));
	for (u32 n = 0; n < c->want.nr_cpus; n++)
		cpu_mask_set(&want, n);
	check_list(c, path, &want);
}

static void check_siblings(struct check *c, u32 n)
{
	struct cpu_mask m;
	char path[128];

	sharers(&c->want, n, SHARE_CORE, &m);
	snprintf(path, sizeof(path), SYS_CPU "/cpu%u/topology/core_cpus_list", n);
	check_list(c, path, &m);
	sharers(&c->want, n, SHARE_SOCKET, &m);
	snprintf(path, sizeof(path), SYS_CPU "/cpu%u/topology/package_cpus_list", n);
	check_list(c, path, &m);
}

static void check_caches(struct check *c, u32 n)
{
	bool level_seen[4] = { false };
	struct cpu_mask m;
	char path[128], text[64];
	u64 level;

	for (u32 i = 0; i < 8; i++) {
		snprintf(path, sizeof(path), SYS_CPU "/cpu%u/cache/index%u/level", n, i);
		if (read_line(path, text, sizeof(text)) < 0)
			break;
		if (!parse_u64(text, 1, 3, &level)) {
			mismatch(c, "%s: is %s", path, text);
			continue;
		}
		level_seen[level] = true;
		sharers(&c->want, n, level == 3 ? SHARE_L3 : SHARE_CORE, &m);
		snprintf(path, sizeof(path), SYS_CPU "/cpu%u/cache/index%u/shared_cpu_list", n, i);
		check_list(c, path, &m);
	}
	for (u32 i = 1; i < 4; i++)
		if (!level_seen[i])
			mismatch(c, SYS_CPU "/cpu%u/cache: no L%u", n, i);
}

/* Package and core numbers mean nothing by themselves; equal or not is what counts. */
static void check_numbers(struct check *c, u32 n)
{
	const struct place *a = &c->want.cpu[n], *b = &c->want.cpu[0];
	char path[128], first[32], text[32];

	if (!n)
		return;
	snprintf(path, sizeof(path), SYS_CPU "/cpu%u/topology/physical_package_id", n);
	if (read_line(path, text, sizeof(text)) < 0 ||
	    read_line(SYS_CPU "/cpu0/topology/physical_package_id", first, sizeof(first)) < 0)
		mismatch(c, "%s: cannot be read", path);
	else if (!strcmp(text, first) != (a->socket == b->socket))
		mismatch(c,
			 "%s: is %s, and %s on CPU 0 of socket %u, but it should be in socket %u",
			 path, text, first, b->socket, a->socket);
}

/* APIC ids as CPUID gives them on the CPU itself. */
static void check_cpuid(struct check *c, u32 n)
{
	u32 want = c->want.cpu[n].apic_id, eax, ebx, ecx, edx;
	int ret = cpu_bind(n);

	if (ret) {
		mismatch(c, "CPU %u: a thread cannot be bound to it: %s", n, strerror(-ret));
		return;
	}
	__cpuid(1, eax, ebx, ecx, edx);
	if (ebx >> 24 != (want & 0xff))
		mismatch(c, "CPU %u: CPUID 1 EBX gives APIC id %u, should be %u", n, ebx >> 24,
			 want & 0xff);
	if ((u32)__get_cpuid_max(0, NULL) >= 0xb) {
		__cpuid_count(0xb, 0, eax, ebx, ecx, edx);
		/* All zero in EBX: the leaf is not implemented (SDM 2A, CPUID). */
		if (ebx && edx != want)
			mismatch(c, "CPU %u: CPUID 0xb EDX gives APIC id %u, should be %u", n, edx,
				 want);
		if (ebx && (ebx & 0xffff) != c->want.threads)
			mismatch(c, "CPU %u: CPUID 0xb.0 EBX gives %u threads a core, should be %u",
				 n, ebx & 0xffff, c->want.threads);
	}
	if (!c->seen.amd || (u32)__get_cpuid_max(0x80000000, NULL) < 0x8000001e)
		return;
	/* Extended APIC id, threads a core (APM 3, appendix E.4.17). */
	__cpuid(0x8000001e, eax, ebx, ecx, edx);
	if (eax != want)
		mismatch(c, "CPU %u: CPUID 0x8000001e EAX gives APIC id %u, should be %u", n, eax,
			 want);
	if ((ebx >> 8 & 0xff) + 1 != c->want.threads)
		mismatch(c, "CPU %u: CPUID 0x8000001e EBX gives %u threads a core, should be %u", n,
			 (ebx >> 8 & 0xff) + 1, c->want.threads);
}

static void check_apic_ids(struct check *c)
{
	for (u32 n = 0; n < c->want.nr_cpus; n++) {
		if (!cpu_mask_test(&c->seen.online, n))
			continue;
		if (c->seen.apic_id[n] != (int)c->want.cpu[n].apic_id)
			mismatch(c, "CPU %u: /proc/cpuinfo gives APIC id %d, should be %u", n,
				 c->seen.apic_id[n], c->want.cpu[n].apic_id);
		check_cpuid(c, n);
	}
}

static void check_nodes(struct check *c)
{
	const struct want *w = &c->want;
	struct cpu_mask m;
	char path[128];

	memset(&m, 0, sizeof(m));
	for (u32 i = 0; i < w->nr_nodes; i++)
		cpu_mask_set(&m, i);
	check_list(c, SYS_NODE "/online", &m);
	for (u32 i = 0; i < w->nr_nodes; i++) {
		memset(&m, 0, sizeof(m));
		for (u32 n = 0; n < w->nr_cpus; n++)
			if (w->cpu[n].node == i)
				cpu_mask_set(&m, n);
		snprintf(path, sizeof(path), SYS_NODE "/node%u/cpulist", i);
		check_list(c, path, &m);
	}
}

static void check_distance(struct check *c)
{
	const struct want *w = &c->want;
	char path[128], text[LIST_TEXT], should[LIST_TEXT];
	int ret;

	for (u32 i = 0; i < w->nr_nodes; i++) {
		size_t len = 0;

		for (u32 j = 0; j < w->nr_nodes && len < sizeof(should); j++)
			len += (size_t)snprintf(should + len, sizeof(should) - len,
						j ? " %u" : "%u", w->dist[i][j]);
		snprintf(path, sizeof(path), SYS_NODE "/node%u/distance", i);
		ret = read_line(path, text, sizeof(text));
		if (ret < 0)
			mismatch(c, "%s: cannot be read (%s), should be %s", path, strerror(-ret),
				 should);
		else if (strcmp(text, should))
			mismatch(c, "%s: is %s, should be %s", path, text, should);
	}
}

/* --- printing --- */

static void print_file(const char *what, const char *path)
{
	char text[LIST_TEXT];

	if (read_line(path, text, sizeof(text)) >= 0)
		printf("%s%s", what, text);
}

static void print_cpu(const struct seen *s, u32 n)
{
	char path[128], text[LIST_TEXT];

	printf("cpu %u apic_id %d", n, s->apic_id[n]);
	snprintf(path, sizeof(path), SYS_CPU "/cpu%u/topology/physical_package_id", n);
	print_file(" package ", path);
	snprintf(path, sizeof(path), SYS_CPU "/cpu%u/topology/core_id", n);
	print_file(" core ", path);
	snprintf(path, sizeof(path), SYS_CPU "/cpu%u/topology/core_cpus_list", n);
	print_file(" siblings ", path);
	for (u32 i = 0; i < 8; i++) {
		snprintf(path, sizeof(path), SYS_CPU "/cpu%u/cache/index%u/level", n, i);
		if (read_line(path, text, sizeof(text)) < 0)
			break;
		printf(" L%s", text);
		snprintf(path, sizeof(path), SYS_CPU "/cpu%u/cache/index%u/type", n, i);
		if (read_line(path, text, sizeof(text)) > 0 && *text != 'U')
			putchar(*text == 'D' ? 'd' : 'i');
		snprintf(path, sizeof(path), SYS_CPU "/cpu%u/cache/index%u/shared_cpu_list", n, i);
		print_file(" ", path);
	}
	putchar('\n');
}

static u32 print_nodes(void)
{
	struct cpu_mask nodes;
	char path[128];

	if (cpu_mask_read(SYS_NODE "/online", &nodes))
		return 0;
	for (u32 i = 0; i < NODE_MAX; i++) {
		if (!cpu_mask_test(&nodes, i))
			continue;
		printf("node %u", i);
		snprintf(path, sizeof(path), SYS_NODE "/node%u/cpulist", i);
		print_file(" cpus ", path);
		snprintf(path, sizeof(path), SYS_NODE "/node%u/distance", i);
		print_file(" distance ", path);
		putchar('\n');
	}
	return cpu_mask_count(&nodes);
}

int main(int argc, char **argv)
{
	struct check *c = calloc(1, sizeof(*c));
	bool quiet = argc == 2 && !strcmp(argv[1], "-q");
	u32 nodes = 0;

	if (!c)
		die(EXIT_MISMATCH, "no memory");
	if (argc > 1 && !quiet)
		die(EXIT_USAGE,
		    "usage: topology-check [-q]   (what to expect: FAULTBED_TOPOLOGY and others; -q: mismatches only)");
	read_want(&c->want);
	read_seen(&c->seen);
	if (!quiet) {
		for (u32 n = 0; n < c->seen.nr_cpus; n++)
			if (cpu_mask_test(&c->seen.online, n))
				print_cpu(&c->seen, n);
		nodes = print_nodes();
	}
	if (!c->want.topology) {
		printf("TOPOLOGY unchecked cpus=%u nodes=%u vendor=%s (FAULTBED_TOPOLOGY is not set)\n",
		       cpu_mask_count(&c->seen.online), nodes, c->seen.vendor);
		return EXIT_OK;
	}
	check_online(c);
	for (u32 n = 0; n < c->want.nr_cpus; n++) {
		if (!cpu_mask_test(&c->seen.online, n))
			continue;	/* said once already */
		check_siblings(c, n);
		check_caches(c, n);
		check_numbers(c, n);
	}
	if (c->want.nodes)
		check_nodes(c);
	if (c->want.distance)
		check_distance(c);
	if (c->want.apic_ids)
		check_apic_ids(c);
	if (c->mismatches) {
		printf("TOPOLOGY WRONG mismatches=%u\n", c->mismatches);
		return EXIT_MISMATCH;
	}
	printf("TOPOLOGY OK cpus=%u topology=%ux%ux%u nodes=%u vendor=%s checked=siblings,caches%s%s%s\n",
	       c->want.nr_cpus, c->want.sockets, c->want.cores, c->want.threads, c->want.nr_nodes,
	       c->seen.vendor, c->want.nodes ? ",nodes" : "", c->want.distance ? ",distance" : "",
	       c->want.apic_ids ? ",apic_ids" : "");
	return EXIT_OK;
}
