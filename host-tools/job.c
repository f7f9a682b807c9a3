// SPDX-License-Identifier: GPL-2.0-only
/* A run's cells: their names, their files, the VMM's arguments, and what became of them. */
#include "job.h"

#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cost-change.h"
#include "cost-file.h"
#include "initramfs.h"
#include "machine/loader.h"
#include "summary.h"

/* What the VMM needs after its own time limit, to write the last record and leave. */
#define LEAVE_SLACK_S	60

const char *engine_name(enum scenario_engine engine)
{
	static const char *const names[] = {
		[ENGINE_AUTO] = "auto", [ENGINE_KVM] = "kvm", [ENGINE_SOFT] = "soft",
		[ENGINE_NESTED] = "nested", [ENGINE_QEMU] = "qemu", [ENGINE_LIBVIRT] = "libvirt",
	};

	return names[engine];
}

/* "guest.knob.fault_path=speculative" to "knob.fault_path=speculative", joined by blanks. */
static char *cell_name(char **set)
{
	GString *name = g_string_new(NULL);

	for (char **o = set; *o; o++) {
		const char *dot = strchr(*o, '.');

		g_string_append_printf(name, "%s%s", name->len ? " " : "", dot ? dot + 1 : *o);
	}
	if (!name->len)
		g_string_append(name, "only");
	return g_string_free(name, FALSE);
}

static bool file_there(const struct scenario *s, const char *key, const char *path,
		       const char *hint)
{
	const char *origin = scenario_origin(s, "guest", key);

	if (g_file_test(path, G_FILE_TEST_IS_REGULAR) && !access(path, R_OK))
		return true;
	if (strcmp(origin, "default"))
		fb_err("%s: guest.%s: %s: no such file, or not readable", origin, key, path);
	else
		fb_err("%s: not there; %s", path, hint);
	return false;
}

/*
 * Is the kernel one? Said before anything is booted, once for all cells. Where [vary] goes
 * through kernels, one that is none costs its own cell only, so that is left to the VMM.
 */
static bool kernel_ok(const struct job *job, const struct cell *cell)
{
	struct boot_result res;

	for (char **o = cell->set; *o; o++)
		if (g_str_has_prefix(*o, "guest.kernel="))
			return true;
	return job->cells->len || !loader_identify(cell->kernel, &res);
}

static bool cell_files(const struct job *job, struct cell *cell)
{
	struct scenario *s = cell->scenario;

	cell->kernel = s->kernel ? g_strdup(s->kernel) : front_kernel();
	cell->initrd = s->initrd ? g_strdup(s->initrd) : front_initrd();
	if (!file_there(s, "kernel", cell->kernel,
			"make kernel (or faultbed kernel build) builds it") ||
	    !file_there(s, "initrd", cell->initrd, "make initramfs builds it"))
		return false;
	if (s->disk_on) {
		cell->disk = s->disk ? g_strdup(s->disk) : front_disk();
		if (!file_there(s, "disk", cell->disk, "make disk builds it"))
			return false;
	}
	if (!kernel_ok(job, cell))
		return false;
	if (s->add->len) {
		char *with = initramfs_with(job->tmp, s);

		if (!with)
			return false;
		g_free(cell->initrd);
		cell->initrd = with;
	}
	return true;
}

static void cell_free(void *p)
{
	struct cell *cell = p;

	g_free(cell->name);
	g_strfreev(cell->set);
	scenario_free(cell->scenario);
	g_free(cell->kernel);
	g_free(cell->initrd);
	g_free(cell->disk);
	g_free(cell->cost_model);
	if (cell->vm)
		json_object_unref(cell->vm);
	if (cell->end)
		json_object_unref(cell->end);
	json_array_unref(cell->repeats);
	g_free(cell->why);
	g_free(cell);
}

static struct cell *cell_new(const struct job *job, u32 i)
{
	struct cell *cell = g_new0(struct cell, 1);
	g_autoptr(GPtrArray) set = g_ptr_array_new();

	cell->nr = i + 1;
	cell->set = scenario_cell(job->scenario, i);
	cell->name = cell_name(cell->set);
	cell->repeats = json_array_new();
	for (u32 k = 0; k < job->set->len; k++)
		g_ptr_array_add(set, job->set->pdata[k]);
	for (char **o = cell->set; *o; o++)
		g_ptr_array_add(set, *o);
	cell->scenario = scenario_load(job->path, (const char *const *)set->pdata, set->len);
	if (!cell->scenario || !cell_files(job, cell)) {
		cell_free(cell);
		return NULL;
	}
	return cell;
}

/*
 * apic = auto takes the VMM's own local APIC where something is injected and KVM's
 * elsewhere. Cells that are compared must not differ in that: one choice for all.
 */
