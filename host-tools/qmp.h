/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * QEMU's monitor protocol, QMP (QEMU: docs/interop/qmp-spec.rst), as far as a guest's start and end need it: commands, one after
 * another, and what the events between them say of the end. Main thread only.
 */
#ifndef HOST_TOOLS_QMP_H
#define HOST_TOOLS_QMP_H

#include <json-glib/json-glib.h>

#include "base/types.h"

struct qmp {
	int fd;			/* -1 = at its end */
	GString *in;
	char *ended;		/* the reason that the event SHUTDOWN gives, NULL = there was none */
	bool panicked;		/* GUEST_PANICKED has come */
};

/* -errno, not reported: -ENOENT and -ECONNREFUSED while QEMU is not yet there, -EPROTO if what answers is no QMP. */
int qmp_open(struct qmp *q, const char *path);
/* What a command returns, NULL (reported unless the other end is gone) if nothing. `arguments` may be NULL; it is taken over. json_node_unref(). */
JsonNode *qmp_command(struct qmp *q, const char *name, JsonObject *arguments);
/* The events that have come since. */
void qmp_events(struct qmp *q);
void qmp_close(struct qmp *q);

#endif
