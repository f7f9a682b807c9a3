// SPDX-License-Identifier: GPL-2.0-only
/*
 * String instructions that meet a page fault in mid-string: what is done is done,
 * RCX, RSI and RDI say how far it got, RIP is the instruction's, and it goes on
 * there (SDM 2B, REP). Every element size, both directions, every place of the fault;
 * then single-stepping, interrupts in mid-string, and addresses that wrap.
 */
#include "bare64.h"

#define SRC	0x9000000000ul		/* two pages, the second absent at first */
#define DST	0x9000010000ul

static u64 *src_pte, *dst_pte;
static u8 *src_page[2], *dst_page[2];
static u32 faults;

/* Makes the page there: the instruction goes on by itself. */
static bool on_fault(struct frame *f)
{
	u64 cr2 = read_cr2();

	faults++;
	if (cr2 >> 12 == SRC >> 12 || cr2 >> 12 == (SRC + 4096) >> 12)
		src_pte[cr2 >> 12 & 1] |= PTE_P;
	else if (cr2 >> 12 == DST >> 12 || cr2 >> 12 == (DST + 4096) >> 12)
		dst_pte[cr2 >> 12 & 1] |= PTE_P;
	else
		return false;
	return true;
}

static void absent(u64 *pte, u64 va)
{
	*pte &= ~PTE_P;
	invlpg(va);
}

static void all_present(void)
{
	for (u32 i = 0; i < 2; i++) {
		src_pte[i] |= PTE_P;
		dst_pte[i] |= PTE_P;
	}
}

static void fill(void)
{
	for (u32 p = 0; p < 2; p++) {
		for (u32 i = 0; i < 4096; i++) {
			src_page[p][i] = (u8)(i * 7 + p * 3 + (i >> 8));
			dst_page[p][i] = 0xee;
		}
	}
}

enum string { MOVS, STOS, LODS, CMPS, SCAS, NR_STRING };
static const char *const string_name[] = { "MOVS", "STOS", "LODS", "CMPS", "SCAS" };

#define CASE(op, prefix)							\
	case 1: TRY(prefix op "b", : "+c"(*n), "+S"(*s), "+D"(*d), "+a"(*a) : : "memory", "cc"); break;	\
	case 2: TRY(prefix op "w", : "+c"(*n), "+S"(*s), "+D"(*d), "+a"(*a) : : "memory", "cc"); break;	\
	case 4: TRY(prefix op "l", : "+c"(*n), "+S"(*s), "+D"(*d), "+a"(*a) : : "memory", "cc"); break;	\
	case 8: TRY(prefix op "q", : "+c"(*n), "+S"(*s), "+D"(*d), "+a"(*a) : : "memory", "cc"); break

static void do_string(enum string what, u32 size, bool down, u64 *n, u64 *s, u64 *d, u64 *a)
{
	if (down)
		asm volatile("std");
	switch (what) {
	case MOVS: switch (size) { CASE("movs", "rep "); } break;
	case STOS: switch (size) { CASE("stos", "rep "); } break;
	case LODS: switch (size) { CASE("lods", "rep "); } break;
	case CMPS: switch (size) { CASE("cmps", "repe "); } break;
	case SCAS: switch (size) { CASE("scas", "repe "); } break;
	default: break;
	}
	asm volatile("cld");
}

/*
 * `before` elements in one page, then the fault. Upwards the second page is absent,
 * downwards the first. Misaligned strings have an element across the boundary, which
 * must not be half done.
 */
