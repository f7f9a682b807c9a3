// SPDX-License-Identifier: GPL-2.0-only
/*
 * Second-level faults as the kvm engine serves them, with no KVM: a thread touches the guest's
 * view of RAM where a vCPU's thread would do it in KVM_RUN. What the host kernel has of
 * userfaultfd is the real thing; where it is not allowed, the tests are skipped.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "kvm/kvm.h"

#define NR_PAGES	64u
#define NR_CPUS		2u

struct fixture;

/* A thread that touches memory as a vCPU's would. */
struct toucher {
	struct fixture *f;
	struct vcpu cpu;
	struct kvm_vcpu kv;
	GThread *thread;
	GAsyncQueue *todo, *done;
};

struct fixture {
	struct vm vm;
	struct vcpu *cpus[NR_CPUS];
	struct toucher t[NR_CPUS];
	struct kvm_vm kvm;
	struct engine_ops ops;
	u32 nr[NR_EPT_CAUSES];		/* (a) violations */
	gpa_t gpa;			/* (a) of the last one */
	u64 delay;			/* (a) ns, given to each */
};

/* One access of the "vCPU"; a read gives its value back. */
struct touch {
	volatile u8 *at;
	bool write, quit;
	u8 value;
	u64 ns;			/* how long it took */
};

u64 vcpu_ept_violation(struct vcpu *vcpu, gpa_t gpa, enum ept_cause cause)
{
	struct fixture *f = (struct fixture *)vcpu->vm;

	__atomic_fetch_add(&f->nr[cause], 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&f->gpa, gpa, __ATOMIC_SEQ_CST);
	return __atomic_load_n(&f->delay, __ATOMIC_SEQ_CST);
}

void vm_request_stop(struct vm *vm, enum vm_stop why, int exit_code)
{
	g_error("a fault could not be resolved");
}

static u64 fixture_now(struct vm *vm, struct vcpu *vcpu)
{
	return (u64)g_get_monotonic_time() * 1000;
}

static void *vcpu_thread(void *arg)
{
	struct toucher *self = arg;
	bool quit = false;
	struct touch *t;
	u64 start;

	self->kv.thread = pthread_self();
	__atomic_store_n(&self->kv.tid, gettid(), __ATOMIC_SEQ_CST);
	while (!quit) {
		t = g_async_queue_pop(self->todo);
		quit = t->quit;
		start = fixture_now(NULL, NULL);
		if (t->write)
			*t->at = t->value;
		else if (!quit)
			t->value = *t->at;
		t->ns = fixture_now(NULL, NULL) - start;
		/* From here on it is gone. */
		g_async_queue_push(self->done, t);
	}
	return NULL;
}

static void begin(struct fixture *f, u32 cpu, struct touch *t)
{
	g_async_queue_push(f->t[cpu].todo, t);
}

static void finish(struct fixture *f, u32 cpu, struct touch *t)
{
	g_assert_true(g_async_queue_timeout_pop(f->t[cpu].done, 20 * G_USEC_PER_SEC) == t);
}

static void give(struct fixture *f, struct touch *t)
{
	begin(f, 0, t);
	finish(f, 0, t);
}

static bool setup(struct fixture *f, bool protect)
{
	char why[256];
	u32 i;

	if (userfault_probe(protect, why, sizeof(why))) {
		g_test_skip(why);
		return false;
	}
	memset(f, 0, sizeof(*f));
	f->ops.now = fixture_now;
	f->vm.engine = &f->ops;
	f->vm.engine_data = &f->kvm;
	f->vm.topo.nr_cpus = NR_CPUS;
	f->vm.vcpu = f->cpus;
	for (i = 0; i < NR_CPUS; i++) {
		f->t[i].f = f;
		f->cpus[i] = &f->t[i].cpu;
		f->t[i].cpu.id = i;
		f->t[i].cpu.vm = &f->vm;
		f->t[i].cpu.engine = &f->t[i].kv;
	}
	f->vm.inject.ept_protect_per_s = protect;
	g_assert_cmpint(memory_create(&f->vm.mem), ==, 0);
	/* Two slots: a page's offset in the file is none of its address. */
	g_assert_cmpint(memory_add(&f->vm.mem, 0, NR_PAGES * PAGE_SIZE, 0), ==, 0);
	g_assert_cmpint(memory_add(&f->vm.mem, 16 * MIB, NR_PAGES * PAGE_SIZE, 0), ==, 0);
	g_assert_cmpint(userfault_create(&f->vm, &f->kvm.userfault), ==, 0);
	g_assert_cmpint(userfault_add(f->kvm.userfault, &f->vm.mem.slot[0]), ==, 0);
	g_assert_cmpint(userfault_add(f->kvm.userfault, &f->vm.mem.slot[1]), ==, 0);
	g_assert_cmpint(userfault_start(f->kvm.userfault), ==, 0);
	for (i = 0; i < NR_CPUS; i++) {
		f->t[i].todo = g_async_queue_new();
		f->t[i].done = g_async_queue_new();
		f->t[i].thread = g_thread_new("vcpu", vcpu_thread, &f->t[i]);
		/* Its faults are known by its thread's id. */
		while (!__atomic_load_n(&f->t[i].kv.tid, __ATOMIC_SEQ_CST))
			g_usleep(100);
	}
	return true;
}

