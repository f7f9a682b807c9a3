/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Snapshots of what lies in the soft engine: engine.h's save, restore, vm_save and
 * vm_restore. Called by engine.c's table between runs only.
 */
#ifndef SOFT_SNAPSHOT_H
#define SOFT_SNAPSHOT_H

#include "core/engine.h"

int soft_snapshot_save(struct vcpu *vcpu, GByteArray *out);
int soft_snapshot_restore(struct vcpu *vcpu, const u8 *data, size_t len);
int soft_snapshot_vm_save(struct vm *vm, GByteArray *out);
int soft_snapshot_vm_restore(struct vm *vm, const u8 *data, size_t len);

#endif
