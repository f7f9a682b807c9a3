// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <glib.h>
#include <string.h>

#include "core/topology.h"

static void test_parse(void)
{
	static const char *const bad[] = {
		"", "2", "2x10", "2x10x2x2", "0x1x1", "2x0x1", "2x10x0", "2x10x2 ", " 2x10x2", "-1x1x1",
		"+1x1x1", "2X10X2", "2x10x", "x10x2", "axbxc", "2x1.5x1", "2x010x1", "99999999999x1x1",
		"2*10*2",
	};
	u32 s, c, t;
	char *err = NULL;

	g_assert_cmpint(topology_parse("4x15x2", &s, &c, &t, &err), ==, 0);
	g_assert_cmpuint(s, ==, 4);
	g_assert_cmpuint(c, ==, 15);
	g_assert_cmpuint(t, ==, 2);
	for (u32 i = 0; i < ARRAY_SIZE(bad); i++) {
		err = NULL;
		g_assert_cmpint(topology_parse(bad[i], &s, &c, &t, &err), ==, -EINVAL);
		g_assert_nonnull(strstr(err, "2x10x2"));	/* says what would be right */
		g_free(err);
	}
}

static int init(struct topology *topo, struct topology_params p, const char *word)
{
	char *err = NULL;
	int ret;

	if (!p.memory)
		p.memory = 4 * GIB;
	ret = topology_init(topo, &p, &err);
	if (word) {
		g_assert_cmpint(ret, ==, -EINVAL);
		g_assert_nonnull(err);
		if (!strstr(err, word))
			g_error("\"%s\" does not say \"%s\"", err, word);
		g_free(err);
	} else {
		if (ret)
			g_error("%s", err);
	}
	return ret;
}

/* The CPU order of DESIGN.md: first threads socket by socket, then their siblings. */
static void test_siblings_last(void)
{
	struct topology t;

	init(&t, (struct topology_params){ .sockets = 2, .cores = 10, .threads = 2 }, NULL);
	g_assert_cmpuint(t.nr_cpus, ==, 40);
	for (u32 i = 0; i < 40; i++) {
		g_assert_cmpuint(t.cpu[i].socket, ==, i / 10 % 2);
		g_assert_cmpuint(t.cpu[i].core, ==, i % 10);
		g_assert_cmpuint(t.cpu[i].thread, ==, i / 20);
		g_assert_cmpuint(t.cpu[i].node, ==, t.cpu[i].socket);
	}
	g_assert_cmpint(topology_class(&t, 0, 0), ==, DISTANCE_SELF);
	g_assert_cmpint(topology_class(&t, 0, 20), ==, DISTANCE_SMT);
	g_assert_cmpint(topology_class(&t, 0, 9), ==, DISTANCE_SOCKET);
	g_assert_cmpint(topology_class(&t, 0, 29), ==, DISTANCE_SOCKET);
	g_assert_cmpint(topology_class(&t, 0, 10), ==, DISTANCE_REMOTE);
	g_assert_cmpint(topology_class(&t, 39, 0), ==, DISTANCE_REMOTE);
}

static void test_siblings_adjacent(void)
{
	struct topology t;

	init(&t, (struct topology_params){ .sockets = 2, .cores = 3, .threads = 2,
					   .order = CPU_ORDER_SIBLINGS_ADJACENT }, NULL);
	for (u32 i = 0; i < 12; i++) {
		g_assert_cmpuint(t.cpu[i].thread, ==, i % 2);
		g_assert_cmpuint(t.cpu[i].core, ==, i / 2 % 3);
		g_assert_cmpuint(t.cpu[i].socket, ==, i / 6);
	}
	g_assert_cmpint(topology_class(&t, 0, 1), ==, DISTANCE_SMT);
}

