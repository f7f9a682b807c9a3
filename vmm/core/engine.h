/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The engine contract: what runs a guest's instructions, seen from above (ops)
 * and the upcalls it makes. Everything above is one code path for all engines.
 *
 * Threads: vm_* and vcpu_create/destroy run on the thread that builds the VM.
 * run, inject, can_inject, get_state, set_state and charge run on the vCPU's
 * thread. kick, now and signal_msi may be called from any thread.
 */
#ifndef CORE_ENGINE_H
#define CORE_ENGINE_H

#include "core/profile.h"
#include "core/vm.h"
#include "x86/state.h"

enum run_exit {
	RUN_DEADLINE,		/* `until` has come */
	RUN_KICK,		/* kick(), or nothing in particular: look again */
	RUN_HLT,		/* the guest executed HLT */
	RUN_INTR_WINDOW,	/* an interrupt can now be injected */
	RUN_SHUTDOWN,		/* triple fault */
	RUN_ERROR,		/* reported; the VM cannot go on */
};

/* What charge() is for: the account that an engine with virtual time keeps. */
enum charge {
	CHARGE_IDLE,		/* nothing to run */
	CHARGE_WAKE,		/* on the way out of HLT */
	CHARGE_INJECTED,	/* a delay of the scenario's */
};

/* What is left of a page's second-level mapping. */
enum gpa_rights {
	GPA_NONE,		/* no mapping: the next access is a fault */
	GPA_READ,		/* reads and fetches: the next write is a fault */
};

/* What an engine says about itself before a VM exists. */
struct engine_caps {
	bool apic_kernel;	/* APIC_KERNEL possible */
	bool apic_x2apic;	/* APIC_X2APIC with our local APIC possible */
	bool ept_serve;		/* second-level faults can be served in the VMM */
	bool ept_protect;	/* and pages be protected from writes there: gpa_lowered to GPA_READ */
	bool binary_stats;
	bool tsc_deadline;	/* timer mode offered with a userspace local APIC */
	enum cpu_vendor vendor;
	u32 max_vcpus;
	u64 tsc_hz;
	bool virtual_time;
};

/* One named statistic of the engine itself (KVM_GET_STATS_FD, TLB model, ...). */
struct engine_stat {
	char name[64];
	u64 value;
	u64 *per_vcpu;		/* nr_cpus values, NULL if of the VM; owned by the list */
	bool gauge;		/* not cumulative: not subtracted at the marks */
};

struct engine_ops {
	const char *name;

	/*
	 * 0 if this host can run VMs and *caps is filled, else -errno and in `why`
	 * one sentence: what is missing and what would provide it.
	 */
	int (*probe)(struct engine_caps *caps, char *why, size_t why_len);

	/* -errno, reported. vm->topo, vm->apic, vm->inject are set; mem has no slots yet. */
	int (*vm_create)(struct vm *vm);
	void (*vm_destroy)(struct vm *vm);
	/* Make a slot visible to the guest. -errno, reported. */
	int (*memslot_add)(struct vm *vm, const struct memslot *slot);
	/*
	 * [gpa, gpa + len) lost rights (refault, write protection): leave its second-level mapping
	 * with those of `left`, keep the contents. The number of pages that had a mapping with more,
	 * or -errno. Any thread.
	 */
	int (*gpa_lowered)(struct vm *vm, gpa_t gpa, u64 len, enum gpa_rights left);
	/*
	 * A device has written [gpa, gpa + len) of RAM, past the vCPUs. NULL where the host's caches see to that;
	 * an engine that keeps decoded code forgets it. Between two turns of the vCPUs, where that matters.
	 */
	void (*gpa_written)(struct vm *vm, gpa_t gpa, u64 len);
	/* All slots and devices are in place; the vCPUs will run next (starts service threads). -errno, reported. */
	int (*vm_start)(struct vm *vm);
	/* The CPUID the engine can give, for cpuid_build(); NULL in `host` of the params if everything. */
	const struct cpuid_table *(*host_cpuid)(struct vm *vm);

	int (*vcpu_create)(struct vcpu *vcpu);
	void (*vcpu_destroy)(struct vcpu *vcpu);
	int (*get_state)(struct vcpu *vcpu, struct x86_state *state);
	int (*set_state)(struct vcpu *vcpu, const struct x86_state *state);

	/* Run guest code until an upcall cannot finish the business; until = CLOCK_NEVER for no deadline. */
	enum run_exit (*run)(struct vcpu *vcpu, u64 until);
	/* Make a running vCPU return from run() soon. */
	void (*kick)(struct vcpu *vcpu);
	/* Can an external interrupt be injected now? If not, run() returns RUN_INTR_WINDOW once it can. */
	bool (*can_inject)(struct vcpu *vcpu);
	int (*inject)(struct vcpu *vcpu, u8 vector);
	/* Deliver an NMI at the next entry. */
	int (*inject_nmi)(struct vcpu *vcpu);
	/* APIC_KERNEL only, else NULL: deliver an MSI to the engine's local APICs. Any thread. */
	int (*signal_msi)(struct vm *vm, u64 addr, u32 data);

	/* ns since the VM started; on soft, the virtual time of that vCPU. vcpu NULL = of the VM. */
	u64 (*now)(struct vm *vm, struct vcpu *vcpu);
	/* Spend ns on this vCPU: waits on kvm, advances its virtual time on soft. No lock may be held. */
	void (*charge)(struct vcpu *vcpu, u64 ns, enum charge why);
	/* Append the engine's statistics to `stats` (array of struct engine_stat). -errno. Any thread. */
	int (*read_stats)(struct vm *vm, GArray *stats);
	/* "name=value" lines about host state that moves results (module parameters, governor, THP ...). g_free(). */
	char *(*describe)(struct vm *vm);

