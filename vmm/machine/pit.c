// SPDX-License-Identifier: GPL-2.0-only
/*
 * 8254 by its data sheet (Intel 231164). Counters are never stepped: what they
 * show is computed from the time at which they began. A load takes effect at
 * once instead of with the next clock pulse, 0.84 us later at most.
 */
#include "machine/pit.h"

#include "core/engine.h"
#include "machine/machine.h"

#define CONTROL_PORT	3
#define SELECT(ctl)	((ctl) >> 6)
#define READ_BACK	3
#define STATUS_OUTPUT	BIT(7)
#define STATUS_NULL	BIT(6)

#define PORT61_GATE2	BIT(0)
#define PORT61_SPEAKER	BIT(1)
#define PORT61_REFRESH	BIT(4)
#define PORT61_OUT2	BIT(5)
/* Half a period of the DRAM refresh signal, which old delay loops count. */
#define REFRESH_NS	15085

static u64 ticks_of_ns(u64 ns)
{
	return (u64)((unsigned __int128)ns * PIT_HZ / NSEC_PER_SEC);
}

/* Rounded up: by then the counter has made so many steps. */
static u64 ns_of_ticks(u64 ticks)
{
	return (u64)(((unsigned __int128)ticks * NSEC_PER_SEC + PIT_HZ - 1) / PIT_HZ);
}

static bool pit_periodic(const struct pit_counter *c)
{
	return c->mode == 2 || c->mode == 3;
}

static u64 pit_elapsed(const struct pit_counter *c, u64 now)
{
	if (!c->running)
		return ticks_of_ns(c->held);
	/* Another vCPU's time can be a little behind that of the one that started it. */
	return now > c->start ? ticks_of_ns(now - c->start) : 0;
}

/* The counting element's value, binary. */
static u32 pit_count(const struct pit_counter *c, u64 now)
{
	u64 ticks = pit_elapsed(c, now);
	u32 full = c->bcd ? 10000 : 65536;

	if (!c->reload)
		return 0;
	if (c->mode == 3)
		/* Down by two, twice a period. */
		return c->reload - (u32)(2 * ticks % c->reload & ~1ull);
	if (c->mode == 2)
		return c->reload - (u32)(ticks % c->reload);
	/* The others go on below 0 from the top. */
	return (u32)(((c->reload - (s64)(ticks % full)) % full + full) % full);
}

static bool pit_output(const struct pit_counter *c, u64 now)
{
	u64 ticks = pit_elapsed(c, now);

	switch (c->mode) {
	case 0:
		return c->reload && ticks >= c->reload;
	case 1:
		/* Low from the trigger to the end of the count. */
		return !(c->running && ticks < c->reload);
	case 2:
		return !(c->running && ticks % c->reload == c->reload - 1);
	case 3:
		return !(c->running && ticks % c->reload >= (c->reload + 1) / 2);
	default:
		return !(c->running && ticks == c->reload);
	}
}

/*
 * IRQ 0 is the rising edge of counter 0's output: the end of a count in modes 0
 * and 4, each reload in modes 2 and 3. (Its gate is always high, so modes 1 and
 * 5 never start.) Schedule the first edge after `now`.
 */
static void pit_schedule(struct pit *pit, u64 now)
{
	const struct pit_counter *c = &pit->c[0];
	u64 period, due;

	if (!c->running || !c->reload || c->mode == 1 || c->mode == 5) {
		due = CLOCK_NEVER;
	} else if (pit_periodic(c)) {
		/* A multiple of the period that is not below the floor. */
		period = c->reload;
		period *= DIV_ROUND_UP(PIT_MIN_PERIOD * PIT_HZ / NSEC_PER_SEC, period);
		due = c->start + ns_of_ticks((pit_elapsed(c, now) / period + 1) * period);
	} else {
		due = c->start + ns_of_ticks(c->reload + (c->mode == 4));
		if (due <= now)
			due = CLOCK_NEVER;
	}
	clock_schedule(&pit->vm->vcpu[0]->clock, &pit->tick, due);
}

/* On vCPU 0's thread, without the lock. */
static void pit_tick(void *ctx, u64 arg, u64 due, u64 now)
{
	struct pit *pit = ctx;

	g_mutex_lock(&pit->vm->lock);
	/* The edge is what counts, so the line needs no time of its own. */
	machine_set_irq(pit->vm, LAYOUT_IRQ_PIT, true);
	machine_set_irq(pit->vm, LAYOUT_IRQ_PIT, false);
	/* A write by another vCPU may have come between; what it scheduled is worked out again, the same. */
	pit_schedule(pit, now);
	g_mutex_unlock(&pit->vm->lock);
}

void pit_init(struct pit *pit, struct vm *vm)
{
	u32 i;

	*pit = (struct pit){ .vm = vm };
	for (i = 0; i < ARRAY_SIZE(pit->c); i++) {
		pit->c[i].access = 3;
		pit->c[i].gate = i != 2;
	}
	clock_event_init(&pit->tick, pit_tick, pit, 0);
}

void pit_destroy(struct pit *pit)
{
	if (pit->vm && pit->vm->vcpu && pit->vm->vcpu[0])
		clock_schedule(&pit->vm->vcpu[0]->clock, &pit->tick, CLOCK_NEVER);
}

static u32 from_bcd(u32 v)
{
	return (v & 15) + (v >> 4 & 15) * 10 + (v >> 8 & 15) * 100 + (v >> 12 & 15) * 1000;
}

static u32 to_bcd(u32 v)
{
	return v % 10 | v / 10 % 10 << 4 | v / 100 % 10 << 8 | v / 1000 % 10 << 12;
}

static u16 pit_visible(const struct pit_counter *c, u64 now)
{
	u32 count = pit_count(c, now);

	return (u16)(c->bcd ? to_bcd(count) : count);
}

