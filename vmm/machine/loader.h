/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Kernel images into guest RAM and the boot processor's first state: bzImage by
 * the 64-bit entry (Documentation/arch/x86/boot.rst), ELF vmlinux by its entry with the
 * same boot_params, Multiboot 1 ELF (32-bit entry). Images are untrusted: every
 * offset and size is checked against the file and RAM.
 */
#ifndef MACHINE_LOADER_H
#define MACHINE_LOADER_H

#include "core/vm.h"
#include "x86/state.h"

enum image_kind { IMAGE_BZIMAGE, IMAGE_ELF64, IMAGE_MULTIBOOT };

struct boot_request {
	const char *kernel;	/* path */
	const char *initrd;	/* path, or NULL */
	const char *cmdline;
	const void *fdt;	/* flattened device tree for setup_data, or NULL */
	u32 fdt_size;
	gpa_t rsdp;
	gpa_t channel;		/* reserved in the e820; 0 = none */
};

struct boot_result {
	enum image_kind kind;
	char version[128];	/* kernel's own version string (bzImage), "" if it has none */
};

/*
 * What kind of image a file is, without loading it. -errno, reported: what it looks
 * like instead and what would be right.
 */
int loader_identify(const char *path, struct boot_result *res);
/* Load and set up *state for vCPU 0. -errno, reported with the file's name. */
int loader_boot(struct vm *vm, const struct boot_request *req, struct x86_state *state, struct boot_result *res);

#endif
