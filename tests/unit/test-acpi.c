// SPDX-License-Identifier: GPL-2.0-only
/*
 * ACPI tables, walked from the RSDP as an operating system does, and read once
 * more by an independent parser, Debian's iasl, where it is installed.
 */
#define _GNU_SOURCE
#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>

#include "machine/acpi.h"
#include "machine/layout.h"
#include "machine/machine.h"

static struct vm *make_vm(u32 s, u32 c, u32 t, u32 nodes, u64 memory)
{
	struct topology_params p = {
		.sockets = s, .cores = c, .threads = t, .nodes = nodes, .memory = memory, .x2apic = true,
	};
	struct vm *vm = g_new0(struct vm, 1);
	char *err = NULL;
	gpa_t at = 0;

	if (topology_init(&vm->topo, &p, &err))
		g_error("%s", err);
	g_assert_cmpint(memory_create(&vm->mem), ==, 0);
	for (u32 i = 0; i < vm->topo.nr_nodes; i++) {
		g_assert_cmpint(memory_add(&vm->mem, at, vm->topo.node_memory[i], i), ==, 0);
		at += vm->topo.node_memory[i];
	}
	return vm;
}

static void free_vm(struct vm *vm)
{
	memory_destroy(&vm->mem);
	g_free(vm);
}

static u64 le(const u8 *p, u32 n)
{
	return n ? p[0] | le(p + 1, n - 1) << 8 : 0;
}

static u8 sum(const u8 *p, u32 n)
{
	u8 s = 0;

	while (n--)
		s = (u8)(s + *p++);
	return s;
}

static const u8 *at(struct vm *vm, gpa_t gpa, u32 len)
{
	const u8 *p = memory_hva(&vm->mem, gpa, len);

	g_assert_nonnull(p);
	g_assert_cmphex(gpa, >=, LAYOUT_ACPI);
	g_assert_cmphex(gpa + len, <=, LAYOUT_ACPI_END);
	return p;
}

/* A table at an address, checksum and all. */
static const u8 *table(struct vm *vm, gpa_t gpa, const char *signature, u32 *len)
{
	const u8 *t = at(vm, gpa, 36);

	*len = (u32)le(t + 4, 4);
	t = at(vm, gpa, *len);
	g_assert_cmpmem(t, 4, signature, 4);
	g_assert_cmpuint(sum(t, *len), ==, 0);
	return t;
}

static gpa_t xsdt_of(struct vm *vm, gpa_t rsdp)
{
	const u8 *p = at(vm, rsdp, 36);

	g_assert_cmphex(rsdp % 16, ==, 0);
	g_assert_cmpmem(p, 8, "RSD PTR ", 8);
	g_assert_cmpuint(sum(p, 20), ==, 0);
	g_assert_cmpuint(sum(p, 36), ==, 0);
	g_assert_cmpuint(p[15], ==, 2);
	return le(p + 24, 8);
}

/* A table by signature, through the XSDT. */
static const u8 *find(struct vm *vm, gpa_t rsdp, const char *signature, u32 *len)
{
	const u8 *xsdt = table(vm, xsdt_of(vm, rsdp), "XSDT", len);
	u32 n = (*len - 36) / 8;

	for (u32 i = 0; i < n; i++) {
		gpa_t gpa = le(xsdt + 36 + i * 8, 8);

		if (!memcmp(at(vm, gpa, 4), signature, 4))
			return table(vm, gpa, signature, len);
	}
	g_error("no %s", signature);
}

