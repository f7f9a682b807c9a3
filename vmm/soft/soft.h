/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The soft engine's own state: one x86-64 CPU interpreted per vCPU, with a TLB
 * that behaves as the SDM says and a clock of its own. Included by vmm/soft/ only.
 *
 * Everything here runs on one host thread (vmm/run-lockstep.c), so nothing is
 * locked. Host pointers and host time never reach what a guest can see.
 *
 * How an instruction runs: decode.c turns the code of a page into blocks of
 * struct soft_op, each with the function that executes it. A function does its
 * work and continues with SOFT_NEXT(c, op), the next operation of the block; the
 * last one of a block ends it. What cannot go on returns an enum soft_ret to
 * soft_run(), which delivers exceptions and looks blocks up.
 */
#ifndef SOFT_SOFT_H
#define SOFT_SOFT_H

#include <glib.h>

#include "base/rng.h"
#include "core/cost.h"
#include "core/engine.h"
#include "core/trace.h"
#include "x86/cr.h"
#include "x86/state.h"

struct soft_cpu;
struct soft_op;
struct soft_vm;
struct soft_tlb;
struct soft_code;
struct soft_block;
struct soft_core;
struct soft_lines;
struct soft_profile;

/* What an operation's function returns when the block does not simply go on. */
enum soft_ret {
	SOFT_OK = 0,		/* c->rip is set: look up the block there */
	SOFT_FAULT,		/* c->fault is set, c->rip is the instruction to report: deliver it */
	SOFT_LEAVE,		/* leave soft_run() with c->leave; c->rip is set */
};

typedef int (*soft_fn)(struct soft_cpu *c, const struct soft_op *op);

/* Exception vectors (SDM 3A table 6-1). */
enum soft_vector {
	VEC_DE = 0, VEC_DB = 1, VEC_NMI = 2, VEC_BP = 3, VEC_OF = 4, VEC_BR = 5, VEC_UD = 6, VEC_NM = 7, VEC_DF = 8,
	VEC_TS = 10, VEC_NP = 11, VEC_SS = 12, VEC_GP = 13, VEC_PF = 14, VEC_MF = 16, VEC_AC = 17, VEC_MC = 18,
	VEC_XM = 19,
	VEC_LINE = 0xff,	/* none: the instruction waits for a line (lines.h) and is begun anew */
};

/* Page-fault error code (SDM 3A 4.7). */
#define PF_P		BIT(0)
#define PF_W		BIT(1)
#define PF_U		BIT(2)
#define PF_RSVD		BIT(3)
#define PF_I		BIT(4)

/* Segment registers in the order of their encoding (SDM 2A table 3-1). */
enum soft_seg { SEG_ES, SEG_CS, SEG_SS, SEG_DS, SEG_FS, SEG_GS, NR_SEGS };

/* gpr[] has two more than the architecture: what an address is relative to when it has no register. */
#define GPR_PAGE	16u	/* linear address of the page the current block is in, for RIP-relative operands */
#define GPR_ZERO	17u	/* always 0 */

/*
 * One decoded instruction. Registers are indexes into gpr[], except that those of
 * 8-bit operands are byte offsets into it (so AH is 1 and R8B is 64).
 */
struct soft_op {
	soft_fn fn;
	u64 imm;		/* immediate; a branch's target as an offset from the page's start */
	s32 disp;		/* displacement; for RIP-relative operands from GPR_PAGE */
	u8 dst, src;		/* register operands */
	u8 base, index;		/* of the memory operand: gpr[] indexes */
	u8 shift;		/* log2 of the index's scale */
	u8 amode;		/* AMODE_*: 0 for a plain 64-bit address in a segment with base 0 */
	u8 n;			/* place of the instruction in its block */
	u8 acc;			/* data accesses of the instructions before it in the block */
	u16 pc : 12;		/* offset of the instruction from the start of its page */
	u16 len : 4;		/* bytes */
	u8 aux;			/* the function's own */
	u8 size;		/* operand size in bytes, for functions that serve several */
};

