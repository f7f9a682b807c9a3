// SPDX-License-Identifier: GPL-2.0-only
/* The scenario reader: values, defaults, cells, and what it says of each kind of mistake. */
#include <errno.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scenario.h"

/* A scenario file in a folder of its own, and what loading it wrote to standard error. */
struct fixture {
	char *dir, *path, *said;
	struct scenario *s;
};

static void fixture_init(struct fixture *f, const void *unused)
{
	f->dir = g_dir_make_tmp("faultbed-test-XXXXXX", NULL);
	g_assert_nonnull(f->dir);
	f->path = g_build_filename(f->dir, "x.ini", NULL);
}

static void fixture_clear(struct fixture *f, const void *unused)
{
	scenario_free(f->s);
	g_free(f->said);
	g_remove(f->path);
	g_rmdir(f->dir);
	g_free(f->path);
	g_free(f->dir);
}

static void load_bytes(struct fixture *f, const char *text, size_t len, const char *const *set)
{
	FILE *capture = tmpfile();
	int err = dup(STDERR_FILENO);

	g_assert_true(g_file_set_contents(f->path, text, len, NULL));
	scenario_free(f->s);
	g_clear_pointer(&f->said, g_free);
	g_assert_nonnull(capture);
	fflush(stderr);
	dup2(fileno(capture), STDERR_FILENO);
	f->s = scenario_load(f->path, set, set ? g_strv_length((char **)set) : 0);
	fflush(stderr);
	dup2(err, STDERR_FILENO);
	close(err);

	long end = ftell(capture);

	end = lseek(fileno(capture), 0, SEEK_END);
	f->said = g_malloc0(end + 1);
	g_assert_cmpint(pread(fileno(capture), f->said, end, 0), ==, end);
	fclose(capture);
}

static void load(struct fixture *f, const char *text)
{
	load_bytes(f, text, strlen(text), NULL);
}

static void assert_says(struct fixture *f, const char *what)
{
	if (!strstr(f->said, what))
		g_error("expected \"%s\" in:\n%s", what, f->said);
}

/* It must be refused with this text in the message. */
static void assert_refused(struct fixture *f, const char *text, const char *what)
{
	load(f, text);
	g_assert_null(f->s);
	assert_says(f, what);
}

#define RUN	"[run]\ncommand = true\n"

static void test_defaults(struct fixture *f, const void *unused)
{
	load(f, "# Why?\n# Because.\n\n# not this\n" RUN);
	g_assert_nonnull(f->s);
	g_assert_cmpstr(f->said, ==, "");
	g_assert_cmpstr(f->s->question, ==, "Why?\nBecause.");
	g_assert_cmpint(f->s->engine, ==, ENGINE_AUTO);
	g_assert_cmpuint(f->s->sockets, ==, 2);
	g_assert_cmpuint(f->s->cores, ==, 10);
	g_assert_cmpuint(f->s->threads, ==, 2);
	g_assert_cmpuint(f->s->memory, ==, GIB);
	g_assert_cmpuint(f->s->warmup_ns, ==, 50 * NSEC_PER_MSEC);
	g_assert_cmpuint(f->s->duration_ns, ==, 200 * NSEC_PER_MSEC);
	g_assert_cmpuint(f->s->repeat, ==, 1);
	g_assert_cmpuint(f->s->seed, ==, 1);
	g_assert_cmpuint(f->s->timeout_ns, ==, 300 * NSEC_PER_SEC);
	g_assert_cmpuint(f->s->boot_timeout_ns, ==, f->s->timeout_ns);
	g_assert_cmpstr(f->s->cpu_model, ==, "faultbed-v1");
	g_assert_null(f->s->kernel);
	g_assert_cmpuint(scenario_cells(f->s), ==, 1);
	g_assert_cmpstr(scenario_origin(f->s, "vm", "memory"), ==, "default");
}

