// SPDX-License-Identifier: GPL-2.0-only
/* Means, errors, quantiles against known values; summaries of hand-made repeats. */
#include <glib.h>
#include <math.h>
#include <string.h>

#include "show.h"
#include "stats.h"
#include "summary.h"

static JsonNode *parse(const char *text)
{
	g_autoptr(GError) err = NULL;
	JsonNode *node = json_from_string(text, &err);

	if (!node)
		g_error("%s in %s", err->message, text);
	return node;
}

#define NEAR(a, b, rel)	g_assert_cmpfloat_with_epsilon((a), (b), (rel) * fabs((double)(b)))

static void test_mean(void)
{
	static const double values[] = { 2, 4, 4, 4, 5, 5, 7, 9 };
	struct stats s = { 0 };

	g_assert_true(isnan(stats_stderr(&s)));
	stats_add(&s, 2);
	g_assert_true(isnan(stats_stderr(&s)));
	for (int i = 1; i < 8; i++)
		stats_add(&s, values[i]);
	g_assert_cmpuint(s.n, ==, 8);
	NEAR(s.mean, 5, 1e-12);
	NEAR(stats_stderr(&s), sqrt(32.0 / 7 / 8), 1e-12);

	/* Far from zero, where the sum of squares would have lost all digits. */
	s = (struct stats){ 0 };
	for (int i = 0; i < 1000; i++)
		stats_add(&s, 1e15 + (i & 1));
	NEAR(stats_stderr(&s), sqrt(250.0 / 999 / 1000), 1e-6);
}

/* Two-sided 95% points as printed in tables of Student's distribution. */
static void test_student(void)
{
	static const struct {
		double df, t;
	} table[] = { { 1, 12.7062 }, { 2, 4.30265 },  { 4, 2.77645 },
		      { 9, 2.26216 }, { 30, 2.04227 }, { 1e6, 1.95997 } };

	for (size_t i = 0; i < G_N_ELEMENTS(table); i++) {
		NEAR(student_quantile(0.975, table[i].df), table[i].t, 1e-4);
		NEAR(student_cdf(table[i].t, table[i].df), 0.975, 1e-5);
		NEAR(student_cdf(-table[i].t, table[i].df), 0.025, 1e-3);
	}
	NEAR(student_cdf(0, 3), 0.5, 1e-12);
	/* df = 1 is Cauchy's, which has a closed form. */
	NEAR(student_cdf(2, 1), 0.5 + atan(2) / G_PI, 1e-12);
}

static void test_welch(void)
{
	/* a: 10 12 14 (stderr 1.1547), b: 20 21 22 23 (stderr 0.6455): df = 1.75^2 / (16/18 + 25/432). */
	double ea = sqrt(4.0 / 3), eb = sqrt(5.0 / 3 / 4), v = ea * ea + eb * eb;
	double df = v * v / (pow(ea, 4) / 2 + pow(eb, 4) / 3);

	NEAR(df, 3.23472, 1e-5);
	NEAR(welch_half_width(ea, 3, eb, 4, 0.95), student_quantile(0.975, df) * sqrt(v), 1e-12);
	g_assert_true(isnan(welch_half_width(NAN, 1, eb, 4, 0.95)));
	g_assert_true(isnan(welch_half_width(ea, 3, NAN, 1, 0.95)));
	g_assert_cmpfloat(welch_half_width(0, 3, 0, 3, 0.95), ==, 0);
}

#define VM	"{\"time\":\"host\",\"trust\":[\"nested: x\"]}"

static JsonObject *build(const char *repeats)
{
	g_autoptr(JsonNode) vm = parse(VM), list = parse(repeats);

	return summary_build(json_node_get_object(vm), json_node_get_array(list));
}

static double member(JsonObject *s, const char *of, const char *name, const char *what)
{
	return summary_number(summary_object(summary_object(s, of), name), what, NAN);
}

