// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <glib.h>
#include <string.h>

#include "base/log.h"
#include "machine/acpi.h"
#include "machine/layout.h"
#include "machine/machine.h"

#define OEM_ID		"FAULTB"
#define OEM_TABLE_ID	"FAULTBED"
#define CREATOR_ID	"FBED"
#define CREATOR_REV	1u

#define HEADER_LEN	36u
#define RSDP_LEN	36u
#define FACS_LEN	64u
#define FADT_LEN	276u		/* revision 6 */

/* FADT fixed feature flags (ACPI 6.5 table 5.10). */
#define FADT_WBINVD		BIT(0)
#define FADT_PROC_C1		BIT(2)
#define FADT_PWR_BUTTON		BIT(4)	/* set: no fixed-hardware button */
#define FADT_SLP_BUTTON		BIT(5)
#define FADT_FIX_RTC		BIT(6)	/* set: the RTC does not wake through PM1 */
#define FADT_TMR_VAL_EXT	BIT(8)	/* the PM timer has 32 bits */
#define FADT_RESET_REG_SUP	BIT(10)

/* IA-PC boot architecture flags (table 5.11). */
#define IAPC_LEGACY_DEVICES	BIT(0)
#define IAPC_NO_VGA		BIT(2)

#define SPACE_IO		1u	/* generic address structure: system I/O */
#define GAS_BYTE		1u
#define GAS_WORD		2u
#define GAS_DWORD		3u

/* MADT and SRAT structure types (sections 5.2.12 and 5.2.16). */
#define MADT_LAPIC		0u
#define MADT_IOAPIC		1u
#define MADT_OVERRIDE		2u
#define MADT_LAPIC_NMI		4u
#define MADT_X2APIC		9u
#define MADT_X2APIC_NMI		10u
#define MADT_PCAT_COMPAT	1u
#define SRAT_LAPIC		0u
#define SRAT_MEMORY		1u
#define SRAT_X2APIC		2u
#define ENABLED			1u
#define INTI_CONFORMS		0u
#define INTI_LEVEL_HIGH		0xdu	/* level triggered, active high */

#define RESET_PORT		0x64u	/* keyboard controller's pulse of the reset line */
#define RESET_VALUE		0xfeu

/* A number of AML, byte by byte. */
#define LE32(v)	(u8)(v), (u8)((v) >> 8), (u8)((v) >> 16), (u8)((v) >> 24)

/* One table that grows at its end; integers are little-endian. */
static void put8(GByteArray *t, u32 v)
{
	u8 b = (u8)v;

	g_byte_array_append(t, &b, 1);
}

static void put16(GByteArray *t, u32 v)
{
	put8(t, v);
	put8(t, v >> 8);
}

static void put32(GByteArray *t, u32 v)
{
	put16(t, v);
	put16(t, v >> 16);
}

static void put64(GByteArray *t, u64 v)
{
	put32(t, (u32)v);
	put32(t, (u32)(v >> 32));
}

static void put_zeroes(GByteArray *t, u32 n)
{
	while (n--)
		put8(t, 0);
}

static void put_text(GByteArray *t, const char *text)
{
	g_byte_array_append(t, (const guint8 *)text, (guint)strlen(text));
}

static void put_io(GByteArray *t, u32 port, u32 bits, u32 access)
{
	put8(t, port ? SPACE_IO : 0);
	put8(t, bits);
	put8(t, 0);
	put8(t, access);
	put64(t, port);
}

static GByteArray *table_new(const char *signature, u32 revision)
{
	GByteArray *t = g_byte_array_new();

	put_text(t, signature);
	put32(t, 0);			/* length: table_finish() */
	put8(t, revision);
	put8(t, 0);			/* checksum: table_finish() */
	put_text(t, OEM_ID);
	put_text(t, OEM_TABLE_ID);
	put32(t, 1);
	put_text(t, CREATOR_ID);
	put32(t, CREATOR_REV);
	fb_assert(t->len == HEADER_LEN);
	return t;
}

static u8 checksum(const u8 *p, u32 len)
{
	u8 sum = 0;

	while (len--)
		sum = (u8)(sum + *p++);
	return (u8)-sum;
}

