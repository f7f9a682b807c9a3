/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Seeded random streams (xoshiro256**, seeded through splitmix64). A stream
 * belongs to whoever holds it; no locking, no global state. The same seed and
 * stream number give the same values on every host.
 */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include "base/types.h"

struct rng {
	u64 s[4];
};

/* Start stream number `stream` of `seed`; different streams are independent. */
void rng_seed(struct rng *rng, u64 seed, u64 stream);
/* The next 64 random bits. */
u64 rng_next(struct rng *rng);
/* Uniform in the open interval (0, 1): never 0 and never 1, so log() of it is finite. */
double rng_unit(struct rng *rng);
/* Standard normal deviate (Box-Muller; uses two values of the stream). */
double rng_normal(struct rng *rng);

#endif
