/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One VM's life from boot to its end: the conversation with the guest's init over
 * ttyS1 (docs/records.md), region-of-interest marks, repeats, time-outs, and the
 * records that come of them.
 */
#ifndef VMM_SESSION_H
#define VMM_SESSION_H

#include "session-snapshot.h"
#include "vm.h"

struct session_params {
	const char *cell;	/* name of the cell, for the records */
	int record_fd;		/* where records go, -1 = nowhere */
	int console_fd;		/* where the guest's console is copied, -1 = nowhere */
	int signal_fd;		/* readable = stop; -1 = none */
	int dump_fd;		/* a signalfd: readable = dump the vCPUs and go on; -1 = none */
	bool progress;		/* say on standard error what is going on */
	bool profile;		/* say where the time of each measured region went (docs/profile.md); the engine can */
	struct snapshot_wish snapshot;	/* engines that can be saved only */
};

/*
 * Run the VM that vm_build() made until its end, and write the records. Returns
 * what the process shall exit with; every status but STATUS_DONE has been reported.
 */
enum status session_run(struct vm *vm, const struct scenario *s, struct vm_setup *setup,
			const struct session_params *params);

/* The record `end` of a cell whose VM could not be built. */
void session_record_failure(const struct session_params *params, enum status status);

#endif
