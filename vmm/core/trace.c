// SPDX-License-Identifier: GPL-2.0-only
/*
 * One line an event: time, vCPU, kind, what happened, where. The arguments of a kind
 * are printed by its format in trace.def, which is ours and has three conversions.
 */
#include "core/trace.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "core/symbols.h"

struct trace {
	FILE *file;
	char *path;
	GMutex lock;
	struct symbols *symbols;
	bool failed;		/* (l) a write failed; reported once */
};

static const char *const trace_name[NR_TRACE_KINDS] = {
#define TRACE(name, format, meaning)	[TRACE_##name] = #name,
#include "core/trace.def"
#undef TRACE
};

int trace_parse_kinds(const char *text, u32 *mask, char **err)
{
	char **word = g_strsplit(text, ",", -1);
	u32 i, k;
	int ret = 0;

	*mask = 0;
	for (i = 0; word[i] && !ret; i++) {
		if (strcmp(word[i], "all") == 0) {
			*mask = BIT(NR_TRACE_KINDS) - 1;
			continue;
		}
		for (k = 0; k < NR_TRACE_KINDS && strcmp(word[i], trace_name[k]); k++)
			;
		if (k == NR_TRACE_KINDS) {
			char *all = g_strjoinv(", ", (char **)(uintptr_t)trace_name_list());

			*err = g_strdup_printf("no kind of event is called '%s'; there are: all, %s", word[i], all);
			g_free(all);
			ret = -EINVAL;
		} else {
			*mask |= BIT(k);
		}
	}
	g_strfreev(word);
	return ret;
}

const char *const *trace_name_list(void)
{
	static const char *const list[NR_TRACE_KINDS + 1] = {
#define TRACE(name, format, meaning)	#name,
#include "core/trace.def"
#undef TRACE
		NULL
	};

	return list;
}

int trace_open(struct vm *vm, const char *path, u32 mask, const char *system_map)
{
	struct trace *trace = g_new0(struct trace, 1);
	char *err = NULL;

	trace->file = fopen(path, "we");
	if (!trace->file) {
		int ret = -errno;

		fb_err("%s: %s", path, strerror(-ret));
		g_free(trace);
		return ret;
	}
	if (system_map) {
		trace->symbols = symbols_read(system_map, &err);
		if (!trace->symbols) {
			fb_warn("%s: the trace has addresses and no names", err);
			g_free(err);
		}
	}
	g_mutex_init(&trace->lock);
	trace->path = g_strdup(path);
	fputs("# ns vcpu kind arguments rip symbol\n", trace->file);
	vm->trace = trace;
	vm->trace_mask = mask;
	return 0;
}

int trace_close(struct vm *vm)
{
	struct trace *trace = vm->trace;
	bool failed;

	if (!trace)
		return 0;
	vm->trace = NULL;
	vm->trace_mask = 0;
	failed = fclose(trace->file) != 0 && !trace->failed;
	if (failed)
		fb_err("%s: the trace could not be written in full: %s", trace->path, strerror(errno));
	failed |= trace->failed;
	g_mutex_clear(&trace->lock);
	symbols_free(trace->symbols);
	g_free(trace->path);
	g_free(trace);
	return failed ? -EIO : 0;
}

void trace_add(struct vm *vm, const struct vcpu *vcpu, enum trace_kind kind, u64 ns, u64 rip, u64 a, u64 b, u64 d)
{
	struct trace *trace = vm->trace;
	unsigned long long x = a, y = b, z = d;
	const char *symbol;
	u64 offset = 0;

	g_mutex_lock(&trace->lock);
	fprintf(trace->file, "%llu %u %s ", (unsigned long long)ns, vcpu->id, trace_name[kind]);
	switch (kind) {
#define TRACE(name, format, meaning)						\
	case TRACE_##name:							\
		fprintf(trace->file, format, x, y, z);				\
		break;
#include "core/trace.def"
#undef TRACE
	case NR_TRACE_KINDS:
		break;
	}
	symbol = symbols_find(trace->symbols, rip, &offset);
	fprintf(trace->file, " 0x%llx", (unsigned long long)rip);
	if (symbol)
		fprintf(trace->file, " %s+0x%llx", symbol, (unsigned long long)offset);
	fputc('\n', trace->file);
	if (ferror(trace->file) && !trace->failed) {
		trace->failed = true;
		fb_err("%s: writing the trace failed: %s; the run goes on without", trace->path, strerror(errno));
		vm->trace_mask = 0;
	}
	g_mutex_unlock(&trace->lock);
}
