// SPDX-License-Identifier: GPL-2.0-only
/*
 * The host's side of images/kernel-test.sh: makes a guest's memory with a
 * channel in it, and reads counters out of it afterwards, by nothing but the
 * layout in machine/channel-abi.h.
 *
 *	make FILE BYTES ADDR [NAME=VALUE]...	a sparse FILE, knobs requested
 *	read FILE ADDR				prints what the guest published
 *
 * Output of read: "guest NR_COUNTERS NR_CPUS", "release TEXT", "patch TEXT",
 * "knob NAME REQUESTED IN_FORCE" (empty is "-"), "counter NAME SUM".
 */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine/channel-abi.h"

static struct faultbed_channel channel;

static void die(const char *what, const char *name)
{
	fprintf(stderr, "kernel-test-channel: %s: %s\n", name, what);
	exit(1);
}

static void put_string(char *field, size_t size, const char *s, size_t n)
{
	if (n >= size)
		die("too long", s);
	memcpy(field, s, n);
}

static void make_memory(const char *name, uint64_t size, uint64_t addr, int nr, char **knobs)
{
	FILE *f = fopen(name, "wb");
	int i;

	if (!f)
		die(strerror(errno), name);
	channel.magic = FAULTBED_CHANNEL_MAGIC;
	channel.version = FAULTBED_CHANNEL_VERSION;
	channel.size = FAULTBED_CHANNEL_SIZE;
	for (i = 0; i < nr && i < (int)FAULTBED_MAX_KNOBS; i++) {
		const char *value = strchr(knobs[i], '=');

		if (!value)
			die("wants NAME=VALUE", knobs[i]);
		put_string(channel.knob[i].name, FAULTBED_NAME_LEN, knobs[i],
			   (size_t)(value - knobs[i]));
		put_string(channel.knob[i].requested, FAULTBED_VALUE_LEN, value + 1,
			   strlen(value + 1));
	}
	/* The last byte makes the file as long as the guest's memory. */
	if (fseek(f, (long)addr, SEEK_SET) || fwrite(&channel, sizeof(channel), 1, f) != 1 ||
	    fseek(f, (long)size - 1, SEEK_SET) || fputc(0, f) == EOF || fclose(f))
		die("cannot be written", name);
}

static void read_at(FILE *f, const char *name, uint64_t addr, void *to, size_t size)
{
	if (fseek(f, (long)addr, SEEK_SET) || fread(to, size, 1, f) != 1)
		die("an address lies outside of it", name);
}

static void read_memory(const char *name, uint64_t addr)
{
	static uint64_t sum[FAULTBED_MAX_COUNTERS], one[FAULTBED_MAX_COUNTERS];
	FILE *f = fopen(name, "rb");
	unsigned int i, cpu;

	if (!f)
		die(strerror(errno), name);
	read_at(f, name, addr, &channel, sizeof(channel));
	if (channel.guest_magic != FAULTBED_GUEST_MAGIC)
		die("the guest published nothing", name);
	if (channel.nr_counters > FAULTBED_MAX_COUNTERS || channel.nr_cpus > FAULTBED_MAX_CPUS)
		die("the guest published more than there can be", name);
	printf("guest %u %u\nrelease %.95s\npatch %.63s\n", channel.nr_counters, channel.nr_cpus,
	       channel.kernel_release, channel.patch_id);
	for (i = 0; i < FAULTBED_MAX_KNOBS && channel.knob[i].name[0]; i++)
		printf("knob %.31s %.31s %.31s\n", channel.knob[i].name,
		       channel.knob[i].requested[0] ? channel.knob[i].requested : "-",
		       channel.knob[i].in_force[0] ? channel.knob[i].in_force : "-");
	for (cpu = 0; cpu < channel.nr_cpus; cpu++) {
		if (!channel.cpu[cpu].counters_gpa)
			continue;
		read_at(f, name, channel.cpu[cpu].counters_gpa, one,
			channel.nr_counters * sizeof(*one));
		for (i = 0; i < channel.nr_counters; i++)
			sum[i] += one[i];
	}
	for (i = 0; i < channel.nr_counters; i++)
		printf("counter %.31s %" PRIu64 "\n", channel.counter_name[i], sum[i]);
	fclose(f);
}

int main(int argc, char **argv)
{
	if (argc >= 5 && !strcmp(argv[1], "make"))
		make_memory(argv[2], strtoull(argv[3], NULL, 0), strtoull(argv[4], NULL, 0),
			    argc - 5, argv + 5);
	else if (argc == 4 && !strcmp(argv[1], "read"))
		read_memory(argv[2], strtoull(argv[3], NULL, 0));
	else
		die("make FILE BYTES ADDR [NAME=VALUE]... | read FILE ADDR", "usage");
	return 0;
}
