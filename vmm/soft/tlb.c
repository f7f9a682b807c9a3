// SPDX-License-Identifier: GPL-2.0-only
/* TLB arrays, paging-structure caches, and the book of shortcuts. Flushes are in tlb-flush.c. */
#include "soft/tlb.h"

#include <string.h>

static u8 kind_shift(enum tlb_kind kind)
{
	switch (kind) {
	case TLB_D_2M:
	case TLB_I_2M:
		return 21;
	case TLB_D_1G:
		return 30;
	default:
		return PAGE_SHIFT;
	}
}

static bool kind_is_fetch(enum tlb_kind kind)
{
	return kind == TLB_I_4K || kind == TLB_I_2M;
}

/* --- shortcuts --- */

static void sc_clear(struct soft_cpu *c, u32 ctx, u32 slot)
{
	struct soft_sc *sc = &c->sct[ctx][slot];

	sc->rtag = sc->wtag = SOFT_NO_TAG;
	sc->used = 0;
	c->tlb->live[ctx][slot / 64] &= ~BIT_ULL(slot % 64);
	c->tlb->book[ctx][slot] = (struct sc_book){ 0 };
}

static void xsc_clear(struct soft_cpu *c, u32 user, u32 slot)
{
	struct soft_xsc *x = &c->xsct[user][slot];

	x->tag = SOFT_NO_TAG;
	x->code = NULL;
	x->used = 0;
	c->tlb->xlive[user][slot / 64] &= ~BIT_ULL(slot % 64);
	c->tlb->xowner[user][slot] = NULL;
}

static void entry_give_slot(struct tlb_entry *e, u32 slot)
{
	e->slots[slot / 64] |= BIT_ULL(slot % 64);
	e->words |= (u8)BIT(slot / 64);
}

static void entry_clear_slots(struct tlb_entry *e)
{
	u32 word;

	for (word = e->words; word; word &= word - 1)
		e->slots[__builtin_ctz(word)] = 0;
	e->words = 0;
}

/* The entry that a shortcut stands for takes over that it was used. */
static void sc_fold(struct soft_cpu *c, u32 ctx, u32 slot)
{
	struct tlb_entry *owner = c->tlb->book[ctx][slot].owner;

	if (owner && c->sct[ctx][slot].used)
		owner->ref = 1;
	c->sct[ctx][slot].used = 0;
}

static void xsc_fold(struct soft_cpu *c, u32 user, u32 slot)
{
	struct tlb_entry *owner = c->tlb->xowner[user][slot];

	if (owner && c->xsct[user][slot].used)
		owner->ref = 1;
	c->xsct[user][slot].used = 0;
}

/* Who may hold a write shortcut to a page: nobody, one vCPU, or any number of them. */
static void page_written_by(struct soft_page *page, u32 cpu)
{
	if (!(page->flags & SPAGE_WSC))
		page->flags |= SPAGE_WSC | cpu << SPAGE_CPU_SHIFT;
	else if (page->flags >> SPAGE_CPU_SHIFT != cpu)
		page->flags |= SPAGE_WSC_MANY;
}

void sc_install(struct soft_cpu *c, enum soft_context ctx, u64 va, struct tlb_entry *e, u8 *hva_page,
		struct soft_page *page, bool readable, bool writable)
{
	u32 slot = soft_sc_slot(va);
	struct soft_sc *sc = &c->sct[ctx][slot];
	u64 page_va = va & ~(PAGE_SIZE - 1), tag = page_va | (c->filter ? SOFT_LINES_TAG : 0);

	if (c->tlb->live[ctx][slot / 64] >> slot % 64 & 1)
		sc_fold(c, ctx, slot);
	sc->rtag = readable ? tag : SOFT_NO_TAG;
	sc->wtag = writable ? tag : SOFT_NO_TAG;
	sc->addend = (u64)(uintptr_t)hva_page - page_va;
	sc->pfn = page->pfn;
	sc->used = 0;
	c->tlb->live[ctx][slot / 64] |= BIT_ULL(slot % 64);
	c->tlb->book[ctx][slot] = (struct sc_book){ e, page };
	if (e)
		entry_give_slot(e, slot);
	if (writable)
		page_written_by(page, c->vcpu->id);
}

void xsc_prepare(struct soft_cpu *c, bool user, u64 va, struct tlb_entry *e)
{
	u32 slot = soft_xsc_slot(va);

	if (c->tlb->xlive[user][slot / 64] >> slot % 64 & 1)
		xsc_fold(c, user, slot);
	c->xsct[user][slot].tag = SOFT_NO_TAG;
	c->tlb->xlive[user][slot / 64] |= BIT_ULL(slot % 64);
	c->tlb->xowner[user][slot] = e;
	if (e)
		entry_give_slot(e, slot);
}

