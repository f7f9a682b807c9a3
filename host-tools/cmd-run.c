// SPDX-License-Identifier: GPL-2.0-only
/* faultbed run, faultbed show. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/nearest.h"
#include "job.h"
#include "parts.h"
#include "result-json.h"
#include "run-options.h"
#include "scenario-keys.h"
#include "show.h"
#include "show-profile.h"
#include "summary.h"

static char *now_text(void)
{
	g_autoptr(GDateTime) now = g_date_time_new_now_utc();

	return g_date_time_format_iso8601(now);
}

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

/* The options that stand for a --set; NULL (reported) if one of them does not. Paths are the caller's, so they are made absolute. */
static GPtrArray *all_sets(const struct run_options *opt)
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

/* The result could not go where it should: leave it and the records where they are. */
static void job_keep(struct job *job, JsonNode *result)
{
	g_autofree char *path = g_build_filename(job->tmp, "result.json", NULL);

	job->keep = true;
	if (!result_write(result, path))
		fb_info("the result was written to %s instead", path);
	fb_info("the records are kept in %s", job->tmp);
}

/* Of each cell the first repeat's; faultbed profile shows the others. */
static void show_profiles(JsonNode *result)
{
	JsonArray *cells = summary_array(json_node_get_object(result), "cells");

	for (u32 i = 0; i < json_array_get_length(cells); i++) {
		JsonObject *cell = json_array_get_object_element(cells, i), *profile = profile_of(cell, 0);

		if (profile)
			show_profile(stdout, summary_string(cell, "name", "?"), 0, profile);
	}
}

static int run_job(struct job *job, const struct run_options *opt, int argc, char **argv)
{
	g_autoptr(JsonNode) result = NULL;
	int status = run_choose(job, opt);

	if (status)
		return status;
	if (opt->resume) {
		job->parts = parts_open(opt->output, &status);
		if (!job->parts)
			return status;
	}
	child_catch_signals(&job->signals);
	job->console = opt->console;
	job->begin = now_text();
	status = job->engine == ENGINE_NESTED ? nested_run(job) : direct_run(job);
	job->finish = now_text();
	/* Nothing was even tried: there is no result to write. */
	if (status && !((struct cell *)job->cells->pdata[0])->tried)
		return status;
	status = front_worse(status, job_status(job));
	result = result_build(job, argc, argv);
	if (!opt->quiet)
		show_result(stdout, result, opt->all);
	if (!opt->quiet && job->profile)
		show_profiles(result);
	fflush(stdout);
	if (opt->output) {
		if (result_write(result, opt->output)) {
			job_keep(job, result);
			return front_worse(status, STATUS_BAD_INPUT);
		}
		fb_info("wrote %s", opt->output);
	}
	return status;
}

static int run_file(const struct run_options *opt, int argc, char **argv)
{
	g_autoptr(GPtrArray) set = all_sets(opt);
	struct job *job;
	int status;

	if (!set)
		return STATUS_BAD_INPUT;
	/* Hours of measuring that then cannot be written would be a poor joke. */
	if (opt->output && result_target(opt->output))
		return STATUS_BAD_INPUT;
	job = job_new(opt->files[0], set);
	if (!job)
		return STATUS_BAD_INPUT;
	status = run_job(job, opt, argc, argv);
	if (job->parts)
		parts_close(job->parts);
	job_free(job);
	return status;
}

