// SPDX-License-Identifier: GPL-2.0-only
/*
 * PUSH, POP, PUSHA, POPA, ENTER, LEAVE (of segment registers and flags: ops-system.c). In
 * 64-bit mode the stack is flat and has fast forms; else SS and its size count.
 */
#include "soft/ops.h"

static u32 soft_stack_bits(const struct soft_cpu *c)
{
	if (c->mode == MODE_64)
		return 64;
	return c->seg[SEG_SS].attr & BIT(14) ? 32 : 16;
}

u64 soft_stack_va(const struct soft_cpu *c, s64 off)
{
	u64 sp = c->gpr[X86_RSP] + (u64)off;

	switch (soft_stack_bits(c)) {
	case 64:
		return sp;
	case 32:
		return (u32)(c->seg[SEG_SS].base + (u32)sp);
	default:
		return (u32)(c->seg[SEG_SS].base + (u16)sp);
	}
}

void soft_stack_move(struct soft_cpu *c, s64 by)
{
	switch (soft_stack_bits(c)) {
	case 64:
		c->gpr[X86_RSP] += (u64)by;
		break;
	case 32:
		set32(c, X86_RSP, (u32)(get32(c, X86_RSP) + (u64)by));
		break;
	default:
		set16(c, X86_RSP, (u16)(get16(c, X86_RSP) + (u64)by));
		break;
	}
}

int soft_push(struct soft_cpu *c, const struct soft_op *op, u64 value, u32 size)
{
	u64 copy[1] = { value };

	if (soft_store_slow(c, op, soft_stack_va(c, -(s64)size), copy, size))
		return SOFT_FAULT;
	soft_stack_move(c, -(s64)size);
	return SOFT_OK;
}

int soft_pop(struct soft_cpu *c, const struct soft_op *op, u32 size)
{
	if (soft_load_slow(c, op, soft_stack_va(c, 0), size))
		return SOFT_FAULT;
	soft_stack_move(c, size);
	return SOFT_OK;
}

/* --- 64-bit operands in 64-bit mode --- */

SOFT_OP_MEM(op_push_r)
{
	u64 sp = c->gpr[X86_RSP] - 8;

	MEM_STORE(c, op, sp, c->gpr[op->src], u64);
	c->gpr[X86_RSP] = sp;
	SOFT_NEXT(c, op);
}
SOFT_OP_MEM(op_push_i)
{
	u64 sp = c->gpr[X86_RSP] - 8;

	MEM_STORE(c, op, sp, op->imm, u64);
	c->gpr[X86_RSP] = sp;
	SOFT_NEXT(c, op);
}
SOFT_OP_MEM(op_push_m)
{
	u64 sp = c->gpr[X86_RSP] - 8, v;

	MEM_EA(c, op, ea)
	MEM_LOAD(c, op, v, ea, u64);
	MEM_STORE(c, op, sp, v, u64);
	c->gpr[X86_RSP] = sp;
	SOFT_NEXT(c, op);
}
SOFT_OP_MEM(op_pop_r)
{
	u64 v;

	MEM_LOAD(c, op, v, c->gpr[X86_RSP], u64);
	c->gpr[X86_RSP] += 8;
	c->gpr[op->dst] = v;		/* last: POP RSP keeps what was popped */
	SOFT_NEXT(c, op);
}
SOFT_OP_MEM(op_leave)
{
	u64 v;

	MEM_LOAD(c, op, v, c->gpr[X86_RBP], u64);
	c->gpr[X86_RSP] = c->gpr[X86_RBP] + 8;
	c->gpr[X86_RBP] = v;
	SOFT_NEXT(c, op);
}

/* --- any size, any mode --- */

static u64 soft_get_sized(const struct soft_cpu *c, u32 r, u32 size)
{
	return size == 2 ? get16(c, r) : size == 4 ? get32(c, r) : get64(c, r);
}

static void soft_set_sized(struct soft_cpu *c, u32 r, u64 v, u32 size)
{
	if (size == 2)
		set16(c, r, (u16)v);
	else if (size == 4)
		set32(c, r, (u32)v);
	else
		set64(c, r, v);
}

enum { FROM_REG, FROM_IMM, FROM_MEM };

static int op_push_any(struct soft_cpu *c, const struct soft_op *op)
{
	u64 v = op->imm;

	if (op->aux == FROM_REG) {
		v = soft_get_sized(c, op->src, op->size);
	} else if (op->aux == FROM_MEM) {
		if (soft_load_slow(c, op, soft_ea(c, op), op->size))
			return soft_faulted(c, op);
		v = c->val[0];
	}
	if (soft_push(c, op, v, op->size))
		return soft_faulted(c, op);
	SOFT_NEXT(c, op);
}

static int op_pop_any_r(struct soft_cpu *c, const struct soft_op *op)
{
	if (soft_pop(c, op, op->size))
		return soft_faulted(c, op);
	soft_set_sized(c, op->dst, c->val[0], op->size);
	SOFT_NEXT(c, op);
}

/* The operand's address is made with SP as it is after the pop (SDM 2B POP). */
static int op_pop_any_m(struct soft_cpu *c, const struct soft_op *op)
{
	u64 sp = c->gpr[X86_RSP];

	if (soft_pop(c, op, op->size) || soft_store_slow(c, op, soft_ea(c, op), c->val, op->size)) {
		c->gpr[X86_RSP] = sp;
		return soft_faulted(c, op);
	}
	SOFT_NEXT(c, op);
}

