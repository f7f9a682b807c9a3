// SPDX-License-Identifier: GPL-2.0-only
/*
 * faultbed experiment: the scenarios of a published result, then the check that holds what came
 * out against what was published. Each scenario is a `faultbed run` of its own process, so that
 * whatever happens to it the rest goes on.
 */
#include <errno.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/nearest.h"
#include "child.h"
#include "experiment.h"
#include "front.h"
#include "result-json.h"
#include "scenario.h"

struct options {
	char **names, **set;
	char *engine, *output, *kernel, *initrd;
	gboolean all, list, tables;
	int jobs;
};

struct session {
	const struct options *opt;
	enum scenario_engine engine;
	char *home, *self;		/* experiments/, and this program */
	GPtrArray *there;		/* names of the experiments in home */
	struct child_signals signals;
	GPtrArray *done;		/* struct experiment, in the order they ran */
	char *bad_line;			/* the first line of a check that is none */
};

static const struct {
	const char *name;
	enum scenario_engine engine;
} engines[] = {
	{ "soft", ENGINE_SOFT },
	{ "nested", ENGINE_NESTED },
	{ "kvm", ENGINE_KVM },
};

/* Whatever is made up of bits of names and paths. */
static char *in_folder(const char *folder, const char *name, const char *suffix)
{
	g_autofree char *file = g_strconcat(name, suffix, NULL);

	return g_build_filename(folder, file, NULL);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool wanted(const char *folder, const char *name, const char *suffix)
{
	g_autofree char *path = g_build_filename(folder, name, "check", NULL);

	return suffix ? g_str_has_suffix(name, suffix) : g_file_test(path, G_FILE_TEST_IS_REGULAR);
}

/* Names in a folder, sorted: those with a suffix, which is cut off, or without one all that are experiments. */
static GPtrArray *names_in(const char *folder, const char *suffix)
{
	GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
	g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
	const char *name;

	while (dir && (name = g_dir_read_name(dir)))
		if (wanted(folder, name, suffix))
			g_ptr_array_add(names, g_strndup(name, strlen(name) - (suffix ? strlen(suffix) : 0)));
	g_ptr_array_sort(names, by_text);
	return names;
}

/* The heading of its README. */
static char *title_of(const char *folder)
{
	g_autofree char *path = g_build_filename(folder, "README.md", NULL), *text = NULL;

	if (!g_file_get_contents(path, &text, NULL, NULL) || !g_utf8_validate(text, -1, NULL))
		return g_strdup("");
	text[strcspn(text, "\n")] = '\0';
	return g_strdup(text + strspn(text, "# "));
}

/* The folder of an experiment: a name, or a path of the user's own. NULL after a message. */
static char *find_experiment(const struct session *s, const char *name)
{
	g_autofree char *folder = strchr(name, '/') ? g_strdup(name) : g_build_filename(s->home, name, NULL);
	g_autofree char *check = g_build_filename(folder, "check", NULL);
	const char *near;

	while (g_str_has_suffix(folder, "/") && folder[1])
		folder[strlen(folder) - 1] = '\0';
	if (g_file_test(check, G_FILE_TEST_IS_EXECUTABLE))
		return g_steal_pointer(&folder);
	if (g_file_test(check, G_FILE_TEST_EXISTS)) {
		fb_err("%s is not executable", check);
	} else if (strchr(name, '/')) {
		fb_err("%s is no experiment: it has no check", folder);
	} else {
		near = nearest_name(name, (const char *const *)s->there->pdata, s->there->len);
		fb_err("no experiment is called \"%s\"%s%s%s (faultbed experiment --list names them)", name,
		       near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
	}
	return NULL;
}

/* --- running --- */

static void relay(void *ctx, const char *line)
{
	fprintf(stderr, "%s\n", line);
}

static char **run_argv(const struct session *s, const char *ini, const char *result)
{
	const struct options *opt = s->opt;
	g_autoptr(GPtrArray) argv = g_ptr_array_new();

	g_ptr_array_add(argv, g_strdup(s->self));
	g_ptr_array_add(argv, g_strdup("run"));
	g_ptr_array_add(argv, g_strconcat("--engine=", opt->engine, NULL));
	for (char **set = opt->set; set && *set; set++)
		g_ptr_array_add(argv, g_strconcat("--set=", *set, NULL));
	if (opt->kernel)
		g_ptr_array_add(argv, g_strconcat("--kernel=", opt->kernel, NULL));
	if (opt->initrd)
		g_ptr_array_add(argv, g_strconcat("--initrd=", opt->initrd, NULL));
	if (opt->jobs)
		g_ptr_array_add(argv, g_strdup_printf("--jobs=%d", opt->jobs));
	if (!opt->tables)
		g_ptr_array_add(argv, g_strdup("--quiet"));
	g_ptr_array_add(argv, g_strconcat("--output=", result, NULL));
	g_ptr_array_add(argv, g_strdup("--"));
	g_ptr_array_add(argv, g_strdup(ini));
	g_ptr_array_add(argv, NULL);
	return (char **)g_ptr_array_free(g_steal_pointer(&argv), FALSE);
}

/* A child's end as an exit status of ours. */
static int status_of(const struct session *s, const struct child *c)
{
	if (s->signals.count)
		return STATUS_INTERRUPTED;
	return !c->started || c->signaled ? STATUS_INTERNAL : c->status;
}

/* What one emulated CPU carries: with more vCPUs a boot takes minutes, and no load comes to its figures. */
#define NESTED_VCPUS_MAX	8

/*
 * Why a scenario is left out, or NULL; g_free(). vm.engine says what it fits; auto fits all, nested if it is small.
 */
static char *left_out(const struct session *s, const struct scenario *scenario)
{
	struct topology_params t;
	u64 vcpus;

	if (scenario->engine == s->engine)
		return NULL;
	if (scenario->engine != ENGINE_AUTO)
		return g_strdup_printf("not for engine %s", s->opt->engine);
	scenario_topology(scenario, &t);
	vcpus = (u64)t.sockets * t.cores * t.threads;
	if (s->engine != ENGINE_NESTED || vcpus <= NESTED_VCPUS_MAX)
		return NULL;
	return g_strdup_printf("too large for engine nested (%" G_GUINT64_FORMAT " vCPUs, %u at most)", vcpus,
			       NESTED_VCPUS_MAX);
}

/* One scenario. *out is why it was left out, or NULL. */
static int run_scenario(struct session *s, const char *ini, const char *result, char **out)
{
	struct scenario *scenario = scenario_load(ini, NULL, 0);
	struct child child = { .signals = &s->signals, .err = relay };

	if (!scenario)
		return STATUS_BAD_INPUT;
	*out = left_out(s, scenario);
	scenario_free(scenario);
	if (*out)
		return STATUS_DONE;

	g_auto(GStrv) argv = run_argv(s, ini, result);

	child.argv = argv;
	child_run(&child);
	return status_of(s, &child);
}

/* All of them into folder `out`, and what became of each into run.tsv there; *ran is how many fit the engine. */
static int run_scenarios(struct session *s, const char *name, const char *folder, const char *out, u32 *ran)
{
	g_autoptr(GPtrArray) inis = names_in(folder, ".ini");
	g_autoptr(GString) runs = g_string_new(NULL);
	g_autofree char *file = in_folder(out, "run", ".tsv");
	g_autoptr(GError) err = NULL;
	int worst = STATUS_DONE;

	if (!inis->len) {
		fb_err("%s: an experiment without a scenario, *.ini", folder);
		return STATUS_BAD_INPUT;
	}
	/* What an earlier run left behind is none of this one's. */
	for (u32 i = 0; i < inis->len; i++) {
		g_autofree char *old = in_folder(out, inis->pdata[i], ".json");

		g_unlink(old);
	}
	for (u32 i = 0; i < inis->len && !s->signals.count; i++) {
		g_autofree char *ini = in_folder(folder, inis->pdata[i], ".ini");
		g_autofree char *result = in_folder(out, inis->pdata[i], ".json");
		g_autofree char *why = NULL;
		int status;

		fb_info("experiment %s: scenario %u/%u: %s", name, i + 1, inis->len, ini);
		status = run_scenario(s, ini, result, &why);
		*ran += !why;
		if (why)
			fb_info("experiment %s: %s is %s: left out", name, ini, why);
		worst = front_worse(worst, status);
		if (why)
			g_string_append_printf(runs, "%s\tleft out\t%s\n", (char *)inis->pdata[i], why);
		else
			g_string_append_printf(runs, "%s\t%d\t%s\n", (char *)inis->pdata[i], status,
					       front_status_text(status));
	}
	if (!g_file_set_contents(file, runs->str, -1, &err)) {
		fb_err("%s", err->message);
		return STATUS_BAD_INPUT;
	}
	return worst;
}

/* --- the check --- */

struct check {
	struct session *session;
	struct experiment *experiment;
};

static void check_line(void *ctx, const char *line)
{
	struct check *c = ctx;
	g_autofree char *bad = experiment_line(c->experiment, line);

	if (bad && !c->session->bad_line)
		c->session->bad_line = g_steal_pointer(&bad);
}

static void check_error(struct experiment *e, const char *why)
{
	g_autofree char *line = g_strdup_printf("error\t%s\t\t\tfailed", why), *bad = NULL;

	g_strdelimit(line + strlen("error\t"), "\n", ' ');
	bad = experiment_line(e, line);
	fb_err("experiment %s: %s", e->name, bad ? bad : why);
}

/* 0 and 1 are the check's verdicts; whatever else it ends with, it could not be made. */
static int run_check(struct session *s, struct experiment *e, const char *folder, const char *out)
{
	g_autofree char *check = g_build_filename(folder, "check", NULL), *dir = g_strdup(out), *why = NULL;
	char *argv[] = { check, dir, NULL };
	struct check ctx = { .session = s, .experiment = e };
	struct child child = { .argv = argv, .signals = &s->signals, .out = check_line, .err = relay, .ctx = &ctx };

	g_clear_pointer(&s->bad_line, g_free);
	child_run(&child);
	if (s->signals.count)
		return STATUS_INTERRUPTED;
	if (!child.started || child.signaled)
		why = g_strdup_printf("%s did not run to its end", check);
	else if (s->bad_line)
		why = g_strdup_printf("a line of %s is none of Experiment.pm's: %s", check, s->bad_line);
	else if (child.status > 1)
		why = g_strdup_printf("%s could not be made (status %d)", check, child.status);
	else if (!e->claims)
		why = g_strdup_printf("%s claims nothing, so it cannot fail", check);
	else if (!e->broken != !child.status)
		why = g_strdup_printf("%s ended with status %d, and %u of its claims do not hold", check, child.status,
				      e->broken);
	if (!why)
		return e->broken ? STATUS_COMMAND_FAILED : STATUS_DONE;
	check_error(e, why);
	return STATUS_BAD_INPUT;
}

/* With --all that is no failure, and the table says it; who asked for it by name wants to know. */
static int nothing_fits(const struct session *s, struct experiment *e)
{
	g_autofree char *line = g_strdup_printf("note\tnothing was run: no scenario is for engine %s\t\t\t",
						s->opt->engine);

	g_free(experiment_line(e, line));
	if (s->opt->all)
		return STATUS_DONE;
	fb_err("experiment %s: no scenario is for engine %s", e->name, s->opt->engine);
	return STATUS_BAD_INPUT;
}

static void run_experiment(struct session *s, const char *folder)
{
	g_autofree char *name = g_path_get_basename(folder), *title = title_of(folder);
	g_autofree char *out = g_build_filename(s->opt->output, name, NULL);
	g_autofree char *result = in_folder(out, "x", ".json");
	struct experiment *e = experiment_new(name, title);
	s64 begin = g_get_monotonic_time();
	u32 ran = 0;

	g_ptr_array_add(s->done, e);
	/* Makes the folder, or says why not. */
	if (result_target(result)) {
		e->status = STATUS_BAD_INPUT;
		return;
	}
	e->status = run_scenarios(s, name, folder, out, &ran);
	if (!e->status && !ran) {
		e->status = nothing_fits(s, e);
		return;
	}
	/* What was measured is checked, complete or not; a check that finds too little says so. */
	if (e->status != STATUS_INTERRUPTED)
		e->status = front_worse(e->status, run_check(s, e, folder, out));
	e->seconds = (double)(g_get_monotonic_time() - begin) / G_USEC_PER_SEC;
	fb_info("experiment %s: %u of %u claims hold, %.0f s: %s", name, e->claims - e->broken, e->claims, e->seconds,
		e->status == STATUS_COMMAND_FAILED && e->broken ? "a claim does not hold" : front_status_text(e->status));
}

/* --- the whole --- */

static int print_all(const struct session *s)
{
	g_autofree char *summary = in_folder(s->opt->output, "summary", ".tsv");
	double seconds = 0;
	u32 claims = 0, broken = 0, expected = 0, missed = 0;
	int status = STATUS_DONE;

	for (u32 i = 0; i < s->done->len; i++) {
		const struct experiment *e = s->done->pdata[i];

		experiment_table(stdout, e);
		seconds += e->seconds;
		claims += e->claims;
		broken += e->broken;
		expected += e->expected;
		missed += e->missed;
		status = front_worse(status, e->status);
	}
	printf("\n engine %s: %u experiment%s, %u of %u claims hold, ", s->opt->engine, s->done->len,
	       s->done->len == 1 ? "" : "s", claims - broken, claims);
	if (expected)
		printf("%u of %u expectations missed, ", missed, expected);
	printf("%.0f s\n", seconds);
	fflush(stdout);
	/* The table of all is not replaced by that of one. */
	if (s->opt->all && experiment_write(summary, s->done))
		return front_worse(status, STATUS_BAD_INPUT);
	if (s->opt->all)
		fb_info("wrote %s", summary);
	return status;
}

static int run_all(struct session *s)
{
	g_autoptr(GPtrArray) folders = g_ptr_array_new_with_free_func(g_free);
	char **names = s->opt->all ? (char **)s->there->pdata : s->opt->names;
	u32 nr = s->opt->all ? s->there->len : g_strv_length(s->opt->names);
	g_autofree char *lib = g_build_filename(s->home, "lib", NULL);

	if (!nr) {
		fb_err("%s: no experiments there", s->home);
		return STATUS_BAD_INPUT;
	}
	for (u32 i = 0; i < nr; i++) {
		char *folder = find_experiment(s, names[i]);

		if (!folder)
			return STATUS_BAD_INPUT;
		g_ptr_array_add(folders, folder);
	}
	/* Checks of a user's own find the module, too. */
	g_setenv("PERL5LIB", lib, TRUE);
	child_catch_signals(&s->signals);
	for (u32 i = 0; i < folders->len && !s->signals.count; i++)
		run_experiment(s, folders->pdata[i]);
	return print_all(s);
}

static int list_all(const struct session *s)
{
	if (!s->there->len)
		printf("no experiments in %s\n", s->home);
	for (u32 i = 0; i < s->there->len; i++) {
		g_autofree char *folder = g_build_filename(s->home, s->there->pdata[i], NULL);
		g_autofree char *title = title_of(folder);
		g_autoptr(GPtrArray) inis = names_in(folder, ".ini");

		printf("%-20s  %s (%u scenario%s)\n", (char *)s->there->pdata[i], title, inis->len,
		       inis->len == 1 ? "" : "s");
	}
	return STATUS_DONE;
}

static int check_options(struct session *s, const struct options *opt)
{
	const char *names[ARRAY_SIZE(engines)], *near;

	for (u32 i = 0; i < ARRAY_SIZE(engines); i++) {
		names[i] = engines[i].name;
		if (!strcmp(opt->engine, names[i])) {
			s->engine = engines[i].engine;
			if (opt->jobs < 0)
				fb_err("--jobs %d: a number of cells, 1 or more", opt->jobs);
			else if (!opt->list && !opt->all == !opt->names)
				fb_err("faultbed experiment takes names of experiments, or --all (--list names them)");
			else
				return STATUS_DONE;
			return STATUS_BAD_INPUT;
		}
	}
	near = nearest_name(opt->engine, names, ARRAY_SIZE(names));
	fb_err("--engine %s: soft, nested or kvm%s%s%s", opt->engine, near ? "; did you mean " : "", near ? near : "",
	       near ? "?" : "");
	return STATUS_BAD_INPUT;
}

static int session_run(const struct options *opt)
{
	g_autofree char *home = front_home(), *folder = g_build_filename(home, "experiments", NULL);
	g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
	/* The signals' handler may be called for as long as the program runs. */
	struct session *s = g_new0(struct session, 1);
	int status;

	s->opt = opt;
	s->home = folder;
	s->self = self;
	s->there = names_in(folder, NULL);
	s->done = g_ptr_array_new_with_free_func((GDestroyNotify)experiment_free);
	status = check_options(s, opt);
	if (!status)
		status = opt->list ? list_all(s) : run_all(s);
	g_ptr_array_unref(s->there);
	g_ptr_array_unref(s->done);
	g_free(s->bad_line);
	g_free(s);
	return status;
}

int cmd_experiment(int argc, char **argv)
{
	struct options opt = { 0 };
	const GOptionEntry entries[] = {
		{ "all", 'a', 0, G_OPTION_ARG_NONE, &opt.all, "all there are, one table at the end", NULL },
		{ "list", 'l', 0, G_OPTION_ARG_NONE, &opt.list, "name them", NULL },
		{ "engine", 'e', 0, G_OPTION_ARG_STRING, &opt.engine,
		  "soft (the default), nested or kvm: scenarios whose vm.engine is another are left out", "NAME" },
		{ "output", 'o', 0, G_OPTION_ARG_FILENAME, &opt.output,
		  "results go to DIR/EXPERIMENT/SCENARIO.json (out/experiments)", "DIR" },
		{ "set", 's', 0, G_OPTION_ARG_STRING_ARRAY, &opt.set, "override a key of every scenario",
		  "SECTION.KEY=VALUE" },
		{ "kernel", 'k', 0, G_OPTION_ARG_FILENAME, &opt.kernel, "the guests' kernel", "FILE" },
		{ "initrd", 0, 0, G_OPTION_ARG_FILENAME, &opt.initrd, "the guests' initramfs", "FILE" },
		{ "jobs", 'j', 0, G_OPTION_ARG_INT, &opt.jobs, "so many cells side by side, as faultbed run has it", "N" },
		{ "tables", 't', 0, G_OPTION_ARG_NONE, &opt.tables, "print what faultbed run prints of each scenario, too",
		  NULL },
		{ G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &opt.names, NULL, "[NAME]..." },
		{ 0 }
	};
	g_autoptr(GOptionContext) context = g_option_context_new("- run published experiments and check what came out");
	g_autoptr(GError) err = NULL;
	int status = STATUS_BAD_INPUT;

	g_option_context_set_summary(
		context,
		"Runs every scenario of an experiment, then its check, and prints published beside measured\n"
		"figures and whether each claim holds. A NAME with a slash is a folder of your own.\n"
		"Exit status: 0 all claims hold, 1 one does not, 2 bad input or a check that could not be made,\n"
		"else as faultbed run; of several the worst. One that fails does not stop the others.");
	g_option_context_add_main_entries(context, entries, NULL);
	if (!g_option_context_parse(context, &argc, &argv, &err)) {
		fb_err("%s (faultbed experiment --help)", err->message);
	} else {
		if (!opt.engine)
			opt.engine = g_strdup("soft");
		if (!opt.output)
			opt.output = g_build_filename("out", "experiments", NULL);
		status = session_run(&opt);
	}
	g_strfreev(opt.names);
	g_strfreev(opt.set);
	g_free(opt.engine);
	g_free(opt.output);
	g_free(opt.kernel);
	g_free(opt.initrd);
	return status;
}
