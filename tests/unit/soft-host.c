// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE	/* REG_RIP */
#include "soft-host.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

struct simd_test simd;
u8 host_mem[4096] __attribute__((aligned(4096)));

static void on_sigfpe(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	simd.trapped = true;
	simd.trap_mxcsr = uc->uc_mcontext.fpregs->mxcsr;
	uc->uc_mcontext.fpregs->mxcsr = 0x1f80;
	uc->uc_mcontext.gregs[REG_RIP] = (greg_t)simd.resume;
}

void host_run(struct host_state *s, const u8 *bytes, u32 len)
{
	static const u32 mxcsr = 0x1f80;

	memcpy(simd.code, bytes, len);
	simd.code[len] = 0xc3;
	simd.resume = (u64)(uintptr_t)(simd.code + len);
	simd.trapped = false;
	asm volatile("subq $128, %%rsp\n\t"
		     "fxrstor64 (%[s])\n\t"
		     "pushq 536(%[s])\n\t"
		     "popfq\n\t"
		     "movq 512(%[s]), %%rax\n\t"
		     "movq 520(%[s]), %%rcx\n\t"
		     "movq 528(%[s]), %%rdi\n\t"
		     "call *%[code]\n\t"
		     "pushfq\n\t"
		     "popq 536(%[s])\n\t"
		     "movq %%rax, 512(%[s])\n\t"
		     "movq %%rcx, 520(%[s])\n\t"
		     "fxsave64 (%[s])\n\t"
		     "fninit\n\t"
		     "ldmxcsr %[mxcsr]\n\t"
		     "addq $128, %%rsp"
		     : : [s] "b" (s), [code] "r" (simd.code), [mxcsr] "m" (mxcsr)
		     : "rax", "rcx", "rdx", "rdi", "memory", "cc", "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)",
		       "st(6)", "st(7)", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
		       "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
	if (simd.trapped)
		MXCSR(s->fx) = simd.trap_mxcsr;
}

static int op_stop(struct soft_cpu *c, const struct soft_op *op)
{
	return SOFT_OK;
}

int soft_run_one(const u8 *bytes, u32 len)
{
	struct soft_op op[2] = { { .base = GPR_ZERO, .index = GPR_ZERO }, { .fn = op_stop, .n = 1 } };
	struct soft_insn in;

	g_assert_true(soft_decode_insn(&simd.decoder, MODE_64, bytes, len, op, &in));
	simd.c->gpr[GPR_PAGE] = 0x10000;
	return op[0].fn(simd.c, op);
}

void to_soft(const struct host_state *s)
{
	struct soft_cpu *c = simd.c;

	memcpy(c->fx, s->fx, sizeof(c->fx));
	c->gpr[X86_RAX] = s->rax;
	c->gpr[X86_RCX] = s->rcx;
	c->gpr[X86_RDI] = BUFFER + (s->rdi - (u64)(uintptr_t)host_mem);
	c->lo = s->rflags & 0xd5;
	c->of = s->rflags >> 11 & 1;
}

/* FOP, FIP, FDP and the reserved parts are left out: makers differ there. */
void neutral(u8 fx[512])
{
	fx[5] = 0;
	memset(fx + 6, 0, 18);
	memset(fx + 28, 0, 4);
	for (u32 i = 0; i < 8; i++)
		memset(fx + 32 + 16 * i + 10, 0, 6);
	memset(fx + 416, 0, 96);
}

void expect_equal(const struct host_state *s, const char *what)
{
	u8 a[512], b[512];

	memcpy(a, s->fx, 512);
	memcpy(b, simd.c->fx, 512);
	neutral(a);
	neutral(b);
	for (u32 i = 0; i < 512; i++)
		if (a[i] != b[i])
			g_error("%s: byte %u of the FXSAVE area is %02x, on the host %02x", what, i, b[i], a[i]);
	if (s->rax != simd.c->gpr[X86_RAX] || s->rcx != simd.c->gpr[X86_RCX])
		g_error("%s: general registers differ", what);
	if ((s->rflags & ARITH) != (soft_rflags(simd.c) & ARITH))
		g_error("%s: flags %x, on the host %x", what, (u32)(soft_rflags(simd.c) & ARITH), (u32)(s->rflags & ARITH));
	if (memcmp(simd.ram, host_mem, 512))
		g_error("%s: memory differs", what);
}

/* --- random state --- */

u32 pick(u32 n)
{
	return (u32)(rng_next(&simd.rng) % n);
}

static u32 float_bits(void)
{
	static const u32 odd[] = {
		0, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001,
		0xff80dead, 1, 0x80000001, 0x007fffff, 0x00800000, 0x00800001, 0x7f7fffff, 0xff7fffff, 0x4f000000,
		0xcf000000, 0x3f000000, 0x3fc00000, 0x00000100, 0x5f000000, 0x4b000001,
	};
	u32 r = (u32)rng_next(&simd.rng);

	switch (pick(4)) {
	case 0:
		return odd[pick(ARRAY_SIZE(odd))];
	case 1:		/* not far from 1 */
		return (r & 0x807fffff) | (120 + pick(15)) << 23;
	case 2:		/* at either end */
		return (r & 0x807fffff) | (pick(2) ? pick(4) : 250 + pick(5)) << 23;
	default:
		return r;
	}
}

static u64 double_bits(void)
{
	static const u64 odd[] = {
		0, 1ull << 63, 0x3ff0000000000000, 0xbff0000000000000, 0x7ff0000000000000, 0xfff0000000000000,
		0x7ff8000000000000, 0xfff8000000000001, 0x7ff0000000000001, 1, 0x000fffffffffffff,
		0x0010000000000000, 0x7fefffffffffffff, 0x41e0000000000000, 0xc1e0000000000000,
		0x43e0000000000000, 0xc3e0000000000000, 0x3fe0000000000000, 0x47efffffe0000000,
		0x47f0000000000000, 0x3810000000000000, 0x3690000000000000, 0x380fffffffffffff,
		0x36a0000000000000, 0x3800000000000000, 0xb7f8000000000000,	/* denormal in single precision */
	};
	u64 r = rng_next(&simd.rng);

	switch (pick(5)) {
	case 0:
		return odd[pick(ARRAY_SIZE(odd))];
	case 1:
		return (r & 0x800fffffffffffff) | (u64)(1015 + pick(16)) << 52;
	case 2:
		return (r & 0x800fffffffffffff) | (u64)(pick(2) ? pick(4) : 2042 + pick(5)) << 52;
	case 3:		/* at the ends of single precision */
		return (r & 0x800fffffffffffff) | (u64)(pick(2) ? 870 + pick(32) : 1145 + pick(10)) << 52;
	default:
		return r;
	}
}

static void fill(u8 *p, u32 len)
{
	u32 kind = pick(3);

	for (u32 i = 0; i < len; i += 8) {
		u64 v = kind == 0 ? rng_next(&simd.rng) : kind == 1 ? double_bits() :
			(u64)float_bits() << 32 | float_bits();

		memcpy(p + i, &v, 8);
	}
}

/* 80 bits of every class: also pseudo-denormals and unnormals. */
void fill_st(u8 st[16])
{
	static const u64 mantissa[] = {
		0, 1, 1ull << 63, 1ull << 62, 3ull << 62, ~0ull, 0x8000000000000001, 0xc90fdaa22168c235,
		0x8000000000000400, 0xfffffffffffffc00, 0xa000000000000000,
	};
	static const u16 exponent[] = {
		0, 1, 0x3fff, 0x3ffe, 0x4000, 0x401e, 0x403e, 0x7ffe, 0x7fff, 0x3f80, 0x3c00, 0x43ff, 0x407f, 0x4005,
	};
	u64 m = pick(3) ? rng_next(&simd.rng) | 1ull << 63 : mantissa[pick(ARRAY_SIZE(mantissa))];
	u16 e = pick(3) ? (u16)(0x3fff - 20 + pick(40)) : exponent[pick(ARRAY_SIZE(exponent))];

	e |= pick(2) ? 0x8000 : 0;
	memcpy(st, &m, 8);
	memcpy(st + 8, &e, 2);
	memset(st + 10, 0, 6);
}

void random_state(struct host_state *s)
{
	memset(s, 0, sizeof(*s));
	FCW(s->fx) = 0x37f;
	MXCSR(s->fx) = 0x1f80;
	FSW(s->fx) = (u16)(pick(8) << 11);
	s->fx[4] = (u8)rng_next(&simd.rng);
	fill(s->fx + 32, 128);		/* of MMX, and garbage in the x87's eyes */
	fill(s->fx + 160, 256);
	s->rax = rng_next(&simd.rng);
	s->rcx = pick(2) ? rng_next(&simd.rng) : (u64)(int)float_bits();
	s->rdi = (u64)(uintptr_t)host_mem;
	s->rflags = 0x202 | (rng_next(&simd.rng) & ARITH);
	fill(host_mem, LEN);
	memcpy(simd.ram, host_mem, 512);
}

void simd_init(int *argc, char ***argv)
{
	struct sigaction sa = { .sa_sigaction = on_sigfpe, .sa_flags = SA_SIGINFO };

	g_test_init(argc, argv, NULL);
	sigaction(SIGFPE, &sa, NULL);
	rng_seed(&simd.rng, 1, 0);
	ZydisDecoderInit(&simd.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	simd.code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	g_assert_true(simd.code != MAP_FAILED);
	simd.f = soft_fixture_new(4, 1);
	soft_fixture_long(simd.f, 0, NULL);
	simd.c = soft_cpu(&simd.f->cpu[0]);
	simd.c->cr4 |= X86_CR4_OSFXSR | X86_CR4_OSXMMEXCPT;
	soft_update_fpu(simd.c);
	simd.ram = soft_fixture_ram(simd.f, BUFFER, 4096);
}

int simd_run(void)
{
	int ret = g_test_run();

	soft_fixture_free(simd.f);
	munmap(simd.code, 4096);
	return ret;
}
