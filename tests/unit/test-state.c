// SPDX-License-Identifier: GPL-2.0-only
#include <glib.h>
#include <string.h>

#include "x86/cr.h"
#include "x86/state.h"

/* Attribute bits of a descriptor (SDM 3A 3.4.5). */
#define ATTR_PRESENT	BIT(7)
#define ATTR_CODE_DATA	BIT(4)
#define ATTR_CODE	BIT(3)
#define ATTR_LONG	BIT(13)
#define ATTR_DB		BIT(14)
#define ATTR_GRANULAR	BIT(15)

static void dirty(struct x86_state *s)
{
	memset(s, 0xa5, sizeof(*s));
}

static void test_reset(void)
{
	struct x86_state s;

	dirty(&s);
	x86_state_reset(&s);
	g_assert_cmphex(s.cs.base + s.rip, ==, 0xfffffff0);
	g_assert_cmphex(s.cs.selector, ==, 0xf000);
	g_assert_cmphex(s.cs.limit, ==, 0xffff);
	g_assert_cmphex(s.rflags, ==, 2);
	g_assert_cmphex(s.cr0, ==, 0x60000010);
	g_assert_cmphex(s.cr3 | s.cr4 | s.efer, ==, 0);
	g_assert_cmphex(s.gpr[X86_RAX] | s.gpr[X86_RSP] | s.gpr[X86_R15], ==, 0);
	g_assert_cmphex(s.idt.limit, ==, 0xffff);
	g_assert_cmphex(s.pat, ==, 0x0007040600070406);
	/* MXCSR 1F80H, x87 control word 0040H (SDM 3A table 10-1). */
	g_assert_cmphex(s.fxsave[24] | s.fxsave[25] << 8, ==, 0x1f80);
	g_assert_cmphex(s.fxsave[0], ==, 0x40);
	g_assert_false(s.tr.unusable);
}

static void test_sipi(void)
{
	struct x86_state s;

	for (u32 vector = 0; vector < 256; vector++) {
		dirty(&s);
		x86_state_sipi(&s, (u8)vector, 0x50654);
		g_assert_cmphex(s.rip, ==, 0);
		g_assert_cmphex(s.gpr[X86_RDX], ==, 0x50654);
		g_assert_cmphex(s.cs.base, ==, vector << 12);
		/* Real mode: the base is the selector times 16. */
		g_assert_cmphex((u64)s.cs.selector << 4, ==, s.cs.base);
		g_assert_cmphex(s.cs.limit, ==, 0xffff);
		g_assert_false(s.cr0 & X86_CR0_PE);
		g_assert_false(s.cs.attr & (ATTR_LONG | ATTR_DB));
	}
}

static void test_long(void)
{
	struct x86_state s;

	dirty(&s);
	x86_state_long(&s, 0x1000200, 0x7000, 0x1000, 0x500, 31);
	g_assert_cmphex(s.rip, ==, 0x1000200);
	g_assert_cmphex(s.gpr[X86_RSI], ==, 0x7000);
	g_assert_cmphex(s.cr3, ==, 0x1000);
	g_assert_cmphex(s.cr0 & (X86_CR0_PE | X86_CR0_PG), ==, X86_CR0_PE | X86_CR0_PG);
	g_assert_true(s.cr4 & X86_CR4_PAE);
	g_assert_cmphex(s.efer, ==, X86_EFER_LME | X86_EFER_LMA);
	g_assert_false(s.rflags & X86_EFLAGS_IF);
	/* boot.rst: __BOOT_CS is 0x10, execute/read, __BOOT_DS 0x18, read/write, flat. */
	g_assert_cmphex(s.cs.selector, ==, 0x10);
	g_assert_cmphex(s.cs.attr & (ATTR_LONG | ATTR_DB | ATTR_CODE | ATTR_CODE_DATA | ATTR_PRESENT), ==,
			ATTR_LONG | ATTR_CODE | ATTR_CODE_DATA | ATTR_PRESENT);
	g_assert_cmphex(s.ds.selector, ==, 0x18);
	g_assert_cmphex(s.es.selector, ==, 0x18);
	g_assert_cmphex(s.ss.selector, ==, 0x18);
	g_assert_cmphex(s.ss.base | s.ds.base | s.cs.base, ==, 0);
	g_assert_cmphex(s.ss.limit, ==, 0xffffffff);
	g_assert_cmphex(s.gdt.base, ==, 0x500);
	g_assert_cmphex(s.gdt.limit, ==, 31);
	g_assert_true(s.ldt.unusable);
}

static void test_protected(void)
{
	struct x86_state s;

	dirty(&s);
	x86_state_protected(&s, 0x100020, 0x2badb002, 0x80000, 0x500, 31);
	/* Multiboot 0.6.96 section 3.2. */
	g_assert_cmphex(s.gpr[X86_RAX], ==, 0x2badb002);
	g_assert_cmphex(s.gpr[X86_RBX], ==, 0x80000);
	g_assert_cmphex(s.rip, ==, 0x100020);
	g_assert_true(s.cr0 & X86_CR0_PE);
	g_assert_false(s.cr0 & X86_CR0_PG);
	g_assert_cmphex(s.efer, ==, 0);
	g_assert_false(s.rflags & (X86_EFLAGS_IF | X86_EFLAGS_VM));
	g_assert_cmphex(s.cs.attr & (ATTR_LONG | ATTR_DB | ATTR_GRANULAR | ATTR_CODE), ==,
			ATTR_DB | ATTR_GRANULAR | ATTR_CODE);
	g_assert_cmphex(s.cs.limit, ==, 0xffffffff);
	g_assert_cmphex(s.ds.limit, ==, 0xffffffff);
	g_assert_false(s.ds.attr & ATTR_CODE);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/state/reset", test_reset);
	g_test_add_func("/state/sipi", test_sipi);
	g_test_add_func("/state/long", test_long);
	g_test_add_func("/state/protected", test_protected);
	return g_test_run();
}
