// SPDX-License-Identifier: GPL-2.0-only
/*
 * memory-probe's parts that need no memory but a line: instructions, locked ones, fences, PAUSE, both
 * threads of a core at once, and page faults of one thread.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

#include "memory-probe.h"

/* One line, so that nothing else shares it. */
struct own_line {
	u64 word[CACHE_LINE / 8];
} __attribute__((aligned(CACHE_LINE)));

typedef void (*loop_fn)(u64 *line, u64 n);

/*
 * Instructions of each loop's body, and as often as that the thing that is measured. The bodies are
 * written out, since a compiler would choose other instructions for guest and host.
 */
#define LOOP(name, body)                                                                       \
	static void name(u64 *line, u64 n)                                                     \
	{                                                                                      \
		u64 a = 0, b = 1;                                                              \
		__asm__ volatile("1:\n" body "dec %[n]\n jnz 1b"                               \
				 : [n] "+r"(n), "+a"(a), "+d"(b), [m] "+r"(line)               \
				 :                                                             \
				 : "memory", "cc", "rcx");                                     \
	}
#define TIMES8(x)	x x x x x x x x

/*
 * What code without misses is like: a pointer that is followed, a value beside it that is added up and
 * written back. Eight instructions with the loop's two.
 */
#define PLAIN_INSTRUCTIONS	8
LOOP(loop_plain, "mov (%[m]),%%rcx\n mov 8(%%rcx),%%rax\n add %%rax,%%rdx\n xor %%rdx,%%rax\n"
		 "mov %%rax,16(%%rcx)\n mov %%rcx,%[m]\n")
LOOP(loop_chain, TIMES8("add %%rdx,%%rax\n"))
LOOP(loop_add, TIMES8("addq $1,8(%[m])\n"))
LOOP(loop_lock, TIMES8("lock addq $1,8(%[m])\n"))
LOOP(loop_mfence, TIMES8("mfence\n"))
LOOP(loop_pause, TIMES8("pause\n"))
/* The two sides of the ping-pong (memory-probe-line.c) in turn by one thread: what a turn takes if the line stays. */
LOOP(loop_cas, "xor %%eax,%%eax\n mov $1,%%edx\n lock cmpxchg %%rdx,8(%[m])\n jne 2f\n"
	       "mov $1,%%eax\n xor %%edx,%%edx\n lock cmpxchg %%rdx,8(%[m])\n 2:\n")

/* Ticks of one of the `per` things that a round of the loop does. */
static double time_loop(struct probe *p, loop_fn fn, u32 per)
{
	struct own_line line = { { 0 } };
	u64 n = p->rounds / 4 + 4, begin;
	double t[REPEAT_MAX];

	line.word[0] = (u64)(uintptr_t)&line;
	fn(line.word, 8);
	for (u32 r = 0; r < p->repeat; r++) {
		begin = tsc_read();
		fn(line.word, n);
		t[r] = probe_since(p, begin) / (double)(n * per);
	}
	return probe_median(t, p->repeat);
}

void probe_basics(struct probe *p)
{
	struct arena *a = probe_arena(p, p->from);
	u32 nr = (u32)(p->l1 / 2 / CACHE_LINE) & ~15u;
	void **at = chain_make(a->base, p->l1 / 2, nr);
	double t[REPEAT_MAX];
	u64 begin;

	p->cpi = time_loop(p, loop_plain, PLAIN_INSTRUCTIONS);
	p->cas = time_loop(p, loop_cas, 2);
	at = chain_follow(at, nr);
	for (u32 r = 0; r < p->repeat; r++) {
		begin = tsc_read();
		at = chain_follow(at, nr);
		t[r] = probe_since(p, begin) / nr;
	}
	p->chase_l1 = probe_median(t, p->repeat);
	probe_figure(p, "cycles", p->cpi, "plain_cycles");
	probe_figure(p, "cycles", p->chase_l1, "chase.l1_cycles");
	probe_figure(p, "cycles", p->cas, "cas_cycles");
	probe_figure(p, "cycles", p->cpi, "model.cpi");
}

/* --- both threads of a core --- */

