// SPDX-License-Identifier: GPL-2.0-only
/*
 * The slow path of loads and stores: page crossings, devices, pages with decoded
 * code, and whatever has no shortcut. An access that crosses a page is checked on
 * both before a byte of it is written (SDM 3A 6.5: a fault leaves no trace).
 */
#include <string.h>

#include "soft/lines.h"
#include "soft/soft-mem.h"
#include "soft/system.h"

#define APIC_PAGE	0xfee00000ull

/* A port or MMIO access is done: what it cost, and whether it made work for this vCPU. */
static void soft_device_done(struct soft_cpu *c, u64 ns)
{
	soft_spend(c, TIME_device, soft_units_of(c->svm, ns));
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
	c->line_va = va;
	ret = soft_translate(c, va, access, system, &x[0]);
	if (ret || len <= room)
		return ret;
	/* The second translation may evict the first from the TLB, which is no matter: x holds what it gave. */
	return soft_translate(c, soft_wrap(c, va + room), access, system, &x[1]);
}

/*
 * A locked operation is one access to the memory model, which soft_check_write() makes;
 * the load and the store of any other read-modify-write are its two.
 */
static inline bool soft_is_locked(const struct soft_op *op)
{
	return op && op->dst == DST_LOCKED;
}

/* What the memory model has to know of an access that has been translated. True: it has to wait (`retry` only). */
static bool soft_touch(struct soft_cpu *c, const struct soft_xlat x[2], u32 first, u32 len, enum line_kind kind,
		       bool retry)
{
	if (likely(!c->filter))
		return false;
	if (x[0].page && soft_lines_touch(c, x[0].page, (u32)(x[0].gpa & (PAGE_SIZE - 1)), first, kind, retry))
		return true;
	return len > first && x[1].page && soft_lines_touch(c, x[1].page, 0, len - first, kind, retry);
}

/* The instruction is begun anew once its line is here. */
static int soft_wait_for_line(struct soft_cpu *c)
{
	c->line_wait = false;
	c->fault = (struct soft_fault){ .vector = VEC_LINE };
	return SOFT_FAULT;
}

/*
 * With a memory model: the host address of bytes that lie in one line and have a
 * shortcut, after the model has seen the access. NULL: the long way, or c->line_wait.
 */
static inline u8 *soft_line_shortcut(struct soft_cpu *c, const struct soft_op *op, u64 va, u32 len,
				     enum line_kind kind)
{
	bool write = kind == LINE_WRITE || kind == LINE_LOCKED || kind == LINE_STREAM_WRITE;
	struct soft_sc *sc = soft_sc_of(c, va);
	u64 line;

	if (unlikely(!soft_sc_in_line(write ? sc->wtag : sc->rtag, va, len)))
		return NULL;
	sc->used = 1;
	line = soft_sc_line(sc, va);
	if (unlikely(kind == LINE_LOCKED || (!line_filter_hit(c, line, write) && !soft_is_locked(op)))) {
		if (op)
			soft_sync(c, op);
		c->line_va = va;
		c->line_wait = soft_line(c, line, kind, op && (kind == LINE_READ || kind == LINE_LOCKED));
		if (unlikely(c->line_wait))
			return NULL;
	}
	return soft_host(va + sc->addend);
}

void *soft_line_pointer(struct soft_cpu *c, const struct soft_op *op, u64 va, u32 len, bool write)
{
	return soft_line_shortcut(c, op, va, len, write ? LINE_STREAM_WRITE : LINE_STREAM_READ);
}

static int soft_load(struct soft_cpu *c, const struct soft_op *op, u64 va, void *buf, u32 len, bool system)
{
	struct soft_xlat x[2];
	u8 *to = buf;
	u32 first;

	if (soft_translate_range(c, va, len, ACCESS_READ, system, x, &first))
		return SOFT_FAULT;
	if (!soft_is_locked(op) && unlikely(soft_touch(c, x, first, len, LINE_READ, op && !system)))
		return soft_wait_for_line(c);
	soft_take(c, &x[0], to, first);
	if (len > first)
		soft_take(c, &x[1], to + first, len - first);
	return SOFT_OK;
}