static bool one_fault(enum string what, u32 size, bool down, u32 before, u32 skew, bool at_src)
{
	u64 n = before + 9, kept_n = n, a = 0xabababababababab, step = down ? -(u64)size : size;
	bool uses_src = what != STOS && what != SCAS, uses_dst = what != LODS;
	u64 first = down ? 4096 + (before - 1ul) * size + skew : 4096 - before * size - skew;
	u64 s = SRC + first, d = DST + first, s0 = s, d0 = d;
	u64 *pte = at_src ? src_pte : dst_pte, va = (at_src ? SRC : DST) + (down ? 0 : 4096);
	u64 cr2;
	bool good;

	if (at_src ? !uses_src : !uses_dst)
		return true;
	fill();
	if (what == CMPS) {
		memcpy(dst_page[0], src_page[0], 4096);
		memcpy(dst_page[1], src_page[1], 4096);
	}
	if (what == SCAS) {
		memset(dst_page[0], 0xab, 4096);
		memset(dst_page[1], 0xab, 4096);
	}
	all_present();
	absent(&pte[down ? 0 : 1], va);
	do_string(what, size, down, &n, &s, &d, &a);
	/* An element that ends (or, downwards, begins) beyond the page faults where the page does. */
	cr2 = down ? (at_src ? SRC : DST) + first + step * before : va;
	if (!down && !skew)
		cr2 = va;
	good = last.vec == 14 && last.off == 0 && last.cr2 == cr2 && last.rcx == kept_n - before &&
	       (!uses_src || last.rsi == s0 + step * before) && (!uses_dst || last.rdi == d0 + step * before);
	if (!good)
		say("# %s%u %s after %u skew %u at %s: vector %ld +0x%lx cr2 0x%lx (0x%lx) rcx %lu (%lu) rsi 0x%lx (0x%lx) rdi 0x%lx (0x%lx)\n",
		    string_name[what], size * 8, down ? "down" : "up", before, skew, at_src ? "source" : "destination",
		    last.vec, last.off, last.cr2, cr2, last.rcx, kept_n - before, last.rsi, s0 + step * before,
		    last.rdi, d0 + step * before);
	/* Then with the page there: to the end, as if nothing had been. */
	trap_handle(14, on_fault);
	absent(&pte[down ? 0 : 1], va);
	faults = 0;
	n = last.rcx;
	s = last.rsi;
	d = last.rdi;
	do_string(what, size, down, &n, &s, &d, &a);
	trap_handle(14, NULL);
	if (last.vec != NO_TRAP || n || faults != 1 || (uses_src && s != s0 + step * kept_n) ||
	    (uses_dst && d != d0 + step * kept_n)) {
		say("# %s%u resumed: vector %ld faults %u rcx %lu rsi 0x%lx rdi 0x%lx\n", string_name[what], size * 8,
		    last.vec, faults, n, s, d);
		good = false;
	}
	if (what == MOVS || what == STOS) {
		u64 low = down ? first - (kept_n - 1) * size : first;

		for (u64 i = low; i < low + kept_n * size; i++) {
			u8 want = what == MOVS ? src_page[i >> 12][i & 4095] : 0xab;

			if (dst_page[i >> 12][i & 4095] != want) {
				say("# %s%u: byte 0x%lx is wrong\n", string_name[what], size * 8, i);
				return false;
			}
		}
		if (dst_page[(low - 1) >> 12][(low - 1) & 4095] != 0xee ||
		    dst_page[(low + kept_n * size) >> 12][(low + kept_n * size) & 4095] != 0xee) {
			say("# %s%u: wrote too much\n", string_name[what], size * 8);
			return false;
		}
	}
	return good;
}

static void faults_in_strings(void)
{
	static const u32 before[] = { 0, 1, 2, 17, 200 };

	for (u32 what = 0; what < NR_STRING; what++) {
		for (u32 down = 0; down < 2; down++) {
			bool good = true;

			for (u32 size = 1; size <= 8; size *= 2) {
				for (u32 b = 0; b < ARRAY_SIZE(before); b++) {
					for (u32 skew = 0; skew < size && skew < 2; skew++) {
						/* Downwards an element needs to lie above the first page, whole. */
						if (down && (skew || !before[b]))
							continue;
						good &= one_fault(what, size, down, before[b], skew, true);
						good &= one_fault(what, size, down, before[b], skew, false);
					}
				}
			}
			ok(good, "REP %s, %s: a page fault at every place, and on from there", string_name[what],
			   down ? "downwards" : "upwards");
		}
	}
}

static void both_fault(void)
{
	u64 n = 600, s = SRC + 4096 - 100, d = DST + 4096 - 200;

	fill();
	all_present();
	for (u32 i = 0; i < 2; i++) {
		absent(&src_pte[i], SRC + i * 4096);
		absent(&dst_pte[i], DST + i * 4096);
	}
	faults = 0;
	trap_handle(14, on_fault);
	asm volatile("rep movsb" : "+c"(n), "+S"(s), "+D"(d) : : "memory");
	trap_handle(14, NULL);
	is(faults, 4, "REP MOVSB over two pages each, all absent: four faults");
	ok(!n && s == SRC + 4096 + 500 && d == DST + 4096 + 400, "and it ends where it should");
}

