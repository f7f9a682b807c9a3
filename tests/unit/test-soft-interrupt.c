// SPDX-License-Identifier: GPL-2.0-only
/*
 * Delivery of events and the way back: frames word by word, stacks, privilege, error
 * codes, double and triple faults, in 64-bit, 32-bit protected and real mode. What is
 * expected is written from SDM 3A chapter 6.
 */
#include "soft-guest.h"

#define IF	X86_EFLAGS_IF
#define FIXED	X86_EFLAGS_FIXED

static struct guest g;

static void setup(void)
{
	guest_init(&g);
}

static void teardown(void)
{
	guest_free(&g);
}

/* --- 64-bit --- */

static void check_frame(u32 first, u64 rip, u16 cs, u64 flags, u64 rsp, u16 ss)
{
	g_assert_cmphex(guest_frame(&g, first), ==, rip);
	g_assert_cmphex(guest_frame(&g, first + 1), ==, cs);
	g_assert_cmphex(guest_frame(&g, first + 2), ==, flags);
	g_assert_cmphex(guest_frame(&g, first + 3), ==, rsp);
	g_assert_cmphex(guest_frame(&g, first + 4), ==, ss);
}

/* Same level: the current stack, aligned to 16; interrupt gates clear IF, trap gates do not. */
static void test_same_level(void)
{
	setup();
	CODE(&g, FIXTURE_CODE, "\xcd\x40");
	guest_gate(&g, 0x41, FIXTURE_CS, guest_handler(0x41), GATE_TRAP, 0);
	CODE(&g, FIXTURE_CODE + 0x100, "\xcd\x41");
	g.s.gpr[X86_RSP] = FIXTURE_STACK - 3;
	g.s.rflags = FIXED | IF | X86_EFLAGS_NT | X86_EFLAGS_CF | X86_EFLAGS_OF | X86_EFLAGS_DF;
	g_assert_cmpint(guest_outcome(&g), ==, 0x40);
	g_assert_cmphex(g.s.gpr[X86_RSP], ==, FIXTURE_STACK - 16 - 40);
	check_frame(0, FIXTURE_CODE + 2, FIXTURE_CS,
		    FIXED | IF | X86_EFLAGS_NT | X86_EFLAGS_CF | X86_EFLAGS_OF | X86_EFLAGS_DF, FIXTURE_STACK - 3,
		    FIXTURE_DS);
	g_assert_cmphex(g.s.rflags, ==, FIXED | X86_EFLAGS_CF | X86_EFLAGS_OF | X86_EFLAGS_DF);
	g_assert_cmphex(g.s.cs.selector, ==, FIXTURE_CS);
	g_assert_cmphex(g.s.ss.selector, ==, FIXTURE_DS);

	guest_kernel(&g, FIXTURE_CODE + 0x100);
	g.s.rflags = FIXED | IF;
	g_assert_cmpint(guest_outcome(&g), ==, 0x41);
	g_assert_cmphex(g.s.rflags, ==, FIXED | IF);
	teardown();
}

static void test_inner_level(void)
{
	setup();
	guest_gate(&g, 0x40, FIXTURE_CS, guest_handler(0x40), GATE_INT | GATE_USER, 0);
	CODE(&g, GUEST_USER, "\xcd\x40");
	guest_user(&g);
	g.s.rflags = FIXED | IF;
	g_assert_cmpint(guest_outcome(&g), ==, 0x40);
	g_assert_cmphex(g.s.gpr[X86_RSP], ==, GUEST_RSP0 - 40);
	check_frame(0, GUEST_USER + 2, FIXTURE_USER_CS, FIXED | IF, GUEST_USER_SP, FIXTURE_USER_DS);
	g_assert_cmphex(g.s.cs.selector, ==, FIXTURE_CS);
	g_assert_cmphex(g.s.ss.selector, ==, 0);
	g_assert_true(g.s.ss.unusable);
	g_assert_cmpuint(g.c->cpl, ==, 0);
	teardown();
}

/* INT n through a gate of DPL 0: #GP with vector and IDT bit, of the INT itself, and no EXT. */
static void test_gate_privilege(void)
{
	setup();
	CODE(&g, GUEST_USER, "\xcd\x40");
	guest_user(&g);
	g_assert_cmpint(guest_outcome(&g), ==, VEC_GP);
	g_assert_cmphex(guest_frame(&g, 0), ==, 0x40 * 8 + 2);
	check_frame(1, GUEST_USER, FIXTURE_USER_CS, FIXED | X86_EFLAGS_RF, GUEST_USER_SP, FIXTURE_USER_DS);
	teardown();
}

static void test_ist(void)
{
	setup();
	guest_gate(&g, 0x40, FIXTURE_CS, guest_handler(0x40), GATE_INT | GATE_USER, 1);
	CODE(&g, FIXTURE_CODE, "\xcd\x40");
	CODE(&g, GUEST_USER, "\xcd\x40");
	g_assert_cmpint(guest_outcome(&g), ==, 0x40);
	g_assert_cmphex(g.s.gpr[X86_RSP], ==, GUEST_IST1 - 40);
	check_frame(0, FIXTURE_CODE + 2, FIXTURE_CS, FIXED, FIXTURE_STACK, FIXTURE_DS);
	g_assert_cmphex(g.s.ss.selector, ==, FIXTURE_DS);	/* no change of level */
	guest_user(&g);
	g_assert_cmpint(guest_outcome(&g), ==, 0x40);
	g_assert_cmphex(g.s.gpr[X86_RSP], ==, GUEST_IST1 - 40);
	g_assert_cmphex(g.s.ss.selector, ==, 0);
	/* IST 3 lies within the limit of the TSS, IST 7 does not any more. */
	guest_gate(&g, 0x40, FIXTURE_CS, guest_handler(0x40), GATE_INT | GATE_USER, 7);
	guest_kernel(&g, FIXTURE_CODE);
	g.s.tr.limit = 36 + 8 * 6 + 6;
	g_assert_cmpint(guest_outcome(&g), ==, VEC_TS);
	g_assert_cmphex(guest_frame(&g, 0), ==, FIXTURE_TSS);
	teardown();
}

