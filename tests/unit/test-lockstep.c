// SPDX-License-Identifier: GPL-2.0-only
/*
 * The lockstep runner over an engine whose vCPUs follow a script: who runs when and
 * how far, what wakes the idle, and that time jumps when all of them are.
 */
#include <glib.h>
#include <string.h>

#include "fake-engine.h"
#include "machine/apicbus.h"
#include "machine/lapic.h"
#include "run-lockstep.h"
#include "x86/apic.h"

#define VECTOR		0x40
#define BLOCK_NS	10	/* the engine looks up from its work at such steps, as at the end of a block */
#define MAX_LOG		4096

enum act { ACT_END, ACT_RUN, ACT_HLT, ACT_IPI, ACT_POST, ACT_STOP, ACT_PAUSE, ACT_LOOP, ACT_NEAR, ACT_WAIT, ACT_WRITE };

/*
 * RUN n: n ns of work. IPI n: to CPU n. POST n: a service event in n ns. LOOP: from the start again. NEAR n: its core's threads
 * reach each other soon for n ns. WAIT: in a loop, parked if the runner knows of that, until another has done WRITE n with this one's number.
 * END: works on for ever.
 */
struct script {
	enum act act;
	u64 n;
};

struct turn {
	u32 cpu;
	u64 from, to;
};

struct cpu {
	u64 now, left;		/* left: of the RUN in hand */
	u32 at;
	const struct script *script;
	bool broken, in_handler;
	u32 irqs;
	u64 last_irq;
};

struct world {
	struct fake_vm *fake;
	struct engine_ops ops;
	struct cpu *cpu;
	struct turn log[MAX_LOG];
	u32 turns, ticks;
	u64 service_at[64];
	u32 services;
};

static struct world *world_of(struct vm *vm)
{
	return vm->machine ? (struct world *)vm->machine : NULL;
}

static u64 quantum(const struct world *w)
{
	return cost(&w->fake->vm.cost, quantum);
}

static struct cpu *cpu_of(struct vcpu *vcpu)
{
	return &world_of(vcpu->vm)->cpu[vcpu->id];
}

static u64 world_now(struct vm *vm, struct vcpu *vcpu)
{
	return vcpu ? cpu_of(vcpu)->now : vm->frontier;
}

static void world_charge(struct vcpu *vcpu, u64 ns, enum charge why)
{
	cpu_of(vcpu)->now += ns;
}

static void world_kick(struct vcpu *vcpu)
{
	cpu_of(vcpu)->broken = true;
}

static bool world_can_inject(struct vcpu *vcpu)
{
	return true;
}

static int world_inject(struct vcpu *vcpu, u8 vector)
{
	struct cpu *c = cpu_of(vcpu);

	g_assert_cmphex(vector, ==, VECTOR);
	c->irqs++;
	c->last_irq = c->now;
	c->in_handler = true;
	return 0;
}

static void send(struct vcpu *vcpu, u32 target)
{
	struct apic_msg msg = {
		.dest = vcpu->vm->vcpu[target]->apic_id, .vector = VECTOR, .delivery = APIC_DM_FIXED, .assert = true,
	};

	apicbus_send_ipi(vcpu, &msg, cpu_of(vcpu)->now);
}

/* As a device does that a vCPU has set to work. */
static void on_posted(void *ctx, u64 arg, u64 due, u64 now)
{
	struct world *w = ctx;
	u32 i;

	g_assert_cmpuint(now, ==, due);
	/* Nobody is before it who could run, and nobody is further ahead than the block in hand or, with lines, its quantum. */
	for (i = 0; i < w->fake->vm.topo.nr_cpus; i++)
		g_assert_cmpuint(w->cpu[i].now, <=, due + (w->fake->vm.cost.memory ? quantum(w) : BLOCK_NS));
	w->service_at[w->services++] = now;
}

static bool same_core(const struct vm *vm, u32 a, u32 b)
{
	const struct topology_cpu *cpu = vm->topo.cpu;

	return cpu[a].core == cpu[b].core && cpu[a].socket == cpu[b].socket;
}

