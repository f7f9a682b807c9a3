/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bare-metal test images: what all of them begin with. Multiboot 1: the loader
 * enters `start` in 32-bit protected mode with flat segments, paging and interrupts
 * off. Stack and descriptor tables are whatever the loader left (Multiboot
 * specification 0.6.96, section 3.2), so an image that needs any brings its own.
 */
#ifndef BARE_H
#define BARE_H

#define MULTIBOOT_MAGIC	0x1badb002
#define MULTIBOOT_FLAGS	0

#define PORT_CONSOLE	0x3f8
#define PORT_EXIT	0xf4

#ifdef __ASSEMBLER__

	.section .multiboot, "a"
	.balign 4
	.long	MULTIBOOT_MAGIC
	.long	MULTIBOOT_FLAGS
	.long	-(MULTIBOOT_MAGIC + MULTIBOOT_FLAGS)

	.text
	.code32
	.globl	start

/* End the guest; the VMM's status is value << 1 | 1. Without a test device, halt for good. */
	.macro	EXIT value
	movb	$\value, %al
	outb	%al, $PORT_EXIT
	cli
771:	hlt
	jmp	771b
	.endm

/*
 * A line on the console. Sets the UART to what a polled write needs, whatever was done to it. Uses
 * EAX, EDX, ESI.
 */
	.macro	SAY text
	movw	$(PORT_CONSOLE + 3), %dx
	movb	$3, %al			/* LCR: 8 data bits, no divisor latch */
	outb	%al, %dx
	incw	%dx
	outb	%al, %dx		/* MCR: DTR and RTS, no loop-back */
	movw	$(PORT_CONSOLE + 1), %dx
	xorb	%al, %al		/* IER: no interrupts */
	outb	%al, %dx
	decw	%dx
	movl	$772f, %esi
	jmp	773f
772:	.asciz	"\text\n"
774:	outb	%al, %dx
773:	lodsb
	testb	%al, %al
	jnz	774b
	.endm

#endif /* __ASSEMBLER__ */

#endif
