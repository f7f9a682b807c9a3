// SPDX-License-Identifier: GPL-2.0-only
/* Descriptors and segment registers (SDM 3A 3.4, 5.1 to 5.8). */
#include "soft/system.h"

#include <string.h>

#include "base/log.h"
#include "soft/soft-mem.h"

int soft_stop(struct soft_cpu *c, const char *what)
{
	fb_err("soft: vCPU %u: %s is not in this engine (rip 0x%llx)", c->vcpu->id, what, (unsigned long long)c->rip);
	c->leave = RUN_ERROR;
	return SOFT_LEAVE;
}

/* Shortcuts that an implicit supervisor access may use, as soft_translate() makes them (SDM 3A 4.6.1: AC does not count). */
static struct soft_sc *soft_sys_sc(struct soft_cpu *c, u64 va)
{
	return &c->sct[CTX_KERNEL][soft_sc_slot(va)];
}

int soft_sys_load(struct soft_cpu *c, const struct soft_op *op, u64 va, void *buf, u32 len)
{
	struct soft_sc *sc = soft_sys_sc(c, va);

	c->accesses++;
	if (likely(((va + len - 1) & ~(PAGE_SIZE - 1)) == sc->rtag)) {
		sc->used = 1;
		memcpy(buf, (void *)(uintptr_t)(va + sc->addend), len);
		return SOFT_OK;
	}
	return soft_load_system(c, op, va, buf, len);
}

int soft_sys_store(struct soft_cpu *c, const struct soft_op *op, u64 va, const void *buf, u32 len)
{
	struct soft_sc *sc = soft_sys_sc(c, va);

	c->accesses++;
	if (likely(((va + len - 1) & ~(PAGE_SIZE - 1)) == sc->wtag)) {
		sc->used = 1;
		memcpy((void *)(uintptr_t)(va + sc->addend), buf, len);
		return SOFT_OK;
	}
	return soft_store_system(c, op, va, buf, len);
}

static void soft_desc_unpack(struct soft_desc *d)
{
	u64 raw = d->raw;

	d->base = (raw >> 16 & 0xffffff) | (raw >> 56 << 24);
	d->limit = (u32)((raw & 0xffff) | (raw >> 32 & 0xf0000));
	d->attr = (u16)((raw >> 40 & 0xff) | (raw >> 40 & 0xf000));
	if (d->attr & SEG_ATTR_G)
		d->limit = d->limit << 12 | 0xfff;
	d->high = 0;
}

int soft_desc_read(struct soft_cpu *c, const struct soft_op *op, u16 sel, u8 vector, u32 ext, struct soft_desc *d)
{
	bool local = sel & 4;
	u64 base = local ? c->ldt.base : c->gdt.base;
	u32 limit = local ? c->ldt.limit : c->gdt.limit;

	if ((local && c->ldt.unusable) || (sel | 7u) > limit)
		return soft_fault_error(c, vector, (sel & ~3u) | ext);
	d->va = base + (sel & ~7u);
	if (!soft_long(c))
		d->va = (u32)d->va;
	if (soft_sys_load(c, op, d->va, &d->raw, 8))
		return SOFT_FAULT;
	soft_desc_unpack(d);
	return SOFT_OK;
}

int soft_desc_read_high(struct soft_cpu *c, const struct soft_op *op, u16 sel, u8 vector, u32 ext, struct soft_desc *d)
{
	u32 limit = sel & 4 ? c->ldt.limit : c->gdt.limit, high[2];

	if ((sel | 7u) + 8u > limit)
		return soft_fault_error(c, vector, (sel & ~3u) | ext);
	if (soft_sys_load(c, op, d->va + 8, high, 8))
		return SOFT_FAULT;
	/* The type field of the upper half must be 0 (SDM 3A 3.5.2). */
	if (high[1] & 0x1f00)
		return soft_fault_error(c, vector, (sel & ~3u) | ext);
	d->high = high[0];
	d->base |= (u64)high[0] << 32;
	return SOFT_OK;
}

int soft_desc_accessed(struct soft_cpu *c, const struct soft_op *op, struct soft_desc *d)
{
	u8 byte;

	if (d->attr & SEG_ATTR_ACCESSED)
		return SOFT_OK;
	d->attr |= SEG_ATTR_ACCESSED;
	byte = (u8)d->attr;
	return soft_sys_store(c, op, d->va + 5, &byte, 1);
}

void soft_segment_set(struct x86_segment *seg, u16 sel, const struct soft_desc *d)
{
	*seg = (struct x86_segment){ .selector = sel, .attr = d->attr, .limit = d->limit, .base = d->base };
}

