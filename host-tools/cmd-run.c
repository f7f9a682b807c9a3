// SPDX-License-Identifier: GPL-2.0-only
/* faultbed run, faultbed show. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "core/trace.h"
#include "job.h"
#include "result-json.h"
#include "show.h"
#include "show-profile.h"
#include "summary.h"

struct run_options {
	char **set, **files;
	char *output, *engine, *kernel, *initrd, *appliance_kernel, *snapshot, *save_snapshot;
	char *trace, *trace_events, *trace_from;
	gboolean console, all, quiet, no_snapshot, no_park, profile, interleave;
	int jobs;
};

/* What `faultbed-vmm probe` says: "kvm: yes: ..." or "kvm: no: WHY". true if it can be used. */
static bool probe_kvm(char **says)
{
	g_autofree char *vmm = front_vmm();
	char *const argv[] = { vmm, "probe", NULL };
	g_autoptr(GError) err = NULL;
	int status = 0;

	if (!g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_STDERR_TO_DEV_NULL, NULL, NULL, says,
			  NULL, &status, &err)) {
		*says = g_strdup_printf("%s (make builds it)", err->message);
		return false;
	}
	g_strchomp(*says);
	return g_spawn_check_wait_status(status, NULL);
}

/* The sentence behind "kvm: no: ". */
static const char *probe_reason(const char *says)
{
	static const char no[] = "kvm: no: ";

	return g_str_has_prefix(says, no) ? says + strlen(no) : says;
}

/* Nested needs QEMU, and a kernel to carry the VMM. */
static int prepare_nested(struct job *job, const struct run_options *opt)
{
	struct cell *first = job->cells->pdata[0];

	job->qemu = front_qemu();
	if (!job->qemu) {
		fb_err("engine nested needs qemu-system-x86_64, which is not installed: make deps installs it");
		return STATUS_HOST;
	}

	const char *const argv[] = { job->qemu, "--version", NULL };
	g_autofree char *version = front_output_of(argv);

	if (!version) {
		fb_err("%s --version does not work", job->qemu);
		return STATUS_HOST;
	}
	job->qemu_version = g_strndup(version, strcspn(version, "\n("));
	g_strchomp(job->qemu_version);

	job->appliance_kernel =
		opt->appliance_kernel ? g_strdup(opt->appliance_kernel) : front_kernel();
	/* Without the project's own kernel the guest's may do; the appliance says if it has no KVM. */
	if (!opt->appliance_kernel && !g_file_test(job->appliance_kernel, G_FILE_TEST_EXISTS)) {
		g_free(job->appliance_kernel);
		job->appliance_kernel = g_strdup(first->kernel);
	}
	if (access(job->appliance_kernel, R_OK)) {
		fb_err("%s: the appliance's kernel cannot be read", job->appliance_kernel);
		return STATUS_BAD_INPUT;
	}
	return STATUS_DONE;
}

/* What is said of snapshots goes to the VMM; paths are the caller's. Only one option at a time. */
static int choose_snapshot(struct job *job, const struct run_options *opt)
{
	const char *name = opt->snapshot ? "--snapshot" : opt->save_snapshot ? "--save-snapshot" : "--no-snapshot";
	const char *file = opt->snapshot ? opt->snapshot : opt->save_snapshot;
	g_autofree char *path = file ? g_canonicalize_filename(file, NULL) : NULL;

	if (!!opt->snapshot + !!opt->save_snapshot + opt->no_snapshot > 1) {
		fb_err("--snapshot, --save-snapshot and --no-snapshot exclude each other");
		return STATUS_BAD_INPUT;
	}
	if (opt->save_snapshot && job->cells->len > 1) {
		fb_err("--save-snapshot %s: one file, and %u cells; choose one with --set", opt->save_snapshot,
		       job->cells->len);
		return STATUS_BAD_INPUT;
	}
	if (file && job->engine != ENGINE_SOFT) {
		fb_err("%s: engine %s has no snapshots, since its guests depend on the host; soft has", name,
		       engine_name(job->engine));
		return STATUS_HOST;
	}
	if (job->engine == ENGINE_SOFT && (file || opt->no_snapshot)) {
		job->snapshot = g_new0(char *, 3);
		job->snapshot[0] = g_strdup(name);
		job->snapshot[1] = g_steal_pointer(&path);
	}
	return STATUS_DONE;
}

/*
 * Is what is asked of traces sound? Whether the engine can see the kinds of events is left to the VMM, which
 * knows the cell's local APIC.
 */
static int choose_trace(struct job *job, const struct run_options *opt)
{
	g_autofree char *err = NULL;
	g_autoptr(GPtrArray) list = g_ptr_array_new();
	u32 mask;

	if (!opt->trace) {
		if (!opt->trace_events && !opt->trace_from)
			return STATUS_DONE;
		fb_err("--trace-events and --trace-from go with --trace FILE");
		return STATUS_BAD_INPUT;
	}
	if (opt->trace_events && trace_parse_kinds(opt->trace_events, &mask, &err)) {
		fb_err("--trace-events: %s", err);
		return STATUS_BAD_INPUT;
	}
	if (opt->trace_from && strcmp(opt->trace_from, "start") && strcmp(opt->trace_from, "command")) {
		fb_err("--trace-from %s: start or command", opt->trace_from);
		return STATUS_BAD_INPUT;
	}
	if (job->engine == ENGINE_NESTED) {
		fb_err("--trace: engine nested has none, since its VMM runs inside the appliance; soft has");
		return STATUS_HOST;
	}
	job->trace_file = g_canonicalize_filename(opt->trace, NULL);
	if (opt->trace_events) {
		g_ptr_array_add(list, g_strdup("--trace-events"));
		g_ptr_array_add(list, g_strdup(opt->trace_events));
	}
	if (opt->trace_from) {
		g_ptr_array_add(list, g_strdup("--trace-from"));
		g_ptr_array_add(list, g_strdup(opt->trace_from));
	}
	g_ptr_array_add(list, NULL);
	job->trace = (char **)g_ptr_array_free(g_steal_pointer(&list), FALSE);
	return STATUS_DONE;
}

