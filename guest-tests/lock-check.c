// SPDX-License-Identifier: GPL-2.0-only
/*
 * lock-check: do the patched kernel's figures of mmap_lock agree with what was
 * done, and does the lock of a file's mappings stay one lock while its knob is turned?
 *
 * mmap_lock (knob mmap_lock_stat, debugfs faultbed/mmap_lock):
 *   calls      one thread makes known numbers of system calls that take the lock
 *              for reading, for writing, or for both: acquisitions to the number, none
 *              contended
 *   contend    several threads map and unmap: every acquisition is there, and
 *              writers, who exclude each other, hold the lock for no longer than
 *              the clock went on
 *   fork       copies many page tables under the lock: the longest hold is nearly as long as the
 *              fork, and so is the longest wait of the thread that wanted to read
 *
 * i_mmap (knob i_mmap): processes map and unmap pages of one file, for which writers
 * take the lock, others truncate it, for which readers do, and the knob goes
 * round. All of them must come to their end, with no hint of the kernel that a
 * lock was released in another way than taken (init reports those), and acquisitions
 * must be as many as were made.
 *
 * Knobs are as before at the end. Exit 1 if a figure is wrong.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/roi.h"
#include "lib/util.h"

#define DEBUGFS		"/sys/kernel/debug/faultbed/"
#define KNOBS		DEBUGFS "knobs/"
#define CALLS		1000u
#define THREADS_MAX	4u
#define LOOPS		500u
#define FORK_BYTES	(48u << 20)
#define FLIPS		60u
#define MAPPERS		3u
#define VALUE_MAX	64

/* Threads come and go, and init may wake up: acquisitions nobody here made. */
#define SLACK		50u

struct check {
	char text[2048];	/* of DEBUGFS "mmap_lock" */
	char counters[256 << 10];	/* of DEBUGFS "counters" */
	u32 failed;
	u32 threads;
	u32 stop;		/* (a) */
	u32 ready;		/* (a) */
};

static void set(const char *path, const char *value)
{
	int ret = write_file(path, value);

	if (ret) {
		errno = -ret;
		die_errno(EXIT_UNSUPPORTED, "%s: %s", path, value);
	}
}

static void get(const char *path, char *value)
{
	int ret = read_line(path, value, VALUE_MAX);

	if (ret < 0) {
		errno = -ret;
		die_errno(EXIT_UNSUPPORTED, "%s", path);
	}
}

/* A name at the begin of a line, and the number behind it. */
static u64 figure(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (const char *p = text; p && *p; p = strchr(p, '\n'), p = p ? p + 1 : p)
		if (!strncmp(p, name, len) && p[len] == ' ')
			return strtoull(p + len, NULL, 10);
	die(EXIT_UNSUPPORTED, "this kernel has no figure %s", name);
}

static u64 counter(struct check *c, const char *name)
{
	int ret = read_file(DEBUGFS "counters", c->counters, sizeof(c->counters));

	if (ret < 0) {
		errno = -ret;
		die_errno(EXIT_UNSUPPORTED, DEBUGFS "counters");
	}
	return figure(c->counters, name);
}

static void begin(void)
{
	set(DEBUGFS "mmap_lock", "0");
}

static void end(struct check *c)
{
	int ret = read_file(DEBUGFS "mmap_lock", c->text, sizeof(c->text));

	if (ret < 0) {
		errno = -ret;
		die_errno(EXIT_UNSUPPORTED, DEBUGFS "mmap_lock");
	}
}

static void expect(struct check *c, const char *part, const char *name, u64 least, u64 most)
{
	u64 n = figure(c->text, name);
	bool good = n >= least && n <= most;

	printf("%s %s: %s %llu, should be %llu to %llu\n", good ? "ok" : "FAIL", part, name,
	       (unsigned long long)n, (unsigned long long)least, (unsigned long long)most);
	c->failed += !good;
}

/* --- mmap_lock --- */

static void *map(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die_errno(EXIT_MISMATCH, "mmap");
	return p;
}

