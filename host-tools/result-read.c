// SPDX-License-Identifier: GPL-2.0-only
/* Results read back: files that anybody may have written, so checked before the rest trusts their shape. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "result-json.h"
#include "summary.h"

#define MAX_RESULT_BYTES	(256u << 20)
/* A result of ours is nested 8 deep. */
#define MAX_DEPTH		64u

bool result_too_deep(const char *text, size_t len)
{
	bool quoted = false;
	u32 depth = 0;

	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (quoted && c == '\\')
			i++;
		else if (c == '"')
			quoted = !quoted;
		else if (!quoted && (c == '{' || c == '[') && ++depth > MAX_DEPTH)
			return true;
		else if (!quoted && (c == '}' || c == ']') && depth)
			depth--;
	}
	return false;
}

static bool is_number(JsonNode *node)
{
	return JSON_NODE_HOLDS_VALUE(node) && (json_node_get_value_type(node) == G_TYPE_INT64 ||
					       json_node_get_value_type(node) == G_TYPE_DOUBLE);
}

static bool is_string(JsonNode *node)
{
	return JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_STRING;
}

/* Member `name` of o, if it is there, is an array of such elements. */
static bool is_list(JsonObject *o, const char *name, bool (*element)(JsonNode *node))
{
	JsonNode *node = json_object_get_member(o, name);
	JsonArray *a = node && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;

	for (u32 i = 0; a && i < json_array_get_length(a); i++)
		if (!element(json_array_get_element(a, i)))
			return false;
	return !node || a;
}

/* NULL, or what is wrong with summary.of, whose members are figures. g_free(). */
static char *bad_figures(JsonObject *summary, const char *of, bool must)
{
	JsonObject *all = summary_object(summary, of);
	JsonObjectIter iter;
	const char *name;
	JsonNode *node;

	if (!all)
		return must || json_object_has_member(summary, of) ?
			g_strdup_printf("summary.%s is not an object", of) : NULL;
	json_object_iter_init_ordered(&iter, all);
	while (json_object_iter_next_ordered(&iter, &name, &node)) {
		JsonObject *o = JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;

		if (!o)
			return g_strdup_printf("summary.%s.%s is not an object", of, name);
		if (!is_list(o, "trust", is_string) || !is_list(o, "remarks", is_string))
			return g_strdup_printf("summary.%s.%s: trust and remarks are lists of strings",
					       of, name);
		if (!is_list(o, "buckets", is_number))
			return g_strdup_printf("summary.%s.%s: buckets is a list of numbers", of, name);
	}
	return NULL;
}

/* The same of one cell. */
static char *bad_cell(JsonNode *node)
{
	static const struct {
		const char *name;
		bool must;
	} parts[] = {
		{ "counters", true }, { "rates", true }, { "reports", true }, { "histograms", false },
	};
	JsonObject *cell = JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
	JsonObject *summary = summary_object(cell, "summary");

	if (!summary || !summary_string(cell, "name", NULL))
		return g_strdup("a cell without name or summary");
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		g_autofree char *bad = bad_figures(summary, parts[i].name, parts[i].must);

		if (bad)
			return g_strdup_printf("cell %s: %s", summary_string(cell, "name", ""), bad);
	}
	if (summary_object(cell, "vm") && !is_list(summary_object(cell, "vm"), "trust", is_string))
		return g_strdup_printf("cell %s: vm.trust is not a list of strings", summary_string(cell, "name", ""));
	if (!summary_object(summary, "time"))
		return g_strdup_printf("cell %s: summary.time is not an object",
				       summary_string(cell, "name", ""));
	return NULL;
}

/* NULL if it is what the rest of the front end takes for granted. g_free(). */
static char *bad_shape(JsonNode *root)
{
	JsonObject *o = JSON_NODE_HOLDS_OBJECT(root) ? json_node_get_object(root) : NULL;
	JsonArray *cells;
	char *bad = NULL;

	if (!o || strcmp(summary_string(o, "schema", ""), RESULT_SCHEMA))
		return g_strdup("not a result of schema " RESULT_SCHEMA);
	cells = summary_array(o, "cells");
	if (!cells || !json_array_get_length(cells) || !summary_object(o, "scenario"))
		return g_strdup("a result without cells or scenario");
	for (u32 i = 0; !bad && i < json_array_get_length(cells); i++)
		bad = bad_cell(json_array_get_element(cells, i));
	return bad;
}

/* A regular file of a size that makes sense; NULL after a message. g_free(). */
static char *read_text(const char *path, size_t *len)
{
	g_autoptr(GError) err = NULL;
	struct stat st;
	char *text;

	if (stat(path, &st)) {
		fb_err("%s: %s", path, g_strerror(errno));
		return NULL;
	}
	if (!S_ISREG(st.st_mode)) {
		fb_err("%s: %s; a result is a file", path,
		       S_ISDIR(st.st_mode) ? "a folder" : "not a regular file");
		return NULL;
	}
	if (st.st_size > MAX_RESULT_BYTES) {
		fb_err("%s: more than %u MiB; this is no result", path, MAX_RESULT_BYTES >> 20);
		return NULL;
	}
	if (!g_file_get_contents(path, &text, len, &err)) {
		fb_err("%s", err->message);
		return NULL;
	}
	return text;
}

JsonNode *result_read(const char *path)
{
	g_autoptr(JsonParser) parser = json_parser_new();
	g_autoptr(GError) err = NULL;
	size_t len;
	g_autofree char *text = read_text(path, &len), *bad = NULL;
	JsonNode *root;

	if (!text)
		return NULL;
	if (result_too_deep(text, len)) {
		fb_err("%s: nested more than %u deep; this is no result", path, MAX_DEPTH);
		return NULL;
	}
	if (!json_parser_load_from_data(parser, text, len, &err)) {
		fb_err("%s: %s", path, err->message);
		return NULL;
	}
	root = json_parser_get_root(parser);
	bad = root ? bad_shape(root) : g_strdup("empty");
	if (bad) {
		fb_err("%s: %s", path, bad);
		return NULL;
	}
	return json_node_copy(root);
}
