// SPDX-License-Identifier: GPL-2.0-only
/* The host's side of the channel against a guest that writes what it likes. */
#include <errno.h>
#include <glib.h>
#include <string.h>

#include "base/rng.h"
#include "machine/channel.h"

#define RAM		(4 * MIB)
#define CHANNEL		(RAM - FAULTBED_CHANNEL_SIZE)
#define COUNTERS	0x10000ull

struct fixture {
	struct vm vm;
	struct channel ch;
	struct faultbed_channel *guest;
};

static void set_up(struct fixture *f, gconstpointer data)
{
	g_assert_cmpint(memory_create(&f->vm.mem), ==, 0);
	g_assert_cmpint(memory_add(&f->vm.mem, 0, RAM, 0), ==, 0);
	f->guest = memory_hva(&f->vm.mem, CHANNEL, sizeof(*f->guest));
	memset(f->guest, 0xff, FAULTBED_CHANNEL_SIZE);
	g_assert_cmpint(channel_init(&f->ch, &f->vm, CHANNEL), ==, 0);
}

static void tear_down(struct fixture *f, gconstpointer data)
{
	memory_destroy(&f->vm.mem);
}

/* What a sound kernel writes: two counters on three CPUs. */
static void publish(struct fixture *f)
{
	struct faultbed_channel *g = f->guest;
	u64 *counters = memory_hva(&f->vm.mem, COUNTERS, PAGE_SIZE);

	strcpy(g->kernel_release, "6.12.95 #1 SMP");
	strcpy(g->patch_id, "abc123-dirty");
	strcpy(g->counter_name[0], "guest_page_faults");
	strcpy(g->counter_name[1], "tlb_flush_full");
	g->nr_counters = 2;
	g->nr_cpus = 3;
	for (u32 i = 0; i < 3; i++) {
		g->cpu[i].counters_gpa = COUNTERS + i * 0x100;
		counters[i * 0x20] = 100 + i;
		counters[i * 0x20 + 1] = 200 + i;
	}
	g->guest_version = FAULTBED_CHANNEL_VERSION;
	g->guest_magic = FAULTBED_GUEST_MAGIC;
}

static void test_layout(void)
{
	/* The kernel's copy is compared as text; its size and two offsets are pinned here. */
	g_assert_cmpuint(sizeof(struct faultbed_knob), ==, 96);
	g_assert_cmpuint(sizeof(struct faultbed_cpu), ==, 16);
	g_assert_cmpuint(offsetof(struct faultbed_channel, counter_name), ==, 256);
	g_assert_cmpuint(sizeof(struct faultbed_channel), <=, FAULTBED_CHANNEL_SIZE);
}

static void test_init(struct fixture *f, gconstpointer data)
{
	struct channel_snapshot snap;
	const u8 *bytes = (const u8 *)f->guest;
	struct channel other;

	g_assert_cmphex(f->guest->magic, ==, FAULTBED_CHANNEL_MAGIC);
	g_assert_cmpuint(f->guest->version, ==, FAULTBED_CHANNEL_VERSION);
	g_assert_cmpuint(f->guest->size, ==, FAULTBED_CHANNEL_SIZE);
	for (u32 i = 16; i < FAULTBED_CHANNEL_SIZE; i++)
		g_assert_cmphex(bytes[i], ==, 0);
	channel_read(&f->ch, &snap);
	g_assert_false(snap.valid);		/* nobody has published */
	channel_snapshot_free(&snap);

	g_assert_cmpint(channel_init(&other, &f->vm, CHANNEL + PAGE_SIZE), ==, -EINVAL);
	g_assert_cmpint(channel_init(&other, &f->vm, CHANNEL - 1), ==, -EINVAL);
	g_assert_cmpuint(other.gpa, ==, 0);
	channel_read(&other, &snap);
	g_assert_false(snap.valid);
	g_assert_cmpint(channel_request_knob(&other, "a", "b"), ==, -ENODEV);
	g_assert_null(channel_knob_in_force(&other, "a"));
	channel_clear_knobs(&other);
}

