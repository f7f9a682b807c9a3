/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state of a VM's vCPUs, for a person, on standard error: when a guest comes to a
 * bad end, and whenever the user asks (SIGUSR1), after which the VM goes on as if
 * nothing had been. docs/tracing.md explains the lines.
 */
#ifndef VMM_DUMP_H
#define VMM_DUMP_H

#include "core/vm.h"

/* Names of functions come from a System.map, NULL for none. Reads it into vm->symbols at the first call. */
void dump_symbols(struct vm *vm, const char *system_map);
/* All vCPUs. Their threads have ended, or the caller runs between two turns of the lockstep runner. */
void dump_vcpus(struct vm *vm);
/* All vCPUs, each by its own thread before its next turn, to which it is kicked. From the service thread. */
void dump_request(struct vm *vm);
/* A vCPU's part of that. From vcpu_turn(), no lock held. */
void dump_requested(struct vcpu *vcpu);

#endif
