// SPDX-License-Identifier: GPL-2.0-only
/*
 * faultbed-vmm: runs one cell of a scenario on an engine of this host.
 *
 *	faultbed-vmm probe [--verbose]
 *	faultbed-vmm run SCENARIO [--set section.key=value]... [options]
 */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/version.h"
#include "core/trace.h"
#include "peer.h"
#include "scenario.h"
#include "session.h"
#include "vm.h"

struct options {
	char **set;
	char *cell, *kernel, *initrd, *disk, *cost_model, *output, *engine, *snapshot, *save_snapshot;
	char *trace, *trace_events, *trace_from;
	char **trust;
	char *attach, **ram;
	gboolean quiet, verbose, no_snapshot, no_park, profile;
	int console_fd;
};

/* Can this host run VMs? One line either way, for a person and for the front end. */
static enum status cmd_probe(const struct options *opt)
{
	const struct engine_ops *engine = vm_engine(opt->engine ? opt->engine : "kvm");
	struct engine_caps caps;
	char why[256];

	if (!engine) {
		fb_err("engine %s: this VMM has kvm, soft, qemu and libvirt", opt->engine);
		return STATUS_BAD_INPUT;
	}
	if (engine_is_peer(engine)) {
		printf("%s: the front end knows (faultbed doctor)\n", engine->name);
		return STATUS_DONE;
	}
	if (engine->probe(&caps, why, sizeof(why))) {
		printf("%s: no: %s\n", engine->name, why);
		return STATUS_HOST;
	}
	if (caps.virtual_time) {
		printf("%s: yes: %s CPUs, up to %u vCPUs, virtual time\n", engine->name,
		       caps.vendor == VENDOR_AMD ? "AMD" : "Intel", caps.max_vcpus);
		return STATUS_DONE;
	}
	printf("%s: yes: %s CPUs, up to %u vCPUs, TSC %.0f MHz\n", engine->name,
	       caps.vendor == VENDOR_AMD ? "AMD" : "Intel", caps.max_vcpus, (double)caps.tsc_hz / 1e6);
	if (!opt->verbose)
		return STATUS_DONE;
	printf("apic_kernel: %s: split irqchip, for apic = kernel\n", caps.apic_kernel ? "yes" : "no");
	printf("ept_serve: %s: userfaultfd minor faults on shared memory, for inject.ept.*\n",
	       caps.ept_serve ? "yes" : "no");
	printf("ept_protect: %s: userfaultfd write protection of shared memory, for inject.ept.write_protect\n",
	       caps.ept_protect ? "yes" : "no");
	printf("binary_stats: %s: KVM_GET_STATS_FD, for counters kvm_*\n", caps.binary_stats ? "yes" : "no");
	return STATUS_DONE;
}

/* SIGINT and SIGTERM end the VM in an orderly way, with what was measured; SIGUSR1 dumps its vCPUs. */
static void make_signal_fds(struct session_params *params)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	params->signal_fd = signalfd(-1, &set, SFD_CLOEXEC);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	params->dump_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	signal(SIGPIPE, SIG_IGN);
}

/*
 * The System.map that belongs to a kernel, or NULL: beside it, by that name or, as distributions have it,
 * with what follows "vmlinuz" in the kernel's.
 */
static char *find_system_map(const char *kernel)
{
	char *dir = g_path_get_dirname(kernel), *base = g_path_get_basename(kernel), *name, *path;

	name = g_strconcat("System.map", g_str_has_prefix(base, "vmlinuz") ? base + strlen("vmlinuz") : "", NULL);
	path = g_build_filename(dir, name, NULL);
	if (!g_file_test(path, G_FILE_TEST_IS_REGULAR))
		g_clear_pointer(&path, g_free);
	g_free(name);
	g_free(base);
	g_free(dir);
	return path;
}

static enum status start_trace(struct vm *vm, const struct options *opt, const struct vm_setup *setup)
{
	bool command_only = opt->trace_from && strcmp(opt->trace_from, "command") == 0;
	u32 mask = TRACE_ALL;
	char *err = NULL;

	if (!opt->trace)
		return STATUS_DONE;
	if (trace_parse_kinds(opt->trace_events ? opt->trace_events : "all", &mask, &err)) {
		fb_err("--trace-events: %s", err);
		g_free(err);
		return STATUS_BAD_INPUT;
	}
	if (trace_check(vm, &mask, &err)) {
		fb_err("--trace-events: %s", err);
		g_free(err);
		return STATUS_HOST;
	}
	return trace_open(vm, opt->trace, mask, setup->system_map, command_only) ? STATUS_BAD_INPUT : STATUS_DONE;
}

