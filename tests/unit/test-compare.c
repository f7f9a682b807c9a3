// SPDX-License-Identifier: GPL-2.0-only
/* Comparing two results: figures, the words of the verdict, and what is refused. */
#include <glib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "summary.h"

struct side {
	double mean, stderr_;	/* stderr below 0 = null */
	int n;
	const char *time, *trust, *remark, *engine, *topology;
};

static const struct side plain = { 100, 1, 5, "host", NULL, NULL, "kvm", "2x10x2" };

static JsonNode *result(const struct side *s)
{
	g_autofree char *error =
		s->stderr_ < 0 ? g_strdup("null") : g_strdup_printf("%f", s->stderr_);
	g_autofree char *trust = s->trust ? g_strdup_printf("\"%s\"", s->trust) : g_strdup("");
	g_autofree char *remark = s->remark ? g_strdup_printf("\"%s\"", s->remark) : g_strdup("");
	g_autofree char *text = g_strdup_printf(
		"{\"schema\":\"faultbed-result/1\",\"engine\":\"%s\",\"scenario\":{\"vm.topology\":\"%s\","
		"\"guest.kernel\":\"%p\"},\"cells\":[{\"name\":\"only\",\"summary\":{\"time\":{},\"reports\":{},"
		"\"counters\":{\"c\":{\"unit\":\"events\",\"source\":\"vmm\",\"mean\":10,\"stderr\":0,\"n\":%d}},"
		"\"rates\":{\"faults_per_s\":{\"unit\":\"faults/s\",\"source\":\"load\",\"mean\":%f,\"stderr\":%s,"
		"\"n\":%d,\"time\":\"%s\",\"trust\":[%s],\"remarks\":[%s]}}}}]}",
		s->engine, s->topology, (void *)s, s->n, s->mean, error, s->n, s->time, trust,
		remark);
	JsonNode *node = json_from_string(text, NULL);

	g_assert_nonnull(node);
	return node;
}

/* Compare; the text is returned in *said (g_free()). */
static int compare(const struct side *a, const struct side *b, char **said)
{
	g_autoptr(JsonNode) ra = result(a), rb = result(b);
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	int status = compare_results(f, ra, rb, "a.json", "b.json", false);

	fclose(f);
	*said = g_strdup(text);
	free(text);
	return status;
}

static void assert_says(const char *said, const char *what)
{
	if (!strstr(said, what))
		g_error("expected \"%s\" in:\n%s", what, said);
}

static void test_figures(void)
{
	g_autoptr(JsonNode) a = json_from_string("{\"mean\":10,\"stderr\":1,\"n\":4}", NULL);
	g_autoptr(JsonNode) b = json_from_string("{\"mean\":15,\"stderr\":1,\"n\":4}", NULL);
	g_autoptr(JsonNode) one = json_from_string("{\"mean\":15,\"stderr\":null,\"n\":1}", NULL);
	g_autoptr(JsonNode) zero = json_from_string("{\"mean\":0,\"stderr\":0,\"n\":4}", NULL);
	struct compare_figure f;

	compare_figures(json_node_get_object(a), json_node_get_object(b), &f);
	g_assert_cmpfloat(f.difference, ==, 5);
	g_assert_cmpfloat(f.percent, ==, 50);
	/* Equal errors and counts: 6 degrees of freedom, t = 2.44691. */
	g_assert_cmpfloat_with_epsilon(f.half, 2.44691 * sqrt(2), 1e-4);
	compare_figures(json_node_get_object(a), json_node_get_object(one), &f);
	g_assert_true(isnan(f.half));
	compare_figures(json_node_get_object(zero), json_node_get_object(b), &f);
	g_assert_true(isnan(f.percent));
}

static void test_verdict(void)
{
	struct side higher = plain, same = plain, single = plain, nested = plain, virt = plain,
		    few = plain;
	char *said;

	higher.mean = 150;
	g_assert_cmpint(compare(&plain, &higher, &said), ==, COMPARE_VERDICT);
	assert_says(said, "Verdict: faults_per_s of the second is higher by 50.0%");
	g_free(said);
	g_assert_cmpint(compare(&higher, &plain, &said), ==, COMPARE_VERDICT);
	assert_says(said, "Verdict: faults_per_s of the second is lower by 33.3%");
	g_free(said);

	same.mean = 101;
	g_assert_cmpint(compare(&plain, &same, &said), ==, COMPARE_VERDICT);
	assert_says(said, "Verdict: no difference of faults_per_s is shown");
	g_free(said);

	single.n = 1;
	single.stderr_ = -1;
	single.mean = 900;
	g_assert_cmpint(compare(&plain, &single, &said), ==, COMPARE_NO_VERDICT);
	assert_says(said, "no interval");
	assert_says(said, "5 and 1 repeats");
	g_free(said);

	nested.trust = "nested: means nothing";
	nested.mean = 500;
	g_assert_cmpint(compare(&plain, &nested, &said), ==, COMPARE_NO_VERDICT);
	assert_says(said, "this is not a performance result: nested: means nothing");
	g_assert_null(strstr(said, "higher"));
	g_free(said);
	g_assert_cmpint(compare(&nested, &plain, &said), ==, COMPARE_NO_VERDICT);
	g_free(said);

	virt.time = "virtual";
	g_assert_cmpint(compare(&plain, &virt, &said), ==, COMPARE_NO_VERDICT);
	assert_says(said, "one counts host time and the other virtual time");
	g_free(said);
	/* Two results in virtual time can be compared with each other. */
	g_assert_cmpint(compare(&virt, &virt, &said), ==, COMPARE_VERDICT);
	g_free(said);

	few.remark = "only 2 whole rounds, fewer than 10";
	g_assert_cmpint(compare(&plain, &few, &said), ==, COMPARE_NO_VERDICT);
	assert_says(said, "the second rate is only 2 whole rounds");
	g_free(said);
}

static void test_scenarios(void)
{
	struct side other = plain, engine = plain;
	g_autoptr(JsonNode) a = result(&plain), b = NULL, c = NULL, d = result(&plain);
	g_autoptr(GPtrArray) none = NULL, topology = NULL, engines = NULL;

	other.topology = "4x15x2";
	engine.engine = "nested";
	b = result(&other);
	c = result(&engine);
	/* The kernels' paths differ in all of them, and that is what one compares. */
	none = compare_scenarios(json_node_get_object(a), json_node_get_object(d));
	g_assert_cmpuint(none->len, ==, 0);
	topology = compare_scenarios(json_node_get_object(a), json_node_get_object(b));
	g_assert_cmpuint(topology->len, ==, 1);
	g_assert_cmpstr(topology->pdata[0], ==, "vm.topology: 2x10x2 | 4x15x2");
	engines = compare_scenarios(json_node_get_object(a), json_node_get_object(c));
	g_assert_cmpuint(engines->len, ==, 1);
	g_assert_cmpstr(engines->pdata[0], ==, "engine: kvm | nested");
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/compare/figures", test_figures);
	g_test_add_func("/compare/verdict", test_verdict);
	g_test_add_func("/compare/scenarios", test_scenarios);
	return g_test_run();
}
