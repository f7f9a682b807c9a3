// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the TLB keeps and what each operation removes (SDM 3A 4.10): stale translations
 * must be seen until something flushes them, and not after.
 */
#include <errno.h>
#include <string.h>

#include "base/rng.h"
#include "soft-fixture.h"
#include "soft/soft-mem.h"
#include "x86/cr.h"

#define RIGHTS	(X86_PTE_P | X86_PTE_RW | X86_PTE_US | X86_PTE_A | X86_PTE_D)
#define T_PML4	0x11000ull
#define T_PDPT	0x12000ull
#define T_PD	0x13000ull
#define T_PT	0x14000ull
#define T_PT2	0x15000ull
#define OLD_4K	0x40000ull
#define NEW_4K	0x41000ull

static struct soft_fixture *f;
static struct soft_cpu *cpu;

static u64 *entry(gpa_t table, u64 index)
{
	return soft_fixture_ram(f, table + index * 8, 8);
}

static void setup(u32 nr_cpus)
{
	struct x86_state s;
	u32 i;

	f = soft_fixture_new(16, nr_cpus);
	for (i = 0; i < nr_cpus; i++) {
		soft_fixture_long(f, i, &s);
		s.cr3 = T_PML4;
		s.cr4 |= X86_CR4_PGE | X86_CR4_PCIDE;
		soft_fixture_set(f, i, &s);
	}
	cpu = soft_cpu(&f->cpu[0]);
	*entry(T_PML4, 0) = T_PDPT | RIGHTS;
	*entry(T_PDPT, 0) = T_PD | RIGHTS;
	*entry(T_PD, 0) = T_PT | RIGHTS;
}

static void teardown(void)
{
	soft_fixture_free(f);
}

static gpa_t get(struct soft_cpu *c, u64 va, enum soft_access access)
{
	struct soft_xlat x;

	return soft_translate(c, va, access, false, &x) ? UINT64_MAX : x.gpa;
}

static void go_pcid(u16 pcid)
{
	soft_load_cr3(cpu, T_PML4 | pcid | X86_CR3_NOFLUSH);
}

static void set_geometry(struct soft_cpu *c, u32 entries, u32 ways, u32 l2)
{
	static const enum cost_id n[] = { COST_l1d_4k_entries, COST_l1d_2m_entries, COST_l1i_4k_entries,
					  COST_l1i_2m_entries };
	static const enum cost_id w[] = { COST_l1d_4k_ways, COST_l1d_2m_ways, COST_l1i_4k_ways, COST_l1i_2m_ways };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(n); i++) {
		c->svm->cost.v[n[i]] = entries;
		c->svm->cost.v[w[i]] = ways;
	}
	c->svm->cost.v[COST_l2_entries] = l2;
	c->svm->cost.v[COST_l2_ways] = ways;
	soft_tlb_destroy(c);
	g_assert_cmpint(soft_tlb_create(c), ==, 0);
}

/* --- every operation x page size x kind of translation x TLB --- */

enum op {
	OP_NONE, OP_INVLPG, OP_INVLPG_OTHER_VA, OP_ADDR_OWN, OP_ADDR_FOREIGN, OP_SINGLE_OWN, OP_SINGLE_FOREIGN,
	OP_NONGLOBAL, OP_ALL, OP_CR3, OP_CR3_NOFLUSH, OP_CR3_FOREIGN, NR_OPS
};

/* The PCID in force is 1, the other one 2. */
static void do_op(enum op op, u64 va)
{
	switch (op) {
	case OP_INVLPG:
		soft_flush_page(cpu, va ^ 0x123, FLUSH_INVLPG);
		break;
	case OP_INVLPG_OTHER_VA:
		soft_flush_page(cpu, va + (1ull << 40), FLUSH_INVLPG);
		break;
	case OP_ADDR_OWN:
		soft_flush_page_pcid(cpu, va, 1);
		break;
	case OP_ADDR_FOREIGN:
		soft_flush_page_pcid(cpu, va, 2);
		break;
	case OP_SINGLE_OWN:
		soft_flush_pcid(cpu, 1, FLUSH_INVPCID_SINGLE);
		break;
	case OP_SINGLE_FOREIGN:
		soft_flush_pcid(cpu, 2, FLUSH_INVPCID_SINGLE);
		break;
	case OP_NONGLOBAL:
		soft_flush_nonglobal(cpu, FLUSH_INVPCID_ALL_NONGLOBAL);
		break;
	case OP_ALL:
		soft_flush_all(cpu, FLUSH_INVPCID_ALL);
		break;
	case OP_CR3:
		soft_load_cr3(cpu, T_PML4 | 1);
		break;
	case OP_CR3_NOFLUSH:
		soft_load_cr3(cpu, T_PML4 | 1 | X86_CR3_NOFLUSH);
		break;
	case OP_CR3_FOREIGN:
		soft_load_cr3(cpu, T_PML4 | 2);
		break;
	default:
		break;
	}
}

enum trans { TRANS_OWN, TRANS_FOREIGN, TRANS_GLOBAL, NR_TRANS };

