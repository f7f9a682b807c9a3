// SPDX-License-Identifier: GPL-2.0-only
#include "soft/thread-profile.h"

#include <string.h>

#include "core/symbols.h"
#include "soft/soft-mem.h"

/* Enough for a large guest's kernel threads; those that come later share an account. */
#define THREADS_MOST	4096u
/* struct task_struct, with room for what options add to it. */
#define TASK_BYTES	16384u

struct thread {
	u64 task;
	char name[PROFILE_THREAD_NAME];
	u32 vcpu;
	bool renames;
	u64 spent[NR_SOFT_TIMES];
};

struct thread_cpu {
	u32 thread;		/* element of `thread`: whose it was at the last note */
	u64 area;		/* where the pointer to the current task was found last, and... */
	gpa_t gpa;		/* ...where that is: per-CPU areas do not move */
	u64 last[NR_SOFT_TIMES];
};

struct thread_profile {
	u64 current;		/* in a per-CPU area */
	u64 comm;		/* in a task, 0: not known */
	GArray *thread;		/* struct thread; the first one stands for those that are not known */
	GHashTable *by_task;	/* task to element */
	struct thread_cpu *cpu;
};

/*
 * The classes of a vCPU's time now. User and kernel are what is left of all, as in soft_settle(), but nothing is
 * settled: an instruction that is under way may yet change CPL.
 */
static void spent_now(const struct soft_cpu *c, u64 spent[NR_SOFT_TIMES])
{
	u64 other = 0;
	u32 i;

	memcpy(spent, c->spent, sizeof(c->spent));
	for (i = TIME_kernel + 1; i < NR_SOFT_TIMES; i++)
		other += spent[i];
	spent[c->cpl == 3 ? TIME_user : TIME_kernel] += soft_units(c) - c->settled - (other - c->settled_other);
}

/* init_task is called swapper from the start; where its name is, all have theirs. */
static u64 find_comm(struct soft_cpu *c, const struct symbols *symbols)
{
	static const char name[] = "swapper";
	u64 task = symbols_address(symbols, "init_task"), at, off;
	u8 page[PAGE_SIZE];

	for (off = 0; task && off < TASK_BYTES; off += PAGE_SIZE) {
		if (!soft_peek_bytes(c, (task + off) & ~(PAGE_SIZE - 1), page, PAGE_SIZE))
			return 0;
		for (at = 0; at + PROFILE_THREAD_NAME <= PAGE_SIZE; at += sizeof(u64)) {
			u64 va = ((task + off) & ~(PAGE_SIZE - 1)) + at;

			if (va > task && va < task + TASK_BYTES && !memcmp(page + at, name, sizeof(name) - 1))
				return va - task;
		}
	}
	return 0;
}

struct thread_profile *thread_profile_create(struct soft_vm *svm)
{
	const struct symbols *symbols = svm->vm->symbols;
	/* 6.2 to 6.14 have it first in pcpu_hot, others by its own name. */
	u64 current = symbols_address(symbols, "pcpu_hot");
	struct thread_profile *tp;
	struct thread none = { .name = "?" };

	if (!current)
		current = symbols_address(symbols, "current_task");
	/* Per-CPU areas are linked to 0; as a variable at its own place it would be of a kernel without SMP. */
	if (!current || current >> 63)
		return NULL;
	tp = g_new0(struct thread_profile, 1);
	tp->current = current;
	tp->comm = find_comm(soft_cpu(svm->vm->vcpu[0]), symbols);
	tp->thread = g_array_new(FALSE, TRUE, sizeof(struct thread));
	g_array_append_val(tp->thread, none);
	tp->by_task = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
	tp->cpu = g_new0(struct thread_cpu, svm->vm->topo.nr_cpus);
	return tp;
}

void thread_profile_destroy(struct thread_profile *tp)
{
	if (tp) {
		g_array_unref(tp->thread);
		g_hash_table_unref(tp->by_task);
		g_free(tp->cpu);
	}
	g_free(tp);
}

