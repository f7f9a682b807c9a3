// SPDX-License-Identifier: GPL-2.0-only
#include <glib.h>

#include "base/rng.h"
#include "core/clock.h"

struct log {
	u32 nr;
	u64 arg[4096], due[4096], now[4096];
};

static void record(void *ctx, u64 arg, u64 due, u64 now)
{
	struct log *log = ctx;

	g_assert_cmpuint(log->nr, <, ARRAY_SIZE(log->arg));
	log->arg[log->nr] = arg;
	log->due[log->nr] = due;
	log->now[log->nr++] = now;
}

static void count_wake(void *ctx)
{
	__atomic_fetch_add((u32 *)ctx, 1, __ATOMIC_RELAXED);
}

static void test_order(void)
{
	struct log log = { 0 };
	struct clock clock;

	clock_init(&clock, NULL, NULL);
	g_assert_cmpuint(clock_first(&clock), ==, CLOCK_NEVER);
	clock_post(&clock, 30, record, &log, 1);
	clock_post(&clock, 10, record, &log, 2);
	clock_post(&clock, 20, record, &log, 3);
	clock_post(&clock, 20, record, &log, 4);	/* same time: order of posting */
	g_assert_cmpuint(clock_first(&clock), ==, 10);
	g_assert_cmpuint(clock_run_due(&clock, 9), ==, 0);
	g_assert_cmpuint(clock_run_due(&clock, 25), ==, 3);
	g_assert_cmpuint(clock_first(&clock), ==, 30);
	g_assert_cmpuint(clock_run_due(&clock, 30), ==, 1);
	g_assert_cmpuint(log.arg[0], ==, 2);
	g_assert_cmpuint(log.arg[1], ==, 3);
	g_assert_cmpuint(log.arg[2], ==, 4);
	g_assert_cmpuint(log.arg[3], ==, 1);
	g_assert_cmpuint(log.due[1], ==, 20);
	g_assert_cmpuint(log.now[1], ==, 25);
	g_assert_cmpuint(clock_first(&clock), ==, CLOCK_NEVER);
	clock_destroy(&clock);
}

static void test_timer(void)
{
	struct clock_event a, b;
	struct log log = { 0 };
	struct clock clock;

	clock_init(&clock, NULL, NULL);
	clock_event_init(&a, record, &log, 1);
	clock_event_init(&b, record, &log, 2);
	clock_schedule(&clock, &a, 10);
	clock_schedule(&clock, &b, 20);
	clock_schedule(&clock, &a, 30);		/* later: b is first now */
	g_assert_cmpuint(clock_first(&clock), ==, 20);
	clock_schedule(&clock, &b, CLOCK_NEVER);
	g_assert_cmpuint(clock_first(&clock), ==, 30);
	clock_schedule(&clock, &b, CLOCK_NEVER);	/* cancelling twice is nothing */
	g_assert_cmpuint(clock_run_due(&clock, 100), ==, 1);
	g_assert_cmpuint(log.arg[0], ==, 1);
	clock_schedule(&clock, &a, 40);		/* used again */
	g_assert_cmpuint(clock_run_due(&clock, 100), ==, 1);
	clock_destroy(&clock);
}

/* Thousands of operations against a plain list, so that the heap's every path is walked. */
static void test_against_list(void)
{
	enum { NR = 64 };
	struct clock_event ev[NR];
	u64 due[NR], seq[NR], next_seq = 0;
	struct log log = { 0 };
	struct clock clock;
	struct rng rng;

	rng_seed(&rng, 1, 0);
	clock_init(&clock, NULL, NULL);
	for (u32 i = 0; i < NR; i++) {
		clock_event_init(&ev[i], record, &log, i);
		due[i] = CLOCK_NEVER;
	}
	for (u32 step = 0; step < 20000; step++) {
		u32 i = rng_next(&rng) % NR, best;

		due[i] = rng_next(&rng) % 4 ? rng_next(&rng) % 100 : CLOCK_NEVER;
		seq[i] = next_seq++;
		clock_schedule(&clock, &ev[i], due[i]);
		if (step % 16)
			continue;
		/* Run one event's time and compare which ones ran, in which order. */
		log.nr = 0;
		clock_run_due(&clock, step % 100);
		for (u32 n = 0; n < log.nr; n++) {
			best = NR;
			for (u32 j = 0; j < NR; j++)
				if (due[j] <= step % 100 &&
				    (best == NR || due[j] < due[best] ||
				     (due[j] == due[best] && seq[j] < seq[best])))
					best = j;
			g_assert_cmpuint(log.arg[n], ==, best);
			due[best] = CLOCK_NEVER;
		}
		for (u32 j = 0; j < NR; j++)
			g_assert_true(due[j] == CLOCK_NEVER || due[j] > step % 100);
	}
	clock_destroy(&clock);
}

