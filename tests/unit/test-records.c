// SPDX-License-Identifier: GPL-2.0-only
/* Records into cells, whatever a crash left of them; results written and read back; the archive writer. */
#include <errno.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cpio.h"
#include "records.h"
#include "result-json.h"
#include "summary.h"

static void cell_clear(void *p)
{
	struct cell *cell = p;

	g_clear_pointer(&cell->vm, json_object_unref);
	g_clear_pointer(&cell->end, json_object_unref);
	json_array_unref(cell->repeats);
	g_free(cell->why);
	g_free(cell->name);
	g_free(cell);
}

static struct job *two_cells(void)
{
	static const char *const names[] = { "a=1", "a=2" };
	struct job *job = g_new0(struct job, 1);

	job->cells = g_ptr_array_new_with_free_func(cell_clear);
	for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
		struct cell *cell = g_new0(struct cell, 1);

		cell->name = g_strdup(names[i]);
		cell->repeats = json_array_new();
		g_ptr_array_add(job->cells, cell);
	}
	return job;
}

static void free_cells(struct job *job)
{
	g_ptr_array_unref(job->cells);
	g_free(job);
}

static void test_cells(void)
{
	static const char text[] =
		"{\"record\":\"vm\",\"cell\":\"a=1\",\"engine\":\"kvm\"}\n"
		"{\"record\":\"repeat\",\"cell\":\"a=1\",\"repeat\":0}\n"
		"{\"record\":\"repeat\",\"cell\":\"a=1\",\"repeat\":1}\n"
		"\n"
		"{\"record\":\"end\",\"cell\":\"a=1\",\"status\":5,\"why\":\"it hung\"}\n"
		"{\"record\":\"vm\",\"cell\":\"a=2\",\"engine\":\"x\"}\n";
	struct job *job = two_cells();
	struct cell *a = job->cells->pdata[0], *b = job->cells->pdata[1];
	char *why;

	a->status = STATUS_GUEST_DIED;
	g_assert_cmpuint(records_parse(job, text, strlen(text), &why), ==, 0);
	g_assert_null(why);
	g_assert_cmpuint(json_array_get_length(a->repeats), ==, 2);
	g_assert_cmpstr(summary_string(a->vm, "engine", ""), ==, "kvm");
	g_assert_cmpstr(a->why, ==, "it hung");
	g_assert_false(json_object_has_member(a->vm, "record"));
	g_assert_cmpstr(summary_string(b->vm, "engine", ""), ==, "x");
	g_assert_null(b->end);
	free_cells(job);
}

/* Cut at every byte: whole lines count, the cut one does not, and nothing else happens. */
static void test_cut(void)
{
	static const char line[] =
		"{\"record\":\"repeat\",\"cell\":\"a=2\",\"repeat\":0,\"x\":[1,2,{\"y\":\"\\u00e9\"}]}\n";
	g_autofree char *two = g_strconcat(line, line, NULL);
	size_t len = strlen(line);

	for (size_t cut = 0; cut <= 2 * len; cut++) {
		struct job *job = two_cells();
		struct cell *b = job->cells->pdata[1];
		char *why;
		u32 bad = records_parse(job, two, cut, &why);

		g_assert_cmpuint(json_array_get_length(b->repeats), ==, cut / len);
		g_assert_cmpuint(bad, ==, cut % len ? 1 : 0);
		g_assert_cmpint(why != NULL, ==, bad);
		g_free(why);
		free_cells(job);
	}
}

static void test_noise(void)
{
	static const char *const lines[] = {
		"nonsense",
		"[]",
		"3",
		"null",
		"{}",
		"{\"record\":\"vm\"}",
		"{\"record\":3,\"cell\":4}",
		"{\"record\":\"vm\",\"cell\":\"nobody\"}",
		"{\"record\":\"other\",\"cell\":\"a=1\"}",
		"{\"record\":",
		"\xff\xfe",
	};

	for (size_t i = 0; i < G_N_ELEMENTS(lines); i++) {
		g_autofree char *text = g_strconcat(lines[i], "\n", NULL);
		struct job *job = two_cells();
		struct cell *a = job->cells->pdata[0];
		char *why;

		g_assert_cmpuint(records_parse(job, text, strlen(text), &why), ==, 1);
		g_assert_nonnull(why);
		g_assert_null(a->vm);
		g_free(why);
		free_cells(job);
	}
}

