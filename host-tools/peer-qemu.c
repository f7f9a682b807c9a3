// SPDX-License-Identifier: GPL-2.0-only
/*
 * engine = qemu: QEMU as a child of ours, told what to do by QMP. Guest RAM is in memfds that we hold and QEMU and the VMM open by
 * /proc, so that nothing of it is left behind by anybody's death; and QEMU dies with us.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "peer-vm.h"
#include "placement.h"
#include "qmp.h"
#include "summary.h"
#include "peer.h"

#define START_LIMIT_US	(60 * G_USEC_PER_SEC)
#define START_POLL_US	20000
/* For a QEMU whose guest has left, or that was asked to quit. */
#define END_LIMIT_US	(20 * G_USEC_PER_SEC)

struct qemu {
	struct peer_vm peer;
	struct child child;
	struct qmp qmp;
	char **argv;
	GArray *memfd;		/* int, a node each that has memory */
	char *last;		/* of standard error */
};

/* --- the command line --- */

static void add(GPtrArray *argv, const char *option, char *value)
{
	g_ptr_array_add(argv, g_strdup(option));
	if (value)
		g_ptr_array_add(argv, value);
}

static void add_serial(GPtrArray *argv, const char *folder, const char *name)
{
	g_autofree char *escaped = front_qemu_escaped(folder);

	add(argv, "-chardev", g_strdup_printf("socket,id=%s,path=%s/%s,server=on,wait=off", name, escaped, name));
	add(argv, "-serial", g_strdup_printf("chardev:%s", name));
}

static void add_nodes(GPtrArray *argv, const struct topology *topo, const GPtrArray *ram)
{
	for (u32 i = 0, file = 0; i < topo->nr_nodes; i++) {
		g_autofree char *cpus = peer_node_cpus(topo, i, ",cpus=");
		GString *node = g_string_new(NULL);

		g_string_printf(node, "node,nodeid=%u", i);
		if (*cpus)
			g_string_append_printf(node, ",cpus=%s", cpus);
		if (topo->node_memory[i]) {
			add(argv, "-object", g_strdup_printf("memory-backend-file,id=ram%u,size=%" G_GUINT64_FORMAT ",mem-path=%s,share=on,prealloc=off",
							     i, topo->node_memory[i], (char *)ram->pdata[file++]));
			g_string_append_printf(node, ",memdev=ram%u", i);
		}
		add(argv, "-numa", g_string_free(node, FALSE));
	}
	for (u32 i = 0; i < topo->nr_nodes; i++)
		for (u32 j = 0; j < topo->nr_nodes; j++)
			if (i != j)
				add(argv, "-numa", g_strdup_printf("dist,src=%u,dst=%u,val=%u", i, j, topo->distance[i][j]));
}

static char **qemu_argv(const struct job *job, const struct cell *cell, const struct topology *topo, const struct peer_vm *p)
{
	g_autofree char *escaped = front_qemu_escaped(p->folder);
	GPtrArray *argv = g_ptr_array_new();
	u64 ram = 0;

	for (u32 i = 0; i < topo->nr_nodes; i++)
		ram += topo->node_memory[i];
	g_ptr_array_add(argv, g_strdup(job->qemu));
	add(argv, "-nodefaults", NULL);
	add(argv, "-no-user-config", NULL);
	add(argv, "-M", g_strdup_printf("pc,max-ram-below-4g=%llu", PEER_LOW_END));
	add(argv, "-accel", g_strdup(job->peer_kvm ? "kvm" : "tcg"));
	/* All that the accelerator can. TCG's own maker is AMD, of whose CPUs Linux then does not see which threads share a cache. */
	add(argv, "-cpu", g_strdup(job->peer_kvm ? "host,migratable=off" : "max,vendor=GenuineIntel"));
	add(argv, "-smp", g_strdup_printf("%u,sockets=%u,cores=%u,threads=%u", topo->nr_cpus, topo->sockets, topo->cores, topo->threads));
	add(argv, "-m", g_strdup_printf("size=%lluk", ram / KIB));
	add_nodes(argv, topo, p->ram);
	add(argv, "-kernel", g_strdup(cell->kernel));
	add(argv, "-initrd", g_strdup(cell->initrd));
	add(argv, "-append", peer_cmdline(cell->scenario, topo));
	add_serial(argv, p->folder, PEER_CONSOLE);
	add_serial(argv, p->folder, PEER_CONTROL);
	add_serial(argv, p->folder, PEER_MARKS);
	add(argv, "-device", g_strdup("isa-debug-exit,iobase=0xf4,iosize=1"));
	add(argv, "-chardev", g_strdup_printf("socket,id=qmp,path=%s/qmp,server=on,wait=off", escaped));
	add(argv, "-mon", g_strdup("chardev=qmp,mode=control"));
	add(argv, "-display", g_strdup("none"));
	add(argv, "-no-reboot", NULL);
	/* Its CPUs stand still until the VMM has attached. */
	add(argv, "-S", NULL);
	g_ptr_array_add(argv, NULL);
	return (char **)g_ptr_array_free(argv, FALSE);
}

