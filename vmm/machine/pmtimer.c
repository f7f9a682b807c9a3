// SPDX-License-Identifier: GPL-2.0-only
/*
 * There is no SMI command port (the FADT says 0), so the machine is in ACPI mode
 * from the start and SCI_EN is always set. No fixed event ever happens, so the
 * SCI never rises: the timer's carry is not reported, and Linux does not ask.
 */
#include "machine/pmtimer.h"

#include <string.h>

#include "core/engine.h"
#include "machine/layout.h"

/* Offsets in the block of 12 ports. */
#define PM1_STATUS	(LAYOUT_PORT_PM1A_EVT - LAYOUT_PORT_PM1A_EVT)
#define PM1_ENABLE	(PM1_STATUS + 2)
#define PM1_CONTROL	(LAYOUT_PORT_PM1A_CNT - LAYOUT_PORT_PM1A_EVT)
#define PM_TIMER	(LAYOUT_PORT_PMTIMER - LAYOUT_PORT_PM1A_EVT)
#define PM_BLOCK	(PM_TIMER + 4)

#define PM1_SCI_EN	BIT(0)
#define PM1_SLP_EN	BIT(13)		/* write only */
#define PM1_ENABLE_BITS	0x0721u		/* timer, global lock, power and sleep buttons, RTC */

void pmtimer_init(struct pmtimer *pm, struct vm *vm)
{
	*pm = (struct pmtimer){ .vm = vm, .pm1_control = PM1_SCI_EN };
}

static u32 pmtimer_count(const struct pmtimer *pm, struct vcpu *vcpu)
{
	u64 now = pm->vm->engine->now(pm->vm, vcpu);

	return (u32)((unsigned __int128)now * PMTIMER_HZ / NSEC_PER_SEC);
}

/* One 16-bit register; `mask` says which of its bytes the access covers. */
static void pmtimer_write16(struct pmtimer *pm, u64 reg, u16 value, u16 mask)
{
	switch (reg) {
	case PM1_STATUS:
		pm->pm1_status &= ~(value & mask);
		break;
	case PM1_ENABLE:
		pm->pm1_enable = ((pm->pm1_enable & ~mask) | (value & mask)) & PM1_ENABLE_BITS;
		break;
	case PM1_CONTROL:
		pm->pm1_control = (((pm->pm1_control & ~mask) | (value & mask)) & ~PM1_SLP_EN) | PM1_SCI_EN;
		/* Every sleep state ends the VM: none could be woken from. */
		if (value & mask & PM1_SLP_EN)
			vm_request_stop(pm->vm, VM_STOP_SHUTDOWN, 0);
		break;
	}
}

void pmtimer_access(void *dev, struct vcpu *vcpu, u64 off, bool write, void *data, u32 len)
{
	struct pmtimer *pm = dev;
	u8 block[PM_BLOCK + 4] = { 0 };
	u64 reg;

	if (len > 4 || off + len > PM_BLOCK)
		return;
	if (!write) {
		u32 count = pmtimer_count(pm, vcpu);

		memcpy(block + PM1_STATUS, &pm->pm1_status, 2);
		memcpy(block + PM1_ENABLE, &pm->pm1_enable, 2);
		memcpy(block + PM1_CONTROL, &pm->pm1_control, 2);
		memcpy(block + PM_TIMER, &count, 4);
		memcpy(data, block + off, len);
		return;
	}
	memcpy(block + off, data, len);
	for (reg = 0; reg < PM_TIMER; reg += 2) {
		u16 value, mask = 0;

		memcpy(&value, block + reg, 2);
		if (reg >= off && reg < off + len)
			mask |= 0x00ff;
		if (reg + 1 >= off && reg + 1 < off + len)
			mask |= 0xff00;
		if (mask)
			pmtimer_write16(pm, reg, value, mask);
	}
}
