// SPDX-License-Identifier: GPL-2.0-only
/*
 * The checks of a scenario that need more than one key, by the very functions
 * that will build the machine, so that a file which loads also starts.
 */
#include <stdlib.h>
#include <string.h>

#include "core/inject.h"
#include "scenario-keys.h"

/* Where to send the reader for one of several keys that a message may be about. */
static const char *origin_or_file(const struct scenario *s, const char *key)
{
	const struct scenario_key *k = scenario_key_find(s->keys, "vm", key);

	return k ? k->origin : s->path;
}

static void check_topology(const struct scenario *s, struct scenario_problems *problems)
{
	g_autofree struct topology *topo = g_new0(struct topology, 1);
	g_autofree char *err = NULL;
	struct topology_params params;

	scenario_topology(s, &params);
	/* topology_init() counts the nodes; it cannot know how many sizes there are. */
	if (s->node_memory) {
		u32 nodes = s->nodes ? s->nodes : s->sockets;

		if (s->nr_node_memory != nodes) {
			scenario_problem(problems, origin_or_file(s, "node_memory"),
					 "vm.node_memory: %u sizes for %u nodes", s->nr_node_memory,
					 nodes);
			return;
		}
	}
	if (!topology_init(topo, &params, &err))
		return;

	const char *key = strstr(err, "distance") ? "distance" :
			  strstr(err, "memory") ? "memory" :
			  strstr(err, "nodes") ? "nodes" : "topology";

	scenario_problem(problems, origin_or_file(s, key), "vm.%s: %s", key, err);
}

static void check_pin(const struct scenario *s, struct scenario_problems *problems)
{
	u32 want = s->sockets * s->cores * s->threads, have = 0;

	if (!strcmp(s->pin, "none") || !strcmp(s->pin, "auto"))
		return;

	g_autoptr(GPtrArray) parts = scenario_split(s->pin, ",");

	for (u32 i = 0; i < parts->len; i++) {
		const char *dash = strchr(parts->pdata[i], '-');
		u32 lo = strtoul(parts->pdata[i], NULL, 10);

		have += dash ? strtoul(dash + 1, NULL, 10) - lo + 1 : 1;
	}
	if (have != want)
		scenario_problem(problems, scenario_origin(s, "vm", "pin"),
				 "vm.pin: %u host CPUs for %u vCPUs; name one for each", have,
				 want);
}

/* Would it pass if it were not "none"? For those keys that take a distribution. */
static bool is_dist_key(const char *key)
{
	return strcmp(key, "ept.refault") && strcmp(key, "ept.write_protect") && strcmp(key, "ept.count") &&
	       strcmp(key, "ipi.vectors") && strcmp(key, "blk.depth");
}

static void check_inject_nodes(const struct scenario *s, const struct inject *inj,
			       struct scenario_problems *problems)
{
	g_autofree char *err = NULL;

	if (!inject_check_nodes(inj, s->nodes ? s->nodes : s->sockets, &err))
		return;
	for (u32 i = 0; i < s->keys->len; i++) {
		const struct scenario_key *k = s->keys->pdata[i];

		if (!strcmp(k->section, "inject") && strstr(k->key, ".node.")) {
			scenario_problem(problems, k->origin, "inject.%s: %s", k->key, err);
			return;
		}
	}
}

/* Is inject.KEY one of the keys of an axis? */
static bool is_varied(const struct scenario *whole, const char *key)
{
	g_autofree char *full = g_strconcat("inject.", key, NULL);

	for (u32 i = 0; i < whole->vary_key->len; i++) {
		g_autoptr(GPtrArray) names = scenario_split(whole->vary_key->pdata[i], "+");

		if (g_ptr_array_find_with_equal_func(names, full, g_str_equal, NULL))
			return true;
	}
	return false;
}

/* "lognormal:2us,0.5" in a list that commas part comes here as two values, neither of them good. */
static const char *comma_hint(const struct scenario *whole, const struct scenario_key *k)
{
	bool half = strspn(k->value, "0123456789.") == strlen(k->value) ||
		    ((g_str_has_prefix(k->value, "lognormal:") ||
		      g_str_has_prefix(k->value, "pareto:")) && !strchr(k->value, ','));

	return half && is_varied(whole, k->key) ?
		"; in [vary], values that have commas themselves are separated by |" : "";
}

static void check_inject(const struct scenario *s, const struct scenario *whole,
			 struct scenario_problems *problems)
{
	g_autofree char *dir = g_path_get_dirname(s->path);
	g_autofree struct inject *inj = g_new0(struct inject, 1);

