// SPDX-License-Identifier: GPL-2.0-only
/* Routing, delaying and counting interrupt messages between vCPUs. */
#include <errno.h>
#include <glib.h>

#include "fake-engine.h"
#include "machine/apicbus.h"
#include "x86/apic.h"

static u64 count(struct fake_vm *f, u32 cpu, enum counter c)
{
	return counter_read(&f->vm.vcpu[cpu]->counters, c);
}

static void send(struct fake_vm *f, u32 src, struct apic_msg msg)
{
	apicbus_send_ipi(f->vm.vcpu[src], &msg, f->now);
}

static struct apic_msg fixed(u32 dest, u8 vector)
{
	return (struct apic_msg){ .dest = dest, .vector = vector, .assert = true };
}

static struct apic_msg shorthand(enum apic_shorthand sh, u8 vector)
{
	return (struct apic_msg){ .shorthand = sh, .vector = vector, .assert = true };
}

static u32 has(struct fake_vm *f, u32 cpu, u8 vector)
{
	return f->vm.vcpu[cpu]->lapic->irr[vector / 32] >> vector % 32 & 1;
}

/* The set of CPUs that have a vector pending, as a bit mask; and clear it. */
static u32 who(struct fake_vm *f, u8 vector)
{
	u32 i, set = 0;

	fake_run_all(f);
	for (i = 0; i < f->vm.topo.nr_cpus; i++) {
		set |= has(f, i, vector) << i;
		f->vm.vcpu[i]->lapic->irr[vector / 32] &= ~BIT(vector % 32);
	}
	return set;
}

static void test_physical(void)
{
	struct fake_vm *f = fake_vm_new("2x2x1", APIC_XAPIC);
	u32 i;

	for (i = 0; i < 4; i++) {
		send(f, 0, fixed(f->vm.topo.cpu[i].apic_id, 0x40));
		/* Nothing is visible before the target runs its clock. */
		g_assert_cmpuint(has(f, i, 0x40), ==, 0);
		g_assert_cmphex(who(f, 0x40), ==, BIT(i));
	}
	send(f, 1, fixed(0xff, 0x41));
	g_assert_cmphex(who(f, 0x41), ==, 0xf);
	send(f, 1, fixed(0x80, 0x41));
	g_assert_cmphex(who(f, 0x41), ==, 0);
	/* One ICR write each; one IPI for each target. */
	g_assert_cmpuint(count(f, 0, COUNTER_icr_writes), ==, 4);
	g_assert_cmpuint(count(f, 0, COUNTER_ipis_sent), ==, 4);
	g_assert_cmpuint(count(f, 1, COUNTER_icr_writes), ==, 2);
	g_assert_cmpuint(count(f, 1, COUNTER_ipis_sent), ==, 4);
	for (i = 0; i < 4; i++)
		g_assert_cmpuint(count(f, i, COUNTER_ipis_delivered), ==, 2);
	/* By node: 0 sends to two CPUs of each node, then 1 (node 0) to all. */
	g_assert_cmpuint(f->vm.ipi_matrix[0], ==, 4);
	g_assert_cmpuint(f->vm.ipi_matrix[1], ==, 4);
	g_assert_cmpuint(f->vm.ipi_matrix[2] + f->vm.ipi_matrix[3], ==, 0);
	g_assert_cmpuint(f->vm.ipi_vector[0x40], ==, 4);
	g_assert_cmpuint(f->vm.ipi_vector[0x41], ==, 4);
	fake_vm_free(f);
}

