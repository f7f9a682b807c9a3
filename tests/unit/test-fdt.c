// SPDX-License-Identifier: GPL-2.0-only
#include <glib.h>
#include <libfdt.h>
#include <string.h>

#include "machine/fdt.h"

static void test_tree(void)
{
	const struct fdt_knob knob[] = { { "fault_path", "mmap_lock" }, { "lazy-tlb", "ipi" } };
	const fdt64_t *reg;
	int node, knobs, len;
	u32 size = 0;
	void *fdt = fdt_build(0xbfff0000, 0x10000, 1, knob, ARRAY_SIZE(knob), &size);

	g_assert_nonnull(fdt);
	g_assert_cmpint(fdt_check_full(fdt, size), ==, 0);
	g_assert_cmpuint(fdt_totalsize(fdt), ==, size);
	g_assert_cmpint(fdt_address_cells(fdt, 0), ==, 2);
	g_assert_cmpint(fdt_size_cells(fdt, 0), ==, 2);

	node = fdt_node_offset_by_compatible(fdt, -1, "faultbed,channel-1");
	g_assert_cmpint(node, >, 0);
	g_assert_cmpint(node, ==, fdt_path_offset(fdt, "/faultbed"));
	reg = fdt_getprop(fdt, node, "reg", &len);
	g_assert_cmpint(len, ==, 16);
	g_assert_cmphex(fdt64_ld(&reg[0]), ==, 0xbfff0000);
	g_assert_cmphex(fdt64_ld(&reg[1]), ==, 0x10000);
	g_assert_cmphex(fdt32_to_cpu(*(const fdt32_t *)fdt_getprop(fdt, node, "layout-version", &len)), ==, 1);

	knobs = fdt_subnode_offset(fdt, node, "knobs");
	g_assert_cmpint(knobs, >, 0);
	g_assert_cmpstr(fdt_getprop(fdt, knobs, "fault_path", NULL), ==, "mmap_lock");
	g_assert_cmpstr(fdt_getprop(fdt, knobs, "lazy-tlb", NULL), ==, "ipi");
	g_free(fdt);
}

/* The address is 64 bits wide whatever its value, and no knobs are an empty node. */
static void test_high(void)
{
	const fdt64_t *reg;
	u32 size = 0;
	void *fdt = fdt_build(0x1ffff0000ull, 0x10000, 1, NULL, 0, &size);
	int len;

	reg = fdt_getprop(fdt, fdt_path_offset(fdt, "/faultbed"), "reg", &len);
	g_assert_cmphex(fdt64_ld(&reg[0]), ==, 0x1ffff0000ull);
	g_assert_cmpint(fdt_path_offset(fdt, "/faultbed/knobs"), >, 0);
	g_free(fdt);
}

/* The largest table of knobs that the channel takes fits; one without end does not, and says so. */
static void test_size(void)
{
	struct fdt_knob knob[32], *many = g_new0(struct fdt_knob, 4096);
	char name[4096][32];
	u32 size = 0;
	void *fdt;

	for (u32 i = 0; i < ARRAY_SIZE(name); i++) {
		g_snprintf(name[i], sizeof(name[i]), "knob_with_a_long_name_%08u", i);
		many[i] = (struct fdt_knob){ name[i], "a_value_of_thirty-one_characters" };
	}
	memcpy(knob, many, sizeof(knob));
	fdt = fdt_build(0x1000000, 0x10000, 1, knob, ARRAY_SIZE(knob), &size);
	g_assert_nonnull(fdt);
	g_assert_cmpint(fdt_check_full(fdt, size), ==, 0);
	g_free(fdt);
	g_assert_null(fdt_build(0x1000000, 0x10000, 1, many, 4096, &size));
	g_free(many);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/fdt/tree", test_tree);
	g_test_add_func("/fdt/high", test_high);
	g_test_add_func("/fdt/size", test_size);
	return g_test_run();
}
