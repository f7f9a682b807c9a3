// SPDX-License-Identifier: GPL-2.0-only
/* IOAPIC registers and pins, up to the vector that a local APIC sees. */
#include <glib.h>
#include <string.h>

#include "fake-engine.h"
#include "machine/ioapic.h"
#include "machine/lapic.h"
#include "x86/apic.h"

struct fixture {
	struct fake_vm *f;
	struct ioapic io;
};

static void fresh(struct fixture *t, enum apic_mode apic)
{
	t->f = fake_vm_new("1x4x1", apic);
	ioapic_init(&t->io, &t->f->vm);
}

static u32 get(struct fixture *t, u64 off)
{
	u32 v = UINT32_MAX;

	ioapic_access(&t->io, t->f->vm.vcpu[0], off, false, &v, 4);
	return v;
}

static void put(struct fixture *t, u64 off, u32 v)
{
	ioapic_access(&t->io, t->f->vm.vcpu[0], off, true, &v, 4);
}

static u32 reg(struct fixture *t, u32 i)
{
	put(t, IOAPIC_REGSEL, i);
	return get(t, IOAPIC_WIN);
}

static void set_reg(struct fixture *t, u32 i, u32 v)
{
	put(t, IOAPIC_REGSEL, i);
	put(t, IOAPIC_WIN, v);
}

static void route(struct fixture *t, u32 pin, u32 low, u8 dest)
{
	set_reg(t, 0x11 + 2 * pin, (u32)dest << 24);
	set_reg(t, 0x10 + 2 * pin, low);
}

/* The vector CPU `cpu` would take now, without taking it. */
static int pending(struct fixture *t, u32 cpu)
{
	fake_run_all(t->f);
	return lapic_pending(t->f->vm.vcpu[cpu]->lapic);
}

static void test_registers(void)
{
	struct fixture t;
	u32 i;

	fresh(&t, APIC_XAPIC);
	g_assert_cmphex(reg(&t, 1), ==, 0x00170020);
	set_reg(&t, 0, 0xffffffff);
	g_assert_cmphex(reg(&t, 0), ==, 0x0f000000);
	for (i = 0; i < 24; i++) {
		g_assert_cmphex(reg(&t, 0x10 + 2 * i), ==, 0x10000);
		g_assert_cmphex(reg(&t, 0x11 + 2 * i), ==, 0);
	}
	/* Delivery status and remote IRR cannot be written; the upper half is the destination. */
	set_reg(&t, 0x10, 0xffffffff);
	set_reg(&t, 0x11, 0xffffffff);
	g_assert_cmphex(reg(&t, 0x10), ==, 0x0001afff);
	g_assert_cmphex(reg(&t, 0x11), ==, 0xfffe0000);
	/* Past the last pin, and unused registers. */
	set_reg(&t, 0x40, 0x12345678);
	g_assert_cmphex(reg(&t, 0x40), ==, 0);
	g_assert_cmphex(reg(&t, 0xff), ==, 0);
	g_assert_cmphex(reg(&t, 0x05), ==, 0);
	put(&t, IOAPIC_REGSEL, 0x1234ff01);
	g_assert_cmphex(get(&t, IOAPIC_REGSEL), ==, 0x01);
	g_assert_cmphex(get(&t, 0x20), ==, 0);
	fake_vm_free(t.f);
}

static void test_edge(void)
{
	struct fixture t;

	fresh(&t, APIC_XAPIC);
	route(&t, 4, 0x34, 2);
	ioapic_set_pin(&t.io, 4, true);
	g_assert_cmphex(pending(&t, 2), ==, 0x34);
	g_assert_cmpint(pending(&t, 0), ==, -1);
	g_assert_cmphex(fake_take(t.f, 2), ==, 0x34);
	/* Still high: no more; a new edge: one more. */
	ioapic_set_pin(&t.io, 4, true);
	g_assert_cmpint(pending(&t, 2), ==, -1);
	ioapic_set_pin(&t.io, 4, false);
	g_assert_cmpint(pending(&t, 2), ==, -1);
	ioapic_set_pin(&t.io, 4, true);
	g_assert_cmphex(fake_take(t.f, 2), ==, -1);
	g_assert_cmphex(pending(&t, 2), ==, 0x34);
	fake_take(t.f, 2);
	/* An edge on a masked pin is lost. */
	ioapic_set_pin(&t.io, 4, false);
	route(&t, 4, 0x34 | 0x10000, 2);
	ioapic_set_pin(&t.io, 4, true);
	route(&t, 4, 0x34, 2);
	g_assert_cmpint(pending(&t, 2), ==, -1);
	g_assert_cmphex(reg(&t, 0x18) & 0x5000, ==, 0);
	fake_vm_free(t.f);
}

