// SPDX-License-Identifier: GPL-2.0-only
/* The block device: what it does with requests, when they are done, resets and snapshots in between. */
#include <errno.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "machine/machine-state.h"
#include "virtio-fixture.h"

#define FEATURES	(BIT_ULL(VIRTIO_F_VERSION_1) | BIT_ULL(VIRTIO_BLK_F_FLUSH))

static u64 count(struct guest *g, enum counter which)
{
	return counter_read(&g->vm->vcpu[1]->counters, which);
}

/* One request at once, done when the call returns. Its status. */
static u8 request(struct guest *g, u32 type, u64 sector, u64 data, u32 len)
{
	guest_request(g, 0, type, sector, data, len);
	guest_notify(g);
	guest_run(g, 1);
	g_assert_cmpuint(guest_used(g, NULL), ==, 1);
	return guest_status(g, 0);
}

static void test_registers(void)
{
	struct guest *g = guest_new(false);
	u64 capacity = 0;
	u32 v = 0;
	u8 byte = 0xff;

	g_assert_cmphex(guest_reg(g, VIRTIO_MMIO_MAGIC_VALUE), ==, 0x74726976);
	g_assert_cmpuint(guest_reg(g, VIRTIO_MMIO_VERSION), ==, 2);
	g_assert_cmpuint(guest_reg(g, VIRTIO_MMIO_DEVICE_ID), ==, 2);
	g_assert_cmpuint(guest_reg(g, VIRTIO_MMIO_QUEUE_NUM_MAX), ==, VIRTQUEUE_MAX);
	g_assert_cmphex(guest_reg(g, 0xb0), ==, UINT32_MAX);
	guest_set(g, VIRTIO_MMIO_QUEUE_SEL, 1);
	g_assert_cmpuint(guest_reg(g, VIRTIO_MMIO_QUEUE_NUM_MAX), ==, 0);
	guest_set(g, VIRTIO_MMIO_DEVICE_FEATURES_SEL, 1);
	g_assert_cmpuint(guest_reg(g, VIRTIO_MMIO_DEVICE_FEATURES), ==, 1);
	guest_set(g, VIRTIO_MMIO_DEVICE_FEATURES_SEL, 0);
	g_assert_false(guest_reg(g, VIRTIO_MMIO_DEVICE_FEATURES) & BIT(VIRTIO_BLK_F_RO));
	guest_set(g, VIRTIO_MMIO_DEVICE_FEATURES_SEL, 99);
	g_assert_cmpuint(guest_reg(g, VIRTIO_MMIO_DEVICE_FEATURES), ==, 0);
	/* The configuration in any width; 4.2.2.2 for the rest. */
	bus_access(g->vm->bus, BUS_MMIO, g->vm->vcpu[0], LAYOUT_VIRTIO + VIRTIO_MMIO_CONFIG, false, &capacity, 8);
	g_assert_cmpuint(capacity, ==, SECTORS);
	bus_access(g->vm->bus, BUS_MMIO, g->vm->vcpu[0], LAYOUT_VIRTIO + VIRTIO_MMIO_CONFIG + 0xeff, false, &byte, 1);
	g_assert_cmpuint(byte, ==, 0);
	bus_access(g->vm->bus, BUS_MMIO, g->vm->vcpu[0], LAYOUT_VIRTIO + VIRTIO_MMIO_STATUS, true, &byte, 1);
	bus_access(g->vm->bus, BUS_MMIO, g->vm->vcpu[0], LAYOUT_VIRTIO + 2, false, &v, 4);
	g_assert_cmpuint(v, ==, 0);
	g_assert_cmpuint(guest_reg(g, VIRTIO_MMIO_STATUS), ==, 0);
	/* 3.1.1: what was not offered, or no version 1. */
	g_assert_false(guest_up(g, FEATURES | BIT_ULL(VIRTIO_F_RING_PACKED)));
	g_assert_false(guest_up(g, BIT_ULL(VIRTIO_BLK_F_FLUSH)));
	/* Not running: no notification counts, and DRIVER_OK without FEATURES_OK is nothing (2.1.2). */
	guest_set(g, VIRTIO_MMIO_STATUS, VIRTIO_CONFIG_S_DRIVER_OK);
	g_assert_false(guest_reg(g, VIRTIO_MMIO_STATUS) & VIRTIO_CONFIG_S_DRIVER_OK);
	guest_notify(g);
	g_assert_true(guest_up(g, FEATURES));
	guest_free(g);
}

