// SPDX-License-Identifier: GPL-2.0-only
/* What takes more than one instruction of a pattern, or bytes of its own. */
#include <string.h>

#include "generate.h"

#define ROOM	100u	/* bytes, and 16 instructions, that any of these needs at most */

static bool gen_room(const struct gen *g)
{
	return g->s->len + ROOM <= ISA_MAX_CODE && g->s->nr + 16 <= ISA_MAX_INSNS;
}

/* Instructions of the family between a branch and its target. */
static void gen_body(struct gen *g, u32 nr)
{
	bool last = g->last;

	g->last = false;
	for (u32 i = 0; i < nr; i++)
		gen_any(g);
	g->last = last;
}

static void patch32(struct gen *g, u32 at, u32 from)
{
	s32 rel = (s32)(g->s->len - from);

	memcpy(g->s->code + at, &rel, 4);
}

/* b with a register in its low three bits, REX before it. */
static bool gen_reg_op(struct gen *g, bool wide, u32 reg, const u8 *b, u32 len, u32 at)
{
	u8 out[16] = { (u8)(0x40 | (wide ? 8 : 0) | (reg >> 3)) };

	memcpy(out + 1, b, len);
	out[1 + at] |= reg & 7;
	return gen_bytes(g, out, len + 1);
}

static bool gen_mov_imm(struct gen *g, u32 reg, u32 imm)
{
	u8 b[5] = { 0xb8 };

	memcpy(b + 1, &imm, 4);
	return gen_reg_op(g, false, reg, b, 5, 0);
}

static u32 free_reg(struct gen *g)
{
	return gen_pick(g, ~g->keep & 0xffff);
}

static bool branch_cc(struct gen *g)
{
	struct isa_snippet *s = g->s;
	u8 cc = (u8)gen_below(&g->rng, 16), b[6] = { 0x0f, (u8)(0x80 | cc) };
	bool near = gen_below(&g->rng, 2);
	u64 before;
	u32 from;

	if (near)
		b[0] = 0x70 | cc;
	if (near ? !gen_bytes(g, (const u8[2]){ b[0], 0 }, 2) : !gen_bytes(g, b, 6))
		return false;
	from = s->len;
	before = g->undefined;
	gen_body(g, 1 + gen_below(&g->rng, 2));
	g->undefined |= before;
	if (near)
		s->code[from - 1] = (u8)(s->len - from);
	else
		patch32(g, from - 4, from);
	return true;
}

static bool branch_rcxz(struct gen *g)
{
	struct isa_snippet *s = g->s;
	bool with67 = gen_chance(&g->rng, 30);
	u8 b[2] = { 0xe3, 0 };
	u64 before = g->undefined;
	u32 from;

	if (!gen_bytes(g, with67 ? (const u8[3]){ 0x67, 0xe3, 0 } : b, with67 ? 3 : 2))
		return false;
	from = s->len;
	gen_body(g, 1);
	g->undefined |= before;
	s->code[from - 1] = (u8)(s->len - from);
	return true;
}

/* A counted loop, by LOOP, LOOPE, LOOPNE on RCX or by DEC and JNZ on any register. */
static bool branch_loop(struct gen *g)
{
	struct isa_snippet *s = g->s;
	bool by_loop = !(g->keep & BIT(X86_RCX)) && gen_below(&g->rng, 2);
	u32 reg = by_loop ? X86_RCX : free_reg(g), keep = g->keep, start;
	u8 rel, op = (u8)(0xe0 + gen_below(&g->rng, 3));

	if (!gen_mov_imm(g, reg, 1 + gen_below(&g->rng, 5)))
		return false;
	start = s->len;
	g->keep |= BIT(reg);
	g->undefined = ARITH_FLAGS;	/* of one of the rounds */
	gen_body(g, 1 + gen_below(&g->rng, 3));
	g->keep = keep;
	if (!by_loop) {
		gen_reg_op(g, true, reg, (const u8[2]){ 0xff, 0xc8 }, 2, 1);
		op = 0x75;
	} else if (g->undefined & FLAG_ZF) {
		op = 0xe2;
	}
	rel = (u8)(start - (s->len + 2));
	return gen_bytes(g, (const u8[2]){ op, rel }, 2);
}

