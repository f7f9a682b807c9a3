// SPDX-License-Identifier: GPL-2.0-only
/* A report as one page: nothing in it is fetched from anywhere, and no script runs. */
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "base/version.h"
#include "front.h"
#include "report.h"
#include "summary.h"

/* A plot of more lines or bars than this tells nothing. */
#define MAX_SERIES	8u
#define MAX_BARS	48u
#define MAX_HEAT_NODES	16u
/* Of an experiment; the rest is in its table. */
#define MAX_CURVES	12u
#define MAX_POINTS	32u

/*
 * Of a page, and of each drawing that is a file by itself. After Okabe and Ito's set for all kinds of sight, darker on white and lighter on black, so that each has a contrast of 3 or
 * more to the page (WCAG 2.1, 1.4.11).
 */
static const char colours[] =
	":root{color-scheme:light dark;--page:#fff;--text:#1a1c1e;--soft:#51585f;--line:#c9ced3;--panel:#f5f6f7;--link:#0b57a8;--good:#1b6e3b;--bad:#a8321e;"
	"--s1:#0072b2;--s2:#c04f00;--s3:#007a5a;--s4:#a64d86;--s5:#8a6d00;--s6:#3b7fb8;--s7:#5f6368;--s8:#7a4fd0;--heat:0,114,178}\n"
	"@media(prefers-color-scheme:dark){:root{--page:#14171a;--text:#e8eaed;--soft:#a9b1b9;--line:#444b52;--panel:#1d2125;--link:#8ab9f1;--good:#7fd39b;--bad:#f2a08f;"
	"--s1:#56b4e9;--s2:#ff9a4d;--s3:#3ecf9f;--s4:#e29bc6;--s5:#f0e442;--s6:#a3c9f0;--s7:#b4bac0;--s8:#b9a1f5;--heat:86,180,233}}\n";

static const char style[] =
	"*{box-sizing:border-box}body{margin:0;background:var(--page);color:var(--text);font:16px/1.5 system-ui,sans-serif}\n"
	"main,header,nav,footer{max-width:64rem;margin:0 auto;padding:0 1rem}header{padding-top:1.5rem}h1{font-size:1.8rem;line-height:1.2;margin:.2rem 0 .6rem}\n"
	"h2{font-size:1.35rem;margin:2.5rem 0 .5rem;border-top:1px solid var(--line);padding-top:1.2rem;overflow-wrap:anywhere}h3{font-size:1.05rem;margin:1.6rem 0 .4rem}\n"
	"a{color:var(--link)}a:focus-visible,summary:focus-visible,.scroll:focus-visible{outline:3px solid var(--link);outline-offset:2px}\n"
	".skip{position:absolute;left:-99rem}.skip:focus{left:1rem;top:.5rem;background:var(--panel);padding:.5rem}\n"
	"nav ul{columns:16rem;padding-left:1.2rem;margin:.4rem 0}.question{color:var(--soft);margin:.2rem 0 .8rem;max-width:48rem}\n"
	"dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1rem;background:var(--panel);padding:.8rem 1rem;border-radius:6px;margin:.8rem 0}dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}\n"
	".headline{font-size:1.15rem;margin:.6rem 0}.headline b{font-size:1.5rem;font-variant-numeric:tabular-nums}\n"
	".scroll{overflow-x:auto;margin:.6rem 0}table{border-collapse:collapse;font-size:.9rem;min-width:24rem}caption{text-align:left;font-weight:600;padding:.3rem 0}\n"
	"th,td{padding:.28rem .7rem .28rem 0;text-align:left;border-bottom:1px solid var(--line);vertical-align:top}thead th{color:var(--soft);font-weight:600}tbody th{font-weight:400}\n"
	".n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}figure{margin:1rem 0}figure svg{width:100%;height:auto;max-width:820px;display:block}figcaption{font-weight:600}\n"
	"details{margin:.4rem 0}summary{cursor:pointer;color:var(--link)}.heat td{text-align:center;padding:.5rem .8rem;border:1px solid var(--line)}.tools{font-size:.9rem;color:var(--soft)}\n"
	".good{color:var(--good)}.bad{color:var(--bad)}.warn{border-left:4px solid var(--bad);padding:.3rem .8rem;background:var(--panel)}footer{padding:2rem 1rem;color:var(--soft);font-size:.9rem}\n"
	"@media(max-width:40rem){dl{grid-template-columns:1fr;gap:0}dd{margin:0 0 .4rem}figure svg{min-width:560px}figure .scroll{margin:0}}\n"
	"@media print{nav,.tools,.skip{display:none}}\n";

