// SPDX-License-Identifier: GPL-2.0-only
/*
 * file-scan: threads read a file that is not in memory, by read(), by mmap() or by both in turn,
 * while one more thread maps and unmaps memory and times each of its calls. What a fault holds
 * while it waits for the disk shows in that thread's longest call.
 *
 * The work is the file, cut into as many parts as there are threads, so that more threads do the
 * same in less time. Each page begins with its own number, which is checked: what is counted was read.
 *
 * Before each pass the file's pages are thrown out of memory; those that say where its blocks are
 * stay (--cold data), or go too (--cold all). With --readahead 0 each page is a request of its
 * own, so that every fault waits for one.
 *
 * Without --piece a thread maps its part once. With --piece N it maps, scans and unmaps N pages after N pages, as one does
 * that scans many small files; so each scanning thread is a writer of the address space as well.
 *
 * A pass is a round. The marks are around all passes; throwing out lies between them.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/barrier.h"
#include "lib/cpu.h"
#include "lib/guest.h"
#include "lib/roi.h"
#include "lib/util.h"

#define THREADS_MAX	64u
#define MOUNT_POINT	"/tmp/disk"
/* Pages that are scanned in one way before the other has its turn, with "mixed". */
#define MIXED_PAGES	8u
/* Calls of the writer before the scan, to know what they take on their own. */
#define IDLE_CALLS	200u

enum how { HOW_READ, HOW_MMAP, HOW_MIXED };

static const char *const how_name[] = { "read", "mmap", "mixed" };

struct waits {
	u64 calls, total, longest;	/* ns */
};

struct scan {
	const char *disk, *file;
	enum how how;
	u32 threads, passes;
	double scale;
	u64 pages;			/* to scan, of the whole file */
	u64 piece;			/* pages of a mapping; 0: a thread's part is one */
	u32 readahead_kib;
	bool cold_all, writer;
	u64 gap_ns;			/* between two pairs of the writer's calls */
	struct cpu_map cpus;
	struct roi roi;
	struct barrier barrier;
	bool stop;			/* (a) the writer is to end */
	bool bad;			/* (a) a page was not what it must be */
	struct waits idle, mmap_wait, munmap_wait;	/* the writer's */
};

struct reader {
	struct scan *scan;
	pthread_t thread;
	u32 index;
	u64 minor, major;		/* faults while it scanned */
};

static void note_wait(struct waits *w, u64 ns)
{
	w->calls++;
	w->total += ns;
	if (ns > w->longest)
		w->longest = ns;
}

/* --- the writer --- */