static void teardown(struct fixture *f)
{
	struct touch quit = { .quit = true };
	u32 i;

	for (i = 0; i < NR_CPUS; i++) {
		begin(f, i, &quit);
		finish(f, i, &quit);
		g_thread_join(f->t[i].thread);
		g_async_queue_unref(f->t[i].todo);
		g_async_queue_unref(f->t[i].done);
	}
	userfault_destroy(f->kvm.userfault);
	memory_destroy(&f->vm.mem);
}

static u8 *view(struct fixture *f, gpa_t gpa)
{
	const struct memslot *slot = memory_slot(&f->vm.mem, gpa);

	return slot->guest_hva + (gpa - slot->gpa);
}

/* Violations, of this cause alone, that an access takes. */
static u32 takes(struct fixture *f, gpa_t gpa, bool write, u8 value, enum ept_cause cause)
{
	struct touch t = { .at = view(f, gpa), .write = write, .value = value };
	u32 before[NR_EPT_CAUSES], i;

	memcpy(before, f->nr, sizeof(before));
	give(f, &t);
	if (!write)
		g_assert_cmpuint(t.value, ==, value);
	for (i = 0; i < NR_EPT_CAUSES; i++)
		if (i != cause)
			g_assert_cmpuint(__atomic_load_n(&f->nr[i], __ATOMIC_SEQ_CST), ==, before[i]);
	if (f->nr[cause] > before[cause])
		g_assert_cmphex(f->gpa, ==, ALIGN_DOWN(gpa, PAGE_SIZE));
	return f->nr[cause] - before[cause];
}

static int lower(struct fixture *f, gpa_t gpa, u64 pages, enum gpa_rights left)
{
	return userfault_lower(f->kvm.userfault, gpa, pages * PAGE_SIZE, left);
}

static const gpa_t pages[] = { 0, 5 * PAGE_SIZE, (NR_PAGES - 1) * PAGE_SIZE, 16 * MIB + 3 * PAGE_SIZE,
			       16 * MIB + (NR_PAGES - 1) * PAGE_SIZE };

static void test_refault(void)
{
	struct fixture *f = g_new0(struct fixture, 1);
	u32 p;

	if (setup(f, false)) {
		for (p = 0; p < ARRAY_SIZE(pages); p++) {
			gpa_t gpa = pages[p] + 8;

			g_assert_cmpint(lower(f, pages[p], 1, GPA_NONE), ==, 0);
			g_assert_cmpuint(takes(f, gpa, true, 7, EPT_FIRST_TOUCH), ==, 1);
			g_assert_cmpuint(takes(f, gpa, false, 7, EPT_FIRST_TOUCH), ==, 0);
			g_assert_cmpint(lower(f, pages[p], 1, GPA_NONE), ==, 1);
			g_assert_cmpint(lower(f, pages[p], 1, GPA_NONE), ==, 0);
			g_assert_cmpuint(takes(f, gpa, false, 7, EPT_REFAULT), ==, 1);
			g_assert_cmpuint(takes(f, gpa, true, 8, EPT_REFAULT), ==, 0);
			/* Was not asked for at create. */
			g_assert_cmpint(lower(f, pages[p], 1, GPA_READ), ==, -EOPNOTSUPP);
		}
		teardown(f);
	}
	g_free(f);
}

