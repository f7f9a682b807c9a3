// SPDX-License-Identifier: GPL-2.0-only
/*
 * SSE, SSE2, MMX and MXCSR of the soft engine against the host: each form of each
 * instruction is encoded by Zydis, executed by both on the same random state, and all
 * registers, flags, MXCSR and memory must be equal. Exceptions that are not masked are
 * taken on the host by a handler of SIGFPE.
 */
#include <string.h>

#include "soft-host.h"

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
			MXCSR(s.fx) |= (u32)rng_next(&simd.rng) & 0xe07f;
			if (form->mnemonic == ZYDIS_MNEMONIC_LDMXCSR) {
				u32 v = ((u32)rng_next(&simd.rng) & 0xffff) | 0x1f80;

				memcpy(host_mem + disp, &v, 4);
				memcpy(simd.ram + disp, &v, 4);
			}
			to_soft(&s);
			host_run(&s, bytes, len);
			g_assert_false(simd.trapped);
			g_assert_cmpint(soft_run_one(bytes, len), ==, SOFT_OK);
			expect_equal(&s, name_of(form));
		}
	}
}

/* Sums that are tiny are exact, so that PE is certain there: without overflow it is that of the masked response. */
static bool exact_if_tiny(const struct form *form, const struct host_state *s, u32 before)
{
	bool sum = form->mnemonic == ZYDIS_MNEMONIC_ADDPS || form->mnemonic == ZYDIS_MNEMONIC_ADDPD ||
		   form->mnemonic == ZYDIS_MNEMONIC_ADDSS || form->mnemonic == ZYDIS_MNEMONIC_ADDSD ||
		   form->mnemonic == ZYDIS_MNEMONIC_SUBPS || form->mnemonic == ZYDIS_MNEMONIC_SUBPD ||
		   form->mnemonic == ZYDIS_MNEMONIC_SUBSS || form->mnemonic == ZYDIS_MNEMONIC_SUBSD;

	return sum && !(MXCSR(s->fx) & ~(before >> 7) & 8);
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
			MXCSR(s.fx) = (u32)rng_next(&simd.rng) & 0xffc0;
			before = MXCSR(s.fx);
			to_soft(&s);
			host_run(&s, bytes, len);
			ret = soft_run_one(bytes, len);
			if (simd.trapped != (ret == SOFT_FAULT))
				g_error("%s: MXCSR %x: %s by the host only, %x", name_of(form), before,
					simd.trapped ? "taken" : "not taken", MXCSR(s.fx));
			vague = simd.trapped && (MXCSR(s.fx) & ~(before >> 7) & 0x18) && !exact_if_tiny(form, &s, before) ? 0x20 : 0;
			if (simd.trapped) {
				nr_taken++;
				g_assert_cmpuint(simd.c->fault.vector, ==, VEC_XM);
				g_assert_false(simd.c->fault.has_error);
			} else {
				nr_passed++;
			}
			MXCSR(s.fx) |= vague;
			MXCSR(simd.c->fx) |= vague;
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
			g_assert_cmpuint(simd.c->fault.vector, ==, VEC_GP);
			g_assert_true(simd.c->fault.has_error);
			g_assert_cmpuint(simd.c->fault.error, ==, 0);
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
		simd.c->gpr[X86_RDI] = UNMAPPED;
		if (form->size == 1) {
			g_assert_cmpint(soft_run_one(bytes, len), ==, SOFT_OK);
			continue;
		}
		g_assert_cmpint(soft_run_one(bytes, len), ==, SOFT_FAULT);
		g_assert_cmpuint(simd.c->fault.vector, ==, VEC_PF);
		g_assert_cmpuint(simd.c->fault.cr2, ==, UNMAPPED);
		g_assert_cmpuint(simd.c->fault.error, ==, form->args[0] == 'm' && form->mnemonic != ZYDIS_MNEMONIC_LDMXCSR ?
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
	u64 cr0 = simd.c->cr0, cr4 = simd.c->cr4;

	for (u32 i = 0; i < ARRAY_SIZE(cases); i++) {
		struct host_state s;
		int ret;

		random_state(&s);
		memset(s.fx + 160, 0, 32);
		if (cases[i].bytes == divss)
			MXCSR(s.fx) = 0x1f00;		/* 0 / 0 is invalid, and IM is clear */
		to_soft(&s);
		simd.c->cr0 = (cr0 & ~(X86_CR0_EM | X86_CR0_TS | X86_CR0_MP)) | cases[i].cr0;
		simd.c->cr4 = (cr4 & ~(X86_CR4_OSFXSR | X86_CR4_OSXMMEXCPT)) | cases[i].cr4;
		soft_update_fpu(simd.c);
		ret = soft_run_one(cases[i].bytes, cases[i].len);
		g_assert_cmpint(ret, ==, cases[i].vector < 0 ? SOFT_OK : SOFT_FAULT);
		if (ret)
			g_assert_cmpint(simd.c->fault.vector, ==, cases[i].vector);
	}
	simd.c->cr0 = cr0;
	simd.c->cr4 = cr4;
	soft_update_fpu(simd.c);
}

/* LDMXCSR of a reserved bit: #GP(0). */
static void test_ldmxcsr(void)
{
	static const u8 ldmxcsr[] = { 0x0f, 0xae, 0x17 };
	struct host_state s;

	for (u32 bit = 0; bit < 32; bit++) {
		random_state(&s);
		to_soft(&s);
		memcpy(simd.ram, &(u32){ BIT(bit) }, 4);
		g_assert_cmpint(soft_run_one(ldmxcsr, 3), ==, bit < 16 ? SOFT_OK : SOFT_FAULT);
		g_assert_cmphex(MXCSR(simd.c->fx), ==, bit < 16 ? BIT(bit) : 0x1f80);
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
	simd_init(&argc, &argv);
	g_test_add_func("/soft-simd/masked", test_masked);
	g_test_add_func("/soft-simd/unmasked", test_unmasked);
	g_test_add_func("/soft-simd/alignment", test_alignment);
	g_test_add_func("/soft-simd/page-fault", test_page_fault);
	g_test_add_func("/soft-simd/control", test_control);
	g_test_add_func("/soft-simd/ldmxcsr", test_ldmxcsr);
	g_test_add_func("/soft-simd/host-state", test_host_state);
	return simd_run();
}