static void check_madt(struct vm *vm, gpa_t rsdp, bool wide)
{
	u32 len, cpus = 0, ioapics = 0, overrides = 0, nmis = 0;
	const u8 *t = find(vm, rsdp, "APIC", &len);

	g_assert_cmphex(le(t + 36, 4), ==, 0xfee00000);
	g_assert_cmphex(le(t + 40, 4), ==, 1);
	for (u32 off = 44; off < len; off += t[off + 1]) {
		const u8 *e = t + off;

		g_assert_cmpuint(e[1], >=, 2);
		g_assert_cmpuint(off + e[1], <=, len);
		switch (e[0]) {
		case 0:
			g_assert_false(wide);
			g_assert_cmpuint(e[2], ==, cpus);
			g_assert_cmpuint(e[3], ==, vm->topo.cpu[cpus].apic_id);
			g_assert_cmphex(le(e + 4, 4), ==, 1);
			cpus++;
			break;
		case 9:
			g_assert_true(wide);
			g_assert_cmpuint(le(e + 4, 4), ==, vm->topo.cpu[cpus].apic_id);
			g_assert_cmphex(le(e + 8, 4), ==, 1);
			g_assert_cmpuint(le(e + 12, 4), ==, cpus);
			cpus++;
			break;
		case 1:
			g_assert_cmphex(le(e + 4, 4), ==, 0xfec00000);
			g_assert_cmpuint(le(e + 8, 4), ==, 0);
			ioapics++;
			break;
		case 2:
			/* IRQ 0 on pin 2; the SCI level triggered and active high on its own. */
			g_assert_true((e[3] == 0 && le(e + 4, 4) == 2 && !le(e + 8, 2)) ||
				      (e[3] == 9 && le(e + 4, 4) == 9 && le(e + 8, 2) == 0xd));
			overrides++;
			break;
		case 4:
			g_assert_false(wide);
			g_assert_cmphex(e[2], ==, 0xff);
			g_assert_cmpuint(e[5], ==, 1);
			nmis++;
			break;
		case 10:
			g_assert_true(wide);
			g_assert_cmphex(le(e + 4, 4), ==, 0xffffffff);
			g_assert_cmpuint(e[8], ==, 1);
			nmis++;
			break;
		default:
			g_error("MADT entry of type %u", e[0]);
		}
	}
	g_assert_cmpuint(cpus, ==, vm->topo.nr_cpus);
	g_assert_cmpuint(ioapics, ==, 1);
	g_assert_cmpuint(overrides, ==, 2);
	g_assert_cmpuint(nmis, ==, 1);
}

static void check_srat(struct vm *vm, gpa_t rsdp, bool wide)
{
	u32 len, cpus = 0, ranges = 0;
	const u8 *t = find(vm, rsdp, "SRAT", &len);
	u64 bytes[TOPOLOGY_MAX_NODES] = { 0 };

	g_assert_cmphex(le(t + 36, 4), ==, 1);
	for (u32 off = 48; off < len; off += t[off + 1]) {
		const u8 *e = t + off;
		const struct topology_cpu *cpu = &vm->topo.cpu[cpus];

		g_assert_cmpuint(e[1], >=, 16);
		if (e[0] == 0) {
			g_assert_false(wide);
			g_assert_cmpuint(e[2], ==, cpu->node);
			g_assert_cmpuint(e[3], ==, cpu->apic_id);
			g_assert_cmphex(le(e + 4, 4), ==, 1);
			cpus++;
		} else if (e[0] == 2) {
			g_assert_true(wide);
			g_assert_cmpuint(le(e + 4, 4), ==, cpu->node);
			g_assert_cmpuint(le(e + 8, 4), ==, cpu->apic_id);
			g_assert_cmphex(le(e + 12, 4), ==, 1);
			cpus++;
		} else {
			g_assert_cmpuint(e[0], ==, 1);
			g_assert_cmpuint(e[1], ==, 40);
			g_assert_cmphex(le(e + 8, 8), ==, vm->mem.slot[ranges].gpa);
			g_assert_cmphex(le(e + 28, 4), ==, 1);
			bytes[le(e + 2, 4)] += le(e + 16, 8);
			ranges++;
		}
	}
	g_assert_cmpuint(cpus, ==, vm->topo.nr_cpus);
	g_assert_cmpuint(ranges, ==, vm->mem.nr_slots);
	for (u32 i = 0; i < vm->topo.nr_nodes; i++)
		g_assert_cmpuint(bytes[i], ==, vm->topo.node_memory[i]);
}

static void check_slit(struct vm *vm, gpa_t rsdp)
{
	u32 len, n = vm->topo.nr_nodes;
	const u8 *t = find(vm, rsdp, "SLIT", &len);

	g_assert_cmpuint(le(t + 36, 8), ==, n);
	g_assert_cmpuint(len, ==, 44 + n * n);
	for (u32 i = 0; i < n; i++)
		for (u32 j = 0; j < n; j++)
			g_assert_cmpuint(t[44 + i * n + j], ==, vm->topo.distance[i][j]);
}

