// SPDX-License-Identifier: GPL-2.0-only
/*
 * What only 16- and 32-bit code has: DAA DAS AAA AAS AAM AAD, SALC, ARPL (SDM 2A). Flags
 * that the manual leaves open are as of the result, OF is cleared.
 */
#include "soft/ops.h"
#include "soft/system.h"

#define R_AL	0u
#define R_AH	1u

/* SF, ZF and PF of AL, and the two that the instruction itself says. */
static void decimal_flags(struct soft_cpu *c, u8 al, bool cf, bool af)
{
	c->of = 0;
	c->lo = (u8)((cf ? LO_CF : 0) | (af ? LO_AF : 0) | (al & LO_SF) | (al ? 0 : LO_ZF) |
		     (__builtin_parity(al) ? 0 : LO_PF));
}

/* DAA, DAS: aux is 1 for the latter. */
static int op_packed(struct soft_cpu *c, const struct soft_op *op)
{
	u8 old = get8(c, R_AL), al = old;
	bool low = (old & 15) > 9 || c->lo & LO_AF, high = old > 0x99 || c->lo & LO_CF;
	u8 by = (u8)((low ? 6 : 0) + (high ? 0x60 : 0));

	al = (u8)(op->aux ? al - by : al + by);
	set8(c, R_AL, al);
	/* A borrow by the low digit counts, too; a carry comes with `high` only. */
	decimal_flags(c, al, high || (op->aux && low && old < 6), low);
	SOFT_NEXT(c, op);
}

/* AAA, AAS: aux is 1 for the latter. */
static int op_ascii(struct soft_cpu *c, const struct soft_op *op)
{
	bool adjust = (get8(c, R_AL) & 15) > 9 || c->lo & LO_AF;
	u16 ax = get16(c, X86_RAX);

	if (adjust)
		ax = (u16)(op->aux ? ax - 0x106 : ax + 0x106);
	ax &= 0xff0f;
	set16(c, X86_RAX, ax);
	decimal_flags(c, (u8)ax, adjust, adjust);
	SOFT_NEXT(c, op);
}

static int op_aam(struct soft_cpu *c, const struct soft_op *op)
{
	u8 al = get8(c, R_AL);

	if (!op->imm)
		return soft_raise(c, op, VEC_DE);
	set8(c, R_AH, (u8)(al / op->imm));
	set8(c, R_AL, (u8)(al % op->imm));
	decimal_flags(c, get8(c, R_AL), false, false);
	SOFT_NEXT(c, op);
}

static int op_aad(struct soft_cpu *c, const struct soft_op *op)
{
	u8 al = (u8)(get8(c, R_AL) + get8(c, R_AH) * op->imm);

	set16(c, X86_RAX, al);
	decimal_flags(c, al, false, false);
	SOFT_NEXT(c, op);
}

/* D6: AL is 0xff if CF is set, else 0. */
static int op_salc(struct soft_cpu *c, const struct soft_op *op)
{
	set8(c, R_AL, c->lo & LO_CF ? 0xff : 0);
	SOFT_NEXT(c, op);
}

/* Raise the RPL of the selector in the destination to that of the source. In memory, it is written only if it changes. */
static int op_arpl(struct soft_cpu *c, const struct soft_op *op)
{
	u64 va = op->aux ? soft_ea(c, op) : 0;
	u32 rpl = get16(c, op->src) & 3;
	u16 sel;

	if (!soft_protected(c))
		return soft_raise(c, op, VEC_UD);
	if (op->aux) {
		if (soft_check_write(c, op, va, 2) || soft_load_slow(c, op, va, 2))
			return soft_faulted(c, op);
		sel = (u16)c->val[0];
	} else {
		sel = get16(c, op->dst);
	}
	if ((sel & 3u) >= rpl) {
		c->lo &= (u8)~LO_ZF;
		SOFT_NEXT(c, op);
	}
	sel = (u16)((sel & ~3u) | rpl);
	if (!op->aux) {
		set16(c, op->dst, sel);
	} else {
		c->val[0] = sel;
		if (soft_store_slow(c, op, va, c->val, 2))
			return soft_faulted(c, op);
	}
	c->lo |= LO_ZF;
	SOFT_NEXT(c, op);
}

static bool decimal_decode_arpl(struct soft_decode *d, struct soft_op *op)
{
	op->fn = op_arpl;
	op->aux = soft_is_mem(d, 0);
	op->src = soft_decode_reg(d->arg[1].reg.value);
	if (op->aux) {
		soft_decode_mem(d, op, 0);
		d->accesses = 1;
	} else {
		op->dst = soft_decode_reg(d->arg[0].reg.value);
	}
	return true;
}

bool soft_decode_decimal(struct soft_decode *d, struct soft_op *op)
{
	switch (d->insn->mnemonic) {
	case ZYDIS_MNEMONIC_DAA:
	case ZYDIS_MNEMONIC_DAS:
		op->fn = op_packed;
		op->aux = d->insn->mnemonic == ZYDIS_MNEMONIC_DAS;
		return true;
	case ZYDIS_MNEMONIC_AAA:
	case ZYDIS_MNEMONIC_AAS:
		op->fn = op_ascii;
		op->aux = d->insn->mnemonic == ZYDIS_MNEMONIC_AAS;
		return true;
	case ZYDIS_MNEMONIC_AAM:
	case ZYDIS_MNEMONIC_AAD:
		op->fn = d->insn->mnemonic == ZYDIS_MNEMONIC_AAM ? op_aam : op_aad;
		op->imm = d->arg[0].imm.value.u & 0xff;
		return true;
	case ZYDIS_MNEMONIC_SALC:
		op->fn = op_salc;
		return true;
	case ZYDIS_MNEMONIC_ARPL:
		return decimal_decode_arpl(d, op);
	default:
		return false;
	}
}
