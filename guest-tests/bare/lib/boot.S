/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From the Multiboot entry (32-bit, paging off) or a SIPI (real mode) to C in long
 * mode; the entries of all vectors; the way to ring 3 and back.
 */
#include "bare/bare64.h"

#define MULTIBOOT_MAGIC	0x1badb002

	.section .multiboot, "a"
	.balign 4
	.long	MULTIBOOT_MAGIC
	.long	0
	.long	-MULTIBOOT_MAGIC

	.text
	.code32
	.globl	start
start:
	cli
	cld
	movl	%eax, %ebp
	movl	$boot_stack_top, %esp
	lgdt	gdt_pointer

	/* Identity mapping of 4 GiB by pages of 2 MiB. pages.c takes ring 3's rights away. */
	movl	$boot_pdpt + 7, boot_pml4
	movl	$boot_pd, %edi
	movl	$0x83, %eax
1:	movl	%eax, (%edi)
	movl	$0, 4(%edi)
	addl	$8, %edi
	addl	$0x200000, %eax
	jnc	1b
	movl	$boot_pd + 7, %eax
	movl	$boot_pdpt, %edi
	movl	$4, %ecx
2:	movl	%eax, (%edi)
	addl	$4096, %eax
	addl	$8, %edi
	loop	2b

	call	long_mode
	ljmp	$SEL_KCODE, $start64

/* Control registers for long mode; paging is on when it returns, code still is 32-bit. */
	.globl	long_mode
long_mode:
	movl	$BARE_CR4, %eax
	movl	%eax, %cr4
	movl	$boot_pml4, %eax
	movl	%eax, %cr3
	movl	$MSR_EFER, %ecx
	movl	$BARE_EFER, %eax
	xorl	%edx, %edx
	wrmsr
	movl	$BARE_CR0, %eax
	movl	%eax, %cr0
	ret

	.code64
start64:
	movl	$SEL_KDATA, %eax
	movw	%ax, %ds
	movw	%ax, %es
	movw	%ax, %ss
	xorl	%eax, %eax
	movw	%ax, %fs
	movw	%ax, %gs
	movl	$boot_stack_top, %esp
	movl	%ebp, %edi
	movl	%ebx, %esi
	xorl	%ebp, %ebp
	call	bare_main
1:	hlt
	jmp	1b

/*
 * Copied to BARE_TRAMPOLINE. What SIPI leaves is stored before anything is changed
 * (SDM 3A 9.1.4, table 9-1); CPUs start one after another, so there is one place.
 */
#define AT(symbol)	(BARE_TRAMPOLINE + symbol - trampoline)
	.code16
	.globl	trampoline, trampoline_end
trampoline:
	movw	%cs, %cs:ap_cs - trampoline
	call	1f
1:	popw	%cs:ap_ip - trampoline
	pushfl
	popl	%cs:ap_eflags - trampoline
	movl	%edx, %cs:ap_edx - trampoline
	movl	%cr0, %eax
	movl	%eax, %cs:ap_cr0 - trampoline
	cli
	lgdtl	%cs:ap_gdt_pointer - trampoline
	movl	$(CR0_PE | CR0_ET), %eax
	movl	%eax, %cr0
	ljmpl	$SEL_KCODE32, $ap32
	.balign 4
	.globl	ap_cr0
ap_cr0:	.long	0
ap_edx:	.long	0
ap_eflags:
	.long	0
ap_cs:	.word	0
ap_ip:	.word	0
ap_gdt_pointer:
	.word	gdt_end - bare_gdt - 1
	.long	bare_gdt
trampoline_end:

	.code32
ap32:
	movl	$SEL_KDATA, %eax
	movw	%ax, %ds
	movw	%ax, %es
	movw	%ax, %ss
	movl	$1, %edi
	lock xaddl %edi, ap_next
	movl	%edi, %esp
	incl	%esp
	shll	$14, %esp
	addl	$ap_stacks, %esp
	call	long_mode
	ljmp	$SEL_KCODE, $1f
	.code64
