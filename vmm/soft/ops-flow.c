// SPDX-License-Identifier: GPL-2.0-only
/*
 * Jcc JMP CALL RET LOOP JRCXZ (far ones: ops-system.c), and the pairs of compare and
 * branch that are executed as one operation. In 64-bit mode blocks lead straight to
 * each other; elsewhere every branch ends the block.
 */
#include "soft/ops.h"

/* A branch's target has to be canonical, or the branch itself faults (SDM 2A Jcc, CALL, RET). */
static inline bool soft_canonical(u64 va)
{
	return (u64)((s64)(va << 16) >> 16) == va;
}

/* --- 64-bit mode --- */

static int op_jmp(struct soft_cpu *c, const struct soft_op *op)
{
	return soft_jump(c, op, op->imm, 0);
}

/* Not taken: on to the next instruction, which the block's last operation knows. */
static inline int soft_not_taken(struct soft_cpu *c, const struct soft_op *op)
{
	return soft_jump(c, op, op[1].imm, 1);
}

#define JCC(cc)									\
static int op_jcc_##cc(struct soft_cpu *c, const struct soft_op *op)		\
{										\
	if (soft_condition(c, cc))						\
		return soft_jump(c, op, op->imm, 0);				\
	return soft_not_taken(c, op);						\
}
JCC(0) JCC(1) JCC(2) JCC(3) JCC(4) JCC(5) JCC(6) JCC(7)
JCC(8) JCC(9) JCC(10) JCC(11) JCC(12) JCC(13) JCC(14) JCC(15)

static const soft_fn jcc_fn[16] = {
	op_jcc_0, op_jcc_1, op_jcc_2, op_jcc_3, op_jcc_4, op_jcc_5, op_jcc_6, op_jcc_7,
	op_jcc_8, op_jcc_9, op_jcc_10, op_jcc_11, op_jcc_12, op_jcc_13, op_jcc_14, op_jcc_15,
};

/* LOOP, LOOPE, LOOPNE, JCXZ, JECXZ, JRCXZ: aux = kind, size = of the counter. */
enum { LOOP_ALWAYS, LOOP_E, LOOP_NE, LOOP_CXZ };

static bool soft_loop_taken(struct soft_cpu *c, const struct soft_op *op)
{
	u64 n;

	if (op->aux != LOOP_CXZ) {
		if (op->size == 2)
			set16(c, X86_RCX, (u16)(get16(c, X86_RCX) - 1));
		else if (op->size == 4)
			set32(c, X86_RCX, get32(c, X86_RCX) - 1);
		else
			c->gpr[X86_RCX]--;
	}
	n = op->size == 2 ? get16(c, X86_RCX) : op->size == 4 ? get32(c, X86_RCX) : c->gpr[X86_RCX];
	switch (op->aux) {
	case LOOP_E:
		return n && c->lo & LO_ZF;
	case LOOP_NE:
		return n && !(c->lo & LO_ZF);
	case LOOP_CXZ:
		return !n;
	default:
		return n;
	}
}

static int op_loop(struct soft_cpu *c, const struct soft_op *op)
{
	if (soft_loop_taken(c, op))
		return soft_jump(c, op, op->imm, 0);
	return soft_not_taken(c, op);
}

