// SPDX-License-Identifier: GPL-2.0-only
/* What a snapshot holds, and its file. The key and the cache are in snapshot-cache.c. */
#define _GNU_SOURCE
#include "snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "core/memory-file.h"
#include "machine/machine-state.h"

/*
 * The header, little-endian: magic, version u32, 0 u32, length of the state u64, offset
 * of RAM u64, size of RAM u64, SHA-256 of all before it and of the state.
 */
#define SNAPSHOT_MAGIC		"FAULTBED-SNAP\r\n\x1a"
#define SNAPSHOT_VERSION	1u
#define HEADER_VERSION		16
#define HEADER_STATE_LEN	24
#define HEADER_RAM_OFFSET	32
#define HEADER_RAM_SIZE		40
#define HEADER_DIGEST		48
#define HEADER_LEN		80
#define DIGEST_LEN		32
#define MAX_PAIRS		64u

_Static_assert(sizeof(SNAPSHOT_MAGIC) - 1 == HEADER_VERSION, "sixteen bytes");

/* --- the state --- */

static void transfer_key(struct saver *s, const struct snapshot_key *key)
{
	u32 nr = key->pairs->len, i;

	saver_begin(s, "key", 1);
	nr = saver_count(s, nr, MAX_PAIRS * 2, 5, "the key's size");
	for (i = 0; i < nr; i++) {
		char *text = s->loading ? NULL : key->pairs->pdata[i];

		saver_text(s, &text);
		if (s->loading) {
			saver_check(s, i < key->pairs->len && g_strcmp0(text, key->pairs->pdata[i]) == 0, "the key");
			g_free(text);
		}
	}
	saver_end(s);
}

/* When it was taken: read alone by snapshot_open(). */
static void transfer_moment(struct saver *s, u64 *ready_ns)
{
	saver_begin(s, "moment", 1);
	saver_u64(s, ready_ns);
	saver_end(s);
}

static void transfer_vcpu_engine(struct saver *s, struct vcpu *vcpu, GByteArray *blob)
{
	const struct engine_ops *engine = vcpu->vm->engine;

	g_byte_array_set_size(blob, 0);
	if (!s->loading && engine->save(vcpu, blob))
		saver_fail(s, "vCPU %u", vcpu->id);
	saver_blob(s, blob);
	if (s->loading && saver_ok(s))
		saver_check(s, engine->restore(vcpu, blob->data, blob->len) == 0, "a vCPU's state");
}

static void transfer_engine(struct saver *s, struct vm *vm)
{
	GByteArray *blob = g_byte_array_new();
	u32 i;

	saver_begin(s, "engine", 1);
	if (!s->loading && vm->engine->vm_save(vm, blob))
		saver_fail(s, "the VM");
	saver_blob(s, blob);
	if (s->loading && saver_ok(s))
		saver_check(s, vm->engine->vm_restore(vm, blob->data, blob->len) == 0, "the VM's state");
	saver_end(s);
	saver_begin(s, "engine-vcpus", 1);
	for (i = 0; i < vm->topo.nr_cpus && saver_ok(s); i++)
		transfer_vcpu_engine(s, vm->vcpu[i], blob);
	saver_end(s);
	g_byte_array_unref(blob);
}

static void transfer_all(struct saver *s, struct vm *vm, const struct snapshot_key *key,
			 const struct snapshot_part *part)
{
	u64 ready_ns = vm->frontier;

	transfer_key(s, key);
	transfer_moment(s, &ready_ns);
	transfer_engine(s, vm);
	machine_transfer(s, vm);
	part->transfer(part->ctx, s);
	saver_finish(s);
}

GByteArray *snapshot_take(struct vm *vm, const struct snapshot_key *key, const struct snapshot_part *part, char **err)
{
	GByteArray *out;
	struct saver s;

	saver_init_save(&s);
	transfer_all(&s, vm, key, part);
	out = s.err ? NULL : g_byte_array_ref(s.out);
	*err = g_strdup(s.err);
	saver_destroy(&s);
	return out;
}

bool snapshot_put(struct vm *vm, const struct snapshot_key *key, const struct snapshot_part *part, const char *name,
		  const void *data, size_t len, char **err)
{
	struct saver s;
	bool ok;

	saver_init_load(&s, name, data, len);
	transfer_all(&s, vm, key, part);
	ok = saver_ok(&s);
	*err = g_strdup(s.err);
	saver_destroy(&s);
	return ok;
}

