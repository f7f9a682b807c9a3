/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the tests of system instructions share (test-soft-control, -msr, -system): one
 * guest, an instruction to execute in it at CPL 0 or 3, and what comes of that.
 */
#ifndef TESTS_SOFT_SYSTEM_H
#define TESTS_SOFT_SYSTEM_H

#include "soft-guest.h"

#define IF	X86_EFLAGS_IF
#define FIXED	X86_EFLAGS_FIXED
#define PASSED	(-1)	/* guest_outcome(): no handler ran */

static struct guest g;

static inline void setup(void)
{
	guest_init(&g);
}

static inline void teardown(void)
{
	guest_free(&g);
}

/* Put an instruction and a HLT behind it at FIXTURE_CODE, and for CPL 3 an #UD behind it at GUEST_USER. */
#define INSN(bytes) do {					\
	CODE(&g, FIXTURE_CODE, bytes "\xf4");			\
	CODE(&g, GUEST_USER, bytes "\x0f\x0b");			\
} while (0)

static inline int kernel_outcome(void)
{
	guest_kernel(&g, FIXTURE_CODE);
	return guest_outcome(&g);
}

/* At CPL 3 an instruction that passes comes to the #UD behind it. */
static inline int user_outcome(u64 flags)
{
	int vector;

	guest_user(&g);
	g.s.rflags = FIXED | flags;
	vector = guest_outcome(&g);
	return vector == VEC_UD && guest_frame(&g, 0) != GUEST_USER ? PASSED : vector;
}

/* A test by name, under /soft/PART/. */
struct system_test {
	const char *name;
	void (*run)(void);
};

static inline int run_tests(int argc, char **argv, const char *part, const struct system_test *test, u32 nr)
{
	u32 i;

	g_test_init(&argc, &argv, NULL);
	for (i = 0; i < nr; i++) {
		char *path = g_strdup_printf("/soft/%s/%s", part, test[i].name);

		g_test_add_func(path, test[i].run);
		g_free(path);
	}
	return g_test_run();
}

#endif
