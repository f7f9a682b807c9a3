// SPDX-License-Identifier: GPL-2.0-only
/*
 * engine = libvirt: the guest is a transient domain, which libvirt forgets when it ends, and which it ends when our connection does: so
 * nothing is left to undefine even if we are killed.
 */
#include <libvirt/libvirt.h>
#include <libvirt/libvirt-qemu.h>
#include <libvirt/virterror.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "peer-vm.h"
#include "summary.h"

/* From the guest's last word to libvirt's knowing that it is gone; then it is taken down, which takes libvirt some time at most. */
#define LEAVE_LIMIT_US	(2 * G_USEC_PER_SEC)
#define END_LIMIT_US	(30 * G_USEC_PER_SEC)
#define EVENT_TICK_MS	100

struct libvirt {
	struct peer_vm peer;
	virConnectPtr connection;	/* the job's */
	virDomainPtr domain;
	bool stopped;			/* libvirt has said so */
	int detail;			/* enum virDomainEventStoppedDetailType */
};

/* One a program: a domain lives no longer than the connection that made it. */
static virConnectPtr the_connection;

/* What is worth saying we say. */
static void on_error(void *ctx, virErrorPtr err)
{
}

static void on_tick(int timer, void *ctx)
{
}

/* The guest's RAM and its serial ports are files of the host that it runs on. */
static bool is_remote(const char *uri)
{
	g_autoptr(GUri) parsed = g_uri_parse(uri, G_URI_FLAGS_NON_DNS, NULL);
	const char *host = parsed ? g_uri_get_host(parsed) : NULL;

	return host && *host && strcmp(host, "localhost");
}

static const char *the_uri(const char *given)
{
	given = given && *given ? given : g_getenv("LIBVIRT_DEFAULT_URI");
	return given && *given ? given : geteuid() ? "qemu:///session" : "qemu:///system";
}

static char *versions(virConnectPtr connection)
{
	g_autofree char *uri = NULL;
	unsigned long lib = 0, qemu = 0;

	virConnectGetLibVersion(connection, &lib);
	virConnectGetVersion(connection, &qemu);
	uri = virConnectGetURI(connection);
	return g_strdup_printf("QEMU %lu.%lu.%lu by libvirt %lu.%lu.%lu, %s", qemu / 1000000, qemu / 1000 % 1000, qemu % 1000,
			       lib / 1000000, lib / 1000 % 1000, lib % 1000, uri ? uri : "");
}

bool peer_libvirt_probe(char **says)
{
	const char *uri = the_uri(NULL);
	virConnectPtr connection;
	bool qemu;

	if (is_remote(uri)) {
		*says = g_strdup_printf("%s is another host", uri);
		return false;
	}
	virSetErrorFunc(NULL, on_error);
	/* A user's own daemon is started by whoever connects to it, and a look changes nothing. */
	g_setenv("LIBVIRT_AUTOSTART", "0", TRUE);
	connection = virConnectOpen(uri);
	g_unsetenv("LIBVIRT_AUTOSTART");
	if (!connection) {
		*says = g_strdup_printf("%s: %s", uri, virGetLastErrorMessage());
		return false;
	}
	qemu = !strcmp(virConnectGetType(connection), "QEMU");
	*says = qemu ? versions(connection) : g_strdup_printf("%s: a connection to %s", uri, virConnectGetType(connection));
	virConnectClose(connection);
	return qemu;
}

int peer_libvirt_connect(struct job *job, const char *uri)
{
	uri = the_uri(uri);
	if (is_remote(uri)) {
		fb_err("%s: a guest's RAM and serial ports are files of the host that it runs on, so faultbed has to run there: ssh HOST faultbed run --engine libvirt ...", uri);
		return STATUS_HOST;
	}
	virSetErrorFunc(NULL, on_error);
	virEventRegisterDefaultImpl();
	virEventAddTimeout(EVENT_TICK_MS, on_tick, NULL, NULL);
	the_connection = virConnectOpen(uri);
	if (!the_connection) {
		fb_err("libvirt: %s (is libvirtd or virtqemud running? virsh -c %s version tells; --connect URI names another)",
		       virGetLastErrorMessage(), uri);
		return STATUS_HOST;
	}
	if (strcmp(virConnectGetType(the_connection), "QEMU")) {
		fb_err("libvirt: this is a connection to %s, and it has to be to QEMU: --connect qemu:///system", virConnectGetType(the_connection));
		return STATUS_HOST;
	}
	g_free(job->qemu_version);
	job->qemu_version = versions(the_connection);
	return STATUS_DONE;
}

static int on_lifecycle(virConnectPtr connection, virDomainPtr domain, int event, int detail, void *ctx)
{
	struct libvirt *l = ctx;

	if (event != VIR_DOMAIN_EVENT_STOPPED || !l->domain || strcmp(virDomainGetName(domain), virDomainGetName(l->domain)))
		return 0;
	l->stopped = true;
	l->detail = detail;
	return 0;
}

