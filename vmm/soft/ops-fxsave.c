// SPDX-License-Identifier: GPL-2.0-only
/*
 * FXSAVE and FXRSTOR (SDM 1 10.5, 2A). soft_cpu.fx is the 64-bit format already. The
 * other one (no REX.W) has 32 bits of FIP and FDP and a selector beside each, which are
 * 0 here. Neither waits for a pending x87 exception, and XMM is saved whatever
 * CR4.OSFXSR is, which the SDM leaves open.
 */
#include "soft/x87.h"

#define PIECE	16u		/* the operand is aligned to it, so that none crosses a page */

/* Without 64-bit mode there are 8 XMM registers. */
static u32 image_len(const struct soft_cpu *c)
{
	return c->mode == MODE_64 ? FX_END : FX_XMM + 8 * 16;
}

static __attribute__((noinline)) int fxsave(struct soft_cpu *c, const struct soft_op *op, u64 ea)
{
	u32 len = image_len(c);
	u8 buf[FX_END];

	memcpy(buf, c->fx, sizeof(buf));
	if (op->size == 4) {
		memset(buf + FX_FIP + 4, 0, 4);
		memset(buf + FX_FDP + 4, 0, 4);
	}
	buf[FX_FTW + 1] = 0;
	for (u32 i = 0; i < 8; i++)
		memset(buf + FX_ST + 16 * i + 10, 0, 6);
	memcpy(buf + FX_MXCSR_MASK, &(u32){ MXCSR_VALID }, 4);
	if (soft_check_write(c, op, ea, len))
		return SOFT_FAULT;
	for (u32 at = 0; at < len; at += PIECE) {
		if (soft_store_slow(c, op, ea + at, buf + at, PIECE))
			return SOFT_FAULT;
		c->accesses++;
	}
	return 0;
}

static int op_fxsave(struct soft_cpu *c, const struct soft_op *op)
{
	u64 ea;

	X87_READY(c, op);
	ea = soft_ea(c, op);
	SSE_ALIGNED(c, op, ea);
	if (unlikely(fxsave(c, op, ea)))
		return soft_faulted(c, op);
	SOFT_NEXT(c, op);
}

/* Nothing is loaded unless all of it can be read and is valid. */
static __attribute__((noinline)) int fxrstor(struct soft_cpu *c, const struct soft_op *op, u64 ea)
{
	u32 len = image_len(c), mxcsr;
	u8 buf[FX_END];

	for (u32 at = 0; at < len; at += PIECE) {
		if (soft_load_slow(c, op, ea + at, PIECE))
			return SOFT_FAULT;
		memcpy(buf + at, c->val, PIECE);
		c->accesses++;
	}
	memcpy(&mxcsr, buf + FX_MXCSR, 4);
	if (mxcsr & ~MXCSR_VALID) {
		c->fault = (struct soft_fault){ .vector = VEC_GP, .has_error = true };
		return SOFT_FAULT;
	}
	if (op->size == 4) {
		memset(buf + FX_FIP + 4, 0, 4);
		memset(buf + FX_FDP + 4, 0, 4);
	}
	buf[FX_FTW + 1] = 0;
	memcpy(buf + FX_MXCSR_MASK, c->fx + FX_MXCSR_MASK, 4);
	memcpy(c->fx, buf, len);
	*x87_u16(c, FX_FOP) &= 0x7ff;
	x87_set_control(c, *x87_u16(c, FX_FCW), *x87_u16(c, FX_FSW));
	return 0;
}

static int op_fxrstor(struct soft_cpu *c, const struct soft_op *op)
{
	u64 ea;

	X87_READY(c, op);
	ea = soft_ea(c, op);
	SSE_ALIGNED(c, op, ea);
	if (unlikely(fxrstor(c, op, ea)))
		return soft_faulted(c, op);
	SOFT_NEXT(c, op);
}

bool sse_decode_fxsave(struct soft_decode *d, struct soft_op *op)
{
	switch (d->insn->mnemonic) {
	case ZYDIS_MNEMONIC_FXSAVE:
		op->fn = op_fxsave;
		op->size = 4;
		break;
	case ZYDIS_MNEMONIC_FXSAVE64:
		op->fn = op_fxsave;
		op->size = 8;
		break;
	case ZYDIS_MNEMONIC_FXRSTOR:
		op->fn = op_fxrstor;
		op->size = 4;
		break;
	case ZYDIS_MNEMONIC_FXRSTOR64:
		op->fn = op_fxrstor;
		op->size = 8;
		break;
	default:
		return false;
	}
	soft_decode_mem(d, op, 0);
	return true;
}
