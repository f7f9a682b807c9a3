// SPDX-License-Identifier: GPL-2.0-only
/*
 * System instructions: who may, what is refused and how, what they leave behind.
 * Expectations are written from the SDM's page of each instruction.
 */
#include <errno.h>

#include "soft-guest.h"
#include "x86/msr.h"

#define IF	X86_EFLAGS_IF
#define FIXED	X86_EFLAGS_FIXED
#define PASSED	(-1)	/* guest_outcome(): no handler ran */

static struct guest g;

static void setup(void)
{
	guest_init(&g);
}

static void teardown(void)
{
	guest_free(&g);
}

/* Put an instruction and a HLT behind it at FIXTURE_CODE, and for CPL 3 an #UD behind it at GUEST_USER. */
#define INSN(bytes) do {					\
	CODE(&g, FIXTURE_CODE, bytes "\xf4");			\
	CODE(&g, GUEST_USER, bytes "\x0f\x0b");			\
} while (0)

static int kernel_outcome(void)
{
	guest_kernel(&g, FIXTURE_CODE);
	return guest_outcome(&g);
}

/* At CPL 3 an instruction that passes comes to the #UD behind it. */
static int user_outcome(u64 flags)
{
	int vector;

	guest_user(&g);
	g.s.rflags = FIXED | flags;
	vector = guest_outcome(&g);
	return vector == VEC_UD && guest_frame(&g, 0) != GUEST_USER ? PASSED : vector;
}

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

/* --- MSRs --- */

static int wrmsr(u32 msr, u64 value)
{
	g.s.gpr[X86_RCX] = msr;
	g.s.gpr[X86_RAX] = (u32)value;
	g.s.gpr[X86_RDX] = value >> 32;
	guest_kernel(&g, FIXTURE_CODE);
	return guest_outcome(&g);
}

static int rdmsr(u32 msr, u64 *value)
{
	int vector;

	g.s.gpr[X86_RCX] = msr;
	guest_kernel(&g, FIXTURE_CODE + 0x20);
	vector = guest_outcome(&g);
	*value = g.s.gpr[X86_RDX] << 32 | (u32)g.s.gpr[X86_RAX];
	return vector;
}

static void msr_setup(void)
{
	setup();
	CODE(&g, FIXTURE_CODE, "\x0f\x30\xf4");
	CODE(&g, FIXTURE_CODE + 0x20, "\x0f\x32\xf4");
}

static void test_msr_values(void)
{
	static const struct {
		u32 msr;
		u64 good, bad;		/* bad = good: none */
	} msr[] = {
		{ MSR_LSTAR, 0xffff800000000000ull, 1ull << 47 },
		{ MSR_CSTAR, 0xffff800000000000ull, 1ull << 47 },
		{ MSR_STAR, ~0ull, ~0ull },
		{ MSR_SYSCALL_MASK, 0xffffffff, 1ull << 32 },
		{ MSR_FS_BASE, 0x00007fffffffffffull, 0x0000800000000000ull },
		{ MSR_GS_BASE, 0xffff800000000001ull, 0xffff000000000000ull },
		{ MSR_KERNEL_GS_BASE, 0x1234567, 0x8000000000000000ull },
		{ MSR_TSC_AUX, 0xffffffff, 1ull << 32 },
		{ MSR_IA32_SYSENTER_EIP, 0xffffffff81000000ull, 1ull << 47 },
		{ MSR_IA32_PAT, 0x0007010600070106ull, 0x0002010600070106ull },
		{ MSR_IA32_MTRR_DEF_TYPE, 0xc06, 0xc02 },
		{ MSR_IA32_MTRR_DEF_TYPE, 0x800, 0x1000 },
		{ MSR_IA32_MTRR_FIX64K_00000, 0x0606060606060606ull, 0x0606060606060602ull },
		{ MSR_IA32_MTRR_FIX4K_F8000, 0x0505050505050505ull, 0x0300000000000000ull },
		{ MSR_IA32_MTRR_PHYSBASE0, 0x80000006, 0x80000007 },
		{ MSR_IA32_MTRR_PHYSBASE0, 0, BIT_ULL(40) },
		{ MSR_IA32_MTRR_PHYSMASK7, 0xff80000800ull, 0xff80000400ull },
		{ MSR_IA32_MISC_ENABLE, MISC_ENABLE_FAST_STRING, BIT_ULL(63) },
		{ MSR_IA32_MCG_STATUS, 7, 8 },
		{ MSR_KVM_SYSTEM_TIME_NEW, 0, 0 },
	};
	u64 v;
	u32 i;

	msr_setup();
	for (i = 0; i < ARRAY_SIZE(msr); i++) {
		if (msr[i].msr == MSR_KVM_SYSTEM_TIME_NEW)
			continue;
		g_assert_cmpint(wrmsr(msr[i].msr, msr[i].good), ==, PASSED);
		if (msr[i].bad != msr[i].good)
			g_assert_cmpint(wrmsr(msr[i].msr, msr[i].bad), ==, VEC_GP);
		g_assert_cmpint(rdmsr(msr[i].msr, &v), ==, PASSED);
		g_assert_cmphex(v, ==, msr[i].good);
	}
	teardown();
}

