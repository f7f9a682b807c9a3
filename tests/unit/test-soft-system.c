// SPDX-License-Identifier: GPL-2.0-only
/*
 * System instructions: who may, what is refused and how, what they leave behind. Those of
 * control registers and MSRs have files of their own.
 * Expectations are written from the SDM's page of each instruction.
 */
#include <errno.h>

#include "soft-system.h"
#include "x86/msr.h"

/* --- privilege: what CPL 3 may not do --- */

#define I(bytes, vector)	{ bytes, sizeof(bytes) - 1, vector }

static void test_privileged(void)
{
	static const struct {
		const char *bytes;
		u32 len;
		int vector;
	} insn[] = {
		I("\xf4", VEC_GP), I("\xfa", VEC_GP), I("\xfb", VEC_GP), I("\x0f\x20\xd8", VEC_GP),
		I("\x0f\x22\xd8", VEC_GP), I("\x0f\x21\xf8", VEC_GP), I("\x0f\x23\xf8", VEC_GP),
		I("\x0f\x06", VEC_GP), I("\x0f\x01\xf0", VEC_GP), I("\x0f\x01\x3b", VEC_GP),
		I("\x66\x0f\x38\x82\x03", VEC_GP), I("\x0f\x32", VEC_GP), I("\x0f\x30", VEC_GP),
		I("\x0f\x09", VEC_GP), I("\x0f\x08", VEC_GP), I("\x0f\x01\x13", VEC_GP), I("\x0f\x01\x1b", VEC_GP),
		I("\x0f\x00\xd0", VEC_GP), I("\x0f\x00\xd8", VEC_GP), I("\x0f\x01\xf8", VEC_GP),
		I("\x48\x0f\x07", VEC_GP), I("\x0f\x01\xcb", VEC_UD), I("\x0f\x01\xca", VEC_UD),
		I("\x0f\x01\xc8", VEC_UD), I("\x0f\x01\xc9", VEC_UD), I("\x0f\x33", VEC_GP), I("\x0f\x35", VEC_GP),
		I("\xec", VEC_GP), I("\xe6\x10", VEC_GP), I("\x6c", VEC_GP), I("\x0f\x01\xd0", VEC_UD),
		I("\x0f\x01\xc1", VEC_UD), I("\x0f\xaa", VEC_UD),
	};
	u32 i;

	setup();
	for (i = 0; i < ARRAY_SIZE(insn); i++) {
		gpa_t at = GUEST_USER + 0x20 * i;

		guest_code(&g, at, insn[i].bytes, insn[i].len);
		guest_user(&g);
		g.s.rip = at;
		g.s.gpr[X86_RBX] = GUEST_FREE;
		g.s.rflags = FIXED;
		g_assert_cmpint(guest_outcome(&g), ==, insn[i].vector);
		g_assert_cmphex(guest_frame(&g, insn[i].vector == VEC_GP), ==, at);
		if (insn[i].vector == VEC_GP)
			g_assert_cmphex(guest_frame(&g, 0), ==, 0);
	}
	g_assert_cmpuint(g.f->nr_pio, ==, 0);
	teardown();
}

/* --- flags --- */

static void test_flags(void)
{
	setup();
	CODE(&g, GUEST_USER, "\x9d\x0f\x0b");			/* popf; ud2 */
	CODE(&g, FIXTURE_CODE, "\x9d\x9c\xf4");			/* popf; pushf; hlt */
	*(u64 *)soft_fixture_ram(g.f, GUEST_USER_SP - 8, 8) = ~0ull & ~X86_EFLAGS_TF;
	*(u64 *)soft_fixture_ram(g.f, FIXTURE_STACK - 8, 8) = ~0ull & ~X86_EFLAGS_TF;
	/* CPL 3, IOPL 0: neither IF nor IOPL; with IOPL 3 IF too. */
	guest_user(&g);
	g.s.gpr[X86_RSP] -= 8;
	g.s.rflags = FIXED;
	g_assert_cmpint(guest_outcome(&g), ==, VEC_UD);
	g_assert_cmphex(guest_frame(&g, 2), ==, 0x244cd7 | X86_EFLAGS_RF);
	guest_user(&g);
	g.s.gpr[X86_RSP] -= 8;
	g.s.rflags = FIXED | X86_EFLAGS_IOPL;
	g_assert_cmpint(guest_outcome(&g), ==, VEC_UD);
	g_assert_cmphex(guest_frame(&g, 2), ==, 0x247ed7 | X86_EFLAGS_RF);
	/* CPL 0: all but VM, VIF, VIP; PUSHF gives RF as 0. */
	guest_kernel(&g, FIXTURE_CODE);
	g.s.gpr[X86_RSP] -= 8;
	g_assert_cmpint(guest_outcome(&g), ==, PASSED);
	g_assert_cmphex(guest_u64(&g, FIXTURE_STACK - 8), ==, 0x247ed7);
	teardown();
}

