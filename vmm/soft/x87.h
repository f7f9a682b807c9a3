/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The x87's registers in the FXSAVE layout of soft_cpu.fx, and what is checked before
 * its instructions. Included by ops-x87*.c and ops-fxsave.c. No state.
 */
#ifndef SOFT_X87_H
#define SOFT_X87_H

#include "soft/sse.h"

/* Status word (SDM 1 8.1.3). ES and B are kept equal to "an unmasked flag is set". */
#define FSW_FLAGS	0x003fu
#define FSW_ES		0x0080u
#define FSW_TOP		0x3800u
#define FSW_TOP_SHIFT	11
#define FSW_B		0x8000u
/* Control word: bits that can be set, and bit 6, which is always. */
#define FCW_VALID	0x1f3fu
#define FCW_FIXED	0x0040u
#define FCW_INIT	0x037fu

/* A 16-bit field of the FXSAVE area. */
static inline u16 *x87_u16(struct soft_cpu *c, u32 offset)
{
	return (u16 *)(c->fx + offset);
}

/*
 * Set control and status word as FLDCW, FLDENV, FRSTOR and FXRSTOR do: a flag whose mask
 * is clear is pending at once. The registers lie in the order of the stack, so they move
 * if TOP does. ops-x87.c
 */
void x87_set_control(struct soft_cpu *c, u16 fcw, u16 fsw);
/* FNINIT, and the end of FNSAVE. ops-x87.c */
void x87_init(struct soft_cpu *c);

/* First line of an operation's function: #NM (SDM 3A 2.5). */
#define X87_READY(c, op) do {							\
	if (unlikely((c)->fpu_trap))						\
		return soft_raise((c), (op), (c)->fpu_trap);			\
} while (0)

/*
 * The same for one that waits: #MF for what an earlier one left pending. With CR0.NE
 * clear real hardware asks the interrupt controller for IRQ 13 instead; no kernel since
 * the 486 wants that, and here it is #MF too.
 */
#define X87_WAIT(c, op) do {							\
	X87_READY((c), (op));							\
	if (unlikely(*x87_u16((c), FX_FSW) & FSW_ES))				\
		return soft_raise((c), (op), VEC_MF);				\
} while (0)

/* Tag word of FNSAVE (two bits a register) from FXSAVE's (one bit), and back (SDM 1 10.5.1.1, 2A FXSAVE). */
u16 x87_full_tags(const struct soft_cpu *c);
u8 x87_short_tags(u16 tags);

/* FNSTENV, FLDENV, FNSAVE, FRSTOR: ops-x87-env.c */
bool x87_decode_env(struct soft_decode *d, struct soft_op *op);

#endif