static void test_read(struct fixture *f, gconstpointer data)
{
	struct channel_snapshot snap;

	publish(f);
	channel_read(&f->ch, &snap);
	g_assert_true(snap.valid);
	g_assert_cmpuint(snap.nr_counters, ==, 2);
	g_assert_cmpuint(snap.nr_cpus, ==, 3);
	g_assert_cmpstr(snap.name[1], ==, "tlb_flush_full");
	for (u32 i = 0; i < 3; i++) {
		g_assert_cmpuint(snap.value[i * 2], ==, 100 + i);
		g_assert_cmpuint(snap.value[i * 2 + 1], ==, 200 + i);
	}
	g_assert_cmpstr(snap.kernel_release, ==, "6.12.95 #1 SMP");
	g_assert_cmpstr(snap.patch_id, ==, "abc123-dirty");
	channel_snapshot_free(&snap);

	/* A CPU that never came up has no array, and has counted nothing. */
	f->guest->cpu[1].counters_gpa = 0;
	channel_read(&f->ch, &snap);
	g_assert_true(snap.valid);
	g_assert_cmpuint(snap.value[2], ==, 0);
	g_assert_cmpuint(snap.value[4], ==, 102);
	channel_snapshot_free(&snap);
}

/* Each corruption makes the snapshot invalid; the next sound table is valid again. */
static void test_corrupt(struct fixture *f, gconstpointer data)
{
	struct channel_snapshot snap;

	for (u32 i = 0; i < 12; i++) {
		struct faultbed_channel *g = f->guest;

		publish(f);
		switch (i) {
		case 0: g->guest_magic = 1; break;
		case 1: g->guest_version = 2; break;
		case 2: g->nr_counters = FAULTBED_MAX_COUNTERS + 1; break;
		case 3: g->nr_counters = UINT32_MAX; break;
		case 4: g->nr_cpus = FAULTBED_MAX_CPUS + 1; break;
		case 5: g->nr_cpus = 0x40000000; break;		/* times 8 overflows 32 bits */
		case 6: g->cpu[2].counters_gpa = RAM - 8; break;	/* the second one is beyond */
		case 7: g->cpu[0].counters_gpa = UINT64_MAX - 7; break;
		case 8: g->cpu[0].counters_gpa = COUNTERS + 1; break;
		case 9: memset(g->counter_name[0], 'a', FAULTBED_NAME_LEN); break;	/* no end */
		case 10: strcpy(g->counter_name[0], "a\x1b[2J"); break;
		case 11: strcpy(g->counter_name[0], g->counter_name[1]); break;
		}
		channel_read(&f->ch, &snap);
		g_assert_false(snap.valid);
		g_assert_null(snap.value);
		channel_snapshot_free(&snap);
	}
	publish(f);
	channel_read(&f->ch, &snap);
	g_assert_true(snap.valid);
	channel_snapshot_free(&snap);
}

static void test_text(struct fixture *f, gconstpointer data)
{
	struct channel_snapshot snap;

	publish(f);
	memset(f->guest->kernel_release, 'x', sizeof(f->guest->kernel_release));
	strcpy(f->guest->patch_id, "\x1b]0;title\x07\n");
	channel_read(&f->ch, &snap);
	g_assert_cmpuint(strlen(snap.kernel_release), ==, sizeof(snap.kernel_release) - 1);
	g_assert_cmpstr(snap.patch_id, ==, "?]0;title??");
	channel_snapshot_free(&snap);
}

/* Thousands of random tables: nothing but a snapshot or none comes of them. */
static void test_random(struct fixture *f, gconstpointer data)
{
	struct channel_snapshot snap;
	struct rng rng;
	u32 valid = 0;

	rng_seed(&rng, 1, 0);
	for (u32 round = 0; round < 3000; round++) {
		u8 *bytes = (u8 *)f->guest;

		publish(f);
		for (u32 n = (u32)(rng_next(&rng) % 8); n; n--) {
			u64 r = rng_next(&rng);

			/* Mostly where it matters: the header, names and the first CPUs. */
			bytes[(r & 1 ? r >> 8 : 16 + (r >> 8) % 400) % sizeof(*f->guest)] = (u8)(r >> 40);
		}
		channel_read(&f->ch, &snap);
		valid += snap.valid;
		if (snap.valid)
			for (u32 i = 0; i < snap.nr_counters; i++)
				g_assert_true(g_regex_match_simple("^[a-z0-9_]+$", snap.name[i], 0, 0));
		g_free(channel_knob_in_force(&f->ch, "k"));
		channel_snapshot_free(&snap);
	}
	/* Both kinds have been met. */
	g_assert_cmpuint(valid, >, 300);
	g_assert_cmpuint(valid, <, 2900);
}

