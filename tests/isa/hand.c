// SPDX-License-Identifier: GPL-2.0-only
/*
 * Snippets written by hand: self-modifying code, page boundaries, partial stores,
 * the trap flag. They run wherever they are put, so they name code by RIP and data by
 * absolute address. Registers start at 0, but RSP, RSI, RDI, RCX as the list says.
 */
#include <string.h>

#include "generate.h"
#include "x86/cr.h"

#define S_(x)		#x
#define S(x)		S_(x)

/* Assembly text between symbols hand_NAME and hand_NAME_end, in read-only data. */
#define HAND(name, text) \
	__asm__("	.pushsection .rodata\n	.globl hand_" S(name) ", hand_" S(name) "_end\n" \
		"hand_" S(name) ":\n" text "\nhand_" S(name) "_end:\n	.popsection\n"); \
	extern const u8 hand_##name[], hand_##name##_end[]

/* Page edges of isa.h's regions, for the text. */
#define D0	"0x20000000"
#define D1	"0x20001000"
#define D2	"0x20002000"	/* read-only */
#define D3	"0x20003000"
#define DEND	"0x20004000"	/* not mapped */
#define SEND	"0x30002000"	/* not mapped */

HAND(smc_next, "movb $0x42, 1f+1(%rip)\n 1: mov $0x11, %al\n");
HAND(smc_self_in_block, "mov $3, %ecx\n 2: 1: mov $0x11, %al\n add %al, %bl\n incb 1b+1(%rip)\n dec %ecx\n jnz 2b\n");
HAND(smc_opcode, "xor %eax, %eax\n mov $5, %ecx\n 1: inc %eax\n cmp $3, %eax\n jne 2f\n movb $0xc8, 1b+1(%rip)\n"
     " 2: dec %ecx\n jnz 1b\n");
HAND(smc_long_store, "mov 1f(%rip), %rax\n btc $9, %rax\n mov %rax, 1f(%rip)\n 1: mov $0x55555555, %edx\n nop\n nop\n nop\n");
HAND(smc_rep_stos, "lea 1f(%rip), %rdi\n mov $0x90, %al\n mov $6, %ecx\n rep stosb\n 1: ud2\n ud2\n ud2\n mov $1, %ebx\n");
HAND(smc_sse_store, "movups 2f(%rip), %xmm0\n movups %xmm0, 1f(%rip)\n 1: ud2\n .fill 14, 1, 0x90\n jmp 3f\n"
     "2: mov $7, %ecx\n .fill 11, 1, 0x90\n 3: inc %ecx\n");
