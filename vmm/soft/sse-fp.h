/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Running one host instruction under the guest's MXCSR; for ops-sse-fp.c and
 * ops-sse-convert.c.
 *
 * The host runs with every exception masked: a signal would be the only other way to
 * hear of one. Rounding, DAZ and FTZ are the guest's. What its own masks would have
 * changed is worked out afterwards (SDM 1 11.5.2, 11.5.3).
 */
#ifndef SOFT_SSE_FP_H
#define SOFT_SSE_FP_H

#include "soft/sse.h"

enum fp_lanes { FP_NONE, FP_SS, FP_PS, FP_SD, FP_PD };

/* Around the instruction, in the same asm, so that nothing can come between. */
#define FP_ENTER	"stmxcsr %[host]\n\tldmxcsr %[run]\n\t"
#define FP_EXIT		"\n\tstmxcsr %[run]\n\tldmxcsr %[host]"
#define FP_STATE(c)	[run] "+m" ((c)->mxcsr_run), [host] "=m" ((c)->mxcsr_host)

/*
 * With underflow unmasked FTZ is without effect (SDM 1 10.2.3.3), but a masked run would
 * obey it.
 */
static inline void fp_begin(struct soft_cpu *c)
{
	u32 g = *sse_mxcsr(c), run = (g & ~MXCSR_FLAGS) | MXCSR_MASKS;

	if (unlikely((g & MXCSR_MASKS) != MXCSR_MASKS) && !(g >> 7 & MXCSR_UE))
		run &= ~MXCSR_FTZ;
	c->mxcsr_run = run;
}

/* Some exception is unmasked: the slow part of fp_end(). ops-sse-fp.c */
bool fp_unmasked(struct soft_cpu *c, vec result, enum fp_lanes lanes);

/*
 * Collect the flags. True if the instruction raises #XM and its result must not be
 * committed.
 */
static inline bool fp_end(struct soft_cpu *c, vec result, enum fp_lanes lanes)
{
	u32 *g = sse_mxcsr(c);

	if (unlikely((*g & MXCSR_MASKS) != MXCSR_MASKS))
		return fp_unmasked(c, result, lanes);
	*g |= c->mxcsr_run & MXCSR_FLAGS;
	return false;
}

/* #XM, or #UD without CR4.OSXMMEXCPT (SDM 3A 2.5). ops-sse-fp.c */
int fp_raise(struct soft_cpu *c, const struct soft_op *op);

#endif
