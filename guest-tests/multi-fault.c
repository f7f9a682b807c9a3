// SPDX-License-Identifier: GPL-2.0-only
/*
 * multi-fault N [--zap own|first]: N threads, thread i bound to CPU i, fault in
 * pages as fast as they can. After the two variants of a micro-benchmark that
 * KAMEZAWA Hiroyuki published on linux-kernel in January 2010.
 *
 * A round of a thread is one write to each of the first 512 pages (2 MiB) of
 * its own 8 MiB, and giving them back with MADV_DONTNEED.
 *
 *   own    a mapping for each thread; each thread gives back its own pages and
 *          goes on; one barrier, at the start
 *   first  one mapping of N x 8 MiB; barrier, pass, barrier, then the first
 *          thread gives back every slice in turn, and a third barrier
 *
 * The measured region: all threads abandon their warm-up round, give their
 * pages back and wait at a barrier; the first thread writes the begin mark and
 * lets them go. From then on every fault counts. Once the duration is over no
 * thread begins another round, and the end mark is written when the last
 * counted round is complete (own: by the thread that finishes last; first: by
 * the first thread after giving the pages back). So the marks bracket whole
 * rounds only, the guest's fault counter between them is `faults` plus what a
 * few wake-ups cost, and faults_per_s is faults over the time between marks.
 *
 * With --rounds N each thread does exactly N rounds, however long they take.
 *
 * A machine too slow to finish a round in the grace time after the duration
 * stops in mid-round: then `faults` still is every page touched between the
 * marks, `partial` is 1 and a warning says so.
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "lib/barrier.h"
#include "lib/cpu.h"
#include "lib/roi.h"
#include "lib/util.h"

#define SLICE_BYTES	(8u << 20)
#define PAGES_DEFAULT	512u
#define PAGES_MAX	(SLICE_BYTES / PAGE_BYTES)
#define FEW_ROUNDS	10
/* A round in progress may take as long again as the duration, but at least this. */
#define GRACE_MIN_NS	1000000000ull
#define STACK_BYTES	(64u << 10)

enum zap {
	ZAP_OWN,
	ZAP_FIRST,
};

struct load;

/* One thread; its counts are its own until it is joined. */
struct worker {
	pthread_t thread;
	struct load *load;
	u32 index, cpu;
	char *pages;		/* its slice */
	u64 rounds;		/* whole ones between the marks */
	u64 faults;		/* pages touched between the marks */
	u64 end_ns;		/* end of its last counted round */
} __attribute__((aligned(CACHE_LINE)));

struct load {
	u32 nr;
	enum zap zap;
	u32 pages;		/* a round of one thread */
	u64 warmup_ns, duration_ns, grace_ns;
	u64 rounds;		/* of each thread; 0 = until the duration is over */
	char *map;		/* first: the one mapping */
	struct worker *worker;
	struct roi roi;
	struct barrier barrier;	/* the threads */
	struct barrier gate;	/* the threads and main */
	u64 deadline_ns;	/* no round begins after it */
	pthread_mutex_t lock;
	pthread_cond_t ended;
	bool over;		/* under lock: the last counted round is complete */

	/* Read by every thread at every page, written twice: a line of its own. */
	u32 stop __attribute__((aligned(CACHE_LINE)));	/* (a) abandon the round now */
	u32 last __attribute__((aligned(CACHE_LINE)));	/* first: this round was the last one */
	u64 zap_ns;		/* first: what giving back took between the marks, the others waiting */
	u32 finished;		/* (a) own: threads that have ended */
};

static bool stopped(const struct load *l)
{
	return __atomic_load_n(&l->stop, __ATOMIC_RELAXED);
}

static void set_stop(struct load *l, u32 value)
{
	__atomic_store_n(&l->stop, value, __ATOMIC_RELAXED);
}

/* One write to each page. Pages touched: fewer than l->pages if stopped. */
static u32 touch(const struct load *l, char *pages)
{
	u32 i;

	for (i = 0; i < l->pages && !stopped(l); i++)
		*(volatile char *)(pages + (size_t)i * PAGE_BYTES) = 1;
	return i;
}

static void give_back(const struct load *l, char *pages)
{
	if (madvise(pages, (size_t)l->pages * PAGE_BYTES, MADV_DONTNEED))
		die_errno(EXIT_MISMATCH, "madvise");
}

