// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include "core/memory-file.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* One write at most; also how much of a run of pages is looked at before it is written. */
#define CHUNK	(1ull << 20)

static bool is_zero(const u8 *page)
{
	u64 word;

	memcpy(&word, page, sizeof(word));
	return !word && memcmp(page, page + sizeof(word), PAGE_SIZE - sizeof(word)) == 0;
}

static int write_all(int fd, const u8 *from, u64 len, u64 offset)
{
	while (len) {
		ssize_t n = pwrite(fd, from, len, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		from += n;
		offset += (u64)n;
		len -= (u64)n;
	}
	return 0;
}

/* [from, from + len): runs of pages that are not all zeroes. */
static int save_pages(int fd, const u8 *from, u64 len, u64 offset, u64 *written)
{
	u64 at = 0, run;
	int err;

	while (at < len) {
		for (run = 0; at + run < len && run < CHUNK && !is_zero(from + at + run); run += PAGE_SIZE)
			;
		if (!run) {
			at += PAGE_SIZE;
			continue;
		}
		err = write_all(fd, from + at, run, offset + at);
		if (err)
			return err;
		*written += run;
		at += run;
	}
	return 0;
}

/* Where the memfd has pages from `at` on: [*data, *hole); false if nowhere before `end`. */
static bool next_data(int fd, u64 at, u64 end, u64 *data, u64 *hole)
{
	off_t pos = lseek(fd, (off_t)at, SEEK_DATA);

	if (pos < 0 || (u64)pos >= end)
		return false;
	*data = ALIGN_DOWN((u64)pos, PAGE_SIZE);
	pos = lseek(fd, pos, SEEK_HOLE);
	*hole = pos < 0 || (u64)pos > end ? end : ALIGN_UP((u64)pos, PAGE_SIZE);
	return true;
}

int memory_save(const struct memory *mem, int fd, u64 offset, u64 *written)
{
	int err;

	if (mem->fd < 0)
		return -EOPNOTSUPP;
	if (ftruncate(fd, (off_t)(offset + mem->size)) < 0)
		return -errno;
	for (u32 i = 0; i < mem->nr_slots; i++) {
		const struct memslot *slot = &mem->slot[i];
		u64 at = slot->offset, end = slot->offset + slot->size, data, hole;

		while (next_data(mem->fd, at, end, &data, &hole)) {
			err = save_pages(fd, slot->hva + (data - slot->offset), hole - data, offset + data, written);
			if (err)
				return err;
			at = hole;
		}
	}
	return 0;
}

int memory_map_file(struct memory *mem, int fd, u64 offset)
{
	for (u32 i = 0; i < mem->nr_slots; i++) {
		struct memslot *slot = &mem->slot[i];
		void *p = mmap(slot->hva, slot->size, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, fd, (off_t)(offset + slot->offset));

		if (p == MAP_FAILED)
			return -errno;
		madvise(p, slot->size, MADV_DONTDUMP);
		if (slot->guest_hva != slot->hva)
			munmap(slot->guest_hva, slot->size);
		slot->guest_hva = slot->hva;
	}
	if (mem->fd >= 0)
		close(mem->fd);
	mem->fd = -1;
	return 0;
}
