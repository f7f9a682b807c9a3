/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The runner of engines that run on host time: a thread for each vCPU, and the
 * calling thread as the service loop (time-outs, refaults, console output).
 */
#ifndef VMM_RUN_THREADS_H
#define VMM_RUN_THREADS_H

#include "core/engine.h"

struct run_threads_params {
	const int *pin;		/* host CPU of each vCPU, or NULL: not pinned */
	int signal_fd;		/* readable = the user asked to stop (VM_STOP_SIGNAL); -1 = none */
};

/*
 * Run the VM until vm->stop is set; all vCPU threads have ended on return. The
 * service loop and the engine's threads stay off pinned CPUs where the host has
 * others. 0, or -errno (reported) if the threads could not be made.
 */
int run_threads(struct vm *vm, const struct run_threads_params *params);

/*
 * The floor of a message between two vCPU threads on this host: median time from
 * a post to the target's look at it, the target parked, ns. What an injected IPI
 * delay cannot go below. Uses throw-away threads; takes a few ms.
 */
u64 run_threads_floor(void);

#endif
