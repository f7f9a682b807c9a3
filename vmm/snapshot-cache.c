// SPDX-License-Identifier: GPL-2.0-only
/* Which snapshot a VM can start from, and the folder where they are kept. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "machine/machine.h"
#include "snapshot.h"

/* What a writer leaves behind that was killed is removed when it is as old as this, s. */
#define LEFTOVER_AGE	3600
#define LOCK_FILE	".lock"

/* --- the key --- */

static void add(struct snapshot_key *key, const char *name, char *value)
{
	g_ptr_array_add(key->pairs, g_strdup(name));
	g_ptr_array_add(key->pairs, value);
}

char *snapshot_file_digest(const char *path)
{
	GChecksum *sum = g_checksum_new(G_CHECKSUM_SHA256);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	u8 *buf = g_malloc(MIB);
	char *text = NULL;
	ssize_t n = -1;

	while (fd >= 0 && (n = read(fd, buf, MIB)) > 0)
		g_checksum_update(sum, buf, n);
	if (n == 0)
		text = g_strdup(g_checksum_get_string(sum));
	if (fd >= 0)
		close(fd);
	g_free(buf);
	g_checksum_free(sum);
	return text ? text : g_strdup("");
}

/* Every register of every leaf of every vCPU: topology, model, features, caches, clocks. */
static char *cpuid_digest(const struct vm *vm)
{
	GChecksum *sum = g_checksum_new(G_CHECKSUM_SHA256);
	char *text;
	u32 i, j;

	for (i = 0; i < vm->topo.nr_cpus; i++) {
		const struct cpuid_table *t = &vm->vcpu[i]->cpuid;

		g_checksum_update(sum, (const u8 *)&t->arch_capabilities, sizeof(t->arch_capabilities));
		for (j = 0; j < t->nr; j++) {
			const struct cpuid_entry *e = &t->entry[j];
			const u32 word[] = { e->leaf, e->subleaf, e->has_subleaf, e->eax, e->ebx, e->ecx, e->edx };

			g_checksum_update(sum, (const u8 *)word, sizeof(word));
		}
	}
	text = g_strdup(g_checksum_get_string(sum));
	g_checksum_free(sum);
	return text;
}

static char *cost_digest(const struct vm *vm)
{
	char *values = g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const u8 *)vm->cost.v, sizeof(vm->cost.v));
	char *text = g_strdup_printf("%s %s", vm->cost.name, values);

	g_free(values);
	return text;
}

static char *topology_text(const struct topology *t)
{
	GString *text = g_string_new(NULL);
	u32 i, j;

	g_string_printf(text, "%ux%ux%u order %d nodes", t->sockets, t->cores, t->threads, t->order);
	for (i = 0; i < t->nr_nodes; i++)
		g_string_append_printf(text, " %llu", (unsigned long long)t->node_memory[i]);
	g_string_append(text, " distances");
	for (i = 0; i < t->nr_nodes; i++)
		for (j = 0; j < t->nr_nodes; j++)
			g_string_append_printf(text, " %u", t->distance[i][j]);
	return g_string_free(text, FALSE);
}

enum status snapshot_key_init(struct snapshot_key *key, const struct vm *vm, const struct vm_setup *setup)
{
	GChecksum *sum = g_checksum_new(G_CHECKSUM_SHA256);
	char *build = snapshot_file_digest("/proc/self/exe");
	u32 i;

	*key = (struct snapshot_key){ .pairs = g_ptr_array_new_with_free_func(g_free) };
	if (!*build)
		fb_err("this program's own file cannot be read (/proc/self/exe), so its snapshots cannot be told from others'");
	add(key, "build of the VMM", build);
	add(key, "engine", g_strdup(vm->engine->name));
	add(key, "kernel", snapshot_file_digest(setup->kernel));
	add(key, "initrd", setup->initrd ? snapshot_file_digest(setup->initrd) : g_strdup("none"));
	add(key, "disk", setup->disk_digest ? g_strdup_printf("%s %s", vm->machine->blk->disk.read_only ? "ro" : "cow",
							      setup->disk_digest) : g_strdup("none"));
	add(key, "command line", g_strdup(setup->cmdline));
	add(key, "topology and memory", topology_text(&vm->topo));
	add(key, "local APIC", g_strdup_printf("%d", vm->apic));
	add(key, "CPUID", cpuid_digest(vm));
	add(key, "TSC", g_strdup_printf("%llu Hz", (unsigned long long)vm->tsc_hz));
	add(key, "cost model", cost_digest(vm));
	for (i = 0; i < key->pairs->len; i++)
		/* With the NUL, so that two pairs cannot run into each other. */
		g_checksum_update(sum, key->pairs->pdata[i], (gssize)strlen(key->pairs->pdata[i]) + 1);
	g_strlcpy(key->digest, g_checksum_get_string(sum), sizeof(key->digest));
	g_checksum_free(sum);
	if (*build)
		return STATUS_DONE;
	snapshot_key_free(key);
	return STATUS_HOST;
}

