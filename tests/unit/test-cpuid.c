// SPDX-License-Identifier: GPL-2.0-only
/*
 * CPUID is read here as Linux 6.12 reads it (arch/x86/kernel/cpu/topology_ext.c,
 * topology_amd.c, cacheinfo.c), for shapes that are no powers of two.
 */
#include <errno.h>
#include <glib.h>
#include <string.h>

#include "core/cpuid.h"
#include "x86/cpuid-bits.h"
#include "x86/msr.h"

static const struct { u32 s, c, t, nodes; } shape[] = {
	{ 1, 1, 1, 0 }, { 2, 10, 2, 0 }, { 2, 6, 2, 0 }, { 4, 15, 2, 0 }, { 2, 10, 2, 4 }, { 1, 15, 1, 5 },
	{ 3, 5, 3, 0 }, { 4, 2, 1, 2 }, { 1, 100, 1, 0 }, { 4, 64, 2, 0 },
};

static void make_topology(struct topology *topo, u32 i)
{
	struct topology_params p = {
		.sockets = shape[i].s, .cores = shape[i].c, .threads = shape[i].t,
		.nodes = shape[i].nodes, .memory = 4 * GIB, .x2apic = true,
	};
	char *err = NULL;

	if (topology_init(topo, &p, &err))
		g_error("%s", err);
}

static struct cpuid_params params(enum cpu_vendor vendor)
{
	return (struct cpuid_params){ .model = "faultbed-v1", .vendor = vendor, .kvmclock = true,
				      .tsc_hz = 2600000000ull };
}

static void build(struct cpuid_table *t, const struct topology *topo, u32 cpu, const struct cpuid_params *p)
{
	char *err = NULL;

	if (cpuid_build(t, topo, cpu, p, &err))
		g_error("%s", err);
}

/* A leaf that is not there reads as zeroes. */
static struct cpuid_entry get(const struct cpuid_table *t, u32 leaf, u32 subleaf)
{
	const struct cpuid_entry *e = cpuid_find(t, leaf, subleaf);

	return e ? *e : (struct cpuid_entry){ 0 };
}

static u32 order(u32 n)
{
	u32 bits = 0;

	while (BIT(bits) < n)
		bits++;
	return bits;
}

/* parse_topology_leaf(): shift and count of a level type; the id must agree on each level. */
static bool find_level(const struct cpuid_table *t, u32 leaf, u32 type, u32 *shift, u32 *count, u32 *id)
{
	struct cpuid_entry e;
	u32 last = 0;

	for (u32 sub = 0; (e = get(t, leaf, sub)).ebx & 0xffff && e.ecx >> 8 & 0xff; sub++) {
		g_assert_cmpuint(e.ecx & 0xff, ==, sub);
		g_assert_cmpuint(e.eax & 31, >=, last);
		last = e.eax & 31;
		*id = e.edx;
		if ((e.ecx >> 8 & 0xff) == type) {
			*shift = e.eax & 31;
			*count = e.ebx & 0xffff;
			return true;
		}
	}
	return false;
}

static void check_levels(const struct cpuid_table *t, const struct topology *topo, u32 cpu, u32 leaf,
			 u32 package_type)
{
	const struct topology_cpu *c = &topo->cpu[cpu];
	u32 shift, count, id;

	g_assert_true(find_level(t, leaf, CPUID_LEVEL_SMT, &shift, &count, &id));
	g_assert_cmpuint(id, ==, c->apic_id);
	g_assert_cmpuint(count, ==, topo->threads);
	g_assert_cmpuint(id & (BIT(shift) - 1), ==, c->thread);
	g_assert_cmpuint(BIT(shift), >=, topo->threads);
	g_assert_true(find_level(t, leaf, package_type, &shift, &count, &id));
	g_assert_cmpuint(count, ==, topo->cores * topo->threads);
	g_assert_cmpuint(id >> shift, ==, c->socket);
}

