/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * faultbed report: results, and what `faultbed experiment` concluded of them, as a page, a text, a table or a list of tests. What a
 * result says is anybody's text, so nothing of it goes anywhere unescaped. Main thread only.
 */
#ifndef HOST_TOOLS_REPORT_H
#define HOST_TOOLS_REPORT_H

#include <json-glib/json-glib.h>
#include <stdio.h>

#include "base/types.h"

/* A table of text: behind each figure, and by itself. */
struct sheet {
	char *title;
	GPtrArray *head;	/* char * */
	GPtrArray *rows;	/* GPtrArray of char *, each as long as head; NULL = n/a */
	u32 labels;		/* so many columns at the left are names, the others numbers */
};

/* An axis of [vary]. */
struct report_axis {
	char *name;		/* "topology" or "fault_path, command" */
	GPtrArray *keys;	/* char *: its settings in full, "vm.topology" */
	GPtrArray *values;	/* GPtrArray of char *: a value of each key */
	GPtrArray *labels;	/* char *: a value, without those parts that only scale the run */
	double *x;		/* the number in each label, where that is what differs; NULL = there is none */
};

struct report_result {
	char *name;		/* for people, from the file's name */
	char *id;		/* for links */
	JsonNode *node;
	JsonObject *root;
	JsonArray *cells;
	const char *group, *headline;	/* group and name of the figure that decides; NULL = no cell has any */
	const char *unit;
	GPtrArray *axes;	/* struct report_axis */
};

/* A line of a summary.tsv. */
struct report_claim {
	char *experiment, *kind, *text, *published, *measured, *verdict;
};

struct report {
	GPtrArray *results;	/* struct report_result */
	GPtrArray *claims;	/* struct report_claim */
};

/* --- report-model.c --- */

/*
 * Take a result, a summary.tsv of `faultbed experiment`, or a folder: all of both in it and in its folders. false, reported, if it is none.
 */
bool report_add(struct report *r, const char *path);
void report_clear(struct report *r);
struct report_axis *report_axis_new(const char *keys, JsonArray *values);
void report_axis_free(void *axis);
/* Which of an axis' values a cell has; -1 if none. */
int report_coordinate(const struct report_axis *axis, JsonObject *cell);
/* A figure of a cell's summary; NULL if it has none. */
JsonObject *report_figure(JsonObject *cell, const char *group, const char *name);
/* The cell's headline. */
JsonObject *report_headline(const struct report_result *r, JsonObject *cell);
/* What sets a cell apart, short; g_free(). */
char *report_label(const struct report_result *r, JsonObject *cell);

/* --- sheet.c --- */

struct sheet *sheet_new(const char *title, u32 labels);
void sheet_free(struct sheet *s);
void sheet_head(struct sheet *s, const char *name);
/* A new row; cells are added to the last one. */
void sheet_row(struct sheet *s);
void sheet_cell(struct sheet *s, const char *text);
void sheet_number(struct sheet *s, double value);
/* As CSV (RFC 4180), with the head; as a table of GitHub's Markdown; as HTML's. Appended. */
void sheet_csv(const struct sheet *s, GString *to);
void sheet_markdown(const struct sheet *s, GString *to);
void sheet_html(const struct sheet *s, GString *to);

/* --- report-sheets.c: what is in a report, whatever its form; sheet_free() --- */

/* The axes, the headline and a few counters, a row a cell. */
struct sheet *report_cells(const struct report_result *r);
/* All figures that `faultbed show` lists, a row each, a column a cell. */
struct sheet *report_figures(const struct report_result *r);
/* Where the vCPUs' time went, in percent, a row a cell; NULL where time is not virtual. */
struct sheet *report_time(const struct report_result *r);
/* Who waited for which line; NULL if nothing was profiled. */
struct sheet *report_lines(const struct report_result *r);
/* Buckets of the histograms whose names begin so, a row a bucket, of all cells together; NULL if there are none. */
struct sheet *report_histogram(const struct report_result *r, const char *prefix);
/* IPIs by source and target node, of all cells' repeats together; NULL if none were seen. */
struct sheet *report_ipis(const struct report_result *r);
/* Distances of the first cell's nodes, and their CPUs. */
struct sheet *report_nodes(const struct report_result *r);
/* Published and measured figures, and claims, of one experiment. */
struct sheet *report_published(const struct report *r, const char *experiment);
struct sheet *report_verdicts(const struct report *r, const char *experiment);
/* What each result is about, one row. */
struct sheet *report_overview(const struct report *r);
/* Experiments that there are claims of; char *, owned by the report. g_ptr_array_unref(). */
GPtrArray *report_experiments(const struct report *r);
/* "soft, virtual time of ivb-ep; kernel 6.12...; 5 repeats, seeds 1 to 5": name and value in turn, g_free() each. */
GPtrArray *report_method(const struct report_result *r);

/* --- report-plot.c: gnuplot --- */

/* Is it there? Reported, with what would help. */
bool report_plot_there(void);
enum plot_kind { PLOT_LINES, PLOT_BARS, PLOT_STACKED, PLOT_HISTOGRAM };
struct plot {
	enum plot_kind kind;
	const char *id;			/* of the SVG, for its parts' */
	const char *title, *x, *y;	/* of the drawing, for those who do not see it; of the axes */
	const struct sheet *data;	/* LINES: x, then value and error of each series; BARS: label, value, error; else label, then the series */
	bool log_x;
};
/* An <svg>, whose colours follow the page's; NULL, reported, if gnuplot fails. g_free(). */
char *report_plot(const struct plot *p);

/* --- a whole report --- */

/* false, reported, if a figure could not be drawn, or not be written to `folder` (NULL: none is) as a file of its own. */
bool report_html(const struct report *r, const char *folder, GString *to);
void report_markdown(const struct report *r, GString *to);
/* Long: result, cell, group, name, unit, mean, standard error, number of values. */
void report_csv(const struct report *r, GString *to);
/* Each cell a test, and each claim. */
void report_junit(const struct report *r, GString *to);

#endif