SOFT_OP_MEM(op_call)
{
	u64 sp = c->gpr[X86_RSP] - 8;

	MEM_STORE(c, op, sp, c->gpr[GPR_PAGE] + op->pc + op->len, u64);
	c->gpr[X86_RSP] = sp;
	return soft_jump(c, op, op->imm, 0);
}
SOFT_OP_MEM(op_call_r)
{
	u64 sp = c->gpr[X86_RSP] - 8, to = c->gpr[op->src];

	if (unlikely(!soft_canonical(to)))
		return soft_raise_error(c, op, VEC_GP, 0);
	MEM_STORE(c, op, sp, c->gpr[GPR_PAGE] + op->pc + op->len, u64);
	c->gpr[X86_RSP] = sp;
	return soft_jump_rip(c, op, to);
}
SOFT_OP_MEM(op_call_m)
{
	u64 sp = c->gpr[X86_RSP] - 8, to;

	MEM_EA(c, op, ea)
	MEM_LOAD(c, op, to, ea, u64);
	if (unlikely(!soft_canonical(to)))
		return soft_raise_error(c, op, VEC_GP, 0);
	MEM_STORE(c, op, sp, c->gpr[GPR_PAGE] + op->pc + op->len, u64);
	c->gpr[X86_RSP] = sp;
	return soft_jump_rip(c, op, to);
}
static int op_jmp_r(struct soft_cpu *c, const struct soft_op *op)
{
	u64 to = c->gpr[op->src];

	if (unlikely(!soft_canonical(to)))
		return soft_raise_error(c, op, VEC_GP, 0);
	return soft_jump_rip(c, op, to);
}
SOFT_OP_MEM(op_jmp_m)
{
	u64 to;

	MEM_EA(c, op, ea)
	MEM_LOAD(c, op, to, ea, u64);
	if (unlikely(!soft_canonical(to)))
		return soft_raise_error(c, op, VEC_GP, 0);
	return soft_jump_rip(c, op, to);
}
/* RET and RET imm16: imm = bytes to drop. */
SOFT_OP_MEM(op_ret)
{
	u64 to;

	MEM_LOAD(c, op, to, c->gpr[X86_RSP], u64);
	if (unlikely(!soft_canonical(to)))
		return soft_raise_error(c, op, VEC_GP, 0);
	c->gpr[X86_RSP] += 8 + op->imm;
	return soft_jump_rip(c, op, to);
}

/* --- other modes, and 16-bit operands: rip is cut to the operand's size --- */

static u64 soft_cut(u64 rip, u32 size)
{
	return size == 2 ? (u16)rip : size == 4 ? (u32)rip : rip;
}

static u64 soft_branch_rip(const struct soft_cpu *c, const struct soft_op *op)
{
	return soft_cut(c->gpr[GPR_PAGE] + op->imm - c->seg[SEG_CS].base, op->size);
}

/* Near branches beyond CS's limit fault where they are. */
static int soft_branch(struct soft_cpu *c, const struct soft_op *op, u64 rip)
{
	if (c->mode != MODE_64 ? rip > c->seg[SEG_CS].limit : !soft_canonical(rip))
		return soft_raise_error(c, op, VEC_GP, 0);
	return soft_end(c, op, rip);
}

static u64 soft_next_rip(const struct soft_cpu *c, const struct soft_op *op)
{
	u64 next = soft_op_next(c, op);

	return c->mode == MODE_64 ? next : c->mode == MODE_16 ? (u16)next : (u32)next;
}

static int op_jmp_legacy(struct soft_cpu *c, const struct soft_op *op)
{
	return soft_branch(c, op, soft_branch_rip(c, op));
}
/* The condition is in dst: aux and size are taken. */
static int op_jcc_legacy(struct soft_cpu *c, const struct soft_op *op)
{
	if (soft_condition(c, op->dst))
		return soft_branch(c, op, soft_branch_rip(c, op));
	return soft_end(c, op, soft_next_rip(c, op));
}
/* The operand's size is in dst. */
static int op_loop_legacy(struct soft_cpu *c, const struct soft_op *op)
{
	u64 rcx = c->gpr[X86_RCX], rip;

	if (!soft_loop_taken(c, op))
		return soft_end(c, op, soft_next_rip(c, op));
	rip = soft_cut(c->gpr[GPR_PAGE] + op->imm - c->seg[SEG_CS].base, op->dst);
	if (rip > c->seg[SEG_CS].limit && c->mode != MODE_64) {
		c->gpr[X86_RCX] = rcx;
		return soft_raise_error(c, op, VEC_GP, 0);
	}
	return soft_end(c, op, rip);
}

enum { TO_REL, TO_REG, TO_MEM };

static int soft_target(struct soft_cpu *c, const struct soft_op *op, u64 *rip)
{
	if (op->aux == TO_REL) {
		*rip = soft_branch_rip(c, op);
	} else if (op->aux == TO_REG) {
		*rip = soft_cut(c->gpr[op->src], op->size);
	} else {
		if (soft_load_slow(c, op, soft_ea(c, op), op->size))
			return SOFT_FAULT;
		*rip = c->val[0];
	}
	return SOFT_OK;
}

