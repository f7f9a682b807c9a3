// SPDX-License-Identifier: GPL-2.0-only
/*
 * A vCPU's TLBs and paging-structure caches to and from a snapshot, replacement state
 * included: what is evicted later must not depend on whether the run was restored.
 * Shortcuts are not part of it; that they were used goes into the reference bits.
 */
#include "core/saver.h"
#include "soft/tlb.h"

static bool array_check(const struct tlb_array *a, const struct tlb_entry *e, u64 tag)
{
	if (!(tag & TAG_VALID) || e->gpa & (PAGE_SIZE - 1) || e->rights & ~RIGHT_ALL)
		return false;
	if (a->shift == PAGE_SHIFT || a->shift == 30)
		return e->map_shift == a->shift;
	return e->map_shift == 21 || e->map_shift == 22 || e->map_shift == 30;
}

static void array_state(struct saver *s, const struct soft_cpu *c, enum tlb_kind kind)
{
	struct tlb_array *a = &c->tlb->a[kind];
	u32 nr = (a->set_mask + 1) * a->ways, i;

	saver_same(s, a->ways, "the ways of a TLB");
	saver_same(s, nr, "the entries of a TLB");
	for (i = 0; i < nr; i++) {
		struct tlb_entry e = { 0 };
		u64 tag = a->tag[i];

		saver_u64(s, &tag);
		if (!tag)
			continue;
		if (!s->loading) {
			e = a->e[i];
			e.ref = tlb_referenced(c, kind, &a->e[i]);
		}
		saver_u64(s, &e.gpa);
		saver_u8(s, &e.rights);
		saver_u8(s, &e.map_shift);
		saver_u8(s, &e.ref);
		if (!s->loading || !saver_check(s, array_check(a, &e, tag), "TLB entry"))
			continue;
		a->tag[i] = tag;
		a->e[i] = e;
		a->nr_valid++;
		a->pieces |= e.map_shift > a->shift;
	}
}

static void psc_state(struct saver *s, struct psc *p)
{
	u32 i;

	saver_same(s, p->nr, "the entries of a paging-structure cache");
	for (i = 0; i < p->nr; i++) {
		u64 tag = p->tag[i];
		struct psc_entry e = p->e[i];

		saver_u64(s, &tag);
		if (!tag)
			continue;
		saver_u64(s, &e.table);
		saver_u8(s, &e.rights);
		saver_u8(s, &e.ref);
		if (!s->loading ||
		    !saver_check(s, tag & TAG_VALID && !(e.table & (PAGE_SIZE - 1)), "paging-structure entry"))
			continue;
		p->tag[i] = tag;
		p->e[i] = e;
		p->nr_valid++;
	}
}

static void tlb_state(struct saver *s, const struct soft_cpu *c)
{
	u32 i;

	saver_begin(s, "soft-tlb", 2);
	for (i = 0; i < NR_TLBS; i++)
		array_state(s, c, (enum tlb_kind)i);
	for (i = PSC_FIRST; i <= PSC_LAST; i++)
		psc_state(s, &c->tlb->psc[i]);
	saver_end(s);
}

void soft_tlb_save(const struct soft_cpu *c, GByteArray *out)
{
	struct saver s;

	saver_init_save(&s);
	tlb_state(&s, c);
	g_byte_array_append(out, s.out->data, s.out->len);
	saver_destroy(&s);
}

static void relocate(struct soft_cpu *c)
{
	u32 kind, i;

	for (kind = 0; kind < NR_TLBS; kind++) {
		struct tlb_array *a = &c->tlb->a[kind];

		for (i = 0; a->shift == PAGE_SHIFT && i < (a->set_mask + 1) * a->ways; i++)
			if (a->tag[i])
				a->e[i].page = soft_cpu_page(c, a->e[i].gpa, &a->e[i].hva);
	}
}

bool soft_tlb_restore(struct soft_cpu *c, const u8 *data, size_t len)
{
	u64 stat[NR_SOFT_STATS];
	struct saver s;
	bool ok;

	/* An empty TLB first; that is no flush of the guest's. */
	memcpy(stat, c->stat, sizeof(stat));
	soft_flush_all(c, FLUSH_RESET);
	memcpy(c->stat, stat, sizeof(stat));
	saver_init_load(&s, "snapshot", data, len);
	tlb_state(&s, c);
	saver_finish(&s);
	ok = saver_ok(&s);
	saver_destroy(&s);
	if (!ok)
		soft_flush_all(c, FLUSH_RESET);
	relocate(c);
	return ok;
}
