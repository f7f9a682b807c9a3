/* SPDX-License-Identifier: GPL-2.0-only */
/* Never halts, never leaves guest mode by itself. */
#include "bare.h"

start:
	SAY	"spin: spinning"
	cli
1:	jmp	1b
