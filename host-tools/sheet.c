// SPDX-License-Identifier: GPL-2.0-only
/* Tables of text, and the forms that they are written in. */
#include <math.h>
#include <string.h>

#include "front.h"
#include "report.h"

#define MISSING	"n/a"

static void free_row(void *row)
{
	g_ptr_array_unref(row);
}

struct sheet *sheet_new(const char *title, u32 labels)
{
	struct sheet *s = g_new0(struct sheet, 1);

	s->title = g_strdup(title);
	s->head = g_ptr_array_new_with_free_func(g_free);
	s->rows = g_ptr_array_new_with_free_func(free_row);
	s->labels = labels;
	return s;
}

void sheet_free(struct sheet *s)
{
	if (!s)
		return;
	g_free(s->title);
	g_ptr_array_unref(s->head);
	g_ptr_array_unref(s->rows);
	g_free(s);
}

void sheet_head(struct sheet *s, const char *name)
{
	g_ptr_array_add(s->head, g_strdup(name));
}

void sheet_row(struct sheet *s)
{
	g_ptr_array_add(s->rows, g_ptr_array_new_with_free_func(g_free));
}

void sheet_cell(struct sheet *s, const char *text)
{
	g_ptr_array_add(s->rows->pdata[s->rows->len - 1], g_strdup(text));
}

/* With as many digits as a reader, or a program, can use. */
void sheet_number(struct sheet *s, double value)
{
	char text[G_ASCII_DTOSTR_BUF_SIZE];

	if (!isfinite(value)) {
		sheet_cell(s, NULL);
		return;
	}
	g_ascii_formatd(text, sizeof(text), value == floor(value) && fabs(value) < 1e15 ? "%.0f" : "%.6g", value);
	sheet_cell(s, text);
}

/* --- CSV --- */

static void csv_row(const GPtrArray *row, GString *to)
{
	for (u32 i = 0; i < row->len; i++) {
		const char *text = row->pdata[i] ? row->pdata[i] : "";

		if (i)
			g_string_append_c(to, ',');
		if (!strpbrk(text, ",\"\r\n")) {
			g_string_append(to, text);
			continue;
		}
		g_string_append_c(to, '"');
		for (; *text; text++) {
			if (*text == '"')
				g_string_append_c(to, '"');
			g_string_append_c(to, *text);
		}
		g_string_append_c(to, '"');
	}
	g_string_append(to, "\r\n");
}

void sheet_csv(const struct sheet *s, GString *to)
{
	csv_row(s->head, to);
	for (u32 i = 0; i < s->rows->len; i++)
		csv_row(s->rows->pdata[i], to);
}

/* --- for people --- */

/* A number in groups of three digits; other text as it is. g_free(). */
static char *for_people(const char *text)
{
	char *end;
	double value;

	if (!text)
		return g_strdup(MISSING);
	value = g_ascii_strtod(text, &end);
	if (!*text || *end || !g_ascii_isdigit(text[strlen(text) - 1]) || !isfinite(value) || fabs(value) < 1000)
		return g_strdup(text);
	return front_grouped(value, 0);
}

static void markdown_row(const GPtrArray *row, GString *to)
{
	g_string_append_c(to, '|');
	for (u32 i = 0; i < row->len; i++) {
		g_autofree char *text = for_people(row->pdata[i]);

		g_string_append_c(to, ' ');
		for (const char *c = text; *c; c++) {
			/* What Markdown or the HTML in it would read. */
			if (strchr("|\\`*_<>[]&#~", *c))
				g_string_append_c(to, '\\');
			g_string_append_c(to, *c == '\n' ? ' ' : *c);
		}
		g_string_append(to, " |");
	}
	g_string_append_c(to, '\n');
}

void sheet_markdown(const struct sheet *s, GString *to)
{
	markdown_row(s->head, to);
	g_string_append_c(to, '|');
	for (u32 i = 0; i < s->head->len; i++)
		g_string_append(to, i < s->labels ? " --- |" : " ---: |");
	g_string_append_c(to, '\n');
	for (u32 i = 0; i < s->rows->len; i++)
		markdown_row(s->rows->pdata[i], to);
}

static void html_cell(GString *to, const char *tag, const char *attributes, const char *text)
{
	g_autofree char *escaped = g_markup_escape_text(text, -1);

	g_string_append_printf(to, "<%s%s>%s</%s>", tag, attributes, escaped, tag);
}

void sheet_html(const struct sheet *s, GString *to)
{
	g_autofree char *title = g_markup_escape_text(s->title, -1);

	/* Wider than a phone, it is scrolled by itself, with keys too. */
	g_string_append_printf(to, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"%s\"><table><caption>%s</caption>\n<thead><tr>",
			       title, title);
	for (u32 i = 0; i < s->head->len; i++)
		html_cell(to, "th", i < s->labels ? " scope=\"col\"" : " scope=\"col\" class=\"n\"", s->head->pdata[i]);
	g_string_append(to, "</tr></thead>\n<tbody>\n");
	for (u32 i = 0; i < s->rows->len; i++) {
		const GPtrArray *row = s->rows->pdata[i];

		g_string_append(to, "<tr>");
		for (u32 k = 0; k < row->len; k++) {
			g_autofree char *text = for_people(row->pdata[k]);

			html_cell(to, k < MIN(s->labels, 1) ? "th" : "td", k < MIN(s->labels, 1) ? " scope=\"row\"" : k < s->labels ? "" : " class=\"n\"", text);
		}
		g_string_append(to, "</tr>\n");
	}
	g_string_append(to, "</tbody></table></div>\n");
}
