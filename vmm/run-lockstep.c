// SPDX-License-Identifier: GPL-2.0-only
/* All vCPUs in turn on one thread, on virtual time. */
#include "run-lockstep.h"

#include <poll.h>
#include <time.h>

#include "base/log.h"
#include "vcpu.h"

/* The turns of one that is alone end at multiples of this, so that signals and limits of the host are seen. */
#define STEP_MAX_NS	NSEC_PER_MSEC
/* How often the host's affairs are looked at, ns of host time... */
#define LOOK_NS		(5 * NSEC_PER_MSEC)
/* ...and, since asking for the time has a price too: after this many steps, or so much virtual time. */
#define LOOK_STEPS	16u
#define LOOK_VIRTUAL_NS	(100 * NSEC_PER_USEC)

struct lockstep_cpu {
	struct vcpu *vcpu;	/* (c) */
	u64 key;		/* ns at which it has to be stepped: its clock, or its next event if it is idle or parked */
	u32 pos;		/* place in the heap */
	bool idle;		/* its last turn had nothing to run */
	struct lockstep_cpu *sibling;	/* (c) the next thread of its core, in a ring */
};

struct lockstep {
	struct vm *vm;			/* (c) */
	const struct run_lockstep_params *params;	/* (c) */
	u64 quantum;			/* (c) */
	bool grid;			/* (c) turns end on the quantum's grid */
	struct lockstep_cpu *cpu;	/* by CPU number */
	struct lockstep_cpu **heap;	/* binary heap by (key, CPU number) */
	u32 nr;
	u32 busy;			/* those that are not idle... */
	u32 parked;			/* ...of which so many are parked */
	struct lockstep_cpu *running;	/* the one whose turn it is, NULL between turns */
	u64 floor;			/* ns up to which all that have something to run had their turns before this round */
	u64 end;			/* ns up to which they have them in this round */
	bool alone;			/* it is the round of the only one that is busy, or there is no grid */
	u64 reached_key;		/* the last turn's key... */
	u32 reached_id;			/* ...and whose it was */
	u64 next_look;			/* host ns */
	u64 last_frontier;		/* ns, at the last look */
	u32 steps;			/* since the last look */
};

static u64 host_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * NSEC_PER_SEC + (u64)ts.tv_nsec;
}

static bool earlier(const struct lockstep_cpu *a, const struct lockstep_cpu *b)
{
	return a->key != b->key ? a->key < b->key : a->vcpu->id < b->vcpu->id;
}

static void put(struct lockstep *ls, u32 pos, struct lockstep_cpu *lc)
{
	ls->heap[pos] = lc;
	lc->pos = pos;
}

/* lc's key has changed: move it to where it belongs. */
static void lockstep_place(struct lockstep *ls, struct lockstep_cpu *lc)
{
	u32 pos = lc->pos, child;

	while (pos && earlier(lc, ls->heap[(pos - 1) / 2])) {
		put(ls, pos, ls->heap[(pos - 1) / 2]);
		pos = (pos - 1) / 2;
	}
	for (child = 2 * pos + 1; child < ls->nr; child = 2 * pos + 1) {
		if (child + 1 < ls->nr && earlier(ls->heap[child + 1], ls->heap[child]))
			child++;
		if (!earlier(ls->heap[child], lc))
			break;
		put(ls, pos, ls->heap[child]);
		pos = child;
	}
	put(ls, pos, lc);
}

static void lockstep_rekey(struct lockstep *ls, struct lockstep_cpu *lc)
{
	u64 now = ls->vm->engine->now(ls->vm, lc->vcpu), first = clock_first(&lc->vcpu->clock);

	lc->key = lc->idle || lc->vcpu->parked ? MAX(now, first) : now;
	lockstep_place(ls, lc);
}

/* The key of the vCPU that comes after the one at the top. */
static u64 lockstep_second(const struct lockstep *ls)
{
	u64 key = CLOCK_NEVER;

	if (ls->nr > 1)
		key = ls->heap[1]->key;
	if (ls->nr > 2)
		key = MIN(key, ls->heap[2]->key);
	return key;
}

static u64 add_sat(u64 a, u64 b)
{
	return a > CLOCK_NEVER - b ? CLOCK_NEVER : a + b;
}

