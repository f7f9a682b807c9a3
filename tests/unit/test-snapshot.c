// SPDX-License-Identifier: GPL-2.0-only
/* Snapshot files: whole or not used, told apart by their keys; the cache. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rng.h"
#include "fake-engine.h"
#include "machine/machine.h"
#include "snapshot.h"

struct rig {
	struct fake_vm *f;
	struct engine_ops ops;
	u64 vcpu_word[4], vm_word;	/* the "engine's" state */
	char *note;			/* the "session's" */
	struct snapshot_key key;
	struct snapshot_part part;
};

/* Ops have no context of their own: the fake's vCPUs carry the rig. */
static struct rig *rig_of(struct vm *vm)
{
	return vm->vcpu[0]->runner;
}

static int rig_save(struct vcpu *vcpu, GByteArray *out)
{
	g_byte_array_append(out, (u8 *)&rig_of(vcpu->vm)->vcpu_word[vcpu->id], 8);
	return 0;
}

static int rig_restore(struct vcpu *vcpu, const u8 *data, size_t len)
{
	if (len != 8)
		return -EINVAL;
	memcpy(&rig_of(vcpu->vm)->vcpu_word[vcpu->id], data, 8);
	return 0;
}

static int rig_vm_save(struct vm *vm, GByteArray *out)
{
	g_byte_array_append(out, (u8 *)&rig_of(vm)->vm_word, 8);
	return 0;
}

static int rig_vm_restore(struct vm *vm, const u8 *data, size_t len)
{
	if (len != 8)
		return -EINVAL;
	memcpy(&rig_of(vm)->vm_word, data, 8);
	return 0;
}

static void rig_transfer(void *ctx, struct saver *s)
{
	struct rig *r = ctx;

	saver_begin(s, "session", 1);
	saver_text(s, &r->note);
	saver_end(s);
}

static void key_fill(struct snapshot_key *key, const char *kernel)
{
	key->pairs = g_ptr_array_new_with_free_func(g_free);
	g_ptr_array_add(key->pairs, g_strdup("kernel"));
	g_ptr_array_add(key->pairs, g_strdup(kernel));
	memset(key->digest, 'a', 64);
}

static struct rig *rig_new(const char *kernel)
{
	struct rig *r = g_new0(struct rig, 1);
	struct vm *vm;

	r->f = fake_vm_new("2x2x1", APIC_XAPIC);
	vm = &r->f->vm;
	vm->vcpu[0]->runner = r;
	r->ops = *vm->engine;
	r->ops.save = rig_save;
	r->ops.restore = rig_restore;
	r->ops.vm_save = rig_vm_save;
	r->ops.vm_restore = rig_vm_restore;
	vm->engine = &r->ops;
	g_assert_cmpint(machine_init(vm), ==, 0);
	g_assert_cmpint(memory_create(&vm->mem), ==, 0);
	g_assert_cmpint(memory_add(&vm->mem, 0, 4 * MIB, 0), ==, 0);
	key_fill(&r->key, kernel);
	r->part = (struct snapshot_part){ .transfer = rig_transfer, .ctx = r };
	return r;
}

static void rig_free(struct rig *r)
{
	memory_destroy(&r->f->vm.mem);
	machine_destroy(&r->f->vm);
	fake_vm_free(r->f);
	snapshot_key_free(&r->key);
	g_free(r->note);
	g_free(r);
}

static char *folder(void)
{
	char *dir = g_dir_make_tmp("faultbed-test-XXXXXX", NULL);

	g_assert_nonnull(dir);
	return dir;
}

/* The folder and what is in it. */
static void folder_remove(char *dir)
{
	GDir *d = g_dir_open(dir, 0, NULL);
	const char *name;

	while ((name = g_dir_read_name(d))) {
		g_autofree char *path = g_build_filename(dir, name, NULL);

		g_unlink(path);
	}
	g_dir_close(d);
	g_assert_cmpint(g_rmdir(dir), ==, 0);
	g_free(dir);
}

