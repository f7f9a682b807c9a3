// SPDX-License-Identifier: GPL-2.0-only
/*
 * Local APICs: how APs find themselves after SIPI, IPIs by every kind of destination,
 * priorities, EOI order, the timer in all modes, INIT; first in xAPIC mode, then, where
 * CPUID shows it, in x2APIC mode. SDM 3A chapter 10 (11 in newer editions).
 */
#include "bare64.h"

#define VEC_A	0x41	/* class 4 */
#define VEC_B	0x52
#define VEC_C	0x63
#define VEC_D	0x64	/* the same class as VEC_C */
#define VEC_T	0x70	/* timer */
#define MASKED	0x10000u

static volatile u32 got[BARE_CPUS][256];	/* interrupts taken, by CPU and vector */
static volatile u8 sequence[64];
static volatile u32 nr_sequence;
static u32 cpus;
static const char *mode;

static bool on_ipi(struct frame *f)
{
	u32 cpu = cpu_number();

	if (!cpu && nr_sequence < sizeof(sequence))
		sequence[nr_sequence++] = (u8)f->vec;
	got[cpu][f->vec]++;
	apic_write(APIC_EOI, 0);
	return true;
}

static bool on_nmi(struct frame *f)
{
	got[cpu_number()][2]++;
	return true;
}

static void clear(void)
{
	memset((void *)got, 0, sizeof(got));
	nr_sequence = 0;
}

static bool in_service(u8 vec) { return apic_bit(APIC_ISR, vec); }
static bool requested(u8 vec) { return apic_bit(APIC_IRR, vec); }

/* --- APs --- */

static volatile bool stop;
static volatile u32 listening;

/* Takes interrupts, in HLT, until told to stop by one. */
static void listen(void *arg)
{
	__atomic_add_fetch(&listening, 1, __ATOMIC_SEQ_CST);
	irq_on();
	while (!stop)
		asm volatile("hlt" : : : "memory");
	irq_off();
	__atomic_sub_fetch(&listening, 1, __ATOMIC_SEQ_CST);
}

static void all_listen(void)
{
	stop = false;
	for (u32 cpu = 1; cpu < cpus; cpu++)
		smp_begin(cpu, listen, NULL);
	wait_for(listening == cpus - 1);
	irq_on();
}

static void none_listen(void)
{
	/* Until then the boot CPU has used shorthands and destinations; by id none is left out. */
	stop = true;
	irq_off();
	for (u32 cpu = 1; cpu < cpus; cpu++) {
		for (u32 i = 0; i < 100 && listening; i++) {
			u64 end = rdtsc() + 100000000;

			apic_icr(smp_apic_id(cpu), ICR_ASSERT | VEC_A);
			while (listening && (s64)(rdtsc() - end) < 0)
				cpu_relax();
			break;
		}
	}
	for (u32 cpu = 1; cpu < cpus; cpu++)
		smp_wait(cpu);
	clear();
}

static void start_up(void)
{
	for (u32 cpu = 1; cpu < cpus; cpu++) {
		const struct ap_start *a = &ap_start[cpu];

		if (a->cs != BARE_TRAMPOLINE >> 4 || a->ip != 8 || a->cr0 & ~(u32)(CR0_CD | CR0_NW | CR0_ET) || a->eflags != 2) {
			say("# CPU %u: CS 0x%x IP 0x%x CR0 0x%x EFLAGS 0x%x EDX 0x%x\n", cpu, a->cs, a->ip, a->cr0, a->eflags, a->edx);
			ok(false, "SIPI: real mode at the vector's page");
			return;
		}
	}
	ok(true, "SIPI: real mode at the vector's page");
	{
		u32 r[4];
		bool good = true;

		cpuid(1, 0, r);
		for (u32 cpu = 1; cpu < cpus; cpu++)
			good &= ap_start[cpu].edx == r[0];
		if (!good)
			say("# EDX 0x%x, CPUID 0x%x\n", ap_start[1].edx, r[0]);
		ok(good, "INIT: EDX is CPUID leaf 1 EAX");
	}
	{
		bool good = true;

		for (u32 cpu = 0; cpu < cpus; cpu++) {
			for (u32 other = 0; other < cpu; other++)
				good &= smp_apic_id(cpu) != smp_apic_id(other);
		}
		ok(good, "APIC ids differ");
	}
	ok(rdmsr(MSR_APIC_BASE) & 0x100, "IA32_APIC_BASE: this is the boot CPU");
}

