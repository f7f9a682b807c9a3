/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From Zydis's view of an instruction to a struct soft_op. Each family of
 * instructions has its own function; decode.c asks them in turn.
 */
#ifndef SOFT_DECODE_H
#define SOFT_DECODE_H

#include <Zydis/Zydis.h>

#include "soft/soft.h"

struct soft_decode {
	const ZydisDecodedInstruction *insn;
	const ZydisDecodedOperand *arg;	/* insn->operand_count of them, the visible ones first */
	const u8 *bytes;		/* insn->length of them */
	enum soft_mode mode;
	bool ends_block;		/* set by the family: nothing may follow in this block */
	bool begins_block;		/* set by the family: must be the first of its block (CLI, POPF: may close the window) */
	u8 accesses;			/* set by the family: data accesses it makes, unless it counts them itself */
};

/* What a block's maker has to know of a decoded instruction. */
struct soft_insn {
	bool ends_block, begins_block;
	bool quiet;			/* struct soft_block's */
	u8 accesses;
};

/* Bytes that an instruction may have. */
#define INSN_MAX	15u

/*
 * Decode one instruction from `room` bytes, INSN_MAX at most, into op. False if more bytes
 * would be needed: it does not end within `room`. Bytes that are no instruction become one that
 * raises #UD, what is longer than INSN_MAX one that raises #GP; what is not implemented, one that stops the run. decode.c
 */
bool soft_decode_insn(const ZydisDecoder *decoder, u32 mode, const u8 *bytes, u32 room, struct soft_op *op,
		      struct soft_insn *in);
/* Make op raise #UD. */
void soft_decode_invalid(struct soft_op *op);
/* A finished block: pairs that can be executed as one (compare and branch). ops-flow.c */
void soft_decode_fuse(struct soft_op *op, u32 nr);

/*
 * op is zeroed but n, len, pc; base and index are GPR_ZERO. True and op->fn set if
 * the family knows the instruction. What no family knows stops the run.
 */
bool soft_decode_integer(struct soft_decode *d, struct soft_op *op);	/* ops-int.c, ops-flow.c, ops-string.c */
bool soft_decode_system(struct soft_decode *d, struct soft_op *op);	/* ops-system.c */
bool soft_decode_sse(struct soft_decode *d, struct soft_op *op);	/* ops-sse.c */
bool soft_decode_x87(struct soft_decode *d, struct soft_op *op);	/* ops-x87.c */

/* Fill op's base, index, shift, disp, amode from memory operand arg[i]. */
void soft_decode_mem(struct soft_decode *d, struct soft_op *op, u32 i);
/* gpr[] index of a 16-, 32- or 64-bit register; byte offset into gpr[] of an 8-bit one. */
u8 soft_decode_reg(ZydisRegister reg);
static inline bool soft_is_reg(const struct soft_decode *d, u32 i)
{
	return i < d->insn->operand_count_visible && d->arg[i].type == ZYDIS_OPERAND_TYPE_REGISTER;
}
static inline bool soft_is_mem(const struct soft_decode *d, u32 i)
{
	return i < d->insn->operand_count_visible && d->arg[i].type == ZYDIS_OPERAND_TYPE_MEMORY;
}
static inline bool soft_is_imm(const struct soft_decode *d, u32 i)
{
	return i < d->insn->operand_count_visible && d->arg[i].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
}

#endif
