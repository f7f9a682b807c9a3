// SPDX-License-Identifier: GPL-2.0-only
/*
 * Exceptions, interrupts and privilege in long mode: vectors, error codes, what is
 * pushed, stacks, priorities, shadows, NMIs, SYSCALL. SDM 3A chapter 6 unless a
 * comment says otherwise.
 */
#include "bare64.h"

#define NONCANONICAL	0x8000000000000000ul
#define ABSENT_PAGE	0x40000000000ul		/* no PML4 entry */
extern char bare_vectors[];

#define VEC_IRQ		0x50
#define VEC_IRQ2	0x60

/* --- faults and traps of single instructions --- */

static void divide(void)
{
	u64 a = 1, d = 0;

	TRY("divq %2", : "+a"(a), "+d"(d) : "r"(0ul));
	trapped(0, 0, "#DE: division by zero");
	is((u64)last.off, 0, "#DE: RIP is the instruction's");
	a = 5;
	d = 7;
	TRY("divq %2", : "+a"(a), "+d"(d) : "r"(7ul));
	trapped(0, 0, "#DE: quotient too large");
	ok(a == 5 && d == 7, "#DE: registers are unchanged");
	a = 1ul << 63;
	d = ~0ul;
	TRY("idivq %2", : "+a"(a), "+d"(d) : "r"(-1l));
	trapped(0, 0, "#DE: smallest number by -1");
	TRY("movw $0x8000, %%ax; movb $-1, %%cl; cwd; movw $-32768, %%ax; idivb %%cl", : : : "rax", "rcx", "rdx");
	trapped(0, 0, "#DE: idiv of a byte");
}

static void software(void)
{
	TRY("int3", : : : "memory");
	trapped(3, 0, "#BP by int3");
	is((u64)last.off, 1, "#BP: RIP is behind it");
	TRY(".byte 0xcd, 3", : : : "memory");
	trapped(3, 0, "#BP by int $3");
	is((u64)last.off, 2, "#BP by int $3: RIP is behind it");
	TRY("int $4", : : : "memory");
	trapped(4, 0, "#OF by int $4");
	TRY(".byte 0xce", : : : "memory");
	trapped(6, 0, "#UD: INTO in 64-bit mode");
	TRY(".byte 0x62, 0x00", : : : "memory");
	ok(last.vec == 6, "#UD: BOUND in 64-bit mode");
	/* By the entry of a vector without one: its frame is right only if none is pushed. */
	gate_to(14, bare_vectors + 16 * 0x70);
	TRY("int $14", : : : "memory");
	ok(last.vec == 0x70 && last.cs == SEL_KCODE && last.off == 2, "int $14 pushes no error code");
	gate_set(14, 0, 0, true, false);
	TRY("int $0xff", : : : "memory");
	trapped(0xff, 0, "int $255");
	is(last.rflags & FLAG_RF, 0, "int n: RF is not pushed");
}

static void undefined(void)
{
	TRY("ud2", : : : "memory");
	trapped(6, 0, "#UD: ud2");
	is((u64)last.off, 0, "#UD: RIP is the instruction's");
	ok(last.rflags & FLAG_RF, "a fault pushes RF = 1");
	TRY(".byte 0xf0, 0x90", : : : "memory");
	trapped(6, 0, "#UD: lock nop");
	TRY(".byte 0xf0; movq %%rax, (%%rsp)", : : : "memory");
	trapped(6, 0, "#UD: lock mov");
	TRY(".byte 0xf0; addq %%rax, %%rbx", : : : "rbx");
	trapped(6, 0, "#UD: lock add with a register operand");
	TRY(".byte 0x06", : : : "memory");
	trapped(6, 0, "#UD: push es in 64-bit mode");
	TRY(".byte 0x27", : : : "memory");
	trapped(6, 0, "#UD: daa in 64-bit mode");
	TRY(".byte 0x9a, 0, 0, 0, 0, 8, 0", : : : "memory");
	trapped(6, 0, "#UD: far call to an immediate in 64-bit mode");
	TRY("movq %%rax, %%cr1", : : : "memory");
	trapped(6, 0, "#UD: CR1");
	TRY("movq %%cr5, %%rax", : : : "rax");
	trapped(6, 0, "#UD: CR5");
	TRY("movw %%ax, %%cs", : : : "memory");
	trapped(6, 0, "#UD: mov to CS");
	TRY(".rept 14; .byte 0x66; .endr; nop", : : : "memory");
	trapped(NO_TRAP, 0, "an instruction of 15 bytes is good");
	TRY(".rept 15; .byte 0x66; .endr; nop", : : : "memory");
	trapped(13, 0, "#GP(0): an instruction of 16 bytes");
}

/* Each combination of CR0.EM, MP and TS (SDM 3A 2.5, table 2-2; 13.1 for SSE). */
static void device_not_available(void)
{
	static const struct {
		u64 cr0;
		s64 fpu, wait, sse;
	} cases[] = {
		{ 0, NO_TRAP, NO_TRAP, NO_TRAP },
		{ CR0_TS, 7, NO_TRAP, 7 },
		{ CR0_MP, NO_TRAP, NO_TRAP, NO_TRAP },
		{ CR0_MP | CR0_TS, 7, 7, 7 },
		{ CR0_EM, 7, NO_TRAP, 6 },
		{ CR0_EM | CR0_TS, 7, NO_TRAP, 6 },
		{ CR0_EM | CR0_MP, 7, NO_TRAP, 6 },
		{ CR0_EM | CR0_MP | CR0_TS, 7, 7, 6 },
	};
	u64 cr0 = read_cr0() & ~(u64)(CR0_EM | CR0_MP | CR0_TS);

	for (u32 i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *em = cases[i].cr0 & CR0_EM ? "EM " : "", *mp = cases[i].cr0 & CR0_MP ? "MP " : "",
			   *ts = cases[i].cr0 & CR0_TS ? "TS " : "";

		write_cr0(cr0 | cases[i].cr0);
		TRY("fnop", : : : "memory");
		trapped(cases[i].fpu, 0, "x87 with CR0 { %s%s%s}", em, mp, ts);
		TRY("fwait", : : : "memory");
		trapped(cases[i].wait, 0, "fwait with CR0 { %s%s%s}", em, mp, ts);
		TRY("xorps %%xmm0, %%xmm0", : : : "memory");
		trapped(cases[i].sse, 0, "SSE with CR0 { %s%s%s}", em, mp, ts);
	}
	write_cr0(cr0 | CR0_TS | CR0_MP);
	asm volatile("clts");
	is(read_cr0() & CR0_TS, 0, "clts clears CR0.TS");
	write_cr0(BARE_CR0);
	write_cr4(BARE_CR4 & ~(u64)CR4_OSFXSR);
	TRY("xorps %%xmm0, %%xmm0", : : : "memory");
	trapped(6, 0, "#UD: SSE without CR4.OSFXSR");
	write_cr4(BARE_CR4);
}

