// SPDX-License-Identifier: GPL-2.0-only
/*
 * Control and debug registers, INVLPG and INVPCID: what may be written, what each flushes.
 * Expectations are written from the SDM's page of each instruction.
 */
#include "soft-system.h"

/* --- control registers --- */

static int write_cr(u64 value)
{
	g.s.gpr[X86_RAX] = value;
	return kernel_outcome();
}

static void test_cr0(void)
{
	u64 cr0;

	setup();
	INSN("\x0f\x22\xc0");					/* mov cr0, rax */
	cr0 = g.s.cr0;
	g_assert_cmpint(write_cr(cr0 | BIT_ULL(32)), ==, VEC_GP);
	g_assert_cmpint(write_cr(cr0 & ~X86_CR0_PE), ==, VEC_GP);
	g_assert_cmpint(write_cr(cr0 | X86_CR0_NW), ==, VEC_GP);
	g_assert_cmpint(write_cr(cr0 & ~X86_CR0_PG), ==, VEC_GP);	/* from 64-bit mode */
	g_assert_cmphex(g.s.cr0, ==, cr0);
	g_assert_cmpuint(g.c->stat[STAT_flush_cr0], ==, 0);
	/* ET stays 1, bits that do not exist 0. */
	g_assert_cmpint(write_cr((cr0 | BIT(6) | X86_CR0_TS) & ~X86_CR0_ET), ==, PASSED);
	g_assert_cmphex(g.s.cr0, ==, cr0 | X86_CR0_TS);
	g_assert_cmpuint(g.c->fpu_trap, ==, VEC_NM);
	g_assert_cmpint(write_cr(cr0), ==, PASSED);
	g_assert_cmpuint(g.c->fpu_trap, ==, 0);
	teardown();
}

static void test_cr3(void)
{
	setup();
	INSN("\x0f\x22\xd8");
	g_assert_cmpint(write_cr(FIXTURE_PML4 | BIT_ULL(40)), ==, VEC_GP);	/* over MAXPHYADDR */
	g_assert_cmpint(write_cr(FIXTURE_PML4 | BIT_ULL(62)), ==, VEC_GP);
	g_assert_cmpint(write_cr(FIXTURE_PML4 | X86_CR3_NOFLUSH), ==, VEC_GP);	/* without PCIDE */
	g_assert_cmpuint(g.c->stat[STAT_cr3_writes], ==, 0);
	g_assert_cmpint(write_cr(FIXTURE_PML4), ==, PASSED);
	g_assert_cmpuint(g.c->stat[STAT_cr3_writes], ==, 1);
	g_assert_cmpuint(g.c->stat[STAT_flush_cr3], ==, 1);
	g.s.cr4 |= X86_CR4_PCIDE;
	g_assert_cmpint(write_cr(FIXTURE_PML4 | X86_CR3_NOFLUSH | 5), ==, PASSED);
	g_assert_cmphex(g.s.cr3, ==, FIXTURE_PML4 | 5);
	g_assert_cmpuint(g.c->stat[STAT_cr3_noflush], ==, 1);
	g_assert_cmpuint(g.c->stat[STAT_flush_cr3], ==, 1);
	teardown();
}

static void test_cr4(void)
{
	u64 cr4, flushes;

	setup();
	INSN("\x0f\x22\xe0");
	cr4 = g.s.cr4;
	g_assert_cmpint(write_cr(cr4 | X86_CR4_UMIP), ==, VEC_GP);	/* not shown by CPUID */
	g_assert_cmpint(write_cr(cr4 | X86_CR4_OSXSAVE), ==, VEC_GP);
	g_assert_cmpint(write_cr(cr4 | X86_CR4_LA57), ==, VEC_GP);
	g_assert_cmpint(write_cr(cr4 & ~X86_CR4_PAE), ==, VEC_GP);	/* in IA-32e mode */
	g.s.cr3 |= 1;
	g_assert_cmpint(write_cr(cr4 | X86_CR4_PCIDE), ==, VEC_GP);	/* with a PCID in CR3 */
	g.s.cr3 &= ~1ull;
	g_assert_cmphex(g.s.cr4, ==, cr4);
	flushes = g.c->stat[STAT_flush_cr4];
	/* 4.10.4.1: PCIDE on and SMEP off flush nothing; SMEP on, PGE either way, PCIDE off do. */
	g_assert_cmpint(write_cr(cr4 | X86_CR4_PCIDE), ==, PASSED);
	g_assert_cmpuint(g.c->stat[STAT_flush_cr4] - flushes, ==, 0);
	g_assert_cmpint(write_cr(cr4), ==, PASSED);
	g_assert_cmpuint(g.c->stat[STAT_flush_cr4] - flushes, ==, 1);
	g_assert_cmpint(write_cr(cr4 | X86_CR4_PGE), ==, PASSED);
	g_assert_cmpint(write_cr(cr4), ==, PASSED);
	g_assert_cmpuint(g.c->stat[STAT_flush_cr4] - flushes, ==, 3);
	g_assert_cmpint(write_cr(cr4 | X86_CR4_SMAP | X86_CR4_FSGSBASE), ==, PASSED);
	g_assert_cmpuint(g.c->stat[STAT_flush_cr4] - flushes, ==, 3);
	teardown();
}

