/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Jumps to device memory. No engine can fetch code from a device: the guest is
 * beyond help, and the host must say so.
 */
#include "bare.h"

start:
	SAY	"mmio-exec: jumping to 0xd0000000"
	movl	$0xd0000000, %eax
	jmp	*%eax