struct again {
	struct clock *clock;
	struct clock_event ev;
	u32 runs;
};

static void run_again(void *ctx, u64 arg, u64 due, u64 now)
{
	struct again *a = ctx;

	a->runs++;
	clock_schedule(a->clock, &a->ev, due + 1);
}

/* A guest's 1 ns timer that is a million periods late must not hold its vCPU. */
static void test_short_period(void)
{
	struct clock clock;
	struct again a = { .clock = &clock };

	clock_init(&clock, NULL, NULL);
	clock_event_init(&a.ev, run_again, &a, 0);
	clock_schedule(&clock, &a.ev, 1);
	g_assert_cmpuint(clock_run_due(&clock, 1000000), ==, 1);
	g_assert_cmpuint(a.runs, ==, 1);
	g_assert_cmpuint(clock_first(&clock), ==, 2);
	clock_destroy(&clock);
}

struct poster {
	struct clock *clock;
	struct log *log;
	u64 due;
};

static gpointer post_thread(gpointer data)
{
	struct poster *p = data;

	clock_post(p->clock, p->due, record, p->log, p->due);
	return NULL;
}

static void post_from_other(struct clock *clock, struct log *log, u64 due)
{
	struct poster p = { clock, log, due };

	g_thread_join(g_thread_new("poster", post_thread, &p));
}

static void test_wake(void)
{
	struct log log = { 0 };
	struct clock clock;
	u32 wakes = 0;

	clock_init(&clock, count_wake, &wakes);
	clock_run_due(&clock, 0);		/* this thread owns it now */
	clock_post(&clock, 100, record, &log, 0);
	g_assert_cmpuint(wakes, ==, 0);		/* the owner needs no waking */
	post_from_other(&clock, &log, 200);
	g_assert_cmpuint(wakes, ==, 0);		/* not the earliest */
	post_from_other(&clock, &log, 50);
	g_assert_cmpuint(wakes, ==, 1);
	clock_destroy(&clock);
}

/* Due "never" is a time like others for a message: it is not lost. */
static void test_never(void)
{
	struct log log = { 0 };
	struct clock clock;

	clock_init(&clock, NULL, NULL);
	clock_post(&clock, CLOCK_NEVER, record, &log, 1);
	g_assert_cmpuint(clock_first(&clock), ==, CLOCK_NEVER - 1);
	clock_destroy(&clock);			/* and frees what never ran */
}

struct storm {
	struct clock *clock;
	u32 *ran;
};

static void count_one(void *ctx, u64 arg, u64 due, u64 now)
{
	(*(u32 *)ctx)++;
}

static gpointer storm_thread(gpointer data)
{
	struct storm *s = data;

	for (u32 i = 0; i < 20000; i++)
		clock_post(s->clock, i, count_one, s->ran, 0);
	return NULL;
}

static void test_threads(void)
{
	u32 ran = 0, wakes = 0, total = 0;
	struct clock clock;
	struct storm s = { &clock, &ran };
	GThread *t[4];

	clock_init(&clock, count_wake, &wakes);
	for (u32 i = 0; i < ARRAY_SIZE(t); i++)
		t[i] = g_thread_new("storm", storm_thread, &s);
	while (total < 20000)
		total += clock_run_due(&clock, 30000);
	for (u32 i = 0; i < ARRAY_SIZE(t); i++)
		g_thread_join(t[i]);
	total += clock_run_due(&clock, 30000);
	g_assert_cmpuint(total, ==, 80000);
	g_assert_cmpuint(ran, ==, 80000);
	clock_destroy(&clock);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/clock/order", test_order);
	g_test_add_func("/clock/timer", test_timer);
	g_test_add_func("/clock/against-list", test_against_list);
	g_test_add_func("/clock/short-period", test_short_period);
	g_test_add_func("/clock/wake", test_wake);
	g_test_add_func("/clock/never", test_never);
	g_test_add_func("/clock/threads", test_threads);
	return g_test_run();
}
