// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <glib.h>
#include <string.h>

#include "core/inject.h"

static void add(struct inject *inj, const char *key, const char *value)
{
	char *err = NULL;

	if (inject_add(inj, key, value, NULL, &err))
		g_error("%s = %s: %s", key, value, err);
}

static void refuse(struct inject *inj, const char *key, const char *value, const char *word)
{
	char *err = NULL;

	if (inject_add(inj, key, value, NULL, &err) != -EINVAL || !err || !strstr(err, word))
		g_error("%s = %s: \"%s\" does not say \"%s\"", key, value, err ? err : "(accepted)", word);
	g_free(err);
}

static u64 ipi(struct inject *inj, enum distance_class class, u32 from, u32 to, u8 vector)
{
	const struct inject_event ev = { .class = class, .src_node = from, .dst_node = to, .vector = vector };

	return inject_delay(inj, INJECT_ipi, 0, &ev);
}

static u64 ept(struct inject *inj, u32 node, enum ept_cause cause)
{
	const struct inject_event ev = { .dst_node = node, .ept = cause };

	return inject_delay(inj, INJECT_ept, 0, &ev);
}

static u64 blk(struct inject *inj, enum blk_op op)
{
	const struct inject_event ev = { .blk = op };

	return inject_delay(inj, INJECT_blk, 0, &ev);
}

static void test_specific(void)
{
	struct inject inj;

	inject_init(&inj);
	g_assert_false(inj.active[INJECT_ipi]);
	/* The order of the keys is nothing. */
	add(&inj, "ipi.node.0-1", "fixed:3us");
	add(&inj, "ipi.all", "fixed:1us");
	add(&inj, "ipi.remote", "fixed:2us");
	add(&inj, "ept.refault_delay", "fixed:20us");
	add(&inj, "ept.write_protect_delay", "fixed:40us");
	add(&inj, "ept.all", "fixed:10us");
	add(&inj, "ept.node.3", "fixed:30us");
	add(&inj, "blk.write", "fixed:60us");
	add(&inj, "blk.all", "fixed:50us");
	add(&inj, "blk.depth", "4");
	inject_start(&inj, 2, 1);
	g_assert_true(inj.active[INJECT_ipi]);
	g_assert_true(inj.active[INJECT_ept]);
	g_assert_true(inj.ept_serve);
	g_assert_false(inj.active[INJECT_timer]);

	g_assert_cmpuint(ipi(&inj, DISTANCE_SELF, 0, 0, 0xfd), ==, 1000);
	g_assert_cmpuint(ipi(&inj, DISTANCE_REMOTE, 1, 0, 0xfd), ==, 2000);
	g_assert_cmpuint(ipi(&inj, DISTANCE_REMOTE, 0, 1, 0xfd), ==, 3000);
	g_assert_cmpuint(ept(&inj, 0, EPT_FIRST_TOUCH), ==, 10000);
	g_assert_cmpuint(ept(&inj, 0, EPT_REFAULT), ==, 20000);
	g_assert_cmpuint(ept(&inj, 0, EPT_WRITE_PROTECT), ==, 40000);
	g_assert_cmpuint(ept(&inj, 3, EPT_WRITE_PROTECT), ==, 30000);
	g_assert_cmpuint(blk(&inj, BLK_READ), ==, 50000);
	g_assert_cmpuint(blk(&inj, BLK_WRITE), ==, 60000);
	g_assert_cmpuint(inj.hist[INJECT_blk][BLK_WRITE].count, ==, 1);
	g_assert_cmpuint(inj.blk_depth, ==, 4);
	g_assert_cmpstr(inject_class_name(INJECT_blk, BLK_FLUSH), ==, "flush");
	g_assert_cmpstr(inject_class_name(INJECT_ept, EPT_REFAULT), ==, "refault");
	g_assert_cmpstr(inject_class_name(INJECT_ipi, DISTANCE_REMOTE), ==, "remote");
	inject_destroy(&inj);
}

