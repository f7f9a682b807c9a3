// SPDX-License-Identifier: GPL-2.0-only
#include "part-file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "base/log.h"
#include "json-text.h"
#include "result-json.h"
#include "summary.h"

/* Changes when parts of before mean something else. */
#define PART_FORMAT	"faultbed-part/2"
/* A part is a piece of a result (result-read.c). */
#define MAX_PART_BYTES	(256u << 20)
/* Of the many differences that two parts may have: as many as one reads. */
#define MAX_SHOWN	3u

/* Of the file's contents; each is read once. */
static const char *file_sum(GHashTable *sums, const char *path)
{
	const char *known = g_hash_table_lookup(sums, path);
	char *sum;

	if (known)
		return known;
	sum = front_file_sum(path);
	if (!sum)
		sum = g_strdup("none");
	g_hash_table_insert(sums, g_strdup(path), sum);
	return sum;
}

static void put(JsonObject *of, const char *name, const char *value)
{
	json_object_set_string_member(of, name, value);
}

static void put_file(JsonObject *of, const char *name, const char *path, GHashTable *sums)
{
	if (path)
		put(of, name, file_sum(sums, path));
}

/* What was set in all cells after they were read. */
static void put_settled(JsonObject *of, const struct job *job)
{
	static const char apic[] = "vm.apic=";

	for (u32 i = 0; i < job->set->len; i++)
		if (g_str_has_prefix(job->set->pdata[i], apic) && !strcmp(summary_string(of, "vm.apic", ""), "auto"))
			put(of, "vm.apic", (const char *)job->set->pdata[i] + strlen(apic));
}

static void put_host(JsonObject *of)
{
	g_autofree char *cpu = front_proc_value("/proc/cpuinfo", "model name"), *text = NULL;
	struct utsname u = { 0 };

	uname(&u);
	text = g_strdup_printf("%s, %s, %s %s", g_get_host_name(), cpu, u.sysname, u.release);
	put(of, PART_HOST, text);
}

JsonObject *part_of(const struct job *job, const struct cell *cell, GHashTable *sums)
{
	g_autoptr(GPtrArray) keys = scenario_effective(cell->scenario);
	g_autofree char *vmm = front_vmm();
	JsonObject *of = json_object_new();

	put(of, "engine", engine_name(job->engine));
	for (u32 i = 0; i < keys->len; i += 2)
		put(of, keys->pdata[i], keys->pdata[i + 1]);
	put_settled(of, job);
	put_file(of, "VMM", vmm, sums);
	put_file(of, "kernel", cell->kernel, sums);
	put_file(of, "initramfs", cell->initrd, sums);
	put_file(of, "disk", cell->disk, sums);
	put_file(of, "cost model", cell->cost_model, sums);
	for (u32 i = 0; i < cell->scenario->inject_value->len; i++) {
		g_autofree char *trace = job_trace_input(cell, cell->scenario->inject_value->pdata[i]);
		g_autofree char *name = g_strdup_printf("trace of inject.%s", (char *)cell->scenario->inject_key->pdata[i]);

		put_file(of, name, trace, sums);
	}
	put(of, "--profile", job->profile ? "yes" : "no");
	put(of, "--no-park", job->no_park ? "yes" : "no");
	if (job->engine != ENGINE_SOFT)
		put_host(of);
	return of;
}

static char *object_text(JsonObject *o)
{
	g_autoptr(JsonNode) node = json_node_init_object(json_node_alloc(), o);

	return json_text(node);
}

char *part_name(const struct cell *cell, int repeat, JsonObject *of)
{
	g_autofree char *text = object_text(of);
	g_autofree char *all = g_strdup_printf("%s\n%s\n%d\n%s", PART_FORMAT, cell->name, repeat, text);
	g_autofree char *sum = g_compute_checksum_for_string(G_CHECKSUM_SHA256, all, -1);

	return g_strdup_printf("%.32s.jsonl", sum);
}

char *part_text(const struct cell *cell, int repeat, JsonObject *of, int status, const char *records)
{
	g_autofree char *sum = g_compute_checksum_for_string(G_CHECKSUM_SHA256, records, -1);
	g_autoptr(JsonObject) o = json_object_new();
	g_autofree char *header = NULL;

	put(o, "part", PART_FORMAT);
	put(o, "cell", cell->name);
	json_object_set_int_member(o, "repeat", repeat);
	json_object_set_int_member(o, "status", status);
	put(o, "why", cell->why ? cell->why : "");
	put(o, "sha256", sum);
	json_object_set_object_member(o, "of", json_object_ref(of));
	header = object_text(o);
	return g_strconcat(header, "\n", records, NULL);
}

