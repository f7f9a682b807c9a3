// SPDX-License-Identifier: GPL-2.0-only
/*
 * From bytes to operations, by way of Zydis. What Zydis does not know is no
 * instruction and raises #UD (#GP if it is too long), as does what needs a feature that no CPU model of this
 * VMM shows. What is an instruction, and not implemented, stops the run.
 */
#include "soft/decode.h"

#include <string.h>

#include "base/log.h"
#include "soft/ops.h"

static int op_invalid(struct soft_cpu *c, const struct soft_op *op)
{
	return soft_raise(c, op, VEC_UD);
}

void soft_decode_invalid(struct soft_op *op)
{
	op->fn = op_invalid;
	if (!op->len)
		op->len = 1;
}

/* More than 15 bytes: #GP(0), whatever they would mean (SDM 3A 6.15, #GP). */
static int op_too_long(struct soft_cpu *c, const struct soft_op *op)
{
	return soft_raise_error(c, op, VEC_GP, 0);
}

static int op_unimplemented(struct soft_cpu *c, const struct soft_op *op)
{
	u64 rip = soft_op_rip(c, op);
	GString *hex = g_string_new(NULL);
	u8 byte[INSN_MAX];
	gpa_t gpa;
	u32 i;

	for (i = 0; i < op->len; i++) {
		u8 *hva;

		byte[i] = 0;
		if (soft_peek(c, rip + c->seg[SEG_CS].base + i, &gpa) && soft_page_of(c->svm, gpa, &hva))
			byte[i] = *hva;
		g_string_append_printf(hex, "%s%02x", i ? " " : "", byte[i]);
	}
	fb_err("soft: vCPU %u: no such instruction in this engine: %s (%s) at rip 0x%llx", c->vcpu->id, hex->str,
	       ZydisMnemonicGetString((ZydisMnemonic)op->imm), (unsigned long long)rip);
	g_string_free(hex, TRUE);
	soft_faulted(c, op);
	c->leave = RUN_ERROR;
	return SOFT_LEAVE;
}

u8 soft_decode_reg(ZydisRegister reg)
{
	switch (ZydisRegisterGetClass(reg)) {
	case ZYDIS_REGCLASS_GPR8:
		if (reg >= ZYDIS_REGISTER_AH && reg <= ZYDIS_REGISTER_BH)
			return (u8)((reg - ZYDIS_REGISTER_AH) * 8 + 1);
		/* AL CL DL BL, then AH..BH, then SPL..R15B. */
		if (reg <= ZYDIS_REGISTER_BL)
			return (u8)((reg - ZYDIS_REGISTER_AL) * 8);
		return (u8)((reg - ZYDIS_REGISTER_SPL + 4) * 8);
	default:
		return (u8)ZydisRegisterGetId(reg);
	}
}

static u8 soft_decode_segment(ZydisRegister reg)
{
	return (u8)ZydisRegisterGetId(reg);
}

void soft_decode_mem(struct soft_decode *d, struct soft_op *op, u32 i)
{
	const ZydisDecodedOperandMem *m = &d->arg[i].mem;
	s64 disp = m->disp.has_displacement ? m->disp.value : 0;

	op->base = GPR_ZERO;
	op->index = GPR_ZERO;
	op->amode = 0;
	if (m->base == ZYDIS_REGISTER_RIP || m->base == ZYDIS_REGISTER_EIP) {
		op->base = GPR_PAGE;
		if (disp + op->pc + (s64)op->len == (s32)(disp + op->pc + (s64)op->len))
			disp += op->pc + (s64)op->len;
		else
			op->amode |= AMODE_RIP;
	} else if (m->base != ZYDIS_REGISTER_NONE) {
		op->base = soft_decode_reg(m->base);
	}
	if (m->index != ZYDIS_REGISTER_NONE) {
		op->index = soft_decode_reg(m->index);
		op->shift = (u8)__builtin_ctz(m->scale ? m->scale : 1);
	}
	op->disp = (s32)disp;
	if (d->insn->address_width == 32)
		op->amode |= AMODE_32;
	else if (d->insn->address_width == 16)
		op->amode |= AMODE_16;
	if (d->mode != MODE_64)
		op->amode |= AMODE_LIN32 | (u8)(1 + soft_decode_segment(m->segment));
	else if (m->segment == ZYDIS_REGISTER_FS || m->segment == ZYDIS_REGISTER_GS)
		op->amode |= (u8)(1 + soft_decode_segment(m->segment));
}