/* Who shares a cache, the way Linux finds it: ids equal above the rounded-up count. */
static void check_sharing(const struct cpuid_table *t, const struct topology *topo, u32 cpu, u32 leaf)
{
	const struct topology_cpu *c = &topo->cpu[cpu];
	u32 caches = 0, l3 = 0;
	struct cpuid_entry e;

	for (; (e = get(t, leaf, caches)).eax & 31; caches++) {
		u32 level = e.eax >> 5 & 7, shift = order((e.eax >> 14 & 0xfff) + 1);

		g_assert_cmpuint((e.eax >> 14 & 0xfff) + 1, ==, BIT(shift));
		l3 += level == 3;
		for (u32 o = 0; o < topo->nr_cpus; o++) {
			const struct topology_cpu *other = &topo->cpu[o];
			bool shared = c->apic_id >> shift == other->apic_id >> shift;
			bool same_core = c->socket == other->socket && c->core == other->core;
			bool same_l3 = c->socket == other->socket &&
				       (topo->nr_nodes <= topo->sockets || c->node == other->node);

			g_assert_cmpint(shared, ==, level == 3 ? same_l3 : same_core);
		}
		/* Size = ways x partitions x line x sets is a whole number of KiB. */
		g_assert_cmpuint(((e.ebx >> 22) + 1) * ((e.ebx & 0xfff) + 1) * (e.ecx + 1) % 1024, ==, 0);
	}
	g_assert_cmpuint(caches, ==, 4);
	g_assert_cmpuint(l3, ==, 1);
}

static void test_intel(void)
{
	struct topology *topo = g_new(struct topology, 1);
	struct cpuid_table t;

	for (u32 i = 0; i < ARRAY_SIZE(shape); i++) {
		struct cpuid_params p = params(VENDOR_INTEL);

		make_topology(topo, i);
		for (u32 cpu = 0; cpu < topo->nr_cpus; cpu++) {
			struct cpuid_entry e;

			build(&t, topo, cpu, &p);
			g_assert_cmpuint(get(&t, 0, 0).eax, ==, 0x1f);
			check_levels(&t, topo, cpu, 0xb, CPUID_LEVEL_CORE);
			check_levels(&t, topo, cpu, 0x1f, CPUID_LEVEL_CORE);
			check_sharing(&t, topo, cpu, 4);
			e = get(&t, 1, 0);
			g_assert_cmpuint(e.ebx >> 24, ==, topo->cpu[cpu].apic_id & 0xff);
			g_assert_cmpuint(e.ebx >> 16 & 0xff, >=,
					 MIN(topo->cores * topo->threads, 255));
			g_assert_cmpuint((e.ebx >> 8 & 0xff) * 8, ==, 64);
			g_assert_cmpint(!!(e.edx & CPUID_1_EDX_HTT), ==, topo->cores * topo->threads > 1);
			g_assert_null(cpuid_find(&t, 0x8000001e, 0));
		}
	}
	g_free(topo);
}

static void test_amd(void)
{
	struct topology *topo = g_new(struct topology, 1);
	struct cpuid_table t;

	for (u32 i = 0; i < ARRAY_SIZE(shape); i++) {
		struct cpuid_params p = params(VENDOR_AMD);
		u32 package = shape[i].c * shape[i].t;

		make_topology(topo, i);
		for (u32 cpu = 0; cpu < topo->nr_cpus; cpu++) {
			struct cpuid_entry e;
			u32 shift, count, id;

			build(&t, topo, cpu, &p);
			g_assert_cmpuint(get(&t, 0x80000000, 0).eax, ==, 0x80000026);
			check_levels(&t, topo, cpu, 0xb, CPUID_LEVEL_CORE);
			check_levels(&t, topo, cpu, 0x80000026, CPUID_AMD_LEVEL_SOCKET);
			g_assert_true(find_level(&t, 0x80000026, CPUID_AMD_LEVEL_COMPLEX, &shift, &count, &id));
			g_assert_cmpuint(shift, ==, topo->l3_shift);
			check_sharing(&t, topo, cpu, 0x8000001d);

			/* parse_8000_0008() and parse_8000_001e(), for kernels without the new leaves. */
			e = get(&t, 0x80000008, 0);
			g_assert_cmpuint((e.ecx & 0xff) + 1, ==, MIN(package, 256));
			g_assert_cmpuint(topo->cpu[cpu].apic_id >> (e.ecx >> 12 & 0xf), ==,
					 topo->cpu[cpu].socket);
			e = get(&t, 0x8000001e, 0);
			g_assert_cmpuint(e.eax, ==, topo->cpu[cpu].apic_id);
			g_assert_cmpuint((e.ebx >> 8 & 0xff) + 1, ==, topo->threads);
			g_assert_cmpuint(e.ebx & 0xff, ==, topo->cpu[cpu].core);
			g_assert_cmpuint(e.ecx >> 8 & 7, ==, 0);
			/* cpuid_amd_hygon_has_l3_cache() */
			g_assert_cmphex(get(&t, 0x80000006, 0).edx, !=, 0);
			g_assert_cmphex(get(&t, 0x80000001, 0).ecx & CPUID_EXT1_ECX_TOPOEXT, !=, 0);
		}
	}
	g_free(topo);
}

