/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What one run does with snapshots: start from one, make one, or neither
 * (docs/snapshots.md). On the thread that runs the session, between two turns of
 * the vCPUs. Only for engines that can be saved (engine->save).
 */
#ifndef VMM_SESSION_SNAPSHOT_H
#define VMM_SESSION_SNAPSHOT_H

#include "snapshot.h"

/* What the user asked for. */
struct snapshot_wish {
	const char *load;	/* start from this file or fail; NULL = no */
	const char *save;	/* boot, and write this file; NULL = no */
	bool off;		/* neither use the cache nor fill it */
};

struct session_snapshot {
	struct vm *vm;			/* (c) */
	const struct snapshot_wish *wish;	/* (c) */
	struct snapshot_part part;	/* (c) the session's own state */
	u64 latest;			/* (c) ns of the VM's time by which its boot must have ended to be of use */
	int signal_fd;			/* (c) readable = stop waiting; -1 = none */
	void (*say)(void *ctx, const char *text);	/* (c) progress, for a person */
	void *ctx;			/* (c) for say */
	struct snapshot_key key;
	char *dir;			/* of the cache, NULL = not used */
	int lock;			/* right to make the one of this key, -1 = not held */
	const char *how;		/* for the record: "off", "restored", "saved", "not saved" */
	u64 host_ns;			/* what restoring or saving took */
	u64 bytes;			/* on the disk, if saved */
};

/*
 * Before the first run: find out what can be done, wait if another process is about to make the
 * very snapshot, and load. *restored says whether the VM is a booted one now. The members marked
 * (c) are set. STATUS_DONE, or reported.
 */
enum status session_snapshot_begin(struct session_snapshot *ss, const struct vm_setup *setup, bool *restored);
/*
 * The guest has booted: write its snapshot if there is to be one (and `worth` it: it has not died), then,
 * in any case, put the state that was taken back into the VM, so that it goes on from exactly
 * what a restored one goes on from. STATUS_DONE also if the cache could not be written, which
 * is reported; the run needs it not. A file that the user named is needed.
 */
enum status session_snapshot_booted(struct session_snapshot *ss, bool worth);
void session_snapshot_end(struct session_snapshot *ss);

#endif
