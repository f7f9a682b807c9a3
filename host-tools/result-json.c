// SPDX-License-Identifier: GPL-2.0-only
#include "result-json.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/log.h"
#include "base/version.h"
#include "json-text.h"
#include "summary.h"

/* Build ------------------------------------------------------------------ */

static JsonObject *effective_json(const struct scenario *s)
{
	g_autoptr(GPtrArray) pairs = scenario_effective(s);
	JsonObject *o = json_object_new();

	for (u32 i = 0; i < pairs->len; i += 2)
		json_object_set_string_member(o, pairs->pdata[i], pairs->pdata[i + 1]);
	return o;
}

static JsonObject *vary_json(const struct scenario *s)
{
	JsonObject *o = json_object_new();

	for (u32 i = 0; i < s->vary_key->len; i++) {
		GPtrArray *values = s->vary_values->pdata[i];
		JsonArray *a = json_array_new();

		for (u32 v = 0; v < values->len; v++)
			json_array_add_string_element(a, values->pdata[v]);
		json_object_set_array_member(o, s->vary_key->pdata[i], a);
	}
	return o;
}

static JsonObject *set_json(char **set)
{
	JsonObject *o = json_object_new();

	for (char **p = set; *p; p++) {
		const char *eq = strchr(*p, '=');
		g_autofree char *key = g_strndup(*p, eq - *p);

		json_object_set_string_member(o, key, eq + 1);
	}
	return o;
}

static JsonObject *cell_json(const struct job *job, const struct cell *cell)
{
	int not_run = job->signals.count || job->look ? STATUS_INTERRUPTED : STATUS_INTERNAL;
	JsonObject *o = json_object_new();

	json_object_set_string_member(o, "name", cell->name);
	json_object_set_object_member(o, "set", set_json(cell->set));
	json_object_set_boolean_member(o, "run", cell->tried);
	json_object_set_int_member(o, "status", cell->tried ? cell->status : not_run);
	json_object_set_string_member(o, "why",
				      !cell->tried ? "not run"
				      : cell->why  ? cell->why
						   : "");
	if (cell->vm)
		json_object_set_object_member(o, "vm", json_object_ref(cell->vm));
	else
		json_object_set_null_member(o, "vm");
	json_object_set_array_member(o, "repeats", json_array_ref(cell->repeats));
	if (cell->end)
		json_object_set_object_member(o, "end", json_object_ref(cell->end));
	else
		json_object_set_null_member(o, "end");
	json_object_set_object_member(o, "summary", summary_build(cell->vm, cell->repeats));
	return o;
}

static JsonObject *host_json(void)
{
	g_autofree char *cpu = front_proc_value("/proc/cpuinfo", "model name");
	g_autofree char *memory = front_proc_value("/proc/meminfo", "MemTotal");
	JsonObject *o = json_object_new();
	struct utsname u;

	json_object_set_string_member(o, "name", g_get_host_name());
	if (!uname(&u)) {
		g_autofree char *kernel =
			g_strdup_printf("%s %s %s", u.sysname, u.release, u.version);

		json_object_set_string_member(o, "kernel", kernel);
	}
	json_object_set_string_member(o, "cpu", cpu);
	json_object_set_int_member(o, "cpus", sysconf(_SC_NPROCESSORS_ONLN));
	json_object_set_string_member(o, "memory", memory);
	return o;
}

/* Takes `provenance` out of each repeat; NULL if none has one. */
static JsonArray *repeats_provenance(JsonArray *repeats)
{
	JsonArray *a = json_array_new();
	bool any = false;

	for (u32 i = 0; i < json_array_get_length(repeats); i++) {
		JsonObject *repeat = json_array_get_object_element(repeats, i);
		JsonObject *from = summary_object(repeat, "provenance");

		if (from) {
			any = true;
			json_array_add_object_element(a, json_object_ref(from));
			json_object_remove_member(repeat, "provenance");
		} else {
			json_array_add_null_element(a);
		}
	}
	if (!any)
		g_clear_pointer(&a, json_array_unref);
	return a;
}

/*
 * What each cell's VMM says of its host, its boot there and its repeats. It comes with the records
 * `vm` and `repeat`, and in a result all of that kind is in one place.
 */