static int op_leave_any(struct soft_cpu *c, const struct soft_op *op)
{
	u64 sp = c->gpr[X86_RSP];

	soft_set_sized(c, X86_RSP, c->gpr[X86_RBP], soft_stack_bits(c) / 8);
	if (soft_pop(c, op, op->size)) {
		c->gpr[X86_RSP] = sp;
		return soft_faulted(c, op);
	}
	soft_set_sized(c, X86_RBP, c->val[0], op->size);
	SOFT_NEXT(c, op);
}

/* ENTER imm16, level (SDM 2A): imm = bytes, aux = level. */
static int op_enter(struct soft_cpu *c, const struct soft_op *op)
{
	u64 sp = c->gpr[X86_RSP], frame, bp = c->gpr[X86_RBP];
	u32 size = op->size, level = op->aux & 31, i;

	if (soft_push(c, op, soft_get_sized(c, X86_RBP, size), size))
		goto fault;
	frame = c->gpr[X86_RSP];
	soft_sync(c, op);
	for (i = 1; i < level; i++) {
		u64 keep = c->gpr[X86_RSP];

		/*
		 * The outer frames' pointers, read by way of BP with the stack's own rules. Where they lie in what
		 * has been pushed by now, the instruction cannot be begun anew: no `op`, so no wait for a line.
		 */
		bp -= size;
		c->gpr[X86_RSP] = bp;
		if (soft_load_slow(c, NULL, soft_stack_va(c, 0), size))
			goto fault;
		c->gpr[X86_RSP] = keep;
		if (soft_push(c, op, c->val[0], size))
			goto fault;
	}
	if (level && soft_push(c, op, frame, size))
		goto fault;
	soft_stack_move(c, -(s64)op->imm);
	/* The last byte of the new frame must be writable. */
	if (soft_check_write(c, op, soft_stack_va(c, 0), size))
		goto fault;
	soft_set_sized(c, X86_RBP, frame, size);
	SOFT_NEXT(c, op);
fault:
	c->gpr[X86_RSP] = sp;
	return soft_faulted(c, op);
}

static int op_pusha(struct soft_cpu *c, const struct soft_op *op)
{
	u64 sp = c->gpr[X86_RSP];
	u32 i;

	for (i = X86_RAX; i <= X86_RDI; i++)
		if (soft_push(c, op, i == X86_RSP ? sp : c->gpr[i], op->size)) {
			c->gpr[X86_RSP] = sp;
			return soft_faulted(c, op);
		}
	SOFT_NEXT(c, op);
}

static int op_popa(struct soft_cpu *c, const struct soft_op *op)
{
	u64 sp = c->gpr[X86_RSP], v[8] = { 0 };
	int i;

	for (i = X86_RDI; i >= X86_RAX; i--) {
		if (soft_pop(c, op, op->size)) {
			c->gpr[X86_RSP] = sp;
			return soft_faulted(c, op);
		}
		v[i] = c->val[0];
	}
	for (i = X86_RAX; i <= X86_RDI; i++)
		if (i != X86_RSP)
			soft_set_sized(c, (u32)i, v[i], op->size);
	SOFT_NEXT(c, op);
}

static bool soft_general(const struct soft_decode *d, u32 i)
{
	ZydisRegisterClass class = ZydisRegisterGetClass(d->arg[i].reg.value);

	return class >= ZYDIS_REGCLASS_GPR8 && class <= ZYDIS_REGCLASS_GPR64;
}

bool soft_decode_stack(struct soft_decode *d, struct soft_op *op)
{
	bool fast = d->mode == MODE_64 && d->insn->operand_width == 64;

	op->size = d->insn->operand_width / 8;
	switch (d->insn->mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
		d->accesses = 1;
		if (soft_is_imm(d, 0)) {
			op->imm = (u64)d->arg[0].imm.value.s;
			op->aux = FROM_IMM;
			op->fn = fast ? op_push_i : op_push_any;
		} else if (soft_is_mem(d, 0)) {
			d->accesses = 2;
			soft_decode_mem(d, op, 0);
			op->aux = FROM_MEM;
			op->fn = fast ? op_push_m : op_push_any;
		} else if (soft_general(d, 0)) {
			op->src = soft_decode_reg(d->arg[0].reg.value);
			op->aux = FROM_REG;
			op->fn = fast ? op_push_r : op_push_any;
		} else {
			return false;
		}
		return true;
	case ZYDIS_MNEMONIC_POP:
		d->accesses = 1;
		if (soft_is_mem(d, 0)) {
			d->accesses = 2;
			soft_decode_mem(d, op, 0);
			op->fn = op_pop_any_m;
		} else if (soft_general(d, 0)) {
			op->dst = soft_decode_reg(d->arg[0].reg.value);
			op->fn = fast ? op_pop_r : op_pop_any_r;
		} else {
			return false;
		}
		return true;
	case ZYDIS_MNEMONIC_LEAVE:
		d->accesses = 1;
		op->fn = fast ? op_leave : op_leave_any;
		op->base = X86_RBP;	/* for the choice between #GP and #SS */
		return true;
	case ZYDIS_MNEMONIC_ENTER:
		d->accesses = 1;
		op->imm = d->arg[0].imm.value.u & 0xffff;
		op->aux = (u8)d->arg[1].imm.value.u;
		op->fn = op_enter;
		return true;
	case ZYDIS_MNEMONIC_PUSHA:
	case ZYDIS_MNEMONIC_PUSHAD:
		d->accesses = 8;
		op->fn = op_pusha;
		return true;
	case ZYDIS_MNEMONIC_POPA:
	case ZYDIS_MNEMONIC_POPAD:
		d->accesses = 8;
		op->fn = op_popa;
		return true;
	default:
		return false;
	}
}
