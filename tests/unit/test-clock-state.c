// SPDX-License-Identifier: GPL-2.0-only
/* What waits in a clock, saved and loaded: the same events in the same order. */
#define _GNU_SOURCE
#include <glib.h>
#include <string.h>

#include "base/rng.h"
#include "core/clock-state.h"

#define NR_TIMERS	3

struct rig {
	struct clock clock;
	struct clock_event timer[NR_TIMERS];
	struct clock_known known[NR_TIMERS + 2];
	GArray *ran;		/* what ran: kind << 32 | arg, and due, alternating */
};

static void note(struct rig *r, u64 kind, u64 arg, u64 due)
{
	u64 row[2] = { kind << 32 | arg, due };

	g_array_append_vals(r->ran, row, 2);
}

static void on_message(void *ctx, u64 arg, u64 due, u64 now)
{
	note(ctx, 100, arg, due);
}

static void on_other(void *ctx, u64 arg, u64 due, u64 now)
{
	note(ctx, 101, arg, due);
}

static void on_unknown(void *ctx, u64 arg, u64 due, u64 now)
{
}

static void on_timer(void *ctx, u64 arg, u64 due, u64 now)
{
	note(ctx, arg, 0, due);
}

static struct rig *rig_new(void)
{
	static const char *const name[NR_TIMERS] = { "t0", "t1", "t2" };
	struct rig *r = g_new0(struct rig, 1);

	clock_init(&r->clock, NULL, NULL);
	r->ran = g_array_new(FALSE, FALSE, sizeof(u64));
	for (u32 i = 0; i < NR_TIMERS; i++) {
		clock_event_init(&r->timer[i], on_timer, r, i);
		r->known[i] = (struct clock_known){ .name = name[i], .timer = &r->timer[i] };
	}
	r->known[NR_TIMERS] = (struct clock_known){ .name = "message", .fn = on_message, .ctx = r };
	r->known[NR_TIMERS + 1] = (struct clock_known){ .name = "other", .fn = on_other, .ctx = r };
	return r;
}

static void rig_free(struct rig *r)
{
	/* As devices do: take timers out, then the clock goes. */
	for (u32 i = 0; i < NR_TIMERS; i++)
		clock_schedule(&r->clock, &r->timer[i], CLOCK_NEVER);
	clock_destroy(&r->clock);
	g_array_free(r->ran, TRUE);
	g_free(r);
}

static GByteArray *rig_save(struct rig *r, char **err)
{
	GByteArray *out;
	struct saver s;

	saver_init_save(&s);
	saver_begin(&s, "clock", 1);
	clock_transfer(&s, &r->clock, r->known, ARRAY_SIZE(r->known));
	saver_end(&s);
	if (err)
		*err = g_strdup(s.err);
	else
		g_assert_cmpstr(s.err, ==, NULL);
	out = g_byte_array_ref(s.out);
	saver_destroy(&s);
	return out;
}

static char *rig_load(struct rig *r, const u8 *data, size_t len)
{
	u8 *copy = g_memdup2(data, len);
	struct saver s;
	char *err;

	saver_init_load(&s, "FILE", copy, len);
	saver_begin(&s, "clock", 1);
	clock_transfer(&s, &r->clock, r->known, ARRAY_SIZE(r->known));
	saver_end(&s);
	err = g_strdup(s.err);
	saver_destroy(&s);
	g_free(copy);
	return err;
}

static void fill(struct rig *r, u64 seed)
{
	struct rng rng;

	rng_seed(&rng, seed, 0);
	for (u32 i = 0; i < 500; i++) {
		/* Few different times, so that the order of posting decides often. */
		u64 due = rng_next(&rng) % 20;

		switch (rng_next(&rng) % 4) {
		case 0:
			clock_schedule(&r->clock, &r->timer[due % NR_TIMERS], due);
			break;
		case 1:
			clock_post(&r->clock, due, on_other, r, i);
			break;
		default:
			clock_post(&r->clock, due, on_message, r, i);
			break;
		}
		if (i % 50 == 49)
			clock_run_due(&r->clock, due / 4);
	}
	g_array_set_size(r->ran, 0);
}

