/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One virtual machine and its vCPUs. The struct is wired by vmm/vm.c; engines
 * and devices hold pointers into it.
 *
 * Legend of fields: (c) constant once the first vCPU runs, (v) owned by the
 * vCPU's thread, (l) under vm->lock, (a) atomic.
 *
 * Times are ns since the VM started: host monotonic time on kvm, virtual time on
 * soft; vm->engine->now() reads them.
 */
#ifndef CORE_VM_H
#define CORE_VM_H

#include <glib.h>

#include "base/types.h"
#include "core/clock.h"
#include "core/cost.h"
#include "core/counters.h"
#include "core/cpuid.h"
#include "core/inject.h"
#include "core/memory.h"
#include "core/topology.h"

#define NR_VECTORS	256	/* interrupt vectors of a CPU */

struct engine_ops;
struct lapic;
struct bus;
struct machine;
struct symbols;
struct trace;
struct vmstat;
struct vm;

/* Who implements the local APIC. */
enum apic_mode {
	APIC_XAPIC,		/* ours, MMIO */
	APIC_X2APIC,		/* ours, MSRs (soft only) */
	APIC_KERNEL,		/* KVM's, split irqchip (kvm only) */
	APIC_PEER,		/* that of the VMM which runs the guest (vmm/peer.h) */
};

enum vcpu_mp_state {
	VCPU_RUNNABLE,
	VCPU_HALTED,		/* HLT: wakes for an interrupt, NMI or INIT */
	VCPU_WAIT_SIPI,		/* after INIT */
};

struct vcpu {
	struct vm *vm;			/* (c) */
	u32 id;				/* (c) CPU number in the topology */
	u32 apic_id;			/* (c) */
	enum vcpu_mp_state mp_state;	/* (v) */
	bool nmi_pending;		/* (v) */
	struct lapic *lapic;		/* (v) NULL if it is not ours: apic_is_ours() */
	struct clock clock;		/* what will happen to this vCPU */
	struct clock_event apic_timer;	/* on clock; runs lapic_timer_fire() */
	bool timer_held;		/* (v) the timer has expired and waits out an injected delay */
	bool yield;			/* (v) the runner wants run() to return: others have come before its deadline */
	u64 near_until;			/* (v) set by the engine: ns until which threads of its core may reach each other within vm->near_ns */
	bool parked;			/* (v) set by the engine, in run(): in a loop that waits, see engine_ops.park_until */
	struct {			/* (v) the last exit, for a dump */
		const char *what;	/* NULL = none yet */
		u64 address;		/* port, gpa or MSR; TRACE_NONE */
		u64 ns;
	} last_exit;
	bool dump;			/* (a) dump this vCPU at its next turn: dump_request() */
	u64 skew_ns;			/* (v) with virtual time: spent when it next runs; a repeat's seed gives it */
	struct counters counters;	/* (a) */
	struct cpuid_table cpuid;	/* (c) */
	void *engine;			/* engine's own part */
	void *runner;			/* the runner's own part (threads or lockstep) */
};

/* Do IPIs and timer interrupts pass through here? */
static inline bool apic_is_ours(enum apic_mode apic)
{
	return apic == APIC_XAPIC || apic == APIC_X2APIC;
}

/* How a VM ended. */
enum vm_stop {
	VM_RUNNING,
	VM_STOP_EXIT,		/* test device: vm->exit_code */
	VM_STOP_SHUTDOWN,	/* triple fault, or reset requested */
	VM_STOP_TIMEOUT,
	VM_STOP_HOST_TIMEOUT,	/* more of the host's time went by than the user gives it */
	VM_STOP_PANIC,		/* the guest's last words say so */
	VM_STOP_ERROR,		/* engine error; reported */
	VM_STOP_SIGNAL,		/* the user asked */
	VM_STOP_GONE,		/* the VMM that runs it has left us (vmm/peer.h) */
};

struct vm {
	const struct engine_ops *engine;	/* (c) */
	void *engine_data;		/* (c) engine's own part */
	enum apic_mode apic;		/* (c) */
	struct topology topo;		/* (c) */
	struct memory mem;		/* (c) table; contents shared with the guest */
	struct inject inject;		/* rules (c) */
	struct counters counters;	/* (a) scope "vm" */
	struct vcpu **vcpu;		/* (c) by CPU number, topo.nr_cpus of them */
	struct bus *bus;		/* (c) ports and MMIO ranges; devices run under vm->lock */
	struct machine *machine;	/* (c) the devices */
	GMutex lock;			/* devices, except local APICs and clocks */
	struct hist ipi_latency[NR_DISTANCE_CLASSES];	/* (a) ICR write to IRR, measured, injected delay included */
	_Atomic u64 *ipi_matrix;	/* (a) nr_nodes * nr_nodes, by source and target node */
	_Atomic u64 ipi_vector[NR_VECTORS];	/* (a) IPIs sent that have a vector, by it */
	u64 tsc_hz;			/* (c) */
	struct cost_model cost;		/* (c) with virtual time only */
	u64 near_ns;			/* (c) with virtual time: struct vcpu.near_until, 0 = never */
	bool no_park;			/* (c) with virtual time: vCPUs that wait in a loop execute it */
	bool pause;			/* (v) with virtual time: the runner returns before the next turn, to be called again */
	u64 frontier;			/* (v) with virtual time: ns, the time that every vCPU has reached; set by the runner */
	struct trace *trace;		/* (c) NULL = off */
	u32 trace_mask;			/* (a) bits of enum trace_kind that are wanted now */
	struct symbols *symbols;	/* (c) names for dumps, NULL until there is one: dump_symbols() */
	struct vmstat *vmstat;		/* (c) once the guest is up: its kernel's event counts in its memory, NULL = not found (vmm/vmstat.h) */
	bool tsc_deadline;		/* (c) our local APICs offer TSC-deadline mode */
	u64 boot_tick_ns;		/* (a) shortest period of an application processor's periodic timer, 0 = its own */
	struct clock service;		/* what happens to the VM as a whole: time-outs, refaults, console output */
	_Atomic int stop;		/* (a) enum vm_stop; first writer wins: vm_request_stop() */
	_Atomic int exit_code;		/* (a) with VM_STOP_EXIT */
	_Atomic int stop_claimed;	/* (a) vm_request_stop()'s own: a reason has been given */
	void (*kick)(struct vcpu *vcpu);	/* (c) set by the runner: the vCPU looks at its clock. Any thread */
	void (*unpark)(struct vcpu *vcpu);	/* (c) set by a runner that parks vCPUs: what a parked one waits for may come now */
	void (*kick_all)(struct vm *vm);	/* (c) set by the runner: every vCPU and the service loop look at vm->stop */
	void (*boot_done)(struct vm *vm);	/* (c) set by the runner, may be NULL: the guest is up. Any thread */
	void *runner;			/* the runner's own part */
};

/* Ask the VM to end; the first reason stays. Any thread. */
void vm_request_stop(struct vm *vm, enum vm_stop why, int exit_code);

#endif
