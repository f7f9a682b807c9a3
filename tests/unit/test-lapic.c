// SPDX-License-Identifier: GPL-2.0-only
/* The local APIC as a state machine; every expectation is the SDM's (vol. 3A chapter 10). */
#include <glib.h>
#include <string.h>

#include "lapic-fixture.h"

static void test_power_up(void)
{
	struct lapic l;

	lapic_init(&l, 5, true, false, false, 0);
	g_assert_cmphex(rdmsr(&l, MSR_IA32_APIC_BASE, 0), ==, 0xfee00900);
	g_assert_cmphex(lapic_read(&l, APIC_ID, 0), ==, 5u << 24);
	g_assert_cmphex(lapic_read(&l, APIC_VERSION, 0) & 0xff, ==, 0x14);
	g_assert_cmphex(lapic_read(&l, APIC_VERSION, 0) >> 16 & 0xff, ==, 6);
	g_assert_cmphex(lapic_read(&l, APIC_SVR, 0), ==, 0xff);
	g_assert_cmphex(lapic_read(&l, APIC_DFR, 0), ==, 0xffffffff);
	g_assert_cmphex(lapic_read(&l, APIC_LDR, 0), ==, 0);
	g_assert_cmphex(lapic_read(&l, APIC_LVT_TIMER, 0), ==, 0x10000);
	g_assert_cmphex(lapic_read(&l, APIC_LVT_LINT0, 0), ==, 0x10000);
	g_assert_cmphex(lapic_read(&l, APIC_LVT_ERROR, 0), ==, 0x10000);
	g_assert_cmpint(lapic_pending(&l), ==, -1);
	g_assert_true(lapic_timer_due(&l) == CLOCK_NEVER);
	/* Software disabled after reset: fixed interrupts are dropped. */
	g_assert_false(lapic_set_irr(&l, 0x40, false));
	lapic_init(&l, 6, false, false, false, 0);
	g_assert_cmphex(rdmsr(&l, MSR_IA32_APIC_BASE, 0), ==, 0xfee00800);
}

static void test_priority(void)
{
	struct lapic l;

	fresh(&l, 0);
	g_assert_true(lapic_set_irr(&l, 0x41, false));
	g_assert_true(lapic_set_irr(&l, 0x93, false));
	g_assert_true(lapic_set_irr(&l, 0x92, false));
	g_assert_true(lapic_has_work(&l));
	/* Highest vector first; accepting moves it from IRR to ISR. */
	g_assert_cmphex(lapic_pending(&l), ==, 0x93);
	g_assert_cmphex(lapic_read(&l, APIC_IRR + 0x40, 0), ==, 0x000c0000);
	lapic_accept(&l, 0x93);
	g_assert_cmphex(lapic_read(&l, APIC_IRR + 0x40, 0), ==, 0x00040000);
	g_assert_cmphex(lapic_read(&l, APIC_ISR + 0x40, 0), ==, 0x00080000);
	g_assert_cmphex(lapic_read(&l, APIC_PPR, 0), ==, 0x90);
	/* The same class waits, a higher one nests. */
	g_assert_cmpint(lapic_pending(&l), ==, -1);
	g_assert_false(lapic_has_work(&l));
	lapic_set_irr(&l, 0xa0, false);
	g_assert_cmphex(lapic_pending(&l), ==, 0xa0);
	lapic_accept(&l, 0xa0);
	g_assert_cmphex(lapic_read(&l, APIC_PPR, 0), ==, 0xa0);
	/* EOI ends the highest in service. */
	g_assert_cmpuint(todo(&l, APIC_EOI, 0, 0), ==, LAPIC_TODO_ACK);
	g_assert_cmphex(lapic_read(&l, APIC_PPR, 0), ==, 0x90);
	g_assert_cmpint(lapic_pending(&l), ==, -1);
	todo(&l, APIC_EOI, 0, 0);
	g_assert_cmphex(lapic_pending(&l), ==, 0x92);
	lapic_accept(&l, 0x92);
	todo(&l, APIC_EOI, 0, 0);
	g_assert_cmphex(lapic_pending(&l), ==, 0x41);
	lapic_accept(&l, 0x41);
	todo(&l, APIC_EOI, 0, 0);
	/* Nothing left; one EOI too many changes nothing. */
	g_assert_cmpuint(todo(&l, APIC_EOI, 0, 0), ==, LAPIC_TODO_ACK);
	g_assert_cmphex(lapic_read(&l, APIC_PPR, 0), ==, 0);
	g_assert_cmpint(lapic_pending(&l), ==, -1);
}

