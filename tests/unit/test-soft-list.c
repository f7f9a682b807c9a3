// SPDX-License-Identifier: GPL-2.0-only
/*
 * docs/soft-engine.md says which instructions the soft engine has, and which it stops
 * at: this decodes every opcode, in every mode, with every prefix that can select an
 * instruction, and compares. With --print, it prints the lists as they are.
 */
#include <glib.h>
#include <stdio.h>
#include <string.h>

#include "soft/block.h"
#include "soft/decode.h"

/* What became of a mnemonic's forms, as bits. */
#define DOES	1u		/* executed */
#define UD	2u		/* #UD, for a feature that no CPU model shows */
#define STOPS	4u		/* not there: stops the run */

struct survey {
	u8 fate[ZYDIS_MNEMONIC_MAX_VALUE + 1];
	soft_fn invalid, missing;
	ZydisDecoder decoder[3];
};

/* One decoded instruction; its function is all that matters. */
typedef void (*visitor)(struct survey *s, ZydisMnemonic mnemonic, const struct soft_op *op, void *ctx);

static void visit(struct survey *s, enum soft_mode mode, const u8 *bytes, visitor fn, void *ctx)
{
	struct soft_op op = { .base = GPR_ZERO, .index = GPR_ZERO };
	ZydisDecodedInstruction insn;
	struct soft_insn in;

	if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&s->decoder[mode], NULL, bytes, 15, &insn)))
		return;
	g_assert_true(soft_decode_insn(&s->decoder[mode], mode, bytes, 15, &op, &in));
	fn(s, insn.mnemonic, &op, ctx);
}

/* Every ModRM byte whose reg field, or all of whose bits, may select an instruction. */
static void visit_modrm(struct survey *s, enum soft_mode mode, u8 *bytes, u32 at, visitor fn, void *ctx)
{
	u32 modrm;

	for (modrm = 0; modrm < 256; modrm++) {
		if (modrm < 0xc0 && (modrm & 0xc7) != 0)
			continue;
		bytes[at] = (u8)modrm;
		visit(s, mode, bytes, fn, ctx);
	}
	bytes[at] = 0;
}

static void visit_opcodes(struct survey *s, enum soft_mode mode, const u8 *prefix, u32 nr_prefix, visitor fn, void *ctx)
{
	static const struct {
		u8 byte[2];
		u32 nr;
	} map[] = { { { 0 }, 0 }, { { 0x0f }, 1 }, { { 0x0f, 0x38 }, 2 }, { { 0x0f, 0x3a }, 2 } };
	u32 m, opcode;

	for (m = 0; m < G_N_ELEMENTS(map); m++)
		for (opcode = 0; opcode < 256; opcode++) {
			u8 bytes[24] = { 0 };
			u32 at = nr_prefix + map[m].nr;

			memcpy(bytes, prefix, nr_prefix);
			memcpy(bytes + nr_prefix, map[m].byte, map[m].nr);
			bytes[at] = (u8)opcode;
			visit_modrm(s, mode, bytes, at + 1, fn, ctx);
		}
}

static void visit_all(struct survey *s, visitor fn, void *ctx)
{
	static const u8 prefix[][2] = {
		{ 0 }, { 0x66 }, { 0xf2 }, { 0xf3 }, { 0x48 }, { 0x66, 0x48 }, { 0xf2, 0x48 }, { 0xf3, 0x48 },
	};
	u32 mode, p;

	for (mode = MODE_64; mode <= MODE_16; mode++)
		for (p = 0; p < (mode == MODE_64 ? 8u : 4u); p++)
			visit_opcodes(s, (enum soft_mode)mode, prefix[p], (p & 3 ? 1 : 0) + (p > 3), fn, ctx);
}

/*
 * The function of what is missing is decode.c's own. It is the one whose operations
 * always carry the mnemonic as their immediate, which others do by chance at most.
 */
static void find_missing(struct survey *s, ZydisMnemonic mnemonic, const struct soft_op *op, void *ctx)
{
	GHashTable *carries = ctx;
	void *key = (void *)(uintptr_t)op->fn, *old;

	if (op->fn == s->invalid)
		return;
	if (op->imm != mnemonic)
		g_hash_table_replace(carries, key, GUINT_TO_POINTER(1));
	else if (!g_hash_table_lookup_extended(carries, key, NULL, &old))
		g_hash_table_replace(carries, key, GUINT_TO_POINTER(2));
}

static void note_fate(struct survey *s, ZydisMnemonic mnemonic, const struct soft_op *op, void *ctx)
{
	s->fate[mnemonic] |= op->fn == s->invalid ? UD : s->missing && op->fn == s->missing ? STOPS : DOES;
}

