// SPDX-License-Identifier: GPL-2.0-only
/* The small devices and the machine as a whole: who answers where, and what ends a VM. */
#include <glib.h>

#include "fake-engine.h"
#include "machine/lapic.h"
#include "machine/layout.h"
#include "machine/machine.h"

static struct fake_vm *fresh(void)
{
	struct fake_vm *f = fake_vm_new("1x2x1", APIC_XAPIC);

	g_assert_cmpint(machine_init(&f->vm), ==, 0);
	return f;
}

static void done(struct fake_vm *f)
{
	machine_destroy(&f->vm);
	g_assert_null(f->vm.bus);
	machine_destroy(&f->vm);
	fake_vm_free(f);
}

static u8 in(struct fake_vm *f, u16 port)
{
	return (u8)fake_in(f, port, 1);
}

static void out(struct fake_vm *f, u16 port, u8 v)
{
	fake_out(f, port, 1, v);
}

/* probe_8259A() and init_8259A() of Linux. */
static void test_pic(void)
{
	struct fake_vm *f = fresh();

	out(f, 0xa1, 0xff);
	out(f, 0x21, 0xfb);
	g_assert_cmphex(in(f, 0x21), ==, 0xfb);
	out(f, 0x20, 0x11);
	out(f, 0x21, 0x30);
	out(f, 0x21, 0x04);
	out(f, 0x21, 0x01);
	out(f, 0xa0, 0x11);
	out(f, 0xa1, 0x38);
	out(f, 0xa1, 0x02);
	out(f, 0xa1, 0x01);
	/* The words went to the sequence, not to the mask. */
	g_assert_cmphex(in(f, 0x21), ==, 0);
	g_assert_cmphex(f->vm.machine->pic.chip[0].base, ==, 0x30);
	g_assert_cmphex(f->vm.machine->pic.chip[1].base, ==, 0x38);
	out(f, 0x21, 0xfb);
	out(f, 0xa1, 0xff);
	g_assert_cmphex(in(f, 0x21), ==, 0xfb);
	g_assert_cmphex(in(f, 0xa1), ==, 0xff);
	/* Single mode without ICW4: two words. */
	out(f, 0x20, 0x12);
	out(f, 0x21, 0x40);
	out(f, 0x21, 0xaa);
	g_assert_cmphex(in(f, 0x21), ==, 0xaa);
	/* IRR by default and by OCW3; ISR is always empty. The slave shows as the cascade, unless masked. */
	g_mutex_lock(&f->vm.lock);
	machine_set_irq(&f->vm, 4, true);
	machine_set_irq(&f->vm, 9, true);
	machine_set_irq(&f->vm, 16, true);
	g_mutex_unlock(&f->vm.lock);
	g_assert_cmphex(in(f, 0x20), ==, 0x10);
	out(f, 0xa1, 0x00);
	g_assert_cmphex(in(f, 0x20), ==, 0x14);
	g_assert_cmphex(in(f, 0xa0), ==, 0x02);
	out(f, 0x20, 0x0b);
	g_assert_cmphex(in(f, 0x20), ==, 0x00);
	out(f, 0x20, 0x20);
	out(f, 0x20, 0x0a);
	g_assert_cmphex(in(f, 0x20), ==, 0x14);
	/* ELCR: not for the timer, keyboard, cascade, RTC and FPU. */
	fake_out(f, 0x4d0, 2, 0xffff);
	g_assert_cmphex(fake_in(f, 0x4d0, 2), ==, 0xdef8);
	g_assert_cmpuint(fake_run_all(f), ==, 0);
	done(f);
}

static void test_irq_map(void)
{
	struct fake_vm *f = fresh();
	u32 irq;

	g_mutex_lock(&f->vm.lock);
	for (irq = 0; irq < 16; irq++) {
		machine_set_irq(&f->vm, irq, true);
		g_assert_cmphex(f->vm.machine->ioapic.level, ==, BIT(irq ? irq : 2));
		machine_set_irq(&f->vm, irq, false);
	}
	g_mutex_unlock(&f->vm.lock);
	done(f);
}