static JsonArray *cells_provenance(const struct job *job)
{
	JsonArray *cells = json_array_new();

	for (u32 i = 0; i < job->cells->len; i++) {
		const struct cell *cell = job->cells->pdata[i];
		JsonObject *from = summary_object(cell->vm, "provenance");
		g_autoptr(JsonArray) repeats = repeats_provenance(cell->repeats);

		if (from) {
			if (repeats)
				json_object_set_array_member(from, "repeats", json_array_ref(repeats));
			json_array_add_object_element(cells, json_object_ref(from));
			json_object_remove_member(cell->vm, "provenance");
		} else {
			json_array_add_null_element(cells);
		}
	}
	return cells;
}

static JsonObject *provenance_json(const struct job *job, int argc, char **argv)
{
	g_autofree char *home = front_home(), *vmm = front_vmm();
	const char *const git[] = { "git",	"-C",	   home,     "describe",
				    "--always", "--dirty", "--tags", NULL };
	g_autofree char *commit = front_output_of(git);
	g_autofree char *scenario = g_canonicalize_filename(job->path, NULL);
	g_autofree char *sum = front_file_sum(vmm);
	JsonObject *o = json_object_new();
	JsonArray *args = json_array_new();

	for (int i = 0; i < argc; i++)
		json_array_add_string_element(args, argv[i]);
	json_object_set_string_member(o, "version", FAULTBED_VERSION);
	json_object_set_string_member(o, "commit", commit ? commit : version_commit());
	json_object_set_string_member(o, "begin", job->begin ? job->begin : "");
	json_object_set_string_member(o, "finish", job->finish ? job->finish : "");
	json_object_set_object_member(o, "host", host_json());
	json_object_set_array_member(o, "arguments", args);
	json_object_set_string_member(o, "scenario", scenario);
	json_object_set_string_member(o, "vmm", vmm);
	json_object_set_string_member(o, "vmm_sha256", sum ? sum : "");
	json_object_set_string_member(o, "engine_why", job->engine_why ? job->engine_why : "");
	if (job->qemu_version)
		json_object_set_string_member(o, "qemu", job->qemu_version);
	if (job->appliance_kernel)
		json_object_set_string_member(o, "appliance_kernel", job->appliance_kernel);
	if (job->order)
		json_object_set_array_member(o, "order", json_array_ref(job->order));
	json_object_set_array_member(o, "cells", cells_provenance(job));
	return o;
}

JsonNode *result_build(const struct job *job, int argc, char **argv)
{
	JsonObject *o = json_object_new(), *provenance = provenance_json(job, argc, argv);
	JsonArray *cells = json_array_new();
	bool complete = !job->signals.count;

	for (u32 i = 0; i < job->cells->len; i++) {
		const struct cell *cell = job->cells->pdata[i];

		complete &= cell->tried &&
			    json_array_get_length(cell->repeats) == cell->scenario->repeat;
		json_array_add_object_element(cells, cell_json(job, cell));
	}
	json_object_set_string_member(o, "schema", RESULT_SCHEMA);
	json_object_set_string_member(o, "question", job->scenario->question);
	json_object_set_object_member(o, "scenario", effective_json(job->scenario));
	json_object_set_object_member(o, "vary", vary_json(job->scenario));
	json_object_set_string_member(o, "engine", engine_name(job->engine));
	json_object_set_boolean_member(o, "complete", complete);
	json_object_set_int_member(o, "status", job_status(job));
	json_object_set_array_member(o, "cells", cells);
	json_object_set_object_member(o, "provenance", provenance);

	JsonNode *root = json_node_alloc();

	json_node_init_object(root, o);
	json_object_unref(o);
	return root;
}

/* Text ------------------------------------------------------------------- */

static bool is_flat(JsonArray *a)
{
	for (u32 i = 0; i < json_array_get_length(a); i++) {
		JsonNode *node = json_array_get_element(a, i);

		if (!JSON_NODE_HOLDS_VALUE(node) && !JSON_NODE_HOLDS_NULL(node))
			return false;
	}
	return true;
}

static void put_node(GString *out, JsonNode *node, u32 depth);

static void put_indent(GString *out, u32 depth)
{
	g_string_append_c(out, '\n');
	for (u32 i = 0; i < depth; i++)
		g_string_append(out, "  ");
}

static void put_plain(GString *out, JsonNode *node)
{
	g_autofree char *text = json_text(node);

	g_string_append(out, text);
}

