// SPDX-License-Identifier: GPL-2.0-only
/*
 * The slow path of loads and stores: page crossings, devices, pages with decoded
 * code, and whatever has no shortcut. An access that crosses a page is checked on
 * both before a byte of it is written (SDM 3A 6.5: a fault leaves no trace).
 */
#include <string.h>

#include "soft/soft-mem.h"
#include "soft/system.h"

#define APIC_PAGE	0xfee00000ull

/* A port or MMIO access is done: what it cost, and whether it made work for this vCPU. */
static void soft_device_done(struct soft_cpu *c, u64 ns)
{
	soft_spend(c, soft_units_of(c->svm, ns));
	vcpu_count_exit(c->vcpu, COUNTER_vm_exits);
	if (vcpu_turn_needed(c->vcpu, c->until))
		soft_break(c);
}

static void soft_device(struct soft_cpu *c, gpa_t gpa, bool write, u8 *data, u32 len)
{
	bool apic = ALIGN_DOWN(gpa, PAGE_SIZE) == APIC_PAGE;
	u32 done = 0;

	while (done < len) {
		u32 piece = MIN(len - done, 8u);

		vcpu_mmio(c->vcpu, gpa + done, write, data + done, piece);
		soft_device_done(c, apic ? cost(&c->svm->cost, apic) : cost(&c->svm->cost, io));
		done += piece;
	}
}

static void soft_put(struct soft_cpu *c, const struct soft_xlat *x, const u8 *data, u32 len)
{
	u8 copy[32];

	if (unlikely(!x->hva)) {
		memcpy(copy, data, len);
		soft_device(c, x->gpa, true, copy, len);
		return;
	}
	memcpy(x->hva, data, len);
	if (unlikely(x->page->flags & SPAGE_CODE))
		soft_code_written(c->svm, x->page, (u32)(x->gpa & (PAGE_SIZE - 1)), len);
}

static void soft_take(struct soft_cpu *c, const struct soft_xlat *x, u8 *data, u32 len)
{
	if (unlikely(!x->hva))
		soft_device(c, x->gpa, false, data, len);
	else
		memcpy(data, x->hva, len);
}

/* The linear address space of 16- and 32-bit modes ends at 4 GiB. */
static u64 soft_wrap(const struct soft_cpu *c, u64 va)
{
	return c->mode == MODE_64 ? va : (u32)va;
}

/* Translate the one or two pages of [va, va + len); the length of the first part is returned in *first. */
static int soft_translate_range(struct soft_cpu *c, u64 va, u32 len, enum soft_access access, bool system,
				struct soft_xlat x[2], u32 *first)
{
	u32 room = (u32)(PAGE_SIZE - (va & (PAGE_SIZE - 1)));
	int ret;

	*first = MIN(len, room);
	/* Every byte's address has to be canonical before any page is looked at. */
	if (unlikely(len > room) && c->mode == MODE_64 && va + room == 1ull << 47) {
		c->fault = (struct soft_fault){ .vector = VEC_GP, .has_error = true };
		return SOFT_FAULT;
	}
	/* SDM 3A 6.15, #AC: by the operand's size, which is a power of two or, 80 bits, one with 64. #GP goes first (6.9). */
	if (unlikely(c->align_check) && !system && va & ((len == 10 ? 8 : len & -len) - 1) &&
	    (c->mode != MODE_64 || soft_canonical(va))) {
		c->fault = (struct soft_fault){ .vector = VEC_AC, .has_error = true };
		return SOFT_FAULT;
	}
	ret = soft_translate(c, va, access, system, &x[0]);
	if (ret || len <= room)
		return ret;
	/* The second translation may evict the first from the TLB, which is no matter: x holds what it gave. */
	return soft_translate(c, soft_wrap(c, va + room), access, system, &x[1]);
}

static int soft_load(struct soft_cpu *c, u64 va, void *buf, u32 len, bool system)
{
	struct soft_xlat x[2];
	u8 *to = buf;
	u32 first;

	if (soft_translate_range(c, va, len, ACCESS_READ, system, x, &first))
		return SOFT_FAULT;
	soft_take(c, &x[0], to, first);
	if (len > first)
		soft_take(c, &x[1], to + first, len - first);
	return SOFT_OK;
}

static int soft_store(struct soft_cpu *c, u64 va, const void *buf, u32 len, bool system)
{
	struct soft_xlat x[2];
	const u8 *from = buf;
	u32 first;

	if (soft_translate_range(c, va, len, ACCESS_WRITE, system, x, &first))
		return SOFT_FAULT;
	soft_put(c, &x[0], from, first);
	if (len > first)
		soft_put(c, &x[1], from + first, len - first);
	return SOFT_OK;
}

int soft_stack_fault(struct soft_cpu *c, const struct soft_op *op, u64 va)
{
	bool base = op && (op->base == X86_RSP || op->base == X86_RBP) && !(op->amode & AMODE_SEG);

	if (c->fault.vector == VEC_GP && c->mode == MODE_64 && (base || va - c->gpr[X86_RSP] + 8 <= 8))
		c->fault.vector = VEC_SS;
	return SOFT_FAULT;
}

int soft_load_slow(struct soft_cpu *c, const struct soft_op *op, u64 va, u32 len)
{
	if (op)
		soft_sync(c, op);
	memset(c->val, 0, sizeof(c->val));
	if (unlikely(soft_load(c, va, c->val, len, false)))
		return soft_stack_fault(c, op, va);
	return SOFT_OK;
}

int soft_store_slow(struct soft_cpu *c, const struct soft_op *op, u64 va, const void *data, u32 len)
{
	if (op)
		soft_sync(c, op);
	if (unlikely(soft_store(c, va, data, len, false)))
		return soft_stack_fault(c, op, va);
	return SOFT_OK;
}

int soft_check_write(struct soft_cpu *c, const struct soft_op *op, u64 va, u32 len)
{
	struct soft_xlat x[2];
	u32 first;

	if (op)
		soft_sync(c, op);
	if (unlikely(soft_translate_range(c, va, len, ACCESS_WRITE, false, x, &first)))
		return soft_stack_fault(c, op, va);
	return SOFT_OK;
}

int soft_load_system(struct soft_cpu *c, const struct soft_op *op, u64 va, void *buf, u32 len)
{
	if (op)
		soft_sync(c, op);
	return soft_load(c, va, buf, len, true);
}

int soft_store_system(struct soft_cpu *c, const struct soft_op *op, u64 va, const void *buf, u32 len)
{
	if (op)
		soft_sync(c, op);
	return soft_store(c, va, buf, len, true);
}

u64 soft_ea_slow(const struct soft_cpu *c, const struct soft_op *op, u64 offset)
{
	u32 seg = op->amode & AMODE_SEG;

	if (op->amode & AMODE_RIP)
		offset += op->pc + (u64)op->len;
	if (op->amode & AMODE_32)
		offset = (u32)offset;
	else if (op->amode & AMODE_16)
		offset = (u16)offset;
	if (seg)
		offset += c->seg[seg - 1].base;
	return op->amode & AMODE_LIN32 ? (u32)offset : offset;
}
