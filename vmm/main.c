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
#include "scenario.h"
#include "session.h"
#include "vm.h"

struct options {
	char **set;
	char *cell, *kernel, *initrd, *cost_model, *output, *engine, *snapshot, *save_snapshot;
	char **trust;
	gboolean quiet, verbose, no_snapshot;
	int console_fd;
};

/* Can this host run VMs? One line either way, for a person and for the front end. */
static enum status cmd_probe(const struct options *opt)
{
	const struct engine_ops *engine = vm_engine(opt->engine ? opt->engine : "kvm");
	struct engine_caps caps;
	char why[256];

	if (!engine) {
		fb_err("engine %s: this VMM has kvm and soft", opt->engine);
		return STATUS_BAD_INPUT;
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
	printf("binary_stats: %s: KVM_GET_STATS_FD, for counters kvm_*\n", caps.binary_stats ? "yes" : "no");
	return STATUS_DONE;
}

/* SIGINT and SIGTERM end the VM in an orderly way, with what was measured. */
static int make_signal_fd(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

static enum status run_cell(const struct scenario *s, const struct options *opt, struct session_params *params)
{
	const struct engine_ops *engine = vm_engine(opt->engine ? opt->engine : "kvm");
	struct vm_setup setup = {
		.kernel = opt->kernel ? opt->kernel : s->kernel,
		.initrd = opt->initrd ? opt->initrd : s->initrd,
		.cost_model = opt->cost_model,
	};
	struct vm *vm = NULL;
	enum status status;
	char **t;

	if (!engine) {
		fb_err("engine = %s: this VMM has kvm and soft", opt->engine);
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
	status = vm_build(s, engine, &vm, &setup);
	if (status != STATUS_DONE) {
		session_record_failure(params, status);
		return status;
	}
	for (t = opt->trust; t && *t; t++)
		g_ptr_array_add(setup.trust, g_strdup(*t));
	status = session_run(vm, s, &setup, params);
	vm_teardown(vm, &setup);
	return status;
}

static enum status cmd_run(const char *path, const struct options *opt)
{
	struct session_params params = {
		.cell = opt->cell ? opt->cell : "all", .record_fd = -1, .console_fd = opt->console_fd,
		.progress = !opt->quiet,
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
	params.signal_fd = make_signal_fd();
	status = run_cell(s, opt, &params);
	if (params.record_fd >= 0)
		close(params.record_fd);
	scenario_free(s);
	return status;
}

int main(int argc, char **argv)
{
	struct options opt = { .console_fd = STDOUT_FILENO };
	const GOptionEntry entries[] = {
		{ "set", 's', 0, G_OPTION_ARG_STRING_ARRAY, &opt.set, "override a key of the scenario", "SECTION.KEY=VALUE" },
		{ "cell", 0, 0, G_OPTION_ARG_STRING, &opt.cell, "name of the cell in the records", "NAME" },
		{ "kernel", 0, 0, G_OPTION_ARG_FILENAME, &opt.kernel, "kernel image, instead of guest.kernel", "FILE" },
		{ "initrd", 0, 0, G_OPTION_ARG_FILENAME, &opt.initrd, "initramfs, instead of guest.initrd", "FILE" },
		{ "cost-model", 0, 0, G_OPTION_ARG_FILENAME, &opt.cost_model, "engine soft: what vm.cost_model means", "FILE" },
		{ "snapshot", 0, 0, G_OPTION_ARG_FILENAME, &opt.snapshot, "start from this booted guest", "FILE" },
		{ "save-snapshot", 0, 0, G_OPTION_ARG_FILENAME, &opt.save_snapshot, "boot, and keep the booted guest in FILE", "FILE" },
		{ "no-snapshot", 0, 0, G_OPTION_ARG_NONE, &opt.no_snapshot, "boot, and keep nothing", NULL },
		{ "output", 'o', 0, G_OPTION_ARG_FILENAME, &opt.output, "append records to FILE, one JSON object a line", "FILE" },
		{ "engine", 0, 0, G_OPTION_ARG_STRING, &opt.engine, "kvm (the default) or soft", "NAME" },
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
	if (!g_option_context_parse(context, &argc, &argv, &error)) {
		fb_err("%s (faultbed-vmm --help lists the options)", error->message);
		g_error_free(error);
	} else if (argc == 2 && strcmp(argv[1], "probe") == 0) {
		status = cmd_probe(&opt);
	} else if (!!opt.snapshot + !!opt.save_snapshot + opt.no_snapshot > 1) {
		fb_err("--snapshot, --save-snapshot and --no-snapshot exclude each other");
	} else if (argc == 3 && strcmp(argv[1], "run") == 0) {
		status = cmd_run(argv[2], &opt);
	} else {
		fb_err("usage: faultbed-vmm run SCENARIO | probe (faultbed-vmm --help lists the options)");
	}
	g_option_context_free(context);
	g_strfreev(opt.set);
	g_strfreev(opt.trust);
	g_free(opt.cell);
	g_free(opt.kernel);
	g_free(opt.initrd);
	g_free(opt.cost_model);
	g_free(opt.output);
	g_free(opt.engine);
	g_free(opt.snapshot);
	g_free(opt.save_snapshot);
	return (int)status;
}
