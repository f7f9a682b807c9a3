/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tags of one cache: sets of ways, each set in the order of use, the latest first. Only lines.c and its tests
 * include this. No state but presence: what a holder may do with a line is the directory's.
 */
#ifndef SOFT_LINE_CACHE_H
#define SOFT_LINE_CACHE_H

#include <emmintrin.h>

#include "base/types.h"

/* Lines are numbered from 0; a tag is the number + 1, so that 0 is an empty way. */
struct line_cache {
	u32 *tag;
	u32 sets, ways;
	u64 inverse;		/* of sets: 2^64 / sets, rounded up */
};

/* A cache of `kib` KiB; the caller has checked that the ways divide its lines. */
void line_cache_create(struct line_cache *cache, u64 kib, u64 ways);
void line_cache_destroy(struct line_cache *cache);
void line_cache_clear(struct line_cache *cache);

/*
 * The line modulo the sets, without dividing: D. Lemire, O. Kaser, N. Kurz, Faster remainder by direct computation,
 * Software: Practice and Experience 49(6), 2019. Exact for 32 bits.
 */
static inline u32 *line_cache_set(const struct line_cache *cache, u64 line)
{
	u64 fraction = cache->inverse * (u32)line;

	return cache->tag + (u64)((unsigned __int128)fraction * cache->sets >> 64) * cache->ways;
}

/* The first way of a set that holds `value`, or `ways`. SSE2 is part of x86-64. */
static inline u32 line_cache_way(const u32 *tag, u32 ways, u32 value)
{
	const __m128i wanted = _mm_set1_epi32((int)value);
	u32 w, hit;

	for (w = 0; w + 4 <= ways; w += 4) {
		const __m128i four = _mm_loadu_si128((const __m128i *)(tag + w));

		hit = (u32)_mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(four, wanted)));
		if (hit)
			return w + (u32)__builtin_ctz(hit);
	}
	for (; w < ways && tag[w] != value; w++)
		;
	return w;
}

/* Is the line there? Changes nothing. */
static inline bool line_cache_has(const struct line_cache *cache, u64 line)
{
	return line_cache_way(line_cache_set(cache, line), cache->ways, (u32)line + 1) < cache->ways;
}

/* It is about to be looked for: have the host fetch its set. */
static inline void line_cache_prefetch(const struct line_cache *cache, u64 line)
{
	const u32 *set = line_cache_set(cache, line);

	__builtin_prefetch(set);
	__builtin_prefetch(set + cache->ways - 1);
}

/* Is it there? Then it is the latest of its set. */
bool line_cache_use(struct line_cache *cache, u64 line);
/* Put a line that is not there in; true if another one had to go, which is returned in *victim. */
bool line_cache_insert(struct line_cache *cache, u64 line, u64 *victim);
/* Take a line out, if it is there. */
bool line_cache_remove(struct line_cache *cache, u64 line);

#endif
