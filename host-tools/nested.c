// SPDX-License-Identifier: GPL-2.0-only
/*
 * The nested engine: QEMU's TCG carries a small Linux (images/appliance-init.c)
 * on whose /dev/kvm the same VMM runs all cells, one after another. One appliance
 * serves the whole job; if it dies or hangs, what it wrote is kept, and another one
 * goes on with the rest, beginning with the cell that this one was at. A cell that two
 * appliances do not survive is given up.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "cpio.h"
#include "host-memory.h"
#include "job.h"
#include "records.h"

/* What Linux, the VMM, QEMU's second-level tables and the unpacked initramfs take beside guest RAM. */
#define APPLIANCE_MIB		768
#define BOOT_LIMIT_US		(180 * G_USEC_PER_SEC)
/* Emulation slows all but the guest's own clock, so a cell gets this many times its limit. */
#define CELL_SLACK		2
/* Its init says "@alive" once a second, before all else: without a word for this long it is not slow, but stuck. */
#define SILENCE_US		(120 * G_USEC_PER_SEC)
/* No cell. */
#define NONE			UINT32_MAX
/* QEMU takes an initrd of less than 2 GiB, and what is in it is unpacked into RAM besides. */
#define IMAGE_MAX_MIB		1024
/* Files of the host lie under this in the appliance, at the paths that they have here. */
#define FILES			"/job/files"
/* The last lines of the appliance's console, for a death that is its own. */
#define TAIL_LINES		40

struct appliance {
	struct job *job;
	struct child child;
	u32 first;		/* cell that its cell 0 is */
	u32 nr;
	u32 cell;		/* the one at work */
	bool again;		/* the second try, after one that did not come up */
	bool booted, in_cell, done;
	s64 started;
	s64 limit;		/* what it is at must be done by then, heard of or not */
	GQueue tail;		/* char *, the last lines that were nobody's */
};

static char *absolute(const char *path)
{
	return g_canonicalize_filename(path, NULL);
}

/* Traces that a cell's distributions read; the VMM will look for them where they are here. */
static void add_traces(struct cpio *c, const struct cell *cell, GHashTable *there)
{
	for (u32 i = 0; i < cell->scenario->inject_value->len; i++) {
		char *path = job_trace_input(cell, cell->scenario->inject_value->pdata[i]);

		if (!path)
			continue;
		if (g_hash_table_contains(there, path)) {
			g_free(path);
			continue;
		}
		if (cpio_add_file(c, path, path, 0644))
			fb_warn("%s: cannot be read", path);
		g_hash_table_add(there, path);
	}
}

/* Rounded up; 0 if there is no such file. */
static u64 file_mib(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : DIV_ROUND_UP((u64)st.st_size, MIB);
}

/* Where a file of the host lies in the appliance; each is carried once. NULL (reported) if it cannot be. */
static const char *add_image(struct cpio *c, const char *from, GHashTable *images)
{
	char *path = g_hash_table_lookup(images, from);
	g_autofree char *full = NULL;
	u64 mib;

	if (path)
		return path;
	mib = file_mib(from);
	if (mib > IMAGE_MAX_MIB) {
		fb_err("%s: %" G_GUINT64_FORMAT
		       " MiB; the nested appliance carries files of up to %u MiB",
		       from, mib, IMAGE_MAX_MIB);
		return NULL;
	}
	full = absolute(from);
	path = g_strconcat(FILES, full, NULL);
	if (cpio_add_file(c, path, from, 0644)) {
		fb_err("%s: cannot be read", from);
		g_free(path);
		return NULL;
	}
	g_hash_table_insert(images, g_strdup(from), path);
	return path;
}

/* Arguments, paths among them, go one a line. */
static int add_line(GString *out, const char *text)
{
	if (strchr(text, '\n')) {
		fb_err("\"%s\": the nested appliance takes no newline in a path or name", text);
		return -EINVAL;
	}
	g_string_append_printf(out, "%s\n", text);
	return 0;
}