/* One page that is never touched, so that all the time is the address space's own. */
static void map_and_unmap(struct waits *map, struct waits *unmap)
{
	u64 begin = clock_ns(), middle, end;
	void *p = mmap(NULL, PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	middle = clock_ns();
	if (p == MAP_FAILED || munmap(p, PAGE_BYTES))
		die_errno(EXIT_MISMATCH, "mapping a page");
	end = clock_ns();
	note_wait(map, middle - begin);
	note_wait(unmap, end - middle);
}

static void bind_to(const struct scan *s, u32 index)
{
	int ret = cpu_bind(index % s->cpus.nr);

	if (ret) {
		errno = -ret;
		die_errno(EXIT_MISMATCH, "CPU %u", index % s->cpus.nr);
	}
}

static void *writer_thread(void *arg)
{
	struct scan *s = arg;
	u64 next;

	/* The last CPU, which is a reader's only when there are as many of those. */
	bind_to(s, s->cpus.nr - 1);
	for (u32 i = 0; i < IDLE_CALLS; i++)
		map_and_unmap(&s->idle, &s->idle);
	barrier_wait(&s->barrier);
	next = clock_ns();
	while (!__atomic_load_n(&s->stop, __ATOMIC_ACQUIRE)) {
		map_and_unmap(&s->mmap_wait, &s->munmap_wait);
		next += s->gap_ns;
		if (next < clock_ns())
			next = clock_ns() + s->gap_ns;
		sleep_until(next);
	}
	return NULL;
}

/* --- the readers --- */

static void check_page(struct scan *s, const void *page, u64 number)
{
	u64 found;

	memcpy(&found, page, sizeof(found));
	if (found != number)
		__atomic_store_n(&s->bad, true, __ATOMIC_RELAXED);
}

static void scan_by_read(struct scan *s, int fd, u64 from, u64 to)
{
	static _Thread_local char buf[PAGE_BYTES];

	for (u64 page = from; page < to; page++) {
		if (pread(fd, buf, PAGE_BYTES, (off_t)(page * PAGE_BYTES)) != PAGE_BYTES)
			die_errno(EXIT_MISMATCH, "reading page %llu", (unsigned long long)page);
		check_page(s, buf, page);
	}
}

/* The pages of the file from `from` to `to`, mapped. NULL if there are none. */
static char *map_part(const struct scan *s, int fd, u64 from, u64 to)
{
	size_t len = (to - from) * PAGE_BYTES;
	char *map;

	if (!len)
		return NULL;
	map = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, (off_t)(from * PAGE_BYTES));
	if (map == MAP_FAILED)
		die_errno(EXIT_MISMATCH, "mapping %s", s->file);
	if (!s->readahead_kib && madvise(map, len, MADV_RANDOM))
		die_errno(EXIT_MISMATCH, "madvise");
	return map;
}

/* Through `map`, which has page `from` of the file first, or piece by piece through mappings of our own. */
static void scan_by_mmap(struct scan *s, int fd, const char *map, u64 from, u64 to)
{
	u64 at, end;

	if (!s->piece) {
		for (u64 page = from; page < to; page++)
			check_page(s, map + (page - from) * PAGE_BYTES, page);
		return;
	}
	for (at = from; at < to; at = end) {
		char *own;

		end = at + s->piece < to ? at + s->piece : to;
		own = map_part(s, fd, at, end);
		for (u64 page = at; page < end; page++)
			check_page(s, own + (page - at) * PAGE_BYTES, page);
		munmap(own, (end - at) * PAGE_BYTES);
	}
}

/* All pages, or every other run of MIXED_PAGES, as the mapping or the descriptor has it. */
static void scan_part(struct scan *s, int fd, const char *map, u64 from, u64 to)
{
	u64 run, end;

	for (run = from; run < to; run = end) {
		end = s->how == HOW_MIXED ? run + MIXED_PAGES : to;
		if (end > to)
			end = to;
		if (s->how == HOW_READ || (s->how == HOW_MIXED && (run - from) / MIXED_PAGES % 2))
			scan_by_read(s, fd, run, end);
		else
			scan_by_mmap(s, fd, map ? map + (run - from) * PAGE_BYTES : NULL, run, end);
	}
}

static void scan_once(struct reader *r)
{
	struct scan *s = r->scan;
	u64 from = s->pages * r->index / s->threads, to = s->pages * (r->index + 1) / s->threads;
	int fd = open(s->file, O_RDONLY | O_CLOEXEC);
	struct rusage before, after;
	char *map = NULL;

	if (fd < 0)
		die_errno(EXIT_MISMATCH, "%s", s->file);
	if (!s->readahead_kib)
		posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	if (s->how != HOW_READ && !s->piece)
		map = map_part(s, fd, from, to);
	barrier_wait(&s->barrier);
	getrusage(RUSAGE_THREAD, &before);
	scan_part(s, fd, map, from, to);
	getrusage(RUSAGE_THREAD, &after);
	r->minor += (u64)(after.ru_minflt - before.ru_minflt);
	r->major += (u64)(after.ru_majflt - before.ru_majflt);
	barrier_wait(&s->barrier);
	if (map)
		munmap(map, (to - from) * PAGE_BYTES);
	close(fd);
	/* Nobody maps it any more, so that it can be thrown out. */
	barrier_wait(&s->barrier);
}