static u32 base_low;
static void read_base(void *arg)
{
	base_low = (u32)rdmsr(MSR_APIC_BASE);
}

static void registers(void)
{
	u32 version = apic_read(APIC_VERSION);

	ok((version & 0xff) >= 0x10 && (version & 0xff) <= 0x1f && (version >> 16 & 0xff) >= 3, "%s: version register", mode);
	is(apic_read(APIC_SVR) & 0x1ff, 0x1ff, "%s: spurious vector register reads as written", mode);
	apic_write(APIC_TPR, 0x73);
	is(apic_read(APIC_TPR), 0x73, "%s: TPR reads as written", mode);
	is(read_cr8(), 7, "%s: CR8 is TPR's upper half", mode);
	write_cr8(3);
	is(apic_read(APIC_TPR), 0x30, "%s: a write of CR8 clears TPR's lower half", mode);
	is(apic_read(APIC_PPR), 0x30, "%s: PPR is TPR when nothing is in service", mode);
	write_cr8(0);
	apic_write(APIC_ESR, 0);
	is(apic_read(APIC_ESR), 0, "%s: ESR is clear", mode);
	if (on_tcg()) {
		skip("ESR: an illegal vector, sent or received", "QEMU's APIC delivers it");
	} else {
		apic_icr(0, ICR_SELF | ICR_ASSERT | 5);
		apic_write(APIC_ESR, 0);
		ok(apic_read(APIC_ESR) & 0x60, "%s: ESR: an illegal vector, sent or received", mode);
		apic_write(APIC_ESR, 0);
	}
	if (cpus > 1) {
		smp_run(1, read_base, NULL);
		ok(!(base_low & 0x100), "%s: IA32_APIC_BASE: an AP is not the boot CPU", mode);
	}
}

/* --- priorities --- */

static volatile u32 nested_seen;
/* Sends a higher and a lower one from within: the higher comes at once, the lower after EOI. */
static bool on_nesting(struct frame *f)
{
	apic_icr(0, ICR_SELF | ICR_ASSERT | VEC_A);
	apic_icr(0, ICR_SELF | ICR_ASSERT | VEC_C);
	irq_on();
	for (u32 i = 0; i < 200; i++)
		cpu_relax();
	irq_off();
	nested_seen = (got[0][VEC_C] ? 1 : 0) | (got[0][VEC_A] ? 2 : 0) | (in_service(VEC_B) ? 4 : 0) |
		      (requested(VEC_A) ? 8 : 0);
	if (nr_sequence < sizeof(sequence))
		sequence[nr_sequence++] = (u8)f->vec;
	apic_write(APIC_EOI, 0);
	return true;
}

static void let_in(void)
{
	irq_on();
	for (u32 i = 0; i < 100; i++)
		cpu_relax();
	irq_off();
}

static void self_ipi(u8 vec)
{
	apic_icr(0, ICR_SELF | ICR_ASSERT | vec);
	wait_for(requested(vec) || got[0][vec]);
}