static gpointer scribble(gpointer data)
{
	struct fixture *f = data;

	for (u32 i = 0; i < 300000; i++) {
		volatile struct faultbed_channel *g = f->guest;

		g->nr_cpus = i & 1 ? 3 : UINT32_MAX;
		g->cpu[0].counters_gpa = i & 2 ? COUNTERS : UINT64_MAX - 15;
		g->counter_name[0][i % FAULTBED_NAME_LEN] = (char)i;
	}
	return NULL;
}

/* A guest that changes the table while it is read gains nothing by it. */
static void test_race(struct fixture *f, gconstpointer data)
{
	struct channel_snapshot snap;
	GThread *t;

	publish(f);
	t = g_thread_new("scribble", scribble, f);
	for (u32 i = 0; i < 500; i++) {
		channel_read(&f->ch, &snap);
		g_assert_true(!snap.valid || snap.nr_cpus == 3);
		channel_snapshot_free(&snap);
	}
	g_thread_join(t);
}

static void test_knobs(struct fixture *f, gconstpointer data)
{
	char long_name[FAULTBED_NAME_LEN + 1], name[16];
	char *value;

	g_assert_cmpint(channel_request_knob(&f->ch, "fault_path", "spec"), ==, 0);
	g_assert_cmpint(channel_request_knob(&f->ch, "lazy_tlb", "off"), ==, 0);
	g_assert_cmpint(channel_request_knob(&f->ch, "fault_path", "mmap_lock"), ==, 0);
	g_assert_cmpstr(f->guest->knob[0].name, ==, "fault_path");
	g_assert_cmpstr(f->guest->knob[0].requested, ==, "mmap_lock");
	g_assert_cmpstr(f->guest->knob[1].requested, ==, "off");
	g_assert_cmpstr(f->guest->knob[2].name, ==, "");
	g_assert_null(channel_knob_in_force(&f->ch, "fault_path"));	/* the guest has not said yet */

	strcpy(f->guest->knob[0].in_force, "mmap_lock");
	memset(f->guest->knob[1].in_force, '\n', FAULTBED_VALUE_LEN);
	value = channel_knob_in_force(&f->ch, "fault_path");
	g_assert_cmpstr(value, ==, "mmap_lock");
	g_free(value);
	value = channel_knob_in_force(&f->ch, "lazy_tlb");
	g_assert_cmpuint(strlen(value), ==, FAULTBED_VALUE_LEN - 1);
	g_assert_null(strchr(value, '\n'));
	g_free(value);
	g_assert_null(channel_knob_in_force(&f->ch, "other"));

	/* What the guest says stays when requests go. */
	channel_clear_knobs(&f->ch);
	g_assert_cmpstr(f->guest->knob[0].requested, ==, "");
	g_assert_cmpstr(f->guest->knob[0].in_force, ==, "mmap_lock");

	memset(long_name, 'n', sizeof(long_name));
	long_name[FAULTBED_NAME_LEN] = '\0';
	g_assert_cmpint(channel_request_knob(&f->ch, long_name, "v"), ==, -EINVAL);
	g_assert_cmpint(channel_request_knob(&f->ch, "k", long_name), ==, -EINVAL);
	long_name[FAULTBED_NAME_LEN - 1] = '\0';
	g_assert_cmpint(channel_request_knob(&f->ch, long_name, "v"), ==, 0);
	g_assert_cmpint(channel_request_knob(&f->ch, "", "v"), ==, -EINVAL);
	g_assert_cmpint(channel_request_knob(&f->ch, "a b", "v"), ==, -EINVAL);
	g_assert_cmpint(channel_request_knob(&f->ch, "k", "v\n"), ==, -EINVAL);
	for (u32 i = 3; i < FAULTBED_MAX_KNOBS; i++) {
		g_snprintf(name, sizeof(name), "k%u", i);
		g_assert_cmpint(channel_request_knob(&f->ch, name, "v"), ==, 0);
	}
	g_assert_cmpint(channel_request_knob(&f->ch, "one_more", "v"), ==, -ENOSPC);
	g_assert_cmpint(channel_request_knob(&f->ch, "lazy_tlb", "on"), ==, 0);
}

