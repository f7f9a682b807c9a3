// SPDX-License-Identifier: GPL-2.0-only
/* The record `vm`: what was run on what. */
#include "record-vm.h"

#include <string.h>

#include "machine/machine.h"
#include "record.h"

static char *file_sha256(const char *path)
{
	char *data = NULL, *sum = NULL;
	gsize len;

	if (path && g_file_get_contents(path, &data, &len, NULL))
		sum = g_compute_checksum_for_data(G_CHECKSUM_SHA256, (guchar *)data, len);
	g_free(data);
	return sum ? sum : g_strdup("");
}

static JsonObject *file_object(const char *path)
{
	JsonObject *o = json_object_new();
	char *base = path ? g_path_get_basename(path) : g_strdup(""), *sum = file_sha256(path);

	json_object_set_string_member(o, "file", base);
	json_object_set_string_member(o, "sha256", sum);
	g_free(base);
	g_free(sum);
	return o;
}

/* "name=value" lines as an object. */
static JsonObject *lines_object(char *text)
{
	JsonObject *o = json_object_new();
	char **lines = g_strsplit(text, "\n", -1), **l;

	for (l = lines; *l; l++) {
		char *eq = strchr(*l, '=');

		if (!eq)
			continue;
		*eq = 0;
		json_object_set_string_member(o, *l, eq + 1);
	}
	g_strfreev(lines);
	g_free(text);
	return o;
}

/* kB of a line of /proc/self/status. */
static u64 self_status_kb(const char *name)
{
	char *text = NULL, *at;
	u64 kb = 0;

	if (g_file_get_contents("/proc/self/status", &text, NULL, NULL)) {
		at = strstr(text, name);
		if (at)
			kb = g_ascii_strtoull(at + strlen(name), NULL, 10);
	}
	g_free(text);
	return kb;
}

/*
 * What is of this run on this host only. All else of a record is the same again on virtual time.
 * Resident beyond guest RAM: all that is not shared memory, since RAM is a memfd and nothing else of ours is.
 */
static JsonObject *provenance_object(struct vm *vm)
{
	JsonObject *o = json_object_new();

	json_object_set_int_member(o, "resident_beyond_ram",
				   (gint64)((self_status_kb("RssAnon:") + self_status_kb("RssFile:")) * KIB));
	json_object_set_object_member(o, "host", lines_object(vm->engine->describe(vm)));
	return o;
}

static JsonObject *cost_object(const struct vm *vm)
{
	JsonObject *o = json_object_new();

	json_object_set_string_member(o, "name", vm->cost.name);
	json_object_set_string_member(o, "sha256", vm->cost.digest);
	json_object_set_boolean_member(o, "memory_model", FALSE);
	return o;
}

JsonObject *record_vm(struct vm *vm, const struct scenario *s, const struct vm_setup *setup, const char *cell)
{
	JsonObject *r = record_new("vm", cell), *o;
	static const char *const apic_name[] = { "xapic", "x2apic", "kernel" };
	GPtrArray *effective = scenario_effective(s);
	struct channel_snapshot snap = { 0 };
	JsonArray *a;
	u32 i;

	json_object_set_string_member(r, "engine", vm->engine->name);
	o = json_object_new();
	for (i = 0; i + 1 < effective->len; i += 2)
		json_object_set_string_member(o, effective->pdata[i], effective->pdata[i + 1]);
	g_ptr_array_unref(effective);
	json_object_set_object_member(r, "scenario", o);
	o = file_object(setup->kernel);
	json_object_set_string_member(o, "version", setup->boot.version);
	channel_read(&vm->machine->channel, &snap);
	if (snap.valid) {
		json_object_set_string_member(o, "release", snap.kernel_release);
		json_object_set_string_member(o, "patch_id", snap.patch_id);
	}
	channel_snapshot_free(&snap);
	json_object_set_object_member(r, "kernel", o);
	json_object_set_object_member(r, "initrd", file_object(setup->initrd));
	json_object_set_string_member(r, "cmdline", setup->cmdline);
	json_object_set_string_member(r, "feature_mask", setup->features);
	json_object_set_string_member(r, "features_missing", setup->missing);
	json_object_set_string_member(r, "apic", apic_name[vm->apic]);
	json_object_set_string_member(r, "time", setup->caps.virtual_time ? "virtual" : "host");
	if (setup->caps.virtual_time)
		json_object_set_object_member(r, "cost_model", cost_object(vm));
	a = json_array_new();
	for (i = 0; i < setup->trust->len; i++)
		json_array_add_string_element(a, setup->trust->pdata[i]);
	json_object_set_array_member(r, "trust", a);
	if (setup->ipi_floor_ns)
		json_object_set_int_member(r, "ipi_floor_ns", (gint64)setup->ipi_floor_ns);
	json_object_set_int_member(r, "ram", (gint64)vm->mem.size);
	json_object_set_object_member(r, "provenance", provenance_object(vm));
	return r;
}
