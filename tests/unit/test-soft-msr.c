// SPDX-License-Identifier: GPL-2.0-only
/*
 * MSRs, the TSC and the clocks behind it, CPUID, RDRAND.
 * Expectations are written from the SDM's page of each instruction.
 */
#include "soft-system.h"
#include "x86/msr.h"

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

int main(int argc, char **argv)
{
	static const struct system_test test[] = {
		{ "msr-values", test_msr_values }, { "msr-absent", test_msr_absent },
		{ "efer", test_efer }, { "msr-apic", test_msr_apic }, { "tsc", test_tsc },
		{ "rdtsc", test_rdtsc }, { "clock", test_clock }, { "kvmclock", test_kvmclock },
		{ "cpuid", test_cpuid }, { "rdrand", test_rdrand },
	};

	return run_tests(argc, argv, "msr", test, ARRAY_SIZE(test));
}
