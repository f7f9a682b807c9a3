// SPDX-License-Identifier: GPL-2.0-only
/* The machine's state, saved and loaded: nothing is forgotten, nothing that is read does harm. */
#include <glib.h>
#include <string.h>

#include "base/rng.h"
#include "fake-engine.h"
#include "machine/apicbus.h"
#include "machine/layout.h"
#include "machine/machine.h"
#include "machine/machine-state.h"
#include "x86/apic.h"

static struct fake_vm *fresh(enum apic_mode apic)
{
	struct fake_vm *f = fake_vm_new("2x2x1", apic);

	g_assert_cmpint(machine_init(&f->vm), ==, 0);
	for (u32 i = 0; i < f->vm.topo.nr_cpus; i++)
		clock_event_init(&f->vm.vcpu[i]->apic_timer, apicbus_deliver, f->vm.vcpu[i], 0);
	return f;
}

static void done(struct fake_vm *f)
{
	machine_destroy(&f->vm);
	fake_vm_free(f);
}

static GByteArray *save(struct fake_vm *f)
{
	GByteArray *out;
	struct saver s;

	saver_init_save(&s);
	machine_transfer(&s, &f->vm);
	g_assert_cmpstr(s.err, ==, NULL);
	out = g_byte_array_ref(s.out);
	saver_destroy(&s);
	return out;
}

static char *load(struct fake_vm *f, const GByteArray *data, size_t len)
{
	u8 *copy = g_memdup2(data->data, len);
	struct saver s;
	char *err;

	saver_init_load(&s, "FILE", copy, len);
	machine_transfer(&s, &f->vm);
	saver_finish(&s);
	err = g_strdup(s.err);
	saver_destroy(&s);
	g_free(copy);
	return err;
}

static void copy_state(struct fake_vm *from, struct fake_vm *to)
{
	GByteArray *data = save(from), *again;

	g_assert_cmpstr(load(to, data, data->len), ==, NULL);
	again = save(to);
	g_assert_cmpmem(again->data, again->len, data->data, data->len);
	g_byte_array_unref(data);
	g_byte_array_unref(again);
}

/* Random bytes in `a`, the opposite ones in `b`: what is not moved then differs everywhere. */
static void fill(struct rng *rng, void *a, void *b, size_t len)
{
	u8 *x = a, *y = b;

	for (size_t i = 0; i < len; i++) {
		x[i] = (u8)rng_next(rng);
		y[i] = (u8)~x[i];
	}
}

static u32 differences(const void *a, const void *b, size_t len)
{
	const u8 *x = a, *y = b;
	u32 n = 0;

	for (size_t i = 0; i < len; i++)
		n += x[i] != y[i];
	return n;
}

/* Sizes of all members of a struct that are moved; the rest of it is padding. */
#define REST(type, ...)	(sizeof(type) - sum((size_t []){ __VA_ARGS__, 0 }))

static size_t sum(const size_t *size)
{
	size_t n = 0;

	while (*size)
		n += *size++;
	return n;
}

static void test_lapic_complete(void)
{
	struct fake_vm *f = fresh(APIC_XAPIC), *g = fresh(APIC_XAPIC);
	struct lapic *a = f->vm.vcpu[1]->lapic, *b = g->vm.vcpu[1]->lapic, was = *a;
	struct rng rng;

	rng_seed(&rng, 1, 0);
	fill(&rng, a, b, sizeof(*a));
	a->x2apic = true;
	a->enabled = true;
	b->x2apic = b->enabled = false;
	a->timer_period = 1000000;
	a->id = b->id = was.id;
	a->tsc_hz = b->tsc_hz = was.tsc_hz;
	a->bsp = b->bsp = was.bsp;
	a->x2apic_allowed = b->x2apic_allowed = was.x2apic_allowed;
	a->deadline_allowed = b->deadline_allowed = was.deadline_allowed;
	copy_state(f, g);
	g_assert_cmpuint(differences(a, b, sizeof(*a)), ==,
			 REST(struct lapic, 4, 1, 1, 1, 8, 4, 4, 4, 1, 1, 6 * 4, 6 * 4, 3 * 4, 8, 8, 8, 8, 8, 8,
			      3 * 8 * 4));
	done(f);
	done(g);
}

