// SPDX-License-Identifier: GPL-2.0-only
/*
 * Second-level faults on kvm. The guest's view of its RAM (guest_hva) is
 * registered with userfaultfd; KVM's fault on a page that is not mapped there
 * stops the vCPU's thread in the host's fault handler until this service
 * resolves it. A page new to the file arrives as MISSING and gets a zero page; one that
 * the file has (loaded by the VMM, or dropped by userfault_drop()) arrives as
 * MINOR and is mapped by UFFDIO_CONTINUE with its contents kept
 * (Documentation/admin-guide/mm/userfaultfd.rst). Where the scenario asks for it, pages are
 * protected from writes, by UFFDIO_WRITEPROTECT, which KVM's own mapping follows; a write arrives as WP.
 *
 * Memory is cut into shards, a descriptor and a thread each, so that faults do
 * not queue behind one reader. A delayed fault waits in its shard's clock and
 * never stops the thread: others go on.
 *
 * A message is not yet a fault of the guest's: a vCPU that is kicked while it waits comes back with
 * another one for the same page. What has been counted already, fault-list knows.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "kvm/fault-list.h"
#include "kvm/kvm.h"

#define UF_MAX_SHARDS	8
#define UF_BATCH	64	/* events read at once */
#define UF_CPU_NONE	UINT32_MAX
#define UF_FEATURES	(UFFD_FEATURE_MISSING_SHMEM | UFFD_FEATURE_MINOR_SHMEM | UFFD_FEATURE_THREAD_ID)
#define UF_PROTECT	(UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM)

struct uf_shard {
	struct userfault *uf;		/* (c) */
	int fd, stop_fd;		/* (c) */
	pthread_t thread;		/* (c) */
	bool running;			/* (c) */
	struct clock clock;		/* faults that wait out their delay, by number; this thread only */
	/* Rights of this shard's pages change under it, along with their bits and what is known of their faults. */
	GMutex lock;
	struct fault_list list;		/* (l) */
};

struct userfault {
	struct vm *vm;			/* (c) */
	u32 nr_shards;			/* (c) */
	bool protect;			/* (c) pages may lose the right to be written */
	struct uf_shard shard[UF_MAX_SHARDS];
	/* One bit a page of the memfd: is it mapped in the guest's view, was it taken away there, is it protected? */
	u64 *mapped, *dropped, *protected;	/* (a) */
};

static bool bit_test_set(u64 *map, u64 i)
{
	return __atomic_fetch_or(&map[i / 64], BIT_ULL(i % 64), __ATOMIC_RELAXED) >> (i % 64) & 1;
}

static bool bit_test(const u64 *map, u64 i)
{
	return __atomic_load_n(&map[i / 64], __ATOMIC_RELAXED) >> (i % 64) & 1;
}

static bool bit_test_clear(u64 *map, u64 i)
{
	return __atomic_fetch_and(&map[i / 64], ~BIT_ULL(i % 64), __ATOMIC_RELAXED) >> (i % 64) & 1;
}

static int uf_open(bool protect, char *why, size_t why_len)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UF_FEATURES | (protect ? UF_PROTECT : 0) };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK), dev, err;

	if (fd < 0 && errno == EPERM) {
		dev = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
		if (dev >= 0) {
			fd = ioctl(dev, USERFAULTFD_IOC_NEW, O_CLOEXEC | O_NONBLOCK);
			err = errno;
			close(dev);
			errno = err;
		} else {
			errno = EPERM;
		}
	}
	if (fd < 0) {
		err = errno;
		snprintf(why, why_len, "userfaultfd: %s%s", strerror(err),
			 err == EPERM ? ": needs CAP_SYS_PTRACE or access to /dev/userfaultfd" :
			 err == ENOSYS ? ": the host kernel lacks CONFIG_USERFAULTFD" : "");
		return -err;
	}
	if (ioctl(fd, UFFDIO_API, &api) < 0) {
		err = errno;
		snprintf(why, why_len, "userfaultfd: %s (%s)", protect ?
			 "write protection of shared memory needs Linux 5.19 or later and CONFIG_PTE_MARKER_UFFD_WP" :
			 "minor faults on shared memory need Linux 5.14 or later", strerror(err));
		close(fd);
		return -err;
	}
	return fd;
}

