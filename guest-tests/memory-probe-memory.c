// SPDX-License-Identifier: GPL-2.0-only
/*
 * memory-probe's parts `chase`, `stream` and `tlb`, and the memory that they use.
 *
 * To find lines in a cache of a level, they are used first, and then so much other memory that the smaller
 * caches have lost them and the one that is meant has not. So a chase or stream goes over its lines once, and
 * what it finds hangs neither on how a cache replaces lines nor on what is left of the last one.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory-probe.h"

#define LINES_BYTES	(4 * (size_t)HUGE_BYTES)	/* in few enough huge pages for any TLB */
#define STREAM_BYTES	((size_t)HUGE_BYTES)
#define OVERLAP_LINES	1024u
#define OVERLAP_STEP	(37 * PAGE_BYTES + 13 * CACHE_LINE)

/* --- arenas --- */

/* kB of huge pages behind the mapping that begins at `base`. */
static size_t huge_kib(const char *base)
{
	char line[512], start[32];
	unsigned long kib = 0;
	bool here = false;
	FILE *f = fopen("/proc/self/smaps", "re");

	if (!f)
		return 0;
	snprintf(start, sizeof(start), "%lx-", (unsigned long)(uintptr_t)base);
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, start, strlen(start)))
			here = true;
		if (here && sscanf(line, "AnonHugePages: %lu kB", &kib) == 1)
			break;
	}
	fclose(f);
	return kib;
}

