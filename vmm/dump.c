// SPDX-License-Identifier: GPL-2.0-only
/* The state of a VM's vCPUs, for a person. */
#include "dump.h"

#include "base/log.h"
#include "core/engine.h"
#include "machine/lapic.h"

static void dump_counters(const struct vcpu *vcpu)
{
	GString *text = g_string_new(NULL);
	u32 i;

	for (i = 0; i < NR_COUNTERS; i++)
		if (counter_read(&vcpu->counters, i))
			g_string_append_printf(text, " %s=%llu", counter_desc[i].name,
					       (unsigned long long)counter_read(&vcpu->counters, i));
	fb_info("  pending vector %d%s", vcpu->lapic ? lapic_pending(vcpu->lapic) : -1, text->str);
	g_string_free(text, TRUE);
}

void dump_vcpus(struct vm *vm)
{
	static const char *const mp_name[] = { "runnable", "halted", "waiting for SIPI" };
	struct x86_state *st = g_new0(struct x86_state, 1);
	u32 i;

	for (i = 0; i < vm->topo.nr_cpus; i++) {
		struct vcpu *vcpu = vm->vcpu[i];

		if (vm->engine->get_state(vcpu, st))
			break;
		fb_info("vcpu %u: %s rip 0x%llx cs 0x%x rsp 0x%llx rflags 0x%llx cr0 0x%llx cr3 0x%llx cr4 0x%llx", i,
			mp_name[vcpu->mp_state], (unsigned long long)st->rip, st->cs.selector,
			(unsigned long long)st->gpr[X86_RSP], (unsigned long long)st->rflags,
			(unsigned long long)st->cr0, (unsigned long long)st->cr3, (unsigned long long)st->cr4);
		dump_counters(vcpu);
	}
	g_free(st);
}
