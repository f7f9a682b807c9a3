// SPDX-License-Identifier: GPL-2.0-only
#include "machine/bus.h"

#include <errno.h>

#include "base/log.h"

#define PIO_END	0x10000ull

struct bus_range {
	u64 addr, size;
	const char *name;
	bus_fn fn;
	void *dev;
};

/* Each space's ranges, sorted by address and disjoint. */
struct bus {
	GArray *space[2];
};

struct bus *bus_new(void)
{
	struct bus *bus = g_new(struct bus, 1);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(bus->space); i++)
		bus->space[i] = g_array_new(FALSE, FALSE, sizeof(struct bus_range));
	return bus;
}

void bus_free(struct bus *bus)
{
	u32 i;

	if (!bus)
		return;
	for (i = 0; i < ARRAY_SIZE(bus->space); i++)
		g_array_free(bus->space[i], TRUE);
	g_free(bus);
}

/* The index of the first range that ends after addr. */
static u32 bus_search(const GArray *ranges, u64 addr)
{
	u32 low = 0, high = ranges->len;

	while (low < high) {
		u32 mid = (low + high) / 2;
		const struct bus_range *r = &g_array_index(ranges, struct bus_range, mid);

		if (addr - r->addr < r->size || addr < r->addr)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

int bus_add(struct bus *bus, enum bus_space space, u64 addr, u64 size, const char *name, bus_fn fn, void *dev)
{
	struct bus_range range = { .addr = addr, .size = size, .name = name, .fn = fn, .dev = dev };
	GArray *ranges = bus->space[space];
	u32 i;

	fb_assert(size && addr + size > addr && (space == BUS_MMIO || addr + size <= PIO_END));
	i = bus_search(ranges, addr);
	if (i < ranges->len) {
		const struct bus_range *next = &g_array_index(ranges, struct bus_range, i);

		if (next->addr < addr + size) {
			fb_err("%s at 0x%llx overlaps %s at 0x%llx", name, (unsigned long long)addr, next->name,
			       (unsigned long long)next->addr);
			return -EEXIST;
		}
	}
	g_array_insert_val(ranges, i, range);
	return 0;
}

bool bus_access(struct bus *bus, enum bus_space space, struct vcpu *vcpu, u64 addr, bool write, void *data, u32 len)
{
	const GArray *ranges = bus->space[space];
	const struct bus_range *r;
	u32 i = bus_search(ranges, addr);

	if (i == ranges->len)
		return false;
	r = &g_array_index(ranges, struct bus_range, i);
	if (addr < r->addr || addr - r->addr > r->size - 1 || len > r->size - (addr - r->addr))
		return false;
	r->fn(r->dev, vcpu, addr - r->addr, write, data, len);
	return true;
}
