/* SPDX-License-Identifier: GPL-2.0-only */
/* Wires one VM from a scenario: the only place that names the engines. */
#ifndef VMM_VM_H
#define VMM_VM_H

#include "core/engine.h"
#include "machine/loader.h"
#include "scenario.h"
#include "status.h"

/* What belongs to a VM besides struct vm. */
struct vm_setup {
	struct engine_caps caps;
	struct boot_result boot;
	char *kernel, *initrd;		/* the files used */
	char *disk;			/* and the disk's image, NULL = none */
	char *disk_digest;		/* SHA-256 of its contents */
	char *system_map;		/* the kernel's, NULL = none */
	char *cost_model;		/* the file, where time is virtual */
	const struct peer_place *place;	/* where the guest is, of an engine that attaches to one; else NULL */
	char *cmdline;
	char *features, *missing;	/* CPU model in effect, and what the host lacks of it */
	int *pin;			/* host CPU by vCPU, NULL = none */
	u64 ipi_floor_ns;		/* 0 = not measured (apic = kernel) */
	GPtrArray *trust;		/* remarks that belong beside every rate */
};

/*
 * quiet: each console byte is an exit. panic=-1, reboot=k: a dead guest leaves at
 * once, by the keyboard controller, instead of spinning. nokaslr: symbols in a
 * profile are the image's. cpuhp.parallel=0: processors that are started side by
 * side spin until their turn comes, which a host with fewer CPUs cannot afford.
 */
#define VM_CMDLINE	"console=ttyS0 quiet panic=-1 oops=panic reboot=k nokaslr cpuhp.parallel=0"

/* Beside every rate of an engine with virtual time whose cost model has no [memory]. */
#define VM_NO_MEMORY_MODEL \
	"time = virtual, no memory model: cycles = instructions x CPI + TLB, fault and IPI costs"

/* The engine of that name ("kvm", "soft", "qemu", "libvirt"), or NULL. */
const struct engine_ops *vm_engine(const char *name);

/*
 * Build the VM that a scenario describes, ready to run. STATUS_DONE, or what the
 * process shall exit with (reported, with the scenario's line where one is to
 * blame). On failure *vm is NULL.
 */
enum status vm_build(const struct scenario *s, const struct engine_ops *engine, struct vm **vm,
		     struct vm_setup *setup);
/*
 * Ask the guest for the scenario's knobs, by the channel, once it is up. Reported; vm_build()
 * has found what is wrong with them already, so that only the guest's table can be full.
 */
enum status vm_knobs(struct vm *vm, const struct scenario *s);
void vm_teardown(struct vm *vm, struct vm_setup *setup);

#endif
