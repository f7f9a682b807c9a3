// SPDX-License-Identifier: GPL-2.0-only
/* The 16550A as Linux's 8250 driver probes, opens and uses it. */
#include <glib.h>
#include <string.h>

#include "fake-engine.h"
#include "machine/lapic.h"
#include "machine/layout.h"
#include "machine/machine.h"
#include "x86/apic.h"

enum { DATA, IER, IIR, LCR, MCR, LSR, MSR, SCR };	/* IIR is FCR when written */
#define PORT	LAYOUT_PORT_UART0
#define VECTOR	0x34

static void sink(void *ctx, u8 byte)
{
	g_string_append_c(ctx, (char)byte);
}

struct fixture {
	struct fake_vm *f;
	struct uart *u;
	GString *out;
};

static void fresh(struct fixture *t)
{
	struct ioapic *io;

	t->f = fake_vm_new("1x1x1", APIC_XAPIC);
	g_assert_cmpint(machine_init(&t->f->vm), ==, 0);
	t->u = &t->f->vm.machine->console;
	t->out = g_string_new(NULL);
	t->u->sink = sink;
	t->u->sink_ctx = t->out;
	io = &t->f->vm.machine->ioapic;
	io->redir[LAYOUT_IRQ_UART0] = VECTOR;
}

static void done(struct fixture *t)
{
	machine_destroy(&t->f->vm);
	fake_vm_free(t->f);
	g_string_free(t->out, TRUE);
}

static u8 in(struct fixture *t, u16 reg)
{
	return (u8)fake_in(t->f, PORT + reg, 1);
}

static void out(struct fixture *t, u16 reg, u8 v)
{
	fake_out(t->f, PORT + reg, 1, v);
}

static void input(struct fixture *t, const char *text)
{
	g_mutex_lock(&t->f->vm.lock);
	uart_input(t->u, text, (u32)strlen(text));
	g_mutex_unlock(&t->f->vm.lock);
}

/* Did an interrupt arrive since the last look? */
static bool irq(struct fixture *t)
{
	fake_run_all(t->f);
	return fake_take(t->f, 0) == VECTOR;
}

/* What drivers/tty/serial/8250's autoconfig() asks, in its order. */
static void test_linux_probe(void)
{
	struct fixture t;

	fresh(&t);
	out(&t, IER, 0);
	g_assert_cmphex(in(&t, IER) & 0x0f, ==, 0);
	out(&t, IER, 0x0f);
	g_assert_cmphex(in(&t, IER) & 0x0f, ==, 0x0f);
	out(&t, IER, 0);
	/* Loopback: DTR off, RTS, OUT2 come back as CTS and DCD alone. */
	out(&t, MCR, 0x1a);
	g_assert_cmphex(in(&t, MSR) & 0xf0, ==, 0x90);
	out(&t, MCR, 0);
	g_assert_cmphex(in(&t, MSR) & 0xf0, ==, 0xb0);
	/* FIFO bits say 16550A, and not with the enhanced or 64-byte variants. */
	out(&t, IIR, 0x01);
	g_assert_cmphex(in(&t, IIR) >> 6, ==, 3);
	out(&t, LCR, 0x80);
	g_assert_cmphex(in(&t, IIR) & 0xc0, ==, 0xc0);
	out(&t, LCR, 0xbf);
	g_assert_cmphex(in(&t, IIR), !=, 0);
	out(&t, LCR, 0);
	out(&t, IIR, 0x21);
	g_assert_cmphex(in(&t, IIR) >> 5 & 1, ==, 0);
	out(&t, IER, 0x40);
	g_assert_cmphex(in(&t, IER) & 0x40, ==, 0);
	out(&t, SCR, 0xa5);
	g_assert_cmphex(in(&t, SCR), ==, 0xa5);
	/* Without FIFOs it is an 8250 or 16450. */
	out(&t, IIR, 0);
	g_assert_cmphex(in(&t, IIR), ==, 0x01);
	done(&t);
}

