// SPDX-License-Identifier: GPL-2.0-only
/*
 * Page walks against an oracle written from SDM 3A 4.6 to 4.8, over every combination
 * of what decides a translation; then what the combinations leave out.
 */
#include <string.h>

#include "soft-fixture.h"
#include "soft/soft-mem.h"
#include "x86/cr.h"

#define P	X86_PTE_P
#define W	X86_PTE_RW
#define U	X86_PTE_US
#define A	X86_PTE_A
#define D	X86_PTE_D
#define PS	X86_PTE_PS
#define NX	X86_PTE_NX

/* Tables of the tests. */
#define T_PML4	0x11000ull
#define T_PDPT	0x12000ull
#define T_PD	0x13000ull
#define T_PT	0x14000ull
#define T_PAGE	0x200000ull	/* 2 MiB aligned */
#define VA	0x40201234ull	/* PML4E 0, PDPTE 1, PDE 1, PTE 1 */
#define OK	(-1)

static struct soft_fixture *f;
static struct soft_cpu *cpu;

static u64 *entry(gpa_t table, u32 index)
{
	return soft_fixture_ram(f, table + index * 8, 8);
}

static void setup(void)
{
	struct x86_state s;

	f = soft_fixture_new(16, 1);
	soft_fixture_long(f, 0, &s);
	s.cr3 = T_PML4;
	soft_fixture_set(f, 0, &s);
	cpu = soft_cpu(&f->cpu[0]);
}

static void teardown(void)
{
	soft_fixture_free(f);
}

/* --- the oracle --- */

struct who {
	const char *name;
	enum soft_access access;
	bool cpl3, ac, implicit;
};

static const struct who whos[] = {
	{ "user read", ACCESS_READ, true, false, false },
	{ "user write", ACCESS_WRITE, true, false, false },
	{ "user fetch", ACCESS_FETCH, true, false, false },
	{ "user read, AC", ACCESS_READ, true, true, false },
	{ "supervisor read", ACCESS_READ, false, false, false },
	{ "supervisor write", ACCESS_WRITE, false, false, false },
	{ "supervisor fetch", ACCESS_FETCH, false, false, false },
	{ "supervisor read, AC", ACCESS_READ, false, true, false },
	{ "supervisor write, AC", ACCESS_WRITE, false, true, false },
	{ "supervisor fetch, AC", ACCESS_FETCH, false, true, false },
	{ "implicit read at CPL 3", ACCESS_READ, true, true, true },
	{ "implicit write at CPL 3", ACCESS_WRITE, true, false, true },
	{ "implicit read at CPL 0, AC", ACCESS_READ, false, true, true },
	{ "implicit write at CPL 0, AC", ACCESS_WRITE, false, true, true },
};

struct controls {
	bool wp, smep, smap, nxe;
};

/*
 * What becomes of an access through `nr` entries (the last is the leaf): OK or the error
 * code; flags set on the way go into the entries.
 */
static int oracle(u64 *e, u32 nr, const struct who *who, const struct controls *cr)
{
	bool supervisor_access = !who->cpl3 || who->implicit;
	bool all_rw = true, all_us = true, any_xd = false, refused;
	int code = 0;
	u32 i;

	if (who->access == ACCESS_WRITE)
		code |= 2;
	if (!supervisor_access)
		code |= 4;
	if (who->access == ACCESS_FETCH && (cr->smep || cr->nxe))
		code |= 16;
	for (i = 0; i < nr; i++) {
		if (!(e[i] & 1))
			return code;
		if (e[i] >> 63 && !cr->nxe)
			return code | 1 | 8;
		all_rw &= e[i] >> 1 & 1;
		all_us &= e[i] >> 2 & 1;
		any_xd |= e[i] >> 63;
		if (i + 1 < nr)
			e[i] |= 1 << 5;
	}
	if (supervisor_access && !all_us)		/* supervisor-mode address */
		refused = (who->access == ACCESS_WRITE && cr->wp && !all_rw) ||
			  (who->access == ACCESS_FETCH && any_xd);
	else if (supervisor_access && who->access == ACCESS_FETCH)
		refused = cr->smep || any_xd;
	else if (supervisor_access)
		refused = (cr->smap && (who->implicit || !who->ac)) ||
			  (who->access == ACCESS_WRITE && cr->wp && !all_rw);
	else if (!all_us)
		refused = true;
	else
		refused = who->access == ACCESS_READ ? false : who->access == ACCESS_WRITE ? !all_rw : any_xd;
	if (refused)
		return code | 1;
	e[nr - 1] |= who->access == ACCESS_WRITE ? 0x60 : 0x20;
	return OK;
}

