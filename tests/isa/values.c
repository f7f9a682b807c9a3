// SPDX-License-Identifier: GPL-2.0-only
/* Numbers, weighted to edges. */
#include <string.h>

#include "generate.h"

u32 gen_below(struct rng *rng, u32 n)
{
	return (u32)((rng_next(rng) >> 32) * n >> 32);
}

u64 gen_value(struct rng *rng)
{
	u64 r = rng_next(rng);
	u32 width = 8u << gen_below(rng, 4);
	u64 v;

	switch (gen_below(rng, 8)) {
	case 0: return r;
	case 1: return r & 0xff;			/* shift counts, characters */
	case 2: return r % 70;
	case 3: v = 1ull << (r & 63); break;
	case 4: v = 1ull << (width - 1); break;
	case 5: v = 0; break;
	case 6: return r >> (64 - width);
	default: return (u64)((s64)r >> (64 - width));
	}
	/* v - 1, v, v + 1, or the complement */
	v += (u64)(s64)((int)gen_below(rng, 3) - 1);
	return gen_chance(rng, 25) ? ~v : v;
}

u64 gen_address(struct rng *rng)
{
	u32 kind = gen_below(rng, 100), near;
	u64 at = 256 + gen_below(rng, 2 * PAGE_SIZE - 512);
	static const u32 edges[] = { 0, 1, ISA_DATA_RO, ISA_DATA_RO + 1, ISA_DATA_PAGES };

	if (kind < 60)
		return ISA_DATA + (at & ~15ull);
	if (kind < 80)
		return ISA_DATA + at;
	/* In front of the page boundary inside of what can be written; of any. */
	near = 1 + gen_below(rng, 24);
	if (kind < 92)
		return ISA_DATA + PAGE_SIZE - near;
	return ISA_DATA + edges[gen_below(rng, ARRAY_SIZE(edges))] * PAGE_SIZE - near + (kind < 94 ? 16 : 0);
}

static u32 gen_float(struct rng *rng)
{
	static const u32 edges[] = {
		0, 0x3f800000, 0x40000000, 0x00000001, 0x007fffff, 0x00800000, 0x7f7fffff, 0x7f800000, 0x7fc00000,
		0x7f800001, 0x7fffffff, 0x4f000000, 0x4effffff, 0x5f000000, 0x3f000000, 0x3fc00000, 0x33800000,
	};
	u32 r = (u32)rng_next(rng), sign = r & 0x80000000;

	switch (gen_below(rng, 4)) {
	case 0: return sign | edges[gen_below(rng, ARRAY_SIZE(edges))];
	case 1: return r;
	case 2: return (r & 0x807fffff) | (112 + gen_below(rng, 52)) << 23;	/* near 1, to beyond 2^31 */
	default: return sign | (r & 0x007e0000) | 127u << 23;
	}
}

static u64 gen_double(struct rng *rng)
{
	static const u64 edges[] = {
		0, 0x3ff0000000000000, 0x4000000000000000, 1, 0x000fffffffffffff, 0x0010000000000000,
		0x7fefffffffffffff, 0x7ff0000000000000, 0x7ff8000000000000, 0x7ff0000000000001, 0x41e0000000000000,
		0x41dfffffffc00000, 0x43e0000000000000, 0x3fe0000000000000, 0x3ff8000000000000, 0x380fffffe0000000,
		0x36a0000000000000, 0x47efffffe0000000, 0x47effffff0000000,
	};
	u64 r = rng_next(rng), sign = r & 1ull << 63;

	switch (gen_below(rng, 4)) {
	case 0: return sign | edges[gen_below(rng, ARRAY_SIZE(edges))];
	case 1: return r;
	case 2: return (r & 0x800fffffffffffff) | (u64)(992 + gen_below(rng, 100)) << 52;
	default: return sign | (r & 0x000fc00000000000) | 1023ull << 52;
	}
}

