// SPDX-License-Identifier: GPL-2.0-only
/*
 * Paging: every combination of rights against rules written from the SDM (3A 4.6,
 * 4.7), A and D, reserved bits, page sizes; and what a TLB may keep and must not
 * (3A 4.10). Where hardware is free to keep a stale entry or not, what was seen is
 * reported, unless stale=must says that this CPU has to.
 */
#include "bare64.h"

#define T		0x8000000000ul		/* test page; a PML4 entry of its own */
#define FIXED		0x8040000000ul		/* another PDPT entry */
#define SIZE_2M		0x200000ul
#define SIZE_1G		0x40000000ul
#define CR3_NOFLUSH	(1ul << 63)

enum access { READ, WRITE, FETCH, NR_ACCESS };
static const char *const access_name[] = { "read", "write", "fetch" };

static u8 *page_a, *page_b;	/* hold a "ret" at their start, and at +8 a value of their own */
static bool must_stale;

/* --- accesses, at either privilege --- */

__user_code static void user_read(void) { asm volatile("movq (%%rdi), %%rax" : : : "rax"); }
__user_code static void user_write(void) { asm volatile("movq %%rdi, 8(%%rdi)" : : : "memory"); }
__user_code static void user_fetch(void) { asm volatile("call *%%rdi" : : : "memory"); }

static void touch(enum access how, u64 va, bool user)
{
	static void (*const in_user[])(void) = { user_read, user_write, user_fetch };

	if (user) {
		user_run(in_user[how], va);
		if (last.vec == USER_DONE)
			last.vec = NO_TRAP;
	} else if (how == READ) {
		TRY("movq (%0), %%rax", : : "r"(va) : "rax");
	} else if (how == WRITE) {
		TRY("movq %0, 8(%0)", : : "r"(va) : "memory");
	} else {
		TRY("call *%0", : : "r"(va) : "memory");
	}
}

/* The value at +8 of the page behind va, as the CPU sees it. */
static u64 see(u64 va)
{
	return *(volatile u64 *)(va + 8);
}

/* --- rights --- */

struct mode {
	bool wp, nxe, smep, smap, ac;
};

/* Rights of a translation are those that all entries grant (SDM 3A 4.6.1); P and NX are handled apart. */
struct rights {
	bool present, rw, us, nx;
};

/* -1, or the error code of the page fault. */
static s64 expected(const struct mode *m, const struct rights *r, enum access how, bool user)
{
	u64 code = (how == WRITE ? 2 : 0) | (user ? 4 : 0) | (how == FETCH && (m->nxe || m->smep) ? 16 : 0);
	bool good = true;

	if (!r->present)
		return (s64)code;
	if (user) {
		good = r->us && (how != WRITE || r->rw) && !(how == FETCH && r->nx);
	} else {
		if (how == FETCH)
			good = !r->nx && !(r->us && m->smep);
		else
			good = !(r->us && m->smap && !m->ac) && !(how == WRITE && !r->rw && m->wp);
	}
	return good ? -1 : (s64)(code | 1);
}

static u32 tries, wrong;

static void one_try(const struct mode *m, const struct rights *r, enum access how, bool user, u64 *entry, u64 value,
		    const char *what)
{
	s64 want = expected(m, r, how, user);
	u64 ad;

	*entry = value;
	invlpg(T);
	if (m->ac && !user)
		asm volatile("stac");
	touch(how, T, user);
	/* A trap has cleared AC. */
	asm volatile("pushfq; andq %0, (%%rsp); popfq" : : "i"(~(s32)FLAG_AC) : "memory", "cc");
	tries++;
	ad = *entry & (PTE_A | PTE_D);
	if (want < 0 ? last.vec != NO_TRAP || !(ad & PTE_A) || (value & PTE_D ? 0 : !!(ad & PTE_D) != (how == WRITE)) :
		       last.vec != 14 || last.error != (u64)want || last.cr2 != T + (how == WRITE ? 8 : 0) ||
		       (!(value & PTE_D) && ad & PTE_D)) {
		if (wrong++ < 5)
			say("# %s entry 0x%lx%s%s%s%s%s, %s %s: vector %ld error 0x%lx cr2 0x%lx A/D 0x%lx, wanted error %ld\n",
			    what, value, m->wp ? " WP" : "", m->nxe ? " NXE" : "", m->smep ? " SMEP" : "",
			    m->smap ? " SMAP" : "", m->ac ? " AC" : "", user ? "user" : "supervisor", access_name[how],
			    last.vec, last.error, last.cr2, ad, want);
	}
}

