// SPDX-License-Identifier: GPL-2.0-only
/* SSE and SSE2 moves between XMM registers, general registers and memory. */
#include "soft/sse.h"

/* --- 16 bytes --- */

static int mov16_rr(struct soft_cpu *c, const struct soft_op *op)
{
	SSE_READY(c, op);
	XMM(c, op->dst) = XMM(c, op->src);
	SOFT_NEXT(c, op);
}

static int mova_rm(struct soft_cpu *c, const struct soft_op *op)
{
	vec v;

	SSE_READY(c, op);
	SSE_LOAD_16(c, op, v);
	XMM(c, op->dst) = v;
	SOFT_NEXT(c, op);
}

static int movu_rm(struct soft_cpu *c, const struct soft_op *op)
{
	vec v;

	SSE_READY(c, op);
	SSE_LOAD_UNALIGNED(c, op, v, soft_ea(c, op));
	XMM(c, op->dst) = v;
	SOFT_NEXT(c, op);
}

static int mova_mr(struct soft_cpu *c, const struct soft_op *op)
{
	u64 ea;

	SSE_READY(c, op);
	ea = soft_ea(c, op);
	SSE_ALIGNED(c, op, ea);
	SSE_STORE_UNALIGNED(c, op, ea, XMM(c, op->src));
	SOFT_NEXT(c, op);
}

static int movu_mr(struct soft_cpu *c, const struct soft_op *op)
{
	SSE_READY(c, op);
	SSE_STORE_UNALIGNED(c, op, soft_ea(c, op), XMM(c, op->src));
	SOFT_NEXT(c, op);
}

/* --- 4 and 8 bytes: from memory and general registers the rest becomes 0 --- */

#define MOV_LOW(n, type, lanes)							\
static int mov##n##_rm(struct soft_cpu *c, const struct soft_op *op)		\
{										\
	vec v;									\
										\
	SSE_READY(c, op);							\
	SSE_LOAD_##n(c, op, v);							\
	XMM(c, op->dst) = v;							\
	SOFT_NEXT(c, op);							\
}										\
static int mov##n##_mr(struct soft_cpu *c, const struct soft_op *op)		\
{										\
	SSE_READY(c, op);							\
	SOFT_STORE(c, op, soft_ea(c, op), lanes(c, op->src)[0], type);		\
	SOFT_NEXT(c, op);							\
}										\
/* MOVSS, MOVSD: the rest stays */						\
static int mov##n##_merge(struct soft_cpu *c, const struct soft_op *op)		\
{										\
	SSE_READY(c, op);							\
	lanes(c, op->dst)[0] = lanes(c, op->src)[0];				\
	SOFT_NEXT(c, op);							\
}										\
/* MOVD, MOVQ */								\
static int mov##n##_from_gpr(struct soft_cpu *c, const struct soft_op *op)	\
{										\
	SSE_READY(c, op);							\
	XMM(c, op->dst) = (vec){ (long long)(type)c->gpr[op->src], 0 };		\
	SOFT_NEXT(c, op);							\
}										\
static int mov##n##_to_gpr(struct soft_cpu *c, const struct soft_op *op)	\
{										\
	SSE_READY(c, op);							\
	c->gpr[op->dst] = lanes(c, op->src)[0];					\
	SOFT_NEXT(c, op);							\
}										\
/* MOVNTI: needs no SSE state */						\
static int movnti##n(struct soft_cpu *c, const struct soft_op *op)		\
{										\
	SOFT_STORE(c, op, soft_ea(c, op), c->gpr[op->src], type);		\
	SOFT_NEXT(c, op);							\
}
MOV_LOW(4, u32, sse_u32)
MOV_LOW(8, u64, sse_u64)

static int movq_rr(struct soft_cpu *c, const struct soft_op *op)
{
	SSE_READY(c, op);
	XMM(c, op->dst) = (vec){ (long long)sse_u64(c, op->src)[0], 0 };
	SOFT_NEXT(c, op);
}

/* --- one half: op->aux is the half of the XMM register, op->size that of the source register --- */

static int movhalf_rr(struct soft_cpu *c, const struct soft_op *op)
{
	SSE_READY(c, op);
	sse_u64(c, op->dst)[op->aux] = sse_u64(c, op->src)[op->size];
	SOFT_NEXT(c, op);
}

static int movhalf_rm(struct soft_cpu *c, const struct soft_op *op)
{
	u64 v;

	SSE_READY(c, op);
	SOFT_LOAD(c, op, v, soft_ea(c, op), u64);
	sse_u64(c, op->dst)[op->aux] = v;
	SOFT_NEXT(c, op);
}

static int movhalf_mr(struct soft_cpu *c, const struct soft_op *op)
{
	SSE_READY(c, op);
	SOFT_STORE(c, op, soft_ea(c, op), sse_u64(c, op->src)[op->aux], u64);
	SOFT_NEXT(c, op);
}

/*
 * MASKMOVDQU, MASKMOVQ: bytes of dst whose byte in src has bit 7 set go to memory (SDM
 * 2B). No byte selected touches nothing; else all that lies between the first and the
 * last one must be writable before any is written.
 */