void soft_drop_shortcuts(struct soft_cpu *c)
{
	struct soft_tlb *tlb = c->tlb;
	u32 i, word, slot;
	u64 bits;

	for (i = 0; i < NR_CTX; i++) {
		for (word = 0; word < SC_WORDS; word++) {
			for (bits = tlb->live[i][word]; bits; bits &= bits - 1) {
				slot = word * 64 + (u32)__builtin_ctzll(bits);
				sc_fold(c, i, slot);
				/* It will have none left, and so nothing to look through when it goes. */
				if (tlb->book[i][slot].owner)
					entry_clear_slots(tlb->book[i][slot].owner);
				sc_clear(c, i, slot);
			}
		}
	}
	for (i = 0; i < 2; i++) {
		for (word = 0; word < XSC_WORDS; word++) {
			for (bits = tlb->xlive[i][word]; bits; bits &= bits - 1) {
				slot = word * 64 + (u32)__builtin_ctzll(bits);
				xsc_fold(c, i, slot);
				if (tlb->xowner[i][slot])
					entry_clear_slots(tlb->xowner[i][slot]);
				xsc_clear(c, i, slot);
			}
		}
	}
}

static void drop_write_shortcuts(struct soft_cpu *c, const struct soft_page *page)
{
	u32 ctx, word, slot;
	u64 bits;

	for (ctx = 0; ctx < NR_CTX; ctx++) {
		for (word = 0; word < SC_WORDS; word++) {
			for (bits = c->tlb->live[ctx][word]; bits; bits &= bits - 1) {
				slot = word * 64 + (u32)__builtin_ctzll(bits);
				if (c->tlb->book[ctx][slot].page == page)
					c->sct[ctx][slot].wtag = SOFT_NO_TAG;
			}
		}
	}
}

void soft_page_is_code(struct soft_vm *svm, struct soft_page *page)
{
	struct vm *vm = svm->vm;
	u32 i;

	if (page->flags & SPAGE_WSC_MANY) {
		for (i = 0; i < vm->topo.nr_cpus; i++)
			if (vm->vcpu[i] && soft_cpu(vm->vcpu[i]))
				drop_write_shortcuts(soft_cpu(vm->vcpu[i]), page);
	} else if (page->flags & SPAGE_WSC) {
		i = page->flags >> SPAGE_CPU_SHIFT;
		if (i < vm->topo.nr_cpus && vm->vcpu[i] && soft_cpu(vm->vcpu[i]))
			drop_write_shortcuts(soft_cpu(vm->vcpu[i]), page);
	}
	page->flags &= ~(SPAGE_WSC | SPAGE_WSC_MANY | SPAGE_CPU_MASK);
	page->flags |= SPAGE_CODE;
}

/* --- entries --- */

/* Slots given to an entry, one after the other. */
#define for_each_slot(e, word, bits, slot)						\
	for (word = (e)->words; word; word &= word - 1)					\
		for (bits = (e)->slots[__builtin_ctz(word)];				\
		     bits && (slot = (u32)__builtin_ctz(word) * 64 + (u32)__builtin_ctzll(bits), true); \
		     bits &= bits - 1)

bool tlb_referenced(const struct soft_cpu *c, enum tlb_kind kind, const struct tlb_entry *e)
{
	const struct soft_tlb *tlb = c->tlb;
	u32 i, word, slot;
	u64 bits;

	if (e->ref)
		return true;
	if (kind_is_fetch(kind)) {
		for_each_slot(e, word, bits, slot)
			for (i = 0; i < 2; i++)
				if (tlb->xowner[i][slot] == e && c->xsct[i][slot].used)
					return true;
		return false;
	}
	for_each_slot(e, word, bits, slot)
		for (i = 0; i < NR_CTX; i++)
			if (tlb->book[i][slot].owner == e && c->sct[i][slot].used)
				return true;
	return false;
}

static void entry_unreference(struct soft_cpu *c, enum tlb_kind kind, struct tlb_entry *e)
{
	struct soft_tlb *tlb = c->tlb;
	u32 i, word, slot;
	u64 bits;

	e->ref = 0;
	if (kind_is_fetch(kind)) {
		for_each_slot(e, word, bits, slot)
			for (i = 0; i < 2; i++)
				if (tlb->xowner[i][slot] == e)
					c->xsct[i][slot].used = 0;
		return;
	}
	for_each_slot(e, word, bits, slot)
		for (i = 0; i < NR_CTX; i++)
			if (tlb->book[i][slot].owner == e)
				c->sct[i][slot].used = 0;
}

