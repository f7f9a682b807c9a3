// SPDX-License-Identifier: GPL-2.0-only
/*
 * switch-pingpong [--count N]: two processes on one CPU wake each other by eventfds, N times each
 * way. Each wake-up is a context switch to another address space and nothing else: what a switch costs, in
 * instructions where the engine counts them.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/cpu.h"
#include "lib/roi.h"
#include "lib/util.h"

#define COUNT_DEFAULT	10000u
#define WARM_UP		200u

struct ball {
	int there, back;	/* eventfds */
};

static void put(int fd)
{
	u64 one = 1;

	if (write(fd, &one, sizeof(one)) != sizeof(one))
		die_errno(EXIT_MISMATCH, "eventfd");
}

static void take(int fd)
{
	u64 n;

	if (read(fd, &n, sizeof(n)) != sizeof(n) || n != 1)
		die_errno(EXIT_MISMATCH, "eventfd");
}

static void serve(const struct ball *b, u64 n)
{
	while (n--) {
		put(b->there);
		take(b->back);
	}
}

static void answer(const struct ball *b, u64 n)
{
	while (n--) {
		take(b->there);
		put(b->back);
	}
}

static void run(struct ball *b, u64 count)
{
	struct roi *roi = calloc(1, sizeof(*roi));
	int status;
	pid_t pid;

	if (!roi)
		die(EXIT_MISMATCH, "no memory");
	roi_init(roi);
	b->there = eventfd(0, 0);
	b->back = eventfd(0, 0);
	if (b->there < 0 || b->back < 0)
		die_errno(EXIT_UNSUPPORTED, "eventfd");
	pid = fork();
	if (pid < 0)
		die_errno(EXIT_MISMATCH, "fork");
	if (!pid) {
		answer(b, WARM_UP + count);
		_exit(EXIT_OK);
	}
	serve(b, WARM_UP);
	roi_begin(roi);
	serve(b, count);
	roi_end(roi);
	if (waitpid(pid, &status, 0) != pid || status)
		die(EXIT_MISMATCH, "the other process failed");
	roi_send_counters(roi);
	roi_report(roi, "switches", 2 * count, "switches");
	roi_report_f(roi, "switch_ns", (double)roi_ns(roi) / (2.0 * (double)count), "ns");
}

static void usage(int status) __attribute__((noreturn));

static void usage(int status)
{
	fprintf(status ? stderr : stdout,
		"usage: switch-pingpong [--count N]\n"
		"Two processes on one CPU that wake each other: context switches, and nothing else.\n"
		"  --count N   wake-ups each way (10000)\n");
	exit(status);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "count", required_argument, NULL, 'n' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	u64 count = COUNT_DEFAULT;
	struct ball ball;
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == 'h')
			usage(EXIT_OK);
		if (c != 'n' || !parse_u64(optarg, 1, 1u << 30, &count))
			usage(EXIT_USAGE);
	}
	if (optind != argc)
		usage(EXIT_USAGE);
	if (cpu_bind(0))
		die(EXIT_UNSUPPORTED, "CPU 0");
	run(&ball, count);
	return EXIT_OK;
}
