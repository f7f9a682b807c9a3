/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the integer instructions' functions share: register access by operand size,
 * read-modify-write of memory, the stack, conditions. And the parts that
 * soft_decode_integer() is made of.
 */
#ifndef SOFT_OPS_H
#define SOFT_OPS_H

#include "soft/block.h"
#include "soft/decode.h"

/* --- registers: 8-bit ones by byte offset, others by number; 32-bit results clear the upper half --- */

static inline u8 get8(const struct soft_cpu *c, u32 r)
{
	return ((const u8 *)c->gpr)[r];
}
static inline void set8(struct soft_cpu *c, u32 r, u8 v)
{
	((u8 *)c->gpr)[r] = v;
}
static inline u16 get16(const struct soft_cpu *c, u32 r)
{
	return (u16)c->gpr[r];
}
static inline void set16(struct soft_cpu *c, u32 r, u16 v)
{
	memcpy(&c->gpr[r], &v, 2);
}
static inline u32 get32(const struct soft_cpu *c, u32 r)
{
	return (u32)c->gpr[r];
}
static inline void set32(struct soft_cpu *c, u32 r, u32 v)
{
	c->gpr[r] = v;
}
static inline u64 get64(const struct soft_cpu *c, u32 r)
{
	return c->gpr[r];
}
static inline void set64(struct soft_cpu *c, u32 r, u64 v)
{
	c->gpr[r] = v;
}

/*
 * Functions that access memory come in two: SOFT_OP_MEM(name) { ... } defines `name`,
 * which has the fast path only and so needs no stack frame, and its cold twin of the
 * same body, to which it goes over where there is no shortcut. In the body `slow`
 * says which of the two it is, a constant. Nothing may have been changed by then.
 */
#define SOFT_OP_MEM(name)							\
static inline __attribute__((always_inline)) int name##_body(struct soft_cpu *c, const struct soft_op *op, \
							     const bool slow, const soft_fn twin); \
static __attribute__((noinline, cold)) int name##_slow(struct soft_cpu *c, const struct soft_op *op) \
{										\
	return name##_body(c, op, true, NULL);					\
}										\
static int name(struct soft_cpu *c, const struct soft_op *op)			\
{										\
	return name##_body(c, op, false, name##_slow);				\
}										\
static inline __attribute__((always_inline)) int name##_body(struct soft_cpu *c, const struct soft_op *op, \
							     const bool slow, const soft_fn twin)

/* `u64 ea` is declared as the linear address of op's memory operand. */
#define MEM_EA(c, op, ea)							\
	u64 ea = (c)->gpr[(op)->base] + ((c)->gpr[(op)->index] << (op)->shift) + (u64)(s64)(op)->disp; \
	if (unlikely((op)->amode)) {						\
		if (slow)							\
			ea = soft_ea_slow((c), (op), ea);			\
		else if ((op)->amode > AMODE_SEG)				\
			return twin((c), (op));					\
		else								\
			ea += (c)->seg[(op)->amode - 1].base;			\
	}

/* var = the `type` at va. */
#define MEM_LOAD(c, op, var, va, type) do {					\
	u64 load_va = (va);							\
	if (slow) {								\
		if (soft_load_slow((c), (op), load_va, sizeof(type)))		\
			return soft_faulted((c), (op));				\
		(var) = (type)(c)->val[0];					\
	} else {								\
		void *load_p = soft_fast_read((c), load_va, sizeof(type));	\
		type load_v;							\
		if (unlikely(!load_p))						\
			return twin((c), (op));					\
		memcpy(&load_v, load_p, sizeof(type));				\
		(var) = load_v;							\
	}									\
} while (0)

/* The `type` at va = value. */
#define MEM_STORE(c, op, va, value, type) do {					\
	u64 store_va = (va);							\
	type store_v = (type)(value);						\
	if (slow) {								\
		(c)->val[0] = store_v;						\
		if (soft_store_slow((c), (op), store_va, (c)->val, sizeof(type))) \
			return soft_faulted((c), (op));				\
	} else {								\
		void *store_p = soft_fast_write((c), store_va, sizeof(type));	\
		if (unlikely(!store_p))						\
			return twin((c), (op));					\
		memcpy(store_p, &store_v, sizeof(type));			\
	}									\
} while (0)

