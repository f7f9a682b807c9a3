// SPDX-License-Identifier: GPL-2.0-only
/* Comparing two results: figures, the words of the verdict, and what is refused. */
#include <glib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "stats.h"
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

static struct compare *compare_two(JsonNode *a, JsonNode *b, const struct compare_options *o)
{
	struct compare *c = compare_new(o);

	compare_add(c, a, b, "a.json", "b.json");
	compare_settle(c);
	return c;
}

/* Compare; the text is returned in *said (g_free()). */
static int compare_results(JsonNode *a, JsonNode *b, const struct compare_options *o, enum compare_fail_on fail_on, char **said)
{
	struct compare *c = compare_two(a, b, o);
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	int status = compare_status(c, fail_on);

	compare_print(c, f);
	fclose(f);
	compare_free(c);
	*said = g_strdup(text);
	free(text);
	return status;
}

static int compare_with(const struct side *a, const struct side *b, const struct compare_options *o, enum compare_fail_on fail_on,
			char **said)
{
	g_autoptr(JsonNode) ra = result(a), rb = result(b);

	return compare_results(ra, rb, o, fail_on, said);
}

static int compare(const struct side *a, const struct side *b, char **said)
{
	const struct compare_options o = COMPARE_OPTIONS;

	return compare_with(a, b, &o, FAIL_ON_NOTHING, said);
}

static void assert_says(const char *said, const char *what)
{
	if (!strstr(said, what))
		g_error("expected \"%s\" in:\n%s", what, said);
}

static void test_figures(void)
{
	g_autoptr(JsonNode) a = json_from_string("{\"mean\":10,\"stderr\":1,\"n\":4,\"unit\":\"ns\"}", NULL);
	g_autoptr(JsonNode) b = json_from_string("{\"mean\":15,\"stderr\":1,\"n\":4,\"unit\":\"faults/s\"}", NULL);
	g_autoptr(JsonNode) one = json_from_string("{\"mean\":15,\"stderr\":null,\"n\":1}", NULL);
	g_autoptr(JsonNode) zero = json_from_string("{\"mean\":0,\"stderr\":0,\"n\":4}", NULL);
	struct compare_figure f;

	compare_figures(json_node_get_object(a), json_node_get_object(b), 0.95, &f);
	g_assert_cmpfloat(f.difference, ==, 5);
	g_assert_cmpfloat(f.percent, ==, 50);
	g_assert_cmpint(compare_direction(&f), ==, -1);
	/* Equal errors and counts: 6 degrees of freedom, t = 2.44691. */
	g_assert_cmpfloat_with_epsilon(f.half, 2.44691 * sqrt(2), 1e-4);
	/* t = 5 / sqrt(2) = 3.53553 of 6 degrees of freedom, the tails integrated numerically. */
	g_assert_cmpfloat_with_epsilon(f.p, 0.0122851, 1e-6);
	compare_figures(json_node_get_object(b), json_node_get_object(a), 0.95, &f);
	g_assert_cmpint(compare_direction(&f), ==, 1);
	compare_figures(json_node_get_object(a), json_node_get_object(one), 0.95, &f);
	g_assert_true(isnan(f.half) && isnan(f.p));
	g_assert_cmpint(compare_direction(&f), ==, -1);
	compare_figures(json_node_get_object(zero), json_node_get_object(b), 0.95, &f);
	g_assert_true(isnan(f.percent));
	g_assert_cmpint(compare_direction(&f), ==, 0);
	compare_figures(json_node_get_object(zero), json_node_get_object(zero), 0.95, &f);
	g_assert_cmpfloat(f.p, ==, 1);
}