static void table_finish(GByteArray *t)
{
	for (u32 i = 0; i < 4; i++)
		t->data[4 + i] = (u8)(t->len >> (8 * i));
	t->data[9] = 0;
	t->data[9] = checksum(t->data, t->len);
}

/*
 * Type 0 entries have 8 bits for the id and for the UID, which is the CPU
 * number (ids are no fewer than CPUs). Linux ignores type 9 entries with ids below
 * 255 beside type 0 ones (acpi_parse_x2apic()), so either kind is used for all CPUs.
 */
static GByteArray *build_madt(const struct topology *topo)
{
	GByteArray *t = table_new("APIC", 5);
	bool wide = topology_needs_x2apic(topo);

	put32(t, (u32)LAYOUT_LAPIC);
	put32(t, MADT_PCAT_COMPAT);
	for (u32 i = 0; i < topo->nr_cpus; i++) {
		if (wide) {
			put8(t, MADT_X2APIC);
			put8(t, 16);
			put16(t, 0);
			put32(t, topo->cpu[i].apic_id);
			put32(t, ENABLED);
			put32(t, i);
		} else {
			put8(t, MADT_LAPIC);
			put8(t, 8);
			put8(t, i);
			put8(t, topo->cpu[i].apic_id);
			put32(t, ENABLED);
		}
	}

	/* Its id names no destination since the APIC bus has gone; 0 is what its register holds. */
	put8(t, MADT_IOAPIC);
	put8(t, 12);
	put8(t, 0);
	put8(t, 0);
	put32(t, (u32)LAYOUT_IOAPIC);
	put32(t, 0);			/* first global interrupt */

	put8(t, MADT_OVERRIDE);
	put8(t, 10);
	put8(t, 0);
	put8(t, LAYOUT_IRQ_PIT);
	put32(t, 2);
	put16(t, INTI_CONFORMS);

	put8(t, MADT_OVERRIDE);
	put8(t, 10);
	put8(t, 0);
	put8(t, LAYOUT_IRQ_SCI);
	put32(t, LAYOUT_IRQ_SCI);
	put16(t, INTI_LEVEL_HIGH);

	if (wide) {
		put8(t, MADT_X2APIC_NMI);
		put8(t, 12);
		put16(t, INTI_CONFORMS);
		put32(t, 0xffffffff);	/* every CPU */
		put8(t, 1);		/* LINT1 */
		put_zeroes(t, 3);
	} else {
		put8(t, MADT_LAPIC_NMI);
		put8(t, 6);
		put8(t, 0xff);
		put16(t, INTI_CONFORMS);
		put8(t, 1);
	}
	return t;
}

static GByteArray *build_srat(const struct topology *topo, const struct memory *mem)
{
	GByteArray *t = table_new("SRAT", 3);
	bool wide = topology_needs_x2apic(topo);

	put32(t, 1);			/* reserved, must be 1 */
	put_zeroes(t, 8);
	for (u32 i = 0; i < topo->nr_cpus; i++) {
		const struct topology_cpu *cpu = &topo->cpu[i];

		if (wide) {
			put8(t, SRAT_X2APIC);
			put8(t, 24);
			put16(t, 0);
			put32(t, cpu->node);
			put32(t, cpu->apic_id);
			put32(t, ENABLED);
			put_zeroes(t, 8);
		} else {
			put8(t, SRAT_LAPIC);
			put8(t, 16);
			put8(t, cpu->node);
			put8(t, cpu->apic_id);
			put32(t, ENABLED);
			put_zeroes(t, 8);	/* SAPIC EID, domain's high bytes, clock domain */
		}
	}
	for (u32 i = 0; i < mem->nr_slots; i++) {
		put8(t, SRAT_MEMORY);
		put8(t, 40);
		put32(t, mem->slot[i].node);
		put16(t, 0);
		put64(t, mem->slot[i].gpa);
		put64(t, mem->slot[i].size);
		put32(t, 0);
		put32(t, ENABLED);
		put64(t, 0);
	}
	return t;
}

static GByteArray *build_slit(const struct topology *topo)
{
	GByteArray *t = table_new("SLIT", 1);

	put64(t, topo->nr_nodes);
	for (u32 i = 0; i < topo->nr_nodes; i++)
		for (u32 j = 0; j < topo->nr_nodes; j++)
			put8(t, topo->distance[i][j]);
	return t;
}

