/* SPDX-License-Identifier: GPL-2.0-only */
/* Checks of the control protocol's `report NAME VALUE UNIT`: a guest may send anything. No state. */
#ifndef VMM_REPORT_H
#define VMM_REPORT_H

#include <json-glib/json-glib.h>
#include <stdbool.h>

/* Names go into tables and other programs: 1 to 64 letters, digits and "_.-". */
bool report_name_ok(const char *name);
/* A decimal integer that fits into 64 bits, else a finite decimal number, as a node to json_node_free(); else NULL. */
JsonNode *report_value(const char *text);

#endif
