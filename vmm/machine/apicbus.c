// SPDX-License-Identifier: GPL-2.0-only
/*
 * A message is one event on the target's clock. All of it is packed into the
 * event's 64-bit argument, so that a clock which is torn down with messages on
 * their way owns nothing but its events:
 *
 *   bits 0-7 vector, 8-10 delivery mode, 11 level, 12-13 distance class,
 *   14 IPI (not a device), 15-63 ns from sending to due
 */
#include "machine/apicbus.h"

#include "base/log.h"
#include "core/engine.h"
#include "core/trace.h"
#include "x86/apic.h"

#define ARG_DELIVERY_SHIFT	8
#define ARG_LEVEL		BIT_ULL(11)
#define ARG_CLASS_SHIFT		12
#define ARG_IPI			BIT_ULL(14)
#define ARG_DELAY_SHIFT		15

_Static_assert(NR_DISTANCE_CLASSES <= 4, "the class has two bits");
_Static_assert(COST_ipi_smt == COST_ipi_self + DISTANCE_SMT && COST_ipi_socket == COST_ipi_self + DISTANCE_SOCKET &&
	       COST_ipi_remote == COST_ipi_self + DISTANCE_REMOTE, "costs of IPIs stand in the order of their classes");

/* What the way itself takes, ns: 0 where there is no cost model, since the host's own takes its time there. */
static u64 apicbus_latency(const struct vm *vm, enum distance_class class)
{
	return vm->cost.v[COST_ipi_self + class];
}

/* Start-up IPI: only a vCPU that INIT has stopped takes it; a second one, as the protocol sends, finds it running. */
static void apicbus_startup(struct vcpu *target, u8 vector)
{
	const struct cpuid_entry *leaf1 = cpuid_find(&target->cpuid, 1, 0);
	struct x86_state state;
	int err;

	if (target->mp_state != VCPU_WAIT_SIPI)
		return;
	x86_state_sipi(&state, vector, leaf1 ? leaf1->eax : 0);
	err = target->vm->engine->set_state(target, &state);
	if (err) {
		fb_err("CPU %u: cannot set its start-up state: %s", target->id, g_strerror(-err));
		vm_request_stop(target->vm, VM_STOP_ERROR, 0);
		return;
	}
	target->mp_state = VCPU_RUNNABLE;
}

/*
 * A message arrives: on the target's thread, no lock held. A halted target stays
 * VCPU_HALTED here; the vCPU loop wakes it when it delivers what came. Registers
 * are reset by the SIPI, not by INIT, since nothing can look at them in between.
 */
void apicbus_deliver(void *ctx, u64 arg, u64 due, u64 now)
{
	struct vcpu *target = ctx;
	u8 vector = (u8)arg;
	bool taken = true;

	switch ((arg >> ARG_DELIVERY_SHIFT) & 7) {
	case APIC_DM_FIXED:
	case APIC_DM_LOWEST:
		taken = lapic_set_irr(target->lapic, vector, arg & ARG_LEVEL);
		break;
	case APIC_DM_NMI:
		/* Waiting for SIPI blocks NMIs: there is no IDT it could use (SDM 3A 8.4.2). */
		taken = target->mp_state != VCPU_WAIT_SIPI;
		if (taken)
			target->nmi_pending = true;
		break;
	case APIC_DM_INIT:
		/*
		 * The boot processor, too, waits for SIPI. Real ones go to the reset
		 * vector, but there is no firmware here that could receive it.
		 */
		lapic_reset(target->lapic);
		target->nmi_pending = false;
		target->mp_state = VCPU_WAIT_SIPI;
		break;
	case APIC_DM_SIPI:
		apicbus_startup(target, vector);
		break;
	}
	if ((arg & ARG_IPI) && taken) {
		u64 sent = due - (arg >> ARG_DELAY_SHIFT);
		enum distance_class class = (arg >> ARG_CLASS_SHIFT) & 3;

		counter_add(&target->counters, COUNTER_ipis_delivered, 1);
		/* On virtual time a target may be behind the source by up to a quantum; an event is never before it was sent. */
		hist_add(&target->vm->ipi_latency[class], now > sent ? now - sent : 0);
	}
}

