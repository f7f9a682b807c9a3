// SPDX-License-Identifier: GPL-2.0-only
#include <ctype.h>
#include <string.h>

#include "base/nearest.h"

#define MAX_LEN	63u

static u32 min3(u32 a, u32 b, u32 c)
{
	u32 m = a < b ? a : b;

	return m < c ? m : c;
}

static bool same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/*
 * The "optimal string alignment" form of the Damerau-Levenshtein distance: three
 * rows of the table are enough, because a swap looks back two rows.
 */
u32 edit_distance(const char *a, const char *b)
{
	u32 na = (u32)strnlen(a, MAX_LEN), nb = (u32)strnlen(b, MAX_LEN);
	u32 row[3][MAX_LEN + 1];
	u32 *prev2 = row[0], *prev = row[1], *cur = row[2];

	for (u32 j = 0; j <= nb; j++) {
		prev[j] = j;
		prev2[j] = j;
	}
	for (u32 i = 1; i <= na; i++) {
		u32 *spare = prev2;

		cur[0] = i;
		for (u32 j = 1; j <= nb; j++) {
			cur[j] = min3(prev[j] + 1, cur[j - 1] + 1,
				      prev[j - 1] + !same(a[i - 1], b[j - 1]));
			if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) &&
			    same(a[i - 2], b[j - 1]) && prev2[j - 2] + 1 < cur[j])
				cur[j] = prev2[j - 2] + 1;
		}
		prev2 = prev;
		prev = cur;
		cur = spare;
	}
	return prev[nb];
}

const char *nearest_name(const char *word, const char *const *names, size_t n)
{
	const char *best = NULL;
	u32 best_distance = UINT32_MAX;

	for (size_t i = 0; i < n; i++) {
		u32 distance, longer;

		if (!names[i])
			continue;
		distance = edit_distance(word, names[i]);
		longer = (u32)strnlen(names[i], MAX_LEN);
		if (strnlen(word, MAX_LEN) > longer)
			longer = (u32)strnlen(word, MAX_LEN);
		if (distance < best_distance && distance * 2 <= longer) {
			best = names[i];
			best_distance = distance;
		}
	}
	return best;
}