/* Error codes of #PF, CR2, RF in what is pushed; #UD has none. */
static void test_error_codes(void)
{
	setup();
	CODE(&g, FIXTURE_CODE, "\x48\x8b\x03");			/* mov rax, [rbx] */
	CODE(&g, FIXTURE_CODE + 0x20, "\x48\x89\x03");		/* mov [rbx], rax */
	CODE(&g, FIXTURE_CODE + 0x40, "\x0f\x0b");		/* ud2 */
	g.s.gpr[X86_RBX] = GUEST_UNMAPPED + 0x123;
	g_assert_cmpint(guest_outcome(&g), ==, VEC_PF);
	g_assert_cmphex(guest_frame(&g, 0), ==, 0);
	g_assert_cmphex(g.s.cr2, ==, GUEST_UNMAPPED + 0x123);
	check_frame(1, FIXTURE_CODE, FIXTURE_CS, FIXED | X86_EFLAGS_RF, FIXTURE_STACK, FIXTURE_DS);
	guest_kernel(&g, FIXTURE_CODE + 0x20);
	g_assert_cmpint(guest_outcome(&g), ==, VEC_PF);
	g_assert_cmphex(guest_frame(&g, 0), ==, PF_W);
	guest_kernel(&g, FIXTURE_CODE + 0x40);
	g_assert_cmpint(guest_outcome(&g), ==, VEC_UD);
	check_frame(0, FIXTURE_CODE + 0x40, FIXTURE_CS, FIXED | X86_EFLAGS_RF, FIXTURE_STACK, FIXTURE_DS);
	teardown();
}

/* 16 bytes are #GP(0) whatever they mean, also where they cross a page; 15 are not. A page that is absent comes first. */
static void test_too_long(void)
{
	const u64 cross = FIXTURE_CODE + PAGE_SIZE - 4;
	u8 code[17];

	setup();
	memset(code, 0x66, sizeof(code));
	code[14] = 0x90;
	code[15] = 0xf4;
	soft_fixture_load(g.f, cross, code, 16);
	guest_kernel(&g, cross);
	g_assert_cmpint(guest_run(&g), ==, RUN_HLT);
	g_assert_cmphex(g.s.rip, ==, cross + 16);

	for (u32 i = 0; i < 3; i++) {
		u64 at = i == 1 ? cross : FIXTURE_CODE + 0x80 + i * 0x40;

		memset(code, 0x66, sizeof(code));
		/* What would be a NOP, a NOP, UD2. */
		code[15] = i == 2 ? 0x0f : 0x90;
		code[16] = 0x0b;
		soft_fixture_load(g.f, at, code, 17);
		guest_kernel(&g, at);
		g_assert_cmpint(guest_outcome(&g), ==, VEC_GP);
		g_assert_cmphex(guest_frame(&g, 0), ==, 0);
		check_frame(1, at, FIXTURE_CS, FIXED | X86_EFLAGS_RF, FIXTURE_STACK, FIXTURE_DS);
	}
	teardown();
}

/* A gate that is not present: #NP; EXT tells INT n (0) from an exception (1). */
static void test_ext(void)
{
	setup();
	CODE(&g, FIXTURE_CODE, "\xcd\x40");
	CODE(&g, FIXTURE_CODE + 0x20, "\x0f\x0b");
	guest_gate(&g, 0x40, FIXTURE_CS, guest_handler(0x40), GATE_INT & ~0x80u, 0);
	guest_gate(&g, VEC_UD, FIXTURE_CS, guest_handler(VEC_UD), GATE_INT & ~0x80u, 0);
	g_assert_cmpint(guest_outcome(&g), ==, VEC_NP);
	g_assert_cmphex(guest_frame(&g, 0), ==, 0x40 * 8 + 2);
	g_assert_cmphex(guest_frame(&g, 1), ==, FIXTURE_CODE);
	guest_kernel(&g, FIXTURE_CODE + 0x20);
	g_assert_cmpint(guest_outcome(&g), ==, VEC_NP);
	g_assert_cmphex(guest_frame(&g, 0), ==, VEC_UD * 8 + 3);
	/* A handler's selector beyond the GDT, a 32-bit one, a null one. */
	guest_gate(&g, 0x40, 0x1000, guest_handler(0x40), GATE_INT, 0);
	guest_kernel(&g, FIXTURE_CODE);
	g_assert_cmpint(guest_outcome(&g), ==, VEC_GP);
	g_assert_cmphex(guest_frame(&g, 0), ==, 0x1000);
	guest_gate(&g, 0x40, FIXTURE_CS32, guest_handler(0x40), GATE_INT, 0);
	guest_kernel(&g, FIXTURE_CODE);
	g_assert_cmpint(guest_outcome(&g), ==, VEC_GP);
	g_assert_cmphex(guest_frame(&g, 0), ==, FIXTURE_CS32);
	guest_gate(&g, 0x40, 0, guest_handler(0x40), GATE_INT, 0);
	guest_kernel(&g, FIXTURE_CODE);
	g_assert_cmpint(guest_outcome(&g), ==, VEC_GP);
	g_assert_cmphex(guest_frame(&g, 0), ==, 0);
	/* Neither 16-bit gates nor task gates exist in IA-32e mode. */
	guest_gate(&g, 0x40, FIXTURE_CS, guest_handler(0x40), 0x86, 0);
	guest_kernel(&g, FIXTURE_CODE);
	g_assert_cmpint(guest_outcome(&g), ==, VEC_GP);
	g_assert_cmphex(guest_frame(&g, 0), ==, 0x40 * 8 + 2);
	teardown();
}

