/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The TSC as a stopwatch, for spans too short or too many for clock_gettime(),
 * which is a system call where the clock source is not the TSC. One thread,
 * bound to a CPU: two CPUs' TSCs need not agree.
 */
#ifndef LIB_TSC_H
#define LIB_TSC_H

#include "lib/util.h"

/* Not read before earlier instructions ended, nor after later ones began (SDM 2B, RDTSC). */
static inline u64 tsc_read(void)
{
	u32 lo, hi;

	__asm__ volatile("lfence; rdtsc; lfence" : "=a" (lo), "=d" (hi) : : "memory");
	return (u64)hi << 32 | lo;
}

/* A pair of clocks at one moment. */
struct tsc_mark {
	u64 tsc, ns;
};

static inline struct tsc_mark tsc_mark(void)
{
	struct tsc_mark m = { .tsc = tsc_read() };

	m.ns = clock_ns();
	return m;
}

/* ns a tick between two marks; 0 if the TSC did not move forward: it cannot be used then. */
static inline double tsc_ns_per_tick(const struct tsc_mark *begin, const struct tsc_mark *end)
{
	if (end->tsc <= begin->tsc || end->ns <= begin->ns)
		return 0;
	return (double)(end->ns - begin->ns) / (double)(end->tsc - begin->tsc);
}

#endif
