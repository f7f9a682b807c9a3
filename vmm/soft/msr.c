// SPDX-License-Identifier: GPL-2.0-only
/*
 * RDMSR and WRMSR (SDM 4; for those that KVM defines, Documentation/virt/kvm/x86/msr.rst).
 * What is not here is #GP, as on the CPU: a guest that probes finds out in the
 * architected way. The local APIC's MSRs go up to the machine.
 */
#include "x86/msr.h"

#include "soft/kvmclock.h"
#include "soft/system.h"
#include "soft/tlb.h"
#include "x86/cpuid-bits.h"

#define MTRR_DEF_VALID		(0xffull | MTRR_DEF_TYPE_FIX_ENABLE | MTRR_DEF_TYPE_ENABLE)
#define MTRR_MASK_VALID_BIT	(1ull << 11)
#define MISC_ENABLE_WRITABLE	(MISC_ENABLE_FAST_STRING | MISC_ENABLE_EMON | MISC_ENABLE_BTS_UNAVAIL | \
				 MISC_ENABLE_PEBS_UNAVAIL | MISC_ENABLE_MWAIT | MISC_ENABLE_LIMIT_CPUID | \
				 MISC_ENABLE_XD_DISABLE | (1ull << 3))

/* The register of a leaf that CPUID shows this vCPU. */
static u32 msr_cpuid_edx(const struct soft_cpu *c, u32 leaf)
{
	const struct cpuid_entry *e = cpuid_find(&c->vcpu->cpuid, leaf, 0);

	return e ? e->edx : 0;
}

static u32 msr_kvm_features(const struct soft_cpu *c)
{
	const struct cpuid_entry *e = cpuid_find(&c->vcpu->cpuid, CPUID_LEAF_KVM_FEATURES, 0);

	return e ? e->eax : 0;
}

/* --- the local APIC, in the machine --- */

static bool msr_is_apic(u32 msr)
{
	return msr == MSR_IA32_APIC_BASE || msr == MSR_IA32_TSC_DEADLINE ||
	       (msr >= MSR_IA32_X2APIC_FIRST && msr <= MSR_IA32_X2APIC_LAST);
}

static bool msr_apic(struct soft_cpu *c, u32 msr, bool write, u64 *value)
{
	bool ok;

	ok = vcpu_msr(c->vcpu, msr, write, value);
	if (ok && write && msr == MSR_IA32_APIC_BASE)
		c->apic_off = !(*value & APIC_BASE_ENABLE);
	soft_spend(c, TIME_device, soft_units_of(c->svm, cost(&c->svm->cost, apic)));
	vcpu_count_exit(c->vcpu, COUNTER_vm_exits);
	if (vcpu_turn_needed(c->vcpu, c->until))
		soft_break(c);
	return ok;
}

/* --- the TSC (SDM 3B 17.17.3 [18.17.3]): a write of either MSR moves the other --- */

static void msr_move_tsc(struct soft_cpu *c, u64 by)
{
	c->tsc_offset = (s64)((u64)c->tsc_offset + by);
	c->tsc_adjust += by;
	soft_kvmclock_update(c);
	vcpu_tsc_moved(c->vcpu, c->tsc_offset);
	if (vcpu_turn_needed(c->vcpu, c->until))
		soft_break(c);
}

/* --- memory types: kept and given back; the engine has no caches --- */

static bool msr_type_valid(u64 type)
{
	return type == 0 || type == 1 || type == 4 || type == 5 || type == 6;
}

static bool msr_types_valid(u64 value, bool uc_minus)
{
	u32 i;

	for (i = 0; i < 8; i++) {
		u64 type = value >> 8 * i & 0xff;

		if (!msr_type_valid(type) && !(uc_minus && type == 7))
			return false;
	}
	return true;
}

