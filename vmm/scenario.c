// SPDX-License-Identifier: GPL-2.0-only
/*
 * A scenario as a whole: file and overrides put together, cells of [vary], and
 * the checks that need more than one key.
 */
#include "scenario.h"

#include <errno.h>
#include <string.h>

#include "scenario-keys.h"

/* An axis of [vary] may switch several keys together: "a.x + b.y = 1 + 2, 3 + 4". */
#define JOIN	"+"

/*
 * A guest that spins for ever may never come to its own time limit where virtual time is
 * slower than the host's; unless the scenario says otherwise this many times the limit is enough.
 */
#define HOST_TIMEOUT_FACTOR	10

struct scenario_key *scenario_key_find(GPtrArray *keys, const char *section, const char *key)
{
	for (u32 i = 0; i < keys->len; i++) {
		struct scenario_key *k = keys->pdata[i];

		if (!strcmp(k->section, section) && !strcmp(k->key, key))
			return k;
	}
	return NULL;
}

/* Replace a key's value or add the key. */
static void put_key(GPtrArray *keys, const char *section, const char *key, const char *value,
		    const char *origin)
{
	struct scenario_key *k = scenario_key_find(keys, section, key);

	if (!k) {
		g_ptr_array_add(keys, scenario_key_new(section, key, value, origin));
		return;
	}
	g_free(k->value);
	g_free(k->origin);
	k->value = g_strdup(value);
	k->origin = g_strdup(origin);
}

/* "vm.topology" into its halves; false if there is no dot or an empty half. */
static bool split_name(const char *name, char **section, char **key)
{
	const char *dot = strchr(name, '.');

	if (!dot || dot == name || !dot[1])
		return false;
	*section = g_strndup(name, dot - name);
	*key = g_strdup(dot + 1);
	return true;
}

/* One --set. A key that is pinned so is no longer varied, so its name goes into `pinned`. */
static void apply_override(GPtrArray *keys, GPtrArray *pinned, const char *text,
			   const char *origin, struct scenario_problems *problems)
{
	const char *eq = strchr(text, '=');
	g_autofree char *section = NULL, *key = NULL, *err = NULL;
	g_autofree char *name = eq ? g_strstrip(g_strndup(text, eq - text)) : NULL;

	if (!eq || !split_name(name, &section, &key)) {
		scenario_problem(problems, origin, "\"%.200s\" is not section.key=value", text);
		return;
	}
	if (!g_utf8_validate(text, -1, NULL)) {
		scenario_problem(problems, origin, "%s is not UTF-8", name);
		return;
	}
	for (const char *p = text; *p; p++) {
		if ((u8)*p < 0x20 || *p == 0x7f) {
			scenario_problem(problems, origin, "%s has a control character", name);
			return;
		}
	}
	if (!scenario_section(section, &err)) {
		scenario_problem(problems, origin, "%s: %s", name, err);
		return;
	}

	g_autofree char *value = g_strstrip(g_strdup(eq + 1));

	put_key(keys, section, key, value, origin);
	if (strcmp(section, "vary"))
		g_ptr_array_add(pinned, g_steal_pointer(&name));
}

/* Build ------------------------------------------------------------------ */

static struct scenario *scenario_new(const char *path, const char *question)
{
	struct scenario *s = g_new0(struct scenario, 1);

	s->path = g_strdup(path);
	s->question = g_strdup(question);
	s->keys = g_ptr_array_new_with_free_func(scenario_key_free);
	s->add = g_ptr_array_new_with_free_func(g_free);
	s->knob_name = g_ptr_array_new_with_free_func(g_free);
	s->knob_value = g_ptr_array_new_with_free_func(g_free);
	s->inject_key = g_ptr_array_new_with_free_func(g_free);
	s->inject_value = g_ptr_array_new_with_free_func(g_free);
	s->vary_key = g_ptr_array_new_with_free_func(g_free);
	s->vary_values = g_ptr_array_new_with_free_func((GDestroyNotify)g_ptr_array_unref);
	return s;
}

