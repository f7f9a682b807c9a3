// SPDX-License-Identifier: GPL-2.0-only
/*
 * Second-level faults as the kvm engine serves them, with no KVM: a thread touches the guest's
 * view of RAM where a vCPU's thread would do it in KVM_RUN. What the host kernel has of
 * userfaultfd is the real thing; where it is not allowed, the tests are skipped.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "kvm/kvm.h"

#define NR_PAGES	64u

struct fixture {
	struct vm vm;
	struct vcpu cpu, *cpus[1];
	struct kvm_vcpu kv;
	struct kvm_vm kvm;
	struct engine_ops ops;
	u32 nr[NR_EPT_CAUSES];		/* (a) violations */
	gpa_t gpa;			/* (a) of the last one */
	u64 delay;			/* (a) ns, given to each */
	GThread *thread;
	GAsyncQueue *todo, *done;
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
	struct fixture *f = arg;
	bool quit = false;
	struct touch *t;
	u64 begin;

	__atomic_store_n(&f->kv.tid, gettid(), __ATOMIC_SEQ_CST);
	while (!quit) {
		t = g_async_queue_pop(f->todo);
		quit = t->quit;
		begin = fixture_now(NULL, NULL);
		if (t->write)
			*t->at = t->value;
		else if (!quit)
			t->value = *t->at;
		t->ns = fixture_now(NULL, NULL) - begin;
		/* From here on it is gone. */
		g_async_queue_push(f->done, t);
	}
	return NULL;
}

static void give(struct fixture *f, struct touch *t)
{
	g_async_queue_push(f->todo, t);
	g_assert_true(g_async_queue_timeout_pop(f->done, 20 * G_USEC_PER_SEC) == t);
}

static bool setup(struct fixture *f, bool protect)
{
	char why[256];

	if (userfault_probe(protect, why, sizeof(why))) {
		g_test_skip(why);
		return false;
	}
	memset(f, 0, sizeof(*f));
	f->ops.now = fixture_now;
	f->vm.engine = &f->ops;
	f->vm.engine_data = &f->kvm;
	f->vm.topo.nr_cpus = 1;
	f->vm.vcpu = f->cpus;
	f->cpus[0] = &f->cpu;
	f->cpu.vm = &f->vm;
	f->cpu.engine = &f->kv;
	f->vm.inject.ept_protect_per_s = protect;
	g_assert_cmpint(memory_create(&f->vm.mem), ==, 0);
	/* Two slots: a page's offset in the file is none of its address. */
	g_assert_cmpint(memory_add(&f->vm.mem, 0, NR_PAGES * PAGE_SIZE, 0), ==, 0);
	g_assert_cmpint(memory_add(&f->vm.mem, 16 * MIB, NR_PAGES * PAGE_SIZE, 0), ==, 0);
	g_assert_cmpint(userfault_create(&f->vm, &f->kvm.userfault), ==, 0);
	g_assert_cmpint(userfault_add(f->kvm.userfault, &f->vm.mem.slot[0]), ==, 0);
	g_assert_cmpint(userfault_add(f->kvm.userfault, &f->vm.mem.slot[1]), ==, 0);
	g_assert_cmpint(userfault_start(f->kvm.userfault), ==, 0);
	f->todo = g_async_queue_new();
	f->done = g_async_queue_new();
	f->thread = g_thread_new("vcpu", vcpu_thread, f);
	return true;
}

static void teardown(struct fixture *f)
{
	struct touch quit = { .quit = true };

	give(f, &quit);
	g_thread_join(f->thread);
	userfault_destroy(f->kvm.userfault);
	memory_destroy(&f->vm.mem);
	g_async_queue_unref(f->todo);
	g_async_queue_unref(f->done);
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

/* The service thread wakes the vCPU and takes note after that: until then a page has nothing to lose yet. */
static int lower_soon(struct fixture *f, gpa_t gpa, u32 want, u64 nr, enum gpa_rights left)
{
	gint64 end = g_get_monotonic_time() + 20 * G_USEC_PER_SEC;
	int ret, sum = 0;

	do {
		ret = lower(f, gpa, nr, left);
		sum += ret > 0 ? ret : 0;
	} while (ret >= 0 && sum < (int)want && g_get_monotonic_time() < end);
	return ret < 0 ? ret : sum;
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
			g_assert_cmpint(lower_soon(f, pages[p], 1, 1, GPA_NONE), ==, 1);
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
	g_assert_cmpint(lower_soon(f, page, 1, 1, GPA_READ), ==, 1);
	g_assert_cmpint(lower(f, page, 1, GPA_READ), ==, 0);
	g_assert_cmpuint(takes(f, gpa, false, 9, EPT_WRITE_PROTECT), ==, 0);
	g_assert_cmpuint(takes(f, gpa, true, 10, EPT_WRITE_PROTECT), ==, 1);
	g_assert_cmpuint(takes(f, gpa, true, 11, EPT_WRITE_PROTECT), ==, 0);
	/* A mapping that goes takes the protection along, whatever the access that brings it back. */
	g_assert_cmpint(lower_soon(f, page, 1, 1, GPA_READ), ==, 1);
	g_assert_cmpint(lower(f, page, 1, GPA_NONE), ==, 1);
	g_assert_cmpint(lower(f, page, 1, GPA_READ), ==, 0);
	g_assert_cmpuint(takes(f, gpa, false, 11, EPT_REFAULT), ==, 1);
	g_assert_cmpuint(takes(f, gpa, true, 12, EPT_REFAULT), ==, 0);
	g_assert_cmpint(lower_soon(f, page, 1, 1, GPA_READ), ==, 1);
	g_assert_cmpint(lower(f, page, 1, GPA_NONE), ==, 1);
	g_assert_cmpuint(takes(f, gpa, true, 12, EPT_REFAULT), ==, 1);
	/* The VMM's own view of the page is no concern of the guest's mapping. */
	g_assert_cmpint(lower_soon(f, page, 1, 1, GPA_READ), ==, 1);
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
		g_assert_cmpint(lower_soon(f, 0, 3, NR_PAGES, GPA_READ), ==, 3);
		g_assert_cmpuint(takes(f, pages[1], true, 1, EPT_WRITE_PROTECT), ==, 1);
		g_assert_cmpint(lower(f, 0, NR_PAGES, GPA_NONE), ==, 3);
		g_assert_cmpint(lower(f, NR_PAGES * PAGE_SIZE, 1, GPA_READ), ==, -EFAULT);
		teardown(f);
	}
	g_free(f);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/userfault/refault", test_refault);
	g_test_add_func("/userfault/write-protect", test_write_protect);
	return g_test_run();
}
