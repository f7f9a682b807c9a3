// SPDX-License-Identifier: GPL-2.0-only
/*
 * RFLAGS as a whole and its system bits: PUSHF, POPF, CLI, STI, STAC, CLAC; and the
 * instructions that deliver an event or come back from one: INT n, INT3, INT1, INTO,
 * IRET.
 */
#include "soft/ops.h"
#include "soft/system.h"
#include "x86/cpuid-bits.h"

/* Flags that POPF may change at any privilege level (SDM 2B POPF, table 4-16). */
#define POPF_ANY	(SOFT_ARITH_FLAGS | X86_EFLAGS_TF | X86_EFLAGS_DF | X86_EFLAGS_NT | X86_EFLAGS_AC | X86_EFLAGS_ID)

static bool flags_may_mask(const struct soft_cpu *c)
{
	return !soft_protected(c) || c->cpl <= soft_iopl(c);
}

/* 64-bit mode, with 64-bit operands. */
SOFT_OP_MEM(op_pushfq)
{
	u64 sp = c->gpr[X86_RSP] - 8;

	MEM_STORE(c, op, sp, soft_rflags(c) & ~(X86_EFLAGS_VM | X86_EFLAGS_RF), u64);
	c->gpr[X86_RSP] = sp;
	SOFT_NEXT(c, op);
}

static int op_pushf(struct soft_cpu *c, const struct soft_op *op)
{
	if (soft_push(c, op, soft_rflags(c) & ~(X86_EFLAGS_VM | X86_EFLAGS_RF), op->size))
		return soft_faulted(c, op);
	SOFT_NEXT(c, op);
}

static int op_popf(struct soft_cpu *c, const struct soft_op *op)
{
	u64 mask = POPF_ANY, value;

	soft_sync(c, op);
	if (soft_pop(c, op, op->size))
		return soft_faulted(c, op);
	value = c->val[0];
	if (flags_may_mask(c))
		mask |= X86_EFLAGS_IF;
	if (c->cpl == 0)
		mask |= X86_EFLAGS_IOPL;
	if (op->size == 2)
		mask &= 0xffff;
	soft_set_rflags(c, (soft_rflags(c) & ~mask & ~X86_EFLAGS_RF) | (value & mask));
	return soft_end(c, op, soft_op_next(c, op));
}

static int op_cli(struct soft_cpu *c, const struct soft_op *op)
{
	if (!flags_may_mask(c))
		return soft_raise_error(c, op, VEC_GP, 0);
	c->sysflags &= ~X86_EFLAGS_IF;
	SOFT_NEXT(c, op);
}

/* Interrupts stay off for one more instruction if they were (SDM 2B STI). */
static int op_sti(struct soft_cpu *c, const struct soft_op *op)
{
	bool were = c->sysflags & X86_EFLAGS_IF;

	if (!flags_may_mask(c))
		return soft_raise_error(c, op, VEC_GP, 0);
	c->sysflags |= X86_EFLAGS_IF;
	soft_end(c, op, soft_op_next(c, op));
	if (!were)
		c->shadow = true;
	return SOFT_OK;
}

static bool flags_smap_shown(const struct soft_cpu *c)
{
	const struct cpuid_entry *e = cpuid_find(&c->vcpu->cpuid, CPUID_LEAF_EXT_FEATURES, 0);

	return e && e->ebx & BIT(20);
}

/* STAC (aux 1) and CLAC (aux 0). */
static int op_ac(struct soft_cpu *c, const struct soft_op *op)
{
	if (c->cpl || !flags_smap_shown(c))
		return soft_raise(c, op, VEC_UD);
	c->sysflags = op->aux ? c->sysflags | X86_EFLAGS_AC : c->sysflags & ~X86_EFLAGS_AC;
	soft_update_context(c);
	SOFT_NEXT(c, op);
}

/* --- events --- */

/*
 * INT n, INT3, INTO, INT1: complete, so a trap; but if its delivery faults, that is
 * reported of the instruction itself, where soft_sync() has put c->rip.
 */