static void test_devices_complete(void)
{
	struct fake_vm *f = fresh(APIC_XAPIC), *g = fresh(APIC_XAPIC);
	struct machine *a = f->vm.machine, *b = g->vm.machine;
	struct rng rng;

	rng_seed(&rng, 2, 0);
	for (u32 i = 0; i < 3; i++) {
		fill(&rng, &a->pit.c[i], &b->pit.c[i], sizeof(a->pit.c[i]));
		a->pit.c[i].mode = i;
		a->pit.c[i].access = 1 + i;
		a->pit.c[i].bcd = a->pit.c[i].status_latched = a->pit.c[i].read_hi = i & 1;
		a->pit.c[i].write_hi = a->pit.c[i].gate = a->pit.c[i].running = !(i & 1);
		memset(&b->pit.c[i].bcd, 0, 2);
		b->pit.c[i].read_hi = b->pit.c[i].write_hi = b->pit.c[i].gate = b->pit.c[i].running = false;
		a->pit.c[i].latched = 1;
		a->pit.c[i].reload = 65536 - i;
	}
	a->pit.port61 = 3;
	fill(&rng, &a->pic, &b->pic, sizeof(a->pic));
	fill(&rng, a->rtc.cmos, b->rtc.cmos, sizeof(a->rtc.cmos));
	a->rtc.index = 0x32;
	fill(&rng, a->ioapic.redir, b->ioapic.redir, sizeof(a->ioapic.redir));
	a->ioapic.select = 0x10;
	a->ioapic.id = 5;
	a->ioapic.level = 0x1234;
	a->pmtimer.pm1_status = 0x1111;
	a->pmtimer.pm1_enable = 0x0120;
	a->pmtimer.pm1_control = 0x2001;
	a->channel.warned = 1;
	fill(&rng, &a->control.ier, &b->control.ier, 9);
	a->control.loop_full = a->control.irq_level = true;
	a->control.thr_pending = true;
	g_byte_array_append(a->control.input, (const u8 *)"knobs\nquit\n", 11);
	a->control.input_pos = 6;
	g_byte_array_append(b->control.input, (const u8 *)"gone", 4);
	copy_state(f, g);
	for (u32 i = 0; i < 3; i++)
		g_assert_cmpuint(differences(&a->pit.c[i], &b->pit.c[i], sizeof(a->pit.c[i])), ==,
				 REST(struct pit_counter, 8, 2, 3, 4, 8, 8));
	g_assert_cmpuint(b->pit.port61, ==, 3);
	g_assert_cmpmem(&a->pic, sizeof(a->pic), &b->pic, sizeof(b->pic));
	g_assert_cmpmem(a->rtc.cmos, sizeof(a->rtc.cmos), b->rtc.cmos, sizeof(b->rtc.cmos));
	g_assert_cmpuint(b->rtc.index, ==, 0x32);
	g_assert_cmpmem(a->ioapic.redir, sizeof(a->ioapic.redir), b->ioapic.redir, sizeof(b->ioapic.redir));
	g_assert_cmpuint(b->ioapic.select, ==, 0x10);
	g_assert_cmpuint(b->ioapic.id, ==, 5);
	g_assert_cmpuint(b->ioapic.level, ==, 0x1234);
	g_assert_cmpuint(b->pmtimer.pm1_status, ==, 0x1111);
	g_assert_cmpuint(b->pmtimer.pm1_enable, ==, 0x0120);
	g_assert_cmpuint(b->pmtimer.pm1_control, ==, 0x2001);
	g_assert_cmpint(b->channel.warned, ==, 1);
	g_assert_cmpmem(&a->control.ier, 9, &b->control.ier, 9);
	g_assert_true(b->control.loop_full && b->control.thr_pending && b->control.irq_level);
	g_assert_cmpmem(b->control.input->data, b->control.input->len, "knobs\nquit\n", 11);
	g_assert_cmpuint(b->control.input_pos, ==, 6);
	/* Pointers are the VM's own still. */
	g_assert_true(b->control.vm == &g->vm && b->pit.vm == &g->vm && b->ioapic.vm == &g->vm);
	done(f);
	done(g);
}