static int op_jmp_any(struct soft_cpu *c, const struct soft_op *op)
{
	u64 rip;

	if (soft_target(c, op, &rip))
		return soft_faulted(c, op);
	return soft_branch(c, op, rip);
}
static int op_call_any(struct soft_cpu *c, const struct soft_op *op)
{
	u64 rip;

	if (soft_target(c, op, &rip))
		return soft_faulted(c, op);
	if (c->mode != MODE_64 ? rip > c->seg[SEG_CS].limit : !soft_canonical(rip))
		return soft_raise_error(c, op, VEC_GP, 0);
	if (soft_push(c, op, soft_op_next(c, op), op->size))
		return soft_faulted(c, op);
	return soft_end(c, op, rip);
}
static int op_ret_any(struct soft_cpu *c, const struct soft_op *op)
{
	u64 sp = c->gpr[X86_RSP], rip;

	if (soft_pop(c, op, op->size))
		return soft_faulted(c, op);
	rip = c->val[0];
	if (c->mode != MODE_64 ? rip > c->seg[SEG_CS].limit : !soft_canonical(rip)) {
		c->gpr[X86_RSP] = sp;
		return soft_raise_error(c, op, VEC_GP, 0);
	}
	soft_stack_move(c, (s64)op->imm);
	return soft_end(c, op, rip);
}

/* --- compare and branch as one: op[1] is the branch, and accounts for both --- */

#define FUSED(insn, form, bits, type, b, cc)					\
static int op_##insn##_##form##_##type##_##cc(struct soft_cpu *c, const struct soft_op *op) \
{										\
	type x = get##bits(c, op->dst), y = (type)(b);				\
	u16 fl;									\
										\
	asm(#insn " %2, %1\n\tlahf\n\tseto %%al" : "=&a"(fl) : "r"(x), "r"(y) : "cc"); \
	c->af = fl;								\
	if (soft_condition(c, cc))						\
		return soft_jump(c, op + 1, op[1].imm, 0);			\
	return soft_not_taken(c, op + 1);					\
}
#define FUSED_FORM(insn, form, bits, type, b)					\
	FUSED(insn, form, bits, type, b, 2) FUSED(insn, form, bits, type, b, 3) \
	FUSED(insn, form, bits, type, b, 4) FUSED(insn, form, bits, type, b, 5) \
	FUSED(insn, form, bits, type, b, 6) FUSED(insn, form, bits, type, b, 7) \
	FUSED(insn, form, bits, type, b, 8) FUSED(insn, form, bits, type, b, 9) \
	FUSED(insn, form, bits, type, b, 12) FUSED(insn, form, bits, type, b, 13) \
	FUSED(insn, form, bits, type, b, 14) FUSED(insn, form, bits, type, b, 15)
#define FUSED_TABLE(insn, form, type) {						\
	[2] = op_##insn##_##form##_##type##_2, [3] = op_##insn##_##form##_##type##_3, \
	[4] = op_##insn##_##form##_##type##_4, [5] = op_##insn##_##form##_##type##_5, \
	[6] = op_##insn##_##form##_##type##_6, [7] = op_##insn##_##form##_##type##_7, \
	[8] = op_##insn##_##form##_##type##_8, [9] = op_##insn##_##form##_##type##_9, \
	[12] = op_##insn##_##form##_##type##_12, [13] = op_##insn##_##form##_##type##_13, \
	[14] = op_##insn##_##form##_##type##_14, [15] = op_##insn##_##form##_##type##_15, \
}

