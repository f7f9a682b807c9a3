// SPDX-License-Identifier: GPL-2.0-only
/*
 * A guest that writes nonsense to every device, register and MSR: nothing may
 * crash, assert, allocate without bound or keep the VMM busy. Seeds are fixed;
 * built with sanitizers this is where memory errors would show.
 */
#include <glib.h>
#include <string.h>

#include "base/rng.h"
#include "fake-engine.h"
#include "machine/apicbus.h"
#include "machine/lapic.h"
#include "machine/layout.h"
#include "machine/machine.h"
#include "x86/apic.h"

#define STEPS	40000

struct garbage {
	struct fake_vm *f;
	struct rng rng;
	u64 timer_fires;
};

static u64 draw(struct garbage *g, u64 n)
{
	return rng_next(&g->rng) % n;
}

/* Values that hit edges more often than uniform ones would. */
static u64 draw_value(struct garbage *g)
{
	switch (draw(g, 6)) {
	case 0:
		return 0;
	case 1:
		return ~0ull;
	case 2:
		return 1ull << draw(g, 64);
	case 3:
		return draw(g, 256);
	case 4:
		return draw(g, 4096);
	}
	return rng_next(&g->rng);
}

/* What vcpu.c does with the timer. */
static void timer_event(void *ctx, u64 arg, u64 due, u64 now)
{
	struct vcpu *vcpu = ctx;
	struct garbage *g = (struct garbage *)(uintptr_t)arg;

	g->timer_fires++;
	lapic_timer_fire(vcpu->lapic, now);
	clock_schedule(&vcpu->clock, &vcpu->apic_timer, lapic_timer_due(vcpu->lapic));
}

static void effect_do(struct garbage *g, struct vcpu *vcpu, const struct lapic_effect *e)
{
	struct vm *vm = vcpu->vm;

	g_assert_cmphex(e->todo & ~0x1fu, ==, 0);
	if (e->todo & LAPIC_TODO_TIMER)
		clock_schedule(&vcpu->clock, &vcpu->apic_timer, lapic_timer_due(vcpu->lapic));
	if (e->todo & LAPIC_TODO_EOI) {
		g_mutex_lock(&vm->lock);
		ioapic_eoi(&vm->machine->ioapic, e->eoi_vector);
		g_mutex_unlock(&vm->lock);
	}
	if (e->todo & LAPIC_TODO_SEND)
		apicbus_send_ipi(vcpu, &e->msg, g->f->now);
}

/* The current count register in whichever mode the APIC is. */
static u32 lapic_read_current(struct lapic *l, u64 now)
{
	u64 value = 0;

	if (!(l->base_msr & APIC_BASE_ENABLE))
		return 0;
	if (!l->x2apic)
		return lapic_read(l, APIC_TMCCT, now);
	g_assert_true(lapic_msr_read(l, MSR_IA32_X2APIC_FIRST + (APIC_TMCCT >> 4), now, &value));
	return (u32)value;
}

static void check_lapic(const struct garbage *g, struct vcpu *vcpu)
{
	struct lapic *l = vcpu->lapic;
	int vector = lapic_pending(l);
	u64 due = lapic_timer_due(l);
	u32 i;

	/* Vectors below 16 are never requested nor in service. */
	g_assert_cmphex((l->irr[0] | l->isr[0]) & 0xffff, ==, 0);
	g_assert_true(lapic_has_work(l) == (vector >= 0));
	if (vector >= 0) {
		u32 ppr = l->tpr;

		for (i = 0; i < 256; i++)
			if (l->isr[i / 32] >> i % 32 & 1)
				ppr = MAX(ppr & 0xf0, i & 0xf0);
		g_assert_cmphex((u32)vector & 0xf0, >, ppr & 0xf0);
	}
	/* Whoever listens in x2APIC mode was allowed to. */
	g_assert_true(!l->x2apic || l->x2apic_allowed);
	g_assert_true(!l->enabled || (l->base_msr & APIC_BASE_ENABLE));
	if (due != CLOCK_NEVER)
		g_assert_cmphex(l->lvt_timer & APIC_LVT_MASKED, ==, 0);
	g_assert_cmpuint(lapic_read_current(l, g->f->now), <=, l->timer_initial);
	/* The event is never late; INIT stops the timer and leaves an early one, which then does nothing. */
	g_assert_cmpuint(vcpu->apic_timer.due, <=, due);
}

