/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Callers of kernel code, by the ORC tables of a Linux guest (its Documentation/arch/x86/orc-unwinder.rst;
 * format: arch/x86/include/asm/orc_types.h of 6.12). Reads the guest's memory and registers, changes nothing.
 */
#ifndef SOFT_UNWIND_H
#define SOFT_UNWIND_H

#include "core/symbols.h"
#include "soft/soft.h"

struct soft_unwind;

/* The tables as the kernel that c runs has them mapped; NULL if there are none, or their addresses are not in `symbols`. */
struct soft_unwind *soft_unwind_create(struct soft_cpu *c, const struct symbols *symbols);
void soft_unwind_destroy(struct soft_unwind *u);
/*
 * Return addresses of the kernel code at c->rip, the nearest first, up to the frame that an entry from
 * elsewhere has left. How many there are, at most `most`; fewer where a table or a stack gives out.
 */
u32 soft_unwind(struct soft_unwind *u, struct soft_cpu *c, u64 *address, u32 most);

#endif
