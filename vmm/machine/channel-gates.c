// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counters of the guest kernel that stand still because a knob says so. Patches 0006 and 0010
 * (guest-kernel-patches/) count behind static keys, since a lock is taken too often to count
 * it for nobody; their counters are in the table all the same, and 0 there is
 * no observation.
 */
#include <string.h>

#include "machine/channel.h"

#define GATE_KNOBS	2

/* All counters of a prefix and a suffix, not counted while each knob has its value. */
static const struct gate {
	const char *prefix, *suffix;
	struct {
		const char *name, *value;
	} knob[GATE_KNOBS];
} gates[] = {
	{ "i_mmap_", "", { { "i_mmap", "rwsem" }, { "i_mmap_stat", "off" } } },
	{ "mmap_lock_", "", { { "mmap_lock_stat", "off" } } },
	{ "mmap_lock_", "_ns", { { "mmap_lock_stat", "count" } } },
	{ "mmap_lock_", "_untimed", { { "mmap_lock_stat", "count" } } },
};

static bool in_force(const struct channel_snapshot *snap, const char *name, const char *value)
{
	for (u32 i = 0; i < snap->nr_knobs; i++)
		if (!strcmp(snap->knob[i].name, name))
			return !strcmp(snap->knob[i].in_force, value);
	return false;
}

static bool gate_closed(const struct gate *gate, const struct channel_snapshot *snap)
{
	for (u32 i = 0; i < GATE_KNOBS && gate->knob[i].name; i++)
		if (!in_force(snap, gate->knob[i].name, gate->knob[i].value))
			return false;
	return true;
}

char *channel_not_counted(const struct channel_snapshot *snap, const char *counter)
{
	for (u32 i = 0; i < G_N_ELEMENTS(gates); i++) {
		const struct gate *gate = &gates[i];
		GString *why;

		if (!g_str_has_prefix(counter, gate->prefix) || !g_str_has_suffix(counter, gate->suffix) ||
		    !gate_closed(gate, snap))
			continue;
		why = g_string_new("the guest kernel does not count it with");
		for (u32 k = 0; k < GATE_KNOBS && gate->knob[k].name; k++)
			g_string_append_printf(why, "%s guest.knob.%s = %s", k ? " and" : "", gate->knob[k].name,
					       gate->knob[k].value);
		return g_string_free(why, FALSE);
	}
	return NULL;
}