HAND(smc_xchg, "mov $0xc0ff, %ax\n xchg %ax, 1f(%rip)\n 1: ud2\n");
HAND(smc_backward, "jmp 2f\n 1: mov $1, %eax\n int3\n 2: movl $0x77, 1b+1(%rip)\n jmp 1b\n");
HAND(smc_call_twice, "call 1f\n mov %eax, %ebx\n movb $9, 1f+1(%rip)\n call 1f\n jmp 2f\n 1: mov $8, %eax\n ret\n 2: nop\n");
/* Put at the end of a page: the second page's bytes are those of the first instruction's end. */
HAND(cross_imm, "mov $0x1122334455667788, %rax\n mov $0x1122334455667788, %rbx\n mov %rax, %rcx\n");
HAND(cross_modify, "movb $0x99, 1f+3(%rip)\n 1: movabs $0x1122334455667788, %rax\n add %rax, %rax\n");
HAND(cross_loop, "mov $50, %ecx\n 1: lea 0x11223344(%rax,%rcx,2), %rax\n dec %ecx\n jnz 1b\n");
HAND(cross_fault, "mov %rax, 0x12345678\n");
HAND(mid_insn, "lea 1f+2(%rip), %rax\n jmp *%rax\n 1: mov $0x90c3ff48, %ebx\n nop\n");	/* 48 ff c3 90: inc rbx */
HAND(mid_insn_both, "mov $2, %ecx\n 1: mov $0x9002c083, %eax\n dec %ecx\n jz 2f\n jmp 1b+1\n 2: nop\n");
HAND(end_of_code, ".fill 40, 1, 0x90\n");			/* put at the end of the region: runs off */
HAND(jump_nx, "mov $" D0 ", %eax\n jmp *%rax\n");
HAND(call_nx, "mov $" D0 ", %eax\n call *%rax\n");
HAND(jump_unmapped, "mov $" DEND ", %eax\n jmp *%rax\n");
HAND(jump_kernel, "mov $0xffffffff81000000, %rax\n jmp *%rax\n");
HAND(jump_noncanonical, "movabs $0x4000000000000000, %rax\n jmp *%rax\n");
HAND(call_noncanonical, "movabs $0x4000000000000000, %rax\n call *%rax\n");
HAND(ret_noncanonical, "movabs $0x4000000000000000, %rax\n push %rax\n ret\n");
HAND(ret_noncanonical_imm, "movabs $0x4000000000000000, %rax\n push %rax\n ret $16\n");
HAND(load_noncanonical, "movabs $0x4000000000000000, %rbx\n mov (%rbx), %eax\n");
HAND(store_noncanonical, "movabs $0x4000000000000000, %rbx\n mov %eax, (%rbx)\n");
HAND(stack_noncanonical, "movabs $0x4000000000000000, %rbp\n mov (%rbp), %eax\n");
HAND(push_noncanonical, "movabs $0x4000000000000000, %rsp\n push %rax\n");
HAND(pop_noncanonical, "movabs $0x4000000000000000, %rsp\n pop %rax\n");
HAND(ds_rbp_noncanonical, "movabs $0x4000000000000000, %rbp\n .byte 0x3e\n mov (%rbp), %eax\n");
HAND(ss_rax_noncanonical, "movabs $0x4000000000000000, %rax\n .byte 0x36\n mov (%rax), %eax\n");
HAND(fs_rbp_noncanonical, "movabs $0x4000000000000000, %rbp\n mov %fs:(%rbp), %eax\n");
HAND(last_canonical, "movabs $0x00007ffffffffffc, %rax\n mov (%rax), %rbx\n");
HAND(wrap_address, "mov $-4, %rax\n mov (%rax), %rbx\n");
HAND(store_half_guard, "mov $" DEND "-4, %ebx\n mov $-1, %rax\n mov %rax, (%rbx)\n");
HAND(store_half_ro, "mov $" D2 "-4, %ebx\n mov $-1, %rax\n mov %rax, (%rbx)\n");
HAND(store_half_ro_up, "mov $" D3 "-4, %ebx\n mov $-1, %rax\n mov %rax, (%rbx)\n");
HAND(store_half_low, "mov $" D0 "-4, %ebx\n mov $-1, %rax\n mov %rax, (%rbx)\n");
HAND(sse_half_guard, "mov $" DEND "-8, %ebx\n movups %xmm0, (%rbx)\n");
HAND(sse_half_ro, "mov $" D2 "-8, %ebx\n movups %xmm0, (%rbx)\n");
HAND(x87_half_ro, "mov $" D2 "-4, %ebx\n fld1\n fstpt (%rbx)\n");
HAND(x87_half_guard, "mov $" DEND "-4, %ebx\n fld1\n fstpl (%rbx)\n");
HAND(x87_load_guard, "mov $" DEND "-4, %ebx\n fldl (%rbx)\n");
HAND(fnsave_half_ro, "mov $" D2 "-50, %ebx\n fld1\n mov %rsp, %rdx\n fnstcw (%rbx)\n fnstsw %ax\n fldpi\n fstpt 48(%rbx)\n");
HAND(rmw_ro, "mov $" D2 ", %ebx\n stc\n adcl $1, (%rbx)\n");
HAND(rmw_ro_lock, "mov $" D2 ", %ebx\n lock incl (%rbx)\n");
HAND(rmw_half_ro, "mov $" D2 "-2, %ebx\n addl $-1, (%rbx)\n");
HAND(rmw_half_guard, "mov $" DEND "-2, %ebx\n notl (%rbx)\n");
HAND(rmw_unmapped, "mov $" DEND ", %ebx\n negq (%rbx)\n");
HAND(xadd_ro, "mov $" D2 ", %ebx\n mov $3, %eax\n xadd %eax, (%rbx)\n");
HAND(xchg_ro, "mov $" D2 ", %ebx\n mov $3, %eax\n xchg %eax, (%rbx)\n");
HAND(cmpxchg_ro_fail, "mov $" D2 ", %ebx\n mov $0x13572468, %eax\n cmpxchg %ecx, (%rbx)\n");
HAND(cmpxchg8b_ro_fail, "mov $" D2 ", %edi\n mov $0x13572468, %eax\n cmpxchg8b (%rdi)\n");
HAND(cmpxchg16b_misaligned, "mov $" D1 "+8, %edi\n lock cmpxchg16b (%rdi)\n");
HAND(cmpxchg16b_ok, "mov $" D1 ", %edi\n mov (%rdi), %rax\n mov 8(%rdi), %rdx\n mov $5, %ebx\n lock cmpxchg16b (%rdi)\n");
HAND(bts_ro, "mov $" D2 ", %ebx\n lock btsl $3, (%rbx)\n");
HAND(bt_ro, "mov $" D2 ", %ebx\n btl $3, (%rbx)\n");
HAND(sete_ro, "mov $" D2 ", %ebx\n sete (%rbx)\n");
HAND(cmov_unmapped, "mov $" DEND ", %ebx\n xor %eax, %eax\n cmovne (%rbx), %eax\n");
HAND(cmov_zeroes_high, "mov $-1, %rax\n cmp %eax, %eax\n cmovne %ebx, %eax\n");
HAND(shift0_ro, "mov $" D2 ", %ebx\n xor %ecx, %ecx\n shll %cl, (%rbx)\n");
HAND(shift0_high, "mov $-1, %rax\n xor %ecx, %ecx\n shl %cl, %eax\n");
HAND(push_guard, "mov $0x30000000, %esp\n push %rax\n");
HAND(push_half_guard, "mov $0x30000004, %esp\n push %rax\n");
HAND(push_ro, "mov $" D3 ", %esp\n push %rax\n");
HAND(push_mem_guard, "mov $0x30000000, %esp\n pushq 0x20000100\n");
HAND(push_mem_unmapped, "mov $0x30000000, %esp\n pushq " DEND "\n");
HAND(push_rsp, "push %rsp\n");
HAND(push_rsp_mem, "push 8(%rsp)\n pop 8(%rsp)\n pop (%rsp)\n");
HAND(pop_rsp, "push $" D0 "\n pop %rsp\n");
HAND(pop_ro, "push $1\n pop " D2 "\n");
HAND(pop_unmapped, "push $1\n pop " DEND "\n");
HAND(pop_beyond, "mov $" SEND ", %esp\n pop %rax\n");
HAND(call_guard, "mov $0x30000000, %esp\n call 1f\n 1: nop\n");
HAND(call_mem_guard, "mov $0x30000000, %esp\n lea 1f(%rip), %rax\n mov %rax, " D0 "\n call *" D0 "\n 1: nop\n");
HAND(ret_beyond, "mov $" SEND ", %esp\n ret\n");
HAND(enter_guard, "mov $0x30000040, %esp\n mov %rsp, %rbp\n enter $0x60, $0\n");
HAND(enter_levels, "lea -64(%rsp), %rbp\n enter $24, $4\n");
HAND(enter_far, "mov %rsp, %rbp\n enter $0xfff0, $1\n");
HAND(leave_guard, "mov $" SEND ", %ebp\n leave\n");
HAND(leave_noncanonical, "movabs $0x4000000000000000, %rbp\n leave\n");
HAND(movs_df_cross, "std\n mov $" D1 "+20, %esi\n mov $" D3 "+100, %edi\n mov $60, %ecx\n rep movsb\n");
HAND(movs_df_ro, "std\n mov $" D1 "+20, %esi\n mov $" D3 "+8, %edi\n mov $60, %ecx\n rep movsl\n");
HAND(movs_up_ro, "mov $" D1 "+20, %esi\n mov $" D2 "-18, %edi\n mov $60, %ecx\n rep movsl\n");
HAND(movs_src_guard, "mov $" DEND "-21, %esi\n mov $" D0 ", %edi\n mov $60, %ecx\n rep movsq\n");
HAND(movs_overlap, "mov $" D0 "+4000, %esi\n mov $" D0 "+4001, %edi\n mov $300, %ecx\n rep movsb\n");
HAND(movs_overlap_q, "mov $" D0 "+4000, %esi\n mov $" D0 "+4003, %edi\n mov $40, %ecx\n rep movsq\n");
HAND(movs_overlap_df, "std\n mov $" D1 "+5, %esi\n mov $" D1 ", %edi\n mov $100, %ecx\n rep movsq\n");
HAND(movs_zero, "mov $" DEND ", %esi\n mov $" DEND ", %edi\n rep movsb\n");
HAND(movs_addr32, "movabs $0xffffffff20000100, %rsi\n movabs $0xffffffff20000800, %rdi\n movabs $0xffffffff00000007, %rcx\n"
     " rep movsb (%esi), (%edi)\n");
