// SPDX-License-Identifier: GPL-2.0-only
/* Which cells belong together, and what differs between them besides the factor. See compare.h. */
#include <string.h>

#include "compare.h"
#include "front.h"
#include "result-json.h"
#include "summary.h"

/* What one changes on purpose. */
static bool is_factor(const char *key)
{
	return !strcmp(key, "guest.kernel") || g_str_has_prefix(key, "guest.knob.");
}

/*
 * What moves no mean: how many values there are, how long one would have waited. Engine and initramfs are compared as what ran, not
 * as what was asked for, and the headline has a sentence of its own.
 */
static bool is_no_matter(const char *key)
{
	static const char *const keys[] = {
		"guest.initrd", "run.repeat", "run.seed", "run.timeout", "run.boot_timeout", "run.host_timeout", "run.headline",
		"vm.engine",
	};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (!strcmp(key, keys[i]))
			return true;
	return false;
}

static void differ(struct compare *c, const char *key, const char *a, const char *b)
{
	char *line;

	if (!g_strcmp0(a, b))
		return;
	line = g_strdup_printf("%s: %s | %s", key, a ? a : "(not there)", b ? b : "(not there)");
	if (g_ptr_array_find_with_equal_func(c->differs, line, g_str_equal, NULL))
		g_free(line);
	else
		g_ptr_array_add(c->differs, line);
}

static bool is_scenario_free(const char *key)
{
	return is_factor(key) || is_no_matter(key);
}

/* What grows whatever one does. */
static bool is_host_free(const char *key)
{
	return !strcmp(key, "steal_ticks");
}

/* Members of two objects of strings but for the free ones; those of b that a has too were seen from a's side. */
static void differ_members(struct compare *c, JsonObject *a, JsonObject *b, const char *prefix, bool (*is_free)(const char *key))
{
	JsonObject *const sides[] = { a, b };

	for (int side = 0; side < 2; side++) {
		JsonObjectIter iter;
		const char *key;
		JsonNode *node;

		if (!sides[side])
			continue;
		json_object_iter_init_ordered(&iter, sides[side]);
		while (json_object_iter_next_ordered(&iter, &key, &node)) {
			const char *va = a ? summary_string(a, key, NULL) : NULL, *vb = b ? summary_string(b, key, NULL) : NULL;
			g_autofree char *name = g_strconcat(prefix, key, NULL);

			if (!is_free(key) && !(side == 1 && va))
				differ(c, name, va, vb);
		}
	}
}

static void differ_member(struct compare *c, JsonObject *a, JsonObject *b, const char *name, const char *key)
{
	differ(c, key, a ? summary_string(a, name, NULL) : NULL, b ? summary_string(b, name, NULL) : NULL);
}

/* A figure that counts another thing than its namesake. */
static void differ_meaning(struct compare *c, JsonObject *a, JsonObject *b, const char *group)
{
	JsonObject *ga = summary_object(a, group), *gb = summary_object(b, group);
	JsonObjectIter iter;
	const char *name;
	JsonNode *node;

	if (!ga || !gb)
		return;
	json_object_iter_init_ordered(&iter, ga);
	while (json_object_iter_next_ordered(&iter, &name, &node)) {
		JsonObject *fa = json_node_get_object(node), *fb = summary_object(gb, name);
		g_autofree char *unit = g_strdup_printf("unit of %s", name), *source = g_strdup_printf("source of %s", name);

		if (!fb)
			continue;
		differ_member(c, fa, fb, "unit", unit);
		differ_member(c, fa, fb, "source", source);
	}
}

static char *trust_text(JsonObject *vm)
{
	JsonArray *trust = summary_array(vm, "trust");
	GString *s = g_string_new(NULL);

	for (u32 i = 0; trust && i < json_array_get_length(trust); i++)
		g_string_append_printf(s, "%s%s", i ? "; " : "", json_array_get_string_element(trust, i));
	return g_string_free(s, FALSE);
}