static void test_shorthands(void)
{
	struct fake_vm *f = fake_vm_new("1x4x1", APIC_XAPIC);

	send(f, 2, shorthand(APIC_SH_SELF, 0x40));
	g_assert_cmphex(who(f, 0x40), ==, 0x4);
	send(f, 2, shorthand(APIC_SH_ALL, 0x40));
	g_assert_cmphex(who(f, 0x40), ==, 0xf);
	send(f, 2, shorthand(APIC_SH_OTHERS, 0x40));
	g_assert_cmphex(who(f, 0x40), ==, 0xb);
	g_assert_cmpuint(count(f, 2, COUNTER_ipis_sent), ==, 1 + 4 + 3);
	g_assert_cmpuint(f->vm.ipi_latency[DISTANCE_SELF].count, ==, 2);
	g_assert_cmpuint(f->vm.ipi_latency[DISTANCE_SOCKET].count, ==, 6);
	fake_vm_free(f);
}

static void test_logical(void)
{
	struct fake_vm *f = fake_vm_new("1x4x1", APIC_XAPIC);
	struct lapic_effect e;
	struct apic_msg msg = fixed(0x05, 0x40);
	u32 i;

	msg.logical = true;
	for (i = 0; i < 4; i++)
		lapic_write(f->vm.vcpu[i]->lapic, APIC_LDR, 0x01000000u << i, 0, &e);
	send(f, 0, msg);
	g_assert_cmphex(who(f, 0x40), ==, 0x5);
	/* Lowest priority goes to one; not to one that software has disabled. */
	msg.delivery = APIC_DM_LOWEST;
	msg.dest = 0x0e;
	send(f, 0, msg);
	g_assert_cmphex(who(f, 0x40), ==, 0x2);
	lapic_write(f->vm.vcpu[1]->lapic, APIC_SVR, 0xff, 0, &e);
	send(f, 0, msg);
	g_assert_cmphex(who(f, 0x40), ==, 0x4);
	/* Fixed to a disabled one: sent, dropped, not delivered. */
	send(f, 0, fixed(f->vm.topo.cpu[1].apic_id, 0x40));
	g_assert_cmphex(who(f, 0x40), ==, 0);
	g_assert_cmpuint(count(f, 1, COUNTER_ipis_delivered), ==, 1);
	g_assert_cmpuint(count(f, 0, COUNTER_ipis_sent), ==, 5);
	fake_vm_free(f);
}

static void test_x2apic(void)
{
	struct fake_vm *f = fake_vm_new("4x60x2", APIC_X2APIC);
	u32 n = f->vm.topo.nr_cpus, last = n - 1, id = f->vm.topo.cpu[last].apic_id, i;
	struct apic_msg msg = fixed(id, 0x40);

	g_assert_cmpuint(id, >, 255);
	msg.x2apic_dest = true;
	send(f, 0, msg);
	fake_run_all(f);
	for (i = 0; i < n; i++)
		g_assert_cmpuint(has(f, i, 0x40), ==, i == last);
	msg.dest = 0xffffffff;
	msg.vector = 0x41;
	send(f, 0, msg);
	fake_run_all(f);
	for (i = 0; i < n; i++)
		g_assert_cmpuint(has(f, i, 0x41), ==, 1);
	/* The cluster of the last CPU. */
	msg.dest = (id >> 4) << 16 | 0xffff;
	msg.logical = true;
	msg.vector = 0x42;
	send(f, 0, msg);
	fake_run_all(f);
	for (i = 0; i < n; i++)
		g_assert_cmpuint(has(f, i, 0x42), ==, f->vm.topo.cpu[i].apic_id >> 4 == id >> 4);
	fake_vm_free(f);
}

