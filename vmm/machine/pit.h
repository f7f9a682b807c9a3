/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * 8254 PIT: three counters at 1,193,182 Hz, modes 0, 2, 3 and 4, latch and
 * read-back; port 0x61 gates counter 2 and shows its output, which calibration
 * loops read. Counter 0 raises IRQ 0 from an event on vCPU 0's clock. Under
 * vm->lock.
 */
#ifndef MACHINE_PIT_H
#define MACHINE_PIT_H

#include "core/vm.h"

#define PIT_HZ	1193182ull
/* Floor of the time from one IRQ 0 to the next, ns: see LAPIC_MIN_PERIOD. */
#define PIT_MIN_PERIOD	100000ull

struct pit_counter {
	u8 mode;		/* 0..5 */
	u8 access;		/* 1 low byte, 2 high byte, 3 low then high */
	bool bcd;
	bool status_latched;	/* `status` is read next */
	u8 status;
	bool read_hi, write_hi;	/* access 3: the high byte is next */
	u8 latched;		/* bytes of `latch` still to be read */
	u16 latch;
	u8 write_low;		/* access 3: the low byte, until the high one comes */
	bool gate;
	bool running;		/* counting since `start`; if not, `held` ns of it had passed */
	u32 reload;		/* 1..65536; 0 = not programmed */
	u64 start;		/* ns at which counting began */
	u64 held;		/* ns */
};

struct pit {
	struct vm *vm;
	struct pit_counter c[3];
	u8 port61;
	struct clock_event tick;	/* on vCPU 0's clock */
};

void pit_init(struct pit *pit, struct vm *vm);
void pit_destroy(struct pit *pit);
/*
 * bus_fn for 0x40-0x43 and for 0x61. If ticks are missed (the host had no time),
 * the missed ones fold into one, and the next comes on the grid of the old.
 */
void pit_access(void *dev, struct vcpu *vcpu, u64 off, bool write, void *data, u32 len);
void pit_port61_access(void *dev, struct vcpu *vcpu, u64 off, bool write, void *data, u32 len);

#endif