static void pit_start(struct pit_counter *c, u64 now)
{
	c->start = now;
	c->held = 0;
	c->running = true;
}

/* A whole count has been written (0 means the largest). */
static void pit_load(struct pit *pit, u32 i, u16 value, u64 now)
{
	struct pit_counter *c = &pit->c[i];
	u32 count = c->bcd ? from_bcd(value) : value;

	c->reload = count ? count : c->bcd ? 10000 : 65536;
	c->held = 0;
	c->running = false;
	/* Modes 1 and 5 wait for the gate to rise, the others for it to be high. */
	if (c->gate && c->mode != 1 && c->mode != 5)
		pit_start(c, now);
	if (i == 0)
		pit_schedule(pit, now);
}

static void pit_set_gate(struct pit_counter *c, bool gate, u64 now)
{
	if (gate == c->gate)
		return;
	c->gate = gate;
	if (!c->reload)
		return;
	if (!gate) {
		/* Modes 1 and 5 are triggered by the gate and go on without it. */
		if (c->mode == 1 || c->mode == 5 || !c->running)
			return;
		c->held = now > c->start ? now - c->start : 0;
		c->running = false;
	} else if (c->mode == 0 || c->mode == 4) {
		c->start = now - c->held;
		c->running = true;
	} else {
		pit_start(c, now);
	}
}

static void pit_latch_status(struct pit_counter *c, u64 now)
{
	if (c->status_latched)
		return;
	c->status = (pit_output(c, now) ? STATUS_OUTPUT : 0) | (c->reload ? 0 : STATUS_NULL) |
		    c->access << 4 | c->mode << 1 | c->bcd;
	c->status_latched = true;
}

static void pit_latch_count(struct pit_counter *c, u64 now)
{
	/* A second latch before the first was read is ignored. */
	if (c->latched)
		return;
	c->latch = pit_visible(c, now);
	c->latched = c->access == 3 ? 2 : 1;
}

static void pit_control(struct pit *pit, u8 ctl, u64 now)
{
	struct pit_counter *c;
	u32 i;

	if (SELECT(ctl) == READ_BACK) {
		for (i = 0; i < ARRAY_SIZE(pit->c); i++) {
			if (!(ctl & BIT(i + 1)))
				continue;
			/* Active low: bit 5 the count, bit 4 the status. */
			if (!(ctl & BIT(5)))
				pit_latch_count(&pit->c[i], now);
			if (!(ctl & BIT(4)))
				pit_latch_status(&pit->c[i], now);
		}
		return;
	}
	c = &pit->c[SELECT(ctl)];
	if (!(ctl & 0x30)) {
		pit_latch_count(c, now);
		return;
	}
	c->access = ctl >> 4 & 3;
	/* Modes 6 and 7 are 2 and 3. */
	c->mode = (ctl >> 1 & 7) > 5 ? (ctl >> 1 & 3) : (ctl >> 1 & 7);
	c->bcd = ctl & 1;
	c->read_hi = false;
	c->write_hi = false;
	c->latched = 0;
	c->status_latched = false;
	c->reload = 0;
	c->running = false;
	c->held = 0;
	if (c == &pit->c[0])
		pit_schedule(pit, now);
}

static void pit_write(struct pit *pit, u32 i, u8 value, u64 now)
{
	struct pit_counter *c = &pit->c[i];

	switch (c->access) {
	case 1:
		pit_load(pit, i, value, now);
		break;
	case 2:
		pit_load(pit, i, (u16)(value << 8), now);
		break;
	default:
		if (c->write_hi) {
			c->write_hi = false;
			pit_load(pit, i, (u16)(value << 8 | c->write_low), now);
			break;
		}
		c->write_low = value;
		c->write_hi = true;
		/* The first byte stops a mode 0 count. */
		if (c->mode == 0 && c->running) {
			c->held = now > c->start ? now - c->start : 0;
			c->running = false;
			if (i == 0)
				pit_schedule(pit, now);
		}
		break;
	}
}

static u8 pit_read(struct pit_counter *c, u64 now)
{
	u16 value;
	bool high;

	if (c->status_latched) {
		c->status_latched = false;
		return c->status;
	}
	value = c->latched ? c->latch : pit_visible(c, now);
	high = c->access == 2 || (c->access == 3 && c->read_hi);
	if (c->access == 3)
		c->read_hi = !c->read_hi;
	if (c->latched)
		c->latched--;
	return (u8)(high ? value >> 8 : value);
}

void pit_access(void *dev, struct vcpu *vcpu, u64 off, bool write, void *data, u32 len)
{
	struct pit *pit = dev;
	u64 now = pit->vm->engine->now(pit->vm, vcpu);
	u8 *byte = data;

	if (len != 1)
		return;
	if (off == CONTROL_PORT) {
		if (write)
			pit_control(pit, *byte, now);
		return;
	}
	if (write)
		pit_write(pit, (u32)off, *byte, now);
	else
		*byte = pit_read(&pit->c[off], now);
}

void pit_port61_access(void *dev, struct vcpu *vcpu, u64 off, bool write, void *data, u32 len)
{
	struct pit *pit = dev;
	u64 now = pit->vm->engine->now(pit->vm, vcpu);
	u8 *byte = data;

	if (len != 1)
		return;
	if (write) {
		pit->port61 = *byte & (PORT61_GATE2 | PORT61_SPEAKER);
		pit_set_gate(&pit->c[2], *byte & PORT61_GATE2, now);
		return;
	}
	*byte = pit->port61 | (now / REFRESH_NS & 1 ? PORT61_REFRESH : 0) |
		(pit_output(&pit->c[2], now) ? PORT61_OUT2 : 0);
}
