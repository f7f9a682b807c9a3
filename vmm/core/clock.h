/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A vCPU's clock: what will happen to it and when. Timers (local APIC, PIT) and
 * messages from other vCPUs and devices (IPIs, interrupts, INIT, SIPI, NMI),
 * each due at a time in ns since the VM started (host time on kvm, virtual time
 * on soft), all wait in one queue, so an injected delay is just a later due time.
 *
 * Any thread may post, schedule or cancel; `lock` orders them. Due events run on
 * the thread of the vCPU that owns the clock, in order of (due, order of
 * posting), with the lock dropped. The owner's `wake` is called, with the lock
 * dropped, when another thread's post becomes the earliest event; with `one_thread`,
 * where one thread is the owner of many clocks, at any such post.
 */
#ifndef CORE_CLOCK_H
#define CORE_CLOCK_H

#include <glib.h>

#include "base/types.h"

#define CLOCK_NEVER	UINT64_MAX

/* Runs on the owner's thread. `now` is the time at which it runs, >= due. */
typedef void (*clock_fn)(void *ctx, u64 arg, u64 due, u64 now);

/* A timer: embedded in its device, scheduled again and again. */
struct clock_event {
	clock_fn fn;		/* (c) */
	void *ctx;		/* (c) */
	u64 arg;		/* (c) */
	u64 due;		/* (l) clock->lock; CLOCK_NEVER = not queued */
	u64 seq;		/* (l) */
	u32 pos;		/* (l) place in the heap, valid if queued */
	bool oneshot;		/* (c) freed by the clock after it ran */
};

struct clock {
	GMutex lock;
	struct clock_event **heap;	/* (l) binary heap by (due, seq) */
	u32 nr, max;			/* (l) */
	u64 next_seq;			/* (l) */
	u64 first;			/* (a) due of the earliest event, CLOCK_NEVER if none */
	void (*wake)(void *wake_ctx);	/* (c) may be NULL */
	void *wake_ctx;			/* (c) */
	bool one_thread;		/* (c) its owner's thread is that of other clocks too */
	GThread *owner;			/* (l) thread of the last clock_run_due(), NULL before */
};

void clock_init(struct clock *clock, void (*wake)(void *wake_ctx), void *wake_ctx);
void clock_destroy(struct clock *clock);

/* Prepare a timer that belongs to one clock. */
void clock_event_init(struct clock_event *ev, clock_fn fn, void *ctx, u64 arg);
/* (Re)schedule; due = CLOCK_NEVER cancels. Any thread. */
void clock_schedule(struct clock *clock, struct clock_event *ev, u64 due);
/* A message: runs fn once at `due`. Any thread. */
void clock_post(struct clock *clock, u64 due, clock_fn fn, void *ctx, u64 arg);
/* Due time of the earliest event, CLOCK_NEVER if none. Any thread; lock-free. */
u64 clock_first(const struct clock *clock);
/* How many events wait. Any thread; a value that may already be old. */
u32 clock_pending(const struct clock *clock);
/*
 * Run everything due at or before now. Owner's thread only. Returns how many
 * ran. What the callbacks themselves schedule waits for the next call, however
 * early it is due, so a guest's shortest timer cannot hold its vCPU here.
 */
u32 clock_run_due(struct clock *clock, u64 now);

#endif