HAND(movs_addr32_zero, "movabs $0xffffffff20000100, %rsi\n movabs $0xffffffff20000800, %rdi\n movabs $0xffffffff00000000, %rcx\n"
     " rep movsb (%esi), (%edi)\n");
HAND(stos_all, "mov $" D0 ", %edi\n mov $0x5a, %al\n mov $0x100000, %ecx\n rep stosb\n");
HAND(stos_df_all, "std\n mov $" D1 "+24, %edi\n mov $0x5a5a, %eax\n mov $0x100000, %ecx\n rep stosl\n");
HAND(stos_pages, "mov $" D0 ", %edi\n mov $0x400, %ecx\n rep stosq\n");
HAND(stos_half_ro, "mov $" D2 "-20, %edi\n mov $0x400, %ecx\n rep stosq\n");
HAND(lods_guard, "mov $" DEND "-16, %esi\n mov $0x400, %ecx\n rep lodsq\n");
HAND(scas_all, "mov $" D0 ", %edi\n mov $0xabcdef12345, %rax\n mov $-1, %rcx\n repne scasq\n");
HAND(scas_df, "std\n mov $" D3 "+77, %edi\n mov $0x5b, %al\n mov $-1, %rcx\n repne scasb\n");
HAND(cmps_same, "mov $" D0 ", %esi\n mov %esi, %edi\n mov $-1, %rcx\n repe cmpsb\n");
HAND(cmps_guard_di, "mov $" D3 ", %esi\n mov $" D3 ", %edi\n mov $0x2000, %ecx\n repe cmpsl\n");
HAND(scas_flags_at_fault, "mov $" DEND "-24, %edi\n mov $0x5bef, %rax\n mov $100, %ecx\n cmp %eax, %eax\n repne scasq\n");
HAND(movs_fs, "mov $0x100, %esi\n mov $" D1 ", %edi\n mov $9, %ecx\n rep movsb %fs:(%rsi), (%rdi)\n");
HAND(tf_one, "pushf\n orl $0x100, (%rsp)\n popf\n nop\n mov $1, %eax\n");
HAND(tf_mov_ss, "mov %ss, %eax\n pushf\n orl $0x100, (%rsp)\n popf\n mov %eax, %ss\n mov $1, %ebx\n mov $2, %ebx\n");
HAND(tf_pushf, "pushf\n orl $0x100, (%rsp)\n popf\n pushf\n nop\n");
HAND(tf_popf, "pushf\n pushf\n orl $0x100, (%rsp)\n popf\n popf\n nop\n");
HAND(tf_jump, "pushf\n orl $0x100, (%rsp)\n popf\n jmp 1f\n nop\n 1: inc %eax\n");
/* RF in what is pushed between elements: set on Intel (SDM 3B 17.3.1.1 [18.3.1.1]), clear on AMD. */
HAND(tf_rep, "mov $" D0 ", %edi\n mov $5, %ecx\n pushf\n orl $0x100, (%rsp)\n popf\n rep stosb\n nop\n");
HAND(tf_fault, "pushf\n orl $0x100, (%rsp)\n popf\n mov " DEND ", %eax\n nop\n");
HAND(tf_int3, "pushf\n orl $0x100, (%rsp)\n popf\n int3\n nop\n");
HAND(tf_cross, "pushf\n orl $0x100, (%rsp)\n popf\n movabs $0x1122334455667788, %rax\n nop\n");
HAND(ac_load, "pushf\n orl $0x40000, (%rsp)\n popf\n mov $" D0 "+1, %ebx\n mov (%rbx), %al\n mov (%rbx), %ax\n");
HAND(ac_store, "pushf\n orl $0x40000, (%rsp)\n popf\n mov $" D0 "+4, %ebx\n mov %eax, (%rbx)\n mov %rax, (%rbx)\n");
HAND(ac_push, "pushf\n orl $0x40000, (%rsp)\n popf\n inc %rsp\n push %rax\n");
HAND(ac_x87, "pushf\n orl $0x40000, (%rsp)\n popf\n mov $" D0 "+8, %ebx\n fld1\n fstpt (%rbx)\n fldl 4(%rbx)\n");
HAND(insn_too_long, ".fill 14, 1, 0x66\n nop\n nop\n");
HAND(insn_15, ".fill 14, 1, 0x66\n nop\n");
HAND(insn_too_long_mov, ".fill 13, 1, 0x2e\n mov %eax, %ebx\n nop\n");
HAND(rex_ignored, ".byte 0x48, 0x66\n mov %ax, %bx\n .byte 0x48, 0x2e\n inc %eax\n");
HAND(rex_last, ".byte 0x41, 0x48\n mov %eax, %ebx\n");
HAND(int3_mid, "nop\n int3\n nop\n");
HAND(int3_long, ".byte 0xcd, 3\n nop\n");
HAND(xlat_wrap, "mov $" D0 "+0xff0, %ebx\n mov $0xff, %al\n xlat\n");
HAND(xlat_addr32, "movabs $0x4000000020000000, %rbx\n mov $0x1f, %al\n addr32 xlat\n");
HAND(jrcxz_addr32, "movabs $0x100000000, %rcx\n .byte 0x67\n jrcxz 1f\n inc %eax\n 1: nop\n");
HAND(loop_addr32, "movabs $0x100000002, %rcx\n 1: inc %eax\n .byte 0x67\n loop 1b\n");
HAND(div_overflow, "mov $1, %edx\n xor %eax, %eax\n mov $1, %ebx\n div %ebx\n");
HAND(idiv_min, "mov $0x80000000, %eax\n cltd\n mov $-1, %ebx\n idiv %ebx\n");
HAND(idiv_min64, "mov $1, %eax\n shl $63, %rax\n cqto\n mov $-1, %rbx\n idiv %rbx\n");
HAND(idiv128, "mov $-1, %rdx\n mov $1, %eax\n shl $63, %rax\n mov $3, %rbx\n idiv %rbx\n");
HAND(div_byte_edge, "mov $0x7f80, %eax\n mov $0x80, %bl\n idiv %bl\n");
HAND(x87_pending, "fninit\n fnstcw (%rsp)\n andw $0xfffb, (%rsp)\n fldcw (%rsp)\n fld1\n fldz\n fdivrp\n nop\n fld1\n");
HAND(x87_pending_wait, "fninit\n fnstcw (%rsp)\n andw $0xfffb, (%rsp)\n fldcw (%rsp)\n fld1\n fldz\n fdivrp\n fnstsw %ax\n fwait\n");
HAND(x87_unmask_later, "fninit\n fld1\n fldz\n fdivrp\n fnstcw (%rsp)\n andw $0xfffb, (%rsp)\n fldcw (%rsp)\n fnop\n");
HAND(x87_store_pending, "fninit\n fnstcw (%rsp)\n andw $0xffef, (%rsp)\n fldcw (%rsp)\n fldt 1f(%rip)\n fstps " D0 "\n nop\n"
     " fwait\n jmp 2f\n 1: .quad 0xc000000000000001\n .word 0x0001\n 2: nop\n");
