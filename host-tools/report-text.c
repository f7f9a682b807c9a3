// SPDX-License-Identifier: GPL-2.0-only
/* A report as Markdown, CSV and JUnit's XML. */
#include <math.h>
#include <string.h>

#include "front.h"
#include "report.h"
#include "status.h"
#include "summary.h"

/* --- Markdown --- */

static void markdown_text(GString *to, const char *text)
{
	for (; *text; text++) {
		if (strchr("\\`*_<>[]&#~|", *text))
			g_string_append_c(to, '\\');
		g_string_append_c(to, *text == '\n' || *text == '\r' ? ' ' : *text);
	}
}

static void markdown_sheet(GString *to, struct sheet *s)
{
	if (s && s->rows->len) {
		g_string_append(to, "\n**");
		markdown_text(to, s->title);
		g_string_append(to, "**\n\n");
		sheet_markdown(s, to);
	}
	sheet_free(s);
}

void report_markdown(const struct report *r, GString *to)
{
	g_autoptr(GPtrArray) experiments = report_experiments(r);

	g_string_append(to, "# Faultbed results\n");
	if (r->results->len > 1)
		markdown_sheet(to, report_overview(r));
	for (u32 i = 0; i < experiments->len; i++) {
		g_string_append(to, "\n## Published and measured: ");
		markdown_text(to, experiments->pdata[i]);
		g_string_append_c(to, '\n');
		markdown_sheet(to, report_published(r, experiments->pdata[i]));
		markdown_sheet(to, report_verdicts(r, experiments->pdata[i]));
	}
	for (u32 i = 0; i < r->results->len; i++) {
		const struct report_result *result = r->results->pdata[i];
		g_autoptr(GPtrArray) facts = report_method(result);
		g_auto(GStrv) question = g_strsplit(summary_string(result->root, "question", ""), "\n\n", 2);

		g_string_append(to, "\n## ");
		markdown_text(to, result->name);
		g_string_append(to, "\n\n");
		markdown_text(to, question[0] ? question[0] : "");
		g_string_append(to, "\n\n");
		for (u32 k = 0; k + 1 < facts->len; k += 2) {
			g_string_append_printf(to, "- %s: ", (char *)facts->pdata[k]);
			markdown_text(to, facts->pdata[k + 1]);
			g_string_append_c(to, '\n');
		}
		markdown_sheet(to, report_cells(result));
		markdown_sheet(to, report_time(result));
		markdown_sheet(to, report_lines(result));
		markdown_sheet(to, report_nodes(result));
		markdown_sheet(to, report_ipis(result));
		markdown_sheet(to, report_figures(result));
	}
}

/* --- CSV --- */

static void csv_figures(struct sheet *s, const struct report_result *r, JsonObject *cell, const char *group)
{
	JsonObject *all = summary_object(summary_object(cell, "summary"), group);
	JsonObjectIter iter;
	const char *name;
	JsonNode *node;

	if (!all)
		return;
	json_object_iter_init_ordered(&iter, all);
	while (json_object_iter_next_ordered(&iter, &name, &node)) {
		JsonObject *figure = json_node_get_object(node);

		sheet_row(s);
		sheet_cell(s, r->name);
		sheet_cell(s, summary_string(cell, "name", "?"));
		sheet_cell(s, group);
		sheet_cell(s, name);
		sheet_cell(s, summary_string(figure, "unit", ""));
		sheet_number(s, summary_number(figure, "mean", NAN));
		sheet_number(s, summary_number(figure, "stderr", NAN));
		sheet_number(s, summary_number(figure, "n", NAN));
	}
}

void report_csv(const struct report *r, GString *to)
{
	static const char *const head[] = { "result", "cell", "group", "figure", "unit", "mean", "stderr", "n" };
	struct sheet *s = sheet_new("", 5);

	for (size_t i = 0; i < ARRAY_SIZE(head); i++)
		sheet_head(s, head[i]);
	for (u32 i = 0; i < r->results->len; i++) {
		const struct report_result *result = r->results->pdata[i];

		for (u32 k = 0; k < json_array_get_length(result->cells); k++) {
			JsonObject *cell = json_array_get_object_element(result->cells, k);

			csv_figures(s, result, cell, "rates");
			csv_figures(s, result, cell, "reports");
			csv_figures(s, result, cell, "counters");
		}
	}
	sheet_csv(s, to);
	sheet_free(s);
}

/* --- JUnit --- */

