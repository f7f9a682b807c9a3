/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What lines.c and line-time.c share: the caches, the directory, and the costs in
 * units. Only they and their tests include this.
 */
#ifndef SOFT_LINE_MODEL_H
#define SOFT_LINE_MODEL_H

#include "core/profile.h"
#include "soft/line-cache.h"
#include "soft/lines.h"

#define LINE_MAX_SOCKETS	PROFILE_SOCKETS
#define LINE_MAX_CORES		254u
#define LINE_MAX_THREADS	7u
/* Of `cores`: cores of equal number modulo this share a bit. */
#define LINE_CORE_BITS		64u

/*
 * Who holds a line, as a directory that knows all. All zero: nobody, memory is up to date.
 *
 * owner + modified: the one core that may have changed it. owner without modified: the one core that has it and may
 * write without asking (E). No owner: those of `cores` have it to read (S), those of `sockets` in L3.
 */
struct line {
	u64 cores;		/* bit (core % 64): in that core's L2 */
	u64 sockets : 8;	/* in that socket's L3 */
	u64 owner : 8;		/* core + 1 */
	u64 modified : 1;
	u64 stale : 1;		/* memory is older than what L3 holds */
	u64 writer : 3;		/* thread + 1 of the owner that wrote last; 0: a sibling has read it since */
	u64 queued : 1;		/* vCPUs wait for it (line-queue.c) */
	u64 busy : 42;		/* cycle until which a transfer of it is under way */
};
_Static_assert(sizeof(struct line) == 16, "a page of RAM has 1 KiB of these");

/* A run of lines that a core reads one after the other, as its prefetcher sees it. */
#define LINE_STREAMS	16u
struct line_stream {
	u64 next;		/* the line that would go on with it */
	u64 ready;		/* when its last line was there */
	bool sure;		/* it went on once before */
};

struct soft_core {
	u32 id, socket, node;
	u64 bit;		/* in line.cores */
	struct line_cache l1, l2;
	struct soft_cpu *thread[LINE_MAX_THREADS];
	const enum vcpu_mp_state *state[LINE_MAX_THREADS];	/* theirs */
	u32 nr_threads;
	struct line_stream stream[LINE_STREAMS];
	u32 next_stream;
};

struct soft_socket {
	struct line_cache l3;
	u64 cores;		/* mask of its cores in line.cores */
	u64 link_busy;		/* its links to other sockets are taken until then */
};

struct line_profile;

/* vCPUs that wait for one line, in the order in which they get it. */
struct line_queue {
	u64 line;
	struct soft_cpu *first, *last;
};

struct soft_lines {
	struct soft_vm *svm;
	struct line *line;
	u64 nr_lines;
	u32 nr_cores, nr_sockets;
	struct soft_core *core;
	struct soft_socket socket[LINE_MAX_SOCKETS];
	u64 node_busy[TOPOLOGY_MAX_NODES];
	bool exact;		/* no two cores share a bit */
	/* Costs in units. */
	u64 latency[NR_LINE_FROM], stream[NR_LINE_FROM];
	u64 line_remote_dirty, line_socket_dirty, hop, dram_line, link_line, l3_line, lock, fence, pause, jitter, cpi, cpi_shared;
	u32 links, window, misses;
	struct line_queue *queue;	/* one a vCPU at most */
	u32 nr_queues;
	struct line_profile *profile;	/* NULL: nobody wants one */
};

/* A line's way to a core, for line-time.c. */
struct line_trip {
	enum line_from from;
	u64 now;		/* of the access */
	u64 issued;		/* when the core asked for the line: before now if it looked ahead in another miss */
	u64 start;		/* when the line was free to go: >= issued */
	u64 done;		/* when it is there */
	bool retry;		/* it is the instruction's own access, which may be begun anew */
	bool waits;		/* the instruction waits for it, and begins anew */
	bool granted;		/* it has waited */
	struct line_stream *stream;	/* of which it is one more line, or NULL */
};

/* line-time.c: when a load that misses was asked for, `now` being where the vCPU is. It may begin a window of loads that overlap. */
u64 line_issue(struct soft_cpu *c, u64 now);
/* line-time.c: charge what the vCPU feels of it. */
void line_feel(struct soft_cpu *c, enum line_kind kind, const struct line_trip *trip);
/*
 * The stream that has asked for this line before it was accessed, or NULL. Teaches the prefetcher, for which a second
 * line in a row makes a stream, and a REP instruction's (`rep`) is one from the first.
 */
struct line_stream *line_stream(struct soft_core *core, u64 line, bool rep);

static inline bool line_kind_writes(enum line_kind kind)
{
	return kind == LINE_WRITE || kind == LINE_LOCKED || kind == LINE_STREAM_WRITE;
}

/*
 * line-queue.c: an instruction that waits for a line from another core is begun anew when the line is there, so that
 * it sees what the line holds then, and the line stays with who has it until its transfer takes it away.
 */

/* The queue of a line that is `queued`, without those that did not come for it in time; NULL if none is left. */
struct line_queue *line_queue_find(struct soft_lines *ls, u64 line, u64 now);
/* Get in line for a line: false if this instruction has waited too often already, and has to go on without. */
bool line_queue_join(struct soft_cpu *c, struct line *l, u64 line, bool write, const struct line_trip *trip);
/* Has the vCPU waited for this line, and is it here? Then it is out of the queue. */
bool line_queue_granted(struct soft_cpu *c, struct line *l, u64 line, u64 now);
/* Does the vCPU's core no longer have the line, the next one's request having reached it? */
bool line_queue_lost(struct soft_cpu *c, u64 line, bool write, u64 now);

/* line-profile.c: an access that went to another core or waited. */
void line_note(struct soft_cpu *c, u64 line, enum line_kind kind, const struct line_trip *trip);
struct line_profile *line_profile_create(void);
void line_profile_destroy(struct line_profile *p);
/* Append the lines that were waited for most to `top` (struct profile_line), the most first. */
void line_profile_top(const struct line_profile *p, u32 most, GArray *top);

#endif
