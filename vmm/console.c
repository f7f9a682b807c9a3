// SPDX-License-Identifier: GPL-2.0-only
/* The guest's console. */
#include "console.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define CONSOLE_LINE_MAX	1024u
#define CONSOLE_MARKED_MAX	20u

/* What a kernel says before it is of no more use; then what marks a result as doubtful. */
static const char *const panic_words[] = { "Kernel panic - not syncing" };
static const char *const oops_words[] = { "Oops: ", "Oops[", "kernel BUG at", "BUG: unable to handle" };
static const char *const doubt_words[] = {
	"WARNING: CPU:", "WARNING: possible", "possible circular locking", "possible recursive locking",
	"suspicious RCU usage", "BUG: KASAN", "KASAN:", "UBSAN:", "detected stall", "self-detected stall",
	"blocked for more than",
};
/* The same of words that programs say, too: if the line opens with the time that printk() gives it. */
static const char *const kernel_words[] = { "WARNING: ", "INFO: ", "BUG: ", "Bad page ", "dumped because" };

void console_init(struct console *c, int fd)
{
	memset(c, 0, sizeof(*c));
	g_mutex_init(&c->lock);
	c->fd = fd;
	c->keep = g_string_new(NULL);
	c->pending = g_string_new(NULL);
	c->line = g_string_new(NULL);
	c->marked = g_ptr_array_new_with_free_func(g_free);
}

void console_destroy(struct console *c)
{
	g_string_free(c->keep, TRUE);
	g_string_free(c->pending, TRUE);
	g_string_free(c->line, TRUE);
	g_ptr_array_unref(c->marked);
	g_mutex_clear(&c->lock);
}

static bool has_word(const char *line, const char *const *words, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (strstr(line, words[i]))
			return true;
	return false;
}

/* "[    1.234567] ", and "[    1.234567][    T1] " of a kernel that names callers. */
static bool from_kernel(const char *line)
{
	size_t n = strspn(line + (*line == '['), " ");

	if (*line != '[')
		return false;
	line += 1 + n;
	n = strspn(line, "0123456789");
	return n && line[n] == '.' && strspn(line + n + 1, "0123456789") == 6 && line[n + 7] == ']';
}

/* True if this line is the first sign of a panic. */
static bool console_judge(struct console *c)
{
	const char *line = c->line->str;
	bool panic = has_word(line, panic_words, G_N_ELEMENTS(panic_words)), first = panic && !c->panic;

	if (has_word(line, oops_words, G_N_ELEMENTS(oops_words)))
		c->oops = true;
	if ((has_word(line, doubt_words, G_N_ELEMENTS(doubt_words)) ||
	     (from_kernel(line) && has_word(line, kernel_words, G_N_ELEMENTS(kernel_words)))) &&
	    c->marked->len < CONSOLE_MARKED_MAX)
		g_ptr_array_add(c->marked, g_strdup(line));
	c->panic |= panic;
	return first;
}

void console_byte(void *ctx, u8 byte)
{
	struct console *c = ctx;
	bool panic = false;

	g_mutex_lock(&c->lock);
	c->bytes++;
	/* A NUL would hide from every reader of text what comes behind it. */
	if (!byte)
		byte = '?';
	if (byte != '\r') {
		g_string_append_c(c->keep, (char)byte);
		/* A flooding guest costs no more memory than this, however slow the reader. */
		if (c->keep->len > 2 * CONSOLE_KEEP)
			g_string_erase(c->keep, 0, (gssize)(c->keep->len - CONSOLE_KEEP));
		if (c->fd >= 0) {
			g_string_append_c(c->pending, (char)byte);
			if (c->pending->len > 2 * CONSOLE_KEEP)
				g_string_erase(c->pending, 0, (gssize)(c->pending->len - CONSOLE_KEEP));
		}
	}
	if (byte == '\n') {
		panic = console_judge(c);
		g_string_truncate(c->line, 0);
	} else if (byte != '\r' && c->line->len < CONSOLE_LINE_MAX) {
		g_string_append_c(c->line, (char)byte);
	}
	g_mutex_unlock(&c->lock);
	if (panic && c->on_panic)
		c->on_panic(c->ctx);
}

void console_transfer(struct saver *s, struct console *c)
{
	u32 nr, i;

	g_mutex_lock(&c->lock);
	saver_begin(s, "console", 1);
	saver_string(s, c->keep);
	saver_string(s, c->line);
	saver_bool(s, &c->panic);
	saver_bool(s, &c->oops);
	saver_u64(s, &c->bytes);
	nr = saver_count(s, c->marked->len, CONSOLE_MARKED_MAX, 5, "the number of marked lines");
	if (s->loading)
		g_ptr_array_set_size(c->marked, 0);
	for (i = 0; i < nr; i++) {
		char *line = s->loading ? NULL : c->marked->pdata[i];

		saver_text(s, &line);
		if (s->loading)
			g_ptr_array_add(c->marked, line ? line : g_strdup(""));
	}
	saver_end(s);
	g_mutex_unlock(&c->lock);
}

void console_flush(struct console *c)
{
	GString *out;
	size_t done = 0;

	g_mutex_lock(&c->lock);
	out = c->pending;
	c->pending = g_string_new(NULL);
	g_mutex_unlock(&c->lock);
	while (c->fd >= 0 && done < out->len) {
		struct pollfd pfd = { .fd = c->fd, .events = POLLOUT };
		ssize_t n = write(c->fd, out->str + done, out->len - done);

		if (n > 0)
			done += (size_t)n;
		else if (n < 0 && errno == EAGAIN)
			poll(&pfd, 1, 100);
		else if (n < 0 && errno != EINTR)
			break;	/* the reader has gone: the kept text is still there */
	}
	g_string_free(out, TRUE);
}
