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

#endif
