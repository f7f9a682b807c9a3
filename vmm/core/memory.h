/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Guest RAM: one memfd, cut into slots by guest physical address and NUMA
 * node. Every slot is mapped twice: `hva` is the VMM's own view and never
 * faults on the guest's behalf; `guest_hva` is the view handed to the engine,
 * which may be registered with userfaultfd. The same bytes show in both.
 *
 * Slots are added before the first vCPU runs and are constant afterwards, so
 * look-ups need no lock. Reads and writes race with the guest by nature; the
 * callers treat what they read as untrusted.
 */
#ifndef CORE_MEMORY_H
#define CORE_MEMORY_H

#include "base/types.h"

#define MEMORY_MAX_SLOTS	128

struct memslot {
	gpa_t gpa;		/* (c) page aligned */
	u64 size;		/* (c) bytes, page aligned */
	u64 offset;		/* (c) of the slot in the memfd */
	u32 node;		/* (c) guest NUMA node */
	u8 *hva;		/* (c) the VMM's view */
	u8 *guest_hva;		/* (c) the guest's view, for the engine */
};

struct memory {
	int fd;			/* (c) memfd; -1 before memory_create(), after memory_map_file() and with memory_add_file() */
	u64 size;		/* (c) bytes of all slots */
	unsigned int nr_slots;	/* (c) */
	struct memslot slot[MEMORY_MAX_SLOTS];
};

/* Make the memfd, with no slots. -errno (reported). */
int memory_create(struct memory *mem);
/*
 * Add a slot and map both views with 4 KiB pages (MADV_NOHUGEPAGE): backing
 * page size changes fault counts by up to 512. -EINVAL for unaligned, empty or
 * overlapping ranges, -ENOSPC when the table is full, else -errno (reported).
 */
int memory_add(struct memory *mem, gpa_t gpa, u64 size, u32 node);
/*
 * The same for a slot that is a part of somebody's file, from `offset` (page aligned) on, of which one view is both. `fd` is
 * not kept. Instead of memory_create() and memory_add(), for all slots.
 */
int memory_add_file(struct memory *mem, gpa_t gpa, u64 size, u32 node, int fd, u64 offset);
void memory_destroy(struct memory *mem);

/* The slot that holds gpa, or NULL. */
const struct memslot *memory_slot(const struct memory *mem, gpa_t gpa);
/* The VMM's pointer to [gpa, gpa + len) if it lies in one slot, else NULL. */
void *memory_hva(const struct memory *mem, gpa_t gpa, u64 len);
/* Copy out of / into guest RAM, across slots; -EFAULT, after part of it, if a byte is not RAM. */
int memory_read(const struct memory *mem, gpa_t gpa, void *buf, u64 len);
int memory_write(const struct memory *mem, gpa_t gpa, const void *buf, u64 len);

#endif
