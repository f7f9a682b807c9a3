// SPDX-License-Identifier: GPL-2.0-only
/* What a guest may report: right values come through exactly, everything else not at all. */
#include "report.h"

static void test_integers(void)
{
	static const struct { const char *text; gint64 value; } good[] = {
		{ "0", 0 }, { "42", 42 }, { "-7", -7 }, { "9223372036854775807", G_MAXINT64 },
	};
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(good); i++) {
		JsonNode *n = report_value(good[i].text);

		g_assert_nonnull(n);
		g_assert_cmpint(json_node_get_value_type(n), ==, G_TYPE_INT64);
		g_assert_cmpint(json_node_get_int(n), ==, good[i].value);
		json_node_free(n);
	}
}

static void test_numbers(void)
{
	static const struct { const char *text; double value; } good[] = {
		{ "1.5", 1.5 }, { "1E3", 1000 }, { "-2.5e-3", -0.0025 },
	};
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(good); i++) {
		JsonNode *n = report_value(good[i].text);

		g_assert_nonnull(n);
		g_assert_cmpfloat(json_node_get_double(n), ==, good[i].value);
		json_node_free(n);
	}
}

/* 1e999 once became "inf" in a record, which is no JSON, and the repeat was lost with it. */
static void test_refused(void)
{
	static const char *const bad[] = {
		"", "-", "+", ".", "e", "nan", "inf", "1e999", "-1e999", "0x10", "12a", "1.2.3", "1 2",
		"99999999999999999999", "--1",
	};
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(bad); i++)
		g_assert_null(report_value(bad[i]));
}

static void test_names(void)
{
	char *longest = g_strnfill(64, 'a'), *longer = g_strnfill(65, 'a');

	g_assert_true(report_name_ok("faults_per_s"));
	g_assert_true(report_name_ok("ipi.0-1"));
	g_assert_true(report_name_ok(longest));
	g_assert_false(report_name_ok(longer));
	g_assert_false(report_name_ok(""));
	g_assert_false(report_name_ok("a b"));
	g_assert_false(report_name_ok("\033[31m"));
	g_assert_false(report_name_ok("\303\244"));
	g_free(longest);
	g_free(longer);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/report/integers", test_integers);
	g_test_add_func("/report/numbers", test_numbers);
	g_test_add_func("/report/refused", test_refused);
	g_test_add_func("/report/names", test_names);
	return g_test_run();
}
