// SPDX-License-Identifier: GPL-2.0-only
#include <asm/bootparam.h>
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "machine/bootparams.h"
#include "machine/channel-abi.h"
#include "machine/layout.h"
#include "x86/cr.h"

_Static_assert(sizeof(struct boot_params) == PAGE_SIZE, "the zero page is a page");
_Static_assert(E820_MAX_ENTRIES_ZEROPAGE == BOOTPARAMS_MAX_E820, "as many as the zero page holds");

#define HDRS_MAGIC		0x53726448u	/* "HdrS" */
#define BOOT_FLAG		0xaa55u
#define LOADER_UNDEFINED	0xffu		/* type_of_loader: none with a registered number */
#define VID_MODE_NORMAL		0xffffu
#define ELF_PROTOCOL		0x020fu		/* what a header made here promises */
#define ELF_CMDLINE_SIZE	2047u		/* COMMAND_LINE_SIZE of x86 less the NUL */
#define ELF_ALIGNMENT		0x200000u

/* Append a range; one that continues the last is joined to it. */
static u32 append(struct e820_range *out, u32 n, gpa_t start, gpa_t end, u32 type)
{
	if (start >= end)
		return n;
	if (n && out[n - 1].type == type && out[n - 1].addr + out[n - 1].size == start) {
		out[n - 1].size += end - start;
		return n;
	}
	fb_assert(n < BOOTPARAMS_MAX_E820);
	out[n] = (struct e820_range){ .addr = start, .size = end - start, .type = type };
	return n + 1;
}

/* The slot with the lowest address at or above `from`, or NULL. */
static const struct memslot *next_slot(const struct memory *mem, gpa_t from)
{
	const struct memslot *best = NULL;

	for (u32 i = 0; i < mem->nr_slots; i++) {
		const struct memslot *slot = &mem->slot[i];

		if (slot->gpa >= from && (!best || slot->gpa < best->gpa))
			best = slot;
	}
	return best;
}

static gpa_t clamp(gpa_t x, gpa_t lo, gpa_t hi)
{
	return x < lo ? lo : x > hi ? hi : x;
}

u32 bootparams_e820(const struct memory *mem, gpa_t channel, struct e820_range *out)
{
	/* In the order of their addresses: the channel is above 1 MiB. */
	const struct { gpa_t start, end; } hole[2] = {
		{ LAYOUT_EBDA, LAYOUT_KERNEL },
		{ channel, channel ? channel + FAULTBED_CHANNEL_SIZE : 0 },
	};
	const struct memslot *slot;
	gpa_t from = 0;
	u32 n = 0;

	while ((slot = next_slot(mem, from))) {
		gpa_t at = slot->gpa, end = slot->gpa + slot->size;

		for (u32 i = 0; i < ARRAY_SIZE(hole); i++) {
			gpa_t start = clamp(hole[i].start, at, end);
			gpa_t stop = clamp(hole[i].end, at, end);

			if (start == stop)
				continue;
			n = append(out, n, at, start, E820_RAM);
			n = append(out, n, start, stop, E820_RESERVED);
			at = stop;
		}
		n = append(out, n, at, end, E820_RAM);
		from = end;
	}
	return n;
}

gpa_t bootparams_low_end(const struct memory *mem)
{
	gpa_t end = 0;
	const struct memslot *slot;

	while (end < LAYOUT_LOW_END && (slot = memory_slot(mem, end)))
		end = slot->gpa + slot->size;
	return end < LAYOUT_LOW_END ? end : LAYOUT_LOW_END;
}

/* The header that a vmlinux does not have. */
static void default_header(struct setup_header *hdr)
{
	hdr->boot_flag = BOOT_FLAG;
	hdr->header = HDRS_MAGIC;
	hdr->version = ELF_PROTOCOL;
	hdr->loadflags = LOADED_HIGH;
	hdr->kernel_alignment = ELF_ALIGNMENT;
	hdr->xloadflags = XLF_KERNEL_64 | XLF_CAN_BE_LOADED_ABOVE_4G;
	hdr->cmdline_size = ELF_CMDLINE_SIZE;
	hdr->initrd_addr_max = 0x7fffffff;
}

static int write_cmdline(struct vm *vm, const char *cmdline, u32 kernel_max)
{
	size_t len = strlen(cmdline);
	u32 max = LAYOUT_CMDLINE_MAX - 1;

	/* 0 is what kernels before protocol 2.06 say; they take 255 (boot.rst). */
	if (!kernel_max)
		kernel_max = 255;
	max = kernel_max < max ? kernel_max : max;
	if (len > max) {
		fb_err("the kernel's command line has %zu bytes, but this kernel takes at most %u",
		       len, max);
		return -E2BIG;
	}
	return memory_write(&vm->mem, LAYOUT_CMDLINE, cmdline, len + 1);
}

