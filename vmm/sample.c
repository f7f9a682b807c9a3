// SPDX-License-Identifier: GPL-2.0-only
/* Counters of all sources at one moment. */
#include "sample.h"

#include <string.h>

#include "machine/machine.h"
#include "vmstat.h"

static void stat_clear(void *data)
{
	struct engine_stat *s = data;

	g_free(s->per_vcpu);
}

/* Also when a command's region has begun already: of the two only the inner one is reported. */
static void begin_hists(struct vm *vm)
{
	u32 c, p;

	for (c = 0; c < NR_DISTANCE_CLASSES; c++) {
		hist_begin(&vm->ipi_latency[c]);
		for (p = 0; p < NR_INJECT_POINTS; p++)
			hist_begin(&vm->inject.hist[p][c]);
	}
}

void sample_take(struct vm *vm, struct sample *s, u64 now, bool begin)
{
	u32 nodes = vm->topo.nr_nodes, cpu, i;

	sample_free(s);
	s->nr_cpus = vm->topo.nr_cpus;
	s->vcpu_counter = g_malloc0(s->nr_cpus * sizeof(*s->vcpu_counter));
	s->ipi_matrix = g_new0(u64, nodes * nodes);
	s->stats = g_array_new(FALSE, TRUE, sizeof(struct engine_stat));
	g_array_set_clear_func(s->stats, stat_clear);
	/* The guest's own counters first: they are nearest to what the mark means. */
	channel_read(&vm->machine->channel, &s->channel);
	s->vmstat = vm->vmstat ? vmstat_read(vm->vmstat, vm) : NULL;
	s->now = now;
	for (i = 0; i < NR_COUNTERS; i++) {
		s->vm_counter[i] = counter_read(&vm->counters, i);
		for (cpu = 0; cpu < s->nr_cpus; cpu++)
			s->vcpu_counter[cpu][i] = counter_read(&vm->vcpu[cpu]->counters, i);
	}
	for (i = 0; i < nodes * nodes; i++)
		s->ipi_matrix[i] = __atomic_load_n((u64 *)&vm->ipi_matrix[i], __ATOMIC_RELAXED);
	for (i = 0; i < NR_VECTORS; i++)
		s->ipi_vector[i] = __atomic_load_n((u64 *)&vm->ipi_vector[i], __ATOMIC_RELAXED);
	memcpy(s->ipi_latency, vm->ipi_latency, sizeof(s->ipi_latency));
	memcpy(s->inject, vm->inject.hist, sizeof(s->inject));
	vm->engine->read_stats(vm, s->stats);
	if (begin)
		begin_hists(vm);
}

void sample_free(struct sample *s)
{
	g_free(s->vcpu_counter);
	g_free(s->vmstat);
	g_free(s->ipi_matrix);
	channel_snapshot_free(&s->channel);
	if (s->stats)
		g_array_unref(s->stats);
	memset(s, 0, sizeof(*s));
}