/* As Linux starts an AP: INIT, its de-assert, two SIPIs. */
static void test_startup(void)
{
	struct fake_vm *f = fake_vm_new("1x2x1", APIC_XAPIC);
	struct vcpu *ap = f->vm.vcpu[1];
	struct apic_msg init = { .dest = 1, .delivery = APIC_DM_INIT, .level = true, .assert = true };
	struct apic_msg deassert = { .dest = 1, .delivery = APIC_DM_INIT, .level = true };
	struct apic_msg sipi = { .dest = 1, .delivery = APIC_DM_SIPI, .vector = 0x9a };

	ap->cpuid.nr = 1;
	ap->cpuid.entry[0] = (struct cpuid_entry){ .leaf = 1, .eax = 0x50654 };
	/* A SIPI to a CPU that runs is ignored. */
	send(f, 0, sipi);
	fake_run(f, 1);
	g_assert_cmpuint(f->cpu[1].nr_set_state, ==, 0);
	g_assert_cmpint(ap->mp_state, ==, VCPU_RUNNABLE);

	lapic_set_irr(ap->lapic, 0x40, false);
	ap->nmi_pending = true;
	send(f, 0, init);
	g_assert_cmpint(ap->mp_state, ==, VCPU_RUNNABLE);
	fake_run(f, 1);
	g_assert_cmpint(ap->mp_state, ==, VCPU_WAIT_SIPI);
	g_assert_false(ap->nmi_pending);
	g_assert_cmpint(lapic_pending(ap->lapic), ==, -1);
	g_assert_cmphex(ap->lapic->svr, ==, 0xff);
	send(f, 0, deassert);
	g_assert_cmpuint(fake_run(f, 1), ==, 0);
	/* Waiting for SIPI blocks NMIs. */
	send(f, 0, (struct apic_msg){ .dest = 1, .delivery = APIC_DM_NMI, .assert = true });
	fake_run(f, 1);
	g_assert_false(ap->nmi_pending);

	send(f, 0, sipi);
	fake_run(f, 1);
	g_assert_cmpint(ap->mp_state, ==, VCPU_RUNNABLE);
	g_assert_cmpuint(f->cpu[1].nr_set_state, ==, 1);
	g_assert_cmphex(f->cpu[1].state.cs.selector, ==, 0x9a00);
	g_assert_cmphex(f->cpu[1].state.cs.base, ==, 0x9a000);
	g_assert_cmphex(f->cpu[1].state.rip, ==, 0);
	g_assert_cmphex(f->cpu[1].state.gpr[X86_RDX], ==, 0x50654);
	g_assert_cmphex(f->cpu[1].state.cr0 & 1, ==, 0);
	/* The second SIPI finds it running. */
	send(f, 0, sipi);
	fake_run(f, 1);
	g_assert_cmpuint(f->cpu[1].nr_set_state, ==, 1);

	/* A halted CPU takes INIT, too. */
	ap->mp_state = VCPU_HALTED;
	send(f, 0, init);
	fake_run(f, 1);
	g_assert_cmpint(ap->mp_state, ==, VCPU_WAIT_SIPI);
	/* An engine that fails ends the VM. */
	f->set_state_err = -EIO;
	send(f, 0, sipi);
	fake_run(f, 1);
	g_assert_cmpint(ap->mp_state, ==, VCPU_WAIT_SIPI);
	g_assert_cmpint(f->vm.stop, ==, VM_STOP_ERROR);
	fake_vm_free(f);
}

static void test_nmi(void)
{
	struct fake_vm *f = fake_vm_new("1x2x1", APIC_XAPIC);
	struct vcpu *target = f->vm.vcpu[1];

	target->mp_state = VCPU_HALTED;
	send(f, 0, (struct apic_msg){ .dest = 1, .delivery = APIC_DM_NMI, .assert = true });
	g_assert_false(target->nmi_pending);
	g_assert_cmpuint(f->cpu[1].wakes, ==, 1);
	fake_run(f, 1);
	g_assert_true(target->nmi_pending);
	/* The loop wakes it when it delivers. */
	g_assert_cmpint(target->mp_state, ==, VCPU_HALTED);
	g_assert_cmpint(lapic_pending(target->lapic), ==, -1);
	g_assert_cmpuint(count(f, 1, COUNTER_ipis_delivered), ==, 1);
	fake_vm_free(f);
}