/* Leaf and upper entry: P, RW, US, NX of each, every access. */
static void all_entries(const struct mode *m, u64 leaf_base, int leaf_level, const char *what)
{
	u64 *leaf = page_entry(T, leaf_level), *upper = page_entry(T, leaf_level + 1), kept = *upper;
	u64 upper_base = kept & ~(PTE_RW | PTE_US | PTE_NX | PTE_A | PTE_D);

	for (u32 u = 0; u < 8; u++) {
		u64 up = upper_base | (u & 1 ? PTE_RW : 0) | (u & 2 ? PTE_US : 0) | (u & 4 ? PTE_NX : 0);

		if (u & 4 && !m->nxe)
			continue;
		for (u32 l = 0; l < 32; l++) {
			u64 value = leaf_base | (l & 1 ? PTE_P : 0) | (l & 2 ? PTE_RW : 0) | (l & 4 ? PTE_US : 0) |
				    (l & 8 ? PTE_NX : 0) | (l & 16 ? PTE_A | PTE_D : 0);
			struct rights r = { l & 1, l & 2 && u & 1, l & 4 && u & 2, l & 8 || u & 4 };

			if (l & 8 && !m->nxe)
				continue;
			for (u32 how = 0; how < NR_ACCESS; how++) {
				for (u32 user = 0; user < 2; user++) {
					*upper = up;
					one_try(m, &r, how, user, leaf, value, what);
				}
			}
		}
	}
	*upper = kept;
	*leaf = 0;
	invlpg(T);
}

static void set_mode(const struct mode *m)
{
	wrmsr(MSR_EFER, m->nxe ? BARE_EFER : BARE_EFER & ~(u64)EFER_NXE);
	write_cr4(BARE_CR4 | (m->smep ? CR4_SMEP : 0) | (m->smap ? CR4_SMAP : 0));
	write_cr0(m->wp ? BARE_CR0 : BARE_CR0 & ~(u64)CR0_WP);
}

static void rights(void)
{
	static const struct mode plain = { true, true, false, false, false };
	bool smep = HAS_SMEP, smap = HAS_SMAP;

	if (!smep)
		skip("rights with SMEP", "not shown by CPUID");
	if (!smap)
		skip("rights with SMAP", "not shown by CPUID");
	for (u32 bits = 0; bits < 32; bits++) {
		struct mode m = { !(bits & 1), !(bits & 2), bits & 4, bits & 8, bits & 16 };

		if ((m.smep && !smep) || (m.smap && !smap) || (m.ac && !m.smap))
			continue;
		set_mode(&m);
		wrong = 0;
		all_entries(&m, (u64)page_a, 1, "4 KiB");
		set_mode(&plain);
		ok(!wrong, "rights of 4 KiB pages:%s%s%s%s%s", m.wp ? " WP" : "", m.nxe ? " NXE" : "",
		   m.smep ? " SMEP" : "", m.smap ? " SMAP" : "", m.ac ? " AC" : "");
	}
	say("# %u accesses\n", tries);
}

