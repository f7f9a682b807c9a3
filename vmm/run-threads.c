// SPDX-License-Identifier: GPL-2.0-only
/* A thread a vCPU, on host time. */
#define _GNU_SOURCE
#include "run-threads.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "vcpu.h"

/* Where a thread sleeps until a deadline or a wake-up, none of which is lost. */
struct parking {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool parked;		/* under lock */
	bool kicked;		/* under lock: a wake-up not yet seen */
};

struct vcpu_thread {
	struct vcpu *vcpu;	/* (c) */
	pthread_t thread;	/* (c) */
	bool started;		/* (c) */
	int pin;		/* (c) -1 = not pinned */
	_Atomic pid_t tid;	/* (a) 0 until the thread runs */
	struct parking parking;
};

struct threads {
	struct vcpu_thread *vt;	/* (c) by CPU number */
	int wake_fd;		/* (c) eventfd of the service loop */
	bool niced;		/* (c) application processors run at BOOT_NICE until the guest is up */
	_Atomic bool up;	/* (a) the guest is up */
};

/*
 * A booting Linux ticks on every CPU until its clock source is chosen, and with
 * more vCPUs than host CPUs the ticks of idle application processors alone can
 * take all of the host's time: the boot processor, which does the work, then gets a
 * fortieth. So until the guest is up the others yield to it, and their periodic
 * timers expire at most this often (Linux keeps time on the boot processor).
 */
#define BOOT_NICE	15
#define BOOT_TICK_NS	(100 * NSEC_PER_MSEC)

static u64 host_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * NSEC_PER_SEC + (u64)ts.tv_nsec;
}

static void parking_init(struct parking *p)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->cond, &attr);
	pthread_condattr_destroy(&attr);
}

static void parking_destroy(struct parking *p)
{
	pthread_cond_destroy(&p->cond);
	pthread_mutex_destroy(&p->lock);
}

/* Sleep until host time `end` (CLOCK_NEVER = no limit) or a kick; at once if there was one since the last park. */
static void parking_wait(struct parking *p, u64 end)
{
	struct timespec ts = { .tv_sec = (time_t)(end / NSEC_PER_SEC), .tv_nsec = (long)(end % NSEC_PER_SEC) };
	int err = 0;

	pthread_mutex_lock(&p->lock);
	p->parked = true;
	while (!p->kicked && err != ETIMEDOUT)
		err = end == CLOCK_NEVER ? pthread_cond_wait(&p->cond, &p->lock) :
					   pthread_cond_timedwait(&p->cond, &p->lock, &ts);
	p->parked = false;
	p->kicked = false;
	pthread_mutex_unlock(&p->lock);
}

/* The start of a turn: kicks up to now will be seen by it. */
static void parking_seen(struct parking *p)
{
	pthread_mutex_lock(&p->lock);
	p->kicked = false;
	pthread_mutex_unlock(&p->lock);
}

/* True if the thread was neither parked nor kicked already: it has to be interrupted. */
static bool parking_kick(struct parking *p)
{
	bool interrupt;

	pthread_mutex_lock(&p->lock);
	interrupt = !p->parked && !p->kicked;
	if (p->parked && !p->kicked)
		pthread_cond_signal(&p->cond);
	p->kicked = true;
	pthread_mutex_unlock(&p->lock);
	return interrupt;
}

static void threads_kick(struct vcpu *vcpu)
{
	struct vcpu_thread *vt = vcpu->runner;

	if (vt->started && pthread_equal(vt->thread, pthread_self()))
		return;		/* its own post: it looks at its clock before it runs on */
	if (parking_kick(&vt->parking))
		vcpu->vm->engine->kick(vcpu);
}

static void threads_wake_service(void *ctx)
{
	struct vm *vm = ctx;
	struct threads *t = vm->runner;
	u64 one = 1;

	/* Can fail only when the counter is full, which wakes as well. */
	if (write(t->wake_fd, &one, sizeof(one)) < 0)
		return;
}

static void threads_kick_all(struct vm *vm)
{
	u32 i;

	for (i = 0; i < vm->topo.nr_cpus; i++)
		threads_kick(vm->vcpu[i]);
	threads_wake_service(vm);
}

