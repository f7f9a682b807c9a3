// SPDX-License-Identifier: GPL-2.0-only
/*
 * faultbed doctor: what this host can do, item by item, and what would fix what
 * it cannot. Looks and tries, changes nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "front.h"
#include "peer-vm.h"

/* The oldest QEMU whose emulated SVM carried the nested appliance. */
#define QEMU_MIN_MAJOR	10
/* A guest of 1 GiB and the appliance around it. */
#define MEMORY_MIN_MIB	(1024 + 768)

enum grade { GOOD, NOTE, BAD };

static void item(enum grade grade, const char *name, const char *value, const char *fix)
{
	static const char *const mark[] = { [GOOD] = "ok  ", [NOTE] = "note", [BAD] = "no  " };

	printf(" %s  %-28s %s\n", mark[grade], name, value);
	if (fix && grade != GOOD)
		printf("       %-28s -> %s\n", "", fix);
}

/* First line of a small file, "" if it cannot be read; g_free(). */
static char *first_line(const char *path)
{
	g_autofree char *text = NULL;

	if (!g_file_get_contents(path, &text, NULL, NULL))
		return g_strdup("");
	text[strcspn(text, "\n")] = '\0';
	return g_strstrip(g_steal_pointer(&text));
}

/* "always [madvise] never" to "madvise"; the whole if nothing is chosen. */
static char *chosen(const char *path)
{
	char *line = first_line(path);
	char *open = strchr(line, '['), *close = open ? strchr(open, ']') : NULL;

	if (close) {
		char *word = g_strndup(open + 1, close - open - 1);

		g_free(line);
		return word;
	}
	return line;
}

/* /dev/kvm, and what the VMM itself says of it. true if the kvm engine works. */
static bool check_kvm(void)
{
	g_autofree char *vmm = front_vmm(), *out = NULL;
	char *const argv[] = { vmm, "probe", "--verbose", NULL };
	g_autoptr(GError) err = NULL;
	int status = 0;
	bool usable;

	printf("\nThe kvm engine\n");
	if (access("/dev/kvm", F_OK))
		item(NOTE, "/dev/kvm", "not there",
		     "a host with VT-x or AMD-V and kvm_intel or kvm_amd loaded; in a VM, nested virtualisation; in a container, --device /dev/kvm. engine = soft does without");
	else if (access("/dev/kvm", R_OK | W_OK))
		item(NOTE, "/dev/kvm", g_strerror(errno),
		     "add the user to the group kvm, or run as root");
	else
		item(GOOD, "/dev/kvm", "there", NULL);
	if (!g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_STDERR_TO_DEV_NULL, NULL, NULL, &out,
			  NULL, &status, &err)) {
		item(BAD, "faultbed-vmm", err->message, "make");
		return false;
	}
	usable = g_spawn_check_wait_status(status, NULL);

	g_auto(GStrv) lines = g_strsplit(out, "\n", -1);

	for (char **l = lines; *l; l++) {
		char *colon = strchr(*l, ':'), *says;

		if (!colon)
			continue;
		*colon = '\0';
		says = g_strstrip(colon + 1);
		item(g_str_has_prefix(says, "yes") ? GOOD : NOTE, *l, says, NULL);
	}
	return usable;
}

/* true if the soft engine works, which takes no more than a 64-bit x86. */
static bool check_soft(void)
{
	g_autofree char *vmm = front_vmm(), *home = front_home(), *out = NULL;
	g_autofree char *model = g_build_filename(home, "cost-models", "simple.ini", NULL);
	char *const argv[] = { vmm, "probe", "--engine", "soft", NULL };
	int status = 0;
	bool usable = g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_STDERR_TO_DEV_NULL, NULL, NULL, &out,
				   NULL, &status, NULL) && g_spawn_check_wait_status(status, NULL);
	const char *colon = out ? strchr(out, ':') : NULL;

	printf("\nThe soft engine\n");
	if (colon)
		out[strcspn(out, "\n")] = '\0';
	item(usable ? GOOD : NOTE, "soft", colon ? colon + 2 : "the VMM does not run", "make");
	if (access(model, R_OK))
		item(BAD, "cost-models/simple.ini", model, "it is part of the tree; FAULTBED_HOME names the tree");
	return usable && !access(model, R_OK);
}