static void test_verdict(void)
{
	struct side higher = plain, same = plain, open = plain, single = plain, nested = plain, virt = plain, few = plain;
	char *said;

	higher.mean = 150;
	g_assert_cmpint(compare(&plain, &higher, &said), ==, COMPARE_VERDICT);
	/* 8 degrees of freedom, t = 2.306: 50 +- 3.26. */
	assert_says(said, "Verdict: faults_per_s of the second is higher, and so better: +50.00% (+46.74% to +53.26%), 50 faults/s");
	g_free(said);
	g_assert_cmpint(compare(&higher, &plain, &said), ==, COMPARE_VERDICT);
	assert_says(said, "Verdict: faults_per_s of the second is lower, and so worse: -33.33%");
	g_free(said);

	same.stderr_ = 0.1;
	same.mean = 100.2;
	g_assert_cmpint(compare(&same, &same, &said), ==, COMPARE_VERDICT);
	assert_says(said, "Verdict: no difference of faults_per_s that reaches 1%");
	g_free(said);

	/* The interval of +-3.3 has both 0 and what counts. */
	open.mean = 101;
	g_assert_cmpint(compare(&plain, &open, &said), ==, COMPARE_NO_VERDICT);
	assert_says(said, "Verdict: none; whether faults_per_s differs by 1% is not shown");
	assert_says(said, "some 213 repeats a side");
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
	virt.stderr_ = 0;
	g_assert_cmpint(compare(&virt, &virt, &said), ==, COMPARE_VERDICT);
	g_free(said);

	few.remark = "only 2 whole rounds, fewer than 10";
	g_assert_cmpint(compare(&plain, &few, &said), ==, COMPARE_NO_VERDICT);
	assert_says(said, "the second rate is only 2 whole rounds");
	g_free(said);
}

/* Both have to be reached. */
static void test_thresholds(void)
{
	struct side a = plain, b = plain;
	struct compare_options o = COMPARE_OPTIONS;
	char *said;

	a.stderr_ = b.stderr_ = 0.1;
	b.mean = 101.5;
	g_assert_cmpint(compare_with(&a, &b, &o, FAIL_ON_DIFFERENT, &said), ==, COMPARE_FAILED);
	assert_says(said, "is higher");
	g_free(said);
	o.least_percent = 2;
	g_assert_cmpint(compare_with(&a, &b, &o, FAIL_ON_DIFFERENT, &said), ==, COMPARE_VERDICT);
	assert_says(said, "no difference of faults_per_s that reaches 2%: +1.50%");
	g_free(said);
	o.least_percent = 1;
	o.least = 5;
	g_assert_cmpint(compare_with(&a, &b, &o, FAIL_ON_DIFFERENT, &said), ==, COMPARE_VERDICT);
	assert_says(said, "that reaches 1% and 5 faults/s");
	g_free(said);
}

static void test_fail_on(void)
{
	const struct compare_options o = COMPARE_OPTIONS;
	struct side better = plain;
	char *said;

	better.mean = 150;
	g_assert_cmpint(compare_with(&plain, &better, &o, FAIL_ON_WORSE, &said), ==, COMPARE_VERDICT);
	g_free(said);
	g_assert_cmpint(compare_with(&plain, &better, &o, FAIL_ON_DIFFERENT, &said), ==, COMPARE_FAILED);
	g_free(said);
	g_assert_cmpint(compare_with(&better, &plain, &o, FAIL_ON_WORSE, &said), ==, COMPARE_FAILED);
	g_free(said);
}

/* Of a count neither more nor less is worse, so it cannot be asked for; a bisection would call every commit good. */
static void test_no_direction(void)
{
	g_autoptr(JsonNode) a = result(&plain), b = result(&plain);
	struct compare_options o = COMPARE_OPTIONS;
	struct compare *c = compare_two(a, b, &o);

	g_assert_true(compare_fail_on_ok(c, FAIL_ON_WORSE));
	compare_free(c);
	o.headline = "c";
	c = compare_two(a, b, &o);
	g_assert_true(compare_fail_on_ok(c, FAIL_ON_DIFFERENT));
	g_assert_false(compare_fail_on_ok(c, FAIL_ON_WORSE));
	compare_free(c);
	o.headline = "nowhere";
	c = compare_two(a, b, &o);
	g_assert_true(compare_fail_on_ok(c, FAIL_ON_WORSE));
	compare_free(c);
}

static JsonObject *cell_of(JsonNode *result)
{
	return json_array_get_object_element(summary_array(json_node_get_object(result), "cells"), 0);
}

/* a's member `name`, an object, is what `text` says. */
static void put(JsonObject *o, const char *name, const char *text)
{
	JsonNode *node = json_from_string(text, NULL);

	g_assert_nonnull(node);
	json_object_set_member(o, name, node);
}