static void test_smap_flags(void)
{
	setup();
	CODE(&g, FIXTURE_CODE, "\x0f\x01\xcb\xf4");		/* stac */
	CODE(&g, FIXTURE_CODE + 0x20, "\x0f\x01\xca\xf4");	/* clac */
	g_assert_cmpint(kernel_outcome(), ==, PASSED);
	g_assert_cmphex(g.s.rflags, ==, FIXED | X86_EFLAGS_AC);
	guest_kernel(&g, FIXTURE_CODE + 0x20);
	g_assert_cmpint(guest_outcome(&g), ==, PASSED);
	g_assert_cmphex(g.s.rflags, ==, FIXED);
	teardown();
}

/* --- system calls --- */

static void test_syscall(void)
{
	setup();
	CODE(&g, GUEST_USER, "\x0f\x05\x0f\x0b");		/* syscall; ud2 */
	CODE(&g, GUEST_FREE, "\xf4\x48\x0f\x07");		/* hlt; sysretq */
	CODE(&g, GUEST_FREE + 0x20, "\x0f\x07");		/* sysretl */
	g.s.star = 0x0023001000000000ull;			/* user base 0x23, kernel CS 0x10 */
	g.s.lstar = GUEST_FREE;
	g.s.sfmask = IF | X86_EFLAGS_DF | X86_EFLAGS_AC;
	guest_user(&g);
	g.s.rflags = FIXED | IF | X86_EFLAGS_DF | X86_EFLAGS_AC | X86_EFLAGS_CF;
	g_assert_cmpint(guest_outcome(&g), ==, PASSED);
	g_assert_cmphex(g.s.rip, ==, GUEST_FREE + 1);
	g_assert_cmphex(g.s.gpr[X86_RCX], ==, GUEST_USER + 2);
	g_assert_cmphex(g.s.gpr[X86_R11], ==, FIXED | IF | X86_EFLAGS_DF | X86_EFLAGS_AC | X86_EFLAGS_CF);
	g_assert_cmphex(g.s.rflags, ==, FIXED | X86_EFLAGS_CF);
	g_assert_cmphex(g.s.cs.selector, ==, 0x10);
	g_assert_cmphex(g.s.cs.attr, ==, 0xa09b);
	g_assert_cmphex(g.s.ss.selector, ==, 0x18);
	g_assert_cmphex(g.s.ss.attr, ==, 0xc093);
	g_assert_cmphex(g.s.gpr[X86_RSP], ==, GUEST_USER_SP);
	/* And back: to the UD2. */
	g_assert_cmpint(guest_resume(&g), ==, RUN_HLT);
	g_assert_cmpint(guest_vector_of(&g), ==, VEC_UD);
	g_assert_cmphex(guest_frame(&g, 0), ==, GUEST_USER + 2);
	g_assert_cmphex(guest_frame(&g, 1), ==, 0x33);
	g_assert_cmphex(guest_frame(&g, 2), ==, FIXED | IF | X86_EFLAGS_DF | X86_EFLAGS_AC | X86_EFLAGS_CF | X86_EFLAGS_RF);
	g_assert_cmphex(guest_frame(&g, 4), ==, 0x2b);
	/* To 32-bit code: EIP is ECX. */
	guest_kernel(&g, GUEST_FREE + 0x20);
	g.s.gpr[X86_RCX] = 0xffffffff00000000ull | (GUEST_USER + 2);
	g.s.gpr[X86_R11] = FIXED;
	g_assert_cmpint(guest_outcome(&g), ==, VEC_UD);
	g_assert_cmphex(guest_frame(&g, 0), ==, GUEST_USER + 2);
	g_assert_cmphex(guest_frame(&g, 1), ==, 0x23);
	/* RCX not canonical: #GP at CPL 0, before the switch. */
	guest_kernel(&g, GUEST_FREE + 1);
	g.s.gpr[X86_RCX] = 1ull << 47;
	g_assert_cmpint(guest_outcome(&g), ==, VEC_GP);
	g_assert_cmphex(guest_frame(&g, 2), ==, FIXTURE_CS);
	/* Without SCE both are #UD. */
	g.s.efer &= ~X86_EFER_SCE;
	guest_user(&g);
	g_assert_cmpint(guest_outcome(&g), ==, VEC_UD);
	g_assert_cmphex(guest_frame(&g, 0), ==, GUEST_USER);
	teardown();
}

