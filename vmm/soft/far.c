// SPDX-License-Identifier: GPL-2.0-only
/*
 * Far transfers of control: JMP, CALL, RET (SDM 3A 5.8; 2A JMP, CALL; 2B RET), and
 * their common part with IRET, the return to another privilege level.
 */
#include "soft/ops.h"
#include "soft/system.h"

/* aux: what kind of far transfer. */
enum { FAR_JMP, FAR_CALL };

/* --- call gates in IA-32e mode (5.8.3.1) --- */

/* CALL through a gate to an inner level: RSP from the TSS, and there SS, RSP, CS, RIP. */
static int far_gate_inner(struct soft_cpu *c, const struct soft_op *op, u16 sel, const struct soft_desc *code, u64 rip,
			  u64 next)
{
	u8 cpl = soft_attr_dpl(code->attr);
	const u64 word[4] = { c->seg[SEG_SS].selector, c->gpr[X86_RSP], c->seg[SEG_CS].selector, next };
	u32 offset = 4 + 8u * cpl, i;
	u64 rsp;

	if (offset + 7 > c->tr.limit)
		return soft_fault_error(c, VEC_TS, c->tr.selector & ~3u);
	if (soft_sys_load(c, op, c->tr.base + offset, &rsp, 8))
		return SOFT_FAULT;
	if (!soft_canonical(rsp - 32) || !soft_canonical(rsp - 1))
		return soft_fault_error(c, VEC_SS, 0);
	for (i = 0; i < 4; i++)
		if (soft_sys_store(c, op, rsp - 8 * (i + 1), &word[i], 8))
			return SOFT_FAULT;
	c->gpr[X86_RSP] = rsp - 32;
	soft_cs_set(c, sel, code, cpl);
	soft_segment_set_null(c, &c->seg[SEG_SS], cpl);
	c->rip = rip;
	return SOFT_OK;
}

static int far_gate(struct soft_cpu *c, const struct soft_op *op, u16 gate_sel, struct soft_desc *gate, bool call,
		    u64 next)
{
	u16 sel = (u16)(gate->raw >> 16);
	u64 old_rsp = c->gpr[X86_RSP], rip;
	struct soft_desc code;
	bool conforming;
	u8 dpl;

	if (soft_attr_dpl(gate->attr) < MAX(c->cpl, gate_sel & 3))
		return soft_fault_error(c, VEC_GP, gate_sel & ~3u);
	if (!(gate->attr & SEG_ATTR_P))
		return soft_fault_error(c, VEC_NP, gate_sel & ~3u);
	if (soft_desc_read_high(c, op, gate_sel, VEC_GP, 0, gate))
		return SOFT_FAULT;
	rip = (gate->raw & 0xffff) | (gate->raw >> 32 & 0xffff0000) | (u64)gate->high << 32;
	if (!(sel & ~3u))
		return soft_fault_error(c, VEC_GP, 0);
	if (soft_desc_read(c, op, sel, VEC_GP, 0, &code))
		return SOFT_FAULT;
	dpl = soft_attr_dpl(code.attr);
	conforming = code.attr & SEG_ATTR_CONFORMING;
	if (!(code.attr & SEG_ATTR_S) || !(code.attr & SEG_ATTR_CODE) || !(code.attr & SEG_ATTR_L) || dpl > c->cpl ||
	    (!call && !conforming && dpl != c->cpl))
		return soft_fault_error(c, VEC_GP, sel & ~3u);
	if (soft_code_check(c, sel, &code, rip, 0) || soft_desc_accessed(c, op, &code))
		return SOFT_FAULT;
	if (call && !conforming && dpl < c->cpl)
		return far_gate_inner(c, op, sel, &code, rip, next);
	if (call && (soft_push(c, op, c->seg[SEG_CS].selector, 8) || soft_push(c, op, next, 8))) {
		c->gpr[X86_RSP] = old_rsp;
		return SOFT_FAULT;
	}
	soft_cs_set(c, sel, &code, c->cpl);
	c->rip = rip;
	return SOFT_OK;
}

/* --- JMP and CALL --- */

static int far_push_return(struct soft_cpu *c, const struct soft_op *op, u64 next)
{
	u64 rsp = c->gpr[X86_RSP];

	if (!soft_push(c, op, c->seg[SEG_CS].selector, op->size) && !soft_push(c, op, next, op->size))
		return SOFT_OK;
	c->gpr[X86_RSP] = rsp;
	return SOFT_FAULT;
}

