/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where on the host a guest's vCPUs and RAM go: pins (vm.pin) and NUMA policy, and the
 * remarks that belong beside a rate when the host cannot carry the guest as shaped.
 */
#ifndef VMM_PLACEMENT_H
#define VMM_PLACEMENT_H

#include "vm.h"

/*
 * The host CPU of each vCPU as vm.pin says, in *pin (g_free()); NULL for none. STATUS_BAD_INPUT for a list that does not fit, STATUS_HOST
 * for a host without such CPUs; reported. Any thread; the front end's too.
 */
enum status placement_pins(const struct scenario *s, const struct topology *topo, int **pin);
/* Trust remarks of a guest whose shape the host cannot carry, and each guest node's RAM bound to a host node where there are as many. STATUS_HOST if that fails. */
enum status placement_memory(struct vm *vm, struct vm_setup *setup);
/*
 * Before memory slots are given to the engine: bind each guest node's RAM to a
 * host node where the host has as many, fill setup->pin from vm.pin, and add trust
 * remarks. STATUS_BAD_INPUT for a pin list that does not fit, STATUS_HOST when it
 * cannot be had.
 */
enum status placement_apply(struct vm *vm, const struct scenario *s, struct vm_setup *setup);

#endif
