// SPDX-License-Identifier: GPL-2.0-only
/* What the engine itself knows of a vCPU, for a person. */
#include "soft/tlb.h"

static void dump_tlbs(GString *text, const struct soft_cpu *c)
{
	static const char *const name[NR_TLBS] = {
		[TLB_D_4K] = "data 4K", [TLB_D_2M] = "data 2M", [TLB_D_1G] = "data 1G",
		[TLB_I_4K] = "code 4K", [TLB_I_2M] = "code 2M", [TLB_L2] = "second level",
	};
	u32 i;

	g_string_append(text, "tlb:");
	for (i = 0; i < NR_TLBS; i++) {
		const struct tlb_array *a = &c->tlb->a[i];

		g_string_append_printf(text, "%s %s %u/%u", i ? "," : "", name[i], a->nr_valid, (a->set_mask + 1) * a->ways);
	}
	for (i = PSC_FIRST; i <= PSC_LAST; i++)
		g_string_append_printf(text, ", %s %u/%u", i == 2 ? "PDEs" : i == 3 ? "PDPTEs" : "PML4Es",
				       c->tlb->psc[i].nr_valid, c->tlb->psc[i].nr);
	g_string_append_c(text, '\n');
}

static void dump_counted(GString *text, const struct soft_cpu *c)
{
	static const char *const name[] = {
#define SOFT_STAT(name, meaning)	#name,
#include "soft/soft-stats.def"
#undef SOFT_STAT
	};
	u32 i;

	g_string_append_printf(text, "counted: instructions=%llu data_accesses=%llu", (unsigned long long)c->insns,
			       (unsigned long long)c->accesses);
	for (i = 0; i < NR_SOFT_STATS; i++)
		if (c->stat[i])
			g_string_append_printf(text, " %s=%llu", name[i], (unsigned long long)c->stat[i]);
	g_string_append_c(text, '\n');
}

char *soft_dump(struct vcpu *vcpu)
{
	const struct soft_cpu *c = soft_cpu(vcpu);
	GString *text = g_string_new(NULL);

	if (c->irq_pending || c->nmi_pending || c->nmi_masked || c->shadow) {
		g_string_append(text, "engine:");
		if (c->irq_pending)
			g_string_append_printf(text, " vector 0x%x on its way;", c->irq_vector);
		if (c->nmi_pending || c->nmi_masked)
			g_string_append_printf(text, " NMI%s%s;", c->nmi_pending ? " on its way" : "",
					       c->nmi_masked ? " masked" : "");
		if (c->shadow)
			g_string_append(text, " in the shadow of STI or MOV SS;");
		text->str[text->len - 1] = '\n';
	}
	dump_tlbs(text, c);
	dump_counted(text, c);
	return g_string_free(text, FALSE);
}