/* Start of the cell of the grid that a time is in: without a grid it is a cell's start itself. */
static u64 lockstep_cell(const struct lockstep *ls, u64 ns)
{
	return ls->grid ? ns - ns % ls->quantum : ns;
}

/*
 * The turn under way ends at `end` at the latest. Only the round of one that is alone is ever cut: whoever else has something to run
 * gets its turn within the same quantum anyway.
 */
static void lockstep_cut(struct lockstep *ls, u64 end)
{
	if (!ls->running || !ls->alone || end >= ls->end)
		return;
	ls->end = end;
	ls->running->vcpu->yield = true;
	ls->vm->engine->kick(ls->running->vcpu);
}

/*
 * A parked vCPU goes on where it would be if it had had all its turns: those of the rounds before, and that of this round if it
 * would have come before the one that came last, to the end or to the next event that it knew of.
 */
static void lockstep_unpark(struct vcpu *vcpu)
{
	struct lockstep *ls = vcpu->vm->runner;
	struct lockstep_cpu *lc = vcpu->runner;
	const struct engine_ops *engine = vcpu->vm->engine;
	u64 now;

	/* It has parked in the turn that is not over yet. */
	if (lc == ls->running) {
		vcpu->parked = false;
		return;
	}
	engine->park_until(vcpu, ls->floor);
	now = engine->now(vcpu->vm, vcpu);
	if (now < ls->end && (now != ls->reached_key ? now < ls->reached_key : vcpu->id < ls->reached_id))
		engine->park_until(vcpu, MIN(ls->end, lc->key));
	vcpu->parked = false;
	ls->parked--;
	lockstep_rekey(ls, lc);
}

/* Those that share a core with this one: how fast they are hangs on whether it has something to run. */
static void lockstep_unpark_core(struct lockstep *ls, const struct lockstep_cpu *lc)
{
	const struct lockstep_cpu *other;

	for (other = lc->sibling; ls->parked && other != lc; other = other->sibling)
		if (other->vcpu->parked)
			lockstep_unpark(other->vcpu);
}

/*
 * Something became the earliest event of a vCPU. The one whose turn it is looks at its
 * clock itself, and one that runs will come to the event; an idle one has to be
 * put where it now belongs, and that may shorten the turn that is under way.
 */
static void lockstep_kick(struct vcpu *vcpu)
{
	struct lockstep *ls = vcpu->vm->runner;
	struct lockstep_cpu *lc = vcpu->runner;

	if (lc == ls->running)
		return;
	if (vcpu->parked) {
		lockstep_unpark(vcpu);
	} else if (lc->idle) {
		lockstep_rekey(ls, lc);
		lockstep_cut(ls, add_sat(lockstep_cell(ls, lc->key), ls->quantum));
	}
}

/* Something became the VM's own earliest event: a device's, that the vCPU under way has caused. */
static void lockstep_wake_service(void *ctx)
{
	struct vm *vm = ctx;

	lockstep_cut(vm->runner, clock_first(&vm->service));
}

static void lockstep_kick_all(struct vm *vm)
{
	struct lockstep *ls = vm->runner;
	u32 i;

	/* Everyone is to have a turn, for a dump say. */
	for (i = 0; ls->parked && i < ls->nr; i++)
		if (ls->cpu[i].vcpu->parked)
			lockstep_unpark(ls->cpu[i].vcpu);
	if (!ls->running)
		return;
	ls->running->vcpu->yield = true;
	vm->engine->kick(ls->running->vcpu);
}

/* Is it time for the host's affairs? Nothing of the guest may depend on the answer. */
static void lockstep_look(struct lockstep *ls)
{
	struct pollfd pfd = { .fd = ls->params->signal_fd, .events = POLLIN };
	u64 now;

	if (++ls->steps < LOOK_STEPS && ls->vm->frontier - ls->last_frontier < LOOK_VIRTUAL_NS)
		return;
	ls->steps = 0;
	ls->last_frontier = ls->vm->frontier;
	now = host_ns();
	if (now < ls->next_look)
		return;
	ls->next_look = now + LOOK_NS;
	if (pfd.fd >= 0 && poll(&pfd, 1, 0) > 0)
		vm_request_stop(ls->vm, VM_STOP_SIGNAL, 0);
	if (ls->params->host_tick)
		ls->params->host_tick(ls->params->ctx);
}