/* Can this machine deliver such a message? No SMM, and the PIC stub never asserts ExtINT. */
static bool apicbus_deliverable(const struct apic_msg *msg)
{
	switch (msg->delivery) {
	case APIC_DM_FIXED:
	case APIC_DM_LOWEST:
		/* The de-assertion of a level means nothing on a bus of messages. */
		return !msg->level || msg->assert;
	case APIC_DM_INIT:
		/* INIT level de-assert is a leftover of the 82489DX (SDM 3A 10.6.1). */
		return !msg->level || msg->assert;
	case APIC_DM_NMI:
	case APIC_DM_SIPI:
		return true;
	}
	return false;
}

static void apicbus_post(struct vcpu *target, const struct apic_msg *msg, u64 now, u64 delay, u64 flags)
{
	u64 arg = msg->vector | (u64)msg->delivery << ARG_DELIVERY_SHIFT | (msg->level ? ARG_LEVEL : 0) |
		  delay << ARG_DELAY_SHIFT | flags;

	clock_post(&target->clock, now + delay, apicbus_deliver, target, arg);
}

static u64 apicbus_inject(struct vcpu *src, struct vcpu *target, const struct apic_msg *msg,
			  enum distance_class class)
{
	const struct topology *topo = &src->vm->topo;
	struct inject_event ev = {
		.class = class,
		.src_node = topo->cpu[src->id].node,
		.dst_node = topo->cpu[target->id].node,
		.vector = msg->vector,
	};
	u64 delay;

	/* Boot is not what is measured, and INIT's and SIPI's timing is a protocol of its own. */
	if (msg->delivery == APIC_DM_INIT || msg->delivery == APIC_DM_SIPI)
		return 0;
	if (clock_pending(&target->clock) >= APICBUS_MAX_IN_FLIGHT) {
		counter_add(&src->counters, COUNTER_ipis_undelayed, 1);
		return 0;
	}
	delay = inject_delay(&src->vm->inject, INJECT_ipi, src->id, &ev);
	if (delay)
		counter_add(&src->counters, COUNTER_ipi_injected_ns, delay);
	return delay;
}

static void apicbus_send_one(struct vcpu *src, struct vcpu *target, const struct apic_msg *msg, u64 now)
{
	struct vm *vm = src->vm;
	const struct topology *topo = &vm->topo;
	enum distance_class class = topology_class(topo, src->id, target->id);
	static const char *const delivery_name[8] = {
		"fixed", "lowest", "smi", "reserved", "nmi", "init", "sipi", "extint",
	};
	u64 delay = 0;

	if (inject_enabled(&vm->inject, INJECT_ipi))
		delay = apicbus_inject(src, target, msg, class);
	counter_add(&src->counters, COUNTER_ipis_sent, 1);
	if (vm->ipi_matrix)
		__atomic_fetch_add((u64 *)&vm->ipi_matrix[topo->cpu[src->id].node * topo->nr_nodes +
							  topo->cpu[target->id].node], 1, __ATOMIC_RELAXED);
	if (msg->delivery == APIC_DM_FIXED || msg->delivery == APIC_DM_LOWEST)
		__atomic_fetch_add((u64 *)&vm->ipi_vector[msg->vector], 1, __ATOMIC_RELAXED);
	delay += apicbus_latency(vm, class);
	if (trace_wanted(vm, TRACE_ipi))
		trace_here(src, TRACE_ipi, delivery_name[msg->delivery & 7], target->id,
			   msg->delivery == APIC_DM_INIT ? TRACE_NONE : msg->vector, delay);
	apicbus_post(target, msg, now, delay, (u64)class << ARG_CLASS_SHIFT | ARG_IPI);
}

