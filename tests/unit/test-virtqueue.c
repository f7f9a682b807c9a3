// SPDX-License-Identifier: GPL-2.0-only
/*
 * The queue's rules (virtio 1.2 section 2.7) and what becomes of a driver that breaks them: the device asks
 * for a reset, does nothing more, and works again after it.
 */
#include <glib.h>
#include <string.h>

#include "base/rng.h"
#include "virtio-fixture.h"

#define FEATURES	BIT_ULL(VIRTIO_F_VERSION_1)

static void works(struct guest *g)
{
	struct vring_used_elem e = { 0 };

	g_assert_true(guest_up(g, FEATURES));
	guest_request(g, 0, VIRTIO_BLK_T_IN, 7, DATA, 512);
	guest_notify(g);
	/* More than any delay. */
	guest_run(g, 20 * NSEC_PER_SEC);
	g_assert_cmpuint(guest_used(g, &e), ==, 1);
	g_assert_cmpuint(e.id, ==, 0);
	g_assert_cmpuint(e.len, ==, 513);
	g_assert_cmpuint(guest_status(g, 0), ==, VIRTIO_BLK_S_OK);
	g_assert_cmpuint(guest_u32(g, DATA + 508), ==, 7);
}

/* The driver has just notified of something that it must not do. */
static void must_break(struct guest *g)
{
	guest_notify(g);
	guest_run(g, 1000);
	g_assert_true(guest_broken(g));
	g_assert_cmpuint(guest_used(g, NULL), ==, 0);
	/* 2.1.2: a driver that is up is told. */
	g_assert_cmpuint(guest_reg(g, VIRTIO_MMIO_INTERRUPT_STATUS) & VIRTIO_MMIO_INT_CONFIG, ==, VIRTIO_MMIO_INT_CONFIG);
	guest_request(g, 0, VIRTIO_BLK_T_IN, 7, DATA, 512);
	guest_notify(g);
	guest_run(g, 1000);
	g_assert_cmpuint(guest_used(g, NULL), ==, 0);
	works(g);
}

static void test_chains(void)
{
	struct guest *g = guest_new(false);

	works(g);
	/* 2.7.5.2: the next one is not in the table. */
	guest_desc(g, 0, HEADER, 16, VRING_DESC_F_NEXT, NUM);
	guest_offer(g, 0);
	must_break(g);
	guest_offer(g, NUM);
	must_break(g);
	guest_offer(g, 0xffff);
	must_break(g);
	/* 2.7.5.2: loops, of one and of all. */
	guest_desc(g, 0, HEADER, 16, VRING_DESC_F_NEXT, 0);
	guest_offer(g, 0);
	must_break(g);
	for (u32 i = 0; i < NUM; i++)
		guest_desc(g, i, HEADER, 16, VRING_DESC_F_NEXT, (i + 1) % NUM);
	guest_offer(g, 3);
	must_break(g);
	/* 2.7.5.3: not offered. */
	guest_desc(g, 0, HEADER, 16, VRING_DESC_F_INDIRECT, 0);
	guest_offer(g, 0);
	must_break(g);
	/* 2.7.4.2: what is read comes first. */
	guest_request(g, 0, VIRTIO_BLK_T_IN, 7, DATA, 512);
	guest_desc(g, 2, STATUS, 1, 0, 0);
	must_break(g);
	/* All of the table in one chain is right. */
	g_assert_true(guest_up(g, FEATURES));
	guest_request(g, 0, VIRTIO_BLK_T_IN, 100, DATA, 512);
	for (u32 i = 1; i < NUM - 1; i++)
		guest_desc(g, i, DATA + i * 512, 512, VRING_DESC_F_NEXT | VRING_DESC_F_WRITE, i + 1);
	guest_desc(g, NUM - 1, STATUS, 1, VRING_DESC_F_WRITE, 0);
	guest_notify(g);
	guest_run(g, 1);
	g_assert_cmpuint(guest_used(g, NULL), ==, 1);
	g_assert_cmpuint(guest_status(g, 0), ==, VIRTIO_BLK_S_OK);
	g_assert_cmpuint(guest_u32(g, DATA + (NUM - 2) * 512), ==, 100 + NUM - 3);
	guest_free(g);
}

static void test_buffers(void)
{
	static const struct {
		u64 addr;
		u32 len;
	} bad[] = {
		{ RAM, 512 }, { RAM - 511, 512 }, { LAYOUT_VIRTIO, 512 }, { UINT64_MAX - 511, 512 },
		{ UINT64_MAX - 100, 512 }, { UINT64_MAX, 0xffffffff }, { DATA, 0xffffffff }, { 1ull << 63, 512 },
	};
	struct guest *g = guest_new(false);

	for (u32 i = 0; i < ARRAY_SIZE(bad); i++) {
		for (u32 type = VIRTIO_BLK_T_IN; type <= VIRTIO_BLK_T_OUT; type++) {
			works(g);
			guest_request(g, 0, type, 7, bad[i].addr, bad[i].len);
			must_break(g);
		}
	}
	/* From one slot into the next is RAM still. */
	guest_request(g, 0, VIRTIO_BLK_T_IN, 9, RAM / 2 - 4, 512);
	guest_notify(g);
	guest_run(g, 1);
	g_assert_cmpuint(guest_used(g, NULL), ==, 1);
	g_assert_cmpuint(guest_u32(g, RAM / 2 - 4), ==, 9);
	g_assert_cmpuint(guest_u32(g, RAM / 2 + 504), ==, 9);
	guest_free(g);
}