void scenario_free(struct scenario *s)
{
	if (!s)
		return;
	g_free(s->path);
	g_free(s->question);
	g_free(s->node_memory);
	g_free(s->distance);
	g_free(s->cpu_model);
	g_free(s->cost_model);
	g_free(s->pin);
	g_free(s->kernel);
	g_free(s->initrd);
	g_free(s->disk);
	g_free(s->append);
	g_free(s->command);
	g_ptr_array_unref(s->keys);
	g_ptr_array_unref(s->add);
	g_ptr_array_unref(s->knob_name);
	g_ptr_array_unref(s->knob_value);
	g_ptr_array_unref(s->inject_key);
	g_ptr_array_unref(s->inject_value);
	g_ptr_array_unref(s->vary_key);
	g_ptr_array_unref(s->vary_values);
	g_free(s);
}

static void set_one(struct scenario *s, const struct scenario_key *k,
		    struct scenario_problems *problems)
{
	g_autofree char *err = NULL;

	if (!scenario_key_known(k->section, k->key, &err) ||
	    scenario_key_set(s, k->section, k->key, k->value, &err))
		scenario_problem(problems, k->origin, "%s.%s: %s%s", k->section, k->key, err,
				 strstr(k->value, " #") ? " (a comment is a whole line)" : "");
}

static int compare_keys(const void *a, const void *b)
{
	const struct scenario_key *const *x = a, *const *y = b;
	int order = strcmp((*x)->section, (*y)->section);

	return order ? order : strcmp((*x)->key, (*y)->key);
}

/* Keys outside the table (knobs, injections, unknown ones) by name, so that order in the file is nothing. */
static GPtrArray *other_keys(GPtrArray *keys)
{
	GPtrArray *other = g_ptr_array_new();

	for (u32 i = 0; i < keys->len; i++) {
		struct scenario_key *k = keys->pdata[i];

		if (strcmp(k->section, "vary") && !scenario_keydesc_find(k->section, k->key))
			g_ptr_array_add(other, k);
	}
	g_ptr_array_sort(other, compare_keys);
	return other;
}

/* Take over the values of `keys` and the defaults; what is wrong goes to `problems`. */
static void scenario_fill(struct scenario *s, GPtrArray *keys, struct scenario_problems *problems)
{
	g_autoptr(GPtrArray) other = other_keys(keys);

	for (u32 i = 0; i < scenario_nr_keydesc; i++) {
		const struct scenario_keydesc *desc = &scenario_keydesc[i];
		const struct scenario_key *k = scenario_key_find(keys, desc->section, desc->key);
		g_autofree char *err = NULL;

		if (k)
			set_one(s, k, problems);
		else if (desc->def && *desc->def && desc->set(s, desc->def, &err))
			g_error("default of %s.%s: %s", desc->section, desc->key, err);
	}
	for (u32 i = 0; i < other->len; i++)
		set_one(s, other->pdata[i], problems);
	for (u32 i = 0; i < keys->len; i++) {
		struct scenario_key *k = keys->pdata[i];

		if (strcmp(k->section, "vary"))
			put_key(s->keys, k->section, k->key, k->value, k->origin);
	}
}

/* Vary ------------------------------------------------------------------- */

static bool is_pinned(GPtrArray *pinned, const char *name)
{
	return g_ptr_array_find_with_equal_func(pinned, name, g_str_equal, NULL);
}

/* The names of one axis, each checked; NULL after a message. */
static GPtrArray *vary_names(const struct scenario_key *k, struct scenario_problems *problems)
{
	g_autoptr(GPtrArray) names = scenario_split(k->key, JOIN);

	for (u32 i = 0; i < names->len; i++) {
		const char *name = names->pdata[i];
		g_autofree char *section = NULL, *key = NULL, *err = NULL;

		if (!split_name(name, &section, &key)) {
			scenario_problem(
				problems, k->origin,
				"vary: \"%s\" is not section.key, like guest.knob.fault_path",
				name);
			return NULL;
		}
		if (!strcmp(section, "vary") || !scenario_section(section, &err)) {
			scenario_problem(problems, k->origin, "vary: %s: %s", name,
					 err ? err : "[vary] cannot vary itself");
			return NULL;
		}
		if (!scenario_key_known(section, key, &err)) {
			scenario_problem(problems, k->origin, "vary: %s: %s", name, err);
			return NULL;
		}
	}
	return g_steal_pointer(&names);
}

