// SPDX-License-Identifier: GPL-2.0-only
/* Where the time of a measured region went, and of its phases. */
#include "dump.h"
#include "record-profile.h"
#include "session-internal.h"

/* Phases that a profile keeps; a guest may mark more. */
#define PHASES_MOST	64u

void session_profile_reset(struct session *ss)
{
	ss->profiled = NULL;
	profile_clear(&ss->phase);
	g_clear_pointer(&ss->profile_phases, json_array_unref);
}

void session_profile_begin(struct session *ss, struct region *region, u64 now)
{
	if (!ss->params->profile)
		return;
	g_clear_pointer(&region->profile, json_object_unref);
	session_profile_reset(ss);
	dump_symbols(ss->vm, ss->setup->system_map);
	ss->vm->engine->profile_start(ss->vm, now);
	ss->profiled = region;
}

/* What went by since the last phase mark, or the region's begin, was of the phase that ends here. */
static void phase_add(struct session *ss, const char *until, u64 now, const struct profile *p)
{
	JsonObject *o = record_profile_phase(p, ss->phase.nr_cpus ? &ss->phase : NULL, ss->vm->symbols);

	json_object_set_string_member(o, "until", until);
	json_object_set_int_member(o, "ns", (gint64)now);
	json_array_add_object_element(ss->profile_phases, o);
}

void session_profile_phase(struct session *ss, u8 mark, u64 now)
{
	struct profile p;
	char *until;

	if (!ss->profiled)
		return;
	if (!ss->profile_phases)
		ss->profile_phases = json_array_new();
	if (json_array_get_length(ss->profile_phases) >= PHASES_MOST)
		return;
	ss->vm->engine->profile_read(ss->vm, now, false, &p);
	until = g_strdup_printf("%u", mark);
	phase_add(ss, until, now, &p);
	g_free(until);
	profile_clear(&ss->phase);
	ss->phase = p;
}

void session_profile_end(struct session *ss, struct region *region, u64 now)
{
	struct profile p;

	if (ss->profiled != region)
		return;
	ss->vm->engine->profile_read(ss->vm, now, true, &p);
	region->profile = record_profile(&p, ss->vm->symbols, ss->vm->tsc_hz);
	if (ss->profile_phases) {
		phase_add(ss, "end", now, &p);
		json_object_set_array_member(region->profile, "phases", g_steal_pointer(&ss->profile_phases));
	}
	profile_clear(&p);
	session_profile_reset(ss);
}
