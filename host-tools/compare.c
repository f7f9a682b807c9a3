// SPDX-License-Identifier: GPL-2.0-only
/* Figures of two cells, tests of them, and the verdict on the headline. See compare.h. */
#include "compare.h"

#include <math.h>
#include <string.h>

#include "base/log.h"
#include "front.h"
#include "stats.h"
#include "summary.h"

static const char *const groups[] = { "rates", "reports", "counters" };

void compare_figures(JsonObject *a, JsonObject *b, double confidence, struct compare_figure *out)
{
	double error_a = summary_number(a, "stderr", NAN), error_b = summary_number(b, "stderr", NAN);

	out->unit = summary_string(a, "unit", "");
	out->mean_a = summary_number(a, "mean", NAN);
	out->mean_b = summary_number(b, "mean", NAN);
	out->n_a = (u32)summary_number(a, "n", 0);
	out->n_b = (u32)summary_number(b, "n", 0);
	out->difference = out->mean_b - out->mean_a;
	out->percent = out->mean_a ? 100 * out->difference / fabs(out->mean_a) : NAN;
	out->half = welch_half_width(error_a, out->n_a, error_b, out->n_b, confidence);
	out->p = welch_p(out->difference, error_a, out->n_a, error_b, out->n_b);
}

int compare_direction(const struct compare_figure *f)
{
	if (g_str_has_suffix(f->unit, "/s"))
		return 1;
	return !strcmp(f->unit, "ns") || !strcmp(f->unit, "us") ? -1 : 0;
}

/* --- the headline --- */

static bool has_mean(JsonObject *figure)
{
	return isfinite(summary_number(figure, "mean", NAN));
}

static JsonObject *find_figure(JsonObject *cell, const char *name, const char **group)
{
	JsonObject *summary = summary_object(cell, "summary");

	for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
		JsonObject *f = summary_object(summary_object(summary, groups[i]), name);

		if (f && has_mean(f)) {
			*group = groups[i];
			return f;
		}
	}
	return NULL;
}

static const char *named_headline(JsonObject *cell)
{
	const char *name = summary_string(summary_object(summary_object(cell, "vm"), "scenario"), "run.headline", "auto");

	return strcmp(name, "auto") ? name : NULL;
}

/* The load's own rate, the first that it reports and both have; else guest page faults. */
static const char *usual_headline(JsonObject *a, JsonObject *b)
{
	JsonObject *rates = summary_object(summary_object(a, "summary"), "rates");
	JsonObjectIter iter;
	const char *name, *group;
	JsonNode *node;

	if (find_figure(a, "faults_per_s", &group) && find_figure(b, "faults_per_s", &group))
		return "faults_per_s";
	if (rates)
		json_object_iter_init_ordered(&iter, rates);
	while (rates && json_object_iter_next_ordered(&iter, &name, &node))
		if (!strcmp(summary_string(json_node_get_object(node), "source", ""), "load") && find_figure(b, name, &group))
			return name;
	return "guest_page_faults_per_s";
}

const char *compare_headline(JsonObject *cell, const char **group)
{
	const char *name = named_headline(cell);

	name = name ? name : usual_headline(cell, cell);
	return find_figure(cell, name, group) ? name : NULL;
}

static void take_headline(struct compare *c, struct compare_pair *p)
{
	const char *name = c->options.headline, *other = named_headline(p->b), *group;
	JsonObject *a, *b;

	p->named_after = name;
	if (!name)
		name = named_headline(p->a);
	if (!name)
		name = usual_headline(p->a, p->b);
	else if (!p->named_after && g_strcmp0(name, other))
		p->why = g_strdup_printf("the first was run with run.headline = %s, the second with %s", name,
					 other ? other : "auto");
	a = find_figure(p->a, name, &group);
	b = find_figure(p->b, name, &group);
	if (!a || !b) {
		g_free(p->why);
		p->why = g_strdup_printf("%s is not in %s (--headline or run.headline names another figure)", name,
					 !a && !b ? "either" : a ? "the second" : "the first");
		return;
	}
	compare_figures(a, b, c->options.confidence, &p->headline);
	p->headline.group = group;
	p->headline.name = name;
}

/* --- is it a result at all? --- */

static const char *first_of(JsonArray *a)
{
	return a && json_array_get_length(a) ? json_array_get_string_element(a, 0) : NULL;
}

/* Those of a guest that died, or of whose repeats some failed, are the ones that went well. NULL if all did. g_free(). */
static char *ended_badly(const struct compare_pair *p)
{
	JsonObject *const cells[] = { p->a, p->b };

	for (int i = 0; i < 2; i++) {
		int status = (int)CLAMP(summary_number(cells[i], "status", STATUS_DONE), 0, 255);
		const char *why = summary_string(cells[i], "why", "");

		if (status != STATUS_DONE)
			return g_strdup_printf("the %s cell ended badly: %s%s%s", i ? "second" : "first", front_status_text(status),
					       *why ? ": " : "", why);
	}
	return NULL;
}

