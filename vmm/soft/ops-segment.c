// SPDX-License-Identifier: GPL-2.0-only
/*
 * Instructions on segment registers and descriptor tables: MOV, PUSH, POP and LDS-like
 * of segment registers, LGDT LIDT SGDT SIDT, LLDT LTR SLDT STR, LAR LSL VERR VERW.
 */
#include "soft/ops.h"
#include "soft/system.h"

/* aux: the segment register, or which of its kind the instruction is; and whether the operand is in memory. */
#define AUX_MEM		0x80u
#define AUX_WHICH	0x7fu

/* The 16-bit source operand into c->val[0]. */
static int seg_read(struct soft_cpu *c, const struct soft_op *op)
{
	if (op->aux & AUX_MEM)
		return soft_load_slow(c, op, soft_ea(c, op), 2);
	c->val[0] = get16(c, op->src);
	return SOFT_OK;
}

/* A 16-bit value to a register of the operand's size, or to 16 bits of memory. */
static int seg_write(struct soft_cpu *c, const struct soft_op *op, u16 value)
{
	if (op->aux & AUX_MEM) {
		c->val[0] = value;
		return soft_store_slow(c, op, soft_ea(c, op), c->val, 2);
	}
	if (op->size == 2)
		set16(c, op->dst, value);
	else
		set64(c, op->dst, value);
	return SOFT_OK;
}

/* A new SS holds interrupts off until the stack pointer is there, too (SDM 3A 6.8.3). */
static int seg_loaded(struct soft_cpu *c, const struct soft_op *op, u32 which)
{
	soft_end(c, op, soft_op_next(c, op));
	if (which == SEG_SS)
		c->shadow = true;
	return SOFT_OK;
}

static int op_mov_from_seg(struct soft_cpu *c, const struct soft_op *op)
{
	if (seg_write(c, op, c->seg[op->aux & AUX_WHICH].selector))
		return soft_faulted(c, op);
	SOFT_NEXT(c, op);
}

static int op_mov_to_seg(struct soft_cpu *c, const struct soft_op *op)
{
	u32 which = op->aux & AUX_WHICH;

	soft_sync(c, op);
	if (seg_read(c, op) || soft_segment_load(c, op, (enum soft_seg)which, (u16)c->val[0]))
		return soft_faulted(c, op);
	return seg_loaded(c, op, which);
}

static int op_push_seg(struct soft_cpu *c, const struct soft_op *op)
{
	if (soft_push(c, op, c->seg[op->aux].selector, op->size))
		return soft_faulted(c, op);
	SOFT_NEXT(c, op);
}

static int op_pop_seg(struct soft_cpu *c, const struct soft_op *op)
{
	u64 rsp = c->gpr[X86_RSP];

	soft_sync(c, op);
	if (soft_load_slow(c, op, soft_stack_va(c, 0), op->size))
		return soft_faulted(c, op);
	/* SP moves by the size of the stack that the value came from. */
	soft_stack_move(c, op->size);
	if (soft_segment_load(c, op, (enum soft_seg)op->aux, (u16)c->val[0])) {
		c->gpr[X86_RSP] = rsp;
		return soft_faulted(c, op);
	}
	return seg_loaded(c, op, op->aux);
}

/* LDS, LES, LFS, LGS, LSS: offset first, then the selector. */
static int op_load_far(struct soft_cpu *c, const struct soft_op *op)
{
	u64 va = soft_ea(c, op), offset;

	soft_sync(c, op);
	if (soft_load_slow(c, op, va, op->size))
		return soft_faulted(c, op);
	offset = c->val[0];
	if (soft_load_slow(c, op, va + op->size, 2) ||
	    soft_segment_load(c, op, (enum soft_seg)(op->aux & AUX_WHICH), (u16)c->val[0]))
		return soft_faulted(c, op);
	if (op->size == 2)
		set16(c, op->dst, (u16)offset);
	else
		set64(c, op->dst, offset);
	/* Stack pointer and segment came together: no shadow. */
	return soft_end(c, op, soft_op_next(c, op));
}

/* --- descriptor tables (SDM 2A LGDT, 2B SGDT): limit, then base --- */

enum { TABLE_GDT, TABLE_IDT };

