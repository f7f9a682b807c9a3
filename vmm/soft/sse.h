/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of SSE and SSE2 share: XMM registers as vectors, the checks before
 * an instruction, loads and stores of 4, 8 and 16 bytes. Included by ops-sse*.c and
 * ops-fxsave.c only.
 *
 * Arithmetic is the host's own: the engine runs on x86-64 only, so each instruction
 * is executed as itself by inline assembly, and results are the host's to the bit.
 * The exceptions are RCPPS, RCPSS, RSQRTPS and RSQRTSS: their results are specified
 * within an error bound only (SDM 2B) and differ between makers of CPUs, hence
 * between hosts.
 */
#ifndef SOFT_SSE_H
#define SOFT_SSE_H

#include "soft/decode.h"
#include "soft/soft-mem.h"

/* 16 bytes in a host register. Accessed at any type, at an address aligned to 16. */
typedef long long vec __attribute__((vector_size(16), may_alias));
/* The same in guest memory: no alignment. */
typedef long long vec_mem __attribute__((vector_size(16), may_alias, aligned(1)));

/* Byte offsets in the FXSAVE area (SDM 1 table 10-2). */
#define FX_FCW		0
#define FX_FSW		2
#define FX_FTW		4
#define FX_FOP		6
#define FX_FIP		8
#define FX_FDP		16
#define FX_MXCSR	24
#define FX_MXCSR_MASK	28
#define FX_ST		32	/* ST(n) at 16 * n from here */
#define FX_XMM		160	/* XMMn likewise */
#define FX_END		416	/* what follows is not the CPU's */

/* MXCSR (SDM 1 10.2.3): flags in bits 0 to 5, their masks in 7 to 12. */
#define MXCSR_FLAGS	0x003fu
#define MXCSR_BEFORE	0x0007u	/* IE, DE, ZE: found before computing */
#define MXCSR_UE	0x0010u
#define MXCSR_MASKS	0x1f80u
#define MXCSR_FTZ	0x8000u
#define MXCSR_VALID	0xffffu	/* bits that may be set: MXCSR_MASK of the CPU model */

#define XMM(c, n)	(*(vec *)((c)->fx + FX_XMM + 16u * (n)))

static inline u32 *sse_mxcsr(struct soft_cpu *c)
{
	return (u32 *)(c->fx + FX_MXCSR);
}
/* The 32- or 64-bit lanes of a register. */
static inline u32 *sse_u32(struct soft_cpu *c, u8 n)
{
	return (u32 *)(c->fx + FX_XMM + 16u * n);
}
static inline u64 *sse_u64(struct soft_cpu *c, u8 n)
{
	return (u64 *)(c->fx + FX_XMM + 16u * n);
}

/* Out of line, so that hundreds of functions stay small: raise c->sse_trap, and #GP(0). */
int sse_not_ready(struct soft_cpu *c, const struct soft_op *op);
int sse_unaligned(struct soft_cpu *c, const struct soft_op *op);

/* #UD or #NM before anything else (SDM 3A 13.1). First line of each operation's function. */
#define SSE_READY(c, op) do {							\
	if (unlikely((c)->sse_trap))						\
		return sse_not_ready((c), (op));				\
} while (0)

/*
 * Legacy SSE demands 16-byte alignment of 16-byte memory operands, but for MOVUPS
 * and its like (SDM 1 11.3); the check precedes translation.
 */
#define SSE_ALIGNED(c, op, va) do {						\
	if (unlikely((va) & 15))						\
		return sse_unaligned((c), (op));				\
} while (0)

/* 16 bytes at va, any alignment, into `var`. */
#define SSE_LOAD_UNALIGNED(c, op, var, va) do {					\
	u64 load_va = (va);							\
	void *load_p = soft_fast_read((c), load_va, 16);			\
	if (likely(load_p)) {							\
		(var) = *(const vec_mem *)load_p;				\
	} else {								\
		if (unlikely(soft_load_slow((c), (op), load_va, 16)))		\
			return soft_faulted((c), (op));				\
		(var) = *(const vec_mem *)(c)->val;				\
	}									\
} while (0)

#define SSE_STORE_UNALIGNED(c, op, va, value) do {				\
	u64 store_va = (va);							\
	void *store_p = soft_fast_write((c), store_va, 16);			\
	if (likely(store_p)) {							\
		*(vec_mem *)store_p = (value);					\
	} else {								\
		*(vec_mem *)(c)->val = (value);					\
		if (unlikely(soft_store_slow((c), (op), store_va, (c)->val, 16)))	\
			return soft_faulted((c), (op));				\
	}									\
} while (0)

/* Source operand from memory by its size, zero-extended: SSE_LOAD_16 and so on. */
#define SSE_LOAD_16(c, op, var) do {						\
	u64 ea = soft_ea((c), (op));						\
	SSE_ALIGNED((c), (op), ea);						\
	SSE_LOAD_UNALIGNED((c), (op), var, ea);					\
} while (0)
#define SSE_LOAD_8(c, op, var) do {						\
	u64 low;								\
	SOFT_LOAD((c), (op), low, soft_ea((c), (op)), u64);			\
	(var) = (vec){ (long long)low, 0 };					\
} while (0)
#define SSE_LOAD_4(c, op, var) do {						\
	u32 low;								\
	SOFT_LOAD((c), (op), low, soft_ea((c), (op)), u32);			\
	(var) = (vec){ (long long)low, 0 };					\
} while (0)

/*
 * Operands arg[dst] and arg[src] into op: register numbers (XMM, MMX; a general
 * register's gpr[] index), the memory operand if one of them is. What a family's
 * function then has to look at is op->fn only. Returns whether src is in memory.
 */
bool sse_decode_args(struct soft_decode *d, struct soft_op *op, u32 dst, u32 src);
/* Operand i exists and is an XMM, MMX register. */
bool sse_is_xmm(const struct soft_decode *d, u32 i);
bool sse_is_mmx(const struct soft_decode *d, u32 i);

/* What MASKMOVDQU and MASKMOVQ share: 0 or SOFT_FAULT with c->fault set; and their operands. ops-sse-move.c */
int sse_maskmov(struct soft_cpu *c, const struct soft_op *op, const u8 *bytes, const u8 *mask, u32 len);
bool sse_decode_maskmov(struct soft_decode *d, struct soft_op *op);

/* The families; soft_decode_sse() asks them in turn, the last one alone if an MMX register is involved. */
bool sse_decode_move(struct soft_decode *d, struct soft_op *op);	/* ops-sse-move.c */
bool sse_decode_int(struct soft_decode *d, struct soft_op *op);		/* ops-sse-int.c */
bool sse_decode_fp(struct soft_decode *d, struct soft_op *op);		/* ops-sse-fp.c */
bool sse_decode_convert(struct soft_decode *d, struct soft_op *op);	/* ops-sse-convert.c */
bool sse_decode_fxsave(struct soft_decode *d, struct soft_op *op);	/* ops-fxsave.c */
bool sse_decode_mmx(struct soft_decode *d, struct soft_op *op);		/* ops-mmx.c */

#endif
