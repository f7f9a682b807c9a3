/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The guest kernel's own event counts (vm_event_states, mm/vmstat.c), read from its memory without its help: of any kernel whose System.map
 * lies beside it. Nothing that is found there is trusted. On every engine, since RAM is all that it takes.
 */
#ifndef VMM_VMSTAT_H
#define VMM_VMSTAT_H

#include "core/vm.h"

#define VMSTAT_SOURCE	"vm_event_states"
#define VMSTAT_MAX	512u	/* events; 6.12 has some 100 */
#define VMSTAT_NAME_LEN	48u

struct vmstat {
	u32 nr;				/* events */
	u32 nr_cpus;
	gpa_t *cpu;			/* each CPU's array of `nr` u64 */
	char name[VMSTAT_MAX][VMSTAT_NAME_LEN];	/* as in /proc/vmstat */
};

/*
 * Find them, once the guest is up and vm->symbols is there. NULL if they are not where the System.map says: another kernel's, one that has moved
 * itself (KASLR), or no Linux. vmstat_free(). Any thread.
 */
struct vmstat *vmstat_new(const struct vm *vm);
void vmstat_free(struct vmstat *v);
/* The sum over all CPUs of each event, `nr` of them; g_free(). NULL if the memory is gone. Any thread. */
u64 *vmstat_read(const struct vmstat *v, const struct vm *vm);

#endif