struct page {
	GString *to;
	u32 figures;		/* for their ids */
	const char *within;	/* the result or experiment that is being written */
	const char *folder;	/* where each drawing goes as a file, too; NULL = nowhere */
	bool failed;
};

__attribute__((format(printf, 2, 3))) static void put(struct page *p, const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	text = g_markup_vprintf_escaped(fmt, ap);
	va_end(ap);
	g_string_append(p->to, text);
	g_free(text);
}

static void raw(struct page *p, const char *text)
{
	g_string_append(p->to, text);
}

/* The data behind something: to read here, and as a file. */
static void put_data(struct page *p, const struct sheet *s, const char *file)
{
	g_autoptr(GString) csv = g_string_new(NULL);
	g_autofree char *uri = NULL;

	sheet_csv(s, csv);
	uri = g_uri_escape_string(csv->str, NULL, FALSE);
	raw(p, "<details><summary>Data</summary>\n");
	put(p, "<p class=\"tools\"><a download=\"%s.csv\" href=\"data:text/csv;charset=utf-8,%s\">Save as CSV (%s)</a></p>\n", file, uri, file);
	sheet_html(s, p->to);
	raw(p, "</details>\n");
}

/* A table that is a figure by itself, with its CSV. */
static void put_sheet(struct page *p, const struct sheet *s, const char *file)
{
	g_autoptr(GString) csv = g_string_new(NULL);
	g_autofree char *uri = NULL;

	sheet_csv(s, csv);
	uri = g_uri_escape_string(csv->str, NULL, FALSE);
	sheet_html(s, p->to);
	put(p, "<p class=\"tools\"><a download=\"%s.csv\" href=\"data:text/csv;charset=utf-8,%s\">Save as CSV (%s)</a></p>\n", file, uri, file);
}

/* "i-mmap: faults of each cell" as a file's name. g_free(). */
static char *file_name(const char *within, const char *caption)
{
	GString *name = g_string_new(NULL);
	g_autofree char *all = g_strdup_printf("%s-%s", within, caption);

	for (const char *c = all; *c; c++)
		if (g_ascii_isalnum(*c) || *c == '.')
			g_string_append_c(name, g_ascii_tolower(*c));
		else if (name->len && name->str[name->len - 1] != '-')
			g_string_append_c(name, '-');
	return g_string_free(name, FALSE);
}

/* A drawing by itself, with the page's colours in it. */
static void write_drawing(struct page *p, const char *svg, const char *caption)
{
	g_autofree char *name = file_name(p->within, caption), *path = NULL, *text = NULL;
	g_autoptr(GError) err = NULL;
	const char *inside = strchr(svg, '>');

	name = (char *)g_realloc(name, strlen(name) + sizeof(".svg"));
	strcat(name, ".svg");
	path = g_build_filename(p->folder, name, NULL);
	text = g_strdup_printf("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n%.*s><style>%s</style>%s\n", (int)(inside - svg), svg, colours, inside + 1);
	if (!g_file_set_contents(path, text, -1, &err)) {
		fb_err("%s", err->message);
		p->failed = true;
	}
}

static void put_plot(struct page *p, struct plot plot, const char *caption)
{
	g_autofree char *id = g_strdup_printf("f%u", ++p->figures), *svg = NULL;

	plot.id = id;
	plot.title = caption;
	svg = report_plot(&plot);
	if (!svg) {
		p->failed = true;
		return;
	}
	if (p->folder)
		write_drawing(p, svg, caption);
	put(p, "<figure><figcaption>%s</figcaption>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"%s\">", caption, caption);
	raw(p, svg);
	raw(p, "</div>\n");
	put_data(p, plot.data, id);
	raw(p, "</figure>\n");
}

