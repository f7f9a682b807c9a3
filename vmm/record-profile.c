// SPDX-License-Identifier: GPL-2.0-only
/*
 * A profile's addresses become names, its units cycles. Cycles are rounded so that the classes
 * of a vCPU still sum up to its elapsed time.
 */
#include "record-functions.h"
#include "record-lines.h"
#include "record-profile.h"

#include <string.h>

#define THREADS_MOST	160u

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

JsonObject *record_profile_phase(const struct profile *p, const struct profile *before, const struct symbols *symbols)
{
	JsonObject *o = json_object_new(), *time = json_object_new();
	u32 cpu, t;

	for (t = 0; t < p->nr_classes; t++) {
		u64 sum = 0;

		for (cpu = 0; cpu < p->nr_cpus; cpu++) {
			size_t i = (size_t)cpu * p->nr_classes + t;

			sum += p->spent[i] - (before ? before->spent[i] : 0);
		}
		if (sum / p->scale)
			json_object_set_int_member(time, p->class_name[t], (gint64)(sum / p->scale));
	}
	json_object_set_object_member(o, "time", time);
	record_functions_since(o, p, before, symbols);
	return o;
}

/* --- threads --- */

struct thread_time {
	const struct profile_thread *thread;
	const u64 *spent;
	u64 busy;		/* all but idle */
};

/* A slice may have been taken from a class that it was not of in the end, so that a sum may be a bit below 0. */
static u64 not_negative(u64 v)
{
	return v >> 63 ? 0 : v;
}

static int by_busy(const void *a, const void *b)
{
	const struct thread_time *x = a, *y = b;

	if (x->busy != y->busy)
		return x->busy < y->busy ? 1 : -1;
	return x->thread->task < y->thread->task ? -1 : x->thread->task > y->thread->task;
}

static JsonObject *thread_object(const struct profile *p, const struct thread_time *t)
{
	JsonObject *o = json_object_new(), *time = json_object_new();
	char *task = g_strdup_printf("0x%llx", (unsigned long long)t->thread->task);
	u32 i;

	json_object_set_string_member(o, "thread", t->thread->name);
	json_object_set_string_member(o, "task", task);
	json_object_set_int_member(o, "vcpu", t->thread->vcpu);
	json_object_set_int_member(o, "busy", (gint64)(t->busy / p->scale));
	for (i = 0; i < p->nr_classes; i++)
		if (not_negative(t->spent[i]) / p->scale)
			json_object_set_int_member(time, p->class_name[i], (gint64)(not_negative(t->spent[i]) / p->scale));
	json_object_set_object_member(o, "time", time);
	g_free(task);
	return o;
}

/* Those with most time that is not idle; of the rest the sum. */
static void record_threads(JsonObject *to, const struct profile *p)
{
	struct thread_time *all = g_new0(struct thread_time, p->thread->len);
	JsonArray *a = json_array_new();
	u64 other = 0;
	u32 i, t;

	for (i = 0; i < p->thread->len; i++) {
		all[i].thread = &g_array_index(p->thread, struct profile_thread, i);
		all[i].spent = p->thread_spent + (size_t)i * p->nr_classes;
		for (t = 0; t < p->nr_classes; t++)
			if (strcmp(p->class_name[t], "idle"))
				all[i].busy += all[i].spent[t];
		all[i].busy = not_negative(all[i].busy);
	}
	qsort(all, p->thread->len, sizeof(all[0]), by_busy);
	for (i = 0; i < p->thread->len; i++) {
		if (i >= THREADS_MOST)
			other += all[i].busy;
		else if (all[i].busy / p->scale)
			json_array_add_object_element(a, thread_object(p, &all[i]));
	}
	json_object_set_array_member(to, "threads", a);
	json_object_set_int_member(to, "threads_other", (gint64)(other / p->scale));
	g_free(all);
}

JsonObject *record_profile(const struct profile *p, const struct symbols *symbols, u64 hz)
{
	JsonObject *o = json_object_new();
	JsonArray *elapsed = json_array_sized_new(p->nr_cpus);
	u32 i;

	json_object_set_int_member(o, "hz", (gint64)hz);
	for (i = 0; i < p->nr_cpus; i++)
		json_array_add_int_element(elapsed, (gint64)(p->elapsed[i] / p->scale));
	json_object_set_array_member(o, "elapsed", elapsed);
	json_object_set_object_member(o, "time", time_object(p));
	record_functions(o, p, symbols);
	if (p->thread->len)
		record_threads(o, p);
	record_lines(o, p, symbols);
	return o;
}