static void priorities(void)
{
	clear();
	self_ipi(VEC_A);
	ok(requested(VEC_A) && !got[0][VEC_A], "%s: self IPI: in IRR while IF = 0", mode);
	let_in();
	ok(got[0][VEC_A] == 1 && !requested(VEC_A) && !in_service(VEC_A), "%s: self IPI: taken, EOI has cleared it", mode);

	clear();
	self_ipi(VEC_A);
	self_ipi(VEC_C);
	self_ipi(VEC_B);
	self_ipi(VEC_D);
	let_in();
	ok(nr_sequence == 4 && sequence[0] == VEC_D && sequence[1] == VEC_C && sequence[2] == VEC_B && sequence[3] == VEC_A,
	   "%s: four at once: the highest vector first", mode);
	clear();
	for (u32 i = 0; i < 3; i++)
		self_ipi(VEC_A);
	/* The last one may still be on its way, with nothing to tell when it has come. */
	for (u32 i = 0; i < 20000; i++)
		cpu_relax();
	let_in();
	is(got[0][VEC_A], 1, "%s: the same vector three times before it is taken: once", mode);

	clear();
	write_cr8(5);
	self_ipi(VEC_B);
	self_ipi(VEC_C);
	let_in();
	ok(!got[0][VEC_B] && got[0][VEC_C] == 1, "%s: CR8 = 5 holds class 5 back and lets class 6 in", mode);
	write_cr8(4);
	let_in();
	is(got[0][VEC_B], 1, "%s: CR8 = 4 lets class 5 in", mode);
	write_cr8(15);
	self_ipi(0xf8);
	let_in();
	is(got[0][0xf8], 0, "%s: CR8 = 15 holds all back", mode);
	irq_on();
	write_cr8(0);
	wait_for(got[0][0xf8]);
	irq_off();
	is(got[0][0xf8], 1, "%s: lowering CR8 with IF = 1 lets it in at once", mode);

	clear();
	trap_handle(VEC_B, on_nesting);
	self_ipi(VEC_B);
	let_in();
	trap_handle(VEC_B, on_ipi);
	is(nested_seen, 1 | 4 | 8, "%s: in a handler a higher one comes in, a lower one waits", mode);
	ok(nr_sequence == 3 && sequence[0] == VEC_C && sequence[1] == VEC_B && sequence[2] == VEC_A,
	   "%s: EOI is that of the highest in service; then the lower one comes", mode);
	/* Within one class a higher vector must wait, too. */
	clear();
	write_cr8(0);
	{
		u32 svr = apic_read(APIC_SVR);

		self_ipi(VEC_A);
		apic_write(APIC_SVR, svr & ~0x100u);
		apic_icr(0, ICR_SELF | ICR_ASSERT | VEC_B);
		for (u32 i = 0; i < 1000; i++)
			cpu_relax();
		is(requested(VEC_B), 0, "%s: disabled by SVR: nothing new is accepted", mode);
		apic_write(APIC_SVR, svr);
		let_in();
		is(got[0][VEC_A], 1, "%s: disabled by SVR: what was in IRR stays", mode);
		is(got[0][VEC_B], 0, "%s: and what came meanwhile is lost", mode);
	}
}

/* --- destinations --- */

/* The CPUs that took VEC_A, as a mask, once all those wanted have. */
static u32 receivers(u32 wanted)
{
	u32 seen = 0;

	wait_for(({
		seen = 0;
		for (u32 cpu = 0; cpu < cpus; cpu++)
			seen |= got[cpu][VEC_A] ? 1u << cpu : 0;
		(seen & wanted) == wanted;
	}));
	/* Those who should not have: a little time to show up. */
	for (u32 i = 0; i < 2000; i++)
		cpu_relax();
	for (u32 cpu = 0; cpu < cpus; cpu++)
		seen |= got[cpu][VEC_A] ? 1u << cpu : 0;
	for (u32 cpu = 0; cpu < cpus; cpu++) {
		if (got[cpu][VEC_A] > 1)
			seen |= 1u << 31;
	}
	return seen;
}

static void send(u32 dest, u32 low, u32 wanted, const char *name)
{
	clear();
	apic_icr(dest, low | ICR_ASSERT | VEC_A);
	is(receivers(wanted), wanted, "%s: %s", mode, name);
}

static u32 all_mask(void)
{
	return (1u << cpus) - 1;
}

static void physical(void)
{
	u32 others = all_mask() & ~1u;

	clear();
	for (u32 cpu = 0; cpu < cpus; cpu++) {
		u32 seen;

		clear();
		apic_icr(smp_apic_id(cpu), ICR_ASSERT | VEC_A);
		seen = receivers(1u << cpu);
		if (seen != 1u << cpu) {
			is(seen, 1u << cpu, "%s: physical destinations", mode);
			return;
		}
	}
	ok(true, "%s: physical destinations", mode);
	send(0, ICR_SELF, 1, "shorthand self");
	send(0, ICR_ALL, all_mask(), "shorthand all");
	send(0, ICR_OTHERS, others, "shorthand all but self");
	send(bare_x2apic ? 0xffffffff : 0xff, 0, all_mask(), "physical broadcast");
	send(0x70, 0, 0, "a physical destination that nobody has");
	clear();
	apic_icr(smp_apic_id(1), ICR_NMI | ICR_ASSERT);
	ok(wait_for(got[1][2] == 1), "%s: an NMI to another CPU", mode);
	ok(!got[0][2], "%s: and to nobody else", mode);
}