static int far_transfer(struct soft_cpu *c, const struct soft_op *op, u16 sel, u64 rip)
{
	bool call = op->aux == FAR_CALL, conforming;
	u64 next = soft_op_next(c, op);
	struct soft_desc d;
	u8 dpl, type;

	if (!soft_protected(c)) {
		if (call && far_push_return(c, op, next))
			return SOFT_FAULT;
		soft_segment_set_real(&c->seg[SEG_CS], sel);
		c->rip = rip;
		return SOFT_OK;
	}
	if (!(sel & ~3u))
		return soft_fault_error(c, VEC_GP, 0);
	if (soft_desc_read(c, op, sel, VEC_GP, 0, &d))
		return SOFT_FAULT;
	if (!(d.attr & SEG_ATTR_S)) {
		type = d.attr & SEG_ATTR_TYPE;
		if (soft_long(c))
			return type == SYS_CALL ? far_gate(c, op, sel, &d, call, next) :
						  soft_fault_error(c, VEC_GP, sel & ~3u);
		if (type == SYS_CALL || type == SYS_CALL16)
			return soft_stop(c, "a call gate outside of IA-32e mode");
		if (type == SYS_TASK_GATE || type == SYS_TSS || type == SYS_TSS16)
			return soft_stop(c, "a hardware task switch");
		return soft_fault_error(c, VEC_GP, sel & ~3u);
	}
	dpl = soft_attr_dpl(d.attr);
	conforming = d.attr & SEG_ATTR_CONFORMING;
	if (!(d.attr & SEG_ATTR_CODE) || (conforming ? dpl > c->cpl : (sel & 3) > c->cpl || dpl != c->cpl))
		return soft_fault_error(c, VEC_GP, sel & ~3u);
	if (soft_code_check(c, sel, &d, rip, 0) || soft_desc_accessed(c, op, &d))
		return SOFT_FAULT;
	if (call && far_push_return(c, op, next))
		return SOFT_FAULT;
	soft_cs_set(c, sel, &d, c->cpl);
	c->rip = rip;
	return SOFT_OK;
}

static u64 far_truncate(u64 rip, u32 size)
{
	return size == 8 ? rip : size == 4 ? (u32)rip : (u16)rip;
}

static int far_done(struct soft_cpu *c, const struct soft_op *op, int ret)
{
	if (ret)
		return soft_failed(c, op, ret);
	return soft_end(c, op, c->rip);
}

static int op_far_ptr(struct soft_cpu *c, const struct soft_op *op)
{
	soft_sync(c, op);
	return far_done(c, op, far_transfer(c, op, (u16)(op->imm >> 32), far_truncate((u32)op->imm, op->size)));
}

/* m16:16, m16:32, m16:64: the offset is first. */
static int op_far_mem(struct soft_cpu *c, const struct soft_op *op)
{
	u64 va = soft_ea(c, op), rip;

	soft_sync(c, op);
	if (soft_load_slow(c, op, va, op->size))
		return soft_faulted(c, op);
	rip = c->val[0];
	if (soft_load_slow(c, op, va + op->size, 2))
		return soft_faulted(c, op);
	return far_done(c, op, far_transfer(c, op, (u16)c->val[0], rip));
}

/* --- returns --- */

/* After a return to an outer level data segments that it may not have become null (SDM 2B RET). */
static void far_drop_inner_segments(struct soft_cpu *c)
{
	static const u8 which[] = { SEG_ES, SEG_DS, SEG_FS, SEG_GS };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(which); i++) {
		struct x86_segment *seg = &c->seg[which[i]];
		bool conforming = seg->attr & SEG_ATTR_CODE && seg->attr & SEG_ATTR_CONFORMING;

		if (!seg->unusable && !conforming && soft_attr_dpl(seg->attr) < c->cpl)
			soft_segment_set_null(c, seg, 0);
	}
}