/* The part of the initramfs that is this run's. */
static int write_job(struct appliance *a, FILE *f)
{
	g_autoptr(GHashTable) images =
		g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
	g_autoptr(GHashTable) there = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	g_autofree char *cwd = g_get_current_dir(), *scenario = absolute(a->job->path);
	GString *cells = g_string_new(NULL), *folder = g_string_new(NULL);
	struct cpio c;
	int err = add_line(folder, cwd);

	cpio_begin(&c, f);
	cpio_add(&c, "/job/cwd", folder->str, folder->len, 0644);
	g_string_free(folder, TRUE);
	cpio_add_folder(&c, cwd);
	if (a->job->console)
		cpio_add(&c, "/job/console", "", 0, 0644);
	err = err ?: cpio_add_file(&c, scenario, scenario, 0644);
	for (u32 i = a->first; !err && i < a->first + a->nr; i++) {
		const struct cell *cell = a->job->cells->pdata[i];
		const char *kernel = add_image(&c, cell->kernel, images);
		const char *initrd = add_image(&c, cell->initrd, images);
		const char *disk = cell->disk ? add_image(&c, cell->disk, images) : NULL;

		if (!kernel || !initrd || (cell->disk && !disk)) {
			err = -EINVAL;
			break;
		}
		add_traces(&c, cell, there);

		g_auto(GStrv) argv =
			job_argv(a->job, cell, -1, "faultbed-vmm", kernel, initrd, disk, "/dev/ttyS1");

		for (char **arg = argv; *arg && !err; arg++)
			err = add_line(cells, *arg);
		g_string_append_c(cells, '\n');
	}
	cpio_add(&c, "/job/cells", cells->str, cells->len, 0644);
	g_string_free(cells, TRUE);
	return cpio_end(&c) ? -EIO : err;
}

/* Names of files as their owner knows them, in what the VMM says. */
static char *host_names(const char *line)
{
	g_auto(GStrv) parts = g_strsplit(line, FILES "/", -1);

	return g_strjoinv("/", parts);
}

/* The appliance's own initramfs with the job behind it. */
static int write_initrd(struct appliance *a, const char *path)
{
	g_autofree char *base = front_appliance();
	g_autoptr(GError) err = NULL;
	g_autoptr(GMappedFile) map = g_mapped_file_new(base, FALSE, &err);
	FILE *f;
	size_t len;
	int ret, closed;

	if (!map) {
		fb_err("%s (make appliance builds it)", err->message);
		return STATUS_BAD_INPUT;
	}
	f = fopen(path, "wbe");
	if (!f) {
		fb_err("%s: %s", path, g_strerror(errno));
		return STATUS_INTERNAL;
	}
	len = g_mapped_file_get_length(map);
	fwrite(g_mapped_file_get_contents(map), 1, len, f);
	/* The kernel looks for the next archive at a multiple of 4. */
	fwrite("\0\0\0", 1, (4 - len % 4) % 4, f);
	ret = write_job(a, f);
	closed = fclose(f);
	if (ret == -EINVAL)
		return STATUS_BAD_INPUT;
	if (closed || ret) {
		fb_err("%s: the appliance's initramfs could not be written", path);
		return STATUS_INTERNAL;
	}
	return STATUS_DONE;
}

static u64 appliance_mib(const struct appliance *a, const char *initrd)
{
	u64 guest = 0;

	for (u32 i = a->first; i < a->first + a->nr; i++) {
		const struct cell *cell = a->job->cells->pdata[i];

		guest = MAX(guest, DIV_ROUND_UP(cell->scenario->memory + job_disk_bytes(cell), MIB));
	}
	/* Read once by QEMU, unpacked once by Linux. */
	return guest + APPLIANCE_MIB + 2 * file_mib(initrd);
}

static char **qemu_argv(const struct appliance *a, const char *initrd, const char *records, u64 mib)
{
	g_autofree char *memory = g_strdup_printf("%" G_GUINT64_FORMAT "M", mib);
	g_autofree char *path = front_qemu_escaped(records);
	g_autofree char *file = g_strdup_printf("file,id=records,path=%s", path);
	const char *const argv[] = {
		a->job->qemu, "-nodefaults", "-no-user-config",
		/* Two emulated CPUs hang the appliance's own kernel in a good part of all boots. */
		"-M", "pc", "-accel", "tcg", "-cpu", "max", "-smp", "1", "-m", memory,
		"-kernel", a->job->appliance_kernel, "-initrd", initrd,
		/* A busy host starves the emulated timer, which Linux's check takes for a broken one. */
		"-append", "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable no_timer_check",
		"-display", "none", "-no-reboot",
		"-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console",
		"-chardev", file, "-serial", "chardev:records",
		"-device", "isa-debug-exit,iobase=0xf4,iosize=4", NULL,
	};

	return g_strdupv((char **)argv);
}

