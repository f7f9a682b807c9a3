// SPDX-License-Identifier: GPL-2.0-only
/* IN, OUT, INS, OUTS (SDM 1 19 [18]; 2A IN, INS; 2B OUT, OUTS). */
#include "soft/ops.h"
#include "soft/profile.h"
#include "soft/system.h"

/* How many elements one execution of REP INS or OUTS moves before events are looked at. */
#define IO_BATCH	64u

/* aux */
#define IO_DX		BIT(0)	/* port in DX, else op->imm */
#define IO_REP		BIT(1)
#define IO_OUT		BIT(2)
#define IO_ADDR_SHIFT	4	/* log2 of the address size in bytes, for INS and OUTS */

/* May this vCPU access the ports [port, port + len)? By IOPL, then by the TSS's bitmap (19.5.2 [18.5.2]). */
static int io_allowed(struct soft_cpu *c, const struct soft_op *op, u16 port, u32 len)
{
	u16 map, bits, type = c->tr.attr & SEG_ATTR_TYPE;

	if (!soft_protected(c) || c->cpl <= soft_iopl(c))
		return SOFT_OK;
	if ((type != SYS_TSS && type != SYS_TSS_BUSY) || c->tr.limit < 103)
		return soft_fault_error(c, VEC_GP, 0);
	if (soft_sys_load(c, op, c->tr.base + 102, &map, 2))
		return SOFT_FAULT;
	/* Two bytes are always read, so the second must be within the limit, too. */
	if (map + port / 8 + 1u > c->tr.limit)
		return soft_fault_error(c, VEC_GP, 0);
	if (soft_sys_load(c, op, c->tr.base + map + port / 8, &bits, 2))
		return SOFT_FAULT;
	if (bits >> port % 8 & (BIT(len) - 1))
		return soft_fault_error(c, VEC_GP, 0);
	return SOFT_OK;
}

/* One access, and what it costs and causes. */
static u32 io_access(struct soft_cpu *c, u16 port, bool write, u32 value, u32 len)
{
	/* It may be a mark: what went by until here is of the phase that ends. */
	soft_sample(c, 0);
	vcpu_pio(c->vcpu, port, write, &value, len);
	soft_spend(c, TIME_device, soft_units_of(c->svm, cost(&c->svm->cost, io)));
	vcpu_count_exit(c->vcpu, COUNTER_vm_exits);
	if (vcpu_turn_needed(c->vcpu, c->until))
		soft_break(c);
	return value;
}

static u16 io_port(const struct soft_cpu *c, const struct soft_op *op)
{
	return op->aux & IO_DX ? get16(c, X86_RDX) : (u16)op->imm;
}

static int op_in(struct soft_cpu *c, const struct soft_op *op)
{
	u16 port = io_port(c, op);
	u32 value;

	soft_sync(c, op);
	if (io_allowed(c, op, port, op->size))
		return soft_faulted(c, op);
	value = io_access(c, port, false, 0, op->size);
	if (op->size == 1)
		set8(c, 8 * X86_RAX, (u8)value);
	else if (op->size == 2)
		set16(c, X86_RAX, (u16)value);
	else
		set32(c, X86_RAX, value);
	return soft_end(c, op, soft_op_next(c, op));
}

static int op_out(struct soft_cpu *c, const struct soft_op *op)
{
	u32 value = op->size == 1 ? (u8)c->gpr[X86_RAX] : op->size == 2 ? get16(c, X86_RAX) : get32(c, X86_RAX);
	u16 port = io_port(c, op);

	soft_sync(c, op);
	if (io_allowed(c, op, port, op->size))
		return soft_faulted(c, op);
	io_access(c, port, true, value, op->size);
	return soft_end(c, op, soft_op_next(c, op));
}

/* --- strings --- */

static u64 io_index(const struct soft_cpu *c, const struct soft_op *op, u32 reg)
{
	u32 log = op->aux >> IO_ADDR_SHIFT;

	return log == 3 ? get64(c, reg) : log == 2 ? get32(c, reg) : get16(c, reg);
}

static void io_set_index(struct soft_cpu *c, const struct soft_op *op, u32 reg, u64 value)
{
	u32 log = op->aux >> IO_ADDR_SHIFT;

	if (log == 3)
		set64(c, reg, value);
	else if (log == 2)
		set32(c, reg, (u32)value);
	else
		set16(c, reg, (u16)value);
}

