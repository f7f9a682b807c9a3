// SPDX-License-Identifier: GPL-2.0-only
/* Guest RAM to a sparse file and back as a private mapping. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory-file.h"

#define OFFSET	(3 * PAGE_SIZE)

static void make(struct memory *mem)
{
	g_assert_cmpint(memory_create(mem), ==, 0);
	g_assert_cmpint(memory_add(mem, 0, 2 * MIB, 0), ==, 0);
	g_assert_cmpint(memory_add(mem, 2 * MIB, 6 * MIB, 1), ==, 0);
	g_assert_cmpint(memory_add(mem, 4 * GIB, MIB, 1), ==, 0);
}

static int scratch(void)
{
	/* On disk rather than a memfd: holes must work where snapshots are kept. */
	char path[] = "/tmp/faultbed-test-XXXXXX";
	int fd = mkstemp(path);

	g_assert_cmpint(fd, >=, 0);
	unlink(path);
	return fd;
}

static void poke(struct memory *mem, gpa_t gpa, const char *text)
{
	g_assert_cmpint(memory_write(mem, gpa, text, strlen(text)), ==, 0);
}

static void expect(const struct memory *mem, gpa_t gpa, const char *text)
{
	char buf[64] = "";

	g_assert_cmpint(memory_read(mem, gpa, buf, strlen(text)), ==, 0);
	g_assert_cmpstr(buf, ==, text);
}

static void test_round_trip(void)
{
	struct memory a, b;
	u64 written = 0;
	struct stat st;
	int fd = scratch();

	make(&a);
	poke(&a, 0, "first");
	poke(&a, 2 * MIB - 4, "across the slots");
	poke(&a, 8 * MIB - 5, "last");
	poke(&a, 4 * GIB + 5 * PAGE_SIZE, "high");
	/* Touched, but all zeroes. */
	memset(memory_hva(&a, MIB, PAGE_SIZE), 0, PAGE_SIZE);
	g_assert_cmpint(memory_save(&a, fd, OFFSET, &written), ==, 0);
	g_assert_cmpuint(written, ==, 5 * PAGE_SIZE);
	g_assert_cmpint(fstat(fd, &st), ==, 0);
	g_assert_cmpuint((u64)st.st_size, ==, OFFSET + 9 * MIB);
	g_assert_cmpuint((u64)st.st_blocks * 512, <, MIB);

	make(&b);
	poke(&b, MIB, "what was there goes");
	g_assert_cmpint(memory_map_file(&b, fd, OFFSET), ==, 0);
	expect(&b, 0, "first");
	expect(&b, 2 * MIB - 4, "across the slots");
	expect(&b, 8 * MIB - 5, "last");
	expect(&b, 4 * GIB + 5 * PAGE_SIZE, "high");
	g_assert_cmpuint(*(u64 *)memory_hva(&b, MIB, 8), ==, 0);
	memory_destroy(&a);
	memory_destroy(&b);
	close(fd);
}

/* Both views are one, other VMs and the file see nothing of what is written. */
static void test_private(void)
{
	struct memory a, b, c;
	u64 written = 0;
	char byte = 0;
	int fd = scratch();

	make(&a);
	poke(&a, 4096, "base");
	g_assert_cmpint(memory_save(&a, fd, OFFSET, &written), ==, 0);
	make(&b);
	make(&c);
	g_assert_cmpint(memory_map_file(&b, fd, OFFSET), ==, 0);
	g_assert_cmpint(memory_map_file(&c, fd, OFFSET), ==, 0);
	g_assert_true(b.slot[0].guest_hva == b.slot[0].hva);
	b.slot[0].guest_hva[4096] = 'B';
	poke(&b, 3 * MIB, "mine");
	expect(&b, 4096, "Base");
	expect(&c, 4096, "base");
	g_assert_cmpuint(*(u64 *)memory_hva(&c, 3 * MIB, 8), ==, 0);
	g_assert_cmpint(pread(fd, &byte, 1, OFFSET + 4096), ==, 1);
	g_assert_cmpint(byte, ==, 'b');
	/* Nobody needs the file's descriptor or its name any more. */
	close(fd);
	expect(&c, 4096, "base");
	/* A private copy is not saved again. */
	fd = scratch();
	g_assert_cmpint(memory_save(&b, fd, OFFSET, &written), ==, -EOPNOTSUPP);
	close(fd);
	memory_destroy(&a);
	memory_destroy(&b);
	memory_destroy(&c);
}

static void test_errors(void)
{
	struct memory a;
	u64 written = 0;
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	make(&a);
	poke(&a, 0, "x");
	g_assert_cmpint(memory_save(&a, fd, OFFSET, &written), <, 0);
	g_assert_cmpint(memory_map_file(&a, fd, OFFSET), <, 0);
	g_assert_cmpint(memory_map_file(&a, -1, OFFSET), ==, -EBADF);
	memory_destroy(&a);
	close(fd);
	/* A disk that is full: what cannot be written is an error, not a short file. */
	fd = open("/dev/full", O_RDWR | O_CLOEXEC);
	make(&a);
	poke(&a, 0, "x");
	g_assert_cmpint(memory_save(&a, fd, OFFSET, &written), <, 0);
	memory_destroy(&a);
	close(fd);
}

/* 2 GiB of which 200 MiB are in use: the rest costs nothing. */
static void test_speed(void)
{
	struct memory a;
	u64 written = 0, start;
	int fd = scratch();

	g_assert_cmpint(memory_create(&a), ==, 0);
	g_assert_cmpint(memory_add(&a, 0, 2 * GIB, 0), ==, 0);
	for (u64 at = 0; at < 200 * MIB; at += PAGE_SIZE)
		*(u64 *)memory_hva(&a, at * 10, 8) = at + 1;
	start = (u64)g_get_monotonic_time();
	g_assert_cmpint(memory_save(&a, fd, OFFSET, &written), ==, 0);
	g_assert_cmpuint(written, ==, 200 * MIB);
	g_test_message("200 MiB of 2 GiB saved in %llu ms",
		       (unsigned long long)((u64)g_get_monotonic_time() - start) / 1000);
	memory_destroy(&a);
	close(fd);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/memory-file/round-trip", test_round_trip);
	g_test_add_func("/memory-file/private", test_private);
	g_test_add_func("/memory-file/errors", test_errors);
	if (g_test_perf())
		g_test_add_func("/memory-file/speed", test_speed);
	return g_test_run();
}