/* JMP or CALL forward, across bytes that must not run. */
static bool branch_over(struct gen *g)
{
	struct isa_snippet *s = g->s;
	u32 junk = gen_below(&g->rng, 5), from;

	if (!gen_bytes(g, (const u8[5]){ (u8)(0xe8 + gen_below(&g->rng, 2)) }, 5))
		return false;
	from = s->len;
	while (junk--)
		s->code[s->len++] = (u8)rng_next(&g->rng);
	patch32(g, from - 4, from);
	return true;
}

/* CALL a function of some instructions behind a JMP, and RET, with or without a number. */
static bool branch_call(struct gen *g)
{
	struct isa_snippet *s = g->s;
	u32 call, jmp, keep = g->keep;

	if (!gen_bytes(g, (const u8[5]){ 0xe8 }, 5))
		return false;
	call = s->len;
	gen_body(g, 1);
	gen_bytes(g, (const u8[5]){ 0xe9 }, 5);
	jmp = s->len;
	patch32(g, call - 4, call);
	gen_body(g, 1);
	if (gen_below(&g->rng, 2))
		gen_bytes(g, (const u8[1]){ 0xc3 }, 1);
	else
		gen_bytes(g, (const u8[3]){ 0xc2, (u8)(8 * gen_below(&g->rng, 4)), 0 }, 3);
	patch32(g, jmp - 4, jmp);
	g->keep = keep;
	g->undefined = ARITH_FLAGS;
	return true;
}

/* To an address in a register, in memory, or on the stack. */
static bool branch_indirect(struct gen *g)
{
	struct isa_snippet *s = g->s;
	u32 reg = free_reg(g), form = gen_below(&g->rng, 4), lea, ptr = gen_pick(g, g->pointers & 0xffff);
	u8 b[8] = { (u8)(0x48 | (reg & 8 ? 4 : 0)), 0x8d, (u8)((reg & 7) << 3 | 5) };

	if (!gen_bytes(g, b, 7))
		return false;
	lea = s->len;
	if (form == 0) {
		gen_reg_op(g, false, reg, (const u8[2]){ 0xff, 0xe0 }, 2, 1);
	} else if (form == 1) {
		gen_reg_op(g, false, reg, (const u8[2]){ 0xff, 0xd0 }, 2, 1);
	} else if (form == 2) {
		gen_reg_op(g, false, reg, (const u8[1]){ 0x50 }, 1, 0);
		gen_bytes(g, (const u8[1]){ 0xc3 }, 1);
	} else {
		/* mov [ptr + 64], reg; jmp or call [ptr + 64] */
		u8 rex = (u8)((reg & 8 ? 4 : 0) | (ptr & 8 ? 1 : 0)), rm = ptr & 7, n = 0;
		u8 m[8] = { (u8)(0x48 | rex), 0x89, (u8)(0x40 | (reg & 7) << 3 | rm) };
		u8 j[8] = { (u8)(0x40 | (rex & 1)), 0xff, (u8)(0x40 | (2 + 2 * gen_below(&g->rng, 2)) << 3 | rm) };

		if (rm == 4)
			m[3] = j[3] = 0x24, n = 1;
		m[3 + n] = j[3 + n] = 64;
		gen_bytes(g, m, 4u + n);
		gen_bytes(g, j, 4u + n);
	}
	for (u32 junk = gen_below(&g->rng, 4); junk; junk--)
		s->code[s->len++] = (u8)rng_next(&g->rng);
	patch32(g, lea - 4, lea);
	return true;
}

bool gen_branch(struct gen *g)
{
	if (!gen_room(g))
		return false;
	switch (gen_below(&g->rng, 9)) {
	case 0: return branch_loop(g);
	case 1: return branch_over(g);
	case 2: return branch_call(g);
	case 3: return branch_indirect(g);
	case 4: return branch_rcxz(g);
	case 5: case 6: return branch_cc(g);
	default: return false;
	}
}

