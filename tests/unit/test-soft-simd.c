// SPDX-License-Identifier: GPL-2.0-only
/*
 * SSE, SSE2, MXCSR, FXSAVE, MMX and the x87 of the soft engine against the host: each form of
 * each instruction is encoded by Zydis, executed by both on the same random state, and
 * all registers, flags, MXCSR and memory must be equal. Exceptions that are not masked
 * are taken on the host by a handler of SIGFPE.
 */
#define _GNU_SOURCE	/* REG_RIP */
#include <glib.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <Zydis/Zydis.h>

#include "base/rng.h"
#include "soft-fixture.h"
#include "soft/decode.h"

#define BUFFER		0x100000ull	/* gpa of the memory operand's page */
#define LEN		64u		/* bytes of it that an instruction may touch, but for FXSAVE */
#define UNMAPPED	0x40000000ull	/* end of what the fixture's page tables map */
#define MXCSR(fx)	(*(u32 *)((fx) + 24))
#define FCW(fx)		(*(u16 *)((fx) + 0))
#define FSW(fx)		(*(u16 *)((fx) + 2))
#define ARITH		0x8d5ull

struct host_state {
	u8 fx[512] __attribute__((aligned(16)));
	u64 rax, rcx, rdi, rflags;
};

/* What a SIGFPE leaves for host_run(); a signal handler has no argument of ours. */
static struct {
	u64 resume;
	u32 mxcsr;
	bool taken;
} trap;

static struct {
	u8 *code;		/* page that the host may execute */
	u8 *ram;		/* the guest's memory operand */
	struct soft_fixture *f;
	struct soft_cpu *c;
	struct rng rng;
	ZydisDecoder decoder;
} t;

/* A memory operand of the host, as far from a page's end as the guest's. */
static u8 host_mem[4096] __attribute__((aligned(4096)));

static void on_sigfpe(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	trap.taken = true;
	trap.mxcsr = uc->uc_mcontext.fpregs->mxcsr;
	uc->uc_mcontext.fpregs->mxcsr = 0x1f80;
	uc->uc_mcontext.gregs[REG_RIP] = (greg_t)trap.resume;
}

/* One instruction of `len` bytes on the host. */
static void host_run(struct host_state *s, const u8 *bytes, u32 len)
{
	static const u32 mxcsr = 0x1f80;

	memcpy(t.code, bytes, len);
	t.code[len] = 0xc3;
	trap.resume = (u64)(uintptr_t)(t.code + len);
	trap.taken = false;
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
		     : : [s] "b" (s), [code] "r" (t.code), [mxcsr] "m" (mxcsr)
		     : "rax", "rcx", "rdx", "rdi", "memory", "cc", "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)",
		       "st(6)", "st(7)", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
		       "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
	if (trap.taken)
		MXCSR(s->fx) = trap.mxcsr;
}

static int op_stop(struct soft_cpu *c, const struct soft_op *op)
{
	return SOFT_OK;
}

/* The same instruction on the soft CPU: SOFT_OK or SOFT_FAULT. */
static int soft_run_one(const u8 *bytes, u32 len)
{
	struct soft_op op[2] = { { .base = GPR_ZERO, .index = GPR_ZERO }, { .fn = op_stop, .n = 1 } };
	struct soft_insn in;

	g_assert_true(soft_decode_insn(&t.decoder, MODE_64, bytes, len, op, &in));
	t.c->gpr[GPR_PAGE] = 0x10000;
	return op[0].fn(t.c, op);
}

static void to_soft(const struct host_state *s)
{
	struct soft_cpu *c = t.c;

	memcpy(c->fx, s->fx, sizeof(c->fx));
	c->gpr[X86_RAX] = s->rax;
	c->gpr[X86_RCX] = s->rcx;
	c->gpr[X86_RDI] = BUFFER + (s->rdi - (u64)(uintptr_t)host_mem);
	c->lo = s->rflags & 0xd5;
	c->of = s->rflags >> 11 & 1;
}

/* FOP, FIP, FDP and the reserved parts are left out: makers differ there. */
static void neutral(u8 fx[512])
{
	fx[5] = 0;
	memset(fx + 6, 0, 18);
	memset(fx + 28, 0, 4);
	for (u32 i = 0; i < 8; i++)
		memset(fx + 32 + 16 * i + 10, 0, 6);
	memset(fx + 416, 0, 96);
}

static void expect_equal(const struct host_state *s, const char *what)
{
	u8 a[512], b[512];

	memcpy(a, s->fx, 512);
	memcpy(b, t.c->fx, 512);
	neutral(a);
	neutral(b);
	for (u32 i = 0; i < 512; i++)
		if (a[i] != b[i])
			g_error("%s: byte %u of the FXSAVE area is %02x, on the host %02x", what, i, b[i], a[i]);
	if (s->rax != t.c->gpr[X86_RAX] || s->rcx != t.c->gpr[X86_RCX])
		g_error("%s: general registers differ", what);
	if ((s->rflags & ARITH) != (soft_rflags(t.c) & ARITH))
		g_error("%s: flags %x, on the host %x", what, (u32)(soft_rflags(t.c) & ARITH), (u32)(s->rflags & ARITH));
	if (memcmp(t.ram, host_mem, 512))
		g_error("%s: memory differs", what);
}

