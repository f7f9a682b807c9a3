// SPDX-License-Identifier: GPL-2.0-only
#include "soft-fixture.h"

#include <string.h>

#include "x86/cr.h"

static struct soft_fixture *fixture_of(struct vcpu *vcpu)
{
	return (struct soft_fixture *)vcpu->vm;
}

static u64 take_bytes(const void *data, u32 len)
{
	u64 value = 0;

	g_assert_cmpuint(len, <=, sizeof(value));
	memcpy(&value, data, len);
	return value;
}

void vcpu_pio(struct vcpu *vcpu, u16 port, bool write, void *data, u32 len)
{
	struct soft_fixture *f = fixture_of(vcpu);

	g_assert_true(len == 1 || len == 2 || len == 4);
	f->nr_pio++;
	f->pio_port = port;
	f->pio_write = write;
	f->pio_len = len;
	if (write)
		f->pio_data = take_bytes(data, len);
	else
		memcpy(data, &f->pio_value, len);
}

void vcpu_mmio(struct vcpu *vcpu, gpa_t gpa, bool write, void *data, u32 len)
{
	struct soft_fixture *f = fixture_of(vcpu);
	u32 at = gpa & (PAGE_SIZE - 1);

	g_assert_cmpuint(len, >=, 1);
	g_assert_cmpuint(len, <=, 8);
	g_assert_cmpuint(at + len, <=, PAGE_SIZE);
	f->nr_mmio++;
	f->mmio_gpa = gpa;
	f->mmio_write = write;
	f->mmio_len = len;
	if (write) {
		f->mmio_data = take_bytes(data, len);
		memcpy(f->mmio + at, data, len);
	} else {
		memcpy(data, f->mmio + at, len);
	}
}

bool vcpu_msr(struct vcpu *vcpu, u32 msr, bool write, u64 *value)
{
	struct soft_fixture *f = fixture_of(vcpu);

	f->nr_msr++;
	f->msr = msr;
	f->msr_write = write;
	if (f->msr_gp)
		return false;
	if (write)
		f->msr_data = *value;
	else
		*value = f->msr_value;
	return true;
}

u64 vcpu_ept_violation(struct vcpu *vcpu, gpa_t gpa, enum ept_cause cause)
{
	struct soft_fixture *f = fixture_of(vcpu);

	f->nr_ept++;
	f->ept_gpa = gpa;
	f->ept_cause = cause;
	return f->ept_delay;
}

void vcpu_count_exit(struct vcpu *vcpu, enum counter which)
{
	fixture_of(vcpu)->nr_exits[which]++;
}

bool vcpu_turn_needed(struct vcpu *vcpu, u64 until)
{
	struct soft_fixture *f = fixture_of(vcpu);

	f->nr_turn++;
	return f->turn_needed;
}

u8 vcpu_get_cr8(struct vcpu *vcpu)
{
	return fixture_of(vcpu)->cr8;
}

void vcpu_set_cr8(struct vcpu *vcpu, u8 cr8)
{
	struct soft_fixture *f = fixture_of(vcpu);

	f->nr_cr8_writes++;
	f->cr8 = cr8;
}

void vcpu_tsc_moved(struct vcpu *vcpu, s64 offset)
{
	struct soft_fixture *f = fixture_of(vcpu);

	f->nr_tsc_moves++;
	f->tsc_offset = offset;
}

void vcpu_ioapic_eoi(struct vcpu *vcpu, u8 vector)
{
	struct soft_fixture *f = fixture_of(vcpu);

	f->nr_eoi++;
	f->eoi_vector = vector;
}

static void wake(void *ctx)
{
}