/* POPF with all that may be in it but TF and AC, which hand.c tests. */
bool gen_flagops(struct gen *g)
{
	static const u8 pops[][2] = { { 0x9d, 0 }, { 0x66, 0x9d } };
	u32 reg, flags = (u32)rng_next(&g->rng) & ~0x40100u, which = gen_below(&g->rng, 2);

	if (!gen_room(g) || !gen_chance(&g->rng, 30))
		return false;
	reg = free_reg(g);
	if (gen_chance(&g->rng, 60))
		flags &= 0xcd5;
	if (!gen_mov_imm(g, reg, flags) || !gen_reg_op(g, false, reg, (const u8[1]){ 0x50 }, 1, 0))
		return false;
	return gen_bytes(g, pops[which], which + 1);
}

bool gen_shld16(struct gen *g)
{
	u8 b[5] = { 0x66, 0x0f, gen_below(&g->rng, 2) ? 0xa5 : 0xad, (u8)(0xc0 | gen_below(&g->rng, 64)) };

	if (!gen_chance(&g->rng, 5) || !gen_room(g) || g->keep & BIT(X86_RCX) || g->keep & BIT(b[3] & 7))
		return false;
	return gen_mov_imm(g, X86_RCX, gen_below(&g->rng, 17)) && gen_bytes(g, b, 4);
}

/* op [address], by an absolute address. */
static bool gen_absolute(struct gen *g, const u8 *op, u32 len, u32 digit, u32 address, u32 imm, u32 imm_len)
{
	u8 b[16];

	memcpy(b, op, len);
	b[len] = (u8)(digit << 3 | 4);
	b[len + 1] = 0x25;
	memcpy(b + len + 2, &address, 4);
	memcpy(b + len + 6, &imm, 4);
	return gen_bytes(g, b, len + 6 + imm_len);
}

static bool gen_store32(struct gen *g, u32 address, u32 imm)
{
	return gen_absolute(g, (const u8[1]){ 0xc7 }, 1, 0, address, imm, 4);
}

/*
 * FNSTENV and FNSAVE, then what differs between hosts (pointers of the last instruction: AMD
 * has none without a pending exception) overwritten; with FLDENV and FRSTOR of it between.
 */
static bool env_legacy(struct gen *g)
{
	u32 at = (u32)ISA_DATA + 64 + gen_below(&g->rng, 0x1e00);
	bool save = gen_below(&g->rng, 2), small = gen_chance(&g->rng, 25), load = gen_below(&g->rng, 2);
	u8 op[2] = { 0x66, save ? 0xdd : 0xd9 };
	const u8 *p = op + !small;
	u32 n = 1 + small;

	gen_absolute(g, p, n, 6, at, 0, 0);
	if (small) {
		gen_store32(g, at + 6, 0);
		gen_store32(g, at + 10, 0);
	} else {
		for (u32 i = 12; i < 28; i += 4)
			gen_store32(g, at + i, 0);
	}
	if (load) {
		if (gen_below(&g->rng, 2))
			gen_absolute(g, (const u8[2]){ 0x66, 0xc7 }, 2, 0, at, (u32)rng_next(&g->rng) & 0xf3f, 2);
		if (gen_below(&g->rng, 3) == 0)
			gen_absolute(g, (const u8[2]){ 0x66, 0xc7 }, 2, 0, at + (small ? 4 : 8), (u32)rng_next(&g->rng), 2);
		gen_absolute(g, p, n, 4, at, 0, 0);
	}
	return true;
}