/* --- start --- */

static void on_qemu_line(void *ctx, const char *line)
{
	struct qemu *q = ctx;

	/* Which machines and CPUs are new or old is QEMU's affair. */
	if (strstr(line, "warning:"))
		return;
	g_free(q->last);
	q->last = g_strdup(line);
}

static bool make_ram(struct qemu *q, const struct topology *topo)
{
	for (u32 i = 0; i < topo->nr_nodes; i++) {
		int fd;

		if (!topo->node_memory[i])
			continue;
		fd = memfd_create("faultbed-ram", MFD_CLOEXEC);
		if (fd >= 0)
			g_array_append_val(q->memfd, fd);
		if (fd < 0 || ftruncate(fd, (off_t)topo->node_memory[i])) {
			fb_err("cannot make the file for guest RAM (memfd_create): %s", g_strerror(errno));
			return false;
		}
		g_ptr_array_add(q->peer.ram, g_strdup_printf("/proc/%d/fd/%d", (int)getpid(), fd));
	}
	return true;
}

/* Until its monitor answers. An interrupt ends the wait. */
static bool wait_for_monitor(struct qemu *q)
{
	g_autofree char *path = g_build_filename(q->peer.folder, "qmp", NULL);
	s64 limit = g_get_monotonic_time() + START_LIMIT_US;
	int err = -ENOENT;

	while (!q->child.gone && !q->child.signals->count && g_get_monotonic_time() < limit) {
		/* One that has answered wrongly is leaving; what it says of that is waited for. */
		if (err != -EPROTO)
			err = qmp_open(&q->qmp, path);
		if (err != -ENOENT && err != -ECONNREFUSED && err != -EPROTO)
			break;
		while (g_main_context_iteration(NULL, FALSE))
			;
		g_usleep(START_POLL_US);
	}
	if (!err)
		return true;
	if (!q->child.signals->count)
		fb_err("QEMU did not come up: %s", q->child.gone ? "it left" : err == -EPROTO ? "its monitor does not answer" :
		       err == -ENOENT || err == -ECONNREFUSED ? "its monitor is not there" : g_strerror(-err));
	return false;
}

static JsonArray *array_of(JsonNode *node)
{
	return node && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;
}

/* vm.pin: each vCPU's thread to its host CPU. */
static bool pin_vcpus(struct qemu *q, const struct scenario *s, const struct topology *topo)
{
	g_autoptr(JsonNode) cpus = NULL;
	g_autofree int *pin = NULL;
	JsonArray *list;

	if (placement_pins(s, topo, &pin) != STATUS_DONE)
		return false;
	if (!pin)
		return true;
	cpus = qmp_command(&q->qmp, "query-cpus-fast", NULL);
	list = array_of(cpus);
	for (u32 i = 0; list && i < json_array_get_length(list); i++) {
		JsonObject *cpu = json_array_get_object_element(list, i);
		u32 nr = (u32)summary_number(cpu, "cpu-index", topo->nr_cpus);
		cpu_set_t set;

		if (nr >= topo->nr_cpus)
			continue;
		CPU_ZERO(&set);
		CPU_SET((size_t)pin[nr], &set);
		if (sched_setaffinity((pid_t)summary_number(cpu, "thread-id", 0), sizeof(set), &set))
			fb_warn("vCPU %u could not be pinned to host CPU %d: %s", nr, pin[nr], g_strerror(errno));
	}
	return list != NULL;
}