/* Which kinds of translation of the address each operation removes. */
static const bool removes[NR_OPS][NR_TRANS] = {
	[OP_INVLPG] = { true, false, true },
	[OP_ADDR_OWN] = { true, false, false },
	[OP_ADDR_FOREIGN] = { false, true, false },
	[OP_SINGLE_OWN] = { true, false, false },
	[OP_SINGLE_FOREIGN] = { false, true, false },
	[OP_NONGLOBAL] = { true, true, false },
	[OP_ALL] = { true, true, true },
	[OP_CR3] = { true, false, false },
	[OP_CR3_FOREIGN] = { false, true, false },
};

static const struct {
	u8 shift;
	u64 va, old_leaf, new_leaf;
} sizes[] = {
	{ 12, 0x5000, OLD_4K, NEW_4K },
	{ 21, 0x600000, 0x400000 | X86_PTE_PS, 0x800000 | X86_PTE_PS },
	{ 30, 0x80000000, 0x40000000 | X86_PTE_PS, 0xc0000000 | X86_PTE_PS },
};

static u64 *leaf_of(u8 shift, u64 va)
{
	return shift == 12 ? entry(T_PT, va >> 12 & 511) : shift == 21 ? entry(T_PD, va >> 21 & 511) :
	       entry(T_PDPT, va >> 30 & 511);
}

static void check_flush(enum op op, u32 size, enum trans trans, enum soft_access access, u64 at)
{
	u64 va = sizes[size].va + at, offset = at + (size ? 0x3000 : 0), *leaf = leaf_of(sizes[size].shift, va);
	u64 global = trans == TRANS_GLOBAL ? X86_PTE_G : 0;
	gpa_t before = (sizes[size].old_leaf & ~0xfffull) + offset;
	gpa_t after = (sizes[size].new_leaf & ~0xfffull) + offset;
	gpa_t want = removes[op][trans] ? after : before, got;
	u16 pcid = trans == TRANS_FOREIGN ? 2 : 1;

	va += size ? 0x3000 : 0;
	soft_flush_all(cpu, FLUSH_RESET);
	*leaf = sizes[size].old_leaf | RIGHTS | global;
	go_pcid(pcid);
	g_assert_cmphex(get(cpu, va, access), ==, before);
	*leaf = sizes[size].new_leaf | RIGHTS | global;
	g_assert_cmphex(get(cpu, va, access), ==, before);
	go_pcid(1);
	do_op(op, sizes[size].va);
	go_pcid(pcid);
	got = get(cpu, va, access);
	if (got != want) {
		g_test_message("operation %d, size 1 << %u, kind %d, access %d: 0x%llx, not 0x%llx", op,
			       sizes[size].shift, trans, access, (unsigned long long)got, (unsigned long long)want);
		g_test_fail();
	}
	/* A global translation serves every PCID; another one only its own. */
	if (op == OP_NONE) {
		go_pcid(3);
		g_assert_cmphex(get(cpu, va, access), ==, trans == TRANS_GLOBAL ? before : after);
	}
}

static void test_flushes(void)
{
	u32 op, size, trans, access, piece;

	setup(1);
	/* Several sets: pieces of one page must be found in all. */
	set_geometry(cpu, 16, 4, 32);
	for (op = 0; op < NR_OPS; op++)
		for (size = 0; size < ARRAY_SIZE(sizes); size++)
			for (trans = 0; trans < NR_TRANS; trans++)
				for (access = ACCESS_READ; access <= ACCESS_FETCH; access++)
					/* 1: another 2 MiB piece of the 1 GiB page than the flushed one. */
					for (piece = 0; piece <= (size == 2); piece++)
						check_flush((enum op)op, size, (enum trans)trans,
							    (enum soft_access)access, piece * 3 * 2 * MIB);
	g_assert_cmpuint(cpu->stat[STAT_flush_invlpg], >, 0);
	g_assert_cmpuint(cpu->stat[STAT_cr3_noflush], >, cpu->stat[STAT_flush_cr3]);
	teardown();
}

/* Without PCIDE everything is of PCID 0, and bit 63 (which MOV to CR3 refuses then) keeps nothing. */
static void test_no_pcid(void)
{
	setup(1);
	cpu->cr4 &= ~X86_CR4_PCIDE;
	soft_flush_all(cpu, FLUSH_CR4);
	*entry(T_PT, 5) = OLD_4K | RIGHTS;
	*entry(T_PT, 6) = OLD_4K | RIGHTS | X86_PTE_G;
	g_assert_cmphex(get(cpu, 0x5000, ACCESS_READ), ==, OLD_4K);
	g_assert_cmphex(get(cpu, 0x6000, ACCESS_READ), ==, OLD_4K);
	*entry(T_PT, 5) = NEW_4K | RIGHTS;
	*entry(T_PT, 6) = NEW_4K | RIGHTS | X86_PTE_G;
	g_assert_cmphex(get(cpu, 0x5000, ACCESS_READ), ==, OLD_4K);
	soft_load_cr3(cpu, T_PML4 | X86_CR3_NOFLUSH);
	g_assert_cmphex(get(cpu, 0x5000, ACCESS_READ), ==, NEW_4K);
	g_assert_cmphex(get(cpu, 0x6000, ACCESS_READ), ==, OLD_4K);
	/* With CR4.PGE clear the flag G means nothing. */
	cpu->cr4 &= ~X86_CR4_PGE;
	soft_flush_all(cpu, FLUSH_CR4);
	g_assert_cmphex(get(cpu, 0x6000, ACCESS_READ), ==, NEW_4K);
	*entry(T_PT, 6) = OLD_4K | RIGHTS | X86_PTE_G;
	soft_load_cr3(cpu, T_PML4);
	g_assert_cmphex(get(cpu, 0x6000, ACCESS_READ), ==, OLD_4K);
	teardown();
}

