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

struct pit_counter {
	u8 mode, access, bcd, status_latched, status;
	u8 read_hi, write_hi, latched;	/* which byte is next */
	u16 latch, reload_low;
	u32 reload;		/* 1..65536; 0 = not programmed */
	u64 start;		/* ns at which counting began */
	bool gate;
};

struct pit {
	struct vm *vm;
	struct pit_counter c[3];
	u8 port61;
	struct clock_event tick;	/* on vCPU 0's clock */
};

void pit_init(struct pit *pit, struct vm *vm);
void pit_destroy(struct pit *pit);
/* bus_fn for 0x40-0x43 and for 0x61. */
void pit_access(void *dev, struct vcpu *vcpu, u64 off, bool write, void *data, u32 len);
void pit_port61_access(void *dev, struct vcpu *vcpu, u64 off, bool write, void *data, u32 len);

#endif