#define DST_LOCKED	0xffu	/* dst of a locked read-modify-write, whose destination is memory */

#define AMODE_SEG	0x07u	/* 1 + enum soft_seg whose base is added; 0 = none */
#define AMODE_32	0x08u	/* the offset is truncated to 32 bits */
#define AMODE_16	0x10u	/* to 16 bits */
#define AMODE_LIN32	0x20u	/* not in 64-bit mode: the linear address is truncated to 32 bits */
#define AMODE_RIP	0x40u	/* RIP-relative, and disp is relative to the next instruction since it would overflow otherwise */

/*
 * A shortcut: the host address of a page whose translation is in the first-level
 * TLB now, with the right to read (rtag) or write (wtag) from the context it
 * belongs to. Direct-mapped by soft_sc_slot(); a strict subset of the TLB: whoever
 * removes or changes a TLB entry drops its shortcuts. `used` is the entry's
 * reference bit for replacement.
 *
 * With a memory model the tags have SOFT_LINES_TAG set: the access has to lie in a line that the filter (lines.h) has,
 * or goes to soft_load_slow() and its like, which take the shortcut and then look at the line.
 */
struct soft_sc {
	u64 rtag, wtag;		/* linear address of the page, or SOFT_NO_TAG */
	u64 addend;		/* host address - linear address, modulo 2^64 */
	u32 used;
	u32 pfn;		/* of the page in soft_vm.page[] */
};

/* The same for instruction fetch: leads to the page's decoded code. */
struct soft_xsc {
	u64 tag;
	struct soft_code *code;
	u64 used;
};

#define SOFT_NO_TAG	1ull
#define SOFT_LINES_TAG	2ull
#ifdef FAULTBED_HARD
#define SOFT_NR_SC	4u
#define SOFT_NR_XSC	4u
#else
#define SOFT_NR_SC	512u
#define SOFT_NR_XSC	256u
#endif

/*
 * Where the shortcut of a page may be. Pages whose numbers differ only in high bits are common
 * (a kernel's data and its direct map), so these count; and a page and the next one
 * never share a slot, which soft-mem.h relies on.
 */
static inline u32 soft_sc_slot(u64 va)
{
	return (u32)((va >> 12) + (va >> 21)) & (SOFT_NR_SC - 1);
}
static inline u32 soft_xsc_slot(u64 va)
{
	return (u32)((va >> 12) + (va >> 21)) & (SOFT_NR_XSC - 1);
}

/*
 * Shortcuts exist once per context, so that neither a change of CPL nor STAC and
 * CLAC has to drop any.
 */
enum soft_context {
	CTX_USER,		/* CPL 3 */
	CTX_KERNEL,		/* CPL < 3; with SMAP user pages are out of reach */
	CTX_KERNEL_AC,		/* CPL < 3 and EFLAGS.AC: user pages within reach */
	NR_CTX
};

enum soft_access { ACCESS_READ, ACCESS_WRITE, ACCESS_FETCH };

/* What a translation gives: for MMIO hva is NULL. */
struct soft_xlat {
	gpa_t gpa;
	u8 *hva;
	struct soft_page *page;	/* NULL for MMIO */
};

/* Second-level state of one 4 KiB page of guest RAM. */
struct soft_page {
	u32 flags;		/* SPAGE_* */
	u32 pfn;		/* index of this page in soft_vm.page[] */
	struct soft_code *code;	/* decoded code of this page, NULL if none */
};

#define SPAGE_MAPPED	BIT(0)	/* has a second-level mapping: no EPT violation */
#define SPAGE_TOUCHED	BIT(1)	/* had one before: the next violation is a refault */
#define SPAGE_PROTECTED	BIT(2)	/* the mapping allows no writes (no wtag may exist); with SPAGE_MAPPED only */
#define SPAGE_CODE	BIT(3)	/* has decoded code: writes take the slow path (no wtag may exist) */
/* tlb.c's own: a vCPU (its number is in the upper half), or several, may hold a write shortcut. */
#define SPAGE_WSC	BIT(4)
#define SPAGE_WSC_MANY	BIT(5)
#define SPAGE_CPU_SHIFT	16
#define SPAGE_CPU_MASK	0xffff0000u

