/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Small things that every guest program needs: error exits, numbers with units,
 * the environment that the host sets. No state; any thread.
 *
 * The programs build against glibc and musl, so nothing here needs kernel headers.
 */
#ifndef LIB_UTIL_H
#define LIB_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;

#define PAGE_BYTES	4096u
#define CACHE_LINE	64

/* Exit statuses of all guest programs. */
enum {
	EXIT_OK = 0,
	EXIT_MISMATCH = 1,	/* the check failed, or the load could not run */
	EXIT_USAGE = 2,		/* bad command line or environment */
	EXIT_UNSUPPORTED = 77,	/* this kernel lacks what the program needs; it says what */
};

/* "PROGRAM: message\n" on stderr, then exit(status). */
void die(int status, const char *fmt, ...) __attribute__((noreturn, format(printf, 2, 3)));
/* The same with ": strerror(errno)". */
void die_errno(int status, const char *fmt, ...) __attribute__((noreturn, format(printf, 2, 3)));

/* A whole decimal number in [min, max]; false if it is anything else. */
bool parse_u64(const char *text, u64 min, u64 max, u64 *value);
/* Nanoseconds: a number, optionally with ns, us, ms or s ("50ms"). */
bool parse_time(const char *text, u64 *ns);
/* Bytes: a number, optionally with KiB, MiB or GiB. */
bool parse_size(const char *text, u64 *bytes);
/* Value of an environment variable in ns, or `fallback` if it is unset; exits on rubbish. */
u64 env_time(const char *name, u64 fallback);
/* Value of an environment variable as a number, or `fallback` if it is unset; exits on rubbish. */
u64 env_u64(const char *name, u64 fallback);

/* CLOCK_MONOTONIC in ns. */
u64 clock_ns(void);
/* Sleep until CLOCK_MONOTONIC reaches `ns`. */
void sleep_until(u64 ns);

/* First line of a file into buf, without its newline. Length, or -errno. */
int read_line(const char *path, char *buf, size_t size);
/* A whole small file into buf, NUL terminated (cut at size - 1). Length, or -errno. */
int read_file(const char *path, char *buf, size_t size);
/* Write text to an existing file in one write(). 0, or -errno. */
int write_file(const char *path, const char *text);

#endif