/* LDR of each CPU, by itself. */
static void set_ldr(void *arg)
{
	u64 v = (u64)arg;

	apic_write(APIC_DFR, (u32)(v >> 32));
	apic_write(APIC_LDR, (u32)v);
}

static void set_logical(bool cluster)
{
	for (u32 cpu = 0; cpu < cpus; cpu++) {
		u32 ldr = cluster ? (cpu / 2 << 4 | 1u << cpu % 2) : 1u << cpu;
		u64 v = (u64)(cluster ? 0x0fffffffu : 0xffffffffu) << 32 | (u64)ldr << 24;

		if (cpu)
			smp_run(cpu, set_ldr, (void *)v);
		else
			set_ldr((void *)v);
	}
}

static u32 one_of(u32 mask)
{
	return mask && !(mask & (mask - 1));
}

static void logical(void)
{
	u32 seen;

	set_logical(false);
	all_listen();
	for (u32 mask = 1; mask < 1u << cpus; mask += cpus > 4 ? 37 : 1) {
		clear();
		apic_icr(mask, ICR_LOGICAL | ICR_ASSERT | VEC_A);
		seen = receivers(mask);
		if (seen != mask) {
			is(seen, mask, "logical flat: every set of CPUs");
			goto broadcast;
		}
	}
	ok(true, "logical flat: every set of CPUs");
broadcast:
	send(0xff, ICR_LOGICAL, all_mask(), "logical flat: broadcast");
	send(0x80, ICR_LOGICAL, 0, "logical flat: a bit that nobody has");
	clear();
	apic_icr(all_mask(), ICR_LOGICAL | ICR_LOWEST | ICR_ASSERT | VEC_A);
	wait_for(({ seen = receivers(0); seen; }));
	ok(one_of(seen), "lowest priority: one of those addressed");
	none_listen();

	set_logical(true);
	all_listen();
	send(0x01, ICR_LOGICAL, 1, "logical cluster: one of cluster 0");
	send(0x03, ICR_LOGICAL, 3, "logical cluster: both of cluster 0");
	if (cpus >= 4) {
		send(0x11, ICR_LOGICAL, 4, "logical cluster: one of cluster 1");
		send(0x13, ICR_LOGICAL, 0xc, "logical cluster: both of cluster 1");
	}
	send(0x21, ICR_LOGICAL, 0, "logical cluster: a cluster that nobody is in");
	send(0xff, ICR_LOGICAL, all_mask(), "logical cluster: broadcast");
	none_listen();
	set_logical(false);
}

