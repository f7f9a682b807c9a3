// SPDX-License-Identifier: GPL-2.0-only
/*
 * ipi-pingpong: how long an IPI takes between two CPUs, by how far apart they
 * are, so that an injected IPI delay can be seen from inside the guest.
 *
 * A few pairs of each distance class (smt, socket, remote) are measured, and
 * one pair for each two nodes. With the project's kernel the latency is from
 * send to handler (debugfs faultbed/ipi_bench, one direction). Any other kernel
 * can only show a round trip: membarrier() from the source interrupts a thread
 * that spins on the target and waits for its answer, so it contains one IPI, the
 * handler, and the cache line that brings the answer back. The report's names
 * tell the two apart: ipi_CLASS_... or round_trip_CLASS_... .
 *
 * A class's figure is the median of its pairs' medians. ipi_events is how many
 * IPIs the measurement sent from source to target CPUs, for comparison with what the
 * host counted.
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/cpu.h"
#include "lib/hist.h"
#include "lib/roi.h"
#include "lib/util.h"

#define BENCH_FILE	"/sys/kernel/debug/faultbed/ipi_bench"
#define PAIRS_MAX	8u	/* of one class */
#define DONE_MAX	(NR_CPU_CLASSES * PAIRS_MAX + NODES_MAX * NODES_MAX)
#define NODES_MAX	8u	/* with more nodes, not each pair of them */

/* From <linux/membarrier.h>, which musl lacks. */
#define MEMBARRIER_PRIVATE_EXPEDITED		(1 << 3)
#define MEMBARRIER_REGISTER_PRIVATE_EXPEDITED	(1 << 4)

enum method {
	METHOD_AUTO,
	METHOD_KERNEL,
	METHOD_MEMBARRIER,
};

/* One pair's result. */
struct pair {
	u32 src, dst;
	u64 count, polled;
	u64 min, median, p90, max;
};

struct bench {
	enum method method;
	u32 count, pairs, gap_us;
	bool busy;
	u64 limit_ns;		/* of one pair, membarrier only */
	struct cpu_map map;
	struct roi roi;
	u64 events;		/* IPIs sent from source to target */
	u64 polled;		/* calls that needed none */
	struct hist class_median[NR_CPU_CLASSES];	/* of one pair each */
	int only_src, only_dst;	/* --pair, or -1 */
	struct pair done[DONE_MAX];	/* printed after the end mark */
	u32 nr_done;
};

/* --- by the kernel's helper --- */

/* The value behind "KEY " at the beginning of a line; NULL if there is no such line. */
static const char *line_value(const char *text, const char *key)
{
	size_t len = strlen(key);

	for (const char *p = text; p; p = strchr(p, '\n')) {
		if (*p == '\n')
			p++;
		if (!strncmp(p, key, len) && p[len] == ' ')
			return p + len + 1;
	}
	return NULL;
}

static void measure_kernel(struct bench *b, struct pair *p)
{
	unsigned long long min, median, p90, max;
	const char *count, *polled, *send;
	char text[1024];
	int ret;

	snprintf(text, sizeof(text), "%u %u %u %s %u", p->src, p->dst, b->count,
		 b->busy ? "busy" : "idle", b->gap_us);
	ret = write_file(BENCH_FILE, text);
	if (ret) {
		errno = -ret;
		die_errno(EXIT_MISMATCH, BENCH_FILE ": \"%s\"", text);
	}
	ret = read_file(BENCH_FILE, text, sizeof(text));
	if (ret < 0) {
		errno = -ret;
		die_errno(EXIT_MISMATCH, BENCH_FILE);
	}
	count = line_value(text, "count");
	polled = line_value(text, "polled");
	send = line_value(text, "send");
	if (!count || !polled || !send)
		die(EXIT_MISMATCH, BENCH_FILE ": no count, polled and send lines in:\n%s", text);
	p->polled = strtoull(polled, NULL, 10);
	p->count = strtoull(count, NULL, 10) - p->polled;
	if (!p->count)
		return;
	if (sscanf(send, "%llu %llu %llu %llu", &min, &median, &p90, &max) != 4)
		die(EXIT_MISMATCH, BENCH_FILE ": bad send line in:\n%s", text);
	p->min = min;
	p->median = median;
	p->p90 = p90;
	p->max = max;
}

