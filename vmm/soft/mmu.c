// SPDX-License-Identifier: GPL-2.0-only
/*
 * From a linear address to a page: TLB look-up, what happens on a miss, shortcuts. The
 * walk itself is in walk.c, what flushes remove in tlb-flush.c.
 */
#include "soft/tlb.h"

/* The second level, the answer to the caller, and a shortcut for the next time. */
static int finish(struct soft_cpu *c, u64 va, enum soft_access access, enum soft_context ctx, struct tlb_entry *e,
		  struct soft_xlat *x)
{
	u32 off = va & (PAGE_SIZE - 1);
	bool writable;

	if (e->hva) {
		x->page = e->page;
		x->hva = e->hva + off;
	} else {
		x->page = soft_cpu_page(c, x->gpa, &x->hva);
	}
	if (!x->page)
		return SOFT_OK;
	soft_second_level(c, x->page, x->gpa, access == ACCESS_WRITE);
	if (access == ACCESS_FETCH) {
		xsc_prepare(c, ctx == CTX_USER, va, e);
		return SOFT_OK;
	}
	writable = (e->rights & (RIGHT_D | RIGHT_EW)) == (RIGHT_D | RIGHT_EW) &&
		   !(x->page->flags & (SPAGE_CODE | SPAGE_PROTECTED)) && soft_allowed(c, e->rights, ACCESS_WRITE, ctx);
	sc_install(c, ctx, va, e, x->hva - off, x->page, true, writable);
	return SOFT_OK;
}

/* CR0.PG = 0: linear addresses are physical (SDM 3A 4.1.1), of 32 bits, with all rights. */
static int translate_unpaged(struct soft_cpu *c, u64 va, enum soft_access access, enum soft_context ctx,
			     struct soft_xlat *x)
{
	va = (u32)va;
	x->gpa = va;
	x->page = soft_cpu_page(c, va, &x->hva);
	if (!x->page)
		return SOFT_OK;
	soft_second_level(c, x->page, va, access == ACCESS_WRITE);
	if (access == ACCESS_FETCH)
		xsc_prepare(c, ctx == CTX_USER, va, NULL);
	else
		sc_install(c, ctx, va, NULL, x->hva - (va & (PAGE_SIZE - 1)), x->page, true,
			   !(x->page->flags & (SPAGE_CODE | SPAGE_PROTECTED)));
	return SOFT_OK;
}

static struct tlb_entry *find_first_level(struct soft_tlb *tlb, u64 va, enum soft_access access, u16 pcid,
					  enum tlb_kind *kind)
{
	static const enum tlb_kind data[] = { TLB_D_4K, TLB_D_2M, TLB_D_1G }, code[] = { TLB_I_4K, TLB_I_2M };
	const enum tlb_kind *k = access == ACCESS_FETCH ? code : data;
	u32 i, nr = access == ACCESS_FETCH ? ARRAY_SIZE(code) : ARRAY_SIZE(data);
	struct tlb_entry *e;

	for (i = 0; i < nr; i++) {
		e = tlb_find(&tlb->a[k[i]], va, pcid);
		if (e) {
			*kind = k[i];
			return e;
		}
	}
	return NULL;
}

/* A write needs the dirty flag, which only a walk sets, and the second level's consent, which only a walk asks for. */
static bool usable(const struct soft_cpu *c, const struct tlb_entry *e, enum soft_access access,
		   enum soft_context ctx)
{
	return soft_allowed(c, e->rights, access, ctx) &&
	       (access != ACCESS_WRITE || (e->rights & (RIGHT_D | RIGHT_EW)) == (RIGHT_D | RIGHT_EW));
}

static enum tlb_kind kind_for(enum soft_access access, u8 map_shift)
{
	if (access == ACCESS_FETCH)
		return map_shift == PAGE_SHIFT ? TLB_I_4K : TLB_I_2M;
	if (map_shift == 30)
		return TLB_D_1G;
	return map_shift == PAGE_SHIFT ? TLB_D_4K : TLB_D_2M;
}

/* Where a 4 KiB page's bytes are; entries of larger pages have one such answer for each 4 KiB. */
static void locate(struct soft_cpu *c, struct tlb_entry *e)
{
	e->hva = NULL;
	e->page = e->map_shift == PAGE_SHIFT ? soft_cpu_page(c, e->gpa, &e->hva) : NULL;
}

