// SPDX-License-Identifier: GPL-2.0-only
/* faultbed: the front end. Finds the command and hands over. */
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/nearest.h"
#include "front.h"

static const struct {
	const char *name, *help;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "run",
	  "run a scenario, print its table, write the result", cmd_run },
	{ "sweep", "run a matrix: goes on where it was, here or on many hosts", cmd_sweep },
	{ "show", "print a result again", cmd_show },
	{ "profile", "where the time of a result went", cmd_profile },
	{ "compare", "what changed between results, and is it noise?", cmd_compare },
	{ "report", "results as a page, a text, a table or a list of tests", cmd_report },
	{ "bisect-run", "one step of git bisect run", cmd_bisect_run },
	{ "list", "the scenarios and what each asks", cmd_list },
	{ "experiment", "run published experiments, check what came out", cmd_experiment },
	{ "topology", "draw a topology: CPU numbers, APIC ids, nodes", cmd_topology },
	{ "cost-model", "what things cost on soft: the models, or one in full", cmd_cost_model },
	{ "libvirt-xml", "a scenario's guest as a libvirt domain", cmd_libvirt_xml },
	{ "doctor", "what this host can do, and what would fix the rest", cmd_doctor },
	{ "kernel", "build a guest kernel, or say what one lacks", cmd_kernel },
};

static void usage(FILE *to)
{
	fprintf(to, "usage: faultbed COMMAND ...\n\n");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(to, "  %-11s %s\n", commands[i].name, commands[i].help);
	fprintf(to,
		"\nfaultbed COMMAND --help tells more; faultbed --version the version.\n"
		"Exit status: 0 done, 1 the guest's command failed, 2 bad input, 3 this host cannot\n"
		"do it, 4 internal error, 5 the guest panicked, oopsed or hung.\n");
}

int main(int argc, char **argv)
{
	const char *names[ARRAY_SIZE(commands)];

	setlocale(LC_CTYPE, "");
	if (argc > 1) {
		g_autofree char *name = g_strdup_printf("faultbed %s", argv[1]);

		g_set_prgname(name);
	}
	if (argc < 2) {
		usage(stderr);
		return STATUS_BAD_INPUT;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		usage(stdout);
		return STATUS_DONE;
	}
	if (!strcmp(argv[1], "--version")) {
		version_print();
		return STATUS_DONE;
	}
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		names[i] = commands[i].name;
		if (!strcmp(argv[1], names[i]))
			return commands[i].run(argc - 1, argv + 1);
	}

	const char *near = nearest_name(argv[1], names, ARRAY_SIZE(names));

	fb_err("unknown command \"%s\"%s%s%s; faultbed --help lists them", argv[1],
	       near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
	return STATUS_BAD_INPUT;
}
