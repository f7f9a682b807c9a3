// SPDX-License-Identifier: GPL-2.0-only
/* The leaves that say where a CPU is and what it shares, and entries of a table. */
#include "base/log.h"
#include "core/cpuid-model.h"
#include "x86/cpuid-bits.h"

/* Ivy Bridge-EP's caches; the L3 is as large as its cores make it. */
struct cache {
	u32 level, type, ways, size;
};

#define L3_WAYS			20u
#define L3_PER_CORE		(L3_WAYS * CPUID_LINE * 2048u)	/* 2.5 MiB */

struct cpuid_entry *cpuid_add(struct cpuid_table *table, u32 leaf, u32 subleaf, bool has_subleaf)
{
	struct cpuid_entry *e;

	/* Replaces, for the "host" model. */
	for (u32 i = 0; i < table->nr; i++) {
		e = &table->entry[i];
		if (e->leaf == leaf && (!has_subleaf || e->subleaf == subleaf))
			goto clear;
	}
	fb_assert(table->nr < CPUID_MAX_ENTRIES);
	e = &table->entry[table->nr++];
clear:
	*e = (struct cpuid_entry){ .leaf = leaf, .subleaf = subleaf, .has_subleaf = has_subleaf };
	return e;
}

void cpuid_drop(struct cpuid_table *table, u32 leaf)
{
	u32 n = 0;

	for (u32 i = 0; i < table->nr; i++)
		if (table->entry[i].leaf != leaf)
			table->entry[n++] = table->entry[i];
	table->nr = n;
}

u32 cpuid_package_shift(const struct topology *topo)
{
	return topo->thread_bits + topo->core_bits;
}

/* Leaves 0xB and 0x1F: widths in bits of the id below each level (SDM 3A 8.9.1 [9.9.1]). */
void cpuid_add_topology(struct cpuid_table *table, const struct topology *topo, u32 cpu, u32 leaf)
{
	struct cpuid_entry *e;

	cpuid_drop(table, leaf);
	e = cpuid_add(table, leaf, 0, true);
	e->eax = topo->thread_bits;
	e->ebx = topo->threads;
	e->ecx = 0 | CPUID_LEVEL_SMT << 8;
	e->edx = topo->cpu[cpu].apic_id;

	e = cpuid_add(table, leaf, 1, true);
	e->eax = cpuid_package_shift(topo);
	e->ebx = topo->cores * topo->threads;
	e->ecx = 1 | CPUID_LEVEL_CORE << 8;
	e->edx = topo->cpu[cpu].apic_id;

	e = cpuid_add(table, leaf, 2, true);
	e->ecx = 2;
	e->edx = topo->cpu[cpu].apic_id;
}

/* 0x80000026 (APM vol. 3 E.4.23): cores, core complexes (one an L3), sockets. */
void cpuid_add_amd_topology_v2(struct cpuid_table *table, const struct topology *topo, u32 cpu)
{
	const struct { u32 shift, count, type; } level[] = {
		{ topo->thread_bits, topo->threads, CPUID_AMD_LEVEL_CORE },
		{ topo->l3_shift, topo->cores / topo->l3_per_socket * topo->threads,
		  CPUID_AMD_LEVEL_COMPLEX },
		{ cpuid_package_shift(topo), topo->cores * topo->threads, CPUID_AMD_LEVEL_SOCKET },
		{ 0, 0, 0 },
	};

	cpuid_drop(table, CPUID_LEAF_AMD_TOPOLOGY_V2);
	for (u32 i = 0; i < ARRAY_SIZE(level); i++) {
		struct cpuid_entry *e = cpuid_add(table, CPUID_LEAF_AMD_TOPOLOGY_V2, i, true);

		e->eax = level[i].shift;
		e->ebx = level[i].count;
		e->ecx = i | level[i].type << 8;
		e->edx = topo->cpu[cpu].apic_id;
	}
}

/*
 * Leaf 4 and AMD's 0x8000001D differ in the top field of EAX only. What they
 * count is ids, not CPUs: Linux rounds the number up to a power of two and shifts
 * the APIC id by that, so a span of 15 cores must say 16.
 */
void cpuid_add_caches(struct cpuid_table *table, const struct topology *topo, u32 leaf)
{
	const u32 l3_cores = topo->cores / topo->l3_per_socket;
	const struct cache cache[] = {
		{ 1, CPUID_CACHE_DATA, 8, 32 << 10 },
		{ 1, CPUID_CACHE_CODE, 8, 32 << 10 },
		{ 2, CPUID_CACHE_UNIFIED, 8, 256 << 10 },
		{ 3, CPUID_CACHE_UNIFIED, L3_WAYS, l3_cores * L3_PER_CORE },
	};
	struct cpuid_entry *e;
	u32 i;

	cpuid_drop(table, leaf);
	for (i = 0; i < ARRAY_SIZE(cache); i++) {
		u32 span = BIT(cache[i].level == 3 ? topo->l3_shift : topo->thread_bits);

		e = cpuid_add(table, leaf, i, true);
		e->eax = cache[i].type | cache[i].level << 5 | BIT(8) | (span - 1) << 14;
		if (leaf == CPUID_LEAF_CACHES)
			e->eax |= (topo->core_bits < 6 ? BIT(topo->core_bits) - 1 : 63) << 26;
		e->ebx = (CPUID_LINE - 1) | (cache[i].ways - 1) << 22;
		e->ecx = cache[i].size / (cache[i].ways * CPUID_LINE) - 1;
		e->edx = cache[i].level == 3 ? BIT(1) : 0;	/* inclusive */
	}
	cpuid_add(table, leaf, i, true);		/* type 0: no more */
}

/* 0x80000005/6: the same caches in the old form; Linux asks the latter's EDX for an L3. */
void cpuid_add_legacy_caches(struct cpuid_table *table, const struct topology *topo, bool amd)
{
	u32 l3_size = topo->cores / topo->l3_per_socket * L3_PER_CORE;
	struct cpuid_entry *e;

	if (amd) {
		e = cpuid_add(table, CPUID_LEAF_AMD_L1, 0, false);
		e->eax = 0xff40ff40;	/* TLBs: 64 entries, fully associative, for large pages */
		e->ebx = 0xff40ff40;	/* and for 4 KiB */
		e->ecx = 32u << 24 | 8 << 16 | 1 << 8 | CPUID_LINE;
		e->edx = 32u << 24 | 8 << 16 | 1 << 8 | CPUID_LINE;
	}
	e = cpuid_add(table, CPUID_LEAF_L2, 0, false);
	e->ecx = 256u << 16 | 6 << 12 | 1 << 8 | CPUID_LINE;		/* code 6: 8 ways */
	if (amd) {
		e->eax = 0x42004200;	/* 512 entries, 4 ways */
		e->ebx = 0x42004200;
		/* 9: see 0x8000001D */
		e->edx = (l3_size >> 19) << 18 | 9 << 12 | 1 << 8 | CPUID_LINE;
	}
}

void cpuid_add_amd_topology(struct cpuid_table *table, const struct topology *topo, u32 cpu)
{
	const struct topology_cpu *c = &topo->cpu[cpu];
	struct cpuid_entry *e = cpuid_add(table, CPUID_LEAF_AMD_TOPOLOGY, 0, false);

	e->eax = c->apic_id;
	e->ebx = (c->core & 0xff) | (topo->threads - 1) << 8;
	/*
	 * One node a processor, as Zen 2 and later say of themselves however the
	 * firmware splits them; NUMA is the SRAT's affair.
	 */
	e->ecx = c->socket & 0xff;
}