/* One element of INS (ES:DI) or OUTS (op's segment:SI). op->index is GPR_ZERO, op->base the index register. */
static int io_element(struct soft_cpu *c, const struct soft_op *op, u16 port)
{
	u64 va = soft_ea(c, op);

	if (op->aux & IO_OUT) {
		if (soft_load_slow(c, op, va, op->size))
			return SOFT_FAULT;
		io_access(c, port, true, (u32)c->val[0], op->size);
	} else {
		/* Before the port is read, which cannot be undone. */
		if (soft_check_write(c, op, va, op->size))
			return SOFT_FAULT;
		c->val[0] = io_access(c, port, false, 0, op->size);
		if (soft_store_slow(c, op, va, c->val, op->size))
			return SOFT_FAULT;
	}
	c->accesses++;
	io_set_index(c, op, op->base, io_index(c, op, op->base) +
		     (c->sysflags & X86_EFLAGS_DF ? -(u64)op->size : op->size));
	return SOFT_OK;
}

static int op_io_string(struct soft_cpu *c, const struct soft_op *op)
{
	bool rep = op->aux & IO_REP;
	u16 port = get16(c, X86_RDX);
	u32 i;

	soft_sync(c, op);
	if (io_allowed(c, op, port, op->size))
		return soft_faulted(c, op);
	if (!rep) {
		if (io_element(c, op, port))
			return soft_faulted(c, op);
		return soft_end(c, op, soft_op_next(c, op));
	}
	for (i = 0; i < IO_BATCH && io_index(c, op, X86_RCX); i++) {
		if (io_element(c, op, port))
			return soft_repeat_faulted(c, op, i);
		io_set_index(c, op, X86_RCX, io_index(c, op, X86_RCX) - 1);
		if (c->left <= 0)
			break;
	}
	/* Interrupts come between elements: RIP stays until the count is 0, and they push RF = 1, as str_repeat() says. */
	if (!io_index(c, op, X86_RCX))
		return soft_end(c, op, soft_op_next(c, op));
	c->sysflags |= X86_EFLAGS_RF;
	return soft_end(c, op, soft_op_rip(c, op));
}

/* The memory operand of INS and OUTS is hidden or visible as Zydis likes; find it. */
static bool io_decode_string(struct soft_decode *d, struct soft_op *op, bool out)
{
	u32 i;

	for (i = 0; i < d->insn->operand_count; i++)
		if (d->arg[i].type == ZYDIS_OPERAND_TYPE_MEMORY)
			break;
	if (i == d->insn->operand_count)
		return false;
	soft_decode_mem(d, op, i);
	op->size = (u8)(d->arg[i].size / 8);
	op->aux = (u8)(IO_DX | (out ? IO_OUT : 0) | soft_size_index(d->insn->address_width) << IO_ADDR_SHIFT);
	if (d->insn->attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPNE))
		op->aux |= IO_REP;
	op->fn = op_io_string;
	d->ends_block = true;
	return true;
}

static bool io_decode_plain(struct soft_decode *d, struct soft_op *op, u32 port_arg, u32 data_arg, soft_fn fn)
{
	op->size = (u8)(d->arg[data_arg].size / 8);
	if (soft_is_imm(d, port_arg))
		op->imm = d->arg[port_arg].imm.value.u & 0xff;
	else
		op->aux = IO_DX;
	op->fn = fn;
	d->ends_block = true;
	return true;
}

bool soft_decode_io(struct soft_decode *d, struct soft_op *op)
{
	switch (d->insn->mnemonic) {
	case ZYDIS_MNEMONIC_IN:
		return io_decode_plain(d, op, 1, 0, op_in);
	case ZYDIS_MNEMONIC_OUT:
		return io_decode_plain(d, op, 0, 1, op_out);
	case ZYDIS_MNEMONIC_INSB:
	case ZYDIS_MNEMONIC_INSW:
	case ZYDIS_MNEMONIC_INSD:
		return io_decode_string(d, op, false);
	case ZYDIS_MNEMONIC_OUTSB:
	case ZYDIS_MNEMONIC_OUTSW:
	case ZYDIS_MNEMONIC_OUTSD:
		return io_decode_string(d, op, true);
	default:
		return false;
	}
}
