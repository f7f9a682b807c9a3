// SPDX-License-Identifier: GPL-2.0-only
/*
 * MMX, and the forms of SSE and SSE2 with an MMX register. MMn is the mantissa of the
 * x87's physical register n; each instruction sets TOP to 0 and all tags to valid, and
 * a register that is written gets an exponent of ones (SDM 3A 12.2, table 12-1; EMMS is
 * in ops-x87.c). Nobody needs these fast: one function serves register and memory operands.
 *
 * op->aux: the source is in memory, of op->size bytes.
 */
#include "soft/sse-fp.h"
#include "soft/x87.h"

/* #UD, #NM, #MF in this order (SDM 3A 12.1, 12.5). */
#define MMX_READY(c, op) do {							\
	if (unlikely((c)->cr0 & X86_CR0_EM))					\
		return soft_raise((c), (op), VEC_UD);				\
	X87_WAIT((c), (op));							\
} while (0)

/* Conversions to and from XMM heed CR4.OSFXSR too. */
#define MMX_SSE_READY(c, op) do {						\
	SSE_READY((c), (op));							\
	X87_WAIT((c), (op));							\
} while (0)

static u64 *mm(struct soft_cpu *c, u8 n)
{
	u32 top = *x87_u16(c, FX_FSW) >> FSW_TOP_SHIFT;

	return (u64 *)(c->fx + FX_ST + 16 * ((n - top) & 7));
}

/* Nothing but #XM can be raised any more. */
static void enter(struct soft_cpu *c)
{
	x87_set_control(c, *x87_u16(c, FX_FCW), *x87_u16(c, FX_FSW) & ~FSW_TOP & 0xffff);
	c->fx[FX_FTW] = 0xff;
}

static void put(struct soft_cpu *c, u8 n, u64 v)
{
	u64 *r = mm(c, n);

	r[0] = v;
	memset(r + 1, 0xff, 2);
}

/* Source operand to c->val[0], zero-extended. Not 0: return that. */
static int source(struct soft_cpu *c, const struct soft_op *op)
{
	if (op->aux) {
		if (soft_load_slow(c, op, soft_ea(c, op), op->size))
			return soft_faulted(c, op);
	} else {
		c->val[0] = *mm(c, op->src);
	}
	return 0;
}

#define MMX_CLOBBERS	"mm0", "mm1", "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)"

