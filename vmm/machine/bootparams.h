/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * struct boot_params and the e820 map (Documentation/arch/x86/zero-page.rst),
 * boot page tables and GDT. Called by the loader while the VM is built, on one
 * thread.
 */
#ifndef MACHINE_BOOTPARAMS_H
#define MACHINE_BOOTPARAMS_H

#include "core/vm.h"
#include "machine/loader.h"

#define E820_RAM		1u
#define E820_RESERVED		2u
#define BOOTPARAMS_MAX_E820	128u	/* as many as the zero page holds */

struct e820_range {
	gpa_t addr;
	u64 size;
	u32 type;		/* E820_* */
};

/*
 * The firmware's map of RAM: slots that touch are one range; the EBDA to 1 MiB
 * and, if `channel` is not 0, FAULTBED_CHANNEL_SIZE bytes there are reserved.
 * Sorted, without overlaps. Returns how many of out[0..BOOTPARAMS_MAX_E820) are used.
 */
u32 bootparams_e820(const struct memory *mem, gpa_t channel, struct e820_range *out);
/* First address that is no RAM, counted from 0; at most LAYOUT_LOW_END. */
gpa_t bootparams_low_end(const struct memory *mem);

/*
 * Write the zero page, command line and, with req->fdt, setup_data. `setup_header`
 * is that of a bzImage (the bytes from 0x1f1 on, `len` of them), or NULL for an
 * ELF kernel. -E2BIG if the command line or the device tree is too long, else
 * -errno; reported.
 */
int bootparams_write(struct vm *vm, const struct boot_request *req, const void *setup_header,
		     u32 len, gpa_t initrd, u64 initrd_size);
/*
 * Identity page tables for the first 4 GiB at LAYOUT_PAGE_TABLES and, at
 * LAYOUT_GDT, the boot GDT: 0x08 32-bit code, 0x10 64-bit code, 0x18 data, all
 * flat. Returns the GDT's limit, or -errno, reported.
 */
int bootparams_write_tables(struct vm *vm);

#endif
