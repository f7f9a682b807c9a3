/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Control registers, EFER and RFLAGS by bit (SDM 3A 2.3, 2.5; APM vol. 2 3.1). No
 * state.
 */
#ifndef X86_CR_H
#define X86_CR_H

#define X86_CR0_PE		(1ull << 0)
#define X86_CR0_MP		(1ull << 1)
#define X86_CR0_EM		(1ull << 2)
#define X86_CR0_TS		(1ull << 3)
#define X86_CR0_ET		(1ull << 4)
#define X86_CR0_NE		(1ull << 5)
#define X86_CR0_WP		(1ull << 16)
#define X86_CR0_AM		(1ull << 18)
#define X86_CR0_NW		(1ull << 29)
#define X86_CR0_CD		(1ull << 30)
#define X86_CR0_PG		(1ull << 31)

#define X86_CR3_PCID_MASK	0xfffull
#define X86_CR3_NOFLUSH		(1ull << 63)

#define X86_CR4_VME		(1ull << 0)
#define X86_CR4_PVI		(1ull << 1)
#define X86_CR4_TSD		(1ull << 2)
#define X86_CR4_DE		(1ull << 3)
#define X86_CR4_PSE		(1ull << 4)
#define X86_CR4_PAE		(1ull << 5)
#define X86_CR4_MCE		(1ull << 6)
#define X86_CR4_PGE		(1ull << 7)
#define X86_CR4_PCE		(1ull << 8)
#define X86_CR4_OSFXSR		(1ull << 9)
#define X86_CR4_OSXMMEXCPT	(1ull << 10)
#define X86_CR4_UMIP		(1ull << 11)
#define X86_CR4_LA57		(1ull << 12)
#define X86_CR4_FSGSBASE	(1ull << 16)
#define X86_CR4_PCIDE		(1ull << 17)
#define X86_CR4_OSXSAVE		(1ull << 18)
#define X86_CR4_SMEP		(1ull << 20)
#define X86_CR4_SMAP		(1ull << 21)

#define X86_EFER_SCE		(1ull << 0)
#define X86_EFER_LME		(1ull << 8)
#define X86_EFER_LMA		(1ull << 10)
#define X86_EFER_NXE		(1ull << 11)

#define X86_EFLAGS_CF		(1ull << 0)
#define X86_EFLAGS_FIXED	(1ull << 1)	/* always 1 */
#define X86_EFLAGS_PF		(1ull << 2)
#define X86_EFLAGS_AF		(1ull << 4)
#define X86_EFLAGS_ZF		(1ull << 6)
#define X86_EFLAGS_SF		(1ull << 7)
#define X86_EFLAGS_TF		(1ull << 8)
#define X86_EFLAGS_IF		(1ull << 9)
#define X86_EFLAGS_DF		(1ull << 10)
#define X86_EFLAGS_OF		(1ull << 11)
#define X86_EFLAGS_IOPL		(3ull << 12)
#define X86_EFLAGS_NT		(1ull << 14)
#define X86_EFLAGS_RF		(1ull << 16)
#define X86_EFLAGS_VM		(1ull << 17)
#define X86_EFLAGS_AC		(1ull << 18)
#define X86_EFLAGS_ID		(1ull << 21)

/* Page-table entry bits (SDM 3A 4.5). */
#define X86_PTE_P		(1ull << 0)
#define X86_PTE_RW		(1ull << 1)
#define X86_PTE_US		(1ull << 2)
#define X86_PTE_A		(1ull << 5)
#define X86_PTE_D		(1ull << 6)
#define X86_PTE_PS		(1ull << 7)
#define X86_PTE_G		(1ull << 8)
#define X86_PTE_NX		(1ull << 63)
#define X86_PTE_ADDR		0x000ffffffffff000ull

#endif
