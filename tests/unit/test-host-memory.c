// SPDX-License-Identifier: GPL-2.0-only
/* What memory a host has, told by made-up /proc and /sys/fs/cgroup; what a cell takes. */
#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>

#include "host-memory.h"

#define MEMINFO	"MemTotal:       16777216 kB\nMemFree:         1048576 kB\nMemAvailable:    8388608 kB\n"

static char *root;

static void put(const char *name, const char *text)
{
	g_autofree char *path = g_build_filename(root, name, NULL), *dir = g_path_get_dirname(path);

	g_assert_cmpint(g_mkdir_with_parents(dir, 0777), ==, 0);
	g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

static void setup(void)
{
	root = g_dir_make_tmp("test-host-memory-XXXXXX", NULL);
	g_assert_nonnull(root);
	put("proc/meminfo", MEMINFO);
}

static void teardown(void)
{
	g_autofree char *command = g_strdup_printf("rm -rf '%s'", root);

	g_assert_true(g_spawn_command_line_sync(command, NULL, NULL, NULL, NULL));
	g_clear_pointer(&root, g_free);
}

/* In MiB, and the end of the limit's folder. */
static void expect(u64 total, u64 available, const char *limit)
{
	struct host_memory m;

	host_memory_read(root, &m);
	g_assert_cmpuint(m.total / MIB, ==, total);
	g_assert_cmpuint(m.free / MIB, ==, available);
	g_assert_cmpint(!!m.limit, ==, !!limit);
	if (limit)
		g_assert_true(g_str_has_suffix(m.limit, limit));
	host_memory_clear(&m);
}

static void test_host(void)
{
	setup();
	expect(16384, 8192, NULL);
	put("proc/self/cgroup", "0::/\n");
	expect(16384, 8192, NULL);
	/* What no kernel would say. */
	put("proc/self/cgroup", "\n:\n::\n0:\nx\n0::\n7:memory:\n0::relative/path\n");
	expect(16384, 8192, NULL);
	put("proc/meminfo", "MemTotal: lots\nMemAvailable: 99999999999999999999 kB\n");
	struct host_memory m;

	host_memory_read(root, &m);
	g_assert_cmpuint(m.total, ==, UINT64_MAX);
	g_assert_cmpuint(m.free, ==, UINT64_MAX);
	host_memory_clear(&m);
	teardown();
}

static void test_v2(void)
{
	setup();
	put("proc/self/cgroup", "0::/user.slice/job\n");
	put("sys/fs/cgroup/user.slice/job/memory.max", "max\n");
	put("sys/fs/cgroup/user.slice/job/memory.current", "1073741824\n");
	expect(16384, 8192, NULL);
	/* The one above has a limit: 4 GiB, of which 3 are used, half a GiB of that by files that could go. */
	put("sys/fs/cgroup/user.slice/memory.max", "4294967296\n");
	put("sys/fs/cgroup/user.slice/memory.current", "3221225472\n");
	put("sys/fs/cgroup/user.slice/memory.stat", "anon 1\ninactive_file 536870912\nactive_file 77\n");
	expect(4096, 1536, "/user.slice");
	/* The nearer one is tighter still. */
	put("sys/fs/cgroup/user.slice/job/memory.max", "2147483648\n");
	expect(2048, 1024, "/user.slice/job");
	/* Over its limit, and files of more than is used: nothing is left, and not less. */
	put("sys/fs/cgroup/user.slice/job/memory.current", "3221225472\n");
	expect(2048, 0, "/user.slice/job");
	put("sys/fs/cgroup/user.slice/job/memory.stat", "inactive_file 9221225472\n");
	expect(2048, 1536, "/user.slice/job");
	/* A limit above what the host has is none. */
	put("sys/fs/cgroup/user.slice/memory.max", "42949672960\n");
	put("sys/fs/cgroup/user.slice/job/memory.max", "max\n");
	expect(16384, 8192, NULL);
	teardown();
}

static void test_v1(void)
{
	setup();
	/* The container sees its own group as the top, and its name from outside. */
	put("proc/self/cgroup", "9:name=systemd:/x\n4:cpu,cpuacct:/x\n3:memory:/docker/0123\n0::/\n");
	put("sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n");
	put("sys/fs/cgroup/memory/memory.usage_in_bytes", "268435456\n");
	put("sys/fs/cgroup/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 134217728\n");
	expect(1024, 896, "/memory");
	put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	expect(16384, 8192, NULL);
	teardown();
}

static void test_cell(void)
{
	struct scenario s = { .sockets = 2, .cores = 10, .threads = 2, .memory = 2048 * MIB };
	struct cell cell = { .scenario = &s };
	u64 without = host_memory_of_cell(&cell);

	g_assert_cmpuint(without, >=, (2048 + 40) * MIB);
	g_assert_cmpuint(without, <, 2400 * MIB);
	cell.model_bytes = 512 * MIB;
	g_assert_cmpuint(host_memory_of_cell(&cell), ==, without + 512 * MIB);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/host-memory/host", test_host);
	g_test_add_func("/host-memory/cgroup-v2", test_v2);
	g_test_add_func("/host-memory/cgroup-v1", test_v1);
	g_test_add_func("/host-memory/cell", test_cell);
	return g_test_run();
}
