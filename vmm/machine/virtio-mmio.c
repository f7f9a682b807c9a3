// SPDX-License-Identifier: GPL-2.0-only
#include "machine/virtio-mmio.h"

#include <linux/virtio_config.h>
#include <linux/virtio_mmio.h>
#include <string.h>

#include "base/log.h"
#include "machine/machine.h"

#define MAGIC			0x74726976u	/* "virt" */
#define VERSION			2u
#define VENDOR			0x44454246u	/* "FBED" */
/* Shared memory regions and resets of one queue came with 1.2, after the header's names. */
#define SHM_LEN_LOW		0xb0u
#define SHM_BASE_HIGH		0xbcu
/* What the driver may write into the status; the rest is the device's. */
#define STATUS_DRIVERS	(VIRTIO_CONFIG_S_ACKNOWLEDGE | VIRTIO_CONFIG_S_DRIVER | VIRTIO_CONFIG_S_FEATURES_OK | \
			 VIRTIO_CONFIG_S_DRIVER_OK | VIRTIO_CONFIG_S_FAILED)
#define STATUS_ALL	(STATUS_DRIVERS | VIRTIO_CONFIG_S_NEEDS_RESET)

void virtio_mmio_init(struct virtio_mmio *v, struct vm *vm, u32 pin, const struct virtio_device *device)
{
	*v = (struct virtio_mmio){ .vm = vm, .pin = pin, .device = *device };
	v->device.features |= BIT_ULL(VIRTIO_F_VERSION_1);
}

bool virtio_mmio_running(const struct virtio_mmio *v)
{
	return v->queue.ready && v->status & VIRTIO_CONFIG_S_DRIVER_OK && !(v->status & VIRTIO_CONFIG_S_NEEDS_RESET);
}

static void set_interrupt(struct virtio_mmio *v, u32 status)
{
	v->interrupt_status = status;
	ioapic_set_pin(&v->vm->machine->ioapic, v->pin, status != 0);
}

void virtio_mmio_used(struct virtio_mmio *v)
{
	set_interrupt(v, v->interrupt_status | VIRTIO_MMIO_INT_VRING);
}

static void stop_queue(struct virtio_mmio *v)
{
	v->device.reset(v->device.ctx);
	virtqueue_reset(&v->queue);
}

static void reset(struct virtio_mmio *v)
{
	stop_queue(v);
	v->driver_features = 0;
	v->features_sel = v->driver_features_sel = v->queue_sel = 0;
	v->status = 0;
	set_interrupt(v, 0);
}

void virtio_mmio_broken(struct virtio_mmio *v, const char *why)
{
	if (!v->warned)
		fb_warn("virtio: the guest's driver breaks a rule: %s; the device stops until it is reset", why);
	v->warned = true;
	if (v->status & VIRTIO_CONFIG_S_NEEDS_RESET)
		return;
	v->device.reset(v->device.ctx);
	v->status |= VIRTIO_CONFIG_S_NEEDS_RESET;
	/* 2.1.2: a driver that is up is told by a configuration change. */
	if (v->status & VIRTIO_CONFIG_S_DRIVER_OK) {
		v->generation++;
		set_interrupt(v, v->interrupt_status | VIRTIO_MMIO_INT_CONFIG);
	}
}

/* A driver that wants what was not offered, or not what all must, finds the bit it wrote clear (3.1.1). */
static bool features_ok(const struct virtio_mmio *v)
{
	return !(v->driver_features & ~v->device.features) && v->driver_features & BIT_ULL(VIRTIO_F_VERSION_1);
}

static void write_status(struct virtio_mmio *v, u32 value)
{
	u32 status = v->status | (value & STATUS_DRIVERS);

	if (!value) {
		reset(v);
		return;
	}
	if (!(v->status & VIRTIO_CONFIG_S_FEATURES_OK) && !features_ok(v))
		status &= ~(u32)VIRTIO_CONFIG_S_FEATURES_OK;
	if (!(status & VIRTIO_CONFIG_S_FEATURES_OK))
		status &= ~(u32)VIRTIO_CONFIG_S_DRIVER_OK;
	v->status = status;
}

static void write_ready(struct virtio_mmio *v, u32 value)
{
	const char *why;

	if (v->queue_sel || !(v->status & VIRTIO_CONFIG_S_FEATURES_OK) || v->status & VIRTIO_CONFIG_S_NEEDS_RESET)
		return;
	if (!(value & 1) && v->queue.ready)
		stop_queue(v);
	else if (value & 1 && !v->queue.ready && virtqueue_start(&v->queue, v->vm, &why))
		virtio_mmio_broken(v, why);
}

static void set_low(gpa_t *at, u32 value)
{
	*at = (*at & ~0xffffffffull) | value;
}

static void set_high(gpa_t *at, u32 value)
{
	*at = (*at & 0xffffffffull) | (u64)value << 32;
}

