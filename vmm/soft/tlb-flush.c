// SPDX-License-Identifier: GPL-2.0-only
/*
 * What each operation removes from the TLBs and paging-structure caches: what SDM 3A
 * 4.10.4.1 says it must, and nothing that it merely may. What a kernel forgets to
 * flush stays visible here.
 */
#include <string.h>

#include "soft/tlb.h"

#define ANY_PCID	0x10000u

_Static_assert((u32)NR_FLUSH == (u32)STAT_flush_reset - (u32)STAT_flush_invlpg + 1,
	       "one counter for each cause, in the same order");

/* The cause's name is that of its counter. */
const char *soft_flush_name(enum soft_flush why)
{
	static const char *const stat_name[] = {
#define SOFT_STAT(name, meaning)	#name,
#include "soft/soft-stats.def"
#undef SOFT_STAT
	};

	return stat_name[STAT_flush_invlpg + why] + strlen("flush_");
}

/* va and pcid for the trace: TRACE_NONE where the flush is not confined to one. */
static void flush_done(struct soft_cpu *c, enum soft_flush why, u64 va, u64 pcid, u32 dropped)
{
	c->stat[STAT_flush_invlpg + why]++;
	c->stat[STAT_flushed_entries] += dropped;
	soft_trace(c, TRACE_flush, soft_flush_name(why), va, c->cr4 & X86_CR4_PCIDE ? pcid : TRACE_NONE, dropped);
}

/* TLB entries of one PCID or of all, with or without the globals. */
static u32 drop_entries(struct soft_cpu *c, u32 pcid, bool global)
{
	u32 kind, i, dropped = 0;

	for (kind = 0; kind < NR_TLBS; kind++) {
		struct tlb_array *a = &c->tlb->a[kind];

		for (i = 0; a->nr_valid && i < (a->set_mask + 1) * a->ways; i++) {
			u64 tag = a->tag[i];

			if (!tag || (tag & TAG_GLOBAL ? !global : pcid != ANY_PCID && (tag & TAG_PCID) != pcid))
				continue;
			tlb_drop(c, a, i);
			dropped++;
		}
	}
	return dropped;
}

static u32 drop_page(struct soft_cpu *c, u64 va, u16 pcid, bool global)
{
	u32 kind, dropped = 0;

	for (kind = 0; kind < NR_TLBS; kind++)
		dropped += tlb_drop_va(c, (enum tlb_kind)kind, va, pcid, global);
	return dropped;
}

static void psc_drop(struct psc *p, u32 i)
{
	p->tag[i] = 0;
	p->e[i].ref = 0;
	p->nr_valid--;
}

static void psc_drop_all(struct soft_cpu *c, u32 pcid)
{
	u32 level, i;

	for (level = PSC_FIRST; level <= PSC_LAST; level++) {
		struct psc *p = &c->tlb->psc[level];

		for (i = 0; p->nr_valid && i < p->nr; i++)
			if (p->tag[i] && (pcid == ANY_PCID || (p->tag[i] & TAG_PCID) == pcid))
				psc_drop(p, i);
	}
}

/* Those that a walk for va would use. */
static void psc_drop_va(struct soft_cpu *c, u64 va, u16 pcid)
{
	u32 level, i;

	for (level = PSC_FIRST; level <= PSC_LAST; level++) {
		struct psc *p = &c->tlb->psc[level];
		u64 tag = tlb_tag(va, psc_shift(c, level), pcid, 0);

		for (i = 0; p->nr_valid && i < p->nr; i++)
			if (p->tag[i] == tag)
				psc_drop(p, i);
	}
}

void soft_flush_page(struct soft_cpu *c, u64 va, enum soft_flush why)
{
	u16 pcid = soft_pcid(c);
	u32 dropped = drop_page(c, va, pcid, true);

	/* A page fault takes only what it has used; INVLPG all of the PCID, whatever the address. */
	if (why == FLUSH_FAULT) {
		psc_drop_va(c, va, pcid);
		if (!dropped)
			return;
		c->stat[STAT_flush_fault] += dropped - 1;
	} else {
		psc_drop_all(c, pcid);
	}
	flush_done(c, why, va, pcid, dropped);
}

void soft_flush_page_pcid(struct soft_cpu *c, u64 va, u16 pcid)
{
	u32 dropped = drop_page(c, va, pcid, false);

	psc_drop_va(c, va, pcid);
	flush_done(c, FLUSH_INVPCID_ADDR, va, pcid, dropped);
}

void soft_flush_pcid(struct soft_cpu *c, u16 pcid, enum soft_flush why)
{
	u32 dropped = drop_entries(c, pcid, false);

	psc_drop_all(c, pcid);
	flush_done(c, why, TRACE_NONE, pcid, dropped);
}

void soft_flush_nonglobal(struct soft_cpu *c, enum soft_flush why)
{
	u32 dropped = drop_entries(c, ANY_PCID, false);

	psc_drop_all(c, ANY_PCID);
	flush_done(c, why, TRACE_NONE, TRACE_NONE, dropped);
}

void soft_flush_all(struct soft_cpu *c, enum soft_flush why)
{
	u32 dropped, kind;

	soft_drop_shortcuts(c);
	dropped = drop_entries(c, ANY_PCID, true);
	psc_drop_all(c, ANY_PCID);
	for (kind = 0; kind < NR_TLBS; kind++)
		c->tlb->a[kind].pieces = false;
	flush_done(c, why, TRACE_NONE, TRACE_NONE, dropped);
}

void soft_load_cr3(struct soft_cpu *c, u64 value)
{
	bool noflush = c->cr4 & X86_CR4_PCIDE && value & X86_CR3_NOFLUSH;

	/* Before the PCID changes: they are of the old one. */
	soft_drop_shortcuts(c);
	c->cr3 = value & ~X86_CR3_NOFLUSH;
	c->stat[STAT_cr3_writes]++;
	if (noflush)
		c->stat[STAT_cr3_noflush]++;
	else
		soft_flush_pcid(c, soft_pcid(c), FLUSH_CR3);
	soft_trace(c, TRACE_cr3, noflush ? "noflush" : "flush", c->cr3,
		   c->cr4 & X86_CR4_PCIDE ? soft_pcid(c) : TRACE_NONE, TRACE_NONE);
}