/* As the engine does when one thread of a core has got a line that another wrote. */
static void near(struct vcpu *vcpu, u64 until)
{
	u32 i;

	for (i = 0; i < vcpu->vm->topo.nr_cpus; i++)
		if (same_core(vcpu->vm, i, vcpu->id))
			vcpu->vm->vcpu[i]->near_until = until;
}

/* The line that it looks at has been written: it goes on from where it is, which only the runner knows of one that is parked. */
static void wake_waiter(struct vcpu *vcpu)
{
	struct cpu *c = cpu_of(vcpu);

	if (c->script[c->at].act != ACT_WAIT)
		return;
	if (vcpu->parked)
		vcpu->vm->unpark(vcpu);
	c->left = 0;
	c->at++;
}

static void world_park_until(struct vcpu *vcpu, u64 ns)
{
	struct cpu *c = cpu_of(vcpu);

	g_assert_true(vcpu->parked);
	c->now = MAX(c->now, ns);
}

/* One action that takes no time; true = leave with *why. */
static bool act(struct vcpu *vcpu, enum run_exit *why)
{
	struct cpu *c = cpu_of(vcpu);
	const struct script *s = &c->script[c->at];

	*why = RUN_KICK;
	switch (s->act) {
	case ACT_END:
		c->left = UINT64_MAX;
		return false;
	case ACT_RUN:
		c->left = s->n;
		break;
	case ACT_IPI:
		send(vcpu, (u32)s->n);
		break;
	case ACT_POST:
		clock_post(&vcpu->vm->service, c->now + s->n, on_posted, world_of(vcpu->vm), 0);
		break;
	case ACT_LOOP:
		c->at = 0;
		return false;
	case ACT_PAUSE:
		vcpu->vm->pause = true;
		vcpu->vm->kick_all(vcpu->vm);
		break;
	case ACT_WAIT:
		if (vcpu->vm->unpark && !vcpu->vm->no_park) {
			vcpu->parked = true;
			*why = RUN_DEADLINE;
			return true;
		}
		c->left = UINT64_MAX;
		return false;
	case ACT_WRITE:
		wake_waiter(vcpu->vm->vcpu[s->n]);
		break;
	case ACT_NEAR:
		near(vcpu, c->now + s->n);
		break;
	case ACT_HLT:
		c->at++;
		*why = RUN_HLT;
		return true;
	case ACT_STOP:
		vm_request_stop(vcpu->vm, VM_STOP_EXIT, 0);
		return true;
	}
	c->at++;
	return false;
}

static enum run_exit world_run(struct vcpu *vcpu, u64 until)
{
	struct world *w = world_of(vcpu->vm);
	struct cpu *c = &w->cpu[vcpu->id];
	struct turn *t = &w->log[w->turns];
	enum run_exit why = RUN_DEADLINE;
	struct lapic_effect effect;

	g_assert_cmpuint(w->turns, <, MAX_LOG);
	*t = (struct turn){ .cpu = vcpu->id, .from = c->now };
	w->turns++;
	c->broken = false;
	if (c->in_handler)
		lapic_write(vcpu->lapic, APIC_EOI, 0, c->now, &effect);
	c->in_handler = false;
	while (c->now < until) {
		u64 step = MIN(MIN(c->left, BLOCK_NS), until - c->now);

		if (!step && act(vcpu, &why)) {
			if (vcpu->parked)
				world_park_until(vcpu, until);
			break;
		}
		c->now += step;
		c->left -= step;
		if (c->broken) {
			c->broken = false;
			if (vcpu_turn_needed(vcpu, until)) {
				why = RUN_KICK;
				break;
			}
		}
		/* What an upcall of a real engine asks for itself. */
		if (!step && vcpu_turn_needed(vcpu, until)) {
			why = RUN_KICK;
			break;
		}
		why = RUN_DEADLINE;
	}
	t->to = c->now;
	return why;
}

