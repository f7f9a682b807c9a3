/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The profiler: samples in virtual time. What went by since a vCPU's last sample goes to
 * the code that it is at when a turn ends (some ns long with a memory model), when it
 * enters or leaves the kernel, and when it waits for a line; time halted goes to
 * nobody. It looks and changes nothing, so a run with it is the run without. In a vCPU's turn
 * or between turns.
 */
#ifndef SOFT_PROFILE_H
#define SOFT_PROFILE_H

#include "core/profile.h"
#include "soft/soft-mem.h"

struct soft_profile;

/* engine_ops.profile_start and profile_read. */
void soft_profile_start(struct vm *vm, u64 now);
void soft_profile_read(struct vm *vm, u64 now, bool all, struct profile *p);
void soft_profile_destroy(struct soft_vm *svm);

/* The slow parts of what follows: with a profile only. */
void soft_profile_sample(struct soft_cpu *c, u64 stall);
void soft_profile_loop(struct soft_cpu *c, u64 now, u64 iterations);
void soft_profile_resume(struct soft_cpu *c);
void soft_profile_enter(struct soft_cpu *c, bool user, u32 entry);
void soft_profile_leave(struct soft_cpu *c);

/* Time since the last sample, its last `stall` units a wait for a line, goes to c->rip. */
static inline void soft_sample(struct soft_cpu *c, u64 stall)
{
	if (unlikely(c->svm->profile))
		soft_profile_sample(c, stall);
}
/* The same for iterations of a loop that waits, up to `now` units: spin.c has its state at c->rip. */
static inline void soft_sample_loop(struct soft_cpu *c, u64 now, u64 iterations)
{
	if (unlikely(c->svm->profile))
		soft_profile_loop(c, now, iterations);
}
/* A turn begins: what has gone by since the last one is nobody's. */
static inline void soft_sample_begin(struct soft_cpu *c)
{
	if (unlikely(c->svm->profile))
		soft_profile_resume(c);
}
/* An event or SYSCALL has brought the vCPU into the kernel: PROFILE_ENTRY(); from user code, or from the kernel itself. */
static inline void soft_note_enter(struct soft_cpu *c, bool user, u32 entry)
{
	if (unlikely(c->svm->profile))
		soft_profile_enter(c, user, entry);
}
/* IRET or SYSRET is done; c->cpl says where it has led to. */
static inline void soft_note_leave(struct soft_cpu *c)
{
	if (unlikely(c->svm->profile))
		soft_profile_leave(c);
}

#endif