static void test_values(struct fixture *f, const void *unused)
{
	load(f,
	     "[vm]\nengine=nested\ntopology = 4x15x2\ncpu_order = siblings-adjacent\nmemory = 4GiB\n"
	     "nodes = 2\nnode_memory = 4GiB,0\ndistance = 10,21;31,10\napic = xapic\ncpu_model = host\n"
	     "[guest]\nkernel = k/bzImage\ninitrd = /i\nappend = a b # c\nadd = x:/bin/x, y\n"
	     "pv = tlb_flush, pv_eoi\nknob.fault_path = speculative\n"
	     "[run]\ncommand = multi-fault 20\nwarmup = 1.5ms\nduration = 2s\nrepeat = 5\nseed = 0x10\n"
	     "timeout = 20s\nboot_timeout = 10s\n[inject]\nipi.remote = fixed:5us\nept.count = yes\n");
	g_assert_nonnull(f->s);

	struct scenario *s = f->s;
	g_autofree char *kernel = g_build_filename(f->dir, "k/bzImage", NULL);
	g_autofree char *origin = g_strdup_printf("%s:3", f->path);

	g_assert_cmpint(s->engine, ==, ENGINE_NESTED);
	g_assert_cmpuint(s->sockets * s->cores * s->threads, ==, 120);
	g_assert_cmpint(s->cpu_order, ==, CPU_ORDER_SIBLINGS_ADJACENT);
	g_assert_cmpuint(s->nr_node_memory, ==, 2);
	g_assert_cmpuint(s->node_memory[0], ==, 4 * GIB);
	g_assert_cmpuint(s->nr_distance, ==, 4);
	g_assert_cmpuint(s->distance[2], ==, 31);
	g_assert_cmpint(s->apic, ==, SCENARIO_APIC_XAPIC);
	g_assert_cmpstr(s->kernel, ==, kernel);
	g_assert_cmpstr(s->initrd, ==, "/i");
	g_assert_cmpstr(s->append, ==, "a b # c");
	g_assert_cmpuint(s->add->len, ==, 2);
	g_assert_cmpuint(s->pv_features, ==, BIT(9) | BIT(6));
	g_assert_cmpstr(s->knob_name->pdata[0], ==, "fault_path");
	g_assert_cmpstr(s->knob_value->pdata[0], ==, "speculative");
	g_assert_cmpuint(s->warmup_ns, ==, 1500000);
	g_assert_cmpuint(s->duration_ns, ==, 2 * NSEC_PER_SEC);
	g_assert_cmpuint(s->repeat, ==, 5);
	g_assert_cmpuint(s->seed, ==, 16);
	g_assert_cmpuint(s->boot_timeout_ns, ==, 10 * NSEC_PER_SEC);
	g_assert_cmpuint(s->inject_key->len, ==, 2);
	g_assert_cmpstr(scenario_origin(s, "vm", "topology"), ==, origin);
}

/* What the soft engine takes, and where a cost model comes from. */
static void test_soft(struct fixture *f, const void *unused)
{
	g_autofree char *beside = NULL;

	load(f, "[vm]\nengine = soft\ntopology = 1x300x1\ncost_model = ./a.ini\n" RUN "timeout = 7s\n");
	g_assert_nonnull(f->s);
	beside = g_build_filename(f->dir, "./a.ini", NULL);
	g_assert_cmpstr(f->s->cost_model, ==, beside);
	g_assert_cmpuint(scenario_host_limit(f->s, true), ==, 70 * NSEC_PER_SEC);
	g_assert_cmpuint(scenario_host_limit(f->s, false), ==, 0);
	load(f, "[vm]\ncost_model = simple\n" RUN "host_timeout = 3s\n");
	g_assert_nonnull(f->s);
	g_assert_cmpstr(f->s->cost_model, ==, "simple");
	g_assert_cmpuint(scenario_host_limit(f->s, true), ==, 3 * NSEC_PER_SEC);
	g_assert_cmpuint(scenario_host_limit(f->s, false), ==, 3 * NSEC_PER_SEC);
	load(f, "[vm]\ncost_model = auto\n" RUN);
	g_assert_nonnull(f->s);
	g_assert_null(f->s->cost_model);
}

