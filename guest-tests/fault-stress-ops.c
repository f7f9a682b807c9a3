// SPDX-License-Identifier: GPL-2.0-only
/*
 * fault-stress: the opponents. Each runs in a thread of its own, on any CPU.
 *
 * What an opponent checks is what the touchers cannot see: a page table entry
 * that is set too late, after memory was taken away or its rights were, shows
 * as contents that change or are not empty while no one may write there.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fault-stress.h"

/* Not in every C library's headers. */
#ifndef MADV_FREE
#define MADV_FREE		8
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE		25
#endif
#define MPOL_MF_MOVE		2
#define NR_PROCESS_MRELEASE	448
#define COMPACT			"/proc/sys/vm/compact_memory"
#define NODES_MAX		8

static size_t bytes_of(const struct region *r)
{
	return (size_t)r->pages * PAGE_BYTES;
}

static void must(int failed, const struct region *r, const char *what)
{
	if (failed)
		stress_fail(r, 0, "%s: %s", what, strerror(errno));
}

/* A moment in which others run. */
static void moment(u64 *rng)
{
	for (u32 i = rng_below(rng, 4); i; i--)
		sched_yield();
	if (!rng_below(rng, 4))
		usleep(rng_below(rng, 100));
}

static void must_be_empty(struct region *r, const char *when)
{
	for (u32 page = 0; page < r->pages; page += r->step)
		for (u32 i = 0; i < NR_PROBES; i++) {
			u64 value = *page_word(r, page, probe_word[i]);

			if (value)
				stress_fail(r, page, "word %u is %016llx %s", probe_word[i], (unsigned long long)value,
					    when);
		}
}

/* --- gone and made anew --- */

/* Pages of the whole region or a part of it become zeros. */
static void run_dontneed(struct stress *s, struct region *r, u64 *rng)
{
	u32 first = rng_below(rng, r->pages), n = 1 + rng_below(rng, r->pages - first);

	must(madvise(r->base + (size_t)first * PAGE_BYTES, (size_t)n * PAGE_BYTES, MADV_DONTNEED), r, "madvise");
	r->work += n;
}

static void run_free(struct stress *s, struct region *r, u64 *rng)
{
	u32 first = rng_below(rng, r->pages), n = 1 + rng_below(rng, r->pages - first);

	must(madvise(r->base + (size_t)first * PAGE_BYTES, (size_t)n * PAGE_BYTES, MADV_FREE), r, "madvise");
	r->work += n;
}

/*
 * Unmapped, in one go or from the middle, and mapped again, at first for reading only: nothing
 * of the old mapping is there, and nothing comes.
 */