#define FUSED_SIZES(insn, form)							\
	FUSED_FORM(insn, form, 8, u8, FUSED_##form(8)) FUSED_FORM(insn, form, 32, u32, FUSED_##form(32)) \
	FUSED_FORM(insn, form, 64, u64, FUSED_##form(64))
#define FUSED_rr(bits)	get##bits(c, op->src)
#define FUSED_ri(bits)	op->imm
FUSED_SIZES(cmp, rr)
FUSED_SIZES(cmp, ri)
FUSED_SIZES(test, rr)
FUSED_SIZES(test, ri)

/* [cmp, test][rr, ri][size][condition] */
#define FUSED_ALL(insn, form)							\
	{ FUSED_TABLE(insn, form, u8), { NULL }, FUSED_TABLE(insn, form, u32), FUSED_TABLE(insn, form, u64) }
static const soft_fn fused_fn[2][2][4][16] = {
	{ FUSED_ALL(cmp, rr), FUSED_ALL(cmp, ri) }, { FUSED_ALL(test, rr), FUSED_ALL(test, ri) },
};

void soft_decode_fuse(struct soft_op *op, u32 nr)
{
	u32 cc, test, form, size;
	soft_fn fn;

	if (nr < 2)
		return;
	for (cc = 0; cc < 16 && op[nr - 1].fn != jcc_fn[cc]; cc++)
		;
	if (cc == 16 || !soft_alu_compare(op[nr - 2].fn, &test, &form, &size))
		return;
	fn = fused_fn[test][form][size][cc];
	if (fn)
		op[nr - 2].fn = fn;
}

/* --- decoding --- */

/* The target of a relative branch as an offset from the page's start. */
static void soft_decode_target(struct soft_decode *d, struct soft_op *op)
{
	op->imm = (u64)((s64)op->pc + (s64)op->len + d->arg[0].imm.value.s);
}

static bool soft_decode_near(struct soft_decode *d, struct soft_op *op, bool call)
{
	bool fast = d->mode == MODE_64 && d->insn->operand_width == 64;

	if (d->insn->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
		return false;
	d->accesses = call;
	if (soft_is_imm(d, 0)) {
		soft_decode_target(d, op);
		op->aux = TO_REL;
		op->fn = call ? op_call : op_jmp;
	} else if (soft_is_reg(d, 0)) {
		op->src = soft_decode_reg(d->arg[0].reg.value);
		op->aux = TO_REG;
		op->fn = call ? op_call_r : op_jmp_r;
	} else {
		soft_decode_mem(d, op, 0);
		d->accesses++;
		op->aux = TO_MEM;
		op->fn = call ? op_call_m : op_jmp_m;
	}
	if (!fast)
		op->fn = call ? op_call_any : op->aux == TO_REL ? op_jmp_legacy : op_jmp_any;
	return true;
}

static bool soft_decode_loop(struct soft_decode *d, struct soft_op *op, u32 kind)
{
	soft_decode_target(d, op);
	op->aux = (u8)kind;
	op->dst = op->size;
	op->size = d->insn->address_width / 8;
	op->fn = d->mode == MODE_64 ? op_loop : op_loop_legacy;
	return true;
}

bool soft_decode_flow(struct soft_decode *d, struct soft_op *op)
{
	bool known;

	op->size = d->insn->operand_width / 8;
	switch (d->insn->mnemonic) {
	case ZYDIS_MNEMONIC_JMP:
		known = soft_decode_near(d, op, false);
		break;
	case ZYDIS_MNEMONIC_CALL:
		known = soft_decode_near(d, op, true);
		break;
	case ZYDIS_MNEMONIC_RET:
		if (d->insn->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
			return false;
		op->imm = soft_is_imm(d, 0) ? d->arg[0].imm.value.u & 0xffff : 0;
		d->accesses = 1;
		op->fn = d->mode == MODE_64 && d->insn->operand_width == 64 ? op_ret : op_ret_any;
		known = true;
		break;
	case ZYDIS_MNEMONIC_LOOP:
		known = soft_decode_loop(d, op, LOOP_ALWAYS);
		break;
	case ZYDIS_MNEMONIC_LOOPE:
		known = soft_decode_loop(d, op, LOOP_E);
		break;
	case ZYDIS_MNEMONIC_LOOPNE:
		known = soft_decode_loop(d, op, LOOP_NE);
		break;
	case ZYDIS_MNEMONIC_JCXZ:
	case ZYDIS_MNEMONIC_JECXZ:
	case ZYDIS_MNEMONIC_JRCXZ:
		known = soft_decode_loop(d, op, LOOP_CXZ);
		break;
	default:
		if (d->insn->meta.category != ZYDIS_CATEGORY_COND_BR)
			return false;
		soft_decode_target(d, op);
		op->dst = d->insn->opcode & 15;
		op->fn = d->mode == MODE_64 ? jcc_fn[d->insn->opcode & 15] : op_jcc_legacy;
		known = true;
		break;
	}
	d->ends_block = known;
	return known;
}