static void test_repeats(void)
{
	JsonObject *s = build(
		"[{\"time_ns\":500000000,\"marks\":\"load\",\"exit_status\":0,"
		"\"counters\":{\"a\":{\"value\":10,\"unit\":\"events\",\"source\":\"vmm\"},"
		"\"t\":{\"value\":7,\"unit\":\"ns\",\"source\":\"vmm\"},"
		"\"kvm_x\":{\"value\":4,\"unit\":\"events\",\"source\":\"kvm\"}},"
		"\"reports\":{\"rounds\":{\"value\":20,\"unit\":\"rounds\"},\"r\":{\"value\":3.5,\"unit\":\"faults/s\"}},"
		"\"na\":{\"m\":\"why\"},\"warnings\":[\"w\"],"
		"\"histograms\":{\"h\":{\"count\":2,\"sum\":10,\"min\":4,\"max\":6,\"buckets\":[0,0,2]}}},"
		"{\"time_ns\":1000000000,\"marks\":\"load\",\"exit_status\":0,"
		"\"counters\":{\"a\":{\"value\":30,\"unit\":\"events\",\"source\":\"vmm\"}},"
		"\"reports\":{\"rounds\":{\"value\":12,\"unit\":\"rounds\"},\"r\":{\"value\":4.5,\"unit\":\"faults/s\"}},"
		"\"warnings\":[\"w\",\"v\"],"
		"\"histograms\":{\"h\":{\"count\":1,\"sum\":2,\"min\":2,\"max\":2,\"buckets\":[0,1]}}},"
		"{\"time_ns\":9,\"exit_status\":3,\"counters\":{\"a\":{\"value\":1000000,\"unit\":\"events\"}}}]");

	g_assert_cmpfloat(summary_number(s, "repeats", 0), ==, 2);
	g_assert_cmpfloat(summary_number(s, "failed", 0), ==, 1);
	g_assert_cmpfloat(member(s, "counters", "a", "mean"), ==, 20);
	g_assert_cmpfloat(member(s, "counters", "a", "stderr"), ==, 10);
	g_assert_cmpfloat(member(s, "counters", "a", "n"), ==, 2);
	/* The rate is a mean of the repeats' rates: 20/s and 30/s. */
	g_assert_cmpfloat(member(s, "rates", "a_per_s", "mean"), ==, 25);
	g_assert_null(summary_object(summary_object(s, "rates"), "t_per_s"));
	/* Left out of one repeat: it did not move there. */
	g_assert_cmpfloat(member(s, "counters", "kvm_x", "mean"), ==, 2);
	g_assert_cmpfloat(member(s, "counters", "kvm_x", "n"), ==, 2);
	/* A report with a rate's unit is a rate. */
	g_assert_cmpfloat(member(s, "rates", "r", "mean"), ==, 4);
	g_assert_null(summary_object(summary_object(s, "reports"), "r"));
	g_assert_cmpfloat(member(s, "reports", "rounds", "mean"), ==, 16);
	g_assert_cmpuint(json_array_get_length(summary_array(s, "warnings")), ==, 2);
	g_assert_cmpfloat(member(s, "histograms", "h", "count"), ==, 3);
	g_assert_cmpfloat(member(s, "histograms", "h", "mean"), ==, 4);
	g_assert_cmpfloat(member(s, "histograms", "h", "min"), ==, 2);
	g_assert_cmpfloat(member(s, "histograms", "h", "max"), ==, 6);
	g_assert_cmpstr(summary_string(summary_object(s, "na"), "m", ""), ==, "why");

	JsonObject *rate = summary_object(summary_object(s, "rates"), "a_per_s");
	JsonArray *buckets =
		summary_array(summary_object(summary_object(s, "histograms"), "h"), "buckets");

	g_assert_cmpstr(summary_string(rate, "time", ""), ==, "host");
	g_assert_cmpstr(json_array_get_string_element(summary_array(rate, "trust"), 0), ==,
			"nested: x");
	g_assert_cmpuint(json_array_get_length(summary_array(rate, "remarks")), ==, 0);
	g_assert_cmpint(json_array_get_int_element(buckets, 1), ==, 1);
	g_assert_cmpint(json_array_get_int_element(buckets, 2), ==, 2);
	json_object_unref(s);
}

