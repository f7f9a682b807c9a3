// SPDX-License-Identifier: GPL-2.0-only
/* The loop of the engine: events, blocks, exceptions. */
#include <string.h>

#include "soft/block.h"
#include "soft/lines.h"
#include "soft/profile.h"
#include "soft/spin.h"

/* Without a deadline a run still ends now and then. */
#define RUN_MAX_UNITS	(1ull << 40)

static void soft_set_deadline(struct soft_cpu *c, u64 until)
{
	u64 now = c->end - (u64)c->left;

	c->end = until == CLOCK_NEVER ? now + RUN_MAX_UNITS : soft_units_of(c->svm, until);
	c->left = (s64)(c->end - now);
}

static void soft_unbreak(struct soft_cpu *c)
{
	c->left += (s64)c->broken;
	c->end += c->broken;
	c->broken = 0;
}

/* NMI, then the interrupt that inject() has left here. */
static int soft_events(struct soft_cpu *c)
{
	struct soft_fault event = { 0 };

	if (c->nmi_pending && !c->nmi_masked) {
		c->nmi_pending = false;
		c->link = NULL;
		event.vector = VEC_NMI;
		return soft_deliver(c, EVENT_NMI, &event, c->rip);
	}
	if (c->irq_pending && c->sysflags & X86_EFLAGS_IF) {
		c->irq_pending = false;
		c->link = NULL;
		event.vector = c->irq_vector;
		return soft_deliver(c, EVENT_INTERRUPT, &event, c->rip);
	}
	return SOFT_OK;
}

/* An instruction that has to wait for a line is not done, and so keeps the RF that it began with. */
static int soft_execute(struct soft_cpu *c, const struct soft_block *b)
{
	u64 rf = c->sysflags & X86_EFLAGS_RF, insns = c->insns;
	int ret;

	c->sysflags &= ~X86_EFLAGS_RF;
	ret = b->op[0].fn(c, b->op);
	if (unlikely(ret == SOFT_FAULT) && c->fault.vector == VEC_LINE && c->insns == insns)
		c->sysflags |= rf;
	return ret;
}

/* Execute the block at c->rip and whatever follows it without need of us. */
static int soft_step(struct soft_cpu *c)
{
	bool trap = c->sysflags & X86_EFLAGS_TF, shadow = c->shadow, single = trap || shadow;
	u64 delivered = c->stat[STAT_exceptions];
	struct soft_block *b;
	int ret;

	b = soft_block_lookup(c, single, &ret);
	if (unlikely(!b))
		return ret;
	c->spin.impure |= !b->quiet;
	/* RF lasts for one instruction; no event is taken before that is done, but in a repeated string (str_repeat()). */
	if (likely(!single))
		return soft_execute(c, b);
	c->shadow = false;
	if (c->left > 0)
		soft_break(c);		/* one instruction, and no further */
	ret = soft_execute(c, b);
	if (unlikely(ret == SOFT_FAULT && c->fault.vector == VEC_LINE))
		c->shadow = shadow;
	/*
	 * An instruction that set TF is not trapped, one that cleared it is (SDM 3B 17.3.1.4 [18.3.1.4]); INT n
	 * and INT3 have cleared it on their way into the handler, and are not either.
	 */
	if (ret == SOFT_OK && trap && !c->shadow && c->stat[STAT_exceptions] == delivered) {
		const struct soft_fault db = { .vector = VEC_DB };

		c->dr[6] |= BIT_ULL(14);
		c->link = NULL;
		return soft_deliver(c, EVENT_TRAP, &db, c->rip);
	}
	return ret;
}

/* As soft_step(), but the block leads no further: its end is one of the places of a loop. */
static int soft_step_watched(struct soft_cpu *c)
{
	const u64 hold = 1ull << 60;
	int ret;

	c->left -= (s64)hold;
	c->end -= hold;
	ret = soft_step(c);
	c->left += (s64)hold;
	c->end += hold;
	soft_spin_place(c, ret == SOFT_OK);
	return ret;
}

static enum run_exit soft_run_loop(struct vcpu *vcpu, u64 until)
{
	struct soft_cpu *c = soft_cpu(vcpu);
	int ret;

	c->until = until;
	soft_unbreak(c);
	soft_set_deadline(c, until);
	if (c->left <= 0)
		return RUN_DEADLINE;
	if (c->core)
		soft_lines_share_core(c);
	c->link = NULL;
	for (;;) {
		if (unlikely((c->nmi_pending || c->irq_pending) && !c->shadow)) {
			ret = soft_events(c);
			if (ret == SOFT_LEAVE)
				return c->leave;
		}
		if (unlikely(c->want_window) && c->sysflags & X86_EFLAGS_IF && !c->shadow) {
			c->want_window = false;
			vcpu_count_exit(vcpu, COUNTER_exits_intr_window);
			return RUN_INTR_WINDOW;
		}
		ret = likely(!c->spin.watch) ? soft_step(c) : soft_step_watched(c);
		if (unlikely(c->spin.paused) && soft_spin(c))
			return RUN_DEADLINE;
		if (unlikely(ret == SOFT_FAULT)) {
			c->link = NULL;
			c->cur = NULL;
			if (c->fault.vector != VEC_LINE)
				ret = soft_deliver(c, EVENT_FAULT, &c->fault, c->rip);
		}
		if (unlikely(ret == SOFT_LEAVE)) {
			c->cur = NULL;
			soft_unbreak(c);
			return c->leave;
		}
		if (likely(c->left > 0))
			continue;
		if (c->broken) {
			soft_unbreak(c);
			if (vcpu_turn_needed(vcpu, until)) {
				vcpu_count_exit(vcpu, COUNTER_exits_kick);
				return RUN_KICK;
			}
			if (c->left > 0)
				continue;
		}
		return RUN_DEADLINE;
	}
}

enum run_exit soft_run(struct vcpu *vcpu, u64 until)
{
	struct soft_cpu *c = soft_cpu(vcpu);
	enum run_exit why;

	/* A loop that waits is sampled by its iterations. */
	if (!soft_spin_inside(c))
		soft_sample_begin(c);
	why = soft_run_loop(vcpu, until);
	if (why != RUN_DEADLINE)
		c->spin.same = 0;
	if (!soft_spin_inside(c))
		soft_sample(c, 0);
	return why;
}
