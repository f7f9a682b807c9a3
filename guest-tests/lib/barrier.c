// SPDX-License-Identifier: GPL-2.0-only
#include "lib/barrier.h"

#include <limits.h>
#include <sys/syscall.h>
#include <unistd.h>

/* From the futex(2) ABI; musl has no <linux/futex.h>. */
#define OP_WAIT_PRIVATE	(0 | 128)
#define OP_WAKE_PRIVATE	(1 | 128)

void barrier_init(struct barrier *b, u32 nr)
{
	b->nr = nr;
	b->waiting = 0;
	b->round = 0;
}

bool barrier_wait(struct barrier *b)
{
	u32 round = __atomic_load_n(&b->round, __ATOMIC_ACQUIRE);

	if (__atomic_add_fetch(&b->waiting, 1, __ATOMIC_ACQ_REL) == b->nr) {
		/* Nobody can arrive for the next round before the word moves. */
		__atomic_store_n(&b->waiting, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&b->round, round + 1, __ATOMIC_RELEASE);
		syscall(SYS_futex, &b->round, OP_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
		return true;
	}
	while (__atomic_load_n(&b->round, __ATOMIC_ACQUIRE) == round)
		syscall(SYS_futex, &b->round, OP_WAIT_PRIVATE, round, NULL, NULL, 0);
	return false;
}