static int soft_store(struct soft_cpu *c, const struct soft_op *op, u64 va, const void *buf, u32 len, bool system)
{
	struct soft_xlat x[2];
	const u8 *from = buf;
	u32 first;

	if (soft_translate_range(c, va, len, ACCESS_WRITE, system, x, &first))
		return SOFT_FAULT;
	if (!soft_is_locked(op))
		soft_touch(c, x, first, len, LINE_WRITE, false);
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

/* Up to 8 bytes, zero-extended. */
static inline u64 soft_line_value(const u8 *p, u32 len)
{
	u64 v = 0;

	switch (len) {
	case 8:
		memcpy(&v, p, 8);
		break;
	case 4:
		memcpy(&v, p, 4);
		break;
	case 1:
		v = *p;
		break;
	case 2:
		memcpy(&v, p, 2);
		break;
	default:
		memcpy(&v, p, len);
		break;
	}
	return v;
}

int soft_load_slow(struct soft_cpu *c, const struct soft_op *op, u64 va, u32 len)
{
	if (c->filter) {
		const u8 *p = soft_line_shortcut(c, op, va, len, LINE_READ);

		if (likely(p)) {
			if (len > sizeof(u64)) {
				memset(c->val, 0, sizeof(c->val));
				memcpy(c->val, p, len);
			} else {
				c->val[0] = soft_line_value(p, len);
			}
			return SOFT_OK;
		}
		if (unlikely(c->line_wait))
			return soft_wait_for_line(c);
	}
	if (op)
		soft_sync(c, op);
	memset(c->val, 0, sizeof(c->val));
	if (unlikely(soft_load(c, op, va, c->val, len, false)))
		return soft_stack_fault(c, op, va);
	return SOFT_OK;
}

static inline void soft_line_put(u8 *p, const void *data, u32 len)
{
	switch (len) {
	case 8:
		memcpy(p, data, 8);
		break;
	case 4:
		memcpy(p, data, 4);
		break;
	case 1:
		memcpy(p, data, 1);
		break;
	default:
		memcpy(p, data, len);
		break;
	}
}

int soft_store_slow(struct soft_cpu *c, const struct soft_op *op, u64 va, const void *data, u32 len)
{
	if (c->filter) {
		u8 *p = soft_line_shortcut(c, op, va, len, LINE_WRITE);

		if (likely(p)) {
			soft_line_put(p, data, len);
			return SOFT_OK;
		}
	}
	if (op)
		soft_sync(c, op);
	if (unlikely(soft_store(c, op, va, data, len, false)))
		return soft_stack_fault(c, op, va);
	return SOFT_OK;
}

int soft_check_write(struct soft_cpu *c, const struct soft_op *op, u64 va, u32 len)
{
	bool locked = soft_is_locked(op);
	struct soft_xlat x[2];
	u32 first;

	if (c->filter && locked) {
		if (soft_line_shortcut(c, op, va, len, LINE_LOCKED))
			return SOFT_OK;
		if (unlikely(c->line_wait))
			return soft_wait_for_line(c);
	}
	if (op)
		soft_sync(c, op);
	if (unlikely(soft_translate_range(c, va, len, ACCESS_WRITE, false, x, &first)))
		return soft_stack_fault(c, op, va);
	if (locked && unlikely(soft_touch(c, x, first, len, LINE_LOCKED, true)))
		return soft_wait_for_line(c);
	return SOFT_OK;
}

int soft_load_system(struct soft_cpu *c, const struct soft_op *op, u64 va, void *buf, u32 len)
{
	if (op)
		soft_sync(c, op);
	return soft_load(c, op, va, buf, len, true);
}

int soft_store_system(struct soft_cpu *c, const struct soft_op *op, u64 va, const void *buf, u32 len)
{
	if (op)
		soft_sync(c, op);
	return soft_store(c, op, va, buf, len, true);
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