/* --- the engine --- */

static void set_controls(const struct controls *cr)
{
	cpu->cr0 = (cpu->cr0 & ~X86_CR0_WP) | (cr->wp ? X86_CR0_WP : 0);
	cpu->cr4 = (cpu->cr4 & ~(X86_CR4_SMEP | X86_CR4_SMAP)) | (cr->smep ? X86_CR4_SMEP : 0) |
		   (cr->smap ? X86_CR4_SMAP : 0);
	cpu->efer = (cpu->efer & ~X86_EFER_NXE) | (cr->nxe ? X86_EFER_NXE : 0);
	soft_flush_all(cpu, FLUSH_CR4);
}

static void become(bool cpl3, bool ac)
{
	cpu->cpl = cpl3 ? 3 : 0;
	cpu->sysflags = (cpu->sysflags & ~X86_EFLAGS_AC) | (ac ? X86_EFLAGS_AC : 0);
	soft_update_context(cpu);
}

static int translate(const struct who *who, u64 va, gpa_t *gpa)
{
	struct soft_xlat x = { 0 };

	become(who->cpl3, who->ac);
	memset(&cpu->fault, 0xa5, sizeof(cpu->fault));
	if (soft_translate(cpu, va, who->access, who->implicit, &x)) {
		g_assert_cmpint(cpu->fault.vector, ==, VEC_PF);
		g_assert_true(cpu->fault.has_error);
		g_assert_cmphex(cpu->fault.cr2, ==, va);
		return (int)cpu->fault.error;
	}
	*gpa = x.gpa;
	return OK;
}

struct shape {
	u64 *at[4];
	u64 value[4];
	u32 nr;
	gpa_t gpa;		/* that VA leads to */
};

static void fail_at(const struct shape *s, const struct who *who, const struct controls *cr, const char *what,
		    u64 got, u64 want)
{
	g_test_message("%s: %s, WP %d SMEP %d SMAP %d NXE %d, entries %llx %llx %llx %llx: 0x%llx, not 0x%llx", what,
		       who->name, cr->wp, cr->smep, cr->smap, cr->nxe, (unsigned long long)s->value[0],
		       (unsigned long long)s->value[1], (unsigned long long)s->value[2],
		       (unsigned long long)s->value[3], (unsigned long long)got, (unsigned long long)want);
	g_test_fail();
}

static void load_shape(const struct shape *s, u64 *expect)
{
	u32 i;

	for (i = 0; i < s->nr; i++)
		expect[i] = *s->at[i] = s->value[i];
}

static void check_one(const struct shape *s, u64 *expect, const struct who *who, const struct controls *cr)
{
	int want = oracle(expect, s->nr, who, cr), got;
	gpa_t gpa = 0;
	u32 i;

	got = translate(who, VA, &gpa);
	if (got != want)
		fail_at(s, who, cr, "result", (u64)got, (u64)want);
	if (got == OK && gpa != s->gpa)
		fail_at(s, who, cr, "address", gpa, s->gpa);
	for (i = 0; i < s->nr; i++)
		if (*s->at[i] != expect[i])
			fail_at(s, who, cr, "entry afterwards", *s->at[i], expect[i]);
}

/* No context may have a shortcut for what the oracle refuses it, or for a write with D clear. */
static void check_shortcuts(const struct shape *s, const struct controls *cr)
{
	static const struct who reader[] = { { "", ACCESS_READ, true, false, false },
		{ "", ACCESS_READ, false, false, false }, { "", ACCESS_READ, false, true, false } };
	u32 ctx, i, slot = soft_sc_slot(VA);
	u64 e[4];

	for (ctx = 0; ctx < NR_CTX; ctx++) {
		const struct soft_sc *sc = &cpu->sct[ctx][slot];
		struct who who = reader[ctx];

		for (i = 0; i < s->nr; i++)
			e[i] = *s->at[i];
		if (sc->rtag == (VA & ~0xfffull) && oracle(e, s->nr, &who, cr) != OK)
			fail_at(s, &who, cr, "read shortcut", ctx, 0);
		who.access = ACCESS_WRITE;
		if (sc->wtag == (VA & ~0xfffull) &&
		    (oracle(e, s->nr, &who, cr) != OK || !(*s->at[s->nr - 1] & D)))
			fail_at(s, &who, cr, "write shortcut", ctx, 0);
	}
}

