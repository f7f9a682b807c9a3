// SPDX-License-Identifier: GPL-2.0-only
/* Finished parts of a run, on the disk. See parts.h. */
#define _GNU_SOURCE
#include "parts.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <glib/gstdio.h>

#include "base/log.h"
#include "records.h"

/* Cells of which parts of something else are there: so many are named. */
#define MAX_NAMED	3u

struct parts {
	char *dir;
	int lock;
	bool retry, look;
	GHashTable *sums;	/* part_of() */
	GHashTable *there;	/* what the folder had, "CELL\nREPEAT" to part_file without its records; NULL = not looked */
	u32 others;		/* cells for which that was something else */
};

char *parts_folder(const char *output)
{
	return g_strconcat(output, ".parts", NULL);
}

/* --- locks --- */

/* 0, or -errno: -EAGAIN if somebody else has it. (POSIX's older ones would be gone as soon as anything here closed that file.) */
static int lock_byte(int fd, short type, off_t at)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1 };

	if (!fcntl(fd, F_OFD_SETLK, &lock))
		return 0;
	return errno == EACCES ? -EAGAIN : -errno;
}

static int lock_cells(const struct parts *p, const struct job *job)
{
	int err = 0;

	for (u32 i = 0; !err && i < job->cells->len; i++) {
		const struct cell *cell = job->cells->pdata[i];

		err = lock_byte(p->lock, F_WRLCK, cell->nr);
		if (err == -EAGAIN)
			fb_err("cell %u, %s, is being run by another faultbed, into %s: wait for it", cell->nr, cell->name, p->dir);
	}
	return err;
}

static int lock_all(const struct parts *p, const struct job *job, bool some)
{
	int err = lock_byte(p->lock, some ? F_RDLCK : F_WRLCK, 0);

	if (err == -EAGAIN)
		fb_err("%s: another faultbed is running this matrix; wait for it, or name another -o", p->dir);
	else if (!err && some)
		err = lock_cells(p, job);
	if (err && err != -EAGAIN)
		fb_err("%s: cannot be locked: %s; -o on another file system?", p->dir, g_strerror(-err));
	return err;
}

/* --- folder --- */

static void free_part(void *f)
{
	part_file_free(f);
}

struct parts *parts_open(const char *output, const struct job *job, enum parts_use use, bool retry, int *status)
{
	bool some = use == PARTS_SOME;
	struct parts *p = g_new0(struct parts, 1);
	g_autofree char *lock = NULL;

	p->dir = parts_folder(output);
	p->lock = -1;
	p->retry = retry;
	p->look = use == PARTS_LOOK;
	p->sums = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
	/* One of many need not look at what the others wrote. */
	p->there = some ? g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_part) : NULL;
	if (p->look)
		return p;
	lock = g_build_filename(p->dir, "lock", NULL);
	*status = STATUS_BAD_INPUT;
	if (g_mkdir_with_parents(p->dir, 0777))
		fb_err("%s: %s; finished cells are kept there", p->dir, g_strerror(errno));
	else if ((p->lock = g_open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0666)) < 0)
		fb_err("%s: %s", lock, g_strerror(errno));
	else if (!lock_all(p, job, some))
		return p;
	parts_close(p);
	return NULL;
}

void parts_close(struct parts *p)
{
	if (p->lock >= 0)
		close(p->lock);
	g_clear_pointer(&p->there, g_hash_table_unref);
	g_hash_table_unref(p->sums);
	g_free(p->dir);
	g_free(p);
}

void parts_keep(struct parts *p, const struct job *job, u32 i, int repeat, int status, const char *records)
{
	const struct cell *cell = job->cells->pdata[i];
	g_autoptr(JsonObject) of = part_of(job, cell, p->sums);
	g_autofree char *name = part_name(cell, repeat, of), *path = g_build_filename(p->dir, name, NULL);
	g_autofree char *text = NULL, *all = NULL;
	g_autoptr(GError) err = NULL;

	if (status != STATUS_DONE && status != STATUS_COMMAND_FAILED && status != STATUS_GUEST_DIED)
		return;
	if (g_file_get_contents(records, &text, NULL, &err)) {
		all = part_text(cell, repeat, of, status, text);
		if (g_file_set_contents_full(path, all, -1, G_FILE_SET_CONTENTS_CONSISTENT | G_FILE_SET_CONTENTS_DURABLE, 0666, &err))
			return;
	}
	fb_warn("cell %s: it will have to be run again if this run does not end: %s", cell->name, err->message);
}

