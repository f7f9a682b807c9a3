// SPDX-License-Identifier: GPL-2.0-only
/* Dispatch by range: bounds, overlaps and a comparison with a linear search. */
#include <errno.h>
#include <glib.h>
#include <string.h>

#include "base/rng.h"
#include "machine/bus.h"

struct seen {
	u32 calls;
	u64 off;
	bool write;
	u32 len;
	u64 data;
};

static void record(void *dev, struct vcpu *vcpu, u64 off, bool write, void *data, u32 len)
{
	struct seen *seen = dev;

	seen->calls++;
	seen->off = off;
	seen->write = write;
	seen->len = len;
	if (write) {
		seen->data = 0;
		memcpy(&seen->data, data, len);
	} else {
		memset(data, 0x5a, len);
	}
}

static void test_dispatch(void)
{
	struct seen a = { 0 }, b = { 0 }, c = { 0 };
	struct bus *bus = bus_new();
	u64 v;

	g_assert_cmpint(bus_add(bus, BUS_PIO, 0x60, 4, "b", record, &b), ==, 0);
	g_assert_cmpint(bus_add(bus, BUS_PIO, 0x40, 4, "a", record, &a), ==, 0);
	g_assert_cmpint(bus_add(bus, BUS_MMIO, 0x40, 0x1000, "c", record, &c), ==, 0);
	v = 0x1234;
	g_assert_true(bus_access(bus, BUS_PIO, NULL, 0x42, true, &v, 2));
	g_assert_cmpuint(a.calls, ==, 1);
	g_assert_cmphex(a.off, ==, 2);
	g_assert_true(a.write);
	g_assert_cmphex(a.data, ==, 0x1234);
	v = ~0ull;
	g_assert_true(bus_access(bus, BUS_PIO, NULL, 0x63, false, &v, 1));
	g_assert_cmphex(v, ==, 0xffffffffffffff5a);
	g_assert_cmpuint(b.calls, ==, 1);
	/* Beyond, between and across the end: not claimed, data untouched. */
	v = ~0ull;
	g_assert_false(bus_access(bus, BUS_PIO, NULL, 0x3f, false, &v, 1));
	g_assert_false(bus_access(bus, BUS_PIO, NULL, 0x44, false, &v, 1));
	g_assert_false(bus_access(bus, BUS_PIO, NULL, 0x5f, false, &v, 1));
	g_assert_false(bus_access(bus, BUS_PIO, NULL, 0x64, false, &v, 4));
	g_assert_false(bus_access(bus, BUS_PIO, NULL, 0x43, false, &v, 2));
	g_assert_false(bus_access(bus, BUS_PIO, NULL, 0x3f, false, &v, 4));
	g_assert_cmphex(v, ==, ~0ull);
	g_assert_cmpuint(a.calls + b.calls, ==, 2);
	/* The spaces are apart. */
	g_assert_true(bus_access(bus, BUS_MMIO, NULL, 0x44, false, &v, 8));
	g_assert_cmpuint(c.calls, ==, 1);
	g_assert_false(bus_access(bus, BUS_MMIO, NULL, 0x103d, false, &v, 8));
	g_assert_true(bus_access(bus, BUS_MMIO, NULL, 0x1038, false, &v, 8));
	bus_free(bus);
}

static void test_overlap(void)
{
	struct seen s = { 0 };
	struct bus *bus = bus_new();

	g_assert_cmpint(bus_add(bus, BUS_PIO, 0x100, 0x10, "first", record, &s), ==, 0);
	g_assert_cmpint(bus_add(bus, BUS_PIO, 0x10f, 1, "last port", record, &s), ==, -EEXIST);
	g_assert_cmpint(bus_add(bus, BUS_PIO, 0xf8, 9, "first port", record, &s), ==, -EEXIST);
	g_assert_cmpint(bus_add(bus, BUS_PIO, 0xf0, 0x40, "around", record, &s), ==, -EEXIST);
	g_assert_cmpint(bus_add(bus, BUS_PIO, 0xf0, 0x10, "before", record, &s), ==, 0);
	g_assert_cmpint(bus_add(bus, BUS_PIO, 0x110, 0x10, "after", record, &s), ==, 0);
	g_assert_cmpint(bus_add(bus, BUS_PIO, 0xffff, 1, "top", record, &s), ==, 0);
	bus_free(bus);
	bus_free(NULL);
}

static void test_against_linear(void)
{
	struct { u64 addr, size; struct seen seen; } range[64] = { 0 };
	struct bus *bus = bus_new();
	struct rng rng;
	u32 i, n = 0, hits = 0;

	rng_seed(&rng, 7, 0);
	while (n < ARRAY_SIZE(range)) {
		u64 addr = rng_next(&rng) % 0xff00, size = rng_next(&rng) % 64 + 1;
		bool overlap = false;

		for (i = 0; i < n; i++)
			overlap |= addr < range[i].addr + range[i].size && range[i].addr < addr + size;
		if (overlap)
			continue;
		range[n].addr = addr;
		range[n].size = size;
		g_assert_cmpint(bus_add(bus, BUS_PIO, addr, size, "r", record, &range[n].seen), ==, 0);
		n++;
	}
	for (i = 0; i < 200000; i++) {
		u64 addr = rng_next(&rng) & 0xffff, v = 0;
		u32 j, len = 1u << rng_next(&rng) % 3, found = n;
		bool claimed;

		for (j = 0; j < n; j++)
			if (addr >= range[j].addr && addr + len <= range[j].addr + range[j].size)
				found = j;
		if (found < n)
			range[found].seen.calls = 0;
		claimed = bus_access(bus, BUS_PIO, NULL, addr, true, &v, len);
		g_assert_true(claimed == (found < n));
		if (found < n) {
			g_assert_cmpuint(range[found].seen.calls, ==, 1);
			g_assert_cmpuint(range[found].seen.off, ==, addr - range[found].addr);
			hits++;
		}
	}
	g_assert_cmpuint(hits, >, 1000);
	bus_free(bus);
}

static void test_wide_mmio(void)
{
	struct seen s = { 0 };
	struct bus *bus = bus_new();
	u64 v = 0;

	g_assert_cmpint(bus_add(bus, BUS_MMIO, UINT64_MAX - 0xfff, 0xfff, "top", record, &s), ==, 0);
	g_assert_true(bus_access(bus, BUS_MMIO, NULL, UINT64_MAX - 8, true, &v, 8));
	/* No wrap past the end of the address space. */
	g_assert_false(bus_access(bus, BUS_MMIO, NULL, UINT64_MAX - 3, true, &v, 8));
	g_assert_false(bus_access(bus, BUS_MMIO, NULL, 0, true, &v, 8));
	bus_free(bus);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/bus/dispatch", test_dispatch);
	g_test_add_func("/bus/overlap", test_overlap);
	g_test_add_func("/bus/against-linear", test_against_linear);
	g_test_add_func("/bus/wide-mmio", test_wide_mmio);
	return g_test_run();
}
