// SPDX-License-Identifier: GPL-2.0-only
/* What a report is made of: results and conclusions, read and put in order. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "compare.h"
#include "report.h"
#include "result-json.h"
#include "scenario.h"
#include "summary.h"

#define MAX_TSV	(16u << 20)

/* --- axes --- */

/* Settings that only make a run longer or shorter. */
static bool is_scale(const char *key)
{
	static const char *const names[] = { "run.warmup", "run.duration", "run.timeout", "run.boot_timeout", "run.host_timeout", "run.repeat" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(names[i], key))
			return true;
	return false;
}

static const char *short_key(const char *key)
{
	const char *dot = strchr(key, '.');

	return dot ? dot + 1 : key;
}

/* "2x10x2" and "4x15x2" have one form, as do "multi-fault 20" and "multi-fault 60": runs of digits become '#'. g_free(). */
static char *form_of(const char *text)
{
	GString *form = g_string_new(NULL);

	while (*text) {
		if (!g_ascii_isdigit(*text)) {
			g_string_append_c(form, *text++);
			continue;
		}
		g_string_append_c(form, '#');
		while (g_ascii_isdigit(*text) || (*text == '.' && g_ascii_isdigit(text[1])))
			text++;
	}
	return g_string_free(form, FALSE);
}

/* Number k in a text. */
static double number_in(const char *text, u32 k)
{
	for (;;) {
		char *end;
		double value;

		while (*text && !g_ascii_isdigit(*text))
			text++;
		if (!*text)
			return NAN;
		value = g_ascii_strtod(text, &end);
		if (!k--)
			return value;
		text = end;
	}
}

static bool distinct(const double *x, u32 n)
{
	for (u32 i = 0; i < n; i++)
		for (u32 k = 0; k < i; k++)
			if (x[i] == x[k])
				return false;
	return true;
}

/* The number by which an axis' values differ, if they do so by nothing else: of a topology its CPUs. */
static void find_numbers(struct report_axis *a)
{
	u32 n = a->labels->len, sockets, cores, threads;
	g_autofree char *form = n ? form_of(a->labels->pdata[0]) : NULL;
	double *x = g_new0(double, MAX(n, 1));

	for (u32 i = 0; i < n; i++) {
		g_autofree char *other = form_of(a->labels->pdata[i]);

		if (strcmp(form, other))
			n = 0;
	}
	for (u32 k = 0; n > 2 && k < 8; k++) {
		for (u32 i = 0; i < n; i++) {
			g_autofree char *err = NULL;

			x[i] = topology_parse(a->labels->pdata[i], &sockets, &cores, &threads, &err) ? number_in(a->labels->pdata[i], k) :
												       (double)sockets * cores * threads;
		}
		if (!isfinite(x[0]))
			break;
		if (distinct(x, n)) {
			a->x = x;
			return;
		}
	}
	g_free(x);
}

static GPtrArray *split_values(const char *text)
{
	g_auto(GStrv) parts = g_strsplit(text, "+", -1);
	GPtrArray *list = g_ptr_array_new_with_free_func(g_free);

	for (char **p = parts; *p; p++)
		g_ptr_array_add(list, g_strdup(g_strstrip(*p)));
	return list;
}

static void unref_array(void *array)
{
	g_ptr_array_unref(array);
}

struct report_axis *report_axis_new(const char *keys, JsonArray *values)
{
	struct report_axis *a = g_new0(struct report_axis, 1);
	GString *name = g_string_new(NULL);

