// SPDX-License-Identifier: GPL-2.0-only
/* What faultbed run decides before it runs anything: the engine, and whether that has what is asked for. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "core/trace.h"
#include "peer-vm.h"
#include "run-options.h"

/* What `faultbed-vmm probe` says: "kvm: yes: ..." or "kvm: no: WHY". true if it can be used. */
static bool probe_kvm(char **says)
{
	g_autofree char *vmm = front_vmm();
	char *const argv[] = { vmm, "probe", NULL };
	g_autoptr(GError) err = NULL;
	int status = 0;

	if (!g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_STDERR_TO_DEV_NULL, NULL, NULL, says,
			  NULL, &status, &err)) {
		*says = g_strdup_printf("%s (make builds it)", err->message);
		return false;
	}
	g_strchomp(*says);
	return g_spawn_check_wait_status(status, NULL);
}

bool run_kvm_usable(void)
{
	g_autofree char *says = NULL;

	return probe_kvm(&says);
}

/* The sentence behind "kvm: no: ". */
static const char *probe_reason(const char *says)
{
	static const char no[] = "kvm: no: ";

	return g_str_has_prefix(says, no) ? says + strlen(no) : says;
}

/* Which QEMU, and its version. */
static int find_qemu(struct job *job)
{
	job->qemu = front_qemu();
	if (!job->qemu) {
		fb_err("engine %s needs qemu-system-x86_64, which is not installed: make deps installs it", engine_name(job->engine));
		return STATUS_HOST;
	}

	const char *const argv[] = { job->qemu, "--version", NULL };
	g_autofree char *version = front_output_of(argv);

	if (!version) {
		fb_err("%s --version does not work", job->qemu);
		return STATUS_HOST;
	}
	job->qemu_version = g_strndup(version, strcspn(version, "\n("));
	g_strchomp(job->qemu_version);
	return STATUS_DONE;
}

/* Nested needs a kernel to carry the VMM. */
static int prepare_nested(struct job *job, const struct run_options *opt)
{
	struct cell *first = job->cells->pdata[0];
	int status = find_qemu(job);

	if (status)
		return status;
	job->trust = NESTED_TRUST;
	job->appliance_kernel =
		opt->appliance_kernel ? g_strdup(opt->appliance_kernel) : front_kernel();
	/* Without the project's own kernel the guest's may do; the appliance says if it has no KVM. */
	if (!opt->appliance_kernel && !g_file_test(job->appliance_kernel, G_FILE_TEST_EXISTS)) {
		g_free(job->appliance_kernel);
		job->appliance_kernel = g_strdup(first->kernel);
	}
	if (access(job->appliance_kernel, R_OK)) {
		fb_err("%s: the appliance's kernel cannot be read", job->appliance_kernel);
		return STATUS_BAD_INPUT;
	}
	return STATUS_DONE;
}

/* QEMU, by itself or by libvirt, and who runs its guests' CPUs. */
static int prepare_peer(struct job *job, const struct run_options *opt, bool kvm)
{
	int status = find_qemu(job);

	job->peer_kvm = kvm;
	if (!kvm)
		job->trust = PEER_TCG_TRUST;
	if (!status)
		status = peer_prepare(job);
	return !status && job->engine == ENGINE_LIBVIRT ? peer_libvirt_connect(job, opt->connect) : status;
}

/* What is said of snapshots goes to the VMM; paths are the caller's. Only one option at a time. */
static int choose_snapshot(struct job *job, const struct run_options *opt)
{
	const char *name = opt->snapshot ? "--snapshot" : opt->save_snapshot ? "--save-snapshot" : "--no-snapshot";
	const char *file = opt->snapshot ? opt->snapshot : opt->save_snapshot;
	g_autofree char *path = file ? g_canonicalize_filename(file, NULL) : NULL;

	if (!!opt->snapshot + !!opt->save_snapshot + opt->no_snapshot > 1) {
		fb_err("--snapshot, --save-snapshot and --no-snapshot exclude each other");
		return STATUS_BAD_INPUT;
	}
	if (opt->save_snapshot && job->cells->len > 1) {
		fb_err("--save-snapshot %s: one file, and %u cells; choose one with --set", opt->save_snapshot,
		       job->cells->len);
		return STATUS_BAD_INPUT;
	}
	if (file && job->engine != ENGINE_SOFT) {
		fb_err("%s: engine %s has no snapshots, since its guests depend on the host; soft has", name,
		       engine_name(job->engine));
		return STATUS_HOST;
	}
	if (job->engine == ENGINE_SOFT && (file || opt->no_snapshot)) {
		job->snapshot = g_new0(char *, 3);
		job->snapshot[0] = g_strdup(name);
		job->snapshot[1] = g_steal_pointer(&path);
	}
	return STATUS_DONE;
}

