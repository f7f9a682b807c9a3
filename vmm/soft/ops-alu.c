// SPDX-License-Identifier: GPL-2.0-only
/*
 * ADD OR ADC SBB AND SUB XOR CMP TEST, INC DEC NEG NOT: the host's own
 * instruction does the work, and LAHF and SETO take its flags, so results and flags
 * are what the manual says by construction.
 */
#include "soft/ops.h"

/* name(c, a, b): a OP b, flags into c. */
#define ALU_BINARY(name, insn, type)						\
static inline type name##_##type(struct soft_cpu *c, type a, type b)		\
{										\
	u16 fl;									\
	asm(insn " %2, %0\n\tlahf\n\tseto %%al" : "+&r"(a), "=&a"(fl) : "r"(b) : "cc");	\
	c->af = fl;								\
	return a;								\
}
/* The same with the carry coming in: bit 8 of c->af is CF. */
#define ALU_CARRY(name, insn, type)						\
static inline type name##_##type(struct soft_cpu *c, type a, type b)		\
{										\
	u16 fl = c->af;								\
	asm("btw $8, %w1\n\t" insn " %2, %0\n\tlahf\n\tseto %%al" : "+&r"(a), "+&a"(fl) : "r"(b) : "cc"); \
	c->af = fl;								\
	return a;								\
}
#define ALU_UNARY(name, insn, type)						\
static inline type name##_##type(struct soft_cpu *c, type a)			\
{										\
	u16 fl = c->af;								\
	asm("btw $8, %w1\n\t" insn " %0\n\tlahf\n\tseto %%al" : "+&r"(a), "+&a"(fl) : : "cc"); \
	c->af = fl;								\
	return a;								\
}
#define ALU_SIZES(kind, name, insn)						\
	kind(name, insn, u8) kind(name, insn, u16) kind(name, insn, u32) kind(name, insn, u64)

ALU_SIZES(ALU_BINARY, add, "add")
ALU_SIZES(ALU_BINARY, or, "or")
ALU_SIZES(ALU_CARRY, adc, "adc")
ALU_SIZES(ALU_CARRY, sbb, "sbb")
ALU_SIZES(ALU_BINARY, and, "and")
ALU_SIZES(ALU_BINARY, sub, "sub")
ALU_SIZES(ALU_BINARY, xor, "xor")
ALU_SIZES(ALU_BINARY, cmp, "cmp")
ALU_SIZES(ALU_BINARY, test, "test")
ALU_SIZES(ALU_UNARY, inc, "inc")
ALU_SIZES(ALU_UNARY, dec, "dec")
ALU_SIZES(ALU_UNARY, neg, "neg")

/* Operand forms: register/memory and register/immediate. */
enum alu_form { RR, RI, RM, MR, MI, NR_FORMS };

