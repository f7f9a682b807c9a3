// SPDX-License-Identifier: GPL-2.0-only
/*
 * Samples by code address and by what had brought the vCPU into the kernel.
 *
 * The latter has to survive a change of tasks. The engine does not know the guest's
 * tasks, but their stacks: an entry belongs to the 16 KiB of stack (Linux's THREAD_SIZE) that the
 * first sample behind it is on, so that a task that goes on later, on any vCPU, is
 * found again. Interrupts of kernel code are kept by vCPU, since they end where they
 * began; exceptions of kernel code leave the entry as it is.
 */
#include "soft/profile.h"

#include <string.h>

#include "soft/line-model.h"
#include "soft/slab-name.h"
#include "soft/spin.h"
#include "soft/thread-profile.h"
#include "soft/unwind.h"

#define SLOTS_MIN	4096u
#define SLOTS_MAX	(1u << 18)	/* 8 MiB */
#define STACK_SHIFT	14u
#define NR_STACKS	4096u
#define NR_NESTED	8u
#define NR_FUNCTIONS	8192u
#define LINES_MOST	20u
#define CALLERS_MOST	24u		/* of one sample */
#define CALLERS_MAX	(1u << 16)	/* chains in all */
/* Where x86-64 Linux has the stacks that entries begin on (its Documentation/arch/x86/x86_64/mm.rst, cpu_entry_area). */
#define ENTRY_AREA	0xfffffe0000000000ull
#define ENTRY_AREA_END	0xffffff0000000000ull

struct profile_cpu {
	u64 sampled;		/* units: the last sample */
	u64 begin;		/* units: the start mark */
	u64 base[NR_SOFT_TIMES];	/* c->spent[] then */
	u32 entry;		/* the last one from user code... */
	u64 stack;		/* ...and the stack it belongs to, 0 = no sample since */
	u32 depth;		/* events of kernel code that have not ended */
	u32 nested[NR_NESTED];
};

struct soft_profile {
	struct profile_code *slot;	/* open addressing; samples 0: free */
	u32 size, used;
	u64 lost;
	struct soft_unwind *unwind;	/* NULL: callers are not known */
	GArray *caller;			/* struct profile_caller */
	GHashTable *chain;		/* struct profile_caller to 1 + its element */
	struct profile_cpu *cpu;
	struct thread_profile *threads;	/* NULL: not known */
	struct {
		u64 stack;
		u32 entry;
	} stack[NR_STACKS];
	struct {
		u64 address, start;
	} function[NR_FUNCTIONS];	/* functions found before, 0: not one */
};

static u32 code_place(const struct soft_profile *p, u64 rip, u32 entry, u32 caller)
{
	u32 i = (u32)(((rip ^ (u64)entry << 40 ^ (u64)caller << 24) * 0x9e3779b97f4a7c15ull) >> 32) & (p->size - 1);

	while (p->slot[i].samples && (p->slot[i].rip != rip || p->slot[i].entry != entry ||
					p->slot[i].caller != caller))
		i = (i + 1) & (p->size - 1);
	return i;
}

static void code_grow(struct soft_profile *p)
{
	struct profile_code *old = p->slot;
	u32 size = p->size, i;

	p->size = size ? size * 2 : SLOTS_MIN;
	p->slot = g_new0(struct profile_code, p->size);
	for (i = 0; i < size; i++)
		if (old[i].samples)
			p->slot[code_place(p, old[i].rip, old[i].entry, old[i].caller)] = old[i];
	g_free(old);
}

static u32 stack_slot(u64 stack)
{
	return (u32)((stack * 0x9e3779b97f4a7c15ull) >> 40) & (NR_STACKS - 1);
}

/* What brought the vCPU to the kernel code that it is at. */
static u32 entry_now(struct soft_profile *p, const struct soft_cpu *c)
{
	struct profile_cpu *pc = &p->cpu[c->vcpu->id];
	u64 rsp = c->gpr[X86_RSP], stack = rsp >> STACK_SHIFT;
	u32 nested = pc->depth ? pc->nested[MIN(pc->depth, NR_NESTED) - 1] : 0, slot = stack_slot(stack);

	if (PROFILE_ENTRY_KIND(nested) == PROFILE_ENTRY_INTERRUPT)
		return nested;
	/* SYSCALL leaves RSP the user's, and events come by way of the entry area: the kernel's stack is not there yet. */
	if (!(rsp >> 63) || (rsp >= ENTRY_AREA && rsp < ENTRY_AREA_END))
		return pc->entry;
	if (pc->entry && !pc->stack) {
		pc->stack = stack;
		p->stack[slot].stack = stack;
		p->stack[slot].entry = pc->entry;
	}
	return p->stack[slot].stack == stack ? p->stack[slot].entry : 0;
}

static guint caller_hash(gconstpointer key)
{
	const struct profile_caller *k = key;

	return (guint)(((k->function ^ (u64)k->up << 44) * 0x9e3779b97f4a7c15ull) >> 32);
}