/* Instructions of features that no CPU model shows (core/cpuid-model.c). */
static bool soft_feature_absent(const ZydisDecodedInstruction *insn)
{
	if (insn->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY)
		return true;	/* VEX and later: CR4.OSXSAVE is never set; 3DNow! is not shown */
	switch (insn->meta.isa_ext) {
	case ZYDIS_ISA_EXT_SSE3:
	case ZYDIS_ISA_EXT_SSSE3:
	case ZYDIS_ISA_EXT_SSE4:
	case ZYDIS_ISA_EXT_SSE4A:
	case ZYDIS_ISA_EXT_AES:
	case ZYDIS_ISA_EXT_AMD3DNOW:
	case ZYDIS_ISA_EXT_GFNI:
	case ZYDIS_ISA_EXT_PADLOCK:
	case ZYDIS_ISA_EXT_PCLMULQDQ:
	case ZYDIS_ISA_EXT_SHA:
	case ZYDIS_ISA_EXT_MOVBE:
	case ZYDIS_ISA_EXT_ADOX_ADCX:
	case ZYDIS_ISA_EXT_XSAVE:
	case ZYDIS_ISA_EXT_XSAVEC:
	case ZYDIS_ISA_EXT_XSAVEOPT:
	case ZYDIS_ISA_EXT_XSAVES:
	case ZYDIS_ISA_EXT_VTX:
	case ZYDIS_ISA_EXT_SVM:
	case ZYDIS_ISA_EXT_SMX:
	case ZYDIS_ISA_EXT_SGX:
	case ZYDIS_ISA_EXT_RTM:
	case ZYDIS_ISA_EXT_PKU:
	case ZYDIS_ISA_EXT_CLFLUSHOPT:
	case ZYDIS_ISA_EXT_CLWB:
	case ZYDIS_ISA_EXT_CLZERO:
	case ZYDIS_ISA_EXT_RDPID:
	case ZYDIS_ISA_EXT_WAITPKG:
	case ZYDIS_ISA_EXT_SERIALIZE:
	case ZYDIS_ISA_EXT_MOVDIR:
	case ZYDIS_ISA_EXT_ENQCMD:
	case ZYDIS_ISA_EXT_UINTR:
	case ZYDIS_ISA_EXT_HRESET:
	case ZYDIS_ISA_EXT_KEYLOCKER:
	case ZYDIS_ISA_EXT_KEYLOCKER_WIDE:
	case ZYDIS_ISA_EXT_MCOMMIT:
	case ZYDIS_ISA_EXT_MONITORX:
	case ZYDIS_ISA_EXT_RDPRU:
	case ZYDIS_ISA_EXT_SNP:
	case ZYDIS_ISA_EXT_TSX_LDTRK:
	case ZYDIS_ISA_EXT_PCONFIG:
	case ZYDIS_ISA_EXT_INVPCID:
		break;
	default:
		return insn->mnemonic == ZYDIS_MNEMONIC_ENCLV;
	}
	/* INVPCID is shown, and POPCNT and CRC32 are in a set of their own within SSE4. */
	return insn->meta.isa_ext != ZYDIS_ISA_EXT_INVPCID && insn->mnemonic != ZYDIS_MNEMONIC_POPCNT;
}

bool soft_decode_integer(struct soft_decode *d, struct soft_op *op)
{
	return soft_decode_mov(d, op) || soft_decode_alu(d, op) || soft_decode_flow(d, op) ||
	       soft_decode_stack(d, op) || soft_decode_shift(d, op) || soft_decode_mul(d, op) ||
	       soft_decode_bit(d, op) || soft_decode_atomic(d, op) || soft_decode_string(d, op) ||
	       soft_decode_decimal(d, op);
}

