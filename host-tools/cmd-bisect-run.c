// SPDX-License-Identifier: GPL-2.0-only
/*
 * faultbed bisect-run: one step of `git bisect run`. Build a kernel, run a scenario on it, and say by the exit status
 * whether its headline is worse than that of a result known to be good. What is not a measured verdict is 125, so that git skips the
 * commit instead of blaming it.
 */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <glib/gstdio.h>

#include "base/log.h"
#include "compare.h"
#include "front.h"
#include "result-json.h"
#include "show.h"

/* What git bisect run makes of a status; above 127 it gives up. */
enum bisect_status { BISECT_GOOD = 0, BISECT_BAD = 1, BISECT_SKIP = 125 };

struct options {
	char *build, *kernel, *good, *bad_is, *headline, *output, **set, **files;
	struct compare_options compare;
};

/* The status it ended with; one above 127 if it was a signal, as shells have it; -1 if it could not be started (reported). */
static int run_command(const char *const *argv)
{
	g_autoptr(GError) err = NULL;
	int status;

	if (!g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH | G_SPAWN_CHILD_INHERITS_STDIN, NULL, NULL, NULL, NULL,
			  &status, &err)) {
		fb_err("%s: %s", argv[0], err->message);
		return -1;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Of a step that is to succeed: what to leave with if it did not, else 0. */
static int step_status(const char *what, int status)
{
	if (!status)
		return 0;
	fb_info("%s ended with status %d: this commit is skipped", what, status);
	return status > 127 ? status : BISECT_SKIP;
}

static int build(const struct options *opt)
{
	const char *const argv[] = { "/bin/sh", "-c", opt->build, NULL };

	return opt->build ? step_status("--build", run_command(argv)) : 0;
}

static int measure(const struct options *opt, const char *result)
{
	g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
	g_autoptr(GPtrArray) argv = g_ptr_array_new();

	for (const char *const *a = (const char *const[]){ self, "run", "-q", opt->files[0], "-o", result, NULL }; *a; a++)
		g_ptr_array_add(argv, (char *)*a);
	if (opt->kernel) {
		g_ptr_array_add(argv, "--kernel");
		g_ptr_array_add(argv, opt->kernel);
	}
	for (char **s = opt->set; s && *s; s++) {
		g_ptr_array_add(argv, "--set");
		g_ptr_array_add(argv, *s);
	}
	g_ptr_array_add(argv, NULL);
	return step_status("faultbed run", run_command((const char *const *)argv->pdata));
}

/* Each pair has to be measured for a good one; a single bad one is enough. */
static enum bisect_status judge(const struct compare *c, enum compare_fail_on fail_on)
{
	switch (compare_status(c, fail_on)) {
	case COMPARE_FAILED:
		return BISECT_BAD;
	case COMPARE_VERDICT:
		return BISECT_GOOD;
	default:
		return BISECT_SKIP;
	}
}

static enum bisect_status compare_with_good(const struct options *opt, JsonNode *good, const char *result)
{
	enum compare_fail_on fail_on = g_strcmp0(opt->bad_is, "different") ? FAIL_ON_WORSE : FAIL_ON_DIFFERENT;
	g_autoptr(JsonNode) now = result_read(result);
	enum bisect_status status = BISECT_SKIP;
	struct compare *c;

	if (!now)
		return status;
	c = compare_new(&opt->compare);
	compare_add(c, good, now, opt->good, "this commit");
	if (c->differs->len || c->alone->len) {
		for (u32 i = 0; i < c->differs->len; i++) {
			g_autofree char *line = g_strdup_printf(" differs: %s\n", (char *)c->differs->pdata[i]);

			show_text(stderr, line);
		}
		fb_err("--good %s: another scenario, host or build of faultbed than this run; make it anew with this one", opt->good);
	} else if (compare_fail_on_ok(c, fail_on)) {
		compare_settle(c);
		compare_print(c, stdout);
		status = judge(c, fail_on);
	}
	compare_free(c);
	return status;
}

static int bisect_run(const struct options *opt)
{
	/* Before anything is built: without it there will never be a verdict. */
	g_autoptr(JsonNode) good = result_read(opt->good);
	g_autofree char *tmp = NULL;
	const char *result = opt->output;
	int status;

	if (!good)
		return BISECT_SKIP;
	status = build(opt);
	if (status)
		return status;
	if (!result) {
		tmp = g_strdup_printf("%s/faultbed-bisect-%d.json", g_get_tmp_dir(), getpid());
		result = tmp;
	}
	status = measure(opt, result);
	if (!status)
		status = compare_with_good(opt, good, result);
	if (tmp)
		g_unlink(tmp);
	printf("bisect-run: %s\n", status == BISECT_GOOD ? "good" : status == BISECT_BAD ? "bad" : "skipped, for want of a verdict");
	return status;
}

static bool options_ok(const struct options *opt)
{
	if (!opt->files || opt->files[1])
		fb_err("faultbed bisect-run takes one scenario file");
	else if (!opt->good)
		fb_err("--good BASE.json is missing: the result of the same scenario on a good commit (faultbed run -o)");
	else if (opt->bad_is && strcmp(opt->bad_is, "worse") && strcmp(opt->bad_is, "different"))
		fb_err("--bad %s: worse or different", opt->bad_is);
	else
		return compare_options_ok(&opt->compare);
	return false;
}

int cmd_bisect_run(int argc, char **argv)
{
	struct options opt = { .compare = COMPARE_OPTIONS };
	const GOptionEntry entries[] = {
		{ "good", 0, 0, G_OPTION_ARG_FILENAME, &opt.good, "the result to compare with, of a good commit", "BASE.json" },
		{ "build", 0, 0, G_OPTION_ARG_STRING, &opt.build, "build the kernel first; a failure skips the commit", "COMMAND" },
		{ "kernel", 'k', 0, G_OPTION_ARG_FILENAME, &opt.kernel, "the kernel that was built", "FILE" },
		{ "set", 's', 0, G_OPTION_ARG_STRING_ARRAY, &opt.set, "override a key of the scenario", "SECTION.KEY=VALUE" },
		{ "headline", 0, 0, G_OPTION_ARG_STRING, &opt.headline, "the figure that decides", "NAME" },
		{ "least", 0, 0, G_OPTION_ARG_DOUBLE, &opt.compare.least_percent, "bad is from so many percent on (1)", "PERCENT" },
		{ "least-by", 0, 0, G_OPTION_ARG_DOUBLE, &opt.compare.least, "and from so much on, in the headline's unit (0)", "NUMBER" },
		{ "confidence", 0, 0, G_OPTION_ARG_DOUBLE, &opt.compare.confidence, "of the verdict (0.95)", "NUMBER" },
		{ "bad", 0, 0, G_OPTION_ARG_STRING, &opt.bad_is, "worse (the default), or different: better is bad, too", "WHAT" },
		{ "output", 'o', 0, G_OPTION_ARG_FILENAME, &opt.output, "keep the commit's result here", "FILE.json" },
		{ G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &opt.files, NULL, "SCENARIO.ini" },
		{ 0 }
	};
	g_autoptr(GOptionContext) context = g_option_context_new("- one step of git bisect run");
	g_autoptr(GError) err = NULL;
	int status = BISECT_SKIP;

	g_option_context_set_summary(
		context,
		"In a kernel's tree: git bisect run faultbed bisect-run --build 'make -j8 bzImage'\n"
		"  --kernel arch/x86/boot/bzImage --good base.json --least 2 scenario.ini\n"
		"Exit status: 0 good, 1 bad, 125 no measured verdict (git skips the commit), above 127 interrupted (git stops).");
	g_option_context_add_main_entries(context, entries, NULL);
	if (!g_option_context_parse(context, &argc, &argv, &err))
		fb_err("%s (faultbed bisect-run --help)", err->message);
	opt.compare.headline = opt.headline;
	if (!err && options_ok(&opt))
		status = bisect_run(&opt);
	g_free(opt.build);
	g_free(opt.kernel);
	g_free(opt.good);
	g_free(opt.bad_is);
	g_free(opt.headline);
	g_free(opt.output);
	g_strfreev(opt.set);
	g_strfreev(opt.files);
	return status;
}
