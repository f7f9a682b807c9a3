// SPDX-License-Identifier: GPL-2.0-only
/* Traces: lists of kinds, what an engine can see, lines, symbols, failures to write. */
#include "core/trace.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "core/engine.h"
#include "core/symbols.h"

struct fixture {
	struct vm vm;
	struct vcpu vcpu;
	char *dir, *path, *map;
};

static u64 test_now(struct vm *vm, struct vcpu *vcpu)
{
	return 1234;
}

static bool test_rip(struct vcpu *vcpu, u64 *rip)
{
	*rip = 0xffffffff81000012;
	return vcpu->id != 7;
}

static const struct engine_ops test_engine = { .name = "test", .now = test_now, .rip = test_rip };

static void fixture_init(struct fixture *f, bool soft)
{
	*f = (struct fixture){ .vm = { .engine = &test_engine }, .vcpu = { .id = 5 } };
	f->vcpu.vm = &f->vm;
	f->vm.cost.v[COST_clock] = soft ? 3000000000 : 0;
	f->dir = g_dir_make_tmp("test-trace-XXXXXX", NULL);
	g_assert_nonnull(f->dir);
	f->path = g_build_filename(f->dir, "trace", NULL);
	f->map = g_build_filename(f->dir, "System.map", NULL);
}

static void fixture_done(struct fixture *f)
{
	g_unlink(f->path);
	g_unlink(f->map);
	g_rmdir(f->dir);
	g_free(f->path);
	g_free(f->map);
	g_free(f->dir);
}

static void write_map(const struct fixture *f, const char *text)
{
	g_assert_true(g_file_set_contents(f->map, text, -1, NULL));
}

/* The trace without its first line, which must be the heading. */
static char *trace_lines(const struct fixture *f)
{
	char *text = NULL, *rest;

	g_assert_true(g_file_get_contents(f->path, &text, NULL, NULL));
	g_assert_true(g_str_has_prefix(text, "# ns vcpu kind "));
	rest = g_strdup(strchr(text, '\n') + 1);
	g_free(text);
	return rest;
}

static void expect_lines(const struct fixture *f, const char *want)
{
	char *lines = trace_lines(f);

	g_assert_cmpstr(lines, ==, want);
	g_free(lines);
}

static void test_kinds(void)
{
	const char *const *name = trace_name_list();
	static const char *const bad[] = { "", "walks", "walk,", "walk, flush", "Walk" };
	char *err = NULL;
	u32 mask, i;

	for (i = 0; name[i]; i++) {
		g_assert_cmpint(trace_parse_kinds(name[i], &mask, &err), ==, 0);
		g_assert_cmphex(mask, ==, BIT(i));
	}
	g_assert_cmpuint(i, ==, NR_TRACE_KINDS);
	g_assert_cmpint(trace_parse_kinds("flush,ipi,flush", &mask, &err), ==, 0);
	g_assert_cmphex(mask, ==, BIT(TRACE_flush) | BIT(TRACE_ipi));
	g_assert_cmpint(trace_parse_kinds("all", &mask, &err), ==, 0);
	g_assert_cmphex(mask, ==, TRACE_ALL);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		g_assert_cmpint(trace_parse_kinds(bad[i], &mask, &err), ==, -EINVAL);
		g_assert_nonnull(strstr(err, "'"));
		g_assert_nonnull(strstr(err, "walk, flush"));
		g_clear_pointer(&err, g_free);
	}
}

/* Which kinds a VM can see: a list by name is refused whole, "all" is cut down. */
static void test_check(void)
{
	struct fixture f;
	char *err = NULL;
	u32 mask = TRACE_ALL, kind;

	fixture_init(&f, true);
	g_assert_cmpint(trace_check(&f.vm, &mask, &err), ==, 0);
	g_assert_cmphex(mask, ==, TRACE_ALL);
	fixture_done(&f);

	fixture_init(&f, false);
	g_assert_cmpint(trace_check(&f.vm, &mask, &err), ==, 0);
	g_assert_cmphex(mask, ==, BIT(TRACE_ipi) | BIT(TRACE_irq) | BIT(TRACE_exit));
	f.vm.inject.ept_serve = true;
	mask = TRACE_ALL;
	g_assert_cmpint(trace_check(&f.vm, &mask, &err), ==, 0);
	g_assert_cmphex(mask, ==, BIT(TRACE_ipi) | BIT(TRACE_irq) | BIT(TRACE_exit) | BIT(TRACE_ept));
	f.vm.inject.ept_serve = false;
	f.vm.apic = APIC_KERNEL;
	for (kind = 0; kind < NR_TRACE_KINDS; kind++) {
		mask = BIT(kind) | BIT(TRACE_exit);
		if (kind == TRACE_exit) {
			g_assert_cmpint(trace_check(&f.vm, &mask, &err), ==, 0);
			continue;
		}
		g_assert_cmpint(trace_check(&f.vm, &mask, &err), ==, -ENOTSUP);
		g_assert_nonnull(strstr(err, trace_name_list()[kind]));
		g_clear_pointer(&err, g_free);
	}
	fixture_done(&f);
}