static void test_undeliverable(void)
{
	struct fake_vm *f = fake_vm_new("1x2x1", APIC_XAPIC);
	struct apic_msg msg = fixed(1, 0x40);

	msg.level = true;
	msg.assert = false;
	send(f, 0, msg);
	msg.delivery = APIC_DM_INIT;
	send(f, 0, msg);
	msg.delivery = APIC_DM_SMI;
	msg.assert = true;
	send(f, 0, msg);
	msg.delivery = APIC_DM_EXTINT;
	send(f, 0, msg);
	apicbus_send_device(&f->vm, &msg, 0);
	msg.delivery = APIC_DM_SIPI;
	apicbus_send_device(&f->vm, &msg, 0);
	g_assert_cmpuint(fake_run_all(f), ==, 0);
	g_assert_cmpuint(count(f, 0, COUNTER_icr_writes), ==, 0);
	g_assert_cmpuint(count(f, 0, COUNTER_ipis_sent), ==, 0);
	fake_vm_free(f);
}

static void test_device(void)
{
	struct fake_vm *f = fake_vm_new("1x4x1", APIC_XAPIC);
	struct apic_msg msg = fixed(2, 0x55);

	msg.level = true;
	apicbus_send_device(&f->vm, &msg, 0);
	fake_run_all(f);
	g_assert_cmpuint(has(f, 2, 0x55), ==, 1);
	g_assert_cmphex(f->vm.vcpu[2]->lapic->tmr[2], ==, BIT(0x55 - 64));
	/* Not an IPI: no count, no latency. */
	g_assert_cmpuint(count(f, 2, COUNTER_ipis_delivered), ==, 0);
	g_assert_cmpuint(f->vm.ipi_latency[DISTANCE_SELF].count, ==, 0);
	msg = fixed(0xff, 0x56);
	msg.delivery = APIC_DM_LOWEST;
	apicbus_send_device(&f->vm, &msg, 0);
	g_assert_cmphex(who(f, 0x56), ==, 1);
	fake_vm_free(f);
}

static void test_latency(void)
{
	struct fake_vm *f = fake_vm_new("2x2x2", APIC_XAPIC);
	const struct hist *h = f->vm.ipi_latency;

	f->now = 1000;
	send(f, 0, fixed(f->vm.topo.cpu[4].apic_id, 0x40));
	f->now = 4500;
	fake_run(f, 4);
	g_assert_cmpuint(h[DISTANCE_SMT].count, ==, 1);
	g_assert_cmpuint(h[DISTANCE_SMT].sum, ==, 3500);
	send(f, 0, fixed(f->vm.topo.cpu[1].apic_id, 0x40));
	fake_run(f, 1);
	g_assert_cmpuint(h[DISTANCE_SOCKET].count, ==, 1);
	g_assert_cmpuint(h[DISTANCE_SOCKET].sum, ==, 0);
	send(f, 0, fixed(f->vm.topo.cpu[2].apic_id, 0x40));
	f->now += 7;
	fake_run(f, 2);
	g_assert_cmpuint(h[DISTANCE_REMOTE].count, ==, 1);
	g_assert_cmpuint(h[DISTANCE_REMOTE].sum, ==, 7);
	/* Virtual clocks: a target a little behind never gives a negative latency. */
	f->now = 10000;
	send(f, 0, fixed(f->vm.topo.cpu[2].apic_id, 0x40));
	f->now = 10000;
	fake_run(f, 2);
	g_assert_cmpuint(h[DISTANCE_REMOTE].sum, ==, 7);
	fake_vm_free(f);
}

