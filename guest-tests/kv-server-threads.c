// SPDX-License-Identifier: GPL-2.0-only
/*
 * kv-server's threads: workers, which serve requests, and clients, which draw and
 * make them.
 */
#include "kv-server.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define EVENTS		16
#define BUFFER_PAGES	4u
#define WORDS		(PAGE_BYTES / sizeof(u64))

/* splitmix64 (Steele, Lea, Flood 2014): any seed is a good one. */
static u64 draw(u64 *state)
{
	u64 z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* In (0, 1]. */
static double draw_unit(u64 *state)
{
	return (double)((draw(state) >> 11) + 1) * 0x1p-53;
}

void kv_wake(int fd)
{
	u64 one = 1;

	if (write(fd, &one, sizeof(one)) != sizeof(one))
		die_errno(EXIT_MISMATCH, "eventfd");
}

static void wait_for(int fd)
{
	u64 n;

	if (read(fd, &n, sizeof(n)) != sizeof(n))
		die_errno(EXIT_MISMATCH, "eventfd");
}

int kv_new_eventfd(void)
{
	int fd = eventfd(0, EFD_CLOEXEC);

	if (fd < 0)
		die_errno(errno == ENOSYS ? EXIT_UNSUPPORTED : EXIT_MISMATCH, "eventfd");
	return fd;
}

void *kv_map_pages(void *at, u32 pages)
{
	void *p = mmap(at, (size_t)pages * PAGE_BYTES, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);

	if (p == MAP_FAILED)
		die_errno(EXIT_MISMATCH, "mmap of %u pages", pages);
	return p;
}

/* --- the server's side --- */

static void slot_write(struct kv *kv, struct slot *s)
{
	s->version++;
	s->value = (u64)(s - kv->slot + 1) << 32 | s->version;
	s->loose = false;
	s->page[0] = s->value;
	s->page[WORDS - 1] = s->value;
}

/* True if there was a value. */
static bool slot_read(struct kv *kv, struct slot *s)
{
	u64 first = s->page[0], last = s->page[WORDS - 1];

	if (s->loose && first == 0)
		s->value = 0;
	if (first != s->value || last != s->value)
		die(EXIT_MISMATCH,
		    "slot %zu holds %#llx and %#llx, not %#llx: a stale translation, or a write was lost",
		    (size_t)(s - kv->slot), (unsigned long long)first, (unsigned long long)last,
		    (unsigned long long)s->value);
	return first != 0;
}

static void slot_give_back(struct kv *kv, struct slot *s, enum op op)
{
	void *page = (void *)s->page;

	slot_write(kv, s);
	if (op == OP_REMAP)
		kv_map_pages(page, 1);
	else if (madvise(page, PAGE_BYTES, op == OP_FREE ? MADV_FREE : MADV_DONTNEED))
		die_errno(EXIT_MISMATCH, "madvise");
	if (op == OP_FREE)
		s->loose = true;
	else
		s->value = 0;
}

static void use_buffer(void)
{
	char *buffer = kv_map_pages(NULL, BUFFER_PAGES);

	for (u32 i = 0; i < BUFFER_PAGES; i++)
		*(volatile char *)(buffer + (size_t)i * PAGE_BYTES) = 1;
	if (munmap(buffer, BUFFER_PAGES * PAGE_BYTES))
		die_errno(EXIT_MISMATCH, "munmap");
}

static void serve(struct worker *w, enum op op, u32 key)
{
	struct kv *kv = w->kv;
	struct slot *s = &kv->slot[key];

	w->ops[op]++;
	if (op == OP_MAP) {
		use_buffer();
		return;
	}
	pthread_mutex_lock(&s->lock);
	if (op == OP_GET)
		w->hits += slot_read(kv, s);
	else if (op == OP_SET)
		slot_write(kv, s);
	else
		slot_give_back(kv, s, op);
	pthread_mutex_unlock(&s->lock);
}

static void bind_thread(int cpu, const char *what)
{
	int ret = cpu < 0 ? 0 : cpu_bind((u32)cpu);

	if (ret) {
		errno = -ret;
		die_errno(EXIT_USAGE, "a %s cannot be bound to CPU %d", what, cpu);
	}
}

void *kv_worker_main(void *arg)
{
	struct epoll_event event[EVENTS];
	struct worker *w = arg;
	int n;

	bind_thread(w->cpu, "worker");
	for (;;) {
		n = epoll_wait(w->epoll, event, EVENTS, -1);
		if (n < 0 && errno != EINTR)
			die_errno(EXIT_MISMATCH, "epoll_wait");
		w->wakeups++;
		for (int i = 0; i < n; i++) {
			struct client *c = event[i].data.ptr;

			if (!c)
				return NULL;
			wait_for(c->request);
			serve(w, c->op, c->key);
			kv_wake(c->reply);
		}
	}
}

void kv_watch(struct worker *w, int fd, struct client *c)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = c };

	if (epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &event))
		die_errno(EXIT_MISMATCH, "epoll_ctl");
}

