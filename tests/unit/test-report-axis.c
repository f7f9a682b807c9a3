// SPDX-License-Identifier: GPL-2.0-only
/* Axes of [vary]: which can be an axis of numbers, at what numbers, and where a cell is on it. */
#include <glib.h>

#include "../../host-tools/report.h"	/* vmm/ has one of this name */

static struct report_axis *axis(const char *keys, const char *json)
{
	g_autoptr(JsonNode) node = json_from_string(json, NULL);

	g_assert_nonnull(node);
	return report_axis_new(keys, json_node_get_array(node));
}

static void test_numbers(void)
{
	static const struct {
		const char *keys, *values;
		u32 n;		/* 0: no numbers */
		double x[3];
	} cases[] = {
		{ "vm.topology", "[\"2x10x2\", \"4x15x2\", \"1x4x1\"]", 3, { 40, 120, 4 } },
		{ "run.command", "[\"f 1 --pages 64\", \"f 2 --pages 64\", \"f 8 --pages 64\"]", 3, { 1, 2, 8 } },
		/* Not the first number, which is the same in all. */
		{ "run.command", "[\"f 4 --order 0\", \"f 4 --order 3\", \"f 4 --order 9\"]", 3, { 0, 3, 9 } },
		/* A word differs. */
		{ "run.command", "[\"f 1\", \"g 2\", \"f 3\"]", 0, { 0 } },
		/* The same CPUs twice; two points; no number at all. */
		{ "vm.topology", "[\"2x2x1\", \"1x4x1\", \"4x15x2\"]", 0, { 0 } },
		{ "run.command", "[\"f 1\", \"f 2\"]", 0, { 0 } },
		{ "run.command", "[\"a\", \"a\", \"a\"]", 0, { 0 } },
		/* Texts are wanted. */
		{ "run.command", "[null, [], 3]", 0, { 0 } },
	};

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct report_axis *a = axis(cases[i].keys, cases[i].values);

		g_assert_cmpint(a->x != NULL, ==, cases[i].n > 0);
		for (u32 k = 0; k < cases[i].n; k++)
			g_assert_cmpfloat(a->x[k], ==, cases[i].x[k]);
		report_axis_free(a);
	}
}

/* Keys that are set together; those that only scale a run are in no label. */
static void test_together(void)
{
	struct report_axis *a = axis("knob.path + run.command + run.duration", "[\"one + f 1 + 2ms\", \"two + f 1 + 9ms\"]");
	g_autoptr(JsonNode) here = json_from_string("{\"set\": {\"knob.path\": \"two\", \"run.command\": \"f 1\", \"run.duration\": \"9ms\"}}", NULL);
	g_autoptr(JsonNode) nowhere = json_from_string("{\"set\": {\"knob.path\": \"two\"}}", NULL);

	g_assert_cmpstr(a->name, ==, "path, command");
	g_assert_cmpstr(a->labels->pdata[1], ==, "two, f 1");
	g_assert_cmpint(report_coordinate(a, json_node_get_object(here)), ==, 1);
	g_assert_cmpint(report_coordinate(a, json_node_get_object(nowhere)), ==, -1);
	report_axis_free(a);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/report-axis/numbers", test_numbers);
	g_test_add_func("/report-axis/together", test_together);
	return g_test_run();
}
