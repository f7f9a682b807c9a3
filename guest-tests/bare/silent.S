/* SPDX-License-Identifier: GPL-2.0-only */
/* Touches no device at all and halts: a guest with no last words. */
#include "bare.h"

start:
	cli
1:	hlt
	jmp	1b
