// SPDX-License-Identifier: GPL-2.0-only
/*
 * A VM's life. The control protocol's lines arrive under vm->lock, byte by byte,
 * from whichever vCPU writes them; marks arrive without it. `lock` orders the two;
 * it is taken inside vm->lock, never around it.
 */
#define _GNU_SOURCE
#include "session.h"

#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "console.h"
#include "core/trace.h"
#include "dump.h"
#include "machine/machine.h"
#include "record.h"
#include "record-vm.h"
#include "refault.h"
#include "report.h"
#include "run-lockstep.h"
#include "run-threads.h"

#define LAST_WORDS_LINES	20
#define CONTROL_LINE_MAX	4096u
/* Lines of a kind that a guest can make us keep for one repeat. */
#define CONTROL_KEEP_MAX	4096u
#define FLUSH_PERIOD_NS		(20 * NSEC_PER_MSEC)
/* How often a person hears that it goes on. */
#define BEAT_PERIOD_NS		(15 * NSEC_PER_SEC)
/* A stream number that nothing else uses: how far vCPUs are out of step at a command's start. */
#define SKEW_STREAM		0x736b6577ull
/* After a panic's first line: time for the rest of its words. */
#define PANIC_GRACE_NS		(2 * NSEC_PER_SEC)
/* After `quit`: time for init to leave. */
#define QUIT_GRACE_NS		(20 * NSEC_PER_SEC)

enum session_state {
	SESSION_BOOTING,	/* until the first `ready` */
	SESSION_BOOTED,		/* virtual time only: until the runner has paused */
	SESSION_KNOBS,		/* `knobs` sent; until `ready` */
	SESSION_RUNNING,	/* `run` sent; until `done` */
	SESSION_DONE,		/* until `ready` */
	SESSION_QUITTING,	/* `quit` sent */
};

/* Of this process, ns: since the session's start, and of all its threads on CPUs. */
struct host_time {
	u64 wall, cpu;
};

/* Two marks and the counters at each. */
struct region {
	struct sample from, to;
	struct host_time host_from, host_to;	/* without the taking of the samples */
	bool begun, ended;
	u32 pairs;
};

struct session {
	struct vm *vm;			/* (c) */
	const struct scenario *s;	/* (c) */
	struct vm_setup *setup;		/* (c) */
	const struct session_params *params;	/* (c) */
	struct console console;
	struct refault refault;
	struct clock_event flush, beat, timeout, boot_timeout, host_timeout, panic_end, quit_end;	/* on vm->service */
	bool virtual;			/* (c) time is virtual: what a person sees goes by the host's time, in session_host_tick() */
	u64 host_start;			/* (c) host ns */
	u64 host_limit;			/* (c) ns of host time, 0 = none */
	u64 next_beat;			/* host ns after host_start; virtual time only */
	struct session_snapshot snapshot;	/* virtual time only */

	GMutex lock;			/* all below */
	enum session_state state;
	bool spoke;			/* init said hello */
	GString *line;
	u32 repeat;			/* the one that runs or comes next */
	u32 measured;			/* records written */
	bool failed;			/* a command failed, or something asked for could not be done */
	bool knob_error;
	struct region load, command;
	JsonObject *guest, *knobs, *reports;
	GPtrArray *proc, *warnings;
	JsonArray *phases;
	char *why;			/* first reason that is not in vm->stop */
};

static u64 session_now(struct session *ss)
{
	return ss->vm->engine->now(ss->vm, NULL);
}

