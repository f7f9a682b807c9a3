/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One line to standard error for the person who runs the VMM. Any thread may
 * call these; a line is written with a single write(2) so that lines of
 * several threads do not mix. No state.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

/* "error: ..." / "warning: ..." / "..." and a newline. */
void fb_err(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void fb_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void fb_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * A broken invariant of ours (never of the guest or the host): prints the
 * expression and place, then aborts.
 */
void fb_bug(const char *expr, const char *file, int line) __attribute__((noreturn));
#define fb_assert(e)	((e) ? (void)0 : fb_bug(#e, __FILE__, __LINE__))

#endif
