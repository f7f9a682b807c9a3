// SPDX-License-Identifier: GPL-2.0-only
#include "compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "front.h"
#include "show.h"
#include "stats.h"
#include "summary.h"

#define CONFIDENCE	0.95

/*
 * What one compares on purpose, and what moves no mean: how many values there
 * are, how long one would have waited. The engine that ran is compared instead of
 * the one asked for.
 */
static bool may_differ(const char *key)
{
	static const char *const keys[] = {
		"guest.kernel", "guest.initrd",	    "run.repeat", "run.seed",
		"run.timeout",	"run.boot_timeout", "run.host_timeout", "vm.engine",
	};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (!strcmp(key, keys[i]))
			return true;
	return false;
}

/* Differences of two flat objects of strings. */
static void diff_objects(GPtrArray *out, JsonObject *a, JsonObject *b, const char *where)
{
	JsonObject *const sides[] = { a, b };

	for (int side = 0; side < 2; side++) {
		JsonObjectIter iter;
		const char *key;
		JsonNode *node;

		if (!sides[side])
			continue;
		json_object_iter_init_ordered(&iter, sides[side]);
		while (json_object_iter_next_ordered(&iter, &key, &node)) {
			const char *va = a ? summary_string(a, key, NULL) : NULL;
			const char *vb = b ? summary_string(b, key, NULL) : NULL;

			/* Keys of b that a has too were seen from a's side. */
			if (may_differ(key) || (side == 1 && va) || !g_strcmp0(va, vb))
				continue;
			g_ptr_array_add(out, g_strdup_printf("%s%s: %s | %s", where, key,
							     va ? va : "(not there)",
							     vb ? vb : "(not there)"));
		}
	}
}

GPtrArray *compare_scenarios(JsonObject *a, JsonObject *b)
{
	GPtrArray *out = g_ptr_array_new_with_free_func(g_free);
	const char *ea = summary_string(a, "engine", "?"), *eb = summary_string(b, "engine", "?");

	diff_objects(out, summary_object(a, "scenario"), summary_object(b, "scenario"), "");
	if (strcmp(ea, eb))
		g_ptr_array_add(out, g_strdup_printf("engine: %s | %s", ea, eb));
	return out;
}

void compare_figures(JsonObject *a, JsonObject *b, struct compare_figure *out)
{
	out->mean_a = summary_number(a, "mean", NAN);
	out->mean_b = summary_number(b, "mean", NAN);
	out->n_a = (u32)summary_number(a, "n", 0);
	out->n_b = (u32)summary_number(b, "n", 0);
	out->difference = out->mean_b - out->mean_a;
	out->percent = out->mean_a ? 100 * out->difference / out->mean_a : NAN;
	out->half = welch_half_width(summary_number(a, "stderr", NAN), out->n_a,
				     summary_number(b, "stderr", NAN), out->n_b, CONFIDENCE);
}

static JsonObject *find_cell(JsonObject *root, const char *name)
{
	JsonArray *cells = summary_array(root, "cells");

	for (u32 i = 0; i < json_array_get_length(cells); i++) {
		JsonObject *cell = json_array_get_object_element(cells, i);

		if (!strcmp(summary_string(cell, "name", ""), name))
			return cell;
	}
	return NULL;
}

static void print_figure(FILE *to, const char *name, const struct compare_figure *f)
{
	int decimals = fabs(f->mean_a) < 100 && f->mean_a != floor(f->mean_a) ? 3 : 0;
	g_autofree char *a = front_grouped(f->mean_a, decimals),
			*b = front_grouped(f->mean_b, decimals);
	g_autofree char *d = front_grouped(f->difference, decimals);
	g_autofree char *percent =
		isnan(f->percent) ? g_strdup("-") : g_strdup_printf("%+.1f%%", f->percent);
	g_autofree char *interval = NULL;

	if (isnan(f->half)) {
		interval = g_strdup("no interval");
	} else {
		g_autofree char *lo = front_grouped(f->difference - f->half, decimals);
		g_autofree char *hi = front_grouped(f->difference + f->half, decimals);

		interval = g_strdup_printf("[%s, %s]%s", lo, hi,
					   fabs(f->difference) > f->half ? " *" : "");
	}
	fprintf(to, " %-*s %16s %16s %16s %9s  %s\n", NAME_WIDTH, name, a, b, d, percent, interval);
}

