// SPDX-License-Identifier: GPL-2.0-only
/* Pins and NUMA placement on the host. */
#define _GNU_SOURCE
#include "placement.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"

#define HOST_MAX_CPUS	CPU_SETSIZE
#define HOST_MAX_NODES	64

/* "0-3,8" as /sys and vm.pin write it, into a list in that order; -1 for anything else. */
static int parse_cpu_list(const char *text, int *list, int max)
{
	int n = 0;

	while (*text) {
		char *end;
		long a = strtol(text, &end, 10), b = a;

		if (end == text || a < 0)
			return -1;
		if (*end == '-') {
			text = end + 1;
			b = strtol(text, &end, 10);
			if (end == text)
				return -1;
		}
		if (b < a || b >= HOST_MAX_CPUS)
			return -1;
		for (; a <= b; a++) {
			if (n == max)
				return -1;
			list[n++] = (int)a;
		}
		text = end;
		if (*text == ',')
			text++;
		else if (*text && *text != '\n')
			return -1;
		else
			break;
	}
	return n;
}

/* CPUs of a host node, or -1 if there is no such node. */
static int host_node_cpus(u32 node, int *list, int max)
{
	char *path = g_strdup_printf("/sys/devices/system/node/node%u/cpulist", node), *text = NULL;
	int n = -1;

	if (g_file_get_contents(path, &text, NULL, NULL))
		n = parse_cpu_list(g_strstrip(text), list, max);
	g_free(text);
	g_free(path);
	return n;
}

static u32 host_nodes(void)
{
	u32 n = 0;

	while (n < HOST_MAX_NODES) {
		char *path = g_strdup_printf("/sys/devices/system/node/node%u", n);
		bool there = g_file_test(path, G_FILE_TEST_IS_DIR);

		g_free(path);
		if (!there)
			break;
		n++;
	}
	return MAX(n, 1u);
}

/* Both views share the file, so one policy on it serves both. */
static enum status bind_memory(struct vm *vm)
{
	u32 i;

	for (i = 0; i < vm->mem.nr_slots; i++) {
		const struct memslot *s = &vm->mem.slot[i];
		unsigned long mask = 1ul << s->node;

		if (syscall(SYS_mbind, s->guest_hva, s->size, MPOL_BIND, &mask, sizeof(mask) * 8 + 1, 0) < 0) {
			fb_err("binding guest node %u's RAM to host node %u: %s", s->node, s->node, strerror(errno));
			return STATUS_HOST;
		}
	}
	return STATUS_DONE;
}

/* A vCPU of guest node n to a CPU of host node n, in order; wraps within the node when it has fewer. */
static enum status pin_auto(const struct topology *topo, int *pin, u32 nodes)
{
	int *list = g_new(int, HOST_MAX_CPUS);
	u32 *used = g_new0(u32, HOST_MAX_NODES), cpu;
	enum status status = STATUS_DONE;

	for (cpu = 0; cpu < topo->nr_cpus; cpu++) {
		u32 node = topo->cpu[cpu].node % nodes;
		int n = host_node_cpus(node, list, HOST_MAX_CPUS);

		if (n <= 0) {	/* no NUMA in this host's /sys: all CPUs that we may use */
			cpu_set_t set;
			int c;

			n = 0;
			if (sched_getaffinity(0, sizeof(set), &set) == 0)
				for (c = 0; c < HOST_MAX_CPUS; c++)
					if (CPU_ISSET((size_t)c, &set))
						list[n++] = c;
		}
		if (n <= 0) {
			fb_err("vm.pin = auto: host node %u has no CPU", node);
			status = STATUS_HOST;
			break;
		}
		pin[cpu] = list[used[node]++ % (u32)n];
	}
	g_free(used);
	g_free(list);
	return status;
}

enum status placement_pins(const struct scenario *s, const struct topology *topo, int **pin)
{
	u32 nr = topo->nr_cpus;
	enum status status;
	int n;

	*pin = NULL;
	if (!s->pin || strcmp(s->pin, "none") == 0)
		return STATUS_DONE;
	*pin = g_new(int, nr);
	if (strcmp(s->pin, "auto") == 0) {
		status = pin_auto(topo, *pin, host_nodes());
	} else {
		n = parse_cpu_list(s->pin, *pin, (int)nr);
		if (n == (int)nr)
			return STATUS_DONE;
		fb_err("%s: vm.pin = %s: %s; a list has one host CPU for each of the %u vCPUs, as in 0-3,8",
		       scenario_origin(s, "vm", "pin"), s->pin, n < 0 ? "not a CPU list, or too long" : "too short", nr);
		status = STATUS_BAD_INPUT;
	}
	if (status != STATUS_DONE)
		g_clear_pointer(pin, g_free);
	return status;
}

enum status placement_memory(struct vm *vm, struct vm_setup *setup)
{
	u32 nodes = host_nodes();
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if ((long)vm->topo.nr_cpus > cpus)
		g_ptr_array_add(setup->trust, g_strdup_printf("%u vCPUs share %ld host CPUs", vm->topo.nr_cpus, cpus));
	if (vm->topo.nr_nodes > 1 && nodes < vm->topo.nr_nodes)
		g_ptr_array_add(setup->trust, g_strdup_printf("%u guest nodes on %u host node%s: no real distances",
							      vm->topo.nr_nodes, nodes, nodes > 1 ? "s" : ""));
	return nodes > 1 && nodes >= vm->topo.nr_nodes ? bind_memory(vm) : STATUS_DONE;
}

enum status placement_apply(struct vm *vm, const struct scenario *s, struct vm_setup *setup)
{
	enum status status;

	if (setup->caps.virtual_time)
		return STATUS_DONE;
	status = placement_memory(vm, setup);
	return status == STATUS_DONE ? placement_pins(s, &vm->topo, &setup->pin) : status;
}