static void test_vectors(void)
{
	struct inject inj;

	inject_init(&inj);
	add(&inj, "ipi.all", "fixed:1us");
	add(&inj, "ipi.vectors", "0xfb..0xfd");
	inject_start(&inj, 1, 1);
	g_assert_cmpuint(ipi(&inj, DISTANCE_SMT, 0, 0, 0xfa), ==, 0);
	g_assert_cmpuint(ipi(&inj, DISTANCE_SMT, 0, 0, 0xfb), ==, 1000);
	g_assert_cmpuint(ipi(&inj, DISTANCE_SMT, 0, 0, 0xfd), ==, 1000);
	g_assert_cmpuint(ipi(&inj, DISTANCE_SMT, 0, 0, 0xfe), ==, 0);
	/* What got no delay is not in the account. */
	g_assert_cmpuint(inj.hist[INJECT_ipi][DISTANCE_SMT].count, ==, 2);
	inject_destroy(&inj);

	inject_init(&inj);
	add(&inj, "ipi.vectors", "252");
	g_assert_cmphex(inj.ipi_vector_min, ==, 252);
	g_assert_cmphex(inj.ipi_vector_max, ==, 252);
	refuse(&inj, "ipi.vectors", "0xfd..0xfb", "range");
	refuse(&inj, "blk.depth", "0", "from 1 to 256");
	refuse(&inj, "blk.depth", "257", "from 1 to 256");
	refuse(&inj, "blk.reed", "fixed:1us", "blk.read");
	refuse(&inj, "ipi.vectors", "0..0xff", "0x10");
	refuse(&inj, "ipi.vectors", "0x10..0x100", "0xff");
	refuse(&inj, "ipi.vectors", "0x..0xff", "range");
	refuse(&inj, "ipi.vectors", "", "range");
	inject_destroy(&inj);
}

static void test_account(void)
{
	struct inject inj;
	struct hist *h = &inj.hist[INJECT_ipi][DISTANCE_SOCKET];
	u64 sum = 0, max = 0, min = UINT64_MAX;

	inject_init(&inj);
	add(&inj, "ipi.socket", "exp:5us");
	inject_start(&inj, 1, 1);
	g_assert_cmpuint(ipi(&inj, DISTANCE_REMOTE, 0, 0, 0xfd), ==, 0);
	for (u32 i = 0; i < 1000; i++) {
		u64 ns = ipi(&inj, DISTANCE_SOCKET, 0, 0, 0xfd);

		sum += ns;
		max = MAX(max, ns);
		min = MIN(min, ns);
	}
	g_assert_cmpuint(h->count, ==, 1000);
	g_assert_cmpuint(h->sum, ==, sum);
	g_assert_cmpuint(h->max, ==, max);
	g_assert_cmpuint(h->min, ==, min);
	g_assert_cmpuint(inj.hist[INJECT_ipi][DISTANCE_REMOTE].count, ==, 0);
	inject_destroy(&inj);
}

/* A vCPU's delays depend on the seed and on its own events only. */
static void test_streams(void)
{
	const struct inject_event ev = { .class = DISTANCE_REMOTE, .vector = 0xfd };
	u64 alone[100], other[100];
	struct inject inj;

	for (u32 run = 0; run < 3; run++) {
		u32 same = 0;

		inject_init(&inj);
		add(&inj, "ipi.all", "uniform:0us..1s");
		add(&inj, "timer.all", "uniform:0us..1s");
		inject_start(&inj, 4, run == 2 ? 8 : 7);
		for (u32 i = 0; i < 100; i++) {
			u64 ns = inject_delay(&inj, INJECT_ipi, 2, &ev);

			if (!run)
				alone[i] = ns;
			else
				same += alone[i] == ns;
			if (run) {	/* others draw in between */
				other[i] = inject_delay(&inj, INJECT_ipi, 1, &ev);
				g_assert_cmpuint(inject_delay(&inj, INJECT_timer, 2, &ev), !=, ns);
				g_assert_cmpuint(other[i], !=, ns);
			}
		}
		if (run)
			g_assert_cmpuint(same, ==, run == 1 ? 100 : 0);
		inject_destroy(&inj);
	}
}