static int op_load_table(struct soft_cpu *c, const struct soft_op *op)
{
	struct x86_table *table = op->aux == TABLE_GDT ? &c->gdt : &c->idt;
	u64 va = soft_ea(c, op), base;
	u16 limit;

	soft_sync(c, op);
	if (c->cpl)
		return soft_raise_error(c, op, VEC_GP, 0);
	if (soft_load_slow(c, op, va, 2))
		return soft_faulted(c, op);
	limit = (u16)c->val[0];
	if (soft_load_slow(c, op, va + 2, c->mode == MODE_64 ? 8 : 4))
		return soft_faulted(c, op);
	base = c->val[0];
	if (c->mode == MODE_64 && !soft_canonical(base))
		return soft_raise_error(c, op, VEC_GP, 0);
	table->base = op->size == 2 && c->mode != MODE_64 ? base & 0xffffff : base;
	table->limit = limit;
	return soft_end(c, op, soft_op_next(c, op));
}

static int op_store_table(struct soft_cpu *c, const struct soft_op *op)
{
	const struct x86_table *table = op->aux == TABLE_GDT ? &c->gdt : &c->idt;
	u32 size = c->mode == MODE_64 ? 10 : 6;
	u8 image[10];

	memcpy(image, &table->limit, 2);
	memcpy(image + 2, &table->base, 8);
	if (soft_store_slow(c, op, soft_ea(c, op), image, size))
		return soft_faulted(c, op);
	return soft_end(c, op, soft_op_next(c, op));
}

/* --- LDTR and TR --- */

enum { REG_LDT, REG_TR };

static int op_store_system_reg(struct soft_cpu *c, const struct soft_op *op)
{
	u16 sel = (op->aux & AUX_WHICH) == REG_LDT ? c->ldt.selector : c->tr.selector;

	if (!soft_protected(c))
		return soft_raise(c, op, VEC_UD);
	if (seg_write(c, op, sel))
		return soft_faulted(c, op);
	SOFT_NEXT(c, op);
}

static int seg_load_ldt(struct soft_cpu *c, const struct soft_op *op, u16 sel)
{
	struct soft_desc d;

	if (!(sel & ~3u)) {
		c->ldt = (struct x86_segment){ .selector = sel, .unusable = true };
		return SOFT_OK;
	}
	if (sel & 4)
		return soft_fault_error(c, VEC_GP, sel & ~3u);
	if (soft_desc_read(c, op, sel, VEC_GP, 0, &d))
		return SOFT_FAULT;
	if ((d.attr & (SEG_ATTR_S | SEG_ATTR_TYPE)) != SYS_LDT)
		return soft_fault_error(c, VEC_GP, sel & ~3u);
	if (!(d.attr & SEG_ATTR_P))
		return soft_fault_error(c, VEC_NP, sel & ~3u);
	if (soft_long(c) && soft_desc_read_high(c, op, sel, VEC_GP, 0, &d))
		return SOFT_FAULT;
	soft_segment_set(&c->ldt, sel, &d);
	return SOFT_OK;
}

static int seg_load_tr(struct soft_cpu *c, const struct soft_op *op, u16 sel)
{
	struct soft_desc d;
	u16 type;
	u8 byte;

	if (!(sel & ~3u))
		return soft_fault_error(c, VEC_GP, 0);
	if (sel & 4)
		return soft_fault_error(c, VEC_GP, sel & ~3u);
	if (soft_desc_read(c, op, sel, VEC_GP, 0, &d))
		return SOFT_FAULT;
	type = d.attr & (SEG_ATTR_S | SEG_ATTR_TYPE);
	if (type != SYS_TSS && (soft_long(c) || type != SYS_TSS16))
		return soft_fault_error(c, VEC_GP, sel & ~3u);
	if (!(d.attr & SEG_ATTR_P))
		return soft_fault_error(c, VEC_NP, sel & ~3u);
	if (soft_long(c) && soft_desc_read_high(c, op, sel, VEC_GP, 0, &d))
		return SOFT_FAULT;
	d.attr |= SYS_TYPE_BUSY;
	byte = (u8)d.attr;
	if (soft_sys_store(c, op, d.va + 5, &byte, 1))
		return SOFT_FAULT;
	soft_segment_set(&c->tr, sel, &d);
	return SOFT_OK;
}