static void test_sysenter(void)
{
	setup();
	CODE(&g, GUEST_USER, "\x0f\x34\x0f\x0b");
	CODE(&g, GUEST_FREE, "\xf4\x48\x0f\x35");		/* hlt; sysexitq */
	guest_user(&g);
	g_assert_cmpint(guest_outcome(&g), ==, VEC_GP);		/* SYSENTER_CS is 0 */
	g.s.sysenter_cs = FIXTURE_CS;
	g.s.sysenter_esp = GUEST_IST1;
	g.s.sysenter_eip = GUEST_FREE;
	guest_user(&g);
	g.s.rflags = FIXED | IF;
	g_assert_cmpint(guest_outcome(&g), ==, PASSED);
	g_assert_cmphex(g.s.gpr[X86_RSP], ==, GUEST_IST1);
	g_assert_cmphex(g.s.rflags, ==, FIXED);
	g_assert_cmphex(g.s.cs.selector, ==, FIXTURE_CS);
	g_assert_cmphex(g.s.ss.selector, ==, FIXTURE_CS + 8);
	g.c->gpr[X86_RDX] = GUEST_USER + 2;
	g.c->gpr[X86_RCX] = GUEST_USER_SP - 0x100;
	g_assert_cmpint(guest_resume(&g), ==, RUN_HLT);
	g_assert_cmpint(guest_vector_of(&g), ==, VEC_UD);
	g_assert_cmphex(guest_frame(&g, 1), ==, (FIXTURE_CS + 32) | 3);
	g_assert_cmphex(guest_frame(&g, 3), ==, GUEST_USER_SP - 0x100);
	g_assert_cmphex(guest_frame(&g, 4), ==, (FIXTURE_CS + 40) | 3);
	teardown();
}

static void test_gs_base(void)
{
	setup();
	CODE(&g, FIXTURE_CODE, "\x0f\x01\xf8\xf3\x48\x0f\xae\xc8\xf4");	/* swapgs; rdgsbase rax */
	CODE(&g, FIXTURE_CODE + 0x20, "\xf3\x48\x0f\xae\xd0\xf4");		/* wrfsbase rax */
	g.s.gs.base = 0x1111;
	g.s.kernel_gs_base = 0xffff888800002222ull;
	g_assert_cmpint(kernel_outcome(), ==, VEC_UD);		/* RDGSBASE without FSGSBASE */
	g_assert_cmphex(g.s.gs.base, ==, 0xffff888800002222ull);
	g_assert_cmphex(g.s.kernel_gs_base, ==, 0x1111);
	g.s.cr4 |= X86_CR4_FSGSBASE;
	g_assert_cmpint(kernel_outcome(), ==, PASSED);
	g_assert_cmphex(g.s.gpr[X86_RAX], ==, 0x1111);
	guest_kernel(&g, FIXTURE_CODE + 0x20);
	g.s.gpr[X86_RAX] = 1ull << 47;
	g_assert_cmpint(guest_outcome(&g), ==, VEC_GP);
	guest_kernel(&g, FIXTURE_CODE + 0x20);
	g.s.gpr[X86_RAX] = 0x7ffff7d8a740ull;
	g_assert_cmpint(guest_outcome(&g), ==, PASSED);
	g_assert_cmphex(g.s.fs.base, ==, 0x7ffff7d8a740ull);
	teardown();
}

