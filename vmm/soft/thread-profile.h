/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Time by thread of a Linux guest: who is current on a vCPU is in its per-CPU area, whose layout the System.map
 * tells. Reads the guest's memory, changes nothing. In a vCPU's turn or between turns.
 */
#ifndef SOFT_THREAD_PROFILE_H
#define SOFT_THREAD_PROFILE_H

#include "core/profile.h"
#include "soft/soft.h"

struct thread_profile;

/* All accounts 0; NULL if the System.map has no such layout, or there is none. */
struct thread_profile *thread_profile_create(struct soft_vm *svm);
void thread_profile_destroy(struct thread_profile *tp);
/* Begin with what c had spent by class at the mark. */
void thread_profile_begin(struct thread_profile *tp, const struct soft_cpu *c, const u64 *spent);
/* What c has spent since the last call goes to the thread that is current now. */
void thread_profile_note(struct thread_profile *tp, struct soft_cpu *c);
/* The thread on c's vCPU does what may give it another name: look when it is back in user code. */
void thread_profile_renames(struct thread_profile *tp, const struct soft_cpu *c);
void thread_profile_leave(struct thread_profile *tp, struct soft_cpu *c);
/* thread_profile_note() at the last mark, until which it has spent that. */
void thread_profile_end(struct thread_profile *tp, struct soft_cpu *c, const u64 *spent);
void thread_profile_read(const struct thread_profile *tp, struct profile *p);

#endif