/* Large pages: the same at PDE and PDPTE, in one mode each with all protection on and off. */
static void large_rights(void)
{
	static const struct mode off = { false, true, false, false, false };
	struct mode on = { true, true, HAS_SMEP, HAS_SMAP, false };
	u64 *pde = page_entry(T, 2), kept_pde = *pde, *pdpte = page_entry(T, 3), kept_pdpte = *pdpte;

	wrong = 0;
	set_mode(&off);
	*pde = 0;
	all_entries(&off, ((u64)page_a & ~(SIZE_2M - 1)) | PTE_PS, 2, "2 MiB");
	set_mode(&on);
	all_entries(&on, ((u64)page_a & ~(SIZE_2M - 1)) | PTE_PS, 2, "2 MiB");
	set_mode(&(struct mode){ true, true, false, false, false });
	ok(!wrong, "rights of 2 MiB pages");
	*pde = kept_pde;
	if (HAS_1G) {
		wrong = 0;
		*pdpte = 0;
		set_mode(&off);
		all_entries(&off, PTE_PS, 3, "1 GiB");
		set_mode(&on);
		all_entries(&on, PTE_PS, 3, "1 GiB");
		set_mode(&(struct mode){ true, true, false, false, false });
		ok(!wrong, "rights of 1 GiB pages");
		*pdpte = PTE_PS | PTE_P | PTE_RW;
		invlpg(T);
		is(see(T + (u64)page_b), see((u64)page_b), "a 1 GiB page leads where it should");
		*pdpte = kept_pdpte;
	} else {
		skip("rights of 1 GiB pages", "not shown by CPUID");
		skip("a 1 GiB page leads where it should", "not shown by CPUID");
	}
	write_cr3(read_cr3());
}

static u32 physical_bits(void)
{
	u32 r[4];

	cpuid(0x80000008, 0, r);
	return r[0] & 0xff;
}

static void reserved(void)
{
	u64 *pte = page_entry(T, 1), *pde = page_entry(T, 2), *pdpte = page_entry(T, 3), *pml4e = page_entry(T, 4);
	u64 keep_pde = *pde, keep_pdpte = *pdpte, keep_pml4e = *pml4e, good = (u64)page_a | PTE_P | PTE_RW;
	u32 bits = physical_bits();

#define RESERVED(entry, value, name) do {					\
	u64 was = *(entry);							\
	*(entry) = (value);							\
	invlpg(T);								\
	touch(WRITE, T, false);							\
	*(entry) = was;								\
	invlpg(T);								\
	trapped(14, 0xb, "#PF(RSVD): " name);					\
} while (0)
	*pte = good;
	if (bits < 52) {
		RESERVED(pte, good | 1ul << bits, "PTE: address above MAXPHYADDR");
		RESERVED(pte, good | 1ul << 51, "PTE: bit 51");
		RESERVED(pde, keep_pde | 1ul << 51, "PDE: bit 51");
		RESERVED(pdpte, keep_pdpte | 1ul << 51, "PDPTE: bit 51");
		RESERVED(pml4e, keep_pml4e | 1ul << 51, "PML4E: bit 51");
	} else {
		skip("#PF(RSVD): addresses above MAXPHYADDR", "all 52 bits are there");
	}
	RESERVED(pml4e, keep_pml4e | PTE_PS, "PML4E: bit 7");
	RESERVED(pde, PTE_P | PTE_RW | PTE_PS | 1ul << 13, "2 MiB page: bit 13");
	RESERVED(pde, PTE_P | PTE_RW | PTE_PS | 1ul << 20, "2 MiB page: bit 20");
	if (HAS_1G)
		RESERVED(pdpte, PTE_P | PTE_RW | PTE_PS | 1ul << 29, "1 GiB page: bit 29");
	else
		RESERVED(pdpte, PTE_P | PTE_RW | PTE_PS, "1 GiB page where there are none");
	/* Not present: nothing else is looked at. */
	*pte = 1ul << 51;
	invlpg(T);
	touch(READ, T, false);
	trapped(14, 0, "reserved bits do not count where P = 0");
	*pte = good;
	wrmsr(MSR_EFER, BARE_EFER & ~(u64)EFER_NXE);
	RESERVED(pte, good | PTE_NX, "NX without EFER.NXE");
	*pte = good | PTE_NX;
	invlpg(T);
	touch(READ, T, true);
	*pte = 0;
	invlpg(T);
	trapped(14, 0xd, "#PF(RSVD): by a read in ring 3");
	wrmsr(MSR_EFER, BARE_EFER);
#undef RESERVED
}

