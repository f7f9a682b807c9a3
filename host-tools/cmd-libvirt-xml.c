// SPDX-License-Identifier: GPL-2.0-only
/* faultbed libvirt-xml: what engine = libvirt would start. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "peer-vm.h"
#include "run-options.h"

/* What XML can say, and libvirt takes. */
static bool can_be_said(const char *option, const char *text, bool is_name)
{
	bool bad = !*text || !g_utf8_validate(text, -1, NULL) || (is_name && strchr(text, '/'));

	for (const char *c = text; *c; c++)
		bad |= g_ascii_iscntrl(*c);
	if (bad)
		fb_err("%s \"%s\": some text without control characters%s", option, text, is_name ? " and slashes" : "");
	return !bad;
}

static int print_domain(struct job *job, const char *name, const char *folder)
{
	const struct cell *cell = job->cells->pdata[0];
	g_autofree char *xml = NULL;
	int status;

	if (job->cells->len > 1) {
		fb_err("%s: %u cells, and a domain is one; choose with --set, such as --set %s=...", job->path, job->cells->len,
		       (char *)job->scenario->vary_key->pdata[0]);
		return STATUS_BAD_INPUT;
	}
	job->engine = ENGINE_LIBVIRT;
	job->peer_kvm = run_kvm_usable();
	job->qemu = front_qemu();
	/* Where it is to run there may be one. */
	job->qemu = job->qemu ? job->qemu : g_strdup("/usr/bin/qemu-system-x86_64");
	status = peer_prepare(job);
	if (status)
		return status;
	xml = peer_domain_xml(job, cell, name, folder);
	if (!xml)
		return STATUS_BAD_INPUT;
	fputs(xml, stdout);
	return fflush(stdout) ? STATUS_BAD_INPUT : STATUS_DONE;
}

int cmd_libvirt_xml(int argc, char **argv)
{
	g_auto(GStrv) sets = NULL, files = NULL;
	g_autofree char *name = NULL, *sockets = NULL, *folder = NULL;
	g_autoptr(GPtrArray) set = g_ptr_array_new();
	const GOptionEntry entries[] = {
		{ "set", 's', 0, G_OPTION_ARG_STRING_ARRAY, &sets, "override a key of the scenario", "SECTION.KEY=VALUE" },
		{ "name", 'n', 0, G_OPTION_ARG_STRING, &name, "the domain's name (faultbed)", "NAME" },
		{ "sockets", 0, 0, G_OPTION_ARG_FILENAME, &sockets, "folder of its three serial ports' sockets (/run/faultbed)", "DIR" },
		{ G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &files, NULL, "SCENARIO" },
		{ 0 }
	};
	g_autoptr(GOptionContext) context = g_option_context_new("- print a scenario's guest as a libvirt domain");
	g_autoptr(GError) err = NULL;
	struct job *job;
	int status;

	g_option_context_add_main_entries(context, entries, NULL);
	if (!g_option_context_parse(context, &argc, &argv, &err)) {
		fb_err("%s (faultbed libvirt-xml --help)", err->message);
		return STATUS_BAD_INPUT;
	}
	if (!files || files[1]) {
		fb_err("faultbed libvirt-xml takes one scenario file (faultbed list names those there are)");
		return STATUS_BAD_INPUT;
	}
	if (!can_be_said("--name", name ? name : "faultbed", true) || !can_be_said("--sockets", sockets ? sockets : "/run/faultbed", false))
		return STATUS_BAD_INPUT;
	for (char **s = sets; s && *s; s++)
		g_ptr_array_add(set, *s);
	/* The engine that is asked for by name decides what is refused. */
	g_ptr_array_add(set, "vm.engine=libvirt");
	job = job_new(files[0], set);
	if (!job)
		return STATUS_BAD_INPUT;
	folder = g_canonicalize_filename(sockets ? sockets : "/run/faultbed", NULL);
	status = print_domain(job, name ? name : "faultbed", folder);
	job_free(job);
	return status;
}