/* --- paging-structure caches --- */

/* Does `op` take a cached PDE of PCID 1 (`foreign`: 2)? Pages 5 and 6 lie under it; only page 5 is touched before. */
static bool psc_gone(enum op op, bool foreign)
{
	gpa_t got;

	soft_flush_all(cpu, FLUSH_RESET);
	*entry(T_PD, 0) = T_PT | RIGHTS;
	*entry(T_PT, 5) = *entry(T_PT, 6) = OLD_4K | RIGHTS;
	*entry(T_PT2, 6) = NEW_4K | RIGHTS;
	go_pcid(foreign ? 2 : 1);
	get(cpu, 0x5000, ACCESS_READ);
	*entry(T_PD, 0) = T_PT2 | RIGHTS;
	go_pcid(1);
	do_op(op, 0x5000);
	go_pcid(foreign ? 2 : 1);
	got = get(cpu, 0x6000, ACCESS_READ);
	g_assert_true(got == OLD_4K || got == NEW_4K);
	return got == NEW_4K;
}

static void test_structure_caches(void)
{
	u32 op;

	setup(1);
	for (op = 0; op < NR_OPS; op++) {
		/* INVLPG takes all of its PCID, whatever the address; globals do not exist here. */
		bool own = removes[op][TRANS_OWN] || op == OP_INVLPG_OTHER_VA;

		g_assert_cmpint(psc_gone((enum op)op, false), ==, own);
		g_assert_cmpint(psc_gone((enum op)op, true), ==, removes[op][TRANS_FOREIGN]);
	}
	/* INVPCID for an address leaves those that other addresses use. */
	soft_flush_all(cpu, FLUSH_RESET);
	go_pcid(1);
	*entry(T_PD, 0) = T_PT | RIGHTS;
	get(cpu, 0x5000, ACCESS_READ);
	*entry(T_PD, 0) = T_PT2 | RIGHTS;
	soft_flush_page_pcid(cpu, 0x200000, 1);
	g_assert_cmphex(get(cpu, 0x6000, ACCESS_READ), ==, OLD_4K);
	/* Neither does an entry that is not present get cached, nor one after the fault. */
	g_assert_cmphex(get(cpu, 0x7000, ACCESS_READ), ==, UINT64_MAX);
	g_assert_cmphex(get(cpu, 0x6000, ACCESS_READ), ==, OLD_4K);	/* the TLB's, not a page of the fault */
	g_assert_cmphex(get(cpu, 0x8000, ACCESS_READ), ==, UINT64_MAX);
	*entry(T_PT2, 8) = NEW_4K | RIGHTS;
	g_assert_cmphex(get(cpu, 0x8000, ACCESS_READ), ==, NEW_4K);
	/* Rights of the levels above come from the cache, too. */
	*entry(T_PD, 0) = T_PT2 | (RIGHTS & ~(X86_PTE_RW | X86_PTE_US));
	*entry(T_PT2, 9) = NEW_4K | RIGHTS;
	g_assert_cmphex(get(cpu, 0x9000, ACCESS_WRITE), ==, NEW_4K);
	soft_flush_pcid(cpu, 1, FLUSH_INVPCID_SINGLE);
	g_assert_cmphex(get(cpu, 0x9000, ACCESS_WRITE), ==, UINT64_MAX);
	g_assert_cmphex(cpu->fault.error, ==, PF_P | PF_W);
	teardown();
}

/* --- rights: less of them stays unseen, more of them needs no flush --- */

