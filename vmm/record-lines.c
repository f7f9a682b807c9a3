// SPDX-License-Identifier: GPL-2.0-only
/* A profile's cache lines: what they are called, who accesses them from where, how many wait. */
#include "record-lines.h"

#include <string.h>

#include "record-functions.h"

/* x86-64 Linux (Documentation/arch/x86/x86_64/mm.rst), where nokaslr has left it: struct page of all memory. */
#define VMEMMAP		0xffffea0000000000ull
#define VMEMMAP_END	0xffffeb0000000000ull
#define KERNEL_IMAGE	0xffffffff80000000ull
#define USER_END	0x0000800000000000ull

/* What code of one function did to a line. */
struct line_function {
	char *name;
	u64 count, writes, wait;
	u64 socket_reads[PROFILE_SOCKETS], socket_writes[PROFILE_SOCKETS];
};

static int by_function_wait(const void *a, const void *b)
{
	const struct line_function *x = a, *y = b;

	return x->wait != y->wait ? x->wait < y->wait ? 1 : -1 : strcmp(x->name, y->name);
}

/* Who waited for a line, the most first; the number of them. Names are for g_free(). */
static u32 line_functions(const struct profile_line *l, const struct symbols *symbols,
			  struct line_function f[PROFILE_USERS])
{
	u32 nr = 0, i, k, s;

	memset(f, 0, PROFILE_USERS * sizeof(f[0]));
	for (i = 0; i < PROFILE_USERS; i++) {
		const struct profile_user *u = &l->user[i];
		char *name = u->count ? record_function_name(symbols, u->rip) : NULL;

		if (!name)
			continue;
		for (k = 0; k < nr && strcmp(f[k].name, name); k++)
			;
		if (k < nr)
			g_free(name);
		else
			f[nr++].name = name;
		f[k].count += u->count;
		f[k].writes += u->writes;
		f[k].wait += u->wait;
		for (s = 0; s < PROFILE_SOCKETS; s++) {
			f[k].socket_reads[s] += u->socket_reads[s];
			f[k].socket_writes[s] += u->socket_writes[s];
		}
	}
	qsort(f, nr, sizeof(f[0]), by_function_wait);
	return nr;
}

/* `user`: the function that waited for it most, the name of a line that has none of its own. */
static char *line_name(const struct profile_line *l, const struct symbols *symbols, const char *user)
{
	u64 offset, at = l->va & ~63ull;
	const char *symbol;

	/* The variable that the latest access was to, since others may share the line. */
	symbol = l->va >= KERNEL_IMAGE ? symbols_find_data(symbols, l->va, &offset) : NULL;
	if (symbol)
		return g_strdup_printf("%s+0x%llx", symbol, (unsigned long long)offset);
	if (*l->object)
		return g_strdup_printf("%s+0x%x, accessed by %s", l->object, l->offset, user);
	if (!l->va)
		return g_strdup_printf("page-table entries, walked in %s", user);
	if (at >= VMEMMAP && at < VMEMMAP_END)
		return g_strdup_printf("struct page, accessed by %s", user);
	return g_strdup_printf("%saccessed by %s", at < USER_END ? "user memory, " : "", user);
}

static void set_sockets(JsonObject *o, const char *name, const u64 *by_socket, u32 nr)
{
	JsonArray *a = json_array_sized_new(nr);
	u32 i;

	for (i = 0; i < nr; i++)
		json_array_add_int_element(a, (gint64)by_socket[i]);
	json_object_set_array_member(o, name, a);
}

/* How many waited in its queue at a time, by Little's law; to four places, since more would be noise. */
static double queue_length(const struct profile_line *l, u64 region)
{
	return region ? (double)(u64)((double)l->queued / (double)region * 1e4 + 0.5) / 1e4 : 0;
}

static JsonObject *line_object(const struct profile_line *l, const struct symbols *symbols, u32 scale, u64 region)
{
	JsonObject *o = json_object_new();
	JsonArray *users = json_array_new();
	struct line_function f[PROFILE_USERS];
	u32 nr = line_functions(l, symbols, f);
	char *name = line_name(l, symbols, nr ? f[0].name : "?"), *va = g_strdup_printf("0x%llx", (unsigned long long)(l->va & ~63ull));
	u32 i, last = 0;

	json_object_set_string_member(o, "name", name);
	json_object_set_string_member(o, "address", va);
	json_object_set_int_member(o, "line", (gint64)l->line);
	json_object_set_int_member(o, "transfers", (gint64)l->transfers);
	json_object_set_int_member(o, "writes", (gint64)l->writes);
	json_object_set_int_member(o, "wait", (gint64)(l->wait / scale));
	json_object_set_int_member(o, "queued", (gint64)(l->queued / scale));
	json_object_set_double_member(o, "queue", queue_length(l, region));
	for (i = 0; i < PROFILE_SOCKETS; i++)
		if (l->sockets[i])
			last = i;
	set_sockets(o, "sockets", l->sockets, last + 1);
	for (i = 0; i < nr; i++) {
		JsonObject *u = json_object_new();

		json_object_set_string_member(u, "function", f[i].name);
		json_object_set_int_member(u, "accesses", (gint64)f[i].count);
		json_object_set_int_member(u, "writes", (gint64)f[i].writes);
		json_object_set_int_member(u, "wait", (gint64)(f[i].wait / scale));
		set_sockets(u, "reads_by_socket", f[i].socket_reads, last + 1);
		set_sockets(u, "writes_by_socket", f[i].socket_writes, last + 1);
		json_array_add_object_element(users, u);
		g_free(f[i].name);
	}
	json_object_set_array_member(o, "users", users);
	json_object_set_int_member(o, "others", (gint64)l->others);
	g_free(name);
	g_free(va);
	return o;
}

void record_lines(JsonObject *to, const struct profile *p, const struct symbols *symbols)
{
	JsonArray *lines = json_array_new();
	u64 region = 0;
	u32 i;

	for (i = 0; i < p->nr_cpus; i++)
		region = MAX(region, p->elapsed[i]);
	for (i = 0; i < p->line->len; i++)
		json_array_add_object_element(lines, line_object(&g_array_index(p->line, struct profile_line, i), symbols,
								 p->scale, region));
	json_object_set_array_member(to, "lines", lines);
}