static void world_wake(void *ctx)
{
	struct vcpu *vcpu = ctx;

	if (vcpu->vm->kick)
		vcpu->vm->kick(vcpu);
}

static struct world *world_new(const char *topology)
{
	struct world *w = g_new0(struct world, 1);
	struct vm *vm;
	u32 i;

	w->fake = fake_vm_new(topology, APIC_XAPIC);
	vm = &w->fake->vm;
	w->ops = *vm->engine;
	w->ops.now = world_now;
	w->ops.charge = world_charge;
	w->ops.kick = world_kick;
	w->ops.can_inject = world_can_inject;
	w->ops.inject = world_inject;
	w->ops.run = world_run;
	w->ops.park_until = world_park_until;
	vm->engine = &w->ops;
	vm->machine = (struct machine *)w;	/* no devices here: a place for what the ops work on */
	w->cpu = g_new0(struct cpu, vm->topo.nr_cpus);
	clock_init(&vm->service, NULL, NULL);
	cost_default(&vm->cost);
	vm->cost.v[COST_hlt_wake] = 0;
	for (i = 0; i < vm->topo.nr_cpus; i++) {
		static const struct script idle[] = { { ACT_HLT, 0 }, { ACT_LOOP, 0 } };

		w->cpu[i].script = idle;
		vm->vcpu[i]->clock.wake = world_wake;
		vm->vcpu[i]->clock.wake_ctx = vm->vcpu[i];
		vm->vcpu[i]->mp_state = VCPU_RUNNABLE;
	}
	return w;
}

static void world_free(struct world *w)
{
	clock_destroy(&w->fake->vm.service);
	w->fake->vm.machine = NULL;
	fake_vm_free(w->fake);
	g_free(w->cpu);
	g_free(w);
}

static void tick(void *ctx)
{
	struct world *w = ctx;

	w->ticks++;
}

static void world_go(struct world *w)
{
	const struct run_lockstep_params params = { .signal_fd = -1, .host_tick = tick, .ctx = w };

	g_assert_cmpint(run_lockstep(&w->fake->vm, &params), ==, 0);
}

/* No turn began while another vCPU was behind, and none ran further ahead than the quantum. */
static void check_lockstep(const struct world *w)
{
	u32 nr = w->fake->vm.topo.nr_cpus, i, cpu;
	g_autofree u64 *at = g_new0(u64, nr);

	for (i = 0; i < w->turns; i++) {
		const struct turn *t = &w->log[i];

		for (cpu = 0; cpu < nr; cpu++) {
			if (cpu == t->cpu)
				continue;
			g_assert_cmpuint(t->from, <=, at[cpu]);
			g_assert_cmpuint(t->to, <=, at[cpu] + quantum(w));
		}
		at[t->cpu] = t->to;
	}
}

static void test_order(void)
{
	static const struct script work[] = { { ACT_RUN, 7300 }, { ACT_END, 0 } };
	static const struct script last[] = { { ACT_RUN, 20000 }, { ACT_STOP, 0 } };
	struct world *w = world_new("1x3x1");
	u32 i;

	w->cpu[0].script = w->cpu[1].script = work;
	w->cpu[2].script = last;
	world_go(w);
	check_lockstep(w);
	/* Ties go by number: 0, 1, 2, each up to a quantum ahead of the next behind, which for 2 has moved on already. */
	for (i = 0; i < 3; i++) {
		g_assert_cmpuint(w->log[i].cpu, ==, i);
		g_assert_cmpuint(w->log[i].from, ==, 0);
		g_assert_cmpuint(w->log[i].to, ==, quantum(w) * (i == 2 ? 2 : 1));
	}
	g_assert_cmpuint(w->cpu[2].now, ==, 20000);
	g_assert_cmpint(w->fake->vm.stop, ==, VM_STOP_EXIT);
	world_free(w);
}