static void test_mistakes(struct fixture *f, const void *unused)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "[vm]\ntopolgy = 1x1x1\n" RUN,
		  "x.ini:2: vm.topolgy: unknown key; did you mean topology?" },
		{ "[vn]\n" RUN, "x.ini:1: unknown section [vn]; did you mean [vm]?" },
		{ "[vm]\nengine = kvn\n" RUN, "x.ini:2: vm.engine: \"kvn\" is none of" },
		{ "[vm]\nmemory = 2GB\n" RUN, "unknown unit \"GB\"; did you mean GiB?" },
		{ "[vm]\nmemory = 2048\n" RUN, "\"2048\" has no unit" },
		{ "[vm]\nmemory = -1GiB\n" RUN, "is not a size" },
		{ "[vm]\nmemory = 1.5GiB\n" RUN, "is not a size" },
		{ "[vm]\nmemory = 99999999999999999999GiB\n" RUN, "is too large" },
		{ "[vm]\nmemory = 17179869184GiB\n" RUN, "is too large" },
		{ "[vm]\nmemory = 1 GiB\n" RUN, "unknown unit \" GiB\"" },
		{ "[vm]\nmemory = 1GiB # one\n" RUN, "(a comment is a whole line)" },
		{ "[vm]\nmemory =\n" RUN, "x.ini:2: vm.memory: no value; the default is 1GiB" },
		{ "[vm]\nmemory = 1GiB\nmemory = 1GiB\n" RUN,
		  "x.ini:3: key vm.memory a second time; line 2" },
		{ "[vm]\n[vm]\n" RUN, "x.ini:2: section [vm] a second time; line 1" },
		{ "memory = 1GiB\n" RUN, "x.ini:1: key memory stands before the first [section]" },
		{ "[vm] x\n" RUN, "x.ini:1: a section is a line of its own" },
		{ "[vm\n" RUN, "x.ini:1: a section is a line of its own" },
		{ "[vm]\nhello\n" RUN, "x.ini:2: neither [section], nor key = value" },
		{ "[vm]\n= 3\n" RUN, "x.ini:2: no key before the =" },
		{ "; c\n" RUN, "x.ini:1: a comment begins with #" },
		{ "[run]\nmemory = 1GiB\ncommand = true\n",
		  "run.memory: no key of [run]; it belongs to [vm]" },
		{ "[run]\n", "run.command is missing" },
		{ "", "run.command is missing" },
		{ "[run]\ncommand = true\nwarmup = 50\n", "\"50\" has no unit" },
		{ "[run]\ncommand = true\nwarmup = 50msec\n", "did you mean ms?" },
		{ "[run]\ncommand = true\nwarmup = 1.ms\n", "no digit after the point" },
		{ "[run]\ncommand = true\nduration = 0s\n", "is not between" },
		{ "[run]\ncommand = true\nrepeat = 0\n", "whole number from 1" },
		{ "[run]\ncommand = true\nrepeat = -1\n", "whole number from 1" },
		{ "[run]\ncommand = true\nseed = x\n", "not a whole number" },
		{ "[run]\ncommand = true\ntimeout = 1s\nboot_timeout = 2s\n",
		  "x.ini:4: run.boot_timeout is longer" },
		{ "[vm]\ntopology = 0x1x1\n" RUN, "x.ini:2: vm.topology:" },
		{ "[vm]\ntopology = 2x10\n" RUN, "x.ini:2: vm.topology:" },
		/* Without a name for the engine it may be soft, which has the x2APIC that this takes. */
		{ "[vm]\nengine = kvm\ntopology = 1x300x1\n" RUN, "x.ini:3: vm.topology:" },
		{ "[vm]\napic = xapic\ntopology = 1x300x1\n" RUN, "x.ini:3: vm.topology:" },
		{ "[vm]\nmemory = 32MiB\n" RUN, "x.ini:2: vm.memory:" },
		{ "[vm]\ndistance = 10,21,21\n" RUN, "x.ini:2: vm.distance:" },
		{ "[vm]\nnodes = 3\n" RUN, "x.ini:2: vm.nodes:" },
		{ "[vm]\nnode_memory = 1GiB\n" RUN,
		  "x.ini:2: vm.node_memory: 1 sizes for 2 nodes" },
		{ "[vm]\npin = 0,1\n" RUN, "x.ini:2: vm.pin: 2 host CPUs for 40 vCPUs" },
		{ "[vm]\npin = x\n" RUN, "neither none, auto nor a list" },
		{ "[vm]\ncost_model = simple.ini\n" RUN, "is ./simple.ini" },
		{ "[vm]\nengine = soft\ncost_model = none\n" RUN, ".ini:3: vm.cost_model = none" },
		{ "[vm]\nengine = kvm\ncost_model = simple\n" RUN, ".ini:3: vm.cost_model: a cost model is for the soft engine" },
		{ "[vm]\nengine = soft\napic = kernel\n" RUN, ".ini:3: vm.apic = kernel" },
		{ "[vm]\nengine = nested\napic = x2apic\n" RUN, ".ini:3: vm.apic = x2apic" },
		{ "[vm]\nengine = soft\ncpu_model = host\n" RUN, ".ini:3: vm.cpu_model = host" },
		{ "[vm]\nengine = soft\ntopology = 1x2x1\npin = 0,1\n" RUN, ".ini:4: vm.pin" },
		{ RUN "[vary]\nvm.engine = kvm, soft\n", "vm.engine cannot be varied" },
		{ RUN "host_timeout = 5\n", "has no unit" },
		{ RUN "headline = faults per second\n", "no figure's name, such as faults_per_s" },
		{ "[guest]\nmodules = x\n" RUN, "x.ini:2: guest.modules: not in this version" },
		{ "[guest]\ndisk_mode = rw\n" RUN, "x.ini:2: guest.disk_mode: \"rw\" is none of cow, ro" },
		{ "[inject]\nblk.all = fixed:5us\n" RUN, "x.ini:2: inject.blk.all: the guest has no disk" },
		{ "[guest]\ndisk = x\n[inject]\nblk.depth = many\n" RUN, "x.ini:4: inject.blk.depth: \"many\"" },
		{ "[guest]\nknob.X = 1\n" RUN, "small letters" },
		{ "[guest]\nknob.x = 1 2\n" RUN, "one word" },
		{ "[guest]\npv = tlb\n" RUN, "is none of" },
		{ "[guest]\nadd = a:b\n" RUN, "must begin with /" },
		{ "[guest]\nadd = a,,b\n" RUN, "empty path" },
		{ "[inject]\nipi.remot = fixed:5us\n" RUN, "x.ini:2: inject.ipi.remot:" },
		{ "[inject]\nipi.remot = none\n" RUN, "x.ini:2: inject.ipi.remot:" },
		{ "[inject]\nipi.remote = fixed:5\n" RUN, "x.ini:2: inject.ipi.remote:" },
		{ "[vary]\nmemory = 1GiB\n" RUN, "x.ini:2: vary: \"memory\" is not section.key" },
		{ "[vary]\nvm.memry = 1GiB\n" RUN,
		  "x.ini:2: vary: vm.memry: unknown key; did you mean memory?" },
		{ "[vary]\nvm.memory = 1GiB,\n" RUN, "value 2 is empty" },
		{ "[vary]\nvm.memory = 1GiB,1GiB\n" RUN, "stands twice" },
		{ "[vary]\nvm.memory = 1GiB, 2MiB\n" RUN, "x.ini:2: vm.memory:" },
		{ "[vary]\nvm.memory = 1GiB, 2GB\n" RUN, "x.ini:2: vm.memory: \"2GB\"" },
		{ "[vary]\nvary.vm.memory = 1GiB\n" RUN, "cannot vary itself" },
		{ "[vary]\nvm.memory + vm.nodes = 1GiB + 2 + 3\n" RUN, "3 parts for 2 keys" },
		{ "[vary]\nvm.memory + vm.nodes = 1GiB + 2\nvm.nodes = 1, 2\n" RUN,
		  "varied twice" },
		{ "[vm]\nmem\x01ory = 1\n" RUN, "x.ini:2: control character 0x01" },
		{ "[vm]\n\xff\xfe = 1\n" RUN, "x.ini:2: not UTF-8" },
	};

	for (size_t i = 0; i < G_N_ELEMENTS(bad); i++)
		assert_refused(f, bad[i].text, bad[i].says);
}

