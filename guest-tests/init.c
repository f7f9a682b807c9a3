// SPDX-License-Identifier: GPL-2.0-only
/*
 * init: process 1 of the test guest. It mounts what programs expect, tells the
 * host about the guest, applies knobs and runs the host's commands, all over
 * the control port (ttyS1, protocol in docs/records.md). Console output of
 * commands goes to the console (ttyS0).
 *
 * Without a host on the control port it stays usable by hand: the kernel
 * parameter faultbed.run="COMMAND" runs one command and leaves; with no ttyS1
 * at all the console gets a shell.
 *
 * It never exits, since that would panic the kernel: it leaves by the test
 * device. The one exception is asked for: SIGQUIT, which bad-guest sends to get
 * a kernel panic out of any kernel.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "lib/about.h"
#include "lib/guest.h"
#include "lib/lines.h"
#include "lib/procstat.h"
#include "lib/report.h"
#include "lib/roi.h"
#include "lib/util.h"

#define CONTROL_PORT	"/dev/ttyS1"
#define PROTOCOL	1
#define MAX_ENV		64
#define MAX_BAD_LINES	8
/* The descriptor on which a command reports; above those that shells use for themselves. */
#define REPORT_FD	20
#define DEBUGFS		"/sys/kernel/debug"
#define FAULTBED	DEBUGFS "/faultbed"
/* <linux/random.h>, which not every C library's headers come with. */
#define RNDRESEEDCRNG	_IO('R', 0x07)
/* How long the host may stay silent before the console says what init waits for. */
#define HINT_MS		20000
/* syslog(2): actions, and the console level at which WARN() and lockdep are shown. "quiet" sets 4. */
#define KLOG_READ_ALL	3
#define KLOG_SET_LEVEL	8
#define KLOG_SIZE	10
#define LEVEL_WARNING	4

struct init {
	struct roi roi;			/* ports, and snapshots around the command */
	int control;			/* ttyS1, or -1 */
	int signals;			/* signalfd: SIGCHLD, SIGQUIT */
	struct lines input;		/* from the host */
	struct lines report;		/* from the command */
	u32 bad_lines;			/* of the command's reports */
	bool marked;			/* the command marks its own region */
	char *env[MAX_ENV];		/* "NAME=VALUE" for the next command */
	u32 nr_env;
};

