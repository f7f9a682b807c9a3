// SPDX-License-Identifier: GPL-2.0-only
/*
 * mmap-file TASKS LOOPS [--scale F] [--warmup N]: TASKS processes map one page of the same
 * file and unmap it again, LOOPS times each, all on the lock of the file's mappings.
 * After the load of Peter Zijlstra's figures for that lock as a spinlock and as a
 * mutex (linux-kernel, 2011-04-21), which ran "mmap-file 48 50000".
 *
 * The parent forks all tasks, which begin at once, and waits for one after the
 * other. The marks are around that. Nothing is bound to a CPU and the page is never
 * touched. The figures are what perf stat and time print of such a run: page faults
 * and context switches of the parent, CPU time of all. Only the start of
 * the program is left out, which is the same for any number of tasks.
 *
 * A fork makes the parent's memory read-only, so each page that it writes between two
 * forks is a fault. It wrote three then: its stack, its thread's control block (where
 * the C library of the time changed and restored a cached pid) and that
 * library's data. Today's library writes to the stack alone, so two pages of the parent's own
 * are written in the others' place: the fork is to cost what it did. The stack is moved to
 * begin at a page's end, or address space randomization would make it two in some runs.
 *
 * --scale F makes it F * LOOPS loops, to the nearest, and reports F. --warmup N has as many tasks do N
 * loops each before the marks, so that the measured part begins with caches, free lists and page tables as a repeat
 * of the whole program finds them.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/roi.h"
#include "lib/util.h"

#define TASKS_MAX	4096u
#define LOOPS_MAX	100000000u

/* The tasks so far: two pages are written for each. */
struct started {
	u32 nr;
	pid_t pid[TASKS_MAX] __attribute__((aligned(PAGE_BYTES)));
};

struct load {
	u32 tasks;
	u64 loops;		/* of each task, scaled */
	u64 warmup;		/* the same, before the marks; 0: no warm-up */
	double scale;
	const char *path;	/* NULL: a file of our own, unlinked at once */
	int fd;
	u64 *done;		/* loops each task completed, in memory they share */
	struct started *started;	/* in memory that the parent alone writes */
	struct roi roi;
	struct rusage before, children_before, self, children;
};

static void open_file(struct load *l)
{
	char own[] = "/tmp/mmap-file.XXXXXX";

	l->fd = l->path ? open(l->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : mkstemp(own);
	if (l->fd < 0)
		die_errno(EXIT_MISMATCH, "%s", l->path ? l->path : own);
	if (!l->path)
		unlink(own);
	if (ftruncate(l->fd, PAGE_BYTES))
		die_errno(EXIT_MISMATCH, "one page of a file");
}

static void map_counts(struct load *l)
{
	size_t bytes = l->tasks * sizeof(*l->done);

	l->done = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (l->done == MAP_FAILED)
		die_errno(EXIT_MISMATCH, "memory for %u tasks", l->tasks);
	memset(l->done, 0, bytes);
	bytes = sizeof(*l->started);
	l->started = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (l->started == MAP_FAILED)
		die_errno(EXIT_MISMATCH, "memory for %u tasks", l->tasks);
	memset(l->started, 0, bytes);
}

/* A task. Ends without a word to stdio, which is the parent's. */
static void loop(const struct load *l, u32 task, u64 loops) __attribute__((noreturn));

static void loop(const struct load *l, u32 task, u64 loops)
{
	u64 i;

	for (i = 0; i < loops; i++) {
		void *p = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, l->fd, 0);

		if (p == MAP_FAILED || munmap(p, PAGE_BYTES))
			break;
	}
	l->done[task] = i;
	_exit(i == loops ? EXIT_OK : EXIT_MISMATCH);
}

/* Children that a failure leaves behind are killed by init with the command's process group. */
static void __attribute__((noinline)) start_tasks(struct load *l, u64 loops)
{
	struct started *s = l->started;

	for (s->nr = 0; s->nr < l->tasks; s->nr++) {
		pid_t pid = fork();

		if (!pid)
			loop(l, s->nr, loops);
		if (pid < 0)
			die_errno(EXIT_MISMATCH, "task %u of %u", s->nr, l->tasks);
		s->pid[s->nr] = pid;
	}
}

/* True if all ended well. */
static bool __attribute__((noinline)) wait_for_tasks(const struct load *l)
{
	bool good = true;
	int status;

	for (u32 i = 0; i < l->started->nr; i++) {
		while (waitpid(l->started->pid[i], &status, 0) < 0)
			if (errno != EINTR)
				die_errno(EXIT_MISMATCH, "task %u", i);
		good &= !status;
	}
	return good;
}

static void run(struct load *l)
{
	/* What is called from here has a page of the stack to itself, but for what is longer than one. */
	volatile char *above = __builtin_alloca((uintptr_t)__builtin_frame_address(0) % PAGE_BYTES + 16);
	bool good = true;

	above[0] = 0;
	if (l->warmup) {
		start_tasks(l, l->warmup);
		good = wait_for_tasks(l);
	}
	roi_begin(&l->roi);
	/* Twice: what a fork of the warm-up made read-only, and this writes, is a fault of none of the tasks. */
	for (int i = 0; i < 2; i++) {
		getrusage(RUSAGE_CHILDREN, &l->children_before);
		getrusage(RUSAGE_SELF, &l->before);
	}
	start_tasks(l, l->loops);
	good &= wait_for_tasks(l);
	getrusage(RUSAGE_SELF, &l->self);
	getrusage(RUSAGE_CHILDREN, &l->children);
	roi_end(&l->roi);
	if (!good)
		die(EXIT_MISMATCH, "a task could not map the file, or was killed");
}