static void arena_make(void *arg)
{
	struct arena *a = arg;
	size_t bytes = a->lines_bytes + a->sweep_bytes, skip;
	char *map = mmap(NULL, bytes + HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		die_errno(EXIT_UNSUPPORTED, "mmap of %zu MiB (--l3 makes it less)", bytes >> 20);
	/* What is not aligned goes, so that the mapping in smaps is the arena. */
	skip = -(uintptr_t)map & (HUGE_BYTES - 1);
	if (skip)
		munmap(map, skip);
	munmap(map + skip + bytes, HUGE_BYTES - skip);
	a->base = map + skip;
	(void)madvise(a->base, bytes, MADV_HUGEPAGE);
	for (size_t i = 0; i < bytes; i += PAGE_BYTES)
		*(volatile char *)(a->base + i) = 1;
	a->huge = huge_kib(a->base) == bytes >> 10;
}

struct arena *probe_arena(struct probe *p, u32 cpu)
{
	u32 node = (u32)p->map.node[cpu];
	struct arena *a = &p->arena[node < NODES_MAX ? node : 0];

	if (a->base)
		return a;
	a->lines_bytes = LINES_BYTES;
	a->sweep_bytes = (p->l3 * 5 / 2 + HUGE_BYTES - 1) & ~(size_t)(HUGE_BYTES - 1);
	probe_on(cpu, arena_make, a);
	probe_figure(p, "bool", a->huge, "huge_pages.node%u", node);
	if (!a->huge)
		roi_warning(&p->roi, "node %u: no pages of 2 MiB: chase.* contain TLB misses (see tlb.*)", node);
	return a;
}

/* --- chains --- */

static u64 next_random(u64 *state)
{
	u64 x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return *state = x;
}

/* Places of `nr` lines, one in each nr-th of the bytes, in a random order that is the same each time. */
static void **places_make(char *base, size_t bytes, u32 nr)
{
	size_t step = bytes / CACHE_LINE / nr;
	u64 random = 0x9e3779b97f4a7c15ull;
	void **place = malloc(nr * sizeof(*place)), *swap;

	if (!place || !step)
		die(EXIT_MISMATCH, "no memory for %u places in %zu bytes", nr, bytes);
	for (u32 i = 0; i < nr; i++)
		place[i] = base + (i * step + next_random(&random) % step) * CACHE_LINE;
	for (u32 i = nr - 1; i; i--) {
		u32 k = (u32)(next_random(&random) % (i + 1));

		swap = place[i];
		place[i] = place[k];
		place[k] = swap;
	}
	return place;
}

void **chain_make(char *base, size_t bytes, u32 nr)
{
	void **place = places_make(base, bytes, nr), **first = place[0];

	for (u32 i = 0; i < nr; i++)
		*(void **)place[i] = place[(i + 1) % nr];
	free(place);
	return first;
}

void **chain_follow(void **at, u32 nr)
{
	u64 n = nr / 16;

#define FOLLOW4 "mov (%[at]),%[at]\n mov (%[at]),%[at]\n mov (%[at]),%[at]\n mov (%[at]),%[at]\n"
	__asm__ volatile("1:\n" FOLLOW4 FOLLOW4 FOLLOW4 FOLLOW4 "dec %[n]\n jnz 1b"
			 : [at] "+r"(at), [n] "+r"(n)
			 :
			 : "memory", "cc");
	return at;
}

void sweep(const char *base, size_t bytes)
{
	const char *end = base + (bytes & ~(size_t)255);

	__asm__ volatile("1: mov (%[at]),%%rax\n mov 64(%[at]),%%rax\n mov 128(%[at]),%%rax\n mov 192(%[at]),%%rax\n"
			 "add $256,%[at]\n cmp %[end],%[at]\n jb 1b"
			 : [at] "+r"(base)
			 : [end] "r"(end)
			 : "rax", "memory", "cc");
}

/* --- chase --- */

/* Where lines are to be found: in a cache of this level, or (4) in memory. */
enum level {
	LEVEL_L1 = 1,
	LEVEL_L2,
	LEVEL_L3,
	LEVEL_DRAM,
};

static const char *const level_name[] = { NULL, "l1", "l2", "l3", "dram" };

/* How much memory to measure in, and how much other to read after it. */
static void level_sizes(const struct probe *p, enum level level, size_t *bytes, size_t *push)
{
	const size_t lines[] = { 0, p->l1 / 2, p->l2 / 4, p->l3 / 8, LINES_BYTES };
	const size_t others[] = { 0, 0, 3 * p->l1, 2 * p->l2, (size_t)-1 };

	*bytes = lines[level] < LINES_BYTES ? lines[level] : LINES_BYTES;
	*push = others[level];
}

/* Read what pushes the measured part out of what is nearer than `level`. */
static void push_out(const struct probe *p, const struct arena *a, enum level level)
{
	size_t bytes, push;

	level_sizes(p, level, &bytes, &push);
	sweep(a->base + a->lines_bytes, push < a->sweep_bytes ? push : a->sweep_bytes);
}

struct chase {
	struct probe *p;
	struct arena *arena;
	enum level level;
	u32 nr;
	void **first;
};

static void chase_prepare(void *arg)
{
	struct chase *c = arg;
	size_t bytes, push;

	level_sizes(c->p, c->level, &bytes, &push);
	if (c->nr > bytes / CACHE_LINE)
		c->nr = (u32)(bytes / CACHE_LINE) & ~15u;
	c->first = chain_make(c->arena->base, bytes, c->nr);
	push_out(c->p, c->arena, c->level);
}

/* Ticks of a load by p->from; the lines are prepared by `cpu`, whose node's they are. */
static double time_chase(struct probe *p, enum level level, u32 cpu)
{
	struct chase c = { .p = p, .arena = probe_arena(p, cpu), .level = level, .nr = p->lines };
	double t[REPEAT_MAX];
	u64 begin;

	for (u32 r = 0; r < p->repeat; r++) {
		if (cpu == p->from)
			chase_prepare(&c);
		else
			probe_on(cpu, chase_prepare, &c);
		begin = tsc_read();
		chain_follow(c.first, c.nr);
		t[r] = probe_since(p, begin) / c.nr;
	}
	return probe_median(t, p->repeat);
}

/*
 * Ticks of a load of memory whose address hangs on no other load: as many at a time as the core can have. A
 * step of odd lines over a page, which no prefetcher follows, and three instructions a load.
 */
static double time_overlapped(struct probe *p)
{
	struct arena *a = probe_arena(p, p->from);
	double t[REPEAT_MAX];
	u64 begin;

	for (u32 r = 0; r < p->repeat; r++) {
		u64 off = 0, n = OVERLAP_LINES;

		sweep(a->base + a->lines_bytes, a->sweep_bytes);
		begin = tsc_read();
#define OVERLAP "add %[step],%[off]\n and %[mask],%[off]\n mov (%[base],%[off]),%%rdx\n"
		__asm__ volatile("1:\n" OVERLAP OVERLAP OVERLAP OVERLAP OVERLAP OVERLAP OVERLAP OVERLAP
				 "sub $8,%[n]\n jnz 1b"
				 : [off] "+r"(off), [n] "+r"(n)
				 : [base] "r"(a->base), [step] "r"((u64)OVERLAP_STEP), [mask] "r"(a->lines_bytes - 1)
				 : "rdx", "memory", "cc");
		t[r] = probe_since(p, begin) / OVERLAP_LINES;
	}
	return probe_median(t, p->repeat);
}

/* The median over other nodes' memory; 0 where there is none. Reports each node's. */
static double chase_nodes(struct probe *p)
{
	double t[NODES_MAX], ns = 1 / p->ticks_per_ns;
	u32 n = 0;

	for (u32 node = 0; node < p->map.nr_nodes && node < NODES_MAX; node++) {
		int cpu = probe_cpu_of_node(p, node);

		if (cpu < 0 || p->map.node[cpu] == p->map.node[p->from])
			continue;
		t[n] = time_chase(p, LEVEL_DRAM, (u32)cpu);
		probe_figure(p, "ns", t[n] * ns, "chase.node%u_ns", node);
		n++;
	}
	return n ? probe_median(t, n) : 0;
}

void probe_chase(struct probe *p)
{
	double ns = 1 / p->ticks_per_ns, t[5], remote, overlapped;

	for (int level = LEVEL_L2; level <= LEVEL_DRAM; level++) {
		t[level] = time_chase(p, (enum level)level, p->from);
		probe_figure(p, "ns", t[level] * ns, "chase.%s_ns", level_name[level]);
		probe_figure(p, "cycles", t[level], "chase.%s_cycles", level_name[level]);
	}
	probe_figure(p, "cycles", t[LEVEL_L2] - p->chase_l1, "model.l2_hit");
	/* The instruction itself, that a model charges beside. */
	probe_figure(p, "ns", (t[LEVEL_L3] - p->cpi) * ns, "model.l3_hit");
	probe_figure(p, "ns", (t[LEVEL_DRAM] - p->cpi) * ns, "model.dram_local");
	remote = chase_nodes(p);
	if (remote > 0) {
		probe_figure(p, "ns", remote * ns, "chase.remote_ns");
		probe_figure(p, "ns", (remote - p->cpi) * ns, "model.dram_remote");
	}
	overlapped = time_overlapped(p);
	probe_figure(p, "ns", overlapped * ns, "chase.dram_overlapped_ns");
	probe_figure(p, "misses", t[LEVEL_DRAM] / (overlapped - 3 * p->cpi), "model.misses");
}

/* --- stream --- */

enum stream_op {
	STREAM_LOAD,
	STREAM_STOS,
	STREAM_MOVS,
	STREAM_INSIDE,		/* loads behind a page's first lines, where prefetchers are under way */
	NR_STREAM_OPS
};

static const char *const op_name[] = { "load", "stosb", "movsb", "load_inside" };
#define INSIDE_FROM	256u	/* bytes */

struct stream {
	struct probe *p;
	struct arena *arena;
	enum level level;
	bool elsewhere;		/* prepared by another CPU than streams it */
};

static size_t stream_bytes(const struct probe *p, enum level level)
{
	size_t bytes, push;

	level_sizes(p, level, &bytes, &push);
	return (bytes < STREAM_BYTES ? bytes : STREAM_BYTES) & ~(size_t)(PAGE_BYTES - 1);
}

static void stream_prepare(void *arg)
{
	struct stream *s = arg;
	size_t bytes = stream_bytes(s->p, s->level);

	/* Written, so that the CPU that will read them has none of them left from the last time. */
	for (size_t i = 0; s->elsewhere && i < bytes; i += CACHE_LINE)
		*(volatile char *)(s->arena->base + i) = 1;
	sweep(s->arena->base, bytes);
	if (s->level != LEVEL_L1)
		push_out(s->p, s->arena, s->level);
}

static void stream_run(char *base, size_t bytes, enum stream_op op)
{
	char *to = base + bytes / 2;
	size_t n = op == STREAM_MOVS ? bytes / 2 : bytes;

	if (op == STREAM_LOAD)
		sweep(base, bytes);
	else if (op == STREAM_STOS)
		__asm__ volatile("rep stosb" : "+D"(base), "+c"(n) : "a"(0) : "memory");
	else
		__asm__ volatile("rep movsb" : "+D"(to), "+S"(base), "+c"(n) : : "memory");
}

/* Ticks of all lines but the first ones of each page. */
static double stream_inside(const struct probe *p, const char *base, size_t bytes)
{
	double ticks = 0;
	u64 begin;

	for (size_t off = 0; off < bytes; off += PAGE_BYTES) {
		sweep(base + off, INSIDE_FROM);
		begin = tsc_read();
		sweep(base + off + INSIDE_FROM, PAGE_BYTES - INSIDE_FROM);
		ticks += probe_since(p, begin);
	}
	return ticks * PAGE_BYTES / (PAGE_BYTES - INSIDE_FROM);
}

/* Ticks a line read, or written, or (movsb) read and another written. */
static double time_stream(struct probe *p, enum level level, enum stream_op op, u32 cpu)
{
	struct stream s = {
		.p = p, .arena = probe_arena(p, cpu), .level = level, .elsewhere = cpu != p->from
	};
	size_t bytes = stream_bytes(p, level);
	double t[REPEAT_MAX];
	u64 begin;

	for (u32 r = 0; r < p->repeat; r++) {
		if (s.elsewhere)
			probe_on(cpu, stream_prepare, &s);
		else
			stream_prepare(&s);
		begin = tsc_read();
		if (op == STREAM_INSIDE) {
			t[r] = stream_inside(p, s.arena->base, bytes);
		} else {
			stream_run(s.arena->base, bytes, op);
			t[r] = probe_since(p, begin);
		}
		t[r] /= (double)(bytes / CACHE_LINE);
		if (op == STREAM_MOVS)
			t[r] *= 2;
	}
	return probe_median(t, p->repeat);
}

static void stream_level(struct probe *p, enum level level, const char *name, u32 cpu)
{
	double ns = 1 / p->ticks_per_ns, t;

	for (int op = 0; op < NR_STREAM_OPS; op++) {
		t = time_stream(p, level, (enum stream_op)op, cpu);
		probe_figure(p, "ns", t * ns, "stream.%s.%s_ns", name, op_name[op]);
		if (level == LEVEL_L1 && op == STREAM_STOS)
			probe_figure(p, "cycles", t / CACHE_LINE, "model.rep_bytes");
		else if (level != LEVEL_L1 && op == STREAM_INSIDE)
			probe_figure(p, "ns", t * ns, "model.stream_%s", name);
	}
}

void probe_stream(struct probe *p)
{
	for (int level = LEVEL_L1; level <= LEVEL_DRAM; level++)
		stream_level(p, (enum level)level, level_name[level], p->from);
	for (u32 node = 0; node < p->map.nr_nodes; node++) {
		int cpu = probe_cpu_of_node(p, node);

		if (cpu < 0 || p->map.node[cpu] == p->map.node[p->from])
			continue;
		stream_level(p, LEVEL_DRAM, "remote", (u32)cpu);
		break;
	}
}

/* --- tlb --- */

#define SHARED_PAGES	16u	/* of memory, behind all pages that are loaded from */
#define TLB_LOADS	4096u

/*
 * Many pages, the same memory behind them every SHARED_PAGES, so that all lines that are loaded
 * stay in L1 and what loads take longer is the TLBs' doing.
 */
static char *tlb_map(u32 pages)
{
	size_t piece = SHARED_PAGES * PAGE_BYTES, bytes = (size_t)pages * PAGE_BYTES;
	char *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *first;

	if (at == MAP_FAILED)
		die_errno(EXIT_MISMATCH, "mmap of %u pages", pages);
	first = mmap(at, piece, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (first == MAP_FAILED)
		die_errno(EXIT_MISMATCH, "mmap");
	/* Of no length: another mapping of the same memory (mremap(2)). */
	for (size_t off = piece; off < bytes; off += piece)
		if (mremap(first, 0, piece, MREMAP_MAYMOVE | MREMAP_FIXED, at + off) != at + off)
			die_errno(EXIT_UNSUPPORTED, "mremap of a shared mapping");
	for (size_t off = 0; off < bytes; off += PAGE_BYTES)
		*(volatile u64 *)(at + off) = 0;
	return at;
}

/* `loads` loads, of a page each, every page of a power of two once in a fixed order that no prefetcher knows. */
static u64 tlb_loads(const char *at, u32 pages, u32 loads)
{
	u64 page = 0, mask = pages - 1;

	for (u32 i = 0; i < loads; i++) {
		u64 line = (page & (SHARED_PAGES - 1)) * 4 + (page / SHARED_PAGES & 3);

		page += *(volatile const u64 *)(at + page * PAGE_BYTES + line * CACHE_LINE);
		page = (page * 1664525 + 1013904223) & mask;
	}
	return page;
}

static double time_tlb(struct probe *p, const char *at, u32 pages)
{
	u32 loads = pages < TLB_LOADS ? TLB_LOADS : pages;
	double t[REPEAT_MAX];
	u64 begin;

	(void)tlb_loads(at, pages, loads);
	for (u32 r = 0; r < p->repeat; r++) {
		begin = tsc_read();
		(void)tlb_loads(at, pages, loads);
		t[r] = probe_since(p, begin) / loads;
	}
	return probe_median(t, p->repeat);
}

#define TLB_SIZES	11u	/* 16, 32, ... 16384 pages */

/*
 * Where the steps are. A footprint of just a TLB's size misses now and then, by what else needs an entry; so a TLB
 * reaches as far as most loads still hit.
 */
static void tlb_report(struct probe *p, const double *t, u32 sizes)
{
	u32 first = 0, second, i;
	double hit, walk = t[sizes - 1];

	/* A hit of the second level takes longer than 3 cycles more on any CPU. */
	while (first + 1 < sizes && t[first + 1] < 3)
		first++;
	if (first + 3 >= sizes) {
		roi_warning(&p->roi, "tlb: no step up to %u pages: --tlb-pages makes them more", 16u << (sizes - 1));
		return;
	}
	hit = t[first + 3];
	for (i = 0; i < sizes && t[i] < hit / 2; i++)
		first = i;
	for (second = first, i = first; i < sizes && t[i] < (hit + walk) / 2; i++)
		second = i;
	/* Not the largest: its page tables need not be in L1. */
	if (second + 2 < sizes)
		walk = t[second + 2];
	probe_figure(p, "pages", 16u << first, "tlb.reach_first");
	probe_figure(p, "cycles", hit, "model.l2_tlb_hit");
	if (walk < 1.3 * hit) {
		roi_warning(&p->roi, "tlb: no walks up to %u pages: --tlb-pages makes them more", 16u << (sizes - 1));
		return;
	}
	probe_figure(p, "pages", 16u << second, "tlb.reach_second");
	probe_figure(p, "cycles", walk, "tlb.walk_cycles");
}

void probe_tlb(struct probe *p)
{
	char *at = tlb_map(p->tlb_pages);
	double t[TLB_SIZES], base = 0;
	u32 n = 0;

	for (u32 pages = 16; pages <= p->tlb_pages; pages *= 2, n++) {
		t[n] = time_tlb(p, at, pages);
		probe_figure(p, "cycles", t[n], "tlb.%u_cycles", pages);
		if (!n)
			base = t[n];
		t[n] -= base;
	}
	munmap(at, (size_t)p->tlb_pages * PAGE_BYTES);
	tlb_report(p, t, n);
}