/* --- one result --- */

/* What is left of a cell's label without an axis; g_free(). */
static char *series_of(const struct report_result *r, const struct report_axis *x, JsonObject *cell)
{
	GString *name = g_string_new(NULL);

	for (u32 k = 0; k < r->axes->len; k++) {
		const struct report_axis *a = r->axes->pdata[k];
		int at = a == x ? -1 : report_coordinate(a, cell);

		if (at >= 0)
			g_string_append_printf(name, "%s%s", name->len ? ", " : "", (char *)a->labels->pdata[at]);
	}
	return g_string_free(name, FALSE);
}

/* The headline of each cell along an axis of numbers; NULL if there is no such axis, or too many others. */
static struct sheet *curves(const struct report_result *r, const struct report_axis **along)
{
	g_autoptr(GPtrArray) series = g_ptr_array_new_with_free_func(g_free);
	g_autofree u32 *order = NULL;
	const struct report_axis *x = NULL;
	struct sheet *s;
	u32 nr = json_array_get_length(r->cells);

	for (u32 i = 0; i < r->axes->len; i++) {
		const struct report_axis *a = r->axes->pdata[i];

		if (a->x && (!x || a->labels->len > x->labels->len))
			x = a;
	}
	if (!x || !r->headline)
		return NULL;
	for (u32 i = 0; i < nr; i++) {
		g_autofree char *name = series_of(r, x, json_array_get_object_element(r->cells, i));

		if (!g_ptr_array_find_with_equal_func(series, name, g_str_equal, NULL))
			g_ptr_array_add(series, g_steal_pointer(&name));
	}
	if (series->len > MAX_SERIES)
		return NULL;
	order = g_new(u32, x->labels->len);
	for (u32 i = 0; i < x->labels->len; i++) {
		u32 at = i;

		for (; at && x->x[order[at - 1]] > x->x[i]; at--)
			order[at] = order[at - 1];
		order[at] = i;
	}
	s = sheet_new("Headline along the axis", 1);
	sheet_head(s, x->name);
	for (u32 k = 0; k < series->len; k++) {
		const char *name = *(char *)series->pdata[k] ? series->pdata[k] : r->headline;
		g_autofree char *error = g_strdup_printf("standard error of %s", name);

		sheet_head(s, name);
		sheet_head(s, error);
	}
	for (u32 i = 0; i < x->labels->len; i++) {
		sheet_row(s);
		sheet_number(s, x->x[order[i]]);
		for (u32 k = 0; k < series->len; k++) {
			JsonObject *figure = NULL;

			for (u32 c = 0; c < nr; c++) {
				JsonObject *cell = json_array_get_object_element(r->cells, c);
				g_autofree char *name = series_of(r, x, cell);

				if (!strcmp(name, series->pdata[k]) && report_coordinate(x, cell) == (int)order[i])
					figure = report_headline(r, cell);
			}
			sheet_number(s, summary_number(figure, "mean", NAN));
			sheet_number(s, summary_number(figure, "stderr", 0));
		}
	}
	*along = x;
	return s;
}

static struct sheet *bars(const struct report_result *r)
{
	struct sheet *s = sheet_new("Headline of each cell", 1);

	sheet_head(s, "cell");
	sheet_head(s, r->headline);
	sheet_head(s, "standard error");
	for (u32 i = 0; i < json_array_get_length(r->cells); i++) {
		JsonObject *cell = json_array_get_object_element(r->cells, i), *figure = report_headline(r, cell);
		g_autofree char *label = report_label(r, cell);

		if (!figure)
			continue;
		sheet_row(s);
		sheet_cell(s, label);
		sheet_number(s, summary_number(figure, "mean", NAN));
		sheet_number(s, summary_number(figure, "stderr", 0));
	}
	return s;
}

