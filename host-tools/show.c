// SPDX-License-Identifier: GPL-2.0-only
#include "show.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "front.h"
#include "status.h"
#include "summary.h"

#define CONSOLE_TAIL	25
#define LINE_WIDTH	80

/* "( +- 1.20% )", as perf stat has it; "" below two repeats. g_free(). */
static char *spread(JsonObject *figure)
{
	double mean = summary_number(figure, "mean", 0),
	       error = summary_number(figure, "stderr", NAN);

	if (isnan(error))
		return g_strdup("");
	if (mean == 0)
		return g_strdup("( +-  0.00% )");
	return g_strdup_printf("( +- %5.2f%% )", fabs(100 * error / mean));
}

char *show_mean(JsonObject *figure)
{
	double mean = summary_number(figure, "mean", NAN);
	int decimals = fabs(mean) >= 100 || mean == floor(mean) ? 0 : fabs(mean) >= 1 ? 2 : 4;

	return front_grouped(mean, decimals);
}

/* "617.280 K/sec". g_free(). */
static char *rate_text(double per_s)
{
	if (per_s >= 1e9)
		return g_strdup_printf("%8.3f G/sec", per_s / 1e9);
	if (per_s >= 1e6)
		return g_strdup_printf("%8.3f M/sec", per_s / 1e6);
	if (per_s >= 1e3)
		return g_strdup_printf("%8.3f K/sec", per_s / 1e3);
	return g_strdup_printf("%8.3f /sec", per_s);
}

/* " [nested]", " [trust!]": that a rate needs its remarks, beside it. g_free(). */
static char *rate_tags(JsonObject *rate)
{
	JsonArray *trust = summary_array(rate, "trust"), *remarks = summary_array(rate, "remarks");
	u32 nr_trust = trust ? json_array_get_length(trust) : 0;
	bool nested = false, is_virtual = !strcmp(summary_string(rate, "time", "host"), "virtual");

	for (u32 i = 0; i < nr_trust; i++)
		nested |= g_str_has_prefix(json_array_get_string_element(trust, i), "nested");

	/* What is to be said of virtual time its own tag says. */
	return g_strconcat(nested ? " [nested]" : nr_trust && !is_virtual ? " [trust!]" : "",
			   remarks && json_array_get_length(remarks) ? " [!]" : "",
			   is_virtual ? " [virtual time]" : "", NULL);
}

