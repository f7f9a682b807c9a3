// SPDX-License-Identifier: GPL-2.0-only
#include "summary.h"

#include <math.h>
#include <string.h>

#include "stats.h"

/* Values of one name over the repeats. */
struct series {
	char *unit, *source;
	struct stats stats;
};

struct sums {
	JsonObject *vm;
	GHashTable *counters, *reports, *rates;	/* name to struct series */
	GPtrArray *counter_order, *report_order,
		*rate_order; /* names as first seen, of the tables */
	struct stats time;
	JsonObject *na, *histograms;
	GPtrArray *warnings;	/* of the repeats' strings */
	u32 repeats, failed;
	double fewest_rounds, partial;
	bool whole_command;	/* some repeat had no marks of the load itself */
};

double summary_number(JsonObject *o, const char *name, double otherwise)
{
	JsonNode *node = o ? json_object_get_member(o, name) : NULL;
	GType type = node && JSON_NODE_HOLDS_VALUE(node) ? json_node_get_value_type(node)
							 : G_TYPE_INVALID;

	if (type == G_TYPE_INT64)
		return (double)json_node_get_int(node);
	if (type == G_TYPE_DOUBLE)
		return json_node_get_double(node);
	return otherwise;
}

const char *summary_string(JsonObject *o, const char *name, const char *otherwise)
{
	JsonNode *node = o ? json_object_get_member(o, name) : NULL;

	return node && JSON_NODE_HOLDS_VALUE(node) &&
			       json_node_get_value_type(node) == G_TYPE_STRING
		       ? json_node_get_string(node)
		       : otherwise;
}

JsonObject *summary_object(JsonObject *o, const char *name)
{
	JsonNode *node = o ? json_object_get_member(o, name) : NULL;

	return node && JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
}

JsonArray *summary_array(JsonObject *o, const char *name)
{
	JsonNode *node = o ? json_object_get_member(o, name) : NULL;

	return node && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;
}

static void series_free(void *p)
{
	struct series *s = p;

	g_free(s->unit);
	g_free(s->source);
	g_free(s);
}

static GHashTable *series_table(void)
{
	return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, series_free);
}

static struct series *series_get(GHashTable *table, GPtrArray *order, const char *name,
				 const char *unit, const char *source)
{
	struct series *s = g_hash_table_lookup(table, name);

	if (!s) {
		char *key = g_strdup(name);

		s = g_new0(struct series, 1);
		s->unit = g_strdup(unit);
		s->source = g_strdup(source);
		g_hash_table_insert(table, key, s);
		g_ptr_array_add(order, key);
	}
	return s;
}

/* A counter of a repeat, and its rate if it counts events. */
static void add_counter(struct sums *sums, const char *name, JsonObject *o, double seconds)
{
	const char *unit = summary_string(o, "unit", ""), *source = summary_string(o, "source", "");
	struct series *s = series_get(sums->counters, sums->counter_order, name, unit, source);
	double value = summary_number(o, "value", NAN);

	if (isnan(value))
		return;
	/* A counter that a repeat leaves out did not move in it (docs/records.md). */
	while (s->stats.n + 1 < sums->repeats)
		stats_add(&s->stats, 0);
	stats_add(&s->stats, value);
	/* The guest's clock counts come by the same road as its events. */
	if (strcmp(unit, "events") || g_str_has_suffix(name, "_ns") || seconds <= 0)
		return;

	g_autofree char *rate = g_strdup_printf("%s_per_s", name);

	s = series_get(sums->rates, sums->rate_order, rate, "events/s", source);
	while (s->stats.n + 1 < sums->repeats)
		stats_add(&s->stats, 0);
	stats_add(&s->stats, value / seconds);
}

static void add_report(struct sums *sums, const char *name, JsonObject *o)
{
	const char *unit = summary_string(o, "unit", "");
	double value = summary_number(o, "value", NAN);
	bool rate = g_str_has_suffix(unit, "/s");

	if (isnan(value))
		return;
	stats_add(&series_get(rate ? sums->rates : sums->reports,
			      rate ? sums->rate_order : sums->report_order, name, unit, "load")
			   ->stats,
		  value);
	if (!strcmp(name, "rounds"))
		sums->fewest_rounds = fmin(sums->fewest_rounds, value);
	if (!strcmp(name, "partial"))
		sums->partial += value;
}

