// SPDX-License-Identifier: GPL-2.0-only
/* The engines of this host, kvm and soft: one VMM process a cell. */
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "job.h"
#include "records.h"

/* What a VMM takes beside guest RAM, and each of its vCPUs. */
#define VMM_BYTES	(64 * MIB)
#define VCPU_BYTES	(3 * MIB)

/* A cell that is being run. */
struct run {
	struct job *job;
	u32 cell;
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
static struct run *run_start(struct job *job, u32 i, const char *vmm)
{
	struct cell *cell = job->cells->pdata[i];
	g_autofree char *name = g_strdup_printf("records-%u.jsonl", i);
	struct run *r = g_new0(struct run, 1);

	r->job = job;
	r->cell = i;
	r->records = g_build_filename(job->tmp, name, NULL);
	r->argv = job_argv(job, cell, vmm, cell->kernel, cell->initrd, cell->disk, r->records);
	r->child = (struct child){
		.argv = r->argv, .signals = &job->signals, .err = on_line, .out_null = !job->console, .dumps = true,
		.ctx = r, .deadline = g_get_monotonic_time() + job_cell_limit_us(job, cell),
	};
	fb_info("cell %u/%u: %s", i + 1, job->cells->len, cell->name);
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
	g_autofree char *why = NULL;
	u32 lost;

	child_finish(&r->child);
	job_cell_done(job, r->cell, r->child.signaled, r->child.status);
	if (r->child.timed_out) {
		g_free(cell->why);
		cell->why = g_strdup("the VMM did not end at its own time limit and was stopped");
		cell->status = STATUS_INTERNAL;
		fb_err("cell %s: %s", cell->name, cell->why);
	}
	lost = records_read(job, r->records, &why);
	if (lost)
		fb_warn("cell %s: %u line%s of its records lost; the first: %s", cell->name, lost,
			lost == 1 ? "" : "s", why);
	job_cell_check(cell);
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

int direct_run(struct job *job)
{
	g_autofree char *vmm = front_vmm();
	g_autoptr(GPtrArray) running = g_ptr_array_new();
	u32 most = cells_at_once(job), next = 0;
	int status = STATUS_DONE;

	if (most > 1)
		fb_info("%u cells, %u side by side", job->cells->len, most);
	for (;;) {
		while (!status && next < job->cells->len && running->len < most && !job->signals.count) {
			struct run *r = run_start(job, next++, vmm);

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
			} else {
				i++;
			}
		}
	}
}