static void write_file(struct rig *r, const char *path)
{
	char *err = NULL;
	GByteArray *state = snapshot_take(&r->f->vm, &r->key, &r->part, &err);
	u64 bytes = 0;

	g_assert_cmpstr(err, ==, NULL);
	g_assert_cmpint(snapshot_write(&r->f->vm, state, path, &bytes, &err), ==, 0);
	g_assert_cmpuint(bytes, >=, PAGE_SIZE);
	g_assert_cmpuint(bytes, <, MIB);
	g_byte_array_unref(state);
}

static struct rig *written(const char *path)
{
	struct rig *r = rig_new("one");

	r->note = g_strdup("init said hello");
	r->vm_word = 0x1234;
	r->vcpu_word[3] = 0x5678;
	r->f->vm.vcpu[2]->mp_state = VCPU_HALTED;
	g_assert_cmpint(memory_write(&r->f->vm.mem, 3 * MIB, "contents", 8), ==, 0);
	write_file(r, path);
	return r;
}

static void test_round_trip(void)
{
	char *dir = folder(), *path = g_build_filename(dir, "snap", NULL), *err = NULL;
	struct rig *a = written(path), *b = rig_new("one");
	struct snapshot snap;
	char buf[9] = "";

	g_assert_cmpint(snapshot_open(&snap, path, &b->key, &b->f->vm, &err), ==, SNAPSHOT_FOUND);
	g_assert_true(snapshot_load(&snap, &b->f->vm, &b->key, &b->part, &err));
	g_assert_cmpstr(err, ==, NULL);
	snapshot_close(&snap);
	g_assert_cmpstr(b->note, ==, "init said hello");
	g_assert_cmphex(b->vm_word, ==, 0x1234);
	g_assert_cmphex(b->vcpu_word[3], ==, 0x5678);
	g_assert_cmpuint(b->f->vm.vcpu[2]->mp_state, ==, VCPU_HALTED);
	g_assert_cmpint(memory_read(&b->f->vm.mem, 3 * MIB, buf, 8), ==, 0);
	g_assert_cmpstr(buf, ==, "contents");
	/* A later one takes its place; who runs from the old one notices nothing. */
	memory_write(&a->f->vm.mem, 3 * MIB, "overwritten", 11);
	write_file(a, path);
	memory_read(&b->f->vm.mem, 3 * MIB, buf, 8);
	g_assert_cmpstr(buf, ==, "contents");
	rig_free(a);
	rig_free(b);
	g_free(path);
	folder_remove(dir);
}

static enum snapshot_found open_it(struct rig *r, const char *path, const char *what)
{
	struct snapshot snap;
	char *err = NULL;
	enum snapshot_found found = snapshot_open(&snap, path, &r->key, &r->f->vm, &err);

	if (found == SNAPSHOT_FOUND) {
		g_assert_cmpstr(err, ==, NULL);
		snapshot_close(&snap);
	} else {
		g_assert_nonnull(err);
		g_assert_true(g_str_has_prefix(err, path));
		if (what)
			g_assert_nonnull(strstr(err, what));
		if (found == SNAPSHOT_DAMAGED)
			g_assert_nonnull(strstr(err, "--save-snapshot makes one"));
		g_assert_cmpint(snap.fd, ==, -1);
	}
	g_free(err);
	return found;
}

static void test_told_apart(void)
{
	char *dir = folder(), *path = g_build_filename(dir, "snap", NULL);
	struct rig *a = written(path), *b = rig_new("two");

	g_assert_cmpint(open_it(a, path, NULL), ==, SNAPSHOT_FOUND);
	g_assert_cmpint(open_it(b, path, "kernel is \"one\" there and \"two\" here"), ==, SNAPSHOT_OTHER);
	g_ptr_array_add(a->key.pairs, g_strdup("initrd"));
	g_ptr_array_add(a->key.pairs, g_strdup("none"));
	g_assert_cmpint(open_it(a, path, "another kind of key"), ==, SNAPSHOT_OTHER);
	g_unlink(path);
	g_assert_cmpint(open_it(b, path, "No such file"), ==, SNAPSHOT_MISSING);
	rig_free(a);
	rig_free(b);
	g_free(path);
	folder_remove(dir);
}