static void check_fadt(struct vm *vm, gpa_t rsdp)
{
	u32 len, dsdt_len;
	const u8 *t = find(vm, rsdp, "FACP", &len);
	const u8 *facs, *dsdt;

	g_assert_cmpuint(len, ==, 276);
	g_assert_cmphex(le(t + 36, 4) % 64, ==, 0);
	facs = at(vm, le(t + 36, 4), 64);
	g_assert_cmpmem(facs, 4, "FACS", 4);
	g_assert_cmpuint(le(facs + 4, 4), ==, 64);
	dsdt = table(vm, le(t + 40, 4), "DSDT", &dsdt_len);
	g_assert_nonnull(memmem(dsdt, dsdt_len, "_S5_", 4));
	g_assert_cmphex(le(t + 140, 8), ==, le(t + 40, 4));
	g_assert_cmpuint(le(t + 46, 2), ==, LAYOUT_IRQ_SCI);
	g_assert_cmphex(le(t + 48, 4), ==, 0);		/* no SMI port: in ACPI mode already */
	g_assert_cmphex(le(t + 56, 4), ==, LAYOUT_PORT_PM1A_EVT);
	g_assert_cmphex(le(t + 64, 4), ==, LAYOUT_PORT_PM1A_CNT);
	g_assert_cmphex(le(t + 76, 4), ==, LAYOUT_PORT_PMTIMER);
	g_assert_cmpuint(t[88], ==, 4);
	g_assert_cmpuint(t[89], ==, 2);
	g_assert_cmpuint(t[91], ==, 4);
	g_assert_cmphex(le(t + 112, 4) & BIT(20), ==, 0);	/* not hardware-reduced */
	g_assert_cmphex(le(t + 112, 4) & BIT(8), !=, 0);	/* 32-bit PM timer */
	/* The extended blocks say the same as the short ones. */
	g_assert_cmphex(le(t + 148 + 4, 8), ==, LAYOUT_PORT_PM1A_EVT);
	g_assert_cmphex(le(t + 172 + 4, 8), ==, LAYOUT_PORT_PM1A_CNT);
	g_assert_cmphex(le(t + 208 + 4, 8), ==, LAYOUT_PORT_PMTIMER);
	g_assert_cmpuint(t[148 + 1], ==, 32);
	g_assert_cmpuint(t[172 + 1], ==, 16);
	g_assert_cmpuint(t[208 + 1], ==, 32);
	g_assert_cmphex(le(t + 116 + 4, 8), ==, 0x64);
	g_assert_cmphex(t[128], ==, 0xfe);
}

static void check_all(struct vm *vm, bool wide)
{
	gpa_t rsdp = 0;

	g_assert_cmpint(acpi_build(vm, &rsdp), ==, 0);
	g_assert_cmphex(rsdp, ==, LAYOUT_ACPI);
	check_madt(vm, rsdp, wide);
	check_srat(vm, rsdp, wide);
	check_slit(vm, rsdp);
	check_fadt(vm, rsdp);
}

static void test_shapes(void)
{
	static const struct { u32 s, c, t, nodes; u64 memory; bool wide; } shape[] = {
		{ 1, 1, 1, 0, 64 * MIB, false }, { 2, 10, 2, 0, GIB, false }, { 4, 15, 2, 0, GIB, false },
		{ 2, 10, 2, 4, GIB, false }, { 1, 255, 1, 0, GIB, false }, { 1, 256, 1, 0, GIB, true },
		{ 2, 75, 2, 0, GIB, true },
	};

	for (u32 i = 0; i < ARRAY_SIZE(shape); i++) {
		struct vm *vm = make_vm(shape[i].s, shape[i].c, shape[i].t, shape[i].nodes,
					shape[i].memory);

		check_all(vm, shape[i].wide);
		free_vm(vm);
	}
}

/* As many CPUs and nodes as there can be fit. */
static void test_largest(void)
{
	struct vm *vm = make_vm(32, 8, 2, 0, 4 * GIB);

	g_assert_cmpuint(vm->topo.nr_cpus, ==, TOPOLOGY_MAX_CPUS);
	g_assert_cmpuint(vm->topo.nr_nodes, ==, TOPOLOGY_MAX_NODES);
	check_all(vm, true);
	free_vm(vm);
}

static void test_no_room(void)
{
	struct vm *vm = g_new0(struct vm, 1);
	gpa_t rsdp;

	vm->topo.nr_cpus = vm->topo.nr_nodes = 1;
	g_assert_cmpint(memory_create(&vm->mem), ==, 0);
	g_assert_cmpint(memory_add(&vm->mem, 0, LAYOUT_ACPI, 0), ==, 0);
	g_assert_cmpint(acpi_build(vm, &rsdp), <, 0);
	free_vm(vm);
}

