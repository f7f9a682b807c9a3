// SPDX-License-Identifier: GPL-2.0-only
/*
 * The transmitter is always empty and the line to the peer is flow controlled
 * in hardware: the peer sends only while the guest holds RTS, so what is queued
 * before a driver has opened the port waits, instead of being thrown away by
 * the driver's clearing of FIFO and receive register.
 */
#include "machine/uart.h"

#include "machine/machine.h"

/* Register offsets (PC16550D table II). */
enum { UART_DATA, UART_IER, UART_IIR_FCR, UART_LCR, UART_MCR, UART_LSR, UART_MSR, UART_SCR };

#define IER_RX		BIT(0)
#define IER_THRE	BIT(1)
#define IER_LINE	BIT(2)
#define IER_WRITABLE	0x0fu

#define IIR_NONE	0x01
#define IIR_THRE	0x02
#define IIR_RX		0x04
#define IIR_LINE	0x06
#define IIR_FIFO	0xc0

#define FCR_ENABLE	BIT(0)
#define LCR_DLAB	BIT(7)

#define MCR_DTR		BIT(0)
#define MCR_RTS		BIT(1)
#define MCR_OUT1	BIT(2)
#define MCR_OUT2	BIT(3)
#define MCR_LOOP	BIT(4)

#define LSR_DATA	BIT(0)
#define LSR_OVERRUN	BIT(1)
#define LSR_EMPTY	(BIT(5) | BIT(6))	/* THRE, TEMT */

#define MSR_CTS		BIT(4)
#define MSR_DSR		BIT(5)
#define MSR_RI		BIT(6)
#define MSR_DCD		BIT(7)

/* Read input beyond this is given back to the allocator. */
#define INPUT_TRIM	4096

static bool uart_has_data(const struct uart *u)
{
	if (u->mcr & MCR_LOOP)
		return u->loop_full;
	return (u->mcr & MCR_RTS) && u->input_pos < u->input->len;
}

static u8 uart_line_status(const struct uart *u)
{
	return u->lsr | LSR_EMPTY | (uart_has_data(u) ? LSR_DATA : 0);
}

/* The pending interrupt of highest priority (table IV); IIR_NONE if there is none. */
static u8 uart_pending(const struct uart *u)
{
	if ((u->ier & IER_LINE) && (u->lsr & LSR_OVERRUN))
		return IIR_LINE;
	if ((u->ier & IER_RX) && uart_has_data(u))
		return IIR_RX;
	if ((u->ier & IER_THRE) && u->thr_pending)
		return IIR_THRE;
	return IIR_NONE;
}

/* ISA lines are edge triggered: the line has to fall when the last cause goes. OUT2 gates it, as on a PC. */
static void uart_update_irq(struct uart *u)
{
	bool level = uart_pending(u) != IIR_NONE && (u->mcr & (MCR_OUT2 | MCR_LOOP)) == MCR_OUT2;

	if (level == u->irq_level)
		return;
	u->irq_level = level;
	machine_set_irq(u->vm, u->irq, level);
}

void uart_init(struct uart *u, struct vm *vm, u32 irq, uart_sink sink, void *sink_ctx)
{
	*u = (struct uart){
		.vm = vm, .irq = irq, .sink = sink, .sink_ctx = sink_ctx,
		.input = g_byte_array_new(),
		/* 115200 divided by 12: what firmware leaves behind. */
		.dll = 0x0c,
	};
}

void uart_destroy(struct uart *u)
{
	if (u->input)
		g_byte_array_free(u->input, TRUE);
	u->input = NULL;
}

void uart_input(struct uart *u, const void *data, u32 len)
{
	if (u->wire) {
		u->wire(u->wire_ctx, data, len);
		return;
	}
	g_byte_array_append(u->input, data, len);
	uart_update_irq(u);
}

