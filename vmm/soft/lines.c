// SPDX-License-Identifier: GPL-2.0-only
/*
 * The protocol: who holds a line, what it takes to read or write it elsewhere, and
 * what has to go for it. L3 includes L2, L2 includes L1, as on Intel's cores of
 * Nehalem to Broadwell (ORM, "Last level cache"); states are MESI's (SDM 3A 11.4 [12.4])
 * and Intel's forwarding state in that a clean line comes from a cache that has it.
 *
 * L1 replaces the line that came first: it is used by accesses that the filter
 * keeps from here. L2 and L3 replace the one used longest ago.
 */
#include "soft/line-model.h"
#include "soft/soft-mem.h"
#include "soft/spin.h"

/* Filter entries of all threads of a core, of one line. */
static void core_unfilter(const struct soft_core *core, u64 line)
{
	u32 i;

	for (i = 0; i < core->nr_threads; i++)
		if (line_filter_drop(core->thread[i], line))
			soft_spin_wake(core->thread[i]);
}

static void core_drop(struct soft_core *core, u64 line)
{
	if (!line_cache_remove(&core->l2, line))
		return;
	if (line_cache_remove(&core->l1, line))
		core_unfilter(core, line);
}

/* Every core of a mask but one. */
static void cores_drop(struct soft_lines *ls, u64 mask, const struct soft_core *but, u64 line)
{
	u32 bit, id;

	for (; mask; mask &= mask - 1) {
		bit = (u32)__builtin_ctzll(mask);
		for (id = bit; id < ls->nr_cores; id += LINE_CORE_BITS)
			if (&ls->core[id] != but)
				core_drop(&ls->core[id], line);
	}
}

/* --- home --- */

static u32 home_node(const struct soft_lines *ls, u64 line)
{
	const struct memory *mem = &ls->svm->vm->mem;
	u64 off = line << LINE_SHIFT;
	u32 i;

	for (i = 0; i < mem->nr_slots; i++)
		if (off - mem->slot[i].offset < mem->slot[i].size)
			return mem->slot[i].node;
	return 0;
}

static u32 socket_of_node(const struct soft_lines *ls, u32 node)
{
	u32 i;

	for (i = 0; i < ls->nr_cores; i++)
		if (ls->core[i].node == node)
			return ls->core[i].socket;
	return 0;
}

/* A modified line goes to memory: nobody waits, but memory is busy with it. */
static void write_back(struct soft_lines *ls, u64 line, u64 now)
{
	u64 *busy = &ls->node_busy[home_node(ls, line)];

	*busy = MAX(*busy, now) + ls->dram_line;
}

/* --- distance --- */

/* What the links beyond the first add between two sockets; a hypercube beyond the direct links. */
static u64 hops(const struct soft_lines *ls, u32 a, u32 b)
{
	if (ls->nr_sockets <= ls->links + 1)
		return 0;
	return ((u64)__builtin_popcount(a ^ b) - 1) * ls->hop;
}

/* The nearest of the sockets of a mask, which is not empty. */
static u32 nearest_socket(const struct soft_lines *ls, u32 mask, u32 from)
{
	u32 best = (u32)__builtin_ctz(mask), s;

	for (s = best + 1; s < ls->nr_sockets; s++)
		if (mask & BIT(s) && hops(ls, s, from) < hops(ls, best, from))
			best = s;
	return best;
}

/* --- making room --- */

static void l3_evicted(struct soft_lines *ls, u32 socket, u64 line, u64 now)
{
	struct line *l = &ls->line[line];
	bool owned = l->owner && ls->core[l->owner - 1].socket == socket;

	cores_drop(ls, l->cores & ls->socket[socket].cores, NULL, line);
	if (ls->exact)
		l->cores &= ~ls->socket[socket].cores;
	l->sockets &= (u8)~BIT(socket);
	if (owned) {
		l->stale |= l->modified;
		l->owner = l->modified = l->writer = 0;
	}
	if (l->stale && !l->sockets) {
		write_back(ls, line, now);
		l->stale = 0;
	}
}

static void l2_evicted(struct soft_lines *ls, struct soft_core *core, u64 line)
{
	struct line *l = &ls->line[line];

	if (line_cache_remove(&core->l1, line))
		core_unfilter(core, line);
	if (ls->exact)
		l->cores &= ~core->bit;
	if (l->owner == core->id + 1) {
		l->stale |= l->modified;
		l->owner = l->modified = l->writer = 0;
	}
}