static char *map_slices(size_t bytes)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die_errno(EXIT_MISMATCH, "mmap of %zu bytes", bytes);
	/* EINVAL: a kernel without huge pages. */
	if (madvise(p, bytes, MADV_NOHUGEPAGE) && errno != EINVAL)
		die_errno(EXIT_MISMATCH, "madvise");
	return p;
}

/* The end mark, and main need not stop anything any more. */
static void end_region(struct load *l)
{
	roi_end(&l->roi);
	pthread_mutex_lock(&l->lock);
	l->over = true;
	pthread_cond_signal(&l->ended);
	pthread_mutex_unlock(&l->lock);
}

/* Is this thread's last round done? */
static bool finished(const struct worker *w)
{
	const struct load *l = w->load;

	return l->rounds ? w->rounds >= l->rounds : clock_ns() >= l->deadline_ns;
}

/* own: rounds until the deadline. A thread that was stopped leaves its last round unfinished. */
static void rounds_own(struct worker *w)
{
	struct load *l = w->load;
	u32 n;

	do {
		n = touch(l, w->pages);
		w->faults += n;
		if (n < l->pages)
			break;
		give_back(l, w->pages);
		w->rounds++;
	} while (!finished(w));
	w->end_ns = clock_ns();
	if (__atomic_add_fetch(&l->finished, 1, __ATOMIC_ACQ_REL) == l->nr)
		end_region(l);
}

/* The first thread's part between the second and third barrier. */
static void give_back_all(struct load *l)
{
	for (u32 i = 0; i < l->nr; i++)
		give_back(l, l->worker[i].pages);
}

static void rounds_first(struct worker *w)
{
	struct load *l = w->load;
	u32 n;

	do {
		barrier_wait(&l->barrier);
		n = touch(l, w->pages);
		w->faults += n;
		if (n == l->pages)
			w->rounds++;
		w->end_ns = clock_ns();
		barrier_wait(&l->barrier);
		if (w->index == 0) {
			l->zap_ns -= clock_ns();
			give_back_all(l);
			l->zap_ns += clock_ns();
			l->last = stopped(l) || finished(w);
			if (l->last)
				end_region(l);
		}
		barrier_wait(&l->barrier);
	} while (!l->last);
}

/* Rounds of the load's own shape until main says stop; nothing counts. */
static void warm_up(struct worker *w)
{
	struct load *l = w->load;

	if (l->zap == ZAP_OWN) {
		while (!stopped(l))
			if (touch(l, w->pages) == l->pages)
				give_back(l, w->pages);
	} else {
		do {
			barrier_wait(&l->barrier);
			touch(l, w->pages);
			barrier_wait(&l->barrier);
			if (w->index == 0) {
				give_back_all(l);
				l->last = stopped(l);
			}
			barrier_wait(&l->barrier);
		} while (!l->last);
	}
	give_back(l, w->pages);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	struct load *l = w->load;
	int ret = cpu_bind(w->cpu);

	if (ret) {
		errno = -ret;
		die_errno(EXIT_USAGE, "thread %u cannot be bound to CPU %u", w->index, w->cpu);
	}
	if (l->zap == ZAP_OWN)
		w->pages = map_slices(SLICE_BYTES);
	barrier_wait(&l->gate);
	warm_up(w);
	barrier_wait(&l->barrier);
	if (w->index == 0) {
		l->last = 0;
		set_stop(l, 0);
		roi_begin(&l->roi);
		l->deadline_ns = l->roi.begin_ns + l->duration_ns;
	}
	barrier_wait(&l->gate);
	if (l->zap == ZAP_OWN)
		rounds_own(w);
	else
		rounds_first(w);
	return NULL;
}

static void start_threads(struct load *l)
{
	pthread_attr_t attr;
	int ret;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	for (u32 i = 0; i < l->nr; i++) {
		l->worker[i].load = l;
		l->worker[i].index = i;
		if (l->zap == ZAP_FIRST)
			l->worker[i].pages = l->map + (size_t)i * SLICE_BYTES;
		ret = pthread_create(&l->worker[i].thread, &attr, worker_main, &l->worker[i]);
		if (ret) {
			errno = ret;
			die_errno(EXIT_MISMATCH, "thread %u of %u", i, l->nr);
		}
	}
	pthread_attr_destroy(&attr);
}

