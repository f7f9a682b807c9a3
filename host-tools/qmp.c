// SPDX-License-Identifier: GPL-2.0-only
#include "qmp.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "summary.h"

/* QEMU answers at once, on a host that is not hopelessly busy. */
#define ANSWER_S	30
/* It says nothing of that length. */
#define LINE_MAX_BYTES	(1u << 20)

static void at_end(struct qmp *q)
{
	if (q->fd >= 0)
		close(q->fd);
	q->fd = -1;
}

static void take_event(struct qmp *q, JsonObject *o)
{
	const char *event = summary_string(o, "event", "");

	if (!strcmp(event, "GUEST_PANICKED"))
		q->panicked = true;
	if (strcmp(event, "SHUTDOWN") || q->ended)
		return;
	q->ended = g_strdup(summary_string(summary_object(o, "data"), "reason", "no reason given"));
}

/* The next line as an object; NULL if there is none (yet, without `wait`). json_node_unref(). */
static JsonNode *next_line(struct qmp *q, bool wait)
{
	char bytes[4096], *end;
	JsonNode *node;

	while (!(end = memchr(q->in->str, '\n', q->in->len))) {
		ssize_t n = q->fd < 0 ? 0 : recv(q->fd, bytes, sizeof(bytes), wait ? 0 : MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN && !wait)
			return NULL;
		if (n <= 0 || q->in->len > LINE_MAX_BYTES) {
			at_end(q);
			return NULL;
		}
		g_string_append_len(q->in, bytes, n);
	}
	*end = '\0';
	node = json_from_string(q->in->str, NULL);
	g_string_erase(q->in, 0, end - q->in->str + 1);
	if (node && JSON_NODE_HOLDS_OBJECT(node))
		return node;
	g_clear_pointer(&node, json_node_unref);
	at_end(q);
	return NULL;
}

void qmp_events(struct qmp *q)
{
	JsonNode *node;

	while (q->in && (node = next_line(q, false))) {
		take_event(q, json_node_get_object(node));
		json_node_unref(node);
	}
}

JsonNode *qmp_command(struct qmp *q, const char *name, JsonObject *arguments)
{
	g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);
	JsonObject *o = json_object_new();
	g_autofree char *text = NULL, *line = NULL;
	JsonNode *answer, *result = NULL;
	bool answered = false;

	json_object_set_string_member(o, "execute", name);
	if (arguments)
		json_object_set_object_member(o, "arguments", arguments);
	json_node_take_object(node, o);
	text = json_to_string(node, FALSE);
	line = g_strconcat(text, "\n", NULL);
	if (q->fd < 0 || send(q->fd, line, strlen(line), MSG_NOSIGNAL) != (ssize_t)strlen(line)) {
		at_end(q);
		return NULL;
	}
	while (!answered && (answer = next_line(q, true))) {
		o = json_node_get_object(answer);
		answered = json_object_has_member(o, "return") || json_object_has_member(o, "error");
		if (json_object_has_member(o, "return"))
			result = json_object_dup_member(o, "return");
		else if (answered)
			fb_err("QEMU: %s: %s", name, summary_string(summary_object(o, "error"), "desc", "no reason given"));
		else
			take_event(q, o);
		json_node_unref(answer);
	}
	return result;
}

int qmp_open(struct qmp *q, const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	const struct timeval limit = { .tv_sec = ANSWER_S };
	g_autoptr(JsonNode) greeting = NULL, answer = NULL;
	int err;

	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	strcpy(addr.sun_path, path);
	q->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (q->fd < 0)
		return -errno;
	setsockopt(q->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (connect(q->fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
		err = -errno;
		at_end(q);
		return err;
	}
	q->in = q->in ? q->in : g_string_new(NULL);
	greeting = next_line(q, true);
	if (greeting && json_object_has_member(json_node_get_object(greeting), "QMP"))
		answer = qmp_command(q, "qmp_capabilities", NULL);
	if (answer)
		return 0;
	at_end(q);
	return -EPROTO;
}

void qmp_close(struct qmp *q)
{
	at_end(q);
	if (q->in)
		g_string_free(q->in, TRUE);
	g_clear_pointer(&q->ended, g_free);
	q->in = NULL;
}
