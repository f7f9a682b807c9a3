/* SPDX-License-Identifier: GPL-2.0-only */
/* Kernel images made in memory, and a small VM to load them into, for the loader's tests. */
#ifndef TESTS_IMAGES_H
#define TESTS_IMAGES_H

#include "core/vm.h"
#include "machine/channel-abi.h"
#include "machine/layout.h"
#include "machine/loader.h"

#define RAM		(64 * MIB)
#define CHANNEL		(RAM - FAULTBED_CHANNEL_SIZE)
#define LOAD		0x1000000ull	/* the bzImage's and the vmlinux's address */
#define SETUP_BYTES	1024u		/* of the bzImage: one sector and the boot sector */
#define PAYLOAD_BYTES	8192u
#define IMAGE_BYTES	0x3000u	/* room that every image fits in */

/* A memfd that the loader opens by its name in /proc. */
struct file {
	int fd;
	char path[64];
};

void file_make(struct file *f, const void *data, size_t len);
struct vm *make_vm(void);
void free_vm(struct vm *vm);
/* A little-endian number of n bytes. */
void put(u8 *p, u64 v, u32 n);

/* Each fills img and returns the image's length. */
u32 make_bzimage(u8 *img);
/* Two segments with a gap; the second has bss. The entry is physical, as in a vmlinux. */
u32 make_elf(u8 *img);
/* An ELF32 file with a Multiboot header at the start of its only segment. */
u32 make_multiboot(u8 *img, u32 flags);
/* The "a.out kludge": address fields instead of a format. */
u32 make_raw_multiboot(u8 *img);

/* loader_boot() with a device tree, RSDP and channel. */
int boot(struct vm *vm, const struct file *f, const struct file *initrd, const char *cmdline,
	 struct x86_state *state, struct boot_result *res);

#endif
