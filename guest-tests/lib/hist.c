// SPDX-License-Identifier: GPL-2.0-only
#include "lib/hist.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void hist_init(struct hist *h, size_t room)
{
	h->nr = 0;
	h->room = room;
	h->value = malloc(room * sizeof(*h->value));
	if (!h->value)
		die(EXIT_MISMATCH, "no memory for %zu samples", room);
	memset(h->value, 0, room * sizeof(*h->value));
}

void hist_free(struct hist *h)
{
	free(h->value);
	h->value = NULL;
	h->nr = h->room = 0;
}

static int compare(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

void hist_sort(struct hist *h)
{
	qsort(h->value, h->nr, sizeof(*h->value), compare);
}

u64 hist_quantile(const struct hist *h, double q)
{
	return h->value[(size_t)(q * (double)(h->nr - 1))];
}

double hist_mean(const struct hist *h)
{
	double sum = 0;

	for (size_t i = 0; i < h->nr; i++)
		sum += (double)h->value[i];
	return sum / (double)h->nr;
}

void hist_report(struct hist *h, const struct roi *roi, const char *prefix, const char *unit)
{
	static const struct {
		const char *name;
		double q;
	} quantile[] = {
		{ "min", 0 }, { "median", 0.5 }, { "p90", 0.9 }, { "p99", 0.99 }, { "max", 1 }
	};
	char name[64];

	snprintf(name, sizeof(name), "%s_count", prefix);
	roi_report(roi, name, h->nr, "samples");
	if (!h->nr)
		return;
	hist_sort(h);
	for (size_t i = 0; i < sizeof(quantile) / sizeof(quantile[0]); i++) {
		snprintf(name, sizeof(name), "%s_%s", prefix, quantile[i].name);
		roi_report(roi, name, hist_quantile(h, quantile[i].q), unit);
	}
	snprintf(name, sizeof(name), "%s_mean", prefix);
	roi_report_f(roi, name, hist_mean(h), unit);
}

void hist_report_log2(const struct hist *h, const struct roi *roi, const char *prefix)
{
	u64 bucket[65] = { 0 };
	char name[64];

	for (size_t i = 0; i < h->nr; i++)
		bucket[h->value[i] ? 64 - __builtin_clzll(h->value[i]) : 0]++;
	for (int b = 0; b < 64; b++) {
		if (!bucket[b])
			continue;
		snprintf(name, sizeof(name), "%s_lt_%llu", prefix, 1ull << b);
		roi_report(roi, name, bucket[b], "samples");
	}
}
