// SPDX-License-Identifier: GPL-2.0-only
/* What of the host moves results: recorded with each of them. */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <glib.h>

#include "base/types.h"
#include "core/host.h"

/* Name in the result and the file it is read from; a missing file is left out. */
static const struct { const char *name, *path; } host_fact[] = {
	{ "cpufreq.governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor" },
	{ "cpufreq.boost", "/sys/devices/system/cpu/cpufreq/boost" },
	{ "intel_pstate.no_turbo", "/sys/devices/system/cpu/intel_pstate/no_turbo" },
	{ "smt", "/sys/devices/system/cpu/smt/control" },
	{ "thp", "/sys/kernel/mm/transparent_hugepage/enabled" },
	{ "thp.shmem", "/sys/kernel/mm/transparent_hugepage/shmem_enabled" },
	{ "ksm", "/sys/kernel/mm/ksm/run" },
	{ "numa_balancing", "/proc/sys/kernel/numa_balancing" },
	{ "unprivileged_userfaultfd", "/proc/sys/vm/unprivileged_userfaultfd" },
	{ "clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource" },
	{ "kvm.halt_poll_ns", "/sys/module/kvm/parameters/halt_poll_ns" },
	{ "kvm.nx_huge_pages", "/sys/module/kvm/parameters/nx_huge_pages" },
	{ "kvm.tdp_mmu", "/sys/module/kvm/parameters/tdp_mmu" },
	{ "kvm.enable_pmu", "/sys/module/kvm/parameters/enable_pmu" },
	{ "kvm_intel.ept", "/sys/module/kvm_intel/parameters/ept" },
	{ "kvm_intel.eptad", "/sys/module/kvm_intel/parameters/eptad" },
	{ "kvm_intel.unrestricted_guest", "/sys/module/kvm_intel/parameters/unrestricted_guest" },
	{ "kvm_intel.vpid", "/sys/module/kvm_intel/parameters/vpid" },
	{ "kvm_intel.enable_apicv", "/sys/module/kvm_intel/parameters/enable_apicv" },
	{ "kvm_intel.enable_ipiv", "/sys/module/kvm_intel/parameters/enable_ipiv" },
	{ "kvm_intel.ple_gap", "/sys/module/kvm_intel/parameters/ple_gap" },
	{ "kvm_intel.ple_window", "/sys/module/kvm_intel/parameters/ple_window" },
	{ "kvm_amd.npt", "/sys/module/kvm_amd/parameters/npt" },
	{ "kvm_amd.avic", "/sys/module/kvm_amd/parameters/avic" },
	{ "kvm_amd.vgif", "/sys/module/kvm_amd/parameters/vgif" },
	{ "kvm_amd.vls", "/sys/module/kvm_amd/parameters/vls" },
	{ "kvm_amd.pause_filter_count", "/sys/module/kvm_amd/parameters/pause_filter_count" },
	{ "kvm_amd.pause_filter_thresh", "/sys/module/kvm_amd/parameters/pause_filter_thresh" },
};

/* "always [madvise] never" means madvise. */
static void host_selected(char *text)
{
	char *open = strchr(text, '['), *close = open ? strchr(open, ']') : NULL;

	if (!close)
		return;
	memmove(text, open + 1, (size_t)(close - open - 1));
	text[close - open - 1] = 0;
}

static void host_fact_add(GString *out, const char *name, const char *value)
{
	g_string_append_printf(out, "%s=%s\n", name, value);
}

/* The first CPU's model. Cells of one result may come from several hosts. */
static void host_cpu(GString *out)
{
	g_autofree char *text = NULL;
	const char *line, *colon;

	if (!g_file_get_contents("/proc/cpuinfo", &text, NULL, NULL))
		return;
	line = strstr(text, "model name");
	colon = line ? strchr(line, ':') : NULL;
	if (colon) {
		g_autofree char *model = g_strndup(colon + 1, strcspn(colon + 1, "\n"));

		host_fact_add(out, "cpu", g_strstrip(model));
	}
}

/* Time that an outer hypervisor took from us since boot, in ticks: a share that grows explains noise. */
static void host_steal(GString *out)
{
	unsigned long long user, nice, sys, idle, iowait, irq, softirq, steal;
	char *text = NULL, value[32];

	if (g_file_get_contents("/proc/stat", &text, NULL, NULL) &&
	    sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &sys, &idle, &iowait, &irq,
		   &softirq, &steal) == 8) {
		g_snprintf(value, sizeof(value), "%llu", steal);
		host_fact_add(out, "steal_ticks", value);
	}
	g_free(text);
}

char *host_describe(struct vm *vm)
{
	GString *out = g_string_new(NULL);
	struct utsname uts;
	char *text;
	size_t i;

	if (uname(&uts) == 0)
		host_fact_add(out, "kernel", uts.release);
	host_cpu(out);
	text = g_strdup_printf("%ld", sysconf(_SC_NPROCESSORS_ONLN));
	host_fact_add(out, "cpus_online", text);
	g_free(text);
	for (i = 0; i < ARRAY_SIZE(host_fact); i++) {
		if (!g_file_get_contents(host_fact[i].path, &text, NULL, NULL))
			continue;
		g_strdelimit(g_strstrip(text), "\n", ' ');
		host_selected(text);
		host_fact_add(out, host_fact[i].name, text);
		g_free(text);
	}
	host_steal(out);
	return g_string_free(out, FALSE);
}
