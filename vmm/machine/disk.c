// SPDX-License-Identifier: GPL-2.0-only
#include "machine/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

/* All of [off, off + len), or -errno; -EIO if the file has become shorter. */
static int read_all(int fd, u8 *to, u64 len, u64 off)
{
	while (len) {
		ssize_t n = pread(fd, to, len, (off_t)off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		to += n;
		off += (u64)n;
		len -= (u64)n;
	}
	return 0;
}

/* What an image looks like that is not raw, or NULL. Its first sectors would pass for data. */
static const char *other_format(const struct disk *disk)
{
	static const struct {
		const char *magic;
		u32 len;
		const char *what;
	} known[] = {
		{ "QFI\xfb", 4, "a qcow2 image" },
		{ "KDMV", 4, "a VMDK image" },
		{ "conectix", 8, "a VHD image" },
		{ "vhdxfile", 8, "a VHDX image" },
		{ "<<< ", 4, "a VDI image" },
		{ "\x1f\x8b", 2, "gzip data" },
		{ "\xfd" "7zXZ", 5, "xz data" },
		{ "\x28\xb5\x2f\xfd", 4, "zstd data" },
	};
	u8 head[8] = { 0 };

	if (read_all(disk->fd, head, sizeof(head), 0))
		return NULL;
	for (u32 i = 0; i < ARRAY_SIZE(known); i++)
		if (!memcmp(head, known[i].magic, known[i].len))
			return known[i].what;
	return NULL;
}

int disk_open(struct disk *disk, const char *path, bool read_only)
{
	const char *other;
	struct stat st;
	int ret = 0;

	*disk = (struct disk){ .read_only = read_only };
	/* O_NONBLOCK: a FIFO given by mistake must not hang us. */
	disk->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (disk->fd < 0 || fstat(disk->fd, &st) < 0) {
		ret = -errno;
		fb_err("%s: cannot open the disk image: %s", path, strerror(-ret));
		goto fail;
	}
	ret = -EINVAL;
	if (!S_ISREG(st.st_mode)) {
		fb_err("%s: not a regular file; a disk image must be one", path);
		goto fail;
	}
	if (!st.st_size || st.st_size % DISK_SECTOR) {
		fb_err("%s: %lld bytes; a disk image has one sector of %u bytes or more, and whole ones", path,
		       (long long)st.st_size, DISK_SECTOR);
		goto fail;
	}
	other = other_format(disk);
	if (other) {
		fb_err("%s: %s; a raw one is needed (qemu-img convert -O raw makes it)", path, other);
		goto fail;
	}
	disk->size = (u64)st.st_size;
	disk->path = g_strdup(path);
	disk->written = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
	return 0;
fail:
	if (disk->fd >= 0)
		close(disk->fd);
	disk->fd = -1;
	return ret;
}

void disk_close(struct disk *disk)
{
	if (disk->written) {
		g_hash_table_unref(disk->written);
		close(disk->fd);
	}
	g_free(disk->path);
	*disk = (struct disk){ .fd = -1 };
}

static u8 *written_page(const struct disk *disk, u64 page)
{
	return g_hash_table_lookup(disk->written, &page);
}

int disk_read(const struct disk *disk, u64 off, void *buf, u64 len)
{
	u8 *to = buf;
	int ret;

	fb_assert(len <= disk->size && off <= disk->size - len);
	if (!g_hash_table_size(disk->written))
		return read_all(disk->fd, to, len, off);
	while (len) {
		u64 at = off % PAGE_SIZE, piece = MIN(len, PAGE_SIZE - at);
		const u8 *page = written_page(disk, off / PAGE_SIZE);

		if (page) {
			memcpy(to, page + at, piece);
		} else {
			ret = read_all(disk->fd, to, piece, off);
			if (ret)
				return ret;
		}
		to += piece;
		off += piece;
		len -= piece;
	}
	return 0;
}

/* The guest's copy of a page, made of the file's if need be; the last page can be a part of one. */
static u8 *page_to_write(struct disk *disk, u64 page, int *ret)
{
	u8 *bytes = written_page(disk, page);
	u64 *key;

	if (bytes)
		return bytes;
	bytes = g_malloc0(PAGE_SIZE);
	*ret = read_all(disk->fd, bytes, MIN(PAGE_SIZE, disk->size - page * PAGE_SIZE), page * PAGE_SIZE);
	if (*ret) {
		g_free(bytes);
		return NULL;
	}
	key = g_new(u64, 1);
	*key = page;
	g_hash_table_insert(disk->written, key, bytes);
	return bytes;
}

int disk_write(struct disk *disk, u64 off, const void *buf, u64 len)
{
	const u8 *from = buf;
	int ret = 0;

	fb_assert(!disk->read_only && len <= disk->size && off <= disk->size - len);
	while (len) {
		u64 at = off % PAGE_SIZE, piece = MIN(len, PAGE_SIZE - at);
		u8 *page = page_to_write(disk, off / PAGE_SIZE, &ret);

		if (!page)
			return ret;
		memcpy(page + at, from, piece);
		from += piece;
		off += piece;
		len -= piece;
	}
	return 0;
}

u64 disk_written_bytes(const struct disk *disk)
{
	return (u64)g_hash_table_size(disk->written) * PAGE_SIZE;
}

static int by_number(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

/* The numbers of the pages written, in order: the table's own depends on its history. */
static u64 *sorted_pages(const struct disk *disk, u32 nr)
{
	u64 *pages = g_new(u64, nr + 1);
	GHashTableIter it;
	void *key;
	u32 i = 0;

	g_hash_table_iter_init(&it, disk->written);
	while (i < nr && g_hash_table_iter_next(&it, &key, NULL))
		pages[i++] = *(u64 *)key;
	qsort(pages, nr, sizeof(*pages), by_number);
	return pages;
}

void disk_transfer(struct saver *s, struct disk *disk)
{
	u32 have = g_hash_table_size(disk->written);
	u64 most = DIV_ROUND_UP(disk->size, PAGE_SIZE), *pages;
	u32 nr, i;

	saver_same(s, disk->size, "the disk's size");
	saver_same(s, disk->read_only, "whether the disk is read-only");
	if (!s->loading && (u64)have * PAGE_SIZE > SAVER_MAX_BYTES / 2) {
		saver_fail(s, "the guest has written %u pages of its disk", have);
		return;
	}
	nr = saver_count(s, have, (u32)MIN(most, UINT32_MAX), 8 + PAGE_SIZE, "the number of disk pages written");
	pages = s->loading ? NULL : sorted_pages(disk, nr);
	if (s->loading)
		g_hash_table_remove_all(disk->written);
	for (i = 0; i < nr && (!s->loading || saver_ok(s)); i++) {
		u64 *page = g_new(u64, 1);
		u8 *bytes = s->loading ? g_malloc0(PAGE_SIZE) : written_page(disk, pages[i]);

		*page = s->loading ? 0 : pages[i];
		saver_u64(s, page);
		saver_bytes(s, bytes, PAGE_SIZE);
		if (s->loading && saver_ok(s) && saver_check(s, *page < most && !written_page(disk, *page), "a disk page")) {
			g_hash_table_insert(disk->written, page, bytes);
			continue;
		}
		g_free(page);
		if (s->loading)
			g_free(bytes);
	}
	g_free(pages);
}