/* Injecting into second-level faults needs a userfaultfd that serves faults of the kernel too. */
static void check_userfaultfd(void)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd >= 0) {
		item(GOOD, "userfaultfd", "allowed", NULL);
		close(fd);
		return;
	}
	if (errno == ENOSYS)
		item(NOTE, "userfaultfd", "not in this kernel",
		     "a kernel with CONFIG_USERFAULTFD, for inject.ept.*");
	else if (!access("/dev/userfaultfd", R_OK | W_OK))
		item(GOOD, "userfaultfd", "by /dev/userfaultfd", NULL);
	else
		item(NOTE, "userfaultfd", g_strerror(errno),
		     "for inject.ept.*: root, CAP_SYS_PTRACE, access to /dev/userfaultfd, or sysctl vm.unprivileged_userfaultfd=1");
}

/* true if QEMU can carry the appliance. */
static bool check_qemu(void)
{
	g_autofree char *qemu = front_qemu(), *version = NULL, *cpus = NULL;
	int major = 0;

	printf("\nThe nested engine\n");
	if (!qemu) {
		item(NOTE, "qemu-system-x86_64", "not installed",
		     "make deps (package qemu-system-x86)");
		return false;
	}

	const char *const argv[] = { qemu, "--version", NULL }, *const help[] = { qemu, "-cpu",
										  "help", NULL };
	const char *at;

	version = front_output_of(argv);
	at = version ? strstr(version, "version ") : NULL;
	if (!at || sscanf(at, "version %d", &major) != 1) {
		item(NOTE, "qemu-system-x86_64", "does not tell its version", "make deps");
		return false;
	}
	version[strcspn(version, "\n")] = '\0';
	item(major >= QEMU_MIN_MAJOR ? GOOD : NOTE, "qemu-system-x86_64", version,
	     "version 10.0 or newer; older ones were not tried. On Debian 12: make deps (from backports)");
	cpus = front_output_of(help);

	bool svm = cpus && strstr(cpus, " svm") && strstr(cpus, " npt");

	item(svm ? GOOD : NOTE, "emulated SVM", svm ? "svm, npt" : "not offered", "another QEMU");
	return svm;
}

/* QEMU beside the VMM (docs/peers.md): any version that starts will do. */
static void check_peers(bool kvm)
{
	g_autofree char *qemu = front_qemu(), *libvirt = NULL;
	bool there = peer_libvirt_probe(&libvirt);

	printf("\nThe engines qemu and libvirt\n");
	item(qemu ? GOOD : NOTE, "qemu", !qemu ? "not installed" : kvm ? "KVM runs its guests" : "TCG runs its guests: times and rates mean nothing",
	     "make deps (package qemu-system-x86)");
	item(there ? GOOD : NOTE, "libvirt", libvirt,
	     geteuid() ? "qemu:///session starts a daemon of its own when it is needed, if libvirtd is installed (make deps)"
		       : "start libvirtd or virtqemud (make deps installs it), or host-tools/libvirt-up.sh for one run beside a daemon of its own");
}

static bool check_file(const char *name, char *path, const char *fix)
{
	bool there = !access(path, R_OK);

	item(there ? GOOD : BAD, name, there ? path : "not built", fix);
	g_free(path);
	return there;
}

static u64 meminfo_mib(const char *key)
{
	g_autofree char *text = NULL;
	const char *at;

	if (!g_file_get_contents("/proc/meminfo", &text, NULL, NULL))
		return 0;
	at = strstr(text, key);
	return at ? strtoull(at + strlen(key), NULL, 10) / 1024 : 0;
}