/* Appliance messages: "@word ...". */
static void on_at_line(struct appliance *a, const char *line)
{
	s64 now = g_get_monotonic_time();
	u32 n;
	int status;

	if (!strcmp(line, "@booted")) {
		a->booted = true;
		fb_info("the appliance is up after %.1f s", (now - a->started) / 1e6);
		a->limit = now + BOOT_LIMIT_US;
	} else if (sscanf(line, "@cell %u exit %d", &n, &status) == 2 && n < a->nr) {
		a->in_cell = false;
		job_cell_done(a->job, a->first + n, status >= 128 && status != STATUS_INTERRUPTED,
			      status >= 128 && status != STATUS_INTERRUPTED ? status - 128
									    : status);
		a->limit = now + BOOT_LIMIT_US;
	} else if (sscanf(line, "@cell %u start", &n) == 1 && n < a->nr) {
		const struct cell *cell = a->job->cells->pdata[a->first + n];

		a->cell = a->first + n;
		a->in_cell = true;
		fb_info("cell %u/%u: %s", cell->nr, a->job->matrix, cell->name);
		a->limit = now + job_cell_limit_us(a->job, cell) * CELL_SLACK;
	} else if (!strcmp(line, "@done")) {
		a->done = true;
	} else if (g_str_has_prefix(line, "@failed ")) {
		fb_err("the appliance: %s", line + strlen("@failed "));
	}
}

static void take_console_line(struct appliance *a, const char *line)
{
	/* The firmware clears the screen. */
	if (!*line || (!a->booted && strchr(line, '\033')))
		return;
	if (*line == '@') {
		on_at_line(a, line);
		return;
	}
	/* What the guest says is marked too, so it can speak neither for the VMM nor for the appliance. */
	if (a->in_cell && *line == '>') {
		if (a->job->console)
			fprintf(stderr, "%s\n", line + 1);
		return;
	}
	if (a->in_cell && *line == '|') {
		g_autofree char *said = host_names(line + 1);

		job_vmm_line(a->job, a->cell, said);
		return;
	}
	g_queue_push_tail(&a->tail, g_strdup(line));
	if (g_queue_get_length(&a->tail) > TAIL_LINES)
		g_free(g_queue_pop_head(&a->tail));
}

static void on_console_line(void *ctx, const char *line)
{
	struct appliance *a = ctx;

	take_console_line(a, line);
	a->child.deadline = a->in_cell ? MIN(a->limit, g_get_monotonic_time() + SILENCE_US) : a->limit;
}

static void on_qemu_line(void *ctx, const char *line)
{
	/* It was we who ended it. */
	if (!strstr(line, "terminating on signal"))
		fprintf(stderr, "qemu: %s\n", line);
}

/*
 * It ended before its work did. true if it never came up and deserves another try:
 * that is the emulator's or a busy host's fault, and what it would run has not begun.
 */
static bool appliance_again(const struct appliance *a)
{
	if (a->booted || a->again)
		return false;
	fb_warn("the appliance did not come up%s; trying once more",
		a->child.timed_out ? " in time" : "");
	return true;
}

/*
 * It ended before its work did: say so, with its last words. Emulators crash and hang at times, so the cell that it was at
 * is run again by the next one, from its start; one that was run again already (`again`) is given up. The cell to run again, or NONE.
 */
