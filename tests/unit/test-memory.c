// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <glib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"

static void make(struct memory *mem)
{
	g_assert_cmpint(memory_create(mem), ==, 0);
	g_assert_cmpint(memory_add(mem, 0, 2 * MIB, 0), ==, 0);
	g_assert_cmpint(memory_add(mem, 2 * MIB, MIB, 1), ==, 0);
	g_assert_cmpint(memory_add(mem, 4 * GIB, MIB, 1), ==, 0);
}

static void test_slots(void)
{
	struct memory mem;

	make(&mem);
	g_assert_cmpuint(mem.size, ==, 4 * MIB);
	g_assert_cmpuint(memory_slot(&mem, 0)->node, ==, 0);
	g_assert_cmpuint(memory_slot(&mem, 2 * MIB - 1)->node, ==, 0);
	g_assert_cmpuint(memory_slot(&mem, 2 * MIB)->node, ==, 1);
	g_assert_null(memory_slot(&mem, 3 * MIB));
	g_assert_null(memory_slot(&mem, 4 * GIB - 1));
	g_assert_nonnull(memory_slot(&mem, 4 * GIB));
	g_assert_null(memory_slot(&mem, 4 * GIB + MIB));
	g_assert_null(memory_slot(&mem, UINT64_MAX));
	memory_destroy(&mem);
}

static void test_refused(void)
{
	struct memory mem;

	make(&mem);
	g_assert_cmpint(memory_add(&mem, 0x100, MIB, 0), ==, -EINVAL);
	g_assert_cmpint(memory_add(&mem, 8 * MIB, 100, 0), ==, -EINVAL);
	g_assert_cmpint(memory_add(&mem, 8 * MIB, 0, 0), ==, -EINVAL);
	g_assert_cmpint(memory_add(&mem, MIB, PAGE_SIZE, 0), ==, -EINVAL);
	g_assert_cmpint(memory_add(&mem, 3 * MIB, 4 * GIB, 0), ==, -EINVAL);
	g_assert_cmpint(memory_add(&mem, UINT64_MAX - PAGE_SIZE + 1, 2 * PAGE_SIZE, 0), ==, -EINVAL);
	g_assert_cmpint(memory_add(&mem, 8 * GIB, (u64)INT64_MAX & ~(PAGE_SIZE - 1), 0), ==, -EINVAL);
	/* Touching is not overlapping. */
	g_assert_cmpint(memory_add(&mem, 3 * MIB, MIB, 0), ==, 0);
	while (mem.nr_slots < MEMORY_MAX_SLOTS)
		g_assert_cmpint(memory_add(&mem, 8 * GIB + mem.nr_slots * PAGE_SIZE, PAGE_SIZE, 0), ==, 0);
	g_assert_cmpint(memory_add(&mem, 16 * GIB, PAGE_SIZE, 0), ==, -ENOSPC);
	memory_destroy(&mem);
}

/* A node's RAM as a part of somebody's file: what one writes the other reads. */
static void test_file(void)
{
	struct memory mem = { .fd = -1 };
	g_autofree char *path = NULL;
	int fd = g_file_open_tmp("faultbed-ram-XXXXXX", &path, NULL);
	u32 word = 0x12345678, back = 0;

	g_assert_cmpint(fd, >=, 0);
	g_assert_cmpint(ftruncate(fd, 2 * MIB), ==, 0);
	g_assert_cmpint(memory_add_file(&mem, 0, MIB, 0, fd, 0), ==, 0);
	g_assert_cmpint(memory_add_file(&mem, 4 * GIB, MIB, 1, fd, MIB), ==, 0);
	g_assert_cmpint(memory_add_file(&mem, 4 * GIB + PAGE_SIZE, MIB, 1, fd, MIB), ==, -EINVAL);
	g_assert_cmpuint(mem.size, ==, 2 * MIB);
	g_assert_cmpint(memory_write(&mem, 4 * GIB + 8, &word, sizeof(word)), ==, 0);
	g_assert_cmpint(pread(fd, &back, sizeof(back), MIB + 8), ==, sizeof(back));
	g_assert_cmphex(back, ==, word);
	close(fd);
	/* It is not kept open, and is still there. */
	back = 0;
	g_assert_cmpint(memory_read(&mem, 4 * GIB + 8, &back, sizeof(back)), ==, 0);
	g_assert_cmphex(back, ==, word);
	memory_destroy(&mem);
	unlink(path);
}

static void test_hva(void)
{
	struct memory mem;

	make(&mem);
	g_assert_nonnull(memory_hva(&mem, 0, 2 * MIB));
	g_assert_null(memory_hva(&mem, 0, 2 * MIB + 1));	/* the next slot is elsewhere in the VMM */
	g_assert_null(memory_hva(&mem, 2 * MIB - 1, 2));
	g_assert_nonnull(memory_hva(&mem, 2 * MIB - 1, 1));
	g_assert_null(memory_hva(&mem, 2 * MIB - 1, UINT64_MAX));
	g_assert_null(memory_hva(&mem, 3 * MIB, 0));
	memory_destroy(&mem);
}

/* Both views are one memory, and what one writes the other sees. */
static void test_views(void)
{
	struct memory mem;
	struct memslot *slot;

	make(&mem);
	slot = &mem.slot[2];
	g_assert_true(slot->hva != slot->guest_hva);
	slot->hva[12345] = 0x5a;
	g_assert_cmphex(slot->guest_hva[12345], ==, 0x5a);
	slot->guest_hva[MIB - 1] = 0xa5;
	g_assert_cmphex(slot->hva[MIB - 1], ==, 0xa5);
	g_assert_cmphex(mem.slot[0].hva[12345], ==, 0);
	memory_destroy(&mem);
}

static void test_copy(void)
{
	u8 out[4096], in[4096] = { 0 };
	struct memory mem;

	make(&mem);
	for (u32 i = 0; i < sizeof(out); i++)
		out[i] = (u8)(i * 7 + 1);
	/* Across the two slots that touch. */
	g_assert_cmpint(memory_write(&mem, 2 * MIB - 1000, out, sizeof(out)), ==, 0);
	g_assert_cmpint(memory_read(&mem, 2 * MIB - 1000, in, sizeof(in)), ==, 0);
	g_assert_cmpmem(in, sizeof(in), out, sizeof(out));
	g_assert_cmphex(mem.slot[1].hva[0], ==, out[1000]);
	/* Off the end of RAM. */
	g_assert_cmpint(memory_write(&mem, 3 * MIB - 1, out, 2), ==, -EFAULT);
	g_assert_cmpint(memory_read(&mem, 3 * MIB, in, 1), ==, -EFAULT);
	g_assert_cmpint(memory_read(&mem, 4 * GIB - 1, in, 2), ==, -EFAULT);
	g_assert_cmpint(memory_read(&mem, UINT64_MAX, in, 2), ==, -EFAULT);
	g_assert_cmpint(memory_read(&mem, 3 * MIB, in, 0), ==, 0);
	memory_destroy(&mem);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/memory/slots", test_slots);
	g_test_add_func("/memory/refused", test_refused);
	g_test_add_func("/memory/file", test_file);
	g_test_add_func("/memory/hva", test_hva);
	g_test_add_func("/memory/views", test_views);
	g_test_add_func("/memory/copy", test_copy);
	return g_test_run();
}
