// SPDX-License-Identifier: GPL-2.0-only
/* Local APICs in both modes, and application processors. */
#include "bare/bare64.h"

#define APIC_BASE	0xfee00000ul
#define BASE_ENABLE	0x800u
#define BASE_X2APIC	0x400u

void ap_main(u32 cpu) __attribute__((noreturn));
void traps_init_cpu(u32 cpu);

extern const char trampoline[], trampoline_end[];
extern char ap_cr0[];
extern volatile u32 ap_next;

struct ap_start ap_start[BARE_CPUS];
bool bare_x2apic;
static struct {
	void (*volatile fn)(void *);
	void *volatile arg;
	volatile bool up;
	u32 apic_id;
} aps[BARE_CPUS];
static u32 nr_cpus = 1;

u32 apic_read(u32 reg)
{
	return bare_x2apic ? (u32)rdmsr(0x800 + reg / 16) : *(volatile u32 *)(APIC_BASE + reg);
}

void apic_write(u32 reg, u32 value)
{
	if (bare_x2apic)
		wrmsr(0x800 + reg / 16, value);
	else
		*(volatile u32 *)(APIC_BASE + reg) = value;
}

void apic_icr(u32 dest, u32 low)
{
	if (bare_x2apic) {
		/* Not serialising: what was stored before must be visible before (SDM 3A 10.12.3). */
		asm volatile("mfence; lfence" : : : "memory");
		wrmsr(0x800 + APIC_ICR / 16, (u64)dest << 32 | low);
		return;
	}
	apic_write(APIC_ICR2, dest << 24);
	apic_write(APIC_ICR, low);
	while (apic_read(APIC_ICR) & 0x1000)
		cpu_relax();
}

u32 apic_id(void)
{
	u32 id = apic_read(APIC_ID);

	return bare_x2apic ? id : id >> 24;
}

void apic_enable(void)
{
	wrmsr(MSR_APIC_BASE, rdmsr(MSR_APIC_BASE) | BASE_ENABLE);
	apic_write(APIC_LVT_LINT0, 0x10000);
	apic_write(APIC_SVR, 0x1ff);
	apic_write(APIC_TPR, 0);
}

void apic_enable_x2apic(void)
{
	wrmsr(MSR_APIC_BASE, rdmsr(MSR_APIC_BASE) | BASE_ENABLE | BASE_X2APIC);
}

bool apic_bit(u32 reg, u8 vec)
{
	return apic_read(reg + vec / 32 * 16) >> (vec % 32) & 1;
}

void ap_main(u32 cpu)
{
	if (cpu >= BARE_CPUS)
		for (;;)
			asm volatile("cli; hlt");
	/* The image's table, by its full address. */
	asm volatile("lgdt gdt_pointer");
	traps_init_cpu(cpu);
	apic_enable();
	memcpy(&ap_start[cpu], (const char *)(BARE_TRAMPOLINE + (ap_cr0 - trampoline)),
	       sizeof(struct ap_start));
	aps[cpu].apic_id = apic_id();
	aps[cpu].up = true;
	for (;;) {
		void (*fn)(void *) = aps[cpu].fn;

		if (fn) {
			fn(aps[cpu].arg);
			barrier();
			aps[cpu].fn = NULL;
		}
		cpu_relax();
	}
}

/*
 * APIC ids are tried in order, one at a time, since all use one trampoline; an id with no CPU behind
 * it does nothing.
 */
u32 smp_start(void)
{
	u32 wanted = (u32)option_number("cpus", 1);

	if (nr_cpus > 1 || wanted == 1)
		return nr_cpus;
	if (wanted > BARE_CPUS)
		bail("cpus=%u: at most %u", wanted, BARE_CPUS);
	apic_enable();
	aps[0].apic_id = apic_id();
	memcpy((void *)BARE_TRAMPOLINE, trampoline, (u64)(trampoline_end - trampoline));
	for (u32 id = 0; id < 255 && nr_cpus < wanted; id++) {
		u64 end;

		if (id == apic_id())
			continue;
		apic_icr(id, ICR_INIT | ICR_ASSERT);
		apic_icr(id, ICR_SIPI | ICR_ASSERT | BARE_TRAMPOLINE >> 12);
		/* Long enough for a busy emulator, and over at once where there is a CPU. */
		end = rdtsc() + WAIT_TICKS / 30;
		while (!aps[nr_cpus].up && (s64)(rdtsc() - end) < 0)
			cpu_relax();
		if (aps[nr_cpus].up)
			nr_cpus++;
	}
	if (nr_cpus != wanted)
		bail("%u CPUs came up, cpus=%u", nr_cpus, wanted);
	return nr_cpus;
}

void smp_begin(u32 cpu, void (*fn)(void *), void *arg)
{
	aps[cpu].arg = arg;
	barrier();
	aps[cpu].fn = fn;
}

void smp_wait(u32 cpu)
{
	if (!wait_for(!aps[cpu].fn))
		bail("CPU %u does not come back", cpu);
}

void smp_run(u32 cpu, void (*fn)(void *), void *arg)
{
	smp_begin(cpu, fn, arg);
	smp_wait(cpu);
}

u32 smp_apic_id(u32 cpu)
{
	return aps[cpu].apic_id;
}
