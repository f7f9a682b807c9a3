/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Inside of the loader: an open image, and what each format's file does with
 * it. Nothing here is for others than loader.c, image-*.c and their tests. One
 * thread. Only the head of a file is held in memory; the rest is read straight
 * into guest RAM, so a vmlinux with gigabytes of debug information costs
 * nothing. Sizes and offsets in an image are untrusted.
 */
#ifndef MACHINE_IMAGE_H
#define MACHINE_IMAGE_H

#include "core/vm.h"
#include "machine/loader.h"

#define IMAGE_HEAD_MAX	0x40000u	/* setup code of a bzImage: at most 0x20000 */

struct image {
	const char *path;	/* for messages */
	int fd;
	u64 file_size;
	u8 *data;		/* the file's head, g_free() */
	u64 len;		/* bytes at data: the smaller of file_size and IMAGE_HEAD_MAX */
};

/* Where an image may go and where it went. */
struct image_load {
	struct vm *vm;
	gpa_t limit;		/* first address above that is not for the kernel */
	gpa_t end;		/* out: first free address behind the kernel */
	gpa_t entry;		/* out: physical */
};

static inline u16 image_le16(const u8 *p)
{
	return (u16)(p[0] | p[1] << 8);
}

static inline u32 image_le32(const u8 *p)
{
	return image_le16(p) | (u32)image_le16(p + 2) << 16;
}

static inline u64 image_le64(const u8 *p)
{
	return image_le32(p) | (u64)image_le32(p + 4) << 32;
}

/* [off, off + len) lies in what is at img->data. */
static inline bool image_has(const struct image *img, u64 off, u64 len)
{
	return off <= img->len && len <= img->len - off;
}

/* [off, off + len) lies in the file. */
static inline bool image_in_file(const struct image *img, u64 off, u64 len)
{
	return off <= img->file_size && len <= img->file_size - off;
}

/*
 * Read [off, off + file_size) of the file to gpa and clear what follows up to
 * mem_size; moves load->end on. -EFBIG outside [LAYOUT_KERNEL, limit), else -errno;
 * reported.
 */
int image_place(const struct image *img, struct image_load *load, gpa_t gpa, u64 off, u64 file_size,
		u64 mem_size);

/* image-bzimage.c: -ENOEXEC, reported, if it is one that cannot be booted; fills res->version. */
bool bzimage_match(const struct image *img);
int bzimage_check(const struct image *img, struct boot_result *res);
/* *header and *header_len are for bootparams_write(), *initrd_max is the initrd's last address. */
int bzimage_load(const struct image *img, struct image_load *load, const u8 **header,
		 u32 *header_len, gpa_t *initrd_max);

/* image-elf.c: an x86 ELF executable of either class. */
bool elf_match(const struct image *img);
/* 0, or -ENOEXEC, reported; `is64` tells the class. */
int elf_check(const struct image *img, bool *is64);
/* Load the segments by physical address and translate the entry. -errno, reported. */
int elf_load(const struct image *img, struct image_load *load);

/* image-multiboot.c */
bool multiboot_match(const struct image *img);
int multiboot_check(const struct image *img);
int multiboot_load(const struct image *img, struct image_load *load);
/* Write the information structure, command line ("NAME cmdline") and modules. -errno, reported. */
int multiboot_write_info(struct vm *vm, const struct boot_request *req, gpa_t initrd,
			 u64 initrd_size);

#define MULTIBOOT_BOOT_MAGIC	0x2badb002u	/* EAX at the entry */

#endif
