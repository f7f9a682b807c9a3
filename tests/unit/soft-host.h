/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For the tests of SSE and the x87: one instruction executed by the host and by a soft
 * CPU on the same random state, and the comparison of what comes out. One thread; one
 * program at a time.
 */
#ifndef TESTS_SOFT_HOST_H
#define TESTS_SOFT_HOST_H

#include <glib.h>

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

struct simd_test {
	u8 *code;		/* page that the host may execute */
	u8 *ram;		/* the guest's memory operand */
	struct soft_fixture *f;
	struct soft_cpu *c;
	struct rng rng;
	ZydisDecoder decoder;
	/* What a SIGFPE leaves for host_run(); a signal handler has no argument of ours. */
	u64 resume;
	u32 trap_mxcsr;
	bool trapped;
};
extern struct simd_test simd;
/* The host's memory operand, as far from a page's end as the guest's. */
extern u8 host_mem[4096];

/* Before the tests, and after them: the exit status of g_test_run(). */
void simd_init(int *argc, char ***argv);
int simd_run(void);

/* One instruction of `len` bytes on the host; simd.trapped if it raised SIGFPE. */
void host_run(struct host_state *s, const u8 *bytes, u32 len);
/* The same instruction on the soft CPU: SOFT_OK or SOFT_FAULT. */
int soft_run_one(const u8 *bytes, u32 len);
/* Give the state to the soft CPU; compare the two, all but what makers of CPUs do differently. */
void to_soft(const struct host_state *s);
void expect_equal(const struct host_state *s, const char *what);
/* FOP, FIP, FDP and the reserved parts of an FXSAVE area to 0. */
void neutral(u8 fx[512]);

/* Random: below n; a state with the default FCW and MXCSR; an 80-bit register. Memory operands are equal. */
u32 pick(u32 n);
void random_state(struct host_state *s);
void fill_st(u8 st[16]);

#endif