static bool check_resources(void)
{
	u64 free_mib = meminfo_mib("MemAvailable:"), total = meminfo_mib("MemTotal:");
	g_autofree char *memory = g_strdup_printf(
		"%" G_GUINT64_FORMAT " MiB free of %" G_GUINT64_FORMAT, free_mib, total);
	g_autofree char *cpus = g_strdup_printf("%ld", sysconf(_SC_NPROCESSORS_ONLN));
	bool enough = free_mib >= MEMORY_MIN_MIB;

	printf("\nThis machine\n");
	item(enough ? GOOD : BAD, "memory", memory,
	     "1792 MiB free, for a guest of 1 GiB in the nested appliance");
	item(GOOD, "CPUs", cpus, NULL);
	return enough;
}

/* Settings that move figures: never an obstacle, always worth a look. */
static void check_settings(void)
{
	static const struct {
		const char *name, *path, *best, *fix;
		bool choice;
	} settings[] = {
		{ "cpufreq governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
		  "performance", "cpupower frequency-set -g performance, for steady figures",
		  false },
		{ "transparent huge pages", "/sys/kernel/mm/transparent_hugepage/enabled",
		  "madvise", "the VMM backs guest RAM with 4 KiB pages whatever this says", true },
		{ "KSM", "/sys/kernel/mm/ksm/run", "0",
		  "echo 0 > /sys/kernel/mm/ksm/run: merging adds faults", false },
		{ "NUMA balancing", "/proc/sys/kernel/numa_balancing", "0",
		  "sysctl kernel.numa_balancing=0: it unmaps guest pages to sample them", false },
		{ "SMT", "/sys/devices/system/cpu/smt/control", NULL, NULL, false },
		{ "clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource",
		  "tsc", "another clock makes each reading of the time slow", false },
		{ "kvm halt_poll_ns", "/sys/module/kvm/parameters/halt_poll_ns", NULL, NULL,
		  false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		g_autofree char *value = settings[i].choice ? chosen(settings[i].path)
							    : first_line(settings[i].path);

		if (!*value)
			continue;
		item(!settings[i].best || !strcmp(value, settings[i].best) ? GOOD : NOTE,
		     settings[i].name, value, settings[i].fix);
	}
}

static void check_tools(void)
{
	static const struct {
		const char *name, *what;
	} tools[] = {
		{ "gcc", "to build" },
		{ "cpio", "to build the initramfs" },
		{ "busybox", "the guest's shell" },
		{ "iasl", "to check the ACPI tables (make check)" },
	};

	printf("\nTools\n");
	for (size_t i = 0; i < ARRAY_SIZE(tools); i++) {
		g_autofree char *path = g_find_program_in_path(tools[i].name);
		g_autofree char *missing =
			g_strdup_printf("not installed; needed %s", tools[i].what);

		item(path ? GOOD : NOTE, tools[i].name, path ? path : missing, "make deps");
	}
}

int cmd_doctor(int argc, char **argv)
{
	g_autoptr(GOptionContext) context = g_option_context_new("- what this host can do");
	g_autoptr(GError) err = NULL;
	bool kvm, soft, nested, images, memory;

	g_option_context_set_summary(
		context, "Exit status: 0 scenarios can run here, by kvm or soft; 3 they cannot.");
	if (!g_option_context_parse(context, &argc, &argv, &err) || argc > 1) {
		fb_err("%s (faultbed doctor --help)",
		       err ? err->message : "faultbed doctor takes no argument");
		return STATUS_BAD_INPUT;
	}
	kvm = check_kvm();
	check_userfaultfd();
	soft = check_soft();
	nested = check_qemu();
	nested &= check_file("appliance", front_appliance(), "make appliance");
	check_peers(kvm);
	printf("\nThe guest\n");
	images = check_file("kernel", front_kernel(), "make kernel (some minutes, once)");
	images &= check_file("initramfs", front_initrd(), "make initramfs");
	memory = check_resources();
	check_settings();
	check_tools();
	if (images && (kvm || soft || (nested && memory))) {
		printf("\nScenarios run here, with engine = %s.\n", kvm ? "kvm" : soft ? "soft" : "nested");
		return STATUS_DONE;
	}
	printf("\nScenarios cannot run here yet: see the lines marked \"no\"%s.\n",
	       kvm || soft || nested ? "" : ", and the engines above, of which one is needed");
	return STATUS_HOST;
}