HAND(mmx_after_x87, "fninit\n fld1\n fldpi\n movq %mm0, %rax\n paddb %mm7, %mm6\n emms\n");
HAND(mxcsr_unmasked, "stmxcsr (%rsp)\n andl $0xfffffdff, (%rsp)\n ldmxcsr (%rsp)\n xorps %xmm0, %xmm0\n mov $1, %eax\n"
     " cvtsi2ss %eax, %xmm1\n divss %xmm0, %xmm1\n");
HAND(mxcsr_reserved, "movl $0x41f80, (%rsp)\n ldmxcsr (%rsp)\n");
HAND(movaps_misaligned, "mov $" D0 "+8, %ebx\n movaps (%rbx), %xmm0\n");
HAND(movaps_misaligned_unmapped, "mov $" DEND "+8, %ebx\n movaps (%rbx), %xmm0\n");
HAND(paddb_misaligned, "mov $" D0 "+1, %ebx\n paddb (%rbx), %xmm0\n");
HAND(movaps_misaligned_stack, "mov $" D0 "+8, %ebp\n movaps (%rbp), %xmm0\n");
HAND(maskmov, "mov $" D0 "+4090, %edi\n pcmpeqb %xmm1, %xmm1\n psrldq $3, %xmm1\n mov $0x5a5a5a5a, %eax\n movd %eax, %xmm0\n"
     " pshufd $0, %xmm0, %xmm0\n maskmovdqu %xmm1, %xmm0\n");
