// SPDX-License-Identifier: GPL-2.0-only
#include "core/symbols.h"

#include <glib.h>
#include <string.h>

/* Beyond this a symbol is somebody else's: modules, user space. */
#define SYMBOL_MAX_SIZE	(1 * MIB)

struct symbol {
	u64 address;
	const char *name;
	bool text;		/* data is kept too: where it begins, the function before it ends */
};

struct symbols {
	GArray *symbol;		/* by address */
	char *text;		/* the file, cut into lines; names point into it */
};

/* Of several at one address a function's name comes last, where symbols_find() looks. */
static int symbol_compare(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return (int)x->text - (int)y->text;
}

/* "ffffffff81000000 T _text" */
static bool symbol_parse(char *line, struct symbol *s)
{
	char *end;

	s->address = g_ascii_strtoull(line, &end, 16);
	if (end == line || end[0] != ' ' || !end[1] || end[2] != ' ' || !end[3])
		return false;
	s->text = strchr("tTwW", end[1]) != NULL;
	s->name = end + 3;
	return true;
}

struct symbols *symbols_read(const char *path, char **err)
{
	struct symbols *symbols = g_new0(struct symbols, 1);
	GError *error = NULL;
	char *line, *next;
	u32 nr = 0;

	symbols->symbol = g_array_new(FALSE, FALSE, sizeof(struct symbol));
	if (!g_file_get_contents(path, &symbols->text, NULL, &error)) {
		*err = g_strdup(error->message);
		g_error_free(error);
		symbols_free(symbols);
		return NULL;
	}
	for (line = symbols->text; *line; line = next) {
		struct symbol s;

		nr++;
		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = '\0';
		if (!symbol_parse(line, &s)) {
			*err = g_strdup_printf("%s:%u: not a line of a System.map (address, type, name)", path, nr);
			symbols_free(symbols);
			return NULL;
		}
		g_array_append_val(symbols->symbol, s);
	}
	g_array_sort(symbols->symbol, symbol_compare);
	return symbols;
}

void symbols_free(struct symbols *symbols)
{
	if (!symbols)
		return;
	g_array_unref(symbols->symbol);
	g_free(symbols->text);
	g_free(symbols);
}

/* The last symbol at or before the address; NULL if there is none. */
static const struct symbol *symbol_before(const struct symbols *symbols, u64 address)
{
	u32 low = 0, high = symbols ? symbols->symbol->len : 0;

	while (low < high) {
		u32 mid = low + (high - low) / 2;

		if (g_array_index(symbols->symbol, struct symbol, mid).address <= address)
			low = mid + 1;
		else
			high = mid;
	}
	return low ? &g_array_index(symbols->symbol, struct symbol, low - 1) : NULL;
}

const char *symbols_find(const struct symbols *symbols, u64 address, u64 *offset)
{
	const struct symbol *s = symbol_before(symbols, address);

	if (!s)
		return NULL;
	*offset = address - s->address;
	/* What follows the end of the text need not have a symbol of its own. */
	if (strcmp(s->name, "_etext") == 0)
		return NULL;
	return s->text && *offset < SYMBOL_MAX_SIZE ? s->name : NULL;
}

const char *symbols_find_data(const struct symbols *symbols, u64 address, u64 *offset)
{
	const struct symbol *s = symbol_before(symbols, address);

	/* Nothing of the kernel's is behind _end. */
	if (!s || s->text || strcmp(s->name, "_end") == 0)
		return NULL;
	*offset = address - s->address;
	return *offset < SYMBOL_MAX_SIZE ? s->name : NULL;
}

u64 symbols_address(const struct symbols *symbols, const char *name)
{
	u32 i;

	for (i = 0; symbols && i < symbols->symbol->len; i++)
		if (strcmp(g_array_index(symbols->symbol, struct symbol, i).name, name) == 0)
			return g_array_index(symbols->symbol, struct symbol, i).address;
	return 0;
}