	a->keys = split_values(keys);
	a->values = g_ptr_array_new_with_free_func(unref_array);
	a->labels = g_ptr_array_new_with_free_func(g_free);
	for (u32 k = 0; k < a->keys->len; k++)
		if (!is_scale(a->keys->pdata[k]) || a->keys->len == 1)
			g_string_append_printf(name, "%s%s", name->len ? ", " : "", short_key(a->keys->pdata[k]));
	a->name = g_string_free(name, FALSE);
	for (u32 i = 0; i < json_array_get_length(values); i++) {
		JsonNode *node = json_array_get_element(values, i);
		const char *text = JSON_NODE_HOLDS_VALUE(node) ? json_node_get_string(node) : NULL;
		GPtrArray *parts = split_values(text ? text : "");
		GString *label = g_string_new(NULL);

		for (u32 k = 0; k < MIN(parts->len, a->keys->len); k++)
			if (!is_scale(a->keys->pdata[k]) || a->keys->len == 1)
				g_string_append_printf(label, "%s%s", label->len ? ", " : "", (char *)parts->pdata[k]);
		/* One value for several keys is that of each. */
		if (parts->len == 1 && a->keys->len > 1) {
			g_string_assign(label, parts->pdata[0]);
			while (parts->len < a->keys->len)
				g_ptr_array_add(parts, g_strdup(parts->pdata[0]));
		}
		g_ptr_array_add(a->values, parts);
		g_ptr_array_add(a->labels, g_string_free(label, FALSE));
	}
	find_numbers(a);
	return a;
}

void report_axis_free(void *axis)
{
	struct report_axis *a = axis;

	g_free(a->name);
	g_ptr_array_unref(a->keys);
	g_ptr_array_unref(a->values);
	g_ptr_array_unref(a->labels);
	g_free(a->x);
	g_free(a);
}

int report_coordinate(const struct report_axis *a, JsonObject *cell)
{
	JsonObject *set = summary_object(cell, "set");

	for (u32 i = 0; set && i < a->values->len; i++) {
		const GPtrArray *value = a->values->pdata[i];
		bool same = value->len == a->keys->len;

		for (u32 k = 0; same && k < value->len; k++)
			same = !strcmp(summary_string(set, a->keys->pdata[k], ""), value->pdata[k]);
		if (same)
			return (int)i;
	}
	return -1;
}

/* --- results --- */

JsonObject *report_figure(JsonObject *cell, const char *group, const char *name)
{
	return summary_object(summary_object(summary_object(cell, "summary"), group), name);
}

JsonObject *report_headline(const struct report_result *r, JsonObject *cell)
{
	return r->headline ? report_figure(cell, r->group, r->headline) : NULL;
}

char *report_label(const struct report_result *r, JsonObject *cell)
{
	GString *label = g_string_new(NULL);

	for (u32 i = 0; i < r->axes->len; i++) {
		const struct report_axis *a = r->axes->pdata[i];
		int at = report_coordinate(a, cell);

		if (at >= 0)
			g_string_append_printf(label, "%s%s", label->len ? ", " : "", (char *)a->labels->pdata[at]);
	}
	if (!label->len)
		g_string_append(label, summary_string(cell, "name", "?"));
	return g_string_free(label, FALSE);
}

/* The figure that decides, of the first cell that has one. */
static void find_headline(struct report_result *r)
{
	for (u32 i = 0; !r->headline && i < json_array_get_length(r->cells); i++) {
		JsonObject *cell = json_array_get_object_element(r->cells, i);

		r->headline = compare_headline(cell, &r->group);
		r->unit = r->headline ? summary_string(report_headline(r, cell), "unit", "") : "";
	}
}

static void find_axes(struct report_result *r)
{
	JsonObject *vary = summary_object(r->root, "vary");
	JsonObjectIter iter;
	const char *name;
	JsonNode *node;

	r->axes = g_ptr_array_new_with_free_func(report_axis_free);
	if (!vary)
		return;
	json_object_iter_init_ordered(&iter, vary);
	while (json_object_iter_next_ordered(&iter, &name, &node))
		if (JSON_NODE_HOLDS_ARRAY(node) && json_array_get_length(json_node_get_array(node)))
			g_ptr_array_add(r->axes, report_axis_new(name, json_node_get_array(node)));
}

/* "speculative-faults/ep" of out/experiments/speculative-faults/ep.json, "mine" of mine.json. g_free(). */
static char *name_of(const char *path, const char *within)
{
	g_autofree char *full = g_str_has_suffix(path, ".json") ? g_strndup(path, strlen(path) - strlen(".json")) : g_strdup(path);
	size_t skip = within ? strlen(within) : 0;

	if (within && g_str_has_prefix(full, within)) {
		while (full[skip] == '/')
			skip++;
		return g_strdup(full + skip);
	}
	return g_path_get_basename(full);
}

