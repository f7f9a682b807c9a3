// SPDX-License-Identifier: GPL-2.0-only
/*
 * Plots by gnuplot, as SVG that lies in a page: its colours are replaced by the page's variables, so that they follow light and dark, and
 * the names of its parts by ones that no other has.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <gio/gio.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "report.h"

/* Colours that gnuplot is told, and that nothing else has: rgb(N, 2, 1) is the page's --sN, N from 1; rgb(9, 9, 9) its text. */
#define NR_COLOURS	8u

bool report_plot_there(void)
{
	g_autofree char *path = g_find_program_in_path("gnuplot");

	if (path)
		return true;
	fb_err("gnuplot, which draws the figures of a page, is not installed: make deps installs it (package gnuplot-nox); --format md, csv and junit do without");
	return false;
}

/* In double quotes of gnuplot's, or a field of its data: nothing that ends them, or starts anything. g_free(). */
static char *quoted(const char *text)
{
	GString *out = g_string_new("\"");

	for (; *text; text++)
		if (*text == '"')
			g_string_append_c(out, '\'');
		else if (*text == '\\' || *text == '`' || (unsigned char)*text < ' ' || *text == 0x7f)
			g_string_append_c(out, ' ');
		else
			g_string_append_c(out, *text);
	g_string_append_c(out, '"');
	return g_string_free(out, FALSE);
}

static const char *field(const struct sheet *s, u32 row, u32 column)
{
	const GPtrArray *cells = s->rows->pdata[row];

	return column < cells->len ? cells->pdata[column] : NULL;
}

static void add_data(GString *script, const struct sheet *s, u32 labels)
{
	g_string_append(script, "$data << END_OF_DATA\n");
	for (u32 i = 0; i < s->rows->len; i++) {
		for (u32 k = 0; k < s->head->len; k++) {
			const char *text = field(s, i, k);
			g_autofree char *q = k < labels ? quoted(text ? text : "") : NULL;

			g_string_append_printf(script, "%s%s", k ? "\t" : "", q ? q : text ? text : "NaN");
		}
		g_string_append_c(script, '\n');
	}
	g_string_append(script, "END_OF_DATA\n");
}

static void add_colours(GString *script)
{
	for (u32 i = 1; i <= NR_COLOURS; i++)
		g_string_append_printf(script, "set style line %u lc rgb \"#%02x0201\" lw 2 pt %u ps 0.8\n", i, i, i + 3);
}

static u32 colour(u32 series)
{
	return series % NR_COLOURS + 1;
}

/* The largest number of the data, errors among them. */
static double largest(const struct sheet *s, u32 from)
{
	double most = 0;

	for (u32 i = 0; i < s->rows->len; i++)
		for (u32 k = from; k < s->head->len; k++)
			most = MAX(most, field(s, i, k) ? fabs(g_ascii_strtod(field(s, i, k), NULL)) : 0);
	return most;
}

/* Tics of large numbers have a prefix: 1.5M. */
static const char *tic_format(const struct sheet *s, u32 from)
{
	return largest(s, from) >= 10000 ? "%.1s%c" : "%.6g";
}

/* Entries of the key stand in rows below the axis and its name, for which there has to be room: in lines of text. */
#define KEY_COLUMNS	2u
static u32 key_lines(u32 series)
{
	return series > 1 ? DIV_ROUND_UP(series, KEY_COLUMNS) : 0;
}

static void add_key(GString *script, u32 series)
{
	u32 lines = key_lines(series);

	if (!lines) {
		g_string_append(script, "unset key\nset bmargin 4\n");
		return;
	}
	g_string_append_printf(script, "set bmargin %u\nset key at screen 0.5, screen 0.01 bottom center horizontal maxcols %u samplen 1.5 spacing 1.1 width 1\n", 4 + lines + lines / 4, KEY_COLUMNS);
}

static u32 longest_label(const struct sheet *s)
{
	u32 longest = 0;

	for (u32 i = 0; i < s->rows->len; i++)
		longest = MAX(longest, (u32)g_utf8_strlen(field(s, i, 0), -1));
	return longest;
}

/* Bars lie, so that names of any length have room: a row each, the first at the top. */
static void add_rows(GString *script, const struct sheet *s)
{
	g_string_append_printf(script, "set yrange [%u:-1]\nset ytics nomirror\nset xrange [0:*]\nset lmargin %u\nset grid xtics lc rgb \"#0a0a0a\" lw 1\nset ytics scale 0\n", s->rows->len,
			       MIN(longest_label(s), 60) + 2);
}