static void check_protect(struct fixture *f, gpa_t page)
{
	gpa_t gpa = page + 16;
	struct touch t = { .at = view(f, gpa), .write = true, .value = 13 };

	g_assert_cmpint(lower(f, page, 1, GPA_READ), ==, 0);
	g_assert_cmpuint(takes(f, gpa, true, 9, EPT_FIRST_TOUCH), ==, 1);
	g_assert_cmpint(lower(f, page, 1, GPA_READ), ==, 1);
	g_assert_cmpint(lower(f, page, 1, GPA_READ), ==, 0);
	g_assert_cmpuint(takes(f, gpa, false, 9, EPT_WRITE_PROTECT), ==, 0);
	g_assert_cmpuint(takes(f, gpa, true, 10, EPT_WRITE_PROTECT), ==, 1);
	g_assert_cmpuint(takes(f, gpa, true, 11, EPT_WRITE_PROTECT), ==, 0);
	/* A mapping that goes takes the protection along, whatever the access that brings it back. */
	g_assert_cmpint(lower(f, page, 1, GPA_READ), ==, 1);
	g_assert_cmpint(lower(f, page, 1, GPA_NONE), ==, 1);
	g_assert_cmpint(lower(f, page, 1, GPA_READ), ==, 0);
	g_assert_cmpuint(takes(f, gpa, false, 11, EPT_REFAULT), ==, 1);
	g_assert_cmpuint(takes(f, gpa, true, 12, EPT_REFAULT), ==, 0);
	g_assert_cmpint(lower(f, page, 1, GPA_READ), ==, 1);
	g_assert_cmpint(lower(f, page, 1, GPA_NONE), ==, 1);
	g_assert_cmpuint(takes(f, gpa, true, 12, EPT_REFAULT), ==, 1);
	/* The VMM's own view of the page is no concern of the guest's mapping. */
	g_assert_cmpint(lower(f, page, 1, GPA_READ), ==, 1);
	*(volatile u8 *)memory_hva(&f->vm.mem, gpa, 1) = 12;
	/* The delay is the write's. */
	f->delay = 30 * NSEC_PER_MSEC;
	give(f, &t);
	f->delay = 0;
	g_assert_cmpuint(t.ns, >=, 30 * NSEC_PER_MSEC);
	g_assert_cmpuint(takes(f, gpa, false, 13, EPT_WRITE_PROTECT), ==, 0);
}

static void test_write_protect(void)
{
	struct fixture *f = g_new0(struct fixture, 1);
	u32 p;

	if (setup(f, true)) {
		for (p = 0; p < ARRAY_SIZE(pages); p++)
			check_protect(f, pages[p]);
		g_assert_cmpuint(f->nr[EPT_WRITE_PROTECT], ==, 2 * ARRAY_SIZE(pages));
		/* A whole slot at once, over all shards: those that have a mapping. */
		g_assert_cmpint(lower(f, 0, NR_PAGES, GPA_READ), ==, 3);
		g_assert_cmpuint(takes(f, pages[1], true, 1, EPT_WRITE_PROTECT), ==, 1);
		g_assert_cmpint(lower(f, 0, NR_PAGES, GPA_NONE), ==, 3);
		g_assert_cmpint(lower(f, NR_PAGES * PAGE_SIZE, 1, GPA_READ), ==, -EFAULT);
		teardown(f);
	}
	g_free(f);
}

/*
 * Kicks. A vCPU's thread that a signal finds in the host's fault handler leaves it, and comes back
 * for the same page: as the thread here does, whose handler stands for a guest's interrupt.
 */
static u32 kicks_taken;			/* (a) */
static volatile u8 *interrupt_touches;	/* (a) what the handler writes to, once; may be NULL */

static void on_kick(int sig)
{
	volatile u8 *p = __atomic_exchange_n(&interrupt_touches, NULL, __ATOMIC_SEQ_CST);

	if (p)
		*p = 1;
	__atomic_fetch_add(&kicks_taken, 1, __ATOMIC_SEQ_CST);
}

static void kick(struct fixture *f, u32 cpu)
{
	pthread_kill(f->t[cpu].kv.thread, SIGUSR1);
}