/* One more of a vector in service waits in IRR; IRR holds one of each. */
static void test_same_vector(void)
{
	struct lapic l;

	fresh(&l, 0);
	lapic_set_irr(&l, 0x50, false);
	lapic_accept(&l, 0x50);
	lapic_set_irr(&l, 0x50, false);
	lapic_set_irr(&l, 0x50, false);
	g_assert_cmpint(lapic_pending(&l), ==, -1);
	todo(&l, APIC_EOI, 0, 0);
	g_assert_cmphex(lapic_pending(&l), ==, 0x50);
	lapic_accept(&l, 0x50);
	todo(&l, APIC_EOI, 0, 0);
	g_assert_cmpint(lapic_pending(&l), ==, -1);
}

static void test_every_vector(void)
{
	struct lapic l;
	int v;

	fresh(&l, 0);
	for (v = 16; v < 256; v++)
		g_assert_true(lapic_set_irr(&l, v, false));
	/* One of each class nests; then unwind. */
	for (v = 0x1f; v < 256; v += 16)
		lapic_set_irr(&l, v, false);
	g_assert_cmpint(lapic_pending(&l), ==, 0xff);
	for (v = 255; v >= 16; v--) {
		g_assert_cmpint(lapic_pending(&l), ==, v);
		lapic_accept(&l, v);
		g_assert_cmpint(lapic_pending(&l), ==, -1);
		todo(&l, APIC_EOI, 0, 0);
	}
	g_assert_cmpint(lapic_pending(&l), ==, -1);
}

static void test_tpr(void)
{
	struct lapic l;

	fresh(&l, 0);
	g_assert_cmpuint(todo(&l, APIC_TPR, 0x4f, 0), ==, LAPIC_TODO_TPR);
	g_assert_cmphex(lapic_read(&l, APIC_TPR, 0), ==, 0x4f);
	g_assert_cmphex(lapic_cr8(&l), ==, 4);
	/* PPR is the TPR, all eight bits of it, while nothing higher is in service. */
	g_assert_cmphex(lapic_read(&l, APIC_PPR, 0), ==, 0x4f);
	lapic_set_irr(&l, 0x4e, false);
	g_assert_cmpint(lapic_pending(&l), ==, -1);
	lapic_set_irr(&l, 0x50, false);
	g_assert_cmphex(lapic_pending(&l), ==, 0x50);
	lapic_accept(&l, 0x50);
	g_assert_cmphex(lapic_read(&l, APIC_PPR, 0), ==, 0x50);
	/* Same class in both: the TPR's own value, by the SDM's formula. */
	todo(&l, APIC_TPR, 0x53, 0);
	g_assert_cmphex(lapic_read(&l, APIC_PPR, 0), ==, 0x53);
	todo(&l, APIC_EOI, 0, 0);
	lapic_set_cr8(&l, 15);
	g_assert_cmphex(lapic_read(&l, APIC_TPR, 0), ==, 0xf0);
	lapic_set_irr(&l, 0xff, false);
	g_assert_cmpint(lapic_pending(&l), ==, -1);
	lapic_set_cr8(&l, 3);
	g_assert_cmphex(lapic_pending(&l), ==, 0xff);
	lapic_accept(&l, 0xff);
	todo(&l, APIC_EOI, 0, 0);
	g_assert_cmphex(lapic_pending(&l), ==, 0x4e);
	todo(&l, APIC_TPR, 0xffffff10, 0);
	g_assert_cmphex(lapic_read(&l, APIC_TPR, 0), ==, 0x10);
}

/* TMR follows the last message of a vector; a level EOI is broadcast unless suppressed. */
static void test_level_eoi(void)
{
	struct lapic_effect effect;
	struct lapic l;

	fresh(&l, 0);
	lapic_set_irr(&l, 0x61, true);
	g_assert_cmphex(lapic_read(&l, APIC_TMR + 0x30, 0), ==, 2);
	lapic_accept(&l, 0x61);
	lapic_write(&l, APIC_EOI, 0, 0, &effect);
	g_assert_cmpuint(effect.todo, ==, LAPIC_TODO_ACK | LAPIC_TODO_EOI);
	g_assert_cmphex(effect.eoi_vector, ==, 0x61);
	lapic_set_irr(&l, 0x61, false);
	g_assert_cmphex(lapic_read(&l, APIC_TMR + 0x30, 0), ==, 0);
	lapic_accept(&l, 0x61);
	g_assert_cmpuint(todo(&l, APIC_EOI, 0, 0), ==, LAPIC_TODO_ACK);
	todo(&l, APIC_SVR, 0x1ff | APIC_SVR_DIRECTED, 0);
	lapic_set_irr(&l, 0x61, true);
	lapic_accept(&l, 0x61);
	g_assert_cmpuint(todo(&l, APIC_EOI, 0, 0), ==, LAPIC_TODO_ACK);
	/* Nested: an edge one on top of a level one; each EOI is its own. */
	todo(&l, APIC_SVR, 0x1ff, 0);
	lapic_set_irr(&l, 0x61, true);
	lapic_accept(&l, 0x61);
	lapic_set_irr(&l, 0x71, false);
	lapic_accept(&l, 0x71);
	g_assert_cmpuint(todo(&l, APIC_EOI, 0, 0), ==, LAPIC_TODO_ACK);
	g_assert_cmpuint(todo(&l, APIC_EOI, 0, 0), ==, LAPIC_TODO_ACK | LAPIC_TODO_EOI);
}

