// SPDX-License-Identifier: GPL-2.0-only
/*
 * fault-around: minor faults of reading a file that is in the page cache, through mappings. After
 * the tables of Kirill A. Shutemov (2014-02-27) and Madhavan Srinivasan (2014-03-25) on linux-mm.
 *
 * Each of N readers maps the whole file and makes one pass over its mapping:
 *
 *   sequential  every page in order, every word of it
 *   random      every page once in a random order, every word of it; each reader's order is another
 *   stride      one word of one page per stride
 *   empty       none: what starting, mapping and ending cost
 *
 * The readers are threads of one address space (one), or processes (many). Each pass over the
 * file by N readers is a run: a child process, whose minor faults are those of all its threads and children as
 * wait4() has them, which is what `perf stat` of such a program counts. The empty run comes first and is reported
 * like the others; it is left to who reads the results to subtract it.
 *
 * So that faults are pages / 2^order and not one more here and there, mappings begin at a multiple of what
 * one page table maps (fault-around's windows are aligned in it), and each reader runs the code of the pass on memory
 * of its own before it is let go. What a reader read is summed up and compared with what was written.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/cpu.h"
#include "lib/roi.h"
#include "lib/util.h"

#define PUBLISHED_BYTES	(16ull << 30)		/* sequential and stride; 1 GiB of random */
#define TABLE_BYTES	(2ull << 20)		/* what one page table maps */
#define PAGE_WORDS	(PAGE_BYTES / sizeof(u64))
#define MAX_READERS	1024u
#define MAX_LIST	16u
#define STACK_BYTES	(64u << 10)

enum pattern { EMPTY, SEQUENTIAL, RANDOM, STRIDE, NR_PATTERNS };
enum sharing { ONE, MANY, NR_SHARINGS };

static const char *const pattern_names[] = { "empty", "sequential", "random", "stride" };
static const char *const sharing_names[] = { "one", "many" };

struct load;

/* One reader, in memory that all processes share; its own but for the parameters until it has ended. */
struct reader {
	struct load *load;
	u32 index;
	pthread_t thread;
	u64 sum, end_ns;
	u64 faults;		/* of the pass */
	bool done;
} __attribute__((aligned(CACHE_LINE)));

struct load {
	bool want[NR_PATTERNS], share[NR_SHARINGS];
	u32 threads[MAX_LIST], nr_threads;
	u64 scale, stride;
	u64 tries;		/* runs of each kind; the fewest faults count */
	u64 warmup;		/* readers of a run of each pattern before the marks; 0: none */
	bool all_words;
	const char *dir;
	struct roi roi;
	struct cpu_map cpus;

	int file;
	u64 bytes;
	u32 pages;
	u32 *order;		/* a random permutation of the pages */
	u64 expect[NR_PATTERNS];	/* sums of what a pass reads */

	/* The run at hand. */
	enum pattern pattern;
	u32 nr;			/* readers */
	int ready[2], gate[2];	/* pipes: a byte of each that is ready; closed to let them go */
	int open;		/* as a gate that is open already */
	struct reader *reader;	/* (shared) MAX_READERS */
	u64 *begin_ns;		/* (shared) when they were let go */
};

/* --- passes --- */

/* Every word of a page, or the first. */
static u64 read_page(const struct load *l, const u64 *p)
{
	u64 a = 0, b = 0;

	if (!l->all_words)
		return *(volatile const u64 *)p;
	for (u32 i = 0; i < PAGE_WORDS; i += 8) {
		a += p[i] + p[i + 2] + p[i + 4] + p[i + 6];
		b += p[i + 1] + p[i + 3] + p[i + 5] + p[i + 7];
	}
	return a + b;
}