static void lapic_garbage(struct garbage *g, struct vcpu *vcpu)
{
	static const u32 likely[] = {
		APIC_SVR, APIC_TPR, APIC_EOI, APIC_ICR, APIC_ICR2, APIC_LVT_TIMER, APIC_TMICT, APIC_TDCR, APIC_LVT_ERROR,
		APIC_LDR, APIC_DFR, APIC_ID, APIC_ESR, APIC_LVT_LINT0,
	};
	struct lapic_effect e = { 0 };
	struct lapic *l = vcpu->lapic;
	u32 off = draw(g, 2) ? likely[draw(g, ARRAY_SIZE(likely))] : (u32)draw(g, 0x1010);
	u64 value = draw_value(g);
	u32 msr;

	switch (draw(g, 5)) {
	case 0:
		lapic_read(l, off, g->f->now);
		break;
	case 1:
	case 2:
		/* Keep the APIC enabled most of the time, or nothing else is reached. */
		if (off == APIC_SVR && draw(g, 8))
			value |= APIC_SVR_ENABLE;
		lapic_write(l, off, (u32)value, g->f->now, &e);
		break;
	case 3:
		msr = draw(g, 8) ? MSR_IA32_X2APIC_FIRST + (off >> 4) : MSR_IA32_TSC_DEADLINE;
		lapic_msr_read(l, msr, g->f->now, &value);
		break;
	default:
		msr = draw(g, 8) ? MSR_IA32_X2APIC_FIRST + (off >> 4) : MSR_IA32_TSC_DEADLINE;
		if (!draw(g, 64)) {
			msr = MSR_IA32_APIC_BASE;
			value = APIC_BASE_DEFAULT | (draw(g, 4) << 10) | (draw(g, 8) ? 0 : value);
		} else if (off == APIC_SVR) {
			value = draw(g, 8) ? 0x1ff : value;
		}
		lapic_msr_write(l, msr, value, g->f->now, &e);
		break;
	}
	effect_do(g, vcpu, &e);
	if (!draw(g, 16)) {
		lapic_set_tsc_offset(l, (s64)draw_value(g), g->f->now);
		clock_schedule(&vcpu->clock, &vcpu->apic_timer, lapic_timer_due(l));
	}
	if (!draw(g, 256)) {
		lapic_set_cr8(l, (u8)value);
		lapic_set_irr(l, (u8)rng_next(&g->rng), draw(g, 2));
	}
}

/* A few sane writes, so that garbage meets APICs that are enabled and interrupts that come and end. */
static void lapic_sane(struct garbage *g, struct vcpu *vcpu)
{
	const struct { u32 off, value; } writes[] = {
		{ APIC_SVR, 0x1ff }, { APIC_EOI, 0 }, { APIC_TPR, 0 }, { APIC_LVT_TIMER, 0x20030 + (u32)draw(g, 200) },
		/* Fixed, asserted, to all including self. */
		{ APIC_ICR, 0x84000 + 0x10 + (u32)draw(g, 240) },
	};
	struct lapic_effect e;
	u32 i = (u32)draw(g, ARRAY_SIZE(writes));

	if (!(vcpu->lapic->base_msr & APIC_BASE_ENABLE)) {
		g_assert_true(lapic_msr_write(vcpu->lapic, MSR_IA32_APIC_BASE, APIC_BASE_DEFAULT | APIC_BASE_ENABLE,
					      g->f->now, &e));
		effect_do(g, vcpu, &e);
	}
	if (vcpu->lapic->x2apic)
		g_assert_true(lapic_msr_write(vcpu->lapic, MSR_IA32_X2APIC_FIRST + (writes[i].off >> 4), writes[i].value,
					      g->f->now, &e));
	else
		lapic_write(vcpu->lapic, writes[i].off, writes[i].value, g->f->now, &e);
	effect_do(g, vcpu, &e);
}