/* Table 6-5: what a second fault makes of the first. */
static void test_double_fault(void)
{
	u64 unmapped = GUEST_UNMAPPED + 0x1000;

	setup();
	/* #PF, then #NP (contributory): double fault, error code 0. */
	CODE(&g, FIXTURE_CODE, "\x48\x8b\x03");
	g.s.gpr[X86_RBX] = GUEST_UNMAPPED;
	guest_gate(&g, VEC_PF, FIXTURE_CS, guest_handler(VEC_PF), GATE_INT & ~0x80u, 0);
	g_assert_cmpint(guest_outcome(&g), ==, VEC_DF);
	g_assert_cmphex(guest_frame(&g, 0), ==, 0);
	g_assert_cmphex(guest_frame(&g, 1), ==, FIXTURE_CODE);
	teardown();

	/* From CPL 3 with no stack: #UD (benign), #PF, #PF: double fault, on its IST; CR2 is of the push. */
	setup();
	CODE(&g, GUEST_USER, "\x0f\x0b");
	soft_fixture_load(g.f, GUEST_TSS + 4, &unmapped, 8);
	guest_gate(&g, VEC_DF, FIXTURE_CS, guest_handler(VEC_DF), GATE_INT, 1);
	guest_user(&g);
	g_assert_cmpint(guest_outcome(&g), ==, VEC_DF);
	g_assert_cmphex(g.s.cr2, ==, unmapped - 8);
	g_assert_cmphex(g.s.gpr[X86_RSP], ==, GUEST_IST1 - 48);
	/* The same with #PF on an IST of its own: benign, then one #PF, which is delivered. */
	guest_gate(&g, VEC_PF, FIXTURE_CS, guest_handler(VEC_PF), GATE_INT, 1);
	guest_user(&g);
	g_assert_cmpint(guest_outcome(&g), ==, VEC_PF);
	g_assert_cmphex(guest_frame(&g, 0), ==, PF_W);
	g_assert_cmphex(guest_frame(&g, 1), ==, GUEST_USER);
	teardown();

	/* #GP, then #PF: one after the other. #GP, then #NP: double fault. */
	setup();
	CODE(&g, GUEST_USER, "\xf4");				/* hlt at CPL 3: #GP(0) */
	soft_fixture_load(g.f, GUEST_TSS + 4, &unmapped, 8);
	guest_gate(&g, VEC_PF, FIXTURE_CS, guest_handler(VEC_PF), GATE_INT, 1);
	guest_user(&g);
	g_assert_cmpint(guest_outcome(&g), ==, VEC_PF);
	guest_gate(&g, VEC_GP, FIXTURE_CS, guest_handler(VEC_GP), GATE_INT & ~0x80u, 0);
	guest_gate(&g, VEC_DF, FIXTURE_CS, guest_handler(VEC_DF), GATE_INT, 1);
	guest_user(&g);
	g_assert_cmpint(guest_outcome(&g), ==, VEC_DF);
	teardown();
}

static void test_triple_fault(void)
{
	setup();
	CODE(&g, FIXTURE_CODE, "\x0f\x0b");
	g.s.idt.limit = 0;
	g_assert_cmpint(guest_run(&g), ==, RUN_SHUTDOWN);
	g_assert_cmphex(g.s.rip, ==, FIXTURE_CODE);
	/* A double fault whose own gate is bad. */
	guest_kernel(&g, FIXTURE_CODE);
	g.s.idt.limit = 0xfff;
	guest_gate(&g, VEC_UD, FIXTURE_CS, GUEST_FREE, GATE_INT & ~0x80u, 0);
	guest_gate(&g, VEC_NP, FIXTURE_CS, GUEST_FREE, GATE_INT & ~0x80u, 0);
	guest_gate(&g, VEC_DF, FIXTURE_CS, GUEST_FREE, GATE_INT & ~0x80u, 0);
	g_assert_cmpint(guest_run(&g), ==, RUN_SHUTDOWN);
	teardown();
}

/* --- interrupts, windows, NMIs --- */

static void test_interrupt(void)
{
	const struct engine_ops *e;
	struct vcpu *vcpu;

	setup();
	e = g.f->vm.engine;
	vcpu = &g.f->cpu[0];
	CODE(&g, FIXTURE_CODE, "\x90\xfb\x90\x90\xf4");		/* nop; sti; nop; nop; hlt */
	soft_fixture_set(g.f, 0, &g.s);
	g_assert_false(e->can_inject(vcpu));
	/* The window opens one instruction after STI. */
	g_assert_cmpint(guest_resume(&g), ==, RUN_INTR_WINDOW);
	g_assert_cmphex(g.s.rip, ==, FIXTURE_CODE + 3);
	g_assert_true(e->can_inject(vcpu));
	g_assert_cmpint(e->inject(vcpu, 0x61), ==, 0);
	g_assert_false(e->can_inject(vcpu));
	g_assert_cmpint(guest_resume(&g), ==, RUN_HLT);
	g_assert_cmpint(guest_vector_of(&g), ==, 0x61);
	check_frame(0, FIXTURE_CODE + 3, FIXTURE_CS, FIXED | IF, FIXTURE_STACK, FIXTURE_DS);
	g_assert_cmpuint(g.c->stat[STAT_interrupts], ==, 1);
	teardown();
}

/* Run one block: until the deadline, which is a unit of time away. */
static void run_block(void)
{
	u64 until = soft_ns(g.c->svm, soft_units(g.c)) + 2;

	soft_spend(g.c, TIME_string, soft_units_of(g.c->svm, until) - soft_units(g.c) - 1);
	g_assert_cmpint(g.f->vm.engine->run(&g.f->cpu[0], until), ==, RUN_DEADLINE);
}