static void fill_l1(struct soft_core *core, u64 line)
{
	u64 victim;

	if (line_cache_insert(&core->l1, line, &victim))
		core_unfilter(core, victim);
}

/* The line is in none of the core's caches, or in L3 only: it gets into all. */
static void fill(struct soft_lines *ls, struct soft_core *core, struct line *l, u64 line, u64 now)
{
	struct line_cache *l3 = &ls->socket[core->socket].l3;
	u64 victim;

	if (!(l->sockets & BIT(core->socket))) {
		if (line_cache_insert(l3, line, &victim))
			l3_evicted(ls, core->socket, victim, now);
		l->sockets |= (u8)BIT(core->socket);
	} else {
		line_cache_use(l3, line);
	}
	if (line_cache_insert(&core->l2, line, &victim))
		l2_evicted(ls, core, victim);
	fill_l1(core, line);
	l->cores |= core->bit;
}

/* --- the way of a line --- */

/* From another core that owns it. */
static u64 way_from_core(const struct soft_lines *ls, const struct soft_core *core, const struct soft_core *owner,
			 bool modified, struct line_trip *trip)
{
	bool near = owner->socket == core->socket;

	if (owner == core) {
		trip->from = LINE_FROM_SIBLING;
		return ls->latency[LINE_FROM_SIBLING];
	}
	trip->from = near ? LINE_FROM_SOCKET : LINE_FROM_REMOTE;
	if (near)
		return modified ? ls->line_socket_dirty : ls->latency[LINE_FROM_SOCKET];
	return (modified ? ls->line_remote_dirty : ls->latency[LINE_FROM_REMOTE]) + hops(ls, owner->socket, core->socket);
}

/* From wherever it is, with no owner to ask. */
static u64 way_from_anywhere(const struct soft_lines *ls, const struct soft_core *core, const struct line *l, u64 line,
			     struct line_trip *trip)
{
	u32 home, socket;

	if (l->sockets & BIT(core->socket)) {
		trip->from = LINE_FROM_L3;
		return ls->latency[LINE_FROM_L3];
	}
	if (l->sockets) {
		trip->from = LINE_FROM_REMOTE;
		socket = nearest_socket(ls, l->sockets, core->socket);
		return ls->latency[LINE_FROM_REMOTE] + hops(ls, socket, core->socket);
	}
	home = home_node(ls, line);
	if (home == core->node) {
		trip->from = LINE_FROM_DRAM_LOCAL;
		return ls->latency[LINE_FROM_DRAM_LOCAL];
	}
	trip->from = LINE_FROM_DRAM_REMOTE;
	socket = socket_of_node(ls, home);
	return ls->latency[LINE_FROM_DRAM_REMOTE] + (socket == core->socket ? 0 : hops(ls, socket, core->socket));
}

/* What it takes to end all other copies of a line that has no owner; `trip->from` rises to where the farthest is. */
static u64 way_to_invalidate(const struct soft_lines *ls, const struct soft_core *core, const struct line *l,
			     struct line_trip *trip)
{
	u32 other = l->sockets & (u8)~BIT(core->socket), s;
	u64 latency = 0;

	if (!other) {
		if (!(l->cores & ls->socket[core->socket].cores & ~core->bit))
			return 0;
		trip->from = MAX(trip->from, LINE_FROM_SOCKET);
		return ls->latency[LINE_FROM_SOCKET];
	}
	trip->from = MAX(trip->from, LINE_FROM_REMOTE);
	for (s = 0; s < ls->nr_sockets; s++)
		if (other & BIT(s))
			latency = MAX(latency, ls->latency[LINE_FROM_REMOTE] + hops(ls, s, core->socket));
	return latency;
}

/* How long the line takes to get here from where it is now; changes nothing but `trip->from`. */
static u64 line_way(const struct soft_lines *ls, const struct soft_core *core, const struct line *l, u64 line,
		    bool write, bool have, struct line_trip *trip)
{
	u64 latency, ask;

	if (l->owner)
		return way_from_core(ls, core, &ls->core[l->owner - 1], l->modified, trip);
	if (!write)
		return way_from_anywhere(ls, core, l, line, trip);
	trip->from = LINE_FROM_L3;
	latency = have ? ls->latency[LINE_FROM_L3] : way_from_anywhere(ls, core, l, line, trip);
	ask = way_to_invalidate(ls, core, l, trip);
	return MAX(latency, ask);
}

