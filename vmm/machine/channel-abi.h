/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The channel's layout: what a patched guest kernel and the host agree on.
 *
 * The same text is include/uapi/linux/faultbed.h of the kernel patches
 * (tests/unit checks that the two are equal), so it uses no type of either
 * side. All fields are little-endian; the region is CHANNEL_SIZE bytes of
 * guest RAM that the firmware map (e820) reserves.
 *
 * The counters themselves are not in the region: the kernel keeps them in its
 * own per-CPU area, where one gs-relative add counts an event, and the region
 * holds the guest physical address of each CPU's array. The host reads them
 * there, without an exit.
 *
 * Who writes: fields marked (h) the host, before the guest starts or, for
 * knobs, before it asks the guest to apply them; fields marked (g) the guest.
 * The host trusts none of the (g) fields: addresses and counts are checked
 * against guest RAM and the maxima below before use.
 */
#ifndef FAULTBED_CHANNEL_ABI_H
#define FAULTBED_CHANNEL_ABI_H

#define FAULTBED_CHANNEL_MAGIC		0x48434246u	/* "FBCH" */
#define FAULTBED_CHANNEL_VERSION	1u
#define FAULTBED_CHANNEL_SIZE		0x10000u
#define FAULTBED_GUEST_MAGIC		0x53455547u	/* "GUES": guest fields valid */

#define FAULTBED_MAX_CPUS		512u
#define FAULTBED_MAX_COUNTERS		128u
#define FAULTBED_MAX_KNOBS		32u
#define FAULTBED_NAME_LEN		32u	/* with the final NUL */
#define FAULTBED_VALUE_LEN		32u	/* with the final NUL */

/* A knob: the host asks for a value, the guest says which is in force. */
struct faultbed_knob {
	char name[FAULTBED_NAME_LEN];		/* (h) "" ends the table; (g) for knobs the host left out */
	char requested[FAULTBED_VALUE_LEN];	/* (h) "" = leave as it is */
	char in_force[FAULTBED_VALUE_LEN];	/* (g) "" = the kernel has no such knob */
};

/* One CPU's counter array, indexed by Linux CPU number. */
struct faultbed_cpu {
	unsigned long long counters_gpa;	/* (g) 0 = none; 8-byte counters, contiguous */
	unsigned int apic_id;			/* (g) */
	unsigned int node;			/* (g) */
};

struct faultbed_channel {
	unsigned int magic;			/* (h) FAULTBED_CHANNEL_MAGIC */
	unsigned int version;			/* (h) FAULTBED_CHANNEL_VERSION */
	unsigned int size;			/* (h) bytes of the region */
	unsigned int reserved0;
	unsigned int guest_magic;		/* (g) written last */
	unsigned int guest_version;		/* (g) */
	unsigned int nr_counters;		/* (g) <= FAULTBED_MAX_COUNTERS */
	unsigned int nr_cpus;			/* (g) <= FAULTBED_MAX_CPUS */
	char kernel_release[96];		/* (g) utsname release and version */
	char patch_id[64];			/* (g) CONFIG_FAULTBED_PATCH_ID: hash of the series, "-dirty" if changed */
	char reserved1[64];
	char counter_name[FAULTBED_MAX_COUNTERS][FAULTBED_NAME_LEN];	/* (g) */
	struct faultbed_knob knob[FAULTBED_MAX_KNOBS];
	struct faultbed_cpu cpu[FAULTBED_MAX_CPUS];
};

#endif