#define MMX(zydis, name, size)							\
static u64 do_##name(u64 a, u64 b)						\
{										\
	asm("movq %0, %%mm0\n\tmovq %1, %%mm1\n\t" #name " %%mm1, %%mm0\n\t"	\
	    "movq %%mm0, %0\n\temms" : "+r" (a) : "r" (b) : MMX_CLOBBERS);	\
	return a;								\
}										\
static int mmx_##name(struct soft_cpu *c, const struct soft_op *op)		\
{										\
	MMX_READY(c, op);							\
	if (unlikely(source(c, op)))						\
		return SOFT_FAULT;						\
	enter(c);								\
	put(c, op->dst, do_##name(*mm(c, op->dst), c->val[0]));			\
	SOFT_NEXT(c, op);							\
}
#include "soft/mmx.def"
#undef MMX

#define SHIFT_IMM(name)								\
static int mmx_##name##_imm(struct soft_cpu *c, const struct soft_op *op)	\
{										\
	MMX_READY(c, op);							\
	enter(c);								\
	put(c, op->dst, do_##name(*mm(c, op->dst), op->imm));			\
	SOFT_NEXT(c, op);							\
}
SHIFT_IMM(psllw)
SHIFT_IMM(pslld)
SHIFT_IMM(psllq)
SHIFT_IMM(psrlw)
SHIFT_IMM(psrld)
SHIFT_IMM(psrlq)
SHIFT_IMM(psraw)
SHIFT_IMM(psrad)

static int op_pshufw(struct soft_cpu *c, const struct soft_op *op)
{
	u64 r = 0;

	MMX_READY(c, op);
	if (unlikely(source(c, op)))
		return SOFT_FAULT;
	for (u32 i = 0; i < 4; i++)
		r |= (c->val[0] >> (op->imm >> 2 * i & 3) * 16 & 0xffff) << 16 * i;
	enter(c);
	put(c, op->dst, r);
	SOFT_NEXT(c, op);
}

static int op_pinsrw(struct soft_cpu *c, const struct soft_op *op)
{
	u32 shift = (op->imm & 3) * 16;

	MMX_READY(c, op);
	if (op->aux) {
		if (unlikely(source(c, op)))
			return SOFT_FAULT;
	} else {
		c->val[0] = c->gpr[op->src];
	}
	enter(c);
	put(c, op->dst, (*mm(c, op->dst) & ~(0xffffull << shift)) | (c->val[0] & 0xffff) << shift);
	SOFT_NEXT(c, op);
}

static int op_pextrw(struct soft_cpu *c, const struct soft_op *op)
{
	MMX_READY(c, op);
	enter(c);
	c->gpr[op->dst] = *mm(c, op->src) >> (op->imm & 3) * 16 & 0xffff;
	SOFT_NEXT(c, op);
}

static int op_pmovmskb(struct soft_cpu *c, const struct soft_op *op)
{
	u32 mask = 0;

	MMX_READY(c, op);
	enter(c);
	for (u32 i = 0; i < 8; i++)
		mask |= (u32)(*mm(c, op->src) >> (8 * i + 7) & 1) << i;
	c->gpr[op->dst] = mask;
	SOFT_NEXT(c, op);
}

static int op_maskmovq(struct soft_cpu *c, const struct soft_op *op)
{
	MMX_READY(c, op);
	if (unlikely(sse_maskmov(c, op, (u8 *)mm(c, op->dst), (u8 *)mm(c, op->src), 8)))
		return soft_faulted(c, op);
	enter(c);
	SOFT_NEXT(c, op);
}

/* MOVD, MOVQ by what the operands are. */
static int load_mm(struct soft_cpu *c, const struct soft_op *op)
{
	MMX_READY(c, op);
	if (unlikely(source(c, op)))
		return SOFT_FAULT;
	enter(c);
	put(c, op->dst, c->val[0]);
	SOFT_NEXT(c, op);
}

static int store_mm(struct soft_cpu *c, const struct soft_op *op)
{
	MMX_READY(c, op);
	if (unlikely(soft_store_slow(c, op, soft_ea(c, op), mm(c, op->src), op->size)))
		return soft_faulted(c, op);
	enter(c);
	SOFT_NEXT(c, op);
}

static int mm_from_gpr(struct soft_cpu *c, const struct soft_op *op)
{
	MMX_READY(c, op);
	enter(c);
	put(c, op->dst, op->size == 8 ? c->gpr[op->src] : (u32)c->gpr[op->src]);
	SOFT_NEXT(c, op);
}

static int mm_to_gpr(struct soft_cpu *c, const struct soft_op *op)
{
	MMX_READY(c, op);
	enter(c);
	c->gpr[op->dst] = op->size == 8 ? *mm(c, op->src) : (u32)*mm(c, op->src);
	SOFT_NEXT(c, op);
}

static int op_movq2dq(struct soft_cpu *c, const struct soft_op *op)
{
	MMX_SSE_READY(c, op);
	enter(c);
	XMM(c, op->dst) = (vec){ (long long)*mm(c, op->src), 0 };
	SOFT_NEXT(c, op);
}

static int op_movdq2q(struct soft_cpu *c, const struct soft_op *op)
{
	MMX_SSE_READY(c, op);
	enter(c);
	put(c, op->dst, sse_u64(c, op->src)[0]);
	SOFT_NEXT(c, op);
}

/*
 * Two integers to floating point. CVTPI2PD from memory alone leaves the x87 as it is
 * (SDM 2A; on CPUs of AMD so does CVTPI2PS). The change of state stays even if #XM is
 * raised, as it does on CPUs of AMD.
 */
#define FROM(name, ready, transition)						\
static int op_##name(struct soft_cpu *c, const struct soft_op *op)		\
{										\
	vec a;									\
										\
	ready(c, op);								\
	if (unlikely(source(c, op)))						\
		return SOFT_FAULT;						\
	if (transition)								\
		enter(c);							\
	a = XMM(c, op->dst);							\
	fp_begin(c);								\
	asm volatile("movq %[v], %%mm0\n\t" FP_ENTER #name " %%mm0, %[a]" FP_EXIT "\n\temms"	\
		     : [a] "+x" (a), FP_STATE(c) : [v] "m" (c->val[0]) : MMX_CLOBBERS);	\
	if (unlikely(fp_end(c, a, FP_NONE)))					\
		return fp_raise(c, op);						\
	XMM(c, op->dst) = a;							\
	SOFT_NEXT(c, op);							\
}
#define CVTPI2PD_READY(c, op) do {						\
	SSE_READY((c), (op));							\
	if (!(op)->aux)								\
		X87_WAIT((c), (op));						\
} while (0)
FROM(cvtpi2ps, MMX_SSE_READY, true)
FROM(cvtpi2pd, CVTPI2PD_READY, !op->aux)

/* And back; the source is XMM, or memory of 8 or (aligned) 16 bytes. */
#define TO(name, load)								\
static int op_##name(struct soft_cpu *c, const struct soft_op *op)		\
{										\
	vec b;									\
	u64 v;									\
										\
	MMX_SSE_READY(c, op);							\
	if (op->aux)								\
		load(c, op, b);							\
	else									\
		b = XMM(c, op->src);						\
	enter(c);								\
	fp_begin(c);								\
	asm volatile(FP_ENTER #name " %[b], %%mm0" FP_EXIT "\n\tmovq %%mm0, %[v]\n\temms"	\
		     : [v] "=r" (v), FP_STATE(c) : [b] "x" (b) : MMX_CLOBBERS);	\
	if (unlikely(fp_end(c, b, FP_NONE)))					\
		return fp_raise(c, op);						\
	put(c, op->dst, v);							\
	SOFT_NEXT(c, op);							\
}
TO(cvtps2pi, SSE_LOAD_8)
TO(cvttps2pi, SSE_LOAD_8)
TO(cvtpd2pi, SSE_LOAD_16)
TO(cvttpd2pi, SSE_LOAD_16)

static soft_fn shift_imm(ZydisMnemonic mnemonic)
{
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_PSLLW:	return mmx_psllw_imm;
	case ZYDIS_MNEMONIC_PSLLD:	return mmx_pslld_imm;
	case ZYDIS_MNEMONIC_PSLLQ:	return mmx_psllq_imm;
	case ZYDIS_MNEMONIC_PSRLW:	return mmx_psrlw_imm;
	case ZYDIS_MNEMONIC_PSRLD:	return mmx_psrld_imm;
	case ZYDIS_MNEMONIC_PSRLQ:	return mmx_psrlq_imm;
	case ZYDIS_MNEMONIC_PSRAW:	return mmx_psraw_imm;
	case ZYDIS_MNEMONIC_PSRAD:	return mmx_psrad_imm;
	default:			return NULL;
	}
}

