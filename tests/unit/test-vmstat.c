// SPDX-License-Identifier: GPL-2.0-only
/* A kernel's event counts found in made-up memory: where they are, and where what is said of them is not so. */
#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>

#include "core/memory.h"
#include "core/symbols.h"
#include "vmstat.h"

#define IMAGE	0xffffffff80000000ull
#define DIRECT	0xffff888000000000ull
#define BANNER	0x1000ull
#define TEXT	0x2000ull
#define NAMES	0x3000ull
#define OFFSETS	0x4000ull
#define BASE	0x5000ull
#define STATES	0x200ull	/* in a CPU's area */
#define AREA(c)	(0x10000ull + (c) * 0x1000)

struct fixture {
	struct vm vm;
	char *map;
};

static void put(struct fixture *f, gpa_t gpa, const void *data, u64 len)
{
	g_assert_cmpint(memory_write(&f->vm.mem, gpa, data, len), ==, 0);
}

static void put64(struct fixture *f, gpa_t gpa, u64 value)
{
	put(f, gpa, &value, sizeof(value));
}

/* Two names before the events, three events, and what is behind the array. */
static void init(struct fixture *f, const void *unused)
{
	static const char *const names[] = { "nr_free_pages", "numa_hit", "pgpgin", "pgfault", "pgmajfault" };
	g_autofree char *text = g_strdup_printf("%016llx D vm_event_states\n%016llx R linux_banner\n%016llx R vmstat_text\n%016llx D __per_cpu_offset\n", STATES,
						IMAGE + BANNER, IMAGE + TEXT, IMAGE + OFFSETS);
	char *err = NULL;
	int fd = g_file_open_tmp("faultbed-map-XXXXXX", &f->map, NULL);

	g_assert_cmpint(fd, >=, 0);
	g_close(fd, NULL);
	g_assert_true(g_file_set_contents(f->map, text, -1, NULL));
	f->vm.topo.nr_cpus = 2;
	g_assert_cmpint(memory_create(&f->vm.mem), ==, 0);
	g_assert_cmpint(memory_add(&f->vm.mem, 0, MIB, 0), ==, 0);
	f->vm.symbols = symbols_read(f->map, &err);
	g_assert_nonnull(f->vm.symbols);
	put(f, BANNER, "Linux version 6.12", 19);
	for (u32 i = 0; i < G_N_ELEMENTS(names); i++) {
		put(f, NAMES + 32 * i, names[i], strlen(names[i]) + 1);
		put64(f, TEXT + 8 * i, IMAGE + NAMES + 32 * i);
	}
	for (u32 c = 0; c < 2; c++) {
		put64(f, OFFSETS + 8 * c, DIRECT + AREA(c));
		for (u32 i = 0; i < 3; i++)
			put64(f, AREA(c) + STATES + 8 * i, 10 * (i + 1) + c);
	}
}

static void clear(struct fixture *f, const void *unused)
{
	symbols_free(f->vm.symbols);
	memory_destroy(&f->vm.mem);
	g_unlink(f->map);
	g_free(f->map);
}

static void test_found(struct fixture *f, const void *unused)
{
	struct vmstat *v = vmstat_new(&f->vm);
	u64 *sum;

	g_assert_nonnull(v);
	g_assert_cmpuint(v->nr, ==, 3);
	g_assert_cmpstr(v->name[0], ==, "pgpgin");
	g_assert_cmpstr(v->name[2], ==, "pgmajfault");
	sum = vmstat_read(v, &f->vm);
	g_assert_cmpuint(sum[0], ==, 21);
	g_assert_cmpuint(sum[1], ==, 41);
	g_assert_cmpuint(sum[2], ==, 61);
	g_free(sum);
	vmstat_free(v);
}

static void refused(struct fixture *f)
{
	struct vmstat *v = vmstat_new(&f->vm);

	g_assert_null(v);
}

/* A kernel that has moved itself, or another than the map's. */
static void test_moved(struct fixture *f, const void *unused)
{
	put(f, BANNER, "Linux versiom", 14);
	refused(f);
}

static void test_no_symbols(struct fixture *f, const void *unused)
{
	symbols_free(f->vm.symbols);
	f->vm.symbols = NULL;
	refused(f);
}

/* Nothing that the guest has written leads out of its memory. */
static void test_hostile(struct fixture *f, const void *unused)
{
	put64(f, OFFSETS + 8, DIRECT + 8 * GIB);
	refused(f);
	put64(f, OFFSETS + 8, 0);
	refused(f);
	put64(f, OFFSETS + 8, UINT64_MAX);
	refused(f);
	put64(f, OFFSETS + 8, DIRECT + MIB - STATES - 8);
	refused(f);
	put64(f, OFFSETS + 8, DIRECT + AREA(1) + 1);
	refused(f);
	put64(f, OFFSETS + 8, DIRECT + AREA(1));
	put(f, NAMES + 32 * 2, "pgpgIN", 7);
	refused(f);
	put64(f, TEXT + 8 * 2, 0x1234);
	refused(f);
	put64(f, TEXT + 8 * 2, IMAGE + MIB - 2);
	put(f, MIB - 2, "xx", 2);
	refused(f);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add("/vmstat/found", struct fixture, NULL, init, test_found, clear);
	g_test_add("/vmstat/moved", struct fixture, NULL, init, test_moved, clear);
	g_test_add("/vmstat/no-symbols", struct fixture, NULL, init, test_no_symbols, clear);
	g_test_add("/vmstat/hostile", struct fixture, NULL, init, test_hostile, clear);
	return g_test_run();
}