/* A pass over nr pages at p. Reader i begins elsewhere in the permutation and goes through it by another odd step. */
static u64 pass(const struct load *l, const char *p, u32 nr, u32 index)
{
	u64 sum = 0;

	switch (l->pattern) {
	case SEQUENTIAL:
		for (u32 i = 0; i < nr; i++)
			sum += read_page(l, (const u64 *)(p + (u64)i * PAGE_BYTES));
		break;
	case RANDOM:
		for (u32 i = 0; i < nr; i++) {
			u32 at = (u32)((index * 7919ull + i * (2ull * index + 1)) % nr);

			sum += read_page(l, (const u64 *)(p + (u64)(nr > 1 ? l->order[at] : 0) * PAGE_BYTES));
		}
		break;
	case STRIDE:
		for (u64 at = 0; at < (u64)nr * PAGE_BYTES; at += l->stride)
			sum += *(volatile const u64 *)(p + at);
		break;
	default:
		break;
	}
	return sum;
}

/* The file, at a multiple of TABLE_BYTES. */
static const char *map_file(const struct load *l)
{
	char *p = mmap(NULL, l->bytes + TABLE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *at;

	if (p == MAP_FAILED)
		die_errno(EXIT_MISMATCH, "mmap of %llu bytes", (unsigned long long)l->bytes);
	at = (char *)(((uintptr_t)p + TABLE_BYTES - 1) & ~(uintptr_t)(TABLE_BYTES - 1));
	at = mmap(at, l->bytes, PROT_READ, MAP_SHARED | MAP_FIXED, l->file, 0);
	if (at == MAP_FAILED)
		die_errno(EXIT_MISMATCH, "mmap of the file");
	/* Large mappings of a file could be had otherwise; EINVAL: a kernel without huge pages. */
	if (madvise(at, l->bytes, MADV_NOHUGEPAGE) && errno != EINVAL)
		die_errno(EXIT_MISMATCH, "madvise");
	return at;
}

/* Minor faults of the calling thread so far. */
static u64 own_faults(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_THREAD, &usage))
		die_errno(EXIT_MISMATCH, "getrusage");
	return (u64)usage.ru_minflt;
}

/*
 * In the rehearsal the pass is over one page of memory, and nobody waits: the code is in the address space before
 * several threads can meet at a page of it, which would be two faults or one by chance.
 */
static void read_once(struct reader *r, bool rehearsal)
{
	struct load *l = r->load;
	u32 cpu = r->index % l->cpus.nr;
	const char *p = map_file(l);
	char byte = 0;

	if (cpu_mask_test(&l->cpus.online, cpu) && cpu_bind(cpu))
		die(EXIT_MISMATCH, "CPU %u", cpu);
	r->sum = pass(l, (const char *)l->order, 1, r->index);
	r->faults = own_faults();
	if (write(l->ready[1], &byte, 1) != 1)
		die_errno(EXIT_MISMATCH, "pipe");
	/* Nobody writes: the end of the file lets all go at once. */
	if (read(rehearsal ? l->open : l->gate[0], &byte, 1))
		die_errno(EXIT_MISMATCH, "pipe");
	r->faults = own_faults();
	if (!rehearsal)
		r->sum = pass(l, p, l->pages, r->index);
	r->faults = own_faults() - r->faults;
	r->end_ns = clock_ns();
	r->done = !rehearsal;
}

static void *reader_main(void *arg)
{
	read_once(arg, false);
	return NULL;
}

static void *rehearsal_main(void *arg)
{
	read_once(arg, true);
	return NULL;
}

/* --- a run --- */

static void start_thread(struct reader *r, void *(*body)(void *arg))
{
	pthread_attr_t attr;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	err = pthread_create(&r->thread, &attr, body, r);
	pthread_attr_destroy(&attr);
	if (err)
		die(EXIT_MISMATCH, "thread %u: %s", r->index, strerror(err));
}

static void start_reader(struct load *l, enum sharing sharing, struct reader *r)
{
	if (sharing == MANY) {
		pid_t pid = fork();

		if (pid < 0)
			die_errno(EXIT_MISMATCH, "fork");
		if (pid)
			return;
		close(l->gate[1]);
		reader_main(r);
		_exit(EXIT_OK);
	}
	start_thread(r, reader_main);
}

static void end_reader(enum sharing sharing, struct reader *r)
{
	int status;

	if (sharing == ONE)
		pthread_join(r->thread, NULL);
	else if (wait(&status) < 0 || status)
		die(EXIT_MISMATCH, "a reader failed");
}