void snapshot_key_free(struct snapshot_key *key)
{
	if (key->pairs)
		g_ptr_array_unref(key->pairs);
	*key = (struct snapshot_key){ 0 };
}

/* --- the folder --- */

char *snapshot_dir(char **err)
{
	char *dir = g_build_filename(g_get_user_cache_dir(), "faultbed", "snapshots", NULL);

	*err = NULL;
	if (g_mkdir_with_parents(dir, 0700) == 0)
		return dir;
	*err = g_strdup_printf("%s: %s", dir, g_strerror(errno));
	g_free(dir);
	return NULL;
}

int snapshot_lock(const char *dir, const char *digest)
{
	char *path = g_build_filename(dir, LOCK_FILE, NULL);
	char start[16];
	/* One file for all, which is never removed: a byte of it for each digest, at a place that its digits give. */
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), err;

	g_free(path);
	if (fd < 0)
		return -errno;
	g_strlcpy(start, digest, sizeof(start));
	lock.l_start = (off_t)g_ascii_strtoull(start, NULL, 16);
	if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
		return fd;
	err = errno == EACCES ? -EAGAIN : -errno;
	close(fd);
	return err;
}

void snapshot_unlock(int fd)
{
	if (fd >= 0)
		close(fd);
}

struct cached {
	char *path;
	struct timespec used;
	u64 bytes;
};

static void cached_clear(void *data)
{
	struct cached *c = data;

	g_free(c->path);
}

static int by_use(const void *a, const void *b)
{
	const struct cached *x = a, *y = b;

	if (x->used.tv_sec != y->used.tv_sec)
		return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
	if (x->used.tv_nsec != y->used.tv_nsec)
		return x->used.tv_nsec < y->used.tv_nsec ? -1 : 1;
	return strcmp(x->path, y->path);
}

/* Only what snapshot_write() and nobody else would have put there. */
static bool is_digest(const char *name)
{
	return strlen(name) == 64 && strspn(name, "0123456789abcdef") == 64;
}

void snapshot_trim(const char *dir, const char *keep, u64 max)
{
	GArray *all = g_array_new(FALSE, FALSE, sizeof(struct cached));
	DIR *d = opendir(dir);
	u64 total = 0;
	struct dirent *e;
	guint i;

	g_array_set_clear_func(all, cached_clear);
	while (d && (e = readdir(d))) {
		struct cached c = { .path = g_build_filename(dir, e->d_name, NULL) };
		struct stat st;

		if (lstat(c.path, &st) == 0 && S_ISREG(st.st_mode)) {
			if (g_str_has_prefix(e->d_name, SNAPSHOT_NEW) && time(NULL) - st.st_mtime > LEFTOVER_AGE)
				unlink(c.path);
			if (is_digest(e->d_name)) {
				c.used = st.st_mtim;
				c.bytes = (u64)st.st_blocks * 512;
				total += c.bytes;
				g_array_append_val(all, c);
				continue;
			}
		}
		g_free(c.path);
	}
	if (d)
		closedir(d);
	if (all->len)
		qsort(all->data, all->len, sizeof(struct cached), by_use);
	for (i = 0; i < all->len && total > max; i++) {
		const struct cached *c = &g_array_index(all, struct cached, i);

		/* Whoever runs from it keeps what it has mapped. */
		if (g_strcmp0(c->path, keep) && unlink(c->path) == 0)
			total -= c->bytes;
	}
	g_array_free(all, TRUE);
}
