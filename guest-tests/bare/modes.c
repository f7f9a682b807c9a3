// SPDX-License-Identifier: GPL-2.0-only
/*
 * Modes other than 64-bit: compatibility mode with 32- and 16-bit segments (bases,
 * limits, expand-down, 16-bit addressing, ring 3), and real mode, entered from long
 * mode and left again.
 */
#include "bare64.h"

#define REAL		0x7000u		/* where the real mode part runs */
#define DATA_AT		0x7f00u

extern char real_begin[], real_end[];
extern u32 real_results[];
void real_run(void);

/*
 * Real mode. Each result is a doubleword of real_results, by the numbers of check_real().
 * Vectors: 0 #DE, 6 #UD and 13 #GP count themselves and go on at the address in `real_resume`;
 * 0x21 adds 0x1111 to AX.
 */
#define STR(x)	#x
#define XSTR(x)	STR(x)
#define R(symbol)	XSTR(REAL_AT) " + " #symbol " - real_begin"
#define REAL_AT	0x7000
#define PUT(n)	"movl %eax, " R(real_results) " + 4 * " #n "\n"
asm(".text\n"
    ".code64\n"
    "real_run:\n"
    "	pushq %rbx; pushq %rbp; pushq %r12; pushq %r13; pushq %r14; pushq %r15\n"
    "	movq %rsp, real_rsp\n"
    "	pushq $" XSTR(SEL_KCODE16) "\n"
    "	pushq $" R(real_16) "\n"
    "	lretq\n"
    "real_back:\n"
    "	movl $" XSTR(SEL_KDATA) ", %eax\n"
    "	movw %ax, %ds; movw %ax, %es; movw %ax, %ss\n"
    "	xorl %eax, %eax; movw %ax, %fs; movw %ax, %gs\n"
    "	movq real_rsp, %rsp\n"
    "	popq %r15; popq %r14; popq %r13; popq %r12; popq %rbp; popq %rbx\n"
    "	ret\n"
    "	.code32\n"
    "real_32:\n"
    "	movl $" XSTR(SEL_KDATA) ", %eax\n"
    "	movw %ax, %ds; movw %ax, %es; movw %ax, %ss\n"
    "	movl $boot_stack_low, %esp\n"
    "	lidt real_idt\n"
    "	call long_mode\n"
    "	ljmp $" XSTR(SEL_KCODE) ", $real_back\n"
    /* From here on it is a copy at REAL that runs. */
    "	.code16\n"
    "real_begin:\n"
    "real_16:\n"
    "	movw $" XSTR(SEL_KDATA16) ", %ax\n"
    "	movw %ax, %ds; movw %ax, %es; movw %ax, %fs; movw %ax, %gs; movw %ax, %ss\n"
    "	movl $0x6ff0, %esp\n"
    "	movl %cr0, %eax\n"
    "	andl $0x7fffffff, %eax\n"
    "	movl %eax, %cr0\n"		/* out of long mode: SDM 3A 9.8.5.4 */
    "	movl $0xc0000080, %ecx\n"
    "	xorl %eax, %eax; xorl %edx, %edx\n"
    "	wrmsr\n"
    "	movl %eax, %cr4\n"
    "	movl %cr0, %eax\n"
    "	andl $0xfffffffe, %eax\n"
    "	movl %eax, %cr0\n"
    "	ljmp $0, $" R(real_start) "\n"
    "real_start:\n"
    "	xorw %ax, %ax\n"
    "	movw %ax, %ds; movw %ax, %es; movw %ax, %ss; movw %ax, %fs; movw %ax, %gs\n"
    "	movw $0x6ff0, %sp\n"
    "	lidtl " R(real_ivt) "\n"
    "	movl $" R(real_fault) ", 0 * 4\n"
    "	movl $" R(real_fault) ", 6 * 4\n"
    "	movl $" R(real_fault) ", 13 * 4\n"
    "	movl $" R(real_fault) ", 12 * 4\n"
    "	movl $" R(real_int) ", 0x21 * 4\n"
    /* 0: a segment's base is its selector times 16 */
    "	movw $0x0700, %ax; movw %ax, %es\n"
    "	movl $0x12345678, " XSTR(DATA_AT) "\n"
    "	movl %es:0xf00, %eax\n" PUT(0)
    /* 1: 16-bit addresses wrap */
    "	movw $0xffff, %bx; movw $0x7f01, %si\n"
    "	movl (%bx, %si), %eax\n" PUT(1)
    /* 2: BP is relative to SS */
    "	movw $0x0710, %cx; movw $0xe00, %bp\n"
    "	movw %cx, %ss; movl (%bp), %eax; movw $0, %cx; movw %cx, %ss\n" PUT(2)
    /* 3: INT n by the IVT, and 4: the flags that the handler sees (IF and TF off) */
    "	sti\n"
    "	movl $0x1234, %eax\n"
    "	int $0x21\n" PUT(3)
    "	movl " R(real_seen) ", %eax\n" PUT(4)
    "	pushfw; popw %ax; andl $0x200, %eax\n" PUT(5)	/* 5: IF is back */
    "	cli\n"
    /* 6: #DE: pushed IP is the instruction's */
    "	movw $1f - real_begin + " XSTR(REAL_AT) ", " R(real_resume) "\n"
    "	xorl %ecx, %ecx; movl $0, " R(real_ip) "\n"
    "2:	divb %cl\n"
    "1:	movl " R(real_ip) ", %eax; subl $2b - real_begin + " XSTR(REAL_AT) ", %eax\n" PUT(6)
    "	movl " R(real_count) ", %eax\n" PUT(7)
    /* 8: #UD */
    "	movw $1f - real_begin + " XSTR(REAL_AT) ", " R(real_resume) "\n"
    "	ud2\n"
    "1:	movl " R(real_count) ", %eax\n" PUT(8)
    /* 9: a word at offset 0xffff is beyond the limit */
    "	movw $1f - real_begin + " XSTR(REAL_AT) ", " R(real_resume) "\n"
    "	movw $0xffff, %bx\n"
    "	movw (%bx), %ax\n"
    "1:	movl " R(real_count) ", %eax\n" PUT(9)
    /* 10: a string instruction wraps DI */
    "	movw $0x1000, %ax; movw %ax, %es\n"
    "	cld; movw $0xfffe, %di; movw $4, %cx; movb $0x5a, %al\n"
    "	rep stosb\n"
    "	movzwl %di, %eax; shll $16, %eax; movw %cx, %ax\n" PUT(10)
    "	movl %es:0, %eax; andl $0xffff, %eax\n" PUT(11)
    /* 12: prefixes for 32 bits */
    "	movl $" XSTR(DATA_AT) ", %ebx; addr32 movl (%ebx), %eax\n" PUT(12)
    /* 13: LES and far call */
    "	movw $0xf00, " XSTR(DATA_AT) " + 16; movw $0x700, " XSTR(DATA_AT) " + 18\n"
    "	lesw " XSTR(DATA_AT) " + 16, %di; movl %es:(%di), %eax\n" PUT(13)
    "	xorl %eax, %eax; lcall $0x700, $real_far - real_begin\n" PUT(14)
    /* 15: JCXZ looks at CX, LOOP at CX */
    "	xorl %eax, %eax; movl $0x10000, %ecx; jcxz 1f; incl %eax; 1:\n" PUT(15)
    "	xorl %eax, %eax; movl $0x10003, %ecx; 1: incl %eax; loopw 1b\n" PUT(16)
    /* 17: SS:SP wraps at a push */
    "	movw $0x2000, %cx; movw %sp, %dx; movw %cx, %ss; xorw %sp, %sp\n"
    "	pushw $0x77; movzwl %sp, %eax; xorw %cx, %cx; movw %cx, %ss; movw %dx, %sp\n" PUT(17)
    "	movw $0x2000, %cx; movw %cx, %es; movzwl %es:0xfffe, %eax\n" PUT(18)
    /* 19: PUSHA, POPA, ENTER, LEAVE, BOUND */
    "	movw $0x1111, %ax; movw $0x2222, %di; pushaw; xorw %ax, %ax; xorw %di, %di; popaw\n"
    "	shll $16, %eax; movw %di, %ax\n" PUT(19)
    "	movw %sp, %si; movw $0x5555, %bp; enterw $16, $0; movw %si, %ax; subw %sp, %ax; movzwl %ax, %eax; leavew\n"
    "	subw %sp, %si; addw %si, %ax\n" PUT(20)
    /* Back. */
    "	lgdtl " R(real_gdt) "\n"
    "	movl $0x11, %eax\n"
    "	movl %eax, %cr0\n"
    "	ljmpl $" XSTR(SEL_KCODE32) ", $real_32\n"
    "real_fault:\n"
    "	pushw %bp; movw %sp, %bp; pushl %eax\n"
    "	movzwl 2(%bp), %eax; movl %eax, " R(real_ip) "\n"
    "	incl " R(real_count) "\n"
    "	movw " R(real_resume) ", %ax; movw %ax, 2(%bp)\n"
    "	popl %eax; popw %bp; iretw\n"
    "real_int:\n"
    "	pushfw; popw " R(real_seen) "; andw $0x300, " R(real_seen) "\n"
    "	addw $0x1111, %ax; iretw\n"
    "real_far:\n"
    "	movl $0xfa5, %eax; lretw\n"
    "	.balign 4\n"
    "real_ivt: .word 0x3ff; .long 0\n"
    "	.balign 4\n"
    "real_gdt: .word " XSTR(SEL_TSS) " - 1; .long bare_gdt\n"
    "	.balign 4\n"
    "real_count: .long 0\n"
    "real_ip: .long 0\n"
    "real_seen: .long 0\n"
    "real_resume: .long 0\n"
    "real_results: .fill 32, 4, 0xeeeeeeee\n"
    "real_end:\n"
    "	.data\n"
    "	.balign 8\n"
    "real_rsp: .quad 0\n"
    "real_idt: .word 0; .long 0\n"
    "	.fill 512, 1, 0\n"
    "boot_stack_low:\n"
    "	.text\n"
    "	.code64\n");

