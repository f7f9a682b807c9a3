// SPDX-License-Identifier: GPL-2.0-only
/*
 * MOVS STOS LODS CMPS SCAS, with and without REP (INS, OUTS: ops-system.c).
 *
 * A repeated one is interruptible: registers move on with each element, and where time
 * is up the instruction is left and later taken up again, as hardware does
 * (SDM 2B REP). Forward MOVS and STOS within a page go as a block; a fault in the
 * middle shows the registers as after the last whole element.
 */
#include "soft/lines.h"
#include "soft/ops.h"

/* op->aux */
#define STR_REPE	BIT(0)	/* REP, REPE */
#define STR_REPNE	BIT(1)
#define STR_REP		(STR_REPE | STR_REPNE)
/* op->shift: address size as log2 of bytes; op->amode: as for a memory operand, the source's segment. */

static u64 str_mask(const struct soft_op *op)
{
	return op->shift == 3 ? UINT64_MAX : op->shift == 2 ? UINT32_MAX : 0xffff;
}

static u64 str_get(const struct soft_cpu *c, const struct soft_op *op, u32 reg)
{
	return c->gpr[reg] & str_mask(op);
}

static void str_set(struct soft_cpu *c, const struct soft_op *op, u32 reg, u64 v)
{
	if (op->shift == 3)
		c->gpr[reg] = v;
	else if (op->shift == 2)
		set32(c, reg, (u32)v);
	else
		set16(c, reg, (u16)v);
}

static void str_advance(struct soft_cpu *c, const struct soft_op *op, u32 reg, u64 elements)
{
	u64 by = elements * op->size;

	str_set(c, op, reg, c->sysflags & X86_EFLAGS_DF ? c->gpr[reg] - by : c->gpr[reg] + by);
}

/* Linear addresses of the source and, always by ES, of the destination. */
static u64 str_source(const struct soft_cpu *c, const struct soft_op *op)
{
	return soft_ea_slow(c, op, c->gpr[X86_RSI]);
}

static u64 str_dest(const struct soft_cpu *c, const struct soft_op *op)
{
	u64 va = str_get(c, op, X86_RDI);

	return c->mode == MODE_64 ? va : (u32)(va + c->seg[SEG_ES].base);
}

/* How many of `count` elements, the first at va, lie in its page or line, in the direction of DF; at least 1. */
static u64 str_room(const struct soft_cpu *c, u64 va, u32 size, u64 count)
{
	/* With a memory model time is looked at after each line. */
	u64 part = c->filter ? LINE_BYTES : PAGE_SIZE, off = va & (part - 1), room;

	if (c->sysflags & X86_EFLAGS_DF)
		room = off / size + (off + size <= part);
	else
		room = (part - off) / size;
	return CLAMP(room, 1, count);
}

/* The time that `n` elements of a repeated instruction take. */
static void str_spend(struct soft_cpu *c, const struct soft_op *op, u64 n)
{
	soft_spend(c, TIME_string, n * op->size * cost(&c->svm->cost, rep_bytes));
}

static int str_load(struct soft_cpu *c, const struct soft_op *op, u64 va, u64 *v)
{
	void *p = soft_fast_read(c, va, op->size);

	if (likely(p)) {
		*v = 0;
		memcpy(v, p, op->size);
		return SOFT_OK;
	}
	if (soft_load_slow(c, op, va, op->size))
		return SOFT_FAULT;
	*v = c->val[0];
	return SOFT_OK;
}

static int str_store(struct soft_cpu *c, const struct soft_op *op, u64 va, u64 v)
{
	void *p = soft_fast_write(c, va, op->size);

	if (likely(p)) {
		memcpy(p, &v, op->size);
		return SOFT_OK;
	}
	return soft_store_slow(c, op, va, &v, op->size);
}

/* One element; SOFT_FAULT if it did not happen. */
static int str_movs(struct soft_cpu *c, const struct soft_op *op)
{
	u64 v;

	if (str_load(c, op, str_source(c, op), &v) || str_store(c, op, str_dest(c, op), v))
		return SOFT_FAULT;
	str_advance(c, op, X86_RSI, 1);
	str_advance(c, op, X86_RDI, 1);
	c->accesses += 2;
	return SOFT_OK;
}

static int str_stos(struct soft_cpu *c, const struct soft_op *op)
{
	if (str_store(c, op, str_dest(c, op), c->gpr[X86_RAX]))
		return SOFT_FAULT;
	str_advance(c, op, X86_RDI, 1);
	c->accesses++;
	return SOFT_OK;
}

