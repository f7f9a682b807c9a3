// SPDX-License-Identifier: GPL-2.0-only
/* Families of instructions by opcode (SDM 2D appendix A). */
#include "generate.h"

/* Opcodes with ModRM, any register field; with a range of register fields; without ModRM. */
#define OP(map, lo, hi, prefix, flags)			{ map, lo, hi, prefix, -1, -1, flags }
#define OPG(map, lo, hi, prefix, from, to, flags)	{ map, lo, hi, prefix, from, to, flags }
#define OPN(map, lo, hi, prefix)			{ map, lo, hi, prefix, -1, -1, M_NONE }

#define ALU(op) \
	OP(0, 8 * op, 8 * op + 3, P_OPSIZE, 0), OPN(0, 8 * op + 4, 8 * op + 5, P_OPSIZE)
#define SSE_ANY	(P_NP | P_66 | P_F3 | P_F2)

static const struct isa_pattern alu[] = {
	ALU(0), ALU(1), ALU(2), ALU(3), ALU(4), ALU(5), ALU(6), ALU(7),
	OP(0, 0x80, 0x81, P_OPSIZE, 0), OP(0, 0x83, 0x83, P_OPSIZE, 0),
	OP(0, 0x84, 0x85, P_OPSIZE, 0), OPN(0, 0xa8, 0xa9, P_OPSIZE),
	OPG(0, 0xf6, 0xf7, P_OPSIZE, 0, 3, 0), OPG(0, 0xfe, 0xff, P_OPSIZE, 0, 1, 0),
};

static const struct isa_pattern lock[] = {
	OP(0, 0x00, 0x01, P_OPSIZE | P_LOCK, M_MEM), OP(0, 0x10, 0x11, P_OPSIZE | P_LOCK, M_MEM),
	OP(0, 0x08, 0x09, P_OPSIZE | P_LOCK, M_MEM), OP(0, 0x18, 0x19, P_OPSIZE | P_LOCK, M_MEM),
	OP(0, 0x20, 0x21, P_OPSIZE | P_LOCK, M_MEM), OP(0, 0x28, 0x29, P_OPSIZE | P_LOCK, M_MEM),
	OP(0, 0x30, 0x31, P_OPSIZE | P_LOCK, M_MEM), OP(0, 0x80, 0x83, P_OPSIZE | P_LOCK, M_MEM),
	OP(0, 0x86, 0x87, P_OPSIZE | P_LOCK, M_MEM), OPG(0, 0xf6, 0xf7, P_OPSIZE | P_LOCK, 2, 3, M_MEM),
	OPG(0, 0xfe, 0xff, P_OPSIZE | P_LOCK, 0, 1, M_MEM), OP(1, 0xb0, 0xb1, P_OPSIZE | P_LOCK, M_MEM),
	OP(1, 0xc0, 0xc1, P_OPSIZE | P_LOCK, M_MEM), OPG(1, 0xc7, 0xc7, P_LOCK, 1, 1, M_MEM),
	OP(1, 0xab, 0xab, P_OPSIZE | P_LOCK, M_MEM | M_BITS), OP(1, 0xb3, 0xb3, P_OPSIZE | P_LOCK, M_MEM | M_BITS),
	OP(1, 0xbb, 0xbb, P_OPSIZE | P_LOCK, M_MEM | M_BITS), OPG(1, 0xba, 0xba, P_OPSIZE | P_LOCK, 5, 7, M_MEM),
};

static const struct isa_pattern exchange[] = {
	OP(0, 0x86, 0x87, P_OPSIZE, 0), OPN(0, 0x90, 0x97, P_OPSIZE), OP(1, 0xb0, 0xb1, P_OPSIZE, 0),
	OP(1, 0xc0, 0xc1, P_OPSIZE, 0), OPG(1, 0xc7, 0xc7, 0, 1, 1, M_MEM),
};

static const struct isa_pattern move[] = {
	OP(0, 0x88, 0x8b, P_OPSIZE, 0), OPN(0, 0xb0, 0xbf, P_OPSIZE), OPG(0, 0xc6, 0xc7, P_OPSIZE, 0, 0, 0),
	{ 0, 0xa0, 0xa3, P_OPSIZE, -1, -1, M_MOFFS }, OP(1, 0xb6, 0xb7, P_OPSIZE, 0), OP(1, 0xbe, 0xbf, P_OPSIZE, 0),
	OP(0, 0x63, 0x63, P_OPSIZE, 0), OP(1, 0xc3, 0xc3, 0, M_MEM), OPN(0, 0x98, 0x99, P_OPSIZE),
	OPN(1, 0xc8, 0xcf, 0), OP(1, 0x1f, 0x1f, P_OPSIZE, 0),
};

static const struct isa_pattern lea[] = { OP(0, 0x8d, 0x8d, P_OPSIZE, M_MEM) };

static const struct isa_pattern shift[] = {
	OP(0, 0xc0, 0xc1, P_OPSIZE, 0), OP(0, 0xd0, 0xd3, P_OPSIZE, 0),
	OP(1, 0xa4, 0xa5, P_OPSIZE, 0), OP(1, 0xac, 0xad, P_OPSIZE, 0),
};

