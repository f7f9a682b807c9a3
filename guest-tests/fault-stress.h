/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * fault-stress: what its files share. See fault-stress.c for what it does.
 *
 * Memory is in regions, one for each opponent, cut into chunks, one for each
 * toucher, which alone writes there and knows what each of its pages has to
 * hold. An opponent does to its region, while the touchers are at it, what the
 * kernel must bear: most of it may not change a page, the rest may turn it into
 * zeros (R_ZERO) and nothing else.
 */
#ifndef FAULT_STRESS_H
#define FAULT_STRESS_H

#include <pthread.h>
#include <stdatomic.h>

#include "lib/cpu.h"
#include "lib/util.h"

#define WORDS		(PAGE_BYTES / sizeof(u64))
#define HUGE_PAGES	512u
#define HUGE_BYTES	(HUGE_PAGES * PAGE_BYTES)
#define REGIONS_MAX	16
/* The word that userfaultfd's opponent marks in each page it serves. No toucher writes it. */
#define MARKED_WORD	100

enum {
	R_ZERO = 1,		/* the opponent may turn pages into zeros */
	R_SEGV = 2,		/* there are times when an access is refused */
	R_ALONE = 4,		/* a page table, and an aligned huge page, of its own */
	R_FILE = 8,		/* there are times when a file is there, read-only */
	R_MARK = 16,		/* MARKED_WORD may be set */
	R_LAZY = 32,		/* the kernel may turn pages into zeros later, by itself */
};

struct stress;
struct region;

/* An opponent: run() does its work once. `skip` says why it cannot here, or NULL. */
struct opponent {
	const char *name;
	u32 flags;
	const char *what;
	void (*run)(struct stress *s, struct region *r, u64 *rng);
	const char *(*skip)(struct stress *s, struct region *r);
};

extern const struct opponent opponents[];
extern const u32 nr_opponents;

struct region {
	const struct opponent *op;
	u32 index;
	u32 pages;
	u32 step;			/* of these, one in so many is used: multiples of it */
	char *base;
	char *elsewhere;		/* where mremap moves it to, as large */
	/* Touchers give pages back with it held, and so does an opponent that looks whether contents change. */
	pthread_mutex_t lock;
	u32 *gen;			/* of each page, its toucher's: what it holds; 0 = zeros */
	int fd;				/* R_FILE: what is mapped there; R_MARK: the userfaultfd; or -1 */
	u32 nodes;			/* migrate: NUMA nodes */
	_Atomic u64 cycles;		/* of the opponent */
	_Atomic u64 work;		/* what it did, in its own unit: pages moved, faults served */
	pthread_t thread;
	struct stress *stress;
};

struct stress {
	u64 seed;
	u32 touchers;
	u64 rounds, min_cycles;
	u64 duration_ns;
	u32 pages;			/* of a region that is not R_ALONE */
	u32 spread;			/* of one that is, its step */
	struct region region[REGIONS_MAX];
	u32 nr_regions;
	_Atomic u32 stop;		/* opponents end */
	_Atomic u64 touches, verified, given_back, refused;
	char exe[256];
};

/* xorshift64*; never 0. */
static inline u64 rng_next(u64 *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dull;
}

static inline u32 rng_below(u64 *state, u32 n)
{
	return (u32)((rng_next(state) >> 32) * n >> 32);
}

/* Kinds of contents, told apart by the first byte of a word. */
enum {
	KIND_TOUCHER = 0xf5,
	KIND_CHILD = 0xc7,		/* what a forked child writes to its copy */
	KIND_FILE = 0xa9,
	KIND_SERVED = 0xd3,		/* MARKED_WORD */
};

/* What word `w` of page `page` of region `r` holds: every word tells where it belongs. */
static inline u64 pattern(const struct stress *s, u32 kind, const struct region *r, u32 page, u32 w, u32 gen)
{
	u64 plain = (u64)kind << 56 | (u64)r->index << 48 | (u64)page << 32 | gen;
	u64 mask = (s->seed + w) * 0x9e3779b97f4a7c15ull;

	return plain ^ (mask >> 8);	/* the first byte stays */
}

/* The words of a page that are written and looked at, at its two ends and in between. */
#define NR_PROBES	3
static const u32 probe_word[NR_PROBES] = { 0, 257, WORDS - 1 };

static inline volatile u64 *page_word(const struct region *r, u32 page, u32 w)
{
	return (volatile u64 *)(r->base + (size_t)page * PAGE_BYTES) + w;
}

/* What went wrong, then the end of the program with EXIT_MISMATCH, at once. Any thread, also in a signal handler. */
void stress_fail(const struct region *r, u32 page, const char *fmt, ...)
	__attribute__((noreturn, format(printf, 3, 4)));

/* The victim of the opponent "exit": a program of its own that faults until it is killed. Does not return. */
void victim_main(u32 threads, u64 seed) __attribute__((noreturn));

#endif
