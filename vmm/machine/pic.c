// SPDX-License-Identifier: GPL-2.0-only
/* Initialisation and operation words by the 8259A data sheet; ELCR by the 82378 (SIO) one. */
#include "machine/pic.h"

#define ICW1_INIT	BIT(4)
#define ICW1_NEEDS_ICW4	BIT(0)
#define ICW1_SINGLE	BIT(1)
#define OCW3		BIT(3)
#define OCW3_READ	BIT(1)	/* bit 0 then says which register */
#define CASCADE		BIT(2)

/* icw_step: the word expected next at the odd port, 0 = none, then it is the mask. */
enum { STEP_MASK = 0, STEP_ICW2 = 2, STEP_ICW3 = 3, STEP_ICW4 = 4 };

/* Lines that can be level triggered: not the timer, keyboard, cascade, RTC and FPU. */
#define ELCR_MASTER	0xf8
#define ELCR_SLAVE	0xde

void pic_init(struct pic *pic)
{
	*pic = (struct pic){ 0 };
	pic->chip[0].imr = 0xff;
	pic->chip[1].imr = 0xff;
}

/* Requests follow the lines: nothing ever acknowledges one. The slave's show as the master's cascade input. */
static u8 pic_irr(const struct pic *pic, u32 chip)
{
	u8 irr = pic->chip[chip].irr;

	if (chip == 0 && (pic->chip[1].irr & ~pic->chip[1].imr))
		irr |= CASCADE;
	return irr;
}

static void pic_command(struct pic *pic, u32 chip, u8 value)
{
	if (value & ICW1_INIT) {
		pic->chip[chip].imr = 0;
		pic->chip[chip].isr = 0;
		pic->chip[chip].read_isr = 0;
		/* Bit 7 keeps, until the end of the sequence, what ICW1 said about ICW3; bit 0 about ICW4. */
		pic->chip[chip].icw4 = (value & ICW1_NEEDS_ICW4) | (value & ICW1_SINGLE ? 0x80 : 0);
		pic->chip[chip].icw_step = STEP_ICW2;
	} else if (value & OCW3) {
		if (value & OCW3_READ)
			pic->chip[chip].read_isr = value & 1;
	}
	/* OCW2: EOI and rotation, with nothing ever in service. */
}

static void pic_data(struct pic *pic, u32 chip, u8 value)
{
	bool single = pic->chip[chip].icw4 & 0x80, needs_icw4 = pic->chip[chip].icw4 & 1;

	switch (pic->chip[chip].icw_step) {
	case STEP_ICW2:
		pic->chip[chip].base = value & 0xf8;
		pic->chip[chip].icw_step = !single ? STEP_ICW3 : needs_icw4 ? STEP_ICW4 : STEP_MASK;
		break;
	case STEP_ICW3:
		pic->chip[chip].icw_step = needs_icw4 ? STEP_ICW4 : STEP_MASK;
		break;
	case STEP_ICW4:
		pic->chip[chip].icw4 = value & 0x1f;
		pic->chip[chip].icw_step = STEP_MASK;
		break;
	default:
		pic->chip[chip].imr = value;
		break;
	}
}

static void pic_access(struct pic *pic, u32 chip, u64 off, bool write, void *data, u32 len)
{
	u8 *byte = data;

	if (len != 1)
		return;
	if (write && off == 0)
		pic_command(pic, chip, *byte);
	else if (write)
		pic_data(pic, chip, *byte);
	else if (off == 0)
		*byte = pic->chip[chip].read_isr ? pic->chip[chip].isr : pic_irr(pic, chip);
	else
		*byte = pic->chip[chip].imr;
}

void pic_master_access(void *dev, struct vcpu *vcpu, u64 off, bool write, void *data, u32 len)
{
	pic_access(dev, 0, off, write, data, len);
}

void pic_slave_access(void *dev, struct vcpu *vcpu, u64 off, bool write, void *data, u32 len)
{
	pic_access(dev, 1, off, write, data, len);
}

void pic_elcr_access(void *dev, struct vcpu *vcpu, u64 off, bool write, void *data, u32 len)
{
	struct pic *pic = dev;
	u8 *bytes = data;
	u32 i;

	for (i = 0; i < len && off + i < 2; i++) {
		u32 chip = (u32)off + i;

		if (write)
			pic->chip[chip].elcr = bytes[i] & (chip ? ELCR_SLAVE : ELCR_MASTER);
		else
			bytes[i] = pic->chip[chip].elcr;
	}
}

void pic_set_irq(struct pic *pic, u32 irq, bool level)
{
	u8 bit = 1u << (irq & 7);

	if (irq >= 16)
		return;
	if (level)
		pic->chip[irq / 8].irr |= bit;
	else
		pic->chip[irq / 8].irr &= ~bit;
}
