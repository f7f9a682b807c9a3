/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * KVM's paravirtual clock on virtual time: structures that the guest reads in its own
 * RAM (Documentation/virt/kvm/x86/msr.rst). Called by msr.c.
 */
#ifndef SOFT_KVMCLOCK_H
#define SOFT_KVMCLOCK_H

#include "soft/soft.h"

/* Does CPUID leaf 0x40000001 EAX show the clock's MSR `msr` of the old or new number? */
bool soft_kvmclock_shown(u32 features, u32 msr);
/* MSR_KVM_SYSTEM_TIME was written or the TSC moved: write the vCPU's structure, if it is on. */
void soft_kvmclock_update(struct soft_cpu *c);
/* MSR_KVM_WALL_CLOCK was written: write the date of virtual time 0. */
void soft_wall_clock_write(struct soft_cpu *c);

#endif