static void session_say(struct session *ss, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void session_say(struct session *ss, const char *fmt, ...)
{
	va_list ap;
	char *text;

	if (!ss->params->progress)
		return;
	va_start(ap, fmt);
	text = g_strdup_vprintf(fmt, ap);
	va_end(ap);
	fb_info("progress: %s: %s", ss->params->cell, text);
	g_free(text);
}

/* To the guest's init. Under vm->lock. */
static void control_send(struct session *ss, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void control_send(struct session *ss, const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	text = g_strdup_vprintf(fmt, ap);
	va_end(ap);
	uart_input(&ss->vm->machine->control, text, (u32)strlen(text));
	g_free(text);
}

static void region_reset(struct region *r)
{
	sample_free(&r->from);
	sample_free(&r->to);
	r->begun = r->ended = false;
	r->pairs = 0;
}

static void repeat_reset(struct session *ss)
{
	region_reset(&ss->load);
	region_reset(&ss->command);
	json_object_unref(ss->reports);
	ss->reports = json_object_new();
	json_array_unref(ss->phases);
	ss->phases = json_array_new();
	g_ptr_array_set_size(ss->proc, 0);
	g_ptr_array_set_size(ss->warnings, 0);
}

/* The guest's shape for its own checks. */
static void control_send_topology(struct session *ss)
{
	const struct topology *t = &ss->vm->topo;
	GString *text = g_string_new(NULL);
	u32 i, j;

	control_send(ss, "env FAULTBED_TOPOLOGY=%ux%ux%u\n", t->sockets, t->cores, t->threads);
	control_send(ss, "env FAULTBED_CPU_ORDER=%s\n", t->order == CPU_ORDER_SIBLINGS_LAST ? "siblings-last" :
		     "siblings-adjacent");
	control_send(ss, "env FAULTBED_NODES=%u\n", t->nr_nodes);
	for (i = 0; i < t->nr_nodes; i++)
		for (j = 0; j < t->nr_nodes; j++)
			g_string_append_printf(text, "%s%u", j ? "," : i ? ";" : "", t->distance[i][j]);
	control_send(ss, "env FAULTBED_DISTANCE=%s\n", text->str);
	g_string_truncate(text, 0);
	for (i = 0; i < t->nr_cpus; i++)
		g_string_append_printf(text, "%s%u", i ? "," : "", t->cpu[i].apic_id);
	control_send(ss, "env FAULTBED_APIC_IDS=%s\n", text->str);
	g_string_free(text, TRUE);
}

/*
 * Repeat r runs with seed + r, from its command on: what is drawn before, in the boot, is the
 * same for all. On virtual time nothing but the seed can set repeats apart, so it also puts the
 * vCPUs a little out of step, as they are on any real machine.
 */
static void session_seed(struct session *ss)
{
	struct vm *vm = ss->vm;
	u64 seed = ss->s->seed + ss->repeat, quantum = cost(&vm->cost, quantum);
	struct rng rng;
	u32 i;

	inject_seed(&vm->inject, seed);
	if (vm->engine->reseed)
		vm->engine->reseed(vm, seed);
	if (!quantum)
		return;
	rng_seed(&rng, seed, SKEW_STREAM);
	for (i = 0; i < vm->topo.nr_cpus; i++)
		vm->vcpu[i]->skew_ns = rng_next(&rng) % quantum;
}

static void session_start_repeat(struct session *ss)
{
	const struct scenario *s = ss->s;

	repeat_reset(ss);
	session_seed(ss);
	ss->state = SESSION_RUNNING;
	session_say(ss, "repeat %u of %u: %s", ss->repeat + 1, s->repeat, s->command);
	control_send_topology(ss);
	control_send(ss, "env FAULTBED_WARMUP_NS=%llu\n", (unsigned long long)s->warmup_ns);
	control_send(ss, "env FAULTBED_DURATION_NS=%llu\n", (unsigned long long)s->duration_ns);
	control_send(ss, "env FAULTBED_SEED=%llu\n", (unsigned long long)(s->seed + ss->repeat));
	control_send(ss, "run %s\n", s->command);
}

static void session_quit(struct session *ss)
{
	ss->state = SESSION_QUITTING;
	control_send(ss, "quit\n");
	clock_schedule(&ss->vm->service, &ss->quit_end, session_now(ss) + QUIT_GRACE_NS);
}

/* Host time since the start. */
static u64 session_host_ns(const struct session *ss)
{
	return (u64)g_get_monotonic_time() * 1000 - ss->host_start;
}

static struct host_time session_host_time(const struct session *ss)
{
	struct timespec ts = { 0 };

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (struct host_time){
		.wall = session_host_ns(ss), .cpu = (u64)ts.tv_sec * NSEC_PER_SEC + (u64)ts.tv_nsec,
	};
}

/* What was done with snapshots is of this run only, like all in a provenance. */
static JsonObject *session_snapshot_object(const struct session *ss)
{
	const struct session_snapshot *snap = &ss->snapshot;
	JsonObject *o = json_object_new();

	json_object_set_string_member(o, "use", snap->how);
	json_object_set_string_member(o, "key", snap->key.digest);
	json_object_set_int_member(o, "host_ns", (gint64)snap->host_ns);
	if (snap->bytes)
		json_object_set_int_member(o, "bytes", (gint64)snap->bytes);
	return o;
}

static void session_write_vm_record(struct session *ss)
{
	struct host_time boot = session_host_time(ss);
	JsonObject *r = record_vm(ss->vm, ss->s, ss->setup, ss->params->cell), *provenance;

	json_object_set_object_member(r, "boot", record_boot(ss->vm, session_now(ss)));
	provenance = json_object_get_object_member(r, "provenance");
	json_object_set_int_member(provenance, "boot_host_ns", (gint64)boot.wall);
	json_object_set_int_member(provenance, "boot_host_cpu_ns", (gint64)boot.cpu);
	if (ss->virtual)
		json_object_set_object_member(provenance, "snapshot", session_snapshot_object(ss));
	json_object_set_object_member(r, "guest", json_object_ref(ss->guest));
	record_write(r, ss->params->record_fd);
}

/* What a repeat took of this host; the front end puts it where all such is. */
static JsonObject *session_repeat_provenance(const struct session *ss, const struct region *region)
{
	JsonObject *o = json_object_new();

	if (region->ended) {
		json_object_set_int_member(o, "host_ns", (gint64)(region->host_to.wall - region->host_from.wall));
		json_object_set_int_member(o, "host_cpu_ns", (gint64)(region->host_to.cpu - region->host_from.cpu));
	}
	json_object_set_int_member(o, "resident_beyond_ram", (gint64)record_resident_beyond_ram(ss->vm));
	return o;
}

static void session_write_repeat(struct session *ss, int exit_status)
{
	bool load = ss->load.ended;
	const struct region *region = load ? &ss->load : &ss->command;
	JsonObject *r = record_new("repeat", ss->params->cell);
	JsonArray *a = json_array_new();
	u32 i;

	json_object_set_int_member(r, "repeat", ss->repeat);
	json_object_set_int_member(r, "seed", (gint64)(ss->s->seed + ss->repeat));
	json_object_set_string_member(r, "marks", load ? "load" : "command");
	if (region->ended) {
		json_object_set_int_member(r, "time_ns", (gint64)(region->to.now - region->from.now));
		record_difference(r, ss->vm, &region->from, &region->to, ss->proc);
	} else {
		g_ptr_array_add(ss->warnings, g_strdup("the command left no pair of marks: nothing was measured"));
	}
	if (ss->load.pairs > 1)
		g_ptr_array_add(ss->warnings, g_strdup_printf("the load marked %u regions; the last one is reported",
							      ss->load.pairs));
	json_object_set_object_member(r, "reports", json_object_ref(ss->reports));
	json_object_set_object_member(r, "knobs", json_object_ref(ss->knobs));
	json_object_set_array_member(r, "phases", json_array_ref(ss->phases));
	json_object_set_int_member(r, "exit_status", exit_status);
	for (i = 0; i < ss->warnings->len; i++)
		json_array_add_string_element(a, ss->warnings->pdata[i]);
	json_object_set_array_member(r, "warnings", a);
	json_object_set_object_member(r, "provenance", session_repeat_provenance(ss, region));
	record_write(r, ss->params->record_fd);
	ss->measured++;
}

static void session_mark(void *ctx, struct vcpu *vcpu, u8 mark, u64 now)
{
	struct session *ss = ctx;
	struct vm *vm = ss->vm;
	JsonObject *o;

	g_mutex_lock(&ss->lock);
	if (ss->state != SESSION_RUNNING)
		goto out;
	switch (mark) {
	case MARK_COMMAND_BEGIN:
		trace_command(vm, true);
		__atomic_store_n((bool *)&vm->inject.on, true, __ATOMIC_RELAXED);
		refault_start(&ss->refault, now, ss->s->seed + ss->repeat);
		sample_take(vm, &ss->command.from, now, true);
		ss->command.host_from = session_host_time(ss);
		ss->command.begun = true;
		break;
	case MARK_COMMAND_END:
		trace_command(vm, false);
		if (ss->command.begun) {
			ss->command.host_to = session_host_time(ss);
			sample_take(vm, &ss->command.to, now, false);
			ss->command.ended = true;
		}
		__atomic_store_n((bool *)&vm->inject.on, false, __ATOMIC_RELAXED);
		break;
	case MARK_BEGIN:
		sample_take(vm, &ss->load.from, now, true);
		ss->load.host_from = session_host_time(ss);
		ss->load.begun = true;
		ss->load.ended = false;
		break;
	case MARK_END:
		if (ss->load.begun) {
			ss->load.host_to = session_host_time(ss);
			sample_take(vm, &ss->load.to, now, false);
			ss->load.ended = true;
			ss->load.begun = false;
			ss->load.pairs++;
		}
		break;
	default:
		if (json_array_get_length(ss->phases) >= CONTROL_KEEP_MAX)
			break;
		o = json_object_new();
		json_object_set_int_member(o, "mark", mark);
		json_object_set_int_member(o, "ns", (gint64)now);
		json_array_add_object_element(ss->phases, o);
	}
out:
	g_mutex_unlock(&ss->lock);
}

static void keep_line(GPtrArray *lines, const char *text)
{
	if (lines->len < CONTROL_KEEP_MAX)
		g_ptr_array_add(lines, g_strdup(text));
}

/*
 * A command's end. Whatever a guest says, each `run` has one end, so its words
 * make no more records than the scenario asked for.
 */
static void session_done(struct session *ss, const char *text)
{
	char *end;
	u64 status = g_ascii_strtoull(text, &end, 10);

	if (ss->state != SESSION_RUNNING || (ss->command.begun && !ss->command.ended) || end == text || *end ||
	    status > 255) {
		keep_line(ss->warnings, "the guest sent a \"done\" that makes no sense; ignored");
		return;
	}
	ss->state = SESSION_DONE;
	session_write_repeat(ss, (int)status);
	if (status) {
		ss->failed = true;
		if (!ss->why)
			ss->why = g_strdup_printf("the command ended with status %d: %s", (int)status,
						  ss->s->command);
	}
	session_say(ss, "repeat %u of %u: done, status %d", ss->repeat + 1, ss->s->repeat, (int)status);
	ss->repeat++;
}

/* The next repeat, or the end. */
static void session_next(struct session *ss)
{
	if (ss->repeat < ss->s->repeat)
		session_start_repeat(ss);
	else
		session_quit(ss);
}

/* The guest is up: from here on its commands. Under vm->lock and the session's. */
static void session_booted(struct session *ss)
{
	clock_schedule(&ss->vm->service, &ss->boot_timeout, CLOCK_NEVER);
	if (ss->vm->boot_done)
		ss->vm->boot_done(ss->vm);
	session_write_vm_record(ss);
	session_say(ss, "guest is up after %.*f s%s", ss->virtual ? 3 : 1, (double)session_now(ss) / 1e9,
		    ss->virtual ? " of virtual time" : "");
	if (!ss->s->knob_name->len) {
		session_next(ss);
	} else if (vm_knobs(ss->vm, ss->s) == STATUS_DONE) {
		ss->state = SESSION_KNOBS;
		control_send(ss, "knobs\n");
	} else {
		ss->failed = true;
		if (!ss->why)
			ss->why = g_strdup("the guest's table of knobs takes no more");
		session_quit(ss);
	}
}

static void session_ready(struct session *ss)
{
	switch (ss->state) {
	case SESSION_BOOTING:
		if (!ss->virtual) {
			session_booted(ss);
			return;
		}
		/*
		 * Go on from between two turns, always: that is where a snapshot of the booted
		 * guest is taken and comes back, and a run without one must not differ.
		 */
		ss->state = SESSION_BOOTED;
		ss->vm->pause = true;
		ss->vm->kick_all(ss->vm);
		return;
	case SESSION_KNOBS:
		if (ss->knob_error) {
			session_quit(ss);
			return;
		}
		break;
	case SESSION_DONE:
		break;
	case SESSION_BOOTED:
	case SESSION_RUNNING:
	case SESSION_QUITTING:
		return;		/* the guest's confusion, not ours */
	}
	session_next(ss);
}

static void session_error(struct session *ss, const char *text)
{
	ss->failed = true;
	ss->knob_error |= ss->state == SESSION_KNOBS;
	if (!ss->why)
		ss->why = g_strdup(text);
}

static void session_report(struct session *ss, const char *text)
{
	char **word = g_strsplit(text, " ", 3);
	JsonNode *value = g_strv_length(word) >= 2 ? report_value(word[1]) : NULL;
	JsonObject *o;

	if (!value || !report_name_ok(word[0])) {
		keep_line(ss->warnings, "the guest sent a report that is not NAME VALUE UNIT with a decimal number; ignored");
		if (value)
			json_node_free(value);
	} else if (json_object_get_size(ss->reports) < CONTROL_KEEP_MAX) {
		o = json_object_new();
		json_object_set_member(o, "value", value);
		json_object_set_string_member(o, "unit", word[2] ? word[2] : "");
		json_object_set_object_member(ss->reports, word[0], o);
	} else {
		json_node_free(value);
	}
	g_strfreev(word);
}

static void set_pair(JsonObject *o, const char *text)
{
	char **word = g_strsplit(text, " ", 2);

	if (word[0] && *word[0] && json_object_get_size(o) < CONTROL_KEEP_MAX)
		json_object_set_string_member(o, word[0], word[1] ? word[1] : "");
	g_strfreev(word);
}

static void control_line(struct session *ss, const char *line)
{
	const char *arg = strchr(line, ' ');
	size_t len = arg ? (size_t)(arg - line) : strlen(line);

	arg = arg ? arg + 1 : "";
#define IS(word)	(len == sizeof(word) - 1 && memcmp(line, word, len) == 0)
	if (IS("hello"))
		ss->spoke = true;
	else if (IS("info"))
		set_pair(ss->guest, arg);
	else if (IS("ready"))
		session_ready(ss);
	else if (IS("knob"))
		set_pair(ss->knobs, arg);
	else if (IS("error"))
		session_error(ss, arg);
	else if (IS("report"))
		session_report(ss, arg);
	else if (IS("counter"))
		keep_line(ss->proc, arg);
	else if (IS("warning"))
		keep_line(ss->warnings, arg);
	else if (IS("done"))
		session_done(ss, arg);
#undef IS
}

/* uart_sink of ttyS1: under vm->lock. Guest text goes into JSON, so it is made valid UTF-8 here. */
static void control_byte(void *ctx, u8 byte)
{
	struct session *ss = ctx;
	char *text;

	g_mutex_lock(&ss->lock);
	if (byte == '\n') {
		text = g_utf8_make_valid(ss->line->str, (gssize)ss->line->len);
		g_string_truncate(ss->line, 0);
		control_line(ss, text);
		g_free(text);
	} else if (byte != '\r' && ss->line->len < CONTROL_LINE_MAX) {
		/* No escape sequence of a guest's reaches somebody's terminal by way of a result. */
		g_string_append_c(ss->line, byte < ' ' || byte == 0x7f ? '?' : (char)byte);
	}
	g_mutex_unlock(&ss->lock);
}

/* The user wants to see the vCPUs. Between two turns, or on the service thread. */
static void session_dump_asked(struct session *ss)
{
	struct signalfd_siginfo info;

	if (ss->params->dump_fd < 0 || read(ss->params->dump_fd, &info, sizeof(info)) != sizeof(info))
		return;
	fb_info("dump of %u vCPUs:", ss->vm->topo.nr_cpus);
	dump_symbols(ss->vm, ss->setup->system_map);
	if (ss->virtual)
		dump_vcpus(ss->vm);
	else
		dump_request(ss->vm);
}

static void session_flush(void *ctx, u64 arg, u64 due, u64 now)
{
	struct session *ss = ctx;

	console_flush(&ss->console);
	session_dump_asked(ss);
	clock_schedule(&ss->vm->service, &ss->flush, now + FLUSH_PERIOD_NS);
}

/* For a person: it goes on. */
static void session_say_beat(struct session *ss)
{
	double now = (double)session_now(ss) / 1e9;
	const char *kind = ss->virtual ? " of virtual time" : "";
	u32 started = 0, i;

	/* Read from outside their threads: for a progress line a value just gone is good enough. */
	for (i = 0; i < ss->vm->topo.nr_cpus; i++)
		if (counter_read(&ss->vm->vcpu[i]->counters, COUNTER_vm_exits))
			started++;
	g_mutex_lock(&ss->lock);
	if (ss->state == SESSION_BOOTING)
		session_say(ss, "still booting after %.*f s%s, %u of %u vCPUs have started", ss->virtual ? 3 : 0, now,
			    kind, started, ss->vm->topo.nr_cpus);
	else if (ss->state == SESSION_RUNNING)
		session_say(ss, "repeat %u of %u goes on, %.*f s%s since the start", ss->repeat + 1, ss->s->repeat,
			    ss->virtual ? 3 : 0, now, kind);
	g_mutex_unlock(&ss->lock);
}

static void session_beat(void *ctx, u64 arg, u64 due, u64 now)
{
	struct session *ss = ctx;

	session_say_beat(ss);
	clock_schedule(&ss->vm->service, &ss->beat, now + BEAT_PERIOD_NS);
}

/*
 * Virtual time stands beside the host's, by which people and their patience go: output,
 * progress and the limit are no events of the guest's world. Between two turns.
 */
static void session_host_tick(void *ctx)
{
	struct session *ss = ctx;
	u64 now = session_host_ns(ss);

	console_flush(&ss->console);
	session_dump_asked(ss);
	if (now >= ss->next_beat) {
		session_say_beat(ss);
		ss->next_beat = now + BEAT_PERIOD_NS;
	}
	if (ss->host_limit && now >= ss->host_limit)
		vm_request_stop(ss->vm, VM_STOP_HOST_TIMEOUT, 0);
}

static void session_host_timeout(void *ctx, u64 arg, u64 due, u64 now)
{
	struct session *ss = ctx;

	vm_request_stop(ss->vm, VM_STOP_HOST_TIMEOUT, 0);
}

static void session_timeout(void *ctx, u64 arg, u64 due, u64 now)
{
	struct session *ss = ctx;

	vm_request_stop(ss->vm, VM_STOP_TIMEOUT, 0);
}

static void session_panic(void *ctx)
{
	struct session *ss = ctx;

	clock_schedule(&ss->vm->service, &ss->panic_end, session_now(ss) + PANIC_GRACE_NS);
}

static void session_panic_end(void *ctx, u64 arg, u64 due, u64 now)
{
	struct session *ss = ctx;

	vm_request_stop(ss->vm, VM_STOP_PANIC, 0);
}

/* Did a guest without our init (a bare-metal image, or no command) leave well? */
static enum status status_of_exit(struct session *ss, char **why)
{
	int code = ss->vm->exit_code;

	if (ss->state == SESSION_QUITTING || !ss->spoke) {
		/* Value 0 of the test device, and so status 1, is how a bare-metal guest says that all is well. */
		if (!ss->spoke && code != 1) {
			*why = g_strdup_printf("the guest left with status %d", code);
			return STATUS_COMMAND_FAILED;
		}
		if (ss->failed)
			*why = g_strdup(ss->why ? ss->why : "");
		return ss->failed ? STATUS_COMMAND_FAILED : STATUS_DONE;
	}
	*why = g_strdup_printf("the guest left by the test device (value %d) before its command had ended", code >> 1);
	return STATUS_GUEST_DIED;
}

/* What a guest did or did not do when its time was over. */
static const char *session_doing(const struct session *ss)
{
	if (ss->state == SESSION_QUITTING)
		return "did not leave when asked to";
	return ss->state == SESSION_BOOTING && !ss->spoke ? "had not come up" : "was still busy";
}

static enum status session_status(struct session *ss, char **why)
{
	bool panic = ss->console.panic || ss->console.oops;

	*why = NULL;
	switch ((enum vm_stop)ss->vm->stop) {
	case VM_STOP_EXIT:
		return status_of_exit(ss, why);
	case VM_STOP_SHUTDOWN:
		*why = g_strdup(panic ? "the guest kernel panicked" :
				"the guest shut down: triple fault, reset, or an instruction that cannot be run");
		return STATUS_GUEST_DIED;
	case VM_STOP_PANIC:
		*why = g_strdup("the guest kernel panicked");
		return STATUS_GUEST_DIED;
	case VM_STOP_TIMEOUT:
		*why = g_strdup_printf("the guest %s after %.0f s%s (run.%s)",
				       session_doing(ss), (double)session_now(ss) / 1e9,
				       ss->virtual ? " of virtual time" : "",
				       ss->state == SESSION_BOOTING && ss->s->boot_timeout_ns < ss->s->timeout_ns ?
				       "boot_timeout" : "timeout");
		return STATUS_GUEST_DIED;
	case VM_STOP_HOST_TIMEOUT:
		*why = g_strdup_printf("the guest %s after %.0f s of this host's time, in which %.3f s of its own went by (run.host_timeout)",
				       session_doing(ss), (double)session_host_ns(ss) / 1e9,
				       (double)session_now(ss) / 1e9);
		return STATUS_GUEST_DIED;
	case VM_STOP_SIGNAL:
		*why = g_strdup("interrupted");
		return STATUS_INTERRUPTED;
	case VM_STOP_ERROR:
	case VM_RUNNING:
		break;
	}
	*why = g_strdup("the engine failed");
	return STATUS_INTERNAL;
}

static void session_write_end(struct session *ss, enum status status, const char *why)
{
	JsonObject *r = record_new("end", ss->params->cell);
	JsonArray *marked = json_array_new();
	size_t skip = ss->console.keep->len > CONSOLE_KEEP ? ss->console.keep->len - CONSOLE_KEEP : 0;
	char *text = g_utf8_make_valid(ss->console.keep->str + skip, -1), *line;
	u32 i;

	json_object_set_int_member(r, "status", status);
	json_object_set_string_member(r, "why", why ? why : "");
	json_object_set_int_member(r, "measured", ss->measured);
	json_object_set_int_member(r, "guest_exit", ss->vm->exit_code);
	for (i = 0; i < ss->console.marked->len; i++) {
		line = g_utf8_make_valid(ss->console.marked->pdata[i], -1);
		json_array_add_string_element(marked, line);
		g_free(line);
	}
	json_object_set_array_member(r, "marked", marked);
	json_object_set_string_member(r, "console", text);
	record_write(r, ss->params->record_fd);
	g_free(text);
}

/* The last lines of the console, for a person. */
static void session_last_words(struct session *ss)
{
	const char *text = ss->console.keep->str, *at = text + ss->console.keep->len;
	char **split, **line;
	int lines = 0;

	if (at == text) {
		fb_err("the guest wrote nothing to its console (ttyS0): does its kernel have a serial console?");
		return;
	}
	while (at > text && lines < LAST_WORDS_LINES)
		if (*--at == '\n')
			lines++;
	fb_err("the console's last words:");
	split = g_strsplit(at, "\n", -1);
	for (line = split; *line; line++)
		if (**line)
			fb_err("  %s", *line);
	g_strfreev(split);
}

static void session_init(struct session *ss)
{
	struct vm *vm = ss->vm;

	g_mutex_init(&ss->lock);
	console_init(&ss->console, ss->params->console_fd);
	ss->console.on_panic = session_panic;
	ss->console.ctx = ss;
	ss->line = g_string_new(NULL);
	ss->guest = json_object_new();
	ss->knobs = json_object_new();
	ss->reports = json_object_new();
	ss->phases = json_array_new();
	ss->proc = g_ptr_array_new_with_free_func(g_free);
	ss->warnings = g_ptr_array_new_with_free_func(g_free);
	ss->virtual = ss->setup->caps.virtual_time;
	ss->host_start = (u64)g_get_monotonic_time() * 1000;
	ss->host_limit = scenario_host_limit(ss->s, ss->virtual);
	ss->next_beat = BEAT_PERIOD_NS;
	refault_init(&ss->refault, vm);
	vm->machine->console.sink = console_byte;
	vm->machine->console.sink_ctx = &ss->console;
	vm->machine->control.sink = control_byte;
	vm->machine->control.sink_ctx = ss;
	vm->machine->testdev.on_mark = session_mark;
	vm->machine->testdev.ctx = ss;
	clock_event_init(&ss->flush, session_flush, ss, 0);
	clock_event_init(&ss->beat, session_beat, ss, 0);
	clock_event_init(&ss->timeout, session_timeout, ss, 0);
	clock_event_init(&ss->boot_timeout, session_timeout, ss, 0);
	clock_event_init(&ss->panic_end, session_panic_end, ss, 0);
	clock_event_init(&ss->quit_end, session_timeout, ss, 0);
	clock_event_init(&ss->host_timeout, session_host_timeout, ss, 0);
	if (!ss->virtual) {
		clock_schedule(&vm->service, &ss->flush, FLUSH_PERIOD_NS);
		clock_schedule(&vm->service, &ss->beat, BEAT_PERIOD_NS);
		clock_schedule(&vm->service, &ss->host_timeout, ss->host_limit ? ss->host_limit : CLOCK_NEVER);
	}
	clock_schedule(&vm->service, &ss->timeout, ss->s->timeout_ns);
	clock_schedule(&vm->service, &ss->boot_timeout, ss->s->boot_timeout_ns);
}

static void session_destroy(struct session *ss)
{
	struct clock *service = &ss->vm->service;

	clock_schedule(service, &ss->flush, CLOCK_NEVER);
	clock_schedule(service, &ss->beat, CLOCK_NEVER);
	clock_schedule(service, &ss->timeout, CLOCK_NEVER);
	clock_schedule(service, &ss->boot_timeout, CLOCK_NEVER);
	clock_schedule(service, &ss->host_timeout, CLOCK_NEVER);
	clock_schedule(service, &ss->panic_end, CLOCK_NEVER);
	clock_schedule(service, &ss->quit_end, CLOCK_NEVER);
	refault_stop(&ss->refault);
	region_reset(&ss->load);
	region_reset(&ss->command);
	console_destroy(&ss->console);
	g_string_free(ss->line, TRUE);
	json_object_unref(ss->guest);
	json_object_unref(ss->knobs);
	json_object_unref(ss->reports);
	json_array_unref(ss->phases);
	g_ptr_array_unref(ss->proc);
	g_ptr_array_unref(ss->warnings);
	g_free(ss->why);
	g_mutex_clear(&ss->lock);
}

static void transfer_pairs(struct saver *s, JsonObject **pairs)
{
	GList *members = json_object_get_members(*pairs), *m = members;
	u32 nr = saver_count(s, json_object_get_size(*pairs), CONTROL_KEEP_MAX, 10, "the number of facts"), i;
	JsonObject *old = *pairs;

	if (s->loading)
		*pairs = json_object_new();
	for (i = 0; i < nr; i++) {
		char *name = NULL, *value = NULL;

		if (!s->loading) {
			name = m->data;
			value = (char *)json_object_get_string_member(old, name);
			m = m->next;
		}
		saver_text(s, &name);
		saver_text(s, &value);
		if (s->loading && saver_check(s, name && value && g_utf8_validate(name, -1, NULL) &&
					      g_utf8_validate(value, -1, NULL), "a fact"))
			json_object_set_string_member(*pairs, name, value);
		if (s->loading) {
			g_free(name);
			g_free(value);
		}
	}
	g_list_free(members);
	if (s->loading)
		json_object_unref(old);
}

/*
 * What a booted guest has told us: our part of its snapshot. Not what a repeat starts
 * with empty, nor time-outs, which are the scenario's and already set.
 */
static void session_transfer(void *ctx, struct saver *s)
{
	struct session *ss = ctx;

	console_transfer(s, &ss->console);
	g_mutex_lock(&ss->lock);
	saver_begin(s, "session", 1);
	saver_bool(s, &ss->spoke);
	saver_bool(s, &ss->failed);
	saver_text(s, &ss->why);
	saver_string(s, ss->line);
	transfer_pairs(s, &ss->guest);
	transfer_pairs(s, &ss->knobs);
	saver_end(s);
	if (s->loading)
		ss->state = SESSION_BOOTED;
	g_mutex_unlock(&ss->lock);
}

static void session_say_text(void *ctx, const char *text)
{
	session_say(ctx, "%s", text);
}

/*
 * From the VM as it was built to a booted guest: by a snapshot, or by booting. Either way it
 * then goes on from the same state. With vm->stop set it has ended before that.
 */
static enum status session_boot(struct session *ss, const struct run_lockstep_params *lp)
{
	struct vm *vm = ss->vm;
	enum status status;
	bool restored;

	ss->snapshot = (struct session_snapshot) {
		.vm = vm, .wish = &ss->params->snapshot, .part = { .transfer = session_transfer, .ctx = ss },
		.latest = MIN(ss->s->boot_timeout_ns, ss->s->timeout_ns), .signal_fd = ss->params->signal_fd,
		.say = session_say_text, .ctx = ss,
	};
	status = session_snapshot_begin(&ss->snapshot, ss->setup, &restored);
	if (status != STATUS_DONE || restored || vm->stop != VM_RUNNING)
		return status;
	session_say(ss, "booting %u vCPUs", vm->topo.nr_cpus);
	if (run_lockstep(vm, lp))
		return STATUS_INTERNAL;
	if (vm->stop != VM_RUNNING)
		return STATUS_DONE;
	return session_snapshot_booted(&ss->snapshot, !ss->console.panic && !ss->console.oops);
}

/*
 * Two runners, for time of the host's and time of the VM's own; nothing else here tells
 * engines apart. If not STATUS_DONE the VM could not run, which has been reported.
 */
static enum status session_go(struct session *ss)
{
	const struct run_lockstep_params lp = {
		.signal_fd = ss->params->signal_fd, .host_tick = session_host_tick, .ctx = ss,
	};
	const struct run_threads_params tp = { .pin = ss->setup->pin, .signal_fd = ss->params->signal_fd };
	struct vm *vm = ss->vm;
	enum status status;

	if (!ss->virtual) {
		session_say(ss, "booting %u vCPUs", vm->topo.nr_cpus);
		return run_threads(vm, &tp) ? STATUS_INTERNAL : STATUS_DONE;
	}
	status = session_boot(ss, &lp);
	if (status == STATUS_DONE && vm->stop == VM_RUNNING) {
		g_mutex_lock(&vm->lock);
		g_mutex_lock(&ss->lock);
		session_booted(ss);
		g_mutex_unlock(&ss->lock);
		g_mutex_unlock(&vm->lock);
		if (run_lockstep(vm, &lp))
			status = STATUS_INTERNAL;
	}
	session_snapshot_end(&ss->snapshot);
	return status;
}

enum status session_run(struct vm *vm, const struct scenario *s, struct vm_setup *setup,
			const struct session_params *params)
{
	struct session ss = { .vm = vm, .s = s, .setup = setup, .params = params };
	enum status status;
	char *why = NULL;

	session_init(&ss);
	status = session_go(&ss);
	if (status == STATUS_DONE)
		status = session_status(&ss, &why);
	else
		why = g_strdup("the VM could not be started; standard error says why");
	console_flush(&ss.console);
	session_write_end(&ss, status, why);
	if (status != STATUS_DONE)
		fb_err("%s: %s (%u of %u repeats measured)", params->cell, why, ss.measured, s->repeat);
	if (status == STATUS_GUEST_DIED || status == STATUS_INTERNAL) {
		dump_symbols(vm, setup->system_map);
		dump_vcpus(vm);
		session_last_words(&ss);
	}
	g_free(why);
	session_destroy(&ss);
	return status;
}

void session_record_failure(const struct session_params *params, enum status status)
{
	JsonObject *r = record_new("end", params->cell);

	json_object_set_int_member(r, "status", status);
	json_object_set_string_member(r, "why", "the VM could not be built; standard error says why");
	json_object_set_int_member(r, "measured", 0);
	json_object_set_array_member(r, "marked", json_array_new());
	json_object_set_string_member(r, "console", "");
	record_write(r, params->record_fd);
}
