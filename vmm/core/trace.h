/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Trace of chosen events with their time and vCPU, written as text while the VM
 * runs (docs/tracing.md). An engine or an upcall adds events; kinds that nobody
 * asked for cost one branch. Nothing of the guest's depends on it. A mutex
 * inside orders threads: events may be added by any.
 */
#ifndef CORE_TRACE_H
#define CORE_TRACE_H

#include "core/vm.h"

enum trace_kind {
#define TRACE(kind, seen, a, b, d, meaning)	TRACE_##kind,
#include "core/trace.def"
#undef TRACE
	NR_TRACE_KINDS
};

#define TRACE_ALL	(BIT(NR_TRACE_KINDS) - 1)

/* As an argument or rip: there is none, leave it out. No canonical address, nor anything else that is traced. */
#define TRACE_NONE	BIT_ULL(63)

/* "all" or names joined by commas into a mask. -EINVAL with *err (g_free()) listing the names. */
int trace_parse_kinds(const char *text, u32 *mask, char **err);
/* The names of all kinds, NULL-terminated. */
const char *const *trace_name_list(void);
/*
 * Can the VM's engine see these kinds? With TRACE_ALL those that it cannot are taken out of
 * *mask, any other mask gives -ENOTSUP with *err (g_free()) naming one and why. vm_build() is through.
 */
int trace_check(const struct vm *vm, u32 *mask, char **err);
/*
 * Trace the kinds of `mask` into a file, with symbols from a System.map (NULL: none; one that cannot be read is a
 * warning): at once, or only while a command runs (trace_command()). Before the first vCPU runs. -errno, reported.
 */
int trace_open(struct vm *vm, const char *path, u32 mask, const char *system_map, bool command_only);
/* A command of the guest's begins or has ended. Any thread; harmless if no trace is open. */
void trace_command(struct vm *vm, bool runs);
/* Close the file; harmless if none is open. -EIO, reported, if something was not written. */
int trace_close(struct vm *vm);

static inline bool trace_wanted(const struct vm *vm, enum trace_kind kind)
{
	return __builtin_expect(__atomic_load_n(&vm->trace_mask, __ATOMIC_RELAXED) & BIT(kind), 0);
}

/*
 * One event: ns is its time, rip the guest's, what says what happened (a word; NULL for none), a, b and d are
 * as trace.def names them. Only if trace_wanted().
 */
void trace_add(struct vm *vm, const struct vcpu *vcpu, enum trace_kind kind, u64 ns, u64 rip, const char *what,
	       u64 a, u64 b, u64 d);
/* The same, with time and rip as the engine has them; for upcalls. */
void trace_here(struct vcpu *vcpu, enum trace_kind kind, const char *what, u64 a, u64 b, u64 d);

#endif
