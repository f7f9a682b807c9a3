/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A writer of cpio archives in the "newc" format, which is what the kernel
 * unpacks as initramfs (Documentation/driver-api/early-userspace/buffer-format.rst).
 * Archives may be put one behind another. One thread.
 */
#ifndef HOST_TOOLS_CPIO_H
#define HOST_TOOLS_CPIO_H

#include <glib.h>
#include <stdio.h>

#include "base/types.h"

struct cpio {
	FILE *f;
	u32 ino;
	u64 offset;		/* bytes written by us, for the padding */
	GHashTable *folders;	/* those written already */
};

/* Goes on at the end of f, which must be at a multiple of 4 bytes. */
void cpio_begin(struct cpio *c, FILE *f);
/* A file with the given contents at an absolute path; folders above it are made. */
void cpio_add(struct cpio *c, const char *path, const void *data, size_t len, u32 mode);
/* A copy of a file of the host. -errno. */
int cpio_add_file(struct cpio *c, const char *path, const char *from, u32 mode);
void cpio_add_folder(struct cpio *c, const char *path);
/* The end mark. -EIO if anything could not be written. */
int cpio_end(struct cpio *c);

#endif
