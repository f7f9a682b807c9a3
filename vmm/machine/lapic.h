/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One local APIC as a pure state machine (SDM 3A chapter 10 [11 in newer
 * editions]); xAPIC registers by offset, x2APIC MSRs by the same offsets >> 4.
 * It knows nothing of threads, engines or other APICs: a write returns what has
 * to be done, and the caller (vmm/vcpu.c) does it. Owned by its vCPU's thread,
 * except the addressing fields marked (a), which senders read to route logical
 * destinations.
 *
 * Times in ns. The timer's input clock is LAPIC_TIMER_HZ before the divider.
 */
#ifndef MACHINE_LAPIC_H
#define MACHINE_LAPIC_H

#include "base/types.h"
#include "core/clock.h"

#define LAPIC_TIMER_HZ	1000000000ull
#define LAPIC_MMIO_SIZE	0x1000u
/*
 * Floor of a periodic timer's period, ns. A guest can ask for 1 ns, which would
 * keep the VMM busy with nothing but its expirations; a shorter period is served
 * at this one. (KVM's min_timer_period_us, 200 by default, does the same.)
 */
#define LAPIC_MIN_PERIOD	100000ull

enum apic_delivery {		/* ICR and MSI delivery modes (SDM 3A 10.6.1) */
	APIC_DM_FIXED = 0,
	APIC_DM_LOWEST = 1,
	APIC_DM_SMI = 2,
	APIC_DM_NMI = 4,
	APIC_DM_INIT = 5,
	APIC_DM_SIPI = 6,
	APIC_DM_EXTINT = 7,
};

enum apic_shorthand { APIC_SH_NONE, APIC_SH_SELF, APIC_SH_ALL, APIC_SH_OTHERS };

/* An interrupt message on its way: from an ICR, the IOAPIC or an MSI. */
struct apic_msg {
	u32 dest;
	u8 vector;
	u8 delivery;		/* enum apic_delivery */
	u8 shorthand;		/* enum apic_shorthand; ICR only */
	bool logical;
	bool level;		/* trigger mode level */
	bool assert;		/* level bit: INIT with assert = false is the de-assert, ignored */
	bool x2apic_dest;	/* dest is 32 bits wide; 0xffffffff broadcasts */
};

enum lapic_todo {
	LAPIC_TODO_SEND = BIT(0),	/* route effect->msg */
	LAPIC_TODO_EOI = BIT(1),	/* effect->eoi_vector was level triggered: tell the IOAPIC */
	LAPIC_TODO_TIMER = BIT(2),	/* lapic_timer_due() changed */
	LAPIC_TODO_TPR = BIT(3),	/* TPR changed (engines mirror it in CR8) */
	LAPIC_TODO_ACK = BIT(4),	/* an EOI register write happened (for counting) */
};

struct lapic_effect {
	u32 todo;		/* LAPIC_TODO_* */
	struct apic_msg msg;
	u8 eoi_vector;
};

struct lapic {
	u32 id;			/* (c) initial APIC id */
	bool bsp;		/* (c) */
	bool x2apic_allowed;	/* (c) */
	bool deadline_allowed;	/* (c) TSC-deadline mode offered */
	u64 base_msr;		/* (a) IA32_APIC_BASE */
	u32 xapic_id;		/* (a) ID register's field, writable in xAPIC mode */
	u32 ldr, dfr;		/* (a) */
	bool x2apic;		/* (a) in x2APIC mode */
	bool enabled;		/* (a) globally (base_msr) and, for fixed interrupts, by SVR */
	u32 svr, tpr, esr, esr_pending, icr_low, icr_high;
	u32 lvt[6];		/* CMCI/thermal/perf/LINT0/LINT1/error in lapic.c's order; timer apart */
	u32 lvt_timer, timer_divide, timer_initial;
	u64 timer_start, timer_period;	/* ns; one full count, 0 = not counting */
	u64 timer_due;		/* ns, CLOCK_NEVER if off or masked */
	u64 tsc_deadline;	/* MSR value, 0 = disarmed */
	u64 tsc_hz;		/* (c) to turn a TSC deadline into ns; guest TSC = ns * hz, see lapic_set_tsc_offset() */
	s64 tsc_offset;
	u32 irr[8], isr[8], tmr[8];
};

/* Power-up state. */
void lapic_init(struct lapic *l, u32 apic_id, bool bsp, bool x2apic_allowed, bool deadline_allowed, u64 tsc_hz);
/* INIT: as power-up, but the APIC id and base MSR stay (SDM 3A 10.4.7.3). */
void lapic_reset(struct lapic *l);
/* xAPIC register read at byte offset `off` (aligned 32-bit; other widths give the register's bytes). */
u32 lapic_read(struct lapic *l, u32 off, u64 now);
/* xAPIC register write; fills *effect. Reserved registers set ESR bit 7 and do nothing. */
void lapic_write(struct lapic *l, u32 off, u32 value, u64 now, struct lapic_effect *effect);
/*
 * Guest TSC = ns * tsc_hz + offset modulo 2^64, as IA32_TSC or TSC_ADJUST writes change it.
 * lapic_timer_due() may change.
 */
void lapic_set_tsc_offset(struct lapic *l, s64 offset, u64 now);
/* x2APIC and APIC base MSRs (0x1b, 0x800-0x8ff, 0x6e0). false = #GP. */
bool lapic_msr_read(struct lapic *l, u32 msr, u64 now, u64 *value);
bool lapic_msr_write(struct lapic *l, u32 msr, u64 value, u64 now, struct lapic_effect *effect);

/*
 * A fixed or lowest-priority interrupt arrives: set IRR (and TMR by `level`).
 * false if dropped (disabled, vector < 16).
 */
bool lapic_set_irr(struct lapic *l, u8 vector, bool level);
/* The vector to inject now, or -1: highest IRR bit above the processor priority (SDM 3A 10.8.3). */
int lapic_pending(const struct lapic *l);
/* The CPU took `vector`: IRR to ISR. */
void lapic_accept(struct lapic *l, u8 vector);
/* Is there any unmasked reason to wake from HLT (ignoring RFLAGS.IF)? Same as lapic_pending() >= 0. */
bool lapic_has_work(const struct lapic *l);
/* Task priority as CR8 (0..15) and back. */
u8 lapic_cr8(const struct lapic *l);
void lapic_set_cr8(struct lapic *l, u8 cr8);
/* When the timer expires next (ns), CLOCK_NEVER if it does not. */
u64 lapic_timer_due(const struct lapic *l);
/* Is the timer in periodic mode? */
bool lapic_timer_periodic(const struct lapic *l);
/*
 * The timer has expired: sets IRR (returns the vector) and rearms a periodic
 * timer from its due time. -1, and nothing happens, if it is not due by `now`:
 * a register write or INIT has overtaken the event.
 */
int lapic_timer_fire(struct lapic *l, u64 now);
/* Globally enabled: does it take messages at all? Any thread. */
bool lapic_listens(const struct lapic *l);
/* As `enabled`: globally and by software, so that fixed interrupts are accepted. Any thread. */
bool lapic_accepts_fixed(const struct lapic *l);
/*
 * Does a message with this destination address the APIC? Any thread (reads the
 * (a) fields). Physical, logical flat, logical cluster, broadcast; shorthands
 * are the sender's affair.
 */
bool lapic_match(const struct lapic *l, const struct apic_msg *msg);

#endif
