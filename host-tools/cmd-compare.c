// SPDX-License-Identifier: GPL-2.0-only
/* faultbed compare: what changed between two results. */
#include <stdio.h>

#include "base/log.h"
#include "compare.h"
#include "front.h"
#include "result-json.h"
#include "show.h"

static int compare_files(char **files, bool anyway, bool all)
{
	g_autoptr(JsonNode) a = result_read(files[0]), b = result_read(files[1]);
	g_autoptr(GPtrArray) differences = NULL;

	if (!a || !b)
		return COMPARE_REFUSED;
	differences = compare_scenarios(json_node_get_object(a), json_node_get_object(b));
	for (u32 i = 0; i < differences->len; i++) {
		g_autofree char *line =
			g_strdup_printf(" differs: %s\n", (char *)differences->pdata[i]);

		show_text(anyway ? stdout : stderr, line);
	}
	if (differences->len && !anyway) {
		fb_err("these are results of two scenarios, so a difference could come from that; --anyway compares them");
		return COMPARE_REFUSED;
	}
	return compare_results(stdout, a, b, files[0], files[1], all);
}

int cmd_compare(int argc, char **argv)
{
	gboolean anyway = FALSE, all = FALSE;
	g_auto(GStrv) files = NULL;
	const GOptionEntry entries[] = { { "anyway", 0, 0, G_OPTION_ARG_NONE, &anyway,
					   "compare results of scenarios that differ", NULL },
					 { "all", 'a', 0, G_OPTION_ARG_NONE, &all,
					   "counters of second sources and of the engine too",
					   NULL },
					 { G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY,
					   &files, NULL, "A.json B.json" },
					 { 0 } };
	g_autoptr(GOptionContext) context =
		g_option_context_new("- what changed between two results");
	g_autoptr(GError) err = NULL;

	g_option_context_set_summary(
		context,
		"Means, difference, percent and the 95% interval (Welch) of each figure, and a verdict.\n"
		"Exit status: 0 compared, with a verdict on performance; 1 compared, but no such verdict\n"
		"can be given (an emulated clock, too few repeats or rounds); 2 bad input, or results of\n"
		"scenarios that differ. Kernel and initramfs may differ: those one compares on purpose.");
	g_option_context_add_main_entries(context, entries, NULL);
	if (!g_option_context_parse(context, &argc, &argv, &err)) {
		fb_err("%s (faultbed compare --help)", err->message);
		return COMPARE_REFUSED;
	}
	if (!files || !files[1] || files[2]) {
		fb_err("faultbed compare takes two result files");
		return COMPARE_REFUSED;
	}
	return compare_files(files, anyway, all);
}
