// SPDX-License-Identifier: GPL-2.0-only
/*
 * fault-stress: page faults on many CPUs against everything that changes what
 * they look at: mmap, munmap, mprotect, mremap, fork, madvise, exit, migration,
 * huge pages, userfaultfd.
 *
 * Touchers, each on its CPU, go over their chunk of each region, write pages,
 * read them, give some back. Each word they write tells region, page and how
 * often the page was written, so a page that is lost, stale, or shows up in the wrong
 * place is seen; so are a page that should be zeros and is not, and the other way
 * round. The opponents (fault-stress-ops.c) look at what only they can know: that
 * read-only memory does not change, that fresh memory is empty, that a
 * child's memory is its own.
 *
 * The first thing that is wrong ends the program with status 1 and one line
 * that says where. Numbers drawn depend on --seed and thread only; who meets whom
 * depends on the machine (on the soft engine that, too, is the same each time).
 */
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fault-stress.h"
#include "lib/guest.h"
#include "lib/roi.h"

/* Far below where the kernel maps what it is free to place: holes that opponents make stay holes. */
#define AREA_BASE	0x100000000000ull
/* A toucher refused at one address for so long is stuck. */
#define REFUSED_MAX_NS	20000000000ull
/* On a slow machine a turn takes seconds, most of it waiting for the others: with a short pause nobody else gets far. */
#define PAUSE_MAX_US	2000000u
#define STACK_BYTES	(128u << 10)

struct toucher {
	struct stress *stress;
	u32 index, cpu;
	u64 rng;
	u64 round;
	u64 touches, verified, given_back;
	pthread_t thread;
};

/* The signal handler has nothing else to go by. Set once, before the threads. */
static struct stress *the_stress;

void stress_fail(const struct region *r, u32 page, const char *fmt, ...)
{
	char text[400];
	va_list ap;
	int n;

	n = snprintf(text, sizeof(text), "fault-stress: FAILED: %s, page %u: ", r ? r->op->name : "?", page);
	va_start(ap, fmt);
	n += vsnprintf(text + n, sizeof(text) - (size_t)n - 1, fmt, ap);
	va_end(ap);
	if (n > (int)sizeof(text) - 2)
		n = sizeof(text) - 2;
	text[n++] = '\n';
	if (write(STDERR_FILENO, text, (size_t)n) < 0)
		_exit(EXIT_UNSUPPORTED);
	_exit(EXIT_MISMATCH);
}

static struct region *region_of(struct stress *s, const char *address)
{
	for (u32 i = 0; i < s->nr_regions; i++) {
		struct region *r = &s->region[i];

		if (address >= r->base && address < r->base + (size_t)r->pages * PAGE_BYTES)
			return r;
	}
	return NULL;
}

/* An access that an opponent has forbidden for a moment is made again. Any other is a failure. */
static void on_signal(int sig, siginfo_t *info, void *context)
{
	static __thread char *last;
	static __thread u64 since;
	struct stress *s = the_stress;
	struct region *r = region_of(s, info->si_addr);
	u64 now = clock_ns();
	int saved = errno;

	if (sig != SIGSEGV || !r || !(r->op->flags & R_SEGV))
		stress_fail(r, r ? (u32)(((char *)info->si_addr - r->base) / PAGE_BYTES) : 0,
			    "signal %d, code %d at %p", sig, info->si_code, info->si_addr);
	if (last != info->si_addr) {
		last = info->si_addr;
		since = now;
	} else if (now - since > REFUSED_MAX_NS) {
		stress_fail(r, (u32)((last - r->base) / PAGE_BYTES), "refused for %llu s",
			    (unsigned long long)(REFUSED_MAX_NS / 1000000000));
	}
	atomic_fetch_add_explicit(&s->refused, 1, memory_order_relaxed);
	sched_yield();
	errno = saved;
}

/* --- touchers --- */