static void test_cr2_cr8(void)
{
	setup();
	CODE(&g, FIXTURE_CODE, "\x0f\x22\xd0\x0f\x20\xd1\xf4");		/* mov cr2, rax; mov rcx, cr2 */
	g_assert_cmpint(write_cr(0xfedcba9876543210ull), ==, PASSED);
	g_assert_cmphex(g.s.gpr[X86_RCX], ==, 0xfedcba9876543210ull);
	guest_kernel(&g, FIXTURE_CODE + 0x20);
	CODE(&g, FIXTURE_CODE + 0x20, "\x44\x0f\x22\xc0\xf4");		/* mov cr8, rax */
	g.s.gpr[X86_RAX] = 16;
	g_assert_cmpint(guest_outcome(&g), ==, VEC_GP);
	g_assert_cmpuint(g.f->nr_cr8_writes, ==, 0);
	guest_kernel(&g, FIXTURE_CODE + 0x20);
	g.s.gpr[X86_RAX] = 9;
	g_assert_cmpint(guest_outcome(&g), ==, PASSED);
	g_assert_cmpuint(g.f->cr8, ==, 9);
	CODE(&g, FIXTURE_CODE + 0x40, "\x44\x0f\x20\xc0\xf4");		/* mov rax, cr8 */
	g.f->cr8 = 6;
	guest_kernel(&g, FIXTURE_CODE + 0x40);
	g_assert_cmpint(guest_outcome(&g), ==, PASSED);
	g_assert_cmphex(g.s.gpr[X86_RAX], ==, 6);
	teardown();
}

/* Real mode to 64-bit mode and back to paging off, as a start-up code goes. */
static void test_mode_switch(void)
{
	static const char code16[] =
		"\x66\xb8\x11\x00\x00\x00"	/* mov eax, 0x11 */
		"\x0f\x22\xc0"			/* mov cr0, eax: protected mode */
		"\x66\xea\x00\x00\x07\x00\x20\x00";	/* jmp 0x20:0x70000 */
	static const char code32[] =
		"\x0f\x20\xe0\x83\xc8\x20\x0f\x22\xe0"	/* cr4.pae = 1 */
		"\xb8\x00\x10\x00\x00\x0f\x22\xd8"	/* cr3 = FIXTURE_PML4 */
		"\xb9\x80\x00\x00\xc0\x0f\x32"		/* rdmsr EFER */
		"\x0d\x00\x01\x00\x00\x0f\x30"		/* lme = 1 */
		"\x0f\x20\xc0\x0d\x00\x00\x00\x80\x0f\x22\xc0"	/* cr0.pg = 1 */
		"\xea\x00\x01\x07\x00\x10\x00";		/* jmp 0x10:0x70100 */
	static const char code64[] = "\x48\xb8\xef\xcd\xab\x89\x67\x45\x23\x01\xf4";	/* mov rax, 0x0123456789abcdef */
	struct x86_table gdt;

	setup();
	gdt = g.s.gdt;
	x86_state_sipi(&g.s, 0x30, 0x50654);
	g.s.gdt = gdt;
	guest_code(&g, 0x30000, code16, sizeof(code16) - 1);
	guest_code(&g, 0x70000, code32, sizeof(code32) - 1);
	guest_code(&g, 0x70100, code64, sizeof(code64) - 1);
	g_assert_cmpint(guest_run(&g), ==, RUN_HLT);
	g_assert_cmphex(g.s.gpr[X86_RAX], ==, 0x0123456789abcdefull);
	g_assert_cmphex(g.s.efer, ==, X86_EFER_LME | X86_EFER_LMA);
	g_assert_cmphex(g.s.rip, ==, 0x7010b);
	g_assert_cmpuint(g.c->mode, ==, MODE_64);
	teardown();
}

/* LMSW sets PE and never clears it; SMSW and CLTS. */
static void test_msw(void)
{
	setup();
	CODE(&g, FIXTURE_CODE, "\x0f\x01\xf0\x0f\x01\xe1\x0f\x06\xf4");	/* lmsw ax; smsw ecx; clts */
	g.s.gpr[X86_RAX] = 0xfff8;
	g_assert_cmpint(kernel_outcome(), ==, PASSED);
	g_assert_cmphex(g.s.gpr[X86_RCX] & 0xf, ==, X86_CR0_PE | X86_CR0_TS);
	g_assert_cmphex(g.s.cr0 & 0xf, ==, X86_CR0_PE);
	teardown();
}

