// SPDX-License-Identifier: GPL-2.0-only
#include <string.h>

#include "core/counters.h"

const struct counter_desc counter_desc[NR_COUNTERS] = {
#define COUNTER(name, unit, scope, engines, meaning) { #name, unit, scope, engines, meaning },
#include "core/counters.def"
#undef COUNTER
};

static u64 load(const _Atomic u64 *p)
{
	return __atomic_load_n((const u64 *)p, __ATOMIC_RELAXED);
}

static void store(_Atomic u64 *p, u64 v)
{
	__atomic_store_n((u64 *)p, v, __ATOMIC_RELAXED);
}

static void add(_Atomic u64 *p, u64 n)
{
	__atomic_fetch_add((u64 *)p, n, __ATOMIC_RELAXED);
}

static u32 bucket_of(u64 value)
{
	u32 i = value < 2 ? 0 : 63 - (u32)__builtin_clzll(value);

	return i < HIST_BUCKETS ? i : HIST_BUCKETS - 1;
}

void hist_init(struct hist *h)
{
	store(&h->count, 0);
	store(&h->sum, 0);
	store(&h->min, UINT64_MAX);
	store(&h->max, 0);
	for (u32 i = 0; i < HIST_BUCKETS; i++)
		store(&h->bucket[i], 0);
}

void hist_begin(struct hist *h)
{
	store(&h->min, UINT64_MAX);
	store(&h->max, 0);
}

void hist_add(struct hist *h, u64 value)
{
	u64 seen = load(&h->min);

	while (value < seen &&
	       !__atomic_compare_exchange_n((u64 *)&h->min, &seen, value, true, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED))
		;
	seen = load(&h->max);
	while (value > seen &&
	       !__atomic_compare_exchange_n((u64 *)&h->max, &seen, value, true, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED))
		;
	add(&h->bucket[bucket_of(value)], 1);
	add(&h->sum, value);
	add(&h->count, 1);
}

void hist_sub(struct hist *out, const struct hist *later, const struct hist *earlier)
{
	store(&out->count, load(&later->count) - load(&earlier->count));
	store(&out->sum, load(&later->sum) - load(&earlier->sum));
	store(&out->min, load(&later->min));
	store(&out->max, load(&later->max));
	for (u32 i = 0; i < HIST_BUCKETS; i++)
		store(&out->bucket[i], load(&later->bucket[i]) - load(&earlier->bucket[i]));
}

double hist_quantile(const struct hist *h, double q)
{
	double min = (double)load(&h->min), max = (double)load(&h->max);
	u64 total = 0;
	double rank, seen = 0;

	/* The sum of the buckets, not `count`: the two may differ by an addition under way. */
	for (u32 i = 0; i < HIST_BUCKETS; i++)
		total += load(&h->bucket[i]);
	if (!total)
		return 0;
	q = q < 0 ? 0 : q > 1 ? 1 : q;
	rank = q * (double)total;
	for (u32 i = 0; i < HIST_BUCKETS; i++) {
		double n = (double)load(&h->bucket[i]);
		/* Bounds of the bucket, narrowed by what is known of the extremes. */
		double lo = i ? (double)(1ull << i) : 0;
		double hi = (double)(1ull << (i + 1));

		if (!n)
			continue;
		lo = lo < min ? min : lo;
		hi = hi > max || i == HIST_BUCKETS - 1 ? max : hi;
		if (seen + n >= rank)
			return hi > lo ? lo + (hi - lo) * (rank - seen) / n : lo;
		seen += n;
	}
	return max;
}
