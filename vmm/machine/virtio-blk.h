/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A virtio block device (Virtual I/O Device version 1.2, section 5.2) over MMIO: reads,
 * writes, flushes and get-id, any number of requests at once up to the queue's size.
 *
 * A request is taken when the driver notifies, and done when its time has come: at
 * once, or after the delay that the injection point `blk` has for it. The event is one of
 * the VM's service clock, so that no vCPU waits for it, and delays run side by side (unless
 * blk.depth allows fewer); on virtual time it is due to the nanosecond. Data move when the
 * request is done. Under vm->lock, but for the event, which takes it.
 */
#ifndef MACHINE_VIRTIO_BLK_H
#define MACHINE_VIRTIO_BLK_H

#include <linux/virtio_blk.h>

#include "machine/disk.h"
#include "machine/virtio-mmio.h"

struct virtio_blk {
	struct vm *vm;			/* (c) */
	struct virtio_mmio mmio;
	struct disk disk;
	struct virtio_blk_config config;	/* (c) */
	struct clock_event done;	/* on vm->service: the first of `inflight` is due */
	GPtrArray *inflight;		/* struct blk_request, by (due, order of arrival) */
	u64 *server_free;		/* blk.depth: when each of so many servers is free, ns; NULL = no limit */
};

/* The disk is open and becomes the device's, whatever is returned. -errno, reported. */
int virtio_blk_init(struct virtio_blk *b, struct vm *vm, u64 base, u32 pin, const struct disk *disk);
/* Before vm->service goes. */
void virtio_blk_destroy(struct virtio_blk *b);
/* With requests that are in flight; one that loads has its event anew. */
void virtio_blk_transfer(struct saver *s, struct virtio_blk *b);

#endif
