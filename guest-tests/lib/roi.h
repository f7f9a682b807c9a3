/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The region of interest: marks that tell the host where the measured part of a
 * load begins and ends, the guest's own counters over exactly that part, and
 * lines for the result.
 *
 * The marks are bytes to port 0xf5 of the test device. Where the host is not in the guest's way, as when QEMU runs it, the command line
 * says faultbed.marks=PORT: there marks go to a serial port of the guest's own, and the host's echo is awaited. The guest's counters are
 * read just before the first and just after the last, so what reading them
 * costs is outside. Lines go to the descriptor FAULTBED_REPORT_FD that init
 * gives, or to stdout by hand:
 *
 *   marked                         this load marks its own region: init's own counters do not count
 *   report NAME VALUE UNIT         a figure
 *   counter SOURCE NAME VALUE      change of a counter between the marks
 *   warning TEXT                   for the result
 *
 * roi_init() must run before other threads start: Linux keeps port permissions a
 * thread and children inherit them. After that any thread may write marks, one at a time.
 */
#ifndef LIB_ROI_H
#define LIB_ROI_H

#include "lib/procstat.h"
#include "lib/util.h"

#define ROI_PORT_EXIT	0xf4
#define ROI_PORT_MARK	0xf5
/* Registers of a 16550, from its first port (PC16550D data sheet, table II). */
#define ROI_UART_DATA	0
#define ROI_UART_LSR	5
#define ROI_LSR_READY	0x01
#define ROI_UART_PORTS	8
#define ROI_UART_FIFO	16

enum roi_mark {
	ROI_MARK_BEGIN = 1,
	ROI_MARK_END = 2,
	ROI_MARK_COMMAND_BEGIN = 3,	/* init's */
	ROI_MARK_COMMAND_END = 4,
	ROI_MARK_PHASE = 16,		/* 16 to 255: phases of a user's own */
};

struct roi {
	bool ports;			/* the ports may be written */
	u16 marks;			/* first port of the serial port that takes marks, 0 = the test device */
	int port_fd;			/* /dev/port where the kernel has no ioperm(), or -1 */
	int report_fd;
	u64 begin_ns, end_ns;		/* CLOCK_MONOTONIC just inside the marks */
	struct procstat before, after;
};

/*
 * Get access to the ports. Without it (no root, or no test device) everything
 * but the marks works, and one line on stderr says so.
 */
void roi_init(struct roi *roi);
/* One mark, without counters. */
void roi_mark(const struct roi *roi, u8 mark);
void roi_begin(struct roi *roi);
void roi_end(struct roi *roi);
/* ns between the two marks. */
u64 roi_ns(const struct roi *roi);
/* Send the counters that changed between roi_begin() and roi_end(). After the region only. */
void roi_send_counters(struct roi *roi);
/* Change of one counter between the marks; 0 if it is not there. */
u64 roi_delta(const struct roi *roi, enum procstat_file file, const char *name);

void roi_report(const struct roi *roi, const char *name, u64 value, const char *unit);
/* The same with a fraction, three digits. */
void roi_report_f(const struct roi *roi, const char *name, double value, const char *unit);
void roi_warning(const struct roi *roi, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Leave the guest by the test device: the VMM's process ends with value << 1 | 1. Returns if there
 * is none.
 */
void roi_exit(const struct roi *roi, u8 value);

#endif
