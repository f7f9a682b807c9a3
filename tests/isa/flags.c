// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which flags the architecture leaves undefined (SDM 1 appendix A, and each
 * instruction's page in SDM 2).
 */
#include "generate.h"

/* A shift or rotate: its count's operand is the last visible one. 0 if it is not known here. */
static u32 count_of(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *arg)
{
	const ZydisDecodedOperand *last = &arg[insn->operand_count_visible - 1];

	if (last->type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return 0;
	return (u32)last->imm.value.u & (insn->operand_width == 64 ? 63 : 31);
}

static bool count_known(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *arg)
{
	return arg[insn->operand_count_visible - 1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
}

u64 gen_flags_after(u64 undefined, const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *arg)
{
	const ZydisAccessedFlags *acc = insn->cpu_flags;
	u64 written = acc ? (acc->modified | acc->set_0 | acc->set_1 | acc->undefined) & ARITH_FLAGS : 0;
	u64 now = 0;
	bool maybe = false;	/* may leave flags as they were */

	switch (insn->mnemonic) {
	case ZYDIS_MNEMONIC_AND: case ZYDIS_MNEMONIC_OR: case ZYDIS_MNEMONIC_XOR: case ZYDIS_MNEMONIC_TEST:
		now = FLAG_AF;
		break;
	case ZYDIS_MNEMONIC_SHL: case ZYDIS_MNEMONIC_SHR: case ZYDIS_MNEMONIC_SAR:
	case ZYDIS_MNEMONIC_SHLD: case ZYDIS_MNEMONIC_SHRD:
		if (count_known(insn, arg) && !count_of(insn, arg))
			return undefined;
		maybe = !count_known(insn, arg);
		now = FLAG_AF;
		if (maybe || count_of(insn, arg) != 1)
			now |= FLAG_OF;
		if (insn->mnemonic != ZYDIS_MNEMONIC_SAR && arg[0].size < 32 &&
		    (maybe || count_of(insn, arg) >= arg[0].size))
			now |= FLAG_CF;
		break;
	case ZYDIS_MNEMONIC_ROL: case ZYDIS_MNEMONIC_ROR: case ZYDIS_MNEMONIC_RCL: case ZYDIS_MNEMONIC_RCR:
		if (count_known(insn, arg) && !count_of(insn, arg))
			return undefined;
		written = FLAG_CF | FLAG_OF;
		maybe = !count_known(insn, arg);
		if (maybe || count_of(insn, arg) != 1)
			now = FLAG_OF;
		break;
	case ZYDIS_MNEMONIC_MUL: case ZYDIS_MNEMONIC_IMUL:
		now = FLAG_SF | FLAG_ZF | FLAG_AF | FLAG_PF;
		break;
	case ZYDIS_MNEMONIC_DIV: case ZYDIS_MNEMONIC_IDIV:
		now = ARITH_FLAGS;
		break;
	case ZYDIS_MNEMONIC_BSF: case ZYDIS_MNEMONIC_BSR:
		now = ARITH_FLAGS & ~FLAG_ZF;
		break;
	case ZYDIS_MNEMONIC_BT: case ZYDIS_MNEMONIC_BTS: case ZYDIS_MNEMONIC_BTR: case ZYDIS_MNEMONIC_BTC:
		written = ARITH_FLAGS & ~FLAG_ZF;
		now = FLAG_OF | FLAG_SF | FLAG_AF | FLAG_PF;
		break;
	case ZYDIS_MNEMONIC_CMPSB: case ZYDIS_MNEMONIC_CMPSW: case ZYDIS_MNEMONIC_CMPSD: case ZYDIS_MNEMONIC_CMPSQ:
	case ZYDIS_MNEMONIC_SCASB: case ZYDIS_MNEMONIC_SCASW: case ZYDIS_MNEMONIC_SCASD: case ZYDIS_MNEMONIC_SCASQ:
		maybe = true;	/* REP with a count of 0 */
		break;
	default:
		break;
	}
	return (maybe ? undefined : undefined & ~written) | now;
}