struct soft_fault {
	u8 vector;
	bool has_error;
	u32 error;
	u64 cr2;		/* of a page fault */
};

/* Why TLB entries were flushed: counters, trace. */
enum soft_flush {
	FLUSH_INVLPG, FLUSH_INVPCID_ADDR, FLUSH_INVPCID_SINGLE, FLUSH_INVPCID_ALL, FLUSH_INVPCID_ALL_NONGLOBAL,
	FLUSH_CR3, FLUSH_CR0, FLUSH_CR4, FLUSH_SECOND_LEVEL, FLUSH_FAULT, FLUSH_RESET,
	NR_FLUSH
};

/* Counters of the engine, per vCPU: SOFT_STAT(name, meaning) in soft-stats.def. */
enum soft_stat {
#define SOFT_STAT(name, meaning)	STAT_##name,
#include "soft/soft-stats.def"
#undef SOFT_STAT
	NR_SOFT_STATS
};

/* What time goes to, per vCPU: SOFT_TIME(name, meaning) in soft-time.def. */
enum soft_time {
#define SOFT_TIME(name, meaning)	TIME_##name,
#include "soft/soft-time.def"
#undef SOFT_TIME
	NR_SOFT_TIMES
};

/* Where an access finds its line, nearest first; from LINE_FROM_REMOTE on it comes over a link between sockets. */
enum line_from {
	LINE_FROM_L1, LINE_FROM_L2, LINE_FROM_SIBLING, LINE_FROM_L3, LINE_FROM_SOCKET, LINE_FROM_DRAM_LOCAL,
	LINE_FROM_REMOTE, LINE_FROM_DRAM_REMOTE,
	NR_LINE_FROM
};

/* Loads that missed and overlap (line-time.c). */
struct line_window {
	u64 begin;		/* when the first one was issued */
	u64 insns;		/* which instruction that was */
	u32 nr;			/* 0: none */
	u32 regs;		/* what they loaded */
};

/* Stores that wait for their lines, in order: no more than core/cost.def lets `misses` be. */
#define LINE_NR_STORES	64u
struct line_stores {
	u64 last;		/* when all are done */
	u32 head, nr;
	u64 done[LINE_NR_STORES];
};

/* The end of a block in a loop that waits (spin.h): the vCPU's state there, its counters since the loop's head. */
struct soft_spin_place {
	u64 units, insns, accesses;
	u32 pauses;
	u16 af;
	u64 rip, gpr[16];
};

#define SPIN_PLACES	12u
struct soft_spin {
	bool paused;		/* PAUSE was executed: the block in hand ends, and soft_spin() looks at it */
	bool loud;		/* something happened since the head that might change what comes next, or be seen by others */
	bool watch;		/* blocks are executed one by one, and their ends are recorded */
	bool impure;		/* one of them may do more than read memory */
	bool refused;		/* this loop can not be parked */
	u8 cpl;
	u32 same;		/* how often in a row the loop has come back to its head as it was */
	u32 pauses;		/* since the head */
	u32 at_pauses;		/* of those that park_until() accounted for, since the head */
	u64 sysflags;
	struct soft_spin_place head;	/* behind a PAUSE; its counters are the vCPU's */
	struct soft_spin_place period;	/* from head to head: counters only */
	u32 nr;
	struct soft_spin_place place[SPIN_PLACES];
};

/* A vCPU's place in the queue for a line (line-queue.c). */
struct line_turn {
	u64 line;
	u64 start, done;	/* of the transfer to it */
	u64 insn;		/* the instruction that waits... */
	u32 retries;		/* ...how often it has... */
	bool write;		/* ...and what for */
	bool waiting;
	struct soft_cpu *next;	/* in the queue */
};