static void test_requests(void)
{
	struct guest *g = guest_new(false);
	u8 bytes[1024];
	char *before = NULL, *after = NULL;
	gsize len;

	g_file_get_contents(g->image, &before, &len, NULL);
	g_assert_true(guest_up(g, FEATURES));
	g_assert_cmpuint(request(g, VIRTIO_BLK_T_IN, 10, DATA, 1024), ==, VIRTIO_BLK_S_OK);
	g_assert_cmpuint(guest_u32(g, DATA), ==, 10);
	g_assert_cmpuint(guest_u32(g, DATA + 1020), ==, 11);
	/* A write that shares its pages with what is not written. */
	memset(bytes, 0xa5, sizeof(bytes));
	memory_write(&g->vm->mem, DATA, bytes, sizeof(bytes));
	g_assert_cmpuint(request(g, VIRTIO_BLK_T_OUT, 15, DATA, 1024), ==, VIRTIO_BLK_S_OK);
	g_assert_cmpuint(request(g, VIRTIO_BLK_T_FLUSH, 0, 0, 0), ==, VIRTIO_BLK_S_OK);
	g_assert_cmpuint(request(g, VIRTIO_BLK_T_IN, 14, DATA, 2048), ==, VIRTIO_BLK_S_OK);
	g_assert_cmphex(guest_u32(g, DATA), ==, 14);
	g_assert_cmphex(guest_u32(g, DATA + 512), ==, 0xa5a5a5a5);
	g_assert_cmphex(guest_u32(g, DATA + 1532), ==, 0xa5a5a5a5);
	g_assert_cmphex(guest_u32(g, DATA + 1536), ==, 17);
	g_assert_cmpuint(disk_written_bytes(&g->vm->machine->blk->disk), ==, 2 * PAGE_SIZE);
	g_assert_cmpuint(request(g, VIRTIO_BLK_T_GET_ID, 0, DATA, 20), ==, VIRTIO_BLK_S_OK);
	memory_read(&g->vm->mem, DATA, bytes, 20);
	g_assert_cmpstr((char *)bytes, ==, "faultbed");
	g_assert_cmpuint(request(g, 77, 0, DATA, 512), ==, VIRTIO_BLK_S_UNSUPP);
	/* The last sector and beyond (5.2.6.1), parts of sectors, and sums that wrap. */
	g_assert_cmpuint(request(g, VIRTIO_BLK_T_IN, SECTORS - 1, DATA, 512), ==, VIRTIO_BLK_S_OK);
	g_assert_cmpuint(request(g, VIRTIO_BLK_T_IN, SECTORS - 1, DATA, 1024), ==, VIRTIO_BLK_S_IOERR);
	g_assert_cmpuint(request(g, VIRTIO_BLK_T_OUT, SECTORS, DATA, 512), ==, VIRTIO_BLK_S_IOERR);
	g_assert_cmpuint(request(g, VIRTIO_BLK_T_IN, UINT64_MAX, DATA, 512), ==, VIRTIO_BLK_S_IOERR);
	g_assert_cmpuint(request(g, VIRTIO_BLK_T_IN, UINT64_MAX / 512 + 1, DATA, 512), ==, VIRTIO_BLK_S_IOERR);
	g_assert_cmpuint(request(g, VIRTIO_BLK_T_IN, 1, DATA, 100), ==, VIRTIO_BLK_S_IOERR);
	g_assert_cmpuint(count(g, COUNTER_blk_read_bytes), ==, 1024 + 2048 + 512);
	g_assert_cmpuint(count(g, COUNTER_blk_write_bytes), ==, 1024);
	g_assert_cmpuint(count(g, COUNTER_blk_requests), ==, 12);
	g_assert_cmpuint(count(g, COUNTER_blk_errors), ==, 6);
	/* The file is as it was. */
	g_file_get_contents(g->image, &after, &len, NULL);
	g_assert_cmpmem(before, SECTORS * 512, after, len);
	g_free(before);
	g_free(after);
	guest_free(g);
}

