/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A guest that QEMU runs, from its start to its end (docs/peers.md): started with its CPUs standing still, let go when the VMM
 * has attached (vmm/peer.h), and taken down, whatever has happened. Main thread only.
 */
#ifndef HOST_TOOLS_PEER_VM_H
#define HOST_TOOLS_PEER_VM_H

#include "job.h"

/* Stands beside each figure of a guest that no KVM runs. */
#define PEER_TCG_TRUST	"qemu: TCG emulates the guest's CPUs, so times and rates mean nothing"

struct peer_vm;

/* How a peer's guests are started and ended. */
struct peer_ops {
	/* Start `cell`'s guest; NULL if there is none (reported). */
	struct peer_vm *(*start)(struct job *job, const struct cell *cell);
	/* Let it go. false, reported, if it cannot be. */
	bool (*resume)(struct peer_vm *p);
	/* End it if it is still there, and leave nothing behind. How it ended, if that was not as the guest was asked to; NULL otherwise. g_free(). */
	char *(*end)(struct peer_vm *p);
};

extern const struct peer_ops peer_qemu, peer_libvirt;

/* What all peers have; the first member of theirs. */
struct peer_vm {
	const struct peer_ops *ops;
	char *folder;		/* of the sockets */
	GPtrArray *ram;		/* char *: files of RAM, a node each that has memory */
};

/* The ops of an engine, NULL if it is none of these. */
const struct peer_ops *peer_ops(enum scenario_engine engine);
/* Can all cells be run? peer_check() and peer_topology() of each. An enum status, reported. */
int peer_prepare(const struct job *job);
/* Is there a libvirt, as the engine would look for it without --connect? Which one, or why not; g_free(). Starts none. */
bool peer_libvirt_probe(char **says);
/* libvirt's connection, for as long as the program runs; NULL: LIBVIRT_DEFAULT_URI, or the user's own. An enum status, reported. */
int peer_libvirt_connect(struct job *job, const char *uri);
/* `cell` as a domain of that name, its sockets in `folder`. NULL, reported, if the scenario is to blame. g_free(). */
char *peer_domain_xml(const struct job *job, const struct cell *cell, const char *name, const char *folder);
/* Add what the VMM has to be told of a peer to its arguments. */
void peer_add_options(const struct peer_vm *p, GPtrArray *argv);
/* A folder for sockets, short enough for their addresses; NULL (reported) if there is none. g_free(); peer_remove_folder() removes it. */
char *peer_make_folder(void);
void peer_remove_folder(const char *folder);
/* "0-3,8-11": the CPUs of a node; g_free(). */
char *peer_node_cpus(const struct topology *topo, u32 node, const char *separator);

#endif
