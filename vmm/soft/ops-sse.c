// SPDX-License-Identifier: GPL-2.0-only
/*
 * SSE and SSE2: where decoding starts, and the instructions that are neither moves
 * nor arithmetic: MXCSR, fences, prefetches.
 */
#include "soft/lines.h"
#include "soft/sse.h"

int sse_not_ready(struct soft_cpu *c, const struct soft_op *op)
{
	return soft_raise(c, op, c->sse_trap);
}

int sse_unaligned(struct soft_cpu *c, const struct soft_op *op)
{
	return soft_raise_error(c, op, VEC_GP, 0);
}

bool sse_is_xmm(const struct soft_decode *d, u32 i)
{
	return soft_is_reg(d, i) && ZydisRegisterGetClass(d->arg[i].reg.value) == ZYDIS_REGCLASS_XMM;
}

bool sse_is_mmx(const struct soft_decode *d, u32 i)
{
	return soft_is_reg(d, i) && ZydisRegisterGetClass(d->arg[i].reg.value) == ZYDIS_REGCLASS_MMX;
}

static u8 decode_reg(const struct soft_decode *d, u32 i)
{
	ZydisRegister reg = d->arg[i].reg.value;

	return sse_is_xmm(d, i) || sse_is_mmx(d, i) ? (u8)ZydisRegisterGetId(reg) : soft_decode_reg(reg);
}

bool sse_decode_args(struct soft_decode *d, struct soft_op *op, u32 dst, u32 src)
{
	u32 mem = soft_is_mem(d, dst) ? dst : src;

	if (soft_is_reg(d, dst))
		op->dst = decode_reg(d, dst);
	if (soft_is_reg(d, src))
		op->src = decode_reg(d, src);
	if (soft_is_mem(d, mem)) {
		soft_decode_mem(d, op, mem);
		d->accesses = 1;
	}
	return soft_is_mem(d, src);
}

/* SDM 2A LDMXCSR: reserved bits give #GP(0). Flags that are set with their mask clear raise nothing. */
static int op_ldmxcsr(struct soft_cpu *c, const struct soft_op *op)
{
	u32 v;

	SSE_READY(c, op);
	SOFT_LOAD(c, op, v, soft_ea(c, op), u32);
	if (v & ~MXCSR_VALID)
		return soft_raise_error(c, op, VEC_GP, 0);
	*sse_mxcsr(c) = v;
	SOFT_NEXT(c, op);
}

static int op_stmxcsr(struct soft_cpu *c, const struct soft_op *op)
{
	SSE_READY(c, op);
	SOFT_STORE(c, op, soft_ea(c, op), *sse_mxcsr(c), u32);
	SOFT_NEXT(c, op);
}

/* Fences order what is in order here already; a prefetch is a hint, and never faults (SDM 2B). */
static int op_mfence(struct soft_cpu *c, const struct soft_op *op)
{
	soft_sync(c, op);
	soft_line_fence(c);
	SOFT_NEXT(c, op);
}

static int op_hint(struct soft_cpu *c, const struct soft_op *op)
{
	SOFT_NEXT(c, op);
}

static bool decode_other(struct soft_decode *d, struct soft_op *op)
{
	switch (d->insn->mnemonic) {
	case ZYDIS_MNEMONIC_LDMXCSR:
		sse_decode_args(d, op, 0, 0);
		op->fn = op_ldmxcsr;
		return true;
	case ZYDIS_MNEMONIC_STMXCSR:
		sse_decode_args(d, op, 0, 0);
		op->fn = op_stmxcsr;
		return true;
	case ZYDIS_MNEMONIC_MFENCE:
		op->fn = op_mfence;
		return true;
	case ZYDIS_MNEMONIC_LFENCE:
	case ZYDIS_MNEMONIC_SFENCE:
	case ZYDIS_MNEMONIC_PREFETCHNTA:
	case ZYDIS_MNEMONIC_PREFETCHT0:
	case ZYDIS_MNEMONIC_PREFETCHT1:
	case ZYDIS_MNEMONIC_PREFETCHT2:
	case ZYDIS_MNEMONIC_PREFETCH:		/* AMD's 0F 0D: a NOP on all others (SDM 2B PREFETCHW) */
	case ZYDIS_MNEMONIC_PREFETCHW:
		op->fn = op_hint;
		return true;
	default:
		return false;
	}
}

/* Conversions from two integers in MMX: of the family even if they are in memory. */
static bool is_cvtpi(ZydisMnemonic mnemonic)
{
	return mnemonic == ZYDIS_MNEMONIC_CVTPI2PS || mnemonic == ZYDIS_MNEMONIC_CVTPI2PD;
}

bool soft_decode_sse(struct soft_decode *d, struct soft_op *op)
{
	op->imm = 0;		/* a family asked before may have left something */
	op->aux = op->size = 0;
	/* VEX and EVEX forms have mnemonics of their own. */
	if (sse_is_mmx(d, 0) || sse_is_mmx(d, 1) || is_cvtpi(d->insn->mnemonic))
		return sse_decode_mmx(d, op);
	return decode_other(d, op) || sse_decode_fxsave(d, op) || sse_decode_move(d, op) ||
	       sse_decode_int(d, op) || sse_decode_fp(d, op) || sse_decode_convert(d, op);
}