static void test_vm_complete(void)
{
	struct fake_vm *f = fresh(APIC_XAPIC), *g = fresh(APIC_XAPIC);
	struct rng rng;

	rng_seed(&rng, 3, 0);
	fill(&rng, &f->vm.counters, &g->vm.counters, sizeof(f->vm.counters));
	fill(&rng, f->vm.ipi_latency, g->vm.ipi_latency, sizeof(f->vm.ipi_latency));
	fill(&rng, (u64 *)f->vm.ipi_matrix, (u64 *)g->vm.ipi_matrix, 4 * sizeof(u64));
	fill(&rng, (u64 *)f->vm.ipi_vector, (u64 *)g->vm.ipi_vector, sizeof(f->vm.ipi_vector));
	fill(&rng, &f->vm.frontier, &g->vm.frontier, sizeof(u64));
	fill(&rng, &f->vm.boot_tick_ns, &g->vm.boot_tick_ns, sizeof(u64));
	for (u32 i = 0; i < 4; i++) {
		fill(&rng, &f->vm.vcpu[i]->counters, &g->vm.vcpu[i]->counters, sizeof(struct counters));
		f->vm.vcpu[i]->mp_state = i % 3;
		f->vm.vcpu[i]->nmi_pending = i & 1;
		f->vm.vcpu[i]->timer_held = !(i & 1);
	}
	copy_state(f, g);
	g_assert_cmpmem(&f->vm.counters, sizeof(f->vm.counters), &g->vm.counters, sizeof(g->vm.counters));
	g_assert_cmpmem(f->vm.ipi_latency, sizeof(f->vm.ipi_latency), g->vm.ipi_latency, sizeof(g->vm.ipi_latency));
	g_assert_cmpmem((u64 *)f->vm.ipi_matrix, 32, (u64 *)g->vm.ipi_matrix, 32);
	g_assert_cmpmem((u64 *)f->vm.ipi_vector, sizeof(f->vm.ipi_vector), (u64 *)g->vm.ipi_vector, sizeof(g->vm.ipi_vector));
	g_assert_cmpuint(f->vm.frontier, ==, g->vm.frontier);
	g_assert_cmpuint(f->vm.boot_tick_ns, ==, g->vm.boot_tick_ns);
	for (u32 i = 0; i < 4; i++) {
		g_assert_cmpmem(&f->vm.vcpu[i]->counters, sizeof(struct counters), &g->vm.vcpu[i]->counters,
				sizeof(struct counters));
		g_assert_cmpuint(g->vm.vcpu[i]->mp_state, ==, i % 3);
		g_assert_true(g->vm.vcpu[i]->nmi_pending == (i & 1));
		g_assert_true(g->vm.vcpu[i]->timer_held == !(i & 1));
	}
	done(f);
	done(g);
}

/* Port writes at random: a machine in some state that a guest can bring about. */
static void play(struct fake_vm *f, struct rng *rng, u32 n)
{
	static const u16 port[] = {
		0x20, 0x21, 0xa0, 0xa1, 0x4d0, 0x40, 0x41, 0x42, 0x43, 0x61, 0x70, 0x71,
		LAYOUT_PORT_UART0, LAYOUT_PORT_UART0 + 1, LAYOUT_PORT_UART0 + 2, LAYOUT_PORT_UART0 + 3,
		LAYOUT_PORT_UART0 + 4, LAYOUT_PORT_UART1, LAYOUT_PORT_UART1 + 1, LAYOUT_PORT_UART1 + 4,
		LAYOUT_PORT_PM1A_EVT, LAYOUT_PORT_PM1A_EVT + 2,
	};

	while (n--) {
		u16 p = port[rng_next(rng) % ARRAY_SIZE(port)];

		f->now += rng_next(rng) % 1000000;
		if (rng_next(rng) & 1)
			fake_out(f, p, 1, (u8)rng_next(rng));
		else
			fake_in(f, p, 1);
		if (rng_next(rng) % 8 == 0) {
			const struct apic_msg msg = {
				.dest = f->vm.vcpu[rng_next(rng) % 4]->apic_id, .vector = 0x30 + rng_next(rng) % 64,
				.assert = true,
			};

			apicbus_send_ipi(f->vm.vcpu[rng_next(rng) % 4], &msg, f->now);
		}
		if (rng_next(rng) % 4 == 0)
			fake_run_all(f);
		if (rng_next(rng) % 8 == 0)
			fake_take(f, rng_next(rng) % 4);
	}
}