	/*
	 * Virtual time only, NULL elsewhere. Snapshots: append all of a vCPU's state that lies in the
	 * engine (its clock, MSRs and TLB too), or of the VM's (second-level mappings), and set it
	 * again in a VM of the same topology, memory and cost model before its first run. -errno:
	 * -EINVAL if the bytes are not what save made.
	 */
	int (*save)(struct vcpu *vcpu, GByteArray *out);
	int (*restore)(struct vcpu *vcpu, const u8 *data, size_t len);
	int (*vm_save)(struct vm *vm, GByteArray *out);
	int (*vm_restore)(struct vm *vm, const u8 *data, size_t len);
	/*
	 * For traces and dumps, each of them optional. On the vCPU's thread, or once it has ended; without
	 * side effects that the guest could see. rip: of the instruction in hand or, once it is done, of the next;
	 * false if called by another thread. peek: what page tables make of a linear address now; false if nothing.
	 * dump: what the engine itself knows of the vCPU, as lines for a person; g_free().
	 */
	bool (*rip)(struct vcpu *vcpu, u64 *rip);
	bool (*peek)(struct vcpu *vcpu, u64 va, gpa_t *gpa);
	char *(*dump)(struct vcpu *vcpu);
	/*
	 * Virtual time only, NULL elsewhere. A vCPU whose loop does nothing but wait is `parked` by run(), at the end
	 * of its turn: until something that it looks at changes, of which the engine tells by vm->unpark, it is not
	 * run, and this takes it to the end of the first block at or after `ns`, where run() would have left it. It
	 * stays parked. Nothing happens if it is there already.
	 */
	void (*park_until)(struct vcpu *vcpu, u64 ns);
	/* Start the random streams that guests can see (RDRAND) afresh from a repeat's seed. Between runs. */
	void (*reseed)(struct vm *vm, u64 seed);
	/*
	 * Virtual time only, NULL elsewhere. A profile begins at a mark, `now` ns, and forgets the one before; callers
	 * are known only if vm->symbols is there by then. Read what it has by another mark: with `all`, else only the
	 * classes of time and the code; profile_clear() afterwards. Once with `all`. What the guest does is the same with one and without.
	 */
	void (*profile_start)(struct vm *vm, u64 now);
	void (*profile_read)(struct vm *vm, u64 now, bool all, struct profile *p);
};

/* The guest is another VMM's, to which this one attaches: of the ops above only name to vm_destroy, vm_start, now, read_stats and describe are there. */
static inline bool engine_is_peer(const struct engine_ops *engine)
{
	return !engine->run;
}

/* Named in vmm/vm.c only. */
extern const struct engine_ops kvm_engine;	/* vmm/kvm/ */
extern const struct engine_ops soft_engine;	/* vmm/soft/ */
extern const struct engine_ops qemu_engine;	/* vmm/peer/ */
extern const struct engine_ops libvirt_engine;	/* vmm/peer/; the same */

/*
 * Upcalls, implemented in vmm/vcpu.c. On the vCPU's thread unless said
 * otherwise, with no lock held. Counting of exits and every injected delay live
 * there, so they mean the same on every engine.
 */

/* One port access of 1, 2 or 4 bytes. Unclaimed reads give all ones; unclaimed writes are dropped. */
void vcpu_pio(struct vcpu *vcpu, u16 port, bool write, void *data, u32 len);
/* One MMIO access of 1 to 8 bytes. Same rule for unclaimed addresses. */
void vcpu_mmio(struct vcpu *vcpu, gpa_t gpa, bool write, void *data, u32 len);
/* A platform MSR. false = #GP in the guest. */
bool vcpu_msr(struct vcpu *vcpu, u32 msr, bool write, u64 *value);
/*
 * A second-level fault on gpa; returns the delay in ns that its service shall
 * take from now on (0 = at once). Counts. May be called from a service thread,
 * so it touches (a) fields only.
 */
u64 vcpu_ept_violation(struct vcpu *vcpu, gpa_t gpa, enum ept_cause cause);
/*
 * One return from guest mode: counts vm_exits and `which` (COUNTER_vm_exits itself for those that an
 * upcall above counts by access), and gives the delay of inject point `exit`.
 */
void vcpu_count_exit(struct vcpu *vcpu, enum counter which);
/*
 * Must run() return now? True if the VM ends, an event comes before `until`, or our local APIC holds an
 * interrupt: what an upcall may just have caused.
 */
bool vcpu_turn_needed(struct vcpu *vcpu, u64 until);
/*
 * The guest has moved its TSC (IA32_TSC, IA32_TSC_ADJUST): it is now(vcpu) in cycles of vm->tsc_hz plus `offset`,
 * modulo 2^64, from here on. Deadlines of our local APIC's timer are values of it, so engines that offer
 * them (engine_caps.tsc_deadline) say so at each move. KVM keeps the TSC to itself and offers none.
 */
void vcpu_tsc_moved(struct vcpu *vcpu, s64 offset);
/* Task priority of our local APIC as CR8 (not with APIC_KERNEL). */
u8 vcpu_get_cr8(struct vcpu *vcpu);
void vcpu_set_cr8(struct vcpu *vcpu, u8 cr8);
/* APIC_KERNEL: the guest wrote EOI for a level-triggered vector of the IOAPIC. */
void vcpu_ioapic_eoi(struct vcpu *vcpu, u8 vector);

#endif
