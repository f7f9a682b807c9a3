// SPDX-License-Identifier: GPL-2.0-only
/* A struct vm for a guest that QEMU runs: its RAM, and a machine of which only channel and serial ports are used. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "machine/machine.h"
#include "peer.h"
#include "placement.h"
#include "vcpu.h"

/* What a kernel and its initramfs may take at most on one side of the channel; less RAM cannot be had. */
static enum status check_room(const struct scenario *s, const struct vm_setup *setup, gpa_t channel)
{
	struct stat st;
	u64 kernel = stat(setup->kernel, &st) ? 0 : (u64)st.st_size, initrd = !setup->initrd || stat(setup->initrd, &st) ? 0 : (u64)st.st_size;

	/* A bzImage unpacks to some five times its size, from 16 MiB on. */
	if (16 * MIB + 6 * kernel <= channel && initrd + 16 * MIB <= channel)
		return STATUS_DONE;
	fb_err("%s: too little RAM below 4 GiB for a kernel of %llu and an initramfs of %llu MiB with the channel between them: a larger vm.memory",
	       scenario_origin(s, "vm", "memory"), DIV_ROUND_UP(kernel, MIB), DIV_ROUND_UP(initrd, MIB));
	return STATUS_BAD_INPUT;
}

/* Map a node's file at the next addresses. */
static int map_node(struct vm *vm, const char *path, u32 node, gpa_t *gpa)
{
	u64 size = vm->topo.node_memory[node], offset = 0;
	struct stat st;
	int fd = open(path, O_RDWR | O_CLOEXEC), err = 0;

	if (fd < 0 || fstat(fd, &st)) {
		err = -errno;
		fb_err("%s: the guest's RAM: %s", path, g_strerror(errno));
	} else if (!S_ISREG(st.st_mode) || (u64)st.st_size != size) {
		err = -EINVAL;
		fb_err("%s: node %u has %llu bytes of RAM, and this file has %lld", path, node, (unsigned long long)size,
		       (long long)st.st_size);
	}
	while (!err && offset < size) {
		u64 piece = *gpa < PEER_LOW_END ? MIN(size - offset, PEER_LOW_END - *gpa) : size - offset;

		err = memory_add_file(&vm->mem, *gpa, piece, node, fd, offset);
		offset += piece;
		*gpa += piece;
		if (*gpa == PEER_LOW_END)
			*gpa = 4 * GIB;
	}
	if (fd >= 0)
		close(fd);
	return err;
}

static enum status map_ram(struct vm *vm, const struct peer_place *place)
{
	char **file = place->ram;
	gpa_t gpa = 0;

	for (u32 node = 0; node < vm->topo.nr_nodes; node++) {
		if (!vm->topo.node_memory[node])
			continue;
		if (!file || !*file) {
			fb_err("--ram: a file for each node that has memory, and there is none for node %u", node);
			return STATUS_BAD_INPUT;
		}
		if (map_node(vm, *file++, node, &gpa))
			return STATUS_HOST;
	}
	if (!file || !*file)
		return STATUS_DONE;
	fb_err("--ram %s: there are more files than nodes with memory", *file);
	return STATUS_BAD_INPUT;
}

static void make_vcpus(struct vm *vm)
{
	vm->vcpu = g_new0(struct vcpu *, vm->topo.nr_cpus);
	for (u32 i = 0; i < vm->topo.nr_cpus; i++) {
		struct vcpu *vcpu = vm->vcpu[i] = g_new0(struct vcpu, 1);

		vcpu->vm = vm;
		vcpu->id = i;
		vcpu->apic_id = vm->topo.cpu[i].apic_id;
		vcpu_init(vcpu);
	}
}

enum status peer_build(struct vm *vm, const struct scenario *s, struct vm_setup *setup)
{
	enum status status = peer_check(s, vm->engine->name);
	gpa_t channel;

	if (status == STATUS_DONE)
		status = peer_topology(s, &vm->topo);
	if (status != STATUS_DONE)
		return status;
	vm->apic = APIC_PEER;
	vm->ipi_matrix = g_malloc0_n(vm->topo.nr_nodes * vm->topo.nr_nodes, sizeof(u64));
	inject_init(&vm->inject);
	inject_start(&vm->inject, vm->topo.nr_cpus, s->seed);
	channel = peer_channel(&vm->topo);
	if (loader_identify(setup->kernel, &setup->boot))
		return STATUS_BAD_INPUT;
	status = check_room(s, setup, channel);
	if (status == STATUS_DONE && vm->engine->vm_create(vm))
		status = STATUS_HOST;
	if (status == STATUS_DONE)
		status = map_ram(vm, setup->place);
	if (status == STATUS_DONE)
		status = placement_memory(vm, setup);
	if (status != STATUS_DONE)
		return status;
	make_vcpus(vm);
	if (machine_init(vm) || channel_init(&vm->machine->channel, vm, channel))
		return STATUS_INTERNAL;
	/* Only to see whether they can be asked for, as in vm_build(). */
	status = vm_knobs(vm, s);
	if (status == STATUS_DONE && channel_init(&vm->machine->channel, vm, channel))
		status = STATUS_INTERNAL;
	setup->cmdline = peer_cmdline(s, &vm->topo);
	setup->features = g_strdup("");
	setup->missing = g_strdup("");
	return status;
}
