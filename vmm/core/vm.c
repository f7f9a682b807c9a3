// SPDX-License-Identifier: GPL-2.0-only
#include "core/vm.h"

void vm_request_stop(struct vm *vm, enum vm_stop why, int exit_code)
{
	/*
	 * A claim apart from the reason: whoever sees the reason also sees the exit
	 * code that belongs to it. No lock, because devices call this under vm->lock.
	 */
	if (__atomic_exchange_n((int *)&vm->stop_claimed, 1, __ATOMIC_ACQ_REL))
		return;
	__atomic_store_n((int *)&vm->exit_code, exit_code, __ATOMIC_RELAXED);
	__atomic_store_n((int *)&vm->stop, (int)why, __ATOMIC_RELEASE);
	if (vm->kick_all)
		vm->kick_all(vm);
}
