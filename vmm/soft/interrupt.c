// SPDX-License-Identifier: GPL-2.0-only
/*
 * Delivery of exceptions and interrupts (SDM 3A 6): through the 64-bit IDT (6.14), the
 * protected-mode IDT (6.12) and real mode's vector table (3B 20.1.4 [21.1.4]); faults
 * while doing so, by table 6-5 [6-4].
 *
 * One attempt changes nothing of the CPU before all that can fault is done, so a fault
 * of it can be delivered from the same state. The loop is bounded: a fault in the
 * delivery of a fault is a double fault, one in that of a double fault is the end.
 */
#include <string.h>

#include "soft/profile.h"
#include "soft/soft-mem.h"
#include "soft/system.h"

struct soft_delivery {
	enum soft_event kind;
	u8 vector;
	bool has_error;
	u32 error;
	u64 rip;		/* to be pushed */
	u32 ext;		/* EXT bit of what faults (6.13) */
};

/* A gate, whatever its mode. */
struct soft_gate {
	u16 sel;
	u8 type, ist;
	u64 rip;
};

/* Where a stack switch leads. */
struct soft_stack {
	bool changed;
	u16 ss;			/* 32-bit: selector and descriptor of the new stack */
	struct soft_desc desc;
	u64 sp;			/* RSP before the first push */
	u64 base;		/* added to it: linear address */
	u64 mask;		/* of SP within its segment */
};

static bool soft_is_exception(enum soft_event kind)
{
	return kind == EVENT_FAULT || kind == EVENT_TRAP || kind == EVENT_INT1;
}

/* The error code of a bad gate: the vector, IDT bit, EXT (6.13). */
static int soft_gate_fault(struct soft_cpu *c, const struct soft_delivery *e, u8 vector)
{
	return soft_fault_error(c, vector, e->vector * 8u + 2 + e->ext);
}

/*
 * RFLAGS as pushed: RF tells a handler to let the instruction through that it returns to, one that
 * faulted or, by RF itself, a repeated string in the middle (SDM 3B 17.3.1.1 [18.3.1.1]).
 */
static u64 soft_pushed_flags(const struct soft_cpu *c, const struct soft_delivery *e)
{
	u64 flags = soft_rflags(c);

	if (e->kind == EVENT_FAULT && e->vector != VEC_DF)
		flags |= X86_EFLAGS_RF;
	return flags;
}

static void soft_enter_handler(struct soft_cpu *c, bool interrupt_gate)
{
	c->sysflags &= ~(X86_EFLAGS_TF | X86_EFLAGS_NT | X86_EFLAGS_RF | X86_EFLAGS_VM);
	if (interrupt_gate)
		c->sysflags &= ~X86_EFLAGS_IF;
}

static int soft_read_gate(struct soft_cpu *c, const struct soft_delivery *e, struct soft_gate *g)
{
	u32 size = soft_long(c) ? 16 : 8, offset = e->vector * size;
	u64 va = c->idt.base + offset;
	u32 raw[4] = { 0 };

	if (offset + size - 1 > c->idt.limit)
		return soft_gate_fault(c, e, VEC_GP);
	if (soft_sys_load(c, NULL, soft_long(c) ? va : (u32)va, raw, size))
		return SOFT_FAULT;
	g->sel = (u16)(raw[0] >> 16);
	g->type = raw[1] >> 8 & 0x1f;
	g->ist = soft_long(c) ? raw[1] & 7 : 0;
	g->rip = (raw[0] & 0xffff) | (raw[1] & 0xffff0000) | (u64)raw[2] << 32;
	/* The S bit must be 0, hence five bits. */
	if (g->type != SYS_INT && g->type != SYS_TRAP &&
	    (soft_long(c) || (g->type != SYS_INT16 && g->type != SYS_TRAP16 && g->type != SYS_TASK_GATE)))
		return soft_gate_fault(c, e, VEC_GP);
	if (e->kind == EVENT_SOFT_INT && c->cpl > (raw[1] >> 13 & 3))
		return soft_gate_fault(c, e, VEC_GP);
	if (!(raw[1] & SEG_ATTR_P << 8))
		return soft_gate_fault(c, e, VEC_NP);
	if (g->type == SYS_TASK_GATE)
		return soft_stop(c, "a task gate");
	if (g->type == SYS_INT16 || g->type == SYS_TRAP16)
		g->rip &= 0xffff;
	return SOFT_OK;
}

