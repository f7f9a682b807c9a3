// SPDX-License-Identifier: GPL-2.0-only
/* The lines of an experiment's check, as a table and as a file. */
#include "experiment.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>

#include "base/log.h"
#include "base/nearest.h"
#include "show.h"

/* A column wider than this pushes the others of its line only. */
#define MAX_WIDTH	72

static const char *const kinds[] = {
	[EXPERIMENT_ROW] = "row",
	[EXPERIMENT_CLAIM] = "claim",
	[EXPERIMENT_EXPECT] = "expect",
	[EXPERIMENT_NOTE] = "note",
	[EXPERIMENT_ERROR] = "error",
};
static const char holds[] = "holds";

static void line_free(void *p)
{
	struct experiment_line *l = p;

	for (u32 i = 0; i < EXPERIMENT_COLUMNS; i++)
		g_free(l->column[i]);
	g_free(l);
}

struct experiment *experiment_new(const char *name, const char *title)
{
	struct experiment *e = g_new0(struct experiment, 1);

	e->name = g_strdup(name);
	e->title = g_strdup(title);
	e->lines = g_ptr_array_new_with_free_func(line_free);
	return e;
}

void experiment_free(struct experiment *e)
{
	g_free(e->name);
	g_free(e->title);
	g_ptr_array_unref(e->lines);
	g_free(e);
}

/* -1 if there is none of this name. */
static int find_kind(const char *name)
{
	for (u32 i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!strcmp(name, kinds[i]))
			return (int)i;
	return -1;
}

char *experiment_line(struct experiment *e, const char *line)
{
	g_auto(GStrv) column = g_strsplit(line, "\t", -1);
	u32 nr = g_strv_length(column);
	struct experiment_line *l;
	int kind;

	if (nr != EXPERIMENT_COLUMNS)
		return g_strdup_printf("%u column%s where %u belong: \"%s\"", nr, nr == 1 ? "" : "s",
				       EXPERIMENT_COLUMNS, line);
	kind = find_kind(column[0]);
	if (kind < 0) {
		const char *near = nearest_name(column[0], kinds, ARRAY_SIZE(kinds));

		return g_strdup_printf("no kind of line is called \"%s\"%s%s", column[0],
				       near ? "; the nearest is " : "", near ? near : "");
	}
	if (kind == EXPERIMENT_CLAIM) {
		e->claims++;
		e->broken += strcmp(column[4], holds) != 0;
	}
	if (kind == EXPERIMENT_EXPECT) {
		e->expected++;
		e->missed += strcmp(column[4], holds) != 0;
	}
	l = g_new0(struct experiment_line, 1);
	l->kind = kind;
	for (u32 i = 0; i < EXPERIMENT_COLUMNS; i++)
		l->column[i] = g_steal_pointer(&column[i]);
	g_ptr_array_add(e->lines, l);
	return NULL;
}

/* Columns of a terminal, more or less: characters, not bytes. */
static u32 text_width(const char *text)
{
	glong n = g_utf8_validate(text, -1, NULL) ? g_utf8_strlen(text, -1) : (glong)strlen(text);

	return (u32)n;
}

static void pad(FILE *to, u32 have, u32 want)
{
	fprintf(to, "%*s", have < want ? (int)(want - have) : 0, "");
}

/* Right-aligned for figures, which then stand digit below digit. */
static void put(FILE *to, const char *text, u32 width, bool right)
{
	u32 have = text_width(text);

	if (right)
		pad(to, have, width);
	show_text(to, text);
	if (!right)
		pad(to, have, width);
}

static void table_rows(FILE *to, const struct experiment *e)
{
	static const char *const heads[] = { "", "published", "measured" };
	u32 width[3] = { 0, 9, 8 }, rows = 0;

	for (u32 i = 0; i < e->lines->len; i++) {
		const struct experiment_line *l = e->lines->pdata[i];

		if (l->kind != EXPERIMENT_ROW)
			continue;
		rows++;
		for (u32 c = 0; c < 3; c++)
			width[c] = MAX(width[c], MIN(text_width(l->column[c + 1]), MAX_WIDTH));
	}
	if (!rows)
		return;
	fprintf(to, " %*s  %*s  %*s\n", (int)width[0], heads[0], (int)width[1], heads[1], (int)width[2], heads[2]);
	for (u32 i = 0; i < e->lines->len; i++) {
		const struct experiment_line *l = e->lines->pdata[i];

		if (l->kind != EXPERIMENT_ROW)
			continue;
		fputc(' ', to);
		for (u32 c = 0; c < 3; c++) {
			put(to, l->column[c + 1], width[c], c > 0);
			if (c < 2)
				fputs("  ", to);
		}
		if (*l->column[4]) {
			fputs("  ", to);
			show_text(to, l->column[4]);
		}
		fputc('\n', to);
	}
	fputc('\n', to);
}

static void table_claims(FILE *to, const struct experiment *e)
{
	for (u32 i = 0; i < e->lines->len; i++) {
		const struct experiment_line *l = e->lines->pdata[i];

		if (l->kind == EXPERIMENT_ROW)
			continue;
		if (l->kind == EXPERIMENT_NOTE)
			fputs(" note           ", to);
		else if (l->kind == EXPERIMENT_ERROR)
			fputs(" CHECK FAILED   ", to);
		else if (l->kind == EXPERIMENT_EXPECT)
			fputs(strcmp(l->column[4], holds) ? " MISS           " : " as published   ", to);
		else
			fputs(strcmp(l->column[4], holds) ? " DOES NOT HOLD  " : " holds          ", to);
		show_text(to, l->column[1]);
		if (*l->column[3]) {
			fputs(" (", to);
			show_text(to, l->column[3]);
			fputc(')', to);
		}
		fputc('\n', to);
	}
}

void experiment_table(FILE *to, const struct experiment *e)
{
	fputs("\n ", to);
	show_text(to, e->name);
	if (*e->title) {
		fputs(": ", to);
		show_text(to, e->title);
	}
	fputs("\n\n", to);
	table_rows(to, e);
	table_claims(to, e);
}

int experiment_write(const char *path, GPtrArray *experiments)
{
	FILE *f = g_fopen(path, "w");
	bool bad;

	if (!f) {
		int err = errno;

		fb_err("%s: %s", path, g_strerror(err));
		return -err;
	}
	fputs("experiment\tkind\ttext\tpublished\tmeasured\tverdict\n", f);
	for (u32 i = 0; i < experiments->len; i++) {
		const struct experiment *e = experiments->pdata[i];

		for (u32 n = 0; n < e->lines->len; n++) {
			const struct experiment_line *l = e->lines->pdata[n];

			fputs(e->name, f);
			for (u32 c = 0; c < EXPERIMENT_COLUMNS; c++)
				fprintf(f, "\t%s", l->column[c]);
			fputc('\n', f);
		}
	}
	bad = ferror(f);
	if (fclose(f) || bad) {
		fb_err("%s: cannot be written", path);
		return -EIO;
	}
	return 0;
}
