/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Inside of core/cpuid: the feature bits of CPU model faultbed-v1 (cpuid-model.c) and
 * the leaves of the topology (cpuid-topology.c). Pure functions; nothing here is
 * for others than cpuid*.c.
 */
#ifndef CORE_CPUID_MODEL_H
#define CORE_CPUID_MODEL_H

#include "core/cpuid.h"

#define CPUID_LINE	64u	/* bytes of a cache line */

enum cpuid_reg { CPUID_EAX, CPUID_EBX, CPUID_ECX, CPUID_EDX };

static inline u32 *cpuid_reg(struct cpuid_entry *e, enum cpuid_reg reg)
{
	switch (reg) {
	case CPUID_EAX: return &e->eax;
	case CPUID_EBX: return &e->ebx;
	case CPUID_ECX: return &e->ecx;
	case CPUID_EDX: break;
	}
	return &e->edx;
}

/* The model's bits of a feature word for the vendor in params, less what the host cannot do. */
u32 cpuid_model_word(const struct cpuid_params *params, u32 leaf, enum cpuid_reg reg);
/* Names, comma separated, of bits that the host lacks: all, or only those without which
 * nothing runs. g_free(). */
char *cpuid_model_missing(const struct cpuid_params *params, bool required_only);

/* A cleared entry: one that is there already (of model "host"), or a new one at the end. */
struct cpuid_entry *cpuid_add(struct cpuid_table *table, u32 leaf, u32 subleaf, bool has_subleaf);
/* Remove all entries of a leaf. */
void cpuid_drop(struct cpuid_table *table, u32 leaf);

/* Bits of the APIC id below the socket's number. */
u32 cpuid_package_shift(const struct topology *topo);
/* Leaf 0xB or 0x1F. */
void cpuid_add_topology(struct cpuid_table *table, const struct topology *topo, u32 cpu, u32 leaf);
/* Leaf 4 or 0x8000001D. */
void cpuid_add_caches(struct cpuid_table *table, const struct topology *topo, u32 leaf);
/* Leaf 0x80000006, and 0x80000005 with `amd`. */
void cpuid_add_legacy_caches(struct cpuid_table *table, const struct topology *topo, bool amd);
/* Leaves 0x8000001E and 0x80000026. */
void cpuid_add_amd_topology(struct cpuid_table *table, const struct topology *topo, u32 cpu);
void cpuid_add_amd_topology_v2(struct cpuid_table *table, const struct topology *topo, u32 cpu);

#endif