struct soft_cpu {
	/* --- hot: every instruction --- */
	u64 gpr[18];
	struct soft_sc *sc;	/* shortcuts of the current context: sct[ctx] */
	struct soft_xsc *xsc;	/* of the current privilege: xsct[user] */
	u32 *filter;		/* of the memory model (lines.h); NULL: there is none */
	s64 left;		/* time units until `end`; <= 0 leaves at the next block boundary */
	u64 cpi;		/* time units an instruction costs */
	u64 insns;		/* instructions retired before the current block */
	u64 accesses;		/* data accesses through the TLB */
	union {
		u16 af;		/* arithmetic flags as LAHF and SETO leave them in AX */
		struct {
			u8 of;	/* 0 or 1 */
			u8 lo;	/* RFLAGS bits 0 to 7: SF ZF - AF - PF 1 CF */
		};
	};
	u8 cpl;			/* 0 or 3 (1, 2 where a guest uses them) */
	u8 mode;		/* enum soft_mode: of the current code segment */
	bool shadow;		/* the last instruction was STI, MOV SS or POP SS: no interrupt before the next is done */
	bool align_check;	/* #AC for misaligned data: CPL 3, CR0.AM, EFLAGS.AC; then sc has no shortcut at all */
	bool want_window;	/* leave with RUN_INTR_WINDOW once an interrupt can be taken */
	u8 sse_trap, fpu_trap;	/* vector that SSE / x87 instructions raise by CR0 and CR4, 0 = none: soft_update_fpu() */
	u64 rip;		/* valid between blocks, and after soft_sync() */
	u64 sysflags;		/* RFLAGS but the arithmetic ones: TF IF DF IOPL NT RF AC ID ... */
	struct soft_block **link;	/* block.c: where the next block looked up is to be remembered, or NULL */
	const struct soft_op *cur;	/* the instruction in hand if it may ask for the time, else NULL */

	/* --- what a slow path hands back --- */
	u64 val[4];		/* soft_load_slow()'s value, up to 32 bytes */
	struct soft_fault fault;
	enum run_exit leave;

	/* --- clock --- */
	u64 end;		/* time (units of 1/COST_CYCLE cycle since the VM started) when left is 0 */
	u64 broken;		/* what soft_break() took from left and end, given back by soft_run() */

	/* --- architectural state; GPRs and flags above --- */
	struct x86_segment seg[NR_SEGS], tr, ldt;
	struct x86_table gdt, idt;
	u64 cr0, cr2, cr3, cr4, efer;
	u64 star, lstar, cstar, sfmask, kernel_gs_base, tsc_aux, pat;
	u64 sysenter_cs, sysenter_esp, sysenter_eip;
	u64 dr[8];
	s64 tsc_offset;		/* TSC - clock: IA32_TSC writes and TSC_ADJUST */
	u64 tsc_adjust, misc_enable, spec_ctrl, mtrr_def_type, mtrr_fix[11], mtrr_var[16], mcg_status;
	u64 kvmclock, wall_clock;	/* MSRs 4b564d01 and ..00 */
	u64 monitor;		/* address armed by MONITOR */
	bool apic_off;		/* the local APIC is disabled in IA32_APIC_BASE: CPUID says so */
	/* x87, MXCSR and XMM as FXSAVE lays them out: XMMn at fx + 160 + 16 * n, MXCSR at fx + 24 */
	u8 fx[512] __attribute__((aligned(64)));
	u32 mxcsr_run, mxcsr_host;	/* scratch of ops-sse-fp.c: MXCSR while the host computes for the guest, and its own */

	bool nmi_pending, nmi_masked;
	bool irq_pending;	/* inject() has put `irq_vector` here for the next soft_run() */
	u8 irq_vector;
	struct rng rng;		/* RDRAND */

	/* --- translation --- */
	enum soft_context ctx;
	struct soft_tlb *tlb;	/* tlb.c's */
	struct soft_sc sct[NR_CTX][SOFT_NR_SC];
	struct soft_xsc xsct[2][SOFT_NR_XSC];	/* [0] supervisor, [1] user */