static void real_mode(void)
{
	static const struct {
		u32 want;
		const char *name;
	} wanted[] = {
		{ 0x12345678, "a segment's base is its selector times 16" },
		{ 0x12345678, "16-bit addresses wrap" },
		{ 0x12345678, "BP is relative to SS" },
		{ 0x2345, "INT n by the IVT" },
		{ 0, "INT n clears IF and TF" },
		{ 0x200, "IRET loads IF" },
		{ 0, "#DE: IP is the instruction's" },
		{ 1, "#DE by the IVT" },
		{ 2, "#UD by the IVT" },
		{ 3, "#GP at a word across the limit" },
		{ 0x20000, "REP STOSB wraps DI and ends with CX 0" },
		{ 0x5a5a, "REP STOSB has written behind the wrap" },
		{ 0x12345678, "address-size prefix" },
		{ 0x12345678, "LES" },
		{ 0xfa5, "far call and return" },
		{ 0, "JCXZ looks at CX" },
		{ 3, "LOOP counts CX" },
		{ 0xfffe, "SP wraps" },
		{ 0x77, "and what was pushed is at the segment's end" },
		{ 0x11112222, "PUSHA, POPA" },
		{ 18, "ENTER, LEAVE" },
	};
	struct table_pointer gdt, idt;
	u32 *results = (u32 *)(u64)(REAL + (u32)((char *)real_results - real_begin));

	asm volatile("sgdt %0; sidt %1" : "=m"(gdt), "=m"(idt));
	memcpy((void *)(u64)REAL, real_begin, (u64)(real_end - real_begin));
	real_run();
	asm volatile("lgdt %0; lidt %1" : : "m"(gdt), "m"(idt));
	bare_gdt[SEL_TSS / 8] &= ~(2ul << 40);
	asm volatile("ltr %0" : : "r"((u16)SEL_TSS));
	for (u32 i = 0; i < ARRAY_SIZE(wanted); i++)
		is(results[i], wanted[i].want, "real mode: %s", wanted[i].name);
}

