// SPDX-License-Identifier: GPL-2.0-only
/* A profile as tables, and as folded stacks. Its members may be anybody's, so each is looked up with a default. */
#include "show-profile.h"

#include <stdlib.h>
#include <string.h>

#include "front.h"
#include "show.h"
#include "summary.h"

#define CLASS_WIDTH	18
#define FUNCTION_WIDTH	34
#define FUNCTIONS_SHOWN	25u
#define USERS_SHOWN	4u
#define THREADS_SHOWN	16u
#define PHASE_FUNCTIONS_SHOWN	5

JsonObject *profile_of(JsonObject *cell, u32 repeat)
{
	JsonArray *repeats = summary_array(cell, "repeats");
	JsonNode *node;

	if (!repeats || repeat >= json_array_get_length(repeats))
		return NULL;
	node = json_array_get_element(repeats, repeat);
	return JSON_NODE_HOLDS_OBJECT(node) ? summary_object(json_node_get_object(node), "profile") : NULL;
}

/* Element i if it is an object, else NULL. */
static JsonObject *object_at(JsonArray *a, u32 i)
{
	JsonNode *node = json_array_get_element(a, i);

	return JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
}

static u32 length_of(JsonArray *a)
{
	return a ? json_array_get_length(a) : 0;
}

static double sum_of(JsonArray *a)
{
	double sum = 0;

	for (u32 i = 0; i < length_of(a); i++) {
		JsonNode *node = json_array_get_element(a, i);

		if (JSON_NODE_HOLDS_VALUE(node))
			sum += json_node_get_double(node);
	}
	return sum;
}

static double share(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : 0;
}

static void put_cycles(FILE *to, double cycles, int width)
{
	g_autofree char *text = front_grouped(cycles, 0);

	fprintf(to, " %*s", width, text);
}

static void show_time(FILE *to, JsonObject *profile)
{
	JsonArray *elapsed = summary_array(profile, "elapsed");
	JsonObject *time = summary_object(profile, "time");
	double hz = summary_number(profile, "hz", 0), all = sum_of(elapsed);
	g_autofree char *text = front_duration(hz > 0 ? all / hz * 1e9 : 0);
	JsonObjectIter iter;
	const char *name;
	JsonNode *node;

	fprintf(to, "\n %u vCPUs, %s of their time, in cycles:\n\n", length_of(elapsed), text);
	if (!time)
		return;
	json_object_iter_init_ordered(&iter, time);
	while (json_object_iter_next_ordered(&iter, &name, &node)) {
		double total = JSON_NODE_HOLDS_OBJECT(node) ?
			summary_number(json_node_get_object(node), "total", 0) : 0;

		fprintf(to, "   %-*s", CLASS_WIDTH, name);
		put_cycles(to, total, 18);
		fprintf(to, " %6.2f%%\n", share(total, all));
	}
	fprintf(to, "   %-*s", CLASS_WIDTH, "all");
	put_cycles(to, all, 18);
	fputc('\n', to);
}

/* "page fault 81%, syscall munmap 19%": what brought the vCPUs there. */
static void show_entries(FILE *to, JsonObject *function, double self)
{
	JsonObject *entries = summary_object(function, "entries");
	bool first = true;
	JsonObjectIter iter;
	const char *name;
	JsonNode *node;

	if (!entries)
		return;
	json_object_iter_init_ordered(&iter, entries);
	while (json_object_iter_next_ordered(&iter, &name, &node)) {
		double percent = share(summary_number(entries, name, 0), self);

		if (percent < 1 || !strcmp(name, "none"))
			continue;
		fprintf(to, "%s%s %.0f%%", first ? "  " : ", ", name, percent);
		first = false;
	}
}

