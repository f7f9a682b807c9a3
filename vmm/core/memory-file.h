/* SPDX-License-Identifier: GPL-2.0-only */
/* Guest RAM to and from a file, for snapshots. With no vCPU running. */
#ifndef CORE_MEMORY_FILE_H
#define CORE_MEMORY_FILE_H

#include "core/memory.h"

/*
 * Write all of RAM, slot by slot as in the memfd, to `fd` from `offset` (page aligned)
 * on, and set the file's end behind it. Pages of zeroes, and those that nobody
 * has touched, which are not even looked at, become holes. The number of bytes
 * written is added to *written. -errno, not reported; -EOPNOTSUPP for RAM that
 * memory_map_file() has replaced.
 */
int memory_save(const struct memory *mem, int fd, u64 offset, u64 *written);
/*
 * Replace the contents of RAM by those of the file: every slot keeps its place in
 * the VMM and becomes a private mapping, so that pages are read when they are
 * first touched and what the guest writes stays here. Both views are then one
 * mapping, since two private ones would not show the same bytes. The file must
 * keep its length. -errno, not reported; RAM is then of no use.
 */
int memory_map_file(struct memory *mem, int fd, u64 offset);

#endif