#define ALU_FORMS(name, bits, type)						\
static int op_##name##_rr_##type(struct soft_cpu *c, const struct soft_op *op)	\
{										\
	set##bits(c, op->dst, name##_##type(c, get##bits(c, op->dst), get##bits(c, op->src))); \
	SOFT_NEXT(c, op);							\
}										\
static int op_##name##_ri_##type(struct soft_cpu *c, const struct soft_op *op)	\
{										\
	set##bits(c, op->dst, name##_##type(c, get##bits(c, op->dst), (type)op->imm)); \
	SOFT_NEXT(c, op);							\
}										\
SOFT_OP_MEM(op_##name##_rm_##type)\
{										\
	type b;									\
	MEM_EA(c, op, ea)							\
	MEM_LOAD(c, op, b, ea, type);						\
	set##bits(c, op->dst, name##_##type(c, get##bits(c, op->dst), b));	\
	SOFT_NEXT(c, op);							\
}										\
SOFT_OP_MEM(op_##name##_mr_##type)\
{										\
	MEM_RMW(c, op, type, o, n, n = name##_##type(c, o, get##bits(c, op->src))); \
	SOFT_NEXT(c, op);							\
}										\
SOFT_OP_MEM(op_##name##_mi_##type)\
{										\
	MEM_RMW(c, op, type, o, n, n = name##_##type(c, o, (type)op->imm));	\
	SOFT_NEXT(c, op);							\
}

/* CMP and TEST change no operand. */
#define ALU_COMPARE_FORMS(name, bits, type)					\
static int op_##name##_rr_##type(struct soft_cpu *c, const struct soft_op *op)	\
{										\
	name##_##type(c, get##bits(c, op->dst), get##bits(c, op->src));		\
	SOFT_NEXT(c, op);							\
}										\
static int op_##name##_ri_##type(struct soft_cpu *c, const struct soft_op *op)	\
{										\
	name##_##type(c, get##bits(c, op->dst), (type)op->imm);			\
	SOFT_NEXT(c, op);							\
}										\
SOFT_OP_MEM(op_##name##_rm_##type)\
{										\
	type b;									\
	MEM_EA(c, op, ea)							\
	MEM_LOAD(c, op, b, ea, type);						\
	name##_##type(c, get##bits(c, op->dst), b);				\
	SOFT_NEXT(c, op);							\
}										\
SOFT_OP_MEM(op_##name##_mr_##type)\
{										\
	type a;									\
	MEM_EA(c, op, ea)							\
	MEM_LOAD(c, op, a, ea, type);						\
	name##_##type(c, a, get##bits(c, op->src));				\
	SOFT_NEXT(c, op);							\
}										\
SOFT_OP_MEM(op_##name##_mi_##type)\
{										\
	type a;									\
	MEM_EA(c, op, ea)							\
	MEM_LOAD(c, op, a, ea, type);						\
	name##_##type(c, a, (type)op->imm);					\
	SOFT_NEXT(c, op);							\
}

#define ALU_UNARY_FORMS(name, bits, type)					\
static int op_##name##_r_##type(struct soft_cpu *c, const struct soft_op *op)	\
{										\
	set##bits(c, op->dst, name##_##type(c, get##bits(c, op->dst)));		\
	SOFT_NEXT(c, op);							\
}										\
SOFT_OP_MEM(op_##name##_m_##type)\
{										\
	MEM_RMW(c, op, type, o, n, n = name##_##type(c, o));			\
	SOFT_NEXT(c, op);							\
}

#define ALU_ALL(forms, name)							\
	forms(name, 8, u8) forms(name, 16, u16) forms(name, 32, u32) forms(name, 64, u64)

static inline u8 not_u8(struct soft_cpu *c, u8 a) { return (u8)~a; }
static inline u16 not_u16(struct soft_cpu *c, u16 a) { return (u16)~a; }
static inline u32 not_u32(struct soft_cpu *c, u32 a) { return ~a; }
static inline u64 not_u64(struct soft_cpu *c, u64 a) { return ~a; }

ALU_ALL(ALU_FORMS, add)
ALU_ALL(ALU_FORMS, or)
ALU_ALL(ALU_FORMS, adc)
ALU_ALL(ALU_FORMS, sbb)
ALU_ALL(ALU_FORMS, and)
ALU_ALL(ALU_FORMS, sub)
ALU_ALL(ALU_FORMS, xor)
ALU_ALL(ALU_COMPARE_FORMS, cmp)
ALU_ALL(ALU_COMPARE_FORMS, test)
ALU_ALL(ALU_UNARY_FORMS, inc)
ALU_ALL(ALU_UNARY_FORMS, dec)
ALU_ALL(ALU_UNARY_FORMS, neg)
ALU_ALL(ALU_UNARY_FORMS, not)

#define ROW(name, form)	{ op_##name##_##form##_u8, op_##name##_##form##_u16, op_##name##_##form##_u32, op_##name##_##form##_u64 }
#define TABLE(name)	{ ROW(name, rr), ROW(name, ri), ROW(name, rm), ROW(name, mr), ROW(name, mi) }

/* [form][size] */
static const soft_fn binary_fn[][NR_FORMS][4] = {
	TABLE(add), TABLE(or), TABLE(adc), TABLE(sbb), TABLE(and), TABLE(sub), TABLE(xor), TABLE(cmp), TABLE(test),
};
static const soft_fn unary_fn[][2][4] = {
	{ ROW(inc, r), ROW(inc, m) }, { ROW(dec, r), ROW(dec, m) }, { ROW(neg, r), ROW(neg, m) },
	{ ROW(not, r), ROW(not, m) },
};

static bool soft_decode_binary(struct soft_decode *d, struct soft_op *op, u32 which)
{
	u32 size = soft_size_index(d->insn->operand_width);
	bool compare = which >= 7;
	enum alu_form form;

	if (soft_is_reg(d, 0)) {
		op->dst = soft_decode_reg(d->arg[0].reg.value);
		if (soft_is_reg(d, 1)) {
			op->src = soft_decode_reg(d->arg[1].reg.value);
			form = RR;
		} else if (soft_is_imm(d, 1)) {
			op->imm = (u64)d->arg[1].imm.value.s;
			form = RI;
		} else {
			soft_decode_mem(d, op, 1);
			d->accesses = 1;
			form = RM;
		}
	} else {
		soft_decode_mem(d, op, 0);
		d->accesses = compare ? 1 : 2;
		if (soft_is_reg(d, 1)) {
			op->src = soft_decode_reg(d->arg[1].reg.value);
			form = MR;
		} else {
			op->imm = (u64)d->arg[1].imm.value.s;
			form = MI;
		}
	}
	op->fn = binary_fn[which][form][size];
	return true;
}

bool soft_alu_compare(soft_fn fn, u32 *test, u32 *form, u32 *size)
{
	for (*test = 0; *test < 2; ++*test)
		for (*form = 0; *form < 2; ++*form)
			for (*size = 0; *size < 4; ++*size)
				if (binary_fn[7 + *test][*form][*size] == fn)
					return true;
	return false;
}

static bool soft_decode_unary(struct soft_decode *d, struct soft_op *op, u32 which)
{
	bool mem = soft_is_mem(d, 0);

	if (mem) {
		soft_decode_mem(d, op, 0);
		d->accesses = 2;
	} else {
		op->dst = soft_decode_reg(d->arg[0].reg.value);
	}
	op->fn = unary_fn[which][mem][soft_size_index(d->insn->operand_width)];
	return true;
}

bool soft_decode_alu(struct soft_decode *d, struct soft_op *op)
{
	switch (d->insn->mnemonic) {
	case ZYDIS_MNEMONIC_ADD:
		return soft_decode_binary(d, op, 0);
	case ZYDIS_MNEMONIC_OR:
		return soft_decode_binary(d, op, 1);
	case ZYDIS_MNEMONIC_ADC:
		return soft_decode_binary(d, op, 2);
	case ZYDIS_MNEMONIC_SBB:
		return soft_decode_binary(d, op, 3);
	case ZYDIS_MNEMONIC_AND:
		return soft_decode_binary(d, op, 4);
	case ZYDIS_MNEMONIC_SUB:
		return soft_decode_binary(d, op, 5);
	case ZYDIS_MNEMONIC_XOR:
		return soft_decode_binary(d, op, 6);
	case ZYDIS_MNEMONIC_CMP:
		return soft_decode_binary(d, op, 7);
	case ZYDIS_MNEMONIC_TEST:
		return soft_decode_binary(d, op, 8);
	case ZYDIS_MNEMONIC_INC:
		return soft_decode_unary(d, op, 0);
	case ZYDIS_MNEMONIC_DEC:
		return soft_decode_unary(d, op, 1);
	case ZYDIS_MNEMONIC_NEG:
		return soft_decode_unary(d, op, 2);
	case ZYDIS_MNEMONIC_NOT:
		return soft_decode_unary(d, op, 3);
	default:
		return false;
	}
}