/* serial8250_do_startup(): the port is open, then its test for lost THRE interrupts. */
static void test_linux_startup(void)
{
	struct fixture t;

	fresh(&t);
	/* The host talks before the driver has opened the port; clearing must not lose it. */
	input(&t, "hello");
	out(&t, IIR, 0x01);
	out(&t, IIR, 0x07);
	out(&t, IIR, 0x00);
	g_assert_cmphex(in(&t, LSR), ==, 0x60);
	in(&t, DATA);
	in(&t, IIR);
	in(&t, MSR);
	out(&t, LCR, 0x03);
	out(&t, MCR, 0x08);
	/* Each enabling of THRI with an empty register shows in IIR. */
	out(&t, IER, 0x02);
	g_assert_cmphex(in(&t, IIR) & 0x0f, ==, 0x02);
	out(&t, IER, 0x00);
	out(&t, IER, 0x02);
	g_assert_cmphex(in(&t, IIR) & 0x0f, ==, 0x02);
	g_assert_cmphex(in(&t, IIR) & 0x0f, ==, 0x01);
	out(&t, IER, 0x00);
	irq(&t);
	out(&t, IIR, 0x81);
	out(&t, IER, 0x05);
	g_assert_false(irq(&t));
	/* RTS: now the peer sends. */
	out(&t, MCR, 0x0b);
	g_assert_true(irq(&t));
	g_assert_cmphex(in(&t, IIR), ==, 0xc4);
	g_assert_cmphex(in(&t, LSR), ==, 0x61);
	g_assert_cmpint(in(&t, DATA), ==, 'h');
	g_assert_cmpint(in(&t, DATA), ==, 'e');
	g_assert_cmpint(in(&t, DATA), ==, 'l');
	g_assert_cmpint(in(&t, DATA), ==, 'l');
	g_assert_cmphex(in(&t, IIR), ==, 0xc4);
	g_assert_cmpint(in(&t, DATA), ==, 'o');
	g_assert_cmphex(in(&t, IIR), ==, 0xc1);
	g_assert_cmphex(in(&t, LSR), ==, 0x60);
	g_assert_cmphex(in(&t, DATA), ==, 0);
	/* A new edge for what comes later. */
	g_assert_false(irq(&t));
	input(&t, "x");
	g_assert_true(irq(&t));
	input(&t, "y");
	g_assert_false(irq(&t));
	g_assert_cmpint(in(&t, DATA), ==, 'x');
	g_assert_cmpint(in(&t, DATA), ==, 'y');
	done(&t);
}

static void test_transmit(void)
{
	struct fixture t;
	const char *text = "Linux version 6.12\r\n";
	u32 i;

	fresh(&t);
	/* Polled, as earlycon and printk do. */
	for (i = 0; text[i]; i++) {
		g_assert_cmphex(in(&t, LSR) & 0x60, ==, 0x60);
		out(&t, DATA, (u8)text[i]);
	}
	g_assert_cmpstr(t.out->str, ==, text);
	/* By interrupt: one at once when enabled, one again after each burst, none when disabled. */
	out(&t, MCR, 0x0b);
	out(&t, IER, 0x02);
	g_assert_true(irq(&t));
	g_assert_cmphex(in(&t, IIR) & 0x0f, ==, 0x02);
	g_assert_false(irq(&t));
	for (i = 0; i < 16; i++)
		out(&t, DATA, 'a');
	g_assert_true(irq(&t));
	g_assert_cmphex(in(&t, IIR) & 0x0f, ==, 0x02);
	/* A driver that never reads IIR but writes on still gets its next edge. */
	out(&t, DATA, 'b');
	g_assert_true(irq(&t));
	out(&t, DATA, 'c');
	g_assert_true(irq(&t));
	out(&t, IER, 0x00);
	g_assert_cmphex(in(&t, IIR) & 0x0f, ==, 0x01);
	out(&t, DATA, 'd');
	g_assert_false(irq(&t));
	g_assert_cmpuint(t.out->len, ==, strlen(text) + 16 + 3);
	/* The divisor is not data. */
	out(&t, LCR, 0x83);
	out(&t, DATA, 0x01);
	out(&t, IER, 0x02);
	g_assert_cmphex(in(&t, DATA), ==, 0x01);
	g_assert_cmphex(in(&t, IER), ==, 0x02);
	out(&t, LCR, 0x03);
	g_assert_cmphex(in(&t, IER), ==, 0x00);
	g_assert_cmpuint(t.out->len, ==, strlen(text) + 16 + 3);
	/* No sink: dropped. */
	t.u->sink = NULL;
	out(&t, DATA, 'e');
	done(&t);
}

