/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The memory model: private caches, an L3 a socket, who has each line of RAM, and
 * what an access costs by where its line is. On if the cost model has [memory]
 * (struct cost_model.memory); docs/soft-engine.md says what is simplified.
 *
 * A line is 64 bytes of guest RAM, numbered by its place in RAM's file: page frame
 * times 64 plus the line in the page. The protocol is MESI with a directory that
 * knows every line's holders (lines.c); tags are in line-cache.c; how much of a
 * latency a core feels, with its look-ahead, its store buffer and its streams, is in
 * line-time.c. Contents are in guest RAM and nowhere else: caches hold tags.
 *
 * Called from vmm/soft/ only, in the turn of the vCPU that does the access. Times
 * are in units of 1/COST_CYCLE cycle.
 */
#ifndef SOFT_LINES_H
#define SOFT_LINES_H

#include "soft/soft.h"

#define LINE_SHIFT	6u
#define LINE_BYTES	(1u << LINE_SHIFT)
#define LINES_IN_PAGE	(PAGE_SIZE / LINE_BYTES)

/* What an access does to a line. */
enum line_kind {
	LINE_READ,
	LINE_WRITE,		/* a plain store: retires into the store buffer */
	LINE_LOCKED,		/* a locked read-modify-write: waits for the line */
	LINE_STREAM_READ,	/* REP's source: pays a rate, not a latency, once it is under way */
	LINE_STREAM_WRITE,	/* REP's destination: the old contents are not fetched */
	LINE_WALK,		/* a paging-structure entry read by a walk: waits for the line */
};

/*
 * The filter: lines that an access of this vCPU finds in its core's L1 with the right it needs, by the line's low
 * bits; the rest of its number, which is below 2^32, is in the entry. A hit costs nothing and changes nothing, so what
 * the filter holds can never be seen in a result.
 */
#define LINE_FILTER_BITS	9u
#define LINE_NR_FILTER	(1u << LINE_FILTER_BITS)
#define LINE_VALID	1u
#define LINE_WRITABLE	2u

static inline u32 line_filter_tag(u64 line)
{
	return (u32)(line >> LINE_FILTER_BITS) << 2 | LINE_VALID | LINE_WRITABLE;
}
static inline u32 line_filter_slot(u64 line)
{
	return (u32)line & (LINE_NR_FILTER - 1);
}
/* Is this access one that the model need not see? */
static inline bool line_filter_hit(const struct soft_cpu *c, u64 line, bool write)
{
	u32 tag = c->filter[line_filter_slot(line)];

	return (write ? tag : tag | LINE_WRITABLE) == line_filter_tag(line);
}
/* An access of this vCPU to the line, or only one that writes, is to be seen by the model. True: it was not until now. */
static inline bool line_filter_drop(struct soft_cpu *c, u64 line)
{
	if (!line_filter_hit(c, line, false))
		return false;
	c->filter[line_filter_slot(line)] = 0;
	return true;
}

/*
 * Build the model of a VM whose cost model has [memory]; its topology is known, RAM
 * may still grow. -EINVAL, said, if the topology has more sockets, cores or threads than
 * the directory can name.
 */
int soft_lines_create(struct soft_vm *svm);
void soft_lines_destroy(struct soft_vm *svm);
/* RAM has `pages` pages now. 0 or -errno. */
int soft_lines_grow(struct soft_vm *svm, u64 pages);
/* A vCPU takes its place in a core. */
void soft_lines_attach(struct soft_cpu *c);
/* All caches empty, nothing outstanding: at a reset, and where a run goes on from a snapshot. */
void soft_lines_reset(struct soft_vm *svm);

/*
 * The vCPU's access to a line that its filter did not have: state changes, counts, and
 * the time that the vCPU has to wait for it is charged. c->cur is the instruction in hand, or NULL.
 * With `retry` it may be true that is returned: another core has the line, the time of its way is charged,
 * and the caller has to begin the instruction anew (VEC_LINE), whose access will then have it.
 */
bool soft_line(struct soft_cpu *c, u64 line, enum line_kind kind, bool retry);

/* The same for a range of bytes within one page of RAM, line by line, filter first. */
static inline bool soft_lines_touch(struct soft_cpu *c, const struct soft_page *page, u32 off, u32 len,
				    enum line_kind kind, bool retry)
{
	u64 line = (u64)page->pfn * LINES_IN_PAGE + (off >> LINE_SHIFT);
	u64 last = (u64)page->pfn * LINES_IN_PAGE + ((off + len - 1) >> LINE_SHIFT);
	bool write = kind == LINE_WRITE || kind == LINE_LOCKED || kind == LINE_STREAM_WRITE;

	for (; line <= last; line++)
		if ((kind == LINE_LOCKED || !line_filter_hit(c, line, write)) && soft_line(c, line, kind, retry))
			return true;
	return false;
}

/* At the start of a turn: how fast instructions are while the core's other threads are busy, or not. */
void soft_lines_share_core(struct soft_cpu *c);

/* Everything before is done before anything after: serializing instructions. Charges the wait for stores. These three do nothing without the model. */
void soft_lines_drain(struct soft_cpu *c);

/* MFENCE: the same, and what it costs by itself. */
void soft_line_fence(struct soft_cpu *c);
/* PAUSE. */
void soft_line_pause(struct soft_cpu *c);

#endif