static void test_debug_registers(void)
{
	setup();
	INSN("\x0f\x23\xf0\x0f\x21\xf1");			/* mov dr6, rax; mov rcx, dr6 */
	g_assert_cmpint(write_cr(0), ==, PASSED);
	g_assert_cmphex(g.s.gpr[X86_RCX], ==, 0xffff0ff0);
	g_assert_cmpint(write_cr(0xffffffff), ==, PASSED);
	g_assert_cmphex(g.s.gpr[X86_RCX], ==, 0xffffefff);
	g_assert_cmpint(write_cr(BIT_ULL(32)), ==, VEC_GP);
	guest_kernel(&g, FIXTURE_CODE + 0x20);
	CODE(&g, FIXTURE_CODE + 0x20, "\x0f\x23\xe8\x0f\x21\xf9\xf4");	/* mov dr5, rax; mov rcx, dr7 */
	g.s.gpr[X86_RAX] = 0x401;
	g_assert_cmpint(guest_outcome(&g), ==, PASSED);
	g_assert_cmphex(g.s.gpr[X86_RCX], ==, 0x401);
	guest_kernel(&g, FIXTURE_CODE + 0x20);
	g.s.cr4 |= X86_CR4_DE;
	g_assert_cmpint(guest_outcome(&g), ==, VEC_UD);
	teardown();
}

/* --- flushes --- */

static int invpcid(u64 type, u64 pcid, u64 va)
{
	const u64 desc[] = { pcid, va };

	soft_fixture_load(g.f, GUEST_FREE, desc, sizeof(desc));
	g.s.gpr[X86_RAX] = type;
	g.s.gpr[X86_RBX] = GUEST_FREE;
	return kernel_outcome();
}

static void test_invpcid(void)
{
	setup();
	INSN("\x66\x0f\x38\x82\x03");				/* invpcid rax, [rbx] */
	g_assert_cmpint(invpcid(4, 0, 0), ==, VEC_GP);
	g_assert_cmpint(invpcid(0, 0x1000, 0), ==, VEC_GP);
	g_assert_cmpint(invpcid(0, 0, 1ull << 47), ==, VEC_GP);
	g_assert_cmpint(invpcid(0, 1, 0), ==, VEC_GP);		/* without PCIDE */
	g_assert_cmpint(invpcid(1, 1, 0), ==, VEC_GP);
	g.s.cr4 |= X86_CR4_PCIDE;
	g_assert_cmpint(invpcid(0, 1, 0x1000), ==, PASSED);
	g_assert_cmpint(invpcid(1, 1, 0), ==, PASSED);
	g_assert_cmpint(invpcid(2, 0, 0), ==, PASSED);
	g_assert_cmpint(invpcid(3, 0, 0), ==, PASSED);
	g_assert_cmpuint(g.c->stat[STAT_flush_invpcid_addr], ==, 1);
	g_assert_cmpuint(g.c->stat[STAT_flush_invpcid_single], ==, 1);
	g_assert_cmpuint(g.c->stat[STAT_flush_invpcid_all], ==, 1);
	g_assert_cmpuint(g.c->stat[STAT_flush_invpcid_all_nonglobal], ==, 1);
	teardown();
}

static void test_invlpg(void)
{
	setup();
	INSN("\x0f\x01\x3b");					/* invlpg [rbx] */
	g.s.gpr[X86_RBX] = GUEST_FREE;
	g_assert_cmpint(kernel_outcome(), ==, PASSED);
	g_assert_cmpuint(g.c->stat[STAT_flush_invlpg], ==, 1);
	g.s.gpr[X86_RBX] = 1ull << 47;				/* not canonical: nothing to do */
	g_assert_cmpint(kernel_outcome(), ==, PASSED);
	g_assert_cmpuint(g.c->stat[STAT_flush_invlpg], ==, 1);
	teardown();
}

int main(int argc, char **argv)
{
	static const struct system_test test[] = {
		{ "cr0", test_cr0 }, { "cr3", test_cr3 }, { "cr4", test_cr4 },
		{ "cr2-cr8", test_cr2_cr8 }, { "mode-switch", test_mode_switch },
		{ "msw", test_msw }, { "debug-registers", test_debug_registers },
		{ "invpcid", test_invpcid }, { "invlpg", test_invlpg },
	};

	return run_tests(argc, argv, "control", test, ARRAY_SIZE(test));
}
