// SPDX-License-Identifier: GPL-2.0-only
#include "cost-file.h"

#include <errno.h>
#include <string.h>

#include "base/nearest.h"
#include "scenario-keys.h"

static const char *cost_section(const char *name, char **err)
{
	if (strcmp(name, "cost") == 0)
		return "cost";
	scenario_fail(err, "unknown section [%.40s]; a cost model has [cost] only", name);
	return NULL;
}

static const struct scenario_form cost_form = { .what = "cost model", .section = cost_section };

/* The range of a cost as a file would write it. */
static int out_of_range(const struct cost_desc *d, const char *text, char **err)
{
	switch (d->kind) {
	case COST_KIND_CYCLES:
		return scenario_fail(err, "\"%s\" is not between %g and %g cycles", text, d->min, d->max);
	case COST_KIND_NS:
		return scenario_fail(err, "\"%s\" is not between %gns and %gms", text, d->min, d->max / 1e6);
	case COST_KIND_HZ:
		return scenario_fail(err, "\"%s\" is not between %gMHz and %gGHz", text, d->min / 1e6, d->max / 1e9);
	case COST_KIND_COUNT:
		break;
	}
	return scenario_fail(err, "\"%s\" is not between %g and %g", text, d->min, d->max);
}

/* Digits with at most one point among them: no sign, exponent, "inf" or hexadecimal. */
static bool is_decimal(const char *text)
{
	const char *point = strchr(text, '.');

	return g_ascii_isdigit(*text) && strspn(text, "0123456789.") == strlen(text) &&
	       (!point || (g_ascii_isdigit(point[1]) && !strchr(point + 1, '.')));
}

static int parse_cycles(const struct cost_desc *d, const char *text, u64 *value, char **err)
{
	double cycles;

	if (!is_decimal(text))
		return scenario_fail(err, "\"%s\" is not a number of cycles: decimal and without a unit, like 7 or 0.5", text);
	cycles = g_ascii_strtod(text, NULL);
	if (cycles < d->min || cycles > d->max)
		return out_of_range(d, text, err);
	*value = (u64)(cycles * (double)COST_CYCLE + 0.5);
	if (!*value && cycles > 0)
		return scenario_fail(err, "\"%s\" is nothing: cycles are counted in steps of 1/%llu", text, COST_CYCLE);
	return 0;
}

static int parse_cost(const struct cost_desc *d, const char *text, u64 *value, char **err)
{
	int ret = 0;

	switch (d->kind) {
	case COST_KIND_CYCLES:
		return parse_cycles(d, text, value, err);
	case COST_KIND_NS:
		ret = scenario_parse_time(text, value, err);
		break;
	case COST_KIND_HZ:
		ret = scenario_parse_frequency(text, value, err);
		break;
	case COST_KIND_COUNT:
		if (!g_ascii_string_to_unsigned(text, 10, 0, UINT32_MAX, value, NULL))
			return scenario_fail(err, "\"%s\" is not a whole number", text);
		break;
	}
	if (!ret && ((double)*value < d->min || (double)*value > d->max))
		return out_of_range(d, text, err);
	return ret;
}

static int cost_find(const char *name)
{
	u32 i;

	for (i = 0; i < NR_COSTS; i++)
		if (strcmp(cost_desc[i].name, name) == 0)
			return (int)i;
	return -1;
}

static void unknown_key(const struct scenario_key *k, struct scenario_problems *problems)
{
	const char *names[NR_COSTS], *near;
	u32 i;

	for (i = 0; i < NR_COSTS; i++)
		names[i] = cost_desc[i].name;
	near = nearest_name(k->key, names, NR_COSTS);
	scenario_problem(problems, k->origin, "cost.%s: unknown key%s%s%s", k->key, near ? "; did you mean " : "",
			 near ? near : "", near ? "?" : "");
}

/* Where a key stands, or the whole model's place if it came from no file. */
static const char *origin_of(GPtrArray *keys, enum cost_id id, const char *origin)
{
	const struct scenario_key *k = keys ? scenario_key_find(keys, "cost", cost_desc[id].name) : NULL;

	return k ? k->origin : origin;
}

