// SPDX-License-Identifier: GPL-2.0-only
#include "cost-file.h"

#include <errno.h>
#include <string.h>

#include "base/nearest.h"
#include "cost-check.h"
#include "cost-value.h"
#include "scenario-keys.h"

static const char *const sections[] = { "cost", "memory" };

static const char *cost_section(const char *name, char **err)
{
	const char *near;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(sections); i++)
		if (strcmp(name, sections[i]) == 0)
			return sections[i];
	near = nearest_name(name, sections, ARRAY_SIZE(sections));
	scenario_fail(err, "unknown section [%.40s]%s%s%s; a cost model has [cost] and, if it models caches, [memory]",
		      name, near ? "; did you mean [" : "", near ? near : "", near ? "]?" : "");
	return NULL;
}

static const struct scenario_form cost_form = { .what = "cost model", .section = cost_section };

/* A key that its section does not have: of the other one, or of none. */
static void unknown_key(const struct scenario_key *k, int id, struct scenario_problems *problems)
{
	const char *near;

	if (id >= 0) {
		scenario_problem(problems, k->origin, "%s.%s: no key of [%s]; it belongs to [%s]", k->section, k->key,
				 k->section, cost_section_of(id));
		return;
	}
	near = cost_nearest(k->key);
	scenario_problem(problems, k->origin, "%s.%s: unknown key%s%s%s", k->section, k->key,
			 near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

static void take_key(struct cost_model *model, const struct scenario_key *k, struct scenario_problems *problems)
{
	int id = cost_find(k->key);
	g_autofree char *err = NULL;

	if (id < 0 || strcmp(k->section, cost_section_of(id)) != 0)
		unknown_key(k, id, problems);
	else if (cost_estimate_parse(&cost_desc[id], k->value, &model->v[id], &model->low[id], &model->high[id], &err))
		scenario_problem(problems, k->origin, "%s.%s: %s%s", k->section, k->key, err,
				 strstr(k->value, " #") ? " (a comment is a whole line)" : "");
}

static bool in_any_section(GPtrArray *keys, const char *name)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(sections); i++)
		if (scenario_key_find(keys, sections[i], name))
			return true;
	return false;
}

static void take_keys(struct cost_model *model, GPtrArray *keys, const char *path, struct scenario_problems *problems)
{
	u32 i;

	for (i = 0; i < keys->len; i++)
		take_key(model, keys->pdata[i], problems);
	/* One in the wrong section was complained of. */
	for (i = 0; i < NR_COSTS; i++)
		if ((!cost_desc[i].memory || model->memory) && !in_any_section(keys, cost_desc[i].name))
			scenario_problem(problems, path, "%s.%s is missing: %s", cost_section_of(i), cost_desc[i].name,
					 cost_desc[i].meaning);
}

/* A [memory] without a key is one that lacks them all, and leaves none in the list of keys. */
static bool has_memory(const char *text, GPtrArray *keys)
{
	g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
	u32 i;

	for (i = 0; i < keys->len; i++)
		if (strcmp(((struct scenario_key *)keys->pdata[i])->section, "memory") == 0)
			return true;
	for (i = 0; lines[i]; i++)
		if (strcmp(g_strstrip(lines[i]), "[memory]") == 0)
			return true;
	return false;
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
		model->memory = has_memory(text, keys);
		if (!problems.count)
			take_keys(model, keys, path, &problems);
		/* What follows from values that could not be read is noise. */
		if (!problems.count)
			cost_check_model(model, keys, path, &problems);
	}
	count = problems.count;
	scenario_problems_destroy(&problems);
	return count ? -EINVAL : 0;
}
