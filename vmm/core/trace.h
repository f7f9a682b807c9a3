/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Trace of chosen events with their time and vCPU, written as text while the VM
 * runs. An engine or an upcall adds events; kinds that nobody asked for cost one
 * branch. trace_add() runs on the vCPU's thread; a mutex inside orders vCPUs of kvm.
 */
#ifndef CORE_TRACE_H
#define CORE_TRACE_H

#include "core/vm.h"

/* TRACE(name, meaning of a, b, d) */
enum trace_kind {
#define TRACE(name, format, meaning)	TRACE_##name,
#include "core/trace.def"
#undef TRACE
	NR_TRACE_KINDS
};

/* "all" or names joined by commas into a mask. -EINVAL with *err (g_free()) listing the names. */
int trace_parse_kinds(const char *text, u32 *mask, char **err);
/* The names of all kinds, NULL-terminated. */
const char *const *trace_name_list(void);
/*
 * Trace the kinds of `mask` into a file, with symbols from a System.map (NULL: none; one that cannot be read is a
 * warning). Before the first vCPU runs. -errno, reported.
 */
int trace_open(struct vm *vm, const char *path, u32 mask, const char *system_map);
/* Close the file; harmless if none is open. -EIO, reported, if something was not written. */
int trace_close(struct vm *vm);

static inline bool trace_wanted(const struct vm *vm, enum trace_kind kind)
{
	return vm->trace_mask & BIT(kind);
}

/* One event: ns is its time, rip the guest's. a, b, d as trace.def says of the kind. */
void trace_add(struct vm *vm, const struct vcpu *vcpu, enum trace_kind kind, u64 ns, u64 rip, u64 a, u64 b, u64 d);

#endif
