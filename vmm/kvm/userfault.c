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
#include "kvm/kvm.h"

#define UF_MAX_SHARDS	8
#define UF_BATCH	64	/* events read at once */
#define UF_FEATURES	(UFFD_FEATURE_MISSING_SHMEM | UFFD_FEATURE_MINOR_SHMEM | UFFD_FEATURE_THREAD_ID)
#define UF_PROTECT	(UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM)

struct uf_shard {
	struct userfault *uf;		/* (c) */
	int fd, stop_fd;		/* (c) */
	pthread_t thread;		/* (c) */
	bool running;			/* (c) */
	struct clock clock;		/* faults that wait out their delay; this thread only */
};

struct userfault {
	struct vm *vm;			/* (c) */
	u32 nr_shards;			/* (c) */
	bool protect;			/* (c) pages may lose the right to be written */
	struct uf_shard shard[UF_MAX_SHARDS];
	/* One bit a page of the memfd: is it mapped in the guest's view, was it taken away there, is it protected? */
	u64 *mapped, *dropped, *protected;	/* (a) */
};

enum uf_kind { UF_MISSING, UF_MINOR, UF_WP };

/* A fault's way through the clock: offset of the page in the memfd, the kind, and who waits. */
#define UF_ARG(page, kind, cpu)		((u64)(page) << 16 | (u64)(kind) << 14 | (cpu))
#define UF_ARG_PAGE(arg)		((arg) >> 16)
#define UF_ARG_KIND(arg)		((enum uf_kind)((arg) >> 14 & 3))
#define UF_ARG_CPU(arg)			((u32)((arg) & 0x3fff))
#define UF_CPU_NONE			0x3fffu
_Static_assert(TOPOLOGY_MAX_CPUS <= UF_CPU_NONE, "a vCPU's number fits");

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

/*
 * Take the right to write away, or give it back and wake who waits. The bit is set before
 * and cleared after, so that a page which is found without it has the right.
 */
static int uf_protect(struct uf_shard *shard, u64 page, u64 addr, bool on)
{
	struct uffdio_writeprotect wp = { .range = { addr, PAGE_SIZE }, .mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : 0 };
	int ret;

	if (on)
		bit_test_set(shard->uf->protected, page);
	do {
		ret = ioctl(shard->fd, UFFDIO_WRITEPROTECT, &wp);
	} while (ret < 0 && errno == EAGAIN && shard->uf->vm->stop == VM_RUNNING);
	if (!on || ret < 0)
		bit_test_clear(shard->uf->protected, page);
	return ret;
}

/*
 * Map the page and wake who waits. EEXIST: another vCPU's fault on the page was
 * resolved first, so only the wake-up is due. EAGAIN: the address space is
 * changing; try again. Anything else would leave a vCPU stuck for ever: the VM ends.
 */
static void uf_resolve(void *ctx, u64 arg, u64 due, u64 now)
{
	struct uf_shard *shard = ctx;
	struct userfault *uf = shard->uf;
	u64 page = UF_ARG_PAGE(arg);
	const struct memslot *slot = uf_slot_of_page(uf, page);
	u64 addr = (u64)(uintptr_t)slot->guest_hva + (page << PAGE_SHIFT) - slot->offset;
	bool minor = UF_ARG_KIND(arg) == UF_MINOR;
	int ret;

	if (UF_ARG_KIND(arg) == UF_WP) {
		ret = uf_protect(shard, page, addr, false);
		goto out;
	}
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
out:
	if (ret < 0 && uf->vm->stop == VM_RUNNING) {
		fb_err("kvm: resolving a second-level fault at host address 0x%llx: %s", (unsigned long long)addr,
		       strerror(errno));
		vm_request_stop(uf->vm, VM_STOP_ERROR, 0);
	}
	if (UF_ARG_CPU(arg) != UF_CPU_NONE && now > due)
		counter_add(&uf->vm->vcpu[UF_ARG_CPU(arg)]->counters, COUNTER_ept_service_ns, now - due);
}

