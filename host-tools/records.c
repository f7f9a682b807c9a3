// SPDX-License-Identifier: GPL-2.0-only
#include "records.h"

#include <string.h>

#include "result-json.h"
#include "summary.h"

static struct cell *cell_of(struct job *job, const char *name)
{
	for (u32 i = 0; i < job->cells->len; i++) {
		struct cell *cell = job->cells->pdata[i];

		if (!g_strcmp0(cell->name, name))
			return cell;
	}
	return NULL;
}

static const char *string_member(JsonObject *o, const char *name)
{
	JsonNode *node = json_object_get_member(o, name);

	return node && JSON_NODE_HOLDS_VALUE(node) &&
	       json_node_get_value_type(node) == G_TYPE_STRING ? json_node_get_string(node) : NULL;
}

/* The cell, if the record was one and of a known cell; else NULL. */
static struct cell *take_record(struct job *job, JsonObject *o)
{
	const char *kind = string_member(o, "record");
	struct cell *cell = cell_of(job, string_member(o, "cell"));

	if (!kind || !cell)
		return NULL;
	if (!strcmp(kind, "vm")) {
		g_clear_pointer(&cell->vm, json_object_unref);
		cell->vm = json_object_ref(o);
	} else if (!strcmp(kind, "repeat")) {
		json_array_add_object_element(cell->repeats, json_object_ref(o));
	} else if (!strcmp(kind, "end")) {
		g_clear_pointer(&cell->end, json_object_unref);
		cell->end = json_object_ref(o);
		job_cell_ended(cell);
	} else {
		return NULL;
	}
	/* In the result they are named by where they stand. */
	json_object_remove_member(o, "record");
	json_object_remove_member(o, "cell");
	return cell;
}

/* NULL after the first problem's cause was put into *why. */
static struct cell *take_line(struct job *job, const char *line, size_t len, char **why)
{
	g_autoptr(JsonParser) parser = json_parser_new();
	g_autoptr(GError) err = NULL;
	struct cell *cell = NULL;
	JsonNode *root;

	if (result_too_deep(line, len)) {
		*why = g_strdup("nested too deep");
		return NULL;
	}
	if (!json_parser_load_from_data(parser, line, len, &err)) {
		*why = g_strdup(err->message);
		return NULL;
	}
	root = json_parser_get_root(parser);
	if (root && JSON_NODE_HOLDS_OBJECT(root))
		cell = take_record(job, json_node_get_object(root));
	if (!cell)
		*why = g_strdup("neither vm, repeat nor end of a known cell");
	return cell;
}

u32 records_parse(struct job *job, const char *text, size_t len, char **why)
{
	const char *at = text, *end = text + len, *behind = NULL;
	u32 bad = 0, line = 0;

	*why = NULL;
	while (at < end) {
		const char *nl = memchr(at, '\n', end - at);
		size_t n = nl ? (size_t)(nl - at) : (size_t)(end - at);
		g_autofree char *cause = NULL;
		struct cell *cell = NULL;

		line++;
		/* A line without its end was cut off, even if it should happen to parse. */
		if (!nl)
			cause = g_strdup("the last line is cut off");
		else if (n)
			cell = take_line(job, at, n, &cause);
		if (cause)
			bad++;
		if (cause && !*why)
			*why = behind ? g_strdup_printf("line %u, behind one of cell %s: %s", line,
							behind, cause)
				      : g_strdup_printf("line %u: %s", line, cause);
		if (cell)
			behind = cell->name;
		at += n + (nl ? 1 : 0);
	}
	return bad;
}

/* Smaller is rather kept. */
static u64 part_rank(const struct cell *cell, int repeat)
{
	u64 nr = repeat < 0 ? 0 : (u64)repeat;

	return summary_number(cell->end, "status", 0) ? nr : nr | BIT_ULL(32);
}

u32 records_of_repeat(struct job *job, struct cell *cell, int repeat, const char *text, size_t len, char **why)
{
	JsonObject *vm = g_steal_pointer(&cell->vm), *end = g_steal_pointer(&cell->end);
	u32 bad = records_parse(job, text, len, why);
	u64 rank = part_rank(cell, repeat);

	if ((vm || end) && cell->rank <= rank) {
		g_clear_pointer(&cell->vm, json_object_unref);
		g_clear_pointer(&cell->end, json_object_unref);
		cell->vm = vm;
		cell->end = end;
		return bad;
	}
	g_clear_pointer(&vm, json_object_unref);
	g_clear_pointer(&end, json_object_unref);
	cell->rank = rank;
	return bad;
}

u32 records_read(struct job *job, const char *path, char **why)
{
	g_autofree char *text = NULL;
	size_t len;

	*why = NULL;
	if (!g_file_get_contents(path, &text, &len, NULL))
		return 0;
	return records_parse(job, text, len, why);
}
