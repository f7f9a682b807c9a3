/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A scenario file (*.ini, see docs/scenario.md): read, checked key by key with
 * file and line in every message, overridden by --set, and expanded by [vary]
 * into cells. Used by the VMM (one cell) and the front end (all cells). No
 * locking: build it, then read it.
 */
#ifndef VMM_SCENARIO_H
#define VMM_SCENARIO_H

#include <glib.h>

#include "base/types.h"
#include "core/topology.h"

enum scenario_engine { ENGINE_AUTO, ENGINE_KVM, ENGINE_SOFT, ENGINE_NESTED, ENGINE_QEMU, ENGINE_LIBVIRT };
enum scenario_apic { SCENARIO_APIC_AUTO, SCENARIO_APIC_XAPIC, SCENARIO_APIC_X2APIC, SCENARIO_APIC_KERNEL };

/* One key as written: for messages that come after parsing ("FILE:LINE: section.key: ..."). */
struct scenario_key {
	char *section, *key, *value;
	char *origin;			/* "FILE:12" or "--set" */
};

struct scenario {
	char *path;			/* as given */
	char *question;			/* the first comment block, without the #s */
	GPtrArray *keys;		/* struct scenario_key, in order; the effective values */

	/* [vm] */
	enum scenario_engine engine;
	u32 sockets, cores, threads;
	enum cpu_order cpu_order;
	u64 memory;			/* bytes; default 1 GiB */
	u32 nodes;			/* 0 = one a socket */
	u64 *node_memory;		/* vm.node_memory = "1GiB,1GiB,0"; NULL = even */
	u32 nr_node_memory;
	u32 *distance;			/* NULL = default */
	u32 nr_distance;
	enum scenario_apic apic;
	char *cpu_model;		/* "faultbed-v1" (default) or "host" */
	char *cost_model;		/* a name; a file's path if it has a slash; "none"; NULL = auto */
	char *pin;			/* vm.pin = none (default) | auto | a CPU list, one for each vCPU, "0,2,4-7" */
	/* [guest] */
	char *kernel, *initrd;		/* paths relative to the scenario's folder; NULL = the project's own build */
	bool disk_on;			/* guest.disk is not none */
	char *disk;			/* its image; NULL with disk_on = the project's own */
	bool disk_read_only;		/* guest.disk_mode = ro */
	char *append;			/* more kernel command line */
	GPtrArray *add;			/* guest.add = PATH[:GUESTPATH], ... */
	GPtrArray *knob_name, *knob_value;	/* knob.NAME = VALUE */
	u32 pv_features;		/* guest.pv = tlb_flush, send_ipi, async_pf, steal_time, pv_eoi: KVM_FEATURE_* bits */
	/* [run] */
	char *command;			/* for /bin/sh in the guest */
	u64 warmup_ns, duration_ns;	/* defaults 50 ms, 200 ms */
	u32 repeat;			/* default 1 */
	u64 seed;			/* default 1 */
	u64 timeout_ns;			/* run.timeout: of the whole VM, boot included; default 300 s */
	u64 host_timeout_ns;		/* run.host_timeout: of the host's time, whatever the guest's is; 0 = auto */
	u64 boot_timeout_ns;		/* run.boot_timeout: until init is ready; default = timeout */
	/* [inject]: keys kept as text; inject_add() reads them */
	GPtrArray *inject_key, *inject_value;
	/* [vary]: axes in file order */
	GPtrArray *vary_key;		/* "guest.knob.fault_path" */
	GPtrArray *vary_values;		/* GPtrArray of char * each */
};

/*
 * Read and check `path` with overrides ("section.key=value", in order; may be
 * NULL). Every problem is reported with fb_err() as FILE:LINE and what would be
 * right, all of them, not only the first; then NULL. The nearest valid name is given for
 * an unknown key, section, value or unit. [inject] keys are checked by inject_add() and
 * topology by topology_init() on a scratch object, for every cell of [vary].
 */
struct scenario *scenario_load(const char *path, const char *const *set, u32 nr_set);
/*
 * The same without a file: `set` is all of it, origin[i] stands in messages about set[i],
 * and `name` in those about no key of it (it becomes `path`).
 */
struct scenario *scenario_of(const char *name, const char *const *set, const char *const *origin,
			     u32 nr_set);
void scenario_free(struct scenario *s);

/* Number of cells (product of the axes; 1 without [vary]). */
u32 scenario_cells(const struct scenario *s);
/* The overrides of cell i as a NULL-terminated vector "section.key=value"; g_strfreev(). */
char **scenario_cell(const struct scenario *s, u32 i);
/* Where a key of the effective scenario came from ("FILE:12"), or "default". */
const char *scenario_origin(const struct scenario *s, const char *section, const char *key);
/*
 * How much of the host's time a cell may take in all, ns; 0 = run.timeout is enough, since it
 * is of the host's time itself.
 */
u64 scenario_host_limit(const struct scenario *s, bool virtual_time);
/* Does [inject] ask for something that takes the VMM's own local APIC, as all but blk.* does? */
bool scenario_needs_own_apic(const struct scenario *s);
/* topology parameters for topology_init(). */
void scenario_topology(const struct scenario *s, struct topology_params *params);
/* The effective scenario, every key with its value (defaults too), in a fixed order, as "section.key" / value pairs. */
GPtrArray *scenario_effective(const struct scenario *s);

/* Units: "2GiB", "512MiB"; "50ms", "3us". -EINVAL with *err (g_free()). */
int scenario_parse_size(const char *text, u64 *bytes, char **err);
int scenario_parse_time(const char *text, u64 *ns, char **err);

#endif
