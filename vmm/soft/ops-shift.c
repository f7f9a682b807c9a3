// SPDX-License-Identifier: GPL-2.0-only
/*
 * Shifts and rotates. A count of 0 changes nothing, flags included. Otherwise the
 * host's own instruction is given the guest's flags and its flags are taken; what is
 * undefined (OF for counts above 1, AF) is made a function of the guest alone.
 */
#include "soft/ops.h"

#define SHIFT(name, insn, type, mask)						\
static inline type name##_##type(struct soft_cpu *c, type a, u8 count)		\
{										\
	u16 fl = c->af;								\
										\
	count &= (mask);							\
	if (count) {								\
		asm("sahf\n\t" insn " %%cl, %0\n\tlahf\n\tseto %%al"		\
		    : "+&r"(a), "+&a"(fl) : "c"(count) : "cc");			\
		if (count > 1)							\
			fl &= 0xff00;						\
		c->af = fl;							\
	}									\
	return a;								\
}
#define SHIFT_SIZES(name, insn)							\
	SHIFT(name, insn, u8, 31) SHIFT(name, insn, u16, 31) SHIFT(name, insn, u32, 31) SHIFT(name, insn, u64, 63)

SHIFT_SIZES(rol, "rol")
SHIFT_SIZES(ror, "ror")
SHIFT_SIZES(rcl, "rcl")
SHIFT_SIZES(rcr, "rcr")
SHIFT_SIZES(shl, "shl")
SHIFT_SIZES(shr, "shr")
SHIFT_SIZES(sar, "sar")

