// SPDX-License-Identifier: GPL-2.0-only
#include "core/profile.h"

#include <string.h>

void profile_init(struct profile *p, u32 nr_cpus, u32 nr_classes)
{
	*p = (struct profile) {
		.scale = 1, .nr_cpus = nr_cpus, .nr_classes = nr_classes,
		.elapsed = g_new0(u64, nr_cpus), .spent = g_new0(u64, (gsize)nr_cpus * nr_classes),
		.code = g_array_new(FALSE, FALSE, sizeof(struct profile_code)),
		.caller = g_array_new(FALSE, FALSE, sizeof(struct profile_caller)),
		.line = g_array_new(FALSE, FALSE, sizeof(struct profile_line)),
		.thread = g_array_new(FALSE, FALSE, sizeof(struct profile_thread)),
	};
}

void profile_clear(struct profile *p)
{
	g_free(p->elapsed);
	g_free(p->spent);
	if (p->code)
		g_array_unref(p->code);
	if (p->caller)
		g_array_unref(p->caller);
	if (p->line)
		g_array_unref(p->line);
	if (p->thread)
		g_array_unref(p->thread);
	g_free(p->thread_spent);
	memset(p, 0, sizeof(*p));
}
