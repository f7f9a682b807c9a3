// SPDX-License-Identifier: GPL-2.0-only
/*
 * A profile's code by function and by stack. What is left out of the lists for their
 * length is in `functions_other` and `stacks_other`.
 */
#include "record-functions.h"

#include <string.h>

#define FUNCTIONS_MOST	60u
#define ENTRIES_MOST	4u
#define STACKS_MOST	200u
#define PHASE_FUNCTIONS_MOST	20u

struct function {
	char *name;
	u64 time, stall, samples;
	u64 total;		/* with what it called */
	GArray *entry;		/* struct function_entry */
};

struct function_entry {
	u32 entry;
	u64 time;
};

static void function_free(void *p)
{
	struct function *f = p;

	g_free(f->name);
	g_array_unref(f->entry);
	g_free(f);
}

char *record_function_name(const struct symbols *symbols, u64 rip)
{
	const char *name;
	u64 offset;

	if (rip == PROFILE_USER)
		return g_strdup("[user]");
	name = symbols_find(symbols, rip, &offset);
	return name ? g_strdup(name) : g_strdup_printf("0x%llx", (unsigned long long)rip);
}

/* Linux's vectors (its arch/x86/include/asm/irq_vectors.h) and some of its system calls, by what they are called. */
static char *entry_name(u32 entry)
{
	static const struct {
		u32 entry;
		const char *name;
	} known[] = {
		{ PROFILE_ENTRY(PROFILE_ENTRY_EXCEPTION, 14), "page fault" },
		{ PROFILE_ENTRY(PROFILE_ENTRY_EXCEPTION, 7), "device not available" },
		{ PROFILE_ENTRY(PROFILE_ENTRY_INTERRUPT, 2), "NMI" },
		{ PROFILE_ENTRY(PROFILE_ENTRY_INTERRUPT, 0xec), "interrupt timer" },
		{ PROFILE_ENTRY(PROFILE_ENTRY_INTERRUPT, 0xfb), "interrupt call-function-single" },
		{ PROFILE_ENTRY(PROFILE_ENTRY_INTERRUPT, 0xfc), "interrupt call-function" },
		{ PROFILE_ENTRY(PROFILE_ENTRY_INTERRUPT, 0xfd), "interrupt reschedule" },
		{ PROFILE_ENTRY(PROFILE_ENTRY_SYSCALL, 0), "syscall read" },
		{ PROFILE_ENTRY(PROFILE_ENTRY_SYSCALL, 1), "syscall write" },
		{ PROFILE_ENTRY(PROFILE_ENTRY_SYSCALL, 9), "syscall mmap" },
		{ PROFILE_ENTRY(PROFILE_ENTRY_SYSCALL, 10), "syscall mprotect" },
		{ PROFILE_ENTRY(PROFILE_ENTRY_SYSCALL, 11), "syscall munmap" },
		{ PROFILE_ENTRY(PROFILE_ENTRY_SYSCALL, 12), "syscall brk" },
		{ PROFILE_ENTRY(PROFILE_ENTRY_SYSCALL, 25), "syscall mremap" },
		{ PROFILE_ENTRY(PROFILE_ENTRY_SYSCALL, 28), "syscall madvise" },
		{ PROFILE_ENTRY(PROFILE_ENTRY_SYSCALL, 56), "syscall clone" },
		{ PROFILE_ENTRY(PROFILE_ENTRY_SYSCALL, 60), "syscall exit" },
		{ PROFILE_ENTRY(PROFILE_ENTRY_SYSCALL, 61), "syscall wait4" },
		{ PROFILE_ENTRY(PROFILE_ENTRY_SYSCALL, 202), "syscall futex" },
		{ PROFILE_ENTRY(PROFILE_ENTRY_SYSCALL, 231), "syscall exit_group" },
	};
	static const char *const kind[] = {
		[PROFILE_ENTRY_SYSCALL] = "syscall", [PROFILE_ENTRY_EXCEPTION] = "exception",
		[PROFILE_ENTRY_INTERRUPT] = "interrupt",
	};
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(known); i++)
		if (known[i].entry == entry)
			return g_strdup(known[i].name);
	if (!PROFILE_ENTRY_KIND(entry) || PROFILE_ENTRY_KIND(entry) >= G_N_ELEMENTS(kind))
		return g_strdup("none");
	return g_strdup_printf("%s %u", kind[PROFILE_ENTRY_KIND(entry)], PROFILE_ENTRY_NUMBER(entry));
}

/* --- functions --- */

static void function_add(struct function *f, const struct profile_code *code)
{
	struct function_entry add = { .entry = code->entry };
	u32 i;

	f->time += code->time;
	f->stall += code->stall;
	f->samples += code->samples;
	for (i = 0; i < f->entry->len; i++)
		if (g_array_index(f->entry, struct function_entry, i).entry == code->entry)
			break;
	if (i == f->entry->len)
		g_array_append_val(f->entry, add);
	g_array_index(f->entry, struct function_entry, i).time += code->time;
}

