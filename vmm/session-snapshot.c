// SPDX-License-Identifier: GPL-2.0-only
/* Whether a run starts from a snapshot, and whether it leaves one. */
#include "session-snapshot.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "base/log.h"

/* How often to look whether the process that makes the snapshot is done. */
#define WAIT_MS		50

static u64 host_ns(void)
{
	return (u64)g_get_monotonic_time() * 1000;
}

static void say(const struct session_snapshot *ss, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(const struct session_snapshot *ss, const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	text = g_strdup_vprintf(fmt, ap);
	va_end(ap);
	ss->say(ss->ctx, text);
	g_free(text);
}

/* An open snapshot into the VM. */
static enum status restore(struct session_snapshot *ss, struct snapshot *snap, u64 start)
{
	char *err = NULL;
	bool ok = snapshot_load(snap, ss->vm, &ss->key, &ss->part, &err);

	snapshot_close(snap);
	if (!ok) {
		fb_err("%s", err);
		g_free(err);
		return STATUS_BAD_INPUT;
	}
	ss->how = "restored";
	ss->host_ns = host_ns() - start;
	say(ss, "guest restored from a snapshot in %.2f s", (double)ss->host_ns / 1e9);
	return STATUS_DONE;
}

/* The file that the user named: it has to do. */
static enum status load_named(struct session_snapshot *ss)
{
	const char *path = ss->wish->load;
	u64 start = host_ns();
	struct snapshot snap;
	char *err = NULL;

	if (snapshot_open(&snap, path, &ss->key, ss->vm, &err) != SNAPSHOT_FOUND) {
		fb_err("%s", err);
		g_free(err);
		return STATUS_BAD_INPUT;
	}
	if (snap.ready_ns >= ss->latest) {
		fb_err("%s: this guest took %.3f s to boot, and run.boot_timeout or run.timeout allows %.3f s", path,
		       (double)snap.ready_ns / 1e9, (double)ss->latest / 1e9);
		snapshot_close(&snap);
		return STATUS_BAD_INPUT;
	}
	return restore(ss, &snap, start);
}

/* The one of this key in the cache; *restored stays false if there is none that can be used. */
static enum status load_cached(struct session_snapshot *ss, bool *restored)
{
	char *path = g_build_filename(ss->dir, ss->key.digest, NULL), *err = NULL;
	enum status status = STATUS_DONE;
	u64 start = host_ns();
	struct snapshot snap;

	switch (snapshot_open(&snap, path, &ss->key, ss->vm, &err)) {
	case SNAPSHOT_FOUND:
		if (snap.ready_ns < ss->latest) {
			status = restore(ss, &snap, start);
			*restored = status == STATUS_DONE;
		} else {
			snapshot_close(&snap);
		}
		break;
	case SNAPSHOT_MISSING:
		break;
	case SNAPSHOT_OTHER:	/* its name says otherwise, so that it is damaged as well */
	case SNAPSHOT_DAMAGED:
		fb_warn("%s; booting", err);
		unlink(path);
		break;
	}
	g_free(err);
	g_free(path);
	return status;
}

/* Wait until nobody else makes the snapshot, or somebody has. */
static enum status wait_and_load(struct session_snapshot *ss, bool *restored)
{
	struct pollfd pfd = { .fd = ss->signal_fd, .events = POLLIN };
	bool told = false;

	for (;;) {
		ss->lock = snapshot_lock(ss->dir, ss->key.digest);
		if (ss->lock != -EAGAIN)
			break;
		if (!told)
			say(ss, "another run is booting this guest: waiting for its snapshot");
		told = true;
		if (poll(&pfd, 1, WAIT_MS) > 0) {
			vm_request_stop(ss->vm, VM_STOP_SIGNAL, 0);
			return STATUS_DONE;
		}
	}
	if (ss->lock < 0)
		fb_warn("%s: %s: this boot will not be kept", ss->dir, g_strerror(-ss->lock));
	/* Whoever had the lock may just have written it. */
	return load_cached(ss, restored);
}

/* Can a file be made there? Asked before a boot of minutes. */
static enum status check_target(const char *path)
{
	char *dir = g_path_get_dirname(path);
	enum status status = STATUS_DONE;

	if (access(dir, W_OK | X_OK) < 0) {
		fb_err("--save-snapshot %s: %s: %s", path, dir, g_strerror(errno));
		status = STATUS_BAD_INPUT;
	} else if (g_file_test(path, G_FILE_TEST_EXISTS) && !g_file_test(path, G_FILE_TEST_IS_REGULAR)) {
		fb_err("--save-snapshot %s: it exists and is no file", path);
		status = STATUS_BAD_INPUT;
	}
	g_free(dir);
	return status;
}

enum status session_snapshot_begin(struct session_snapshot *ss, const struct vm_setup *setup, bool *restored)
{
	enum status status;
	char *err = NULL;

	*restored = false;
	ss->lock = -1;
	ss->how = "off";
	status = snapshot_key_init(&ss->key, ss->vm, setup);
	if (status != STATUS_DONE)
		return status;
	if (ss->wish->load) {
		status = load_named(ss);
		*restored = status == STATUS_DONE;
		return status;
	}
	if (ss->wish->save)
		return check_target(ss->wish->save);
	if (ss->wish->off)
		return STATUS_DONE;
	ss->how = "not saved";
	ss->dir = snapshot_dir(&err);
	if (!ss->dir) {
		fb_warn("%s: this boot will not be kept", err);
		g_free(err);
		return STATUS_DONE;
	}
	status = load_cached(ss, restored);
	if (status == STATUS_DONE && !*restored)
		status = wait_and_load(ss, restored);
	if (*restored || status != STATUS_DONE) {
		snapshot_unlock(ss->lock);
		ss->lock = -1;
	}
	return status;
}

static bool write_snapshot(struct session_snapshot *ss, const GByteArray *state, const char *path)
{
	u64 start = host_ns();
	char *err = NULL;

	if (snapshot_write(ss->vm, state, path, &ss->bytes, &err)) {
		fb_warn("%s", err);
		g_free(err);
		return false;
	}
	ss->how = "saved";
	ss->host_ns = host_ns() - start;
	say(ss, "booted guest saved in %.2f s, %llu MiB", (double)ss->host_ns / 1e9,
	    (unsigned long long)(ss->bytes / MIB));
	return true;
}

enum status session_snapshot_booted(struct session_snapshot *ss, bool worth)
{
	char *err = NULL, *path = NULL;
	GByteArray *state = snapshot_take(ss->vm, &ss->key, &ss->part, &err);
	bool ok = state, wanted = true;

	if (ok && worth && ss->wish->save) {
		wanted = write_snapshot(ss, state, ss->wish->save);
	} else if (ok && worth && ss->lock >= 0) {
		path = g_build_filename(ss->dir, ss->key.digest, NULL);
		write_snapshot(ss, state, path);
		snapshot_trim(ss->dir, path, SNAPSHOT_CACHE_MAX);
	}
	snapshot_unlock(ss->lock);
	ss->lock = -1;
	if (ok)
		ok = snapshot_put(ss->vm, &ss->key, &ss->part, "the state just taken", state->data, state->len, &err);
	if (!ok)
		fb_err("%s", err);
	if (state)
		g_byte_array_unref(state);
	g_free(path);
	g_free(err);
	if (!ok)
		return STATUS_INTERNAL;
	return wanted ? STATUS_DONE : STATUS_BAD_INPUT;
}

void session_snapshot_end(struct session_snapshot *ss)
{
	snapshot_unlock(ss->lock);
	ss->lock = -1;
	snapshot_key_free(&ss->key);
	g_free(ss->dir);
	ss->dir = NULL;
}
