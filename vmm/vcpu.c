// SPDX-License-Identifier: GPL-2.0-only
/* The vCPU loop's body and the engines' upcalls: one code path for all engines. */
#include "vcpu.h"

#include <string.h>

#include "base/log.h"
#include "core/trace.h"
#include "dump.h"
#include "machine/apicbus.h"
#include "machine/lapic.h"
#include "machine/machine.h"
#include "x86/msr.h"

static void vcpu_timer_reschedule(struct vcpu *vcpu, u64 now)
{
	u64 due = lapic_timer_due(vcpu->lapic);
	u64 floor = __atomic_load_n(&vcpu->vm->boot_tick_ns, __ATOMIC_RELAXED);

	vcpu->timer_held = false;
	/* See run-threads.c: ticks that the boot is spared. The local APIC folds missed periods into one. */
	if (__builtin_expect(floor != 0, 0) && vcpu->id && due != CLOCK_NEVER && lapic_timer_periodic(vcpu->lapic))
		due = MAX(due, now + floor);
	clock_schedule(&vcpu->clock, &vcpu->apic_timer, due);
}

/*
 * The local APIC's timer has expired. An injected delay holds the expiry back;
 * a guest that reprograms the timer meanwhile cancels it, as it would cancel a
 * timer that had not expired yet.
 */
static void vcpu_timer_event(void *ctx, u64 arg, u64 due, u64 now)
{
	struct vcpu *vcpu = ctx;
	struct vm *vm = vcpu->vm;

	if (lapic_timer_due(vcpu->lapic) > now)
		return;		/* INIT has stopped it meanwhile */
	if (!vcpu->timer_held && inject_enabled(&vm->inject, INJECT_timer)) {
		const struct inject_event ev = { .class = DISTANCE_SELF };
		u64 delay = inject_delay(&vm->inject, INJECT_timer, vcpu->id, &ev);

		counter_add(&vcpu->counters, COUNTER_timer_injected_ns, delay);
		if (delay) {
			vcpu->timer_held = true;
			clock_schedule(&vcpu->clock, &vcpu->apic_timer, now + delay);
			return;
		}
	}
	counter_add(&vcpu->counters, COUNTER_timer_fires, 1);
	lapic_timer_fire(vcpu->lapic, now);
	vcpu_timer_reschedule(vcpu, now);
}

/*
 * A return to the VMM: kept for a dump, and traced. What it is about may be in the hands of an instruction that
 * touches several addresses, so upcalls come here once for each.
 */
static void vcpu_note_exit(struct vcpu *vcpu, const char *what, u64 address)
{
	vcpu->last_exit.what = what;
	vcpu->last_exit.address = address;
	vcpu->last_exit.ns = vcpu->vm->engine->now(vcpu->vm, vcpu);
	if (trace_wanted(vcpu->vm, TRACE_exit))
		trace_here(vcpu, TRACE_exit, what, address, TRACE_NONE, TRACE_NONE);
}

static void vcpu_wake(void *ctx)
{
	struct vcpu *vcpu = ctx;

	if (vcpu->vm->kick)
		vcpu->vm->kick(vcpu);
}

void vcpu_init(struct vcpu *vcpu)
{
	struct vm *vm = vcpu->vm;
	bool bsp = vcpu->id == 0;
	struct lapic_effect effect;

	clock_init(&vcpu->clock, vcpu_wake, vcpu);
	clock_event_init(&vcpu->apic_timer, vcpu_timer_event, vcpu, 0);
	if (!apic_is_ours(vm->apic))
		return;
	vcpu->lapic = g_new0(struct lapic, 1);
	lapic_init(vcpu->lapic, vcpu->apic_id, bsp, vm->apic == APIC_X2APIC, vm->tsc_deadline, vm->tsc_hz);
	/*
	 * Firmware hands over in x2APIC mode when there are ids that the xAPIC cannot address; a
	 * start-up IPI would not find such a processor otherwise, and INIT leaves the mode as it is.
	 */
	if (vm->apic == APIC_X2APIC && topology_needs_x2apic(&vm->topo))
		lapic_msr_write(vcpu->lapic, MSR_IA32_APIC_BASE, vcpu->lapic->base_msr | APIC_BASE_X2APIC, 0, &effect);
	vcpu->mp_state = bsp ? VCPU_RUNNABLE : VCPU_WAIT_SIPI;
}