/* In the child that is the run. */
static void run_child(struct load *l, enum sharing sharing)
{
	char byte;

	if (sharing == ONE) {
		start_thread(&l->reader[0], rehearsal_main);
		pthread_join(l->reader[0].thread, NULL);
		if (read(l->ready[0], &byte, 1) != 1)
			die_errno(EXIT_MISMATCH, "pipe");
	}
	for (u32 i = 0; i < l->nr; i++)
		start_reader(l, sharing, &l->reader[i]);
	for (u32 i = 0; i < l->nr; i++)
		if (read(l->ready[0], &byte, 1) != 1)
			die_errno(EXIT_MISMATCH, "pipe");
	*l->begin_ns = clock_ns();
	close(l->gate[1]);
	for (u32 i = 0; i < l->nr; i++)
		end_reader(sharing, &l->reader[i]);
	_exit(EXIT_OK);
}

static void report_run(const struct load *l, enum sharing sharing, u64 faults)
{
	char name[64];
	u64 end = *l->begin_ns, pass_faults = 0;

	for (u32 i = 0; i < l->nr; i++) {
		pass_faults += l->reader[i].faults;
		if (l->reader[i].end_ns > end)
			end = l->reader[i].end_ns;
	}
	snprintf(name, sizeof(name), "%s.%s.%u.minor_faults", pattern_names[l->pattern], sharing_names[sharing], l->nr);
	roi_report(&l->roi, name, faults, "faults");
	snprintf(name, sizeof(name), "%s.%s.%u.pass_faults", pattern_names[l->pattern], sharing_names[sharing], l->nr);
	roi_report(&l->roi, name, pass_faults, "faults");
	snprintf(name, sizeof(name), "%s.%s.%u.ns", pattern_names[l->pattern], sharing_names[sharing], l->nr);
	roi_report(&l->roi, name, end - *l->begin_ns, "ns");
}

/* N readers over the file. Minor faults of all of them. */
static u64 run(struct load *l, enum pattern pattern, enum sharing sharing, u32 nr)
{
	struct rusage usage;
	int status;
	pid_t pid;

	l->pattern = pattern;
	l->nr = nr;
	memset(l->reader, 0, nr * sizeof(*l->reader));
	for (u32 i = 0; i < nr; i++) {
		l->reader[i].load = l;
		l->reader[i].index = i;
	}
	if (pipe(l->ready) || pipe(l->gate))
		die_errno(EXIT_MISMATCH, "pipe");
	pid = fork();
	if (pid < 0)
		die_errno(EXIT_MISMATCH, "fork");
	if (!pid)
		run_child(l, sharing);
	/* Or the gate would stay open. */
	close(l->gate[1]);
	if (wait4(pid, &status, 0, &usage) != pid || status)
		die(EXIT_MISMATCH, "%s, %u readers in %s: the run failed", pattern_names[pattern], nr,
		    sharing_names[sharing]);
	close(l->ready[0]);
	close(l->ready[1]);
	close(l->gate[0]);
	for (u32 i = 0; i < nr; i++)
		if (!l->reader[i].done || l->reader[i].sum != l->expect[pattern])
			die(EXIT_MISMATCH, "%s: reader %u of %u read what was not written", pattern_names[pattern], i, nr);
	return (u64)usage.ru_minflt;
}

/* --- the file --- */

static u64 word_at(u64 i)
{
	return (i + 1) * 0x9e3779b97f4a7c15ull;
}

/* Written, so in the page cache, and without a name. What each pass will read is summed up on the way. */
static void make_file(struct load *l)
{
	char path[256];
	u64 page[PAGE_WORDS];

	snprintf(path, sizeof(path), "%s/fault-around.XXXXXX", l->dir);
	l->file = mkstemp(path);
	if (l->file < 0)
		die_errno(EXIT_MISMATCH, "%s", path);
	unlink(path);
	for (u32 i = 0; i < l->pages; i++) {
		for (u32 w = 0; w < PAGE_WORDS; w++) {
			page[w] = word_at((u64)i * PAGE_WORDS + w);
			if (l->all_words || !w)
				l->expect[SEQUENTIAL] += page[w];
		}
		if ((u64)i * PAGE_BYTES % l->stride == 0)
			l->expect[STRIDE] += page[0];
		if (write(l->file, page, sizeof(page)) != sizeof(page))
			die_errno(EXIT_MISMATCH, "%s: page %u of %u", path, i, l->pages);
	}
	l->expect[RANDOM] = l->expect[SEQUENTIAL];
}

