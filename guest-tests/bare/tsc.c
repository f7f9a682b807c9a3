// SPDX-License-Identifier: GPL-2.0-only
/*
 * Clocks: the TSC never goes backwards on a CPU nor, with an invariant TSC, between
 * CPUs; IA32_TSC and TSC_ADJUST move together; PM timer and PIT run at their rates
 * beside it; RDTSC at CPL 3; kvmclock where it is shown.
 */
#include "bare64.h"

#define PM_TIMER	0x608
#define PM_HZ		3579545ul
#define PIT_HZ		1193182ul

static void order(void)
{
	u64 before = rdtsc(), now;
	u32 back = 0, equal = 0;

	for (u32 i = 0; i < 10000; i++) {
		now = rdtsc();
		back += now < before;
		equal += now == before;
		before = now;
	}
	is(back, 0, "RDTSC never goes backwards");
	ok(equal < 10000, "RDTSC advances");
	now = rdmsr(MSR_TSC);
	back = now < before || now > rdtsc();
	if (back)
		say("# RDTSC 0x%lx, IA32_TSC 0x%lx, RDTSC 0x%lx\n", before, now, rdtsc());
	ok(!back, "IA32_TSC is what RDTSC reads");
	if (HAS_RDTSCP) {
		u32 lo, hi, aux;

		wrmsr(MSR_TSC_AUX, 0x1234);
		asm volatile("rdtscp" : "=a"(lo), "=d"(hi), "=c"(aux));
		is(aux, 0x1234, "RDTSCP gives TSC_AUX");
		ok(((u64)hi << 32 | lo) >= now, "RDTSCP is the same clock");
	} else {
		skip("RDTSCP gives TSC_AUX", "not shown by CPUID");
		skip("RDTSCP is the same clock", "not shown by CPUID");
	}
}

static u64 user_tsc __user_data;
__user_code static void user_rdtsc(void)
{
	asm volatile("rdtsc; shlq $32, %%rdx; orq %%rdx, %%rax; movq %%rax, %0" : "=m"(user_tsc) : : "rax", "rdx");
}

static void user(void)
{
	u64 before = rdtsc();

	user_run(user_rdtsc, 0);
	trapped(USER_DONE, 0, "RDTSC in ring 3");
	ok(user_tsc >= before && user_tsc <= rdtsc(), "and it is the same clock");
	write_cr4(BARE_CR4 | CR4_TSD);
	user_run(user_rdtsc, 0);
	trapped(13, 0, "#GP(0): RDTSC in ring 3 with CR4.TSD");
	TRY("rdtsc", : : : "rax", "rdx");
	trapped(NO_TRAP, 0, "RDTSC in ring 0 with CR4.TSD");
	write_cr4(BARE_CR4);
}

static void adjust(void)
{
	const u64 step = 1ul << 40;
	u64 before, a;

	if (!HAS_TSC_ADJUST) {
		skip("TSC_ADJUST", "not shown by CPUID");
		return;
	}
	a = rdmsr(MSR_TSC_ADJUST);
	before = rdtsc();
	wrmsr(MSR_TSC_ADJUST, a + step);
	ok(rdtsc() - before >= step && rdtsc() - before < 2 * step, "TSC_ADJUST moves the TSC by what it is raised");
	is(rdmsr(MSR_TSC_ADJUST), a + step, "TSC_ADJUST reads as written");
	before = rdtsc();
	wrmsr(MSR_TSC_ADJUST, a);
	ok(before - rdtsc() < step && (s64)(before - rdtsc()) > 0, "and back");
	before = rdtsc();
	wrmsr(MSR_TSC, before + step);
	if (rdmsr(MSR_TSC_ADJUST) - a > step)
		say("# TSC_ADJUST 0x%lx before, 0x%lx after\n", a, rdmsr(MSR_TSC_ADJUST));
	ok(rdmsr(MSR_TSC_ADJUST) - a > step - (step >> 4) && rdmsr(MSR_TSC_ADJUST) - a <= step, "a write of IA32_TSC moves TSC_ADJUST by as much");
	wrmsr(MSR_TSC_ADJUST, a);
	ok(rdtsc() - before < step, "and TSC_ADJUST takes it back");
}

/* --- rates --- */

/* TSC ticks while a counter advances. */
static u64 pm_ticks(u32 count)
{
	u32 start = inl(PM_TIMER) & 0xffffff, now = start;
	u64 t0, t1;

	while (now == start)
		now = inl(PM_TIMER) & 0xffffff;
	start = now;
	t0 = rdtsc();
	do
		now = inl(PM_TIMER) & 0xffffff;
	while (((now - start) & 0xffffff) < count);
	t1 = rdtsc();
	/* As many ticks as really went by. */
	return (t1 - t0) * count / ((now - start) & 0xffffff);
}

static u32 pit_count(void)
{
	u8 lo;

	outb(0x43, 0x80);	/* latch channel 2 */
	lo = inb(0x42);
	return (u32)inb(0x42) << 8 | lo;
}

