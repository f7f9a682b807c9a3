// SPDX-License-Identifier: GPL-2.0-only
#include "core/cost.h"

#include <string.h>

const struct cost_desc cost_desc[NR_COSTS] = {
#define COST(field, kind_, min_, max_, meaning_) \
	[COST_##field] = { .name = #field, .kind = COST_KIND_##kind_, .min = min_, .max = max_, .meaning = meaning_ },
#define MEMORY(field, kind_, min_, max_, meaning_) \
	[COST_##field] = { .name = #field, .memory = true, .kind = COST_KIND_##kind_, .min = min_, .max = max_, \
			   .meaning = meaning_ },
#include "core/cost.def"
#undef COST
};

/* tests/unit/test-cost-file.c holds these against the file, which says where each comes from. */
void cost_default(struct cost_model *model)
{
	static const u64 simple[NR_COSTS] = {
		[COST_clock] = 2800000000ull,
		[COST_cpi] = COST_CYCLE,
		[COST_l1d_4k_entries] = 64,
		[COST_l1d_4k_ways] = 4,
		[COST_l1d_2m_entries] = 32,
		[COST_l1d_2m_ways] = 4,
		[COST_l1d_1g_entries] = 4,
		[COST_l1d_1g_ways] = 4,
		[COST_l1i_4k_entries] = 128,
		[COST_l1i_4k_ways] = 4,
		[COST_l1i_2m_entries] = 8,
		[COST_l1i_2m_ways] = 8,
		[COST_l2_entries] = 512,
		[COST_l2_ways] = 4,
		[COST_pde_cache_entries] = 32,
		[COST_pdpte_cache_entries] = 4,
		[COST_pml4e_cache_entries] = 2,
		[COST_l2_tlb_hit] = 7 * COST_CYCLE,
		[COST_walk_step] = 4 * COST_CYCLE,
		[COST_walk_start] = 30 * COST_CYCLE,
		[COST_exception] = 715 * COST_CYCLE,
		[COST_iret] = 330 * COST_CYCLE,
		[COST_syscall] = 100 * COST_CYCLE,
		[COST_cr3_write] = 200 * COST_CYCLE,
		[COST_invlpg] = 336 * COST_CYCLE,
		[COST_invpcid] = 336 * COST_CYCLE,
		[COST_serialize] = 150 * COST_CYCLE,
		[COST_msr] = 100 * COST_CYCLE,
		[COST_rep_bytes] = COST_CYCLE / 16,
		[COST_io] = 1000,
		[COST_apic] = 50,
		[COST_ipi_self] = 200,
		[COST_ipi_smt] = 1000,
		[COST_ipi_socket] = 1100,
		[COST_ipi_remote] = 1300,
		[COST_ept_violation] = 1500,
		[COST_hlt_wake] = 1000,
		[COST_quantum] = 1000,
	};

	memset(model, 0, sizeof(*model));
	strcpy(model->name, "simple");
	memcpy(model->v, simple, sizeof(simple));
	memcpy(model->low, simple, sizeof(simple));
	memcpy(model->high, simple, sizeof(simple));
}
