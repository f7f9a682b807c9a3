// SPDX-License-Identifier: GPL-2.0-only
/*
 * MUL, IMUL, DIV, IDIV. Of the flags only CF and OF are defined, by multiplications;
 * the others are cleared there and left alone by divisions, on every host.
 */
#include "soft/ops.h"

typedef int8_t s8;
typedef int16_t s16;
typedef __int128 s128;
typedef unsigned __int128 u128;

static inline void soft_mul_flags(struct soft_cpu *c, bool overflow)
{
	c->of = overflow;
	c->lo = overflow ? LO_CF : 0;
}

/* The accumulator's halves: AX of AL and AH, else rDX:rAX. */
#define WIDE(bits, type, stype, wide, swide)					\
static inline void mul_##type(struct soft_cpu *c, type b)			\
{										\
	wide p = (wide)get##bits(c, 0) * b;					\
										\
	soft_mul_flags(c, (type)(p >> bits) != 0);				\
	soft_set_wide_##type(c, p);						\
}										\
static inline void imul_##type(struct soft_cpu *c, type b)			\
{										\
	swide p = (swide)(stype)get##bits(c, 0) * (stype)b;			\
										\
	soft_mul_flags(c, p != (stype)p);					\
	soft_set_wide_##type(c, (wide)p);					\
}										\
/* False: #DE, of a zero divisor or a quotient too large. */			\
static inline bool div_##type(struct soft_cpu *c, type b)			\
{										\
	wide a = soft_get_wide_##type(c), q;					\
										\
	if (!b)									\
		return false;							\
	q = a / b;								\
	if (q >> bits)								\
		return false;							\
	soft_set_quotient_##type(c, (type)q, (type)(a % b));			\
	return true;								\
}										\
static inline bool idiv_##type(struct soft_cpu *c, type b)			\
{										\
	swide a = (swide)soft_get_wide_##type(c), q;				\
										\
	/* The lowest dividend by -1 would overflow in C as well. */		\
	if (!b || ((stype)b == -1 && a == (swide)((wide)1 << (2 * bits - 1))))	\
		return false;							\
	q = a / (stype)b;							\
	if (q != (stype)q)							\
		return false;							\
	soft_set_quotient_##type(c, (type)q, (type)(a % (stype)b));		\
	return true;								\
}

static inline void soft_set_wide_u8(struct soft_cpu *c, u16 v) { set16(c, X86_RAX, v); }
static inline u16 soft_get_wide_u8(const struct soft_cpu *c) { return get16(c, X86_RAX); }
static inline void soft_set_quotient_u8(struct soft_cpu *c, u8 q, u8 r)
{
	set8(c, 0, q);
	set8(c, 1, r);
}
#define WIDE_DX(bits, type, wide)						\
static inline void soft_set_wide_##type(struct soft_cpu *c, wide v)		\
{										\
	set##bits(c, X86_RAX, (type)v);						\
	set##bits(c, X86_RDX, (type)(v >> bits));				\
}										\
static inline wide soft_get_wide_##type(const struct soft_cpu *c)		\
{										\
	return (wide)get##bits(c, X86_RDX) << bits | get##bits(c, X86_RAX);	\
}										\
static inline void soft_set_quotient_##type(struct soft_cpu *c, type q, type r)	\
{										\
	set##bits(c, X86_RAX, q);						\
	set##bits(c, X86_RDX, r);						\
}
WIDE_DX(16, u16, u32)
WIDE_DX(32, u32, u64)
WIDE_DX(64, u64, u128)

WIDE(8, u8, s8, u16, s16)
WIDE(16, u16, s16, u32, s32)
WIDE(32, u32, s32, u64, s64)
WIDE(64, u64, s64, u128, s128)