static void floating_point(void)
{
	u16 cw = 0x37b;		/* division by zero unmasked */
	u32 csr = 0x1f80 & ~(1u << 9), plain = 0x1f80;

	TRY("fninit; fldcw %0; fldz; fld1; fdiv %%st(1), %%st; nop; fwait", : : "m"(cw) : "memory");
	trapped(16, 0, "#MF at the instruction after the one that failed");
	TRY("fninit; fldcw %0; fldz; fld1; fdiv %%st(1), %%st; fnstsw %%ax; fnclex; fwait", : : "m"(cw)
	    : "rax", "memory");
	trapped(NO_TRAP, 0, "no #MF after fnclex");
	asm volatile("fninit");
	TRY("ldmxcsr %0; xorps %%xmm0, %%xmm0; movaps %%xmm0, %%xmm1; divps %%xmm0, %%xmm0; "
	    "cvtsi2ss %1, %%xmm2; divss %%xmm1, %%xmm2", : : "m"(csr), "r"(1) : "memory");
	trapped(19, 0, "#XM: division by zero");
	write_cr4(BARE_CR4 & ~(u64)CR4_OSXMMEXCPT);
	TRY("ldmxcsr %0; cvtsi2ss %1, %%xmm2; divss %%xmm1, %%xmm2", : : "m"(csr), "r"(1) : "memory");
	trapped(6, 0, "#UD: the same without CR4.OSXMMEXCPT");
	write_cr4(BARE_CR4);
	asm volatile("ldmxcsr %0" : : "m"(plain));
	csr = 0x10000;
	TRY("ldmxcsr %0", : : "m"(csr) : "memory");
	trapped(13, 0, "#GP(0): a reserved bit of MXCSR");
	TRY("movaps (%0), %%xmm0", : : "r"(user_stack + 8) : "memory");
	trapped(13, 0, "#GP(0): movaps of an address that is not aligned");
	TRY("movups (%0), %%xmm0", : : "r"(user_stack + 8) : "memory");
	trapped(NO_TRAP, 0, "movups of the same address");
}

/* --- debug --- */

static void debug(void)
{
	u64 dr6, after;

	asm volatile("movq %0, %%dr6" : : "r"(0xffff0ff0ul));
	TRY("pushfq; orq $0x100, (%%rsp); popfq; nop; .Ltf%=: nop; nop", : : : "memory", "cc");
	asm volatile("movq %%dr6, %0" : "=r"(dr6));
	trapped(1, 0, "#DB by TF");
	is((u64)last.off, 11, "#DB by TF: after the instruction behind POPF");
	ok(dr6 & 1 << 14, "#DB by TF: DR6.BS");
	ok(last.rflags & FLAG_TF, "#DB by TF: TF is pushed");
	TRY("pushfq; orq $0x100, (%%rsp); popfq; ud2", : : : "memory", "cc");
	trapped(6, 0, "TF and a fault: the fault comes, no #DB before it");
	TRY("pushfq; orq $0x100, (%%rsp); popfq; int $0x70", : : : "memory", "cc");
	trapped(0x70, 0, "TF and INT n: delivered, with TF cleared in the handler");
	TRY("leaq 1f(%%rip), %0; movq %%ss, %%rax; pushfq; orq $0x100, (%%rsp); popfq; movq %%rax, %%ss; nop; 1: nop; nop"
	    , : "=&r"(after) : : "rax", "memory", "cc");
	/* With TF set by POPF the first trap is after MOV SS, which itself holds it off (SDM 3A 6.8.3). */
	trapped(1, 0, "#DB by TF and MOV SS");
	is(last.rip, after, "#DB by TF after MOV SS: behind the instruction that follows it");
	TRY(".byte 0xf1", : : : "memory");
	trapped(1, 0, "#DB by INT1");
	is((u64)last.off, 1, "#DB by INT1: RIP is behind it");
}

static volatile u64 watched;

static void breakpoints(void)
{
	u64 dr6, at;

	asm volatile("movq $1f, %0; jmp 2f; 1: nop; ret; 2:" : "=r"(at));
	asm volatile("movq %0, %%dr0; movq %1, %%dr7" : : "r"(at), "r"(0x401ul));
	TRY("call *%0", : : "r"(at) : "memory");
	asm volatile("movq %%dr6, %0" : "=r"(dr6));
	trapped(1, 0, "#DB at an address for execution (DR0)");
	is(last.rip, at, "#DB at an address: a fault, RIP is the instruction's");
	is(dr6 & 0xf, 1, "#DB at an address: DR6.B0");
	asm volatile("movq %0, %%dr6; movq %1, %%dr1; movq %2, %%dr7" : : "r"(0xffff0ff0ul), "r"(&watched),
		     "r"(0x404ul | 0xd00000ul));
	TRY("movl $1, %0; nop", : : "m"(watched) : "memory");
	asm volatile("movq %%dr6, %0" : "=r"(dr6));
	trapped(1, 0, "#DB at a write of a watched address (DR1)");
	is(dr6 & 0xf, 2, "#DB at a write: DR6.B1");
	TRY("movl %0, %%eax", : : "m"(watched) : "rax");
	trapped(NO_TRAP, 0, "no #DB at a read of an address watched for writes");
	asm volatile("movq %0, %%dr7" : : "r"(0x2400ul));
	TRY("movq %%dr0, %%rax", : : : "rax");
	trapped(1, 0, "#DB: DR7.GD guards the debug registers");
	asm volatile("movq %0, %%dr7" : : "r"(0x400ul));
}

/* --- segments and descriptors --- */

static void load_ds(u16 sel)
{
	TRY("movw %0, %%ds", : : "r"(sel) : "memory");
}

/* Back to the TSS of lib/, which is busy since it was loaded first. */
static void own_tss(void)
{
	bare_gdt[SEL_TSS / 8] &= ~(2ul << 40);
	asm volatile("ltr %0" : : "r"((u16)SEL_TSS));
}

