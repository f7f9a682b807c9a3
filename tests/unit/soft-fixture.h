/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A VM on the soft engine for unit tests, with nothing above the engine: RAM, a
 * topology, a cost model, soft vCPUs made by the engine's own
 * operations. The upcalls of core/engine.h are recordable fakes. One thread only.
 */
#ifndef TESTS_SOFT_FIXTURE_H
#define TESTS_SOFT_FIXTURE_H

#include "core/engine.h"
#include "core/vm.h"

/* What soft_fixture_long() puts into RAM. The rest, above 64 KiB for one, is the test's. */
#define FIXTURE_PML4	0x1000ull
#define FIXTURE_PDPT	0x2000ull
#define FIXTURE_PD	0x3000ull
#define FIXTURE_GDT	0x4000ull
#define FIXTURE_STACK	0x9000ull	/* RSP at first */
#define FIXTURE_CODE	0x10000ull

/* Selectors of its GDT. */
#define FIXTURE_CS	0x10u		/* 64-bit code, DPL 0 */
#define FIXTURE_DS	0x18u		/* data, DPL 0 */
#define FIXTURE_CS32	0x20u		/* 32-bit code, DPL 0 */
#define FIXTURE_USER_DS	0x2bu		/* data, DPL 3, with RPL 3 */
#define FIXTURE_USER_CS	0x33u		/* 64-bit code, DPL 3, with RPL 3 */
#define FIXTURE_TSS	0x38u		/* a descriptor of two slots, zeroes: the test's */

struct soft_fixture {
	struct vm vm;			/* first: the upcalls find the fixture by it */
	struct vcpu *cpu;		/* vm.topo.nr_cpus of them, as in vm.vcpu[] */

	/* Ports: the last access; reads give pio_value. */
	u32 nr_pio;
	u16 pio_port;
	bool pio_write;
	u32 pio_len;
	u64 pio_data;			/* last written */
	u64 pio_value;

	/* MMIO: the last access; bytes live in mmio[], by the low 12 bits of the address. */
	u32 nr_mmio;
	gpa_t mmio_gpa;
	bool mmio_write;
	u32 mmio_len;
	u64 mmio_data;			/* last written */
	u8 mmio[PAGE_SIZE];

	/* MSRs: the last access; reads give msr_value. */
	u32 nr_msr;
	u32 msr;
	bool msr_write;
	u64 msr_data;			/* last written */
	u64 msr_value;
	bool msr_gp;			/* answer with #GP */
	u32 nr_tsc_moves;
	s64 tsc_offset;			/* of the last move */

	/* Second level. */
	u32 nr_ept;
	gpa_t ept_gpa;
	enum ept_cause ept_cause;
	u64 ept_delay;			/* ns, given to every violation */

	u32 nr_exits[NR_COUNTERS];	/* vcpu_count_exit(), by counter */
	u32 nr_turn;
	bool turn_needed;		/* answer of vcpu_turn_needed() */
	u32 nr_cr8_writes;
	u8 cr8;
	u32 nr_eoi;
	u8 eoi_vector;
};

/*
 * A VM with `mem_mib` MiB of RAM at gpa 0 and 1x1xnr_cpus vCPUs in reset state. What
 * the machine starts from may be changed before the first vCPU runs.
 */
struct soft_fixture *soft_fixture_new(u32 mem_mib, u32 nr_cpus);
/* The same with any topology and cost model; each node has `mem_mib`, the one after the other. */
struct soft_fixture *soft_fixture_new_on(u32 mem_mib, const struct topology_params *params,
					 const struct cost_model *model);
/*
 * The default cost model with a [memory]: made-up numbers, each of which tells by itself what it is, no jitter, and
 * caches so small that they are soon full: L1 of 16 sets of 2 ways, L2 of 16 of 4, L3 of 256 of 4.
 */
void soft_fixture_memory(struct cost_model *model);
void soft_fixture_free(struct soft_fixture *f);
/* Host pointer to `len` bytes of RAM at gpa; not NULL. Code that has run already may not be changed by it. */
void *soft_fixture_ram(struct soft_fixture *f, gpa_t gpa, u64 len);
/* Copy bytes into RAM, before they run as code. */
void soft_fixture_load(struct soft_fixture *f, gpa_t gpa, const void *bytes, u64 len);
void soft_fixture_get(struct soft_fixture *f, u32 cpu, struct x86_state *s);
void soft_fixture_set(struct soft_fixture *f, u32 cpu, const struct x86_state *s);
/*
 * Tables and state for 64-bit mode at CPL 0: the first GiB mapped one to one by user-accessible
 * 2 MiB pages, a GDT with the selectors above, SSE on, no IDT, RIP = FIXTURE_CODE. The state
 * is set and given back for changes (s may be NULL).
 */
void soft_fixture_long(struct soft_fixture *f, u32 cpu, struct x86_state *s);
/* Run a vCPU until it stops for another reason than RUN_KICK or its time is `ns`. */
enum run_exit soft_fixture_run(struct soft_fixture *f, u32 cpu, u64 ns);

#endif