/* A and D of every level, and by whom they are set. */
static void accessed(void)
{
	u64 *pte = page_entry(T, 1), *pde = page_entry(T, 2), *pdpte = page_entry(T, 3), *pml4e = page_entry(T, 4);
	u64 good = (u64)page_a | PTE_P | PTE_RW;

	*pte = good;
	*pde &= ~PTE_A;
	*pdpte &= ~PTE_A;
	*pml4e &= ~PTE_A;
	write_cr3(read_cr3());
	touch(READ, T, false);
	ok(*pte & PTE_A && *pde & PTE_A && *pdpte & PTE_A && *pml4e & PTE_A, "a read sets A at all levels");
	ok(!(*pte & PTE_D), "a read does not set D");
	touch(WRITE, T, false);
	ok(*pte & PTE_D, "a write after a read sets D");
	ok(!(*pde & PTE_D) && !(*pdpte & PTE_D), "D is not set in entries that lead to tables");
	*pte = good & ~PTE_RW;
	invlpg(T);
	touch(WRITE, T, false);
	ok(last.vec == 14 && !(*pte & PTE_D), "a write that faults does not set D");
	/* No write: cmpxchg that fails still is one (SDM 2A, CMPXCHG: the destination gets a write cycle). */
	*pte = good;
	invlpg(T);
	asm volatile("lock cmpxchgq %1, (%0)" : : "r"(T + 16), "r"(1ul), "a"(0x1234ul) : "memory", "cc");
	ok(*pte & PTE_D, "a CMPXCHG that does not match sets D");
	*pte = good & ~PTE_RW;
	invlpg(T);
	TRY("lock cmpxchgq %1, (%0)", : : "r"(T + 16), "r"(1ul), "a"(0x1234ul) : "memory", "cc");
	trapped(14, 3, "and faults on a page that cannot be written");
	*pte = good;
	invlpg(T);
	asm volatile("prefetcht0 (%0)" : : "r"(T));
	TRY("prefetcht0 (%0)", : : "r"(0x700000000000ul));
	trapped(NO_TRAP, 0, "a prefetch does not fault");
	TRY("orl $0, (%0)", : : "r"(T) : "memory", "cc");
	ok(*pte & PTE_D, "OR with 0 sets D");
}

/* --- the TLB --- */

/* What hardware may keep. */
static void may_stale(bool stale, const char *name)
{
	if (must_stale)
		ok(stale, "%s", name);
	else
		info(name, stale ? "kept" : "not kept");
}

#define POINT_TO(page)	((u64)(page) | PTE_P | PTE_RW)

/* Map T to a, use it, map it to b with no flush: is a still seen? */
static bool goes_stale(u64 extra)
{
	u64 *pte = page_entry(T, 1);

	*pte = POINT_TO(page_a) | extra;
	invlpg(T);
	see(T);
	*pte = POINT_TO(page_b) | extra;
	barrier();
	return see(T) == see((u64)page_a);
}

static bool fresh(void)
{
	return see(T) == see((u64)page_b);
}

static void invpcid(u64 type, u64 pcid, u64 va)
{
	struct {
		u64 pcid, va;
	} d = { pcid, va };

	asm volatile("invpcid %0, %1" : : "m"(d), "r"(type) : "memory");
}