static void put_headline_plot(struct page *p, const struct report_result *r)
{
	const struct report_axis *x = NULL;
	g_autofree char *y = r->headline ? g_strdup_printf("%s, %s", r->headline, r->unit) : NULL, *caption = NULL;
	struct sheet *s = curves(r, &x);

	if (s) {
		double least = x->x[0], most = x->x[0];

		for (u32 i = 0; i < x->labels->len; i++) {
			least = MIN(least, x->x[i]);
			most = MAX(most, x->x[i]);
		}
		caption = g_strdup_printf("%s by %s", r->headline, x->name);
		put_plot(p, (struct plot){ .kind = PLOT_LINES, .x = x->name, .y = y, .data = s, .log_x = least > 0 && most >= 8 * least }, caption);
	} else if (r->headline && json_array_get_length(r->cells) > 1 && json_array_get_length(r->cells) <= MAX_BARS) {
		s = bars(r);
		caption = g_strdup_printf("%s of each cell, with its standard error", r->headline);
		put_plot(p, (struct plot){ .kind = PLOT_BARS, .x = y, .data = s }, caption);
	}
	sheet_free(s);
}

/* A square of numbers, shaded by size; the numbers stand in it, so that the shade is not all. */
static void put_heat(struct page *p, const struct sheet *s)
{
	g_autofree char *id = g_strdup_printf("f%u", ++p->figures);
	double most = 0;

	if (s->rows->len > MAX_HEAT_NODES) {
		put_sheet(p, s, id);
		return;
	}
	for (u32 i = 0; i < s->rows->len; i++)
		for (u32 k = 1; k < s->head->len; k++) {
			const char *text = ((GPtrArray *)s->rows->pdata[i])->pdata[k];

			most = MAX(most, text ? g_ascii_strtod(text, NULL) : 0);
		}
	put(p, "<figure><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"%s\"><table class=\"heat\"><caption>%s</caption>\n<thead><tr>", s->title, s->title);
	for (u32 k = 0; k < s->head->len; k++)
		put(p, "<th scope=\"col\">%s</th>", (char *)s->head->pdata[k]);
	raw(p, "</tr></thead>\n<tbody>\n");
	for (u32 i = 0; i < s->rows->len; i++) {
		const GPtrArray *row = s->rows->pdata[i];

		put(p, "<tr><th scope=\"row\">%s</th>", (char *)row->pdata[0]);
		for (u32 k = 1; k < row->len; k++) {
			double value = row->pdata[k] ? g_ascii_strtod(row->pdata[k], NULL) : 0;
			g_autofree char *text = front_grouped(value, 0);
			char shade[G_ASCII_DTOSTR_BUF_SIZE];

			put(p, "<td style=\"background:rgba(var(--heat),%s)\">%s</td>", g_ascii_formatd(shade, sizeof(shade), "%.2f", most > 0 ? 0.5 * value / most : 0), text);
		}
		raw(p, "</tr>\n");
	}
	raw(p, "</tbody></table></div>\n");
	put_data(p, s, id);
	raw(p, "</figure>\n");
}

static void put_histogram(struct page *p, const struct report_result *r, const char *prefix, const char *caption)
{
	struct sheet *s = report_histogram(r, prefix);

	if (s && s->head->len - 1 <= MAX_SERIES) {
		g_free(s->title);
		s->title = g_strdup(caption);
		put_plot(p, (struct plot){ .kind = PLOT_HISTOGRAM, .x = "from; each bar to twice that", .y = "events", .data = s }, caption);
	}
	sheet_free(s);
}