/* A rate that the next run need not repeat says so. */
static void test_remarks(void)
{
	static const struct {
		const char *repeat;
		u32 remarks;
		const char *text;
	} cases[] = {
		{ "\"marks\":\"load\",\"reports\":{\"rounds\":{\"value\":10,\"unit\":\"rounds\"}}",
		  0, NULL },
		{ "\"marks\":\"load\",\"reports\":{\"rounds\":{\"value\":9,\"unit\":\"rounds\"}}",
		  1, "only 9 whole rounds" },
		{ "\"marks\":\"load\",\"reports\":{\"partial\":{\"value\":1,\"unit\":\"bool\"}}", 1,
		  "partial" },
		{ "\"marks\":\"command\"", 1, "whole command" },
	};

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autofree char *text = g_strdup_printf(
			"[{\"time_ns\":1000,\"exit_status\":0,\"counters\":{\"a\":"
			"{\"value\":1,\"unit\":\"events\",\"source\":\"vmm\"}},%s}]",
			cases[i].repeat);
		JsonObject *s = build(text);
		JsonArray *remarks = summary_array(
			summary_object(summary_object(s, "rates"), "a_per_s"), "remarks");

		g_assert_cmpuint(json_array_get_length(remarks), ==, cases[i].remarks);
		if (cases[i].text)
			g_assert_nonnull(
				strstr(json_array_get_string_element(remarks, 0), cases[i].text));
		json_object_unref(s);
	}
}

/* One repeat has a mean and no error; none has neither, and nothing divides by zero. */
static void test_few(void)
{
	JsonObject *s = build(
		"[{\"time_ns\":0,\"exit_status\":0,\"counters\":{\"a\":{\"value\":5,\"unit\":\"events\"}}}]");
	JsonObject *a = summary_object(summary_object(s, "counters"), "a");

	g_assert_cmpfloat(summary_number(a, "mean", 0), ==, 5);
	g_assert_true(json_object_get_null_member(a, "stderr"));
	g_assert_null(summary_object(summary_object(s, "rates"), "a_per_s"));
	json_object_unref(s);

	s = build("[]");
	g_assert_cmpfloat(summary_number(s, "repeats", -1), ==, 0);
	json_object_unref(s);
	/* Members of wrong types are passed over. */
	s = build(
		"[1, {\"counters\":3,\"reports\":[],\"histograms\":{\"h\":4},\"warnings\":[5,{}],\"na\":1},"
		"{\"counters\":{\"a\":{\"value\":\"x\"},\"b\":7}}]");
	g_assert_cmpfloat(summary_number(s, "repeats", -1), ==, 2);
	json_object_unref(s);
}

/* Escapes of a terminal, in both their forms, and none of what a language writes. */
static void test_text(void)
{
	char out[64] = "";
	FILE *f = fmemopen(out, sizeof(out), "w");

	show_text(f, "a\033[2Jb\x7f\r\n\tc\xc2\x9b" "d\xc2\xb5s \xc3\xa4");
	fclose(f);
	g_assert_cmpstr(out, ==, "a?[2Jb??\n\tc?d\xc2\xb5s \xc3\xa4");
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/summary/mean", test_mean);
	g_test_add_func("/summary/student", test_student);
	g_test_add_func("/summary/welch", test_welch);
	g_test_add_func("/summary/repeats", test_repeats);
	g_test_add_func("/summary/remarks", test_remarks);
	g_test_add_func("/summary/few", test_few);
	g_test_add_func("/summary/text", test_text);
	return g_test_run();
}
