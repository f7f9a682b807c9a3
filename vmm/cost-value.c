// SPDX-License-Identifier: GPL-2.0-only
/* The numbers of a cost model as text. */
#include "cost-value.h"

#include <errno.h>
#include <string.h>

#include "base/nearest.h"
#include "scenario-keys.h"

/* The range of a cost as a file would write it. */
static int out_of_range(const struct cost_desc *d, const char *text, char **err)
{
	switch (d->kind) {
	case COST_KIND_CYCLES:
		return scenario_fail(err, "\"%s\" is not between %g and %g cycles", text, d->min, d->max);
	case COST_KIND_NS:
		return scenario_fail(err, "\"%s\" is not between %gns and %gms", text, d->min, d->max / 1e6);
	case COST_KIND_HZ:
		return scenario_fail(err, "\"%s\" is not between %gMHz and %gGHz", text, d->min / 1e6, d->max / 1e9);
	case COST_KIND_PS:
		return scenario_fail(err, "\"%s\" is not between %gns and %.0fns", text, d->min / 1e3, d->max / 1e3);
	case COST_KIND_RATIO:
	case COST_KIND_COUNT:
		break;
	}
	return scenario_fail(err, "\"%s\" is not between %g and %g", text, d->min, d->max);
}

/* Digits with at most one point among them: no sign, exponent, "inf" or hexadecimal. */
bool cost_is_decimal(const char *text)
{
	const char *point = strchr(text, '.');

	return g_ascii_isdigit(*text) && strspn(text, "0123456789.") == strlen(text) &&
	       (!point || (g_ascii_isdigit(point[1]) && !strchr(point + 1, '.')));
}

static int parse_cycles(const struct cost_desc *d, const char *text, u64 *value, char **err)
{
	double cycles;

	if (!cost_is_decimal(text))
		return scenario_fail(err, "\"%s\" is not a number of cycles: decimal and without a unit, like 7 or 0.5", text);
	cycles = g_ascii_strtod(text, NULL);
	if (cycles < d->min || cycles > d->max)
		return out_of_range(d, text, err);
	*value = (u64)(cycles * (double)COST_CYCLE + 0.5);
	if (!*value && cycles > 0)
		return scenario_fail(err, "\"%s\" is nothing: cycles are counted in steps of 1/%llu", text, COST_CYCLE);
	return 0;
}

static int parse_ratio(const struct cost_desc *d, const char *text, u64 *value, char **err)
{
	double ratio;

	if (!cost_is_decimal(text))
		return scenario_fail(err, "\"%s\" is not a ratio: decimal and without a unit, like 1.3", text);
	ratio = g_ascii_strtod(text, NULL);
	if (ratio < d->min || ratio > d->max)
		return out_of_range(d, text, err);
	*value = (u64)(ratio * (double)COST_RATIO + 0.5);
	return 0;
}

int cost_value_parse(const struct cost_desc *d, const char *text, u64 *value, char **err)
{
	int ret = 0;

	switch (d->kind) {
	case COST_KIND_CYCLES:
		return parse_cycles(d, text, value, err);
	case COST_KIND_RATIO:
		return parse_ratio(d, text, value, err);
	case COST_KIND_PS:
		ret = scenario_parse_picoseconds(text, value, err);
		break;
	case COST_KIND_NS:
		ret = scenario_parse_time(text, value, err);
		break;
	case COST_KIND_HZ:
		ret = scenario_parse_frequency(text, value, err);
		break;
	case COST_KIND_COUNT:
		if (!g_ascii_string_to_unsigned(text, 10, 0, UINT32_MAX, value, NULL))
			return scenario_fail(err, "\"%s\" is not a whole number", text);
		break;
	}
	if (!ret && ((double)*value < d->min || (double)*value > d->max))
		return out_of_range(d, text, err);
	return ret;
}

int cost_find(const char *name)
{
	u32 i;

	for (i = 0; i < NR_COSTS; i++)
		if (strcmp(cost_desc[i].name, name) == 0)
			return (int)i;
	return -1;
}

const char *cost_nearest(const char *name)
{
	const char *names[NR_COSTS];
	u32 i;

	for (i = 0; i < NR_COSTS; i++)
		names[i] = cost_desc[i].name;
	return nearest_name(name, names, NR_COSTS);
}

/* "(LOW..HIGH)" into its halves; false if it is not that. */
static bool split_range(const char *text, char **low, char **high)
{
	size_t len = strlen(text);
	const char *dots = strstr(text, "..");

	if (*text != '(' || text[len - 1] != ')' || !dots)
		return false;
	*low = g_strstrip(g_strndup(text + 1, (gsize)(dots - text - 1)));
	*high = g_strstrip(g_strndup(dots + 2, len - (gsize)(dots + 2 - text) - 1));
	return true;
}

int cost_estimate_parse(const struct cost_desc *d, const char *text, u64 *value, u64 *low, u64 *high, char **err)
{
	const char *open = strchr(text, '(');
	g_autofree char *number = open ? g_strchomp(g_strndup(text, (gsize)(open - text))) : g_strdup(text);
	g_autofree char *lo = NULL, *hi = NULL;

	if (open && !split_range(open, &lo, &hi))
		return scenario_fail(err, "\"%s\" is not a value, nor one with the range of an estimate: VALUE (LOW..HIGH)",
				     text);
	if (cost_value_parse(d, number, value, err))
		return -EINVAL;
	*low = *high = *value;
	if (!open)
		return 0;
	if (cost_value_parse(d, lo, low, err) || cost_value_parse(d, hi, high, err))
		return -EINVAL;
	if (*low > *value)
		return scenario_fail(err, "%s is less than the low end of its range, %s", number, lo);
	if (*value > *high)
		return scenario_fail(err, "%s is more than the high end of its range, %s", number, hi);
	return 0;
}