/* Ids are unique, found again, and their fields tell who shares what. */
static void check_ids(const struct topology *t)
{
	u32 found = 0;

	for (u32 a = 0; a < t->nr_cpus; a++) {
		u32 id = t->cpu[a].apic_id;

		g_assert_cmpint(topology_cpu_of_apic_id(t, id), ==, (int)a);
		for (u32 b = 0; b < a; b++) {
			u32 other = t->cpu[b].apic_id, shift = t->thread_bits;

			g_assert_cmpuint(id, !=, other);
			g_assert_cmpint(id >> shift == other >> shift, ==,
					topology_class(t, a, b) == DISTANCE_SMT);
			shift += t->core_bits;
			g_assert_cmpint(id >> shift == other >> shift, ==,
					t->cpu[a].socket == t->cpu[b].socket);
			if (t->nr_nodes >= t->sockets)
				g_assert_cmpint(id >> t->l3_shift == other >> t->l3_shift, ==,
						t->cpu[a].node == t->cpu[b].node);
		}
	}
	for (u32 id = 0; id < 4096; id++)
		found += topology_cpu_of_apic_id(t, id) >= 0;
	g_assert_cmpuint(found, ==, t->nr_cpus);
	g_assert_cmpint(topology_cpu_of_apic_id(t, UINT32_MAX), ==, -1);
}

static void test_apic_ids(void)
{
	static const struct { u32 s, c, t, nodes, max_id; } shape[] = {
		{ 1, 1, 1, 0, 0 }, { 2, 10, 2, 0, 51 }, { 2, 6, 2, 0, 27 }, { 4, 15, 2, 0, 125 },
		{ 3, 5, 3, 0, 82 }, { 2, 10, 2, 4, 57 }, { 1, 15, 1, 5, 18 }, { 1, 6, 2, 3, 11 },
		{ 8, 8, 1, 2, 63 }, { 1, 128, 1, 0, 127 },
	};
	struct topology t;

	for (u32 i = 0; i < ARRAY_SIZE(shape); i++) {
		u32 max = 0;

		for (u32 order = 0; order < 2; order++) {
			init(&t, (struct topology_params){ .sockets = shape[i].s, .cores = shape[i].c,
				.threads = shape[i].t, .nodes = shape[i].nodes,
				.order = (enum cpu_order)order }, NULL);
			check_ids(&t);
		}
		for (u32 n = 0; n < t.nr_cpus; n++)
			max = t.cpu[n].apic_id > max ? t.cpu[n].apic_id : max;
		g_assert_cmpuint(max, ==, shape[i].max_id);
	}
}

static void test_limits(void)
{
	struct topology t;

	init(&t, (struct topology_params){ .sockets = 0, .cores = 1, .threads = 1 }, "zero");
	init(&t, (struct topology_params){ .sockets = 1, .cores = 1 }, "zero");
	init(&t, (struct topology_params){ .sockets = 2, .cores = 200, .threads = 2 }, "512");
	init(&t, (struct topology_params){ .sockets = UINT32_MAX, .cores = UINT32_MAX, .threads = 2 }, "512");
	/* 300 vCPUs under xAPIC. */
	init(&t, (struct topology_params){ .sockets = 2, .cores = 75, .threads = 2 }, "x2apic");
	init(&t, (struct topology_params){ .sockets = 2, .cores = 75, .threads = 2, .x2apic = true }, NULL);
	check_ids(&t);
	/* 255 is the broadcast id. */
	init(&t, (struct topology_params){ .sockets = 1, .cores = 255, .threads = 1 }, NULL);
	init(&t, (struct topology_params){ .sockets = 1, .cores = 256, .threads = 1 }, "x2apic");
	init(&t, (struct topology_params){ .sockets = 8, .cores = 32, .threads = 2, .x2apic = true }, NULL);
	g_assert_cmpuint(t.nr_cpus, ==, TOPOLOGY_MAX_CPUS);
	check_ids(&t);
}

static void test_nodes(void)
{
	struct topology t;

	init(&t, (struct topology_params){ .sockets = 4, .cores = 2, .threads = 1, .nodes = 2 }, NULL);
	g_assert_cmpuint(t.l3_per_socket, ==, 1);
	for (u32 i = 0; i < t.nr_cpus; i++)
		g_assert_cmpuint(t.cpu[i].node, ==, t.cpu[i].socket / 2);
	init(&t, (struct topology_params){ .sockets = 4, .cores = 2, .threads = 1, .nodes = 3 }, "evenly");
	init(&t, (struct topology_params){ .sockets = 2, .cores = 10, .threads = 2, .nodes = 4 }, NULL);
	g_assert_cmpuint(t.l3_per_socket, ==, 2);
	for (u32 i = 0; i < t.nr_cpus; i++)
		g_assert_cmpuint(t.cpu[i].node, ==, t.cpu[i].socket * 2 + t.cpu[i].core / 5);
	init(&t, (struct topology_params){ .sockets = 2, .cores = 10, .threads = 2, .nodes = 6 }, "evenly");
	init(&t, (struct topology_params){ .sockets = 2, .cores = 10, .threads = 2, .nodes = 3 }, "evenly");
	init(&t, (struct topology_params){ .sockets = 1, .cores = 64, .threads = 1, .nodes = 33 }, "32");
	init(&t, (struct topology_params){ .sockets = 64, .cores = 1, .threads = 1 }, "nodes");
}