/* --- by membarrier() --- */

struct target {
	pthread_t thread;
	u32 cpu;
	u32 running;	/* (a) */
	u32 stop;	/* (a) */
};

static int membarrier(int command)
{
	return (int)syscall(SYS_membarrier, command, 0, 0);
}

/* Spins, so that the target CPU runs this process: membarrier() interrupts no other. */
static void *target_main(void *arg)
{
	struct target *t = arg;
	int ret = cpu_bind(t->cpu);

	if (ret) {
		errno = -ret;
		die_errno(EXIT_MISMATCH, "CPU %u", t->cpu);
	}
	__atomic_store_n(&t->running, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&t->stop, __ATOMIC_ACQUIRE))
		__builtin_ia32_pause();
	return NULL;
}

static void measure_membarrier(struct bench *b, struct pair *p)
{
	struct target t = { .cpu = p->dst };
	struct hist h;
	u64 begin, end, limit;
	int ret = cpu_bind(p->src);

	if (ret) {
		errno = -ret;
		die_errno(EXIT_MISMATCH, "CPU %u", p->src);
	}
	hist_init(&h, b->count);
	ret = pthread_create(&t.thread, NULL, target_main, &t);
	if (ret) {
		errno = ret;
		die_errno(EXIT_MISMATCH, "thread");
	}
	while (!__atomic_load_n(&t.running, __ATOMIC_ACQUIRE))
		usleep(100);
	limit = clock_ns() + b->limit_ns;
	for (u32 i = 0; i < b->count; i++) {
		if (b->gap_us)
			usleep(b->gap_us);
		begin = clock_ns();
		if (membarrier(MEMBARRIER_PRIVATE_EXPEDITED))
			die_errno(EXIT_MISMATCH, "membarrier");
		end = clock_ns();
		hist_add(&h, end - begin);
		if (end > limit)
			break;
	}
	__atomic_store_n(&t.stop, 1, __ATOMIC_RELEASE);
	pthread_join(t.thread, NULL);
	hist_sort(&h);
	p->count = h.nr;
	p->min = hist_quantile(&h, 0);
	p->median = hist_quantile(&h, 0.5);
	p->p90 = hist_quantile(&h, 0.9);
	p->max = hist_quantile(&h, 1);
	hist_free(&h);
}

/* --- pairs --- */

static const char *figure(const struct bench *b)
{
	return b->method == METHOD_KERNEL ? "ipi" : "round_trip";
}

static void measure(struct bench *b, struct pair *p)
{
	if (b->method == METHOD_KERNEL)
		measure_kernel(b, p);
	else
		measure_membarrier(b, p);
	b->events += p->count;
	b->polled += p->polled;
	b->done[b->nr_done++] = *p;
}

static void print_pair(const struct bench *b, const struct pair *p)
{
	enum cpu_class class = cpu_map_class(&b->map, p->src, p->dst);

	printf("%s %u -> %u %s nodes %d %d count %llu polled %llu min %llu median %llu p90 %llu max %llu ns\n",
	       figure(b), p->src, p->dst, cpu_class_name(class), b->map.node[p->src],
	       b->map.node[p->dst], (unsigned long long)p->count, (unsigned long long)p->polled,
	       (unsigned long long)p->min, (unsigned long long)p->median,
	       (unsigned long long)p->p90, (unsigned long long)p->max);
}

/*
 * Up to b->pairs pairs of a class, their sources spread over the CPUs. The same
 * ones on each run of a topology. Returns how many.
 */
static u32 choose_pairs(const struct bench *b, enum cpu_class class, struct pair *pair)
{
	u32 nr = b->map.nr, stride = nr / b->pairs ? nr / b->pairs : 1, n = 0;

	for (u32 i = 0; i < b->pairs && n < b->pairs; i++) {
		u32 src = i * stride % nr;

		if (!cpu_mask_test(&b->map.online, src))
			continue;
		/* From behind the source on, so that targets differ, too. */
		for (u32 k = 1; k < nr; k++) {
			u32 dst = (src + k) % nr;

			if (!cpu_mask_test(&b->map.online, dst) ||
			    cpu_map_class(&b->map, src, dst) != class)
				continue;
			pair[n++] = (struct pair){ .src = src, .dst = dst };
			break;
		}
		if (i * stride >= nr)
			break;
	}
	return n;
}