static void bus_garbage(struct garbage *g, struct vcpu *vcpu)
{
	static const u16 ports[] = {
		0x20, 0x21, 0xa0, 0xa1, 0x40, 0x41, 0x42, 0x43, 0x43, 0x61, 0x64, 0x70, 0x71, 0x80, 0x92, 0x4d0, 0xf4,
		0xf5, 0x3f8, 0x3f9, 0x3fa, 0x3fb, 0x3fc, 0x2f8, 0x2fc, 0x600, 0x602, 0x604, 0x608, 0xcf8,
	};
	static const u8 io_regs[] = { IOAPIC_REGSEL, IOAPIC_WIN, IOAPIC_WIN, IOAPIC_EOI };
	struct vm *vm = vcpu->vm;
	u64 data = draw_value(g), addr;
	u32 len = 1u << draw(g, 3);

	g_mutex_lock(&vm->lock);
	if (draw(g, 3)) {
		addr = draw(g, 8) ? ports[draw(g, ARRAY_SIZE(ports))] + draw(g, 2) : draw(g, 0x10000);
		bus_access(vm->bus, BUS_PIO, vcpu, addr, draw(g, 2), &data, len);
	} else {
		len = 1u << draw(g, 4);
		addr = LAYOUT_IOAPIC + (draw(g, 4) ? io_regs[draw(g, ARRAY_SIZE(io_regs))] : draw(g, 0x1010));
		bus_access(vm->bus, BUS_MMIO, vcpu, addr, draw(g, 4), &data, len);
	}
	g_mutex_unlock(&vm->lock);
}

/* Let `ns` pass, from event to event; what a guest can cause in that time is bounded. */
static void pass_time(struct garbage *g, u64 ns)
{
	struct fake_vm *f = g->f;
	u64 end = f->now + ns, events = 0, fires = g->timer_fires;
	u32 i, nr = f->vm.topo.nr_cpus;

	for (;;) {
		u64 first = CLOCK_NEVER;

		for (i = 0; i < nr; i++)
			first = MIN(first, clock_first(&f->vm.vcpu[i]->clock));
		if (first > end)
			break;
		f->now = MAX(f->now, first);
		events += fake_run_all(f);
	}
	f->now = end;
	/* Timers: one that was due, then one a period each. */
	g_assert_cmpuint(g->timer_fires - fires, <=, nr * (ns / LAPIC_MIN_PERIOD + 2));
	/* Messages of this step, and PIT ticks with their messages to every vCPU. */
	g_assert_cmpuint(events, <=, g->timer_fires - fires + 256 + (1 + nr) * (ns / (PIT_MIN_PERIOD - 1000) + 2));
}

static void garbage_run(enum apic_mode apic, u64 seed)
{
	struct garbage g = { .f = fake_vm_new("2x2x1", apic) };
	struct vm *vm = &g.f->vm;
	u32 i, step, stops = 0, taken = 0;

	g_assert_cmpint(machine_init(vm), ==, 0);
	rng_seed(&g.rng, seed, apic);
	for (i = 0; i < vm->topo.nr_cpus; i++)
		clock_event_init(&vm->vcpu[i]->apic_timer, timer_event, vm->vcpu[i], (u64)(uintptr_t)&g);
	for (step = 0; step < STEPS; step++) {
		u32 cpu = (u32)draw(&g, vm->topo.nr_cpus);

		if (apic != APIC_KERNEL && draw(&g, 2))
			lapic_garbage(&g, vm->vcpu[cpu]);
		else
			bus_garbage(&g, vm->vcpu[cpu]);
		if (apic != APIC_KERNEL && !draw(&g, 4))
			lapic_sane(&g, vm->vcpu[cpu]);
		pass_time(&g, draw(&g, 64) ? draw(&g, 3000) : draw(&g, 20000000));
		for (i = 0; apic != APIC_KERNEL && i < vm->topo.nr_cpus; i++) {
			check_lapic(&g, vm->vcpu[i]);
			if (lapic_pending(vm->vcpu[i]->lapic) >= 0 && !draw(&g, 4)) {
				lapic_accept(vm->vcpu[i]->lapic, (u8)lapic_pending(vm->vcpu[i]->lapic));
				taken++;
			}
			/* An AP that garbage has stopped comes back now and then. */
			if (vm->vcpu[i]->mp_state == VCPU_WAIT_SIPI && !draw(&g, 32))
				vm->vcpu[i]->mp_state = VCPU_RUNNABLE;
			vm->vcpu[i]->nmi_pending = false;
		}
		/* The guest cannot feed its own input. */
		g_assert_cmpuint(vm->machine->console.input->len + vm->machine->control.input->len, ==, 0);
		/* It may ask for the end; the test goes on. */
		if (vm->stop != VM_RUNNING) {
			g_assert_true(vm->stop == VM_STOP_EXIT || vm->stop == VM_STOP_SHUTDOWN);
			vm->stop = VM_RUNNING;
			vm->stop_claimed = 0;
			stops++;
		}
	}
	g_test_message("%u stops, %u taken, %llu timer, %u MSIs", stops, taken, (unsigned long long)g.timer_fires,
		       g.f->nr_msis);
	/* The noise reached what it was meant to reach. */
	g_assert_cmpuint(stops, >, 0);
	if (apic != APIC_KERNEL) {
		g_assert_cmpuint(taken, >, 1000);
		g_assert_cmpuint(g.timer_fires, >, 100);
	} else {
		g_assert_cmpuint(g.f->nr_msis, >, 0);
	}
	machine_destroy(vm);
	fake_vm_free(g.f);
}

