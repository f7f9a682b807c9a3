/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The flattened device tree that tells a patched kernel where the channel is and
 * which knobs to start with (node /faultbed, compatible "faultbed,channel-1").
 */
#ifndef MACHINE_FDT_H
#define MACHINE_FDT_H

#include "base/types.h"

struct fdt_knob {
	const char *name, *value;
};

/* A new blob (g_free()) and its size; NULL, reported, when libfdt fails. */
void *fdt_build(gpa_t channel, u32 channel_size, u32 layout_version, const struct fdt_knob *knobs,
		u32 nr_knobs, u32 *size);

#endif
