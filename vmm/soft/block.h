/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Decoded code: blocks of operations, kept by physical page, and how execution
 * goes from one to the next. A block never leaves its page, is a pure function of
 * its bytes, offset and mode, and starts where something jumped to or another
 * block ended; so where a run of instructions is cut depends on the guest alone.
 *
 * Memory comes from one arena that is thrown away as a whole when it is full. A
 * block whose bytes were written becomes dead: each of its operations leads to a new
 * look-up, so that pointers to it stay harmless.
 */
#ifndef SOFT_BLOCK_H
#define SOFT_BLOCK_H

#include "soft/soft-mem.h"

#ifdef FAULTBED_HARD
#define BLOCK_MAX	2u
#else
#define BLOCK_MAX	24u
#endif

/* Key of a block besides its address: enum soft_mode, plus: */
#define BLOCK_SINGLE	4u	/* holds one instruction only (trap flag, interrupt shadow) */

struct soft_block {
	struct soft_code *code;
	struct soft_block *hash_next;
	struct soft_block *next[2];	/* where a branch taken (or a fall-through) and a branch not taken lead */
	u16 off;			/* of its first byte in the page */
	u8 key;				/* enum soft_mode | BLOCK_SINGLE */
	u8 nr;				/* instructions */
	u16 bytes;			/* of code */
	bool dead;
	bool quiet;			/* instructions on general registers and flags that write no memory */
	struct soft_op op[];		/* nr + 1 of them */
};

#define CODE_SLOTS	256u

/* The code of one page. */
struct soft_code {
	struct soft_page *page;
	const u8 *hva;
	gpa_t gpa;
	u64 chunks;			/* bit n: bytes [64 n, 64 n + 64) have been decoded */
	struct soft_block *slot[CODE_SLOTS];
};

static inline u32 soft_slot(u32 off)
{
	return (off ^ off >> 6) & (CODE_SLOTS - 1);
}

static inline struct soft_block *soft_block_of(const struct soft_op *op)
{
	return (struct soft_block *)((u8 *)(uintptr_t)(op - op->n) - offsetof(struct soft_block, op));
}

static inline struct soft_block *soft_code_find(const struct soft_code *code, u32 off, u32 key)
{
	struct soft_block *b = code->slot[soft_slot(off)];

	while (b && (b->off != off || b->key != key))
		b = b->hash_next;
	return b;
}

/* The block at c->rip, decoded if need be; NULL and c->fault set, or NULL and c->leave set (*ret says which). */
struct soft_block *soft_block_lookup(struct soft_cpu *c, bool single, int *ret);

/*
 * Forget all decoded code, between runs. The caller drops the shortcuts of all vCPUs.
 * A VM that goes on after its snapshot then decodes what one that starts from it does.
 */
void soft_blocks_forget(struct soft_vm *svm);

/* Without tail calls (no optimization, sanitizers) going from block to block would grow the stack. */
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(FAULTBED_HARD) && !defined(FAULTBED_NO_CHAIN)
#define SOFT_CHAIN 1
#else
#define SOFT_CHAIN 0
#endif

/*
 * Branches. The instruction `op` (the last of its block) is accounted for, then the
 * block at the target is entered directly if it is known and may be, else
 * soft_run() looks it up.
 */

/* To the offset `imm` from the start of this page, remembered in next[which]. */
static inline int soft_jump(struct soft_cpu *c, const struct soft_op *op, u64 imm, u32 which)
{
	struct soft_block *b = soft_block_of(op), *to = b->next[which];
	u64 va = c->gpr[GPR_PAGE] + imm;

	soft_retire(c, op + 1);
	if (SOFT_CHAIN && likely(to != NULL) && likely(c->left > 0)) {
		if (likely(imm < PAGE_SIZE))
			return to->op[0].fn(c, to->op);
		struct soft_xsc *x = &c->xsc[soft_xsc_slot(va)];

		if (likely(x->tag == (va & ~(PAGE_SIZE - 1))) && likely(x->code == to->code)) {
			x->used = 1;
			c->gpr[GPR_PAGE] = x->tag;
			return to->op[0].fn(c, to->op);
		}
	}
	c->link = &b->next[which];
	c->rip = va - c->seg[SEG_CS].base;
	return SOFT_OK;
}

/* To a rip that is known only now (64-bit mode). */
static inline int soft_jump_rip(struct soft_cpu *c, const struct soft_op *op, u64 rip)
{
	struct soft_xsc *x = &c->xsc[soft_xsc_slot(rip)];

	soft_retire(c, op + 1);
	if (SOFT_CHAIN && likely(x->tag == (rip & ~(PAGE_SIZE - 1))) && likely(c->left > 0)) {
		u32 off = rip & (PAGE_SIZE - 1);
		struct soft_block *to = x->code->slot[soft_slot(off)];

		if (unlikely(to && to->off != off))
			to = to->hash_next;
		if (likely(to != NULL) && likely(to->off == off) && likely(to->key == MODE_64)) {
			x->used = 1;
			c->gpr[GPR_PAGE] = x->tag;
			return to->op[0].fn(c, to->op);
		}
	}
	c->rip = rip;
	return SOFT_OK;
}

#endif