static void test_rights(void)
{
	u64 *pte;

	setup(1);
	pte = entry(T_PT, 5);
	*pte = OLD_4K | RIGHTS;
	g_assert_cmphex(get(cpu, 0x5000, ACCESS_WRITE), ==, OLD_4K);
	*pte = 0;
	g_assert_cmphex(get(cpu, 0x5000, ACCESS_WRITE), ==, OLD_4K);
	g_assert_nonnull(soft_fast_write(cpu, 0x5010, 8));
	soft_flush_page(cpu, 0x5fff, FLUSH_INVLPG);
	g_assert_null(soft_fast_read(cpu, 0x5010, 8));
	g_assert_cmphex(get(cpu, 0x5000, ACCESS_READ), ==, UINT64_MAX);
	*pte = OLD_4K | (RIGHTS & ~X86_PTE_RW);
	g_assert_cmphex(get(cpu, 0x5000, ACCESS_READ), ==, OLD_4K);
	g_assert_null(soft_fast_write(cpu, 0x5010, 8));
	*pte = NEW_4K | RIGHTS;
	g_assert_cmphex(get(cpu, 0x5000, ACCESS_READ), ==, OLD_4K);
	g_assert_cmphex(get(cpu, 0x5000, ACCESS_WRITE), ==, NEW_4K);
	g_assert_cmphex(get(cpu, 0x5000, ACCESS_READ), ==, NEW_4K);
	/* The fault of an access takes the entry with it: 4.10.4.1. */
	*pte = OLD_4K | (RIGHTS & ~X86_PTE_RW);
	soft_flush_page(cpu, 0x5000, FLUSH_INVLPG);
	g_assert_cmphex(get(cpu, 0x5000, ACCESS_READ), ==, OLD_4K);
	g_assert_cmphex(get(cpu, 0x5000, ACCESS_WRITE), ==, UINT64_MAX);
	*pte = NEW_4K | (RIGHTS & ~X86_PTE_RW);
	g_assert_cmphex(get(cpu, 0x5000, ACCESS_READ), ==, NEW_4K);
	g_assert_cmpuint(cpu->stat[STAT_flush_fault], ==, 1);
	/* A D bit that the kernel clears is set again only once the TLB has forgotten. */
	*pte = OLD_4K | (RIGHTS & ~X86_PTE_D);
	soft_flush_page(cpu, 0x5000, FLUSH_INVLPG);
	g_assert_cmphex(get(cpu, 0x5000, ACCESS_READ), ==, OLD_4K);
	g_assert_null(soft_fast_write(cpu, 0x5000, 8));
	g_assert_false(*pte & X86_PTE_D);
	g_assert_cmphex(get(cpu, 0x5000, ACCESS_WRITE), ==, OLD_4K);
	g_assert_true(*pte & X86_PTE_D);
	*pte &= ~X86_PTE_D;
	g_assert_cmphex(get(cpu, 0x5000, ACCESS_WRITE), ==, OLD_4K);
	g_assert_false(*pte & X86_PTE_D);
	teardown();
}

/* --- replacement --- */

/* With one way a miss is an access to another page than the set's last one. */
static void test_direct_mapped(void)
{
	u32 last[4] = { 0 }, last2[16] = { 0 }, i, misses = 0, walks = 0;
	struct rng rng;

	if (SOFT_NR_SC == 4) {
		g_test_skip("the hard build has a geometry of its own");
		return;
	}
	setup(1);
	set_geometry(cpu, 4, 1, 16);
	rng_seed(&rng, 1, 1);
	for (i = 1; i < 65; i++)
		*entry(T_PT, i) = OLD_4K | RIGHTS;
	for (i = 0; i < 5000; i++) {
		u32 page = 1 + (u32)(rng_next(&rng) % 64);

		if (last[page % 4] != page) {
			misses++;
			if (last2[page % 16] != page)
				walks++;
			last2[page % 16] = last[page % 4] = page;
		}
		if (!soft_fast_read(cpu, page * PAGE_SIZE, 8))
			g_assert_cmphex(get(cpu, page * PAGE_SIZE, ACCESS_READ), ==, OLD_4K);
	}
	g_assert_cmpuint(cpu->stat[STAT_tlb_l1d_misses], ==, misses);
	g_assert_cmpuint(cpu->stat[STAT_page_walks], ==, walks);
	g_assert_cmpuint(cpu->stat[STAT_tlb_l2_hits], ==, misses - walks);
	teardown();
}

/* A fetch as block.c makes it: by the shortcut, which it fills after a translation. */
static void fetch(struct soft_cpu *c, u64 va, bool shortcuts)
{
	struct soft_xsc *x = &c->xsc[soft_xsc_slot(va)];

	if (shortcuts && x->tag == va) {
		x->used = 1;
		return;
	}
	g_assert_cmphex(get(c, va, ACCESS_FETCH), !=, UINT64_MAX);
	if (shortcuts) {
		x->tag = va;
		x->used = 1;
	}
}

static void assert_same_tlb(struct soft_cpu *const c[2])
{
	GByteArray *bytes[2];
	u32 k;

	for (k = 0; k < 2; k++) {
		bytes[k] = g_byte_array_new();
		soft_tlb_save(c[k], bytes[k]);
	}
	g_assert_cmpmem(bytes[0]->data, bytes[0]->len, bytes[1]->data, bytes[1]->len);
	for (k = 0; k < 2; k++)
		g_byte_array_unref(bytes[k]);
}