static void check_shape(const struct shape *s, u64 *count)
{
	u32 bits, i, j;
	u64 expect[4];

	for (bits = 0; bits < 16; bits++) {
		const struct controls cr = { bits & 1, bits & 2, bits & 4, bits & 8 };

		set_controls(&cr);
		for (i = 0; i < ARRAY_SIZE(whos); i++) {
			/* Cold; then everybody else after this one, with what the TLB holds by then. */
			load_shape(s, expect);
			soft_flush_all(cpu, FLUSH_CR4);
			check_one(s, expect, &whos[i], &cr);
			for (j = 0; j < ARRAY_SIZE(whos); j++)
				check_one(s, expect, &whos[j], &cr);
			check_shortcuts(s, &cr);
			*count += 1 + ARRAY_SIZE(whos);
		}
		if (g_test_failed())
			return;
	}
}

static u64 flags_of(u32 bits)
{
	return (bits & 1 ? P : 0) | (bits & 2 ? W : 0) | (bits & 4 ? U : 0) | (bits & 8 ? NX : 0);
}

static void test_4k(void)
{
	struct shape s = { .nr = 4, .gpa = T_PAGE + 0x234 };
	u64 count = 0;
	u32 pde, pte;

	setup();
	s.at[0] = entry(T_PML4, 0);
	s.at[1] = entry(T_PDPT, 1);
	s.at[2] = entry(T_PD, 1);
	s.at[3] = entry(T_PT, 1);
	s.value[0] = T_PDPT | P | W | U;
	s.value[1] = T_PD | P | W | U;
	for (pde = 0; pde < 16 && !g_test_failed(); pde++) {
		for (pte = 0; pte < 16 && !g_test_failed(); pte++) {
			s.value[2] = T_PT | flags_of(pde);
			s.value[3] = T_PAGE | flags_of(pte);
			check_shape(&s, &count);
		}
	}
	g_test_message("%llu translations", (unsigned long long)count);
	teardown();
}

static void test_large(void)
{
	struct shape s = { .nr = 3 };
	u64 count = 0;
	u32 upper, leaf;

	setup();
	s.at[0] = entry(T_PML4, 0);
	s.at[1] = entry(T_PDPT, 1);
	s.at[2] = entry(T_PD, 1);
	for (upper = 0; upper < 16 && !g_test_failed(); upper++) {
		for (leaf = 0; leaf < 16 && !g_test_failed(); leaf++) {
			s.nr = 3;
			s.gpa = T_PAGE + (VA & (2 * MIB - 1));
			s.value[0] = T_PDPT | P | W | U;
			s.value[1] = T_PD | flags_of(upper);
			s.value[2] = T_PAGE | PS | flags_of(leaf);
			check_shape(&s, &count);
			s.nr = 2;
			s.gpa = VA & (GIB - 1);
			s.value[0] = T_PDPT | flags_of(upper);
			s.value[1] = PS | flags_of(leaf);
			check_shape(&s, &count);
		}
	}
	g_test_message("%llu translations", (unsigned long long)count);
	teardown();
}

/* --- reserved bits, by level: SDM 3A tables 4-14 to 4-20, with MAXPHYADDR 40 --- */

static void expect_rsvd(u64 *at, u64 value, u64 bit, bool reserved)
{
	const struct who *who = &whos[4];
	gpa_t gpa;
	int got;

	soft_flush_all(cpu, FLUSH_CR4);
	*at = value | bit;
	got = translate(who, VA, &gpa);
	if (got != (reserved ? 9 : OK)) {
		g_test_message("bit 0x%llx of 0x%llx: %d", (unsigned long long)bit, (unsigned long long)value, got);
		g_test_fail();
	}
	*at = value;
}