static struct tlb_entry *walk_and_fill(struct soft_cpu *c, u64 va, enum soft_access access, enum soft_context ctx,
				       u16 pcid)
{
	struct walk w = { .va = va, .access = access, .ctx = ctx, .pcid = pcid };

	if (soft_walk(c, &w))
		return NULL;
	locate(c, &w.leaf);
	/* A write to a protected page is about to be a violation, after which it has the right. */
	if (access == ACCESS_WRITE || !w.leaf.page || !(w.leaf.page->flags & SPAGE_PROTECTED))
		w.leaf.rights |= RIGHT_EW;
	if (w.leaf.map_shift == PAGE_SHIFT)
		tlb_fill(c, TLB_L2, va, pcid, &w.leaf);
	return tlb_fill(c, kind_for(access, w.leaf.map_shift), va, pcid, &w.leaf);
}

/* Nothing in the first level that would do: the second level, then a walk. NULL with c->fault set. */
static struct tlb_entry *first_level_miss(struct soft_cpu *c, u64 va, enum soft_access access,
					  enum soft_context ctx, u16 pcid)
{
	struct tlb_array *l2 = &c->tlb->a[TLB_L2];
	struct tlb_entry *e;

	c->stat[access == ACCESS_FETCH ? STAT_tlb_l1i_misses : STAT_tlb_l1d_misses]++;
	e = tlb_find(l2, va, pcid);
	if (!e)
		return walk_and_fill(c, va, access, ctx, pcid);
	if (!usable(c, e, access, ctx)) {
		tlb_drop(c, l2, (u32)(e - l2->e));
		return walk_and_fill(c, va, access, ctx, pcid);
	}
	e->ref = 1;
	c->stat[STAT_tlb_l2_hits]++;
	soft_spend(c, TIME_tlb, cost(&c->svm->cost, l2_tlb_hit));
	return tlb_fill(c, kind_for(access, PAGE_SHIFT), va, pcid, e);
}

/*
 * An entry that does not allow the access is not the last word: the tables are
 * walked anew, and the entry makes room for what they say. It goes first, since the
 * walk may find a page of another size.
 */
static struct tlb_entry *not_usable(struct soft_cpu *c, u64 va, enum soft_access access, enum soft_context ctx,
				    u16 pcid, enum tlb_kind kind, struct tlb_entry *e)
{
	struct tlb_array *a = &c->tlb->a[kind], *l2 = &c->tlb->a[TLB_L2];

	tlb_drop(c, a, (u32)(e - a->e));
	e = tlb_find(l2, va, pcid);
	if (e)
		tlb_drop(c, l2, (u32)(e - l2->e));
	e = walk_and_fill(c, va, access, ctx, pcid);
	if (!e) {
		c->stat[STAT_flush_fault]++;
		c->stat[STAT_flushed_entries]++;
	}
	return e;
}

/*
 * A linear address that is not canonical gives #GP(0); where the SDM wants #SS(0) (stack
 * references, vol. 1 3.3.7.1), the caller changes the vector.
 */
int soft_translate(struct soft_cpu *c, u64 va, enum soft_access access, bool system, struct soft_xlat *x)
{
	enum soft_context ctx = system ? CTX_KERNEL : c->ctx;
	u16 pcid = soft_pcid(c);
	struct tlb_entry *e;
	enum tlb_kind kind;
	u8 shift;

	c->spin.loud = true;
	if (unlikely(!(c->cr0 & X86_CR0_PG)))
		return translate_unpaged(c, va, access, ctx, x);
	if (!(c->efer & X86_EFER_LMA)) {
		va = (u32)va;
	} else if (unlikely((u64)((s64)(va << 16) >> 16) != va)) {
		c->fault = (struct soft_fault){ .vector = VEC_GP, .has_error = true };
		return SOFT_FAULT;
	}
	e = find_first_level(c->tlb, va, access, pcid, &kind);
	if (!e)
		e = first_level_miss(c, va, access, ctx, pcid);
	else if (!usable(c, e, access, ctx))
		e = not_usable(c, va, access, ctx, pcid, kind, e);
	if (!e)
		return SOFT_FAULT;
	e->ref = 1;
	/* Pieces of a larger mapping start where their array's page does. */
	kind = kind_for(access, e->map_shift);
	shift = c->tlb->a[kind].shift;
	x->gpa = e->gpa + (va & ((1ull << shift) - 1));
	return finish(c, va, access, ctx, e, x);
}
