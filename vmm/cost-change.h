/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A scenario's [cost]: numbers of the cost model that it changes, key by key. For questions of the form
 * "what if this number were another": how far a result hangs on an estimate, or on a suspected cause.
 *
 *   KEY = VALUE     as a cost model writes it
 *   KEY = *FACTOR   so many times what the model has
 *   KEY = low       the low end of the model's range; the number itself where the model gives none, that is, where it
 *   KEY = high      is no estimate
 *   quantum = auto  the shortest way of a line between two cores, in whole ns
 *
 * Used by the scenario reader, the VMM and the front end. No state; any thread.
 */
#ifndef VMM_COST_CHANGE_H
#define VMM_COST_CHANGE_H

#include "core/cost.h"
#include "scenario.h"

/* Is there such a key? If not, *err (g_free()) names the nearest. */
bool cost_change_known(const char *key, char **err);
/* Is this the form of a change to it? What it comes to depends on the model. -EINVAL with *err (g_free()). */
int cost_change_form(const char *key, const char *value, char **err);
/*
 * Make the changes of a scenario to a model. The digest becomes one of model and changes, if they changed anything. Values must be
 * within what the engine takes; that near is not slower than far is not asked for, since a change is an experiment. Every
 * problem is reported with its line; then -EINVAL.
 */
int cost_change(struct cost_model *model, const struct scenario *s);

#endif
