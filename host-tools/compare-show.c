// SPDX-License-Identifier: GPL-2.0-only
/* What was compared, as text. See compare.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "front.h"
#include "show.h"
#include "summary.h"

/* A difference below this between two images may be one of where their code lies. */
#define LAYOUT_PERCENT	2

/* Four digits or so. g_free(). */
static char *number(double value)
{
	double size = fabs(value);

	return front_grouped(value, value == floor(value) || size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3);
}

static char *p_text(double p)
{
	if (isnan(p))
		return g_strdup("-");
	return p < 0.0001 ? g_strdup("<0.0001") : g_strdup_printf("%.4f", p);
}

static void print_figure(FILE *to, const struct compare_figure *f, double confidence)
{
	g_autofree char *a = number(f->mean_a), *b = number(f->mean_b);
	g_autofree char *d = number(f->difference), *p = p_text(f->p), *interval = NULL;
	g_autofree char *percent = isnan(f->percent) ? g_strdup("-") : g_strdup_printf("%+.2f%%", f->percent);

	if (isnan(f->half)) {
		interval = g_strdup("no interval");
	} else {
		g_autofree char *lo = number(f->difference - f->half);
		g_autofree char *hi = number(f->difference + f->half);

		interval = g_strdup_printf("[%s, %s]", lo, hi);
	}
	fprintf(to, " %-*s %16s %16s %14s %9s %8s %s %s\n", NAME_WIDTH, f->name, a, b, d, percent, p,
		f->p < 1 - confidence ? "*" : " ", interval);
}

static void print_kernel(FILE *to, const char *which, JsonObject *cell)
{
	JsonObject *kernel = summary_object(summary_object(cell, "vm"), "kernel");

	fprintf(to, "   %s: kernel %s, image %.12s, patches %s\n", which, summary_string(kernel, "release", "?"),
		summary_string(kernel, "sha256", "?"), summary_string(kernel, "patch_id", "?"));
}

static void print_table(FILE *to, const struct compare *c, const struct compare_pair *p)
{
	double confidence = c->options.confidence;

	fprintf(to, "\n %-*s %16s %16s %14s %9s %8s   %g%% interval of the difference (Welch)\n", NAME_WIDTH, "", "first", "second",
		"difference", "", "p", 100 * confidence);
	if (p->headline.name)
		print_figure(to, &p->headline, confidence);
	for (u32 i = 0; i < p->figures->len; i++)
		print_figure(to, &g_array_index(p->figures, struct compare_figure, i), confidence);
	fprintf(to, " * p below %g, after Holm: the first line's over %u headline%s, the others' over the %u of them\n\n",
		1 - confidence, c->pairs->len, c->pairs->len == 1 ? "" : "s", p->figures->len);
}

/* "+1.2% (+0.8% to +1.6%), 12,000 faults/s (8,000 to 16,000)". */
static char *difference_text(const struct compare_figure *h)
{
	g_autofree char *d = number(h->difference), *lo = number(h->difference - h->half);
	g_autofree char *hi = number(h->difference + h->half);

	if (isnan(h->percent))
		return g_strdup_printf("%s %s (%s to %s)", d, h->unit, lo, hi);
	return g_strdup_printf("%+.2f%% (%+.2f%% to %+.2f%%), %s %s (%s to %s)", h->percent,
			       100 * (h->difference - h->half) / fabs(h->mean_a), 100 * (h->difference + h->half) / fabs(h->mean_a), d,
			       h->unit, lo, hi);
}

static char *threshold_text(const struct compare *c, const struct compare_figure *h)
{
	g_autofree char *least = number(c->options.least);

	return c->options.least ? g_strdup_printf("%g%% and %s %s", c->options.least_percent, least, h->unit)
				: g_strdup_printf("%g%%", c->options.least_percent);
}

static void print_open(FILE *to, const struct compare *c, const struct compare_pair *p)
{
	u32 need = compare_repeats_needed(p, &c->options);

	if (need > MIN(p->headline.n_a, p->headline.n_b))
		fprintf(to, " With this spread some %u repeats a side would tell (run.repeat).\n", need);
}

static bool on_hosts_clock(const struct compare_pair *p)
{
	return compare_direction(&p->headline) && !strcmp(summary_string(summary_object(p->b, "vm"), "time", "none"), "host");
}

/* What the interval does not have in it. */
static void print_doubts(FILE *to, const struct compare_pair *p)
{
	if (p->other_image && fabs(p->headline.percent) < LAYOUT_PERCENT)
		fprintf(to, " That is below %d%% between two images of a kernel, so where their code lies may have made it, or hidden as much. Unless\n"
			" both are built so that this cannot differ, build them so and compare those: images/kernel-build.sh --variant aligned.\n",
			LAYOUT_PERCENT);
	if (p->apart && on_hosts_clock(p))
		fprintf(to, " One was run after the other, each in guests of its own: what the host did meanwhile, and what differs from boot to boot,\n"
			" is not in the interval. By turns it is: faultbed run --vary kernel=A,B (docs/compare.md).\n");
}

/* One sentence, and what else there is to know of it. */
static void print_verdict(FILE *to, const struct compare *c, const struct compare_pair *p)
{
	const struct compare_figure *h = &p->headline;
	g_autofree char *text = NULL, *least = NULL;
	int sign = p->verdict == VERDICT_HIGHER ? 1 : -1;

	if (p->verdict == VERDICT_NONE) {
		fprintf(to, " Verdict: none; %s.\n", p->why);
		return;
	}
	text = difference_text(h);
	least = threshold_text(c, h);
	switch (p->verdict) {
	case VERDICT_SAME:
		fprintf(to, " Verdict: no difference of %s that reaches %s: %s.\n", h->name, least, text);
		break;
	case VERDICT_OPEN:
		fprintf(to, " Verdict: none; whether %s differs by %s is not shown: %s.\n", h->name, least, text);
		print_open(to, c, p);
		break;
	default:
		fprintf(to, " Verdict: %s of the second is %s%s: %s, which reaches %s.\n", h->name,
			sign > 0 ? "higher" : "lower",
			!compare_direction(h) ? "" : sign == compare_direction(h) ? ", and so better" : ", and so worse", text, least);
	}
	if (p->verdict != VERDICT_OPEN)
		print_doubts(to, p);
	if (p->named_after)
		fprintf(to, " This headline was named after the run (--headline); run.headline names it before.\n");
}

static void print_pair(FILE *to, const struct compare *c, const struct compare_pair *p)
{
	fprintf(to, " Cell %s:\n   first:  %s\n   second: %s\n", p->cell, p->name_a, p->name_b);
	if (p->other_image) {
		print_kernel(to, "first ", p->a);
		print_kernel(to, "second", p->b);
	}
	print_table(to, c, p);
	print_verdict(to, c, p);
	fprintf(to, "\n");
}

void compare_print(const struct compare *c, FILE *to)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return;
	for (u32 i = 0; i < c->pairs->len; i++)
		print_pair(f, c, c->pairs->pdata[i]);
	for (u32 i = 0; i < c->alone->len; i++)
		fprintf(f, " Not compared: %s.\n", (char *)c->alone->pdata[i]);
	if (!c->pairs->len)
		fprintf(f, " No cell is in both.\n");
	/* Names and remarks are the files' words. */
	if (!fclose(f))
		show_text(to, text);
	free(text);
}
