/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * vCPUs that wait in a loop: one that PAUSEs, reads lines that its core has, and comes back to where it was with nothing
 * changed. Until another core takes one of those lines, or an event comes, every further iteration is like the
 * last one, so it need not be executed: the vCPU is parked (struct vcpu.parked), and where it would be by any time follows
 * from one recorded iteration. The guest cannot tell, nor can a result: time, instructions and counters are
 * those of a vCPU that goes on executing, which is what it does with vm->no_park and without a memory model (no core
 * would tell that a line is taken). A loop that counts, or reads the clock, is not like this.
 *
 * In a vCPU's turn, unless said otherwise.
 */
#ifndef SOFT_SPIN_H
#define SOFT_SPIN_H

#include "soft/soft-mem.h"

/*
 * A block has ended behind a PAUSE. True: the vCPU is parked now, and its clock is at the deadline of its turn.
 * Iterations like the one before are booked under TIME_spinning, parked or not.
 */
bool soft_spin(struct soft_cpu *c);
/* With spin.watch: a block has ended, well or not. */
void soft_spin_place(struct soft_cpu *c, bool well);
/* engine_ops.park_until. */
void soft_spin_until(struct vcpu *vcpu, u64 ns);
/* What any parked vCPU looks at may have changed, or somebody wants to see its counters. In or between turns. */
void soft_spin_wake_all(struct soft_vm *svm);
/* The vCPU's state is set anew. */
void soft_spin_reset(struct soft_cpu *c);

/* A line that the vCPU could read goes. The iteration in hand may have read it already: it is not like the next one. */
static inline void soft_spin_wake(struct soft_cpu *c)
{
	if (unlikely(c->vcpu->parked))
		c->svm->vm->unpark(c->vcpu);
	c->spin.loud = true;
}

/* Is the vCPU in an iteration of a loop that has come back to its head unchanged? Between blocks. */
static inline bool soft_spin_inside(const struct soft_cpu *c)
{
	return c->spin.same && c->insns - c->spin.head.insns <= c->spin.period.insns;
}

#endif
