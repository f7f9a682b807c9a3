// SPDX-License-Identifier: GPL-2.0-only
/*
 * One line an event: time, vCPU, kind, what happened, with which arguments, where.
 * trace.def has the arguments' names.
 */
#include "core/trace.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "core/engine.h"
#include "core/symbols.h"

struct trace {
	FILE *file;
	char *path;
	GMutex lock;
	struct symbols *symbols;
	u32 mask;		/* (c) of vm->trace_mask while it is on */
	bool command_only;	/* (c) on while a command runs */
	bool failed;		/* (l) a write failed; reported once */
};

struct trace_desc {
	const char *name;
	u32 seen;		/* OBS_* */
	const char *arg[3];	/* "" = the kind has none */
};

static const struct trace_desc trace_desc[NR_TRACE_KINDS] = {
#define TRACE(kind, seen, a, b, d, meaning)	[TRACE_##kind] = { #kind, seen, { a, b, d } },
#include "core/trace.def"
#undef TRACE
};

static int trace_no_kind(const char *name, char **err)
{
	char *all = g_strjoinv(", ", (char **)(uintptr_t)trace_name_list());

	*err = g_strdup_printf("no kind of event is called '%s'; there are: all, %s", name, all);
	g_free(all);
	return -EINVAL;
}

int trace_parse_kinds(const char *text, u32 *mask, char **err)
{
	char **word = g_strsplit(text, ",", -1);
	u32 i, k;
	int ret = 0;

	*mask = 0;
	for (i = 0; word[i] && !ret; i++) {
		if (strcmp(word[i], "all") == 0) {
			*mask = TRACE_ALL;
			continue;
		}
		for (k = 0; k < NR_TRACE_KINDS && strcmp(word[i], trace_desc[k].name); k++)
			;
		if (k == NR_TRACE_KINDS)
			ret = trace_no_kind(word[i], err);
		else
			*mask |= BIT(k);
	}
	if (!word[0])
		ret = trace_no_kind("", err);
	g_strfreev(word);
	return ret;
}

const char *const *trace_name_list(void)
{
	static const char *const list[NR_TRACE_KINDS + 1] = {
#define TRACE(kind, seen, a, b, d, meaning)	#kind,
#include "core/trace.def"
#undef TRACE
		NULL
	};

	return list;
}

/* Why a VM cannot see a kind, or NULL if it can. */
static const char *trace_na(const struct vm *vm, const struct trace_desc *d)
{
	/* Only an engine whose time is a cost model's runs each instruction itself. */
	bool soft = cost(&vm->cost, clock) != 0;

	if (d->seen & OBS_APIC && vm->apic == APIC_KERNEL)
		return "with apic = kernel it happens inside KVM; vm.apic = xapic brings it here";
	if (soft ? d->seen & OBS_SOFT : d->seen & OBS_KVM)
		return NULL;
	if (!soft && d->seen & OBS_EPT)
		return vm->inject.ept_serve ? NULL : "second-level faults are served here only with inject.ept.*, "
						     "or inject.ept.count = yes";
	return "it happens inside the CPU; engine soft sees it";
}

int trace_check(const struct vm *vm, u32 *mask, char **err)
{
	bool all = *mask == TRACE_ALL;
	const char *why;
	u32 k;

	for (k = 0; k < NR_TRACE_KINDS; k++) {
		why = *mask & BIT(k) ? trace_na(vm, &trace_desc[k]) : NULL;
		if (why && !all) {
			*err = g_strdup_printf("engine %s cannot see events of the kind %s: %s", vm->engine->name,
					       trace_desc[k].name, why);
			return -ENOTSUP;
		}
		if (why)
			*mask &= ~BIT(k);
	}
	return 0;
}

static void trace_switch(struct vm *vm, u32 mask)
{
	__atomic_store_n(&vm->trace_mask, mask, __ATOMIC_RELAXED);
}

int trace_open(struct vm *vm, const char *path, u32 mask, const char *system_map, bool command_only)
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
	trace->mask = mask;
	trace->command_only = command_only;
	fputs("# ns vcpu kind what arguments at symbol\n", trace->file);
	vm->trace = trace;
	if (!command_only)
		trace_switch(vm, mask);
	return 0;
}

void trace_command(struct vm *vm, bool runs)
{
	struct trace *trace = vm->trace;

	if (!trace || !trace->command_only)
		return;
	g_mutex_lock(&trace->lock);
	trace_switch(vm, runs && !trace->failed ? trace->mask : 0);
	g_mutex_unlock(&trace->lock);
}

int trace_close(struct vm *vm)
{
	struct trace *trace = vm->trace;
	bool failed;

	if (!trace)
		return 0;
	vm->trace = NULL;
	trace_switch(vm, 0);
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

/* " name=value", or nothing. */
static void trace_arg(FILE *file, const char *name, u64 value)
{
	if (!*name || value == TRACE_NONE)
		return;
	fprintf(file, g_str_has_suffix(name, "0x") ? " %s%llx" : " %s%llu", name, (unsigned long long)value);
}

void trace_add(struct vm *vm, const struct vcpu *vcpu, enum trace_kind kind, u64 ns, u64 rip, const char *what,
	       u64 a, u64 b, u64 d)
{
	const struct trace_desc *desc = &trace_desc[kind];
	struct trace *trace = vm->trace;
	const char *symbol;
	u64 offset = 0;

	g_mutex_lock(&trace->lock);
	/* Threads that have asked trace_wanted() before a failure still come by. */
	if (trace->failed)
		goto out;
	fprintf(trace->file, "%llu %u %s %s", (unsigned long long)ns, vcpu->id, desc->name, what ? what : "-");
	trace_arg(trace->file, desc->arg[0], a);
	trace_arg(trace->file, desc->arg[1], b);
	trace_arg(trace->file, desc->arg[2], d);
	trace_arg(trace->file, "at=0x", rip);
	symbol = rip == TRACE_NONE ? NULL : symbols_find(trace->symbols, rip, &offset);
	if (symbol)
		fprintf(trace->file, " %s+0x%llx", symbol, (unsigned long long)offset);
	fputc('\n', trace->file);
	if (ferror(trace->file)) {
		trace->failed = true;
		fb_err("%s: writing the trace failed: %s; the run goes on without", trace->path, strerror(errno));
		trace_switch(vm, 0);
	}
out:
	g_mutex_unlock(&trace->lock);
}

void trace_here(struct vcpu *vcpu, enum trace_kind kind, const char *what, u64 a, u64 b, u64 d)
{
	const struct engine_ops *engine = vcpu->vm->engine;
	u64 rip;

	if (!engine->rip || !engine->rip(vcpu, &rip))
		rip = TRACE_NONE;
	trace_add(vcpu->vm, vcpu, kind, engine->now(vcpu->vm, vcpu), rip, what, a, b, d);
}