static void put_headline(struct page *p, const struct report_result *r)
{
	u32 nr = json_array_get_length(r->cells);
	JsonObject *cell = json_array_get_object_element(r->cells, 0), *figure;
	g_autofree char *mean = NULL, *half = NULL, *least = NULL, *most = NULL;
	double low = INFINITY, high = -INFINITY;

	if (!r->headline) {
		raw(p, "<p class=\"headline\">No cell has a headline: n/a.</p>\n");
		return;
	}
	for (u32 i = 0; i < nr; i++) {
		double value = summary_number(report_headline(r, json_array_get_object_element(r->cells, i)), "mean", NAN);

		low = isfinite(value) ? MIN(low, value) : low;
		high = isfinite(value) ? MAX(high, value) : high;
	}
	least = front_grouped(low, low < 100 ? 2 : 0);
	most = front_grouped(high, high < 100 ? 2 : 0);
	if (nr > 1) {
		put(p, "<p class=\"headline\"><b>%s</b> to <b>%s</b> %s (%s) over %u cells</p>\n", least, most, r->unit, r->headline, nr);
		return;
	}
	figure = report_headline(r, cell);
	mean = front_grouped(summary_number(figure, "mean", NAN), low < 100 ? 2 : 0);
	half = isfinite(summary_number(figure, "stderr", NAN)) ? front_grouped(summary_number(figure, "stderr", NAN), low < 100 ? 3 : 0) : NULL;
	put(p, "<p class=\"headline\"><b>%s</b>%s%s %s (%s)</p>\n", mean, half ? " ± " : "", half ? half : "", r->unit, r->headline);
}

static void put_method(struct page *p, const struct report_result *r)
{
	g_autoptr(GPtrArray) facts = report_method(r);

	raw(p, "<dl>\n");
	for (u32 i = 0; i + 1 < facts->len; i += 2)
		put(p, "<dt>%s</dt><dd>%s</dd>\n", (char *)facts->pdata[i], (char *)facts->pdata[i + 1]);
	raw(p, "</dl>\n");
}

/* Cells that ended badly, first of all: what is beside them is not the whole. */
static void put_failures(struct page *p, const struct report_result *r)
{
	for (u32 i = 0; i < json_array_get_length(r->cells); i++) {
		JsonObject *cell = json_array_get_object_element(r->cells, i);
		int status = (int)CLAMP(summary_number(cell, "status", 0), 0, 255);

		if (status)
			put(p, "<p class=\"warn\">Cell %s ended badly: %s%s%s</p>\n", summary_string(cell, "name", "?"), front_status_text(status),
			    *summary_string(cell, "why", "") ? ": " : "", summary_string(cell, "why", ""));
	}
}

static void put_result(struct page *p, const struct report_result *r)
{
	struct sheet *cells = report_cells(r), *figures = report_figures(r), *time = report_time(r), *lines = report_lines(r), *ipis = report_ipis(r),
		     *nodes = report_nodes(r);
	g_auto(GStrv) question = g_strsplit(summary_string(r->root, "question", ""), "\n\n", 2);

	p->within = r->name;
	put(p, "<section aria-labelledby=\"%s\"><h2 id=\"%s\">%s</h2>\n<p class=\"question\">%s</p>\n", r->id, r->id, r->name, question[0] ? question[0] : "");
	put_headline(p, r);
	put_failures(p, r);
	put_method(p, r);
	raw(p, "<h3>Cells</h3>\n");
	put_sheet(p, cells, r->id);
	put_headline_plot(p, r);
	if (time && time->rows->len && time->rows->len <= MAX_BARS) {
		raw(p, "<h3>Where time went</h3>\n");
		put_plot(p, (struct plot){ .kind = PLOT_STACKED, .x = "percent of all vCPUs' time", .data = time }, time->title);
	}
	if (lines) {
		g_autofree char *file = g_strdup_printf("%s-lines", r->id);

		raw(p, "<h3>Contended lines</h3>\n");
		put_sheet(p, lines, file);
	}
	if (nodes || ipis)
		raw(p, "<h3>Nodes</h3>\n");
	if (nodes)
		put_heat(p, nodes);
	if (ipis)
		put_heat(p, ipis);
	put_histogram(p, r, "injected_", "Injected delays, all cells together");
	put_histogram(p, r, "ipi_latency_ns", "Latency of IPIs, all cells together");
	raw(p, "<details><summary>All figures</summary>\n");
	put_sheet(p, figures, "figures");
	raw(p, "</details></section>\n");
	sheet_free(cells);
	sheet_free(figures);
	sheet_free(time);
	sheet_free(lines);
	sheet_free(ipis);
	sheet_free(nodes);
}

/* --- experiments --- */

/* The one number of a text, NAN if there is none or more. An error behind it is left out. */
static double one_number(const char *text)
{
	char *end;
	double value = g_ascii_strtod(text, &end);

	return end != text && (!*end || g_str_has_prefix(end, "±") || g_str_has_prefix(end, " ±")) ? value : NAN;
}