/* Figures that both cells have, in a's order. */
static void print_group(FILE *to, JsonObject *sa, JsonObject *sb, const char *of, bool all)
{
	JsonObject *ga = summary_object(sa, of), *gb = summary_object(sb, of);
	JsonObjectIter iter;
	const char *name;
	JsonNode *node;

	json_object_iter_init_ordered(&iter, ga);
	while (json_object_iter_next_ordered(&iter, &name, &node)) {
		JsonObject *a = json_node_get_object(node), *b = summary_object(gb, name);
		struct compare_figure f;

		if (!all && (strchr(name, '@') || g_str_has_prefix(name, "soft_") ||
			     !strcmp(summary_string(a, "source", ""), "kvm")))
			continue;
		if (!b) {
			fprintf(to, " %-*s only in the first\n", NAME_WIDTH, name);
			continue;
		}
		compare_figures(a, b, &f);
		/* Where neither side saw anything there is nothing to read. */
		if (all || f.mean_a || f.mean_b)
			print_figure(to, name, &f);
	}
}

/* The rate that the verdict is about: the load's own, else guest page faults. */
static const char *main_rate(JsonObject *sa, JsonObject *sb)
{
	static const char *const names[] = { "faults_per_s", "guest_page_faults_per_s" };
	JsonObject *a = summary_object(sa, "rates"), *b = summary_object(sb, "rates");
	JsonObjectIter iter;
	const char *name;
	JsonNode *node;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (summary_object(a, names[i]) && summary_object(b, names[i]))
			return names[i];
	json_object_iter_init_ordered(&iter, a);
	while (json_object_iter_next_ordered(&iter, &name, &node))
		if (!strcmp(summary_string(json_node_get_object(node), "source", ""), "load") &&
		    summary_object(b, name))
			return name;
	return NULL;
}

/* Why this pair of rates is no performance result; NULL if it is one. g_free(). */
static char *no_performance(JsonObject *a, JsonObject *b)
{
	JsonObject *const sides[] = { a, b };

	if (strcmp(summary_string(a, "time", "none"), summary_string(b, "time", "none")))
		return g_strdup_printf("one counts %s time and the other %s time",
				       summary_string(a, "time", "none"),
				       summary_string(b, "time", "none"));
	if (!strcmp(summary_string(a, "time", "none"), "none"))
		return g_strdup("the rates are of no clock");
	for (int i = 0; i < 2; i++) {
		JsonArray *trust = summary_array(sides[i], "trust"),
			  *remarks = summary_array(sides[i], "remarks");

		if (trust && json_array_get_length(trust))
			return g_strdup(json_array_get_string_element(trust, 0));
		if (remarks && json_array_get_length(remarks))
			return g_strdup_printf("the %s rate is %s", i ? "second" : "first",
					       json_array_get_string_element(remarks, 0));
	}
	return NULL;
}

