/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A pair of 8259As as far as Linux probes them: ICW/OCW sequences, readable
 * masks, IRR and ISR, ELCR. They never deliver an interrupt: the guest uses the
 * IOAPIC. Without them has_legacy_pic() is false and Linux does not use the PIT.
 * Under vm->lock.
 */
#ifndef MACHINE_PIC_H
#define MACHINE_PIC_H

#include "core/vm.h"

struct pic {
	/* imr: 1 = masked; irr follows the lines; read_isr: what the even port reads; icw_step: see pic.c */
	struct { u8 imr, irr, isr, icw_step, icw4, base, read_isr, elcr; } chip[2];
};

void pic_init(struct pic *pic);
/* bus_fn, each with the struct pic as its device; `off` counts from 0x20, 0xa0 and 0x4d0. */
void pic_master_access(void *dev, struct vcpu *vcpu, u64 off, bool write, void *data, u32 len);
void pic_slave_access(void *dev, struct vcpu *vcpu, u64 off, bool write, void *data, u32 len);
void pic_elcr_access(void *dev, struct vcpu *vcpu, u64 off, bool write, void *data, u32 len);
void pic_set_irq(struct pic *pic, u32 irq, bool level);

#endif