static void job_one_apic(struct job *job)
{
	bool some = false, all = true;

	for (u32 i = 0; i < job->cells->len; i++) {
		const struct cell *cell = job->cells->pdata[i];

		if (cell->scenario->apic != SCENARIO_APIC_AUTO)
			return;
		some |= scenario_needs_own_apic(cell->scenario);
		all &= scenario_needs_own_apic(cell->scenario);
	}
	if (!some || all)
		return;
	fb_info("vm.apic = xapic in all cells, since what some of them inject needs it");
	g_ptr_array_add(job->set, g_strdup("vm.apic=xapic"));
}

/* 1 KiB for each page that the guest touches (vmm/soft/line-model.h), and a tag of 4 bytes for each line of the caches. */
static u64 model_bytes(const struct cost_model *m, const struct scenario *s)
{
	u64 caches = s->sockets * (cost(m, cache_l3_kib) + s->cores * (cost(m, cache_l1_kib) + cost(m, cache_l2_kib))) * KIB;

	return m->memory ? s->memory / 4 + caches / 16 : 0;
}

/* vm.cost_model as a file: a name is one of the project's own. */
static bool cell_cost_model(struct cell *cell)
{
	const struct scenario *s = cell->scenario;
	const char *name = s->cost_model ? s->cost_model : "simple";
	struct cost_model model;

	if (!strcmp(name, "none")) {
		fb_err("%s: vm.cost_model = none: the soft engine's time is what a cost model says; auto is simple",
		       scenario_origin(s, "vm", "cost_model"));
		return false;
	}
	if (strchr(name, '/')) {
		cell->cost_model = g_strdup(name);
		if (!g_file_test(name, G_FILE_TEST_EXISTS)) {
			fb_err("%s: vm.cost_model: there is no file %s; the path is relative to the scenario's folder",
			       scenario_origin(s, "vm", "cost_model"), name);
			return false;
		}
	} else {
		g_autofree char *home = front_home(), *file = g_strconcat(name, ".ini", NULL);

		cell->cost_model = g_build_filename(home, "cost-models", file, NULL);
		if (!g_file_test(cell->cost_model, G_FILE_TEST_EXISTS)) {
			fb_err("%s: vm.cost_model = %s: there is no %s; a file of your own is written with a slash, ./%s",
			       scenario_origin(s, "vm", "cost_model"), name, cell->cost_model, file);
			return false;
		}
	}
	if (cost_file_load(cell->cost_model, &model) || cost_change(&model, s))
		return false;
	cell->model_bytes = model_bytes(&model, s);
	return true;
}

int job_settle(struct job *job)
{
	if (job->engine != ENGINE_SOFT) {
		job_one_apic(job);
		return STATUS_DONE;
	}
	for (u32 i = 0; i < job->cells->len; i++)
		if (!cell_cost_model(job->cells->pdata[i]))
			return STATUS_BAD_INPUT;
	return STATUS_DONE;
}

struct job *job_new(const char *path, GPtrArray *set)
{
	struct job *job = g_new0(struct job, 1);
	g_autoptr(GError) err = NULL;

	/* The VMM would read "-x.ini" as an option. */
	job->path = g_strconcat(*path == '-' ? "./" : "", path, NULL);
	job->set = g_ptr_array_new_with_free_func(g_free);
	for (u32 i = 0; i < set->len; i++)
		g_ptr_array_add(job->set, g_strdup(set->pdata[i]));
	job->cells = g_ptr_array_new_with_free_func(cell_free);
	job->scenario = scenario_load(job->path, (const char *const *)job->set->pdata, job->set->len);
	if (!job->scenario)
		goto fail;
	job->tmp = g_dir_make_tmp("faultbed-XXXXXX", &err);
	if (!job->tmp) {
		fb_err("no folder for temporary files: %s", err->message);
		goto fail;
	}
	job->matrix = scenario_cells(job->scenario);
	for (u32 i = 0; i < job->matrix; i++) {
		struct cell *cell = cell_new(job, i);

		if (!cell)
			goto fail;
		g_ptr_array_add(job->cells, cell);
	}
	return job;
fail:
	job_free(job);
	return NULL;
}

/* The folder has plain files only, all of ours; `keep` spares what was measured. */
static void remove_tmp(const char *path, bool keep)
{
	GDir *dir = g_dir_open(path, 0, NULL);
	const char *name;

	while (dir && (name = g_dir_read_name(dir))) {
		g_autofree char *file = g_build_filename(path, name, NULL);

		if (!keep || !(g_str_has_prefix(name, "records-") || !strcmp(name, "result.json")))
			unlink(file);
	}
	if (dir)
		g_dir_close(dir);
	if (!keep)
		rmdir(path);
}

