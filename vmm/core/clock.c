// SPDX-License-Identifier: GPL-2.0-only
#include <string.h>

#include "base/log.h"
#include "core/clock.h"

static bool earlier(const struct clock_event *a, const struct clock_event *b)
{
	return a->due != b->due ? a->due < b->due : a->seq < b->seq;
}

static void put(struct clock *clock, u32 pos, struct clock_event *ev)
{
	clock->heap[pos] = ev;
	ev->pos = pos;
}

static void sift_up(struct clock *clock, u32 pos)
{
	struct clock_event *ev = clock->heap[pos];

	while (pos && earlier(ev, clock->heap[(pos - 1) / 2])) {
		put(clock, pos, clock->heap[(pos - 1) / 2]);
		pos = (pos - 1) / 2;
	}
	put(clock, pos, ev);
}

static void sift_down(struct clock *clock, u32 pos)
{
	struct clock_event *ev = clock->heap[pos];

	for (;;) {
		u32 child = 2 * pos + 1;

		if (child >= clock->nr)
			break;
		if (child + 1 < clock->nr && earlier(clock->heap[child + 1], clock->heap[child]))
			child++;
		if (!earlier(clock->heap[child], ev))
			break;
		put(clock, pos, clock->heap[child]);
		pos = child;
	}
	put(clock, pos, ev);
}

static void publish_first(struct clock *clock)
{
	u64 first = clock->nr ? clock->heap[0]->due : CLOCK_NEVER;

	__atomic_store_n(&clock->first, first, __ATOMIC_RELEASE);
}

static void heap_remove(struct clock *clock, struct clock_event *ev)
{
	u32 pos = ev->pos;
	struct clock_event *last = clock->heap[--clock->nr];

	fb_assert(pos <= clock->nr && (pos == clock->nr || clock->heap[pos] == ev));
	if (last != ev) {
		put(clock, pos, last);
		sift_up(clock, pos);
		sift_down(clock, last->pos);
	}
	ev->due = CLOCK_NEVER;
}

static void heap_insert(struct clock *clock, struct clock_event *ev, u64 due)
{
	if (clock->nr == clock->max) {
		clock->max = clock->max ? clock->max * 2 : 16;
		clock->heap = g_renew(struct clock_event *, clock->heap, clock->max);
	}
	ev->due = due;
	ev->seq = clock->next_seq++;
	put(clock, clock->nr, ev);
	sift_up(clock, clock->nr++);
}

void clock_init(struct clock *clock, void (*wake)(void *wake_ctx), void *wake_ctx)
{
	memset(clock, 0, sizeof(*clock));
	g_mutex_init(&clock->lock);
	clock->first = CLOCK_NEVER;
	clock->wake = wake;
	clock->wake_ctx = wake_ctx;
}

void clock_destroy(struct clock *clock)
{
	for (u32 i = 0; i < clock->nr; i++) {
		struct clock_event *ev = clock->heap[i];

		ev->due = CLOCK_NEVER;
		if (ev->oneshot)
			g_free(ev);
	}
	g_free(clock->heap);
	g_mutex_clear(&clock->lock);
	memset(clock, 0, sizeof(*clock));
	clock->first = CLOCK_NEVER;
}

void clock_event_init(struct clock_event *ev, clock_fn fn, void *ctx, u64 arg)
{
	memset(ev, 0, sizeof(*ev));
	ev->fn = fn;
	ev->ctx = ctx;
	ev->arg = arg;
	ev->due = CLOCK_NEVER;
}

void clock_schedule(struct clock *clock, struct clock_event *ev, u64 due)
{
	bool wake;

	g_mutex_lock(&clock->lock);
	if (ev->due != CLOCK_NEVER)
		heap_remove(clock, ev);
	if (due != CLOCK_NEVER)
		heap_insert(clock, ev, due);
	publish_first(clock);
	/* The owner looks at `first` itself before it enters the guest. */
	wake = due != CLOCK_NEVER && clock->heap[0] == ev && clock->wake &&
	       (clock->one_thread || clock->owner != g_thread_self());
	g_mutex_unlock(&clock->lock);
	if (wake)
		clock->wake(clock->wake_ctx);
}

void clock_post(struct clock *clock, u64 due, clock_fn fn, void *ctx, u64 arg)
{
	struct clock_event *ev = g_new(struct clock_event, 1);

	clock_event_init(ev, fn, ctx, arg);
	ev->oneshot = true;
	/* "Never" marks an event that is not queued; the moment before it is as far away. */
	clock_schedule(clock, ev, due == CLOCK_NEVER ? CLOCK_NEVER - 1 : due);
}

u64 clock_first(const struct clock *clock)
{
	return __atomic_load_n(&clock->first, __ATOMIC_ACQUIRE);
}

u32 clock_pending(const struct clock *clock)
{
	return __atomic_load_n(&clock->nr, __ATOMIC_RELAXED);
}

u32 clock_run_due(struct clock *clock, u64 now)
{
	u64 end_seq;
	u32 ran = 0;

	/* Nobody else can post here, so that there is nothing to do can be seen without the lock. */
	if (clock->one_thread && now < clock->first)
		return 0;
	g_mutex_lock(&clock->lock);
	clock->owner = g_thread_self();
	end_seq = clock->next_seq;
	while (clock->nr && clock->heap[0]->due <= now && clock->heap[0]->seq < end_seq) {
		struct clock_event *ev = clock->heap[0];
		bool oneshot = ev->oneshot;
		u64 due = ev->due;

		heap_remove(clock, ev);
		publish_first(clock);
		g_mutex_unlock(&clock->lock);
		ev->fn(ev->ctx, ev->arg, due, now);
		/* A timer's owner may have freed it meanwhile; only a message is ours. */
		if (oneshot)
			g_free(ev);
		ran++;
		g_mutex_lock(&clock->lock);
	}
	g_mutex_unlock(&clock->lock);
	return ran;
}