1:	xorl	%ebp, %ebp
	call	ap_main

/* --- vectors --- */

	.balign 16
	.globl	bare_vectors
bare_vectors:
	.set	vector, 0
	.rept	256
	.balign	16
	/* Those that push an error code (SDM 3A table 6-1). */
	.if vector != 8 && (vector < 10 || vector > 14) && vector != 17 && vector != 21
	pushq	$0
	.endif
	pushq	$vector
	jmp	trap_entry
	.set	vector, vector + 1
	.endr

trap_entry:
	cld
	pushq	%rax
	pushq	%rbx
	pushq	%rcx
	pushq	%rdx
	pushq	%rsi
	pushq	%rdi
	pushq	%rbp
	pushq	%r8
	pushq	%r9
	pushq	%r10
	pushq	%r11
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	movq	%rsp, %rdi
	movq	%rsp, %rbp
	andq	$-16, %rsp
	call	bare_trap
	movq	%rbp, %rsp
	.globl	trap_return
trap_return:
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%r11
	popq	%r10
	popq	%r9
	popq	%r8
	popq	%rbp
	popq	%rdi
	popq	%rsi
	popq	%rdx
	popq	%rcx
	popq	%rbx
	popq	%rax
	addq	$16, %rsp
	iretq

/* void user_enter(u64 rip, u64 arg, u64 rflags, u64 cs, u64 rsp, u64 ss) */
	.globl	user_enter
user_enter:
	pushq	%rbx
	pushq	%rbp
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	pushq	%r9
	pushq	%r8
	pushq	%rdx
	pushq	%rcx
	pushq	%rdi
	call	trap_reset_asm
	leaq	40(%rsp), %rax
	movq	%rax, bare_resume + 8
	movq	(%rsp), %rax
	movq	%rax, bare_resume + 16
	movq	$1f, bare_resume
	movq	%rsi, %rdi
	iretq
1:	movq	$0, bare_resume
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbp
	popq	%rbx
	ret

/* trap_reset() for who cannot lose a register. */
trap_reset_asm:
	movq	$-1, last
	ret

	.section .user.text, "ax"
	.globl	user_exit
user_exit:
	int	$USER_DONE
	ud2

	.data
	.balign 16
	.globl	bare_gdt
bare_gdt:
	.quad	0
	.quad	0x00af9b000000ffff	/* SEL_KCODE */
	.quad	0x00cf93000000ffff	/* SEL_KDATA */
	.quad	0x00cffb000000ffff	/* SEL_UCODE32 */
	.quad	0x00cff3000000ffff	/* SEL_UDATA */
	.quad	0x00affb000000ffff	/* SEL_UCODE */
	.quad	0x00cf9b000000ffff	/* SEL_KCODE32 */
	.quad	0x000f9b000000ffff	/* SEL_KCODE16 */
	.quad	0x000093000000ffff	/* SEL_KDATA16 */
	.quad	0x00cf13000000ffff	/* SEL_ABSENT */
	.quad	0x00af1b000000ffff	/* SEL_ABSENT_CODE */
	.fill	8, 8, 0			/* SEL_SPARE */
	.fill	2 * BARE_CPUS, 8, 0	/* SEL_TSS */
gdt_end:
	.globl	gdt_pointer
gdt_pointer:
	.word	gdt_end - bare_gdt - 1
	.quad	bare_gdt
	.balign 4
	.globl	ap_next
ap_next:
	.long	1

	.bss
	.balign	4096
	.globl	boot_pml4
boot_pml4:
	.skip	4096
boot_pdpt:
	.skip	4096
boot_pd:
	.skip	4 * 4096
boot_stack:
	.skip	BARE_STACK
boot_stack_top:
ap_stacks:
	.skip	BARE_STACK * BARE_CPUS
