// SPDX-License-Identifier: GPL-2.0-only
#include "lib/cpu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SYS_CPU "/sys/devices/system/cpu"
#define SYS_NODE "/sys/devices/system/node"

u32 cpu_mask_count(const struct cpu_mask *m)
{
	u32 n = 0;

	for (u32 i = 0; i < CPU_MAX / 64; i++)
		n += (u32)__builtin_popcountll(m->word[i]);
	return n;
}

bool cpu_mask_equal(const struct cpu_mask *a, const struct cpu_mask *b)
{
	return !memcmp(a, b, sizeof(*a));
}

bool cpu_mask_parse(const char *text, struct cpu_mask *m)
{
	unsigned long first, last;
	char *end;

	memset(m, 0, sizeof(*m));
	if (!*text)
		return true;
	for (;;) {
		if (*text < '0' || *text > '9')
			return false;
		first = last = strtoul(text, &end, 10);
		if (*end == '-') {
			text = end + 1;
			if (*text < '0' || *text > '9')
				return false;
			last = strtoul(text, &end, 10);
		}
		if (first > last || last >= CPU_MAX)
			return false;
		for (; first <= last; first++)
			cpu_mask_set(m, (u32)first);
		if (!*end)
			return true;
		if (*end != ',')
			return false;
		text = end + 1;
	}
}

void cpu_mask_format(const struct cpu_mask *m, char *buf, size_t size)
{
	size_t len = 0;
	u32 last;

	buf[0] = '\0';
	for (u32 cpu = 0; cpu < CPU_MAX && len < size; cpu++) {
		if (!cpu_mask_test(m, cpu))
			continue;
		for (last = cpu; cpu_mask_test(m, last + 1); last++)
			;
		len += (size_t)snprintf(buf + len, size - len, len ? ",%u" : "%u", cpu);
		if (last > cpu && len < size)
			len += (size_t)snprintf(buf + len, size - len, "-%u", last);
		cpu = last;
	}
}

int cpu_mask_read(const char *path, struct cpu_mask *m)
{
	char text[4096];
	int ret = read_line(path, text, sizeof(text));

	if (ret < 0)
		return ret;
	return cpu_mask_parse(text, m) ? 0 : -EINVAL;
}

int cpu_bind(u32 cpu)
{
	struct cpu_mask m = { { 0 } };

	if (cpu >= CPU_MAX)
		return -EINVAL;
	cpu_mask_set(&m, cpu);
	/* CPU_SET() of a C library may know fewer CPUs (musl's: 128); the kernel takes a mask of any length. */
	return syscall(SYS_sched_setaffinity, 0, sizeof(m), &m) ? -errno : 0;
}

const char *cpu_class_name(enum cpu_class class)
{
	static const char *const name[NR_CPU_CLASSES] = { "self", "smt", "socket", "remote" };

	return name[class];
}

/* Lowest CPU of the list in a topology file of `cpu`; the CPU itself where there is none. */
static int lowest_of(u32 cpu, const char *file)
{
	struct cpu_mask m;
	char path[128];

	snprintf(path, sizeof(path), SYS_CPU "/cpu%u/topology/%s", cpu, file);
	if (cpu_mask_read(path, &m))
		return (int)cpu;
	for (u32 i = 0; i < CPU_MAX; i++)
		if (cpu_mask_test(&m, i))
			return (int)i;
	return (int)cpu;
}

int cpu_map_read(struct cpu_map *map)
{
	struct cpu_mask nodes, cpus;
	char path[128];
	int ret;

	memset(map, 0, sizeof(*map));
	ret = cpu_mask_read(SYS_CPU "/online", &map->online);
	if (ret)
		return ret;
	for (u32 cpu = 0; cpu < CPU_MAX; cpu++) {
		map->core[cpu] = map->package[cpu] = -1;
		if (!cpu_mask_test(&map->online, cpu))
			continue;
		map->nr = cpu + 1;
		map->core[cpu] = lowest_of(cpu, "core_cpus_list");
		map->package[cpu] = lowest_of(cpu, "package_cpus_list");
	}
	map->nr_nodes = 1;
	if (cpu_mask_read(SYS_NODE "/online", &nodes))
		return 0;	/* a kernel without NUMA: all on node 0 */
	for (u32 node = 0; node < CPU_MAX; node++) {
		if (!cpu_mask_test(&nodes, node))
			continue;
		snprintf(path, sizeof(path), SYS_NODE "/node%u/cpulist", node);
		if (cpu_mask_read(path, &cpus))
			continue;
		for (u32 cpu = 0; cpu < map->nr; cpu++) {
			if (!cpu_mask_test(&cpus, cpu))
				continue;
			map->node[cpu] = (int)node;
			map->nr_nodes = node + 1;
		}
	}
	return 0;
}

enum cpu_class cpu_map_class(const struct cpu_map *map, u32 a, u32 b)
{
	if (a == b)
		return CPU_SELF;
	if (map->core[a] == map->core[b])
		return CPU_SMT;
	if (map->package[a] == map->package[b])
		return CPU_SOCKET;
	return CPU_REMOTE;
}
