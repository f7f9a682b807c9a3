// SPDX-License-Identifier: GPL-2.0-only
#include "soft/line-cache.h"

#include <glib.h>
#include <string.h>

void line_cache_create(struct line_cache *cache, u64 kib, u64 ways)
{
	u64 lines = kib * 1024 / 64;

	cache->ways = (u32)ways;
	cache->sets = (u32)(lines / ways);
	/* For one set it is 0, as the remainder is. */
	cache->inverse = UINT64_MAX / cache->sets + 1;
	cache->tag = g_new0(u32, lines);
}

void line_cache_destroy(struct line_cache *cache)
{
	g_clear_pointer(&cache->tag, g_free);
}

void line_cache_clear(struct line_cache *cache)
{
	memset(cache->tag, 0, sizeof(*cache->tag) * cache->sets * cache->ways);
}

bool line_cache_use(struct line_cache *cache, u64 line)
{
	u32 *tag = line_cache_set(cache, line), w = line_cache_way(tag, cache->ways, (u32)line + 1);

	if (w == cache->ways)
		return false;
	memmove(tag + 1, tag, w * sizeof(*tag));
	tag[0] = (u32)line + 1;
	return true;
}

bool line_cache_insert(struct line_cache *cache, u64 line, u64 *victim)
{
	/* A way that was emptied, or the one used longest ago. */
	u32 *tag = line_cache_set(cache, line), w = line_cache_way(tag, cache->ways - 1, 0), gone = tag[w];

	memmove(tag + 1, tag, w * sizeof(*tag));
	tag[0] = (u32)line + 1;
	*victim = (u64)gone - 1;
	return gone;
}

bool line_cache_remove(struct line_cache *cache, u64 line)
{
	u32 *tag = line_cache_set(cache, line), w = line_cache_way(tag, cache->ways, (u32)line + 1);

	if (w == cache->ways)
		return false;
	tag[w] = 0;
	return true;
}
