/* SPDX-License-Identifier: GPL-2.0-only */
/* What the tests of the local APIC share: registers and MSRs in one call, and a fresh APIC. */
#ifndef UNIT_LAPIC_FIXTURE_H
#define UNIT_LAPIC_FIXTURE_H

#include <glib.h>

#include "machine/lapic.h"
#include "x86/apic.h"

#define TSC_HZ	2500000000ull
#define X2(off)	(MSR_IA32_X2APIC_FIRST + ((off) >> 4))

static inline u32 todo(struct lapic *l, u32 off, u32 value, u64 now)
{
	struct lapic_effect effect;

	lapic_write(l, off, value, now, &effect);
	return effect.todo;
}

static inline bool wrmsr(struct lapic *l, u32 msr, u64 value, u64 now)
{
	struct lapic_effect effect;

	return lapic_msr_write(l, msr, value, now, &effect);
}

static inline u64 rdmsr(struct lapic *l, u32 msr, u64 now)
{
	u64 value;

	g_assert_true(lapic_msr_read(l, msr, now, &value));
	return value;
}

/* Powered up, and enabled by software with spurious vector 0xff. */
static inline void fresh(struct lapic *l, u32 id)
{
	lapic_init(l, id, id == 0, true, true, TSC_HZ);
	g_assert_cmpuint(todo(l, APIC_SVR, 0x1ff, 0), ==, 0);
}

static inline void fresh_x2(struct lapic *l, u32 id)
{
	lapic_init(l, id, id == 0, true, true, TSC_HZ);
	g_assert_true(wrmsr(l, MSR_IA32_APIC_BASE, l->base_msr | APIC_BASE_X2APIC, 0));
	g_assert_true(wrmsr(l, X2(APIC_SVR), 0x1ff, 0));
}

#endif
