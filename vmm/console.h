/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The guest's console: kept (the last CONSOLE_KEEP bytes), watched for a kernel's
 * last words, and copied to a file descriptor from the service loop, never from a
 * vCPU's thread, which a slow reader must not stop. Own lock; any thread.
 */
#ifndef VMM_CONSOLE_H
#define VMM_CONSOLE_H

#include <glib.h>

#include "base/types.h"
#include "core/saver.h"

#define CONSOLE_KEEP	(256u << 10)

struct console {
	GMutex lock;
	int fd;			/* (c) -1 = nowhere */
	GString *keep;		/* under lock */
	GString *pending;	/* under lock: not yet copied */
	GString *line;		/* under lock: the line being written, bounded */
	bool panic;		/* under lock: the kernel said it cannot go on */
	bool oops;		/* under lock: it oopsed; with panic_on_oops a panic follows */
	GPtrArray *marked;	/* under lock: first WARN, lockdep, RCU stall ... lines, at most 20 */
	u64 bytes;		/* under lock: all that came */
	void (*on_panic)(void *ctx);	/* (c) called once, without the lock, from console_byte()'s thread */
	void *ctx;
};

void console_init(struct console *c, int fd);
void console_destroy(struct console *c);
/* uart_sink: ctx is the console. */
void console_byte(void *ctx, u8 byte);
/* Copy what is pending. Service loop and, at the end, whoever tears down. */
void console_flush(struct console *c);
/* What was kept and judged, for snapshots: a section. Not what is pending; with no vCPU running. */
void console_transfer(struct saver *s, struct console *c);

#endif
