// SPDX-License-Identifier: GPL-2.0-only
#include "lib/procstat.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cpu.h"

/* USER_HZ of every x86 Linux: the unit of /proc/stat's times. */
#define NS_PER_TICK	10000000u
#define NAME_LEN	48

static const char *const source_path[NR_PROCSTAT_FILES] = {
	[PROCSTAT_VMSTAT] = "/proc/vmstat",
	[PROCSTAT_INTERRUPTS] = "/proc/interrupts",
	[PROCSTAT_STAT] = "/proc/stat",
};

const char *procstat_source(enum procstat_file file)
{
	return source_path[file];
}

void procstat_init(struct procstat *s)
{
	struct cpu_mask possible;
	u32 cpus = 1;

	/* Not by sysconf(): C libraries differ, and musl's counts the CPUs that this thread may run on. */
	if (!cpu_mask_read("/sys/devices/system/cpu/possible", &possible) && cpu_mask_count(&possible))
		cpus = cpu_mask_count(&possible);
	for (int i = 0; i < NR_PROCSTAT_FILES; i++) {
		/* A row of /proc/interrupts is 11 bytes a CPU, one of /proc/stat about 80. */
		s->size[i] = 16384 + (i == PROCSTAT_INTERRUPTS ? 1024 : 128) * (size_t)cpus;
		s->text[i] = malloc(s->size[i]);
		if (!s->text[i])
			die(EXIT_MISMATCH, "no memory for a snapshot of %s", source_path[i]);
		memset(s->text[i], 0, s->size[i]);
	}
}

void procstat_take(struct procstat *s)
{
	for (int i = 0; i < NR_PROCSTAT_FILES; i++)
		if (read_file(source_path[i], s->text[i], s->size[i]) < 0)
			s->text[i][0] = '\0';
}

/* One counter of a file's text. */
struct item {
	char name[NAME_LEN];
	u64 value;
};

/* Counters of the "cpu" line that are read before another line is asked for. */
static const char *const cpu_time[] = {
	"cpu_user_ns", "cpu_nice_ns", "cpu_system_ns", "cpu_idle_ns", "cpu_iowait_ns", "cpu_irq_ns",
	"cpu_softirq_ns", "cpu_steal_ns",
};

#define NR_CPU_TIMES	(sizeof(cpu_time) / sizeof(cpu_time[0]))

struct cursor {
	enum procstat_file file;
	const char *pos;	/* next line */
	const char *times;	/* within the "cpu" line, or NULL */
	u32 nr_times;
};

static bool parse_vmstat(const char *line, struct item *it)
{
	unsigned long long v;

	if (sscanf(line, "%47s %llu", it->name, &v) != 2)
		return false;
	it->value = v;
	/* nr_* are how many there are now; nr_tlb_* count events all the same. */
	return strncmp(it->name, "nr_", 3) || !strncmp(it->name, "nr_tlb_", 7);
}

static bool parse_interrupts(const char *line, struct item *it)
{
	const char *colon = strchr(line, ':');
	const char *nl = strchr(line, '\n');
	char *end;
	size_t len;

	if (!colon || (nl && colon > nl))
		return false;	/* the head line */
	while (*line == ' ')
		line++;
	len = (size_t)(colon - line);
	if (len > 16)
		return false;
	snprintf(it->name, sizeof(it->name), *line >= '0' && *line <= '9' ? "irq_%.*s" : "%.*s",
		 (int)len, line);
	it->value = 0;
	for (line = colon + 1;; line = end) {
		while (*line == ' ')
			line++;
		if (*line < '0' || *line > '9')
			return true;	/* the row's description, or its end */
		it->value += strtoull(line, &end, 10);
		/* A description may begin with a digit ("8250"): only blanks end a count. */
		if (*end != ' ' && *end != '\n' && *end)
			return true;
	}
}

static bool parse_stat(struct cursor *c, const char *line, struct item *it)
{
	static const char *const wanted[] = { "ctxt", "processes", "intr", "softirq" };
	unsigned long long v;

	if (!strncmp(line, "cpu ", 4)) {
		c->times = line + 4;
		c->nr_times = 0;
		return false;
	}
	if (sscanf(line, "%47s %llu", it->name, &v) != 2)
		return false;
	it->value = v;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if (!strcmp(it->name, wanted[i]))
			return true;
	return false;
}

/* Next counter of the text; false at its end. */
static bool next_item(struct cursor *c, struct item *it)
{
	while (c->times || *c->pos) {
		const char *line = c->pos;
		const char *nl;
		char *end;
		bool good;

		if (c->times) {
			if (c->nr_times == NR_CPU_TIMES) {
				c->times = NULL;
				continue;
			}
			it->value = strtoull(c->times, &end, 10) * NS_PER_TICK;
			if (end == c->times) {	/* an older kernel has fewer */
				c->times = NULL;
				continue;
			}
			c->times = end;
			snprintf(it->name, sizeof(it->name), "%s", cpu_time[c->nr_times++]);
			return true;
		}
		nl = strchr(line, '\n');
		c->pos = nl ? nl + 1 : line + strlen(line);
		if (c->file == PROCSTAT_VMSTAT)
			good = parse_vmstat(line, it);
		else if (c->file == PROCSTAT_INTERRUPTS)
			good = parse_interrupts(line, it);
		else
			good = parse_stat(c, line, it);
		if (good)
			return true;
	}
	return false;
}

/* The counter called `name`, from the cursor on, else from the top: files keep their order. */
static bool find_item(struct cursor *c, const char *text, const char *name, struct item *it)
{
	struct cursor from_here = *c;

	while (next_item(&from_here, it)) {
		if (!strcmp(it->name, name)) {
			*c = from_here;
			return true;
		}
	}
	from_here = (struct cursor){ .file = c->file, .pos = text };
	while (next_item(&from_here, it)) {
		if (!strcmp(it->name, name)) {
			*c = from_here;
			return true;
		}
	}
	return false;
}

int procstat_value(const struct procstat *s, enum procstat_file file, const char *name, u64 *value)
{
	struct cursor c = { .file = file, .pos = s->text[file] };
	struct item it;

	if (!find_item(&c, s->text[file], name, &it))
		return -ENOENT;
	*value = it.value;
	return 0;
}

void procstat_changes(const struct procstat *before, const struct procstat *after, procstat_fn fn,
		      void *ctx)
{
	struct item old, new;

	for (int i = 0; i < NR_PROCSTAT_FILES; i++) {
		struct cursor b = { .file = (enum procstat_file)i, .pos = before->text[i] };
		struct cursor a = { .file = (enum procstat_file)i, .pos = after->text[i] };

		if (!*before->text[i])
			continue;
		while (next_item(&a, &new)) {
			/* A row that was not there before counted nothing. */
			if (!find_item(&b, before->text[i], new.name, &old))
				old.value = 0;
			if (new.value > old.value)
				fn(ctx, source_path[i], new.name, new.value - old.value);
		}
	}
}
