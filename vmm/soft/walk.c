// SPDX-License-Identifier: GPL-2.0-only
/*
 * Page walks (SDM 3A 4.3 to 4.8): 4-level and PAE paging with entries of 8 bytes, 32-bit
 * paging with entries of 4. Levels are counted as 4 = PML4E, 3 = PDPTE, 2 = PDE, 1 = PTE.
 *
 * An entry above the leaf has its accessed flag set when the walk has gone through
 * it; the leaf's, and its dirty flag, only once the access is found to be allowed. PAE's
 * four PDPTEs are read by walks, as AMD does (APM vol. 2 5.2.3), not by MOV to CR3.
 *
 * To the second level reading an entry is a read and setting a flag a write (SDM 3C 29.3.3.2
 * [28.3.3.2]), as without accessed and dirty flags for EPT, which Ivy Bridge does not have.
 *
 * Entries are read and written by the one host thread with nothing in between, which
 * is what the locked accesses of hardware come to.
 */
#include "soft/lines.h"
#include "soft/tlb.h"

#include "x86/cpuid-bits.h"

#define PTE_BITS_52_62	0x7ff0000000000000ull
/* PAE PDPTE: R/W, U/S and bits 5 to 8 do not exist (SDM 3A table 4-8). */
#define PAE_PDPTE_RSVD	(PTE_BITS_52_62 | X86_PTE_NX | 0x1e6ull)

bool soft_allowed(const struct soft_cpu *c, u8 rights, enum soft_access access, enum soft_context ctx)
{
	if (access == ACCESS_FETCH) {
		if (rights & RIGHT_NX)
			return false;
		if (ctx == CTX_USER)
			return rights & RIGHT_U;
		return !(rights & RIGHT_U && c->cr4 & X86_CR4_SMEP);
	}
	if (ctx == CTX_USER)
		return rights & RIGHT_U && (access == ACCESS_READ || rights & RIGHT_W);
	if (ctx == CTX_KERNEL && rights & RIGHT_U && c->cr4 & X86_CR4_SMAP)
		return false;
	return access == ACCESS_READ || rights & RIGHT_W || !(c->cr0 & X86_CR0_WP);
}

/* The CPU's part in what is reserved; looked up once. */
static void learn_cpuid(struct soft_cpu *c)
{
	const struct cpuid_entry *size = cpuid_find(&c->vcpu->cpuid, CPUID_LEAF_SIZES, 0);
	const struct cpuid_entry *ext = cpuid_find(&c->vcpu->cpuid, CPUID_LEAF_EXT_1, 0);
	u32 bits = size ? size->eax & 0xff : 36;	/* SDM 3A 4.1.4 */

	bits = CLAMP(bits, 32, 52);
	c->tlb->phys_reserved = X86_PTE_ADDR & ~((1ull << bits) - 1);
	c->tlb->cpuid_known = true;
	c->tlb->gib_pages = ext && ext->edx & BIT(26);
}

static bool is_leaf(const struct soft_cpu *c, u32 level, u64 pte)
{
	if (level == 1)
		return true;
	if (!(pte & X86_PTE_PS))
		return false;
	if (level == 2)
		return c->cr4 & (X86_CR4_PAE | X86_CR4_PSE);
	return level == 3 && c->efer & X86_EFER_LMA && c->tlb->gib_pages;
}

/* Bits that must be 0 in a present entry (SDM 3A tables 4-4 to 4-6, 4-8 to 4-11, 4-14 to 4-19). */
static u64 reserved_bits(const struct soft_cpu *c, u32 level, u64 pte)
{
	u64 rsvd = c->tlb->phys_reserved;

	if (!(c->cr4 & X86_CR4_PAE)) {
		if (!is_leaf(c, level, pte) || level == 1)
			return 0;
		/* PSE-36: bits 13 to 20 are address bits 32 to 39, as far as there are so many; bit 21 is 0. */
		return BIT(21) | ((rsvd >> 32 & 0xff) << 13);
	}
	if (!(c->efer & X86_EFER_LMA)) {
		if (level == 3)
			return rsvd | PAE_PDPTE_RSVD;
		rsvd |= PTE_BITS_52_62;
	}
	if (!(c->efer & X86_EFER_NXE))
		rsvd |= X86_PTE_NX;
	if (level == 4 || (level == 3 && !c->tlb->gib_pages))
		rsvd |= X86_PTE_PS;
	else if (level > 1 && pte & X86_PTE_PS)
		rsvd |= ((1ull << (PAGE_SHIFT + 9 * (level - 1))) - 1) & ~0x1fffull;
	return rsvd;
}

static u32 entry_size(const struct soft_cpu *c)
{
	return c->cr4 & X86_CR4_PAE ? 8 : 4;
}

