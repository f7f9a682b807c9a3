/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A 16550A UART with FIFOs (National Semiconductor PC16550D data sheet). Output
 * goes byte by byte to a sink; input is queued without limit and handed to the
 * guest, while it holds RTS (MCR bit 1, set by any driver that opens the port),
 * as it reads. Transmission takes no time. Under vm->lock.
 */
#ifndef MACHINE_UART_H
#define MACHINE_UART_H

#include "core/vm.h"

typedef void (*uart_sink)(void *ctx, u8 byte);

struct uart {
	struct vm *vm;
	u32 irq;
	uart_sink sink;		/* called under vm->lock: must not block; NULL drops */
	void *sink_ctx;
	u8 ier, fcr, lcr, mcr, lsr, scr, dll, dlm;	/* lsr: error bits only, the others are computed */
	u8 loop_byte;		/* loopback: the byte on its way back */
	bool loop_full;
	bool thr_pending;	/* THRE interrupt not yet acknowledged */
	GByteArray *input;	/* not yet read by the guest */
	u32 input_pos;
	bool irq_level;
	/* Not NULL: the guest's port is elsewhere, and this takes what uart_input() is given, under vm->lock. */
	void (*wire)(void *ctx, const void *data, u32 len);
	void *wire_ctx;
};

void uart_init(struct uart *u, struct vm *vm, u32 irq, uart_sink sink, void *sink_ctx);
void uart_destroy(struct uart *u);
/* Queue bytes for the guest to read. Caller holds vm->lock; any thread. */
void uart_input(struct uart *u, const void *data, u32 len);
/* bus_fn for the eight ports. */
void uart_access(void *dev, struct vcpu *vcpu, u64 off, bool write, void *data, u32 len);

#endif
