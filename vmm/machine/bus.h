/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Dispatch of port and MMIO accesses to devices by address range. Ranges are
 * added before the first vCPU runs and constant afterwards. Handlers run on the
 * accessing vCPU's thread under vm->lock, which the caller of bus_access() holds.
 */
#ifndef MACHINE_BUS_H
#define MACHINE_BUS_H

#include "core/vm.h"

/*
 * One access of `len` bytes (1, 2, 4; MMIO also 8) at `off` into the range. For a
 * read, `data` arrives filled with 0xff and the handler may leave it so.
 */
typedef void (*bus_fn)(void *dev, struct vcpu *vcpu, u64 off, bool write, void *data, u32 len);

enum bus_space { BUS_PIO, BUS_MMIO };

struct bus *bus_new(void);
void bus_free(struct bus *bus);
/* -EEXIST (an assertion of ours in practice) if the range overlaps one that is there. */
int bus_add(struct bus *bus, enum bus_space space, u64 addr, u64 size, const char *name, bus_fn fn, void *dev);
/* true if a device claimed it. An access that crosses a range's end is not claimed. */
bool bus_access(struct bus *bus, enum bus_space space, struct vcpu *vcpu, u64 addr, bool write, void *data, u32 len);

#endif
