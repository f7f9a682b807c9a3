// SPDX-License-Identifier: GPL-2.0-only
#include "json-text.h"

#include <string.h>

char *json_text(JsonNode *node)
{
	char *text = json_to_string(node, FALSE), *mended;
	g_auto(GStrv) parts = NULL;

	/* Nothing but the inside of a string can hold this byte. */
	if (!strchr(text, 0x1f))
		return text;
	parts = g_strsplit(text, "\x1f", -1);
	mended = g_strjoinv("\\u001f", parts);
	g_free(text);
	return mended;
}
