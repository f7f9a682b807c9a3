/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The TLBs of one vCPU as hardware has them, and the book of the shortcuts that lie
 * over them. Only tlb*.c, walk.c, mmu.c and second-level.c include this.
 *
 * First level: data (4K, 2M, 1G pages) and instructions (4K, 2M; a 1 GiB page is
 * entered there as 2 MiB pieces, a 4 MiB page everywhere). Second level: 4 KiB pages
 * of both; larger ones bypass it. It is filled by walks along with the first and
 * neither includes nor excludes it, as on Ivy Bridge: an entry evicted from one
 * stays in the other. Above them the paging-structure caches of SDM 3A 4.10.3.
 *
 * Replacement is NRU: the first invalid way, else the first that was not
 * referenced since all of its set had been. An access by a shortcut sets the
 * shortcut's `used`, which counts as the entry's reference bit and is moved there
 * before the shortcut goes: so what is replaced, and all that follows from it, is
 * the same with and without shortcuts (after a snapshot, for one).
 */
#ifndef SOFT_TLB_H
#define SOFT_TLB_H

#include "soft/soft-mem.h"

/*
 * A tag is the page's linear address without the bits above 47 (copies of bit 47),
 * the PCID in the low 12, and two flags. Those of global translations have PCID 0.
 */
#define TAG_VALID	BIT_ULL(62)
#define TAG_GLOBAL	BIT_ULL(63)
#define TAG_ADDR	0x0000fffffffff000ull
#define TAG_PCID	0xfffull

/* Rights of a translation, all levels combined (SDM 3A 4.6, 4.10.2.2). */
#define RIGHT_W		BIT(0)
#define RIGHT_U		BIT(1)
#define RIGHT_NX	BIT(2)
#define RIGHT_D		BIT(3)	/* the leaf's dirty flag is set */
#define RIGHT_G		BIT(4)	/* the leaf's global flag is set and CR4.PGE was */
/*
 * The second level allowed writes when the entry was made: a combined mapping has the rights of both
 * levels (SDM 3C 29.4.1 [28.4.1]). Set in entries of larger pages, whose 4 KiB are looked at each on its own.
 */
#define RIGHT_EW	BIT(5)
#define RIGHT_ALL	(BIT(6) - 1)

#define SC_WORDS	DIV_ROUND_UP(SOFT_NR_SC, 64)
#define XSC_WORDS	DIV_ROUND_UP(SOFT_NR_XSC, 64)
_Static_assert(SC_WORDS <= 8 && XSC_WORDS <= SC_WORDS, "tlb_entry.words has a bit for each word of slots");

struct tlb_entry {
	gpa_t gpa;		/* of the first byte */
	u8 *hva;		/* 4 KiB pages in RAM: host address of the first byte, else NULL */
	struct soft_page *page;	/* the same */
	u64 slots[SC_WORDS];	/* shortcut slots that were given to this entry (and may be others' by now) */
	u8 words;		/* which of slots[] are not 0 */
	u8 rights;
	u8 map_shift;		/* log2 of the mapping's size; above the array's for a piece */
	u8 ref;
};

struct tlb_array {
	u64 *tag;		/* sets * ways; 0 = invalid */
	struct tlb_entry *e;
	u32 ways, set_mask;
	u32 nr_valid;
	u8 shift;		/* log2 of the page size */
	bool pieces;		/* may hold pieces of larger mappings */
};

enum tlb_kind { TLB_D_4K, TLB_D_2M, TLB_D_1G, TLB_I_4K, TLB_I_2M, TLB_L2, NR_TLBS };

/* Paging-structure caches, by the level of the entry cached: 2 = PDE, 3 = PDPTE, 4 = PML4E. Fully associative. */
#define PSC_FIRST	2u
#define PSC_LAST	4u
struct psc_entry {
	gpa_t table;		/* where the entry points to */
	u8 rights;		/* of this and all higher levels */
	u8 ref;
};
struct psc {
	u64 *tag;
	struct psc_entry *e;
	u32 nr, nr_valid;
};

/* Whose a shortcut is; the owner is NULL without paging. */
struct sc_book {
	struct tlb_entry *owner;
	struct soft_page *page;
};

struct soft_tlb {
	struct tlb_array a[NR_TLBS];
	struct psc psc[PSC_LAST + 1];
	struct sc_book book[NR_CTX][SOFT_NR_SC];
	u64 live[NR_CTX][SC_WORDS];		/* slots of sct[] with a tag */
	struct tlb_entry *xowner[2][SOFT_NR_XSC];
	u64 xlive[2][XSC_WORDS];		/* slots of xsct[] that block.c may have filled */
	u64 phys_reserved;	/* address bits from MAXPHYADDR to 51 */
	bool gib_pages;		/* CPUID shows 1 GiB pages */
	bool cpuid_known;	/* these two are set: the table is complete only once the VM runs */
	const struct memslot *slot;	/* the last one found */
};

