// SPDX-License-Identifier: GPL-2.0-only
/*
 * System instructions: the list of their families, and those that fit none: CPUID, MSRs,
 * time, random numbers, HLT, MONITOR and MWAIT, caches, PAUSE; and the instructions
 * that exist but not on this CPU.
 */
#include "soft/ops.h"
#include "soft/lines.h"
#include "soft/system.h"
#include "x86/cpuid-bits.h"

#define CPUID_EDX_APIC		BIT(9)		/* leaf 1 */
#define CPUID_7_EBX_RDSEED	BIT(18)
#define CPUID_1_ECX_RDRAND	BIT(30)

static u32 system_feature(const struct soft_cpu *c, u32 leaf, bool ebx)
{
	const struct cpuid_entry *e = cpuid_find(&c->vcpu->cpuid, leaf, 0);

	if (!e)
		return 0;
	return ebx ? e->ebx : e->ecx;
}

/* --- CPUID (SDM 2A CPUID) --- */

/*
 * The leaf that stands for one beyond the last of its range: the last basic one, as on
 * Intel's CPUs and as KVM does it; the hypervisor's leaves are a range of their own.
 */
static u32 cpuid_in_range(const struct cpuid_table *t, u32 leaf)
{
	u32 range = leaf >> 31 ? CPUID_LEAF_EXT : leaf >> 28 == 4 ? leaf & 0xffffff00 : 0;
	const struct cpuid_entry *first = cpuid_find(t, range, 0), *basic = cpuid_find(t, 0, 0);

	if ((first && leaf <= first->eax) || !basic)
		return leaf;
	return basic->eax;
}

static void cpuid_read(const struct soft_cpu *c, u32 leaf, u32 subleaf, struct cpuid_entry *out)
{
	const struct cpuid_table *t = &c->vcpu->cpuid;
	const struct cpuid_entry *e;

	leaf = cpuid_in_range(t, leaf);
	e = cpuid_find(t, leaf, subleaf);
	*out = e ? *e : (struct cpuid_entry){ 0 };
	if (leaf == CPUID_LEAF_FEATURES && c->apic_off)
		out->edx &= ~CPUID_EDX_APIC;
	/* Beyond the last level: its number and the x2APIC id are there all the same. */
	if (!e && (leaf == CPUID_LEAF_TOPOLOGY || leaf == CPUID_LEAF_TOPOLOGY_V2)) {
		e = cpuid_find(t, leaf, 0);
		out->ecx = subleaf & 0xff;
		out->edx = e ? e->edx : 0;
	}
}

static int op_cpuid(struct soft_cpu *c, const struct soft_op *op)
{
	struct cpuid_entry e;

	soft_lines_drain(c);
	soft_spend(c, TIME_serialize, cost(&c->svm->cost, serialize));
	cpuid_read(c, get32(c, X86_RAX), get32(c, X86_RCX), &e);
	set32(c, X86_RAX, e.eax);
	set32(c, X86_RBX, e.ebx);
	set32(c, X86_RCX, e.ecx);
	set32(c, X86_RDX, e.edx);
	return soft_end(c, op, soft_op_next(c, op));
}

/* --- MSRs --- */

static int op_rdmsr(struct soft_cpu *c, const struct soft_op *op)
{
	u64 value = 0;

	soft_sync(c, op);
	if (c->cpl)
		return soft_raise_error(c, op, VEC_GP, 0);
	soft_spend(c, TIME_device, cost(&c->svm->cost, msr));
	if (!soft_rdmsr(c, get32(c, X86_RCX), &value))
		return soft_raise_error(c, op, VEC_GP, 0);
	set32(c, X86_RAX, (u32)value);
	set32(c, X86_RDX, (u32)(value >> 32));
	return soft_end(c, op, soft_op_next(c, op));
}

static int op_wrmsr(struct soft_cpu *c, const struct soft_op *op)
{
	u64 value = (u64)get32(c, X86_RDX) << 32 | get32(c, X86_RAX);

	soft_sync(c, op);
	if (c->cpl)
		return soft_raise_error(c, op, VEC_GP, 0);
	soft_spend(c, TIME_device, cost(&c->svm->cost, msr));
	if (!soft_wrmsr(c, get32(c, X86_RCX), value))
		return soft_raise_error(c, op, VEC_GP, 0);
	return soft_end(c, op, soft_op_next(c, op));
}

/* --- time --- */

static int op_rdtsc(struct soft_cpu *c, const struct soft_op *op)
{
	u64 tsc;

	if (c->cr4 & X86_CR4_TSD && c->cpl)
		return soft_raise_error(c, op, VEC_GP, 0);
	soft_sync(c, op);
	tsc = soft_tsc(c);
	set32(c, X86_RAX, (u32)tsc);
	set32(c, X86_RDX, (u32)(tsc >> 32));
	if (op->aux)
		set32(c, X86_RCX, (u32)c->tsc_aux);
	SOFT_NEXT(c, op);
}