static u64 *msr_mtrr_fixed(struct soft_cpu *c, u32 msr)
{
	if (msr == MSR_IA32_MTRR_FIX64K_00000)
		return &c->mtrr_fix[0];
	if (msr == MSR_IA32_MTRR_FIX16K_80000 || msr == MSR_IA32_MTRR_FIX16K_A0000)
		return &c->mtrr_fix[1 + msr - MSR_IA32_MTRR_FIX16K_80000];
	if (msr >= MSR_IA32_MTRR_FIX4K_C0000 && msr <= MSR_IA32_MTRR_FIX4K_F8000)
		return &c->mtrr_fix[3 + msr - MSR_IA32_MTRR_FIX4K_C0000];
	return NULL;
}

/* IA32_MTRR_PHYSBASEn (even) and PHYSMASKn (odd); SDM 3A 11.11.2.3 [12.11.2.3]. */
static u64 *msr_mtrr_variable(struct soft_cpu *c, u32 msr)
{
	return msr >= MSR_IA32_MTRR_PHYSBASE0 && msr <= MSR_IA32_MTRR_PHYSMASK7 ?
	       &c->mtrr_var[msr - MSR_IA32_MTRR_PHYSBASE0] : NULL;
}

static bool msr_mtrr_variable_valid(const struct soft_cpu *c, u32 msr, u64 value)
{
	u64 reserved = c->tlb->phys_reserved | ~((1ull << 52) - 1);

	if (msr & 1)
		return !(value & (reserved | 0x7ff));
	return !(value & (reserved | 0xf00)) && msr_type_valid(value & 0xff);
}

/* --- EFER --- */

static bool msr_write_efer(struct soft_cpu *c, u64 value)
{
	u64 valid = X86_EFER_SCE | X86_EFER_LME | X86_EFER_LMA;
	u64 changed;

	if (msr_cpuid_edx(c, CPUID_LEAF_EXT_1) & BIT(20))
		valid |= X86_EFER_NXE;
	if (value & ~valid)
		return false;
	/* LMA is the CPU's own; LME may not change under paging (SDM 3A 4.1.2 and 9.8.5). */
	value = (value & ~X86_EFER_LMA) | (c->efer & X86_EFER_LMA);
	changed = value ^ c->efer;
	if (changed & X86_EFER_LME && c->cr0 & X86_CR0_PG)
		return false;
	c->efer = value;
	/*
	 * NXE is not among what SDM 3A 4.10.4.1 makes flush: cached translations keep their XD
	 * bit, and it counts by the NXE of the moment. Shortcuts have forgotten that bit.
	 */
	if (changed & X86_EFER_NXE)
		soft_drop_shortcuts(c);
	return true;
}

/* --- plain ones: a place, and what may be written there --- */

enum msr_rule { RULE_ANY, RULE_CANONICAL, RULE_32 };

struct msr_plain {
	u32 msr;
	u16 offset;		/* in struct soft_cpu */
	u16 rule;		/* enum msr_rule */
};

#define PLAIN(msr, field, rule)	{ msr, offsetof(struct soft_cpu, field), rule }

static const struct msr_plain msr_plain[] = {
	PLAIN(MSR_FS_BASE, seg[SEG_FS].base, RULE_CANONICAL),
	PLAIN(MSR_GS_BASE, seg[SEG_GS].base, RULE_CANONICAL),
	PLAIN(MSR_KERNEL_GS_BASE, kernel_gs_base, RULE_CANONICAL),
	PLAIN(MSR_STAR, star, RULE_ANY),
	PLAIN(MSR_LSTAR, lstar, RULE_CANONICAL),
	PLAIN(MSR_CSTAR, cstar, RULE_CANONICAL),
	PLAIN(MSR_SYSCALL_MASK, sfmask, RULE_32),
	PLAIN(MSR_TSC_AUX, tsc_aux, RULE_32),
	PLAIN(MSR_IA32_SYSENTER_CS, sysenter_cs, RULE_ANY),
	PLAIN(MSR_IA32_SYSENTER_ESP, sysenter_esp, RULE_CANONICAL),
	PLAIN(MSR_IA32_SYSENTER_EIP, sysenter_eip, RULE_CANONICAL),
};

