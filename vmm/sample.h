/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * All counters of a VM at one moment, from every source, and the difference
 * between two such moments. Taken while vCPUs run: each counter is exact, two
 * counters may be some ns apart. Any thread.
 */
#ifndef VMM_SAMPLE_H
#define VMM_SAMPLE_H

#include "core/engine.h"
#include "machine/channel.h"

struct sample {
	u64 now;			/* ns since the VM started */
	u32 nr_cpus;
	u64 vm_counter[NR_COUNTERS];
	u64 (*vcpu_counter)[NR_COUNTERS];	/* by CPU number */
	u64 *ipi_matrix;		/* nr_nodes * nr_nodes */
	u64 ipi_vector[NR_VECTORS];
	struct hist ipi_latency[NR_DISTANCE_CLASSES];
	struct hist inject[NR_INJECT_POINTS][NR_DISTANCE_CLASSES];
	struct channel_snapshot channel;
	u64 *vmstat;			/* by vm->vmstat's events, NULL = none */
	GArray *stats;			/* struct engine_stat */
};

/* `now`: of the vCPU that set the mark. `begin`: a region begins here, and the extremes of histograms with it. */
void sample_take(struct vm *vm, struct sample *s, u64 now, bool begin);
void sample_free(struct sample *s);

#endif