static int op_load_system_reg(struct soft_cpu *c, const struct soft_op *op)
{
	int ret;

	soft_sync(c, op);
	if (!soft_protected(c))
		return soft_raise(c, op, VEC_UD);
	if (c->cpl)
		return soft_raise_error(c, op, VEC_GP, 0);
	if (seg_read(c, op))
		return soft_faulted(c, op);
	if ((op->aux & AUX_WHICH) == REG_LDT)
		ret = seg_load_ldt(c, op, (u16)c->val[0]);
	else
		ret = seg_load_tr(c, op, (u16)c->val[0]);
	return ret ? soft_faulted(c, op) : soft_end(c, op, soft_op_next(c, op));
}

/* --- asking about a selector: ZF is the answer --- */

enum { ASK_LAR, ASK_LSL, ASK_VERR, ASK_VERW };

/* System descriptors that LAR and LSL accept (SDM 2A tables 3-53 and 3-55). */
static bool seg_ask_system(const struct soft_cpu *c, u32 what, u32 type)
{
	u32 ok = BIT(SYS_LDT) | BIT(SYS_TSS) | BIT(SYS_TSS_BUSY);

	if (what == ASK_LAR)
		ok |= BIT(SYS_CALL);
	if (!soft_long(c)) {
		ok |= BIT(SYS_TSS16) | BIT(SYS_TSS16_BUSY);
		if (what == ASK_LAR)
			ok |= BIT(SYS_CALL16) | BIT(SYS_TASK_GATE);
	}
	return ok & BIT(type);
}

static bool seg_ask_allowed(const struct soft_cpu *c, u32 what, u16 sel, u16 attr)
{
	bool code = attr & SEG_ATTR_CODE;

	if (!(attr & SEG_ATTR_S)) {
		if (what == ASK_VERR || what == ASK_VERW || !seg_ask_system(c, what, attr & SEG_ATTR_TYPE))
			return false;
	} else if (what == ASK_VERR && code && !(attr & SEG_ATTR_RW)) {
		return false;
	} else if (what == ASK_VERW && (code || !(attr & SEG_ATTR_RW))) {
		return false;
	}
	if (attr & SEG_ATTR_S && code && attr & SEG_ATTR_CONFORMING)
		return true;
	return soft_attr_dpl(attr) >= MAX(c->cpl, sel & 3);
}

static int op_ask(struct soft_cpu *c, const struct soft_op *op)
{
	u32 what = op->aux & AUX_WHICH, limit;
	struct soft_desc d;
	bool yes = false;
	u64 value;
	u16 sel;

	soft_sync(c, op);
	if (!soft_protected(c))
		return soft_raise(c, op, VEC_UD);
	if (seg_read(c, op))
		return soft_faulted(c, op);
	sel = (u16)c->val[0];
	limit = sel & 4 ? c->ldt.limit : c->gdt.limit;
	if (sel & ~3u && (sel | 7u) <= limit && !(sel & 4 && c->ldt.unusable)) {
		if (soft_desc_read(c, op, sel, VEC_GP, 0, &d))
			return soft_faulted(c, op);
		yes = seg_ask_allowed(c, what, sel, d.attr);
	}
	c->lo = (u8)((c->lo & ~LO_ZF) | (yes ? LO_ZF : 0));
	if (yes && what <= ASK_LSL) {
		value = what == ASK_LAR ? d.raw >> 32 & 0x00f0ff00 : d.limit;
		if (op->size == 2)
			set16(c, op->dst, (u16)value);
		else
			set64(c, op->dst, value);
	}
	return soft_end(c, op, soft_op_next(c, op));
}

/* --- decoding --- */

static bool seg_is(const struct soft_decode *d, u32 i)
{
	return soft_is_reg(d, i) && ZydisRegisterGetClass(d->arg[i].reg.value) == ZYDIS_REGCLASS_SEGMENT;
}

static u8 seg_number(const struct soft_decode *d, u32 i)
{
	return (u8)ZydisRegisterGetId(d->arg[i].reg.value);
}

/* The r/m16 operand: src as a register, or memory. */
static u8 seg_decode_rm(struct soft_decode *d, struct soft_op *op, u32 i, bool dst)
{
	if (soft_is_mem(d, i)) {
		soft_decode_mem(d, op, i);
		d->accesses++;
		return AUX_MEM;
	}
	*(dst ? &op->dst : &op->src) = soft_decode_reg(d->arg[i].reg.value);
	return 0;
}

static bool seg_decode_far(struct soft_decode *d, struct soft_op *op, enum soft_seg which)
{
	op->dst = soft_decode_reg(d->arg[0].reg.value);
	soft_decode_mem(d, op, 1);
	op->aux = (u8)which;
	op->fn = op_load_far;
	d->accesses = 2;
	d->ends_block = true;
	return true;
}