static void entry_drop_shortcuts(struct soft_cpu *c, enum tlb_kind kind, struct tlb_entry *e)
{
	struct soft_tlb *tlb = c->tlb;
	u32 i, word, slot;
	u64 bits;

	if (kind_is_fetch(kind)) {
		for_each_slot(e, word, bits, slot)
			for (i = 0; i < 2; i++)
				if (tlb->xowner[i][slot] == e)
					xsc_clear(c, i, slot);
	} else {
		for_each_slot(e, word, bits, slot)
			for (i = 0; i < NR_CTX; i++)
				if (tlb->book[i][slot].owner == e)
					sc_clear(c, i, slot);
	}
	entry_clear_slots(e);
}

void tlb_drop(struct soft_cpu *c, struct tlb_array *a, u32 i)
{
	entry_drop_shortcuts(c, (enum tlb_kind)(a - c->tlb->a), &a->e[i]);
	a->tag[i] = 0;
	a->e[i].ref = 0;
	a->nr_valid--;
}

/* The way of a full set to replace. */
static u32 tlb_victim(struct soft_cpu *c, enum tlb_kind kind, u32 first)
{
	struct tlb_array *a = &c->tlb->a[kind];
	u32 w;

	for (w = first; w < first + a->ways; w++)
		if (!tlb_referenced(c, kind, &a->e[w]))
			return w;
	for (w = first; w < first + a->ways; w++)
		entry_unreference(c, kind, &a->e[w]);
	return first;
}

struct tlb_entry *tlb_fill(struct soft_cpu *c, enum tlb_kind kind, u64 va, u16 pcid, const struct tlb_entry *from)
{
	struct tlb_array *a = &c->tlb->a[kind];
	u32 first = ((u32)(va >> a->shift) & a->set_mask) * a->ways, w, free_way = UINT32_MAX;
	u64 page = tlb_page_of(va, a->shift) | TAG_VALID;
	struct tlb_entry *e;

	for (w = first; w < first + a->ways; w++) {
		if (a->tag[w] == (page | pcid) || a->tag[w] == (page | TAG_GLOBAL))
			break;
		if (!a->tag[w] && free_way == UINT32_MAX)
			free_way = w;
	}
	if (w < first + a->ways) {
		tlb_drop(c, a, w);
	} else if (free_way != UINT32_MAX) {
		w = free_way;
	} else {
		w = tlb_victim(c, kind, first);
		tlb_drop(c, a, w);
		c->stat[STAT_tlb_evictions]++;
	}
	e = &a->e[w];
	*e = *from;
	memset(e->slots, 0, sizeof(e->slots));
	e->words = 0;
	e->ref = 1;
	/* A piece of a larger mapping is entered with its own address. */
	e->gpa = from->gpa;
	if (from->map_shift > a->shift) {
		e->gpa += va & ((1ull << from->map_shift) - 1) & ~((1ull << a->shift) - 1);
		a->pieces = true;
	}
	a->tag[w] = tlb_tag(va, a->shift, pcid, from->rights);
	a->nr_valid++;
	if (kind != TLB_L2)
		c->stat[STAT_tlb_fills]++;
	return e;
}

static bool tag_is_of(u64 tag, u16 pcid, bool global)
{
	return tag & TAG_GLOBAL ? global : (tag & TAG_PCID) == pcid;
}

u32 tlb_drop_va(struct soft_cpu *c, enum tlb_kind kind, u64 va, u16 pcid, bool global)
{
	struct tlb_array *a = &c->tlb->a[kind];
	u32 first = ((u32)(va >> a->shift) & a->set_mask) * a->ways, nr = a->ways, w, dropped = 0;

	if (!a->nr_valid)
		return 0;
	if (a->pieces) {	/* all that were made of one mapping: SDM 3A 4.10.4.1, INVLPG */
		first = 0;
		nr = (a->set_mask + 1) * a->ways;
	}
	for (w = first; w < first + nr; w++) {
		if (!a->tag[w] || ((a->tag[w] ^ va) & TAG_ADDR) >> MAX(a->shift, a->e[w].map_shift) ||
		    !tag_is_of(a->tag[w], pcid, global))
			continue;
		tlb_drop(c, a, w);
		dropped++;
	}
	return dropped;
}

/* --- paging-structure caches --- */

u8 psc_shift(const struct soft_cpu *c, u32 level)
{
	if (!(c->cr4 & X86_CR4_PAE))
		return 22;
	return (u8)(PAGE_SHIFT + 9 * (level - 1));
}

