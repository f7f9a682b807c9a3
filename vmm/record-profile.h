/* SPDX-License-Identifier: GPL-2.0-only */
/* A profile as members of a record (docs/records.md, docs/profile.md). */
#ifndef VMM_RECORD_PROFILE_H
#define VMM_RECORD_PROFILE_H

#include <json-glib/json-glib.h>

#include "core/profile.h"
#include "core/symbols.h"

/* The whole, as read with `all`; times in cycles of `hz`. Without symbols functions are addresses. */
JsonObject *record_profile(const struct profile *p, const struct symbols *symbols, u64 hz);
/*
 * One phase, between two readings of the same profile, `before` NULL: since its start. Members `time` and `functions`:
 * cycles of all vCPUs by class, and of the functions with most of their own.
 */
JsonObject *record_profile_phase(const struct profile *p, const struct profile *before, const struct symbols *symbols);

#endif
