// SPDX-License-Identifier: GPL-2.0-only
/*
 * A profile's addresses become names, its units cycles. Cycles are rounded so that the classes
 * of a vCPU still sum up to its elapsed time.
 */
#include "record-functions.h"
#include "record-profile.h"

#include <string.h>

/* x86-64 Linux (Documentation/arch/x86/x86_64/mm.rst), where nokaslr has left it: struct page of all memory. */
#define VMEMMAP		0xffffea0000000000ull
#define VMEMMAP_END	0xffffeb0000000000ull
#define KERNEL_IMAGE	0xffffffff80000000ull
#define USER_END	0x0000800000000000ull

/* --- time by class --- */

/* Cycles of a vCPU by class: the parts are cut where whole cycles end, so that none is lost between them. */
static void class_cycles(const struct profile *p, u32 cpu, u64 *cycles)
{
	const u64 *spent = p->spent + (size_t)cpu * p->nr_classes;
	u64 sum = 0;
	u32 t;

	for (t = 0; t < p->nr_classes; t++) {
		cycles[t] = (sum + spent[t]) / p->scale - sum / p->scale;
		sum += spent[t];
	}
}

static JsonObject *time_object(const struct profile *p)
{
	JsonObject *time = json_object_new();
	u64 *cycles = g_new0(u64, (gsize)p->nr_cpus * p->nr_classes), total;
	u32 cpu, t;

	for (cpu = 0; cpu < p->nr_cpus; cpu++)
		class_cycles(p, cpu, cycles + (size_t)cpu * p->nr_classes);
	for (t = 0; t < p->nr_classes; t++) {
		JsonObject *o = json_object_new();
		JsonArray *a = json_array_sized_new(p->nr_cpus);

		total = 0;
		for (cpu = 0; cpu < p->nr_cpus; cpu++) {
			total += cycles[(size_t)cpu * p->nr_classes + t];
			json_array_add_int_element(a, (gint64)cycles[(size_t)cpu * p->nr_classes + t]);
		}
		json_object_set_int_member(o, "total", (gint64)total);
		json_object_set_array_member(o, "per_vcpu", a);
		if (total)
			json_object_set_object_member(time, p->class_name[t], o);
		else
			json_object_unref(o);
	}
	g_free(cycles);
	return time;
}

JsonObject *record_profile_phase(const struct profile *p, const struct profile *before)
{
	JsonObject *o = json_object_new();
	u32 cpu, t;

	for (t = 0; t < p->nr_classes; t++) {
		u64 sum = 0;

		for (cpu = 0; cpu < p->nr_cpus; cpu++) {
			size_t i = (size_t)cpu * p->nr_classes + t;

			sum += p->spent[i] - (before ? before->spent[i] : 0);
		}
		if (sum / p->scale)
			json_object_set_int_member(o, p->class_name[t], (gint64)(sum / p->scale));
	}
	return o;
}

/* --- lines --- */

/* What code of one function did to a line. */
struct line_function {
	char *name;
	u64 count, writes, wait;
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
	u32 nr = 0, i, k;

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
	if (!l->va)
		return g_strdup_printf("page-table entries, walked in %s", user);
	if (at >= VMEMMAP && at < VMEMMAP_END)
		return g_strdup_printf("struct page, accessed by %s", user);
	return g_strdup_printf("%saccessed by %s", at < USER_END ? "user memory, " : "", user);
}

static JsonObject *line_object(const struct profile_line *l, const struct symbols *symbols, u32 scale)
{
	JsonObject *o = json_object_new();
	JsonArray *sockets = json_array_new(), *users = json_array_new();
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
	for (i = 0; i < PROFILE_SOCKETS; i++)
		if (l->sockets[i])
			last = i;
	for (i = 0; i <= last; i++)
		json_array_add_int_element(sockets, (gint64)l->sockets[i]);
	json_object_set_array_member(o, "sockets", sockets);
	for (i = 0; i < nr; i++) {
		JsonObject *u = json_object_new();

		json_object_set_string_member(u, "function", f[i].name);
		json_object_set_int_member(u, "accesses", (gint64)f[i].count);
		json_object_set_int_member(u, "writes", (gint64)f[i].writes);
		json_object_set_int_member(u, "wait", (gint64)(f[i].wait / scale));
		json_array_add_object_element(users, u);
		g_free(f[i].name);
	}
	json_object_set_array_member(o, "users", users);
	json_object_set_int_member(o, "others", (gint64)l->others);
	g_free(name);
	g_free(va);
	return o;
}

JsonObject *record_profile(const struct profile *p, const struct symbols *symbols, u64 hz)
{
	JsonObject *o = json_object_new();
	JsonArray *elapsed = json_array_sized_new(p->nr_cpus), *lines = json_array_new();
	u32 i;

	json_object_set_int_member(o, "hz", (gint64)hz);
	for (i = 0; i < p->nr_cpus; i++)
		json_array_add_int_element(elapsed, (gint64)(p->elapsed[i] / p->scale));
	json_object_set_array_member(o, "elapsed", elapsed);
	json_object_set_object_member(o, "time", time_object(p));
	record_functions(o, p, symbols);
	for (i = 0; i < p->line->len; i++)
		json_array_add_object_element(lines, line_object(&g_array_index(p->line, struct profile_line, i), symbols,
								 p->scale));
	json_object_set_array_member(o, "lines", lines);
	return o;
}