/* Why a figure that is of time says nothing; NULL if it does. g_free(). */
static char *no_performance(const struct compare_pair *p)
{
	JsonObject *const cells[] = { p->a, p->b };
	const char *time[2];

	for (int i = 0; i < 2; i++) {
		JsonObject *vm = summary_object(cells[i], "vm");
		JsonObject *rate = summary_object(summary_object(summary_object(cells[i], "summary"), "rates"),
						  p->headline.name);
		const char *trust = first_of(summary_array(rate ? rate : vm, "trust"));
		const char *remark = first_of(summary_array(rate, "remarks"));

		time[i] = summary_string(rate ? rate : vm, "time", "none");
		if (trust)
			return g_strdup_printf("this is not a performance result: %s", trust);
		if (remark)
			return g_strdup_printf("this is not a performance result: the %s rate is %s", i ? "second" : "first",
					       remark);
	}
	if (strcmp(time[0], time[1]))
		return g_strdup_printf("this is not a performance result: one counts %s time and the other %s time", time[0],
				       time[1]);
	return strcmp(time[0], "none") ? NULL : g_strdup("this is not a performance result: the rates are of no clock");
}

static bool is_of_time(const struct compare_figure *f)
{
	return compare_direction(f) != 0;
}

/* --- verdicts --- */

static void give_verdict(const struct compare_options *o, struct compare_pair *p)
{
	const struct compare_figure *h = &p->headline;
	double least;

	p->verdict = VERDICT_NONE;
	if (!p->why)
		p->why = ended_badly(p);
	if (!p->why && is_of_time(h))
		p->why = no_performance(p);
	if (p->why)
		return;
	if (isnan(h->p)) {
		p->why = g_strdup_printf("%s has %u and %u repeats, and an interval needs two or more on each side (run.repeat)",
					 h->name, h->n_a, h->n_b);
		return;
	}
	least = MAX(o->least, fabs(h->mean_a) * o->least_percent / 100);
	if (h->p < 1 - o->confidence && fabs(h->difference) >= least && h->difference != 0)
		p->verdict = h->difference > 0 ? VERDICT_HIGHER : VERDICT_LOWER;
	else if (fabs(h->difference) + h->half < least || (h->half == 0 && fabs(h->difference) <= least))
		p->verdict = VERDICT_SAME;
	else
		p->verdict = VERDICT_OPEN;
}

u32 compare_repeats_needed(const struct compare_pair *p, const struct compare_options *o)
{
	const struct compare_figure *h = &p->headline;
	double least = MAX(o->least, fabs(h->mean_a) * o->least_percent / 100), n = MIN(h->n_a, h->n_b);

	if (isnan(h->half) || least <= 0)
		return 0;
	/* The interval shrinks with the root of their number; it should be half of what counts. */
	n *= pow(2 * h->half / least, 2);
	return n > 1e6 ? 0 : MAX((u32)ceil(n), 2);
}

/* --- pairs --- */

static void pair_free(void *p)
{
	struct compare_pair *pair = p;

	g_free(pair->cell);
	g_free(pair->why);
	g_array_unref(pair->figures);
	g_free(pair);
}

/* Second sources, the engine's own, and counters once more as rates, are for --all. */
static bool is_shown(const struct compare *c, const char *group, const char *name, JsonObject *f)
{
	const char *source = summary_string(f, "source", "");

	if (c->options.all)
		return true;
	return !strchr(name, '@') && !g_str_has_prefix(name, "soft_") && strcmp(source, "kvm") &&
	       (strcmp(group, "rates") || !strcmp(source, "load"));
}

/* What both have, but for what stayed at 0 in both. A figure of two meanings is none. */
static void take_group(struct compare *c, struct compare_pair *p, const char *group)
{
	JsonObject *ga = summary_object(summary_object(p->a, "summary"), group);
	JsonObject *gb = summary_object(summary_object(p->b, "summary"), group);
	JsonObjectIter iter;
	const char *name;
	JsonNode *node;

	if (!ga || !gb)
		return;
	json_object_iter_init_ordered(&iter, ga);
	while (json_object_iter_next_ordered(&iter, &name, &node)) {
		JsonObject *a = json_node_get_object(node), *b = summary_object(gb, name);
		struct compare_figure f = { .group = group, .name = name };

		if (!b || !has_mean(a) || !has_mean(b) || !is_shown(c, group, name, a) || (p->headline.name && !strcmp(p->headline.name, name)))
			continue;
		compare_figures(a, b, c->options.confidence, &f);
		if (f.mean_a || f.mean_b)
			g_array_append_val(p->figures, f);
	}
}