static void show_functions(FILE *to, JsonObject *profile)
{
	JsonArray *functions = summary_array(profile, "functions");
	double sampled = summary_number(profile, "sampled", 0), rest = summary_number(profile, "functions_other", 0);

	fprintf(to, "\n   %-*s %18s %7s %7s %7s  entered by\n", FUNCTION_WIDTH, "function (not idle)", "cycles of its own", "",
		"waiting", "total");
	for (u32 i = 0; i < length_of(functions); i++) {
		JsonObject *f = object_at(functions, i);
		double self = f ? summary_number(f, "self", 0) : 0;

		if (i >= FUNCTIONS_SHOWN) {
			rest += self;
			continue;
		}
		if (!f)
			continue;
		fprintf(to, "   %-*s", FUNCTION_WIDTH, summary_string(f, "function", "?"));
		put_cycles(to, self, 18);
		fprintf(to, " %6.2f%% %6.0f%%", share(self, sampled), share(summary_number(f, "stall", 0), self));
		if (json_object_has_member(f, "total"))
			fprintf(to, " %6.2f%%", share(summary_number(f, "total", 0), sampled));
		else
			fprintf(to, " %7s", "");
		show_entries(to, f, self);
		fputc('\n', to);
	}
	fprintf(to, "   %-*s", FUNCTION_WIDTH, "all others");
	put_cycles(to, rest, 18);
	fprintf(to, " %6.2f%%\n", share(rest, sampled));
}

static double number_at(JsonArray *a, u32 i)
{
	JsonNode *node = i < length_of(a) ? json_array_get_element(a, i) : NULL;

	return node && JSON_NODE_HOLDS_VALUE(node) ? json_node_get_double(node) : 0;
}

/* A row of the matrix: reads and writes of one function by the socket they came from. */
static void show_user_sockets(FILE *to, JsonObject *user)
{
	JsonArray *reads = summary_array(user, "reads_by_socket"), *writes = summary_array(user, "writes_by_socket");
	u32 nr = MAX(length_of(reads), length_of(writes));

	if (nr < 2)
		return;
	fprintf(to, "; read/written by socket");
	for (u32 s = 0; s < nr; s++)
		fprintf(to, " %.0f/%.0f", number_at(reads, s), number_at(writes, s));
}

static void show_line_users(FILE *to, JsonObject *line)
{
	JsonArray *users = summary_array(line, "users");
	double wait = summary_number(line, "wait", 0);

	for (u32 i = 0; i < MIN(length_of(users), USERS_SHOWN); i++) {
		JsonObject *u = object_at(users, i);

		if (!u)
			continue;
		fprintf(to, "        %-*s %12.0f accesses, %.0f writes, %.0f%% of the wait", FUNCTION_WIDTH,
			summary_string(u, "function", "?"), summary_number(u, "accesses", 0),
			summary_number(u, "writes", 0), share(summary_number(u, "wait", 0), wait));
		show_user_sockets(to, u);
		fputc('\n', to);
	}
}

static void show_lines(FILE *to, JsonObject *profile)
{
	JsonArray *lines = summary_array(profile, "lines");

	if (!length_of(lines))
		return;
	fprintf(to, "\n   cache lines by waiting; transfers are from other cores, or had to queue; queue is how many wait in it at a time:\n");
	for (u32 i = 0; i < length_of(lines); i++) {
		JsonObject *l = object_at(lines, i);
		JsonArray *sockets = l ? summary_array(l, "sockets") : NULL;
		double transfers = l ? summary_number(l, "transfers", 0) : 0;

		if (!l || transfers <= 0)
			continue;
		fprintf(to, "   %2u. %s\n       ", i + 1, summary_string(l, "name", "?"));
		put_cycles(to, summary_number(l, "wait", 0), 0);
		fprintf(to, " cycles in %.0f transfers (%.0f to write), %.0f each, of which %.0f in the queue", transfers,
			summary_number(l, "writes", 0), summary_number(l, "wait", 0) / transfers,
			summary_number(l, "queued", 0) / transfers);
		if (json_object_has_member(l, "queue"))
			fprintf(to, "; queue %.3g", summary_number(l, "queue", 0));
		for (u32 s = 0; length_of(sockets) > 1 && s < length_of(sockets); s++)
			fprintf(to, "%s%.0f", s ? " " : "; by socket ", number_at(sockets, s));
		fputc('\n', to);
		show_line_users(to, l);
	}
}