static void segments(void)
{
	u64 *spare = &bare_gdt[SEL_SPARE / 8];
	u16 kept;

	load_ds(SEL_ABSENT);
	trapped(11, SEL_ABSENT, "#NP(selector): DS with a segment that is not present");
	TRY("movw %0, %%ss", : : "r"((u16)SEL_ABSENT) : "memory");
	trapped(12, SEL_ABSENT, "#SS(selector): SS with a segment that is not present");
	load_ds(0x1ff8);
	trapped(13, 0x1ff8, "#GP(selector): DS with a selector beyond the GDT");
	load_ds(0x0c);
	trapped(13, 0x0c, "#GP(selector): DS from an LDT that is not there");
	load_ds(SEL_TSS);
	trapped(13, SEL_TSS, "#GP(selector): DS with a system segment");
	load_ds(SEL_KDATA | 3);
	trapped(13, SEL_KDATA, "#GP(selector): DS with DPL 0 and RPL 3");
	load_ds(SEL_KCODE);
	trapped(NO_TRAP, 0, "DS with code that can be read");
	spare[0] = 0x00af99000000fffful;
	load_ds(SEL_SPARE);
	trapped(13, SEL_SPARE, "#GP(selector): DS with code that cannot be read");
	load_ds(0);
	trapped(NO_TRAP, 0, "DS with a null selector");
	TRY("movw %0, %%ss", : : "r"((u16)0) : "memory");
	trapped(NO_TRAP, 0, "SS with a null selector at CPL 0 in 64-bit mode");
	TRY("movw %0, %%ss", : : "r"((u16)3) : "memory");
	trapped(13, 0, "#GP(0): SS with a null selector whose RPL is not CPL");
	TRY("movw %0, %%ss", : : "r"((u16)SEL_KCODE) : "memory");
	trapped(13, SEL_KCODE, "#GP(selector): SS with code");
	load_ds(SEL_KDATA);
	spare[0] = 0x00cf92000000fffful;
	load_ds(SEL_SPARE);
	ok(spare[0] & 1ul << 40, "loading a segment sets its accessed bit");
	load_ds(SEL_KDATA);

	TRY("pushq %0; pushq $1f; lretq; 1:", : : "i"(SEL_ABSENT_CODE) : "memory");
	trapped(11, SEL_ABSENT_CODE, "#NP(selector): far return to code that is not present");
	TRY("pushq %0; pushq $1f; lretq; 1:", : : "i"(SEL_KDATA) : "memory");
	trapped(13, SEL_KDATA, "#GP(selector): far return to data");
	TRY("pushq $0; pushq $1f; lretq; 1:", : : : "memory");
	trapped(13, 0, "#GP(0): far return to a null selector");
	TRY("pushq %0; pushq %1; lretq", : : "i"(SEL_KCODE), "r"(NONCANONICAL) : "memory");
	trapped(13, 0, "#GP(0): far return to an address that is not canonical");
	spare[0] = 0x00ef9b000000fffful;	/* L and D */
	TRY("pushq %0; pushq $1f; lretq; 1: pushq %1; pushq $2f; lretq; 2:", : : "i"(SEL_SPARE), "i"(SEL_KCODE)
	    : "memory");
	trapped(13, SEL_SPARE, "#GP(selector): code with both L and D");

	TRY("ltr %0", : : "r"((u16)SEL_TSS) : "memory");
	trapped(13, SEL_TSS, "#GP(selector): LTR of a busy TSS");
	TRY("ltr %0", : : "r"((u16)SEL_KDATA) : "memory");
	trapped(13, SEL_KDATA, "#GP(selector): LTR of data");
	TRY("ltr %0", : : "r"((u16)0) : "memory");
	trapped(13, 0, "#GP(0): LTR of a null selector");
	if (last.vec == NO_TRAP)
		own_tss();
	spare[0] = 0x0000090000000067ul;
	spare[1] = 0;
	TRY("ltr %0", : : "r"((u16)SEL_SPARE) : "memory");
	trapped(11, SEL_SPARE, "#NP(selector): LTR of a TSS that is not present");
	TRY("lldt %0", : : "r"((u16)SEL_KDATA) : "memory");
	trapped(13, SEL_KDATA, "#GP(selector): LLDT of data");
	TRY("lldt %0", : : "r"((u16)0) : "memory");
	trapped(NO_TRAP, 0, "LLDT of a null selector");
	/* An LDT of one descriptor at the spare ones. */
	spare[2] = 0x00cf93000000fffful;
	spare[0] = 7 | ((u64)&spare[2] & 0xffffff) << 16 | 0x82ul << 40;
	TRY("lldt %0", : : "r"((u16)SEL_SPARE) : "memory");
	trapped(NO_TRAP, 0, "LLDT of an LDT");
	load_ds(4);
	trapped(NO_TRAP, 0, "DS from the LDT");
	load_ds(0x0c);
	trapped(13, 0x0c, "#GP(selector): DS from beyond the LDT");
	load_ds(SEL_KDATA);
	asm volatile("lldt %0" : : "r"((u16)0));

	asm volatile("movw $0x28, %%ax; movw %%ax, %%fs; movw %%fs, %0; xorl %%eax, %%eax; movw %%ax, %%fs"
		     : "=r"(kept) : : "rax");
	is(kept, 0x28, "a selector reads as it was loaded");
	{
		u32 rights = 0, limit = 0;
		u8 zf;

		asm volatile("lar %2, %0; setz %1" : "+r"(rights), "=r"(zf) : "r"((u32)SEL_KCODE));
		ok(zf && (rights & 0xf0ff00) == 0xa09b00, "LAR of code");
		asm volatile("lsl %2, %0; setz %1" : "+r"(limit), "=r"(zf) : "r"((u32)SEL_KDATA16));
		ok(zf && limit == 0xffff, "LSL of data with a byte limit");
		asm volatile("lsl %2, %0; setz %1" : "+r"(limit), "=r"(zf) : "r"((u32)SEL_KDATA));
		ok(zf && limit == 0xffffffff, "LSL of data with a page limit");
		asm volatile("lar %2, %0; setz %1" : "+r"(rights), "=r"(zf) : "r"(0x1ff8u));
		ok(!zf, "LAR beyond the GDT clears ZF");
		asm volatile("verw %1; setz %0" : "=r"(zf) : "r"((u16)SEL_KCODE));
		ok(!zf, "VERW of code clears ZF");
		asm volatile("verr %1; setz %0" : "=r"(zf) : "r"((u16)SEL_KCODE));
		ok(zf, "VERR of code that can be read sets ZF");
	}
}

/* --- addresses and control registers --- */

static void canonical(void)
{
	u64 sp;

	TRY("movq (%0), %%rax", : : "r"(NONCANONICAL) : "rax");
	trapped(13, 0, "#GP(0): load from an address that is not canonical");
	TRY("movq %%rax, (%0)", : : "r"(0x0000800000000000ul) : "memory");
	trapped(13, 0, "#GP(0): store to the first address that is not canonical");
	TRY("movq %%rbp, %%rbx; movq %0, %%rbp; movq (%%rbp), %%rax; .Lback%=:", : : "r"(NONCANONICAL) : "rax", "rbx", "rbp");
	trapped(12, 0, "#SS(0): the same relative to RBP");
	gate_set(12, 0, 3, true, false);
	gate_set(13, 0, 3, true, false);
	TRY("movq %%rsp, %0; movq %1, %%rsp; pushq %%rax", : "=&r"(sp) : "r"(NONCANONICAL) : "memory");
	trapped(12, 0, "#SS(0): push to an address that is not canonical");
	gate_set(12, 0, 0, true, false);
	gate_set(13, 0, 0, true, false);
	TRY("jmp *%0", : : "r"(NONCANONICAL) : "memory");
	trapped(13, 0, "#GP(0): jump to an address that is not canonical");
	/* Intel reports the jump, where RIP is checked before it is loaded (SDM 2A, JMP). */
	is((u64)last.off, 0, "jump to an address that is not canonical: RIP is the jump's");
	TRY("pushq %0; ret", : : "r"(NONCANONICAL) : "memory");
	trapped(13, 0, "#GP(0): return to an address that is not canonical");
	TRY("movq 0x7ffffffffffffff8, %%rax", : : : "rax");
	trapped(13, 0, "#GP(0): load by a 64-bit immediate address");
	TRY("invlpg (%0)", : : "r"(NONCANONICAL) : "memory");
	trapped(NO_TRAP, 0, "INVLPG of an address that is not canonical does nothing");
}