static void ends(void)
{
	u64 n = 100, s = SRC, d = DST, f;

	fill();
	all_present();
	memcpy(dst_page[0], src_page[0], 100);
	dst_page[0][40] ^= 1;
	asm volatile("repe cmpsb; pushfq; popq %3" : "+c"(n), "+S"(s), "+D"(d), "=r"(f) : : "memory", "cc");
	ok(n == 59 && s == SRC + 41 && d == DST + 41 && !(f & FLAG_ZF), "REPE CMPSB ends behind the difference");
	n = 100;
	d = DST;
	asm volatile("repne scasb; pushfq; popq %2" : "+c"(n), "+D"(d), "=r"(f) : "a"(dst_page[0][40]) : "memory", "cc");
	ok(d == DST + 41 && f & FLAG_ZF, "REPNE SCASB ends behind what it looks for");
	n = 0;
	d = DST;
	asm volatile("cmpb $1, %b3; repne scasb; pushfq; popq %2" : "+c"(n), "+D"(d), "=&r"(f) : "a"(1) : "memory", "cc");
	ok(d == DST && f & FLAG_ZF, "RCX = 0: nothing is done, flags stay");
	/* Nothing is touched either. */
	n = 0;
	TRY("rep movsb", : "+c"(n) : "S"(0x800000000000ul), "D"(0x700000000000ul) : "memory");
	trapped(NO_TRAP, 0, "RCX = 0: bad addresses do not matter");
	/* 32-bit addresses: registers are truncated and zero-extended. */
	n = 0xffffffff00000004ul;
	s = 0xffffffff00000000ul | (u64)src_page[0];
	d = 0xffffffff00000000ul | (u64)dst_page[0];
	asm volatile("addr32 rep movsb" : "+c"(n), "+S"(s), "+D"(d) : : "memory");
	ok(!n && s == (u64)src_page[0] + 4 && d == (u64)dst_page[0] + 4, "32-bit addresses: ECX, ESI and EDI, zero-extended");
	/* Overlapping, upwards: each element is read after the one before was written. */
	src_page[0][0] = 0x77;
	n = 1000;
	s = SRC;
	d = SRC + 1;
	asm volatile("rep movsb" : "+c"(n), "+S"(s), "+D"(d) : : "memory");
	ok(src_page[0][1000] == 0x77 && src_page[0][500] == 0x77, "REP MOVSB onto itself one byte up spreads it");
	for (u32 i = 0; i < 4096; i++)
		src_page[0][i] = (u8)i;
	n = 100;
	s = SRC;
	d = SRC + 3;
	asm volatile("rep movsq" : "+c"(n), "+S"(s), "+D"(d) : : "memory");
	{
		static u8 model[4096];
		bool good = true;

		for (u32 i = 0; i < 4096; i++)
			model[i] = (u8)i;
		for (u32 i = 0; i < 100; i++) {
			u64 v = *(u64 *)(model + 8 * i);

			memcpy(model + 8 * i + 3, &v, 8);
		}
		for (u32 i = 0; i < 4096; i++)
			good &= model[i] == src_page[0][i];
		ok(good, "REP MOVSQ onto itself three bytes up goes element by element");
	}
	/* A page without the right to write: nothing of the element is written. */
	dst_pte[1] &= ~PTE_RW;
	invlpg(DST + 4096);
	n = 10;
	s = SRC;
	d = DST + 4096 - 12;
	TRY("rep movsq", : "+c"(n), "+S"(s), "+D"(d) : : "memory");
	dst_pte[1] |= PTE_RW;
	invlpg(DST + 4096);
	trapped(14, 3, "REP MOVSQ into a page that cannot be written");
	ok(last.rcx == 9 && last.rdi == DST + 4096 - 4, "after the whole elements before it");
}

static u32 steps;
static u64 step_rcx[8];
static bool on_step(struct frame *f)
{
	if (steps < 8)
		step_rcx[steps] = f->rcx;
	if (++steps == 4)
		f->rflags &= ~(u64)FLAG_TF;
	return true;
}

static volatile u32 ticks;
static volatile u64 tick_rcx, tick_rip, tick_flags;
static bool on_tick(struct frame *f)
{
	ticks++;
	tick_rcx = f->rcx;
	tick_rip = f->rip;
	tick_flags = f->rflags;
	apic_write(APIC_EOI, 0);
	return true;
}

static void stepping(void)
{
	u64 n = 3, s = SRC, d = DST, at;

	trap_handle(1, on_step);
	asm volatile("pushfq; orq $0x100, (%%rsp); popfq; rep movsb; nop; nop; nop" : "+c"(n), "+S"(s), "+D"(d)
		     : : "memory", "cc");
	trap_handle(1, NULL);
	ok(step_rcx[0] == 2 && step_rcx[1] == 1 && step_rcx[2] == 0, "TF: a trap after each element");

	/* An interrupt that is pending when a long one begins must not wait until its end. */
	apic_enable();
	trap_handle(0x50, on_tick);
	apic_write(APIC_TIMER_DIV, 0xb);
	apic_write(APIC_LVT_TIMER, 0x50);
	n = 8ul << 20;
	d = 0x1000000;
	irq_on();
	apic_write(APIC_TIMER_INIT, 10000);
	asm volatile("leaq 1f(%%rip), %2; 1: rep stosb" : "+c"(n), "+D"(d), "=&r"(at) : "a"(0) : "memory");
	wait_for(ticks);
	irq_off();
	ok(!n && d == 0x1000000 + (8ul << 20), "REP STOSB of 8 MiB with an interrupt in it");
	is(ticks, 1, "and the interrupt came");
	if (tick_rip == at && tick_rcx && tick_rcx != 8ul << 20) {
		info("the interrupt in REP STOSB", "came in mid-string");
		ok(tick_flags & FLAG_RF, "an interrupt in mid-string pushes RF = 1");
	} else {
		info("the interrupt in REP STOSB", "did not come in mid-string");
		skip("an interrupt in mid-string pushes RF = 1", "it did not come there");
	}
	trap_handle(0x50, NULL);
}

void test_main(void)
{
	src_pte = page_entry(SRC, 1);
	dst_pte = page_entry(DST, 1);
	for (u32 i = 0; i < 2; i++) {
		src_page[i] = page_alloc();
		dst_page[i] = page_alloc();
		src_pte[i] = (u64)src_page[i] | PTE_P | PTE_RW;
		dst_pte[i] = (u64)dst_page[i] | PTE_P | PTE_RW;
	}
	faults_in_strings();
	both_fault();
	ends();
	stepping();
}
