// SPDX-License-Identifier: GPL-2.0-only
/* CPUID between KVM's structures and ours. */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/log.h"
#include "kvm/kvm.h"

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
	}
	g_free(kc);
	return err;
}
