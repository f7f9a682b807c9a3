/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The front end, build/faultbed: what its commands share. One thread.
 */
#ifndef HOST_TOOLS_FRONT_H
#define HOST_TOOLS_FRONT_H

#include <glib.h>

#include "base/types.h"
#include "status.h"

/* Of two statuses, the one that a caller must hear of first. */
int front_worse(int a, int b);
/* "done", "the guest's command failed", ... */
const char *front_status_text(int status);

/*
 * Where things are: beside the binary, which lies in the build folder of the
 * project's tree, or under FAULTBED_HOME. Each path is made up, not checked;
 * g_free().
 */
char *front_home(void);				/* the tree: scenarios/, images/, host-tools/ */
char *front_build(const char *name);		/* a file of the build folder */
char *front_vmm(void);				/* FAULTBED_VMM, or faultbed-vmm beside us */
char *front_kernel(void);			/* the project's guest kernel */
char *front_initrd(void);			/* and its initramfs */
char *front_disk(void);				/* and the disk that guest.disk = default is */
char *front_appliance(void);
char *front_qemu(void);				/* FAULTBED_QEMU, or found in PATH; NULL if there is none */
/* A path in an option of QEMU's that has parts: a comma inside of a part is doubled. g_free(). */
char *front_qemu_escaped(const char *path);

/* The value of "KEY : VALUE" or "KEY: VALUE" in a file of /proc; "" if it is not there. g_free(). */
char *front_proc_value(const char *path, const char *key);
/* Standard output of a command without its last newline, NULL if it could not be run or failed. */
char *front_output_of(const char *const *argv);
/* SHA-256 of what is in a file, in hex; NULL if it cannot be read. g_free(). */
char *front_file_sum(const char *path);
/* "1,234,567" and the like, g_free(). */
char *front_grouped(double value, int decimals);
/* ns with a unit that suits: "12.3 us", g_free(). */
char *front_duration(double ns);

/* What the program is and was built of, on standard output. The commit of its tree, "" if that was not known. */
void version_print(void);
const char *version_commit(void);

/* The commands; argv[0] is the command's own name. Each returns an exit status. */
int cmd_run(int argc, char **argv);
int cmd_sweep(int argc, char **argv);
int cmd_show(int argc, char **argv);
int cmd_profile(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_bisect_run(int argc, char **argv);	/* a status of git bisect run's */
int cmd_doctor(int argc, char **argv);
int cmd_topology(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_experiment(int argc, char **argv);
int cmd_libvirt_xml(int argc, char **argv);
int cmd_cost_model(int argc, char **argv);
int cmd_kernel(int argc, char **argv);

#endif
