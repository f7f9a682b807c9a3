/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The runner of engines that keep virtual time: one host thread, which always steps
 * the vCPU that is furthest behind. Nothing it decides depends on the host: the same
 * guest and seed take the same steps at any load.
 *
 * With a memory model, time is cut into cells of the cost model's quantum, within which nothing that one vCPU does can reach another, and
 * in a round each vCPU runs to the end of a cell, or to an event of the VM's own within it. So a vCPU
 * is ahead of another by no more than a quantum, and where its turns end has nothing to do with who else has
 * turns. That is what allows to leave out those whose turns would change nothing: vCPUs that wait in a loop, which the
 * engine finds (struct vcpu.parked), and which go on where they would have been. Halted vCPUs, and those
 * that wait for SIPI, have no turns at all; when all have none, time jumps to the next event, and one that is
 * alone runs until then. Without a memory model each turn ends a quantum after the clock of the next one behind.
 */
#ifndef VMM_RUN_LOCKSTEP_H
#define VMM_RUN_LOCKSTEP_H

#include "core/engine.h"

struct run_lockstep_params {
	int signal_fd;		/* readable = the user asked to stop (VM_STOP_SIGNAL); -1 = none */
	/*
	 * Called every few ms of the host's time, between two steps; may be NULL. For what concerns the host only: progress lines, output, limits. What it
	 * does to the guest is not repeatable, so it may end the VM and nothing else.
	 */
	void (*host_tick)(void *ctx);
	void *ctx;
};

/*
 * Run the VM until vm->stop is set, or vm->pause, after which it can be called again;
 * vm->cost gives the quantum. A VM in which nothing can happen any more, not even on its
 * service clock, ends with VM_STOP_TIMEOUT. 0, or -errno (reported) if the engine could not start.
 */
int run_lockstep(struct vm *vm, const struct run_lockstep_params *params);

#endif