static void test_icr(void)
{
	struct lapic_effect e;
	struct lapic l;
	u32 dm;

	fresh(&l, 3);
	g_assert_cmpuint(todo(&l, APIC_ICR2, 0x2affffff, 0), ==, 0);
	lapic_write(&l, APIC_ICR, 0x4000 | 0xfb, 0, &e);
	g_assert_cmpuint(e.todo, ==, LAPIC_TODO_SEND);
	g_assert_cmphex(e.msg.dest, ==, 0x2a);
	g_assert_cmphex(e.msg.vector, ==, 0xfb);
	g_assert_cmpuint(e.msg.delivery, ==, APIC_DM_FIXED);
	g_assert_cmpuint(e.msg.shorthand, ==, APIC_SH_NONE);
	g_assert_false(e.msg.logical);
	g_assert_false(e.msg.level);
	g_assert_true(e.msg.assert);
	g_assert_false(e.msg.x2apic_dest);
	/* Delivery status always reads idle; reserved bits do not stick. */
	g_assert_cmphex(lapic_read(&l, APIC_ICR, 0), ==, 0x40fb);
	g_assert_cmphex(lapic_read(&l, APIC_ICR2, 0), ==, 0x2a000000);
	lapic_write(&l, APIC_ICR, 0xffffffff & ~0x700u, 0, &e);
	g_assert_cmphex(lapic_read(&l, APIC_ICR, 0), ==, 0xcc8ff);
	g_assert_cmpuint(e.msg.shorthand, ==, APIC_SH_OTHERS);
	g_assert_true(e.msg.logical);
	g_assert_true(e.msg.level);
	/* INIT, its de-assert, SIPI as Linux sends them. */
	lapic_write(&l, APIC_ICR, 0xc500, 0, &e);
	g_assert_cmpuint(e.todo, ==, LAPIC_TODO_SEND);
	g_assert_cmpuint(e.msg.delivery, ==, APIC_DM_INIT);
	g_assert_true(e.msg.assert);
	lapic_write(&l, APIC_ICR, 0x8500, 0, &e);
	g_assert_cmpuint(e.msg.delivery, ==, APIC_DM_INIT);
	g_assert_false(e.msg.assert);
	lapic_write(&l, APIC_ICR, 0x0609, 0, &e);
	g_assert_cmpuint(e.msg.delivery, ==, APIC_DM_SIPI);
	g_assert_cmphex(e.msg.vector, ==, 9);
	lapic_write(&l, APIC_ICR, 0x4400, 0, &e);
	g_assert_cmpuint(e.msg.delivery, ==, APIC_DM_NMI);
	g_assert_cmpuint(e.todo, ==, LAPIC_TODO_SEND);
	for (dm = 0; dm < 8; dm++) {
		bool sends = dm == 0 || dm == 1 || dm == 4 || dm == 5 || dm == 6;

		lapic_write(&l, APIC_ICR, dm << 8 | 0x4055, 0, &e);
		g_assert_cmpuint(e.todo, ==, sends ? LAPIC_TODO_SEND : 0);
	}
}