static void test_read_only(void)
{
	struct guest *g = guest_new(true);

	g_assert_true(guest_reg(g, VIRTIO_MMIO_DEVICE_FEATURES) & BIT(VIRTIO_BLK_F_RO));
	g_assert_true(guest_up(g, FEATURES | BIT_ULL(VIRTIO_BLK_F_RO)));
	g_assert_cmpuint(request(g, VIRTIO_BLK_T_OUT, 15, DATA, 512), ==, VIRTIO_BLK_S_IOERR);
	g_assert_cmpuint(request(g, VIRTIO_BLK_T_IN, 15, DATA, 512), ==, VIRTIO_BLK_S_OK);
	g_assert_cmphex(guest_u32(g, DATA), ==, 15);
	guest_free(g);
}

/* 2.7.4.1: how a request is cut into descriptors is the driver's affair. */
static void test_framing(void)
{
	struct guest *g = guest_new(false);
	const struct virtio_blk_outhdr hdr = { .type = VIRTIO_BLK_T_IN, .sector = 33 };

	g_assert_true(guest_up(g, FEATURES));
	memory_write(&g->vm->mem, HEADER, &hdr, 3);
	memory_write(&g->vm->mem, HEADER + 100, (const u8 *)&hdr + 3, 13);
	guest_desc(g, 0, HEADER, 3, VRING_DESC_F_NEXT, 5);
	guest_desc(g, 5, HEADER + 100, 13, VRING_DESC_F_NEXT, 2);
	guest_desc(g, 2, DATA, 0, VRING_DESC_F_NEXT | VRING_DESC_F_WRITE, 3);
	guest_desc(g, 3, DATA, 6, VRING_DESC_F_NEXT | VRING_DESC_F_WRITE, 4);
	/* The rest of the sector and the status in one. */
	guest_desc(g, 4, DATA + 0x1000, 507, VRING_DESC_F_WRITE, 0);
	guest_offer(g, 0);
	guest_notify(g);
	guest_run(g, 1);
	g_assert_cmpuint(guest_used(g, NULL), ==, 1);
	g_assert_cmpuint(guest_u32(g, DATA), ==, 33);
	g_assert_cmphex(guest_u32(g, DATA + 0x1000), ==, 33u << 16);
	/* Both halves of the last word, then the status. */
	g_assert_cmphex(guest_u32(g, DATA + 0x1000 + 506), ==, VIRTIO_BLK_S_OK);
	/* Without a place for the status, or with half a header, nothing can be answered (5.2.6). */
	guest_desc(g, 0, HEADER, 16, 0, 0);
	guest_offer(g, 0);
	guest_notify(g);
	g_assert_true(guest_broken(g));
	g_assert_true(guest_up(g, FEATURES));
	guest_desc(g, 0, HEADER, 15, VRING_DESC_F_NEXT, 1);
	guest_desc(g, 1, STATUS, 1, VRING_DESC_F_WRITE, 0);
	guest_offer(g, 0);
	guest_notify(g);
	g_assert_true(guest_broken(g));
	guest_free(g);
}

static void test_interrupt(void)
{
	struct guest *g = guest_new(false);
	u16 no = VRING_AVAIL_F_NO_INTERRUPT;

	g_assert_true(guest_up(g, FEATURES));
	g_assert_cmpuint(request(g, VIRTIO_BLK_T_IN, 1, DATA, 512), ==, VIRTIO_BLK_S_OK);
	g_assert_cmpuint(guest_reg(g, VIRTIO_MMIO_INTERRUPT_STATUS), ==, VIRTIO_MMIO_INT_VRING);
	g_assert_cmpint(fake_take(g->fake, 0), ==, VECTOR);
	/* An edge: not again before it is acknowledged, and what comes meanwhile the driver will see; then again. */
	g_assert_cmpuint(request(g, VIRTIO_BLK_T_IN, 1, DATA, 512), ==, VIRTIO_BLK_S_OK);
	g_assert_cmpint(fake_take(g->fake, 0), ==, -1);
	guest_set(g, VIRTIO_MMIO_INTERRUPT_ACK, VIRTIO_MMIO_INT_VRING);
	g_assert_cmpuint(guest_reg(g, VIRTIO_MMIO_INTERRUPT_STATUS), ==, 0);
	g_assert_cmpuint(request(g, VIRTIO_BLK_T_IN, 1, DATA, 512), ==, VIRTIO_BLK_S_OK);
	g_assert_cmpint(fake_take(g->fake, 0), ==, VECTOR);
	guest_set(g, VIRTIO_MMIO_INTERRUPT_ACK, VIRTIO_MMIO_INT_VRING);
	/* 2.7.7: a driver that does not want to hear. */
	memory_write(&g->vm->mem, AVAIL, &no, 2);
	g_assert_cmpuint(request(g, VIRTIO_BLK_T_IN, 1, DATA, 512), ==, VIRTIO_BLK_S_OK);
	g_assert_cmpint(fake_take(g->fake, 0), ==, -1);
	guest_free(g);
}