/* Now it is here: who else had it keeps a copy to read, or nothing if it is taken to be written. */
static void line_take(struct soft_lines *ls, struct soft_core *core, struct line *l, u64 line, bool write, u64 now)
{
	bool alone = !l->sockets, have = l->cores & core->bit && line_cache_has(&core->l2, line);
	u32 s;

	if (l->owner && l->owner != core->id + 1) {
		struct soft_core *owner = &ls->core[l->owner - 1];

		core_unfilter(owner, line);
		/* Between sockets a modified line goes home as well; within one L3 keeps it. */
		if (!write && l->modified && owner->socket != core->socket)
			write_back(ls, line, now);
		l->stale |= l->modified && owner->socket == core->socket;
	}
	if (write) {
		cores_drop(ls, l->cores, core, line);
		for (s = 0; s < ls->nr_sockets; s++)
			if (s != core->socket && l->sockets & BIT(s))
				line_cache_remove(&ls->socket[s].l3, line);
		l->cores &= core->bit;
		l->sockets &= (u8)BIT(core->socket);
		l->stale = 0;
	}
	l->owner = write || alone ? core->id + 1 : 0;
	l->modified = write;
	l->writer = 0;
	if (!have)
		fill(ls, core, l, line, now);
	else if (!line_cache_has(&core->l1, line))
		fill_l1(core, line);
}

/*
 * A line of this core's own: what its other threads did to it. Two threads that write
 * and read a line in turn share L1, but each has to wait for the other's stores.
 */
static bool line_siblings(struct soft_cpu *c, struct soft_core *core, struct line *l, u64 line, bool write)
{
	bool theirs = l->writer && l->writer != c->thread + 1;
	u32 i;

	if (write) {
		for (i = 0; i < core->nr_threads; i++)
			if (core->thread[i] != c && line_filter_drop(core->thread[i], line))
				soft_spin_wake(core->thread[i]);
		l->writer = c->thread + 1u;
		l->modified = 1;
	} else if (theirs) {
		core_unfilter(core, line);
		l->writer = 0;
	}
	return theirs;
}

/* How long after one has handed another a line the threads of a core are stepped in short turns. */
#define NEAR_NS		250u

static void line_near(const struct soft_cpu *c)
{
	u64 until = soft_ns(c->svm, soft_units(c)) + NEAR_NS;
	u32 i;

	for (i = 0; i < c->core->nr_threads; i++) {
		c->core->thread[i]->vcpu->near_until = until;
		if (c->core->thread[i] != c)
			soft_spin_wake(c->core->thread[i]);
	}
}

static void line_to_filter(struct soft_cpu *c, const struct line *l, u64 line)
{
	bool writable = l->owner == c->core->id + 1 && l->writer == c->thread + 1;

	c->filter[line_filter_slot(line)] = line_filter_tag(line) & ~(writable ? 0 : LINE_WRITABLE);
}

static u64 line_jitter(struct soft_cpu *c, u64 most)
{
	return most ? rng_next(&c->jitter) % (2 * most + 1) : 0;
}

/* When the line can go and when it is here: after other transfers of it, and when memory and links have room. */
static void line_schedule(struct soft_cpu *c, const struct line *l, u64 line, const struct line_queue *q,
			  enum line_kind kind, u64 latency, struct line_trip *trip)
{
	struct soft_lines *ls = c->svm->lines;
	u64 *busy;

	trip->start = MAX(trip->issued, (u64)l->busy * COST_CYCLE);
	if (q)
		trip->start = MAX(trip->start, q->last->turn.done);
	if (kind == LINE_STREAM_WRITE) {	/* nothing comes; memory is busy when the line is written back */
		trip->done = trip->start;
		return;
	}
	if (trip->from == LINE_FROM_DRAM_LOCAL || trip->from == LINE_FROM_DRAM_REMOTE) {
		busy = &ls->node_busy[home_node(ls, line)];
		trip->start = MAX(trip->start, *busy);
		*busy = trip->start + ls->dram_line;
	}
	if (trip->from >= LINE_FROM_REMOTE) {
		busy = &ls->socket[c->core->socket].link_busy;
		trip->start = MAX(trip->start, *busy);
		*busy = trip->start + ls->link_line;
	}
	if (trip->from == LINE_FROM_SOCKET || trip->from == LINE_FROM_REMOTE) {
		u64 moved = latency + line_jitter(c, ls->jitter);

		latency = moved > ls->jitter ? moved - ls->jitter : 0;
	}
	trip->done = trip->start + latency;
}

