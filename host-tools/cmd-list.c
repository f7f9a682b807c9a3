// SPDX-License-Identifier: GPL-2.0-only
/* faultbed list: the scenarios there are and what each asks. faultbed kernel: the script that does it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "front.h"
#include "scenario.h"
#include "scenario-keys.h"

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void list_one(const char *path)
{
	struct scenario *s = scenario_load(path, NULL, 0);

	printf("%s\n", path);
	if (!s) {
		printf("    (does not load: see above)\n\n");
		return;
	}

	g_auto(GStrv) lines = g_strsplit(s->question, "\n", -1);

	for (char **l = lines; *l; l++)
		printf("    %s\n", *l);
	if (scenario_cells(s) > 1)
		printf("    %u cells\n", scenario_cells(s));
	printf("\n");
	scenario_free(s);
}

static int list_folder(const char *folder)
{
	g_autoptr(GError) err = NULL;
	GDir *dir = g_dir_open(folder, 0, &err);
	g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
	const char *name;

	if (!dir) {
		fb_err("%s", err->message);
		return STATUS_BAD_INPUT;
	}
	while ((name = g_dir_read_name(dir)))
		if (g_str_has_suffix(name, ".ini"))
			g_ptr_array_add(paths, g_build_filename(folder, name, NULL));
	g_dir_close(dir);
	g_ptr_array_sort(paths, compare_names);
	if (!paths->len)
		printf("no *.ini in %s\n", folder);
	for (u32 i = 0; i < paths->len; i++)
		list_one(paths->pdata[i]);
	return STATUS_DONE;
}

/* A path under the current folder is shown as one would type it. */
static char *default_folder(void)
{
	g_autofree char *home = front_home(), *cwd = g_get_current_dir();
	g_autofree char *folder = g_build_filename(home, "scenarios", NULL);
	size_t len = strlen(cwd);

	if (g_str_has_prefix(folder, cwd) && folder[len] == '/')
		return g_strdup(folder + len + 1);
	return g_steal_pointer(&folder);
}

/* For completion, and for people who look for one. Those of knobs and of [inject] are patterns. */
static int list_keys(void)
{
	for (u32 i = 0; i < scenario_nr_keydesc; i++)
		printf("%s.%s\n", scenario_keydesc[i].section, scenario_keydesc[i].key);
	return fflush(stdout) ? STATUS_BAD_INPUT : STATUS_DONE;
}

int cmd_list(int argc, char **argv)
{
	g_auto(GStrv) folders = NULL;
	gboolean keys = FALSE;
	const GOptionEntry entries[] = { { "keys", 0, 0, G_OPTION_ARG_NONE, &keys, "the keys that scenarios have, instead", NULL },
					 { G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY,
					   &folders, NULL, "[FOLDER]..." },
					 { 0 } };
	g_autoptr(GOptionContext) context = g_option_context_new("- scenarios and what each asks");
	g_autoptr(GError) err = NULL;
	g_autofree char *folder = default_folder();
	int status = STATUS_DONE;

	g_option_context_add_main_entries(context, entries, NULL);
	if (!g_option_context_parse(context, &argc, &argv, &err)) {
		fb_err("%s (faultbed list --help)", err->message);
		return STATUS_BAD_INPUT;
	}
	if (keys)
		return list_keys();
	if (!folders)
		return list_folder(folder);
	for (char **f = folders; *f; f++)
		status = front_worse(status, list_folder(*f));
	return status;
}

int cmd_kernel(int argc, char **argv)
{
	g_autofree char *home = front_home();
	g_autofree char *script = g_build_filename(home, "host-tools", "kernel.sh", NULL);

	argv[0] = script;
	execv(script, argv);
	fb_err("%s: %s", script, g_strerror(errno));
	return STATUS_INTERNAL;
}