static void staleness(void)
{
	u64 *pte = page_entry(T, 1), *next = page_entry(T + 4096, 1);
	u64 cr3 = read_cr3();

	may_stale(goes_stale(0), "stale: a changed address");
	invlpg(T);
	ok(fresh(), "INVLPG: the new address");
	goes_stale(0);
	write_cr3(cr3);
	ok(fresh(), "CR3 write: the new address");
	goes_stale(0);
	invlpg(T + 0xabc);
	ok(fresh(), "INVLPG of another byte of the page");
	goes_stale(0);
	write_cr4(BARE_CR4 | CR4_PGE);
	write_cr4(BARE_CR4);
	ok(fresh(), "CR4.PGE toggled: the new address");

	*next = POINT_TO(page_a);
	invlpg(T + 4096);
	see(T + 4096);
	*next = POINT_TO(page_b);
	invlpg(T);
	may_stale(see(T + 4096) == see((u64)page_a), "stale: INVLPG leaves the next page alone");
	invlpg(T + 4096);
	*next = 0;

	*pte = POINT_TO(page_a);
	invlpg(T);
	touch(WRITE, T, false);
	*pte = (u64)page_a | PTE_P;
	touch(WRITE, T, false);
	may_stale(last.vec == NO_TRAP, "stale: the right to write");
	invlpg(T);
	touch(WRITE, T, false);
	trapped(14, 3, "INVLPG: the right to write is gone");
	/* More rights: a fault may come once, and has dropped the entry then (SDM 3A 4.10.4.1). */
	*pte = (u64)page_a | PTE_P;
	invlpg(T);
	touch(READ, T, false);
	*pte = POINT_TO(page_a);
	touch(WRITE, T, false);
	info("stale: no right to write yet", last.vec == 14 ? "kept" : "not kept");
	touch(WRITE, T, false);
	trapped(NO_TRAP, 0, "a page fault drops the entry it came from");
	*pte = 0;
	touch(READ, T, false);
	may_stale(last.vec == NO_TRAP, "stale: a page that is gone");
	invlpg(T);
	touch(READ, T, false);
	trapped(14, 0, "INVLPG: gone");
	*pte = POINT_TO(page_b);
	touch(READ, T, false);
	trapped(NO_TRAP, 0, "an entry that was not present is never cached");
	/* D is written where the entry was cached clean, whatever the TLB holds. */
	*pte = POINT_TO(page_a);
	invlpg(T);
	touch(READ, T, false);
	touch(WRITE, T, false);
	ok(*pte & PTE_D, "D is set through a cached clean entry");
	*pte &= ~(PTE_A | PTE_D);
	touch(WRITE, T, false);
	may_stale(!(*pte & PTE_D), "stale: D cleared in memory");
	invlpg(T);
	touch(WRITE, T, false);
	ok(*pte & PTE_D, "INVLPG: D is set again");
}

/* Upper levels are cached apart (SDM 3A 4.10.3). */
static void structures(void)
{
	u64 *pde = page_entry(T, 2), kept = *pde, *other = page_alloc(), *table = (u64 *)(kept & PTE_ADDR);
	u64 va1 = T + 0x10000, va2 = T + 0x11000, i = 0x10;

	table[i] = table[i + 1] = POINT_TO(page_a);
	other[i] = other[i + 1] = POINT_TO(page_b);
	write_cr3(read_cr3());
	see(va1);
	*pde = (u64)other | PTE_P | PTE_RW | PTE_US;
	may_stale(see(va2) == see((u64)page_a), "stale: a PDE, for a page not seen before");
	invlpg(T + 0x1f0000);
	ok(see(va2) == see((u64)page_a) || see(va2) == see((u64)page_b), "INVLPG of another page of that PDE");
	invlpg(va2);
	is(see(va2), see((u64)page_b), "INVLPG drops the cached PDE");
	may_stale(see(va1) == see((u64)page_a), "stale: INVLPG of one page leaves another's entry");
	write_cr3(read_cr3());
	is(see(va1), see((u64)page_b), "CR3 write: the new PDE");
	/* INVLPG of any address drops all paging-structure caches of this PCID. */
	*pde = kept;
	write_cr3(read_cr3());
	see(va1);
	*pde = (u64)other | PTE_P | PTE_RW | PTE_US;
	invlpg(FIXED);
	is(see(va2), see((u64)page_b), "INVLPG of any address drops the cached PDE");
	*pde = kept;
	table[i] = table[i + 1] = 0;
	write_cr3(read_cr3());

	/* A large page: INVLPG of any of its bytes drops it all. */
	*pde = ((u64)page_a & ~(SIZE_2M - 1)) | PTE_P | PTE_RW | PTE_PS;
	invlpg(T);
	see(T + ((u64)page_a & (SIZE_2M - 1)));
	see(T + ((u64)page_b & (SIZE_2M - 1)));
	*pde = (((u64)page_a & ~(SIZE_2M - 1)) + SIZE_2M) | PTE_P | PTE_RW | PTE_PS;
	may_stale(see(T + ((u64)page_a & (SIZE_2M - 1))) == see((u64)page_a), "stale: a 2 MiB page");
	invlpg(T + 0x1ff000);
	ok(see(T + ((u64)page_a & (SIZE_2M - 1))) != see((u64)page_a) &&
	   see(T + ((u64)page_b & (SIZE_2M - 1))) != see((u64)page_b), "INVLPG of any address of a 2 MiB page");
	*pde = kept;
	write_cr3(read_cr3());
}