static u32 count(struct fixture *f, enum ept_cause cause)
{
	return __atomic_load_n(&f->nr[cause], __ATOMIC_SEQ_CST);
}

/* Wait until so many of this cause have been counted in all. */
static void await(struct fixture *f, enum ept_cause cause, u32 want)
{
	gint64 end = g_get_monotonic_time() + 20 * G_USEC_PER_SEC;

	while (count(f, cause) < want && g_get_monotonic_time() < end)
		g_usleep(100);
	g_assert_cmpuint(count(f, cause), ==, want);
}

/* Take `n` kicks; between two there is time to fault again. */
static void kick_often(struct fixture *f, u32 cpu, u32 n)
{
	u32 before, i;

	for (i = 0; i < n; i++) {
		before = __atomic_load_n(&kicks_taken, __ATOMIC_SEQ_CST);
		kick(f, cpu);
		while (__atomic_load_n(&kicks_taken, __ATOMIC_SEQ_CST) == before)
			g_usleep(100);
		g_usleep(5000);
	}
}

/* One access of vCPU 0 that waits out a delay of 200 ms, kicked meanwhile. */
static void kicked_touch(struct fixture *f, gpa_t gpa, enum ept_cause cause)
{
	struct touch t = { .at = view(f, gpa), .write = true, .value = 21 };
	u32 before[NR_EPT_CAUSES], i;
	u64 served = counter_read(&f->t[0].cpu.counters, COUNTER_ept_service_ns), start = fixture_now(NULL, NULL);

	memcpy(before, f->nr, sizeof(before));
	__atomic_store_n(&f->delay, 200 * NSEC_PER_MSEC, __ATOMIC_SEQ_CST);
	begin(f, 0, &t);
	await(f, cause, before[cause] + 1);
	kick_often(f, 0, 10);
	finish(f, 0, &t);
	__atomic_store_n(&f->delay, 0, __ATOMIC_SEQ_CST);
	/* The whole delay, and one only: counted once, its time once. */
	g_assert_cmpuint(t.ns, >=, 200 * NSEC_PER_MSEC);
	for (i = 0; i < NR_EPT_CAUSES; i++)
		g_assert_cmpuint(count(f, i), ==, before[i] + (i == cause));
	/* Asked for a page of the same shard that has nothing to lose: once it answers, all of the fault is written down. */
	g_assert_cmpint(lower(f, 7 * PAGE_SIZE, 1, GPA_NONE), ==, 0);
	served = counter_read(&f->t[0].cpu.counters, COUNTER_ept_service_ns) - served;
	g_assert_cmpuint(served, >=, 200 * NSEC_PER_MSEC);
	g_assert_cmpuint(served, <=, fixture_now(NULL, NULL) - start);
	g_assert_cmpuint(takes(f, gpa, false, 21, cause), ==, 0);
}

static void test_kick(void)
{
	struct fixture *f = g_new0(struct fixture, 1);
	u32 p;

	if (setup(f, true)) {
		for (p = 0; p < 2; p++) {
			kicked_touch(f, pages[p], EPT_FIRST_TOUCH);
			g_assert_cmpint(lower(f, pages[p], 1, GPA_READ), ==, 1);
			kicked_touch(f, pages[p], EPT_WRITE_PROTECT);
			g_assert_cmpint(lower(f, pages[p], 1, GPA_NONE), ==, 1);
			kicked_touch(f, pages[p], EPT_REFAULT);
			/* And again: each time that it goes it is a new one. */
			g_assert_cmpint(lower(f, pages[p], 1, GPA_NONE), ==, 1);
			g_assert_cmpuint(takes(f, pages[p], false, 21, EPT_REFAULT), ==, 1);
		}
		teardown(f);
	}
	g_free(f);
}

