// SPDX-License-Identifier: GPL-2.0-only
/*
 * first-touch: how long one touch of a page takes, page by page, so that a delay
 * in second-level fault service can be seen from inside the guest.
 *
 * Three kinds of touch are timed, each on every page of a mapping, by one write
 * between two readings of the TSC:
 *
 *   first    memory just mapped. Contains the guest's own page fault, the
 *            zeroing of the page and, where the guest physical page was never
 *            touched before, the second-level fault.
 *   again    the same pages after MADV_DONTNEED: the guest's own fault and
 *            zeroing alone, since the kernel hands out pages that it just got
 *            back. The difference first - again is the second level's part.
 *   retouch  (--retouch N) the same pages N times more with the guest's mapping
 *            in place: no fault of the guest at all, only second-level faults
 *            on pages whose mapping the host dropped (ept.refault).
 *
 * The measured region is the first touches, or with --retouch those.
 *
 * Linux gives out memory that it freed lately first, in runs of a megabyte and
 * more, and the guest touched that before. So first touches go on until --fresh of them
 * were slower than a recycled page's by a factor, at most through --size. On a busy
 * host a recycled page's touch is that slow too at times, one here and one there, while memory
 * never touched comes in a row: half of the last --fresh touches must have been slow as
 * well, and the second level's part is taken from those of them that were slower than
 * the slowest recycled ones, too.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "lib/cpu.h"
#include "lib/hist.h"
#include "lib/roi.h"
#include "lib/tsc.h"
#include "lib/util.h"

/* The two clocks are compared over at least this. */
#define CALIBRATE_NS	20000000ull
/* Recycled pages are timed on so many. */
#define SAMPLE_PAGES	256u
/* A touch this many times slower than the median recycled one had more to do. */
#define STANDS_OUT	3u
/* All recycled touches but this part's rest are below what counts as slow in the end. */
#define RECYCLED_MOST	0.99
/* Fewer slow touches than this part of all are noise. */
#define SLOW_PART	20u
#define SIZE_DEFAULT	(64u << 20)

struct bench {
	size_t bytes;		/* 0 = choose */
	size_t fresh;		/* first touches that must stand out; 0 = touch all */
	u32 cpu;
	u32 retouch;
	u64 gap_ns;		/* between two retouch passes */
	size_t pages;		/* that were touched */
	size_t slow;		/* of the first touches */
	struct roi roi;
	/* TSC ticks, ns once converted; last: the last `fresh` first touches, or all */
	struct hist first, last, again, retouched;
};

static char *map_pages(size_t bytes)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die_errno(EXIT_MISMATCH, "mmap of %zu bytes", bytes);
	if (madvise(p, bytes, MADV_NOHUGEPAGE) && errno != EINVAL)
		die_errno(EXIT_MISMATCH, "madvise");
	return p;
}

/* One write to the page, in TSC ticks. */
static u64 touch_page(char *page)
{
	u64 begin = tsc_read();

	*(volatile char *)page = 1;
	return tsc_read() - begin;
}

static void touch_pages(char *p, size_t pages, struct hist *h)
{
	for (size_t i = 0; i < pages; i++)
		hist_add(h, touch_page(p + i * PAGE_BYTES));
}

/* Free memory, so that a size that cannot fit is refused rather than met by the OOM killer. */
static u64 memory_available(void)
{
	char text[4096];
	const char *p;

	if (read_file("/proc/meminfo", text, sizeof(text)) < 0)
		return UINT64_MAX;
	p = strstr(text, "MemAvailable:");
	return p ? strtoull(p + strlen("MemAvailable:"), NULL, 10) << 10 : UINT64_MAX;
}

/* Median time of touching recycled pages: touched, given back, touched again. In TSC ticks. */
static u64 recycled_ticks(void)
{
	char *p = map_pages(SAMPLE_PAGES * PAGE_BYTES);
	struct hist h;
	u64 median;

	hist_init(&h, SAMPLE_PAGES);
	touch_pages(p, SAMPLE_PAGES, &h);
	if (madvise(p, SAMPLE_PAGES * PAGE_BYTES, MADV_DONTNEED))
		die_errno(EXIT_MISMATCH, "madvise");
	h.nr = 0;
	touch_pages(p, SAMPLE_PAGES, &h);
	hist_sort(&h);
	median = hist_quantile(&h, 0.5);
	hist_free(&h);
	munmap(p, SAMPLE_PAGES * PAGE_BYTES);
	return median;
}