static void global(void)
{
	u64 *pte = page_entry(T, 1), cr3 = read_cr3();

	write_cr4(BARE_CR4 | CR4_PGE);
	goes_stale(PTE_G);
	write_cr3(cr3);
	may_stale(!fresh(), "stale: a global page survives a CR3 write");
	invlpg(T);
	ok(fresh(), "INVLPG drops a global page");
	goes_stale(PTE_G);
	write_cr4(BARE_CR4);
	ok(fresh(), "CR4.PGE cleared: global pages are gone");
	write_cr4(BARE_CR4 | CR4_PGE);
	goes_stale(0);
	write_cr3(cr3);
	ok(fresh(), "a CR3 write drops pages that are not global");
	write_cr4(BARE_CR4);
	goes_stale(PTE_G);
	write_cr3(cr3);
	ok(fresh(), "G does not count without CR4.PGE");
	if (HAS_INVPCID) {
		write_cr4(BARE_CR4 | CR4_PGE);
		goes_stale(PTE_G);
		invpcid(3, 0, 0);
		may_stale(!fresh(), "stale: INVPCID type 3 leaves global pages");
		invpcid(2, 0, 0);
		ok(fresh(), "INVPCID type 2 drops global pages");
		goes_stale(PTE_G);
		invpcid(1, 0, 0);
		may_stale(!fresh(), "stale: INVPCID type 1 leaves global pages");
		invpcid(2, 0, 0);
		goes_stale(0);
		invpcid(0, 0, T);
		ok(fresh(), "INVPCID type 0");
		goes_stale(0);
		invpcid(1, 0, 0);
		ok(fresh(), "INVPCID type 1");
		goes_stale(0);
		invpcid(3, 0, 0);
		ok(fresh(), "INVPCID type 3");
		TRY("invpcid %0, %1", : : "m"(*page_a), "r"(4ul) : "memory");
		trapped(13, 0, "#GP(0): INVPCID type 4");
		page_a[1024] = 1;
		TRY("invpcid %0, %1", : : "m"(page_a[1024]), "r"(0ul) : "memory");
		trapped(13, 0, "#GP(0): INVPCID of a PCID without CR4.PCIDE");
		page_a[1024] = 0;
		page_a[1024 + 15] = 0x80;
		TRY("invpcid %0, %1", : : "m"(page_a[1024]), "r"(0ul) : "memory");
		trapped(13, 0, "#GP(0): INVPCID of an address that is not canonical");
		page_a[1024 + 15] = 0;
	} else {
		skip("INVPCID", "not shown by CPUID");
	}
	write_cr4(BARE_CR4);
	*pte = 0;
	write_cr3(cr3);
}

