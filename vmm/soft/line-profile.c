// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which lines cores wait for, and who: a record for each line that came from another
 * core or had to wait for its turn, with the code that accessed it.
 */
#include "soft/line-model.h"

#define PROFILE_MIN	1024u
/* Slots at most: 28 MiB of them. */
#define PROFILE_MAX	32768u

struct line_profile {
	struct profile_line *slot;	/* open addressing, by line */
	u32 size, used;
	u64 forgotten;			/* waits of lines that had to make room */
};

static u32 profile_place(const struct line_profile *p, u64 line)
{
	u32 i = (u32)((line * 0x9e3779b97f4a7c15ull) >> 32) & (p->size - 1);

	while (p->slot[i].transfers && p->slot[i].line != line)
		i = (i + 1) & (p->size - 1);
	return i;
}

static void profile_move(struct line_profile *p, u32 size, u64 least)
{
	struct line_profile old = *p;
	u32 i;

	p->size = size;
	p->used = 0;
	p->slot = g_new0(struct profile_line, size);
	for (i = 0; i < old.size; i++) {
		if (!old.slot[i].transfers)
			continue;
		if (old.slot[i].wait < least) {
			p->forgotten += old.slot[i].wait;
			continue;
		}
		p->slot[profile_place(p, old.slot[i].line)] = old.slot[i];
		p->used++;
	}
	g_free(old.slot);
}

static int by_least_wait(const void *a, const void *b)
{
	const u64 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* More slots; once there are enough, the half of the lines goes that was waited for least, so that there is room for a while. */
static void profile_grow(struct line_profile *p)
{
	u64 *wait, median;
	u32 nr = 0, i;

	if (p->size < PROFILE_MAX) {
		profile_move(p, p->size ? p->size * 2 : PROFILE_MIN, 0);
		return;
	}
	wait = g_new(u64, p->used);
	for (i = 0; i < p->size; i++)
		if (p->slot[i].transfers)
			wait[nr++] = p->slot[i].wait;
	qsort(wait, nr, sizeof(*wait), by_least_wait);
	median = wait[nr / 2];
	g_free(wait);
	profile_move(p, p->size, median + 1);
}

/* Room for one code address more: the one that has waited least makes way, and what it has is kept as `others`. */
static struct profile_user *record_user(struct profile_line *r, u64 rip)
{
	struct profile_user *least = &r->user[0];
	u32 i;

	for (i = 0; i < PROFILE_USERS; i++) {
		if (r->user[i].rip == rip || !r->user[i].count)
			return &r->user[i];
		if (r->user[i].wait < least->wait)
			least = &r->user[i];
	}
	r->others += least->count;
	*least = (struct profile_user){ 0 };
	return least;
}

void line_note(struct soft_cpu *c, u64 line, enum line_kind kind, const struct line_trip *trip)
{
	struct line_profile *p = c->svm->lines->profile;
	bool write = kind == LINE_WRITE || kind == LINE_LOCKED || kind == LINE_STREAM_WRITE;
	u64 wait = trip->done > trip->now ? trip->done - trip->now : 0, rip = c->cpl == 3 ? PROFILE_USER : c->rip;
	struct profile_line *r;
	struct profile_user *u;

	if (p->used * 2 >= p->size)
		profile_grow(p);
	r = &p->slot[profile_place(p, line)];
	if (!r->transfers) {
		*r = (struct profile_line){ .line = line };
		p->used++;
	}
	/* A walk reads entries by their physical address. */
	if (kind != LINE_WALK)
		r->va = c->line_va;
	r->transfers++;
	r->writes += write;
	r->wait += wait;
	r->queued += trip->start - trip->issued;
	r->sockets[c->core->socket]++;
	u = record_user(r, rip);
	u->rip = rip;
	u->count++;
	u->writes += write;
	u->wait += wait;
	(write ? u->socket_writes : u->socket_reads)[c->core->socket]++;
}

struct line_profile *line_profile_create(void)
{
	struct line_profile *p = g_new0(struct line_profile, 1);

	profile_grow(p);
	return p;
}

void line_profile_destroy(struct line_profile *p)
{
	if (p)
		g_free(p->slot);
	g_free(p);
}

static int by_wait(const void *a, const void *b)
{
	const struct profile_line *x = a, *y = b;

	if (x->wait != y->wait)
		return x->wait < y->wait ? 1 : -1;
	return x->line < y->line ? -1 : x->line > y->line;
}

void line_profile_top(const struct line_profile *p, u32 most, GArray *top)
{
	u32 i;

	for (i = 0; i < p->size; i++)
		if (p->slot[i].transfers)
			g_array_append_val(top, p->slot[i]);
	if (top->len)
		qsort(top->data, top->len, sizeof(struct profile_line), by_wait);
	if (top->len > most)
		g_array_set_size(top, most);
}