/* The counters that a testbed of faults and TLBs is about: shown even where they stayed at 0. */
static bool is_essential(const char *name)
{
	static const char *const names[] = {
		"guest_page_faults",
		"context_switches",
		"tlb_shootdown_ipis_sent",
		"tlb_shootdown_ipis_skipped_lazy",
		"tlb_flush_on_lazy_exit",
		"tlb_flush_full",
		"tlb_flush_page",
		"vm_exits",
		"ipis_sent",
		"ipis_delivered",
		"ept_violations",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

bool show_listed(const char *name, JsonObject *counter, bool all)
{
	const char *source = summary_string(counter, "source", "");

	if (all || is_essential(name))
		return true;
	return !strchr(name, '@') && strcmp(source, "kvm") && strcmp(source, "vm_event_states") && !g_str_has_prefix(name, "soft_") &&
	       *source != '/' && summary_number(counter, "mean", 0) != 0;
}

static void show_counters(FILE *to, JsonObject *summary, bool all)
{
	JsonObject *counters = summary_object(summary, "counters"),
		   *rates = summary_object(summary, "rates");
	JsonObjectIter iter;
	const char *name;
	JsonNode *node;
	u32 hidden = 0;

	json_object_iter_init_ordered(&iter, counters);
	while (json_object_iter_next_ordered(&iter, &name, &node)) {
		JsonObject *counter = json_node_get_object(node), *rate;
		g_autofree char *rate_name = g_strdup_printf("%s_per_s", name);
		g_autofree char *mean = show_mean(counter), *error = spread(counter);
		const char *unit = summary_string(counter, "unit", "");

		if (!show_listed(name, counter, all)) {
			hidden++;
			continue;
		}
		rate = summary_number(counter, "mean", 0) ? summary_object(rates, rate_name) : NULL;
		fprintf(to, " %18s%s %-*s", mean, !strcmp(unit, "ns") ? " ns" : "   ", NAME_WIDTH,
			name);
		if (rate) {
			g_autofree char *text = rate_text(summary_number(rate, "mean", 0));
			g_autofree char *tags = rate_tags(rate);

			fprintf(to, " # %-16s", text);
			fprintf(to, " %s%s", error, tags);
		} else if (summary_number(counter, "mean", 0)) {
			fprintf(to, " # %-16s %s", "", error);
		}
		if (all)
			fprintf(to, "  from %s", summary_string(counter, "source", "?"));
		fprintf(to, "\n");
	}
	if (hidden)
		fprintf(to, " %18u    more stayed at 0 or are second sources; --all shows them\n",
			hidden);
}

/* The names that one reason makes n/a, comma-separated and broken into lines. */
static void show_na_group(FILE *to, JsonObject *na, JsonObject *counters, const char *why)
{
	g_autoptr(GList) names = json_object_get_members(na);
	u32 column = 0;

	for (GList *l = names; l; l = l->next) {
		const char *name = l->data;

		if (json_object_has_member(counters, name) ||
		    strcmp(summary_string(na, name, ""), why))
			continue;
		if (column && column + strlen(name) > LINE_WIDTH) {
			fprintf(to, ",\n %18s    ", "");
			column = 0;
		} else if (column) {
			column += fprintf(to, ", ");
		} else {
			fprintf(to, " %18s    ", "n/a");
		}
		column += fprintf(to, "%s", name);
	}
	fprintf(to, "\n %18s    # %s\n", "", why);
}

static void show_na(FILE *to, JsonObject *summary)
{
	JsonObject *na = summary_object(summary, "na"),
		   *counters = summary_object(summary, "counters");
	g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
	JsonObjectIter iter;
	const char *name;
	JsonNode *node;

	if (!na)
		return;
	json_object_iter_init_ordered(&iter, na);
	while (json_object_iter_next_ordered(&iter, &name, &node)) {
		const char *why = summary_string(na, name, "");

		if (!json_object_has_member(counters, name) && g_hash_table_add(seen, (void *)why))
			show_na_group(to, na, counters, why);
	}
}

static void show_figures(FILE *to, JsonObject *all, bool rates)
{
	JsonObjectIter iter;
	const char *name;
	JsonNode *node;

	json_object_iter_init_ordered(&iter, all);
	while (json_object_iter_next_ordered(&iter, &name, &node)) {
		JsonObject *o = json_node_get_object(node);
		g_autofree char *mean = show_mean(o), *error = spread(o);
		g_autofree char *tags = rates ? rate_tags(o) : g_strdup("");

		if (strcmp(summary_string(o, "source", ""), "load"))
			continue;
		fprintf(to, " %18s    %-*s # %-16s %s%s\n", mean, NAME_WIDTH, name,
			summary_string(o, "unit", ""), error, tags);
	}
}

/* The q-quantile of a log2 histogram, in ns, as if spread evenly inside a bucket. */
static double bucket_quantile(JsonArray *buckets, double count, double q)
{
	double want = q * count, seen = 0;

	for (u32 i = 0; i < json_array_get_length(buckets); i++) {
		double n = (double)json_array_get_int_element(buckets, i), lo = i ? ldexp(1, i) : 0;

		if (n && seen + n >= want)
			return lo + (ldexp(1, i + 1) - lo) * (want - seen) / n;
		seen += n;
	}
	return 0;
}

static void show_buckets(FILE *to, JsonArray *buckets)
{
	double most = 0;

	for (u32 i = 0; i < json_array_get_length(buckets); i++)
		most = fmax(most, (double)json_array_get_int_element(buckets, i));
	for (u32 i = 0; i < json_array_get_length(buckets); i++) {
		double n = (double)json_array_get_int_element(buckets, i);
		g_autofree char *lo = front_duration(i ? ldexp(1, i) : 0),
				*hi = front_duration(ldexp(1, i + 1));
		g_autofree char *bar = g_strnfill((gsize)ceil(30 * n / most), '#');

		if (n)
			fprintf(to, "%26s .. %-8s %10.0f %s\n", lo, hi, n, bar);
	}
}

static void show_histograms(FILE *to, JsonObject *summary, bool all)
{
	JsonObject *hists = summary_object(summary, "histograms");
	JsonObjectIter iter;
	const char *name;
	JsonNode *node;

	if (!hists || !json_object_get_size(hists))
		return;
	fprintf(to, "\n Over all repeats together:\n\n");
	json_object_iter_init_ordered(&iter, hists);
	while (json_object_iter_next_ordered(&iter, &name, &node)) {
		JsonObject *h = json_node_get_object(node);
		double count = summary_number(h, "count", 0), min = summary_number(h, "min", 0);
		double max = summary_number(h, "max", 0);
		JsonArray *buckets = summary_array(h, "buckets");
		g_autofree char *n = front_grouped(count, 0),
				*mean = front_duration(summary_number(h, "mean", 0));
		g_autofree char *lo = front_duration(min), *hi = front_duration(max);

		fprintf(to, " %18s    %-*s # mean %s, min %s, max %s", n, NAME_WIDTH, name, mean,
			lo, hi);
		if (buckets && min < max) {
			g_autofree char *p50 = front_duration(
				fmin(max, fmax(min, bucket_quantile(buckets, count, 0.5))));
			g_autofree char *p99 = front_duration(
				fmin(max, fmax(min, bucket_quantile(buckets, count, 0.99))));

			fprintf(to, ", half below about %s, 99%% below %s", p50, p99);
		}
		fprintf(to, "\n");
		if (all && buckets)
			show_buckets(to, buckets);
	}
}

/* The measured region's length, never in words that belong to a stopwatch when it is none. */
static void show_time(FILE *to, JsonObject *cell, JsonObject *summary, const char *engine)
{
	JsonObject *time = summary_object(summary, "time"), *vm = summary_object(cell, "vm");
	JsonObject *boot = summary_object(vm, "boot");
	double mean = summary_number(time, "mean", 0) / 1e9,
	       ready = summary_number(boot, "ready_ns", 0) / 1e9;
	g_autofree char *error = spread(time);
	const char *kind = summary_string(vm, "time", "none");

	fprintf(to, "\n");
	if (summary_number(time, "n", 0) == 0)
		return;
	if (!strcmp(kind, "virtual"))
		fprintf(to, " %18.9f    s of virtual time between the marks %s\n", mean, error);
	else if (!strcmp(engine, "nested"))
		fprintf(to, " %18.9f    s between the marks, of an emulated clock %s\n", mean,
			error);
	else
		fprintf(to, " %18.9f    seconds time elapsed between the marks %s\n", mean, error);
	if (ready > 0)
		fprintf(to, " %18.3f    s from start to init%s\n", ready,
			!strcmp(kind, "virtual") ? ", of virtual time" : "");
	if (summary_number(vm, "ipi_floor_ns", 0) > 0) {
		g_autofree char *floor_text = front_duration(summary_number(vm, "ipi_floor_ns", 0));

		fprintf(to,
			" %18s    floor of an IPI here; a shorter injected delay shows nothing\n",
			floor_text);
	}
}

static void show_strings(FILE *to, const char *prefix, JsonArray *list)
{
	for (u32 i = 0; list && i < json_array_get_length(list); i++) {
		JsonNode *node = json_array_get_element(list, i);

		if (JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_STRING)
			fprintf(to, " %s: %s\n", prefix, json_node_get_string(node));
	}
}

/* All rates of a cell share these, so once is enough. */
static void show_remarks(FILE *to, JsonObject *cell, JsonObject *summary)
{
	JsonObject *rates = summary_object(summary, "rates");
	g_autoptr(GList) names = json_object_get_members(rates);

	if (names)
		show_strings(to, "[!] rates are",
			     summary_array(summary_object(rates, names->data), "remarks"));
	show_strings(to, "trust", summary_array(summary_object(cell, "vm"), "trust"));
	show_strings(to, "warning", summary_array(summary, "warnings"));
	show_strings(to, "console", summary_array(summary_object(cell, "end"), "marked"));
}

static void show_console(FILE *to, JsonObject *cell)
{
	const char *console = summary_string(summary_object(cell, "end"), "console", "");
	g_auto(GStrv) lines = g_strsplit(console, "\n", -1);
	u32 n = g_strv_length(lines);

	while (n && !*g_strchomp(lines[n - 1]))
		n--;
	if (!n) {
		fprintf(to, " The guest's console said nothing.\n");
		return;
	}
	fprintf(to, " Last lines of the guest's console:\n");
	for (u32 i = n > CONSOLE_TAIL ? n - CONSOLE_TAIL : 0; i < n; i++)
		fprintf(to, " | %s\n", g_strchomp(lines[i]));
}

static void show_cell(FILE *to, JsonObject *root, u32 i, bool all)
{
	JsonArray *cells = summary_array(root, "cells");
	JsonObject *cell = json_array_get_object_element(cells, i),
		   *scenario = summary_object(root, "scenario");
	JsonObject *summary = summary_object(cell, "summary"), *set = summary_object(cell, "set");
	int status = (int)summary_number(cell, "status", 0);
	double repeats = summary_number(summary, "repeats", 0),
	       failed = summary_number(summary, "failed", 0);
	const char *engine = summary_string(root, "engine", "?");
	const char *why = summary_string(cell, "why", "");

	fprintf(to, "\n Counters for '%s' on %s, engine %s (%.0f repeat%s)",
		summary_string(set, "run.command", summary_string(scenario, "run.command", "?")),
		summary_string(set, "vm.topology", summary_string(scenario, "vm.topology", "?")),
		engine, repeats, repeats == 1 ? "" : "s");
	if (json_array_get_length(cells) > 1)
		fprintf(to, ", %s", summary_string(cell, "name", "?"));
	fprintf(to, ":\n\n");
	if (repeats) {
		show_counters(to, summary, all);
		show_na(to, summary);
		fprintf(to, "\n");
		show_figures(to, summary_object(summary, "rates"), true);
		show_figures(to, summary_object(summary, "reports"), false);
		show_histograms(to, summary, all);
		show_time(to, cell, summary, engine);
	}
	show_remarks(to, cell, summary);
	if (failed)
		fprintf(to, " %.0f repeat%s failed and %s not in the figures.\n", failed,
			failed == 1 ? "" : "s", failed == 1 ? "is" : "are");
	if (!json_object_get_boolean_member_with_default(cell, "run", TRUE))
		fprintf(to, " Not run.\n");
	else if (status != STATUS_DONE)
		fprintf(to, " This cell ended badly: %s%s%s\n", front_status_text(status),
			*why ? ": " : "", why);
	if (status == STATUS_GUEST_DIED || status == STATUS_COMMAND_FAILED)
		show_console(to, cell);
}

void show_text(FILE *to, const char *text)
{
	const u8 *p = (const u8 *)text;

	for (; *p; p++) {
		/* U+0080 to U+009F, which terminals take for escapes as well. */
		bool c1 = p[0] == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0;

		if (c1 || (*p < 0x20 && *p != '\n' && *p != '\t') || *p == 0x7f)
			fputc('?', to);
		else
			fputc(*p, to);
		p += c1;
	}
}

static void show_all(FILE *to, JsonNode *result, bool all)
{
	JsonObject *root = json_node_get_object(result);
	JsonArray *cells = summary_array(root, "cells");

	for (u32 i = 0; i < json_array_get_length(cells); i++)
		show_cell(to, root, i, all);
	if (json_array_get_length(cells) > 1)
		show_table(to, root, all);
	if (!json_object_get_boolean_member_with_default(root, "complete", TRUE))
		fprintf(to,
			"\n This result is incomplete: not every repeat of every cell is in it.\n");
	fprintf(to, "\n");
}

void show_result(FILE *to, JsonNode *result, bool all)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	/* One place for all names, units and words that come out of a file or guest. */
	if (!f)
		return;
	show_all(f, result, all);
	if (!fclose(f))
		show_text(to, text);
	free(text);
}