static void test_level(void)
{
	struct fixture t;

	fresh(&t, APIC_XAPIC);
	route(&t, 9, 0x8059, 1);
	ioapic_set_pin(&t.io, 9, true);
	g_assert_cmphex(pending(&t, 1), ==, 0x59);
	g_assert_cmphex(t.f->vm.vcpu[1]->lapic->tmr[2], ==, BIT(0x59 - 64));
	g_assert_cmphex(reg(&t, 0x22), ==, 0xc059);
	/* In service: quiet, however often the line is raised. */
	g_assert_cmphex(fake_take(t.f, 1), ==, 0x59);
	ioapic_set_pin(&t.io, 9, false);
	ioapic_set_pin(&t.io, 9, true);
	g_assert_cmpint(pending(&t, 1), ==, -1);
	/* Another vector's EOI does not end it; its own does, and it comes again. */
	ioapic_eoi(&t.io, 0x58);
	g_assert_cmpint(pending(&t, 1), ==, -1);
	ioapic_eoi(&t.io, 0x59);
	g_assert_cmphex(pending(&t, 1), ==, 0x59);
	fake_take(t.f, 1);
	ioapic_set_pin(&t.io, 9, false);
	ioapic_eoi(&t.io, 0x59);
	g_assert_cmpint(pending(&t, 1), ==, -1);
	g_assert_cmphex(reg(&t, 0x22), ==, 0x8059);
	/* By the EOI register. */
	ioapic_set_pin(&t.io, 9, true);
	g_assert_cmphex(pending(&t, 1), ==, 0x59);
	fake_take(t.f, 1);
	put(&t, IOAPIC_EOI, 0x59);
	g_assert_cmphex(pending(&t, 1), ==, 0x59);
	fake_take(t.f, 1);
	ioapic_set_pin(&t.io, 9, false);
	put(&t, IOAPIC_EOI, 0x59);
	/* Asserted while masked: sent at unmask. */
	route(&t, 9, 0x18059, 1);
	ioapic_set_pin(&t.io, 9, true);
	g_assert_cmpint(pending(&t, 1), ==, -1);
	route(&t, 9, 0x8059, 1);
	g_assert_cmphex(pending(&t, 1), ==, 0x59);
	fake_take(t.f, 1);
	/* Edge and back frees a stuck remote IRR, as Linux does it without an EOI register. */
	set_reg(&t, 0x22, 0x10059);
	g_assert_cmphex(reg(&t, 0x22), ==, 0x10059);
	set_reg(&t, 0x22, 0x18059);
	set_reg(&t, 0x22, 0x8059);
	g_assert_cmphex(pending(&t, 1), ==, 0x59);
	fake_vm_free(t.f);
}

/* The whole way: EOI at the local APIC is broadcast by the caller, once for each level interrupt. */
static void test_local_eoi(void)
{
	struct lapic_effect e;
	struct fixture t;
	u32 i, rounds = 0;

	fresh(&t, APIC_XAPIC);
	route(&t, 9, 0x8059, 0);
	ioapic_set_pin(&t.io, 9, true);
	for (i = 0; i < 5; i++) {
		g_assert_cmphex(pending(&t, 0), ==, 0x59);
		lapic_accept(t.f->vm.vcpu[0]->lapic, 0x59);
		if (i == 4)
			ioapic_set_pin(&t.io, 9, false);
		lapic_write(t.f->vm.vcpu[0]->lapic, APIC_EOI, 0, 0, &e);
		g_assert_cmpuint(e.todo, ==, LAPIC_TODO_EOI | LAPIC_TODO_ACK);
		ioapic_eoi(&t.io, e.eoi_vector);
		rounds++;
	}
	g_assert_cmpuint(rounds, ==, 5);
	g_assert_cmpint(pending(&t, 0), ==, -1);
	fake_vm_free(t.f);
}

