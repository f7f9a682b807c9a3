// SPDX-License-Identifier: GPL-2.0-only
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"

#define KILL_AFTER	(10 * G_USEC_PER_SEC)
/* A guest may write without ever ending a line. */
#define MAX_LINE	(64u << 10)

struct child_pipe {
	int fd;
	guint source;
	child_line_fn line;
	void *ctx;
	GString *text;
};

static void child_kill(struct child *c, int sig)
{
	/* The child leads a group of its own, so that a terminal's Ctrl-C comes here first. */
	if (c->pid > 0 && !c->gone && kill(-c->pid, sig))
		kill(c->pid, sig);
}

void child_stop(struct child *c)
{
	if (c->kill_at)
		return;
	child_kill(c, SIGTERM);
	c->kill_at = g_get_monotonic_time() + KILL_AFTER;
}

static gboolean on_signal(void *ctx)
{
	struct child_signals *s = ctx;

	s->count++;
	if (s->count == 1)
		fb_info("interrupted: keeping what was measured (again to stop at once)");
	for (struct child *c = s->running; c; c = c->next) {
		if (s->count > 1)
			child_kill(c, SIGKILL);
		else if (!c->outlives)
			child_stop(c);
	}
	return G_SOURCE_CONTINUE;
}

static gboolean on_dump_signal(void *ctx)
{
	struct child_signals *s = ctx;
	bool any = false;

	for (struct child *c = s->running; c; c = c->next) {
		if (!c->dumps || c->gone)
			continue;
		any = true;
		kill(c->pid, SIGUSR1);
	}
	if (!any)
		fb_info("SIGUSR1: there is no VM here that could be dumped now");
	return G_SOURCE_CONTINUE;
}

void child_catch_signals(struct child_signals *s)
{
	g_unix_signal_add(SIGUSR1, on_dump_signal, s);
	g_unix_signal_add(SIGINT, on_signal, s);
	g_unix_signal_add(SIGTERM, on_signal, s);
	g_unix_signal_add(SIGHUP, on_signal, s);
}

/* In the child, before exec: no allocation, no locks. */
static void before_exec(void *unused)
{
	setpgid(0, 0);
	/* One that comes before the VMM is ready for it must not end it. */
	signal(SIGUSR1, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static void give_line(struct child_pipe *p)
{
	g_autofree char *valid = g_utf8_make_valid(p->text->str, p->text->len);
	size_t len = strlen(valid);

	if (len && valid[len - 1] == '\r')
		valid[len - 1] = '\0';
	g_string_truncate(p->text, 0);
	p->line(p->ctx, valid);
}

static void take_bytes(struct child_pipe *p, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (bytes[i] == '\n' || p->text->len >= MAX_LINE)
			give_line(p);
		if (bytes[i] != '\n')
			g_string_append_c(p->text, bytes[i]);
	}
}

/* Take what is there now; false at the end of the file. */
static bool pipe_read(struct child_pipe *p)
{
	char bytes[4096];
	ssize_t n = read(p->fd, bytes, sizeof(bytes));

	if (n > 0)
		take_bytes(p, bytes, n);
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static gboolean on_readable(int fd, GIOCondition condition, void *ctx)
{
	struct child_pipe *p = ctx;

	if (pipe_read(p))
		return G_SOURCE_CONTINUE;
	p->source = 0;
	return G_SOURCE_REMOVE;
}

static struct child_pipe *pipe_new(int fd, child_line_fn line, void *ctx)
{
	struct child_pipe *p = g_new0(struct child_pipe, 1);

	p->fd = fd;
	p->line = line;
	p->ctx = ctx;
	p->text = g_string_new(NULL);
	g_unix_set_fd_nonblocking(fd, TRUE, NULL);
	p->source = g_unix_fd_add(fd, G_IO_IN | G_IO_HUP | G_IO_ERR, on_readable, p);
	return p;
}

/* The child is gone; take what it left in the pipe, but do not wait for whoever else holds it. */
static void pipe_finish(struct child_pipe *p)
{
	char bytes[4096];
	ssize_t n;

	if (!p)
		return;
	if (p->source)
		g_source_remove(p->source);
	while ((n = read(p->fd, bytes, sizeof(bytes))) > 0 || (n < 0 && errno == EINTR))
		if (n > 0)
			take_bytes(p, bytes, n);
	if (p->text->len)
		give_line(p);
	close(p->fd);
	g_string_free(p->text, TRUE);
	g_free(p);
}

static void on_child_exit(GPid pid, int status, void *ctx)
{
	struct child *c = ctx;

	c->gone = true;
	c->signaled = WIFSIGNALED(status);
	c->status = c->signaled ? WTERMSIG(status) : WEXITSTATUS(status);
}

static gboolean on_tick(void *ctx)
{
	struct child *c = ctx;
	s64 now = g_get_monotonic_time();

	if (c->kill_at && now >= c->kill_at) {
		child_kill(c, SIGKILL);
	} else if (!c->kill_at && c->deadline && now >= c->deadline) {
		c->timed_out = true;
		child_stop(c);
	}
	return G_SOURCE_CONTINUE;
}

bool child_start(struct child *c)
{
	GSpawnFlags flags = G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_SEARCH_PATH;
	g_autoptr(GError) err = NULL;
	int out = -1, error = -1;

	if (c->out_null)
		flags |= G_SPAWN_STDOUT_TO_DEV_NULL;
	if (!g_spawn_async_with_pipes(NULL, c->argv, NULL, flags, before_exec, NULL, &c->pid, NULL,
				      c->out && !c->out_null ? &out : NULL, &error, &err)) {
		fb_err("%s: %s", c->argv[0], err->message);
		return false;
	}
	c->started = true;
	if (out >= 0)
		c->pipes[0] = pipe_new(out, c->out, c->ctx);
	c->pipes[1] = pipe_new(error, c->err, c->ctx);
	g_child_watch_add(c->pid, on_child_exit, c);
	c->tick = g_timeout_add(250, on_tick, c);
	c->next = c->signals->running;
	c->signals->running = c;
	if (c->signals->count && !c->outlives)
		child_stop(c);
	return true;
}

void child_wait(void)
{
	g_main_context_iteration(NULL, TRUE);
}

bool child_gone(const struct child *c)
{
	return c->gone;
}

void child_finish(struct child *c)
{
	struct child **at = &c->signals->running;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	g_source_remove(c->tick);
	pipe_finish(c->pipes[0]);
	pipe_finish(c->pipes[1]);
	g_spawn_close_pid(c->pid);
}

bool child_run(struct child *c)
{
	if (!child_start(c))
		return false;
	while (!child_gone(c))
		child_wait();
	child_finish(c);
	return true;
}
