/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A descriptor read as lines, for poll() loops: what is there is taken in, and
 * whole lines come out. A line longer than the buffer is dropped whole. One
 * thread for each struct.
 */
#ifndef LIB_LINES_H
#define LIB_LINES_H

#include <sys/types.h>

#include "lib/util.h"

#define LINE_MAX_BYTES	4096

struct lines {
	int fd;
	size_t len;
	bool cut;		/* dropping the rest of an overlong line */
	char buf[LINE_MAX_BYTES];
};

/*
 * One read(). Bytes taken in; 0 if there is nothing now; negative errno on an
 * error, -EPIPE at the end of the file.
 */
ssize_t lines_fill(struct lines *l);
/* Take one whole line out, without its end; false if there is none yet. */
bool lines_next(struct lines *l, char *line, size_t size);

#endif