/* --- the file --- */

static void put_u64(u8 *to, u64 v)
{
	for (u32 i = 0; i < 8; i++)
		to[i] = (u8)(v >> 8 * i);
}

static u64 get_u64(const u8 *from)
{
	u64 v = 0;

	for (u32 i = 0; i < 8; i++)
		v |= (u64)from[i] << 8 * i;
	return v;
}

static void header_digest(const u8 *header, const u8 *state, size_t len, u8 *digest)
{
	GChecksum *sum = g_checksum_new(G_CHECKSUM_SHA256);
	gsize size = DIGEST_LEN;

	g_checksum_update(sum, header, HEADER_DIGEST);
	g_checksum_update(sum, state, (gssize)len);
	g_checksum_get_digest(sum, digest, &size);
	g_checksum_free(sum);
}

static u64 ram_offset_of(u64 state_len)
{
	return ALIGN_UP(HEADER_LEN + state_len, PAGE_SIZE);
}

static int write_all(int fd, const u8 *data, size_t len, u64 offset)
{
	while (len) {
		ssize_t n = pwrite(fd, data, len, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		data += n;
		offset += (u64)n;
		len -= (size_t)n;
	}
	return 0;
}

static int write_parts(int fd, const struct vm *vm, const GByteArray *state)
{
	u8 header[HEADER_LEN] = SNAPSHOT_MAGIC;
	u64 written = 0;
	int err;

	header[HEADER_VERSION] = SNAPSHOT_VERSION;
	put_u64(header + HEADER_STATE_LEN, state->len);
	put_u64(header + HEADER_RAM_OFFSET, ram_offset_of(state->len));
	put_u64(header + HEADER_RAM_SIZE, vm->mem.size);
	header_digest(header, state->data, state->len, header + HEADER_DIGEST);
	err = write_all(fd, header, sizeof(header), 0);
	if (!err)
		err = write_all(fd, state->data, state->len, HEADER_LEN);
	if (!err)
		err = memory_save(&vm->mem, fd, ram_offset_of(state->len), &written);
	/* RAM has no checksum: a name must not be on the disk before what it names. */
	if (!err && fdatasync(fd) < 0)
		err = -errno;
	return err;
}

int snapshot_write(const struct vm *vm, const GByteArray *state, const char *path, u64 *bytes, char **err)
{
	char *dir = g_path_get_dirname(path), *tmp = g_build_filename(dir, SNAPSHOT_NEW "XXXXXX", NULL);
	int fd = g_mkstemp_full(tmp, O_RDWR | O_CLOEXEC, 0600), ret;
	struct stat st;

	ret = fd < 0 ? -errno : write_parts(fd, vm, state);
	if (!ret && fstat(fd, &st) == 0)
		*bytes = (u64)st.st_blocks * 512;
	if (!ret && rename(tmp, path) < 0)
		ret = -errno;
	if (ret) {
		*err = g_strdup_printf("%s: the snapshot cannot be written: %s", path, g_strerror(-ret));
		if (fd >= 0)
			unlink(tmp);
	}
	if (fd >= 0)
		close(fd);
	g_free(tmp);
	g_free(dir);
	return ret;
}

static enum snapshot_found damaged(const char *path, const char *what, char **err)
{
	*err = g_strdup_printf("%s: %s: no sound snapshot; --save-snapshot makes one", path, what);
	return SNAPSHOT_DAMAGED;
}

static bool read_all(int fd, u8 *to, size_t len, off_t offset)
{
	while (len) {
		ssize_t n = pread(fd, to, len, offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		to += n;
		offset += n;
		len -= (size_t)n;
	}
	return true;
}

/* The first pair that is not the same there; NULL if none. Also finds the moment. */
static char *key_difference(struct snapshot *snap, const struct snapshot_key *key, char **err)
{
	char *name = NULL, *value = NULL, *differs = NULL;
	struct saver s;
	u32 nr, i;

	saver_init_load(&s, snap->path, snap->state, snap->state_len);
	saver_begin(&s, "key", 1);
	nr = saver_count(&s, 0, MAX_PAIRS * 2, 5, "the key's size");
	if (saver_ok(&s) && nr != key->pairs->len)
		differs = g_strdup("it has another kind of key");
	for (i = 0; !differs && i + 1 < nr && saver_ok(&s); i += 2) {
		saver_text(&s, &name);
		saver_text(&s, &value);
		if (saver_ok(&s) && (g_strcmp0(name, key->pairs->pdata[i]) || g_strcmp0(value, key->pairs->pdata[i + 1])))
			differs = g_strdup_printf("%s is \"%s\" there and \"%s\" here", (char *)key->pairs->pdata[i],
						  value ? value : "", (char *)key->pairs->pdata[i + 1]);
	}
	if (!differs) {
		saver_end(&s);
		transfer_moment(&s, &snap->ready_ns);
	}
	if (!saver_ok(&s))
		*err = g_strdup(s.err);
	g_free(name);
	g_free(value);
	saver_destroy(&s);
	return differs;
}

/* snap->fd is open. */
static enum snapshot_found snapshot_check(struct snapshot *snap, const struct snapshot_key *key, const struct vm *vm,
					  char **err)
{
	u8 header[HEADER_LEN], digest[DIGEST_LEN];
	char *differs;
	struct stat st;

	if (fstat(snap->fd, &st) < 0 || !S_ISREG(st.st_mode) || !read_all(snap->fd, header, sizeof(header), 0) ||
	    memcmp(header, SNAPSHOT_MAGIC, HEADER_VERSION))
		return damaged(snap->path, "it does not begin like one", err);
	if (get_u64(header + HEADER_VERSION) != SNAPSHOT_VERSION)
		return damaged(snap->path, "another version of the format", err);
	snap->state_len = get_u64(header + HEADER_STATE_LEN);
	snap->ram_offset = get_u64(header + HEADER_RAM_OFFSET);
	if (snap->state_len > SAVER_MAX_BYTES || snap->ram_offset != ram_offset_of(snap->state_len) ||
	    get_u64(header + HEADER_RAM_SIZE) > (u64)INT64_MAX - snap->ram_offset ||
	    (u64)st.st_size != snap->ram_offset + get_u64(header + HEADER_RAM_SIZE))
		return damaged(snap->path, "it does not have the length that it should have", err);
	snap->state = g_malloc(snap->state_len);
	if (!read_all(snap->fd, snap->state, snap->state_len, HEADER_LEN))
		return damaged(snap->path, "it cannot be read", err);
	header_digest(header, snap->state, snap->state_len, digest);
	if (memcmp(digest, header + HEADER_DIGEST, DIGEST_LEN))
		return damaged(snap->path, "its checksum is wrong", err);
	differs = key_difference(snap, key, err);
	if (*err)
		return SNAPSHOT_DAMAGED;
	if (!differs && get_u64(header + HEADER_RAM_SIZE) != vm->mem.size)
		differs = g_strdup("the size of guest RAM differs");
	if (!differs)
		return SNAPSHOT_FOUND;
	*err = g_strdup_printf("%s: a snapshot of another guest: %s", snap->path, differs);
	g_free(differs);
	return SNAPSHOT_OTHER;
}

enum snapshot_found snapshot_open(struct snapshot *snap, const char *path, const struct snapshot_key *key,
				  const struct vm *vm, char **err)
{
	enum snapshot_found found;

	*snap = (struct snapshot){ .fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), .path = g_strdup(path) };
	*err = NULL;
	if (snap->fd < 0) {
		found = errno == ENOENT ? SNAPSHOT_MISSING : SNAPSHOT_DAMAGED;
		*err = g_strdup_printf("%s: %s", path, g_strerror(errno));
	} else {
		found = snapshot_check(snap, key, vm, err);
	}
	if (found != SNAPSHOT_FOUND)
		snapshot_close(snap);
	else
		/* "Used now", for snapshot_trim(); not ours to say of somebody else's file. */
		(void)!futimens(snap->fd, NULL);
	return found;
}

bool snapshot_load(const struct snapshot *snap, struct vm *vm, const struct snapshot_key *key,
		   const struct snapshot_part *part, char **err)
{
	int ret = memory_map_file(&vm->mem, snap->fd, snap->ram_offset);

	if (ret) {
		*err = g_strdup_printf("%s: guest RAM cannot be mapped: %s", snap->path, g_strerror(-ret));
		return false;
	}
	return snapshot_put(vm, key, part, snap->path, snap->state, snap->state_len, err);
}

void snapshot_close(struct snapshot *snap)
{
	if (snap->fd >= 0)
		close(snap->fd);
	g_free(snap->path);
	g_free(snap->state);
	*snap = (struct snapshot){ .fd = -1 };
}
