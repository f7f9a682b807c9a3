// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where things are in an x86-64 Linux that was not moved: Documentation/arch/x86/x86_64/mm.rst; per-CPU variables: arch/x86/include/asm/percpu.h;
 * names: vmstat_text in mm/vmstat.c, whose events begin with "pgpgin" and end the array.
 */
#include "vmstat.h"

#include <string.h>

#include "core/memory.h"
#include "core/symbols.h"

/* The kernel's image, and all of RAM (of four levels; page_offset_base says where else). */
#define KERNEL_MAP	0xffffffff80000000ull
#define DIRECT_MAP	0xffff888000000000ull
#define FIRST_EVENT	"pgpgin"
#define BANNER		"Linux version "
/* Zones, nodes and lists come before the events. */
#define MAX_BEFORE	512u

struct place {
	const struct memory *mem;
	u64 image, direct;	/* what is taken off of an address */
};

static bool to_gpa(const struct place *p, u64 va, gpa_t *gpa)
{
	*gpa = va >= KERNEL_MAP ? va - p->image : va - p->direct;
	return va >= KERNEL_MAP || va >= p->direct;
}

static bool read_at(const struct place *p, u64 va, void *to, u64 len)
{
	gpa_t gpa;

	return to_gpa(p, va, &gpa) && !memory_read(p->mem, gpa, to, len);
}

/* A name of /proc/vmstat, terminated; false if there is none. */
static bool read_name(const struct place *p, u64 va, char *to)
{
	size_t i;

	/* Byte by byte: it may end where memory does. */
	for (i = 0; i < VMSTAT_NAME_LEN; i++) {
		if (!read_at(p, va + i, to + i, 1))
			return false;
		if (!to[i])
			break;
		if (!g_ascii_islower(to[i]) && !g_ascii_isdigit(to[i]) && to[i] != '_')
			return false;
	}
	return i && i < VMSTAT_NAME_LEN;
}

/* The names, from the first event to the last; how many. */
static u32 read_names(const struct place *p, u64 text, struct vmstat *v)
{
	u32 at = 0;
	u64 pointer;
	char name[VMSTAT_NAME_LEN];

	for (; at < MAX_BEFORE; at++) {
		if (!read_at(p, text + at * sizeof(u64), &pointer, sizeof(pointer)) || pointer < KERNEL_MAP || !read_name(p, pointer, name))
			return 0;
		if (!strcmp(name, FIRST_EVENT))
			break;
	}
	for (v->nr = 0; v->nr < VMSTAT_MAX; v->nr++)
		if (!read_at(p, text + (at + v->nr) * sizeof(u64), &pointer, sizeof(pointer)) || pointer < KERNEL_MAP ||
		    !read_name(p, pointer, v->name[v->nr]))
			break;
	return v->nr;
}

static bool find_cpus(const struct place *p, u64 offsets, u64 states, struct vmstat *v)
{
	for (u32 i = 0; i < v->nr_cpus; i++) {
		u64 offset;
		u8 last;

		if (!read_at(p, offsets + i * sizeof(u64), &offset, sizeof(offset)) || !to_gpa(p, offset + states, &v->cpu[i]) || v->cpu[i] % sizeof(u64) ||
		    memory_read(p->mem, v->cpu[i] + v->nr * sizeof(u64) - 1, &last, 1))
			return false;
	}
	return true;
}

struct vmstat *vmstat_new(const struct vm *vm)
{
	u64 states = symbols_address(vm->symbols, "vm_event_states"), offsets = symbols_address(vm->symbols, "__per_cpu_offset"),
	    text = symbols_address(vm->symbols, "vmstat_text"), banner = symbols_address(vm->symbols, "linux_banner"),
	    base = symbols_address(vm->symbols, "page_offset_base");
	struct place p = { .mem = &vm->mem, .image = KERNEL_MAP, .direct = DIRECT_MAP };
	char words[sizeof(BANNER)] = "";
	struct vmstat *v;

	if (!states || states >= KERNEL_MAP || !offsets || !text || !banner)
		return NULL;
	if (!read_at(&p, banner, words, sizeof(words) - 1) || strcmp(words, BANNER))
		return NULL;
	if (base && !read_at(&p, base, &p.direct, sizeof(p.direct)))
		return NULL;
	v = g_new0(struct vmstat, 1);
	v->nr_cpus = vm->topo.nr_cpus;
	v->cpu = g_new0(gpa_t, v->nr_cpus);
	if (read_names(&p, text, v) && find_cpus(&p, offsets, states, v))
		return v;
	vmstat_free(v);
	return NULL;
}

void vmstat_free(struct vmstat *v)
{
	if (!v)
		return;
	g_free(v->cpu);
	g_free(v);
}

u64 *vmstat_read(const struct vmstat *v, const struct vm *vm)
{
	u64 *sum = g_new0(u64, v->nr), *one = g_new(u64, v->nr);

	for (u32 cpu = 0; cpu < v->nr_cpus; cpu++) {
		if (memory_read(&vm->mem, v->cpu[cpu], one, v->nr * sizeof(u64))) {
			g_clear_pointer(&sum, g_free);
			break;
		}
		for (u32 i = 0; i < v->nr; i++)
			sum[i] += one[i];
	}
	g_free(one);
	return sum;
}
