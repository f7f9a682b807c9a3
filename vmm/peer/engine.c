// SPDX-License-Identifier: GPL-2.0-only
/*
 * Engines that run nothing: the guest is QEMU's, which the front end has started, by itself or by libvirt, and the VMM
 * attaches to it (vmm/peer.h). Nothing is injected there, and of the host's counters none is seen.
 */
#include "core/engine.h"

#include <time.h>

#include "core/host.h"

static u64 host_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * NSEC_PER_SEC + (u64)ts.tv_nsec;
}

/* The front end knows whether there is a QEMU, and of what kind. */
static int peer_probe(struct engine_caps *caps, char *why, size_t why_len)
{
	*caps = (struct engine_caps){ .max_vcpus = TOPOLOGY_MAX_CPUS };
	return 0;
}

static int peer_vm_create(struct vm *vm)
{
	vm->engine_data = g_new0(u64, 1);
	return 0;
}

static void peer_vm_destroy(struct vm *vm)
{
	g_free(vm->engine_data);
}

static int peer_vm_start(struct vm *vm)
{
	*(u64 *)vm->engine_data = host_ns();
	return 0;
}

static u64 peer_now(struct vm *vm, struct vcpu *vcpu)
{
	return host_ns() - *(u64 *)vm->engine_data;
}

static int peer_read_stats(struct vm *vm, GArray *stats)
{
	return 0;
}

#define PEER_ENGINE(engine_name) { \
	.name = engine_name, \
	.probe = peer_probe, \
	.vm_create = peer_vm_create, \
	.vm_destroy = peer_vm_destroy, \
	.vm_start = peer_vm_start, \
	.now = peer_now, \
	.read_stats = peer_read_stats, \
	.describe = host_describe, \
}

const struct engine_ops qemu_engine = PEER_ENGINE("qemu");
const struct engine_ops libvirt_engine = PEER_ENGINE("libvirt");