/* MOV SS and POP SS hold interrupts off for one instruction, too; LSS and a STI with IF set do not. */
static void test_shadow(void)
{
	const struct engine_ops *e;

	setup();
	e = g.f->vm.engine;
	CODE(&g, FIXTURE_CODE, "\x8e\xd0\x90\xf4");		/* mov ss, eax; nop; hlt */
	CODE(&g, FIXTURE_CODE + 0x20, "\xfb\x90\xf4");		/* sti; nop; hlt */
	g.s.gpr[X86_RAX] = FIXTURE_DS;
	g.s.rflags = FIXED | IF;
	soft_fixture_set(g.f, 0, &g.s);
	run_block();
	g_assert_cmphex(g.c->rip, ==, FIXTURE_CODE + 2);
	g_assert_false(e->can_inject(&g.f->cpu[0]));
	g_assert_cmpint(guest_resume(&g), ==, RUN_INTR_WINDOW);
	g_assert_cmphex(g.s.rip, ==, FIXTURE_CODE + 3);
	g_assert_cmpuint(g.f->nr_exits[COUNTER_exits_intr_window], ==, 1);

	guest_kernel(&g, FIXTURE_CODE + 0x20);
	soft_fixture_set(g.f, 0, &g.s);
	run_block();
	g_assert_cmphex(g.c->rip, ==, FIXTURE_CODE + 0x21);
	g_assert_true(e->can_inject(&g.f->cpu[0]));
	teardown();
}

static void test_nmi(void)
{
	setup();
	CODE(&g, FIXTURE_CODE, "\x90\xf4");
	CODE(&g, GUEST_FREE, "\x90\x48\xcf");			/* nop; iretq */
	guest_gate(&g, VEC_NMI, FIXTURE_CS, GUEST_FREE, GATE_INT, 0);
	soft_fixture_set(g.f, 0, &g.s);
	g.f->vm.engine->inject_nmi(&g.f->cpu[0]);
	g_assert_cmpint(guest_resume(&g), ==, RUN_HLT);
	g_assert_cmphex(g.s.rip, ==, FIXTURE_CODE + 2);		/* came back */
	g_assert_false(g.c->nmi_masked);
	/* Masked inside of the handler. */
	guest_gate(&g, VEC_NMI, FIXTURE_CS, guest_handler(VEC_NMI), GATE_INT, 0);
	guest_kernel(&g, FIXTURE_CODE);
	soft_fixture_set(g.f, 0, &g.s);
	g.f->vm.engine->inject_nmi(&g.f->cpu[0]);
	g_assert_cmpint(guest_resume(&g), ==, RUN_HLT);
	g_assert_cmpint(guest_vector_of(&g), ==, VEC_NMI);
	g_assert_true(g.c->nmi_masked);
	g.f->vm.engine->inject_nmi(&g.f->cpu[0]);
	g.c->rip = FIXTURE_CODE;
	g_assert_cmpint(guest_resume(&g), ==, RUN_HLT);
	g_assert_cmphex(g.s.rip, ==, FIXTURE_CODE + 2);
	g_assert_true(g.c->nmi_pending);
	teardown();
}

/* RF is pushed by what comes in the middle of a repeated string instruction, not by what comes behind it. */
static void test_string_resume(void)
{
	static const struct {
		const char *code;
		u64 len, rcx;
	} string[] = {
		{ "\xf3\xaa\x90\xf4", 4, 2 * PAGE_SIZE },	/* rep stosb; nop; hlt */
		{ "\xf3\x6e\x90\xf4", 4, 200 },		/* rep outsb; nop; hlt */
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(string); i++) {
		setup();
		guest_code(&g, FIXTURE_CODE, string[i].code, string[i].len);
		g.s.gpr[X86_RCX] = string[i].rcx;
		g.s.gpr[X86_RDI] = g.s.gpr[X86_RSI] = GUEST_FREE;
		g.s.rflags = FIXED | IF;
		soft_fixture_set(g.f, 0, &g.s);
		run_block();
		soft_fixture_get(g.f, 0, &g.s);
		g_assert_cmphex(g.s.rip, ==, FIXTURE_CODE);
		g_assert_cmpuint(g.s.gpr[X86_RCX], >, 0);
		g_assert_cmpuint(g.s.gpr[X86_RCX], <, string[i].rcx);
		g_assert_cmpint(g.f->vm.engine->inject(&g.f->cpu[0], 0x61), ==, 0);
		g_assert_cmpint(guest_resume(&g), ==, RUN_HLT);
		g_assert_cmpint(guest_vector_of(&g), ==, 0x61);
		check_frame(0, FIXTURE_CODE, FIXTURE_CS, FIXED | IF | X86_EFLAGS_RF, FIXTURE_STACK, FIXTURE_DS);
		g_assert_cmphex(g.s.rflags & X86_EFLAGS_RF, ==, 0);

		guest_code(&g, FIXTURE_CODE + 0x40, string[i].code, 2);
		CODE(&g, FIXTURE_CODE + 0x42, "\xcd\x40");
		guest_kernel(&g, FIXTURE_CODE + 0x40);
		g.s.rflags = FIXED | IF | X86_EFLAGS_RF;
		g.s.gpr[X86_RCX] = 1;
		g_assert_cmpint(guest_outcome(&g), ==, 0x40);
		check_frame(0, FIXTURE_CODE + 0x44, FIXTURE_CS, FIXED | IF, FIXTURE_STACK, FIXTURE_DS);
		teardown();
	}
}

/* TF: #DB behind the next instruction, with DR6.BS; the frame points behind it. */
static void test_single_step(void)
{
	setup();
	CODE(&g, FIXTURE_CODE, "\x9c\x81\x0c\x24\x00\x01\x00\x00\x9d\x90\xf4");	/* pushf; or [rsp], 0x100; popf; nop */
	g_assert_cmpint(guest_outcome(&g), ==, VEC_DB);
	g_assert_cmphex(guest_frame(&g, 0), ==, FIXTURE_CODE + 10);
	g_assert_cmphex(guest_frame(&g, 2) & X86_EFLAGS_TF, ==, X86_EFLAGS_TF);
	g_assert_cmphex(g.s.rflags & X86_EFLAGS_TF, ==, 0);
	g_assert_cmphex(g.c->dr[6] & BIT(14), ==, BIT(14));
	teardown();
}

