/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The VMM's records: one JSON object a line (docs/records.md), each written and
 * flushed whole, so that what was measured survives what comes after it.
 */
#ifndef VMM_RECORD_H
#define VMM_RECORD_H

#include <json-glib/json-glib.h>

#include "sample.h"

/* A record in the making: an object whose members keep their order. */
JsonObject *record_new(const char *kind, const char *cell);
/* Write as one line to fd and free. -errno, reported. */
int record_write(JsonObject *record, int fd);

/*
 * Everything two samples differ by: counters, na, matrices, histograms into
 * `record`. `proc` are the guest's own lines "SOURCE NAME VALUE" (docs/records.md).
 */
void record_difference(JsonObject *record, struct vm *vm, const struct sample *from, const struct sample *to,
		       GPtrArray *proc);

#endif
