// SPDX-License-Identifier: GPL-2.0-only
/* The soft engine: VM, vCPUs, what they hold, and the operations table. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"
#include "soft/lines.h"
#include "soft/profile.h"
#include "soft/snapshot.h"
#include "soft/soft.h"
#include "soft/spin.h"
#include "x86/msr.h"

/* Streams of RDRAND beside those of core/inject.c, which number theirs by point and vCPU. */
#define RDRAND_STREAM	0x52445244ull
#define JITTER_STREAM	0x4c494e45ull

static int soft_probe(struct engine_caps *caps, char *why, size_t why_len)
{
	*caps = (struct engine_caps) {
		.apic_x2apic = true, .ept_serve = true, .ept_protect = true, .binary_stats = true, .tsc_deadline = true,
		.vendor = VENDOR_INTEL, .max_vcpus = TOPOLOGY_MAX_CPUS, .virtual_time = true,
		/* tsc_hz is the cost model's clock, which is not known yet. */
	};
#ifdef __x86_64__
	return 0;
#else
	snprintf(why, why_len, "the soft engine does the guest's SSE with the host's, so the host has to be x86-64");
	return -EOPNOTSUPP;
#endif
}

static size_t soft_page_bytes(u64 nr_pages)
{
	return ALIGN_UP(nr_pages * sizeof(struct soft_page), PAGE_SIZE);
}

static int soft_vm_create(struct vm *vm)
{
	struct soft_vm *svm = g_new0(struct soft_vm, 1);
	int err;

	vm->engine_data = svm;
	svm->vm = vm;
	svm->cost = vm->cost;
	svm->hz = cost(&svm->cost, clock);
	if (svm->hz < 100000000 || svm->hz > 10000000000) {
		fb_err("soft: the VM has no cost model with a clock of 100 MHz to 10 GHz");
		return -EINVAL;
	}
	soft_clock_init(svm);
	err = soft_blocks_create(svm);
	if (err) {
		fb_err("soft: block cache: %s", strerror(-err));
		return err;
	}
	return svm->cost.memory ? soft_lines_create(svm) : 0;
}

static void soft_vm_destroy(struct vm *vm)
{
	struct soft_vm *svm = vm->engine_data;

	if (!svm)
		return;
	soft_profile_destroy(svm);
	soft_lines_destroy(svm);
	soft_blocks_destroy(svm);
	if (svm->page)
		munmap(svm->page, soft_page_bytes(svm->nr_pages));
	g_free(svm);
	vm->engine_data = NULL;
}

