/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The device's side of a split virtqueue (Virtual I/O Device version 1.2, section
 * 2.7), without indirect descriptors and event indices, which are not offered.
 *
 * All that lies in guest memory is the guest's to change at any moment: it is read
 * once, checked, and used as it was read. What the rules of 2.7 do not allow gives
 * -EPROTO and a sentence; the device then needs a reset (2.1.2). Under vm->lock.
 */
#ifndef MACHINE_VIRTQUEUE_H
#define MACHINE_VIRTQUEUE_H

#include "core/saver.h"
#include "core/vm.h"

/* Most descriptors of a queue, and so of a chain. */
#define VIRTQUEUE_MAX	256u

struct virtqueue {
	u32 num;			/* descriptors, chosen by the driver: a power of two */
	bool ready;
	gpa_t desc, driver, device;	/* descriptor table, available ring, used ring */
	u16 next_avail;			/* of the available ring: the next entry to take, counted without end */
	u16 next_used;			/* of the used ring: the next entry to fill */
	u64 taken[VIRTQUEUE_MAX / 64];	/* bit h: the chain with head h is with the device */
};

struct virtqueue_segment {
	gpa_t gpa;
	u32 len;
};

/* One chain: what the device reads, then what it writes. All of it is RAM. */
struct virtqueue_chain {
	u16 head;
	u16 nr_read, nr_write;		/* segments: first nr_read, then nr_write */
	u64 read_len, write_len;	/* bytes */
	struct virtqueue_segment seg[VIRTQUEUE_MAX];
};

/* As after a reset. */
void virtqueue_reset(struct virtqueue *vq);
/*
 * The driver has set num and the three addresses and says that they hold. 0, or -EPROTO with
 * *why (a constant) if size, alignment (2.7) or place are not what they must be.
 */
int virtqueue_start(struct virtqueue *vq, const struct vm *vm, const char **why);
/* The next chain that the driver offers: 1, 0 if there is none, or -EPROTO with *why. */
int virtqueue_pop(struct virtqueue *vq, const struct vm *vm, struct virtqueue_chain *chain, const char **why);
/* Give a chain back, `written` bytes of which the device has filled (2.7.8). True if the driver wants to hear (2.7.7). */
bool virtqueue_push(struct virtqueue *vq, struct vm *vm, u16 head, u32 written);
/* Bytes from the front of what the device reads, and at an offset of what it writes, across segments. */
void virtqueue_read(const struct virtqueue_chain *chain, const struct vm *vm, u64 off, void *buf, u64 len);
void virtqueue_write(const struct virtqueue_chain *chain, struct vm *vm, u64 off, const void *buf, u64 len);
/* For snapshots. A chain that was taken is its device's, which moves it by the second function. */
void virtqueue_transfer(struct saver *s, struct virtqueue *vq, const struct vm *vm);
void virtqueue_transfer_chain(struct saver *s, const struct virtqueue *vq, struct virtqueue_chain *chain,
			      const struct vm *vm);

#endif