static const struct isa_pattern muldiv[] = {
	OPG(0, 0xf6, 0xf7, P_OPSIZE, 4, 7, 0), OP(1, 0xaf, 0xaf, P_OPSIZE, 0),
	OP(0, 0x69, 0x69, P_OPSIZE, 0), OP(0, 0x6b, 0x6b, P_OPSIZE, 0),
};

static const struct isa_pattern bits[] = {
	OP(1, 0xa3, 0xa3, P_OPSIZE, M_BITS), OP(1, 0xab, 0xab, P_OPSIZE, M_BITS), OP(1, 0xb3, 0xb3, P_OPSIZE, M_BITS),
	OP(1, 0xbb, 0xbb, P_OPSIZE, M_BITS), OPG(1, 0xba, 0xba, P_OPSIZE, 4, 7, 0), OP(1, 0xbc, 0xbd, P_OPSIZE, 0),
	OP(1, 0xb8, 0xb8, P_F3, 0),
};

static const struct isa_pattern cond[] = {
	OP(1, 0x40, 0x4f, P_OPSIZE, 0), OP(1, 0x90, 0x9f, 0, 0),
	ALU(0), ALU(3), ALU(7), OP(0, 0x84, 0x85, P_OPSIZE, 0),
};

static const struct isa_pattern branch[] = {
	ALU(0), ALU(3), ALU(5), ALU(7), OP(0, 0x88, 0x8b, P_OPSIZE, 0), OP(1, 0x90, 0x9f, 0, M_REG),
	OPG(0, 0xfe, 0xff, P_OPSIZE, 0, 1, 0),
};

static const struct isa_pattern flagops[] = {
	OPN(0, 0xf5, 0xf5, 0), OPN(0, 0xf8, 0xf9, 0), OPN(0, 0xfc, 0xfd, 0), OPN(0, 0x9c, 0x9c, P_OPSIZE),
	OPN(0, 0x9e, 0x9f, 0), ALU(2), OP(1, 0x90, 0x9f, 0, M_REG),
};

static const struct isa_pattern stack[] = {
	OPN(0, 0x50, 0x5f, P_OPSIZE), OPN(0, 0x50, 0x5f, 0), OPN(0, 0x68, 0x68, P_OPSIZE), OPN(0, 0x6a, 0x6a, P_OPSIZE),
	OPG(0, 0x8f, 0x8f, P_OPSIZE, 0, 0, 0), OPG(0, 0xff, 0xff, P_OPSIZE, 6, 6, 0), OPN(0, 0xc8, 0xc9, P_OPSIZE),
	OPN(1, 0xa0, 0xa0, P_OPSIZE), OPN(1, 0xa8, 0xa8, P_OPSIZE), OPN(0, 0x9c, 0x9c, P_OPSIZE),
};

static const struct isa_pattern string[] = {
	OPN(0, 0xa4, 0xa7, P_OPSIZE | P_REP), OPN(0, 0xaa, 0xaf, P_OPSIZE | P_REP),
};

static const struct isa_pattern xlat[] = { OPN(0, 0xd7, 0xd7, 0), OP(0, 0x8a, 0x8a, 0, 0) };

static const struct isa_pattern sse_move[] = {
	OP(1, 0x10, 0x17, SSE_ANY, 0), OP(1, 0x28, 0x29, SSE_ANY, 0), OP(1, 0x2b, 0x2b, SSE_ANY, M_MEM),
	OP(1, 0x50, 0x50, SSE_ANY, 0), OP(1, 0x6e, 0x6f, SSE_ANY, 0), OP(1, 0x7e, 0x7f, SSE_ANY, 0),
	OP(1, 0xd6, 0xd7, SSE_ANY, 0), OP(1, 0xe7, 0xe7, SSE_ANY, M_MEM), OP(1, 0xf7, 0xf7, SSE_ANY, 0),
	OP(1, 0xc4, 0xc6, SSE_ANY, 0),
};

static const struct isa_pattern sse_float[] = {
	OP(1, 0x51, 0x59, SSE_ANY, 0), OP(1, 0x5c, 0x5f, SSE_ANY, 0), OP(1, 0xc2, 0xc2, SSE_ANY, 0),
	OP(1, 0x2e, 0x2f, SSE_ANY, 0), OP(1, 0x14, 0x15, SSE_ANY, 0),
};

static const struct isa_pattern sse_convert[] = {
	OP(1, 0x2a, 0x2a, SSE_ANY, 0), OP(1, 0x2c, 0x2d, SSE_ANY, 0), OP(1, 0x5a, 0x5b, SSE_ANY, 0),
	OP(1, 0xe6, 0xe6, SSE_ANY, 0),
};

static const struct isa_pattern sse_int[] = {
	OP(1, 0x60, 0x76, SSE_ANY, 0), OP(1, 0xd0, 0xfe, SSE_ANY, 0), OP(1, 0xc4, 0xc5, SSE_ANY, 0),
};

