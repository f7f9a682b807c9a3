// SPDX-License-Identifier: GPL-2.0-only
#include "cost-change.h"

#include <errno.h>
#include <string.h>

#include "cost-check.h"
#include "cost-value.h"
#include "scenario-keys.h"

/* More is no question about a machine any more. */
#define MOST_FACTOR	1000.0

bool cost_change_known(const char *key, char **err)
{
	const char *near;

	if (cost_find(key) >= 0)
		return true;
	near = cost_nearest(key);
	scenario_fail(err, "no number of a cost model%s%s%s", near ? "; did you mean " : "", near ? near : "",
		      near ? "?" : "");
	return false;
}

/* "*1.2" */
static int parse_factor(const char *text, double *factor, char **err)
{
	if (!cost_is_decimal(text + 1))
		return scenario_fail(err, "\"%s\": a factor is *NUMBER, like *1.2", text);
	*factor = g_ascii_strtod(text + 1, NULL);
	if (*factor > MOST_FACTOR)
		return scenario_fail(err, "\"%s\": a factor is %g at most", text, MOST_FACTOR);
	return 0;
}

int cost_change_form(const char *key, const char *value, char **err)
{
	const struct cost_desc *d = &cost_desc[cost_find(key)];
	double factor;
	u64 number;

	if (*value == '*')
		return parse_factor(value, &factor, err);
	if (!strcmp(value, "low") || !strcmp(value, "high"))
		return 0;
	if (!strcmp(value, "auto")) {
		if (d == &cost_desc[COST_quantum])
			return 0;
		return scenario_fail(err, "only the quantum can be auto");
	}
	if (!cost_value_parse(d, value, &number, err))
		return 0;
	if (strchr(value, '('))
		return -EINVAL;
	/* The parser's own words are of values; here it might have been meant as something else. */
	g_autofree char *why = *err;

	*err = NULL;
	return scenario_fail(err, "%s; or *FACTOR, low or high, by what the cost model has", why);
}

/* The lookahead: what no line of another core comes sooner than. */
static u64 shortest_way(const struct cost_model *m)
{
	u64 ps = MIN(MIN(cost(m, line_socket_clean), cost(m, line_socket_dirty)),
		     MIN(cost(m, line_remote_clean), cost(m, line_remote_dirty)));

	return MAX(ps / 1000, 1ull);
}

static void change_one(struct cost_model *m, const struct cost_model *was, const struct scenario_key *k,
		       struct scenario_problems *problems)
{
	int id = cost_find(k->key);
	const struct cost_desc *d = &cost_desc[id];
	g_autofree char *err = NULL;
	double factor;

	if (d->memory && !m->memory) {
		scenario_problem(problems, k->origin, "cost.%s: %s has no [memory]: it models no caches and no lines",
				 k->key, m->name);
		return;
	}
	if (*k->value == '*') {
		if (!parse_factor(k->value, &factor, &err))
			m->v[id] = (u64)((double)was->v[id] * factor + 0.5);
	} else if (!strcmp(k->value, "low")) {
		m->v[id] = was->low[id];
	} else if (!strcmp(k->value, "high")) {
		m->v[id] = was->high[id];
	} else if (strcmp(k->value, "auto")) {
		cost_value_parse(d, k->value, &m->v[id], &err);
	} else if (!m->memory) {
		scenario_problem(problems, k->origin, "cost.%s = auto: %s has no [memory], and no lines whose way it would be",
				 k->key, m->name);
	}
}

/* The model's own digest, and what is no longer as it was. */
static void change_digest(struct cost_model *m, const struct cost_model *was)
{
	g_autoptr(GString) text = g_string_new(was->digest);
	g_autofree char *digest = NULL;
	u32 i;

	for (i = 0; i < NR_COSTS; i++) {
		if (m->v[i] == was->v[i])
			continue;
		m->changed = true;
		g_string_append_printf(text, " %s=%llu", cost_desc[i].name, (unsigned long long)m->v[i]);
	}
	if (!m->changed)
		return;
	digest = g_compute_checksum_for_string(G_CHECKSUM_SHA256, text->str, -1);
	g_strlcpy(m->digest, digest, sizeof(m->digest));
}

int cost_change(struct cost_model *model, const struct scenario *s)
{
	const struct cost_model was = *model;
	struct scenario_problems problems;
	const struct scenario_key *quantum = scenario_key_find(s->keys, "cost", "quantum");
	u32 i, count, nr = 0;

	scenario_problems_init(&problems);
	for (i = 0; i < s->keys->len; i++) {
		const struct scenario_key *k = s->keys->pdata[i];

		if (strcmp(k->section, "cost"))
			continue;
		change_one(model, &was, k, &problems);
		nr++;
	}
	if (quantum && model->memory && !strcmp(quantum->value, "auto"))
		cost(model, quantum) = shortest_way(model);
	if (nr && !problems.count)
		cost_check_change(model, s->keys, s->path, &problems);
	if (!problems.count)
		change_digest(model, &was);
	count = problems.count;
	scenario_problems_destroy(&problems);
	return count ? -EINVAL : 0;
}