static void test_pmtimer(void)
{
	struct fake_vm *f = fresh();
	u32 first;

	first = fake_in(f, LAYOUT_PORT_PMTIMER, 4);
	f->now = NSEC_PER_SEC;
	g_assert_cmpuint(fake_in(f, LAYOUT_PORT_PMTIMER, 4) - first, ==, 3579545);
	/* 32 bits, wrapping after 1200 s. */
	f->now = 1300 * NSEC_PER_SEC;
	g_assert_cmpuint(fake_in(f, LAYOUT_PORT_PMTIMER, 4), ==, (u32)(1300ull * 3579545));
	g_assert_cmphex(fake_in(f, LAYOUT_PORT_PMTIMER, 2), ==, (u16)(1300ull * 3579545));
	/* In ACPI mode from the start, and for good. */
	g_assert_cmphex(fake_in(f, LAYOUT_PORT_PM1A_CNT, 2), ==, 1);
	fake_out(f, LAYOUT_PORT_PM1A_CNT, 2, 0);
	g_assert_cmphex(fake_in(f, LAYOUT_PORT_PM1A_CNT, 2), ==, 1);
	/* Enables keep what is defined; status has nothing to clear. */
	fake_out(f, LAYOUT_PORT_PM1A_EVT, 4, 0xffffffff);
	g_assert_cmphex(fake_in(f, LAYOUT_PORT_PM1A_EVT, 4), ==, 0x07210000);
	fake_out(f, LAYOUT_PORT_PM1A_EVT + 2, 1, 0);
	g_assert_cmphex(fake_in(f, LAYOUT_PORT_PM1A_EVT + 2, 2), ==, 0x0700);
	g_assert_cmpint(f->vm.stop, ==, VM_RUNNING);
	/* SLP_TYP alone does nothing; with SLP_EN the VM ends. */
	fake_out(f, LAYOUT_PORT_PM1A_CNT, 2, 5 << 10);
	g_assert_cmpint(f->vm.stop, ==, VM_RUNNING);
	fake_out(f, LAYOUT_PORT_PM1A_CNT, 2, 5 << 10 | 1 << 13);
	g_assert_cmpint(f->vm.stop, ==, VM_STOP_SHUTDOWN);
	g_assert_cmpuint(f->nr_kick_all, ==, 1);
	g_assert_cmphex(fake_in(f, LAYOUT_PORT_PM1A_CNT, 2) & 0x2000, ==, 0);
	done(f);
}

static u8 cmos(struct fake_vm *f, u8 index)
{
	out(f, 0x70, index);
	return in(f, 0x71);
}

static void test_rtc(void)
{
	struct fake_vm *f = fresh();
	u64 day = 24 * 3600;

	g_assert_cmphex(cmos(f, 10) & 0x80, ==, 0);
	g_assert_cmphex(cmos(f, 13), ==, 0x80);
	g_assert_cmphex(cmos(f, 9), ==, 0x24);
	g_assert_cmphex(cmos(f, 0x32), ==, 0x20);
	g_assert_cmphex(cmos(f, 8), ==, 0x01);
	g_assert_cmphex(cmos(f, 7), ==, 0x01);
	g_assert_cmphex(cmos(f, 6), ==, 0x02);	/* a Monday */
	g_assert_cmphex(cmos(f, 4), ==, 0x00);
	/* 59 days, 13:45:59 later: 29 February passed. Bit 7 of the index is the NMI mask. */
	f->now = (59 * day + 13 * 3600 + 45 * 60 + 59) * NSEC_PER_SEC;
	g_assert_cmphex(cmos(f, 0x80 | 8), ==, 0x02);
	g_assert_cmphex(cmos(f, 7), ==, 0x29);
	f->now += day * NSEC_PER_SEC;
	g_assert_cmphex(cmos(f, 8), ==, 0x03);
	g_assert_cmphex(cmos(f, 7), ==, 0x01);
	g_assert_cmphex(cmos(f, 4), ==, 0x13);
	g_assert_cmphex(cmos(f, 2), ==, 0x45);
	g_assert_cmphex(cmos(f, 0), ==, 0x59);
	/* Binary, and 12 hours. */
	out(f, 0x70, 11);
	out(f, 0x71, 0x04);
	g_assert_cmphex(cmos(f, 0), ==, 59);
	g_assert_cmphex(cmos(f, 4), ==, 0x81);
	f->now -= 13 * 3600 * NSEC_PER_SEC;
	g_assert_cmphex(cmos(f, 4), ==, 12);
	/* The date cannot be set; other bytes are memory; UIP never sticks. */
	out(f, 0x70, 9);
	out(f, 0x71, 0x99);
	g_assert_cmphex(cmos(f, 9), ==, 24);
	out(f, 0x70, 10);
	out(f, 0x71, 0xff);
	g_assert_cmphex(cmos(f, 10), ==, 0x7f);
	out(f, 0x70, 0x0f);
	out(f, 0x71, 0x5a);
	g_assert_cmphex(cmos(f, 0x0f), ==, 0x5a);
	g_assert_cmphex(cmos(f, 12), ==, 0);
	done(f);
}

struct marks {
	u32 n;
	u8 mark[4];
	u64 now[4];
	struct vcpu *vcpu;
};

static void on_mark(void *ctx, struct vcpu *vcpu, u8 mark, u64 now)
{
	struct marks *m = ctx;

	/* The lock is free here. */
	g_assert_true(g_mutex_trylock(&vcpu->vm->lock));
	g_mutex_unlock(&vcpu->vm->lock);
	m->mark[m->n & 3] = mark;
	m->now[m->n & 3] = now;
	m->vcpu = vcpu;
	m->n++;
}

