/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Cost models as files, cost-models/NAME.ini: a section [cost] with every COST() of
 * core/cost.def exactly once, and, where caches are modelled, [memory] with every MEMORY(). Used by the VMM, which runs with one, and the
 * front end, which finds it and says what is wrong before anything runs.
 */
#ifndef VMM_COST_FILE_H
#define VMM_COST_FILE_H

#include "core/cost.h"

/*
 * Read and check a model. Every problem is reported with fb_err() as FILE:LINE and what would
 * be right, all of them; then -EINVAL. The model's name is the file's without .ini. Any thread.
 */
int cost_file_load(const char *path, struct cost_model *model);
/*
 * Are the values in range, and do they fit together? Reported as ORIGIN: ... ; -EINVAL. For models that come from
 * elsewhere than a file; cost_file_load() does it itself.
 */
int cost_check(const struct cost_model *model, const char *origin);

#endif
