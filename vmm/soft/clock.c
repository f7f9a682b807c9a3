// SPDX-License-Identifier: GPL-2.0-only
/*
 * Virtual time in its three units: 1/COST_CYCLE cycle, in which a vCPU's clock is
 * kept; ns, which everything above the engine speaks; and cycles, the guest's TSC.
 *
 * Both directions multiply by a factor made once, so that they are cheap, the same
 * on every host, and monotonic. The factors round down; soft_units_of() mends what
 * that costs, so that a deadline in units is never before the deadline in ns (a
 * run that ended early would find nothing due, and be started again for nothing).
 */
#include "base/log.h"
#include "soft/soft.h"

typedef unsigned __int128 u128;

#define NS_SHIFT	64
#define UNITS_SHIFT	52	/* 2560 units a ns, at 10 GHz, must fit in front of it */

void soft_clock_init(struct soft_vm *svm)
{
	u64 units_per_s = svm->hz * COST_CYCLE;

	/* Outside of these (cost.def has the same ones) a factor does not fit 64 bits. */
	fb_assert(svm->hz >= 100000000 && svm->hz <= 10000000000);
	svm->ns_mul = (u64)(((u128)NSEC_PER_SEC << NS_SHIFT) / units_per_s);
	svm->units_mul = (u64)(((u128)units_per_s << UNITS_SHIFT) / NSEC_PER_SEC);
}

u64 soft_ns(const struct soft_vm *svm, u64 units)
{
	return (u64)((u128)units * svm->ns_mul >> NS_SHIFT);
}

u64 soft_units_of(const struct soft_vm *svm, u64 ns)
{
	u128 wide = (u128)ns * svm->units_mul >> UNITS_SHIFT;
	u64 units;

	if (wide >= SOFT_UNITS_MAX)
		return SOFT_UNITS_MAX;
	/* A step or two: the factors' errors are below one unit for 50 days. */
	for (units = (u64)wide; soft_ns(svm, units) < ns && units < SOFT_UNITS_MAX; units++)
		;
	return units;
}

u64 soft_units_of_ps(const struct soft_vm *svm, u64 ps)
{
	return (u64)((u128)ps * svm->hz * COST_CYCLE / (1000 * NSEC_PER_SEC));
}

void soft_settle(struct soft_cpu *c)
{
	u64 now = soft_units(c), other = 0;
	u32 i;

	for (i = TIME_kernel + 1; i < NR_SOFT_TIMES; i++)
		other += c->spent[i];
	c->spent[c->cpl == 3 ? TIME_user : TIME_kernel] += now - c->settled - (other - c->settled_other);
	c->settled = now;
	c->settled_other = other;
}

u64 soft_tsc(const struct soft_cpu *c)
{
	return soft_units(c) / COST_CYCLE + (u64)c->tsc_offset;
}