static bool seg_decode_table(struct soft_decode *d, struct soft_op *op, u8 which, soft_fn fn)
{
	soft_decode_mem(d, op, 0);
	op->aux = which;
	op->fn = fn;
	d->accesses = 2;
	d->ends_block = true;
	return true;
}

static bool seg_decode_system_reg(struct soft_decode *d, struct soft_op *op, u8 which, bool load)
{
	op->aux = which | seg_decode_rm(d, op, 0, !load);
	op->fn = load ? op_load_system_reg : op_store_system_reg;
	d->ends_block = load;
	return true;
}

static bool seg_decode_ask(struct soft_decode *d, struct soft_op *op, u8 what)
{
	u32 rm = what <= ASK_LSL ? 1 : 0;

	if (rm)
		op->dst = soft_decode_reg(d->arg[0].reg.value);
	op->aux = what | seg_decode_rm(d, op, rm, false);
	op->fn = op_ask;
	d->ends_block = true;
	return true;
}

static bool seg_decode_moves(struct soft_decode *d, struct soft_op *op)
{
	switch (d->insn->mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
		if (seg_is(d, 1)) {
			op->aux = seg_number(d, 1) | seg_decode_rm(d, op, 0, true);
			op->fn = op_mov_from_seg;
			return true;
		}
		if (!seg_is(d, 0))
			return false;
		op->aux = seg_number(d, 0) | seg_decode_rm(d, op, 1, false);
		op->fn = op_mov_to_seg;
		break;
	case ZYDIS_MNEMONIC_PUSH:
	case ZYDIS_MNEMONIC_POP:
		if (!seg_is(d, 0))
			return false;
		op->aux = seg_number(d, 0);
		d->accesses = 1;
		op->fn = d->insn->mnemonic == ZYDIS_MNEMONIC_PUSH ? op_push_seg : op_pop_seg;
		if (op->fn == op_push_seg)
			return true;
		break;
	default:
		return false;
	}
	d->ends_block = true;
	return true;
}

bool soft_decode_segment_ops(struct soft_decode *d, struct soft_op *op)
{
	op->size = (u8)(d->insn->operand_width / 8);
	switch (d->insn->mnemonic) {
	case ZYDIS_MNEMONIC_LDS:
		return seg_decode_far(d, op, SEG_DS);
	case ZYDIS_MNEMONIC_LES:
		return seg_decode_far(d, op, SEG_ES);
	case ZYDIS_MNEMONIC_LFS:
		return seg_decode_far(d, op, SEG_FS);
	case ZYDIS_MNEMONIC_LGS:
		return seg_decode_far(d, op, SEG_GS);
	case ZYDIS_MNEMONIC_LSS:
		return seg_decode_far(d, op, SEG_SS);
	case ZYDIS_MNEMONIC_LGDT:
		return seg_decode_table(d, op, TABLE_GDT, op_load_table);
	case ZYDIS_MNEMONIC_LIDT:
		return seg_decode_table(d, op, TABLE_IDT, op_load_table);
	case ZYDIS_MNEMONIC_SGDT:
		return seg_decode_table(d, op, TABLE_GDT, op_store_table);
	case ZYDIS_MNEMONIC_SIDT:
		return seg_decode_table(d, op, TABLE_IDT, op_store_table);
	case ZYDIS_MNEMONIC_LLDT:
		return seg_decode_system_reg(d, op, REG_LDT, true);
	case ZYDIS_MNEMONIC_LTR:
		return seg_decode_system_reg(d, op, REG_TR, true);
	case ZYDIS_MNEMONIC_SLDT:
		return seg_decode_system_reg(d, op, REG_LDT, false);
	case ZYDIS_MNEMONIC_STR:
		return seg_decode_system_reg(d, op, REG_TR, false);
	case ZYDIS_MNEMONIC_LAR:
		return seg_decode_ask(d, op, ASK_LAR);
	case ZYDIS_MNEMONIC_LSL:
		return seg_decode_ask(d, op, ASK_LSL);
	case ZYDIS_MNEMONIC_VERR:
		return seg_decode_ask(d, op, ASK_VERR);
	case ZYDIS_MNEMONIC_VERW:
		return seg_decode_ask(d, op, ASK_VERW);
	default:
		return seg_decode_moves(d, op);
	}
}
