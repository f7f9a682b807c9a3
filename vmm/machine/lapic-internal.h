/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What lapic.c, lapic-msr.c and lapic-timer.c share; nobody else includes it.
 * Everything runs on the thread that owns the local APIC.
 */
#ifndef MACHINE_LAPIC_INTERNAL_H
#define MACHINE_LAPIC_INTERNAL_H

#include "machine/lapic.h"
#include "x86/apic.h"

/* Log errors (APIC_ESR_*): they show after the next ESR write, and raise LVT error once each. */
void lapic_error(struct lapic *l, u32 bits);
/* The register at `off` (16-byte aligned); false if there is none. */
bool lapic_reg_read(struct lapic *l, u32 off, u64 now, u32 *value);
/* Write it; false if there is no such register, or only a read-only one. */
bool lapic_reg_write(struct lapic *l, u32 off, u32 value, u64 now, struct lapic_effect *effect);
/* Turn the ICR as it stands into effect->msg, if it sends anything. */
void lapic_icr_send(struct lapic *l, struct lapic_effect *effect);
/* Change IA32_APIC_BASE, already checked, and all that hangs on it. */
void lapic_base_set(struct lapic *l, u64 base);

/* Stop the timer and forget its registers. */
void lapic_timer_reset(struct lapic *l);
/* The three writable registers; `lvt` and `divide` have only writable bits set. */
void lapic_timer_set_lvt(struct lapic *l, u32 lvt, u64 now);
void lapic_timer_set_initial(struct lapic *l, u32 initial, u64 now);
void lapic_timer_set_divide(struct lapic *l, u32 divide, u64 now);
/* The current count register. */
u32 lapic_timer_current(const struct lapic *l, u64 now);
/* IA32_TSC_DEADLINE: ignored, and reads 0, in the other modes (SDM 3A 10.5.4.1). */
void lapic_timer_set_deadline(struct lapic *l, u64 tsc, u64 now);
u64 lapic_timer_deadline(struct lapic *l, u64 now);

#endif