/* --- random state --- */

static u32 pick(u32 n)
{
	return (u32)(rng_next(&t.rng) % n);
}

static u32 float_bits(void)
{
	static const u32 odd[] = {
		0, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001,
		0xff80dead, 1, 0x80000001, 0x007fffff, 0x00800000, 0x00800001, 0x7f7fffff, 0xff7fffff, 0x4f000000,
		0xcf000000, 0x3f000000, 0x3fc00000, 0x00000100, 0x5f000000, 0x4b000001,
	};
	u32 r = (u32)rng_next(&t.rng);

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
	};
	u64 r = rng_next(&t.rng);

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
		u64 v = kind == 0 ? rng_next(&t.rng) : kind == 1 ? double_bits() :
			(u64)float_bits() << 32 | float_bits();

		memcpy(p + i, &v, 8);
	}
}

/* 80 bits of every class: also pseudo-denormals and unnormals. */
static void fill_st(u8 st[16])
{
	static const u64 mantissa[] = {
		0, 1, 1ull << 63, 1ull << 62, 3ull << 62, ~0ull, 0x8000000000000001, 0xc90fdaa22168c235,
		0x8000000000000400, 0xfffffffffffffc00, 0xa000000000000000,
	};
	static const u16 exponent[] = {
		0, 1, 0x3fff, 0x3ffe, 0x4000, 0x401e, 0x403e, 0x7ffe, 0x7fff, 0x3f80, 0x3c00, 0x43ff, 0x407f, 0x4005,
	};
	u64 m = pick(3) ? rng_next(&t.rng) | 1ull << 63 : mantissa[pick(ARRAY_SIZE(mantissa))];
	u16 e = pick(3) ? (u16)(0x3fff - 20 + pick(40)) : exponent[pick(ARRAY_SIZE(exponent))];

	e |= pick(2) ? 0x8000 : 0;
	memcpy(st, &m, 8);
	memcpy(st + 8, &e, 2);
	memset(st + 10, 0, 6);
}

static void random_state(struct host_state *s)
{
	memset(s, 0, sizeof(*s));
	FCW(s->fx) = 0x37f;
	MXCSR(s->fx) = 0x1f80;
	FSW(s->fx) = (u16)(pick(8) << 11);
	s->fx[4] = (u8)rng_next(&t.rng);
	fill(s->fx + 32, 128);		/* of MMX, and garbage in the x87's eyes */
	fill(s->fx + 160, 256);
	s->rax = rng_next(&t.rng);
	s->rcx = pick(2) ? rng_next(&t.rng) : (u64)(int)float_bits();
	s->rdi = (u64)(uintptr_t)host_mem;
	s->rflags = 0x202 | (rng_next(&t.rng) & ARITH);
	fill(host_mem, LEN);
	memcpy(t.ram, host_mem, 512);
}

/* --- instructions --- */

/* Operands: x XMM, y MMX, r and q general registers of 32 and 64 bits, m memory, i an immediate. */
struct form {
	ZydisMnemonic mnemonic;
	const char *args;
	u16 size;		/* bytes of the memory operand */
	bool aligned;		/* it must be: #GP */
};