static void fixture_cpu_init(struct soft_fixture *f, u32 id)
{
	struct cpuid_params params = { .model = "faultbed-v1", .vendor = VENDOR_INTEL, .x2apic = true,
				       .tsc_deadline = true, .tsc_hz = f->vm.tsc_hz, .phys_bits = 40 };
	struct vcpu *vcpu = &f->cpu[id];
	struct x86_state reset;
	char *err = NULL;

	vcpu->vm = &f->vm;
	vcpu->id = id;
	vcpu->apic_id = f->vm.topo.cpu[id].apic_id;
	clock_init(&vcpu->clock, wake, NULL);
	g_assert_cmpint(cpuid_build(&vcpu->cpuid, &f->vm.topo, id, &params, &err), ==, 0);
	f->vm.vcpu[id] = vcpu;
	g_assert_cmpint(f->vm.engine->vcpu_create(vcpu), ==, 0);
	x86_state_reset(&reset);
	soft_fixture_set(f, id, &reset);
}

struct soft_fixture *soft_fixture_new_on(u32 mem_mib, const struct topology_params *params,
					 const struct cost_model *model)
{
	struct soft_fixture *f = g_new0(struct soft_fixture, 1);
	struct vm *vm = &f->vm;
	u32 nr_cpus, nr_nodes, i;
	char *err = NULL;

	g_assert_cmpint(topology_init(&vm->topo, params, &err), ==, 0);
	nr_cpus = vm->topo.nr_cpus;
	nr_nodes = vm->topo.nr_nodes;
	vm->engine = &soft_engine;
	vm->apic = APIC_XAPIC;
	vm->cost = *model;
	vm->tsc_hz = cost(&vm->cost, clock);
	g_mutex_init(&vm->lock);
	inject_init(&vm->inject);
	inject_start(&vm->inject, nr_cpus, 1);
	vm->vcpu = g_new0(struct vcpu *, nr_cpus);
	f->cpu = g_new0(struct vcpu, nr_cpus);
	g_assert_cmpint(memory_create(&vm->mem), ==, 0);
	g_assert_cmpint(vm->engine->vm_create(vm), ==, 0);
	for (i = 0; i < nr_nodes; i++) {
		g_assert_cmpint(memory_add(&vm->mem, i * (u64)mem_mib * MIB, mem_mib * MIB, i), ==, 0);
		g_assert_cmpint(vm->engine->memslot_add(vm, &vm->mem.slot[i]), ==, 0);
	}
	for (i = 0; i < nr_cpus; i++)
		fixture_cpu_init(f, i);
	if (vm->engine->vm_start)
		g_assert_cmpint(vm->engine->vm_start(vm), ==, 0);
	return f;
}

struct soft_fixture *soft_fixture_new(u32 mem_mib, u32 nr_cpus)
{
	struct topology_params params = { .sockets = 1, .cores = 1, .threads = nr_cpus, .memory = 4 * GIB };
	struct cost_model model;

	cost_default(&model);
	return soft_fixture_new_on(mem_mib, &params, &model);
}

void soft_fixture_memory(struct cost_model *m)
{
	static const struct {
		enum cost_id id;
		u64 v;
	} memory[] = {
		{ COST_cache_l1_kib, 2 }, { COST_cache_l1_ways, 2 }, { COST_cache_l2_kib, 4 }, { COST_cache_l2_ways, 4 },
		{ COST_cache_l3_kib, 64 }, { COST_cache_l3_ways, 4 }, { COST_l2_hit, 9 * COST_CYCLE },
		{ COST_l3_hit, 12500 }, { COST_line_sibling, 8500 }, { COST_line_socket_clean, 31000 },
		{ COST_line_socket_dirty, 43000 }, { COST_line_remote_clean, 97000 }, { COST_line_remote_dirty, 127000 },
		{ COST_line_hop, 40000 }, { COST_socket_links, 3 }, { COST_dram_local, 79000 },
		{ COST_dram_remote, 139000 }, { COST_dram_line, 1500 }, { COST_link_line, 2300 }, { COST_l3_line, 1000 },
		{ COST_stream_l2, 1700 }, { COST_stream_l3, 3100 }, { COST_stream_dram, 5300 },
		{ COST_stream_remote, 9700 }, { COST_miss_window, 168 }, { COST_misses, 10 }, { COST_lock, 19 * COST_CYCLE },
		{ COST_fence, 37 * COST_CYCLE }, { COST_pause, 11 * COST_CYCLE }, { COST_smt_slowdown, 3 * COST_RATIO / 2 },
	};

	cost_default(m);
	m->memory = true;
	m->v[COST_quantum] = 25;
	for (size_t i = 0; i < ARRAY_SIZE(memory); i++)
		m->v[memory[i].id] = memory[i].v;
}

