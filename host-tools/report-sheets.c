// SPDX-License-Identifier: GPL-2.0-only
/* What is in a report, as tables. Members of results are anybody's, so each is looked up with a default. */
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "front.h"
#include "report.h"
#include "scenario.h"
#include "show.h"
#include "status.h"
#include "summary.h"

#define LINES_SHOWN	10u
#define TIME_PREFIX	"soft_time_"

static JsonObject *cell_at(const struct report_result *r, u32 i)
{
	return json_array_get_object_element(r->cells, i);
}

static u32 nr_cells(const struct report_result *r)
{
	return json_array_get_length(r->cells);
}

static double mean_of(JsonObject *figure)
{
	return summary_number(figure, "mean", NAN);
}

/* --- cells --- */

static const char *const beside[] = { "guest_page_faults", "tlb_shootdowns", "tlb_shootdown_ipis_sent", "context_switches" };

struct sheet *report_cells(const struct report_result *r)
{
	struct sheet *s = sheet_new("The headline of each cell, and a few counters", MAX(r->axes->len, 1) + 1);
	g_autofree char *headline = r->headline ? g_strdup_printf("%s (%s)", r->headline, r->unit) : g_strdup("no headline");

	for (u32 i = 0; i < r->axes->len; i++)
		sheet_head(s, ((struct report_axis *)r->axes->pdata[i])->name);
	if (!r->axes->len)
		sheet_head(s, "cell");
	sheet_head(s, "ended");
	sheet_head(s, headline);
	sheet_head(s, "standard error");
	sheet_head(s, "repeats");
	for (size_t i = 0; i < ARRAY_SIZE(beside); i++)
		sheet_head(s, beside[i]);
	for (u32 i = 0; i < nr_cells(r); i++) {
		JsonObject *cell = cell_at(r, i), *figure = report_headline(r, cell);

		sheet_row(s);
		for (u32 k = 0; k < r->axes->len; k++) {
			const struct report_axis *a = r->axes->pdata[k];
			int at = report_coordinate(a, cell);

			sheet_cell(s, at < 0 ? "?" : a->labels->pdata[at]);
		}
		if (!r->axes->len)
			sheet_cell(s, summary_string(cell, "name", "?"));
		sheet_cell(s, front_status_text((int)CLAMP(summary_number(cell, "status", STATUS_INTERNAL), 0, 255)));
		sheet_number(s, mean_of(figure));
		sheet_number(s, summary_number(figure, "stderr", NAN));
		sheet_number(s, summary_number(summary_object(cell, "summary"), "repeats", NAN));
		for (size_t k = 0; k < ARRAY_SIZE(beside); k++)
			sheet_number(s, mean_of(report_figure(cell, "counters", beside[k])));
	}
	return s;
}

static bool wanted(const char *group, const char *name, JsonObject *figure)
{
	if (!strcmp(group, "counters"))
		return show_listed(name, figure, false);
	return strcmp(group, "rates") || !strcmp(summary_string(figure, "source", ""), "load") || !strcmp(name, "guest_page_faults_per_s");
}

struct sheet *report_figures(const struct report_result *r)
{
	static const char *const groups[] = { "rates", "reports", "counters" };
	g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
	struct sheet *s = sheet_new("All figures, means over the repeats", 2);

	sheet_head(s, "figure");
	sheet_head(s, "unit");
	for (u32 i = 0; i < nr_cells(r); i++) {
		g_autofree char *label = report_label(r, cell_at(r, i));

		sheet_head(s, label);
	}
	for (size_t g = 0; g < ARRAY_SIZE(groups); g++) {
		for (u32 i = 0; i < nr_cells(r); i++) {
			JsonObject *all = summary_object(summary_object(cell_at(r, i), "summary"), groups[g]);
			JsonObjectIter iter;
			const char *name;
			JsonNode *node;

			json_object_iter_init_ordered(&iter, all);
			while (json_object_iter_next_ordered(&iter, &name, &node)) {
				if (!wanted(groups[g], name, json_node_get_object(node)) || !g_hash_table_add(seen, (void *)name))
					continue;
				sheet_row(s);
				sheet_cell(s, name);
				sheet_cell(s, summary_string(json_node_get_object(node), "unit", ""));
				for (u32 k = 0; k < nr_cells(r); k++)
					sheet_number(s, mean_of(report_figure(cell_at(r, k), groups[g], name)));
			}
		}
	}
	return s;
}

