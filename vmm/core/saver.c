// SPDX-License-Identifier: GPL-2.0-only
#include "core/saver.h"

#include <string.h>

#include "base/log.h"

/* name, version, 0, length */
#define HEADER_LEN	(SAVER_NAME_LEN + 4 + 4 + 8)

void saver_init_save(struct saver *s)
{
	*s = (struct saver){ .out = g_byte_array_new() };
}

void saver_init_load(struct saver *s, const char *file, const void *data, size_t len)
{
	*s = (struct saver){ .loading = true, .file = file, .data = data, .len = len };
}

void saver_destroy(struct saver *s)
{
	if (s->out)
		g_byte_array_unref(s->out);
	g_free(s->err);
	memset(s, 0, sizeof(*s));
}

bool saver_ok(const struct saver *s)
{
	return !s->err;
}

void saver_fail(struct saver *s, const char *fmt, ...)
{
	va_list ap;
	char *what;

	if (s->err)
		return;
	va_start(ap, fmt);
	what = g_strdup_vprintf(fmt, ap);
	va_end(ap);
	if (s->loading)
		s->err = g_strdup_printf("%s: %s%s%s%s: no sound snapshot by this build; --save-snapshot makes one",
					 s->file, *s->section ? "section " : "", s->section,
					 *s->section ? ": " : "", what);
	else
		s->err = g_strdup_printf("a snapshot cannot be made: section %s: %s", s->section, what);
	g_free(what);
}

bool saver_check(struct saver *s, bool ok, const char *what)
{
	if (s->loading && !ok)
		saver_fail(s, "%s makes no sense", what);
	else
		fb_assert(ok);
	return ok;
}

static void put_le(u8 *to, u64 v, u32 size)
{
	for (u32 i = 0; i < size; i++)
		to[i] = (u8)(v >> 8 * i);
}

static u64 get_le(const u8 *from, u32 size)
{
	u64 v = 0;

	for (u32 i = 0; i < size; i++)
		v |= (u64)from[i] << 8 * i;
	return v;
}

/* `len` bytes of the section in hand, or NULL after a failure. */
static const u8 *take(struct saver *s, size_t len)
{
	const u8 *p = s->data + s->pos;

	if (s->err)
		return NULL;
	if (len > s->end - s->pos) {
		saver_fail(s, "it ends too early");
		return NULL;
	}
	s->pos += len;
	return p;
}

static void number(struct saver *s, u64 *v, u32 size)
{
	const u8 *from;
	u8 bytes[8];

	if (s->loading) {
		from = take(s, size);
		*v = from ? get_le(from, size) : 0;
		return;
	}
	fb_assert(*s->section);
	put_le(bytes, *v, size);
	g_byte_array_append(s->out, bytes, size);
}

void saver_begin(struct saver *s, const char *name, u32 version)
{
	u8 header[HEADER_LEN] = { 0 };
	const u8 *from;
	u64 len;

	fb_assert(!*s->section && strlen(name) < SAVER_NAME_LEN);
	strcpy(s->section, name);
	if (!s->loading) {
		memcpy(header, name, strlen(name));
		put_le(header + SAVER_NAME_LEN, version, 4);
		s->start = s->out->len;
		g_byte_array_append(s->out, header, sizeof(header));
		return;
	}
	s->end = s->len;
	from = take(s, HEADER_LEN);
	if (!from)
		return;
	memcpy(header, name, strlen(name));
	if (memcmp(from, header, SAVER_NAME_LEN)) {
		saver_fail(s, "another one is in its place");
		return;
	}
	if (get_le(from + SAVER_NAME_LEN, 4) != version || get_le(from + SAVER_NAME_LEN + 4, 4)) {
		saver_fail(s, "version %u, and this build has %u", (u32)get_le(from + SAVER_NAME_LEN, 4), version);
		return;
	}
	len = get_le(from + SAVER_NAME_LEN + 8, 8);
	if (len > s->len - s->pos)
		saver_fail(s, "it ends too early");
	else
		s->end = s->pos + (size_t)len;
}