static void put_object(GString *out, JsonObject *o, u32 depth)
{
	JsonObjectIter iter;
	const char *name;
	JsonNode *node;
	bool first = true;

	g_string_append_c(out, '{');
	json_object_iter_init_ordered(&iter, o);
	while (json_object_iter_next_ordered(&iter, &name, &node)) {
		g_autoptr(JsonNode) key = json_node_init_string(json_node_alloc(), name);

		if (!first)
			g_string_append_c(out, ',');
		first = false;
		put_indent(out, depth + 1);
		put_plain(out, key);
		g_string_append(out, ": ");
		put_node(out, node, depth + 1);
	}
	if (!first)
		put_indent(out, depth);
	g_string_append_c(out, '}');
}

static void put_node(GString *out, JsonNode *node, u32 depth)
{
	if (JSON_NODE_HOLDS_OBJECT(node)) {
		put_object(out, json_node_get_object(node), depth);
	} else if (JSON_NODE_HOLDS_ARRAY(node) && !is_flat(json_node_get_array(node))) {
		JsonArray *a = json_node_get_array(node);

		g_string_append_c(out, '[');
		for (u32 i = 0; i < json_array_get_length(a); i++) {
			if (i)
				g_string_append_c(out, ',');
			put_indent(out, depth + 1);
			put_node(out, json_array_get_element(a, i), depth + 1);
		}
		put_indent(out, depth);
		g_string_append_c(out, ']');
	} else {
		put_plain(out, node);
	}
}

char *result_to_text(JsonNode *result)
{
	GString *out = g_string_new(NULL);

	put_node(out, result, 0);
	g_string_append_c(out, '\n');
	return g_string_free(out, FALSE);
}

/* Is there something that must not be replaced by a file: a device, a FIFO, a symbolic link? */
static bool in_place(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && !S_ISREG(st.st_mode);
}

static char *tmp_name(const char *path)
{
	return g_strdup_printf("%s.%d.tmp", path, getpid());
}

static int make_folder(const char *path)
{
	g_autofree char *dir = g_path_get_dirname(path);
	bool there = g_file_test(dir, G_FILE_TEST_IS_DIR);

	if (g_mkdir_with_parents(dir, 0777)) {
		int err = -errno;

		fb_err("%s: %s", dir, g_strerror(-err));
		return err;
	}
	if (!there)
		fb_info("made the folder %s", dir);
	return 0;
}

int result_target(const char *path)
{
	g_autofree char *tmp = tmp_name(path);
	struct stat st;
	int fd, err;

	if (!*path) {
		fb_err("-o: no file name");
		return -EINVAL;
	}
	if (g_str_has_suffix(path, "/") || (!stat(path, &st) && S_ISDIR(st.st_mode))) {
		fb_err("-o %s: a folder; name the file", path);
		return -EISDIR;
	}
	if (!stat(path, &st) && (S_ISSOCK(st.st_mode) || S_ISBLK(st.st_mode))) {
		fb_err("-o %s: a socket or disk; a result goes to a file, a pipe or a terminal", path);
		return -EINVAL;
	}
	err = make_folder(path);
	if (err)
		return err;
	if (in_place(path)) {
		/* A link may lead to a file that is yet to be made. */
		if (!stat(path, &st) && access(path, W_OK)) {
			err = -errno;
			fb_err("-o %s: %s", path, g_strerror(-err));
		}
		return err;
	}
	fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0) {
		err = -errno;
		fb_err("-o %s: %s", tmp, g_strerror(-err));
		return err;
	}
	close(fd);
	unlink(tmp);
	return 0;
}

/* 0 or -errno; closes f. */
static int put_text(FILE *f, const char *text)
{
	struct stat st;
	int err = 0;

	if (fputs(text, f) == EOF || fflush(f))
		err = -errno;
	/* Pipes and devices have nothing to be synced. */
	if (!err && !fstat(fileno(f), &st) && S_ISREG(st.st_mode) && fsync(fileno(f)))
		err = -errno;
	if (fclose(f) && !err)
		err = -errno;
	return err;
}

int result_write(JsonNode *result, const char *path)
{
	g_autofree char *text = result_to_text(result), *tmp = tmp_name(path);
	bool direct = in_place(path);
	const char *to = direct ? path : tmp;
	int err = make_folder(path), fd;
	FILE *f;

	if (err)
		return err;
	fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
	f = fd < 0 ? NULL : fdopen(fd, "w");
	if (!f) {
		err = -errno;
		fb_err("%s: %s", to, g_strerror(-err));
		if (fd >= 0)
			close(fd);
		return err;
	}
	err = put_text(f, text);
	if (!err && !direct && rename(tmp, path))
		err = -errno;
	if (err) {
		fb_err("%s: %s", path, g_strerror(-err));
		if (!direct)
			unlink(tmp);
	}
	return err;
}
