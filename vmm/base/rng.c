// SPDX-License-Identifier: GPL-2.0-only
/*
 * xoshiro256** 1.0 and splitmix64, after D. Blackman and S. Vigna, "Scrambled
 * linear pseudorandom number generators", ACM TOMS 47(4), 2021.
 */
#include <math.h>

#include "base/rng.h"

static u64 mix64(u64 z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static u64 rotl(u64 x, int k)
{
	return (x << k) | (x >> (64 - k));
}

void rng_seed(struct rng *rng, u64 seed, u64 stream)
{
	const u64 golden = 0x9e3779b97f4a7c15ull;
	/*
	 * mix64() is a bijection, so streams of one seed start at different
	 * points; mixing twice keeps streams n and n + 1 from starting a golden
	 * ratio apart, where splitmix64 would give them overlapping words.
	 */
	u64 x = mix64(mix64(seed + golden) ^ stream);

	for (int i = 0; i < 4; i++) {
		x += golden;
		rng->s[i] = mix64(x);
	}
	/* xoshiro cannot leave the all-zero state, but splitmix64 never gives four zeroes. */
}

u64 rng_next(struct rng *rng)
{
	u64 *s = rng->s;
	u64 result = rotl(s[1] * 5, 7) * 9;
	u64 t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotl(s[3], 45);
	return result;
}

double rng_unit(struct rng *rng)
{
	/* 52 bits and a half: with 53 the largest value would round up to 1. */
	return ((double)(rng_next(rng) >> 12) + 0.5) * 0x1p-52;
}

double rng_normal(struct rng *rng)
{
	double radius = sqrt(-2.0 * log(rng_unit(rng)));
	double angle = 2.0 * 3.14159265358979323846 * rng_unit(rng);

	return radius * cos(angle);
}
