/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a load may write to its report descriptor (docs/guest-tests.md), as init
 * checks it before the host sees it. No state.
 */
#ifndef LIB_REPORT_H
#define LIB_REPORT_H

#include "lib/util.h"

enum report_kind {
	REPORT_BLANK,
	REPORT_MARKED,		/* the load marks its own region */
	REPORT_LINE,		/* report, counter or warning: for the host */
	REPORT_BAD,
};

/* What a line is. For REPORT_LINE, clean (of size bytes) has it with single blanks. */
enum report_kind report_check(const char *line, char *clean, size_t size);

#endif