int userfault_probe(bool protect, char *why, size_t why_len)
{
	int fd = uf_open(protect, why, why_len);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* The slot that holds a page of the memfd. */
static const struct memslot *uf_slot_of_page(const struct userfault *uf, u64 page)
{
	u64 off = page << PAGE_SHIFT;
	u32 i;

	for (i = 0; i < uf->vm->mem.nr_slots; i++) {
		const struct memslot *s = &uf->vm->mem.slot[i];

		if (off >= s->offset && off - s->offset < s->size)
			return s;
	}
	return NULL;
}

/* The vCPU whose thread has this id, or UF_CPU_NONE (the VMM's own threads touch guest_hva through KVM ioctls only). */
static u32 uf_cpu_of_tid(const struct vm *vm, pid_t tid)
{
	u32 i;

	for (i = 0; i < vm->topo.nr_cpus; i++) {
		const struct kvm_vcpu *kv = vm->vcpu[i]->engine;

		if (__atomic_load_n(&kv->tid, __ATOMIC_RELAXED) == tid)
			return i;
	}
	return UF_CPU_NONE;
}

/* Take the right to write away, or give it back and wake who waits. Under the shard's lock. */
static int uf_protect(struct uf_shard *shard, u64 page, u64 addr, bool on)
{
	struct uffdio_writeprotect wp = { .range = { addr, PAGE_SIZE }, .mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : 0 };
	int ret;

	do {
		ret = ioctl(shard->fd, UFFDIO_WRITEPROTECT, &wp);
	} while (ret < 0 && errno == EAGAIN && shard->uf->vm->stop == VM_RUNNING);
	if (ret >= 0 && on)
		bit_test_set(shard->uf->protected, page);
	else if (ret >= 0)
		bit_test_clear(shard->uf->protected, page);
	return ret;
}

/*
 * Map the page and wake who waits. EEXIST: another vCPU's fault on the page was
 * resolved first, so only the wake-up is due. EAGAIN: the address space is
 * changing; try again.
 */
static int uf_map(struct uf_shard *shard, u64 page, u64 addr, bool minor)
{
	struct userfault *uf = shard->uf;
	int ret;

	do {
		struct uffdio_continue cont = { .range = { addr, PAGE_SIZE } };
		struct uffdio_zeropage zero = { .range = { addr, PAGE_SIZE } };

		ret = minor ? ioctl(shard->fd, UFFDIO_CONTINUE, &cont) : ioctl(shard->fd, UFFDIO_ZEROPAGE, &zero);
		/* The file has got the page meanwhile (the VMM wrote it): map that one. */
		if (ret < 0 && errno == EEXIST && !minor) {
			minor = true;
			errno = EAGAIN;
		}
	} while (ret < 0 && errno == EAGAIN && uf->vm->stop == VM_RUNNING);
	if (ret < 0 && errno == EEXIST) {
		struct uffdio_range range = { addr, PAGE_SIZE };

		ret = ioctl(shard->fd, UFFDIO_WAKE, &range);
	}
	bit_test_clear(uf->dropped, page);
	bit_test_set(uf->mapped, page);
	return ret;
}

/*
 * Give the page the right that was missing, by which all that wait for it are served: the host wakes
 * whoever waits in the range. An error would leave a vCPU stuck for ever: the VM ends.
 */
static void uf_resolve(struct uf_shard *shard, u64 page, enum fault_kind kind)
{
	struct userfault *uf = shard->uf;
	struct vm *vm = uf->vm;
	const struct memslot *slot = uf_slot_of_page(uf, page);
	u64 addr = (u64)(uintptr_t)slot->guest_hva + (page << PAGE_SHIFT) - slot->offset, now;
	int ret = kind == FAULT_WP ? uf_protect(shard, page, addr, false) :
				     uf_map(shard, page, addr, kind == FAULT_MINOR);
	const struct fault *fault;

	if (ret < 0 && vm->stop == VM_RUNNING) {
		fb_err("kvm: resolving a second-level fault at host address 0x%llx: %s", (unsigned long long)addr,
		       strerror(errno));
		vm_request_stop(vm, VM_STOP_ERROR, 0);
	}
	now = vm->engine->now(vm, NULL);
	while ((fault = fault_list_serve(&shard->list, page, kind)))
		counter_add(&vm->vcpu[fault->cpu]->counters, COUNTER_ept_service_ns, now - MIN(now, fault->since));
}

/* A delay is over: of a fault that may have been served already, with another one on its page. */
static void uf_due(void *ctx, u64 number, u64 due, u64 now)
{
	struct uf_shard *shard = ctx;
	const struct fault *fault = fault_list_waiting(&shard->list, number);

	if (fault)
		uf_resolve(shard, fault->page, fault->kind);
}

static void uf_vcpu_event(struct uf_shard *shard, struct fault fault, gpa_t gpa)
{
	struct userfault *uf = shard->uf;
	u64 delay;

	switch (fault_list_add(&shard->list, &fault)) {
	case FAULT_WAITS:
		/* Kicked and back: it is woken with what it has been waiting for. */
		return;
	case FAULT_SERVED:
		break;
	case FAULT_NEW:
		/*
		 * Not whether the page was touched before: two vCPUs that meet on a new page
		 * both fault, and both touch it first.
		 */
		delay = vcpu_ept_violation(uf->vm->vcpu[fault.cpu], gpa,
					   fault.kind == FAULT_WP ? EPT_WRITE_PROTECT :
					   bit_test(uf->dropped, fault.page) ? EPT_REFAULT : EPT_FIRST_TOUCH);
		if (delay) {
			clock_post(&shard->clock, fault.since + delay, uf_due, shard, fault.number);
			return;
		}
		break;
	}
	uf_resolve(shard, fault.page, fault.kind);
}

static void uf_event(struct uf_shard *shard, const struct uffd_msg *msg, u64 now)
{
	struct vm *vm = shard->uf->vm;
	u64 addr = ALIGN_DOWN(msg->arg.pagefault.address, PAGE_SIZE);
	struct fault fault = {
		.kind = msg->arg.pagefault.flags & UFFD_PAGEFAULT_FLAG_WP ? FAULT_WP :
			msg->arg.pagefault.flags & UFFD_PAGEFAULT_FLAG_MINOR ? FAULT_MINOR : FAULT_MISSING,
		.cpu = uf_cpu_of_tid(vm, (pid_t)msg->arg.pagefault.feat.ptid),
		.since = now,
	};
	u32 i;

	for (i = 0; i < vm->mem.nr_slots; i++) {
		const struct memslot *s = &vm->mem.slot[i];
		u64 start = (u64)(uintptr_t)s->guest_hva;

		if (addr < start || addr - start >= s->size)
			continue;
		fault.page = (s->offset + addr - start) >> PAGE_SHIFT;
		if (fault.cpu == UF_CPU_NONE)
			uf_resolve(shard, fault.page, fault.kind);
		else
			uf_vcpu_event(shard, fault, s->gpa + addr - start);
		return;
	}
}

static void *uf_thread(void *arg)
{
	struct uf_shard *shard = arg;
	struct vm *vm = shard->uf->vm;
	struct uffd_msg msg[UF_BATCH];
	struct pollfd pfd[2] = {
		{ .fd = shard->fd, .events = POLLIN },
		{ .fd = shard->stop_fd, .events = POLLIN },
	};

	prctl(PR_SET_TIMERSLACK, 1ul);
	for (;;) {
		u64 first = clock_first(&shard->clock), now = vm->engine->now(vm, NULL), wait;
		struct timespec ts, *timeout = NULL;
		ssize_t n, i;

		if (first != CLOCK_NEVER) {
			wait = first > now ? first - now : 0;
			ts.tv_sec = (time_t)(wait / NSEC_PER_SEC);
			ts.tv_nsec = (long)(wait % NSEC_PER_SEC);
			timeout = &ts;
		}
		ppoll(pfd, ARRAY_SIZE(pfd), timeout, NULL);
		if (pfd[1].revents)
			return NULL;
		/* Over the reading as well: no page is lowered between a message and what is made of it. */
		g_mutex_lock(&shard->lock);
		clock_run_due(&shard->clock, vm->engine->now(vm, NULL));
		fault_list_turn(&shard->list);
		n = read(shard->fd, msg, sizeof(msg));
		now = vm->engine->now(vm, NULL);
		for (i = 0; i < n / (ssize_t)sizeof(msg[0]); i++)
			if (msg[i].event == UFFD_EVENT_PAGEFAULT)
				uf_event(shard, &msg[i], now);
		g_mutex_unlock(&shard->lock);
	}
}

int userfault_create(struct vm *vm, struct userfault **out)
{
	struct userfault *uf = g_new0(struct userfault, 1);
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	char why[200];
	u32 i;

	*out = uf;
	uf->vm = vm;
	uf->protect = vm->inject.ept_protect_per_s;
	uf->nr_shards = (u32)CLAMP(cpus, 1, UF_MAX_SHARDS);
	for (i = 0; i < uf->nr_shards; i++) {
		struct uf_shard *shard = &uf->shard[i];

		shard->uf = uf;
		shard->stop_fd = -1;
		clock_init(&shard->clock, NULL, NULL);
		g_mutex_init(&shard->lock);
		fault_list_init(&shard->list);
		shard->fd = uf_open(uf->protect, why, sizeof(why));
		if (shard->fd < 0) {
			fb_err("kvm: cannot serve second-level faults (inject.ept.*): %s", why);
			return shard->fd;
		}
		shard->stop_fd = eventfd(0, EFD_CLOEXEC);
		if (shard->stop_fd < 0)
			return -errno;
	}
	return 0;
}

int userfault_add(struct userfault *uf, const struct memslot *slot)
{
	u64 pages = slot->size >> PAGE_SHIFT, done = 0;
	u32 i;

	for (i = 0; i < uf->nr_shards; i++) {
		u64 end = pages * (i + 1) / uf->nr_shards;
		struct uffdio_register reg = {
			.range.start = (u64)(uintptr_t)slot->guest_hva + (done << PAGE_SHIFT),
			.range.len = (end - done) << PAGE_SHIFT,
			.mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_MINOR |
				(uf->protect ? UFFDIO_REGISTER_MODE_WP : 0),
		};

		done = end;
		if (reg.range.len && ioctl(uf->shard[i].fd, UFFDIO_REGISTER, &reg) < 0) {
			int err = -errno;

			fb_err("kvm: registering guest RAM with userfaultfd: %s", strerror(-err));
			return err;
		}
	}
	return 0;
}

int userfault_start(struct userfault *uf)
{
	u64 words = DIV_ROUND_UP(uf->vm->mem.size >> PAGE_SHIFT, 64);
	u32 i;

	uf->mapped = g_malloc0_n(words, sizeof(u64));
	uf->dropped = g_malloc0_n(words, sizeof(u64));
	uf->protected = g_malloc0_n(words, sizeof(u64));
	for (i = 0; i < uf->nr_shards; i++) {
		int err = pthread_create(&uf->shard[i].thread, NULL, uf_thread, &uf->shard[i]);

		if (err) {
			fb_err("kvm: starting a userfaultfd thread: %s", strerror(err));
			return -err;
		}
		uf->shard[i].running = true;
	}
	return 0;
}

void userfault_destroy(struct userfault *uf)
{
	u64 one = 1;
	u32 i;

	for (i = 0; i < uf->nr_shards; i++) {
		struct uf_shard *shard = &uf->shard[i];

		if (!shard->uf)
			break;
		if (shard->running) {
			if (write(shard->stop_fd, &one, sizeof(one)) != sizeof(one))
				fb_warn("kvm: stopping a userfaultfd thread: %s", strerror(errno));
			pthread_join(shard->thread, NULL);
		}
		/* Closing the descriptor also unregisters the range and wakes every waiter. */
		if (shard->fd >= 0)
			close(shard->fd);
		if (shard->stop_fd >= 0)
			close(shard->stop_fd);
		clock_destroy(&shard->clock);
		fault_list_destroy(&shard->list);
		g_mutex_clear(&shard->lock);
	}
	g_free(uf->mapped);
	g_free(uf->dropped);
	g_free(uf->protected);
	g_free(uf);
}

/* The shard of a page of a slot, as userfault_add() has cut it. */
static struct uf_shard *uf_shard_of(struct userfault *uf, const struct memslot *slot, u64 page)
{
	u64 pages = slot->size >> PAGE_SHIFT;
	u32 i = 0;

	while (page >= pages * (i + 1) / uf->nr_shards)
		i++;
	return &uf->shard[i];
}

/* 1 if the page had a mapping and has none now. */
static int uf_drop_page(struct uf_shard *shard, u64 page, u8 *guest_hva)
{
	struct userfault *uf = shard->uf;

	if (!bit_test(uf->mapped, page))
		return 0;
	/* Drops the page table entries only: the file keeps the page, so the next access is a MINOR fault. */
	if (madvise(guest_hva, PAGE_SIZE, MADV_DONTNEED) < 0)
		return -errno;
	bit_test_clear(uf->mapped, page);
	bit_test_set(uf->dropped, page);
	/* UFFDIO_CONTINUE maps it with all rights again. */
	bit_test_clear(uf->protected, page);
	fault_list_lowered(&shard->list, page, GPA_NONE);
	return 1;
}

/* 1 if the page could be written to and can only be read now. */
static int uf_protect_page(struct uf_shard *shard, u64 page, u8 *guest_hva)
{
	if (!bit_test(shard->uf->mapped, page) || bit_test(shard->uf->protected, page))
		return 0;
	if (uf_protect(shard, page, (u64)(uintptr_t)guest_hva, true) < 0)
		return -errno;
	fault_list_lowered(&shard->list, page, GPA_READ);
	return 1;
}

int userfault_lower(struct userfault *uf, gpa_t gpa, u64 len, enum gpa_rights left)
{
	int lowered = 0, ret;

	if (left == GPA_READ && !uf->protect)
		return -EOPNOTSUPP;
	for (; len; gpa += PAGE_SIZE, len -= PAGE_SIZE) {
		const struct memslot *slot = memory_slot(&uf->vm->mem, gpa);
		struct uf_shard *shard;
		u64 off, page;

		if (!slot)
			return -EFAULT;
		off = gpa - slot->gpa;
		page = (slot->offset + off) >> PAGE_SHIFT;
		shard = uf_shard_of(uf, slot, off >> PAGE_SHIFT);
		g_mutex_lock(&shard->lock);
		ret = left == GPA_NONE ? uf_drop_page(shard, page, slot->guest_hva + off) :
					 uf_protect_page(shard, page, slot->guest_hva + off);
		g_mutex_unlock(&shard->lock);
		if (ret < 0)
			return ret;
		lowered += ret;
	}
	return lowered;
}