/* An idle vCPU's clock stands still until the event that it is stepped for. */
static void lockstep_catch_up(struct lockstep *ls, struct lockstep_cpu *lc)
{
	struct vcpu *vcpu = lc->vcpu;
	u64 now = ls->vm->engine->now(ls->vm, vcpu);

	if (lc->key <= now)
		return;
	ls->vm->engine->charge(vcpu, lc->key - now, CHARGE_IDLE);
	if (vcpu->mp_state == VCPU_HALTED)
		counter_add(&vcpu->counters, COUNTER_idle_ns, lc->key - now);
}

/*
 * All turns before this one are over, and nothing has a key before that of the vCPU at the top: a round up to the end of the quantum's cell
 * that it is in. One that is alone goes on until the cell of the next event. Without a grid each turn is a round, up to a quantum ahead of the next one.
 */
static void lockstep_round(struct lockstep *ls)
{
	const struct lockstep_cpu *first = ls->heap[0];
	u64 cell = lockstep_cell(ls, first->key), far;

	ls->floor = MAX(ls->floor, cell);
	ls->end = add_sat(cell, ls->quantum);
	ls->alone = !ls->grid || (ls->busy == 1 && !first->idle);
	if (!ls->grid) {
		ls->end = MIN(add_sat(lockstep_second(ls), ls->quantum), add_sat(first->key, STEP_MAX_NS));
	} else if (ls->alone) {
		far = MIN(lockstep_second(ls), add_sat(first->key - first->key % STEP_MAX_NS, STEP_MAX_NS));
		ls->end = MAX(ls->end, lockstep_cell(ls, far));
	}
	ls->end = MIN(ls->end, clock_first(&ls->vm->service));
	ls->reached_key = 0;
	ls->reached_id = 0;
}

/*
 * Threads of a core that hand lines to each other do so faster than a quantum: they take short turns within the round. What a parked one
 * would do after its core's time of short turns ends nobody's turn, so that one which executes may not do so either.
 */
static u64 lockstep_limit(const struct lockstep *ls, const struct lockstep_cpu *lc)
{
	const struct lockstep_cpu *other;
	u64 end = ls->end;

	if (lc->vcpu->near_until <= lc->key)
		return end;
	for (other = lc->sibling; other != lc; other = other->sibling)
		if (!other->idle && other->key < other->vcpu->near_until)
			end = MIN(end, add_sat(other->key, ls->vm->near_ns));
	return end;
}

static void lockstep_step(struct lockstep *ls)
{
	struct lockstep_cpu *lc = ls->heap[0];
	struct vcpu *vcpu = lc->vcpu;
	enum vcpu_mp_state before = vcpu->mp_state;
	enum vcpu_next next;
	u64 until;

	/* Its next event: executing, it would have come here in the turn that ended then. */
	if (vcpu->parked) {
		vcpu->vm->engine->park_until(vcpu, lc->key);
		vcpu->parked = false;
		ls->parked--;
		lockstep_rekey(ls, lc);
		return;
	}
	lockstep_catch_up(ls, lc);
	ls->running = lc;
	ls->reached_key = lc->key;
	ls->reached_id = vcpu->id;
	next = vcpu_turn(vcpu, lockstep_limit(ls, lc), &until);
	ls->running = NULL;
	ls->busy -= !lc->idle;
	lc->idle = next == VCPU_NEXT_IDLE;
	ls->busy += !lc->idle;
	ls->parked += vcpu->parked;
	lockstep_rekey(ls, lc);
	if (ls->parked && vcpu->mp_state != before)
		lockstep_unpark_core(ls, lc);
}

/* The VM's own event at `ns`: every vCPU that has something to run has got there. */
static void lockstep_service(struct lockstep *ls, u64 ns)
{
	struct vm *vm = ls->vm;

	ls->floor = MAX(ls->floor, ns);
	ls->reached_key = 0;
	ls->reached_id = 0;
	clock_run_due(&vm->service, vm->frontier);
}

