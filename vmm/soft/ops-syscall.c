// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fast system calls and what belongs to them: SYSCALL, SYSRET, SYSENTER, SYSEXIT,
 * SWAPGS, and FS and GS bases (SDM 2B each; 3A 5.8.7, 5.8.8). With Intel's rules:
 * SYSCALL and SYSRET in 64-bit mode only.
 */
#include "soft/profile.h"
#include "soft/ops.h"
#include "soft/system.h"

/* Flat segments, present, accessed (SDM 2B SYSCALL). */
#define FLAT_CODE64	0xa09bu
#define FLAT_CODE32	0xc09bu
#define FLAT_DATA	0xc093u

static void syscall_segment(struct x86_segment *seg, u32 sel, u32 attr, u8 cpl)
{
	*seg = (struct x86_segment) {
		.selector = (u16)sel, .attr = (u16)(attr | (u32)cpl << SEG_ATTR_DPL_SHIFT), .limit = 0xffffffff,
	};
}

/* CS and SS of privilege level cpl, as fixed descriptors: nothing is read from the tables. */
static void syscall_enter(struct soft_cpu *c, u32 cs, u32 attr, u32 ss, u8 cpl)
{
	syscall_segment(&c->seg[SEG_CS], cpl ? cs | 3 : cs & 0xfffc, attr, cpl);
	syscall_segment(&c->seg[SEG_SS], cpl ? ss | 3 : ss & 0xfffc, FLAT_DATA, cpl);
	soft_set_cpl(c, cpl);
	soft_update_context(c);
}

/* What all four cost; the time until here is of the level that they leave. */
static void syscall_begin(struct soft_cpu *c, const struct soft_op *op)
{
	soft_sync(c, op);
	if (c->cpl == 3)
		soft_sample(c, 0);
	soft_spend(c, TIME_event, cost(&c->svm->cost, syscall) / 2);
	if (c->cpl != 3)
		soft_sample(c, 0);
}

static int op_syscall(struct soft_cpu *c, const struct soft_op *op)
{
	u64 next = soft_op_next(c, op), flags = soft_rflags(c);
	u32 cs = c->star >> 32 & 0xffff;

	if (c->mode != MODE_64 || !(c->efer & X86_EFER_SCE))
		return soft_raise(c, op, VEC_UD);
	syscall_begin(c, op);
	c->gpr[X86_RCX] = next;
	c->gpr[X86_R11] = flags & ~X86_EFLAGS_RF;
	soft_set_rflags(c, flags & ~(c->sfmask | X86_EFLAGS_RF));
	syscall_enter(c, cs, FLAT_CODE64, cs + 8, 0);
	soft_note_enter(c, true, PROFILE_ENTRY(PROFILE_ENTRY_SYSCALL, c->gpr[X86_RAX]));
	return soft_end(c, op, c->lstar);
}

static int op_sysret(struct soft_cpu *c, const struct soft_op *op)
{
	u32 base = c->star >> 48 & 0xffff;
	u64 rip = c->gpr[X86_RCX];

	if (c->mode != MODE_64 || !(c->efer & X86_EFER_SCE))
		return soft_raise(c, op, VEC_UD);
	if (c->cpl || (op->size == 8 && !soft_canonical(rip)))
		return soft_raise_error(c, op, VEC_GP, 0);
	syscall_begin(c, op);
	/* RF and VM are cleared (SDM 2B SYSRET: R11 & 3C7FD7H). */
	soft_set_rflags(c, c->gpr[X86_R11] & 0x3c7fd7);
	if (op->size == 8)
		syscall_enter(c, base + 16, FLAT_CODE64, base + 8, 3);
	else
		syscall_enter(c, base, FLAT_CODE32, base + 8, 3);
	soft_note_leave(c);
	return soft_end(c, op, op->size == 8 ? rip : (u32)rip);
}

static int op_sysenter(struct soft_cpu *c, const struct soft_op *op)
{
	bool wide = soft_long(c);
	u32 cs = c->sysenter_cs & 0xfffc;

	if (!soft_protected(c) || !cs)
		return soft_raise_error(c, op, VEC_GP, 0);
	syscall_begin(c, op);
	c->sysflags &= ~(X86_EFLAGS_VM | X86_EFLAGS_IF | X86_EFLAGS_RF);
	c->gpr[X86_RSP] = wide ? c->sysenter_esp : (u32)c->sysenter_esp;
	syscall_enter(c, cs, wide ? FLAT_CODE64 : FLAT_CODE32, cs + 8, 0);
	soft_note_enter(c, true, PROFILE_ENTRY(PROFILE_ENTRY_SYSCALL, c->gpr[X86_RAX]));
	return soft_end(c, op, wide ? c->sysenter_eip : (u32)c->sysenter_eip);
}

