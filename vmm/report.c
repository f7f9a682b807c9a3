// SPDX-License-Identifier: GPL-2.0-only
/* Names and values that a guest reports. */
#include "report.h"

#include <errno.h>
#include <math.h>
#include <string.h>

bool report_name_ok(const char *name)
{
	size_t len = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-");

	return len && len <= 64 && !name[len];
}

JsonNode *report_value(const char *text)
{
	JsonNode *node = json_node_new(JSON_NODE_VALUE);
	const char *digits = text + (*text == '-');
	char *end;

	errno = 0;
	if (*digits && strspn(digits, "0123456789") == strlen(digits)) {
		json_node_set_int(node, g_ascii_strtoll(text, NULL, 10));
		if (!errno)
			return node;
	} else if (strspn(text, "0123456789+-.eE") == strlen(text)) {
		double value = g_ascii_strtod(text, &end);

		json_node_set_double(node, value);
		if (end != text && !*end && isfinite(value))
			return node;
	}
	json_node_free(node);
	return NULL;
}
