// SPDX-License-Identifier: GPL-2.0-only
/* Multiboot 1 images (Multiboot Specification 0.6.96): the 32-bit entry of bare-metal tests. */
#include <errno.h>
#include <glib.h>
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "machine/bootparams.h"
#include "machine/image.h"
#include "machine/layout.h"

#define SEARCH_BYTES	8192u		/* section 3.1 */
#define HEADER_MAGIC	0x1badb002u
#define HEADER_VIDEO	BIT(2)
#define HEADER_KNOWN	0x0003u		/* of bits 0-15, which must be understood */
#define HEADER_ADDRESS	BIT(16)

/* Information structure (section 3.3): offsets and flags of what is given. */
#define INFO_LEN	116u
#define INFO_MEM	BIT(0)
#define INFO_CMDLINE	BIT(2)
#define INFO_MODS	BIT(3)
#define INFO_MMAP	BIT(6)
#define INFO_NAME	BIT(9)
#define MMAP_ENTRY	24u
#define MODULE_ENTRY	16u

/* Places behind LAYOUT_MULTIBOOT. */
#define AT_MODULES	0x100u
#define AT_NAME		0x140u
#define AT_MODULE_NAME	0x180u
#define AT_MMAP		0x400u

/* Offset of the header, or -1. */
static s64 find_header(const struct image *img)
{
	u64 end = img->len < SEARCH_BYTES ? img->len : SEARCH_BYTES;

	for (u64 off = 0; off + 12 <= end; off += 4) {
		const u8 *p = img->data + off;

		if (image_le32(p) == HEADER_MAGIC &&
		    (u32)(image_le32(p) + image_le32(p + 4) + image_le32(p + 8)) == 0)
			return (s64)off;
	}
	return -1;
}

bool multiboot_match(const struct image *img)
{
	return find_header(img) >= 0;
}

int multiboot_check(const struct image *img)
{
	s64 off = find_header(img);
	bool is64;
	u32 flags;

	if (off < 0)
		return -ENOEXEC;
	flags = image_le32(img->data + off + 4);
	if (flags & HEADER_VIDEO) {
		fb_err("%s: a Multiboot image that asks for a video mode, but the guest has no display",
		       img->path);
		return -ENOEXEC;
	}
	if (flags & 0xffff & ~HEADER_KNOWN) {
		fb_err("%s: a Multiboot image that asks for unknown features (flags %#x)", img->path,
		       flags);
		return -ENOEXEC;
	}
	if (flags & HEADER_ADDRESS)
		return 0;
	if (!elf_match(img)) {
		fb_err("%s: a Multiboot image that is no ELF file and gives no load addresses",
		       img->path);
		return -ENOEXEC;
	}
	return elf_check(img, &is64);
}

/* The address fields of the header (section 3.1.3) stand for a file of any format. */
static int load_by_addresses(const struct image *img, struct image_load *load, u64 off)
{
	const u8 *p = img->data + off;
	u32 header_addr, load_addr, load_end, bss_end;
	u64 start, file_size, mem_size;

	if (!image_has(img, off, 32))
		goto malformed;
	header_addr = image_le32(p + 12);
	load_addr = image_le32(p + 16);
	load_end = image_le32(p + 20);
	bss_end = image_le32(p + 24);
	if (header_addr < load_addr || header_addr - load_addr > off)
		goto malformed;
	start = off - (header_addr - load_addr);
	if (load_end && load_end < load_addr)
		goto malformed;
	file_size = load_end ? load_end - load_addr : img->file_size - start;
	if (!image_in_file(img, start, file_size))
		goto malformed;
	mem_size = file_size;
	if (bss_end) {
		if (bss_end < load_addr || bss_end - load_addr < file_size)
			goto malformed;
		mem_size = bss_end - load_addr;
	}
	load->entry = image_le32(p + 28);
	if (load->entry < load_addr || load->entry - load_addr >= mem_size)
		goto malformed;
	return image_place(img, load, load_addr, start, file_size, mem_size);

malformed:
	fb_err("%s: a Multiboot image cut short, or whose load addresses contradict each other",
	       img->path);
	return -ENOEXEC;
}

int multiboot_load(const struct image *img, struct image_load *load)
{
	s64 off = find_header(img);
	int ret;

	if (off < 0)
		return -ENOEXEC;
	if (image_le32(img->data + off + 4) & HEADER_ADDRESS)
		return load_by_addresses(img, load, (u64)off);
	ret = elf_load(img, load);
	if (!ret && load->entry > UINT32_MAX) {
		fb_err("%s: a Multiboot image with an entry above 4 GiB", img->path);
		return -ENOEXEC;
	}
	return ret;
}