static void test_esr(void)
{
	struct lapic l;

	fresh(&l, 0);
	todo(&l, APIC_LVT_ERROR, 0xfe, 0);
	/* Send with an illegal vector: not sent, one interrupt, visible after a write of ESR. */
	g_assert_cmpuint(todo(&l, APIC_ICR, 0x400f, 0), ==, 0);
	g_assert_cmphex(lapic_pending(&l), ==, 0xfe);
	g_assert_cmphex(lapic_read(&l, APIC_ESR, 0), ==, 0);
	lapic_accept(&l, 0xfe);
	todo(&l, APIC_EOI, 0, 0);
	todo(&l, APIC_ICR, 0x400f, 0);
	g_assert_cmpint(lapic_pending(&l), ==, -1);
	todo(&l, APIC_ESR, 0, 0);
	g_assert_cmphex(lapic_read(&l, APIC_ESR, 0), ==, APIC_ESR_SEND_ILLEGAL);
	todo(&l, APIC_ESR, 0, 0);
	g_assert_cmphex(lapic_read(&l, APIC_ESR, 0), ==, 0);
	/* Received, and from the LVT. */
	g_assert_false(lapic_set_irr(&l, 15, false));
	todo(&l, APIC_ESR, 0, 0);
	g_assert_cmphex(lapic_read(&l, APIC_ESR, 0), ==, APIC_ESR_RECV_ILLEGAL);
	todo(&l, APIC_LVT_TIMER, 0x0f, 0);
	todo(&l, APIC_TMICT, 10, 0);
	g_assert_cmpint(lapic_timer_fire(&l, 1000), ==, -1);
	todo(&l, APIC_ESR, 0, 0);
	g_assert_cmphex(lapic_read(&l, APIC_ESR, 0), ==, APIC_ESR_RECV_ILLEGAL);
	/* Reserved registers, read or written; read-only ones are no error. */
	g_assert_cmphex(lapic_read(&l, 0x040, 0), ==, 0);
	todo(&l, APIC_ESR, 0, 0);
	g_assert_cmphex(lapic_read(&l, APIC_ESR, 0), ==, APIC_ESR_REGISTER);
	todo(&l, 0x3a0, 1, 0);
	todo(&l, APIC_ESR, 0, 0);
	g_assert_cmphex(lapic_read(&l, APIC_ESR, 0), ==, APIC_ESR_REGISTER);
	todo(&l, APIC_VERSION, 1, 0);
	todo(&l, APIC_PPR, 1, 0);
	todo(&l, APIC_ISR, ~0u, 0);
	todo(&l, APIC_TMCCT, 1, 0);
	todo(&l, APIC_ESR, 0, 0);
	g_assert_cmphex(lapic_read(&l, APIC_ESR, 0), ==, 0);
	g_assert_cmphex(lapic_read(&l, APIC_ISR, 0), ==, 0);
	/* An error entry whose own vector is illegal ends after one more error. */
	todo(&l, APIC_LVT_ERROR, 0x01, 0);
	lapic_read(&l, 0x040, 0);
	todo(&l, APIC_ESR, 0, 0);
	g_assert_cmphex(lapic_read(&l, APIC_ESR, 0), ==, APIC_ESR_REGISTER | APIC_ESR_RECV_ILLEGAL);
}

static void test_software_disable(void)
{
	struct lapic l;

	fresh(&l, 0);
	todo(&l, APIC_TDCR, 0xb, 0);
	todo(&l, APIC_LVT_TIMER, 0x40 | APIC_LVT_PERIODIC, 0);
	todo(&l, APIC_LVT_LINT1, 0x400, 0);
	todo(&l, APIC_TMICT, 1000000, 0);
	lapic_set_irr(&l, 0x55, false);
	g_assert_cmpuint(todo(&l, APIC_SVR, 0xfe, 10), ==, LAPIC_TODO_TIMER);
	/* All LVT entries masked, and they stay so. */
	g_assert_cmphex(lapic_read(&l, APIC_LVT_TIMER, 10), ==, 0x30040);
	g_assert_cmphex(lapic_read(&l, APIC_LVT_LINT1, 10), ==, 0x10400);
	todo(&l, APIC_LVT_LINT1, 0x400, 10);
	g_assert_cmphex(lapic_read(&l, APIC_LVT_LINT1, 10), ==, 0x10400);
	todo(&l, APIC_LVT_TIMER, 0x41, 10);
	g_assert_cmphex(lapic_read(&l, APIC_LVT_TIMER, 10), ==, 0x10041);
	g_assert_true(lapic_timer_due(&l) == CLOCK_NEVER);
	/* What was accepted is still handled; nothing new is. */
	g_assert_false(lapic_set_irr(&l, 0x66, false));
	g_assert_false(lapic_accepts_fixed(&l));
	g_assert_true(lapic_listens(&l));
	g_assert_cmphex(lapic_pending(&l), ==, 0x55);
	lapic_accept(&l, 0x55);
	todo(&l, APIC_EOI, 0, 10);
	/* It can still send (an INIT to others, say). */
	g_assert_cmpuint(todo(&l, APIC_ICR, 0xc4500, 10), ==, LAPIC_TODO_SEND);
	todo(&l, APIC_SVR, 0x1fe, 10);
	g_assert_cmphex(lapic_read(&l, APIC_SVR, 10), ==, 0x1fe);
	g_assert_cmphex(lapic_read(&l, APIC_LVT_LINT1, 10), ==, 0x10400);
	g_assert_true(lapic_set_irr(&l, 0x66, false));
}

