/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Short integer names, address types and a few macros used everywhere.
 * No state.
 */
#ifndef BASE_TYPES_H
#define BASE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

typedef u64 gpa_t;	/* guest physical address */
typedef u64 gva_t;	/* guest virtual (linear) address */

#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))
#define BIT(n)			(1u << (n))
#define BIT_ULL(n)		(1ull << (n))
#define DIV_ROUND_UP(n, d)	(((n) + (d) - 1) / (d))
#define ALIGN_UP(x, a)		(((x) + ((a) - 1)) & ~((__typeof__(x))(a) - 1))
#define ALIGN_DOWN(x, a)	((x) & ~((__typeof__(x))(a) - 1))

#define PAGE_SHIFT		12
#define PAGE_SIZE		4096ull
#define KIB			(1ull << 10)
#define MIB			(1ull << 20)
#define GIB			(1ull << 30)
#define NSEC_PER_USEC		1000ull
#define NSEC_PER_MSEC		1000000ull
#define NSEC_PER_SEC		1000000000ull

#endif