HAND(popf_system, "mov $0x3f7fd5, %eax\n and $~0x40100, %eax\n push %rax\n popf\n");
HAND(popf_16, "mov $0x7ed5, %eax\n push %ax\n popfw\n");
HAND(popf_rf, "mov $0x10202, %eax\n push %rax\n popf\n pushf\n pop %rbx\n");
HAND(sahf_all, "mov $0xff, %ah\n sahf\n lahf\n");
HAND(nt_stays, "mov $0x4202, %eax\n push %rax\n popf\n inc %ebx\n");
HAND(bsf_zero, "mov $-1, %rax\n xor %ebx, %ebx\n bsf %rbx, %rax\n");
HAND(bsr_zero16, "mov $-1, %rax\n xor %ebx, %ebx\n bsr %bx, %ax\n");
HAND(bt_negative, "mov $" D1 ", %ebx\n mov $-9, %rax\n bts %rax, (%rbx)\n btc %eax, (%rbx)\n btr %ax, (%rbx)\n");
HAND(movsxd_16, ".byte 0x66, 0x63, 0xc3\n");
HAND(lea_32, "mov $-1, %rax\n lea 5(%eax), %rbx\n lea 5(%rax), %ecx\n lea 5(%rax), %dx\n");
HAND(xchg_nop, "mov $-1, %rax\n xchg %eax, %eax\n .byte 0x87, 0xc0\n");
HAND(xchg_r8, "mov $-1, %rax\n .byte 0x41, 0x90\n");
HAND(high_bytes, "mov $0x11223344, %eax\n mov %ah, %bh\n add %bh, %al\n mov %bh, %ch\n xchg %ah, %cl\n mul %ch\n");
HAND(rex_high_bytes, "mov $0x1234, %esp\n .byte 0x40\n mov %ah, %bl\n mov $0x30001000, %esp\n");
HAND(cmpxchg_byte, "mov $0x1234, %eax\n mov $0x34, %bl\n cmpxchg %ch, %bl\n cmpxchg %ch, %bl\n");
HAND(cmpxchg32_fail_high, "mov $-1, %rax\n mov $-1, %rbx\n mov $5, %ecx\n cmpxchg %ecx, %ebx\n xor %eax, %eax\n cmpxchg %ecx, %ebx\n");

