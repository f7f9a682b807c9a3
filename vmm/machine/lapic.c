// SPDX-License-Identifier: GPL-2.0-only
/*
 * The local APIC: interrupt state, registers, ICR and addressing. The timer is
 * in lapic-timer.c, the MSRs in lapic-msr.c.
 */
#include "machine/lapic-internal.h"

#include <string.h>

#include "base/log.h"

/* lapic->lvt[], the timer's entry apart. */
enum { LVT_CMCI, LVT_THERMAL, LVT_PERF, LVT_LINT0, LVT_LINT1, LVT_ERROR, NR_LVTS };

_Static_assert(ARRAY_SIZE(((struct lapic *)NULL)->lvt) == NR_LVTS, "one entry each");

/* Fields that senders read while the owner writes. */
#define shared_get(field)		__atomic_load_n(&(field), __ATOMIC_RELAXED)
#define shared_set(field, value)	__atomic_store_n(&(field), value, __ATOMIC_RELAXED)

static bool bit_test(const u32 *map, u32 bit)
{
	return map[bit / 32] & BIT(bit % 32);
}

static void bit_set(u32 *map, u32 bit)
{
	map[bit / 32] |= BIT(bit % 32);
}

static void bit_clear(u32 *map, u32 bit)
{
	map[bit / 32] &= ~BIT(bit % 32);
}

/* The highest bit set of 256, or -1. */
static int bit_highest(const u32 *map)
{
	int i;

	for (i = 7; i >= 0; i--)
		if (map[i])
			return i * 32 + 31 - __builtin_clz(map[i]);
	return -1;
}

/* Processor priority: the task's or that of the highest interrupt in service, 10.8.3.1. */
static u32 lapic_ppr(const struct lapic *l)
{
	int vector = bit_highest(l->isr);
	u32 class = vector < 0 ? 0 : (u32)vector & 0xf0;

	return (l->tpr & 0xf0) >= class ? l->tpr : class;
}

static void lapic_update_enabled(struct lapic *l)
{
	shared_set(l->enabled, (l->base_msr & APIC_BASE_ENABLE) && (l->svr & APIC_SVR_ENABLE));
}

void lapic_init(struct lapic *l, u32 apic_id, bool bsp, bool x2apic_allowed, bool deadline_allowed, u64 tsc_hz)
{
	fb_assert(tsc_hz || !deadline_allowed);
	memset(l, 0, sizeof(*l));
	l->id = apic_id;
	l->bsp = bsp;
	l->x2apic_allowed = x2apic_allowed;
	l->deadline_allowed = deadline_allowed;
	l->tsc_hz = tsc_hz;
	l->base_msr = APIC_BASE_DEFAULT | APIC_BASE_ENABLE | (bsp ? APIC_BASE_BSP : 0);
	l->xapic_id = apic_id & 0xff;
	lapic_reset(l);
}

void lapic_reset(struct lapic *l)
{
	u32 i;

	/* In x2APIC mode the logical id is the id's, 16 APICs a cluster (10.12.10.2). */
	shared_set(l->ldr, l->x2apic ? (l->id >> 4) << 16 | BIT(l->id & 15) : 0);
	shared_set(l->dfr, APIC_DFR_FLAT);
	l->svr = APIC_SVR_VECTOR;
	l->tpr = 0;
	l->esr = 0;
	l->esr_pending = 0;
	l->icr_low = 0;
	l->icr_high = 0;
	for (i = 0; i < NR_LVTS; i++)
		l->lvt[i] = APIC_LVT_MASKED;
	memset(l->irr, 0, sizeof(l->irr));
	memset(l->isr, 0, sizeof(l->isr));
	memset(l->tmr, 0, sizeof(l->tmr));
	lapic_timer_reset(l);
	lapic_update_enabled(l);
}

void lapic_base_set(struct lapic *l, u64 base)
{
	u64 old = l->base_msr;

	shared_set(l->base_msr, base);
	shared_set(l->x2apic, (base & APIC_BASE_ENABLE) && (base & APIC_BASE_X2APIC));
	if (!(base & APIC_BASE_ENABLE)) {
		/* Disabled: all state is lost, and enabling finds the APIC as after power-up (10.4.3). */
		if (old & APIC_BASE_ENABLE) {
			shared_set(l->xapic_id, l->id & 0xff);
			lapic_reset(l);
		}
	} else if (l->x2apic && !(old & APIC_BASE_X2APIC)) {
		shared_set(l->ldr, (l->id >> 4) << 16 | BIT(l->id & 15));
		l->icr_high = 0;
	}
	lapic_update_enabled(l);
}

