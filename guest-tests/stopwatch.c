// SPDX-License-Identifier: GPL-2.0-only
/*
 * stopwatch [--ram BYTES] [--timeout TIME] PATTERN COMMAND [ARG...]: starts a
 * command, waits until a line of its output contains PATTERN, prints how long
 * that took and how much memory the command then had, and kills it.
 *
 *   wall_ns=N guest_s=S rss_kib=N beyond_ram_kib=N
 *
 * wall_ns counts from just before fork() to the moment at which the line's last
 * byte was read. guest_s is what the line itself says in [brackets], as lines of a kernel's
 * console do; - if it does not. beyond_ram_kib is resident memory without the mappings that are
 * guest RAM, which are known by their size: a quarter of --ram or more. For
 * host-tools/bench.sh, which times VMMs by it.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/util.h"

#define LINE_BYTES	1024

static pid_t start(char **argv, int *out)
{
	int fd[2];
	pid_t pid;

	if (pipe(fd) < 0)
		die_errno(EXIT_MISMATCH, "pipe");
	pid = fork();
	if (pid < 0)
		die_errno(EXIT_MISMATCH, "fork");
	if (!pid) {
		dup2(fd[1], STDOUT_FILENO);
		dup2(fd[1], STDERR_FILENO);
		close(fd[0]);
		close(fd[1]);
		execvp(argv[0], argv);
		die_errno(127, "%s", argv[0]);
	}
	close(fd[1]);
	*out = fd[0];
	return pid;
}

/* Resident KiB of a process, in all and without mappings of `ram`/4 bytes or more. */
static void resident(pid_t pid, u64 ram, u64 *all, u64 *beyond)
{
	char path[64], line[512];
	unsigned long long from, to, kib;
	bool is_ram = false;
	FILE *f;

	*all = *beyond = 0;
	snprintf(path, sizeof(path), "/proc/%d/smaps", (int)pid);
	f = fopen(path, "re");
	if (!f)
		die_errno(EXIT_MISMATCH, "%s", path);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llx-%llx ", &from, &to) == 2) {
			is_ram = ram && to - from >= ram / 4;
		} else if (sscanf(line, "Rss: %llu kB", &kib) == 1) {
			*all += kib;
			if (!is_ram)
				*beyond += kib;
		}
	}
	fclose(f);
}

/* Read until a line that contains the pattern is complete. false at the end or the time-out. */
static bool wait_for(int fd, const char *pattern, u64 deadline, char line[LINE_BYTES])
{
	size_t len = 0;

	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		u64 now = clock_ns();
		char c;

		if (now >= deadline || poll(&p, 1, (int)((deadline - now) / 1000000) + 1) < 0)
			return false;
		if (!p.revents)
			continue;
		if (read(fd, &c, 1) != 1)
			return false;
		if (c != '\n') {
			if (len < LINE_BYTES - 1)
				line[len++] = c;
			continue;
		}
		line[len] = '\0';
		if (strstr(line, pattern))
			return true;
		/* For whoever has to find out why the line never came. */
		fprintf(stderr, "| %s\n", line);
		len = 0;
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "ram", required_argument, NULL, 'r' },
		{ "timeout", required_argument, NULL, 't' },
		{ NULL, 0, NULL, 0 },
	};
	u64 ram = 0, timeout = 300ull * 1000000000, begin, end, all = 0, beyond = 0;
	char line[LINE_BYTES], *bracket;
	double guest;
	bool found;
	pid_t pid;
	int opt, fd;

	while ((opt = getopt_long(argc, argv, "+r:t:", options, NULL)) != -1)
		if (!(opt == 'r' && parse_size(optarg, &ram)) && !(opt == 't' && parse_time(optarg, &timeout)))
			die(EXIT_USAGE, "usage: stopwatch [--ram BYTES] [--timeout TIME] PATTERN COMMAND [ARG...]");
	if (argc - optind < 2)
		die(EXIT_USAGE, "usage: stopwatch [--ram BYTES] [--timeout TIME] PATTERN COMMAND [ARG...]");
	begin = clock_ns();
	pid = start(argv + optind + 1, &fd);
	found = wait_for(fd, argv[optind], begin + timeout, line);
	end = clock_ns();
	if (found)
		resident(pid, ram, &all, &beyond);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	if (!found)
		die(EXIT_MISMATCH, "no line with \"%s\" in %.0f s", argv[optind], (double)(end - begin) / 1e9);
	bracket = strchr(line, '[');
	printf("wall_ns=%llu guest_s=", (unsigned long long)(end - begin));
	if (bracket && sscanf(bracket + 1, "%lf", &guest) == 1)
		printf("%.6f", guest);
	else
		printf("-");
	printf(" rss_kib=%llu beyond_ram_kib=%llu\n", (unsigned long long)all, (unsigned long long)beyond);
	return EXIT_OK;
}