/* A regular file of a size that makes sense. NULL if there is none, or with *bad. */
static char *read_text(const char *path, char **bad)
{
	g_autoptr(GError) err = NULL;
	struct stat st;
	char *text = NULL;

	if (stat(path, &st)) {
		*bad = errno == ENOENT ? NULL : g_strdup(g_strerror(errno));
		return NULL;
	}
	if (!S_ISREG(st.st_mode) || st.st_size > MAX_PART_BYTES)
		*bad = g_strdup("no file of a finished cell");
	else if (!g_file_get_contents(path, &text, NULL, &err))
		*bad = g_strdup(err->message);
	return text;
}

/* NULL if a member of the first line is not as it has to be, or the rest is not what it was. */
static part_file *take_header(JsonObject *o, const char *records)
{
	g_autofree char *sum = g_compute_checksum_for_string(G_CHECKSUM_SHA256, records, -1);
	double status = summary_number(o, "status", -1), repeat = summary_number(o, "repeat", -2);
	JsonObject *of = summary_object(o, "of");
	part_file *f;

	if (strcmp(summary_string(o, "part", ""), PART_FORMAT) || strcmp(summary_string(o, "sha256", ""), sum) || !of ||
	    !(repeat >= -1 && repeat <= INT32_MAX) ||
	    !(status == STATUS_DONE || status == STATUS_COMMAND_FAILED || status == STATUS_GUEST_DIED))
		return NULL;
	f = g_new0(part_file, 1);
	f->cell = g_strdup(summary_string(o, "cell", ""));
	f->repeat = (int)repeat;
	f->status = (int)status;
	f->why = g_strdup(summary_string(o, "why", ""));
	f->of = json_object_ref(of);
	f->records = g_strdup(records);
	return f;
}

part_file *part_read(const char *path, char **bad)
{
	g_autofree char *text = read_text(path, bad), *line = NULL;
	const char *records = text ? strchr(text, '\n') : NULL;
	g_autoptr(JsonNode) node = NULL;
	part_file *f = NULL;

	if (!text)
		return NULL;
	if (records) {
		line = g_strndup(text, (gsize)(records++ - text));
		node = result_too_deep(line, strlen(line)) ? NULL : json_from_string(line, NULL);
	}
	if (node && JSON_NODE_HOLDS_OBJECT(node))
		f = take_header(json_node_get_object(node), records);
	if (f)
		f->path = g_strdup(path);
	else
		*bad = g_strdup("not as it was written");
	return f;
}

void part_file_free(part_file *f)
{
	g_free(f->path);
	g_free(f->cell);
	g_free(f->why);
	g_free(f->records);
	json_object_unref(f->of);
	g_free(f);
}

/* Does a checksum stand there, which nobody wants to read? Keys of a scenario have a dot and options begin with "--". */
static bool is_contents(const char *name)
{
	return g_str_has_prefix(name, "trace of ") ||
	       (!strchr(name, '.') && !g_str_has_prefix(name, "--") && strcmp(name, "engine"));
}

static void add_difference(GString *out, const char *name, const char *there, const char *here)
{
	g_string_append(out, out->len ? "; " : "");
	if (is_contents(name))
		g_string_append_printf(out, "another %s", name);
	else
		g_string_append_printf(out, "%s is %s there, %s here", name, *there ? there : "empty", *here ? here : "empty");
}

char *part_differs(JsonObject *there, JsonObject *here)
{
	JsonObject *const sides[] = { here, there };
	GString *out = g_string_new(NULL);
	u32 differences = 0;

	for (u32 side = 0; side < ARRAY_SIZE(sides); side++) {
		g_autoptr(GList) names = json_object_get_members(sides[side]);

		for (GList *l = names; l; l = l->next) {
			const char *name = l->data;
			const char *a = summary_string(there, name, "absent"), *b = summary_string(here, name, "absent");

			/* Those that both have were seen on the first side. */
			if (!strcmp(name, PART_HOST) || !strcmp(a, b) || (side && json_object_has_member(here, name)))
				continue;
			if (differences++ < MAX_SHOWN)
				add_difference(out, name, a, b);
		}
	}
	if (differences > MAX_SHOWN)
		g_string_append_printf(out, "; and %u more", differences - MAX_SHOWN);
	return g_string_free(out, !differences);
}