/* Cut off at every byte of header and state, and in RAM; each bit of header and state altered. */
static void test_damaged(void)
{
	char *dir = folder(), *path = g_build_filename(dir, "snap", NULL);
	struct rig *a = written(path);
	struct snapshot snap;
	char *err = NULL;
	off_t size, at;
	size_t len;
	struct stat st;
	u8 byte, other;
	int fd;

	g_assert_cmpint(snapshot_open(&snap, path, &a->key, &a->f->vm, &err), ==, SNAPSHOT_FOUND);
	len = 80 + snap.state_len;
	snapshot_close(&snap);
	fd = open(path, O_RDWR | O_CLOEXEC);
	g_assert_cmpint(fstat(fd, &st), ==, 0);
	size = st.st_size;
	for (at = 0; at < (off_t)len; at += at < 400 ? 1 : 97) {
		for (u32 bit = 0; bit < 8; bit++) {
			g_assert_cmpint(pread(fd, &byte, 1, at), ==, 1);
			other = byte ^ (u8)(1u << bit);
			g_assert_cmpint(pwrite(fd, &other, 1, at), ==, 1);
			g_assert_cmpint(open_it(a, path, NULL), ==, SNAPSHOT_DAMAGED);
			g_assert_cmpint(pwrite(fd, &byte, 1, at), ==, 1);
		}
	}
	g_assert_cmpint(open_it(a, path, NULL), ==, SNAPSHOT_FOUND);
	g_assert_cmpint(ftruncate(fd, size + 1), ==, 0);
	g_assert_cmpint(open_it(a, path, "length"), ==, SNAPSHOT_DAMAGED);
	for (at = size - 1; at > (off_t)len; at -= at / 3) {
		g_assert_cmpint(ftruncate(fd, at), ==, 0);
		g_assert_cmpint(open_it(a, path, "length"), ==, SNAPSHOT_DAMAGED);
	}
	for (at = (off_t)len; at >= 0; at -= at > 400 ? 97 : 1) {
		g_assert_cmpint(ftruncate(fd, at), ==, 0);
		g_assert_cmpint(open_it(a, path, NULL), ==, SNAPSHOT_DAMAGED);
	}
	close(fd);
	/* Not a file at all. */
	g_unlink(path);
	g_assert_cmpint(mkfifo(path, 0600), ==, 0);
	g_assert_cmpint(open_it(a, path, "begin"), ==, SNAPSHOT_DAMAGED);
	rig_free(a);
	g_free(path);
	folder_remove(dir);
}

/* A state whose checksum is right and whose contents are not: refused or taken, but no harm done. */
static void test_garbage(void)
{
	struct rig *a = rig_new("one");
	char *err = NULL;
	GByteArray *state = snapshot_take(&a->f->vm, &a->key, &a->part, &err);
	u32 refused = 0;
	struct rng rng;

	rng_seed(&rng, 1, 0);
	for (u32 i = 0; i < 300; i++) {
		struct rig *b = rig_new("one");
		size_t at = rng_next(&rng) % state->len;
		u8 was = state->data[at];

		state->data[at] ^= (u8)(1 + rng_next(&rng) % 255);
		if (!snapshot_put(&b->f->vm, &b->key, &b->part, "FILE", state->data, state->len, &err)) {
			g_assert_true(g_str_has_prefix(err, "FILE: section "));
			refused++;
		}
		g_clear_pointer(&err, g_free);
		state->data[at] = was;
		rig_free(b);
	}
	g_assert_cmpuint(refused, >, 5);
	g_byte_array_unref(state);
	rig_free(a);
}