/* One vCPU uses shortcuts and loses them now and then, the other has none: all else must be equal. */
static void test_shortcuts_unseen(void)
{
	struct soft_cpu *c[2];
	struct rng rng;
	u32 i, k;

	setup(2);
	rng_seed(&rng, 7, 7);
	for (k = 0; k < 2; k++) {
		c[k] = soft_cpu(&f->cpu[k]);
		set_geometry(c[k], 16, 4, 32);
		*entry(T_PDPT, 1) = T_PD | RIGHTS;
	}
	for (i = 0; i < 512; i++)
		*entry(T_PT, i) = (i % 2 ? OLD_4K : NEW_4K) | RIGHTS | (i % 7 ? 0 : X86_PTE_G);
	for (i = 1; i < 64; i++)
		*entry(T_PD, i) = (i % 8 * 2 * MIB) | X86_PTE_PS | RIGHTS;
	for (i = 0; i < 200000; i++) {
		u64 r = rng_next(&rng), hot = r >> 8 & 1 ? 24 : 512;
		u64 va = r & 1 ? (r >> 16 & 31) * 2 * MIB + (r >> 32 & 511) * PAGE_SIZE : (r >> 16) % hot * PAGE_SIZE;
		u16 pcid = r >> 60 & 3;

		for (k = 0; k < 2; k++) {
			if ((r >> 48 & 0x3ff) == 0)
				soft_load_cr3(c[k], T_PML4 | pcid | X86_CR3_NOFLUSH);
			if ((r >> 48 & 0x3ff) == 1)
				soft_flush_page(c[k], va, FLUSH_INVLPG);
			if (k == 1 || (r >> 48 & 0x3ff) == 2)
				soft_drop_shortcuts(c[k]);
			if (r & 2)
				fetch(c[k], va, !k);
			else if (k || !soft_fast_write(c[k], va, 8))
				g_assert_cmphex(get(c[k], va, ACCESS_WRITE), !=, UINT64_MAX);
		}
		if (i % 512 == 0)
			assert_same_tlb(c);
	}
	for (i = 0; i < NR_SOFT_STATS; i++)
		if (c[0]->stat[i] != c[1]->stat[i])
			g_error("statistic %u: %llu with shortcuts, %llu without", i,
				(unsigned long long)c[0]->stat[i], (unsigned long long)c[1]->stat[i]);
	g_assert_cmpuint(c[0]->stat[STAT_tlb_evictions], >, 1000);
	teardown();
}

/* --- shortcuts and code --- */

static void test_code_page(void)
{
	struct soft_page *page;
	u32 i;

	setup(2);
	page = soft_page_of(cpu->svm, OLD_4K, NULL);
	*entry(T_PT, 5) = *entry(T_PT, 6) = OLD_4K | RIGHTS;
	for (i = 0; i < 2; i++) {
		get(soft_cpu(&f->cpu[i]), 0x5000, ACCESS_WRITE);
		get(soft_cpu(&f->cpu[i]), 0x6000, ACCESS_WRITE);
	}
	soft_page_is_code(cpu->svm, page);
	for (i = 0; i < 2; i++) {
		g_assert_null(soft_fast_write(soft_cpu(&f->cpu[i]), 0x5000, 1));
		g_assert_null(soft_fast_write(soft_cpu(&f->cpu[i]), 0x6000, 1));
		g_assert_nonnull(soft_fast_read(soft_cpu(&f->cpu[i]), 0x5000, 1));
		g_assert_cmphex(get(soft_cpu(&f->cpu[i]), 0x5000, ACCESS_WRITE), ==, OLD_4K);
		g_assert_null(soft_fast_write(soft_cpu(&f->cpu[i]), 0x5000, 1));
	}
	teardown();
}

/* --- the second level --- */

