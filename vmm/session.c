// SPDX-License-Identifier: GPL-2.0-only
/* A VM's life: its start, what limits it, its end. What its guest says: session-control.c. */
#define _GNU_SOURCE
#include "session.h"

#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/log.h"
#include "core/trace.h"
#include "dump.h"
#include "machine/machine.h"
#include "peer.h"
#include "record.h"
#include "run-lockstep.h"
#include "run-threads.h"
#include "session-internal.h"

#define LAST_WORDS_LINES	20
#define FLUSH_PERIOD_NS		(20 * NSEC_PER_MSEC)
/* How often a person hears that it goes on. */
#define BEAT_PERIOD_NS		(15 * NSEC_PER_SEC)
/* After a panic's first line: time for the rest of its words. */
#define PANIC_GRACE_NS		(2 * NSEC_PER_SEC)

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
	else if (engine_is_peer(ss->vm->engine))
		fb_info("they are QEMU's: ask its monitor");
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
	if (ss->state == SESSION_BOOTING && engine_is_peer(ss->vm->engine))
		session_say(ss, "still booting after %.0f s", now);
	else if (ss->state == SESSION_BOOTING)
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
	case VM_STOP_GONE:
		/* Asked to leave it did so; the value that it left with is QEMU's to know. */
		ss->vm->exit_code = 1;
		if (ss->state == SESSION_QUITTING)
			return status_of_exit(ss, why);
		*why = g_strdup_printf("the guest is gone, and %s", panic ? "its kernel had panicked" :
				       "its command had not ended: it left, died, or QEMU did");
		return STATUS_GUEST_DIED;
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
	vm->machine->control.sink = session_control_byte;
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
	session_region_reset(&ss->load);
	session_region_reset(&ss->command);
	console_destroy(&ss->console);
	g_string_free(ss->line, TRUE);
	json_object_unref(ss->guest);
	json_object_unref(ss->knobs);
	json_object_unref(ss->reports);
	json_array_unref(ss->phases);
	session_profile_reset(ss);
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
 * Three runners, for time of the host's, time of the VM's own, and guests that another VMM runs; little else here tells
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

	if (!ss->virtual)
		session_say(ss, "booting %u vCPUs", vm->topo.nr_cpus);
	if (engine_is_peer(vm->engine))
		return peer_run(vm, ss->setup->place, ss->params->signal_fd) ? STATUS_HOST : STATUS_DONE;
	if (!ss->virtual)
		return run_threads(vm, &tp) ? STATUS_INTERNAL : STATUS_DONE;
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
		if (!engine_is_peer(vm->engine)) {
			dump_symbols(vm, setup->system_map);
			dump_vcpus(vm);
		}
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
