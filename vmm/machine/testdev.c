// SPDX-License-Identifier: GPL-2.0-only
#include "machine/testdev.h"

#include <string.h>

#include "core/engine.h"

#define TESTDEV_EXIT		0
#define TESTDEV_MARK		1
#define TESTDEV_PRESENT		0xfb

void testdev_init(struct testdev *t, struct vm *vm)
{
	*t = (struct testdev){ .vm = vm };
}

static void testdev_mark(struct testdev *t, struct vcpu *vcpu, u8 mark)
{
	u64 now;

	if (!t->on_mark)
		return;
	now = t->vm->engine->now(t->vm, vcpu);
	/*
	 * A mark reads counters, asks other threads for theirs and may wait for
	 * them; they may need vm->lock. The bus and this device are constant while
	 * the VM runs, so the lock can be dropped within a handler.
	 */
	g_mutex_unlock(&t->vm->lock);
	t->on_mark(t->ctx, vcpu, mark, now);
	g_mutex_lock(&t->vm->lock);
}

void testdev_access(void *dev, struct vcpu *vcpu, u64 off, bool write, void *data, u32 len)
{
	struct testdev *t = dev;
	u32 value = 0;

	if (!write) {
		memset(data, TESTDEV_PRESENT, len);
		return;
	}
	memcpy(&value, data, len < sizeof(value) ? len : sizeof(value));
	if (off == TESTDEV_EXIT)
		vm_request_stop(t->vm, VM_STOP_EXIT, (int)((value << 1 | 1) & INT32_MAX));
	else if (off == TESTDEV_MARK && len == 1)
		testdev_mark(t, vcpu, (u8)value);
}