static void check_calls(struct check *c)
{
	char *p = map(PAGE_BYTES);
	unsigned char vec;

	*(volatile char *)p = 1;
	begin();
	for (u32 i = 0; i < CALLS; i++)
		if (mincore(p, PAGE_BYTES, &vec))
			die_errno(EXIT_MISMATCH, "mincore");
	end(c);
	expect(c, "mincore", "read", CALLS, CALLS + SLACK);
	expect(c, "mincore", "write", 0, SLACK);
	begin();
	for (u32 i = 0; i < CALLS; i++)
		if (mprotect(p, PAGE_BYTES, i & 1 ? PROT_READ : PROT_READ | PROT_WRITE))
			die_errno(EXIT_MISMATCH, "mprotect");
	end(c);
	expect(c, "mprotect", "read", 0, SLACK);
	expect(c, "mprotect", "write", CALLS, CALLS + SLACK);
	begin();
	for (u32 i = 0; i < CALLS; i++)
		munmap(map(PAGE_BYTES), PAGE_BYTES);
	end(c);
	/* Unmapping becomes a reader to give back the pages. */
	expect(c, "mmap, munmap", "read", CALLS, CALLS + SLACK);
	expect(c, "mmap, munmap", "write", 2 * CALLS, 2 * CALLS + SLACK);
	expect(c, "mmap, munmap", "write_contended", 0, SLACK);
	expect(c, "mmap, munmap", "read_hold_ns", 1, UINT64_MAX);
	expect(c, "mmap, munmap", "untimed", 0, 0);
	munmap(p, PAGE_BYTES);
}

static void wait_for_all(struct check *c)
{
	__atomic_add_fetch(&c->ready, 1, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(&c->ready, __ATOMIC_ACQUIRE) < c->threads)
		usleep(100);
}

static void *contend_main(void *arg)
{
	struct check *c = arg;

	wait_for_all(c);
	for (u32 i = 0; i < LOOPS; i++)
		munmap(map(PAGE_BYTES), PAGE_BYTES);
	return NULL;
}

static void start(struct check *c, pthread_t *thread, void *(*fn)(void *))
{
	int ret = pthread_create(thread, NULL, fn, c);

	if (ret) {
		errno = ret;
		die_errno(EXIT_MISMATCH, "thread");
	}
}

static void check_contend(struct check *c)
{
	u64 n = (u64)c->threads * LOOPS, ns = clock_ns();
	pthread_t thread[THREADS_MAX];

	c->ready = 0;
	begin();
	for (u32 i = 0; i < c->threads; i++)
		start(c, &thread[i], contend_main);
	for (u32 i = 0; i < c->threads; i++)
		pthread_join(thread[i], NULL);
	end(c);
	ns = clock_ns() - ns;
	expect(c, "threads", "write", 2 * n, 2 * n + SLACK);
	expect(c, "threads", "read", n, n + SLACK);
	expect(c, "threads", "write_hold_ns", 1, ns);
	expect(c, "threads", "write_hold_max_ns", 1, figure(c->text, "write_hold_ns"));
	expect(c, "threads", "read_hold_ns", 1, ns * c->threads);
	if (c->threads > 1) {
		expect(c, "threads", "write_contended", 1, 2 * n);
		expect(c, "threads", "write_wait_ns", 1, ns * c->threads);
		expect(c, "threads", "write_wait_max_ns", 1, ns);
	}
	expect(c, "threads", "untimed", 0, 0);
}

static void *reader_main(void *arg)
{
	struct check *c = arg;
	unsigned char vec;
	char *p = map(PAGE_BYTES);

	wait_for_all(c);
	while (!__atomic_load_n(&c->stop, __ATOMIC_RELAXED))
		mincore(p, PAGE_BYTES, &vec);
	return NULL;
}

