// SPDX-License-Identifier: GPL-2.0-only
/* Conversions between XMM and general registers, of 32 and 64 bits. */
#include "soft/sse-fp.h"

/* CVTSI2SS, CVTSI2SD: `r` is how the asm names the operand's width. */
#define FROM_BODY(name, r, load)						\
	vec a;									\
	u64 v;									\
										\
	SSE_READY(c, op);							\
	load;									\
	a = XMM(c, op->dst);							\
	fp_begin(c);								\
	asm volatile(FP_ENTER name " %" r "[v], %[a]" FP_EXIT			\
		     : [a] "+x" (a), FP_STATE(c) : [v] "r" (v));		\
	if (unlikely(fp_end(c, a, FP_NONE)))					\
		return fp_raise(c, op);						\
	XMM(c, op->dst) = a;							\
	SOFT_NEXT(c, op)

#define FROM(name, n, type, r)							\
static int name##n##_rr(struct soft_cpu *c, const struct soft_op *op)		\
{										\
	FROM_BODY(#name, r, v = c->gpr[op->src]);				\
}										\
static int name##n##_rm(struct soft_cpu *c, const struct soft_op *op)		\
{										\
	FROM_BODY(#name, r, SOFT_LOAD(c, op, v, soft_ea(c, op), type));		\
}
FROM(cvtsi2ss, 4, u32, "k")
FROM(cvtsi2ss, 8, u64, "q")
FROM(cvtsi2sd, 4, u32, "k")
FROM(cvtsi2sd, 8, u64, "q")

/* CVTSS2SI and the like: the 32-bit form zero-extends, in the host's register already. */
#define TO_BODY(name, r, load)							\
	vec b;									\
	u64 v;									\
										\
	SSE_READY(c, op);							\
	load;									\
	fp_begin(c);								\
	asm volatile(FP_ENTER name " %[b], %" r "[v]" FP_EXIT			\
		     : [v] "=r" (v), FP_STATE(c) : [b] "x" (b));		\
	if (unlikely(fp_end(c, b, FP_NONE)))					\
		return fp_raise(c, op);						\
	c->gpr[op->dst] = v;							\
	SOFT_NEXT(c, op)

#define TO(name, n, r, size)							\
static int name##n##_rr(struct soft_cpu *c, const struct soft_op *op)		\
{										\
	TO_BODY(#name, r, b = XMM(c, op->src));					\
}										\
static int name##n##_rm(struct soft_cpu *c, const struct soft_op *op)		\
{										\
	TO_BODY(#name, r, SSE_LOAD_##size(c, op, b));				\
}
TO(cvtss2si, 4, "k", 4)
TO(cvtss2si, 8, "q", 4)
TO(cvttss2si, 4, "k", 4)
TO(cvttss2si, 8, "q", 4)
TO(cvtsd2si, 4, "k", 8)
TO(cvtsd2si, 8, "q", 8)
TO(cvttsd2si, 4, "k", 8)
TO(cvttsd2si, 8, "q", 8)

bool sse_decode_convert(struct soft_decode *d, struct soft_op *op)
{
	bool mem = soft_is_mem(d, 1), wide;

	if (d->insn->operand_count_visible != 2)
		return false;
	switch (d->insn->mnemonic) {
#define CASE(zydis, name, i)							\
	case ZYDIS_MNEMONIC_##zydis:						\
		wide = d->arg[i].size == 64;					\
		op->fn = wide ? mem ? name##8_rm : name##8_rr : mem ? name##4_rm : name##4_rr;	\
		break;
	CASE(CVTSI2SS, cvtsi2ss, 1)
	CASE(CVTSI2SD, cvtsi2sd, 1)
	CASE(CVTSS2SI, cvtss2si, 0)
	CASE(CVTTSS2SI, cvttss2si, 0)
	CASE(CVTSD2SI, cvtsd2si, 0)
	CASE(CVTTSD2SI, cvttsd2si, 0)
	default:
		return false;
	}
	sse_decode_args(d, op, 0, 1);
	return true;
}
