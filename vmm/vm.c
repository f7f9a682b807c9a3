// SPDX-License-Identifier: GPL-2.0-only
/* Builds one VM from a scenario. */
#include "vm.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "core/symbols.h"
#include "cost-change.h"
#include "cost-file.h"
#include "machine/acpi.h"
#include "machine/fdt.h"
#include "machine/machine.h"
#include "peer.h"
#include "placement.h"
#include "run-threads.h"
#include "snapshot.h"
#include "vcpu.h"
#include "vmstat.h"

const struct engine_ops *vm_engine(const char *name)
{
	static const struct engine_ops *const engines[] = { &kvm_engine, &soft_engine, &qemu_engine, &libvirt_engine };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(engines); i++)
		if (strcmp(name, engines[i]->name) == 0)
			return engines[i];
	return NULL;
}

static bool injects(const struct scenario *s, const char *prefix)
{
	u32 i;

	for (i = 0; i < s->inject_key->len; i++)
		if (g_str_has_prefix(s->inject_key->pdata[i], prefix))
			return true;
	return false;
}

/* Is there an APIC id that the xAPIC's 8 bits do not hold? A topology that is wrong anyhow is reported later. */
static bool needs_x2apic(const struct scenario *s)
{
	struct topology_params params;
	struct topology *topo = g_new0(struct topology, 1);
	char *err = NULL;
	bool wide;

	scenario_topology(s, &params);
	params.x2apic = true;
	wide = topology_init(topo, &params, &err) == 0 && topology_needs_x2apic(topo);
	g_free(err);
	g_free(topo);
	return wide;
}

/*
 * Our local APIC wherever something is injected that needs it; else the faster one. An
 * x2APIC where ids demand it, otherwise the xAPIC that all engines have, so that they compare.
 */
static enum status vm_choose_apic(const struct scenario *s, const struct engine_caps *caps, enum apic_mode *apic)
{
	bool ours = injects(s, "ipi.") || injects(s, "timer.") || injects(s, "ept.") || injects(s, "exit.");

	switch (s->apic) {
	case SCENARIO_APIC_XAPIC:
		*apic = APIC_XAPIC;
		return STATUS_DONE;
	case SCENARIO_APIC_X2APIC:
		if (!caps->apic_x2apic) {
			fb_err("%s: vm.apic = x2apic: KVM does not hand x2APIC to user space; use xapic (ids to 254) "
			       "or kernel", scenario_origin(s, "vm", "apic"));
			return STATUS_HOST;
		}
		*apic = APIC_X2APIC;
		return STATUS_DONE;
	case SCENARIO_APIC_KERNEL:
		if (!caps->apic_kernel) {
			fb_err("%s: vm.apic = kernel: %s; use xapic", scenario_origin(s, "vm", "apic"),
			       caps->virtual_time ? "that is KVM's, and this is not KVM" :
			       "this host's KVM has no split irqchip");
			return STATUS_HOST;
		}
		/*
		 * With its own APIC KVM serves a second-level fault in a worker and lets the guest
		 * schedule away from it; IPIs and timer interrupts do not pass through here at all.
		 */
		if (ours) {
			fb_err("%s: vm.apic = kernel: [inject] needs the VMM's own local APIC; use apic = xapic or auto",
			       scenario_origin(s, "vm", "apic"));
			return STATUS_BAD_INPUT;
		}
		*apic = APIC_KERNEL;
		return STATUS_DONE;
	case SCENARIO_APIC_AUTO:
		break;
	}
	if (caps->apic_x2apic && needs_x2apic(s))
		*apic = APIC_X2APIC;
	else
		*apic = ours || !caps->apic_kernel ? APIC_XAPIC : APIC_KERNEL;
	return STATUS_DONE;
}

static enum status vm_topology(struct vm *vm, const struct scenario *s)
{
	struct topology_params params;
	char *err = NULL;

	scenario_topology(s, &params);
	params.x2apic = vm->apic == APIC_X2APIC;
	if (topology_init(&vm->topo, &params, &err) == 0)
		return STATUS_DONE;
	fb_err("%s: %s", scenario_origin(s, "vm", "topology"), err);
	g_free(err);
	return STATUS_BAD_INPUT;
}