/*
 * Is what is asked of traces sound? Whether the engine can see the kinds of events is left to the VMM, which
 * knows the cell's local APIC.
 */
static int choose_trace(struct job *job, const struct run_options *opt)
{
	g_autofree char *err = NULL;
	g_autoptr(GPtrArray) list = g_ptr_array_new();
	u32 mask;

	if (!opt->trace) {
		if (!opt->trace_events && !opt->trace_from)
			return STATUS_DONE;
		fb_err("--trace-events and --trace-from go with --trace FILE");
		return STATUS_BAD_INPUT;
	}
	if (opt->trace_events && trace_parse_kinds(opt->trace_events, &mask, &err)) {
		fb_err("--trace-events: %s", err);
		return STATUS_BAD_INPUT;
	}
	if (opt->trace_from && strcmp(opt->trace_from, "start") && strcmp(opt->trace_from, "command")) {
		fb_err("--trace-from %s: start or command", opt->trace_from);
		return STATUS_BAD_INPUT;
	}
	if (job->engine == ENGINE_NESTED || peer_ops(job->engine)) {
		fb_err("--trace: engine %s has none, since its VMM runs %s; soft has", engine_name(job->engine),
		       job->engine == ENGINE_NESTED ? "inside the appliance" : "beside the guest");
		return STATUS_HOST;
	}
	job->trace_file = g_canonicalize_filename(opt->trace, NULL);
	if (opt->trace_events) {
		g_ptr_array_add(list, g_strdup("--trace-events"));
		g_ptr_array_add(list, g_strdup(opt->trace_events));
	}
	if (opt->trace_from) {
		g_ptr_array_add(list, g_strdup("--trace-from"));
		g_ptr_array_add(list, g_strdup(opt->trace_from));
	}
	g_ptr_array_add(list, NULL);
	job->trace = (char **)g_ptr_array_free(g_steal_pointer(&list), FALSE);
	return STATUS_DONE;
}

/* Does the engine know where time goes? */
static int choose_profile(struct job *job, const struct run_options *opt)
{
	if (opt->profile && job->engine != ENGINE_SOFT) {
		fb_err("--profile: engine %s cannot tell where time goes, since its time is the host's; soft can",
		       engine_name(job->engine));
		return STATUS_HOST;
	}
	if (opt->no_park && job->engine != ENGINE_SOFT) {
		fb_err("--no-park: engine %s parks no vCPU that waits in a loop; soft does", engine_name(job->engine));
		return STATUS_HOST;
	}
	job->profile = opt->profile;
	job->no_park = opt->no_park;
	return STATUS_DONE;
}

/*
 * Cells that will be compared, on an engine whose time is the host's: each repeat is a VM of its own, and they take turns at random. Where
 * time is virtual, neighbours and order are not noticed.
 */
static int choose_order(struct job *job, const struct run_options *opt)
{
	bool factor = false, repeats = false;

	if (opt->interleave && job->engine == ENGINE_NESTED) {
		fb_err("--interleave: engine %s runs its cells in one machine, one after another; kvm, soft and qemu have it",
		       engine_name(job->engine));
		return STATUS_HOST;
	}
	for (u32 i = 0; i < job->cells->len; i++) {
		const struct cell *cell = job->cells->pdata[i];

		repeats |= cell->scenario->repeat > 1;
		for (char **o = cell->set; *o; o++)
			factor |= g_str_has_prefix(*o, "guest.kernel=") || g_str_has_prefix(*o, "guest.knob.");
	}
	job->interleave = opt->interleave || ((job->engine == ENGINE_KVM || peer_ops(job->engine)) && factor && repeats);
	if (job->interleave && job->trace_file) {
		fb_err("--trace: repeats that are VMs of their own (--interleave, or kernels and knobs compared on kvm) have no trace file each");
		return STATUS_BAD_INPUT;
	}
	return STATUS_DONE;
}

static int choose_memory(struct job *job, const struct run_options *opt)
{
	g_autofree char *err = NULL;

	if (opt->memory && (scenario_parse_size(opt->memory, &job->memory, &err) || !job->memory)) {
		fb_err("--memory %s: %s", opt->memory, err ? err : "a size, such as 16GiB");
		return STATUS_BAD_INPUT;
	}
	return STATUS_DONE;
}