static enum status run_cell(const struct scenario *s, const struct options *opt, struct session_params *params)
{
	const struct engine_ops *engine = vm_engine(opt->engine ? opt->engine : "kvm");
	const struct peer_place place = { .folder = opt->attach, .ram = opt->ram };
	struct vm_setup setup = {
		.kernel = opt->kernel ? opt->kernel : s->kernel,
		.initrd = opt->initrd ? opt->initrd : s->initrd,
		.disk = opt->disk ? opt->disk : s->disk,
		.cost_model = opt->cost_model,
		.place = opt->attach ? &place : NULL,
	};
	struct vm *vm = NULL;
	enum status status;
	char **t;

	if (!engine) {
		fb_err("engine = %s: this VMM has kvm, soft, qemu and libvirt", opt->engine);
		return STATUS_HOST;
	}
	if (engine_is_peer(engine) != !!opt->attach) {
		fb_err(opt->attach ? "--attach: engine = %s runs its guests itself" :
		       "engine = %s: --attach says where the guest is (faultbed run starts one)", engine->name);
		return STATUS_BAD_INPUT;
	}
	if (engine_is_peer(engine) && opt->trace) {
		fb_err("--trace: engine = %s cannot: what happens in the guest is seen by QEMU only; kvm and soft can", engine->name);
		return STATUS_HOST;
	}
	if (!setup.kernel) {
		fb_err("%s: no kernel: give guest.kernel or --kernel (faultbed run finds the project's own)", s->path);
		return STATUS_BAD_INPUT;
	}
	if ((opt->snapshot || opt->save_snapshot) && !engine->save) {
		fb_err("engine = %s has no snapshots: its guests depend on the host; soft has", engine->name);
		return STATUS_HOST;
	}
	if (opt->profile && !engine->profile_start) {
		fb_err("--profile: engine = %s cannot tell where time goes, since its time is the host's; soft can", engine->name);
		return STATUS_HOST;
	}
	if (opt->no_park && !engine->park_until) {
		fb_err("--no-park: engine = %s parks no vCPU that waits in a loop; soft does", engine->name);
		return STATUS_HOST;
	}
	status = vm_build(s, engine, &vm, &setup);
	if (status != STATUS_DONE) {
		session_record_failure(params, status);
		return status;
	}
	vm->no_park = opt->no_park;
	for (t = opt->trust; t && *t; t++)
		g_ptr_array_add(setup.trust, g_strdup(*t));
	setup.system_map = find_system_map(setup.kernel);
	status = start_trace(vm, opt, &setup);
	if (status == STATUS_DONE)
		status = session_run(vm, s, &setup, params);
	else
		session_record_failure(params, status);
	/* The result stands; but it is not all that was asked for. */
	if (trace_close(vm) && status == STATUS_DONE)
		status = STATUS_BAD_INPUT;
	g_free(setup.system_map);
	vm_teardown(vm, &setup);
	return status;
}

static enum status cmd_run(const char *path, const struct options *opt)
{
	struct session_params params = {
		.cell = opt->cell ? opt->cell : "all", .record_fd = -1, .console_fd = opt->console_fd,
		.progress = !opt->quiet, .profile = opt->profile,
		.snapshot = { .load = opt->snapshot, .save = opt->save_snapshot, .off = opt->no_snapshot },
	};
	struct scenario *s = scenario_load(path, (const char *const *)opt->set,
					   opt->set ? g_strv_length(opt->set) : 0);
	enum status status;

	if (!s)
		return STATUS_BAD_INPUT;
	if (opt->output) {
		params.record_fd = open(opt->output, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0644);
		if (params.record_fd < 0) {
			fb_err("%s: %s", opt->output, g_strerror(errno));
			scenario_free(s);
			return STATUS_BAD_INPUT;
		}
	}
	make_signal_fds(&params);
	status = run_cell(s, opt, &params);
	if (params.record_fd >= 0)
		close(params.record_fd);
	scenario_free(s);
	return status;
}

