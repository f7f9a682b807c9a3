/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * struct boot_params and the e820 map (Documentation/arch/x86/zero-page.rst),
 * boot page tables and GDT.
 */
#ifndef MACHINE_BOOTPARAMS_H
#define MACHINE_BOOTPARAMS_H

#include "core/vm.h"
#include "machine/loader.h"

/* setup header of a bzImage (the bytes from 0x1f1 on, `len` of them), or NULL for an ELF kernel. Writes the zero page, command line, setup_data. -errno, reported. */
int bootparams_write(struct vm *vm, const struct boot_request *req, const void *setup_header, u32 len,
		     gpa_t initrd, u64 initrd_size);
/* Identity page tables for the first 4 GiB and the boot GDT; returns the GDT's limit. -errno < 0, reported. */
int bootparams_write_tables(struct vm *vm);

#endif
