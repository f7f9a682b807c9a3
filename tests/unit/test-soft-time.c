// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where a vCPU's time goes: every unit of its clock is in one class, and what no class
 * was charged for is the instructions' own.
 */
#include "soft-system.h"
#include "soft/profile.h"

#define CHARGED(name)	cost(&g.f->vm.cost, name)

/* Settle, and hold the accounts to the clock: elapsed = sum, and instructions = what is left of it. */
static void expect_whole(u64 begin)
{
	u64 sum = 0;
	u32 i;

	soft_settle(g.c);
	for (i = 0; i < NR_SOFT_TIMES; i++)
		sum += g.c->spent[i];
	g_assert_cmpuint(sum, ==, soft_units(g.c) - begin);
	g_assert_cmpuint(g.c->spent[TIME_user] + g.c->spent[TIME_kernel], ==, g.c->insns * g.c->cpi);
}

/* An instruction that changes CPL counts where it leads to. */
static void test_user_kernel(void)
{
	setup();
	CODE(&g, guest_handler(VEC_UD), "\x48\x83\x04\x24\x02" "\x48\xcf");	/* add qword [rsp], 2; iretq */
	/* nop; ud2; nop; nop; ud2; hlt */
	CODE(&g, GUEST_USER, "\x90" "\x0f\x0b" "\x90" "\x90" "\x0f\x0b" "\xf4");
	guest_user(&g);
	g_assert_cmpint(guest_outcome(&g), ==, VEC_GP);
	expect_whole(0);
	/* Three NOPs and two IRETQs; two ADDs and the handler's HLT. */
	g_assert_cmpuint(g.c->insns, ==, 8);
	g_assert_cmpuint(g.c->spent[TIME_user], ==, 5 * g.c->cpi);
	g_assert_cmpuint(g.c->spent[TIME_kernel], ==, 3 * g.c->cpi);
	g_assert_cmpuint(g.c->spent[TIME_event], ==, 3 * CHARGED(exception) + 2 * CHARGED(iret));
	g_assert_cmpuint(g.c->spent[TIME_walk], >, 0);
	teardown();
}

static void test_syscall(void)
{
	setup();
	/* Two NOPs, SYSCALL; NOP, SYSRETQ; HLT, which faults. RCX is the one after SYSCALL. */
	CODE(&g, GUEST_USER, "\x90\x90" "\x0f\x05" "\xf4");
	CODE(&g, FIXTURE_CODE, "\x90" "\x48\x0f\x07");
	g.s.efer |= X86_EFER_SCE;
	g.s.lstar = FIXTURE_CODE;
	g.s.star = (u64)FIXTURE_CS32 << 48 | (u64)FIXTURE_CS << 32;
	guest_user(&g);
	g_assert_cmpint(guest_outcome(&g), ==, VEC_GP);
	expect_whole(0);
	/* The two NOPs of the block that SYSCALL ends are the user's. */
	g_assert_cmpuint(g.c->spent[TIME_user], ==, 3 * g.c->cpi);
	g_assert_cmpuint(g.c->spent[TIME_kernel], ==, 3 * g.c->cpi);
	teardown();
}

static void test_classes(void)
{
	setup();
	g.f->ept_delay = 100;
	CODE(&g, FIXTURE_CODE,
	     "\x0f\x01\x38"			/* invlpg [rax] */
	     "\x0f\x20\xd9\x0f\x22\xd9"		/* mov rcx, cr3; mov cr3, rcx */
	     "\xb9\x80\x00\x00\xc0\x0f\x32"	/* mov ecx, EFER; rdmsr */
	     "\xe6\x80"				/* out 0x80, al */
	     "\xb9\x0a\x00\x00\x00\xbf\x00\x00\x07\x00"	/* mov ecx, 10; mov edi, GUEST_FREE */
	     "\xf3\xaa"				/* rep stosb */
	     "\x0f\xa2" "\xf4");		/* cpuid; hlt */
	g.s.gpr[X86_RAX] = GUEST_FREE;
	g_assert_cmpint(kernel_outcome(), ==, PASSED);
	expect_whole(0);
	g_assert_cmpuint(g.c->spent[TIME_user], ==, 0);
	g_assert_cmpuint(g.c->spent[TIME_flush], ==, CHARGED(invlpg) + CHARGED(cr3_write));
	g_assert_cmpuint(g.c->spent[TIME_device], ==, CHARGED(msr) + soft_units_of(g.c->svm, CHARGED(io)));
	g_assert_cmpuint(g.c->spent[TIME_string], ==, 10 * CHARGED(rep_bytes));
	g_assert_cmpuint(g.c->spent[TIME_serialize], ==, CHARGED(serialize));
	g_assert_cmpuint(g.c->spent[TIME_injected], ==, g.f->nr_ept * soft_units_of(g.c->svm, 100));
	g_assert_cmpuint(g.c->spent[TIME_ept], >, 0);
	teardown();
}