static u8 uart_receive(struct uart *u)
{
	u8 byte;

	if (!uart_has_data(u))
		return 0;
	if (u->mcr & MCR_LOOP) {
		u->loop_full = false;
		return u->loop_byte;
	}
	byte = u->input->data[u->input_pos++];
	if (u->input_pos == u->input->len) {
		g_byte_array_set_size(u->input, 0);
		u->input_pos = 0;
	} else if (u->input_pos >= INPUT_TRIM && u->input_pos >= u->input->len / 2) {
		g_byte_array_remove_range(u->input, 0, u->input_pos);
		u->input_pos = 0;
	}
	return byte;
}

static void uart_transmit(struct uart *u, u8 byte)
{
	if (u->mcr & MCR_LOOP) {
		if (u->loop_full)
			u->lsr |= LSR_OVERRUN;
		u->loop_byte = byte;
		u->loop_full = true;
	} else if (u->sink) {
		u->sink(u->sink_ctx, byte);
	}
	/* The holding register fills and empties: its interrupt goes away and comes again, which is a new edge. */
	u->thr_pending = false;
	uart_update_irq(u);
	u->thr_pending = true;
}

static u8 uart_modem_status(const struct uart *u)
{
	/* The peer is always there and ready; in loopback the outputs come back (8.6.7 of the data sheet). */
	if (!(u->mcr & MCR_LOOP))
		return MSR_CTS | MSR_DSR | MSR_DCD;
	return (u->mcr & MCR_RTS ? MSR_CTS : 0) | (u->mcr & MCR_DTR ? MSR_DSR : 0) |
	       (u->mcr & MCR_OUT1 ? MSR_RI : 0) | (u->mcr & MCR_OUT2 ? MSR_DCD : 0);
}

static u8 uart_read(struct uart *u, u64 off)
{
	u8 value;

	switch (off) {
	case UART_DATA:
		return u->lcr & LCR_DLAB ? u->dll : uart_receive(u);
	case UART_IER:
		return u->lcr & LCR_DLAB ? u->dlm : u->ier;
	case UART_IIR_FCR:
		value = uart_pending(u);
		/* Reading the identification acknowledges a THRE interrupt, and only that. */
		if (value == IIR_THRE)
			u->thr_pending = false;
		return value | (u->fcr & FCR_ENABLE ? IIR_FIFO : 0);
	case UART_LCR:
		return u->lcr;
	case UART_MCR:
		return u->mcr;
	case UART_LSR:
		value = uart_line_status(u);
		u->lsr &= ~LSR_OVERRUN;
		return value;
	case UART_MSR:
		return uart_modem_status(u);
	default:
		return u->scr;
	}
}

static void uart_write(struct uart *u, u64 off, u8 value)
{
	switch (off) {
	case UART_DATA:
		if (u->lcr & LCR_DLAB)
			u->dll = value;
		else
			uart_transmit(u, value);
		break;
	case UART_IER:
		if (u->lcr & LCR_DLAB) {
			u->dlm = value;
			break;
		}
		/* Enabling the THRE interrupt raises it at once, since the register is empty. */
		if ((value & IER_THRE) && !(u->ier & IER_THRE))
			u->thr_pending = true;
		u->ier = value & IER_WRITABLE;
		break;
	case UART_IIR_FCR:
		/* Nothing waits in the FIFOs that a reset could lose: see the top. */
		u->fcr = value & FCR_ENABLE;
		break;
	case UART_LCR:
		u->lcr = value;
		break;
	case UART_MCR:
		u->mcr = value & (MCR_DTR | MCR_RTS | MCR_OUT1 | MCR_OUT2 | MCR_LOOP);
		if (!(u->mcr & MCR_LOOP))
			u->loop_full = false;
		break;
	case UART_SCR:
		u->scr = value;
		break;
	}
}

void uart_access(void *dev, struct vcpu *vcpu, u64 off, bool write, void *data, u32 len)
{
	struct uart *u = dev;
	u8 *bytes = data;
	u32 i;

	for (i = 0; i < len && off + i < 8; i++) {
		if (write)
			uart_write(u, off + i, bytes[i]);
		else
			bytes[i] = uart_read(u, off + i);
		uart_update_irq(u);
	}
}