/* Everything wrong is said at once, and once only. */
static void test_all_reported(struct fixture *f, const void *unused)
{
	load(f, "[vm]\nmemory = x\nnodes = y\n[run]\ncommand = true\nrepeat = z\n"
		"[vary]\nrun.seed = 1, 2, 3, 4\n");
	g_assert_null(f->s);
	assert_says(f, ":2:");
	assert_says(f, ":3:");
	assert_says(f, ":6:");

	g_auto(GStrv) lines = g_strsplit(f->said, "\n", -1);

	g_assert_cmpuint(g_strv_length(lines), ==,
			 4); /* three, and what is behind the last newline */
}

static void test_cells(struct fixture *f, const void *unused)
{
	load(f, RUN
	     "[vary]\nguest.knob.fault_path = mmap_lock, speculative\nvm.topology = 1x1x1, 2x2x2, 2x10x2\n"
	     "vm.distance = 10,21 | 10,31\n"
	     "inject.ipi.remote + inject.timer.all = none, fixed:5us + fixed:7us\n");
	g_assert_nonnull(f->s);
	g_assert_cmpuint(scenario_cells(f->s), ==, 2 * 3 * 2 * 2);

	g_auto(GStrv) first = scenario_cell(f->s, 0);
	g_auto(GStrv) last = scenario_cell(f->s, 23);
	const char *want_first[] = { "guest.knob.fault_path=mmap_lock", "vm.topology=1x1x1",
				     "vm.distance=10,21", "inject.ipi.remote=none",
				     "inject.timer.all=none", NULL };
	const char *want_last[] = { "guest.knob.fault_path=speculative", "vm.topology=2x10x2",
				    "vm.distance=10,31", "inject.ipi.remote=fixed:5us",
				    "inject.timer.all=fixed:7us", NULL };

	g_assert_cmpstrv(first, want_first);
	g_assert_cmpstrv(last, want_last);

	/* A cell, given back as overrides, pins each axis and leaves one cell with those values. */
	g_autofree char *text = NULL;
	struct topology_params params;

	g_assert_true(g_file_get_contents(f->path, &text, NULL, NULL));
	load_bytes(f, text, strlen(text), (const char *const *)last);
	g_assert_nonnull(f->s);
	g_assert_cmpuint(scenario_cells(f->s), ==, 1);
	g_assert_cmpuint(f->s->cores, ==, 10);
	g_assert_cmpuint(f->s->inject_key->len, ==, 2);
	scenario_topology(f->s, &params);
	g_assert_cmpuint(params.distance[1], ==, 31);
	load_bytes(f, text, strlen(text), (const char *const *)first);
	g_assert_nonnull(f->s);
	g_assert_cmpuint(f->s->inject_key->len, ==, 0);
}

