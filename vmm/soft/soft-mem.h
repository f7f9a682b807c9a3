/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fast paths of loads and stores, inlined into operations' functions. A compare
 * against the shortcut's tag checks page, rights and that the access does not
 * cross the page's end, in one: the page of the last byte must be the tagged one,
 * and a page and its neighbour never share a slot. With a memory model no tag is
 * like that; then the access also has to lie in a line that the filter has.
 *
 * No local's address may escape from a function that ends in SOFT_NEXT, or the
 * compiler gives up the tail call; hence values come back in c->val.
 */
#ifndef SOFT_SOFT_MEM_H
#define SOFT_SOFT_MEM_H

#include <string.h>

#include "soft/lines.h"

#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)

static inline struct soft_sc *soft_sc_of(const struct soft_cpu *c, u64 va)
{
	return &c->sc[soft_sc_slot(va)];
}

/* The linear address of op's memory operand. */
static inline u64 soft_ea(const struct soft_cpu *c, const struct soft_op *op)
{
	u64 ea = c->gpr[op->base] + (c->gpr[op->index] << op->shift) + (u64)(s64)op->disp;

	if (unlikely(op->amode))
		ea = soft_ea_slow(c, op, ea);
	return ea;
}

/* Never NULL, and the compiler may know it. */
static inline void *soft_host(u64 address)
{
	if (!address)
		__builtin_unreachable();
	return (void *)(uintptr_t)address;
}

/* The line of an address that has a shortcut. */
static inline u64 soft_sc_line(const struct soft_sc *sc, u64 va)
{
	return (u64)sc->pfn * LINES_IN_PAGE + (va >> LINE_SHIFT & (LINES_IN_PAGE - 1));
}

/* With a memory model: has the access a shortcut, tagged so, and lies in one line? */
static inline bool soft_sc_in_line(u64 tag, u64 va, u32 len)
{
	return ((va & ~(PAGE_SIZE - 1)) | SOFT_LINES_TAG) == tag && (va & (LINE_BYTES - 1)) + len <= LINE_BYTES;
}

/* Host pointer to `len` bytes at va that may be read / written, NULL if the slow path has to decide. */
static inline void *soft_fast_read(struct soft_cpu *c, u64 va, u32 len)
{
	struct soft_sc *sc = soft_sc_of(c, va);

	if (unlikely(((va + len - 1) & ~(PAGE_SIZE - 1)) != sc->rtag) &&
	    !(soft_sc_in_line(sc->rtag, va, len) && line_filter_hit(c, soft_sc_line(sc, va), false)))
		return NULL;
	sc->used = 1;
	return soft_host(va + sc->addend);
}

static inline void *soft_fast_write(struct soft_cpu *c, u64 va, u32 len)
{
	struct soft_sc *sc = soft_sc_of(c, va);

	if (unlikely(((va + len - 1) & ~(PAGE_SIZE - 1)) != sc->wtag) &&
	    !(soft_sc_in_line(sc->wtag, va, len) && line_filter_hit(c, soft_sc_line(sc, va), true)))
		return NULL;
	sc->used = 1;
	return soft_host(va + sc->addend);
}

/*
 * The same for the read-modify-write that op is. A locked one costs more than a hit does,
 * so with a memory model the slow path has it.
 */
static inline void *soft_fast_rmw(struct soft_cpu *c, const struct soft_op *op, u64 va, u32 len)
{
	struct soft_sc *sc = soft_sc_of(c, va);

	if (unlikely(((va + len - 1) & ~(PAGE_SIZE - 1)) != sc->wtag) &&
	    !(op->dst != DST_LOCKED && soft_sc_in_line(sc->wtag, va, len) &&
	      line_filter_hit(c, soft_sc_line(sc, va), true)))
		return NULL;
	sc->used = 1;
	return soft_host(va + sc->addend);
}

/*
 * Load a value of `type` at va into `var`; on a fault return from the calling
 * function. All memory access of guests is by memcpy: no alignment, no aliasing.
 */
#define SOFT_LOAD(c, op, var, va, type) do {					\
	u64 load_va = (va);							\
	void *load_p = soft_fast_read((c), load_va, sizeof(type));		\
	if (likely(load_p)) {							\
		type load_v;							\
		memcpy(&load_v, load_p, sizeof(type));				\
		(var) = load_v;							\
	} else {								\
		if (unlikely(soft_load_slow((c), (op), load_va, sizeof(type))))	\
			return soft_faulted((c), (op));				\
		(var) = (type)(c)->val[0];					\
	}									\
} while (0)

/* Store `value` as `type` at va; on a fault return from the calling function. */
#define SOFT_STORE(c, op, va, value, type) do {					\
	u64 store_va = (va);							\
	type store_v = (type)(value);						\
	void *store_p = soft_fast_write((c), store_va, sizeof(type));		\
	if (likely(store_p)) {							\
		memcpy(store_p, &store_v, sizeof(type));			\
	} else {								\
		(c)->val[0] = store_v;						\
		if (unlikely(soft_store_slow((c), (op), store_va, (c)->val, sizeof(type)))) \
			return soft_faulted((c), (op));				\
	}									\
} while (0)

#endif
