// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <glib.h>
#include <string.h>

#include "base/log.h"
#include "core/cpuid-model.h"
#include "x86/cpuid-bits.h"
#include "x86/msr.h"

/*
 * Family 6 model 0x3e (Ivy Bridge-EP/EX) is the machine of most published figures,
 * and Linux 6.12 asks it for no microcode and no erratum: of the lists in
 * arch/x86/kernel/cpu/common.c it is on VMSCAPE's alone, which is for bare metal.
 */
#define INTEL_SIGNATURE		0x000306e7u
#define INTEL_MAX_LEAF		CPUID_LEAF_TOPOLOGY_V2
#define INTEL_MAX_EXT		CPUID_LEAF_SIZES
/*
 * Family 0x19 model 1 (Zen 3): Linux tells the last-level cache by leaf 0x8000001D
 * (from an id's fixed bits on family 0x17, models below 0x20), and tries no
 * LS_CFG and no Zen 1 or 2 erratum.
 */
#define AMD_SIGNATURE		0x00a00f11u
#define AMD_MAX_LEAF		0x10u
#define AMD_MAX_EXT		CPUID_LEAF_AMD_TOPOLOGY_V2

#define ITS_NO			(1ull << 62)
#define MODEL_ARCH_CAP		(ARCH_CAP_RDCL_NO | ARCH_CAP_SKIP_L1DFL | ARCH_CAP_SSB_NO | \
				 ARCH_CAP_MDS_NO | ARCH_CAP_PSCHANGE_MC_NO | ARCH_CAP_TAA_NO | \
				 ARCH_CAP_SBDR_SSDP_NO | ARCH_CAP_FBSDP_NO | ARCH_CAP_PSDP_NO | \
				 ARCH_CAP_BHI_NO | ARCH_CAP_PBRSB_NO | ARCH_CAP_GDS_NO | \
				 ARCH_CAP_RFDS_NO | ITS_NO)

#define BRAND			"Faultbed CPU v1"
#define DEFAULT_PHYS_BITS	40u
#define VIRT_BITS		48u

/* The local APIC timer's clock: Linux takes its rate from here (native_calibrate_tsc()). */
#define CRYSTAL_HZ		1000000000u

const struct cpuid_entry *cpuid_find(const struct cpuid_table *table, u32 leaf, u32 subleaf)
{
	for (u32 i = 0; i < table->nr; i++) {
		const struct cpuid_entry *e = &table->entry[i];

		if (e->leaf == leaf && (!e->has_subleaf || e->subleaf == subleaf))
			return e;
	}
	return NULL;
}

static void vendor_words(enum cpu_vendor vendor, struct cpuid_entry *e)
{
	const char *name = vendor == VENDOR_AMD ? "AuthenticAMD" : "GenuineIntel";

	memcpy(&e->ebx, name, 4);
	memcpy(&e->edx, name + 4, 4);
	memcpy(&e->ecx, name + 8, 4);
}

/* Bits of leaf 1 that the parameters and the topology decide, in either model. */
static void set_leaf_1(struct cpuid_entry *e, const struct topology *topo, u32 cpu,
		       const struct cpuid_params *p)
{
	u32 in_package = topo->cores * topo->threads;
	u32 ids = p->vendor == VENDOR_AMD ? in_package : BIT(cpuid_package_shift(topo));

	e->ebx = (topo->cpu[cpu].apic_id & 0xff) << 24 | (ids < 255 ? ids : 255) << 16 |
		 (CPUID_LINE / 8) << 8;
	e->ecx &= ~(CPUID_1_ECX_X2APIC | CPUID_1_ECX_TSC_DEADLINE | CPUID_1_ECX_MONITOR |
		    CPUID_1_ECX_OSXSAVE);
	e->ecx |= CPUID_1_ECX_HYPERVISOR;
	e->ecx |= p->x2apic ? CPUID_1_ECX_X2APIC : 0;
	e->ecx |= p->tsc_deadline ? CPUID_1_ECX_TSC_DEADLINE : 0;
	e->ecx |= p->mwait ? CPUID_1_ECX_MONITOR : 0;
	e->edx &= ~CPUID_1_EDX_HTT;
	e->edx |= in_package > 1 ? CPUID_1_EDX_HTT : 0;
}

