/* SPDX-License-Identifier: GPL-2.0-only */
/* What of the host moves results that are on its clock. Any thread. */
#ifndef CORE_HOST_H
#define CORE_HOST_H

struct vm;

/* engine_ops.describe of engines on host time: kernel, CPU, governor, huge pages, KVM's parameters, steal. g_free(). */
char *host_describe(struct vm *vm);

#endif