/* Text that XML can hold at all: control characters cannot be written in it. g_free(). */
static char *xml(const char *text)
{
	g_autofree char *valid = g_utf8_make_valid(text, -1);

	for (char *c = valid; *c; c++)
		if ((unsigned char)*c < ' ' && *c != '\n' && *c != '\t')
			*c = '?';
	return g_markup_escape_text(valid, -1);
}

struct suite {
	GString *cases;
	u32 tests, failures;
	double seconds;
};

static void add_case(struct suite *s, const char *class, const char *name, double seconds, const char *failure)
{
	g_autofree char *c = xml(class), *n = xml(name), *f = failure ? xml(failure) : NULL;
	char time[G_ASCII_DTOSTR_BUF_SIZE];

	s->tests++;
	s->seconds += seconds;
	g_string_append_printf(s->cases, "    <testcase classname=\"%s\" name=\"%s\" time=\"%s\"", c, n, g_ascii_formatd(time, sizeof(time), "%.3f", seconds));
	if (!f) {
		g_string_append(s->cases, "/>\n");
		return;
	}
	s->failures++;
	g_string_append_printf(s->cases, ">\n      <failure message=\"%s\"/>\n    </testcase>\n", f);
}

static void end_suite(struct suite *s, const char *name, GString *to, u32 *tests, u32 *failures)
{
	g_autofree char *n = xml(name);
	char time[G_ASCII_DTOSTR_BUF_SIZE];

	g_string_append_printf(to, "  <testsuite name=\"%s\" tests=\"%u\" failures=\"%u\" time=\"%s\">\n%s  </testsuite>\n", n, s->tests, s->failures,
			       g_ascii_formatd(time, sizeof(time), "%.3f", s->seconds), s->cases->str);
	*tests += s->tests;
	*failures += s->failures;
	g_string_free(s->cases, TRUE);
}

/* A cell's measured time, all repeats. */
static double cell_seconds(JsonObject *cell)
{
	JsonObject *summary = summary_object(cell, "summary");
	double ns = summary_number(summary_object(summary, "time"), "mean", 0) * summary_number(summary, "repeats", 0);

	return isfinite(ns) && ns > 0 ? ns / 1e9 : 0;
}

static char *cell_failure(JsonObject *cell)
{
	int status = (int)CLAMP(summary_number(cell, "status", STATUS_INTERNAL), 0, 255);
	const char *why = summary_string(cell, "why", "");

	return status ? g_strdup_printf("%s%s%s", front_status_text(status), *why ? ": " : "", why) : NULL;
}

static void junit_claims(const struct report *r, const char *experiment, struct suite *suite)
{
	for (u32 i = 0; i < r->claims->len; i++) {
		const struct report_claim *c = r->claims->pdata[i];
		g_autofree char *failure = NULL;

		/* That a published figure is missed is a finding and fails nothing, as in faultbed experiment. */
		if (strcmp(c->experiment, experiment) || (strcmp(c->kind, "claim") && strcmp(c->kind, "error")))
			continue;
		if (strcmp(c->verdict, "holds"))
			failure = g_strdup_printf("%s: %s", c->verdict, c->measured);
		add_case(suite, experiment, c->text, 0, failure);
	}
}

void report_junit(const struct report *r, GString *to)
{
	g_autoptr(GPtrArray) experiments = report_experiments(r);
	g_autoptr(GString) suites = g_string_new(NULL);
	u32 tests = 0, failures = 0;

	for (u32 i = 0; i < r->results->len; i++) {
		const struct report_result *result = r->results->pdata[i];
		struct suite suite = { .cases = g_string_new(NULL) };

		for (u32 k = 0; k < json_array_get_length(result->cells); k++) {
			JsonObject *cell = json_array_get_object_element(result->cells, k);
			g_autofree char *failure = cell_failure(cell);

			add_case(&suite, result->name, summary_string(cell, "name", "?"), cell_seconds(cell), failure);
		}
		end_suite(&suite, result->name, suites, &tests, &failures);
	}
	for (u32 i = 0; i < experiments->len; i++) {
		struct suite suite = { .cases = g_string_new(NULL) };

		junit_claims(r, experiments->pdata[i], &suite);
		end_suite(&suite, experiments->pdata[i], suites, &tests, &failures);
	}
	g_string_append_printf(to, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"faultbed\" tests=\"%u\" failures=\"%u\">\n%s</testsuites>\n", tests, failures,
			       suites->str);
}
