// SPDX-License-Identifier: GPL-2.0-only
/*
 * init of the nested appliance: process 1 of the small Linux that QEMU's TCG
 * carries on hosts without /dev/kvm. It runs the VMM once a cell and leaves.
 *
 * The front end puts the work at /job (host-tools/nested.c):
 *   /job/cwd      the folder to run in, as it is called on the host
 *   /job/cells    the VMM's arguments, one a line, an empty line after each cell
 *   /job/console  there if the guest's console is to be relayed
 *
 * First serial port: "@cell N start", "@cell N exit STATUS", at last "@done", in a cell
 * "@alive" once a second, and between them each line of the VMM's standard error behind a "|" and, with
 * /job/console, of its standard output (the guest's console) behind a ">". So
 * nothing that a guest writes can pass for a word of the appliance or the VMM.
 * Second: the VMM's records, raw. It leaves by QEMU's isa-debug-exit.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define VMM		"/bin/faultbed-vmm"
#define RECORDS		"/dev/ttyS1"
#define CONSOLE		"/dev/ttyS0"
#define DEBUG_EXIT	0xf4
/* Longer lines are cut into several, each marked; the reader would cut them at 64 KiB, unmarked. */
#define MAX_LINE	4096
#define POLL_MS		1000

/* One stream of the VMM on its way out. */
struct relay {
	int fd;			/* -1 = at its end */
	char line[MAX_LINE + 2];	/* the mark first */
	size_t len;
};

static void leave(void) __attribute__((noreturn));
static void leave(void)
{
	fflush(NULL);
	tcdrain(STDOUT_FILENO);
	sync();
	if (!ioperm(DEBUG_EXIT, 1, 1))
		outb(1, DEBUG_EXIT);
	reboot(RB_POWER_OFF);
	reboot(RB_AUTOBOOT);
	for (;;)
		pause();
}

static void die(const char *what) __attribute__((noreturn));
static void die(const char *what)
{
	printf("@failed %s: %s\n", what, strerror(errno));
	leave();
}

/* A serial port that carries bytes as they are. */
static int open_raw(const char *path)
{
	struct termios t;
	int fd = open(path, O_RDWR | O_NOCTTY);

	if (fd < 0 || tcgetattr(fd, &t))
		return fd;
	cfmakeraw(&t);
	t.c_cflag |= CLOCAL;
	tcsetattr(fd, TCSANOW, &t);
	return fd;
}

/* Nothing goes on top of /tmp: the scenario lies at its path on the host, which may be there. */
static void set_up(void)
{
	static const struct {
		const char *source, *target, *type;
	} mounts[] = {
		{ "proc", "/proc", "proc" }, { "sysfs", "/sys", "sysfs" },
		{ "devtmpfs", "/dev", "devtmpfs" }, { "debugfs", "/sys/kernel/debug", "debugfs" },
	};
	struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
	int console;

	for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
		mkdir(mounts[i].target, 0755);
		mount(mounts[i].source, mounts[i].target, mounts[i].type, 0, NULL);
	}
	console = open_raw(CONSOLE);
	if (console >= 0) {
		dup2(console, STDIN_FILENO);
		dup2(console, STDOUT_FILENO);
		dup2(console, STDERR_FILENO);
		if (console > STDERR_FILENO)
			close(console);
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	/* Forty vCPUs are no reason not to be heard. */
	sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &(struct sched_param){ .sched_priority = 1 });
	setrlimit(RLIMIT_MEMLOCK, &unlimited);
	setenv("PATH", "/bin:/usr/bin:/sbin:/usr/sbin", 1);
	setenv("FAULTBED_NESTED", "1", 1);
}

static void free_args(char **argv)
{
	for (char **a = argv; argv && *a; a++)
		free(*a);
	free(argv);
}

/* The next cell's arguments; NULL at the end. */
static char **read_cell(FILE *f)
{
	char *line = NULL, **argv = NULL;
	size_t size = 0, n = 0, room = 0;
	ssize_t len;

	while ((len = getline(&line, &size, f)) > 0) {
		if (line[len - 1] == '\n')
			line[--len] = '\0';
		if (!len)
			break;
		if (n + 2 > room) {
			room = room ? 2 * room : 64;
			argv = realloc(argv, room * sizeof(*argv));
			if (!argv)
				die("memory");
		}
		argv[n] = strdup(line);
		if (!argv[n])
			die("memory");
		argv[++n] = NULL;
	}
	free(line);
	return argv;
}