static bool env_fxsave(struct gen *g)
{
	u32 at = (u32)ISA_DATA + 16 * gen_below(&g->rng, 0x1d0);
	bool wide = gen_below(&g->rng, 2);
	u8 op[3] = { 0x48, 0x0f, 0xae };
	const u8 *p = op + !wide;
	u32 n = 2 + wide;

	if (gen_chance(&g->rng, 5))	/* misaligned */
		return gen_absolute(g, p, n, 0, (u32)ISA_DATA + 8, 0, 0);
	gen_absolute(g, p, n, 0, at, 0, 0);
	gen_absolute(g, (const u8[2]){ 0x66, 0xc7 }, 2, 0, at + 6, 0, 2);
	for (u32 i = 8; i < 24; i += 4)
		gen_store32(g, at + i, 0);
	gen_store32(g, at + 28, 0);
	/* Reserved bytes: movups of xmm0. */
	for (u32 i = 416; i < 464; i += 16)
		gen_absolute(g, (const u8[2]){ 0x0f, 0x11 }, 2, 0, at + i, 0, 0);
	if (gen_below(&g->rng, 2)) {
		if (gen_below(&g->rng, 2))
			gen_store32(g, at + 24, gen_mxcsr(&g->rng) | (gen_chance(&g->rng, 5) ? 0x40000 : 0));
		if (gen_below(&g->rng, 2))
			gen_absolute(g, (const u8[1]){ 0xc6 }, 1, 0, at + 4, (u32)rng_next(&g->rng), 1);
		gen_store32(g, at + 160 + 4 * gen_below(&g->rng, 64), (u32)rng_next(&g->rng));
		gen_absolute(g, p, n, 1, at, 0, 0);
	}
	return true;
}

bool gen_x87_env(struct gen *g)
{
	static const u8 control[][2] = { { 0xdb, 0xe3 }, { 0xdb, 0xe2 }, { 0xd9, 0xf7 }, { 0xd9, 0xf6 }, { 0xdf, 0xe0 } };

	if (g->s->len + 150 > ISA_MAX_CODE || g->s->nr + 20 > ISA_MAX_INSNS)
		return false;
	switch (gen_below(&g->rng, 6)) {
	case 0: return env_legacy(g);
	case 1: return env_fxsave(g);
	case 2: return g->keep & BIT(X86_RAX) ? false : gen_bytes(g, control[gen_below(&g->rng, 5)], 2);
	default: return false;
	}
}

bool gen_mxcsr_load(struct gen *g)
{
	u32 at = (u32)ISA_DATA + gen_below(&g->rng, 0x1ff0);
	u32 v = gen_chance(&g->rng, 92) ? gen_mxcsr(&g->rng) : (u32)rng_next(&g->rng) & ~0x20000u;

	if (!gen_room(g) || !gen_chance(&g->rng, 35))
		return false;
	return gen_store32(g, at, v) && gen_absolute(g, (const u8[2]){ 0x0f, 0xae }, 2, 2, at, 0, 0);
}

