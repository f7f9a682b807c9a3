// SPDX-License-Identifier: GPL-2.0-only
#include "lib/roi.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <unistd.h>

/* What the kernel's command line says; 0 if nothing. */
static u16 marks_port(void)
{
	static const char key[] = "faultbed.marks=0x";
	char text[4096];
	const char *at;
	ssize_t n = -1;
	int fd = open("/proc/cmdline", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	if (n < 0)
		return 0;
	text[n] = '\0';
	at = strstr(text, key);
	return at ? (u16)strtoul(at + sizeof(key) - 1, NULL, 16) : 0;
}

void roi_init(struct roi *roi)
{
	const char *fd = getenv("FAULTBED_REPORT_FD");
	u64 n;

	memset(roi, 0, sizeof(*roi));
	roi->port_fd = -1;
	roi->report_fd = STDOUT_FILENO;
	if (fd && parse_u64(fd, 0, 1023, &n) && fcntl((int)n, F_GETFD) >= 0)
		roi->report_fd = (int)n;
	procstat_init(&roi->before);
	procstat_init(&roi->after);

	roi->marks = marks_port();
	/* These ports only; a kernel without X86_IOPL_IOPERM may still have /dev/port. */
	if (!ioperm(ROI_PORT_EXIT, 2, 1) && (!roi->marks || !ioperm(roi->marks, ROI_UART_PORTS, 1))) {
		roi->ports = true;
		return;
	}
	roi->port_fd = open("/dev/port", O_RDWR | O_CLOEXEC);
	roi->ports = roi->port_fd >= 0;
	if (!roi->ports)
		fprintf(stderr, "%s: no access to the test device (%s): the host sees no marks\n",
			program_invocation_short_name, strerror(errno));
}

static void port_write(const struct roi *roi, u16 port, u8 value)
{
	if (!roi->ports)
		return;
	if (roi->port_fd < 0)
		outb(value, port);
	else if (pwrite(roi->port_fd, &value, 1, port) != 1)
		fprintf(stderr, "%s: /dev/port: %s\n", program_invocation_short_name,
			strerror(errno));
}

static u8 port_read(const struct roi *roi, u16 port)
{
	u8 value = 0;

	if (roi->port_fd < 0)
		return inb(port);
	if (pread(roi->port_fd, &value, 1, port) != 1)
		fprintf(stderr, "%s: /dev/port: %s\n", program_invocation_short_name, strerror(errno));
	return value;
}

void roi_mark(const struct roi *roi, u8 mark)
{
	if (!roi->marks || !roi->ports) {
		port_write(roi, ROI_PORT_MARK, mark);
		return;
	}
	/* What the kernel's search for serial ports may have left there; an absent port has always something. */
	for (int i = 0; i < ROI_UART_FIFO && port_read(roi, roi->marks + ROI_UART_LSR) & ROI_LSR_READY; i++)
		port_read(roi, roi->marks + ROI_UART_DATA);
	port_write(roi, roi->marks + ROI_UART_DATA, mark);
	while (!(port_read(roi, roi->marks + ROI_UART_LSR) & ROI_LSR_READY))
		;
	port_read(roi, roi->marks + ROI_UART_DATA);
}

/* One line in one write(): lines of several threads and processes must not mix. */
static void send_line(const struct roi *roi, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void send_line(const struct roi *roi, const char *fmt, ...)
{
	char line[512];
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	if (len < 0)
		return;
	if (len > (int)sizeof(line) - 2)
		len = (int)sizeof(line) - 2;
	line[len++] = '\n';
	if (roi->report_fd == STDOUT_FILENO)
		fflush(stdout);
	if (write(roi->report_fd, line, (size_t)len) != len)
		fprintf(stderr, "%s: a line for the host was lost: %s\n",
			program_invocation_short_name, strerror(errno));
}

void roi_begin(struct roi *roi)
{
	procstat_take(&roi->before);
	roi_mark(roi, ROI_MARK_BEGIN);
	roi->begin_ns = clock_ns();
}

void roi_end(struct roi *roi)
{
	roi->end_ns = clock_ns();
	roi_mark(roi, ROI_MARK_END);
	procstat_take(&roi->after);
	send_line(roi, "marked");
}

u64 roi_ns(const struct roi *roi)
{
	return roi->end_ns - roi->begin_ns;
}

static void send_counter(void *ctx, const char *source, const char *name, u64 delta)
{
	send_line(ctx, "counter %s %s %llu", source, name, (unsigned long long)delta);
}

void roi_send_counters(struct roi *roi)
{
	procstat_changes(&roi->before, &roi->after, send_counter, roi);
}

u64 roi_delta(const struct roi *roi, enum procstat_file file, const char *name)
{
	u64 before = 0, after = 0;

	if (procstat_value(&roi->after, file, name, &after))
		return 0;
	procstat_value(&roi->before, file, name, &before);
	return after - before;
}

void roi_report(const struct roi *roi, const char *name, u64 value, const char *unit)
{
	send_line(roi, "report %s %llu %s", name, (unsigned long long)value, unit);
}

void roi_report_f(const struct roi *roi, const char *name, double value, const char *unit)
{
	send_line(roi, "report %s %.3f %s", name, value, unit);
}

void roi_warning(const struct roi *roi, const char *fmt, ...)
{
	char text[448];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	send_line(roi, "warning %s", text);
	if (roi->report_fd != STDOUT_FILENO) {
		fflush(stdout);
		fprintf(stderr, "%s: warning: %s\n", program_invocation_short_name, text);
	}
}

void roi_exit(const struct roi *roi, u8 value)
{
	port_write(roi, ROI_PORT_EXIT, value);
}