/* --- IRET --- */

static void put_iret_frame(u64 rip, u64 cs, u64 flags, u64 rsp, u64 ss)
{
	const u64 frame[] = { rip, cs, flags, rsp, ss };

	soft_fixture_load(g.f, FIXTURE_STACK - sizeof(frame), frame, sizeof(frame));
	guest_kernel(&g, FIXTURE_CODE);
	g.s.gpr[X86_RSP] = FIXTURE_STACK - sizeof(frame);
}

static void test_iret(void)
{
	setup();
	CODE(&g, FIXTURE_CODE, "\x48\xcf");
	CODE(&g, GUEST_USER, "\x0f\x0b");
	CODE(&g, GUEST_FREE, "\xf4");
	/* To CPL 3 with all flags that may be set; #UD there shows them. */
	put_iret_frame(GUEST_USER, FIXTURE_USER_CS, ~0ull & ~X86_EFLAGS_TF, GUEST_USER_SP, FIXTURE_USER_DS);
	g.s.ds = g.s.es = g.s.ss;
	g_assert_cmpint(guest_outcome(&g), ==, VEC_UD);
	check_frame(0, GUEST_USER, FIXTURE_USER_CS, 0x003f7fd7 & ~(X86_EFLAGS_TF | X86_EFLAGS_VM), GUEST_USER_SP,
		    FIXTURE_USER_DS);
	/* Segments of the kernel's privilege are gone. */
	g_assert_true(g.s.ds.unusable && g.s.es.unusable);
	g_assert_cmphex(g.s.ds.selector, ==, 0);
	/* To the same level: RSP and a null SS come from the frame. */
	put_iret_frame(GUEST_FREE, FIXTURE_CS, FIXED, GUEST_IST1, 0);
	g_assert_cmpint(guest_outcome(&g), ==, -1);
	g_assert_cmphex(g.s.rip, ==, GUEST_FREE + 1);
	g_assert_cmphex(g.s.gpr[X86_RSP], ==, GUEST_IST1);
	g_assert_cmphex(g.s.ss.selector, ==, 0);
	teardown();
}

/* The user may change neither IF nor IOPL. */
static void test_iret_user(void)
{
	const u64 frame[] = { GUEST_USER + 0x10, FIXTURE_USER_CS, FIXED | X86_EFLAGS_IOPL, GUEST_USER_SP, FIXTURE_USER_DS };

	setup();
	CODE(&g, GUEST_USER, "\x48\xcf");
	CODE(&g, GUEST_USER + 0x10, "\x0f\x0b");
	guest_user(&g);
	soft_fixture_load(g.f, GUEST_USER_SP - sizeof(frame), frame, sizeof(frame));
	g.s.gpr[X86_RSP] -= sizeof(frame);
	g.s.rflags = FIXED | IF;
	g_assert_cmpint(guest_outcome(&g), ==, VEC_UD);
	g_assert_cmphex(guest_frame(&g, 2), ==, FIXED | IF | X86_EFLAGS_RF);
	teardown();
}

static void test_iret_faults(void)
{
	static const struct {
		u64 rip;
		u16 cs, ss;
		int vector;
		u32 error;
	} bad[] = {
		{ GUEST_FREE, 0, FIXTURE_DS, VEC_GP, 0 },
		{ GUEST_FREE, FIXTURE_DS, FIXTURE_DS, VEC_GP, FIXTURE_DS },		/* not code */
		{ GUEST_FREE, 0x2000, FIXTURE_DS, VEC_GP, 0x2000 },			/* beyond the GDT */
		{ 1ull << 47, FIXTURE_CS, FIXTURE_DS, VEC_GP, 0 },
		{ GUEST_FREE, FIXTURE_CS, FIXTURE_USER_DS, VEC_GP, FIXTURE_USER_DS & ~3u },
		{ GUEST_USER, FIXTURE_USER_CS, 0, VEC_GP, 0 },				/* null SS at CPL 3 */
		{ GUEST_USER, FIXTURE_USER_CS, 3, VEC_GP, 0 },
		{ GUEST_USER, FIXTURE_USER_CS, FIXTURE_DS, VEC_GP, FIXTURE_DS },
		{ GUEST_USER, FIXTURE_CS | 3, FIXTURE_USER_DS, VEC_GP, FIXTURE_CS },	/* RPL over DPL */
	};
	u32 i;

	setup();
	CODE(&g, FIXTURE_CODE, "\x48\xcf");
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		put_iret_frame(bad[i].rip, bad[i].cs, FIXED, GUEST_USER_SP, bad[i].ss);
		g_assert_cmpint(guest_outcome(&g), ==, bad[i].vector);
		g_assert_cmphex(guest_frame(&g, 0), ==, bad[i].error);
		g_assert_cmphex(guest_frame(&g, 1), ==, FIXTURE_CODE);
		g_assert_cmphex(guest_frame(&g, 4), ==, FIXTURE_STACK - 40);	/* RSP is untouched */
	}
	put_iret_frame(GUEST_FREE, FIXTURE_CS, FIXED, GUEST_USER_SP, FIXTURE_DS);
	g.s.rflags = FIXED | X86_EFLAGS_NT;
	g_assert_cmpint(guest_outcome(&g), ==, VEC_GP);
	g_assert_cmphex(guest_frame(&g, 0), ==, 0);
	teardown();
}

/* --- 32-bit protected mode --- */

#define P32_CODE	0x08u
#define P32_DATA	0x10u
#define P32_UCODE	0x1bu
#define P32_UDATA	0x23u
#define P32_STACK	0x9000u