/* --- where time went --- */

/* Classes of time with 1% anywhere, and the others together. */
static GPtrArray *time_classes(const struct report_result *r)
{
	GPtrArray *classes = g_ptr_array_new();

	for (u32 i = 0; i < nr_cells(r); i++) {
		JsonObject *counters = summary_object(summary_object(cell_at(r, i), "summary"), "counters");
		JsonObjectIter iter;
		const char *name;
		JsonNode *node;
		double all = 0;

		for (int pass = 0; pass < 2; pass++) {
			json_object_iter_init_ordered(&iter, counters);
			while (json_object_iter_next_ordered(&iter, &name, &node)) {
				double cycles = mean_of(json_node_get_object(node));

				if (!g_str_has_prefix(name, TIME_PREFIX) || !(cycles > 0))
					continue;
				if (!pass)
					all += cycles;
				else if (cycles >= 0.01 * all && !g_ptr_array_find_with_equal_func(classes, name, g_str_equal, NULL))
					g_ptr_array_add(classes, (void *)name);
			}
		}
	}
	return classes;
}

static double all_time(JsonObject *cell)
{
	JsonObject *counters = summary_object(summary_object(cell, "summary"), "counters");
	JsonObjectIter iter;
	const char *name;
	JsonNode *node;
	double all = 0;

	json_object_iter_init_ordered(&iter, counters);
	while (json_object_iter_next_ordered(&iter, &name, &node))
		if (g_str_has_prefix(name, TIME_PREFIX) && isfinite(mean_of(json_node_get_object(node))))
			all += mean_of(json_node_get_object(node));
	return all;
}

struct sheet *report_time(const struct report_result *r)
{
	g_autoptr(GPtrArray) classes = time_classes(r);
	struct sheet *s;

	if (!classes->len)
		return NULL;
	s = sheet_new("Where the vCPUs' time went, percent", 1);
	sheet_head(s, "cell");
	for (u32 k = 0; k < classes->len; k++)
		sheet_head(s, (char *)classes->pdata[k] + strlen(TIME_PREFIX));
	sheet_head(s, "all others");
	for (u32 i = 0; i < nr_cells(r); i++) {
		g_autofree char *label = report_label(r, cell_at(r, i));
		double all = all_time(cell_at(r, i)), rest = 100;

		if (!(all > 0))
			continue;
		sheet_row(s);
		sheet_cell(s, label);
		for (u32 k = 0; k < classes->len; k++) {
			double part = mean_of(report_figure(cell_at(r, i), "counters", classes->pdata[k]));

			part = isfinite(part) ? 100 * part / all : 0;
			rest -= part;
			sheet_number(s, round(100 * part) / 100);
		}
		sheet_number(s, MAX(round(100 * rest) / 100, 0));
	}
	return s;
}

/* Object i of a list; NULL if it is none. */
static JsonObject *object_at(JsonArray *a, u32 i)
{
	JsonNode *node = a && i < json_array_get_length(a) ? json_array_get_element(a, i) : NULL;

	return node && JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
}

struct sheet *report_lines(const struct report_result *r)
{
	struct sheet *s = sheet_new("Cache lines that were waited for, of each cell's first repeat", 2);

	sheet_head(s, "cell");
	sheet_head(s, "line");
	sheet_head(s, "cycles waited");
	sheet_head(s, "transfers");
	sheet_head(s, "cycles each");
	sheet_head(s, "of which in its queue");
	for (u32 i = 0; i < nr_cells(r); i++) {
		JsonObject *repeat = object_at(summary_array(cell_at(r, i), "repeats"), 0);
		JsonArray *lines = summary_array(summary_object(repeat, "profile"), "lines");
		g_autofree char *label = report_label(r, cell_at(r, i));

		for (u32 k = 0; k < LINES_SHOWN; k++) {
			JsonObject *l = object_at(lines, k);
			double transfers = summary_number(l, "transfers", 0);

			if (!l || transfers <= 0)
				continue;
			sheet_row(s);
			sheet_cell(s, label);
			sheet_cell(s, summary_string(l, "name", "?"));
			sheet_number(s, summary_number(l, "wait", NAN));
			sheet_number(s, transfers);
			sheet_number(s, round(summary_number(l, "wait", NAN) / transfers));
			sheet_number(s, round(summary_number(l, "queued", NAN) / transfers));
		}
	}
	if (s->rows->len)
		return s;
	sheet_free(s);
	return NULL;
}

