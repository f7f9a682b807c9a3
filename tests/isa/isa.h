/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Snippets of user-mode code, run by the host's CPU and by the soft engine, and
 * compared: registers, defined flags, x87, XMM, memory, faults. One thread only.
 *
 * A snippet is its bytes, the registers it starts with, and an image of all memory
 * it can reach. It ends with the first exception; behind its last instruction there is
 * INT3, as there is in all of the code region that it does not fill.
 */
#ifndef TESTS_ISA_H
#define TESTS_ISA_H

#include <stdio.h>

#include "base/rng.h"
#include "base/types.h"
#include "x86/state.h"

/*
 * What a snippet sees, at the same linear addresses on both sides, each region between
 * pages that are not mapped. All below 2 GiB, so that 32-bit addresses reach it.
 */
#define ISA_CODE		0x10000000ull	/* read, write, execute */
#define ISA_CODE_PAGES		2u
#define ISA_DATA		0x20000000ull	/* read, write; page ISA_DATA_RO is read-only */
#define ISA_DATA_PAGES		4u
#define ISA_DATA_RO		2u
#define ISA_STACK		0x30000000ull	/* read, write */
#define ISA_STACK_PAGES		2u
#define ISA_PAGES		(ISA_CODE_PAGES + ISA_DATA_PAGES + ISA_STACK_PAGES)

struct isa_image {
	u8 code[ISA_CODE_PAGES * PAGE_SIZE];
	u8 data[ISA_DATA_PAGES * PAGE_SIZE];
	u8 stack[ISA_STACK_PAGES * PAGE_SIZE];
};

struct isa_regs {
	u64 gpr[NR_X86_GPRS];
	u64 rip, rflags;
	u64 fs_base, gs_base;
	u16 ds, es;
	u8 fx[512] __attribute__((aligned(64)));	/* as FXSAVE64 lays it out */
};

#define ISA_MAX_INSNS		32u
#define ISA_MAX_CODE		256u

struct isa_insn {
	u16 off, len;		/* bytes in isa_snippet.code */
	u64 undefined;		/* RFLAGS bits that are undefined before it */
	bool two_loads;		/* which of them faults first is the host's choice */
};

struct isa_snippet {
	const char *family;
	u64 number;
	u32 at;				/* offset of its first byte in the code region */
	u32 len, nr;
	u8 code[ISA_MAX_CODE];
	struct isa_insn insn[ISA_MAX_INSNS];
	u64 undefined;			/* RFLAGS bits that are undefined behind the last instruction */
	struct isa_regs in;
};

/* What came of it. */
struct isa_outcome {
	struct isa_regs regs;
	int vector;			/* of the exception; -1 = did not end */
	u32 error;
	u64 cr2;			/* with a page fault */
	struct isa_image mem;
};

/* --- generate.c --- */

/* Memory for snippets [number & ~63, number | 63] of a family. */
void isa_generate_image(struct isa_image *image, u64 seed, u32 family, u64 number);
/* Snippet `number` of a family. */
void isa_generate(struct isa_snippet *s, u64 seed, u32 family, u64 number);
u32 isa_nr_families(void);
const char *isa_family_name(u32 family);

/* --- native.c --- */

struct isa_native;

/* Map the regions, install signal handlers. NULL if the host cannot (reported). One at a time. */
struct isa_native *isa_native_new(void);
void isa_native_free(struct isa_native *native);
/* The host has these for user code (CPUID, AT_HWCAP2). */
bool isa_native_has_fsgsbase(const struct isa_native *native);
void isa_native_run(struct isa_native *native, const struct isa_snippet *s, const struct isa_image *image,
		    struct isa_outcome *out);

/* --- soft.c --- */

struct isa_soft;

/* With `memory`: under a memory model, while other vCPUs take lines of the snippet's memory away, at random by snippet. */
struct isa_soft *isa_soft_new(bool fsgsbase, bool memory);
/* How often an instruction had to wait for its line, and was begun anew. */
u64 isa_soft_waits(const struct isa_soft *soft);
void isa_soft_free(struct isa_soft *soft);
void isa_soft_run(struct isa_soft *soft, const struct isa_snippet *s, const struct isa_image *image,
		  struct isa_outcome *out);

/* --- compare.c --- */

/* Are the outcomes equal in all that is defined? */
bool isa_equal(const struct isa_snippet *s, const struct isa_outcome *a, const struct isa_outcome *b);
/* Snippet, inputs and what differs, as TAP comments. */
void isa_explain(FILE *f, const struct isa_snippet *s, const struct isa_image *image, const struct isa_outcome *native,
		 const struct isa_outcome *soft);

/* --- maker.c --- */

/* Outcomes that are not equal: is that a difference between the makers of CPUs that is known? */
bool isa_differs_by_maker(const struct isa_snippet *s, const struct isa_outcome *native, const struct isa_outcome *soft);

/* --- hand.c: what a generator rarely hits --- */

u32 isa_nr_hand(void);
/* One hand-written snippet, and its memory. */
void isa_hand(struct isa_snippet *s, struct isa_image *image, u32 number);

#endif