/*
 * First touches, until enough stood out, in a row as memory never touched comes, or the
 * mapping ends.
 */
static void first_touches(struct bench *b, char *p, u64 limit)
{
	size_t max = b->bytes / PAGE_BYTES, recent = 0;

	for (b->pages = 0; b->pages < max; b->pages++) {
		u64 ticks;

		if (b->fresh && b->slow >= b->fresh && recent >= b->fresh / 2)
			break;
		ticks = touch_page(p + b->pages * PAGE_BYTES);
		hist_add(&b->first, ticks);
		b->slow += ticks > limit;
		recent += ticks > limit;
		if (b->fresh && b->pages >= b->fresh)
			recent -= b->first.value[b->pages - b->fresh] > limit;
	}
}

/* Call while the first touches are in the order of time. */
static void keep_last(struct bench *b)
{
	for (size_t i = b->fresh && b->fresh < b->pages ? b->pages - b->fresh : 0; i < b->pages; i++)
		hist_add(&b->last, b->first.value[i]);
}

static void convert(struct hist *h, double ns_per_tick)
{
	for (size_t i = 0; i < h->nr; i++)
		h->value[i] = (u64)((double)h->value[i] * ns_per_tick + 0.5);
}

static void run(struct bench *b)
{
	u64 limit = STANDS_OUT * recycled_ticks();
	struct tsc_mark begin, end;
	double ns_per_tick;
	char *p;

	p = map_pages(b->bytes);
	begin = tsc_mark();
	if (!b->retouch)
		roi_begin(&b->roi);
	first_touches(b, p, limit);
	if (!b->retouch)
		roi_end(&b->roi);
	keep_last(b);
	if (b->retouch)
		roi_begin(&b->roi);
	for (u32 i = 0; i < b->retouch; i++) {
		if (b->gap_ns)
			sleep_until(clock_ns() + b->gap_ns);
		touch_pages(p, b->pages, &b->retouched);
	}
	if (b->retouch)
		roi_end(&b->roi);
	if (madvise(p, b->bytes, MADV_DONTNEED))
		die_errno(EXIT_MISMATCH, "madvise");
	touch_pages(p, b->pages, &b->again);
	if (clock_ns() < begin.ns + CALIBRATE_NS)
		sleep_until(begin.ns + CALIBRATE_NS);
	end = tsc_mark();
	ns_per_tick = tsc_ns_per_tick(&begin, &end);
	if (ns_per_tick == 0)
		die(EXIT_UNSUPPORTED, "the TSC does not count");
	convert(&b->first, ns_per_tick);
	convert(&b->last, ns_per_tick);
	convert(&b->again, ns_per_tick);
	convert(&b->retouched, ns_per_tick);
}

/*
 * The second level's part of a first touch: the median of the last first touches that
 * stood out, less the median of `again`. Where they are too few to tell from
 * noise, the difference of all medians. The others are sorted, `last` gets so.
 */
static s64 second_level(struct bench *b)
{
	u64 base = hist_quantile(&b->again, 0.5), recycled = hist_quantile(&b->again, RECYCLED_MOST);
	u64 limit = STANDS_OUT * base > recycled ? STANDS_OUT * base : recycled;
	size_t below = 0;

	hist_sort(&b->last);
	while (below < b->last.nr && b->last.value[below] <= limit)
		below++;
	if (b->last.nr - below < b->last.nr / SLOW_PART + 1)
		return (s64)hist_quantile(&b->first, 0.5) - (s64)base;
	return (s64)b->last.value[below + (b->last.nr - below - 1) / 2] - (s64)base;
}

