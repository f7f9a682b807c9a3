/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ACPI tables derived from the topology (ACPI 6.5 chapter 5): RSDP, XSDT, FADT
 * (full ACPI with PM1a and PM timer, not hardware-reduced), FACS, DSDT, MADT, SRAT, SLIT.
 * CPU n is processor UID n and the MADT lists CPUs in CPU order, so Linux's
 * numbers are the topology's. Ids above 254 use x2APIC entries (MADT type 9,
 * SRAT type 2).
 */
#ifndef MACHINE_ACPI_H
#define MACHINE_ACPI_H

#include "core/vm.h"

/*
 * Write all tables into guest RAM from LAYOUT_ACPI; *rsdp is the RSDP's address.
 * Ranges of memory come from vm->mem's slots (by node). -ENOSPC (reported) if
 * they do not fit below LAYOUT_ACPI_END: cannot happen within TOPOLOGY_MAX_CPUS,
 * which a test shows.
 */
int acpi_build(struct vm *vm, gpa_t *rsdp);

#endif