/* --- ports --- */

static void test_ports(void)
{
	setup();
	CODE(&g, FIXTURE_CODE, "\xec\xf4");			/* in al, dx */
	CODE(&g, FIXTURE_CODE + 0x20, "\xed\xf4");		/* in eax, dx */
	CODE(&g, FIXTURE_CODE + 0x40, "\x66\xe7\x80\xf4");	/* out 0x80, ax */
	g.f->pio_value = 0x89abcdef;
	g.s.gpr[X86_RAX] = ~0ull;
	g.s.gpr[X86_RDX] = 0xffff03f8;
	g_assert_cmpint(kernel_outcome(), ==, PASSED);
	g_assert_cmphex(g.f->pio_port, ==, 0x3f8);
	g_assert_cmpuint(g.f->pio_len, ==, 1);
	g_assert_cmphex(g.s.gpr[X86_RAX], ==, 0xffffffffffffffefull);
	guest_kernel(&g, FIXTURE_CODE + 0x20);
	g_assert_cmpint(guest_outcome(&g), ==, PASSED);
	g_assert_cmphex(g.s.gpr[X86_RAX], ==, 0x89abcdef);
	guest_kernel(&g, FIXTURE_CODE + 0x40);
	g_assert_cmpint(guest_outcome(&g), ==, PASSED);
	g_assert_cmphex(g.f->pio_port, ==, 0x80);
	g_assert_true(g.f->pio_write);
	g_assert_cmphex(g.f->pio_data, ==, 0xcdef);
	g_assert_cmpuint(g.f->nr_exits[COUNTER_vm_exits], ==, 3);
	teardown();
}

static void test_port_permission(void)
{
	u16 map = 0x68;
	u8 *bits;

	setup();
	CODE(&g, GUEST_USER, "\xed\x0f\x0b");			/* in eax, dx; ud2 */
	g.s.gpr[X86_RDX] = 0x86;
	bits = soft_fixture_ram(g.f, GUEST_TSS + map, 0x200);
	soft_fixture_load(g.f, GUEST_TSS + 102, &map, 2);
	g_assert_cmpint(user_outcome(0), ==, VEC_GP);		/* the map lies beyond the limit */
	g.s.tr.limit = map + 0x11;				/* ports to 0x8f, less the byte behind */
	g_assert_cmpint(user_outcome(0), ==, PASSED);
	/* 0x86 to 0x89 are four ports in two bytes. */
	bits[0x10] = 0x3f;
	bits[0x11] = 0xfc;
	g_assert_cmpint(user_outcome(0), ==, PASSED);
	bits[0x11] = 0x02;
	g_assert_cmpint(user_outcome(0), ==, VEC_GP);
	bits[0x11] = 0;
	bits[0x10] = 0x80;
	g_assert_cmpint(user_outcome(0), ==, VEC_GP);
	g.s.tr.limit--;
	bits[0x10] = 0;
	g_assert_cmpint(user_outcome(0), ==, VEC_GP);
	g_assert_cmpint(user_outcome(X86_EFLAGS_IOPL), ==, PASSED);
	g_assert_cmpuint(g.f->nr_pio, ==, 3);
	teardown();
}