/* One machine goes on, another goes on from its snapshot: they stay alike. */
static void test_goes_on(void)
{
	for (u64 seed = 0; seed < 30; seed++) {
		enum apic_mode apic = seed & 1 ? APIC_X2APIC : APIC_XAPIC;
		struct fake_vm *f = fresh(apic), *g = fresh(apic);
		struct rng rng, other;
		GByteArray *a, *b;

		f->vm.machine->ioapic.redir[2] = 0x30;
		f->vm.machine->ioapic.redir[4] = 0x31;
		rng_seed(&rng, seed, 4);
		rng_seed(&other, seed, 5);
		play(f, &rng, 300);
		play(g, &other, 100);
		copy_state(f, g);
		g->now = f->now;
		other = rng;
		play(f, &rng, 300);
		play(g, &other, 300);
		a = save(f);
		b = save(g);
		g_assert_cmpmem(a->data, a->len, b->data, b->len);
		g_byte_array_unref(a);
		g_byte_array_unref(b);
		done(f);
		done(g);
	}
}

/* Anything may stand in a file that somebody hands in. */
static void test_garbage(void)
{
	struct fake_vm *f = fresh(APIC_XAPIC);
	struct rng rng, input;
	GByteArray *data;
	u32 refused = 0;

	rng_seed(&rng, 7, 0);
	f->vm.machine->ioapic.redir[2] = 0x30;
	play(f, &rng, 300);
	data = save(f);
	for (u32 i = 0; i < 400; i++) {
		struct fake_vm *g = fresh(APIC_XAPIC);
		size_t at = rng_next(&rng) % data->len;
		u8 was = data->data[at];
		char *err;

		data->data[at] = (u8)rng_next(&rng);
		err = load(g, data, i % 4 ? data->len : at);
		refused += err != NULL;
		/* What was taken can be worked with. */
		rng_seed(&input, i, 8);
		g->now = f->now;
		if (!err)
			play(g, &input, 50);
		data->data[at] = was;
		g_free(err);
		done(g);
	}
	g_assert_cmpuint(refused, >, 100);
	g_byte_array_unref(data);
	done(f);
}

/* Of another machine. */
static void test_other_machine(void)
{
	struct fake_vm *f = fresh(APIC_XAPIC), *g = fake_vm_new("1x2x1", APIC_XAPIC), *h = fresh(APIC_X2APIC);
	GByteArray *data = save(f);
	char *err;

	g_assert_cmpint(machine_init(&g->vm), ==, 0);
	err = load(g, data, data->len);
	g_assert_nonnull(strstr(err, "the number of vCPUs is 4 there and 2 here"));
	g_free(err);
	err = load(h, data, data->len);
	g_assert_nonnull(strstr(err, "the kind of local APIC"));
	g_free(err);
	g_byte_array_unref(data);
	done(f);
	done(g);
	done(h);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/machine-state/lapic-complete", test_lapic_complete);
	g_test_add_func("/machine-state/devices-complete", test_devices_complete);
	g_test_add_func("/machine-state/vm-complete", test_vm_complete);
	g_test_add_func("/machine-state/goes-on", test_goes_on);
	g_test_add_func("/machine-state/garbage", test_garbage);
	g_test_add_func("/machine-state/other-machine", test_other_machine);
	return g_test_run();
}