static int by_function_time(const void *a, const void *b)
{
	const struct function *x = *(struct function *const *)a, *y = *(struct function *const *)b;

	return x->time != y->time ? x->time < y->time ? 1 : -1 : strcmp(x->name, y->name);
}

static int by_entry_time(const void *a, const void *b)
{
	const struct function_entry *x = a, *y = b;

	return x->time != y->time ? x->time < y->time ? 1 : -1 : x->entry < y->entry ? -1 : x->entry > y->entry;
}

static struct function *function_get(GHashTable *by_name, GPtrArray *all, char *name)
{
	struct function *f = g_hash_table_lookup(by_name, name);

	if (f) {
		g_free(name);
		return f;
	}
	f = g_new0(struct function, 1);
	f->name = name;
	f->entry = g_array_new(FALSE, TRUE, sizeof(struct function_entry));
	g_hash_table_insert(by_name, f->name, f);
	g_ptr_array_add(all, f);
	return f;
}

static const struct profile_caller *caller_at(const struct profile *p, u32 caller)
{
	return &g_array_index(p->caller, struct profile_caller, caller - 1);
}

/* The code's time is part of its function's total, and of each one's that called it, once where they recurse. */
static void total_add(const struct profile *p, const struct profile_code *code, struct function *self,
		      struct function *const *by_caller)
{
	u32 at, before;

	self->total += code->time;
	for (at = code->caller; at; at = caller_at(p, at)->up) {
		bool again = by_caller[at - 1] == self;

		for (before = code->caller; before != at && !again; before = caller_at(p, before)->up)
			again = by_caller[before - 1] == by_caller[at - 1];
		if (!again)
			by_caller[at - 1]->total += code->time;
	}
}

/* Code by function, those with most time of their own first. */
static GPtrArray *functions_of(const struct profile *p, const struct symbols *symbols)
{
	GPtrArray *all = g_ptr_array_new_with_free_func(function_free);
	GHashTable *by_name = g_hash_table_new(g_str_hash, g_str_equal);
	struct function **by_caller = g_new0(struct function *, p->caller->len + 1);
	u32 i;

	for (i = 0; i < p->caller->len; i++)
		by_caller[i] = function_get(by_name, all, record_function_name(symbols, caller_at(p, i + 1)->function));
	for (i = 0; i < p->code->len; i++) {
		const struct profile_code *code = &g_array_index(p->code, struct profile_code, i);
		struct function *f = function_get(by_name, all, record_function_name(symbols, code->rip));

		function_add(f, code);
		if (p->caller->len)
			total_add(p, code, f, by_caller);
	}
	g_hash_table_unref(by_name);
	g_free(by_caller);
	if (all->len)
		qsort(all->pdata, all->len, sizeof(void *), by_function_time);
	return all;
}

/* --- stacks --- */

struct stack_time {
	const char *stack;
	u64 time;
};

static int by_stack_time(const void *a, const void *b)
{
	const struct stack_time *x = a, *y = b;

	return x->time != y->time ? x->time < y->time ? 1 : -1 : strcmp(x->stack, y->stack);
}

/* "page fault;asm_exc_page_fault;...;clear_page_erms": outermost first. */
static char *stack_text(const struct profile *p, const struct profile_code *code, const struct symbols *symbols)
{
	GString *text = g_string_new(NULL);
	char *name = record_function_name(symbols, code->rip);
	u32 at;

	g_string_append(text, name);
	g_free(name);
	for (at = code->caller; at; at = caller_at(p, at)->up) {
		name = record_function_name(symbols, caller_at(p, at)->function);
		g_string_prepend_c(text, ';');
		g_string_prepend(text, name);
		g_free(name);
	}
	if (code->rip != PROFILE_USER) {
		name = code->entry ? entry_name(code->entry) : g_strdup("[kernel thread]");
		g_string_prepend_c(text, ';');
		g_string_prepend(text, name);
		g_free(name);
	}
	return g_string_free(text, FALSE);
}

static void add_stacks(JsonObject *to, const struct profile *p, const struct symbols *symbols)
{
	GHashTable *times = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
	GArray *all = g_array_new(FALSE, FALSE, sizeof(struct stack_time));
	JsonArray *a = json_array_new();
	GHashTableIter iter;
	gpointer key, value;
	u64 other = p->lost;
	u32 i;

	for (i = 0; i < p->code->len; i++) {
		const struct profile_code *code = &g_array_index(p->code, struct profile_code, i);
		char *text = stack_text(p, code, symbols);
		u64 *time = g_hash_table_lookup(times, text);

		if (time)
			g_free(text);
		else
			g_hash_table_insert(times, text, time = g_new0(u64, 1));
		*time += code->time;
	}
	g_hash_table_iter_init(&iter, times);
	while (g_hash_table_iter_next(&iter, &key, &value)) {
		struct stack_time s = { .stack = key, .time = *(u64 *)value };

		g_array_append_val(all, s);
	}
	if (all->len)
		qsort(all->data, all->len, sizeof(struct stack_time), by_stack_time);
	for (i = 0; i < all->len; i++) {
		const struct stack_time *s = &g_array_index(all, struct stack_time, i);
		JsonObject *o;

		if (i >= STACKS_MOST) {
			other += s->time;
			continue;
		}
		o = json_object_new();
		json_object_set_string_member(o, "stack", s->stack);
		json_object_set_int_member(o, "self", (gint64)(s->time / p->scale));
		json_array_add_object_element(a, o);
	}
	json_object_set_array_member(to, "stacks", a);
	json_object_set_int_member(to, "stacks_other", (gint64)(other / p->scale));
	g_array_unref(all);
	g_hash_table_unref(times);
}