static void threads_boot_done(struct vm *vm)
{
	struct threads *t = vm->runner;
	u32 i;

	t->up = true;
	__atomic_store_n(&vm->boot_tick_ns, 0, __ATOMIC_RELAXED);
	for (i = 0; t->niced && i < vm->topo.nr_cpus; i++)
		if (t->vt[i].tid)
			setpriority(PRIO_PROCESS, (id_t)t->vt[i].tid, 0);
}

static bool overcommitted(const struct vm *vm)
{
	return (long)vm->topo.nr_cpus > sysconf(_SC_NPROCESSORS_ONLN);
}

/* Only where the priority can be had back afterwards. */
static bool may_nice(void)
{
	struct rlimit limit;

	return geteuid() == 0 || (getrlimit(RLIMIT_NICE, &limit) == 0 && limit.rlim_cur >= 20);
}

static void thread_name(const struct vcpu *vcpu)
{
	char name[16];

	g_snprintf(name, sizeof(name), "vcpu%u", vcpu->id);
	pthread_setname_np(pthread_self(), name);
}

static void *vcpu_thread(void *arg)
{
	struct vcpu_thread *vt = arg;
	struct vcpu *vcpu = vt->vcpu;
	struct threads *t = vcpu->vm->runner;
	u64 base = host_ns() - vcpu->vm->engine->now(vcpu->vm, vcpu), until, from;
	enum vcpu_next next;
	cpu_set_t set;

	thread_name(vcpu);
	prctl(PR_SET_TIMERSLACK, 1ul);
	if (t->niced && vcpu->id) {
		vt->tid = (pid_t)syscall(SYS_gettid);
		setpriority(PRIO_PROCESS, 0, t->up ? 0 : BOOT_NICE);
	}
	if (vt->pin >= 0) {
		CPU_ZERO(&set);
		CPU_SET((size_t)vt->pin, &set);
		if (sched_setaffinity(0, sizeof(set), &set) < 0)
			fb_warn("vCPU %u could not be pinned to host CPU %d: %s", vcpu->id, vt->pin, strerror(errno));
	}
	for (;;) {
		parking_seen(&vt->parking);
		next = vcpu_turn(vcpu, CLOCK_NEVER, &until);
		if (next == VCPU_NEXT_STOP)
			return NULL;
		if (next == VCPU_NEXT_TURN)
			continue;
		from = host_ns();
		parking_wait(&vt->parking, until == CLOCK_NEVER ? CLOCK_NEVER : base + until);
		if (vcpu->mp_state == VCPU_HALTED)
			counter_add(&vcpu->counters, COUNTER_idle_ns, host_ns() - from);
	}
}

/* Due service events, signals and wake-ups until the VM ends. */
static void service_loop(struct vm *vm, struct threads *t, int signal_fd)
{
	struct pollfd pfd[2] = {
		{ .fd = t->wake_fd, .events = POLLIN },
		{ .fd = signal_fd, .events = POLLIN },	/* -1 is ignored by poll */
	};

	while (vm->stop == VM_RUNNING) {
		u64 now = vm->engine->now(vm, NULL), first, wait, drop;
		struct timespec ts, *timeout = NULL;

		clock_run_due(&vm->service, now);
		first = clock_first(&vm->service);
		if (first != CLOCK_NEVER) {
			wait = first > now ? first - now : 0;
			ts.tv_sec = (time_t)(wait / NSEC_PER_SEC);
			ts.tv_nsec = (long)(wait % NSEC_PER_SEC);
			timeout = &ts;
		}
		if (vm->stop != VM_RUNNING)
			break;
		ppoll(pfd, ARRAY_SIZE(pfd), timeout, NULL);
		if (pfd[0].revents && read(t->wake_fd, &drop, sizeof(drop)) < 0)
			continue;
		if (pfd[1].revents)
			vm_request_stop(vm, VM_STOP_SIGNAL, 0);
	}
}

/* Keep the calling thread (and those made from it later) off the CPUs that vCPUs are pinned to, if any are left. */
static void leave_pinned_cpus(const struct vm *vm, const int *pin)
{
	cpu_set_t set;
	u32 i;

	if (!pin || sched_getaffinity(0, sizeof(set), &set) < 0)
		return;
	for (i = 0; i < vm->topo.nr_cpus; i++)
		if (pin[i] >= 0)
			CPU_CLR((size_t)pin[i], &set);
	if (CPU_COUNT(&set) == 0)
		fb_warn("every host CPU has a vCPU pinned to it: service threads share them");
	else
		sched_setaffinity(0, sizeof(set), &set);
}

