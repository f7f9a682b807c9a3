/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CPUID as the guest sees it: a named CPU model (feature mask) combined with the
 * topology, for either vendor. Constant once built; any thread may read it.
 *
 * Model faultbed-v1 is x86-64 with SSE2 plus what Linux 6.12 and common C
 * libraries want (see cpuid-model.c for the list, bit by bit), no AVX. Vendor policy,
 * family and model, maximum leaves and the enumeration bits (HT, CMP_LEGACY,
 * TOPOEXT, ARAT, invariant TSC, HYPERVISOR) are the model's and never
 * intersected with the host's.
 *
 * Model "host" takes every leaf of the host's table and replaces only topology,
 * caches' sharing, the hypervisor leaves and the bits that cpuid_params decides.
 */
#ifndef CORE_CPUID_H
#define CORE_CPUID_H

#include "base/types.h"
#include "core/topology.h"

enum cpu_vendor {
	VENDOR_INTEL,
	VENDOR_AMD,
};

struct cpuid_entry {
	u32 leaf, subleaf;
	bool has_subleaf;	/* subleaf is significant */
	u32 eax, ebx, ecx, edx;
};

#define CPUID_MAX_ENTRIES	128

struct cpuid_table {
	u32 nr;
	/* IA32_ARCH_CAPABILITIES where leaf 7 EDX bit 29 shows it; 0 = the engine's own */
	u64 arch_capabilities;
	struct cpuid_entry entry[CPUID_MAX_ENTRIES];
};

struct cpuid_params {
	const char *model;		/* "faultbed-v1" or "host" */
	enum cpu_vendor vendor;
	/* What the engine can do (KVM_GET_SUPPORTED_CPUID); NULL = everything in the model. */
	const struct cpuid_table *host;
	bool x2apic;			/* show X2APIC */
	bool tsc_deadline;		/* show TSC_DEADLINE */
	bool mwait;			/* show MONITOR */
	bool kvmclock;			/* show the KVM signature and CLOCKSOURCE, _2, _STABLE */
	u32 pv_features;		/* further KVM_FEATURE_* bits the scenario asked for */
	u64 tsc_hz;			/* for leaf 0x15/0x16 (Intel) */
	u32 phys_bits;			/* 0 = host's, or 40 */
};

/*
 * Build one vCPU's table: leaves 0, 1, 4 (Intel), 5 with mwait, 6, 7, 0xB, 0x15, 0x16,
 * 0x1F (Intel), 0x40000000/1 with a KVM feature, 0x80000000..8, 0x8000001D/1E, 0x80000021,
 * 0x80000026 (AMD). A leaf that is not there reads as zeroes.
 *
 * Cache sharing: L1 and L2 by a core's threads, L3 by a
 * socket (or by a node, where nodes split a socket), as power-of-two id spans.
 * -EINVAL with *err (g_free()): unknown model; a mask bit that long mode or the
 * kernel needs is missing from the host; "host" without a host's table.
 */
int cpuid_build(struct cpuid_table *table, const struct topology *topo, u32 cpu,
		const struct cpuid_params *params, char **err);

/* The entry for leaf/subleaf, or NULL. */
const struct cpuid_entry *cpuid_find(const struct cpuid_table *table, u32 leaf, u32 subleaf);

/* The feature words in effect as one stable line, "1.ecx=... 1.edx=... 7.ebx=..."; g_free(). */
char *cpuid_mask_string(const struct cpuid_table *table);
/* Features the model has and the host lacks, by name, comma separated, "" if none; g_free(). */
char *cpuid_missing(const struct cpuid_params *params);

#endif