void saver_end(struct saver *s)
{
	fb_assert(*s->section);
	if (!s->loading)
		put_le(s->out->data + s->start + HEADER_LEN - 8, s->out->len - s->start - HEADER_LEN, 8);
	else if (!s->err && s->pos != s->end)
		saver_fail(s, "%zu bytes too many", s->end - s->pos);
	*s->section = 0;
}

void saver_finish(struct saver *s)
{
	fb_assert(!*s->section);
	if (s->loading && !s->err && s->pos != s->len)
		saver_fail(s, "%zu bytes behind the last section", s->len - s->pos);
}

void saver_u8(struct saver *s, u8 *v)
{
	u64 wide = *v;

	number(s, &wide, 1);
	*v = (u8)wide;
}

void saver_u16(struct saver *s, u16 *v)
{
	u64 wide = *v;

	number(s, &wide, 2);
	*v = (u16)wide;
}

void saver_u32(struct saver *s, u32 *v)
{
	u64 wide = *v;

	number(s, &wide, 4);
	*v = (u32)wide;
}

void saver_u64(struct saver *s, u64 *v)
{
	number(s, v, 8);
}

void saver_s64(struct saver *s, s64 *v)
{
	u64 bits = (u64)*v;

	number(s, &bits, 8);
	*v = (s64)bits;
}

void saver_bool(struct saver *s, bool *v)
{
	*v = saver_enum(s, *v, 2, "a truth value");
}

u32 saver_enum(struct saver *s, u32 v, u32 nr, const char *what)
{
	u64 wide = v;

	number(s, &wide, 1);
	return saver_check(s, wide < nr, what) ? (u32)wide : 0;
}

void saver_same(struct saver *s, u64 v, const char *what)
{
	u64 there = v;

	number(s, &there, 8);
	if (s->loading && !s->err && there != v)
		saver_fail(s, "%s is %llu there and %llu here", what, (unsigned long long)there,
			   (unsigned long long)v);
}

void saver_bytes(struct saver *s, void *p, size_t len)
{
	const u8 *from;

	if (!s->loading) {
		fb_assert(*s->section && len <= SAVER_MAX_BYTES);
		g_byte_array_append(s->out, p, (guint)len);
		return;
	}
	from = take(s, len);
	if (!len)
		return;
	if (from)
		memcpy(p, from, len);
	else
		memset(p, 0, len);
}

void saver_u32s(struct saver *s, u32 *v, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		saver_u32(s, &v[i]);
}

void saver_u64s(struct saver *s, u64 *v, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		saver_u64(s, &v[i]);
}

u32 saver_count(struct saver *s, u32 nr, u32 max, size_t min_size, const char *what)
{
	saver_u32(s, &nr);
	if (!saver_check(s, nr <= max, what))
		return 0;
	/* Before anybody allocates for them. */
	if (s->loading && !s->err && min_size && nr > (s->end - s->pos) / min_size)
		saver_fail(s, "it ends too early");
	return s->loading && s->err ? 0 : nr;
}

void saver_text(struct saver *s, char **text)
{
	u32 len = *text && !s->loading ? (u32)strlen(*text) : 0;
	bool there = *text;

	saver_bool(s, &there);
	len = saver_count(s, len, SAVER_MAX_BYTES, 1, "a text's length");
	if (!s->loading) {
		if (there)
			saver_bytes(s, *text, len);
		return;
	}
	g_free(*text);
	*text = NULL;
	if (s->err || !saver_check(s, there || !len, "a text's length"))
		return;
	if (there) {
		*text = g_strndup((const char *)s->data + s->pos, len);
		saver_check(s, strlen(*text) == len, "a text with a NUL");
		s->pos += len;
	}
}

void saver_string(struct saver *s, GString *text)
{
	u32 len = saver_count(s, (u32)text->len, SAVER_MAX_BYTES, 1, "a text's length");

	if (s->loading)
		g_string_set_size(text, len);
	saver_bytes(s, text->str, len);
}

void saver_blob(struct saver *s, GByteArray *blob)
{
	u32 len = saver_count(s, blob->len, SAVER_MAX_BYTES, 1, "a length");

	if (s->loading)
		g_byte_array_set_size(blob, len);
	saver_bytes(s, blob->data, len);
}
