// SPDX-License-Identifier: GPL-2.0-only
/* The kvm engine: probe, VM, memory slots and the operations table. */
#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "core/host.h"
#include "kvm/kvm.h"

/*
 * Where Intel without unrestricted guest keeps its real-mode TSS and identity
 * map (api.rst, KVM_SET_TSS_ADDR): below the BIOS area's top, outside RAM.
 */
#define KVM_TSS_ADDR		0xfffbd000ul
#define KVM_IDENTITY_ADDR	0xfffbc000ull
/* IOAPIC pins whose EOIs come back as KVM_EXIT_IOAPIC_EOI. */
#define KVM_IOAPIC_ROUTES	24

u64 kvm_host_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * NSEC_PER_SEC + (u64)ts.tv_nsec;
}

struct kvm_need {
	int cap;
	const char *name, *what_for;
};

/* Without these nothing runs. */
static const struct kvm_need kvm_needs[] = {
	{ KVM_CAP_USER_MEMORY, "USER_MEMORY", "guest RAM" },
	{ KVM_CAP_IMMEDIATE_EXIT, "IMMEDIATE_EXIT", "kicks without a lost wake-up" },
	{ KVM_CAP_MP_STATE, "MP_STATE", "application processors" },
	{ KVM_CAP_EXT_CPUID, "EXT_CPUID", "the CPU model" },
	{ KVM_CAP_X86_USER_SPACE_MSR, "X86_USER_SPACE_MSR", "counting MSR exits" },
	{ KVM_CAP_SET_TSS_ADDR, "SET_TSS_ADDR", "real mode" },
};

static int kvm_open(char *why, size_t why_len)
{
	int fd = open("/dev/kvm", O_RDWR | O_CLOEXEC), version, err;

	if (fd < 0) {
		err = errno;
		if (err == ENOENT)
			snprintf(why, why_len, "there is no /dev/kvm: load kvm_intel or kvm_amd, or switch "
				 "virtualisation on in the firmware or in the outer hypervisor");
		else if (err == EACCES)
			snprintf(why, why_len, "/dev/kvm may not be opened: be root or join its group");
		else
			snprintf(why, why_len, "/dev/kvm: %s", strerror(err));
		return -err;
	}
	version = ioctl(fd, KVM_GET_API_VERSION, 0);
	if (version != KVM_API_VERSION) {
		snprintf(why, why_len, "/dev/kvm speaks API version %d, not %d", version, KVM_API_VERSION);
		close(fd);
		return -ENODEV;
	}
	return fd;
}

static enum cpu_vendor kvm_vendor(const struct cpuid_table *host)
{
	const struct cpuid_entry *e = cpuid_find(host, 0, 0);

	/* "Auth" of AuthenticAMD; Hygon's chips have the same leaves. */
	return e && (e->ebx == 0x68747541 || e->ebx == 0x6f677948) ? VENDOR_AMD : VENDOR_INTEL;
}

/* A throw-away VM and vCPU tell the TSC's rate and prove that VMs can be made at all. */
static int kvm_probe_vm(int dev, struct engine_caps *caps, char *why, size_t why_len)
{
	int vm = ioctl(dev, KVM_CREATE_VM, 0), vcpu, khz, err = 0;

	if (vm < 0) {
		err = -errno;
		snprintf(why, why_len, "KVM_CREATE_VM: %s", strerror(-err));
		return err;
	}
	vcpu = ioctl(vm, KVM_CREATE_VCPU, 0);
	if (vcpu < 0) {
		err = -errno;
		snprintf(why, why_len, "KVM_CREATE_VCPU: %s", strerror(-err));
		goto out;
	}
	khz = ioctl(vcpu, KVM_GET_TSC_KHZ, 0);
	if (khz <= 0) {
		err = -EIO;
		snprintf(why, why_len, "KVM does not know the TSC's rate (KVM_GET_TSC_KHZ): the host's TSC is unstable");
	} else {
		caps->tsc_hz = (u64)khz * 1000;
	}
	close(vcpu);
out:
	close(vm);
	return err;
}

/*
 * Has the CPU hardware virtualization (SDM 3C 24.6 [23.6]: CPUID.1:ECX.VMX; APM 2 15.4:
 * CPUID 0x80000001:ECX.SVM)? There are KVMs that do without (kvm_pvm, in hosts
 * that are guests themselves): all ioctls work, but they run kernels made for
 * them only, and interpret any other one, at a speed at which it never boots.
 */