/* Delays run side by side, each request is done when its own is over, and what was drawn is accounted. */
static void test_delays(void)
{
	struct guest *g = guest_new(false);
	struct vring_used_elem e = { 0 };

	fake_inject(g->fake, "blk.read", "fixed:5ms");
	fake_inject(g->fake, "blk.all", "fixed:2ms");
	fake_inject_start(g->fake, 1);
	g_assert_true(guest_up(g, FEATURES));
	guest_request(g, 0, VIRTIO_BLK_T_IN, 1, DATA, 512);
	guest_request(g, 3, VIRTIO_BLK_T_FLUSH, 0, 0, 0);
	guest_notify(g);
	guest_run(g, NSEC_PER_MSEC);
	guest_request(g, 5, VIRTIO_BLK_T_IN, 2, DATA + 512, 512);
	guest_notify(g);
	guest_run(g, NSEC_PER_MSEC - 1);
	g_assert_cmpuint(guest_used(g, NULL), ==, 0);
	guest_run(g, 1);
	g_assert_cmpuint(guest_used(g, &e), ==, 1);
	g_assert_cmpuint(e.id, ==, 3);
	guest_run(g, 3 * NSEC_PER_MSEC);
	g_assert_cmpuint(guest_used(g, &e), ==, 1);
	g_assert_cmpuint(e.id, ==, 0);
	guest_run(g, NSEC_PER_MSEC);
	g_assert_cmpuint(guest_used(g, &e), ==, 1);
	g_assert_cmpuint(e.id, ==, 5);
	g_assert_cmpuint(count(g, COUNTER_blk_injected_ns), ==, 12 * NSEC_PER_MSEC);
	g_assert_cmpuint(count(g, COUNTER_blk_service_ns), ==, 12 * NSEC_PER_MSEC);
	g_assert_cmpuint(g->vm->inject.hist[INJECT_blk][BLK_READ].count, ==, 2);
	g_assert_cmpuint(g->vm->inject.hist[INJECT_blk][BLK_FLUSH].count, ==, 1);
	guest_free(g);
}

/* blk.depth = 2: the third waits for the first to be done. */
static void test_depth(void)
{
	static const u64 at[] = { 5, 5, 10, 10 };
	struct guest *g;
	u32 i, done = 0;

	g = guest_new(false);
	fake_inject(g->fake, "blk.all", "fixed:5ms");
	fake_inject(g->fake, "blk.depth", "2");
	fake_inject_start(g->fake, 1);
	/* As vm.c has it: the rules are there before the device. */
	g->vm->machine->blk->server_free = g_new0(u64, 2);
	g_assert_true(guest_up(g, FEATURES));
	for (i = 0; i < ARRAY_SIZE(at); i++)
		guest_request(g, 2 * i, VIRTIO_BLK_T_FLUSH, 0, 0, 0);
	guest_notify(g);
	for (i = 0; i < ARRAY_SIZE(at); i++) {
		if (g->fake->now / NSEC_PER_MSEC < at[i]) {
			guest_run(g, 5 * NSEC_PER_MSEC);
			done = guest_used(g, NULL);
			g_assert_cmpuint(done, ==, 2);
		}
	}
	g_assert_cmpuint(g->fake->now, ==, 10 * NSEC_PER_MSEC);
	guest_free(g);
}

