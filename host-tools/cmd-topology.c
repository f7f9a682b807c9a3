// SPDX-License-Identifier: GPL-2.0-only
/* faultbed topology: a topology as text, from the object that builds the guest's tables. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "core/topology.h"
#include "front.h"
#include "scenario.h"

/* Cores side by side on one line; more go below. */
#define CORES_A_LINE	16

struct topology_options {
	char **args;
	char *order, *distance, *memory, *nodes, *node_memory, *apic;
};

static const struct topology_cpu *find_cpu(const struct topology *t, u32 socket, u32 core,
					   u32 thread, u32 *cpu)
{
	for (u32 i = 0; i < t->nr_cpus; i++) {
		const struct topology_cpu *c = &t->cpu[i];

		if (c->socket == socket && c->core == core && c->thread == thread) {
			*cpu = i;
			return c;
		}
	}
	return NULL;
}

static void draw_cores(const struct topology *t, u32 socket, u32 from, u32 to)
{
	const struct topology_cpu *c;
	u32 cpu = 0;

	printf("  %-18s", "core");
	for (u32 core = from; core < to; core++)
		printf(" %4u", core);
	printf("\n");
	for (u32 thread = 0; thread < t->threads; thread++) {
		printf("  CPU, thread %-6u", thread);
		for (u32 core = from; core < to; core++) {
			c = find_cpu(t, socket, core, thread, &cpu);
			printf(" %4u", c ? cpu : 0);
		}
		printf("\n");
	}
	for (u32 thread = 0; thread < t->threads; thread++) {
		printf("  APIC id, thread %-2u", thread);
		for (u32 core = from; core < to; core++) {
			c = find_cpu(t, socket, core, thread, &cpu);
			printf(" %4u", c ? c->apic_id : 0);
		}
		printf("\n");
	}
	if (t->nr_nodes <= t->sockets)
		return;
	printf("  %-18s", "node");
	for (u32 core = from; core < to; core++) {
		c = find_cpu(t, socket, core, 0, &cpu);
		printf(" %4u", c ? c->node : 0);
	}
	printf("\n");
}

static void draw_sockets(const struct topology *t)
{
	u32 cpu;

	for (u32 socket = 0; socket < t->sockets; socket++) {
		const struct topology_cpu *first = find_cpu(t, socket, 0, 0, &cpu);

		printf("\nsocket %u", socket);
		if (t->nr_nodes <= t->sockets && first)
			printf(", node %u", first->node);
		printf("\n");
		for (u32 core = 0; core < t->cores; core += CORES_A_LINE)
			draw_cores(t, socket, core, MIN(core + CORES_A_LINE, t->cores));
	}
}

static void draw_nodes(const struct topology *t)
{
	printf("\n%-8s %10s   distance to node\n%19s ", "node", "memory", "");
	for (u32 n = 0; n < t->nr_nodes; n++)
		printf(" %4u", n);
	printf("\n");
	for (u32 n = 0; n < t->nr_nodes; n++) {
		g_autofree char *memory = g_strdup_printf("%" G_GUINT64_FORMAT " MiB",
							  (u64)(t->node_memory[n] / MIB));

		printf("%-8u %10s ", n, t->node_memory[n] ? memory : "none");
		for (u32 m = 0; m < t->nr_nodes; m++)
			printf(" %4u", t->distance[n][m]);
		printf("\n");
	}
}

static void draw(const struct topology *t)
{
	u32 max_id = 0;

	for (u32 i = 0; i < t->nr_cpus; i++)
		max_id = MAX(max_id, t->cpu[i].apic_id);
	printf("%ux%ux%u: %u socket%s of %u core%s of %u thread%s, %u CPUs, %s\n", t->sockets,
	       t->cores, t->threads, t->sockets, t->sockets == 1 ? "" : "s", t->cores,
	       t->cores == 1 ? "" : "s", t->threads, t->threads == 1 ? "" : "s", t->nr_cpus,
	       t->order == CPU_ORDER_SIBLINGS_LAST ? "siblings last" : "siblings adjacent");
	printf("APIC id: socket %u bit%s, core %u, thread %u; the highest is %u%s\n",
	       t->socket_bits, t->socket_bits == 1 ? "" : "s", t->core_bits, t->thread_bits, max_id,
	       max_id > XAPIC_MAX_ID ? ", which needs x2APIC" : "");
	draw_sockets(t);
	draw_nodes(t);
}

