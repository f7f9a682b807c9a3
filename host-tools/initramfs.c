// SPDX-License-Identifier: GPL-2.0-only
#include "initramfs.h"

#include <string.h>

#include "base/log.h"
#include "front.h"

/* guest.add's "PATH[:GUESTPATH]" with PATH relative to the scenario's folder. */
static char *absolute_item(const struct scenario *s, const char *item)
{
	g_autofree char *dir = g_path_get_dirname(s->path);

	return g_path_is_absolute(item) ? g_strdup(item) : g_build_filename(dir, item, NULL);
}

char *initramfs_with(const char *tmp, const struct scenario *s)
{
	const char *origin = scenario_origin(s, "guest", "add");
	g_autofree char *home = front_home();
	g_autofree char *script = g_build_filename(home, "images", "initramfs-build.sh", NULL);
	g_autofree char *tests = front_build("guest-tests");
	g_autoptr(GPtrArray) argv = g_ptr_array_new_with_free_func(g_free);
	GString *all = g_string_new(NULL);
	g_autoptr(GError) err = NULL;
	int status = 0;

	if (strcmp(scenario_origin(s, "guest", "initrd"), "default") && s->initrd) {
		fb_err("%s: guest.add: files can be added to the project's own initramfs only, not to %s",
		       origin, s->initrd);
		g_string_free(all, TRUE);
		return NULL;
	}
	g_ptr_array_add(argv, g_strdup(script));
	g_ptr_array_add(argv, g_strdup("--guest-tests"));
	g_ptr_array_add(argv, g_steal_pointer(&tests));
	for (u32 i = 0; i < s->add->len; i++) {
		char *item = absolute_item(s, s->add->pdata[i]);

		g_string_append_printf(all, "%s\n", item);
		g_ptr_array_add(argv, g_strdup("--add"));
		g_ptr_array_add(argv, item);
	}

	g_autofree char *sum = g_compute_checksum_for_string(G_CHECKSUM_SHA256, all->str, all->len);
	g_autofree char *name = g_strdup_printf("initramfs-%.16s.cpio", sum);
	char *out = g_build_filename(tmp, name, NULL);

	g_string_free(all, TRUE);
	if (g_file_test(out, G_FILE_TEST_EXISTS))
		return out;
	g_ptr_array_add(argv, g_strdup("-o"));
	g_ptr_array_add(argv, g_strdup(out));
	g_ptr_array_add(argv, NULL);
	if (!g_spawn_sync(NULL, (char **)argv->pdata, NULL, G_SPAWN_DEFAULT, NULL, NULL, NULL, NULL,
			  &status, &err))
		fb_err("%s: %s", script, err->message);
	else if (!g_spawn_check_wait_status(status, NULL))
		fb_err("%s: guest.add: the files could not be put into the initramfs", origin);
	else
		return out;
	g_free(out);
	return NULL;
}
