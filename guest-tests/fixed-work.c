// SPDX-License-Identifier: GPL-2.0-only
/*
 * fixed-work: the same page faults and TLB flushes on every CPU, engine and host, a part
 * at a time, and what the patched kernel counted over each. tests/guest/engines.sh runs
 * it on two engines and compares.
 *
 * One thread does the work, bound to CPU 0, with its address space where it always is
 * (no randomisation, by executing itself again), so that which pages share a page table, or
 * a window of fault-around, is the same each time. In the `remote` parts a thread
 * spins on each other CPU, so that each flush has to reach it.
 *
 * Starting those threads is no fixed work: some of them find a page of the others' in the
 * middle of being copied, or not. It is reported as a part of its own, `start`, so that it can be
 * taken off the whole.
 *
 * Each counter that has to be exact and moved is reported as PART.COUNTER. `targets` are
 * the CPUs that a shootdown had to consider, whatever became of it: a CPU that
 * happened to be in the kernel's idle or another thread when the flush came is skipped, or
 * flushes by itself later, and which of the two depends on time.
 *
 * With --untouched SIZE@ADDRESS nothing of that is done: the marks are around one write to
 * each page of that physical memory, which no one has touched before: boot with
 * memmap=SIZE$ADDRESS, so that the kernel leaves it alone (and has DEVMEM, without STRICT_DEVMEM).
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/cpu.h"
#include "lib/roi.h"
#include "lib/util.h"

#define COUNTERS_FILE	"/sys/kernel/debug/faultbed/counters"
#define PAGES_DEFAULT	512u
#define FLUSHES		50u
#define HELPERS_MAX	512u

struct work {
	u32 pages;
	char *text[2];		/* COUNTERS_FILE before and after a part */
	size_t size;
	char *map;		/* the part's memory */
	struct roi roi;
	struct cpu_map cpus;
	u32 running, stop;	/* (a) helpers */
};

static void read_counters(const struct work *w, char *text)
{
	int ret = read_file(COUNTERS_FILE, text, w->size);

	if (ret >= 0 && (size_t)ret < w->size - 1)
		return;
	errno = ret < 0 ? -ret : EFBIG;
	die_errno(EXIT_UNSUPPORTED, COUNTERS_FILE);
}

/* Those that say how often, not how it went: the rest depends on when the other CPUs do what. */
static bool exact(const char *name)
{
	return !strncmp(name, "pf_", 3) || !strncmp(name, "guest_page_faults", 17) ||
	       !strcmp(name, "tlb_shootdowns") || !strcmp(name, "tlb_shootdown_freed_tables");
}

/* A CPU that a shootdown considers is one of these. */
static bool target(const char *name)
{
	return !strcmp(name, "tlb_shootdown_targets") || !strcmp(name, "tlb_shootdown_ipis_skipped_lazy") ||
	       !strcmp(name, "tlb_shootdown_ipis_skipped_gone");
}

/* The next "NAME SUM CPU0 ..." of *text; false at its end. */
static bool next_counter(const char **text, char name[64], unsigned long long *sum)
{
	const char *p = *text, *nl = strchr(p, '\n');

	if (sscanf(p, "%63s %llu", name, sum) != 2)
		return false;
	*text = nl ? nl + 1 : p + strlen(p);
	return true;
}

static void report_part(const struct work *w, const char *part)
{
	const char *before = w->text[0], *after = w->text[1];
	unsigned long long old, new, targets = 0;
	char name[64], again[64], full[128];

	while (next_counter(&before, name, &old) && next_counter(&after, again, &new)) {
		if (strcmp(name, again))
			die(EXIT_MISMATCH, COUNTERS_FILE ": %s where %s was", again, name);
		if (target(name))
			targets += new - old;
		if (new == old || !exact(name))
			continue;
		snprintf(full, sizeof(full), "%s.%s", part, name);
		roi_report(&w->roi, full, new - old, "events");
	}
	snprintf(full, sizeof(full), "%s.targets", part);
	roi_report(&w->roi, full, targets, "events");
}