static inline u16 soft_pcid(const struct soft_cpu *c)
{
	return c->cr4 & X86_CR4_PCIDE ? c->cr3 & TAG_PCID : 0;
}

static inline u64 tlb_page_of(u64 va, u8 shift)
{
	return va & TAG_ADDR & ~((1ull << shift) - 1);
}

static inline u64 tlb_tag(u64 va, u8 shift, u16 pcid, u8 rights)
{
	return tlb_page_of(va, shift) | TAG_VALID | (rights & RIGHT_G ? TAG_GLOBAL : pcid);
}

/* The way of va's set that translates it, or NULL. */
static inline struct tlb_entry *tlb_find(const struct tlb_array *a, u64 va, u16 pcid)
{
	u32 first = ((u32)(va >> a->shift) & a->set_mask) * a->ways, w;
	u64 page = tlb_page_of(va, a->shift) | TAG_VALID;

	if (!a->nr_valid)
		return NULL;
	for (w = first; w < first + a->ways; w++)
		if (a->tag[w] == (page | pcid) || a->tag[w] == (page | TAG_GLOBAL))
			return &a->e[w];
	return NULL;
}

/* --- tlb.c --- */

/* Put a translation of va into an array, in place of one of the same page if there is one. */
struct tlb_entry *tlb_fill(struct soft_cpu *c, enum tlb_kind kind, u64 va, u16 pcid, const struct tlb_entry *from);
/* Remove one entry and its shortcuts. */
void tlb_drop(struct soft_cpu *c, struct tlb_array *a, u32 i);
/* Remove an array's entries for va, pieces of the same mapping included: of this PCID, and globals if so. How many. */
u32 tlb_drop_va(struct soft_cpu *c, enum tlb_kind kind, u64 va, u16 pcid, bool global);
/* Has an entry been referenced, by itself or through a shortcut? */
bool tlb_referenced(const struct soft_cpu *c, enum tlb_kind kind, const struct tlb_entry *e);

/* The lowest cached entry for va, NULL if none; *level is its level. A PDE maps 1 << pde_shift bytes. */
const struct psc_entry *psc_find(struct soft_tlb *tlb, u64 va, u16 pcid, u8 pde_shift, u32 *level);
void psc_fill(struct soft_tlb *tlb, u32 level, u64 va, u8 shift, u16 pcid, gpa_t table, u8 rights);
/* Log2 of what a cached entry of this level maps; a 32-bit PDE's 4 MiB are cached as such. */
u8 psc_shift(const struct soft_cpu *c, u32 level);

/* Give a slot to a data shortcut / prepare the fetch slot for block.c. e is NULL without paging. */
void sc_install(struct soft_cpu *c, enum soft_context ctx, u64 va, struct tlb_entry *e, u8 *hva_page,
		struct soft_page *page, bool readable, bool writable);
void xsc_prepare(struct soft_cpu *c, bool user, u64 va, struct tlb_entry *e);

/* --- tlb-flush.c --- */

/* A cause of flushes by its name in traces and counters: "invlpg", "cr3". */
const char *soft_flush_name(enum soft_flush why);

/* --- walk.c --- */

/* What an access wants, and what a walk found. */
struct walk {
	u64 va;
	enum soft_access access;
	enum soft_context ctx;
	u16 pcid;
	u32 steps;
	struct tlb_entry leaf;	/* gpa of the page, rights, map_shift */
};

/* May a translation with these rights serve the access (SDM 3A 4.6.1)? The dirty flag is not looked at. */
bool soft_allowed(const struct soft_cpu *c, u8 rights, enum soft_access access, enum soft_context ctx);
/* Walk the tables: charges, counts, sets A and D, fills the paging-structure caches. SOFT_FAULT with c->fault set. */
int soft_walk(struct soft_cpu *c, struct walk *w);

/* --- second-level.c --- */

/* Like soft_page_of(), for a vCPU: remembers the slot. */
struct soft_page *soft_cpu_page(struct soft_cpu *c, gpa_t gpa, u8 **hva);
/* An access that the page's second-level mapping does not allow: EPT violation, its service, its cost. Then it does. */
void soft_violation(struct soft_cpu *c, struct soft_page *page, gpa_t gpa);

/* What the second level has to say on an access to a page. */
static inline void soft_second_level(struct soft_cpu *c, struct soft_page *page, gpa_t gpa, bool write)
{
	if (unlikely((page->flags & (SPAGE_MAPPED | (write ? SPAGE_PROTECTED : 0))) != SPAGE_MAPPED))
		soft_violation(c, page, gpa);
}

#endif