/* The child's copy of the memory is not touched; what takes the time is in the fork. */
static void check_fork(struct check *c)
{
	char *p = map(FORK_BYTES);
	pthread_t thread;
	u64 ns;
	pid_t pid;

	for (size_t i = 0; i < FORK_BYTES; i += PAGE_BYTES)
		p[i] = 1;
	c->ready = 0;
	c->threads = 2;
	start(c, &thread, reader_main);
	wait_for_all(c);
	begin();
	ns = clock_ns();
	pid = fork();
	if (!pid)
		_exit(0);
	ns = clock_ns() - ns;
	end(c);
	__atomic_store_n(&c->stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	if (pid < 0 || waitpid(pid, NULL, 0) < 0)
		die_errno(EXIT_MISMATCH, "fork");
	expect(c, "fork", "write_hold_max_ns", ns / 2, ns);
	expect(c, "fork", "read_contended", 1, UINT64_MAX);
	expect(c, "fork", "read_wait_max_ns", ns / 2, ns);
	munmap(p, FORK_BYTES);
}

/* --- i_mmap --- */

static void map_file(int fd, u32 loops) __attribute__((noreturn));

static void map_file(int fd, u32 loops)
{
	for (u32 i = 0; i < loops; i++) {
		void *p = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

		if (p == MAP_FAILED || munmap(p, PAGE_BYTES))
			_exit(1);
	}
	_exit(0);
}

/* One mapping stays, or truncating would find nobody to tell. */
static void truncate_file(int fd, u32 loops) __attribute__((noreturn));

static void truncate_file(int fd, u32 loops)
{
	if (mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED)
		_exit(1);
	for (u32 i = 0; i < loops; i++)
		if (ftruncate(fd, 0) || ftruncate(fd, PAGE_BYTES))
			_exit(1);
	_exit(0);
}

static void check_flips(struct check *c)
{
	static const char *const arms[] = { "spin", "mutex", "rwsem" };
	char path[] = "/tmp/lock-check.XXXXXX";
	pid_t pid[MAPPERS + 2];
	u64 reads, writes, n;
	int fd = mkstemp(path), status;

	if (fd < 0 || ftruncate(fd, PAGE_BYTES))
		die_errno(EXIT_MISMATCH, "%s", path);
	unlink(path);
	reads = counter(c, "i_mmap_read");
	writes = counter(c, "i_mmap_write");
	for (u32 i = 0; i < MAPPERS + 2; i++) {
		pid[i] = fork();
		if (!pid[i] && i < MAPPERS)
			map_file(fd, 4 * LOOPS);
		if (!pid[i])
			truncate_file(fd, 4 * LOOPS);
		if (pid[i] < 0)
			die_errno(EXIT_MISMATCH, "fork");
	}
	for (u32 i = 0; i < FLIPS; i++) {
		set(KNOBS "i_mmap", arms[i % 3]);
		usleep(500);
	}
	for (u32 i = 0; i < MAPPERS + 2; i++) {
		if (waitpid(pid[i], &status, 0) < 0 || status) {
			printf("FAIL i_mmap: process %u ended with %x\n", i, (unsigned int)status);
			c->failed++;
		}
	}
	close(fd);
	n = counter(c, "i_mmap_write") - writes;
	snprintf(c->text, sizeof(c->text), "i_mmap_write %llu\ni_mmap_read %llu\n", (unsigned long long)n,
		 (unsigned long long)(counter(c, "i_mmap_read") - reads));
	/* Forks and exits, of the program's own file, are some tens each. */
	expect(c, "i_mmap", "i_mmap_write", 2ull * MAPPERS * 4 * LOOPS, 2ull * MAPPERS * 4 * LOOPS + 1000);
	/* Truncating a file that is mapped asks the mappings, once or twice. */
	expect(c, "i_mmap", "i_mmap_read", 2 * 4 * LOOPS, 2 * 2 * 2 * 4 * LOOPS + 1000);
}

int main(void)
{
	char stat[VALUE_MAX], i_mmap[VALUE_MAX], i_mmap_stat[VALUE_MAX];
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct check *c = calloc(1, sizeof(*c));

	if (!c)
		die(EXIT_MISMATCH, "no memory");
	if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) && errno != EINVAL)
		die_errno(EXIT_MISMATCH, "transparent huge pages cannot be turned off");
	get(KNOBS "mmap_lock_stat", stat);
	get(KNOBS "i_mmap", i_mmap);
	get(KNOBS "i_mmap_stat", i_mmap_stat);
	c->threads = cpus < THREADS_MAX ? (u32)cpus : THREADS_MAX;

	set(KNOBS "mmap_lock_stat", "time");
	check_calls(c);
	check_contend(c);
	if (cpus > 1)
		check_fork(c);
	set(KNOBS "mmap_lock_stat", stat);

	set(KNOBS "i_mmap_stat", "on");
	check_flips(c);
	set(KNOBS "i_mmap", i_mmap);
	set(KNOBS "i_mmap_stat", i_mmap_stat);
	puts(c->failed ? "LOCKS WRONG" : "LOCKS OK");
	return c->failed ? EXIT_MISMATCH : EXIT_OK;
}