static char *map_pages(u32 pages, int prot)
{
	char *p = mmap(NULL, (size_t)pages * PAGE_BYTES, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die_errno(EXIT_MISMATCH, "mmap");
	return p;
}

static void check(int ret, const char *what)
{
	if (ret)
		die_errno(EXIT_MISMATCH, "%s", what);
}

static void write_pages(char *p, u32 pages)
{
	for (u32 i = 0; i < pages; i++)
		*(volatile char *)(p + (size_t)i * PAGE_BYTES) = 1;
}

static void read_pages(const char *p, u32 pages)
{
	for (u32 i = 0; i < pages; i++)
		(void)*(const volatile char *)(p + (size_t)i * PAGE_BYTES);
}

/* --- the parts --- */

static void part_write(struct work *w)
{
	write_pages(w->map, w->pages);
}

/* The zero page, and then pages of its own. */
static void part_read_write(struct work *w)
{
	read_pages(w->map, w->pages);
	write_pages(w->map, w->pages);
}

static void part_give_back(struct work *w)
{
	write_pages(w->map, w->pages);
	check(madvise(w->map, (size_t)w->pages * PAGE_BYTES, MADV_DONTNEED), "madvise");
	write_pages(w->map, w->pages);
}

static void part_protect(struct work *w)
{
	size_t bytes = (size_t)w->pages * PAGE_BYTES;

	write_pages(w->map, w->pages);
	check(mprotect(w->map, bytes, PROT_READ), "mprotect");
	read_pages(w->map, w->pages);
	check(mprotect(w->map, bytes, PROT_READ | PROT_WRITE), "mprotect");
	write_pages(w->map, w->pages);
}

/* Pages shared with a child are copied by whoever writes first; the other then owns them. */
static void part_fork(struct work *w)
{
	int status;
	pid_t pid;

	write_pages(w->map, w->pages);
	pid = fork();
	if (pid == 0) {
		write_pages(w->map, w->pages / 2);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		die_errno(EXIT_MISMATCH, "fork");
	write_pages(w->map, w->pages);
}

static void part_file(struct work *w)
{
	int fd = open("/tmp/fixed-work", O_RDWR | O_CREAT | O_TRUNC, 0600);
	size_t bytes = (size_t)w->pages * PAGE_BYTES;
	char *p, *q;

	if (fd < 0 || ftruncate(fd, (off_t)bytes))
		die_errno(EXIT_MISMATCH, "/tmp/fixed-work");
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	q = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED || q == MAP_FAILED)
		die_errno(EXIT_MISMATCH, "mmap");
	write_pages(p, w->pages);
	read_pages(q, w->pages);
	write_pages(q, w->pages);
	check(munmap(p, bytes), "munmap");
	check(munmap(q, bytes), "munmap");
	close(fd);
	unlink("/tmp/fixed-work");
}

/* The kernel's own accesses to user memory: copy_to_user(). */
static void part_kernel(struct work *w)
{
	int fd = open("/dev/zero", O_RDONLY);

	for (u32 i = 0; i < w->pages; i++)
		if (read(fd, w->map + (size_t)i * PAGE_BYTES, 8) != 8)
			die_errno(EXIT_MISMATCH, "/dev/zero");
	close(fd);
}

static void part_remote_give_back(struct work *w)
{
	for (u32 i = 0; i < FLUSHES; i++) {
		write_pages(w->map, 1);
		check(madvise(w->map, PAGE_BYTES, MADV_DONTNEED), "madvise");
	}
}

static void part_remote_protect(struct work *w)
{
	for (u32 i = 0; i < FLUSHES; i++) {
		write_pages(w->map, 8);
		check(mprotect(w->map, 8 * PAGE_BYTES, PROT_READ), "mprotect");
		check(mprotect(w->map, 8 * PAGE_BYTES, PROT_READ | PROT_WRITE), "mprotect");
	}
}

/* More pages than are flushed one by one, and their page table with them. */
static void part_remote_unmap(struct work *w)
{
	for (u32 i = 0; i < FLUSHES; i++) {
		char *p = map_pages(64, PROT_READ | PROT_WRITE);

		write_pages(p, 64);
		check(munmap(p, 64 * PAGE_BYTES), "munmap");
	}
}

static const struct part {
	const char *name;
	void (*run)(struct work *w);
	bool remote;
} parts[] = {
	{ "write", part_write, false },
	{ "read_write", part_read_write, false },
	{ "give_back", part_give_back, false },
	{ "protect", part_protect, false },
	{ "fork", part_fork, false },
	{ "file", part_file, false },
	{ "kernel", part_kernel, false },
	{ "remote_give_back", part_remote_give_back, true },
	{ "remote_protect", part_remote_protect, true },
	{ "remote_unmap", part_remote_unmap, true },
};

#define NR_PARTS	(sizeof(parts) / sizeof(parts[0]))

/* --- helpers --- */

struct helper {
	struct work *work;
	u32 cpu;
	pthread_t thread;
};

static void *helper_main(void *arg)
{
	struct helper *h = arg;

	if (cpu_bind(h->cpu))
		die(EXIT_MISMATCH, "CPU %u", h->cpu);
	__atomic_add_fetch(&h->work->running, 1, __ATOMIC_ACQ_REL);
	while (!__atomic_load_n(&h->work->stop, __ATOMIC_ACQUIRE))
		__builtin_ia32_pause();
	return NULL;
}

static u32 start_helpers(struct work *w, struct helper *helper)
{
	u32 n = 0;

	for (u32 cpu = 1; cpu < w->cpus.nr && n < HELPERS_MAX; cpu++) {
		if (!cpu_mask_test(&w->cpus.online, cpu))
			continue;
		helper[n] = (struct helper){ .work = w, .cpu = cpu };
		errno = pthread_create(&helper[n].thread, NULL, helper_main, &helper[n]);
		if (errno)
			die_errno(EXIT_MISMATCH, "thread");
		n++;
	}
	while (__atomic_load_n(&w->running, __ATOMIC_ACQUIRE) < n)
		usleep(1000);
	return n;
}

static void run_part(struct work *w, const struct part *part)
{
	/* Its page table is there, and so is the VMA's anon_vma: neither depends on neighbours then. */
	w->map = map_pages(w->pages + 1, PROT_READ | PROT_WRITE);
	write_pages(w->map + (size_t)w->pages * PAGE_BYTES, 1);
	read_counters(w, w->text[0]);
	part->run(w);
	read_counters(w, w->text[1]);
	munmap(w->map, (size_t)(w->pages + 1) * PAGE_BYTES);
}

static void run(struct work *w)
{
	struct helper *helper = calloc(HELPERS_MAX, sizeof(*helper));
	char *before[NR_PARTS + 1], *after[NR_PARTS + 1];	/* the last is the helpers' start */
	u32 helpers = 0;

	if (!helper)
		die(EXIT_MISMATCH, "no memory");
	for (size_t i = 0; i <= NR_PARTS; i++) {
		before[i] = malloc(w->size);
		after[i] = malloc(w->size);
		if (!before[i] || !after[i])
			die(EXIT_MISMATCH, "no memory");
		memset(before[i], 1, w->size);
		memset(after[i], 1, w->size);
	}
	roi_begin(&w->roi);
	for (size_t i = 0; i < NR_PARTS; i++) {
		if (parts[i].remote && !helpers) {
			w->text[0] = before[NR_PARTS];
			w->text[1] = after[NR_PARTS];
			read_counters(w, w->text[0]);
			helpers = start_helpers(w, helper);
			read_counters(w, w->text[1]);
		}
		w->text[0] = before[i];
		w->text[1] = after[i];
		run_part(w, &parts[i]);
	}
	roi_end(&w->roi);
	__atomic_store_n(&w->stop, 1, __ATOMIC_RELEASE);
	for (u32 i = 0; i < helpers; i++)
		pthread_join(helper[i].thread, NULL);
	roi_send_counters(&w->roi);
	roi_report(&w->roi, "helpers", helpers, "threads");
	for (size_t i = 0; i <= NR_PARTS; i++) {
		w->text[0] = before[i];
		w->text[1] = after[i];
		if (i < NR_PARTS)
			report_part(w, parts[i].name);
		else if (helpers)
			report_part(w, "start");
	}
	printf("fixed-work: pages=%u helpers=%u\n", w->pages, helpers);
}

static void run_untouched(struct work *w, u64 addr, u64 bytes)
{
	int fd = open("/dev/mem", O_RDWR);
	char *p;

	if (fd < 0)
		die_errno(EXIT_UNSUPPORTED, "/dev/mem (DEVMEM)");
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)addr);
	if (p == MAP_FAILED)
		die_errno(EXIT_UNSUPPORTED, "/dev/mem at %#llx", (unsigned long long)addr);
	roi_begin(&w->roi);
	write_pages(p, (u32)(bytes / PAGE_BYTES));
	roi_end(&w->roi);
	roi_send_counters(&w->roi);
	roi_report(&w->roi, "pages", bytes / PAGE_BYTES, "pages");
	printf("fixed-work: touched=%llu\n", (unsigned long long)(bytes / PAGE_BYTES));
}