/* --- histograms --- */

static double bucket_of(JsonObject *histogram, u32 bucket)
{
	JsonArray *buckets = summary_array(histogram, "buckets");

	return buckets && bucket < json_array_get_length(buckets) ? json_array_get_double_element(buckets, bucket) : 0;
}

/* Sum over all cells of a bucket of a histogram. */
static double sum_bucket(const struct report_result *r, const char *name, u32 bucket)
{
	double sum = 0;

	for (u32 i = 0; i < nr_cells(r); i++)
		sum += bucket_of(report_figure(cell_at(r, i), "histograms", name), bucket);
	return sum;
}

struct sheet *report_histogram(const struct report_result *r, const char *prefix)
{
	g_autoptr(GPtrArray) names = g_ptr_array_new();
	struct sheet *s;
	u32 first = UINT32_MAX, last = 0;

	for (u32 i = 0; i < nr_cells(r); i++) {
		JsonObject *all = summary_object(summary_object(cell_at(r, i), "summary"), "histograms");
		g_autoptr(GList) members = all ? json_object_get_members(all) : NULL;

		for (GList *l = members; l; l = l->next) {
			JsonArray *buckets = summary_array(summary_object(all, l->data), "buckets");

			if (!g_str_has_prefix(l->data, prefix) || !buckets)
				continue;
			if (!g_ptr_array_find_with_equal_func(names, l->data, g_str_equal, NULL))
				g_ptr_array_add(names, l->data);
			for (u32 b = 0; b < json_array_get_length(buckets); b++) {
				if (json_array_get_double_element(buckets, b) <= 0)
					continue;
				first = MIN(first, b);
				last = MAX(last, b);
			}
		}
	}
	if (!names->len || first > last || last > 62)
		return NULL;
	s = sheet_new("", 1);
	sheet_head(s, "from");
	for (u32 k = 0; k < names->len; k++)
		sheet_head(s, names->pdata[k]);
	/* Bucket b is from 2^b ns to twice that. */
	for (u32 b = first; b <= last; b++) {
		g_autofree char *from = front_duration((double)(1ull << b));

		sheet_row(s);
		sheet_cell(s, from);
		for (u32 k = 0; k < names->len; k++)
			sheet_number(s, sum_bucket(r, names->pdata[k], b));
	}
	return s;
}

/* --- topology --- */

struct sheet *report_ipis(const struct report_result *r)
{
	g_autofree double *sum = NULL;
	struct sheet *s = sheet_new("IPIs by node of source (rows) and target (columns), all cells and repeats", 1);
	double all = 0;
	u32 nodes = 0;

	for (u32 i = 0; i < nr_cells(r); i++) {
		JsonArray *repeats = summary_array(cell_at(r, i), "repeats");

		for (u32 k = 0; repeats && k < json_array_get_length(repeats); k++) {
			JsonArray *rows = summary_array(summary_object(object_at(repeats, k), "matrices"), "ipi_matrix");
			u32 n = rows ? json_array_get_length(rows) : 0;

			/* Cells of other shapes are not added to it. */
			if (!n || n > TOPOLOGY_MAX_NODES || (nodes && n != nodes))
				continue;
			nodes = n;
			sum = sum ? sum : g_new0(double, nodes * nodes);
			for (u32 from = 0; from < n; from++) {
				JsonNode *node = json_array_get_element(rows, from);
				JsonArray *row = JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;

				for (u32 to = 0; row && to < MIN(n, json_array_get_length(row)); to++) {
					JsonNode *value = json_array_get_element(row, to);

					if (JSON_NODE_HOLDS_VALUE(value))
						sum[from * n + to] += json_node_get_double(value);
				}
			}
		}
	}
	sheet_head(s, "from \\ to");
	for (u32 to = 0; to < nodes; to++) {
		g_autofree char *name = g_strdup_printf("node %u", to);

		sheet_head(s, name);
	}
	for (u32 from = 0; from < nodes; from++) {
		g_autofree char *name = g_strdup_printf("node %u", from);

		sheet_row(s);
		sheet_cell(s, name);
		for (u32 to = 0; to < nodes; to++) {
			sheet_number(s, sum[from * nodes + to]);
			all += sum[from * nodes + to];
		}
	}
	if (all > 0)
		return s;
	sheet_free(s);
	return NULL;
}