static void test_second_level(void)
{
	u64 before, after;
	u32 walked;

	setup(1);
	f->ept_delay = 5000;
	*entry(T_PT, 5) = OLD_4K | RIGHTS;
	*entry(T_PD, 3) = 0x400000 | X86_PTE_PS | RIGHTS;
	before = soft_units(cpu);
	get(cpu, 0x5000, ACCESS_READ);
	after = soft_units(cpu);
	g_assert_cmpuint(f->nr_ept, ==, 5);		/* four tables and the page */
	g_assert_cmphex(f->ept_gpa, ==, OLD_4K);
	g_assert_cmpint(f->ept_cause, ==, EPT_FIRST_TOUCH);
	g_assert_cmpuint(soft_ns(cpu->svm, after - before), >=, 5 * (5000 + cost(&cpu->svm->cost, ept_violation)));
	get(cpu, 0x5008, ACCESS_WRITE);
	g_assert_cmpuint(f->nr_ept, ==, 5);
	/* The mapping goes, and with it TLB entry and shortcut. A page that was never touched does not count. */
	g_assert_nonnull(soft_fast_write(cpu, 0x5000, 8));
	g_assert_cmpint(f->vm.engine->gpa_lowered(&f->vm, OLD_4K, 2 * PAGE_SIZE, GPA_NONE), ==, 1);
	g_assert_cmpint(f->vm.engine->gpa_lowered(&f->vm, OLD_4K, PAGE_SIZE, GPA_NONE), ==, 0);
	g_assert_null(soft_fast_read(cpu, 0x5000, 8));
	walked = (u32)cpu->stat[STAT_page_walks];
	get(cpu, 0x5000, ACCESS_READ);
	g_assert_cmpuint(cpu->stat[STAT_page_walks], ==, walked + 1);
	g_assert_cmpuint(cpu->stat[STAT_flush_second_level], ==, 1);
	g_assert_cmpuint(f->nr_ept, ==, 6);
	g_assert_cmpint(f->ept_cause, ==, EPT_REFAULT);
	/* Each 4 KiB of a large page on its own; and a table's own page. */
	get(cpu, 0x600000, ACCESS_READ);
	get(cpu, 0x601000, ACCESS_READ);
	get(cpu, 0x600008, ACCESS_READ);
	g_assert_cmpuint(f->nr_ept, ==, 8);
	g_assert_cmpint(f->vm.engine->gpa_lowered(&f->vm, 0x401000, PAGE_SIZE, GPA_NONE), ==, 1);
	g_assert_null(soft_fast_read(cpu, 0x601000, 8));
	get(cpu, 0x601000, ACCESS_READ);
	g_assert_cmpuint(f->nr_ept, ==, 9);
	g_assert_cmpint(f->vm.engine->gpa_lowered(&f->vm, T_PT, PAGE_SIZE, GPA_NONE), ==, 1);
	soft_flush_all(cpu, FLUSH_RESET);
	get(cpu, 0x5000, ACCESS_READ);
	g_assert_cmpuint(f->nr_ept, ==, 10);
	g_assert_cmphex(ALIGN_DOWN(f->ept_gpa, PAGE_SIZE), ==, T_PT);
	teardown();
}

/* --- the second level: write protection --- */

static int protect(gpa_t gpa)
{
	return f->vm.engine->gpa_lowered(&f->vm, gpa, PAGE_SIZE, GPA_READ);
}

/* How many violations an access takes, all of them of this cause and on this page. */
static u32 violations(struct soft_cpu *c, u64 va, enum soft_access access, enum ept_cause cause, gpa_t page)
{
	u32 before = f->nr_ept;

	g_assert_cmphex(get(c, va, access), !=, UINT64_MAX);
	if (f->nr_ept > before) {
		g_assert_cmpint(f->ept_cause, ==, cause);
		g_assert_cmphex(ALIGN_DOWN(f->ept_gpa, PAGE_SIZE), ==, page);
	}
	return f->nr_ept - before;
}