/* The VMM left with 0, but is all there that it should have measured? */
static void test_missing(void)
{
	static const struct {
		u32 asked, repeats;
		bool end;
		int before, status;
		const char *why;
	} cases[] = {
		{ 2, 2, true, STATUS_DONE, STATUS_DONE, NULL },
		{ 2, 1, true, STATUS_DONE, STATUS_INTERNAL, "1 of 2 repeats arrived" },
		{ 2, 2, false, STATUS_DONE, STATUS_INTERNAL, "the VMM's last record did not arrive" },
		{ 2, 0, false, STATUS_GUEST_DIED, STATUS_GUEST_DIED, NULL },
	};

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct scenario s = { .repeat = cases[i].asked };
		struct job *job = two_cells();
		struct cell *cell = job->cells->pdata[0];

		cell->scenario = &s;
		cell->tried = true;
		cell->status = cases[i].before;
		for (u32 k = 0; k < cases[i].repeats; k++)
			json_array_add_object_element(cell->repeats, json_object_new());
		if (cases[i].end)
			cell->end = json_object_new();
		job_cell_check(cell);
		g_assert_cmpint(cell->status, ==, cases[i].status);
		g_assert_cmpstr(cell->why, ==, cases[i].why);
		free_cells(job);
	}
}

/* Which line was lost, and whose neighbour it is. */
static void test_which_line(void)
{
	static const char text[] = "{\"record\":\"vm\",\"cell\":\"a=2\"}\nx\ny\n";
	struct job *job = two_cells();
	g_autofree char *why = NULL;

	g_assert_cmpuint(records_parse(job, text, strlen(text), &why), ==, 2);
	g_assert_true(g_str_has_prefix(why, "line 2, behind one of cell a=2: "));
	free_cells(job);
}

/* What is set twice reaches the VMM once, with the later value. */
static void test_argv(void)
{
	char *of_cell[] = { "vm.topology=1x1x1", NULL };
	struct cell cell = { .name = "x", .set = of_cell };
	struct job job = { .path = "s.ini", .set = g_ptr_array_new() };
	g_auto(GStrv) argv = NULL;
	g_autofree char *all = NULL;

	g_ptr_array_add(job.set, "run.seed=1");
	g_ptr_array_add(job.set, "run.repeat=3");
	g_ptr_array_add(job.set, "run.seed=2");
	argv = job_argv(&job, &cell, -1, "vmm", "k", "i", NULL, "r");
	all = g_strjoinv(" ", argv);
	g_assert_true(g_str_has_prefix(
		all, "vmm run s.ini --set run.repeat=3 --set run.seed=2 --set vm.topology=1x1x1 --cell x "));
	g_ptr_array_unref(job.set);
}

static void test_worse(void)
{
	g_assert_cmpint(front_worse(STATUS_DONE, STATUS_COMMAND_FAILED), ==, STATUS_COMMAND_FAILED);
	g_assert_cmpint(front_worse(STATUS_GUEST_DIED, STATUS_COMMAND_FAILED), ==,
			STATUS_GUEST_DIED);
	g_assert_cmpint(front_worse(STATUS_GUEST_DIED, STATUS_INTERNAL), ==, STATUS_INTERNAL);
	g_assert_cmpint(front_worse(STATUS_DONE, STATUS_DONE), ==, STATUS_DONE);
	g_assert_cmpint(front_worse(STATUS_INTERRUPTED, STATUS_DONE), ==, STATUS_INTERRUPTED);
	g_assert_cmpint(front_worse(77, STATUS_DONE), ==, 77);
}

static void test_numbers(void)
{
	static const struct {
		double value;
		int decimals;
		const char *text;
	} cases[] = {
		{ 0, 0, "0" },
		{ 999, 0, "999" },
		{ 1000, 0, "1,000" },
		{ -1234567.5, 1, "-1,234,567.5" },
		{ 123456, 0, "123,456" },
	};

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autofree char *text = front_grouped(cases[i].value, cases[i].decimals);

		g_assert_cmpstr(text, ==, cases[i].text);
	}

	g_autofree char *us = front_duration(5e3), *ms = front_duration(12.3e6),
			*ns = front_duration(7);

	g_assert_cmpstr(us, ==, "5 us");
	g_assert_cmpstr(ms, ==, "12.3 ms");
	g_assert_cmpstr(ns, ==, "7 ns");
}

#define RESULT                                                                                         \
	"{\"schema\":\"faultbed-result/1\",\"scenario\":{\"z\":\"1\",\"a\":\"\\\"q\\\\\"},\"cells\":"  \
	"[{\"name\":\"only\",\"summary\":{\"counters\":{},\"rates\":{},\"reports\":{},\"time\":{}}}]," \
	"\"flat\":[1,2.5,null,\"x\"],\"deep\":[[1],{}]}"