static enum status vm_injection(struct vm *vm, const struct scenario *s)
{
	char *dir = g_path_get_dirname(s->path), *err = NULL;
	enum status status = STATUS_DONE;
	u32 i;

	inject_init(&vm->inject);
	for (i = 0; i < s->inject_key->len; i++) {
		if (inject_add(&vm->inject, s->inject_key->pdata[i], s->inject_value->pdata[i], dir, &err) == 0)
			continue;
		fb_err("%s: inject.%s: %s", scenario_origin(s, "inject", s->inject_key->pdata[i]),
		       (char *)s->inject_key->pdata[i], err);
		g_clear_pointer(&err, g_free);
		status = STATUS_BAD_INPUT;
	}
	g_free(dir);
	if (status == STATUS_DONE && inject_check_nodes(&vm->inject, vm->topo.nr_nodes, &err)) {
		fb_err("%s: [inject]: %s", s->path, err);
		g_free(err);
		status = STATUS_BAD_INPUT;
	}
	return status;
}

/* Delays that this host cannot give, or points that it cannot reach: said before anything is built. */
static enum status vm_check_injection(struct vm *vm, const struct scenario *s, struct vm_setup *setup)
{
	u64 min = inject_min(&vm->inject, INJECT_ipi);
	u32 i;

	if (vm->inject.ept_serve && !setup->caps.ept_serve) {
		fb_err("%s: inject.ept.*: this host cannot serve second-level faults in the VMM: it takes userfaultfd "
		       "minor faults (Linux 5.14) and CAP_SYS_PTRACE or /dev/userfaultfd; see faultbed doctor", s->path);
		return STATUS_HOST;
	}
	for (i = 0; !setup->caps.ept_protect && i < s->inject_key->len; i++) {
		const char *key = s->inject_key->pdata[i];

		if (!g_str_has_prefix(key, "ept.write_protect"))
			continue;
		fb_err("%s: inject.%s: this host cannot protect guest pages from writes: it takes a kernel whose userfaultfd "
		       "can write-protect shared memory (Linux 5.19, CONFIG_PTE_MARKER_UFFD_WP); engine = soft can",
		       scenario_origin(s, "inject", key), key);
		return STATUS_HOST;
	}
	if (vm->apic == APIC_KERNEL || setup->caps.virtual_time)
		return STATUS_DONE;
	setup->ipi_floor_ns = run_threads_floor();
	if (!vm->inject.active[INJECT_ipi] || min == UINT64_MAX || min == 0 || min >= setup->ipi_floor_ns)
		return STATUS_DONE;
	fb_err("%s: inject.ipi.*: a delay of %llu ns is below what an IPI costs on this host anyway (%llu ns between two "
	       "vCPU threads); ask for more", s->path, (unsigned long long)min,
	       (unsigned long long)setup->ipi_floor_ns);
	return STATUS_HOST;
}

/* RAM in order of nodes, with the device hole below 4 GiB left out. */
static int vm_memory(struct vm *vm, gpa_t *low_end)
{
	gpa_t gpa = 0;
	u32 node;
	int err;

	err = memory_create(&vm->mem);
	for (node = 0; !err && node < vm->topo.nr_nodes; node++) {
		u64 left = vm->topo.node_memory[node];

		while (!err && left) {
			u64 piece = gpa < LAYOUT_LOW_END ? MIN(left, LAYOUT_LOW_END - gpa) : left;

			err = memory_add(&vm->mem, gpa, piece, node);
			gpa += piece;
			left -= piece;
			if (gpa <= LAYOUT_LOW_END)
				*low_end = gpa;
			if (gpa == LAYOUT_LOW_END)
				gpa = LAYOUT_HIGH;
		}
	}
	return err;
}

static int vm_memslots(struct vm *vm)
{
	u32 i;
	int err = 0;

	for (i = 0; !err && i < vm->mem.nr_slots; i++)
		err = vm->engine->memslot_add(vm, &vm->mem.slot[i]);
	return err;
}

