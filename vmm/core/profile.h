/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the time of a VM went between two marks, as an engine with virtual time
 * gives it (engine_ops.profile_read): by class, by code and by cache line. Names of
 * functions are not its business. All of it belongs to one thread.
 */
#ifndef CORE_PROFILE_H
#define CORE_PROFILE_H

#include <glib.h>

#include "base/types.h"
#include "core/topology.h"

/* How a vCPU came into the kernel: kind in the upper half, number in the lower. */
enum profile_entry {
	PROFILE_ENTRY_NONE,		/* user code, or a kernel thread */
	PROFILE_ENTRY_SYSCALL,		/* number: RAX */
	PROFILE_ENTRY_EXCEPTION,	/* number: vector, as of all below */
	PROFILE_ENTRY_INTERRUPT,
};
#define PROFILE_ENTRY(kind, number)	((u32)(kind) << 16 | ((u32)(number) & 0xffff))
#define PROFILE_ENTRY_KIND(entry)	((enum profile_entry)((entry) >> 16))
#define PROFILE_ENTRY_NUMBER(entry)	((entry) & 0xffff)

/* Code of the kernel that time was found in. rip = PROFILE_USER is all code of user programs. */
#define PROFILE_USER	0ull
struct profile_code {
	u64 rip;
	u32 entry;		/* PROFILE_ENTRY() */
	u32 caller;		/* 1 + element of profile.caller, 0: not known or none */
	u32 samples;
	u64 time, stall;	/* stall: of it, waits for lines */
};

/* A function that was called, and from where: a chain that ends with up = 0. */
struct profile_caller {
	u64 function;		/* its address */
	u32 up;			/* 1 + element, of what called it */
};

/* Code that accessed a line. */
#define PROFILE_USERS	8u
#define PROFILE_SOCKETS	8u
#define PROFILE_OBJECT_NAME	32u
struct profile_user {
	u64 rip;		/* PROFILE_USER of user programs */
	u64 count, writes, wait;
	u32 socket_reads[PROFILE_SOCKETS], socket_writes[PROFILE_SOCKETS];	/* the same by who asked */
};

/* A line that came from another core or that had to be waited for; of the accesses that did. */
struct profile_line {
	u64 line;		/* its place in RAM's file, in lines */
	u64 va;			/* linear address of the latest access, 0 if only page walks read it */
	u64 transfers, writes;	/* writes: of the transfers */
	u64 wait, queued;	/* queued: of it, until the line was free to go */
	u64 sockets[PROFILE_SOCKETS];	/* transfers by who asked */
	u64 others;		/* accesses by code that had no room in user[] */
	struct profile_user user[PROFILE_USERS];	/* count 0: none */
	char object[PROFILE_OBJECT_NAME];	/* what kind of allocated object va is in, "" if that is not known */
	u32 offset;				/* of va in the object */
};

/* A thread of the guest. */
#define PROFILE_THREAD_NAME	16u
struct profile_thread {
	u64 task;		/* its address, 0: of threads that could not be told */
	char name[PROFILE_THREAD_NAME];
	u32 vcpu;		/* that it was on last */
};

struct profile {
	u32 scale;		/* all times are in 1/scale cycles of vm->tsc_hz */
	u32 nr_cpus, nr_classes;
	const char *const *class_name;	/* nr_classes; the engine's */
	u64 *elapsed;		/* by CPU */
	u64 *spent;		/* by CPU, then class; those of a CPU sum up to its elapsed */
	u64 lost;		/* time of code that had no room in `code` */
	GArray *code;		/* struct profile_code, by rip, entry and caller */
	GArray *caller;		/* struct profile_caller */
	GArray *line;		/* struct profile_line, the most waited for first */
	GArray *thread;		/* struct profile_thread; empty: not known */
	u64 *thread_spent;	/* by thread, then class; those of all threads sum up to those of all CPUs */
};

/* Zeroes for nr_cpus and nr_classes, and empty lists. */
void profile_init(struct profile *p, u32 nr_cpus, u32 nr_classes);
/* Also of one that is all zeroes. */
void profile_clear(struct profile *p);

#endif