/* A key that only [vary] gives a value is not missing. */
static void test_varied_command(struct fixture *f, const void *unused)
{
	load(f, "[vary]\nrun.command = true, false\n");
	g_assert_nonnull(f->s);
	g_assert_cmpuint(scenario_cells(f->s), ==, 2);
}

static void test_too_many_cells(struct fixture *f, const void *unused)
{
	GString *text = g_string_new(RUN "[vary]\n");

	for (int axis = 0; axis < 10; axis++) {
		g_string_append_printf(text, "guest.knob.k%d = 0", axis);
		for (int i = 1; i < 100; i++)
			g_string_append_printf(text, ", %d", i);
		g_string_append(text, "\n");
	}
	assert_refused(f, text->str, "more than 1000 cells");
	g_string_free(text, TRUE);
}

static void test_set(struct fixture *f, const void *unused)
{
	const char *ok[] = { "vm.topology=1x2x1", "run.command=echo a=b", "guest.append=", NULL };
	const char *bad[] = { "nonsense",      "vm.memory=3", "vn.memory=1GiB",
			      "vm.memoy=1GiB", "x.=1",	      NULL };
	const char *text = "[vm]\ntopology = 0x0x0\n" RUN "[vary]\nvm.memory = 1GiB, 2GiB\n";

	load_bytes(f, text, strlen(text), ok);
	g_assert_nonnull(f->s);
	g_assert_cmpuint(f->s->cores, ==, 2);
	g_assert_cmpstr(f->s->command, ==, "echo a=b");
	g_assert_cmpstr(scenario_origin(f->s, "vm", "topology"), ==, "--set");
	g_assert_cmpuint(scenario_cells(f->s), ==, 2);

	load_bytes(f, RUN, strlen(RUN), bad);
	g_assert_null(f->s);
	assert_says(f, "--set: \"nonsense\" is not section.key=value");
	assert_says(f, "--set: vm.memory: \"3\" has no unit");
	assert_says(f, "--set: vn.memory: unknown section [vn]; did you mean [vm]?");
	assert_says(f, "--set: vm.memoy: unknown key; did you mean memory?");
	assert_says(f, "--set: \"x.=1\" is not section.key=value");
}

