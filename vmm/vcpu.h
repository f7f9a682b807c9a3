/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The vCPU loop's body, the same for every engine and runner. All on the vCPU's
 * own thread.
 */
#ifndef VMM_VCPU_H
#define VMM_VCPU_H

#include "core/engine.h"

enum vcpu_next {
	VCPU_NEXT_TURN,		/* take another turn */
	VCPU_NEXT_IDLE,		/* nothing to do before *until, or a kick */
	VCPU_NEXT_STOP,		/* the VM ends */
};

/* Prepare the clock, local APIC and counters of a vCPU whose id and apic_id are set. */
void vcpu_init(struct vcpu *vcpu);
void vcpu_destroy(struct vcpu *vcpu);

/*
 * One turn: run what is due, deliver NMI and the pending interrupt, and run the
 * guest until the next event, or `limit` (ns; CLOCK_NEVER = none) if that is sooner. *until is
 * then the time of that event.
 */
enum vcpu_next vcpu_turn(struct vcpu *vcpu, u64 limit, u64 *until);

#endif