/*
 * The soft-off state, and the disk if there is one: processors are in the MADT, and the
 * UARTs, RTC and PIT are found where every PC has them.
 */
static GByteArray *build_dsdt(bool disk)
{
	static const u8 s5[] = {
		0x08, '_', 'S', '5', '_',	/* Name (_S5, */
		0x12, 0x08, 0x04,		/*   Package (4), PkgLength 8 */
		0x0a, 0x05, 0x0a, 0x05,		/*   SLP_TYPa, SLP_TYPb: 5 */
		0x00, 0x00,
	};
	GByteArray *t = table_new("DSDT", 2);

	static const u8 vio0[] = {
		0x10, 0x42, 0x04,			/* Scope (66 bytes) */
		'_', 'S', 'B', '_',			/*   _SB */
		0x5b, 0x82, 0x3a,			/*   Device (58 bytes) */
		'V', 'I', 'O', '0',
		0x08, '_', 'H', 'I', 'D',		/*     Name (_HID, "LNRO0005"): virtio-mmio */
		0x0d, 'L', 'N', 'R', 'O', '0', '0', '0', '5', 0x00,
		0x08, '_', 'U', 'I', 'D', 0x00,		/*     Name (_UID, 0) */
		0x08, '_', 'C', 'R', 'S',		/*     Name (_CRS, Buffer (23) */
		0x11, 0x1a, 0x0a, 0x17,
		0x86, 0x09, 0x00, 0x01,			/*       Memory32Fixed (ReadWrite, ...) (6.4.3.4) */
		LE32(LAYOUT_VIRTIO), LE32(LAYOUT_VIRTIO_SIZE),
		0x89, 0x06, 0x00, 0x03, 0x01,		/*       Interrupt (Consumer, Edge, High, Exclusive) (6.4.3.6) */
		LE32(LAYOUT_IRQ_VIRTIO),
		0x79, 0x00,				/*       end tag, no checksum */
	};

	g_byte_array_append(t, s5, sizeof(s5));
	if (disk)
		g_byte_array_append(t, vio0, sizeof(vio0));
	return t;
}

/* 64 bytes and no checksum (section 5.2.10): it holds the global lock and the waking vector. */
static GByteArray *build_facs(void)
{
	GByteArray *t = g_byte_array_new();

	put_text(t, "FACS");
	put32(t, FACS_LEN);
	put_zeroes(t, 24);
	put8(t, 2);			/* version */
	put_zeroes(t, FACS_LEN - 33);
	fb_assert(t->len == FACS_LEN);
	return t;
}

static GByteArray *build_fadt(gpa_t facs, gpa_t dsdt)
{
	GByteArray *t = table_new("FACP", 6);

	put32(t, (u32)facs);
	put32(t, (u32)dsdt);
	put8(t, 0);
	put8(t, 4);			/* preferred profile: enterprise server */
	put16(t, LAYOUT_IRQ_SCI);
	put32(t, 0);			/* no SMI command port: always in ACPI mode */
	put_zeroes(t, 4);
	put32(t, LAYOUT_PORT_PM1A_EVT);
	put32(t, 0);
	put32(t, LAYOUT_PORT_PM1A_CNT);
	put32(t, 0);
	put32(t, 0);
	put32(t, LAYOUT_PORT_PMTIMER);
	put32(t, 0);			/* no general-purpose events */
	put32(t, 0);
	put8(t, 4);			/* PM1_EVT_LEN */
	put8(t, 2);			/* PM1_CNT_LEN */
	put8(t, 0);
	put8(t, 4);			/* PM_TMR_LEN */
	put_zeroes(t, 4);
	put16(t, 0xffff);		/* C2 latency: above 100 us means there is no C2 */
	put16(t, 0xffff);		/* C3 */
	put_zeroes(t, 6);		/* flush size and stride, duty cycle */
	put_zeroes(t, 3);		/* RTC alarm and century: not there */
	put16(t, IAPC_LEGACY_DEVICES | IAPC_NO_VGA);
	put8(t, 0);
	put32(t, FADT_WBINVD | FADT_PROC_C1 | FADT_PWR_BUTTON | FADT_SLP_BUTTON | FADT_FIX_RTC |
		 FADT_TMR_VAL_EXT | FADT_RESET_REG_SUP);
	put_io(t, RESET_PORT, 8, GAS_BYTE);
	put8(t, RESET_VALUE);
	put16(t, 0);			/* ARM */
	put8(t, 5);			/* minor revision: 6.5 */
	put64(t, 0);			/* X_FIRMWARE_CTRL: FIRMWARE_CTRL is used */
	put64(t, dsdt);
	put_io(t, LAYOUT_PORT_PM1A_EVT, 32, GAS_WORD);
	put_io(t, 0, 0, 0);
	put_io(t, LAYOUT_PORT_PM1A_CNT, 16, GAS_WORD);
	put_io(t, 0, 0, 0);
	put_io(t, 0, 0, 0);
	put_io(t, LAYOUT_PORT_PMTIMER, 32, GAS_DWORD);
	put_io(t, 0, 0, 0);
	put_io(t, 0, 0, 0);
	put_io(t, 0, 0, 0);		/* sleep control and status: hardware-reduced only */
	put_io(t, 0, 0, 0);
	put_text(t, "FAULTBED");	/* hypervisor vendor identity */
	fb_assert(t->len == FADT_LEN);
	return t;
}

