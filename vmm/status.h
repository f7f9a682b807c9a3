/* SPDX-License-Identifier: GPL-2.0-only */
/* Exit statuses of the VMM and of faultbed run (DESIGN: docs/scenario.md lists them for users). */
#ifndef VMM_STATUS_H
#define VMM_STATUS_H

enum status {
	STATUS_DONE = 0,
	STATUS_COMMAND_FAILED = 1,	/* the guest's command failed */
	STATUS_BAD_INPUT = 2,
	STATUS_HOST = 3,		/* the host cannot do it */
	STATUS_INTERNAL = 4,
	STATUS_GUEST_DIED = 5,		/* panicked, oopsed, hung, or no init ever spoke */
	STATUS_INTERRUPTED = 130,	/* Ctrl-C, as shells have it */
};

#endif