static void test_msr_absent(void)
{
	static const u32 absent[] = {
		0x5, MSR_IA32_SPEC_CTRL, MSR_IA32_PRED_CMD, MSR_IA32_MPERF, MSR_IA32_XSS, MSR_IA32_MC0_CTL, 0xc0000104,
		MSR_KVM_STEAL_TIME, MSR_KVM_SYSTEM_TIME_NEW, 0x40000000, MSR_AMD_HWCR, 0xffffffff,
	};
	static const u32 read_only[] = { MSR_IA32_MTRRCAP, MSR_IA32_MCG_CAP, MSR_PLATFORM_INFO, MSR_IA32_ARCH_CAPABILITIES };
	u64 v;
	u32 i;

	msr_setup();
	for (i = 0; i < ARRAY_SIZE(absent); i++) {
		g_assert_cmpint(rdmsr(absent[i], &v), ==, VEC_GP);
		g_assert_cmphex(guest_frame(&g, 1), ==, FIXTURE_CODE + 0x20);
		g_assert_cmpint(wrmsr(absent[i], 0), ==, VEC_GP);
	}
	for (i = 0; i < ARRAY_SIZE(read_only); i++) {
		g_assert_cmpint(rdmsr(read_only[i], &v), ==, PASSED);
		g_assert_cmpint(wrmsr(read_only[i], v), ==, VEC_GP);
	}
	g_assert_cmpint(rdmsr(MSR_IA32_ARCH_CAPABILITIES, &v), ==, PASSED);
	g_assert_cmphex(v, ==, g.f->cpu[0].cpuid.arch_capabilities);
	teardown();
}

static void test_efer(void)
{
	u64 efer;

	msr_setup();
	efer = g.s.efer;
	g_assert_cmpint(wrmsr(MSR_EFER, efer | BIT(1)), ==, VEC_GP);
	g_assert_cmpint(wrmsr(MSR_EFER, efer & ~X86_EFER_LME), ==, VEC_GP);	/* under paging */
	/* LMA is not the guest's to write. */
	g_assert_cmpint(wrmsr(MSR_EFER, efer & ~(X86_EFER_LMA | X86_EFER_NXE)), ==, PASSED);
	g_assert_cmphex(g.s.efer, ==, efer & ~X86_EFER_NXE);
	teardown();
}

/* The local APIC's go up, counted; a refusal there is #GP here. */
static void test_msr_apic(void)
{
	u64 v;

	msr_setup();
	g.f->msr_value = 0x0123456789abcdefull;
	g_assert_cmpint(rdmsr(0x802, &v), ==, PASSED);
	g_assert_cmphex(v, ==, 0x0123456789abcdefull);
	g_assert_cmpint(wrmsr(0x830, 0x00000005000000fdull), ==, PASSED);
	g_assert_cmphex(g.f->msr, ==, 0x830);
	g_assert_true(g.f->msr_write);
	g_assert_cmphex(g.f->msr_data, ==, 0x00000005000000fdull);
	g_assert_cmpuint(g.f->nr_exits[COUNTER_vm_exits], ==, 2);
	g.f->msr_gp = true;
	g_assert_cmpint(wrmsr(MSR_IA32_APIC_BASE, 0), ==, VEC_GP);
	teardown();
}