/* Forms: register or memory, by an immediate or by CL. */
#define SHIFT_FORMS(name, bits, type)						\
static int op_##name##_ri_##type(struct soft_cpu *c, const struct soft_op *op)	\
{										\
	set##bits(c, op->dst, name##_##type(c, get##bits(c, op->dst), (u8)op->imm)); \
	SOFT_NEXT(c, op);							\
}										\
static int op_##name##_rc_##type(struct soft_cpu *c, const struct soft_op *op)	\
{										\
	set##bits(c, op->dst, name##_##type(c, get##bits(c, op->dst), get8(c, 8)));	\
	SOFT_NEXT(c, op);							\
}										\
SOFT_OP_MEM(op_##name##_mi_##type)						\
{										\
	MEM_RMW(c, op, type, o, n, n = name##_##type(c, o, (u8)op->imm));	\
	SOFT_NEXT(c, op);							\
}										\
SOFT_OP_MEM(op_##name##_mc_##type)						\
{										\
	MEM_RMW(c, op, type, o, n, n = name##_##type(c, o, get8(c, 8)));	\
	SOFT_NEXT(c, op);							\
}
#define SHIFT_ALL(name)								\
	SHIFT_FORMS(name, 8, u8) SHIFT_FORMS(name, 16, u16) SHIFT_FORMS(name, 32, u32) SHIFT_FORMS(name, 64, u64)

SHIFT_ALL(rol)
SHIFT_ALL(ror)
SHIFT_ALL(rcl)
SHIFT_ALL(rcr)
SHIFT_ALL(shl)
SHIFT_ALL(shr)
SHIFT_ALL(sar)

#define ROW(name, form)	{ op_##name##_##form##_u8, op_##name##_##form##_u16, op_##name##_##form##_u32, op_##name##_##form##_u64 }
#define TABLE(name)	{ { ROW(name, ri), ROW(name, rc) }, { ROW(name, mi), ROW(name, mc) } }

/* [memory][by CL][size] */
static const soft_fn shift_fn[][2][2][4] = {
	TABLE(rol), TABLE(ror), TABLE(rcl), TABLE(rcr), TABLE(shl), TABLE(shr), TABLE(sar),
};

/*
 * SHLD, SHRD. A 16-bit count above 16 is undefined: bits of dst:src:dst come in, as
 * processors do it.
 */
#define SHD(bits, type)								\
static inline type shld_##type(struct soft_cpu *c, type a, type b, u8 count)	\
{										\
	u16 fl = c->af;								\
										\
	asm("shld %%cl, %2, %0\n\tlahf\n\tseto %%al" : "+&r"(a), "+&a"(fl) : "r"(b), "c"(count) : "cc"); \
	c->af = count > 1 ? fl & 0xff00 : fl;					\
	return a;								\
}										\
static inline type shrd_##type(struct soft_cpu *c, type a, type b, u8 count)	\
{										\
	u16 fl = c->af;								\
										\
	asm("shrd %%cl, %2, %0\n\tlahf\n\tseto %%al" : "+&r"(a), "+&a"(fl) : "r"(b), "c"(count) : "cc"); \
	c->af = count > 1 ? fl & 0xff00 : fl;					\
	return a;								\
}										\
static int op_shd_##type(struct soft_cpu *c, const struct soft_op *op)		\
{										\
	u8 count = op->aux & 2 ? get8(c, 8) : (u8)op->imm;			\
	type a = get##bits(c, op->dst), b = get##bits(c, op->src);		\
										\
	count &= bits == 64 ? 63 : 31;						\
	if (count)								\
		a = op->aux & 1 ? shrd_##type(c, a, b, count) : shld_##type(c, a, b, count); \
	set##bits(c, op->dst, a);						\
	SOFT_NEXT(c, op);							\
}										\
SOFT_OP_MEM(op_shd_m_##type)							\
{										\
	u8 count = op->aux & 2 ? get8(c, 8) : (u8)op->imm;			\
	type b = get##bits(c, op->src);						\
										\
	count &= bits == 64 ? 63 : 31;						\
	MEM_RMW(c, op, type, o, n, n = !count ? o : op->aux & 1 ? shrd_##type(c, o, b, count) : \
		shld_##type(c, o, b, count));					\
	SOFT_NEXT(c, op);							\
}
SHD(16, u16)
SHD(32, u32)
SHD(64, u64)

static bool soft_decode_double(struct soft_decode *d, struct soft_op *op, bool right)
{
	static const soft_fn reg[4] = { NULL, op_shd_u16, op_shd_u32, op_shd_u64 };
	static const soft_fn mem[4] = { NULL, op_shd_m_u16, op_shd_m_u32, op_shd_m_u64 };
	u32 size = soft_size_index(d->arg[1].size);

	op->src = soft_decode_reg(d->arg[1].reg.value);
	op->aux = right;
	if (soft_is_imm(d, 2))
		op->imm = d->arg[2].imm.value.u;
	else
		op->aux |= 2;
	if (soft_is_mem(d, 0)) {
		soft_decode_mem(d, op, 0);
		d->accesses = 2;
		op->fn = mem[size];
	} else {
		op->dst = soft_decode_reg(d->arg[0].reg.value);
		op->fn = reg[size];
	}
	return true;
}

static bool soft_decode_single(struct soft_decode *d, struct soft_op *op, u32 which)
{
	bool mem = soft_is_mem(d, 0), by_cl = soft_is_reg(d, 1);

	if (mem) {
		soft_decode_mem(d, op, 0);
		d->accesses = 2;
	} else {
		op->dst = soft_decode_reg(d->arg[0].reg.value);
	}
	if (!by_cl)
		op->imm = soft_is_imm(d, 1) ? d->arg[1].imm.value.u : 1;
	op->fn = shift_fn[which][mem][by_cl][soft_size_index(d->arg[0].size)];
	return true;
}

bool soft_decode_shift(struct soft_decode *d, struct soft_op *op)
{
	switch (d->insn->mnemonic) {
	case ZYDIS_MNEMONIC_ROL:
		return soft_decode_single(d, op, 0);
	case ZYDIS_MNEMONIC_ROR:
		return soft_decode_single(d, op, 1);
	case ZYDIS_MNEMONIC_RCL:
		return soft_decode_single(d, op, 2);
	case ZYDIS_MNEMONIC_RCR:
		return soft_decode_single(d, op, 3);
	case ZYDIS_MNEMONIC_SHL:
		return soft_decode_single(d, op, 4);
	case ZYDIS_MNEMONIC_SHR:
		return soft_decode_single(d, op, 5);
	case ZYDIS_MNEMONIC_SAR:
		return soft_decode_single(d, op, 6);
	case ZYDIS_MNEMONIC_SHLD:
		return soft_decode_double(d, op, false);
	case ZYDIS_MNEMONIC_SHRD:
		return soft_decode_double(d, op, true);
	default:
		return false;
	}
}