static bool kvm_cpu_virtualizes(void)
{
	unsigned int eax, ebx, ecx, edx;

	if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) && ecx & BIT(5))
		return true;
	return __get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx) && ecx & BIT(2);
}

static int kvm_probe(struct engine_caps *caps, char *why, size_t why_len)
{
	struct cpuid_table *host = g_new0(struct cpuid_table, 1);
	char uf_why[200];
	int dev, err = 0;
	size_t i;

	memset(caps, 0, sizeof(*caps));
	dev = kvm_open(why, why_len);
	if (dev < 0) {
		g_free(host);
		return dev;
	}
	if (!kvm_cpu_virtualizes()) {
		snprintf(why, why_len, "/dev/kvm is there, but this CPU shows neither VMX nor SVM: such a KVM interprets a "
			 "kernel that was not made for it; a host whose (virtual) CPU has one of them would do");
		close(dev);
		g_free(host);
		return -EOPNOTSUPP;
	}
	for (i = 0; i < ARRAY_SIZE(kvm_needs); i++) {
		if (ioctl(dev, KVM_CHECK_EXTENSION, kvm_needs[i].cap) > 0)
			continue;
		snprintf(why, why_len, "KVM lacks KVM_CAP_%s, needed for %s: a kernel of 5.10 or later has it",
			 kvm_needs[i].name, kvm_needs[i].what_for);
		err = -EOPNOTSUPP;
		goto out;
	}
	err = kvm_cpuid_read(dev, host);
	if (!err)
		err = kvm_probe_vm(dev, caps, why, why_len);
	else
		snprintf(why, why_len, "KVM_GET_SUPPORTED_CPUID: %s", strerror(-err));
	if (err)
		goto out;
	caps->vendor = kvm_vendor(host);
	caps->apic_kernel = ioctl(dev, KVM_CHECK_EXTENSION, KVM_CAP_SPLIT_IRQCHIP) > 0;
	caps->binary_stats = ioctl(dev, KVM_CHECK_EXTENSION, KVM_CAP_BINARY_STATS_FD) > 0;
	caps->max_vcpus = (u32)MAX(ioctl(dev, KVM_CHECK_EXTENSION, KVM_CAP_MAX_VCPUS), 1);
	caps->ept_serve = userfault_probe(false, uf_why, sizeof(uf_why)) == 0;
	caps->ept_protect = userfault_probe(true, uf_why, sizeof(uf_why)) == 0;
out:
	g_free(host);
	close(dev);
	return err;
}

static int kvm_enable_cap(int fd, u32 cap, u64 arg)
{
	struct kvm_enable_cap enable = { .cap = cap, .args = { arg } };

	return ioctl(fd, KVM_ENABLE_CAP, &enable) < 0 ? -errno : 0;
}

static int kvm_vm_setup(struct vm *vm, struct kvm_vm *kvm)
{
	u64 identity = KVM_IDENTITY_ADDR;
	int err;

	if (ioctl(kvm->fd, KVM_SET_TSS_ADDR, KVM_TSS_ADDR) < 0 ||
	    ioctl(kvm->fd, KVM_SET_IDENTITY_MAP_ADDR, &identity) < 0) {
		err = -errno;
		fb_err("kvm: placing the real-mode TSS: %s", strerror(-err));
		return err;
	}
	/* MSRs that KVM does not know come up to vcpu_msr(), which counts and refuses them. */
	err = kvm_enable_cap(kvm->fd, KVM_CAP_X86_USER_SPACE_MSR, KVM_MSR_EXIT_REASON_UNKNOWN);
	if (err) {
		fb_err("kvm: KVM_CAP_X86_USER_SPACE_MSR: %s", strerror(-err));
		return err;
	}
	if (vm->apic != APIC_KERNEL)
		return 0;
	err = kvm_enable_cap(kvm->fd, KVM_CAP_SPLIT_IRQCHIP, KVM_IOAPIC_ROUTES);
	if (err)
		fb_err("kvm: split irqchip: %s", strerror(-err));
	return err;
}