int cmd_run(int argc, char **argv)
{
	struct run_options opt = { 0 };
	const GOptionEntry entries[] = {
		{ "set", 's', 0, G_OPTION_ARG_STRING_ARRAY, &opt.set,
		  "override a key of the scenario; a key of [vary] set so is not varied",
		  "SECTION.KEY=VALUE" },
		{ "vary", 'v', 0, G_OPTION_ARG_STRING_ARRAY, &opt.vary,
		  "one more axis of [vary], or other values for one: topology=2x10x2,4x15x2", "KEY=VALUE,..." },
		{ "output", 'o', 0, G_OPTION_ARG_FILENAME, &opt.output, "write the result here",
		  "FILE.json" },
		{ "engine", 'e', 0, G_OPTION_ARG_STRING, &opt.engine,
		  "the same as --set vm.engine=NAME", "NAME" },
		{ "kernel", 'k', 0, G_OPTION_ARG_FILENAME, &opt.kernel, "the guest's kernel",
		  "FILE" },
		{ "snapshot", 0, 0, G_OPTION_ARG_FILENAME, &opt.snapshot,
		  "soft: start from this booted guest", "FILE" },
		{ "save-snapshot", 0, 0, G_OPTION_ARG_FILENAME, &opt.save_snapshot,
		  "soft: boot, and keep the booted guest here", "FILE" },
		{ "no-snapshot", 0, 0, G_OPTION_ARG_NONE, &opt.no_snapshot,
		  "soft: boot, use and keep no snapshot in the cache (docs/snapshots.md)", NULL },
		{ "trace", 0, 0, G_OPTION_ARG_FILENAME, &opt.trace,
		  "write what happens in the VM, event by event (docs/tracing.md); of several cells into FILE.1, FILE.2, ...",
		  "FILE" },
		{ "trace-events", 0, 0, G_OPTION_ARG_STRING, &opt.trace_events,
		  "only these kinds of events, joined by commas", "LIST" },
		{ "trace-from", 0, 0, G_OPTION_ARG_STRING, &opt.trace_from,
		  "start (the default), or command: only while the command runs", "WHEN" },
		{ "no-park", 0, 0, G_OPTION_ARG_NONE, &opt.no_park,
		  "soft: execute loops that only wait; the result is the same, later (docs/soft-engine.md)", NULL },
		{ "profile", 0, 0, G_OPTION_ARG_NONE, &opt.profile,
		  "soft: say where the time went, by class, function and cache line (docs/profile.md)", NULL },
		{ "initrd", 0, 0, G_OPTION_ARG_FILENAME, &opt.initrd, "the guest's initramfs",
		  "FILE" },
		{ "appliance-kernel", 0, 0, G_OPTION_ARG_FILENAME, &opt.appliance_kernel,
		  "nested: the kernel under the VMM (the project's own)", "FILE" },
		{ "console", 'c', 0, G_OPTION_ARG_NONE, &opt.console, "relay the guest's console",
		  NULL },
		{ "all", 'a', 0, G_OPTION_ARG_NONE, &opt.all,
		  "print counters of second sources and of the engine too, and histograms", NULL },
		{ "quiet", 'q', 0, G_OPTION_ARG_NONE, &opt.quiet, "print no table", NULL },
		{ "interleave", 0, 0, G_OPTION_ARG_NONE, &opt.interleave,
		  "a VM for each repeat, and cells by turns in random order; kvm does so where [vary] has kernels or knobs (docs/compare.md)",
		  NULL },
		{ "resume", 0, 0, G_OPTION_ARG_NONE, &opt.resume,
		  "keep each finished cell beside -o, and do not run again those that are there (docs/scenario.md)", NULL },
		{ "jobs", 'j', 0, G_OPTION_ARG_INT, &opt.jobs,
		  "soft: so many cells side by side (as many as the host has CPUs and memory for)", "N" },
		{ G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &opt.files, NULL, "FILE" },
		{ 0 }
	};
	g_autoptr(GOptionContext) context = g_option_context_new("- run a scenario");
	g_autoptr(GError) err = NULL;
	g_auto(GStrv) given = g_strdupv(argv);
	int status = STATUS_BAD_INPUT;

	g_option_context_set_summary(
		context,
		"Boots the guest of each cell of the scenario, runs its command, prints the counters.\n"
		"Exit status: 0 done, 1 the guest's command failed, 2 bad input, 3 this host cannot do it,\n"
		"4 internal error, 5 the guest panicked, oopsed or hung, 130 interrupted; of several cells\n"
		"the worst. What was measured is printed and written in any case.");
	g_option_context_add_main_entries(context, entries, NULL);
	if (!g_option_context_parse(context, &argc, &argv, &err))
		fb_err("%s (faultbed run --help)", err->message);
	else if (opt.jobs < 0)
		fb_err("--jobs %d: a number of cells, 1 or more", opt.jobs);
	else if (!opt.files || opt.files[1])
		fb_err("faultbed run takes one scenario file (faultbed list names those there are)");
	else
		status = run_file(&opt, g_strv_length(given), given);
	g_strfreev(opt.set);
	g_strfreev(opt.vary);
	g_strfreev(opt.files);
	g_free(opt.output);
	g_free(opt.engine);
	g_free(opt.kernel);
	g_free(opt.initrd);
	g_free(opt.appliance_kernel);
	g_free(opt.snapshot);
	g_free(opt.save_snapshot);
	g_free(opt.trace);
	g_free(opt.trace_events);
	g_free(opt.trace_from);
	return status;
}

int cmd_show(int argc, char **argv)
{
	gboolean all = FALSE;
	g_auto(GStrv) files = NULL;
	const GOptionEntry entries[] = { { "all", 'a', 0, G_OPTION_ARG_NONE, &all,
					   "all counters, and histograms", NULL },
					 { G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY,
					   &files, NULL, "FILE.json" },
					 { 0 } };
	g_autoptr(GOptionContext) context = g_option_context_new("- print a result");
	g_autoptr(GError) err = NULL;
	g_autoptr(JsonNode) result = NULL;

	g_option_context_add_main_entries(context, entries, NULL);
	if (!g_option_context_parse(context, &argc, &argv, &err)) {
		fb_err("%s (faultbed show --help)", err->message);
		return STATUS_BAD_INPUT;
	}
	if (!files || files[1]) {
		fb_err("faultbed show takes one result file");
		return STATUS_BAD_INPUT;
	}
	result = result_read(files[0]);
	if (!result)
		return STATUS_BAD_INPUT;
	show_result(stdout, result, all);
	return STATUS_DONE;
}