/* Where libvirt has put a node's RAM. NULL (reported) or g_free(). */
static char *ram_file(struct libvirt *l, u32 node)
{
	g_autofree char *command = g_strdup_printf("{\"execute\":\"qom-get\",\"arguments\":{\"path\":\"/objects/ram-node%u\",\"property\":\"mem-path\"}}", node);
	g_autoptr(JsonNode) answer = NULL;
	char *text = NULL, *path = NULL;

	if (virDomainQemuMonitorCommand(l->domain, command, &text, 0) == 0)
		answer = json_from_string(text, NULL);
	free(text);
	if (answer && JSON_NODE_HOLDS_OBJECT(answer))
		path = g_strdup(summary_string(json_node_get_object(answer), "return", NULL));
	if (!path)
		fb_err("libvirt: node %u's RAM is in no file that could be found: %s", node, virGetLastErrorMessage());
	return path;
}

static bool find_ram(struct libvirt *l, const struct scenario *s)
{
	g_autofree struct topology *topo = g_new0(struct topology, 1);
	struct topology_params params;
	g_autofree char *err = NULL;

	scenario_topology(s, &params);
	if (topology_init(topo, &params, &err))
		return false;
	for (u32 i = 0; i < topo->nr_nodes; i++) {
		char *path = topo->node_memory[i] ? ram_file(l, i) : NULL;

		if (path)
			g_ptr_array_add(l->peer.ram, path);
		else if (topo->node_memory[i])
			return false;
	}
	return true;
}

static char *libvirt_end(struct peer_vm *p);

static struct peer_vm *libvirt_start(struct job *job, const struct cell *cell)
{
	struct libvirt *l = g_new0(struct libvirt, 1);
	g_autofree char *name = g_strdup_printf("faultbed-%d-%u", (int)getpid(), cell->nr), *xml = NULL, *how = NULL;

	l->connection = the_connection;
	l->peer = (struct peer_vm){ .ops = &peer_libvirt, .folder = peer_make_folder(), .ram = g_ptr_array_new_with_free_func(g_free) };
	virConnectDomainEventRegister(l->connection, on_lifecycle, l, NULL);
	if (l->peer.folder)
		xml = peer_domain_xml(job, cell, name, l->peer.folder);
	if (xml)
		l->domain = virDomainCreateXML(l->connection, xml, VIR_DOMAIN_START_PAUSED | VIR_DOMAIN_START_AUTODESTROY | VIR_DOMAIN_START_VALIDATE);
	if (xml && !l->domain)
		fb_err("libvirt: %s", virGetLastErrorMessage());
	if (l->domain && find_ram(l, cell->scenario))
		return &l->peer;
	how = libvirt_end(&l->peer);
	if (how)
		fb_err("%s", how);
	return NULL;
}

static bool libvirt_resume(struct peer_vm *p)
{
	struct libvirt *l = (struct libvirt *)p;

	if (virDomainResume(l->domain) == 0)
		return true;
	fb_err("libvirt: %s", virGetLastErrorMessage());
	return false;
}

/* "destroyed" is our own doing, "shutdown" the guest's leave. */
static char *how_it_ended(const struct libvirt *l, bool destroyed)
{
	static const char *const detail[] = {
		[VIR_DOMAIN_EVENT_STOPPED_CRASHED] = "the guest or QEMU crashed", [VIR_DOMAIN_EVENT_STOPPED_FAILED] = "QEMU failed",
		[VIR_DOMAIN_EVENT_STOPPED_DESTROYED] = "somebody else destroyed the domain",
	};

	if (!l->domain || (l->stopped && l->detail == VIR_DOMAIN_EVENT_STOPPED_SHUTDOWN) || destroyed)
		return NULL;
	if (!l->stopped)
		return g_strdup("libvirt: the daemon does not answer, so how the domain ended is not known");
	return g_strdup_printf("libvirt: %s", l->detail < (int)ARRAY_SIZE(detail) && detail[l->detail] ? detail[l->detail] : "the domain is gone");
}

static char *libvirt_end(struct peer_vm *p)
{
	struct libvirt *l = (struct libvirt *)p;
	s64 start = g_get_monotonic_time();
	bool destroyed = false;
	char *how;

	while (l->domain && !l->stopped && virConnectIsAlive(l->connection) == 1 && g_get_monotonic_time() < start + END_LIMIT_US) {
		if (!destroyed && g_get_monotonic_time() >= start + LEAVE_LIMIT_US)
			destroyed = virDomainDestroy(l->domain) == 0;
		virEventRunDefaultImpl();
	}
	/* Its QEMU does not need a daemon to run on. */
	if (l->domain && !l->stopped && !destroyed)
		fb_warn("libvirt could not be asked to take down the domain %s (%s): if its QEMU still runs, virsh destroy %s once the daemon is back",
			virDomainGetName(l->domain), virConnectIsAlive(l->connection) == 1 ? virGetLastErrorMessage() : "the daemon is gone",
			virDomainGetName(l->domain));
	virConnectDomainEventDeregister(l->connection, on_lifecycle);
	how = how_it_ended(l, destroyed);
	if (l->domain)
		virDomainFree(l->domain);
	if (p->folder)
		peer_remove_folder(p->folder);
	g_ptr_array_unref(p->ram);
	g_free(p->folder);
	g_free(l);
	return how;
}

const struct peer_ops peer_libvirt = {
	.start = libvirt_start, .resume = libvirt_resume, .end = libvirt_end,
};
