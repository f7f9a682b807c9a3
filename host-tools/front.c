// SPDX-License-Identifier: GPL-2.0-only
/* What the commands of the front end share: places of files, and figures as text. */
#include "front.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int front_worse(int a, int b)
{
	/* An error of ours hides all else; a guest that died says more than one that failed. */
	static const int order[] = {
		STATUS_DONE, STATUS_COMMAND_FAILED, STATUS_GUEST_DIED,
		STATUS_HOST, STATUS_BAD_INPUT,	    STATUS_INTERRUPTED,
	};

	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		if (order[i] == a)
			return b;
		if (order[i] == b)
			return a;
	}
	return STATUS_INTERNAL;
}

const char *front_status_text(int status)
{
	switch (status) {
	case STATUS_DONE:
		return "done";
	case STATUS_COMMAND_FAILED:
		return "the guest's command failed";
	case STATUS_BAD_INPUT:
		return "bad input";
	case STATUS_HOST:
		return "this host cannot do it";
	case STATUS_GUEST_DIED:
		return "the guest panicked, oopsed or hung";
	case STATUS_INTERRUPTED:
		return "interrupted";
	}
	return "internal error";
}

static char *own_folder(void)
{
	g_autofree char *exe = g_file_read_link("/proc/self/exe", NULL);

	return exe ? g_path_get_dirname(exe) : g_get_current_dir();
}

char *front_home(void)
{
	const char *home = g_getenv("FAULTBED_HOME");

	if (home && *home)
		return g_strdup(home);

	/* build/, or build/VARIANT/ of another compiler: the first folder above that has the scenarios. */
	char *dir = own_folder();

	for (int up = 0; up < 4; up++) {
		g_autofree char *probe = g_build_filename(dir, "scenarios", NULL);
		char *parent;

		if (g_file_test(probe, G_FILE_TEST_IS_DIR))
			return dir;
		parent = g_path_get_dirname(dir);
		g_free(dir);
		dir = parent;
	}
	g_free(dir);
	return g_get_current_dir();
}

/* Kernel and images are built once, so a variant's binary finds them one folder up. */
char *front_build(const char *name)
{
	g_autofree char *dir = own_folder();
	g_autofree char *up = g_path_get_dirname(dir);
	g_autofree char *home = front_home();
	const char *const dirs[] = { dir, up };

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		char *path = g_build_filename(dirs[i], name, NULL);

		if (g_file_test(path, G_FILE_TEST_EXISTS))
			return path;
		g_free(path);
	}
	return g_build_filename(home, "build", name, NULL);
}

char *front_vmm(void)
{
	const char *vmm = g_getenv("FAULTBED_VMM");

	return vmm && *vmm ? g_strdup(vmm) : front_build("faultbed-vmm");
}

char *front_kernel(void)
{
	return front_build("kernel/bzImage");
}

/* The image may be compressed or not; the name tells. */
static char *build_image(const char *name, const char *gz)
{
	char *path = front_build(name);

	if (g_file_test(path, G_FILE_TEST_EXISTS))
		return path;

	char *other = front_build(gz);

	if (g_file_test(other, G_FILE_TEST_EXISTS)) {
		g_free(path);
		return other;
	}
	g_free(other);
	return path;
}

char *front_initrd(void)
{
	return build_image("initramfs.cpio", "initramfs.cpio.gz");
}

char *front_disk(void)
{
	return front_build("disk.img");
}

char *front_appliance(void)
{
	return build_image("appliance.cpio", "appliance.cpio.gz");
}

char *front_qemu(void)
{
	const char *qemu = g_getenv("FAULTBED_QEMU");

	return g_find_program_in_path(qemu && *qemu ? qemu : "qemu-system-x86_64");
}

char *front_qemu_escaped(const char *path)
{
	g_auto(GStrv) parts = g_strsplit(path, ",", -1);

	return g_strjoinv(",,", parts);
}

char *front_proc_value(const char *path, const char *key)
{
	g_autofree char *text = NULL;

	if (g_file_get_contents(path, &text, NULL, NULL)) {
		const char *at = strstr(text, key), *colon = at ? strchr(at, ':') : NULL;
		const char *end = colon ? strchr(colon, '\n') : NULL;

		if (end)
			return g_strstrip(g_strndup(colon + 1, end - colon - 1));
	}
	return g_strdup("");
}

char *front_output_of(const char *const *argv)
{
	char *out = NULL;
	int status = 0;

	if (!g_spawn_sync(NULL, (char **)argv, NULL,
			  G_SPAWN_SEARCH_PATH | G_SPAWN_STDERR_TO_DEV_NULL, NULL, NULL, &out, NULL,
			  &status, NULL))
		return NULL;
	if (!g_spawn_check_wait_status(status, NULL)) {
		g_free(out);
		return NULL;
	}
	return g_strchomp(out);
}

char *front_file_sum(const char *path)
{
	g_autoptr(GMappedFile) map = g_mapped_file_new(path, FALSE, NULL);

	return map ? g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guchar *)g_mapped_file_get_contents(map),
						 g_mapped_file_get_length(map))
		   : NULL;
}

char *front_grouped(double value, int decimals)
{
	if (!isfinite(value))
		return g_strdup_printf("%f", value);

	g_autofree char *plain = g_strdup_printf("%.*f", decimals, fabs(value));
	const char *dot = strchr(plain, '.');
	size_t whole = dot ? (size_t)(dot - plain) : strlen(plain);
	GString *out = g_string_new(value < 0 ? "-" : "");

	for (size_t i = 0; i < whole; i++) {
		if (i && (whole - i) % 3 == 0)
			g_string_append_c(out, ',');
		g_string_append_c(out, plain[i]);
	}
	g_string_append(out, plain + whole);
	return g_string_free(out, FALSE);
}

char *front_duration(double ns)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = { { "s", 1e9 }, { "ms", 1e6 }, { "us", 1e3 } };

	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (fabs(ns) >= units[i].ns)
			return g_strdup_printf("%.3g %s", ns / units[i].ns, units[i].unit);
	return g_strdup_printf("%.3g ns", ns);
}
