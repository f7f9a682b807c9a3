// SPDX-License-Identifier: GPL-2.0-only
/* Finished parts of a run, on the disk. See parts.h. */
#include "parts.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <glib/gstdio.h>

#include "base/log.h"
#include "json-text.h"
#include "records.h"
#include "summary.h"

/* Changes when parts of before mean something else. */
#define PARTS_FORMAT	"faultbed-part/1"

struct parts {
	char *dir;
	int lock;
	GHashTable *sums;	/* a file's path to the checksum of what is in it */
};

/* --- keys --- */

/* Of the file's contents; each is read once. */
static const char *file_sum(struct parts *p, const char *path)
{
	const char *known = g_hash_table_lookup(p->sums, path);
	g_autoptr(GMappedFile) map = NULL;
	char *sum;

	if (known)
		return known;
	map = g_mapped_file_new(path, FALSE, NULL);
	sum = map ? g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guchar *)g_mapped_file_get_contents(map),
						g_mapped_file_get_length(map))
		  : g_strdup("none");
	g_hash_table_insert(p->sums, g_strdup(path), sum);
	return sum;
}

static void add(GChecksum *sum, const char *text)
{
	/* With its end, so that two texts are not the same as their parts otherwise parted. */
	g_checksum_update(sum, (const guchar *)text, (gssize)strlen(text) + 1);
}

static void add_file(struct parts *p, GChecksum *sum, const char *path)
{
	add(sum, path ? file_sum(p, path) : "");
}

static char *part_path(struct parts *p, const struct job *job, u32 i, int repeat)
{
	const struct cell *cell = job->cells->pdata[i];
	g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
	g_autoptr(GPtrArray) keys = scenario_effective(cell->scenario);
	g_autofree char *vmm = front_vmm();
	g_autofree char *rest = g_strdup_printf("%s %d %d %d", engine_name(job->engine), repeat, job->profile, job->no_park);
	g_autofree char *name = NULL;

	add(sum, PARTS_FORMAT);
	add(sum, cell->name);
	for (u32 k = 0; k < keys->len; k++)
		add(sum, keys->pdata[k]);
	/* What was set for all cells since they were read. */
	for (u32 k = 0; k < job->set->len; k++)
		add(sum, job->set->pdata[k]);
	add_file(p, sum, vmm);
	add_file(p, sum, cell->kernel);
	add_file(p, sum, cell->initrd);
	add_file(p, sum, cell->disk);
	add_file(p, sum, cell->cost_model);
	add(sum, rest);
	name = g_strdup_printf("%.32s.jsonl", g_checksum_get_string(sum));
	return g_build_filename(p->dir, name, NULL);
}

/* --- files --- */

struct parts *parts_open(const char *output, int *status)
{
	struct parts *p = g_new0(struct parts, 1);
	g_autofree char *lock = NULL;

	p->dir = g_strconcat(output, ".parts", NULL);
	p->lock = -1;
	p->sums = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
	lock = g_build_filename(p->dir, "lock", NULL);
	*status = STATUS_BAD_INPUT;
	if (g_mkdir_with_parents(p->dir, 0777))
		fb_err("%s: %s; --resume keeps finished cells there", p->dir, g_strerror(errno));
	else if ((p->lock = g_open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0666)) < 0)
		fb_err("%s: %s", lock, g_strerror(errno));
	else if (flock(p->lock, LOCK_EX | LOCK_NB))
		fb_err("%s: another run with --resume is at %s; wait for it, or name another -o", p->dir, output);
	else
		return p;
	parts_close(p);
	return NULL;
}

void parts_close(struct parts *p)
{
	if (p->lock >= 0)
		close(p->lock);
	g_hash_table_unref(p->sums);
	g_free(p->dir);
	g_free(p);
}

/* The first line: how the part ended, and what the rest of the file has to be. */
static char *header_text(int status, const char *why, const char *records, size_t len)
{
	g_autofree char *sum = g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guchar *)records, len);
	JsonObject *o = json_object_new();
	g_autoptr(JsonNode) node = json_node_init_object(json_node_alloc(), o);

	json_object_set_string_member(o, "part", PARTS_FORMAT);
	json_object_set_int_member(o, "status", status);
	json_object_set_string_member(o, "why", why ? why : "");
	json_object_set_string_member(o, "sha256", sum);
	json_object_unref(o);
	return json_text(node);
}

void parts_keep(struct parts *p, const struct job *job, u32 i, int repeat, int status, const char *records)
{
	const struct cell *cell = job->cells->pdata[i];
	g_autofree char *path = part_path(p, job, i, repeat), *text = NULL, *header = NULL, *all = NULL;
	g_autoptr(GError) err = NULL;
	size_t len;

	if (status != STATUS_DONE && status != STATUS_COMMAND_FAILED && status != STATUS_GUEST_DIED)
		return;
	if (!g_file_get_contents(records, &text, &len, &err))
		goto fail;
	header = header_text(status, cell->why, text, len);
	all = g_strconcat(header, "\n", text, NULL);
	if (g_file_set_contents_full(path, all, -1, G_FILE_SET_CONTENTS_CONSISTENT | G_FILE_SET_CONTENTS_DURABLE, 0666, &err))
		return;
fail:
	fb_warn("cell %s: it will have to be run again if this run does not end: %s", cell->name, err->message);
}

/* NULL if it is none, or was changed since. */
static JsonNode *read_header(const char *text, const char *rest)
{
	g_autofree char *line = g_strndup(text, (gsize)(rest - text));
	g_autofree char *sum = g_compute_checksum_for_string(G_CHECKSUM_SHA256, rest, -1);
	g_autoptr(JsonNode) node = json_from_string(line, NULL);
	JsonObject *o = node && JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;

	if (!o || strcmp(summary_string(o, "part", ""), PARTS_FORMAT) || strcmp(summary_string(o, "sha256", ""), sum))
		return NULL;
	return g_steal_pointer(&node);
}

bool parts_take(struct parts *p, struct job *job, u32 i, int repeat)
{
	struct cell *cell = job->cells->pdata[i];
	g_autofree char *path = part_path(p, job, i, repeat), *text = NULL, *why = NULL;
	g_autoptr(JsonNode) header = NULL;
	const char *rest;

	if (!g_file_get_contents(path, &text, NULL, NULL))
		return false;
	rest = strchr(text, '\n');
	header = rest ? read_header(text, ++rest) : NULL;
	if (!header) {
		fb_warn("%s: not as it was written; cell %s is run again", path, cell->name);
		return false;
	}

	JsonObject *o = json_node_get_object(header);
	const char *reason = summary_string(o, "why", "");

	cell->status = front_worse(cell->tried ? cell->status : STATUS_DONE, (int)summary_number(o, "status", STATUS_INTERNAL));
	cell->tried = true;
	if (*reason && !cell->why)
		cell->why = g_strdup(reason);
	records_of_repeat(job, cell, repeat, rest, strlen(rest), &why);
	return true;
}