static void uf_event(struct uf_shard *shard, const struct uffd_msg *msg, u64 now)
{
	struct userfault *uf = shard->uf;
	struct vm *vm = uf->vm;
	u64 addr = ALIGN_DOWN(msg->arg.pagefault.address, PAGE_SIZE), page, delay = 0, arg;
	enum uf_kind kind = msg->arg.pagefault.flags & UFFD_PAGEFAULT_FLAG_WP ? UF_WP :
			    msg->arg.pagefault.flags & UFFD_PAGEFAULT_FLAG_MINOR ? UF_MINOR : UF_MISSING;
	u32 cpu = uf_cpu_of_tid(vm, (pid_t)msg->arg.pagefault.feat.ptid), i;

	for (i = 0; i < vm->mem.nr_slots; i++) {
		const struct memslot *s = &vm->mem.slot[i];
		u64 start = (u64)(uintptr_t)s->guest_hva;

		if (addr < start || addr - start >= s->size)
			continue;
		page = (s->offset + addr - start) >> PAGE_SHIFT;
		arg = UF_ARG(page, kind, cpu);
		if (cpu != UF_CPU_NONE) {
			/*
			 * Not whether the page was touched before: two vCPUs that meet on a new page
			 * both fault, and both touch it first.
			 */
			delay = vcpu_ept_violation(vm->vcpu[cpu], s->gpa + addr - start,
						   kind == UF_WP ? EPT_WRITE_PROTECT :
						   bit_test(uf->dropped, page) ? EPT_REFAULT : EPT_FIRST_TOUCH);
			counter_add(&vm->vcpu[cpu]->counters, COUNTER_ept_service_ns, delay);
		}
		if (delay)
			clock_post(&shard->clock, now + delay, uf_resolve, shard, arg);
		else
			uf_resolve(shard, arg, now, vm->engine->now(vm, NULL));
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
		now = vm->engine->now(vm, NULL);
		clock_run_due(&shard->clock, now);
		n = read(shard->fd, msg, sizeof(msg));
		for (i = 0; i < n / (ssize_t)sizeof(msg[0]); i++)
			if (msg[i].event == UFFD_EVENT_PAGEFAULT)
				uf_event(shard, &msg[i], now);
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
static int uf_drop_page(struct userfault *uf, u64 page, u8 *guest_hva)
{
	/* Before the page goes: a fault that comes at once finds it so. */
	if (!bit_test_clear(uf->mapped, page))
		return 0;
	bit_test_set(uf->dropped, page);
	/* Drops the page table entries only: the file keeps the page, so the next access is a MINOR fault. */
	if (madvise(guest_hva, PAGE_SIZE, MADV_DONTNEED) < 0)
		return -errno;
	/* UFFDIO_CONTINUE maps it with all rights again. */
	bit_test_clear(uf->protected, page);
	return 1;
}

int userfault_lower(struct userfault *uf, gpa_t gpa, u64 len, enum gpa_rights left)
{
	int lowered = 0, ret;

	if (left == GPA_READ && !uf->protect)
		return -EOPNOTSUPP;
	for (; len; gpa += PAGE_SIZE, len -= PAGE_SIZE) {
		const struct memslot *slot = memory_slot(&uf->vm->mem, gpa);
		u64 off, page;
		u8 *hva;

		if (!slot)
			return -EFAULT;
		off = gpa - slot->gpa;
		page = (slot->offset + off) >> PAGE_SHIFT;
		hva = slot->guest_hva + off;
		if (left == GPA_NONE)
			ret = uf_drop_page(uf, page, hva);
		else if (!bit_test(uf->mapped, page) || bit_test(uf->protected, page))
			ret = 0;
		else
			ret = uf_protect(uf_shard_of(uf, slot, off >> PAGE_SHIFT), page, (u64)(uintptr_t)hva, true) < 0 ?
			      -errno : 1;
		if (ret < 0)
			return ret;
		lowered += ret;
	}
	return lowered;
}
