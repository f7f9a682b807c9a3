// SPDX-License-Identifier: GPL-2.0-only
#include <string.h>

#include "x86/cr.h"
#include "x86/msr.h"
#include "x86/state.h"

/* Descriptor attributes: type, S, DPL 0, P and, from bit 12, AVL, L, D/B, G. */
#define ATTR_CODE16	0x009bu		/* execute/read, accessed */
#define ATTR_DATA16	0x0093u		/* read/write, accessed, up */
#define ATTR_CODE32	0xc09bu
#define ATTR_CODE64	0xa09bu
#define ATTR_DATA32	0xc093u
#define ATTR_LDT	0x0082u
#define ATTR_TSS_BUSY	0x008bu

/* Selectors of the boot GDT (machine/bootparams.c writes it). */
#define SEL_CODE32	0x08u
#define SEL_CODE64	0x10u		/* __BOOT_CS of Linux's boot.rst */
#define SEL_DATA	0x18u		/* __BOOT_DS */

/* Byte offsets in the FXSAVE area (SDM 1 table 10-2). */
#define FX_FCW		0
#define FX_FTW		4
#define FX_MXCSR	24
#define FX_MXCSR_MASK	28

static void set_segment(struct x86_segment *seg, u16 selector, u64 base, u32 limit, u16 attr)
{
	seg->selector = selector;
	seg->base = base;
	seg->limit = limit;
	seg->attr = attr;
	seg->unusable = false;
}

static void set_data_segments(struct x86_state *s, u16 selector, u32 limit, u16 attr)
{
	set_segment(&s->ds, selector, 0, limit, attr);
	set_segment(&s->es, selector, 0, limit, attr);
	set_segment(&s->fs, selector, 0, limit, attr);
	set_segment(&s->gs, selector, 0, limit, attr);
	set_segment(&s->ss, selector, 0, limit, attr);
}

static void put_le16(u8 *p, u16 v)
{
	p[0] = (u8)v;
	p[1] = (u8)(v >> 8);
}

static void put_le32(u8 *p, u32 v)
{
	put_le16(p, (u16)v);
	put_le16(p + 2, (u16)(v >> 16));
}

void x86_state_reset(struct x86_state *s)
{
	memset(s, 0, sizeof(*s));
	s->gpr[X86_RDX] = 0x600;	/* "000n06xxH" of the table */
	s->rip = 0xfff0;
	s->rflags = X86_EFLAGS_FIXED;
	/*
	 * The table gives CS the rights of a data segment; execute/read is what a
	 * virtual machine needs (SDM 3C 27.3.1.2: CS must be a code segment) and
	 * real mode cannot tell them apart.
	 */
	set_segment(&s->cs, 0xf000, 0xffff0000, 0xffff, ATTR_CODE16);
	set_data_segments(s, 0, 0xffff, ATTR_DATA16);
	set_segment(&s->ldt, 0, 0, 0xffff, ATTR_LDT);
	set_segment(&s->tr, 0, 0, 0xffff, ATTR_TSS_BUSY);
	s->gdt.limit = 0xffff;
	s->idt.limit = 0xffff;
	s->cr0 = X86_CR0_CD | X86_CR0_NW | X86_CR0_ET;
	s->pat = PAT_RESET;
	put_le16(s->fxsave + FX_FCW, 0x0040);
	s->fxsave[FX_FTW] = 0xff;	/* tags 5555H (valid zero), in FXSAVE's one-bit form */
	put_le32(s->fxsave + FX_MXCSR, 0x1f80);
	put_le32(s->fxsave + FX_MXCSR_MASK, 0xffff);
}

void x86_state_sipi(struct x86_state *s, u8 vector, u32 signature)
{
	x86_state_reset(s);
	s->gpr[X86_RDX] = signature;
	s->rip = 0;
	set_segment(&s->cs, (u16)(vector << 8), (u64)vector << 12, 0xffff, ATTR_CODE16);
}

void x86_state_long(struct x86_state *s, u64 rip, u64 rsi, u64 cr3, u64 gdt, u16 gdt_limit)
{
	x86_state_reset(s);
	s->gpr[X86_RDX] = 0;
	s->gpr[X86_RSI] = rsi;
	s->rip = rip;
	set_segment(&s->cs, SEL_CODE64, 0, 0xffffffff, ATTR_CODE64);
	set_data_segments(s, SEL_DATA, 0xffffffff, ATTR_DATA32);
	s->ldt.unusable = true;
	s->gdt.base = gdt;
	s->gdt.limit = gdt_limit;
	s->idt.limit = 0;	/* none: a fault before the kernel has its own is a triple fault */
	s->cr0 = X86_CR0_PE | X86_CR0_ET | X86_CR0_NE | X86_CR0_PG;
	s->cr3 = cr3;
	s->cr4 = X86_CR4_PAE;
	s->efer = X86_EFER_LME | X86_EFER_LMA;
}

void x86_state_protected(struct x86_state *s, u32 eip, u32 eax, u32 ebx, u64 gdt, u16 gdt_limit)
{
	x86_state_reset(s);
	s->gpr[X86_RDX] = 0;
	s->gpr[X86_RAX] = eax;
	s->gpr[X86_RBX] = ebx;
	s->rip = eip;
	set_segment(&s->cs, SEL_CODE32, 0, 0xffffffff, ATTR_CODE32);
	set_data_segments(s, SEL_DATA, 0xffffffff, ATTR_DATA32);
	s->ldt.unusable = true;
	s->gdt.base = gdt;
	s->gdt.limit = gdt_limit;
	s->idt.limit = 0;
	s->cr0 = X86_CR0_PE | X86_CR0_ET;
}
