/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Samples of a latency: quantiles, mean, and a histogram by powers of two. One
 * thread at a time. The room is allocated and touched beforehand, so that
 * adding a sample faults nothing in.
 */
#ifndef LIB_HIST_H
#define LIB_HIST_H

#include "lib/roi.h"
#include "lib/util.h"

struct hist {
	u64 *value;		/* sorted once hist_sort() was called */
	size_t nr, room;
};

/* Room for `room` samples. Exits where there is no memory. */
void hist_init(struct hist *h, size_t room);
void hist_free(struct hist *h);

static inline void hist_add(struct hist *h, u64 value)
{
	if (h->nr < h->room)
		h->value[h->nr++] = value;
}

void hist_sort(struct hist *h);
/* Nearest rank; q of 0.5 is the median. Needs hist_sort() and at least one sample. */
u64 hist_quantile(const struct hist *h, double q);
double hist_mean(const struct hist *h);

/* Report PREFIX_{count,min,median,p90,p99,max,mean}, all but the count in `unit`. Sorts. */
void hist_report(struct hist *h, const struct roi *roi, const char *prefix, const char *unit);
/* Report PREFIX_lt_N for each power of two N with samples in [N/2, N); N = 1 holds the zeros. */
void hist_report_log2(const struct hist *h, const struct roi *roi, const char *prefix);

#endif