struct sibling {
	u32 running, stop;	/* (a) */
};

static void sibling_main(void *arg)
{
	struct own_line line = { { 0 } };
	struct sibling *s = arg;

	line.word[0] = (u64)(uintptr_t)&line;
	__atomic_store_n(&s->running, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&s->stop, __ATOMIC_ACQUIRE))
		loop_plain(line.word, 64);
}

static void probe_smt(struct probe *p)
{
	struct sibling s = { 0 };
	struct probe_thread t;
	double alone, both;
	u32 pair[1][2];

	if (!probe_pairs(p, CPU_SMT, pair, 1))
		return;
	probe_bind(pair[0][0]);
	alone = time_loop(p, loop_plain, PLAIN_INSTRUCTIONS);
	probe_start(&t, pair[0][1], sibling_main, &s);
	while (!__atomic_load_n(&s.running, __ATOMIC_ACQUIRE))
		__builtin_ia32_pause();
	both = time_loop(p, loop_plain, PLAIN_INSTRUCTIONS);
	__atomic_store_n(&s.stop, 1, __ATOMIC_RELEASE);
	probe_join(&t);
	probe_bind(p->from);
	p->smt = both / alone;
	probe_figure(p, "cycles", both, "plain_beside_sibling_cycles");
	probe_figure(p, "ratio", p->smt, "model.smt_slowdown");
}

void probe_atomic(struct probe *p)
{
	double add = time_loop(p, loop_add, 8), lock = time_loop(p, loop_lock, 8);
	double fence = time_loop(p, loop_mfence, 8), pause = time_loop(p, loop_pause, 8);

	probe_figure(p, "cycles", time_loop(p, loop_chain, 8), "chain_cycles");
	probe_figure(p, "cycles", add, "add_cycles");
	probe_figure(p, "cycles", lock, "lock_add_cycles");
	probe_figure(p, "cycles", fence, "mfence_cycles");
	probe_figure(p, "cycles", pause, "pause_cycles");
	/* The loop's two instructions are an eighth of two for each. */
	probe_figure(p, "cycles", lock - add, "model.lock");
	probe_figure(p, "cycles", fence - p->cpi * 1.25, "model.fence");
	probe_figure(p, "cycles", pause - p->cpi * 1.25, "model.pause");
	probe_smt(p);
}

/* --- page faults --- */

#define FAULT_PAGES	512u

void probe_fault(struct probe *p)
{
	u32 rounds = p->rounds * 4 / FAULT_PAGES + 3;
	size_t bytes = (size_t)FAULT_PAGES * PAGE_BYTES;
	double touch[REPEAT_MAX], zap[REPEAT_MAX];
	char *map;
	u64 begin;

	if (rounds > REPEAT_MAX)
		rounds = REPEAT_MAX;
	map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		die_errno(EXIT_MISMATCH, "mmap of %zu bytes", bytes);
	/* EINVAL: a kernel without huge pages. */
	if (madvise(map, bytes, MADV_NOHUGEPAGE) && errno != EINVAL)
		die_errno(EXIT_MISMATCH, "madvise");
	for (u32 r = 0; r < rounds; r++) {
		begin = tsc_read();
		for (u32 i = 0; i < FAULT_PAGES; i++)
			*(volatile char *)(map + (size_t)i * PAGE_BYTES) = 1;
		touch[r] = probe_since(p, begin);
		begin = tsc_read();
		if (madvise(map, bytes, MADV_DONTNEED))
			die_errno(EXIT_MISMATCH, "madvise");
		zap[r] = probe_since(p, begin);
	}
	munmap(map, bytes);
	/* The first round allocates page tables. */
	touch[0] = touch[1];
	zap[0] = zap[1];
	probe_figure(p, "ns", probe_median(touch, rounds) / FAULT_PAGES / p->ticks_per_ns, "fault_ns");
	probe_figure(p, "cycles", probe_median(touch, rounds) / FAULT_PAGES, "fault_cycles");
	probe_figure(p, "ns", probe_median(zap, rounds) / FAULT_PAGES / p->ticks_per_ns, "zap_page_ns");
}