/* A TSC deadline goes up as the guest's TSC, and each move of that TSC with it. */
static void test_tsc(void)
{
	u64 v, before, turns;

	msr_setup();
	g_assert_cmpint(wrmsr(MSR_IA32_TSC_ADJUST, 1000000), ==, PASSED);
	g_assert_cmpuint(g.f->nr_tsc_moves, ==, 1);
	g_assert_cmpint(g.f->tsc_offset, ==, 1000000);
	before = soft_tsc(g.c);
	g_assert_cmpint(rdmsr(MSR_IA32_TSC, &v), ==, PASSED);
	g_assert_cmpuint(v, >=, before);
	g_assert_cmpuint(v, >=, 1000000);
	g_assert_cmpuint(v - before, <, 10000);
	g_assert_cmpint(wrmsr(MSR_IA32_TSC_DEADLINE, 5000000), ==, PASSED);
	g_assert_cmpuint(g.f->msr_data, ==, 5000000);
	g.f->msr_value = 5000000;
	g_assert_cmpint(rdmsr(MSR_IA32_TSC_DEADLINE, &v), ==, PASSED);
	g_assert_cmpuint(v, ==, 5000000);
	g_assert_cmpint(wrmsr(MSR_IA32_TSC_DEADLINE, 0), ==, PASSED);
	g_assert_cmpuint(g.f->msr_data, ==, 0);
	/* A write of the TSC moves TSC_ADJUST by as much, and may make a deadline due: the engine asks. */
	turns = g.f->nr_turn;
	g_assert_cmpint(wrmsr(MSR_IA32_TSC, 0), ==, PASSED);
	g_assert_cmpuint(g.f->nr_turn, >, turns);
	g_assert_cmpuint(g.f->nr_tsc_moves, ==, 2);
	g_assert_cmphex((u64)g.f->tsc_offset, ==, (u64)g.c->tsc_offset);
	g_assert_cmpint(rdmsr(MSR_IA32_TSC_ADJUST, &v), ==, PASSED);
	g_assert_cmphex(v, ==, (u64)g.c->tsc_offset);
	g_assert_cmpuint(soft_tsc(g.c), <, 100000);
	teardown();
}

static void test_rdtsc(void)
{
	u64 first, tsc;

	setup();
	CODE(&g, FIXTURE_CODE, "\x0f\x31\xf4");
	CODE(&g, GUEST_USER, "\x0f\x31\x0f\x0b");
	CODE(&g, FIXTURE_CODE + 0x20, "\x0f\x01\xf9\xf4");	/* rdtscp */
	g_assert_cmpint(kernel_outcome(), ==, PASSED);
	first = g.s.gpr[X86_RDX] << 32 | g.s.gpr[X86_RAX];
	g.s.tsc_aux = 0x77;
	guest_kernel(&g, FIXTURE_CODE + 0x20);
	g_assert_cmpint(guest_outcome(&g), ==, PASSED);
	tsc = g.s.gpr[X86_RDX] << 32 | g.s.gpr[X86_RAX];
	g_assert_cmpuint(tsc, >, first);
	g_assert_cmphex(g.s.gpr[X86_RCX], ==, 0x77);
	g_assert_cmpint(user_outcome(0), ==, PASSED);
	g.s.cr4 |= X86_CR4_TSD;
	g_assert_cmpint(user_outcome(0), ==, VEC_GP);
	g_assert_cmpint(kernel_outcome(), ==, PASSED);
	teardown();
}

/* ns <-> units: never early, and monotonic; over a wide range and odd clocks. */
static void test_clock(void)
{
	static const u64 hz[] = { 100000000, 999999937, 1000000000, 2500000000, 2693524000, 3333333333, 10000000000 };
	u32 i, j;

	for (i = 0; i < ARRAY_SIZE(hz); i++) {
		struct soft_vm svm = { .hz = hz[i] };
		u64 ns = 1, last = 0;

		soft_clock_init(&svm);
		for (j = 0; j < 2000; j++) {
			u64 units = soft_units_of(&svm, ns);
			double exact = (double)ns * (double)hz[i] * 256e-9;

			if (units == SOFT_UNITS_MAX)
				break;
			g_assert_cmpuint(soft_ns(&svm, units), >=, ns);
			g_assert_true(units == 0 || soft_ns(&svm, units - 1) < ns);
			g_assert_cmpuint(units, >=, last);
			g_assert_cmpfloat((double)units, >=, exact * (1 - 1e-12));
			g_assert_cmpfloat((double)units, <=, exact * (1 + 1e-12) + 2);
			last = units;
			ns += ns / 64 + 1;
		}
		g_assert_cmpuint(j, >, 1000);
		g_assert_cmpuint(soft_units_of(&svm, CLOCK_NEVER), ==, SOFT_UNITS_MAX);
	}
}