bool lapic_listens(const struct lapic *l)
{
	return shared_get(l->base_msr) & APIC_BASE_ENABLE;
}

bool lapic_accepts_fixed(const struct lapic *l)
{
	return shared_get(l->enabled);
}

void lapic_error(struct lapic *l, u32 bits)
{
	u32 lvt = l->lvt[LVT_ERROR];

	/* One interrupt for each kind until the next write of the ESR arms it again (10.5.3). */
	if (!(bits & ~l->esr_pending))
		return;
	l->esr_pending |= bits;
	if (lvt & APIC_LVT_MASKED)
		return;
	/* An illegal vector here is one more error, by now a pending one: this cannot recurse again. */
	lapic_set_irr(l, lvt & APIC_LVT_VECTOR, false);
}

bool lapic_set_irr(struct lapic *l, u8 vector, bool level)
{
	if (!l->enabled)
		return false;
	if (vector < APIC_FIRST_VECTOR) {
		lapic_error(l, APIC_ESR_RECV_ILLEGAL);
		return false;
	}
	bit_set(l->irr, vector);
	if (level)
		bit_set(l->tmr, vector);
	else
		bit_clear(l->tmr, vector);
	return true;
}

int lapic_pending(const struct lapic *l)
{
	int vector = bit_highest(l->irr);

	/* Software disable leaves what is already in IRR to be handled (10.4.7.2). */
	return vector >= 0 && ((u32)vector & 0xf0) > (lapic_ppr(l) & 0xf0) ? vector : -1;
}

void lapic_accept(struct lapic *l, u8 vector)
{
	fb_assert(bit_test(l->irr, vector));
	bit_clear(l->irr, vector);
	bit_set(l->isr, vector);
}

bool lapic_has_work(const struct lapic *l)
{
	return lapic_pending(l) >= 0;
}

u8 lapic_cr8(const struct lapic *l)
{
	return l->tpr >> 4;
}

void lapic_set_cr8(struct lapic *l, u8 cr8)
{
	l->tpr = (u32)(cr8 & 15) << 4;
}

static void lapic_eoi(struct lapic *l, struct lapic_effect *effect)
{
	int vector = bit_highest(l->isr);

	effect->todo |= LAPIC_TODO_ACK;
	/* An EOI with nothing in service is ignored, as after a spurious interrupt. */
	if (vector < 0)
		return;
	bit_clear(l->isr, vector);
	if (bit_test(l->tmr, vector) && !(l->svr & APIC_SVR_DIRECTED)) {
		effect->todo |= LAPIC_TODO_EOI;
		effect->eoi_vector = vector;
	}
}

static void lapic_write_svr(struct lapic *l, u32 value, u64 now)
{
	u32 i;

	l->svr = value & (APIC_SVR_VECTOR | APIC_SVR_ENABLE | APIC_SVR_FOCUS | APIC_SVR_DIRECTED);
	lapic_update_enabled(l);
	if (l->svr & APIC_SVR_ENABLE)
		return;
	/* Software disable masks every LVT entry (10.4.7.2). */
	for (i = 0; i < NR_LVTS; i++)
		l->lvt[i] |= APIC_LVT_MASKED;
	lapic_timer_set_lvt(l, l->lvt_timer | APIC_LVT_MASKED, now);
}

/* The index in l->lvt[] of a register and its writable bits, -1 if it is none of them. */
static int lvt_index(u32 off, u32 *writable)
{
	*writable = APIC_LVT_VECTOR | APIC_LVT_DELIVERY | APIC_LVT_MASKED;
	switch (off) {
	case APIC_LVT_CMCI:
		return LVT_CMCI;
	case APIC_LVT_THERMAL:
		return LVT_THERMAL;
	case APIC_LVT_PERF:
		return LVT_PERF;
	case APIC_LVT_LINT0:
		*writable |= APIC_LVT_POLARITY | APIC_LVT_LEVEL;
		return LVT_LINT0;
	case APIC_LVT_LINT1:
		*writable |= APIC_LVT_POLARITY | APIC_LVT_LEVEL;
		return LVT_LINT1;
	case APIC_LVT_ERROR:
		*writable &= ~APIC_LVT_DELIVERY;
		return LVT_ERROR;
	}
	return -1;
}

