// SPDX-License-Identifier: GPL-2.0-only
/* What the guests of all peers have in common. */
#include "peer-vm.h"

#include <glib/gstdio.h>
#include <string.h>
#include <sys/un.h>

#include "base/log.h"
#include "peer.h"

/* Behind the folder come a slash and one of our sockets' names, of which none is longer than this one. */
#define PEER_FOLDER_MAX	(sizeof(((struct sockaddr_un *)NULL)->sun_path) - sizeof("/" PEER_CONSOLE))

const struct peer_ops *peer_ops(enum scenario_engine engine)
{
	return engine == ENGINE_QEMU ? &peer_qemu : engine == ENGINE_LIBVIRT ? &peer_libvirt : NULL;
}

int peer_prepare(const struct job *job)
{
	int status = STATUS_DONE;

	for (u32 i = 0; i < job->cells->len; i++) {
		const struct cell *cell = job->cells->pdata[i];
		g_autofree struct topology *topo = g_new0(struct topology, 1);

		status = front_worse(status, (int)peer_check(cell->scenario, engine_name(job->engine)));
		status = front_worse(status, (int)peer_topology(cell->scenario, topo));
		if (status)
			return status;
	}
	return status;
}

void peer_add_options(const struct peer_vm *p, GPtrArray *argv)
{
	g_ptr_array_add(argv, g_strdup("--attach"));
	g_ptr_array_add(argv, g_strdup(p->folder));
	for (u32 i = 0; i < p->ram->len; i++) {
		g_ptr_array_add(argv, g_strdup("--ram"));
		g_ptr_array_add(argv, g_strdup(p->ram->pdata[i]));
	}
}

char *peer_make_folder(void)
{
	g_autoptr(GError) err = NULL;
	g_autofree char *folder = g_dir_make_tmp("faultbed-XXXXXX", &err);

	if (!folder) {
		fb_err("no folder for QEMU's sockets: %s", err->message);
		return NULL;
	}
	if (strlen(folder) <= PEER_FOLDER_MAX)
		return g_steal_pointer(&folder);
	fb_err("%s: QEMU's sockets lie there, and their addresses have room for a folder of %zu bytes: a shorter TMPDIR", folder,
	       PEER_FOLDER_MAX);
	g_rmdir(folder);
	return NULL;
}

void peer_remove_folder(const char *folder)
{
	GDir *dir = g_dir_open(folder, 0, NULL);
	const char *name;

	while (dir && (name = g_dir_read_name(dir))) {
		g_autofree char *file = g_build_filename(folder, name, NULL);

		g_unlink(file);
	}
	if (dir)
		g_dir_close(dir);
	g_rmdir(folder);
}

char *peer_node_cpus(const struct topology *topo, u32 node, const char *separator)
{
	GString *text = g_string_new(NULL);

	for (u32 i = 0; i < topo->nr_cpus; i++) {
		u32 last = i;

		if (topo->cpu[i].node != node)
			continue;
		while (last + 1 < topo->nr_cpus && topo->cpu[last + 1].node == node)
			last++;
		g_string_append_printf(text, last > i ? "%s%u-%u" : "%s%u", text->len ? separator : "", i, last);
		i = last;
	}
	return g_string_free(text, FALSE);
}
