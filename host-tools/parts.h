/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finished parts of a run (a cell, or one repeat of it) as files beside its result, RESULT.json.parts/KEY.jsonl, so that a run that was
 * ended, by whatever, goes on where it was (faultbed run --resume).
 *
 * The key is a checksum of all that a part's records depend on: every key of its scenario, the contents of kernel, initramfs, disk, cost
 * model and VMM, and the options. So a part of anything else is never taken for this one's. A file has its name only when it is whole
 * and on the disk. Main thread only.
 */
#ifndef HOST_TOOLS_PARTS_H
#define HOST_TOOLS_PARTS_H

#include "job.h"

/*
 * Those of the result at `output`; makes the folder and locks it. NULL (reported) if it cannot be made, or another run is at it: then
 * *status is an enum status.
 */
struct parts *parts_open(const char *output, int *status);
void parts_close(struct parts *p);
/* If this part was finished before: put it into the job. repeat < 0: all repeats of the cell. */
bool parts_take(struct parts *p, struct job *job, u32 cell, int repeat);
/*
 * This part has ended: keep it if there is nothing to be done about how it ended (done, the guest's command failed, the guest died). A
 * file that cannot be written is a warning.
 */
void parts_keep(struct parts *p, const struct job *job, u32 cell, int repeat, int status, const char *records);

#endif
