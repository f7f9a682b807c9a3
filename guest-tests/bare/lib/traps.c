// SPDX-License-Identifier: GPL-2.0-only
/* IDT, TSSs, and what becomes of a trap. */
#include "bare/bare64.h"

struct gate {
	u16 low, selector, flags, middle;
	u32 high, zero;
};

void traps_init(void);
void traps_init_cpu(u32 cpu);
void bare_trap(struct frame *f);

extern char bare_vectors[];
struct trap last;
struct resume bare_resume;
struct tss bare_tss[BARE_CPUS] __attribute__((aligned(4096)));	/* none crosses a page */
u8 bare_ist[7][4096] __attribute__((aligned(4096)));
u8 user_stack[8192] __attribute__((section(".user.data"), aligned(4096)));
static u8 rsp0_stack[BARE_STACK] __attribute__((aligned(16)));
static struct gate idt[256] __attribute__((aligned(4096)));
static trap_handler handlers[256];

void trap_reset(void)
{
	last = (struct trap){ .vec = NO_TRAP };
}

void trap_handle(u8 vec, trap_handler handler)
{
	handlers[vec] = handler;
}

static void gate_write(u8 vec, u64 entry, u32 dpl, u32 ist, bool present, bool trap_gate)
{
	idt[vec] = (struct gate){
		.low = (u16)entry, .selector = SEL_KCODE,
		.flags = (u16)(ist | (trap_gate ? 0xf00 : 0xe00) | dpl << 13 | (present ? 0x8000 : 0)),
		.middle = (u16)(entry >> 16), .high = (u32)(entry >> 32),
	};
}

void gate_set(u8 vec, u32 dpl, u32 ist, bool present, bool trap_gate)
{
	gate_write(vec, (u64)bare_vectors + 16u * vec, dpl, ist, present, trap_gate);
}

void gate_to(u8 vec, void *entry)
{
	gate_write(vec, (u64)entry, 3, 0, true, false);
}

u32 cpu_number(void)
{
	u16 tr;

	asm volatile("str %0" : "=r"(tr));
	/* Tests of the boot CPU load others. */
	return tr < SEL_TSS ? 0 : (tr - SEL_TSS) / 16u;
}

/* The descriptor of a CPU's TSS, and both tables loaded. */
void traps_init_cpu(u32 cpu)
{
	u64 base = (u64)&bare_tss[cpu], *desc = &bare_gdt[SEL_TSS / 8 + 2 * cpu];
	struct table_pointer p = { sizeof(idt) - 1, (u64)idt };

	bare_tss[cpu].iomap = sizeof(struct tss);
	desc[0] = (sizeof(struct tss) - 1) | (base & 0xffffff) << 16 | 0x89ul << 40 |
		  (base >> 24 & 0xff) << 56;
	desc[1] = base >> 32;
	asm volatile("lidt %0; ltr %1" : : "m"(p), "r"((u16)(SEL_TSS + 16 * cpu)) : "memory");
}

void traps_init(void)
{
	for (u32 v = 0; v < 256; v++)
		gate_set((u8)v, v == USER_DONE ? 3 : 0, 0, true, false);
	/* Those after which a stack may be no good. */
	gate_set(8, 0, 1, true, false);
	gate_set(2, 0, 2, true, false);
	bare_tss[0].rsp[0] = (u64)rsp0_stack + sizeof(rsp0_stack);
	for (u32 i = 0; i < 7; i++)
		bare_tss[0].ist[i] = (u64)bare_ist[i] + sizeof(bare_ist[i]);
	traps_init_cpu(0);
	/* Where ring 3 code returns to. Once, since with SMAP on it could not be written any more. */
	*(u64 *)(USER_STACK_TOP - 8) = (u64)user_exit;
}

void bare_trap(struct frame *f)
{
	u64 cr2 = read_cr2();

	if (handlers[f->vec] && handlers[f->vec](f))
		return;
	if (!bare_resume.rip || cpu_number())
		bail("CPU %u: unexpected trap %lu error 0x%lx at %lx:0x%lx rflags 0x%lx stack %lx:0x%lx cr2 0x%lx",
		     cpu_number(), f->vec, f->error, f->cs, f->rip, f->rflags, f->ss, f->rsp, cr2);
	last = (struct trap){
		.vec = (s64)f->vec, .error = f->error, .cr2 = cr2, .off = (s64)(f->rip - bare_resume.start),
		.rip = f->rip, .cs = f->cs, .rflags = f->rflags, .rsp = f->rsp, .ss = f->ss,
		.frame = (u64)&f->rip, .rax = f->rax, .rcx = f->rcx, .rdx = f->rdx, .rsi = f->rsi,
		.rdi = f->rdi, .r11 = f->r11,
	};
	f->rip = bare_resume.rip;
	f->rsp = bare_resume.rsp;
	f->cs = SEL_KCODE;
	f->ss = SEL_KDATA;
	f->rflags = 2;
	bare_resume.rip = 0;
}

void user_run(void (*fn)(void), u64 arg)
{
	user_enter((u64)fn, arg, 2, SEL_UCODE | 3, USER_STACK_TOP - 8, SEL_UDATA | 3);
}
