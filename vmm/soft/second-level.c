// SPDX-License-Identifier: GPL-2.0-only
/*
 * The second level of translation: which pages of guest RAM have a mapping, and whether
 * it allows writes. An access that it does not allow is an EPT violation (SDM 3C 29.3.3.2
 * [28.3.3.2]), counted and delayed by the upcall as on every engine, and gives the page all rights.
 *
 * Guest pages of 2 MiB and 1 GiB are backed by 4 KiB pages, as the VMM maps them on
 * kvm, so each 4 KiB page has its own violation; but a TLB entry keeps the
 * guest's page size, as if the backing were as large.
 */
#include "soft/tlb.h"
#include "soft/spin.h"

static struct soft_page *page_in(struct soft_vm *svm, const struct memslot *slot, gpa_t gpa, u8 **hva)
{
	u64 off = gpa - slot->gpa, pfn = (slot->offset + off) / PAGE_SIZE;

	if (hva)
		*hva = slot->hva + off;
	svm->page[pfn].pfn = (u32)pfn;
	return &svm->page[pfn];
}

struct soft_page *soft_page_of(struct soft_vm *svm, gpa_t gpa, u8 **hva)
{
	const struct memslot *slot = memory_slot(&svm->vm->mem, gpa);

	if (hva)
		*hva = NULL;
	return slot ? page_in(svm, slot, gpa, hva) : NULL;
}

struct soft_page *soft_cpu_page(struct soft_cpu *c, gpa_t gpa, u8 **hva)
{
	const struct memslot *slot = c->tlb->slot;

	if (unlikely(!slot || gpa - slot->gpa >= slot->size)) {
		slot = memory_slot(&c->svm->vm->mem, gpa);
		if (!slot) {
			*hva = NULL;
			return NULL;
		}
		c->tlb->slot = slot;
	}
	return page_in(c->svm, slot, gpa, hva);
}

void soft_violation(struct soft_cpu *c, struct soft_page *page, gpa_t gpa)
{
	enum ept_cause cause = page->flags & SPAGE_MAPPED ? EPT_WRITE_PROTECT :
			       page->flags & SPAGE_TOUCHED ? EPT_REFAULT : EPT_FIRST_TOUCH;
	u64 delay = vcpu_ept_violation(c->vcpu, gpa, cause), all, injected;

	page->flags |= SPAGE_MAPPED | SPAGE_TOUCHED;
	page->flags &= ~SPAGE_PROTECTED;
	/* Converted as one, so that the clock moves as it would without the two accounts. */
	all = soft_units_of(c->svm, delay + cost(&c->svm->cost, ept_violation));
	injected = MIN(soft_units_of(c->svm, delay), all);
	soft_spend(c, TIME_injected, injected);
	soft_spend(c, TIME_ept, all - injected);
}

/* Entries of a vCPU's TLB that lead to [gpa, gpa + len). */
static u32 drop_leading_to(struct soft_cpu *c, gpa_t gpa, u64 len)
{
	u32 kind, i, dropped = 0;

	for (kind = 0; kind < NR_TLBS; kind++) {
		struct tlb_array *a = &c->tlb->a[kind];

		for (i = 0; a->nr_valid && i < (a->set_mask + 1) * a->ways; i++) {
			if (!a->tag[i] || a->e[i].gpa >= gpa + len || a->e[i].gpa + (1ull << a->shift) <= gpa)
				continue;
			tlb_drop(c, a, i);
			dropped++;
		}
	}
	return dropped;
}

/* Does the page lose something? A mapping that goes takes the protection along: the next one has all rights. */
static bool page_lower(struct soft_page *page, enum gpa_rights left)
{
	if (!page || !(page->flags & SPAGE_MAPPED) || (left == GPA_READ && page->flags & SPAGE_PROTECTED))
		return false;
	if (left == GPA_READ)
		page->flags |= SPAGE_PROTECTED;
	else
		page->flags &= ~(SPAGE_MAPPED | SPAGE_PROTECTED);
	return true;
}

/*
 * Whoever takes rights away must end what was cached with them (INVEPT, SDM 3C 29.4.3.4
 * [28.4.3.4]); that the whole context goes with it there is not modelled.
 */
int soft_gpa_lowered(struct vm *vm, gpa_t gpa, u64 len, enum gpa_rights left)
{
	struct soft_vm *svm = vm->engine_data;
	struct soft_cpu *c;
	int lost = 0;
	u64 at;
	u32 i, dropped;

	soft_spin_wake_all(svm);
	for (at = ALIGN_DOWN(gpa, PAGE_SIZE); at < gpa + len; at += PAGE_SIZE)
		lost += page_lower(soft_page_of(svm, at, NULL), left);
	for (i = 0; lost && i < vm->topo.nr_cpus; i++) {
		c = vm->vcpu[i] ? soft_cpu(vm->vcpu[i]) : NULL;
		if (!c)
			continue;
		/* Shortcuts without paging have no entry to go with. */
		if (!(c->cr0 & X86_CR0_PG))
			soft_drop_shortcuts(c);
		dropped = drop_leading_to(c, ALIGN_DOWN(gpa, PAGE_SIZE), len + (gpa & (PAGE_SIZE - 1)));
		if (!dropped)
			continue;
		c->stat[STAT_flush_second_level]++;
		c->stat[STAT_flushed_entries] += dropped;
		soft_trace(c, TRACE_flush, soft_flush_name(FLUSH_SECOND_LEVEL), TRACE_NONE, TRACE_NONE, dropped);
	}
	return lost;
}

/* What a device puts where code was: a program's page that is read from a disk again. */
void soft_gpa_written(struct vm *vm, gpa_t gpa, u64 len)
{
	struct soft_vm *svm = vm->engine_data;

	soft_spin_wake_all(svm);
	while (len) {
		u32 off = (u32)(gpa & (PAGE_SIZE - 1)), piece = (u32)MIN(len, PAGE_SIZE - off);
		struct soft_page *page = soft_page_of(svm, gpa, NULL);

		if (page && page->flags & SPAGE_CODE)
			soft_code_written(svm, page, off, piece);
		gpa += piece;
		len -= piece;
	}
}
