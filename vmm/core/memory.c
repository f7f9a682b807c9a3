// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "core/memory.h"

int memory_create(struct memory *mem)
{
	memset(mem, 0, sizeof(*mem));
	mem->fd = memfd_create("faultbed-ram", MFD_CLOEXEC);
	if (mem->fd < 0) {
		int ret = -errno;

		fb_err("cannot make the file for guest RAM (memfd_create): %s", strerror(-ret));
		return ret;
	}
	return 0;
}

static bool overlaps(const struct memory *mem, gpa_t gpa, u64 size)
{
	for (unsigned int i = 0; i < mem->nr_slots; i++) {
		const struct memslot *slot = &mem->slot[i];

		if (gpa < slot->gpa + slot->size && slot->gpa < gpa + size)
			return true;
	}
	return false;
}

static u8 *map_view(int fd, u64 offset, u64 size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd,
		       (off_t)offset);

	if (p == MAP_FAILED)
		return NULL;
	/* A host without huge pages refuses this advice, and then does not need it. */
	madvise(p, size, MADV_NOHUGEPAGE);
	madvise(p, size, MADV_DONTDUMP);
	return p;
}

static int check_slot(const struct memory *mem, gpa_t gpa, u64 size)
{
	if (!size || gpa % PAGE_SIZE || size % PAGE_SIZE || gpa + size < gpa ||
	    size > (u64)INT64_MAX - mem->size || overlaps(mem, gpa, size))
		return -EINVAL;
	return mem->nr_slots == MEMORY_MAX_SLOTS ? -ENOSPC : 0;
}

int memory_add(struct memory *mem, gpa_t gpa, u64 size, u32 node)
{
	struct memslot *slot = &mem->slot[mem->nr_slots];
	int ret = check_slot(mem, gpa, size);

	if (ret)
		return ret;
	if (ftruncate(mem->fd, (off_t)(mem->size + size)) < 0) {
		ret = -errno;
		fb_err("cannot grow guest RAM to %" PRIu64 " bytes: %s", mem->size + size,
		       strerror(-ret));
		return ret;
	}
	slot->gpa = gpa;
	slot->size = size;
	slot->offset = mem->size;
	slot->node = node;
	slot->hva = map_view(mem->fd, slot->offset, size);
	slot->guest_hva = slot->hva ? map_view(mem->fd, slot->offset, size) : NULL;
	if (!slot->guest_hva) {
		ret = -errno;
		fb_err("cannot map %" PRIu64 " bytes of guest RAM at %#" PRIx64 ": %s", size, gpa,
		       strerror(-ret));
		if (slot->hva)
			munmap(slot->hva, size);
		memset(slot, 0, sizeof(*slot));
		return ret;
	}
	mem->size += size;
	mem->nr_slots++;
	return 0;
}

int memory_add_file(struct memory *mem, gpa_t gpa, u64 size, u32 node, int fd, u64 offset)
{
	struct memslot *slot = &mem->slot[mem->nr_slots];
	int ret = check_slot(mem, gpa, size);
	u8 *view;

	if (ret)
		return ret;
	view = map_view(fd, offset, size);
	if (!view) {
		ret = -errno;
		fb_err("cannot map %" PRIu64 " bytes of guest RAM at %#" PRIx64 ": %s", size, gpa, strerror(-ret));
		return ret;
	}
	*slot = (struct memslot){ .gpa = gpa, .size = size, .offset = offset, .node = node, .hva = view, .guest_hva = view };
	mem->size += size;
	mem->nr_slots++;
	return 0;
}

void memory_destroy(struct memory *mem)
{
	for (unsigned int i = 0; i < mem->nr_slots; i++) {
		munmap(mem->slot[i].hva, mem->slot[i].size);
		if (mem->slot[i].guest_hva != mem->slot[i].hva)
			munmap(mem->slot[i].guest_hva, mem->slot[i].size);
	}
	if (mem->fd >= 0)
		close(mem->fd);
	memset(mem, 0, sizeof(*mem));
	mem->fd = -1;
}

const struct memslot *memory_slot(const struct memory *mem, gpa_t gpa)
{
	for (unsigned int i = 0; i < mem->nr_slots; i++) {
		const struct memslot *slot = &mem->slot[i];

		if (gpa >= slot->gpa && gpa - slot->gpa < slot->size)
			return slot;
	}
	return NULL;
}

void *memory_hva(const struct memory *mem, gpa_t gpa, u64 len)
{
	const struct memslot *slot = memory_slot(mem, gpa);

	if (!slot || len > slot->size - (gpa - slot->gpa))
		return NULL;
	return slot->hva + (gpa - slot->gpa);
}

/* The largest piece of [gpa, gpa + len) in gpa's slot; NULL if gpa is not RAM. */
static u8 *piece(const struct memory *mem, gpa_t gpa, u64 len, u64 *chunk)
{
	const struct memslot *slot = memory_slot(mem, gpa);
	u64 room;

	if (!slot)
		return NULL;
	room = slot->size - (gpa - slot->gpa);
	*chunk = len < room ? len : room;
	return slot->hva + (gpa - slot->gpa);
}

int memory_read(const struct memory *mem, gpa_t gpa, void *buf, u64 len)
{
	u8 *to = buf;
	u64 chunk;

	for (; len; gpa += chunk, to += chunk, len -= chunk) {
		const u8 *from = piece(mem, gpa, len, &chunk);

		if (!from)
			return -EFAULT;
		memcpy(to, from, chunk);
	}
	return 0;
}

int memory_write(const struct memory *mem, gpa_t gpa, const void *buf, u64 len)
{
	const u8 *from = buf;
	u64 chunk;

	for (; len; gpa += chunk, from += chunk, len -= chunk) {
		u8 *to = piece(mem, gpa, len, &chunk);

		if (!to)
			return -EFAULT;
		memcpy(to, from, chunk);
	}
	return 0;
}