/* One sentence. */
static int print_verdict(FILE *to, JsonObject *sa, JsonObject *sb)
{
	const char *name = main_rate(sa, sb);
	struct compare_figure f;
	g_autofree char *why = NULL;

	if (!name) {
		fprintf(to, " Verdict: none, since the two have no rate in common.\n");
		return COMPARE_NO_VERDICT;
	}

	JsonObject *a = summary_object(summary_object(sa, "rates"), name);
	JsonObject *b = summary_object(summary_object(sb, "rates"), name);

	compare_figures(a, b, &f);
	why = no_performance(a, b);
	if (why) {
		fprintf(to, " Verdict: this is not a performance result: %s.\n", why);
		return COMPARE_NO_VERDICT;
	}
	if (isnan(f.half)) {
		fprintf(to,
			" Verdict: none; %s has %u and %u repeats, and an interval needs two or more on each side"
			" (run.repeat).\n",
			name, f.n_a, f.n_b);
		return COMPARE_NO_VERDICT;
	}
	if (fabs(f.difference) <= f.half || isnan(f.percent))
		fprintf(to,
			" Verdict: no difference of %s is shown: %+.1f%% with a 95%% interval of %+.1f%% to %+.1f%%.\n",
			name, f.percent, 100 * (f.difference - f.half) / f.mean_a,
			100 * (f.difference + f.half) / f.mean_a);
	else
		fprintf(to,
			" Verdict: %s of the second is %s by %.1f%% (95%% interval %.1f%% to %.1f%%).\n",
			name, f.difference > 0 ? "higher" : "lower", fabs(f.percent),
			100 * (fabs(f.difference) - f.half) / fabs(f.mean_a),
			100 * (fabs(f.difference) + f.half) / fabs(f.mean_a));
	return COMPARE_VERDICT;
}

static void print_kernel(FILE *to, const char *which, JsonObject *root)
{
	JsonObject *cell = json_array_get_object_element(summary_array(root, "cells"), 0);
	JsonObject *kernel = summary_object(summary_object(cell, "vm"), "kernel");

	fprintf(to, " %s: kernel %s %.12s, patches %s, engine %s\n", which,
		summary_string(kernel, "release", "?"), summary_string(kernel, "sha256", "?"),
		summary_string(kernel, "patch_id", "?"), summary_string(root, "engine", "?"));
}

static int compare_all(FILE *to, JsonNode *a, JsonNode *b, const char *name_a, const char *name_b,
		    bool all)
{
	JsonObject *ra = json_node_get_object(a), *rb = json_node_get_object(b);
	JsonArray *cells = summary_array(ra, "cells");
	int status = COMPARE_VERDICT;
	u32 matched = 0;

	print_kernel(to, name_a, ra);
	print_kernel(to, name_b, rb);
	for (u32 i = 0; i < json_array_get_length(cells); i++) {
		JsonObject *ca = json_array_get_object_element(cells, i);
		const char *name = summary_string(ca, "name", "");
		JsonObject *cb = find_cell(rb, name);
		JsonObject *sa = summary_object(ca, "summary"), *sb = summary_object(cb, "summary");
		int verdict;

		/* Two results of one cell each are compared whatever the cells are called. */
		if (!cb && json_array_get_length(cells) == 1 &&
		    json_array_get_length(summary_array(rb, "cells")) == 1) {
			cb = json_array_get_object_element(summary_array(rb, "cells"), 0);
			sb = summary_object(cb, "summary");
		}
		if (!cb) {
			fprintf(to, "\n Cell %s is only in the first.\n", name);
			continue;
		}
		matched++;
		fprintf(to, "\n Cell %s:\n\n %-*s %16s %16s %16s %9s  %s\n", name, NAME_WIDTH, "",
			"first", "second", "difference", "", "95% interval of it (* = not 0)");
		print_group(to, sa, sb, "rates", all);
		print_group(to, sa, sb, "reports", all);
		print_group(to, sa, sb, "counters", all);
		fprintf(to, "\n");
		verdict = print_verdict(to, sa, sb);
		status = MAX(status, verdict);
	}
	if (!matched) {
		fprintf(to, "\n No cell is in both.\n");
		return COMPARE_REFUSED;
	}
	return status;
}

int compare_results(FILE *to, JsonNode *a, JsonNode *b, const char *name_a, const char *name_b,
		    bool all)
{
	int status = COMPARE_REFUSED;
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return status;
	status = compare_all(f, a, b, name_a, name_b, all);
	/* Names and remarks are the files' words. */
	if (!fclose(f))
		show_text(to, text);
	free(text);
	return status;
}
