/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The host's side of the channel (channel-abi.h): counters that a patched kernel
 * keeps per CPU, read from guest RAM without an exit, and knobs. Nothing that
 * the guest wrote is trusted: names are sanitised, counts and addresses checked.
 */
#ifndef MACHINE_CHANNEL_H
#define MACHINE_CHANNEL_H

#include "core/vm.h"
#include "machine/channel-abi.h"

struct channel {
	struct vm *vm;		/* (c) */
	gpa_t gpa;		/* (c) 0 = no channel */
	_Atomic int warned;	/* (a) a corrupt table has been reported */
};

/* A copy of the guest's counters at one moment. */
struct channel_snapshot {
	bool valid;		/* the guest kernel publishes (guest_magic and version fit) */
	u32 nr_counters, nr_cpus;
	char name[FAULTBED_MAX_COUNTERS][FAULTBED_NAME_LEN];	/* [a-z0-9_], NUL terminated */
	u64 *value;		/* [cpu * nr_counters + counter]; g_free() */
	u32 nr_knobs;
	struct channel_knob {
		char name[FAULTBED_NAME_LEN];		/* printable, NUL terminated, as is the value */
		char in_force[FAULTBED_VALUE_LEN];
	} knob[FAULTBED_MAX_KNOBS];	/* those of which the guest says what is in force */
	char kernel_release[96];
	char patch_id[64];
};

/* Clear the region at gpa and write the host's fields. */
int channel_init(struct channel *ch, struct vm *vm, gpa_t gpa);
/*
 * Read all. A kernel that does not publish gives valid = false; a corrupt table too,
 * with one warning. Any thread.
 */
void channel_read(const struct channel *ch, struct channel_snapshot *snap);
void channel_snapshot_free(struct channel_snapshot *snap);
/*
 * Why a counter that stands still in this snapshot says nothing: the knobs that the kernel counts by, as they are in
 * force there. NULL if it is counted, or nothing is known of it; g_free(). Any thread.
 */
char *channel_not_counted(const struct channel_snapshot *snap, const char *counter);
/*
 * Ask for a knob's value; "" withdraws a request. -ENODEV no channel; -EINVAL name
 * empty, name or value too long or with bytes outside [!-~]; -ENOSPC table full.
 */
int channel_request_knob(struct channel *ch, const char *name, const char *value);
/* Forget all requests. */
void channel_clear_knobs(struct channel *ch);
/* The value in force as the guest says (sanitised), NULL if it has no such knob; g_free(). */
char *channel_knob_in_force(const struct channel *ch, const char *name);

#endif