static bool word_allowed(const struct stress *s, const struct region *r, u32 page, u32 w, u64 value, u32 gen)
{
	u32 flags = r->op->flags;

	if (value == (gen ? pattern(s, KIND_TOUCHER, r, page, w, gen) : 0))
		return true;
	if (flags & R_ZERO && value == 0)
		return true;
	return flags & R_FILE && value == pattern(s, KIND_FILE, r, page, w, 0);
}

/* Does the page hold what it has to? Where it may have become zeros and has, that is what it has to hold from now on. */
static void verify_page(struct toucher *t, struct region *r, u32 page)
{
	struct stress *s = t->stress;
	u32 gen = r->gen[page], zeros = 0;

	for (u32 i = 0; i < NR_PROBES; i++) {
		u32 w = probe_word[i];
		u64 value = *page_word(r, page, w);

		if (!word_allowed(s, r, page, w, value, gen))
			stress_fail(r, page, "word %u is %016llx, expected %016llx (write %u)%s", w,
				    (unsigned long long)value,
				    (unsigned long long)(gen ? pattern(s, KIND_TOUCHER, r, page, w, gen) : 0), gen,
				    r->op->flags & R_ZERO ? " or 0" : "");
		zeros += value == 0;
	}
	if (zeros == NR_PROBES)
		r->gen[page] = 0;
	t->verified++;
}

/* What no one writes is zeros in any page. */
static void verify_rest(struct toucher *t, struct region *r, u32 page)
{
	struct stress *s = t->stress;

	for (u32 w = 1; w < WORDS - 1; w++) {
		u64 value = w == probe_word[1] ? 0 : *page_word(r, page, w);

		if (!value || (w == MARKED_WORD && r->op->flags & R_MARK &&
			       value == pattern(s, KIND_SERVED, r, page, w, 0)))
			continue;
		if (r->op->flags & R_FILE && value == pattern(s, KIND_FILE, r, page, w, 0))
			continue;
		stress_fail(r, page, "word %u is %016llx, but no one writes it", w, (unsigned long long)value);
	}
}

static void write_page(struct toucher *t, struct region *r, u32 page, u32 gen)
{
	for (u32 i = 0; i < NR_PROBES; i++)
		*page_word(r, page, probe_word[i]) =
			pattern(t->stress, KIND_TOUCHER, r, page, probe_word[i], gen);
	r->gen[page] = gen;
	t->touches++;
}

/* Pages [first, end) become zeros, by their toucher. */
static void give_back(struct toucher *t, struct region *r, u32 first, u32 end)
{
	char *p = r->base + (size_t)first * PAGE_BYTES;

	if (first == end)
		return;
	pthread_mutex_lock(&r->lock);
	/* ENOMEM: an opponent has made a hole; what was in it is elsewhere, for a moment. */
	while (madvise(p, (size_t)(end - first) * PAGE_BYTES, MADV_DONTNEED)) {
		if (errno != ENOMEM || !(r->op->flags & R_SEGV))
			stress_fail(r, first, "madvise: %s", strerror(errno));
		sched_yield();
	}
	pthread_mutex_unlock(&r->lock);
	for (u32 i = first; i < end; i++)
		r->gen[i] = 0;
	t->given_back += end - first;
}

/* A toucher's way over its chunk of one region. */
static void touch_region(struct toucher *t, struct region *r)
{
	struct stress *s = t->stress;
	u32 first = r->pages * t->index / s->touchers, end = r->pages * (t->index + 1) / s->touchers;
	u32 used = (first + r->step - 1) / r->step * r->step, gen = (u32)t->round, a, b;

	for (u32 page = used; page < end; page += r->step) {
		u32 what = rng_below(&t->rng, 8);

		/* Written without a look, read and then written, or only read. */
		if (what >= 2)
			verify_page(t, r, page);
		if (what < 7)
			write_page(t, r, page, gen);
		/* Faults all the time, not only after an opponent's work. */
		if (what & 1) {
			give_back(t, r, page, page + 1);
			write_page(t, r, page, gen);
		}
	}
	for (u32 page = used; page < end; page += r->step)
		verify_page(t, r, page);
	for (u32 i = 0; i < 2 && first < end; i++)
		verify_rest(t, r, first + rng_below(&t->rng, end - first));
	a = first + rng_below(&t->rng, end - first + 1);
	b = first + rng_below(&t->rng, end - first + 1);
	give_back(t, r, a < b ? a : b, a < b ? b : a);
}

