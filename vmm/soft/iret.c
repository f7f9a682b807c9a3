// SPDX-License-Identifier: GPL-2.0-only
/* IRET, IRETD, IRETQ in every mode (SDM 2A IRET; 3A 6.14.3). */
#include "soft/profile.h"
#include "soft/ops.h"
#include "soft/system.h"

#define FLAGS_ANY	(SOFT_ARITH_FLAGS | X86_EFLAGS_TF | X86_EFLAGS_DF | X86_EFLAGS_NT)
#define FLAGS_WIDE	(X86_EFLAGS_RF | X86_EFLAGS_AC | X86_EFLAGS_ID)
#define FLAGS_VIRTUAL	(BIT_ULL(19) | BIT_ULL(20))	/* VIF, VIP */

/* RFLAGS after IRET at privilege level cpl with `popped` of op->size bytes. */
static void iret_flags(struct soft_cpu *c, u64 popped, u32 size, u8 cpl)
{
	u64 mask = FLAGS_ANY;

	if (size > 2)
		mask |= FLAGS_WIDE;
	if (cpl <= soft_iopl(c))
		mask |= X86_EFLAGS_IF;
	if (cpl == 0)
		mask |= X86_EFLAGS_IOPL | (size > 2 && soft_protected(c) ? FLAGS_VIRTUAL : 0);
	soft_set_rflags(c, (soft_rflags(c) & ~mask) | (popped & mask));
}

static int iret_load(struct soft_cpu *c, const struct soft_op *op, u32 i, u64 *word)
{
	u64 va = soft_stack_va(c, (s64)(i * op->size));
	void *p = soft_fast_read(c, va, op->size);

	*word = 0;
	if (likely(p)) {
		memcpy(word, p, op->size);
		return SOFT_OK;
	}
	if (soft_load_slow(c, op, va, op->size))
		return SOFT_FAULT;
	*word = c->val[0];
	return SOFT_OK;
}

static int iret_real(struct soft_cpu *c, const struct soft_op *op, const u64 word[3])
{
	soft_stack_move(c, (s64)(3u * op->size));
	soft_segment_set_real(&c->seg[SEG_CS], (u16)word[1]);
	iret_flags(c, word[2], op->size, 0);
	soft_update_context(c);
	c->rip = word[0];
	return SOFT_OK;
}

static int iret_protected(struct soft_cpu *c, const struct soft_op *op, u64 word[5])
{
	bool always = c->mode == MODE_64;
	u64 rsp = c->gpr[X86_RSP];
	struct soft_return r;
	u8 cpl = c->cpl;
	u32 i;
	int ret;

	if (!soft_long(c) && op->size > 2 && word[2] & X86_EFLAGS_VM && cpl == 0)
		return soft_stop(c, "virtual-8086 mode");
	if (always || soft_returns_outer(c, (u16)word[1])) {
		for (i = 3; i < 5; i++)
			if (iret_load(c, op, i, &word[i]))
				return SOFT_FAULT;
		c->accesses += 2;
	}
	soft_stack_move(c, (s64)(3u * op->size));
	r = (struct soft_return) {
		.rip = word[0], .cs = (u16)word[1], .rsp = word[3], .ss = (u16)word[4], .has_stack = always,
		.rsp_inner = c->gpr[X86_RSP],
	};
	c->gpr[X86_RSP] = rsp;
	ret = soft_return_far(c, op, &r);
	if (!ret)
		iret_flags(c, word[2], op->size, cpl);
	return ret;
}

int soft_op_iret(struct soft_cpu *c, const struct soft_op *op)
{
	u64 word[5] = { 0 };
	int ret;
	u32 i;

	soft_sync(c, op);
	/* Unmasks NMIs even if it faults (SDM 3A 6.7.1). */
	c->nmi_masked = false;
	soft_spend(c, TIME_event, cost(&c->svm->cost, iret));
	soft_sample(c, 0);
	if (soft_protected(c) && c->sysflags & X86_EFLAGS_NT) {
		if (soft_long(c))
			return soft_raise_error(c, op, VEC_GP, 0);
		return soft_failed(c, op, soft_stop(c, "a hardware task switch"));
	}
	for (i = 0; i < 3; i++)
		if (iret_load(c, op, i, &word[i]))
			return soft_faulted(c, op);
	ret = soft_protected(c) ? iret_protected(c, op, word) : iret_real(c, op, word);
	if (ret)
		return soft_failed(c, op, ret);
	soft_note_leave(c);
	return soft_end(c, op, c->rip);
}
