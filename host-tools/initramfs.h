/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Files that a scenario adds to the guest (guest.add): the project's initramfs
 * with them in it, made anew for each run (it takes less than a second, and a
 * kept one could have yesterday's program in it). One thread.
 */
#ifndef HOST_TOOLS_INITRAMFS_H
#define HOST_TOOLS_INITRAMFS_H

#include "scenario.h"

/*
 * The path, in folder `tmp`, of the initramfs with the scenario's files; g_free().
 * Cells that add the same share it. NULL after a message.
 */
char *initramfs_with(const char *tmp, const struct scenario *s);

#endif