static void test_injection(void)
{
	struct fake_vm *f = fake_vm_new("2x2x1", APIC_XAPIC);
	u32 remote = f->vm.topo.cpu[3].apic_id, near = f->vm.topo.cpu[1].apic_id;

	fake_inject(f, "ipi.remote", "fixed:200us");
	fake_inject(f, "ipi.vectors", "0x50..0xff");
	fake_inject_start(f, 1);
	f->now = 1000;
	send(f, 0, fixed(remote, 0x60));
	send(f, 0, fixed(near, 0x60));
	send(f, 0, fixed(remote, 0x40));
	fake_run_all(f);
	g_assert_cmpuint(has(f, 1, 0x60), ==, 1);
	g_assert_cmpuint(has(f, 3, 0x40), ==, 1);
	g_assert_cmpuint(has(f, 3, 0x60), ==, 0);
	f->now = 200999;
	g_assert_cmpuint(fake_run_all(f), ==, 0);
	f->now = 201000;
	g_assert_cmpuint(fake_run_all(f), ==, 1);
	g_assert_cmpuint(has(f, 3, 0x60), ==, 1);
	g_assert_cmpuint(count(f, 0, COUNTER_ipi_injected_ns), ==, 200000);
	g_assert_cmpuint(f->vm.ipi_latency[DISTANCE_REMOTE].count, ==, 2);
	g_assert_cmpuint(f->vm.ipi_latency[DISTANCE_REMOTE].sum, ==, 200000);
	g_assert_cmpuint(f->vm.inject.hist[INJECT_ipi][DISTANCE_REMOTE].count, ==, 1);
	g_assert_cmpuint(f->vm.inject.hist[INJECT_ipi][DISTANCE_REMOTE].sum, ==, 200000);
	/* Starting a CPU is never delayed, nor are devices. */
	send(f, 0, (struct apic_msg){ .dest = remote, .delivery = APIC_DM_INIT, .vector = 0x60, .assert = true });
	g_assert_cmpuint(fake_run(f, 3), ==, 1);
	apicbus_send_device(&f->vm, &(struct apic_msg){ .dest = remote, .vector = 0x60, .assert = true }, f->now);
	g_assert_cmpuint(fake_run(f, 3), ==, 1);
	g_assert_cmpuint(count(f, 0, COUNTER_ipi_injected_ns), ==, 200000);
	/* Off, as before the command starts. */
	f->vm.inject.on = false;
	send(f, 0, fixed(remote, 0x60));
	g_assert_cmpuint(fake_run(f, 3), ==, 1);
	fake_vm_free(f);
}

/* The largest delay survives the packing; so does every field beside it. */
static void test_packing(void)
{
	struct fake_vm *f = fake_vm_new("2x1x1", APIC_XAPIC);
	struct apic_msg msg = fixed(f->vm.topo.cpu[1].apic_id, 0xff);

	fake_inject(f, "ipi.all", "fixed:10s");
	fake_inject_start(f, 1);
	msg.level = true;
	f->now = 123456789;
	send(f, 0, msg);
	f->now += 10 * NSEC_PER_SEC;
	g_assert_cmpuint(fake_run(f, 1), ==, 1);
	g_assert_cmpuint(has(f, 1, 0xff), ==, 1);
	g_assert_cmphex(f->vm.vcpu[1]->lapic->tmr[7], ==, BIT(31));
	g_assert_cmpuint(f->vm.ipi_latency[DISTANCE_REMOTE].sum, ==, 10 * NSEC_PER_SEC);
	fake_vm_free(f);
}

/* A flood under a long delay is bounded: what does not fit goes at once, and is counted. */
static void test_flood(void)
{
	struct fake_vm *f = fake_vm_new("2x1x1", APIC_XAPIC);
	u32 remote = f->vm.topo.cpu[1].apic_id, i;

	fake_inject(f, "ipi.all", "fixed:10s");
	fake_inject_start(f, 1);
	for (i = 0; i < APICBUS_MAX_IN_FLIGHT; i++)
		send(f, 0, fixed(remote, 0x60));
	g_assert_cmpuint(count(f, 0, COUNTER_ipis_undelayed), ==, 0);
	g_assert_cmpuint(fake_run(f, 1), ==, 0);
	for (i = 0; i < 10; i++) {
		send(f, 0, fixed(remote, 0x61));
		g_assert_cmpuint(fake_run(f, 1), ==, 1);
	}
	g_assert_cmpuint(has(f, 1, 0x61), ==, 1);
	g_assert_cmpuint(count(f, 0, COUNTER_ipis_undelayed), ==, 10);
	g_assert_cmpuint(clock_pending(&f->vm.vcpu[1]->clock), ==, APICBUS_MAX_IN_FLIGHT);
	fake_vm_free(f);
}

