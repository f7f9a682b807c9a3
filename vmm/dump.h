/* SPDX-License-Identifier: GPL-2.0-only */
/* What is said on standard error about a guest that came to a bad end. */
#ifndef VMM_DUMP_H
#define VMM_DUMP_H

#include "core/vm.h"

/* Where each vCPU was and what it had counted, two lines each. Its threads have ended. */
void dump_vcpus(struct vm *vm);

#endif