	inject_init(inj);
	for (u32 i = 0; i < s->keys->len; i++) {
		const struct scenario_key *k = s->keys->pdata[i];
		const char *value = k->value;
		g_autofree char *err = NULL;

		if (strcmp(k->section, "inject"))
			continue;
		if (!strcmp(value, "none")) {
			if (!is_dist_key(k->key))
				continue;
			value = "fixed:1ns";
		}
		if (inject_add(inj, k->key, value, dir, &err))
			scenario_problem(problems, k->origin, "inject.%s: %s%s", k->key, err,
					 comma_hint(whole, k));
	}
	check_inject_nodes(s, inj, problems);
	inject_destroy(inj);
	if (!s->disk_on) {
		for (u32 i = 0; i < s->keys->len; i++) {
			const struct scenario_key *k = s->keys->pdata[i];

			if (!strcmp(k->section, "inject") && g_str_has_prefix(k->key, "blk.") && strcmp(k->value, "none"))
				scenario_problem(problems, k->origin, "inject.%s: the guest has no disk; guest.disk gives it one",
						 k->key);
		}
	}
	/* As vm.c would say after the boot of everything around it. */
	if (s->apic == SCENARIO_APIC_KERNEL && scenario_needs_own_apic(s))
		scenario_problem(problems, origin_or_file(s, "apic"),
				 "vm.apic = kernel: [inject] needs the VMM's own local APIC; use xapic or auto");
}

/* What the engine that is asked for by name cannot do; vm.c says it again of one that was chosen. */
static void check_engine(const struct scenario *s, struct scenario_problems *problems)
{
	if (s->engine == ENGINE_SOFT) {
		if (s->cost_model && !strcmp(s->cost_model, "none"))
			scenario_problem(problems, origin_or_file(s, "cost_model"),
					 "vm.cost_model = none: the soft engine's time is what a cost model says; auto is simple");
		if (s->apic == SCENARIO_APIC_KERNEL)
			scenario_problem(problems, origin_or_file(s, "apic"),
					 "vm.apic = kernel: KVM's local APIC; the soft engine has xapic and x2apic");
		if (s->cpu_model && !strcmp(s->cpu_model, "host"))
			scenario_problem(problems, origin_or_file(s, "cpu_model"),
					 "vm.cpu_model = host: the soft engine is the same on every host; use faultbed-v1");
		if (s->pin && strcmp(s->pin, "none") && strcmp(s->pin, "auto"))
			scenario_problem(problems, origin_or_file(s, "pin"),
					 "vm.pin: the soft engine runs all vCPUs on one host thread");
	} else if (s->engine != ENGINE_AUTO) {
		static const char *const name[] = {
			[ENGINE_KVM] = "kvm", [ENGINE_NESTED] = "nested", [ENGINE_QEMU] = "qemu", [ENGINE_LIBVIRT] = "libvirt",
		};

		if (s->cost_model && strcmp(s->cost_model, "none"))
			scenario_problem(problems, origin_or_file(s, "cost_model"),
					 "vm.cost_model: a cost model is for the soft engine; with %s the time is the host's",
					 name[s->engine]);
		for (u32 i = 0; i < s->keys->len; i++) {
			const struct scenario_key *k = s->keys->pdata[i];

			if (!strcmp(k->section, "cost"))
				scenario_problem(problems, k->origin,
						 "cost.%s: a cost model is for the soft engine; with %s the time is the host's",
						 k->key, name[s->engine]);
		}
		if (s->apic == SCENARIO_APIC_X2APIC && (s->engine == ENGINE_KVM || s->engine == ENGINE_NESTED))
			scenario_problem(problems, origin_or_file(s, "apic"),
					 "vm.apic = x2apic: KVM does not hand x2APIC to user space; use xapic (ids to 254) or kernel, or engine = soft");
	}
}

/* One engine runs all cells of a run, since what is printed beside them is said once. */
static void check_vary(const struct scenario *whole, struct scenario_problems *problems)
{
	for (u32 i = 0; i < whole->vary_key->len; i++) {
		g_autoptr(GPtrArray) names = scenario_split(whole->vary_key->pdata[i], "+");

		if (g_ptr_array_find_with_equal_func(names, "vm.engine", g_str_equal, NULL))
			scenario_problem(problems, whole->path,
					 "vary: vm.engine cannot be varied; run once with each --engine and use faultbed compare --anyway");
	}
}

void scenario_check(const struct scenario *s, const struct scenario *whole,
		    struct scenario_problems *problems)
{
	check_vary(whole, problems);
	check_engine(s, problems);
	check_topology(s, problems);
	check_pin(s, problems);
	check_inject(s, whole, problems);
	if (s->boot_timeout_ns > s->timeout_ns)
		scenario_problem(
			problems, scenario_origin(s, "run", "boot_timeout"),
			"run.boot_timeout is longer than run.timeout, which has the boot in it");
}
