// SPDX-License-Identifier: GPL-2.0-only
/*
 * A cell's guest as a libvirt domain (https://libvirt.org/formatdomain.html): the same machine as peer-qemu.c's, in libvirt's words, and by
 * <qemu:commandline> where it has none.
 */
#include "peer-vm.h"

#include <string.h>

#include "base/log.h"
#include "peer.h"
#include "placement.h"

__attribute__((format(printf, 2, 3))) static void add(GString *xml, const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	/* Names and paths in attributes and text are anybody's. */
	text = g_markup_vprintf_escaped(fmt, ap);
	va_end(ap);
	g_string_append(xml, text);
	g_free(text);
}

static void add_nodes(GString *xml, const struct topology *topo)
{
	g_string_append(xml, "    <numa>\n");
	for (u32 i = 0; i < topo->nr_nodes; i++) {
		g_autofree char *cpus = peer_node_cpus(topo, i, ",");

		add(xml, "      <cell id='%u'", i);
		if (*cpus)
			add(xml, " cpus='%s'", cpus);
		add(xml, " memory='%llu' unit='KiB' memAccess='shared'>\n", topo->node_memory[i] / KIB);
		g_string_append(xml, "        <distances>\n");
		for (u32 j = 0; j < topo->nr_nodes; j++)
			add(xml, "          <sibling id='%u' value='%u'/>\n", j, topo->distance[i][j]);
		g_string_append(xml, "        </distances>\n      </cell>\n");
	}
	g_string_append(xml, "    </numa>\n");
}

static void add_cpu(GString *xml, const struct job *job, const struct topology *topo)
{
	add(xml, "  <cpu mode='%s' check='none' migratable='off'>\n", job->peer_kvm ? "host-passthrough" : "maximum");
	add(xml, "    <topology sockets='%u' dies='1' cores='%u' threads='%u'/>\n", topo->sockets, topo->cores, topo->threads);
	add_nodes(xml, topo);
	g_string_append(xml, "  </cpu>\n");
}

static void add_pins(GString *xml, const int *pin, const struct topology *topo)
{
	if (!pin)
		return;
	g_string_append(xml, "  <cputune>\n");
	for (u32 i = 0; i < topo->nr_cpus; i++)
		add(xml, "    <vcpupin vcpu='%u' cpuset='%d'/>\n", i, pin[i]);
	g_string_append(xml, "  </cputune>\n");
}

static void add_serial(GString *xml, const char *folder, const char *name, u32 port)
{
	add(xml, "    <serial type='unix'>\n      <source mode='bind' path='%s/%s'/>\n      <target type='isa-serial' port='%u'/>\n    </serial>\n",
	    folder, name, port);
}

static void add_arg(GString *xml, const char *value)
{
	add(xml, "    <qemu:arg value='%s'/>\n", value);
}

/* What libvirt has no word for. */
static void add_arguments(GString *xml, const struct job *job)
{
	g_autofree char *machine = g_strdup_printf("max-ram-below-4g=%llu", PEER_LOW_END);

	g_string_append(xml, "  <qemu:commandline>\n");
	add_arg(xml, "-device");
	add_arg(xml, "isa-debug-exit,iobase=0xf4,iosize=1");
	add_arg(xml, "-machine");
	add_arg(xml, machine);
	if (!job->peer_kvm) {
		add_arg(xml, "-global");
		add_arg(xml, "max-x86_64-cpu.vendor=GenuineIntel");
	}
	g_string_append(xml, "  </qemu:commandline>\n");
}

static void add_devices(GString *xml, const struct job *job, const char *folder)
{
	g_string_append(xml, "  <devices>\n");
	add(xml, "    <emulator>%s</emulator>\n", job->qemu);
	add_serial(xml, folder, PEER_CONSOLE, 0);
	add_serial(xml, folder, PEER_CONTROL, 1);
	add_serial(xml, folder, PEER_MARKS, 2);
	g_string_append(xml, "    <controller type='usb' model='none'/>\n    <memballoon model='none'/>\n  </devices>\n");
}

char *peer_domain_xml(const struct job *job, const struct cell *cell, const char *name, const char *folder)
{
	g_autofree struct topology *topo = g_new0(struct topology, 1);
	g_autofree char *cmdline = NULL, *kernel = g_canonicalize_filename(cell->kernel, NULL),
			*initrd = g_canonicalize_filename(cell->initrd, NULL);
	g_autofree int *pin = NULL;
	GString *xml;
	u64 ram = 0;

	if (peer_topology(cell->scenario, topo) != STATUS_DONE || placement_pins(cell->scenario, topo, &pin) != STATUS_DONE)
		return NULL;
	cmdline = peer_cmdline(cell->scenario, topo);
	for (u32 i = 0; i < topo->nr_nodes; i++)
		ram += topo->node_memory[i];
	xml = g_string_new(NULL);
	add(xml, "<domain type='%s' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>\n", job->peer_kvm ? "kvm" : "qemu");
	add(xml, "  <name>%s</name>\n  <memory unit='KiB'>%llu</memory>\n", name, ram / KIB);
	g_string_append(xml, "  <memoryBacking>\n    <source type='file'/>\n    <access mode='shared'/>\n    <allocation mode='ondemand'/>\n  </memoryBacking>\n");
	add(xml, "  <vcpu placement='static'>%u</vcpu>\n", topo->nr_cpus);
	add_pins(xml, pin, topo);
	add(xml, "  <os>\n    <type arch='x86_64' machine='pc'>hvm</type>\n    <kernel>%s</kernel>\n    <initrd>%s</initrd>\n    <cmdline>%s</cmdline>\n  </os>\n",
	    kernel, initrd, cmdline);
	g_string_append(xml, "  <features>\n    <acpi/>\n    <apic/>\n  </features>\n");
	add_cpu(xml, job, topo);
	/* A guest that resets has died. */
	g_string_append(xml, "  <on_poweroff>destroy</on_poweroff>\n  <on_reboot>destroy</on_reboot>\n  <on_crash>destroy</on_crash>\n");
	add_devices(xml, job, folder);
	add_arguments(xml, job);
	g_string_append(xml, "</domain>\n");
	return g_string_free(xml, FALSE);
}