static void test_lines(void)
{
	struct fixture f;

	fixture_init(&f, true);
	write_map(&f, "ffffffff81000000 T first\nffffffff81000010 t second\nffffffff81000020 D data\n");
	g_assert_cmpint(trace_open(&f.vm, f.path, BIT(TRACE_flush) | BIT(TRACE_exit), f.map, false), ==, 0);
	g_assert_true(trace_wanted(&f.vm, TRACE_flush));
	g_assert_false(trace_wanted(&f.vm, TRACE_walk));
	trace_add(&f.vm, &f.vcpu, TRACE_flush, 7, 0xffffffff8100000f, "invlpg", 0xfff, 6, 1);
	trace_add(&f.vm, &f.vcpu, TRACE_flush, 8, 0x400000, "cr4", TRACE_NONE, TRACE_NONE, 0);
	trace_add(&f.vm, &f.vcpu, TRACE_exit, 9, TRACE_NONE, NULL, 0x3f8, 1, 1);
	trace_here(&f.vcpu, TRACE_exit, "hlt", TRACE_NONE, TRACE_NONE, TRACE_NONE);
	f.vcpu.id = 7;
	trace_here(&f.vcpu, TRACE_exit, "hlt", TRACE_NONE, TRACE_NONE, TRACE_NONE);
	g_assert_cmpint(trace_close(&f.vm), ==, 0);
	g_assert_false(trace_wanted(&f.vm, TRACE_flush));
	g_assert_cmpint(trace_close(&f.vm), ==, 0);
	expect_lines(&f, "7 5 flush invlpg va=0xfff pcid=6 entries=1 at=0xffffffff8100000f first+0xf\n"
			 "8 5 flush cr4 entries=0 at=0x400000\n"
			 "9 5 exit - address=0x3f8\n"
			 "1234 5 exit hlt at=0xffffffff81000012 second+0x2\n"
			 "1234 7 exit hlt\n");
	fixture_done(&f);
}

/* Only while a command runs. */
static void test_command(void)
{
	struct fixture f;

	fixture_init(&f, true);
	trace_command(&f.vm, true);
	g_assert_cmpint(trace_open(&f.vm, f.path, BIT(TRACE_irq), NULL, true), ==, 0);
	g_assert_false(trace_wanted(&f.vm, TRACE_irq));
	trace_command(&f.vm, true);
	g_assert_true(trace_wanted(&f.vm, TRACE_irq));
	g_assert_false(trace_wanted(&f.vm, TRACE_exit));
	trace_command(&f.vm, false);
	g_assert_false(trace_wanted(&f.vm, TRACE_irq));
	g_assert_cmpint(trace_close(&f.vm), ==, 0);
	expect_lines(&f, "");

	g_assert_cmpint(trace_open(&f.vm, f.path, BIT(TRACE_irq), NULL, false), ==, 0);
	trace_command(&f.vm, false);
	g_assert_true(trace_wanted(&f.vm, TRACE_irq));
	g_assert_cmpint(trace_close(&f.vm), ==, 0);
	fixture_done(&f);
}

static void test_failures(void)
{
	struct fixture f;
	u32 i;

	fixture_init(&f, true);
	g_assert_cmpint(trace_open(&f.vm, f.dir, TRACE_ALL, NULL, false), ==, -EISDIR);
	g_assert_null(f.vm.trace);
	g_assert_cmphex(f.vm.trace_mask, ==, 0);

	/* A map that cannot be read costs the names only. */
	g_assert_cmpint(trace_open(&f.vm, f.path, TRACE_ALL, f.map, false), ==, 0);
	trace_add(&f.vm, &f.vcpu, TRACE_irq, 1, 0xffffffff81000000, "running", 0x20, 0, 0);
	g_assert_cmpint(trace_close(&f.vm), ==, 0);
	expect_lines(&f, "1 5 irq running vector=0x20 at=0xffffffff81000000\n");

	/* A full disk: found at the end if little was written... */
	g_assert_cmpint(trace_open(&f.vm, "/dev/full", TRACE_ALL, NULL, false), ==, 0);
	trace_add(&f.vm, &f.vcpu, TRACE_irq, 1, 0, "running", 0x20, 0, 0);
	g_assert_cmpint(trace_close(&f.vm), ==, -EIO);

	/* ...and on the way otherwise: the trace ends there, whoever comes by still, and at the next command. */
	g_assert_cmpint(trace_open(&f.vm, "/dev/full", TRACE_ALL, NULL, true), ==, 0);
	trace_command(&f.vm, true);
	for (i = 0; i < 100000 && f.vm.trace_mask; i++)
		trace_add(&f.vm, &f.vcpu, TRACE_irq, i, 0, "running", 0x20, 0, 0);
	g_assert_cmpuint(i, <, 100000);
	trace_add(&f.vm, &f.vcpu, TRACE_irq, i, 0, "running", 0x20, 0, 0);
	trace_command(&f.vm, true);
	g_assert_cmphex(f.vm.trace_mask, ==, 0);
	g_assert_cmpint(trace_close(&f.vm), ==, -EIO);
	fixture_done(&f);
}