static u32 appliance_died(struct appliance *a, u32 again)
{
	struct cell *cell = a->job->cells->pdata[a->cell];
	g_autofree char *how = a->child.timed_out ? g_strdup("hung and was stopped")
			       : a->child.signaled
				       ? g_strdup_printf("was ended by signal %d", a->child.status)
				       : g_strdup_printf("left with status %d", a->child.status);

	fb_err("the appliance %s %s", how, !a->booted ? "before it was up" :
	       a->in_cell ? "in the middle of a cell" : "between two cells");
	for (GList *l = a->tail.head; l; l = l->next)
		fb_info("appliance: %s", (char *)l->data);
	/* Between two cells the one before is done; the next appliance begins behind it. */
	if (!a->in_cell && cell->tried)
		return NONE;
	/* One that has just taken too long would again. */
	if (a->booted && again != a->cell && (!a->child.timed_out || a->child.deadline < a->limit)) {
		fb_warn("cell %s is run again by another appliance", cell->name);
		job_cell_forget(cell);
		return a->cell;
	}
	g_free(cell->why);
	cell->why = g_strdup_printf("the nested appliance %s%s", how, again == a->cell ? ", and so did the one before at the same cell" : "");
	cell->tried = true;
	cell->status = STATUS_INTERNAL;
	return NONE;
}

static int check_memory(u64 mib)
{
	struct host_memory memory;
	u64 have;

	host_memory_read("", &memory);
	have = memory.free / MIB;
	host_memory_clear(&memory);
	if (mib <= have)
		return STATUS_DONE;
	fb_err("the nested appliance needs %" G_GUINT64_FORMAT
	       " MiB of memory, and %" G_GUINT64_FORMAT
	       " MiB are free: a smaller vm.memory, or a larger host",
	       mib, have);
	return STATUS_HOST;
}

/*
 * One appliance for the cells from `first` on. -EAGAIN if it did not come up, unless `again`. *cell is the one that an appliance
 * before was lost at, and becomes the one that this one was.
 */
static int appliance_run(struct job *job, u32 first, bool again, u32 *cell)
{
	struct appliance a = {
		.job = job, .first = first, .nr = job->cells->len - first, .cell = first,
		.again = again,
	};
	g_autofree char *initrd = g_build_filename(job->tmp, "appliance.cpio", NULL);
	g_autofree char *name = g_strdup_printf("records-%u.jsonl", first);
	g_autofree char *records = g_build_filename(job->tmp, name, NULL);
	g_autofree char *why = NULL;
	g_auto(GStrv) argv = NULL;
	u32 lost;
	u64 mib;
	int status = write_initrd(&a, initrd);

	if (status)
		return status;
	mib = appliance_mib(&a, initrd);
	status = check_memory(mib);
	if (status)
		return status;
	argv = qemu_argv(&a, initrd, records, mib);
	fb_info("booting the appliance (%s, 1 CPU, %" G_GUINT64_FORMAT " MiB) for %u cell%s",
		job->qemu_version, mib, a.nr, a.nr == 1 ? "" : "s");
	a.started = g_get_monotonic_time();
	a.limit = a.started + BOOT_LIMIT_US;
	a.child = (struct child){
		.argv = argv, .signals = &job->signals, .out = on_console_line, .err = on_qemu_line,
		.ctx = &a, .deadline = a.limit,
	};
	if (!child_run(&a.child))
		return STATUS_HOST;
	if (!a.done && !job->signals.count && appliance_again(&a)) {
		g_queue_clear_full(&a.tail, g_free);
		return -EAGAIN;
	}
	lost = records_read(job, records, &why);
	if (lost)
		fb_warn("%u line%s of records lost on the way out of the appliance; the first: %s",
			lost, lost == 1 ? "" : "s", why);
	for (u32 i = first; i < job->cells->len; i++)
		job_cell_check(job->cells->pdata[i]);
	if (!a.done && !job->signals.count)
		*cell = appliance_died(&a, *cell);
	else if (!a.done && a.in_cell)
		job_cell_done(job, a.cell, false, STATUS_INTERRUPTED);
	g_queue_clear_full(&a.tail, g_free);
	/* One that did not even come up will not do so the next time. */
	return a.booted || job->signals.count ? STATUS_DONE : STATUS_INTERNAL;
}

int nested_run(struct job *job)
{
	u32 next = 0, again = NONE;

	while (next < job->cells->len && !job->signals.count) {
		int status = appliance_run(job, next, false, &again);

		if (status == -EAGAIN)
			status = appliance_run(job, next, true, &again);
		if (status)
			return status;
		/* Of two appliances one at least ends a cell, be it by giving it up. */
		while (next < job->cells->len && ((struct cell *)job->cells->pdata[next])->tried)
			next++;
	}
	return STATUS_DONE;
}
