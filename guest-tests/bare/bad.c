// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guests that misbehave in ring 0: case=NAME on the command line chooses how. What a
 * case comes to is up to the engine where the architecture leaves it open; but an end it
 * must have, and the VMM must outlive it. tests/bad-input/guests.sh knows the ends.
 *
 * Values with which cases leave: 0 as it should be, 1 wrong, 2 no such case, 3 a trap
 * that was not to be.
 */
#include "bare64.h"

#define DEVICE		0xd0000000ul	/* virtio-mmio (vmm/machine/layout.h) */
#define HOLE		0x80000000ul	/* nothing at all: memory= of these guests is far less */
#define LOCAL_APIC	0xfee00000ul
#define VEC_T		0x70
#define VEC_I		0x71
#define MASKED		0x10000u
#define ALL		(PTE_P | PTE_RW | PTE_US)

static u64 ram_end;
static volatile u32 got[BARE_CPUS];
static u64 rng_state;

/* xorshift64* (Vigna, 2016). */
static u64 rng(void)
{
	rng_state ^= rng_state >> 12;
	rng_state ^= rng_state << 25;
	rng_state ^= rng_state >> 27;
	return rng_state * 0x2545f4914f6cdd1dul;
}

static void end_if(bool good)
{
	leave(good ? 0 : 1);
}