/* What is left of a cell that ended badly went well because the rest did not. */
static void test_ended_badly(void)
{
	g_autoptr(JsonNode) a = result(&plain), b = result(&plain);
	const struct compare_options o = COMPARE_OPTIONS;
	char *said;

	json_object_set_int_member(cell_of(b), "status", 5);
	json_object_set_string_member(cell_of(b), "why", "stuck");
	g_assert_cmpint(compare_results(a, b, &o, FAIL_ON_NOTHING, &said), ==, COMPARE_NO_VERDICT);
	assert_says(said, "Verdict: none; the second cell ended badly: the guest panicked, oopsed or hung: stuck.");
	g_free(said);
}

/* A cell without a partner is one that nothing is said of. */
static void test_alone(void)
{
	struct side same = plain;
	g_autoptr(JsonNode) a = NULL, b = NULL;
	const struct compare_options o = COMPARE_OPTIONS;
	JsonObject *more;
	char *said;

	same.stderr_ = 0.1;
	a = result(&same);
	b = result(&same);
	g_assert_cmpint(compare_results(a, b, &o, FAIL_ON_NOTHING, &said), ==, COMPARE_VERDICT);
	g_free(said);
	more = json_object_new();
	json_object_set_string_member(more, "name", "other");
	json_array_add_object_element(summary_array(json_node_get_object(b), "cells"), more);
	g_assert_cmpint(compare_results(a, b, &o, FAIL_ON_NOTHING, &said), ==, COMPARE_NO_VERDICT);
	assert_says(said, "no difference of faults_per_s");
	assert_says(said, "Not compared: cell other is only in b.json");
	g_free(said);
}

/* What no interval has in it is said beside the verdict. */
static void test_doubts(void)
{
	static const char layout[] = "--variant aligned", apart[] = "One was run after the other";
	struct side same = plain, more = plain;
	g_autoptr(JsonNode) a = NULL, b = NULL, c = NULL;
	const struct compare_options o = COMPARE_OPTIONS;
	char *said;

	same.stderr_ = more.stderr_ = 0.1;
	more.mean = 103;
	a = result(&same);
	b = result(&same);
	c = result(&more);
	put(cell_of(a), "vm", "{\"time\":\"host\",\"kernel\":{\"sha256\":\"1\"}}");
	put(cell_of(b), "vm", "{\"time\":\"host\",\"kernel\":{\"sha256\":\"2\"}}");
	put(cell_of(c), "vm", "{\"time\":\"virtual\",\"kernel\":{\"sha256\":\"2\"}}");
	/* No difference: layout may have hidden one. */
	compare_results(a, b, &o, FAIL_ON_NOTHING, &said);
	assert_says(said, layout);
	assert_says(said, apart);
	g_free(said);
	compare_results(a, a, &o, FAIL_ON_NOTHING, &said);
	g_assert_null(strstr(said, layout));
	assert_says(said, apart);
	g_free(said);
	/* 3% is more than layout makes, and virtual time knows no host. */
	compare_results(a, c, &o, FAIL_ON_NOTHING, &said);
	assert_says(said, "is higher");
	g_assert_null(strstr(said, layout));
	g_assert_null(strstr(said, apart));
	g_free(said);
}

/* What was named after the run says so; what is not there gives no verdict. */
static void test_headline(void)
{
	struct compare_options o = COMPARE_OPTIONS;
	char *said;

	o.headline = "c";
	g_assert_cmpint(compare_with(&plain, &plain, &o, FAIL_ON_NOTHING, &said), ==, COMPARE_VERDICT);
	assert_says(said, "no difference of c that reaches");
	assert_says(said, "named after the run");
	g_free(said);
	o.headline = "nowhere";
	g_assert_cmpint(compare_with(&plain, &plain, &o, FAIL_ON_NOTHING, &said), ==, COMPARE_NO_VERDICT);
	assert_says(said, "nowhere is not in either");
	g_free(said);
}

static struct compare *differences(const struct side *a, const struct side *b, JsonNode **ra, JsonNode **rb)
{
	const struct compare_options o = COMPARE_OPTIONS;

	*ra = result(a);
	*rb = result(b);
	return compare_two(*ra, *rb, &o);
}