/* Measured as a part of published, of rows with one number each. NULL if there are not two. */
static struct sheet *ratios(const struct report *r, const char *experiment)
{
	struct sheet *s = sheet_new("Measured over published", 1);

	sheet_head(s, "quantity");
	sheet_head(s, "measured over published");
	sheet_head(s, "error");
	for (u32 i = 0; i < r->claims->len && s->rows->len < MAX_BARS; i++) {
		const struct report_claim *c = r->claims->pdata[i];
		double published = one_number(c->published), measured = one_number(c->measured);

		if (strcmp(c->experiment, experiment) || strcmp(c->kind, "row") || !(published > 0) || !(measured >= 0))
			continue;
		sheet_row(s);
		sheet_cell(s, c->text);
		sheet_number(s, round(1000 * measured / published) / 1000);
		sheet_number(s, 0);
	}
	if (s->rows->len > 1)
		return s;
	sheet_free(s);
	return NULL;
}

/* "1.00 0.89±0.02 ..." as numbers and their errors; how many, 0 if anything else is in it. */
static u32 numbers_in(const char *text, double *value, double *error, u32 max)
{
	g_auto(GStrv) word = g_strsplit(text, " ", -1);
	u32 n = 0;

	for (char **w = word; *w; w++) {
		char *end;

		if (!**w)
			continue;
		if (n == max)
			return 0;
		value[n] = g_ascii_strtod(*w, &end);
		error[n] = g_str_has_prefix(end, "±") ? g_ascii_strtod(end + strlen("±"), &end) : 0;
		if (end == *w || *end)
			return 0;
		n++;
	}
	return n;
}

/* The numbers that a remark ends with, "at orders -1 1 3", if they are `n`. */
static bool numbers_at_end(const char *text, double *x, u32 n)
{
	g_auto(GStrv) word = g_strsplit(text, " ", -1);
	u32 words = g_strv_length(word);

	if (words < n || n < 2)
		return false;
	for (u32 i = 0; i < n; i++) {
		char *end;

		x[i] = g_ascii_strtod(word[words - n + i], &end);
		if (end == word[words - n + i] || *end || (i && x[i] <= x[i - 1]))
			return false;
	}
	return true;
}

/* Rows that are curves: published and measured as lines, where their numbers are as many and the remark says at what. */
static void put_curves(struct page *p, const struct report *r, const char *experiment)
{
	double published[MAX_POINTS], measured[MAX_POINTS], error[MAX_POINTS], x[MAX_POINTS];
	u32 drawn = 0;

	for (u32 i = 0; i < r->claims->len && drawn < MAX_CURVES; i++) {
		const struct report_claim *c = r->claims->pdata[i];
		u32 n = strcmp(c->experiment, experiment) || strcmp(c->kind, "row") ? 0 : numbers_in(c->published, published, error, MAX_POINTS);
		struct sheet *s;

		if (n < 3 || numbers_in(c->measured, measured, error, MAX_POINTS) != n || !numbers_at_end(c->verdict, x, n))
			continue;
		s = sheet_new(c->text, 1);
		sheet_head(s, c->verdict);
		sheet_head(s, "published");
		sheet_head(s, "no error was published");
		sheet_head(s, "measured");
		sheet_head(s, "standard error of measured");
		for (u32 k = 0; k < n; k++) {
			sheet_row(s);
			sheet_number(s, x[k]);
			sheet_number(s, published[k]);
			sheet_number(s, 0);
			sheet_number(s, measured[k]);
			sheet_number(s, error[k]);
		}
		put_plot(p, (struct plot){ .kind = PLOT_LINES, .x = c->verdict, .y = "", .data = s }, c->text);
		sheet_free(s);
		drawn++;
	}
}

