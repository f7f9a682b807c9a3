/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * All state of a VM that lies above the engine and below the session, for
 * snapshots: each vCPU's (local APIC, what waits on its clock, counters) and the
 * devices'. Not guest RAM, and not injection: its rules and streams are the
 * scenario's own, and nothing is drawn before a command starts.
 *
 * Between two turns of the vCPUs, with no thread running one.
 */
#ifndef MACHINE_MACHINE_STATE_H
#define MACHINE_MACHINE_STATE_H

#include "core/saver.h"
#include "core/vm.h"

/*
 * Save, or load into a VM that was built the same way and has not run. The caller
 * looks at saver_ok(); after a failure the VM can only be torn down.
 */
void machine_transfer(struct saver *s, struct vm *vm);

#endif
