/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bare-metal tests in long mode: what lib/ offers. An image defines test_main(),
 * which runs on the boot CPU at CPL 0 with interrupts off, identity page tables of 4 GiB
 * (supervisor's, but for the 2 MiB at BARE_USER), CR0.WP, EFER.NXE and SCE on, SMEP,
 * SMAP, PGE and PCIDE off, and prints TAP on the first serial port. Test points are
 * compared between CPUs by name, so a name never holds a measured value.
 *
 * Words of the command line that images know:
 *   cpus=N          how many CPUs there are (1)
 *   under=tcg       what carries this guest is QEMU's TCG: leave out what it does not survive
 *   stale=must      this CPU's TLB is known to be larger than any test: what need
 *                   not be flushed must still be there, or it is a failure
 */
#ifndef BARE64_H
#define BARE64_H

#define SEL_KCODE	0x08
#define SEL_KDATA	0x10
#define SEL_UCODE32	0x18	/* SYSRET wants this order: SDM 2B, SYSRET */
#define SEL_UDATA	0x20
#define SEL_UCODE	0x28
#define SEL_KCODE32	0x30
#define SEL_KCODE16	0x38
#define SEL_KDATA16	0x40
#define SEL_ABSENT	0x48	/* a data segment that is not present */
#define SEL_ABSENT_CODE	0x50
#define SEL_SPARE	0x58	/* tests' own: 8 descriptors */
#define SEL_TSS		0x98	/* one a CPU, 16 bytes each */

#define BARE_CPUS	16
#define BARE_USER	0x400000	/* see bare64.ld */
#define BARE_HEAP	0x800000
#define BARE_HEAP_END	0x2000000
#define BARE_TRAMPOLINE	0x6000		/* where SIPI sends APs */
#define BARE_STACK	16384

#define USER_DONE	0x80		/* the vector by which ring 3 code returns */

#define PORT_CONSOLE	0x3f8
#define PORT_EXIT	0xf4

#define CR0_PE		0x1
#define CR0_MP		0x2
#define CR0_EM		0x4
#define CR0_TS		0x8
#define CR0_ET		0x10
#define CR0_NE		0x20
#define CR0_WP		0x10000
#define CR0_AM		0x40000
#define CR0_NW		0x20000000
#define CR0_CD		0x40000000
#define CR0_PG		0x80000000
#define CR4_TSD		0x4
#define CR4_DE		0x8
#define CR4_PSE		0x10
#define CR4_PAE		0x20
#define CR4_PGE		0x80
#define CR4_OSFXSR	0x200
#define CR4_OSXMMEXCPT	0x400
#define CR4_FSGSBASE	0x10000
#define CR4_PCIDE	0x20000
#define CR4_SMEP	0x100000
#define CR4_SMAP	0x200000
#define BARE_CR0	(CR0_PG | CR0_WP | CR0_NE | CR0_ET | CR0_MP | CR0_PE)
#define BARE_CR4	(CR4_PAE | CR4_OSFXSR | CR4_OSXMMEXCPT)

#define MSR_APIC_BASE	0x1b
#define MSR_TSC_ADJUST	0x3b
#define MSR_TSC		0x10
#define MSR_DEADLINE	0x6e0
#define MSR_EFER	0xc0000080
#define MSR_STAR	0xc0000081
#define MSR_LSTAR	0xc0000082
#define MSR_SFMASK	0xc0000084
#define MSR_FS_BASE	0xc0000100
#define MSR_GS_BASE	0xc0000101
#define MSR_KGS_BASE	0xc0000102
#define MSR_TSC_AUX	0xc0000103
#define EFER_SCE	0x1
#define EFER_LME	0x100
#define EFER_NXE	0x800
#define BARE_EFER	(EFER_NXE | EFER_LME | EFER_SCE)

#define FLAG_CF		0x1
#define FLAG_ZF		0x40
#define FLAG_TF		0x100
#define FLAG_IF		0x200
#define FLAG_DF		0x400
#define FLAG_IOPL	0x3000
#define FLAG_NT		0x4000
#define FLAG_RF		0x10000
#define FLAG_AC		0x40000
#define FLAG_ID		0x200000

#ifndef __ASSEMBLER__

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
typedef int s32;
typedef long s64;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define __user_code	__attribute__((section(".user.text"), noinline, used))
#define __user_data	__attribute__((section(".user.data")))

/* --- TAP (console.c) --- */

void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));	/* %s %c %d %u %x %lx %lu %ld */
bool ok(bool good, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void skip(const char *name, const char *why);
/* Neither good nor bad: what this CPU did where the architecture leaves it free. */
void info(const char *name, const char *what);
/* ok() of two numbers that prints both where they differ. */
bool is(u64 got, u64 wanted, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Something that no test point can express: print it and leave with status 3. */
void bail(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
void leave(u8 value) __attribute__((noreturn));
/* Value of NAME=VALUE on the command line, or NULL; it ends at a space. */
const char *option(const char *name);
bool option_is(const char *name, const char *value);
u64 option_number(const char *name, u64 otherwise);

void test_main(void);

/* --- traps (traps.c, boot.S) --- */

struct frame {
	u64 r15, r14, r13, r12, r11, r10, r9, r8, rbp, rdi, rsi, rdx, rcx, rbx, rax;
	u64 vec, error;		/* error is 0 for vectors without one */
	u64 rip, cs, rflags, rsp, ss;
};

#define NO_TRAP		(-1)

/* The last trap within TRY() or user_run(). */
struct trap {
	s64 vec;		/* NO_TRAP: none */
	u64 error, cr2;
	s64 off;		/* of the RIP pushed, from where the code began */
	u64 rip, cs, rflags, rsp, ss;
	u64 frame;		/* where on the stack the CPU put it all (address of the pushed RIP) */
	u64 rax, rcx, rdx, rsi, rdi, r11;
};
extern struct trap last;

/* Where to go on, set by TRY(); 0 = a trap is unexpected. Boot CPU only. */
struct resume {
	u64 rip, rsp, start;
};
extern struct resume bare_resume;

void trap_reset(void);
/*
 * Run code that may trap, once: TRY("ud2", : : : "memory"). Any trap that has no
 * handler of its own ends it; `last` says how it went. The code may change stack,
 * privilege and segments, since CS, SS and RSP are put back; other registers it
 * changes must be among its outputs or clobbers.
 */
#define TRY(code, ...) do {							\
	trap_reset();								\
	asm volatile("movq $.Ltry_end%=, bare_resume(%%rip)\n\t"		\
		     "movq %%rsp, bare_resume+8(%%rip)\n\t"			\
		     "movq $.Ltry_code%=, bare_resume+16(%%rip)\n"		\
		     ".Ltry_code%=:\n\t" code "\n"				\
		     ".Ltry_end%=:\n\tmovq $0, bare_resume(%%rip)\n"		\
		     __VA_ARGS__);						\
} while (0)

/*
 * Run 32-bit code at CPL 0 and come back: CODE is AT&T text for .code32, which must
 * leave the stack as it was. ECX goes in and out. ESP is 32 bits, as the image's stack is.
 */
#define TRY32(code, ecx)							\
	TRY("pushq %[c32]; pushq $.L32_%=; lretq\n"				\
	    ".code32\n.L32_%=:\n\t" code "\n\t"					\
	    "pushl $8; pushl $.L64_%=; lretl\n"					\
	    ".code64\n.L64_%=:", : "+c"(ecx) : [c32] "i"(SEL_KCODE32)		\
	    : "rax", "rbx", "rdx", "rsi", "rdi", "memory", "cc")

/* A handler of one vector on all CPUs; true: return from the trap, false: as if there were none. */
typedef bool (*trap_handler)(struct frame *f);
void trap_handle(u8 vec, trap_handler handler);
/* The gate of a vector: DPL, IST (0 = none), present, trap gate rather than interrupt gate. */
void gate_set(u8 vec, u32 dpl, u32 ist, bool present, bool trap_gate);
void gate_to(u8 vec, void *entry);	/* the same with an entry of the test's own */
/* ok() that the last trap was this one; prints what it was if not. */
bool trapped(s64 vec, u64 error, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Ring 3 code, 64-bit: fn in .user.text, until it returns or traps. `last.vec` is USER_DONE then. */
void user_run(void (*fn)(void), u64 arg);
/* The same with all there is to choose. */
void user_enter(u64 rip, u64 arg, u64 rflags, u64 cs, u64 rsp, u64 ss);
extern u8 user_stack[];		/* 8 KiB, first page and last */
#define USER_STACK_TOP	((u64)user_stack + 8192 - 64)
void user_exit(void);		/* int $USER_DONE, as a place to return to */

struct tss {
	u32 reserved0;
	u64 rsp[3];
	u64 reserved1;
	u64 ist[7];
	u64 reserved2;
	u16 reserved3, iomap;
} __attribute__((packed));
extern struct tss bare_tss[BARE_CPUS];
extern u64 bare_gdt[];
extern u8 bare_ist[7][4096];	/* of the boot CPU: IST n (1 to 7) is bare_ist[n - 1] */
u32 cpu_number(void);
/* What sgdt and sidt store, and lgdt and lidt load. */
struct table_pointer {
	u16 limit;
	u64 base;
} __attribute__((packed));

/* --- paging (pages.c) --- */

#define PTE_P	0x1ul
#define PTE_RW	0x2ul
#define PTE_US	0x4ul
#define PTE_PWT	0x8ul
#define PTE_PCD	0x10ul
#define PTE_A	0x20ul
#define PTE_D	0x40ul
#define PTE_PS	0x80ul
#define PTE_G	0x100ul
#define PTE_NX	(1ul << 63)
#define PTE_ADDR	0x000ffffffffff000ul

void *page_alloc(void);		/* zeroed, 4 KiB; identity mapped */
void *page_alloc_aligned(u64 align, u64 size);
/*
 * The entry that maps va at `level` (1 = PTE ... 4 = PML4E) in the current tables,
 * upper ones made as needed with all rights. Changes nothing else, flushes nothing.
 */
u64 *page_entry(u64 va, int level);
void pages_init(void);

/* --- CPUs (smp.c) --- */

#define APIC_ID		0x20
#define APIC_VERSION	0x30
#define APIC_TPR	0x80
#define APIC_PPR	0xa0
#define APIC_EOI	0xb0
#define APIC_LDR	0xd0
#define APIC_DFR	0xe0
#define APIC_SVR	0xf0
#define APIC_ISR	0x100
#define APIC_IRR	0x200
#define APIC_ESR	0x280
#define APIC_ICR	0x300
#define APIC_ICR2	0x310
#define APIC_LVT_TIMER	0x320
#define APIC_LVT_LINT0	0x350
#define APIC_TIMER_INIT	0x380
#define APIC_TIMER_NOW	0x390
#define APIC_TIMER_DIV	0x3e0
#define APIC_SELF_IPI	0x3f0
#define ICR_FIXED	0x0
#define ICR_LOWEST	0x100
#define ICR_NMI		0x400
#define ICR_INIT	0x500
#define ICR_SIPI	0x600
#define ICR_LOGICAL	0x800
#define ICR_ASSERT	0x4000
#define ICR_LEVEL	0x8000
#define ICR_SELF	0x40000
#define ICR_ALL		0x80000
#define ICR_OTHERS	0xc0000

extern bool bare_x2apic;	/* all CPUs are in x2APIC mode: registers are MSRs */
u32 apic_read(u32 reg);
void apic_write(u32 reg, u32 value);
void apic_icr(u32 dest, u32 low);	/* dest: an id or a logical address as the mode has it */
u32 apic_id(void);
void apic_enable(void);			/* of this CPU: SVR on with spurious vector 0xff */
void apic_enable_x2apic(void);		/* of this CPU */
bool apic_bit(u32 reg, u8 vec);		/* of IRR or ISR */

/* Start APs until there are `cpus=` in all; returns how many there are, numbers 0 (boot CPU) to n - 1. */
u32 smp_start(void);
/* Run fn(arg) on an AP, or wait until it has done so. */
void smp_begin(u32 cpu, void (*fn)(void *), void *arg);
void smp_wait(u32 cpu);
void smp_run(u32 cpu, void (*fn)(void *), void *arg);
u32 smp_apic_id(u32 cpu);
/* What each AP found when it came from SIPI, in real mode. */
struct ap_start {
	u32 cr0, edx, eflags;
	u16 cs, ip;
};
extern struct ap_start ap_start[BARE_CPUS];

/* --- instructions --- */

static inline void outb(u16 port, u8 v) { asm volatile("outb %0, %1" : : "a"(v), "Nd"(port)); }
static inline u8 inb(u16 port) { u8 v; asm volatile("inb %1, %0" : "=a"(v) : "Nd"(port)); return v; }
static inline u32 inl(u16 port) { u32 v; asm volatile("inl %1, %0" : "=a"(v) : "Nd"(port)); return v; }
static inline u64 rdmsr(u32 msr)
{
	u32 lo, hi;

	asm volatile("rdmsr" : "=a"(lo), "=d"(hi) : "c"(msr));
	return (u64)hi << 32 | lo;
}
static inline void wrmsr(u32 msr, u64 v)
{
	asm volatile("wrmsr" : : "c"(msr), "a"((u32)v), "d"((u32)(v >> 32)) : "memory");
}
static inline void cpuid(u32 leaf, u32 sub, u32 r[4])
{
	asm volatile("cpuid" : "=a"(r[0]), "=b"(r[1]), "=c"(r[2]), "=d"(r[3]) : "a"(leaf), "c"(sub));
}
/* Bit of a register (0 = EAX ... 3 = EDX) of a leaf, false if there is no such leaf. */
static inline bool cpu_has(u32 leaf, u32 reg, u32 bit)
{
	u32 r[4];

	cpuid(leaf & 0xffff0000, 0, r);
	if (r[0] < leaf)
		return false;
	cpuid(leaf, 0, r);
	return r[reg] >> bit & 1;
}
#define HAS_PCID	cpu_has(1, 2, 17)
#define HAS_X2APIC	cpu_has(1, 2, 21)
#define HAS_DEADLINE	cpu_has(1, 2, 24)
#define HAS_MONITOR	cpu_has(1, 2, 3)
#define HAS_FSGSBASE	cpu_has(7, 1, 0)
#define HAS_TSC_ADJUST	cpu_has(7, 1, 1)
#define HAS_SMEP	cpu_has(7, 1, 7)
#define HAS_INVPCID	cpu_has(7, 1, 10)
#define HAS_SMAP	cpu_has(7, 1, 20)
#define HAS_1G		cpu_has(0x80000001, 3, 26)
#define HAS_RDTSCP	cpu_has(0x80000001, 3, 27)
bool is_amd(void);		/* console.c */
/* QEMU's TCG by CPUID; by CPUID or somewhere below, as under=tcg says. For what it does not survive only. */
bool on_tcg(void);
bool under_tcg(void);

#define CR_ACCESS(n)									\
static inline u64 read_cr##n(void) { u64 v; asm volatile("mov %%cr" #n ", %0" : "=r"(v) : : "memory"); return v; } \
static inline void write_cr##n(u64 v) { asm volatile("mov %0, %%cr" #n : : "r"(v) : "memory"); }
CR_ACCESS(0)
CR_ACCESS(2)
CR_ACCESS(3)
CR_ACCESS(4)
CR_ACCESS(8)
static inline u64 read_flags(void) { u64 v; asm volatile("pushfq; popq %0" : "=r"(v) : : "memory"); return v; }
static inline void invlpg(u64 va) { asm volatile("invlpg (%0)" : : "r"(va) : "memory"); }
static inline void irq_on(void) { asm volatile("sti" : : : "memory"); }
static inline void irq_off(void) { asm volatile("cli" : : : "memory"); }
static inline void cpu_relax(void) { asm volatile("pause" : : : "memory"); }
static inline u64 rdtsc(void)
{
	u32 lo, hi;

	asm volatile("lfence; rdtsc" : "=a"(lo), "=d"(hi) : : "memory");
	return (u64)hi << 32 | lo;
}
static inline void barrier(void) { asm volatile("" : : : "memory"); }

/* Wait with a limit that no working CPU comes near, be it one of four on a busy host; true if the condition came to hold. */
#define WAIT_TICKS	30000000000ul
#define wait_for(cond) ({						\
	u64 wait_end = rdtsc() + WAIT_TICKS;				\
	bool wait_good;							\
	while (!(wait_good = !!(cond)) && (s64)(rdtsc() - wait_end) < 0)\
		cpu_relax();						\
	wait_good;							\
})

void *memset(void *to, int c, u64 n);
void *memcpy(void *to, const void *from, u64 n);
int memcmp(const void *a, const void *b, u64 n);

#endif /* __ASSEMBLER__ */
#endif