static gpa_t root_table(const struct soft_cpu *c, u32 *level)
{
	if (c->efer & X86_EFER_LMA) {
		*level = 4;
		return c->cr3 & X86_PTE_ADDR;
	}
	if (c->cr4 & X86_CR4_PAE) {
		*level = 3;
		return c->cr3 & 0xffffffe0ull;
	}
	*level = 2;
	return c->cr3 & 0xfffff000ull;
}

static gpa_t entry_address(const struct soft_cpu *c, gpa_t table, u32 level, u64 va)
{
	if (!(c->cr4 & X86_CR4_PAE))
		return table + (va >> (level == 2 ? 22 : PAGE_SHIFT) & 0x3ff) * 4;
	if (level == 3 && !(c->efer & X86_EFER_LMA))
		return table + (va >> 30 & 3) * 8;
	return table + (va >> (PAGE_SHIFT + 9 * (level - 1)) & 0x1ff) * 8;
}

static u8 add_rights(const struct soft_cpu *c, u8 rights, u32 level, u64 pte)
{
	if (level == 3 && !(c->efer & X86_EFER_LMA))
		return rights;
	if (!(pte & X86_PTE_RW))
		rights &= (u8)~RIGHT_W;
	if (!(pte & X86_PTE_US))
		rights &= (u8)~RIGHT_U;
	if (pte & X86_PTE_NX)
		rights |= RIGHT_NX;
	return rights;
}

/* Address of the page that a leaf maps; *shift is log2 of its size. */
static gpa_t leaf_address(const struct soft_cpu *c, u32 level, u64 pte, u8 *shift)
{
	if (level == 1) {
		*shift = PAGE_SHIFT;
		return pte & X86_PTE_ADDR;
	}
	if (!(c->cr4 & X86_CR4_PAE)) {
		*shift = 22;
		return (pte & 0xffc00000ull) | (pte >> 13 & 0xff) << 32;
	}
	*shift = (u8)(PAGE_SHIFT + 9 * (level - 1));
	return pte & X86_PTE_ADDR & ~((1ull << *shift) - 1);
}

/* One entry in guest RAM. */
struct walk_entry {
	gpa_t gpa;
	u8 *hva;		/* NULL: not RAM */
	struct soft_page *page;
	u64 pte;
};

static void entry_read(struct soft_cpu *c, struct walk_entry *at, gpa_t gpa)
{
	u32 size = entry_size(c);

	at->gpa = gpa;
	at->page = soft_cpu_page(c, gpa, &at->hva);
	at->pte = 0;
	if (unlikely(!at->page)) {
		at->pte = size == 8 ? UINT64_MAX : UINT32_MAX;	/* nothing answers there */
		return;
	}
	soft_second_level(c, at->page, gpa, false);
	if (c->filter)
		soft_lines_touch(c, at->page, (u32)(gpa & (PAGE_SIZE - 1)), size, LINE_WALK, false);
	memcpy(&at->pte, at->hva, size);
}

static void entry_set(struct soft_cpu *c, struct walk_entry *at, u64 bits)
{
	u32 size = entry_size(c);

	at->pte |= bits;
	if (unlikely(!at->hva))
		return;
	soft_second_level(c, at->page, at->gpa, true);
	memcpy(at->hva, &at->pte, size);
	if (unlikely(at->page->flags & SPAGE_CODE))
		soft_code_written(c->svm, at->page, (u32)(at->gpa & (PAGE_SIZE - 1)), size);
	if (c->filter)
		soft_lines_touch(c, at->page, (u32)(at->gpa & (PAGE_SIZE - 1)), size, LINE_LOCKED, false);
}

/* Error code: SDM 3A 4.7. Then what a page fault removes: 4.10.4.1. */
static int walk_fault(struct soft_cpu *c, const struct walk *w, u32 error)
{
	c->stat[error & PF_RSVD ? STAT_pf_reserved : error & PF_P ? STAT_pf_protection : STAT_pf_not_present]++;
	if (w->access == ACCESS_WRITE)
		error |= PF_W;
	if (w->ctx == CTX_USER)
		error |= PF_U;
	if (w->access == ACCESS_FETCH &&
	    (c->cr4 & X86_CR4_SMEP || (c->cr4 & X86_CR4_PAE && c->efer & X86_EFER_NXE)))
		error |= PF_I;
	c->fault = (struct soft_fault){ .vector = VEC_PF, .has_error = true, .error = error, .cr2 = w->va };
	soft_flush_page(c, w->va, FLUSH_FAULT);
	return SOFT_FAULT;
}