/* The first cell's topology, by what it was run with. false if that says nothing sensible. */
static bool topology_of(const struct report_result *r, struct topology *topo)
{
	JsonObject *cell = cell_at(r, 0), *set = summary_object(summary_object(cell, "vm"), "scenario");
	static const char *const keys[] = { "vm.topology", "vm.cpu_order", "vm.memory", "vm.nodes", "vm.node_memory", "vm.distance" };
	const char *list[ARRAY_SIZE(keys) + 1], *origin[ARRAY_SIZE(keys) + 1];
	g_autoptr(GPtrArray) owned = g_ptr_array_new_with_free_func(g_free);
	struct topology_params params;
	struct scenario *s;
	char *err = NULL;
	u32 n = 0;
	bool ok;

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		const char *value = summary_string(set, keys[i], NULL);
		char *text = value ? g_strdup_printf("%s=%s", keys[i], value) : NULL;

		if (!text)
			continue;
		g_ptr_array_add(owned, text);
		origin[n] = r->name;
		list[n++] = text;
	}
	origin[n] = r->name;
	list[n++] = "run.command=true";
	s = scenario_of(r->name, list, origin, n);
	if (!s)
		return false;
	scenario_topology(s, &params);
	params.x2apic = true;
	ok = topology_init(topo, &params, &err) == 0;
	g_free(err);
	scenario_free(s);
	return ok;
}

struct sheet *report_nodes(const struct report_result *r)
{
	g_autofree struct topology *topo = g_new0(struct topology, 1);
	struct sheet *s;

	if (!summary_object(summary_object(cell_at(r, 0), "vm"), "scenario") || !topology_of(r, topo) || topo->nr_nodes < 2)
		return NULL;
	s = sheet_new("Topology: distance from node (rows) to node (columns), as in SLIT", 1);
	sheet_head(s, "from \\ to");
	for (u32 j = 0; j < topo->nr_nodes; j++) {
		g_autofree char *name = g_strdup_printf("node %u", j);

		sheet_head(s, name);
	}
	for (u32 i = 0; i < topo->nr_nodes; i++) {
		g_autofree char *name = g_strdup_printf("node %u", i);

		sheet_row(s);
		sheet_cell(s, name);
		for (u32 j = 0; j < topo->nr_nodes; j++)
			sheet_number(s, topo->distance[i][j]);
	}
	return s;
}

/* --- experiments --- */

GPtrArray *report_experiments(const struct report *r)
{
	GPtrArray *names = g_ptr_array_new();

	for (u32 i = 0; i < r->claims->len; i++) {
		char *name = ((struct report_claim *)r->claims->pdata[i])->experiment;

		if (!g_ptr_array_find_with_equal_func(names, name, g_str_equal, NULL))
			g_ptr_array_add(names, name);
	}
	return names;
}

struct sheet *report_published(const struct report *r, const char *experiment)
{
	struct sheet *s = sheet_new("Published and measured", 4);

	sheet_head(s, "quantity");
	sheet_head(s, "published");
	sheet_head(s, "measured");
	sheet_head(s, "remark");
	for (u32 i = 0; i < r->claims->len; i++) {
		const struct report_claim *c = r->claims->pdata[i];

		if (strcmp(c->experiment, experiment) || strcmp(c->kind, "row"))
			continue;
		sheet_row(s);
		sheet_cell(s, c->text);
		sheet_cell(s, c->published);
		sheet_cell(s, c->measured);
		sheet_cell(s, c->verdict);
	}
	return s;
}

struct sheet *report_verdicts(const struct report *r, const char *experiment)
{
	struct sheet *s = sheet_new("What was stated in advance, and what was published", 4);

	sheet_head(s, "verdict");
	sheet_head(s, "statement");
	sheet_head(s, "detail");
	sheet_head(s, "kind");
	for (u32 i = 0; i < r->claims->len; i++) {
		const struct report_claim *c = r->claims->pdata[i];

		if (strcmp(c->experiment, experiment) || !strcmp(c->kind, "row") || !strcmp(c->kind, "note"))
			continue;
		sheet_row(s);
		sheet_cell(s, c->verdict);
		sheet_cell(s, c->text);
		sheet_cell(s, c->measured);
		sheet_cell(s, !strcmp(c->kind, "expect") ? "expected by the publication" : c->kind);
	}
	return s;
}