static void test_priorities(void)
{
	struct fixture t;

	fresh(&t);
	out(&t, IIR, 0x01);
	out(&t, MCR, 0x0b);
	out(&t, IER, 0x03);
	input(&t, "q");
	/* Data before THRE; reading IIR then does not acknowledge the latter. */
	g_assert_cmphex(in(&t, IIR), ==, 0xc4);
	g_assert_cmpint(in(&t, DATA), ==, 'q');
	g_assert_cmphex(in(&t, IIR), ==, 0xc2);
	g_assert_cmphex(in(&t, IIR), ==, 0xc1);
	/* OUT2 gates the line, as on a PC. */
	irq(&t);
	out(&t, MCR, 0x03);
	input(&t, "r");
	g_assert_false(irq(&t));
	out(&t, MCR, 0x0b);
	g_assert_true(irq(&t));
	done(&t);
}

static void test_loopback(void)
{
	struct fixture t;

	fresh(&t);
	out(&t, MCR, 0x10);
	out(&t, DATA, 0x42);
	g_assert_cmpuint(t.out->len, ==, 0);
	g_assert_cmphex(in(&t, LSR), ==, 0x61);
	out(&t, DATA, 0x43);
	g_assert_cmphex(in(&t, LSR), ==, 0x63);
	g_assert_cmphex(in(&t, LSR), ==, 0x61);
	g_assert_cmphex(in(&t, DATA), ==, 0x43);
	g_assert_cmphex(in(&t, LSR), ==, 0x60);
	out(&t, MCR, 0x1f);
	g_assert_cmphex(in(&t, MSR), ==, 0xf0);
	out(&t, MCR, 0x11);
	g_assert_cmphex(in(&t, MSR), ==, 0x20);
	done(&t);
}

/* A long input is handed over whole, in order, and its memory given back on the way. */
static void test_long_input(void)
{
	struct fixture t;
	u32 i, n = 100000;

	fresh(&t);
	out(&t, MCR, 0x0b);
	out(&t, IER, 0x01);
	for (i = 0; i < n; i++) {
		u8 byte = (u8)(i * 7);

		g_mutex_lock(&t.f->vm.lock);
		uart_input(t.u, &byte, 1);
		g_mutex_unlock(&t.f->vm.lock);
	}
	for (i = 0; i < n; i++) {
		g_assert_cmphex(in(&t, LSR) & 1, ==, 1);
		g_assert_cmphex(in(&t, DATA), ==, (u8)(i * 7));
	}
	g_assert_cmphex(in(&t, LSR) & 1, ==, 0);
	g_assert_cmpuint(t.u->input->len, ==, 0);
	done(&t);
}

/* Accesses wider than a byte reach the registers one by one. */
static void test_wide(void)
{
	struct fixture t;

	fresh(&t);
	fake_out(t.f, PORT + MCR, 1, 0x0b);
	fake_out(t.f, PORT + SCR - 1, 2, 0x7700);
	g_assert_cmphex(in(&t, SCR), ==, 0x77);
	g_assert_cmphex(fake_in(t.f, PORT + LCR, 4), ==, 0xb0600b00);
	done(&t);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/uart/linux-probe", test_linux_probe);
	g_test_add_func("/uart/linux-startup", test_linux_startup);
	g_test_add_func("/uart/transmit", test_transmit);
	g_test_add_func("/uart/priorities", test_priorities);
	g_test_add_func("/uart/loopback", test_loopback);
	g_test_add_func("/uart/long-input", test_long_input);
	g_test_add_func("/uart/wide", test_wide);
	return g_test_run();
}