static void test_write_protect(void)
{
	u64 before, walks, lost;
	u32 i;

	setup(2);
	*entry(T_PT, 5) = OLD_4K | RIGHTS;
	/* Nothing to take from a page without a mapping. */
	g_assert_cmpint(protect(OLD_4K), ==, 0);
	for (i = 0; i < 2; i++)
		get(soft_cpu(&f->cpu[i]), 0x5000, ACCESS_WRITE);
	g_assert_cmpint(protect(OLD_4K), ==, 1);
	g_assert_cmpint(protect(OLD_4K), ==, 0);
	for (i = 0; i < 2; i++) {
		struct soft_cpu *c = soft_cpu(&f->cpu[i]);

		/* What was cached with the right to write is gone; reads and fetches go on, and give no right to write. */
		g_assert_null(soft_fast_read(c, 0x5000, 8));
		g_assert_cmpuint(c->stat[STAT_flush_second_level], ==, 1);
		g_assert_cmpuint(violations(c, 0x5000, ACCESS_READ, 0, 0), ==, 0);
		g_assert_cmpuint(violations(c, 0x5000, ACCESS_FETCH, 0, 0), ==, 0);
		g_assert_nonnull(soft_fast_read(c, 0x5000, 8));
		g_assert_null(soft_fast_write(c, 0x5000, 8));
	}
	/* One write is a violation, by a walk of its own; the next ones are not. */
	f->ept_delay = 5000;
	before = soft_units(cpu);
	walks = cpu->stat[STAT_page_walks];
	g_assert_cmpuint(violations(cpu, 0x5008, ACCESS_WRITE, EPT_WRITE_PROTECT, OLD_4K), ==, 1);
	g_assert_cmpuint(soft_ns(cpu->svm, soft_units(cpu) - before), >=, 5000 + cost(&cpu->svm->cost, ept_violation));
	g_assert_cmpuint(cpu->stat[STAT_page_walks], ==, walks + 1);
	g_assert_nonnull(soft_fast_write(cpu, 0x5000, 8));
	g_assert_cmpuint(violations(cpu, 0x5000, ACCESS_WRITE, 0, 0), ==, 0);
	/* The other vCPU's entry is without the right still: a walk finds that there is one, and no violation. */
	walks = soft_cpu(&f->cpu[1])->stat[STAT_page_walks];
	g_assert_null(soft_fast_write(soft_cpu(&f->cpu[1]), 0x5000, 8));
	g_assert_cmpuint(violations(soft_cpu(&f->cpu[1]), 0x5000, ACCESS_WRITE, 0, 0), ==, 0);
	g_assert_cmpuint(soft_cpu(&f->cpu[1])->stat[STAT_page_walks], ==, walks + 1);
	g_assert_nonnull(soft_fast_write(soft_cpu(&f->cpu[1]), 0x5000, 8));
	/* A mapping that goes takes the protection along: a refault, once. */
	g_assert_cmpint(protect(OLD_4K), ==, 1);
	g_assert_cmpint(f->vm.engine->gpa_lowered(&f->vm, OLD_4K, PAGE_SIZE, GPA_NONE), ==, 1);
	g_assert_cmpint(protect(OLD_4K), ==, 0);
	g_assert_cmpuint(violations(cpu, 0x5000, ACCESS_READ, EPT_REFAULT, OLD_4K), ==, 1);
	g_assert_cmpuint(violations(cpu, 0x5000, ACCESS_WRITE, 0, 0), ==, 0);
	/* Each 4 KiB of a large page on its own, though they share an entry. */
	*entry(T_PD, 3) = 0x400000 | X86_PTE_PS | RIGHTS;
	get(cpu, 0x600000, ACCESS_WRITE);
	get(cpu, 0x601000, ACCESS_WRITE);
	lost = cpu->stat[STAT_flushed_entries];
	g_assert_cmpint(protect(0x401000), ==, 1);
	g_assert_cmpuint(cpu->stat[STAT_flushed_entries], ==, lost + 1);
	g_assert_cmpuint(violations(cpu, 0x601000, ACCESS_READ, 0, 0), ==, 0);
	g_assert_null(soft_fast_write(cpu, 0x601000, 8));
	g_assert_cmpuint(violations(cpu, 0x600000, ACCESS_WRITE, 0, 0), ==, 0);
	g_assert_cmpuint(violations(cpu, 0x601000, ACCESS_WRITE, EPT_WRITE_PROTECT, 0x401000), ==, 1);
	g_assert_nonnull(soft_fast_write(cpu, 0x601000, 8));
	/* Without paging there is no entry to lose, but shortcuts are. */
	cpu->cr0 &= ~(u64)X86_CR0_PG;
	soft_flush_all(cpu, FLUSH_CR0);
	get(cpu, OLD_4K, ACCESS_WRITE);
	g_assert_cmpint(protect(OLD_4K), ==, 1);
	g_assert_null(soft_fast_write(cpu, OLD_4K, 8));
	g_assert_cmpuint(violations(cpu, OLD_4K, ACCESS_READ, 0, 0), ==, 0);
	g_assert_null(soft_fast_write(cpu, OLD_4K, 8));
	g_assert_cmpuint(violations(cpu, OLD_4K, ACCESS_WRITE, EPT_WRITE_PROTECT, OLD_4K), ==, 1);
	g_assert_nonnull(soft_fast_write(cpu, OLD_4K, 8));
	teardown();
}

/* A walk writes where it sets A or D, and only there. */
static void test_write_protect_tables(void)
{
	u64 *pte;

	setup(1);
	pte = entry(T_PT, 5);
	*pte = OLD_4K | RIGHTS;
	get(cpu, 0x5000, ACCESS_WRITE);
	g_assert_cmpint(protect(T_PT), ==, 1);
	soft_flush_all(cpu, FLUSH_RESET);
	g_assert_cmpuint(violations(cpu, 0x5000, ACCESS_WRITE, 0, 0), ==, 0);
	/* D, by a write that finds it clear. */
	*pte &= ~(u64)X86_PTE_D;
	soft_flush_all(cpu, FLUSH_RESET);
	g_assert_cmpuint(violations(cpu, 0x5000, ACCESS_READ, 0, 0), ==, 0);
	g_assert_cmpuint(violations(cpu, 0x5000, ACCESS_WRITE, EPT_WRITE_PROTECT, T_PT), ==, 1);
	g_assert_true(*pte & X86_PTE_D);
	/* A of a leaf, by a read. */
	g_assert_cmpint(protect(T_PT), ==, 1);
	*pte &= ~(u64)X86_PTE_A;
	soft_flush_all(cpu, FLUSH_RESET);
	g_assert_cmpuint(violations(cpu, 0x5000, ACCESS_READ, EPT_WRITE_PROTECT, T_PT), ==, 1);
	g_assert_true(*pte & X86_PTE_A);
	/* A above the leaf. */
	g_assert_cmpint(protect(T_PDPT), ==, 1);
	*entry(T_PDPT, 0) &= ~(u64)X86_PTE_A;
	soft_flush_all(cpu, FLUSH_RESET);
	g_assert_cmpuint(violations(cpu, 0x5000, ACCESS_FETCH, EPT_WRITE_PROTECT, T_PDPT), ==, 1);
	g_assert_true(*entry(T_PDPT, 0) & X86_PTE_A);
	/* An access that the guest's tables refuse leaves no flag and takes no violation. */
	g_assert_cmpint(protect(T_PT), ==, 1);
	*pte &= ~(u64)(X86_PTE_RW | X86_PTE_D | X86_PTE_A);
	soft_flush_all(cpu, FLUSH_RESET);
	f->nr_ept = 0;
	g_assert_cmphex(get(cpu, 0x5000, ACCESS_WRITE), ==, UINT64_MAX);
	g_assert_cmpuint(f->nr_ept, ==, 0);
	teardown();
}

