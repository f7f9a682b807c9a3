// SPDX-License-Identifier: GPL-2.0-only
/* Which messages are faults: each order in which a vCPU, its kicks and the pages' rights can have them come. */
#include "kvm/fault-list.h"

/* Two pages, two vCPUs. */
enum { P = 5, Q = 6, X = 0, Y = 1 };

static u64 last;		/* number of the last one that was new */

static enum fault_news add(struct fault_list *l, u64 page, u32 cpu, enum fault_kind kind)
{
	struct fault fault = { .page = page, .cpu = cpu, .kind = kind, .since = 7 };
	enum fault_news news = fault_list_add(l, &fault);

	if (news == FAULT_NEW) {
		g_assert_cmpuint(fault.number, >, last);
		last = fault.number;
	}
	return news;
}

/* How many the page's new right serves. */
static u32 serve(struct fault_list *l, u64 page, enum fault_kind kind)
{
	const struct fault *f;
	u32 n = 0;

	while ((f = fault_list_serve(l, page, kind))) {
		g_assert_cmpuint(f->page, ==, page);
		g_assert_cmpuint(f->since, ==, 7);
		g_assert_null(fault_list_waiting(l, f->number));
		n++;
	}
	return n;
}

static void begin(struct fault_list *l)
{
	last = 0;
	fault_list_init(l);
	fault_list_turn(l);
}

/* While the first waits, each further message is it; and once the page has gone again, it is a new one. */
static void test_waits(void)
{
	struct fault_list l;
	u64 first;

	begin(&l);
	g_assert_cmpint(add(&l, P, X, FAULT_MISSING), ==, FAULT_NEW);
	first = last;
	g_assert_cmpuint(fault_list_waiting(&l, first)->page, ==, P);
	g_assert_cmpint(add(&l, P, X, FAULT_MISSING), ==, FAULT_WAITS);
	fault_list_turn(&l);
	/* The VMM has written the page meanwhile. */
	g_assert_cmpint(add(&l, P, X, FAULT_MINOR), ==, FAULT_WAITS);
	g_assert_cmpint(add(&l, Q, X, FAULT_MISSING), ==, FAULT_NEW);
	fault_list_turn(&l);
	g_assert_cmpint(add(&l, P, X, FAULT_MISSING), ==, FAULT_WAITS);
	g_assert_cmpuint(serve(&l, P, FAULT_MISSING), ==, 1);
	g_assert_null(fault_list_waiting(&l, first));
	g_assert_nonnull(fault_list_waiting(&l, last));
	fault_list_lowered(&l, P, GPA_NONE);
	fault_list_turn(&l);
	g_assert_cmpint(add(&l, P, X, FAULT_MINOR), ==, FAULT_NEW);
	/* The number of the old one stands for nothing, though its delay may yet end. */
	g_assert_null(fault_list_waiting(&l, first));
	fault_list_destroy(&l);
}

/* Messages that were read together, or sent just before the answer. */
static void test_stale(void)
{
	struct fault_list l;

	begin(&l);
	g_assert_cmpint(add(&l, P, X, FAULT_MISSING), ==, FAULT_NEW);
	g_assert_cmpuint(serve(&l, P, FAULT_MISSING), ==, 1);
	/* Of the same read: with interrupts' faults between them as many as there were kicks. */
	g_assert_cmpint(add(&l, P, X, FAULT_MISSING), ==, FAULT_SERVED);
	g_assert_cmpint(add(&l, Q, X, FAULT_MISSING), ==, FAULT_NEW);
	g_assert_cmpint(add(&l, P, X, FAULT_MISSING), ==, FAULT_SERVED);
	g_assert_cmpuint(serve(&l, Q, FAULT_MISSING), ==, 1);
	/* The vCPU's first of the next, and whoever else's were read before it. */
	fault_list_turn(&l);
	g_assert_cmpint(add(&l, Q, Y, FAULT_MISSING), ==, FAULT_NEW);
	g_assert_cmpint(add(&l, P, X, FAULT_MISSING), ==, FAULT_SERVED);
	g_assert_cmpuint(serve(&l, Q, FAULT_MISSING), ==, 1);
	/* One that waited long, answered along with another's. */
	g_assert_cmpint(add(&l, 9, X, FAULT_MISSING), ==, FAULT_NEW);
	fault_list_turn(&l);
	fault_list_turn(&l);
	g_assert_cmpint(add(&l, 9, Y, FAULT_MISSING), ==, FAULT_NEW);
	g_assert_cmpuint(serve(&l, 9, FAULT_MISSING), ==, 2);
	g_assert_cmpint(add(&l, 8, X, FAULT_MISSING), ==, FAULT_NEW);
	g_assert_cmpint(add(&l, 9, X, FAULT_MINOR), ==, FAULT_SERVED);
	/* Nothing is kept for ever. */
	fault_list_turn(&l);
	g_assert_cmpuint(serve(&l, 8, FAULT_MISSING), ==, 1);
	add(&l, 10, X, FAULT_MISSING);
	add(&l, 10, Y, FAULT_MISSING);
	g_assert_cmpuint(serve(&l, 10, FAULT_MISSING), ==, 2);
	fault_list_turn(&l);
	add(&l, 11, X, FAULT_MISSING);
	add(&l, 11, Y, FAULT_MISSING);
	g_assert_cmpuint(l.faults->len, ==, 2);
	fault_list_destroy(&l);
}

