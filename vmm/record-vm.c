// SPDX-License-Identifier: GPL-2.0-only
/* The record `vm`: what was run on what. */
#include "record-vm.h"

#include <stdio.h>
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

/* Does this address of ours show guest RAM? */
static bool is_ram(const struct memory *mem, u64 addr)
{
	u32 i;

	for (i = 0; i < mem->nr_slots; i++) {
		const struct memslot *slot = &mem->slot[i];

		if (addr - (u64)(uintptr_t)slot->hva < slot->size ||
		    addr - (u64)(uintptr_t)slot->guest_hva < slot->size)
			return true;
	}
	return false;
}

u64 record_resident_beyond_ram(const struct vm *vm)
{
	char *text = NULL, **lines, **l;
	unsigned long long from, to, kib;
	bool ram = false;
	u64 sum = 0;

	/* By mapping: RAM out of a snapshot's file is private memory, as much as what we allocate. */
	if (!g_file_get_contents("/proc/self/smaps", &text, NULL, NULL))
		return 0;
	lines = g_strsplit(text, "\n", -1);
	for (l = lines; *l; l++) {
		if (sscanf(*l, "%llx-%llx ", &from, &to) == 2)
			ram = is_ram(&vm->mem, from);
		else if (!ram && sscanf(*l, "Rss: %llu kB", &kib) == 1)
			sum += kib * KIB;
	}
	g_strfreev(lines);
	g_free(text);
	return sum;
}

/* What is of this run on this host only. All else of a record is the same again on virtual time. */
static JsonObject *provenance_object(struct vm *vm)
{
	JsonObject *o = json_object_new();

	json_object_set_int_member(o, "resident_beyond_ram", (gint64)record_resident_beyond_ram(vm));
	json_object_set_object_member(o, "host", lines_object(vm->engine->describe(vm)));
	return o;
}

/* Of an engine that counts instructions, the guest's so far. */
static void set_instructions(JsonObject *o, struct vm *vm)
{
	GArray *stats = g_array_new(FALSE, TRUE, sizeof(struct engine_stat));
	u32 i;

	vm->engine->read_stats(vm, stats);
	for (i = 0; i < stats->len; i++) {
		struct engine_stat *s = &g_array_index(stats, struct engine_stat, i);

		if (strcmp(s->name, "instructions") == 0)
			json_object_set_int_member(o, "instructions", (gint64)s->value);
		g_free(s->per_vcpu);
	}
	g_array_unref(stats);
}

JsonObject *record_boot(struct vm *vm, u64 ready_ns)
{
	JsonObject *o = json_object_new();

	json_object_set_int_member(o, "ready_ns", (gint64)ready_ns);
	set_instructions(o, vm);
	return o;
}

static JsonObject *cost_object(const struct vm *vm)
{
	JsonObject *o = json_object_new();

	json_object_set_string_member(o, "name", vm->cost.name);
	json_object_set_string_member(o, "sha256", vm->cost.digest);
	if (vm->cost.changed)
		json_object_set_boolean_member(o, "changed", TRUE);
	json_object_set_boolean_member(o, "memory_model", vm->cost.memory);
	return o;
}

JsonObject *record_vm(struct vm *vm, const struct scenario *s, const struct vm_setup *setup, const char *cell)
{
	JsonObject *r = record_new("vm", cell), *o;
	static const char *const apic_name[] = { "xapic", "x2apic", "kernel", "peer" };
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
	if (setup->disk_digest) {
		g_autofree char *base = g_path_get_basename(setup->disk);

		o = json_object_new();
		json_object_set_string_member(o, "file", base);
		json_object_set_string_member(o, "sha256", setup->disk_digest);
		json_object_set_int_member(o, "bytes", (gint64)vm->machine->blk->disk.size);
		json_object_set_boolean_member(o, "read_only", vm->machine->blk->disk.read_only);
		json_object_set_object_member(r, "disk", o);
	}
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
