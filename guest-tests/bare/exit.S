/* SPDX-License-Identifier: GPL-2.0-only */
/* Leaves at once with value 3: process status 7. */
#include "bare.h"

start:
	SAY	"exit: leaving with 3"
	EXIT	3