/* x2APIC: the logical id follows from the APIC id (SDM 3A 10.12.10.2). */
static void logical_x2apic(void)
{
	u32 ldr = apic_read(APIC_LDR), id = apic_id(), mask = 0;

	is(ldr, id >> 4 << 16 | 1u << (id & 15), "x2APIC: LDR follows from the id");
	all_listen();
	for (u32 cpu = 0; cpu < cpus; cpu++) {
		u32 seen;

		if (smp_apic_id(cpu) >> 4 == 0)
			mask |= 1u << cpu;
		clear();
		apic_icr(smp_apic_id(cpu) >> 4 << 16 | 1u << (smp_apic_id(cpu) & 15), ICR_LOGICAL | ICR_ASSERT | VEC_A);
		seen = receivers(1u << cpu);
		if (seen != 1u << cpu)
			is(seen, 1u << cpu, "x2APIC cluster: CPU %u", cpu);
	}
	send(0x0000ffff, ICR_LOGICAL, mask, "x2APIC cluster: all of cluster 0");
	send(0x00700001, ICR_LOGICAL, 0, "x2APIC cluster: a cluster that nobody is in");
	send(0xffffffff, ICR_LOGICAL, all_mask(), "x2APIC cluster: broadcast");
	none_listen();
	clear();
	wrmsr(0x83f, VEC_B);
	wait_for(requested(VEC_B));
	let_in();
	is(got[0][VEC_B], 1, "x2APIC: SELF IPI register");
	is(rdmsr(0x802), smp_apic_id(0), "x2APIC: the id has 32 bits");
	TRY("wrmsr", : : "c"(0x802), "a"(1), "d"(0) : "memory");
	trapped(13, 0, "#GP(0): x2APIC: a write of the id");
	TRY("wrmsr", : : "c"(0x80b), "a"(1), "d"(0) : "memory");
	trapped(13, 0, "#GP(0): x2APIC: EOI of another value than 0");
	TRY("rdmsr", : : "c"(0x80b) : "rax", "rdx");
	trapped(13, 0, "#GP(0): x2APIC: a read of EOI");
	TRY("rdmsr", : : "c"(0x80e) : "rax", "rdx");
	trapped(13, 0, "#GP(0): x2APIC: there is no DFR");
	TRY("rdmsr", : : "c"(0x831) : "rax", "rdx");
	trapped(13, 0, "#GP(0): x2APIC: there is no upper ICR");
	TRY("wrmsr", : : "c"(0x808), "a"(0x100), "d"(0) : "memory");
	trapped(13, 0, "#GP(0): x2APIC: a reserved bit of TPR");
	TRY("wrmsr", : : "c"(MSR_APIC_BASE), "a"(0xfee00900u), "d"(0) : "memory");
	trapped(13, 0, "#GP(0): from x2APIC to xAPIC mode in one step");
}

/* --- timer --- */

static u32 timer_count(u32 ms_worth)
{
	/* Input clocks of 1 GHz (ours) and of QEMU's alike give times that a test can wait for. */
	return ms_worth * 100000;
}

/* The shortest of a few, since a busy host is late at times. */
static u64 count_down(u32 divider)
{
	u64 least = ~0ul;

	apic_write(APIC_LVT_TIMER, MASKED | VEC_T);
	apic_write(APIC_TIMER_DIV, divider);
	for (u32 i = 0; i < 4; i++) {
		u64 t0, took;

		apic_write(APIC_TIMER_INIT, timer_count(4));
		t0 = rdtsc();
		wait_for(!apic_read(APIC_TIMER_NOW));
		took = rdtsc() - t0;
		if (took < least)
			least = took;
	}
	apic_write(APIC_TIMER_DIV, 0xb);
	return least;
}