static const struct form forms[] = {
#define SSE_INT(zydis, name)	{ ZYDIS_MNEMONIC_##zydis, "xx", 0, false }, { ZYDIS_MNEMONIC_##zydis, "xm", 16, true },
#define SSE_INT4(zydis, name)	{ ZYDIS_MNEMONIC_##zydis, "xx", 0, false }, { ZYDIS_MNEMONIC_##zydis, "xm", 4, false },
#include "soft/sse-int.def"
#define SSE_FP(zydis, name, size, lanes)	{ ZYDIS_MNEMONIC_##zydis, "xx", 0, false },	\
						{ ZYDIS_MNEMONIC_##zydis, "xm", size, size == 16 },
#define SSE_CMP(zydis, name, size)	{ ZYDIS_MNEMONIC_##zydis, "xxi", 0, false },	\
					{ ZYDIS_MNEMONIC_##zydis, "xmi", size, size == 16 },
#define SSE_FLAGS(zydis, name, size)	SSE_FP(zydis, name, size, 0)
#include "soft/sse-fp.def"
#define F(zydis, args, size, aligned)	{ ZYDIS_MNEMONIC_##zydis, args, size, aligned }
	F(PSLLW, "xi", 0, false), F(PSLLD, "xi", 0, false), F(PSLLQ, "xi", 0, false), F(PSRLW, "xi", 0, false),
	F(PSRLD, "xi", 0, false), F(PSRLQ, "xi", 0, false), F(PSRAW, "xi", 0, false), F(PSRAD, "xi", 0, false),
	F(PSLLDQ, "xi", 0, false), F(PSRLDQ, "xi", 0, false),
	F(PSHUFD, "xxi", 0, false), F(PSHUFD, "xmi", 16, true), F(PSHUFLW, "xxi", 0, false), F(PSHUFLW, "xmi", 16, true),
	F(PSHUFHW, "xxi", 0, false), F(PSHUFHW, "xmi", 16, true), F(SHUFPS, "xxi", 0, false), F(SHUFPS, "xmi", 16, true),
	F(SHUFPD, "xxi", 0, false), F(SHUFPD, "xmi", 16, true),
	F(PINSRW, "xri", 0, false), F(PINSRW, "xmi", 2, false), F(PEXTRW, "rxi", 0, false),
	F(PMOVMSKB, "rx", 0, false), F(MOVMSKPS, "rx", 0, false), F(MOVMSKPD, "rx", 0, false),
	F(CVTSI2SS, "xr", 0, false), F(CVTSI2SS, "xq", 0, false), F(CVTSI2SS, "xm", 4, false), F(CVTSI2SS, "xm", 8, false),
	F(CVTSI2SD, "xr", 0, false), F(CVTSI2SD, "xq", 0, false), F(CVTSI2SD, "xm", 4, false), F(CVTSI2SD, "xm", 8, false),
	F(CVTSS2SI, "rx", 0, false), F(CVTSS2SI, "qx", 0, false), F(CVTSS2SI, "rm", 4, false), F(CVTSS2SI, "qm", 4, false),
	F(CVTTSS2SI, "rx", 0, false), F(CVTTSS2SI, "qx", 0, false), F(CVTTSS2SI, "rm", 4, false), F(CVTTSS2SI, "qm", 4, false),
	F(CVTSD2SI, "rx", 0, false), F(CVTSD2SI, "qx", 0, false), F(CVTSD2SI, "rm", 8, false), F(CVTSD2SI, "qm", 8, false),
	F(CVTTSD2SI, "rx", 0, false), F(CVTTSD2SI, "qx", 0, false), F(CVTTSD2SI, "rm", 8, false), F(CVTTSD2SI, "qm", 8, false),
	F(MOVAPS, "xx", 0, false), F(MOVAPS, "xm", 16, true), F(MOVAPS, "mx", 16, true),
	F(MOVAPD, "xx", 0, false), F(MOVAPD, "xm", 16, true), F(MOVAPD, "mx", 16, true),
	F(MOVDQA, "xx", 0, false), F(MOVDQA, "xm", 16, true), F(MOVDQA, "mx", 16, true),
	F(MOVUPS, "xx", 0, false), F(MOVUPS, "xm", 16, false), F(MOVUPS, "mx", 16, false),
	F(MOVUPD, "xx", 0, false), F(MOVUPD, "xm", 16, false), F(MOVUPD, "mx", 16, false),
	F(MOVDQU, "xx", 0, false), F(MOVDQU, "xm", 16, false), F(MOVDQU, "mx", 16, false),
	F(MOVNTPS, "mx", 16, true), F(MOVNTPD, "mx", 16, true), F(MOVNTDQ, "mx", 16, true),
	F(MOVNTI, "mr", 4, false), F(MOVNTI, "mq", 8, false),
	F(MOVSS, "xx", 0, false), F(MOVSS, "xm", 4, false), F(MOVSS, "mx", 4, false),
	F(MOVSD, "xx", 0, false), F(MOVSD, "xm", 8, false), F(MOVSD, "mx", 8, false),
	F(MOVD, "xr", 0, false), F(MOVD, "rx", 0, false), F(MOVD, "xm", 4, false), F(MOVD, "mx", 4, false),
	F(MOVQ, "xq", 0, false), F(MOVQ, "qx", 0, false), F(MOVQ, "xx", 0, false), F(MOVQ, "xm", 8, false),
	F(MOVQ, "mx", 8, false),
	F(MOVHLPS, "xx", 0, false), F(MOVLHPS, "xx", 0, false),
	F(MOVHPS, "xm", 8, false), F(MOVHPS, "mx", 8, false), F(MOVHPD, "xm", 8, false), F(MOVHPD, "mx", 8, false),
	F(MOVLPS, "xm", 8, false), F(MOVLPS, "mx", 8, false), F(MOVLPD, "xm", 8, false), F(MOVLPD, "mx", 8, false),
	F(MASKMOVDQU, "xx", 0, false),
	F(LDMXCSR, "m", 4, false), F(STMXCSR, "m", 4, false),
	F(LFENCE, "", 0, false), F(MFENCE, "", 0, false), F(SFENCE, "", 0, false),
	F(PREFETCHNTA, "m", 1, false), F(PREFETCHT0, "m", 1, false), F(PREFETCHT1, "m", 1, false),
	F(PREFETCHT2, "m", 1, false),
#define MMX(zydis, name, size)	F(zydis, "yy", 0, false), F(zydis, "ym", size, false),
#include "soft/mmx.def"
	F(PSLLW, "yi", 0, false), F(PSLLD, "yi", 0, false), F(PSLLQ, "yi", 0, false), F(PSRLW, "yi", 0, false),
	F(PSRLD, "yi", 0, false), F(PSRLQ, "yi", 0, false), F(PSRAW, "yi", 0, false), F(PSRAD, "yi", 0, false),
	F(PSHUFW, "yyi", 0, false), F(PSHUFW, "ymi", 8, false), F(PINSRW, "yri", 0, false), F(PINSRW, "ymi", 2, false),
	F(PEXTRW, "ryi", 0, false), F(PMOVMSKB, "ry", 0, false), F(MASKMOVQ, "yy", 0, false),
	F(MOVD, "yr", 0, false), F(MOVD, "ry", 0, false), F(MOVD, "ym", 4, false), F(MOVD, "my", 4, false),
	F(MOVQ, "yq", 0, false), F(MOVQ, "qy", 0, false), F(MOVQ, "yy", 0, false), F(MOVQ, "ym", 8, false),
	F(MOVQ, "my", 8, false), F(MOVNTQ, "my", 8, false), F(MOVQ2DQ, "xy", 0, false), F(MOVDQ2Q, "yx", 0, false),
	F(CVTPI2PS, "xy", 0, false), F(CVTPI2PS, "xm", 8, false), F(CVTPI2PD, "xy", 0, false), F(CVTPI2PD, "xm", 8, false),
	F(CVTPS2PI, "yx", 0, false), F(CVTPS2PI, "ym", 8, false), F(CVTTPS2PI, "yx", 0, false), F(CVTTPS2PI, "ym", 8, false),
	F(CVTPD2PI, "yx", 0, false), F(CVTPD2PI, "ym", 16, true), F(CVTTPD2PI, "yx", 0, false), F(CVTTPD2PI, "ym", 16, true),
	F(EMMS, "", 0, false),
};

/* Register operands are random, 0 to 15 of XMM; an address is (%rdi + disp). */
static u32 encode(const struct form *form, s64 disp, u8 *bytes)
{
	ZydisEncoderRequest req = { .machine_mode = ZYDIS_MACHINE_MODE_LONG_64, .mnemonic = form->mnemonic };
	ZyanUSize len = ZYDIS_MAX_INSTRUCTION_LENGTH;

	for (const char *a = form->args; *a; a++) {
		ZydisEncoderOperand *o = &req.operands[req.operand_count++];

		o->type = *a == 'm' ? ZYDIS_OPERAND_TYPE_MEMORY : *a == 'i' ? ZYDIS_OPERAND_TYPE_IMMEDIATE :
			  ZYDIS_OPERAND_TYPE_REGISTER;
		switch (*a) {
		case 'x':
			o->reg.value = ZYDIS_REGISTER_XMM0 + pick(16);
			break;
		case 'y':
			o->reg.value = ZYDIS_REGISTER_MM0 + pick(8);
			break;
		case 'r':
			o->reg.value = pick(2) ? ZYDIS_REGISTER_EAX : ZYDIS_REGISTER_ECX;
			break;
		case 'q':
			o->reg.value = pick(2) ? ZYDIS_REGISTER_RAX : ZYDIS_REGISTER_RCX;
			break;
		case 'm':
			o->mem.base = ZYDIS_REGISTER_RDI;
			o->mem.displacement = disp;
			o->mem.size = form->size;
			break;
		default:
			o->imm.u = pick(3) ? pick(256) : pick(20);
			/* An immediate of CMPxx has three bits for the encoder. */
			if (form->args[1] && form->mnemonic >= ZYDIS_MNEMONIC_CMPPD && form->mnemonic <= ZYDIS_MNEMONIC_CMPSS)
				o->imm.u &= 7;
			break;
		}
	}
	if (ZYAN_FAILED(ZydisEncoderEncodeInstruction(&req, bytes, &len)))
		g_error("%s %s: not encoded", ZydisMnemonicGetString(form->mnemonic), form->args);
	return (u32)len;
}

/*
 * Be in MMX mode already where makers of CPUs differ in when it is entered: CVTPI2PS from
 * memory enters it on Intel's (SDM 2A), not on AMD's; so may a conversion that raises #XM.
 */
static void settle(const struct form *form, struct host_state *s, bool may_raise)
{
	if ((form->mnemonic == ZYDIS_MNEMONIC_CVTPI2PS && form->size) || (may_raise && strchr(form->args, 'y'))) {
		FSW(s->fx) = 0;
		s->fx[4] = 0xff;
	}
}

static const char *name_of(const struct form *form)
{
	static char text[64];

	g_snprintf(text, sizeof(text), "%s %s", ZydisMnemonicGetString(form->mnemonic), form->args);
	return text;
}

/* All exceptions masked; any rounding, DAZ, FTZ, sticky flags. */
static void test_masked(void)
{
	for (u32 i = 0; i < ARRAY_SIZE(forms); i++) {
		const struct form *form = &forms[i];

		for (u32 n = 0; n < 600; n++) {
			struct host_state s;
			u8 bytes[16];
			s64 disp = form->aligned ? 16 * pick(3) : (s64)pick(LEN - 16);
			u32 len = encode(form, disp, bytes);

			random_state(&s);
			settle(form, &s, false);
			MXCSR(s.fx) |= (u32)rng_next(&t.rng) & 0xe07f;
			if (form->mnemonic == ZYDIS_MNEMONIC_LDMXCSR) {
				u32 v = ((u32)rng_next(&t.rng) & 0xffff) | 0x1f80;

				memcpy(host_mem + disp, &v, 4);
				memcpy(t.ram + disp, &v, 4);
			}
			to_soft(&s);
			host_run(&s, bytes, len);
			g_assert_false(trap.taken);
			g_assert_cmpint(soft_run_one(bytes, len), ==, SOFT_OK);
			expect_equal(&s, name_of(form));
		}
	}
}

/*
 * Any masks. #XM leaves registers alone and sets the same flags, but for PE beside an
 * unmasked overflow or underflow (ops-sse-fp.c says why).
 */
static void test_unmasked(void)
{
	u32 nr_taken = 0, nr_passed = 0;

	for (u32 i = 0; i < ARRAY_SIZE(forms); i++) {
		const struct form *form = &forms[i];

		if (form->mnemonic == ZYDIS_MNEMONIC_LDMXCSR)
			continue;
		for (u32 n = 0; n < 600; n++) {
			struct host_state s;
			u8 bytes[16];
			u32 len = encode(form, 16 * pick(3), bytes), before, vague;
			int ret;

			random_state(&s);
			settle(form, &s, true);
			MXCSR(s.fx) = (u32)rng_next(&t.rng) & 0xffc0;
			before = MXCSR(s.fx);
			to_soft(&s);
			host_run(&s, bytes, len);
			ret = soft_run_one(bytes, len);
			if (trap.taken != (ret == SOFT_FAULT))
				g_error("%s: MXCSR %x: %s by the host only, %x", name_of(form), before,
					trap.taken ? "taken" : "not taken", MXCSR(s.fx));
			vague = trap.taken && (MXCSR(s.fx) & ~(before >> 7) & 0x18) ? 0x20 : 0;
			if (trap.taken) {
				nr_taken++;
				g_assert_cmpuint(t.c->fault.vector, ==, VEC_XM);
				g_assert_false(t.c->fault.has_error);
			} else {
				nr_passed++;
			}
			MXCSR(s.fx) |= vague;
			MXCSR(t.c->fx) |= vague;
			expect_equal(&s, name_of(form));
		}
	}
	/* The random operands do reach both. */
	g_assert_cmpuint(nr_taken, >, 5000);
	g_assert_cmpuint(nr_passed, >, 5000);
}

/* What may not be unaligned gives #GP(0), the rest does not; nothing is changed. */
static void test_alignment(void)
{
	for (u32 i = 0; i < ARRAY_SIZE(forms); i++) {
		const struct form *form = &forms[i];
		struct host_state s;
		u8 bytes[16];

		if (!strchr(form->args, 'm') || form->mnemonic == ZYDIS_MNEMONIC_LDMXCSR)
			continue;
		for (u32 disp = 1; disp < 16; disp++) {
			u32 len = encode(form, disp, bytes);

			random_state(&s);
			to_soft(&s);
			if (!form->aligned) {
				g_assert_cmpint(soft_run_one(bytes, len), ==, SOFT_OK);
				continue;
			}
			g_assert_cmpint(soft_run_one(bytes, len), ==, SOFT_FAULT);
			g_assert_cmpuint(t.c->fault.vector, ==, VEC_GP);
			g_assert_true(t.c->fault.has_error);
			g_assert_cmpuint(t.c->fault.error, ==, 0);
			expect_equal(&s, name_of(form));
		}
	}
}

/* Across the end of what is mapped: #PF, and nothing is changed. Prefetches do not fault. */
static void test_page_fault(void)
{
	for (u32 i = 0; i < ARRAY_SIZE(forms); i++) {
		const struct form *form = &forms[i];
		struct host_state s;
		u8 bytes[16];
		u32 len;

		if (!strchr(form->args, 'm'))
			continue;
		len = encode(form, 0, bytes);
		random_state(&s);
		to_soft(&s);
		t.c->gpr[X86_RDI] = UNMAPPED;
		if (form->size == 1) {
			g_assert_cmpint(soft_run_one(bytes, len), ==, SOFT_OK);
			continue;
		}
		g_assert_cmpint(soft_run_one(bytes, len), ==, SOFT_FAULT);
		g_assert_cmpuint(t.c->fault.vector, ==, VEC_PF);
		g_assert_cmpuint(t.c->fault.cr2, ==, UNMAPPED);
		g_assert_cmpuint(t.c->fault.error, ==, form->args[0] == 'm' && form->mnemonic != ZYDIS_MNEMONIC_LDMXCSR ?
				 PF_W : 0);
		expect_equal(&s, name_of(form));
	}
}

/* CR0.EM, CR0.TS, CR4.OSFXSR, CR4.OSXMMEXCPT (SDM 3A table 2-2 and 13.1). */
static void test_control(void)
{
	static const u8 addps[] = { 0x0f, 0x58, 0xc1 }, divss[] = { 0xf3, 0x0f, 0x5e, 0xc1 }, fld1[] = { 0xd9, 0xe8 };
	static const u8 fwait[] = { 0x9b }, fxsave[] = { 0x0f, 0xae, 0x07 }, emms[] = { 0x0f, 0x77 };
	static const u8 paddb[] = { 0x0f, 0xfc, 0xc1 }, lfence[] = { 0x0f, 0xae, 0xe8 }, movnti[] = { 0x0f, 0xc3, 0x07 };
	static const struct {
		const u8 *bytes;
		u32 len;
		u64 cr0, cr4;
		int vector;		/* -1: none */
	} cases[] = {
		{ addps, 3, 0, X86_CR4_OSFXSR, -1 },
		{ addps, 3, 0, 0, VEC_UD },
		{ addps, 3, X86_CR0_EM, X86_CR4_OSFXSR, VEC_UD },
		{ addps, 3, X86_CR0_TS, X86_CR4_OSFXSR, VEC_NM },
		{ addps, 3, X86_CR0_TS, 0, VEC_UD },
		{ divss, 4, 0, X86_CR4_OSFXSR, VEC_UD },
		{ divss, 4, 0, X86_CR4_OSFXSR | X86_CR4_OSXMMEXCPT, VEC_XM },
		{ fld1, 2, 0, 0, -1 },
		{ fld1, 2, X86_CR0_EM, 0, VEC_NM },
		{ fld1, 2, X86_CR0_TS, 0, VEC_NM },
		{ fwait, 1, X86_CR0_EM, 0, -1 },
		{ fwait, 1, X86_CR0_TS, 0, -1 },
		{ fwait, 1, X86_CR0_TS | X86_CR0_MP, 0, VEC_NM },
		{ fxsave, 3, 0, 0, -1 },
		{ fxsave, 3, X86_CR0_TS, 0, VEC_NM },
		{ fxsave, 3, X86_CR0_EM, 0, VEC_NM },
		{ emms, 2, X86_CR0_EM, 0, VEC_UD },
		{ emms, 2, X86_CR0_TS, 0, VEC_NM },
		{ paddb, 3, X86_CR0_EM, 0, VEC_UD },
		{ paddb, 3, X86_CR0_TS, 0, VEC_NM },
		{ paddb, 3, 0, 0, -1 },
		{ lfence, 3, X86_CR0_EM | X86_CR0_TS, 0, -1 },
		{ movnti, 3, X86_CR0_EM | X86_CR0_TS, 0, -1 },
	};
	u64 cr0 = t.c->cr0, cr4 = t.c->cr4;

	for (u32 i = 0; i < ARRAY_SIZE(cases); i++) {
		struct host_state s;
		int ret;

		random_state(&s);
		memset(s.fx + 160, 0, 32);
		if (cases[i].bytes == divss)
			MXCSR(s.fx) = 0x1f00;		/* 0 / 0 is invalid, and IM is clear */
		to_soft(&s);
		t.c->cr0 = (cr0 & ~(X86_CR0_EM | X86_CR0_TS | X86_CR0_MP)) | cases[i].cr0;
		t.c->cr4 = (cr4 & ~(X86_CR4_OSFXSR | X86_CR4_OSXMMEXCPT)) | cases[i].cr4;
		soft_update_fpu(t.c);
		ret = soft_run_one(cases[i].bytes, cases[i].len);
		g_assert_cmpint(ret, ==, cases[i].vector < 0 ? SOFT_OK : SOFT_FAULT);
		if (ret)
			g_assert_cmpint(t.c->fault.vector, ==, cases[i].vector);
	}
	t.c->cr0 = cr0;
	t.c->cr4 = cr4;
	soft_update_fpu(t.c);
}

/* --- x87 --- */

static void random_x87(struct host_state *s, bool masked)
{
	random_state(s);
	FCW(s->fx) = (u16)(((rng_next(&t.rng) & 0xf3f) | 0x40) | (masked || pick(2) ? 0x3f : 0));
	FSW(s->fx) = (u16)(rng_next(&t.rng) & (masked ? 0x7f3f : 0x7f00));
	/* Often enough registers in use that instructions with two operands find them. */
	s->fx[4] = pick(2) ? 0xff : (u8)rng_next(&t.rng);
	for (u32 i = 0; i < 8; i++)
		fill_st(s->fx + 32 + 16 * i);
	if (pick(3) == 0) {		/* packed BCD and 80-bit operands */
		for (u32 i = 0; i < 9; i++)
			host_mem[i] = (u8)(pick(10) << 4 | pick(10));
		host_mem[9] = pick(2) ? 0x80 : 0;
	} else if (pick(2)) {
		fill_st(host_mem);
	}
	memcpy(t.ram, host_mem, 512);
}

/* Environments in memory have the pointers, which are left out as in neutral(). */
static void neutral_env(ZydisMnemonic mnemonic, bool wide)
{
	if (mnemonic != ZYDIS_MNEMONIC_FNSTENV && mnemonic != ZYDIS_MNEMONIC_FNSAVE)
		return;
	memset(host_mem + (wide ? 12 : 6), 0, wide ? 16 : 8);
	memset(t.ram + (wide ? 12 : 6), 0, wide ? 16 : 8);
}

/* One encoding, many states. False if the engine does not have it. */
static bool try_x87(const u8 *bytes, u32 len, u32 nr, u32 *nr_pending)
{
	ZydisDecodedOperand arg[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction insn;
	struct soft_op op = { .base = GPR_ZERO, .index = GPR_ZERO };
	struct soft_decode d = { .insn = &insn, .arg = arg, .bytes = bytes, .mode = MODE_64 };

	if (ZYAN_FAILED(ZydisDecoderDecodeFull(&t.decoder, bytes, len, &insn, arg)) || insn.length != len)
		return true;		/* not defined */
	if (!soft_decode_x87(&d, &op))
		return false;
	for (u32 n = 0; n < nr; n++) {
		struct host_state s;
		char what[64];

		random_x87(&s, n % 2);
		g_snprintf(what, sizeof(what), "%s (%02x %02x) FCW %04x FSW %04x", ZydisMnemonicGetString(insn.mnemonic),
			   bytes[len - 2], bytes[len - 1], FCW(s.fx), FSW(s.fx));
		to_soft(&s);
		host_run(&s, bytes, len);
		g_assert_cmpint(soft_run_one(bytes, len), ==, SOFT_OK);
		neutral_env(insn.mnemonic, bytes[0] != 0x66);
		expect_equal(&s, what);
		*nr_pending += FSW(s.fx) >> 7 & 1;
	}
	return true;
}

static void test_x87(void)
{
	u32 nr_pending = 0;

	for (u32 i = 0; i < 8; i++) {
		for (u32 j = 0; j < 64; j++) {
			u8 bytes[2] = { (u8)(0xd8 + i), (u8)(0xc0 + j) };

			if (!try_x87(bytes, 2, 300, &nr_pending))
				g_error("%02x %02x is missing", bytes[0], bytes[1]);
		}
		for (u32 j = 0; j < 8; j++) {
			u8 bytes[3] = { 0x66, (u8)(0xd8 + i), (u8)(8 * j + 7) };
			bool fisttp = j == 1 && (i == 3 || i == 5 || i == 7);

			for (u32 wide = 0; wide < 2; wide++)
				if (try_x87(bytes + wide, 3 - wide, 1000, &nr_pending) == fisttp)
					g_error("%02x /%u", bytes[1], j);
		}
	}
	g_assert_cmpuint(nr_pending, >, 5000);
}

/* What is pending is raised by the next instruction that waits, and by no other. */
static void test_x87_pending(void)
{
	static const u8 fadd[] = { 0xd8, 0xc1 }, fldcw[] = { 0xd9, 0x2f }, fwait[] = { 0x9b }, fxsave[] = { 0x0f, 0xae, 0x07 };
	static const u8 fnstsw[] = { 0xdf, 0xe0 }, fnclex[] = { 0xdb, 0xe2 }, fninit[] = { 0xdb, 0xe3 }, emms[] = { 0x0f, 0x77 };
	static const u8 fnstcw[] = { 0xd9, 0x3f }, fnstenv[] = { 0xd9, 0x37 }, fnsave[] = { 0xdd, 0x37 }, fnop[] = { 0xd9, 0xd0 };
	static const u8 fldenv[] = { 0xd9, 0x27 }, frstor[] = { 0xdd, 0x27 }, paddb[] = { 0x0f, 0xfc, 0xc1 };
	static const u8 cvtpi2ps[] = { 0x0f, 0x2a, 0xc1 }, cvtpi2pd[] = { 0x66, 0x0f, 0x2a, 0x07 };
#define WAITS(name)	{ name, sizeof(name), true }
#define GOES(name)	{ name, sizeof(name), false }
	static const struct {
		const u8 *bytes;
		u32 len;
		bool waits;
	} cases[] = {
		WAITS(fadd), WAITS(fldcw), WAITS(fwait), WAITS(emms), WAITS(fnop), WAITS(fldenv), WAITS(frstor),
		WAITS(paddb), WAITS(cvtpi2ps), GOES(cvtpi2pd),
		GOES(fxsave), GOES(fnstsw), GOES(fnclex), GOES(fninit), GOES(fnstcw), GOES(fnstenv), GOES(fnsave),
	};
	struct host_state s;

	for (u32 i = 0; i < ARRAY_SIZE(cases); i++) {
		random_state(&s);
		FCW(s.fx) = 0x37b;		/* ZM clear, and ZE set: pending */
		FSW(s.fx) = 0x8084;
		to_soft(&s);
		g_assert_cmpint(soft_run_one(cases[i].bytes, cases[i].len), ==, cases[i].waits ? SOFT_FAULT : SOFT_OK);
		if (!cases[i].waits)
			continue;
		g_assert_cmpuint(t.c->fault.vector, ==, VEC_MF);
		expect_equal(&s, "a pending exception");
	}
	/* FLDCW that clears the mask of a flag makes it pending. */
	random_state(&s);
	FSW(s.fx) = 4;
	to_soft(&s);
	memcpy(t.ram, &(u16){ 0x37b }, 2);
	g_assert_cmpint(soft_run_one(fldcw, 2), ==, SOFT_OK);
	g_assert_cmphex(FSW(t.c->fx), ==, 0x8084);
	g_assert_cmpint(soft_run_one(fwait, 1), ==, SOFT_FAULT);
}

/* FIP, FDP and FOP of an instruction with a memory operand; control instructions leave them. */
static void test_x87_pointers(void)
{
	static const u8 fadd[] = { 0xdc, 0x47, 0x08 }, fnstcw[] = { 0xd9, 0x3f };
	struct host_state s;
	u64 fip, fdp;

	random_state(&s);
	to_soft(&s);
	g_assert_cmpint(soft_run_one(fadd, 3), ==, SOFT_OK);
	g_assert_cmpint(soft_run_one(fnstcw, 2), ==, SOFT_OK);
	memcpy(&fip, t.c->fx + 8, 8);
	memcpy(&fdp, t.c->fx + 16, 8);
	g_assert_cmphex(fip, ==, 0x10000);
	g_assert_cmphex(fdp, ==, BUFFER + 8);
	g_assert_cmphex(t.c->fx[6] | t.c->fx[7] << 8, ==, 0x447);
}

/* FXSAVE and FXRSTOR, both formats, as the host does them. */
static void test_fxsave(void)
{
	static const u8 save[] = { 0x48, 0x0f, 0xae, 0x07 }, load[] = { 0x48, 0x0f, 0xae, 0x0f };
	struct host_state s;
	u8 image[512];

	for (u32 n = 0; n < 2000; n++) {
		u32 narrow = pick(2);

		random_x87(&s, n % 2);
		MXCSR(s.fx) = (u32)rng_next(&t.rng) & 0xffff;
		to_soft(&s);
		host_run(&s, save + narrow, 4 - narrow);
		g_assert_cmpint(soft_run_one(save + narrow, 4 - narrow), ==, SOFT_OK);
		neutral(host_mem);
		neutral(t.ram);
		expect_equal(&s, "FXSAVE");

		/* Load something else. */
		random_x87(&s, n % 2);
		memcpy(image, s.fx, 512);
		FSW(image) = (u16)rng_next(&t.rng);
		FCW(image) = (u16)rng_next(&t.rng);
		MXCSR(image) = (u32)rng_next(&t.rng) & 0xffff;
		random_x87(&s, n % 2);
		memcpy(host_mem, image, 512);
		memcpy(t.ram, image, 512);
		to_soft(&s);
		host_run(&s, load + narrow, 4 - narrow);
		g_assert_cmpint(soft_run_one(load + narrow, 4 - narrow), ==, SOFT_OK);
		expect_equal(&s, "FXRSTOR");
	}
	/* Reserved bits of MXCSR, alignment, a page that is not there. */
	random_state(&s);
	to_soft(&s);
	MXCSR(t.ram) = 0x10000;
	memcpy(host_mem, t.ram, 512);
	g_assert_cmpint(soft_run_one(load, 4), ==, SOFT_FAULT);
	g_assert_cmpuint(t.c->fault.vector, ==, VEC_GP);
	expect_equal(&s, "FXRSTOR that faults");
	t.c->gpr[X86_RDI] = BUFFER + 8;
	g_assert_cmpint(soft_run_one(save, 4), ==, SOFT_FAULT);
	g_assert_cmpuint(t.c->fault.vector, ==, VEC_GP);
	t.c->gpr[X86_RDI] = UNMAPPED - 256;
	g_assert_cmpint(soft_run_one(load, 4), ==, SOFT_FAULT);
	g_assert_cmpuint(t.c->fault.vector, ==, VEC_PF);
	g_assert_cmphex(t.c->fault.cr2, ==, UNMAPPED);
	expect_equal(&s, "FXRSTOR that faults");
	g_assert_cmpint(soft_run_one(save, 4), ==, SOFT_FAULT);
	g_assert_cmpuint(t.c->fault.vector, ==, VEC_PF);
	g_assert_cmphex(t.c->fault.cr2, ==, UNMAPPED);
}

/* LDMXCSR of a reserved bit: #GP(0). */
static void test_ldmxcsr(void)
{
	static const u8 ldmxcsr[] = { 0x0f, 0xae, 0x17 };
	struct host_state s;

	for (u32 bit = 0; bit < 32; bit++) {
		random_state(&s);
		to_soft(&s);
		memcpy(t.ram, &(u32){ BIT(bit) }, 4);
		g_assert_cmpint(soft_run_one(ldmxcsr, 3), ==, bit < 16 ? SOFT_OK : SOFT_FAULT);
		g_assert_cmphex(MXCSR(t.c->fx), ==, bit < 16 ? BIT(bit) : 0x1f80);
	}
}

/* The host's own control words are as before. */
static void test_host_state(void)
{
	u32 mxcsr;
	u16 fcw;

	asm volatile("stmxcsr %0\n\tfnstcw %1" : "=m" (mxcsr), "=m" (fcw));
	g_assert_cmphex(mxcsr & 0xffc0, ==, 0x1f80);
	g_assert_cmphex(fcw, ==, 0x37f);
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_sigaction = on_sigfpe, .sa_flags = SA_SIGINFO };
	int ret;

	g_test_init(&argc, &argv, NULL);
	sigaction(SIGFPE, &sa, NULL);
	rng_seed(&t.rng, 1, 0);
	ZydisDecoderInit(&t.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	t.code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	g_assert_true(t.code != MAP_FAILED);
	t.f = soft_fixture_new(4, 1);
	soft_fixture_long(t.f, 0, NULL);
	t.c = soft_cpu(&t.f->cpu[0]);
	t.c->cr4 |= X86_CR4_OSFXSR | X86_CR4_OSXMMEXCPT;
	soft_update_fpu(t.c);
	t.ram = soft_fixture_ram(t.f, BUFFER, 4096);

	g_test_add_func("/soft-simd/masked", test_masked);
	g_test_add_func("/soft-simd/unmasked", test_unmasked);
	g_test_add_func("/soft-simd/alignment", test_alignment);
	g_test_add_func("/soft-simd/page-fault", test_page_fault);
	g_test_add_func("/soft-simd/control", test_control);
	g_test_add_func("/soft-simd/x87", test_x87);
	g_test_add_func("/soft-simd/x87-pending", test_x87_pending);
	g_test_add_func("/soft-simd/x87-pointers", test_x87_pointers);
	g_test_add_func("/soft-simd/fxsave", test_fxsave);
	g_test_add_func("/soft-simd/ldmxcsr", test_ldmxcsr);
	g_test_add_func("/soft-simd/host-state", test_host_state);
	ret = g_test_run();
	soft_fixture_free(t.f);
	munmap(t.code, 4096);
	return ret;
}