static u64 us(const struct timeval *t)
{
	return (u64)t->tv_sec * 1000000u + (u64)t->tv_usec;
}

static void report(struct load *l)
{
	u64 user = us(&l->self.ru_utime) - us(&l->before.ru_utime) +
		   us(&l->children.ru_utime) - us(&l->children_before.ru_utime);
	u64 system = us(&l->self.ru_stime) - us(&l->before.ru_stime) +
		     us(&l->children.ru_stime) - us(&l->children_before.ru_stime);
	u64 faults = (u64)(l->self.ru_minflt + l->self.ru_majflt - l->before.ru_minflt - l->before.ru_majflt);
	u64 switches = (u64)(l->self.ru_nvcsw + l->self.ru_nivcsw - l->before.ru_nvcsw - l->before.ru_nivcsw);
	u64 ns = roi_ns(&l->roi), done = 0;
	double real_us = (double)ns / 1e3;

	for (u32 i = 0; i < l->tasks; i++)
		done += l->done[i];
	roi_send_counters(&l->roi);
	roi_report(&l->roi, "tasks", l->started->nr, "tasks");
	roi_report(&l->roi, "loops", l->loops, "loops");
	roi_report(&l->roi, "loops_done", done, "loops");
	roi_report_f(&l->roi, "scale_ppm", l->scale * 1e6, "ppm");
	roi_report(&l->roi, "parent_page_faults", faults, "faults");
	roi_report(&l->roi, "parent_context_switches", switches, "switches");
	roi_report(&l->roi, "voluntary_switches", (u64)(l->children.ru_nvcsw - l->children_before.ru_nvcsw), "switches");
	roi_report(&l->roi, "involuntary_switches", (u64)(l->children.ru_nivcsw - l->children_before.ru_nivcsw), "switches");
	roi_report(&l->roi, "user_us", user, "us");
	roi_report(&l->roi, "system_us", system, "us");
	roi_report_f(&l->roi, "real_us", real_us, "us");
	roi_report_f(&l->roi, "kernel_cpus_busy", (double)system / real_us, "CPUs");
	roi_report_f(&l->roi, "cpus_busy", (double)(user + system) / real_us, "CPUs");
	printf("mmap-file: tasks=%u loops=%llu parent_page_faults=%llu parent_context_switches=%llu"
	       " real=%.6f user=%.6f sys=%.6f\n",
	       l->tasks, (unsigned long long)l->loops, (unsigned long long)faults,
	       (unsigned long long)switches, (double)ns / 1e9, (double)user / 1e6, (double)system / 1e6);
}

static void usage(int status) __attribute__((noreturn));

static void usage(int status)
{
	fprintf(status ? stderr : stdout,
		"usage: mmap-file TASKS LOOPS [--scale F] [--warmup N] [--file PATH]\n"
		"TASKS processes map one page of a file, shared and writable, and unmap it, LOOPS times each.\n"
		"  --scale F      F * LOOPS times instead; 0 < F <= 1\n"
		"  --warmup N     and N times by as many tasks before, unmeasured\n"
		"  --file PATH    the file, made if it is not there; default: one in /tmp\n");
	exit(status);
}

static bool parse_scale(const char *text, double *scale)
{
	char *end;

	errno = 0;
	*scale = strtod(text, &end);
	return !errno && end != text && !*end && *scale > 0 && *scale <= 1;
}

static void parse_args(struct load *l, int argc, char **argv)
{
	static const struct option options[] = {
		{ "scale", required_argument, NULL, 's' },
		{ "warmup", required_argument, NULL, 'w' },
		{ "file", required_argument, NULL, 'f' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	u64 tasks;
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == 's' && parse_scale(optarg, &l->scale))
			continue;
		else if (c == 'w' && parse_u64(optarg, 0, LOOPS_MAX, &l->warmup))
			continue;
		else if (c == 'f')
			l->path = optarg;
		else
			usage(c == 'h' ? EXIT_OK : EXIT_USAGE);
	}
	if (optind != argc - 2 || !parse_u64(argv[optind], 1, TASKS_MAX, &tasks) ||
	    !parse_u64(argv[optind + 1], 1, LOOPS_MAX, &l->loops))
		usage(EXIT_USAGE);
	l->tasks = (u32)tasks;
	l->loops = (u64)((double)l->loops * l->scale + 0.5);
	if (!l->loops)
		die(EXIT_USAGE, "--scale %g leaves no loop", l->scale);
}

int main(int argc, char **argv)
{
	struct load l = { .scale = 1 };

	parse_args(&l, argc, argv);
	open_file(&l);
	map_counts(&l);
	roi_init(&l.roi);
	run(&l);
	report(&l);
	return EXIT_OK;
}