/* Start the threads and time the phases, asleep in between. */
static void run(struct load *l)
{
	pthread_condattr_t attr;
	struct timespec ts;
	u64 limit;

	pthread_mutex_init(&l->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&l->ended, &attr);
	pthread_condattr_destroy(&attr);
	barrier_init(&l->barrier, l->nr);
	barrier_init(&l->gate, l->nr + 1);
	start_threads(l);

	barrier_wait(&l->gate);		/* all bound and mapped: warm-up */
	sleep_until(clock_ns() + l->warmup_ns);
	set_stop(l, 1);
	barrier_wait(&l->gate);		/* the region has begun */
	limit = l->deadline_ns + l->grace_ns;
	ts.tv_sec = (time_t)(limit / 1000000000u);
	ts.tv_nsec = (long)(limit % 1000000000u);
	pthread_mutex_lock(&l->lock);
	while (!l->over)
		if (l->rounds)
			pthread_cond_wait(&l->ended, &l->lock);
		else if (pthread_cond_timedwait(&l->ended, &l->lock, &ts) == ETIMEDOUT)
			break;
	pthread_mutex_unlock(&l->lock);
	set_stop(l, 1);
	for (u32 i = 0; i < l->nr; i++)
		pthread_join(l->worker[i].thread, NULL);
}

static void report(struct load *l)
{
	u64 faults = 0, total = 0, fewest = UINT64_MAX, ns = roi_ns(&l->roi);
	u64 whole;
	double by_thread = 0;
	bool partial;

	for (u32 i = 0; i < l->nr; i++) {
		struct worker *w = &l->worker[i];
		u64 own_ns = w->end_ns - l->roi.begin_ns;

		faults += w->faults;
		total += w->rounds;
		if (w->rounds < fewest)
			fewest = w->rounds;
		if (own_ns)
			by_thread += (double)w->faults * 1e9 / (double)own_ns;
	}
	whole = total * l->pages;
	partial = faults != whole;
	roi_send_counters(&l->roi);
	roi_report(&l->roi, "threads", l->nr, "threads");
	roi_report(&l->roi, "rounds", fewest, "rounds");
	roi_report(&l->roi, "thread_rounds", total, "rounds");
	roi_report(&l->roi, "faults", faults, "faults");
	roi_report(&l->roi, "partial", partial, "bool");
	roi_report_f(&l->roi, "faults_per_s", (double)faults * 1e9 / (double)ns, "faults/s");
	if (l->zap == ZAP_OWN)
		roi_report_f(&l->roi, "faults_per_s_by_thread", by_thread, "faults/s");
	else
		roi_report(&l->roi, "zap_ns", l->zap_ns, "ns");
	if (partial)
		roi_warning(
			&l->roi,
			"the figure is from partial rounds: stopped in mid-round, %llu of %llu faults are of"
			" whole rounds",
			(unsigned long long)whole, (unsigned long long)faults);
	else if (fewest < FEW_ROUNDS)
		roi_warning(
			&l->roi,
			"only %llu whole rounds, fewer than %d: a longer run.duration gives a steadier rate",
			(unsigned long long)fewest, FEW_ROUNDS);
	printf("multi-fault: zap=%s threads=%u rounds=%llu faults=%llu seconds=%.6f faults_per_s=%.0f%s\n",
	       l->zap == ZAP_OWN ? "own" : "first", l->nr, (unsigned long long)fewest,
	       (unsigned long long)faults, (double)ns / 1e9, (double)faults * 1e9 / (double)ns,
	       partial ? " (partial rounds)" : "");
}

static void usage(int status) __attribute__((noreturn));

static void usage(int status)
{
	fprintf(status ? stderr : stdout,
		"usage: multi-fault THREADS [--zap own|first] [--warmup TIME] [--duration TIME]\n"
		"                   [--rounds N] [--pages N] [--cpus LIST]\n"
		"Each thread, bound to its CPU, faults in N (512) pages and gives them back, again and again.\n"
		"  --zap own     each thread gives back its own pages (default)\n"
		"  --zap first   the first thread gives back all, between barriers\n"
		"  --warmup, --duration   default: FAULTBED_WARMUP_NS (50ms), FAULTBED_DURATION_NS (200ms)\n"
		"  --rounds N    exactly so many of each thread, however long they take\n"
		"  --cpus LIST   CPU of each thread in turn, as 0,2,4; default: thread i on CPU i\n");
	exit(status);
}

