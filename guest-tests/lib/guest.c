// SPDX-License-Identifier: GPL-2.0-only
#include "lib/guest.h"

#include <stdlib.h>
#include <string.h>

#include "lib/util.h"

/*
 * The environment, and not what the CPU or /proc/1 look like: a host may be a virtual
 * machine, too, and its process 1 be called init.
 */
void guest_only(void)
{
	const char *value = getenv(GUEST_ENV);

	if (!value || strcmp(value, "1"))
		die(EXIT_UNSUPPORTED, "harms the machine it runs on, so it runs in a test guest only, "
		    "whose init sets " GUEST_ENV "=1");
}
