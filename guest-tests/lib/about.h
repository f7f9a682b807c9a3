/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What moves results and only the guest knows: its kernel, CPUs, clock source,
 * mitigations, huge pages. No state; any thread.
 */
#ifndef LIB_ABOUT_H
#define LIB_ABOUT_H

#include "lib/util.h"

typedef void (*about_fn)(void *ctx, const char *key, const char *value);

/* Call fn for each fact. A fact that this kernel does not tell is left out. */
void about_guest(about_fn fn, void *ctx);

#endif
