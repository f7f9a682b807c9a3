// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/log.h"
#include "machine/channel.h"

_Static_assert(sizeof(struct faultbed_channel) <= FAULTBED_CHANNEL_SIZE,
	       "the channel's layout does not fit its region");

#define FIELD_GPA(ch, member)	((ch)->gpa + offsetof(struct faultbed_channel, member))

static gpa_t knob_gpa(const struct channel *ch, u32 i)
{
	return FIELD_GPA(ch, knob) + (u64)i * sizeof(struct faultbed_knob);
}

int channel_init(struct channel *ch, struct vm *vm, gpa_t gpa)
{
	static const struct faultbed_channel host = {
		.magic = FAULTBED_CHANNEL_MAGIC,
		.version = FAULTBED_CHANNEL_VERSION,
		.size = FAULTBED_CHANNEL_SIZE,
	};
	void *region;

	ch->vm = vm;
	ch->gpa = 0;
	ch->warned = 0;
	region = gpa % PAGE_SIZE ? NULL : memory_hva(&vm->mem, gpa, FAULTBED_CHANNEL_SIZE);
	if (!region) {
		fb_err("no room for the channel: %u bytes at %#" PRIx64 " are not guest RAM of one node",
		       FAULTBED_CHANNEL_SIZE, gpa);
		return -EINVAL;
	}
	memset(region, 0, FAULTBED_CHANNEL_SIZE);
	memcpy(region, &host, sizeof(host));
	ch->gpa = gpa;
	return 0;
}

/*
 * The guest runs while the host reads: everything is copied once and only the
 * copy is looked at. NULL if there is no channel; g_free().
 */
static struct faultbed_channel *copy_region(const struct channel *ch)
{
	struct faultbed_channel *copy;

	if (!ch->gpa)
		return NULL;
	copy = g_new(struct faultbed_channel, 1);
	if (memory_read(&ch->vm->mem, ch->gpa, copy, sizeof(*copy)) < 0) {
		g_free(copy);
		return NULL;
	}
	return copy;
}

/* Printable ASCII up to the first NUL; always terminated. */
static void copy_text(char *to, const char *from, size_t size)
{
	size_t n = strnlen(from, size - 1);

	memset(to, 0, size);
	for (size_t i = 0; i < n; i++)
		to[i] = from[i] >= ' ' && from[i] <= '~' ? from[i] : '?';
}

/* A counter's name as a result may carry it; false if it is none. */
static bool copy_name(char *to, const char *from)
{
	size_t n = strnlen(from, FAULTBED_NAME_LEN);

	if (!n || n == FAULTBED_NAME_LEN)
		return false;
	memset(to, 0, FAULTBED_NAME_LEN);
	for (size_t i = 0; i < n; i++) {
		if (!g_ascii_islower(from[i]) && !g_ascii_isdigit(from[i]) && from[i] != '_')
			return false;
		to[i] = from[i];
	}
	return true;
}

/* NULL, or what is wrong with the guest's table. */
static const char *read_table(const struct channel *ch, const struct faultbed_channel *copy,
			      struct channel_snapshot *snap)
{
	if (copy->nr_counters > FAULTBED_MAX_COUNTERS)
		return "too many counters";
	if (copy->nr_cpus > FAULTBED_MAX_CPUS)
		return "too many CPUs";
	snap->nr_counters = copy->nr_counters;
	snap->nr_cpus = copy->nr_cpus;
	for (u32 i = 0; i < snap->nr_counters; i++) {
		if (!copy_name(snap->name[i], copy->counter_name[i]))
			return "a counter's name is not [a-z0-9_]+";
		for (u32 j = 0; j < i; j++)
			if (!strcmp(snap->name[i], snap->name[j]))
				return "two counters have one name";
	}

	snap->value = g_new0(u64, (size_t)snap->nr_cpus * snap->nr_counters + 1);
	for (u32 cpu = 0; cpu < snap->nr_cpus; cpu++) {
		u64 gpa = copy->cpu[cpu].counters_gpa;

		/* A possible CPU that has no array has counted nothing. */
		if (!gpa)
			continue;
		if (gpa % sizeof(u64) ||
		    memory_read(&ch->vm->mem, gpa, snap->value + (size_t)cpu * snap->nr_counters,
				snap->nr_counters * sizeof(u64)) < 0)
			return "a CPU's counters are not in guest RAM";
	}
	return NULL;
}

