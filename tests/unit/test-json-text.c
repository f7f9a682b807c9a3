// SPDX-License-Identifier: GPL-2.0-only
#include "json-text.h"

#include <string.h>

/* Every character below a space, in a member's name and in a value, comes out escaped and comes back. */
static void test_controls(void)
{
	for (char c = 1; c < ' '; c++) {
		char raw[] = { 'a', c, 'b', c, '\0' };
		JsonObject *o = json_object_new();
		JsonNode *node = json_node_init_object(json_node_alloc(), o), *back;
		g_autoptr(GError) err = NULL;
		char *text;

		json_object_set_string_member(o, raw, raw);
		text = json_text(node);
		for (const char *p = text; *p; p++)
			g_assert_cmpint((unsigned char)*p, >=, ' ');
		back = json_from_string(text, &err);
		g_assert_no_error(err);
		g_assert_cmpstr(json_object_get_string_member(json_node_get_object(back), raw), ==, raw);
		json_node_unref(back);
		json_node_unref(node);
		json_object_unref(o);
		g_free(text);
	}
}

static void test_plain(void)
{
	JsonNode *node = json_from_string("{\"a\":[1,2.5,\"x\\u001fy\",null]}", NULL);
	char *text = json_text(node);

	g_assert_cmpstr(text, ==, "{\"a\":[1,2.5,\"x\\u001fy\",null]}");
	json_node_unref(node);
	g_free(text);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/json-text/controls", test_controls);
	g_test_add_func("/json-text/plain", test_plain);
	return g_test_run();
}
