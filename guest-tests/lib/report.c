// SPDX-License-Identifier: GPL-2.0-only
#include "lib/report.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Letters, digits and the given marks, at least one. */
static bool good_name(const char *s, const char *marks)
{
	if (!*s)
		return false;
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr(marks, *s))
			return false;
	return true;
}

/* A decimal number as the host reads it: no exponent, and not longer than a u64. */
static bool good_number(const char *s)
{
	size_t whole, part = 0;

	if (*s == '-')
		s++;
	whole = strspn(s, "0123456789");
	s += whole;
	if (*s == '.') {
		part = strspn(s + 1, "0123456789");
		if (!part)
			return false;
		s += part + 1;
	}
	return whole > 0 && whole < 21 && part < 10 && !*s;
}

enum report_kind report_check(const char *line, char *clean, size_t size)
{
	char verb[16], a[128], b[128], c[128], extra[2];
	int n = sscanf(line, "%15s %127s %127s %127s %1s", verb, a, b, c, extra);

	if (n < 1)
		return REPORT_BLANK;
	if (n == 1 && !strcmp(verb, "marked"))
		return REPORT_MARKED;
	if (n >= 2 && !strcmp(verb, "warning")) {
		snprintf(clean, size, "%s", line);
		return REPORT_LINE;
	}
	if (n != 4)
		return REPORT_BAD;
	if (!strcmp(verb, "report")) {
		if (!good_name(a, "_.-") || !good_number(b) || !good_name(c, "_.-/%"))
			return REPORT_BAD;
	} else if (!strcmp(verb, "counter")) {
		if (!good_name(a, "_.-/") || !good_name(b, "_.-") || !good_number(c))
			return REPORT_BAD;
	} else {
		return REPORT_BAD;
	}
	snprintf(clean, size, "%s %s %s %s", verb, a, b, c);
	return REPORT_LINE;
}
