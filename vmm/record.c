// SPDX-License-Identifier: GPL-2.0-only
/* Records as JSON lines, and the difference of two samples as their members. */
#include "record.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "json-text.h"
#include "machine/machine.h"
#include "vmstat.h"

JsonObject *record_new(const char *kind, const char *cell)
{
	JsonObject *o = json_object_new();

	json_object_set_string_member(o, "record", kind);
	json_object_set_string_member(o, "cell", cell);
	return o;
}

int record_write(JsonObject *record, int fd)
{
	JsonNode *node = json_node_init_object(json_node_alloc(), record);
	char *text = json_text(node), *line = g_strconcat(text, "\n", NULL);
	size_t len = strlen(line), done = 0;
	int err = 0;

	while (fd >= 0 && done < len) {
		ssize_t n = write(fd, line + done, len - done);

		if (n >= 0)
			done += (size_t)n;
		else if (errno != EINTR) {
			err = -errno;
			fb_err("writing a record: %s", strerror(-err));
			break;
		}
	}
	g_free(line);
	g_free(text);
	json_node_free(node);
	json_object_unref(record);
	return err;
}

/* Guest counters by the names of 6.12's files, for kernels without the channel and to compare with it. */
static const struct { const char *source, *file_name, *name; } proc_alias[] = {
	{ "/proc/vmstat", "pgfault", "guest_page_faults" },
	{ "/proc/vmstat", "nr_tlb_remote_flush", "tlb_shootdowns" },
	{ "/proc/vmstat", "nr_tlb_remote_flush_received", "tlb_flush_received" },
	{ "/proc/vmstat", "nr_tlb_local_flush_all", "tlb_flush_full" },
	{ "/proc/vmstat", "nr_tlb_local_flush_one", "tlb_flush_page" },
	{ "/proc/stat", "ctxt", "context_switches" },
};

/* Of the guest, and n/a if neither the channel nor /proc gives them. */
static const char *const guest_essential[] = {
	"guest_page_faults", "guest_page_faults_minor", "guest_page_faults_major", "tlb_shootdowns",
	"tlb_shootdown_ipis_sent", "tlb_shootdown_ipis_skipped_lazy", "tlb_flush_on_lazy_exit", "tlb_flush_full",
	"tlb_flush_page", "context_switches",
};

static JsonObject *add_counter(JsonObject *all, const char *name, const char *unit, const char *source, u64 value)
{
	JsonObject *o = json_object_new();
	char *key = g_strdup(name);

	if (json_object_has_member(all, name)) {
		g_free(key);
		key = g_strdup_printf("%s@%s", name, source);
	}
	json_object_set_int_member(o, "value", (gint64)value);
	json_object_set_string_member(o, "unit", unit);
	json_object_set_string_member(o, "source", source);
	json_object_set_object_member(all, key, o);
	g_free(key);
	return o;
}

static void add_per_vcpu(JsonObject *counter, const u64 *values, u32 nr)
{
	JsonArray *a = json_array_sized_new(nr);
	u32 i;

	for (i = 0; i < nr; i++)
		json_array_add_int_element(a, (gint64)values[i]);
	json_object_set_array_member(counter, "per_vcpu", a);
}

/* A counter that moved was counted, at least for a part of the time. */
static char *channel_na(const struct channel_snapshot *from, const struct channel_snapshot *to, const char *name,
			u64 value)
{
	g_autofree char *why = value ? NULL : channel_not_counted(from, name);
	g_autofree char *why_then = why ? channel_not_counted(to, name) : NULL;

	return why_then ? g_steal_pointer(&why) : NULL;
}

static void add_channel(JsonObject *all, JsonObject *na, struct vm *vm, const struct channel_snapshot *from,
			const struct channel_snapshot *to)
{
	u64 *per_vcpu = g_new0(u64, vm->topo.nr_cpus);
	u32 c, cpu;

	if (!from->valid || !to->valid || from->nr_counters != to->nr_counters || from->nr_cpus != to->nr_cpus) {
		g_free(per_vcpu);
		return;
	}
	for (c = 0; c < to->nr_counters; c++) {
		char *why;
		u64 sum = 0;

		for (cpu = 0; cpu < to->nr_cpus; cpu++) {
			u64 d = to->value[cpu * to->nr_counters + c] - from->value[cpu * from->nr_counters + c];

			sum += d;
			if (cpu < vm->topo.nr_cpus)
				per_vcpu[cpu] = d;
		}
		why = channel_na(from, to, to->name[c], sum);
		if (why)
			json_object_set_string_member(na, to->name[c], why);
		else
			add_per_vcpu(add_counter(all, to->name[c], "events", "channel", sum), per_vcpu, vm->topo.nr_cpus);
		g_free(why);
	}
	g_free(per_vcpu);
}

