// SPDX-License-Identifier: GPL-2.0-only
/*
 * How much of a line's way a core feels. The model of a core is that of interval
 * analysis (S. Eyerman, L. Eeckhout, T. Karkhanis, J. Smith, "A mechanistic performance
 * model for superscalar out-of-order processors", ACM TOCS 27(2), 2009): a load that misses is
 * waited for in full, and further misses within the reorder buffer's reach overlap with it unless
 * their addresses come from it. Stores wait in a buffer and are felt only when
 * that is full, or by an instruction that must not pass them.
 */
#include "soft/line-model.h"
#include "soft/profile.h"

_Static_assert(TIME_stall_dram_remote - TIME_stall_l2 == LINE_FROM_DRAM_REMOTE - LINE_FROM_L2,
	       "soft-time.def has the stalls in the order of enum line_from");

static void line_stall(struct soft_cpu *c, enum line_from from, u64 queue, u64 stall)
{
	queue = MIN(queue, stall);
	if (!stall)
		return;
	soft_spend(c, TIME_stall_queue, queue);
	soft_spend(c, (enum soft_time)(TIME_stall_l2 + MAX(from, LINE_FROM_L2) - LINE_FROM_L2), stall - queue);
	soft_sample(c, stall);
}

struct line_stream *line_stream(struct soft_core *core, u64 line, bool rep)
{
	struct line_stream *s;
	u32 i;

	for (i = 0; i < LINE_STREAMS; i++) {
		s = &core->stream[i];
		if (s->next != line || !line)	/* 0: none, and no stream goes on with a page's first line */
			continue;
		/* Prefetchers stop at a page's end (ORM, "Data prefetching"): the next page begins anew. */
		s->next = (line + 1) % LINES_IN_PAGE ? line + 1 : 0;
		if (s->sure || rep)
			return s;
		s->sure = true;
		return NULL;
	}
	if (!((line + 1) % LINES_IN_PAGE))
		return NULL;
	s = &core->stream[core->next_stream++ % LINE_STREAMS];
	*s = (struct line_stream){ .next = line + 1 };
	return NULL;
}

/* A line that the prefetcher, or a REP instruction, had asked for in time: it comes at the stream's rate. */
static void feel_stream(struct soft_cpu *c, const struct line_trip *trip)
{
	u64 rate = c->svm->lines->stream[trip->from], ready;
	struct line_stream *s = trip->stream;

	if (trip->from == LINE_FROM_L1)
		return;
	ready = MAX(s->ready, trip->now > rate ? trip->now - rate : 0) + rate;
	s->ready = ready;
	ready = MAX(ready, trip->start);
	if (ready > trip->now)
		line_stall(c, trip->from, trip->start - trip->now, ready - trip->now);
}

/* Registers by number as a mask; those of 8 bits are given by their place in gpr[]. */
static u32 op_loads(const struct soft_op *op)
{
	return op && op->dst < 16 ? BIT(op->dst) : 0;
}

/* The number of the instruction in hand. */
static u64 insn_now(const struct soft_cpu *c)
{
	return c->insns + (c->cur ? c->cur->n : 0);
}

u64 line_issue(struct soft_cpu *c, u64 now)
{
	const struct soft_lines *ls = c->svm->lines;
	struct line_window *w = &c->window;
	bool depends = c->cur && (w->regs >> c->cur->base & 1 || w->regs >> c->cur->index & 1);
	u64 n = insn_now(c);

	if (w->nr && w->nr < ls->misses && n - w->insns < ls->window && !depends)
		return w->begin + MIN(now - w->begin, (n - w->insns) * c->cpi);
	*w = (struct line_window){ .begin = now, .insns = n };
	return now;
}

static void feel_read(struct soft_cpu *c, const struct line_trip *trip)
{
	if (trip->from == LINE_FROM_L1)
		return;
	c->window.nr++;
	c->window.regs |= op_loads(c->cur);
	if (trip->done > trip->now)
		line_stall(c, trip->from, trip->start - trip->issued, trip->done - trip->now);
}

