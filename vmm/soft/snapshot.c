// SPDX-License-Identifier: GPL-2.0-only
/*
 * A vCPU and the second level as bytes. One list of fields serves both directions;
 * what can be made from others (context, mode, shortcuts, decoded code) is not in it.
 * The bytes are read by the same build on the same kind of host that wrote them,
 * and the file that holds them says so; here only their length is checked, and
 * nothing in them can do more than give the guest a strange state.
 */
#include "soft/snapshot.h"

#include <errno.h>
#include <string.h>

#include "soft/block.h"
#include "soft/lines.h"
#include "soft/soft.h"
#include "soft/spin.h"

struct soft_field {
	u32 offset, size;
};

#define FIELD(name)	{ offsetof(struct soft_cpu, name), sizeof(((struct soft_cpu *)NULL)->name) }

static const struct soft_field soft_fields[] = {
	FIELD(gpr), FIELD(insns), FIELD(accesses), FIELD(af), FIELD(cpl), FIELD(shadow), FIELD(rip), FIELD(sysflags),
	FIELD(seg), FIELD(tr), FIELD(ldt), FIELD(gdt), FIELD(idt),
	FIELD(cr0), FIELD(cr2), FIELD(cr3), FIELD(cr4), FIELD(efer),
	FIELD(star), FIELD(lstar), FIELD(cstar), FIELD(sfmask), FIELD(kernel_gs_base), FIELD(tsc_aux), FIELD(pat),
	FIELD(sysenter_cs), FIELD(sysenter_esp), FIELD(sysenter_eip), FIELD(dr),
	FIELD(tsc_offset), FIELD(tsc_adjust), FIELD(misc_enable), FIELD(spec_ctrl), FIELD(mtrr_def_type),
	FIELD(mtrr_fix), FIELD(mtrr_var), FIELD(mcg_status), FIELD(kvmclock), FIELD(wall_clock), FIELD(monitor), FIELD(apic_off),
	FIELD(fx), FIELD(nmi_pending), FIELD(nmi_masked), FIELD(irq_pending), FIELD(irq_vector), FIELD(rng), FIELD(jitter),
	FIELD(stat), FIELD(spent), FIELD(settled), FIELD(settled_other),
};

static size_t soft_fields_size(void)
{
	size_t size = 0, i;

	for (i = 0; i < ARRAY_SIZE(soft_fields); i++)
		size += soft_fields[i].size;
	return size;
}

int soft_snapshot_save(struct vcpu *vcpu, GByteArray *out)
{
	const struct soft_cpu *c = soft_cpu(vcpu);
	u64 units = soft_units(c);
	size_t i;

	g_byte_array_append(out, (const u8 *)&units, sizeof(units));
	for (i = 0; i < ARRAY_SIZE(soft_fields); i++)
		g_byte_array_append(out, (const u8 *)c + soft_fields[i].offset, soft_fields[i].size);
	soft_tlb_save(c, out);
	return 0;
}

int soft_snapshot_restore(struct vcpu *vcpu, const u8 *data, size_t len)
{
	struct soft_cpu *c = soft_cpu(vcpu);
	size_t i;
	u64 units;

	if (len < sizeof(units) + soft_fields_size())
		return -EINVAL;
	memcpy(&units, data, sizeof(units));
	data += sizeof(units);
	len -= sizeof(units);
	for (i = 0; i < ARRAY_SIZE(soft_fields); i++) {
		memcpy((u8 *)c + soft_fields[i].offset, data, soft_fields[i].size);
		data += soft_fields[i].size;
		len -= soft_fields[i].size;
	}
	if (units > SOFT_UNITS_MAX)
		return -EINVAL;
	soft_spin_reset(c);
	c->end = units;
	c->left = 0;
	c->broken = 0;
	c->cur = NULL;
	c->want_window = false;
	c->cpl &= 3;
	c->of = !!c->of;
	c->gpr[GPR_ZERO] = 0;
	soft_update_context(c);
	soft_drop_shortcuts(c);
	return soft_tlb_restore(c, data, len) ? 0 : -EINVAL;
}

/* Four bits a page: has a mapping, had one, allows no writes, and one to spare. */
#define PAGES_A_BYTE	2u
#define PAGE_BITS	4u
#define PAGE_STATE	(SPAGE_MAPPED | SPAGE_TOUCHED | SPAGE_PROTECTED)
_Static_assert(PAGE_STATE < BIT(PAGE_BITS) && PAGES_A_BYTE * PAGE_BITS == 8, "a page's state as it is saved");

int soft_snapshot_vm_save(struct vm *vm, GByteArray *out)
{
	const struct soft_vm *svm = vm->engine_data;
	guint start = out->len;
	u64 i;

	if (svm->nr_pages / PAGES_A_BYTE >= G_MAXUINT - start)
		return -EFBIG;
	g_byte_array_set_size(out, start + (guint)DIV_ROUND_UP(svm->nr_pages, PAGES_A_BYTE));
	memset(out->data + start, 0, out->len - start);
	for (i = 0; i < svm->nr_pages; i++) {
		u32 bits = svm->page[i].flags & PAGE_STATE;

		out->data[start + i / PAGES_A_BYTE] |= (u8)(bits << PAGE_BITS * (i % PAGES_A_BYTE));
	}
	return 0;
}

int soft_snapshot_vm_restore(struct vm *vm, const u8 *data, size_t len)
{
	struct soft_vm *svm = vm->engine_data;
	u64 i;

	if (len != DIV_ROUND_UP(svm->nr_pages, PAGES_A_BYTE))
		return -EINVAL;
	soft_blocks_forget(svm);
	/* Caches are not part of a snapshot: every run starts with cold ones. */
	soft_lines_reset(svm);
	for (i = 0; i < svm->nr_pages; i++) {
		u32 bits = data[i / PAGES_A_BYTE] >> PAGE_BITS * (i % PAGES_A_BYTE) & PAGE_STATE;

		/* Pages that never were touched stay untouched zeroes of the host, too. */
		if (bits)
			svm->page[i].flags |= bits;
	}
	return 0;
}