void soft_segment_set_null(struct soft_cpu *c, struct x86_segment *seg, u16 sel)
{
	*seg = (struct x86_segment){ .selector = sel, .unusable = true };
	/* SS tells the privilege level to whoever reads the state (state.c). */
	if (seg == &c->seg[SEG_SS])
		seg->attr = (u16)(c->cpl << SEG_ATTR_DPL_SHIFT);
}

void soft_segment_set_real(struct x86_segment *seg, u16 sel)
{
	seg->selector = sel;
	seg->base = (u64)sel << 4;
	if (seg->unusable) {
		seg->unusable = false;
		seg->limit = 0xffff;
		seg->attr = SEG_ATTR_P | SEG_ATTR_S | SEG_ATTR_RW | SEG_ATTR_ACCESSED;
	}
}

void soft_cs_set(struct soft_cpu *c, u16 sel, const struct soft_desc *d, u8 cpl)
{
	soft_segment_set(&c->seg[SEG_CS], (u16)((sel & ~3u) | cpl), d);
	/* 64-bit mode has no base of CS (SDM 3A 3.4.4), and soft_op_rip() would subtract it. */
	if (soft_long(c) && d->attr & SEG_ATTR_L)
		c->seg[SEG_CS].base = 0;
	soft_set_cpl(c, cpl);
	soft_update_context(c);
}

static int soft_stack_type(struct soft_cpu *c, u16 sel, u8 cpl, u8 vector, u32 ext, const struct soft_desc *d)
{
	u16 need = SEG_ATTR_S | SEG_ATTR_RW;

	if ((sel & 3) != cpl || soft_attr_dpl(d->attr) != cpl || (d->attr & (need | SEG_ATTR_CODE)) != need)
		return soft_fault_error(c, vector, (sel & ~3u) | ext);
	if (!(d->attr & SEG_ATTR_P))
		return soft_fault_error(c, VEC_SS, (sel & ~3u) | ext);
	return SOFT_OK;
}

int soft_stack_check(struct soft_cpu *c, const struct soft_op *op, u16 sel, u8 cpl, u8 vector, u32 ext,
		     struct soft_desc *d)
{
	if (!(sel & ~3u))
		return soft_fault_error(c, vector, ext);
	if (soft_desc_read(c, op, sel, vector, ext, d) || soft_stack_type(c, sel, cpl, vector, ext, d))
		return SOFT_FAULT;
	return soft_desc_accessed(c, op, d);
}

int soft_code_check(struct soft_cpu *c, u16 sel, const struct soft_desc *d, u64 rip, u32 ext)
{
	bool wide = soft_long(c) && d->attr & SEG_ATTR_L;

	if (!(d->attr & SEG_ATTR_P))
		return soft_fault_error(c, VEC_NP, (sel & ~3u) | ext);
	if (wide && d->attr & SEG_ATTR_DB)
		return soft_fault_error(c, VEC_GP, (sel & ~3u) | ext);
	if (wide ? !soft_canonical(rip) : rip > d->limit)
		return soft_fault_error(c, VEC_GP, ext);
	return SOFT_OK;
}

int soft_segment_load(struct soft_cpu *c, const struct soft_op *op, enum soft_seg which, u16 sel)
{
	struct x86_segment *seg = &c->seg[which];
	struct soft_desc d;
	bool code;

	if (!soft_protected(c)) {
		soft_segment_set_real(seg, sel);
		return SOFT_OK;
	}
	if (!(sel & ~3u)) {
		if (which == SEG_SS && (c->mode != MODE_64 || c->cpl == 3 || (sel & 3) != c->cpl))
			return soft_fault_error(c, VEC_GP, 0);
		soft_segment_set_null(c, seg, sel);
		return SOFT_OK;
	}
	if (which == SEG_SS) {
		if (soft_stack_check(c, op, sel, c->cpl, VEC_GP, 0, &d))
			return SOFT_FAULT;
		soft_segment_set(seg, sel, &d);
		return SOFT_OK;
	}
	if (soft_desc_read(c, op, sel, VEC_GP, 0, &d))
		return SOFT_FAULT;
	code = d.attr & SEG_ATTR_CODE;
	if (!(d.attr & SEG_ATTR_S) || (code && !(d.attr & SEG_ATTR_RW)))
		return soft_fault_error(c, VEC_GP, sel & ~3u);
	/* Whoever may not have it: all but conforming code asks for privilege (SDM 3A 5.6). */
	if (!(code && d.attr & SEG_ATTR_CONFORMING) && MAX(sel & 3, c->cpl) > soft_attr_dpl(d.attr))
		return soft_fault_error(c, VEC_GP, sel & ~3u);
	if (!(d.attr & SEG_ATTR_P))
		return soft_fault_error(c, VEC_NP, sel & ~3u);
	if (soft_desc_accessed(c, op, &d))
		return SOFT_FAULT;
	soft_segment_set(seg, sel, &d);
	return SOFT_OK;
}