/* --- what it is about --- */

struct sheet *report_overview(const struct report *r)
{
	struct sheet *s = sheet_new("Results", 4);

	sheet_head(s, "result");
	sheet_head(s, "engine");
	sheet_head(s, "ended");
	sheet_head(s, "headline");
	sheet_head(s, "cells");
	sheet_head(s, "least");
	sheet_head(s, "most");
	for (u32 i = 0; i < r->results->len; i++) {
		const struct report_result *result = r->results->pdata[i];
		double least = INFINITY, most = -INFINITY;

		for (u32 k = 0; k < nr_cells(result); k++) {
			double mean = mean_of(report_headline(result, cell_at(result, k)));

			least = isfinite(mean) ? MIN(least, mean) : least;
			most = isfinite(mean) ? MAX(most, mean) : most;
		}
		sheet_row(s);
		sheet_cell(s, result->name);
		sheet_cell(s, summary_string(result->root, "engine", "?"));
		sheet_cell(s, front_status_text((int)CLAMP(summary_number(result->root, "status", STATUS_INTERNAL), 0, 255)));
		sheet_cell(s, result->headline ? result->headline : "none");
		sheet_number(s, nr_cells(result));
		sheet_number(s, least);
		sheet_number(s, most);
	}
	return s;
}

static void add_fact(GPtrArray *facts, const char *name, const char *value)
{
	if (!value || !*value)
		return;
	g_ptr_array_add(facts, g_strdup(name));
	g_ptr_array_add(facts, g_strdup(value));
}

GPtrArray *report_method(const struct report_result *r)
{
	GPtrArray *facts = g_ptr_array_new_with_free_func(g_free);
	JsonObject *provenance = summary_object(r->root, "provenance"), *host = summary_object(provenance, "host"), *vm = NULL, *scenario, *model;
	g_autofree char *time = NULL, *seeds = NULL, *machine = NULL;
	JsonArray *trust;
	double repeats, seed;

	for (u32 i = 0; !vm && i < nr_cells(r); i++)
		vm = summary_object(cell_at(r, i), "vm");
	scenario = summary_object(vm, "scenario");
	scenario = scenario ? scenario : summary_object(r->root, "scenario");
	model = summary_object(vm, "cost_model");
	add_fact(facts, "engine", summary_string(r->root, "engine", "?"));
	if (!strcmp(summary_string(vm, "time", "host"), "virtual"))
		time = g_strdup_printf("virtual, by the cost model %s%s", summary_string(model, "name", "?"),
				       model && json_object_has_member(model, "changed") ? ", with numbers changed by the scenario" : "");
	else
		time = g_strdup("the host's");
	add_fact(facts, "time", time);
	add_fact(facts, "topology", summary_string(scenario, "vm.topology", ""));
	add_fact(facts, "load", summary_string(scenario, "run.command", ""));
	add_fact(facts, "guest kernel", summary_string(summary_object(vm, "kernel"), "release", ""));
	repeats = g_ascii_strtod(summary_string(scenario, "run.repeat", "1"), NULL);
	seed = g_ascii_strtod(summary_string(scenario, "run.seed", "1"), NULL);
	seeds = repeats > 1 ? g_strdup_printf("%.0f, with seeds %.0f to %.0f", repeats, seed, seed + repeats - 1) :
			      g_strdup_printf("1, with seed %.0f: no spread is known", seed);
	add_fact(facts, "repeats", seeds);
	trust = summary_array(vm, "trust");
	for (u32 i = 0; trust && i < json_array_get_length(trust); i++)
		add_fact(facts, "trust", json_array_get_string_element(trust, i));
	machine = g_strdup_printf("%s, %.0f CPUs, %s", summary_string(host, "cpu", "?"), summary_number(host, "cpus", 0), summary_string(host, "kernel", "?"));
	add_fact(facts, "run on", host ? machine : "");
	add_fact(facts, "at", summary_string(provenance, "begin", ""));
	add_fact(facts, "by", summary_string(provenance, "commit", ""));
	return facts;
}
