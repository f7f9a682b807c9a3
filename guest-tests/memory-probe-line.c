// SPDX-License-Identifier: GPL-2.0-only
/*
 * memory-probe's part `line`: a line that one CPU has and another one wants.
 *
 * pingpong: two CPUs write one word by turns with compare-and-exchange, each trying until it succeeds, as
 * core-to-core-latency by nviennot does, from which the published matrices come that cost models are made of. Half
 * of a round trip is one transfer for writing, with the instruction itself.
 *
 * flag: the same with plain stores and loads, a line for each direction. A turn is the writer's store to a line
 * that the reader has a copy of, and the reader's load.
 *
 * dirty, clean: one CPU has many lines, written, or read from memory and nowhere else; another follows a chain through them.
 */
#include <sched.h>
#include <string.h>

#include "memory-probe.h"

/*
 * 24 KiB: they stay in an L1 of 32. Enough for what comes once to be a small part: emptying an L3 that includes the reader's
 * caches takes its stack and page tables from it, too.
 */
#define HELD_LINES	384u
#define BATCHES		16u
/* On a busy host the other thread may not be running: then give way. Longer than any transfer. */
#define SPIN_MAX	50000u

struct pingpong {
	u64 word __attribute__((aligned(2 * CACHE_LINE)));
	u64 to __attribute__((aligned(2 * CACHE_LINE)));
	u64 back __attribute__((aligned(2 * CACHE_LINE)));
	u64 rounds __attribute__((aligned(2 * CACHE_LINE)));
};

/* `rounds` turns from `mine` to `other`. */
static void cas_turns(u64 *word, u64 mine, u64 other, u64 rounds)
{
	u64 spins;

	while (rounds) {
		spins = SPIN_MAX;
		__asm__ volatile("1: mov %[mine],%%rax\n lock cmpxchg %[other],(%[word])\n jne 2f\n"
				 "dec %[n]\n jnz 1b\n jmp 3f\n"
				 "2: dec %[spins]\n jnz 1b\n 3:"
				 : [n] "+r"(rounds), [spins] "+r"(spins)
				 : [word] "r"(word), [mine] "r"(mine), [other] "r"(other)
				 : "rax", "memory", "cc");
		if (rounds)
			sched_yield();
	}
}

static void wait_for(const u64 *word, u64 value)
{
	for (u32 i = 1; __atomic_load_n(word, __ATOMIC_ACQUIRE) != value; i++)
		if (i % SPIN_MAX == 0)
			sched_yield();
}

static void pong_main(void *arg)
{
	struct pingpong *g = arg;

	cas_turns(&g->word, 1, 0, g->rounds);
}

static void flag_main(void *arg)
{
	struct pingpong *g = arg;

	for (u64 i = 1; i <= g->rounds; i++) {
		wait_for(&g->to, i);
		__atomic_store_n(&g->back, i, __ATOMIC_RELAXED);
	}
}

/* Ticks of one way: the median of some batches. A batch first, until the other thread is there. */
static double time_pingpong(struct probe *p, u32 cpu, bool flag)
{
	u32 batch = p->rounds / BATCHES;
	struct pingpong g = { .rounds = (u64)batch * (BATCHES + 1) };
	double t[BATCHES + 1];
	struct probe_thread th;
	u64 begin;

	probe_start(&th, cpu, flag ? flag_main : pong_main, &g);
	for (u32 b = 0; b <= BATCHES; b++) {
		begin = tsc_read();
		if (!flag)
			cas_turns(&g.word, 0, 1, batch);
		for (u64 i = 1; flag && i <= batch; i++) {
			__atomic_store_n(&g.to, (u64)b * batch + i, __ATOMIC_RELAXED);
			wait_for(&g.back, (u64)b * batch + i);
		}
		t[b] = probe_since(p, begin) / batch / 2;
	}
	probe_join(&th);
	return probe_median(t + 1, BATCHES);
}

/* --- lines that another CPU holds --- */

struct holder {
	struct probe *p;
	struct arena *arena;
	bool dirty, stay;
	void **first;
	u64 ready __attribute__((aligned(2 * CACHE_LINE)));	/* (a) */
	u64 release __attribute__((aligned(2 * CACHE_LINE)));	/* (a) */
};