static bool opponents_done(struct stress *s)
{
	for (u32 i = 0; i < s->nr_regions; i++)
		if (s->region[i].op->run && s->region[i].cycles < s->min_cycles)
			return false;
	return true;
}

static void *toucher_main(void *arg)
{
	struct toucher *t = arg;
	struct stress *s = t->stress;
	u64 until = clock_ns() + s->duration_ns;

	errno = -cpu_bind(t->cpu);
	if (errno)
		die_errno(EXIT_USAGE, "toucher %u cannot be bound to CPU %u", t->index, t->cpu);
	do {
		t->round++;
		for (u32 i = 0; i < s->nr_regions; i++)
			touch_region(t, &s->region[i]);
	} while (s->rounds ? t->round < s->rounds || !opponents_done(s) :
			     clock_ns() < until || !opponents_done(s));
	return NULL;
}

static void *opponent_main(void *arg)
{
	struct region *r = arg;
	struct stress *s = r->stress;
	u64 rng = (s->seed << 8 | r->index) * 0x9e3779b97f4a7c15ull | 1;

	while (!s->stop) {
		u64 begin = clock_ns(), pause;

		r->op->run(s, r, &rng);
		r->cycles++;
		/* The touchers get on, and are at work when it strikes again. */
		pause = (clock_ns() - begin) / 1000 * 2;
		usleep(rng_below(&rng, 200 + (pause > PAUSE_MAX_US ? PAUSE_MAX_US : (u32)pause)));
	}
	return NULL;
}

/* --- set-up --- */

static void make_region(struct stress *s, const struct opponent *op, char **at)
{
	struct region *r = &s->region[s->nr_regions];
	bool alone = op->flags & R_ALONE;
	size_t bytes;

	r->op = op;
	r->stress = s;
	r->index = s->nr_regions++;
	r->pages = alone ? HUGE_PAGES : s->pages;
	r->step = alone ? s->spread : 1;
	r->fd = -1;
	bytes = (size_t)r->pages * PAGE_BYTES;
	if (alone)
		*at = (char *)(((uintptr_t)*at + HUGE_BYTES - 1) & ~(uintptr_t)(HUGE_BYTES - 1));
	r->base = *at;
	*at += alone ? HUGE_BYTES : bytes;
	r->elsewhere = r->base + (1ull << 36);
	if (mmap(r->base, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) !=
	    r->base)
		die_errno(EXIT_MISMATCH, "mmap of %s at %p", op->name, (void *)r->base);
	pthread_mutex_init(&r->lock, NULL);
	r->gen = calloc(r->pages, sizeof(*r->gen));
	if (!r->gen)
		die(EXIT_MISMATCH, "no memory");
}

/* Names separated by commas; NULL: all. */
static bool listed(const char *list, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = list; p; p = strchr(p, ',')) {
		p += *p == ',';
		if (!strncmp(p, name, n) && (p[n] == ',' || !p[n]))
			return true;
	}
	return !list;
}