static void test_reserved(void)
{
	u64 *e[4], full = P | W | U;
	u32 bit;

	setup();
	e[0] = entry(T_PML4, 0);
	e[1] = entry(T_PDPT, 1);
	e[2] = entry(T_PD, 1);
	e[3] = entry(T_PT, 1);
	*e[0] = T_PDPT | full;
	*e[1] = T_PD | full;
	*e[2] = T_PT | full;
	*e[3] = T_PAGE | full;
	for (bit = 40; bit < 63; bit++) {
		bool rsvd = bit < 52;

		expect_rsvd(e[0], T_PDPT | full, BIT_ULL(bit), rsvd);
		expect_rsvd(e[1], T_PD | full, BIT_ULL(bit), rsvd);
		expect_rsvd(e[2], T_PT | full, BIT_ULL(bit), rsvd);
		expect_rsvd(e[3], T_PAGE | full, BIT_ULL(bit), rsvd);
	}
	expect_rsvd(e[0], T_PDPT | full, PS, true);
	expect_rsvd(e[0], T_PDPT | full, X86_PTE_G, false);
	expect_rsvd(e[3], T_PAGE | full, PS, false);	/* PAT there */
	for (bit = 13; bit < 21; bit++)
		expect_rsvd(e[2], T_PAGE | PS | full, BIT_ULL(bit), true);
	expect_rsvd(e[2], T_PAGE | PS | full, BIT(12), false);
	*e[2] = T_PT | full;
	for (bit = 13; bit < 30; bit++)
		expect_rsvd(e[1], PS | full, BIT_ULL(bit), true);
	expect_rsvd(e[1], PS | full, BIT(12), false);
	/* Tables that are not RAM read as all ones. */
	*e[0] = 0x7fff000000ull | full;
	soft_flush_all(cpu, FLUSH_CR4);
	g_assert_cmpint(translate(&whos[4], VA, &(gpa_t){ 0 }), ==, 9);
	teardown();
}

static void test_canonical(void)
{
	static const u64 bad[] = { 0x800000000000ull, 0xffff7fffffffffffull, 1ull << 63, 1ull << 48,
				    0xfffeffffffffffffull };
	struct soft_xlat x;
	u32 i, access;
	int ret;

	setup();
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		for (access = ACCESS_READ; access <= ACCESS_FETCH; access++) {
			become(false, false);
			ret = soft_translate(cpu, bad[i], (enum soft_access)access, false, &x);
			g_assert_cmpint(ret, ==, SOFT_FAULT);
			g_assert_cmpint(cpu->fault.vector, ==, VEC_GP);
			g_assert_true(cpu->fault.has_error);
			g_assert_cmphex(cpu->fault.error, ==, 0);
			g_assert_false(soft_peek(cpu, bad[i], &(gpa_t){ 0 }));
		}
	}
	/* The top of the upper half is as good as any. */
	*entry(T_PML4, 511) = T_PDPT | P | W;
	*entry(T_PDPT, 511) = T_PD | P | W;
	*entry(T_PD, 511) = T_PT | P | W;
	*entry(T_PT, 511) = T_PAGE | P | W;
	g_assert_cmpint(soft_translate(cpu, UINT64_MAX - 7, ACCESS_WRITE, false, &x), ==, SOFT_OK);
	g_assert_cmphex(x.gpa, ==, T_PAGE + 0xff8);
	g_assert_true(x.hva == (u8 *)soft_fixture_ram(f, T_PAGE + 0xff8, 8));
	g_assert_true(soft_peek(cpu, UINT64_MAX - 7, &x.gpa));
	g_assert_cmphex(x.gpa, ==, T_PAGE + 0xff8);
	teardown();
}

/* --- the other paging modes --- */

static void legacy(u64 cr0, u64 cr4, u64 cr3)
{
	cpu->efer = 0;
	cpu->cr0 = cr0 | X86_CR0_PE;
	cpu->cr4 = cr4;
	cpu->cr3 = cr3;
	cpu->seg[SEG_CS].attr = 0xc09b;
	soft_flush_all(cpu, FLUSH_CR0);
	soft_update_context(cpu);
}