	/* --- memory model (lines.h) --- */
	struct soft_core *core;	/* (c) */
	u8 thread;		/* (c) in its core: its number there... */
	u8 place;		/* (c) ...and among those that the model knows */
	u64 line_va;		/* linear address of the access in hand, for the profile */
	struct line_window window;
	struct line_stores stores;
	struct line_turn turn;
	u64 lock_paid;		/* 1 + the number of the locked instruction that has paid for being one */
	bool line_wait;		/* the access in hand has to wait for its line: begin the instruction anew */
	struct rng jitter;	/* what moves line transfers */
	u64 lines_from[NR_LINE_FROM];	/* lines that came from there */

	struct soft_spin spin;		/* spin.h */

	u64 stat[NR_SOFT_STATS];
	u64 spent[NR_SOFT_TIMES];	/* units; of TIME_user and TIME_kernel those until `settled`: soft_settle() */
	u64 settled;			/* units: when that was... */
	u64 settled_other;		/* ...and the sum of all other classes then */

	struct vcpu *vcpu;	/* (c) */
	struct soft_vm *svm;	/* (c) */
	void *exec;		/* block.c's own (scratch block for instructions that cross a page) */
	u64 until;		/* ns: run()'s argument */
};

/* What the bytes of the code segment mean. */
enum soft_mode { MODE_64, MODE_32, MODE_16 };

struct soft_vm {
	struct vm *vm;
	struct cost_model cost;		/* (c) */
	u64 hz;				/* (c) core clock */
	u64 ns_mul, units_mul;		/* (c) clock.c's: ns of a unit << 64, units of a ns << 52 */
	struct soft_page *page;		/* (c) one for each page of RAM, by offset in the memfd; zeroes at first */
	u64 nr_pages;			/* (c) */
	void *blocks;			/* block.c's own */
	u64 blocks_decoded;		/* how often each has happened; not in results, for a start from a snapshot */
	u64 blocks_dropped;		/* begins with nothing decoded */
	struct soft_lines *lines;	/* the memory model (lines.h), NULL without */
	struct soft_profile *profile;	/* profile.h; NULL: nobody wants one */
};

static inline struct soft_cpu *soft_cpu(const struct vcpu *vcpu)
{
	return vcpu->engine;
}

/* --- time --- */

/* Time of the instruction in hand, in units of 1/COST_CYCLE cycle. */
static inline u64 soft_units(const struct soft_cpu *c)
{
	return c->end - (u64)c->left + (c->cur ? c->cur->n * c->cpi : 0);
}
/* Spend time, in units (a cost of kind CYCLES is in units), on something other than TIME_user and TIME_kernel. */
static inline void soft_spend(struct soft_cpu *c, enum soft_time class, u64 units)
{
	c->spent[class] += units;
	c->left -= (s64)units;
}
/*
 * Instructions' own time is what is left of a vCPU's time: it costs nothing to keep, and goes to the user's or the
 * kernel's account whenever CPL changes (before it does) and when somebody wants to see it. clock.c
 */
void soft_settle(struct soft_cpu *c);
/* CPL is about to become `cpl`. */
static inline void soft_set_cpl(struct soft_cpu *c, u8 cpl)
{
	if ((c->cpl == 3) != (cpl == 3))
		soft_settle(c);
	c->cpl = cpl;
}
/* Prepare the conversions; svm->cost and svm->hz are set. From vm_create. clock.c */
void soft_clock_init(struct soft_vm *svm);
/* Units in ns and back; ns rounds up so that soft_ns(soft_units_of(ns)) >= ns, up to SOFT_UNITS_MAX (CLOCK_NEVER, for one). */
#define SOFT_UNITS_MAX	((1ull << 60) - 1)
u64 soft_ns(const struct soft_vm *svm, u64 units);
u64 soft_units_of(const struct soft_vm *svm, u64 ns);
u64 soft_units_of_ps(const struct soft_vm *svm, u64 ps);
/* The guest's TSC now. */
u64 soft_tsc(const struct soft_cpu *c);
/* End the run at the next block boundary, without moving the clock. */
static inline void soft_break(struct soft_cpu *c)
{
	const u64 big = 1ull << 60;

	if (!c->broken) {
		c->broken = big;
		c->left -= (s64)big;
		c->end -= big;
	}
}

