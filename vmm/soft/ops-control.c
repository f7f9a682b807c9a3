// SPDX-License-Identifier: GPL-2.0-only
/*
 * Control and debug registers, and the instructions that flush translations: MOV CR,
 * MOV DR, CLTS, LMSW, SMSW, INVLPG, INVPCID (SDM 3A 2.5, 2.8; 4.10.4.1 for the flushes).
 */
#include "soft/ops.h"
#include "soft/system.h"
#include "soft/tlb.h"
#include "x86/cpuid-bits.h"

#define CR0_VALID	(X86_CR0_PE | X86_CR0_MP | X86_CR0_EM | X86_CR0_TS | X86_CR0_ET | X86_CR0_NE | X86_CR0_WP | \
			 X86_CR0_AM | X86_CR0_NW | X86_CR0_CD | X86_CR0_PG)
#define CR4_VALID	(X86_CR4_VME | X86_CR4_PVI | X86_CR4_TSD | X86_CR4_DE | X86_CR4_PSE | X86_CR4_PAE | \
			 X86_CR4_MCE | X86_CR4_PGE | X86_CR4_PCE | X86_CR4_OSFXSR | X86_CR4_OSXMMEXCPT)

/* Bits of CR4 that exist with a feature of CPUID leaf 1 ECX or leaf 7 EBX only. */
static const struct {
	u64 cr4;
	u32 leaf, bit;
	bool ebx;
} control_features[] = {
	{ X86_CR4_PCIDE, CPUID_LEAF_FEATURES, 17, false },
	{ X86_CR4_FSGSBASE, CPUID_LEAF_EXT_FEATURES, 0, true },
	{ X86_CR4_SMEP, CPUID_LEAF_EXT_FEATURES, 7, true },
	{ X86_CR4_SMAP, CPUID_LEAF_EXT_FEATURES, 20, true },
};

static u64 control_cr4_valid(const struct soft_cpu *c)
{
	u64 valid = CR4_VALID;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(control_features); i++) {
		const struct cpuid_entry *e = cpuid_find(&c->vcpu->cpuid, control_features[i].leaf, 0);

		if (e && (control_features[i].ebx ? e->ebx : e->ecx) & BIT(control_features[i].bit))
			valid |= control_features[i].cr4;
	}
	return valid;
}

/* --- writes; SOFT_FAULT with #GP(0) --- */

/* Paging goes on or off with IA-32e mode as EFER.LME says (SDM 3A 9.8.5). */
static bool control_paging(struct soft_cpu *c, bool on)
{
	bool code64 = c->seg[SEG_CS].attr & SEG_ATTR_L;
	u16 tss = c->tr.attr & SEG_ATTR_TYPE;

	if (!on) {
		if ((soft_long(c) && c->mode == MODE_64) || c->cr4 & X86_CR4_PCIDE)
			return false;
		c->efer &= ~X86_EFER_LMA;
		return true;
	}
	if (!(c->efer & X86_EFER_LME))
		return true;
	if (!(c->cr4 & X86_CR4_PAE) || code64 || tss == SYS_TSS16 || tss == SYS_TSS16_BUSY)
		return false;
	c->efer |= X86_EFER_LMA;
	return true;
}

static int control_write_cr0(struct soft_cpu *c, u64 value)
{
	u64 old = c->cr0, changed;

	if (value >> 32)
		return soft_fault_error(c, VEC_GP, 0);
	value = (value & CR0_VALID) | X86_CR0_ET;
	changed = value ^ old;
	if ((value & X86_CR0_PG && !(value & X86_CR0_PE)) || (value & X86_CR0_NW && !(value & X86_CR0_CD)))
		return soft_fault_error(c, VEC_GP, 0);
	if (changed & X86_CR0_PG && !control_paging(c, value & X86_CR0_PG))
		return soft_fault_error(c, VEC_GP, 0);
	c->cr0 = value;
	/* Real mode has privilege level 0, and protected mode starts with it. */
	if (changed & X86_CR0_PE)
		soft_set_cpl(c, 0);
	if (changed & old & X86_CR0_PG)
		soft_flush_all(c, FLUSH_CR0);
	else if (changed & (X86_CR0_PG | X86_CR0_WP | X86_CR0_PE))
		soft_drop_shortcuts(c);
	soft_update_context(c);
	return SOFT_OK;
}