void job_free(struct job *job)
{
	if (job->tmp)
		remove_tmp(job->tmp, job->keep);
	g_free(job->path);
	g_ptr_array_unref(job->set);
	g_ptr_array_unref(job->cells);
	scenario_free(job->scenario);
	g_free(job->engine_why);
	g_strfreev(job->snapshot);
	g_strfreev(job->trace);
	g_clear_pointer(&job->order, json_array_unref);
	g_free(job->trace_file);
	g_free(job->appliance_kernel);
	g_free(job->qemu);
	g_free(job->qemu_version);
	g_free(job->tmp);
	g_free(job->begin);
	g_free(job->finish);
	g_free(job);
}

/* Is the key of list[i] set again further on? */
static bool is_superseded(GPtrArray *list, u32 i)
{
	const char *set = list->pdata[i], *eq = strchr(set, '=');

	for (u32 k = i + 1; eq && k < list->len; k++)
		if (!strncmp(list->pdata[k], set, eq - set + 1))
			return true;
	return false;
}

char *job_trace_file(const struct job *job, u32 i)
{
	return job->cells->len > 1 ? g_strdup_printf("%s.%u", job->trace_file, i + 1) : g_strdup(job->trace_file);
}

static void add_trace(const struct job *job, const struct cell *cell, GPtrArray *argv)
{
	guint i = 0;

	if (!job->trace_file)
		return;
	g_ptr_array_find(job->cells, cell, &i);
	g_ptr_array_add(argv, g_strdup("--trace"));
	g_ptr_array_add(argv, job_trace_file(job, i));
	for (char **o = job->trace; o && *o; o++)
		g_ptr_array_add(argv, g_strdup(*o));
}

/* A repeat of its own is the first one of a VM whose seed is that repeat's. */
static void add_repeat(const struct cell *cell, int repeat, GPtrArray *set)
{
	if (repeat < 0)
		return;
	g_ptr_array_add(set, g_strdup("run.repeat=1"));
	g_ptr_array_add(set, g_strdup_printf("run.seed=%" G_GUINT64_FORMAT, cell->scenario->seed + (u64)repeat));
}

char **job_argv(const struct job *job, const struct cell *cell, int repeat, const char *vmm, const char *kernel, const char *initrd,
		const char *disk, const char *records)
{
	GPtrArray *argv = g_ptr_array_new();
	g_autoptr(GPtrArray) set = g_ptr_array_new_with_free_func(g_free);

	for (u32 i = 0; i < job->set->len; i++)
		g_ptr_array_add(set, g_strdup(job->set->pdata[i]));
	for (char **o = cell->set; *o; o++)
		g_ptr_array_add(set, g_strdup(*o));
	add_repeat(cell, repeat, set);
	g_ptr_array_add(argv, g_strdup(vmm));
	g_ptr_array_add(argv, g_strdup("run"));
	g_ptr_array_add(argv, g_strdup(job->path));
	for (u32 i = 0; i < set->len; i++) {
		if (is_superseded(set, i))
			continue;
		g_ptr_array_add(argv, g_strdup("--set"));
		g_ptr_array_add(argv, g_strdup(set->pdata[i]));
	}

	const char *const rest[] = { "--cell", cell->name, "--kernel", kernel, "--initrd", initrd,
				     "--engine", job->engine == ENGINE_NESTED ? "kvm" : engine_name(job->engine),
				     "-o", records };

	for (size_t i = 0; i < ARRAY_SIZE(rest); i++)
		g_ptr_array_add(argv, g_strdup(rest[i]));
	if (disk) {
		g_ptr_array_add(argv, g_strdup("--disk"));
		g_ptr_array_add(argv, g_strdup(disk));
	}
	if (cell->cost_model) {
		g_ptr_array_add(argv, g_strdup("--cost-model"));
		g_ptr_array_add(argv, g_strdup(cell->cost_model));
	}
	for (char **o = job->snapshot; o && *o; o++)
		g_ptr_array_add(argv, g_strdup(*o));
	add_trace(job, cell, argv);
	if (job->no_park)
		g_ptr_array_add(argv, g_strdup("--no-park"));
	if (job->profile)
		g_ptr_array_add(argv, g_strdup("--profile"));
	if (job->trust) {
		g_ptr_array_add(argv, g_strdup("--trust"));
		g_ptr_array_add(argv, g_strdup(job->trust));
	}
	g_ptr_array_add(argv, NULL);
	return (char **)g_ptr_array_free(argv, FALSE);
}