/* Trace something that happens to this vCPU now, as trace_add() says. Costs one branch when off. */
static inline void soft_trace(const struct soft_cpu *c, enum trace_kind kind, const char *what, u64 a, u64 b, u64 d)
{
	if (trace_wanted(c->svm->vm, kind))
		trace_add(c->svm->vm, c->vcpu, kind, soft_ns(c->svm, soft_units(c)), c->rip, what, a, b, d);
}

/* --- flow, for operations' functions --- */

#define SOFT_NEXT(c, op)	return (op)[1].fn((c), (op) + 1)

/* Linear address of an instruction's start and of the next one (within the code segment's base). */
static inline u64 soft_op_rip(const struct soft_cpu *c, const struct soft_op *op)
{
	return c->gpr[GPR_PAGE] + op->pc - c->seg[SEG_CS].base;
}
static inline u64 soft_op_next(const struct soft_cpu *c, const struct soft_op *op)
{
	return soft_op_rip(c, op) + op->len;
}
/*
 * Account for the instructions of the block before `end`. A block has an operation
 * more than instructions, so that op + 1 exists for the last one.
 */
static inline void soft_retire(struct soft_cpu *c, const struct soft_op *end)
{
	c->cur = NULL;
	c->insns += end->n;
	c->accesses += end->acc;
	c->left -= (s64)(end->n * c->cpi);
}
/*
 * To be called before anything that may look at the clock, reach the VMM or read
 * c->rip: an instruction that accesses memory does it only in the slow path.
 */
static inline void soft_sync(struct soft_cpu *c, const struct soft_op *op)
{
	c->cur = op;
	c->rip = soft_op_rip(c, op);
}
/* The instruction is complete and ends its block; c->rip is set to what comes next. Use as: return soft_end(c, op, rip). */
static inline int soft_end(struct soft_cpu *c, const struct soft_op *op, u64 rip)
{
	soft_retire(c, op + 1);
	c->rip = rip;
	return SOFT_OK;
}
/* The instruction is complete; leave the engine. */
static inline int soft_leave(struct soft_cpu *c, const struct soft_op *op, u64 rip, enum run_exit why)
{
	soft_end(c, op, rip);
	c->leave = why;
	return SOFT_LEAVE;
}
/* The instruction faults: c->fault is set already (by a load, a store, a translation). */
static inline int soft_faulted(struct soft_cpu *c, const struct soft_op *op)
{
	soft_retire(c, op);
	c->rip = soft_op_rip(c, op);
	return SOFT_FAULT;
}
/*
 * The same for a repeated string; `begun`: it has done elements since it was taken up. Waiting for a line it may be
 * interrupted, and what comes in the middle pushes RF = 1 (SDM 3B 17.3.1.1 [18.3.1.1]).
 */
static inline int soft_repeat_faulted(struct soft_cpu *c, const struct soft_op *op, bool begun)
{
	if (begun && c->fault.vector == VEC_LINE)
		c->sysflags |= X86_EFLAGS_RF;
	return soft_faulted(c, op);
}
/* The instruction raises an exception without / with an error code. */
static inline int soft_raise(struct soft_cpu *c, const struct soft_op *op, u8 vector)
{
	c->fault = (struct soft_fault){ .vector = vector };
	return soft_faulted(c, op);
}
static inline int soft_raise_error(struct soft_cpu *c, const struct soft_op *op, u8 vector, u32 error)
{
	c->fault = (struct soft_fault){ .vector = vector, .has_error = true, .error = error };
	return soft_faulted(c, op);
}

/* --- flags --- */

static inline u64 soft_rflags(const struct soft_cpu *c)
{
	return c->sysflags | (c->lo & 0xd5u) | (c->of ? X86_EFLAGS_OF : 0) | X86_EFLAGS_FIXED;
}
#define SOFT_ARITH_FLAGS	(X86_EFLAGS_CF | X86_EFLAGS_PF | X86_EFLAGS_AF | X86_EFLAGS_ZF | X86_EFLAGS_SF | X86_EFLAGS_OF)
/* Set all of RFLAGS; the caller has applied the rules on what may change. Updates the context (AC). */
void soft_set_rflags(struct soft_cpu *c, u64 flags);
/* cpl, CR0, CR4, AC or the code segment has changed: set ctx, sc, xsc and mode accordingly. */
void soft_update_context(struct soft_cpu *c);