static void run_munmap(struct stress *s, struct region *r, u64 *rng)
{
	size_t third = bytes_of(r) / 3 / PAGE_BYTES * PAGE_BYTES;

	if (rng_below(rng, 2))
		must(munmap(r->base + third, third), r, "munmap");
	must(munmap(r->base, bytes_of(r)), r, "munmap");
	moment(rng);
	must(mmap(r->base, bytes_of(r), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != r->base,
	     r, "mmap");
	must_be_empty(r, "in fresh memory");
	moment(rng);
	must_be_empty(r, "in fresh memory, later");
	must(mprotect(r->base, bytes_of(r), PROT_READ | PROT_WRITE), r, "mprotect");
	r->work += r->pages;
}

static const char *skip_replace(struct stress *s, struct region *r)
{
	r->fd = (int)syscall(SYS_memfd_create, "fault-stress", 0);
	if (r->fd < 0 || ftruncate(r->fd, (off_t)bytes_of(r)))
		return "no memfd";
	for (u32 page = 0; page < r->pages; page += r->step) {
		u64 words[WORDS];

		for (u32 w = 0; w < WORDS; w++)
			words[w] = pattern(s, KIND_FILE, r, page, w, 0);
		if (pwrite(r->fd, words, sizeof(words), (off_t)page * PAGE_BYTES) != sizeof(words))
			return "the memfd cannot be written";
	}
	return NULL;
}

static void must_be_file(struct stress *s, struct region *r, const char *when)
{
	for (u32 page = 0; page < r->pages; page += r->step)
		for (u32 i = 0; i < NR_PROBES; i++) {
			u64 value = *page_word(r, page, probe_word[i]);

			if (value != pattern(s, KIND_FILE, r, page, probe_word[i], 0))
				stress_fail(r, page, "word %u of the file is %016llx %s", probe_word[i],
					    (unsigned long long)value, when);
		}
}

/* Replaced by a file and back, each in one step. */
static void run_replace(struct stress *s, struct region *r, u64 *rng)
{
	must(mmap(r->base, bytes_of(r), PROT_READ, MAP_SHARED | MAP_FIXED, r->fd, 0) != r->base, r, "mmap");
	must_be_file(s, r, "at once");
	moment(rng);
	must_be_file(s, r, "later");
	must(mmap(r->base, bytes_of(r), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != r->base, r, "mmap");
	must_be_empty(r, "after the file");
	must(mprotect(r->base, bytes_of(r), PROT_READ | PROT_WRITE), r, "mprotect");
	r->work += r->pages;
}

/* --- rights --- */

static u64 contents(struct region *r)
{
	u64 sum = 0;

	for (u32 page = 0; page < r->pages; page += r->step)
		for (u32 i = 0; i < NR_PROBES; i++)
			sum = (sum ^ *page_word(r, page, probe_word[i])) * 0x100000001b3ull;
	return sum;
}

/* What may not be written does not change. */
static void run_mprotect(struct stress *s, struct region *r, u64 *rng)
{
	u64 before;

	pthread_mutex_lock(&r->lock);
	must(mprotect(r->base, bytes_of(r), PROT_READ), r, "mprotect");
	before = contents(r);
	moment(rng);
	if (contents(r) != before)
		stress_fail(r, 0, "read-only memory has changed");
	if (rng_below(rng, 2)) {
		must(mprotect(r->base, bytes_of(r), PROT_NONE), r, "mprotect");
		moment(rng);
		must(mprotect(r->base, bytes_of(r), PROT_READ), r, "mprotect");
		if (contents(r) != before)
			stress_fail(r, 0, "memory without any rights has changed");
	}
	pthread_mutex_unlock(&r->lock);
	/* In two steps: VMAs are split and merged. */
	if (rng_below(rng, 2) && r->pages > 2)
		must(mprotect(r->base + PAGE_BYTES, bytes_of(r) - 2 * PAGE_BYTES, PROT_READ | PROT_WRITE), r, "mprotect");
	must(mprotect(r->base, bytes_of(r), PROT_READ | PROT_WRITE), r, "mprotect");
	r->work += r->pages;
}

/* --- moved --- */

/* There and back. With R_ALONE page tables move as they are, else entry by entry. */
static void run_mremap(struct stress *s, struct region *r, u64 *rng)
{
	must(mremap(r->base, bytes_of(r), bytes_of(r), MREMAP_MAYMOVE | MREMAP_FIXED, r->elsewhere) != r->elsewhere, r,
	     "mremap");
	moment(rng);
	must(mremap(r->elsewhere, bytes_of(r), bytes_of(r), MREMAP_MAYMOVE | MREMAP_FIXED, r->base) != r->base, r,
	     "mremap");
	r->work += r->pages;
}

static const char *skip_migrate(struct stress *s, struct region *r)
{
	char path[64], line[64];

	while (r->nodes < NODES_MAX) {
		snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/cpulist", r->nodes);
		if (read_line(path, line, sizeof(line)) < 0)
			break;
		r->nodes++;
	}
	return r->nodes < 2 ? "one NUMA node" : NULL;
}

static void run_migrate(struct stress *s, struct region *r, u64 *rng)
{
	void *page[64];
	int node[64], status[64];
	u32 n = r->pages < 64 ? r->pages : 64, first = rng_below(rng, r->pages - n + 1);

	for (u32 i = 0; i < n; i++) {
		page[i] = r->base + (size_t)(first + i) * PAGE_BYTES;
		node[i] = (int)rng_below(rng, r->nodes);
		status[i] = -1;
	}
	must(syscall(SYS_move_pages, 0, (unsigned long)n, page, node, status, MPOL_MF_MOVE) < 0, r, "move_pages");
	for (u32 i = 0; i < n; i++)
		r->work += status[i] == node[i];
}

static const char *skip_compact(struct stress *s, struct region *r)
{
	return access(COMPACT, W_OK) ? "no " COMPACT : NULL;
}

static void run_compact(struct stress *s, struct region *r, u64 *rng)
{
	int ret = write_file(COMPACT, "1");

	errno = -ret;
	must(ret < 0, r, COMPACT);
	r->work++;
	usleep(2000);
}

/* --- huge pages --- */

static const char *skip_huge(struct stress *s, struct region *r)
{
	char line[64];

	return read_line("/sys/kernel/mm/transparent_hugepage/enabled", line, sizeof(line)) < 0 ? "no huge pages" : NULL;
}

/* Small pages become a huge one; touchers that give pages back split it again. */
static void run_collapse(struct stress *s, struct region *r, u64 *rng)
{
	/* It may fail for want of a page, or because someone holds one of the small ones. */
	if (!madvise(r->base, HUGE_BYTES, MADV_COLLAPSE))
		r->work++;
	else if (errno != EAGAIN && errno != EBUSY && errno != ENOMEM && errno != EINVAL)
		must(1, r, "MADV_COLLAPSE");
}

/* Now with huge pages, now without. */
static void run_huge(struct stress *s, struct region *r, u64 *rng)
{
	must(madvise(r->base, HUGE_BYTES, MADV_HUGEPAGE), r, "MADV_HUGEPAGE");
	/* What is touched next may be huge: there is no page table. */
	must(madvise(r->base, HUGE_BYTES, MADV_DONTNEED), r, "madvise");
	moment(rng);
	must(madvise(r->base, HUGE_BYTES, MADV_NOHUGEPAGE), r, "MADV_NOHUGEPAGE");
	if (rng_below(rng, 2))
		must(madvise(r->base, HUGE_BYTES, MADV_DONTNEED), r, "madvise");
	r->work++;
}

/* --- fork and exit --- */

/* Where a child could be refused, wait for a userfaultfd, or lose pages to reclaim. */
#define R_NOT_IN_CHILD	(R_SEGV | R_MARK | R_LAZY)

/* In the child: its memory has patterns of where they are or zeros, stays as it is, and can be written. */
static void child_main(struct stress *s)
{
	u64 before = 0, after = 0;

	for (u32 pass = 0; pass < 2; pass++) {
		for (u32 i = 0; i < s->nr_regions; i++) {
			struct region *r = &s->region[i];

			if (r->op->flags & R_NOT_IN_CHILD)
				continue;
			for (u32 page = 0; page < r->pages; page += r->step)
				for (u32 p = 0; p < NR_PROBES; p++) {
					u64 v = *page_word(r, page, probe_word[p]), *sum = pass ? &after : &before;
					u64 gen = (v ^ pattern(s, KIND_TOUCHER, r, page, probe_word[p], 0));

					if (v && gen >> 32)
						stress_fail(r, page, "in a child: word %u is %016llx", probe_word[p],
							    (unsigned long long)v);
					*sum = (*sum ^ v) * 0x100000001b3ull;
				}
		}
		if (!pass)
			usleep(1000);
	}
	if (before != after)
		stress_fail(NULL, 0, "a child's memory has changed");
	for (u32 i = 0; i < s->nr_regions; i++) {
		struct region *r = &s->region[i];

		if (r->op->flags & R_NOT_IN_CHILD)
			continue;
		for (u32 page = 0; page < r->pages; page += 3 * r->step)
			*page_word(r, page, 0) = pattern(s, KIND_CHILD, r, page, 0, 0);
		for (u32 page = 0; page < r->pages; page += 3 * r->step)
			if (*page_word(r, page, 0) != pattern(s, KIND_CHILD, r, page, 0, 0))
				stress_fail(r, page, "in a child: a write is lost");
	}
	_exit(EXIT_OK);
}

static void run_fork(struct stress *s, struct region *r, u64 *rng)
{
	pid_t pid = fork();
	int status;

	must(pid < 0, r, "fork");
	if (!pid)
		child_main(s);
	must(waitpid(pid, &status, 0) != pid, r, "waitpid");
	if (status)
		stress_fail(r, 0, "the child ended with status %d, signal %d", WEXITSTATUS(status), WTERMSIG(status));
	r->work++;
}

static const char *skip_exit(struct stress *s, struct region *r)
{
	ssize_t n = readlink("/proc/self/exe", s->exe, sizeof(s->exe) - 1);

	return n <= 0 ? "no /proc/self/exe" : NULL;
}

/* A process of many faulting threads is killed, and its memory taken while they may still run. */
static void run_exit(struct stress *s, struct region *r, u64 *rng)
{
	char seed[24];
	char *argv[] = { s->exe, (char *)"--seed", seed, (char *)"--victim", (char *)"4", NULL };
	pid_t pid;
	int status, fd;

	snprintf(seed, sizeof(seed), "%u", 1 + rng_below(rng, 1000000));
	pid = fork();
	must(pid < 0, r, "fork");
	if (!pid) {
		execv(s->exe, argv);
		_exit(EXIT_UNSUPPORTED);
	}
	usleep(2000 + rng_below(rng, 20000));
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	kill(pid, SIGKILL);
	/* Not where it is gone already. */
	if (fd >= 0 && !syscall(NR_PROCESS_MRELEASE, fd, 0))
		r->work++;
	if (fd >= 0)
		close(fd);
	must(waitpid(pid, &status, 0) != pid, r, "waitpid");
	/* It ends by itself now and then: exit while the other threads fault. */
	if (!(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) && !(WIFEXITED(status) && !WEXITSTATUS(status)))
		stress_fail(r, 0, "the victim ended with status %d, signal %d", WEXITSTATUS(status), WTERMSIG(status));
}

static char *victim_memory;

#define VICTIM_PAGES	256u

static void *victim_thread(void *arg)
{
	for (;;) {
		for (u32 i = 0; i < VICTIM_PAGES; i++)
			*(volatile char *)(victim_memory + (size_t)i * PAGE_BYTES) = 1;
		madvise(victim_memory, VICTIM_PAGES * PAGE_BYTES, MADV_DONTNEED);
	}
	return NULL;
}

void victim_main(u32 threads, u64 seed)
{
	pthread_t thread;

	victim_memory = mmap(NULL, VICTIM_PAGES * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (victim_memory == MAP_FAILED)
		die_errno(EXIT_MISMATCH, "mmap");
	for (u32 i = 0; i < threads; i++)
		if (pthread_create(&thread, NULL, victim_thread, NULL))
			die(EXIT_MISMATCH, "thread");
	usleep(1000 + (u32)(seed % 16) * 2000);
	_exit(EXIT_OK);
}

/* --- userfaultfd: the kernel's interface, which musl has no header for --- */

#define UFFD_API		0xaa
#define UFFD_MODE_MISSING	1
#define UFFD_EVENT_PAGEFAULT	0x12
#define UFFDIO_API		_IOWR(UFFD_API, 0x3f, struct uffdio_api)
#define UFFDIO_REGISTER		_IOWR(UFFD_API, 0x00, struct uffdio_register)
#define UFFDIO_UNREGISTER	_IOR(UFFD_API, 0x01, struct uffdio_range)
#define UFFDIO_COPY		_IOWR(UFFD_API, 0x03, struct uffdio_copy)

struct uffdio_api {
	u64 api, features, ioctls;
};

struct uffdio_range {
	u64 start, len;
};

struct uffdio_register {
	struct uffdio_range range;
	u64 mode, ioctls;
};

struct uffdio_copy {
	u64 dst, src, len, mode;
	s64 copy;
};

/* struct uffd_msg; of a page fault, what is needed here. */
struct uffd_message {
	u8 event, reserved1;
	u16 reserved2;
	u32 reserved3;
	u64 flags, address, thread;
} __attribute__((packed));

static const char *skip_uffd(struct stress *s, struct region *r)
{
	struct uffdio_api api = { .api = UFFD_API };

	r->fd = (int)syscall(SYS_userfaultfd, O_NONBLOCK | O_CLOEXEC);
	return r->fd < 0 || ioctl(r->fd, UFFDIO_API, &api) ? "no userfaultfd" : NULL;
}

/* Serve the faults there are. */
static void serve(struct stress *s, struct region *r)
{
	struct uffd_message msg;

	while (read(r->fd, &msg, sizeof(msg)) == sizeof(msg)) {
		u64 words[WORDS] __attribute__((aligned(PAGE_BYTES))) = { 0 };
		u64 address = msg.address & ~(u64)(PAGE_BYTES - 1);
		u32 page = (u32)((address - (uintptr_t)r->base) / PAGE_BYTES);
		struct uffdio_copy copy = { .dst = address, .src = (uintptr_t)words, .len = PAGE_BYTES };

		if (msg.event != UFFD_EVENT_PAGEFAULT || page >= r->pages)
			stress_fail(r, 0, "userfaultfd: event %u at %llx", msg.event, (unsigned long long)msg.address);
		words[MARKED_WORD] = pattern(s, KIND_SERVED, r, page, MARKED_WORD, 0);
		/* EEXIST: two threads fault at one page, and both are told of. */
		if (ioctl(r->fd, UFFDIO_COPY, &copy) && errno != EEXIST && errno != EAGAIN)
			must(1, r, "UFFDIO_COPY");
		r->work += copy.copy == PAGE_BYTES;
	}
}

/* While it is registered and after it was emptied, no page comes but from here. */
static void run_uffd(struct stress *s, struct region *r, u64 *rng)
{
	struct uffdio_register reg = { .mode = UFFD_MODE_MISSING };
	struct pollfd pfd = { .fd = r->fd, .events = POLLIN };
	unsigned char there[HUGE_PAGES];

	reg.range.start = (uintptr_t)r->base;
	reg.range.len = bytes_of(r);
	pthread_mutex_lock(&r->lock);
	must(ioctl(r->fd, UFFDIO_REGISTER, &reg), r, "UFFDIO_REGISTER");
	must(madvise(r->base, bytes_of(r), MADV_DONTNEED), r, "madvise");
	for (u32 i = 2 + rng_below(rng, 6); i; i--)
		if (poll(&pfd, 1, 1) > 0)
			serve(s, r);
	must(mincore(r->base, bytes_of(r), there), r, "mincore");
	for (u32 page = 0; page < r->pages; page += r->step)
		if (there[page] & 1 &&
		    *page_word(r, page, MARKED_WORD) != pattern(s, KIND_SERVED, r, page, MARKED_WORD, 0))
			stress_fail(r, page, "came while userfaultfd had to be asked, and was not");
	/* Who waits goes on, and finds fresh memory. */
	must(ioctl(r->fd, UFFDIO_UNREGISTER, &reg.range), r, "UFFDIO_UNREGISTER");
	pthread_mutex_unlock(&r->lock);
}

const struct opponent opponents[] = {
	{ "dontneed", R_ZERO, "pages given back under the touchers' hands", run_dontneed, NULL },
	{ "mprotect", R_SEGV, "pages read-only for a moment", run_mprotect, NULL },
	{ "replace", R_ZERO | R_SEGV | R_FILE, "pages replaced by a file's and back", run_replace, skip_replace },
	{ "migrate", 0, "pages moved to another node", run_migrate, skip_migrate },
	{ "mremap-pte", R_SEGV, "pages moved to another address, one by one", run_mremap, NULL },
	{ "free", R_ZERO | R_LAZY, "pages marked as free", run_free, NULL },
	{ "fork", 0, "children that looked and wrote", run_fork, NULL },
	{ "uffd", R_ZERO | R_MARK, "faults served by userfaultfd", run_uffd, skip_uffd },
	{ "compact", 0, "compactions of all memory", run_compact, skip_compact },
	{ "exit", 0, "dying processes reaped", run_exit, skip_exit },
	{ "munmap", R_ZERO | R_SEGV | R_ALONE, "pages unmapped and mapped again", run_munmap, NULL },
	{ "mremap", R_SEGV | R_ALONE, "pages moved to another address with their page table", run_mremap, NULL },
	{ "collapse", R_ALONE, "huge pages made of small ones", run_collapse, skip_huge },
	{ "huge", R_ZERO | R_ALONE, "changes between huge and small pages", run_huge, skip_huge },
};

const u32 nr_opponents = sizeof(opponents) / sizeof(opponents[0]);
