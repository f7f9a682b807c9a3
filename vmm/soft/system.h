/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the system instructions, event delivery and the MSRs share: descriptors,
 * privilege, stacks. Inside of vmm/soft, for segment.c, far.c, interrupt.c, iret.c,
 * msr.c, state.c and the ops-sys*.c files; everything runs on the VM's one thread.
 *
 * Functions that can fault return 0, or SOFT_FAULT with c->fault set and nothing
 * changed that the guest could see but accessed and busy bits.
 */
#ifndef SOFT_SYSTEM_H
#define SOFT_SYSTEM_H

#include "soft/decode.h"
#include "soft/soft.h"

/* Attributes of a segment in struct x86_segment's form (SDM 3A 3.4.5). */
#define SEG_ATTR_TYPE		0x000fu
#define SEG_ATTR_ACCESSED	0x0001u		/* code and data */
#define SEG_ATTR_RW		0x0002u		/* data: writable; code: readable */
#define SEG_ATTR_CONFORMING	0x0004u		/* code; expand-down for data */
#define SEG_ATTR_CODE		0x0008u
#define SEG_ATTR_S		0x0010u		/* code or data, not a system descriptor */
#define SEG_ATTR_DPL_SHIFT	5
#define SEG_ATTR_P		0x0080u
#define SEG_ATTR_L		0x2000u
#define SEG_ATTR_DB		0x4000u
#define SEG_ATTR_G		0x8000u

/* Types of system descriptors (SDM 3A table 3-2); the 64-bit ones in IA-32e mode have the numbers of the 32-bit ones. */
enum soft_sys_type {
	SYS_TSS16 = 1, SYS_LDT = 2, SYS_TSS16_BUSY = 3, SYS_CALL16 = 4, SYS_TASK_GATE = 5, SYS_INT16 = 6, SYS_TRAP16 = 7,
	SYS_TSS = 9, SYS_TSS_BUSY = 11, SYS_CALL = 12, SYS_INT = 14, SYS_TRAP = 15,
};
#define SYS_TYPE_BUSY		2u

/* RFLAGS bits that do not exist read as 0 (SDM 1 figure 3-8). */
#define SOFT_FLAGS_ZERO		(~0x003f7fd7ull)

/* DR6 and DR7 with nothing set (SDM 3B 18.2.3 and figure 18-1 [17]). */
#define DR6_FIXED		0xffff0ff0ull
#define DR7_FIXED		0x400ull

/* `kind` of TRACE_exit. */
enum soft_exit_kind { EXIT_PIO, EXIT_MMIO, EXIT_MSR, EXIT_HLT };

/* --- small things --- */

static inline bool soft_protected(const struct soft_cpu *c)
{
	return c->cr0 & X86_CR0_PE;
}
static inline bool soft_long(const struct soft_cpu *c)
{
	return c->efer & X86_EFER_LMA;
}
static inline bool soft_canonical(u64 va)
{
	return (u64)((s64)(va << 16) >> 16) == va;
}
static inline u8 soft_iopl(const struct soft_cpu *c)
{
	return c->sysflags >> 12 & 3;
}
static inline u8 soft_attr_dpl(u16 attr)
{
	return attr >> SEG_ATTR_DPL_SHIFT & 3;
}
/* Set c->fault: return soft_fault_error(c, VEC_GP, 0). */
static inline int soft_fault_error(struct soft_cpu *c, u8 vector, u32 error)
{
	c->fault = (struct soft_fault){ .vector = vector, .has_error = true, .error = error };
	return SOFT_FAULT;
}

#endif