/* --- the paravirtual clock --- */

static void test_kvmclock(void)
{
	struct cpuid_params params = { .model = "faultbed-v1", .vendor = VENDOR_INTEL, .kvmclock = true };
	u32 version, mul, *wall;
	char *err = NULL;
	u64 tsc, stamp, ns;
	s32 shift;
	u8 *t;

	msr_setup();
	params.tsc_hz = g.f->vm.tsc_hz;
	g_assert_cmpint(cpuid_build(&g.f->cpu[0].cpuid, &g.f->vm.topo, 0, &params, &err), ==, 0);
	g_assert_cmpint(wrmsr(MSR_IA32_TSC_ADJUST, 123456), ==, PASSED);
	g_assert_cmpint(wrmsr(MSR_KVM_SYSTEM_TIME_NEW, GUEST_FREE | 1), ==, PASSED);
	t = soft_fixture_ram(g.f, GUEST_FREE, 32);
	memcpy(&version, t, 4);
	memcpy(&stamp, t + 8, 8);
	memcpy(&ns, t + 16, 8);
	memcpy(&mul, t + 24, 4);
	shift = (int8_t)t[28];
	g_assert_cmpuint(version, ==, 2);
	g_assert_cmpuint(t[29], ==, 1);
	/* What the guest computes for a second from now is what our clock says. */
	tsc = soft_tsc(g.c) + g.f->vm.tsc_hz - stamp;
	tsc = shift < 0 ? tsc >> -shift : tsc << shift;
	ns += (u64)((unsigned __int128)tsc * mul >> 32);
	g_assert_cmpuint(ns, <=, soft_ns(g.c->svm, soft_units(g.c)) + NSEC_PER_SEC + 1);
	g_assert_cmpuint(ns + 5, >=, soft_ns(g.c->svm, soft_units(g.c)) + NSEC_PER_SEC);
	g_assert_cmpint(wrmsr(MSR_KVM_WALL_CLOCK_NEW, GUEST_FREE + 0x100), ==, PASSED);
	wall = soft_fixture_ram(g.f, GUEST_FREE + 0x100, 12);
	g_assert_cmpuint(wall[1], ==, 1704067200);
	/* Outside of RAM: nothing happens. */
	g_assert_cmpint(wrmsr(MSR_KVM_SYSTEM_TIME_NEW, 0x7ffffffff001ull), ==, PASSED);
	g_assert_cmpint(wrmsr(MSR_KVM_STEAL_TIME, GUEST_FREE | 1), ==, VEC_GP);
	teardown();
}

/* --- CPUID, RDRAND --- */

static void cpuid(u32 leaf, u32 subleaf)
{
	g.s.gpr[X86_RAX] = 0xffffffff00000000ull | leaf;
	g.s.gpr[X86_RCX] = 0xffffffff00000000ull | subleaf;
	g_assert_cmpint(kernel_outcome(), ==, PASSED);
}