bool gen_privileged(struct gen *g)
{
	static const struct { u8 len, b[7]; } insn[] = {
		{ 1, { 0xfa } }, { 1, { 0xfb } }, { 1, { 0xf4 } }, { 2, { 0x0f, 0x06 } }, { 2, { 0x0f, 0x08 } },
		{ 2, { 0x0f, 0x09 } }, { 2, { 0x0f, 0x30 } }, { 2, { 0x0f, 0x32 } }, { 3, { 0x0f, 0x20, 0xc0 } },
		{ 3, { 0x0f, 0x20, 0xd8 } }, { 3, { 0x0f, 0x22, 0xc0 } }, { 3, { 0x0f, 0x22, 0xd8 } },
		{ 3, { 0x0f, 0x22, 0xe0 } }, { 3, { 0x0f, 0x21, 0xf8 } }, { 3, { 0x0f, 0x23, 0xf8 } },
		{ 4, { 0x44, 0x0f, 0x20, 0xc0 } }, { 4, { 0x44, 0x0f, 0x22, 0xc0 } },
		{ 3, { 0x0f, 0x01, 0x10 } }, { 3, { 0x0f, 0x01, 0x18 } }, { 3, { 0x0f, 0x01, 0x38 } },
		{ 3, { 0x0f, 0x00, 0xd0 } }, { 3, { 0x0f, 0x00, 0xd8 } }, { 3, { 0x0f, 0x00, 0x10 } },
		{ 3, { 0x0f, 0x01, 0xf0 } }, { 3, { 0x0f, 0x01, 0xf8 } }, { 3, { 0x0f, 0x01, 0xca } },
		{ 3, { 0x0f, 0x01, 0xcb } }, { 2, { 0x0f, 0x07 } }, { 3, { 0x48, 0x0f, 0x07 } },
		{ 1, { 0xec } }, { 1, { 0xed } }, { 1, { 0xee } }, { 1, { 0xef } }, { 2, { 0xe4, 0x60 } }, { 2, { 0xe7, 0x80 } },
		{ 1, { 0x6c } }, { 1, { 0x6d } }, { 1, { 0x6e } }, { 2, { 0xf3, 0x6f } }, { 2, { 0x0f, 0x0b } },
		{ 2, { 0xcd, 0x20 } }, { 2, { 0xcd, 0x0e } }, { 2, { 0xcd, 0xff } }, { 2, { 0xcd, 0x03 } }, { 2, { 0xcd, 0x04 } },
		{ 1, { 0x06 } }, { 1, { 0x27 } }, { 1, { 0x60 } }, { 1, { 0x62 } }, { 1, { 0xce } }, { 2, { 0xd4, 0x0a } },
		{ 3, { 0xf0, 0x01, 0xc0 } }, { 4, { 0xf0, 0x0f, 0xaf, 0x00 } }, { 3, { 0xf0, 0x89, 0x00 } }, { 2, { 0xf0, 0x90 } },
		{ 3, { 0xf0, 0x85, 0x00 } }, { 3, { 0x0f, 0xff, 0xc0 } }, { 3, { 0x0f, 0xb9, 0xc0 } }, { 2, { 0x8d, 0xc0 } },
		{ 3, { 0x0f, 0xc7, 0xc8 } }, { 2, { 0x8c, 0xf0 } }, { 2, { 0x8e, 0xc8 } }, { 2, { 0x8e, 0xf0 } },
		{ 2, { 0xfe, 0xd0 } }, { 2, { 0xff, 0xf8 } }, { 2, { 0x8f, 0xc8 } }, { 2, { 0xff, 0xe8 } }, { 2, { 0xff, 0xd8 } },
		{ 5, { 0x66, 0x0f, 0x38, 0x82, 0x00 } },
	};
	u32 i = gen_below(&g->rng, ARRAY_SIZE(insn));

	return gen_room(g) && g->last && gen_bytes(g, insn[i].b, insn[i].len);
}

/*
 * DS and ES with selectors that mean the same in both GDTs (soft.c has Linux's), or none: 0, since IRET, in the
 * middle of a snippet on the host, makes 0 of 1, 2 and 3.
 */
bool gen_sreg(struct gen *g)
{
	static const u16 selectors[] = { 0, 0x2b, 0x2a, 0x28, 0x23, 0x10, 0x1b, 0x33, 0x04, 0x0f, 0xfff8, 0x8003 };
	u32 sel = selectors[gen_below(&g->rng, ARRAY_SIZE(selectors))], reg = free_reg(g), seg = gen_below(&g->rng, 8);

	if (!gen_room(g) || !gen_chance(&g->rng, 70))
		return false;
	if (seg > 3)
		seg = seg & 1 ? 3 : 0;
	if (seg == 2 && sel != 0x2b && sel != 0)	/* SS: what Linux has, or nothing */
		sel = 0x10;
	return gen_mov_imm(g, reg, sel | ((u32)rng_next(&g->rng) << 16)) &&
	       gen_reg_op(g, false, reg, (const u8[2]){ 0x8e, (u8)(0xc0 | seg << 3) }, 2, 1);
}

/* Bases that are canonical, mostly, before the patterns use them. */
bool gen_fsbase(struct gen *g)
{
	u32 reg = free_reg(g);

	if (!gen_room(g) || !gen_chance(&g->rng, 40))
		return false;
	return gen_mov_imm(g, reg, 16 * gen_below(&g->rng, 8)) &&
	       gen_bytes(g, (const u8[5]){ 0xf3, (u8)(0x48 | reg >> 3), 0x0f, 0xae,
					   (u8)(0xd0 | gen_below(&g->rng, 2) << 3 | (reg & 7)) }, 5);
}