static int control_write_cr3(struct soft_cpu *c, u64 value)
{
	u64 reserved = 0;

	if (soft_long(c)) {
		reserved = c->tlb->phys_reserved | 0x7ff0000000000000ull;
		if (!(c->cr4 & X86_CR4_PCIDE))
			reserved |= X86_CR3_NOFLUSH;
	}
	if (value & reserved)
		return soft_fault_error(c, VEC_GP, 0);
	soft_spend(c, TIME_flush, cost(&c->svm->cost, cr3_write));
	soft_load_cr3(c, value);
	return SOFT_OK;
}

static int control_write_cr4(struct soft_cpu *c, u64 value)
{
	u64 changed = value ^ c->cr4;

	if (value & ~control_cr4_valid(c))
		return soft_fault_error(c, VEC_GP, 0);
	if (soft_long(c) && !(value & X86_CR4_PAE))
		return soft_fault_error(c, VEC_GP, 0);
	if (changed & value & X86_CR4_PCIDE && (!soft_long(c) || c->cr3 & X86_CR3_PCID_MASK))
		return soft_fault_error(c, VEC_GP, 0);
	c->cr4 = value;
	if (changed & X86_CR4_PGE || changed & ~value & X86_CR4_PCIDE)
		soft_flush_all(c, FLUSH_CR4);
	else if (changed & X86_CR4_PAE || changed & value & X86_CR4_SMEP)
		soft_flush_pcid(c, value & X86_CR4_PCIDE ? c->cr3 & X86_CR3_PCID_MASK : 0, FLUSH_CR4);
	/* What else changes rights: they are looked up anew, in the same entries. */
	if (changed & (X86_CR4_SMEP | X86_CR4_SMAP | X86_CR4_PAE | X86_CR4_PSE | X86_CR4_PCIDE))
		soft_drop_shortcuts(c);
	soft_update_context(c);
	return SOFT_OK;
}

static int control_write_cr8(struct soft_cpu *c, u64 value)
{
	if (value > 15)
		return soft_fault_error(c, VEC_GP, 0);
	vcpu_set_cr8(c->vcpu, (u8)value);
	/* A lower priority may let an interrupt through. */
	if (vcpu_turn_needed(c->vcpu, c->until))
		soft_break(c);
	return SOFT_OK;
}

static int control_write(struct soft_cpu *c, u32 cr, u64 value)
{
	switch (cr) {
	case 0:
		return control_write_cr0(c, value);
	case 2:
		c->cr2 = value;
		return SOFT_OK;
	case 3:
		return control_write_cr3(c, value);
	case 4:
		return control_write_cr4(c, value);
	default:
		return control_write_cr8(c, value);
	}
}

static u64 control_read(struct soft_cpu *c, u32 cr)
{
	switch (cr) {
	case 0:
		return c->cr0;
	case 2:
		return c->cr2;
	case 3:
		return c->cr3;
	case 4:
		return c->cr4;
	default:
		return vcpu_get_cr8(c->vcpu);
	}
}

/* --- MOV CR and its relatives; aux = number of the register --- */

static int op_mov_to_cr(struct soft_cpu *c, const struct soft_op *op)
{
	u64 value = c->gpr[op->src], next = soft_op_next(c, op);

	soft_sync(c, op);
	if (c->cpl)
		return soft_raise_error(c, op, VEC_GP, 0);
	if (control_write(c, op->aux, c->mode == MODE_64 ? value : (u32)value))
		return soft_faulted(c, op);
	return soft_end(c, op, next);
}

static int op_mov_from_cr(struct soft_cpu *c, const struct soft_op *op)
{
	u64 value;

	if (c->cpl)
		return soft_raise_error(c, op, VEC_GP, 0);
	value = control_read(c, op->aux);
	c->gpr[op->dst] = c->mode == MODE_64 ? value : (u32)value;
	SOFT_NEXT(c, op);
}