static int str_lods(struct soft_cpu *c, const struct soft_op *op)
{
	u64 v;

	if (str_load(c, op, str_source(c, op), &v))
		return SOFT_FAULT;
	if (op->size == 1)
		set8(c, 0, (u8)v);
	else if (op->size == 2)
		set16(c, X86_RAX, (u16)v);
	else
		c->gpr[X86_RAX] = v;	/* a 32-bit value is zero-extended already */
	str_advance(c, op, X86_RSI, 1);
	c->accesses++;
	return SOFT_OK;
}

/* Flags of a - b in the operand's size. */
static void str_compare(struct soft_cpu *c, const struct soft_op *op, u64 a, u64 b)
{
	u16 fl;

	switch (op->size) {
	case 1:
		asm("cmp %2, %1\n\tlahf\n\tseto %%al" : "=&a"(fl) : "r"((u8)a), "r"((u8)b) : "cc");
		break;
	case 2:
		asm("cmp %2, %1\n\tlahf\n\tseto %%al" : "=&a"(fl) : "r"((u16)a), "r"((u16)b) : "cc");
		break;
	case 4:
		asm("cmp %2, %1\n\tlahf\n\tseto %%al" : "=&a"(fl) : "r"((u32)a), "r"((u32)b) : "cc");
		break;
	default:
		asm("cmp %2, %1\n\tlahf\n\tseto %%al" : "=&a"(fl) : "r"(a), "r"(b) : "cc");
		break;
	}
	c->af = fl;
}

static int str_cmps(struct soft_cpu *c, const struct soft_op *op)
{
	u64 a, b;

	if (str_load(c, op, str_source(c, op), &a) || str_load(c, op, str_dest(c, op), &b))
		return SOFT_FAULT;
	str_compare(c, op, a, b);
	str_advance(c, op, X86_RSI, 1);
	str_advance(c, op, X86_RDI, 1);
	c->accesses += 2;
	return SOFT_OK;
}

static int str_scas(struct soft_cpu *c, const struct soft_op *op)
{
	u64 b;

	if (str_load(c, op, str_dest(c, op), &b))
		return SOFT_FAULT;
	str_compare(c, op, c->gpr[X86_RAX], b);
	str_advance(c, op, X86_RDI, 1);
	c->accesses++;
	return SOFT_OK;
}

/* Host address of a part that has a shortcut. */
static u8 *str_pointer(struct soft_cpu *c, const struct soft_op *op, u64 va, u32 len, bool write)
{
	if (c->filter)
		return soft_line_pointer(c, op, va, len, write);
	return write ? soft_fast_write(c, va, len) : soft_fast_read(c, va, len);
}

/*
 * All `n` elements of a part at once, forward. False if they have to be done one by
 * one: no shortcut, or source and destination overlap so that later elements read
 * what earlier ones wrote. It makes no difference that can be seen.
 */
static bool str_movs_many(struct soft_cpu *c, const struct soft_op *op, u64 n)
{
	u32 len = (u32)(n * op->size);
	u8 *from = str_pointer(c, op, str_source(c, op), len, false);
	u8 *to = from ? str_pointer(c, op, str_dest(c, op), len, true) : NULL;

	if (!from || !to || (to > from && to < from + len))
		return false;
	memmove(to, from, len);
	str_advance(c, op, X86_RSI, n);
	str_advance(c, op, X86_RDI, n);
	c->accesses += 2 * n;
	return true;
}

static bool str_stos_many(struct soft_cpu *c, const struct soft_op *op, u64 n)
{
	u8 *to = str_pointer(c, op, str_dest(c, op), (u32)(n * op->size), true);
	u64 v = c->gpr[X86_RAX], i;

	if (!to)
		return false;
	if (op->size == 1 || v == 0)
		memset(to, (u8)v, n * op->size);
	else
		for (i = 0; i < n; i++)
			memcpy(to + i * op->size, &v, op->size);
	str_advance(c, op, X86_RDI, n);
	c->accesses += n;
	return true;
}

/*
 * The loop of a repeated instruction, in parts that lie in a page. Only between parts
 * is time looked at, however a part was done; when it is up the instruction is
 * left with rip on itself.
 */