/* An idle vCPU takes no turns; the message comes when its latency says, though the sender was to run far ahead. */
static void test_wake(void)
{
	static const struct script sender[] = {
		{ ACT_RUN, 5000 }, { ACT_IPI, 1 }, { ACT_RUN, 50000 }, { ACT_STOP, 0 },
	};
	struct world *w = world_new("1x2x1");
	u64 due = 5000 + cost(&w->fake->vm.cost, ipi_socket);
	struct vcpu *target = w->fake->vm.vcpu[1];
	u32 i;

	w->fake->vm.cost.v[COST_hlt_wake] = 700;
	w->cpu[0].script = sender;
	world_go(w);
	g_assert_cmpuint(w->cpu[1].irqs, ==, 1);
	g_assert_cmpuint(w->cpu[1].last_irq, ==, due);
	g_assert_cmpuint(counter_read(&target->counters, COUNTER_idle_ns), ==, due);
	g_assert_cmpuint(w->cpu[1].now, ==, due + 700);
	g_assert_cmpuint(counter_read(&target->counters, COUNTER_ipis_delivered), ==, 1);
	g_assert_cmpuint(w->fake->vm.ipi_latency[DISTANCE_SOCKET].sum, ==, due - 5000);
	/* The sender was called back: no turn of its went past the wake-up by more than the quantum before the target's. */
	for (i = 0; w->log[i].cpu != 1 || w->log[i].from < due; i++)
		g_assert_cmpuint(w->log[i].to, <=, due + quantum(w));
	world_free(w);
}

static void test_self(void)
{
	static const struct script self[] = {
		{ ACT_RUN, 1000 }, { ACT_IPI, 0 }, { ACT_HLT, 0 }, { ACT_RUN, 100 }, { ACT_STOP, 0 },
	};
	struct world *w = world_new("1x2x1");
	u64 due = 1000 + cost(&w->fake->vm.cost, ipi_self);

	w->cpu[0].script = self;
	world_go(w);
	g_assert_cmpuint(w->cpu[0].irqs, ==, 1);
	g_assert_cmpuint(w->cpu[0].last_irq, ==, due);
	g_assert_cmpuint(w->cpu[0].now, ==, due + 100);
	world_free(w);
}

static void on_service(void *ctx, u64 arg, u64 due, u64 now)
{
	struct world *w = ctx;
	struct vcpu *vcpu = w->fake->vm.vcpu[1];

	g_assert_cmpuint(now, ==, due);
	g_assert_cmpuint(now, ==, w->fake->vm.engine->now(&w->fake->vm, NULL));
	w->service_at[w->services++] = now;
	if (arg) {
		struct apic_msg msg = { .dest = vcpu->apic_id, .vector = VECTOR, .delivery = APIC_DM_FIXED, .assert = true };

		apicbus_send_device(&w->fake->vm, &msg, now);
	}
}

/* With all of them idle time jumps: an hour costs a few turns. What a device sends then wakes its target. */
static void test_jump(void)
{
	static const struct script woken[] = { { ACT_HLT, 0 }, { ACT_RUN, 50 }, { ACT_STOP, 0 } };
	struct world *w = world_new("2x4x1");
	struct vm *vm = &w->fake->vm;
	const u64 hour = 3600 * NSEC_PER_SEC;

	w->cpu[1].script = woken;
	clock_post(&vm->service, hour / 2, on_service, w, 0);
	clock_post(&vm->service, hour, on_service, w, 1);
	world_go(w);
	g_assert_cmpuint(w->services, ==, 2);
	g_assert_cmpuint(w->service_at[0], ==, hour / 2);
	g_assert_cmpuint(w->service_at[1], ==, hour);
	g_assert_cmpuint(w->cpu[1].now, ==, hour + cost(&vm->cost, ipi_socket) + 50);
	g_assert_cmpuint(w->turns, <, 20);
	g_assert_cmpint(vm->stop, ==, VM_STOP_EXIT);
	world_free(w);
}

