// SPDX-License-Identifier: GPL-2.0-only
/*
 * Decimal and ASCII adjustment, which only 32- and 16-bit code has: an image of its
 * own, since who makes a CPU for 64-bit guests may well leave them out.
 */
#include "bare64.h"

#define ADJUST(setup, insn, want, name) do {				\
	u64 v = 0;							\
	TRY32(setup "; " insn "; movl %%eax, %%ecx", v);		\
	is(v & 0xffff, want, name);					\
} while (0)

void test_main(void)
{
	ADJUST("movl $0x79, %%eax; addb $0x35, %%al", "daa; movb $0, %%ah; adcb $0, %%ah", 0x114, "DAA");
	ADJUST("movl $0x21, %%eax; subb $0x35, %%al", "das; movb $0, %%ah; adcb $0, %%ah", 0x186, "DAS");
	ADJUST("movl $0x0008, %%eax; addb $7, %%al", "aaa", 0x105, "AAA");
	ADJUST("movl $0x0205, %%eax; subb $9, %%al", "aas", 0x106, "AAS");
	ADJUST("movl $63, %%eax", "aam", 0x603, "AAM");
	ADJUST("movl $0x0703, %%eax", "aad", 0x49, "AAD");
	{
		u64 v = 0;

		TRY32(".byte 0xd4, 0", v);
		trapped(0, 0, "#DE: AAM of 0");
	}
}
