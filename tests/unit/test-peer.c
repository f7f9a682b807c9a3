// SPDX-License-Identifier: GPL-2.0-only
/* What is said to QEMU of a guest, and what is refused. */
#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>

#include "machine/channel-abi.h"
#include "peer.h"

static struct scenario *load(const char *lines)
{
	g_autofree char *text = g_strconcat("# Does QEMU take it?\n[run]\ncommand = true\n", lines, NULL), *path = NULL;
	struct scenario *s;
	int fd = g_file_open_tmp("faultbed-peer-XXXXXX", &path, NULL);

	g_assert_cmpint(fd, >=, 0);
	g_close(fd, NULL);
	g_assert_true(g_file_set_contents(path, text, -1, NULL));
	s = scenario_load(path, NULL, 0);
	g_assert_nonnull(s);
	g_unlink(path);
	return s;
}

static enum status check(const char *lines)
{
	struct scenario *s = load(lines);
	enum status status = peer_check(s, "qemu");

	scenario_free(s);
	return status;
}

static void test_refused(void)
{
	g_assert_cmpint(check(""), ==, STATUS_DONE);
	g_assert_cmpint(check("[vm]\npin = none\n"), ==, STATUS_DONE);
	g_assert_cmpint(check("[inject]\nipi.remote = fixed:5ms\n"), ==, STATUS_HOST);
	g_assert_cmpint(check("[inject]\nept.count = yes\n"), ==, STATUS_HOST);
	g_assert_cmpint(check("[vm]\napic = xapic\n"), ==, STATUS_HOST);
	g_assert_cmpint(check("[guest]\ndisk = default\n"), ==, STATUS_HOST);
}

static void test_topology(void)
{
	struct topology *topo = g_new0(struct topology, 1);
	struct scenario *s = load("[vm]\ntopology = 2x4x2\n");

	g_assert_cmpint(peer_topology(s, topo), ==, STATUS_BAD_INPUT);
	scenario_free(s);
	/* Without second threads there is no order of them. */
	s = load("[vm]\ntopology = 2x4x1\n");
	g_assert_cmpint(peer_topology(s, topo), ==, STATUS_DONE);
	scenario_free(s);
	s = load("[vm]\ntopology = 2x4x2\ncpu_order = siblings-adjacent\n");
	g_assert_cmpint(peer_topology(s, topo), ==, STATUS_DONE);
	g_assert_cmpuint(topo->cpu[1].thread, ==, 1);
	scenario_free(s);
	g_free(topo);
}

static void test_channel(void)
{
	struct topology *topo = g_new0(struct topology, 1);
	struct scenario *s = load("[vm]\ntopology = 2x4x1\nmemory = 512MiB\n[guest]\nappend = nosmt\n");
	g_autofree char *cmdline = NULL;

	g_assert_cmpint(peer_topology(s, topo), ==, STATUS_DONE);
	g_assert_cmphex(peer_channel(topo), ==, 0x10000000);
	cmdline = peer_cmdline(s, topo);
	g_assert_true(strstr(cmdline, " faultbed.channel=0x10000000,0x10000 memmap=0x10000$0x10000000 faultbed.marks=0x3e8 nosmt") != NULL);
	/* With more than there is room for below 4 GiB, in the middle of what is there. */
	topo->nr_nodes = 1;
	topo->node_memory[0] = 16 * GIB;
	g_assert_cmphex(peer_channel(topo), ==, PEER_LOW_END / 2);
	topo->node_memory[0] = 100 * MIB + PAGE_SIZE;
	g_assert_cmpuint(peer_channel(topo) % FAULTBED_CHANNEL_SIZE, ==, 0);
	scenario_free(s);
	g_free(topo);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/peer/refused", test_refused);
	g_test_add_func("/peer/topology", test_topology);
	g_test_add_func("/peer/channel", test_channel);
	return g_test_run();
}