static int write_setup_data(struct vm *vm, const void *fdt, u32 size)
{
	struct setup_data head = { .type = SETUP_DTB, .len = size };
	int ret;

	if (size > LAYOUT_SETUP_DATA_MAX - sizeof(head)) {
		fb_err("the device tree has %u bytes, more than the %zu there is room for", size,
		       LAYOUT_SETUP_DATA_MAX - sizeof(head));
		return -E2BIG;
	}
	ret = memory_write(&vm->mem, LAYOUT_SETUP_DATA, &head, sizeof(head));
	return ret ?: memory_write(&vm->mem, LAYOUT_SETUP_DATA + sizeof(head), fdt, size);
}

static void fill_e820(struct boot_params *bp, const struct memory *mem, gpa_t channel)
{
	struct e820_range range[BOOTPARAMS_MAX_E820];
	u32 n = bootparams_e820(mem, channel, range);

	for (u32 i = 0; i < n; i++) {
		bp->e820_table[i].addr = range[i].addr;
		bp->e820_table[i].size = range[i].size;
		bp->e820_table[i].type = range[i].type;
	}
	bp->e820_entries = (u8)n;
}

int bootparams_write(struct vm *vm, const struct boot_request *req, const void *setup_header,
		     u32 len, gpa_t initrd, u64 initrd_size)
{
	struct boot_params bp = { 0 };
	int ret;

	/* Later protocols have longer headers; what this struct does not name stays 0. */
	if (setup_header)
		memcpy(&bp.hdr, setup_header, len < sizeof(bp.hdr) ? len : sizeof(bp.hdr));
	else
		default_header(&bp.hdr);
	bp.hdr.type_of_loader = LOADER_UNDEFINED;
	bp.hdr.loadflags &= (u8)~(CAN_USE_HEAP | KEEP_SEGMENTS | KASLR_FLAG);
	bp.hdr.vid_mode = VID_MODE_NORMAL;
	bp.hdr.cmd_line_ptr = (u32)LAYOUT_CMDLINE;
	bp.hdr.setup_data = req->fdt ? LAYOUT_SETUP_DATA : 0;
	bp.hdr.ramdisk_image = (u32)initrd;
	bp.ext_ramdisk_image = (u32)(initrd >> 32);
	bp.hdr.ramdisk_size = (u32)initrd_size;
	bp.ext_ramdisk_size = (u32)(initrd_size >> 32);
	bp.acpi_rsdp_addr = req->rsdp;
	fill_e820(&bp, &vm->mem, req->channel);

	ret = write_cmdline(vm, req->cmdline ? req->cmdline : "", bp.hdr.cmdline_size);
	if (ret)
		return ret;
	ret = req->fdt ? write_setup_data(vm, req->fdt, req->fdt_size) : 0;
	if (ret)
		return ret;
	ret = memory_write(&vm->mem, LAYOUT_BOOT_PARAMS, &bp, sizeof(bp));
	if (ret)
		fb_err("no guest RAM for the boot parameters at %#llx", LAYOUT_BOOT_PARAMS);
	return ret;
}

int bootparams_write_tables(struct vm *vm)
{
	static const u64 gdt[] = {
		0,
		0x00cf9b000000ffffull,	/* 0x08: 32-bit code */
		0x00af9b000000ffffull,	/* 0x10: 64-bit code */
		0x00cf93000000ffffull,	/* 0x18: data */
	};
	const u64 flags = X86_PTE_P | X86_PTE_RW;
	u64 table[6 * 512] = { 0 };	/* PML4, PDPT, four page directories */
	int ret;

	table[0] = (LAYOUT_PAGE_TABLES + PAGE_SIZE) | flags;
	for (u64 i = 0; i < 4; i++)
		table[512 + i] = (LAYOUT_PAGE_TABLES + (2 + i) * PAGE_SIZE) | flags;
	for (u64 i = 0; i < 4 * 512; i++)
		table[2 * 512 + i] = (i << 21) | flags | X86_PTE_PS;

	ret = memory_write(&vm->mem, LAYOUT_PAGE_TABLES, table, sizeof(table));
	ret = ret ?: memory_write(&vm->mem, LAYOUT_GDT, gdt, sizeof(gdt));
	if (ret) {
		fb_err("no guest RAM for the boot page tables at %#llx", LAYOUT_PAGE_TABLES);
		return ret;
	}
	return (int)sizeof(gdt) - 1;
}