static void protected_init(void)
{
	static const u64 gdt[] = {
		0, 0x00cf9b000000ffffull, 0x00cf93000000ffffull, 0x00cffb000000ffffull, 0x00cff3000000ffffull,
	};
	u32 tss[3] = { 0, GUEST_RSP0, P32_DATA }, v;

	setup();
	soft_fixture_load(g.f, FIXTURE_GDT, gdt, sizeof(gdt));
	soft_fixture_load(g.f, GUEST_TSS, tss, sizeof(tss));
	x86_state_protected(&g.s, FIXTURE_CODE, 0, 0, FIXTURE_GDT, sizeof(gdt) - 1);
	g.s.gpr[X86_RSP] = P32_STACK;
	g.s.tr = (struct x86_segment){ .selector = 0x28, .base = GUEST_TSS, .limit = 0x67, .attr = GUEST_ATTR_TSS };
	g.s.idt = (struct x86_table){ .base = GUEST_IDT, .limit = 0x7ff };
	for (v = 0; v < 256; v++) {
		u32 *gate = soft_fixture_ram(g.f, GUEST_IDT + v * 8, 8), to = (u32)guest_handler((u8)v);

		gate[0] = P32_CODE << 16 | (to & 0xffff);
		gate[1] = (to & 0xffff0000) | (GATE_INT | (v >= 0x40 ? GATE_USER : 0)) << 8;
	}
}

static u32 frame32(u32 word)
{
	return *(u32 *)soft_fixture_ram(g.f, g.s.gpr[X86_RSP] + 4 * word, 4);
}

static void test_protected(void)
{
	protected_init();
	CODE(&g, FIXTURE_CODE, "\xcd\x40");
	CODE(&g, FIXTURE_CODE + 0x20, "\x8e\xd8");		/* mov ds, eax */
	CODE(&g, GUEST_USER, "\xcd\x40");
	CODE(&g, GUEST_USER + 0x20, "\xcd\x20");
	g.s.rflags = FIXED | IF;
	g_assert_cmpint(guest_outcome(&g), ==, 0x40);
	g_assert_cmphex(g.s.gpr[X86_RSP], ==, P32_STACK - 12);
	g_assert_cmphex(frame32(0), ==, FIXTURE_CODE + 2);
	g_assert_cmphex(frame32(1), ==, P32_CODE);
	g_assert_cmphex(frame32(2), ==, FIXED | IF);
	g_assert_cmphex(g.s.rflags, ==, FIXED);

	g.s.rip = FIXTURE_CODE + 0x20;
	g.s.gpr[X86_RSP] = P32_STACK;
	g.s.gpr[X86_RAX] = 0x1003;
	g_assert_cmpint(guest_outcome(&g), ==, VEC_GP);
	g_assert_cmphex(frame32(0), ==, 0x1000);
	g_assert_cmphex(frame32(1), ==, FIXTURE_CODE + 0x20);

	/* From CPL 3: SS0:ESP0 of the TSS. */
	g.s.cs = (struct x86_segment){ .selector = P32_UCODE, .attr = 0xc0fb, .limit = 0xffffffff };
	g.s.ss = (struct x86_segment){ .selector = P32_UDATA, .attr = 0xc0f3, .limit = 0xffffffff };
	g.s.rip = GUEST_USER;
	g.s.gpr[X86_RSP] = GUEST_USER_SP;
	g_assert_cmpint(guest_outcome(&g), ==, 0x40);
	g_assert_cmphex(g.s.gpr[X86_RSP], ==, GUEST_RSP0 - 20);
	g_assert_cmphex(g.s.ss.selector, ==, P32_DATA);
	g_assert_cmphex(frame32(0), ==, GUEST_USER + 2);
	g_assert_cmphex(frame32(1), ==, P32_UCODE);
	g_assert_cmphex(frame32(3), ==, GUEST_USER_SP);
	g_assert_cmphex(frame32(4), ==, P32_UDATA);
	/* IRETD leads back there. */
	CODE(&g, GUEST_FREE, "\xcf");
	g.s.rip = GUEST_FREE;
	*(u32 *)soft_fixture_ram(g.f, g.s.gpr[X86_RSP], 4) = GUEST_USER + 0x20;
	g_assert_cmpint(guest_outcome(&g), ==, VEC_GP);		/* INT 0x20 through a gate of DPL 0 */
	g_assert_cmphex(frame32(0), ==, 0x20 * 8 + 2);
	g_assert_cmphex(frame32(1), ==, GUEST_USER + 0x20);
	g_assert_cmphex(frame32(2), ==, P32_UCODE);
	g_assert_cmphex(frame32(4), ==, GUEST_USER_SP);
	teardown();
}

/* One instruction with its immediate on AX and flags; the flags after it in *flags. */
static u16 adjust(const char *code, u64 len, u16 ax, u64 *flags)
{
	u64 at = FIXTURE_CODE + 4 * (u8)code[0] + (u8)code[1];	/* a place of its own: what is decoded stays */

	guest_code(&g, at, code, len);
	g.s.rip = at;
	g.s.gpr[X86_RAX] = ax;
	g.s.rflags = FIXED | *flags;
	g_assert_cmpint(guest_run(&g), ==, RUN_HLT);
	g_assert_cmphex(g.s.rip, ==, at + len);
	*flags = g.s.rflags & SOFT_ARITH_FLAGS;
	return (u16)g.s.gpr[X86_RAX];
}

static u8 bcd(u32 v)
{
	return (u8)(v / 10 % 10 << 4 | v % 10);
}