/* --- RDRAND: from the vCPU's seeded stream; it never runs dry --- */

static int op_rdrand(struct soft_cpu *c, const struct soft_op *op)
{
	u64 value;

	if (!(system_feature(c, op->aux ? CPUID_LEAF_EXT_FEATURES : CPUID_LEAF_FEATURES, op->aux) &
	      (op->aux ? CPUID_7_EBX_RDSEED : CPUID_1_ECX_RDRAND)))
		return soft_raise(c, op, VEC_UD);
	value = rng_next(&c->rng);
	if (op->size == 2)
		set16(c, op->dst, (u16)value);
	else
		c->gpr[op->dst] = op->size == 4 ? (u32)value : value;
	c->of = 0;
	c->lo = LO_CF;
	SOFT_NEXT(c, op);
}

/* --- waiting --- */

static int op_hlt(struct soft_cpu *c, const struct soft_op *op)
{
	u64 next = soft_op_next(c, op);

	soft_sync(c, op);
	if (c->cpl)
		return soft_raise_error(c, op, VEC_GP, 0);
	vcpu_count_exit(c->vcpu, COUNTER_exits_hlt);
	return soft_leave(c, op, next, RUN_HLT);
}

static int op_pause(struct soft_cpu *c, const struct soft_op *op)
{
	c->stat[STAT_pauses]++;
	if (!c->filter)
		SOFT_NEXT(c, op);
	/* Out of the block, so that soft_spin() looks at the loop that this may be in. */
	soft_line_pause(c);
	c->spin.paused = true;
	return soft_end(c, op, soft_op_next(c, op));
}

static int op_monitor(struct soft_cpu *c, const struct soft_op *op)
{
	u64 va = soft_ea(c, op);
	struct soft_xlat x;

	soft_sync(c, op);
	if (!(system_feature(c, CPUID_LEAF_FEATURES, false) & CPUID_1_ECX_MONITOR) || c->cpl)
		return soft_raise(c, op, VEC_UD);
	if (get32(c, X86_RCX))
		return soft_raise_error(c, op, VEC_GP, 0);
	if (soft_translate(c, va, ACCESS_READ, false, &x))
		return soft_faulted(c, op);
	c->monitor = va;
	return soft_end(c, op, soft_op_next(c, op));
}

/*
 * Returns at once, which the SDM allows at any time (2B MWAIT): the guest looks at what it
 * waits for and comes again. It costs what a serializing instruction costs.
 */
static int op_mwait(struct soft_cpu *c, const struct soft_op *op)
{
	if (!(system_feature(c, CPUID_LEAF_FEATURES, false) & CPUID_1_ECX_MONITOR) || c->cpl)
		return soft_raise(c, op, VEC_UD);
	if (get32(c, X86_RCX) & ~1u)
		return soft_raise_error(c, op, VEC_GP, 0);
	soft_lines_drain(c);
	soft_spend(c, TIME_serialize, cost(&c->svm->cost, serialize));
	return soft_end(c, op, soft_op_next(c, op));
}

/* --- caches, which the engine has none of --- */

static int op_wbinvd(struct soft_cpu *c, const struct soft_op *op)
{
	if (c->cpl)
		return soft_raise_error(c, op, VEC_GP, 0);
	soft_lines_drain(c);
	soft_spend(c, TIME_serialize, cost(&c->svm->cost, serialize));
	SOFT_NEXT(c, op);
}

/* Faults as a load of a byte does (SDM 2A CLFLUSH). */
static int op_clflush(struct soft_cpu *c, const struct soft_op *op)
{
	struct soft_xlat x;

	soft_sync(c, op);
	if (soft_translate(c, soft_ea(c, op), ACCESS_READ, false, &x)) {
		soft_stack_fault(c, op, soft_ea(c, op));
		return soft_faulted(c, op);
	}
	return soft_end(c, op, soft_op_next(c, op));
}

/* RDPMC: there are no performance counters, so every number is a wrong one. */
static int op_rdpmc(struct soft_cpu *c, const struct soft_op *op)
{
	return soft_raise_error(c, op, VEC_GP, 0);
}

/* --- decoding --- */

static bool system_decode_as(struct soft_decode *d, struct soft_op *op, soft_fn fn, bool ends)
{
	op->fn = fn;
	d->ends_block = ends;
	return true;
}

/*
 * Real instructions of features that CPUID does not show, beside those that decode.c
 * knows by extension: #UD is their due.
 */