static void test_result_file(void)
{
	g_autofree char *dir = g_dir_make_tmp("faultbed-test-XXXXXX", NULL);
	g_autofree char *sub = g_build_filename(dir, "a", NULL),
			*path = g_build_filename(sub, "r.json", NULL);
	g_autoptr(JsonNode) node = json_from_string(RESULT, NULL), back = NULL;
	g_autofree char *text = result_to_text(node), *again = NULL;

	g_assert_cmpint(result_write(node, path), ==, 0);
	back = result_read(path);
	g_assert_nonnull(back);
	again = result_to_text(back);
	g_assert_cmpstr(text, ==, again);
	/* Order is that of writing, not of the alphabet. */
	g_assert_nonnull(strstr(text, "\"z\": \"1\",\n    \"a\": \"\\\"q\\\\\""));
	g_assert_nonnull(strstr(text, "\"flat\": [1,2.5,null,\"x\"]"));

	/* Nothing but the result is left in the folder. */
	GDir *d = g_dir_open(sub, 0, NULL);

	g_assert_cmpstr(g_dir_read_name(d), ==, "r.json");
	g_assert_null(g_dir_read_name(d));
	g_dir_close(d);
	g_remove(path);
	g_rmdir(sub);
	g_rmdir(dir);
}

/* What is no regular file is written as it is, and what cannot be written is known before. */
static void test_targets(void)
{
	g_autofree char *dir = g_dir_make_tmp("faultbed-test-XXXXXX", NULL);
	g_autofree char *file = g_build_filename(dir, "r.json", NULL),
			*link = g_build_filename(dir, "link.json", NULL),
			*fresh = g_build_filename(dir, "new", "r.json", NULL),
			*below = g_build_filename(file, "r.json", NULL);
	g_autoptr(JsonNode) node = json_from_string(RESULT, NULL), back = NULL;
	g_autofree char *to = NULL, *folder = g_path_get_dirname(fresh);

	g_assert_cmpint(result_target(""), ==, -EINVAL);
	g_assert_cmpint(result_target(dir), ==, -EISDIR);
	g_assert_cmpint(result_target(file), ==, 0);
	g_assert_false(g_file_test(file, G_FILE_TEST_EXISTS));
	g_assert_cmpint(result_target(fresh), ==, 0);
	g_assert_true(g_file_test(folder, G_FILE_TEST_IS_DIR));

	g_assert_cmpint(symlink("r.json", link), ==, 0);
	g_assert_cmpint(result_target(link), ==, 0);
	g_assert_cmpint(result_write(node, link), ==, 0);
	to = g_file_read_link(link, NULL);
	g_assert_cmpstr(to, ==, "r.json");
	back = result_read(file);
	g_assert_nonnull(back);
	g_assert_cmpint(result_target(below), <, 0);

	g_assert_cmpint(result_target("/dev/full"), ==, 0);
	g_assert_cmpint(result_write(node, "/dev/full"), ==, -ENOSPC);
	g_assert_cmpint(result_write(node, "/dev/null"), ==, 0);
	g_assert_false(g_file_test("/dev/null", G_FILE_TEST_IS_REGULAR));
	g_assert_null(result_read("/dev/null"));

	g_remove(link);
	g_remove(file);
	g_rmdir(folder);
	/* No temporary file is left. */
	g_assert_cmpint(g_rmdir(dir), ==, 0);
}

#define CELL(summary)	"{\"schema\":\"faultbed-result/1\",\"scenario\":{},\"cells\":[{\"name\":\"x\"," \
			"\"summary\":{\"time\":{}," summary "}}]}"

/* Brackets count outside of strings only. */
static void test_deep(void)
{
	g_autofree char *open = g_strnfill(100000, '['), *quoted = g_strnfill(200, '['),
			*text = g_strdup_printf("{\"\\\"%s\":1}", quoted);
	g_autofree char *path = g_build_filename(g_get_tmp_dir(), "faultbed-test-deep.json", NULL);

	g_assert_true(result_too_deep(open, 100000));
	g_assert_true(result_too_deep(open, 65));
	g_assert_false(result_too_deep(open, 64));
	g_assert_false(result_too_deep(text, strlen(text)));
	g_assert_true(g_file_set_contents(path, open, -1, NULL));
	g_assert_null(result_read(path));
	g_remove(path);
}

