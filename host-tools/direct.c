// SPDX-License-Identifier: GPL-2.0-only
/* The kvm engine on this host: one VMM process a cell. */
#include <glib/gstdio.h>
#include <string.h>

#include "base/log.h"
#include "job.h"
#include "records.h"

struct direct {
	struct job *job;
	u32 cell;
};

static void on_line(void *ctx, const char *line)
{
	struct direct *d = ctx;

	job_vmm_line(d->job, d->cell, line);
}

static int run_cell(struct job *job, u32 i, const char *vmm)
{
	struct cell *cell = job->cells->pdata[i];
	g_autofree char *name = g_strdup_printf("records-%u.jsonl", i);
	g_autofree char *records = g_build_filename(job->tmp, name, NULL);
	g_auto(GStrv) argv = job_argv(job, cell, vmm, cell->kernel, cell->initrd, records);
	g_autofree char *why = NULL;
	struct direct d = { .job = job, .cell = i };
	struct child child = {
		.argv = argv, .signals = &job->signals, .err = on_line, .out_null = !job->console,
		.ctx = &d, .deadline = g_get_monotonic_time() + job_cell_limit_us(cell),
	};

	u32 lost;

	if (!child_run(&child))
		return STATUS_INTERNAL;
	job_cell_done(job, i, child.signaled, child.status);
	if (child.timed_out) {
		g_free(cell->why);
		cell->why = g_strdup("the VMM did not end at its own time limit and was stopped");
		cell->status = STATUS_INTERNAL;
		fb_err("cell %s: %s", cell->name, cell->why);
	}
	lost = records_read(job, records, &why);
	if (lost)
		fb_warn("cell %s: %u line%s of its records lost; the first: %s", cell->name, lost,
			lost == 1 ? "" : "s", why);
	job_cell_check(cell);
	return STATUS_DONE;
}

int direct_run(struct job *job)
{
	g_autofree char *vmm = front_vmm();

	for (u32 i = 0; i < job->cells->len && !job->signals.count; i++) {
		struct cell *cell = job->cells->pdata[i];
		int status;

		fb_info("cell %u/%u: %s", i + 1, job->cells->len, cell->name);
		status = run_cell(job, i, vmm);
		if (status)
			return status;
	}
	return STATUS_DONE;
}