static void test_testdev(void)
{
	struct fake_vm *f = fresh();
	struct marks m = { 0 };

	g_assert_cmphex(in(f, 0xf4), ==, 0xfb);
	g_assert_cmphex(in(f, 0xf5), ==, 0xfb);
	/* Without a listener marks go nowhere. */
	out(f, 0xf5, MARK_BEGIN);
	f->vm.machine->testdev.on_mark = on_mark;
	f->vm.machine->testdev.ctx = &m;
	f->now = 4242;
	out(f, 0xf5, MARK_BEGIN);
	f->now = 5000;
	out(f, 0xf5, 200);
	g_assert_cmpuint(m.n, ==, 2);
	g_assert_cmpuint(m.mark[0], ==, MARK_BEGIN);
	g_assert_cmpuint(m.mark[1], ==, 200);
	g_assert_cmpuint(m.now[0], ==, 4242);
	g_assert_cmpuint(m.now[1], ==, 5000);
	g_assert_true(m.vcpu == f->vm.vcpu[0]);
	/* A mark is one byte. */
	fake_out(f, 0xf5, 2, 1);
	g_assert_cmpuint(m.n, ==, 2);
	g_assert_cmpint(f->vm.stop, ==, VM_RUNNING);
	fake_out(f, 0xf4, 4, 3);
	g_assert_cmpint(f->vm.stop, ==, VM_STOP_EXIT);
	g_assert_cmpint(f->vm.exit_code, ==, 7);
	/* The first reason stays. */
	out(f, 0xf4, 0);
	g_assert_cmpint(f->vm.exit_code, ==, 7);
	done(f);
}

static void test_exit_codes(void)
{
	static const struct { u32 len, value; int code; } table[] = {
		{ 1, 0, 1 }, { 1, 0x7f, 0xff }, { 2, 0x31, 0x63 }, { 4, 0xffffffff, INT32_MAX },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		struct fake_vm *f = fresh();

		fake_out(f, 0xf4, table[i].len, table[i].value);
		g_assert_cmpint(f->vm.exit_code, ==, table[i].code);
		done(f);
	}
}

static void test_resets(void)
{
	struct fake_vm *f = fresh();

	/* As Linux waits before it pulses the reset line. */
	g_assert_cmphex(in(f, 0x64) & 0x02, ==, 0);
	out(f, 0x64, 0xd1);
	out(f, 0x92, 0x02);
	g_assert_cmphex(in(f, 0x92), ==, 0x02);
	g_assert_cmpint(f->vm.stop, ==, VM_RUNNING);
	out(f, 0x64, 0xfe);
	g_assert_cmpint(f->vm.stop, ==, VM_STOP_SHUTDOWN);
	done(f);
	f = fresh();
	out(f, 0x92, 0x03);
	g_assert_cmpint(f->vm.stop, ==, VM_STOP_SHUTDOWN);
	done(f);
}

static void test_ports(void)
{
	struct fake_vm *f = fresh();
	u32 port;

	/* Absent PCI: an address written is not there when read back. */
	fake_out(f, 0xcf8, 4, 0x80000000);
	g_assert_cmphex(fake_in(f, 0xcf8, 4), ==, 0xffffffff);
	g_assert_cmphex(fake_in(f, 0xcfc, 4), ==, 0xffffffff);
	out(f, 0x80, 0x42);
	/* Nothing answers where layout.h says nothing is. */
	for (port = 0x1000; port < 0x10000; port++)
		g_assert_cmphex(in(f, (u16)port), ==, 0xff);
	g_assert_cmphex(in(f, 0x60), ==, 0xff);
	done(f);
}

static void test_kernel_apic(void)
{
	struct fake_vm *f = fake_vm_new("1x2x1", APIC_KERNEL);

	g_assert_cmpint(machine_init(&f->vm), ==, 0);
	f->vm.machine->ioapic.redir[4] = 0x34;
	out(f, LAYOUT_PORT_UART0 + 4, 0x0b);
	out(f, LAYOUT_PORT_UART0 + 1, 0x02);
	g_assert_cmpuint(f->nr_msis, ==, 1);
	g_assert_cmphex(f->msi[0].data & 0xff, ==, 0x34);
	/* The second port is on IRQ 3. */
	f->vm.machine->ioapic.redir[3] = 0x33;
	out(f, LAYOUT_PORT_UART1 + 4, 0x0b);
	out(f, LAYOUT_PORT_UART1 + 1, 0x02);
	g_assert_cmpuint(f->nr_msis, ==, 2);
	g_assert_cmphex(f->msi[1].data & 0xff, ==, 0x33);
	machine_destroy(&f->vm);
	fake_vm_free(f);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/devices/pic", test_pic);
	g_test_add_func("/devices/irq-map", test_irq_map);
	g_test_add_func("/devices/pmtimer", test_pmtimer);
	g_test_add_func("/devices/rtc", test_rtc);
	g_test_add_func("/devices/testdev", test_testdev);
	g_test_add_func("/devices/exit-codes", test_exit_codes);
	g_test_add_func("/devices/resets", test_resets);
	g_test_add_func("/devices/ports", test_ports);
	g_test_add_func("/devices/kernel-apic", test_kernel_apic);
	return g_test_run();
}
