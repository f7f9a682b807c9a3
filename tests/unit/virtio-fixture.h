/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A guest with a disk for unit tests: RAM, devices, a disk image whose sector n holds the
 * number n in each of its words, and a driver that sets up one queue. One thread.
 */
#ifndef TESTS_VIRTIO_FIXTURE_H
#define TESTS_VIRTIO_FIXTURE_H

#include <linux/virtio_blk.h>
#include <linux/virtio_config.h>
#include <linux/virtio_mmio.h>
#include <linux/virtio_ring.h>

#include "fake-engine.h"
#include "machine/layout.h"
#include "machine/machine.h"

#define NUM		8u
#define DESC		0x10000ull
#define AVAIL		0x11000ull
#define USED		0x12000ull
#define HEADER		0x13000ull	/* 16 bytes a request */
#define STATUS		0x14000ull	/* a byte a request */
#define DATA		0x20000ull
#define RAM		(8 * MIB)
#define SECTORS		4096u
#define VECTOR		0x55

struct guest {
	struct fake_vm *fake;
	struct vm *vm;
	char *image;
	u16 avail_idx;		/* of what the driver offers */
	u16 used_idx;		/* of what it has seen */
};

/* A guest whose driver is not up yet. */
struct guest *guest_new(bool read_only);
void guest_free(struct guest *g);
/* The driver's part of 3.1.1, with the features that it wants. True if the device took them. */
bool guest_up(struct guest *g, u64 features);
u32 guest_reg(struct guest *g, u32 off);
void guest_set(struct guest *g, u32 off, u32 value);
/* A descriptor; an entry of the available ring, made visible by its index. */
void guest_desc(struct guest *g, u32 i, u64 addr, u32 len, u32 flags, u32 next);
void guest_offer(struct guest *g, u16 head);
/* Three descriptors from `head` on: header, data, status. `head` also chooses where header and status lie. */
void guest_request(struct guest *g, u16 head, u32 type, u64 sector, u64 data, u32 len);
void guest_notify(struct guest *g);
/* Let time pass and what is due run. */
void guest_run(struct guest *g, u64 ns);
/* How many used entries have come; the last one. */
u32 guest_used(struct guest *g, struct vring_used_elem *last);
u8 guest_status(struct guest *g, u16 head);
u32 guest_u32(struct guest *g, u64 gpa);
/* Does the device ask for a reset? */
bool guest_broken(struct guest *g);

#endif
