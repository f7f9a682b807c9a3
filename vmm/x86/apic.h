/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Local APIC and IOAPIC registers: offsets and fields; the MSRs are in msr.h (SDM vol. 3A
 * chapter 10, [11] in newer editions; 82093AA data sheet). No state, no code
 * with side effects.
 */
#ifndef X86_APIC_H
#define X86_APIC_H

#include "base/types.h"
#include "x86/msr.h"

#define APIC_BASE_DEFAULT	0xfee00000ull

/* Register offsets of the xAPIC page; x2APIC MSR = 0x800 + (offset >> 4). */
#define APIC_ID			0x020u
#define APIC_VERSION		0x030u
#define APIC_TPR		0x080u
#define APIC_APR		0x090u		/* arbitration priority: reserved since the Pentium 4 */
#define APIC_PPR		0x0a0u
#define APIC_EOI		0x0b0u
#define APIC_RRD		0x0c0u		/* remote read: reserved since the Pentium 4 */
#define APIC_LDR		0x0d0u
#define APIC_DFR		0x0e0u		/* xAPIC only */
#define APIC_SVR		0x0f0u
#define APIC_ISR		0x100u		/* to 0x170 */
#define APIC_TMR		0x180u		/* to 0x1f0 */
#define APIC_IRR		0x200u		/* to 0x270 */
#define APIC_ESR		0x280u
#define APIC_LVT_CMCI		0x2f0u
#define APIC_ICR		0x300u		/* 64 bits wide as an MSR */
#define APIC_ICR2		0x310u		/* xAPIC only */
#define APIC_LVT_TIMER		0x320u
#define APIC_LVT_THERMAL	0x330u
#define APIC_LVT_PERF		0x340u
#define APIC_LVT_LINT0		0x350u
#define APIC_LVT_LINT1		0x360u
#define APIC_LVT_ERROR		0x370u
#define APIC_TMICT		0x380u
#define APIC_TMCCT		0x390u
#define APIC_TDCR		0x3e0u
#define APIC_SELF_IPI		0x3f0u		/* x2APIC only */

/* Version register (10.4.8): integrated APIC, seven LVT entries, EOI broadcast can be suppressed. */
#define APIC_VERSION_NUMBER	0x14u
#define APIC_VERSION_MAXLVT(n)	((n) << 16)
#define APIC_VERSION_DIRECTED	BIT(24)

/* Spurious vector register (10.9). */
#define APIC_SVR_VECTOR		0xffu
#define APIC_SVR_ENABLE		BIT(8)
#define APIC_SVR_FOCUS		BIT(9)
#define APIC_SVR_DIRECTED	BIT(12)		/* no EOI broadcast (10.8.5) */

/* Error status register (10.5.3). */
#define APIC_ESR_SEND_ILLEGAL	BIT(5)
#define APIC_ESR_RECV_ILLEGAL	BIT(6)
#define APIC_ESR_REGISTER	BIT(7)

/* Local vector table entries (10.5.1). */
#define APIC_LVT_VECTOR		0xffu
#define APIC_LVT_DELIVERY	0x700u
#define APIC_LVT_PENDING	BIT(12)		/* read only */
#define APIC_LVT_POLARITY	BIT(13)
#define APIC_LVT_REMOTE_IRR	BIT(14)		/* read only */
#define APIC_LVT_LEVEL		BIT(15)
#define APIC_LVT_MASKED		BIT(16)
#define APIC_LVT_MODE		(BIT(17) | BIT(18))
#define APIC_LVT_ONESHOT	0u
#define APIC_LVT_PERIODIC	BIT(17)
#define APIC_LVT_DEADLINE	BIT(18)

/* Interrupt command register (10.6.1). */
#define APIC_ICR_VECTOR		0xffu
#define APIC_ICR_DELIVERY_SHIFT	8
#define APIC_ICR_LOGICAL	BIT(11)
#define APIC_ICR_PENDING	BIT(12)		/* read only, reads 0: delivery is instant to the sender */
#define APIC_ICR_ASSERT		BIT(14)
#define APIC_ICR_LEVEL		BIT(15)
#define APIC_ICR_SHORTHAND_SHIFT 18
#define APIC_ICR_WRITABLE	0x000ccfffu

/* Destination format register, model in bits 28-31 (10.6.2.2). */
#define APIC_DFR_FLAT		0xffffffffu
#define APIC_DFR_CLUSTER	0x0fffffffu

#define APIC_TDCR_WRITABLE	0x0bu
#define APIC_FIRST_VECTOR	16		/* 0 to 15 are illegal */
#define APIC_BROADCAST		0xffu
#define X2APIC_BROADCAST	0xffffffffu

/* MSI address and data (10.11); bits 5-11 extend the destination, as KVM_FEATURE_MSI_EXT_DEST_ID says. */
#define MSI_ADDR_BASE		0xfee00000ull
#define MSI_ADDR_LOGICAL	BIT(2)
#define MSI_ADDR_HINT		BIT(3)
#define MSI_DATA_DELIVERY_SHIFT	8
#define MSI_DATA_ASSERT		BIT(14)
#define MSI_DATA_LEVEL		BIT(15)

/* IOAPIC (82093AA section 3; the EOI register came with version 0x20). */
#define IOAPIC_REGSEL		0x00u
#define IOAPIC_WIN		0x10u
#define IOAPIC_EOI		0x40u
#define IOAPIC_REG_ID		0x00u
#define IOAPIC_REG_VERSION	0x01u
#define IOAPIC_REG_ARB		0x02u
#define IOAPIC_REG_REDIR	0x10u
#define IOAPIC_VERSION_NUMBER	0x20u

#define IOAPIC_RTE_VECTOR	0xffull
#define IOAPIC_RTE_DELIVERY_SHIFT 8
#define IOAPIC_RTE_LOGICAL	BIT_ULL(11)
#define IOAPIC_RTE_PENDING	BIT_ULL(12)	/* read only, reads 0 */
#define IOAPIC_RTE_REMOTE_IRR	BIT_ULL(14)	/* read only */
#define IOAPIC_RTE_LEVEL	BIT_ULL(15)
#define IOAPIC_RTE_MASKED	BIT_ULL(16)
#define IOAPIC_RTE_WRITABLE	0xfffe00000001afffull	/* with the extended destination, bits 49-55 */

#endif
