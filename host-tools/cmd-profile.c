// SPDX-License-Identifier: GPL-2.0-only
/* faultbed profile: where the time of a result went. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "front.h"
#include "result-json.h"
#include "show-profile.h"
#include "summary.h"

struct profile_options {
	int cell, repeat;	/* from 1; cell 0: all */
	char *folded;
	char **files;
};

static int write_folded(const char *path, JsonObject *profile)
{
	FILE *f = strcmp(path, "-") ? fopen(path, "we") : stdout;
	int err = 0;

	if (!f) {
		fb_err("--folded %s: %s", path, g_strerror(errno));
		return STATUS_BAD_INPUT;
	}
	profile_fold(f, profile);
	if (fflush(f) || ferror(f))
		err = errno ? errno : EIO;
	if (f != stdout && fclose(f) && !err)
		err = errno;
	if (err)
		fb_err("--folded %s: %s", path, g_strerror(err));
	return err ? STATUS_BAD_INPUT : STATUS_DONE;
}

static const char *cell_name(JsonArray *cells, u32 i)
{
	return summary_string(json_array_get_object_element(cells, i), "name", "?");
}

static int profile_cells(const struct profile_options *opt, JsonArray *cells)
{
	u32 nr = json_array_get_length(cells), shown = 0, only = (u32)opt->cell, repeat = (u32)opt->repeat - 1;
	int status = STATUS_DONE;

	if (only > nr) {
		fb_err("--cell %u: %s has %u cell%s", only, opt->files[0], nr, nr == 1 ? "" : "s");
		return STATUS_BAD_INPUT;
	}
	if (opt->folded && !only && nr > 1) {
		fb_err("--folded goes with one cell: %s has %u, choose with --cell N", opt->files[0], nr);
		return STATUS_BAD_INPUT;
	}
	for (u32 i = only ? only - 1 : 0; i < (only ? only : nr); i++) {
		JsonObject *profile = profile_of(json_array_get_object_element(cells, i), repeat);

		if (!profile)
			continue;
		shown++;
		if (opt->folded)
			status = write_folded(opt->folded, profile);
		else
			show_profile(stdout, cell_name(cells, i), repeat, profile);
	}
	if (shown)
		return status;
	fb_err("%s: no profile of %s%s, repeat %d; faultbed run --profile takes them, on engine soft", opt->files[0],
	       only ? "cell " : "any cell", only ? cell_name(cells, only - 1) : "", opt->repeat);
	return STATUS_BAD_INPUT;
}

static int profile_file(const struct profile_options *opt)
{
	g_autoptr(JsonNode) result = NULL;

	if (!opt->files || opt->files[1]) {
		fb_err("faultbed profile takes one result file");
		return STATUS_BAD_INPUT;
	}
	if (opt->cell < 0 || opt->repeat < 1) {
		fb_err("--cell and --repeat count from 1");
		return STATUS_BAD_INPUT;
	}
	result = result_read(opt->files[0]);
	return result ? profile_cells(opt, summary_array(json_node_get_object(result), "cells")) : STATUS_BAD_INPUT;
}

int cmd_profile(int argc, char **argv)
{
	struct profile_options opt = { .repeat = 1 };
	const GOptionEntry entries[] = {
		{ "cell", 'c', 0, G_OPTION_ARG_INT, &opt.cell, "only this cell, from 1", "N" },
		{ "repeat", 'r', 0, G_OPTION_ARG_INT, &opt.repeat, "of this repeat, from 1 (1)", "N" },
		{ "folded", 'f', 0, G_OPTION_ARG_FILENAME, &opt.folded,
		  "write folded stacks for flame-graph tools there instead, - for standard output", "FILE" },
		{ G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &opt.files, NULL, "FILE.json" },
		{ 0 }
	};
	g_autoptr(GOptionContext) context = g_option_context_new("- where the time of a result went");
	g_autoptr(GError) err = NULL;
	int status = STATUS_BAD_INPUT;

	g_option_context_set_summary(context, "Of results of faultbed run --profile: time by class, by function, by cache line\n"
					      "(docs/profile.md).");
	g_option_context_add_main_entries(context, entries, NULL);
	if (!g_option_context_parse(context, &argc, &argv, &err))
		fb_err("%s (faultbed profile --help)", err->message);
	else
		status = profile_file(&opt);
	g_free(opt.folded);
	g_strfreev(opt.files);
	return status;
}
