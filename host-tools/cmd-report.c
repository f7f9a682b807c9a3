// SPDX-License-Identifier: GPL-2.0-only
/* faultbed report: results for people, and for other programs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/nearest.h"
#include "front.h"
#include "report.h"

static const char *const formats[] = { "html", "md", "csv", "junit" };
enum format { HTML, MARKDOWN, CSV, JUNIT, NR_FORMATS };

/* As it is called, or by the output's name; NR_FORMATS, reported, if it is none. */
static enum format format_of(const char *name, const char *output)
{
	static const char *const suffix[] = { ".html", ".md", ".csv", ".xml" };
	const char *near;

	for (u32 i = 0; !name && output && i < NR_FORMATS; i++)
		if (g_str_has_suffix(output, suffix[i]))
			return i;
	if (!name)
		return HTML;
	for (u32 i = 0; i < NR_FORMATS; i++)
		if (!strcmp(name, formats[i]))
			return i;
	near = nearest_name(name, (const char **)formats, NR_FORMATS);
	fb_err("--format %s: html, md, csv or junit%s%s%s", name, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
	return NR_FORMATS;
}

static int write_out(const GString *text, const char *output)
{
	g_autoptr(GError) err = NULL;

	if (!output) {
		if (fwrite(text->str, 1, text->len, stdout) == text->len && !fflush(stdout))
			return STATUS_DONE;
		fb_err("standard output: %s", g_strerror(errno));
		return STATUS_BAD_INPUT;
	}
	if (!g_file_set_contents(output, text->str, (gssize)text->len, &err)) {
		fb_err("%s", err->message);
		return STATUS_BAD_INPUT;
	}
	fb_info("wrote %s", output);
	return STATUS_DONE;
}

static int make_report(char **files, enum format format, const char *output, const char *figures)
{
	g_autoptr(GString) text = g_string_new(NULL);
	struct report r = { 0 };
	int status = STATUS_BAD_INPUT;
	bool ok = format != HTML || report_plot_there();

	if (!ok)
		return STATUS_HOST;
	for (char **f = files; ok && *f; f++)
		ok = report_add(&r, *f);
	if (ok && !r.results->len && !r.claims->len)
		fb_err("%s: there is no result in it: *.json of faultbed run -o, or summary.tsv of faultbed experiment", files[0]);
	else if (ok) {
		status = STATUS_DONE;
		if (format == HTML)
			status = report_html(&r, figures, text) ? STATUS_DONE : STATUS_INTERNAL;
		else if (format == MARKDOWN)
			report_markdown(&r, text);
		else if (format == CSV)
			report_csv(&r, text);
		else
			report_junit(&r, text);
		status = front_worse(status, write_out(text, output));
	}
	report_clear(&r);
	return status;
}

int cmd_report(int argc, char **argv)
{
	g_auto(GStrv) files = NULL;
	g_autofree char *output = NULL, *name = NULL, *figures = NULL;
	const GOptionEntry entries[] = {
		{ "output", 'o', 0, G_OPTION_ARG_FILENAME, &output, "where it goes (standard output)", "FILE" },
		{ "format", 'f', 0, G_OPTION_ARG_STRING, &name, "html, md, csv or junit (by the name of FILE; html)", "NAME" },
		{ "figures", 0, 0, G_OPTION_ARG_FILENAME, &figures, "html: each drawing as an SVG file in this folder, too", "FOLDER" },
		{ G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &files, NULL, "RESULT.json|summary.tsv|FOLDER..." },
		{ 0 }
	};
	g_autoptr(GOptionContext) context = g_option_context_new("- a page, a text, a table or a list of tests of results");
	g_autoptr(GError) err = NULL;
	enum format format;

	g_option_context_set_summary(context,
				     "A page is one file that needs nothing else: figures, their data as CSV, published beside measured figures\n"
				     "(summary.tsv of faultbed experiment). Of a folder all results in it and its folders.");
	g_option_context_add_main_entries(context, entries, NULL);
	if (!g_option_context_parse(context, &argc, &argv, &err)) {
		fb_err("%s (faultbed report --help)", err->message);
		return STATUS_BAD_INPUT;
	}
	if (!files) {
		fb_err("faultbed report takes results: files of faultbed run -o, or a folder of them, such as out/experiments");
		return STATUS_BAD_INPUT;
	}
	format = format_of(name, output);
	if (format == NR_FORMATS)
		return STATUS_BAD_INPUT;
	if (figures && (format != HTML || g_mkdir_with_parents(figures, 0777))) {
		fb_err("--figures %s: %s", figures, format != HTML ? "for html only" : g_strerror(errno));
		return STATUS_BAD_INPUT;
	}
	return make_report(files, format, output, figures);
}
