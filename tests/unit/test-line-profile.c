// SPDX-License-Identifier: GPL-2.0-only
/* The record of lines that were waited for: it grows, forgets what matters least, and gives the rest in order. */
#include <string.h>

#include "soft/line-model.h"

struct fixture {
	struct soft_vm svm;
	struct soft_lines lines;
	struct soft_core core;
	struct soft_cpu *c;
	GArray *top;
};

static void fixture_init(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	f->c = g_aligned_alloc0(1, sizeof(*f->c), 64);
	f->c->svm = &f->svm;
	f->c->core = &f->core;
	f->svm.lines = &f->lines;
	f->lines.profile = line_profile_create();
	f->top = g_array_new(FALSE, FALSE, sizeof(struct profile_line));
}

static void fixture_done(struct fixture *f)
{
	g_array_unref(f->top);
	line_profile_destroy(f->lines.profile);
	g_aligned_free(f->c);
}

static void note(struct fixture *f, u64 line, enum line_kind kind, u64 rip, u64 queued, u64 wait)
{
	const struct line_trip trip = {
		.from = LINE_FROM_SOCKET, .now = 1000, .issued = 1000, .start = 1000 + queued, .done = 1000 + wait,
	};

	f->c->rip = rip;
	f->c->line_va = 0xffff888000000000ull + line * LINE_BYTES;
	line_note(f->c, line, kind, &trip);
}

static const struct profile_line *top(struct fixture *f, u32 most, u32 i)
{
	g_array_set_size(f->top, 0);
	line_profile_top(f->lines.profile, most, f->top);
	g_assert_cmpuint(f->top->len, >, i);
	return &g_array_index(f->top, struct profile_line, i);
}

static void test_record(void)
{
	const struct profile_line *l;
	struct fixture f;

	fixture_init(&f);
	f.core.socket = 1;
	note(&f, 7, LINE_READ, 0x100, 5, 50);
	note(&f, 7, LINE_LOCKED, 0x200, 0, 30);
	f.core.socket = 3;
	note(&f, 7, LINE_WRITE, 0x200, 10, 20);
	note(&f, 8, LINE_WALK, 0x300, 0, 99);
	f.c->cpl = 3;
	note(&f, 9, LINE_STREAM_WRITE, 0x400, 0, 1);
	l = top(&f, 20, 0);
	g_assert_cmpuint(f.top->len, ==, 3);
	g_assert_cmpuint(l->line, ==, 7);
	g_assert_cmphex(l->va, ==, 0xffff888000000000ull + 7 * LINE_BYTES);
	g_assert_cmpuint(l->transfers, ==, 3);
	g_assert_cmpuint(l->writes, ==, 2);
	g_assert_cmpuint(l->wait, ==, 100);
	g_assert_cmpuint(l->queued, ==, 15);
	g_assert_cmpuint(l->sockets[1], ==, 2);
	g_assert_cmpuint(l->sockets[3], ==, 1);
	g_assert_cmphex(l->user[1].rip, ==, 0x200);
	g_assert_cmpuint(l->user[1].count, ==, 2);
	g_assert_cmpuint(l->user[1].writes, ==, 2);
	g_assert_cmpuint(l->user[1].wait, ==, 50);
	/* Who from where: 0x100 read it from socket 1, 0x200 wrote it from both. */
	g_assert_cmpuint(l->user[0].socket_reads[1], ==, 1);
	g_assert_cmpuint(l->user[0].socket_writes[1], ==, 0);
	g_assert_cmpuint(l->user[1].socket_writes[1], ==, 1);
	g_assert_cmpuint(l->user[1].socket_writes[3], ==, 1);
	g_assert_cmpuint(l->user[1].socket_reads[3], ==, 0);
	/* A walk has no linear address of its own; user code has no name. */
	g_assert_cmpuint(l[1].line, ==, 8);
	g_assert_cmphex(l[1].va, ==, 0);
	g_assert_cmphex(l[2].user[0].rip, ==, PROFILE_USER);
	g_assert_cmpuint(l[2].writes, ==, 1);
	fixture_done(&f);
}

/* More code than there is room for: the one that waited least makes way and is counted. */
static void test_users(void)
{
	const struct profile_line *l;
	struct fixture f;
	u32 i;

	fixture_init(&f);
	for (i = 0; i < 10 * PROFILE_USERS; i++) {
		note(&f, 1, LINE_READ, 0x1000, 0, 1000);
		note(&f, 1, LINE_READ, 0x2000 + i, 0, 1 + i);
	}
	l = top(&f, 1, 0);
	g_assert_cmpuint(l->transfers, ==, 20 * PROFILE_USERS);
	g_assert_cmphex(l->user[0].rip, ==, 0x1000);
	g_assert_cmpuint(l->user[0].count, ==, 10 * PROFILE_USERS);
	g_assert_cmpuint(l->others, ==, 9 * PROFILE_USERS + 1);
	fixture_done(&f);
}

static void test_growth(void)
{
	const struct profile_line *l;
	struct fixture f;
	u32 i;

	fixture_init(&f);
	/* Fewer than it holds at most: none is lost, equal ones are in the order of their lines. */
	for (i = 0; i < 10000; i++)
		note(&f, i, LINE_READ, 0x100, 0, 1 + i / 2);
	l = top(&f, 20000, 0);
	g_assert_cmpuint(f.top->len, ==, 10000);
	for (i = 0; i < 10000; i++) {
		g_assert_cmpuint(l[i].wait, ==, 5000 - i / 2);
		g_assert_cmpuint(l[i].line, ==, 9998 - i / 2 * 2 + i % 2);
	}
	l = top(&f, 20, 19);
	g_assert_cmpuint(f.top->len, ==, 20);
	fixture_done(&f);
}

/* A million lines of little waiting do not drive out those of much, nor make it grow for ever. */
static void test_pruning(void)
{
	const struct profile_line *l;
	struct fixture f;
	u32 i;

	fixture_init(&f);
	for (i = 0; i < 1000000; i++) {
		note(&f, 1000 + i, LINE_READ, 0x100, 0, 10 + i % 7);
		if (i % 1000 == 0)
			note(&f, i / 1000 % 10, LINE_READ, 0x200, 0, 1000000 + i / 1000 % 10);
	}
	l = top(&f, 1000000, 9) - 9;
	g_assert_cmpuint(f.top->len, <, 40000);
	for (i = 0; i < 10; i++) {
		g_assert_cmpuint(l[i].line, ==, 9 - i);
		g_assert_cmpuint(l[i].transfers, ==, 100);
		g_assert_cmpuint(l[i].wait, ==, 100ull * (1000000 + 9 - i));
	}
	fixture_done(&f);
}

/* Once it is full, lines that were waited for alike, or all but one, make room for many. */
static void test_alike(void)
{
	struct fixture f;
	u32 alike, i;

	for (alike = 0; alike < 2; alike++) {
		fixture_init(&f);
		for (i = 0; i < 16384; i++)
			note(&f, i, LINE_READ, 0x100, 0, !alike && !i ? 0 : 10);
		top(&f, 100000, 16383);
		note(&f, i, LINE_READ, 0x100, 0, 10);
		top(&f, 100000, 0);
		g_assert_cmpuint(f.top->len, <=, 8193);
		fixture_done(&f);
	}
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/line-profile/record", test_record);
	g_test_add_func("/line-profile/users", test_users);
	g_test_add_func("/line-profile/growth", test_growth);
	g_test_add_func("/line-profile/pruning", test_pruning);
	g_test_add_func("/line-profile/alike", test_alike);
	return g_test_run();
}