/* The interrupt's own fault is one more; the page that it interrupted is not. */
static void test_interrupt(void)
{
	struct fixture *f = g_new0(struct fixture, 1);
	struct touch t = { .write = true, .value = 5 };
	static const gpa_t other[] = { 60 * PAGE_SIZE, 5 * PAGE_SIZE };
	u32 i;

	if (setup(f, false)) {
		/* In another shard, if there is more than one; and in the same. */
		for (i = 0; i < ARRAY_SIZE(other); i++) {
			t.at = view(f, (3 + i) * PAGE_SIZE);
			__atomic_store_n(&f->delay, 300 * NSEC_PER_MSEC, __ATOMIC_SEQ_CST);
			begin(f, 0, &t);
			await(f, EPT_FIRST_TOUCH, 2 * i + 1);
			__atomic_store_n(&f->delay, 50 * NSEC_PER_MSEC, __ATOMIC_SEQ_CST);
			__atomic_store_n(&interrupt_touches, view(f, other[i]), __ATOMIC_SEQ_CST);
			kick(f, 0);
			await(f, EPT_FIRST_TOUCH, 2 * i + 2);
			/* Into the interrupt, and into what it interrupted. */
			kick_often(f, 0, 20);
			finish(f, 0, &t);
			g_assert_cmpuint(t.ns, >=, 300 * NSEC_PER_MSEC);
			g_assert_cmpuint(count(f, EPT_FIRST_TOUCH), ==, 2 * i + 2);
		}
		g_assert_cmpuint(count(f, EPT_REFAULT), ==, 0);
		teardown(f);
	}
	g_free(f);
}

/* Two vCPUs meet on a page: a fault of each, whoever is kicked. */
static void test_meet(void)
{
	struct fixture *f = g_new0(struct fixture, 1);
	struct touch t[NR_CPUS] = { { .write = true }, { .write = true } };
	u32 round, cpu;

	if (setup(f, false)) {
		f->delay = 100 * NSEC_PER_MSEC;
		for (round = 0; round < 2; round++) {
			enum ept_cause cause = round ? EPT_REFAULT : EPT_FIRST_TOUCH;

			for (cpu = 0; cpu < NR_CPUS; cpu++) {
				t[cpu].at = view(f, 9 * PAGE_SIZE);
				begin(f, cpu, &t[cpu]);
				await(f, cause, cpu + 1);
			}
			for (cpu = 0; cpu < NR_CPUS; cpu++)
				kick_often(f, cpu, 2);
			for (cpu = 0; cpu < NR_CPUS; cpu++)
				finish(f, cpu, &t[cpu]);
			g_assert_cmpuint(count(f, cause), ==, NR_CPUS);
			g_assert_cmpint(lower(f, 9 * PAGE_SIZE, 1, GPA_NONE), ==, 1);
		}
		teardown(f);
	}
	g_free(f);
}

static void *kicker(void *arg)
{
	struct fixture *f = arg;

	while (f->t[0].kv.tid)
		kick(f, 0);
	return NULL;
}

/* Kicks at any moment, on pages that come and go: each time one fault. */
static void test_kick_any_time(void)
{
	struct fixture *f = g_new0(struct fixture, 1);
	u32 round, page, n = 0;
	GThread *thread;

	if (setup(f, false)) {
		thread = g_thread_new("kicker", kicker, f);
		for (round = 0; round < 40; round++) {
			f->delay = round % 2 ? 50 * NSEC_PER_USEC : 0;
			for (page = 0; page < NR_PAGES; page++) {
				struct touch t = { .at = view(f, page * PAGE_SIZE), .write = true, .value = 1 };

				give(f, &t);
				n++;
				g_assert_cmpuint(count(f, EPT_FIRST_TOUCH) + count(f, EPT_REFAULT), ==, n);
			}
			g_assert_cmpint(lower(f, 0, NR_PAGES, GPA_NONE), ==, NR_PAGES);
		}
		g_assert_cmpuint(count(f, EPT_FIRST_TOUCH), ==, NR_PAGES);
		f->t[0].kv.tid = 0;
		g_thread_join(thread);
		teardown(f);
	}
	g_free(f);
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = on_kick, .sa_flags = SA_NODEFER };

	sigaction(SIGUSR1, &sa, NULL);
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/userfault/refault", test_refault);
	g_test_add_func("/userfault/write-protect", test_write_protect);
	g_test_add_func("/userfault/kick", test_kick);
	g_test_add_func("/userfault/interrupt", test_interrupt);
	g_test_add_func("/userfault/meet", test_meet);
	g_test_add_func("/userfault/kick-any-time", test_kick_any_time);
	return g_test_run();
}