static void test_memory(void)
{
	const u64 odd[] = { 100 * MIB, 0, 28 * MIB };
	const u64 small[] = { 100 * MIB, 12 * MIB, 16 * MIB };
	const u64 none[] = { 0, 100 * MIB, 28 * MIB };
	const u64 ragged[] = { 100 * MIB, 1, 28 * MIB - 1 };
	const u64 huge[] = { UINT64_MAX - 4095, 8192, 0 };
	struct topology_params p = { .sockets = 3, .cores = 1, .threads = 1, .memory = 1000 * MIB };
	struct topology t;
	u64 sum = 0;

	init(&t, p, NULL);
	for (u32 i = 0; i < 3; i++) {
		g_assert_cmpuint(t.node_memory[i] % PAGE_SIZE, ==, 0);
		g_assert_cmpuint(t.node_memory[i] / (2 * MIB), ==, 500 / 3 + (i < 500 % 3));
		sum += t.node_memory[i];
	}
	g_assert_cmpuint(sum, ==, p.memory);
	p.memory = 600 * MIB + 3 * PAGE_SIZE;
	init(&t, p, NULL);
	g_assert_cmpuint(t.node_memory[0], ==, 200 * MIB + PAGE_SIZE);

	p.memory = 128 * MIB;
	p.node_memory = odd;
	init(&t, p, NULL);
	g_assert_cmpuint(t.node_memory[1], ==, 0);
	p.node_memory = small;
	init(&t, p, "16 MiB");
	p.node_memory = none;
	init(&t, p, "64 MiB");
	p.node_memory = ragged;
	init(&t, p, "multiple");
	p.node_memory = huge;
	init(&t, p, "more than");
	p.node_memory = odd;
	p.memory = 129 * MIB;
	init(&t, p, "adds up");
	p.node_memory = NULL;
	p.memory = 100 * MIB;
	init(&t, p, "64 MiB");		/* node 0 gets a third */
	p.memory = 200 * MIB + 1;
	init(&t, p, "multiple");
	p.memory = UINT64_MAX & ~(PAGE_SIZE - 1);
	init(&t, p, "multiple");
}

static void test_distance(void)
{
	const u32 pair[] = { 10, 31 }, bad_local[] = { 11, 31 }, bad_remote[] = { 10, 10 };
	const u32 too_far[] = { 10, 255 };
	const u32 matrix[] = { 10, 16, 22, 16, 10, 17, 22, 17, 10 };
	struct topology_params p = { .sockets = 3, .cores = 1, .threads = 1 };
	struct topology t;

	init(&t, p, NULL);
	g_assert_cmpuint(t.distance[1][1], ==, 10);
	g_assert_cmpuint(t.distance[0][2], ==, 21);
	p.distance = pair;
	p.nr_distance = 2;
	init(&t, p, NULL);
	g_assert_cmpuint(t.distance[2][0], ==, 31);
	p.distance = matrix;
	p.nr_distance = 9;
	init(&t, p, NULL);
	g_assert_cmpuint(t.distance[1][2], ==, 17);
	p.nr_distance = 8;
	init(&t, p, "9");
	p.nr_distance = 4;
	init(&t, p, "9");
	p.nr_distance = 2;
	p.distance = bad_local;
	init(&t, p, "itself");
	p.distance = bad_remote;
	init(&t, p, "above 10");
	p.distance = too_far;
	init(&t, p, "254");
	p.sockets = 1;
	init(&t, p, "254");		/* a typing error even where no pair uses it */
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/topology/parse", test_parse);
	g_test_add_func("/topology/siblings-last", test_siblings_last);
	g_test_add_func("/topology/siblings-adjacent", test_siblings_adjacent);
	g_test_add_func("/topology/apic-ids", test_apic_ids);
	g_test_add_func("/topology/limits", test_limits);
	g_test_add_func("/topology/nodes", test_nodes);
	g_test_add_func("/topology/memory", test_memory);
	g_test_add_func("/topology/distance", test_distance);
	return g_test_run();
}
