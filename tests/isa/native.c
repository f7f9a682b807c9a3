// SPDX-License-Identifier: GPL-2.0-only
/*
 * A snippet on the host's own CPU, in this process. Registers are loaded from a
 * page at a fixed address and the snippet is jumped to; the signal of whatever
 * exception ends it finds the state in its ucontext and never returns, but goes back
 * to the caller on the caller's stack. FS, which the C library needs for its own, has
 * the snippet's base until then: the capture below uses no thread-local storage.
 *
 * Snippets reach nothing but their regions by construction of their addresses; a
 * wild 64-bit address meets a mapping of this process about never. Not so under the
 * address sanitizer, whose shadow memory is below 4 GiB; hence make check runs this test
 * without it.
 */
#define _GNU_SOURCE	/* REG_RAX and friends */
#include "isa.h"

#include <asm/prctl.h>
#include <glib.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#define HWCAP2_FSGSBASE_BIT	BIT(1)
#define ALT_STACK_LEN		(64 * KIB)
#define TICK_USEC		200000

/* In the page at ISA_NATIVE; the code in assembly below knows the offsets. */
#define ISA_NATIVE		0x6d5a3000	/* no address that snippets make of round numbers */
struct isa_native {
	struct isa_regs in;		/* 0 */
	u64 host_rsp, host_fs;		/* HOST_RSP, HOST_FS */
	u64 out_fs, out_gs;		/* OUT_FS, OUT_GS */
	u64 out_ds, out_es;		/* OUT_DS, OUT_ES */
	volatile u64 serial;		/* SERIAL: of the snippet that runs, 0 = none */
	u8 host_fx[512] __attribute__((aligned(64)));	/* HOST_FX */
	struct isa_regs regs;
	u64 vector, error, cr2;
	u64 next_serial, last_tick;
	const struct isa_snippet *snippet;
	u8 *alt_stack;
	bool fsgsbase;
	struct sigaction old[6];
};

#define IN_FX		192
#define HOST_RSP	704
#define HOST_FS		712
#define OUT_FS		720
#define OUT_GS		728
#define OUT_DS		736
#define OUT_ES		744
#define SERIAL		752
#define HOST_FX		768

_Static_assert(offsetof(struct isa_native, in.gpr) == 0, "");
_Static_assert(offsetof(struct isa_native, in.rip) == 128, "");
_Static_assert(offsetof(struct isa_native, in.rflags) == 136, "");
_Static_assert(offsetof(struct isa_native, in.fs_base) == 144, "");
_Static_assert(offsetof(struct isa_native, in.gs_base) == 152, "");
_Static_assert(offsetof(struct isa_native, in.fx) == IN_FX, "");
_Static_assert(offsetof(struct isa_native, host_rsp) == HOST_RSP, "");
_Static_assert(offsetof(struct isa_native, host_fs) == HOST_FS, "");
_Static_assert(offsetof(struct isa_native, out_fs) == OUT_FS, "");
_Static_assert(offsetof(struct isa_native, out_ds) == OUT_DS, "");
_Static_assert(offsetof(struct isa_native, serial) == SERIAL, "");
_Static_assert(offsetof(struct isa_native, host_fx) == HOST_FX, "");

#if defined(__has_attribute)
#if __has_attribute(no_stack_protector)
#define NO_TLS	__attribute__((no_stack_protector))
#endif
#endif
#ifndef NO_TLS
#define NO_TLS
#endif

#define STR_(x)		#x
#define STR(x)		STR_(x)
#define AT(off)		STR(ISA_NATIVE) "+" STR(off)
#define PRCTL(code, addr) \
	"mov $158, %eax\n\tmov $" STR(code) ", %edi\n\t" addr "\n\tsyscall\n\t"

void isa_native_enter(void);
void isa_native_signal(int sig, siginfo_t *info, void *uc);
void isa_native_leave(void);
void isa_native_capture(ucontext_t *uc);
void isa_native_crash(int sig);

/*
 * enter: the caller's registers go to its stack, the snippet's come in. signal: the handler of all
 * exceptions. leave: back to the caller. arch_prctl is call 158; ARCH_SET_GS, _SET_FS, _GET_FS and
 * _GET_GS are 0x1001 to 0x1004. DS and ES are 0 in 64-bit Linux programs.
 */
