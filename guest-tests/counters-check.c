// SPDX-License-Identifier: GPL-2.0-only
/*
 * counters-check: a fixed pattern of faults, context switches and TLB
 * shootdowns, and then: do the patched kernel's counters (debugfs
 * faultbed/counters, the same that the host reads) agree with the kernel's own
 * in /proc, with each other, and with what the pattern did?
 *
 * The two are not read at one instant, and a kernel is never quite idle, so each
 * comparison has a slack, which is printed with it. Exit 1 if one is beyond it.
 * The measured region is the pattern; `touched_pages`, `forced_switches` and
 * `forced_shootdowns` are reported for the host's own comparison.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "lib/cpu.h"
#include "lib/roi.h"
#include "lib/util.h"

#define COUNTERS_FILE	"/sys/kernel/debug/faultbed/counters"
#define TOUCH_PAGES	4096u
#define SWITCHES	2000u
#define SHOOTDOWNS	100u
#define HELPERS_MAX	3u

struct check {
	char *before, *after;	/* text of COUNTERS_FILE */
	size_t size;
	u32 nr_helpers;
	u32 stop;		/* (a) helpers end */
	u32 running;		/* (a) helpers that spin */
	u32 failed;
	struct roi roi;
};

static void read_counters(const struct check *c, char *text)
{
	int ret = read_file(COUNTERS_FILE, text, c->size);

	if (ret >= 0 && (size_t)ret < c->size - 1)
		return;
	errno = ret < 0 ? -ret : EFBIG;
	die_errno(EXIT_UNSUPPORTED, COUNTERS_FILE);
}

/* "NAME SUM CPU0 CPU1 ...": the sum. Exits if the kernel has no such counter. */
static u64 counter_sum(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (const char *p = text; p; p = strchr(p, '\n')) {
		if (*p == '\n')
			p++;
		if (!strncmp(p, name, len) && p[len] == ' ')
			return strtoull(p + len, NULL, 10);
	}
	die(EXIT_UNSUPPORTED, COUNTERS_FILE ": no counter %s", name);
}

/* Each line's sum must be that of its CPUs. */
static void check_sums(struct check *c)
{
	for (const char *p = c->after; *p; p = strchr(p, '\n') + 1) {
		char name[64];
		u64 sum, total = 0;
		int len = 0;
		char *end;

		if (sscanf(p, "%63s%n", name, &len) != 1)
			break;
		sum = strtoull(p + len, &end, 10);
		while (*end == ' ')
			total += strtoull(end + 1, &end, 10);
		/* Counting goes on between the two. */
		if (total < sum || total > sum + 64) {
			printf("FAIL %s: sum %llu, but its CPUs add up to %llu\n", name,
			       (unsigned long long)sum, (unsigned long long)total);
			c->failed++;
		}
		if (*end != '\n')
			break;
	}
}

static u64 delta(const struct check *c, const char *name)
{
	return counter_sum(c->after, name) - counter_sum(c->before, name);
}

/* --- the pattern --- */

