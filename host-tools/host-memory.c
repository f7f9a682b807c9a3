// SPDX-License-Identifier: GPL-2.0-only
#include "host-memory.h"

#include <string.h>

/* What a VMM takes beside guest RAM, and each of its vCPUs. */
#define VMM_BYTES	(64 * MIB)
#define VCPU_BYTES	(3 * MIB)

/* The two versions of control groups name the same things otherwise. */
static const struct version {
	const char *mount, *limit, *used, *cache;
	const char *controller;	/* of its line in /proc/self/cgroup */
} versions[] = {
	{ "sys/fs/cgroup", "memory.max", "memory.current", "inactive_file ", "" },
	{ "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ", "memory" },
};

static char *read_file(const char *folder, const char *name)
{
	g_autofree char *path = g_build_filename(folder, name, NULL);
	char *text = NULL;

	return g_file_get_contents(path, &text, NULL, NULL) ? text : NULL;
}

/* The number behind a line's name, UINT64_MAX if there is none ("max", too). */
static u64 number_of(const char *text, const char *name)
{
	g_auto(GStrv) lines = g_strsplit(text ? text : "", "\n", -1);
	guint64 n;

	for (char **l = lines; *l; l++) {
		g_auto(GStrv) words = NULL;

		if (!g_str_has_prefix(*l, name))
			continue;
		words = g_strsplit_set(g_strchug(*l + strlen(name)), " \t", 2);
		return words[0] && g_ascii_string_to_unsigned(words[0], 10, 0, UINT64_MAX, &n, NULL) ? n : UINT64_MAX;
	}
	return UINT64_MAX;
}

/* The folder's own limit, and what is left below it; files that are only cached could go. */
static void take_group(const struct version *v, const char *folder, struct host_memory *m)
{
	g_autofree char *limit_text = read_file(folder, v->limit), *used_text = read_file(folder, v->used);
	g_autofree char *stat = read_file(folder, "memory.stat");
	u64 limit = number_of(limit_text, ""), used = number_of(used_text, ""), cache = number_of(stat, v->cache);

	if (limit == UINT64_MAX || used == UINT64_MAX)
		return;
	/* A wider limit may be nearer to its end. */
	if (limit < m->total) {
		m->total = limit;
		g_free(m->limit);
		m->limit = g_strdup(folder);
	}
	used -= cache == UINT64_MAX ? 0 : MIN(cache, used);
	m->free = MIN(m->free, limit - MIN(limit, used));
}

/* The process's group and all that it is in. In a container the upper part of its path is not to be seen. */
static void take_groups(const char *root, const struct version *v, const char *path, struct host_memory *m)
{
	g_autofree char *mount = g_build_filename("/", root, v->mount, NULL);
	g_autofree char *at = g_strdup(path);

	for (;;) {
		bool top = !strcmp(at, "/") || !strcmp(at, ".");
		g_autofree char *folder = g_build_filename(mount, top ? NULL : at, NULL);
		char *up;

		take_group(v, folder, m);
		if (top)
			return;
		up = g_path_get_dirname(at);
		g_free(at);
		at = up;
	}
}

/* A line "ID:CONTROLLERS:PATH" of /proc/self/cgroup. */
static void take_line(const char *root, const char *line, struct host_memory *m)
{
	g_auto(GStrv) fields = g_strsplit(line, ":", 3);
	g_auto(GStrv) controllers = NULL;

	if (g_strv_length(fields) < 3)
		return;
	controllers = g_strsplit(fields[1], ",", -1);
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++)
		if (*versions[i].controller ? g_strv_contains((const char *const *)controllers, versions[i].controller)
					    : !*fields[1])
			take_groups(root, &versions[i], fields[2], m);
}

void host_memory_read(const char *root, struct host_memory *m)
{
	g_autofree char *proc = g_build_filename("/", root, "proc", NULL);
	g_autofree char *info = read_file(proc, "meminfo"), *groups = read_file(proc, "self/cgroup");
	g_auto(GStrv) lines = g_strsplit(groups ? groups : "", "\n", -1);
	u64 total = number_of(info, "MemTotal:"), available = number_of(info, "MemAvailable:");

	*m = (struct host_memory){
		.total = total > UINT64_MAX / KIB ? UINT64_MAX : total * KIB,
		.free = available > UINT64_MAX / KIB ? UINT64_MAX : available * KIB,
	};
	for (char **l = lines; *l; l++)
		take_line(root, *l, m);
	m->free = MIN(m->free, m->total);
}

void host_memory_clear(struct host_memory *m)
{
	g_clear_pointer(&m->limit, g_free);
}

u64 host_memory_of_cell(const struct cell *cell)
{
	const struct scenario *s = cell->scenario;
	u64 vcpus = (u64)s->sockets * s->cores * s->threads;

	return s->memory + VMM_BYTES + vcpus * VCPU_BYTES + job_disk_bytes(cell) + cell->model_bytes;
}