static void check_list(const char *list)
{
	char *copy = strdup(list), *save = NULL;

	for (char *p = strtok_r(copy, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
		u32 i;

		for (i = 0; i < nr_opponents && strcmp(p, opponents[i].name); i++)
			;
		if (i == nr_opponents)
			die(EXIT_USAGE, "there is no opponent \"%s\"; --help lists them", p);
	}
	free(copy);
}

/* First those that share page tables, in an order that puts different ones side by side, then the others. */
static void make_regions(struct stress *s, const char *list)
{
	char *at = (char *)AREA_BASE;

	for (u32 alone = 0; alone < 2; alone++)
		for (u32 i = 0; i < nr_opponents; i++)
			if (!(opponents[i].flags & R_ALONE) == !alone && listed(list, opponents[i].name))
				make_region(s, &opponents[i], &at);
	for (u32 i = 0; i < s->nr_regions; i++) {
		struct region *r = &s->region[i];
		const char *why = r->op->skip ? r->op->skip(s, r) : NULL;

		if (why) {
			static const struct opponent quiet = { .name = "quiet" };

			printf("fault-stress: no %s: %s\n", r->op->name, why);
			r->op = &quiet;
		}
	}
}

static void install_handler(void)
{
	struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };

	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGBUS, &sa, NULL);
}

static void run(struct stress *s, struct toucher *toucher)
{
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	for (u32 i = 0; i < s->nr_regions; i++)
		if (s->region[i].op->run) {
			errno = pthread_create(&s->region[i].thread, &attr, opponent_main, &s->region[i]);
			if (errno)
				die_errno(EXIT_MISMATCH, "thread");
		}
	for (u32 i = 0; i < s->touchers; i++) {
		errno = pthread_create(&toucher[i].thread, &attr, toucher_main, &toucher[i]);
		if (errno)
			die_errno(EXIT_MISMATCH, "thread");
	}
	for (u32 i = 0; i < s->touchers; i++) {
		pthread_join(toucher[i].thread, NULL);
		s->touches += toucher[i].touches;
		s->verified += toucher[i].verified;
		s->given_back += toucher[i].given_back;
	}
	s->stop = 1;
	for (u32 i = 0; i < s->nr_regions; i++)
		if (s->region[i].op->run)
			pthread_join(s->region[i].thread, NULL);
}

static void report(struct stress *s, const struct roi *roi)
{
	roi_report(roi, "touches", s->touches, "pages");
	roi_report(roi, "verified", s->verified, "pages");
	roi_report(roi, "given_back", s->given_back, "pages");
	roi_report(roi, "refused", s->refused, "accesses");
	printf("fault-stress: %u touchers, seed %llu: %llu writes, %llu checks, %llu given back, %llu accesses refused\n",
	       s->touchers, (unsigned long long)s->seed, (unsigned long long)s->touches,
	       (unsigned long long)s->verified, (unsigned long long)s->given_back, (unsigned long long)s->refused);
	for (u32 i = 0; i < s->nr_regions; i++) {
		struct region *r = &s->region[i];
		char name[40];

		if (!r->op->run)
			continue;
		snprintf(name, sizeof(name), "cycles.%s", r->op->name);
		roi_report(roi, name, r->cycles, "cycles");
		printf("  %-10s %6llu times, %8llu %s\n", r->op->name, (unsigned long long)r->cycles,
		       (unsigned long long)r->work, r->op->what);
	}
	puts("FAULT-STRESS OK");
}

static void usage(int status) __attribute__((noreturn));

static void usage(int status)
{
	FILE *f = status ? stderr : stdout;

	fprintf(f, "usage: fault-stress [--touchers N] [--rounds N | --duration TIME] [--with LIST]\n"
		   "                    [--pages N] [--spread N] [--cycles N] [--seed N]\n"
		   "Page faults on many CPUs against what changes address spaces; every page is checked.\n"
		   "  --touchers N     threads that fault, thread i on CPU i (half of the CPUs)\n"
		   "  --rounds N       of each toucher over all regions; default: --duration\n"
		   "  --duration TIME  FAULTBED_DURATION_NS (200ms)\n"
		   "  --cycles N       no end before each opponent had so many turns (3)\n"
		   "  --pages N        of a region that shares its page table (96)\n"
		   "  --spread N       use one page in N of the other regions, 512 pages each (1)\n"
		   "  --seed N         FAULTBED_SEED (1)\n"
		   "  --with LIST      these opponents only, as mremap,fork; default: all\n");
	for (u32 i = 0; i < nr_opponents; i++)
		fprintf(f, "      %-10s (%s)\n", opponents[i].name, opponents[i].what);
	exit(status);
}