/*
 * The options are keys of [vm], so a scenario of nothing else takes them: the
 * same parser, the same messages.
 */
static struct scenario *as_scenario(const struct topology_options *opt, const char *topology)
{
	g_autofree char *self = g_strdup_printf("faultbed topology %s", topology);
	const struct {
		const char *key, *value, *origin;
	} pairs[] = {
		{ "vm.topology", topology, self },
		{ "vm.cpu_order", opt->order, "--order" },
		{ "vm.nodes", opt->nodes, "--nodes" },
		{ "vm.distance", opt->distance, "--distance" },
		{ "vm.memory", opt->memory, "--memory" },
		{ "vm.node_memory", opt->node_memory, "--node-memory" },
		{ "vm.apic", opt->apic, "--apic" },
		{ "run.command", "true", self },
	};
	g_autoptr(GPtrArray) set = g_ptr_array_new_with_free_func(g_free);
	const char *origin[ARRAY_SIZE(pairs)];

	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		if (!pairs[i].value)
			continue;
		origin[set->len] = pairs[i].origin;
		g_ptr_array_add(set, g_strdup_printf("%s=%s", pairs[i].key, pairs[i].value));
	}
	return scenario_of(self, (const char *const *)set->pdata, origin, set->len);
}

static int topology_run(const struct topology_options *opt)
{
	g_autofree struct topology *t = g_new0(struct topology, 1);
	g_autofree char *err = NULL;
	struct topology_params params;
	struct scenario *s = as_scenario(opt, opt->args[0]);
	int status = STATUS_DONE;

	if (!s)
		return STATUS_BAD_INPUT;
	scenario_topology(s, &params);
	if (topology_init(t, &params, &err)) {
		fb_err("%s", err);
		status = STATUS_BAD_INPUT;
	} else {
		draw(t);
	}
	scenario_free(s);
	return status;
}

int cmd_topology(int argc, char **argv)
{
	struct topology_options opt = { 0 };
	const GOptionEntry entries[] = { { "nodes", 'n', 0, G_OPTION_ARG_STRING, &opt.nodes,
					   "NUMA nodes (one a socket)", "N" },
					 { "order", 0, 0, G_OPTION_ARG_STRING, &opt.order,
					   "siblings-last (the default) or siblings-adjacent",
					   "ORDER" },
					 { "distance", 'd', 0, G_OPTION_ARG_STRING, &opt.distance,
					   "LOCAL,REMOTE or all of the matrix (10,21)", "LIST" },
					 { "memory", 'm', 0, G_OPTION_ARG_STRING, &opt.memory,
					   "of the guest (1GiB)", "SIZE" },
					 { "node-memory", 0, 0, G_OPTION_ARG_STRING,
					   &opt.node_memory, "of each node; 0 = none", "LIST" },
					 { "apic", 0, 0, G_OPTION_ARG_STRING, &opt.apic,
					   "x2apic allows ids above 254", "NAME" },
					 { G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_STRING_ARRAY,
					   &opt.args, NULL, "SOCKETSxCORESxTHREADS" },
					 { 0 } };
	g_autoptr(GOptionContext) context = g_option_context_new("- draw a topology");
	g_autoptr(GError) err = NULL;
	int status = STATUS_BAD_INPUT;

	g_option_context_add_main_entries(context, entries, NULL);
	if (!g_option_context_parse(context, &argc, &argv, &err))
		fb_err("%s (faultbed topology --help)", err->message);
	else if (!opt.args || opt.args[1])
		fb_err("faultbed topology takes one topology, like 2x10x2");
	else
		status = topology_run(&opt);
	g_strfreev(opt.args);
	g_free(opt.order);
	g_free(opt.distance);
	g_free(opt.memory);
	g_free(opt.nodes);
	g_free(opt.node_memory);
	g_free(opt.apic);
	return status;
}
