// SPDX-License-Identifier: GPL-2.0-only
/* The runner of guests that QEMU runs: three sockets, served by one thread. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "core/engine.h"
#include "machine/machine.h"
#include "peer.h"

enum { CONSOLE, CONTROL, MARKS, NR_LINKS };

struct peer {
	struct vm *vm;
	int wake_fd;
	int fd[NR_LINKS];		/* -1 = at its end */
	GByteArray *out;		/* to ttyS1, not yet written; under vm->lock */
};

static int connect_to(const char *folder, const char *name)
{
	g_autofree char *path = g_build_filename(folder, name, NULL);
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd, err;

	if (strlen(path) >= sizeof(addr.sun_path)) {
		fb_err("%s: a socket's path has %zu bytes at most: a shorter TMPDIR", path, sizeof(addr.sun_path) - 1);
		return -ENAMETOOLONG;
	}
	strcpy(addr.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0)
		return fd;
	err = -errno;
	fb_err("%s: QEMU's serial port: %s", path, g_strerror(errno));
	if (fd >= 0)
		close(fd);
	return err;
}

static void peer_wake(void *ctx)
{
	struct peer *p = ctx;
	u64 one = 1;

	/* Can fail only when the counter is full, which wakes as well. */
	if (write(p->wake_fd, &one, sizeof(one)) < 0)
		return;
}

static void peer_kick_all(struct vm *vm)
{
	peer_wake(vm->runner);
}

/* Under vm->lock. */
static void control_output(void *ctx, const void *data, u32 len)
{
	struct peer *p = ctx;

	g_byte_array_append(p->out, data, len);
	peer_wake(p);
}

static void send_control(struct peer *p)
{
	ssize_t n;

	g_mutex_lock(&p->vm->lock);
	n = p->out->len && p->fd[CONTROL] >= 0 ? send(p->fd[CONTROL], p->out->data, p->out->len, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
	if (n > 0)
		g_byte_array_remove_range(p->out, 0, (guint)n);
	g_mutex_unlock(&p->vm->lock);
}

/* The guest stands still until it has the echo. */
static void take_mark(struct peer *p, u8 mark)
{
	struct testdev *t = &p->vm->machine->testdev;

	if (t->on_mark)
		t->on_mark(t->ctx, NULL, mark, p->vm->engine->now(p->vm, NULL));
	if (send(p->fd[MARKS], &mark, 1, MSG_NOSIGNAL) < 0)
		return;		/* its end is seen by the next read */
}

static void take_bytes(struct peer *p, int link, const u8 *data, ssize_t len)
{
	const struct uart *uart = link == CONSOLE ? &p->vm->machine->console : &p->vm->machine->control;

	if (link != MARKS)
		g_mutex_lock(&p->vm->lock);
	for (ssize_t i = 0; i < len; i++)
		if (link == MARKS)
			take_mark(p, data[i]);
		else
			uart->sink(uart->sink_ctx, data[i]);
	if (link != MARKS)
		g_mutex_unlock(&p->vm->lock);
}

static void read_link(struct peer *p, int link)
{
	u8 data[4096];
	ssize_t n = recv(p->fd[link], data, sizeof(data), MSG_DONTWAIT);

	if (n > 0) {
		take_bytes(p, link, data, n);
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		close(p->fd[link]);
		p->fd[link] = -1;
	}
}

static void serve(struct peer *p, int signal_fd)
{
	struct vm *vm = p->vm;

	while (vm->stop == VM_RUNNING) {
		struct pollfd pfd[NR_LINKS + 2] = {
			[NR_LINKS] = { .fd = p->wake_fd, .events = POLLIN },
			[NR_LINKS + 1] = { .fd = signal_fd, .events = POLLIN },	/* -1 is ignored by poll */
		};
		u64 now = vm->engine->now(vm, NULL), first, wait, drop;
		struct timespec ts;

		clock_run_due(&vm->service, now);
		send_control(p);
		first = clock_first(&vm->service);
		wait = first == CLOCK_NEVER ? NSEC_PER_SEC : first > now ? first - now : 0;
		ts.tv_sec = (time_t)(wait / NSEC_PER_SEC);
		ts.tv_nsec = (long)(wait % NSEC_PER_SEC);
		for (int i = 0; i < NR_LINKS; i++)
			pfd[i] = (struct pollfd){ .fd = p->fd[i], .events = POLLIN };
		g_mutex_lock(&vm->lock);
		if (p->out->len)
			pfd[CONTROL].events |= POLLOUT;
		g_mutex_unlock(&vm->lock);
		if (vm->stop != VM_RUNNING)
			break;
		ppoll(pfd, ARRAY_SIZE(pfd), &ts, NULL);
		for (int i = 0; i < NR_LINKS; i++)
			if (p->fd[i] >= 0 && pfd[i].revents & ~POLLOUT)
				read_link(p, i);
		if (pfd[NR_LINKS].revents && read(p->wake_fd, &drop, sizeof(drop)) < 0)
			continue;
		if (pfd[NR_LINKS + 1].revents)
			vm_request_stop(vm, VM_STOP_SIGNAL, 0);
		/* What the guest said at last has been read by then. */
		if (p->fd[CONSOLE] < 0 && p->fd[CONTROL] < 0 && p->fd[MARKS] < 0)
			vm_request_stop(vm, VM_STOP_GONE, 0);
	}
}

int peer_run(struct vm *vm, const struct peer_place *place, int signal_fd)
{
	static const char *const name[] = { PEER_CONSOLE, PEER_CONTROL, PEER_MARKS };
	struct peer p = { .vm = vm, .wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .fd = { -1, -1, -1 } };
	int err = p.wake_fd < 0 ? -errno : 0;

	for (int i = 0; !err && i < NR_LINKS; i++) {
		p.fd[i] = connect_to(place->folder, name[i]);
		err = MIN(p.fd[i], 0);
	}
	p.out = g_byte_array_new();
	vm->runner = &p;
	vm->service.wake = peer_wake;
	vm->service.wake_ctx = &p;
	vm->kick_all = peer_kick_all;
	vm->machine->control.wire = control_output;
	vm->machine->control.wire_ctx = &p;
	if (!err) {
		vm->engine->vm_start(vm);
		fprintf(stderr, PEER_ATTACHED "\n");
		serve(&p, signal_fd);
	}
	vm->machine->control.wire = NULL;
	vm->kick_all = NULL;
	vm->service.wake = NULL;
	vm->runner = NULL;
	g_byte_array_unref(p.out);
	for (int i = 0; i < NR_LINKS; i++)
		if (p.fd[i] >= 0)
			close(p.fd[i]);
	if (p.wake_fd >= 0)
		close(p.wake_fd);
	return err;
}