int soft_return_far(struct soft_cpu *c, const struct soft_op *op, const struct soft_return *r)
{
	bool outer = soft_returns_outer(c, r->cs), wide;
	u8 cpl = r->cs & 3, dpl;
	struct soft_desc code, stack = { 0 };

	if (!(r->cs & ~3u))
		return soft_fault_error(c, VEC_GP, 0);
	if (soft_desc_read(c, op, r->cs, VEC_GP, 0, &code))
		return SOFT_FAULT;
	dpl = soft_attr_dpl(code.attr);
	if (!(code.attr & SEG_ATTR_S) || !(code.attr & SEG_ATTR_CODE) || cpl < c->cpl ||
	    (code.attr & SEG_ATTR_CONFORMING ? dpl > cpl : dpl != cpl))
		return soft_fault_error(c, VEC_GP, r->cs & ~3u);
	if (soft_code_check(c, r->cs, &code, r->rip, 0))
		return SOFT_FAULT;
	wide = soft_long(c) && code.attr & SEG_ATTR_L;
	if (outer || r->has_stack) {
		if (!(r->ss & ~3u)) {
			/* Null is a stack for 64-bit code of levels 0 to 2 only. */
			if (!wide || cpl == 3 || (r->ss & 3) != cpl)
				return soft_fault_error(c, VEC_GP, 0);
		} else if (soft_stack_check(c, op, r->ss, cpl, VEC_GP, 0, &stack)) {
			return SOFT_FAULT;
		}
	}
	if (soft_desc_accessed(c, op, &code))
		return SOFT_FAULT;

	soft_cs_set(c, r->cs, &code, cpl);
	c->rip = r->rip;
	if (!outer && !r->has_stack) {
		c->gpr[X86_RSP] = r->rsp_inner;
		return SOFT_OK;
	}
	if (!(r->ss & ~3u))
		soft_segment_set_null(c, &c->seg[SEG_SS], r->ss);
	else
		soft_segment_set(&c->seg[SEG_SS], r->ss, &stack);
	if (wide || c->seg[SEG_SS].attr & SEG_ATTR_DB)
		c->gpr[X86_RSP] = wide ? r->rsp : (u32)r->rsp;
	else
		set16(c, X86_RSP, (u16)r->rsp);
	if (outer)
		far_drop_inner_segments(c);
	return SOFT_OK;
}

/* RET far, with op->imm bytes of arguments to drop: from both stacks if there are two. */
static int op_far_ret(struct soft_cpu *c, const struct soft_op *op)
{
	u64 rsp = c->gpr[X86_RSP], word[4] = { 0 };
	struct soft_return r = { 0 };
	u32 nr = 2, i;
	int ret;

	soft_sync(c, op);
	for (i = 0; i < nr; i++) {
		u64 skip = i < 2 ? 0 : op->imm;

		if (soft_load_slow(c, op, soft_stack_va(c, (s64)(i * op->size + skip)), op->size))
			return soft_faulted(c, op);
		word[i] = c->val[0];
		if (i == 1 && soft_protected(c) && soft_returns_outer(c, (u16)word[1]))
			nr = 4;
	}
	soft_stack_move(c, (s64)(2u * op->size + op->imm));
	r = (struct soft_return) {
		.rip = word[0], .cs = (u16)word[1], .rsp = word[2], .ss = (u16)word[3], .rsp_inner = c->gpr[X86_RSP],
	};
	c->gpr[X86_RSP] = rsp;
	if (!soft_protected(c)) {
		c->gpr[X86_RSP] = r.rsp_inner;
		soft_segment_set_real(&c->seg[SEG_CS], r.cs);
		c->rip = r.rip;
		return far_done(c, op, SOFT_OK);
	}
	ret = soft_return_far(c, op, &r);
	if (!ret && nr == 4)
		soft_stack_move(c, (s64)op->imm);
	return far_done(c, op, ret);
}

bool soft_decode_far(struct soft_decode *d, struct soft_op *op)
{
	const ZydisDecodedInstruction *insn = d->insn;

	if (insn->meta.branch_type != ZYDIS_BRANCH_TYPE_FAR)
		return false;
	op->size = (u8)(insn->operand_width / 8);
	switch (insn->mnemonic) {
	case ZYDIS_MNEMONIC_JMP:
	case ZYDIS_MNEMONIC_CALL:
		op->aux = insn->mnemonic == ZYDIS_MNEMONIC_CALL ? FAR_CALL : FAR_JMP;
		if (soft_is_mem(d, 0)) {
			soft_decode_mem(d, op, 0);
			op->fn = op_far_mem;
			d->accesses = op->aux == FAR_CALL ? 4 : 2;
		} else {
			op->imm = d->arg[0].ptr.offset | (u64)d->arg[0].ptr.segment << 32;
			op->fn = op_far_ptr;
			d->accesses = op->aux == FAR_CALL ? 2 : 0;
		}
		break;
	case ZYDIS_MNEMONIC_RET:
		op->imm = soft_is_imm(d, 0) ? d->arg[0].imm.value.u : 0;
		op->fn = op_far_ret;
		d->accesses = 2;
		break;
	default:
		return false;
	}
	d->ends_block = true;
	return true;
}