static void plot_lines(GString *script, const struct plot *p)
{
	u32 series = (p->data->head->len - 1) / 2;

	g_string_append(script, "set yrange [0:*]\nset grid lc rgb \"#0a0a0a\" lw 1\nset xtics nomirror\nset ytics nomirror\n");
	add_key(script, series);
	if (p->log_x)
		g_string_append(script, "set logscale x 2\n");
	/* Each number that was run, and no other. */
	g_string_append(script, "set xtics (");
	for (u32 i = 0; i < p->data->rows->len; i++)
		g_string_append_printf(script, "%s%s", i ? ", " : "", field(p->data, i, 0));
	g_string_append(script, ")\nset offsets graph 0.03, graph 0.03, graph 0.05, 0\nplot ");
	for (u32 i = 0; i < series; i++) {
		g_autofree char *title = quoted(p->data->head->pdata[1 + 2 * i]);

		g_string_append_printf(script, "%s$data using 1:%u:%u with yerrorlines ls %u title %s", i ? ", " : "", 2 + 2 * i, 3 + 2 * i, colour(i), title);
	}
	g_string_append_c(script, '\n');
}

static void plot_bars(GString *script, const struct plot *p)
{
	add_rows(script, p->data);
	add_key(script, 1);
	g_string_append(script, "set style fill solid 1 noborder\nset boxwidth 0.7\n"
		"plot $data using (0):0:(0):2:($0-0.35):($0+0.35):ytic(1) with boxxyerror ls 1, "
		"$data using 2:0:($2-$3):($2+$3) with xerrorbars lc rgb \"#090909\" lw 1.5 pt 0\n");
}

static void plot_stacked(GString *script, const struct plot *p)
{
	u32 series = p->data->head->len - 1;

	add_rows(script, p->data);
	add_key(script, series);
	g_string_append(script, "set style fill solid 1 noborder\nset xrange [0:100]\nplot ");
	for (u32 i = 0; i < series; i++) {
		g_autofree char *title = quoted(p->data->head->pdata[1 + i]);
		GString *from = g_string_new("0"), *to;

		for (u32 k = 0; k < i; k++)
			g_string_append_printf(from, "+$%u", 2 + k);
		to = g_string_new(from->str);
		g_string_append_printf(to, "+$%u", 2 + i);
		/* More classes than colours: those come again with a pattern, so that none is known by its colour alone. */
		g_string_append_printf(script, "%s$data using (0):0:(%s):(%s):($0-0.35):($0+0.35)%s with boxxyerror ls %u fs %s title %s", i ? ", " : "",
				       from->str, to->str, i ? "" : ":ytic(1)", colour(i), i < NR_COLOURS ? "solid 1 noborder" : i < 2 * NR_COLOURS ? "pattern 4" : "pattern 2",
				       title);
		g_string_free(from, TRUE);
		g_string_free(to, TRUE);
	}
	g_string_append_c(script, '\n');
}

static void plot_histogram(GString *script, const struct plot *p)
{
	u32 series = p->data->head->len - 1;

	add_key(script, series);
	g_string_append(script, "set yrange [0:*]\nset style data histograms\nset style histogram clustered gap 1\nset style fill solid 1 noborder\n"
		"set grid ytics lc rgb \"#0a0a0a\" lw 1\nset xtics nomirror scale 0\nset ytics nomirror\nplot ");
	for (u32 i = 0; i < series; i++) {
		g_autofree char *title = quoted(p->data->head->pdata[1 + i]);

		g_string_append_printf(script, "%s$data using %u%s ls %u title %s", i ? ", " : "", 2 + i, i ? "" : ":xtic(1)", colour(i), title);
	}
	g_string_append_c(script, '\n');
}

static char *script_of(const struct plot *p)
{
	GString *script = g_string_new(NULL);
	g_autofree char *x = quoted(p->x ? p->x : ""), *y = quoted(p->y ? p->y : "");
	bool rows = p->kind == PLOT_BARS || p->kind == PLOT_STACKED;
	u32 series = p->kind == PLOT_LINES ? (p->data->head->len - 1) / 2 : p->kind == PLOT_BARS ? 1 : p->data->head->len - 1;
	u32 lines = key_lines(series), height = (rows ? 60 + 26 * p->data->rows->len : 290) + 19 * (4 + lines + lines / 4);

	g_string_append_printf(script,
			       "set terminal svg size 820,%u dynamic noenhanced font \"sans-serif,13\" background \"#ffffff\"\n"
			       "set encoding utf8\nset border %u lc rgb \"#0a0a0a\"\nset tics textcolor rgb \"#090909\"\nset key textcolor rgb \"#090909\"\n"
			       "set xlabel %s textcolor rgb \"#090909\"\nset ylabel %s textcolor rgb \"#090909\"\nset format x \"%s\"\nset format y \"%s\"\n",
			       height, rows ? 1 : 3, x, rows ? "\"\"" : y, rows ? tic_format(p->data, 1) : "%.6g", tic_format(p->data, 1));
	if (rows)
		g_string_append(script, "set format y \"%s\"\n");
	add_colours(script);
	add_data(script, p->data, p->kind == PLOT_LINES ? 0 : 1);
	if (p->kind == PLOT_LINES)
		plot_lines(script, p);
	else if (p->kind == PLOT_BARS)
		plot_bars(script, p);
	else if (p->kind == PLOT_STACKED)
		plot_stacked(script, p);
	else
		plot_histogram(script, p);
	return g_string_free(script, FALSE);
}