/* --- compatibility mode --- */

static u64 descriptor(u64 base, u32 limit, u32 type, bool big, bool pages)
{
	return (limit & 0xffff) | (base & 0xffffff) << 16 | (u64)type << 40 | (u64)(limit >> 16 & 0xf) << 48 |
	       (big ? 1ul << 54 : 0) | (pages ? 1ul << 55 : 0) | (base >> 24 & 0xff) << 56;
}

static u32 data[64];

static void segments32(void)
{
	u64 *spare = &bare_gdt[SEL_SPARE / 8];
	u64 v = 0;

	for (u32 i = 0; i < 64; i++)
		data[i] = 0x1000 + i;
	spare[0] = descriptor((u64)data, 63, 0x93, true, false);	/* 64 bytes: data[0..15] */
	spare[1] = descriptor((u64)data - 0x10000, 0xffff, 0x97, true, false);	/* expand-down: above 0xffff */
	spare[2] = descriptor((u64)data, 0xffff, 0x91, true, false);	/* not to be written */
	TRY32("movl $0x58, %%eax; movw %%ax, %%fs; movl %%fs:4, %%ecx", v);
	is(v, 0x1001, "32-bit: a segment's base");
	TRY32("movl %%fs:60, %%ecx", v);
	ok(last.vec == NO_TRAP && v == 0x100f, "32-bit: the last bytes within the limit");
	TRY32("movl %%fs:61, %%ecx", v);
	trapped(13, 0, "#GP(0): 32-bit: beyond the limit");
	TRY32("movl $0x58, %%eax; movw %%ax, %%ss; movl %%ss:64, %%ecx", v);
	trapped(12, 0, "#SS(0): 32-bit: beyond the stack segment's limit");
	TRY32("movl $0x60, %%eax; movw %%ax, %%fs; movl %%fs:0x10004, %%ecx", v);
	ok(last.vec == NO_TRAP && v == 0x1001, "32-bit: expand-down segment, above its limit");
	TRY32("movl $0x60, %%eax; movw %%ax, %%fs; movl %%fs:0xfffc, %%ecx", v);
	trapped(13, 0, "#GP(0): 32-bit: expand-down segment, below its limit");
	TRY32("movl $0x68, %%eax; movw %%ax, %%fs; movl %%fs:4, %%ecx", v);
	ok(last.vec == NO_TRAP && v == 0x1001, "32-bit: read of a segment that cannot be written");
	TRY32("movl $0x68, %%eax; movw %%ax, %%fs; movl %%ecx, %%fs:4", v);
	trapped(13, 0, "#GP(0): 32-bit: write to a segment that cannot be written");
	TRY32("movl %%ecx, %%cs:data", v);
	trapped(13, 0, "#GP(0): 32-bit: write by CS");
	TRY32("xorl %%eax, %%eax; movw %%ax, %%fs; movl %%fs:4, %%ecx", v);
	trapped(13, 0, "#GP(0): 32-bit: use of a null selector");
	asm volatile("movw %w0, %%fs" : : "r"(0));

	data[0] = 5;
	data[1] = 10;
	TRY32("movl $7, %%eax; boundl %%eax, data", v);
	trapped(NO_TRAP, 0, "32-bit: BOUND within");
	TRY32("movl $11, %%eax; boundl %%eax, data", v);
	trapped(5, 0, "#BR: 32-bit: BOUND outside");
	TRY32("movl $0x7fffffff, %%eax; incl %%eax; into", v);
	trapped(4, 0, "#OF: 32-bit: INTO");
	TRY32("movl $-1, %%eax; .byte 0x40; movl %%eax, %%ecx", v);
	is(v, 0, "32-bit: 0x40 is INC");
	/* By a segment, so that 16 bits are enough: [bx + si + 4]. */
	data[3] = 0xabcd;
	TRY32("movl $0x58, %%eax; movw %%ax, %%fs; movl $0xf0004, %%ebx; movl $0xf0004, %%esi; "
	      "addr16 movl %%fs:4(%%bx, %%si), %%ecx", v);
	is(v, 0xabcd, "32-bit: 16-bit addressing ignores the upper halves");
	TRY32("pushl $0x12345; popl %%ecx; pushw $0x77; popw %%ax; shll $16, %%eax; orl %%eax, %%ecx", v);
	ok(v == (0x12345 | 0x770000), "32-bit: PUSH and POP of both sizes");
	TRY32("pushl %%ds; popl %%ecx", v);
	is(v & 0xffff, SEL_KDATA, "32-bit: PUSH of a segment register");
	{
		u64 wide = 0xffffffff00000000ul;

		TRY32("movl $1, %%ecx", wide);
		is(wide, 1, "32-bit: a write of 32 bits zero-extends");
		wide = 0xffffffff00000000ul | (u64)&data[2];
		data[2] = 0x2468;
		TRY32("movl (%%ecx), %%ecx", wide);
		is(wide, 0x2468, "32-bit: addresses have 32 bits");
	}
	TRY32("lcall $" XSTR(SEL_KCODE32) ", $1f; jmp 2f; 1: movl $0x99, %%ecx; lretl; 2:", v);
	is(v, 0x99, "32-bit: far call and return");
	TRY32("ud2", v);
	trapped(6, 0, "#UD from 32-bit code");
	is(last.cs, SEL_KCODE32, "and its CS is pushed");
	TRY32("int $0x70", v);
	trapped(0x70, 0, "INT n from 32-bit code");
	asm volatile("movw %w0, %%fs; movw %w1, %%ss" : : "r"(0), "r"(SEL_KDATA));
}