static bool soft_decode_known(struct soft_decode *d, struct soft_op *op)
{
	static bool (*const family[])(struct soft_decode *d, struct soft_op *op) = {
		soft_decode_integer, soft_decode_sse, soft_decode_system, soft_decode_x87,
	};
	const struct soft_decode clean_d = *d;
	const struct soft_op clean = *op;
	u32 i;

	if (soft_feature_absent(d->insn)) {
		soft_decode_invalid(op);
		return true;
	}
	/* One that does not know the instruction may have written into op and d all the same. */
	for (i = 0; i < ARRAY_SIZE(family); i++) {
		if (family[i](d, op))
			return true;
		*d = clean_d;
		*op = clean;
	}
	return false;
}

/* Does the instruction do nothing but read memory and change general registers and flags? What is not sure does more. */
static bool soft_insn_quiet(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *arg)
{
	u32 i;

	switch (insn->meta.category) {
	case ZYDIS_CATEGORY_BINARY:
	case ZYDIS_CATEGORY_BITBYTE:
	case ZYDIS_CATEGORY_CMOV:
	case ZYDIS_CATEGORY_COND_BR:
	case ZYDIS_CATEGORY_CONVERT:
	case ZYDIS_CATEGORY_DATAXFER:
	case ZYDIS_CATEGORY_LOGICAL:
	case ZYDIS_CATEGORY_NOP:
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_ROTATE:
	case ZYDIS_CATEGORY_SETCC:
	case ZYDIS_CATEGORY_SHIFT:
	case ZYDIS_CATEGORY_UNCOND_BR:
	case ZYDIS_CATEGORY_WIDENOP:
		break;
	default:
		if (insn->mnemonic != ZYDIS_MNEMONIC_PAUSE && insn->mnemonic != ZYDIS_MNEMONIC_LEA)
			return false;
	}
	if (insn->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR || insn->attributes & ZYDIS_ATTRIB_HAS_LOCK)
		return false;
	for (i = 0; i < insn->operand_count; i++) {
		if (arg[i].type == ZYDIS_OPERAND_TYPE_MEMORY && arg[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			return false;
		if (arg[i].type != ZYDIS_OPERAND_TYPE_REGISTER)
			continue;
		switch (ZydisRegisterGetClass(arg[i].reg.value)) {
		case ZYDIS_REGCLASS_GPR8:
		case ZYDIS_REGCLASS_GPR16:
		case ZYDIS_REGCLASS_GPR32:
		case ZYDIS_REGCLASS_GPR64:
		case ZYDIS_REGCLASS_FLAGS:
		case ZYDIS_REGCLASS_IP:
			break;
		default:
			return false;
		}
	}
	return true;
}

bool soft_decode_insn(const ZydisDecoder *decoder, u32 mode, const u8 *bytes, u32 room, struct soft_op *op,
		      struct soft_insn *in)
{
	ZydisDecodedOperand arg[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction insn;
	struct soft_decode d = { .insn = &insn, .arg = arg, .bytes = bytes, .mode = (enum soft_mode)mode };
	struct soft_op blank = *op;
	ZyanStatus status;

	memset(in, 0, sizeof(*in));
	status = ZydisDecoderDecodeFull(decoder, bytes, room, &insn, arg);
	if (status == ZYDIS_STATUS_NO_MORE_DATA && room < INSN_MAX)
		return false;
	if (!ZYAN_SUCCESS(status)) {
		soft_decode_invalid(op);
		if (status == ZYDIS_STATUS_NO_MORE_DATA || status == ZYDIS_STATUS_INSTRUCTION_TOO_LONG)
			op->fn = op_too_long;
		in->ends_block = true;
		return true;
	}
	op->len = blank.len = insn.length & 15u;
	if (!soft_decode_known(&d, op)) {
		*op = blank;
		op->fn = op_unimplemented;
		op->imm = insn.mnemonic;
		d.ends_block = true;
	}
	/* Those functions have a destination in memory, and no use for dst. */
	if (insn.attributes & ZYDIS_ATTRIB_HAS_LOCK || (insn.mnemonic == ZYDIS_MNEMONIC_XCHG && d.accesses))
		op->dst = DST_LOCKED;
	in->ends_block = d.ends_block || op->fn == op_invalid;
	in->begins_block = d.begins_block;
	in->accesses = d.accesses;
	in->quiet = op->fn != op_unimplemented && op->fn != op_invalid && soft_insn_quiet(&insn, arg);
	return true;
}