static void pcid(void)
{
	u64 *pte = page_entry(T, 1), cr3 = read_cr3();

	if (!HAS_PCID) {
		skip("PCID", "not shown by CPUID");
		return;
	}
	/* A and B are the same tables by two PCIDs. */
	write_cr4(BARE_CR4 | CR4_PCIDE | CR4_PGE);
	goes_stale(0);
	write_cr3(cr3 | 1);
	ok(fresh(), "PCID: entries of another one are not used");
	write_cr3(cr3 | CR3_NOFLUSH);
	may_stale(!fresh(), "stale: back to the first PCID without a flush");
	is(read_cr3() & CR3_NOFLUSH, 0, "CR3 bit 63 reads as 0");
	write_cr3(cr3);
	ok(fresh(), "CR3 write without bit 63 drops this PCID's entries");
	goes_stale(0);
	write_cr3(cr3 | 1 | CR3_NOFLUSH);
	write_cr3(cr3 | 1);
	write_cr3(cr3 | CR3_NOFLUSH);
	may_stale(!fresh(), "stale: a flush of PCID 1 leaves PCID 0");
	goes_stale(0);
	write_cr3(cr3 | 1 | CR3_NOFLUSH);
	invlpg(T);
	write_cr3(cr3 | CR3_NOFLUSH);
	may_stale(!fresh(), "stale: INVLPG by PCID 1 leaves PCID 0");
	invlpg(T);
	goes_stale(PTE_G);
	write_cr3(cr3 | 1 | CR3_NOFLUSH);
	may_stale(!fresh(), "stale: global pages are seen by all PCIDs");
	invlpg(T);
	write_cr3(cr3 | CR3_NOFLUSH);
	ok(fresh(), "INVLPG by PCID 1 drops a global page");
	goes_stale(0);
	write_cr4(BARE_CR4 | CR4_PCIDE);
	write_cr4(BARE_CR4 | CR4_PCIDE | CR4_PGE);
	ok(fresh(), "CR4.PGE toggled drops all PCIDs, this one");
	goes_stale(0);
	write_cr3(cr3 | 1 | CR3_NOFLUSH);
	write_cr4(BARE_CR4 | CR4_PCIDE);
	write_cr4(BARE_CR4 | CR4_PCIDE | CR4_PGE);
	write_cr3(cr3 | CR3_NOFLUSH);
	ok(fresh(), "CR4.PGE toggled drops all PCIDs, another one");
	if (HAS_INVPCID) {
		goes_stale(0);
		write_cr3(cr3 | 1 | CR3_NOFLUSH);
		invpcid(0, 1, T);
		write_cr3(cr3 | CR3_NOFLUSH);
		may_stale(!fresh(), "stale: INVPCID type 0 of PCID 1 leaves PCID 0");
		write_cr3(cr3 | 1 | CR3_NOFLUSH);
		invpcid(0, 0, T + 4096);
		write_cr3(cr3 | CR3_NOFLUSH);
		may_stale(!fresh(), "stale: INVPCID type 0 of another page");
		write_cr3(cr3 | 1 | CR3_NOFLUSH);
		invpcid(0, 0, T);
		write_cr3(cr3 | CR3_NOFLUSH);
		ok(fresh(), "INVPCID type 0 of another PCID's page");
		goes_stale(0);
		write_cr3(cr3 | 1 | CR3_NOFLUSH);
		invpcid(1, 1, 0);
		write_cr3(cr3 | CR3_NOFLUSH);
		may_stale(!fresh(), "stale: INVPCID type 1 of PCID 1 leaves PCID 0");
		write_cr3(cr3 | 1 | CR3_NOFLUSH);
		invpcid(1, 0, 0);
		write_cr3(cr3 | CR3_NOFLUSH);
		ok(fresh(), "INVPCID type 1 of another PCID");
		for (u64 type = 2; type < 4; type++) {
			goes_stale(0);
			write_cr3(cr3 | 1 | CR3_NOFLUSH);
			invpcid(type, 0, 0);
			write_cr3(cr3 | CR3_NOFLUSH);
			ok(fresh(), "INVPCID type %lu drops all PCIDs", type);
		}
	} else {
		skip("INVPCID with PCIDs", "not shown by CPUID");
	}
	goes_stale(0);
	write_cr3(cr3);
	write_cr4(BARE_CR4 | CR4_PGE);
	ok(fresh(), "CR4.PCIDE cleared: everything is gone");
	write_cr4(BARE_CR4);
	*pte = 0;
	write_cr3(cr3);
}

/* --- other changes that must be seen at once or flush --- */