static void timer(void)
{
	u32 first, second;

	clear();
	apic_write(APIC_TIMER_DIV, 0xb);
	apic_write(APIC_LVT_TIMER, MASKED | VEC_T);
	apic_write(APIC_TIMER_INIT, 0xffffffff);
	first = apic_read(APIC_TIMER_NOW);
	for (u32 i = 0; i < 1000; i++)
		cpu_relax();
	second = apic_read(APIC_TIMER_NOW);
	ok(second < first, "%s timer: it counts down", mode);
	apic_write(APIC_TIMER_INIT, 0);
	is(apic_read(APIC_TIMER_NOW), 0, "%s timer: an initial count of 0 stops it", mode);

	apic_write(APIC_TIMER_INIT, timer_count(1));
	wait_for(!apic_read(APIC_TIMER_NOW));
	ok(!requested(VEC_T), "%s timer: masked, it raises nothing", mode);
	apic_write(APIC_LVT_TIMER, VEC_T);
	apic_write(APIC_TIMER_INIT, timer_count(1));
	wait_for(requested(VEC_T));
	let_in();
	is(got[0][VEC_T], 1, "%s timer: one-shot comes", mode);
	is(apic_read(APIC_TIMER_NOW), 0, "%s timer: one-shot stays at 0", mode);
	{
		u64 end = rdtsc() + 20000000;

		irq_on();
		while ((s64)(rdtsc() - end) < 0)
			cpu_relax();
		irq_off();
	}
	is(got[0][VEC_T], 1, "%s timer: one-shot comes once", mode);

	/*
	 * Raising CR8 is no exit on KVM: when the timer's end brings the vCPU out, its priority has to be
	 * asked for. The APIC's registers are left alone until then, since those are exits of their own.
	 */
	clear();
	apic_write(APIC_TIMER_INIT, timer_count(1));
	write_cr8(15);
	irq_on();
	{
		u64 end = rdtsc() + 100000000;

		while ((s64)(rdtsc() - end) < 0)
			cpu_relax();
	}
	is(got[0][VEC_T], 0, "%s timer: CR8 = 15 holds it back when it ends", mode);
	is(read_cr8(), 15, "%s timer: and CR8 stays as written", mode);
	write_cr8(0);
	wait_for(got[0][VEC_T]);
	irq_off();
	is(got[0][VEC_T], 1, "%s timer: lowering CR8 lets it in", mode);

	clear();
	apic_write(APIC_LVT_TIMER, 1u << 17 | VEC_T);
	apic_write(APIC_TIMER_INIT, timer_count(2));
	irq_on();
	ok(wait_for(got[0][VEC_T] >= 5), "%s timer: periodic comes again and again", mode);
	apic_write(APIC_LVT_TIMER, 1u << 17 | MASKED | VEC_T);
	irq_off();
	first = got[0][VEC_T] + requested(VEC_T);
	{
		u64 end = rdtsc() + 20000000;

		while ((s64)(rdtsc() - end) < 0)
			cpu_relax();
	}
	let_in();
	ok(got[0][VEC_T] <= first, "%s timer: masked, it is silent", mode);
	apic_write(APIC_TIMER_INIT, 0);

	/* Dividers: the same count takes longer. */
	{
		u64 by1 = count_down(0xb), by16 = count_down(0x3);

		say("# by 1 %lu, by 16 %lu ticks\n", by1, by16);
		ok(by16 > 4 * by1, "%s timer: divided by 16 it is slower", mode);
	}
}

/* A deadline is a value of the TSC, so it comes when a write has moved that past it, and only then. */
static void deadline_moved(void)
{
	const u64 far = 1ul << 40;
	u64 adjust, end;

	if (!HAS_TSC_ADJUST) {
		skip("TSC deadline and TSC_ADJUST", "not shown by CPUID");
		return;
	}
	adjust = rdmsr(MSR_TSC_ADJUST);
	wrmsr(MSR_DEADLINE, rdtsc() + far);
	wrmsr(MSR_TSC_ADJUST, adjust + far);
	ok(wait_for(requested(VEC_T)), "%s: TSC deadline comes when TSC_ADJUST moves the TSC past it", mode);
	let_in();
	wrmsr(MSR_DEADLINE, rdtsc() + 3000000);
	wrmsr(MSR_TSC_ADJUST, adjust);
	end = rdtsc() + 60000000;
	while ((s64)(rdtsc() - end) < 0)
		cpu_relax();
	is(requested(VEC_T), 0, "%s: TSC deadline waits when TSC_ADJUST moves the TSC back", mode);
	wrmsr(MSR_DEADLINE, 0);
}

static void deadline(void)
{
	u64 at;

	if (!HAS_DEADLINE) {
		skip("TSC deadline", "not shown by CPUID");
		return;
	}
	clear();
	apic_write(APIC_LVT_TIMER, 2u << 17 | VEC_T);
	asm volatile("mfence" : : : "memory");
	at = rdtsc() + 3000000;
	wrmsr(MSR_DEADLINE, at);
	is(rdmsr(MSR_DEADLINE), at, "%s: TSC deadline reads as written", mode);
	irq_on();
	ok(wait_for(got[0][VEC_T] == 1), "%s: TSC deadline comes", mode);
	irq_off();
	ok(rdtsc() >= at, "%s: TSC deadline is not early", mode);
	is(rdmsr(MSR_DEADLINE), 0, "%s: TSC deadline reads as 0 afterwards", mode);
	wrmsr(MSR_DEADLINE, 1);
	ok(wait_for(requested(VEC_T)), "%s: TSC deadline in the past comes at once", mode);
	let_in();
	wrmsr(MSR_DEADLINE, rdtsc() + 30000000);
	wrmsr(MSR_DEADLINE, 0);
	at = rdtsc() + 60000000;
	while ((s64)(rdtsc() - at) < 0)
		cpu_relax();
	is(requested(VEC_T), 0, "%s: TSC deadline 0 disarms", mode);
	deadline_moved();
	apic_write(APIC_TIMER_INIT, 1000);
	is(apic_read(APIC_TIMER_NOW), 0, "%s: the initial count does nothing in TSC deadline mode", mode);
	apic_write(APIC_LVT_TIMER, MASKED | VEC_T);
}

