// SPDX-License-Identifier: GPL-2.0-only
#include "machine/ioapic.h"

#include <string.h>

#include "core/engine.h"
#include "machine/apicbus.h"
#include "x86/apic.h"

static bool rte_is_level(u64 rte)
{
	u32 delivery = (rte >> IOAPIC_RTE_DELIVERY_SHIFT) & 7;

	/* NMI, INIT and the like are edges whatever the trigger bit says (82093AA 3.2.4). */
	return (rte & IOAPIC_RTE_LEVEL) && (delivery == APIC_DM_FIXED || delivery == APIC_DM_LOWEST);
}

static void ioapic_send(struct ioapic *io, u32 pin)
{
	u64 rte = io->redir[pin];
	struct apic_msg msg = {
		/* Bits 49-55 carry bits 8-14, as KVM_FEATURE_MSI_EXT_DEST_ID lets a guest use them. */
		.dest = (u32)(rte >> 56) | (u32)(rte >> 49 & 0x7f) << 8,
		.vector = rte & IOAPIC_RTE_VECTOR,
		.delivery = (rte >> IOAPIC_RTE_DELIVERY_SHIFT) & 7,
		.logical = rte & IOAPIC_RTE_LOGICAL,
		.level = rte_is_level(rte),
		.assert = true,
	};

	if (msg.level)
		io->redir[pin] |= IOAPIC_RTE_REMOTE_IRR;
	apicbus_send_device(io->vm, &msg, io->vm->engine->now(io->vm, NULL));
}

/* Send a level-triggered pin that is asserted and not yet being served. */
static void ioapic_service_level(struct ioapic *io, u32 pin)
{
	u64 rte = io->redir[pin];

	if (rte_is_level(rte) && (io->level & BIT(pin)) && !(rte & (IOAPIC_RTE_MASKED | IOAPIC_RTE_REMOTE_IRR)))
		ioapic_send(io, pin);
}

void ioapic_init(struct ioapic *io, struct vm *vm)
{
	u32 pin;

	*io = (struct ioapic){ .vm = vm };
	for (pin = 0; pin < LAYOUT_IOAPIC_PINS; pin++)
		io->redir[pin] = IOAPIC_RTE_MASKED;
}

void ioapic_set_pin(struct ioapic *io, u32 pin, bool level)
{
	bool was;

	if (pin >= LAYOUT_IOAPIC_PINS)
		return;
	was = io->level & BIT(pin);
	if (!level) {
		io->level &= ~BIT(pin);
		return;
	}
	io->level |= BIT(pin);
	if (rte_is_level(io->redir[pin]))
		ioapic_service_level(io, pin);
	else if (!was && !(io->redir[pin] & IOAPIC_RTE_MASKED))
		ioapic_send(io, pin);	/* an edge on a masked pin is lost (3.2.4) */
}

void ioapic_eoi(struct ioapic *io, u8 vector)
{
	u32 pin;

	for (pin = 0; pin < LAYOUT_IOAPIC_PINS; pin++) {
		u64 rte = io->redir[pin];

		if ((rte & IOAPIC_RTE_VECTOR) != vector || !(rte & IOAPIC_RTE_REMOTE_IRR))
			continue;
		io->redir[pin] &= ~IOAPIC_RTE_REMOTE_IRR;
		ioapic_service_level(io, pin);
	}
}

static u32 ioapic_reg_read(const struct ioapic *io)
{
	u32 i = io->select - IOAPIC_REG_REDIR;

	switch (io->select) {
	case IOAPIC_REG_ID:
	case IOAPIC_REG_ARB:
		return io->id << 24;
	case IOAPIC_REG_VERSION:
		return IOAPIC_VERSION_NUMBER | (LAYOUT_IOAPIC_PINS - 1) << 16;
	}
	if (io->select < IOAPIC_REG_REDIR || i / 2 >= LAYOUT_IOAPIC_PINS)
		return 0;
	return (u32)(io->redir[i / 2] >> (i & 1) * 32);
}

static void ioapic_reg_write(struct ioapic *io, u32 value)
{
	u32 i = io->select - IOAPIC_REG_REDIR, pin = i / 2, shift = (i & 1) * 32;
	u64 mask = (0xffffffffull << shift) & IOAPIC_RTE_WRITABLE;

	if (io->select == IOAPIC_REG_ID) {
		io->id = value >> 24 & 0xf;
		return;
	}
	if (io->select < IOAPIC_REG_REDIR || pin >= LAYOUT_IOAPIC_PINS)
		return;
	io->redir[pin] = (io->redir[pin] & ~mask) | ((u64)value << shift & mask);
	/* No edge interrupt is in service: Linux turns a stuck level pin to edge and back to free it. */
	if (!rte_is_level(io->redir[pin]))
		io->redir[pin] &= ~IOAPIC_RTE_REMOTE_IRR;
	ioapic_service_level(io, pin);
}

void ioapic_access(void *dev, struct vcpu *vcpu, u64 off, bool write, void *data, u32 len)
{
	struct ioapic *io = dev;
	u32 value = 0, size = len < sizeof(value) ? len : sizeof(value);

	/* Registers are 32 bits wide at 16-byte steps; a narrower store writes a zero-extended value. */
	if (!write) {
		if (off == IOAPIC_REGSEL)
			value = io->select;
		else if (off == IOAPIC_WIN)
			value = ioapic_reg_read(io);
		memset(data, 0, len);
		memcpy(data, &value, size);
		return;
	}
	memcpy(&value, data, size);
	if (off == IOAPIC_REGSEL)
		io->select = value & 0xff;
	else if (off == IOAPIC_WIN)
		ioapic_reg_write(io, value);
	else if (off == IOAPIC_EOI)
		ioapic_eoi(io, (u8)value);
}
