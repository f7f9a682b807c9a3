// SPDX-License-Identifier: GPL-2.0-only
/* Page tables and pages for tests. */
#include "bare/bare64.h"

extern u64 boot_pml4[];
static u64 heap = BARE_HEAP;

void *page_alloc_aligned(u64 align, u64 size)
{
	u64 at = (heap + align - 1) & ~(align - 1);

	if (at + size > BARE_HEAP_END)
		bail("out of memory for tests");
	heap = (at + size + 4095) & ~4095ul;
	return memset((void *)at, 0, size);
}

void *page_alloc(void)
{
	return page_alloc_aligned(4096, 4096);
}

u64 *page_entry(u64 va, int level)
{
	u64 *table = (u64 *)(read_cr3() & PTE_ADDR);

	for (int l = 4; l > level; l--) {
		u64 *e = &table[va >> (12 + 9 * (l - 1)) & 511];

		if (!(*e & PTE_P))
			*e = (u64)page_alloc() | PTE_P | PTE_RW | PTE_US;
		if (*e & PTE_PS)
			bail("page_entry: 0x%lx is a large page at level %d", va, l);
		table = (u64 *)(*e & PTE_ADDR);
	}
	return &table[va >> (12 + 9 * (level - 1)) & 511];
}

void pages_init(void)
{
	*page_entry(BARE_USER, 2) |= PTE_US;
	/* Devices uncached: I/O APIC and local APIC. */
	*page_entry(0xfec00000, 2) |= PTE_PCD | PTE_PWT;
	*page_entry(0xfee00000, 2) |= PTE_PCD | PTE_PWT;
	write_cr3((u64)boot_pml4);
}