static bool apicbus_addresses(const struct vcpu *src, const struct vcpu *target, const struct apic_msg *msg)
{
	switch (msg->shorthand) {
	case APIC_SH_SELF:
		return src == target;
	case APIC_SH_ALL:
		return lapic_listens(target->lapic);
	case APIC_SH_OTHERS:
		return src != target && lapic_listens(target->lapic);
	}
	return lapic_match(target->lapic, msg);
}

void apicbus_send_ipi(struct vcpu *src, const struct apic_msg *msg, u64 now)
{
	struct vm *vm = src->vm;
	u32 i;

	if (!apicbus_deliverable(msg))
		return;
	counter_add(&src->counters, COUNTER_icr_writes, 1);
	if (msg->shorthand == APIC_SH_SELF) {
		apicbus_send_one(src, src, msg, now);
		return;
	}
	for (i = 0; i < vm->topo.nr_cpus; i++) {
		struct vcpu *target = vm->vcpu[i];

		if (!apicbus_addresses(src, target, msg))
			continue;
		if (msg->delivery == APIC_DM_LOWEST && !lapic_accepts_fixed(target->lapic))
			continue;
		apicbus_send_one(src, target, msg, now);
		if (msg->delivery == APIC_DM_LOWEST)
			return;
	}
}

void apicbus_send_device(struct vm *vm, const struct apic_msg *msg, u64 now)
{
	u32 i;

	/* A start-up needs an ICR (SDM 3A table 10-1). */
	if (!apicbus_deliverable(msg) || msg->delivery == APIC_DM_SIPI)
		return;
	if (vm->apic == APIC_KERNEL) {
		u64 addr;
		u32 data;

		apicbus_encode_msi(msg, &addr, &data);
		vm->engine->signal_msi(vm, addr, data);
		return;
	}
	for (i = 0; i < vm->topo.nr_cpus; i++) {
		struct vcpu *target = vm->vcpu[i];

		if (!lapic_match(target->lapic, msg))
			continue;
		if (msg->delivery == APIC_DM_LOWEST && !lapic_accepts_fixed(target->lapic))
			continue;
		/* A device is as far away as another core: no target may see what a CPU ahead of it has caused. */
		apicbus_post(target, msg, now, apicbus_latency(vm, DISTANCE_SOCKET), 0);
		if (msg->delivery == APIC_DM_LOWEST)
			return;
	}
}

void apicbus_decode_msi(u64 addr, u32 data, struct apic_msg *msg)
{
	*msg = (struct apic_msg){
		.dest = (u32)(addr >> 12 & 0xff) | (u32)(addr >> 5 & 0x7f) << 8,
		.vector = data & 0xff,
		.delivery = (data >> MSI_DATA_DELIVERY_SHIFT) & 7,
		.logical = addr & MSI_ADDR_LOGICAL,
		.level = data & MSI_DATA_LEVEL,
		/* The level bit means something for level-triggered messages only. */
		.assert = !(data & MSI_DATA_LEVEL) || (data & MSI_DATA_ASSERT),
	};
	/* With the redirection hint one of the processors addressed gets it (10.11.1). */
	if ((addr & MSI_ADDR_HINT) && msg->delivery == APIC_DM_FIXED)
		msg->delivery = APIC_DM_LOWEST;
}

void apicbus_encode_msi(const struct apic_msg *msg, u64 *addr, u32 *data)
{
	*addr = MSI_ADDR_BASE | (u64)(msg->dest & 0xff) << 12 | (u64)(msg->dest >> 8 & 0x7f) << 5 |
		(msg->logical ? MSI_ADDR_LOGICAL : 0) | (msg->delivery == APIC_DM_LOWEST ? MSI_ADDR_HINT : 0);
	*data = msg->vector | (u32)msg->delivery << MSI_DATA_DELIVERY_SHIFT |
		(msg->assert ? MSI_DATA_ASSERT : 0) | (msg->level ? MSI_DATA_LEVEL : 0);
}
