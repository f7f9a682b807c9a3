// SPDX-License-Identifier: GPL-2.0-only
#include "machine/virtqueue.h"

#include <errno.h>
#include <linux/virtio_ring.h>
#include <stdatomic.h>
#include <string.h>

#include "base/log.h"
#include "core/engine.h"

/* Offsets in the two rings (2.7.6, 2.7.8), which both begin with flags and idx. */
#define RING_FLAGS	0u
#define RING_IDX	2u
#define RING_ENTRIES	4u

void virtqueue_reset(struct virtqueue *vq)
{
	*vq = (struct virtqueue){ 0 };
}

static int broken(const char **why, const char *what)
{
	*why = what;
	return -EPROTO;
}

/* Is all of [gpa, gpa + len) RAM? Slots can lie side by side. */
static bool is_ram(const struct memory *mem, gpa_t gpa, u64 len)
{
	if (gpa + len < gpa)
		return false;
	while (len) {
		const struct memslot *slot = memory_slot(mem, gpa);
		u64 room;

		if (!slot)
			return false;
		room = slot->size - (gpa - slot->gpa);
		if (room >= len)
			return true;
		gpa += room;
		len -= room;
	}
	return true;
}

/* A field of a ring: aligned, and so in one page; the driver may write it while we read. */
static u16 load16(const struct vm *vm, gpa_t gpa)
{
	const u16 *p = memory_hva(&vm->mem, gpa, 2);

	fb_assert(p);
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static void guest_write(struct vm *vm, gpa_t gpa, const void *buf, u64 len)
{
	int err = memory_write(&vm->mem, gpa, buf, len);

	/* Slots do not change, and the place was checked. */
	fb_assert(!err);
	if (vm->engine->gpa_written)
		vm->engine->gpa_written(vm, gpa, len);
}

/* Can the queue be where the driver says that it is? 0 or -EPROTO. */
static int check_place(const struct virtqueue *vq, const struct vm *vm, const char **why)
{
	u32 num = vq->num;

	if (!num || num > VIRTQUEUE_MAX || num & (num - 1))
		return broken(why, "a queue's size must be a power of two and no larger than offered (2.7)");
	if (vq->desc % 16 || vq->driver % 2 || vq->device % 4)
		return broken(why, "a part of a queue is not aligned (2.7)");
	if (!is_ram(&vm->mem, vq->desc, num * sizeof(struct vring_desc)) ||
	    !is_ram(&vm->mem, vq->driver, RING_ENTRIES + num * 2) ||
	    !is_ram(&vm->mem, vq->device, RING_ENTRIES + num * sizeof(struct vring_used_elem)))
		return broken(why, "a part of a queue is not in RAM (2.7)");
	return 0;
}

int virtqueue_start(struct virtqueue *vq, const struct vm *vm, const char **why)
{
	if (check_place(vq, vm, why))
		return -EPROTO;
	vq->next_avail = 0;
	vq->next_used = 0;
	memset(vq->taken, 0, sizeof(vq->taken));
	vq->ready = true;
	return 0;
}

/* One descriptor into the chain. 0 or -EPROTO. */
static int add_segment(struct virtqueue_chain *chain, const struct vm *vm, const struct vring_desc *d, const char **why)
{
	u32 nr = chain->nr_read + chain->nr_write;
	bool write = d->flags & VRING_DESC_F_WRITE;

	if (d->flags & VRING_DESC_F_INDIRECT)
		return broken(why, "an indirect descriptor, which was not offered (2.7.5.3)");
	if (!write && chain->nr_write)
		return broken(why, "a descriptor to read behind one to write (2.7.4.2)");
	if (!is_ram(&vm->mem, d->addr, d->len))
		return broken(why, "a buffer that is not in RAM (2.7.5)");
	chain->seg[nr] = (struct virtqueue_segment){ .gpa = d->addr, .len = d->len };
	if (write) {
		chain->nr_write++;
		chain->write_len += d->len;
	} else {
		chain->nr_read++;
		chain->read_len += d->len;
	}
	return 0;
}

int virtqueue_pop(struct virtqueue *vq, const struct vm *vm, struct virtqueue_chain *chain, const char **why)
{
	u16 waiting = (u16)(load16(vm, vq->driver + RING_IDX) - vq->next_avail);
	struct vring_desc d;
	u16 head, at;
	u32 n;

	if (!waiting)
		return 0;
	if (waiting > vq->num)
		return broken(why, "more chains are offered than the queue can hold (2.7.13.3)");
	head = at = load16(vm, vq->driver + RING_ENTRIES + (vq->next_avail & (vq->num - 1)) * 2u);
	chain->head = head;
	chain->nr_read = chain->nr_write = 0;
	chain->read_len = chain->write_len = 0;
	for (n = 0;; n++) {
		if (at >= vq->num)
			return broken(why, "a descriptor that the queue does not have (2.7.5)");
		if (n == vq->num)
			return broken(why, "a chain that loops (2.7.5.2)");
		if (memory_read(&vm->mem, vq->desc + at * sizeof(d), &d, sizeof(d)))
			return broken(why, "a part of a queue is not in RAM (2.7)");
		if (add_segment(chain, vm, &d, why))
			return -EPROTO;
		if (!(d.flags & VRING_DESC_F_NEXT))
			break;
		at = d.next;
	}
	if (vq->taken[head / 64] & BIT_ULL(head % 64))
		return broken(why, "a chain is offered that the device still has (2.7.13)");
	vq->taken[head / 64] |= BIT_ULL(head % 64);
	vq->next_avail++;
	return 1;
}

bool virtqueue_push(struct virtqueue *vq, struct vm *vm, u16 head, u32 written)
{
	const struct vring_used_elem e = { .id = head, .len = written };
	gpa_t idx = vq->device + RING_IDX;
	u16 *p = memory_hva(&vm->mem, idx, 2);

	fb_assert(p);
	vq->taken[head / 64] &= ~BIT_ULL(head % 64);
	guest_write(vm, vq->device + RING_ENTRIES + (vq->next_used & (vq->num - 1)) * sizeof(e), &e, sizeof(e));
	vq->next_used++;
	__atomic_store_n(p, vq->next_used, __ATOMIC_RELEASE);
	if (vm->engine->gpa_written)
		vm->engine->gpa_written(vm, idx, 2);
	/* The new index must be out before the flag is looked at, or both sides could wait (2.7.10.2). */
	atomic_thread_fence(memory_order_seq_cst);
	return !(load16(vm, vq->driver + RING_FLAGS) & VRING_AVAIL_F_NO_INTERRUPT);
}

void virtqueue_read(const struct virtqueue_chain *chain, const struct vm *vm, u64 off, void *buf, u64 len)
{
	u8 *to = buf;
	u32 i;

	fb_assert(len <= chain->read_len && off <= chain->read_len - len);
	for (i = 0; i < chain->nr_read && len; i++) {
		const struct virtqueue_segment *seg = &chain->seg[i];
		u64 piece;
		int err;

		if (off >= seg->len) {
			off -= seg->len;
			continue;
		}
		piece = MIN(len, seg->len - off);
		err = memory_read(&vm->mem, seg->gpa + off, to, piece);
		fb_assert(!err);
		to += piece;
		len -= piece;
		off = 0;
	}
}

void virtqueue_write(const struct virtqueue_chain *chain, struct vm *vm, u64 off, const void *buf, u64 len)
{
	const u8 *from = buf;
	u32 i;

	fb_assert(len <= chain->write_len && off <= chain->write_len - len);
	for (i = 0; i < chain->nr_write && len; i++) {
		const struct virtqueue_segment *seg = &chain->seg[chain->nr_read + i];
		u64 piece;

		if (off >= seg->len) {
			off -= seg->len;
			continue;
		}
		piece = MIN(len, seg->len - off);
		guest_write(vm, seg->gpa + off, from, piece);
		from += piece;
		len -= piece;
		off = 0;
	}
}

void virtqueue_transfer(struct saver *s, struct virtqueue *vq, const struct vm *vm)
{
	const char *why;

	saver_u32(s, &vq->num);
	saver_bool(s, &vq->ready);
	saver_u64(s, &vq->desc);
	saver_u64(s, &vq->driver);
	saver_u64(s, &vq->device);
	saver_u16(s, &vq->next_avail);
	saver_u16(s, &vq->next_used);
	saver_u64s(s, vq->taken, ARRAY_SIZE(vq->taken));
	if (!saver_check(s, !vq->ready || !check_place(vq, vm, &why), "a queue's place"))
		virtqueue_reset(vq);
}

void virtqueue_transfer_chain(struct saver *s, const struct virtqueue *vq, struct virtqueue_chain *chain,
			      const struct vm *vm)
{
	u64 sum[2] = { 0, 0 };
	u32 i, nr;

	saver_u16(s, &chain->head);
	saver_u16(s, &chain->nr_read);
	saver_u16(s, &chain->nr_write);
	nr = chain->nr_read + (u32)chain->nr_write;
	if (!saver_check(s, nr <= VIRTQUEUE_MAX && chain->head < vq->num &&
			 vq->taken[chain->head / 64] & BIT_ULL(chain->head % 64), "a chain")) {
		chain->nr_read = chain->nr_write = 0;
		nr = 0;
	}
	for (i = 0; i < nr; i++) {
		struct virtqueue_segment *seg = &chain->seg[i];

		saver_u64(s, &seg->gpa);
		saver_u32(s, &seg->len);
		saver_check(s, is_ram(&vm->mem, seg->gpa, seg->len), "a buffer's place");
		sum[i >= chain->nr_read] += seg->len;
	}
	chain->read_len = sum[0];
	chain->write_len = sum[1];
}
