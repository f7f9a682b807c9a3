/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Child processes watched line by line: their output relayed as it comes, ended
 * when they take too long or the user interrupts. Main thread only (runs the main
 * context, which serves all children at once).
 */
#ifndef HOST_TOOLS_CHILD_H
#define HOST_TOOLS_CHILD_H

#include <glib.h>

#include "base/types.h"

struct child;

/*
 * Interrupts (SIGINT, SIGTERM, SIGHUP) of the whole program: counted, and passed
 * on to the running children, the first as SIGTERM, further ones as SIGKILL. SIGUSR1
 * is passed on to those that take it, by itself to the process only.
 */
struct child_signals {
	u32 count;
	struct child *running;	/* a list, by `next` */
};

/* From here on for as long as the program runs; `s` must live as long. */
void child_catch_signals(struct child_signals *s);

/* One line, without its end; what is not UTF-8 has been replaced. */
typedef void (*child_line_fn)(void *ctx, const char *line);

struct child {
	/* For the caller to set. */
	char **argv;
	struct child_signals *signals;
	child_line_fn out;	/* of standard output; NULL = to ours */
	child_line_fn err;	/* of standard error; never NULL */
	bool out_null;		/* standard output to nowhere */
	bool outlives;		/* the first interrupt does not end it: somebody else who has to end in peace still needs it */
	bool dumps;		/* SIGUSR1 is passed on to it: it is a VMM, which dumps its vCPUs */
	void *ctx;
	s64 deadline;		/* g_get_monotonic_time(); 0 = none. May be moved by the line functions. */

	/* Result. */
	bool started;
	bool timed_out;
	bool signaled;
	int status;		/* exit status, or the signal's number */

	/* Private. */
	GPid pid;
	guint tick;
	struct child *next;
	struct child_pipe *pipes[2];
	s64 kill_at;		/* when SIGTERM has not helped; 0 = not ending */
	bool gone;
};

/* Run to the end. false if it could not be started (reported). */
bool child_run(struct child *c);
/*
 * The same in parts, for several at once: start, child_wait() until child_gone(), then finish,
 * which takes the last of its output. A child that started has to be finished.
 */
bool child_start(struct child *c);
/* Serve all children until something has happened to one of them. */
void child_wait(void);
bool child_gone(const struct child *c);
void child_finish(struct child *c);
/* End it: SIGTERM now, SIGKILL 10 s later. From line functions only. */
void child_stop(struct child *c);

#endif
