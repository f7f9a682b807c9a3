// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kvm engine's vCPU: KVM_RUN, exits to upcalls, kicks and deadlines.
 *
 * A kick is a signal to the vCPU's thread whose handler sets immediate_exit, so
 * one that comes between the last look at the clock and KVM_RUN is not lost. The
 * deadline is a POSIX timer that sends the same signal.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "kvm/kvm.h"
#include "x86/msr.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/*
 * The handler has no argument that leads to the vCPU except through the thread
 * it interrupts; KVM_RUN's mapping of that thread is therefore thread-local.
 */
static __thread struct kvm_run *kvm_this_run;

int kvm_kick_signal(void)
{
	return SIGRTMIN;
}

static void kvm_kick_handler(int sig)
{
	if (kvm_this_run)
		__atomic_store_n(&kvm_this_run->immediate_exit, 1, __ATOMIC_RELAXED);
}

int kvm_vcpu_create(struct vcpu *vcpu)
{
	struct kvm_vm *kvm = vcpu->vm->engine_data;
	struct kvm_vcpu *kv = g_new0(struct kvm_vcpu, 1);
	struct sigaction sa = { .sa_handler = kvm_kick_handler };
	int err;

	vcpu->engine = kv;
	kv->stats.fd = -1;
	kv->armed = CLOCK_NEVER;
	/* KVM knows a vCPU by its APIC id: the id it puts into MSI routing and the APIC's own ID register. */
	kv->fd = ioctl(kvm->fd, KVM_CREATE_VCPU, (unsigned long)vcpu->apic_id);
	if (kv->fd < 0) {
		err = -errno;
		fb_err("kvm: vCPU %u (APIC id %u): %s", vcpu->id, vcpu->apic_id, strerror(-err));
		return err;
	}
	kv->run = mmap(NULL, (size_t)kvm->run_size, PROT_READ | PROT_WRITE, MAP_SHARED, kv->fd, 0);
	if (kv->run == MAP_FAILED) {
		err = -errno;
		kv->run = NULL;
		fb_err("kvm: mapping vCPU %u: %s", vcpu->id, strerror(-err));
		return err;
	}
	sigemptyset(&sa.sa_mask);
	sigaction(kvm_kick_signal(), &sa, NULL);
	err = kvm_cpuid_set(kv->fd, &vcpu->cpuid);
	if (!err)
		err = kvm_vcpu_set_apic_base(vcpu);
	return err ? err : kvm_stats_open(&kv->stats, kv->fd);
}

void kvm_vcpu_destroy(struct vcpu *vcpu)
{
	struct kvm_vm *kvm = vcpu->vm->engine_data;
	struct kvm_vcpu *kv = vcpu->engine;

	if (!kv)
		return;
	kvm_stats_close(&kv->stats);
	if (kv->timer_made)
		timer_delete(kv->timer);
	if (kv->run)
		munmap(kv->run, (size_t)kvm->run_size);
	if (kv->fd >= 0)
		close(kv->fd);
	g_free(kv);
	vcpu->engine = NULL;
}

/* What only the vCPU's own thread can do, at its first run. */
static int kvm_vcpu_first_run(struct vcpu *vcpu, struct kvm_vcpu *kv)
{
	struct sigevent sev = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = kvm_kick_signal() };
	pid_t tid = (pid_t)syscall(SYS_gettid);

	kvm_this_run = kv->run;
	sev.sigev_notify_thread_id = tid;
	if (timer_create(CLOCK_MONOTONIC, &sev, &kv->timer) < 0) {
		int err = -errno;

		fb_err("kvm: timer of vCPU %u: %s", vcpu->id, strerror(-err));
		return err;
	}
	kv->timer_made = true;
	kv->thread = pthread_self();
	__atomic_store_n(&kv->tid, tid, __ATOMIC_RELEASE);
	return 0;
}

void kvm_vcpu_kick(struct vcpu *vcpu)
{
	struct kvm_vcpu *kv = vcpu->engine;

	/* Before its first run a vCPU looks at its clock anyway. */
	if (__atomic_load_n(&kv->tid, __ATOMIC_ACQUIRE))
		pthread_kill(kv->thread, kvm_kick_signal());
}

static void kvm_arm_deadline(struct kvm_vm *kvm, struct kvm_vcpu *kv, u64 until)
{
	struct itimerspec its = { 0 };
	u64 at;

	if (until == kv->armed)
		return;
	kv->armed = until;
	if (until != CLOCK_NEVER) {
		at = until + kvm->start_ns;
		its.it_value.tv_sec = (time_t)(at / NSEC_PER_SEC);
		its.it_value.tv_nsec = (long)(at % NSEC_PER_SEC);
	}
	timer_settime(kv->timer, TIMER_ABSTIME, &its, NULL);
}

