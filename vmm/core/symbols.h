/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A kernel's symbols by address, from a System.map. Constant once read; any thread
 * may look up.
 */
#ifndef CORE_SYMBOLS_H
#define CORE_SYMBOLS_H

#include "base/types.h"

struct symbols;

/* Read a System.map. NULL with *err (g_free()) naming file, line and what is wrong; functions are t, T, w and W. */
struct symbols *symbols_read(const char *path, char **err);
/* symbols may be NULL. */
void symbols_free(struct symbols *symbols);
/* Name of the function that holds `address` and the offset in it; NULL if none does. symbols may be NULL. */
const char *symbols_find(const struct symbols *symbols, u64 address, u64 *offset);
/* The same of a variable. Not of those in per-CPU areas and modules, whose addresses a System.map does not have. */
const char *symbols_find_data(const struct symbols *symbols, u64 address, u64 *offset);
/* The address of a symbol of any kind, 0 if there is none of that name. Slow. symbols may be NULL. */
u64 symbols_address(const struct symbols *symbols, const char *name);

#endif
