/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Snapshots of a booted guest (docs/snapshots.md): its key, the state as bytes, the
 * file, and the cache of files. Only for engines that can save themselves.
 *
 * A file: a header (snapshot.c), the state as sections of core/saver.h, and from the next page
 * on guest RAM, sparse. It is written under another name and renamed when it is whole and on
 * the disk. The state has a checksum; RAM has none, since reading it would cost what the
 * snapshot saves.
 */
#ifndef VMM_SNAPSHOT_H
#define VMM_SNAPSHOT_H

#include "core/saver.h"
#include "vm.h"

/* The cache's size, beyond which its oldest files go. */
#define SNAPSHOT_CACHE_MAX	(8 * GIB)

/* How names of files begin that are being written. */
#define SNAPSHOT_NEW		".new-"

/* What a booted guest comes of, and nothing else, as "name", "value" pairs; and the hash of all of them. */
struct snapshot_key {
	GPtrArray *pairs;	/* char *, twice a pair */
	char digest[65];
};

/* Key of a VM that vm_build() made, before it runs. STATUS_DONE, or reported. */
enum status snapshot_key_init(struct snapshot_key *key, const struct vm *vm, const struct vm_setup *setup);
void snapshot_key_free(struct snapshot_key *key);
/* SHA-256 of a file's contents, as text, "" if it cannot be read. g_free(). */
char *snapshot_file_digest(const char *path);

/* A part of the state that its owner moves himself, in sections of his own: the session's. */
struct snapshot_part {
	void (*transfer)(void *ctx, struct saver *s);
	void *ctx;
};

/*
 * The whole state but RAM of a VM between two turns, and back into the same VM or one
 * with an equal key. snapshot_take() returns NULL, and both leave a sentence in *err (g_free()), if
 * it fails; a VM into which something could not be put is of no use.
 */
GByteArray *snapshot_take(struct vm *vm, const struct snapshot_key *key, const struct snapshot_part *part, char **err);
bool snapshot_put(struct vm *vm, const struct snapshot_key *key, const struct snapshot_part *part, const char *name,
		  const void *data, size_t len, char **err);

/*
 * Write state and RAM to `path`, whose folder exists; in its place there is never a file that is not whole.
 * -errno with *err. *bytes is what it takes on the disk.
 */
int snapshot_write(const struct vm *vm, const GByteArray *state, const char *path, u64 *bytes, char **err);

/* A file that was found whole, of this build, and of this key. */
struct snapshot {
	int fd;
	char *path;
	u8 *state;
	size_t state_len;
	u64 ram_offset;
	u64 ready_ns;		/* the VM's time at which it was taken */
};

enum snapshot_found {
	SNAPSHOT_FOUND,
	SNAPSHOT_MISSING,	/* there is no such file; *err says so */
	SNAPSHOT_OTHER,		/* sound, of another guest or build: *err says what differs */
	SNAPSHOT_DAMAGED,	/* *err says what is wrong */
};

enum snapshot_found snapshot_open(struct snapshot *snap, const char *path, const struct snapshot_key *key,
				  const struct vm *vm, char **err);
/* RAM and state into a VM that has not run. false with *err. */
bool snapshot_load(const struct snapshot *snap, struct vm *vm, const struct snapshot_key *key,
		   const struct snapshot_part *part, char **err);
void snapshot_close(struct snapshot *snap);

/* --- the cache --- */

/* Its folder, made if need be; NULL with *err if that cannot be. g_free(). */
char *snapshot_dir(char **err);
/*
 * The right to make the snapshot of that digest, of one process at a time; it ends
 * with the process or snapshot_unlock(). An fd, -EAGAIN if another has it, or -errno.
 */
int snapshot_lock(const char *dir, const char *digest);
void snapshot_unlock(int fd);
/* Remove the files that were used longest ago, until the rest take at most `max` bytes; `keep` stays. */
void snapshot_trim(const char *dir, const char *keep, u64 max);

#endif
