// SPDX-License-Identifier: GPL-2.0-only
/*
 * memory-probe [PART ...]: what this machine's memory costs, as seen by a program: loads by where they
 * hit, lines that move between CPUs, streams, TLBs, page faults, locked instructions. In a guest it measures the
 * soft engine's memory model, and the figures have to come out as the cost model says; on real hardware it measures
 * the hardware, and `faultbed cost-model --measure` makes a cost model of that.
 *
 * The parts are in memory-probe-*.c, and docs/guest-tests.md has a table of the figures.
 */
#include "lib/guest.h"
#include "memory-probe.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct part {
	const char *name, *help;
	void (*run)(struct probe *p);
} parts[] = {
	{ "atomic", "locked instructions, fences, PAUSE, plain code, a busy sibling", probe_atomic },
	{ "fault", "a page fault of one thread", probe_fault },
	{ "line", "lines that move between CPUs, by distance", probe_line },
	{ "chase", "dependent loads, by where they hit and by node", probe_chase },
	{ "stream", "sequential loads and REP strings, by where they hit", probe_stream },
	{ "tlb", "loads of many pages: how far the TLBs reach", probe_tlb },
};
#define NR_PARTS	(sizeof(parts) / sizeof(parts[0]))

void probe_figure(struct probe *p, const char *unit, double value, const char *fmt, ...)
{
	struct figure *f = &p->figure[p->nr_figures];
	va_list ap;

	if (p->nr_figures == FIGURES_MAX)
		die(EXIT_MISMATCH, "more than %d figures", FIGURES_MAX);
	va_start(ap, fmt);
	vsnprintf(f->name, sizeof(f->name), fmt, ap);
	va_end(ap);
	/* A difference of two small things may come out below nothing. */
	f->value = value > 0 ? value : 0;
	f->unit = unit;
	p->nr_figures++;
}