/* A commit is a build only if nothing was changed since. g_free(). */
static char *build_text(JsonObject *provenance)
{
	const char *commit = summary_string(provenance, "commit", ""), *sum = summary_string(provenance, "vmm_sha256", "");

	return *commit && !g_str_has_suffix(commit, "-dirty") ? g_strdup(commit) : g_strdup_printf("%s VMM %.12s", commit, sum);
}

/* One binary is one build whatever the commit, which may have changed no more than a document. */
static void differ_build(struct compare *c, JsonObject *pa, JsonObject *pb)
{
	const char *sum_a = summary_string(pa, "vmm_sha256", ""), *sum_b = summary_string(pb, "vmm_sha256", "");
	g_autofree char *a = build_text(pa), *b = build_text(pb);

	if (!*sum_a || strcmp(sum_a, sum_b))
		differ(c, "faultbed's build", a, b);
}

/* Are repeats VMs of their own, or does each start from what the one before left? */
static const char *repeats_text(JsonObject *provenance)
{
	return summary_array(provenance, "order") ? "a VM each, by turns" : "in one VM";
}

/* What the cell's VMM said of its host. */
static JsonObject *cell_host(JsonObject *result, JsonObject *cell)
{
	JsonArray *cells = summary_array(result, "cells"), *of = summary_array(summary_object(result, "provenance"), "cells");

	for (u32 i = 0; cells && of && i < MIN(json_array_get_length(cells), json_array_get_length(of)); i++) {
		JsonNode *node = json_array_get_element(of, i);

		if (json_array_get_object_element(cells, i) == cell && JSON_NODE_HOLDS_OBJECT(node))
			return summary_object(json_node_get_object(node), "host");
	}
	return NULL;
}

/* The host that a figure hangs on: its CPUs, kernel and settings where time is the host's; nothing of it where it is not. */
static void differ_host(struct compare *c, JsonObject *result_a, JsonObject *cell_a, JsonObject *result_b, JsonObject *cell_b)
{
	JsonObject *pa = summary_object(result_a, "provenance"), *pb = summary_object(result_b, "provenance");
	JsonObject *ha = summary_object(pa, "host"), *hb = summary_object(pb, "host");

	differ_member(c, ha, hb, "cpu", "host CPU");
	differ_member(c, ha, hb, "kernel", "host kernel");
	if (summary_number(ha, "cpus", 0) != summary_number(hb, "cpus", 0))
		differ(c, "host CPUs", "another number", "of them");
	differ_member(c, pa, pb, "qemu", "QEMU");
	differ_members(c, cell_host(result_a, cell_a), cell_host(result_b, cell_b), "host ", is_host_free);
}

void compare_differences(struct compare *c, JsonObject *result_a, JsonObject *cell_a, JsonObject *result_b, JsonObject *cell_b)
{
	JsonObject *va = summary_object(cell_a, "vm"), *vb = summary_object(cell_b, "vm");
	JsonObject *sa = summary_object(cell_a, "summary"), *sb = summary_object(cell_b, "summary");
	JsonObject *scenario_a = summary_object(va, "scenario"), *scenario_b = summary_object(vb, "scenario");
	JsonObject *pa = summary_object(result_a, "provenance"), *pb = summary_object(result_b, "provenance");
	g_autofree char *ta = trust_text(va), *tb = trust_text(vb);

	/* A cell whose guest never came up has none of its own. */
	differ_members(c, scenario_a ? scenario_a : summary_object(result_a, "scenario"),
		       scenario_b ? scenario_b : summary_object(result_b, "scenario"), "", is_scenario_free);
	differ_member(c, result_a, result_b, "engine", "engine");
	if (va && vb) {
		differ_member(c, summary_object(va, "initrd"), summary_object(vb, "initrd"), "sha256", "contents of guest.initrd");
		differ_member(c, summary_object(va, "disk"), summary_object(vb, "disk"), "sha256", "contents of guest.disk");
		differ_member(c, summary_object(va, "cost_model"), summary_object(vb, "cost_model"), "sha256",
			      "contents of vm.cost_model");
		differ_member(c, va, vb, "feature_mask", "CPU features");
		differ_member(c, va, vb, "apic", "local APIC");
		differ(c, "trust", ta, tb);
	}
	differ_build(c, pa, pb);
	differ(c, "repeats", repeats_text(pa), repeats_text(pb));
	if (strcmp(summary_string(va, "time", "none"), "virtual"))
		differ_host(c, result_a, cell_a, result_b, cell_b);
	differ_meaning(c, sa, sb, "counters");
	differ_meaning(c, sa, sb, "reports");
	differ_meaning(c, sa, sb, "rates");
}