/*
 * Values are parted by commas, or by | where a value has commas itself. With
 * joint keys each has a part for each key, or one that goes for all of them.
 */
static GPtrArray *vary_values(const struct scenario_key *k, u32 nr_names,
			      struct scenario_problems *problems)
{
	g_autoptr(GPtrArray) values = scenario_split(k->value, strchr(k->value, '|') ? "|" : ",");

	if (!values->len) {
		scenario_problem(problems, k->origin, "vary: %s: no values", k->key);
		return NULL;
	}
	/* Before anything looks at each pair of them. */
	if (values->len > SCENARIO_MAX_CELLS) {
		scenario_problem(problems, k->origin, "vary: more than %u cells",
				 SCENARIO_MAX_CELLS);
		return NULL;
	}
	for (u32 i = 0; i < values->len; i++) {
		const char *value = values->pdata[i];
		g_autoptr(GPtrArray) parts = scenario_split(value, JOIN);

		if (!*value) {
			scenario_problem(problems, k->origin, "vary: %s: value %u is empty", k->key,
					 i + 1);
			return NULL;
		}
		if (nr_names > 1 && parts->len != 1 && parts->len != nr_names) {
			scenario_problem(problems, k->origin,
					 "vary: %s: \"%s\" has %u parts for %u keys", k->key, value,
					 parts->len, nr_names);
			return NULL;
		}
		for (u32 j = 0; j < i; j++) {
			if (!strcmp(values->pdata[j], value)) {
				scenario_problem(problems, k->origin,
						 "vary: %s: value %s stands twice", k->key, value);
				return NULL;
			}
		}
	}
	return g_steal_pointer(&values);
}

/* Names of the axis that --set did not pin, joined again; NULL if none is left. */
static char *unpinned(GPtrArray *names, GPtrArray *pinned)
{
	GString *left = g_string_new(NULL);

	for (u32 i = 0; i < names->len; i++)
		if (!is_pinned(pinned, names->pdata[i]))
			g_string_append_printf(left, "%s%s", left->len ? " " JOIN " " : "",
					       (char *)names->pdata[i]);
	return g_string_free(left, left->len == 0);
}

/* The value's parts that belong to unpinned names, joined again. */
static char *unpinned_value(const char *value, GPtrArray *names, GPtrArray *pinned)
{
	g_autoptr(GPtrArray) parts = scenario_split(value, JOIN);
	GString *left = g_string_new(NULL);

	if (names->len == 1 || parts->len == 1)
		return g_string_free(g_string_assign(left, value), FALSE);
	for (u32 i = 0; i < names->len; i++)
		if (!is_pinned(pinned, names->pdata[i]))
			g_string_append_printf(left, "%s%s", left->len ? " " JOIN " " : "",
					       (char *)parts->pdata[i]);
	return g_string_free(left, FALSE);
}

static void fill_vary(struct scenario *s, GPtrArray *keys, GPtrArray *pinned,
		      struct scenario_problems *problems)
{
	g_autoptr(GPtrArray) used = g_ptr_array_new_with_free_func(g_free);
	u64 cells = 1;