static void lockstep_loop(struct lockstep *ls)
{
	struct vm *vm = ls->vm;

	while (vm->stop == VM_RUNNING && !vm->pause) {
		u64 key = ls->heap[0]->key, service = clock_first(&vm->service);

		lockstep_look(ls);
		if (vm->stop != VM_RUNNING)
			break;
		vm->frontier = MAX(vm->frontier, MIN(key, service));
		if ((key >= ls->end || !ls->grid) && service <= key && service != CLOCK_NEVER) {
			lockstep_service(ls, service);
		} else if (key != CLOCK_NEVER) {
			if (key >= ls->end || !ls->grid)
				lockstep_round(ls);
			lockstep_step(ls);
		} else {
			vm_request_stop(vm, VM_STOP_TIMEOUT, 0);
		}
	}
}

/* Into the ring of its core. */
static void lockstep_join(struct lockstep *ls, struct lockstep_cpu *lc)
{
	const struct topology_cpu *cpu = ls->vm->topo.cpu, *me = &cpu[lc->vcpu->id];
	struct lockstep_cpu *other;

	lc->sibling = lc;
	for (other = ls->cpu; other != lc; other++) {
		if (cpu[other->vcpu->id].core != me->core || cpu[other->vcpu->id].socket != me->socket)
			continue;
		lc->sibling = other->sibling;
		other->sibling = lc;
		return;
	}
}

static void lockstep_init(struct lockstep *ls)
{
	struct vm *vm = ls->vm;
	u32 i;

	ls->cpu = g_new0(struct lockstep_cpu, vm->topo.nr_cpus);
	ls->heap = g_new0(struct lockstep_cpu *, vm->topo.nr_cpus);
	ls->quantum = MAX(cost(&vm->cost, quantum), 1);
	vm->runner = ls;
	vm->kick = lockstep_kick;
	vm->kick_all = lockstep_kick_all;
	/*
	 * With lines, what one vCPU writes reaches another no sooner than the line does. Without, the order of turns is all that makes them see
	 * each other in time, so there it stays as close to the clocks' as it can; no engine parks without lines.
	 */
	ls->grid = vm->cost.memory;
	vm->unpark = ls->grid && vm->engine->park_until ? lockstep_unpark : NULL;
	vm->service.wake = lockstep_wake_service;
	vm->service.wake_ctx = vm;
	vm->service.one_thread = true;
	/* What each was at is not known here, so each has a turn first, in which the idle ones find nothing to do. */
	for (i = 0; i < vm->topo.nr_cpus; i++) {
		struct lockstep_cpu *lc = &ls->cpu[i];

		lc->vcpu = vm->vcpu[i];
		lc->vcpu->runner = lc;
		lc->vcpu->clock.one_thread = true;
		lc->vcpu->parked = false;
		lc->key = vm->engine->now(vm, lc->vcpu);
		put(ls, ls->nr++, lc);
		lockstep_place(ls, lc);
		lockstep_join(ls, lc);
	}
	ls->busy = ls->nr;
}

int run_lockstep(struct vm *vm, const struct run_lockstep_params *params)
{
	struct lockstep ls = { .vm = vm, .params = params };
	int err;
	u32 i;

	lockstep_init(&ls);
	err = vm->engine->vm_start ? vm->engine->vm_start(vm) : 0;
	if (err) {
		fb_err("starting %u vCPUs: %s", vm->topo.nr_cpus, g_strerror(-err));
		vm_request_stop(vm, VM_STOP_ERROR, 0);
	} else {
		lockstep_loop(&ls);
	}
	for (i = 0; i < ls.nr; i++)
		if (vm->vcpu[i]->parked)
			lockstep_unpark(vm->vcpu[i]);
	vm->pause = false;
	vm->kick = NULL;
	vm->kick_all = NULL;
	vm->unpark = NULL;
	vm->service.wake = NULL;
	vm->service.one_thread = false;
	for (i = 0; i < ls.nr; i++) {
		vm->vcpu[i]->runner = NULL;
		vm->vcpu[i]->clock.one_thread = false;
	}
	vm->runner = NULL;
	g_free(ls.cpu);
	g_free(ls.heap);
	return err;
}