/* --- HLT and INIT --- */

static volatile u32 woken;
static void hlt_once(void *arg)
{
	asm volatile("sti; hlt; cli" : : : "memory");
	woken++;
}

static void halts(void)
{
	clear();
	woken = 0;
	/* TPR holds it back: HLT must not end by it. Then NMI ends HLT whatever IF is. */
	smp_begin(1, hlt_once, NULL);
	for (u32 i = 0; i < 20000; i++)
		cpu_relax();
	is(woken, 0, "%s: HLT waits", mode);
	apic_icr(smp_apic_id(1), ICR_ASSERT | VEC_A);
	smp_wait(1);
	ok(woken == 1 && got[1][VEC_A] == 1, "%s: HLT ends by an IPI", mode);
}

static void halt_for_good(void *arg)
{
	for (;;)
		asm volatile("cli; hlt");
}

/* The last CPU: INIT takes it out of a HLT with IF = 0, and leaves what is in its local APIC cleared. */
static void init_again(void)
{
	u32 cpu = cpus - 1;

	smp_begin(cpu, halt_for_good, NULL);
	for (u32 i = 0; i < 5000; i++)
		cpu_relax();
	clear();
	apic_icr(smp_apic_id(cpu), ICR_ASSERT | VEC_A);
	apic_icr(smp_apic_id(cpu), ICR_INIT | ICR_ASSERT);
	/* Without SIPI it stays where it is. An NMI is not taken either. */
	apic_icr(smp_apic_id(cpu), ICR_NMI | ICR_ASSERT);
	for (u32 i = 0; i < 5000; i++)
		cpu_relax();
	ok(!got[cpu][VEC_A] && !got[cpu][2], "INIT: the CPU waits for SIPI and takes nothing else");
}

static void both_modes(void)
{
	registers();
	priorities();
	if (cpus > 1) {
		all_listen();
		physical();
		none_listen();
		halts();
	} else {
		skip("IPIs between CPUs", "cpus=1");
	}
	timer();
	deadline();
}

static void go_x2apic(void *arg)
{
	apic_enable_x2apic();
	/* bare_x2apic is set by the boot CPU, when all are there. */
	__atomic_add_fetch(&listening, 1, __ATOMIC_SEQ_CST);
}

void test_main(void)
{
	static const u8 vectors[] = { VEC_A, VEC_B, VEC_C, VEC_D, VEC_T, 0xf8 };

	cpus = smp_start();
	apic_enable();
	for (u32 i = 0; i < ARRAY_SIZE(vectors); i++)
		trap_handle(vectors[i], on_ipi);
	trap_handle(2, on_nmi);
	gate_set(2, 0, 0, true, false);
	mode = "xAPIC";
	start_up();
	both_modes();
	if (cpus > 1)
		logical();
	if (!HAS_X2APIC) {
		skip("x2APIC", "not shown by CPUID");
	} else {
		mode = "x2APIC";
		apic_write(APIC_LVT_TIMER, MASKED | VEC_T);
		for (u32 cpu = 1; cpu < cpus; cpu++)
			smp_run(cpu, go_x2apic, NULL);
		listening = 0;
		apic_enable_x2apic();
		bare_x2apic = true;
		ok(rdmsr(MSR_APIC_BASE) & 0x400, "IA32_APIC_BASE: x2APIC mode");
		both_modes();
		if (cpus > 1)
			logical_x2apic();
	}
	if (cpus > 1)
		init_again();
}