static void test_round_trip(void)
{
	for (u64 seed = 0; seed < 20; seed++) {
		struct rig *a = rig_new(), *b = rig_new();
		GByteArray *data, *again;

		fill(a, seed);
		fill(b, seed + 100);	/* what was there goes */
		data = rig_save(a, NULL);
		g_assert_cmpstr(rig_load(b, data->data, data->len), ==, NULL);
		g_assert_cmpuint(clock_first(&b->clock), ==, clock_first(&a->clock));
		g_assert_cmpuint(clock_pending(&b->clock), ==, clock_pending(&a->clock));
		again = rig_save(b, NULL);
		g_assert_cmpmem(again->data, again->len, data->data, data->len);
		/* And go on alike: new events take their places among the old. */
		for (u32 i = 0; i < 20; i++) {
			clock_post(&a->clock, i, on_message, a, 1000 + i);
			clock_post(&b->clock, i, on_message, b, 1000 + i);
			clock_schedule(&a->clock, &a->timer[1], i);
			clock_schedule(&b->clock, &b->timer[1], i);
			clock_run_due(&a->clock, i);
			clock_run_due(&b->clock, i);
		}
		g_assert_cmpuint(a->ran->len, >, 500);
		g_assert_cmpmem(a->ran->data, a->ran->len * sizeof(u64), b->ran->data, b->ran->len * sizeof(u64));
		g_byte_array_unref(data);
		g_byte_array_unref(again);
		rig_free(a);
		rig_free(b);
	}
}

static void test_empty(void)
{
	struct rig *a = rig_new(), *b = rig_new();
	GByteArray *data = rig_save(a, NULL);

	fill(b, 1);
	g_assert_cmpstr(rig_load(b, data->data, data->len), ==, NULL);
	g_assert_cmpuint(clock_pending(&b->clock), ==, 0);
	g_assert_cmpuint(clock_first(&b->clock), ==, CLOCK_NEVER);
	g_byte_array_unref(data);
	rig_free(a);
	rig_free(b);
}

/* An event that nobody named must not be lost in silence. */
static void test_unnamed(void)
{
	struct rig *a = rig_new();
	char *err = NULL;

	clock_post(&a->clock, 1, on_unknown, a, 0);
	g_byte_array_unref(rig_save(a, &err));
	g_assert_nonnull(strstr(err, "section clock: an event waits that has no name"));
	g_free(err);
	/* The right function with another context is another event. */
	clock_run_due(&a->clock, 1);
	clock_post(&a->clock, 1, on_message, &a->timer, 0);
	g_byte_array_unref(rig_save(a, &err));
	g_assert_nonnull(err);
	g_free(err);
	rig_free(a);
}

static void test_damaged(void)
{
	struct rig *a = rig_new();
	GByteArray *data;
	u32 failed = 0;

	clock_schedule(&a->clock, &a->timer[0], 7);
	clock_schedule(&a->clock, &a->timer[2], 5);
	for (u64 i = 0; i < 5; i++)
		clock_post(&a->clock, 6, on_message, a, i);
	data = rig_save(a, NULL);
	for (size_t len = 0; len < data->len; len++) {
		struct rig *b = rig_new();
		char *err = rig_load(b, data->data, len);

		g_assert_nonnull(err);
		g_free(err);
		rig_free(b);
	}
	for (size_t bit = 0; bit < data->len * 8; bit++) {
		struct rig *b = rig_new();
		char *err;

		data->data[bit / 8] ^= 1u << bit % 8;
		err = rig_load(b, data->data, data->len);
		failed += err != NULL;
		clock_run_due(&b->clock, CLOCK_NEVER - 1);
		g_free(err);
		rig_free(b);
		data->data[bit / 8] ^= 1u << bit % 8;
	}
	g_assert_cmpuint(failed, >, data->len);
	/* One timer twice. */
	memcpy(memmem(data->data, data->len, "t0", 2), "t2", 2);
	{
		struct rig *b = rig_new();
		char *err = rig_load(b, data->data, data->len);

		g_assert_nonnull(err);
		g_assert_nonnull(strstr(err, "an event"));
		g_free(err);
		rig_free(b);
	}
	g_byte_array_unref(data);
	rig_free(a);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/clock-state/round-trip", test_round_trip);
	g_test_add_func("/clock-state/empty", test_empty);
	g_test_add_func("/clock-state/unnamed", test_unnamed);
	g_test_add_func("/clock-state/damaged", test_damaged);
	return g_test_run();
}