__asm__(
"	.text\n"
"	.globl isa_native_enter, isa_native_signal, isa_native_leave\n"
"isa_native_enter:\n"
"	push %rbx\n	push %rbp\n	push %r12\n	push %r13\n	push %r14\n	push %r15\n"
"	mov %rsp, " AT(HOST_RSP) "\n"
"	fxsave64 " AT(HOST_FX) "\n"
	PRCTL(0x1002, "mov " AT(144) ", %rsi")
	PRCTL(0x1001, "mov " AT(152) ", %rsi")
"	fxrstor64 " AT(IN_FX) "\n"
"	mov " AT(0) ", %rax\n	mov " AT(8) ", %rcx\n	mov " AT(16) ", %rdx\n	mov " AT(24) ", %rbx\n"
"	mov " AT(40) ", %rbp\n	mov " AT(48) ", %rsi\n	mov " AT(56) ", %rdi\n	mov " AT(64) ", %r8\n"
"	mov " AT(72) ", %r9\n	mov " AT(80) ", %r10\n	mov " AT(88) ", %r11\n	mov " AT(96) ", %r12\n"
"	mov " AT(104) ", %r13\n	mov " AT(112) ", %r14\n	mov " AT(120) ", %r15\n"
"	pushq " AT(136) "\n"
"	popfq\n"
"	mov " AT(32) ", %rsp\n"
"	jmp *" AT(128) "\n"
"isa_native_signal:\n"
"	cmpq $0, " AT(SERIAL) "\n"
"	je isa_native_crash\n"
"	mov %rdx, %rdi\n"
"	and $-16, %rsp\n"
"	pushq $2\n	popfq\n"		/* the snippet's AC, NT */
"	call isa_native_capture\n"
"isa_native_leave:\n"
"	cld\n"
	PRCTL(0x1003, "mov $" AT(OUT_FS) ", %esi")
	PRCTL(0x1004, "mov $" AT(OUT_GS) ", %esi")
	PRCTL(0x1002, "mov " AT(HOST_FS) ", %rsi")
"	mov %ds, " AT(OUT_DS) "\n"
"	mov %es, " AT(OUT_ES) "\n"
"	xor %eax, %eax\n"
"	mov %eax, %ds\n"
"	mov %eax, %es\n"
"	fxrstor64 " AT(HOST_FX) "\n"
"	mov " AT(HOST_RSP) ", %rsp\n"
"	pop %r15\n	pop %r14\n	pop %r13\n	pop %r12\n	pop %rbp\n	pop %rbx\n"
"	ret\n"
);

static inline struct isa_native *native_page(void)
{
	return (struct isa_native *)ISA_NATIVE;
}

/* The ucontext's order of registers is not the encoding's. */
static const u8 greg_of[NR_X86_GPRS] = {
	REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
	REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
};

/* No snippet's signal but our own: die of it when the instruction is tried again. */
void isa_native_crash(int sig)
{
	signal(sig, SIG_DFL);
}

/* On the alternate stack, with the snippet's FS base. */
NO_TLS
void isa_native_capture(ucontext_t *uc)
{
	struct isa_native *n = native_page();
	const greg_t *g = uc->uc_mcontext.gregs;
	u64 *to = (u64 *)n->regs.fx;
	const u64 *from = (const u64 *)uc->uc_mcontext.fpregs;

	for (u32 i = 0; i < NR_X86_GPRS; i++)
		n->regs.gpr[i] = (u64)g[greg_of[i]];
	n->regs.rip = (u64)g[REG_RIP];
	n->regs.rflags = (u64)g[REG_EFL];
	n->serial = 0;
	n->vector = (u64)g[REG_TRAPNO];
	n->error = (u64)g[REG_ERR];
	n->cr2 = (u64)g[REG_CR2];
	for (u32 i = 0; i < sizeof(n->regs.fx) / 8; i++)
		to[i] = from[i];
}

/* A snippet that has run since the last tick does not end: take it out. */
NO_TLS
static void native_tick(int sig, siginfo_t *info, void *ctx)
{
	struct isa_native *n = native_page();
	ucontext_t *uc = ctx;
	u64 rip = (u64)uc->uc_mcontext.gregs[REG_RIP];

	if (!n->serial || n->serial != n->last_tick || rip < ISA_CODE || rip >= ISA_CODE + ISA_CODE_PAGES * PAGE_SIZE) {
		n->last_tick = n->serial;
		return;
	}
	isa_native_capture(uc);
	n->vector = (u64)-1;
	uc->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)isa_native_leave;
	uc->uc_mcontext.gregs[REG_RSP] = (greg_t)n->host_rsp;
	uc->uc_mcontext.gregs[REG_EFL] = 2;
}

static const int signals[] = { SIGSEGV, SIGILL, SIGFPE, SIGBUS, SIGTRAP };

static void native_protect(bool ro)
{
	mprotect((void *)(uintptr_t)(ISA_DATA + ISA_DATA_RO * PAGE_SIZE), PAGE_SIZE, PROT_READ | (ro ? 0 : PROT_WRITE));
}

