// SPDX-License-Identifier: GPL-2.0-only
/* Round trips, and files that are cut off or altered at every place. */
#include <glib.h>
#include <string.h>

#include "core/saver.h"

/* One of everything. */
struct things {
	u8 a;
	u16 b;
	u32 c;
	u64 d;
	s64 e;
	bool f;
	u32 kind;
	u8 raw[5];
	u32 words[3];
	u64 longs[2];
	u32 nr;
	u64 list[4];
	char *text, *none;
	GString *string;
	GByteArray *blob;
};

static void things_init(struct things *t, bool filled)
{
	*t = (struct things){ .string = g_string_new("old"), .blob = g_byte_array_new() };
	if (!filled) {
		t->text = g_strdup("old");
		t->none = g_strdup("old");
		return;
	}
	*t = (struct things){
		.a = 0xfe, .b = 0xfedc, .c = 0xfedcba98, .d = 0xfedcba9876543210, .e = -5, .f = true, .kind = 2,
		.raw = { 1, 2, 3, 4, 5 }, .words = { 1, 0xffffffff, 3 }, .longs = { 1, UINT64_MAX },
		.nr = 2, .list = { 7, 8 }, .text = g_strdup("a text"), .string = t->string, .blob = t->blob,
	};
	g_string_assign(t->string, "");
	g_string_append_len(t->string, "with\0NUL", 8);
	g_byte_array_append(t->blob, (const u8 *)"\xff\x00\x01", 3);
}

static void things_free(struct things *t)
{
	g_free(t->text);
	g_free(t->none);
	g_string_free(t->string, TRUE);
	g_byte_array_free(t->blob, TRUE);
}

static void things_transfer(struct saver *s, struct things *t)
{
	u32 i;

	saver_begin(s, "numbers", 1);
	saver_u8(s, &t->a);
	saver_u16(s, &t->b);
	saver_u32(s, &t->c);
	saver_u64(s, &t->d);
	saver_s64(s, &t->e);
	saver_bool(s, &t->f);
	t->kind = saver_enum(s, t->kind, 3, "the kind");
	saver_same(s, 42, "the answer");
	saver_end(s);
	saver_begin(s, "rows", 7);
	saver_bytes(s, t->raw, sizeof(t->raw));
	saver_u32s(s, t->words, ARRAY_SIZE(t->words));
	saver_u64s(s, t->longs, ARRAY_SIZE(t->longs));
	t->nr = saver_count(s, t->nr, ARRAY_SIZE(t->list), sizeof(u64), "the number of things");
	for (i = 0; i < t->nr; i++)
		saver_u64(s, &t->list[i]);
	saver_end(s);
	saver_begin(s, "texts", 1);
	saver_text(s, &t->text);
	saver_text(s, &t->none);
	saver_string(s, t->string);
	saver_blob(s, t->blob);
	saver_end(s);
	saver_finish(s);
}

static GByteArray *saved(void)
{
	struct things t;
	struct saver s;
	GByteArray *out;

	things_init(&t, true);
	saver_init_save(&s);
	things_transfer(&s, &t);
	g_assert_true(saver_ok(&s));
	out = g_byte_array_ref(s.out);
	saver_destroy(&s);
	things_free(&t);
	return out;
}

/* Load `len` bytes; the failure, or NULL. */
static char *load(struct things *t, const u8 *data, size_t len)
{
	/* A copy of its own size, so that a sanitizer sees a read beyond it. */
	u8 *copy = g_memdup2(data, len);
	struct saver s;
	char *err;

	saver_init_load(&s, "FILE", copy, len);
	things_transfer(&s, t);
	err = g_strdup(s.err);
	g_assert_true(saver_ok(&s) == !err);
	saver_destroy(&s);
	g_free(copy);
	return err;
}

static void test_round_trip(void)
{
	GByteArray *data = saved();
	struct things t, u;
	char *err;

	things_init(&u, true);
	things_init(&t, false);
	err = load(&t, data->data, data->len);
	g_assert_cmpstr(err, ==, NULL);
	g_assert_cmphex(t.a, ==, u.a);
	g_assert_cmphex(t.b, ==, u.b);
	g_assert_cmphex(t.c, ==, u.c);
	g_assert_cmphex(t.d, ==, u.d);
	g_assert_cmpint(t.e, ==, -5);
	g_assert_true(t.f);
	g_assert_cmpuint(t.kind, ==, 2);
	g_assert_cmpmem(t.raw, sizeof(t.raw), u.raw, sizeof(u.raw));
	g_assert_cmpmem(t.words, sizeof(t.words), u.words, sizeof(u.words));
	g_assert_cmpmem(t.longs, sizeof(t.longs), u.longs, sizeof(u.longs));
	g_assert_cmpuint(t.nr, ==, 2);
	g_assert_cmpmem(t.list, sizeof(t.list), u.list, sizeof(u.list));
	g_assert_cmpstr(t.text, ==, "a text");
	g_assert_cmpstr(t.none, ==, NULL);
	g_assert_cmpmem(t.string->str, t.string->len, "with\0NUL", 8);
	g_assert_cmpmem(t.blob->data, t.blob->len, "\xff\x00\x01", 3);
	things_free(&t);
	things_free(&u);
	g_byte_array_unref(data);
}