static void add_histogram(struct sums *sums, const char *name, JsonObject *o)
{
	JsonObject *all = summary_object(sums->histograms, name);
	JsonArray *from = summary_array(o, "buckets"), *to;
	bool first = !all;

	if (first) {
		all = json_object_new();
		json_object_set_object_member(sums->histograms, name, all);
	}

	double count = summary_number(all, "count", 0) + summary_number(o, "count", 0);
	double sum = summary_number(all, "sum", 0) + summary_number(o, "sum", 0);
	double min = summary_number(o, "min", 0), max = summary_number(o, "max", 0);
	JsonArray *merged = json_array_new();
	u32 n = from ? json_array_get_length(from) : 0, m;

	to = summary_array(all, "buckets");
	m = to ? json_array_get_length(to) : 0;
	for (u32 i = 0; i < MAX(n, m); i++)
		json_array_add_int_element(merged,
					   (i < n ? json_array_get_int_element(from, i) : 0) +
						   (i < m ? json_array_get_int_element(to, i) : 0));
	json_object_set_int_member(all, "count", (gint64)count);
	json_object_set_int_member(all, "sum", (gint64)sum);
	json_object_set_double_member(all, "mean", count ? sum / count : 0);
	json_object_set_int_member(
		all, "min", (gint64)(first ? min : fmin(min, summary_number(all, "min", min))));
	json_object_set_int_member(
		all, "max", (gint64)(first ? max : fmax(max, summary_number(all, "max", max))));
	json_object_set_array_member(all, "buckets", merged);
}

static void add_warnings(struct sums *sums, JsonObject *repeat)
{
	JsonArray *list = summary_array(repeat, "warnings");

	for (u32 i = 0; list && i < json_array_get_length(list); i++) {
		JsonNode *node = json_array_get_element(list, i);
		const char *text = JSON_NODE_HOLDS_VALUE(node) ? json_node_get_string(node) : NULL;

		if (text &&
		    !g_ptr_array_find_with_equal_func(sums->warnings, text, g_str_equal, NULL))
			g_ptr_array_add(sums->warnings, (void *)text);
	}
}

/* Each object member of repeat's member `of`, in order. */
static void each_object(JsonObject *repeat, const char *of, struct sums *sums, double seconds)
{
	JsonObject *all = summary_object(repeat, of);
	JsonObjectIter iter;
	const char *name;
	JsonNode *node;

	if (!all)
		return;
	json_object_iter_init_ordered(&iter, all);
	while (json_object_iter_next_ordered(&iter, &name, &node)) {
		if (!JSON_NODE_HOLDS_OBJECT(node))
			continue;
		if (!strcmp(of, "counters"))
			add_counter(sums, name, json_node_get_object(node), seconds);
		else if (!strcmp(of, "reports"))
			add_report(sums, name, json_node_get_object(node));
		else
			add_histogram(sums, name, json_node_get_object(node));
	}
}

static void add_na(struct sums *sums, JsonObject *repeat)
{
	JsonObject *na = summary_object(repeat, "na");
	JsonObjectIter iter;
	const char *name;
	JsonNode *node;

	if (!na)
		return;
	json_object_iter_init_ordered(&iter, na);
	while (json_object_iter_next_ordered(&iter, &name, &node))
		json_object_set_member(sums->na, name, json_node_copy(node));
}

static void add_repeat(struct sums *sums, JsonObject *repeat)
{
	double ns = summary_number(repeat, "time_ns", 0);

	add_warnings(sums, repeat);
	if (summary_number(repeat, "exit_status", 0) != 0) {
		sums->failed++;
		return;
	}
	sums->repeats++;
	stats_add(&sums->time, ns);
	if (strcmp(summary_string(repeat, "marks", "load"), "load"))
		sums->whole_command = true;
	each_object(repeat, "counters", sums, ns / 1e9);
	each_object(repeat, "reports", sums, 0);
	each_object(repeat, "histograms", sums, 0);
	add_na(sums, repeat);
}

static JsonObject *stats_json(const char *unit, const char *source, const struct stats *s)
{
	JsonObject *o = json_object_new();
	double error = stats_stderr(s);

	json_object_set_string_member(o, "unit", unit);
	if (source && *source)
		json_object_set_string_member(o, "source", source);
	json_object_set_double_member(o, "mean", s->mean);
	if (isnan(error))
		json_object_set_null_member(o, "stderr");
	else
		json_object_set_double_member(o, "stderr", error);
	json_object_set_int_member(o, "n", s->n);
	return o;
}

