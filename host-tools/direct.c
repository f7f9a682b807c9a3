// SPDX-License-Identifier: GPL-2.0-only
/* The engines of this host, kvm and soft: one VMM process a cell. */
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "job.h"
#include "parts.h"
#include "records.h"
#include "summary.h"

/* What a VMM takes beside guest RAM, and each of its vCPUs. */
#define VMM_BYTES	(64 * MIB)
#define VCPU_BYTES	(3 * MIB)

/* All repeats of a cell, by one VMM. */
#define ALL_REPEATS	-1

/* What one VMM does. */
struct part {
	u32 cell;
	int repeat;
};

/* A part that is being run. */
struct run {
	struct job *job;
	u32 cell;
	int repeat;
	char *records;
	char **argv;
	struct child child;
};

static void on_line(void *ctx, const char *line)
{
	struct run *r = ctx;

	job_vmm_line(r->job, r->cell, line);
}

static void run_free(struct run *r)
{
	g_free(r->records);
	g_strfreev(r->argv);
	g_free(r);
}

/* NULL if it could not be started (reported). */
static struct run *run_start(struct job *job, const struct part *part, const char *vmm)
{
	struct cell *cell = job->cells->pdata[part->cell];
	g_autofree char *name = g_strdup_printf("records-%u.%d.jsonl", part->cell, part->repeat);
	struct run *r = g_new0(struct run, 1);

	r->job = job;
	r->cell = part->cell;
	r->repeat = part->repeat;
	r->records = g_build_filename(job->tmp, name, NULL);
	r->argv = job_argv(job, cell, r->repeat, vmm, cell->kernel, cell->initrd, cell->disk, r->records);
	r->child = (struct child){
		.argv = r->argv, .signals = &job->signals, .err = on_line, .out_null = !job->console, .dumps = true,
		.ctx = r, .deadline = g_get_monotonic_time() + job_cell_limit_us(job, cell),
	};
	fb_info("cell %u/%u: %s", cell->nr, job->matrix, cell->name);
	if (child_start(&r->child))
		return r;
	run_free(r);
	return NULL;
}

/* Its process is gone: what became of the cell. */
static void run_end(struct run *r)
{
	struct job *job = r->job;
	struct cell *cell = job->cells->pdata[r->cell];
	g_autofree char *why = NULL, *text = NULL;
	u32 lost = 0;
	gsize len;

	child_finish(&r->child);
	job_cell_done(job, r->cell, r->child.signaled, r->child.status);
	if (r->child.timed_out) {
		g_free(cell->why);
		cell->why = g_strdup("the VMM did not end at its own time limit and was stopped");
		cell->status = STATUS_INTERNAL;
		fb_err("cell %s: %s", cell->name, cell->why);
	}
	if (g_file_get_contents(r->records, &text, &len, NULL))
		lost = records_of_repeat(job, cell, r->repeat, text, len, &why);
	if (lost)
		fb_warn("cell %s: %u line%s of its records lost; the first: %s", cell->name, lost,
			lost == 1 ? "" : "s", why);
	if (r->repeat == ALL_REPEATS)
		job_cell_check(cell);
	/* With a repeat missing it is not finished, whatever its VMM said; nor if it was interrupted. */
	if (job->parts && !lost && !r->child.signaled && (r->repeat != ALL_REPEATS || cell->status == r->child.status))
		parts_keep(job->parts, job, r->cell, r->repeat, r->child.status, r->records);
	run_free(r);
}

/* The memory of the largest cell, should its guest touch all of its RAM. */
static u64 largest_cell(const struct job *job)
{
	u64 most = 0;

	for (u32 i = 0; i < job->cells->len; i++) {
		const struct scenario *s = ((struct cell *)job->cells->pdata[i])->scenario;
		u64 vcpus = (u64)s->sockets * s->cores * s->threads;

		most = MAX(most, s->memory + VMM_BYTES + vcpus * VCPU_BYTES + job_disk_bytes(job->cells->pdata[i]));
	}
	return most;
}

/*
 * How many cells at once. Those of kvm would share CPUs that they measure; on virtual time
 * neighbours are not noticed, so all CPUs are used as far as memory goes.
 */
static u32 cells_at_once(const struct job *job)
{
	u64 memory = front_available_mib() * MIB / MAX(largest_cell(job), 1);
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	u32 most;

	if (job->engine != ENGINE_SOFT)
		return 1;
	most = job->parallel ? job->parallel : (u32)MAX(cpus, 1);
	most = (u32)MIN((u64)most, MAX(memory, 1));
	return MIN(most, job->cells->len);
}

/* --- order --- */

/* Behind those from `from` on, one part for each cell that has such a repeat, in random order (Fisher and Yates). */
static void add_round(const struct job *job, GArray *parts, int repeat, GRand *rand)
{
	u32 from = parts->len, i;

	for (i = 0; i < job->cells->len; i++) {
		const struct part part = { .cell = i, .repeat = repeat };

		if ((u32)repeat < ((struct cell *)job->cells->pdata[i])->scenario->repeat)
			g_array_append_val(parts, part);
	}
	for (i = parts->len - 1; i > from; i--) {
		struct part *a = &g_array_index(parts, struct part, i);
		struct part *b = &g_array_index(parts, struct part, (u32)g_rand_int_range(rand, (gint32)from, (gint32)i + 1));
		struct part swap = *a;

		*a = *b;
		*b = swap;
	}
}

