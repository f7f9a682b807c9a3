// SPDX-License-Identifier: GPL-2.0-only
/*
 * Between the portable x86_state and struct soft_cpu, and what follows from the
 * state: flags in their two halves, mode, translation context, shortcut tables.
 */
#include <string.h>

#include "soft/soft.h"
#include "soft/spin.h"
#include "soft/system.h"

void soft_set_rflags(struct soft_cpu *c, u64 flags)
{
	u64 changed;

	flags = (flags & ~SOFT_FLAGS_ZERO) | X86_EFLAGS_FIXED;
	changed = (c->sysflags ^ flags) & X86_EFLAGS_AC;
	c->sysflags = flags & ~SOFT_ARITH_FLAGS;
	c->lo = (u8)flags;
	c->of = !!(flags & X86_EFLAGS_OF);
	if (changed)
		soft_update_context(c);
}

/* Shortcuts that fit no address, for when every access has to be looked at. Never written: only a hit is marked. */
static const struct soft_sc no_shortcuts[SOFT_NR_SC] = {
	[0 ... SOFT_NR_SC - 1] = { .rtag = SOFT_NO_TAG, .wtag = SOFT_NO_TAG },
};

void soft_update_context(struct soft_cpu *c)
{
	u16 attr = c->seg[SEG_CS].attr;

	if (c->efer & X86_EFER_LMA && attr & SEG_ATTR_L)
		c->mode = MODE_64;
	else
		c->mode = attr & SEG_ATTR_DB ? MODE_32 : MODE_16;
	/* Without SMAP every page is in reach of a supervisor: the context with AC has the right shortcuts. */
	if (c->cpl == 3)
		c->ctx = CTX_USER;
	else if (!(c->cr4 & X86_CR4_SMAP) || c->sysflags & X86_EFLAGS_AC)
		c->ctx = CTX_KERNEL_AC;
	else
		c->ctx = CTX_KERNEL;
	c->align_check = c->cpl == 3 && c->cr0 & X86_CR0_AM && c->sysflags & X86_EFLAGS_AC;
	c->sc = c->align_check ? (struct soft_sc *)(uintptr_t)no_shortcuts : c->sct[c->ctx];
	c->xsc = c->xsct[c->cpl == 3];
	soft_update_fpu(c);
}

/* One list for both directions. */
static const struct { u16 portable, ours; } same[] = {
#define SAME(name)	{ offsetof(struct x86_state, name), offsetof(struct soft_cpu, name) }
	SAME(cr0), SAME(cr2), SAME(cr3), SAME(cr4), SAME(efer), SAME(star), SAME(lstar), SAME(cstar), SAME(sfmask),
	SAME(kernel_gs_base), SAME(tsc_aux), SAME(pat), SAME(sysenter_cs), SAME(sysenter_esp), SAME(sysenter_eip),
#undef SAME
};

void soft_get_state(struct soft_cpu *c, struct x86_state *s)
{
	size_t i;

	memset(s, 0, sizeof(*s));
	memcpy(s->gpr, c->gpr, sizeof(s->gpr));
	s->rip = c->rip;
	s->rflags = soft_rflags(c);
	s->es = c->seg[SEG_ES];
	s->cs = c->seg[SEG_CS];
	s->ss = c->seg[SEG_SS];
	s->ds = c->seg[SEG_DS];
	s->fs = c->seg[SEG_FS];
	s->gs = c->seg[SEG_GS];
	s->tr = c->tr;
	s->ldt = c->ldt;
	s->gdt = c->gdt;
	s->idt = c->idt;
	for (i = 0; i < ARRAY_SIZE(same); i++)
		memcpy((u8 *)s + same[i].portable, (const u8 *)c + same[i].ours, sizeof(u64));
	memcpy(s->fxsave, c->fx, sizeof(s->fxsave));
}

/*
 * Also what INIT does (SDM 3A table 10-1 [9-1]): whatever was on its way to the vCPU
 * is gone, MSRs that x86_state does not have stay, and the TLB goes with CR0.PG.
 */
void soft_set_state(struct soft_cpu *c, const struct x86_state *s)
{
	size_t i;

	memcpy(c->gpr, s->gpr, sizeof(s->gpr));
	c->rip = s->rip;
	c->seg[SEG_ES] = s->es;
	c->seg[SEG_CS] = s->cs;
	c->seg[SEG_SS] = s->ss;
	c->seg[SEG_DS] = s->ds;
	c->seg[SEG_FS] = s->fs;
	c->seg[SEG_GS] = s->gs;
	c->tr = s->tr;
	c->ldt = s->ldt;
	c->gdt = s->gdt;
	c->idt = s->idt;
	for (i = 0; i < ARRAY_SIZE(same); i++)
		memcpy((u8 *)c + same[i].ours, (const u8 *)s + same[i].portable, sizeof(u64));
	memcpy(c->fx, s->fxsave, sizeof(c->fx));
	soft_spin_reset(c);
	memset(c->dr, 0, sizeof(c->dr));
	c->dr[6] = DR6_FIXED;
	c->dr[7] = DR7_FIXED;
	c->shadow = c->want_window = c->irq_pending = c->nmi_pending = c->nmi_masked = false;
	/* In protected mode CPL is the DPL of SS (SDM 3C 25.9 [24.4.1]); in real mode it is 0. */
	soft_set_cpl(c, s->cr0 & X86_CR0_PE ? s->ss.attr >> SEG_ATTR_DPL_SHIFT & 3 : 0);
	soft_set_rflags(c, s->rflags);
	soft_update_context(c);
	soft_flush_all(c, FLUSH_RESET);
}