void soft_fixture_free(struct soft_fixture *f)
{
	struct vm *vm = &f->vm;
	u32 i;

	for (i = 0; i < vm->topo.nr_cpus; i++) {
		vm->engine->vcpu_destroy(&f->cpu[i]);
		clock_destroy(&f->cpu[i].clock);
	}
	vm->engine->vm_destroy(vm);
	memory_destroy(&vm->mem);
	inject_destroy(&vm->inject);
	g_mutex_clear(&vm->lock);
	g_free(vm->vcpu);
	g_free(f->cpu);
	g_free(f);
}

void *soft_fixture_ram(struct soft_fixture *f, gpa_t gpa, u64 len)
{
	void *p = memory_hva(&f->vm.mem, gpa, len);

	g_assert_nonnull(p);
	return p;
}

void soft_fixture_load(struct soft_fixture *f, gpa_t gpa, const void *bytes, u64 len)
{
	memcpy(soft_fixture_ram(f, gpa, len), bytes, len);
}

void soft_fixture_get(struct soft_fixture *f, u32 cpu, struct x86_state *s)
{
	memset(s, 0, sizeof(*s));
	g_assert_cmpint(f->vm.engine->get_state(&f->cpu[cpu], s), ==, 0);
}

void soft_fixture_set(struct soft_fixture *f, u32 cpu, const struct x86_state *s)
{
	g_assert_cmpint(f->vm.engine->set_state(&f->cpu[cpu], s), ==, 0);
}

void soft_fixture_long(struct soft_fixture *f, u32 cpu, struct x86_state *s)
{
	/* SDM 3A 3.4.5: flat, present; by selector. */
	static const u64 gdt[] = {
		0, 0,
		0x00af9b000000ffffull, 0x00cf93000000ffffull, 0x00cf9b000000ffffull,
		0x00cff3000000ffffull, 0x00affb000000ffffull, 0, 0,
	};
	const u64 table = X86_PTE_P | X86_PTE_RW | X86_PTE_US;
	u64 *pml4 = soft_fixture_ram(f, FIXTURE_PML4, PAGE_SIZE);
	u64 *pdpt = soft_fixture_ram(f, FIXTURE_PDPT, PAGE_SIZE);
	u64 *pd = soft_fixture_ram(f, FIXTURE_PD, PAGE_SIZE);
	struct x86_state st;

	pml4[0] = FIXTURE_PDPT | table;
	pdpt[0] = FIXTURE_PD | table;
	for (u64 i = 0; i < 512; i++)
		pd[i] = i * 2 * MIB | X86_PTE_PS | table;
	soft_fixture_load(f, FIXTURE_GDT, gdt, sizeof(gdt));
	x86_state_long(&st, FIXTURE_CODE, 0, FIXTURE_PML4, FIXTURE_GDT, sizeof(gdt) - 1);
	st.gpr[X86_RSP] = FIXTURE_STACK;
	st.cr0 |= X86_CR0_MP | X86_CR0_NE | X86_CR0_WP;
	st.cr4 |= X86_CR4_OSFXSR | X86_CR4_OSXMMEXCPT;
	st.efer |= X86_EFER_NXE | X86_EFER_SCE;
	soft_fixture_set(f, cpu, &st);
	if (s)
		*s = st;
}

enum run_exit soft_fixture_run(struct soft_fixture *f, u32 cpu, u64 ns)
{
	struct vcpu *vcpu = &f->cpu[cpu];
	enum run_exit why;

	do {
		why = f->vm.engine->run(vcpu, ns);
	} while (why == RUN_KICK && f->vm.engine->now(&f->vm, vcpu) < ns);
	return why;
}