/* Service events come when the one furthest behind has reached them, and no later than a quantum ahead of any. */
static void test_service(void)
{
	static const struct script work[] = { { ACT_RUN, 100000 }, { ACT_STOP, 0 } };
	struct world *w = world_new("1x2x1");
	u32 i;

	w->cpu[0].script = w->cpu[1].script = work;
	for (i = 0; i < 4; i++)
		clock_post(&w->fake->vm.service, 12345 + i, on_service, w, 0);
	world_go(w);
	g_assert_cmpuint(w->services, ==, 4);
	for (i = 0; i < 4; i++)
		g_assert_cmpuint(w->service_at[i], ==, 12345 + i);
	world_free(w);
}

static void on_service_alone(void *ctx, u64 arg, u64 due, u64 now)
{
	struct world *w = ctx;

	w->services++;
	g_assert_cmpuint(w->cpu[0].now, ==, due);
}

/* With nobody else near, a service event is what bounds a turn. */
static void test_service_alone(void)
{
	static const struct script work[] = { { ACT_RUN, 100000 }, { ACT_STOP, 0 } };
	struct world *w = world_new("1x2x1");

	w->cpu[0].script = work;
	clock_post(&w->fake->vm.service, 54320, on_service_alone, w, 0);
	world_go(w);
	g_assert_cmpuint(w->services, ==, 1);
	world_free(w);
}

/* What a vCPU's own access has caused comes when it is due, though the turn under way would have gone past it. */
static void test_service_posted(void)
{
	static const struct script work[] = {
		{ ACT_RUN, 1000 }, { ACT_POST, 70 }, { ACT_RUN, 100 }, { ACT_POST, 0 }, { ACT_RUN, 100000 }, { ACT_STOP, 0 },
	};
	struct world *w = world_new("1x2x1");

	w->cpu[0].script = work;
	world_go(w);
	g_assert_cmpuint(w->services, ==, 2);
	g_assert_cmpuint(w->service_at[0], ==, 1070);
	g_assert_cmpuint(w->service_at[1], ==, 1100);
	world_free(w);
}

/* Nothing can happen any more. */
static void test_dead(void)
{
	struct world *w = world_new("1x2x1");

	world_go(w);
	g_assert_cmpint(w->fake->vm.stop, ==, VM_STOP_TIMEOUT);
	world_free(w);
}

/* A vCPU that waits for SIPI does not run, whatever is sent to it. */
static void test_wait_sipi(void)
{
	static const struct script sender[] = { { ACT_IPI, 1 }, { ACT_RUN, 20000 }, { ACT_STOP, 0 } };
	struct world *w = world_new("1x2x1");
	u32 i;

	w->cpu[0].script = sender;
	w->fake->vm.vcpu[1]->mp_state = VCPU_WAIT_SIPI;
	world_go(w);
	for (i = 0; i < w->turns; i++)
		g_assert_cmpuint(w->log[i].cpu, ==, 0);
	g_assert_cmpuint(counter_read(&w->fake->vm.vcpu[1]->counters, COUNTER_idle_ns), ==, 0);
	world_free(w);
}

/* A pause takes effect before the next turn, and what follows goes on from there. */
static void test_pause(void)
{
	static const struct script pausing[] = {
		{ ACT_RUN, 300 }, { ACT_PAUSE, 0 }, { ACT_RUN, 5000 }, { ACT_STOP, 0 },
	};
	static const struct script work[] = { { ACT_END, 0 } };
	struct world *w = world_new("1x2x1");

	w->cpu[0].script = pausing;
	w->cpu[1].script = work;
	world_go(w);
	g_assert_cmpint(w->fake->vm.stop, ==, VM_RUNNING);
	g_assert_cmpuint(w->turns, ==, 1);
	g_assert_cmpuint(w->cpu[0].now, ==, 300);
	world_go(w);
	g_assert_cmpint(w->fake->vm.stop, ==, VM_STOP_EXIT);
	check_lockstep(w);
	g_assert_cmpuint(w->cpu[0].now, ==, 5300);
	world_free(w);
}