static void set_ext_1(struct cpuid_entry *e, const struct topology *topo,
		      const struct cpuid_params *p)
{
	if (p->vendor != VENDOR_AMD)
		return;
	e->ecx |= CPUID_EXT1_ECX_TOPOEXT;
	e->ecx &= ~CPUID_EXT1_ECX_CMP_LEGACY;
	e->ecx |= topo->cores * topo->threads > 1 ? CPUID_EXT1_ECX_CMP_LEGACY : 0;
}

static u32 phys_bits(const struct cpuid_params *p)
{
	const struct cpuid_entry *e = p->host ? cpuid_find(p->host, CPUID_LEAF_SIZES, 0) : NULL;

	if (p->phys_bits)
		return p->phys_bits;
	return e && e->eax & 0xff ? e->eax & 0xff : DEFAULT_PHYS_BITS;
}

/*
 * num/den near to tsc_hz/CRYSTAL_HZ by continued fractions, as far as Linux's 32-bit
 * product of num and the crystal in kHz does not overflow: exact for a multiple
 * of 1 MHz below 4.29 GHz, else mostly within 1 part in a million, and within 120
 * just beside a whole number of GHz. (With kvmclock Linux does not read it.)
 */
static void tsc_ratio(u64 tsc_hz, u32 *num, u32 *den)
{
	const u64 max_num = UINT32_MAX / (CRYSTAL_HZ / 1000);
	u64 a = tsc_hz, b = CRYSTAL_HZ;
	u64 n0 = 0, d0 = 1, n1 = 1, d1 = 0;

	while (b) {
		u64 q = a / b, rest = a % b;
		u64 most = n1 ? (max_num - n0) / n1 : UINT64_MAX;
		bool last = q > most;
		u64 n2, d2;

		/* A part of the last step is an improvement if it is more than half of it. */
		if (last && 2 * most <= q)
			break;
		q = last ? most : q;
		n2 = q * n1 + n0;
		d2 = q * d1 + d0;
		n0 = n1;
		d0 = d1;
		n1 = n2;
		d1 = d2;
		if (last)
			break;
		a = b;
		b = rest;
	}
	*num = (u32)n1;
	*den = (u32)d1;
}

static void add_frequencies(struct cpuid_table *table, u64 tsc_hz)
{
	u32 num, den, mhz = (u32)((tsc_hz + 500000) / 1000000);
	struct cpuid_entry *e;

	tsc_ratio(tsc_hz, &num, &den);
	if (!num || !den)
		return;
	e = cpuid_add(table, CPUID_LEAF_TSC, 0, false);
	e->eax = den;
	e->ebx = num;
	e->ecx = CRYSTAL_HZ;
	e = cpuid_add(table, CPUID_LEAF_FREQUENCY, 0, false);
	e->eax = mhz;
	e->ebx = mhz;
	e->ecx = 100;
}

static void add_hypervisor(struct cpuid_table *table, const struct cpuid_params *p)
{
	u32 features = p->pv_features;
	struct cpuid_entry *e;

	cpuid_drop(table, CPUID_LEAF_KVM);
	cpuid_drop(table, CPUID_LEAF_KVM_FEATURES);
	if (p->kvmclock)
		features |= KVM_FEATURE_CLOCKSOURCE_BIT | KVM_FEATURE_CLOCKSOURCE2_BIT |
			    KVM_FEATURE_CLOCKSOURCE_STABLE_BIT;
	/* Without interrupt remapping Linux reaches ids above 255 by this only. */
	if (p->x2apic)
		features |= KVM_FEATURE_MSI_EXT_DEST_ID_BIT;
	if (!features)
		return;
	e = cpuid_add(table, CPUID_LEAF_KVM, 0, false);
	e->eax = CPUID_LEAF_KVM_FEATURES;
	memcpy(&e->ebx, "KVMK", 4);
	memcpy(&e->ecx, "VMKV", 4);
	memcpy(&e->edx, "M\0\0\0", 4);
	e = cpuid_add(table, CPUID_LEAF_KVM_FEATURES, 0, false);
	e->eax = features;
}

static void add_brand(struct cpuid_table *table)
{
	char text[48] = BRAND;

	for (u32 i = 0; i < 3; i++) {
		struct cpuid_entry *e = cpuid_add(table, CPUID_LEAF_BRAND + i, 0, false);

		memcpy(&e->eax, text + i * 16, 4);
		memcpy(&e->ebx, text + i * 16 + 4, 4);
		memcpy(&e->ecx, text + i * 16 + 8, 4);
		memcpy(&e->edx, text + i * 16 + 12, 4);
	}
}

