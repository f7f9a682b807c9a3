/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The name that a mistyped word most likely meant, for error messages. Pure
 * functions; any thread.
 */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

#include "base/types.h"

/*
 * How many single changes (insert, delete, replace a byte, swap two neighbours)
 * turn a into b, letters compared without case. Only the first 63 bytes of each
 * count.
 */
u32 edit_distance(const char *a, const char *b);

/*
 * The member of names[0..n) with the smallest edit distance to `word`, the first
 * one among equals; NULL if none is near enough to be worth a hint (more than
 * half of the longer of the two would have to change). NULL members are skipped.
 */
const char *nearest_name(const char *word, const char *const *names, size_t n);

#endif