static void test_unwritable(void)
{
	struct rig *a = rig_new("one");
	char *err = NULL;
	GByteArray *state = snapshot_take(&a->f->vm, &a->key, &a->part, &err);
	u64 bytes;

	g_assert_cmpint(snapshot_write(&a->f->vm, state, "/nonexistent/folder/snap", &bytes, &err), ==, -ENOENT);
	g_assert_nonnull(strstr(err, "/nonexistent/folder/snap: the snapshot cannot be written"));
	g_free(err);
	g_byte_array_unref(state);
	rig_free(a);
}

static void test_lock(void)
{
	char *dir = folder();
	char one[65], two[65];
	int a, b, c;

	memset(one, '1', 64);
	memset(two, '2', 64);
	one[64] = two[64] = 0;
	a = snapshot_lock(dir, one);
	g_assert_cmpint(a, >=, 0);
	b = snapshot_lock(dir, two);
	g_assert_cmpint(b, >=, 0);
	g_assert_cmpint(snapshot_lock(dir, one), ==, -EAGAIN);
	g_assert_cmpint(snapshot_lock(dir, two), ==, -EAGAIN);
	snapshot_unlock(a);
	c = snapshot_lock(dir, one);
	g_assert_cmpint(c, >=, 0);
	g_assert_cmpint(snapshot_lock(dir, two), ==, -EAGAIN);
	snapshot_unlock(b);
	snapshot_unlock(c);
	folder_remove(dir);
}

static char *cached(const char *dir, char digit, time_t age)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = time(NULL) - age } };
	char name[65] = "", *path;
	u8 *data = g_malloc(100 * KIB);

	memset(name, digit, 64);
	path = g_build_filename(dir, name, NULL);
	memset(data, 1, 100 * KIB);
	g_assert_true(g_file_set_contents(path, (char *)data, 100 * KIB, NULL));
	g_assert_cmpint(utimensat(AT_FDCWD, path, times, 0), ==, 0);
	g_free(data);
	return path;
}

static bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

static void test_trim(void)
{
	char *dir = folder();
	g_autofree char *a = cached(dir, 'a', 10), *b = cached(dir, 'b', 30), *c = cached(dir, 'c', 20),
			*d = cached(dir, 'd', 40), *left = g_build_filename(dir, SNAPSHOT_NEW "x", NULL),
			*fresh = g_build_filename(dir, SNAPSHOT_NEW "y", NULL),
			*foreign = g_build_filename(dir, "somebody's", NULL);
	struct timespec times[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };

	g_assert_true(g_file_set_contents(left, "x", 1, NULL));
	g_assert_cmpint(utimensat(AT_FDCWD, left, times, 0), ==, 0);
	g_assert_true(g_file_set_contents(fresh, "x", 1, NULL));
	g_assert_true(g_file_set_contents(foreign, "x", 1, NULL));
	snapshot_trim(dir, NULL, GIB);
	g_assert_true(exists(a) && exists(b) && exists(c) && exists(d));
	/* What a dead writer left goes; what one writes now, and what is not ours, stays. */
	g_assert_true(!exists(left) && exists(fresh) && exists(foreign));
	/* The oldest first, but not the one that has just been made. */
	snapshot_trim(dir, d, 250 * KIB);
	g_assert_true(exists(a) && !exists(b) && !exists(c) && exists(d));
	snapshot_trim(dir, NULL, 0);
	g_assert_true(!exists(a) && !exists(d) && exists(foreign));
	snapshot_trim("/nonexistent", NULL, 0);
	folder_remove(dir);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/snapshot/round-trip", test_round_trip);
	g_test_add_func("/snapshot/told-apart", test_told_apart);
	g_test_add_func("/snapshot/damaged", test_damaged);
	g_test_add_func("/snapshot/garbage", test_garbage);
	g_test_add_func("/snapshot/unwritable", test_unwritable);
	g_test_add_func("/snapshot/lock", test_lock);
	g_test_add_func("/snapshot/trim", test_trim);
	return g_test_run();
}
