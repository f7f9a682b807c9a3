// SPDX-License-Identifier: GPL-2.0-only
/* faultbed sweep: a matrix that goes on where it was, some of its cells, or all of them on other hosts. */
#include "base/log.h"
#include "run-options.h"

static int sweep(struct run_options *opt, int argc, char **argv)
{
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
	return status;
}