static void test_modes(void)
{
	struct lapic_effect e;
	struct fixture t;

	fresh(&t, APIC_XAPIC);
	/* Logical destination, lowest priority. */
	lapic_write(t.f->vm.vcpu[1]->lapic, APIC_LDR, 0x02000000, 0, &e);
	lapic_write(t.f->vm.vcpu[3]->lapic, APIC_LDR, 0x08000000, 0, &e);
	route(&t, 5, 0x0945, 0x0a);
	ioapic_set_pin(&t.io, 5, true);
	g_assert_cmphex(pending(&t, 1), ==, 0x45);
	g_assert_cmpint(pending(&t, 3), ==, -1);
	/* Two pins with one vector: an EOI ends both. */
	route(&t, 10, 0x8066, 0);
	route(&t, 11, 0x8066, 0);
	ioapic_set_pin(&t.io, 10, true);
	ioapic_set_pin(&t.io, 11, true);
	g_assert_cmphex(pending(&t, 0), ==, 0x66);
	fake_take(t.f, 0);
	ioapic_set_pin(&t.io, 10, false);
	ioapic_set_pin(&t.io, 11, false);
	ioapic_eoi(&t.io, 0x66);
	g_assert_cmphex(reg(&t, 0x24), ==, 0x8066);
	g_assert_cmphex(reg(&t, 0x26), ==, 0x8066);
	/* NMI: an edge whatever the trigger mode says; no remote IRR. */
	route(&t, 12, 0x8400, 2);
	ioapic_set_pin(&t.io, 12, true);
	fake_run_all(t.f);
	g_assert_true(t.f->vm.vcpu[2]->nmi_pending);
	g_assert_cmphex(reg(&t, 0x28), ==, 0x8400);
	/* ExtINT and SMI go nowhere. */
	route(&t, 13, 0x0700, 2);
	ioapic_set_pin(&t.io, 13, true);
	route(&t, 14, 0x0200, 2);
	ioapic_set_pin(&t.io, 14, true);
	g_assert_cmpuint(fake_run_all(t.f), ==, 0);
	/* A pin that is not there. */
	ioapic_set_pin(&t.io, 24, true);
	ioapic_set_pin(&t.io, UINT32_MAX, true);
	fake_vm_free(t.f);
}

static void test_widths(void)
{
	struct fixture t;
	u64 v = 0;

	fresh(&t, APIC_XAPIC);
	v = 1;
	ioapic_access(&t.io, NULL, IOAPIC_REGSEL, true, &v, 1);
	v = ~0ull;
	ioapic_access(&t.io, NULL, IOAPIC_WIN, false, &v, 8);
	g_assert_cmphex(v, ==, 0x170020);
	v = ~0ull;
	ioapic_access(&t.io, NULL, IOAPIC_WIN, false, &v, 2);
	g_assert_cmphex(v, ==, 0xffffffffffff0020);
	fake_vm_free(t.f);
}

static void test_kernel_apic(void)
{
	struct fixture t;

	fresh(&t, APIC_KERNEL);
	route(&t, 4, 0x0834, 3);
	ioapic_set_pin(&t.io, 4, true);
	g_assert_cmpuint(t.f->nr_msis, ==, 1);
	g_assert_cmphex(t.f->msi[0].addr, ==, 0xfee03004);
	g_assert_cmphex(t.f->msi[0].data, ==, 0x4034);
	route(&t, 9, 0x8059, 3);
	ioapic_set_pin(&t.io, 9, true);
	g_assert_cmphex(t.f->msi[1].data, ==, 0xc059);
	ioapic_eoi(&t.io, 0x59);
	g_assert_cmpuint(t.f->nr_msis, ==, 3);
	fake_vm_free(t.f);
}

static void test_extended_destination(void)
{
	struct fixture t;

	fresh(&t, APIC_KERNEL);
	set_reg(&t, 0x19, 0x12 << 24 | 0x01 << 17);
	set_reg(&t, 0x18, 0x34);
	ioapic_set_pin(&t.io, 4, true);
	g_assert_cmphex(t.f->msi[0].addr, ==, 0xfee12020);
	fake_vm_free(t.f);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/ioapic/registers", test_registers);
	g_test_add_func("/ioapic/edge", test_edge);
	g_test_add_func("/ioapic/level", test_level);
	g_test_add_func("/ioapic/local-eoi", test_local_eoi);
	g_test_add_func("/ioapic/modes", test_modes);
	g_test_add_func("/ioapic/widths", test_widths);
	g_test_add_func("/ioapic/kernel-apic", test_kernel_apic);
	g_test_add_func("/ioapic/extended-destination", test_extended_destination);
	return g_test_run();
}
