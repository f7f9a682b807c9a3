// SPDX-License-Identifier: GPL-2.0-only
#include "machine/machine.h"

#include "base/log.h"
#include "machine/layout.h"

#define PORT_PIC_MASTER		0x20
#define PORT_PIT		0x40
#define PORT_SYSTEM_B		0x61
#define PORT_KEYBOARD		0x64
#define PORT_RTC		0x70
#define PORT_POST		0x80
#define PORT_SYSTEM_A		0x92
#define PORT_PIC_SLAVE		0xa0
#define PORT_ELCR		0x4d0
#define IOAPIC_SIZE		0x1000

#define KEYBOARD_INPUT_FULL	0x02
#define KEYBOARD_PULSE_RESET	0xfe
#define SYSTEM_A_RESET		0x01
#define SYSTEM_A_A20		0x02

static void machine_reset(struct vm *vm)
{
	vm_request_stop(vm, VM_STOP_SHUTDOWN, 0);
}

/*
 * No keyboard controller, but its reset line. The status reads as all ones, as
 * from an absent one, with "input buffer full" clear: Linux's i8042 probe gives
 * up at once on an output buffer that never empties, and its reset by keyboard
 * does not wait through 65,536 reads first.
 */
static void keyboard_access(void *dev, struct vcpu *vcpu, u64 off, bool write, void *data, u32 len)
{
	u8 *byte = data;

	if (!write)
		*byte &= ~KEYBOARD_INPUT_FULL;
	else if (*byte == KEYBOARD_PULSE_RESET)
		machine_reset(dev);
}

/* System control port A: A20 is always open, bit 0 resets. */
static void system_a_access(void *dev, struct vcpu *vcpu, u64 off, bool write, void *data, u32 len)
{
	u8 *byte = data;

	if (!write)
		*byte = SYSTEM_A_A20;
	else if (*byte & SYSTEM_A_RESET)
		machine_reset(dev);
}

/* POST codes, which Linux writes as a short delay. */
static void post_access(void *dev, struct vcpu *vcpu, u64 off, bool write, void *data, u32 len)
{
}

int machine_init(struct vm *vm)
{
	struct machine *m = g_new0(struct machine, 1);
	const struct {
		enum bus_space space;
		u64 addr, size;
		const char *name;
		bus_fn fn;
		void *dev;
	} ranges[] = {
		{ BUS_PIO, PORT_PIC_MASTER, 2, "PIC master", pic_master_access, &m->pic },
		{ BUS_PIO, PORT_PIC_SLAVE, 2, "PIC slave", pic_slave_access, &m->pic },
		{ BUS_PIO, PORT_ELCR, 2, "ELCR", pic_elcr_access, &m->pic },
		{ BUS_PIO, PORT_PIT, 4, "PIT", pit_access, &m->pit },
		{ BUS_PIO, PORT_SYSTEM_B, 1, "system control B", pit_port61_access, &m->pit },
		{ BUS_PIO, PORT_KEYBOARD, 1, "keyboard reset", keyboard_access, vm },
		{ BUS_PIO, PORT_RTC, 2, "RTC", rtc_access, &m->rtc },
		{ BUS_PIO, PORT_POST, 1, "POST", post_access, vm },
		{ BUS_PIO, PORT_SYSTEM_A, 1, "system control A", system_a_access, vm },
		{ BUS_PIO, LAYOUT_PORT_TESTDEV, 4, "test device", testdev_access, &m->testdev },
		{ BUS_PIO, LAYOUT_PORT_UART0, 8, "console", uart_access, &m->console },
		{ BUS_PIO, LAYOUT_PORT_UART1, 8, "control", uart_access, &m->control },
		{ BUS_PIO, LAYOUT_PORT_PM1A_EVT, 12, "ACPI PM", pmtimer_access, &m->pmtimer },
		{ BUS_MMIO, LAYOUT_IOAPIC, IOAPIC_SIZE, "IOAPIC", ioapic_access, &m->ioapic },
	};
	u32 i;
	int err;

	fb_assert(!vm->machine && vm->vcpu);
	vm->machine = m;
	if (!vm->bus)
		vm->bus = bus_new();
	ioapic_init(&m->ioapic, vm);
	pic_init(&m->pic);
	pit_init(&m->pit, vm);
	pmtimer_init(&m->pmtimer, vm);
	rtc_init(&m->rtc, vm);
	uart_init(&m->console, vm, LAYOUT_IRQ_UART0, NULL, NULL);
	uart_init(&m->control, vm, LAYOUT_IRQ_UART1, NULL, NULL);
	testdev_init(&m->testdev, vm);
	for (i = 0; i < ARRAY_SIZE(ranges); i++) {
		err = bus_add(vm->bus, ranges[i].space, ranges[i].addr, ranges[i].size, ranges[i].name, ranges[i].fn,
			      ranges[i].dev);
		if (err)
			return err;
	}
	return 0;
}

int machine_add_disk(struct vm *vm, const struct disk *disk)
{
	struct machine *m = vm->machine;

	fb_assert(!m->blk);
	m->blk = g_new0(struct virtio_blk, 1);
	return virtio_blk_init(m->blk, vm, LAYOUT_VIRTIO, LAYOUT_IRQ_VIRTIO, disk);
}

void machine_destroy(struct vm *vm)
{
	struct machine *m = vm->machine;

	if (!m)
		return;
	if (m->blk)
		virtio_blk_destroy(m->blk);
	g_free(m->blk);
	pit_destroy(&m->pit);
	uart_destroy(&m->console);
	uart_destroy(&m->control);
	g_free(m);
	vm->machine = NULL;
	bus_free(vm->bus);
	vm->bus = NULL;
}

void machine_set_irq(struct vm *vm, u32 irq, bool level)
{
	struct machine *m = vm->machine;

	if (irq >= 16)
		return;
	pic_set_irq(&m->pic, irq, level);
	/* The MADT's override: the timer is on pin 2, where the 8259A's cascade would be. */
	ioapic_set_pin(&m->ioapic, irq == 0 ? 2 : irq, level);
}