static void report(struct bench *b)
{
	s64 part;

	roi_send_counters(&b->roi);
	roi_report(&b->roi, "pages", b->pages, "pages");
	hist_report(&b->first, &b->roi, "first_touch_ns", "ns");
	hist_report_log2(&b->first, &b->roi, "first_touch_ns");
	hist_report(&b->again, &b->roi, "again_ns", "ns");
	if (b->retouch) {
		hist_report(&b->retouched, &b->roi, "retouch_ns", "ns");
		hist_report_log2(&b->retouched, &b->roi, "retouch_ns");
	}
	part = second_level(b);
	roi_report(&b->roi, "first_touch_slow", b->slow, "pages");
	roi_report_f(&b->roi, "second_level_ns", (double)part, "ns");
	printf("first-touch: pages=%zu slow=%zu first_median=%lluns again_median=%lluns second_level=%lldns",
	       b->pages, b->slow, (unsigned long long)hist_quantile(&b->first, 0.5),
	       (unsigned long long)hist_quantile(&b->again, 0.5), (long long)part);
	if (b->retouch)
		printf(" retouch_median=%lluns retouch_p99=%lluns",
		       (unsigned long long)hist_quantile(&b->retouched, 0.5),
		       (unsigned long long)hist_quantile(&b->retouched, 0.99));
	putchar('\n');
}

static void usage(int status) __attribute__((noreturn));

static void usage(int status)
{
	fprintf(status ? stderr : stdout,
		"usage: first-touch [--size BYTES] [--fresh N] [--cpu N] [--retouch N] [--gap TIME]\n"
		"Times one write to each page of fresh memory.\n"
		"  --size BYTES   memory to touch at most (64MiB, or a quarter of what is free)\n"
		"  --fresh N      stop after N touches slow enough for memory never touched (256); 0: touch all\n"
		"  --cpu N        run there; memory comes from its node (0)\n"
		"  --retouch N    then touch the same pages N times more; the marks are around these\n"
		"  --gap TIME     sleep before each of them\n");
	exit(status);
}

static void parse_args(struct bench *b, int argc, char **argv)
{
	static const struct option options[] = {
		{ "size", required_argument, NULL, 's' },
		{ "fresh", required_argument, NULL, 'f' },
		{ "cpu", required_argument, NULL, 'c' },
		{ "retouch", required_argument, NULL, 'r' },
		{ "gap", required_argument, NULL, 'g' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	u64 n;
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == 's' && parse_size(optarg, &n) && n >= PAGE_BYTES)
			b->bytes = n;
		else if (c == 'f' && parse_u64(optarg, 0, SIZE_MAX, &n))
			b->fresh = n;
		else if (c == 'c' && parse_u64(optarg, 0, CPU_MAX - 1, &n))
			b->cpu = (u32)n;
		else if (c == 'r' && parse_u64(optarg, 1, 1000000, &n))
			b->retouch = (u32)n;
		else if (c == 'g' && parse_time(optarg, &b->gap_ns))
			continue;
		else
			usage(c == 'h' ? EXIT_OK : EXIT_USAGE);
	}
	if (optind != argc)
		usage(EXIT_USAGE);
}

int main(int argc, char **argv)
{
	struct bench b = { .fresh = 256 };
	u64 available = memory_available();
	size_t room;
	int ret;

	parse_args(&b, argc, argv);
	if (!b.bytes)
		b.bytes = available / 4 < SIZE_DEFAULT ? available / 4 : SIZE_DEFAULT;
	b.bytes -= b.bytes % PAGE_BYTES;
	if (b.bytes > available)
		die(EXIT_USAGE, "%zu MiB do not fit the %llu MiB that are available", b.bytes >> 20,
		    (unsigned long long)available >> 20);
	ret = cpu_bind(b.cpu);
	if (ret) {
		errno = -ret;
		die_errno(EXIT_USAGE, "CPU %u", b.cpu);
	}
	if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) && errno != EINVAL)
		die_errno(EXIT_MISMATCH, "transparent huge pages cannot be turned off");
	roi_init(&b.roi);
	room = b.bytes / PAGE_BYTES;
	hist_init(&b.first, room);
	hist_init(&b.last, room);
	hist_init(&b.again, room);
	hist_init(&b.retouched, room * b.retouch);
	run(&b);
	report(&b);
	return EXIT_OK;
}