void vcpu_destroy(struct vcpu *vcpu)
{
	clock_destroy(&vcpu->clock);
	g_free(vcpu->lapic);
	vcpu->lapic = NULL;
}

/*
 * Deliver what our local APIC holds. Returns false if the vCPU has to stay
 * halted or is waiting for SIPI.
 */
static bool vcpu_deliver(struct vcpu *vcpu)
{
	const struct engine_ops *engine = vcpu->vm->engine;
	bool halted = vcpu->mp_state == VCPU_HALTED;
	int vector;

	if (vcpu->mp_state == VCPU_WAIT_SIPI)
		return false;
	if (vcpu->nmi_pending) {
		vcpu->nmi_pending = false;
		vcpu->mp_state = VCPU_RUNNABLE;
		if (trace_wanted(vcpu->vm, TRACE_irq))
			trace_here(vcpu, TRACE_irq, "nmi", 2, TRACE_NONE, TRACE_NONE);
		engine->inject_nmi(vcpu);
	}
	vector = lapic_pending(vcpu->lapic);
	if (vector >= 0 && engine->can_inject(vcpu)) {
		if (trace_wanted(vcpu->vm, TRACE_irq))
			trace_here(vcpu, TRACE_irq, halted ? "halted" : "running", (u64)vector, TRACE_NONE, TRACE_NONE);
		if (engine->inject(vcpu, (u8)vector) < 0) {
			vm_request_stop(vcpu->vm, VM_STOP_ERROR, 0);
			return false;
		}
		lapic_accept(vcpu->lapic, (u8)vector);
		counter_add(&vcpu->counters, COUNTER_irqs_injected, 1);
		vcpu->mp_state = VCPU_RUNNABLE;
		/* Another one may wait behind it: ask for the window (SDM 3A 6.8 [7.8]). */
		if (lapic_pending(vcpu->lapic) >= 0)
			engine->can_inject(vcpu);
	}
	/* HLT with interrupts off ends with NMI or INIT only (SDM 2A HLT). */
	if (vcpu->mp_state != VCPU_RUNNABLE)
		return false;
	/* No cost model, no cost: on host time waking takes what it takes. */
	if (halted && cost(&vcpu->vm->cost, hlt_wake))
		engine->charge(vcpu, cost(&vcpu->vm->cost, hlt_wake), CHARGE_WAKE);
	return true;
}

static void vcpu_halt(struct vcpu *vcpu)
{
	if (vcpu->lapic)
		vcpu->mp_state = VCPU_HALTED;
}

enum vcpu_next vcpu_turn(struct vcpu *vcpu, u64 limit, u64 *until)
{
	struct vm *vm = vcpu->vm;
	bool runnable = true;

	vcpu->yield = false;
	if (__builtin_expect(__atomic_load_n(&vcpu->dump, __ATOMIC_RELAXED), 0))
		dump_requested(vcpu);
	clock_run_due(&vcpu->clock, vm->engine->now(vm, vcpu));
	if (vm->stop != VM_RUNNING)
		return VCPU_NEXT_STOP;
	if (vcpu->lapic)
		runnable = vcpu_deliver(vcpu);
	*until = clock_first(&vcpu->clock);
	if (vm->stop != VM_RUNNING)
		return VCPU_NEXT_STOP;
	if (!runnable)
		return VCPU_NEXT_IDLE;
	if (__builtin_expect(vcpu->skew_ns != 0, 0)) {
		vm->engine->charge(vcpu, vcpu->skew_ns, CHARGE_IDLE);
		vcpu->skew_ns = 0;
	}

