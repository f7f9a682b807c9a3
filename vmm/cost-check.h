/* SPDX-License-Identifier: GPL-2.0-only */
/* What cost-file.c and cost-check.c share: whether the values of a cost model fit together. */
#ifndef VMM_COST_CHECK_H
#define VMM_COST_CHECK_H

#include "core/cost.h"
#include "scenario-keys.h"

/*
 * Judge a model whose values are each in range. `keys` are a file's, from which messages take
 * their lines, or NULL, and then they name `origin`. Any thread.
 */
void cost_check_model(const struct cost_model *m, GPtrArray *keys, const char *origin,
		      struct scenario_problems *problems);
/*
 * Judge one that a scenario has changed: values in range, and what the engine relies on, but not what would be
 * odd for a machine. `keys` are the scenario's, `origin` the scenario. Any thread.
 */
void cost_check_change(const struct cost_model *m, GPtrArray *keys, const char *origin,
		       struct scenario_problems *problems);

#endif
