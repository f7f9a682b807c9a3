/* SPDX-License-Identifier: GPL-2.0-only */
/* Where time went (docs/profile.md), out of a result: as tables, and for flame-graph tools. */
#ifndef HOST_TOOLS_SHOW_PROFILE_H
#define HOST_TOOLS_SHOW_PROFILE_H

#include <json-glib/json-glib.h>
#include <stdio.h>

#include "base/types.h"

/* The profile of a cell's repeat, from 0; NULL if it has none. */
JsonObject *profile_of(JsonObject *cell, u32 repeat);
/* For a person; `repeat` from 0. */
void show_profile(FILE *to, const char *cell, u32 repeat, JsonObject *profile);
/* One line a stack: frames joined by semicolons, a blank, cycles. */
void profile_fold(FILE *to, JsonObject *profile);

#endif