	switch (vm->engine->run(vcpu, MIN(*until, limit))) {
	case RUN_DEADLINE:
	case RUN_KICK:
	case RUN_INTR_WINDOW:
		break;
	case RUN_HLT:
		vcpu_halt(vcpu);
		break;
	case RUN_SHUTDOWN:
		vm_request_stop(vm, VM_STOP_SHUTDOWN, 0);
		break;
	case RUN_ERROR:
		vm_request_stop(vm, VM_STOP_ERROR, 0);
		break;
	}
	return vm->stop == VM_RUNNING ? VCPU_NEXT_TURN : VCPU_NEXT_STOP;
}

/* What a register access of the local APIC asks for, done here since it reaches other APICs and devices. */
static void vcpu_lapic_effect(struct vcpu *vcpu, const struct lapic_effect *effect, u64 now)
{
	if (effect->todo & LAPIC_TODO_ACK)
		counter_add(&vcpu->counters, COUNTER_eois, 1);
	if (effect->todo & LAPIC_TODO_TIMER)
		vcpu_timer_reschedule(vcpu, now);
	if (effect->todo & LAPIC_TODO_EOI)
		vcpu_ioapic_eoi(vcpu, effect->eoi_vector);
	if (effect->todo & LAPIC_TODO_SEND)
		apicbus_send_ipi(vcpu, &effect->msg, now);
}

/* Registers are 32 bits wide at 16-byte steps; narrower reads give the register's bytes, the rest is reserved. */
static void vcpu_lapic_mmio(struct vcpu *vcpu, u32 off, bool write, void *data, u32 len)
{
	u64 now = vcpu->vm->engine->now(vcpu->vm, vcpu);
	struct lapic_effect effect = { 0 };
	u32 value = 0, shift = (off & 3) * 8;

	counter_add(&vcpu->counters, COUNTER_exits_apic, 1);
	if (!write) {
		memset(data, 0, len);
		if ((off & 0xf) + len > 4 && (off & 0xf) >= 4)
			return;
		value = lapic_read(vcpu->lapic, off & ~3u, now) >> shift;
		memcpy(data, &value, MIN(len, 4 - (off & 3)));
		return;
	}
	/* SDM 3A 10.4.1: other than aligned 32-bit stores are undefined; we drop them. */
	if (len < 4 || off & 0xf)
		return;
	memcpy(&value, data, 4);
	lapic_write(vcpu->lapic, off, value, now, &effect);
	vcpu_lapic_effect(vcpu, &effect, now);
}

void vcpu_pio(struct vcpu *vcpu, u16 port, bool write, void *data, u32 len)
{
	struct vm *vm = vcpu->vm;

	counter_add(&vcpu->counters, COUNTER_exits_pio, 1);
	vcpu_note_exit(vcpu, write ? "pio_write" : "pio_read", port);
	if (!write)
		memset(data, 0xff, len);
	g_mutex_lock(&vm->lock);
	bus_access(vm->bus, BUS_PIO, vcpu, port, write, data, len);
	g_mutex_unlock(&vm->lock);
}

void vcpu_mmio(struct vcpu *vcpu, gpa_t gpa, bool write, void *data, u32 len)
{
	struct vm *vm = vcpu->vm;

	counter_add(&vcpu->counters, COUNTER_exits_mmio, 1);
	vcpu_note_exit(vcpu, write ? "mmio_write" : "mmio_read", gpa);
	if (vcpu->lapic && !vcpu->lapic->x2apic) {
		gpa_t base = ALIGN_DOWN(vcpu->lapic->base_msr & APIC_BASE_ADDR, PAGE_SIZE);

		if (gpa >= base && gpa - base + len <= LAPIC_MMIO_SIZE) {
			vcpu_lapic_mmio(vcpu, (u32)(gpa - base), write, data, len);
			return;
		}
	}
	if (!write)
		memset(data, 0xff, len);
	g_mutex_lock(&vm->lock);
	bus_access(vm->bus, BUS_MMIO, vcpu, gpa, write, data, len);
	g_mutex_unlock(&vm->lock);
}