static int choose_resume(const struct job *job, const struct run_options *opt)
{
	if (!opt->resume)
		return STATUS_DONE;
	if (!opt->output) {
		fb_err("finished cells are kept beside the result: name that, -o FILE.json");
		return STATUS_BAD_INPUT;
	}
	if (job->trace_file || opt->save_snapshot) {
		fb_err("a cell that was finished before writes no trace and no snapshot; leave out --trace and --save-snapshot");
		return STATUS_BAD_INPUT;
	}
	if (job->engine == ENGINE_NESTED) {
		fb_err("engine nested runs all cells in one machine and keeps none by itself; soft and kvm do");
		return STATUS_HOST;
	}
	return STATUS_DONE;
}

/* "3", "1-4,7" */
static int parse_cells(const char *text, u32 nr, bool *want)
{
	g_auto(GStrv) parts = g_strsplit(text, ",", -1);

	for (char **p = parts; *p; p++) {
		g_auto(GStrv) ends = g_strsplit(*p, "-", 2);
		guint64 first = 0, last = 0;
		bool ok = ends[0] && g_ascii_string_to_unsigned(ends[0], 10, 1, nr, &first, NULL) &&
			  g_ascii_string_to_unsigned(ends[1] ? ends[1] : ends[0], 10, 1, nr, &last, NULL) && first <= last;

		if (!ok) {
			fb_err("--cells %s: numbers of cells, 1 to %u, such as 1-3,7", text, nr);
			return -EINVAL;
		}
		memset(want + first - 1, true, last - first + 1);
	}
	return 0;
}

/* The others are somebody else's. */
static int choose_cells(struct job *job, const struct run_options *opt)
{
	g_autofree bool *want = g_new0(bool, job->cells->len);

	if (!opt->cells)
		return STATUS_DONE;
	if (job->interleave) {
		fb_err("--cells: cells that are compared on the host's clock, or with --interleave, take turns on one host; run them all there");
		return STATUS_BAD_INPUT;
	}
	if (parse_cells(opt->cells, job->cells->len, want))
		return STATUS_BAD_INPUT;
	for (u32 i = job->cells->len; i-- > 0;)
		if (!want[i])
			g_ptr_array_remove_index(job->cells, i);
	return STATUS_DONE;
}

/* Choose, and say on the first line what was chosen and why. */
int run_choose(struct job *job, const struct run_options *opt)
{
	enum scenario_engine want = job->scenario->engine;
	g_autofree char *says = NULL;
	bool kvm;

	kvm = probe_kvm(&says);
	/* Jobs of kvm may well be written and collected where there is none. */
	if (want == ENGINE_KVM && !kvm && !opt->emit && !opt->missing && !opt->collect) {
		fb_err("engine = kvm: %s; engine = soft needs none of it", probe_reason(says));
		return STATUS_HOST;
	}
	job->engine = want == ENGINE_AUTO ? kvm ? ENGINE_KVM : ENGINE_SOFT : want;
	if (want == ENGINE_AUTO)
		job->engine_why = g_strdup_printf("auto: %s", kvm ? says : probe_reason(says));
	else
		job->engine_why = g_strdup_printf("asked for by %s",
						  scenario_origin(job->scenario, "vm", "engine"));
	if (!opt->quiet)
		fb_info("engine: %s (%s)%s", engine_name(job->engine), job->engine_why,
			job->engine == ENGINE_NESTED || (peer_ops(job->engine) && !kvm) ? "; its times and rates mean nothing" :
			job->engine == ENGINE_SOFT ? "; its time is virtual" : "");
	job->parallel = (u32)opt->jobs;
	if (opt->connect && job->engine != ENGINE_LIBVIRT) {
		fb_err("--connect %s: for engine libvirt only, and this is %s", opt->connect, engine_name(job->engine));
		return STATUS_BAD_INPUT;
	}

	int status = choose_snapshot(job, opt);

	if (!status)
		status = choose_trace(job, opt);
	if (!status)
		status = choose_profile(job, opt);
	if (!status)
		status = choose_order(job, opt);
	if (!status)
		status = choose_memory(job, opt);
	if (!status)
		status = choose_resume(job, opt);
	if (!status)
		status = job_settle(job);
	/* What is settled is so for all cells. */
	if (!status)
		status = choose_cells(job, opt);
	if (!status && job->engine == ENGINE_NESTED)
		status = prepare_nested(job, opt);
	if (!status && peer_ops(job->engine))
		status = prepare_peer(job, opt, kvm);
	return status;
}