static bool system_decode_absent(struct soft_decode *d, struct soft_op *op)
{
	switch (d->insn->mnemonic) {
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_RSM:		/* outside of system management mode */
	case ZYDIS_MNEMONIC_GETSEC:
	case ZYDIS_MNEMONIC_XGETBV:
	case ZYDIS_MNEMONIC_XSETBV:
	case ZYDIS_MNEMONIC_VMCALL:
	case ZYDIS_MNEMONIC_VMMCALL:
	case ZYDIS_MNEMONIC_VMFUNC:
	case ZYDIS_MNEMONIC_RDPKRU:
	case ZYDIS_MNEMONIC_WRPKRU:
	case ZYDIS_MNEMONIC_RDPID:
	case ZYDIS_MNEMONIC_PTWRITE:
	case ZYDIS_MNEMONIC_INCSSPD:
	case ZYDIS_MNEMONIC_INCSSPQ:
	case ZYDIS_MNEMONIC_SAVEPREVSSP:
	case ZYDIS_MNEMONIC_RSTORSSP:
	case ZYDIS_MNEMONIC_SETSSBSY:
	case ZYDIS_MNEMONIC_CLRSSBSY:
	case ZYDIS_MNEMONIC_WRSSD:
	case ZYDIS_MNEMONIC_WRSSQ:
	case ZYDIS_MNEMONIC_WRUSSD:
	case ZYDIS_MNEMONIC_WRUSSQ:
	case ZYDIS_MNEMONIC_SKINIT:
	case ZYDIS_MNEMONIC_TDCALL:
	case ZYDIS_MNEMONIC_SEAMCALL:
	case ZYDIS_MNEMONIC_SEAMOPS:
	case ZYDIS_MNEMONIC_SEAMRET:
	case ZYDIS_MNEMONIC_INVLPGA:
	case ZYDIS_MNEMONIC_INVLPGB:
	case ZYDIS_MNEMONIC_TLBSYNC:
		soft_decode_invalid(op);
		d->ends_block = true;
		return true;
	default:
		return false;
	}
}

static bool system_decode_rest(struct soft_decode *d, struct soft_op *op)
{
	switch (d->insn->mnemonic) {
	case ZYDIS_MNEMONIC_CPUID:
		return system_decode_as(d, op, op_cpuid, true);
	case ZYDIS_MNEMONIC_RDMSR:
		return system_decode_as(d, op, op_rdmsr, true);
	case ZYDIS_MNEMONIC_WRMSR:
		return system_decode_as(d, op, op_wrmsr, true);
	case ZYDIS_MNEMONIC_RDTSCP:
		op->aux = 1;
		return system_decode_as(d, op, op_rdtsc, false);
	case ZYDIS_MNEMONIC_RDTSC:
		return system_decode_as(d, op, op_rdtsc, false);
	case ZYDIS_MNEMONIC_RDPMC:
		return system_decode_as(d, op, op_rdpmc, true);
	case ZYDIS_MNEMONIC_RDRAND:
	case ZYDIS_MNEMONIC_RDSEED:
		op->aux = d->insn->mnemonic == ZYDIS_MNEMONIC_RDSEED;
		op->size = (u8)(d->insn->operand_width / 8);
		op->dst = soft_decode_reg(d->arg[0].reg.value);
		return system_decode_as(d, op, op_rdrand, false);
	case ZYDIS_MNEMONIC_HLT:
		return system_decode_as(d, op, op_hlt, true);
	case ZYDIS_MNEMONIC_PAUSE:
		return system_decode_as(d, op, op_pause, false);
	case ZYDIS_MNEMONIC_MONITOR:
		op->base = X86_RAX;
		op->index = GPR_ZERO;
		op->amode = d->mode == MODE_64 ? 0 : AMODE_LIN32 | (1 + SEG_DS);
		if (d->insn->address_width < 64)
			op->amode |= d->insn->address_width == 32 ? AMODE_32 : AMODE_16;
		return system_decode_as(d, op, op_monitor, true);
	case ZYDIS_MNEMONIC_MWAIT:
		return system_decode_as(d, op, op_mwait, true);
	case ZYDIS_MNEMONIC_INVD:
	case ZYDIS_MNEMONIC_WBINVD:
		return system_decode_as(d, op, op_wbinvd, false);
	case ZYDIS_MNEMONIC_CLFLUSH:
		soft_decode_mem(d, op, 0);
		d->accesses = 1;
		return system_decode_as(d, op, op_clflush, true);
	default:
		return system_decode_absent(d, op);
	}
}

bool soft_decode_system(struct soft_decode *d, struct soft_op *op)
{
	return soft_decode_segment_ops(d, op) || soft_decode_far(d, op) || soft_decode_control(d, op) ||
	       soft_decode_flags(d, op) || soft_decode_syscall(d, op) || soft_decode_io(d, op) ||
	       system_decode_rest(d, op);
}