/* Disassemble one table with iasl; any warning, error or remark fails. */
static void iasl_read(const char *dir, const char *name, const u8 *t, u32 len)
{
	g_autofree char *file = g_strdup_printf("%s/%s.dat", dir, name);
	g_autofree char *text = g_strdup_printf("%s/%s.dsl", dir, name);
	const char *argv[] = { "iasl", "-d", file, NULL };
	g_autofree char *out = NULL, *err = NULL, *dsl = NULL;
	g_autofree char *needle = g_strdup_printf("\"%s\"", name);
	int status = -1;

	g_assert_true(g_file_set_contents(file, (const char *)t, len, NULL));
	g_assert_true(g_spawn_sync(dir, (char **)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, &out, &err,
				   &status, NULL));
	g_assert_cmpint(status, ==, 0);
	if (g_regex_match_simple("warning|error|invalid|remark|could not", out, G_REGEX_CASELESS, 0) ||
	    g_regex_match_simple("warning|error|invalid|remark|could not", err, G_REGEX_CASELESS, 0))
		g_error("iasl on %s: %s%s", name, out, err);
	g_assert_true(g_file_get_contents(text, &dsl, NULL, NULL));
	g_assert_nonnull(strstr(dsl, needle));
	g_assert_false(g_regex_match_simple("incorrect checksum|unknown subtable|invalid", dsl, G_REGEX_CASELESS, 0));
	g_remove(file);
	g_remove(text);
}

/* The disassembly compiles again to the same bytes: nothing in the AML is out of place. */
static void iasl_round_trip(const char *dir, const u8 *dsdt, u32 len)
{
	g_autofree char *file = g_strdup_printf("%s/again.dat", dir);
	g_autofree char *text = g_strdup_printf("%s/again.dsl", dir);
	g_autofree char *aml = g_strdup_printf("%s/again.aml", dir);
	g_autofree char *bytes = NULL;
	const char *disassemble[] = { "iasl", "-d", file, NULL };
	const char *compile[] = { "iasl", "-p", aml, text, NULL };
	gsize again_len;
	int status = -1;

	g_assert_true(g_file_set_contents(file, (const char *)dsdt, len, NULL));
	g_assert_true(g_spawn_sync(dir, (char **)disassemble, NULL,
				   G_SPAWN_SEARCH_PATH | G_SPAWN_STDOUT_TO_DEV_NULL | G_SPAWN_STDERR_TO_DEV_NULL,
				   NULL, NULL, NULL, NULL, &status, NULL));
	g_assert_cmpint(status, ==, 0);
	g_assert_true(g_spawn_sync(dir, (char **)compile, NULL,
				   G_SPAWN_SEARCH_PATH | G_SPAWN_STDOUT_TO_DEV_NULL | G_SPAWN_STDERR_TO_DEV_NULL,
				   NULL, NULL, NULL, NULL, &status, NULL));
	g_assert_cmpint(status, ==, 0);
	g_assert_true(g_file_get_contents(aml, &bytes, &again_len, NULL));
	/* iasl writes its own creator into the header. */
	g_assert_cmpuint(again_len, ==, len);
	g_assert_cmpmem(bytes + 36, again_len - 36, dsdt + 36, len - 36);
	g_remove(file);
	g_remove(text);
	g_remove(aml);
}

static void test_iasl(void)
{
	static const char *const name[] = { "APIC", "SRAT", "SLIT", "FACP" };
	static const struct { u32 s, c, t, nodes; } shape[] = { { 2, 10, 2, 4 }, { 2, 75, 2, 0 } };
	char *found = g_find_program_in_path("iasl");
	char *dir;

	if (!found) {
		g_test_skip("iasl (package acpica-tools) is not installed");
		return;
	}
	g_free(found);
	dir = g_dir_make_tmp("test-acpi-XXXXXX", NULL);
	for (u32 i = 0; i < ARRAY_SIZE(shape); i++) {
		struct vm *vm = make_vm(shape[i].s, shape[i].c, shape[i].t, shape[i].nodes, GIB);
		/* With a disk, and without: what the tables ask is whether there is one. */
		struct virtio_blk blk = { 0 };
		struct machine machine = { .blk = i ? NULL : &blk };
		const u8 *t;
		gpa_t rsdp;
		u32 len;

		vm->machine = &machine;
		g_assert_cmpint(acpi_build(vm, &rsdp), ==, 0);
		vm->machine = NULL;
		for (u32 n = 0; n < ARRAY_SIZE(name); n++) {
			t = find(vm, rsdp, name[n], &len);
			iasl_read(dir, name[n], t, len);
		}
		t = table(vm, xsdt_of(vm, rsdp), "XSDT", &len);
		iasl_read(dir, "XSDT", t, len);
		t = find(vm, rsdp, "FACP", &len);
		t = table(vm, le(t + 40, 4), "DSDT", &len);
		iasl_read(dir, "DSDT", t, len);
		iasl_round_trip(dir, t, len);
		g_assert_true(!memmem(t, len, "LNRO0005", 8) == !machine.blk);
		free_vm(vm);
	}
	g_rmdir(dir);
	g_free(dir);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/acpi/shapes", test_shapes);
	g_test_add_func("/acpi/largest", test_largest);
	g_test_add_func("/acpi/no-room", test_no_room);
	g_test_add_func("/acpi/iasl", test_iasl);
	return g_test_run();
}