static void usage(int status) __attribute__((noreturn));

static void usage(int status)
{
	fprintf(status ? stderr : stdout,
		"usage: fixed-work [--pages N] [--untouched SIZE@ADDRESS]\n"
		"Page faults and TLB flushes that are the same each time; reports what was counted over each part.\n"
		"  --pages N          pages of a part (512)\n"
		"  --untouched S@A    instead, write to each page of this physical memory (memmap=S$A)\n");
	exit(status);
}

static void parse_args(struct work *w, int argc, char **argv, u64 *addr, u64 *bytes)
{
	static const struct option options[] = {
		{ "pages", required_argument, NULL, 'p' },
		{ "untouched", required_argument, NULL, 'u' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	char *at, *end;
	u64 n;
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == 'p' && parse_u64(optarg, 8, 65536, &n)) {
			w->pages = (u32)n;
		} else if (c == 'u') {
			at = strchr(optarg, '@');
			if (!at)
				usage(EXIT_USAGE);
			*at = '\0';
			*addr = strtoull(at + 1, &end, 0);
			if (*end || *addr % PAGE_BYTES || !parse_size(optarg, bytes) || !*bytes)
				usage(EXIT_USAGE);
			*bytes = (*bytes + PAGE_BYTES - 1) & ~(u64)(PAGE_BYTES - 1);
		} else {
			usage(c == 'h' ? EXIT_OK : EXIT_USAGE);
		}
	}
	if (optind != argc)
		usage(EXIT_USAGE);
}