static bool add_result(struct report *report, const char *path, const char *within)
{
	struct report_result *r;
	JsonNode *node = result_read(path);

	if (!node)
		return false;
	r = g_new0(struct report_result, 1);
	r->name = name_of(path, within);
	r->id = g_strdup_printf("r%u", report->results->len + 1);
	r->node = node;
	r->root = json_node_get_object(node);
	r->cells = summary_array(r->root, "cells");
	find_headline(r);
	find_axes(r);
	g_ptr_array_add(report->results, r);
	return true;
}

static void free_result(void *result)
{
	struct report_result *r = result;

	g_free(r->name);
	g_free(r->id);
	g_ptr_array_unref(r->axes);
	json_node_unref(r->node);
	g_free(r);
}

/* --- conclusions --- */

static void free_claim(void *claim)
{
	struct report_claim *c = claim;

	g_free(c->experiment);
	g_free(c->kind);
	g_free(c->text);
	g_free(c->published);
	g_free(c->measured);
	g_free(c->verdict);
	g_free(c);
}

static bool add_claims(struct report *report, const char *path)
{
	static const char head[] = "experiment\tkind\ttext\tpublished\tmeasured\tverdict";
	g_autofree char *text = NULL, *valid = NULL;
	g_autoptr(GError) err = NULL;
	g_auto(GStrv) lines = NULL;
	gsize len;

	if (!g_file_get_contents(path, &text, &len, &err)) {
		fb_err("%s", err->message);
		return false;
	}
	valid = g_utf8_make_valid(text, (gssize)MIN(len, MAX_TSV));
	lines = g_strsplit(valid, "\n", -1);
	if (!lines[0] || strcmp(lines[0], head)) {
		fb_err("%s:1: not a summary of faultbed experiment, whose first line names its columns: %s", path, head);
		return false;
	}
	for (char **l = lines + 1; *l; l++) {
		g_auto(GStrv) field = g_strsplit(*l, "\t", 6);
		struct report_claim *c;

		if (g_strv_length(field) != 6) {
			if (**l)
				fb_warn("%s:%u: six columns are wanted; left out", path, (u32)(l - lines) + 1);
			continue;
		}
		c = g_new0(struct report_claim, 1);
		*c = (struct report_claim){ g_strdup(field[0]), g_strdup(field[1]), g_strdup(field[2]), g_strdup(field[3]), g_strdup(field[4]), g_strdup(field[5]) };
		g_ptr_array_add(report->claims, c);
	}
	return true;
}

/* --- files and folders --- */

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Results and summaries of a folder and, with `deep`, of those in it. */
static bool add_folder(struct report *report, const char *path, const char *within, bool deep)
{
	g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
	g_autoptr(GError) err = NULL;
	GDir *dir = g_dir_open(path, 0, &err);
	const char *name;
	bool ok = true;

	if (!dir) {
		fb_err("%s", err->message);
		return false;
	}
	while ((name = g_dir_read_name(dir)))
		g_ptr_array_add(names, g_strdup(name));
	g_dir_close(dir);
	g_ptr_array_sort(names, by_name);
	for (u32 i = 0; ok && i < names->len; i++) {
		g_autofree char *file = g_build_filename(path, names->pdata[i], NULL);

		if (g_file_test(file, G_FILE_TEST_IS_DIR))
			ok = !deep || add_folder(report, file, within, false);
		else if (g_str_has_suffix(file, ".json"))
			ok = add_result(report, file, within);
		else if (!strcmp(names->pdata[i], "summary.tsv"))
			ok = add_claims(report, file);
	}
	return ok;
}

bool report_add(struct report *report, const char *path)
{
	if (!report->results)
		report->results = g_ptr_array_new_with_free_func(free_result);
	if (!report->claims)
		report->claims = g_ptr_array_new_with_free_func(free_claim);
	if (g_file_test(path, G_FILE_TEST_IS_DIR))
		return add_folder(report, path, path, true);
	return g_str_has_suffix(path, ".tsv") ? add_claims(report, path) : add_result(report, path, NULL);
}

void report_clear(struct report *report)
{
	g_clear_pointer(&report->results, g_ptr_array_unref);
	g_clear_pointer(&report->claims, g_ptr_array_unref);
}