static enum status vm_cpus(struct vm *vm, const struct scenario *s, struct vm_setup *setup)
{
	struct cpuid_params params = {
		.model = s->cpu_model, .vendor = setup->caps.vendor, .host = vm->engine->host_cpuid(vm),
		.x2apic = vm->apic != APIC_XAPIC, .tsc_deadline = vm->apic == APIC_KERNEL || vm->tsc_deadline,
		.kvmclock = true, .pv_features = s->pv_features, .tsc_hz = vm->tsc_hz,
	};
	char *err = NULL;
	u32 i;

	vm->vcpu = g_new0(struct vcpu *, vm->topo.nr_cpus);
	for (i = 0; i < vm->topo.nr_cpus; i++) {
		struct vcpu *vcpu = vm->vcpu[i] = g_new0(struct vcpu, 1);

		vcpu->vm = vm;
		vcpu->id = i;
		vcpu->apic_id = vm->topo.cpu[i].apic_id;
		vcpu_init(vcpu);
		if (cpuid_build(&vcpu->cpuid, &vm->topo, i, &params, &err)) {
			fb_err("%s: cpu_model = %s: %s", scenario_origin(s, "vm", "cpu_model"), s->cpu_model, err);
			g_free(err);
			return STATUS_HOST;
		}
		if (vm->engine->vcpu_create(vcpu))
			return STATUS_HOST;
	}
	setup->features = cpuid_mask_string(&vm->vcpu[0]->cpuid);
	setup->missing = cpuid_missing(&params);
	return STATUS_DONE;
}

enum status vm_knobs(struct vm *vm, const struct scenario *s)
{
	u32 i;

	for (i = 0; i < s->knob_name->len; i++) {
		const char *name = s->knob_name->pdata[i], *value = s->knob_value->pdata[i];
		int err = channel_request_knob(&vm->machine->channel, name, value);
		char *key;

		if (!err)
			continue;
		key = g_strdup_printf("knob.%s", name);
		fb_err("%s: guest.%s = %s: %s", scenario_origin(s, "guest", key), key, value, err == -ENOSPC ?
		       "too many knobs (32 at most)" : "a name and a value have 31 printable bytes at most, no spaces");
		g_free(key);
		return STATUS_BAD_INPUT;
	}
	return STATUS_DONE;
}

/*
 * The contents are hashed, which also has them in the host's memory: they are part of what a boot
 * depends on, and a request should not wait for the host's own disk.
 */
static enum status vm_disk(struct vm *vm, const struct scenario *s, struct vm_setup *setup)
{
	struct disk disk;

	if (!s->disk_on)
		return STATUS_DONE;
	if (!setup->disk) {
		fb_err("%s: no image for guest.disk = default: give --disk (faultbed run finds the project's own)", s->path);
		return STATUS_BAD_INPUT;
	}
	if (disk_open(&disk, setup->disk, s->disk_read_only))
		return STATUS_BAD_INPUT;
	if (machine_add_disk(vm, &disk))
		return STATUS_INTERNAL;
	setup->disk_digest = snapshot_file_digest(setup->disk);
	return STATUS_DONE;
}

/* A bad image or initramfs is the user's to mend; the loader has said what is wrong with it. */
static enum status vm_load(struct vm *vm, const struct scenario *s, struct vm_setup *setup, gpa_t rsdp)
{
	struct x86_state *state = g_new0(struct x86_state, 1);
	struct boot_request req = {
		.kernel = setup->kernel, .initrd = setup->initrd, .rsdp = rsdp, .channel = vm->machine->channel.gpa,
	};
	enum status status = STATUS_DONE;
	/* No knobs here: a boot is the same for all values of them, so that one does for all (docs/snapshots.md). */
	void *fdt = fdt_build(vm->machine->channel.gpa, FAULTBED_CHANNEL_SIZE, FAULTBED_CHANNEL_VERSION, NULL, 0,
			      &req.fdt_size);