static const char *image_of(JsonObject *cell)
{
	return summary_string(summary_object(summary_object(cell, "vm"), "kernel"), "sha256", "");
}

struct compare_pair *compare_pair_add(struct compare *c, JsonObject *cell_a, JsonObject *cell_b, const char *name_a,
				      const char *name_b, char *cell)
{
	struct compare_pair *p = g_new0(struct compare_pair, 1);

	*p = (struct compare_pair){
		.name_a = name_a, .name_b = name_b, .cell = cell, .a = cell_a, .b = cell_b,
		.other_image = strcmp(image_of(cell_a), image_of(cell_b)),
		.figures = g_array_new(FALSE, TRUE, sizeof(struct compare_figure)),
	};
	take_headline(c, p);
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++)
		take_group(c, p, groups[i]);
	g_ptr_array_add(c->pairs, p);
	return p;
}

bool compare_options_ok(const struct compare_options *o)
{
	if (!(o->confidence > 0.5 && o->confidence < 1))
		fb_err("--confidence %g: above 0.5 and below 1, such as 0.95", o->confidence);
	else if (!(o->least_percent >= 0 && isfinite(o->least_percent) && o->least >= 0 && isfinite(o->least)))
		fb_err("--least, --least-by: 0 or more");
	else
		return true;
	return false;
}

struct compare *compare_new(const struct compare_options *options)
{
	struct compare *c = g_new0(struct compare, 1);

	c->options = *options;
	c->pairs = g_ptr_array_new_with_free_func(pair_free);
	c->differs = g_ptr_array_new_with_free_func(g_free);
	c->alone = g_ptr_array_new_with_free_func(g_free);
	return c;
}

void compare_free(struct compare *c)
{
	g_ptr_array_unref(c->pairs);
	g_ptr_array_unref(c->differs);
	g_ptr_array_unref(c->alone);
	g_free(c);
}

/* --- all of them --- */

static void correct_figures(struct compare_pair *p)
{
	g_autofree double *values = g_new(double, p->figures->len);
	u32 i;

	for (i = 0; i < p->figures->len; i++)
		values[i] = g_array_index(p->figures, struct compare_figure, i).p;
	holm_adjust(values, p->figures->len);
	for (i = 0; i < p->figures->len; i++)
		g_array_index(p->figures, struct compare_figure, i).p = values[i];
}

void compare_settle(struct compare *c)
{
	g_autofree double *values = g_new(double, c->pairs->len);
	u32 i;

	for (i = 0; i < c->pairs->len; i++) {
		struct compare_pair *p = c->pairs->pdata[i];

		correct_figures(p);
		values[i] = p->headline.name ? p->headline.p : NAN;
	}
	holm_adjust(values, c->pairs->len);
	for (i = 0; i < c->pairs->len; i++) {
		struct compare_pair *p = c->pairs->pdata[i];

		p->headline.p = values[i];
		give_verdict(&c->options, p);
	}
}

static bool pair_fails(const struct compare_pair *p, enum compare_fail_on fail_on)
{
	int sign = p->verdict == VERDICT_HIGHER ? 1 : p->verdict == VERDICT_LOWER ? -1 : 0;

	if (fail_on == FAIL_ON_DIFFERENT)
		return sign;
	return fail_on == FAIL_ON_WORSE && sign && sign == -compare_direction(&p->headline);
}

bool compare_fail_on_ok(const struct compare *c, enum compare_fail_on fail_on)
{
	for (u32 i = 0; fail_on == FAIL_ON_WORSE && i < c->pairs->len; i++) {
		const struct compare_figure *h = &((struct compare_pair *)c->pairs->pdata[i])->headline;

		if (!h->name || compare_direction(h))
			continue;
		fb_err("%s is in %s, of which neither more nor less is worse: ask for \"different\", or for a headline in .../s, ns or us", h->name,
		       *h->unit ? h->unit : "no unit");
		return false;
	}
	return true;
}

int compare_status(const struct compare *c, enum compare_fail_on fail_on)
{
	int status = c->alone->len ? COMPARE_NO_VERDICT : COMPARE_VERDICT;

	if (!c->pairs->len)
		return COMPARE_REFUSED;
	for (u32 i = 0; i < c->pairs->len; i++) {
		const struct compare_pair *p = c->pairs->pdata[i];

		if (pair_fails(p, fail_on))
			return COMPARE_FAILED;
		if (p->verdict == VERDICT_NONE || p->verdict == VERDICT_OPEN)
			status = COMPARE_NO_VERDICT;
	}
	return status;
}