const struct psc_entry *psc_find(struct soft_tlb *tlb, u64 va, u16 pcid, u8 pde_shift, u32 *level)
{
	u8 shift = pde_shift;
	u32 l, i;

	for (l = PSC_FIRST; l <= PSC_LAST; l++, shift += 9) {
		struct psc *p = &tlb->psc[l];
		u64 tag = tlb_tag(va, shift, pcid, 0);

		for (i = 0; p->nr_valid && i < p->nr; i++) {
			if (p->tag[i] != tag)
				continue;
			p->e[i].ref = 1;
			*level = l;
			return &p->e[i];
		}
	}
	return NULL;
}

void psc_fill(struct soft_tlb *tlb, u32 level, u64 va, u8 shift, u16 pcid, gpa_t table, u8 rights)
{
	struct psc *p = &tlb->psc[level];
	u64 tag = tlb_tag(va, shift, pcid, 0);
	u32 i, at = UINT32_MAX, idle = UINT32_MAX;

	for (i = 0; i < p->nr; i++) {
		if (p->tag[i] == tag || (!p->tag[i] && at == UINT32_MAX))
			at = i;
		if (p->tag[i] == tag)
			break;
		if (!p->e[i].ref && idle == UINT32_MAX)
			idle = i;
	}
	if (at == UINT32_MAX)
		at = idle;
	if (at == UINT32_MAX) {
		for (i = 0; i < p->nr; i++)
			p->e[i].ref = 0;
		at = 0;
	}
	if (!p->tag[at])
		p->nr_valid++;
	p->tag[at] = tag;
	p->e[at] = (struct psc_entry){ .table = table, .rights = rights, .ref = 1 };
}

/* --- life --- */

static void array_create(struct tlb_array *a, enum tlb_kind kind, u64 entries, u64 ways)
{
	u32 sets;

#ifdef FAULTBED_HARD
	entries = 4;
	ways = kind == TLB_L2 ? 1 : 2;
#endif
	/* A number of sets that is no power of two is rounded down to one; the ways stay. */
	ways = MIN(ways, entries);
	for (sets = 1; sets * 2 <= entries / ways; sets *= 2)
		;
	a->ways = (u32)ways;
	a->set_mask = sets - 1;
	a->shift = kind_shift(kind);
	a->tag = g_new0(u64, sets * ways);
	a->e = g_new0(struct tlb_entry, sets * ways);
}

static void psc_create(struct psc *p, u64 entries)
{
#ifdef FAULTBED_HARD
	entries = 2;
#endif
	p->nr = (u32)entries;
	p->tag = g_new0(u64, p->nr);
	p->e = g_new0(struct psc_entry, p->nr);
}

int soft_tlb_create(struct soft_cpu *c)
{
	const struct cost_model *m = &c->svm->cost;
	struct soft_tlb *tlb = g_new0(struct soft_tlb, 1);
	u32 i, slot;

	c->tlb = tlb;
	array_create(&tlb->a[TLB_D_4K], TLB_D_4K, cost(m, l1d_4k_entries), cost(m, l1d_4k_ways));
	array_create(&tlb->a[TLB_D_2M], TLB_D_2M, cost(m, l1d_2m_entries), cost(m, l1d_2m_ways));
	array_create(&tlb->a[TLB_D_1G], TLB_D_1G, cost(m, l1d_1g_entries), cost(m, l1d_1g_ways));
	array_create(&tlb->a[TLB_I_4K], TLB_I_4K, cost(m, l1i_4k_entries), cost(m, l1i_4k_ways));
	array_create(&tlb->a[TLB_I_2M], TLB_I_2M, cost(m, l1i_2m_entries), cost(m, l1i_2m_ways));
	array_create(&tlb->a[TLB_L2], TLB_L2, cost(m, l2_entries), cost(m, l2_ways));
	psc_create(&tlb->psc[2], cost(m, pde_cache_entries));
	psc_create(&tlb->psc[3], cost(m, pdpte_cache_entries));
	psc_create(&tlb->psc[4], cost(m, pml4e_cache_entries));
	for (i = 0; i < NR_CTX; i++)
		for (slot = 0; slot < SOFT_NR_SC; slot++)
			sc_clear(c, i, slot);
	for (i = 0; i < 2; i++)
		for (slot = 0; slot < SOFT_NR_XSC; slot++)
			xsc_clear(c, i, slot);
	return 0;
}

void soft_tlb_destroy(struct soft_cpu *c)
{
	struct soft_tlb *tlb = c->tlb;
	u32 i;

	if (!tlb)
		return;
	for (i = 0; i < NR_TLBS; i++) {
		g_free(tlb->a[i].tag);
		g_free(tlb->a[i].e);
	}
	for (i = PSC_FIRST; i <= PSC_LAST; i++) {
		g_free(tlb->psc[i].tag);
		g_free(tlb->psc[i].e);
	}
	g_free(tlb);
	c->tlb = NULL;
}