static gboolean caller_equal(gconstpointer a, gconstpointer b)
{
	const struct profile_caller *x = a, *y = b;

	return x->function == y->function && x->up == y->up;
}

/* Start of the function that an address of code is in, 0 if it is in none. */
static u64 function_start(struct soft_profile *p, const struct soft_cpu *c, u64 address)
{
	u32 slot = (u32)((address * 0x9e3779b97f4a7c15ull) >> 40) & (NR_FUNCTIONS - 1);
	u64 offset;

	if (p->function[slot].address != address) {
		p->function[slot].address = address;
		p->function[slot].start = 0;
		if (symbols_find(c->svm->vm->symbols, address, &offset))
			p->function[slot].start = address - offset;
	}
	return p->function[slot].start;
}

/* The chain of who called the code at c->rip, as 1 + an element of `caller`. */
static u32 callers_now(struct soft_profile *p, struct soft_cpu *c)
{
	u64 address[CALLERS_MOST];
	u32 nr = p->unwind ? soft_unwind(p->unwind, c, address, CALLERS_MOST) : 0, up = 0;

	/* From the outermost in. */
	while (nr--) {
		/* A call may be its function's last instruction. */
		struct profile_caller key = { .function = function_start(p, c, address[nr] - 1), .up = up }, *copy;
		gpointer found;

		if (!key.function)
			continue;
		found = g_hash_table_lookup(p->chain, &key);
		if (!found) {
			if (p->caller->len == CALLERS_MAX)
				return up;
			copy = g_new(struct profile_caller, 1);
			*copy = key;
			g_array_append_val(p->caller, key);
			found = GUINT_TO_POINTER(p->caller->len);
			g_hash_table_insert(p->chain, copy, found);
		}
		up = GPOINTER_TO_UINT(found);
	}
	return up;
}

/* What went by until `now` goes to c->rip, as so many samples. */
static void profile_add(struct soft_cpu *c, u64 now, u64 samples, u64 stall)
{
	struct soft_profile *p = c->svm->profile;
	struct profile_cpu *pc = &p->cpu[c->vcpu->id];
	u64 rip = c->cpl == 3 ? PROFILE_USER : c->rip;
	u32 entry = c->cpl == 3 ? 0 : entry_now(p, c), caller;
	struct profile_code *code;

	if (now <= pc->sampled)
		return;
	if (p->threads)
		thread_profile_note(p->threads, c);
	caller = c->cpl == 3 ? 0 : callers_now(p, c);
	code = &p->slot[code_place(p, rip, entry, caller)];
	if (!code->samples && p->used * 2 >= p->size) {
		if (p->size == SLOTS_MAX) {
			p->lost += now - pc->sampled;
			pc->sampled = now;
			return;
		}
		code_grow(p);
		code = &p->slot[code_place(p, rip, entry, caller)];
	}
	p->used += !code->samples;
	code->rip = rip;
	code->entry = entry;
	code->caller = caller;
	code->samples += samples;
	code->time += now - pc->sampled;
	code->stall += MIN(stall, now - pc->sampled);
	pc->sampled = now;
}

void soft_profile_sample(struct soft_cpu *c, u64 stall)
{
	profile_add(c, soft_units(c), 1, stall);
}

void soft_profile_loop(struct soft_cpu *c, u64 now, u64 iterations)
{
	profile_add(c, now, iterations, 0);
}

void soft_profile_resume(struct soft_cpu *c)
{
	struct soft_profile *p = c->svm->profile;
	u64 now = soft_units(c);

	if (p->threads && now > p->cpu[c->vcpu->id].sampled)
		thread_profile_note(p->threads, c);
	p->cpu[c->vcpu->id].sampled = now;
}

/* execve(), execveat() and prctl() of x86-64 Linux. */
static bool renames(u32 entry)
{
	return entry == PROFILE_ENTRY(PROFILE_ENTRY_SYSCALL, 59) || entry == PROFILE_ENTRY(PROFILE_ENTRY_SYSCALL, 322) ||
	       entry == PROFILE_ENTRY(PROFILE_ENTRY_SYSCALL, 157);
}

void soft_profile_enter(struct soft_cpu *c, bool user, u32 entry)
{
	struct profile_cpu *pc = &c->svm->profile->cpu[c->vcpu->id];

	if (user) {
		if (renames(entry) && c->svm->profile->threads)
			thread_profile_renames(c->svm->profile->threads, c);
		pc->entry = entry;
		pc->stack = 0;
		pc->depth = 0;
		return;
	}
	if (pc->depth < NR_NESTED)
		pc->nested[pc->depth] = entry;
	pc->depth++;
}

void soft_profile_leave(struct soft_cpu *c)
{
	struct profile_cpu *pc = &c->svm->profile->cpu[c->vcpu->id];

	if (c->cpl == 3) {
		if (c->svm->profile->threads)
			thread_profile_leave(c->svm->profile->threads, c);
		pc->entry = pc->depth = 0;
	} else if (pc->depth) {
		pc->depth--;
	}
}

