// SPDX-License-Identifier: GPL-2.0-only
/* faultbed cost-model: the profiles there are, and what one says, each number below where it comes from. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/nearest.h"
#include "cost-file.h"
#include "front.h"
#include "measure.h"

/* A comment's first sentence is cut here. */
#define SOURCE_WIDTH	110

/* What a file says beside its values. */
struct remarks {
	char *about;			/* its first line of comment */
	char *source[NR_COSTS];		/* the comment above each key, lines joined; NULL: none */
};

static void remarks_clear(struct remarks *r)
{
	g_free(r->about);
	for (u32 i = 0; i < NR_COSTS; i++)
		g_free(r->source[i]);
}

static int cost_of(const char *line)
{
	size_t len = strcspn(line, " \t=");

	for (u32 i = 0; i < NR_COSTS; i++)
		if (strlen(cost_desc[i].name) == len && strncmp(line, cost_desc[i].name, len) == 0)
			return (int)i;
	return -1;
}

/* "# text" without the #; "" of a bare one. */
static const char *comment_text(const char *line)
{
	line++;
	return *line == ' ' ? line + 1 : line;
}

/*
 * A block of comment lines stands above the keys that it is about, and an empty line ends
 * what it covers. The file was loaded, so it is text of a sane size.
 */
static void remarks_read(struct remarks *r, const char *path)
{
	g_autofree char *text = NULL;
	g_auto(GStrv) lines = NULL;
	g_autoptr(GString) block = g_string_new(NULL);
	bool in_block = false;

	memset(r, 0, sizeof(*r));
	if (!g_file_get_contents(path, &text, NULL, NULL))
		return;
	lines = g_strsplit(text, "\n", -1);
	for (char **l = lines; *l; l++) {
		const char *line = g_strstrip(*l);
		int id = *line && *line != '#' && *line != '[' ? cost_of(line) : -1;

		if (*line == '#' && !strstr(line, "SPDX-License-Identifier")) {
			if (!in_block)
				g_string_truncate(block, 0);
			in_block = true;
			g_string_append_printf(block, "%s%s", block->len ? " " : "", comment_text(line));
			if (!r->about && block->len)
				r->about = g_strdup(block->str);
			continue;
		}
		if (!*line)
			g_string_truncate(block, 0);
		if (id >= 0 && block->len && !r->source[id])
			r->source[id] = g_strdup(block->str);
		in_block = false;
	}
}

/* The file's first line without its own name in front; g_free(). */
static char *about(const struct remarks *r, const char *name)
{
	g_autofree char *prefix = g_strconcat(name, ": ", NULL);
	const char *text = r->about ? r->about : "";

	return g_strdup(g_str_has_prefix(text, prefix) ? text + strlen(prefix) : text);
}