/* An exit from its loop with no exception, and back to the same instruction. */
#define TCG_AGAIN	"QEMU's TCG repeats the instruction for ever"

static void control_registers(void)
{
	u64 cr0 = read_cr0(), cr3 = read_cr3(), cr4 = read_cr4(), cr8 = 0;

#define CR_GP(n, value, name, tcg)					\
	do {								\
		if (tcg && on_tcg()) {					\
			skip("#GP(0): " name, tcg);			\
			break;						\
		}							\
		TRY("movq %0, %%cr" #n, : : "r"((u64)(value)) : "memory");\
		write_cr##n(cr##n);					\
		trapped(13, 0, "#GP(0): " name);			\
	} while (0)
	CR_GP(0, cr0 & ~(u64)CR0_PE, "CR0.PG without PE", "QEMU's TCG takes it and is lost");
	CR_GP(0, (cr0 & ~(u64)CR0_CD) | CR0_NW, "CR0.NW without CD", NULL);
	CR_GP(0, cr0 | 1ul << 32, "CR0 bit 32", NULL);
	CR_GP(4, cr4 & ~(u64)CR4_PAE, "CR4.PAE cleared in long mode", "QEMU's TCG clears it and is lost");
	CR_GP(4, cr4 | 1ul << 31, "CR4 bit 31", TCG_AGAIN);
	CR_GP(4, cr4 | 1ul << 32, "CR4 bit 32", TCG_AGAIN);
	/* Nested, the value even gets into the VMCB, which the next VMRUN refuses. */
	if (under_tcg())
		skip("#GP(0): CR3 bit 62", TCG_AGAIN);
	else
		CR_GP(3, cr3 | 1ul << 62, "CR3 bit 62", NULL);
	CR_GP(8, 0x10, "CR8 above 15", NULL);
	if (!HAS_PCID)
		CR_GP(4, cr4 | CR4_PCIDE, "CR4.PCIDE where CPUID does not show PCID", TCG_AGAIN);
#undef CR_GP
	if (HAS_PCID) {
		write_cr3(cr3 | 8);
		TRY("movq %0, %%cr4", : : "r"(cr4 | CR4_PCIDE) : "memory");
		write_cr4(cr4);
		trapped(13, 0, "#GP(0): CR4.PCIDE set while CR3 has a PCID");
		write_cr3(cr3);
		write_cr4(cr4 | CR4_PCIDE);
		TRY("movq %0, %%cr0", : : "r"(cr0 & ~(u64)CR0_PG) : "memory");
		trapped(13, 0, "#GP(0): CR0.PG cleared in 64-bit mode with PCIDE");
		write_cr4(cr4);
	}
	TRY("movq %0, %%cr0", : : "r"(cr0 & ~(u64)CR0_ET) : "memory");
	ok(read_cr0() & CR0_ET, "CR0.ET stays 1");
	write_cr0(cr0);
	TRY("wrmsr", : : "c"(MSR_EFER), "a"(BARE_EFER & ~(u32)EFER_LME), "d"(0) : "memory");
	trapped(13, 0, "#GP(0): EFER.LME changed while paging");
	TRY("wrmsr", : : "c"(MSR_EFER), "a"(BARE_EFER), "d"(1) : "memory");
	trapped(13, 0, "#GP(0): reserved bit of EFER");
	TRY("wrmsr", : : "c"(MSR_LSTAR), "a"(0), "d"(0x80000000u) : "memory");
	trapped(13, 0, "#GP(0): LSTAR with an address that is not canonical");
	TRY("wrmsr", : : "c"(MSR_FS_BASE), "a"(0), "d"(0x80000000u) : "memory");
	trapped(13, 0, "#GP(0): FS base with an address that is not canonical");
	TRY("rdmsr", : : "c"(0x12345678u) : "rax", "rdx");
	trapped(13, 0, "#GP(0): RDMSR of none");
	TRY("movq %0, %%dr7", : : "r"(1ul << 32) : "memory");
	trapped(13, 0, "#GP(0): upper half of DR7");
	write_cr8(5);
	is(read_cr8(), 5, "CR8 reads as written");
	write_cr8(0);
	/* SMSW and LMSW: LMSW sets PE but never clears it. */
	asm volatile("lmsw %w0" : : "r"(0xf & ~CR0_PE & ~CR0_TS & ~CR0_EM));
	ok(read_cr0() & CR0_PE, "LMSW does not clear PE");
	write_cr0(BARE_CR0);
}

/* --- double faults, #TS, gates --- */

static void gates(void)
{
	gate_set(0x70, 0, 0, false, false);
	TRY("int $0x70", : : : "memory");
	trapped(11, 0x70 * 8 + 2, "#NP(gate): INT n by a gate that is not present");
	gate_set(0x70, 0, 0, true, false);
	gate_set(6, 0, 0, false, false);
	TRY("ud2", : : : "memory");
	trapped(11, 6 * 8 + 2 + 1, "#NP(gate, EXT): an exception by a gate that is not present");
	gate_set(14, 0, 0, false, false);
	TRY("movq (%0), %%rax", : : "r"(ABSENT_PAGE) : "rax");
	trapped(8, 0, "#DF: #PF whose gate is not present");
	ok(last.frame > (u64)bare_ist[0] && last.frame < (u64)bare_ist[1], "#DF: on the stack of IST 1");
	gate_set(14, 0, 0, true, false);
	gate_set(13, 0, 0, false, false);
	TRY("movq (%0), %%rax", : : "r"(NONCANONICAL) : "rax");
	trapped(8, 0, "#DF: #GP whose gate is not present");
	gate_set(13, 0, 0, true, false);
	gate_set(0, 0, 0, false, false);
	TRY("xorl %%eax, %%eax; xorl %%edx, %%edx; divl %%eax", : : : "rax", "rdx");
	trapped(8, 0, "#DF: #DE whose gate is not present");
	gate_set(0, 0, 0, true, false);
	gate_set(6, 0, 0, true, false);
	/* #UD (benign) and then #PF: the second is delivered alone. */
	{
		u64 rsp = bare_tss[0].ist[2];

		gate_set(6, 0, 3, true, false);
		bare_tss[0].ist[2] = ABSENT_PAGE;
		TRY("ud2", : : : "memory");
		trapped(14, 2, "#PF while #UD is delivered: comes alone");
		/* The #PF of delivery at the stack, by a benign exception; #PF and #PF make #DF. */
		gate_set(14, 0, 3, true, false);
		TRY("movq (%0), %%rax", : : "r"(ABSENT_PAGE) : "rax");
		trapped(8, 0, "#DF: #PF while #PF is delivered");
		gate_set(14, 0, 0, true, false);
		gate_set(13, 0, 3, true, false);
		TRY("movq (%0), %%rax", : : "r"(NONCANONICAL) : "rax");
		trapped(14, 2, "#PF while #GP is delivered: comes alone (table 6-5)");
		gate_set(13, 0, 0, true, false);
		bare_tss[0].ist[2] = NONCANONICAL;
		TRY("ud2", : : : "memory");
		trapped(12, 1, "#SS(EXT): delivery to a stack that is not canonical");
		gate_set(6, 0, 0, true, false);
		bare_tss[0].ist[2] = rsp;
	}
	TRY("movq %0, %%rsp; ud2", : : "r"(ABSENT_PAGE) : "memory");
	trapped(8, 0, "#DF: no stack for #UD, nor for the #PF of that");
	{
		struct table_pointer p, kept;

		asm volatile("sidt %0" : "=m"(kept));
		p = kept;
		p.limit = 0x70 * 16 - 1;
		asm volatile("lidt %0" : : "m"(p));
		TRY("int $0x70", : : : "memory");
		asm volatile("lidt %0" : : "m"(kept));
		trapped(13, 0x70 * 8 + 2, "#GP(gate): vector beyond the IDT's limit");
	}
	{
		u8 *idt;
		struct table_pointer p;

		asm volatile("sidt %0" : "=m"(p));
		idt = (u8 *)p.base + 0x70 * 16;
		idt[5] = 0x8c;	/* a call gate */
		TRY("int $0x70", : : : "memory");
		trapped(13, 0x70 * 8 + 2, "#GP(gate): not an interrupt or trap gate");
		idt[5] = 0x8e;
		idt[2] = SEL_KDATA;
		TRY("int $0x70", : : : "memory");
		trapped(13, SEL_KDATA, "#GP(selector): gate to data");
		idt[2] = 0;
		TRY("int $0x70", : : : "memory");
		trapped(13, 0, "#GP(0): gate to a null selector");
		idt[2] = SEL_ABSENT_CODE;
		TRY("int $0x70", : : : "memory");
		trapped(11, SEL_ABSENT_CODE, "#NP(selector): gate to code that is not present");
		idt[2] = SEL_KCODE32;
		TRY("int $0x70", : : : "memory");
		trapped(13, SEL_KCODE32, "#GP(selector): gate to 32-bit code");
		gate_set(0x70, 0, 0, true, false);
	}
}

static u64 handler_flags, handler_rsp_mod;

static bool note_flags(struct frame *f)
{
	handler_flags = read_flags();
	handler_rsp_mod = (u64)(&f->ss + 1) & 15;
	return true;
}

static void stacks(void)
{
	trap_handle(0x71, note_flags);
	asm volatile("pushfq; orq %0, (%%rsp); popfq; int $0x71; cld; pushfq; andq %1, (%%rsp); popfq"
		     : : "i"(FLAG_NT | FLAG_IF), "i"(~(s32)FLAG_NT) : "memory", "cc");
	asm volatile("cli");
	is(handler_flags & (FLAG_IF | FLAG_TF | FLAG_NT), 0, "an interrupt gate clears IF, TF and NT");
	gate_set(0x71, 0, 0, true, true);
	asm volatile("sti; int $0x71; cli" : : : "memory", "cc");
	is(handler_flags & FLAG_IF, FLAG_IF, "a trap gate leaves IF");
	gate_set(0x71, 0, 0, true, false);
	for (u32 shift = 0; shift < 16; shift += 4) {
		asm volatile("movq %%rsp, %%rbx; subq %0, %%rsp; int $0x71; movq %%rbx, %%rsp"
			     : : "r"((u64)shift + 32) : "rbx", "memory", "cc");
		if (handler_rsp_mod)
			break;
	}
	is(handler_rsp_mod, 0, "delivery aligns the stack to 16 bytes");
	gate_set(0x71, 0, 4, true, false);
	TRY("int $0x72", : : : "memory");
	ok(last.ss == SEL_KDATA || last.ss == 0, "SS is pushed without a change of privilege");
	gate_set(0x72, 0, 4, true, false);
	TRY("int $0x72", : : : "memory");
	is(last.frame, (u64)bare_ist[4] - 40, "IST 4: the frame is at the stack's top");
	trap_handle(0x71, NULL);
	gate_set(0x71, 0, 0, true, false);
	gate_set(0x72, 0, 0, true, false);
}

/* --- ring 3 --- */

static u64 user_word __user_data;
static u64 user_words[4] __user_data = { 0 };
__user_code static void user_nothing(void) { }
__user_code static void user_int3(void) { asm volatile("int3"); }
__user_code static void user_int70(void) { asm volatile("int $0x70"); }
__user_code static void user_int73(void) { asm volatile("int $0x73"); }
__user_code static void user_ud2(void) { asm volatile("ud2"); }
__user_code static void user_flags(void)
{
	asm volatile("pushfq; popq %0" : "=m"(user_word));
	asm volatile("pushq %0; popfq; pushfq; popq %1; pushq $2; popfq"
		     : : "i"(FLAG_IF | FLAG_IOPL | FLAG_ID | 2), "m"(user_words[0]) : "memory", "cc");
}
__user_code static void user_misaligned(void)
{
	asm volatile("pushfq; orq %0, (%%rsp); popfq; movl 1(%1), %%eax" : : "i"(FLAG_AC), "r"(user_words)
		     : "rax", "memory", "cc");
}
__user_code static void user_misaligned_noncanonical(void)
{
	asm volatile("pushfq; orq %0, (%%rsp); popfq; movl 1(%1), %%eax" : : "i"(FLAG_AC), "r"(NONCANONICAL)
		     : "rax", "memory", "cc");
}
__user_code static void user_bytes_ac(void)
{
	asm volatile("pushfq; orq %0, (%%rsp); popfq; movb 1(%1), %%al; movl 4(%1), %%eax; pushq $2; popfq"
		     : : "i"(FLAG_AC), "r"(user_words) : "rax", "memory", "cc");
}

#define PRIVILEGED(X)						\
	X(hlt, "hlt") X(cli, "cli") X(sti, "sti") X(clts, "clts")\
	X(in, "inb $0x80, %%al") X(out, "outb %%al, $0x80")	\
	X(cr0, "movq %%cr0, %%rax") X(cr3, "movq %%rax, %%cr3")	\
	X(cr8, "movq %%cr8, %%rax") X(dr, "movq %%dr7, %%rax")	\
	X(lgdt, "lgdt (%%rsp)") X(lidt, "lidt (%%rsp)")		\
	X(ltr, "ltr %%ax") X(lldt, "lldt %%ax") X(lmsw, "lmsw %%ax") \
	X(invlpg, "invlpg (%%rsp)") X(wbinvd, "wbinvd") X(invd, "invd") \
	X(rdmsr, "movl $0x10, %%ecx; rdmsr") X(wrmsr, "movl $0x10, %%ecx; wrmsr") \
	X(swapgs, "swapgs") X(sysret, "sysretq") X(ins, "movw $0x80, %%dx; insb")
#define X(name, code)	__user_code static void user_##name(void) { asm volatile(code : : : "rax", "rcx", "rdx", "memory"); }
PRIVILEGED(X)
#undef X
#define X(name, code)	{ user_##name, #name },
static const struct { void (*fn)(void); const char *name; } privileged[] = { PRIVILEGED(X) };
#undef X

static void ring3(void)
{
	user_run(user_nothing, 0);
	trapped(USER_DONE, 0, "ring 3 and back");
	is(last.cs, SEL_UCODE | 3, "from ring 3: CS");
	is(last.ss, SEL_UDATA | 3, "from ring 3: SS");
	is(last.frame, bare_tss[0].rsp[0] - 40, "from ring 3: the stack is RSP0");
	user_run(user_int3, 0);
	trapped(13, 3 * 8 + 2, "#GP(gate): int3 in ring 3 by a gate of DPL 0");
	gate_set(3, 3, 0, true, false);
	user_run(user_int3, 0);
	trapped(3, 0, "int3 in ring 3 by a gate of DPL 3");
	gate_set(3, 0, 0, true, false);
	user_run(user_int70, 0);
	trapped(13, 0x70 * 8 + 2, "#GP(gate): INT n in ring 3 by a gate of DPL 0");
	gate_set(0x70, 0, 0, false, false);
	user_run(user_int70, 0);
	trapped(13, 0x70 * 8 + 2, "#GP(gate): DPL is looked at before P");
	gate_set(0x70, 0, 0, true, false);
	gate_set(0x73, 3, 5, true, false);
	user_run(user_int73, 0);
	is(last.frame, (u64)bare_ist[5] - 40, "INT n from ring 3 with IST 5");
	gate_set(0x73, 0, 0, true, false);
	user_run(user_ud2, 0);
	trapped(6, 0, "exceptions do not look at DPL");
	for (u32 i = 0; i < ARRAY_SIZE(privileged); i++) {
		user_run(privileged[i].fn, 0);
		trapped(13, 0, "#GP(0): %s in ring 3", privileged[i].name);
	}
	user_run(user_flags, 0);
	trapped(USER_DONE, 0, "POPF in ring 3");
	is(user_words[0] & (FLAG_IF | FLAG_IOPL), 0, "POPF in ring 3 changes neither IF nor IOPL");
	ok(user_words[0] & FLAG_ID, "POPF in ring 3 changes ID");

	write_cr0(BARE_CR0 | CR0_AM);
	user_run(user_misaligned, 0);
	trapped(17, 0, "#AC(0) in ring 3");
	user_run(user_misaligned_noncanonical, 0);
	trapped(13, 0, "#GP(0) before #AC");
	user_run(user_bytes_ac, 0);
	trapped(USER_DONE, 0, "no #AC for aligned accesses");
	TRY("pushfq; orq %0, (%%rsp); popfq; movl 1(%1), %%eax; pushq $2; popfq", : : "i"(FLAG_AC), "r"(user_words)
	    : "rax", "memory", "cc");
	trapped(NO_TRAP, 0, "no #AC at CPL 0");
	write_cr0(BARE_CR0);
	user_run(user_misaligned, 0);
	trapped(USER_DONE, 0, "no #AC without CR0.AM");
}

/* IRET as such: frames that must be refused (SDM 2A, IRET). */
static void iret(void)
{
	u64 sp = USER_STACK_TOP - 8;

	user_enter(NONCANONICAL, 0, 2, SEL_UCODE | 3, sp, SEL_UDATA | 3);
	trapped(13, 0, "#GP(0): IRET to an address that is not canonical");
	user_enter((u64)user_nothing, 0, 2, 0, sp, SEL_UDATA | 3);
	trapped(13, 0, "#GP(0): IRET to a null CS");
	user_enter((u64)user_nothing, 0, 2, SEL_UCODE | 3, sp, 0);
	trapped(13, 0, "#GP(0): IRET to ring 3 with a null SS");
	user_enter((u64)user_nothing, 0, 2, SEL_UCODE | 3, sp, SEL_KDATA);
	trapped(13, SEL_KDATA, "#GP(selector): IRET to ring 3 with SS of ring 0");
	user_enter((u64)user_nothing, 0, 2, SEL_UCODE, sp, SEL_UDATA | 3);
	trapped(13, SEL_UCODE, "#GP(selector): IRET to CS with RPL 0 and DPL 3");
	user_enter((u64)user_nothing, 0, 2, SEL_ABSENT_CODE, sp, SEL_KDATA);
	trapped(11, SEL_ABSENT_CODE, "#NP(selector): IRET to code that is not present");
	user_enter((u64)user_nothing, 0, 2, SEL_UDATA | 3, sp, SEL_UDATA | 3);
	trapped(13, SEL_UDATA, "#GP(selector): IRET to data");
	user_enter((u64)user_nothing, 0, 2 | FLAG_AC | FLAG_ID, SEL_UCODE | 3, sp, SEL_UDATA | 3);
	trapped(USER_DONE, 0, "IRET with flags");
	is(last.rflags & (FLAG_AC | FLAG_ID), FLAG_AC | FLAG_ID, "IRET loads AC and ID");
	user_enter((u64)user_ud2, 0, 2 | FLAG_TF, SEL_UCODE | 3, sp, SEL_UDATA | 3);
	trapped(6, 0, "IRET with TF: a fault in the first instruction comes before #DB");
	user_enter((u64)user_nothing, 0, 2 | FLAG_TF, SEL_UCODE | 3, sp, SEL_UDATA | 3);
	trapped(1, 0, "IRET with TF: #DB");
	ok(last.rip != (u64)user_nothing && last.cs == (SEL_UCODE | 3), "IRET with TF: after one instruction of ring 3");
	TRY("pushfq; orq %0, (%%rsp); popfq; pushq %1; pushq %%rsp; pushq $2; pushq %2; pushq $1f; iretq; 1:"
	    , : : "i"(FLAG_NT), "i"(SEL_KDATA), "i"(SEL_KCODE) : "memory", "cc");
	trapped(13, 0, "#GP(0): IRET with NT in long mode");
	asm volatile("movw %w0, %%ds; movw %w0, %%es" : : "r"(SEL_KDATA));
	user_enter((u64)user_nothing, 0, 2, SEL_UCODE | 3, sp, SEL_UDATA | 3);
	{
		u16 ds;

		asm volatile("movw %%ds, %0" : "=r"(ds));
		is(ds, 0, "IRET to ring 3 clears DS of ring 0");
	}
	asm volatile("movw %w0, %%ds; movw %w0, %%es" : : "r"(SEL_KDATA));
}

/* #TS is left in long mode for a TSS too short for the stack it is asked for. */
static void short_tss(void)
{
	u64 *desc = &bare_gdt[SEL_SPARE / 8], base = (u64)&bare_tss[0];
	u16 sel = SEL_SPARE;

	/* RSP0 and IST 1 are within. */
	desc[0] = 0x2b | (base & 0xffffff) << 16 | 0x89ul << 40;
	desc[1] = 0;
	asm volatile("ltr %0" : : "r"(sel));
	gate_set(USER_DONE, 3, 7, true, false);
	user_run(user_nothing, 0);
	trapped(10, SEL_SPARE, "#TS(TSS): the IST entry is beyond the TSS's limit");
	gate_set(USER_DONE, 3, 0, true, false);
	own_tss();
}

/* --- SYSCALL, SYSRET, SWAPGS, FSGSBASE --- */

extern char syscall_entry[], syscall_32[];
asm(".text\n"
    "syscall_entry:\n"
    "	int $0x74\n"
    "	ud2\n");
__user_code static void user_syscall(void) { asm volatile("syscall" : : : "rcx", "r11", "memory"); }

static void syscalls(void)
{
	u64 sp = USER_STACK_TOP - 8;

	wrmsr(MSR_STAR, (u64)SEL_KCODE << 32 | (u64)(SEL_UCODE32 | 3) << 48);
	wrmsr(MSR_LSTAR, (u64)syscall_entry);
	wrmsr(MSR_SFMASK, FLAG_IF | FLAG_TF | FLAG_AC);
	/* The handler of 0x74 runs on the stack of ring 3, so with no switch. */
	user_enter((u64)user_syscall, 0, 2 | FLAG_AC | FLAG_ID, SEL_UCODE | 3, sp, SEL_UDATA | 3);
	trapped(0x74, 0, "SYSCALL");
	is(last.cs, SEL_KCODE, "SYSCALL: CS");
	is(last.ss, SEL_KDATA, "SYSCALL: SS");
	ok(last.rsp <= sp && last.rsp > sp - 256, "SYSCALL: RSP stays");
	ok(last.rcx >= (u64)user_syscall + 2 && last.rcx < (u64)user_syscall + 32 && *(u16 *)(last.rcx - 2) == 0x050f,
	   "SYSCALL: RCX is the next RIP");
	is(last.r11 & (FLAG_AC | FLAG_ID | FLAG_IF), FLAG_AC | FLAG_ID, "SYSCALL: R11 is RFLAGS");
	is(last.rflags & (FLAG_AC | FLAG_ID), FLAG_ID, "SYSCALL: SFMASK clears flags");
	TRY("movq %0, %%rcx; movq %1, %%r11; movq %%rsp, %%rax; movq %2, %%rsp; sysretq",
	    : : "r"(user_exit), "i"(FLAG_ID | FLAG_AC | 2), "r"(sp)
	    : "rax", "rcx", "r11", "memory");
	trapped(USER_DONE, 0, "SYSRET to 64-bit code");
	is(last.cs, SEL_UCODE | 3, "SYSRET: CS");
	is(last.ss, SEL_UDATA | 3, "SYSRET: SS");
	is(last.rflags & (FLAG_ID | FLAG_AC), FLAG_ID | FLAG_AC, "SYSRET: RFLAGS is R11");
	TRY("movq %0, %%rcx; movq %1, %%r11; movq %2, %%rsp; sysretl", : : "r"(user_exit), "i"(2), "r"(sp)
	    : "rcx", "r11", "memory");
	trapped(USER_DONE, 0, "SYSRET to 32-bit code");
	is(last.cs, SEL_UCODE32 | 3, "SYSRET to 32-bit code: CS");
	TRY("movq %0, %%rcx; movq %1, %%r11; sysretq", : : "r"(NONCANONICAL), "i"(2) : "rcx", "r11", "memory");
	if (is_amd()) {
		trapped(13, 0, "#GP(0): SYSRET to an address that is not canonical");
		info("SYSRET to an address that is not canonical: where #GP comes", last.cs & 3 ? "ring 3" : "ring 0");
	} else {
		trapped(13, 0, "#GP(0): SYSRET to an address that is not canonical");
		is(last.cs, SEL_KCODE, "SYSRET to an address that is not canonical: #GP in ring 0 on Intel");
	}
	wrmsr(MSR_EFER, BARE_EFER & ~(u64)EFER_SCE);
	user_run(user_syscall, 0);
	trapped(6, 0, "#UD: SYSCALL without EFER.SCE");
	TRY("sysretq", : : : "rcx", "r11", "memory");
	trapped(6, 0, "#UD: SYSRET without EFER.SCE");
	wrmsr(MSR_EFER, BARE_EFER);
}

static void fs_gs(void)
{
	u64 v, w;

	wrmsr(MSR_GS_BASE, 0x1111);
	wrmsr(MSR_KGS_BASE, 0x2222);
	asm volatile("swapgs");
	ok(rdmsr(MSR_GS_BASE) == 0x2222 && rdmsr(MSR_KGS_BASE) == 0x1111, "SWAPGS");
	user_words[2] = 0x5a5a;
	wrmsr(MSR_FS_BASE, (u64)user_words);
	asm volatile("movq %%fs:16, %0" : "=r"(v));
	is(v, 0x5a5a, "FS base counts in 64-bit mode");
	asm volatile("movw %w0, %%fs" : : "r"(SEL_UDATA | 3));
	is(rdmsr(MSR_FS_BASE), 0, "loading FS loads its base from the descriptor");
	wrmsr(MSR_FS_BASE, 0xffffffff80001000ul);
	is(rdmsr(MSR_FS_BASE), 0xffffffff80001000ul, "FS base of the upper half");
	asm volatile("movw %w0, %%fs" : : "r"(0));
	wrmsr(MSR_GS_BASE, 0);
	if (!HAS_FSGSBASE) {
		skip("FSGSBASE", "not shown by CPUID");
		return;
	}
	TRY("rdfsbase %%rax", : : : "rax");
	trapped(6, 0, "#UD: RDFSBASE without CR4.FSGSBASE");
	write_cr4(BARE_CR4 | CR4_FSGSBASE);
	asm volatile("wrfsbase %2; rdfsbase %0; wrgsbase %3; rdgsbase %1" : "=&r"(v), "=&r"(w)
		     : "r"(0x123456789abcul), "r"(0xffffff0000000000ul));
	ok(v == 0x123456789abcul && w == 0xffffff0000000000ul, "WRFSBASE, WRGSBASE, RDFSBASE, RDGSBASE");
	ok(rdmsr(MSR_FS_BASE) == v && rdmsr(MSR_GS_BASE) == w, "WRFSBASE, WRGSBASE: the MSRs are the same");
	asm volatile("wrfsbase %k1; rdfsbase %0" : "=r"(v) : "r"(0x80000000u));
	is(v, 0x80000000ul, "WRFSBASE of 32 bits zero-extends");
	TRY("wrfsbase %0", : : "r"(NONCANONICAL) : "memory");
	trapped(13, 0, "#GP(0): WRFSBASE of an address that is not canonical");
	wrmsr(MSR_FS_BASE, 0);
	wrmsr(MSR_GS_BASE, 0);
	write_cr4(BARE_CR4);
}

/* --- interrupts and NMIs --- */

static volatile u32 nmis, irqs, depth, max_depth;
static volatile u64 irq_rip;

static void self_irq(u8 vec)
{
	apic_icr(0, ICR_SELF | ICR_ASSERT | vec);
	wait_for(apic_bit(APIC_IRR, vec));
}

static bool on_irq(struct frame *f)
{
	irqs++;
	irq_rip = f->rip;
	apic_write(APIC_EOI, 0);
	return true;
}

static bool on_nmi(struct frame *f)
{
	depth++;
	if (depth > max_depth)
		max_depth = depth;
	if (++nmis == 1) {
		/* A second one must wait until IRET. */
		apic_icr(apic_id(), ICR_NMI | ICR_ASSERT);
		for (u32 i = 0; i < 1000; i++)
			cpu_relax();
	}
	depth--;
	return true;
}

/* IRET within the handler ends the blocking, whoever executes it. */
static volatile u32 early_nmis;
static bool on_nmi_iret(struct frame *f)
{
	if (++early_nmis == 1) {
		apic_icr(apic_id(), ICR_NMI | ICR_ASSERT);
		for (u32 i = 0; i < 1000; i++)
			cpu_relax();
		if (early_nmis != 1)
			return true;
		/* Nested NMIs use the same IST stack, so go off it before the IRET. */
		asm volatile("movq %%rsp, %%rax; leaq -4096(%2), %%rcx; pushq %1; pushq %%rax; pushfq; pushq %0; pushq $1f; iretq; 1:"
			     : : "i"(SEL_KCODE), "i"(SEL_KDATA), "r"(bare_tss[0].ist[1]) : "rax", "rcx", "memory");
	}
	return true;
}

static void interrupts(void)
{
	u64 at, next;

	apic_enable();
	trap_handle(VEC_IRQ, on_irq);
	trap_handle(VEC_IRQ2, on_irq);
	self_irq(VEC_IRQ);
	is(irqs, 0, "an interrupt waits while IF = 0");
	irq_off();
	/* STI: not before the instruction behind it has run. */
	asm volatile("leaq 1f(%%rip), %0; leaq 2f(%%rip), %1; sti; 1: nop; 2: nop; cli" : "=r"(at), "=r"(next) : : "memory");
	is(irqs, 1, "STI lets it in");
	is(irq_rip, next, "STI: after the instruction behind it");
	self_irq(VEC_IRQ);
	asm volatile("sti; cli; nop" : : : "memory");
	is(irqs, 1, "STI and CLI let none in");
	asm volatile("leaq 1f(%%rip), %0; pushfq; orq $0x200, (%%rsp); popfq; 1: nop; nop; cli" : "=r"(at) : : "memory", "cc");
	is(irqs, 2, "POPF lets it in");
	is(irq_rip, at, "POPF: at once");
	self_irq(VEC_IRQ);
	asm volatile("movw %%ss, %%ax; leaq 1f(%%rip), %0; sti; movw %%ax, %%ss; nop; 1: nop; cli" : "=&r"(at) : : "rax", "memory");
	is(irqs, 3, "STI, MOV SS let it in");
	ok(irq_rip == at || irq_rip == at - 1, "STI, MOV SS: not before MOV SS has run");
	if (irq_rip == at - 1)
		info("STI, MOV SS: the second shadow", "none: SDM 2B, MOV: only the first of a sequence must hold");
	else
		info("STI, MOV SS: the second shadow", "holds as well");
	/* Two at once: the higher vector first (SDM 3A 10.8.3). */
	self_irq(VEC_IRQ);
	self_irq(VEC_IRQ2);
	asm volatile("sti; nop; nop; nop; cli" : : : "memory");
	is(irqs, 5, "two pending interrupts both come");
	irqs = 0;
	self_irq(VEC_IRQ);
	asm volatile("sti; hlt; cli" : : : "memory");
	is(irqs, 1, "HLT with an interrupt pending goes on");
	gate_set(VEC_IRQ, 0, 0, false, false);
	self_irq(VEC_IRQ);
	TRY("sti; nop; nop; nop; cli", : : : "memory");
	trapped(11, VEC_IRQ * 8 + 3, "#NP(gate, EXT): an interrupt by a gate that is not present");
	gate_set(VEC_IRQ, 0, 0, true, false);
	/* That one has been taken from the IRR: it is in service. */
	apic_write(APIC_EOI, 0);

	trap_handle(2, on_nmi);
	apic_icr(apic_id(), ICR_NMI | ICR_ASSERT);
	wait_for(nmis == 2);
	is(nmis, 2, "NMIs come with IF = 0, a second one after the first");
	is(max_depth, 1, "an NMI blocks further ones until IRET");
	trap_handle(2, on_nmi_iret);
	early_nmis = 0;
	gate_set(2, 0, 0, true, false);
	apic_icr(apic_id(), ICR_NMI | ICR_ASSERT);
	wait_for(early_nmis == 2);
	is(early_nmis, 2, "any IRET ends the blocking of NMIs");
	gate_set(2, 0, 2, true, false);
	trap_handle(2, NULL);
	trap_handle(VEC_IRQ, NULL);
	trap_handle(VEC_IRQ2, NULL);
}

/* --- priorities among what one instruction can raise (SDM 3A table 6-2) --- */

static void priorities(void)
{
	u8 *page = page_alloc_aligned(4096, 8192);
	u64 *entry, va = 0x50000000000ul;

	*page_entry(va, 1) = (u64)page | PTE_P | PTE_RW;
	entry = page_entry(va + 4096, 1);
	page[4095] = 0x0f;	/* the first byte of ud2 */
	TRY("jmp *%0", : : "r"(va + 4095) : "memory");
	trapped(14, 0x10 * !!(rdmsr(MSR_EFER) & EFER_NXE), "#PF of the fetch before #UD of what is not all there");
	is(last.cr2, va + 4096, "#PF of the fetch: CR2 is the second page");
	is(last.rip, va + 4095, "#PF of the fetch: RIP is the instruction's start");
	*entry = (u64)(page + 4096) | PTE_P | PTE_RW;
	page[4096] = 0x0b;
	TRY("jmp *%0", : : "r"(va + 4095) : "memory");
	trapped(6, 0, "an instruction across two pages");
	page[4095] = 0x90;
	*entry |= PTE_NX;
	invlpg(va + 4096);
	TRY("jmp *%0", : : "r"(va + 4095) : "memory");
	trapped(14, 0x11, "an instruction that ends with its page, then a page with NX");
	is(last.rip, va + 4096, "RIP is that of the instruction on the second page");
	write_cr0(BARE_CR0 | CR0_TS);
	TRY("fldl (%0)", : : "r"(NONCANONICAL) : "memory");
	trapped(7, 0, "#NM before #GP of the operand");
	TRY("lock; fnop", : : : "memory");
	trapped(6, 0, "#UD of LOCK before #NM");
	write_cr0(BARE_CR0);
	TRY("pushq (%0)", : : "r"(ABSENT_PAGE) : "memory");
	trapped(14, 0, "push of memory: #PF of the read");
	TRY("movq %%rsp, %%rbx; movq %0, %%rsp; pushq (%0); movq %%rbx, %%rsp", : : "r"(ABSENT_PAGE) : "rbx", "memory");
	ok(last.vec == 8, "push to a stack that is not there: #DF");
	trap_reset();
}

void test_main(void)
{
	divide();
	software();
	undefined();
	device_not_available();
	floating_point();
	debug();
	breakpoints();
	segments();
	canonical();
	control_registers();
	gates();
	stacks();
	ring3();
	iret();
	short_tss();
	syscalls();
	fs_gs();
	interrupts();
	priorities();
}
