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
 * First serial port, for people: "@cell N start", whatever the VMM says,
 * "@cell N exit STATUS", at last "@done". Second: the VMM's records, raw.
 * It leaves by QEMU's isa-debug-exit.
 */
#include <errno.h>
#include <fcntl.h>
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
#include <unistd.h>

#define VMM		"/bin/faultbed-vmm"
#define RECORDS		"/dev/ttyS1"
#define CONSOLE		"/dev/ttyS0"
#define DEBUG_EXIT	0xf4
#define MAX_ARGS	256

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
	setrlimit(RLIMIT_MEMLOCK, &unlimited);
	setenv("PATH", "/bin:/usr/bin:/sbin:/usr/sbin", 1);
	setenv("FAULTBED_NESTED", "1", 1);
}

/* The next cell's arguments into argv; their number, or 0 at the end. */
static int read_cell(FILE *f, char **argv)
{
	char *line = NULL;
	size_t size = 0;
	ssize_t len;
	int n = 0;

	while (n < MAX_ARGS - 1 && (len = getline(&line, &size, f)) > 0) {
		if (line[len - 1] == '\n')
			line[--len] = '\0';
		if (!len)
			break;
		argv[n++] = strdup(line);
	}
	free(line);
	argv[n] = NULL;
	return n;
}

static int run_cell(char **argv, int console)
{
	int status = 0;
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (!pid) {
		if (!console) {
			int null = open("/dev/null", O_WRONLY);

			if (null >= 0)
				dup2(null, STDOUT_FILENO);
		}
		execv(VMM, argv);
		dprintf(STDERR_FILENO, "error: %s: %s\n", VMM, strerror(errno));
		_exit(4);
	}
	/* Process 1 also inherits orphans; only the VMM's end counts. */
	for (;;) {
		int s;
		pid_t dead = wait(&s);

		if (dead == pid) {
			status = s;
			break;
		}
		if (dead < 0 && errno != EINTR)
			break;
	}
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
	char *argv[MAX_ARGS];
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
	while (read_cell(f, argv)) {
		printf("@cell %u start\n", cell);

		int status = run_cell(argv, console);

		tcdrain(records);
		printf("@cell %u exit %d\n", cell++, status);
		for (char **a = argv; *a; a++)
			free(*a);
	}
	printf("@done\n");
	leave();
}