	setup->cmdline = g_strdup_printf("%s faultbed.channel=0x%llx,0x%x%s%s", VM_CMDLINE,
					 (unsigned long long)vm->machine->channel.gpa, FAULTBED_CHANNEL_SIZE,
					 s->append ? " " : "", s->append ? s->append : "");
	req.cmdline = setup->cmdline;
	req.fdt = fdt;
	if (!fdt)
		status = STATUS_INTERNAL;
	else if (loader_boot(vm, &req, state, &setup->boot))
		status = STATUS_BAD_INPUT;
	else if (vm->engine->set_state(vm->vcpu[0], state))
		status = STATUS_INTERNAL;
	g_free(fdt);
	g_free(state);
	return status;
}

/* Time's measure, or that there is none to choose. The engine's clock is the guest's TSC. */
static enum status vm_cost(struct vm *vm, const struct scenario *s, struct vm_setup *setup)
{
	if (!setup->caps.virtual_time) {
		vm->tsc_hz = setup->caps.tsc_hz;
		/* Asked for by name it has been refused already; where auto chose, the scenario is for either. */
		if (s->cost_model && strcmp(s->cost_model, "none"))
			fb_info("%s: vm.cost_model does nothing on %s, whose time is the host's",
				scenario_origin(s, "vm", "cost_model"), vm->engine->name);
		for (u32 i = 0; i < s->keys->len; i++) {
			const struct scenario_key *k = s->keys->pdata[i];

			if (!strcmp(k->section, "cost"))
				fb_info("%s: cost.%s does nothing on %s, whose time is the host's", k->origin, k->key,
					vm->engine->name);
		}
		return STATUS_DONE;
	}
	if (!setup->cost_model) {
		fb_err("%s: no cost model: give --cost-model (faultbed run finds the project's own)", s->path);
		return STATUS_BAD_INPUT;
	}
	if (cost_file_load(setup->cost_model, &vm->cost) || cost_change(&vm->cost, s))
		return STATUS_BAD_INPUT;
#ifdef FAULTBED_HARD
	vm->cost.v[COST_quantum] = 1;	/* the next vCPU's turn after every block */
#endif
	vm->tsc_hz = cost(&vm->cost, clock);
	if (!vm->cost.memory)
		g_ptr_array_add(setup->trust, g_strdup(VM_NO_MEMORY_MODEL));
	return STATUS_DONE;
}

/* What only some engines can do: nothing of it may be ignored in silence. */
static enum status vm_check_engine(const struct scenario *s, const struct vm_setup *setup)
{
	if (!setup->caps.virtual_time)
		return STATUS_DONE;
	if (s->pv_features) {
		fb_err("%s: guest.pv: the soft engine has no paravirtual features beside the clock; leave it out, or use kvm",
		       scenario_origin(s, "guest", "pv"));
		return STATUS_BAD_INPUT;
	}
	if (s->pin && strcmp(s->pin, "none") && strcmp(s->pin, "auto")) {
		fb_err("%s: vm.pin: the soft engine runs all vCPUs on one host thread", scenario_origin(s, "vm", "pin"));
		return STATUS_BAD_INPUT;
	}
	return STATUS_DONE;
}

static enum status vm_build_parts(struct vm *vm, const struct scenario *s, struct vm_setup *setup)
{
	enum status status;
	gpa_t rsdp, channel, low_end = 0;

