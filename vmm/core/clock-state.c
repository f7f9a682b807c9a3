// SPDX-License-Identifier: GPL-2.0-only
#include "core/clock-state.h"

#include <stdlib.h>
#include <string.h>

/* Beyond what any guest can make wait: 16,384 delayed IPIs and those of one turn without a delay. */
#define MAX_EVENTS	(1u << 20)
/* name (flag, length, one byte), due, seq, arg */
#define MIN_EVENT_SIZE	(1 + 4 + 1 + 3 * 8)

static int by_turn(const void *a, const void *b)
{
	const struct clock_event *x = *(struct clock_event *const *)a, *y = *(struct clock_event *const *)b;

	if (x->due != y->due)
		return x->due < y->due ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static void drop_all(struct clock *clock)
{
	for (u32 i = 0; i < clock->nr; i++) {
		struct clock_event *ev = clock->heap[i];

		ev->due = CLOCK_NEVER;
		if (ev->oneshot)
			g_free(ev);
	}
	clock->nr = 0;
}

static const struct clock_known *known_of(const struct clock_event *ev, const struct clock_known *known, u32 nr_known)
{
	for (u32 i = 0; i < nr_known; i++) {
		const struct clock_known *k = &known[i];

		if (ev->oneshot ? !k->timer && k->fn == ev->fn && k->ctx == ev->ctx : k->timer == ev)
			return k;
	}
	return NULL;
}

static void save_event(struct saver *s, struct clock_event *ev, const struct clock_known *known, u32 nr_known)
{
	const struct clock_known *k = known_of(ev, known, nr_known);
	char *name = k ? (char *)k->name : NULL;

	if (!k)
		saver_fail(s, "an event waits that has no name");
	saver_text(s, &name);
	saver_u64(s, &ev->due);
	saver_u64(s, &ev->seq);
	saver_u64(s, &ev->arg);
}

/* The event read, or NULL after a failure. */
static struct clock_event *load_event(struct saver *s, const struct clock_known *known, u32 nr_known)
{
	struct clock_event *ev = NULL;
	u64 due = 0, seq = 0, arg = 0;
	char *name = NULL;

	saver_text(s, &name);
	saver_u64(s, &due);
	saver_u64(s, &seq);
	saver_u64(s, &arg);
	for (u32 i = 0; name && saver_ok(s) && i < nr_known; i++) {
		const struct clock_known *k = &known[i];

		if (strcmp(k->name, name))
			continue;
		/* A timer waits once. */
		ev = k->timer;
		if (ev && (ev->due != CLOCK_NEVER || ev->arg != arg)) {
			ev = NULL;
			break;
		}
		if (!ev) {
			ev = g_new(struct clock_event, 1);
			clock_event_init(ev, k->fn, k->ctx, arg);
			ev->oneshot = true;
		}
		break;
	}
	g_free(name);
	if (!saver_check(s, ev || !saver_ok(s), "an event") || !ev)
		return NULL;
	/* One that is in the heap has a due time, or its owner could not take it out again. */
	if (!saver_check(s, due != CLOCK_NEVER, "an event's time")) {
		if (ev->oneshot)
			g_free(ev);
		return NULL;
	}
	ev->due = due;
	ev->seq = seq;
	return ev;
}

static void load_events(struct saver *s, struct clock *clock, u32 nr, const struct clock_known *known, u32 nr_known)
{
	const struct clock_event *last = NULL;

	if (nr > clock->max) {
		clock->max = nr;
		clock->heap = g_renew(struct clock_event *, clock->heap, nr);
	}
	for (u32 i = 0; i < nr; i++) {
		struct clock_event *ev = load_event(s, known, nr_known);

		if (!ev)
			return;
		/* In order of their turn, which makes the array a heap as it is. */
		ev->pos = clock->nr;
		clock->heap[clock->nr++] = ev;
		saver_check(s, ev->seq < clock->next_seq, "an event's turn");
		saver_check(s, !last || by_turn(&last, &ev) < 0, "the order of events");
		last = ev;
	}
}

void clock_transfer(struct saver *s, struct clock *clock, const struct clock_known *known, u32 nr_known)
{
	struct clock_event **sorted;
	u32 nr;

	g_mutex_lock(&clock->lock);
	nr = saver_count(s, clock->nr, MAX_EVENTS, MIN_EVENT_SIZE, "the number of events");
	saver_u64(s, &clock->next_seq);
	if (s->loading) {
		drop_all(clock);
		load_events(s, clock, nr, known, nr_known);
		__atomic_store_n(&clock->first, clock->nr ? clock->heap[0]->due : CLOCK_NEVER, __ATOMIC_RELEASE);
	} else {
		sorted = g_memdup2(clock->heap, nr * sizeof(*sorted));
		if (nr)
			qsort(sorted, nr, sizeof(*sorted), by_turn);
		for (u32 i = 0; i < nr; i++)
			save_event(s, sorted[i], known, nr_known);
		g_free(sorted);
	}
	g_mutex_unlock(&clock->lock);
}