static char *map_pages(u32 pages)
{
	char *p = mmap(NULL, (size_t)pages * PAGE_BYTES, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die_errno(EXIT_MISMATCH, "mmap");
	return p;
}

static void touch(char *p, u32 pages)
{
	for (u32 i = 0; i < pages; i++)
		*(volatile char *)(p + (size_t)i * PAGE_BYTES) = 1;
}

/* Pipe ping-pong between two threads of one CPU: each byte is a switch. */
struct pong {
	int in, out;
};

static void *pong_main(void *arg)
{
	struct pong *p = arg;
	char byte;

	if (cpu_bind(0))
		die(EXIT_MISMATCH, "CPU 0");
	while (read(p->in, &byte, 1) == 1)
		if (write(p->out, &byte, 1) != 1)
			break;
	return NULL;
}

struct switcher {
	int to[2], from[2];
	struct pong pong;
	pthread_t thread;
};

static void switcher_start(struct switcher *s)
{
	if (pipe(s->to) || pipe(s->from))
		die_errno(EXIT_MISMATCH, "pipe");
	s->pong = (struct pong){ .in = s->to[0], .out = s->from[1] };
	errno = pthread_create(&s->thread, NULL, pong_main, &s->pong);
	if (errno)
		die_errno(EXIT_MISMATCH, "thread");
}

static void switcher_run(struct switcher *s, u32 rounds)
{
	char byte = 0;

	for (u32 i = 0; i < rounds; i++)
		if (write(s->to[1], &byte, 1) != 1 || read(s->from[0], &byte, 1) != 1)
			die_errno(EXIT_MISMATCH, "pipe");
}

static void switcher_stop(struct switcher *s)
{
	close(s->to[1]);
	pthread_join(s->thread, NULL);
}

/* Runs in user mode on its CPU, so that the CPU must be told of each flush. */
struct helper {
	struct check *check;
	u32 cpu;
	pthread_t thread;
};

static void *helper_main(void *arg)
{
	struct helper *h = arg;
	int ret = cpu_bind(h->cpu);

	if (ret)
		die(EXIT_MISMATCH, "CPU %u: %s", h->cpu, strerror(-ret));
	__atomic_add_fetch(&h->check->running, 1, __ATOMIC_ACQ_REL);
	while (!__atomic_load_n(&h->check->stop, __ATOMIC_ACQUIRE))
		__builtin_ia32_pause();
	return NULL;
}

static void shoot_down(struct check *c, struct helper *helper, char *page)
{
	for (u32 i = 0; i < c->nr_helpers; i++) {
		errno = pthread_create(&helper[i].thread, NULL, helper_main, &helper[i]);
		if (errno)
			die_errno(EXIT_MISMATCH, "thread");
	}
	while (__atomic_load_n(&c->running, __ATOMIC_ACQUIRE) < c->nr_helpers)
		usleep(1000);
	for (u32 i = 0; i < SHOOTDOWNS; i++) {
		touch(page, 1);
		if (madvise(page, PAGE_BYTES, MADV_DONTNEED))
			die_errno(EXIT_MISMATCH, "madvise");
	}
	__atomic_store_n(&c->stop, 1, __ATOMIC_RELEASE);
	for (u32 i = 0; i < c->nr_helpers; i++)
		pthread_join(helper[i].thread, NULL);
}

static void run_pattern(struct check *c)
{
	struct helper helper[HELPERS_MAX];
	struct switcher s;
	char *pages = map_pages(TOUCH_PAGES);

	for (u32 i = 0; i < c->nr_helpers; i++)
		helper[i] = (struct helper){ .check = c, .cpu = i + 1 };
	switcher_start(&s);
	switcher_run(&s, 1);		/* it runs, and its stack is there */
	read_counters(c, c->before);
	roi_begin(&c->roi);
	touch(pages, TOUCH_PAGES);
	switcher_run(&s, SWITCHES);
	if (c->nr_helpers)
		shoot_down(c, helper, pages);
	roi_end(&c->roi);
	read_counters(c, c->after);
	switcher_stop(&s);
}

/* --- comparisons --- */

static void check_equal(struct check *c, const char *a_name, u64 a, const char *b_name, u64 b,
			u64 slack)
{
	u64 diff = a > b ? a - b : b - a;
	bool good = diff <= slack;

	printf("%s %s %llu = %s %llu (slack %llu)\n", good ? "ok  " : "FAIL", a_name,
	       (unsigned long long)a, b_name, (unsigned long long)b, (unsigned long long)slack);
	c->failed += !good;
}

static void check_at_least(struct check *c, const char *a_name, u64 a, const char *b_name, u64 b)
{
	bool good = a >= b;

	printf("%s %s %llu >= %s %llu\n", good ? "ok  " : "FAIL", a_name, (unsigned long long)a,
	       b_name, (unsigned long long)b);
	c->failed += !good;
}

static void check_faults(struct check *c)
{
	u64 faults = delta(c, "guest_page_faults"), entries = delta(c, "pf_entries");
	u64 done = TOUCH_PAGES + (c->nr_helpers ? SHOOTDOWNS : 0);

	/* Threads' stacks and the like, little next to the pattern. */
	check_at_least(c, "guest_page_faults", faults, "pages touched", done);
	check_equal(c, "guest_page_faults", faults, "pages touched", done, 128);
	check_equal(c, "guest_page_faults", faults, "pgfault@/proc/vmstat",
		    roi_delta(&c->roi, PROCSTAT_VMSTAT, "pgfault"), 32);
	check_equal(c, "guest_page_faults", faults, "minor + major + error",
		    delta(c, "guest_page_faults_minor") + delta(c, "guest_page_faults_major") +
			    delta(c, "pf_error"),
		    8);
	check_equal(c, "pf_entries", entries, "user + kernel",
		    delta(c, "pf_user") + delta(c, "pf_kernel"), 8);
	check_equal(c, "pf_entries", entries, "read + write + exec",
		    delta(c, "pf_read") + delta(c, "pf_write") + delta(c, "pf_exec"), 8);
	check_at_least(c, "pf_write", delta(c, "pf_write"), "pages touched", done);
	check_at_least(c, "pf_anon", delta(c, "pf_anon"), "pages touched", done);
}

static void check_switches(struct check *c)
{
	u64 switches = delta(c, "context_switches");

	check_at_least(c, "context_switches", switches, "switches forced", 2 * SWITCHES);
	check_equal(c, "context_switches", switches, "ctxt@/proc/stat",
		    roi_delta(&c->roi, PROCSTAT_STAT, "ctxt"), 100 + switches / 50);
}

static void check_shootdowns(struct check *c)
{
	u64 targets = delta(c, "tlb_shootdown_targets"), received = delta(c, "tlb_flush_received");
	u64 shootdowns = delta(c, "tlb_shootdowns"), kernel = delta(c, "tlb_kernel_shootdowns");
	u64 remote = roi_delta(&c->roi, PROCSTAT_VMSTAT, "nr_tlb_remote_flush");

	check_equal(c, "tlb_shootdown_targets", targets, "ipis sent + coalesced + polling",
		    delta(c, "tlb_shootdown_ipis_sent") + delta(c, "tlb_shootdown_ipis_coalesced") +
		    delta(c, "tlb_shootdown_ipis_polling"), 8);
	check_equal(c, "tlb_flush_received", received, "tlb_shootdown_targets", targets, 16);
	check_equal(c, "tlb_flush_received", received, "TLB@/proc/interrupts",
		    roi_delta(&c->roi, PROCSTAT_INTERRUPTS, "TLB"), 32);
	/* A kernel without DEBUG_TLBFLUSH has no such line. */
	if (remote)
		check_equal(c, "tlb_shootdowns + kernel's", shootdowns + kernel,
			    "nr_tlb_remote_flush@/proc/vmstat", remote, kernel + 16);
	if (!c->nr_helpers)
		return;
	check_at_least(c, "tlb_shootdowns", shootdowns, "shootdowns forced", SHOOTDOWNS);
	/* A helper off its CPU when a flush comes is lazy or gone, but still in the mask. */
	check_at_least(c, "targets + lazy + gone",
		       targets + delta(c, "tlb_shootdown_ipis_skipped_lazy") +
		       delta(c, "tlb_shootdown_ipis_skipped_gone"),
		       "shootdowns forced x helpers", (u64)SHOOTDOWNS * c->nr_helpers);
}

int main(int argc, char **argv)
{
	struct check *c = calloc(1, sizeof(*c));
	struct cpu_map *map = calloc(1, sizeof(*map));

	if (!c || !map)
		die(EXIT_MISMATCH, "no memory");
	if (argc > 1)
		die(EXIT_USAGE, "usage: counters-check   (no arguments)");
	if (access(COUNTERS_FILE, R_OK))
		die_errno(EXIT_UNSUPPORTED,
			  COUNTERS_FILE " (a kernel without the faultbed patches?)");
	if (cpu_map_read(map))
		die(EXIT_UNSUPPORTED, "/sys/devices/system/cpu cannot be read");
	c->nr_helpers = map->nr - 1 < HELPERS_MAX ? map->nr - 1 : HELPERS_MAX;
	/* A line is a name and a number of up to 20 digits for each CPU. */
	c->size = 65536 + 1024 * (size_t)map->nr;
	c->before = calloc(1, c->size);
	c->after = calloc(1, c->size);
	if (!c->before || !c->after)
		die(EXIT_MISMATCH, "no memory");
	memset(c->before, 1, c->size);
	memset(c->after, 1, c->size);
	if (cpu_bind(0))
		die(EXIT_MISMATCH, "CPU 0");
	if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) && errno != EINVAL)
		die_errno(EXIT_MISMATCH, "transparent huge pages cannot be turned off");
	roi_init(&c->roi);
	run_pattern(c);

	roi_send_counters(&c->roi);
	roi_report(&c->roi, "touched_pages", TOUCH_PAGES + (c->nr_helpers ? SHOOTDOWNS : 0),
		   "pages");
	roi_report(&c->roi, "forced_switches", 2 * SWITCHES, "events");
	roi_report(&c->roi, "forced_shootdowns", c->nr_helpers ? SHOOTDOWNS : 0, "events");
	check_sums(c);
	check_faults(c);
	check_switches(c);
	check_shootdowns(c);
	printf("COUNTERS %s failed=%u helpers=%u\n", c->failed ? "WRONG" : "OK", c->failed,
	       c->nr_helpers);
	return c->failed ? EXIT_MISMATCH : EXIT_OK;
}