/* What a reader must know of every rate of the cell, beside trust. */
static JsonArray *rate_remarks(const struct sums *sums)
{
	JsonArray *remarks = json_array_new();

	if (sums->partial > 0)
		json_array_add_string_element(remarks, "taken over partial rounds");
	if (sums->fewest_rounds < SUMMARY_FEW_ROUNDS) {
		g_autofree char *text = g_strdup_printf("only %.0f whole rounds, fewer than %d",
							sums->fewest_rounds, SUMMARY_FEW_ROUNDS);

		json_array_add_string_element(remarks, text);
	}
	if (sums->whole_command)
		json_array_add_string_element(
			remarks, "over the whole command, since the load set no marks");
	return remarks;
}

static JsonArray *copy_array(JsonArray *a)
{
	JsonArray *copy = json_array_new();

	for (u32 i = 0; a && i < json_array_get_length(a); i++)
		json_array_add_element(copy, json_node_copy(json_array_get_element(a, i)));
	return copy;
}

static JsonObject *table_json(struct sums *sums, GHashTable *table, GPtrArray *order, bool rates)
{
	JsonObject *out = json_object_new();

	for (u32 i = 0; i < order->len; i++) {
		struct series *s = g_hash_table_lookup(table, order->pdata[i]);
		JsonObject *o;

		/* Not in the last repeats: it did not move in those either. */
		while (strcmp(s->source, "load") && s->stats.n < sums->repeats)
			stats_add(&s->stats, 0);
		o = stats_json(s->unit, s->source, &s->stats);
		if (rates) {
			json_object_set_string_member(o, "time",
						      summary_string(sums->vm, "time", "none"));
			json_object_set_array_member(o, "trust",
						     copy_array(summary_array(sums->vm, "trust")));
			json_object_set_array_member(o, "remarks", rate_remarks(sums));
		}
		json_object_set_object_member(out, order->pdata[i], o);
	}
	return out;
}

static void sums_init(struct sums *sums, JsonObject *vm)
{
	*sums = (struct sums){ .vm = vm, .fewest_rounds = INFINITY };
	sums->counters = series_table();
	sums->reports = series_table();
	sums->rates = series_table();
	sums->counter_order = g_ptr_array_new();
	sums->report_order = g_ptr_array_new();
	sums->rate_order = g_ptr_array_new();
	sums->warnings = g_ptr_array_new();
	sums->na = json_object_new();
	sums->histograms = json_object_new();
}

static void sums_destroy(struct sums *sums)
{
	g_ptr_array_unref(sums->counter_order);
	g_ptr_array_unref(sums->report_order);
	g_ptr_array_unref(sums->rate_order);
	g_ptr_array_unref(sums->warnings);
	g_hash_table_unref(sums->counters);
	g_hash_table_unref(sums->reports);
	g_hash_table_unref(sums->rates);
}

JsonObject *summary_build(JsonObject *vm, JsonArray *repeats)
{
	JsonObject *out = json_object_new();
	JsonArray *warnings = json_array_new();
	struct sums sums;

	sums_init(&sums, vm);
	for (u32 i = 0; i < json_array_get_length(repeats); i++) {
		JsonNode *node = json_array_get_element(repeats, i);

		if (JSON_NODE_HOLDS_OBJECT(node))
			add_repeat(&sums, json_node_get_object(node));
	}
	json_object_set_int_member(out, "repeats", sums.repeats);
	json_object_set_int_member(out, "failed", sums.failed);
	json_object_set_object_member(out, "time", stats_json("ns", NULL, &sums.time));
	json_object_set_object_member(out, "counters",
				      table_json(&sums, sums.counters, sums.counter_order, false));
	json_object_set_object_member(out, "reports",
				      table_json(&sums, sums.reports, sums.report_order, false));
	json_object_set_object_member(out, "rates",
				      table_json(&sums, sums.rates, sums.rate_order, true));
	json_object_set_object_member(out, "na", sums.na);
	json_object_set_object_member(out, "histograms", sums.histograms);
	for (u32 i = 0; i < sums.warnings->len; i++)
		json_array_add_string_element(warnings, sums.warnings->pdata[i]);
	json_object_set_array_member(out, "warnings", warnings);
	sums_destroy(&sums);
	return out;
}