void lapic_icr_send(struct lapic *l, struct lapic_effect *effect)
{
	struct apic_msg *msg = &effect->msg;
	u32 low = l->icr_low;

	msg->dest = l->x2apic ? l->icr_high : l->icr_high >> 24;
	msg->x2apic_dest = l->x2apic;
	msg->vector = low & APIC_ICR_VECTOR;
	msg->delivery = (low >> APIC_ICR_DELIVERY_SHIFT) & 7;
	msg->shorthand = (low >> APIC_ICR_SHORTHAND_SHIFT) & 3;
	msg->logical = low & APIC_ICR_LOGICAL;
	msg->level = low & APIC_ICR_LEVEL;
	msg->assert = low & APIC_ICR_ASSERT;

	switch (msg->delivery) {
	case APIC_DM_FIXED:
	case APIC_DM_LOWEST:
		if (msg->vector < APIC_FIRST_VECTOR) {
			lapic_error(l, APIC_ESR_SEND_ILLEGAL);
			return;
		}
		break;
	case APIC_DM_NMI:
	case APIC_DM_INIT:
	case APIC_DM_SIPI:
		break;
	default:
		/* SMI: there is no SMM here. ExtINT and 3 cannot be sent (table 10-1). */
		return;
	}
	effect->todo |= LAPIC_TODO_SEND;
}

bool lapic_reg_read(struct lapic *l, u32 off, u64 now, u32 *value)
{
	u32 writable;
	int lvt = lvt_index(off, &writable);

	*value = 0;
	if (lvt >= 0) {
		*value = l->lvt[lvt];
		return true;
	}
	switch (off) {
	case APIC_ID:
		*value = l->x2apic ? l->id : l->xapic_id << 24;
		return true;
	case APIC_VERSION:
		*value = APIC_VERSION_NUMBER | APIC_VERSION_MAXLVT(NR_LVTS) | APIC_VERSION_DIRECTED;
		return true;
	case APIC_TPR:
		*value = l->tpr;
		return true;
	case APIC_PPR:
		*value = lapic_ppr(l);
		return true;
	case APIC_APR:
	case APIC_RRD:
		return !l->x2apic;
	case APIC_EOI:
		return !l->x2apic;
	case APIC_LDR:
		*value = l->ldr;
		return true;
	case APIC_DFR:
		*value = l->dfr;
		return !l->x2apic;
	case APIC_SVR:
		*value = l->svr;
		return true;
	case APIC_ISR ... APIC_ISR + 0x70:
		*value = l->isr[(off - APIC_ISR) >> 4];
		return true;
	case APIC_TMR ... APIC_TMR + 0x70:
		*value = l->tmr[(off - APIC_TMR) >> 4];
		return true;
	case APIC_IRR ... APIC_IRR + 0x70:
		*value = l->irr[(off - APIC_IRR) >> 4];
		return true;
	case APIC_ESR:
		*value = l->esr;
		return true;
	case APIC_ICR:
		*value = l->icr_low;
		return true;
	case APIC_ICR2:
		*value = l->icr_high;
		return !l->x2apic;
	case APIC_LVT_TIMER:
		*value = l->lvt_timer;
		return true;
	case APIC_TMICT:
		*value = l->timer_initial;
		return true;
	case APIC_TMCCT:
		*value = lapic_timer_current(l, now);
		return true;
	case APIC_TDCR:
		*value = l->timer_divide;
		return true;
	}
	return false;
}

