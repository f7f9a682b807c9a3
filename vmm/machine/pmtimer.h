/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ACPI fixed hardware: the 32-bit PM timer at 3,579,545 Hz and the PM1a event and
 * control blocks (ACPI 6.5 section 4.8.3). SLP_TYP with SLP_EN ends the VM. Under vm->lock.
 */
#ifndef MACHINE_PMTIMER_H
#define MACHINE_PMTIMER_H

#include "core/vm.h"

#define PMTIMER_HZ	3579545ull

struct pmtimer {
	struct vm *vm;
	u16 pm1_status, pm1_enable, pm1_control;
};

void pmtimer_init(struct pmtimer *pm, struct vm *vm);
/* bus_fn for LAYOUT_PORT_PM1A_EVT .. PMTIMER + 3 (12 bytes). */
void pmtimer_access(void *dev, struct vcpu *vcpu, u64 off, bool write, void *data, u32 len);

#endif