static u64 *msr_plain_find(struct soft_cpu *c, u32 msr, enum msr_rule *rule)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(msr_plain); i++)
		if (msr_plain[i].msr == msr) {
			*rule = (enum msr_rule)msr_plain[i].rule;
			return (u64 *)(void *)((u8 *)c + msr_plain[i].offset);
		}
	return NULL;
}

/* Constants; with `ignores` a write is taken and dropped, else it is #GP. */
static const struct msr_const {
	u32 msr;
	bool ignores;
	u64 value;
} msr_const[] = {
	{ MSR_IA32_P5_MC_ADDR, true, 0 },
	{ MSR_IA32_P5_MC_TYPE, true, 0 },
	{ MSR_IA32_PLATFORM_ID, false, 0 },
	{ MSR_EBL_CR_POWERON, true, 0 },
	{ MSR_IA32_FEATURE_CONTROL, false, FEATURE_CONTROL_LOCKED },	/* neither VMX nor SGX */
	{ MSR_IA32_UCODE_WRITE, true, 0 },
	{ MSR_IA32_UCODE_REV, true, 0x100000000ull },			/* as KVM's */
	{ MSR_PLATFORM_INFO, false, 0 },
	{ MSR_IA32_MTRRCAP, false, MTRRCAP_VCNT | MTRRCAP_FIX | MTRRCAP_WC },
	{ MSR_IA32_MCG_CAP, false, 0 },					/* no banks, no MCG_CTL */
	{ MSR_IA32_PERF_STATUS, false, 1000ull | 4ull << 40 },		/* as KVM's: ratio 4, 1000 as voltage */
	{ MSR_IA32_PERF_CTL, true, 0 },
};

static const struct msr_const *msr_const_find(u32 msr)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(msr_const); i++)
		if (msr_const[i].msr == msr)
			return &msr_const[i];
	return NULL;
}

/* Speculation control: only with the CPUID bits that promise it (SDM 4 table 2-2). */
static bool msr_speculation(const struct soft_cpu *c, u32 msr)
{
	u32 edx = msr_cpuid_edx(c, CPUID_LEAF_EXT_FEATURES);

	if (msr == MSR_IA32_SPEC_CTRL)
		return edx & (BIT(26) | BIT(27) | BIT(31));
	if (msr == MSR_IA32_PRED_CMD)
		return edx & BIT(26);
	return edx & BIT(28);
}

bool soft_rdmsr(struct soft_cpu *c, u32 msr, u64 *value)
{
	const struct msr_const *constant;
	enum msr_rule rule;
	u64 *p;

	if (msr_is_apic(msr))
		return msr_apic(c, msr, false, value);
	p = msr_plain_find(c, msr, &rule);
	p = p ? p : msr_mtrr_fixed(c, msr);
	p = p ? p : msr_mtrr_variable(c, msr);
	if (p) {
		*value = *p;
		return true;
	}
	constant = msr_const_find(msr);
	if (constant) {
		*value = constant->value;
		return true;
	}
	switch (msr) {
	case MSR_EFER:
		*value = c->efer;
		return true;
	case MSR_IA32_TSC:
		*value = soft_tsc(c);
		return true;
	case MSR_IA32_TSC_ADJUST:
		*value = c->tsc_adjust;
		return true;
	case MSR_IA32_PAT:
		*value = c->pat;
		return true;
	case MSR_IA32_MTRR_DEF_TYPE:
		*value = c->mtrr_def_type;
		return true;
	case MSR_IA32_MISC_ENABLE:
		*value = c->misc_enable;
		return true;
	case MSR_IA32_MCG_STATUS:
		*value = c->mcg_status;
		return true;
	case MSR_IA32_DEBUGCTL:
		*value = 0;
		return true;
	case MSR_IA32_ARCH_CAPABILITIES:
		*value = c->vcpu->cpuid.arch_capabilities;
		return msr_cpuid_edx(c, CPUID_LEAF_EXT_FEATURES) & CPUID_7_EDX_ARCH_CAPABILITIES;
	case MSR_IA32_SPEC_CTRL:
		*value = c->spec_ctrl;
		return msr_speculation(c, msr);
	case MSR_KVM_WALL_CLOCK:
	case MSR_KVM_WALL_CLOCK_NEW:
		*value = c->wall_clock;
		return soft_kvmclock_shown(msr_kvm_features(c), msr);
	case MSR_KVM_SYSTEM_TIME:
	case MSR_KVM_SYSTEM_TIME_NEW:
		*value = c->kvmclock;
		return soft_kvmclock_shown(msr_kvm_features(c), msr);
	}
	return false;
}