bool lapic_reg_write(struct lapic *l, u32 off, u32 value, u64 now, struct lapic_effect *effect)
{
	u32 writable;
	int lvt = lvt_index(off, &writable);

	if (lvt >= 0) {
		l->lvt[lvt] = (value & writable) | (l->svr & APIC_SVR_ENABLE ? 0 : APIC_LVT_MASKED);
		return true;
	}
	switch (off) {
	case APIC_TPR:
		l->tpr = value & 0xff;
		effect->todo |= LAPIC_TODO_TPR;
		return true;
	case APIC_EOI:
		lapic_eoi(l, effect);
		return true;
	case APIC_SVR:
		lapic_write_svr(l, value, now);
		return true;
	case APIC_ESR:
		/* Shows what came since the last write, and starts anew. */
		l->esr = l->esr_pending;
		l->esr_pending = 0;
		return true;
	case APIC_ICR:
		l->icr_low = value & APIC_ICR_WRITABLE;
		lapic_icr_send(l, effect);
		return true;
	case APIC_LVT_TIMER:
		writable = APIC_LVT_VECTOR | APIC_LVT_MASKED | APIC_LVT_PERIODIC;
		if (l->deadline_allowed)
			writable |= APIC_LVT_DEADLINE;
		value &= writable;
		lapic_timer_set_lvt(l, value | (l->svr & APIC_SVR_ENABLE ? 0 : APIC_LVT_MASKED), now);
		return true;
	case APIC_TMICT:
		lapic_timer_set_initial(l, value, now);
		return true;
	case APIC_TDCR:
		lapic_timer_set_divide(l, value & APIC_TDCR_WRITABLE, now);
		return true;
	}
	return false;
}

u32 lapic_read(struct lapic *l, u32 off, u64 now)
{
	u32 value;

	/* Disabled, or in x2APIC mode: nothing answers at this address. */
	if (!(l->base_msr & APIC_BASE_ENABLE) || l->x2apic || off >= LAPIC_MMIO_SIZE)
		return UINT32_MAX;
	/* Registers fill the first four of each sixteen bytes; the rest is undefined (10.4.1). */
	if (off & 0xc)
		return 0;
	if (!lapic_reg_read(l, off & ~15u, now, &value))
		lapic_error(l, APIC_ESR_REGISTER);
	return value >> 8 * (off & 3);
}

/* Registers that only xAPIC mode can write, and those that ignore a write. */
static bool xapic_write(struct lapic *l, u32 off, u32 value)
{
	u32 unused;

	switch (off) {
	case APIC_ID:
		shared_set(l->xapic_id, value >> 24);
		return true;
	case APIC_LDR:
		shared_set(l->ldr, value & 0xff000000u);
		return true;
	case APIC_DFR:
		shared_set(l->dfr, value | 0x0fffffffu);
		return true;
	case APIC_ICR2:
		l->icr_high = value & 0xff000000u;
		return true;
	}
	/* What can be read is not reserved: a read-only register. */
	return lapic_reg_read(l, off, 0, &unused);
}

void lapic_write(struct lapic *l, u32 off, u32 value, u64 now, struct lapic_effect *effect)
{
	u64 due = l->timer_due;

	memset(effect, 0, sizeof(*effect));
	if (!(l->base_msr & APIC_BASE_ENABLE) || l->x2apic || off >= LAPIC_MMIO_SIZE || off & 15)
		return;
	if (!lapic_reg_write(l, off, value, now, effect) && !xapic_write(l, off, value))
		lapic_error(l, APIC_ESR_REGISTER);
	if (l->timer_due != due)
		effect->todo |= LAPIC_TODO_TIMER;
}

/* Logical destinations: 10.6.2.2 for xAPIC (8 bits), 10.12.10.1 for x2APIC (cluster in the upper half). */
static bool lapic_match_logical(const struct lapic *l, u32 dest)
{
	u32 ldr = shared_get(l->ldr);

	if (shared_get(l->x2apic))
		return dest >> 16 == ldr >> 16 && (dest & ldr & 0xffff);
	if (dest > 0xff)
		return false;
	ldr >>= 24;
	switch (shared_get(l->dfr) >> 28) {
	case 0xf:
		return dest & ldr;
	case 0x0:
		return dest >> 4 == ldr >> 4 && (dest & ldr & 0xf);
	}
	/* Other models are reserved; such an APIC is not addressed by anyone. */
	return false;
}

bool lapic_match(const struct lapic *l, const struct apic_msg *msg)
{
	if (!lapic_listens(l))
		return false;
	/* In either mode (10.6.2.1, 10.6.2.2), as wide as the sender's destination field. */
	if (msg->dest == (msg->x2apic_dest ? X2APIC_BROADCAST : APIC_BROADCAST))
		return true;
	if (msg->logical)
		return lapic_match_logical(l, msg->dest);
	return msg->dest == (shared_get(l->x2apic) ? l->id : shared_get(l->xapic_id));
}
