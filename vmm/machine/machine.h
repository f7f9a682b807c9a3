/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The devices of one guest machine and how they are put together. Everything
 * here runs under vm->lock unless said otherwise.
 */
#ifndef MACHINE_MACHINE_H
#define MACHINE_MACHINE_H

#include "core/vm.h"
#include "machine/bus.h"
#include "machine/channel.h"
#include "machine/ioapic.h"
#include "machine/pic.h"
#include "machine/pit.h"
#include "machine/pmtimer.h"
#include "machine/rtc.h"
#include "machine/testdev.h"
#include "machine/uart.h"
#include "machine/virtio-blk.h"

struct machine {
	struct ioapic ioapic;
	struct pic pic;
	struct pit pit;
	struct pmtimer pmtimer;
	struct rtc rtc;
	struct uart console;	/* ttyS0 */
	struct uart control;	/* ttyS1: the control protocol of our init */
	struct testdev testdev;
	struct channel channel;
	struct virtio_blk *blk;	/* NULL: no disk */
};

/*
 * Build all devices and the bus (vm->bus, if nobody has made one), and claim
 * their ranges. vm->topo, vm->engine and the vCPUs with their clocks are in
 * place (the PIT ticks on vCPU 0's). On the thread that builds the VM. -errno,
 * reported; machine_destroy() then still has to be called.
 */
int machine_init(struct vm *vm);
/*
 * Give it a disk, which becomes the machine's, whatever is returned: announced in the DSDT, so
 * before acpi_build(). -errno, reported.
 */
int machine_add_disk(struct vm *vm, const struct disk *disk);
/* Frees devices and bus; before the clocks go, and with no vCPU running. */
void machine_destroy(struct vm *vm);
/*
 * Raise or lower an ISA IRQ line (0..15): to the PIC stub and, by the MADT's
 * overrides, the IOAPIC pin. Under vm->lock.
 */
void machine_set_irq(struct vm *vm, u32 irq, bool level);

#endif