static void measure_class(struct bench *b, enum cpu_class class)
{
	struct pair pair[PAIRS_MAX];
	u32 n = choose_pairs(b, class, pair);

	for (u32 i = 0; i < n; i++) {
		measure(b, &pair[i]);
		if (pair[i].count)
			hist_add(&b->class_median[class], pair[i].median);
	}
}

/* First CPU of a node, other than `not`; -1 if there is none. */
static int cpu_of_node(const struct bench *b, u32 node, int not)
{
	for (u32 cpu = 0; cpu < b->map.nr; cpu++)
		if (cpu_mask_test(&b->map.online, cpu) && b->map.node[cpu] == (int)node &&
		    (int)cpu != not )
			return (int)cpu;
	return -1;
}

struct node_result {
	u64 median[NODES_MAX][NODES_MAX];	/* 0 = not measured */
};

static void measure_nodes(struct bench *b, struct node_result *r)
{
	for (u32 i = 0; i < b->map.nr_nodes; i++) {
		for (u32 j = 0; j < b->map.nr_nodes; j++) {
			int src = cpu_of_node(b, i, -1);
			int dst = cpu_of_node(b, j, src);
			struct pair p = { .src = (u32)src, .dst = (u32)dst };

			if (src < 0 || dst < 0)
				continue;
			measure(b, &p);
			r->median[i][j] = p.median;
		}
	}
}

static void report(struct bench *b, const struct node_result *nodes, u32 nr_nodes)
{
	char name[64];

	for (u32 i = 0; i < b->nr_done; i++)
		print_pair(b, &b->done[i]);
	roi_send_counters(&b->roi);
	roi_report(&b->roi, "ipi_events", b->events, "events");
	if (b->method == METHOD_KERNEL)
		roi_report(&b->roi, "ipi_polled", b->polled, "events");
	for (int c = CPU_SMT; c < NR_CPU_CLASSES; c++) {
		struct hist *h = &b->class_median[c];

		if (!h->nr)
			continue;
		hist_sort(h);
		snprintf(name, sizeof(name), "%s_%s_median_ns", figure(b),
			 cpu_class_name((enum cpu_class)c));
		roi_report(&b->roi, name, hist_quantile(h, 0.5), "ns");
		snprintf(name, sizeof(name), "%s_%s_pairs", figure(b),
			 cpu_class_name((enum cpu_class)c));
		roi_report(&b->roi, name, h->nr, "pairs");
	}
	for (u32 i = 0; i < nr_nodes; i++) {
		for (u32 j = 0; j < nr_nodes; j++) {
			if (!nodes->median[i][j])
				continue;
			snprintf(name, sizeof(name), "%s_node%u_node%u_median_ns", figure(b), i, j);
			roi_report(&b->roi, name, nodes->median[i][j], "ns");
		}
	}
	if (b->polled)
		roi_warning(
			&b->roi,
			"%llu calls needed no IPI since the target polled: add idle=halt, or use --busy",
			(unsigned long long)b->polled);
}

static void run(struct bench *b)
{
	struct node_result nodes;
	u32 nr_nodes = b->map.nr_nodes > 1 && b->map.nr_nodes <= NODES_MAX ? b->map.nr_nodes : 0;

	memset(&nodes, 0, sizeof(nodes));
	roi_begin(&b->roi);
	if (b->only_src >= 0) {
		struct pair p = { .src = (u32)b->only_src, .dst = (u32)b->only_dst };

		nr_nodes = 0;
		measure(b, &p);
		if (p.count)
			hist_add(&b->class_median[cpu_map_class(&b->map, p.src, p.dst)], p.median);
	} else {
		for (int c = CPU_SMT; c < NR_CPU_CLASSES; c++)
			measure_class(b, (enum cpu_class)c);
		if (nr_nodes)
			measure_nodes(b, &nodes);
	}
	roi_end(&b->roi);
	if (!b->events)
		die(EXIT_MISMATCH,
		    "no IPI was measured: all targets polled, or there is only one CPU");
	report(b, &nodes, nr_nodes);
}