/* --- cells that belong together --- */

static JsonObject *cell_at(JsonArray *cells, u32 i)
{
	return json_array_get_object_element(cells, i);
}

static JsonObject *find_cell(JsonArray *cells, const char *name)
{
	for (u32 i = 0; i < json_array_get_length(cells); i++)
		if (!strcmp(summary_string(cell_at(cells, i), "name", ""), name))
			return cell_at(cells, i);
	return NULL;
}

void compare_add(struct compare *c, JsonNode *a, JsonNode *b, const char *name_a, const char *name_b)
{
	JsonObject *ra = json_node_get_object(a), *rb = json_node_get_object(b);
	JsonArray *ca = summary_array(ra, "cells"), *cb = summary_array(rb, "cells");
	bool single = json_array_get_length(ca) == 1 && json_array_get_length(cb) == 1;

	for (u32 i = 0; i < json_array_get_length(ca); i++) {
		JsonObject *cell = cell_at(ca, i);
		const char *name = summary_string(cell, "name", "");
		JsonObject *other = single ? cell_at(cb, 0) : find_cell(cb, name);

		if (!other) {
			g_ptr_array_add(c->alone, g_strdup_printf("cell %s is only in %s", name, name_a));
			continue;
		}
		compare_differences(c, ra, cell, rb, other);
		compare_pair_add(c, cell, other, name_a, name_b, g_strdup(name))->apart = true;
	}
	for (u32 i = 0; !single && i < json_array_get_length(cb); i++) {
		const char *name = summary_string(cell_at(cb, i), "name", "");

		if (!find_cell(ca, name))
			g_ptr_array_add(c->alone, g_strdup_printf("cell %s is only in %s", name, name_b));
	}
}

/* What [vary] sets in a cell: the factor's keys or the others, "key=value", joined by blanks. g_free(). */
static char *set_text(JsonObject *cell, bool factor)
{
	JsonObject *set = summary_object(cell, "set");
	GString *s = g_string_new(NULL);
	JsonObjectIter iter;
	const char *key;
	JsonNode *node;

	if (set) {
		json_object_iter_init_ordered(&iter, set);
		while (json_object_iter_next_ordered(&iter, &key, &node))
			if (is_factor(key) == factor)
				g_string_append_printf(s, "%s%s=%s", s->len ? " " : "", key, summary_string(set, key, "?"));
	}
	return g_string_free(s, FALSE);
}

bool compare_within(struct compare *c, JsonNode *result)
{
	JsonObject *root = json_node_get_object(result);
	JsonArray *cells = summary_array(root, "cells"), *order = summary_array(summary_object(root, "provenance"), "order");
	g_autoptr(GHashTable) first = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

	for (u32 i = 0; i < json_array_get_length(cells); i++) {
		JsonObject *cell = cell_at(cells, i);
		char *common = set_text(cell, false);
		JsonObject *base = g_hash_table_lookup(first, common);

		if (!base) {
			g_hash_table_insert(first, common, cell);
			continue;
		}
		compare_differences(c, root, base, root, cell);
		compare_pair_add(c, base, cell, summary_string(base, "name", ""), summary_string(cell, "name", ""),
				 *common ? common : g_strdup("only"))->apart = !order;
		if (!*common)
			g_free(common);
	}
	return c->pairs->len;
}