/* Messages on their way when the VM ends belong to nobody: the leak checker watches this one. */
static void test_teardown(void)
{
	struct fake_vm *f = fake_vm_new("2x2x1", APIC_XAPIC);
	u32 i;

	for (i = 0; i < 1000; i++)
		send(f, i & 3, shorthand(APIC_SH_ALL, 0x40 + (i & 31)));
	g_assert_cmpuint(clock_first(&f->vm.vcpu[3]->clock), ==, 0);
	fake_vm_free(f);
}

static void test_msi(void)
{
	struct apic_msg in, out;
	u32 i, data;
	u64 addr;

	apicbus_decode_msi(0xfee1200cull, 0x4041, &in);
	g_assert_cmphex(in.dest, ==, 0x12);
	g_assert_cmphex(in.vector, ==, 0x41);
	g_assert_true(in.logical);
	g_assert_true(in.assert);
	g_assert_false(in.level);
	/* The redirection hint: one of those addressed. */
	g_assert_cmpint(in.delivery, ==, APIC_DM_LOWEST);
	for (i = 0; i < 1u << 17; i++) {
		in = (struct apic_msg){
			.dest = i & 0x7fff, .vector = i >> 3 & 0xff, .logical = i >> 15 & 1, .level = i >> 16 & 1,
			.delivery = i & 1 ? APIC_DM_LOWEST : APIC_DM_FIXED, .assert = true,
		};
		apicbus_encode_msi(&in, &addr, &data);
		g_assert_cmphex(addr >> 20, ==, 0xfee);
		apicbus_decode_msi(addr, data, &out);
		g_assert_cmphex(out.dest, ==, in.dest);
		g_assert_cmphex(out.vector, ==, in.vector);
		g_assert_true(out.logical == in.logical && out.level == in.level && out.assert == in.assert);
		g_assert_cmpint(out.delivery, ==, in.delivery);
	}
}

static void test_kernel_apic(void)
{
	struct fake_vm *f = fake_vm_new("1x2x1", APIC_KERNEL);
	struct apic_msg msg = fixed(1, 0x55);

	apicbus_send_device(&f->vm, &msg, 0);
	g_assert_cmpuint(f->nr_msis, ==, 1);
	g_assert_cmphex(f->msi[0].addr, ==, 0xfee01000);
	g_assert_cmphex(f->msi[0].data, ==, 0x4055);
	g_assert_cmpuint(fake_run_all(f), ==, 0);
	fake_vm_free(f);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/apicbus/physical", test_physical);
	g_test_add_func("/apicbus/shorthands", test_shorthands);
	g_test_add_func("/apicbus/logical", test_logical);
	g_test_add_func("/apicbus/x2apic", test_x2apic);
	g_test_add_func("/apicbus/startup", test_startup);
	g_test_add_func("/apicbus/nmi", test_nmi);
	g_test_add_func("/apicbus/undeliverable", test_undeliverable);
	g_test_add_func("/apicbus/device", test_device);
	g_test_add_func("/apicbus/latency", test_latency);
	g_test_add_func("/apicbus/injection", test_injection);
	g_test_add_func("/apicbus/flood", test_flood);
	g_test_add_func("/apicbus/packing", test_packing);
	g_test_add_func("/apicbus/teardown", test_teardown);
	g_test_add_func("/apicbus/msi", test_msi);
	g_test_add_func("/apicbus/kernel-apic", test_kernel_apic);
	return g_test_run();
}
