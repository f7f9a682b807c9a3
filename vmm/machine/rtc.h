/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * MC146818 RTC with a fixed date (2024-01-01 00:00:00 plus VM time) and UIP
 * always 0: an absent RTC costs Linux up to a second and 20,000 port reads at
 * boot. 128 bytes of CMOS. Under vm->lock.
 */
#ifndef MACHINE_RTC_H
#define MACHINE_RTC_H

#include "core/vm.h"

struct rtc {
	struct vm *vm;
	u8 index;
	u8 cmos[128];
};

void rtc_init(struct rtc *rtc, struct vm *vm);
/* bus_fn for 0x70-0x71. */
void rtc_access(void *dev, struct vcpu *vcpu, u64 off, bool write, void *data, u32 len);

#endif
