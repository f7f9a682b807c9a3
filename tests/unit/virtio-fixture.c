// SPDX-License-Identifier: GPL-2.0-only
#include "virtio-fixture.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "x86/apic.h"

static char *make_image(void)
{
	u32 *words = g_new(u32, SECTORS * 128);
	char *path = NULL;
	int fd = g_file_open_tmp("faultbed-disk-XXXXXX", &path, NULL);

	for (u32 i = 0; i < SECTORS * 128; i++)
		words[i] = i / 128;
	g_assert_cmpint(fd, >=, 0);
	g_assert_cmpint(write(fd, words, SECTORS * 512), ==, SECTORS * 512);
	close(fd);
	g_free(words);
	return path;
}

struct guest *guest_new(bool read_only)
{
	struct guest *g = g_new0(struct guest, 1);
	struct disk disk;

	g->fake = fake_vm_new("1x2x1", APIC_XAPIC);
	g->vm = &g->fake->vm;
	clock_init(&g->vm->service, NULL, NULL);
	g_assert_cmpint(memory_create(&g->vm->mem), ==, 0);
	/* In two slots, so that buffers can lie across. */
	g_assert_cmpint(memory_add(&g->vm->mem, 0, RAM / 2, 0), ==, 0);
	g_assert_cmpint(memory_add(&g->vm->mem, RAM / 2, RAM / 2, 0), ==, 0);
	g_assert_cmpint(machine_init(g->vm), ==, 0);
	g->image = make_image();
	g_assert_cmpint(disk_open(&disk, g->image, read_only), ==, 0);
	g_assert_cmpint(machine_add_disk(g->vm, &disk), ==, 0);
	/* What the user hears once would be said a thousand times here. */
	g->vm->machine->blk->mmio.warned = true;
	g->vm->machine->ioapic.redir[LAYOUT_IRQ_VIRTIO] = VECTOR;
	return g;
}

void guest_free(struct guest *g)
{
	machine_destroy(g->vm);
	clock_destroy(&g->vm->service);
	memory_destroy(&g->vm->mem);
	fake_vm_free(g->fake);
	g_unlink(g->image);
	g_free(g->image);
	g_free(g);
}

static void reg_access(struct guest *g, u32 off, bool write, void *data, u32 len)
{
	g_mutex_lock(&g->vm->lock);
	g_assert_true(bus_access(g->vm->bus, BUS_MMIO, g->vm->vcpu[1], LAYOUT_VIRTIO + off, write, data, len));
	g_mutex_unlock(&g->vm->lock);
}

u32 guest_reg(struct guest *g, u32 off)
{
	u32 value = 0xffffffff;

	reg_access(g, off, false, &value, 4);
	return value;
}

void guest_set(struct guest *g, u32 off, u32 value)
{
	reg_access(g, off, true, &value, 4);
}

bool guest_up(struct guest *g, u64 features)
{
	u32 status = VIRTIO_CONFIG_S_ACKNOWLEDGE | VIRTIO_CONFIG_S_DRIVER;

	guest_set(g, VIRTIO_MMIO_STATUS, 0);
	guest_set(g, VIRTIO_MMIO_STATUS, VIRTIO_CONFIG_S_ACKNOWLEDGE);
	guest_set(g, VIRTIO_MMIO_STATUS, status);
	for (u32 i = 0; i < 2; i++) {
		guest_set(g, VIRTIO_MMIO_DRIVER_FEATURES_SEL, i);
		guest_set(g, VIRTIO_MMIO_DRIVER_FEATURES, (u32)(features >> 32 * i));
	}
	status |= VIRTIO_CONFIG_S_FEATURES_OK;
	guest_set(g, VIRTIO_MMIO_STATUS, status);
	if (!(guest_reg(g, VIRTIO_MMIO_STATUS) & VIRTIO_CONFIG_S_FEATURES_OK))
		return false;
	guest_set(g, VIRTIO_MMIO_QUEUE_SEL, 0);
	guest_set(g, VIRTIO_MMIO_QUEUE_NUM, NUM);
	guest_set(g, VIRTIO_MMIO_QUEUE_DESC_LOW, (u32)DESC);
	guest_set(g, VIRTIO_MMIO_QUEUE_AVAIL_LOW, (u32)AVAIL);
	guest_set(g, VIRTIO_MMIO_QUEUE_USED_LOW, (u32)USED);
	g->avail_idx = g->used_idx = 0;
	memset(memory_hva(&g->vm->mem, AVAIL, 0x2000), 0, 0x2000);
	guest_set(g, VIRTIO_MMIO_QUEUE_READY, 1);
	guest_set(g, VIRTIO_MMIO_STATUS, status | VIRTIO_CONFIG_S_DRIVER_OK);
	return true;
}

void guest_desc(struct guest *g, u32 i, u64 addr, u32 len, u32 flags, u32 next)
{
	const struct vring_desc d = { .addr = addr, .len = len, .flags = (u16)flags, .next = (u16)next };

	memory_write(&g->vm->mem, DESC + i * sizeof(d), &d, sizeof(d));
}

void guest_offer(struct guest *g, u16 head)
{
	memory_write(&g->vm->mem, AVAIL + 4 + g->avail_idx % NUM * 2, &head, 2);
	g->avail_idx++;
	memory_write(&g->vm->mem, AVAIL + 2, &g->avail_idx, 2);
}

void guest_request(struct guest *g, u16 head, u32 type, u64 sector, u64 data, u32 len)
{
	const struct virtio_blk_outhdr hdr = { .type = type, .sector = sector };
	u8 none = 0xee;
	u32 at = head;

	memory_write(&g->vm->mem, HEADER + head * 16, &hdr, sizeof(hdr));
	memory_write(&g->vm->mem, STATUS + head, &none, 1);
	guest_desc(g, at, HEADER + head * 16, 16, VRING_DESC_F_NEXT, at + 1);
	if (len) {
		at++;
		guest_desc(g, at, data, len, VRING_DESC_F_NEXT | (type == VIRTIO_BLK_T_OUT ? 0 : VRING_DESC_F_WRITE), at + 1);
	}
	guest_desc(g, at + 1, STATUS + head, 1, VRING_DESC_F_WRITE, 0);
	guest_offer(g, head);
}

void guest_notify(struct guest *g)
{
	guest_set(g, VIRTIO_MMIO_QUEUE_NOTIFY, 0);
}

void guest_run(struct guest *g, u64 ns)
{
	u64 end = g->fake->now + ns;

	while (clock_first(&g->vm->service) <= end) {
		g->fake->now = MAX(g->fake->now, clock_first(&g->vm->service));
		clock_run_due(&g->vm->service, g->fake->now);
	}
	g->fake->now = end;
	fake_run_all(g->fake);
}

u32 guest_used(struct guest *g, struct vring_used_elem *last)
{
	u16 idx = 0;
	u32 n;

	memory_read(&g->vm->mem, USED + 2, &idx, 2);
	n = (u16)(idx - g->used_idx);
	if (last && n)
		memory_read(&g->vm->mem, USED + 4 + (u16)(idx - 1) % NUM * 8, last, sizeof(*last));
	g->used_idx = idx;
	return n;
}

u8 guest_status(struct guest *g, u16 head)
{
	u8 status = 0;

	memory_read(&g->vm->mem, STATUS + head, &status, 1);
	return status;
}

u32 guest_u32(struct guest *g, u64 gpa)
{
	u32 v = 0;

	memory_read(&g->vm->mem, gpa, &v, 4);
	return v;
}

bool guest_broken(struct guest *g)
{
	return guest_reg(g, VIRTIO_MMIO_STATUS) & VIRTIO_CONFIG_S_NEEDS_RESET;
}