int run_threads(struct vm *vm, const struct run_threads_params *params)
{
	struct threads t = { .wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
	int err = t.wake_fd < 0 ? -errno : 0;
	u32 i;

	t.vt = g_new0(struct vcpu_thread, vm->topo.nr_cpus);
	for (i = 0; i < vm->topo.nr_cpus; i++) {
		t.vt[i].vcpu = vm->vcpu[i];
		t.vt[i].pin = params->pin ? params->pin[i] : -1;
		parking_init(&t.vt[i].parking);
		vm->vcpu[i]->runner = &t.vt[i];
	}
	vm->runner = &t;
	vm->service.wake = threads_wake_service;
	vm->service.wake_ctx = vm;
	vm->kick = threads_kick;
	vm->kick_all = threads_kick_all;
	vm->boot_done = threads_boot_done;
	if (overcommitted(vm)) {
		t.niced = may_nice();
		vm->boot_tick_ns = BOOT_TICK_NS;
	}
	leave_pinned_cpus(vm, params->pin);
	if (!err)
		err = vm->engine->vm_start(vm);
	for (i = 0; !err && i < vm->topo.nr_cpus; i++) {
		err = -pthread_create(&t.vt[i].thread, NULL, vcpu_thread, &t.vt[i]);
		if (!err)
			t.vt[i].started = true;
	}
	if (err) {
		fb_err("starting the threads of %u vCPUs: %s", vm->topo.nr_cpus, strerror(-err));
		vm_request_stop(vm, VM_STOP_ERROR, 0);
	} else {
		service_loop(vm, &t, params->signal_fd);
	}
	/* A kick may come before the thread has armed its signal: repeat until each has gone. */
	for (i = 0; i < vm->topo.nr_cpus; i++) {
		struct timespec ts;

		while (t.vt[i].started) {
			threads_kick_all(vm);
			vm->engine->kick(vm->vcpu[i]);
			clock_gettime(CLOCK_REALTIME, &ts);
			ts.tv_nsec += 10 * (long)NSEC_PER_MSEC;
			if (ts.tv_nsec >= (long)NSEC_PER_SEC) {
				ts.tv_sec++;
				ts.tv_nsec -= (long)NSEC_PER_SEC;
			}
			if (pthread_timedjoin_np(t.vt[i].thread, NULL, &ts) == 0)
				t.vt[i].started = false;
		}
	}
	vm->kick = NULL;
	vm->kick_all = NULL;
	vm->boot_done = NULL;
	vm->service.wake = NULL;
	for (i = 0; i < vm->topo.nr_cpus; i++) {
		vm->vcpu[i]->runner = NULL;
		parking_destroy(&t.vt[i].parking);
	}
	vm->runner = NULL;
	g_free(t.vt);
	if (t.wake_fd >= 0)
		close(t.wake_fd);
	return err;
}

#define FLOOR_ROUNDS	101

struct floor_target {
	struct parking parking;
	_Atomic u64 seen;	/* host time at which the last kick was seen; 0 = waiting */
};

static void *floor_thread(void *arg)
{
	struct floor_target *target = arg;
	int i;

	for (i = 0; i < FLOOR_ROUNDS; i++) {
		parking_wait(&target->parking, CLOCK_NEVER);
		target->seen = host_ns();
	}
	return NULL;
}

static int cmp_u64(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

u64 run_threads_floor(void)
{
	struct floor_target target = { .seen = 0 };
	struct timespec pause = { .tv_nsec = 20000 };
	u64 sample[FLOOR_ROUNDS], from;
	pthread_t thread;
	int i;

	parking_init(&target.parking);
	if (pthread_create(&thread, NULL, floor_thread, &target))
		return 0;
	for (i = 0; i < FLOOR_ROUNDS; i++) {
		nanosleep(&pause, NULL);	/* let it park */
		target.seen = 0;
		from = host_ns();
		parking_kick(&target.parking);
		while (!target.seen)
			sched_yield();
		sample[i] = target.seen - from;
	}
	pthread_join(thread, NULL);
	parking_destroy(&target.parking);
	qsort(sample, FLOOR_ROUNDS, sizeof(sample[0]), cmp_u64);
	return sample[FLOOR_ROUNDS / 2];
}