int sse_maskmov(struct soft_cpu *c, const struct soft_op *op, const u8 *bytes, const u8 *mask, u32 len)
{
	u64 ea = soft_ea(c, op);
	u32 first = 0, end = len;

	while (first < len && !(mask[first] & 0x80))
		first++;
	if (first == len)
		return 0;
	while (!(mask[end - 1] & 0x80))
		end--;
	if (soft_check_write(c, op, ea + first, end - first))
		return SOFT_FAULT;
	for (u32 i = first, n; i < end; i += n) {
		for (n = 0; i + n < end && mask[i + n] & 0x80; n++)
			;
		if (n && soft_store_slow(c, op, ea + i, bytes + i, n))
			return SOFT_FAULT;
		if (!n)
			n = 1;
	}
	return 0;
}

static int op_maskmovdqu(struct soft_cpu *c, const struct soft_op *op)
{
	SSE_READY(c, op);
	if (unlikely(sse_maskmov(c, op, (u8 *)sse_u32(c, op->dst), (u8 *)sse_u32(c, op->src), 16)))
		return soft_faulted(c, op);
	SOFT_NEXT(c, op);
}

bool sse_decode_maskmov(struct soft_decode *d, struct soft_op *op)
{
	u32 mem = 0;

	while (mem < d->insn->operand_count && d->arg[mem].type != ZYDIS_OPERAND_TYPE_MEMORY)
		mem++;
	if (mem == d->insn->operand_count)
		return false;
	sse_decode_args(d, op, 0, 1);
	soft_decode_mem(d, op, mem);		/* DS:rDI, a hidden operand */
	d->accesses = 1;
	return true;
}

static soft_fn pick(const struct soft_decode *d, soft_fn rr, soft_fn rm, soft_fn mr)
{
	return soft_is_mem(d, 0) ? mr : soft_is_mem(d, 1) ? rm : rr;
}

/* MOVD and MOVQ: XMM, general register or memory on either side. */
static soft_fn movd(const struct soft_decode *d)
{
	bool wide = d->arg[0].size == 64 || d->arg[1].size == 64;

	if (sse_is_xmm(d, 0) && sse_is_xmm(d, 1))
		return movq_rr;
	if (soft_is_mem(d, 0))
		return wide ? mov8_mr : mov4_mr;
	if (soft_is_mem(d, 1))
		return wide ? mov8_rm : mov4_rm;
	if (sse_is_xmm(d, 0))
		return wide ? mov8_from_gpr : mov4_from_gpr;
	return wide ? mov8_to_gpr : mov4_to_gpr;
}

static soft_fn move(const struct soft_decode *d, struct soft_op *op)
{
	switch (d->insn->mnemonic) {
	case ZYDIS_MNEMONIC_MOVAPS:
	case ZYDIS_MNEMONIC_MOVAPD:
	case ZYDIS_MNEMONIC_MOVDQA:
		return pick(d, mov16_rr, mova_rm, mova_mr);
	case ZYDIS_MNEMONIC_MOVUPS:
	case ZYDIS_MNEMONIC_MOVUPD:
	case ZYDIS_MNEMONIC_MOVDQU:
		return pick(d, mov16_rr, movu_rm, movu_mr);
	case ZYDIS_MNEMONIC_MOVNTPS:
	case ZYDIS_MNEMONIC_MOVNTPD:
	case ZYDIS_MNEMONIC_MOVNTDQ:
		return mova_mr;
	case ZYDIS_MNEMONIC_MOVNTI:
		return d->arg[1].size == 64 ? movnti8 : movnti4;
	case ZYDIS_MNEMONIC_MOVSS:
		return pick(d, mov4_merge, mov4_rm, mov4_mr);
	case ZYDIS_MNEMONIC_MOVSD:		/* the string instruction has the same mnemonic */
		return sse_is_xmm(d, 0) || sse_is_xmm(d, 1) ? pick(d, mov8_merge, mov8_rm, mov8_mr) : NULL;
	case ZYDIS_MNEMONIC_MOVD:
	case ZYDIS_MNEMONIC_MOVQ:
		return movd(d);
	case ZYDIS_MNEMONIC_MOVHLPS:
		op->size = 1;
		return movhalf_rr;
	case ZYDIS_MNEMONIC_MOVLHPS:
		op->aux = 1;
		return movhalf_rr;
	case ZYDIS_MNEMONIC_MOVHPS:
	case ZYDIS_MNEMONIC_MOVHPD:
		op->aux = 1;
		return pick(d, NULL, movhalf_rm, movhalf_mr);
	case ZYDIS_MNEMONIC_MOVLPS:
	case ZYDIS_MNEMONIC_MOVLPD:
		return pick(d, NULL, movhalf_rm, movhalf_mr);
	default:
		return NULL;
	}
}

bool sse_decode_move(struct soft_decode *d, struct soft_op *op)
{
	if (d->insn->mnemonic == ZYDIS_MNEMONIC_MASKMOVDQU) {
		op->fn = op_maskmovdqu;
		return sse_decode_maskmov(d, op);
	}
	op->fn = move(d, op);
	if (!op->fn)
		return false;
	sse_decode_args(d, op, 0, 1);
	return true;
}
