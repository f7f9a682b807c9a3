/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the system instructions, event delivery and the MSRs share: descriptors,
 * privilege, stacks. Inside of vmm/soft, for segment.c, far.c, interrupt.c, iret.c,
 * msr.c, state.c and the files of system instructions; everything runs on the VM's one thread.
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

/* An instruction got `ret` (SOFT_FAULT, or SOFT_LEAVE from soft_stop()) from one of the functions below: return it. */
static inline int soft_failed(struct soft_cpu *c, const struct soft_op *op, int ret)
{
	soft_faulted(c, op);
	return ret;
}
/*
 * The guest asks for what this engine does not have (hardware task switches, virtual-8086
 * mode): reports it and ends the run. Returns SOFT_LEAVE. segment.c
 */
int soft_stop(struct soft_cpu *c, const char *what);

/* --- system data structures --- */

/*
 * Load or store `len` (1 to 32) bytes at va as a supervisor whatever the CPL, through
 * the shortcuts if they lead there; counts one data access. segment.c
 */
int soft_sys_load(struct soft_cpu *c, const struct soft_op *op, u64 va, void *buf, u32 len);
int soft_sys_store(struct soft_cpu *c, const struct soft_op *op, u64 va, const void *buf, u32 len);

/* --- descriptors (segment.c; SDM 3A 3.4.5, 5) --- */

struct soft_desc {
	u64 va;			/* where it is */
	u64 base;
	u32 limit;		/* in bytes */
	u16 attr;
	u64 raw;		/* its first 8 bytes, for gates */
	u32 high;		/* dword 2 of one of 16 bytes */
};

/*
 * Read the descriptor of a selector, which is not null. A selector beyond its table gives
 * exception `vector` with the selector and `ext` (0 or 1, the EXT bit) as error code.
 */
int soft_desc_read(struct soft_cpu *c, const struct soft_op *op, u16 sel, u8 vector, u32 ext, struct soft_desc *d);
/* In IA-32e mode: the second half of a system descriptor of 16 bytes. */
int soft_desc_read_high(struct soft_cpu *c, const struct soft_op *op, u16 sel, u8 vector, u32 ext, struct soft_desc *d);
/* Set the accessed bit of a code or data descriptor, in memory and in *d. */
int soft_desc_accessed(struct soft_cpu *c, const struct soft_op *op, struct soft_desc *d);

/* Put a descriptor into a segment register. */
void soft_segment_set(struct x86_segment *seg, u16 sel, const struct soft_desc *d);
/* A null selector in ES, SS, DS, FS or GS. */
void soft_segment_set_null(struct soft_cpu *c, struct x86_segment *seg, u16 sel);
/* Real mode: selector times 16; limit and size stay (SDM 3A 10.9.2 [9.9.2]). */
void soft_segment_set_real(struct x86_segment *seg, u16 sel);
/* CS, with privilege level cpl, and all that follows from it. Not from real mode. */
void soft_cs_set(struct soft_cpu *c, u16 sel, const struct soft_desc *d, u8 cpl);
/* MOV, POP, LSS ...: load ES, SS, DS, FS or GS in any mode (SDM 2B MOV). */
int soft_segment_load(struct soft_cpu *c, const struct soft_op *op, enum soft_seg which, u16 sel);
/* The checks of a stack segment of privilege `cpl`, then its descriptor: faults are #TS or #GP as `vector` says, or #SS. */
int soft_stack_check(struct soft_cpu *c, const struct soft_op *op, u16 sel, u8 cpl, u8 vector, u32 ext,
		     struct soft_desc *d);
/* A code segment to enter at `rip`: present, not both L and D, rip canonical or within the limit. */
int soft_code_check(struct soft_cpu *c, u16 sel, const struct soft_desc *d, u64 rip, u32 ext);

/*
 * Far RET and IRET in protected mode to CS:RIP, and SS:RSP with an outer privilege
 * level or always (IRET in 64-bit mode). far.c
 */
struct soft_return {
	u16 cs, ss;
	u64 rip, rsp;
	bool has_stack;		/* ss and rsp are there whatever the privilege level */
	u64 rsp_inner;		/* RSP after the return if they are not used */
};
int soft_return_far(struct soft_cpu *c, const struct soft_op *op, const struct soft_return *r);
/* True if the return to `cs` goes to an outer level: ss and rsp are on the stack, too. */
static inline bool soft_returns_outer(const struct soft_cpu *c, u16 cs)
{
	return (cs & 3) > c->cpl;
}

/* IRET of any size in any mode: an operation's function (op->size 2, 4, 8). iret.c */
int soft_op_iret(struct soft_cpu *c, const struct soft_op *op);

/* --- families of instructions, for soft_decode_system() --- */

bool soft_decode_segment_ops(struct soft_decode *d, struct soft_op *op);	/* ops-segment.c */
bool soft_decode_far(struct soft_decode *d, struct soft_op *op);		/* far.c */
bool soft_decode_control(struct soft_decode *d, struct soft_op *op);		/* ops-control.c */
bool soft_decode_io(struct soft_decode *d, struct soft_op *op);			/* ops-io.c */
bool soft_decode_syscall(struct soft_decode *d, struct soft_op *op);		/* ops-syscall.c */
bool soft_decode_flags(struct soft_decode *d, struct soft_op *op);		/* ops-flags.c */

#endif