/* What decimal adjustment is for: sums and differences of decimal numbers come out right, and so do carries. */
static void test_decimal(void)
{
	u32 a, b;

	protected_init();
	for (a = 0; a < 100; a++)
		for (b = 0; b < 100; b++) {
			u8 x = bcd(a), y = bcd(b), sum = (u8)(x + y), less = (u8)(x - y);
			u64 f = (x + y > 0xff ? X86_EFLAGS_CF : 0) | ((x & 15) + (y & 15) > 15 ? X86_EFLAGS_AF : 0);

			g_assert_cmphex(adjust("\x27\xf4", 2, sum, &f), ==, bcd(a + b));
			g_assert_cmpuint(f & X86_EFLAGS_CF, ==, a + b > 99);
			g_assert_cmpuint(!!(f & X86_EFLAGS_ZF), ==, (a + b) % 100 == 0);
			f = (x < y ? X86_EFLAGS_CF : 0) | ((x & 15) < (y & 15) ? X86_EFLAGS_AF : 0);
			g_assert_cmphex(adjust("\x2f\xf4", 2, less, &f), ==, bcd(a + 100 - b));
			g_assert_cmpuint(f & X86_EFLAGS_CF, ==, a < b);
			if (a > 9 || b > 9)
				continue;
			/* One digit in AL, what it carries in AH. */
			f = a + b > 15 ? X86_EFLAGS_AF : 0;
			g_assert_cmphex(adjust("\x37\xf4", 2, (u16)(0x300 | (a + b)), &f), ==,
					0x300 + (a + b) / 10 * 0x100 + (a + b) % 10);
			g_assert_cmpuint(f & X86_EFLAGS_CF, ==, a + b > 9);
			f = a < b ? X86_EFLAGS_AF : 0;
			g_assert_cmphex(adjust("\x3f\xf4", 2, (u16)((0x300 | a) - b + (a < b ? 0x100 : 0)), &f), ==,
					(a < b ? 0x200 : 0x300) + (a + 10 - b) % 10);
			g_assert_cmpuint(f & X86_EFLAGS_CF, ==, a < b);
		}
	for (a = 0; a < 256; a++) {
		u64 f = 0;
		u16 ax = adjust("\xd4\x0a\xf4", 3, (u16)a, &f);

		g_assert_cmphex(ax, ==, a / 10 << 8 | a % 10);
		g_assert_cmphex(adjust("\xd5\x0a\xf4", 3, ax, &f), ==, a);
		g_assert_cmpuint(!!(f & X86_EFLAGS_SF), ==, a > 127);
		f = X86_EFLAGS_CF;
		g_assert_cmphex(adjust("\xd6\xf4", 2, (u16)a, &f), ==, 0xff);
	}
	g.s.rip = FIXTURE_CODE;
	CODE(&g, FIXTURE_CODE, "\xd4\x00");
	g_assert_cmpint(guest_outcome(&g), ==, VEC_DE);
	teardown();
}

static void test_arpl(void)
{
	u64 f = 0;
	u8 *sel;

	protected_init();
	sel = soft_fixture_ram(g.f, GUEST_FREE, 2);
	g.s.gpr[X86_RCX] = 2;
	g.s.gpr[X86_RBX] = GUEST_FREE;
	g_assert_cmphex(adjust("\x63\xc8\xf4", 3, 0x1231, &f), ==, 0x1232);		/* arpl ax, cx */
	g_assert_cmphex(f & X86_EFLAGS_ZF, ==, X86_EFLAGS_ZF);
	g_assert_cmphex(adjust("\x63\xc8\xf4", 3, 0x1233, &f), ==, 0x1233);
	g_assert_cmphex(f & X86_EFLAGS_ZF, ==, 0);
	sel[0] = 0x10;
	adjust("\x63\x0b\xf4", 3, 0, &f);						/* arpl [ebx], cx */
	g_assert_cmphex(sel[0], ==, 0x12);
	g_assert_cmphex(f & X86_EFLAGS_ZF, ==, X86_EFLAGS_ZF);
	teardown();
}

/* What the engine does not have ends the run with a report, and nothing else. */
static void test_task_gate(void)
{
	protected_init();
	CODE(&g, FIXTURE_CODE, "\xcd\x40");
	*(u32 *)soft_fixture_ram(g.f, GUEST_IDT + 0x40 * 8 + 4, 4) = 0xe500;
	g_assert_cmpint(guest_run(&g), ==, RUN_ERROR);
	teardown();
}

/* --- real mode --- */

static void test_real(void)
{
	const u16 vector[] = { 0x0005, 0x2000 };
	u16 *frame;

	setup();
	x86_state_sipi(&g.s, 0x10, 0x50654);				/* 1000:0000 */
	g.s.gpr[X86_RSP] = 0xabcd8000;
	g.s.rflags = FIXED | IF;
	g.s.idt = (struct x86_table){ .base = 0, .limit = 0x3ff };
	soft_fixture_load(g.f, 0x21 * 4, vector, 4);
	CODE(&g, 0x10000, "\xcd\x21\xf4");
	CODE(&g, 0x20005, "\xf4\xcf");
	g_assert_cmpint(guest_run(&g), ==, RUN_HLT);
	g_assert_cmphex(g.s.cs.selector, ==, 0x2000);
	g_assert_cmphex(g.s.cs.base, ==, 0x20000);
	g_assert_cmphex(g.s.rip, ==, 6);
	g_assert_cmphex(g.s.gpr[X86_RSP], ==, 0xabcd7ffa);
	g_assert_cmphex(g.s.rflags, ==, FIXED);
	frame = soft_fixture_ram(g.f, 0x7ffa, 6);
	g_assert_cmphex(frame[0], ==, 2);
	g_assert_cmphex(frame[1], ==, 0x1000);
	g_assert_cmphex(frame[2], ==, FIXED | IF);
	/* IRET at 2000:0006. */
	g_assert_cmpint(guest_resume(&g), ==, RUN_HLT);
	g_assert_cmphex(g.s.cs.selector, ==, 0x1000);
	g_assert_cmphex(g.s.rip, ==, 3);
	g_assert_cmphex(g.s.rflags, ==, FIXED | IF);
	g_assert_cmphex(g.s.gpr[X86_RSP], ==, 0xabcd8000);
	/* Beyond the table: #GP, #DF, and those are beyond it, too. */
	g.s.rip = 0;
	g.s.idt.limit = 3;
	g_assert_cmpint(guest_run(&g), ==, RUN_SHUTDOWN);
	teardown();
}

/* --- far transfers --- */

