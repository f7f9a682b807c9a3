/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A barrier of N threads that sleeps and never spins: on a host with fewer CPUs
 * than the guest has vCPUs, a spinning waiter takes the time of the thread it
 * waits for. Reusable; each thread of the N calls barrier_wait() once a round.
 */
#ifndef LIB_BARRIER_H
#define LIB_BARRIER_H

#include "lib/util.h"

struct barrier {
	u32 nr;
	u32 waiting;		/* (a) threads that have arrived in this round */
	u32 round;		/* (a) futex word */
};

void barrier_init(struct barrier *b, u32 nr);
/* True for the one thread that arrived last. */
bool barrier_wait(struct barrier *b);

#endif