static void test_skew(void)
{
	static const struct script work[] = { { ACT_RUN, 100 }, { ACT_STOP, 0 } };
	struct world *w = world_new("1x2x1");

	w->cpu[0].script = work;
	w->fake->vm.vcpu[0]->skew_ns = 123;
	world_go(w);
	g_assert_cmpuint(w->cpu[0].now, ==, 223);
	g_assert_cmpuint(w->fake->vm.vcpu[0]->skew_ns, ==, 0);
	world_free(w);
}

/*
 * With lines, each runs to the end of its quantum's cell; threads of a core that hand lines to each other
 * stay within a short time of each other meanwhile, and those of other cores do not notice.
 */
static void test_near(void)
{
	static const struct script work[] = { { ACT_END, 0 } };
	static const struct script handing[] = { { ACT_RUN, 3000 }, { ACT_NEAR, 5500 }, { ACT_RUN, 20000 }, { ACT_STOP, 0 } };
	struct world *w = world_new("1x2x2");
	u32 i, thread = 1, shorter = 0;
	u64 at[4] = { 0 };

	w->fake->vm.cost.memory = true;
	w->fake->vm.near_ns = 50;
	for (i = 0; i < 4; i++)
		w->cpu[i].script = i ? work : handing;
	while (!same_core(&w->fake->vm, 0, thread))
		thread++;
	world_go(w);
	g_assert_cmpuint(quantum(w), ==, 1000);
	for (i = 0; i < w->turns; i++) {
		const struct turn *t = &w->log[i];
		u64 other = at[t->cpu ? 0 : thread];

		if (same_core(&w->fake->vm, 0, t->cpu) && t->from >= 4000 && t->from < 8500 && other < 8500) {
			g_assert_cmpuint(t->from, <=, other);
			g_assert_cmpuint(t->to, <=, other + 50);
			shorter++;
		} else {
			g_assert_cmpuint(t->to % 1000, ==, 0);
		}
		at[t->cpu] = t->to;
	}
	/* One is 50 ns ahead, then the other. */
	g_assert_cmpuint(shorter, >=, 4500 / 50);
	g_assert_cmpuint(w->cpu[0].now, ==, 23000);
	world_free(w);
}

/* Many vCPUs in a storm of messages: the order holds, nothing is lost, and two runs are the same. */
static void storm(struct world *w)
{
	static const struct script busy[] = {
		{ ACT_RUN, 700 }, { ACT_IPI, 5 }, { ACT_RUN, 1900 }, { ACT_IPI, 2 }, { ACT_RUN, 30 }, { ACT_LOOP, 0 },
	};
	static const struct script sleepy[] = { { ACT_RUN, 110 }, { ACT_HLT, 0 }, { ACT_LOOP, 0 } };
	static const struct script last[] = { { ACT_RUN, 90000 }, { ACT_STOP, 0 } };
	u32 i;

	for (i = 0; i < 8; i++)
		w->cpu[i].script = i == 7 ? last : i & 1 ? busy : sleepy;
	world_go(w);
}

static void test_storm(void)
{
	struct world *a = world_new("2x2x2"), *b = world_new("2x2x2");
	u64 sent = 0, delivered = 0;
	u32 i;

	storm(a);
	storm(b);
	g_assert_cmpuint(a->turns, ==, b->turns);
	g_assert_cmpmem(a->log, a->turns * sizeof(a->log[0]), b->log, b->turns * sizeof(b->log[0]));
	for (i = 0; i < 8; i++) {
		sent += counter_read(&a->fake->vm.vcpu[i]->counters, COUNTER_ipis_sent);
		delivered += counter_read(&a->fake->vm.vcpu[i]->counters, COUNTER_ipis_delivered);
	}
	g_assert_cmpuint(sent, >, 100);
	/* What was under way at the end has not come: at most what two quanta can hold. */
	g_assert_cmpuint(delivered, <=, sent);
	g_assert_cmpuint(sent - delivered, <=, 12);
	g_assert_cmpuint(a->cpu[2].irqs, >, 10);
	g_assert_cmpuint(a->cpu[5].irqs, >, 10);
	world_free(a);
	world_free(b);
}

