// SPDX-License-Identifier: GPL-2.0-only
#include "fake-engine.h"

#include <string.h>

#include "machine/bus.h"
#include "machine/lapic.h"
#include "x86/apic.h"

static struct fake_vm *fake_of(struct vm *vm)
{
	return vm->engine_data;
}

static u64 fake_now(struct vm *vm, struct vcpu *vcpu)
{
	return fake_of(vm)->now;
}

static int fake_set_state(struct vcpu *vcpu, const struct x86_state *state)
{
	struct fake_cpu *cpu = &fake_of(vcpu->vm)->cpu[vcpu->id];

	cpu->nr_set_state++;
	cpu->state = *state;
	return fake_of(vcpu->vm)->set_state_err;
}

static int fake_signal_msi(struct vm *vm, u64 addr, u32 data)
{
	struct fake_vm *fake = fake_of(vm);

	if (fake->nr_msis < FAKE_MAX_MSIS) {
		fake->msi[fake->nr_msis].addr = addr;
		fake->msi[fake->nr_msis].data = data;
	}
	fake->nr_msis++;
	return 0;
}

static const struct engine_ops fake_engine = {
	.name = "fake",
	.now = fake_now,
	.set_state = fake_set_state,
	.signal_msi = fake_signal_msi,
};

static void fake_wake(void *ctx)
{
	struct fake_cpu *cpu = ctx;

	cpu->wakes++;
}

static void fake_kick_all(struct vm *vm)
{
	fake_of(vm)->nr_kick_all++;
}

static void fake_cpu_init(struct fake_vm *fake, u32 id)
{
	struct fake_cpu *cpu = &fake->cpu[id];
	struct vm *vm = &fake->vm;
	struct lapic_effect effect;

	cpu->vcpu.vm = vm;
	cpu->vcpu.id = id;
	cpu->vcpu.apic_id = vm->topo.cpu[id].apic_id;
	clock_init(&cpu->vcpu.clock, fake_wake, cpu);
	vm->vcpu[id] = &cpu->vcpu;
	if (vm->apic == APIC_KERNEL)
		return;
	cpu->vcpu.lapic = g_new0(struct lapic, 1);
	lapic_init(cpu->vcpu.lapic, cpu->vcpu.apic_id, id == 0, vm->apic == APIC_X2APIC, true, vm->tsc_hz);
	lapic_write(cpu->vcpu.lapic, APIC_SVR, 0x1ff, 0, &effect);
	if (vm->apic == APIC_X2APIC)
		g_assert_true(lapic_msr_write(cpu->vcpu.lapic, MSR_IA32_APIC_BASE,
					      cpu->vcpu.lapic->base_msr | APIC_BASE_X2APIC, 0, &effect));
}

struct fake_vm *fake_vm_new(const char *topology, enum apic_mode apic)
{
	struct topology_params params = { .memory = 4 * GIB, .x2apic = apic == APIC_X2APIC };
	struct fake_vm *fake = g_new0(struct fake_vm, 1);
	struct vm *vm = &fake->vm;
	char *err = NULL;
	u32 i;

	g_assert_cmpint(topology_parse(topology, &params.sockets, &params.cores, &params.threads, &err), ==, 0);
	g_assert_cmpint(topology_init(&vm->topo, &params, &err), ==, 0);
	vm->engine = &fake_engine;
	vm->engine_data = fake;
	vm->apic = apic;
	vm->tsc_hz = 1000000000;
	vm->kick_all = fake_kick_all;
	g_mutex_init(&vm->lock);
	inject_init(&vm->inject);
	for (i = 0; i < NR_DISTANCE_CLASSES; i++)
		hist_init(&vm->ipi_latency[i]);
	vm->ipi_matrix = g_malloc0_n(vm->topo.nr_nodes * vm->topo.nr_nodes, sizeof(u64));
	vm->vcpu = g_new0(struct vcpu *, vm->topo.nr_cpus);
	fake->cpu = g_new0(struct fake_cpu, vm->topo.nr_cpus);
	for (i = 0; i < vm->topo.nr_cpus; i++)
		fake_cpu_init(fake, i);
	return fake;
}

void fake_vm_free(struct fake_vm *fake)
{
	struct vm *vm = &fake->vm;
	u32 i;

	for (i = 0; i < vm->topo.nr_cpus; i++) {
		clock_destroy(&vm->vcpu[i]->clock);
		g_free(vm->vcpu[i]->lapic);
	}
	inject_destroy(&vm->inject);
	g_mutex_clear(&vm->lock);
	g_free((u64 *)vm->ipi_matrix);
	g_free(vm->vcpu);
	g_free(fake->cpu);
	g_free(fake);
}

u32 fake_run(struct fake_vm *fake, u32 cpu)
{
	struct clock *clock = &fake->vm.vcpu[cpu]->clock;
	u32 ran = 0;

	/* What an event posts (a device's message to its own CPU) is for the loop's next turn. */
	while (clock_first(clock) <= fake->now)
		ran += clock_run_due(clock, fake->now);
	return ran;
}

u32 fake_run_all(struct fake_vm *fake)
{
	u32 i, ran = 0;

	for (i = 0; i < fake->vm.topo.nr_cpus; i++)
		ran += fake_run(fake, i);
	return ran;
}

void fake_inject(struct fake_vm *fake, const char *key, const char *value)
{
	char *err = NULL;

	g_assert_cmpint(inject_add(&fake->vm.inject, key, value, ".", &err), ==, 0);
}

void fake_inject_start(struct fake_vm *fake, u64 seed)
{
	inject_start(&fake->vm.inject, fake->vm.topo.nr_cpus, seed);
	fake->vm.inject.on = true;
}

int fake_take(struct fake_vm *fake, u32 cpu)
{
	struct lapic *l = fake->vm.vcpu[cpu]->lapic;
	struct lapic_effect effect;
	int vector = lapic_pending(l);

	if (vector < 0)
		return -1;
	lapic_accept(l, (u8)vector);
	if (l->x2apic)
		lapic_msr_write(l, MSR_IA32_X2APIC_FIRST + (APIC_EOI >> 4), 0, fake->now, &effect);
	else
		lapic_write(l, APIC_EOI, 0, fake->now, &effect);
	return vector;
}

u32 fake_in(struct fake_vm *fake, u16 port, u32 len)
{
	u32 value = UINT32_MAX;

	g_mutex_lock(&fake->vm.lock);
	bus_access(fake->vm.bus, BUS_PIO, fake->vm.vcpu[0], port, false, &value, len);
	g_mutex_unlock(&fake->vm.lock);
	return len == 4 ? value : value & ((1u << len * 8) - 1);
}

void fake_out(struct fake_vm *fake, u16 port, u32 len, u32 value)
{
	g_mutex_lock(&fake->vm.lock);
	bus_access(fake->vm.bus, BUS_PIO, fake->vm.vcpu[0], port, true, &value, len);
	g_mutex_unlock(&fake->vm.lock);
}