#define ADD(path, fn)	g_test_add(path, struct fixture, NULL, set_up, fn, tear_down)

/* The guest has registered a knob that the host did not ask for. */
static void put_knob(struct fixture *f, u32 row, const char *name, const char *value)
{
	struct faultbed_knob *knob = &f->guest->knob[row];

	memset(knob, 0, sizeof(*knob));
	strcpy(knob->name, name);
	strcpy(knob->in_force, value);
}

/* Is `counter` counted with this value of the knob in row 0? */
static bool counted(struct fixture *f, const char *name, const char *value, const char *counter)
{
	struct channel_snapshot snap;
	g_autofree char *why = NULL;

	put_knob(f, 0, name, value);
	channel_read(&f->ch, &snap);
	g_assert_true(snap.valid);
	why = channel_not_counted(&snap, counter);
	g_assert_true(!why || strstr(why, name));
	channel_snapshot_free(&snap);
	return !why;
}

static void test_not_counted(struct fixture *f, gconstpointer data)
{
	publish(f);
	g_assert_false(counted(f, "mmap_lock_stat", "off", "mmap_lock_read"));
	g_assert_false(counted(f, "mmap_lock_stat", "off", "mmap_lock_write_hold_ns"));
	g_assert_true(counted(f, "mmap_lock_stat", "count", "mmap_lock_read"));
	g_assert_true(counted(f, "mmap_lock_stat", "count", "mmap_lock_trylock_failed"));
	g_assert_false(counted(f, "mmap_lock_stat", "count", "mmap_lock_write_hold_ns"));
	g_assert_false(counted(f, "mmap_lock_stat", "count", "mmap_lock_untimed"));
	g_assert_true(counted(f, "mmap_lock_stat", "time", "mmap_lock_write_hold_ns"));
	g_assert_true(counted(f, "mmap_lock_stat", "time", "mmap_lock_untimed"));
	/* What a knob of another kernel means is not known, nor what one does that is not there. */
	g_assert_true(counted(f, "mmap_lock_stat", "offhand", "mmap_lock_read"));
	g_assert_true(counted(f, "label", "off", "mmap_lock_read"));
	g_assert_true(counted(f, "mmap_lock_stat", "off", "pf_mmap_lock"));
	g_assert_true(counted(f, "mmap_lock_stat", "off", "guest_page_faults"));

	/* Either of two knobs makes this one count. A row that the host asked for and the guest does not have is between. */
	put_knob(f, 1, "none", "");
	put_knob(f, 2, "i_mmap_stat", "off");
	g_assert_false(counted(f, "i_mmap", "rwsem", "i_mmap_write"));
	g_assert_true(counted(f, "i_mmap", "spin", "i_mmap_write"));
	put_knob(f, 2, "i_mmap_stat", "on");
	g_assert_true(counted(f, "i_mmap", "rwsem", "i_mmap_write"));
	g_assert_true(counted(f, "i_mmap", "mutex", "i_mmap_write"));
}

/* The guest's table of knobs is as untrusted as the rest: all rows used, and no end anywhere. */
static void test_knobs_garbage(struct fixture *f, gconstpointer data)
{
	struct channel_snapshot snap;

	publish(f);
	memset(f->guest->knob, 0xff, sizeof(f->guest->knob));
	channel_read(&f->ch, &snap);
	g_assert_true(snap.valid);
	g_assert_cmpuint(snap.nr_knobs, ==, FAULTBED_MAX_KNOBS);
	g_assert_cmpuint(strlen(snap.knob[FAULTBED_MAX_KNOBS - 1].in_force), ==, FAULTBED_VALUE_LEN - 1);
	g_assert_null(channel_not_counted(&snap, "mmap_lock_read"));
	channel_snapshot_free(&snap);
	g_assert_cmpuint(snap.nr_knobs, ==, 0);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/channel/layout", test_layout);
	ADD("/channel/init", test_init);
	ADD("/channel/read", test_read);
	ADD("/channel/corrupt", test_corrupt);
	ADD("/channel/text", test_text);
	ADD("/channel/random", test_random);
	ADD("/channel/race", test_race);
	ADD("/channel/knobs", test_knobs);
	ADD("/channel/not-counted", test_not_counted);
	ADD("/channel/knobs-garbage", test_knobs_garbage);
	return g_test_run();
}
