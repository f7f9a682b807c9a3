// SPDX-License-Identifier: GPL-2.0-only
#include "lib/about.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "lib/cpu.h"

#define VALUE_MAX	3072

struct about {
	about_fn fn;
	void *ctx;
};

static void say(const struct about *a, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void say(const struct about *a, const char *key, const char *fmt, ...)
{
	char value[VALUE_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(value, sizeof(value), fmt, ap);
	va_end(ap);
	a->fn(a->ctx, key, value);
}

/* The first line of a file; nothing where the kernel has no such file. */
static void say_file(const struct about *a, const char *key, const char *path)
{
	char line[VALUE_MAX];

	if (read_line(path, line, sizeof(line)) >= 0)
		say(a, key, "%s", line);
}

static void say_count(const struct about *a, const char *key, const char *path)
{
	struct cpu_mask m;

	if (!cpu_mask_read(path, &m))
		say(a, key, "%u", cpu_mask_count(&m));
}

static void say_vulnerabilities(const struct about *a)
{
	static const char dir[] = "/sys/devices/system/cpu/vulnerabilities";
	struct dirent **list;
	char key[128], path[384];
	int n = scandir(dir, &list, NULL, alphasort);

	for (int i = 0; i < n; i++) {
		if (list[i]->d_name[0] != '.') {
			snprintf(key, sizeof(key), "vulnerabilities/%.100s", list[i]->d_name);
			snprintf(path, sizeof(path), "%s/%s", dir, list[i]->d_name);
			say_file(a, key, path);
		}
		free(list[i]);
	}
	if (n >= 0)
		free(list);
}

/* Whether /proc/cpuinfo of the first CPU lists a feature. */
static bool has_flag(const char *cpuinfo, const char *flag)
{
	const char *flags = strstr(cpuinfo, "\nflags");
	const char *end = flags ? strchr(flags + 1, '\n') : NULL;
	size_t len = strlen(flag);

	if (!end)
		return false;
	for (const char *p = strstr(flags, flag); p && p < end; p = strstr(p + 1, flag))
		if (p[-1] == ' ' && (p[len] == ' ' || p[len] == '\n'))
			return true;
	return false;
}

static void say_flags(const struct about *a)
{
	static const char *const flags[] = {
		"pcid", "invpcid", "pti", "x2apic", "tsc_deadline_timer", "constant_tsc"
	};
	char text[8192];

	if (read_file("/proc/cpuinfo", text, sizeof(text)) < 0)
		return;
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		say(a, flags[i], "%d", has_flag(text, flags[i]));
}

void about_guest(about_fn fn, void *ctx)
{
	struct about about = { .fn = fn, .ctx = ctx }, *a = &about;
	struct utsname u;

	if (!uname(&u)) {
		say(a, "release", "%s", u.release);
		say(a, "version", "%s", u.version);
	}
	say_file(a, "cmdline", "/proc/cmdline");
	say_count(a, "cpus_online", "/sys/devices/system/cpu/online");
	say_count(a, "cpus_possible", "/sys/devices/system/cpu/possible");
	say_count(a, "nodes", "/sys/devices/system/node/online");
	say_file(a, "clocksource",
		 "/sys/devices/system/clocksource/clocksource0/current_clocksource");
	say_file(a, "transparent_hugepage", "/sys/kernel/mm/transparent_hugepage/enabled");
	say_file(a, "numa_balancing", "/proc/sys/kernel/numa_balancing");
	say_flags(a);
	say_vulnerabilities(a);
	say(a, "faultbed_debugfs", "%d", access("/sys/kernel/debug/faultbed", F_OK) == 0);
}
