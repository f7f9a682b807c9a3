/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CPUID leaves and feature bits by number (SDM vol. 2A, CPUID; APM vol. 3 appendix
 * E; KVM's from Documentation/virt/kvm/x86/cpuid.rst). No state.
 */
#ifndef X86_CPUID_BITS_H
#define X86_CPUID_BITS_H

#define CPUID_LEAF_VENDOR		0x0u
#define CPUID_LEAF_FEATURES		0x1u
#define CPUID_LEAF_CACHES		0x4u
#define CPUID_LEAF_MWAIT		0x5u
#define CPUID_LEAF_POWER		0x6u
#define CPUID_LEAF_EXT_FEATURES		0x7u
#define CPUID_LEAF_TOPOLOGY		0xbu
#define CPUID_LEAF_XSAVE		0xdu
#define CPUID_LEAF_TSC			0x15u
#define CPUID_LEAF_FREQUENCY		0x16u
#define CPUID_LEAF_TOPOLOGY_V2		0x1fu
#define CPUID_LEAF_KVM			0x40000000u
#define CPUID_LEAF_KVM_FEATURES		0x40000001u
#define CPUID_LEAF_EXT			0x80000000u
#define CPUID_LEAF_EXT_1		0x80000001u
#define CPUID_LEAF_BRAND		0x80000002u	/* to 0x80000004 */
#define CPUID_LEAF_AMD_L1		0x80000005u
#define CPUID_LEAF_L2			0x80000006u
#define CPUID_LEAF_POWER_EXT		0x80000007u
#define CPUID_LEAF_SIZES		0x80000008u
#define CPUID_LEAF_AMD_CACHES		0x8000001du
#define CPUID_LEAF_AMD_TOPOLOGY		0x8000001eu
#define CPUID_LEAF_AMD_EXT_2		0x80000021u
#define CPUID_LEAF_AMD_TOPOLOGY_V2	0x80000026u

/* Leaf 1 */
#define CPUID_1_ECX_MONITOR		(1u << 3)
#define CPUID_1_ECX_PCID		(1u << 17)
#define CPUID_1_ECX_X2APIC		(1u << 21)
#define CPUID_1_ECX_TSC_DEADLINE	(1u << 24)
#define CPUID_1_ECX_OSXSAVE		(1u << 27)
#define CPUID_1_ECX_HYPERVISOR		(1u << 31)
#define CPUID_1_EDX_HTT			(1u << 28)
/* Leaf 6 */
#define CPUID_6_EAX_ARAT		(1u << 2)
/* Leaf 7, subleaf 0 */
#define CPUID_7_EDX_ARCH_CAPABILITIES	(1u << 29)
/* Leaf 0x80000001 */
#define CPUID_EXT1_ECX_CMP_LEGACY	(1u << 1)
#define CPUID_EXT1_ECX_TOPOEXT		(1u << 22)
/* Leaf 0x80000007 */
#define CPUID_EXT7_EDX_INVARIANT_TSC	(1u << 8)

/* Level types: leaves 0xB and 0x1F; AMD's 0x80000026 means other things by them. */
#define CPUID_LEVEL_SMT			1u
#define CPUID_LEVEL_CORE		2u
#define CPUID_AMD_LEVEL_CORE		1u
#define CPUID_AMD_LEVEL_COMPLEX		2u
#define CPUID_AMD_LEVEL_SOCKET		4u

/* Cache types: leaf 4 and 0x8000001D */
#define CPUID_CACHE_DATA		1u
#define CPUID_CACHE_CODE		2u
#define CPUID_CACHE_UNIFIED		3u

/* Leaf 0x40000001 EAX */
#define KVM_FEATURE_CLOCKSOURCE_BIT		(1u << 0)
#define KVM_FEATURE_NOP_IO_DELAY_BIT		(1u << 1)
#define KVM_FEATURE_CLOCKSOURCE2_BIT		(1u << 3)
#define KVM_FEATURE_ASYNC_PF_BIT		(1u << 4)
#define KVM_FEATURE_STEAL_TIME_BIT		(1u << 5)
#define KVM_FEATURE_PV_EOI_BIT			(1u << 6)
#define KVM_FEATURE_PV_UNHALT_BIT		(1u << 7)
#define KVM_FEATURE_PV_TLB_FLUSH_BIT		(1u << 9)
#define KVM_FEATURE_PV_SEND_IPI_BIT		(1u << 11)
#define KVM_FEATURE_MSI_EXT_DEST_ID_BIT		(1u << 15)
#define KVM_FEATURE_CLOCKSOURCE_STABLE_BIT	(1u << 24)

#endif
