/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tags of one cache: sets of ways, each set in the order of use, the latest first. Only lines.c and its tests
 * include this. No state but presence: what a holder may do with a line is the directory's.
 */
#ifndef SOFT_LINE_CACHE_H
#define SOFT_LINE_CACHE_H

#include "base/types.h"

/* Lines are numbered from 0; a tag is the number + 1, so that 0 is an empty way. */
struct line_cache {
	u32 *tag;
	u32 sets, ways;
	u32 set_mask;		/* sets - 1 if that is a power of two, else 0 */
};

/* A cache of `kib` KiB; the caller has checked that the ways divide its lines. */
void line_cache_create(struct line_cache *cache, u64 kib, u64 ways);
void line_cache_destroy(struct line_cache *cache);
void line_cache_clear(struct line_cache *cache);

static inline u32 *line_cache_set(const struct line_cache *cache, u64 line)
{
	return cache->tag + (u64)(cache->set_mask ? line & cache->set_mask : line % cache->sets) * cache->ways;
}

/* Is the line there? Changes nothing. */
static inline bool line_cache_has(const struct line_cache *cache, u64 line)
{
	const u32 *tag = line_cache_set(cache, line);
	u32 w;

	for (w = 0; w < cache->ways; w++)
		if (tag[w] == (u32)line + 1)
			return true;
	return false;
}

/* Is it there? Then it is the latest of its set. */
bool line_cache_use(struct line_cache *cache, u64 line);
/* Put a line that is not there in; true if another one had to go, which is returned in *victim. */
bool line_cache_insert(struct line_cache *cache, u64 line, u64 *victim);
/* Take a line out, if it is there. */
bool line_cache_remove(struct line_cache *cache, u64 line);

#endif