static soft_fn move(const struct soft_decode *d)
{
	if (soft_is_mem(d, 0))
		return store_mm;
	if (soft_is_mem(d, 1) || (sse_is_mmx(d, 0) && sse_is_mmx(d, 1)))
		return load_mm;
	return sse_is_mmx(d, 0) ? mm_from_gpr : mm_to_gpr;
}

static soft_fn other(const struct soft_decode *d, struct soft_op *op)
{
	switch (d->insn->mnemonic) {
#define MMX(zydis, name, bytes)							\
	case ZYDIS_MNEMONIC_##zydis:						\
		op->size = bytes;						\
		return mmx_##name;
#include "soft/mmx.def"
#undef MMX
	case ZYDIS_MNEMONIC_MOVD:
	case ZYDIS_MNEMONIC_MOVQ:
		op->size = d->arg[0].size == 64 && d->arg[1].size == 64 ? 8 : 4;
		return move(d);
	case ZYDIS_MNEMONIC_MOVNTQ:	return store_mm;
	case ZYDIS_MNEMONIC_PSHUFW:	return op_pshufw;
	case ZYDIS_MNEMONIC_PINSRW:
		op->size = 2;
		return op_pinsrw;
	case ZYDIS_MNEMONIC_PEXTRW:	return op_pextrw;
	case ZYDIS_MNEMONIC_PMOVMSKB:	return op_pmovmskb;
	case ZYDIS_MNEMONIC_MOVQ2DQ:	return op_movq2dq;
	case ZYDIS_MNEMONIC_MOVDQ2Q:	return op_movdq2q;
	case ZYDIS_MNEMONIC_CVTPI2PS:	return op_cvtpi2ps;
	case ZYDIS_MNEMONIC_CVTPI2PD:	return op_cvtpi2pd;
	case ZYDIS_MNEMONIC_CVTPS2PI:	return op_cvtps2pi;
	case ZYDIS_MNEMONIC_CVTTPS2PI:	return op_cvttps2pi;
	case ZYDIS_MNEMONIC_CVTPD2PI:	return op_cvtpd2pi;
	case ZYDIS_MNEMONIC_CVTTPD2PI:	return op_cvttpd2pi;
	default:			return NULL;
	}
}

bool sse_decode_mmx(struct soft_decode *d, struct soft_op *op)
{
	u32 i = d->insn->operand_count_visible;
	bool imm = i && soft_is_imm(d, i - 1);

	op->size = 8;
	if (imm)
		op->imm = d->arg[i - 1].imm.value.u & 0xff;
	if (d->insn->mnemonic == ZYDIS_MNEMONIC_MASKMOVQ) {
		op->fn = op_maskmovq;
		return sse_decode_maskmov(d, op);
	}
	op->fn = imm && i == 2 ? shift_imm(d->insn->mnemonic) : other(d, op);
	if (!op->fn)
		return false;
	op->aux = sse_decode_args(d, op, 0, 1);
	return true;
}
