/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The contents of a guest's disk: a raw image file, of which the guest has a private
 * copy. What it writes is kept in memory, page by page, and the file is never
 * written; so many guests can share one, and each run finds it as it was. Offsets and
 * lengths in bytes. Not locked: one thread, or vm->lock.
 */
#ifndef MACHINE_DISK_H
#define MACHINE_DISK_H

#include <glib.h>

#include "base/types.h"
#include "core/saver.h"

#define DISK_SECTOR	512u

struct disk {
	int fd;			/* (c) -1 = none */
	char *path;		/* (c) as given, for messages */
	u64 size;		/* (c) a multiple of DISK_SECTOR */
	bool read_only;		/* (c) */
	GHashTable *written;	/* page number -> its PAGE_SIZE bytes, of pages that the guest has written */
};

/*
 * Open the image. -errno, reported: no such file, not a regular one, empty, not whole sectors,
 * or a format that is not raw (qcow2 and the like).
 */
int disk_open(struct disk *disk, const char *path, bool read_only);
/* Also one that disk_open() has refused, or that is all zeroes. */
void disk_close(struct disk *disk);
/* [off, off + len) must lie in the disk. -errno (not reported) if the host cannot read its file. */
int disk_read(const struct disk *disk, u64 off, void *buf, u64 len);
/* The same; a disk that is read-only must not be written. */
int disk_write(struct disk *disk, u64 off, const void *buf, u64 len);
/* Bytes of the host's memory that the guest's writes take. */
u64 disk_written_bytes(const struct disk *disk);
/* The written pages, for a snapshot; the file itself is part of a snapshot's key. */
void disk_transfer(struct saver *s, struct disk *disk);

#endif
