// SPDX-License-Identifier: GPL-2.0-only
/*
 * Code that changes: by the CPU that runs it, through another mapping of its page, by
 * another CPU, by a string instruction, by way of int3 as kernels patch their own text.
 * SDM 3A 8.1.3 says what is owed: after a store, a CPU that has executed a jump or a
 * serialising instruction runs the new code; another CPU needs to serialise itself.
 */
#include "bare64.h"

#define ALIAS	0xa000000000ul

static u8 *text;

/* mov $value, %eax; ret */
static void put_return(u8 *at, u32 value)
{
	at[0] = 0xb8;
	memcpy(at + 1, &value, 4);
	at[5] = 0xc3;
}

static u32 call(const void *at)
{
	u32 v;

	asm volatile("call *%1" : "=a"(v) : "r"(at) : "memory", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11");
	return v;
}

static void serialise(void)
{
	u32 r[4];

	cpuid(0, 0, r);
}

static void own(void)
{
	u32 wrong = 0, v;

	for (u32 i = 0; i < 100; i++) {
		put_return(text, i);
		wrong += call(text) != i;
	}
	is(wrong, 0, "code written, then called");
	wrong = 0;
	for (u32 i = 0; i < 100; i++) {
		*(volatile u32 *)(text + 1) = i * 3;
		wrong += call(text) != i * 3;
	}
	is(wrong, 0, "an immediate operand changed, then called");
	/* The instruction directly behind the store, in the same block, behind a jump and behind CPUID. */
	memcpy(text, "\xc6\x47\x08\x02"		/* movb $2, 8(%rdi) */
		     "\xeb\x01\x90"		/* jmp over the nop */
		     "\xb8\x01\0\0\0"		/* mov $1, %eax; its operand is at 8 */
		     "\xc3", 13);
	asm volatile("call *%1" : "=a"(v) : "r"(text), "D"(text) : "memory");
	is(v, 2, "the next instruction changed, behind a jump");
	memcpy(text, "\x53"			/* push %rbx */
		     "\xc6\x47\x0a\x02"		/* movb $2, 10(%rdi) */
		     "\x31\xc0\x0f\xa2"		/* xor %eax, %eax; cpuid */
		     "\xb8\x01\0\0\0"		/* mov $1, %eax; its operand is at 10 */
		     "\x5b\xc3", 16);
	asm volatile("call *%1" : "=a"(v) : "r"(text), "D"(text) : "memory", "rcx", "rdx");
	is(v, 2, "the next instruction changed, behind CPUID");
	memcpy(text, "\xc6\x47\x05\x02"		/* movb $2, 5(%rdi) */
		     "\xb8\x01\0\0\0"		/* mov $1, %eax; its operand is at 5 */
		     "\xc3", 10);
	asm volatile("call *%1" : "=a"(v) : "r"(text), "D"(text) : "memory");
	info("the next instruction changed, directly", v == 2 ? "the new one ran" : "the old one ran");
	/* A loop that changes itself each time round. */
	memcpy(text, "\xb9\x64\0\0\0"		/* mov $100, %ecx */
		     "\x31\xc0"			/* xor %eax, %eax */
		     "\x83\xc0\x01"		/* 7: add $1, %eax; its operand is at 9 */
		     "\x80\x77\x09\x03"		/* xorb $3, 9(%rdi): 1 and 2 in turn */
		     "\xff\xc9"			/* dec %ecx */
		     "\x75\xf5"			/* jnz 7 */
		     "\xc3", 19);
	asm volatile("call *%1" : "=a"(v) : "r"(text), "D"(text) : "memory", "rcx", "cc");
	is(v, 150, "a loop that changes itself each time round");
}

static void by_string(void)
{
	u8 *other = text + 2048;
	u32 wrong = 0;

	for (u32 i = 0; i < 20; i++) {
		put_return(other, 1000 + i);
		call(text);
		asm volatile("rep movsb" : : "c"(6ul), "S"(other), "D"(text) : "memory");
		wrong += call(text) != 1000 + i;
	}
	is(wrong, 0, "code copied by REP MOVSB");
	memset(text, 0x90, 1024);
	put_return(text + 1024, 5);
	is(call(text), 5, "a run of NOPs");
	memset(text, 0xcc, 1);
	TRY("call *%0", : : "r"(text) : "rax", "memory");
	trapped(3, 0, "its first byte is int3 now");
	is(last.rip, (u64)text + 1, "int3: RIP is behind it");
	text[0] = 0x90;
	/* Instructions across two pages: each page's part changes. */
	put_return(text + 4096 - 2, 0x01010101);
	is(call(text + 4094), 0x01010101, "an instruction across two pages");
	*(volatile u8 *)(text + 4097) = 0x77;
	is(call(text + 4094), 0x01770101, "its part on the second page changed");
	*(volatile u8 *)(text + 4095) = 0x66;
	is(call(text + 4094), 0x01770166, "its part on the first page changed");
}

static void aliases(void)
{
	u64 *pte = page_entry(ALIAS, 1), *pte2 = page_entry(ALIAS + 4096, 1);
	u8 *alias = (u8 *)ALIAS;
	u8 *other = page_alloc();
	u32 wrong = 0;

	*pte = (u64)text | PTE_P | PTE_RW;
	*pte2 = (u64)text | PTE_P;
	invlpg(ALIAS);
	invlpg(ALIAS + 4096);
	for (u32 i = 0; i < 50; i++) {
		put_return(alias, i);
		serialise();
		wrong += call(text) != i;
		wrong += call(alias + 4096) != i;
		put_return(text, i + 100);
		serialise();
		wrong += call(alias) != i + 100;
	}
	is(wrong, 0, "written by one mapping of the page, run by another");
	/* A mapping that leads elsewhere afterwards runs what is there. */
	put_return(other, 4242);
	is(call(alias), 149, "run before the mapping changes");
	*pte = (u64)other | PTE_P | PTE_RW;
	invlpg(ALIAS);
	is(call(alias), 4242, "the mapping leads to another page: its code is run");
	*pte = (u64)text | PTE_P | PTE_NX;
	invlpg(ALIAS);
	TRY("call *%0", : : "r"(alias) : "rax", "memory");
	trapped(14, 0x11, "and to one that cannot be run: #PF");
	/* The same bytes in another mode are other instructions: 48 is REX.W here and DEC EAX in 32 bits. */
	memcpy(text, "\xb8\x0a\0\0\0\x48\x90\xc3", 8);	/* mov $10, %eax; 0x48; nop; ret */
	for (u32 i = 0; i < 2; i++) {
		u32 v = 0;

		is(call(text), 10, i ? "and again in 64-bit mode" : "bytes run in 64-bit mode");
		asm volatile("pushq %2; pushq $1f; lretq; .code32; 1: call *%k1; pushl $8; pushl $2f; lretl; .code64; 2:"
			     : "=&a"(v) : "c"(text), "i"(SEL_KCODE32) : "memory");
		is(v, 9, i ? "and again in 32-bit mode" : "the same bytes in 32-bit mode are other instructions");
	}
}

/* As kernels patch text that others may be running: int3, the rest, the first byte (text_poke_bp). */
static volatile u32 pokes_hit;
static bool on_int3(struct frame *f)
{
	if (f->rip - 1 != (u64)text)
		return false;
	pokes_hit++;
	/* As if the old call had been made: go on behind the five bytes. */
	f->rip = (u64)text + 5;
	f->rax = 0;
	return true;
}

static volatile bool stop;
static volatile u32 rounds, strange;
static void run_it(void *arg)
{
	u32 n = 0;

	while (!stop) {
		u32 v;

		asm volatile("xorl %%eax, %%eax; call *%1" : "=&a"(v) : "r"(text) : "memory", "rcx", "rdx");
		/* The old instruction, the new one, or the handler's. */
		if (v != 0 && v != 0x11111111 && v != 0x22222222)
			strange++;
		rounds = ++n;
	}
}

static void serialise_there(void *arg)
{
	serialise();
}

static u32 there_value;
static void call_there(void *arg)
{
	serialise();
	there_value = call(arg);
}

static void write_there(void *arg)
{
	put_return(text, (u32)(u64)arg);
}

static void cross(u32 cpus)
{
	u32 wrong = 0;

	if (cpus < 2) {
		skip("code written by another CPU", "cpus=1");
		skip("code written here and run by others", "cpus=1");
		skip("text poked while another CPU runs it", "cpus=1");
		return;
	}
	for (u32 i = 0; i < 20; i++) {
		smp_run(1 + i % (cpus - 1), write_there, (void *)(u64)(7000 + i));
		serialise();
		wrong += call(text) != 7000 + i;
	}
	is(wrong, 0, "code written by another CPU");
	wrong = 0;
	for (u32 i = 0; i < 20; i++) {
		put_return(text, 8000 + i);
		for (u32 cpu = 1; cpu < cpus; cpu++) {
			smp_run(cpu, call_there, text);
			wrong += there_value != 8000 + i;
		}
	}
	is(wrong, 0, "code written here and run by others");

	memcpy(text, "\xb8\x11\x11\x11\x11\xc3", 6);
	trap_handle(3, on_int3);
	smp_begin(1, run_it, NULL);
	wait_for(rounds > 10);
	for (u32 i = 0; i < 40; i++) {
		u8 c = i & 1 ? 0x11 : 0x22;
		u32 seen;

		*(volatile u8 *)text = 0xcc;
		asm volatile("mfence" : : : "memory");
		/* CPU 1 is in the loop: it takes the int3 sooner or later. Others serialise. */
		seen = rounds;
		wait_for(rounds - seen > 3);
		for (u32 k = 1; k < 5; k++)
			*(volatile u8 *)(text + k) = c;
		asm volatile("mfence" : : : "memory");
		seen = rounds;
		wait_for(rounds - seen > 3);
		*(volatile u8 *)text = 0xb8;
		asm volatile("mfence" : : : "memory");
		seen = rounds;
		wait_for(rounds - seen > 3);
	}
	stop = true;
	smp_wait(1);
	trap_handle(3, NULL);
	ok(pokes_hit > 0, "text poked while another CPU runs it: it meets the int3");
	is(strange, 0, "text poked while another CPU runs it: old or new, never a mix");
	smp_run(1, serialise_there, NULL);
}

void test_main(void)
{
	u32 cpus = smp_start();

	text = page_alloc_aligned(4096, 8192);
	own();
	by_string();
	aliases();
	cross(cpus);
}