static int walk_leaf(struct soft_cpu *c, struct walk *w, struct walk_entry *at, u32 level, u8 rights)
{
	static const char *const access_name[] = {
		[ACCESS_READ] = "read", [ACCESS_WRITE] = "write", [ACCESS_FETCH] = "fetch",
	};
	u64 set = X86_PTE_A;

	if (!soft_allowed(c, rights, w->access, w->ctx))
		return walk_fault(c, w, PF_P);
	if (w->access == ACCESS_WRITE)
		set |= X86_PTE_D;
	set &= ~at->pte;
	if (set) {
		c->stat[STAT_accessed_set] += !!(set & X86_PTE_A);
		c->stat[STAT_dirty_set] += !!(set & X86_PTE_D);
		entry_set(c, at, set);
	}
	if (at->pte & X86_PTE_D)
		rights |= RIGHT_D;
	if (at->pte & X86_PTE_G && c->cr4 & X86_CR4_PGE)
		rights |= RIGHT_G;
	w->leaf = (struct tlb_entry){ .rights = rights };
	w->leaf.gpa = leaf_address(c, level, at->pte, &w->leaf.map_shift);
	soft_trace(c, TRACE_walk, access_name[w->access], w->va, w->leaf.gpa | (w->va & ((1ull << w->leaf.map_shift) - 1)), w->steps);
	return SOFT_OK;
}

int soft_walk(struct soft_cpu *c, struct walk *w)
{
	const struct cost_model *m = &c->svm->cost;
	u8 rights = RIGHT_W | RIGHT_U;
	const struct psc_entry *cached;
	struct walk_entry at;
	gpa_t table;
	u32 level;

	if (unlikely(!c->tlb->cpuid_known))
		learn_cpuid(c);
	c->stat[STAT_page_walks]++;
	soft_spend(c, TIME_walk, cost(m, walk_start));
	cached = psc_find(c->tlb, w->va, w->pcid, psc_shift(c, PSC_FIRST), &level);
	if (cached) {
		c->stat[STAT_psc_hits_pml4e + (PSC_LAST - level)]++;
		table = cached->table;
		rights = cached->rights;
		level--;
	} else {
		table = root_table(c, &level);
	}
	for (;; level--) {
		w->steps++;
		c->stat[STAT_walk_steps_pml4e + (4 - level)]++;
		soft_spend(c, TIME_walk, cost(m, walk_step));
		entry_read(c, &at, entry_address(c, table, level, w->va));
		if (!(at.pte & X86_PTE_P))
			return walk_fault(c, w, 0);
		if (at.pte & reserved_bits(c, level, at.pte))
			return walk_fault(c, w, PF_P | PF_RSVD);
		rights = add_rights(c, rights, level, at.pte);
		if (is_leaf(c, level, at.pte))
			return walk_leaf(c, w, &at, level, rights);
		/* PAE's PDPTEs have no accessed flag. */
		if (!(at.pte & X86_PTE_A) && (level != 3 || c->efer & X86_EFER_LMA)) {
			c->stat[STAT_accessed_set]++;
			entry_set(c, &at, X86_PTE_A);
		}
		table = at.pte & X86_PTE_ADDR;
		psc_fill(c->tlb, level, w->va, psc_shift(c, level), w->pcid, table, rights);
	}
}

bool soft_peek(struct soft_cpu *c, u64 va, gpa_t *gpa)
{
	gpa_t table;
	u32 level;
	u8 shift;
	u64 pte;

	if (!(c->cr0 & X86_CR0_PG)) {
		*gpa = (u32)va;
		return true;
	}
	if (c->efer & X86_EFER_LMA ? (u64)((s64)(va << 16) >> 16) != va : va >> 32)
		return false;
	for (table = root_table(c, &level);; level--) {
		pte = 0;
		if (memory_read(&c->svm->vm->mem, entry_address(c, table, level, va), &pte, entry_size(c)) ||
		    !(pte & X86_PTE_P))
			return false;
		/* The CPU's idea of 1 GiB pages may not be known yet; a dump takes the entry at its word. */
		if (level == 1 || (level < 4 && pte & X86_PTE_PS &&
				   (level == 3 ? c->efer & X86_EFER_LMA : c->cr4 & (X86_CR4_PAE | X86_CR4_PSE)))) {
			*gpa = leaf_address(c, level, pte, &shift);
			*gpa |= va & ((1ull << shift) - 1);
			return true;
		}
		table = pte & X86_PTE_ADDR;
	}
}

bool soft_peek_bytes(struct soft_cpu *c, u64 va, void *to, u64 len)
{
	u64 done, part;
	gpa_t gpa;

	for (done = 0; done < len; done += part) {
		part = MIN(len - done, PAGE_SIZE - ((va + done) & (PAGE_SIZE - 1)));
		if (!soft_peek(c, va + done, &gpa) || memory_read(&c->svm->vm->mem, gpa, (u8 *)to + done, part))
			return false;
	}
	return true;
}