static int op_int(struct soft_cpu *c, const struct soft_op *op)
{
	struct soft_fault event = { .vector = (u8)op->imm };
	u64 next = soft_op_next(c, op);

	soft_sync(c, op);
	soft_retire(c, op + 1);
	return soft_deliver(c, (enum soft_event)op->aux, &event, next);
}

static int op_into(struct soft_cpu *c, const struct soft_op *op)
{
	if (!c->of)
		return soft_end(c, op, soft_op_next(c, op));
	return op_int(c, op);
}

/* BOUND r, m (SDM 2A): not in 64-bit mode. */
static int op_bound(struct soft_cpu *c, const struct soft_op *op)
{
	u64 va = soft_ea(c, op);
	s64 index, low, high;

	if (soft_load_slow(c, op, va, op->size))
		return soft_faulted(c, op);
	low = op->size == 2 ? (int16_t)c->val[0] : (s32)c->val[0];
	if (soft_load_slow(c, op, va + op->size, op->size))
		return soft_faulted(c, op);
	high = op->size == 2 ? (int16_t)c->val[0] : (s32)c->val[0];
	index = op->size == 2 ? (int16_t)get16(c, op->src) : (s32)get32(c, op->src);
	if (index < low || index > high)
		return soft_raise(c, op, VEC_BR);
	return soft_end(c, op, soft_op_next(c, op));
}

static bool flags_decode_int(struct soft_decode *d, struct soft_op *op, u64 vector, enum soft_event kind, soft_fn fn)
{
	op->imm = vector;
	op->aux = (u8)kind;
	op->fn = fn;
	d->ends_block = true;
	return true;
}

static bool flags_decode_simple(struct soft_decode *d, struct soft_op *op, soft_fn fn, bool begins, bool ends)
{
	op->fn = fn;
	d->begins_block = begins;
	d->ends_block = ends;
	return true;
}

bool soft_decode_flags(struct soft_decode *d, struct soft_op *op)
{
	op->size = (u8)(d->insn->operand_width / 8);
	switch (d->insn->mnemonic) {
	case ZYDIS_MNEMONIC_PUSHF:
	case ZYDIS_MNEMONIC_PUSHFD:
	case ZYDIS_MNEMONIC_PUSHFQ:
		d->accesses = 1;
		return flags_decode_simple(d, op, d->mode == MODE_64 && op->size == 8 ? op_pushfq : op_pushf, false, false);
	case ZYDIS_MNEMONIC_POPF:
	case ZYDIS_MNEMONIC_POPFD:
	case ZYDIS_MNEMONIC_POPFQ:
		d->accesses = 1;
		return flags_decode_simple(d, op, op_popf, true, true);
	case ZYDIS_MNEMONIC_CLI:
		return flags_decode_simple(d, op, op_cli, true, false);
	case ZYDIS_MNEMONIC_STI:
		return flags_decode_simple(d, op, op_sti, false, true);
	case ZYDIS_MNEMONIC_STAC:
		op->aux = 1;
		return flags_decode_simple(d, op, op_ac, false, false);
	case ZYDIS_MNEMONIC_CLAC:
		return flags_decode_simple(d, op, op_ac, false, false);
	case ZYDIS_MNEMONIC_INT:
		return flags_decode_int(d, op, d->arg[0].imm.value.u & 0xff, EVENT_SOFT_INT, op_int);
	case ZYDIS_MNEMONIC_INT3:
		return flags_decode_int(d, op, VEC_BP, EVENT_SOFT_INT, op_int);
	case ZYDIS_MNEMONIC_INT1:
		return flags_decode_int(d, op, VEC_DB, EVENT_INT1, op_int);
	case ZYDIS_MNEMONIC_INTO:
		return flags_decode_int(d, op, VEC_OF, EVENT_SOFT_INT, op_into);
	case ZYDIS_MNEMONIC_BOUND:
		op->src = soft_decode_reg(d->arg[0].reg.value);
		soft_decode_mem(d, op, 1);
		d->accesses = 2;
		return flags_decode_simple(d, op, op_bound, false, true);
	case ZYDIS_MNEMONIC_IRET:
	case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRETQ:
		d->accesses = 3;
		return flags_decode_simple(d, op, soft_op_iret, false, true);
	default:
		return false;
	}
}
