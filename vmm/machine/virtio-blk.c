// SPDX-License-Identifier: GPL-2.0-only
#include "machine/virtio-blk.h"

#include <errno.h>
#include <linux/virtio_ids.h>
#include <string.h>

#include "base/log.h"
#include "core/engine.h"
#include "machine/bus.h"
#include "machine/layout.h"

/* More than any driver asks for at once; what a single request can make the VMM do under vm->lock. */
#define MAX_REQUEST	(16 * MIB)
#define CHUNK		(64 * KIB)
/* Segments of data beside those of header and status. */
#define SEG_MAX		(VIRTQUEUE_MAX - 2)
#define STATUS_LEN	1u

_Static_assert(sizeof(struct virtio_blk_outhdr) == 16, "type, reserved, sector (5.2.6)");

struct blk_request {
	u64 due, issued;	/* ns */
	u32 vcpu;		/* who notified: counts are its */
	u32 type;		/* VIRTIO_BLK_T_* */
	u64 sector;
	struct virtqueue_chain chain;
};

static enum blk_op op_of(u32 type)
{
	switch (type) {
	case VIRTIO_BLK_T_IN:
		return BLK_READ;
	case VIRTIO_BLK_T_OUT:
		return BLK_WRITE;
	case VIRTIO_BLK_T_FLUSH:
		return BLK_FLUSH;
	}
	return BLK_OTHER;
}

/* --- doing it --- */

/* Does the disk have these sectors, and whole ones (5.2.6.1)? */
static bool in_disk(const struct virtio_blk *b, u64 sector, u64 len)
{
	u64 sectors = b->disk.size / DISK_SECTOR;

	return len % DISK_SECTOR == 0 && len <= MAX_REQUEST && len / DISK_SECTOR <= sectors &&
	       sector <= sectors - len / DISK_SECTOR;
}

/* Disk to guest, or the other way; chunk by chunk, since a request can be larger than what we have on hand. */
static u8 move_data(struct virtio_blk *b, struct blk_request *r, bool in, u64 len)
{
	u8 *buf = g_malloc(CHUNK);
	u64 at, piece;
	int err = 0;

	for (at = 0; !err && at < len; at += piece) {
		u64 off = r->sector * DISK_SECTOR + at;

		piece = MIN(len - at, CHUNK);
		if (in) {
			err = disk_read(&b->disk, off, buf, piece);
			if (!err)
				virtqueue_write(&r->chain, b->vm, at, buf, piece);
		} else {
			virtqueue_read(&r->chain, b->vm, sizeof(struct virtio_blk_outhdr) + at, buf, piece);
			err = disk_write(&b->disk, off, buf, piece);
		}
	}
	g_free(buf);
	if (err)
		fb_warn("%s: %s: the guest gets an I/O error", b->disk.path, strerror(-err));
	return err ? VIRTIO_BLK_S_IOERR : VIRTIO_BLK_S_OK;
}

/* The request's status; *written is how many bytes of data the guest got. */
static u8 perform(struct virtio_blk *b, struct blk_request *r, u64 *written)
{
	struct counters *counters = &b->vm->vcpu[r->vcpu]->counters;
	u64 out = r->chain.read_len - sizeof(struct virtio_blk_outhdr), in = r->chain.write_len - STATUS_LEN;
	char id[VIRTIO_BLK_ID_BYTES] = "faultbed";
	u8 status;

	*written = 0;
	switch (r->type) {
	case VIRTIO_BLK_T_IN:
		if (out || !in_disk(b, r->sector, in))
			return VIRTIO_BLK_S_IOERR;
		status = move_data(b, r, true, in);
		*written = status == VIRTIO_BLK_S_OK ? in : 0;
		counter_add(counters, COUNTER_blk_read_bytes, *written);
		return status;
	case VIRTIO_BLK_T_OUT:
		if (in || b->disk.read_only || !in_disk(b, r->sector, out))
			return VIRTIO_BLK_S_IOERR;
		status = move_data(b, r, false, out);
		if (status == VIRTIO_BLK_S_OK)
			counter_add(counters, COUNTER_blk_write_bytes, out);
		return status;
	case VIRTIO_BLK_T_FLUSH:
		/* Writes are done when they are done: there is nothing behind the copy. */
		return VIRTIO_BLK_S_OK;
	case VIRTIO_BLK_T_GET_ID:
		*written = MIN(in, sizeof(id));
		virtqueue_write(&r->chain, b->vm, 0, id, *written);
		return VIRTIO_BLK_S_OK;
	}
	return VIRTIO_BLK_S_UNSUPP;
}