static u32 call(const void *at)
{
	u32 v;

	asm volatile("call *%1" : "=a"(v) : "r"(at) : "memory", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11");
	return v;
}

/* mov $value, %eax; ret */
static void put_return(u8 *at, u32 value)
{
	at[0] = 0xb8;
	memcpy(at + 1, &value, 4);
	at[5] = 0xc3;
}

static void jump(u64 to)
{
	asm volatile("jmp *%0" : : "r"(to));
	__builtin_unreachable();
}

static void load_idt(u64 base)
{
	struct table_pointer p = { 0xfff, base };

	asm volatile("lidt %0" : : "m"(p));
}

/* --- code and page tables where no memory is --- */

static void code_in_device(void)
{
	jump(DEVICE);
}

/* The last byte of RAM begins an instruction whose rest is not there. */
static void code_off_the_end(void)
{
	*(volatile u8 *)(ram_end - 1) = 0xb8;
	jump(ram_end - 1);
}

static void tables_in_device(void)
{
	write_cr3(LOCAL_APIC);
	end_if(false);
}

static void tables_in_hole(void)
{
	write_cr3(HOLE);
	end_if(false);
}

/* Each level in turn is the last page of RAM, and its table beyond the end. */
static void tables_off_the_end(void)
{
	u64 *last_page = (u64 *)(ram_end - 4096), wrong = 0;

	for (int level = 4; level > 1; level--) {
		u64 va = (u64)(160 + level) << 39, *entry = page_entry(va, level);

		memset(last_page, 0, 4096);
		*entry = (u64)last_page | ALL;
		last_page[0] = ram_end | ALL;
		invlpg(va);
		TRY("movb (%0), %%al", : : "r"(va) : "rax", "memory");
		/* Entries beyond RAM are all ones; a page there is as good as another. */
		wrong += level == 2 ? last.vec != NO_TRAP : last.vec != 14 || last.cr2 != va;
		last_page[0] = (level == 2 ? 0 : PTE_PS) | ALL;
		if (level < 4) {
			invlpg(va);
			TRY("movb (%0), %%al", : : "r"(va) : "rax", "memory");
			wrong += last.vec != NO_TRAP;
		}
		*entry = 0;
		invlpg(va);
	}
	end_if(!wrong);
}

/* The page tables map themselves, are written through the mapping, and are code as well. */
static void tables_as_code(void)
{
	u64 va = 170ul << 39, *pte = page_entry(va, 1);
	u8 *table = (u8 *)((u64)pte & ~4095ul), *alias = (u8 *)va;
	u32 wrong = 0;

	*pte = (u64)table | ALL;
	for (u32 i = 0; i < 2000; i++) {
		u8 *at = alias + 2048 + i % 1024;

		put_return(at, i);
		wrong += call(at) != i;
		*(volatile u64 *)(alias + 8) = (u64)table | ALL;
		invlpg(va + 4096);
		wrong += call(at + 4096) != i;
		*(volatile u64 *)(alias + 8) = 0;
		invlpg(va + 4096);
		TRY("movb (%0), %%al", : : "r"(va + 4096) : "rax", "memory");
		wrong += last.vec != 14;
	}
	end_if(!wrong);
}

/* --- code that changes --- */

/* Every page of memory is code, then data, then other code. */
static void code_and_data(void)
{
	u32 wrong = 0;

	for (u32 round = 0; round < 3; round++) {
		for (u64 p = BARE_HEAP; p < ram_end; p += 4096) {
			put_return((u8 *)p + round * 64, (u32)(p + round));
			wrong += call((u8 *)p + round * 64) != (u32)(p + round);
		}
		for (u64 p = BARE_HEAP; p < ram_end; p += 4096) {
			wrong += call((u8 *)p + round * 64) != (u32)(p + round);
			memset((u8 *)p, (int)round, 4096);
		}
		for (u64 p = BARE_HEAP; p < ram_end; p += 4096)
			wrong += *(volatile u32 *)(p + round * 64) != round * 0x01010101;
	}
	end_if(!wrong);
}

/* Writes next to itself, in its own instruction, and in a page of thousands of blocks. */
static void storm(void)
{
	u8 *text = page_alloc();
	u32 wrong = 0, v;

	for (u32 i = 0; i < 4096 - 8; i += 2)
		text[i] = 0xeb, text[i + 1] = 0;	/* jmp to the next */
	text[4094] = 0xc3;
	for (u32 i = 0; i < 300; i++) {
		text[4088] = 0xeb;
		text[4089] = 4;
		call(text + i * 2);
	}
	memcpy(text, "\xb9\x40\x0d\x03\0"	/* mov $200000, %ecx */
		     "\x31\xc0"			/* xor %eax, %eax */
		     "\x83\xc0\x01"		/* 7: add $1, %eax; its operand is at 9 */
		     "\x80\x77\x09\x03"		/* xorb $3, 9(%rdi): 1 and 2 in turn */
		     "\xff\xc9"			/* dec %ecx */
		     "\x75\xf5"			/* jnz 7 */
		     "\xc3", 19);
	asm volatile("call *%1" : "=a"(v) : "r"(text), "D"(text) : "memory", "rcx", "cc");
	wrong += v != 300000;
	/* REP STOSB that goes over itself: what is left of it and what follows is INT3. */
	memcpy(text + 64, "\xf3\xaa\xc3", 3);
	TRY("call *%0", : : "r"(text + 64), "D"(text), "c"(128), "a"(0xcc) : "memory");
	wrong += last.vec != 3 && last.vec != NO_TRAP;
	end_if(!wrong);
}

/* --- descriptor tables and stacks where no memory is --- */

static void idt_in_hole(void)
{
	load_idt(HOLE);
	asm volatile("ud2");
	end_if(false);
}

static void tss_in_hole(void)
{
	u64 *desc = &bare_gdt[SEL_SPARE / 8];

	desc[0] = 0x67 | (HOLE & 0xffffff) << 16 | 0x89ul << 40 | (HOLE >> 24 & 0xff) << 56;
	desc[1] = HOLE >> 32;
	asm volatile("ltr %0" : : "r"((u16)SEL_SPARE));
	gate_set(6, 0, 1, true, false);		/* #UD takes its stack from there; so does #DF */
	asm volatile("ud2");
	end_if(false);
}

static void gdt_in_hole(void)
{
	struct table_pointer p = { 0xffff, HOLE };

	asm volatile("lgdt %0" : : "m"(p));
	/* All ones: code, conforming, both D and L. The next trap needs CS from there. */
	asm volatile("ud2");
	end_if(false);
}

static void stack_in_device(void)
{
	static const u8 vectors[] = { 6, 10, 11, 12, 13, 14 };

	for (u32 i = 0; i < ARRAY_SIZE(vectors); i++)
		gate_set(vectors[i], 0, 3, true, false);
	for (u32 i = 0; i < 1000; i++) {
		u64 to = i & 1 ? DEVICE + 0x800 : HOLE + i * 8;

		TRY("movq %0, %%rsp; movq %0, %%rbp; pushq %%rax; popq %%rax; call 1f; 1: pushfq; popq %%rbx; enter $64, $2; leave",
		    : : "r"(to) : "rax", "rbx", "rbp", "memory");
		TRY("movq %0, %%rsp; iretq", : : "r"(to) : "memory");
		TRY("movq %0, %%rsp; lretq", : : "r"(to) : "memory");
	}
	/* A trap's frame into the local APIC's ICR, and its handler on that stack. */
	gate_set(6, 0, 0, true, false);
	asm volatile("movq %0, %%rsp; ud2" : : "r"(LOCAL_APIC + 0x320) : "memory");
	end_if(false);
}

/* Operands of every width in devices, and half in RAM. */
static void wide_in_device(void)
{
	const u64 place[] = { DEVICE, LOCAL_APIC + 0xfe0, ram_end - 8, HOLE, HOLE + 4092 };

	for (u32 i = 0; i < ARRAY_SIZE(place); i++) {
		u64 at = place[i];

		TRY("lock cmpxchg16b (%0)", : : "r"(at & ~15ul) : "rax", "rdx", "memory", "cc");
		TRY("fxsave64 (%0); fxrstor64 (%0)", : : "r"(at & ~15ul) : "memory");
		TRY("movups (%0), %%xmm0; movups %%xmm0, 3(%0)", : : "r"(at) : "memory");
		TRY("lock xaddq %%rax, 5(%0)", : : "r"(at) : "rax", "memory", "cc");
		TRY("xchgq %%rax, 1(%0); btsq $63, 7(%0); shldq $5, %%rbx, (%0)", : : "r"(at) : "rax", "memory", "cc");
		TRY("fldt 1(%0); fstpt 3(%0); fnsave (%0); frstor (%0)", : : "r"(at) : "memory");
		TRY("sgdt 1(%0); sidt 3(%0)", : : "r"(at) : "memory");
		TRY("movq %0, %%rsi; leaq 16(%0), %%rdi; movl $9, %%ecx; rep movsq", : : "r"(at) :
		    "rsi", "rdi", "rcx", "memory");
		TRY("invlpg (%0); clflush (%0); prefetcht0 (%0)", : : "r"(at) : "memory");
		TRY("lgdt (%0)", : : "r"(at) : "memory");
		asm volatile("lgdt gdt_pointer");
	}
	end_if(true);
}

/* --- no end --- */

/* Interruptible, so time goes by, but it does not come back. */
static void endless_rep(void)
{
	u64 n = 1ul << 62;

	/* 512 GiB of addresses, all of them one page: it ends in hours. */
	u64 va = 180ul << 39, *pdpt = page_alloc(), *pd = page_alloc(), *pt = page_alloc(), page = (u64)page_alloc();

	for (u32 i = 0; i < 512; i++) {
		pdpt[i] = (u64)pd | ALL;
		pd[i] = (u64)pt | ALL;
		pt[i] = page | ALL;
	}
	*page_entry(va, 4) = (u64)pdpt | ALL;
	asm volatile("rep stosq" : "+D"(va), "+c"(n) : "a"(0) : "memory");
	end_if(false);
}

static void endless_rep_device(void)
{
	u64 to = DEVICE, n = 1ul << 62;

	/* The same 4 MiB of nothing and the devices, as long as addresses last. */
	asm volatile("rep insb" : "+D"(to), "+c"(n) : "d"(0x80) : "memory");
	end_if(false);
}

static bool return_to_it(struct frame *f)
{
	return true;
}

/* The handler returns to what faulted. */
static void endless_fault(void)
{
	trap_handle(14, return_to_it);
	*(volatile u8 *)(200ul << 39) = 1;
	end_if(false);
}

/* The handler's first instruction raises it again, on the same stack: nothing is ever executed. */
static void endless_delivery(void)
{
	static const u8 ud2[] = { 0x0f, 0x0b };

	struct table_pointer p;

	gate_to(6, (void *)(u64)ud2);
	/* On IST 3, which begins anew each time. */
	asm volatile("sidt %0" : "=m"(p));
	*(u64 *)(p.base + 6 * 16) |= 3ul << 32;
	asm volatile("ud2");
	end_if(false);
}

/* #PF's handler is nowhere, nor is #DF's. */
static void no_handlers(void)
{
	gate_to(14, (void *)(200ul << 39));
	gate_to(8, (void *)(201ul << 39));
	*(volatile u8 *)(202ul << 39) = 1;
	end_if(false);
}

/* A stack that is not mapped, and no other for #DF. */
static void no_stack(void)
{
	gate_set(8, 0, 0, true, false);
	asm volatile("movq %0, %%rsp; pushq %%rax" : : "r"(203ul << 39) : "memory");
	end_if(false);
}

/* The trap flag's own handler is trapped, and the single steps go on. */
static bool step_on(struct frame *f)
{
	f->rflags |= FLAG_TF;
	got[0]++;
	if (got[0] >= 100000)
		leave(0);
	return true;
}

static void endless_steps(void)
{
	trap_handle(1, step_on);
	asm volatile("pushfq; orq $0x100, (%%rsp); popfq; 1: jmp 1b" : : : "memory");
	end_if(false);
}

/* --- interrupts without end --- */

static bool on_irq(struct frame *f)
{
	got[cpu_number()]++;
	apic_write(APIC_EOI, 0);
	return true;
}

/* Each timer as fast as it can be asked for; the PIT's interrupt at its highest rate, too. */
static void fast_timers(void)
{
	u64 end;

	trap_handle(VEC_T, on_irq);
	apic_enable();
	apic_write(APIC_TIMER_DIV, 0xb);
	apic_write(APIC_LVT_TIMER, 1u << 17 | VEC_T);
	apic_write(APIC_TIMER_INIT, 1);
	outb(0x43, 0x34);
	outb(0x40, 1);
	outb(0x40, 0);
	irq_on();
	for (end = rdtsc() + 100000000; rdtsc() < end; )
		cpu_relax();
	irq_off();
	if (!got[0])
		end_if(false);
	apic_write(APIC_LVT_TIMER, VEC_T);
	for (u32 i = 0; i < 100000; i++) {
		apic_write(APIC_TIMER_INIT, 1 + (u32)rng() % 3);
		asm volatile("sti; nop; nop; cli");
	}
	if (HAS_DEADLINE) {
		apic_write(APIC_LVT_TIMER, 2u << 17 | VEC_T);
		for (u32 i = 0; i < 100000; i++) {
			wrmsr(MSR_DEADLINE, rng() & 1 ? 1 : rdtsc() + 1);
			if (!(i & 255))
				wrmsr(MSR_TSC_ADJUST, rng());
			asm volatile("sti; nop; nop; cli");
		}
	}
	end_if(true);
}

static volatile bool stop;

/* IPIs of all kinds to all, themselves included, but for INIT and SIPI. */
static void shoot(void *arg)
{
	static const u32 kind[] = { ICR_OTHERS | VEC_I, ICR_ALL | VEC_I, ICR_SELF | VEC_I, ICR_OTHERS | ICR_NMI, ICR_ALL | ICR_LOWEST | VEC_I };

	irq_on();
	for (u32 i = 0; i < 20000; i++)
		apic_icr(0, ICR_ASSERT | kind[i % 5]);
	while (!stop)
		cpu_relax();
	irq_off();
}

static bool on_nmi(struct frame *f)
{
	got[cpu_number()]++;
	return true;
}

static void ipi_storm(void)
{
	u32 cpus = smp_start();
	bool good = true;

	trap_handle(VEC_I, on_irq);
	trap_handle(2, on_nmi);
	gate_set(2, 0, 0, true, false);		/* APs have no IST */
	for (u32 cpu = 1; cpu < cpus; cpu++)
		smp_begin(cpu, shoot, NULL);
	stop = true;
	shoot(NULL);
	for (u32 cpu = 1; cpu < cpus; cpu++)
		smp_wait(cpu);
	for (u32 cpu = 0; cpu < cpus; cpu++)
		good &= got[cpu] > 100;
	end_if(good);
}

static void sleep_on(void *arg)
{
	for (;;)
		asm volatile("sti; hlt");
}

/* The others are stopped and started at random, also with vectors behind which there is nothing. */
static void init_storm(void)
{
	u32 cpus = smp_start();

	trap_handle(VEC_I, on_irq);
	trap_handle(2, on_nmi);
	gate_set(2, 0, 0, true, false);
	/* Where they start: sti; hlt; jmp back. NMIs and the IPI come by the vector table, to an IRET. */
	memcpy((void *)0x7000, "\xfb\xf4\xeb\xfc\xcf", 5);
	for (volatile u32 *vector = NULL; vector < (u32 *)1024; vector++)
		*vector = 0x7004;
	for (u32 cpu = 1; cpu < cpus; cpu++)
		smp_begin(cpu, sleep_on, NULL);
	for (u32 i = 0; i < 5000; i++) {
		static const u32 kind[] = { ICR_INIT, ICR_SIPI | 7, ICR_NMI, ICR_FIXED | VEC_I, ICR_SIPI | 7, ICR_INIT | ICR_LEVEL };

		apic_icr(0, ICR_ASSERT | ICR_OTHERS | kind[rng() % 6]);
	}
	apic_icr(0, ICR_ASSERT | ICR_OTHERS | ICR_INIT);
	apic_icr(0, ICR_ASSERT | ICR_OTHERS | ICR_SIPI | 0xa0);	/* where a PC has no memory */
	for (u64 end = rdtsc() + 500000; rdtsc() < end; )
		cpu_relax();
	end_if(true);
}

/* --- anything --- */

#define RANDOM_PAGES	16u

/* Ends the code that is being tried; what comes late is for nobody. */
static bool on_limit(struct frame *f)
{
	apic_write(APIC_EOI, 0);
	return !bare_resume.rip;
}

/*
 * Rubbish of `bytes` (8 and more). Left out are pairs that make, or may, an instruction which the soft
 * engine refuses by name (docs/soft-engine.md): the run would end there.
 */
static void put_rubbish(u8 *at, u32 bytes)
{
	static const u8 out[][2] = {
		{ 0x0f, 0x0d }, { 0x0f, 0x0e }, { 0x0f, 0x1a }, { 0x0f, 0x1b }, { 0x0f, 0x1c }, { 0x0f, 0xa6 },
		{ 0x0f, 0xa7 }, { 0x38, 0xcf }, { 0x3a, 0xce }, { 0x3a, 0xcf }, { 0x01, 0xc0 },
	};

	for (u32 k = 0; k < bytes; k++)
		at[k] = (u8)(rng() >> 32);
	for (u32 k = 0; k + 1 < bytes; k++)
		for (u32 i = 0; i < ARRAY_SIZE(out); i++)
			if (at[k] == out[i][0] && at[k + 1] == out[i][1])
				at[k] = 0x90;
}

/* Rubbish as code of ring 3, from a random place on each time; a timer ends what loops. */
static void random_user(void)
{
	u8 *text = (u8 *)BARE_USER + 0x100000;	/* ring 3 may write there as well */
	u64 seed = option_number("seed", 1), runs = option_number("runs", 3000);

	rng_state = seed * 2 + 1;
	trap_handle(VEC_T, on_limit);
	apic_enable();
	apic_write(APIC_TIMER_DIV, 0xb);
	/* SYSCALL would be a way into ring 0. */
	wrmsr(MSR_EFER, rdmsr(MSR_EFER) & ~(u64)EFER_SCE);
	for (u64 i = 0; i < runs; i++) {
		u32 off = (u32)rng() % (RANDOM_PAGES * 4096 - 64);

		if (i % 64 == 0)
			put_rubbish(text, RANDOM_PAGES * 4096);
		apic_write(APIC_LVT_TIMER, VEC_T);
		apic_write(APIC_TIMER_INIT, 20000);
		user_enter((u64)text + off, rng(), FLAG_IF | 2 | (rng() & 0x40cd5), SEL_UCODE | 3,
			   (u64)text + 0x1000, SEL_UDATA | 3);
		apic_write(APIC_LVT_TIMER, MASKED);
		asm volatile("sti; nop; cli" : : : "memory");
	}
	end_if(true);
}

/* The same in ring 0: whatever becomes of it. */
static void random_kernel(void)
{
	u8 *text = page_alloc_aligned(4096, RANDOM_PAGES * 4096);

	rng_state = option_number("seed", 1) * 2 + 1;
	trap_handle(VEC_T, on_limit);
	apic_enable();
	apic_write(APIC_TIMER_DIV, 0xb);
	for (u32 i = 0; i < 3000; i++) {
		u32 off = (u32)rng() % (RANDOM_PAGES * 4096 - 64);
		u8 *at = text + off;

		put_rubbish(at, 64);
		apic_write(APIC_LVT_TIMER, VEC_T);
		apic_write(APIC_TIMER_INIT, 20000);
		TRY("sti; call *%0", : "+a"(at) : :
		    "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
		    "memory", "cc");
		apic_write(APIC_LVT_TIMER, MASKED);
		asm volatile("sti; nop; cli" : : : "memory");
	}
	end_if(true);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "code-in-device", code_in_device },
	{ "code-off-the-end", code_off_the_end },
	{ "tables-in-device", tables_in_device },
	{ "tables-in-hole", tables_in_hole },
	{ "tables-off-the-end", tables_off_the_end },
	{ "tables-as-code", tables_as_code },
	{ "code-and-data", code_and_data },
	{ "storm", storm },
	{ "idt-in-hole", idt_in_hole },
	{ "tss-in-hole", tss_in_hole },
	{ "gdt-in-hole", gdt_in_hole },
	{ "stack-in-device", stack_in_device },
	{ "wide-in-device", wide_in_device },
	{ "endless-rep", endless_rep },
	{ "endless-rep-device", endless_rep_device },
	{ "endless-fault", endless_fault },
	{ "endless-delivery", endless_delivery },
	{ "no-handlers", no_handlers },
	{ "no-stack", no_stack },
	{ "endless-steps", endless_steps },
	{ "fast-timers", fast_timers },
	{ "ipi-storm", ipi_storm },
	{ "init-storm", init_storm },
	{ "random-user", random_user },
	{ "random-kernel", random_kernel },
};

void test_main(void)
{
	rng_state = 1;
	ram_end = option_number("ram", 64) << 20;
	for (u32 i = 0; i < ARRAY_SIZE(cases); i++)
		if (option_is("case", cases[i].name)) {
			say("bad: %s\n", cases[i].name);
			cases[i].run();
		}
	say("bad: no such case\n");
	leave(2);
}