static void test_effective(struct fixture *f, const void *unused)
{
	load(f,
	     "[inject]\ntimer.all = fixed:1us\nipi.all = none\n[run]\ncommand = true\n[guest]\nknob.b = 1\nknob.a = 2\n");
	g_assert_nonnull(f->s);

	g_autoptr(GPtrArray) e = scenario_effective(f->s);
	const char *tail[] = { "guest.knob.a", "2", "guest.knob.b", "1", "inject.ipi.all", "none",
			       "inject.timer.all", "fixed:1us" };

	g_assert_cmpstr(e->pdata[0], ==, "vm.engine");
	g_assert_cmpstr(e->pdata[1], ==, "auto");
	g_assert_cmpuint(e->len, ==, 27 * 2 + G_N_ELEMENTS(tail));
	for (u32 i = 0; i < G_N_ELEMENTS(tail); i++)
		g_assert_cmpstr(e->pdata[27 * 2 + i], ==, tail[i]);
	for (u32 i = 0; i < e->len; i++)
		g_assert_nonnull(e->pdata[i]);
}

static void test_not_text(struct fixture *f, const void *unused)
{
	static const char nul[] = "[run]\ncommand = tr\0ue\n";
	g_autofree char *huge = g_strnfill((2 << 20), '#');
	g_autofree char *noise = g_malloc(100000);
	GRand *rand = g_rand_new_with_seed(7);

	load_bytes(f, nul, sizeof(nul) - 1, NULL);
	g_assert_null(f->s);
	assert_says(f, "x.ini:2: a NUL byte");

	assert_refused(f, huge, "this is no scenario");
	for (int i = 0; i < 100000; i++)
		noise[i] = g_rand_int_range(rand, 0, 256);
	g_rand_free(rand);
	load_bytes(f, noise, 100000, NULL);
	g_assert_null(f->s);
	g_assert_cmpuint(strlen(f->said), <, 10000);

	/* A long line without sense must not be printed in full. */
	g_autofree char *name = g_strnfill(50000, 'k');
	g_autofree char *text = g_strdup_printf("[vm]\n%s = 1\n[%s]\n", name, name);

	load(f, text);
	g_assert_null(f->s);
	g_assert_cmpuint(strlen(f->said), <, 2000);

	g_remove(f->path);
	g_assert_null(scenario_load(f->path, NULL, 0));
	g_assert_null(scenario_load(f->dir, NULL, 0));
}

/* Endings of other systems and a missing last newline are no mistakes. */
static void test_line_ends(struct fixture *f, const void *unused)
{
	load(f, "\xef\xbb\xbf# q\r\n[vm]\r\nmemory = 2GiB\r\n[run]\r\n  command\t=  echo  a  ");
	g_assert_nonnull(f->s);
	g_assert_cmpuint(f->s->memory, ==, 2 * GIB);
	g_assert_cmpstr(f->s->command, ==, "echo  a");
}

static void test_units(void)
{
	static const struct {
		const char *text;
		u64 ns;
	} good[] = {
		{ "0ns", 0 },
		{ "1ns", 1 },
		{ "3us", 3000 },
		{ "1.5us", 1500 },
		{ "50ms", 50000000 },
		{ "0.000000001s", 1 },
		{ "2s", 2 * NSEC_PER_SEC },
	};
	static const char *const bad[] = { "",
					   "s",
					   "1",
					   "-1s",
					   "1S",
					   "1 s",
					   "1e3s",
					   "0x1s",
					   "1.2.3s",
					   "99999999999999999999s",
					   "9999999999999999s",
					   "nan",
					   "infs" };
	u64 v;

	for (size_t i = 0; i < G_N_ELEMENTS(good); i++) {
		char *err = NULL;

		g_assert_cmpint(scenario_parse_time(good[i].text, &v, &err), ==, 0);
		g_assert_cmpuint(v, ==, good[i].ns);
	}
	for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
		g_autofree char *err = NULL;

		g_assert_cmpint(scenario_parse_time(bad[i], &v, &err), ==, -EINVAL);
		g_assert_nonnull(err);
	}
}

