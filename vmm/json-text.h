/* SPDX-License-Identifier: GPL-2.0-only */
/* JSON as text that every parser takes. No state; any thread. */
#ifndef VMM_JSON_TEXT_H
#define VMM_JSON_TEXT_H

#include <json-glib/json-glib.h>

/*
 * json_to_string() without its gap: json-glib 1.6 leaves U+001F in strings as it
 * is, which RFC 8259 section 7 forbids, and strict parsers then refuse the whole text. A
 * guest can print anything. g_free().
 */
char *json_text(JsonNode *node);

#endif
