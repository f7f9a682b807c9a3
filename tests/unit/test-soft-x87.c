// SPDX-License-Identifier: GPL-2.0-only
/*
 * The x87 and FXSAVE of the soft engine against the host: every encoding of D8 to DF, on
 * random stacks, control and status words and operands of every class, with exceptions
 * masked and not. Registers, tags, flags and memory must be equal.
 */
#include <string.h>

#include "soft-host.h"

static void random_x87(struct host_state *s, bool masked)
{
	random_state(s);
	FCW(s->fx) = (u16)(((rng_next(&simd.rng) & 0xf3f) | 0x40) | (masked || pick(2) ? 0x3f : 0));
	FSW(s->fx) = (u16)(rng_next(&simd.rng) & (masked ? 0x7f3f : 0x7f00));
	/* Often enough registers in use that instructions with two operands find them. */
	s->fx[4] = pick(2) ? 0xff : (u8)rng_next(&simd.rng);
	for (u32 i = 0; i < 8; i++)
		fill_st(s->fx + 32 + 16 * i);
	if (pick(3) == 0) {		/* packed BCD and 80-bit operands */
		for (u32 i = 0; i < 9; i++)
			host_mem[i] = (u8)(pick(10) << 4 | pick(10));
		host_mem[9] = pick(2) ? 0x80 : 0;
	} else if (pick(2)) {
		fill_st(host_mem);
	}
	memcpy(simd.ram, host_mem, 512);
}

/* Environments in memory have the pointers, which are left out as in neutral(). */
static void neutral_env(ZydisMnemonic mnemonic, bool wide)
{
	if (mnemonic != ZYDIS_MNEMONIC_FNSTENV && mnemonic != ZYDIS_MNEMONIC_FNSAVE)
		return;
	memset(host_mem + (wide ? 12 : 6), 0, wide ? 16 : 8);
	memset(simd.ram + (wide ? 12 : 6), 0, wide ? 16 : 8);
}

/* One encoding, many states. False if the engine does not have it. */
static bool try_x87(const u8 *bytes, u32 len, u32 nr, u32 *nr_pending)
{
	ZydisDecodedOperand arg[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction insn;
	struct soft_op op = { .base = GPR_ZERO, .index = GPR_ZERO };
	struct soft_decode d = { .insn = &insn, .arg = arg, .bytes = bytes, .mode = MODE_64 };

	if (ZYAN_FAILED(ZydisDecoderDecodeFull(&simd.decoder, bytes, len, &insn, arg)) || insn.length != len)
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
		g_assert_cmpuint(simd.c->fault.vector, ==, VEC_MF);
		expect_equal(&s, "a pending exception");
	}
	/* FLDCW that clears the mask of a flag makes it pending. */
	random_state(&s);
	FSW(s.fx) = 4;
	to_soft(&s);
	memcpy(simd.ram, &(u16){ 0x37b }, 2);
	g_assert_cmpint(soft_run_one(fldcw, 2), ==, SOFT_OK);
	g_assert_cmphex(FSW(simd.c->fx), ==, 0x8084);
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
	memcpy(&fip, simd.c->fx + 8, 8);
	memcpy(&fdp, simd.c->fx + 16, 8);
	g_assert_cmphex(fip, ==, 0x10000);
	g_assert_cmphex(fdp, ==, BUFFER + 8);
	g_assert_cmphex(simd.c->fx[6] | simd.c->fx[7] << 8, ==, 0x447);
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
		MXCSR(s.fx) = (u32)rng_next(&simd.rng) & 0xffff;
		to_soft(&s);
		host_run(&s, save + narrow, 4 - narrow);
		g_assert_cmpint(soft_run_one(save + narrow, 4 - narrow), ==, SOFT_OK);
		neutral(host_mem);
		neutral(simd.ram);
		expect_equal(&s, "FXSAVE");

		/* Load something else. */
		random_x87(&s, n % 2);
		memcpy(image, s.fx, 512);
		FSW(image) = (u16)rng_next(&simd.rng);
		FCW(image) = (u16)rng_next(&simd.rng);
		MXCSR(image) = (u32)rng_next(&simd.rng) & 0xffff;
		random_x87(&s, n % 2);
		memcpy(host_mem, image, 512);
		memcpy(simd.ram, image, 512);
		to_soft(&s);
		host_run(&s, load + narrow, 4 - narrow);
		g_assert_cmpint(soft_run_one(load + narrow, 4 - narrow), ==, SOFT_OK);
		expect_equal(&s, "FXRSTOR");
	}
	/* Reserved bits of MXCSR, alignment, a page that is not there. */
	random_state(&s);
	to_soft(&s);
	MXCSR(simd.ram) = 0x10000;
	memcpy(host_mem, simd.ram, 512);
	g_assert_cmpint(soft_run_one(load, 4), ==, SOFT_FAULT);
	g_assert_cmpuint(simd.c->fault.vector, ==, VEC_GP);
	expect_equal(&s, "FXRSTOR that faults");
	simd.c->gpr[X86_RDI] = BUFFER + 8;
	g_assert_cmpint(soft_run_one(save, 4), ==, SOFT_FAULT);
	g_assert_cmpuint(simd.c->fault.vector, ==, VEC_GP);
	simd.c->gpr[X86_RDI] = UNMAPPED - 256;
	g_assert_cmpint(soft_run_one(load, 4), ==, SOFT_FAULT);
	g_assert_cmpuint(simd.c->fault.vector, ==, VEC_PF);
	g_assert_cmphex(simd.c->fault.cr2, ==, UNMAPPED);
	expect_equal(&s, "FXRSTOR that faults");
	g_assert_cmpint(soft_run_one(save, 4), ==, SOFT_FAULT);
	g_assert_cmpuint(simd.c->fault.vector, ==, VEC_PF);
	g_assert_cmphex(simd.c->fault.cr2, ==, UNMAPPED);
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
	g_test_add_func("/soft-x87/all", test_x87);
	g_test_add_func("/soft-x87/pending", test_x87_pending);
	g_test_add_func("/soft-x87/pointers", test_x87_pointers);
	g_test_add_func("/soft-x87/fxsave", test_fxsave);
	g_test_add_func("/soft-x87/host-state", test_host_state);
	return simd_run();
}