/* Members but `not` that are at least 1% of `all`, in their order, `most` of them (-1: all), and the line's end. */
static void show_shares(FILE *to, JsonObject *o, const char *not, double all, int most)
{
	JsonObjectIter iter;
	const char *name;
	JsonNode *node;

	json_object_iter_init_ordered(&iter, o);
	while (most && json_object_iter_next_ordered(&iter, &name, &node)) {
		if (!g_strcmp0(name, not) || share(summary_number(o, name, 0), all) < 1)
			continue;
		fprintf(to, " %s %.0f%%", name, share(summary_number(o, name, 0), all));
		most--;
	}
	fputc('\n', to);
}

static double sum_of_members(JsonObject *o)
{
	JsonObjectIter iter;
	const char *name;
	JsonNode *node;
	double all = 0;

	json_object_iter_init_ordered(&iter, o);
	while (json_object_iter_next_ordered(&iter, &name, &node))
		all += summary_number(o, name, 0);
	return all;
}

static void show_phases(FILE *to, JsonObject *profile)
{
	JsonArray *phases = summary_array(profile, "phases");

	for (u32 i = 0; i < length_of(phases); i++) {
		JsonObject *phase = object_at(phases, i), *time = phase ? summary_object(phase, "time") : NULL;
		JsonObject *functions = phase ? summary_object(phase, "functions") : NULL;
		double all;

		if (!time)
			continue;
		all = sum_of_members(time);
		fprintf(to, "%s   phase until mark %s:", i ? "" : "\n", summary_string(phase, "until", "?"));
		put_cycles(to, all, 0);
		fprintf(to, " cycles:");
		show_shares(to, time, NULL, all, -1);
		if (functions && json_object_get_size(functions)) {
			fprintf(to, "      in");
			/* Of what is not idle, as in the table of functions. */
			show_shares(to, functions, NULL, all - summary_number(time, "idle", 0) - summary_number(time, "wake", 0),
				    PHASE_FUNCTIONS_SHOWN);
		}
	}
}

static void show_threads(FILE *to, JsonObject *profile)
{
	JsonArray *threads = summary_array(profile, "threads");
	double rest = summary_number(profile, "threads_other", 0);

	if (!length_of(threads))
		return;
	fprintf(to, "\n   %-*s %18s  of which\n", FUNCTION_WIDTH, "thread, the vCPU it was on last", "cycles, not idle");
	for (u32 i = 0; i < length_of(threads); i++) {
		JsonObject *t = object_at(threads, i), *time = t ? summary_object(t, "time") : NULL;
		double busy = t ? summary_number(t, "busy", 0) : 0;
		g_autofree char *name = NULL;

		if (i >= THREADS_SHOWN)
			rest += busy;
		if (!time || i >= THREADS_SHOWN)
			continue;
		name = g_strdup_printf("%s, %.0f", summary_string(t, "thread", "?"), summary_number(t, "vcpu", 0));
		fprintf(to, "   %-*s", FUNCTION_WIDTH, name);
		put_cycles(to, busy, 18);
		fputc(' ', to);
		show_shares(to, time, "idle", busy, -1);
	}
	fprintf(to, "   %-*s", FUNCTION_WIDTH, "all others");
	put_cycles(to, rest, 18);
	fputc('\n', to);
}

void show_profile(FILE *to, const char *cell, u32 repeat, JsonObject *profile)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return;
	fprintf(f, "\n Where time went: cell %s, repeat %u\n", cell, repeat + 1);
	show_time(f, profile);
	show_phases(f, profile);
	show_threads(f, profile);
	show_functions(f, profile);
	show_lines(f, profile);
	if (!fclose(f))
		show_text(to, text);
	free(text);
}

/* Frames as they are in a file: nothing that ends a line, or drives a terminal. */
static char *line_of(const char *stack)
{
	char *text = g_strdup(stack);

	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	return text;
}

void profile_fold(FILE *to, JsonObject *profile)
{
	JsonArray *stacks = summary_array(profile, "stacks");
	double other = summary_number(profile, "stacks_other", 0);

	for (u32 i = 0; i < length_of(stacks); i++) {
		JsonObject *s = object_at(stacks, i);
		g_autofree char *text = s ? line_of(summary_string(s, "stack", "?")) : NULL;

		if (s && summary_number(s, "self", 0) >= 1)
			fprintf(to, "%s %.0f\n", text, summary_number(s, "self", 0));
	}
	if (other >= 1)
		fprintf(to, "[other] %.0f\n", other);
}