static int op_sysexit(struct soft_cpu *c, const struct soft_op *op)
{
	u64 rip = c->gpr[X86_RDX], rsp = c->gpr[X86_RCX];
	u32 cs = c->sysenter_cs & 0xfffc;
	bool wide = op->size == 8;

	if (!soft_protected(c) || !cs || c->cpl)
		return soft_raise_error(c, op, VEC_GP, 0);
	if (wide && (!soft_canonical(rip) || !soft_canonical(rsp)))
		return soft_raise_error(c, op, VEC_GP, 0);
	syscall_begin(c, op);
	c->gpr[X86_RSP] = wide ? rsp : (u32)rsp;
	if (wide)
		syscall_enter(c, cs + 32, FLAT_CODE64, cs + 40, 3);
	else
		syscall_enter(c, cs + 16, FLAT_CODE32, cs + 24, 3);
	soft_note_leave(c);
	return soft_end(c, op, wide ? rip : (u32)rip);
}

static int op_swapgs(struct soft_cpu *c, const struct soft_op *op)
{
	u64 base = c->seg[SEG_GS].base;

	if (c->mode != MODE_64)
		return soft_raise(c, op, VEC_UD);
	if (c->cpl)
		return soft_raise_error(c, op, VEC_GP, 0);
	c->seg[SEG_GS].base = c->kernel_gs_base;
	c->kernel_gs_base = base;
	SOFT_NEXT(c, op);
}

/* RDFSBASE, RDGSBASE; aux = the segment. */
static int op_rdbase(struct soft_cpu *c, const struct soft_op *op)
{
	u64 base = c->seg[op->aux].base;

	if (c->mode != MODE_64 || !(c->cr4 & X86_CR4_FSGSBASE))
		return soft_raise(c, op, VEC_UD);
	c->gpr[op->dst] = op->size == 8 ? base : (u32)base;
	SOFT_NEXT(c, op);
}

static int op_wrbase(struct soft_cpu *c, const struct soft_op *op)
{
	u64 base = op->size == 8 ? c->gpr[op->src] : get32(c, op->src);

	if (c->mode != MODE_64 || !(c->cr4 & X86_CR4_FSGSBASE))
		return soft_raise(c, op, VEC_UD);
	if (!soft_canonical(base))
		return soft_raise_error(c, op, VEC_GP, 0);
	c->seg[op->aux].base = base;
	SOFT_NEXT(c, op);
}

bool soft_decode_syscall(struct soft_decode *d, struct soft_op *op)
{
	/* SYSRET and SYSEXIT go to 64-bit code with REX.W, else to 32-bit code. */
	op->size = d->insn->attributes & ZYDIS_ATTRIB_HAS_REX && d->insn->raw.rex.W ? 8 : 4;
	d->ends_block = true;
	switch (d->insn->mnemonic) {
	case ZYDIS_MNEMONIC_SYSCALL:
		op->fn = op_syscall;
		return true;
	case ZYDIS_MNEMONIC_SYSRET:
		op->fn = op_sysret;
		return true;
	case ZYDIS_MNEMONIC_SYSENTER:
		op->fn = op_sysenter;
		return true;
	case ZYDIS_MNEMONIC_SYSEXIT:
		op->fn = op_sysexit;
		return true;
	default:
		d->ends_block = false;
		break;
	}
	switch (d->insn->mnemonic) {
	case ZYDIS_MNEMONIC_SWAPGS:
		op->fn = op_swapgs;
		return true;
	case ZYDIS_MNEMONIC_RDFSBASE:
	case ZYDIS_MNEMONIC_RDGSBASE:
		op->dst = soft_decode_reg(d->arg[0].reg.value);
		op->aux = d->insn->mnemonic == ZYDIS_MNEMONIC_RDFSBASE ? SEG_FS : SEG_GS;
		op->fn = op_rdbase;
		return true;
	case ZYDIS_MNEMONIC_WRFSBASE:
	case ZYDIS_MNEMONIC_WRGSBASE:
		op->src = soft_decode_reg(d->arg[0].reg.value);
		op->aux = d->insn->mnemonic == ZYDIS_MNEMONIC_WRFSBASE ? SEG_FS : SEG_GS;
		op->fn = op_wrbase;
		return true;
	default:
		return false;
	}
}