static const char *parse_args(struct stress *s, int argc, char **argv)
{
	static const struct option options[] = {
		{ "touchers", required_argument, NULL, 't' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "duration", required_argument, NULL, 'd' },
		{ "cycles", required_argument, NULL, 'c' },
		{ "pages", required_argument, NULL, 'p' },
		{ "spread", required_argument, NULL, 'S' },
		{ "seed", required_argument, NULL, 's' },
		{ "with", required_argument, NULL, 'w' },
		{ "victim", required_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	const char *list = NULL;
	u32 victim = 0;
	u64 n;
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == 't' && parse_u64(optarg, 1, CPU_MAX, &n))
			s->touchers = (u32)n;
		else if (c == 'r' && parse_u64(optarg, 1, UINT32_MAX, &n))
			s->rounds = n;
		else if (c == 'd' && parse_time(optarg, &n))
			s->duration_ns = n;
		else if (c == 'c' && parse_u64(optarg, 0, UINT32_MAX, &n))
			s->min_cycles = n;
		else if (c == 'p' && parse_u64(optarg, 1, HUGE_PAGES, &n))
			s->pages = (u32)n;
		else if (c == 'S' && parse_u64(optarg, 1, HUGE_PAGES, &n))
			s->spread = (u32)n;
		else if (c == 's' && parse_u64(optarg, 0, UINT64_MAX, &n))
			s->seed = n;
		else if (c == 'w')
			list = optarg;
		else if (c == 'v' && parse_u64(optarg, 1, 64, &n))
			victim = (u32)n;
		else
			usage(c == 'h' ? EXIT_OK : EXIT_USAGE);
	}
	if (optind != argc)
		usage(EXIT_USAGE);
	if (list)
		check_list(list);
	guest_only();
	if (victim)
		victim_main(victim, s->seed);
	return list;
}

int main(int argc, char **argv)
{
	static struct stress s;
	struct cpu_map *map = calloc(1, sizeof(*map));
	struct toucher *toucher;
	struct roi roi;
	const char *list;
	u32 cpu = 0;

	if (!map || cpu_map_read(map))
		die(EXIT_MISMATCH, "/sys has no CPUs");
	s.duration_ns = env_time("FAULTBED_DURATION_NS", 200000000);
	s.seed = env_u64("FAULTBED_SEED", 1);
	s.pages = 96;
	s.spread = 1;
	s.min_cycles = 3;
	s.touchers = (cpu_mask_count(&map->online) + 1) / 2;
	list = parse_args(&s, argc, argv);
	toucher = calloc(s.touchers, sizeof(*toucher));
	if (!toucher)
		die(EXIT_MISMATCH, "no memory");
	if (s.touchers > cpu_mask_count(&map->online))
		die(EXIT_USAGE, "%u touchers want a CPU each, but this guest has %u", s.touchers,
		    cpu_mask_count(&map->online));
	for (u32 i = 0; i < s.touchers; i++, cpu++) {
		while (!cpu_mask_test(&map->online, cpu))
			cpu++;
		toucher[i] = (struct toucher){ .stress = &s, .index = i, .cpu = cpu };
		toucher[i].rng = (s.seed << 16 | (i + 1)) * 0x9e3779b97f4a7c15ull | 1;
	}
	free(map);
	the_stress = &s;
	make_regions(&s, list);
	install_handler();
	roi_init(&roi);
	roi_begin(&roi);
	run(&s, toucher);
	roi_end(&roi);
	roi_send_counters(&roi);
	report(&s, &roi);
	return EXIT_OK;
}