/* Two vCPUs on one page have a fault each, and both are served by one answer. */
static void test_meet(void)
{
	struct fault_list l;
	u64 x, y;

	begin(&l);
	g_assert_cmpint(add(&l, P, X, FAULT_MISSING), ==, FAULT_NEW);
	x = last;
	g_assert_cmpint(add(&l, P, Y, FAULT_MISSING), ==, FAULT_NEW);
	y = last;
	g_assert_cmpint(add(&l, P, X, FAULT_MISSING), ==, FAULT_WAITS);
	g_assert_cmpuint(fault_list_waiting(&l, y)->cpu, ==, Y);
	g_assert_cmpuint(serve(&l, P, FAULT_MISSING), ==, 2);
	g_assert_null(fault_list_waiting(&l, x));
	g_assert_null(fault_list_waiting(&l, y));
	g_assert_cmpuint(serve(&l, P, FAULT_MISSING), ==, 0);
	fault_list_destroy(&l);

	/* One comes when the other's has been answered. */
	begin(&l);
	add(&l, P, X, FAULT_MISSING);
	serve(&l, P, FAULT_MISSING);
	g_assert_cmpint(add(&l, P, Y, FAULT_MISSING), ==, FAULT_NEW);
	fault_list_destroy(&l);
}

static void test_protect(void)
{
	struct fault_list l;
	u64 write;

	/* A missing mapping and a missing right to write are two faults, in either order. */
	begin(&l);
	g_assert_cmpint(add(&l, P, X, FAULT_MINOR), ==, FAULT_NEW);
	g_assert_cmpuint(serve(&l, P, FAULT_MINOR), ==, 1);
	fault_list_lowered(&l, P, GPA_READ);
	g_assert_cmpint(add(&l, P, X, FAULT_WP), ==, FAULT_NEW);
	write = last;
	g_assert_cmpint(add(&l, P, X, FAULT_WP), ==, FAULT_WAITS);
	fault_list_lowered(&l, P, GPA_NONE);
	g_assert_cmpint(add(&l, P, X, FAULT_MINOR), ==, FAULT_NEW);
	/* The right to write is no mapping; a mapping comes with it. */
	g_assert_cmpuint(serve(&l, P, FAULT_WP), ==, 1);
	g_assert_null(fault_list_waiting(&l, write));
	g_assert_nonnull(fault_list_waiting(&l, last));
	g_assert_cmpint(add(&l, P, Y, FAULT_WP), ==, FAULT_NEW);
	g_assert_cmpuint(serve(&l, P, FAULT_MINOR), ==, 2);
	fault_list_destroy(&l);

	/* A right taken away again: a new fault, even in one read. Of a mapping the loss of the right says nothing. */
	begin(&l);
	add(&l, P, X, FAULT_WP);
	add(&l, Q, Y, FAULT_MINOR);
	g_assert_cmpuint(serve(&l, P, FAULT_WP), ==, 1);
	g_assert_cmpuint(serve(&l, Q, FAULT_MINOR), ==, 1);
	g_assert_cmpint(add(&l, P, X, FAULT_WP), ==, FAULT_SERVED);
	fault_list_lowered(&l, P, GPA_READ);
	fault_list_lowered(&l, Q, GPA_READ);
	g_assert_cmpint(add(&l, P, X, FAULT_WP), ==, FAULT_NEW);
	g_assert_cmpint(add(&l, Q, Y, FAULT_MINOR), ==, FAULT_SERVED);
	fault_list_lowered(&l, Q, GPA_NONE);
	g_assert_cmpint(add(&l, Q, Y, FAULT_MINOR), ==, FAULT_NEW);
	fault_list_destroy(&l);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/fault-list/waits", test_waits);
	g_test_add_func("/fault-list/stale", test_stale);
	g_test_add_func("/fault-list/meet", test_meet);
	g_test_add_func("/fault-list/protect", test_protect);
	return g_test_run();
}