#define ONE_FORMS(bits, type)							\
static int op_mul_r_##type(struct soft_cpu *c, const struct soft_op *op)	\
{										\
	mul_##type(c, get##bits(c, op->dst));					\
	SOFT_NEXT(c, op);							\
}										\
static int op_imul_r_##type(struct soft_cpu *c, const struct soft_op *op)	\
{										\
	imul_##type(c, get##bits(c, op->dst));					\
	SOFT_NEXT(c, op);							\
}										\
static int op_div_r_##type(struct soft_cpu *c, const struct soft_op *op)	\
{										\
	if (!div_##type(c, get##bits(c, op->dst)))				\
		return soft_raise(c, op, VEC_DE);				\
	SOFT_NEXT(c, op);							\
}										\
static int op_idiv_r_##type(struct soft_cpu *c, const struct soft_op *op)	\
{										\
	if (!idiv_##type(c, get##bits(c, op->dst)))				\
		return soft_raise(c, op, VEC_DE);				\
	SOFT_NEXT(c, op);							\
}										\
SOFT_OP_MEM(op_mul_m_##type)							\
{										\
	type b;									\
	MEM_EA(c, op, ea)							\
	MEM_LOAD(c, op, b, ea, type);						\
	mul_##type(c, b);							\
	SOFT_NEXT(c, op);							\
}										\
SOFT_OP_MEM(op_imul_m_##type)							\
{										\
	type b;									\
	MEM_EA(c, op, ea)							\
	MEM_LOAD(c, op, b, ea, type);						\
	imul_##type(c, b);							\
	SOFT_NEXT(c, op);							\
}										\
SOFT_OP_MEM(op_div_m_##type)							\
{										\
	type b;									\
	MEM_EA(c, op, ea)							\
	MEM_LOAD(c, op, b, ea, type);						\
	if (!div_##type(c, b))							\
		return soft_raise(c, op, VEC_DE);				\
	SOFT_NEXT(c, op);							\
}										\
SOFT_OP_MEM(op_idiv_m_##type)							\
{										\
	type b;									\
	MEM_EA(c, op, ea)							\
	MEM_LOAD(c, op, b, ea, type);						\
	if (!idiv_##type(c, b))							\
		return soft_raise(c, op, VEC_DE);				\
	SOFT_NEXT(c, op);							\
}
ONE_FORMS(8, u8)
ONE_FORMS(16, u16)
ONE_FORMS(32, u32)
ONE_FORMS(64, u64)

/* IMUL with two or three operands: dst = src * (dst or immediate). */
#define IMUL_FORMS(bits, type, stype, swide)					\
static inline type imul2_##type(struct soft_cpu *c, type a, type b)		\
{										\
	swide p = (swide)(stype)a * (stype)b;					\
										\
	soft_mul_flags(c, p != (stype)p);					\
	return (type)p;								\
}										\
static int op_imul2_r_##type(struct soft_cpu *c, const struct soft_op *op)	\
{										\
	set##bits(c, op->dst, imul2_##type(c, get##bits(c, op->src),		\
					   op->aux ? (type)op->imm : get##bits(c, op->dst))); \
	SOFT_NEXT(c, op);							\
}										\
SOFT_OP_MEM(op_imul2_m_##type)							\
{										\
	type b;									\
	MEM_EA(c, op, ea)							\
	MEM_LOAD(c, op, b, ea, type);						\
	set##bits(c, op->dst, imul2_##type(c, b, op->aux ? (type)op->imm : get##bits(c, op->dst))); \
	SOFT_NEXT(c, op);							\
}
IMUL_FORMS(16, u16, s16, s32)
IMUL_FORMS(32, u32, s32, s64)
IMUL_FORMS(64, u64, s64, s128)

#define ROW(name, form)	{ op_##name##_##form##_u8, op_##name##_##form##_u16, op_##name##_##form##_u32, op_##name##_##form##_u64 }
static const soft_fn one_fn[][2][4] = {
	{ ROW(mul, r), ROW(mul, m) }, { ROW(imul, r), ROW(imul, m) },
	{ ROW(div, r), ROW(div, m) }, { ROW(idiv, r), ROW(idiv, m) },
};

static bool soft_decode_one(struct soft_decode *d, struct soft_op *op, u32 which)
{
	bool mem = soft_is_mem(d, 0);

	if (mem) {
		soft_decode_mem(d, op, 0);
		d->accesses = 1;
	} else {
		op->dst = soft_decode_reg(d->arg[0].reg.value);
	}
	op->fn = one_fn[which][mem][soft_size_index(d->arg[0].size)];
	return true;
}

static bool soft_decode_imul(struct soft_decode *d, struct soft_op *op)
{
	static const soft_fn reg[4] = { NULL, op_imul2_r_u16, op_imul2_r_u32, op_imul2_r_u64 };
	static const soft_fn mem[4] = { NULL, op_imul2_m_u16, op_imul2_m_u32, op_imul2_m_u64 };
	u32 size;

	if (d->insn->operand_count_visible == 1)
		return soft_decode_one(d, op, 1);
	size = soft_size_index(d->arg[0].size);
	op->dst = soft_decode_reg(d->arg[0].reg.value);
	if (soft_is_imm(d, 2)) {
		op->aux = 1;
		op->imm = (u64)d->arg[2].imm.value.s;
	}
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

bool soft_decode_mul(struct soft_decode *d, struct soft_op *op)
{
	switch (d->insn->mnemonic) {
	case ZYDIS_MNEMONIC_MUL:
		return soft_decode_one(d, op, 0);
	case ZYDIS_MNEMONIC_IMUL:
		return soft_decode_imul(d, op);
	case ZYDIS_MNEMONIC_DIV:
		return soft_decode_one(d, op, 2);
	case ZYDIS_MNEMONIC_IDIV:
		return soft_decode_one(d, op, 3);
	default:
		return false;
	}
}