/* Its name may have changed since it was here last: exec() does that, and prctl(). */
static void thread_name(const struct thread_profile *tp, struct soft_cpu *c, struct thread *t)
{
	char name[PROFILE_THREAD_NAME];
	u32 i;

	if (!tp->comm || !soft_peek_bytes(c, t->task + tp->comm, name, sizeof(name)))
		return;
	name[sizeof(name) - 1] = '\0';
	for (i = 0; name[i]; i++)
		if ((u8)name[i] < ' ' || (u8)name[i] >= 0x7f)
			name[i] = '?';
	memset(t->name, 0, sizeof(t->name));
	memcpy(t->name, name, i);
}

static u32 thread_find(struct thread_profile *tp, u64 task)
{
	struct thread add = { .task = task, .name = "?" };
	gpointer found = g_hash_table_lookup(tp->by_task, &task);

	if (found)
		return GPOINTER_TO_UINT(found);
	if (tp->thread->len == THREADS_MOST)
		return 0;
	g_array_append_val(tp->thread, add);
	g_hash_table_insert(tp->by_task, g_memdup2(&task, sizeof(task)), GUINT_TO_POINTER(tp->thread->len - 1));
	return tp->thread->len - 1;
}

/* The task that is current on c's vCPU; 0 if that cannot be told now. */
static u64 task_now(struct thread_profile *tp, struct soft_cpu *c)
{
	struct thread_cpu *tc = &tp->cpu[c->vcpu->id];
	u64 gs = c->seg[SEG_GS].base, area, task;

	/* User code, and the kernel's until it has executed SWAPGS, have GS for themselves. */
	if (c->cpl == 3 || !(gs >> 63))
		gs = c->kernel_gs_base;
	area = gs + tp->current;
	if (!(gs >> 63) || area & (sizeof(u64) - 1))
		return 0;
	if (tc->area != area) {
		if (!soft_peek(c, area, &tc->gpa))
			return 0;
		tc->area = area;
	}
	return memory_read(&c->svm->vm->mem, tc->gpa, &task, sizeof(task)) ? 0 : task;
}

void thread_profile_begin(struct thread_profile *tp, const struct soft_cpu *c, const u64 *spent)
{
	memcpy(tp->cpu[c->vcpu->id].last, spent, sizeof(tp->cpu[0].last));
}

void thread_profile_end(struct thread_profile *tp, struct soft_cpu *c, const u64 *spent)
{
	struct thread_cpu *tc = &tp->cpu[c->vcpu->id];
	struct thread *t = &g_array_index(tp->thread, struct thread, tc->thread);
	u64 task = task_now(tp, c);
	u32 i;

	if (task && task != t->task) {
		tc->thread = thread_find(tp, task);
		t = &g_array_index(tp->thread, struct thread, tc->thread);
		if (tc->thread)
			thread_name(tp, c, t);
	}
	t->vcpu = c->vcpu->id;
	/* What was the kernel's may turn out to have been the user's: differences may be negative, their sum is not. */
	for (i = 0; i < NR_SOFT_TIMES; i++)
		t->spent[i] += spent[i] - tc->last[i];
	memcpy(tc->last, spent, sizeof(tc->last));
}

void thread_profile_note(struct thread_profile *tp, struct soft_cpu *c)
{
	u64 spent[NR_SOFT_TIMES];

	spent_now(c, spent);
	thread_profile_end(tp, c, spent);
}

void thread_profile_renames(struct thread_profile *tp, const struct soft_cpu *c)
{
	g_array_index(tp->thread, struct thread, tp->cpu[c->vcpu->id].thread).renames = true;
}

void thread_profile_leave(struct thread_profile *tp, struct soft_cpu *c)
{
	u32 i = tp->cpu[c->vcpu->id].thread;
	struct thread *t = &g_array_index(tp->thread, struct thread, i);

	if (i && t->renames)
		thread_name(tp, c, t);
	t->renames = false;
}

void thread_profile_read(const struct thread_profile *tp, struct profile *p)
{
	u32 i;

	p->thread_spent = g_new0(u64, (gsize)tp->thread->len * NR_SOFT_TIMES);
	for (i = 0; i < tp->thread->len; i++) {
		const struct thread *from = &g_array_index(tp->thread, struct thread, i);
		struct profile_thread to = { .task = from->task, .vcpu = from->vcpu };

		memcpy(to.name, from->name, sizeof(to.name));
		g_array_append_val(p->thread, to);
		memcpy(p->thread_spent + (size_t)i * NR_SOFT_TIMES, from->spent, sizeof(from->spent));
	}
}