static int op_clts(struct soft_cpu *c, const struct soft_op *op)
{
	if (c->cpl)
		return soft_raise_error(c, op, VEC_GP, 0);
	c->cr0 &= ~X86_CR0_TS;
	soft_update_fpu(c);
	SOFT_NEXT(c, op);
}

/* Sets PE but cannot clear it (SDM 2A LMSW). */
static int op_lmsw(struct soft_cpu *c, const struct soft_op *op)
{
	const u64 low = X86_CR0_PE | X86_CR0_MP | X86_CR0_EM | X86_CR0_TS;
	u64 value = c->gpr[op->src], next = soft_op_next(c, op);

	soft_sync(c, op);
	if (c->cpl)
		return soft_raise_error(c, op, VEC_GP, 0);
	if (op->aux) {
		if (soft_load_slow(c, op, soft_ea(c, op), 2))
			return soft_faulted(c, op);
		value = c->val[0];
	}
	value = (c->cr0 & ~low) | (value & low) | (c->cr0 & X86_CR0_PE);
	if (control_write_cr0(c, value))
		return soft_faulted(c, op);
	return soft_end(c, op, next);
}

static int op_smsw(struct soft_cpu *c, const struct soft_op *op)
{
	if (op->aux) {
		c->val[0] = c->cr0 & 0xffff;
		if (soft_store_slow(c, op, soft_ea(c, op), c->val, 2))
			return soft_faulted(c, op);
	} else if (op->size == 2) {
		set16(c, op->dst, (u16)c->cr0);
	} else {
		c->gpr[op->dst] = c->cr0;
	}
	SOFT_NEXT(c, op);
}

/* --- debug registers: kept, with their fixed bits (SDM 3B 17.2 [18.2]); breakpoints do not fire --- */

/* DR4 and DR5 are DR6 and DR7 but with CR4.DE (17.2.2). */
static int control_dr(struct soft_cpu *c, const struct soft_op *op, u32 *dr)
{
	*dr = op->aux;
	if (*dr == 4 || *dr == 5) {
		if (c->cr4 & X86_CR4_DE)
			return soft_raise(c, op, VEC_UD);
		*dr += 2;
	}
	if (c->cpl)
		return soft_raise_error(c, op, VEC_GP, 0);
	return SOFT_OK;
}

static int op_mov_to_dr(struct soft_cpu *c, const struct soft_op *op)
{
	u64 value = c->gpr[op->src];
	u32 dr;
	int ret = control_dr(c, op, &dr);

	if (ret)
		return ret;
	if (c->mode != MODE_64)
		value = (u32)value;
	if (dr >= 6 && value >> 32)
		return soft_raise_error(c, op, VEC_GP, 0);
	if (dr == 6)
		value = (value & 0xe00f) | DR6_FIXED;
	else if (dr == 7)
		value = (value & 0xffff23ff) | DR7_FIXED;
	c->dr[dr] = value;
	return soft_end(c, op, soft_op_next(c, op));
}

static int op_mov_from_dr(struct soft_cpu *c, const struct soft_op *op)
{
	u32 dr;
	int ret = control_dr(c, op, &dr);

	if (ret)
		return ret;
	c->gpr[op->dst] = c->mode == MODE_64 ? c->dr[dr] : (u32)c->dr[dr];
	return soft_end(c, op, soft_op_next(c, op));
}

/* --- flushes --- */

static int op_invlpg(struct soft_cpu *c, const struct soft_op *op)
{
	u64 va = soft_ea(c, op);

	soft_sync(c, op);
	if (c->cpl)
		return soft_raise_error(c, op, VEC_GP, 0);
	soft_spend(c, TIME_flush, cost(&c->svm->cost, invlpg));
	if (c->mode != MODE_64 || soft_canonical(va))
		soft_flush_page(c, va, FLUSH_INVLPG);
	return soft_end(c, op, soft_op_next(c, op));
}