static char *replaced(char *text, const char *pattern, const char *with)
{
	g_autoptr(GRegex) regex = g_regex_new(pattern, G_REGEX_OPTIMIZE, 0, NULL);
	char *out = g_regex_replace(regex, text, -1, 0, with, 0, NULL);

	g_free(text);
	return out;
}

/* From a drawing by itself to one that lies in a page. NULL if it is no SVG. */
static char *for_page(char *svg, const struct plot *p)
{
	g_autofree char *title = g_markup_escape_text(p->title, -1), *ids = g_strdup_printf("\\1%s-", p->id);
	char *start = strstr(svg, "<svg"), *end = strstr(svg, "</svg>"), *text, *body;

	if (!start || !end)
		return NULL;
	text = g_strndup(start, (gsize)(end - start) + strlen("</svg>"));
	text = replaced(text, "rgb\\( *([1-8]), *2, *1\\)", "var(--s\\1)");
	text = replaced(text, "rgb\\( *9, *9, *9\\)|rgb\\( *0, *0, *0\\)|\\bblack\\b", "var(--text)");
	text = replaced(text, "rgb\\( *10, *10, *10\\)|rgb\\( *255, *255, *255\\)", "var(--line)");
	text = replaced(text, "<rect [^>]*fill *= *['\"](?:#ffffff|var\\(--line\\))['\"][^>]*/>", "");
	text = replaced(text, "<title>[^<]*</title>", "");
	text = replaced(text, "<desc>[^<]*</desc>", "");
	text = replaced(text, "( (?:id|xlink:href) *= *['\"]#?)", ids);
	text = replaced(text, "(url\\(#)", ids);
	text = replaced(text, "[ \\t]*\\n[ \\t\\n]*", "\n");
	body = strchr(text, '>');
	if (!body) {
		g_free(text);
		return NULL;
	}
	/* Its own attributes hold size and view; that it is one picture, and of what, is for those who do not see it. */
	*body++ = '\0';
	start = g_strdup_printf("%s role=\"img\" aria-labelledby=\"%s-t\"><title id=\"%s-t\">%s</title>%s", text, p->id, p->id, title, body);
	g_free(text);
	return start;
}

/* A script in memory, to be read from its start; -1 with errno. In a pipe it would be lost on a gnuplot that ends before it reads, and SIGPIPE would end this program. */
static int script_fd(const struct plot *p)
{
	g_autofree char *script = script_of(p);
	int fd = memfd_create("gnuplot", MFD_CLOEXEC);
	size_t len = strlen(script), at = 0;

	while (fd >= 0 && at < len) {
		ssize_t n = write(fd, script + at, len - at);

		if (n < 0) {
			close(fd);
			return -1;
		}
		at += (size_t)n;
	}
	if (fd >= 0)
		lseek(fd, 0, SEEK_SET);
	return fd;
}

char *report_plot(const struct plot *p)
{
	g_autoptr(GSubprocessLauncher) launcher = g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_PIPE);
	g_autofree char *out = NULL, *said = NULL;
	g_autoptr(GSubprocess) gnuplot = NULL;
	g_autoptr(GError) err = NULL;
	int fd = script_fd(p);
	char *svg;

	if (fd < 0) {
		fb_err("gnuplot's script: %s", g_strerror(errno));
		return NULL;
	}
	g_subprocess_launcher_take_stdin_fd(launcher, fd);
	gnuplot = g_subprocess_launcher_spawn(launcher, &err, "gnuplot", "-d", "-", NULL);
	if (!gnuplot || !g_subprocess_communicate_utf8(gnuplot, NULL, NULL, &out, &said, &err)) {
		fb_err("gnuplot: %s", err->message);
		return NULL;
	}
	svg = out && g_subprocess_get_successful(gnuplot) ? for_page(out, p) : NULL;
	if (!svg)
		fb_err("gnuplot could not draw \"%s\": %s", p->title, said && *said ? said : "it drew nothing");
	return svg;
}