/* True if the driver wants an interrupt. */
static bool complete(struct virtio_blk *b, struct blk_request *r, u64 now)
{
	struct counters *counters = &b->vm->vcpu[r->vcpu]->counters;
	u64 written;
	u8 status = perform(b, r, &written);

	counter_add(counters, COUNTER_blk_requests, 1);
	counter_add(counters, COUNTER_blk_errors, status != VIRTIO_BLK_S_OK);
	counter_add(counters, COUNTER_blk_service_ns, now > r->issued ? now - r->issued : 0);
	virtqueue_write(&r->chain, b->vm, r->chain.write_len - STATUS_LEN, &status, STATUS_LEN);
	return virtqueue_push(&b->mmio.queue, b->vm, r->chain.head, (u32)written + STATUS_LEN);
}

static void schedule(struct virtio_blk *b)
{
	const struct blk_request *first = b->inflight->len ? b->inflight->pdata[0] : NULL;

	clock_schedule(&b->vm->service, &b->done, first ? first->due : CLOCK_NEVER);
}

static void on_done(void *ctx, u64 arg, u64 due, u64 now)
{
	struct virtio_blk *b = ctx;
	bool tell = false;

	g_mutex_lock(&b->vm->lock);
	while (b->inflight->len) {
		struct blk_request *r = b->inflight->pdata[0];

		if (r->due > now)
			break;
		tell |= complete(b, r, now);
		g_ptr_array_remove_index(b->inflight, 0);
	}
	schedule(b);
	if (tell)
		virtio_mmio_used(&b->mmio);
	g_mutex_unlock(&b->vm->lock);
}

/* --- taking it --- */

/* When a request that comes now and takes `delay` is done: its server may be at work on others. */
static u64 due_time(struct virtio_blk *b, u64 now, u64 delay)
{
	u32 i, best = 0;
	u64 start;

	if (!b->server_free)
		return now + delay;
	for (i = 1; i < b->vm->inject.blk_depth; i++)
		if (b->server_free[i] < b->server_free[best])
			best = i;
	start = MAX(now, b->server_free[best]);
	b->server_free[best] = start + delay;
	return start + delay;
}

static void insert(struct virtio_blk *b, struct blk_request *r)
{
	guint at = b->inflight->len;

	while (at && ((struct blk_request *)b->inflight->pdata[at - 1])->due > r->due)
		at--;
	g_ptr_array_insert(b->inflight, (gint)at, r);
}

static void submit(struct virtio_blk *b, struct vcpu *vcpu, struct blk_request *r)
{
	struct vm *vm = b->vm;
	struct virtio_blk_outhdr head;
	u64 delay = 0;

	virtqueue_read(&r->chain, vm, 0, &head, sizeof(head));
	r->type = head.type;
	r->sector = head.sector;
	r->vcpu = vcpu->id;
	r->issued = r->due = vm->engine->now(vm, vcpu);
	if (inject_enabled(&vm->inject, INJECT_blk)) {
		const struct inject_event ev = { .blk = op_of(r->type) };

		delay = inject_delay(&vm->inject, INJECT_blk, vcpu->id, &ev);
		counter_add(&vcpu->counters, COUNTER_blk_injected_ns, delay);
		r->due = due_time(b, r->issued, delay);
	}
	insert(b, r);
}

