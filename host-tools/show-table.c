// SPDX-License-Identifier: GPL-2.0-only
/* The table of a result's cells side by side. */
#include <math.h>
#include <string.h>

#include "front.h"
#include "show.h"
#include "summary.h"

#define MAX_COLUMN	30

struct table {
	FILE *to;
	JsonArray *cells;
	u32 nr, width;
};

static JsonObject *cell_figure(const struct table *t, u32 cell, const char *of, const char *name)
{
	JsonObject *o = json_array_get_object_element(t->cells, cell);

	return summary_object(summary_object(summary_object(o, "summary"), of), name);
}

static void table_row(const struct table *t, const char *of, const char *name, const char *label)
{
	fprintf(t->to, " %-*s", NAME_WIDTH, label);
	for (u32 i = 0; i < t->nr; i++) {
		JsonObject *figure = cell_figure(t, i, of, name);
		g_autofree char *mean = figure ? show_mean(figure) : g_strdup("n/a");
		double value = summary_number(figure, "mean", 0),
		       error = summary_number(figure, "stderr", NAN);
		g_autofree char *text =
			isnan(error) || !value
				? g_strdup(mean)
				: g_strdup_printf("%s +-%.1f%%", mean, fabs(100 * error / value));

		fprintf(t->to, "  %*s", (int)t->width, text);
	}
	fprintf(t->to, "\n");
}

/* Rows for every name that any cell has, in the order of the first that has it. */
static void table_rows(const struct table *t, const char *of, bool all)
{
	g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);

	for (u32 i = 0; i < t->nr; i++) {
		JsonObject *cell = json_array_get_object_element(t->cells, i);
		JsonObject *figures = summary_object(summary_object(cell, "summary"), of);
		JsonObjectIter iter;
		const char *name;
		JsonNode *node;

		json_object_iter_init_ordered(&iter, figures);
		while (json_object_iter_next_ordered(&iter, &name, &node)) {
			JsonObject *figure = json_node_get_object(node);

			if (!g_hash_table_add(seen, (void *)name))
				continue;
			if (!strcmp(of, "rates") &&
			    strcmp(summary_string(figure, "source", ""), "load") &&
			    strcmp(name, "guest_page_faults_per_s"))
				continue;
			if (!strcmp(of, "counters") && !show_listed(name, figure, all))
				continue;
			table_row(t, of, name, name);
		}
	}
}

/* Mean injected delay and how often, from the histograms. */
static void table_histograms(const struct table *t)
{
	g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);

	for (u32 i = 0; i < t->nr; i++) {
		JsonObject *cell = json_array_get_object_element(t->cells, i);
		JsonObject *hists = summary_object(summary_object(cell, "summary"), "histograms");
		JsonObjectIter iter;
		const char *name;
		JsonNode *node;

		if (!hists)
			continue;
		json_object_iter_init_ordered(&iter, hists);
		while (json_object_iter_next_ordered(&iter, &name, &node)) {
			if (!g_hash_table_add(seen, (void *)name))
				continue;
			if (g_hash_table_size(seen) == 1)
				fprintf(t->to, "\n Over all repeats together, how many and their mean:\n");
			fprintf(t->to, " %-*s", NAME_WIDTH, name);
			for (u32 c = 0; c < t->nr; c++) {
				JsonObject *h = cell_figure(t, c, "histograms", name);
				g_autofree char *n =
					front_grouped(summary_number(h, "count", 0), 0);
				g_autofree char *mean =
					front_duration(summary_number(h, "mean", 0));
				g_autofree char *text =
					h ? g_strdup_printf("%s x %s", n, mean) : g_strdup("0");

				fprintf(t->to, "  %*s", (int)t->width, text);
			}
			fprintf(t->to, "\n");
		}
	}
}

void show_table(FILE *to, JsonObject *root, bool all)
{
	struct table t = { .to = to, .cells = summary_array(root, "cells"), .width = 18 };
	bool short_names = true;

	t.nr = json_array_get_length(t.cells);
	for (u32 i = 0; i < t.nr; i++) {
		const char *name =
			summary_string(json_array_get_object_element(t.cells, i), "name", "");

		t.width = MAX(t.width, MIN((u32)strlen(name), MAX_COLUMN));
		short_names &= strlen(name) <= MAX_COLUMN;
	}
	fprintf(to, "\n All cells (means over the repeats, +- standard error):\n\n");
	for (u32 i = 0; !short_names && i < t.nr; i++)
		fprintf(to, " [%u] %s\n", i + 1,
			summary_string(json_array_get_object_element(t.cells, i), "name", ""));
	fprintf(to, "%s %-*s", short_names ? "" : "\n", NAME_WIDTH, "");
	for (u32 i = 0; i < t.nr; i++) {
		const char *name =
			summary_string(json_array_get_object_element(t.cells, i), "name", "");
		g_autofree char *label =
			short_names ? g_strdup(name) : g_strdup_printf("[%u]", i + 1);

		fprintf(to, "  %*s", (int)t.width, label);
	}
	fprintf(to, "\n");
	table_rows(&t, "rates", all);
	table_rows(&t, "reports", all);
	table_rows(&t, "counters", all);
	table_histograms(&t);
}