/* Far calls by gates: to 64-bit code, with and without a change of privilege (SDM 3A 5.8.3.1). */
asm(".text\n"
    "call_target:\n"
    "	int $0x71\n"
    "	ud2\n");
extern char call_target[];

static void call_gate(u16 sel, u64 entry, u32 dpl, bool present)
{
	u64 *d = &bare_gdt[sel / 8];

	d[0] = (entry & 0xffff) | (u64)SEL_KCODE << 16 | (u64)(0xc | dpl << 5 | (present ? 0x80 : 0)) << 40 |
	       (entry >> 16 & 0xffff) << 48;
	d[1] = entry >> 32;
}

static struct {
	u32 offset;
	u16 selector;
} __attribute__((packed)) gate_pointer __user_data = { 0, SEL_SPARE | 3 };
__user_code static void user_gate(void) { asm volatile("lcall *%0" : : "m"(gate_pointer) : "memory"); }

static void call_gates(void)
{
	call_gate(SEL_SPARE, (u64)call_target, 3, true);
	user_run(user_gate, 0);
	trapped(0x71, 0, "far call by a gate from ring 3");
	is(last.cs, SEL_KCODE, "call gate: CS");
	ok(last.rsp == bare_tss[0].rsp[0] - 32, "call gate: four words on the stack of RSP0");
	is(last.ss & ~3ul, 0, "call gate: SS is null");
	call_gate(SEL_SPARE, (u64)call_target, 0, true);
	user_run(user_gate, 0);
	trapped(13, SEL_SPARE, "#GP(selector): a call gate of DPL 0 from ring 3");
	call_gate(SEL_SPARE, (u64)call_target, 3, false);
	user_run(user_gate, 0);
	trapped(11, SEL_SPARE, "#NP(selector): a call gate that is not present");
}