static void modes_flush(void)
{
	u64 *pte = page_entry(T, 1);

	/* CR0.WP counts at each access: changing it needs no flush by software. */
	*pte = (u64)page_a | PTE_P;
	invlpg(T);
	touch(READ, T, false);
	write_cr0(BARE_CR0 & ~(u64)CR0_WP);
	touch(WRITE, T, false);
	trapped(NO_TRAP, 0, "CR0.WP cleared counts at once");
	write_cr0(BARE_CR0);
	touch(WRITE, T, false);
	trapped(14, 3, "CR0.WP set counts at once");
	*pte = (u64)page_a | PTE_P | PTE_RW | PTE_US;
	invlpg(T);
	if (HAS_SMEP) {
		touch(FETCH, T, false);
		trapped(NO_TRAP, 0, "SMEP off: a supervisor runs user code");
		write_cr4(BARE_CR4 | CR4_SMEP);
		touch(FETCH, T, false);
		trapped(14, 0x11, "SMEP on: not with the entry cached either");
		write_cr4(BARE_CR4);
	} else {
		skip("SMEP turned on", "not shown by CPUID");
	}
	if (HAS_SMAP) {
		touch(READ, T, false);
		write_cr4(BARE_CR4 | CR4_SMAP);
		touch(READ, T, false);
		trapped(14, 1, "SMAP on: not with the entry cached either");
		TRY("stac; movq (%0), %%rax; clac", : : "r"(T) : "rax");
		trapped(NO_TRAP, 0, "STAC opens");
		TRY("stac; clac; movq (%0), %%rax", : : "r"(T) : "rax");
		trapped(14, 1, "CLAC closes");
		/* An implicit access is a supervisor's whatever AC says (SDM 3A 4.6.1): of a descriptor here. */
		*(u64 *)(page_a + 0x800) = 0x00cf93000000fffful;
		bare_gdt[SEL_SPARE / 8] = 7 | ((T + 0x800) & 0xffffff) << 16 | 0x82ul << 40;
		bare_gdt[SEL_SPARE / 8 + 1] = (T + 0x800) >> 32;
		asm volatile("lldt %0" : : "r"((u16)SEL_SPARE));
		TRY("stac; movw %w0, %%ds; clac", : : "r"(4) : "memory");
		trapped(14, 1, "SMAP: a descriptor in a user page is out of reach, STAC or not");
		asm volatile("lldt %0; movw %1, %%ds" : : "r"((u16)0), "r"((u16)SEL_KDATA));
		write_cr4(BARE_CR4);
		TRY("clac", : : : "memory");
		trapped(NO_TRAP, 0, "CLAC without CR4.SMAP");
	} else {
		skip("SMAP turned on", "not shown by CPUID");
	}
	/* Ring 3 and ring 0 share entries, but not rights. */
	*pte = (u64)page_a | PTE_P | PTE_RW;
	invlpg(T);
	touch(READ, T, false);
	touch(READ, T, true);
	trapped(14, 5, "a page cached for the supervisor is closed to ring 3");
	/* The whole of a write across two pages is checked before any of it is done. */
	*page_entry(T + 4096, 1) = 0;
	*(volatile u64 *)(page_a + 4088) = 0x1111111111111111ul;
	TRY("movq %0, (%1)", : : "r"(0x2222222222222222ul), "r"(T + 4092) : "memory");
	trapped(14, 2, "a write across into a page that is not there");
	is(last.cr2, T + 4096, "CR2 is the second page's first byte");
	is(*(volatile u64 *)(page_a + 4088), 0x1111111111111111ul, "and nothing was written to the first");
	*pte = 0;
	invlpg(T);
}

void test_main(void)
{
	must_stale = option_is("stale", "must");
	/* Both in one 2 MiB page, of which page_a is the start. */
	page_a = page_alloc_aligned(SIZE_2M, 8192);
	page_b = page_alloc();
	page_a[0] = page_b[0] = 0xc3;
	*(u64 *)(page_a + 8) = 0xaaaa;
	*(u64 *)(page_b + 8) = 0xbbbb;
	/* What 1 GiB pages at 0 begin with. */
	asm volatile("movb $0xc3, (%0)" : : "r"(0ul) : "memory");
	rights();
	large_rights();
	*(u64 *)(page_a + 8) = 0xaaaa;
	*(u64 *)(page_b + 8) = 0xbbbb;
	reserved();
	accessed();
	*(u64 *)(page_a + 8) = 0xaaaa;
	staleness();
	*(u64 *)(page_a + 8) = 0xaaaa;
	*(u64 *)(page_b + 8) = 0xbbbb;
	structures();
	global();
	pcid();
	modes_flush();
}