static void usage(int status) __attribute__((noreturn));

static void usage(int status)
{
	fprintf(status ? stderr : stdout,
		"usage: ipi-pingpong [--count N] [--pairs N] [--pair SRC,DST] [--busy] [--gap-us N] [--method kernel|membarrier]\n"
		"Measures IPIs between CPUs of one core (smt), of one socket, of two sockets (remote), and of two nodes.\n"
		"  --count N      IPIs for each pair (100)\n"
		"  --pairs N      pairs of each class, at most %u (2)\n"
		"  --pair S,D     this pair only\n"
		"  --busy         the target spins instead of idling\n"
		"  --gap-us N     pause before each IPI (100)\n"
		"  --method M     default: the kernel's helper if it is there, else membarrier (a round trip)\n",
		PAIRS_MAX);
	exit(status);
}

static void parse_pair(struct bench *b, const char *text)
{
	u32 src, dst;
	char extra;

	if (sscanf(text, "%u,%u%c", &src, &dst, &extra) != 2 || src == dst || src >= CPU_MAX ||
	    dst >= CPU_MAX)
		die(EXIT_USAGE, "--pair %s: not two different CPUs as 0,5", text);
	if (!cpu_mask_test(&b->map.online, src) || !cpu_mask_test(&b->map.online, dst))
		die(EXIT_USAGE, "--pair %s: this guest has CPUs 0 to %u", text, b->map.nr - 1);
	b->only_src = (int)src;
	b->only_dst = (int)dst;
}

static void parse_args(struct bench *b, int argc, char **argv)
{
	static const struct option options[] = {
		{ "count", required_argument, NULL, 'n' },
		{ "pairs", required_argument, NULL, 'p' },
		{ "pair", required_argument, NULL, 'o' },
		{ "busy", no_argument, NULL, 'b' },
		{ "gap-us", required_argument, NULL, 'g' },
		{ "method", required_argument, NULL, 'm' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	u64 n;
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == 'n' && parse_u64(optarg, 1, 65536, &n))
			b->count = (u32)n;
		else if (c == 'p' && parse_u64(optarg, 1, PAIRS_MAX, &n))
			b->pairs = (u32)n;
		else if (c == 'o')
			parse_pair(b, optarg);
		else if (c == 'b')
			b->busy = true;
		else if (c == 'g' && parse_u64(optarg, 0, 100000, &n))
			b->gap_us = (u32)n;
		else if (c == 'm' && !strcmp(optarg, "kernel"))
			b->method = METHOD_KERNEL;
		else if (c == 'm' && !strcmp(optarg, "membarrier"))
			b->method = METHOD_MEMBARRIER;
		else
			usage(c == 'h' ? EXIT_OK : EXIT_USAGE);
	}
	if (optind != argc)
		usage(EXIT_USAGE);
}

static void choose_method(struct bench *b)
{
	bool kernel = access(BENCH_FILE, W_OK) == 0;

	if (b->method == METHOD_KERNEL && !kernel)
		die_errno(EXIT_UNSUPPORTED, BENCH_FILE);
	if (b->method == METHOD_AUTO)
		b->method = kernel ? METHOD_KERNEL : METHOD_MEMBARRIER;
	if (b->method == METHOD_MEMBARRIER && membarrier(MEMBARRIER_REGISTER_PRIVATE_EXPEDITED))
		die_errno(EXIT_UNSUPPORTED, "no " BENCH_FILE ", and membarrier");
}

int main(int argc, char **argv)
{
	struct bench *b = calloc(1, sizeof(*b));
	int ret;

	if (!b)
		die(EXIT_MISMATCH, "no memory");
	b->count = 100;
	b->pairs = 2;
	b->gap_us = 100;
	b->limit_ns = 5000000000u;
	b->only_src = b->only_dst = -1;
	ret = cpu_map_read(&b->map);
	if (ret) {
		errno = -ret;
		die_errno(EXIT_UNSUPPORTED, "/sys/devices/system/cpu");
	}
	parse_args(b, argc, argv);
	choose_method(b);
	roi_init(&b->roi);
	for (int c = 0; c < NR_CPU_CLASSES; c++)
		hist_init(&b->class_median[c], PAIRS_MAX);
	run(b);
	return EXIT_OK;
}
