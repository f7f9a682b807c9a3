/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One 82093AA-compatible IOAPIC, version 0x20 (it has an EOI register), 24 pins.
 * Messages go to apicbus_send_device(), or to the engine's local APICs with
 * APIC_KERNEL. Under vm->lock.
 */
#ifndef MACHINE_IOAPIC_H
#define MACHINE_IOAPIC_H

#include "core/vm.h"
#include "machine/layout.h"

struct ioapic {
	struct vm *vm;
	u32 select, id;
	u64 redir[LAYOUT_IOAPIC_PINS];
	u32 level;		/* bit a pin: input asserted */
};

void ioapic_init(struct ioapic *io, struct vm *vm);
/* bus_fn of the MMIO page. */
void ioapic_access(void *dev, struct vcpu *vcpu, u64 off, bool write, void *data, u32 len);
void ioapic_set_pin(struct ioapic *io, u32 pin, bool level);
/* A local APIC saw EOI for `vector`, level triggered: clear remote IRR, send again if still asserted. */
void ioapic_eoi(struct ioapic *io, u8 vector);

#endif
