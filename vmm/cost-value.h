/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The numbers of a cost model as text, one at a time: shared by cost-file.c, which reads models, and
 * cost-change.c, which reads a scenario's changes to one. No state; any thread.
 */
#ifndef VMM_COST_VALUE_H
#define VMM_COST_VALUE_H

#include "core/cost.h"

/* Digits with at most one point among them: no sign, exponent, "inf" or hexadecimal. */
bool cost_is_decimal(const char *text);
/* A value with its unit, in the unit of its kind. -EINVAL with *err (g_free()): what is wrong and what would be right. */
int cost_value_parse(const struct cost_desc *d, const char *text, u64 *value, char **err);
/*
 * The same with the range of an estimate behind it: "90ns (63ns..105ns)". Without one *low and *high are *value.
 * -EINVAL also if low, value and high are not in that order.
 */
int cost_estimate_parse(const struct cost_desc *d, const char *text, u64 *value, u64 *low, u64 *high, char **err);
/* Its enum cost_id, or -1. */
int cost_find(const char *name);
/* The key of cost.def nearest to an unknown one, or NULL. */
const char *cost_nearest(const char *name);

#endif