/* 2.1.2, 2.4: after a reset the memory is the driver's. The same for a queue that is stopped. */
static void test_reset(void)
{
	struct guest *g = guest_new(false);

	fake_inject(g->fake, "blk.all", "fixed:5ms");
	fake_inject_start(g->fake, 1);
	for (u32 how = 0; how < 2; how++) {
		g_assert_true(guest_up(g, FEATURES));
		guest_request(g, 0, VIRTIO_BLK_T_IN, 99, DATA, 512);
		guest_notify(g);
		guest_run(g, NSEC_PER_MSEC);
		guest_set(g, how ? VIRTIO_MMIO_QUEUE_READY : VIRTIO_MMIO_STATUS, 0);
		g_assert_cmpuint(guest_reg(g, how ? VIRTIO_MMIO_QUEUE_READY : VIRTIO_MMIO_STATUS), ==, 0);
		guest_run(g, 10 * NSEC_PER_MSEC);
		g_assert_cmpuint(guest_used(g, NULL), ==, 0);
		g_assert_cmphex(guest_status(g, 0), ==, 0xee);
		g_assert_cmpuint(guest_u32(g, DATA), ==, 0);
		g_assert_cmpuint(guest_reg(g, VIRTIO_MMIO_INTERRUPT_STATUS), ==, 0);
		g_assert_cmpuint(clock_first(&g->vm->service), ==, CLOCK_NEVER);
	}
	guest_free(g);
}

static GByteArray *save(struct guest *g)
{
	GByteArray *out;
	struct saver s;

	saver_init_save(&s);
	machine_transfer(&s, g->vm);
	g_assert_cmpstr(s.err, ==, NULL);
	out = g_byte_array_ref(s.out);
	saver_destroy(&s);
	return out;
}

static char *load(struct guest *g, const u8 *data, size_t len)
{
	struct saver s;
	char *err;

	saver_init_load(&s, "FILE", data, len);
	machine_transfer(&s, g->vm);
	saver_finish(&s);
	err = g_strdup(s.err);
	saver_destroy(&s);
	return err;
}

/* Written pages, the transport's state, and requests on their way: done in the other VM at the same time. */
static void test_snapshot(void)
{
	struct guest *g = guest_new(false), *h = guest_new(false), *w;
	GByteArray *data, *again;
	u8 *ram = g_malloc(RAM);
	u32 i;

	fake_inject(g->fake, "blk.all", "fixed:5ms");
	fake_inject_start(g->fake, 1);
	g_assert_true(guest_up(g, FEATURES));
	guest_request(g, 0, VIRTIO_BLK_T_OUT, 16, DATA, 512);
	guest_notify(g);
	guest_run(g, 5 * NSEC_PER_MSEC);
	g_assert_cmpuint(guest_used(g, NULL), ==, 1);
	guest_request(g, 0, VIRTIO_BLK_T_IN, 16, DATA + 512, 512);
	guest_notify(g);
	guest_run(g, NSEC_PER_MSEC);
	guest_request(g, 3, VIRTIO_BLK_T_IN, 99, DATA + 1024, 512);
	guest_notify(g);
	for (i = 0; i < g->vm->topo.nr_cpus; i++) {
		clock_event_init(&g->vm->vcpu[i]->apic_timer, NULL, NULL, 0);
		clock_event_init(&h->vm->vcpu[i]->apic_timer, NULL, NULL, 0);
	}
	data = save(g);
	memory_read(&g->vm->mem, 0, ram, RAM);
	memory_write(&h->vm->mem, 0, ram, RAM);
	h->fake->now = g->fake->now;
	g_assert_cmpstr(load(h, data->data, data->len), ==, NULL);
	again = save(h);
	g_assert_cmpmem(again->data, again->len, data->data, data->len);
	h->avail_idx = g->avail_idx;
	h->used_idx = g->used_idx;
	/* In the same VM, as a run does that has just been saved: once only. */
	g_assert_cmpstr(load(g, data->data, data->len), ==, NULL);
	for (w = g; w; w = w == g ? h : NULL) {
		struct vring_used_elem e = { 0 };

		guest_run(w, 4 * NSEC_PER_MSEC - 1);
		g_assert_cmpuint(guest_used(w, NULL), ==, 0);
		guest_run(w, 1);
		g_assert_cmpuint(guest_used(w, &e), ==, 1);
		g_assert_cmpuint(e.id, ==, 0);
		g_assert_cmpuint(guest_u32(w, DATA + 512), ==, guest_u32(w, DATA));
		guest_run(w, NSEC_PER_MSEC);
		g_assert_cmpuint(guest_used(w, &e), ==, 1);
		g_assert_cmpuint(guest_u32(w, DATA + 1024), ==, 99);
	}
	g_byte_array_unref(again);
	g_byte_array_unref(data);
	g_free(ram);
	guest_free(g);
	guest_free(h);
}