/* An x87 register: mostly what a load gives, some that only memory can hold (SDM 1 8.2.2). */
static void gen_extended(struct rng *rng, u8 *to)
{
	u64 mantissa = rng_next(rng), d = gen_double(rng);
	u16 exponent = (u16)rng_next(rng);
	long double x;

	switch (gen_below(rng, 8)) {
	case 0:
		break;				/* anything, unnormals too */
	case 1:
		exponent &= 0x8000;		/* zero, denormal, pseudo-denormal */
		if (gen_chance(rng, 50))
			mantissa = gen_value(rng);
		break;
	case 2:
		exponent |= 0x7fff;		/* infinity, NaN, pseudo ones */
		if (gen_chance(rng, 50))
			mantissa = 1ull << 63 | (gen_chance(rng, 50) ? 0 : 1ull << 62);
		break;
	case 3:
		exponent = (u16)((exponent & 0x8000) | (16383 - 70 + gen_below(rng, 140)));
		mantissa |= 1ull << 63;
		break;
	default:
		if ((d & 0x7ff0000000000000) == 0x7ff0000000000000)	/* the host would quieten it */
			d &= ~(1ull << 62);
		double v;
		memcpy(&v, &d, sizeof(v));
		x = v;
		memcpy(to, &x, 10);
		return;
	}
	memcpy(to, &mantissa, 8);
	memcpy(to + 8, &exponent, 2);
}

u32 gen_mxcsr(struct rng *rng)
{
	u32 v = 0x1f80;

	if (gen_chance(rng, 50))
		return v;
	v |= (u32)rng_next(rng) & 0x603f;		/* rounding, sticky flags */
	if (gen_chance(rng, 20))
		v |= 0x8000;				/* flush to zero */
	if (gen_chance(rng, 20))
		v |= 0x0040;				/* denormals are zeros */
	if (gen_chance(rng, 30))
		v &= ~((u32)rng_next(rng) & 0x1f80);	/* unmask some */
	return v;
}

void gen_fpu(struct rng *rng, u8 *fx, bool calm)
{
	u16 cw = 0x037f, sw = 0;
	u8 tags = 0;
	u32 mxcsr = calm ? 0x1f80 : gen_mxcsr(rng);

	memset(fx, 0, 512);
	if (!calm) {
		if (gen_chance(rng, 40))
			cw = (u16)((cw & ~0xf00) | (rng_next(rng) & 0xf00));	/* rounding and precision */
		if (gen_chance(rng, 15))
			cw &= (u16)~(rng_next(rng) & 0x3f);
		sw = (u16)(rng_next(rng) & 0x7f00);		/* TOP and the condition codes; the rest below */
		sw &= (u16)~0x0080;
		if (gen_chance(rng, 30))
			sw |= (u16)(rng_next(rng) & 0x3f & (gen_chance(rng, 80) ? cw : 0xff));
		if (sw & ~cw & 0x3f)
			sw |= 0x8080;				/* ES, B */
		tags = gen_chance(rng, 50) ? 0xff : (u8)rng_next(rng);
		for (u32 i = 0; i < 8; i++)
			gen_extended(rng, fx + 32 + 16 * i);
	}
	memcpy(fx, &cw, 2);
	memcpy(fx + 2, &sw, 2);
	fx[4] = tags;
	memcpy(fx + 24, &mxcsr, 4);
	gen_memory(rng, fx + 160, 256);
}

/* Numbers of all kinds, each aligned to its size. len is a multiple of 16. */
void gen_memory(struct rng *rng, u8 *p, size_t len)
{
	for (size_t i = 0; i < len; i += 16) {
		u64 q[2] = { 0, 0 };
		u32 f[4];

		switch (gen_below(rng, 6)) {
		case 0:
			for (u32 k = 0; k < 4; k++)
				f[k] = gen_float(rng);
			memcpy(q, f, 16);
			break;
		case 1:
			q[0] = gen_double(rng);
			q[1] = gen_double(rng);
			break;
		case 2:
			gen_extended(rng, (u8 *)q);
			break;
		case 3:
			q[0] = rng_next(rng);
			q[1] = rng_next(rng);
			break;
		default:
			q[0] = gen_value(rng);
			q[1] = gen_value(rng);
			break;
		}
		memcpy(p + i, q, 16);
	}
}