/* The page array grows in place of its zeroes: a large guest that touches little costs little. */
static int soft_memslot_add(struct vm *vm, const struct memslot *slot)
{
	struct soft_vm *svm = vm->engine_data;
	u64 nr = MAX(svm->nr_pages, (slot->offset + slot->size) >> PAGE_SHIFT);
	void *page;

	if (nr == svm->nr_pages)
		return 0;
	if (svm->page)
		page = mremap(svm->page, soft_page_bytes(svm->nr_pages), soft_page_bytes(nr), MREMAP_MAYMOVE);
	else
		page = mmap(NULL, soft_page_bytes(nr), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (page == MAP_FAILED) {
		int err = -errno;

		fb_err("soft: page table of %llu guest pages: %s", (unsigned long long)nr, strerror(-err));
		return err;
	}
	svm->page = page;
	svm->nr_pages = nr;
	return svm->lines ? soft_lines_grow(svm, nr) : 0;
}

static int soft_vm_start(struct vm *vm)
{
	return 0;
}

static const struct cpuid_table *soft_host_cpuid(struct vm *vm)
{
	return NULL;	/* everything in the model */
}

static void soft_cpu_reseed(struct soft_cpu *c, u64 seed)
{
	rng_seed(&c->rng, seed, RDRAND_STREAM << 32 | c->vcpu->id);
	rng_seed(&c->jitter, seed, JITTER_STREAM << 32 | c->vcpu->id);
}

static int soft_vcpu_create(struct vcpu *vcpu)
{
	struct soft_vm *svm = vcpu->vm->engine_data;
	struct soft_cpu *c = g_aligned_alloc0(1, sizeof(*c), 64);
	const struct cpuid_entry *features = cpuid_find(&vcpu->cpuid, 0, 0);
	struct x86_state *state;
	int err;

	vcpu->engine = c;
	c->vcpu = vcpu;
	c->svm = svm;
	c->cpi = cost(&svm->cost, cpi);
	/* As on kvm (kvm-cpuid.c): without the fast-string bit Linux drops ERMS and REP_GOOD. */
	if (features && !memcmp(&features->ebx, "Genu", 4))
		c->misc_enable = MISC_ENABLE_FAST_STRING | MISC_ENABLE_BTS_UNAVAIL | MISC_ENABLE_PEBS_UNAVAIL;
	soft_cpu_reseed(c, 0);
	if (svm->lines)
		soft_lines_attach(c);
	err = soft_tlb_create(c);
	if (err) {
		fb_err("soft: TLB of vCPU %u: %s", vcpu->id, strerror(-err));
		return err;
	}
	state = g_new0(struct x86_state, 1);
	x86_state_reset(state);
	soft_set_state(c, state);
	g_free(state);
	return 0;
}

static void soft_vcpu_destroy(struct vcpu *vcpu)
{
	struct soft_cpu *c = vcpu->engine;

	if (!c)
		return;
	soft_tlb_destroy(c);
	g_free(c->exec);
	g_free(c->filter);
	g_aligned_free(c);
	vcpu->engine = NULL;
}

static int soft_vcpu_get_state(struct vcpu *vcpu, struct x86_state *state)
{
	soft_get_state(soft_cpu(vcpu), state);
	return 0;
}

static int soft_vcpu_set_state(struct vcpu *vcpu, const struct x86_state *state)
{
	soft_set_state(soft_cpu(vcpu), state);
	return 0;
}

/* From another vCPU's turn: the one kicked looks at its clock before it runs the next block. */
static void soft_kick(struct vcpu *vcpu)
{
	soft_break(soft_cpu(vcpu));
}

/* SDM 3A 6.8.1, 6.8.3 [7.8]: IF, and not right behind STI, MOV SS or POP SS. */
static bool soft_can_inject(struct vcpu *vcpu)
{
	struct soft_cpu *c = soft_cpu(vcpu);

	if (c->sysflags & X86_EFLAGS_IF && !c->shadow && !c->irq_pending)
		return true;
	c->want_window = true;
	return false;
}

static int soft_inject(struct vcpu *vcpu, u8 vector)
{
	struct soft_cpu *c = soft_cpu(vcpu);

	fb_assert(!c->irq_pending);
	c->irq_pending = true;
	c->irq_vector = vector;
	return 0;
}

static int soft_inject_nmi(struct vcpu *vcpu)
{
	soft_cpu(vcpu)->nmi_pending = true;
	return 0;
}

static u64 soft_now(struct vm *vm, struct vcpu *vcpu)
{
	const struct soft_cpu *c;

	if (!vcpu)
		return vm->frontier;
	c = soft_cpu(vcpu);
	return soft_ns(c->svm, soft_units(c));
}

static bool soft_rip(struct vcpu *vcpu, u64 *rip)
{
	*rip = soft_cpu(vcpu)->rip;
	return true;
}

static bool soft_vcpu_peek(struct vcpu *vcpu, u64 va, gpa_t *gpa)
{
	return soft_peek(soft_cpu(vcpu), va, gpa);
}

static void soft_charge(struct vcpu *vcpu, u64 ns, enum charge why)
{
	static const enum soft_time class[] = {
		[CHARGE_IDLE] = TIME_idle, [CHARGE_WAKE] = TIME_wake, [CHARGE_INJECTED] = TIME_injected,
	};
	struct soft_cpu *c = soft_cpu(vcpu);

	soft_spend(c, class[why], soft_units_of(c->svm, ns));
}

/* --- statistics --- */

/* Cycles not halted: idle_ns is what the vCPU's clock skipped. */
static u64 soft_cycles(const struct soft_cpu *c)
{
	u64 units = soft_units(c);
	u64 idle = soft_units_of(c->svm, counter_read(&c->vcpu->counters, COUNTER_idle_ns));

	return units > idle ? (units - idle) / COST_CYCLE : 0;
}

static u64 soft_l1d_hits(const struct soft_cpu *c)
{
	u64 misses = c->stat[STAT_tlb_l1d_misses];

	return c->accesses > misses ? c->accesses - misses : 0;
}

/* What is not in soft-stats.def because it is not kept as a counter. */
static const struct {
	const char *name;
	u64 (*read)(const struct soft_cpu *c);
} soft_derived[] = {
	{ "cycles", soft_cycles },
	{ "tlb_l1d_hits", soft_l1d_hits },
};

/* The memory model's. */
static const struct {
	const char *name;
	enum line_from from;
} soft_line_stats[] = {
	{ "lines_l2", LINE_FROM_L2 }, { "lines_l3", LINE_FROM_L3 }, { "line_transfers_smt", LINE_FROM_SIBLING },
	{ "line_transfers_socket", LINE_FROM_SOCKET }, { "line_transfers_remote", LINE_FROM_REMOTE },
	{ "lines_dram_local", LINE_FROM_DRAM_LOCAL }, { "lines_dram_remote", LINE_FROM_DRAM_REMOTE },
};

/* Where time went, in cycles. */
static const char *const soft_time_stats[] = {
#define SOFT_TIME(name, meaning)	"time_" #name,
#include "soft/soft-time.def"
#undef SOFT_TIME
};

static bool vm_lines(const struct vm *vm)
{
	return ((const struct soft_vm *)vm->engine_data)->lines;
}

static struct engine_stat *soft_stat_add(struct vm *vm, GArray *stats, const char *name)
{
	struct engine_stat s = { .per_vcpu = g_new0(u64, vm->topo.nr_cpus) };

	g_strlcpy(s.name, name, sizeof(s.name));
	g_array_append_val(stats, s);
	return &g_array_index(stats, struct engine_stat, stats->len - 1);
}

static int soft_read_stats(struct vm *vm, GArray *stats)
{
	static const struct {
		const char *name;
		size_t offset;
	} counted[] = {
		{ "instructions", offsetof(struct soft_cpu, insns) },
		{ "data_accesses", offsetof(struct soft_cpu, accesses) },
#define SOFT_STAT(name, meaning)	{ #name, offsetof(struct soft_cpu, stat) + STAT_##name * sizeof(u64) },
#include "soft/soft-stats.def"
#undef SOFT_STAT
	};
	size_t i;
	u32 cpu;

	soft_spin_wake_all(vm->engine_data);
	for (i = 0; i < ARRAY_SIZE(counted); i++) {
		struct engine_stat *s = soft_stat_add(vm, stats, counted[i].name);

		for (cpu = 0; cpu < vm->topo.nr_cpus; cpu++) {
			memcpy(&s->per_vcpu[cpu], (const u8 *)soft_cpu(vm->vcpu[cpu]) + counted[i].offset, sizeof(u64));
			s->value += s->per_vcpu[cpu];
		}
	}
	for (i = 0; vm_lines(vm) && i < ARRAY_SIZE(soft_line_stats); i++) {
		struct engine_stat *s = soft_stat_add(vm, stats, soft_line_stats[i].name);

		for (cpu = 0; cpu < vm->topo.nr_cpus; cpu++)
			s->value += s->per_vcpu[cpu] = soft_cpu(vm->vcpu[cpu])->lines_from[soft_line_stats[i].from];
	}
	for (cpu = 0; cpu < vm->topo.nr_cpus; cpu++)
		soft_settle(soft_cpu(vm->vcpu[cpu]));
	for (i = 0; i < NR_SOFT_TIMES; i++) {
		struct engine_stat *s = soft_stat_add(vm, stats, soft_time_stats[i]);

		for (cpu = 0; cpu < vm->topo.nr_cpus; cpu++)
			s->value += s->per_vcpu[cpu] = soft_cpu(vm->vcpu[cpu])->spent[i] / COST_CYCLE;
	}
	for (i = 0; i < ARRAY_SIZE(soft_derived); i++) {
		struct engine_stat *s = soft_stat_add(vm, stats, soft_derived[i].name);

		for (cpu = 0; cpu < vm->topo.nr_cpus; cpu++)
			s->value += s->per_vcpu[cpu] = soft_derived[i].read(soft_cpu(vm->vcpu[cpu]));
	}
	return 0;
}

static char *soft_describe(struct vm *vm)
{
	const struct soft_vm *svm = vm->engine_data;

	return g_strdup_printf("engine=soft\ncost_model=%s\ncost_model_sha256=%s\nline_model=%s\n", svm->cost.name,
			       svm->cost.digest, svm->lines ? "on" : "off");
}

static void soft_reseed(struct vm *vm, u64 seed)
{
	u32 cpu;

	for (cpu = 0; cpu < vm->topo.nr_cpus; cpu++)
		soft_cpu_reseed(soft_cpu(vm->vcpu[cpu]), seed);
}

const struct engine_ops soft_engine = {
	.name = "soft",
	.probe = soft_probe,
	.vm_create = soft_vm_create,
	.vm_destroy = soft_vm_destroy,
	.memslot_add = soft_memslot_add,
	.gpa_lowered = soft_gpa_lowered,
	.gpa_written = soft_gpa_written,
	.vm_start = soft_vm_start,
	.host_cpuid = soft_host_cpuid,
	.vcpu_create = soft_vcpu_create,
	.vcpu_destroy = soft_vcpu_destroy,
	.get_state = soft_vcpu_get_state,
	.set_state = soft_vcpu_set_state,
	.run = soft_run,
	.kick = soft_kick,
	.can_inject = soft_can_inject,
	.inject = soft_inject,
	.inject_nmi = soft_inject_nmi,
	.now = soft_now,
	.charge = soft_charge,
	.read_stats = soft_read_stats,
	.describe = soft_describe,
	.save = soft_snapshot_save,
	.restore = soft_snapshot_restore,
	.vm_save = soft_snapshot_vm_save,
	.vm_restore = soft_snapshot_vm_restore,
	.rip = soft_rip,
	.peek = soft_vcpu_peek,
	.dump = soft_dump,
	.reseed = soft_reseed,
	.park_until = soft_spin_until,
	.profile_start = soft_profile_start,
	.profile_read = soft_profile_read,
};
