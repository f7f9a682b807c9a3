// SPDX-License-Identifier: GPL-2.0-only
/* faultbed compare: what changed between results, by how much, and whether that is noise. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "compare.h"
#include "front.h"
#include "result-json.h"
#include "show.h"

struct options {
	gboolean anyway, all;
	char *headline, *fail_on, **files;
	struct compare_options compare;
};

static bool parse_fail_on(const char *text, enum compare_fail_on *out)
{
	if (!text)
		*out = FAIL_ON_NOTHING;
	else if (!strcmp(text, "worse"))
		*out = FAIL_ON_WORSE;
	else if (!strcmp(text, "different"))
		*out = FAIL_ON_DIFFERENT;
	else
		return false;
	return true;
}

/* NULL-terminated, in the order of the files; NULL if one is bad (reported). */
static GPtrArray *read_all(char **files)
{
	g_autoptr(GPtrArray) results = g_ptr_array_new_with_free_func((GDestroyNotify)json_node_unref);

	for (char **f = files; *f; f++) {
		JsonNode *result = result_read(*f);

		if (!result)
			return NULL;
		g_ptr_array_add(results, result);
	}
	return g_steal_pointer(&results);
}

/* false if something differs that may not (reported). */
static bool may_compare(const struct compare *c, bool anyway)
{
	for (u32 i = 0; i < c->differs->len; i++) {
		g_autofree char *line = g_strdup_printf(" differs: %s\n", (char *)c->differs->pdata[i]);

		show_text(anyway ? stdout : stderr, line);
	}
	if (c->differs->len && !anyway)
		fb_err("guest.kernel and guest.knob.* may differ, and nothing else, since a difference could come from that; --anyway compares them");
	return anyway || !c->differs->len;
}

static int compare_files(const struct options *opt, enum compare_fail_on fail_on)
{
	g_autoptr(GPtrArray) results = read_all(opt->files);
	struct compare *c;
	int status = COMPARE_REFUSED;

	if (!results)
		return status;
	c = compare_new(&opt->compare);
	for (u32 i = 1; i < results->len; i++)
		compare_add(c, results->pdata[0], results->pdata[i], opt->files[0], opt->files[i]);
	if (results->len == 1 && !compare_within(c, results->pdata[0])) {
		fb_err("%s: one result, and its [vary] goes through neither kernels nor knobs; name another result to compare it with",
		       opt->files[0]);
	} else if (may_compare(c, opt->anyway) && compare_fail_on_ok(c, fail_on)) {
		compare_settle(c);
		compare_print(c, stdout);
		status = compare_status(c, fail_on);
	}
	compare_free(c);
	return status;
}

static int run_options(const struct options *opt)
{
	enum compare_fail_on fail_on;

	if (!parse_fail_on(opt->fail_on, &fail_on))
		fb_err("--fail-on %s: worse or different", opt->fail_on);
	else if (!compare_options_ok(&opt->compare))
		return COMPARE_REFUSED;
	else if (!opt->files)
		fb_err("faultbed compare takes result files: the first is what the others are compared with");
	else
		return compare_files(opt, fail_on);
	return COMPARE_REFUSED;
}

int cmd_compare(int argc, char **argv)
{
	struct options opt = { .compare = COMPARE_OPTIONS };
	const GOptionEntry entries[] = {
		{ "headline", 0, 0, G_OPTION_ARG_STRING, &opt.headline,
		  "the figure that decides; run.headline of the scenario, or else the load's own rate", "NAME" },
		{ "least", 0, 0, G_OPTION_ARG_DOUBLE, &opt.compare.least_percent,
		  "a difference counts from so many percent of the first's mean on (1)", "PERCENT" },
		{ "least-by", 0, 0, G_OPTION_ARG_DOUBLE, &opt.compare.least, "and from so much on, in the headline's unit (0)", "NUMBER" },
		{ "confidence", 0, 0, G_OPTION_ARG_DOUBLE, &opt.compare.confidence, "of intervals and verdicts (0.95)", "NUMBER" },
		{ "fail-on", 0, 0, G_OPTION_ARG_STRING, &opt.fail_on, "exit with 6 if a headline is worse, or different",
		  "WHAT" },
		{ "anyway", 0, 0, G_OPTION_ARG_NONE, &opt.anyway, "compare results that differ in more than kernel and knobs", NULL },
		{ "all", 'a', 0, G_OPTION_ARG_NONE, &opt.all, "figures of second sources and of the engine, too", NULL },
		{ G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &opt.files, NULL, "A.json [B.json]..." },
		{ 0 }
	};
	g_autoptr(GOptionContext) context = g_option_context_new("- what changed between results, and is it noise?");
	g_autoptr(GError) err = NULL;
	int status = COMPARE_REFUSED;

	g_option_context_set_summary(
		context,
		"Each cell of B against that of A, or, of one result, against the one with the first kernel or knob: means, difference, interval,\n"
		"and a verdict on one headline (docs/compare.md).\n"
		"Exit status: 0 each pair has a verdict; 1 one has none (a clock that means nothing, too few repeats, too much\n"
		"noise, a cell that ended badly or is in one result only); 2 bad input, or more differs than kernel and knobs; 6 what --fail-on names.");
	g_option_context_add_main_entries(context, entries, NULL);
	if (!g_option_context_parse(context, &argc, &argv, &err))
		fb_err("%s (faultbed compare --help)", err->message);
	opt.compare.all = opt.all;
	opt.compare.headline = opt.headline;
	if (!err)
		status = run_options(&opt);
	g_free(opt.headline);
	g_free(opt.fail_on);
	g_strfreev(opt.files);
	return status;
}