static u64 pit_ticks(u32 count)
{
	u32 start, now;
	u64 t0, t1;

	outb(0x61, (u8)((inb(0x61) & ~2) | 1));	/* gate on, speaker off */
	outb(0x43, 0xb0);			/* channel 2, both bytes, mode 0, binary */
	outb(0x42, 0xff);
	outb(0x42, 0xff);
	start = pit_count();
	t0 = rdtsc();
	do
		now = pit_count();
	while (((start - now) & 0xffff) < count);
	t1 = rdtsc();
	return (t1 - t0) * count / ((start - now) & 0xffff);
}

static bool near(u64 a, u64 b, u32 percent)
{
	u64 d = a > b ? a - b : b - a;

	return d * 100 <= (a > b ? a : b) * percent;
}

static u64 tsc_hz;

static void rates(void)
{
	u64 by_pm, by_pm2, by_pit;
	u32 r[4];

	if (inl(PM_TIMER) == 0xffffffff) {
		skip("PM timer", "there is none at port 0x608");
		return;
	}
	by_pm = pm_ticks(36000) * PM_HZ / 36000;
	by_pm2 = pm_ticks(36000) * PM_HZ / 36000;
	ok(near(by_pm, by_pm2, 10), "TSC by the PM timer twice: the same rate");
	tsc_hz = by_pm;
	by_pit = pit_ticks(12000) * PIT_HZ / 12000;
	ok(near(by_pm, by_pit, 10), "TSC by PM timer and by PIT: the same rate");
	say("# TSC %lu kHz by PM timer, %lu kHz by PIT\n", by_pm / 1000, by_pit / 1000);
	/* Channel 2's output ends a one-shot count: bit 5 of port 0x61. */
	outb(0x43, 0xb0);
	outb(0x42, 0);
	outb(0x42, 0xff);
	ok(!(inb(0x61) & 0x20), "PIT channel 2: its output is low while it counts");
	ok(wait_for(inb(0x61) & 0x20), "PIT channel 2: its output goes high at the end of the count");
	cpuid(0, 0, r);
	if (r[0] >= 0x15) {
		cpuid(0x15, 0, r);
		if (r[0] && r[1] && r[2])
			ok(near((u64)r[2] * r[1] / r[0], by_pm, 10), "CPUID leaf 0x15 tells that rate");
	}
}

/* --- between CPUs --- */

static volatile u64 passed;
static volatile u32 turn, backwards;
static void pass_on(void *arg)
{
	u32 me = (u32)(u64)arg, cpus = (u32)option_number("cpus", 1);

	for (u32 i = 0; i < 50; i++) {
		u64 now;

		while (turn % cpus != me)
			cpu_relax();
		now = rdtsc();
		if (now < passed)
			backwards++;
		passed = now;
		barrier();
		turn++;
	}
}

static void between(u32 cpus)
{
	if (cpus < 2) {
		skip("the TSC between CPUs", "cpus=1");
		return;
	}
	for (u32 cpu = 1; cpu < cpus; cpu++)
		smp_begin(cpu, pass_on, (void *)(u64)cpu);
	pass_on(NULL);
	for (u32 cpu = 1; cpu < cpus; cpu++)
		smp_wait(cpu);
	if (cpu_has(0x80000007, 3, 8))
		is(backwards, 0, "the TSC between CPUs: no CPU reads less than another did before");
	else
		info("the TSC between CPUs", backwards ? "goes backwards; not invariant by CPUID" : "in order");
}

/* --- kvmclock (the kernel's Documentation/virt/kvm/x86/msr.rst) --- */

struct pvclock {
	u32 version, pad0;
	u64 tsc_timestamp, system_time;
	u32 mul;
	signed char shift;
	u8 flags, pad[2];
} __attribute__((packed));

static u64 pvclock_read(volatile struct pvclock *p)
{
	u64 ns;
	u32 version;

	do {
		u64 delta;

		version = p->version;
		barrier();
		delta = rdtsc() - p->tsc_timestamp;
		delta = p->shift >= 0 ? delta << p->shift : delta >> -p->shift;
		ns = p->system_time + (u64)((unsigned __int128)delta * p->mul >> 32);
		barrier();
	} while (version & 1 || version != p->version);
	return ns;
}

static void kvmclock(void)
{
	volatile struct pvclock *p;
	u32 r[4];
	u64 a, b;

	cpuid(0x40000000, 0, r);
	if (!cpu_has(1, 2, 31) || r[1] != 0x4b4d564b || (cpuid(0x40000001, 0, r), !(r[0] & 8))) {
		skip("kvmclock", "not shown by CPUID");
		return;
	}
	p = page_alloc();
	wrmsr(0x4b564d01, (u64)p | 1);
	ok(p->mul && !(p->version & 1), "kvmclock: the page is filled");
	a = pvclock_read(p);
	b = pvclock_read(p);
	ok(b >= a, "kvmclock does not go backwards");
	if (tsc_hz) {
		u64 t0 = rdtsc(), t1, hz;

		a = pvclock_read(p);
		pm_ticks(18000);
		b = pvclock_read(p);
		t1 = rdtsc();
		hz = (t1 - t0) * 1000000 / ((b - a) / 1000);
		ok(near(hz, tsc_hz, 10), "kvmclock and PM timer: the same rate");
	}
	wrmsr(0x4b564d01, 0);
}

void test_main(void)
{
	u32 cpus = smp_start();

	order();
	user();
	adjust();
	rates();
	between(cpus);
	kvmclock();
}