/* The handler's code segment and privilege level. */
static int soft_read_handler(struct soft_cpu *c, const struct soft_delivery *e, const struct soft_gate *g,
			     struct soft_desc *code, u8 *cpl)
{
	if (!(g->sel & ~3u))
		return soft_fault_error(c, VEC_GP, e->ext);
	if (soft_desc_read(c, NULL, g->sel, VEC_GP, e->ext, code))
		return SOFT_FAULT;
	if (!(code->attr & SEG_ATTR_S) || !(code->attr & SEG_ATTR_CODE) || soft_attr_dpl(code->attr) > c->cpl)
		return soft_fault_error(c, VEC_GP, (g->sel & ~3u) | e->ext);
	/* 6.14.1: in IA-32e mode handlers are 64-bit code. */
	if (code->attr & SEG_ATTR_P && soft_long(c) && !(code->attr & SEG_ATTR_L))
		return soft_fault_error(c, VEC_GP, (g->sel & ~3u) | e->ext);
	*cpl = code->attr & SEG_ATTR_CONFORMING ? c->cpl : soft_attr_dpl(code->attr);
	if (soft_code_check(c, g->sel, code, g->rip, e->ext))
		return SOFT_FAULT;
	return soft_desc_accessed(c, NULL, code);
}

/*
 * Store `nr` words of `size` bytes below the stack's top, the first one of word[] at the
 * highest address, as the CPU pushes them. What does not change its level pushes with
 * the rights it has; towards a lower level the pushes are a supervisor's.
 */
static int soft_push_frame(struct soft_cpu *c, const struct soft_stack *s, bool inner, const u64 *word, u32 nr, u32 size)
{
	u32 i;

	for (i = 0; i < nr; i++) {
		u64 va = ((s->sp - (i + 1) * (u64)size) & s->mask) + s->base;
		int ret;

		if (!soft_long(c))
			va = (u32)va;
		if (inner) {
			ret = soft_sys_store(c, NULL, va, &word[i], size);
		} else {
			void *p = soft_fast_write(c, va, size);

			c->accesses++;
			ret = SOFT_OK;
			if (likely(p))
				memcpy(p, &word[i], size);
			else
				ret = soft_store_slow(c, NULL, va, &word[i], size);
		}
		if (ret)
			return ret;
	}
	return SOFT_OK;
}

/* --- 64-bit (6.14) --- */

/* RSP0 to RSP2 are at byte 4 of the TSS, IST1 to IST7 at 36 (SDM 3A figure 7-11 [8-11]). */
static int soft_long_stack(struct soft_cpu *c, const struct soft_delivery *e, const struct soft_gate *g, u8 cpl,
			   struct soft_stack *s)
{
	u32 offset = g->ist ? 36 + 8 * (g->ist - 1u) : 4 + 8u * cpl;

	s->mask = ~0ull;
	s->changed = cpl != c->cpl;
	s->sp = c->gpr[X86_RSP];
	if (g->ist || s->changed) {
		if (offset + 7 > c->tr.limit)
			return soft_fault_error(c, VEC_TS, (c->tr.selector & ~3u) | e->ext);
		if (soft_sys_load(c, NULL, c->tr.base + offset, &s->sp, 8))
			return SOFT_FAULT;
	}
	s->sp &= ~15ull;	/* 6.14.2: always */
	if (!soft_canonical(s->sp - 48) || !soft_canonical(s->sp - 1))
		return soft_fault_error(c, VEC_SS, e->ext);
	return SOFT_OK;
}

static int soft_deliver_long(struct soft_cpu *c, const struct soft_delivery *e)
{
	struct soft_stack s = { 0 };
	struct soft_desc code;
	struct soft_gate g;
	u64 word[6];
	u32 nr = 0;
	int ret;
	u8 cpl;

	ret = soft_read_gate(c, e, &g);
	if (ret)
		return ret;
	if (soft_read_handler(c, e, &g, &code, &cpl) || soft_long_stack(c, e, &g, cpl, &s))
		return SOFT_FAULT;
	word[nr++] = c->seg[SEG_SS].selector;
	word[nr++] = c->gpr[X86_RSP];
	word[nr++] = soft_pushed_flags(c, e);
	word[nr++] = c->seg[SEG_CS].selector;
	word[nr++] = e->rip;
	if (e->has_error)
		word[nr++] = e->error;
	if (soft_push_frame(c, &s, s.changed, word, nr, 8))
		return SOFT_FAULT;

	c->gpr[X86_RSP] = s.sp - nr * 8;
	soft_enter_handler(c, g.type == SYS_INT);
	soft_cs_set(c, g.sel, &code, cpl);
	if (s.changed)
		soft_segment_set_null(c, &c->seg[SEG_SS], cpl);
	c->rip = g.rip;
	return SOFT_OK;
}

