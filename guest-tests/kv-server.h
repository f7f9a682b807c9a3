/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kv-server: what its files share. See kv-server.c for what it does; the threads are
 * in kv-server-threads.c.
 */
#ifndef KV_SERVER_H
#define KV_SERVER_H

#include <pthread.h>

#include "lib/barrier.h"
#include "lib/cpu.h"
#include "lib/roi.h"
#include "lib/util.h"

enum op {
	OP_GET,
	OP_SET,
	OP_DONTNEED,		/* the first that flushes */
	OP_FREE,
	OP_REMAP,
	OP_MAP,
	NR_OPS
};

enum pin {
	PIN_NONE,
	PIN_WORKERS,
	PIN_ALL,
};

/* One slot of the cache. What its page holds is `value`, or if `loose` that or nothing. */
struct slot {
	pthread_mutex_t lock;
	volatile u64 *page;	/* (c) */
	u64 value;		/* (l) 0 = nothing */
	u32 version;		/* (l) */
	bool loose;		/* (l) */
};

struct kv;

struct worker {
	pthread_t thread;
	struct kv *kv;
	int cpu;		/* -1 = any */
	int epoll, stop;
	u64 wakeups, hits;	/* its own until it is joined */
	u64 ops[NR_OPS];
} __attribute__((aligned(CACHE_LINE)));

struct client {
	pthread_t thread;
	struct kv *kv;
	u32 index;
	int cpu;
	int request, reply;	/* eventfds: to the worker, from the worker */
	u64 random;		/* state of its generator */
	u64 done;		/* requests of the measured region */
	/* Written before `request` is, read after that was read. */
	enum op op;
	u32 key;
} __attribute__((aligned(CACHE_LINE)));

struct kv {
	u32 nr_workers, nr_clients, nr_slots;
	u64 seed, requests;	/* requests of each client; 0 = until the duration is over */
	u64 warmup_ns, duration_ns, think_ns;
	double scale, flush_share, set_share;
	enum pin pin;
	enum op kind[NR_OPS];
	u32 nr_kinds;
	struct worker *worker;
	struct client *client;
	struct slot *slot;
	struct roi roi;
	struct barrier clients;	/* all clients */
	struct barrier gate;	/* they and main */
	u64 deadline_ns;
	u32 warm __attribute__((aligned(CACHE_LINE)));		/* (a) the warm-up is over */
	u32 finished __attribute__((aligned(CACHE_LINE)));	/* (a) clients */
};

/* Threads: of a struct worker, until its `stop` is written; of a struct client, for its requests. */
void *kv_worker_main(void *worker);
void *kv_client_main(void *client);

/* The worker will wake up by fd: c's request, or with NULL its own end. */
void kv_watch(struct worker *w, int fd, struct client *c);

/* Eventfds. All of these end the program if they fail. */
int kv_new_eventfd(void);
void kv_wake(int fd);

/* Zeroed memory: anywhere, or over what is at `at`. */
void *kv_map_pages(void *at, u32 pages);

#endif