static void test_global_disable(void)
{
	struct lapic l;

	fresh(&l, 7);
	todo(&l, APIC_ID, 0x21000000, 0);
	lapic_set_irr(&l, 0x55, false);
	g_assert_true(wrmsr(&l, MSR_IA32_APIC_BASE, APIC_BASE_DEFAULT, 0));
	g_assert_false(lapic_listens(&l));
	g_assert_cmpint(lapic_pending(&l), ==, -1);
	g_assert_cmphex(lapic_read(&l, APIC_ID, 0), ==, 0xffffffff);
	g_assert_cmpuint(todo(&l, APIC_ICR, 0x40fb, 0), ==, 0);
	g_assert_false(lapic_match(&l, &(struct apic_msg){ .dest = 0xff }));
	g_assert_true(wrmsr(&l, MSR_IA32_APIC_BASE, APIC_BASE_DEFAULT | APIC_BASE_ENABLE, 0));
	g_assert_cmphex(lapic_read(&l, APIC_ID, 0), ==, 7u << 24);
	g_assert_cmphex(lapic_read(&l, APIC_SVR, 0), ==, 0xff);
}

static void test_init_reset(void)
{
	struct lapic l;

	fresh(&l, 9);
	todo(&l, APIC_ID, 0x21000000, 0);
	todo(&l, APIC_LDR, 0x02000000, 0);
	todo(&l, APIC_TPR, 0x30, 0);
	todo(&l, APIC_LVT_TIMER, 0x40, 0);
	todo(&l, APIC_TMICT, 10000, 0);
	todo(&l, APIC_ICR, 0x40fb, 0);
	lapic_set_irr(&l, 0x55, true);
	lapic_accept(&l, 0x55);
	lapic_reset(&l);
	g_assert_cmphex(lapic_read(&l, APIC_ID, 0), ==, 0x21000000);
	g_assert_cmphex(rdmsr(&l, MSR_IA32_APIC_BASE, 0), ==, 0xfee00800);
	g_assert_cmphex(lapic_read(&l, APIC_LDR, 0), ==, 0);
	g_assert_cmphex(lapic_read(&l, APIC_TPR, 0), ==, 0);
	g_assert_cmphex(lapic_read(&l, APIC_SVR, 0), ==, 0xff);
	g_assert_cmphex(lapic_read(&l, APIC_ICR, 0), ==, 0);
	g_assert_cmphex(lapic_read(&l, APIC_ISR + 0x20, 0), ==, 0);
	g_assert_cmphex(lapic_read(&l, APIC_TMR + 0x20, 0), ==, 0);
	g_assert_true(lapic_timer_due(&l) == CLOCK_NEVER);
	g_assert_cmpint(lapic_timer_fire(&l, 100000), ==, -1);
	/* In x2APIC mode it stays there. */
	fresh_x2(&l, 0x123);
	lapic_reset(&l);
	g_assert_cmphex(rdmsr(&l, X2(APIC_ID), 0), ==, 0x123);
	g_assert_cmphex(rdmsr(&l, X2(APIC_LDR), 0), ==, 0x00120008);
	g_assert_cmphex(rdmsr(&l, X2(APIC_SVR), 0), ==, 0xff);
}

static void test_spurious(void)
{
	struct lapic l;

	/* An interrupt that TPR hides between request and acknowledge is just not pending: no spurious vector. */
	fresh(&l, 0);
	lapic_set_irr(&l, 0x45, false);
	g_assert_cmphex(lapic_pending(&l), ==, 0x45);
	todo(&l, APIC_TPR, 0x50, 0);
	g_assert_cmpint(lapic_pending(&l), ==, -1);
	g_assert_cmphex(lapic_read(&l, APIC_ISR + 0x20, 0), ==, 0);
	todo(&l, APIC_SVR, 0xffffffff, 0);
	g_assert_cmphex(lapic_read(&l, APIC_SVR, 0), ==, 0x13ff);
}

