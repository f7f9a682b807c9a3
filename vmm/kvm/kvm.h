/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kvm engine's own state: one file descriptor a VM and a vCPU, the userfaultfd
 * service, statistics. Included by vmm/kvm/ only.
 */
#ifndef KVM_KVM_H
#define KVM_KVM_H

#include <linux/kvm.h>
#include <pthread.h>
#include <time.h>

#include "core/engine.h"

struct userfault;

/* Descriptors of one KVM_GET_STATS_FD file, read once. */
struct kvm_stats {
	int fd;				/* (c) -1 = none */
	u32 nr;				/* (c) */
	u64 data_offset;		/* (c) */
	struct kvm_stat_name {
		char name[64];
		u32 offset, size;	/* size in u64s; histograms are skipped */
		bool gauge;
	} *desc;			/* (c) */
};

struct kvm_vm {
	int dev, fd;			/* (c) /dev/kvm and the VM */
	u64 start_ns;			/* (c) CLOCK_MONOTONIC of now() == 0 */
	u32 nr_slots;			/* (c) */
	int run_size;			/* (c) of struct kvm_run's mapping */
	struct cpuid_table host_cpuid;	/* (c) */
	struct userfault *userfault;	/* (c) NULL unless second-level faults are served here */
	struct kvm_stats stats;
};

struct kvm_vcpu {
	int fd;				/* (c) */
	struct kvm_run *run;		/* (v) but immediate_exit: the signal handler writes it */
	timer_t timer;			/* (v) made by the vCPU's thread at its first run */
	bool timer_made;		/* (v) */
	u64 armed;			/* (v) deadline the timer is set to, CLOCK_NEVER = disarmed */
	u64 apic_base;			/* (v) last seen from KVM */
	pid_t tid;			/* (a) 0 before the first run */
	pthread_t thread;		/* (a) valid once tid is */
	struct kvm_stats stats;
};

/* The signal that makes KVM_RUN return: kicks and deadlines. */
int kvm_kick_signal(void);
/* CLOCK_MONOTONIC in ns. Any thread. */
u64 kvm_host_ns(void);

/* kvm-cpuid: KVM_GET_SUPPORTED_CPUID into our table, and our table into a vCPU. -errno, reported. */
int kvm_cpuid_read(int dev, struct cpuid_table *table);
int kvm_cpuid_set(int vcpu_fd, const struct cpuid_table *table);

/* kvm-vcpu */
int kvm_vcpu_create(struct vcpu *vcpu);
void kvm_vcpu_destroy(struct vcpu *vcpu);
enum run_exit kvm_vcpu_run(struct vcpu *vcpu, u64 until);
void kvm_vcpu_kick(struct vcpu *vcpu);
bool kvm_vcpu_can_inject(struct vcpu *vcpu);
int kvm_vcpu_inject(struct vcpu *vcpu, u8 vector);
int kvm_vcpu_inject_nmi(struct vcpu *vcpu);
void kvm_vcpu_charge(struct vcpu *vcpu, u64 ns, enum charge why);

/* kvm-state */
int kvm_vcpu_get_state(struct vcpu *vcpu, struct x86_state *state);
int kvm_vcpu_set_state(struct vcpu *vcpu, const struct x86_state *state);

/* rip and peek of core/engine.h. */
bool kvm_vcpu_rip(struct vcpu *vcpu, u64 *rip);
bool kvm_vcpu_peek(struct vcpu *vcpu, u64 va, gpa_t *gpa);

/* IA32_APIC_BASE at power-up: KVM derives CPUID's APIC bit from it, so it comes after CPUID. */
int kvm_vcpu_set_apic_base(struct vcpu *vcpu);

/* kvm-stats: open (0 and fd = -1 where KVM has none), append values, close. */
int kvm_stats_open(struct kvm_stats *stats, int owner_fd);
void kvm_stats_close(struct kvm_stats *stats);
int kvm_read_stats(struct vm *vm, GArray *stats);

/*
 * userfault: serves second-level faults of all slots from `nr_shards` threads.
 * create registers nothing; add registers a slot; start runs the threads. -errno, reported.
 */
int userfault_create(struct vm *vm, struct userfault **uf);
int userfault_add(struct userfault *uf, const struct memslot *slot);
int userfault_start(struct userfault *uf);
void userfault_destroy(struct userfault *uf);
/* engine_ops.gpa_lowered; one thread at a time. */
int userfault_lower(struct userfault *uf, gpa_t gpa, u64 len, enum gpa_rights left);
/*
 * 0 if userfaultfd minor faults on shared memory work for us, and with `protect` its write
 * protection, too; else -errno and why.
 */
int userfault_probe(bool protect, char *why, size_t why_len);

#endif