bool vcpu_msr(struct vcpu *vcpu, u32 msr, bool write, u64 *value)
{
	u64 now = vcpu->vm->engine->now(vcpu->vm, vcpu);
	struct lapic_effect effect = { 0 };
	bool ok = false;

	counter_add(&vcpu->counters, COUNTER_exits_msr, 1);
	vcpu_note_exit(vcpu, write ? "wrmsr" : "rdmsr", msr);
	if (vcpu->lapic) {
		if (write)
			ok = lapic_msr_write(vcpu->lapic, msr, *value, now, &effect);
		else
			ok = lapic_msr_read(vcpu->lapic, msr, now, value);
		vcpu_lapic_effect(vcpu, &effect, now);
	}
	return ok;
}

u64 vcpu_ept_violation(struct vcpu *vcpu, gpa_t gpa, enum ept_cause cause)
{
	static const enum counter counter[NR_EPT_CAUSES] = {
		[EPT_FIRST_TOUCH] = COUNTER_ept_first_touch, [EPT_REFAULT] = COUNTER_ept_refault,
		[EPT_WRITE_PROTECT] = COUNTER_ept_write_protect,
	};
	struct vm *vm = vcpu->vm;
	const struct memslot *slot = memory_slot(&vm->mem, gpa);
	struct inject_event ev = {
		.src_node = vm->topo.cpu[vcpu->id].node,
		.dst_node = slot ? slot->node : 0,
		.ept = cause,
	};
	u64 delay = 0;

	counter_add(&vcpu->counters, COUNTER_ept_violations, 1);
	counter_add(&vcpu->counters, counter[cause], 1);
	if (inject_enabled(&vm->inject, INJECT_ept)) {
		delay = inject_delay(&vm->inject, INJECT_ept, vcpu->id, &ev);
		counter_add(&vcpu->counters, COUNTER_ept_injected_ns, delay);
	}
	if (trace_wanted(vm, TRACE_ept))
		trace_here(vcpu, TRACE_ept, ept_cause_name(cause), gpa, delay, TRACE_NONE);
	return delay;
}

void vcpu_count_exit(struct vcpu *vcpu, enum counter which)
{
	struct vm *vm = vcpu->vm;

	counter_add(&vcpu->counters, COUNTER_vm_exits, 1);
	if (which != COUNTER_vm_exits) {
		counter_add(&vcpu->counters, which, 1);
		vcpu_note_exit(vcpu, counter_desc[which].name + strlen("exits_"), TRACE_NONE);
	}
	if (inject_enabled(&vm->inject, INJECT_exit)) {
		const struct inject_event ev = { .class = DISTANCE_SELF };
		u64 delay = inject_delay(&vm->inject, INJECT_exit, vcpu->id, &ev);

		counter_add(&vcpu->counters, COUNTER_exit_injected_ns, delay);
		vm->engine->charge(vcpu, delay, CHARGE_INJECTED);
	}
}

bool vcpu_turn_needed(struct vcpu *vcpu, u64 until)
{
	return vcpu->vm->stop != VM_RUNNING || vcpu->yield || clock_first(&vcpu->clock) < until || vcpu->nmi_pending ||
	       (vcpu->lapic && lapic_pending(vcpu->lapic) >= 0);
}

void vcpu_tsc_moved(struct vcpu *vcpu, s64 offset)
{
	u64 now = vcpu->vm->engine->now(vcpu->vm, vcpu);
	u64 due;

	if (!vcpu->lapic)
		return;
	due = lapic_timer_due(vcpu->lapic);
	lapic_set_tsc_offset(vcpu->lapic, offset, now);
	if (lapic_timer_due(vcpu->lapic) != due)
		vcpu_timer_reschedule(vcpu, now);
}

u8 vcpu_get_cr8(struct vcpu *vcpu)
{
	return lapic_cr8(vcpu->lapic);
}

void vcpu_set_cr8(struct vcpu *vcpu, u8 cr8)
{
	lapic_set_cr8(vcpu->lapic, cr8);
}

void vcpu_ioapic_eoi(struct vcpu *vcpu, u8 vector)
{
	struct vm *vm = vcpu->vm;

	g_mutex_lock(&vm->lock);
	ioapic_eoi(&vm->machine->ioapic, vector);
	g_mutex_unlock(&vm->lock);
}