static void test_port_strings(void)
{
	setup();
	CODE(&g, FIXTURE_CODE, "\xf3\x6f\xf4");			/* rep outsd */
	CODE(&g, FIXTURE_CODE + 0x20, "\xf3\x66\x6d\xf4");	/* rep insw */
	CODE(&g, FIXTURE_CODE + 0x40, "\x6c\xf4");		/* insb */
	g.s.gpr[X86_RSI] = GUEST_FREE;
	g.s.gpr[X86_RCX] = 200;
	g.s.gpr[X86_RDX] = 0x1f0;
	*(u32 *)soft_fixture_ram(g.f, GUEST_FREE + 796, 4) = 0x55aa1234;
	g_assert_cmpint(kernel_outcome(), ==, PASSED);
	g_assert_cmpuint(g.f->nr_pio, ==, 200);
	g_assert_cmphex(g.f->pio_data, ==, 0x55aa1234);
	g_assert_cmphex(g.s.gpr[X86_RSI], ==, GUEST_FREE + 800);
	g_assert_cmphex(g.s.gpr[X86_RCX], ==, 0);
	/* Downwards and out of what is mapped: the fault leaves count and index as they are, and reads no port. */
	guest_kernel(&g, FIXTURE_CODE + 0x20);
	g.s.rflags = FIXED | X86_EFLAGS_DF;
	g.s.gpr[X86_RDI] = 2;
	g.s.gpr[X86_RCX] = 9;
	g.f->nr_pio = 0;
	g.f->pio_value = 0x7766;
	g_assert_cmpint(guest_outcome(&g), ==, VEC_PF);
	g_assert_cmphex(g.s.cr2, ==, -2ull);
	g_assert_cmphex(guest_frame(&g, 1), ==, FIXTURE_CODE + 0x20);
	g_assert_cmpuint(g.f->nr_pio, ==, 2);
	g_assert_cmphex(g.s.gpr[X86_RDI], ==, -2ull);
	g_assert_cmphex(g.s.gpr[X86_RCX], ==, 7);
	g_assert_cmphex(guest_u64(&g, 0) & 0xffffffff, ==, 0x77667766);
	guest_kernel(&g, FIXTURE_CODE + 0x40);
	g.s.rflags = FIXED;
	g.s.gpr[X86_RDI] = GUEST_FREE;
	g_assert_cmpint(guest_outcome(&g), ==, PASSED);
	g_assert_cmphex(g.s.gpr[X86_RDI], ==, GUEST_FREE + 1);
	g_assert_cmphex(guest_u64(&g, GUEST_FREE), ==, 0x66);
	teardown();
}

/* --- segments and descriptor tables --- */

static void test_tables(void)
{
	const u64 image[] = { 0x8000000000001234ull, 0 };	/* base 1 << 47 */

	setup();
	CODE(&g, FIXTURE_CODE, "\x0f\x01\x03\x0f\x01\x4b\x10\xf4");	/* sgdt [rbx]; sidt [rbx + 16] */
	CODE(&g, FIXTURE_CODE + 0x20, "\x0f\x01\x1b\xf4");		/* lidt [rbx] */
	g.s.gpr[X86_RBX] = GUEST_FREE;
	g_assert_cmpint(kernel_outcome(), ==, PASSED);
	g_assert_cmphex(guest_u64(&g, GUEST_FREE + 2), ==, FIXTURE_GDT);
	g_assert_cmphex(guest_u64(&g, GUEST_FREE + 18), ==, GUEST_IDT);
	g_assert_cmphex(guest_u64(&g, GUEST_FREE + 16) & 0xffff, ==, 0xfff);
	/* A base that is not canonical. */
	soft_fixture_load(g.f, GUEST_FREE, image, sizeof(image));
	guest_kernel(&g, FIXTURE_CODE + 0x20);
	g_assert_cmpint(guest_outcome(&g), ==, VEC_GP);
	g_assert_cmphex(g.s.idt.base, ==, GUEST_IDT);
	teardown();
}

static void test_task_register(void)
{
	u8 *type;

	setup();
	CODE(&g, FIXTURE_CODE, "\x0f\x00\xd8\x0f\x00\xc9\xf4");	/* ltr eax; str ecx */
	type = soft_fixture_ram(g.f, FIXTURE_GDT + FIXTURE_TSS + 5, 1);
	g.s.tr.base = 0;
	g.s.gpr[X86_RAX] = FIXTURE_TSS;
	g_assert_cmpint(kernel_outcome(), ==, PASSED);
	g_assert_cmphex(*type, ==, 0x8b);
	g_assert_cmphex(g.s.tr.base, ==, GUEST_TSS);
	g_assert_cmphex(g.s.gpr[X86_RCX], ==, FIXTURE_TSS);
	g_assert_cmpint(kernel_outcome(), ==, VEC_GP);		/* it is busy now */
	g_assert_cmphex(guest_frame(&g, 0), ==, FIXTURE_TSS);
	*type = 0x09;
	g_assert_cmpint(kernel_outcome(), ==, VEC_NP);
	g.s.gpr[X86_RAX] = 0;
	g_assert_cmpint(kernel_outcome(), ==, VEC_GP);
	g.s.gpr[X86_RAX] = FIXTURE_DS;
	g_assert_cmpint(kernel_outcome(), ==, VEC_GP);
	g_assert_cmphex(guest_frame(&g, 0), ==, FIXTURE_DS);
	teardown();
}

