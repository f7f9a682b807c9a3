// SPDX-License-Identifier: GPL-2.0-only
/* faultbed sweep: a matrix that goes on where it was, some of its cells, or all of them on other hosts. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "emit.h"
#include "run-options.h"

/* Is this one of the options about jobs and the result? *takes: the next one is its value. */
static bool about_jobs(const char *arg, bool *takes)
{
	static const char *const mine[] = { "--emit", "--throttle", "--cells", "--output" };

	*takes = false;
	for (size_t k = 0; k < ARRAY_SIZE(mine); k++) {
		size_t len = strlen(mine[k]);

		if (strncmp(arg, mine[k], len) || (arg[len] && arg[len] != '='))
			continue;
		*takes = !arg[len];
		return true;
	}
	return !strcmp(arg, "--retry");
}

/* "-o" behind such as "-q": those stay. */
static char *without_output(const char *arg, bool *takes)
{
	size_t flags = arg[0] == '-' ? 1 + strspn(arg + 1, "acq") : 0;

	*takes = false;
	if (!flags || arg[flags] != 'o')
		return g_strdup(arg);
	*takes = !arg[flags + 1];
	return flags > 1 ? g_strndup(arg, flags) : NULL;
}

/*
 * The arguments that each job gets: all but those about jobs, and the result's name, which stands where the job wants it. More options
 * will follow, so that a "--" goes, and the name behind it gets a folder.
 */
static char **job_arguments(int argc, char **argv)
{
	GPtrArray *list = g_ptr_array_new();
	bool names = false;

	for (int i = 1; i < argc; i++) {
		char *arg = NULL;
		bool takes = false;

		if (names)
			arg = g_strconcat(*argv[i] == '-' ? "./" : "", argv[i], NULL);
		else if (!strcmp(argv[i], "--"))
			names = true;
		else if (!about_jobs(argv[i], &takes))
			arg = without_output(argv[i], &takes);
		i += takes;
		if (arg)
			g_ptr_array_add(list, arg);
	}
	g_ptr_array_add(list, NULL);
	return (char **)g_ptr_array_free(list, FALSE);
}

int sweep_look(struct job *job, const struct run_options *opt, int argc, char **argv)
{
	g_autofree char *missing = emit_missing(job);
	g_auto(GStrv) arguments = NULL;

	if (opt->missing) {
		/* One a line, for xargs and the like. */
		for (u32 i = 0; i < job->cells->len; i++)
			if (!((struct cell *)job->cells->pdata[i])->tried)
				printf("%u\n", ((struct cell *)job->cells->pdata[i])->nr);
		return fflush(stdout) ? STATUS_BAD_INPUT : STATUS_DONE;
	}
	if (opt->emit) {
		arguments = job_arguments(argc, argv);

		const struct emit e = {
			.kind = opt->emit, .output = opt->output, .throttle = (u32)opt->throttle, .arguments = arguments,
			.retry = opt->retry,
		};

		return emit_script(stdout, job, &e);
	}
	if (*missing)
		fb_err("cells %s are not finished; faultbed sweep with --cells %s runs them, and without --collect or --cells, too", missing, missing);
	return run_result(job, opt, *missing ? STATUS_INTERRUPTED : STATUS_DONE, argc, argv);
}

static int sweep(struct run_options *opt, int argc, char **argv)
{
	if (opt->emit && !emit_kind(opt->emit))
		return STATUS_BAD_INPUT;
	if (!!opt->emit + opt->missing + opt->collect > 1 || (opt->collect && opt->cells)) {
		fb_err("--emit, --missing and --collect exclude each other, and --collect is for all cells");
		return STATUS_BAD_INPUT;
	}
	if (opt->throttle < 0 || (opt->throttle && (!opt->emit || strcmp(opt->emit, "slurm")))) {
		fb_err("--throttle %d: tasks of --emit slurm at once, 1 or more", opt->throttle);
		return STATUS_BAD_INPUT;
	}
	opt->resume = TRUE;
	return run_file(opt, argc, argv);
}

int cmd_sweep(int argc, char **argv)
{
	struct run_options opt = { 0 };
	const GOptionEntry entries[] = {
		{ "cells", 0, 0, G_OPTION_ARG_STRING, &opt.cells,
		  "run just these cells, 1-3,7, keep them, and write no result", "LIST" },
		{ "retry", 0, 0, G_OPTION_ARG_NONE, &opt.retry,
		  "run cells again whose command failed or whose guest died", NULL },
		{ "emit", 0, 0, G_OPTION_ARG_STRING, &opt.emit,
		  "run nothing: write a job array for Slurm, or a script for GNU parallel over ssh, to standard output", "slurm|parallel" },
		{ "throttle", 0, 0, G_OPTION_ARG_INT, &opt.throttle, "with --emit slurm: so many tasks at once at most", "N" },
		{ "missing", 0, 0, G_OPTION_ARG_NONE, &opt.missing, "run nothing: the numbers of the cells that are not finished, one a line", NULL },
		{ "collect", 0, 0, G_OPTION_ARG_NONE, &opt.collect,
		  "run nothing: make the result of the cells that are finished, on whichever host", NULL },
		{ 0 }
	};
	g_autoptr(GOptionContext) context = g_option_context_new("- run a matrix, in as many goes as it takes");
	g_autoptr(GError) err = NULL;
	g_auto(GStrv) given = g_strdupv(argv);
	int status = STATUS_BAD_INPUT;

	g_option_context_set_summary(
		context,
		"As faultbed run, but each finished cell is kept in RESULT.json.parts/ and never run again: one that was\n"
		"ended, by whatever, goes on where it was when it is started again. docs/sweeps.md has more.");
	g_option_context_set_main_group(context, run_options_group(&opt));
	g_option_context_add_main_entries(context, entries, NULL);
	if (!g_option_context_parse(context, &argc, &argv, &err))
		fb_err("%s (faultbed sweep --help)", err->message);
	else if (opt.jobs < 0)
		fb_err("--jobs %d: a number of cells, 1 or more", opt.jobs);
	else if (!opt.files || opt.files[1])
		fb_err("faultbed sweep takes one scenario file (faultbed list names those there are)");
	else
		status = sweep(&opt, g_strv_length(given), given);
	run_options_clear(&opt);
	g_free(opt.cells);
	g_free(opt.emit);
	return status;
}
