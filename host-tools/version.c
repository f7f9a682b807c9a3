// SPDX-License-Identifier: GPL-2.0-only
/* The commit, by itself: the one file that is compiled again for it. */
#include <json-glib/json-glib.h>
#include <libvirt/libvirt.h>

#include "base/version.h"
#include "front.h"

/* The Makefile's, of the tree that this was built in; "" without git. */
#ifndef FAULTBED_COMMIT
#define FAULTBED_COMMIT	""
#endif

const char *version_commit(void)
{
	return FAULTBED_COMMIT;
}

void version_print(void)
{
	unsigned long libvirt = 0;

	virGetVersion(&libvirt, NULL, NULL);
	printf("faultbed %s%s%s%s\n", FAULTBED_VERSION, *FAULTBED_COMMIT ? " (commit " : "", FAULTBED_COMMIT, *FAULTBED_COMMIT ? ")" : "");
	version_build(stdout);
	printf("json-glib %d.%d.%d, libvirt %lu.%lu.%lu\n", JSON_MAJOR_VERSION, JSON_MINOR_VERSION, JSON_MICRO_VERSION, libvirt / 1000000, libvirt / 1000 % 1000, libvirt % 1000);
}
