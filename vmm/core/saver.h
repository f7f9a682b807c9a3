/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A serialiser for snapshots: named, versioned, length-prefixed sections of
 * little-endian values. One function for each struct serves both directions: a
 * saver either writes or reads, and saver_u32(s, &x) moves x the one way or the
 * other, so that what is written and what is read cannot differ.
 *
 * What is read is checked against the end of its section and, by the caller,
 * against what makes sense. The first failure is kept as a sentence with file and
 * section; from then on every read gives zeroes and does no harm, so callers look
 * once, at the end. A length or count that was read is never above its limit, and
 * 0 after a failure. Not locked: one thread.
 *
 *   section: name[32], version u32, 0 u32, length u64, then `length` bytes
 */
#ifndef CORE_SAVER_H
#define CORE_SAVER_H

#include <glib.h>

#include "base/types.h"

#define SAVER_NAME_LEN		32u	/* with the final NUL */
#define SAVER_MAX_BYTES		(1u << 30)

struct saver {
	bool loading;		/* (c) */
	char *err;		/* the first failure, NULL if none */
	char section[SAVER_NAME_LEN];	/* the one in hand, "" between two */
	GByteArray *out;	/* saving: all so far */
	size_t start;		/* saving: where the section in hand begins */
	const char *file;	/* loading: name for messages */
	const u8 *data;		/* loading */
	size_t len, pos, end;	/* loading: of all, next byte, end of the section in hand */
};

void saver_init_save(struct saver *s);
/* `data` and `file` stay the caller's and are used until saver_destroy(). */
void saver_init_load(struct saver *s, const char *file, const void *data, size_t len);
/* s->out is the caller's with a reference of its own. */
void saver_destroy(struct saver *s);
/* Has nothing failed so far? */
bool saver_ok(const struct saver *s);
/* Keep the failure as "FILE: section NAME: ..." with what to do about it; later ones are dropped. */
void saver_fail(struct saver *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The value read must make sense: fails with `what` if not. Saving: an assertion. Returns ok. */
bool saver_check(struct saver *s, bool ok, const char *what);

/*
 * Begin a section, `name` of at most 31 bytes. Loading: the next one must have this
 * name and version. Sections do not nest.
 */
void saver_begin(struct saver *s, const char *name, u32 version);
/* End it. Loading: every byte of it must have been read. */
void saver_end(struct saver *s);
/* Loading: no section may follow. */
void saver_finish(struct saver *s);

void saver_u8(struct saver *s, u8 *v);
void saver_u16(struct saver *s, u16 *v);
void saver_u32(struct saver *s, u32 *v);
void saver_u64(struct saver *s, u64 *v);
void saver_s64(struct saver *s, s64 *v);
/* 0 or 1; another byte fails. */
void saver_bool(struct saver *s, bool *v);
/* An enum's value below `nr`: v = saver_enum(s, v, NR_THINGS, "state"). */
u32 saver_enum(struct saver *s, u32 v, u32 nr, const char *what);
/* A value that the file must share with the VM as it was built, such as its number of vCPUs. */
void saver_same(struct saver *s, u64 v, const char *what);
/* `len` bytes as they are. */
void saver_bytes(struct saver *s, void *p, size_t len);
void saver_u32s(struct saver *s, u32 *v, size_t nr);
void saver_u64s(struct saver *s, u64 *v, size_t nr);
/* How many elements follow, at most `max`, each of at least `min_size` bytes. */
u32 saver_count(struct saver *s, u32 nr, u32 max, size_t min_size, const char *what);
/* A NUL-terminated string, or NULL. Loading frees the old one; after a failure it is NULL. */
void saver_text(struct saver *s, char **text);
/* The same for a GString and a GByteArray, which loading fills anew. */
void saver_string(struct saver *s, GString *text);
void saver_blob(struct saver *s, GByteArray *blob);

#endif
