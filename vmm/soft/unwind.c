// SPDX-License-Identifier: GPL-2.0-only
#include "soft/unwind.h"

#include <string.h>

#define NR_CACHED	8192u
#define TABLE_MAX	(64 * MIB)

/* orc_types.h: how the caller's stack pointer and RBP are found. */
#define ORC_REG_PREV_SP		1u
#define ORC_REG_BP		4u
#define ORC_REG_SP		5u
#define ORC_REG_BP_INDIRECT	8u
#define ORC_REG_SP_INDIRECT	9u
#define ORC_TYPE_CALL		2u

struct orc {
	int16_t sp_offset, bp_offset;
	u8 sp_reg : 4, bp_reg : 4;
	u8 type : 3, signal : 1, rest : 4;
};
_Static_assert(sizeof(struct orc) == 6, "as in the guest's table");

struct soft_unwind {
	u32 nr;
	u64 base;		/* address of the first table in the guest: its elements are relative to their own */
	s32 *ip;		/* ascending */
	struct orc *orc;
	struct {
		u64 ip;
		u32 index;
	} cached[NR_CACHED];
};

/* A stack while it is read: one page of it is translated. */
struct stack {
	struct soft_cpu *c;
	u64 page;
	gpa_t gpa;
};

static bool read_word(struct stack *s, u64 va, u64 *value)
{
	u64 off = va & (PAGE_SIZE - 1);

	/* Kernel stacks are of words. */
	if (va & 7 || !(va >> 63))
		return false;
	if (s->page != va - off) {
		if (!soft_peek(s->c, va - off, &s->gpa))
			return false;
		s->page = va - off;
	}
	return !memory_read(&s->c->svm->vm->mem, s->gpa + off, value, sizeof(*value));
}

struct soft_unwind *soft_unwind_create(struct soft_cpu *c, const struct symbols *symbols)
{
	u64 ip = symbols_address(symbols, "__start_orc_unwind_ip"), ip_end = symbols_address(symbols, "__stop_orc_unwind_ip");
	u64 orc = symbols_address(symbols, "__start_orc_unwind"), nr = (ip_end - ip) / sizeof(s32);
	struct soft_unwind *u;

	if (!ip || !orc || ip_end <= ip || ip_end - ip > TABLE_MAX)
		return NULL;
	u = g_new0(struct soft_unwind, 1);
	u->nr = (u32)nr;
	u->base = ip;
	u->ip = g_new(s32, nr);
	u->orc = g_new(struct orc, nr);
	if (soft_peek_bytes(c, ip, u->ip, nr * sizeof(*u->ip)) && soft_peek_bytes(c, orc, u->orc, nr * sizeof(*u->orc)))
		return u;
	soft_unwind_destroy(u);
	return NULL;
}

void soft_unwind_destroy(struct soft_unwind *u)
{
	if (u) {
		g_free(u->ip);
		g_free(u->orc);
	}
	g_free(u);
}

/* The last entry at or before ip. */
static const struct orc *orc_find(struct soft_unwind *u, u64 ip)
{
	u32 slot = (u32)((ip * 0x9e3779b97f4a7c15ull) >> 40) & (NR_CACHED - 1), low = 0, high = u->nr, mid;

	if (u->cached[slot].ip == ip)
		return &u->orc[u->cached[slot].index];
	while (low < high) {
		mid = low + (high - low) / 2;
		if (u->base + mid * sizeof(s32) + (u64)(s64)u->ip[mid] <= ip)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low)
		return NULL;
	u->cached[slot].ip = ip;
	u->cached[slot].index = low - 1;
	return &u->orc[low - 1];
}

/* The caller's stack pointer, 0 if it cannot be told. */
static u64 previous_sp(struct stack *s, const struct orc *orc, u64 sp, u64 bp)
{
	u64 value;

	switch (orc->sp_reg) {
	case ORC_REG_SP:
		return sp + (u64)(s64)orc->sp_offset;
	case ORC_REG_BP:
		return bp + (u64)(s64)orc->sp_offset;
	case ORC_REG_SP_INDIRECT:
		return read_word(s, sp, &value) ? value + (u64)(s64)orc->sp_offset : 0;
	case ORC_REG_BP_INDIRECT:
		return read_word(s, bp + (u64)(s64)orc->sp_offset, &value) ? value : 0;
	default:
		return 0;
	}
}

u32 soft_unwind(struct soft_unwind *u, struct soft_cpu *c, u64 *address, u32 most)
{
	u64 ip = c->rip, sp = c->gpr[X86_RSP], bp = c->gpr[X86_RBP], prev;
	struct stack s = { .c = c, .page = 1 };
	const struct orc *orc;
	u32 nr = 0;

	while (nr < most) {
		/* A return address may be the next function's first byte: it counts as the call before it. */
		orc = orc_find(u, nr ? ip - 1 : ip);
		if (!orc || orc->type != ORC_TYPE_CALL)
			break;
		prev = previous_sp(&s, orc, sp, bp);
		if (!prev || !read_word(&s, prev - 8, &ip) || !(ip >> 63))
			break;
		if (orc->bp_reg == ORC_REG_PREV_SP && !read_word(&s, prev + (u64)(s64)orc->bp_offset, &bp))
			break;
		if (orc->bp_reg == ORC_REG_BP && !read_word(&s, bp + (u64)(s64)orc->bp_offset, &bp))
			break;
		sp = prev;
		address[nr++] = ip;
	}
	return nr;
}
