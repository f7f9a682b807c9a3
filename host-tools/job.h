/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One `faultbed run`: a scenario, its cells, and what came of each. Built by
 * job_new(), run by direct_run() or nested_run(), turned into a result by
 * result_build(). Main thread only.
 */
#ifndef HOST_TOOLS_JOB_H
#define HOST_TOOLS_JOB_H

#include <json-glib/json-glib.h>

#include "child.h"
#include "front.h"
#include "scenario.h"

/* Stands beside each figure of a nested run. */
#define NESTED_TRUST	"nested: QEMU's TCG emulates the host, so times and rates mean nothing"

struct parts;

struct cell {
	u32 nr;			/* of the matrix, as people count */
	char *name;		/* "ipi.remote=none", for people and for the records */
	char **set;		/* what [vary] sets in it, "section.key=value" */
	struct scenario *scenario;	/* with that set: one cell */
	char *kernel, *initrd;	/* files of the host */
	char *disk;		/* its image, NULL = none */
	char *cost_model;	/* soft only */
	u64 model_bytes;	/* what that model's caches and lines take of the host's memory */

	/* Filled from the records. */
	JsonObject *vm;		/* NULL if the guest never became ready */
	JsonArray *repeats;
	JsonObject *end;	/* NULL if the VMM left without a word */
	u64 rank;		/* records.c: which repeat's those two are */
	bool tried;
	int status;		/* enum status */
	char *why;		/* if not done */
};

struct job {
	char *path;		/* the scenario's, as given */
	GPtrArray *set;		/* the user's --set, in order */
	struct scenario *scenario;
	GPtrArray *cells;	/* struct cell; those of the matrix that are run */
	u32 matrix;		/* how many cells there are in all */
	enum scenario_engine engine;	/* chosen: kvm, soft or nested */
	char **snapshot;	/* soft: the VMM's options about snapshots, NULL = none */
	char **trace;		/* the VMM's options about traces but for the file, NULL = no trace */
	char *trace_file;	/* with several cells .N comes behind it, their number as people see it */
	bool profile;		/* soft: say where time went */
	bool no_park;		/* soft: execute loops that only wait */
	bool interleave;	/* a VM for each repeat, and cells in random order (direct_run()) */
	JsonArray *order;	/* with that: "CELL, repeat N" as they were run; else NULL */
	struct parts *parts;	/* finished parts on the disk (parts.h), NULL = none are kept */
	u32 parallel;		/* soft: cells side by side at most; 0 = as many as the host has CPUs for */
	u64 memory;		/* what cells that run at the same time may take in all, bytes; 0 = what the host has */
	bool peer_kvm;		/* qemu, libvirt: KVM runs the guests, else TCG */
	const char *trust;	/* what stands beside each figure, NULL = nothing */
	char *engine_why;
	char *appliance_kernel;	/* nested */
	char *qemu, *qemu_version;	/* nested, qemu, libvirt */
	char *tmp;		/* folder for what is needed while it runs */
	bool keep;		/* job_free() leaves records and result in tmp */
	bool look;		/* nothing is run: the cells are those that parts have */
	bool refused;		/* this host cannot run it, and nothing was run */
	bool console;		/* relay the guest's console */
	struct child_signals signals;
	char *begin, *finish;	/* ISO 8601 */
};

/* NULL if the scenario is bad or a file is missing (reported). Overrides in `set` are copied. */
struct job *job_new(const char *path, GPtrArray *set);
void job_free(struct job *job);
/* "kvm", "nested", ... */
const char *engine_name(enum scenario_engine engine);
/* The file that cell i is traced into; g_free(). Only with trace_file. */
char *job_trace_file(const struct job *job, u32 i);
/*
 * The VMM's arguments for one cell, a vector for g_strfreev(); `vmm` becomes argv[0], `disk` may be NULL. With repeat >= 0 for
 * that repeat alone.
 */
char **job_argv(const struct job *job, const struct cell *cell, int repeat, const char *vmm, const char *kernel, const char *initrd,
		const char *disk, const char *records);
/* The file that a value of [inject] reads its delays from; NULL if it reads none. g_free(). */
char *job_trace_input(const struct cell *cell, const char *value);
/* What of the host's memory the guest's writes to its disk can take, bytes: all of it. */
u64 job_disk_bytes(const struct cell *cell);
/*
 * The engine is chosen: what of the cells hangs on it. A cost model for each on soft, one
 * local APIC for all elsewhere. An enum status, reported.
 */
int job_settle(struct job *job);
/* How long the VMM may take for a cell at most, its own time limit and leaving included, us. */
s64 job_cell_limit_us(const struct job *job, const struct cell *cell);
/*
 * A line that the VMM wrote to standard error: progress is shown with the cell's
 * number, all else as it is, and the last error is kept as the cell's `why`.
 */
void job_vmm_line(struct job *job, u32 cell, const char *line);
/* A cell's VMM is gone, with this exit status or by this signal. Of several of one cell the worst counts. */
void job_cell_done(struct job *job, u32 cell, bool signaled, int status);
/* As if it had never been begun: it is run again. */
void job_cell_forget(struct cell *cell);
/* What the cell's last record says of its end, once records have been read. */
void job_cell_ended(struct cell *cell);
/*
 * When all records of a cell are in: one whose VMM left in peace, but of which a repeat
 * or the last record is missing, is an internal error after all.
 */
void job_cell_check(struct cell *cell);
/* The exit status of the whole. */
int job_status(const struct job *job);

/*
 * Run the cells here, a VMM process each: one after another on kvm, whose cells would be in each
 * other's way, and repeat by repeat in random order if job->interleave; side by side on soft. Or all of them in one appliance under QEMU. An enum status.
 */
int direct_run(struct job *job);
int nested_run(struct job *job);

#endif