static inline int str_repeat(struct soft_cpu *c, const struct soft_op *op,
			     int (*one)(struct soft_cpu *c, const struct soft_op *op),
			     bool (*many)(struct soft_cpu *c, const struct soft_op *op, u64 n),
			     bool source, bool dest, bool compares)
{
	bool begun = false;
	u64 count, n;

	while ((count = str_get(c, op, X86_RCX))) {
		n = source ? str_room(c, str_source(c, op), op->size, count) : count;
		if (dest)
			n = str_room(c, str_dest(c, op), op->size, n);
		if (unlikely(c->sysflags & X86_EFLAGS_TF))
			n = 1;		/* each element is trapped (SDM 3B 17.3.1.4 [18.3.1.4]) */
		while (n) {
			/* The first element brings the shortcuts that the others need. */
			u64 done = many && n > 1 && !(c->sysflags & X86_EFLAGS_DF) && many(c, op, n) ? n : 1;

			if (done == 1 && one(c, op))
				return soft_repeat_faulted(c, op, begun);
			begun = true;
			str_set(c, op, X86_RCX, c->gpr[X86_RCX] - done);
			str_spend(c, op, done);
			if (compares && !(op->aux & STR_REPE) == !!(c->lo & LO_ZF))
				SOFT_NEXT(c, op);
			n -= done;
		}
		if (unlikely(c->left - (s64)((op->n + 1) * c->cpi) <= 0) && str_get(c, op, X86_RCX)) {
			soft_retire(c, op);
			c->rip = soft_op_rip(c, op);
			/* What comes now pushes RF = 1 (SDM 3B 17.3.1.1 [18.3.1.1]); soft_step() clears it. */
			c->sysflags |= X86_EFLAGS_RF;
			return SOFT_OK;
		}
	}
	SOFT_NEXT(c, op);
}

#define STRING(name, many, source, dest, compares)				\
static int op_##name(struct soft_cpu *c, const struct soft_op *op)		\
{										\
	if (str_##name(c, op))							\
		return soft_faulted(c, op);					\
	SOFT_NEXT(c, op);							\
}										\
static int op_rep_##name(struct soft_cpu *c, const struct soft_op *op)		\
{										\
	return str_repeat(c, op, str_##name, many, source, dest, compares);	\
}
STRING(movs, str_movs_many, true, true, false)
STRING(stos, str_stos_many, false, true, false)
STRING(lods, NULL, true, false, false)
STRING(cmps, NULL, true, true, true)
STRING(scas, NULL, false, true, true)

/* The segment of the source: the first memory operand whose base is rSI. */
static u8 soft_decode_source(const struct soft_decode *d)
{
	u8 amode = d->insn->address_width == 32 ? AMODE_32 : d->insn->address_width == 16 ? AMODE_16 : 0;
	u32 i;

	if (d->mode != MODE_64)
		amode |= AMODE_LIN32;
	for (i = 0; i < d->insn->operand_count; i++) {
		const ZydisDecodedOperandMem *m = &d->arg[i].mem;

		if (d->arg[i].type != ZYDIS_OPERAND_TYPE_MEMORY || ZydisRegisterGetId(m->base) != X86_RSI)
			continue;
		if (d->mode != MODE_64 || m->segment == ZYDIS_REGISTER_FS || m->segment == ZYDIS_REGISTER_GS)
			amode |= (u8)(1 + ZydisRegisterGetId(m->segment));
		break;
	}
	return amode;
}

bool soft_decode_string(struct soft_decode *d, struct soft_op *op)
{
	bool rep = d->insn->attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);
	u32 size;

	switch (d->insn->mnemonic) {
#define SIZES(name, fn1, fnr)							\
	case ZYDIS_MNEMONIC_##name##B:						\
		size = 1;							\
		op->fn = rep ? fnr : fn1;					\
		break;								\
	case ZYDIS_MNEMONIC_##name##W:						\
		size = 2;							\
		op->fn = rep ? fnr : fn1;					\
		break;								\
	case ZYDIS_MNEMONIC_##name##D:						\
		size = 4;							\
		op->fn = rep ? fnr : fn1;					\
		break;								\
	case ZYDIS_MNEMONIC_##name##Q:						\
		size = 8;							\
		op->fn = rep ? fnr : fn1;					\
		break;
	SIZES(MOVS, op_movs, op_rep_movs)
	SIZES(STOS, op_stos, op_rep_stos)
	SIZES(LODS, op_lods, op_rep_lods)
	SIZES(CMPS, op_cmps, op_rep_cmps)
	SIZES(SCAS, op_scas, op_rep_scas)
#undef SIZES
	default:
		return false;
	}
	/* SSE2 has a MOVSD and a CMPSD of its own. */
	if (d->insn->meta.category != ZYDIS_CATEGORY_STRINGOP) {
		op->fn = NULL;
		return false;
	}
	op->size = (u8)size;
	op->shift = (u8)soft_size_index(d->insn->address_width);
	op->amode = soft_decode_source(d);
	if (d->insn->attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE))
		op->aux |= STR_REPE;
	if (d->insn->attributes & ZYDIS_ATTRIB_HAS_REPNE)
		op->aux |= STR_REPNE;
	return true;
}