static void survey_init(struct survey *s)
{
	GHashTable *carries = g_hash_table_new(NULL, NULL);
	struct soft_op op = { 0 };
	GHashTableIter iter;
	void *key, *value;

	memset(s, 0, sizeof(*s));
	soft_decode_invalid(&op);
	s->invalid = op.fn;
	ZydisDecoderInit(&s->decoder[MODE_64], ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	ZydisDecoderInit(&s->decoder[MODE_32], ZYDIS_MACHINE_MODE_LEGACY_32, ZYDIS_STACK_WIDTH_32);
	ZydisDecoderInit(&s->decoder[MODE_16], ZYDIS_MACHINE_MODE_LEGACY_16, ZYDIS_STACK_WIDTH_16);
	visit_all(s, find_missing, carries);
	g_hash_table_iter_init(&iter, carries);
	while (g_hash_table_iter_next(&iter, &key, &value))
		if (GPOINTER_TO_UINT(value) == 2) {
			g_assert_true(!s->missing);
			s->missing = (soft_fn)(uintptr_t)key;
		}
	g_hash_table_unref(carries);
	visit_all(s, note_fate, NULL);
}

/* Mnemonics as the document writes them: in capitals, and conditions as "cc". */
static char *written(ZydisMnemonic mnemonic)
{
	static const char *const cc[] = {
		"O", "NO", "B", "NB", "Z", "NZ", "BE", "NBE", "S", "NS", "P", "NP", "L", "NL", "LE", "NLE", "E", "NE", "U", "NU",
	};
	static const char *const stem[] = { "J", "SET", "CMOV", "FCMOV" };
	char *name = g_ascii_strup(ZydisMnemonicGetString(mnemonic), -1);
	u32 i, k;

	for (i = 0; i < G_N_ELEMENTS(stem); i++)
		for (k = 0; g_str_has_prefix(name, stem[i]) && k < G_N_ELEMENTS(cc); k++)
			if (!strcmp(name + strlen(stem[i]), cc[k])) {
				g_free(name);
				return g_strconcat(stem[i], "cc", NULL);
			}
	return name;
}

static GHashTable *found(const struct survey *s, u8 fate)
{
	GHashTable *set = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	u32 m;

	for (m = 1; m <= ZYDIS_MNEMONIC_MAX_VALUE; m++)
		if (s->fate[m] & fate)
			g_hash_table_add(set, written((ZydisMnemonic)m));
	return set;
}

static GHashTable *listed(const char *heading)
{
	g_autofree char *here = g_path_get_dirname(__FILE__), *text = NULL;
	g_autofree char *path = g_build_filename(here, "..", "..", "docs", "soft-engine.md", NULL);
	GHashTable *set = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	g_auto(GStrv) line = NULL;
	bool inside = false, found_heading = false;
	u32 i, k;

	g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
	line = g_strsplit(text, "\n", -1);
	for (i = 0; line[i]; i++) {
		g_auto(GStrv) cell = NULL, word = NULL;

		if (line[i][0] == '#')
			found_heading |= inside = !strcmp(line[i], heading);
		if (!inside || line[i][0] != '|' || g_str_has_prefix(line[i], "| ---"))
			continue;
		cell = g_strsplit(line[i], "|", -1);
		word = g_strsplit_set(cell[2], " ", -1);
		for (k = 0; word[k]; k++)
			if (g_ascii_isupper(word[k][0]))
				g_hash_table_add(set, g_strdup(word[k]));
	}
	g_assert_true(found_heading);
	return set;
}

/* What is in one set and not in the other, sorted. */
static char *beyond(GHashTable *set, GHashTable *other)
{
	GList *names = g_list_sort(g_hash_table_get_keys(set), (GCompareFunc)strcmp), *l;
	GString *text = g_string_new(NULL);

	for (l = names; l; l = l->next)
		if (!other || !g_hash_table_contains(other, l->data))
			g_string_append_printf(text, "%s%s", text->len ? " " : "", (char *)l->data);
	g_list_free(names);
	return g_string_free(text, FALSE);
}

static void compare(const struct survey *s, u8 fate, const char *heading)
{
	g_autoptr(GHashTable) is = found(s, fate), says = listed(heading);
	g_autofree char *unsaid = beyond(is, says), *untrue = beyond(says, is);

	g_assert_cmpstr(unsaid, ==, "");
	g_assert_cmpstr(untrue, ==, "");
}

static void test_there(const void *data)
{
	compare(data, DOES, "### Instructions that are there");
}

static void test_missing(const void *data)
{
	compare(data, STOPS, "### Instructions that stop the run");
}

static void print(const struct survey *s)
{
	static const struct {
		u8 fate;
		const char *name;
	} kind[] = { { DOES, "there" }, { STOPS, "stop the run" }, { UD, "#UD" } };
	u32 i;

	for (i = 0; i < G_N_ELEMENTS(kind); i++) {
		g_autoptr(GHashTable) set = found(s, kind[i].fate);
		g_autofree char *names = beyond(set, NULL);

		printf("%s: %s\n\n", kind[i].name, names);
	}
}

int main(int argc, char **argv)
{
	struct survey s;

	survey_init(&s);
	if (argc > 1 && !strcmp(argv[1], "--print")) {
		print(&s);
		return 0;
	}
	g_test_init(&argc, &argv, NULL);
	g_test_add_data_func("/soft/list/there", &s, test_there);
	g_test_add_data_func("/soft/list/missing", &s, test_missing);
	return g_test_run();
}