static void *reader_thread(void *arg)
{
	struct reader *r = arg;

	bind_to(r->scan, r->index);
	for (u32 i = 0; i < r->scan->passes; i++)
		scan_once(r);
	return NULL;
}

/* --- the file --- */

static void mount_disk(const struct scan *s)
{
	if (mkdir(MOUNT_POINT, 0755) && errno != EEXIST)
		die_errno(EXIT_MISMATCH, "%s", MOUNT_POINT);
	if (!mount(s->disk, MOUNT_POINT, "ext2", MS_RDONLY, NULL) || errno == EBUSY)
		return;
	if (errno == ENOENT || errno == ENODEV || errno == ENXIO || errno == ENOTBLK)
		die(EXIT_UNSUPPORTED, "%s: %s: no disk (guest.disk), or a kernel without virtio-mmio, virtio-blk or ext2",
		    s->disk, strerror(errno));
	die_errno(EXIT_MISMATCH, "mounting %s", s->disk);
}

static void set_readahead(const struct scan *s)
{
	const char *base = strrchr(s->disk, '/');
	char path[128], text[16];
	int ret;

	if (!s->readahead_kib)
		return;
	snprintf(path, sizeof(path), "/sys/block/%s/queue/read_ahead_kb", base ? base + 1 : s->disk);
	snprintf(text, sizeof(text), "%u", s->readahead_kib);
	ret = write_file(path, text);
	if (ret)
		die(EXIT_UNSUPPORTED, "%s: %s", path, strerror(-ret));
}

/* Out of memory with it: clean pages that nobody maps. */
static void make_cold(const struct scan *s)
{
	int fd = open(s->file, O_RDONLY | O_CLOEXEC), ret;

	if (fd < 0)
		die_errno(EXIT_MISMATCH, "%s", s->file);
	ret = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	close(fd);
	if (ret)
		die(EXIT_MISMATCH, "%s: %s", s->file, strerror(ret));
	if (s->cold_all) {
		ret = write_file("/proc/sys/vm/drop_caches", "3");
		if (ret)
			die(EXIT_UNSUPPORTED, "/proc/sys/vm/drop_caches: %s", strerror(-ret));
	}
}

/*
 * Read what is to be scanned in large pieces: then the file system knows where all of it lies. Each is read whole before read() returns and
 * nothing ahead of it: a request that is still on its way at the begin mark would be one of the scan's, and its pages would not be cold.
 */
static void warm_metadata(const struct scan *s)
{
	const size_t piece = 256 << 10;
	char *buf = malloc(piece);
	int fd = open(s->file, O_RDONLY | O_CLOEXEC);
	u64 left = s->pages * PAGE_BYTES;
	ssize_t n;

	if (fd < 0 || !buf)
		die_errno(EXIT_MISMATCH, "%s", s->file);
	posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	while (left && (n = read(fd, buf, left < piece ? left : piece)) != 0) {
		if (n < 0)
			die_errno(EXIT_MISMATCH, "reading %s", s->file);
		left -= (u64)n;
	}
	close(fd);
	free(buf);
}

static void open_file(struct scan *s)
{
	struct stat st;

	mount_disk(s);
	if (stat(s->file, &st))
		die_errno(EXIT_MISMATCH, "%s", s->file);
	s->pages = (u64)((double)st.st_size / PAGE_BYTES * s->scale);
	if (!s->pages)
		die(EXIT_USAGE, "%s at that scale is less than a page", s->file);
	set_readahead(s);
	warm_metadata(s);
	make_cold(s);
}

/* --- all of it --- */

static u64 run_passes(struct scan *s)
{
	u64 scanning = 0, begin;

	for (u32 i = 0; i < s->passes; i++) {
		barrier_wait(&s->barrier);
		begin = clock_ns();
		barrier_wait(&s->barrier);
		scanning += clock_ns() - begin;
		barrier_wait(&s->barrier);
		if (i + 1 < s->passes)
			make_cold(s);
	}
	return scanning;
}

