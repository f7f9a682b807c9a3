/* SPDX-License-Identifier: GPL-2.0-only */
/* Halts with interrupts off: nothing can wake it. */
#include "bare.h"

start:
	SAY	"cli-hlt: halting"
	cli
1:	hlt
	jmp	1b