static void note_order(struct job *job, const GArray *parts)
{
	job->order = json_array_new();
	for (u32 i = 0; i < parts->len; i++) {
		const struct part *p = &g_array_index(parts, struct part, i);
		const struct cell *cell = job->cells->pdata[p->cell];
		g_autofree char *text = g_strdup_printf("%s, repeat %d", cell->name, p->repeat + 1);

		json_array_add_string_element(job->order, text);
	}
}

/*
 * A host warms up, throttles and has neighbours. If all repeats of one cell came before those of the next, that would be a
 * difference between the cells; in random order it is noise of all of them alike.
 */
static GArray *order_of(struct job *job)
{
	GArray *parts = g_array_new(FALSE, FALSE, sizeof(struct part));
	GRand *rand;
	u32 i, most = 0;

	for (i = 0; i < job->cells->len; i++) {
		const struct part part = { .cell = i, .repeat = ALL_REPEATS };

		most = MAX(most, ((struct cell *)job->cells->pdata[i])->scenario->repeat);
		if (!job->interleave)
			g_array_append_val(parts, part);
	}
	if (!job->interleave)
		return parts;
	rand = g_rand_new_with_seed((u32)job->scenario->seed);
	for (i = 0; i < most; i++)
		add_round(job, parts, (int)i, rand);
	g_rand_free(rand);
	note_order(job, parts);
	return parts;
}

/* Each repeat was its VM's first: number them, and put them in order. What the VM was told is not what the cell was. */
static void gather_repeats(struct cell *cell)
{
	JsonObject *scenario = summary_object(cell->vm, "scenario");
	JsonArray *in_order = json_array_new();
	u32 n = json_array_get_length(cell->repeats), nr, i;

	for (nr = 0; nr < cell->scenario->repeat; nr++) {
		for (i = 0; i < n; i++) {
			JsonObject *repeat = json_array_get_object_element(cell->repeats, i);

			if (summary_number(repeat, "seed", -1) != (double)(cell->scenario->seed + nr))
				continue;
			json_object_set_int_member(repeat, "repeat", nr);
			json_array_add_object_element(in_order, json_object_ref(repeat));
			break;
		}
	}
	json_array_unref(cell->repeats);
	cell->repeats = in_order;
	if (scenario) {
		g_autofree char *repeats = g_strdup_printf("%u", cell->scenario->repeat);
		g_autofree char *seed = g_strdup_printf("%" G_GUINT64_FORMAT, cell->scenario->seed);

		json_object_set_string_member(scenario, "run.repeat", repeats);
		json_object_set_string_member(scenario, "run.seed", seed);
	}
	job_cell_check(cell);
}

/* How far the run is, for one that may take hours. Time left is that of those which were run now, by the mean. */
static void say_progress(const struct job *job, u32 of, u32 taken, u32 run, s64 began)
{
	s64 left = run ? (g_get_monotonic_time() - began) / run * (of - taken - run) / G_USEC_PER_SEC : 0;

	if (job->parts && of > 1)
		fb_info("%u of %u done, %" G_GINT64_FORMAT " min %" G_GINT64_FORMAT " s left", taken + run, of, left / 60, left % 60);
}

/* Those that were finished before go into the job; the others, in their order, are returned. */
static GArray *take_finished(struct job *job, const GArray *parts)
{
	GArray *rest = g_array_new(FALSE, FALSE, sizeof(struct part));

	for (u32 i = 0; i < parts->len; i++) {
		const struct part *p = &g_array_index(parts, struct part, i);

		if (!job->parts || !parts_take(job->parts, job, p->cell, p->repeat))
			g_array_append_val(rest, *p);
	}
	if (rest->len < parts->len)
		fb_info("%u of %u were finished before", parts->len - rest->len, parts->len);
	return rest;
}

static int run_parts(struct job *job, const GArray *all)
{
	g_autoptr(GArray) parts = take_finished(job, all);
	s64 began = g_get_monotonic_time();
	u32 ended = 0;
	g_autofree char *vmm = front_vmm();
	g_autoptr(GPtrArray) running = g_ptr_array_new();
	u32 most = cells_at_once(job), next = 0;
	int status = STATUS_DONE;

	if (most > 1)
		fb_info("%u cells, %u side by side", job->cells->len, most);
	for (;;) {
		while (!status && next < parts->len && running->len < most && !job->signals.count) {
			struct run *r = run_start(job, &g_array_index(parts, struct part, next), vmm);

			next++;

			if (r)
				g_ptr_array_add(running, r);
			else
				status = STATUS_INTERNAL;
		}
		if (!running->len)
			return status;
		child_wait();
		for (u32 i = 0; i < running->len;) {
			struct run *r = running->pdata[i];

			if (child_gone(&r->child)) {
				g_ptr_array_remove_index(running, i);
				run_end(r);
				say_progress(job, all->len, all->len - parts->len, ++ended, began);
			} else {
				i++;
			}
		}
	}
}

int direct_run(struct job *job)
{
	g_autoptr(GArray) parts = order_of(job);
	int status = run_parts(job, parts);

	for (u32 i = 0; job->interleave && i < job->cells->len; i++)
		gather_repeats(job->cells->pdata[i]);
	return status;
}