static bool msr_set(u64 *p, u64 value, bool valid)
{
	if (valid)
		*p = value;
	return valid;
}

bool soft_wrmsr(struct soft_cpu *c, u32 msr, u64 value)
{
	const struct msr_const *constant = msr_const_find(msr);
	enum msr_rule rule;
	u64 *p;

	if (msr_is_apic(msr))
		return msr_apic(c, msr, true, &value);
	if (constant)
		return constant->ignores;
	p = msr_plain_find(c, msr, &rule);
	if (p)
		return msr_set(p, value, rule == RULE_ANY || (rule == RULE_32 ? value >> 32 == 0 : soft_canonical(value)));
	p = msr_mtrr_fixed(c, msr);
	if (p)
		return msr_set(p, value, msr_types_valid(value, false));
	p = msr_mtrr_variable(c, msr);
	if (p)
		return msr_set(p, value, msr_mtrr_variable_valid(c, msr, value));
	switch (msr) {
	case MSR_EFER:
		return msr_write_efer(c, value);
	case MSR_IA32_TSC:
		msr_move_tsc(c, value - soft_tsc(c));
		return true;
	case MSR_IA32_TSC_ADJUST:
		msr_move_tsc(c, value - c->tsc_adjust);
		return true;
	case MSR_IA32_PAT:
		return msr_set(&c->pat, value, msr_types_valid(value, true));
	case MSR_IA32_MTRR_DEF_TYPE:
		return msr_set(&c->mtrr_def_type, value, !(value & ~MTRR_DEF_VALID) && msr_type_valid(value & 0xff));
	case MSR_IA32_MISC_ENABLE:
		return msr_set(&c->misc_enable, value, !(value & ~MISC_ENABLE_WRITABLE));
	case MSR_IA32_MCG_STATUS:
		return msr_set(&c->mcg_status, value, !(value & ~7ull));
	case MSR_IA32_DEBUGCTL:
		return !value;	/* neither branch trace nor single-stepping by branches */
	case MSR_IA32_SPEC_CTRL:
		return msr_speculation(c, msr) && msr_set(&c->spec_ctrl, value, !(value & ~7ull));
	case MSR_IA32_PRED_CMD:
	case MSR_IA32_FLUSH_CMD:
		return msr_speculation(c, msr) && !(value & ~1ull);
	case MSR_KVM_WALL_CLOCK:
	case MSR_KVM_WALL_CLOCK_NEW:
		if (!soft_kvmclock_shown(msr_kvm_features(c), msr))
			return false;
		c->wall_clock = value;
		soft_wall_clock_write(c);
		return true;
	case MSR_KVM_SYSTEM_TIME:
	case MSR_KVM_SYSTEM_TIME_NEW:
		if (!soft_kvmclock_shown(msr_kvm_features(c), msr))
			return false;
		c->kvmclock = value;
		soft_kvmclock_update(c);
		return true;
	}
	return false;
}