/* A TLB is looked up by the low bits of the page number, so its sets are a power of two. */
static void check_tlbs(const struct cost_model *m, GPtrArray *keys, const char *origin,
		       struct scenario_problems *problems)
{
	static const enum cost_id tlb[][2] = {
		{ COST_l1d_4k_entries, COST_l1d_4k_ways }, { COST_l1d_2m_entries, COST_l1d_2m_ways },
		{ COST_l1d_1g_entries, COST_l1d_1g_ways }, { COST_l1i_4k_entries, COST_l1i_4k_ways },
		{ COST_l1i_2m_entries, COST_l1i_2m_ways }, { COST_l2_entries, COST_l2_ways },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(tlb); i++) {
		const char *name = cost_desc[tlb[i][1]].name, *of = cost_desc[tlb[i][0]].name;
		u64 entries = m->v[tlb[i][0]], ways = m->v[tlb[i][1]], sets = entries / ways;

		if (entries % ways)
			scenario_problem(problems, origin_of(keys, tlb[i][1], origin),
					 "cost.%s: %llu ways do not divide the %llu entries of %s", name,
					 (unsigned long long)ways, (unsigned long long)entries, of);
		else if (sets & (sets - 1))
			scenario_problem(problems, origin_of(keys, tlb[i][1], origin),
					 "cost.%s: %llu entries of %llu ways make %llu sets, which is no power of two",
					 name, (unsigned long long)entries, (unsigned long long)ways,
					 (unsigned long long)sets);
	}
}

/*
 * Within one quantum a CPU may be ahead of another, so what the one does must not reach
 * the other sooner (DESIGN: the lookahead of the lockstep).
 */
static void check_quantum(const struct cost_model *m, GPtrArray *keys, const char *origin,
			  struct scenario_problems *problems)
{
	static const enum cost_id latency[] = { COST_ipi_smt, COST_ipi_socket, COST_ipi_remote };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(latency); i++)
		if (m->v[latency[i]] < m->v[COST_quantum])
			scenario_problem(problems, origin_of(keys, latency[i], origin),
					 "cost.%s: %lluns is shorter than the quantum of %lluns, and an interrupt would come before it was sent",
					 cost_desc[latency[i]].name, (unsigned long long)m->v[latency[i]],
					 (unsigned long long)m->v[COST_quantum]);
}

static void check_model(const struct cost_model *m, GPtrArray *keys, const char *origin,
			struct scenario_problems *problems)
{
	check_tlbs(m, keys, origin, problems);
	check_quantum(m, keys, origin, problems);
}

int cost_check(const struct cost_model *model, const char *origin)
{
	struct scenario_problems problems;
	u32 count;

	scenario_problems_init(&problems);
	check_model(model, NULL, origin, &problems);
	count = problems.count;
	scenario_problems_destroy(&problems);
	return count ? -EINVAL : 0;
}

static void take_keys(struct cost_model *model, GPtrArray *keys, const char *path, struct scenario_problems *problems)
{
	u32 i;

	for (i = 0; i < keys->len; i++) {
		const struct scenario_key *k = keys->pdata[i];
		int id = cost_find(k->key);
		g_autofree char *err = NULL;

		if (id < 0)
			unknown_key(k, problems);
		else if (parse_cost(&cost_desc[id], k->value, &model->v[id], &err))
			scenario_problem(problems, k->origin, "cost.%s: %s%s", k->key, err,
					 strstr(k->value, " #") ? " (a comment is a whole line)" : "");
	}
	for (i = 0; i < NR_COSTS; i++)
		if (!scenario_key_find(keys, "cost", cost_desc[i].name))
			scenario_problem(problems, path, "cost.%s is missing: %s", cost_desc[i].name,
					 cost_desc[i].meaning);
}

static void take_name(struct cost_model *model, const char *path, struct scenario_problems *problems)
{
	g_autofree char *base = g_path_get_basename(path);

	if (g_str_has_suffix(base, ".ini"))
		base[strlen(base) - strlen(".ini")] = '\0';
	if (g_strlcpy(model->name, base, sizeof(model->name)) >= sizeof(model->name))
		scenario_problem(problems, path, "a cost model's name has %zu bytes at most", sizeof(model->name) - 1);
}

int cost_file_load(const char *path, struct cost_model *model)
{
	g_autoptr(GPtrArray) keys = g_ptr_array_new_with_free_func(scenario_key_free);
	struct scenario_problems problems;
	g_autofree char *text = NULL, *digest = NULL;
	size_t len;
	u32 count;

	memset(model, 0, sizeof(*model));
	scenario_problems_init(&problems);
	text = scenario_file_text(path, &cost_form, &len, &problems);
	if (text) {
		take_name(model, path, &problems);
		digest = g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guchar *)text, len);
		g_strlcpy(model->digest, digest, sizeof(model->digest));
		scenario_text_scan(path, text, len, &cost_form, keys, &problems);
		if (!problems.count)
			take_keys(model, keys, path, &problems);
		/* What follows from values that could not be read is noise. */
		if (!problems.count)
			check_model(model, keys, path, &problems);
	}
	count = problems.count;
	scenario_problems_destroy(&problems);
	return count ? -EINVAL : 0;
}