static void test_match_xapic(void)
{
	struct lapic l;
#define MATCH(...)	lapic_match(&l, &(struct apic_msg){ __VA_ARGS__ })

	fresh(&l, 5);
	g_assert_true(MATCH(.dest = 5));
	g_assert_false(MATCH(.dest = 4));
	g_assert_true(MATCH(.dest = 0xff));
	g_assert_true(MATCH(.dest = 0xff, .logical = true));
	/* From an x2APIC sender 0xff is an id like others, and the id is 32 bits wide. */
	g_assert_false(MATCH(.dest = 0xff, .x2apic_dest = true));
	g_assert_true(MATCH(.dest = 0xffffffff, .x2apic_dest = true));
	g_assert_true(MATCH(.dest = 5, .x2apic_dest = true));
	g_assert_false(MATCH(.dest = 0x105, .x2apic_dest = true));
	/* LDR 0: no logical address. */
	g_assert_false(MATCH(.dest = 0x01, .logical = true));
	/* Flat: any common bit. */
	todo(&l, APIC_LDR, 0x20ffffff, 0);
	g_assert_cmphex(lapic_read(&l, APIC_LDR, 0), ==, 0x20000000);
	g_assert_true(MATCH(.dest = 0x20, .logical = true));
	g_assert_true(MATCH(.dest = 0x31, .logical = true));
	g_assert_false(MATCH(.dest = 0x10, .logical = true));
	g_assert_false(MATCH(.dest = 0, .logical = true));
	g_assert_false(MATCH(.dest = 0x120, .logical = true, .x2apic_dest = true));
	/* Cluster: cluster in the high nibble, members in the low one. */
	todo(&l, APIC_DFR, 0x0fffffff, 0);
	todo(&l, APIC_LDR, 0x24000000, 0);
	g_assert_true(MATCH(.dest = 0x24, .logical = true));
	g_assert_true(MATCH(.dest = 0x2f, .logical = true));
	g_assert_false(MATCH(.dest = 0x34, .logical = true));
	g_assert_false(MATCH(.dest = 0x21, .logical = true));
	g_assert_true(MATCH(.dest = 0xff, .logical = true));
	/* A reserved model; only the top four bits of DFR can be written. */
	todo(&l, APIC_DFR, 0x50000000, 0);
	g_assert_cmphex(lapic_read(&l, APIC_DFR, 0), ==, 0x5fffffff);
	g_assert_false(MATCH(.dest = 0x24, .logical = true));
	/* A guest may renumber. */
	todo(&l, APIC_ID, 0x77000000, 0);
	g_assert_true(MATCH(.dest = 0x77));
	g_assert_false(MATCH(.dest = 5));
}

static void test_match_x2apic(void)
{
	struct lapic l;

	fresh_x2(&l, 0x123);
	g_assert_true(MATCH(.dest = 0x123, .x2apic_dest = true));
	g_assert_false(MATCH(.dest = 0x23, .x2apic_dest = true));
	g_assert_true(MATCH(.dest = 0xffffffff, .x2apic_dest = true));
	g_assert_false(MATCH(.dest = 0xff, .x2apic_dest = true));
	g_assert_true(MATCH(.dest = 0xff));
	/* An MSI with the extended destination bits. */
	g_assert_true(MATCH(.dest = 0x123));
	/* Cluster 0x12, member 3. */
	g_assert_true(MATCH(.dest = 0x00120008, .logical = true, .x2apic_dest = true));
	g_assert_true(MATCH(.dest = 0x0012ffff, .logical = true, .x2apic_dest = true));
	g_assert_false(MATCH(.dest = 0x00120007, .logical = true, .x2apic_dest = true));
	g_assert_false(MATCH(.dest = 0x00130008, .logical = true, .x2apic_dest = true));
	g_assert_true(MATCH(.dest = 0xffffffff, .logical = true, .x2apic_dest = true));
#undef MATCH
}

static void test_x2apic_transitions(void)
{
	const u64 addr = APIC_BASE_DEFAULT, en = APIC_BASE_ENABLE, ext = APIC_BASE_X2APIC;
	struct lapic l;

	lapic_init(&l, 0x12, false, true, false, 0);
	g_assert_false(wrmsr(&l, MSR_IA32_APIC_BASE, addr | ext, 0));
	/* xAPIC MSRs do not exist yet. */
	g_assert_false(wrmsr(&l, X2(APIC_TPR), 0, 0));
	todo(&l, APIC_SVR, 0x1f3, 0);
	g_assert_true(wrmsr(&l, MSR_IA32_APIC_BASE, addr | en | ext, 0));
	/* State is kept, the registers of xAPIC mode are gone. */
	g_assert_cmphex(rdmsr(&l, X2(APIC_SVR), 0), ==, 0x1f3);
	g_assert_cmphex(rdmsr(&l, X2(APIC_ID), 0), ==, 0x12);
	g_assert_cmphex(rdmsr(&l, X2(APIC_LDR), 0), ==, 0x00010004);
	g_assert_cmphex(lapic_read(&l, APIC_SVR, 0), ==, 0xffffffff);
	todo(&l, APIC_TPR, 0x50, 0);
	g_assert_cmphex(rdmsr(&l, X2(APIC_TPR), 0), ==, 0);
	/* Not back to xAPIC, nor to the invalid state. */
	g_assert_false(wrmsr(&l, MSR_IA32_APIC_BASE, addr | en, 0));
	g_assert_false(wrmsr(&l, MSR_IA32_APIC_BASE, addr | ext, 0));
	g_assert_true(wrmsr(&l, MSR_IA32_APIC_BASE, addr | en | ext, 0));
	g_assert_true(wrmsr(&l, MSR_IA32_APIC_BASE, addr, 0));
	/* Disabled: not straight into x2APIC. */
	g_assert_false(wrmsr(&l, MSR_IA32_APIC_BASE, addr | en | ext, 0));
	g_assert_true(wrmsr(&l, MSR_IA32_APIC_BASE, addr | en, 0));
	g_assert_cmphex(lapic_read(&l, APIC_SVR, 0), ==, 0xff);
	g_assert_cmphex(lapic_read(&l, APIC_ID, 0), ==, 0x12000000);
	/* Reserved bits. */
	g_assert_false(wrmsr(&l, MSR_IA32_APIC_BASE, addr | en | 1, 0));
	g_assert_false(wrmsr(&l, MSR_IA32_APIC_BASE, addr | en | BIT(9), 0));
	g_assert_false(wrmsr(&l, MSR_IA32_APIC_BASE, addr | en | 1ull << 52, 0));
	g_assert_cmphex(rdmsr(&l, MSR_IA32_APIC_BASE, 0), ==, addr | en);
	/* Not offered. */
	lapic_init(&l, 0, true, false, false, 0);
	g_assert_false(wrmsr(&l, MSR_IA32_APIC_BASE, addr | en | ext, 0));
}

