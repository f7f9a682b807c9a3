// SPDX-License-Identifier: GPL-2.0-only
/* faultbed run, faultbed show. */
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "job.h"
#include "parts.h"
#include "result-json.h"
#include "run-options.h"
#include "show.h"
#include "show-profile.h"
#include "summary.h"

char *run_now(void)
{
	g_autoptr(GDateTime) now = g_date_time_new_now_utc();

	return g_date_time_format_iso8601(now);
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

int run_result(struct job *job, const struct run_options *opt, int status, int argc, char **argv)
{
	g_autoptr(JsonNode) result = result_build(job, argc, argv);

	status = front_worse(status, job_status(job));
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

static int run_job(struct job *job, const struct run_options *opt, int argc, char **argv)
{
	int status = run_choose(job, opt);

	if (status)
		return status;
	if (opt->resume) {
		job->look = opt->missing || opt->collect || opt->emit;
		job->parts = parts_open(opt->output, job, job->look ? PARTS_LOOK : opt->cells ? PARTS_SOME : PARTS_ALL, opt->retry, &status);
		if (!job->parts)
			return status;
	}
	child_catch_signals(&job->signals);
	job->console = opt->console;
	job->begin = run_now();
	status = job->engine == ENGINE_NESTED ? nested_run(job) : direct_run(job);
	job->finish = run_now();
	if (job->look)
		return sweep_look(job, opt, argc, argv);
	/* Nothing was even tried: there is no result to write. */
	if (status && (job->refused || !((struct cell *)job->cells->pdata[0])->tried))
		return status;
	return opt->cells ? front_worse(status, job_status(job)) : run_result(job, opt, status, argc, argv);
}

int run_file(const struct run_options *opt, int argc, char **argv)
{
	g_autoptr(GPtrArray) set = run_sets(opt);
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
	if (opt->check) {
		fb_info("%s: sound, %u cell%s", job->path, job->matrix, job->matrix == 1 ? "" : "s");
		status = STATUS_DONE;
	} else {
		status = run_job(job, opt, argc, argv);
	}
	if (job->parts)
		parts_close(job->parts);
	job_free(job);
	return status;
}

int cmd_run(int argc, char **argv)
{
	struct run_options opt = { 0 };
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
	g_option_context_set_main_group(context, run_options_group(&opt));
	if (!g_option_context_parse(context, &argc, &argv, &err))
		fb_err("%s (faultbed run --help)", err->message);
	else if (opt.jobs < 0)
		fb_err("--jobs %d: a number of cells, 1 or more", opt.jobs);
	else if (!opt.files || opt.files[1])
		fb_err("faultbed run takes one scenario file (faultbed list names those there are)");
	else
		status = run_file(&opt, g_strv_length(given), given);
	run_options_clear(&opt);
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
