// SPDX-License-Identifier: GPL-2.0-only
/*
 * The local APIC through MSRs: IA32_APIC_BASE and its mode changes, x2APIC
 * registers and IA32_TSC_DEADLINE (SDM 3A 10.4.4, 10.12, 10.5.4.1). What x2APIC
 * forbids is #GP here, where xAPIC would log an error or ignore it.
 */
#include "machine/lapic-internal.h"

#include <string.h>

/*
 * 10.12.5, figure 10-27: disabled -> xAPIC -> x2APIC -> disabled, and xAPIC ->
 * disabled. All other changes of the two enable bits fault.
 */
static bool base_change_valid(const struct lapic *l, u64 value)
{
	u64 old = l->base_msr & (APIC_BASE_ENABLE | APIC_BASE_X2APIC);
	u64 new = value & (APIC_BASE_ENABLE | APIC_BASE_X2APIC);

	if (value & ~(APIC_BASE_ADDR | APIC_BASE_ENABLE | APIC_BASE_X2APIC | APIC_BASE_BSP))
		return false;
	if ((new & APIC_BASE_X2APIC) && !l->x2apic_allowed)
		return false;
	if (new == APIC_BASE_X2APIC)
		return false;
	if (!old && (new & APIC_BASE_X2APIC))
		return false;
	return !(old & APIC_BASE_X2APIC) || new != APIC_BASE_ENABLE;
}

/* Bits that may be set in a write of a 32-bit x2APIC register; *known = false if it cannot be written at all. */
static u32 x2apic_writable(const struct lapic *l, u32 off, bool *known)
{
	/* Writing 1 to a read-only bit is not writing to a reserved one. */
	const u32 lvt = APIC_LVT_VECTOR | APIC_LVT_PENDING | APIC_LVT_MASKED;

	*known = true;
	switch (off) {
	case APIC_TPR:
		return 0xff;
	case APIC_EOI:
	case APIC_ESR:
		return 0;
	case APIC_SVR:
		return APIC_SVR_VECTOR | APIC_SVR_ENABLE | APIC_SVR_FOCUS | APIC_SVR_DIRECTED;
	case APIC_LVT_CMCI:
	case APIC_LVT_THERMAL:
	case APIC_LVT_PERF:
		return lvt | APIC_LVT_DELIVERY;
	case APIC_LVT_LINT0:
	case APIC_LVT_LINT1:
		return lvt | APIC_LVT_DELIVERY | APIC_LVT_POLARITY | APIC_LVT_REMOTE_IRR | APIC_LVT_LEVEL;
	case APIC_LVT_ERROR:
		return lvt;
	case APIC_LVT_TIMER:
		return lvt | APIC_LVT_PERIODIC | (l->deadline_allowed ? APIC_LVT_DEADLINE : 0);
	case APIC_TMICT:
		return UINT32_MAX;
	case APIC_TDCR:
		return APIC_TDCR_WRITABLE;
	}
	*known = false;
	return 0;
}

static bool x2apic_write_icr(struct lapic *l, u64 value, struct lapic_effect *effect)
{
	if ((u32)value & ~(APIC_ICR_WRITABLE | APIC_ICR_PENDING))
		return false;
	l->icr_high = value >> 32;
	l->icr_low = value & APIC_ICR_WRITABLE;
	lapic_icr_send(l, effect);
	return true;
}

/* Same as an ICR write with the self shorthand, but the ICR keeps its value (10.12.11). */
static bool x2apic_self_ipi(struct lapic *l, u64 value, struct lapic_effect *effect)
{
	if (value & ~0xffull)
		return false;
	if (value < APIC_FIRST_VECTOR) {
		lapic_error(l, APIC_ESR_RECV_ILLEGAL);
		return true;
	}
	effect->msg.vector = value;
	effect->msg.delivery = APIC_DM_FIXED;
	effect->msg.shorthand = APIC_SH_SELF;
	effect->msg.assert = true;
	effect->msg.x2apic_dest = true;
	effect->todo |= LAPIC_TODO_SEND;
	return true;
}

static bool x2apic_write(struct lapic *l, u32 off, u64 value, u64 now, struct lapic_effect *effect)
{
	u32 writable;
	bool known;

	if (off == APIC_ICR)
		return x2apic_write_icr(l, value, effect);
	if (off == APIC_SELF_IPI)
		return x2apic_self_ipi(l, value, effect);
	writable = x2apic_writable(l, off, &known);
	if (!known || (value & ~(u64)writable))
		return false;
	return lapic_reg_write(l, off, (u32)value, now, effect);
}

static bool is_x2apic_msr(u32 msr)
{
	return msr >= MSR_IA32_X2APIC_FIRST && msr <= MSR_IA32_X2APIC_LAST;
}

bool lapic_msr_read(struct lapic *l, u32 msr, u64 now, u64 *value)
{
	u32 low;

	*value = 0;
	if (msr == MSR_IA32_APIC_BASE) {
		*value = l->base_msr;
		return true;
	}
	if (msr == MSR_IA32_TSC_DEADLINE) {
		*value = lapic_timer_deadline(l, now);
		return l->deadline_allowed;
	}
	if (!is_x2apic_msr(msr) || !l->x2apic)
		return false;
	if (!lapic_reg_read(l, (msr - MSR_IA32_X2APIC_FIRST) << 4, now, &low))
		return false;
	*value = low;
	if (msr == MSR_IA32_X2APIC_FIRST + (APIC_ICR >> 4))
		*value |= (u64)l->icr_high << 32;
	return true;
}

bool lapic_msr_write(struct lapic *l, u32 msr, u64 value, u64 now, struct lapic_effect *effect)
{
	u64 due = l->timer_due;
	bool ok = false;

	memset(effect, 0, sizeof(*effect));
	if (msr == MSR_IA32_APIC_BASE) {
		ok = base_change_valid(l, value);
		if (ok)
			lapic_base_set(l, value);
	} else if (msr == MSR_IA32_TSC_DEADLINE) {
		ok = l->deadline_allowed;
		if (ok)
			lapic_timer_set_deadline(l, value, now);
	} else if (is_x2apic_msr(msr) && l->x2apic) {
		ok = x2apic_write(l, (msr - MSR_IA32_X2APIC_FIRST) << 4, value, now, effect);
	}
	if (l->timer_due != due)
		effect->todo |= LAPIC_TODO_TIMER;
	return ok;
}