static void report(struct scan *s, const struct reader *readers, u64 scanning)
{
	const struct roi *roi = &s->roi;
	u64 minor = 0, major = 0, longest = s->mmap_wait.longest;

	for (u32 i = 0; i < s->threads; i++) {
		minor += readers[i].minor;
		major += readers[i].major;
	}
	if (s->munmap_wait.longest > longest)
		longest = s->munmap_wait.longest;
	roi_send_counters(&s->roi);
	roi_report(roi, "rounds", s->passes, "rounds");
	roi_report_f(roi, "scale", s->scale, "of the file");
	roi_report(roi, "bytes", s->pages * PAGE_BYTES * s->passes, "bytes");
	roi_report(roi, "pages", s->pages * s->passes, "pages");
	roi_report(roi, "scan_ns", scanning, "ns");
	roi_report(roi, "faults", minor + major, "faults");
	roi_report(roi, "faults_major", major, "faults");
	if (s->writer) {
		roi_report(roi, "writer_calls", s->mmap_wait.calls + s->munmap_wait.calls, "calls");
		roi_report(roi, "writer_longest_ns", longest, "ns");
		roi_report(roi, "writer_longest_mmap_ns", s->mmap_wait.longest, "ns");
		roi_report(roi, "writer_longest_munmap_ns", s->munmap_wait.longest, "ns");
		roi_report(roi, "writer_total_ns", s->mmap_wait.total + s->munmap_wait.total, "ns");
		roi_report(roi, "writer_idle_longest_ns", s->idle.longest, "ns");
		roi_report(roi, "writer_idle_mean_ns", s->idle.total / s->idle.calls, "ns");
	}
	printf("file-scan: %s threads=%u pages=%llu scan=%lluus faults=%llu major=%llu writer: calls=%llu longest=%lluus total=%lluus\n",
	       how_name[s->how], s->threads, (unsigned long long)(s->pages * s->passes),
	       (unsigned long long)scanning / 1000, (unsigned long long)(minor + major), (unsigned long long)major,
	       (unsigned long long)(s->mmap_wait.calls + s->munmap_wait.calls), (unsigned long long)longest / 1000,
	       (unsigned long long)(s->mmap_wait.total + s->munmap_wait.total) / 1000);
}

static void start(pthread_t *thread, void *(*fn)(void *), void *arg)
{
	int ret = pthread_create(thread, NULL, fn, arg);

	if (ret) {
		errno = ret;
		die_errno(EXIT_MISMATCH, "starting a thread");
	}
}

static void run(struct scan *s)
{
	struct reader *readers = calloc(s->threads, sizeof(*readers));
	pthread_t writer;
	u64 scanning;

	if (!readers)
		die(EXIT_MISMATCH, "no memory");
	/* The writer meets the main thread here once, before the readers are there. */
	barrier_init(&s->barrier, 2);
	if (s->writer) {
		start(&writer, writer_thread, s);
		barrier_wait(&s->barrier);
	}
	barrier_init(&s->barrier, s->threads + 1);
	roi_begin(&s->roi);
	for (u32 i = 0; i < s->threads; i++) {
		readers[i].scan = s;
		readers[i].index = i;
		start(&readers[i].thread, reader_thread, &readers[i]);
	}
	scanning = run_passes(s);
	roi_end(&s->roi);
	for (u32 i = 0; i < s->threads; i++)
		pthread_join(readers[i].thread, NULL);
	__atomic_store_n(&s->stop, true, __ATOMIC_RELEASE);
	if (s->writer)
		pthread_join(writer, NULL);
	report(s, readers, scanning);
	free(readers);
}

static void usage(int status) __attribute__((noreturn));

