// SPDX-License-Identifier: GPL-2.0-only
/* SSE and SSE2 floating point: the table sse-fp.def. */
#include "soft/sse-fp.h"

int fp_raise(struct soft_cpu *c, const struct soft_op *op)
{
	return soft_raise(c, op, c->cr4 & X86_CR4_OSXMMEXCPT ? VEC_XM : VEC_UD);
}

static bool tiny32(u32 v)
{
	return !(v & 0x7f800000) && v & 0x7fffff;
}

static bool tiny64(u64 v)
{
	return !(v & 0x7ff0000000000000ull) && v & 0xfffffffffffffull;
}

static bool tiny(vec r, enum fp_lanes lanes)
{
	u64 low = (u64)r[0], high = (u64)r[1];

	switch (lanes) {
	case FP_SS:
		return tiny32((u32)low);
	case FP_PS:
		return tiny32((u32)low) || tiny32((u32)(low >> 32)) || tiny32((u32)high) || tiny32((u32)(high >> 32));
	case FP_SD:
		return tiny64(low);
	case FP_PD:
		return tiny64(low) || tiny64(high);
	default:
		return false;
	}
}

/*
 * What differs when exceptions are not masked: one that is found before computing
 * keeps all of the others from being looked for (SDM 1 4.9.2, 11.5.3); a tiny result
 * is an underflow even if it is exact (SDM 1 4.9.1.5).
 *
 * Not modelled: with an unmasked overflow or underflow PE tells whether the result is
 * inexact were the exponent unbounded; here it is what the masked response gives.
 */
bool fp_unmasked(struct soft_cpu *c, vec result, enum fp_lanes lanes)
{
	u32 *g = sse_mxcsr(c), flags = c->mxcsr_run & MXCSR_FLAGS, unmasked = ~(*g >> 7) & MXCSR_FLAGS;

	if (flags & unmasked & MXCSR_BEFORE)
		flags &= MXCSR_BEFORE;
	else if (unmasked & MXCSR_UE && tiny(result, lanes))
		flags |= MXCSR_UE;
	*g |= flags;
	return flags & unmasked;
}

/* COMISS and its like give ZF, PF, CF and clear the rest, which LAHF leaves as `lo` wants them; OF is 0. */
#define FP_COMPUTE(c, name, x, y)						\
	asm volatile(FP_ENTER name " %[b], %[a]" FP_EXIT : [a] "+x" (x), FP_STATE(c) : [b] "x" (y))
#define FP_COMPARE(c, name, flags, x, y)					\
	asm volatile(FP_ENTER name " %[b], %[a]\n\tmovl $0, %%eax\n\tlahf" FP_EXIT	\
		     : "=&a" (flags), FP_STATE(c) : [a] "x" (x), [b] "x" (y) : "cc")

#define FP_BODY(name, lanes, load)						\
	vec a, b;								\
										\
	SSE_READY(c, op);							\
	load;									\
	a = XMM(c, op->dst);							\
	fp_begin(c);								\
	FP_COMPUTE(c, name, a, b);						\
	if (unlikely(fp_end(c, a, lanes)))					\
		return fp_raise(c, op);						\
	XMM(c, op->dst) = a;							\
	SOFT_NEXT(c, op)

#define FP_FN(fn, name, size, lanes)						\
static int fn##_rr(struct soft_cpu *c, const struct soft_op *op)		\
{										\
	FP_BODY(name, lanes, b = XMM(c, op->src));				\
}										\
static int fn##_rm(struct soft_cpu *c, const struct soft_op *op)		\
{										\
	FP_BODY(name, lanes, SSE_LOAD_##size(c, op, b));			\
}

#define FLAGS_BODY(name, load)							\
	vec b;									\
	u32 af;									\
										\
	SSE_READY(c, op);							\
	load;									\
	fp_begin(c);								\
	FP_COMPARE(c, name, af, XMM(c, op->dst), b);				\
	if (unlikely(fp_end(c, b, FP_NONE)))					\
		return fp_raise(c, op);						\
	c->af = (u16)af;							\
	SOFT_NEXT(c, op)

#define SSE_FP(zydis, name, size, lanes)	FP_FN(name, #name, size, lanes)
#define SSE_CMP(zydis, name, size)						\
	FP_FN(name##_0, #name " $0,", size, FP_NONE)				\
	FP_FN(name##_1, #name " $1,", size, FP_NONE)				\
	FP_FN(name##_2, #name " $2,", size, FP_NONE)				\
	FP_FN(name##_3, #name " $3,", size, FP_NONE)				\
	FP_FN(name##_4, #name " $4,", size, FP_NONE)				\
	FP_FN(name##_5, #name " $5,", size, FP_NONE)				\
	FP_FN(name##_6, #name " $6,", size, FP_NONE)				\
	FP_FN(name##_7, #name " $7,", size, FP_NONE)
#define SSE_FLAGS(zydis, name, size)						\
static int name##_rr(struct soft_cpu *c, const struct soft_op *op)		\
{										\
	FLAGS_BODY(#name, b = XMM(c, op->src));					\
}										\
static int name##_rm(struct soft_cpu *c, const struct soft_op *op)		\
{										\
	FLAGS_BODY(#name, SSE_LOAD_##size(c, op, b));				\
}
#include "soft/sse-fp.def"
#undef SSE_FP
#undef SSE_CMP
#undef SSE_FLAGS

static soft_fn compute(ZydisMnemonic mnemonic, bool mem, u32 predicate)
{
	switch (mnemonic) {
#define SSE_FP(zydis, name, size, lanes)					\
	case ZYDIS_MNEMONIC_##zydis:	return mem ? name##_rm : name##_rr;
#define CMP_FNS(name, form)	{ name##_0_##form, name##_1_##form, name##_2_##form, name##_3_##form,	\
				  name##_4_##form, name##_5_##form, name##_6_##form, name##_7_##form }
#define SSE_CMP(zydis, name, size)						\
	case ZYDIS_MNEMONIC_##zydis: {						\
		static const soft_fn fn[2][8] = { CMP_FNS(name, rr), CMP_FNS(name, rm) };	\
										\
		return fn[mem][predicate];					\
	}
#define SSE_FLAGS(zydis, name, size)	SSE_FP(zydis, name, size, FP_NONE)
#include "soft/sse-fp.def"
	default:
		return NULL;
	}
}

bool sse_decode_fp(struct soft_decode *d, struct soft_op *op)
{
	u32 i = d->insn->operand_count_visible;
	u32 predicate = i && soft_is_imm(d, i - 1) ? d->arg[i - 1].imm.value.u & 7 : 0;

	if (!sse_is_xmm(d, 0))		/* CMPSD is a string instruction as well */
		return false;
	op->fn = compute(d->insn->mnemonic, soft_is_mem(d, 1), predicate);
	if (!op->fn)
		return false;
	sse_decode_args(d, op, 0, 1);
	return true;
}
