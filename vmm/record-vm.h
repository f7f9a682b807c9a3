/* SPDX-License-Identifier: GPL-2.0-only */
/* The record `vm` (docs/records.md). */
#ifndef VMM_RECORD_VM_H
#define VMM_RECORD_VM_H

#include <json-glib/json-glib.h>

#include "vm.h"

/*
 * Scenario, kernel, features, trust, host and memory of a VM whose guest is up;
 * the caller adds what its session knows (boot times, the guest's own words).
 */
JsonObject *record_vm(struct vm *vm, const struct scenario *s, const struct vm_setup *setup, const char *cell);
/* Its member `boot`: what it took until the guest was up, on the VM's clock. */
JsonObject *record_boot(struct vm *vm, u64 ready_ns);
/* Bytes of this process that are resident and no guest RAM; 0 if the host does not say. */
u64 record_resident_beyond_ram(const struct vm *vm);

#endif