static char *models_folder(void)
{
	g_autofree char *home = front_home();

	return g_build_filename(home, "cost-models", NULL);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names of the project's own models, sorted; NULL after a message. */
static GPtrArray *model_names(void)
{
	g_autofree char *folder = models_folder();
	g_autoptr(GError) err = NULL;
	g_autoptr(GDir) dir = g_dir_open(folder, 0, &err);
	GPtrArray *names;
	const char *file;

	if (!dir) {
		fb_err("%s", err->message);
		return NULL;
	}
	names = g_ptr_array_new_with_free_func(g_free);
	while ((file = g_dir_read_name(dir)))
		if (g_str_has_suffix(file, ".ini"))
			g_ptr_array_add(names, g_strndup(file, strlen(file) - strlen(".ini")));
	g_ptr_array_sort(names, compare_names);
	return names;
}

static char *model_path(const char *name)
{
	g_autofree char *folder = models_folder(), *file = g_strconcat(name, ".ini", NULL);

	return g_build_filename(folder, file, NULL);
}

static int list_models(void)
{
	g_autoptr(GPtrArray) names = model_names();
	int status = STATUS_DONE;

	if (!names)
		return STATUS_BAD_INPUT;
	for (u32 i = 0; i < names->len; i++) {
		const char *name = names->pdata[i];
		g_autofree char *path = model_path(name), *text = NULL;
		struct cost_model model;
		struct remarks r;

		if (cost_file_load(path, &model)) {
			status = STATUS_BAD_INPUT;
			continue;
		}
		remarks_read(&r, path);
		text = about(&r, name);
		printf("%-14s %s\n", name, text);
		remarks_clear(&r);
	}
	return status;
}

/* A name of the project's own or a path with a slash; NULL after a message. g_free(). */
static char *find_model(const char *name)
{
	g_autoptr(GPtrArray) names = NULL;
	const char *near;
	char *path;

	if (strchr(name, '/'))
		return g_strdup(name);
	path = model_path(name);
	if (*name && g_file_test(path, G_FILE_TEST_EXISTS))
		return path;
	g_free(path);
	names = model_names();
	if (!names)
		return NULL;
	near = nearest_name(name, (const char *const *)names->pdata, names->len);
	fb_err("there is no cost model \"%s\"%s%s%s (faultbed cost-model lists them; a file of your own is written with a slash, ./mine.ini)",
	       name, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
	return NULL;
}

/* As a file would have it, but with a space before the unit; g_free(). */
static char *value_text(u32 id, u64 value)
{
	const struct cost_desc *d = &cost_desc[id];
	double v = (double)value;

	switch (d->kind) {
	case COST_KIND_CYCLES:
		v /= (double)COST_CYCLE;
		/* As many digits as steps of 1/COST_CYCLE bear. */
		return g_strdup_printf(v >= 1 && v < 100 ? "%.3g cycle%s" : "%.4g cycle%s", v, v == 1 ? "" : "s");
	case COST_KIND_RATIO:
		return g_strdup_printf("%.3g", v / (double)COST_RATIO);
	case COST_KIND_HZ:
		return g_strdup_printf("%g GHz", v / 1e9);
	case COST_KIND_PS:
		return v < 1e6 ? g_strdup_printf("%.6g ns", v / 1e3) : g_strdup_printf("%.6g us", v / 1e6);
	case COST_KIND_NS:
		return v < 1e3 ? g_strdup_printf("%g ns", v) : g_strdup_printf("%.6g us", v / 1e3);
	case COST_KIND_COUNT:
		break;
	}
	return g_strdup_printf("%" G_GUINT64_FORMAT "%s", value, g_str_has_suffix(d->name, "_kib") ? " KiB" : "");
}

/* The range of an estimate, "" of what is none; g_free(). */
static char *range_text(const struct cost_model *m, u32 id)
{
	g_autofree char *low = value_text(id, m->low[id]), *high = value_text(id, m->high[id]);
	char *unit = strstr(low, " cycle");

	if (m->low[id] == m->high[id])
		return g_strdup("");
	/* Cycles would be said a third time. */
	if (unit)
		*unit = '\0';
	unit = strstr(high, " cycle");
	if (unit)
		*unit = '\0';
	return g_strdup_printf("(%s..%s)", low, high);
}

/* Does a sentence end at this full stop? Not at that of an initial, as in "(J. Smith". */
static bool sentence_end(const char *source, size_t at)
{
	if (source[at] != '.' || (source[at + 1] && source[at + 1] != ' '))
		return false;
	return at < 2 || !g_ascii_isupper(source[at - 1]) || g_ascii_isalnum(source[at - 2]);
}

/* As many sentences as a line takes, or of the first as many words; that it is cut is shown. */
static void print_source_short(const char *source)
{
	size_t all = strlen(source), len = 0, i;

	for (i = 0; i < MIN(all, SOURCE_WIDTH); i++)
		if (sentence_end(source, i))
			len = i + 1;
	if (all <= SOURCE_WIDTH)
		len = all;
	if (!len)
		for (len = SOURCE_WIDTH; len > SOURCE_WIDTH / 2 && source[len] != ' '; len--)
			;
	printf("  # %.*s%s\n", (int)len, source, len < all ? " ..." : "");
}

/* All of it, wrapped at words. */
static void print_source_whole(const char *source)
{
	g_auto(GStrv) words = g_strsplit(source, " ", -1);
	size_t at = 0;

	for (char **w = words; *w; w++) {
		if (at && at + strlen(*w) >= SOURCE_WIDTH)
			at = 0;
		printf("%s%s", at ? " " : w == words ? "  # " : "\n  # ", *w);
		at += strlen(*w) + 1;
	}
	printf("\n");
}

/* In the order of cost.def; what several keys in turn have from one comment is printed above the first. */
static void print_section(const struct cost_model *m, const struct remarks *r, bool memory, bool whole)
{
	const char *above = NULL;

	printf("\n[%s]\n", memory ? "memory" : "cost");
	for (u32 i = 0; i < NR_COSTS; i++) {
		g_autofree char *value = NULL, *range = NULL;

		if (cost_desc[i].memory != memory)
			continue;
		value = value_text(i, m->v[i]);
		range = range_text(m, i);
		if (r->source[i] && g_strcmp0(r->source[i], above)) {
			if (whole)
				print_source_whole(r->source[i]);
			else
				print_source_short(r->source[i]);
		}
		above = r->source[i];
		printf("  %-20s %14s  %-18s %s\n", cost_desc[i].name, value, range, cost_desc[i].meaning);
	}
}

static int show_model(const char *name, bool whole)
{
	g_autofree char *path = find_model(name), *text = NULL;
	struct cost_model model;
	struct remarks r;

	if (!path || cost_file_load(path, &model))
		return STATUS_BAD_INPUT;
	remarks_read(&r, path);
	text = about(&r, model.name);
	printf("%s: %s\n%s, sha256 %.12s; %s\n", model.name, text, path, model.digest,
	       model.memory ? "caches and lines are modelled" : "no memory model: an access takes no time of its own");
	print_section(&model, &r, false, whole);
	if (model.memory)
		print_section(&model, &r, true, whole);
	remarks_clear(&r);
	return STATUS_DONE;
}

int cmd_cost_model(int argc, char **argv)
{
	g_auto(GStrv) args = NULL;
	gboolean sources = FALSE, measure = FALSE;
	g_autofree char *out = NULL;
	const GOptionEntry entries[] = {
		{ "sources", 's', 0, G_OPTION_ARG_NONE, &sources, "where each number comes from, in full", NULL },
		{ "measure", 'm', 0, G_OPTION_ARG_NONE, &measure, "make one of this host, by running memory-probe on it", NULL },
		{ "output", 'o', 0, G_OPTION_ARG_FILENAME, &out, "where --measure writes it (standard output)", "FILE" },
		{ G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &args, NULL, "[NAME|FILE]" },
		{ 0 }
	};
	g_autoptr(GOptionContext) context = g_option_context_new("- cost models, or what one of them says");
	g_autoptr(GError) err = NULL;

	g_option_context_add_main_entries(context, entries, NULL);
	if (!g_option_context_parse(context, &argc, &argv, &err)) {
		fb_err("%s (faultbed cost-model --help)", err->message);
		return STATUS_BAD_INPUT;
	}
	if (measure && (sources || (args && args[0]))) {
		fb_err("faultbed cost-model --measure takes no model and no --sources: it makes one");
		return STATUS_BAD_INPUT;
	}
	if (out && !measure) {
		fb_err("faultbed cost-model -o FILE is for --measure");
		return STATUS_BAD_INPUT;
	}
	if (measure)
		return cost_measure(out);
	if (args && args[0] && args[1]) {
		fb_err("faultbed cost-model takes one model, like ivb-ep, or none");
		return STATUS_BAD_INPUT;
	}
	if (!args || !args[0]) {
		if (!sources)
			return list_models();
		fb_err("faultbed cost-model --sources wants a model, like ivb-ep");
		return STATUS_BAD_INPUT;
	}
	return show_model(args[0], sources);
}
