// SPDX-License-Identifier: GPL-2.0-only
/*
 * Members marked (c) are not moved: the VM that loads has been built with them, and
 * those that would matter are compared. A member that is added to a struct has
 * to be added here; the sizes below are a reminder of that.
 */
#include "machine/machine-state.h"

#include "base/log.h"
#include "core/clock-state.h"
#include "machine/apicbus.h"
#include "machine/machine.h"

_Static_assert(sizeof(struct lapic) == 240, "a new member of struct lapic: transfer_lapic()");
_Static_assert(sizeof(struct pit_counter) == 40, "a new member of struct pit_counter: transfer_pit()");
_Static_assert(sizeof(struct ioapic) == 216, "a new member of struct ioapic: transfer_devices()");
_Static_assert(sizeof(struct uart) == 80, "a new member of struct uart: transfer_uart()");
_Static_assert(sizeof(struct virtqueue) == 72, "a new member of struct virtqueue: virtqueue_transfer()");
_Static_assert(sizeof(struct virtio_mmio) == 184, "a new member of struct virtio_mmio: virtio_mmio_transfer()");

static void transfer_counters(struct saver *s, struct counters *c)
{
	saver_u64s(s, (u64 *)c->v, NR_COUNTERS);
}

static void transfer_hist(struct saver *s, struct hist *h)
{
	saver_u64(s, (u64 *)&h->count);
	saver_u64(s, (u64 *)&h->sum);
	saver_u64(s, (u64 *)&h->min);
	saver_u64(s, (u64 *)&h->max);
	saver_u64s(s, (u64 *)h->bucket, HIST_BUCKETS);
}

static void transfer_lapic(struct saver *s, struct lapic *l)
{
	saver_same(s, l->id, "an APIC id");
	saver_same(s, l->tsc_hz, "the TSC's rate");
	saver_u64(s, &l->base_msr);
	saver_u32(s, &l->xapic_id);
	saver_u32(s, &l->ldr);
	saver_u32(s, &l->dfr);
	saver_bool(s, &l->x2apic);
	saver_bool(s, &l->enabled);
	saver_u32(s, &l->svr);
	saver_u32(s, &l->tpr);
	saver_u32(s, &l->esr);
	saver_u32(s, &l->esr_pending);
	saver_u32(s, &l->icr_low);
	saver_u32(s, &l->icr_high);
	saver_u32s(s, l->lvt, ARRAY_SIZE(l->lvt));
	saver_u32(s, &l->lvt_timer);
	saver_u32(s, &l->timer_divide);
	saver_u32(s, &l->timer_initial);
	saver_u64(s, &l->timer_start);
	saver_u64(s, &l->timer_period);
	saver_u64(s, &l->timer_due);
	saver_u64(s, &l->tsc_deadline);
	saver_s64(s, &l->tsc_offset);
	saver_u32s(s, l->irr, ARRAY_SIZE(l->irr));
	saver_u32s(s, l->isr, ARRAY_SIZE(l->isr));
	saver_u32s(s, l->tmr, ARRAY_SIZE(l->tmr));
	saver_check(s, !lapic_timer_periodic(l) || !l->timer_period || l->timer_period >= LAPIC_MIN_PERIOD,
		    "a timer's period");
}

static void transfer_cpu(struct saver *s, struct vcpu *vcpu)
{
	struct vm *vm = vcpu->vm;
	struct clock_known known[3] = {
		{ .name = "apic-timer", .timer = &vcpu->apic_timer },
		{ .name = "message", .fn = apicbus_deliver, .ctx = vcpu },
		{ .name = "pit", .timer = &vm->machine->pit.tick },
	};

	vcpu->mp_state = saver_enum(s, vcpu->mp_state, VCPU_WAIT_SIPI + 1, "a vCPU's activity");
	saver_bool(s, &vcpu->nmi_pending);
	saver_bool(s, &vcpu->timer_held);
	saver_u64(s, &vcpu->skew_ns);
	transfer_lapic(s, vcpu->lapic);
	/* The PIT ticks on the boot processor's clock. */
	clock_transfer(s, &vcpu->clock, known, vcpu->id ? 2 : 3);
	transfer_counters(s, &vcpu->counters);
}