/* Lists that are empty, or far too long to be compared value by value. */
static void test_vary_lists(struct fixture *f, const void *unused)
{
	GString *many = g_string_new(RUN "[vary]\nrun.seed = 0");

	for (u32 i = 1; i < 100000; i++)
		g_string_append_printf(many, ",%u", i);
	assert_refused(f, RUN "[vary]\nrun.seed =\n", "x.ini:4: vary: run.seed: no values");
	assert_refused(f, RUN "[vary]\nrun.seed = ,\n", "is empty");
	assert_refused(f, many->str, "x.ini:4: vary: more than 1000 cells");
	g_string_free(many, TRUE);
	/* Commas inside a distribution cut it in two. */
	assert_refused(f, RUN "[vary]\ninject.ipi.remote = none, lognormal:2us,0.5\n",
		       "separated by |");
	assert_says(f, "write fixed:0.5us");
	load(f, RUN "[vary]\ninject.ipi.remote = none | lognormal:2us,0.5\n");
	g_assert_nonnull(f->s);
}

static void test_knob_limits(struct fixture *f, const void *unused)
{
	GString *text = g_string_new(RUN "[guest]\n");

	for (u32 i = 0; i < 32; i++)
		g_string_append_printf(text, "knob.k%02u = 1\n", i);
	load(f, text->str);
	g_assert_nonnull(f->s);
	g_string_append(text, "knob.k32 = 1\n");
	assert_refused(f, text->str, "x.ini:36: guest.knob.k32: more than 32 knobs");
	g_string_free(text, TRUE);
	load(f, RUN "[guest]\nknob.abcdefghijklmnopqrstuvwxyz01234 = abcdefghijklmnopqrstuvwxyz01234\n");
	g_assert_nonnull(f->s);
	assert_refused(f, RUN "[guest]\nknob.abcdefghijklmnopqrstuvwxyz012345 = 1\n", "31 at most");
	assert_refused(f, RUN "[guest]\nknob.a = abcdefghijklmnopqrstuvwxyz012345\n", "1 to 31 bytes");
	assert_refused(f, RUN "[vm]\ntopology = 1x2x1\npin = 0,0x1\n", "list of host CPUs");
}

/* Options of a command line instead of a file, and a path that nothing could be read from. */
static void test_no_file(struct fixture *f, const void *unused)
{
	const char *const set[] = { "vm.topology=1x2x1", "run.command=true" };
	const char *const origin[] = { "an argument", "nowhere" };
	struct scenario *s = scenario_of("a command", set, origin, 2);

	g_assert_nonnull(s);
	g_assert_cmpuint(s->cores, ==, 2);
	g_assert_cmpstr(scenario_origin(s, "vm", "topology"), ==, "an argument");
	scenario_free(s);
	/* A FIFO without a writer must not hold anyone up. */
	g_assert_cmpint(mkfifo(f->path, 0600), ==, 0);
	g_assert_null(scenario_load(f->path, NULL, 0));
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
#define ADD(name)	g_test_add("/scenario/" #name, struct fixture, NULL, fixture_init, \
				   test_##name, fixture_clear)
	ADD(defaults);
	ADD(values);
	ADD(soft);
	ADD(mistakes);
	ADD(all_reported);
	ADD(cells);
	ADD(varied_command);
	ADD(too_many_cells);
	ADD(set);
	ADD(effective);
	ADD(not_text);
	ADD(line_ends);
	ADD(vary_lists);
	ADD(knob_limits);
	ADD(no_file);
#undef ADD
	g_test_add_func("/scenario/units", test_units);
	return g_test_run();
}
