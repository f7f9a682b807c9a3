/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The guest's physical memory map and legacy resources. No state.
 *
 *   0x0000_0000  RAM
 *     0x0000_0500  boot GDT
 *     0x0000_1000  boot page tables (identity, 4 GiB by 2 MiB pages: 6 pages)
 *     0x0000_7000  boot_params ("zero page")
 *     0x0000_8000  command line (LAYOUT_CMDLINE_MAX)
 *     0x0001_0000  setup_data with the device tree (low memory, 16-byte aligned, clear of the kernel)
 *     0x0008_0000  multiboot information and modules' table
 *     0x0009_fc00  EBDA: reserved
 *   0x000e_0000  ACPI: RSDP first, then the tables (reserved; to 0x000f_ffff)
 *   0x0010_0000  kernel (bzImage at its pref_address), initramfs at the top of low RAM,
 *                below the channel
 *   low RAM end - FAULTBED_CHANNEL_SIZE   the channel (reserved)
 *   0xc000_0000  end of low RAM at the latest (hole for devices)
 *     0xd000_0000  virtio-mmio, 0x1000 a device
 *     0xfec0_0000  IOAPIC
 *     0xfee0_0000  local APIC
 *   0x1_0000_0000  RAM above 4 GiB
 *
 * Ports: 0x20/21, 0xa0/a1 PIC stub; 0x40-43, 0x61 PIT; 0x70/71 RTC; 0x2f8, 0x3f8
 * UARTs; 0xcf8-cff absent PCI (all ones); 0xf4 test device; 0x600 PM1a event,
 * 0x604 PM1a control, 0x608 PM timer; 0x92 and 0x64 reset.
 */
#ifndef MACHINE_LAYOUT_H
#define MACHINE_LAYOUT_H

#define LAYOUT_GDT		0x500ull
#define LAYOUT_PAGE_TABLES	0x1000ull
#define LAYOUT_BOOT_PARAMS	0x7000ull
#define LAYOUT_CMDLINE		0x8000ull
#define LAYOUT_CMDLINE_MAX	0x4000u
#define LAYOUT_SETUP_DATA	0x10000ull
#define LAYOUT_SETUP_DATA_MAX	0x10000u
#define LAYOUT_MULTIBOOT	0x80000ull
#define LAYOUT_EBDA		0x9fc00ull
#define LAYOUT_ACPI		0xe0000ull
#define LAYOUT_ACPI_END		0x100000ull
#define LAYOUT_KERNEL		0x100000ull
#define LAYOUT_LOW_END		0xc0000000ull
#define LAYOUT_VIRTIO		0xd0000000ull
#define LAYOUT_VIRTIO_SIZE	0x1000u
#define LAYOUT_IOAPIC		0xfec00000ull
#define LAYOUT_LAPIC		0xfee00000ull
#define LAYOUT_HIGH		0x100000000ull

#define LAYOUT_PORT_UART0	0x3f8	/* console, IRQ 4 */
#define LAYOUT_PORT_UART1	0x2f8	/* control protocol, IRQ 3 */
#define LAYOUT_PORT_TESTDEV	0xf4
#define LAYOUT_PORT_PM1A_EVT	0x600
#define LAYOUT_PORT_PM1A_CNT	0x604
#define LAYOUT_PORT_PMTIMER	0x608

#define LAYOUT_IRQ_PIT		0	/* IOAPIC pin 2, as the MADT's override says */
#define LAYOUT_IRQ_UART1	3
#define LAYOUT_IRQ_UART0	4
#define LAYOUT_IRQ_SCI		9
#define LAYOUT_IRQ_VIRTIO	16	/* the IOAPIC's only, edge */
#define LAYOUT_IOAPIC_PINS	24

#endif