/* Why this VM cannot observe a counter, or NULL if it can. */
static const char *counter_na(const struct vm *vm, const struct counter_desc *d)
{
	bool soft = strcmp(vm->engine->name, "soft") == 0;

	if (engine_is_peer(vm->engine))
		return "QEMU's VMM does not tell; kvm and soft count it";
	if (d->engines & OBS_DISK && !vm->machine->blk)
		return "the guest has no disk (guest.disk)";
	if (d->engines & OBS_APIC && !apic_is_ours(vm->apic))
		return "apic = kernel: KVM's local APIC is not seen from here";
	if (d->engines & OBS_EPT && !soft && !vm->inject.ept_serve)
		return "second-level faults are served here only with inject.ept.* or inject.ept.count = yes; see kvm_pf_fixed";
	if (d->engines & OBS_LINES && soft && !vm->cost.memory)
		return "needs a cost model with caches, that is with a section [memory]";
	if (!(d->engines & (soft ? OBS_SOFT : OBS_KVM | OBS_EPT)))
		return "not observable on this engine";
	return NULL;
}

static void add_host(JsonObject *all, JsonObject *na, struct vm *vm, const struct sample *from, const struct sample *to)
{
	u64 *per_vcpu = g_new0(u64, to->nr_cpus);
	u32 i, cpu;

	for (i = 0; i < NR_COUNTERS; i++) {
		const struct counter_desc *d = &counter_desc[i];
		const char *why = counter_na(vm, d);
		u64 sum = to->vm_counter[i] - from->vm_counter[i];
		JsonObject *o;

		if (why) {
			json_object_set_string_member(na, d->name, why);
			continue;
		}
		for (cpu = 0; cpu < to->nr_cpus; cpu++) {
			per_vcpu[cpu] = to->vcpu_counter[cpu][i] - from->vcpu_counter[cpu][i];
			sum += per_vcpu[cpu];
		}
		o = add_counter(all, d->name, d->unit, "vmm", sum);
		if (strcmp(d->scope, "vcpu") == 0)
			add_per_vcpu(o, per_vcpu, to->nr_cpus);
	}
	g_free(per_vcpu);
}

/* IPIs by vector; those that did not move are left out, as are all where nobody sees them. */
static void add_vectors(JsonObject *all, const struct vm *vm, const struct sample *from, const struct sample *to)
{
	u32 i;

	for (i = 0; i < NR_VECTORS && apic_is_ours(vm->apic); i++) {
		u64 value = to->ipi_vector[i] - from->ipi_vector[i];
		char *name;

		if (!value)
			continue;
		name = g_strdup_printf("ipis_sent_vector_0x%02x", i);
		add_counter(all, name, "events", "vmm", value);
		g_free(name);
	}
}

/* Statistics of an engine that have the name of a counter which means the same on any machine. */
static char *engine_stat_name(const struct vm *vm, const char *name)
{
	static const char *const plain[] = { "instructions", "cycles", "page_walks" };
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(plain); i++)
		if (strcmp(name, plain[i]) == 0)
			return g_strdup(name);
	return g_strdup_printf("%s_%s", vm->engine->name, name);
}

/* The engine's own statistics, mostly prefixed with its name; those that did not move are left out. */
static void add_engine(JsonObject *all, struct vm *vm, const struct sample *from, const struct sample *to)
{
	u64 *per_vcpu = g_new0(u64, to->nr_cpus);
	u32 i, cpu;

	for (i = 0; i < to->stats->len && i < from->stats->len; i++) {
		const struct engine_stat *a = &g_array_index(from->stats, struct engine_stat, i);
		const struct engine_stat *b = &g_array_index(to->stats, struct engine_stat, i);
		u64 value = b->gauge ? b->value : b->value - a->value;
		char *name = engine_stat_name(vm, b->name);
		JsonObject *o;

		if (value) {
			o = add_counter(all, name, "events", vm->engine->name, value);
			for (cpu = 0; b->per_vcpu && a->per_vcpu && cpu < to->nr_cpus; cpu++)
				per_vcpu[cpu] = b->gauge ? b->per_vcpu[cpu] : b->per_vcpu[cpu] - a->per_vcpu[cpu];
			if (b->per_vcpu && a->per_vcpu)
				add_per_vcpu(o, per_vcpu, to->nr_cpus);
		}
		g_free(name);
	}
	g_free(per_vcpu);
}

/* The common name of what a file calls otherwise. */
static const char *common_name(const char *source, const char *name)
{
	for (size_t k = 0; k < G_N_ELEMENTS(proc_alias); k++)
		if (strcmp(source, proc_alias[k].source) == 0 && strcmp(name, proc_alias[k].file_name) == 0)
			return proc_alias[k].name;
	return name;
}

