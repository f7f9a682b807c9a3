// SPDX-License-Identifier: GPL-2.0-only
/* The engines of this host, kvm and soft: one VMM process a cell. */
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "host-memory.h"
#include "parts.h"
#include "peer.h"
#include "peer-vm.h"
#include "progress.h"
#include "records.h"
#include "summary.h"

/* All repeats of a cell, by one VMM. */
#define ALL_REPEATS	-1

/* What one VMM does. */
struct part {
	u32 cell;
	int repeat;
};

/* All that is being run, and what is left of the host for more. */
struct direct {
	struct job *job;
	const GArray *parts;
	GPtrArray *running;	/* struct run */
	struct progress progress;
	u32 most;		/* at once */
	u64 memory, used;	/* what they may take at once; what those that run do, bytes */
	bool said;		/* that memory is what keeps parts waiting */
};

/* A part that is being run. */
struct run {
	struct direct *direct;
	struct job *job;
	u32 cell;
	int repeat;
	u64 memory;
	char *records;
	char **argv;
	struct child child;
	struct peer_vm *peer;	/* the guest, where QEMU runs it; else NULL */
};

static void on_line(void *ctx, const char *line)
{
	struct run *r = ctx;

	if (r->peer && !strcmp(line, PEER_ATTACHED)) {
		/* A guest that cannot be let go does not say a word, until its time is over. */
		if (!r->peer->ops->resume(r->peer))
			child_stop(&r->child);
		return;
	}
	progress_hide(&r->direct->progress);
	job_vmm_line(r->job, r->cell, line);
}

static void run_free(struct run *r)
{
	g_free(r->records);
	g_strfreev(r->argv);
	g_free(r);
}

/* The guest first, where it is another's, since the VMM will look for it. */
static bool start_peer(struct run *r, const struct cell *cell)
{
	const struct peer_ops *ops = peer_ops(r->job->engine);
	GPtrArray *argv;

	if (!ops)
		return true;
	r->peer = ops->start(r->job, cell);
	if (!r->peer)
		return false;
	argv = g_ptr_array_new();
	for (char **arg = r->argv; *arg; arg++)
		g_ptr_array_add(argv, *arg);
	g_free(r->argv);
	peer_add_options(r->peer, argv);
	g_ptr_array_add(argv, NULL);
	r->argv = (char **)g_ptr_array_free(argv, FALSE);
	r->child.argv = r->argv;
	return true;
}

/* And last: what is to be said of its end beside a cell that did not end well. */
static void end_peer(struct run *r, struct cell *cell)
{
	g_autofree char *how = r->peer ? r->peer->ops->end(r->peer) : NULL, *why = cell->why;

	if (!how || cell->status == STATUS_DONE || cell->status == STATUS_INTERRUPTED) {
		why = NULL;
		return;
	}
	fb_err("cell %s: %s", cell->name, how);
	cell->why = g_strdup_printf("%s%s%s", why ? why : "", why ? "; " : "", how);
}

/* NULL if it could not be started (reported). The cell is done with if that was its guest's fault. */
static struct run *run_start(struct direct *d, const struct part *part, const char *vmm)
{
	struct job *job = d->job;
	struct cell *cell = job->cells->pdata[part->cell];
	g_autofree char *name = g_strdup_printf("records-%u.%d.jsonl", part->cell, part->repeat);
	struct run *r = g_new0(struct run, 1);

	r->direct = d;
	r->job = job;
	r->memory = host_memory_of_cell(cell);
	r->cell = part->cell;
	r->repeat = part->repeat;
	r->records = g_build_filename(job->tmp, name, NULL);
	r->argv = job_argv(job, cell, r->repeat, vmm, cell->kernel, cell->initrd, cell->disk, r->records);
	r->child = (struct child){
		.argv = r->argv, .signals = &job->signals, .err = on_line, .out_null = !job->console, .dumps = true,
		.ctx = r, .deadline = g_get_monotonic_time() + job_cell_limit_us(job, cell),
	};
	progress_hide(&d->progress);
	fb_info("cell %u/%u: %s", cell->nr, job->matrix, cell->name);
	if (start_peer(r, cell) && child_start(&r->child))
		return r;
	if (peer_ops(job->engine) && !r->peer && !job->signals.count) {
		job_cell_done(job, part->cell, false, STATUS_HOST);
		g_free(cell->why);
		cell->why = g_strdup("QEMU could not be started; standard error says why");
	}
	end_peer(r, cell);
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

