/* SPDX-License-Identifier: GPL-2.0-only */
/* An exception without a handler, nor has the double fault one: the CPU shuts down. */
#include "bare.h"

start:
	SAY	"triple-fault: now"
	lidt	no_idt
	ud2
1:	hlt
	jmp	1b

	.data
no_idt:
	.word	0
	.long	0
