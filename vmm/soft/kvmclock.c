// SPDX-License-Identifier: GPL-2.0-only
#include "soft/kvmclock.h"

#include <string.h>

#include "x86/cpuid-bits.h"
#include "x86/msr.h"

/* 2024-01-01 00:00:00 UTC, the machine's RTC (machine/rtc.c): the same on every run. */
#define WALL_EPOCH		1704067200u

#define CLOCK_ENABLE		1ull
#define CLOCK_FLAG_STABLE	BIT(0)		/* all vCPUs' values agree */

/* Layouts of msr.rst. Versions are even: nobody can look while we write. */
struct clock_time {
	u32 version;
	u32 pad0;
	u64 tsc_timestamp;
	u64 system_time;
	u32 tsc_to_system_mul;
	int8_t tsc_shift;
	u8 flags;
	u8 pad[2];
} __attribute__((packed));

struct clock_wall {
	u32 version;
	u32 sec;
	u32 nsec;
} __attribute__((packed));

_Static_assert(sizeof(struct clock_time) == 32 && sizeof(struct clock_wall) == 12, "layouts of msr.rst");

bool soft_kvmclock_shown(u32 features, u32 msr)
{
	bool old = msr == MSR_KVM_WALL_CLOCK || msr == MSR_KVM_SYSTEM_TIME;

	return features & (old ? KVM_FEATURE_CLOCKSOURCE_BIT : KVM_FEATURE_CLOCKSOURCE2_BIT);
}

/* Into RAM as a device would: no translation, no second level; decoded code of the page learns of it. */
static void clock_write(struct soft_cpu *c, gpa_t gpa, const void *data, u32 len)
{
	const u8 *from = data;

	while (len) {
		u32 off = (u32)(gpa & (PAGE_SIZE - 1)), piece = MIN(len, (u32)PAGE_SIZE - off);
		u8 *hva;
		struct soft_page *page = soft_page_of(c->svm, gpa, &hva);

		if (page) {
			memcpy(hva, from, piece);
			if (page->flags & SPAGE_CODE)
				soft_code_written(c->svm, page, off, piece);
		}
		gpa += piece;
		from += piece;
		len -= piece;
	}
}

static u32 clock_version(struct soft_cpu *c, gpa_t gpa)
{
	u32 version = 0;

	memory_read(&c->svm->vm->mem, gpa, &version, sizeof(version));
	return (version & ~1u) + 2;
}

/* ns = (cycles shifted left by `shift`) * mul >> 32, with mul of full 32 bits. */
static void clock_scale(u64 hz, u32 *mul, int8_t *shift)
{
	u64 rate = hz;
	int s = 0;

	for (; rate > 2 * NSEC_PER_SEC; s--)
		rate /= 2;
	for (; rate <= NSEC_PER_SEC; s++)
		rate *= 2;
	*shift = (int8_t)s;
	*mul = (u32)((((unsigned __int128)NSEC_PER_SEC << 32) << (s < 0 ? -s : 0)) / hz >> (s > 0 ? s : 0));
}

void soft_kvmclock_update(struct soft_cpu *c)
{
	gpa_t gpa = c->kvmclock & ~CLOCK_ENABLE;
	struct clock_time t = { .flags = CLOCK_FLAG_STABLE };
	int8_t shift;
	u32 mul;

	if (!(c->kvmclock & CLOCK_ENABLE))
		return;
	/*
	 * From the VM's time 0, not from now: so all vCPUs round alike, and a later write
	 * gives the same line again.
	 */
	t.tsc_timestamp = (u64)c->tsc_offset;
	t.version = clock_version(c, gpa);
	clock_scale(c->svm->hz, &mul, &shift);
	t.tsc_to_system_mul = mul;
	t.tsc_shift = shift;
	clock_write(c, gpa, &t, sizeof(t));
}

void soft_wall_clock_write(struct soft_cpu *c)
{
	struct clock_wall w = { .version = clock_version(c, c->wall_clock), .sec = WALL_EPOCH };

	clock_write(c, c->wall_clock, &w, sizeof(w));
}