static void transfer_pit(struct saver *s, struct pit *pit)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(pit->c); i++) {
		struct pit_counter *c = &pit->c[i];

		saver_u8(s, &c->mode);
		saver_u8(s, &c->access);
		saver_bool(s, &c->bcd);
		saver_bool(s, &c->status_latched);
		saver_u8(s, &c->status);
		saver_bool(s, &c->read_hi);
		saver_bool(s, &c->write_hi);
		saver_u8(s, &c->latched);
		saver_u16(s, &c->latch);
		saver_u8(s, &c->write_low);
		saver_bool(s, &c->gate);
		saver_bool(s, &c->running);
		saver_u32(s, &c->reload);
		saver_u64(s, &c->start);
		saver_u64(s, &c->held);
		saver_check(s, c->mode <= 5 && c->access <= 3 && c->latched <= 2 && c->reload <= 65536 &&
			    (!c->running || c->reload), "a counter of the PIT");
	}
	saver_u8(s, &pit->port61);
}

static void transfer_uart(struct saver *s, struct uart *u)
{
	saver_u8(s, &u->ier);
	saver_u8(s, &u->fcr);
	saver_u8(s, &u->lcr);
	saver_u8(s, &u->mcr);
	saver_u8(s, &u->lsr);
	saver_u8(s, &u->scr);
	saver_u8(s, &u->dll);
	saver_u8(s, &u->dlm);
	saver_u8(s, &u->loop_byte);
	saver_bool(s, &u->loop_full);
	saver_bool(s, &u->thr_pending);
	saver_blob(s, u->input);
	saver_u32(s, &u->input_pos);
	saver_bool(s, &u->irq_level);
	/* When all has been read the queue is empty. */
	if (!saver_check(s, u->input_pos < u->input->len || !u->input_pos, "what a UART's guest has read"))
		u->input_pos = 0;
}

static void transfer_pic(struct saver *s, struct pic *pic)
{
	_Static_assert(sizeof(pic->chip[0]) == 8, "all are bytes");
	saver_bytes(s, pic->chip, sizeof(pic->chip));
}

static void transfer_devices(struct saver *s, struct machine *m)
{
	u32 warned = (u32)m->channel.warned;

	saver_u32(s, &m->ioapic.select);
	saver_u32(s, &m->ioapic.id);
	saver_u64s(s, m->ioapic.redir, ARRAY_SIZE(m->ioapic.redir));
	saver_u32(s, &m->ioapic.level);
	transfer_pic(s, &m->pic);
	transfer_pit(s, &m->pit);
	saver_u16(s, &m->pmtimer.pm1_status);
	saver_u16(s, &m->pmtimer.pm1_enable);
	saver_u16(s, &m->pmtimer.pm1_control);
	saver_u8(s, &m->rtc.index);
	saver_bytes(s, m->rtc.cmos, sizeof(m->rtc.cmos));
	if (!saver_check(s, m->rtc.index < sizeof(m->rtc.cmos), "the RTC's index"))
		m->rtc.index = 0;
	transfer_uart(s, &m->console);
	transfer_uart(s, &m->control);
	saver_same(s, m->channel.gpa, "the channel's address");
	saver_u32(s, &warned);
	m->channel.warned = (int)warned;
}

void machine_transfer(struct saver *s, struct vm *vm)
{
	u32 nr_matrix = vm->topo.nr_nodes * vm->topo.nr_nodes, i;

	/* KVM's local APICs are no part of this. */
	fb_assert(vm->apic != APIC_KERNEL);
	saver_begin(s, "vm", 2);
	saver_same(s, vm->topo.nr_cpus, "the number of vCPUs");
	saver_same(s, vm->topo.nr_nodes, "the number of nodes");
	saver_same(s, vm->apic, "the kind of local APIC");
	saver_same(s, vm->mem.size, "the size of guest RAM");
	saver_u64(s, &vm->frontier);
	saver_u64(s, &vm->boot_tick_ns);
	transfer_counters(s, &vm->counters);
	for (i = 0; i < NR_DISTANCE_CLASSES; i++)
		transfer_hist(s, &vm->ipi_latency[i]);
	saver_u64s(s, (u64 *)vm->ipi_matrix, nr_matrix);
	saver_u64s(s, (u64 *)vm->ipi_vector, NR_VECTORS);
	saver_end(s);

	saver_begin(s, "vcpus", 1);
	for (i = 0; i < vm->topo.nr_cpus; i++)
		transfer_cpu(s, vm->vcpu[i]);
	saver_end(s);

	saver_begin(s, "devices", 1);
	transfer_devices(s, vm->machine);
	saver_end(s);

	saver_begin(s, "disk", 1);
	saver_same(s, vm->machine->blk != NULL, "the number of disks");
	if (vm->machine->blk && saver_ok(s))
		virtio_blk_transfer(s, vm->machine->blk);
	saver_end(s);
}