/* Spins until it is released: a CPU that idles may empty its caches. */
static void holder_main(void *arg)
{
	struct holder *h = arg;

	h->first = chain_make(h->arena->base, h->arena->lines_bytes, HELD_LINES);
	if (!h->dirty) {
		/* From memory, so that no other cache has them. */
		sweep(h->arena->base + h->arena->lines_bytes, h->arena->sweep_bytes);
		chain_follow(h->first, HELD_LINES);
	}
	__atomic_store_n(&h->ready, 1, __ATOMIC_RELEASE);
	if (h->stay)
		wait_for(&h->release, 1);
}

/* Ticks of a load by the main thread's CPU of a line that `cpu` has. */
static double time_held(struct probe *p, u32 cpu, bool dirty, bool stay)
{
	struct holder h = { .p = p, .arena = probe_arena(p, cpu), .dirty = dirty, .stay = stay };
	struct probe_thread t;
	double ticks;
	u64 begin;

	probe_start(&t, cpu, holder_main, &h);
	if (!stay)
		probe_join(&t);
	wait_for(&h.ready, 1);
	begin = tsc_read();
	chain_follow(h.first, HELD_LINES);
	ticks = probe_since(p, begin) / HELD_LINES;
	__atomic_store_n(&h.release, 1, __ATOMIC_RELEASE);
	if (stay)
		probe_join(&t);
	return ticks;
}

struct class_figures {
	double pingpong, flag, dirty, clean;	/* ticks */
};

static void measure_pair(struct probe *p, const u32 pair[2], struct class_figures *f)
{
	/* A sibling that spins would slow the reader down. */
	bool stay = cpu_map_class(&p->map, pair[0], pair[1]) != CPU_SMT;
	double t[4][REPEAT_MAX];

	probe_bind(pair[0]);
	for (u32 r = 0; r < p->repeat; r++) {
		t[0][r] = time_pingpong(p, pair[1], false);
		t[1][r] = time_pingpong(p, pair[1], true);
		t[2][r] = time_held(p, pair[1], true, stay);
		t[3][r] = stay ? time_held(p, pair[1], false, stay) : 0;
	}
	f->pingpong = probe_median(t[0], p->repeat);
	f->flag = probe_median(t[1], p->repeat);
	f->dirty = probe_median(t[2], p->repeat);
	f->clean = probe_median(t[3], p->repeat);
	probe_bind(p->from);
}

/*
 * What a cost model has to say for a transfer is all of a ping-pong's turn: the winner's own instructions
 * pass while the line is on its way back, as the loser asks for it all the time.
 */
static void report_class(struct probe *p, enum cpu_class class, const struct class_figures *f)
{
	const char *name = cpu_class_name(class);
	double ns = 1 / p->ticks_per_ns;

	probe_figure(p, "ns", f->pingpong * ns, "line.%s.pingpong_ns", name);
	probe_figure(p, "ns", f->flag * ns, "line.%s.flag_ns", name);
	probe_figure(p, "ns", f->dirty * ns, "line.%s.dirty_ns", name);
	if (class == CPU_SMT) {
		probe_figure(p, "ns", f->pingpong * ns, "model.line_sibling");
		return;
	}
	probe_figure(p, "ns", f->clean * ns, "line.%s.clean_ns", name);
	probe_figure(p, "ns", f->pingpong * ns, "model.line_%s_dirty", name);
	probe_figure(p, "ns", (f->clean - p->cpi) * ns, "model.line_%s_clean", name);
}

void probe_line(struct probe *p)
{
	struct class_figures of[16], all;
	double t[4][16];
	u32 pair[16][2];

	for (int class = CPU_SMT; class < NR_CPU_CLASSES; class++) {
		u32 n = probe_pairs(p, (enum cpu_class)class, pair, p->pairs);

		if (!n)
			continue;
		for (u32 i = 0; i < n; i++) {
			measure_pair(p, pair[i], &of[i]);
			t[0][i] = of[i].pingpong;
			t[1][i] = of[i].flag;
			t[2][i] = of[i].dirty;
			t[3][i] = of[i].clean;
		}
		all.pingpong = probe_median(t[0], n);
		all.flag = probe_median(t[1], n);
		all.dirty = probe_median(t[2], n);
		all.clean = probe_median(t[3], n);
		report_class(p, (enum cpu_class)class, &all);
	}
}