/* Events of the guest kernel's memory, as /proc/vmstat would show them; those that did not move are left out. */
static void add_vmstat(JsonObject *all, const struct vm *vm, const struct sample *from, const struct sample *to)
{
	for (u32 i = 0; from->vmstat && to->vmstat && i < vm->vmstat->nr; i++)
		if (to->vmstat[i] != from->vmstat[i])
			add_counter(all, common_name("/proc/vmstat", vm->vmstat->name[i]), "events", VMSTAT_SOURCE, to->vmstat[i] - from->vmstat[i]);
}

static void add_proc(JsonObject *all, GPtrArray *proc)
{
	u32 i;

	for (i = 0; i < proc->len; i++) {
		char **word = g_strsplit(proc->pdata[i], " ", 3), *end;
		u64 value;

		if (g_strv_length(word) == 3) {
			value = g_ascii_strtoull(word[2], &end, 10);
			if (end != word[2] && !*end)
				add_counter(all, common_name(word[0], word[1]), "events", word[0], value);
		}
		g_strfreev(word);
	}
}

static void add_hist(JsonObject *all, const char *name, const char *class, const struct hist *from, const struct hist *to)
{
	struct hist d;
	JsonObject *o;
	JsonArray *a;
	char *key;
	u32 i, last = 0;

	hist_sub(&d, to, from);
	if (!d.count)
		return;
	o = json_object_new();
	json_object_set_int_member(o, "count", (gint64)d.count);
	json_object_set_int_member(o, "sum", (gint64)d.sum);
	json_object_set_int_member(o, "min", (gint64)d.min);
	json_object_set_int_member(o, "max", (gint64)d.max);
	for (i = 0; i < HIST_BUCKETS; i++)
		if (d.bucket[i])
			last = i;
	a = json_array_new();
	for (i = 0; i <= last; i++)
		json_array_add_int_element(a, (gint64)d.bucket[i]);
	json_object_set_array_member(o, "buckets", a);
	key = g_strdup_printf("%s.%s", name, class);
	json_object_set_object_member(all, key, o);
	g_free(key);
}

static void add_hists(JsonObject *all, const struct sample *from, const struct sample *to)
{
	u32 c, p;

	for (c = 0; c < NR_DISTANCE_CLASSES; c++)
		add_hist(all, "ipi_latency_ns", distance_class_name(c), &from->ipi_latency[c], &to->ipi_latency[c]);
	for (p = 0; p < NR_INJECT_POINTS; p++) {
		char *name = g_strdup_printf("injected_%s_ns", inject_point_name(p));

		for (c = 0; c < NR_DISTANCE_CLASSES; c++)
			add_hist(all, name, inject_class_name(p, c), &from->inject[p][c], &to->inject[p][c]);
		g_free(name);
	}
}

static JsonArray *matrix_rows(const u64 *from, const u64 *to, u32 nodes)
{
	JsonArray *rows = json_array_new();
	u32 i, j;

	for (i = 0; i < nodes; i++) {
		JsonArray *row = json_array_new();

		for (j = 0; j < nodes; j++)
			json_array_add_int_element(row, (gint64)(to[i * nodes + j] - from[i * nodes + j]));
		json_array_add_array_element(rows, row);
	}
	return rows;
}

void record_difference(JsonObject *record, struct vm *vm, const struct sample *from, const struct sample *to,
		       GPtrArray *proc)
{
	JsonObject *all = json_object_new(), *na = json_object_new(), *matrices = json_object_new();
	JsonObject *hists = json_object_new();
	size_t i;

	add_channel(all, na, vm, &from->channel, &to->channel);
	add_host(all, na, vm, from, to);
	add_vectors(all, vm, from, to);
	add_engine(all, vm, from, to);
	add_proc(all, proc);
	/* Last: whether there is a System.map must not change what a plain name means. */
	add_vmstat(all, vm, from, to);
	for (i = 0; i < G_N_ELEMENTS(guest_essential); i++)
		if (!json_object_has_member(all, guest_essential[i]))
			json_object_set_string_member(na, guest_essential[i],
						      "the guest kernel does not publish it (faultbed kernel check)");
	if (apic_is_ours(vm->apic))
		json_object_set_array_member(matrices, "ipi_matrix",
					     matrix_rows(from->ipi_matrix, to->ipi_matrix, vm->topo.nr_nodes));
	else
		json_object_set_string_member(na, "ipi_matrix", engine_is_peer(vm->engine) ? "the local APIC is QEMU's" :
					      "apic = kernel: KVM's local APIC is not seen from here");
	add_hists(hists, from, to);
	json_object_set_object_member(record, "counters", all);
	json_object_set_object_member(record, "na", na);
	json_object_set_object_member(record, "matrices", matrices);
	json_object_set_object_member(record, "histograms", hists);
}
