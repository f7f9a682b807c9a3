/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A child process watched line by line: its output relayed as it comes, ended
 * when it takes too long or the user interrupts. One child at a time; main
 * thread only (runs a main loop).
 */
#ifndef HOST_TOOLS_CHILD_H
#define HOST_TOOLS_CHILD_H

#include <glib.h>

#include "base/types.h"

struct child;

/*
 * Interrupts (SIGINT, SIGTERM, SIGHUP) of the whole program: counted, and passed
 * on to the running child, the first as SIGTERM, further ones as SIGKILL.
 */
struct child_signals {
	u32 count;
	struct child *running;
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
	void *ctx;
	s64 deadline;		/* g_get_monotonic_time(); 0 = none. May be moved by the line functions. */

	/* Result. */
	bool started;
	bool timed_out;
	bool signaled;
	int status;		/* exit status, or the signal's number */

	/* Private. */
	GPid pid;
	GMainLoop *loop;
	struct child_pipe *pipes[2];
	s64 kill_at;		/* when SIGTERM has not helped; 0 = not ending */
	bool gone;
};

/* Run to the end. false if it could not be started (reported). */
bool child_run(struct child *c);
/* End it: SIGTERM now, SIGKILL 10 s later. From line functions only. */
void child_stop(struct child *c);

#endif