/* SDM 2A INVPCID: the descriptor has the PCID in its first 8 bytes, the address behind them. */
static int op_invpcid(struct soft_cpu *c, const struct soft_op *op)
{
	u64 type = c->mode == MODE_64 ? c->gpr[op->src] : get32(c, op->src), pcid, va;

	soft_sync(c, op);
	if (c->cpl)
		return soft_raise_error(c, op, VEC_GP, 0);
	if (soft_load_slow(c, op, soft_ea(c, op), 16))
		return soft_faulted(c, op);
	pcid = c->val[0];
	va = c->val[1];
	if (type > 3 || pcid & ~X86_CR3_PCID_MASK || (type < 2 && pcid && !(c->cr4 & X86_CR4_PCIDE)) ||
	    (type == 0 && !soft_canonical(va)))
		return soft_raise_error(c, op, VEC_GP, 0);
	soft_spend(c, TIME_flush, cost(&c->svm->cost, invpcid));
	switch (type) {
	case 0:
		soft_flush_page_pcid(c, va, (u16)pcid);
		break;
	case 1:
		soft_flush_pcid(c, (u16)pcid, FLUSH_INVPCID_SINGLE);
		break;
	case 2:
		soft_flush_all(c, FLUSH_INVPCID_ALL);
		break;
	case 3:
		soft_flush_nonglobal(c, FLUSH_INVPCID_ALL_NONGLOBAL);
		break;
	}
	return soft_end(c, op, soft_op_next(c, op));
}

/* --- decoding --- */

static int control_register(const struct soft_decode *d, u32 i, ZydisRegisterClass class)
{
	if (!soft_is_reg(d, i) || ZydisRegisterGetClass(d->arg[i].reg.value) != class)
		return -1;
	return ZydisRegisterGetId(d->arg[i].reg.value);
}

static bool control_decode_mov(struct soft_decode *d, struct soft_op *op)
{
	int to_cr = control_register(d, 0, ZYDIS_REGCLASS_CONTROL), from_cr = control_register(d, 1, ZYDIS_REGCLASS_CONTROL);
	int to_dr = control_register(d, 0, ZYDIS_REGCLASS_DEBUG), from_dr = control_register(d, 1, ZYDIS_REGCLASS_DEBUG);
	int cr = to_cr >= 0 ? to_cr : from_cr, dr = to_dr >= 0 ? to_dr : from_dr;

	if (cr < 0 && dr < 0)
		return false;
	d->ends_block = true;
	if (to_cr >= 0 || to_dr >= 0)
		op->src = soft_decode_reg(d->arg[1].reg.value);
	else
		op->dst = soft_decode_reg(d->arg[0].reg.value);
	if (cr >= 0) {
		op->aux = (u8)cr;
		op->fn = to_cr >= 0 ? op_mov_to_cr : op_mov_from_cr;
		d->ends_block = to_cr >= 0;
		if (cr != 0 && cr != 2 && cr != 3 && cr != 4 && cr != 8)
			soft_decode_invalid(op);
	} else {
		op->aux = (u8)dr;
		op->fn = to_dr >= 0 ? op_mov_to_dr : op_mov_from_dr;
		if (dr > 7)
			soft_decode_invalid(op);
	}
	return true;
}

bool soft_decode_control(struct soft_decode *d, struct soft_op *op)
{
	switch (d->insn->mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
		return control_decode_mov(d, op);
	case ZYDIS_MNEMONIC_CLTS:
		op->fn = op_clts;
		return true;
	case ZYDIS_MNEMONIC_LMSW:
	case ZYDIS_MNEMONIC_SMSW:
		op->size = (u8)(d->insn->operand_width / 8);
		op->aux = soft_is_mem(d, 0);
		if (op->aux) {
			soft_decode_mem(d, op, 0);
			d->accesses = 1;
		} else {
			op->src = op->dst = soft_decode_reg(d->arg[0].reg.value);
		}
		d->ends_block = d->insn->mnemonic == ZYDIS_MNEMONIC_LMSW;
		op->fn = d->ends_block ? op_lmsw : op_smsw;
		return true;
	case ZYDIS_MNEMONIC_INVLPG:
		soft_decode_mem(d, op, 0);
		op->fn = op_invlpg;
		d->ends_block = true;
		return true;
	case ZYDIS_MNEMONIC_INVPCID:
		op->src = soft_decode_reg(d->arg[0].reg.value);
		soft_decode_mem(d, op, 1);
		op->fn = op_invpcid;
		d->accesses = 1;
		d->ends_block = true;
		return true;
	default:
		return false;
	}
}