static void test_32bit(void)
{
	const u32 va = 0x00c03456;	/* PDE 3, PTE 3 */
	u32 *pd, *pt;
	gpa_t gpa;

	setup();
	legacy(X86_CR0_PG | X86_CR0_WP, X86_CR4_PSE, T_PD);
	pd = soft_fixture_ram(f, T_PD, PAGE_SIZE);
	pt = soft_fixture_ram(f, T_PT, PAGE_SIZE);
	pd[3] = T_PT | P | W | U;
	pt[3] = T_PAGE | P | W;
	pt[4] = 0xdeadbeef;		/* the neighbour must not be touched */
	g_assert_cmpint(translate(&whos[5], va, &gpa), ==, OK);
	g_assert_cmphex(gpa, ==, T_PAGE + 0x456);
	g_assert_cmphex(pt[3], ==, T_PAGE | P | W | A | D);
	g_assert_cmphex(pd[3], ==, T_PT | P | W | U | A);
	g_assert_cmphex(pt[4], ==, 0xdeadbeef);
	g_assert_true(soft_peek(cpu, va, &gpa));
	g_assert_cmphex(gpa, ==, T_PAGE + 0x456);
	g_assert_cmpint(translate(&whos[0], va, &gpa), ==, PF_P | PF_U);
	g_assert_cmpint(translate(&whos[2], va, &gpa), ==, PF_P | PF_U);	/* no I bit without NX or SMEP */
	/* A page of 4 MiB, above 4 GiB by PSE-36; and its reserved bit. */
	pd[4] = 0x400000 | 1u << 13 | PS | P | W | U;
	g_assert_cmpint(translate(&whos[0], 0x01234567, &gpa), ==, OK);
	g_assert_cmphex(gpa, ==, 0x100400000ull + 0x234567);
	g_assert_cmpint(translate(&whos[0], 0x01034567, &gpa), ==, OK);
	g_assert_cmphex(gpa, ==, 0x100400000ull + 0x034567);
	pd[5] = 0x400000 | 1u << 21 | PS | P | W | U;
	g_assert_cmpint(translate(&whos[0], 0x01412345, &gpa), ==, PF_P | PF_U | PF_RSVD);
	/* Without CR4.PSE the bit means nothing. */
	legacy(X86_CR0_PG, 0, T_PD);
	pd[5] = T_PT | PS | P | W | U;
	g_assert_cmpint(translate(&whos[4], 0x01403123, &gpa), ==, OK);
	g_assert_cmphex(gpa, ==, T_PAGE + 0x123);
	teardown();
}

static void test_pae(void)
{
	const u32 va = 0xc0201234;	/* PDPTE 3, PDE 1, PTE 1 */
	gpa_t gpa, root = T_PDPT + 0x60;
	u64 *pdpte;

	setup();
	legacy(X86_CR0_PG | X86_CR0_WP, X86_CR4_PAE, root);
	cpu->efer = X86_EFER_NXE;
	pdpte = entry(root, 3);
	*pdpte = T_PD | P;
	*entry(T_PD, 1) = T_PT | P | W | U;
	*entry(T_PT, 1) = T_PAGE | P | W | U | NX;
	g_assert_cmpint(translate(&whos[1], va, &gpa), ==, OK);
	g_assert_cmphex(gpa, ==, T_PAGE + 0x234);
	g_assert_cmphex(*pdpte, ==, T_PD | P);	/* has no accessed flag */
	g_assert_cmpint(translate(&whos[2], va, &gpa), ==, PF_P | PF_U | PF_I);
	*pdpte = T_PD | P | W;			/* reserved there */
	soft_flush_all(cpu, FLUSH_CR3);
	g_assert_cmpint(translate(&whos[0], va, &gpa), ==, PF_P | PF_U | PF_RSVD);
	*pdpte = T_PD | P;
	*entry(T_PT, 1) = T_PAGE | P | BIT_ULL(52);	/* ignored with 4 levels only */
	g_assert_cmpint(translate(&whos[4], va, &gpa), ==, PF_P | PF_RSVD);
	teardown();
}

static void test_unpaged(void)
{
	struct soft_xlat x;
	gpa_t gpa;

	setup();
	legacy(0, 0, 0);
	g_assert_cmpint(translate(&whos[4], 0x123456, &gpa), ==, OK);
	g_assert_cmphex(gpa, ==, 0x123456);
	become(false, false);
	g_assert_true(soft_fast_write(cpu, 0x123456, 8) == soft_fixture_ram(f, 0x123456, 8));
	g_assert_cmpint(soft_translate(cpu, 0xfee00020, ACCESS_WRITE, false, &x), ==, SOFT_OK);
	g_assert_null(x.hva);
	g_assert_null(x.page);
	g_assert_cmphex(x.gpa, ==, 0xfee00020);
	g_assert_null(soft_fast_write(cpu, 0xfee00020, 4));
	soft_flush_all(cpu, FLUSH_CR0);
	g_assert_null(soft_fast_read(cpu, 0x123456, 8));
	g_assert_cmpuint(cpu->stat[STAT_page_walks] + cpu->stat[STAT_tlb_fills], ==, 0);
	teardown();
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/mmu/oracle-4k", test_4k);
	g_test_add_func("/mmu/oracle-large", test_large);
	g_test_add_func("/mmu/reserved", test_reserved);
	g_test_add_func("/mmu/canonical", test_canonical);
	g_test_add_func("/mmu/32-bit", test_32bit);
	g_test_add_func("/mmu/pae", test_pae);
	g_test_add_func("/mmu/unpaged", test_unpaged);
	return g_test_run();
}
