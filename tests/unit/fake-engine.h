/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A VM for unit tests of devices: real clocks, topology, injection and local
 * APICs over an engine that runs nothing. Its time is a number that the test
 * sets; what devices ask of the engine is recorded. One thread only.
 */
#ifndef TESTS_FAKE_ENGINE_H
#define TESTS_FAKE_ENGINE_H

#include "core/engine.h"
#include "core/vm.h"

#define FAKE_MAX_MSIS	64

struct fake_cpu {
	struct vcpu vcpu;
	u32 wakes;			/* how often its clock asked for attention */
	u32 nr_set_state;
	struct x86_state state;		/* the last one set */
};

struct fake_vm {
	struct vm vm;
	u64 now;			/* ns; what engine->now() says */
	struct fake_cpu *cpu;
	int set_state_err;		/* what set_state returns */
	u32 nr_msis;			/* signal_msi: all that came; the first FAKE_MAX_MSIS are kept */
	struct { u64 addr; u32 data; } msi[FAKE_MAX_MSIS];
	u32 nr_kick_all;
};

/*
 * A VM of "SxCxT" with one node a socket, software-enabled local APICs (none
 * with APIC_KERNEL; in x2APIC mode with APIC_X2APIC), all vCPUs runnable.
 */
struct fake_vm *fake_vm_new(const char *topology, enum apic_mode apic);
void fake_vm_free(struct fake_vm *fake);
/* Run what is due on one vCPU, or on all of them in order, at fake->now. Returns how many events ran. */
u32 fake_run(struct fake_vm *fake, u32 cpu);
u32 fake_run_all(struct fake_vm *fake);
/* A rule of [inject], and then fake_inject_start() once: as the scenario would. */
void fake_inject(struct fake_vm *fake, const char *key, const char *value);
void fake_inject_start(struct fake_vm *fake, u64 seed);
/* Take and end the interrupt that is pending on a vCPU; its vector, or -1 if there is none. */
int fake_take(struct fake_vm *fake, u32 cpu);
/* Port accesses as vcpu_pio() makes them, by vCPU 0. */
u32 fake_in(struct fake_vm *fake, u16 port, u32 len);
void fake_out(struct fake_vm *fake, u16 port, u32 len, u32 value);

#endif
