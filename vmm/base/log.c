// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/types.h"

#define LINE_MAX_BYTES	4096

static void write_all(const char *buf, size_t len)
{
	while (len) {
		ssize_t n = write(STDERR_FILENO, buf, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;		/* nobody is left to tell */
		buf += n;
		len -= (size_t)n;
	}
}

/*
 * Messages may quote a guest's or a file's bytes, so anything that could drive a
 * terminal is replaced.
 */
static void sanitise(char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
			text[i] = '?';
	}
}

static void vline(const char *prefix, const char *fmt, va_list ap)
{
	char line[LINE_MAX_BYTES];
	size_t len = strlen(prefix), room = sizeof(line) - 1;	/* 1 for the newline */
	int saved_errno = errno, n;

	memcpy(line, prefix, len);
	n = vsnprintf(line + len, room - len, fmt, ap);
	if (n > 0)
		len = (size_t)n < room - len ? len + (size_t)n : room - 1;
	sanitise(line, len);
	line[len++] = '\n';
	write_all(line, len);
	errno = saved_errno;
}

void fb_err(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vline("error: ", fmt, ap);
	va_end(ap);
}

void fb_warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vline("warning: ", fmt, ap);
	va_end(ap);
}

void fb_info(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vline("", fmt, ap);
	va_end(ap);
}

void fb_bug(const char *expr, const char *file, int line)
{
	fb_err("internal: %s:%d: assertion failed: %s", file, line, expr);
	abort();
}
