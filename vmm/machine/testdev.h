/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The test device at port 0xf4: how a guest ends its run and marks the region of
 * interest. Under vm->lock; the callback runs on the writing vCPU's thread,
 * before the write retires, so that a mark is exact for that vCPU.
 *
 *   0xf4 (write, any width)  exit: process status = value << 1 | 1, as QEMU's
 *                            isa-debug-exit
 *   0xf5 (write, 1 byte)     mark, enum testdev_mark
 *   0xf4, 0xf5 (read)        0xfb: the device is there
 */
#ifndef MACHINE_TESTDEV_H
#define MACHINE_TESTDEV_H

#include "core/vm.h"

enum testdev_mark {
	MARK_BEGIN = 1,		/* the measured region begins (by the load itself) */
	MARK_END = 2,
	MARK_COMMAND_BEGIN = 3,	/* our init: just before it starts the command */
	MARK_COMMAND_END = 4,
	MARK_PHASE = 16,	/* 16..255: a user's phase marks, recorded with their time */
};

typedef void (*testdev_fn)(void *ctx, struct vcpu *vcpu, u8 mark, u64 now);

struct testdev {
	struct vm *vm;
	testdev_fn on_mark;	/* may be NULL; called without vm->lock */
	void *ctx;
};

void testdev_init(struct testdev *t, struct vm *vm);
void testdev_access(void *dev, struct vcpu *vcpu, u64 off, bool write, void *data, u32 len);

#endif