/* --- snapshots --- */

/* Pages' states: never touched, mapped, dropped, protected. */
static void test_snapshot_pages(void)
{
	GByteArray *bytes = g_byte_array_new();
	struct soft_fixture *from;
	u32 i;

	setup(1);
	for (i = 1; i < 5; i++)
		*entry(T_PT, i) = (OLD_4K + i * PAGE_SIZE) | RIGHTS;
	for (i = 2; i < 5; i++)
		get(cpu, i * PAGE_SIZE, ACCESS_WRITE);
	g_assert_cmpint(f->vm.engine->gpa_lowered(&f->vm, OLD_4K + 3 * PAGE_SIZE, PAGE_SIZE, GPA_NONE), ==, 1);
	g_assert_cmpint(protect(OLD_4K + 4 * PAGE_SIZE), ==, 1);
	g_assert_cmpint(f->vm.engine->vm_save(&f->vm, bytes), ==, 0);
	from = f;
	setup(1);
	for (i = 1; i < 5; i++)
		*entry(T_PT, i) = (OLD_4K + i * PAGE_SIZE) | RIGHTS;
	g_assert_cmpint(f->vm.engine->vm_restore(&f->vm, bytes->data, bytes->len - 1), ==, -EINVAL);
	g_assert_cmpint(f->vm.engine->vm_restore(&f->vm, bytes->data, bytes->len), ==, 0);
	g_assert_cmpuint(violations(cpu, 0x1000, ACCESS_WRITE, EPT_FIRST_TOUCH, OLD_4K + 0x1000), ==, 1);
	g_assert_cmpuint(violations(cpu, 0x2000, ACCESS_WRITE, 0, 0), ==, 0);
	g_assert_cmpuint(violations(cpu, 0x3000, ACCESS_WRITE, EPT_REFAULT, OLD_4K + 0x3000), ==, 1);
	g_assert_cmpuint(violations(cpu, 0x4000, ACCESS_READ, 0, 0), ==, 0);
	g_assert_cmpuint(violations(cpu, 0x4000, ACCESS_WRITE, EPT_WRITE_PROTECT, OLD_4K + 0x4000), ==, 1);
	g_byte_array_unref(bytes);
	teardown();
	soft_fixture_free(from);
}

static void test_snapshot(void)
{
	GByteArray *one = g_byte_array_new(), *two = g_byte_array_new();
	struct soft_cpu *other;
	u32 i;

	setup(2);
	other = soft_cpu(&f->cpu[1]);
	for (i = 1; i < 100; i++)
		*entry(T_PT, i) = OLD_4K | RIGHTS | (i & 1 ? X86_PTE_G : 0);
	*entry(T_PD, 3) = 0x400000 | X86_PTE_PS | RIGHTS;
	for (i = 1; i < 100; i++) {
		get(cpu, i * PAGE_SIZE, i % 3 ? ACCESS_WRITE : ACCESS_FETCH);
		soft_fast_read(cpu, i * PAGE_SIZE, 1);
	}
	get(cpu, 0x600000, ACCESS_READ);
	soft_tlb_save(cpu, one);
	for (i = 0; i < one->len; i += 7)
		g_assert_false(soft_tlb_restore(other, one->data, i));
	g_assert_true(soft_tlb_restore(other, one->data, one->len));
	soft_tlb_save(other, two);
	g_assert_cmpmem(one->data, one->len, two->data, two->len);
	*entry(T_PT, 98) = NEW_4K | RIGHTS;
	*entry(T_PD, 3) = 0;
	g_assert_cmphex(get(other, 98 * PAGE_SIZE, ACCESS_WRITE), ==, OLD_4K);
	g_assert_cmphex(get(other, 0x600000, ACCESS_READ), ==, 0x400000);
	g_byte_array_unref(one);
	g_byte_array_unref(two);
	teardown();
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/tlb/flushes", test_flushes);
	g_test_add_func("/tlb/no-pcid", test_no_pcid);
	g_test_add_func("/tlb/structure-caches", test_structure_caches);
	g_test_add_func("/tlb/rights", test_rights);
	g_test_add_func("/tlb/direct-mapped", test_direct_mapped);
	g_test_add_func("/tlb/shortcuts-unseen", test_shortcuts_unseen);
	g_test_add_func("/tlb/code-page", test_code_page);
	g_test_add_func("/tlb/second-level", test_second_level);
	g_test_add_func("/tlb/write-protect", test_write_protect);
	g_test_add_func("/tlb/write-protect-tables", test_write_protect_tables);
	g_test_add_func("/tlb/snapshot", test_snapshot);
	g_test_add_func("/tlb/snapshot-pages", test_snapshot_pages);
	return g_test_run();
}