/* The core asks for a line that it does not have at hand, or did so while it waited for others. */
static void line_ask(struct soft_cpu *c, enum line_kind kind, struct line_trip *trip)
{
	if ((kind == LINE_READ || kind == LINE_STREAM_READ) && !trip->stream)
		trip->start = trip->issued = line_issue(c, trip->now);
}

/* The line is not in this core with the right that the access needs. True: not yet, it has to wait for it. */
static bool line_fetch(struct soft_cpu *c, struct line *l, u64 line, enum line_kind kind, bool retry, bool have,
		       struct line_trip *trip)
{
	bool write = line_kind_writes(kind), exclusive;
	struct soft_lines *ls = c->svm->lines;
	struct soft_core *core = c->core;
	struct line_queue *q = l->queued ? line_queue_find(ls, line, trip->now) : NULL;
	u64 latency;
	bool waits;

	if (trip->granted) {
		trip->from = LINE_FROM_L1;
		trip->done = trip->now;
		line_take(ls, core, l, line, write, trip->now);
		l->busy = c->turn.done / COST_CYCLE;
		return false;
	}
	if (q)
		latency = way_from_core(ls, core, q->last->core, true, trip);
	else
		latency = line_way(ls, core, l, line, write, have, trip);
	line_ask(c, kind, trip);
	/* What the load brings may be wanted at once, and is not known before the line is there. */
	waits = retry && (q || trip->from == LINE_FROM_SOCKET || trip->from == LINE_FROM_REMOTE);
	if (waits)
		trip->issued = trip->now;
	line_schedule(c, l, line, q, kind, latency, trip);
	if (ls->profile &&
	    (trip->from == LINE_FROM_SOCKET || trip->from == LINE_FROM_REMOTE || trip->start > trip->issued))
		line_note(c, line, kind, trip);
	if (waits && line_queue_join(c, l, line, write, trip)) {
		if (l->owner)
			core_unfilter(&ls->core[l->owner - 1], line);
		return true;
	}
	exclusive = write || l->modified || !l->sockets;
	line_take(ls, core, l, line, write, trip->now);
	l->busy = (exclusive ? trip->done : trip->start + ls->l3_line) / COST_CYCLE;
	return false;
}

bool soft_line(struct soft_cpu *c, u64 line, enum line_kind kind, bool retry)
{
	struct soft_lines *ls = c->svm->lines;
	struct soft_core *core = c->core;
	struct line *l = &ls->line[line];
	bool write = line_kind_writes(kind);
	bool in_l1 = line_cache_has(&core->l1, line), in_l2, own, lost = false;
	struct line_trip trip = { .now = soft_units(c), .retry = retry };

	trip.start = trip.issued = trip.now;
	c->spin.loud = true;
	/* The host's caches miss in both the directory and the L3's tags, so let it fetch one with the other. */
	if (!in_l1)
		line_cache_prefetch(&ls->socket[core->socket].l3, line);
	own = l->owner == core->id + 1;
	if (unlikely(l->queued)) {
		trip.granted = retry && line_queue_granted(c, l, line, trip.now);
		/* Another core's request for it is on the way, or has taken it already. */
		lost = !trip.granted && line_queue_lost(c, line, write, trip.now);
		if (lost)
			in_l1 = own = false;
	}
	if (in_l1 && (!write || own)) {
		trip.from = LINE_FROM_L1;
		trip.done = trip.now;
	} else {
		if (!trip.granted && (kind == LINE_READ || kind == LINE_STREAM_READ || kind == LINE_STREAM_WRITE))
			trip.stream = line_stream(core, line, kind != LINE_READ);
		in_l2 = !lost && l->cores & core->bit && line_cache_use(&core->l2, line);
		if (in_l2 && (!write || own)) {
			line_ask(c, kind, &trip);
			trip.from = LINE_FROM_L2;
			trip.done = trip.start + ls->latency[LINE_FROM_L2];
			fill_l1(core, line);
		} else {
			trip.waits = line_fetch(c, l, line, kind, retry && !trip.stream, in_l2, &trip);
			own = l->owner == core->id + 1;
		}
	}
	if (!trip.waits) {
		if (own && line_siblings(c, core, l, line, write)) {
			line_near(c);
			if (trip.from == LINE_FROM_L1 && !trip.granted)
				line_ask(c, kind, &trip);
			trip.from = MAX(trip.from, LINE_FROM_SIBLING);
			trip.done = MAX(trip.done, trip.start + ls->latency[LINE_FROM_SIBLING]);
		}
		if (!l->queued)
			line_to_filter(c, l, line);
	}
	line_feel(c, kind, &trip);
	return trip.waits;
}
