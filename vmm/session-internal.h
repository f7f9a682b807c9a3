/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What session.c (a VM's life: start, time limits, end) and session-control.c (what
 * its guest says, and what is measured meanwhile) share. Nobody else includes this.
 *
 * The control protocol's lines arrive under vm->lock, byte by byte, from whichever
 * vCPU writes them; marks arrive without it. `lock` orders the two; it is taken
 * inside vm->lock, never around it.
 */
#ifndef SESSION_INTERNAL_H
#define SESSION_INTERNAL_H

#include <json-glib/json-glib.h>

#include "console.h"
#include "refault.h"
#include "sample.h"
#include "session.h"
#include "session-snapshot.h"

/* Lines of a kind that a guest can make us keep for one repeat. */
#define CONTROL_KEEP_MAX	4096u
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
	JsonObject *profile;		/* between the marks; NULL if nobody wants one */
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
	struct region *profiled;	/* load or command: whose profile is being taken; NULL: none is */
	struct profile phase;		/* what it was at the latest phase mark; nr_cpus 0: there was none */
	JsonArray *profile_phases;	/* NULL: there were no phase marks */
	char *why;			/* first reason that is not in vm->stop */
};

static inline u64 session_now(struct session *ss)
{
	return ss->vm->engine->now(ss->vm, NULL);
}

/* A progress line for a person. Any thread. */
void session_say(struct session *ss, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Host ns since the session began. */
u64 session_host_ns(const struct session *ss);
/* Forget both marks. Under ss->lock. */
void session_region_reset(struct region *r);
/* The guest is up: from here on its commands. Under vm->lock and ss->lock. */
void session_booted(struct session *ss);
/* testdev's on_mark and ttyS1's sink; ctx is the session. */
void session_mark(void *ctx, struct vcpu *vcpu, u8 mark, u64 now);
void session_control_byte(void *ctx, u8 byte);

/*
 * Profiles (session-profile.c), one at a time: of the region that began last, so that a load's replaces the
 * command's around it, as its marks do. Nothing without session_params.profile. Under ss->lock, at a mark of `now` ns.
 */
void session_profile_begin(struct session *ss, struct region *region, u64 now);
void session_profile_phase(struct session *ss, u8 mark, u64 now);
void session_profile_end(struct session *ss, struct region *region, u64 now);
/* Forget what is kept for the region under way. */
void session_profile_reset(struct session *ss);

#endif