/*
 * The classes of a vCPU's time up to the mark, and the time then. The clock of a vCPU that has nothing to run
 * stands still until its next event; until the mark it has been idle.
 */
static u64 cpu_times(struct soft_cpu *c, u64 mark, u64 spent[NR_SOFT_TIMES])
{
	u64 now = soft_units(c);

	soft_settle(c);
	memcpy(spent, c->spent, sizeof(c->spent));
	if (c->vcpu->mp_state == VCPU_RUNNABLE || now >= mark)
		return now;
	spent[TIME_idle] += mark - now;
	return mark;
}

void soft_profile_start(struct vm *vm, u64 now)
{
	struct soft_vm *svm = vm->engine_data;
	struct soft_profile *p;
	u64 mark = soft_units_of(svm, now);
	u32 i;

	soft_spin_wake_all(svm);
	soft_profile_destroy(svm);
	p = svm->profile = g_new0(struct soft_profile, 1);
	code_grow(p);
	p->unwind = soft_unwind_create(soft_cpu(vm->vcpu[0]), vm->symbols);
	p->caller = g_array_new(FALSE, FALSE, sizeof(struct profile_caller));
	p->chain = g_hash_table_new_full(caller_hash, caller_equal, g_free, NULL);
	p->cpu = g_new0(struct profile_cpu, vm->topo.nr_cpus);
	p->threads = thread_profile_create(svm);
	for (i = 0; i < vm->topo.nr_cpus; i++) {
		struct soft_cpu *c = soft_cpu(vm->vcpu[i]);

		p->cpu[i].begin = cpu_times(c, mark, p->cpu[i].base);
		p->cpu[i].sampled = soft_units(c);
		if (p->threads)
			thread_profile_begin(p->threads, c, p->cpu[i].base);
	}
	if (svm->lines)
		svm->lines->profile = line_profile_create();
}

void soft_profile_destroy(struct soft_vm *svm)
{
	struct soft_profile *p = svm->profile;

	if (svm->lines) {
		line_profile_destroy(svm->lines->profile);
		svm->lines->profile = NULL;
	}
	if (p) {
		soft_unwind_destroy(p->unwind);
		thread_profile_destroy(p->threads);
		g_array_unref(p->caller);
		g_hash_table_unref(p->chain);
		g_free(p->slot);
		g_free(p->cpu);
	}
	g_free(p);
	svm->profile = NULL;
}

static int by_code(const void *a, const void *b)
{
	const struct profile_code *x = a, *y = b;

	if (x->rip != y->rip)
		return x->rip < y->rip ? -1 : 1;
	if (x->entry != y->entry)
		return x->entry < y->entry ? -1 : 1;
	return x->caller < y->caller ? -1 : x->caller > y->caller;
}

static void read_code(const struct soft_profile *from, struct profile *p)
{
	u32 i;

	p->lost = from->lost;
	g_array_append_vals(p->caller, from->caller->data, from->caller->len);
	for (i = 0; i < from->size; i++)
		if (from->slot[i].samples)
			g_array_append_val(p->code, from->slot[i]);
	if (p->code->len)
		qsort(p->code->data, p->code->len, sizeof(struct profile_code), by_code);
}

void soft_profile_read(struct vm *vm, u64 now, bool all, struct profile *p)
{
	static const char *const name[] = {
#define SOFT_TIME(name, meaning)	#name,
#include "soft/soft-time.def"
#undef SOFT_TIME
	};
	struct soft_vm *svm = vm->engine_data;
	u64 mark = soft_units_of(svm, now), spent[NR_SOFT_TIMES];
	u32 i, t;

	soft_spin_wake_all(svm);
	profile_init(p, vm->topo.nr_cpus, NR_SOFT_TIMES);
	p->scale = COST_CYCLE;
	p->class_name = name;
	if (!svm->profile)
		return;
	for (i = 0; i < vm->topo.nr_cpus; i++) {
		const struct profile_cpu *pc = &svm->profile->cpu[i];

		p->elapsed[i] = cpu_times(soft_cpu(vm->vcpu[i]), mark, spent) - pc->begin;
		for (t = 0; t < NR_SOFT_TIMES; t++)
			p->spent[i * NR_SOFT_TIMES + t] = spent[t] - pc->base[t];
		if (all && svm->profile->threads)
			thread_profile_end(svm->profile->threads, soft_cpu(vm->vcpu[i]), spent);
	}
	read_code(svm->profile, p);
	if (!all)
		return;
	if (svm->profile->threads)
		thread_profile_read(svm->profile->threads, p);
	if (svm->lines) {
		line_profile_top(svm->lines->profile, LINES_MOST, p->line);
		slab_name_lines(soft_cpu(vm->vcpu[0]), p->line);
	}
}