/* What the two models have in common: it replaces what "host" copied. */
static void add_topology(struct cpuid_table *table, const struct topology *topo, u32 cpu,
			 const struct cpuid_params *p)
{
	u32 package = topo->cores * topo->threads;
	struct cpuid_entry *e = cpuid_add(table, CPUID_LEAF_VENDOR, 0, false);

	e->eax = p->vendor == VENDOR_AMD ? AMD_MAX_LEAF : INTEL_MAX_LEAF;
	vendor_words(p->vendor, e);
	cpuid_add_topology(table, topo, cpu, CPUID_LEAF_TOPOLOGY);
	e = cpuid_add(table, CPUID_LEAF_EXT, 0, false);
	e->eax = p->vendor == VENDOR_AMD ? AMD_MAX_EXT : INTEL_MAX_EXT;
	if (p->vendor == VENDOR_INTEL) {
		cpuid_add_topology(table, topo, cpu, CPUID_LEAF_TOPOLOGY_V2);
		cpuid_add_caches(table, topo, CPUID_LEAF_CACHES);
		add_frequencies(table, p->tsc_hz);
	} else {
		vendor_words(p->vendor, e);
		cpuid_add_caches(table, topo, CPUID_LEAF_AMD_CACHES);
		cpuid_add_amd_topology(table, topo, cpu);
		cpuid_add_amd_topology_v2(table, topo, cpu);
	}
	cpuid_add_legacy_caches(table, topo, p->vendor == VENDOR_AMD);
	e = cpuid_add(table, CPUID_LEAF_SIZES, 0, false);
	e->eax = phys_bits(p) | VIRT_BITS << 8;
	if (p->vendor == VENDOR_AMD)
		e->ecx = (package - 1 < 255 ? package - 1 : 255) | cpuid_package_shift(topo) << 12;
	add_hypervisor(table, p);
}

static void add_model_words(struct cpuid_table *table, const struct cpuid_params *p)
{
	static const u32 leaf[] = {
		CPUID_LEAF_FEATURES, CPUID_LEAF_POWER, CPUID_LEAF_EXT_FEATURES, CPUID_LEAF_EXT_1,
		CPUID_LEAF_POWER_EXT, CPUID_LEAF_SIZES, CPUID_LEAF_AMD_EXT_2,
	};

	for (u32 i = 0; i < ARRAY_SIZE(leaf); i++) {
		const struct cpuid_entry *there = cpuid_find(table, leaf[i], 0);
		struct cpuid_entry *e, before = there ? *there : (struct cpuid_entry){ 0 };

		if (leaf[i] == CPUID_LEAF_AMD_EXT_2 && p->vendor != VENDOR_AMD)
			continue;
		e = cpuid_add(table, leaf[i], 0, leaf[i] == CPUID_LEAF_EXT_FEATURES);
		e->eax = before.eax | cpuid_model_word(p, leaf[i], CPUID_EAX);
		e->ebx = before.ebx | cpuid_model_word(p, leaf[i], CPUID_EBX);
		e->ecx = before.ecx | cpuid_model_word(p, leaf[i], CPUID_ECX);
		e->edx = before.edx | cpuid_model_word(p, leaf[i], CPUID_EDX);
	}
}

static int build_model(struct cpuid_table *table, const struct topology *topo, u32 cpu,
		       const struct cpuid_params *p, char **err)
{
	char *missing = cpuid_model_missing(p, true);
	struct cpuid_entry *e;

	if (*missing) {
		*err = g_strdup_printf("this host's CPU lacks %s, which CPU model faultbed-v1 needs",
				       missing);
		g_free(missing);
		return -EINVAL;
	}
	g_free(missing);

	add_topology(table, topo, cpu, p);
	add_model_words(table, p);
	add_brand(table);
	if (p->mwait) {
		e = cpuid_add(table, CPUID_LEAF_MWAIT, 0, false);
		e->eax = CPUID_LINE;
		e->ebx = CPUID_LINE;
		e->ecx = 3;	/* extensions; interrupts break MWAIT even when masked */
		e->edx = 0x10;	/* one C1 sub-state */
	}
	if (p->vendor == VENDOR_INTEL)
		table->arch_capabilities = MODEL_ARCH_CAP;
	return 0;
}