static void stores_retire(struct line_stores *s, u64 now)
{
	while (s->nr && s->done[s->head] <= now) {
		s->head = (s->head + 1) % LINE_NR_STORES;
		s->nr--;
	}
}

/* Stores become visible in order, but their lines are asked for as soon as they are known. */
static void feel_write(struct soft_cpu *c, const struct line_trip *trip)
{
	struct line_stores *s = &c->stores;
	u64 stall;

	if (trip->done == trip->now)
		return;
	stores_retire(s, trip->now);
	if (s->nr == c->svm->lines->misses) {
		stall = s->done[s->head] - trip->now;
		soft_spend(c, TIME_stall_stores, stall);
		soft_sample(c, stall);
		stores_retire(s, trip->now + stall);
	}
	s->last = MAX(s->last, trip->done);
	s->done[(s->head + s->nr) % LINE_NR_STORES] = s->last;
	s->nr++;
}

/* Spend what is left until all stores are done. */
static void stores_drain(struct soft_cpu *c)
{
	u64 now = soft_units(c);

	if (c->stores.last > now) {
		soft_spend(c, TIME_stall_stores, c->stores.last - now);
		soft_sample(c, c->stores.last - now);
	}
	c->stores.nr = 0;
	c->window.nr = 0;
}

static void feel_locked(struct soft_cpu *c, const struct line_trip *trip)
{
	u64 insn = insn_now(c) + 1;

	if (trip->done > trip->now)
		line_stall(c, trip->from, trip->start - trip->now, trip->done - trip->now);
	stores_drain(c);
	/* Once, however many lines it takes and however often it has waited for them; a walk that sets a flag pays for itself. */
	if (trip->retry && c->lock_paid == insn)
		return;
	if (trip->retry)
		c->lock_paid = insn;
	soft_spend(c, TIME_stall_lock, c->svm->lines->lock);
}

void line_feel(struct soft_cpu *c, enum line_kind kind, const struct line_trip *trip)
{
	if (trip->from != LINE_FROM_L1)
		c->lines_from[trip->from]++;
	/* A REP string's destination is not fetched: its lines are taken, and no core waits for them. */
	if (trip->from >= LINE_FROM_DRAM_LOCAL && kind != LINE_STREAM_WRITE)
		counter_add(&c->vcpu->counters, COUNTER_llc_misses, 1);
	if (trip->granted)
		return;		/* felt when it was asked for */
	if (kind == LINE_LOCKED)
		feel_locked(c, trip);
	else if (kind == LINE_WALK)
		line_stall(c, trip->from, trip->start - trip->now, trip->done - trip->now);
	else if (trip->stream)
		feel_stream(c, trip);
	else if (kind == LINE_READ || kind == LINE_STREAM_READ)
		feel_read(c, trip);
	else
		feel_write(c, trip);
}

void soft_lines_share_core(struct soft_cpu *c)
{
	const struct soft_lines *ls = c->svm->lines;
	const struct soft_core *core = c->core;
	u32 i;

	c->cpi = ls->cpi;
	for (i = 0; i < core->nr_threads; i++) {
		if (i != c->place && *core->state[i] == VCPU_RUNNABLE) {
			c->cpi = ls->cpi_shared;
			return;
		}
	}
}

void soft_lines_drain(struct soft_cpu *c)
{
	if (c->filter)
		stores_drain(c);
}

void soft_line_fence(struct soft_cpu *c)
{
	if (!c->filter)
		return;
	stores_drain(c);
	soft_spend(c, TIME_stall_lock, c->svm->lines->fence);
}

void soft_line_pause(struct soft_cpu *c)
{
	if (c->filter)
		soft_spend(c, TIME_pause, c->svm->lines->pause);
}