/* The layout is promised: little-endian, with the section's name, version and length before it. */
static void test_layout(void)
{
	GByteArray *data = saved();

	g_assert_cmpstr((char *)data->data, ==, "numbers");
	g_assert_cmpuint(data->data[32], ==, 1);
	g_assert_cmpuint(data->data[40], ==, 1 + 2 + 4 + 8 + 8 + 1 + 1 + 8);
	g_assert_cmphex(data->data[48], ==, 0xfe);
	g_assert_cmphex(data->data[49], ==, 0xdc);
	g_assert_cmphex(data->data[50], ==, 0xfe);
	g_assert_cmphex(data->data[51], ==, 0x98);
	g_byte_array_unref(data);
}

static void test_cut_off(void)
{
	GByteArray *data = saved();
	struct things t;
	size_t len;
	char *err;

	for (len = 0; len < data->len; len++) {
		things_init(&t, false);
		err = load(&t, data->data, len);
		g_assert_nonnull(err);
		g_assert_true(g_str_has_prefix(err, "FILE: section "));
		g_assert_nonnull(strstr(err, "--save-snapshot makes one"));
		/* What could not be read is nothing, not what was there before. */
		g_assert_cmpuint(t.blob->len, ==, 0);
		g_free(err);
		things_free(&t);
	}
	g_byte_array_append(data, (const u8 *)"", 1);
	things_init(&t, false);
	err = load(&t, data->data, data->len);
	g_assert_nonnull(strstr(err, "1 bytes behind the last section"));
	g_free(err);
	things_free(&t);
	g_byte_array_unref(data);
}

/* Every bit: no harm is done, and what cannot be right is found. */
static void test_altered(void)
{
	GByteArray *data = saved();
	u32 found = 0;
	struct things t;
	size_t bit;
	char *err;

	for (bit = 0; bit < data->len * 8; bit++) {
		data->data[bit / 8] ^= 1u << bit % 8;
		things_init(&t, false);
		err = load(&t, data->data, data->len);
		found += err != NULL;
		/* A section's name, version and length; the answer; the truth value but its lowest bit. */
		if (bit / 8 < 48 || (bit / 8 >= 73 && bit / 8 < 81) || (bit / 8 == 71 && bit % 8))
			g_assert_nonnull(err);
		g_assert_true(t.nr <= ARRAY_SIZE(t.list) && t.kind < 3);
		g_free(err);
		things_free(&t);
		data->data[bit / 8] ^= 1u << bit % 8;
	}
	g_assert_cmpuint(found, >, 3 * 48 * 8);
	g_byte_array_unref(data);
}

static void expect(const u8 *data, size_t len, const char *what)
{
	struct things t;
	char *err;

	things_init(&t, false);
	err = load(&t, data, len);
	g_assert_nonnull(err);
	g_assert_nonnull(strstr(err, what));
	g_free(err);
	things_free(&t);
}

static void test_messages(void)
{
	GByteArray *data = saved();

	data->data[32] = 2;
	expect(data->data, data->len, "section numbers: version 2, and this build has 1");
	data->data[32] = 1;
	data->data[0] = 'N';
	expect(data->data, data->len, "section numbers: another one is in its place");
	data->data[0] = 'n';
	data->data[72] = 3;
	expect(data->data, data->len, "section numbers: the kind makes no sense");
	data->data[72] = 2;
	data->data[73] = 43;
	expect(data->data, data->len, "section numbers: the answer is 43 there and 42 here");
	data->data[73] = 42;
	data->data[40]--;
	expect(data->data, data->len, "section numbers: it ends too early");
	data->data[40] += 2;
	expect(data->data, data->len, "section numbers: 1 bytes too many");
	g_byte_array_unref(data);
}

/* A length of 4 G in a file of some bytes must not be allocated, and a text has no NUL. */
static void test_lengths(void)
{
	static const u8 huge[] = { 1, 0xff, 0xff, 0xff, 0x3f, 'x' }, nul[] = { 1, 2, 0, 0, 0, 'x', 0 },
			void_text[] = { 0, 1, 0, 0, 0, 'x' };
	static const struct { const u8 *data; size_t len; const char *what; } bad[] = {
		{ huge, sizeof(huge), "too early" },
		{ nul, sizeof(nul), "NUL" },
		{ void_text, sizeof(void_text), "length" },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		GByteArray *data = g_byte_array_new();
		char *text = g_strdup("old");
		u8 header[48] = "text";
		struct saver s;

		header[32] = 1;
		header[40] = (u8)bad[i].len;
		g_byte_array_append(data, header, sizeof(header));
		g_byte_array_append(data, bad[i].data, (guint)bad[i].len);
		saver_init_load(&s, "FILE", data->data, data->len);
		saver_begin(&s, "text", 1);
		saver_text(&s, &text);
		saver_end(&s);
		g_assert_nonnull(s.err);
		g_assert_nonnull(strstr(s.err, bad[i].what));
		g_free(text);
		saver_destroy(&s);
		g_byte_array_unref(data);
	}
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/saver/round-trip", test_round_trip);
	g_test_add_func("/saver/layout", test_layout);
	g_test_add_func("/saver/cut-off", test_cut_off);
	g_test_add_func("/saver/altered", test_altered);
	g_test_add_func("/saver/messages", test_messages);
	g_test_add_func("/saver/lengths", test_lengths);
	return g_test_run();
}
