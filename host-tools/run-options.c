// SPDX-License-Identifier: GPL-2.0-only
/* The options that faultbed run and faultbed sweep share, and what of the scenario they set. */
#include "run-options.h"

#include <string.h>

#include "base/log.h"
#include "base/nearest.h"
#include "scenario-keys.h"

/* The section of a key whose name no other section has; NULL (reported, with the nearest) if there is none. */
static const char *section_of(const char *name)
{
	g_autofree const char **names = g_new(const char *, scenario_nr_keydesc);
	const char *section = NULL, *near;
	u32 i, found = 0;

	for (i = 0; i < scenario_nr_keydesc; i++) {
		names[i] = scenario_keydesc[i].key;
		if (strcmp(names[i], name))
			continue;
		section = scenario_keydesc[i].section;
		found++;
	}
	if (found == 1)
		return section;
	near = found ? NULL : nearest_name(name, names, scenario_nr_keydesc);
	fb_err("--vary: no key is called %s%s%s%s (docs/scenario.md has them; SECTION.KEY is one, too)", name,
	       near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
	return NULL;
}

/*
 * A key by its own name: "topology" is vm.topology, "knob.fault_path" guest.knob.fault_path, "ipi.remote" inject.ipi.remote. Whether there
 * is one of that name in the section is for the scenario's own check to say. NULL (reported) or g_free().
 */
static char *full_key(const char *name)
{
	g_auto(GStrv) parts = g_strsplit(name, ".", 2);
	g_autofree char *err = NULL;
	const char *section;

	if (parts[0] && parts[1]) {
		if (scenario_section(parts[0], &err))
			return g_strdup(name);
		return g_strconcat(strcmp(parts[0], "knob") ? "inject." : "guest.", name, NULL);
	}
	section = section_of(name);
	return section ? g_strconcat(section, ".", name, NULL) : NULL;
}

/* --vary: an axis of [vary], whose keys are joined by "+" if it has several. NULL (reported) if it is none. */
static char *vary_set(const char *text)
{
	const char *eq = strchr(text, '=');
	g_autofree char *names = eq ? g_strndup(text, eq - text) : NULL;
	g_autoptr(GPtrArray) parts = names ? scenario_split(names, "+") : NULL;
	GString *set = g_string_new("vary.");

	if (!eq || eq == text || !eq[1]) {
		fb_err("--vary %s: a key and its values, such as topology=2x10x2,4x15x2", text);
		g_string_free(set, TRUE);
		return NULL;
	}
	for (u32 i = 0; i < parts->len; i++) {
		g_autofree char *key = full_key(parts->pdata[i]);

		if (!key) {
			g_string_free(set, TRUE);
			return NULL;
		}
		g_string_append_printf(set, "%s%s", i ? " + " : "", key);
	}
	g_string_append(set, eq);
	return g_string_free(set, FALSE);
}

GPtrArray *run_sets(const struct run_options *opt)
{
	GPtrArray *set = g_ptr_array_new_with_free_func(g_free);

	for (char **s = opt->set; s && *s; s++)
		g_ptr_array_add(set, g_strdup(*s));
	for (char **v = opt->vary; v && *v; v++) {
		char *axis = vary_set(*v);

		if (!axis) {
			g_ptr_array_unref(set);
			return NULL;
		}
		g_ptr_array_add(set, axis);
	}
	if (opt->engine)
		g_ptr_array_add(set, g_strdup_printf("vm.engine=%s", opt->engine));
	if (opt->kernel) {
		g_autofree char *path = g_canonicalize_filename(opt->kernel, NULL);

		g_ptr_array_add(set, g_strdup_printf("guest.kernel=%s", path));
	}
	if (opt->initrd) {
		g_autofree char *path = g_canonicalize_filename(opt->initrd, NULL);

		g_ptr_array_add(set, g_strdup_printf("guest.initrd=%s", path));
	}
	return set;
}

GOptionGroup *run_options_group(struct run_options *opt)
{
	const GOptionEntry entries[] = {
		{ "set", 's', 0, G_OPTION_ARG_STRING_ARRAY, &opt->set,
		  "override a key of the scenario; a key of [vary] set so is not varied",
		  "SECTION.KEY=VALUE" },
		{ "vary", 'v', 0, G_OPTION_ARG_STRING_ARRAY, &opt->vary,
		  "one more axis of [vary], or other values for one: topology=2x10x2,4x15x2", "KEY=VALUE,..." },
		{ "output", 'o', 0, G_OPTION_ARG_FILENAME, &opt->output, "write the result here",
		  "FILE.json" },
		{ "engine", 'e', 0, G_OPTION_ARG_STRING, &opt->engine,
		  "the same as --set vm.engine=NAME", "NAME" },
		{ "check", 0, 0, G_OPTION_ARG_NONE, &opt->check,
		  "read the scenario, say what is wrong with it, and run nothing", NULL },
		{ "connect", 0, 0, G_OPTION_ARG_STRING, &opt->connect,
		  "engine libvirt: its connection (LIBVIRT_DEFAULT_URI, or the user's own)", "URI" },
		{ "kernel", 'k', 0, G_OPTION_ARG_FILENAME, &opt->kernel, "the guest's kernel",
		  "FILE" },
		{ "snapshot", 0, 0, G_OPTION_ARG_FILENAME, &opt->snapshot,
		  "soft: start from this booted guest", "FILE" },
		{ "save-snapshot", 0, 0, G_OPTION_ARG_FILENAME, &opt->save_snapshot,
		  "soft: boot, and keep the booted guest here", "FILE" },
		{ "no-snapshot", 0, 0, G_OPTION_ARG_NONE, &opt->no_snapshot,
		  "soft: boot, use and keep no snapshot in the cache (docs/snapshots.md)", NULL },
		{ "trace", 0, 0, G_OPTION_ARG_FILENAME, &opt->trace,
		  "write what happens in the VM, event by event (docs/tracing.md); of several cells into FILE.1, FILE.2, ...",
		  "FILE" },
		{ "trace-events", 0, 0, G_OPTION_ARG_STRING, &opt->trace_events,
		  "only these kinds of events, joined by commas", "LIST" },
		{ "trace-from", 0, 0, G_OPTION_ARG_STRING, &opt->trace_from,
		  "start (the default), or command: only while the command runs", "WHEN" },
		{ "no-park", 0, 0, G_OPTION_ARG_NONE, &opt->no_park,
		  "soft: execute loops that only wait; the result is the same, later (docs/soft-engine.md)", NULL },
		{ "profile", 0, 0, G_OPTION_ARG_NONE, &opt->profile,
		  "soft: say where the time went, by class, function and cache line (docs/profile.md)", NULL },
		{ "initrd", 0, 0, G_OPTION_ARG_FILENAME, &opt->initrd, "the guest's initramfs",
		  "FILE" },
		{ "appliance-kernel", 0, 0, G_OPTION_ARG_FILENAME, &opt->appliance_kernel,
		  "nested: the kernel under the VMM (the project's own)", "FILE" },
		{ "console", 'c', 0, G_OPTION_ARG_NONE, &opt->console, "relay the guest's console",
		  NULL },
		{ "all", 'a', 0, G_OPTION_ARG_NONE, &opt->all,
		  "print counters of second sources and of the engine too, and histograms", NULL },
		{ "quiet", 'q', 0, G_OPTION_ARG_NONE, &opt->quiet, "print no table", NULL },
		{ "interleave", 0, 0, G_OPTION_ARG_NONE, &opt->interleave,
		  "a VM for each repeat, and cells by turns in random order; kvm does so where [vary] has kernels or knobs (docs/compare.md)",
		  NULL },
		{ "resume", 0, 0, G_OPTION_ARG_NONE, &opt->resume,
		  "keep each finished cell beside -o, and do not run again those that are there (docs/scenario.md)", NULL },
		{ "jobs", 'j', 0, G_OPTION_ARG_INT, &opt->jobs,
		  "soft: so many cells side by side (as many as the host has CPUs for, and memory)", "N" },
		{ "memory", 0, 0, G_OPTION_ARG_STRING, &opt->memory,
		  "what cells that run at the same time may take in all, guest RAM and VMM (what the host has free)", "SIZE" },
		{ G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &opt->files, NULL, "FILE" },
		{ 0 }
	};
	GOptionGroup *group = g_option_group_new("run", "", "", NULL, NULL);

	g_option_group_add_entries(group, entries);
	return group;
}

void run_options_clear(struct run_options *opt)
{
	g_strfreev(opt->set);
	g_strfreev(opt->vary);
	g_strfreev(opt->files);
	g_free(opt->output);
	g_free(opt->engine);
	g_free(opt->kernel);
	g_free(opt->initrd);
	g_free(opt->appliance_kernel);
	g_free(opt->snapshot);
	g_free(opt->save_snapshot);
	g_free(opt->trace);
	g_free(opt->trace_events);
	g_free(opt->trace_from);
	g_free(opt->memory);
	g_free(opt->connect);
}
