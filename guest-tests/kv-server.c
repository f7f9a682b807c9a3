// SPDX-License-Identifier: GPL-2.0-only
/*
 * kv-server: a cache server's load in one process, as memcached makes it: few
 * requests at a time on many CPUs, each with some sleeping and waking, and now
 * and then memory given back, so that a TLB shootdown finds most CPUs of the
 * address space idle.
 *
 * A client thinks, writes its request and wakes its worker by an eventfd which
 * the worker has in its epoll set; the worker serves it and wakes the client by
 * another one. One slot of the cache is one page. A request is
 *
 *   get        read a slot
 *   set        write a slot
 *   dontneed   write a slot, then give its page back: MADV_DONTNEED
 *   free       the same with MADV_FREE, after which the old value may stay
 *   remap      the same by a new mapping over it (MAP_FIXED)
 *   map        map a buffer, write to it, unmap it
 *
 * The last four are one TLB flush each: what they give back was just written.
 *
 * What a slot holds is known under its lock, and each get compares: a CPU that
 * still has a translation of a page given back reads the old value, and the
 * program fails. (So does a lost write.) That is what makes it a test of lazy
 * TLB mode as well, where CPUs are left out of shootdowns.
 *
 * The requests of each client are drawn from a generator seeded by --seed and
 * the client's number; no time and no other thread has a say. With --requests
 * two runs do the same requests, whatever the kernel.
 *
 * The marks: all clients end their warm-up and wait at a barrier; the first
 * writes the begin mark and lets them go; the one that finishes last writes the
 * end mark.
 */
#include <errno.h>
#include "kv-server.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>

#define STACK_BYTES	(64u << 10)
#define SLOTS_MAX	65536u
#define THREADS_MAX	4096u
#define ALL_KINDS	"dontneed,free,remap,map"

static const char *const op_name[NR_OPS] = { "get", "set", "dontneed", "free", "remap", "map" };

static void start_thread(pthread_t *thread, void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;
	int ret;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	ret = pthread_create(thread, &attr, fn, arg);
	pthread_attr_destroy(&attr);
	if (ret) {
		errno = ret;
		die_errno(EXIT_MISMATCH, "a thread could not be started");
	}
}

static void run(struct kv *kv)
{
	barrier_init(&kv->clients, kv->nr_clients);
	barrier_init(&kv->gate, kv->nr_clients + 1);
	for (u32 i = 0; i < kv->nr_workers; i++)
		start_thread(&kv->worker[i].thread, kv_worker_main, &kv->worker[i]);
	for (u32 i = 0; i < kv->nr_clients; i++)
		start_thread(&kv->client[i].thread, kv_client_main, &kv->client[i]);
	barrier_wait(&kv->gate);
	sleep_until(clock_ns() + kv->warmup_ns);
	__atomic_store_n(&kv->warm, 1, __ATOMIC_RELAXED);
	for (u32 i = 0; i < kv->nr_clients; i++)
		pthread_join(kv->client[i].thread, NULL);
	for (u32 i = 0; i < kv->nr_workers; i++)
		kv_wake(kv->worker[i].stop);
	for (u32 i = 0; i < kv->nr_workers; i++)
		pthread_join(kv->worker[i].thread, NULL);
}

static void report(struct kv *kv)
{
	u64 ops[NR_OPS] = { 0 }, requests = 0, flushes = 0, wakeups = 0, hits = 0;
	u64 switches = roi_delta(&kv->roi, PROCSTAT_STAT, "ctxt");
	double seconds = (double)roi_ns(&kv->roi) / 1e9;

	for (u32 i = 0; i < kv->nr_workers; i++) {
		wakeups += kv->worker[i].wakeups;
		hits += kv->worker[i].hits;
		for (int op = 0; op < NR_OPS; op++)
			ops[op] += kv->worker[i].ops[op];
	}
	for (int op = 0; op < NR_OPS; op++) {
		requests += ops[op];
		if (op >= OP_DONTNEED)
			flushes += ops[op];
	}
	roi_send_counters(&kv->roi);
	roi_report(&kv->roi, "workers", kv->nr_workers, "threads");
	roi_report(&kv->roi, "clients", kv->nr_clients, "threads");
	roi_report_f(&kv->roi, "scale", kv->scale, "x");
	roi_report(&kv->roi, "requests", requests, "requests");
	for (int op = 0; op < NR_OPS; op++) {
		char name[32];

		snprintf(name, sizeof(name), "requests_%s", op_name[op]);
		roi_report(&kv->roi, name, ops[op], "requests");
	}
	roi_report(&kv->roi, "hits", hits, "requests");
	roi_report(&kv->roi, "worker_wakeups", wakeups, "wakeups");
	roi_report(&kv->roi, "flushes", flushes, "flushes");
	roi_report(&kv->roi, "switches", switches, "switches");
	roi_report_f(&kv->roi, "requests_per_s", (double)requests / seconds, "requests/s");
	roi_report_f(&kv->roi, "flushes_per_s", (double)flushes / seconds, "flushes/s");
	roi_report_f(&kv->roi, "switches_per_s", (double)switches / seconds, "switches/s");
	printf("kv-server: workers=%u clients=%u requests=%llu switches=%llu flushes=%llu seconds=%.6f\n",
	       kv->nr_workers, kv->nr_clients, (unsigned long long)requests, (unsigned long long)switches,
	       (unsigned long long)flushes, seconds);
}