/* Ring 3, 32-bit. The code is assembled for it, in the page that ring 3 may use. */
asm(".section .user.text, \"ax\"\n"
    ".code32\n"
    "user32_code:\n"
    "	movl $0x11223344, %ecx\n"
    "	movl %esp, %edx\n"
    "	pushl %ecx\n"
    "	popl %esi\n"
    "	int $" XSTR(USER_DONE) "\n"
    "user32_syscall:\n"
    "	movl $1, %eax\n"
    "	int3\n"
    ".code64\n"
    ".text\n");
extern char user32_code[], user32_syscall[];

static void ring3_32(void)
{
	u64 sp = USER_STACK_TOP - 64;

	user_enter((u64)user32_code, 0, 2, SEL_UCODE32 | 3, sp, SEL_UDATA | 3);
	trapped(USER_DONE, 0, "32-bit ring 3 and back");
	is(last.cs, SEL_UCODE32 | 3, "32-bit ring 3: CS");
	ok(last.rcx == 0x11223344 && last.rsi == 0x11223344 && last.rdx == (u32)sp, "32-bit ring 3: registers and stack");
	gate_set(3, 3, 0, true, false);
	user_enter((u64)user32_syscall, 0, 2, SEL_UCODE32 | 3, sp, SEL_UDATA | 3);
	trapped(3, 0, "int3 from 32-bit ring 3");
	gate_set(3, 0, 0, true, false);
	/* Beyond 4 GiB a 32-bit segment has nothing. */
	user_enter(0x100000000ul + (u64)user32_code, 0, 2, SEL_UCODE32 | 3, sp, SEL_UDATA | 3);
	trapped(13, 0, "#GP(0): IRET to 32-bit code beyond its limit");
}

void test_main(void)
{
	segments32();
	call_gates();
	ring3_32();
	real_mode();
}