/* --cpus: numbers separated by commas, one for each thread, in the given order. */
static void parse_cpus(struct load *l, char *list)
{
	char *save = NULL;
	u32 n = 0;
	u64 cpu;

	for (char *p = strtok_r(list, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
		if (!parse_u64(p, 0, CPU_MAX - 1, &cpu))
			die(EXIT_USAGE, "--cpus: %s is not a CPU number", p);
		if (n == l->nr)
			die(EXIT_USAGE, "--cpus: more CPUs than the %u threads", l->nr);
		l->worker[n++].cpu = (u32)cpu;
	}
	if (n < l->nr)
		die(EXIT_USAGE, "--cpus: %u CPUs for %u threads", n, l->nr);
}

static void parse_args(struct load *l, int argc, char **argv)
{
	static const struct option options[] = {
		{ "zap", required_argument, NULL, 'z' },
		{ "warmup", required_argument, NULL, 'w' },
		{ "duration", required_argument, NULL, 'd' },
		{ "pages", required_argument, NULL, 'p' },
		{ "cpus", required_argument, NULL, 'c' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	char *cpus = NULL;
	u64 n;
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == 'z' && !strcmp(optarg, "own"))
			l->zap = ZAP_OWN;
		else if (c == 'z' && !strcmp(optarg, "first"))
			l->zap = ZAP_FIRST;
		else if (c == 'w' && parse_time(optarg, &l->warmup_ns))
			continue;
		else if (c == 'd' && parse_time(optarg, &l->duration_ns) && l->duration_ns)
			continue;
		else if (c == 'p' && parse_u64(optarg, 1, PAGES_MAX, &n))
			l->pages = (u32)n;
		else if (c == 'r' && parse_u64(optarg, 1, UINT32_MAX, &n))
			l->rounds = n;
		else if (c == 'c')
			cpus = optarg;
		else if (c == 'h')
			usage(EXIT_OK);
		else
			usage(EXIT_USAGE);
	}
	if (optind != argc - 1 || !parse_u64(argv[optind], 1, CPU_MAX, &n))
		usage(EXIT_USAGE);
	l->nr = (u32)n;
	l->worker = aligned_alloc(CACHE_LINE, l->nr * sizeof(*l->worker));
	if (!l->worker)
		die(EXIT_MISMATCH, "no memory for %u threads", l->nr);
	memset(l->worker, 0, l->nr * sizeof(*l->worker));
	for (u32 i = 0; i < l->nr; i++)
		l->worker[i].cpu = i;
	if (cpus)
		parse_cpus(l, cpus);
}

static void check_cpus(const struct load *l)
{
	struct cpu_mask online;

	if (cpu_mask_read("/sys/devices/system/cpu/online", &online))
		return;		/* binding will tell */
	for (u32 i = 0; i < l->nr; i++)
		if (!cpu_mask_test(&online, l->worker[i].cpu))
			die(EXIT_USAGE, "%u threads want CPU %u, but this guest has %u CPUs", l->nr,
			    l->worker[i].cpu, cpu_mask_count(&online));
}

int main(int argc, char **argv)
{
	struct load *l = aligned_alloc(CACHE_LINE, sizeof(*l));

	if (!l)
		die(EXIT_MISMATCH, "no memory");
	memset(l, 0, sizeof(*l));
	l->pages = PAGES_DEFAULT;
	l->warmup_ns = env_time("FAULTBED_WARMUP_NS", 50000000);
	l->duration_ns = env_time("FAULTBED_DURATION_NS", 200000000);
	parse_args(l, argc, argv);
	check_cpus(l);
	l->grace_ns = l->duration_ns > GRACE_MIN_NS ? l->duration_ns : GRACE_MIN_NS;
	if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) && errno != EINVAL)
		die_errno(EXIT_MISMATCH, "transparent huge pages cannot be turned off");
	roi_init(&l->roi);	/* before the threads: they inherit the port permission */
	if (l->zap == ZAP_FIRST)
		l->map = map_slices((size_t)l->nr * SLICE_BYTES);
	run(l);
	report(l);
	return EXIT_OK;
}