static void test_rings(void)
{
	static const struct {
		u32 num;
		u64 desc, driver, device;
	} bad[] = {
		{ 0, DESC, AVAIL, USED }, { 3, DESC, AVAIL, USED }, { 512, DESC, AVAIL, USED },
		{ 0x80000000, DESC, AVAIL, USED }, { NUM, DESC + 8, AVAIL, USED }, { NUM, DESC, AVAIL + 1, USED },
		{ NUM, DESC, AVAIL, USED + 2 }, { NUM, RAM, AVAIL, USED }, { NUM, DESC, RAM - 2, USED },
		{ NUM, DESC, AVAIL, RAM - 64 }, { NUM, LAYOUT_VIRTIO, AVAIL, USED }, { NUM, UINT64_MAX - 15, AVAIL, USED },
		{ NUM, DESC, AVAIL, UINT64_MAX - 3 },
	};
	struct guest *g = guest_new(false);

	for (u32 i = 0; i < ARRAY_SIZE(bad); i++) {
		works(g);
		guest_set(g, VIRTIO_MMIO_QUEUE_READY, 0);
		g_assert_cmpuint(guest_reg(g, VIRTIO_MMIO_QUEUE_READY), ==, 0);
		guest_set(g, VIRTIO_MMIO_QUEUE_NUM, bad[i].num);
		guest_set(g, VIRTIO_MMIO_QUEUE_DESC_LOW, (u32)bad[i].desc);
		guest_set(g, VIRTIO_MMIO_QUEUE_DESC_HIGH, (u32)(bad[i].desc >> 32));
		guest_set(g, VIRTIO_MMIO_QUEUE_AVAIL_LOW, (u32)bad[i].driver);
		guest_set(g, VIRTIO_MMIO_QUEUE_AVAIL_HIGH, (u32)(bad[i].driver >> 32));
		guest_set(g, VIRTIO_MMIO_QUEUE_USED_LOW, (u32)bad[i].device);
		guest_set(g, VIRTIO_MMIO_QUEUE_USED_HIGH, (u32)(bad[i].device >> 32));
		guest_set(g, VIRTIO_MMIO_QUEUE_READY, 1);
		g_assert_true(guest_broken(g));
		g_assert_cmpuint(guest_reg(g, VIRTIO_MMIO_QUEUE_READY), ==, 0);
		must_break(g);
	}
	/* 2.7.13.3: an index that offers more than there is. */
	g->avail_idx += NUM + 1;
	guest_offer(g, 0);
	must_break(g);
	guest_free(g);
}

/* 2.7.13: a chain that the device has is offered again, so that more are under way than there is room for. */
static void test_twice(void)
{
	struct guest *g = guest_new(false);

	fake_inject(g->fake, "blk.all", "fixed:1ms");
	fake_inject_start(g->fake, 1);
	g_assert_true(guest_up(g, FEATURES));
	guest_request(g, 0, VIRTIO_BLK_T_IN, 7, DATA, 512);
	guest_notify(g);
	for (u32 i = 0; i < 3; i++)
		guest_offer(g, 0);
	guest_notify(g);
	g_assert_true(guest_broken(g));
	guest_run(g, 2 * NSEC_PER_MSEC);
	g_assert_cmpuint(guest_used(g, NULL), ==, 0);
	guest_free(g);
}

/* Anything at all in rings, descriptors, headers and registers. */
static void test_garbage(void)
{
	for (u64 seed = 0; seed < 300; seed++) {
		struct guest *g = guest_new(seed & 1);
		struct rng rng;

		rng_seed(&rng, seed, 0);
		if (seed & 2) {
			fake_inject(g->fake, "blk.all", "exp:5us");
			fake_inject_start(g->fake, seed);
		}
		for (u32 round = 0; round < 6; round++) {
			guest_up(g, FEATURES | (round ? 0 : rng_next(&rng)));
			for (u32 i = 0; i < 40; i++) {
				u64 at = DESC + rng_next(&rng) % (seed & 4 ? 0x4000 : 0x80), v = rng_next(&rng);

				if (rng_next(&rng) % 3 == 0)
					/* An address in RAM, a short length, likely flags. */
					v = rng_next(&rng) & 1 ? DATA + v % 4096 : v & 0x0007000300000fffull;
				memory_write(&g->vm->mem, at & ~7ull, &v, 8);
				if (rng_next(&rng) % 2)
					guest_request(g, rng_next(&rng) % (NUM - 2), rng_next(&rng) % 12, rng_next(&rng) % 5000,
						      DATA, 512 * (rng_next(&rng) % 20));
				if (rng_next(&rng) % 4 == 0)
					guest_offer(g, rng_next(&rng) % (NUM + 2));
				if (rng_next(&rng) % 8 == 0)
					guest_set(g, rng_next(&rng) % 0x60 * 4, (u32)v);
				guest_notify(g);
				guest_run(g, rng_next(&rng) % 10000);
			}
		}
		works(g);
		guest_free(g);
	}
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/virtqueue/chains", test_chains);
	g_test_add_func("/virtqueue/buffers", test_buffers);
	g_test_add_func("/virtqueue/rings", test_rings);
	g_test_add_func("/virtqueue/twice", test_twice);
	g_test_add_func("/virtqueue/garbage", test_garbage);
	return g_test_run();
}
