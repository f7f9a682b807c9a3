// SPDX-License-Identifier: GPL-2.0-only
#include "measure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cost-file.h"
#include "front.h"

#define MEASURE_RUNS	5u

void measure_init(struct measure *m)
{
	m->figures = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_array_unref);
	m->runs = 0;
}

void measure_destroy(struct measure *m)
{
	g_hash_table_destroy(m->figures);
}

void measure_take(struct measure *m, const char *output)
{
	g_auto(GStrv) lines = g_strsplit(output, "\n", -1);

	m->runs++;
	for (char **l = lines; *l; l++) {
		g_auto(GStrv) word = g_strsplit(*l, " ", -1);
		GArray *values;
		double v;

		if (g_strv_length(word) != 4 || strcmp(word[0], "report"))
			continue;
		values = g_hash_table_lookup(m->figures, word[1]);
		if (!values) {
			values = g_array_new(FALSE, FALSE, sizeof(double));
			g_hash_table_insert(m->figures, g_strdup(word[1]), values);
		}
		v = g_ascii_strtod(word[2], NULL);
		g_array_append_val(values, v);
	}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Median, least and most of a figure; false if no run has it. */
static bool figure(const struct measure *m, const char *name, double value[3])
{
	GArray *values = g_hash_table_lookup(m->figures, name);

	if (!values || !values->len)
		return false;
	g_array_sort(values, compare);
	value[0] = g_array_index(values, double, values->len / 2);
	value[1] = g_array_index(values, double, 0);
	value[2] = g_array_index(values, double, values->len - 1);
	return true;
}

/* --- the host --- */

static char *first_line(const char *path)
{
	char *text = NULL;

	return g_file_get_contents(path, &text, NULL, NULL) ? g_strchomp(text) : NULL;
}

static char *cpu_name(void)
{
	g_autofree char *text = NULL;
	const char *at, *end;

	if (!g_file_get_contents("/proc/cpuinfo", &text, NULL, NULL))
		return g_strdup("a CPU that does not tell its name");
	at = strstr(text, "model name");
	at = at ? strchr(at, ':') : NULL;
	if (!at)
		return g_strdup("a CPU that does not tell its name");
	end = at + strcspn(at, "\n");
	return g_strstrip(g_strndup(at + 1, (gsize)(end - at - 1)));
}

static u32 count_sockets(u32 cpus)
{
	u64 seen = 0;

	for (u32 i = 0; i < cpus; i++) {
		g_autofree char *path = g_strdup_printf("/sys/devices/system/cpu/cpu%u/topology/physical_package_id", i);
		g_autofree char *id = first_line(path);

		if (id)
			seen |= 1ull << (g_ascii_strtoull(id, NULL, 10) & 63);
	}
	return seen ? (u32)__builtin_popcountll(seen) : 1;
}

static void read_caches(struct measure_host *host)
{
	for (u32 i = 0; i < 8; i++) {
		g_autofree char *dir = g_strdup_printf("/sys/devices/system/cpu/cpu0/cache/index%u/", i);
		g_autofree char *level_path = g_strconcat(dir, "level", NULL), *level = first_line(level_path);
		g_autofree char *type_path = g_strconcat(dir, "type", NULL), *type = first_line(type_path);
		g_autofree char *size_path = g_strconcat(dir, "size", NULL), *size = first_line(size_path);
		g_autofree char *ways_path = g_strconcat(dir, "ways_of_associativity", NULL), *ways = first_line(ways_path);
		u64 n = level ? g_ascii_strtoull(level, NULL, 10) : 0;

		if (n < 1 || n > 3 || !type || !strcmp(type, "Instruction") || !size || !g_str_has_suffix(size, "K") || !ways)
			continue;
		host->cache[n - 1].kib = (u32)g_ascii_strtoull(size, NULL, 10);
		host->cache[n - 1].ways = (u32)g_ascii_strtoull(ways, NULL, 10);
	}
}

void measure_host_read(struct measure_host *host)
{
	g_autoptr(GDateTime) now = g_date_time_new_now_utc();

	memset(host, 0, sizeof(*host));
	host->cpu = cpu_name();
	host->date = g_date_time_format(now, "%Y-%m-%d");
	host->cpus = (u32)sysconf(_SC_NPROCESSORS_ONLN);
	host->sockets = count_sockets(host->cpus);
	read_caches(host);
}

void measure_host_clear(struct measure_host *host)
{
	g_free(host->cpu);
	g_free(host->date);
}

/* --- the model --- */

/* A number to be written, in what its kind is written in (a PS in ns), and where it comes from. */
struct entry {
	double value;
	char *source;
};

struct draft {
	const struct measure *m;
	const struct measure_host *host;
	struct entry entry[NR_COSTS];
};

static void put(struct draft *d, enum cost_id id, double value, const char *fmt, ...) G_GNUC_PRINTF(4, 5);

static void put(struct draft *d, enum cost_id id, double value, const char *fmt, ...)
{
	const struct cost_desc *desc = &cost_desc[id];
	double unit = desc->kind == COST_KIND_PS ? 1e3 : 1;
	va_list ap;

	va_start(ap, fmt);
	g_free(d->entry[id].source);
	d->entry[id].source = g_strdup_vprintf(fmt, ap);
	va_end(ap);
	d->entry[id].value = CLAMP(value, desc->min / unit, desc->max / unit);
}

/* A figure of the probe as it is, if there is one. */
static bool put_figure(struct draft *d, enum cost_id id, const char *name, double scale)
{
	double v[3];

	if (!figure(d->m, name, v))
		return false;
	put(d, id, v[0] * scale, "Measured on %s, %s: median of %u, %.4g..%.4g (memory-probe, %s).", d->host->cpu,
	    d->host->date, d->m->runs, v[1] * scale, v[2] * scale, name);
	return true;
}

static double value_of(const struct draft *d, enum cost_id id)
{
	return d->entry[id].value;
}

static void same_as(struct draft *d, enum cost_id id, enum cost_id as, const char *why)
{
	put(d, id, value_of(d, as), "%s: as %s.", why, cost_desc[as].name);
}

/* A kind's value as a file has it. */
static double written(const struct cost_model *m, enum cost_id id)
{
	return cost_desc[id].kind == COST_KIND_CYCLES ? (double)m->v[id] / (double)COST_CYCLE : (double)m->v[id];
}

static void draft_cost(struct draft *d, const struct cost_model *simple)
{
	double walk[3];

	for (u32 id = 0; id < NR_COSTS; id++)
		if (!cost_desc[id].memory)
			put(d, (enum cost_id)id, written(simple, (enum cost_id)id), "Not measured: simple's.");
	put_figure(d, COST_clock, "tsc_mhz", 1e6);
	put_figure(d, COST_cpi, "model.cpi", 1);
	put_figure(d, COST_rep_bytes, "model.rep_bytes", 1);
	/* Powers of two, which four ways divide. */
	put_figure(d, COST_l1d_4k_entries, "tlb.reach_first", 1);
	put_figure(d, COST_l2_entries, "tlb.reach_second", 1);
	put_figure(d, COST_l2_tlb_hit, "model.l2_tlb_hit", 1);
	if (figure(d->m, "tlb.walk_cycles", walk))
		put(d, COST_walk_start, walk[0] - value_of(d, COST_walk_step),
		    "Measured on %s, %s: median of %u, %.4g..%.4g (memory-probe, tlb.walk_cycles), less walk_step. On a virtual machine the second level's walk is in it.",
		    d->host->cpu, d->host->date, d->m->runs, walk[1], walk[2]);
}

static void draft_caches(struct draft *d)
{
	static const struct {
		enum cost_id kib, ways;
		u32 usual_kib, usual_ways;
	} cache[] = {
		{ COST_cache_l1_kib, COST_cache_l1_ways, 32, 8 },
		{ COST_cache_l2_kib, COST_cache_l2_ways, 256, 8 },
		{ COST_cache_l3_kib, COST_cache_l3_ways, 24576, 16 },
	};

	for (u32 i = 0; i < ARRAY_SIZE(cache); i++) {
		const struct measure_cache *c = &d->host->cache[i];
		u64 lines = (u64)c->kib * 16, sets = c->ways ? lines / c->ways : 0;
		bool usable = sets && lines % c->ways == 0 && (i == 2 || !(sets & (sets - 1)));

		if (!c->kib) {
			put(d, cache[i].kib, cache[i].usual_kib, "Not measured, and /sys does not tell: a usual size.");
			put(d, cache[i].ways, cache[i].usual_ways, "Not measured, and /sys does not tell: a usual number.");
			continue;
		}
		put(d, cache[i].kib, c->kib, "By /sys of %s.", d->host->cpu);
		if (usable)
			put(d, cache[i].ways, c->ways, "By /sys of %s.", d->host->cpu);
		else
			/* Any size in KiB has lines that one, and its power of two, divides. */
			put(d, cache[i].ways, (double)(i == 2 ? 16 : lines >> __builtin_ctzll(lines)),
			    "The %u ways by /sys cannot be modelled with that size.", c->ways);
	}
}

static void draft_lines(struct draft *d)
{
	static const char *const one_core = "One core a socket: not measured", *const one_socket = "One socket: no remote measured";
	double ghz = value_of(d, COST_clock) / 1e9;

	put_figure(d, COST_l2_hit, "model.l2_hit", 1);
	put_figure(d, COST_l3_hit, "model.l3_hit", 1);
	if (!put_figure(d, COST_line_socket_clean, "model.line_socket_clean", 1))
		same_as(d, COST_line_socket_clean, COST_l3_hit, one_core);
	if (!put_figure(d, COST_line_socket_dirty, "model.line_socket_dirty", 1))
		same_as(d, COST_line_socket_dirty, COST_l3_hit, one_core);
	if (!put_figure(d, COST_line_sibling, "model.line_sibling", 1))
		put(d, COST_line_sibling, value_of(d, COST_l2_hit) / ghz, "One thread a core: not measured: as l2_hit.");
	if (!put_figure(d, COST_line_remote_clean, "model.line_remote_clean", 1))
		same_as(d, COST_line_remote_clean, COST_line_socket_clean, one_socket);
	if (!put_figure(d, COST_line_remote_dirty, "model.line_remote_dirty", 1))
		same_as(d, COST_line_remote_dirty, COST_line_socket_dirty, one_socket);
	put(d, COST_line_hop, 0, "Not measured: every socket is linked to every other.");
	put(d, COST_socket_links, d->host->sockets > 1 ? d->host->sockets - 1 : 1, "As many as /sys has other sockets, or 1.");
	put_figure(d, COST_dram_local, "model.dram_local", 1);
	if (!put_figure(d, COST_dram_remote, "model.dram_remote", 1))
		same_as(d, COST_dram_remote, COST_dram_local, one_socket);
}

static void draft_rates(struct draft *d)
{
	u32 cpus = MAX(d->host->cpus / d->host->sockets, 1);

	put_figure(d, COST_stream_l2, "model.stream_l2", 1);
	put_figure(d, COST_stream_l3, "model.stream_l3", 1);
	put_figure(d, COST_stream_dram, "model.stream_dram", 1);
	if (!put_figure(d, COST_stream_remote, "model.stream_remote", 1))
		same_as(d, COST_stream_remote, COST_stream_dram, "One socket: no remote measured");
	put(d, COST_dram_line, value_of(d, COST_stream_dram) / cpus,
	    "Not measured: that the %u CPUs of a socket can all stream as fast as one does alone.", cpus);
	same_as(d, COST_link_line, COST_dram_line, "Not measured");
	put(d, COST_l3_line, value_of(d, COST_stream_l3) / cpus, "Not measured: as dram_line, from stream_l3.");
	put(d, COST_miss_window, 168, "Not measured: Ivy Bridge's reorder buffer (ORM).");
	if (put_figure(d, COST_misses, "model.misses", 1))
		d->entry[COST_misses].value = MAX(round(value_of(d, COST_misses)), 1);
	put_figure(d, COST_lock, "model.lock", 1);
	put_figure(d, COST_fence, "model.fence", 1);
	put_figure(d, COST_pause, "model.pause", 1);
	if (!put_figure(d, COST_smt_slowdown, "model.smt_slowdown", 1))
		put(d, COST_smt_slowdown, 1, "One thread a core: no sibling measured.");
	put(d, COST_jitter, 0, "Not measured; the run's seed then moves no transfer.");
}

/* In ns, also what is written in cycles. */
static double in_ns(const struct draft *d, enum cost_id id)
{
	double v = value_of(d, id);

	return cost_desc[id].kind == COST_KIND_CYCLES ? v * 1e9 / value_of(d, COST_clock) : v;
}

static void set_ns(struct draft *d, enum cost_id id, double ns, enum cost_id by)
{
	char *source = d->entry[id].source;

	d->entry[id].source = g_strdup_printf("%s That was %.4gns, and a cost model has nothing that contradicts %s.", source,
					      in_ns(d, id), cost_desc[by].name);
	g_free(source);
	d->entry[id].value = cost_desc[id].kind == COST_KIND_CYCLES ? ns * value_of(d, COST_clock) / 1e9 : ns;
}

/*
 * A busy or virtual machine gives figures that contradict each other a little. What is farther takes as long as what
 * is nearer at least, and a stream's line no longer than one by itself (vmm/cost-check.c).
 */
static void draft_order(struct draft *d)
{
	static const struct {
		enum cost_id less, more;
		bool lower;	/* the first one gives way */
	} order[] = {
		{ COST_l2_hit, COST_l3_hit, false },
		{ COST_l3_hit, COST_line_socket_clean, false },
		{ COST_l3_hit, COST_line_socket_dirty, false },
		{ COST_l3_hit, COST_dram_local, false },
		{ COST_line_sibling, COST_line_socket_dirty, true },
		{ COST_line_socket_clean, COST_line_remote_clean, false },
		{ COST_line_socket_dirty, COST_line_remote_dirty, false },
		{ COST_dram_local, COST_dram_remote, false },
		{ COST_stream_l2, COST_l2_hit, true },
		{ COST_stream_l3, COST_l3_hit, true },
		{ COST_stream_dram, COST_dram_local, true },
		{ COST_stream_remote, COST_dram_remote, true },
		{ COST_stream_dram, COST_stream_remote, false },
		{ COST_stream_l3, COST_stream_dram, true },
		{ COST_stream_l2, COST_stream_l3, true },
	};

	for (u32 i = 0; i < ARRAY_SIZE(order); i++) {
		double less = in_ns(d, order[i].less), more = in_ns(d, order[i].more);

		if (less <= more)
			continue;
		if (order[i].lower)
			set_ns(d, order[i].less, more, order[i].more);
		else
			set_ns(d, order[i].more, less, order[i].less);
	}
}

/* The quantum is the shortest way between two cores, and no IPI is shorter (vmm/cost-check.c). */
static void draft_quantum(struct draft *d)
{
	static const enum cost_id way[] = { COST_line_socket_clean, COST_line_socket_dirty, COST_line_remote_clean,
					    COST_line_remote_dirty, COST_ipi_smt, COST_ipi_socket, COST_ipi_remote };
	double least = value_of(d, way[0]);

	for (u32 i = 1; i < ARRAY_SIZE(way); i++)
		least = MIN(least, value_of(d, way[i]));
	put(d, COST_quantum, floor(least), "The shortest way between two cores, below.");
}

static char *value_text(enum cost_id id, double v)
{
	switch (cost_desc[id].kind) {
	case COST_KIND_CYCLES:
	case COST_KIND_RATIO:
		return g_strdup_printf("%.3f", v);
	case COST_KIND_PS:
		/* Down: what was made equal stays in order. */
		return g_strdup_printf("%.3fns", floor(v * 1000) / 1000);
	case COST_KIND_NS:
		return g_strdup_printf("%.0fns", v);
	case COST_KIND_HZ:
		return g_strdup_printf("%.0fMHz", v / 1e6);
	case COST_KIND_COUNT:
		break;
	}
	return g_strdup_printf("%.0f", v);
}

static char *draft_text(const struct draft *d)
{
	GString *text = g_string_new("# SPDX-License-Identifier: GPL-2.0-only\n#\n");

	g_string_append_printf(text,
			       "# %s, measured on %s by faultbed cost-model --measure: the median of %u runs of memory-probe, with the\n"
			       "# least and the most. Cycles are the TSC's.\n",
			       d->host->cpu, d->host->date, d->m->runs);
	for (u32 memory = 0; memory < 2; memory++) {
		g_string_append(text, memory ? "\n[memory]\n" : "[cost]\n");
		for (u32 id = 0; id < NR_COSTS; id++) {
			g_autofree char *value = NULL;

			if (cost_desc[id].memory != memory)
				continue;
			value = value_text((enum cost_id)id, d->entry[id].value);
			g_string_append_printf(text, "\n# %s\n%s = %s\n", d->entry[id].source, cost_desc[id].name, value);
		}
	}
	return g_string_free(text, FALSE);
}

char *measure_text(const struct measure *m, const struct measure_host *host, const struct cost_model *simple)
{
	static const char *const needed[] = { "tsc_mhz",	   "model.cpi",	       "model.l2_hit",	 "model.l3_hit",
					      "model.dram_local",  "model.stream_l2",  "model.stream_l3", "model.stream_dram",
					      "model.misses",	   "model.lock",       "model.fence",	 "model.pause" };
	struct draft d = { .m = m, .host = host };
	char *text = NULL;
	double v[3];

	for (u32 i = 0; i < ARRAY_SIZE(needed); i++) {
		if (!figure(m, needed[i], v)) {
			fb_err("memory-probe did not report %s, and without it there is no cost model", needed[i]);
			return NULL;
		}
	}
	draft_cost(&d, simple);
	draft_caches(&d);
	draft_lines(&d);
	draft_rates(&d);
	draft_order(&d);
	draft_quantum(&d);
	text = draft_text(&d);
	for (u32 id = 0; id < NR_COSTS; id++)
		g_free(d.entry[id].source);
	return text;
}

/* --- the command --- */

static bool measure_run(struct measure *m, const char *probe)
{
	const char *const argv[] = { probe, "--repeat", "3", "--rounds", "2000", "--tlb-pages", "16384", NULL };
	g_autofree char *out = NULL, *err = NULL;
	g_autoptr(GError) error = NULL;
	int status = 0;

	if (!g_spawn_sync(NULL, (char **)argv, NULL, 0, NULL, NULL, &out, &err, &status, &error)) {
		fb_err("%s (make guest-tests builds it)", error->message);
		return false;
	}
	if (!g_spawn_check_wait_status(status, &error)) {
		fb_err("memory-probe: %s: %s", error->message, g_strchomp(err));
		return false;
	}
	measure_take(m, out);
	return true;
}

static int measure_write(const char *out_path, const char *text)
{
	g_autoptr(GError) error = NULL;
	struct cost_model model;

	if (!out_path) {
		fputs(text, stdout);
		return STATUS_DONE;
	}
	if (!g_file_set_contents(out_path, text, -1, &error)) {
		fb_err("%s", error->message);
		return STATUS_BAD_INPUT;
	}
	/* What we write has to be what we read. */
	return cost_file_load(out_path, &model) ? STATUS_INTERNAL : STATUS_DONE;
}

int cost_measure(const char *out_path)
{
	g_autofree char *probe = front_build("guest-tests/memory-probe"), *home = front_home(), *text = NULL;
	g_autofree char *simple_path = g_build_filename(home, "cost-models", "simple.ini", NULL);
	struct measure_host host;
	struct cost_model simple;
	struct measure m;
	bool good = true;
	int status = STATUS_HOST;

	if (cost_file_load(simple_path, &simple))
		return STATUS_BAD_INPUT;
	measure_init(&m);
	measure_host_read(&host);
	for (u32 i = 0; i < MEASURE_RUNS && good; i++)
		good = measure_run(&m, probe);
	if (good)
		text = measure_text(&m, &host, &simple);
	if (text)
		status = measure_write(out_path, text);
	measure_host_clear(&host);
	measure_destroy(&m);
	return status;
}