static void kvm_exit_io(struct vcpu *vcpu, struct kvm_run *run)
{
	u8 *data = (u8 *)run + run->io.data_offset;
	u32 i;

	for (i = 0; i < run->io.count; i++, data += run->io.size)
		vcpu_pio(vcpu, run->io.port, run->io.direction == KVM_EXIT_IO_OUT, data, run->io.size);
	vcpu_count_exit(vcpu, COUNTER_vm_exits);
}

static void kvm_exit_msr(struct vcpu *vcpu, struct kvm_run *run, bool write)
{
	u64 value = run->msr.data;

	run->msr.error = !vcpu_msr(vcpu, run->msr.index, write, &value);
	if (!write)
		run->msr.data = value;
	vcpu_count_exit(vcpu, COUNTER_vm_exits);
}

static enum run_exit kvm_exit_failure(struct vcpu *vcpu, const struct kvm_run *run)
{
	/* Not ours and not the host's: a guest can jump anywhere, and this is how it ends. */
	bool emulation = run->exit_reason == KVM_EXIT_INTERNAL_ERROR &&
			 run->internal.suberror == KVM_INTERNAL_ERROR_EMULATION;
	struct x86_state *s = g_new0(struct x86_state, 1);
	u32 i;

	if (run->exit_reason == KVM_EXIT_FAIL_ENTRY) {
		fb_err("kvm: vCPU %u: the CPU refused guest state (reason 0x%llx)", vcpu->id,
		       (unsigned long long)run->fail_entry.hardware_entry_failure_reason);
	} else if (run->exit_reason == KVM_EXIT_INTERNAL_ERROR) {
		fb_err("kvm: vCPU %u: KVM internal error, suberror %u%s", vcpu->id, run->internal.suberror,
		       emulation ? ": the guest executes what KVM cannot (code in device memory, for one)" : "");
		for (i = 0; i < run->internal.ndata && i < 4; i++)
			fb_err("kvm:   data[%u] = 0x%llx", i, (unsigned long long)run->internal.data[i]);
	} else {
		fb_err("kvm: vCPU %u: exit reason %u is not one this VMM knows", vcpu->id, run->exit_reason);
	}
	if (!kvm_vcpu_get_state(vcpu, s))
		fb_err("kvm: vCPU %u: rip 0x%llx cs.base 0x%llx cr0 0x%llx cr3 0x%llx rflags 0x%llx", vcpu->id,
		       (unsigned long long)s->rip, (unsigned long long)s->cs.base, (unsigned long long)s->cr0,
		       (unsigned long long)s->cr3, (unsigned long long)s->rflags);
	g_free(s);
	return emulation ? RUN_SHUTDOWN : RUN_ERROR;
}

/*
 * With our local APIC KVM still keeps CR8 (the TPR, SDM 3A 10.8.6) and the APIC
 * base MSR itself; both are mirrored around each run.
 */
static void kvm_sync_to_kvm(struct vcpu *vcpu, struct kvm_vcpu *kv)
{
	if (vcpu->vm->apic != APIC_KERNEL)
		kv->run->cr8 = vcpu_get_cr8(vcpu);
}

static void kvm_sync_from_kvm(struct vcpu *vcpu, struct kvm_vcpu *kv)
{
	u64 base = kv->run->apic_base;

	if (vcpu->vm->apic == APIC_KERNEL)
		return;
	if (kv->run->cr8 != vcpu_get_cr8(vcpu))
		vcpu_set_cr8(vcpu, (u8)kv->run->cr8);
	if (base != kv->apic_base) {
		kv->apic_base = base;
		vcpu_msr(vcpu, MSR_IA32_APIC_BASE, true, &base);
	}
}

enum run_exit kvm_vcpu_run(struct vcpu *vcpu, u64 until)
{
	struct kvm_vm *kvm = vcpu->vm->engine_data;
	struct kvm_vcpu *kv = vcpu->engine;
	struct kvm_run *run = kv->run;

