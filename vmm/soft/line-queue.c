// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who waits for a line that others have. A request goes to the line's home, from there to the core that has the
 * line, and the line comes from there: three ways, taken as equally long. Until the second
 * is done the core that has it may use it, which is what lets a failed compare-and-exchange succeed when it is
 * tried again at once.
 */
#include "soft/line-model.h"

/* Who has not come for its line so long after it was there, on account of an interrupt, say, is not waited for. */
#define LATE_NS		500u
/* An instruction of several accesses might wait for one line after the other for ever. */
#define RETRIES		8u

static void queue_remove(struct soft_lines *ls, struct line_queue *q, struct soft_cpu *c)
{
	struct soft_cpu **at = &q->first, *before = NULL;

	while (*at != c) {
		before = *at;
		at = &before->turn.next;
	}
	*at = c->turn.next;
	if (q->last == c)
		q->last = before;
	c->turn.waiting = false;
	if (!q->first) {
		ls->line[q->line].queued = 0;
		*q = ls->queue[--ls->nr_queues];
	}
}

static struct line_queue *queue_of(struct soft_lines *ls, u64 line)
{
	u32 i;

	for (i = 0; i < ls->nr_queues; i++)
		if (ls->queue[i].line == line)
			return &ls->queue[i];
	return NULL;
}

struct line_queue *line_queue_find(struct soft_lines *ls, u64 line, u64 now)
{
	u64 late = soft_units_of(ls->svm, LATE_NS);
	struct line_queue *q = queue_of(ls, line);

	while (q && q->first->turn.done + late < now) {
		queue_remove(ls, q, q->first);
		q = queue_of(ls, line);
	}
	return q;
}

bool line_queue_join(struct soft_cpu *c, struct line *l, u64 line, bool write, const struct line_trip *trip)
{
	struct soft_lines *ls = c->svm->lines;
	u64 insn = c->insns + c->cur->n;
	struct line_queue *q;

	if (c->turn.waiting)
		queue_remove(ls, queue_of(ls, c->turn.line), c);
	if (c->turn.insn != insn)
		c->turn.retries = 0;
	if (c->turn.retries >= RETRIES)
		return false;
	c->turn.retries++;
	q = queue_of(ls, line);
	if (!q) {
		q = &ls->queue[ls->nr_queues++];
		*q = (struct line_queue){ .line = line };
		l->queued = 1;
	}
	if (q->last)
		q->last->turn.next = c;
	else
		q->first = c;
	q->last = c;
	c->turn.line = line;
	c->turn.start = trip->start;
	c->turn.done = trip->done;
	c->turn.insn = insn;
	c->turn.write = write;
	c->turn.waiting = true;
	c->turn.next = NULL;
	return true;
}

bool line_queue_granted(struct soft_cpu *c, struct line *l, u64 line, u64 now)
{
	struct soft_lines *ls = c->svm->lines;

	if (!c->turn.waiting || c->turn.line != line || now < c->turn.done)
		return false;
	queue_remove(ls, queue_of(ls, line), c);
	return true;
}

bool line_queue_lost(struct soft_cpu *c, u64 line, bool write, u64 now)
{
	const struct line_queue *q = line_queue_find(c->svm->lines, line, now);
	const struct soft_cpu *first = q ? q->first : NULL;

	if (!first || first->core == c->core || (!write && !first->turn.write))
		return false;
	return now >= first->turn.start + (first->turn.done - first->turn.start) / 3;
}