/* Does the engine know where time goes? */
static int choose_profile(struct job *job, const struct run_options *opt)
{
	if (opt->profile && job->engine != ENGINE_SOFT) {
		fb_err("--profile: engine %s cannot tell where time goes, since its time is the host's; soft can",
		       engine_name(job->engine));
		return STATUS_HOST;
	}
	if (opt->no_park && job->engine != ENGINE_SOFT) {
		fb_err("--no-park: engine %s parks no vCPU that waits in a loop; soft does", engine_name(job->engine));
		return STATUS_HOST;
	}
	job->profile = opt->profile;
	job->no_park = opt->no_park;
	return STATUS_DONE;
}

/*
 * Cells that will be compared, on an engine whose time is the host's: each repeat is a VM of its own, and they take turns at random. Where
 * time is virtual, neighbours and order are not noticed.
 */
static int choose_order(struct job *job, const struct run_options *opt)
{
	bool factor = false, repeats = false;

	if (opt->interleave && job->engine != ENGINE_KVM && job->engine != ENGINE_SOFT) {
		fb_err("--interleave: engine %s runs its cells in one machine, one after another; kvm and soft have it",
		       engine_name(job->engine));
		return STATUS_HOST;
	}
	for (u32 i = 0; i < job->cells->len; i++) {
		const struct cell *cell = job->cells->pdata[i];

		repeats |= cell->scenario->repeat > 1;
		for (char **o = cell->set; *o; o++)
			factor |= g_str_has_prefix(*o, "guest.kernel=") || g_str_has_prefix(*o, "guest.knob.");
	}
	job->interleave = opt->interleave || (job->engine == ENGINE_KVM && factor && repeats);
	if (job->interleave && job->trace_file) {
		fb_err("--trace: repeats that are VMs of their own (--interleave, or kernels and knobs compared on kvm) have no trace file each");
		return STATUS_BAD_INPUT;
	}
	return STATUS_DONE;
}

/* Choose, and say on the first line what was chosen and why. */
static int choose_engine(struct job *job, const struct run_options *opt)
{
	enum scenario_engine want = job->scenario->engine;
	g_autofree char *says = NULL;
	bool kvm;

	if (want == ENGINE_QEMU || want == ENGINE_LIBVIRT) {
		const char *origin = scenario_origin(job->scenario, "vm", "engine");

		fb_err("%s: engine = %s: not built yet in this version; there are kvm, soft and nested",
		       origin, engine_name(want));
		return STATUS_HOST;
	}
	kvm = probe_kvm(&says);
	if (want == ENGINE_KVM && !kvm) {
		fb_err("engine = kvm: %s; engine = soft needs none of it", probe_reason(says));
		return STATUS_HOST;
	}
	job->engine = want == ENGINE_AUTO ? kvm ? ENGINE_KVM : ENGINE_SOFT : want;
	if (want == ENGINE_AUTO)
		job->engine_why = g_strdup_printf("auto: %s", kvm ? says : probe_reason(says));
	else
		job->engine_why = g_strdup_printf("asked for by %s",
						  scenario_origin(job->scenario, "vm", "engine"));
	if (!opt->quiet)
		fb_info("engine: %s (%s)%s", engine_name(job->engine), job->engine_why,
			job->engine == ENGINE_NESTED ? "; its times and rates mean nothing" :
			job->engine == ENGINE_SOFT ? "; its time is virtual" : "");
	job->parallel = (u32)opt->jobs;

	int status = choose_snapshot(job, opt);

	if (!status)
		status = choose_trace(job, opt);
	if (!status)
		status = choose_profile(job, opt);
	if (!status)
		status = choose_order(job, opt);
	if (!status)
		status = job_settle(job);
	return !status && job->engine == ENGINE_NESTED ? prepare_nested(job, opt) : status;
}

static char *now_text(void)
{
	g_autoptr(GDateTime) now = g_date_time_new_now_utc();

	return g_date_time_format_iso8601(now);
}

/* The options that stand for a --set. Paths are the caller's, so they are made absolute. */
static GPtrArray *all_sets(const struct run_options *opt)
{
	GPtrArray *set = g_ptr_array_new_with_free_func(g_free);

	for (char **s = opt->set; s && *s; s++)
		g_ptr_array_add(set, g_strdup(*s));
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
	int status = choose_engine(job, opt);

	if (status)
		return status;
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

	/* Hours of measuring that then cannot be written would be a poor joke. */
	if (opt->output && result_target(opt->output))
		return STATUS_BAD_INPUT;
	job = job_new(opt->files[0], set);
	if (!job)
		return STATUS_BAD_INPUT;
	status = run_job(job, opt, argc, argv);
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