static void console(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void console(const char *fmt, ...)
{
	va_list ap;

	fputs("init: ", stdout);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
}

/* Leave the guest; status is the test device's value. */
static void leave(struct init *in, u8 status) __attribute__((noreturn));

static void leave(struct init *in, u8 status)
{
	if (in->control >= 0)
		tcdrain(in->control);
	fflush(stdout);
	tcdrain(STDOUT_FILENO);
	roi_exit(&in->roi, status);
	/* QEMU's takes effect a little later. */
	sleep(1);
	/* No test device: power off, and where that does nothing, wait for whoever started us. */
	console("no test device at port 0xf4: powering off");
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}

static void fatal(struct init *in, const char *fmt, ...)
	__attribute__((noreturn, format(printf, 2, 3)));

static void fatal(struct init *in, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	console("fatal: %s", text);
	leave(in, 1);
}

/* One line to the host. Unprintable bytes become '?', so that a value cannot make a line. */
static void tell(struct init *in, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void tell(struct init *in, const char *fmt, ...)
{
	char line[LINE_MAX_BYTES];
	size_t len, done = 0;
	va_list ap;
	ssize_t n;
	int ret;

	va_start(ap, fmt);
	ret = vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	if (ret < 0)
		return;
	if (in->control < 0) {		/* by hand: the console's reader is the host */
		console("%.*s", (int)sizeof(line), line);
		return;
	}
	len = (size_t)ret < sizeof(line) - 2 ? (size_t)ret : sizeof(line) - 2;
	for (size_t i = 0; i < len; i++)
		if (line[i] < ' ' || line[i] > '~')
			line[i] = line[i] == '\t' ? ' ' : '?';
	line[len++] = '\n';
	while (done < len) {
		n = write(in->control, line + done, len - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			int err = errno;

			in->control = -1;
			fatal(in, "%s: %s", CONTROL_PORT, strerror(err));
		}
		done += (size_t)n;
	}
}

static void mount_one(const char *type, const char *where)
{
	if (mkdir(where, 0755) && errno != EEXIST)
		console("%s: %s", where, strerror(errno));
	if (mount(type, where, type, 0, NULL) && errno != EBUSY)
		console("mount %s on %s: %s", type, where, strerror(errno));
}

/* stdin, stdout and stderr: the kernel gives none when the initramfs has no /dev/console. */
static void open_console(void)
{
	int fd = open("/dev/console", O_RDWR | O_NOCTTY);

	if (fd < 0)
		return;
	for (int i = 0; i < 3; i++)
		if (fd != i)
			dup2(fd, i);
	if (fd > 2)
		close(fd);
}

/*
 * The control port as raw bytes, or -1. /dev/ttyS1 exists without a UART
 * behind it: reading its settings fails then.
 */
static int open_control(void)
{
	struct termios t;
	int fd = open(CONTROL_PORT, O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return -1;
	if (tcgetattr(fd, &t)) {
		close(fd);
		return -1;
	}
	cfmakeraw(&t);
	t.c_cflag |= CLOCAL | CREAD;
	cfsetspeed(&t, B115200);
	if (tcsetattr(fd, TCSANOW, &t)) {
		close(fd);
		return -1;
	}
	/* Nonblocking was for the open only, which would wait for a carrier. */
	fcntl(fd, F_SETFL, 0);
	return fd;
}

/*
 * A host finds on the console what a kernel complains of (vmm/console.c). WARN(), lockdep
 * and RCU complain at level 4, which "quiet" keeps away from there. So from here on such
 * lines are shown, and so are those of the boot, which are few.
 */
static void show_warnings(void)
{
	char text[64], *log, *save = NULL;
	int level, size, n;

	/* The console's level is the first number. Whoever asked for more has all of it already. */
	if (read_line("/proc/sys/kernel/printk", text, sizeof(text)) < 0 || sscanf(text, "%d", &level) != 1 ||
	    level > LEVEL_WARNING || klogctl(KLOG_SET_LEVEL, NULL, LEVEL_WARNING + 1))
		return;
	size = klogctl(KLOG_SIZE, NULL, 0);
	log = size > 0 ? malloc((size_t)size + 1) : NULL;
	if (!log)
		return;
	n = klogctl(KLOG_READ_ALL, log, size);
	log[n > 0 ? n : 0] = '\0';
	for (char *line = strtok_r(log, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		/* "<4>[    0.021617] text": facility times 8 + level. The rest was shown if the level was. */
		char *end;
		unsigned long priority = *line == '<' ? strtoul(line + 1, &end, 10) : 0;

		if (*line == '<' && *end == '>' && (priority & 7) >= (unsigned)level &&
		    (priority & 7) <= LEVEL_WARNING)
			puts(end + 1);
	}
	fflush(stdout);
	free(log);
}

static void tell_fact(void *ctx, const char *key, const char *value)
{
	tell(ctx, "info %s %s", key, value);
}

/* Apply one requested knob and say which value is in force. */
static void apply_knob(struct init *in, const char *name, const char *value)
{
	char path[128], now[256];
	int ret;

	if (strchr(name, '/') || strlen(name) > 64) {
		tell(in, "error knob %s: not a name", name);
		return;
	}
	snprintf(path, sizeof(path), FAULTBED "/knobs/%s", name);
	ret = write_file(path, value);
	if (ret == -ENOENT) {
		tell(in, "error knob %s: this kernel has no such knob", name);
		return;
	}
	if (ret) {
		tell(in, "error knob %s: value %s refused: %s", name, value, strerror(-ret));
		return;
	}
	ret = read_line(path, now, sizeof(now));
	if (ret < 0)
		tell(in, "error knob %s: cannot be read back: %s", name, strerror(-ret));
	else
		tell(in, "knob %s %s", name, now);
}

static void apply_knobs(struct init *in)
{
	char text[8192], name[128], value[128];
	char *save = NULL;
	int ret = read_file(FAULTBED "/requested", text, sizeof(text));

	if (ret < 0) {
		tell(in,
		     "error knobs: this kernel has no faultbed channel (" FAULTBED
		     "/requested: %s)",
		     strerror(-ret));
		return;
	}
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (sscanf(line, "%127s %127s", name, value) == 2)
			apply_knob(in, name, value);
}

/* One line that the command wrote to its report descriptor. */
static void forward_report(struct init *in, const char *line)
{
	char clean[LINE_MAX_BYTES];

	switch (report_check(line, clean, sizeof(clean))) {
	case REPORT_BLANK:
		break;
	case REPORT_MARKED:
		in->marked = true;
		break;
	case REPORT_LINE:
		tell(in, "%s", clean);
		break;
	case REPORT_BAD:
		if (in->bad_lines++ > MAX_BAD_LINES)
			break;
		tell(in,
		     "warning the load wrote a line that is no report, counter or warning: %.200s",
		     line);
		if (in->bad_lines > MAX_BAD_LINES)
			tell(in, "warning more such lines are dropped");
		break;
	}
}

/* In the child: become the command. */
static void exec_command(struct init *in, const char *command, int report_fd)
	__attribute__((noreturn));

static void exec_command(struct init *in, const char *command, int report_fd)
{
	char fd_text[8];
	sigset_t none;
	int null;

	setpgid(0, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	null = open("/dev/null", O_RDONLY);
	if (null >= 0)
		dup2(null, STDIN_FILENO);
	dup2(report_fd, REPORT_FD);
	snprintf(fd_text, sizeof(fd_text), "%d", REPORT_FD);
	setenv("FAULTBED_REPORT_FD", fd_text, 1);
	for (u32 i = 0; i < in->nr_env; i++)
		putenv(in->env[i]);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	dprintf(STDERR_FILENO, "init: /bin/sh: %s\n", strerror(errno));
	_exit(127);
}

/* Take all children that ended; true if `pid` was among them. */
static bool reap(pid_t pid, int *status)
{
	bool found = false;
	int st;
	pid_t p;

	while ((p = waitpid(-1, &st, WNOHANG)) > 0) {
		if (p == pid) {
			*status = st;
			found = true;
		}
	}
	return found;
}

static void drain_reports(struct init *in)
{
	char line[LINE_MAX_BYTES];

	while (lines_next(&in->report, line, sizeof(line)))
		forward_report(in, line);
}

static void handle_signals(struct init *in)
{
	struct signalfd_siginfo si;

	if (read(in->signals, &si, sizeof(si)) == sizeof(si) && si.ssi_signo == SIGQUIT) {
		console("asked to panic the kernel: exiting");
		_exit(1);
	}
}

/* Forward what the command reports until it ends. Returns its wait status. */
static int watch_command(struct init *in, pid_t pid)
{
	struct pollfd fds[3] = {
		{ .fd = in->signals, .events = POLLIN },
		{ .fd = in->report.fd, .events = POLLIN },
		{ .fd = in->control, .events = POLLIN },
	};
	char line[LINE_MAX_BYTES];
	int status = 0;

	for (;;) {
		if (poll(fds, 3, -1) < 0)
			continue;
		/* Before the reports: the end mark follows the command's end at once. */
		if (fds[0].revents)
			handle_signals(in);
		if (reap(pid, &status))
			return status;
		if (fds[1].revents) {
			if (lines_fill(&in->report) < 0)
				fds[1].fd = -1;		/* the command closed it; it may run on */
			drain_reports(in);
		}
		if (!fds[2].revents)
			continue;
		if (lines_fill(&in->input) < 0)
			fatal(in, "%s: the host is gone", CONTROL_PORT);
		while (lines_next(&in->input, line, sizeof(line))) {
			if (!strcmp(line, "quit"))
				leave(in, 0);
			if (*line)
				tell(in, "warning a command is running: ignored: %.200s", line);
		}
	}
}

/*
 * The kernel's random numbers come of what RDRAND gave in the boot. A repeat's seed
 * reaches RDRAND only now (engine soft), so let the kernel draw again: address space
 * layouts differ from seed to seed, also where all start from one booted guest.
 */
static void reseed_kernel(void)
{
	int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	/* Refused while the kernel has not gathered enough yet: then it draws later anyway. */
	ioctl(fd, RNDRESEEDCRNG);
	close(fd);
}

static void send_counter(void *ctx, const char *source, const char *name, u64 delta)
{
	tell(ctx, "counter %s %s %llu", source, name, (unsigned long long)delta);
}

static void clear_env(struct init *in)
{
	while (in->nr_env)
		free(in->env[--in->nr_env]);
}

/* Run one command between marks. Returns 0 to 255, as a shell would see it. */
static int run_command(struct init *in, const char *command)
{
	int pipefd[2], status;
	pid_t pid;

	if (pipe2(pipefd, O_CLOEXEC)) {
		tell(in, "error run: pipe: %s", strerror(errno));
		return 126;
	}
	in->report = (struct lines){ .fd = pipefd[0] };
	in->marked = false;
	in->bad_lines = 0;
	fflush(stdout);
	reseed_kernel();

	procstat_take(&in->roi.before);
	roi_mark(&in->roi, ROI_MARK_COMMAND_BEGIN);
	pid = fork();
	if (pid == 0)
		exec_command(in, command, pipefd[1]);
	if (pid < 0) {
		int err = errno;

		roi_mark(&in->roi, ROI_MARK_COMMAND_END);
		close(pipefd[0]);
		close(pipefd[1]);
		tell(in, "error run: fork: %s", strerror(err));
		return 126;
	}
	close(pipefd[1]);
	status = watch_command(in, pid);
	roi_mark(&in->roi, ROI_MARK_COMMAND_END);
	procstat_take(&in->roi.after);

	/* What the command left behind must not run into the next one. */
	kill(-pid, SIGKILL);
	fcntl(pipefd[0], F_SETFL, O_NONBLOCK);
	while (lines_fill(&in->report) > 0)
		drain_reports(in);
	if (in->report.len)
		tell(in, "warning the load's last report line had no end and was dropped");
	close(pipefd[0]);
	reap(-1, &status);
	if (!in->marked)
		procstat_changes(&in->roi.before, &in->roi.after, send_counter, in);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void add_env(struct init *in, const char *assignment)
{
	const char *eq = strchr(assignment, '=');

	if (!eq || eq == assignment || in->nr_env == MAX_ENV) {
		tell(in, "error env %.100s: %s", assignment,
		     in->nr_env == MAX_ENV ? "too many" : "not NAME=VALUE");
		return;
	}
	in->env[in->nr_env] = strdup(assignment);
	if (!in->env[in->nr_env])
		fatal(in, "no memory");
	in->nr_env++;
}

static void handle_line(struct init *in, const char *line)
{
	if (!strncmp(line, "env ", 4)) {
		add_env(in, line + 4);
	} else if (!strcmp(line, "knobs")) {
		apply_knobs(in);
		tell(in, "ready");
	} else if (!strncmp(line, "run ", 4)) {
		int status = run_command(in, line + 4);

		clear_env(in);
		tell(in, "done %d", status);
		tell(in, "ready");
	} else if (!strcmp(line, "quit")) {
		leave(in, 0);
	} else if (*line) {
		tell(in, "error unknown line: %.200s", line);
	}
}

/* Serve the host for ever. */
static void serve(struct init *in) __attribute__((noreturn));

static void serve(struct init *in)
{
	struct pollfd fds[2] = {
		{ .fd = in->signals, .events = POLLIN },
		{ .fd = in->control, .events = POLLIN },
	};
	char line[LINE_MAX_BYTES];
	int timeout = HINT_MS, status, n;

	tell(in, "ready");
	for (;;) {
		n = poll(fds, 2, timeout);
		if (n < 0)
			continue;
		if (n == 0) {
			console("waiting for a command on " CONTROL_PORT
				" (run COMMAND, quit; see docs/records.md)");
			console("by hand: boot with faultbed.run=\"COMMAND\", or without a second serial port for a shell");
			timeout = -1;
			continue;
		}
		if (fds[0].revents) {
			handle_signals(in);
			reap(-1, &status);
		}
		if (!fds[1].revents)
			continue;
		timeout = -1;
		if (lines_fill(&in->input) < 0)
			fatal(in, CONTROL_PORT ": the host is gone");
		while (lines_next(&in->input, line, sizeof(line)))
			handle_line(in, line);
	}
}

/* Value of faultbed.run= on the kernel's command line, quotes removed; NULL if it is not there. */
static char *run_parameter(void)
{
	static const char key[] = "faultbed.run=";
	char text[LINE_MAX_BYTES];
	char *p, *end;

	if (read_line("/proc/cmdline", text, sizeof(text)) < 0)
		return NULL;
	for (p = strstr(text, key); p; p = strstr(p + 1, key))
		if (p == text || p[-1] == ' ' || p[-1] == '"')
			break;
	if (!p)
		return NULL;
	/* The kernel moves a quote to either side of the name. */
	if (p > text && p[-1] == '"') {
		p += strlen(key);
		end = strchr(p, '"');
	} else if (p[strlen(key)] == '"') {
		p += strlen(key) + 1;
		end = strchr(p, '"');
	} else {
		p += strlen(key);
		end = strchr(p, ' ');
	}
	if (end)
		*end = '\0';
	return strdup(p);
}

/* A shell on the console, for a boot by hand with no control port. */
static void run_shell(struct init *in) __attribute__((noreturn));

static void run_shell(struct init *in)
{
	pid_t pid;
	int status;

	console("no control port (" CONTROL_PORT "): a shell on the console; leave it with exit");
	console("programs: multi-fault, ipi-pingpong, first-touch, fixed-work, topology-check, counters-check, bad-guest");
	pid = fork();
	if (pid == 0) {
		sigset_t none;

		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		signal(SIGPIPE, SIG_DFL);
		setsid();
		close(STDIN_FILENO);
		/* A session leader's first terminal becomes its own, unlike /dev/console. */
		if (open("/dev/ttyS0", O_RDWR) == 0) {
			dup2(0, 1);
			dup2(0, 2);
		} else {
			open("/dev/console", O_RDWR);
		}
		execl("/bin/sh", "-sh", (char *)NULL);
		_exit(127);
	}
	if (pid < 0)
		fatal(in, "fork: %s", strerror(errno));
	for (;;) {
		struct pollfd fd = { .fd = in->signals, .events = POLLIN };

		if (poll(&fd, 1, -1) > 0)
			handle_signals(in);
		if (reap(pid, &status))
			leave(in, WIFSIGNALED(status) ? 1 : (u8)WEXITSTATUS(status));
	}
}

int main(void)
{
	struct init *in = calloc(1, sizeof(*in));
	sigset_t mask;
	char *command;

	if (getpid() != 1) {
		fprintf(stderr,
			"init: this is the test guest's process 1, nothing to run by hand\n");
		return EXIT_USAGE;
	}
	mount_one("devtmpfs", "/dev");
	open_console();
	mount_one("proc", "/proc");
	mount_one("sysfs", "/sys");
	mount_one("tmpfs", "/tmp");
	mount_one("tmpfs", "/run");
	if (access(DEBUGFS, F_OK) == 0)
		mount_one("debugfs", DEBUGFS);
	if (!in) {
		console("fatal: no memory");
		reboot(RB_POWER_OFF);
		for (;;)
			pause();
	}
	setenv("PATH", "/bin:/sbin:/usr/bin:/usr/sbin", 1);
	setenv("HOME", "/", 1);
	setenv("TERM", "dumb", 1);
	setenv(GUEST_ENV, "1", 1);
	in->control = -1;
	roi_init(&in->roi);

	sigemptyset(&mask);
	sigaddset(&mask, SIGCHLD);
	sigaddset(&mask, SIGQUIT);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	signal(SIGPIPE, SIG_IGN);
	in->signals = signalfd(-1, &mask, SFD_CLOEXEC);
	if (in->signals < 0)
		fatal(in, "signalfd: %s", strerror(errno));

	show_warnings();
	command = run_parameter();
	if (command) {		/* with no protocol: its reports go to the console */
		int status = run_command(in, command);

		console("faultbed.run ended with status %d", status);
		leave(in, (u8)status);
	}
	in->control = open_control();
	in->input = (struct lines){ .fd = in->control };
	if (in->control < 0)
		run_shell(in);
	tell(in, "hello %d", PROTOCOL);
	about_guest(tell_fact, in);
	serve(in);
}
