// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sizes and times as a scenario writes them: always with a unit, because a bare
 * number would mean bytes to one reader and pages to the next.
 */
#include <errno.h>
#include <string.h>

#include "base/nearest.h"
#include "scenario-keys.h"

int scenario_fail(char **err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	*err = g_strdup_vprintf(fmt, ap);
	va_end(ap);
	return -EINVAL;
}

struct unit {
	const char *name;
	u64 factor;
};

static const struct unit size_units[] = {
	/* Bytes last: the hint takes the first of equals, and "GB" is to become GiB. */
	{ "KiB", KIB }, { "MiB", MIB }, { "GiB", GIB }, { "TiB", GIB * 1024 }, { "B", 1 },
};

static const struct unit time_units[] = {
	{ "ns", 1 }, { "us", NSEC_PER_USEC }, { "ms", NSEC_PER_MSEC }, { "s", NSEC_PER_SEC },
};

/* In picoseconds; a whole second is none of the times that are so short. */
static const struct unit short_time_units[] = {
	{ "ns", 1000 }, { "us", 1000 * NSEC_PER_USEC }, { "ms", 1000 * NSEC_PER_MSEC },
};

static const struct unit frequency_units[] = {
	{ "GHz", 1000000000 }, { "MHz", 1000000 }, { "kHz", 1000 }, { "Hz", 1 },
};

static int unit_fail(char **err, const char *text, const char *unit, const struct unit *units,
		     u32 nr, const char *example)
{
	const char *names[8];
	g_autofree char *list = g_strdup("");

	for (u32 i = 0; i < nr; i++) {
		char *more = g_strdup_printf("%s%s%s", list, i ? ", " : "", units[i].name);

		names[i] = units[i].name;
		g_free(list);
		list = more;
	}
	if (!*unit)
		return scenario_fail(err, "\"%s\" has no unit: write it like %s (units are %s)",
				     text, example, list);

	const char *near = nearest_name(unit, names, nr);

	return scenario_fail(err, "\"%s\" has the unknown unit \"%s\"%s%s%s (units are %s)", text,
			     unit, near ? "; did you mean " : "", near ? near : "", near ? "?" : "",
			     list);
}

static const struct unit *unit_find(const char *name, const struct unit *units, u32 nr)
{
	for (u32 i = 0; i < nr; i++)
		if (!strcmp(units[i].name, name))
			return &units[i];
	return NULL;
}

int scenario_parse_size(const char *text, u64 *bytes, char **err)
{
	const char *p = text;
	u64 n = 0;

	while (g_ascii_isdigit(*p)) {
		if (n > (UINT64_MAX - 9) / 10)
			return scenario_fail(err, "\"%s\" is too large", text);
		n = n * 10 + (u64)(*p++ - '0');
	}
	if (p == text || *p == '.')
		return scenario_fail(
			err,
			"\"%s\" is not a size: a whole number and its unit, like 2GiB or 512MiB",
			text);
	/* Zero is zero in every unit. */
	if (!n && !*p) {
		*bytes = 0;
		return 0;
	}

	const struct unit *u = unit_find(p, size_units, ARRAY_SIZE(size_units));

	if (!u)
		return unit_fail(err, text, p, size_units, ARRAY_SIZE(size_units), "2GiB");
	if (n > UINT64_MAX / u->factor)
		return scenario_fail(err, "\"%s\" is too large", text);
	*bytes = n * u->factor;
	return 0;
}

/* A decimal number and its unit, as whole units of 1. `what` is like "a time". */
static int parse_decimal(const char *text, const struct unit *units, u32 nr, const char *what,
			 const char *example, u64 *out, char **err)
{
	u64 whole = 0, fraction = 0, scale = 1;
	const char *p = text;

	while (g_ascii_isdigit(*p) && whole < UINT64_MAX / 100)
		whole = whole * 10 + (u64)(*p++ - '0');
	if (p == text)
		return scenario_fail(err, "\"%s\" is not %s: a number and its unit, like %s", text,
				     what, example);
	if (*p == '.') {
		const char *dot = p++;

		while (g_ascii_isdigit(*p) && scale < NSEC_PER_SEC) {
			fraction = fraction * 10 + (u64)(*p++ - '0');
			scale *= 10;
		}
		if (p == dot + 1)
			return scenario_fail(err, "\"%s\" has no digit after the point", text);
	}

	const struct unit *u = unit_find(p, units, nr);

	if (!u)
		return unit_fail(err, text, p, units, nr, example);
	if (whole > UINT64_MAX / 2 / u->factor)
		return scenario_fail(err, "\"%s\" is too large", text);
	*out = whole * u->factor + fraction * u->factor / scale;
	return 0;
}

int scenario_parse_time(const char *text, u64 *ns, char **err)
{
	return parse_decimal(text, time_units, ARRAY_SIZE(time_units), "a time", "50ms", ns, err);
}

int scenario_parse_frequency(const char *text, u64 *hz, char **err)
{
	return parse_decimal(text, frequency_units, ARRAY_SIZE(frequency_units), "a frequency",
			     "2.8GHz", hz, err);
}

int scenario_parse_picoseconds(const char *text, u64 *ps, char **err)
{
	int ret = parse_decimal(text, short_time_units, ARRAY_SIZE(short_time_units), "a time", "1.5ns", ps, err);

	/* Not zero and yet nothing: a digit that the writer meant would be lost. */
	if (!ret && !*ps && strpbrk(text, "123456789"))
		return scenario_fail(err, "\"%s\" is nothing: such times are counted in steps of 0.001ns", text);
	return ret;
}