	status = vm_check_engine(s, setup);
	if (status == STATUS_DONE)
		status = vm_cost(vm, s, setup);
	if (status == STATUS_DONE && engine_is_peer(vm->engine))
		return peer_build(vm, s, setup);
	if (status == STATUS_DONE)
		status = vm_choose_apic(s, &setup->caps, &vm->apic);
	if (status == STATUS_DONE)
		status = vm_topology(vm, s);
	if (status == STATUS_DONE)
		status = vm_injection(vm, s);
	if (status == STATUS_DONE)
		status = vm_check_injection(vm, s, setup);
	if (status != STATUS_DONE)
		return status;
	if (vm->topo.nr_cpus > setup->caps.max_vcpus) {
		fb_err("%s: %u vCPUs, and this host's %s takes %u", scenario_origin(s, "vm", "topology"),
		       vm->topo.nr_cpus, vm->engine->name, setup->caps.max_vcpus);
		return STATUS_HOST;
	}
	inject_start(&vm->inject, vm->topo.nr_cpus, s->seed);
	vm->ipi_matrix = g_malloc0_n(vm->topo.nr_nodes * vm->topo.nr_nodes, sizeof(u64));
	if (vm->engine->vm_create(vm) || vm_memory(vm, &low_end))
		return STATUS_HOST;
	status = placement_apply(vm, s, setup);
	if (status != STATUS_DONE)
		return status;
	if (vm_memslots(vm))
		return STATUS_HOST;
	status = vm_cpus(vm, s, setup);
	if (status != STATUS_DONE)
		return status;
	channel = low_end - FAULTBED_CHANNEL_SIZE;
	if (machine_init(vm))
		return STATUS_INTERNAL;
	status = vm_disk(vm, s, setup);
	if (status != STATUS_DONE)
		return status;
	if (channel_init(&vm->machine->channel, vm, channel) || acpi_build(vm, &rsdp))
		return STATUS_INTERNAL;
	/* Only to see whether they can be asked for, before anything runs; then the table is emptied again. */
	status = vm_knobs(vm, s);
	if (status != STATUS_DONE || channel_init(&vm->machine->channel, vm, channel))
		return status != STATUS_DONE ? status : STATUS_INTERNAL;
	return vm_load(vm, s, setup, rsdp);
}

enum status vm_build(const struct scenario *s, const struct engine_ops *engine, struct vm **out,
		     struct vm_setup *setup)
{
	struct vm *vm = g_new0(struct vm, 1);
	enum status status;
	char why[256];
	u32 i;

	*out = NULL;
	setup->trust = g_ptr_array_new_with_free_func(g_free);
	g_mutex_init(&vm->lock);
	clock_init(&vm->service, NULL, NULL);
	vm->mem.fd = -1;
	vm->engine = engine;
	for (i = 0; i < NR_DISTANCE_CLASSES; i++)
		hist_init(&vm->ipi_latency[i]);
	if (engine->probe(&setup->caps, why, sizeof(why))) {
		fb_err("engine = %s: %s", engine->name, why);
		status = STATUS_HOST;
	} else {
		vm->tsc_deadline = setup->caps.tsc_deadline;
		status = vm_build_parts(vm, s, setup);
	}
	if (status == STATUS_DONE)
		*out = vm;
	else
		vm_teardown(vm, setup);
	return status;
}

void vm_teardown(struct vm *vm, struct vm_setup *setup)
{
	u32 i;

	for (i = 0; vm->vcpu && i < vm->topo.nr_cpus; i++) {
		if (!vm->vcpu[i])
			break;
		if (vm->vcpu[i]->engine)
			vm->engine->vcpu_destroy(vm->vcpu[i]);
	}
	vm->engine->vm_destroy(vm);
	if (vm->machine)
		machine_destroy(vm);
	for (i = 0; vm->vcpu && i < vm->topo.nr_cpus; i++) {
		if (!vm->vcpu[i])
			break;
		vcpu_destroy(vm->vcpu[i]);
		g_free(vm->vcpu[i]);
	}
	g_free(vm->vcpu);
	memory_destroy(&vm->mem);
	inject_destroy(&vm->inject);
	clock_destroy(&vm->service);
	g_free((void *)vm->ipi_matrix);
	symbols_free(vm->symbols);
	vmstat_free(vm->vmstat);
	g_mutex_clear(&vm->lock);
	g_free(vm);
	g_free(setup->cmdline);
	g_free(setup->features);
	g_free(setup->missing);
	g_free(setup->disk_digest);
	g_free(setup->pin);
	g_ptr_array_unref(setup->trust);
	setup->cmdline = setup->features = setup->missing = setup->disk_digest = NULL;
	setup->pin = NULL;
	setup->trust = NULL;
}
