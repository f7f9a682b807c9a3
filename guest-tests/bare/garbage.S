/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rubbish to the ports, every page of device memory and the MSRs that exist or
 * might, in that order, and then out with value 7 (process status 15). The
 * sequence is always the same. Left out is only what ends a guest by design,
 * since then nothing after it would be tried: the exit port, the reset ports and
 * the PM1a block, and an INIT or SIPI to itself.
 *
 * Every exception goes on at the address in `resume`.
 */
#include "bare.h"

#define STACK_BYTES	4096
#define NR_VECTORS	32
#define MMIO_LAPIC	0xfee00000
#define LAPIC_ICR	0x300
#define FAR_STEP	61	/* prime to 2: all low bits occur */

start:
	movl	$stack_top, %esp
	cli
	lgdt	gdt_pointer
	ljmp	$8, $1f
1:	movw	$16, %ax
	movw	%ax, %ds
	movw	%ax, %es
	movw	%ax, %ss
	call	make_idt
	lidt	idt_pointer
	movl	$0x2545f491, rng_state

	SAY	"garbage: ports"
	call	do_ports
	SAY	"garbage: string ports"
	call	do_strings
	SAY	"garbage: device memory"
	call	do_mmio
	SAY	"garbage: msrs"
	call	do_msrs
	SAY	"garbage: done"
	EXIT	7

/* xorshift32 (Marsaglia, 2003) into EAX. Uses EDX. */
rng:
	movl	rng_state, %eax
	movl	%eax, %edx
	shll	$13, %edx
	xorl	%edx, %eax
	movl	%eax, %edx
	shrl	$17, %edx
	xorl	%edx, %eax
	movl	%eax, %edx
	shll	$5, %edx
	xorl	%edx, %eax
	movl	%eax, rng_state
	ret

/* Carry set if the EBX + 1 bytes from port ECX touch one that ends the guest. Uses ESI, EDI. */
forbidden:
	movl	$forbidden_ports, %esi
1:	movzwl	(%esi), %edi		/* first */
	testl	%edi, %edi
	jz	2f
	addl	$4, %esi
	pushl	%ecx
	addl	%ebx, %ecx
	cmpl	%edi, %ecx		/* ends before it? */
	popl	%ecx
	jb	1b
	movzwl	-2(%esi), %edi		/* last */
	cmpl	%ecx, %edi		/* begins behind it? */
	jb	1b
	stc
	ret
2:	clc
	ret

/*
 * Bytes, words, doublewords and reads at the first 4096 ports, where devices are; bytes at some of
 * the others, since each is an exit, and a nested one takes a third of a millisecond.
 */
do_ports:
	xorl	%ecx, %ecx
1:	xorl	%ebx, %ebx
	call	forbidden
	jc	2f
	call	rng
	movl	%ecx, %edx
	outb	%al, %dx
	inb	%dx, %al
2:	cmpl	$0x1000, %ecx
	jae	3f
	movl	$3, %ebx
	call	forbidden
	jc	3f
	call	rng
	movl	%ecx, %edx
	outw	%ax, %dx
	rorl	$7, %eax
	outl	%eax, %dx
	inw	%dx, %ax
	inl	%dx, %eax
3:	incl	%ecx
	cmpl	$0x1000, %ecx
	jbe	1b
	addl	$(FAR_STEP - 1), %ecx
	cmpl	$0x10000, %ecx
	jb	1b
	ret

/* String instructions: the other path for ports. */
do_strings:
	cld
	movw	$0x80, %dx
	movl	$start, %esi
	movl	$64, %ecx
	rep outsb
	movl	$start, %esi
	movl	$16, %ecx
	rep outsl
	movw	$PORT_CONSOLE, %dx
	movl	$scratch, %edi
	movl	$64, %ecx
	rep insb
	movw	$0x1f0, %dx
	movl	$scratch, %edi
	movl	$16, %ecx
	rep insl
	/* Into and out of device memory. */
	movl	$0xd0000000, %edi
	movw	$0x60, %dx
	movl	$8, %ecx
	rep insb
	movl	$0xd0000000, %esi
	movl	$scratch, %edi
	movl	$16, %ecx
	rep movsl
	movl	$start, %esi
	movl	$0xd0000000, %edi
	movl	$16, %ecx
	rep movsl
	ret

do_mmio:
	movl	$pages, %ebp
1:	movl	(%ebp), %ebx
	testl	%ebx, %ebx
	jz	2f
	call	one_page
	addl	$4, %ebp
	jmp	1b
2:	movl	$MMIO_LAPIC, %ebx
	call	one_page
	ret

/* The page at EBX: each doubleword, then widths and alignments that no driver uses. */
one_page:
	movl	$skip_access, resume
	xorl	%ecx, %ecx
1:	call	rng
	leal	(%ebx, %ecx), %edi
	cmpl	$(MMIO_LAPIC + LAPIC_ICR), %edi
	jne	2f
	/* INIT (5) and SIPI (6) to the others only, or this CPU would be gone. */
	movl	%eax, %edx
	andl	$0x700, %edx
	cmpl	$0x500, %edx
	je	3f
	cmpl	$0x600, %edx
	jne	2f