/* A queue is set up while it is not in use (4.2.2.2). */
static void write_queue(struct virtio_mmio *v, u32 off, u32 value)
{
	struct virtqueue *vq = &v->queue;

	if (v->queue_sel || vq->ready)
		return;
	switch (off) {
	case VIRTIO_MMIO_QUEUE_NUM:
		vq->num = value;
		break;
	case VIRTIO_MMIO_QUEUE_DESC_LOW:
		set_low(&vq->desc, value);
		break;
	case VIRTIO_MMIO_QUEUE_DESC_HIGH:
		set_high(&vq->desc, value);
		break;
	case VIRTIO_MMIO_QUEUE_AVAIL_LOW:
		set_low(&vq->driver, value);
		break;
	case VIRTIO_MMIO_QUEUE_AVAIL_HIGH:
		set_high(&vq->driver, value);
		break;
	case VIRTIO_MMIO_QUEUE_USED_LOW:
		set_low(&vq->device, value);
		break;
	case VIRTIO_MMIO_QUEUE_USED_HIGH:
		set_high(&vq->device, value);
		break;
	}
}

static void write_driver_features(struct virtio_mmio *v, u32 value)
{
	u64 *f = &v->driver_features;

	/* Not any more once they are agreed on (3.1.1). */
	if (v->status & VIRTIO_CONFIG_S_FEATURES_OK || v->driver_features_sel > 1)
		return;
	if (v->driver_features_sel)
		set_high(f, value);
	else
		set_low(f, value);
}

static void write_register(struct virtio_mmio *v, struct vcpu *vcpu, u32 off, u32 value)
{
	switch (off) {
	case VIRTIO_MMIO_DEVICE_FEATURES_SEL:
		v->features_sel = value;
		break;
	case VIRTIO_MMIO_DRIVER_FEATURES:
		write_driver_features(v, value);
		break;
	case VIRTIO_MMIO_DRIVER_FEATURES_SEL:
		v->driver_features_sel = value;
		break;
	case VIRTIO_MMIO_QUEUE_SEL:
		v->queue_sel = value;
		break;
	case VIRTIO_MMIO_QUEUE_READY:
		write_ready(v, value);
		break;
	case VIRTIO_MMIO_QUEUE_NOTIFY:
		/* Nothing is used before the driver is up (2.1.2). */
		if (!value && virtio_mmio_running(v))
			v->device.notify(v->device.ctx, vcpu);
		break;
	case VIRTIO_MMIO_INTERRUPT_ACK:
		set_interrupt(v, v->interrupt_status & ~value);
		break;
	case VIRTIO_MMIO_STATUS:
		write_status(v, value);
		break;
	default:
		write_queue(v, off, value);
	}
}

static u32 read_register(const struct virtio_mmio *v, u32 off)
{
	switch (off) {
	case VIRTIO_MMIO_MAGIC_VALUE:
		return MAGIC;
	case VIRTIO_MMIO_VERSION:
		return VERSION;
	case VIRTIO_MMIO_DEVICE_ID:
		return v->device.id;
	case VIRTIO_MMIO_VENDOR_ID:
		return VENDOR;
	case VIRTIO_MMIO_DEVICE_FEATURES:
		return v->features_sel > 1 ? 0 : (u32)(v->device.features >> 32 * v->features_sel);
	case VIRTIO_MMIO_QUEUE_NUM_MAX:
		return v->queue_sel ? 0 : VIRTQUEUE_MAX;
	case VIRTIO_MMIO_QUEUE_READY:
		return v->queue_sel ? 0 : v->queue.ready;
	case VIRTIO_MMIO_INTERRUPT_STATUS:
		return v->interrupt_status;
	case VIRTIO_MMIO_STATUS:
		return v->status;
	case VIRTIO_MMIO_CONFIG_GENERATION:
		return v->generation;
	}
	/* A region that is not there has a length and a base of all ones (4.2.2). */
	return off >= SHM_LEN_LOW && off <= SHM_BASE_HIGH ? UINT32_MAX : 0;
}

/* The configuration space is bytes; behind its end it reads as zeroes. */
static void read_config(const struct virtio_mmio *v, u32 off, void *data, u32 len)
{
	memset(data, 0, len);
	if (off < v->device.config_len)
		memcpy(data, (const u8 *)v->device.config + off, MIN(len, v->device.config_len - off));
}

void virtio_mmio_access(void *dev, struct vcpu *vcpu, u64 off, bool write, void *data, u32 len)
{
	struct virtio_mmio *v = dev;
	u32 value;

	if (off >= VIRTIO_MMIO_CONFIG) {
		/* No field of it can be written with the features offered. */
		if (!write)
			read_config(v, (u32)off - VIRTIO_MMIO_CONFIG, data, len);
		return;
	}
	/* 4.2.2.2: aligned accesses of 32 bits only. Others read as zeroes and write nothing. */
	if (len != 4 || off % 4) {
		if (!write)
			memset(data, 0, len);
		return;
	}
	if (write) {
		memcpy(&value, data, 4);
		write_register(v, vcpu, (u32)off, value);
	} else {
		value = read_register(v, (u32)off);
		memcpy(data, &value, 4);
	}
}

void virtio_mmio_transfer(struct saver *s, struct virtio_mmio *v)
{
	saver_u64(s, &v->driver_features);
	saver_u32(s, &v->features_sel);
	saver_u32(s, &v->driver_features_sel);
	saver_u32(s, &v->queue_sel);
	saver_u32(s, &v->status);
	saver_u32(s, &v->interrupt_status);
	saver_u32(s, &v->generation);
	saver_bool(s, &v->warned);
	virtqueue_transfer(s, &v->queue, v->vm);
	if (!saver_check(s, !(v->status & ~STATUS_ALL), "a virtio device's status"))
		v->status = 0;
}
