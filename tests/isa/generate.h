/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Inside the generator: how a snippet grows. Instructions are made as bytes from
 * patterns of opcodes (families.c) and decoded by Zydis, which says whether they are
 * valid, how long, which registers they write and which flags they read.
 */
#ifndef TESTS_ISA_GENERATE_H
#define TESTS_ISA_GENERATE_H

#include <Zydis/Zydis.h>

#include "isa.h"

#define ARITH_FLAGS	0x8d5ull	/* OF SF ZF AF PF CF */
#define FLAG_CF		0x001ull
#define FLAG_PF		0x004ull
#define FLAG_AF		0x010ull
#define FLAG_ZF		0x040ull
#define FLAG_SF		0x080ull
#define FLAG_OF		0x800ull

/* Prefixes that a pattern may take. */
#define P_NP		BIT(0)	/* none of 66, F2, F3: as mandatory prefixes, one of the set is chosen */
#define P_66		BIT(1)
#define P_F3		BIT(2)
#define P_F2		BIT(3)
#define P_OPSIZE	BIT(4)	/* 66 as the operand size, now and then */
#define P_LOCK		BIT(5)	/* now and then, with memory */
#define P_REP		BIT(6)	/* F2 or F3, mostly */

#define M_NONE		BIT(0)	/* no ModRM: immediate bytes follow */
#define M_MEM		BIT(1)	/* memory forms only */
#define M_REG		BIT(2)	/* register forms only */
#define M_MOFFS		BIT(3)	/* an address follows */
#define M_BITS		BIT(4)	/* the register operand is a bit offset: mostly a small one */

struct isa_pattern {
	u8 map;			/* 0: one byte, 1: 0F */
	u8 lo, hi;		/* opcodes */
	u8 prefix;		/* P_* */
	int8_t digit_lo, digit_hi;	/* ModRM.reg, -1 for any */
	u8 flags;		/* M_* */
};

/* What a family allows besides. */
#define F_SINGLE	BIT(0)	/* mostly one instruction */
#define F_STRING	BIT(1)	/* RSI, RDI and RCX as string instructions need them; they may change */
#define F_FRAME		BIT(2)	/* RBP points into the stack */
#define F_FPU		BIT(3)	/* random x87, MXCSR, XMM at the start */
#define F_DF		BIT(4)	/* DF set in half of the snippets */
#define F_FS		BIT(5)	/* FS and GS bases that make memory operands with them valid */
#define F_MMX		BIT(6)	/* only what touches MMX registers; without it, only what does not */

struct gen;
struct isa_family {
	const char *name;
	const struct isa_pattern *pattern;
	u32 nr;
	u32 flags;
	bool (*special)(struct gen *g);	/* may add something instead of one instruction of the patterns */
};

struct gen {
	struct isa_snippet *s;
	const struct isa_family *family;
	struct rng rng;
	ZydisDecoder decoder;
	u32 pointers, indexes;	/* sets of GPRs: pointing into the data, small numbers */
	u32 keep;		/* GPRs that no instruction may write: what later ones count on */
	bool last;		/* nothing follows: any register may be written */
	u64 undefined;		/* flags that are, now */
};

/* values.c */
u64 gen_value(struct rng *rng);			/* an integer, often an edge of some width */
u64 gen_address(struct rng *rng);		/* in or near the data region */
void gen_fpu(struct rng *rng, u8 *fx, bool calm);
u32 gen_mxcsr(struct rng *rng);
u32 gen_below(struct rng *rng, u32 n);		/* 0 to n - 1 */
static inline bool gen_chance(struct rng *rng, u32 percent)
{
	return gen_below(rng, 100) < percent;
}
void gen_memory(struct rng *rng, u8 *p, size_t len);

/* generate.c */
bool gen_pattern(struct gen *g, const struct isa_pattern *p);	/* one instruction; false if none was found */
bool gen_any(struct gen *g);					/* one of the family's patterns */
bool gen_bytes(struct gen *g, const u8 *bytes, u32 len);	/* this instruction, if it may stand here */
u32 gen_pick(struct gen *g, u32 set);				/* a member of a set of registers, not empty */

/* flags.c: what is undefined after an instruction, by the SDM; updates g->undefined. */
u64 gen_flags_after(u64 undefined, const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *arg);

/* families.c */
extern const struct isa_family isa_families[];
extern const u32 isa_families_nr;

/* special.c */
bool gen_branch(struct gen *g);
bool gen_flagops(struct gen *g);
bool gen_x87_env(struct gen *g);
bool gen_mxcsr_load(struct gen *g);
bool gen_privileged(struct gen *g);
bool gen_sreg(struct gen *g);
bool gen_shld16(struct gen *g);
bool gen_fsbase(struct gen *g);

#endif