	progress_hide(&r->direct->progress);
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
	end_peer(r, cell);
	/* With a repeat missing it is not finished, whatever its VMM said; nor if it was interrupted. */
	if (job->parts && !lost && !r->child.signaled && (r->repeat != ALL_REPEATS || cell->status == r->child.status))
		parts_keep(job->parts, job, r->cell, r->repeat, r->child.status, r->records);
	run_free(r);
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

/* --- how many at once --- */

static const struct cell *cell_of(const struct direct *d, u32 i)
{
	return d->job->cells->pdata[g_array_index(d->parts, struct part, i).cell];
}

/* What a part costs the host, for the time left: on soft guests of many vCPUs execute more in the same time. */
static double part_weight(const struct direct *d, u32 i)
{
	const struct scenario *s = cell_of(d, i)->scenario;
	u32 repeats = g_array_index(d->parts, struct part, i).repeat == ALL_REPEATS ? s->repeat : 1;
	double ms = (double)(s->warmup_ns + s->duration_ns) * repeats / NSEC_PER_MSEC;

	/* A start has its price, too. */
	return d->job->engine == ENGINE_SOFT ? (ms + 20) * (s->sockets * s->cores * s->threads) : ms + 2000;
}

/*
 * Of what the host has free, or the user gave. A cell that this host could not have if it did nothing else is refused before anything
 * is run; one for which there is too little now is tried, alone, since most guests touch but a part of their RAM.
 */
static int plan_memory(struct direct *d)
{
	struct host_memory host;
	int status = STATUS_DONE;
	u64 total;

	host_memory_read("", &host);
	d->memory = d->job->memory ? d->job->memory : host.free;
	total = d->job->memory ? d->job->memory : host.total;
	for (u32 i = 0; !status && i < d->parts->len; i++) {
		const struct cell *cell = cell_of(d, i);
		u64 need = host_memory_of_cell(cell);

		if (need <= total)
			continue;
		fb_err("cell %u, %s: takes up to %llu MiB of memory, and there are %llu"
		       " in all (%s): a smaller vm.memory, a larger host, or --memory SIZE if its guest will not touch all of its RAM",
		       cell->nr, cell->name, DIV_ROUND_UP(need, MIB), total / MIB,
		       d->job->memory ? "--memory" : host.limit ? host.limit : "this host");
		d->job->refused = true;
		status = STATUS_HOST;
	}
	host_memory_clear(&host);
	return status;
}

/* Cells of kvm would share CPUs that they measure; on virtual time neighbours are not noticed, so all CPUs are used. */
static u32 most_at_once(const struct direct *d)
{
	if (d->job->engine != ENGINE_SOFT)
		return 1;
	return MIN(d->job->parallel ? d->job->parallel : g_get_num_processors(), d->parts->len);
}

static void say_memory(struct direct *d, const struct cell *cell, const char *what)
{
	progress_hide(&d->progress);
	fb_info("cell %u takes up to %llu MiB of memory, and there are %llu"
		" for those that run at the same time: %s", cell->nr, DIV_ROUND_UP(host_memory_of_cell(cell), MIB), d->memory / MIB, what);
}

/* May this part begin now? One may always. */
static bool has_room(struct direct *d, u32 i)
{
	const struct cell *cell = cell_of(d, i);
	u64 need = host_memory_of_cell(cell);

	if (d->running->len >= d->most)
		return false;
	if (need <= d->memory - MIN(d->used, d->memory))
		return true;
	if (!d->running->len) {
		say_memory(d, cell, "it runs alone");
		return true;
	}
	if (!d->said)
		say_memory(d, cell, "fewer than there are CPUs");
	d->said = true;
	return false;
}

/* --- all of them --- */

static gboolean on_second(void *ctx)
{
	struct direct *d = ctx;

	if (d->progress.shown || d->running->len)
		progress_show(&d->progress, g_get_monotonic_time());
	return G_SOURCE_CONTINUE;
}

static int start_parts(struct direct *d, u32 *next, const char *vmm)
{
	while (*next < d->parts->len && !d->job->signals.count && has_room(d, *next)) {
		struct run *r = run_start(d, &g_array_index(d->parts, struct part, *next), vmm);

		if (!r && !cell_of(d, *next)->tried)
			return STATUS_INTERNAL;
		++*next;
		if (!r)
			continue;
		progress_start(&d->progress, r, part_weight(d, *next - 1), g_get_monotonic_time());
		d->used += r->memory;
		g_ptr_array_add(d->running, r);
	}
	return STATUS_DONE;
}

static void end_parts(struct direct *d)
{
	for (u32 i = 0; i < d->running->len;) {
		struct run *r = d->running->pdata[i];
		s64 now = g_get_monotonic_time();

		if (!child_gone(&r->child)) {
			i++;
			continue;
		}
		g_ptr_array_remove_index(d->running, i);
		d->used -= r->memory;
		progress_end(&d->progress, r, !r->child.signaled && !d->job->signals.count, now);
		run_end(r);
		if (d->progress.of > 1 && !d->job->signals.count)
			progress_show(&d->progress, now);
	}
}

static int run_parts(struct job *job, const GArray *all)
{
	g_autoptr(GArray) parts = take_finished(job, all);
	g_autoptr(GPtrArray) running = g_ptr_array_new();
	g_autofree char *vmm = front_vmm();
	struct direct d = { .job = job, .parts = parts, .running = running };
	int status = plan_memory(&d);
	double weight = 0;
	u32 next = 0;
	guint tick = 0;

	if (status)
		return status;
	d.most = most_at_once(&d);
	for (u32 i = 0; i < parts->len; i++)
		weight += part_weight(&d, i);
	progress_init(&d.progress, all->len, all->len - parts->len, weight, d.most, all->len > 1 && isatty(STDERR_FILENO),
		      g_get_monotonic_time());
	if (d.most > 1)
		fb_info("%u cells, %u side by side", parts->len, d.most);
	if (d.progress.tty)
		tick = g_timeout_add_seconds(1, on_second, &d);
	for (;;) {
		status = status ? status : start_parts(&d, &next, vmm);
		if (!running->len)
			break;
		child_wait();
		end_parts(&d);
	}
	if (tick)
		g_source_remove(tick);
	progress_clear(&d.progress);
	return status;
}

int direct_run(struct job *job)
{
	g_autoptr(GArray) parts = order_of(job), rest = NULL;
	int status = STATUS_DONE;

	if (job->look)
		rest = take_finished(job, parts);
	else
		status = run_parts(job, parts);

	for (u32 i = 0; job->interleave && i < job->cells->len; i++)
		gather_repeats(job->cells->pdata[i]);
	return status;
}