static void read_knobs(const struct faultbed_channel *copy, struct channel_snapshot *snap)
{
	for (u32 i = 0; i < FAULTBED_MAX_KNOBS && copy->knob[i].name[0]; i++) {
		struct channel_knob *knob = &snap->knob[snap->nr_knobs];

		if (!copy->knob[i].in_force[0])
			continue;
		copy_text(knob->name, copy->knob[i].name, sizeof(knob->name));
		copy_text(knob->in_force, copy->knob[i].in_force, sizeof(knob->in_force));
		snap->nr_knobs++;
	}
}

void channel_read(const struct channel *ch, struct channel_snapshot *snap)
{
	struct faultbed_channel *copy = copy_region(ch);
	const char *wrong;

	memset(snap, 0, sizeof(*snap));
	if (!copy)
		return;
	if (copy->guest_magic == FAULTBED_GUEST_MAGIC) {
		copy_text(snap->kernel_release, copy->kernel_release, sizeof(snap->kernel_release));
		copy_text(snap->patch_id, copy->patch_id, sizeof(snap->patch_id));
		wrong = copy->guest_version != FAULTBED_CHANNEL_VERSION ?
			"another version of the layout" : read_table(ch, copy, snap);
		snap->valid = !wrong;
		read_knobs(copy, snap);
		if (wrong && !__atomic_exchange_n((int *)&ch->warned, 1, __ATOMIC_RELAXED))
			fb_warn("the guest kernel's counters cannot be used: %s", wrong);
	}
	if (!snap->valid)
		channel_snapshot_free(snap);
	g_free(copy);
}

void channel_snapshot_free(struct channel_snapshot *snap)
{
	g_free(snap->value);
	snap->value = NULL;
	snap->nr_counters = 0;
	snap->nr_cpus = 0;
	snap->nr_knobs = 0;
	snap->valid = false;
}

static bool text_fits(const char *text, size_t size)
{
	size_t n = strlen(text);

	for (size_t i = 0; i < n; i++)
		if (text[i] < '!' || text[i] > '~')
			return false;
	return n < size;
}

/* The row of a knob, or with `make` else the first free one; -1 if there is none. */
static int find_row(const struct faultbed_channel *copy, const char *name, bool make)
{
	for (int i = 0; i < (int)FAULTBED_MAX_KNOBS; i++) {
		const char *row = copy->knob[i].name;

		if (!*row)
			return make ? i : -1;
		if (!strncmp(row, name, FAULTBED_NAME_LEN))
			return i;
	}
	return -1;
}

int channel_request_knob(struct channel *ch, const char *name, const char *value)
{
	struct faultbed_knob row = { 0 };
	struct faultbed_channel *copy;
	int i, ret;

	if (!*name || !text_fits(name, sizeof(row.name)) ||
	    !text_fits(value, sizeof(row.requested)))
		return -EINVAL;
	copy = copy_region(ch);
	if (!copy)
		return -ENODEV;
	i = find_row(copy, name, true);
	g_free(copy);
	if (i < 0)
		return -ENOSPC;
	/* in_force is the guest's; the name makes the row visible and goes last. */
	strcpy(row.name, name);
	strcpy(row.requested, value);
	ret = memory_write(&ch->vm->mem,
			   knob_gpa(ch, (u32)i) + offsetof(struct faultbed_knob, requested),
			   row.requested, sizeof(row.requested));
	__atomic_thread_fence(__ATOMIC_RELEASE);
	return ret ?: memory_write(&ch->vm->mem, knob_gpa(ch, (u32)i), row.name, sizeof(row.name));
}

void channel_clear_knobs(struct channel *ch)
{
	static const char nothing[FAULTBED_VALUE_LEN];

	/* Names stay: the guest counts on its rows, and a gap would end the table. */
	for (u32 i = 0; ch->gpa && i < FAULTBED_MAX_KNOBS; i++)
		memory_write(&ch->vm->mem,
			     knob_gpa(ch, i) + offsetof(struct faultbed_knob, requested), nothing,
			     sizeof(nothing));
}

char *channel_knob_in_force(const struct channel *ch, const char *name)
{
	struct faultbed_channel *copy = copy_region(ch);
	char value[FAULTBED_VALUE_LEN];
	char *ret = NULL;
	int i;

	if (!copy)
		return NULL;
	i = find_row(copy, name, false);
	if (i >= 0 && copy->knob[i].in_force[0]) {
		copy_text(value, copy->knob[i].in_force, sizeof(value));
		ret = g_strdup(value);
	}
	g_free(copy);
	return ret;
}