static void put_experiment(struct page *p, const struct report *r, const char *name, u32 nr)
{
	struct sheet *published = report_published(r, name), *verdicts = report_verdicts(r, name), *ratio = ratios(r, name);
	g_autofree char *file = g_strdup_printf("e%u-published", nr), *other = g_strdup_printf("e%u-verdicts", nr);
	u32 claims = 0, hold = 0, expected = 0, met = 0;

	for (u32 i = 0; i < r->claims->len; i++) {
		const struct report_claim *c = r->claims->pdata[i];
		bool holds = !strcmp(c->verdict, "holds");

		if (strcmp(c->experiment, name))
			continue;
		if (!strcmp(c->kind, "claim") || !strcmp(c->kind, "error")) {
			claims++;
			hold += holds;
		} else if (!strcmp(c->kind, "expect")) {
			expected++;
			met += holds;
		}
	}
	p->within = name;
	put(p, "<section aria-labelledby=\"e%u\"><h2 id=\"e%u\">Published and measured: %s</h2>\n", nr, nr, name);
	put(p, "<p class=\"headline\"><b class=\"%s\">%u of %u</b> claims, stated in advance, hold", hold == claims ? "good" : "bad", hold, claims);
	if (expected)
		put(p, "; <b class=\"%s\">%u of %u</b> figures are as published", met == expected ? "good" : "bad", met, expected);
	raw(p, "</p>\n");
	if (ratio)
		put_plot(p, (struct plot){ .kind = PLOT_BARS, .x = "measured over published: 1 is as published", .data = ratio }, ratio->title);
	put_curves(p, r, name);
	if (published->rows->len)
		put_sheet(p, published, file);
	if (verdicts->rows->len)
		put_sheet(p, verdicts, other);
	for (u32 i = 0; i < r->claims->len; i++) {
		const struct report_claim *c = r->claims->pdata[i];

		if (!strcmp(c->experiment, name) && !strcmp(c->kind, "note"))
			put(p, "<p>%s</p>\n", c->text);
	}
	raw(p, "</section>\n");
	sheet_free(published);
	sheet_free(verdicts);
	sheet_free(ratio);
}

/* --- the page --- */

bool report_html(const struct report *r, const char *folder, GString *to)
{
	struct page p = { .to = to, .folder = folder };
	g_autoptr(GPtrArray) experiments = report_experiments(r);
	struct sheet *overview = report_overview(r);
	const char *title = r->results->len == 1 && !experiments->len ? ((struct report_result *)r->results->pdata[0])->name : "Faultbed results";

	put(&p, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>%s</title>\n<style>", title);
	raw(&p, colours);
	raw(&p, style);
	put(&p, "</style></head>\n<body><a class=\"skip\" href=\"#content\">Skip to the results</a>\n<header><h1>%s</h1>\n"
	    "<p>Guest page-fault and TLB behaviour, measured by Faultbed. What could not be observed is n/a, never 0.</p></header>\n", title);
	if (r->results->len + experiments->len > 1) {
		raw(&p, "<nav aria-label=\"Contents\"><ul>\n");
		for (u32 i = 0; i < experiments->len; i++)
			put(&p, "<li><a href=\"#e%u\">Published and measured: %s</a></li>\n", i + 1, (char *)experiments->pdata[i]);
		for (u32 i = 0; i < r->results->len; i++)
			put(&p, "<li><a href=\"#%s\">%s</a></li>\n", ((struct report_result *)r->results->pdata[i])->id, ((struct report_result *)r->results->pdata[i])->name);
		raw(&p, "</ul></nav>\n");
	}
	raw(&p, "<main id=\"content\">\n");
	if (r->results->len > 1) {
		raw(&p, "<section aria-labelledby=\"overview\"><h2 id=\"overview\">Overview</h2>\n");
		put_sheet(&p, overview, "overview");
		raw(&p, "</section>\n");
	}
	for (u32 i = 0; i < experiments->len; i++)
		put_experiment(&p, r, experiments->pdata[i], i + 1);
	for (u32 i = 0; i < r->results->len; i++)
		put_result(&p, r->results->pdata[i]);
	put(&p, "</main>\n<footer>Made by faultbed report, version %s. Times that are virtual are a cost model's.</footer>\n</body></html>\n", FAULTBED_VERSION);
	sheet_free(overview);
	return !p.failed;
}
