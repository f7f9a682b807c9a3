// SPDX-License-Identifier: GPL-2.0-only
/* Tables: numbers as programs and as people read them, and text that would be more than text in CSV, Markdown and HTML. */
#include <glib.h>
#include <math.h>
#include <string.h>

#include "../../host-tools/report.h"	/* vmm/ has one of this name */

/* A table of one name and one number, written by `form`; sheet_free() is done. */
static char *written(const char *name, double value, void (*form)(const struct sheet *, GString *))
{
	struct sheet *s = sheet_new("t", 1);
	GString *to = g_string_new(NULL);

	sheet_head(s, "name");
	sheet_head(s, "value");
	sheet_row(s);
	sheet_cell(s, name);
	sheet_number(s, value);
	form(s, to);
	sheet_free(s);
	return g_string_free(to, FALSE);
}

static void test_csv(void)
{
	static const struct {
		const char *name;
		double value;
		const char *row;
	} cases[] = {
		{ "plain", 3, "plain,3\r\n" },
		{ "a,b", 0.5, "\"a,b\",0.5\r\n" },
		{ "a\"b", -1, "\"a\"\"b\",-1\r\n" },
		{ "a\nb", 1e6, "\"a\nb\",1000000\r\n" },
		{ "none", NAN, "none,\r\n" },
		{ "no end", INFINITY, "no end,\r\n" },
		{ "long", 1234567.5, "long,1.23457e+06\r\n" },
	};

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autofree char *text = written(cases[i].name, cases[i].value, sheet_csv), *want = g_strdup_printf("name,value\r\n%s", cases[i].row);

		g_assert_cmpstr(text, ==, want);
	}
}

static void test_markdown(void)
{
	g_autofree char *text = written("a|b<i>\n`", 12345, sheet_markdown), *none = written("x", NAN, sheet_markdown);

	g_assert_cmpstr(text, ==, "| name | value |\n| --- | ---: |\n| a\\|b\\<i\\> \\` | 12,345 |\n");
	g_assert_nonnull(strstr(none, "| x | n/a |"));
}

static void test_html(void)
{
	g_autofree char *text = written("<script>&\"", 12345, sheet_html);

	g_assert_null(strstr(text, "<script>"));
	g_assert_nonnull(strstr(text, "<th scope=\"row\">&lt;script&gt;&amp;&quot;</th><td class=\"n\">12,345</td>"));
	g_assert_nonnull(strstr(text, "<caption>t</caption>"));
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/sheet/csv", test_csv);
	g_test_add_func("/sheet/markdown", test_markdown);
	g_test_add_func("/sheet/html", test_html);
	return g_test_run();
}
