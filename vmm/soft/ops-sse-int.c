// SPDX-License-Identifier: GPL-2.0-only
/*
 * SSE and SSE2 on integers and whole registers: what needs no MXCSR. The table is
 * sse-int.def; instructions with an immediate are below, since an immediate cannot
 * be a run-time value of an inline instruction.
 */
#include "soft/sse.h"

#define SSE_INT_FN(name, load)							\
static int name##_rr(struct soft_cpu *c, const struct soft_op *op)		\
{										\
	vec a;									\
										\
	SSE_READY(c, op);							\
	a = XMM(c, op->dst);							\
	asm(#name " %1, %0" : "+x"(a) : "x"(XMM(c, op->src)));			\
	XMM(c, op->dst) = a;							\
	SOFT_NEXT(c, op);							\
}										\
static int name##_rm(struct soft_cpu *c, const struct soft_op *op)		\
{										\
	vec a, b;								\
										\
	SSE_READY(c, op);							\
	load(c, op, b);								\
	a = XMM(c, op->dst);							\
	asm(#name " %1, %0" : "+x"(a) : "x"(b));				\
	XMM(c, op->dst) = a;							\
	SOFT_NEXT(c, op);							\
}
#define SSE_INT(zydis, name)	SSE_INT_FN(name, SSE_LOAD_16)
#define SSE_INT4(zydis, name)	SSE_INT_FN(name, SSE_LOAD_4)
#include "soft/sse-int.def"
#undef SSE_INT
#undef SSE_INT4

/* Shifts by an immediate: the count is all 64 bits of the other form's operand, so the two are one. */
#define SHIFT_IMM(name)								\
static int name##_imm(struct soft_cpu *c, const struct soft_op *op)		\
{										\
	vec a, count = { (long long)op->imm, 0 };				\
										\
	SSE_READY(c, op);							\
	a = XMM(c, op->dst);							\
	asm(#name " %1, %0" : "+x"(a) : "x"(count));				\
	XMM(c, op->dst) = a;							\
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

/* PSLLDQ, PSRLDQ: by bytes; more than 15 leaves 0. */
static int pslldq_imm(struct soft_cpu *c, const struct soft_op *op)
{
	u64 *r = sse_u64(c, op->dst);
	unsigned __int128 v = (unsigned __int128)r[1] << 64 | r[0];

	SSE_READY(c, op);
	v = op->imm > 15 ? 0 : v << (op->imm * 8);
	r[0] = (u64)v;
	r[1] = (u64)(v >> 64);
	SOFT_NEXT(c, op);
}

static int psrldq_imm(struct soft_cpu *c, const struct soft_op *op)
{
	u64 *r = sse_u64(c, op->dst);
	unsigned __int128 v = (unsigned __int128)r[1] << 64 | r[0];

	SSE_READY(c, op);
	v = op->imm > 15 ? 0 : v >> (op->imm * 8);
	r[0] = (u64)v;
	r[1] = (u64)(v >> 64);
	SOFT_NEXT(c, op);
}

/*
 * Shuffles by an immediate pick lanes of the destination `a` and the source `b`, both
 * as they were before. b in memory is brought to c->val first.
 */
static inline u64 pair(u32 low, u32 high)
{
	return (u64)high << 32 | low;
}

static inline u64 four_words(u64 v, u32 imm)
{
	u64 r = 0;

	for (u32 i = 0; i < 4; i++)
		r |= (v >> (imm >> 2 * i & 3) * 16 & 0xffff) << i * 16;
	return r;
}

static inline vec do_pshufd(const void *a, const void *b, u32 imm)
{
	const u32 *s = b;

	return (vec){ (long long)pair(s[imm & 3], s[imm >> 2 & 3]), (long long)pair(s[imm >> 4 & 3], s[imm >> 6 & 3]) };
}

static inline vec do_shufps(const void *a, const void *b, u32 imm)
{
	const u32 *d = a, *s = b;

	return (vec){ (long long)pair(d[imm & 3], d[imm >> 2 & 3]), (long long)pair(s[imm >> 4 & 3], s[imm >> 6 & 3]) };
}

static inline vec do_shufpd(const void *a, const void *b, u32 imm)
{
	const u64 *d = a, *s = b;

	return (vec){ (long long)d[imm & 1], (long long)s[imm >> 1 & 1] };
}

static inline vec do_pshuflw(const void *a, const void *b, u32 imm)
{
	const u64 *s = b;

	return (vec){ (long long)four_words(s[0], imm), (long long)s[1] };
}

static inline vec do_pshufhw(const void *a, const void *b, u32 imm)
{
	const u64 *s = b;

	return (vec){ (long long)s[0], (long long)four_words(s[1], imm) };
}

#define SHUFFLE(name)								\
static int name##_rr(struct soft_cpu *c, const struct soft_op *op)		\
{										\
	SSE_READY(c, op);							\
	XMM(c, op->dst) = do_##name(sse_u32(c, op->dst), sse_u32(c, op->src), (u32)op->imm);	\
	SOFT_NEXT(c, op);							\
}										\
static int name##_rm(struct soft_cpu *c, const struct soft_op *op)		\
{										\
	vec b;									\
										\
	SSE_READY(c, op);							\
	SSE_LOAD_16(c, op, b);							\
	*(vec_mem *)c->val = b;							\
	XMM(c, op->dst) = do_##name(sse_u32(c, op->dst), c->val, (u32)op->imm);	\
	SOFT_NEXT(c, op);							\
}
SHUFFLE(pshufd)
SHUFFLE(pshuflw)
SHUFFLE(pshufhw)
SHUFFLE(shufps)
SHUFFLE(shufpd)

/* PINSRW, PEXTRW: the word's number modulo 8. */
static int pinsrw_rr(struct soft_cpu *c, const struct soft_op *op)
{
	SSE_READY(c, op);
	((u16 *)sse_u32(c, op->dst))[op->imm & 7] = (u16)c->gpr[op->src];
	SOFT_NEXT(c, op);
}

static int pinsrw_rm(struct soft_cpu *c, const struct soft_op *op)
{
	u16 v;

	SSE_READY(c, op);
	SOFT_LOAD(c, op, v, soft_ea(c, op), u16);
	((u16 *)sse_u32(c, op->dst))[op->imm & 7] = v;
	SOFT_NEXT(c, op);
}

static int pextrw(struct soft_cpu *c, const struct soft_op *op)
{
	SSE_READY(c, op);
	c->gpr[op->dst] = ((u16 *)sse_u32(c, op->src))[op->imm & 7];
	SOFT_NEXT(c, op);
}

/* Sign bits to a general register, zero-extended. */
#define MASK_FN(name)								\
static int name(struct soft_cpu *c, const struct soft_op *op)			\
{										\
	u32 mask;								\
										\
	SSE_READY(c, op);							\
	asm(#name " %1, %0" : "=r"(mask) : "x"(XMM(c, op->src)));		\
	c->gpr[op->dst] = mask;							\
	SOFT_NEXT(c, op);							\
}
MASK_FN(pmovmskb)
MASK_FN(movmskps)
MASK_FN(movmskpd)

static soft_fn shift_imm(ZydisMnemonic mnemonic)
{
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_PSLLW:	return psllw_imm;
	case ZYDIS_MNEMONIC_PSLLD:	return pslld_imm;
	case ZYDIS_MNEMONIC_PSLLQ:	return psllq_imm;
	case ZYDIS_MNEMONIC_PSRLW:	return psrlw_imm;
	case ZYDIS_MNEMONIC_PSRLD:	return psrld_imm;
	case ZYDIS_MNEMONIC_PSRLQ:	return psrlq_imm;
	case ZYDIS_MNEMONIC_PSRAW:	return psraw_imm;
	case ZYDIS_MNEMONIC_PSRAD:	return psrad_imm;
	case ZYDIS_MNEMONIC_PSLLDQ:	return pslldq_imm;
	case ZYDIS_MNEMONIC_PSRLDQ:	return psrldq_imm;
	default:			return NULL;
	}
}

static soft_fn plain(ZydisMnemonic mnemonic, bool mem)
{
	switch (mnemonic) {
#define SSE_INT(zydis, name)							\
	case ZYDIS_MNEMONIC_##zydis:	return mem ? name##_rm : name##_rr;
#define SSE_INT4(zydis, name)	SSE_INT(zydis, name)
#include "soft/sse-int.def"
#undef SSE_INT
#undef SSE_INT4
	case ZYDIS_MNEMONIC_PSHUFD:	return mem ? pshufd_rm : pshufd_rr;
	case ZYDIS_MNEMONIC_PSHUFLW:	return mem ? pshuflw_rm : pshuflw_rr;
	case ZYDIS_MNEMONIC_PSHUFHW:	return mem ? pshufhw_rm : pshufhw_rr;
	case ZYDIS_MNEMONIC_SHUFPS:	return mem ? shufps_rm : shufps_rr;
	case ZYDIS_MNEMONIC_SHUFPD:	return mem ? shufpd_rm : shufpd_rr;
	case ZYDIS_MNEMONIC_PINSRW:	return mem ? pinsrw_rm : pinsrw_rr;
	case ZYDIS_MNEMONIC_PEXTRW:	return mem ? NULL : pextrw;	/* to memory: SSE4.1 */
	case ZYDIS_MNEMONIC_PMOVMSKB:	return pmovmskb;
	case ZYDIS_MNEMONIC_MOVMSKPS:	return movmskps;
	case ZYDIS_MNEMONIC_MOVMSKPD:	return movmskpd;
	default:			return NULL;
	}
}

bool sse_decode_int(struct soft_decode *d, struct soft_op *op)
{
	ZydisMnemonic mnemonic = d->insn->mnemonic;
	u32 i = d->insn->operand_count_visible;
	bool imm = i && soft_is_imm(d, i - 1);

	if (imm)
		op->imm = d->arg[i - 1].imm.value.u & 0xff;
	op->fn = imm && i == 2 ? shift_imm(mnemonic) : plain(mnemonic, soft_is_mem(d, 1));
	if (!op->fn)
		return false;
	sse_decode_args(d, op, 0, 1);
	return true;
}
