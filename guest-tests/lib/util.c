// SPDX-License-Identifier: GPL-2.0-only
#include "lib/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void say(const char *fmt, va_list ap, int err)
{
	fflush(stdout);
	fprintf(stderr, "%s: ", program_invocation_short_name);
	vfprintf(stderr, fmt, ap);
	if (err)
		fprintf(stderr, ": %s", strerror(err));
	fputc('\n', stderr);
}

void die(int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap, 0);
	va_end(ap);
	exit(status);
}

void die_errno(int status, const char *fmt, ...)
{
	int err = errno;
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap, err);
	va_end(ap);
	exit(status);
}

/* A number and the text behind it; false without a digit or on overflow. */
static bool parse_number(const char *text, u64 *value, const char **rest)
{
	char *end;

	/* strtoull() would take "-1" and leading blanks. */
	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*value = strtoull(text, &end, 10);
	*rest = end;
	return errno == 0;
}

bool parse_u64(const char *text, u64 min, u64 max, u64 *value)
{
	const char *rest;

	return parse_number(text, value, &rest) && !*rest && *value >= min && *value <= max;
}

struct unit {
	const char *name;
	u64 factor;
};

static bool parse_unit(const char *text, const struct unit *unit, u64 *value)
{
	const char *rest;
	u64 n;

	if (!parse_number(text, &n, &rest))
		return false;
	for (; unit->name; unit++) {
		if (strcmp(rest, unit->name))
			continue;
		return !__builtin_mul_overflow(n, unit->factor, value);
	}
	return false;
}

bool parse_time(const char *text, u64 *ns)
{
	static const struct unit units[] = {
		{ "", 1 },	   { "ns", 1 },		{ "us", 1000 },
		{ "ms", 1000000 }, { "s", 1000000000 }, { NULL, 0 },
	};

	return parse_unit(text, units, ns);
}

bool parse_size(const char *text, u64 *bytes)
{
	static const struct unit units[] = {
		{ "", 1 }, { "KiB", 1 << 10 }, { "MiB", 1 << 20 }, { "GiB", 1 << 30 }, { NULL, 0 },
	};

	return parse_unit(text, units, bytes);
}

u64 env_time(const char *name, u64 fallback)
{
	const char *text = getenv(name);
	u64 ns = fallback;

	if (text && !parse_time(text, &ns))
		die(EXIT_USAGE, "%s=%s is not a time (a number of ns, or with ns, us, ms, s)", name,
		    text);
	return ns;
}

u64 env_u64(const char *name, u64 fallback)
{
	const char *text = getenv(name);
	u64 value = fallback;

	if (text && !parse_u64(text, 0, UINT64_MAX, &value))
		die(EXIT_USAGE, "%s=%s is not a number", name, text);
	return value;
}

u64 clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * 1000000000u + (u64)ts.tv_nsec;
}

void sleep_until(u64 ns)
{
	struct timespec ts = {
		.tv_sec = (time_t)(ns / 1000000000u),
		.tv_nsec = (long)(ns % 1000000000u),
	};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

int read_file(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n;
	int err;

	if (fd < 0)
		return -errno;
	/* /proc and /sys give large files in pieces. */
	while (len < size - 1) {
		n = read(fd, buf + len, size - 1 - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			err = -errno;
			close(fd);
			return err;
		}
		if (n == 0)
			break;
		len += (size_t)n;
	}
	close(fd);
	buf[len] = '\0';
	return (int)len;
}

int read_line(const char *path, char *buf, size_t size)
{
	int len = read_file(path, buf, size);
	char *nl;

	if (len < 0)
		return len;
	nl = strchr(buf, '\n');
	if (nl)
		*nl = '\0';
	return (int)strlen(buf);
}

int write_file(const char *path, const char *text)
{
	size_t len = strlen(text);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n;
	int ret = 0;

	if (fd < 0)
		return -errno;
	n = write(fd, text, len);
	if (n < 0)
		ret = -errno;
	else if ((size_t)n != len)
		ret = -EIO;
	close(fd);
	return ret;
}