static void test_far(void)
{
	const u64 to32[] = { 0x2000000000ull | GUEST_FREE };	/* 0x20:GUEST_FREE as m16:32 */
	const u64 to64[] = { GUEST_FREE + 0x100, FIXTURE_CS };

	setup();
	CODE(&g, FIXTURE_CODE, "\xff\x1b\xf4");			/* call far m16:32 [rbx]; hlt */
	CODE(&g, GUEST_FREE, "\xcb");				/* 32-bit code: retf of 4-byte words */
	CODE(&g, FIXTURE_CODE + 0x20, "\x48\xff\x1b\xf4");	/* call far m16:64 [rbx]; hlt */
	CODE(&g, GUEST_FREE + 0x100, "\x48\xcb");
	CODE(&g, FIXTURE_CODE + 0x40, "\xff\x2b");		/* jmp far m16:32 [rbx] */
	soft_fixture_load(g.f, GUEST_USER, to32, sizeof(to32));
	soft_fixture_load(g.f, GUEST_USER + 0x40, to64, sizeof(to64));
	g.s.gpr[X86_RBX] = GUEST_USER;
	g_assert_cmpint(guest_outcome(&g), ==, -1);
	g_assert_cmphex(g.s.rip, ==, FIXTURE_CODE + 3);
	g_assert_cmphex(g.s.cs.selector, ==, FIXTURE_CS);
	g_assert_cmphex(g.s.gpr[X86_RSP], ==, FIXTURE_STACK);
	guest_kernel(&g, FIXTURE_CODE + 0x20);
	g.s.gpr[X86_RBX] = GUEST_USER + 0x40;
	g_assert_cmpint(guest_outcome(&g), ==, -1);
	g_assert_cmphex(g.s.rip, ==, FIXTURE_CODE + 0x24);
	g_assert_cmphex(guest_u64(&g, FIXTURE_STACK - 16), ==, FIXTURE_CODE + 0x23);
	g_assert_cmphex(guest_u64(&g, FIXTURE_STACK - 8), ==, FIXTURE_CS);
	/* To data, to a TSS (no task switches in IA-32e mode), to null. */
	for (u16 sel = 0; sel <= FIXTURE_TSS; sel += FIXTURE_TSS / 7) {
		u32 error = sel;

		if (sel == FIXTURE_CS || sel == FIXTURE_CS32)
			continue;
		guest_kernel(&g, FIXTURE_CODE + 0x40);
		g.s.gpr[X86_RBX] = GUEST_USER + 0x80;
		*(u64 *)soft_fixture_ram(g.f, GUEST_USER + 0x80, 8) = (u64)sel << 32 | GUEST_FREE;
		g_assert_cmpint(guest_outcome(&g), ==, VEC_GP);
		g_assert_cmphex(guest_frame(&g, 0), ==, error);
	}
	teardown();
}

/* A call gate of IA-32e mode: to the kernel and back by a far return. */
static void test_call_gate(void)
{
	u32 gdt[4] = { FIXTURE_CS << 16 | (GUEST_FREE & 0xffff), (GUEST_FREE & 0xffff0000) | 0xec00, 0, 0 };
	const u64 far[] = { (u64)(FIXTURE_TSS | 3) << 32 };

	setup();
	soft_fixture_load(g.f, FIXTURE_GDT + FIXTURE_TSS, gdt, sizeof(gdt));
	soft_fixture_load(g.f, GUEST_USER + 0x100, far, 8);
	CODE(&g, GUEST_USER, "\xff\x1b\x0f\x0b");		/* call far [rbx]; ud2 */
	CODE(&g, GUEST_FREE, "\x48\x89\xe0\x48\xcb");		/* mov rax, rsp; retfq */
	guest_user(&g);
	g.s.gpr[X86_RBX] = GUEST_USER + 0x100;
	g_assert_cmpint(guest_outcome(&g), ==, VEC_UD);
	check_frame(0, GUEST_USER + 2, FIXTURE_USER_CS, FIXED | X86_EFLAGS_RF, GUEST_USER_SP, FIXTURE_USER_DS);
	g_assert_cmphex(g.s.gpr[X86_RAX], ==, GUEST_RSP0 - 32);
	teardown();
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/soft/interrupt/same-level", test_same_level);
	g_test_add_func("/soft/interrupt/inner-level", test_inner_level);
	g_test_add_func("/soft/interrupt/gate-privilege", test_gate_privilege);
	g_test_add_func("/soft/interrupt/ist", test_ist);
	g_test_add_func("/soft/interrupt/error-codes", test_error_codes);
	g_test_add_func("/soft/interrupt/too-long", test_too_long);
	g_test_add_func("/soft/interrupt/ext", test_ext);
	g_test_add_func("/soft/interrupt/double-fault", test_double_fault);
	g_test_add_func("/soft/interrupt/triple-fault", test_triple_fault);
	g_test_add_func("/soft/interrupt/interrupt", test_interrupt);
	g_test_add_func("/soft/interrupt/shadow", test_shadow);
	g_test_add_func("/soft/interrupt/nmi", test_nmi);
	g_test_add_func("/soft/interrupt/string-resume", test_string_resume);
	g_test_add_func("/soft/interrupt/single-step", test_single_step);
	g_test_add_func("/soft/interrupt/iret", test_iret);
	g_test_add_func("/soft/interrupt/iret-user", test_iret_user);
	g_test_add_func("/soft/interrupt/iret-faults", test_iret_faults);
	g_test_add_func("/soft/interrupt/protected", test_protected);
	g_test_add_func("/soft/interrupt/decimal", test_decimal);
	g_test_add_func("/soft/interrupt/arpl", test_arpl);
	g_test_add_func("/soft/interrupt/task-gate", test_task_gate);
	g_test_add_func("/soft/interrupt/real", test_real);
	g_test_add_func("/soft/interrupt/far", test_far);
	g_test_add_func("/soft/interrupt/call-gate", test_call_gate);
	return g_test_run();
}
