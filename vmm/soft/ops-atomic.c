// SPDX-License-Identifier: GPL-2.0-only
/*
 * XCHG, XADD, CMPXCHG, CMPXCHG8B, CMPXCHG16B. One host thread steps all vCPUs, and never
 * leaves one in the middle of an instruction, so every access is atomic.
 */
#include "soft/ops.h"

/* name(c, a, b) sets the flags that `insn` sets. */
#define FLAGS_OF(name, insn, type)						\
static inline void name##_flags_##type(struct soft_cpu *c, type a, type b)	\
{										\
	u16 fl;									\
	asm(insn " %2, %1\n\tlahf\n\tseto %%al" : "=&a"(fl), "+&r"(a) : "r"(b) : "cc");	\
	c->af = fl;								\
}

#define ATOMIC_FORMS(bits, type)						\
FLAGS_OF(add, "add", type)							\
FLAGS_OF(cmp, "cmp", type)							\
static int op_xchg_r_##type(struct soft_cpu *c, const struct soft_op *op)	\
{										\
	type a = get##bits(c, op->dst), b = get##bits(c, op->src);		\
										\
	set##bits(c, op->dst, b);						\
	set##bits(c, op->src, a);						\
	SOFT_NEXT(c, op);							\
}										\
SOFT_OP_MEM(op_xchg_m_##type)							\
{										\
	MEM_RMW(c, op, type, o, n, n = get##bits(c, op->src));			\
	set##bits(c, op->src, o);						\
	SOFT_NEXT(c, op);							\
}										\
static int op_xadd_r_##type(struct soft_cpu *c, const struct soft_op *op)	\
{										\
	type a = get##bits(c, op->dst), b = get##bits(c, op->src);		\
										\
	add_flags_##type(c, a, b);						\
	set##bits(c, op->src, a);						\
	set##bits(c, op->dst, (type)(a + b));					\
	SOFT_NEXT(c, op);							\
}										\
SOFT_OP_MEM(op_xadd_m_##type)							\
{										\
	type b = get##bits(c, op->src);						\
										\
	MEM_RMW(c, op, type, o, n, n = (type)(o + b));				\
	add_flags_##type(c, o, b);						\
	set##bits(c, op->src, o);						\
	SOFT_NEXT(c, op);							\
}										\
static int op_cmpxchg_r_##type(struct soft_cpu *c, const struct soft_op *op)	\
{										\
	type acc = get##bits(c, 0), o = get##bits(c, op->dst);			\
										\
	cmp_flags_##type(c, acc, o);						\
	if (acc == o)								\
		set##bits(c, op->dst, get##bits(c, op->src));			\
	else									\
		set##bits(c, 0, o);						\
	SOFT_NEXT(c, op);							\
}										\
/* Writes in any case: the old value where the comparison failed (SDM 2A CMPXCHG). */ \
SOFT_OP_MEM(op_cmpxchg_m_##type)						\
{										\
	type acc = get##bits(c, 0);						\
										\
	MEM_RMW(c, op, type, o, n, n = acc == o ? get##bits(c, op->src) : o);	\
	cmp_flags_##type(c, acc, o);						\
	if (acc != o)								\
		set##bits(c, 0, o);						\
	SOFT_NEXT(c, op);							\
}
ATOMIC_FORMS(8, u8)
ATOMIC_FORMS(16, u16)
ATOMIC_FORMS(32, u32)
ATOMIC_FORMS(64, u64)

/* CMPXCHG8B and 16B: EDX:EAX or RDX:RAX with memory, ECX:EBX or RCX:RBX into it. Only ZF changes. */
static int op_cmpxchg8b(struct soft_cpu *c, const struct soft_op *op)
{
	u64 ea = soft_ea(c, op), old;
	u64 acc = (u64)get32(c, X86_RDX) << 32 | get32(c, X86_RAX);
	u64 new = (u64)get32(c, X86_RCX) << 32 | get32(c, X86_RBX);

	if (soft_check_write(c, op, ea, 8) || soft_load_slow(c, op, ea, 8))
		return soft_faulted(c, op);
	old = c->val[0];
	c->val[0] = old == acc ? new : old;
	if (soft_store_slow(c, op, ea, c->val, 8))
		return soft_faulted(c, op);
	if (old == acc) {
		c->lo |= LO_ZF;
	} else {
		c->lo &= (u8)~LO_ZF;
		set32(c, X86_RAX, (u32)old);
		set32(c, X86_RDX, (u32)(old >> 32));
	}
	SOFT_NEXT(c, op);
}

static int op_cmpxchg16b(struct soft_cpu *c, const struct soft_op *op)
{
	u64 ea = soft_ea(c, op), lo, hi;
	bool equal;

	if (ea & 15)
		return soft_raise_error(c, op, VEC_GP, 0);
	if (soft_check_write(c, op, ea, 16) || soft_load_slow(c, op, ea, 16))
		return soft_faulted(c, op);
	lo = c->val[0];
	hi = c->val[1];
	equal = lo == c->gpr[X86_RAX] && hi == c->gpr[X86_RDX];
	if (equal) {
		c->val[0] = c->gpr[X86_RBX];
		c->val[1] = c->gpr[X86_RCX];
	}
	if (soft_store_slow(c, op, ea, c->val, 16))
		return soft_faulted(c, op);
	if (equal) {
		c->lo |= LO_ZF;
	} else {
		c->lo &= (u8)~LO_ZF;
		c->gpr[X86_RAX] = lo;
		c->gpr[X86_RDX] = hi;
	}
	SOFT_NEXT(c, op);
}

#define ROW(name, form)	{ op_##name##_##form##_u8, op_##name##_##form##_u16, op_##name##_##form##_u32, op_##name##_##form##_u64 }

bool soft_decode_atomic(struct soft_decode *d, struct soft_op *op)
{
	static const soft_fn fn[][2][4] = {
		{ ROW(xchg, r), ROW(xchg, m) }, { ROW(xadd, r), ROW(xadd, m) }, { ROW(cmpxchg, r), ROW(cmpxchg, m) },
	};
	u32 which, mem;

	switch (d->insn->mnemonic) {
	case ZYDIS_MNEMONIC_PAUSE:
		/* F3 90 with REX.B is XCHG with R8, as 90 is. */
		if (!d->insn->raw.rex.B)
			return false;
		op->dst = X86_R8;
		op->src = X86_RAX;
		op->fn = d->insn->raw.rex.W ? fn[0][0][3] :
			 d->insn->attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE ? fn[0][0][1] : fn[0][0][2];
		return true;
	case ZYDIS_MNEMONIC_XCHG:
		which = 0;
		break;
	case ZYDIS_MNEMONIC_XADD:
		which = 1;
		break;
	case ZYDIS_MNEMONIC_CMPXCHG:
		which = 2;
		break;
	case ZYDIS_MNEMONIC_CMPXCHG8B:
	case ZYDIS_MNEMONIC_CMPXCHG16B:
		soft_decode_mem(d, op, 0);
		d->accesses = 2;
		op->fn = d->insn->mnemonic == ZYDIS_MNEMONIC_CMPXCHG8B ? op_cmpxchg8b : op_cmpxchg16b;
		return true;
	default:
		return false;
	}
	/* XCHG may name its memory operand second. */
	mem = soft_is_mem(d, 0) ? 0 : soft_is_mem(d, 1) ? 1 : 2;
	if (mem < 2) {
		soft_decode_mem(d, op, mem);
		op->src = soft_decode_reg(d->arg[1 - mem].reg.value);
		d->accesses = 2;
	} else {
		op->dst = soft_decode_reg(d->arg[0].reg.value);
		op->src = soft_decode_reg(d->arg[1].reg.value);
	}
	op->fn = fn[which][mem < 2][soft_size_index(d->arg[0].size)];
	return true;
}