/* --- protected mode (6.12) --- */

/* SS:ESP of a privilege level in a 32-bit or 16-bit TSS (SDM 3A figures 7-2, 7-10 [8-2, 8-10]). */
static int soft_tss_stack(struct soft_cpu *c, const struct soft_delivery *e, u8 cpl, struct soft_stack *s)
{
	bool wide = c->tr.attr & 8;
	u32 offset = wide ? 4 + 8u * cpl : 2 + 4u * cpl, size = wide ? 6 : 4;
	u8 raw[6] = { 0 };

	if (offset + size - 1 > c->tr.limit)
		return soft_fault_error(c, VEC_TS, (c->tr.selector & ~3u) | e->ext);
	if (soft_sys_load(c, NULL, (u32)(c->tr.base + offset), raw, size))
		return SOFT_FAULT;
	s->sp = raw[0] | raw[1] << 8;
	if (wide)
		s->sp |= (u64)raw[2] << 16 | (u64)raw[3] << 24;
	s->ss = (u16)(raw[size - 2] | raw[size - 1] << 8);
	return soft_stack_check(c, NULL, s->ss, cpl, VEC_TS, e->ext, &s->desc);
}

static int soft_deliver_protected(struct soft_cpu *c, const struct soft_delivery *e)
{
	struct soft_stack s = { .sp = c->gpr[X86_RSP] };
	struct x86_segment ss = c->seg[SEG_SS];
	struct soft_desc code;
	struct soft_gate g;
	u64 word[6];
	u32 nr = 0, size;
	int ret;
	u8 cpl;

	ret = soft_read_gate(c, e, &g);
	if (ret)
		return ret;
	if (soft_read_handler(c, e, &g, &code, &cpl))
		return SOFT_FAULT;
	s.changed = cpl != c->cpl;
	if (s.changed) {
		if (soft_tss_stack(c, e, cpl, &s))
			return SOFT_FAULT;
		soft_segment_set(&ss, s.ss, &s.desc);
		word[nr++] = c->seg[SEG_SS].selector;
		word[nr++] = (u32)c->gpr[X86_RSP];
	}
	size = g.type == SYS_INT || g.type == SYS_TRAP ? 4 : 2;
	s.mask = ss.attr & SEG_ATTR_DB ? 0xffffffff : 0xffff;
	s.base = ss.base;
	word[nr++] = soft_pushed_flags(c, e);
	word[nr++] = c->seg[SEG_CS].selector;
	word[nr++] = e->rip;
	if (e->has_error)
		word[nr++] = e->error;
	if (soft_push_frame(c, &s, s.changed, word, nr, size))
		return SOFT_FAULT;

	/* With a 16-bit stack the upper half of ESP stays. */
	c->gpr[X86_RSP] = (s.sp & 0xffffffff & ~s.mask) | ((s.sp - nr * size) & s.mask);
	soft_enter_handler(c, g.type == SYS_INT || g.type == SYS_INT16);
	c->seg[SEG_SS] = ss;
	soft_cs_set(c, g.sel, &code, cpl);
	c->rip = g.rip;
	return SOFT_OK;
}

/* --- real mode --- */

static int soft_deliver_real(struct soft_cpu *c, const struct soft_delivery *e)
{
	struct soft_stack s = { .sp = c->gpr[X86_RSP], .base = c->seg[SEG_SS].base, .mask = 0xffff };
	const u64 word[3] = { soft_rflags(c), c->seg[SEG_CS].selector, e->rip };
	u32 offset = e->vector * 4u;
	u16 target[2];

	/* No error code is pushed for any exception. */
	if (offset + 3 > c->idt.limit)
		return soft_fault_error(c, VEC_GP, 0);
	if (soft_sys_load(c, NULL, c->idt.base + offset, target, 4) || soft_push_frame(c, &s, false, word, 3, 2))
		return SOFT_FAULT;
	c->gpr[X86_RSP] = (s.sp & ~0xffffull) | ((s.sp - 6) & 0xffff);
	soft_enter_handler(c, true);
	c->sysflags &= ~X86_EFLAGS_AC;
	soft_segment_set_real(&c->seg[SEG_CS], target[1]);
	c->rip = target[0];
	soft_update_context(c);
	return SOFT_OK;
}

/* --- faults within faults (table 6-5 [6-4]) --- */

enum soft_class { CLASS_BENIGN, CLASS_CONTRIBUTORY, CLASS_PAGE_FAULT, CLASS_DOUBLE_FAULT };

