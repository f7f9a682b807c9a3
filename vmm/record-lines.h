/* SPDX-License-Identifier: GPL-2.0-only */
/* For record-profile.c only: the lines of a profile as a member of its record. */
#ifndef VMM_RECORD_LINES_H
#define VMM_RECORD_LINES_H

#include <json-glib/json-glib.h>

#include "core/profile.h"
#include "core/symbols.h"

/* Adds `lines` to a profile's record. */
void record_lines(JsonObject *to, const struct profile *p, const struct symbols *symbols);

#endif
