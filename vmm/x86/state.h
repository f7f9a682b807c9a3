/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The architectural state of one vCPU in a form both engines can load and
 * store. Layouts follow SDM vol. 3A chapter 3 (segments) and vol. 1 chapter 10
 * (FXSAVE); no engine's structures appear here.
 */
#ifndef X86_STATE_H
#define X86_STATE_H

#include "base/types.h"

enum x86_gpr {
	X86_RAX, X86_RCX, X86_RDX, X86_RBX, X86_RSP, X86_RBP, X86_RSI, X86_RDI,
	X86_R8, X86_R9, X86_R10, X86_R11, X86_R12, X86_R13, X86_R14, X86_R15,
	NR_X86_GPRS
};

struct x86_segment {
	u16 selector;
	u16 attr;		/* access rights as in a descriptor: bits 0-7 type/S/DPL/P, 12-15 AVL/L/D/G */
	u32 limit;		/* in bytes, expanded */
	u64 base;
	bool unusable;
};

struct x86_table {
	u64 base;
	u16 limit;
};

struct x86_state {
	u64 gpr[NR_X86_GPRS];
	u64 rip, rflags;
	struct x86_segment cs, ds, es, fs, gs, ss, tr, ldt;
	struct x86_table gdt, idt;
	u64 cr0, cr2, cr3, cr4, efer;
	u64 star, lstar, cstar, sfmask, kernel_gs_base, tsc_aux, pat;
	u64 sysenter_cs, sysenter_esp, sysenter_eip;
	u8 fxsave[512] __attribute__((aligned(16)));
};

/* State after power-up or INIT (SDM 3A table 10-1 [9-1 in older editions]). */
void x86_state_reset(struct x86_state *s);
/*
 * INIT and start-up IPI: real mode at vector:0000 (SDM 3A 9.4.4.1). EDX tells the processor's
 * signature, EAX of CPUID leaf 1 (table 10-1 [9-1], "000n06xxH").
 */
void x86_state_sipi(struct x86_state *s, u8 vector, u32 signature);
/* Flat 64-bit mode at rip with page tables at cr3 and a GDT at gdt (Linux boot.rst, 64-bit entry: CS 0x10, DS 0x18). */
void x86_state_long(struct x86_state *s, u64 rip, u64 rsi, u64 cr3, u64 gdt, u16 gdt_limit);
/* Flat 32-bit protected mode without paging at eip (Multiboot 0.6.96 section 3.2). */
void x86_state_protected(struct x86_state *s, u32 eip, u32 eax, u32 ebx, u64 gdt, u16 gdt_limit);

#endif
