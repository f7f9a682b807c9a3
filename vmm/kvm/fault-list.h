/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which messages of userfaultfd are second-level faults of the guest, and which repeat one.
 *
 * A signal to a vCPU's thread (a kick, its deadline) ends its wait in the host's fault handler:
 * KVM_RUN fails with EINTR (since Linux 6.2 KVM asks for pages with FOLL_INTERRUPTIBLE), the vCPU takes its
 * interrupt, and the same instruction faults again. That is another message for the page, while the first one waits
 * out its delay, stands behind it in the same read, or has just been answered. To the guest it is one fault, whose service
 * was interrupted: it counts once, is delayed once, and is over when it would have been without the kick.
 *
 * So a fault is a page, a vCPU and a right that was missing, from its first message until the right
 * has been given, and the next is one only when the right was taken away in between. Two vCPUs that meet on a page
 * have a fault each. Giving the right to the page serves all of them.
 *
 * A list belongs to a shard; all is called under its lock. Times are in ns since the VM started.
 */
#ifndef KVM_FAULT_LIST_H
#define KVM_FAULT_LIST_H

#include <glib.h>

#include "core/engine.h"

/* What the host says: a page new to the file, one that the file has, a write to one that may be read. */
enum fault_kind { FAULT_MISSING, FAULT_MINOR, FAULT_WP };

struct fault {
	u64 page;		/* of the memfd */
	u64 since;		/* when its first message was read */
	u64 number;		/* never 0, never used twice in a list */
	u64 turn;		/* in which it was served */
	u32 cpu;
	enum fault_kind kind;
	bool served;
};

struct fault_list {
	GArray *faults;		/* struct fault: those that wait, and served ones that a message may yet repeat */
	u64 turn, last_number;
};

enum fault_news {
	FAULT_NEW,
	FAULT_WAITS,		/* repeats one that waits */
	FAULT_SERVED,		/* repeats one that was served: whoever sent it may have to be woken */
};

void fault_list_init(struct fault_list *list);
void fault_list_destroy(struct fault_list *list);

/* Messages are about to be read, some at a time: what is added from now on was read together. */
void fault_list_turn(struct fault_list *list);

/* A message, in the order in which they were read. Gives fault->number if it is new; it waits then. */
enum fault_news fault_list_add(struct fault_list *list, struct fault *fault);

/* The fault of that number if it still waits, else NULL. Valid until the next call that is not this one. */
const struct fault *fault_list_waiting(const struct fault_list *list, u64 number);

/*
 * The page was given what a fault of this kind lacks, and who waited was woken. Each call takes one fault of those that are
 * served by it and waited, NULL if there are no more. Valid until the next call.
 */
const struct fault *fault_list_serve(struct fault_list *list, u64 page, enum fault_kind kind);

/* The page has lost rights: a fault for want of them is a new one. */
void fault_list_lowered(struct fault_list *list, u64 page, enum gpa_rights left);

#endif