static u32 family(u32 eax)
{
	u32 f = eax >> 8 & 15;

	return f == 15 ? f + (eax >> 20 & 0xff) : f;
}

static u32 model(u32 eax)
{
	return (eax >> 4 & 15) | (eax >> 12 & 0xf0);
}

static void test_identity(void)
{
	struct topology *topo = g_new(struct topology, 1);
	struct cpuid_params p = params(VENDOR_AMD);
	struct cpuid_table t;
	struct cpuid_entry e;
	char text[49] = "";

	make_topology(topo, 1);
	build(&t, topo, 0, &p);
	e = get(&t, 0, 0);
	memcpy(text, &e.ebx, 4);
	memcpy(text + 4, &e.edx, 4);
	memcpy(text + 8, &e.ecx, 4);
	g_assert_cmpstr(text, ==, "AuthenticAMD");
	g_assert_cmphex(get(&t, 0x80000000, 0).ebx, ==, e.ebx);
	e = get(&t, 1, 0);
	/* Linux takes the last-level cache from the leaf only past these. */
	g_assert_true(family(e.eax) > 0x17 || (family(e.eax) == 0x17 && model(e.eax) > 0x1f));
	g_assert_cmphex(get(&t, 0x80000001, 0).edx & 0x0183f3ff, ==, e.edx & 0x0183f3ff);
	g_assert_cmpuint(t.arch_capabilities, ==, 0);
	g_assert_cmphex(get(&t, 7, 0).edx, ==, 0);

	p.vendor = VENDOR_INTEL;
	build(&t, topo, 0, &p);
	e = get(&t, 0, 0);
	memcpy(text, &e.ebx, 4);
	memcpy(text + 4, &e.edx, 4);
	memcpy(text + 8, &e.ecx, 4);
	g_assert_cmpstr(text, ==, "GenuineIntel");
	e = get(&t, 1, 0);
	g_assert_cmphex(family(e.eax), ==, 6);
	g_assert_cmphex(model(e.eax), ==, 0x3e);
	g_assert_cmphex(get(&t, 7, 0).edx, ==, CPUID_7_EDX_ARCH_CAPABILITIES);
	g_assert_cmphex(t.arch_capabilities & ARCH_CAP_RDCL_NO, !=, 0);
	g_assert_cmphex(t.arch_capabilities & (ARCH_CAP_IBRS_ALL | ARCH_CAP_RSBA), ==, 0);
	for (u32 i = 0; i < 3; i++) {
		e = get(&t, 0x80000002 + i, 0);
		memcpy(text + i * 16, &e.eax, 4);
		memcpy(text + i * 16 + 4, &e.ebx, 4);
		memcpy(text + i * 16 + 8, &e.ecx, 4);
		memcpy(text + i * 16 + 12, &e.edx, 4);
	}
	g_assert_cmpstr(text, ==, "Faultbed CPU v1");
	g_free(topo);
}

/* Bits that parameters switch, and those that are there for both vendors whatever the host says. */
static void test_switches(void)
{
	struct topology *topo = g_new(struct topology, 1);
	struct cpuid_table t;

	make_topology(topo, 1);
	for (u32 v = 0; v < 2; v++) {
		struct cpuid_params p = params((enum cpu_vendor)v);
		const u32 switched = CPUID_1_ECX_X2APIC | CPUID_1_ECX_TSC_DEADLINE | CPUID_1_ECX_MONITOR;

		build(&t, topo, 0, &p);
		g_assert_cmphex(get(&t, 1, 0).ecx & switched, ==, 0);
		g_assert_cmphex(get(&t, 1, 0).ecx & CPUID_1_ECX_HYPERVISOR, !=, 0);
		g_assert_cmphex(get(&t, 6, 0).eax & CPUID_6_EAX_ARAT, !=, 0);
		g_assert_cmphex(get(&t, 7, 0).ebx & BIT(1), !=, 0);		/* TSC_ADJUST */
		g_assert_cmphex(get(&t, 0x80000007, 0).edx, ==, CPUID_EXT7_EDX_INVARIANT_TSC);
		/* No SSE3 to AVX, no XSAVE, no performance counters. */
		g_assert_cmphex(get(&t, 1, 0).ecx & (BIT(0) | BIT(9) | BIT(19) | BIT(20) | BIT(26) | BIT(28)), ==, 0);
		g_assert_null(cpuid_find(&t, 0xd, 0));
		g_assert_cmphex(get(&t, 0xa, 0).eax, ==, 0);
		g_assert_cmphex(get(&t, 0x40000000, 0).ebx, ==, 0x4b4d564b);	/* "KVMK" */
		g_assert_cmphex(get(&t, 0x40000001, 0).eax, ==,
				KVM_FEATURE_CLOCKSOURCE_BIT | KVM_FEATURE_CLOCKSOURCE2_BIT |
				KVM_FEATURE_CLOCKSOURCE_STABLE_BIT);

		p.kvmclock = false;
		build(&t, topo, 0, &p);
		g_assert_null(cpuid_find(&t, 0x40000000, 0));

		p.x2apic = p.tsc_deadline = p.mwait = true;
		p.pv_features = KVM_FEATURE_PV_EOI_BIT;
		build(&t, topo, 0, &p);
		g_assert_cmphex(get(&t, 1, 0).ecx & switched, ==, switched);
		g_assert_cmphex(get(&t, 0x40000001, 0).eax, ==,
				KVM_FEATURE_MSI_EXT_DEST_ID_BIT | KVM_FEATURE_PV_EOI_BIT);
		g_assert_cmphex(get(&t, 5, 0).ecx, ==, 3);
	}
	g_free(topo);
}