static bool trace_options_ok(const struct options *opt)
{
	if (!opt->trace && (opt->trace_events || opt->trace_from)) {
		fb_err("--trace-events and --trace-from go with --trace FILE");
		return false;
	}
	if (opt->trace_from && strcmp(opt->trace_from, "start") && strcmp(opt->trace_from, "command")) {
		fb_err("--trace-from %s: start or command", opt->trace_from);
		return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct options opt = { .console_fd = STDOUT_FILENO };
	const GOptionEntry entries[] = {
		{ "set", 's', 0, G_OPTION_ARG_STRING_ARRAY, &opt.set, "override a key of the scenario", "SECTION.KEY=VALUE" },
		{ "cell", 0, 0, G_OPTION_ARG_STRING, &opt.cell, "name of the cell in the records", "NAME" },
		{ "kernel", 0, 0, G_OPTION_ARG_FILENAME, &opt.kernel, "kernel image, instead of guest.kernel", "FILE" },
		{ "initrd", 0, 0, G_OPTION_ARG_FILENAME, &opt.initrd, "initramfs, instead of guest.initrd", "FILE" },
		{ "disk", 0, 0, G_OPTION_ARG_FILENAME, &opt.disk, "disk image, instead of guest.disk (if that is not none)", "FILE" },
		{ "cost-model", 0, 0, G_OPTION_ARG_FILENAME, &opt.cost_model, "engine soft: what vm.cost_model means", "FILE" },
		{ "snapshot", 0, 0, G_OPTION_ARG_FILENAME, &opt.snapshot, "start from this booted guest", "FILE" },
		{ "save-snapshot", 0, 0, G_OPTION_ARG_FILENAME, &opt.save_snapshot, "boot, and keep the booted guest in FILE", "FILE" },
		{ "no-snapshot", 0, 0, G_OPTION_ARG_NONE, &opt.no_snapshot, "boot, and keep nothing", NULL },
		{ "no-park", 0, 0, G_OPTION_ARG_NONE, &opt.no_park, "execute loops that only wait (docs/soft-engine.md)", NULL },
		{ "profile", 0, 0, G_OPTION_ARG_NONE, &opt.profile, "say where the time went (docs/profile.md)", NULL },
		{ "trace", 0, 0, G_OPTION_ARG_FILENAME, &opt.trace, "write a trace (docs/tracing.md)", "FILE" },
		{ "trace-events", 0, 0, G_OPTION_ARG_STRING, &opt.trace_events, "kinds of events, joined by commas (all)", "LIST" },
		{ "trace-from", 0, 0, G_OPTION_ARG_STRING, &opt.trace_from, "start (of the run; the default) or command", "WHEN" },
		{ "output", 'o', 0, G_OPTION_ARG_FILENAME, &opt.output, "append records to FILE, one JSON object a line", "FILE" },
		{ "engine", 0, 0, G_OPTION_ARG_STRING, &opt.engine, "kvm (the default), soft, or qemu and libvirt with --attach", "NAME" },
		{ "attach", 0, 0, G_OPTION_ARG_FILENAME, &opt.attach, "engines qemu and libvirt: the folder of the guest's sockets (docs/peers.md)", "DIR" },
		{ "ram", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &opt.ram, "with --attach: the file of a node's RAM, once for each node that has memory", "FILE" },
		{ "trust", 0, 0, G_OPTION_ARG_STRING_ARRAY, &opt.trust, "a remark that belongs beside every rate", "TEXT" },
		{ "console-fd", 0, 0, G_OPTION_ARG_INT, &opt.console_fd, "where the guest's console goes, -1 = nowhere", "FD" },
		{ "quiet", 'q', 0, G_OPTION_ARG_NONE, &opt.quiet, "no progress lines", NULL },
		{ "verbose", 'v', 0, G_OPTION_ARG_NONE, &opt.verbose, "probe: all capabilities", NULL },
		{ 0 }
	};
	GOptionContext *context = g_option_context_new("run SCENARIO | probe - run one cell of a Faultbed scenario");
	enum status status = STATUS_BAD_INPUT;
	GError *error = NULL;

	setlocale(LC_NUMERIC, "C");
	g_option_context_add_main_entries(context, entries, NULL);
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		printf("faultbed-vmm %s\n", FAULTBED_VERSION);
		version_build(stdout);
		status = STATUS_DONE;
	} else if (!g_option_context_parse(context, &argc, &argv, &error)) {
		fb_err("%s (faultbed-vmm --help lists the options)", error->message);
		g_error_free(error);
	} else if (argc == 2 && strcmp(argv[1], "probe") == 0) {
		status = cmd_probe(&opt);
	} else if (!!opt.snapshot + !!opt.save_snapshot + opt.no_snapshot > 1) {
		fb_err("--snapshot, --save-snapshot and --no-snapshot exclude each other");
	} else if (!trace_options_ok(&opt)) {
		/* said there */
	} else if (argc == 3 && strcmp(argv[1], "run") == 0) {
		status = cmd_run(argv[2], &opt);
	} else {
		fb_err("usage: faultbed-vmm run SCENARIO | probe (faultbed-vmm --help lists the options)");
	}
	g_option_context_free(context);
	g_strfreev(opt.set);
	g_strfreev(opt.trust);
	g_strfreev(opt.ram);
	g_free(opt.attach);
	g_free(opt.cell);
	g_free(opt.kernel);
	g_free(opt.initrd);
	g_free(opt.disk);
	g_free(opt.cost_model);
	g_free(opt.output);
	g_free(opt.engine);
	g_free(opt.snapshot);
	g_free(opt.save_snapshot);
	g_free(opt.trace);
	g_free(opt.trace_events);
	g_free(opt.trace_from);
	return (int)status;
}
