// SPDX-License-Identifier: GPL-2.0-only
#include "machine/rtc.h"

#include <time.h>

#include "core/engine.h"

/* Registers (MC146818A data sheet); 0x32 is the century by PC custom. */
enum {
	RTC_SECONDS = 0, RTC_MINUTES = 2, RTC_HOURS = 4, RTC_WEEKDAY = 6, RTC_DAY = 7, RTC_MONTH = 8, RTC_YEAR = 9,
	RTC_A = 10, RTC_B = 11, RTC_C = 12, RTC_D = 13, RTC_CENTURY = 0x32,
};

#define RTC_A_DIVIDER	0x26	/* 32,768 Hz, 1,024 Hz rate; UIP is 0 */
#define RTC_A_UIP	BIT(7)
#define RTC_B_24H	BIT(1)
#define RTC_B_BINARY	BIT(2)
#define RTC_D_VALID	BIT(7)

/* 2024-01-01 00:00:00 UTC: the same on every run, so that runs can be compared. */
#define RTC_EPOCH	1704067200ll

void rtc_init(struct rtc *rtc, struct vm *vm)
{
	*rtc = (struct rtc){ .vm = vm };
	rtc->cmos[RTC_A] = RTC_A_DIVIDER;
	rtc->cmos[RTC_B] = RTC_B_24H;
}

static u8 rtc_number(const struct rtc *rtc, int value)
{
	return (u8)(rtc->cmos[RTC_B] & RTC_B_BINARY ? value : value / 10 << 4 | value % 10);
}

static u8 rtc_hours(const struct rtc *rtc, int hour)
{
	if (rtc->cmos[RTC_B] & RTC_B_24H)
		return rtc_number(rtc, hour);
	return rtc_number(rtc, (hour + 11) % 12 + 1) | (hour >= 12 ? 0x80 : 0);
}

static u8 rtc_read(const struct rtc *rtc, struct vcpu *vcpu)
{
	time_t t = (time_t)(RTC_EPOCH + (s64)(rtc->vm->engine->now(rtc->vm, vcpu) / NSEC_PER_SEC));
	struct tm tm;

	if (!gmtime_r(&t, &tm))
		return 0;
	switch (rtc->index) {
	case RTC_SECONDS:
		/* A guest may sit on a leap second's 60; the VM's time has none. */
		return rtc_number(rtc, tm.tm_sec);
	case RTC_MINUTES:
		return rtc_number(rtc, tm.tm_min);
	case RTC_HOURS:
		return rtc_hours(rtc, tm.tm_hour);
	case RTC_WEEKDAY:
		return rtc_number(rtc, tm.tm_wday + 1);
	case RTC_DAY:
		return rtc_number(rtc, tm.tm_mday);
	case RTC_MONTH:
		return rtc_number(rtc, tm.tm_mon + 1);
	case RTC_YEAR:
		return rtc_number(rtc, tm.tm_year % 100);
	case RTC_CENTURY:
		return rtc_number(rtc, (tm.tm_year / 100 + 19) % 100);
	case RTC_C:
		return 0;	/* no interrupt is ever pending */
	case RTC_D:
		return RTC_D_VALID;
	}
	return rtc->cmos[rtc->index];
}

static void rtc_write(struct rtc *rtc, u8 value)
{
	switch (rtc->index) {
	case RTC_SECONDS:
	case RTC_MINUTES:
	case RTC_HOURS:
	case RTC_WEEKDAY:
	case RTC_DAY:
	case RTC_MONTH:
	case RTC_YEAR:
	case RTC_CENTURY:
	case RTC_C:
	case RTC_D:
		return;		/* the date is fixed */
	case RTC_A:
		value &= ~RTC_A_UIP;
		break;
	}
	rtc->cmos[rtc->index] = value;
}

void rtc_access(void *dev, struct vcpu *vcpu, u64 off, bool write, void *data, u32 len)
{
	struct rtc *rtc = dev;
	u8 *bytes = data;
	u32 i;

	/* A 16-bit store to 0x70 sets the index and writes the register, byte by byte as on the ISA bus. */
	for (i = 0; i < len && off + i < 2; i++) {
		if (off + i == 0) {
			/* Bit 7 masks NMIs, of which there are none. The index cannot be read back. */
			if (write)
				rtc->index = bytes[i] & 0x7f;
		} else if (write) {
			rtc_write(rtc, bytes[i]);
		} else {
			bytes[i] = rtc_read(rtc, vcpu);
		}
	}
}
