/* SPDX-License-Identifier: GPL-2.0-only */
/* The part of a profile's record that is about code (docs/profile.md). */
#ifndef VMM_RECORD_FUNCTIONS_H
#define VMM_RECORD_FUNCTIONS_H

#include <json-glib/json-glib.h>

#include "core/profile.h"
#include "core/symbols.h"

/* The function at an address of code, the address if it has no name, "[user]" for PROFILE_USER. g_free(). */
char *record_function_name(const struct symbols *symbols, u64 rip);
/* Members sampled, functions, functions_other, stacks, stacks_other. */
void record_functions(JsonObject *to, const struct profile *p, const struct symbols *symbols);
/* Adds `functions`, name to cycles of its own, of what went by between two readings; `before` NULL: since the start. */
void record_functions_since(JsonObject *to, const struct profile *p, const struct profile *before,
			    const struct symbols *symbols);

#endif