static void on_notify(void *ctx, struct vcpu *vcpu)
{
	struct virtio_blk *b = ctx;
	const char *why = NULL;
	int ret;

	for (;;) {
		struct blk_request *r = g_new(struct blk_request, 1);

		ret = virtqueue_pop(&b->mmio.queue, b->vm, &r->chain, &why);
		if (ret == 1 && (r->chain.read_len < sizeof(struct virtio_blk_outhdr) || !r->chain.write_len)) {
			why = "a request without a header to read or a status to write (5.2.6)";
			ret = -EPROTO;
		}
		if (ret != 1) {
			g_free(r);
			break;
		}
		submit(b, vcpu, r);
	}
	if (ret < 0)
		virtio_mmio_broken(&b->mmio, why);
	schedule(b);
}

static void on_reset(void *ctx)
{
	struct virtio_blk *b = ctx;

	g_ptr_array_set_size(b->inflight, 0);
	schedule(b);
}

int virtio_blk_init(struct virtio_blk *b, struct vm *vm, u64 base, u32 pin, const struct disk *disk)
{
	struct virtio_device device = {
		.id = VIRTIO_ID_BLOCK,
		.features = BIT_ULL(VIRTIO_BLK_F_SEG_MAX) | BIT_ULL(VIRTIO_BLK_F_FLUSH),
		.config = &b->config, .config_len = sizeof(b->config),
		.notify = on_notify, .reset = on_reset, .ctx = b,
	};

	*b = (struct virtio_blk){ .vm = vm, .disk = *disk };
	b->config.capacity = disk->size / DISK_SECTOR;
	b->config.seg_max = SEG_MAX;
	if (disk->read_only)
		device.features |= BIT_ULL(VIRTIO_BLK_F_RO);
	b->inflight = g_ptr_array_new_with_free_func(g_free);
	if (vm->inject.blk_depth)
		b->server_free = g_new0(u64, vm->inject.blk_depth);
	clock_event_init(&b->done, on_done, b, 0);
	virtio_mmio_init(&b->mmio, vm, pin, &device);
	return bus_add(vm->bus, BUS_MMIO, base, LAYOUT_VIRTIO_SIZE, "virtio block device", virtio_mmio_access, &b->mmio);
}

void virtio_blk_destroy(struct virtio_blk *b)
{
	clock_schedule(&b->vm->service, &b->done, CLOCK_NEVER);
	g_ptr_array_unref(b->inflight);
	g_free(b->server_free);
	disk_close(&b->disk);
}

static void transfer_request(struct saver *s, struct virtio_blk *b, struct blk_request *r)
{
	saver_u64(s, &r->due);
	saver_u64(s, &r->issued);
	saver_u32(s, &r->vcpu);
	saver_u32(s, &r->type);
	saver_u64(s, &r->sector);
	virtqueue_transfer_chain(s, &b->mmio.queue, &r->chain, b->vm);
	saver_check(s, r->vcpu < b->vm->topo.nr_cpus && r->due != CLOCK_NEVER &&
		    r->chain.read_len >= sizeof(struct virtio_blk_outhdr) && r->chain.write_len, "a disk request");
}

void virtio_blk_transfer(struct saver *s, struct virtio_blk *b)
{
	u32 nr, i;

	disk_transfer(s, &b->disk);
	virtio_mmio_transfer(s, &b->mmio);
	nr = saver_count(s, b->inflight->len, VIRTQUEUE_MAX, 34, "the number of disk requests");
	if (!saver_check(s, !nr || b->mmio.queue.ready, "disk requests of no queue"))
		nr = 0;
	if (s->loading)
		g_ptr_array_set_size(b->inflight, 0);
	for (i = 0; i < nr && saver_ok(s); i++) {
		struct blk_request *r = s->loading ? g_new0(struct blk_request, 1) : b->inflight->pdata[i];

		transfer_request(s, b, r);
		if (s->loading && saver_ok(s))
			insert(b, r);
		else if (s->loading)
			g_free(r);
	}
	if (!s->loading)
		return;
	/* Nothing is delayed before a command, so no server has been at work. */
	if (b->server_free)
		memset(b->server_free, 0, b->vm->inject.blk_depth * sizeof(u64));
	schedule(b);
}