static enum soft_class soft_class(enum soft_event kind, u8 vector)
{
	if (kind != EVENT_FAULT)
		return CLASS_BENIGN;	/* INT n is, whatever n */
	switch (vector) {
	case VEC_DE:
	case VEC_TS:
	case VEC_NP:
	case VEC_SS:
	case VEC_GP:
		return CLASS_CONTRIBUTORY;
	case VEC_PF:
		return CLASS_PAGE_FAULT;
	case VEC_DF:
		return CLASS_DOUBLE_FAULT;
	}
	return CLASS_BENIGN;
}

/* What becomes of the fault `second` in the delivery of *e: false if that is the end. */
static bool soft_nested(struct soft_delivery *e, const struct soft_fault *second)
{
	enum soft_class first = soft_class(e->kind, e->vector), then = soft_class(EVENT_FAULT, second->vector);

	e->kind = EVENT_FAULT;
	e->ext = 1;
	e->vector = second->vector;
	e->has_error = second->has_error;
	e->error = second->error;
	if (then == CLASS_BENIGN || first == CLASS_BENIGN)
		return true;
	if (first == CLASS_DOUBLE_FAULT)
		return false;
	if (first == CLASS_PAGE_FAULT || then == CLASS_CONTRIBUTORY) {
		e->vector = VEC_DF;
		e->has_error = true;
		e->error = 0;
	}
	return true;
}

static void soft_trace_delivery(const struct soft_cpu *c, const struct soft_delivery *e, u64 cr2)
{
	static const char *const kind_name[] = {
		[EVENT_FAULT] = "fault", [EVENT_TRAP] = "trap", [EVENT_SOFT_INT] = "int", [EVENT_INT1] = "int1",
	};
	bool pf = e->kind == EVENT_FAULT && e->vector == VEC_PF;

	soft_trace(c, TRACE_fault, kind_name[e->kind], e->vector, e->has_error ? e->error : TRACE_NONE,
		   pf ? cr2 : TRACE_NONE);
}

static void soft_count_delivery(struct soft_cpu *c, const struct soft_delivery *e, u64 cr2)
{
	/* At least an instruction's time: a handler whose first instruction faults never retires any. */
	soft_spend(c, TIME_event, MAX(cost(&c->svm->cost, exception), c->cpi));
	if (e->kind == EVENT_INTERRUPT || e->kind == EVENT_NMI) {
		c->stat[STAT_interrupts]++;
	} else {
		c->stat[STAT_exceptions]++;
		if (trace_wanted(c->svm->vm, TRACE_fault))
			soft_trace_delivery(c, e, cr2);
	}
}

int soft_deliver(struct soft_cpu *c, enum soft_event kind, const struct soft_fault *fault, u64 return_rip)
{
	struct soft_delivery e = {
		.kind = kind, .vector = fault->vector, .has_error = fault->has_error, .error = fault->error,
		.rip = return_rip, .ext = kind != EVENT_SOFT_INT,
	};
	bool user = c->cpl == 3, irq = kind == EVENT_INTERRUPT || kind == EVENT_NMI;
	u64 cr2 = fault->cr2;
	int ret;

	c->spin.loud = true;
	if (user)
		soft_sample(c, 0);
	for (;;) {
		if (e.vector == VEC_PF && e.kind == EVENT_FAULT)
			c->cr2 = cr2;
		soft_count_delivery(c, &e, soft_is_exception(e.kind) ? cr2 : 0);
		if (!soft_protected(c))
			ret = soft_deliver_real(c, &e);
		else if (soft_long(c))
			ret = soft_deliver_long(c, &e);
		else
			ret = soft_deliver_protected(c, &e);
		if (ret != SOFT_FAULT)
			break;
		cr2 = c->fault.cr2;
		if (c->fault.vector == VEC_PF)
			c->cr2 = cr2;
		if (kind == EVENT_SOFT_INT)
			e.rip = c->rip;		/* of the INT n itself, which is not complete */
		if (!soft_nested(&e, &c->fault)) {
			vcpu_count_exit(c->vcpu, COUNTER_exits_other);
			c->leave = RUN_SHUTDOWN;
			return SOFT_LEAVE;
		}
	}
	if (ret == SOFT_OK) {
		soft_note_enter(c, user, PROFILE_ENTRY(irq ? PROFILE_ENTRY_INTERRUPT : PROFILE_ENTRY_EXCEPTION, e.vector));
		c->shadow = false;
		/* Until IRET (6.7.1). A fault in an NMI's delivery leaves NMIs masked, too. */
		if (kind == EVENT_NMI)
			c->nmi_masked = true;
	}
	return ret;
}
