// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where Intel's CPUs and AMD's are known to differ, and the soft engine does as AMD's: on an Intel host such a difference is counted
 * and not an error. Each kind is known by its instruction and by what differs, seen on an Intel Xeon (Skylake or later) beside an
 * EPYC:
 *
 *   F3 and REX.B before 90    Intel exchanges r8 and rax, AMD takes it for PAUSE
 *   an x87 store              Intel looks for its own exceptions before it looks at memory, AMD behind that; FBSTP over the end
 *                             of a page writes what is before it
 *   REP SCAS, CMPS            at a fault Intel has the flags from before the instruction, AMD those of the last iteration
 *   REP with 32-bit addresses Intel clears the upper halves of the registers even with a count of 0
 *   CALL to no address        Intel writes the return address before it faults
 */
#include <cpuid.h>
#include <string.h>

#include "generate.h"

static bool host_is_intel(void)
{
	u32 eax, ebx, ecx, edx;

	return __get_cpuid(0, &eax, &ebx, &ecx, &edx) && ebx == signature_INTEL_ebx && ecx == signature_INTEL_ecx;
}

static bool is_prefix(u8 byte)
{
	return strchr("\x66\x67\xf2\xf3\xf0\x26\x2e\x36\x3e\x64\x65", byte) && byte;
}

/* F3 among the prefixes, then a REX with B, then 90: anywhere in the snippet. */
static bool has_pause_with_b(const struct isa_snippet *s)
{
	for (u32 i = 2; i < s->len; i++) {
		u32 k;

		if (s->code[i] != 0x90 || (s->code[i - 1] & 0xf1) != 0x41)
			continue;
		for (k = i - 1; k > 0 && is_prefix(s->code[k - 1]); k--)
			if (s->code[k - 1] == 0xf3)
				return true;
	}
	return false;
}

/* The first byte of the opcode of the instruction at rip, behind prefixes and REX, and whether REP is one; 0 if it is not in the snippet. */
static u8 opcode_at(const struct isa_snippet *s, u64 rip, bool *rep)
{
	u64 off = rip - s->in.rip;

	*rep = false;
	while (off < s->len && (is_prefix(s->code[off]) || (s->code[off] & 0xf0) == 0x40)) {
		*rep |= (s->code[off] & 0xfe) == 0xf2;
		off++;
	}
	return off < s->len ? s->code[off] : 0;
}

static bool is_memory_fault(const struct isa_outcome *o)
{
	return o->vector == 12 || o->vector == 13 || o->vector == 14;
}

static bool is_x87_store(const struct isa_snippet *s, const struct isa_outcome *native, const struct isa_outcome *soft)
{
	bool rep;

	return is_memory_fault(soft) && (opcode_at(s, soft->regs.rip, &rep) & 0xf8) == 0xd8 &&
	       (native->regs.rip != soft->regs.rip || native->vector == soft->vector);
}

static bool is_rep_compare(const struct isa_snippet *s, const struct isa_outcome *native, const struct isa_outcome *soft)
{
	bool rep;
	u8 op = opcode_at(s, soft->regs.rip, &rep) & 0xfe;

	return soft->vector == 14 && native->vector == 14 && native->regs.rip == soft->regs.rip && rep && (op == 0xa6 || op == 0xae);
}

/* Hand-written ones have names. */
static bool is_named(const struct isa_snippet *s)
{
	static const char *const names[] = { "call_noncanonical", "movs_addr32_zero" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(s->family, names[i]))
			return true;
	return false;
}

bool isa_differs_by_maker(const struct isa_snippet *s, const struct isa_outcome *native, const struct isa_outcome *soft)
{
	return host_is_intel() &&
	       (has_pause_with_b(s) || is_x87_store(s, native, soft) || is_rep_compare(s, native, soft) || is_named(s));
}