	if (!kv->timer_made && kvm_vcpu_first_run(vcpu, kv) < 0)
		return RUN_ERROR;
	if (until != CLOCK_NEVER && until <= kvm_host_ns() - kvm->start_ns)
		return RUN_DEADLINE;
	kvm_arm_deadline(kvm, kv, until);
	for (;;) {
		int ret, err;

		kvm_sync_to_kvm(vcpu, kv);
		ret = ioctl(kv->fd, KVM_RUN, 0);
		err = errno;
		if (ret < 0) {
			if (err == EINTR || err == EAGAIN) {
				/*
				 * Cleared only here: a signal that arrived with another exit has set it
				 * for the next KVM_RUN, and must not be lost.
				 */
				__atomic_store_n(&run->immediate_exit, 0, __ATOMIC_RELAXED);
				kv->armed = CLOCK_NEVER - 1;	/* it may have been the timer: arm afresh */
				/* The guest may have written CR8 since: raising it is no exit. */
				kvm_sync_from_kvm(vcpu, kv);
				vcpu_count_exit(vcpu, COUNTER_exits_kick);
				return RUN_KICK;
			}
			fb_err("kvm: KVM_RUN of vCPU %u: %s", vcpu->id, strerror(err));
			return RUN_ERROR;
		}
		kvm_sync_from_kvm(vcpu, kv);
		switch (run->exit_reason) {
		case KVM_EXIT_IO:
			kvm_exit_io(vcpu, run);
			break;
		case KVM_EXIT_MMIO:
			vcpu_mmio(vcpu, run->mmio.phys_addr, run->mmio.is_write, run->mmio.data, run->mmio.len);
			vcpu_count_exit(vcpu, COUNTER_vm_exits);
			break;
		case KVM_EXIT_X86_RDMSR:
			kvm_exit_msr(vcpu, run, false);
			break;
		case KVM_EXIT_X86_WRMSR:
			kvm_exit_msr(vcpu, run, true);
			break;
		case KVM_EXIT_HLT:
			vcpu_count_exit(vcpu, COUNTER_exits_hlt);
			return RUN_HLT;
		case KVM_EXIT_IRQ_WINDOW_OPEN:
			run->request_interrupt_window = 0;
			vcpu_count_exit(vcpu, COUNTER_exits_intr_window);
			return RUN_INTR_WINDOW;
		case KVM_EXIT_INTR:
			vcpu_count_exit(vcpu, COUNTER_exits_kick);
			return RUN_KICK;
		case KVM_EXIT_SET_TPR:
			vcpu_count_exit(vcpu, COUNTER_exits_other);
			return RUN_KICK;
		case KVM_EXIT_IOAPIC_EOI:
			vcpu_count_exit(vcpu, COUNTER_exits_other);
			vcpu_ioapic_eoi(vcpu, run->eoi.vector);
			break;
		case KVM_EXIT_SHUTDOWN:
		case KVM_EXIT_SYSTEM_EVENT:
			vcpu_count_exit(vcpu, COUNTER_exits_other);
			return RUN_SHUTDOWN;
		default:
			return kvm_exit_failure(vcpu, run);
		}
		/* The upcall may have made work for this vCPU: an interrupt to itself, an earlier timer, the end. */
		if (vcpu_turn_needed(vcpu, until))
			return RUN_KICK;
	}
}

/*
 * After an exit that left an instruction half done (MMIO, PIO), state may be
 * touched only once KVM_RUN has completed it; injecting through KVM_INTERRUPT is
 * safe, since KVM completes first at the next entry (api.rst, "pending operations").
 */
bool kvm_vcpu_can_inject(struct vcpu *vcpu)
{
	struct kvm_vcpu *kv = vcpu->engine;

	if (kv->run->ready_for_interrupt_injection && kv->run->if_flag)
		return true;
	kv->run->request_interrupt_window = 1;
	return false;
}

int kvm_vcpu_inject(struct vcpu *vcpu, u8 vector)
{
	struct kvm_vcpu *kv = vcpu->engine;
	struct kvm_interrupt irq = { .irq = vector };

	if (ioctl(kv->fd, KVM_INTERRUPT, &irq) < 0) {
		int err = -errno;

		fb_err("kvm: injecting vector 0x%x into vCPU %u: %s", vector, vcpu->id, strerror(-err));
		return err;
	}
	/* KVM takes one at a time; the flag is refreshed by the next KVM_RUN. */
	kv->run->ready_for_interrupt_injection = 0;
	return 0;
}

int kvm_vcpu_inject_nmi(struct vcpu *vcpu)
{
	struct kvm_vcpu *kv = vcpu->engine;

	return ioctl(kv->fd, KVM_NMI, 0) < 0 ? -errno : 0;
}

void kvm_vcpu_charge(struct vcpu *vcpu, u64 ns, enum charge why)
{
	u64 end = kvm_host_ns() + ns;
	struct timespec ts = {
		.tv_sec = (time_t)(end / NSEC_PER_SEC),
		.tv_nsec = (long)(end % NSEC_PER_SEC),
	};

	if (!ns)
		return;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		if (vcpu->vm->stop != VM_RUNNING)
			return;
}