static void test_x2apic_faults(void)
{
	static const u32 read_only[] = {
		APIC_ID, APIC_VERSION, APIC_PPR, APIC_LDR, APIC_ISR, APIC_TMR + 0x70, APIC_IRR, APIC_TMCCT,
	};
	static const u32 absent[] = { 0x000, 0x040, APIC_APR, APIC_RRD, APIC_DFR, APIC_ICR2, 0x3a0, 0x400, 0xff0 };
	struct lapic l;
	u64 value;
	u32 i;

	fresh_x2(&l, 1);
	for (i = 0; i < ARRAY_SIZE(read_only); i++) {
		g_assert_true(lapic_msr_read(&l, X2(read_only[i]), 0, &value));
		g_assert_false(wrmsr(&l, X2(read_only[i]), 0, 0));
	}
	for (i = 0; i < ARRAY_SIZE(absent); i++) {
		g_assert_false(lapic_msr_read(&l, X2(absent[i]), 0, &value));
		g_assert_false(wrmsr(&l, X2(absent[i]), 0, 0));
	}
	/* Write only. */
	g_assert_false(lapic_msr_read(&l, X2(APIC_EOI), 0, &value));
	g_assert_false(lapic_msr_read(&l, X2(APIC_SELF_IPI), 0, &value));
	/* Not 0 where only 0 is allowed; reserved bits. */
	g_assert_true(wrmsr(&l, X2(APIC_EOI), 0, 0));
	g_assert_false(wrmsr(&l, X2(APIC_EOI), 1, 0));
	g_assert_true(wrmsr(&l, X2(APIC_ESR), 0, 0));
	g_assert_false(wrmsr(&l, X2(APIC_ESR), 1, 0));
	g_assert_false(wrmsr(&l, X2(APIC_TPR), 0x100, 0));
	g_assert_false(wrmsr(&l, X2(APIC_TPR), 1ull << 32, 0));
	g_assert_false(wrmsr(&l, X2(APIC_TDCR), 4, 0));
	g_assert_false(wrmsr(&l, X2(APIC_TMICT), 1ull << 32, 0));
	g_assert_false(wrmsr(&l, X2(APIC_LVT_TIMER), 0x10840, 0));
	g_assert_false(wrmsr(&l, X2(APIC_ICR), 1 << 20 | 0xfb, 0));
	g_assert_false(wrmsr(&l, X2(APIC_ICR), 1 << 13 | 0xfb, 0));
	g_assert_false(wrmsr(&l, X2(APIC_SELF_IPI), 0x100, 0));
	g_assert_false(wrmsr(&l, X2(APIC_SVR), 0x3ff | 1 << 10, 0));
	/* Neither logs an error. */
	g_assert_cmphex(rdmsr(&l, X2(APIC_ESR), 0), ==, 0);
	g_assert_cmphex(l.esr_pending, ==, 0);
	g_assert_false(lapic_msr_read(&l, 0x10, 0, &value));
	g_assert_false(wrmsr(&l, 0x900, 0, 0));
}

