// SPDX-License-Identifier: GPL-2.0-only
/* What QEMU has to know of a guest, and what it cannot do for it. For the VMM and the front end. */
#include <string.h>

#include "base/log.h"
#include "machine/channel-abi.h"
#include "peer.h"

/*
 * As the VMM's own command line. Besides: time under TCG goes by a busy host, which Linux's checks of timer and TSC take for
 * broken hardware; and the channel is not in QEMU's memory map, so it is taken out here.
 */
#define PEER_CMDLINE	VM_CMDLINE " tsc=reliable no_timer_check"

enum status peer_topology(const struct scenario *s, struct topology *topo)
{
	struct topology_params params;
	g_autofree char *err = NULL;

	if (s->cpu_order != CPU_ORDER_SIBLINGS_ADJACENT && s->threads > 1) {
		fb_err("%s: vm.cpu_order = siblings-last: QEMU numbers the threads of a core one after the other; set vm.cpu_order = siblings-adjacent (in all runs that are compared)",
		       scenario_origin(s, "vm", "cpu_order"));
		return STATUS_BAD_INPUT;
	}
	scenario_topology(s, &params);
	if (topology_init(topo, &params, &err) == 0)
		return STATUS_DONE;
	fb_err("%s: %s", scenario_origin(s, "vm", "topology"), err);
	return STATUS_BAD_INPUT;
}

/* What a scenario gives and QEMU has nothing for: reported, and counted in *refused. */
static void refuse(const struct scenario *s, const char *section, const char *key, bool given, const char *engine, const char *why, u32 *refused)
{
	if (!given)
		return;
	fb_err("%s: %s.%s: engine = %s cannot: %s", scenario_origin(s, section, key), section, key, engine, why);
	++*refused;
}

enum status peer_check(const struct scenario *s, const char *engine)
{
	u32 refused = 0;

	for (u32 i = 0; i < s->inject_key->len; i++)
		refuse(s, "inject", s->inject_key->pdata[i], true, engine, "QEMU has no such point, for delays or for counts; kvm and soft have", &refused);
	refuse(s, "vm", "apic", s->apic != SCENARIO_APIC_AUTO, engine, "the local APIC is QEMU's; leave it out", &refused);
	refuse(s, "vm", "cpu_model", strcmp(scenario_origin(s, "vm", "cpu_model"), "default") != 0, engine,
	       "the guest's CPU is the best that QEMU has here; leave it out", &refused);
	refuse(s, "guest", "pv", s->pv_features != 0, engine, "what is paravirtual is QEMU's choice; leave it out", &refused);
	refuse(s, "guest", "disk", s->disk_on, engine, "it gives the guest no disk that the project's kernel has a driver for; kvm and soft do", &refused);
	return refused ? STATUS_HOST : STATUS_DONE;
}

gpa_t peer_channel(const struct topology *topo)
{
	u64 ram = 0;

	for (u32 i = 0; i < topo->nr_nodes; i++)
		ram += topo->node_memory[i];
	return MIN(ram, PEER_LOW_END) / 2 / FAULTBED_CHANNEL_SIZE * FAULTBED_CHANNEL_SIZE;
}

char *peer_cmdline(const struct scenario *s, const struct topology *topo)
{
	unsigned long long channel = peer_channel(topo);

	return g_strdup_printf(PEER_CMDLINE " faultbed.channel=0x%llx,0x%x memmap=0x%x$0x%llx faultbed.marks=0x%x%s%s", channel,
			       FAULTBED_CHANNEL_SIZE, FAULTBED_CHANNEL_SIZE, channel, PEER_MARKS_PORT, s->append ? " " : "",
			       s->append ? s->append : "");
}