static bool native_map(u64 at, u64 pages)
{
	/* With the pages around it that must fault. */
	void *p = (void *)(uintptr_t)(at - PAGE_SIZE);
	u64 len = pages * PAGE_SIZE;

	if (mmap(p, len + 2 * PAGE_SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != p)
		return false;
	p = (void *)(uintptr_t)at;
	if (mprotect(p, len, PROT_READ | PROT_WRITE | (at == ISA_CODE ? PROT_EXEC : 0)))
		return false;
	memset(p, 0, len);
	mlock(p, len);	/* a page that were paged out would give another error code; may fail */
	return true;
}

struct isa_native *isa_native_new(void)
{
	struct sigaction sa = { .sa_sigaction = isa_native_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };
	struct itimerval tick = { { 0, TICK_USEC }, { 0, TICK_USEC } };
	struct isa_native *n;
	stack_t alt = { .ss_size = ALT_STACK_LEN };

	if (!native_map(ISA_NATIVE, DIV_ROUND_UP(sizeof(*n), PAGE_SIZE)) || !native_map(ISA_CODE, ISA_CODE_PAGES) ||
	    !native_map(ISA_DATA, ISA_DATA_PAGES) || !native_map(ISA_STACK, ISA_STACK_PAGES)) {
		perror("isa-test: cannot map the snippets' memory");
		return NULL;
	}
	native_protect(true);
	n = native_page();
	n->fsgsbase = getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE_BIT;
	n->alt_stack = g_malloc(ALT_STACK_LEN);
	alt.ss_sp = n->alt_stack;
	sigaltstack(&alt, NULL);
	sigemptyset(&sa.sa_mask);
	for (u32 i = 0; i < ARRAY_SIZE(signals); i++)
		sigaction(signals[i], &sa, &n->old[i]);
	sa.sa_sigaction = native_tick;
	sa.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
	sigaction(SIGALRM, &sa, &n->old[5]);
	setitimer(ITIMER_REAL, &tick, NULL);
	syscall(SYS_arch_prctl, ARCH_GET_FS, &n->host_fs);
	return n;
}

void isa_native_free(struct isa_native *n)
{
	struct itimerval off = { 0 };
	stack_t alt = { .ss_flags = SS_DISABLE };

	setitimer(ITIMER_REAL, &off, NULL);
	sigaction(SIGALRM, &n->old[5], NULL);
	for (u32 i = 0; i < ARRAY_SIZE(signals); i++)
		sigaction(signals[i], &n->old[i], NULL);
	sigaltstack(&alt, NULL);
	g_free(n->alt_stack);
	munmap((void *)(uintptr_t)(ISA_CODE - PAGE_SIZE), (ISA_CODE_PAGES + 2) * PAGE_SIZE);
	munmap((void *)(uintptr_t)(ISA_DATA - PAGE_SIZE), (ISA_DATA_PAGES + 2) * PAGE_SIZE);
	munmap((void *)(uintptr_t)(ISA_STACK - PAGE_SIZE), (ISA_STACK_PAGES + 2) * PAGE_SIZE);
	munmap((void *)(uintptr_t)(ISA_NATIVE - PAGE_SIZE), (DIV_ROUND_UP(sizeof(*n), PAGE_SIZE) + 2) * PAGE_SIZE);
}

bool isa_native_has_fsgsbase(const struct isa_native *n)
{
	return n->fsgsbase;
}

void isa_native_run(struct isa_native *n, const struct isa_snippet *s, const struct isa_image *image,
		    struct isa_outcome *out)
{
	u8 *ro = (u8 *)(uintptr_t)(ISA_DATA + ISA_DATA_RO * PAGE_SIZE);
	const u8 *ro_image = image->data + ISA_DATA_RO * PAGE_SIZE;
	const u64 above = (ISA_DATA_RO + 1) * PAGE_SIZE;

	memcpy((void *)(uintptr_t)ISA_CODE, image->code, sizeof(image->code));
	memcpy((void *)(uintptr_t)ISA_DATA, image->data, ISA_DATA_RO * PAGE_SIZE);
	memcpy((void *)(uintptr_t)(ISA_DATA + above), image->data + above, sizeof(image->data) - above);
	memcpy((void *)(uintptr_t)ISA_STACK, image->stack, sizeof(image->stack));
	if (memcmp(ro, ro_image, PAGE_SIZE)) {
		native_protect(false);
		memcpy(ro, ro_image, PAGE_SIZE);
		native_protect(true);
	}
	memcpy((u8 *)(uintptr_t)ISA_CODE + s->at, s->code, s->len);
	n->in = s->in;
	n->serial = ++n->next_serial;
	isa_native_enter();

	out->regs = n->regs;
	out->regs.fs_base = n->out_fs;
	out->regs.gs_base = n->out_gs;
	out->regs.ds = (u16)n->out_ds;
	out->regs.es = (u16)n->out_es;
	out->vector = (int)n->vector;
	out->error = (u32)n->error;
	out->cr2 = n->cr2;
	memcpy(out->mem.code, (void *)(uintptr_t)ISA_CODE, sizeof(out->mem.code));
	memcpy(out->mem.data, (void *)(uintptr_t)ISA_DATA, sizeof(out->mem.data));
	memcpy(out->mem.stack, (void *)(uintptr_t)ISA_STACK, sizeof(out->mem.stack));
}