static void waiting(struct world *w, bool no_park)
{
	static const struct script waiter[] = { { ACT_RUN, 130 }, { ACT_WAIT, 0 }, { ACT_RUN, 470 }, { ACT_WRITE, 2 }, { ACT_LOOP, 0 } };
	static const struct script second[] = { { ACT_WAIT, 0 }, { ACT_RUN, 50 }, { ACT_HLT, 0 }, { ACT_LOOP, 0 } };
	static const struct script writer[] = {
		{ ACT_RUN, 1730 }, { ACT_WRITE, 1 }, { ACT_RUN, 510 }, { ACT_WRITE, 5 }, { ACT_IPI, 2 }, { ACT_RUN, 4100 }, { ACT_WRITE, 3 },
		{ ACT_POST, 333 }, { ACT_IPI, 5 }, { ACT_LOOP, 0 },
	};
	static const struct script last[] = { { ACT_RUN, 90000 }, { ACT_STOP, 0 } };
	static const struct script *const script[] = { writer, waiter, second, waiter, writer, second, waiter, last };
	u32 i;

	w->fake->vm.cost.memory = true;
	w->fake->vm.no_park = no_park;
	for (i = 0; i < 8; i++)
		w->cpu[i].script = script[i];
	world_go(w);
}

/* A parked vCPU is where it would be had it executed its loop, whoever wakes it and when; nobody else notices. */
static void test_park(void)
{
	struct world *a = world_new("2x4x1"), *b = world_new("2x4x1");
	u32 i, k = 0, parked = 0, events = 0;

	waiting(a, false);
	waiting(b, true);
	for (i = 0; i < 8; i++) {
		g_assert_cmpuint(a->cpu[i].now, ==, b->cpu[i].now);
		g_assert_cmpuint(a->cpu[i].at, ==, b->cpu[i].at);
		g_assert_cmpuint(a->cpu[i].irqs, ==, b->cpu[i].irqs);
		g_assert_cmpuint(a->cpu[i].last_irq, ==, b->cpu[i].last_irq);
		events += a->cpu[i].irqs;
	}
	g_assert_cmpuint(events, >, 20);
	g_assert_cmpuint(a->services, ==, b->services);
	/* Of the turns of those that never wait none is missing, and none has moved. */
	for (i = 0; i < a->turns; i++) {
		if (a->log[i].cpu != 0 && a->log[i].cpu != 4 && a->log[i].cpu != 7)
			continue;
		while (k < b->turns && b->log[k].cpu != 0 && b->log[k].cpu != 4 && b->log[k].cpu != 7)
			k++;
		g_assert_cmpuint(k, <, b->turns);
		g_assert_cmpmem(&a->log[i], sizeof(a->log[i]), &b->log[k], sizeof(b->log[k]));
		k++;
	}
	parked = b->turns - a->turns;
	g_assert_cmpint((int)parked, >, 50);
	world_free(a);
	world_free(b);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/lockstep/order", test_order);
	g_test_add_func("/lockstep/wake", test_wake);
	g_test_add_func("/lockstep/self", test_self);
	g_test_add_func("/lockstep/jump", test_jump);
	g_test_add_func("/lockstep/service", test_service);
	g_test_add_func("/lockstep/service_alone", test_service_alone);
	g_test_add_func("/lockstep/service_posted", test_service_posted);
	g_test_add_func("/lockstep/dead", test_dead);
	g_test_add_func("/lockstep/wait_sipi", test_wait_sipi);
	g_test_add_func("/lockstep/pause", test_pause);
	g_test_add_func("/lockstep/skew", test_skew);
	g_test_add_func("/lockstep/near", test_near);
	g_test_add_func("/lockstep/park", test_park);
	g_test_add_func("/lockstep/storm", test_storm);
	return g_test_run();
}
