// SPDX-License-Identifier: GPL-2.0-only
/*
 * Linux bzImage, by the 64-bit boot protocol (Documentation/arch/x86/boot.rst,
 * "64-bit BOOT PROTOCOL").
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "machine/image.h"
#include "machine/layout.h"

/* Offsets in the file; boot.rst, "The Real-Mode Kernel Header". */
#define HDR_START		0x1f1u	/* setup_sects: first byte of the header */
#define HDR_SYSSIZE		0x1f4u
#define HDR_BOOT_FLAG		0x1feu
#define HDR_JUMP_LEN		0x201u	/* offset of the short jump over the header */
#define HDR_MAGIC		0x202u
#define HDR_VERSION		0x206u
#define HDR_KERNEL_VERSION	0x20eu
#define HDR_LOADFLAGS		0x211u
#define HDR_CODE32_START	0x214u
#define HDR_INITRD_ADDR_MAX	0x22cu
#define HDR_RELOCATABLE		0x234u
#define HDR_XLOADFLAGS		0x236u
#define HDR_PREF_ADDRESS	0x258u
#define HDR_INIT_SIZE		0x260u
#define HDR_END			0x264u	/* of what protocol 2.12 needs */

#define MIN_PROTOCOL		0x020cu
#define LOADED_HIGH_FLAG	BIT(0)
#define XLF_KERNEL_64_FLAG	BIT(0)
#define ENTRY_64		0x200u	/* from the load address */
#define SECTOR			512u

static u32 setup_size(const struct image *img)
{
	u32 sects = img->data[HDR_START];

	return ((sects ? sects : 4) + 1) * SECTOR;
}

bool bzimage_match(const struct image *img)
{
	return image_has(img, 0, HDR_MAGIC + 4) &&
	       image_le16(img->data + HDR_BOOT_FLAG) == 0xaa55 &&
	       !memcmp(img->data + HDR_MAGIC, "HdrS", 4);
}

/* The version string in the real-mode part, made printable. */
static void read_version(const struct image *img, char *version, size_t size)
{
	u64 off = image_le16(img->data + HDR_KERNEL_VERSION);
	size_t n = 0;

	version[0] = '\0';
	if (!off)
		return;
	for (off += 0x200; n + 1 < size && off < setup_size(img) && image_has(img, off, 1) &&
			   img->data[off]; off++)
		version[n++] = img->data[off] >= ' ' && img->data[off] <= '~' ?
			       (char)img->data[off] : '?';
	version[n] = '\0';
}

int bzimage_check(const struct image *img, struct boot_result *res)
{
	const u8 *d = img->data;
	u64 payload;
	u32 version;

	if (img->file_size < HDR_END || !image_has(img, 0, HDR_END) ||
	    img->file_size <= setup_size(img)) {
		fb_err("%s: a bzImage cut short: it has %" PRIu64 " bytes, its setup code alone %u",
		       img->path, img->file_size, img->len > HDR_START ? setup_size(img) : HDR_END);
		return -ENOEXEC;
	}
	version = image_le16(d + HDR_VERSION);
	if (version < MIN_PROTOCOL) {
		fb_err("%s: a bzImage of boot protocol %u.%02u; 2.12 (Linux 3.8) or later is needed",
		       img->path, version >> 8, version & 0xff);
		return -ENOEXEC;
	}
	if (!(d[HDR_LOADFLAGS] & LOADED_HIGH_FLAG)) {
		fb_err("%s: a zImage (loaded low); a bzImage is needed", img->path);
		return -ENOEXEC;
	}
	if (!(image_le16(d + HDR_XLOADFLAGS) & XLF_KERNEL_64_FLAG)) {
		fb_err("%s: a 32-bit bzImage; one built for x86-64 is needed", img->path);
		return -ENOEXEC;
	}
	/* syssize counts paragraphs, so it may be up to 15 bytes more than there are. */
	payload = (u64)image_le32(d + HDR_SYSSIZE) * 16;
	if (payload < ENTRY_64 + 16 || payload > img->file_size - setup_size(img) + 15) {
		fb_err("%s: a bzImage cut short: its header says %" PRIu64 " bytes, the file has %" PRIu64,
		       img->path, setup_size(img) + payload, img->file_size);
		return -ENOEXEC;
	}
	read_version(img, res->version, sizeof(res->version));
	return 0;
}

int bzimage_load(const struct image *img, struct image_load *load, const u8 **header,
		 u32 *header_len, gpa_t *initrd_max)
{
	const u8 *d = img->data;
	u64 payload = img->file_size - setup_size(img);
	u64 need = image_le32(d + HDR_INIT_SIZE);
	gpa_t at = d[HDR_RELOCATABLE] ? image_le64(d + HDR_PREF_ADDRESS) :
					image_le32(d + HDR_CODE32_START);
	u32 header_end = HDR_MAGIC + d[HDR_JUMP_LEN];
	int ret;

	need = need > payload ? need : payload;
	if (at < LAYOUT_KERNEL || at % PAGE_SIZE) {
		fb_err("%s: a bzImage that wants to be loaded at %#" PRIx64 ", which is no page above 1 MiB",
		       img->path, at);
		return -ENOEXEC;
	}
	if (at > load->limit || need > load->limit - at) {
		fb_err("%s: the kernel needs %" PRIu64 " MiB of memory from %" PRIu64 " MiB on, but guest RAM for it ends at %" PRIu64 " MiB: give the guest more memory",
		       img->path, (need >> 20) + 1, at >> 20, load->limit >> 20);
		return -EFBIG;
	}
	ret = image_place(img, load, at, setup_size(img), payload, payload);
	if (ret)
		return ret;
	load->entry = at + ENTRY_64;
	load->end = at + need;
	*initrd_max = image_le32(d + HDR_INITRD_ADDR_MAX);
	/* The jump over the header tells where it ends. */
	if (header_end < HDR_END)
		header_end = HDR_END;
	*header = d + HDR_START;
	*header_len = header_end - HDR_START;
	return image_has(img, HDR_START, *header_len) ? 0 : -ENOEXEC;
}