/* native_calibrate_tsc(): 32-bit arithmetic in kHz; and the crystal is the APIC timer's clock. */
static void test_frequency(void)
{
	static const u64 hz[] = {
		2600000000ull, 2599988000ull, 1000000000ull, 3392293000ull, 800000000ull, 4200000000ull,
		1999999000ull, 999000000ull,
	};
	struct topology *topo = g_new(struct topology, 1);
	struct cpuid_table t;

	make_topology(topo, 1);
	for (u32 i = 0; i < ARRAY_SIZE(hz); i++) {
		struct cpuid_params p = params(VENDOR_INTEL);
		u32 crystal_khz, khz, want = (u32)(hz[i] / 1000);
		struct cpuid_entry e;

		p.tsc_hz = hz[i];
		build(&t, topo, 0, &p);
		e = get(&t, 0x15, 0);
		crystal_khz = e.ecx / 1000;
		g_assert_cmpuint(crystal_khz, ==, 1000000);
		khz = crystal_khz * e.ebx / e.eax;
		g_assert_cmpuint(khz, <=, want + want / 8000);
		g_assert_cmpuint(khz, >=, want - want / 8000);
		if (hz[i] % 1000000 == 0)
			g_assert_cmpuint(khz, ==, want);
		g_assert_cmpuint(get(&t, 0x16, 0).eax, ==, (want + 500) / 1000);
	}
	g_free(topo);
}

/* The nested host: QEMU's AMD CPU without TOPOEXT, PCID and TSC deadline. */
static void make_host(struct cpuid_table *host)
{
	const struct cpuid_entry entry[] = {
		{ .leaf = 0, .eax = 0xd, .ebx = 0x68747541, .ecx = 0x444d4163, .edx = 0x69746e65 },
		{ .leaf = 1, .ecx = 0xf6fa3203 & ~(CPUID_1_ECX_PCID | CPUID_1_ECX_TSC_DEADLINE),
		  .edx = 0x078bfbff },
		{ .leaf = 7, .has_subleaf = true, .ebx = 0x219c07ab & ~BIT(10) },
		{ .leaf = 0xd, .has_subleaf = true, .eax = 7, .ebx = 832, .ecx = 832 },
		{ .leaf = 0xd, .subleaf = 1, .has_subleaf = true, .eax = 1 },
		{ .leaf = 0x80000000, .eax = 0x80000008 },
		{ .leaf = 0x80000001, .ecx = 1, .edx = 0x2fd3fbff },
		{ .leaf = 0x80000008, .eax = 0x3028, .ebx = BIT(12) },
		{ .leaf = 0x40000000, .eax = 0x40000001, .ebx = 0x4b4d564b },
		{ .leaf = 0x40000001, .eax = 0x01007efb },
	};

	memset(host, 0, sizeof(*host));
	memcpy(host->entry, entry, sizeof(entry));
	host->nr = ARRAY_SIZE(entry);
}

