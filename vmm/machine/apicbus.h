/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Routes interrupt messages between local APICs, the IOAPIC and the vCPUs'
 * clocks; draws and accounts IPI delays; counts. The message becomes an event
 * on the target's clock, due after the injected delay, so the sender never
 * waits. Any thread; no lock needed.
 */
#ifndef MACHINE_APICBUS_H
#define MACHINE_APICBUS_H

#include "core/vm.h"
#include "machine/lapic.h"

/*
 * IPIs that may be on their way to one target: a guest that floods it under a long
 * injected delay must not take the host's memory. Further ones go undelayed and are
 * counted in ipis_undelayed.
 */
#define APICBUS_MAX_IN_FLIGHT	16384u

/* An IPI from a vCPU (its ICR). On the source's thread. Counts icr_writes, ipis_sent, ipi_matrix, ipi_vector, ipi_injected_ns. */
void apicbus_send_ipi(struct vcpu *src, const struct apic_msg *msg, u64 now);
/* A message from a device (IOAPIC, MSI). Lowest priority goes to one target: the lowest CPU number addressed. */
void apicbus_send_device(struct vm *vm, const struct apic_msg *msg, u64 now);
/* A message arrives: the clock_fn of what waits on a target's clock, ctx the target. Named here for snapshots only. */
void apicbus_deliver(void *ctx, u64 arg, u64 due, u64 now);
/* An MSI write (address 0xfeexxxxx, data) as a message (SDM 3A 10.11). */
void apicbus_decode_msi(u64 addr, u32 data, struct apic_msg *msg);
/* And back, for an engine with its own local APICs. */
void apicbus_encode_msi(const struct apic_msg *msg, u64 *addr, u32 *data);

#endif