static const struct {
	const char *name;
	const u8 *start, *end;
	u32 at;			/* offset in the code region, 0 = wherever */
	u32 undefined;
} hand[] = {
#define H(name)			{ S(name), hand_##name, hand_##name##_end, 0x100, 0 }
#define HF(name, undefined)	{ S(name), hand_##name, hand_##name##_end, 0x100, undefined }
#define HAT(name, at)		{ S(name), hand_##name, hand_##name##_end, at, 0 }
	H(smc_next), H(smc_self_in_block), H(smc_opcode), H(smc_long_store), H(smc_rep_stos), H(smc_sse_store), H(smc_xchg),
	H(smc_backward), H(smc_call_twice), HAT(smc_next, 0xff9), HAT(smc_long_store, 0xff0), HAT(smc_backward, 0xffd),
	HAT(smc_opcode, 0xff8), HAT(smc_call_twice, 0xff0), HAT(smc_self_in_block, 0xff6),
	HAT(cross_imm, 0xffc), HAT(cross_imm, 0xfff), HAT(cross_modify, 0xff6), HAT(cross_loop, 0xff8), HAT(cross_fault, 0xffc),
	H(mid_insn), H(mid_insn_both), HAT(mid_insn, 0xff4), HAT(end_of_code, 0x2000 - 40),
	H(jump_nx), H(call_nx), H(jump_unmapped), H(jump_kernel), H(jump_noncanonical), H(call_noncanonical),
	H(ret_noncanonical), H(ret_noncanonical_imm), H(load_noncanonical), H(store_noncanonical), H(stack_noncanonical),
	H(push_noncanonical), H(pop_noncanonical), H(ds_rbp_noncanonical), H(ss_rax_noncanonical), H(fs_rbp_noncanonical),
	H(last_canonical), H(wrap_address), H(store_half_guard), H(store_half_ro), H(store_half_ro_up), H(store_half_low),
	H(sse_half_guard), H(sse_half_ro), H(x87_half_ro), H(x87_half_guard), H(x87_load_guard), H(fnsave_half_ro),
	H(rmw_ro), H(rmw_ro_lock), H(rmw_half_ro), H(rmw_half_guard), H(rmw_unmapped), H(xadd_ro), H(xchg_ro),
	H(cmpxchg_ro_fail), H(cmpxchg8b_ro_fail), H(cmpxchg16b_misaligned), H(cmpxchg16b_ok), H(bts_ro), H(bt_ro),
	H(sete_ro), H(cmov_unmapped), H(cmov_zeroes_high), HF(shift0_ro, FLAG_AF), HF(shift0_high, FLAG_AF),
	H(push_guard), H(push_half_guard), H(push_ro), H(push_mem_guard), H(push_mem_unmapped), H(push_rsp), H(push_rsp_mem),
	H(pop_rsp), H(pop_ro), H(pop_unmapped), H(pop_beyond), H(call_guard), H(call_mem_guard), H(ret_beyond),
	H(enter_guard), H(enter_levels), H(enter_far), H(leave_guard), H(leave_noncanonical),
	H(movs_df_cross), H(movs_df_ro), H(movs_up_ro), H(movs_src_guard), H(movs_overlap), H(movs_overlap_q),
	H(movs_overlap_df), H(movs_zero), H(movs_addr32), H(movs_addr32_zero), H(stos_all), H(stos_df_all), H(stos_pages),
	H(stos_half_ro), H(lods_guard), H(scas_all), H(scas_df), H(cmps_same), H(cmps_guard_di), H(scas_flags_at_fault),
	H(movs_fs), HF(tf_one, FLAG_AF), HF(tf_mov_ss, FLAG_AF), HF(tf_pushf, FLAG_AF), HF(tf_popf, FLAG_AF), HF(tf_jump, FLAG_AF),
	HF(tf_rep, FLAG_AF | (u32)X86_EFLAGS_RF), HF(tf_fault, FLAG_AF), HF(tf_int3, FLAG_AF), HAT(tf_cross, 0xff0),
	HF(ac_load, FLAG_AF), HF(ac_store, FLAG_AF), HF(ac_push, FLAG_AF), HF(ac_x87, FLAG_AF),
	H(insn_too_long), H(insn_15), H(insn_too_long_mov), HAT(insn_15, 0xff9), H(rex_ignored), H(rex_last), H(int3_mid), H(int3_long),
	H(xlat_wrap), H(xlat_addr32), H(jrcxz_addr32), H(loop_addr32),
	HF(div_overflow, ARITH_FLAGS), HF(idiv_min, ARITH_FLAGS), HF(idiv_min64, ARITH_FLAGS), HF(idiv128, ARITH_FLAGS),
	HF(div_byte_edge, ARITH_FLAGS), HF(x87_pending, FLAG_AF), HF(x87_pending_wait, FLAG_AF), HF(x87_unmask_later, FLAG_AF),
	HF(x87_store_pending, FLAG_AF), H(mmx_after_x87), HF(mxcsr_unmasked, FLAG_AF), H(mxcsr_reserved), H(movaps_misaligned),
	H(movaps_misaligned_unmapped), H(paddb_misaligned), H(movaps_misaligned_stack), H(maskmov), HF(popf_system, 0), H(popf_16),
	H(popf_rf), H(sahf_all), H(nt_stays), HF(bsf_zero, ARITH_FLAGS & ~FLAG_ZF), HF(bsr_zero16, ARITH_FLAGS & ~FLAG_ZF),
	HF(bt_negative, ARITH_FLAGS & ~(FLAG_CF | FLAG_ZF)), H(movsxd_16), H(lea_32), H(xchg_nop), H(xchg_r8),
	HF(high_bytes, ARITH_FLAGS & ~(FLAG_CF | FLAG_OF)), H(rex_high_bytes), H(cmpxchg_byte), H(cmpxchg32_fail_high),
};

u32 isa_nr_hand(void)
{
	return ARRAY_SIZE(hand);
}

void isa_hand(struct isa_snippet *s, struct isa_image *image, u32 number)
{
	struct rng rng;

	memset(s, 0, sizeof(*s));
	s->family = hand[number].name;
	s->number = number;
	s->at = hand[number].at;
	s->len = (u32)(hand[number].end - hand[number].start);
	memcpy(s->code, hand[number].start, s->len);
	s->undefined = hand[number].undefined;
	s->in.rip = ISA_CODE + s->at;
	s->in.rflags = X86_EFLAGS_FIXED | X86_EFLAGS_IF;
	s->in.gpr[X86_RSP] = ISA_STACK + PAGE_SIZE;
	s->in.fs_base = ISA_DATA;
	rng_seed(&rng, 1, number);
	gen_fpu(&rng, s->in.fx, true);
	memset(image->code, 0xcc, sizeof(image->code));
	gen_memory(&rng, image->data, sizeof(image->data));
	gen_memory(&rng, image->stack, sizeof(image->stack));
}
