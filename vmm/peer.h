/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A guest that another VMM runs (engines qemu and libvirt, docs/peers.md). The front end starts QEMU with the
 * guest's RAM in shared files and three serial ports on UNIX sockets, its CPUs not running yet. The VMM maps the
 * files, writes the channel there, connects, and says "attached"; the front end then lets the guest go. What
 * follows is one session like any other: the same protocol, marks and records.
 */
#ifndef VMM_PEER_H
#define VMM_PEER_H

#include "vm.h"

/* Sockets in the folder of struct peer_place, on which QEMU listens. */
#define PEER_CONSOLE	"console"	/* ttyS0 */
#define PEER_CONTROL	"control"	/* ttyS1: the control protocol */
/*
 * ttyS2: a mark is a byte there, which the guest writes by itself and whose echo it waits for, so that it goes on only when
 * the counters have been read, as after a write to the test device.
 */
#define PEER_MARKS	"marks"
#define PEER_MARKS_PORT	0x3e8
/* The line on standard error that tells the front end to let the guest go. */
#define PEER_ATTACHED	"attached"

/* RAM below 4 GiB ends here at the latest, as on our own machine; QEMU's pc takes it as max-ram-below-4g. */
#define PEER_LOW_END	0xc0000000ull

/* Where the guest is to be found. */
struct peer_place {
	const char *folder;	/* of the sockets */
	char **ram;		/* a file for each node that has memory, in order; NULL at the end */
};

/*
 * The scenario's topology as QEMU has it. STATUS_BAD_INPUT, reported with the line to blame, for CPUs in an order that QEMU
 * has not, or what topology_init() refuses. Any thread; the front end's too.
 */
enum status peer_topology(const struct scenario *s, struct topology *topo);
/*
 * Refuse, by name, what of a scenario QEMU cannot do or the VMM cannot do to it. STATUS_HOST or STATUS_BAD_INPUT, reported.
 * `engine` is qemu or libvirt. Any thread; the front end's too.
 */
enum status peer_check(const struct scenario *s, const char *engine);
/* Where the channel lies in the guest's RAM: in the middle of that below 4 GiB, where neither the kernel is nor the initramfs. */
gpa_t peer_channel(const struct topology *topo);
/* The guest's command line: ours, and where the channel and the marks are. g_free(). */
char *peer_cmdline(const struct scenario *s, const struct topology *topo);

/* vm_build()'s part for such an engine: all but the vCPUs' own state. `place` has been set in *setup. As vm_build(). */
enum status peer_build(struct vm *vm, const struct scenario *s, struct vm_setup *setup);

/*
 * Connect, say so, and serve the session until vm->stop is set; the end of the guest is VM_STOP_GONE. signal_fd as for run_threads(). 0, or
 * -errno (reported) if the sockets are not there. Main thread.
 */
int peer_run(struct vm *vm, const struct peer_place *place, int signal_fd);

#endif
