// SPDX-License-Identifier: GPL-2.0-only
/* What a guest says on its control port, the marks of its loads, and the records that come of them. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "core/trace.h"
#include "dump.h"
#include "machine/machine.h"
#include "record.h"
#include "record-vm.h"
#include "report.h"
#include "session-internal.h"
#include "vmstat.h"

#define CONTROL_LINE_MAX	4096u
/* A stream number that nothing else uses: how far vCPUs are out of step at a command's start. */
#define SKEW_STREAM		0x736b6577ull

void session_say(struct session *ss, const char *fmt, ...)
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

void session_region_reset(struct region *r)
{
	sample_free(&r->from);
	sample_free(&r->to);
	r->begun = r->ended = false;
	r->pairs = 0;
	g_clear_pointer(&r->profile, json_object_unref);
}

static void repeat_reset(struct session *ss)
{
	session_region_reset(&ss->load);
	session_region_reset(&ss->command);
	json_object_unref(ss->reports);
	ss->reports = json_object_new();
	json_array_unref(ss->phases);
	ss->phases = json_array_new();
	session_profile_reset(ss);
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
u64 session_host_ns(const struct session *ss)
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
	if (region->ended && region->profile)
		json_object_set_object_member(r, "profile", json_object_ref(region->profile));
	json_object_set_object_member(r, "provenance", session_repeat_provenance(ss, region));
	record_write(r, ss->params->record_fd);
	ss->measured++;
}

void session_mark(void *ctx, struct vcpu *vcpu, u8 mark, u64 now)
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
		session_profile_begin(ss, &ss->command, now);
		ss->command.host_from = session_host_time(ss);
		ss->command.begun = true;
		break;
	case MARK_COMMAND_END:
		trace_command(vm, false);
		if (ss->command.begun) {
			ss->command.host_to = session_host_time(ss);
			sample_take(vm, &ss->command.to, now, false);
			session_profile_end(ss, &ss->command, now);
			ss->command.ended = true;
		}
		__atomic_store_n((bool *)&vm->inject.on, false, __ATOMIC_RELAXED);
		break;
	case MARK_BEGIN:
		sample_take(vm, &ss->load.from, now, true);
		session_profile_begin(ss, &ss->load, now);
		ss->load.host_from = session_host_time(ss);
		ss->load.begun = true;
		ss->load.ended = false;
		break;
	case MARK_END:
		if (ss->load.begun) {
			ss->load.host_to = session_host_time(ss);
			sample_take(vm, &ss->load.to, now, false);
			session_profile_end(ss, &ss->load, now);
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
		session_profile_phase(ss, mark, now);
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
void session_booted(struct session *ss)
{
	clock_schedule(&ss->vm->service, &ss->boot_timeout, CLOCK_NEVER);
	if (ss->vm->boot_done)
		ss->vm->boot_done(ss->vm);
	/* What it takes is the host's time, of which the guest knows nothing. */
	dump_symbols(ss->vm, ss->setup->system_map);
	if (!ss->vm->vmstat)
		ss->vm->vmstat = vmstat_new(ss->vm);
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
void session_control_byte(void *ctx, u8 byte)
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