static void test_differences(void)
{
	struct side topology = plain, engine = plain;
	const struct {
		const struct side *side;
		const char *line;
	} table[] = {
		/* The kernels' paths differ in all of them, and that is what one compares. */
		{ &plain, NULL },
		{ &topology, "vm.topology: 2x10x2 | 4x15x2" },
		{ &engine, "engine: kvm | nested" },
	};

	topology.topology = "4x15x2";
	engine.engine = "nested";
	for (size_t i = 0; i < G_N_ELEMENTS(table); i++) {
		JsonNode *a, *b;
		struct compare *c = differences(&plain, table[i].side, &a, &b);

		g_assert_cmpuint(c->differs->len, ==, table[i].line ? 1 : 0);
		if (table[i].line)
			g_assert_cmpstr(c->differs->pdata[0], ==, table[i].line);
		compare_free(c);
		json_node_unref(a);
		json_node_unref(b);
	}
}

/* Where and how two results came about. One build is known by its binary, a commit only if nothing was changed since. */
static void test_provenance(void)
{
	static const struct {
		const char *a, *b, *line;
	} table[] = {
		{ "{\"commit\":\"1\",\"vmm_sha256\":\"x\"}", "{\"commit\":\"2\",\"vmm_sha256\":\"x\"}", NULL },
		{ "{\"commit\":\"1\",\"vmm_sha256\":\"x\"}", "{\"commit\":\"1\",\"vmm_sha256\":\"y\"}", NULL },
		{ "{\"commit\":\"1\",\"vmm_sha256\":\"x\"}", "{\"commit\":\"2\",\"vmm_sha256\":\"y\"}", "faultbed's build: 1 | 2" },
		{ "{\"commit\":\"1-dirty\",\"vmm_sha256\":\"x\"}", "{\"commit\":\"1-dirty\",\"vmm_sha256\":\"y\"}",
		  "faultbed's build: 1-dirty VMM x | 1-dirty VMM y" },
		{ "{}", "{\"order\":[]}", "repeats: in one VM | a VM each, by turns" },
		{ "{\"host\":{\"cpu\":\"A\"}}", "{\"host\":{\"cpu\":\"B\"}}", "host CPU: A | B" },
		{ "{\"cells\":[{\"host\":{\"smt\":\"on\",\"steal_ticks\":\"1\"}}]}",
		  "{\"cells\":[{\"host\":{\"smt\":\"off\",\"steal_ticks\":\"2\"}}]}", "host smt: on | off" },
		{ "{\"cells\":[null]}", "{\"cells\":[{\"host\":{\"steal_ticks\":\"2\"}}]}", NULL },
	};

	for (size_t i = 0; i < G_N_ELEMENTS(table); i++) {
		g_autoptr(JsonNode) a = result(&plain), b = result(&plain);
		const struct compare_options o = COMPARE_OPTIONS;
		struct compare *c;

		put(json_node_get_object(a), "provenance", table[i].a);
		put(json_node_get_object(b), "provenance", table[i].b);
		c = compare_two(a, b, &o);
		g_assert_cmpuint(c->differs->len, ==, table[i].line ? 1 : 0);
		if (table[i].line)
			g_assert_cmpstr(c->differs->pdata[0], ==, table[i].line);
		compare_free(c);
	}
}

/* A figure without a mean is none, of the table and as a headline. */
static void test_no_mean(void)
{
	g_autoptr(JsonNode) a = result(&plain), b = result(&plain);
	JsonObject *rates = summary_object(summary_object(cell_of(b), "summary"), "rates");
	const struct compare_options o = COMPARE_OPTIONS;
	char *said;

	json_object_set_null_member(summary_object(rates, "faults_per_s"), "mean");
	g_assert_cmpint(compare_results(a, b, &o, FAIL_ON_NOTHING, &said), ==, COMPARE_NO_VERDICT);
	g_assert_null(strstr(said, "nan"));
	g_free(said);
}

/* Ten figures, one of which moves: by chance one in two such tables would have a p below 0.05 somewhere. */
static void test_holm(void)
{
	double p[] = { 0.04, 0.001, NAN, 0.02, 0.9 }, none[1];

	/* 0.001 * 4, 0.02 * 3, 0.04 * 2 (but no less than what stands before), 0.9 * 1. */
	holm_adjust(p, 5);
	g_assert_cmpfloat_with_epsilon(p[1], 0.004, 1e-12);
	g_assert_cmpfloat_with_epsilon(p[3], 0.06, 1e-12);
	g_assert_cmpfloat_with_epsilon(p[0], 0.08, 1e-12);
	g_assert_cmpfloat_with_epsilon(p[4], 0.9, 1e-12);
	g_assert_true(isnan(p[2]));
	holm_adjust(none, 0);
}