double probe_find(const struct probe *p, const char *name, double fallback)
{
	for (u32 i = 0; i < p->nr_figures; i++)
		if (!strcmp(p->figure[i].name, name))
			return p->figure[i].value;
	return fallback;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double probe_median(double *value, u32 nr)
{
	qsort(value, nr, sizeof(*value), compare);
	return value[nr / 2];
}

void probe_bind(u32 cpu)
{
	int ret = cpu_bind(cpu);

	if (ret) {
		errno = -ret;
		die_errno(EXIT_MISMATCH, "CPU %u", cpu);
	}
}

static void *thread_main(void *arg)
{
	struct probe_thread *t = arg;

	probe_bind(t->cpu);
	t->fn(t->arg);
	return NULL;
}

void probe_start(struct probe_thread *t, u32 cpu, void (*fn)(void *arg), void *arg)
{
	t->cpu = cpu;
	t->fn = fn;
	t->arg = arg;
	errno = pthread_create(&t->thread, NULL, thread_main, t);
	if (errno)
		die_errno(EXIT_MISMATCH, "thread");
}

void probe_join(struct probe_thread *t)
{
	pthread_join(t->thread, NULL);
}

void probe_on(u32 cpu, void (*fn)(void *arg), void *arg)
{
	struct probe_thread t;

	probe_start(&t, cpu, fn, arg);
	probe_join(&t);
}

u32 probe_pairs(const struct probe *p, enum cpu_class class, u32 pair[][2], u32 room)
{
	u32 nr = p->map.nr, stride = nr / room ? nr / room : 1, n = 0;

	for (u32 a = 0; a < nr && n < room; a += stride) {
		if (!cpu_mask_test(&p->map.online, a))
			continue;
		for (u32 k = 1; k < nr; k++) {
			u32 b = (a + k) % nr;

			if (!cpu_mask_test(&p->map.online, b) || cpu_map_class(&p->map, a, b) != class)
				continue;
			pair[n][0] = a;
			pair[n++][1] = b;
			break;
		}
	}
	return n;
}

int probe_cpu_of_node(const struct probe *p, u32 node)
{
	for (u32 cpu = 0; cpu < p->map.nr; cpu++)
		if (cpu_mask_test(&p->map.online, cpu) && p->map.node[cpu] == (int)node)
			return (int)cpu;
	return -1;
}

/* --- the machine --- */

/* Bytes of CPU 0's data or unified cache of a level, by /sys; 0 if it does not tell. */
static size_t cache_bytes(u32 level)
{
	char path[128], text[32];
	u64 n, kib;

	for (u32 i = 0; i < 8; i++) {
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%u/level", i);
		if (read_line(path, text, sizeof(text)) < 0)
			break;
		if (!parse_u64(text, level, level, &n))
			continue;
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%u/type", i);
		if (read_line(path, text, sizeof(text)) < 0 || !strcmp(text, "Instruction"))
			continue;
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%u/size", i);
		if (read_line(path, text, sizeof(text)) < 2 || text[strlen(text) - 1] != 'K')
			continue;
		text[strlen(text) - 1] = '\0';
		if (parse_u64(text, 1, 1 << 22, &kib))
			return (size_t)kib << 10;
	}
	return 0;
}

static void find_caches(struct probe *p)
{
	size_t *const cache[] = { &p->l1, &p->l2, &p->l3 };
	static const size_t usual[] = { 32 << 10, 256 << 10, 24 << 20 };

	for (u32 i = 0; i < 3; i++) {
		if (!*cache[i])
			*cache[i] = cache_bytes(i + 1);
		if (!*cache[i]) {
			*cache[i] = usual[i];
			roi_warning(&p->roi, "/sys does not tell the L%u cache's size; %zu KiB are assumed: give --l%u",
				    i + 1, usual[i] >> 10, i + 1);
		}
	}
	if (p->l1 * 4 > p->l2 || p->l2 * 4 > p->l3)
		die(EXIT_UNSUPPORTED, "caches of %zu, %zu and %zu KiB: each must have four times the one before",
		    p->l1 >> 10, p->l2 >> 10, p->l3 >> 10);
}

/* The clock's rate, over a span long enough for both clocks' steps, and what a span of nothing takes. */
static void find_clock(struct probe *p)
{
	struct tsc_mark begin = tsc_mark(), end;
	double ns, none[15];

	do
		end = tsc_mark();
	while (end.ns < begin.ns + 2000000);
	ns = tsc_ns_per_tick(&begin, &end);
	if (ns <= 0)
		die(EXIT_UNSUPPORTED, "the TSC does not move forward");
	p->ticks_per_ns = 1 / ns;
	p->read_clock = 0;
	for (u32 i = 0; i < 15; i++)
		none[i] = probe_since(p, tsc_read());
	p->read_clock = probe_median(none, 15);
	probe_figure(p, "MHz", p->ticks_per_ns * 1000, "tsc_mhz");
}

/* --- command line --- */

static void usage(int status) __attribute__((noreturn));

static void usage(int status)
{
	FILE *to = status ? stderr : stdout;

	fprintf(to, "usage: memory-probe [OPTIONS] [PART ...]\n"
		    "Measures what memory costs on this machine. Parts (all of them, if none is named):\n");
	for (u32 i = 0; i < NR_PARTS; i++)
		fprintf(to, "  %-14s %s\n", parts[i].name, parts[i].help);
	fprintf(to,
		"  --repeat N     times each figure is taken, for its median (3)\n"
		"  --pairs N      pairs of CPUs for each distance (2)\n"
		"  --rounds N     transfers of a line, page faults in thousands, and the like (1000)\n"
		"  --lines N      lines that a chase visits (2048)\n"
		"  --tlb-pages N  the most pages that tlb loads from (4096)\n"
		"  --l1 SIZE, --l2 SIZE, --l3 SIZE   caches, where /sys does not tell or another size is modelled\n"
		"  --cpu N        the CPU of parts that need one (0)\n");
	exit(status);
}

static bool parse_count(const char *text, u64 min, u64 max, u32 *value)
{
	u64 n;

	if (!parse_u64(text, min, max, &n))
		return false;
	*value = (u32)n;
	return true;
}

static bool parse_cache(const char *text, size_t *bytes)
{
	u64 n;

	if (!parse_size(text, &n) || n < 4096 || n > 1ull << 32)
		return false;
	*bytes = n;
	return true;
}

static void parse_args(struct probe *p, int argc, char **argv)
{
	static const struct option options[] = {
		{ "repeat", required_argument, NULL, 'r' },
		{ "pairs", required_argument, NULL, 'p' },
		{ "rounds", required_argument, NULL, 'n' },
		{ "lines", required_argument, NULL, 'l' },
		{ "tlb-pages", required_argument, NULL, 't' },
		{ "l1", required_argument, NULL, '1' },
		{ "l2", required_argument, NULL, '2' },
		{ "l3", required_argument, NULL, '3' },
		{ "cpu", required_argument, NULL, 'c' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if ((c == 'r' && parse_count(optarg, 1, REPEAT_MAX, &p->repeat)) ||
		    (c == 'p' && parse_count(optarg, 1, 16, &p->pairs)) ||
		    (c == 'n' && parse_count(optarg, 16, 10000000, &p->rounds)) ||
		    (c == 'l' && parse_count(optarg, 64, 65536, &p->lines)) ||
		    (c == 't' && parse_count(optarg, 64, 16384, &p->tlb_pages)) ||
		    (c == '1' && parse_cache(optarg, &p->l1)) || (c == '2' && parse_cache(optarg, &p->l2)) ||
		    (c == '3' && parse_cache(optarg, &p->l3)) ||
		    (c == 'c' && parse_count(optarg, 0, CPU_MAX - 1, &p->from)))
			continue;
		usage(c == 'h' ? EXIT_OK : EXIT_USAGE);
	}
	p->lines &= ~15u;	/* chain_follow() */
	if (!cpu_mask_test(&p->map.online, p->from))
		die(EXIT_USAGE, "--cpu %u: it is not online", p->from);
}

static const struct part *find_part(const char *name)
{
	for (u32 i = 0; i < NR_PARTS; i++)
		if (!strcmp(parts[i].name, name))
			return &parts[i];
	die(EXIT_USAGE, "no part \"%s\"; memory-probe --help lists them", name);
}

static void report(struct probe *p)
{
	roi_send_counters(&p->roi);
	for (u32 i = 0; i < p->nr_figures; i++) {
		const struct figure *f = &p->figure[i];

		if (p->roi.report_fd != 1)
			printf("%-32s %12.3f %s\n", f->name, f->value, f->unit);
		roi_report_f(&p->roi, f->name, f->value, f->unit);
	}
}

int main(int argc, char **argv)
{
	struct probe *p = calloc(1, sizeof(*p));
	int ret;

	if (!p)
		die(EXIT_MISMATCH, "no memory");
	p->repeat = 3;
	p->pairs = 2;
	p->rounds = 1000;
	p->lines = 2048;
	p->tlb_pages = 4096;
	p->smt = 1;
	ret = cpu_map_read(&p->map);
	if (ret) {
		errno = -ret;
		die_errno(EXIT_UNSUPPORTED, "/sys/devices/system/cpu");
	}
	parse_args(p, argc, argv);
	for (int i = optind; i < argc; i++)
		find_part(argv[i]);
	roi_init(&p->roi);
	/* Another machine has something else at these ports, or nothing. */
	if (!getenv(GUEST_ENV))
		p->roi.ports = false;
	find_caches(p);
	probe_bind(p->from);
	roi_begin(&p->roi);
	find_clock(p);
	probe_basics(p);
	for (int i = optind; i < argc; i++)
		find_part(argv[i])->run(p);
	for (u32 i = 0; optind == argc && i < NR_PARTS; i++)
		parts[i].run(p);
	roi_end(&p->roi);
	report(p);
	return EXIT_OK;
}