static void test_segment_loads(void)
{
	u8 *access;

	setup();
	CODE(&g, FIXTURE_CODE, "\x8e\xd8\x8c\xd9\xf4");		/* mov ds, eax; mov ecx, ds */
	CODE(&g, FIXTURE_CODE + 0x20, "\x8e\xd0\xf4");		/* mov ss, eax */
	CODE(&g, FIXTURE_CODE + 0x40, "\x0f\xa0\x0f\xa9\xf4");	/* push fs; pop gs */
	access = soft_fixture_ram(g.f, FIXTURE_GDT + (FIXTURE_USER_DS & ~7) + 5, 1);
	*access = 0xf2;						/* not accessed yet */
	g.s.gpr[X86_RAX] = FIXTURE_USER_DS;
	g.s.gpr[X86_RCX] = ~0ull;
	g_assert_cmpint(kernel_outcome(), ==, PASSED);
	g_assert_cmphex(*access, ==, 0xf3);
	g_assert_cmphex(g.s.gpr[X86_RCX], ==, FIXTURE_USER_DS);
	*access = 0x73;						/* not present */
	g_assert_cmpint(kernel_outcome(), ==, VEC_NP);
	g_assert_cmphex(guest_frame(&g, 0), ==, FIXTURE_USER_DS & ~3u);
	g.s.gpr[X86_RAX] = FIXTURE_TSS;				/* a system segment */
	g_assert_cmpint(kernel_outcome(), ==, VEC_GP);
	g.s.gpr[X86_RAX] = FIXTURE_DS | 3;			/* RPL over DPL */
	g_assert_cmpint(kernel_outcome(), ==, VEC_GP);
	g.s.gpr[X86_RAX] = 3;					/* null is fine for DS */
	g_assert_cmpint(kernel_outcome(), ==, PASSED);
	g_assert_true(g.s.ds.unusable);

	guest_kernel(&g, FIXTURE_CODE + 0x20);
	g.s.gpr[X86_RAX] = 0;					/* ... and for SS in 64-bit mode at CPL 0 */
	g_assert_cmpint(guest_outcome(&g), ==, PASSED);
	guest_kernel(&g, FIXTURE_CODE + 0x20);
	g.s.gpr[X86_RAX] = 3;
	g_assert_cmpint(guest_outcome(&g), ==, VEC_GP);
	guest_kernel(&g, FIXTURE_CODE + 0x20);
	g.s.gpr[X86_RAX] = FIXTURE_CS;				/* code is no stack */
	g_assert_cmpint(guest_outcome(&g), ==, VEC_GP);

	guest_kernel(&g, FIXTURE_CODE + 0x40);
	g.s.fs.selector = FIXTURE_DS;
	g_assert_cmpint(guest_outcome(&g), ==, PASSED);
	g_assert_cmphex(g.s.gs.selector, ==, FIXTURE_DS);
	g_assert_cmphex(g.s.gpr[X86_RSP], ==, FIXTURE_STACK);
	g_assert_cmphex(guest_u64(&g, FIXTURE_STACK - 8), ==, FIXTURE_DS);
	teardown();
}

static bool ask(u64 at, u16 sel)
{
	guest_kernel(&g, at);
	g.s.gpr[X86_RAX] = sel;
	g.s.gpr[X86_RCX] = 0x5555;
	g_assert_cmpint(guest_outcome(&g), ==, PASSED);
	return g.s.rflags & X86_EFLAGS_ZF;
}

