/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a line of a Linux guest's slab is of: the name of the object's kind, which is its slab cache's, and where in
 * the object it is. Reads the guest's memory, changes nothing. Between turns.
 */
#ifndef SOFT_SLAB_NAME_H
#define SOFT_SLAB_NAME_H

#include "core/profile.h"
#include "soft/soft.h"

/* Fill in `object` and `offset` of each line that is in a slab now; nothing where the System.map does not lead there. */
void slab_name_lines(struct soft_cpu *c, GArray *lines);

#endif