static GByteArray *build_rsdp(gpa_t xsdt)
{
	GByteArray *t = g_byte_array_new();

	put_text(t, "RSD PTR ");
	put8(t, 0);
	put_text(t, OEM_ID);
	put8(t, 2);
	put32(t, 0);			/* no RSDT */
	put32(t, RSDP_LEN);
	put64(t, xsdt);
	put8(t, 0);
	put_zeroes(t, 3);
	fb_assert(t->len == RSDP_LEN);
	t->data[8] = checksum(t->data, 20);
	t->data[32] = checksum(t->data, RSDP_LEN);
	return t;
}

/* Places tables one after another; the first error stays and stops the writing. */
struct placer {
	struct vm *vm;
	gpa_t next;
	int err;
};

static gpa_t place(struct placer *p, GByteArray *t)
{
	gpa_t at = ALIGN_UP(p->next, 64);	/* what the FACS needs; no harm to the others */

	if (!p->err && (t->len > LAYOUT_ACPI_END - LAYOUT_ACPI ||
			at + t->len > LAYOUT_ACPI_END))
		p->err = -ENOSPC;
	if (!p->err)
		p->err = memory_write(&p->vm->mem, at, t->data, t->len);
	p->next = at + t->len;
	g_byte_array_unref(t);
	return at;
}

static gpa_t place_table(struct placer *p, GByteArray *t)
{
	table_finish(t);
	return place(p, t);
}

int acpi_build(struct vm *vm, gpa_t *rsdp)
{
	struct placer p = { .vm = vm, .next = LAYOUT_ACPI + RSDP_LEN };
	GByteArray *xsdt = table_new("XSDT", 1), *pointer;
	gpa_t facs = place(&p, build_facs());
	gpa_t dsdt = place_table(&p, build_dsdt(vm->machine && vm->machine->blk));
	gpa_t xsdt_at;

	put64(xsdt, place_table(&p, build_fadt(facs, dsdt)));
	put64(xsdt, place_table(&p, build_madt(&vm->topo)));
	put64(xsdt, place_table(&p, build_srat(&vm->topo, &vm->mem)));
	put64(xsdt, place_table(&p, build_slit(&vm->topo)));
	xsdt_at = place_table(&p, xsdt);

	/* First in memory, written last. */
	pointer = build_rsdp(xsdt_at);
	if (!p.err)
		p.err = memory_write(&vm->mem, LAYOUT_ACPI, pointer->data, pointer->len);
	g_byte_array_unref(pointer);
	if (p.err) {
		fb_err("the ACPI tables of %u CPUs do not fit below %#llx: %s", vm->topo.nr_cpus,
		       LAYOUT_ACPI_END, strerror(-p.err));
		return p.err;
	}
	*rsdp = LAYOUT_ACPI;
	return 0;
}
