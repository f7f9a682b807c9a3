// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <glib.h>
#include <libfdt.h>
#include <string.h>

#include "base/log.h"
#include "machine/fdt.h"

#define FDT_MAX_BYTES	0x8000

/*
 * / {
 *	#address-cells = <2>; #size-cells = <2>;
 *	faultbed { compatible, reg, layout-version; knobs { NAME = "VALUE"; ... }; };
 * };
 *
 * Node and property names are what the kernel patches look for.
 */
static int write_tree(void *fdt, gpa_t channel, u32 channel_size, u32 layout_version,
		      const struct fdt_knob *knobs, u32 nr_knobs)
{
	fdt64_t reg[2] = { cpu_to_fdt64(channel), cpu_to_fdt64(channel_size) };
	int ret;

	ret = fdt_create(fdt, FDT_MAX_BYTES);
	ret = ret ?: fdt_finish_reservemap(fdt);
	ret = ret ?: fdt_begin_node(fdt, "");
	ret = ret ?: fdt_property_string(fdt, "model", "Faultbed");
	ret = ret ?: fdt_property_string(fdt, "compatible", "faultbed");
	ret = ret ?: fdt_property_u32(fdt, "#address-cells", 2);
	ret = ret ?: fdt_property_u32(fdt, "#size-cells", 2);
	ret = ret ?: fdt_begin_node(fdt, "faultbed");
	ret = ret ?: fdt_property_string(fdt, "compatible", "faultbed,channel-1");
	ret = ret ?: fdt_property(fdt, "reg", reg, sizeof(reg));
	ret = ret ?: fdt_property_u32(fdt, "layout-version", layout_version);
	ret = ret ?: fdt_begin_node(fdt, "knobs");
	for (u32 i = 0; i < nr_knobs; i++)
		ret = ret ?: fdt_property_string(fdt, knobs[i].name, knobs[i].value);
	ret = ret ?: fdt_end_node(fdt);
	ret = ret ?: fdt_end_node(fdt);
	ret = ret ?: fdt_end_node(fdt);
	return ret ?: fdt_finish(fdt);
}

void *fdt_build(gpa_t channel, u32 channel_size, u32 layout_version, const struct fdt_knob *knobs,
		u32 nr_knobs, u32 *size)
{
	void *fdt = g_malloc0(FDT_MAX_BYTES);
	int ret = write_tree(fdt, channel, channel_size, layout_version, knobs, nr_knobs);

	if (ret) {
		fb_err("cannot build the guest's device tree of %u knobs: %s", nr_knobs,
		       fdt_strerror(ret));
		g_free(fdt);
		return NULL;
	}
	*size = fdt_totalsize(fdt);
	return fdt;
}
