/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The transport of one virtio device over MMIO, version 2 of the layout (Virtual I/O
 * Device version 1.2, section 4.2): registers, feature negotiation, device status, one
 * queue, and an interrupt on an IOAPIC pin. Under vm->lock.
 *
 * The interrupt is an edge, when the first reason for one appears: a driver clears the reasons and then looks
 * into the ring (4.2.3.4), so that none is lost; and KVM's own local APIC tells us of no end of a level
 * interrupt without a table of routes.
 */
#ifndef MACHINE_VIRTIO_MMIO_H
#define MACHINE_VIRTIO_MMIO_H

#include "machine/virtqueue.h"

struct virtio_mmio;

/* What the device behind it is. Called under vm->lock. */
struct virtio_device {
	u32 id;			/* section 5: 2 is a block device */
	u64 features;		/* offered; VIRTIO_F_VERSION_1 is added */
	const void *config;	/* the device's configuration space, constant while the VM runs */
	u32 config_len;
	/* The driver has put something into the queue, which is ready, and the driver is up. */
	void (*notify)(void *ctx, struct vcpu *vcpu);
	/* Forget every chain taken: the queue has stopped, and its memory is the driver's again. */
	void (*reset)(void *ctx);
	void *ctx;
};

struct virtio_mmio {
	struct vm *vm;			/* (c) */
	u32 pin;			/* (c) of the IOAPIC */
	struct virtio_device device;	/* (c) */
	u64 driver_features;
	u32 features_sel, driver_features_sel, queue_sel;
	u32 status, interrupt_status, generation;
	struct virtqueue queue;
	bool warned;			/* the user knows that the driver breaks rules */
};

void virtio_mmio_init(struct virtio_mmio *v, struct vm *vm, u32 pin, const struct virtio_device *device);
/* bus_fn of the device's page. */
void virtio_mmio_access(void *dev, struct vcpu *vcpu, u64 off, bool write, void *data, u32 len);
/* The device has pushed something that the driver wants to hear of. */
void virtio_mmio_used(struct virtio_mmio *v);
/* The driver broke a rule, `why`: the device stops until it is reset (2.1.2). The user hears of the first time. */
void virtio_mmio_broken(struct virtio_mmio *v, const char *why);
/* May the device use its queue? */
bool virtio_mmio_running(const struct virtio_mmio *v);
void virtio_mmio_transfer(struct saver *s, struct virtio_mmio *v);

#endif