int main(int argc, char **argv)
{
	struct work *w = calloc(1, sizeof(*w));
	u64 addr = 0, bytes = 0;
	int persona = personality(0xffffffff);

	if (!w)
		die(EXIT_MISMATCH, "no memory");
	if (persona >= 0 && !(persona & ADDR_NO_RANDOMIZE) && personality((unsigned)persona | ADDR_NO_RANDOMIZE) >= 0) {
		execv("/proc/self/exe", argv);
		die_errno(EXIT_UNSUPPORTED, "/proc/self/exe");
	}
	w->pages = PAGES_DEFAULT;
	parse_args(w, argc, argv, &addr, &bytes);
	if (cpu_map_read(&w->cpus) || cpu_bind(0))
		die(EXIT_UNSUPPORTED, "CPU 0");
	if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) && errno != EINVAL)
		die_errno(EXIT_MISMATCH, "transparent huge pages cannot be turned off");
	roi_init(&w->roi);
	if (bytes) {
		run_untouched(w, addr, bytes);
		return EXIT_OK;
	}
	if (access(COUNTERS_FILE, R_OK))
		die_errno(EXIT_UNSUPPORTED, COUNTERS_FILE " (a kernel without the faultbed patches?)");
	/* A line is a name and a number of up to 20 digits for each CPU. */
	w->size = 65536 + 1024 * (size_t)w->cpus.nr;
	run(w);
	return EXIT_OK;
}