static int kvm_vm_create(struct vm *vm)
{
	struct kvm_vm *kvm = g_new0(struct kvm_vm, 1);
	char why[256];
	int err;

	vm->engine_data = kvm;
	kvm->fd = kvm->stats.fd = -1;
	kvm->dev = kvm_open(why, sizeof(why));
	if (kvm->dev < 0) {
		fb_err("kvm: %s", why);
		return kvm->dev;
	}
	kvm->fd = ioctl(kvm->dev, KVM_CREATE_VM, 0);
	kvm->run_size = ioctl(kvm->dev, KVM_GET_VCPU_MMAP_SIZE, 0);
	if (kvm->fd < 0 || kvm->run_size < (int)sizeof(struct kvm_run)) {
		err = kvm->fd < 0 ? -errno : -EIO;
		fb_err("kvm: creating a VM: %s", strerror(-err));
		return err;
	}
	err = kvm_cpuid_read(kvm->dev, &kvm->host_cpuid);
	if (!err)
		err = kvm_vm_setup(vm, kvm);
	if (!err)
		err = kvm_stats_open(&kvm->stats, kvm->fd);
	if (!err && vm->inject.ept_serve)
		err = userfault_create(vm, &kvm->userfault);
	kvm->start_ns = kvm_host_ns();
	return err;
}

static void kvm_vm_destroy(struct vm *vm)
{
	struct kvm_vm *kvm = vm->engine_data;

	if (!kvm)
		return;
	if (kvm->userfault)
		userfault_destroy(kvm->userfault);
	kvm_stats_close(&kvm->stats);
	if (kvm->fd >= 0)
		close(kvm->fd);
	if (kvm->dev >= 0)
		close(kvm->dev);
	g_free(kvm);
	vm->engine_data = NULL;
}

static int kvm_memslot_add(struct vm *vm, const struct memslot *slot)
{
	struct kvm_vm *kvm = vm->engine_data;
	struct kvm_userspace_memory_region region = {
		.slot = kvm->nr_slots,
		.guest_phys_addr = slot->gpa,
		.memory_size = slot->size,
		.userspace_addr = (u64)(uintptr_t)slot->guest_hva,
	};

	if (ioctl(kvm->fd, KVM_SET_USER_MEMORY_REGION, &region) < 0) {
		int err = -errno;

		fb_err("kvm: memory slot at 0x%llx: %s", (unsigned long long)slot->gpa, strerror(-err));
		return err;
	}
	kvm->nr_slots++;
	return kvm->userfault ? userfault_add(kvm->userfault, slot) : 0;
}

static int kvm_gpa_lowered(struct vm *vm, gpa_t gpa, u64 len, enum gpa_rights left)
{
	struct kvm_vm *kvm = vm->engine_data;

	return kvm->userfault ? userfault_lower(kvm->userfault, gpa, len, left) : -EOPNOTSUPP;
}

static int kvm_vm_start(struct vm *vm)
{
	struct kvm_vm *kvm = vm->engine_data;

	return kvm->userfault ? userfault_start(kvm->userfault) : 0;
}

static const struct cpuid_table *kvm_host_cpuid(struct vm *vm)
{
	struct kvm_vm *kvm = vm->engine_data;

	return &kvm->host_cpuid;
}

static int kvm_signal_msi(struct vm *vm, u64 addr, u32 data)
{
	struct kvm_vm *kvm = vm->engine_data;
	struct kvm_msi msi = {
		.address_lo = (u32)addr,
		.address_hi = (u32)(addr >> 32),
		.data = data,
	};

	/* 0: blocked by the guest, which is the guest's business. */
	return ioctl(kvm->fd, KVM_SIGNAL_MSI, &msi) < 0 ? -errno : 0;
}

static u64 kvm_now(struct vm *vm, struct vcpu *vcpu)
{
	struct kvm_vm *kvm = vm->engine_data;

	return kvm_host_ns() - kvm->start_ns;
}

const struct engine_ops kvm_engine = {
	.name = "kvm",
	.probe = kvm_probe,
	.vm_create = kvm_vm_create,
	.vm_destroy = kvm_vm_destroy,
	.memslot_add = kvm_memslot_add,
	.gpa_lowered = kvm_gpa_lowered,
	.vm_start = kvm_vm_start,
	.host_cpuid = kvm_host_cpuid,
	.vcpu_create = kvm_vcpu_create,
	.vcpu_destroy = kvm_vcpu_destroy,
	.get_state = kvm_vcpu_get_state,
	.set_state = kvm_vcpu_set_state,
	.run = kvm_vcpu_run,
	.kick = kvm_vcpu_kick,
	.can_inject = kvm_vcpu_can_inject,
	.inject = kvm_vcpu_inject,
	.inject_nmi = kvm_vcpu_inject_nmi,
	.signal_msi = kvm_signal_msi,
	.now = kvm_now,
	.charge = kvm_vcpu_charge,
	.read_stats = kvm_read_stats,
	.describe = host_describe,
	.rip = kvm_vcpu_rip,
	.peek = kvm_vcpu_peek,
};