static void test_ask(void)
{
	const u64 lar = FIXTURE_CODE, lsl = FIXTURE_CODE + 0x20, verr = FIXTURE_CODE + 0x40, verw = FIXTURE_CODE + 0x60;

	setup();
	CODE(&g, lar, "\x0f\x02\xc8\xf4");
	CODE(&g, lsl, "\x0f\x03\xc8\xf4");
	CODE(&g, verr, "\x0f\x00\xe0\xf4");
	CODE(&g, verw, "\x0f\x00\xe8\xf4");
	g_assert_true(ask(lar, FIXTURE_CS));
	g_assert_cmphex(g.s.gpr[X86_RCX], ==, 0x00a09b00);
	g_assert_true(ask(lsl, FIXTURE_DS));
	g_assert_cmphex(g.s.gpr[X86_RCX], ==, 0xffffffff);
	g_assert_true(ask(lsl, FIXTURE_TSS));
	g_assert_cmphex(g.s.gpr[X86_RCX], ==, 0x67);
	g_assert_false(ask(lar, 0));
	g_assert_cmphex(g.s.gpr[X86_RCX], ==, 0x5555);
	g_assert_false(ask(lar, 0xfff0));
	g_assert_false(ask(lsl, FIXTURE_DS | 3));
	g_assert_true(ask(verr, FIXTURE_CS));
	g_assert_true(ask(verr, FIXTURE_DS));
	g_assert_false(ask(verr, FIXTURE_TSS));
	g_assert_false(ask(verw, FIXTURE_CS));
	g_assert_true(ask(verw, FIXTURE_DS));
	teardown();
}

/* --- waiting --- */

static void test_hlt(void)
{
	setup();
	CODE(&g, FIXTURE_CODE, "\xf3\x90\xf4\x90\xf4");		/* pause; hlt; nop; hlt */
	g_assert_cmpint(kernel_outcome(), ==, PASSED);
	g_assert_cmphex(g.s.rip, ==, FIXTURE_CODE + 3);
	g_assert_cmpuint(g.f->nr_exits[COUNTER_exits_hlt], ==, 1);
	g_assert_cmpuint(g.c->stat[STAT_pauses], ==, 1);
	g_assert_cmpint(guest_resume(&g), ==, RUN_HLT);
	g_assert_cmphex(g.s.rip, ==, FIXTURE_CODE + 5);
	g_assert_cmpuint(g.c->insns, ==, 4);
	teardown();
}

/* MONITOR and MWAIT are #UD unless CPUID shows them; then MWAIT comes back at once. */
static void test_mwait(void)
{
	setup();
	CODE(&g, FIXTURE_CODE, "\x0f\x01\xc8\x0f\x01\xc9\xf4");
	g.s.gpr[X86_RAX] = GUEST_FREE;
	g.s.gpr[X86_RCX] = 0;
	g_assert_cmpint(kernel_outcome(), ==, VEC_UD);
	((struct cpuid_entry *)cpuid_find(&g.f->cpu[0].cpuid, 1, 0))->ecx |= BIT(3);
	g_assert_cmpint(kernel_outcome(), ==, PASSED);
	g_assert_cmphex(g.c->monitor, ==, GUEST_FREE);
	g.s.gpr[X86_RCX] = 2;
	g_assert_cmpint(kernel_outcome(), ==, VEC_GP);
	teardown();
}

/* --- snapshots: a vCPU goes on elsewhere as if nothing had been --- */