static void test_refault(void)
{
	struct inject inj;

	inject_init(&inj);
	add(&inj, "ept.refault", "2000/s");
	g_assert_cmpuint(inj.ept_refault_per_s, ==, 2000);
	g_assert_true(inj.ept_serve);
	g_assert_false(inj.active[INJECT_ept]);
	refuse(&inj, "ept.refault", "0/s", "1/s");
	refuse(&inj, "ept.refault", "2000", "rate");
	refuse(&inj, "ept.refault", "-1/s", "rate");
	refuse(&inj, "ept.refault", "99999999999/s", "rate");
	inject_destroy(&inj);

	inject_init(&inj);
	add(&inj, "ept.write_protect", "10000000/s");
	g_assert_cmpuint(inj.ept_protect_per_s, ==, 10000000);
	g_assert_cmpuint(inj.ept_refault_per_s, ==, 0);
	g_assert_true(inj.ept_serve);
	g_assert_false(inj.active[INJECT_ept]);
	refuse(&inj, "ept.write_protect", "10000001/s", "rate");
	refuse(&inj, "ept.write_protect", "fixed:5us", "2000/s");
	refuse(&inj, "ept.write_protect_delay", "2000/s", "fixed");
	refuse(&inj, "ept.write_protct", "2000/s", "ept.write_protect?");
	inject_destroy(&inj);

	inject_init(&inj);
	add(&inj, "ept.count", "no");
	g_assert_false(inj.ept_serve);
	add(&inj, "ept.count", "yes");
	g_assert_true(inj.ept_serve);
	refuse(&inj, "ept.count", "maybe", "yes");
	inject_destroy(&inj);
}

static void test_min(void)
{
	struct inject inj;

	inject_init(&inj);
	g_assert_cmpuint(inject_min(&inj, INJECT_ipi), ==, UINT64_MAX);
	add(&inj, "ipi.all", "uniform:5us..8us");
	add(&inj, "ipi.remote", "fixed:3us");
	add(&inj, "timer.all", "fixed:1us");
	g_assert_cmpuint(inject_min(&inj, INJECT_ipi), ==, 3000);
	g_assert_cmpuint(inject_min(&inj, INJECT_timer), ==, 1000);
	g_assert_cmpuint(inject_min(&inj, INJECT_ept), ==, UINT64_MAX);
	inject_destroy(&inj);
}

static void test_refused(void)
{
	char *err = NULL;
	struct inject inj;

	inject_init(&inj);
	refuse(&inj, "ipi.remot", "fixed:1us", "ipi.remote");
	refuse(&inj, "ept.firsttouch", "fixed:1us", "ept.first_touch");
	refuse(&inj, "ipi.nodes.0-1", "fixed:1us", "ipi.node.A-B");
	refuse(&inj, "ipi.node.0", "fixed:1us", "ipi.node.0-1");
	refuse(&inj, "ipi.node.0-99", "fixed:1us", "32");
	refuse(&inj, "ipi.node.0-1x", "fixed:1us", "ipi.node");
	refuse(&inj, "ept.node.", "fixed:1us", "ept.node.1");
	refuse(&inj, "ept.node.0-1", "fixed:1us", "ept.node.1");
	refuse(&inj, "zzz", "fixed:1us", "unknown");
	refuse(&inj, "ipi.all", "fixed:1", "unit");
	g_assert_false(inj.active[INJECT_ipi]);		/* nothing of a refused key stays */
	g_assert_cmpuint(inj.nr_rules, ==, 0);
	add(&inj, "ipi.all", "fixed:1us");
	refuse(&inj, "ipi.all", "fixed:2us", "twice");
	add(&inj, "ipi.node.0-1", "fixed:1us");
	add(&inj, "ipi.node.1-0", "fixed:1us");
	refuse(&inj, "ipi.node.0-1", "fixed:1us", "twice");
	g_assert_cmpint(inject_check_nodes(&inj, 2, &err), ==, 0);
	g_assert_cmpint(inject_check_nodes(&inj, 1, &err), ==, -EINVAL);
	g_assert_nonnull(strstr(err, "node 1"));
	g_free(err);
	inject_destroy(&inj);
}

static void test_names(void)
{
	g_assert_cmpstr(inject_point_name(INJECT_ept), ==, "ept");
	g_assert_cmpstr(inject_point_name(INJECT_ipi), ==, "ipi");
	g_assert_cmpstr(inject_point_name(NR_INJECT_POINTS), ==, "?");
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/inject/specific", test_specific);
	g_test_add_func("/inject/vectors", test_vectors);
	g_test_add_func("/inject/account", test_account);
	g_test_add_func("/inject/streams", test_streams);
	g_test_add_func("/inject/refault", test_refault);
	g_test_add_func("/inject/min", test_min);
	g_test_add_func("/inject/refused", test_refused);
	g_test_add_func("/inject/names", test_names);
	return g_test_run();
}