/* Any byte of a snapshot changed: an error or a strange disk, never harm. */
static void test_snapshot_bad(void)
{
	struct guest *g = guest_new(false), *h = guest_new(false);
	GByteArray *data;
	u32 i, at;

	fake_inject(g->fake, "blk.all", "fixed:5ms");
	fake_inject_start(g->fake, 1);
	g_assert_true(guest_up(g, FEATURES));
	for (i = 0; i < 2; i++)
		guest_request(g, i * 3, VIRTIO_BLK_T_IN, 99, DATA, 512);
	guest_notify(g);
	for (i = 0; i < g->vm->topo.nr_cpus; i++) {
		clock_event_init(&g->vm->vcpu[i]->apic_timer, NULL, NULL, 0);
		clock_event_init(&h->vm->vcpu[i]->apic_timer, NULL, NULL, 0);
	}
	data = save(g);
	/* The last section is the disk's. */
	for (at = data->len - 420; at < data->len; at++) {
		for (i = 1; i < 256; i *= 2) {
			data->data[at] ^= (u8)i;
			h->fake->now = 0;
			g_free(load(h, data->data, data->len));
			guest_run(h, 10 * NSEC_PER_MSEC);
			data->data[at] ^= (u8)i;
		}
	}
	for (at = data->len - 420; at < data->len; at++) {
		char *err = load(h, data->data, at);

		g_assert_nonnull(err);
		g_free(err);
	}
	g_byte_array_unref(data);
	guest_free(g);
	guest_free(h);
}

static void test_images(void)
{
	static const struct {
		const char *bytes;
		size_t len;
	} bad[] = { { "", 0 }, { "x", 1 }, { "QFI\xfb", 1024 }, { "\x1f\x8b", 512 } };
	struct disk disk;
	char *path = NULL, block[1024];

	close(g_file_open_tmp("faultbed-disk-XXXXXX", &path, NULL));
	for (u32 i = 0; i < ARRAY_SIZE(bad); i++) {
		memset(block, 0, sizeof(block));
		memcpy(block, bad[i].bytes, MIN(bad[i].len, strlen(bad[i].bytes)));
		g_assert_true(g_file_set_contents(path, block, (gssize)bad[i].len, NULL));
		g_assert_cmpint(disk_open(&disk, path, false), <, 0);
	}
	g_assert_cmpint(disk_open(&disk, "/proc/self", false), <, 0);
	g_assert_cmpint(disk_open(&disk, "/no/such/file", false), <, 0);
	memset(block, 1, sizeof(block));
	g_assert_true(g_file_set_contents(path, block, 1024, NULL));
	g_assert_cmpint(disk_open(&disk, path, false), ==, 0);
	/* A file that shrinks under a running guest is an I/O error, no signal. */
	g_assert_cmpint(disk_read(&disk, 512, block, 512), ==, 0);
	g_assert_cmpint(truncate(path, 600), ==, 0);
	g_assert_cmpint(disk_read(&disk, 512, block, 512), ==, -EIO);
	g_assert_cmpint(disk_write(&disk, 512, block, 512), ==, -EIO);
	disk_close(&disk);
	g_unlink(path);
	g_free(path);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/virtio-blk/registers", test_registers);
	g_test_add_func("/virtio-blk/requests", test_requests);
	g_test_add_func("/virtio-blk/read-only", test_read_only);
	g_test_add_func("/virtio-blk/framing", test_framing);
	g_test_add_func("/virtio-blk/interrupt", test_interrupt);
	g_test_add_func("/virtio-blk/delays", test_delays);
	g_test_add_func("/virtio-blk/depth", test_depth);
	g_test_add_func("/virtio-blk/reset", test_reset);
	g_test_add_func("/virtio-blk/snapshot", test_snapshot);
	g_test_add_func("/virtio-blk/snapshot-bad", test_snapshot_bad);
	g_test_add_func("/virtio-blk/images", test_images);
	return g_test_run();
}
