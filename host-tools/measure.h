/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A cost model of this host, made by running guest-tests/memory-probe on it. What the probe
 * cannot see is taken from cost-models/simple.ini, and each number says in its comment which it is.
 * One thread.
 */
#ifndef HOST_TOOLS_MEASURE_H
#define HOST_TOOLS_MEASURE_H

#include <glib.h>

#include "core/cost.h"

/* What the host says of itself. */
struct measure_host {
	char *cpu;			/* model name */
	char *date;			/* of the measurement, ISO 8601 */
	u32 cpus, sockets;		/* online */
	struct measure_cache {
		u32 kib, ways;		/* 0: /sys does not tell */
	} cache[3];			/* L1 data, L2, L3 */
};

/* Figures of the probe by name, a value for each run. */
struct measure {
	GHashTable *figures;		/* char * -> GArray of double */
	u32 runs;
};

void measure_init(struct measure *m);
void measure_destroy(struct measure *m);
/* Take one run's output in: lines "report NAME VALUE UNIT", others are passed over. */
void measure_take(struct measure *m, const char *output);
/* Read /proc and /sys; measure_host_clear(). */
void measure_host_read(struct measure_host *host);
void measure_host_clear(struct measure_host *host);
/*
 * The text of a cost model that cost_file_load() takes, whatever was measured; `simple` is where the rest comes from.
 * g_free(). NULL, reported, if a figure without which there is no model (the TSC's rate) is missing.
 */
char *measure_text(const struct measure *m, const struct measure_host *host, const struct cost_model *simple);
/* Measure this host and write the model to a file, or (NULL) standard output. An exit status. */
int cost_measure(const char *out_path);

#endif