static void test_snapshot(void)
{
	GByteArray *cpu = g_byte_array_new(), *pages = g_byte_array_new();
	struct x86_state there;
	struct guest copy;
	u64 time, a, b;

	setup();
	INSN("\x48\x0f\xc7\xf0\x0f\x31");			/* rdrand rax; rdtsc */
	g.s.rflags = FIXED | IF;
	g.s.gpr[X86_R15] = 0x1234;
	g.s.tsc_aux = 7;
	g_assert_cmpint(kernel_outcome(), ==, PASSED);
	g.f->vm.engine->inject_nmi(&g.f->cpu[0]);
	time = soft_units(g.c);
	g_assert_cmpint(g.f->vm.engine->save(&g.f->cpu[0], cpu), ==, 0);
	g_assert_cmpint(g.f->vm.engine->vm_save(&g.f->vm, pages), ==, 0);

	guest_init(&copy);
	g_assert_cmpint(copy.f->vm.engine->restore(&copy.f->cpu[0], cpu->data, cpu->len - 1), ==, -EINVAL);
	g_assert_cmpint(copy.f->vm.engine->restore(&copy.f->cpu[0], cpu->data, cpu->len), ==, 0);
	g_assert_cmpint(copy.f->vm.engine->vm_restore(&copy.f->vm, pages->data, pages->len), ==, 0);
	g_assert_cmpint(copy.f->vm.engine->vm_restore(&copy.f->vm, pages->data, pages->len - 1), ==, -EINVAL);
	soft_fixture_get(copy.f, 0, &there);
	g_assert_cmpmem(&there, sizeof(there), &g.s, sizeof(g.s));
	g_assert_cmpuint(soft_units(copy.c), ==, time);
	g_assert_true(copy.c->nmi_pending);
	a = rng_next(&g.c->rng);
	b = rng_next(&copy.c->rng);
	g_assert_cmphex(a, ==, b);
	g_assert_cmpmem(g.c->stat, sizeof(g.c->stat), copy.c->stat, sizeof(copy.c->stat));
	/* Pages that had a second-level mapping have it again: no violation for them. */
	copy.c->rip = FIXTURE_CODE;
	guest_code(&copy, FIXTURE_CODE, "\x90\xf4", 2);
	copy.c->nmi_pending = false;
	g_assert_cmpint(guest_resume(&copy), ==, RUN_HLT);
	g_assert_cmpuint(copy.f->nr_ept, ==, 0);
	guest_free(&copy);
	teardown();
	g_byte_array_unref(cpu);
	g_byte_array_unref(pages);
}

/* Statistics: names once each, sums right, hits and misses add up. */
static void test_stats(void)
{
	GArray *stats = g_array_new(FALSE, FALSE, sizeof(struct engine_stat));
	GHashTable *seen = g_hash_table_new(g_str_hash, g_str_equal);
	u64 hits = 0, misses = 0, accesses = 0;
	u32 i;

	setup();
	CODE(&g, FIXTURE_CODE, "\x48\x8b\x03\x48\x8b\x03\x48\x89\x03\xf4");
	g.s.gpr[X86_RBX] = GUEST_FREE;
	g_assert_cmpint(kernel_outcome(), ==, PASSED);
	g_assert_cmpint(g.f->vm.engine->read_stats(&g.f->vm, stats), ==, 0);
	for (i = 0; i < stats->len; i++) {
		struct engine_stat *s = &g_array_index(stats, struct engine_stat, i);

		g_assert_true(g_hash_table_add(seen, s->name));
		g_assert_cmpuint(s->value, ==, s->per_vcpu[0]);
		if (!strcmp(s->name, "instructions"))
			g_assert_cmpuint(s->value, ==, 4);
		hits = strcmp(s->name, "tlb_l1d_hits") ? hits : s->value;
		misses = strcmp(s->name, "tlb_l1d_misses") ? misses : s->value;
		accesses = strcmp(s->name, "data_accesses") ? accesses : s->value;
		if (!strcmp(s->name, "cycles"))
			g_assert_cmpuint(s->value, >=, 4);
	}
	g_assert_cmpuint(accesses, ==, 3);
	g_assert_cmpuint(misses, >=, 1);
	g_assert_cmpuint(hits, ==, accesses - misses);
	for (i = 0; i < stats->len; i++)
		g_free(g_array_index(stats, struct engine_stat, i).per_vcpu);
	g_hash_table_unref(seen);
	g_array_unref(stats);
	teardown();
}

int main(int argc, char **argv)
{
	static const struct system_test test[] = {
		{ "privileged", test_privileged }, { "flags", test_flags },
		{ "smap-flags", test_smap_flags }, { "syscall", test_syscall },
		{ "sysenter", test_sysenter }, { "gs-base", test_gs_base },
		{ "ports", test_ports }, { "port-permission", test_port_permission },
		{ "port-strings", test_port_strings }, { "tables", test_tables },
		{ "task-register", test_task_register }, { "segment-loads", test_segment_loads },
		{ "ask", test_ask }, { "hlt", test_hlt }, { "mwait", test_mwait },
		{ "snapshot", test_snapshot }, { "stats", test_stats },
	};

	return run_tests(argc, argv, "system", test, ARRAY_SIZE(test));
}