static void test_bad_result(void)
{
	static const char *const texts[] = {
		"",
		"x",
		"[]",
		"{}",
		"{\"schema\":\"faultbed-result/2\"}",
		"{\"schema\":\"faultbed-result/1\"}",
		"{\"schema\":\"faultbed-result/1\",\"scenario\":{},\"cells\":[]}",
		"{\"schema\":\"faultbed-result/1\",\"scenario\":{},\"cells\":[3]}",
		"{\"schema\":\"faultbed-result/1\",\"scenario\":{},\"cells\":[{\"name\":\"x\",\"summary\":{}}]}",
		CELL("\"counters\":{\"a\":3},\"rates\":{},\"reports\":{}"),
		CELL("\"counters\":{},\"rates\":{\"a\":null},\"reports\":{}"),
		CELL("\"counters\":{},\"rates\":{},\"reports\":{\"a\":[]}"),
		CELL("\"counters\":{},\"rates\":{\"a\":{\"trust\":[3]}},\"reports\":{}"),
		CELL("\"counters\":{},\"rates\":{\"a\":{\"trust\":\"x\"}},\"reports\":{}"),
		CELL("\"counters\":{},\"rates\":{},\"reports\":{},\"histograms\":{\"a\":1}"),
		CELL("\"counters\":{},\"rates\":{},\"reports\":{},\"histograms\":{\"a\":{\"buckets\":[{}]}}"),
	};
	g_autofree char *path = g_build_filename(g_get_tmp_dir(), "faultbed-test-bad.json", NULL);

	for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
		g_assert_true(g_file_set_contents(path, texts[i], -1, NULL));
		g_assert_null(result_read(path));
	}
	g_remove(path);
	g_assert_null(result_read(path));
}

/* What cpio(1) of the system makes of it, names, contents and kinds. */
static void test_cpio(void)
{
	FILE *f = tmpfile();
	struct cpio c;
	char head[111] = "";
	g_autofree char *all = NULL;
	long len;

	g_assert_nonnull(f);
	cpio_begin(&c, f);
	cpio_add(&c, "/job/deep/file", "hello", 5, 0644);
	cpio_add(&c, "/job/other", "", 0, 0755);
	g_assert_cmpint(cpio_end(&c), ==, 0);
	len = ftell(f);
	g_assert_cmpint(len % 4, ==, 0);
	all = g_malloc0(len + 1);
	rewind(f);
	g_assert_cmpuint(fread(all, 1, len, f), ==, len);
	fclose(f);

	/* Walk it as the kernel does. */
	static const struct {
		const char *name;
		unsigned long mode, size;
	} want[] = {
		{ "job", 040755, 0 }, { "job/deep", 040755, 0 }, { "job/deep/file", 0100644, 5 },
		{ "job/other", 0100755, 0 }, { "TRAILER!!!", 0, 0 },
	};
	long at = 0;

	for (size_t i = 0; i < G_N_ELEMENTS(want); i++) {
		unsigned long field[13];

		memcpy(head, all + at, 110);
		g_assert_true(g_str_has_prefix(head, "070701"));
		for (int k = 0; k < 13; k++) {
			char hex[9] = "";

			memcpy(hex, head + 6 + 8 * k, 8);
			field[k] = strtoul(hex, NULL, 16);
		}
		g_assert_cmpuint(field[1], ==, want[i].mode);
		g_assert_cmpuint(field[6], ==, want[i].size);
		g_assert_cmpstr(all + at + 110, ==, want[i].name);
		at = (at + 110 + (long)field[11] + 3) & ~3l;
		if (want[i].size)
			g_assert_cmpmem(all + at, want[i].size, "hello", 5);
		at = (at + (long)field[6] + 3) & ~3l;
	}
	g_assert_cmpint(at, ==, len);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/records/cells", test_cells);
	g_test_add_func("/records/cut", test_cut);
	g_test_add_func("/records/noise", test_noise);
	g_test_add_func("/records/missing", test_missing);
	g_test_add_func("/records/which-line", test_which_line);
	g_test_add_func("/records/argv", test_argv);
	g_test_add_func("/records/targets", test_targets);
	g_test_add_func("/records/deep", test_deep);
	g_test_add_func("/records/worse", test_worse);
	g_test_add_func("/records/numbers", test_numbers);
	g_test_add_func("/records/result-file", test_result_file);
	g_test_add_func("/records/bad-result", test_bad_result);
	g_test_add_func("/records/cpio", test_cpio);
	return g_test_run();
}