static void put32(u8 *p, u64 v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (u8)(v >> (8 * i));
}

static int put_text(struct vm *vm, gpa_t at, const char *text, u32 max)
{
	size_t n = strnlen(text, max - 1);
	int ret = memory_write(&vm->mem, at, text, n);

	return ret ?: memory_write(&vm->mem, at + n, "", 1);
}

/* -E2BIG if it is too long: a test that silently loses its arguments passes for nothing. */
static int put_cmdline(struct vm *vm, const struct boot_request *req)
{
	char *base = g_path_get_basename(req->kernel);
	char *line = g_strdup_printf("%s%s%s", base, req->cmdline && *req->cmdline ? " " : "",
				     req->cmdline ? req->cmdline : "");
	int ret = -E2BIG;

	if (strlen(line) < LAYOUT_CMDLINE_MAX)
		ret = memory_write(&vm->mem, LAYOUT_CMDLINE, line, strlen(line) + 1);
	else
		fb_err("the command line has %zu bytes, more than the %u there is room for",
		       strlen(line), LAYOUT_CMDLINE_MAX - 1);
	g_free(line);
	g_free(base);
	return ret;
}

static int put_mmap(struct vm *vm, gpa_t channel, u32 *len)
{
	struct e820_range range[BOOTPARAMS_MAX_E820];
	u32 n = bootparams_e820(&vm->mem, channel, range);
	u8 entry[MMAP_ENTRY];
	int ret = 0;

	for (u32 i = 0; i < n && !ret; i++) {
		put32(entry, MMAP_ENTRY - 4);	/* size: of the rest of the entry */
		put32(entry + 4, range[i].addr);
		put32(entry + 8, range[i].addr >> 32);
		put32(entry + 12, range[i].size);
		put32(entry + 16, range[i].size >> 32);
		put32(entry + 20, range[i].type);
		ret = memory_write(&vm->mem, LAYOUT_MULTIBOOT + AT_MMAP + i * MMAP_ENTRY, entry,
				   sizeof(entry));
	}
	*len = n * MMAP_ENTRY;
	return ret;
}

static int put_module(struct vm *vm, const struct boot_request *req, gpa_t initrd, u64 size)
{
	char *base = g_path_get_basename(req->initrd);
	u8 module[MODULE_ENTRY] = { 0 };
	int ret;

	put32(module, initrd);
	put32(module + 4, initrd + size);
	put32(module + 8, LAYOUT_MULTIBOOT + AT_MODULE_NAME);
	ret = memory_write(&vm->mem, LAYOUT_MULTIBOOT + AT_MODULES, module, sizeof(module));
	ret = ret ?: put_text(vm, LAYOUT_MULTIBOOT + AT_MODULE_NAME, base,
			      AT_MMAP - AT_MODULE_NAME);
	g_free(base);
	return ret;
}

int multiboot_write_info(struct vm *vm, const struct boot_request *req, gpa_t initrd,
			 u64 initrd_size)
{
	gpa_t low_end = req->channel ? req->channel : bootparams_low_end(&vm->mem);
	u32 flags = INFO_MEM | INFO_CMDLINE | INFO_MMAP | INFO_NAME;
	u8 info[INFO_LEN] = { 0 };
	u32 mmap_len = 0;
	int ret;

	ret = put_cmdline(vm, req);
	ret = ret ?: put_mmap(vm, req->channel, &mmap_len);
	ret = ret ?: put_text(vm, LAYOUT_MULTIBOOT + AT_NAME, "Faultbed", AT_MODULE_NAME - AT_NAME);
	if (!ret && req->initrd) {
		ret = put_module(vm, req, initrd, initrd_size);
		flags |= INFO_MODS;
		put32(info + 20, 1);
		put32(info + 24, LAYOUT_MULTIBOOT + AT_MODULES);
	}
	if (ret)
		return ret;
	put32(info, flags);
	put32(info + 4, LAYOUT_EBDA / KIB);
	put32(info + 8, (low_end - LAYOUT_KERNEL) / KIB);
	put32(info + 16, LAYOUT_CMDLINE);
	put32(info + 44, mmap_len);
	put32(info + 48, LAYOUT_MULTIBOOT + AT_MMAP);
	put32(info + 64, LAYOUT_MULTIBOOT + AT_NAME);
	return memory_write(&vm->mem, LAYOUT_MULTIBOOT, info, sizeof(info));
}