static void expect_symbol(const struct symbols *s, u64 address, const char *name, u64 want)
{
	u64 offset = 0;

	g_assert_cmpstr(symbols_find(s, address, &offset), ==, name);
	if (name)
		g_assert_cmphex(offset, ==, want);
}

static void test_symbols(void)
{
	struct fixture f;
	struct symbols *s;
	char *err = NULL;
	u64 offset;

	fixture_init(&f, true);
	/* Out of order, data between, no newline at the end. */
	write_map(&f, "ffffffff81000100 t b\nffffffff81000000 T a\nffffffff81000180 d data\nffffffff81000200 W c");
	s = symbols_read(f.map, &err);
	g_assert_nonnull(s);
	expect_symbol(s, 0, NULL, 0);
	expect_symbol(s, 0xffffffff80ffffff, NULL, 0);
	expect_symbol(s, 0xffffffff81000000, "a", 0);
	expect_symbol(s, 0xffffffff810000ff, "a", 0xff);
	expect_symbol(s, 0xffffffff8100017f, "b", 0x7f);
	expect_symbol(s, 0xffffffff81000190, NULL, 0);
	expect_symbol(s, 0xffffffff81000200, "c", 0);
	/* Far behind the last one it is somebody else's. */
	expect_symbol(s, 0xffffffff81000200 + MIB - 1, "c", MIB - 1);
	expect_symbol(s, 0xffffffff81000200 + MIB, NULL, 0);
	expect_symbol(s, UINT64_MAX, NULL, 0);
	expect_symbol(NULL, 0xffffffff81000000, NULL, 0);
	g_assert_cmpstr(symbols_find_data(s, 0xffffffff81000190, &offset), ==, "data");
	g_assert_cmphex(offset, ==, 0x10);
	g_assert_null(symbols_find_data(s, 0xffffffff81000100, &offset));
	g_assert_null(symbols_find_data(s, 0, &offset));
	g_assert_null(symbols_find_data(NULL, 0xffffffff81000190, &offset));
	symbols_free(s);
	symbols_free(NULL);

	/* What lies between the kernel's text and its text for start-up is data. */
	write_map(&f, "ffffffff81000000 T a\nffffffff81000100 T _etext\nffffffff81000200 t init\n");
	s = symbols_read(f.map, &err);
	g_assert_nonnull(s);
	expect_symbol(s, 0xffffffff810000ff, "a", 0xff);
	expect_symbol(s, 0xffffffff81000100, NULL, 0);
	expect_symbol(s, 0xffffffff81000201, "init", 1);
	symbols_free(s);

	write_map(&f, "");
	s = symbols_read(f.map, &err);
	g_assert_nonnull(s);
	expect_symbol(s, 0xffffffff81000000, NULL, 0);
	symbols_free(s);
	fixture_done(&f);
}

static void test_bad_maps(void)
{
	static const char *const bad[] = {
		"ffffffff81000000 T a\n\n", "ffffffff81000000 T a\nffffffff81000001 T\n",
		"ffffffff81000000 T a\nffffffff81000001\n", "ffffffff81000000 T a\n T b\n",
		"ffffffff81000000 T a\nffffffff81000001 TT b\n", ("ffffffff81000000 T a\n\x7f" "ELF\n"),
		"ffffffff81000000 T a\nffffffff81000001 T ",
	};
	struct fixture f;
	char *err = NULL;
	u32 i;

	fixture_init(&f, true);
	g_assert_null(symbols_read(f.map, &err));
	g_assert_nonnull(strstr(err, "System.map"));
	g_clear_pointer(&err, g_free);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		write_map(&f, bad[i]);
		g_assert_null(symbols_read(f.map, &err));
		g_assert_nonnull(strstr(err, "System.map:2: "));
		g_clear_pointer(&err, g_free);
	}
	fixture_done(&f);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/trace/kinds", test_kinds);
	g_test_add_func("/trace/check", test_check);
	g_test_add_func("/trace/lines", test_lines);
	g_test_add_func("/trace/command", test_command);
	g_test_add_func("/trace/failures", test_failures);
	g_test_add_func("/trace/symbols", test_symbols);
	g_test_add_func("/trace/bad-maps", test_bad_maps);
	return g_test_run();
}
