// SPDX-License-Identifier: GPL-2.0-only
/*
 * CPU model faultbed-v1, bit by bit. What is not listed is not shown: SSE3 and
 * later vector extensions (C libraries have SSE2 forms of everything), XSAVE (so
 * state is FXSAVE's 512 bytes everywhere), AVX, performance counters, SVM, VMX.
 *
 * No speculation control (IBRS, IBPB, STIBP, SSBD) is shown either, and every
 * "not affected" bit is: what a guest mitigates is then a matter of its command line
 * and not of the host's age. On Intel two mitigations cannot be denied by any
 * bit, SWAPGS and BHI; results carry the guest's own list.
 */
#include <glib.h>

#include "core/cpuid-model.h"
#include "x86/cpuid-bits.h"

#define REQUIRED	BIT(0)	/* long mode, Linux or our local APIC needs it */
#define ALWAYS		BIT(1)	/* enumeration or policy: shown whatever the host says */
#define INTEL		BIT(2)	/* that vendor only */
#define AMD		BIT(3)
#define EXT_COPY	BIT(4)	/* AMD repeats the bit in 0x80000001 EDX */

struct feature {
	const char *name;
	u32 leaf;
	enum cpuid_reg reg;
	u32 bit;
	u32 flags;
};

static const struct feature features[] = {
	{ "fpu", 1, CPUID_EDX, 0, REQUIRED | EXT_COPY },
	{ "vme", 1, CPUID_EDX, 1, EXT_COPY },
	{ "de", 1, CPUID_EDX, 2, EXT_COPY },
	{ "pse", 1, CPUID_EDX, 3, REQUIRED | EXT_COPY },
	{ "tsc", 1, CPUID_EDX, 4, REQUIRED | EXT_COPY },
	{ "msr", 1, CPUID_EDX, 5, REQUIRED | EXT_COPY },
	{ "pae", 1, CPUID_EDX, 6, REQUIRED | EXT_COPY },
	{ "mce", 1, CPUID_EDX, 7, EXT_COPY },
	{ "cx8", 1, CPUID_EDX, 8, REQUIRED | EXT_COPY },
	{ "apic", 1, CPUID_EDX, 9, REQUIRED | ALWAYS | EXT_COPY },
	{ "sep", 1, CPUID_EDX, 11, 0 },
	{ "mtrr", 1, CPUID_EDX, 12, EXT_COPY },
	{ "pge", 1, CPUID_EDX, 13, REQUIRED | EXT_COPY },
	{ "mca", 1, CPUID_EDX, 14, EXT_COPY },
	{ "cmov", 1, CPUID_EDX, 15, REQUIRED | EXT_COPY },
	{ "pat", 1, CPUID_EDX, 16, EXT_COPY },
	{ "pse36", 1, CPUID_EDX, 17, EXT_COPY },
	{ "clflush", 1, CPUID_EDX, 19, 0 },
	{ "mmx", 1, CPUID_EDX, 23, EXT_COPY },
	{ "fxsr", 1, CPUID_EDX, 24, REQUIRED | EXT_COPY },
	{ "sse", 1, CPUID_EDX, 25, REQUIRED },
	{ "sse2", 1, CPUID_EDX, 26, REQUIRED },
	{ "ss", 1, CPUID_EDX, 27, INTEL },

	{ "cx16", 1, CPUID_ECX, 13, 0 },
	{ "pcid", 1, CPUID_ECX, 17, 0 },
	{ "popcnt", 1, CPUID_ECX, 23, 0 },
	{ "rdrand", 1, CPUID_ECX, 30, 0 },
	{ "hypervisor", 1, CPUID_ECX, 31, ALWAYS },

	{ "arat", 6, CPUID_EAX, 2, ALWAYS },

	{ "fsgsbase", 7, CPUID_EBX, 0, 0 },
	{ "tsc_adjust", 7, CPUID_EBX, 1, ALWAYS },
	{ "smep", 7, CPUID_EBX, 7, 0 },
	{ "erms", 7, CPUID_EBX, 9, 0 },
	{ "invpcid", 7, CPUID_EBX, 10, 0 },
	{ "smap", 7, CPUID_EBX, 20, 0 },
	{ "arch_capabilities", 7, CPUID_EDX, 29, ALWAYS | INTEL },

	{ "syscall", 0x80000001, CPUID_EDX, 11, REQUIRED },
	{ "nx", 0x80000001, CPUID_EDX, 20, REQUIRED },
	{ "pdpe1gb", 0x80000001, CPUID_EDX, 26, 0 },
	{ "rdtscp", 0x80000001, CPUID_EDX, 27, 0 },
	{ "lm", 0x80000001, CPUID_EDX, 29, REQUIRED },
	{ "lahf_lm", 0x80000001, CPUID_ECX, 0, 0 },
	{ "topoext", 0x80000001, CPUID_ECX, 22, ALWAYS | AMD },

	{ "invariant_tsc", 0x80000007, CPUID_EDX, 8, ALWAYS },
	{ "amd_ssb_no", 0x80000008, CPUID_EBX, 26, ALWAYS | AMD },
	{ "btc_no", 0x80000008, CPUID_EBX, 29, ALWAYS | AMD },
	{ "lfence_serializing", 0x80000021, CPUID_EAX, 2, AMD },
	{ "null_sel_clr_base", 0x80000021, CPUID_EAX, 6, AMD },
	{ "srso_no", 0x80000021, CPUID_EAX, 29, ALWAYS | AMD },
	{ "tsa_sq_no", 0x80000021, CPUID_ECX, 1, ALWAYS | AMD },
	{ "tsa_l1_no", 0x80000021, CPUID_ECX, 2, ALWAYS | AMD },
	{ "tsa_fill_no", 0x80000021, CPUID_ECX, 7, ALWAYS | AMD },
};

static bool for_vendor(const struct feature *f, enum cpu_vendor vendor)
{
	return !(f->flags & (INTEL | AMD)) || f->flags & (vendor == VENDOR_AMD ? AMD : INTEL);
}

static bool host_has(const struct cpuid_params *params, const struct feature *f)
{
	const struct cpuid_entry *e;
	struct cpuid_entry copy;

	if (!params->host)
		return true;
	e = cpuid_find(params->host, f->leaf, 0);
	if (!e)
		return false;
	copy = *e;
	return *cpuid_reg(&copy, f->reg) & BIT(f->bit);
}

u32 cpuid_model_word(const struct cpuid_params *params, u32 leaf, enum cpuid_reg reg)
{
	u32 word = 0;

	for (u32 i = 0; i < ARRAY_SIZE(features); i++) {
		const struct feature *f = &features[i];
		bool copy = f->flags & EXT_COPY && params->vendor == VENDOR_AMD &&
			    leaf == CPUID_LEAF_EXT_1 && reg == CPUID_EDX;

		if ((copy || (f->leaf == leaf && f->reg == reg)) && for_vendor(f, params->vendor) &&
		    (f->flags & ALWAYS || host_has(params, f)))
			word |= BIT(f->bit);
	}
	return word;
}

char *cpuid_model_missing(const struct cpuid_params *params, bool required_only)
{
	GString *names = g_string_new(NULL);

	for (u32 i = 0; i < ARRAY_SIZE(features); i++) {
		const struct feature *f = &features[i];

		if (f->flags & ALWAYS || !for_vendor(f, params->vendor) || host_has(params, f) ||
		    (required_only && !(f->flags & REQUIRED)))
			continue;
		g_string_append_printf(names, "%s%s", names->len ? "," : "", f->name);
	}
	return g_string_free(names, FALSE);
}