static void test_cpuid(void)
{
	const struct cpuid_table *t;
	u32 i, max;

	setup();
	INSN("\x0f\xa2");
	t = &g.f->cpu[0].cpuid;
	for (i = 0; i < t->nr; i++) {
		cpuid(t->entry[i].leaf, t->entry[i].subleaf);
		g_assert_cmphex(g.s.gpr[X86_RAX], ==, t->entry[i].eax);
		g_assert_cmphex(g.s.gpr[X86_RBX], ==, t->entry[i].ebx);
		g_assert_cmphex(g.s.gpr[X86_RCX], ==, t->entry[i].ecx);
		g_assert_cmphex(g.s.gpr[X86_RDX], ==, t->entry[i].edx);
	}
	cpuid(0, 0);
	max = (u32)g.s.gpr[X86_RAX];
	g_assert_cmphex(max, ==, 0x1f);
	/* Beyond the last: as the last basic leaf. A hole: zeroes. */
	cpuid(0x8000ffff, 0);
	g_assert_cmphex(g.s.gpr[X86_RBX], ==, cpuid_find(t, max, 0)->ebx);
	cpuid(3, 0);
	g_assert_cmphex(g.s.gpr[X86_RAX] | g.s.gpr[X86_RBX] | g.s.gpr[X86_RCX] | g.s.gpr[X86_RDX], ==, 0);
	/* No further level: its number, and the x2APIC id. */
	cpuid(0xb, 7);
	g_assert_cmphex(g.s.gpr[X86_RAX] | g.s.gpr[X86_RBX], ==, 0);
	g_assert_cmphex(g.s.gpr[X86_RCX], ==, 7);
	g_assert_cmphex(g.s.gpr[X86_RDX], ==, g.f->cpu[0].apic_id);
	/* The local APIC is switched off in IA32_APIC_BASE. */
	CODE(&g, FIXTURE_CODE + 0x40, "\x0f\x30\xb8\x01\x00\x00\x00\x0f\xa2\xf4");
	g.s.gpr[X86_RCX] = MSR_IA32_APIC_BASE;
	g.s.gpr[X86_RAX] = 0xfee00000;
	g.s.gpr[X86_RDX] = 0;
	guest_kernel(&g, FIXTURE_CODE + 0x40);
	g_assert_cmpint(guest_outcome(&g), ==, PASSED);
	g_assert_cmphex(g.s.gpr[X86_RDX] & BIT(9), ==, 0);
	teardown();
}

static u64 rdrand(void)
{
	g_assert_cmpint(kernel_outcome(), ==, PASSED);
	g_assert_cmphex(g.s.rflags, ==, FIXED | X86_EFLAGS_CF);
	return g.s.gpr[X86_RAX];
}

static void test_rdrand(void)
{
	u64 a, b;

	setup();
	INSN("\x48\x0f\xc7\xf0");
	g.f->vm.engine->reseed(&g.f->vm, 5);
	a = rdrand();
	b = rdrand();
	g_assert_cmphex(a, !=, b);
	g.f->vm.engine->reseed(&g.f->vm, 6);
	g_assert_cmphex(rdrand(), !=, a);
	g.f->vm.engine->reseed(&g.f->vm, 5);
	g_assert_cmphex(rdrand(), ==, a);
	g_assert_cmphex(rdrand(), ==, b);
	CODE(&g, FIXTURE_CODE + 0x20, "\x0f\xc7\xf8\xf4");	/* rdseed: CPUID does not show it */
	guest_kernel(&g, FIXTURE_CODE + 0x20);
	g_assert_cmpint(guest_outcome(&g), ==, VEC_UD);
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
	static const struct {
		const char *name;
		void (*run)(void);
	} test[] = {
		{ "privileged", test_privileged }, { "cr0", test_cr0 }, { "cr3", test_cr3 }, { "cr4", test_cr4 },
		{ "cr2-cr8", test_cr2_cr8 }, { "mode-switch", test_mode_switch }, { "msw", test_msw },
		{ "debug-registers", test_debug_registers }, { "invpcid", test_invpcid }, { "invlpg", test_invlpg },
		{ "msr-values", test_msr_values }, { "msr-absent", test_msr_absent }, { "efer", test_efer },
		{ "msr-apic", test_msr_apic }, { "tsc", test_tsc }, { "rdtsc", test_rdtsc }, { "clock", test_clock },
		{ "kvmclock", test_kvmclock }, { "cpuid", test_cpuid }, { "rdrand", test_rdrand },
		{ "flags", test_flags }, { "smap-flags", test_smap_flags }, { "syscall", test_syscall },
		{ "sysenter", test_sysenter }, { "gs-base", test_gs_base }, { "ports", test_ports },
		{ "port-permission", test_port_permission }, { "port-strings", test_port_strings },
		{ "tables", test_tables }, { "task-register", test_task_register },
		{ "segment-loads", test_segment_loads }, { "ask", test_ask }, { "hlt", test_hlt }, { "mwait", test_mwait },
		{ "snapshot", test_snapshot }, { "stats", test_stats },
	};
	u32 i;

	g_test_init(&argc, &argv, NULL);
	for (i = 0; i < ARRAY_SIZE(test); i++) {
		char *path = g_strdup_printf("/soft/system/%s", test[i].name);

		g_test_add_func(path, test[i].run);
		g_free(path);
	}
	return g_test_run();
}