static const struct isa_pattern mmx[] = {
	OP(1, 0x60, 0x77, SSE_ANY, 0), OP(1, 0x7e, 0x7f, SSE_ANY, 0), OP(1, 0xd0, 0xfe, SSE_ANY, 0),
	OP(1, 0x2a, 0x2a, SSE_ANY, 0), OP(1, 0x2c, 0x2d, SSE_ANY, 0), OP(1, 0xc4, 0xc5, SSE_ANY, 0),
};

static const struct isa_pattern mxcsr[] = {
	OP(1, 0x51, 0x51, SSE_ANY, 0), OP(1, 0x58, 0x5f, SSE_ANY, 0), OPG(1, 0xae, 0xae, 0, 3, 3, M_MEM),
	OP(1, 0x2d, 0x2d, SSE_ANY, 0),
};

static const struct isa_pattern x87[] = { OP(0, 0xd8, 0xdf, 0, 0), OPN(0, 0x9b, 0x9b, 0) };
static const struct isa_pattern x87_stack[] = {
	OP(0, 0xd9, 0xd9, 0, M_REG), OP(0, 0xdd, 0xdd, 0, 0), OP(0, 0xdb, 0xdb, 0, 0), OP(0, 0xd9, 0xd9, 0, M_MEM),
};
static const struct isa_pattern x87_env[] = { OP(0, 0xd8, 0xdf, 0, 0) };

static const struct isa_pattern misc[] = {
	OPG(1, 0xae, 0xae, 0, 5, 7, 0), OPG(1, 0x18, 0x18, 0, 0, 3, M_MEM), OPN(0, 0x90, 0x90, P_REP),
	OP(1, 0x1f, 0x1f, P_OPSIZE, 0), OP(0, 0x8c, 0x8c, P_OPSIZE, 0), OP(1, 0x0b, 0x0b, 0, M_REG),
};

static const struct isa_pattern fsgs[] = {
	OPG(1, 0xae, 0xae, P_F3, 0, 3, M_REG), OP(0, 0x88, 0x8b, P_OPSIZE, M_MEM), ALU(0),
};

/* Everything: chains across families, and odd combinations of prefixes. */
static const struct isa_pattern mixed[] = {
	OP(0, 0x00, 0xff, P_OPSIZE, 0), OP(1, 0x00, 0xff, SSE_ANY, 0), OP(0, 0x00, 0xff, P_OPSIZE | P_REP, 0),
	OP(1, 0x10, 0x7f, SSE_ANY | P_OPSIZE, 0), OP(1, 0x80, 0xff, P_OPSIZE, 0), OP(0, 0x00, 0xff, P_OPSIZE, 0),
	OP(0, 0x00, 0x3f, P_OPSIZE | P_LOCK, 0), OP(1, 0x90, 0xff, P_LOCK | P_REP, 0),
};

#define FAMILY(name, pattern, flags, special)	{ name, pattern, ARRAY_SIZE(pattern), flags, special }

const struct isa_family isa_families[] = {
	FAMILY("alu", alu, 0, NULL),
	FAMILY("lock", lock, 0, NULL),
	FAMILY("exchange", exchange, 0, NULL),
	FAMILY("move", move, 0, NULL),
	FAMILY("lea", lea, 0, NULL),
	FAMILY("shift", shift, 0, gen_shld16),
	FAMILY("muldiv", muldiv, F_SINGLE, NULL),
	FAMILY("bits", bits, 0, NULL),
	FAMILY("cond", cond, 0, NULL),
	FAMILY("branch", branch, F_FRAME, gen_branch),
	FAMILY("flags", flagops, 0, gen_flagops),
	FAMILY("stack", stack, F_FRAME, NULL),
	FAMILY("string", string, F_STRING | F_DF, NULL),
	FAMILY("xlat", xlat, 0, NULL),
	FAMILY("segment", move, F_FS, NULL),
	FAMILY("selector", misc, 0, gen_sreg),
	FAMILY("fsgsbase", fsgs, F_FS, gen_fsbase),
	FAMILY("sse-move", sse_move, F_FPU, NULL),
	FAMILY("sse-float", sse_float, F_FPU, NULL),
	FAMILY("sse-convert", sse_convert, F_FPU, NULL),
	FAMILY("sse-int", sse_int, F_FPU, NULL),
	FAMILY("mxcsr", mxcsr, F_FPU, gen_mxcsr_load),
	FAMILY("mmx", mmx, F_FPU | F_MMX, NULL),
	FAMILY("x87", x87, F_FPU, NULL),
	FAMILY("x87-stack", x87_stack, F_FPU, NULL),
	FAMILY("x87-env", x87_env, F_FPU, gen_x87_env),
	FAMILY("misc", misc, 0, NULL),
	FAMILY("privileged", alu, F_SINGLE, gen_privileged),
	FAMILY("mixed", mixed, F_FPU, NULL),
};
const u32 isa_families_nr = ARRAY_SIZE(isa_families);