/*
 * CR0 or CR4 has changed: what SSE and x87 instructions raise before anything else
 * (SDM 3A 2.5, table 2-2; 3A 13.1). soft_update_context() calls it.
 */
static inline void soft_update_fpu(struct soft_cpu *c)
{
	u8 nm = c->cr0 & X86_CR0_TS ? VEC_NM : 0;

	c->fpu_trap = c->cr0 & X86_CR0_EM ? VEC_NM : nm;
	c->sse_trap = c->cr0 & X86_CR0_EM || !(c->cr4 & X86_CR4_OSFXSR) ? VEC_UD : nm;
}

/* --- memory (mem.c; the fast paths are in soft-mem.h) --- */

/*
 * Load or store `len` (1 to 32) bytes at a linear address, any alignment, MMIO too.
 * 0, or SOFT_FAULT with c->fault set. The loaded bytes are in c->val, zero-extended.
 * `op` is the instruction in hand (for the clock), NULL from outside of one.
 */
int soft_load_slow(struct soft_cpu *c, const struct soft_op *op, u64 va, u32 len);
int soft_store_slow(struct soft_cpu *c, const struct soft_op *op, u64 va, const void *data, u32 len);
/* May `len` bytes at va be written by this instruction? Before a read-modify-write or a push that must not half happen. */
int soft_check_write(struct soft_cpu *c, const struct soft_op *op, u64 va, u32 len);
/*
 * With a memory model, for strings: the host address of bytes of one line that have a shortcut, seen by the model as
 * part of a REP stream. NULL: one element has to be accessed otherwise first.
 */
void *soft_line_pointer(struct soft_cpu *c, const struct soft_op *op, u64 va, u32 len, bool write);
/*
 * After a translation that failed: an address that is not canonical gives #SS instead of #GP if it is relative to
 * the stack (SDM 3A 6.15): by RSP or RBP as base of the operand, overrides of DS and the like
 * notwithstanding, or by what pushes and pops. What loads and stores by the functions above has it done. Returns SOFT_FAULT.
 */
int soft_stack_fault(struct soft_cpu *c, const struct soft_op *op, u64 va);
/* The same with supervisor rights whatever the CPL (descriptor tables, TSS: SDM 3A 4.6.1 "implicit"). */
int soft_load_system(struct soft_cpu *c, const struct soft_op *op, u64 va, void *buf, u32 len);
int soft_store_system(struct soft_cpu *c, const struct soft_op *op, u64 va, const void *buf, u32 len);
/* The offset of op's memory operand, segment base added: the slow part of soft_ea(). */
u64 soft_ea_slow(const struct soft_cpu *c, const struct soft_op *op, u64 offset);

/* --- translation (mmu.c, tlb.c) --- */

/*
 * Translate one address for a data access or fetch by the current context (or as a
 * supervisor's implicit access, with `system`), through the TLB, walking on a miss:
 * counts, charges, sets A and D, takes EPT violations, installs shortcuts. The
 * access must not cross a page. 0, or SOFT_FAULT with c->fault set: #PF, or #GP(0) for
 * an address that is not canonical (#SS(0) for stack references: the caller's).
 */