static char *qemu_end(struct peer_vm *p);

static struct peer_vm *qemu_start(struct job *job, const struct cell *cell)
{
	g_autofree struct topology *topo = g_new0(struct topology, 1);
	struct qemu *q = g_new0(struct qemu, 1);
	g_autofree char *how = NULL;

	q->peer = (struct peer_vm){ .ops = &peer_qemu, .folder = peer_make_folder(), .ram = g_ptr_array_new_with_free_func(g_free) };
	q->qmp.fd = -1;
	q->memfd = g_array_new(FALSE, FALSE, sizeof(int));
	if (q->peer.folder && peer_topology(cell->scenario, topo) == STATUS_DONE && make_ram(q, topo)) {
		q->argv = qemu_argv(job, cell, topo, &q->peer);
		q->child = (struct child){
			.argv = q->argv, .signals = &job->signals, .out_null = true, .err = on_qemu_line, .ctx = q, .outlives = true,
		};
		if (child_start(&q->child) && wait_for_monitor(q) && pin_vcpus(q, cell->scenario, topo))
			return &q->peer;
	}
	how = qemu_end(&q->peer);
	if (how && !job->signals.count)
		fb_err("%s", how);
	return NULL;
}

static bool qemu_resume(struct peer_vm *p)
{
	struct qemu *q = (struct qemu *)p;
	g_autoptr(JsonNode) answer = qmp_command(&q->qmp, "cont", NULL);

	return answer != NULL;
}

/* --- end --- */

/* 1 is what our init's leave makes of it (isa-debug-exit), 0 what a QEMU that was told to quit says. */
static char *how_it_ended(const struct qemu *q)
{
	const char *said = q->last ? q->last : "", *colon = *said ? ": " : "";

	if (!q->child.started)
		return NULL;
	if (q->child.signaled)
		return g_strdup_printf("QEMU was ended by signal %d%s%s", q->child.status, colon, said);
	if (q->qmp.panicked)
		return g_strdup("QEMU: the guest panicked");
	if (q->qmp.ended && strcmp(q->qmp.ended, "host-qmp-quit") && strcmp(q->qmp.ended, "guest-shutdown"))
		return g_strdup_printf("QEMU: shut down, %s%s%s", q->qmp.ended, colon, said);
	if (q->child.status > 1 || *said)
		return g_strdup_printf("QEMU left with status %d%s%s", q->child.status, colon, said);
	return NULL;
}

static char *qemu_end(struct peer_vm *p)
{
	struct qemu *q = (struct qemu *)p;
	s64 limit = g_get_monotonic_time() + END_LIMIT_US;
	char *how;

	if (q->qmp.fd >= 0) {
		g_autoptr(JsonNode) answer = NULL;

		qmp_events(&q->qmp);
		if (!q->child.gone && q->qmp.fd >= 0)
			answer = qmp_command(&q->qmp, "quit", NULL);
	} else if (q->child.started && !q->child.gone) {
		child_stop(&q->child);
	}
	while (q->child.started && !q->child.gone) {
		if (g_get_monotonic_time() > limit)
			child_stop(&q->child);
		child_wait();
	}
	if (q->child.started) {
		qmp_events(&q->qmp);
		child_finish(&q->child);
	}
	how = how_it_ended(q);
	if (p->folder)
		peer_remove_folder(p->folder);
	for (u32 i = 0; i < q->memfd->len; i++)
		close(g_array_index(q->memfd, int, i));
	g_array_unref(q->memfd);
	g_ptr_array_unref(p->ram);
	qmp_close(&q->qmp);
	g_strfreev(q->argv);
	g_free(q->last);
	g_free(p->folder);
	g_free(q);
	return how;
}

const struct peer_ops peer_qemu = {
	.start = qemu_start, .resume = qemu_resume, .end = qemu_end,
};