/* --- what is there --- */

static char *index_key(const char *cell, int repeat)
{
	return g_strdup_printf("%s\n%d", cell, repeat);
}

static GHashTable *look(const char *folder)
{
	GHashTable *there = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_part);
	GDir *dir = g_dir_open(folder, 0, NULL);
	const char *name;

	while (dir && (name = g_dir_read_name(dir))) {
		g_autofree char *path = g_build_filename(folder, name, NULL), *bad = NULL;
		part_file *f = g_str_has_suffix(name, ".jsonl") ? part_read(path, &bad) : NULL;

		if (!f)
			continue;
		g_clear_pointer(&f->records, g_free);
		g_hash_table_replace(there, index_key(f->cell, f->repeat), f);
	}
	if (dir)
		g_dir_close(dir);
	return there;
}

/* What is there of that name, be it of something else; NULL if nothing. Without its records. */
static part_file *of_that_name(struct parts *p, const struct cell *cell, int repeat)
{
	g_autofree char *key = index_key(cell->name, repeat);

	if (!p->there)
		p->there = look(p->dir);
	return g_hash_table_lookup(p->there, key);
}

/* The same of another host, whose time it is on, where nothing is to be run. NULL if there is none. */
static part_file *of_another_host(struct parts *p, const struct cell *cell, int repeat, JsonObject *of)
{
	part_file *f = p->look ? of_that_name(p, cell, repeat) : NULL;
	g_autofree char *differs = f ? part_differs(f->of, of) : NULL, *bad = NULL;

	return f && !differs ? part_read(f->path, &bad) : NULL;
}

/* There is no part of this; if there is one of the same name, say why it is not taken. */
static void say_why_not(struct parts *p, const struct cell *cell, int repeat, JsonObject *of)
{
	part_file *f = of_that_name(p, cell, repeat);
	g_autofree char *differs = NULL;

	if (!f || ++p->others > MAX_NAMED + 1)
		return;
	if (p->others > MAX_NAMED) {
		fb_info("and so for more cells");
		return;
	}
	differs = part_differs(f->of, of);
	fb_info("cell %u, %s: what was kept is not taken: %s", cell->nr, cell->name, differs ? differs : "it is of another host");
}

void parts_put(struct job *job, struct cell *cell, const part_file *f)
{
	g_autofree char *why = NULL;

	cell->status = front_worse(cell->tried ? cell->status : STATUS_DONE, f->status);
	cell->tried = true;
	if (*f->why && !cell->why)
		cell->why = g_strdup(f->why);
	if (records_of_repeat(job, cell, f->repeat, f->records, strlen(f->records), &why))
		fb_warn("%s: lines that are no records of cell %s; the first: %s", f->path, cell->name, why);
	if (f->repeat < 0)
		job_cell_check(cell);
}

bool parts_take(struct parts *p, struct job *job, u32 i, int repeat)
{
	struct cell *cell = job->cells->pdata[i];
	g_autoptr(JsonObject) of = part_of(job, cell, p->sums);
	g_autofree char *name = part_name(cell, repeat, of), *path = g_build_filename(p->dir, name, NULL), *bad = NULL;
	g_autoptr(part_file) f = part_read(path, &bad);

	if (bad) {
		fb_warn("%s: %s; cell %s is %s", path, bad, cell->name, p->look ? "missing" : "run again");
		return false;
	}
	if (!f)
		f = of_another_host(p, cell, repeat, of);
	if (!f) {
		say_why_not(p, cell, repeat, of);
		return false;
	}
	if (p->retry && f->status != STATUS_DONE)
		return false;
	parts_put(job, cell, f);
	return true;
}