static JsonNode *varied(const char *key)
{
	GString *text = g_string_new("{\"schema\":\"faultbed-result/1\",\"engine\":\"soft\",\"scenario\":{},\"cells\":[");
	int i;

	for (i = 0; i < 4; i++)
		g_string_append_printf(text, "%s{\"name\":\"n%d\",\"set\":{\"vm.topology\":\"%d\",\"%s\":\"%d\"},\"summary\":{\"rates\":{"
				       "\"faults_per_s\":{\"unit\":\"faults/s\",\"mean\":%d,\"stderr\":0,\"n\":3,\"time\":\"virtual\"}}}}",
				       i ? "," : "", i, i / 2, key, i % 2, 100 + i);
	g_string_append(text, "]}");

	JsonNode *node = json_from_string(text->str, NULL);

	g_string_free(text, TRUE);
	return node;
}

/* Within one result: cells that differ in the factor alone. */
static void test_within(void)
{
	const struct compare_options o = COMPARE_OPTIONS;
	g_autoptr(JsonNode) knobs = varied("guest.knob.x"), seeds = varied("run.seed");
	struct compare *c = compare_new(&o);
	const struct compare_pair *p;

	g_assert_true(compare_within(c, knobs));
	compare_settle(c);
	g_assert_cmpuint(c->pairs->len, ==, 2);
	p = c->pairs->pdata[1];
	g_assert_cmpstr(p->cell, ==, "vm.topology=1");
	g_assert_cmpstr(p->name_b, ==, "n3");
	g_assert_cmpfloat(p->headline.mean_a, ==, 102);
	g_assert_cmpint(p->verdict, ==, VERDICT_SAME);
	compare_free(c);
	c = compare_new(&o);
	g_assert_false(compare_within(c, seeds));
	compare_free(c);
}

/*
 * Pairs of the same thing: how often a difference is claimed. With no thresholds that is the level, 5%: of 4,000 pairs
 * of 5 values 200 +- 41 (three standard deviations of a binomial).
 */
static void test_false_alarms(void)
{
	struct compare_options o = COMPARE_OPTIONS;
	g_autoptr(GRand) rand = g_rand_new_with_seed(1);
	u32 alarms = 0, i, k, n = 4000;

	o.least_percent = 0;
	for (i = 0; i < n; i++) {
		struct side s[2] = { plain, plain };
		char *said;

		for (k = 0; k < 2; k++) {
			struct stats sum = { 0 };

			while (sum.n < 5)
				stats_add(&sum, 1000 + sqrt(-2 * log(1 - g_rand_double(rand))) * cos(2 * G_PI * g_rand_double(rand)));
			s[k].mean = sum.mean;
			s[k].stderr_ = stats_stderr(&sum);
		}
		alarms += compare_with(&s[0], &s[1], &o, FAIL_ON_DIFFERENT, &said) == COMPARE_FAILED;
		g_free(said);
	}
	g_test_message("%u of %u", alarms, n);
	g_assert_cmpuint(alarms, >, 159);
	g_assert_cmpuint(alarms, <, 241);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/compare/figures", test_figures);
	g_test_add_func("/compare/verdict", test_verdict);
	g_test_add_func("/compare/thresholds", test_thresholds);
	g_test_add_func("/compare/fail-on", test_fail_on);
	g_test_add_func("/compare/no-direction", test_no_direction);
	g_test_add_func("/compare/ended-badly", test_ended_badly);
	g_test_add_func("/compare/alone", test_alone);
	g_test_add_func("/compare/doubts", test_doubts);
	g_test_add_func("/compare/provenance", test_provenance);
	g_test_add_func("/compare/no-mean", test_no_mean);
	g_test_add_func("/compare/headline", test_headline);
	g_test_add_func("/compare/differences", test_differences);
	g_test_add_func("/compare/holm", test_holm);
	g_test_add_func("/compare/within", test_within);
	g_test_add_func("/compare/false-alarms", test_false_alarms);
	return g_test_run();
}