static void write_all(const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(STDOUT_FILENO, text, len);

		if (n < 0 && errno != EINTR)
			return;
		if (n > 0) {
			text += n;
			len -= n;
		}
	}
}

static void relay_begin(struct relay *r, int fd, char mark)
{
	r->fd = fd;
	r->line[0] = mark;
	r->len = 1;
	fcntl(fd, F_SETFL, O_NONBLOCK);
}

static void relay_end_line(struct relay *r)
{
	r->line[r->len++] = '\n';
	write_all(r->line, r->len);
	r->len = 1;
}

/* Take what is there. */
static void relay_read(struct relay *r)
{
	char bytes[4096];
	ssize_t n;

	while (r->fd >= 0 && (n = read(r->fd, bytes, sizeof(bytes))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return;
		for (ssize_t i = 0; i < n; i++) {
			if (bytes[i] == '\n' || r->len > MAX_LINE)
				relay_end_line(r);
			if (bytes[i] != '\n')
				r->line[r->len++] = bytes[i];
		}
	}
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
}

static void relay_finish(struct relay *r)
{
	relay_read(r);
	if (r->len > 1)
		relay_end_line(r);
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
}

/* Process 1 also inherits orphans; only the VMM's end counts. true with *status then. */
static int reap(pid_t pid, int *status, int flags)
{
	int s;
	pid_t dead;

	while ((dead = waitpid(-1, &s, flags)) > 0 || (dead < 0 && errno == EINTR)) {
		if (dead == pid) {
			*status = s;
			return 1;
		}
	}
	return dead < 0;
}

/* Until the VMM has ended and all that it wrote is out. */
static int relay_all(pid_t pid, struct relay *out, struct relay *err)
{
	time_t said = 0;
	int status = 0;

	for (;;) {
		time_t now = time(NULL);

		if (now != said)
			write_all("@alive\n", 7);
		said = now;
		/* poll() passes over those at their end. */
		struct pollfd fds[] = { { .fd = out->fd, .events = POLLIN },
					{ .fd = err->fd, .events = POLLIN } };
		int over = out->fd < 0 && err->fd < 0;

		if (!over)
			poll(fds, 2, POLL_MS);
		relay_read(err);
		relay_read(out);
		if (reap(pid, &status, over ? 0 : WNOHANG))
			break;
	}
	relay_finish(err);
	relay_finish(out);
	return status;
}

static int run_cell(char **argv, int console)
{
	static struct relay out, err;
	int out_pipe[2], err_pipe[2], status;
	pid_t pid;

	if (pipe2(out_pipe, O_CLOEXEC) || pipe2(err_pipe, O_CLOEXEC))
		die("pipe");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		int null = console ? -1 : open("/dev/null", O_WRONLY | O_CLOEXEC);

		dup2(null >= 0 ? null : out_pipe[1], STDOUT_FILENO);
		dup2(err_pipe[1], STDERR_FILENO);
		execv(VMM, argv);
		dprintf(STDERR_FILENO, "error: %s: %s\n", VMM, strerror(errno));
		_exit(4);
	}
	close(out_pipe[1]);
	close(err_pipe[1]);
	relay_begin(&out, out_pipe[0], '>');
	relay_begin(&err, err_pipe[0], '|');
	status = relay_all(pid, &out, &err);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void enter_folder(void)
{
	char path[4096];
	FILE *f = fopen("/job/cwd", "r");

	if (!f || !fgets(path, sizeof(path), f))
		die("/job/cwd");
	path[strcspn(path, "\n")] = '\0';
	if (chdir(path))
		die(path);
	fclose(f);
}

int main(void)
{
	char **argv;
	int records, console;
	unsigned int cell = 0;
	FILE *f;

	set_up();
	printf("@booted\n");
	/* Held open, so that the port stays raw between two VMMs. */
	records = open_raw(RECORDS);
	if (records < 0)
		die(RECORDS);
	console = !access("/job/console", F_OK);
	enter_folder();
	f = fopen("/job/cells", "re");
	if (!f)
		die("/job/cells");
	while ((argv = read_cell(f))) {
		printf("@cell %u start\n", cell);

		int status = run_cell(argv, console);

		tcdrain(records);
		printf("@cell %u exit %d\n", cell++, status);
		free_args(argv);
	}
	printf("@done\n");
	leave();
}