	for (u32 i = 0; i < keys->len; i++) {
		const struct scenario_key *k = keys->pdata[i];

		if (strcmp(k->section, "vary"))
			continue;

		g_autoptr(GPtrArray) names = vary_names(k, problems);
		g_autoptr(GPtrArray) values = names ? vary_values(k, names->len, problems) : NULL;

		if (!values)
			continue;
		for (u32 n = 0; n < names->len; n++) {
			if (is_pinned(used, names->pdata[n]))
				scenario_problem(problems, k->origin, "vary: %s is varied twice",
						 (char *)names->pdata[n]);
			g_ptr_array_add(used, g_strdup(names->pdata[n]));
		}

		char *name = unpinned(names, pinned);

		if (!name)
			continue;
		cells *= values->len;
		if (cells > SCENARIO_MAX_CELLS) {
			scenario_problem(problems, k->origin, "vary: more than %u cells",
					 SCENARIO_MAX_CELLS);
			g_free(name);
			return;
		}

		GPtrArray *kept = g_ptr_array_new_with_free_func(g_free);

		for (u32 v = 0; v < values->len; v++)
			g_ptr_array_add(kept, unpinned_value(values->pdata[v], names, pinned));
		g_ptr_array_add(s->vary_key, name);
		g_ptr_array_add(s->vary_values, kept);
	}
}

u32 scenario_cells(const struct scenario *s)
{
	u32 cells = 1;

	for (u32 i = 0; i < s->vary_values->len; i++)
		cells *= ((GPtrArray *)s->vary_values->pdata[i])->len;
	return cells;
}

char **scenario_cell(const struct scenario *s, u32 i)
{
	GPtrArray *out = g_ptr_array_new();
	u32 stride = scenario_cells(s);

	/* The first axis changes slowest, as a reader would write the table. */
	for (u32 axis = 0; axis < s->vary_key->len; axis++) {
		GPtrArray *values = s->vary_values->pdata[axis];
		g_autoptr(GPtrArray) names = scenario_split(s->vary_key->pdata[axis], JOIN);

		stride /= values->len;

		const char *value = values->pdata[i / stride % values->len];
		g_autoptr(GPtrArray) parts = scenario_split(value, JOIN);

		for (u32 n = 0; n < names->len; n++) {
			const char *part = names->len == 1 ? value :
					   parts->pdata[parts->len == 1 ? 0 : n];

			g_ptr_array_add(out,
					g_strdup_printf("%s=%s", (char *)names->pdata[n], part));
		}
	}
	g_ptr_array_add(out, NULL);
	return (char **)g_ptr_array_free(out, FALSE);
}

/* Cells and the public face ------------------------------------------------ */

u64 scenario_host_limit(const struct scenario *s, bool virtual_time)
{
	if (s->host_timeout_ns)
		return s->host_timeout_ns;
	return virtual_time ? HOST_TIMEOUT_FACTOR * s->timeout_ns : 0;
}

/* apic = auto takes an x2APIC where one is needed, if the engine has it; what `auto` will choose is not known here. */
static bool may_x2apic(const struct scenario *s)
{
	return s->apic == SCENARIO_APIC_X2APIC ||
	       (s->apic == SCENARIO_APIC_AUTO && (s->engine == ENGINE_SOFT || s->engine == ENGINE_AUTO));
}

bool scenario_needs_own_apic(const struct scenario *s)
{
	for (u32 i = 0; i < s->inject_key->len; i++)
		if (!g_str_has_prefix(s->inject_key->pdata[i], "blk."))
			return true;
	return false;
}

void scenario_topology(const struct scenario *s, struct topology_params *params)
{
	*params = (struct topology_params){
		.sockets = s->sockets,
		.cores = s->cores,
		.threads = s->threads,
		.order = s->cpu_order,
		.x2apic = may_x2apic(s),
		.nodes = s->nodes,
		.memory = s->memory,
		.node_memory = s->node_memory,
		.distance = s->distance,
		.nr_distance = s->nr_distance,
	};
}

const char *scenario_origin(const struct scenario *s, const char *section, const char *key)
{
	const struct scenario_key *k = scenario_key_find(s->keys, section, key);

	return k ? k->origin : "default";
}