/* Fisher and Yates's, by a multiplicative generator. A page at least, since readers try their code on it. */
static void make_order(struct load *l)
{
	u64 x = env_u64("FAULTBED_SEED", 1) * 0x9e3779b97f4a7c15ull | 1, bytes = (u64)l->pages * sizeof(*l->order);

	l->order = mmap(NULL, bytes < PAGE_BYTES ? PAGE_BYTES : bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (l->order == MAP_FAILED)
		die_errno(EXIT_MISMATCH, "mmap");
	for (u32 i = 0; i < l->pages; i++)
		l->order[i] = i;
	for (u32 i = l->pages - 1; i > 0; i--) {
		u32 other, tmp = l->order[i];

		x ^= x >> 12;
		x ^= x << 25;
		x ^= x >> 27;
		other = (u32)((x * 0x2545f4914f6cdd1dull >> 33) % (i + 1));
		l->order[i] = l->order[other];
		l->order[other] = tmp;
	}
}

static void make_shared(struct load *l)
{
	size_t bytes = MAX_READERS * sizeof(*l->reader) + PAGE_BYTES;
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die_errno(EXIT_MISMATCH, "mmap");
	memset(p, 0, bytes);
	l->begin_ns = (u64 *)p;
	l->reader = (struct reader *)(p + PAGE_BYTES);
}

/* --- all of it --- */

static void run_all(struct load *l)
{
	u64 total = 0;

	for (u32 p = 0; p < NR_PATTERNS && l->warmup; p++)
		if (l->want[p])
			run(l, p, l->share[ONE] ? ONE : MANY, (u32)l->warmup);
	roi_begin(&l->roi);
	for (u32 t = 0; t < l->nr_threads; t++) {
		for (u32 s = 0; s < NR_SHARINGS; s++) {
			for (u32 p = 0; p < NR_PATTERNS && l->share[s]; p++) {
				u64 faults;

				if (!l->want[p])
					continue;
				faults = run(l, p, s, l->threads[t]);
				total += faults;
				for (u64 try = 1; try < l->tries; try++) {
					u64 again = run(l, p, s, l->threads[t]);

					total += again;
					faults = again < faults ? again : faults;
				}
				report_run(l, s, faults);
			}
		}
	}
	roi_end(&l->roi);
	roi_send_counters(&l->roi);
	roi_report(&l->roi, "runs.minor_faults", total, "faults");
	roi_report(&l->roi, "scale", l->scale, "times");
	roi_report(&l->roi, "tries", l->tries, "runs");
	roi_report(&l->roi, "pages", l->pages, "pages");
	roi_report(&l->roi, "stride_pages", l->stride / PAGE_BYTES, "pages");
	roi_report(&l->roi, "words_of_a_page", l->all_words ? PAGE_WORDS : 1, "words");
}

static void usage(int status) __attribute__((noreturn));

static void usage(int status)
{
	fprintf(status ? stderr : stdout,
		"usage: fault-around [options]\n"
		"Minor faults of N readers of one file in the page cache, each through a mapping of its own.\n"
		"  --patterns LIST    of sequential,random,stride (all; a run without touching the file comes first)\n"
		"  --mm LIST          one address space for all readers, or many: one,many (both)\n"
		"  --threads LIST     how many readers: 1,8,32 (1)\n"
		"  --scale N          the file is the published 16 GiB divided by N (2048: 8 MiB)\n"
		"  --stride SIZE      one page of so many bytes (2MiB)\n"
		"  --words all|one    of each page that sequential and random touch (all); one is faster, and faults are the same\n"
		"  --tries N          do each run N times and report the fewest faults: in host time the start of a\n"
		"                     process takes one or two more at times (1)\n"
		"  --warmup N         before the marks, a run of each pattern by N readers (0: none)\n"
		"  --dir DIR          where the file is made (/tmp)\n");
	exit(status);
}

/* Set the flag of each name in a list. */
static bool parse_names(char *list, const char *const *names, u32 nr, bool *flags)
{
	char *save = NULL;

	memset(flags, 0, nr * sizeof(*flags));
	for (char *word = strtok_r(list, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		u32 i = 0;

		while (i < nr && strcmp(word, names[i]))
			i++;
		if (i == nr)
			return false;
		flags[i] = true;
	}
	for (u32 i = 0; i < nr; i++)
		if (flags[i])
			return true;
	return false;
}

static bool parse_threads(struct load *l, char *list)
{
	char *save = NULL;
	u64 n;

	l->nr_threads = 0;
	for (char *word = strtok_r(list, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		if (l->nr_threads == MAX_LIST || !parse_u64(word, 1, MAX_READERS, &n))
			return false;
		l->threads[l->nr_threads++] = (u32)n;
	}
	return l->nr_threads > 0;
}

static bool parse_option(struct load *l, int c)
{
	switch (c) {
	case 'p':
		if (!parse_names(optarg, pattern_names, NR_PATTERNS, l->want))
			return false;
		l->want[EMPTY] = true;
		return true;
	case 'm':
		return parse_names(optarg, sharing_names, NR_SHARINGS, l->share);
	case 't':
		return parse_threads(l, optarg);
	case 's':
		return parse_u64(optarg, 1, PUBLISHED_BYTES / PAGE_BYTES, &l->scale);
	case 'S':
		return parse_size(optarg, &l->stride) && l->stride && l->stride % PAGE_BYTES == 0;
	case 'w':
		l->all_words = !strcmp(optarg, "all");
		return l->all_words || !strcmp(optarg, "one");
	case 'n':
		return parse_u64(optarg, 1, 100, &l->tries);
	case 'W':
		return parse_u64(optarg, 0, MAX_READERS, &l->warmup);
	case 'd':
		l->dir = optarg;
		return true;
	}
	usage(c == 'h' ? EXIT_OK : EXIT_USAGE);
}

static void parse_args(struct load *l, int argc, char **argv)
{
	static const struct option options[] = {
		{ "patterns", required_argument, NULL, 'p' }, { "mm", required_argument, NULL, 'm' },
		{ "threads", required_argument, NULL, 't' },  { "scale", required_argument, NULL, 's' },
		{ "stride", required_argument, NULL, 'S' },   { "words", required_argument, NULL, 'w' },
		{ "tries", required_argument, NULL, 'n' },    { "dir", required_argument, NULL, 'd' },
		{ "warmup", required_argument, NULL, 'W' },   { "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1)
		if (!parse_option(l, c))
			die(EXIT_USAGE, "bad value \"%s\" of an option (--help)", optarg);
	if (optind != argc)
		usage(EXIT_USAGE);
	l->bytes = PUBLISHED_BYTES / l->scale & ~(u64)(PAGE_BYTES - 1);
	l->pages = (u32)(l->bytes / PAGE_BYTES);
	/* With any other number the odd steps of the readers would not meet every page once. */
	if (l->pages & (l->pages - 1))
		die(EXIT_USAGE, "--scale %llu: %u pages; a power of two makes a file that is one as well",
		    (unsigned long long)l->scale, l->pages);
}

int main(int argc, char **argv)
{
	struct load *l = calloc(1, sizeof(*l));

	if (!l)
		die(EXIT_MISMATCH, "no memory");
	*l = (struct load){ .threads = { 1 }, .nr_threads = 1, .scale = 2048, .tries = 1, .stride = TABLE_BYTES,
			    .all_words = true, .dir = "/tmp" };
	memset(l->want, true, sizeof(l->want));
	memset(l->share, true, sizeof(l->share));
	parse_args(l, argc, argv);
	if (cpu_map_read(&l->cpus))
		die(EXIT_UNSUPPORTED, "/sys tells of no CPUs");
	l->open = open("/dev/null", O_RDONLY);
	if (l->open < 0)
		die_errno(EXIT_MISMATCH, "/dev/null");
	roi_init(&l->roi);
	make_shared(l);
	make_order(l);
	make_file(l);
	run_all(l);
	return EXIT_OK;
}