static void usage(int status)
{
	fprintf(status ? stderr : stdout,
		"usage: file-scan [--how read|mmap|mixed] [options] THREADS\n"
		"Threads scan a file that is not in memory; one more maps and unmaps a page and times its calls.\n"
		"  --how HOW         read(), mmap() or both in turn (mmap)\n"
		"  --scale F         this part of the file, above 0 and at most 1 (1)\n"
		"  --piece N         map, scan and unmap N pages at a time, as if each N were a file; 0: a thread's part at once (0)\n"
		"  --passes N        scan it N times, cold each time (1)\n"
		"  --readahead KIB   read ahead as much; 0: each page on its own (0)\n"
		"  --cold data|all   what is not in memory: the file's pages, or what says where they lie, too (data)\n"
		"  --gap TIME        the mapping thread's sleep between two pairs of calls (500us)\n"
		"  --no-writer       without that thread\n"
		"  --disk DEVICE     with an ext2 file system (/dev/vda)\n"
		"  --file PATH       the file (" MOUNT_POINT "/scan, there once the disk is mounted)\n");
	exit(status);
}

static bool parse_scale(const char *text, double *scale)
{
	char *end;

	*scale = strtod(text, &end);
	return end != text && !*end && *scale > 0 && *scale <= 1;
}

static bool parse_how(const char *text, enum how *how)
{
	for (u32 i = 0; i < sizeof(how_name) / sizeof(how_name[0]); i++) {
		if (!strcmp(text, how_name[i])) {
			*how = (enum how)i;
			return true;
		}
	}
	return false;
}

static void parse_args(struct scan *s, int argc, char **argv)
{
	static const struct option options[] = {
		{ "how", required_argument, NULL, 'H' },
		{ "scale", required_argument, NULL, 's' },
		{ "passes", required_argument, NULL, 'p' },
		{ "piece", required_argument, NULL, 'P' },
		{ "readahead", required_argument, NULL, 'r' },
		{ "cold", required_argument, NULL, 'c' },
		{ "gap", required_argument, NULL, 'g' },
		{ "no-writer", no_argument, NULL, 'n' },
		{ "disk", required_argument, NULL, 'd' },
		{ "file", required_argument, NULL, 'f' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	u64 n;
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == 'H' && parse_how(optarg, &s->how))
			continue;
		if (c == 's' && parse_scale(optarg, &s->scale))
			continue;
		if (c == 'p' && parse_u64(optarg, 1, 100000, &n))
			s->passes = (u32)n;
		else if (c == 'P' && parse_u64(optarg, 0, 1 << 20, &s->piece))
			continue;
		else if (c == 'r' && parse_u64(optarg, 0, 1 << 20, &n))
			s->readahead_kib = (u32)n;
		else if (c == 'c' && (!strcmp(optarg, "data") || !strcmp(optarg, "all")))
			s->cold_all = !strcmp(optarg, "all");
		else if (c == 'g' && parse_time(optarg, &s->gap_ns))
			continue;
		else if (c == 'n')
			s->writer = false;
		else if (c == 'd')
			s->disk = optarg;
		else if (c == 'f')
			s->file = optarg;
		else
			usage(c == 'h' ? EXIT_OK : EXIT_USAGE);
	}
	if (optind + 1 != argc || !parse_u64(argv[optind], 1, THREADS_MAX, &n))
		usage(EXIT_USAGE);
	s->threads = (u32)n;
}

int main(int argc, char **argv)
{
	struct scan s = {
		.disk = "/dev/vda", .file = MOUNT_POINT "/scan", .how = HOW_MMAP, .passes = 1, .scale = 1,
		.writer = true, .gap_ns = 500000,
	};

	parse_args(&s, argc, argv);
	guest_only();
	if (cpu_map_read(&s.cpus))
		die(EXIT_MISMATCH, "/sys tells no CPUs");
	open_file(&s);
	roi_init(&s.roi);
	run(&s);
	if (s.bad) {
		fprintf(stderr, "file-scan: a page of %s does not hold its number\n", s.file);
		return EXIT_MISMATCH;
	}
	return EXIT_OK;
}