static void test_host_features(void)
{
	struct topology *topo = g_new(struct topology, 1);
	struct cpuid_params p = params(VENDOR_AMD);
	struct cpuid_table host, t;
	char *missing, *err = NULL;

	make_topology(topo, 1);
	make_host(&host);
	p.host = &host;
	build(&t, topo, 0, &p);
	g_assert_cmphex(get(&t, 1, 0).ecx & CPUID_1_ECX_PCID, ==, 0);
	g_assert_cmphex(get(&t, 7, 0).ebx & BIT(10), ==, 0);
	g_assert_cmphex(get(&t, 7, 0).ebx & BIT(20), !=, 0);
	g_assert_cmphex(get(&t, 0x80000001, 0).ecx & CPUID_EXT1_ECX_TOPOEXT, !=, 0);
	g_assert_cmpuint(get(&t, 0x80000008, 0).eax & 0xff, ==, 0x28);
	missing = cpuid_missing(&p);
	g_assert_nonnull(strstr(missing, "pcid"));
	g_assert_nonnull(strstr(missing, "invpcid"));
	g_assert_null(strstr(missing, "smap"));
	g_assert_null(strstr(missing, "topoext"));
	g_free(missing);

	/* No long mode, no guest. */
	host.entry[6].edx &= ~BIT(29);
	g_assert_cmpint(cpuid_build(&t, topo, 0, &p, &err), ==, -EINVAL);
	g_assert_nonnull(strstr(err, "lm"));
	g_free(err);

	p.host = NULL;
	missing = cpuid_missing(&p);
	g_assert_cmpstr(missing, ==, "");
	g_free(missing);
	g_free(topo);
}

static void test_host_model(void)
{
	struct topology *topo = g_new(struct topology, 1);
	struct cpuid_params p = params(VENDOR_AMD);
	struct cpuid_table host, t;
	char *err = NULL;

	make_topology(topo, 1);
	p.model = "host";
	g_assert_cmpint(cpuid_build(&t, topo, 0, &p, &err), ==, -EINVAL);
	g_assert_nonnull(strstr(err, "faultbed-v1"));
	g_free(err);

	make_host(&host);
	p.host = &host;
	build(&t, topo, 17, &p);
	check_levels(&t, topo, 17, 0xb, CPUID_LEVEL_CORE);
	check_sharing(&t, topo, 17, 0x8000001d);
	g_assert_cmphex(get(&t, 0xd, 0).eax, ==, 7);
	g_assert_cmphex(get(&t, 0xd, 1).eax, ==, 1);
	g_assert_cmphex(get(&t, 0x80000008, 0).ebx, ==, BIT(12));
	/* KVM's own paravirtual features do not come through. */
	g_assert_cmphex(get(&t, 0x40000001, 0).eax, ==,
			KVM_FEATURE_CLOCKSOURCE_BIT | KVM_FEATURE_CLOCKSOURCE2_BIT |
			KVM_FEATURE_CLOCKSOURCE_STABLE_BIT);
	g_assert_cmphex(get(&t, 1, 0).ecx & (CPUID_1_ECX_X2APIC | CPUID_1_ECX_OSXSAVE), ==, 0);
	for (u32 i = 0; i < t.nr; i++)
		for (u32 j = 0; j < i; j++)
			g_assert_false(t.entry[i].leaf == t.entry[j].leaf &&
				       t.entry[i].subleaf == t.entry[j].subleaf);

	p.model = "faultbed";
	g_assert_cmpint(cpuid_build(&t, topo, 0, &p, &err), ==, -EINVAL);
	g_assert_nonnull(strstr(err, "faultbed-v1"));
	g_free(err);
	g_free(topo);
}

/* The mask is one line, the same for every CPU, and tells models apart. */
static void test_mask(void)
{
	struct topology *topo = g_new(struct topology, 1);
	struct cpuid_params p = params(VENDOR_AMD);
	char *first, *other;
	struct cpuid_table t;

	make_topology(topo, 3);
	build(&t, topo, 0, &p);
	first = cpuid_mask_string(&t);
	build(&t, topo, 77, &p);
	other = cpuid_mask_string(&t);
	g_assert_cmpstr(first, ==, other);
	g_assert_null(strchr(first, '\n'));
	g_assert_true(g_str_has_prefix(first, "1.ecx="));
	g_free(other);
	p.mwait = true;
	build(&t, topo, 0, &p);
	other = cpuid_mask_string(&t);
	g_assert_cmpstr(first, !=, other);
	g_free(other);
	g_free(first);
	g_free(topo);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/cpuid/intel", test_intel);
	g_test_add_func("/cpuid/amd", test_amd);
	g_test_add_func("/cpuid/identity", test_identity);
	g_test_add_func("/cpuid/switches", test_switches);
	g_test_add_func("/cpuid/frequency", test_frequency);
	g_test_add_func("/cpuid/host-features", test_host_features);
	g_test_add_func("/cpuid/host-model", test_host_model);
	g_test_add_func("/cpuid/mask", test_mask);
	return g_test_run();
}
