// SPDX-License-Identifier: GPL-2.0-only
#include "progress.h"

#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/log.h"

struct running {
	const void *id;
	double weight;
	s64 began;
};

void progress_init(struct progress *p, u32 of, u32 before, double waiting, u32 slots, bool tty, s64 now)
{
	*p = (struct progress){
		.of = of, .done = before, .slots = MAX(slots, 1), .waiting = waiting, .began = now, .tty = tty,
		.running = g_array_new(FALSE, FALSE, sizeof(struct running)),
	};
}

void progress_clear(struct progress *p)
{
	progress_hide(p);
	g_array_unref(p->running);
}

void progress_start(struct progress *p, const void *id, double weight, s64 now)
{
	const struct running r = { .id = id, .weight = weight, .began = now };

	p->waiting -= weight;
	g_array_append_val(p->running, r);
}

void progress_end(struct progress *p, const void *id, bool counts, s64 now)
{
	for (u32 i = 0; i < p->running->len; i++) {
		const struct running *r = &g_array_index(p->running, struct running, i);

		if (r->id != id)
			continue;
		if (counts) {
			p->weight += r->weight;
			p->took += (double)(now - r->began);
		}
		g_array_remove_index_fast(p->running, i);
		break;
	}
	p->done++;
}

s64 progress_left(const struct progress *p, s64 now)
{
	double pace, work, longest = 0;

	if (!(p->weight > 0))
		return p->done == p->of ? 0 : -1;
	pace = p->took / p->weight;
	work = MAX(p->waiting, 0) * pace;
	for (u32 i = 0; i < p->running->len; i++) {
		const struct running *r = &g_array_index(p->running, struct running, i);
		double rest = MAX(r->weight * pace - (double)(now - r->began), 0);

		work += rest;
		longest = MAX(longest, rest);
	}
	/* However many may run at once, none is quicker for it. */
	return (s64)MAX(work / p->slots, longest);
}

/* "40 s", "7 min", "2 h 5 min": as fine as an estimate is. */
static char *rough(s64 us, bool exact)
{
	s64 s = (us + G_USEC_PER_SEC / 2) / G_USEC_PER_SEC, min = s / 60;

	if (s < 60 || (!exact && s < 90))
		return g_strdup_printf("%" G_GINT64_FORMAT " s", s);
	if (!exact)
		min = (s + 30) / 60;
	if (min >= 60)
		return g_strdup_printf("%" G_GINT64_FORMAT " h %" G_GINT64_FORMAT " min", min / 60, min % 60);
	if (exact)
		return g_strdup_printf("%" G_GINT64_FORMAT " min %" G_GINT64_FORMAT " s", min, s % 60);
	return g_strdup_printf("%" G_GINT64_FORMAT " min", min);
}

char *progress_text(const struct progress *p, s64 now)
{
	GString *text = g_string_new(NULL);
	g_autofree char *so_far = rough(now - p->began, true);
	s64 left = progress_left(p, now);

	g_string_append_printf(text, "%u of %u done", p->done, p->of);
	if (p->running->len)
		g_string_append_printf(text, ", %u running", p->running->len);
	g_string_append_printf(text, ", %s so far", so_far);
	if (left >= 0 && p->done < p->of) {
		g_autofree char *about = rough(left, false);

		g_string_append_printf(text, ", about %s left", about);
	}
	return g_string_free(text, FALSE);
}

void progress_show(struct progress *p, s64 now)
{
	g_autofree char *text = progress_text(p, now);
	struct winsize size = { 0 };
	int width = 79;

	if (!p->tty) {
		fb_info("%s", text);
		return;
	}
	if (!ioctl(STDERR_FILENO, TIOCGWINSZ, &size) && size.ws_col > 1)
		width = size.ws_col - 1;
	/* A line that wraps could not be taken away. */
	fprintf(stderr, "\r\033[K%.*s", width, text);
	fflush(stderr);
	p->shown = true;
}

void progress_hide(struct progress *p)
{
	if (!p->shown)
		return;
	fputs("\r\033[K", stderr);
	fflush(stderr);
	p->shown = false;
}