static void test_x2apic_send(void)
{
	struct lapic_effect e;
	struct lapic l;

	fresh_x2(&l, 1);
	g_assert_true(lapic_msr_write(&l, X2(APIC_ICR), 0x12300000000ull << 8 | 0x48fb, 0, &e));
	g_assert_cmpuint(e.todo, ==, LAPIC_TODO_SEND);
	g_assert_cmphex(e.msg.dest, ==, 0x12300);
	g_assert_true(e.msg.x2apic_dest);
	g_assert_true(e.msg.logical);
	g_assert_cmphex(rdmsr(&l, X2(APIC_ICR), 0), ==, 0x12300000000ull << 8 | 0x48fb);
	g_assert_true(lapic_msr_write(&l, X2(APIC_SELF_IPI), 0x66, 0, &e));
	g_assert_cmpuint(e.todo, ==, LAPIC_TODO_SEND);
	g_assert_cmpuint(e.msg.shorthand, ==, APIC_SH_SELF);
	g_assert_cmphex(e.msg.vector, ==, 0x66);
	g_assert_cmphex(rdmsr(&l, X2(APIC_ICR), 0), ==, 0x12300000000ull << 8 | 0x48fb);
	/* Illegal vectors. */
	g_assert_true(lapic_msr_write(&l, X2(APIC_SELF_IPI), 3, 0, &e));
	g_assert_cmpuint(e.todo, ==, 0);
	g_assert_true(wrmsr(&l, X2(APIC_ESR), 0, 0));
	g_assert_cmphex(rdmsr(&l, X2(APIC_ESR), 0), ==, APIC_ESR_RECV_ILLEGAL);
	g_assert_true(lapic_msr_write(&l, X2(APIC_ICR), 0x4003, 0, &e));
	g_assert_cmpuint(e.todo, ==, 0);
	/* The timer works the same. */
	g_assert_true(lapic_msr_write(&l, X2(APIC_TDCR), 0xb, 0, &e));
	g_assert_true(lapic_msr_write(&l, X2(APIC_LVT_TIMER), 0x40, 0, &e));
	g_assert_true(lapic_msr_write(&l, X2(APIC_TMICT), 1000, 0, &e));
	g_assert_cmpuint(e.todo, ==, LAPIC_TODO_TIMER);
	g_assert_cmpuint(rdmsr(&l, X2(APIC_TMCCT), 400), ==, 600);
	g_assert_true(lapic_msr_write(&l, MSR_IA32_APIC_BASE, APIC_BASE_DEFAULT, 500, &e));
	g_assert_cmpuint(e.todo, ==, LAPIC_TODO_TIMER);
	g_assert_true(lapic_timer_due(&l) == CLOCK_NEVER);
}

/* Bytes of a register, and the part of each sixteen that holds none. */
static void test_widths(void)
{
	struct lapic l;

	fresh(&l, 0);
	todo(&l, APIC_LDR, 0xab000000, 0);
	g_assert_cmphex(lapic_read(&l, APIC_LDR + 3, 0), ==, 0xab);
	g_assert_cmphex(lapic_read(&l, APIC_LDR + 2, 0), ==, 0xab00);
	g_assert_cmphex(lapic_read(&l, APIC_LDR + 4, 0), ==, 0);
	g_assert_cmphex(lapic_read(&l, 0xfffffff0, 0), ==, 0xffffffff);
	todo(&l, APIC_LDR + 4, 0, 0);
	todo(&l, APIC_LDR + 1, 0, 0);
	g_assert_cmphex(lapic_read(&l, APIC_LDR, 0), ==, 0xab000000);
	g_assert_cmphex(l.esr_pending, ==, 0);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/lapic/power-up", test_power_up);
	g_test_add_func("/lapic/priority", test_priority);
	g_test_add_func("/lapic/same-vector", test_same_vector);
	g_test_add_func("/lapic/every-vector", test_every_vector);
	g_test_add_func("/lapic/tpr", test_tpr);
	g_test_add_func("/lapic/level-eoi", test_level_eoi);
	g_test_add_func("/lapic/icr", test_icr);
	g_test_add_func("/lapic/esr", test_esr);
	g_test_add_func("/lapic/software-disable", test_software_disable);
	g_test_add_func("/lapic/global-disable", test_global_disable);
	g_test_add_func("/lapic/init-reset", test_init_reset);
	g_test_add_func("/lapic/spurious", test_spurious);
	g_test_add_func("/lapic/match/xapic", test_match_xapic);
	g_test_add_func("/lapic/match/x2apic", test_match_x2apic);
	g_test_add_func("/lapic/x2apic/transitions", test_x2apic_transitions);
	g_test_add_func("/lapic/x2apic/faults", test_x2apic_faults);
	g_test_add_func("/lapic/x2apic/send", test_x2apic_send);
	g_test_add_func("/lapic/widths", test_widths);
	return g_test_run();
}
