// SPDX-License-Identifier: GPL-2.0-only
/* CPUID between KVM's structures and ours. */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/log.h"
#include "kvm/kvm.h"
#include "x86/msr.h"

int kvm_cpuid_read(int dev, struct cpuid_table *table)
{
	u32 max = CPUID_MAX_ENTRIES, i;
	struct kvm_cpuid2 *kc = g_malloc0(sizeof(*kc) + max * sizeof(kc->entries[0]));
	int err = 0;

	kc->nent = max;
	if (ioctl(dev, KVM_GET_SUPPORTED_CPUID, kc) < 0) {
		err = -errno;
		goto out;
	}
	table->nr = 0;
	for (i = 0; i < kc->nent && table->nr < CPUID_MAX_ENTRIES; i++) {
		const struct kvm_cpuid_entry2 *k = &kc->entries[i];

		table->entry[table->nr++] = (struct cpuid_entry) {
			.leaf = k->function, .subleaf = k->index,
			.has_subleaf = k->flags & KVM_CPUID_FLAG_SIGNIFCANT_INDEX,
			.eax = k->eax, .ebx = k->ebx, .ecx = k->ecx, .edx = k->edx,
		};
	}
out:
	g_free(kc);
	return err;
}

/* One MSR of the model. A KVM that does not know it leaves the guest with KVM's own value. */
static bool set_msr(int vcpu_fd, u32 msr, u64 value)
{
	struct kvm_msrs *m = g_malloc0(sizeof(*m) + sizeof(m->entries[0]));
	bool ok;

	m->nmsrs = 1;
	m->entries[0].index = msr;
	m->entries[0].data = value;
	ok = ioctl(vcpu_fd, KVM_SET_MSRS, m) == 1;
	g_free(m);
	return ok;
}

/*
 * The constant MSRs that belong to the CPU model, where KVM's reset value is of
 * the host or would change what the guest does: without the fast-string bit Linux
 * drops ERMS and REP_GOOD on an Intel CPU (early_init_intel()), and without
 * HWCR[24] it calls an AMD CPU's TSC a firmware bug (bsp_init_amd()).
 */
static void set_model_msrs(int vcpu_fd, const struct cpuid_table *table)
{
	const struct cpuid_entry *vendor = cpuid_find(table, 0, 0);

	if (table->arch_capabilities &&
	    !set_msr(vcpu_fd, MSR_IA32_ARCH_CAPABILITIES, table->arch_capabilities))
		fb_warn("kvm: IA32_ARCH_CAPABILITIES is KVM's, not the CPU model's");
	if (vendor && !memcmp(&vendor->ebx, "Genu", 4))
		set_msr(vcpu_fd, MSR_IA32_MISC_ENABLE, MISC_ENABLE_FAST_STRING |
			MISC_ENABLE_BTS_UNAVAIL | MISC_ENABLE_PEBS_UNAVAIL);
	else
		set_msr(vcpu_fd, MSR_AMD_HWCR, AMD_HWCR_TSC_FREQ_SEL);
}

int kvm_cpuid_set(int vcpu_fd, const struct cpuid_table *table)
{
	struct kvm_cpuid2 *kc = g_malloc0(sizeof(*kc) + table->nr * sizeof(kc->entries[0]));
	int err = 0;
	u32 i;

	kc->nent = table->nr;
	for (i = 0; i < table->nr; i++) {
		const struct cpuid_entry *e = &table->entry[i];

		kc->entries[i] = (struct kvm_cpuid_entry2) {
			.function = e->leaf, .index = e->subleaf,
			.flags = e->has_subleaf ? KVM_CPUID_FLAG_SIGNIFCANT_INDEX : 0,
			.eax = e->eax, .ebx = e->ebx, .ecx = e->ecx, .edx = e->edx,
		};
	}
	if (ioctl(vcpu_fd, KVM_SET_CPUID2, kc) < 0) {
		err = -errno;
		fb_err("kvm: KVM_SET_CPUID2 with %u entries: %s", table->nr, strerror(-err));
	} else {
		set_model_msrs(vcpu_fd, table);
	}
	g_free(kc);
	return err;
}