/* --- the clients' side --- */

/* Mean think_ns, exponential: requests come independently of each other. */
static void think(struct client *c)
{
	double ns = -log(draw_unit(&c->random)) * (double)c->kv->think_ns;
	u64 n = (u64)ns;
	struct timespec ts = {
		.tv_sec = (time_t)(n / 1000000000u), .tv_nsec = (long)(n % 1000000000u)
	};

	if (n)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
}

/* Some slots are asked for more often than others: the lower half three times as often. */
static u32 draw_key(struct client *c)
{
	double u = draw_unit(&c->random), v = draw_unit(&c->random);
	u32 key = (u32)((u < v ? u : v) * (double)c->kv->nr_slots);

	return key < c->kv->nr_slots ? key : c->kv->nr_slots - 1;
}

static enum op draw_op(struct client *c)
{
	const struct kv *kv = c->kv;
	double u = draw_unit(&c->random);

	if (u <= kv->flush_share)
		return kv->kind[draw(&c->random) % kv->nr_kinds];
	return draw_unit(&c->random) <= kv->set_share ? OP_SET : OP_GET;
}

static void one_request(struct client *c)
{
	think(c);
	c->op = draw_op(c);
	c->key = draw_key(c);
	kv_wake(c->request);
	wait_for(c->reply);
}

static bool finished(const struct client *c)
{
	const struct kv *kv = c->kv;

	return kv->requests ? c->done >= kv->requests : clock_ns() >= kv->deadline_ns;
}

/* Workers have nothing to do while this runs: every client waits at a barrier. */
static void begin(struct kv *kv)
{
	for (u32 i = 0; i < kv->nr_workers; i++) {
		kv->worker[i].wakeups = kv->worker[i].hits = 0;
		memset(kv->worker[i].ops, 0, sizeof(kv->worker[i].ops));
	}
	roi_begin(&kv->roi);
	kv->deadline_ns = kv->roi.begin_ns + kv->duration_ns;
}

void *kv_client_main(void *arg)
{
	struct client *c = arg;
	struct kv *kv = c->kv;

	bind_thread(c->cpu, "client");
	c->random = ~kv->seed << 20 ^ c->index;
	barrier_wait(&kv->gate);
	while (!__atomic_load_n(&kv->warm, __ATOMIC_RELAXED))
		one_request(c);
	/* How long the warm-up was must not move the requests that count. */
	c->random = kv->seed << 20 ^ c->index;
	barrier_wait(&kv->clients);
	if (c->index == 0)
		begin(kv);
	barrier_wait(&kv->clients);
	do {
		one_request(c);
		c->done++;
	} while (!finished(c));
	if (__atomic_add_fetch(&kv->finished, 1, __ATOMIC_ACQ_REL) == kv->nr_clients)
		roi_end(&kv->roi);
	return NULL;
}