static void test_garbage(gconstpointer arg)
{
	u64 seed;

	for (seed = 1; seed <= 4; seed++)
		garbage_run((enum apic_mode)GPOINTER_TO_INT(arg), seed);
}

/* Every byte of every range, every width, both directions, all values of a small set. */
static void test_sweep(void)
{
	static const u64 values[] = { 0, ~0ull, 0xa5a5a5a5a5a5a5a5ull };
	struct fake_vm *f = fake_vm_new("1x2x1", APIC_XAPIC);
	struct vm *vm = &f->vm;
	u32 port, v, len, off;

	g_assert_cmpint(machine_init(vm), ==, 0);
	for (port = 0; port < 0x10000; port++) {
		for (len = 1; len <= 4; len *= 2) {
			for (v = 0; v < ARRAY_SIZE(values); v++)
				fake_out(f, (u16)port, len, (u32)values[v]);
			fake_in(f, (u16)port, len);
		}
		f->now += 1000;
		fake_run_all(f);
	}
	for (off = 0; off < 0x1000; off++) {
		for (len = 1; len <= 8; len *= 2) {
			for (v = 0; v < ARRAY_SIZE(values); v++) {
				u64 data = values[v];

				g_mutex_lock(&vm->lock);
				bus_access(vm->bus, BUS_MMIO, vm->vcpu[0], LAYOUT_IOAPIC + off, v & 1, &data, len);
				bus_access(vm->bus, BUS_MMIO, vm->vcpu[0], LAYOUT_IOAPIC + off, true, &data, len);
				g_mutex_unlock(&vm->lock);
			}
		}
		f->now += 1000;
		fake_run_all(f);
	}
	machine_destroy(vm);
	fake_vm_free(f);
}

/* All MSR numbers there could be around ours, in each mode: fault or work, never more. */
static void test_msr_sweep(void)
{
	static const u64 values[] = { 0, 1, ~0ull, 0xfee00800, 0xfee00c00 };
	struct lapic_effect e;
	struct lapic l;
	u64 value;
	u32 msr, v, mode;

	for (mode = 0; mode < 3; mode++) {
		lapic_init(&l, 3, false, mode != 0, mode != 1, 1000000000);
		if (mode == 2)
			g_assert_true(lapic_msr_write(&l, MSR_IA32_APIC_BASE, l.base_msr | APIC_BASE_X2APIC, 0, &e));
		for (msr = 0; msr < 0x2000; msr++) {
			bool ours = msr == MSR_IA32_APIC_BASE || msr == MSR_IA32_TSC_DEADLINE ||
				    (msr >= MSR_IA32_X2APIC_FIRST && msr <= MSR_IA32_X2APIC_LAST);

			for (v = 0; v < ARRAY_SIZE(values); v++) {
				bool ok = lapic_msr_write(&l, msr, values[v], 0, &e);

				g_assert_true(ours || !ok);
				g_assert_true(ok || !e.todo);
			}
			g_assert_true(lapic_msr_read(&l, msr, 0, &value) <= ours);
		}
	}
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_data_func("/garbage/xapic", GINT_TO_POINTER(APIC_XAPIC), test_garbage);
	g_test_add_data_func("/garbage/x2apic", GINT_TO_POINTER(APIC_X2APIC), test_garbage);
	g_test_add_data_func("/garbage/kernel", GINT_TO_POINTER(APIC_KERNEL), test_garbage);
	g_test_add_func("/garbage/sweep", test_sweep);
	g_test_add_func("/garbage/msr-sweep", test_msr_sweep);
	return g_test_run();
}