int soft_translate(struct soft_cpu *c, u64 va, enum soft_access access, bool system, struct soft_xlat *x);
/* For a debugger or a dump: no side effects at all; false if not mapped. */
bool soft_peek(struct soft_cpu *c, u64 va, gpa_t *gpa);
/* The same for what is there: false if not all of it is mapped RAM. */
bool soft_peek_bytes(struct soft_cpu *c, u64 va, void *to, u64 len);
int soft_tlb_create(struct soft_cpu *c);
void soft_tlb_destroy(struct soft_cpu *c);
/* Flushes, each exactly as far as SDM 3A 4.10.4.1 demands. `pcid` counts with CR4.PCIDE only. */
void soft_flush_page(struct soft_cpu *c, u64 va, enum soft_flush why);		/* INVLPG: current PCID and globals */
void soft_flush_page_pcid(struct soft_cpu *c, u64 va, u16 pcid);		/* INVPCID type 0 */
void soft_flush_pcid(struct soft_cpu *c, u16 pcid, enum soft_flush why);	/* all but globals of that PCID */
void soft_flush_nonglobal(struct soft_cpu *c, enum soft_flush why);		/* every PCID, not the globals */
void soft_flush_all(struct soft_cpu *c, enum soft_flush why);
/*
 * Changes of CR0.WP, CR4.SMEP, CR4.SMAP and EFER.NXE that flush nothing still call
 * soft_drop_shortcuts(): a shortcut remembers the rights of its time. CR0.PG, CR4.PGE, PAE
 * and PSE (any change), PCIDE (1 to 0) and SMEP (0 to 1) call soft_flush_all().
 */
/* CR3 is loaded: flush as bit 63 and PCIDE say, drop all shortcuts; c->cr3 is set by this. The caller has checked for #GP. */
void soft_load_cr3(struct soft_cpu *c, u64 value);
/* Drop every shortcut (of data and fetch) without touching the TLB. */
void soft_drop_shortcuts(struct soft_cpu *c);
/* A page gets decoded code: no vCPU may keep a write shortcut to it. */
void soft_page_is_code(struct soft_vm *svm, struct soft_page *page);
/* The second level (second-level.c): page of a gpa, NULL if not RAM; hva may be NULL. */
struct soft_page *soft_page_of(struct soft_vm *svm, gpa_t gpa, u8 **hva);
/* engine_ops.gpa_lowered: vm->engine_data is the struct soft_vm. */
int soft_gpa_lowered(struct vm *vm, gpa_t gpa, u64 len, enum gpa_rights left);
/* engine_ops.gpa_written. */
void soft_gpa_written(struct vm *vm, gpa_t gpa, u64 len);
/* engine_ops.dump: how full the TLBs are, pending events, the engine's counters. dump.c */
char *soft_dump(struct vcpu *vcpu);
/* Snapshot: the TLB of a vCPU as bytes; shortcuts are not part of it. */
void soft_tlb_save(const struct soft_cpu *c, GByteArray *out);
bool soft_tlb_restore(struct soft_cpu *c, const u8 *data, size_t len);

/* --- blocks (block.c) --- */

int soft_blocks_create(struct soft_vm *svm);
void soft_blocks_destroy(struct soft_vm *svm);
/* Bytes [off, off + len) of a page with code were written (by anyone: a vCPU, a device, the loader). */
void soft_code_written(struct soft_vm *svm, struct soft_page *page, u32 off, u32 len);

/* --- the CPU (run.c, interrupt.c, segment.c, msr.c, state.c, clock.c) --- */

enum run_exit soft_run(struct vcpu *vcpu, u64 until);
/*
 * Deliver an exception, interrupt or software interrupt through the IDT or IVT: pushes,
 * switches stacks, loads CS:RIP; handles nested faults (#DF, then shutdown) itself.
 * `return_rip` is what is pushed. SOFT_OK, or SOFT_LEAVE with c->leave = RUN_SHUTDOWN.
 */
enum soft_event { EVENT_FAULT, EVENT_TRAP, EVENT_INTERRUPT, EVENT_NMI, EVENT_SOFT_INT, EVENT_INT1 };
int soft_deliver(struct soft_cpu *c, enum soft_event kind, const struct soft_fault *fault, u64 return_rip);
void soft_get_state(struct soft_cpu *c, struct x86_state *s);
void soft_set_state(struct soft_cpu *c, const struct x86_state *s);
/* RDMSR and WRMSR; false = #GP. */
bool soft_rdmsr(struct soft_cpu *c, u32 msr, u64 *value);
bool soft_wrmsr(struct soft_cpu *c, u32 msr, u64 value);

#endif