static void *zeroed(size_t nr, size_t size)
{
	void *p = aligned_alloc(CACHE_LINE, (nr * size + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);

	if (!p)
		die(EXIT_MISMATCH, "no memory");
	memset(p, 0, nr * size);
	return p;
}

/* Worker i on the i-th CPU, clients on those after the workers', and round again. */
static void place_threads(struct kv *kv, const struct cpu_mask *online, u32 nr_cpus)
{
	int *cpu = zeroed(nr_cpus, sizeof(*cpu));
	u32 n = 0;

	for (u32 i = 0; i < CPU_MAX && n < nr_cpus; i++)
		if (cpu_mask_test(online, i))
			cpu[n++] = (int)i;
	for (u32 i = 0; i < kv->nr_workers; i++)
		kv->worker[i].cpu = kv->pin == PIN_NONE ? -1 : cpu[i % n];
	for (u32 i = 0; i < kv->nr_clients; i++)
		kv->client[i].cpu = kv->pin == PIN_ALL ? cpu[(kv->nr_workers + i) % n] : -1;
	free(cpu);
}

static void set_up(struct kv *kv)
{
	struct cpu_mask online;
	u32 nr_cpus;
	char *pages;

	if (cpu_mask_read("/sys/devices/system/cpu/online", &online) || !cpu_mask_count(&online))
		die(EXIT_UNSUPPORTED, "/sys does not tell which CPUs there are");
	nr_cpus = cpu_mask_count(&online);
	if (!kv->nr_workers)
		kv->nr_workers = (nr_cpus + 1) / 2;
	if (!kv->nr_clients)
		kv->nr_clients = (nr_cpus + 1) / 2;
	kv->worker = zeroed(kv->nr_workers, sizeof(*kv->worker));
	kv->client = zeroed(kv->nr_clients, sizeof(*kv->client));
	kv->slot = zeroed(kv->nr_slots, sizeof(*kv->slot));
	pages = kv_map_pages(NULL, kv->nr_slots);
	for (u32 i = 0; i < kv->nr_slots; i++) {
		pthread_mutex_init(&kv->slot[i].lock, NULL);
		kv->slot[i].page = (u64 *)(void *)(pages + (size_t)i * PAGE_BYTES);
	}
	for (u32 i = 0; i < kv->nr_workers; i++) {
		struct worker *w = &kv->worker[i];

		w->kv = kv;
		w->epoll = epoll_create1(EPOLL_CLOEXEC);
		if (w->epoll < 0)
			die_errno(errno == ENOSYS ? EXIT_UNSUPPORTED : EXIT_MISMATCH, "epoll_create1");
		w->stop = kv_new_eventfd();
		kv_watch(w, w->stop, NULL);
	}
	for (u32 i = 0; i < kv->nr_clients; i++) {
		struct client *c = &kv->client[i];

		c->kv = kv;
		c->index = i;
		c->request = kv_new_eventfd();
		c->reply = kv_new_eventfd();
		kv_watch(&kv->worker[i % kv->nr_workers], c->request, c);
	}
	place_threads(kv, &online, nr_cpus);
}

static void usage(int status) __attribute__((noreturn));

static void usage(int status)
{
	fprintf(status ? stderr : stdout,
		"usage: kv-server [--workers N] [--clients N] [--think TIME] [--flush-share F] [--set-share F]\n"
		"                 [--kinds LIST] [--slots N] [--pin none|workers|all] [--requests N] [--scale F]\n"
		"                 [--seed N] [--warmup TIME] [--duration TIME]\n"
		"Clients ask workers for slots of a cache; some requests give memory back and so flush TLBs.\n"
		"  --workers, --clients   threads (half as many as CPUs, each)\n"
		"  --think TIME       mean of a client's pause before a request (500us)\n"
		"  --flush-share F    part of the requests that gives memory back, 0 to 1 (0.4)\n"
		"  --kinds LIST       how, equally often (%s)\n"
		"  --set-share F      part of the others that writes (0.1)\n"
		"  --slots N          pages of the cache (1024)\n"
		"  --pin WHAT         workers, or they and the clients, to a CPU each (none)\n"
		"  --requests N       of each client, however long they take; else --duration\n"
		"  --scale F          multiplies --requests or --duration, and is reported (1)\n"
		"  --seed N           of the requests (FAULTBED_SEED, or 1)\n"
		"  --warmup, --duration   default: FAULTBED_WARMUP_NS (50ms), FAULTBED_DURATION_NS (200ms)\n",
		ALL_KINDS);
	exit(status);
}

static bool parse_number(const char *text, double min, double max, double *value)
{
	char *end;

	errno = 0;
	*value = strtod(text, &end);
	return end != text && !*end && !errno && *value >= min && *value <= max;
}

static bool parse_kinds(struct kv *kv, const char *text)
{
	char list[64], *save = NULL;

	if (strlen(text) >= sizeof(list))
		return false;
	strcpy(list, text);
	kv->nr_kinds = 0;
	for (char *p = strtok_r(list, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
		enum op op = OP_DONTNEED;

		while (op < NR_OPS && strcmp(p, op_name[op]))
			op++;
		if (op == NR_OPS || kv->nr_kinds == NR_OPS)
			return false;
		kv->kind[kv->nr_kinds++] = op;
	}
	return kv->nr_kinds > 0;
}

static bool parse_pin(struct kv *kv, const char *text)
{
	static const char *const name[] = { "none", "workers", "all" };

	for (int i = 0; i < 3; i++)
		if (!strcmp(text, name[i])) {
			kv->pin = (enum pin)i;
			return true;
		}
	return false;
}

static bool parse_u32(const char *text, u64 max, u32 *value)
{
	u64 n;

	if (!parse_u64(text, 1, max, &n))
		return false;
	*value = (u32)n;
	return true;
}

static bool parse_option(struct kv *kv, int c, const char *arg)
{
	switch (c) {
	case 'W': return parse_u32(arg, THREADS_MAX, &kv->nr_workers);
	case 'C': return parse_u32(arg, THREADS_MAX, &kv->nr_clients);
	case 't': return parse_time(arg, &kv->think_ns);
	case 'f': return parse_number(arg, 0, 1, &kv->flush_share);
	case 'k': return parse_kinds(kv, arg);
	case 's': return parse_number(arg, 0, 1, &kv->set_share);
	case 'n': return parse_u32(arg, SLOTS_MAX, &kv->nr_slots);
	case 'p': return parse_pin(kv, arg);
	case 'r': return parse_u64(arg, 1, UINT32_MAX, &kv->requests);
	case 'x': return parse_number(arg, 0.0001, 1000, &kv->scale);
	case 'S': return parse_u64(arg, 0, UINT64_MAX, &kv->seed);
	case 'w': return parse_time(arg, &kv->warmup_ns);
	case 'd': return parse_time(arg, &kv->duration_ns) && kv->duration_ns;
	default: return false;
	}
}

static void parse_args(struct kv *kv, int argc, char **argv)
{
	static const struct option options[] = {
		{ "workers", required_argument, NULL, 'W' },
		{ "clients", required_argument, NULL, 'C' },
		{ "think", required_argument, NULL, 't' },
		{ "flush-share", required_argument, NULL, 'f' },
		{ "kinds", required_argument, NULL, 'k' },
		{ "set-share", required_argument, NULL, 's' },
		{ "slots", required_argument, NULL, 'n' },
		{ "pin", required_argument, NULL, 'p' },
		{ "requests", required_argument, NULL, 'r' },
		{ "scale", required_argument, NULL, 'x' },
		{ "seed", required_argument, NULL, 'S' },
		{ "warmup", required_argument, NULL, 'w' },
		{ "duration", required_argument, NULL, 'd' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int c, index = 0;

	while ((c = getopt_long(argc, argv, "h", options, &index)) != -1) {
		if (c == 'h')
			usage(EXIT_OK);
		if (c == '?')
			usage(EXIT_USAGE);
		if (!parse_option(kv, c, optarg))
			die(EXIT_USAGE, "--%s cannot be %s (--help tells what can)", options[index].name,
			    optarg);
	}
	if (optind != argc)
		usage(EXIT_USAGE);
	if (kv->requests) {
		kv->requests = (u64)((double)kv->requests * kv->scale + 0.5);
		if (!kv->requests)
			kv->requests = 1;
	}
	kv->duration_ns = (u64)((double)kv->duration_ns * kv->scale);
}

int main(int argc, char **argv)
{
	struct kv *kv = zeroed(1, sizeof(*kv));

	kv->nr_slots = 1024;
	kv->think_ns = 500000;
	kv->flush_share = 0.4;
	kv->set_share = 0.1;
	kv->scale = 1;
	kv->seed = env_u64("FAULTBED_SEED", 1);
	kv->warmup_ns = env_time("FAULTBED_WARMUP_NS", 50000000);
	kv->duration_ns = env_time("FAULTBED_DURATION_NS", 200000000);
	parse_kinds(kv, ALL_KINDS);
	parse_args(kv, argc, argv);
	/* A page a slot, and sleeps that end when they should. */
	if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) && errno != EINVAL)
		die_errno(EXIT_MISMATCH, "transparent huge pages cannot be turned off");
	if (prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0))
		die_errno(EXIT_MISMATCH, "timer slack");
	roi_init(&kv->roi);	/* before the threads: they inherit the port permission */
	set_up(kv);
	run(kv);
	report(kv);
	return EXIT_OK;
}