/*
 * calc makes `new` from `old`, two variables of `type` that are declared here: memory at op's operand, as one
 * access. Nothing is changed, flags included, if it cannot be written.
 */
#define MEM_RMW(c, op, type, old, new, calc)					\
	MEM_EA((c), (op), rmw_va)						\
	type old, new;								\
	if (slow) {								\
		if (soft_check_write((c), (op), rmw_va, sizeof(type)) ||	\
		    soft_load_slow((c), (op), rmw_va, sizeof(type)))		\
			return soft_faulted((c), (op));				\
		old = (type)(c)->val[0];					\
		calc;								\
		(c)->val[0] = new;						\
		if (soft_store_slow((c), (op), rmw_va, (c)->val, sizeof(type)))	\
			return soft_faulted((c), (op));				\
	} else {								\
		void *rmw_p = soft_fast_rmw((c), (op), rmw_va, sizeof(type));	\
		if (unlikely(!rmw_p))						\
			return twin((c), (op));					\
		memcpy(&old, rmw_p, sizeof(type));				\
		calc;								\
		memcpy(rmw_p, &new, sizeof(type));				\
	}

/* --- conditions, by the low four bits of Jcc's opcode (SDM 1 appendix B) --- */

static inline bool soft_condition(const struct soft_cpu *c, u32 cc)
{
	u8 lo = c->lo;
	bool yes;

	switch (cc >> 1) {
	case 0:
		yes = c->of;
		break;
	case 1:
		yes = lo & 0x01;
		break;
	case 2:
		yes = lo & 0x40;
		break;
	case 3:
		yes = lo & 0x41;
		break;
	case 4:
		yes = lo & 0x80;
		break;
	case 5:
		yes = lo & 0x04;
		break;
	case 6:
		yes = (lo >> 7) ^ c->of;
		break;
	default:
		yes = (lo & 0x40) || ((lo >> 7) ^ c->of);
		break;
	}
	return yes ^ (cc & 1);
}

/* CF, ZF... one by one. */
#define LO_CF	0x01u
#define LO_PF	0x04u
#define LO_AF	0x10u
#define LO_ZF	0x40u
#define LO_SF	0x80u

/* --- the stack outside of 64-bit mode, or with 16-bit operands: SS:(E)SP by SS.B --- */

/* Push and pop `size` bytes (2, 4, 8). Pop leaves the value in c->val[0]. SOFT_OK or SOFT_FAULT; SP moves only if all went well. */
int soft_push(struct soft_cpu *c, const struct soft_op *op, u64 value, u32 size);
int soft_pop(struct soft_cpu *c, const struct soft_op *op, u32 size);
/* Linear address of SP + off in the current stack, and moving SP. */
u64 soft_stack_va(const struct soft_cpu *c, s64 off);
void soft_stack_move(struct soft_cpu *c, s64 by);

/* --- decoding by file; same rules as soft_decode_integer() --- */

bool soft_decode_alu(struct soft_decode *d, struct soft_op *op);	/* ops-alu.c */
bool soft_decode_shift(struct soft_decode *d, struct soft_op *op);	/* ops-shift.c */
bool soft_decode_mul(struct soft_decode *d, struct soft_op *op);	/* ops-mul.c */
bool soft_decode_mov(struct soft_decode *d, struct soft_op *op);	/* ops-mov.c */
bool soft_decode_bit(struct soft_decode *d, struct soft_op *op);	/* ops-bit.c */
bool soft_decode_atomic(struct soft_decode *d, struct soft_op *op);	/* ops-atomic.c */
bool soft_decode_stack(struct soft_decode *d, struct soft_op *op);	/* ops-stack.c */
bool soft_decode_flow(struct soft_decode *d, struct soft_op *op);	/* ops-flow.c */
bool soft_decode_string(struct soft_decode *d, struct soft_op *op);	/* ops-string.c */
bool soft_decode_decimal(struct soft_decode *d, struct soft_op *op);	/* ops-decimal.c */

/* Is fn a CMP or TEST of a register with a register (form 0) or an immediate (form 1)? Size as an index. ops-alu.c */
bool soft_alu_compare(soft_fn fn, u32 *test, u32 *form, u32 *size);

/* log2 of an operand's size in bytes: index into tables by size. */
static inline u32 soft_size_index(u32 bits)
{
	return (u32)__builtin_ctz(bits / 8);
}

#endif