/* Every leaf of the host, with the topology put over it. */
static int build_host(struct cpuid_table *table, const struct topology *topo, u32 cpu,
		      const struct cpuid_params *p, char **err)
{
	const struct cpuid_entry *sizes;
	struct cpuid_entry *e;
	u32 ebx;

	if (!p->host) {
		*err = g_strdup("cpu_model = host needs an engine with a host CPU; use faultbed-v1");
		return -EINVAL;
	}
	if (p->host->nr > CPUID_MAX_ENTRIES - 32) {
		*err = g_strdup_printf("this host's CPU has %u CPUID leaves, more than cpu_model = host can take; use faultbed-v1",
				       p->host->nr);
		return -EINVAL;
	}
	memcpy(table->entry, p->host->entry, p->host->nr * sizeof(table->entry[0]));
	table->nr = p->host->nr;
	sizes = cpuid_find(table, CPUID_LEAF_SIZES, 0);
	ebx = sizes ? sizes->ebx : 0;
	add_topology(table, topo, cpu, p);
	e = (struct cpuid_entry *)cpuid_find(table, CPUID_LEAF_SIZES, 0);
	e->ebx = ebx;
	return 0;
}

int cpuid_build(struct cpuid_table *table, const struct topology *topo, u32 cpu,
		const struct cpuid_params *params, char **err)
{
	struct cpuid_entry *e;
	int ret;

	memset(table, 0, sizeof(*table));
	if (!strcmp(params->model, "faultbed-v1")) {
		ret = build_model(table, topo, cpu, params, err);
	} else if (!strcmp(params->model, "host")) {
		ret = build_host(table, topo, cpu, params, err);
	} else {
		*err = g_strdup_printf("no CPU model \"%s\": there are faultbed-v1 and host",
				       params->model);
		ret = -EINVAL;
	}
	if (ret)
		return ret;

	e = (struct cpuid_entry *)cpuid_find(table, CPUID_LEAF_FEATURES, 0);
	if (!e)
		e = cpuid_add(table, CPUID_LEAF_FEATURES, 0, false);
	if (!strcmp(params->model, "faultbed-v1"))
		e->eax = params->vendor == VENDOR_AMD ? AMD_SIGNATURE : INTEL_SIGNATURE;
	set_leaf_1(e, topo, cpu, params);
	e = (struct cpuid_entry *)cpuid_find(table, CPUID_LEAF_EXT_1, 0);
	if (e)
		set_ext_1(e, topo, params);
	return 0;
}

char *cpuid_mask_string(const struct cpuid_table *table)
{
	static const struct {
		u32 leaf;
		enum cpuid_reg reg;
		const char *name;
	} word[] = {
		{ CPUID_LEAF_FEATURES, CPUID_ECX, "1.ecx" },
		{ CPUID_LEAF_FEATURES, CPUID_EDX, "1.edx" },
		{ CPUID_LEAF_POWER, CPUID_EAX, "6.eax" },
		{ CPUID_LEAF_EXT_FEATURES, CPUID_EBX, "7.ebx" },
		{ CPUID_LEAF_EXT_FEATURES, CPUID_ECX, "7.ecx" },
		{ CPUID_LEAF_EXT_FEATURES, CPUID_EDX, "7.edx" },
		{ CPUID_LEAF_KVM_FEATURES, CPUID_EAX, "40000001.eax" },
		{ CPUID_LEAF_EXT_1, CPUID_ECX, "80000001.ecx" },
		{ CPUID_LEAF_EXT_1, CPUID_EDX, "80000001.edx" },
		{ CPUID_LEAF_POWER_EXT, CPUID_EDX, "80000007.edx" },
		{ CPUID_LEAF_SIZES, CPUID_EBX, "80000008.ebx" },
		{ CPUID_LEAF_AMD_EXT_2, CPUID_EAX, "80000021.eax" },
		{ CPUID_LEAF_AMD_EXT_2, CPUID_ECX, "80000021.ecx" },
	};
	GString *s = g_string_new(NULL);

	for (u32 i = 0; i < ARRAY_SIZE(word); i++) {
		const struct cpuid_entry *e = cpuid_find(table, word[i].leaf, 0);
		struct cpuid_entry copy = e ? *e : (struct cpuid_entry){ 0 };

		g_string_append_printf(s, "%s%s=%08x", i ? " " : "", word[i].name,
				       *cpuid_reg(&copy, word[i].reg));
	}
	return g_string_free(s, FALSE);
}

char *cpuid_missing(const struct cpuid_params *params)
{
	return cpuid_model_missing(params, false);
}
