// SPDX-License-Identifier: GPL-2.0-only
#include "cpio.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

void cpio_begin(struct cpio *c, FILE *f)
{
	c->f = f;
	/* Clear of the numbers of an archive before this one: equal numbers could look like hard links. */
	c->ino = 1u << 24;
	c->offset = 0;
	c->folders = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
}

static void put(struct cpio *c, const void *data, size_t len)
{
	/* Errors stay in the stream's own flag until cpio_end(). */
	if (len)
		fwrite(data, 1, len, c->f);
	c->offset += len;
}

static void pad(struct cpio *c)
{
	put(c, "\0\0\0", (4 - c->offset % 4) % 4);
}

static void entry(struct cpio *c, const char *name, u32 mode, const void *data, size_t len)
{
	size_t name_size = strlen(name) + 1;
	g_autofree char *head = g_strdup_printf("070701"
						"%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X"
						"%08X%08X",
						c->ino++, mode, 0, 0, S_ISDIR(mode) ? 2 : 1, 0,
						(u32)len, 0, 0, 0, 0, (u32)name_size, 0);

	put(c, head, strlen(head));
	put(c, name, name_size);
	pad(c);
	put(c, data, len);
	pad(c);
}

void cpio_add_folder(struct cpio *c, const char *path)
{
	while (*path == '/')
		path++;
	if (!*path || !strcmp(path, ".") || g_hash_table_contains(c->folders, path))
		return;

	g_autofree char *parent = g_path_get_dirname(path);

	cpio_add_folder(c, parent);
	entry(c, path, S_IFDIR | 0755, NULL, 0);
	g_hash_table_add(c->folders, g_strdup(path));
}

void cpio_add(struct cpio *c, const char *path, const void *data, size_t len, u32 mode)
{
	while (*path == '/')
		path++;

	g_autofree char *parent = g_path_get_dirname(path);

	cpio_add_folder(c, parent);
	entry(c, path, S_IFREG | mode, data, len);
}

int cpio_add_file(struct cpio *c, const char *path, const char *from, u32 mode)
{
	g_autoptr(GError) err = NULL;
	g_autoptr(GMappedFile) map = g_mapped_file_new(from, FALSE, &err);

	if (!map)
		return -EIO;
	/* The format's sizes have 32 bits. */
	if (g_mapped_file_get_length(map) > UINT32_MAX)
		return -EFBIG;
	cpio_add(c, path, g_mapped_file_get_contents(map), g_mapped_file_get_length(map), mode);
	return 0;
}

int cpio_end(struct cpio *c)
{
	entry(c, "TRAILER!!!", 0, NULL, 0);
	g_hash_table_unref(c->folders);
	return fflush(c->f) || ferror(c->f) ? -EIO : 0;
}
