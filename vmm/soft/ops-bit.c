// SPDX-License-Identifier: GPL-2.0-only
/*
 * BT BTS BTR BTC, BSF BSR, POPCNT. Flags that the manual leaves undefined stay as they
 * are (BTx) or are cleared (BSF, BSR), on every host.
 */
#include "soft/ops.h"

enum bit_kind { BIT_TEST, BIT_SET, BIT_RESET, BIT_COMPLEMENT };

static inline u64 soft_bit_change(struct soft_cpu *c, u32 kind, u64 v, u32 bit)
{
	u64 mask = BIT_ULL(bit);

	c->lo = (u8)((c->lo & ~LO_CF) | (v >> bit & 1));
	switch (kind) {
	case BIT_SET:
		return v | mask;
	case BIT_RESET:
		return v & ~mask;
	case BIT_COMPLEMENT:
		return v ^ mask;
	default:
		return v;
	}
}

/*
 * With a register for the offset a memory operand is a bit string: the offset, signed,
 * reaches beyond the operand (SDM 2A BT).
 */
#define BIT_FORMS(bits, type, stype)						\
static int op_bit_rr_##type(struct soft_cpu *c, const struct soft_op *op)	\
{										\
	set##bits(c, op->dst, (type)soft_bit_change(c, op->aux, get##bits(c, op->dst), get##bits(c, op->src) % bits)); \
	SOFT_NEXT(c, op);							\
}										\
static int op_bit_ri_##type(struct soft_cpu *c, const struct soft_op *op)	\
{										\
	set##bits(c, op->dst, (type)soft_bit_change(c, op->aux, get##bits(c, op->dst), op->imm % bits)); \
	SOFT_NEXT(c, op);							\
}										\
static int op_bt_rr_##type(struct soft_cpu *c, const struct soft_op *op)	\
{										\
	soft_bit_change(c, BIT_TEST, get##bits(c, op->dst), get##bits(c, op->src) % bits); \
	SOFT_NEXT(c, op);							\
}										\
static int op_bt_ri_##type(struct soft_cpu *c, const struct soft_op *op)	\
{										\
	soft_bit_change(c, BIT_TEST, get##bits(c, op->dst), op->imm % bits);	\
	SOFT_NEXT(c, op);							\
}										\
SOFT_OP_MEM(op_bit_mi_##type)							\
{										\
	MEM_RMW(c, op, type, o, n, n = (type)soft_bit_change(c, op->aux, o, op->imm % bits)); \
	SOFT_NEXT(c, op);							\
}										\
SOFT_OP_MEM(op_bt_mi_##type)							\
{										\
	type v;									\
	MEM_EA(c, op, ea)							\
	MEM_LOAD(c, op, v, ea, type);						\
	soft_bit_change(c, BIT_TEST, v, op->imm % bits);			\
	SOFT_NEXT(c, op);							\
}										\
static u64 soft_bit_ea_##type(const struct soft_cpu *c, const struct soft_op *op)	\
{										\
	s64 offset = (stype)get##bits(c, op->src);				\
	u64 ea = c->gpr[op->base] + (c->gpr[op->index] << op->shift) + (u64)(s64)op->disp; \
										\
	return soft_ea_slow(c, op, ea + (u64)((offset >> __builtin_ctz(bits)) * (bits / 8))); \
}										\
static int op_bit_mr_##type(struct soft_cpu *c, const struct soft_op *op)	\
{										\
	u64 ea = soft_bit_ea_##type(c, op);					\
	type v;									\
										\
	if (op->aux != BIT_TEST && !soft_fast_rmw(c, op, ea, sizeof(type)) &&	\
	    soft_check_write(c, op, ea, sizeof(type)))				\
		return soft_faulted(c, op);					\
	SOFT_LOAD(c, op, v, ea, type);						\
	v = (type)soft_bit_change(c, op->aux, v, get##bits(c, op->src) % bits);	\
	if (op->aux != BIT_TEST)						\
		SOFT_STORE(c, op, ea, v, type);					\
	SOFT_NEXT(c, op);							\
}
BIT_FORMS(16, u16, int16_t)
BIT_FORMS(32, u32, s32)
BIT_FORMS(64, u64, s64)

static inline void soft_scan_flags(struct soft_cpu *c, bool zero)
{
	c->of = 0;
	c->lo = zero ? LO_ZF : 0;
}

/* A source of 0 leaves the destination as it was, to the last of its 64 bits. */
#define SCAN(bits, type)							\
static inline void bsf_##type(struct soft_cpu *c, u32 dst, type v)		\
{										\
	if (v)									\
		set##bits(c, dst, (type)__builtin_ctzll(v));			\
	soft_scan_flags(c, !v);							\
}										\
static inline void bsr_##type(struct soft_cpu *c, u32 dst, type v)		\
{										\
	if (v)									\
		set##bits(c, dst, (type)(63 - __builtin_clzll(v)));		\
	soft_scan_flags(c, !v);							\
}										\
static inline void popcnt_##type(struct soft_cpu *c, u32 dst, type v)		\
{										\
	set##bits(c, dst, (type)__builtin_popcountll(v));			\
	soft_scan_flags(c, !v);							\
}										\
SCAN_FORMS(bsf, bits, type) SCAN_FORMS(bsr, bits, type) SCAN_FORMS(popcnt, bits, type)

#define SCAN_FORMS(name, bits, type)						\
static int op_##name##_r_##type(struct soft_cpu *c, const struct soft_op *op)	\
{										\
	name##_##type(c, op->dst, get##bits(c, op->src));			\
	SOFT_NEXT(c, op);							\
}										\
SOFT_OP_MEM(op_##name##_m_##type)						\
{										\
	type v;									\
	MEM_EA(c, op, ea)							\
	MEM_LOAD(c, op, v, ea, type);						\
	name##_##type(c, op->dst, v);						\
	SOFT_NEXT(c, op);							\
}
SCAN(16, u16)
SCAN(32, u32)
SCAN(64, u64)

#define ROW(name)	{ NULL, op_##name##_u16, op_##name##_u32, op_##name##_u64 }

static bool soft_decode_bits(struct soft_decode *d, struct soft_op *op, enum bit_kind kind)
{
	static const soft_fn bit_rr[4] = ROW(bit_rr), bit_ri[4] = ROW(bit_ri), bt_rr[4] = ROW(bt_rr), bt_ri[4] = ROW(bt_ri);
	static const soft_fn bit_mi[4] = ROW(bit_mi), bt_mi[4] = ROW(bt_mi), bit_mr[4] = ROW(bit_mr);
	u32 size = soft_size_index(d->arg[0].size);
	bool imm = soft_is_imm(d, 1);

	op->aux = (u8)kind;
	if (imm)
		op->imm = d->arg[1].imm.value.u;
	else
		op->src = soft_decode_reg(d->arg[1].reg.value);
	if (soft_is_mem(d, 0)) {
		soft_decode_mem(d, op, 0);
		d->accesses = kind == BIT_TEST ? 1 : 2;
		op->fn = !imm ? bit_mr[size] : kind == BIT_TEST ? bt_mi[size] : bit_mi[size];
		return true;
	}
	op->dst = soft_decode_reg(d->arg[0].reg.value);
	if (kind == BIT_TEST)
		op->fn = (imm ? bt_ri : bt_rr)[size];
	else
		op->fn = (imm ? bit_ri : bit_rr)[size];
	return true;
}

static bool soft_decode_scan(struct soft_decode *d, struct soft_op *op, const soft_fn reg[4], const soft_fn mem[4])
{
	u32 size = soft_size_index(d->arg[0].size);

	op->dst = soft_decode_reg(d->arg[0].reg.value);
	if (soft_is_mem(d, 1)) {
		soft_decode_mem(d, op, 1);
		d->accesses = 1;
		op->fn = mem[size];
	} else {
		op->src = soft_decode_reg(d->arg[1].reg.value);
		op->fn = reg[size];
	}
	return true;
}

bool soft_decode_bit(struct soft_decode *d, struct soft_op *op)
{
	static const soft_fn bsf_r[4] = ROW(bsf_r), bsf_m[4] = ROW(bsf_m), bsr_r[4] = ROW(bsr_r), bsr_m[4] = ROW(bsr_m);
	static const soft_fn popcnt_r[4] = ROW(popcnt_r), popcnt_m[4] = ROW(popcnt_m);

	switch (d->insn->mnemonic) {
	case ZYDIS_MNEMONIC_BT:
		return soft_decode_bits(d, op, BIT_TEST);
	case ZYDIS_MNEMONIC_BTS:
		return soft_decode_bits(d, op, BIT_SET);
	case ZYDIS_MNEMONIC_BTR:
		return soft_decode_bits(d, op, BIT_RESET);
	case ZYDIS_MNEMONIC_BTC:
		return soft_decode_bits(d, op, BIT_COMPLEMENT);
	/* Without BMI1 and LZCNT their encodings are BSF and BSR with a prefix that means nothing. */
	case ZYDIS_MNEMONIC_BSF:
	case ZYDIS_MNEMONIC_TZCNT:
		return soft_decode_scan(d, op, bsf_r, bsf_m);
	case ZYDIS_MNEMONIC_BSR:
	case ZYDIS_MNEMONIC_LZCNT:
		return soft_decode_scan(d, op, bsr_r, bsr_m);
	case ZYDIS_MNEMONIC_POPCNT:
		return soft_decode_scan(d, op, popcnt_r, popcnt_m);
	default:
		return false;
	}
}