static JsonObject *function_object(const struct function *f, u32 scale)
{
	JsonObject *o = json_object_new(), *entries = json_object_new();
	u64 other = 0;
	u32 i;

	json_object_set_string_member(o, "function", f->name);
	json_object_set_int_member(o, "self", (gint64)(f->time / scale));
	if (f->total)
		json_object_set_int_member(o, "total", (gint64)(f->total / scale));
	json_object_set_int_member(o, "stall", (gint64)(f->stall / scale));
	json_object_set_int_member(o, "samples", (gint64)f->samples);
	qsort(f->entry->data, f->entry->len, sizeof(struct function_entry), by_entry_time);
	for (i = 0; i < f->entry->len; i++) {
		const struct function_entry *e = &g_array_index(f->entry, struct function_entry, i);
		char *name;

		if (i >= ENTRIES_MOST) {
			other += e->time;
			continue;
		}
		name = entry_name(e->entry);
		json_object_set_int_member(entries, name, (gint64)(e->time / scale));
		g_free(name);
	}
	if (other / scale)
		json_object_set_int_member(entries, "other", (gint64)(other / scale));
	json_object_set_object_member(o, "entries", entries);
	return o;
}

static void add_functions(JsonObject *to, const struct profile *p, const struct symbols *symbols)
{
	GPtrArray *all = functions_of(p, symbols);
	JsonArray *a = json_array_new();
	u64 other = p->lost, sum = p->lost;
	u32 i;

	for (i = 0; i < all->len; i++) {
		const struct function *f = all->pdata[i];

		sum += f->time;
		if (i < FUNCTIONS_MOST)
			json_array_add_object_element(a, function_object(f, p->scale));
		else
			other += f->time;
	}
	json_object_set_int_member(to, "sampled", (gint64)(sum / p->scale));
	json_object_set_array_member(to, "functions", a);
	json_object_set_int_member(to, "functions_other", (gint64)(other / p->scale));
	g_ptr_array_unref(all);
}

void record_functions(JsonObject *to, const struct profile *p, const struct symbols *symbols)
{
	add_functions(to, p, symbols);
	add_stacks(to, p, symbols);
}

/* --- between two readings --- */

struct function_time {
	const char *name;
	u64 time;
};

static int by_time(const void *a, const void *b)
{
	const struct function_time *x = a, *y = b;

	return x->time != y->time ? x->time < y->time ? 1 : -1 : strcmp(x->name, y->name);
}

/* Add (or take away) each function's own time. */
static void sum_functions(GHashTable *times, const struct profile *p, const struct symbols *symbols, bool take)
{
	u32 i;

	for (i = 0; i < p->code->len; i++) {
		const struct profile_code *code = &g_array_index(p->code, struct profile_code, i);
		char *name = record_function_name(symbols, code->rip);
		u64 *time = g_hash_table_lookup(times, name);

		if (time)
			g_free(name);
		else
			g_hash_table_insert(times, name, time = g_new0(u64, 1));
		*time += take ? -code->time : code->time;
	}
}

void record_functions_since(JsonObject *to, const struct profile *p, const struct profile *before,
			    const struct symbols *symbols)
{
	GHashTable *times = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
	GArray *all = g_array_new(FALSE, FALSE, sizeof(struct function_time));
	JsonObject *o = json_object_new();
	GHashTableIter iter;
	gpointer key, value;
	u32 i;

	sum_functions(times, p, symbols, false);
	if (before)
		sum_functions(times, before, symbols, true);
	g_hash_table_iter_init(&iter, times);
	while (g_hash_table_iter_next(&iter, &key, &value)) {
		struct function_time f = { .name = key, .time = *(u64 *)value };

		g_array_append_val(all, f);
	}
	if (all->len)
		qsort(all->data, all->len, sizeof(struct function_time), by_time);
	for (i = 0; i < MIN(all->len, PHASE_FUNCTIONS_MOST); i++) {
		const struct function_time *f = &g_array_index(all, struct function_time, i);

		if (f->time / p->scale)
			json_object_set_int_member(o, f->name, (gint64)(f->time / p->scale));
	}
	json_object_set_object_member(to, "functions", o);
	g_array_unref(all);
	g_hash_table_unref(times);
}
