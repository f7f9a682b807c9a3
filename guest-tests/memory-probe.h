/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the parts of memory-probe share: the machine, its figures, memory of a node, and a
 * second thread. The figures are the main thread's alone.
 *
 * A figure is raw, as it was timed (line.socket.pingpong_ns), or begins with "model." and is what a cost model
 * would have to say for that (model.line_socket_dirty): the raw one less what the loop's own instructions take.
 */
#ifndef MEMORY_PROBE_H
#define MEMORY_PROBE_H

#include <pthread.h>

#include "lib/cpu.h"
#include "lib/roi.h"
#include "lib/tsc.h"
#include "lib/util.h"

#define FIGURES_MAX	256
#define REPEAT_MAX	64
#define NODES_MAX	16
#define HUGE_BYTES	(2u << 20)

struct figure {
	char name[48];
	double value;
	const char *unit;
};

/* Memory of one node, touched: lines to be measured, and more behind them to push those out of caches. */
struct arena {
	char *base;		/* NULL: not made yet */
	size_t lines_bytes;	/* of the first part */
	size_t sweep_bytes;
	bool huge;		/* all of it in pages of 2 MiB */
};

struct probe {
	struct roi roi;
	struct cpu_map map;
	double ticks_per_ns;
	size_t l1, l2, l3;	/* bytes */
	u32 repeat, pairs, rounds;
	u32 lines;		/* that a chase visits */
	u32 tlb_pages;		/* largest footprint */
	u32 from;		/* the CPU that single-threaded parts run on */

	/* What later parts subtract; from probe_basics(), in ticks. */
	double cpi;		/* an instruction of plain code */
	double chase_l1;	/* a dependent load that hits L1 */
	double cas;		/* compare-and-exchange, own line, with its loop */
	double smt;		/* slowdown beside a busy sibling; 1 = not known */
	double read_clock;	/* what reading the clock adds to a span */

	struct arena arena[NODES_MAX];
	struct figure figure[FIGURES_MAX];
	u32 nr_figures;
};

/* Keep a figure for the end. unit: "ns", "cycles", "pages", "ratio", ... */
void probe_figure(struct probe *p, const char *unit, double value, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* A figure kept before, or `fallback`. */
double probe_find(const struct probe *p, const char *name, double fallback);
/* Median; sorts the values. nr > 0. */
double probe_median(double *value, u32 nr);
/* Bind the main thread; exits if it cannot. */
void probe_bind(u32 cpu);
/* Run fn(arg) on another CPU in a thread of its own and wait for it, asleep. */
void probe_on(u32 cpu, void (*fn)(void *arg), void *arg);
/* The same without waiting; probe_join() does. */
struct probe_thread {
	pthread_t thread;
	u32 cpu;
	void (*fn)(void *arg);
	void *arg;
};
void probe_start(struct probe_thread *t, u32 cpu, void (*fn)(void *arg), void *arg);
void probe_join(struct probe_thread *t);
/* Up to `room` pairs of CPUs of a class, spread over the machine, the same ones each time. */
u32 probe_pairs(const struct probe *p, enum cpu_class class, u32 pair[][2], u32 room);
/* A CPU of a node; -1 if it has none. */
int probe_cpu_of_node(const struct probe *p, u32 node);
/* Ticks since `begin`, less the clock's own. */
static inline double probe_since(const struct probe *p, u64 begin)
{
	double t = (double)(tsc_read() - begin) - p->read_clock;

	return t > 0 ? t : 0;
}

/* --- memory-probe-memory.c --- */

/* The arena of `cpu`'s node, made and touched by a thread on that CPU at the first call. */
struct arena *probe_arena(struct probe *p, u32 cpu);
/* Make `nr` lines of [base, base + bytes) one random cycle; the first of them. Deterministic. */
void **chain_make(char *base, size_t bytes, u32 nr);
/* Follow it `nr` steps (a multiple of 16); the place it ended. */
void **chain_follow(void **at, u32 nr);
/* Read a line in each CACHE_LINE bytes of it. */
void sweep(const char *base, size_t bytes);

/* The parts; each adds its figures. */
void probe_basics(struct probe *p);		/* what the others subtract: runs always */
void probe_atomic(struct probe *p);
void probe_fault(struct probe *p);
void probe_line(struct probe *p);
void probe_chase(struct probe *p);
void probe_stream(struct probe *p);
void probe_tlb(struct probe *p);

#endif