/* The keys of a cell: those of the base with the axes' values, which bear the axes' lines. */
static GPtrArray *cell_keys(const struct scenario *s, GPtrArray *keys, u32 cell)
{
	GPtrArray *out = g_ptr_array_new_with_free_func(scenario_key_free);
	g_auto(GStrv) set = scenario_cell(s, cell);

	for (u32 i = 0; i < keys->len; i++) {
		const struct scenario_key *k = keys->pdata[i];

		if (strcmp(k->section, "vary"))
			put_key(out, k->section, k->key, k->value, k->origin);
	}
	for (char **o = set; *o; o++) {
		g_autofree char *section = NULL, *key = NULL;
		char *eq = strchr(*o, '=');
		const char *origin = s->path;

		*eq = '\0';
		for (u32 i = 0; i < keys->len; i++) {
			const struct scenario_key *k = keys->pdata[i];
			g_autoptr(GPtrArray) names = scenario_split(k->key, JOIN);

			if (!strcmp(k->section, "vary") && is_pinned(names, *o))
				origin = k->origin;
		}
		if (split_name(*o, &section, &key))
			put_key(out, section, key, eq + 1, origin);
	}
	return out;
}

static void check_cells(const struct scenario *s, GPtrArray *keys,
			struct scenario_problems *problems)
{
	for (u32 i = 0; i < scenario_cells(s); i++) {
		g_autoptr(GPtrArray) of_cell = cell_keys(s, keys, i);
		struct scenario *cell = scenario_new(s->path, "");
		u32 before = problems->count;

		scenario_fill(cell, of_cell, problems);
		if (!scenario_key_find(of_cell, "run", "command"))
			scenario_problem(problems, s->path,
					 "run.command is missing (true does nothing)");
		/* Values that could not be read have been reported; what follows from them is noise. */
		if (problems->count == before)
			scenario_check(cell, s, problems);
		scenario_free(cell);
	}
}

/* With `origin` there is no file: all is in `set`, and origin[i] says where set[i] came from. */
static struct scenario *load(const char *path, const char *const *set, const char *const *origin,
			     u32 nr_set)
{
	g_autoptr(GPtrArray) keys = g_ptr_array_new_with_free_func(scenario_key_free);
	g_autoptr(GPtrArray) pinned = g_ptr_array_new_with_free_func(g_free);
	g_autofree char *question = NULL;
	struct scenario_problems problems;
	struct scenario *s = NULL;

	scenario_problems_init(&problems);
	if (!origin && !scenario_file_read(path, keys, &question, &problems))
		goto out;
	for (u32 i = 0; i < nr_set; i++)
		apply_override(keys, pinned, set[i], origin ? origin[i] : "--set", &problems);
	s = scenario_new(path, question);
	fill_vary(s, keys, pinned, &problems);
	scenario_fill(s, keys, &problems);
	check_cells(s, keys, &problems);
out:
	if (problems.count) {
		scenario_free(s);
		s = NULL;
	}
	scenario_problems_destroy(&problems);
	return s;
}

struct scenario *scenario_load(const char *path, const char *const *set, u32 nr_set)
{
	return load(path, set, NULL, nr_set);
}

struct scenario *scenario_of(const char *name, const char *const *set, const char *const *origin,
			     u32 nr_set)
{
	return load(name, set, origin, nr_set);
}

GPtrArray *scenario_effective(const struct scenario *s)
{
	GPtrArray *out = g_ptr_array_new_with_free_func(g_free);
	g_autoptr(GPtrArray) other = other_keys(s->keys);

	for (u32 i = 0; i < scenario_nr_keydesc; i++) {
		const struct scenario_keydesc *desc = &scenario_keydesc[i];
		const struct scenario_key *k = scenario_key_find(s->keys, desc->section, desc->key);

		g_ptr_array_add(out, g_strdup_printf("%s.%s", desc->section, desc->key));
		g_ptr_array_add(out, g_strdup(k ? k->value : desc->def ? desc->def : ""));
	}
	for (u32 i = 0; i < other->len; i++) {
		const struct scenario_key *k = other->pdata[i];

		g_ptr_array_add(out, g_strdup_printf("%s.%s", k->section, k->key));
		g_ptr_array_add(out, g_strdup(k->value));
	}
	return out;
}