char *job_trace_input(const struct cell *cell, const char *value)
{
	static const char trace[] = "trace:";
	g_autofree char *dir = g_path_get_dirname(cell->scenario->path), *path = NULL;

	if (!g_str_has_prefix(value, trace))
		return NULL;
	value += strlen(trace);
	path = g_path_is_absolute(value) ? g_strdup(value) : g_build_filename(dir, value, NULL);
	return g_canonicalize_filename(path, NULL);
}

u64 job_disk_bytes(const struct cell *cell)
{
	GStatBuf st;

	return cell->disk && !cell->scenario->disk_read_only && !g_stat(cell->disk, &st) ? (u64)st.st_size : 0;
}

s64 job_cell_limit_us(const struct job *job, const struct cell *cell)
{
	u64 ns = scenario_host_limit(cell->scenario, job->engine == ENGINE_SOFT);

	/* On virtual time run.timeout is none of the host's. */
	if (job->engine != ENGINE_SOFT)
		ns = MIN(ns ? ns : UINT64_MAX, cell->scenario->timeout_ns);
	return ns / NSEC_PER_USEC + LEAVE_SLACK_S * G_USEC_PER_SEC;
}

void job_vmm_line(struct job *job, u32 i, const char *line)
{
	static const char progress[] = "progress: ", error[] = "error: ";
	struct cell *cell = job->cells->pdata[i];

	if (g_str_has_prefix(line, progress)) {
		line += strlen(progress);
		/* The VMM names the cell; here it has a number already. */
		if (g_str_has_prefix(line, cell->name) &&
		    g_str_has_prefix(line + strlen(cell->name), ": "))
			line += strlen(cell->name) + 2;
		fb_info("cell %u/%u: %s", cell->nr, job->matrix, line);
		return;
	}
	/* The first error is the cause; further ones tell what followed. */
	if (g_str_has_prefix(line, error) && !cell->why)
		cell->why = g_strdup(line + strlen(error));
	fprintf(stderr, "%s\n", line);
}

void job_cell_done(struct job *job, u32 i, bool signaled, int status)
{
	struct cell *cell = job->cells->pdata[i];
	int before = cell->tried ? cell->status : STATUS_DONE;

	cell->tried = true;
	if (signaled && job->signals.count) {
		cell->status = STATUS_INTERRUPTED;
		return;
	}
	if (signaled) {
		g_free(cell->why);
		cell->why = g_strdup_printf("the VMM was ended by signal %d", status);
		cell->status = STATUS_INTERNAL;
		return;
	}
	cell->status = front_worse(before, status);
	if (status > STATUS_GUEST_DIED && status != STATUS_INTERRUPTED) {
		cell->status = STATUS_INTERNAL;
		if (!cell->why)
			cell->why = g_strdup_printf("the VMM left with status %d", status);
	}
}

void job_cell_forget(struct cell *cell)
{
	g_clear_pointer(&cell->vm, json_object_unref);
	g_clear_pointer(&cell->end, json_object_unref);
	g_clear_pointer(&cell->why, g_free);
	json_array_unref(cell->repeats);
	cell->repeats = json_array_new();
	cell->rank = 0;
	cell->tried = false;
	cell->status = STATUS_DONE;
}

void job_cell_ended(struct cell *cell)
{
	const char *why = summary_string(cell->end, "why", "");

	/* The VMM's own account is better than the last line it happened to write. */
	if (*why && cell->status != STATUS_DONE) {
		g_free(cell->why);
		cell->why = g_strdup(why);
	}
}

void job_cell_check(struct cell *cell)
{
	u32 repeats = json_array_get_length(cell->repeats);

	if (!cell->tried || cell->status != STATUS_DONE)
		return;
	if (repeats >= cell->scenario->repeat && cell->end)
		return;
	/* A guest without our init measures nothing; that it left with the value for "good" is all there is to know. */
	if (cell->end && !repeats && summary_number(cell->end, "measured", 1) == 0 &&
	    summary_number(cell->end, "guest_exit", 0) == 1)
		return;
	g_free(cell->why);
	cell->why = repeats < cell->scenario->repeat
			    ? g_strdup_printf("%u of %u repeats arrived", repeats,
					      cell->scenario->repeat)
			    : g_strdup("the VMM's last record did not arrive");
	cell->status = STATUS_INTERNAL;
	fb_err("cell %s: %s", cell->name, cell->why);
}

int job_status(const struct job *job)
{
	int status = STATUS_DONE;

	for (u32 i = 0; i < job->cells->len; i++) {
		const struct cell *cell = job->cells->pdata[i];

		if (cell->tried)
			status = front_worse(status, cell->status);
		else
			status = front_worse(status, job->signals.count || job->look ? STATUS_INTERRUPTED :
								   STATUS_INTERNAL);
	}
	return status;
}