static void test_charge(void)
{
	const struct engine_ops *e;

	setup();
	e = g.f->vm.engine;
	e->charge(&g.f->cpu[0], 1000, CHARGE_IDLE);
	e->charge(&g.f->cpu[0], 200, CHARGE_WAKE);
	e->charge(&g.f->cpu[0], 30, CHARGE_INJECTED);
	expect_whole(0);
	g_assert_cmpuint(g.c->spent[TIME_idle], ==, soft_units_of(g.c->svm, 1000));
	g_assert_cmpuint(g.c->spent[TIME_wake], ==, soft_units_of(g.c->svm, 200));
	g_assert_cmpuint(g.c->spent[TIME_injected], ==, soft_units_of(g.c->svm, 30));
	g_assert_cmpuint(g.c->spent[TIME_kernel], ==, 0);
	teardown();
}

static u64 spent(const struct profile *p, u32 class)
{
	return p->spent[class];
}

/* A profile of the program of test_user_kernel: its classes and its code come to what has gone by. */
static void test_profile(void)
{
	const u32 ud = PROFILE_ENTRY(PROFILE_ENTRY_EXCEPTION, VEC_UD);
	const struct engine_ops *e;
	const struct profile_code *code;
	u64 begin, end, sum = 0, handler = 0;
	struct profile p;
	u32 i;

	setup();
	e = g.f->vm.engine;
	CODE(&g, guest_handler(VEC_UD), "\x48\x83\x04\x24\x02" "\x48\xcf");
	CODE(&g, GUEST_USER, "\x90" "\x0f\x0b" "\x90" "\x90" "\x0f\x0b" "\xf4");
	guest_user(&g);
	e->charge(&g.f->cpu[0], 5000, CHARGE_IDLE);
	begin = soft_units(g.c);
	e->profile_start(&g.f->vm, e->now(&g.f->vm, &g.f->cpu[0]));
	g_assert_cmpint(guest_outcome(&g), ==, VEC_GP);
	end = soft_units(g.c);
	e->profile_read(&g.f->vm, e->now(&g.f->vm, &g.f->cpu[0]), true, &p);
	g_assert_cmpuint(p.elapsed[0], ==, end - begin);
	for (i = 0; i < p.nr_classes; i++)
		sum += p.spent[i];
	g_assert_cmpuint(sum, ==, end - begin);
	g_assert_cmpuint(spent(&p, TIME_idle), ==, 0);
	g_assert_cmpuint(spent(&p, TIME_user), ==, 5 * g.c->cpi);
	for (sum = 0, i = 0; i < p.code->len; i++) {
		code = &g_array_index(p.code, struct profile_code, i);
		sum += code->time;
		g_assert_true(!i || code->rip >= code[-1].rip);
		if (code->rip == PROFILE_USER)
			g_assert_cmpuint(code->entry, ==, 0);
		/* IRETQ, where the handler's time is taken. */
		if (code->rip == guest_handler(VEC_UD) + 5) {
			g_assert_cmphex(code->entry, ==, ud);
			handler += code->time;
		}
	}
	g_assert_cmpuint(sum, ==, end - begin);
	g_assert_cmpuint(handler, >=, 2 * (CHARGED(exception) + CHARGED(iret) + g.c->cpi));
	profile_clear(&p);

	/* Halted, its clock stands; at a mark 3 us on it has been idle for these. */
	g.f->cpu[0].mp_state = VCPU_HALTED;
	e->profile_start(&g.f->vm, soft_ns(g.c->svm, end) + 1000);
	e->profile_read(&g.f->vm, soft_ns(g.c->svm, end) + 4000, true, &p);
	g_assert_cmpuint(p.elapsed[0], ==, spent(&p, TIME_idle));
	g_assert_cmpuint(p.elapsed[0], ==, soft_units_of(g.c->svm, soft_ns(g.c->svm, end) + 4000) -
		soft_units_of(g.c->svm, soft_ns(g.c->svm, end) + 1000));
	g_assert_cmpuint(p.code->len, ==, 0);
	profile_clear(&p);
	teardown();
}

int main(int argc, char **argv)
{
	static const struct system_test test[] = {
		{ "user-kernel", test_user_kernel },
		{ "syscall", test_syscall },
		{ "classes", test_classes },
		{ "charge", test_charge },
		{ "profile", test_profile },
	};

	return run_tests(argc, argv, "time", test, ARRAY_SIZE(test));
}
