/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A guest for tests of single system instructions on the soft engine: one vCPU in 64-bit
 * mode on a soft_fixture, an IDT whose every handler is a HLT at an address of its own,
 * a TSS, and places for code and stacks. Set g.s, run, look at g.s.
 */
#ifndef TESTS_SOFT_GUEST_H
#define TESTS_SOFT_GUEST_H

#include <string.h>

#include "soft-fixture.h"
#include "soft/soft.h"
#include "soft/system.h"

#define GUEST_IDT	0x5000ull
#define GUEST_TSS	0x6000ull
#define GUEST_HANDLERS	0x20000ull	/* 16 bytes a vector */
#define GUEST_USER	0x30000ull	/* code of CPL 3 */
#define GUEST_USER_SP	0x48000ull
#define GUEST_RSP0	0x58000ull
#define GUEST_IST1	0x68000ull
#define GUEST_FREE	0x70000ull	/* the test's, to 1 MiB */
#define GUEST_UNMAPPED	0x40000000ull	/* no page table leads there */

#define GUEST_ATTR_TSS	0x8bu
#define GATE_INT	0x8eu		/* P, DPL 0, interrupt gate */
#define GATE_TRAP	0x8fu
#define GATE_USER	0x60u		/* or-ed in: DPL 3 */

struct guest {
	struct soft_fixture *f;
	struct soft_cpu *c;
	struct x86_state s;
};

/* A 64-bit gate: type as in byte 5 of it, IST in 0 to 7. */
static inline void guest_gate(struct guest *g, u8 vector, u16 sel, u64 rip, u8 type, u8 ist)
{
	u32 *gate = soft_fixture_ram(g->f, GUEST_IDT + vector * 16, 16);

	gate[0] = (u32)sel << 16 | (rip & 0xffff);
	gate[1] = (rip & 0xffff0000) | (u32)type << 8 | ist;
	gate[2] = (u32)(rip >> 32);
	gate[3] = 0;
}

static inline u64 guest_handler(u8 vector)
{
	return GUEST_HANDLERS + vector * 16u;
}

static inline void guest_code(struct guest *g, gpa_t at, const char *bytes, u64 len)
{
	soft_fixture_load(g->f, at, bytes, len);
}
/* CODE(g, at, "\x0f\x01\xf8") without the final NUL. */
#define CODE(g, at, bytes)	guest_code((g), (at), bytes, sizeof(bytes) - 1)

static inline u64 guest_u64(struct guest *g, gpa_t at)
{
	u64 v;

	memcpy(&v, soft_fixture_ram(g->f, at, 8), 8);
	return v;
}

static inline void guest_init(struct guest *g)
{
	u64 rsp0 = GUEST_RSP0, ist1 = GUEST_IST1;
	u16 no_map = 0x68;	/* beyond the limit */
	u32 *desc;
	u32 v;

	g->f = soft_fixture_new(4, 1);
	g->c = soft_cpu(&g->f->cpu[0]);
	soft_fixture_long(g->f, 0, &g->s);
	for (v = 0; v < 256; v++) {
		guest_gate(g, (u8)v, FIXTURE_CS, guest_handler((u8)v), GATE_INT, 0);
		CODE(g, guest_handler((u8)v), "\xf4");
	}
	/* The TSS: available in the GDT, loaded in TR. */
	desc = soft_fixture_ram(g->f, FIXTURE_GDT + FIXTURE_TSS, 16);
	desc[0] = (u32)GUEST_TSS << 16 | 0x67;
	desc[1] = 0x8900;
	soft_fixture_load(g->f, GUEST_TSS + 4, &rsp0, 8);
	soft_fixture_load(g->f, GUEST_TSS + 36, &ist1, 8);
	soft_fixture_load(g->f, GUEST_TSS + 102, &no_map, 2);
	g->s.tr = (struct x86_segment) {
		.selector = FIXTURE_TSS, .base = GUEST_TSS, .limit = 0x67, .attr = GUEST_ATTR_TSS,
	};
	g->s.idt = (struct x86_table){ .base = GUEST_IDT, .limit = 0xfff };
}

static inline void guest_free(struct guest *g)
{
	soft_fixture_free(g->f);
}

/* The next run is at CPL 3, from GUEST_USER. */
static inline void guest_user(struct guest *g)
{
	g->s.cs = (struct x86_segment){ .selector = FIXTURE_USER_CS, .attr = 0xa0fb, .limit = 0xffffffff };
	g->s.ss = (struct x86_segment){ .selector = FIXTURE_USER_DS, .attr = 0xc0f3, .limit = 0xffffffff };
	g->s.rip = GUEST_USER;
	g->s.gpr[X86_RSP] = GUEST_USER_SP;
}

/* ... at CPL 0, from `rip`. */
static inline void guest_kernel(struct guest *g, u64 rip)
{
	g->s.cs = (struct x86_segment){ .selector = FIXTURE_CS, .attr = 0xa09b, .limit = 0xffffffff };
	g->s.ss = (struct x86_segment){ .selector = FIXTURE_DS, .attr = 0xc093, .limit = 0xffffffff };
	g->s.rip = rip;
	g->s.gpr[X86_RSP] = FIXTURE_STACK;
}

/* Go on from what the vCPU has; g->s is then what it has become. */
static inline enum run_exit guest_resume(struct guest *g)
{
	enum run_exit why = soft_fixture_run(g->f, 0, g->f->vm.engine->now(&g->f->vm, &g->f->cpu[0]) + 1000000);

	soft_fixture_get(g->f, 0, &g->s);
	return why;
}

static inline enum run_exit guest_run(struct guest *g)
{
	soft_fixture_set(g->f, 0, &g->s);
	return guest_resume(g);
}

/* Run up to a HLT; the vector whose handler it is of, or -1 if it is of none. */
static inline int guest_vector_of(struct guest *g)
{
	u64 off = g->s.rip - 1 - GUEST_HANDLERS;

	return off < 256 * 16 && off % 16 == 0 ? (int)(off / 16) : -1;
}

static inline int guest_outcome(struct guest *g)
{
	g_assert_cmpint(guest_run(g), ==, RUN_HLT);
	return guest_vector_of(g);
}

/* The frame of a handler: word 0 is the error code if there is one. */
static inline u64 guest_frame(struct guest *g, u32 word)
{
	return guest_u64(g, g->s.gpr[X86_RSP] + 8 * word);
}

#endif