3:	orl	$0xc0000, %eax
2:	movl	%eax, (%edi)
	testl	$0xc, %edi
	jnz	skip_access
	movl	(%edi), %eax
skip_access:
	addl	$4, %ecx
	cmpl	$4096, %ecx
	jb	1b

	movl	$skip_odd, resume
	movl	$32, %ecx
4:	call	rng
	movl	%eax, %edi
	andl	$0xfff, %edi
	/* Not a byte of the ICR: part of a write is one, too. */
	movl	%edi, %edx
	andl	$0xff0, %edx
	cmpl	$(LAPIC_ICR - 16), %edx
	je	skip_odd
	cmpl	$LAPIC_ICR, %edx
	je	skip_odd
	addl	%ebx, %edi
	movb	%al, (%edi)
	rorl	$9, %eax
	movw	%ax, (%edi)
	movl	%eax, (%edi)
	lock orb %al, (%edi)
	xchgw	%ax, (%edi)
	addl	%eax, (%edi)
skip_odd:
	decl	%ecx
	jnz	4b
	ret

do_msrs:
	movl	$msr_ranges, %ebp
1:	movl	(%ebp), %ecx
	cmpl	4(%ebp), %ecx
	je	4f			/* an empty range ends the table */
2:	movl	$skip_read, resume
	rdmsr
skip_read:
	movl	$skip_random, resume
	call	rng
	pushl	%eax
	call	rng
	popl	%edx
	wrmsr
skip_random:
	/* Small values get past checks of reserved bits. */
	movl	$skip_small, resume
	call	rng
	andl	$0xff, %eax
	xorl	%edx, %edx
	wrmsr
skip_small:
	movl	$skip_zero, resume
	xorl	%eax, %eax
	xorl	%edx, %edx
	wrmsr
skip_zero:
	incl	%ecx
	cmpl	4(%ebp), %ecx
	jne	2b
	addl	$8, %ebp
	jmp	1b
4:	ret

/* Gates for the exceptions: to the stub with or without an error code, and the NMI's. */
make_idt:
	movl	$idt, %edi
	xorl	%ecx, %ecx
1:	movl	$plain_stub, %eax
	btl	%ecx, error_code_vectors
	jnc	2f
	movl	$error_stub, %eax
2:	cmpl	$2, %ecx
	jne	3f
	movl	$nmi_stub, %eax
3:	movw	%ax, (%edi)
	movw	$8, 2(%edi)
	movw	$0x8e00, 4(%edi)
	shrl	$16, %eax
	movw	%ax, 6(%edi)
	addl	$8, %edi
	incl	%ecx
	cmpl	$NR_VECTORS, %ecx
	jb	1b
	ret

error_stub:
	addl	$4, %esp
plain_stub:
	pushl	%eax
	movl	resume, %eax
	movl	%eax, 4(%esp)
	popl	%eax
	iret
/* From the local APIC, at any time: nothing to go past. */
nmi_stub:
	iret

	.data
	.balign 8
gdt:
	.quad	0
	.quad	0x00cf9a000000ffff	/* flat code */
	.quad	0x00cf92000000ffff	/* flat data */
gdt_pointer:
	.word	. - gdt - 1
	.long	gdt
	.balign 4
idt_pointer:
	.word	NR_VECTORS * 8 - 1
	.long	idt
	.balign 4
/* #DF, #TS, #NP, #SS, #GP, #PF, #AC, #CP, #VC, #SX push one (SDM 3A table 6-1, APM 2 table 8-1). */
error_code_vectors:
	.long	1 << 8 | 0x1f << 10 | 1 << 17 | 1 << 21 | 3 << 29
resume:
	.long	give_up
/* First and last of each: keyboard controller, port 0x92, exit port, PC reset, PM1a. */
forbidden_ports:
	.word	0x64, 0x64
	.word	0x92, 0x92
	.word	PORT_EXIT, PORT_EXIT
	.word	0xcf9, 0xcf9
	.word	0x600, 0x607
	.word	0, 0
	.balign 4
/* virtio-mmio, IOAPIC, HPET, holes, ROM; the local APIC comes last. */
pages:
	.long	0xd0000000, 0xd0001000, 0xd0002000, 0xd0007000, 0xc0000000, 0xe0000000
	.long	0xfec00000, 0xfed00000, 0xfee01000, 0xfffff000, 0
msr_ranges:
	.long	0, 0x2000
	.long	0x40000000, 0x40000200
	.long	0x4b564d00, 0x4b564d10
	.long	0xc0000000, 0xc0002000
	.long	0xc0010000, 0xc0012000
	.long	0, 0

	.text
/* An exception where none can be: say so by another value. */
give_up:
	SAY	"garbage: unexpected exception"
	EXIT	9

	.bss
	.balign 16
rng_state:
	.skip	4
	.balign 16
idt:
	.skip	NR_VECTORS * 8
scratch:
	.skip	256
stack:
	.skip	STACK_BYTES
stack_top:
