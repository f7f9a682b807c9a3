// SPDX-License-Identifier: GPL-2.0-only
#include "lib/lines.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

ssize_t lines_fill(struct lines *l)
{
	ssize_t n;

	if (l->len == sizeof(l->buf)) {
		l->len = 0;
		l->cut = true;
	}
	n = read(l->fd, l->buf + l->len, sizeof(l->buf) - l->len);
	if (n < 0)
		return errno == EINTR || errno == EAGAIN ? 0 : -errno;
	l->len += (size_t)n;
	return n > 0 ? n : -EPIPE;
}

bool lines_next(struct lines *l, char *line, size_t size)
{
	char *nl;
	size_t len;
	bool cut;

	while ((nl = memchr(l->buf, '\n', l->len))) {
		len = (size_t)(nl - l->buf);
		cut = l->cut;
		l->cut = false;
		if (!cut) {
			size_t keep = len < size - 1 ? len : size - 1;

			memcpy(line, l->buf, keep);
			line[keep] = '\0';
			if (keep && line[keep - 1] == '\r')
				line[keep - 1] = '\0';
		}
		l->len -= len + 1;
		memmove(l->buf, nl + 1, l->len);
		if (!cut)
			return true;
	}
	return false;
}
