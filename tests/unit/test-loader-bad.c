// SPDX-License-Identifier: GPL-2.0-only
/*
 * Malformed, truncated, huge and mutated kernel images: each is refused with one
 * message, and nothing is written outside the room for a kernel.
 */
#define _GNU_SOURCE
#include <asm/bootparam.h>
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "images.h"

struct bad {
	const char *name, *word;
	int error;
	void (*make)(struct file *f, u8 *img);
};

static void bad_empty(struct file *f, u8 *img) { file_make(f, img, 0); }
static void bad_short(struct file *f, u8 *img) { make_bzimage(img); file_make(f, img, 0x240); }
static void bad_truncated(struct file *f, u8 *img) { file_make(f, img, make_bzimage(img) - 64); }
static void bad_setup_only(struct file *f, u8 *img) { make_bzimage(img); file_make(f, img, SETUP_BYTES); }
static void bad_garbage(struct file *f, u8 *img) { memset(img, 0x5c, 4096); file_make(f, img, 4096); }
static void bad_gzip(struct file *f, u8 *img) { memcpy(img, "\x1f\x8b\x08", 3); file_make(f, img, 4096); }
static void bad_script(struct file *f, u8 *img) { file_make(f, "#!/bin/sh\n", 10); }
static void bad_cpio(struct file *f, u8 *img) { file_make(f, "070701000000", 12); }

static void bad_header(struct file *f, u8 *img, void (*change)(struct setup_header *h))
{
	u32 len = make_bzimage(img);

	change((void *)(img + 0x1f1));
	file_make(f, img, len);
}

static void old_protocol(struct setup_header *h) { h->version = 0x20a; }
static void no_64(struct setup_header *h) { h->xloadflags = 0; }
static void loaded_low(struct setup_header *h) { h->loadflags = 0; }
static void huge_init(struct setup_header *h) { h->init_size = 0xffffffff; }
static void high_pref(struct setup_header *h) { h->pref_address = UINT64_MAX & ~(PAGE_SIZE - 1); }
static void low_pref(struct setup_header *h) { h->pref_address = 0x8000; }
static void bad_old(struct file *f, u8 *img) { bad_header(f, img, old_protocol); }
static void bad_32bit(struct file *f, u8 *img) { bad_header(f, img, no_64); }
static void bad_zimage(struct file *f, u8 *img) { bad_header(f, img, loaded_low); }
static void bad_init_size(struct file *f, u8 *img) { bad_header(f, img, huge_init); }
static void bad_pref_high(struct file *f, u8 *img) { bad_header(f, img, high_pref); }
static void bad_pref_low(struct file *f, u8 *img) { bad_header(f, img, low_pref); }

/* A sparse file of a terabyte with a sound header: nothing of it may be read into memory. */
static void bad_huge(struct file *f, u8 *img)
{
	file_make(f, img, make_bzimage(img));
	g_assert_cmpint(ftruncate(f->fd, (off_t)1 << 40), ==, 0);
}

static void bad_elf(struct file *f, u8 *img, u32 off, u64 value, u32 bytes)
{
	u32 len = make_elf(img);

	put(img + off, value, bytes);
	file_make(f, img, len);
}

#define EHDR(member)	((u32)offsetof(Elf64_Ehdr, member))
#define PHDR(member)	((u32)(sizeof(Elf64_Ehdr) + offsetof(Elf64_Phdr, member)))

static void bad_elf_arch(struct file *f, u8 *img) { bad_elf(f, img, EHDR(e_machine), EM_AARCH64, 2); }
static void bad_elf_object(struct file *f, u8 *img) { bad_elf(f, img, EHDR(e_type), ET_REL, 2); }
static void bad_elf_class(struct file *f, u8 *img) { bad_elf(f, img, EI_CLASS, 7, 1); }
static void bad_elf_phoff(struct file *f, u8 *img) { bad_elf(f, img, EHDR(e_phoff), UINT64_MAX - 8, 8); }
static void bad_elf_phnum(struct file *f, u8 *img) { bad_elf(f, img, EHDR(e_phnum), 0, 2); }
static void bad_elf_entry(struct file *f, u8 *img) { bad_elf(f, img, EHDR(e_entry), 0x1234, 8); }
static void bad_elf_paddr(struct file *f, u8 *img) { bad_elf(f, img, PHDR(p_paddr), UINT64_MAX - 0x800, 8); }
static void bad_elf_low(struct file *f, u8 *img) { bad_elf(f, img, PHDR(p_paddr), LAYOUT_BOOT_PARAMS, 8); }
static void bad_elf_memsz(struct file *f, u8 *img) { bad_elf(f, img, PHDR(p_memsz), UINT64_MAX - 0x800, 8); }
static void bad_elf_shrunk(struct file *f, u8 *img) { bad_elf(f, img, PHDR(p_memsz), 0x10, 8); }
static void bad_elf_filesz(struct file *f, u8 *img) { bad_elf(f, img, PHDR(p_filesz), 0x100000, 8); }
static void bad_elf_offset(struct file *f, u8 *img) { bad_elf(f, img, PHDR(p_offset), UINT64_MAX - 0x800, 8); }
static void bad_elf_interp(struct file *f, u8 *img) { bad_elf(f, img, PHDR(p_type), PT_INTERP, 4); }
static void bad_elf_short(struct file *f, u8 *img) { make_elf(img); file_make(f, img, 40); }
static void bad_elf_cut(struct file *f, u8 *img) { make_elf(img); file_make(f, img, 0x2100); }

static void bad_elf32(struct file *f, u8 *img)
{
	u32 len = make_multiboot(img, 0);

	put(img + 0x1000, 0, 4);	/* no Multiboot header any more */
	file_make(f, img, len);
}

static void bad_mb_video(struct file *f, u8 *img) { file_make(f, img, make_multiboot(img, 4)); }
static void bad_mb_flags(struct file *f, u8 *img) { file_make(f, img, make_multiboot(img, 0x80)); }

static void bad_mb_raw(struct file *f, u8 *img, u32 off, u32 value)
{
	u32 len = make_raw_multiboot(img);

	put(img + off, value, 4);
	file_make(f, img, len);
}

static void bad_mb_header(struct file *f, u8 *img) { bad_mb_raw(f, img, 0x10c, 0x300200); }
static void bad_mb_end(struct file *f, u8 *img) { bad_mb_raw(f, img, 0x114, 0x301001); }
static void bad_mb_bss(struct file *f, u8 *img) { bad_mb_raw(f, img, 0x118, 0x300100); }
static void bad_mb_bss_huge(struct file *f, u8 *img) { bad_mb_raw(f, img, 0x118, 0xffffffff); }
static void bad_mb_entry(struct file *f, u8 *img) { bad_mb_raw(f, img, 0x11c, 0x302000); }

static const struct bad bad[] = {
	{ "empty", "*error: *empty*", -ENOEXEC, bad_empty },
	{ "short", "*error: *cut short*", -ENOEXEC, bad_short },
	{ "truncated", "*error: *cut short*9216*", -ENOEXEC, bad_truncated },
	{ "setup-only", "*error: *cut short*", -ENOEXEC, bad_setup_only },
	{ "garbage", "*error: *not a kernel*bzImage*", -ENOEXEC, bad_garbage },
	{ "gzip", "*error: *gzip*", -ENOEXEC, bad_gzip },
	{ "script", "*error: *script*", -ENOEXEC, bad_script },
	{ "cpio", "*error: *initrd*", -ENOEXEC, bad_cpio },
	{ "old", "*error: *2.10*2.12*", -ENOEXEC, bad_old },
	{ "32bit", "*error: *32-bit*x86-64*", -ENOEXEC, bad_32bit },
	{ "zimage", "*error: *bzImage*", -ENOEXEC, bad_zimage },
	{ "init-size", "*error: *more memory*", -EFBIG, bad_init_size },
	{ "pref-high", "*error: *more memory*", -EFBIG, bad_pref_high },
	{ "pref-low", "*error: *1 MiB*", -ENOEXEC, bad_pref_low },
	{ "huge", "*error: *more memory*", -EFBIG, bad_huge },
	{ "elf-arch", "*error: *architecture*", -ENOEXEC, bad_elf_arch },
	{ "elf-object", "*error: *object*", -ENOEXEC, bad_elf_object },
	{ "elf-class", "*error: *class*", -ENOEXEC, bad_elf_class },
	{ "elf-phoff", "*error: *program headers*", -ENOEXEC, bad_elf_phoff },
	{ "elf-phnum", "*error: *program headers*", -ENOEXEC, bad_elf_phnum },
	{ "elf-entry", "*error: *entry*", -ENOEXEC, bad_elf_entry },
	{ "elf-paddr", "*error: *room*", -EFBIG, bad_elf_paddr },
	{ "elf-low", "*error: *room*", -EFBIG, bad_elf_low },
	{ "elf-memsz", "*error: *room*", -EFBIG, bad_elf_memsz },
	{ "elf-shrunk", "*error: *segment 0*", -ENOEXEC, bad_elf_shrunk },
	{ "elf-filesz", "*error: *segment 0*", -ENOEXEC, bad_elf_filesz },
	{ "elf-offset", "*error: *segment 0*", -ENOEXEC, bad_elf_offset },
	{ "elf-interp", "*error: *program*", -ENOEXEC, bad_elf_interp },
	{ "elf-short", "*error: *cut short*", -ENOEXEC, bad_elf_short },
	{ "elf-cut", "*error: *cut short*segment 1*", -ENOEXEC, bad_elf_cut },
	{ "elf32", "*error: *Multiboot*", -ENOEXEC, bad_elf32 },
	{ "mb-video", "*error: *video*", -ENOEXEC, bad_mb_video },
	{ "mb-flags", "*error: *unknown features*", -ENOEXEC, bad_mb_flags },
	{ "mb-header", "*error: *contradict*", -ENOEXEC, bad_mb_header },
	{ "mb-end", "*error: *contradict*", -ENOEXEC, bad_mb_end },
	{ "mb-bss", "*error: *contradict*", -ENOEXEC, bad_mb_bss },
	{ "mb-bss-huge", "*error: *room*", -EFBIG, bad_mb_bss_huge },
	{ "mb-entry", "*error: *contradict*", -ENOEXEC, bad_mb_entry },
};

static void test_bad(gconstpointer data)
{
	const struct bad *b = data;
	u8 *img = g_malloc0(IMAGE_BYTES);
	struct vm *vm = make_vm();
	struct boot_result res;
	struct x86_state s;
	struct file f;

	/* In a child, whose one message must name the file and say what the table says. */
	if (!g_test_subprocess()) {
		g_test_trap_subprocess(NULL, 60 * G_USEC_PER_SEC, 0);
		g_test_trap_assert_passed();
		g_test_trap_assert_stderr(b->word);
		g_test_trap_assert_stderr("*error: /proc/self/fd/*");
		g_test_trap_assert_stderr_unmatched("*error: *error: *");
	} else {
		b->make(&f, img);
		g_assert_cmpint(boot(vm, &f, NULL, "", &s, &res), ==, b->error);
		close(f.fd);
	}
	g_free(img);
	free_vm(vm);
}

static void test_requests(void)
{
	u8 img[SETUP_BYTES + PAYLOAD_BYTES];
	struct file f, large, nothing, initrd = { .path = "/nonexistent" };
	g_autofree char *cmdline = g_strnfill(2048, 'x');
	struct vm *vm = make_vm();
	struct boot_result res;
	struct x86_state s;

	file_make(&f, img, make_bzimage(img));
	g_assert_cmpint(boot(vm, &initrd, NULL, "", &s, &res), ==, -ENOENT);
	g_assert_cmpint(boot(vm, &f, &initrd, "", &s, &res), ==, -ENOENT);
	strcpy(initrd.path, "/dev/zero");
	g_assert_cmpint(boot(vm, &f, &initrd, "", &s, &res), ==, -EINVAL);
	strcpy(initrd.path, "/");
	g_assert_cmpint(boot(vm, &initrd, NULL, "", &s, &res), ==, -EINVAL);

	file_make(&nothing, "", 0);
	g_assert_cmpint(boot(vm, &f, &nothing, "", &s, &res), ==, -ENOEXEC);
	/* One page too much between the kernel's init_size and the channel, then one that just fits. */
	file_make(&large, "", 0);
	g_assert_cmpint(ftruncate(large.fd, (off_t)(CHANNEL - LOAD - 4 * MIB + 1)), ==, 0);
	g_assert_cmpint(boot(vm, &f, &large, "", &s, &res), ==, -EFBIG);
	g_assert_cmpint(ftruncate(large.fd, (off_t)1 << 50), ==, 0);
	g_assert_cmpint(boot(vm, &f, &large, "", &s, &res), ==, -EFBIG);
	g_assert_cmpint(ftruncate(large.fd, (off_t)(CHANNEL - LOAD - 4 * MIB)), ==, 0);
	g_assert_cmpint(boot(vm, &f, &large, "", &s, &res), ==, 0);

	g_assert_cmpint(boot(vm, &f, NULL, cmdline, &s, &res), ==, -E2BIG);
	cmdline[2047] = '\0';
	g_assert_cmpint(boot(vm, &f, NULL, cmdline, &s, &res), ==, 0);
	close(f.fd);
	close(large.fd);
	close(nothing.fd);
	free_vm(vm);
}

/* Nothing below 1 MiB but the boot structures, and nothing of the channel, is ever written by an image. */
static void check_untouched(struct vm *vm)
{
	static const struct { gpa_t start, end; } area[] = {
		{ 0, LAYOUT_GDT }, { 0x600, LAYOUT_PAGE_TABLES }, { 0xc000, LAYOUT_SETUP_DATA },
		{ 0x20000, LAYOUT_MULTIBOOT }, { 0x82000, LAYOUT_KERNEL }, { CHANNEL, RAM },
		{ LAYOUT_HIGH, LAYOUT_HIGH + MIB },
	};

	for (u32 i = 0; i < ARRAY_SIZE(area); i++) {
		const u8 *p = memory_hva(&vm->mem, area[i].start, area[i].end - area[i].start);

		for (u64 n = 0; n < area[i].end - area[i].start; n++)
			g_assert_cmphex(p[n], ==, 0);
	}
}

static u32 make_any(u32 kind, u8 *img)
{
	switch (kind) {
	case 0: return make_bzimage(img);
	case 1: return make_elf(img);
	case 2: return make_multiboot(img, 3);
	default: return make_raw_multiboot(img);
	}
}

/* A changed byte, field or length, mostly in the headers, with the values that break arithmetic. */
static u32 mutate(struct rng *rng, u8 *img, u32 len)
{
	static const u64 nasty[] = {
		0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0x80000000, 0xfffff000, 0xffffffff,
		0x100000000, 0x7fffffffffffffff, 0x8000000000000000, 0xfffffffffffff000, UINT64_MAX,
	};
	static const u32 start[] = { 0, 0x1f0, 0x1000, 0x100 };

	for (u32 n = 1 + (u32)(rng_next(rng) % 4); n; n--) {
		u64 r = rng_next(rng);
		u32 off = start[r & 3] + (u32)(r >> 8) % 0x90;
		u32 bytes = 1u << (r >> 40 & 3);

		if (off + bytes > len)
			continue;
		if (r >> 48 & 1)
			put(img + off, nasty[(r >> 52) % ARRAY_SIZE(nasty)], bytes);
		else
			put(img + off, rng_next(rng), bytes);
	}
	if (rng_next(rng) % 8 == 0)
		len = (u32)(rng_next(rng) % (len + 1));
	return len;
}

static void fuzz_body(void)
{
	u32 booted = 0, refused = 0;
	u8 *img = g_malloc0(IMAGE_BYTES);
	struct vm *vm = make_vm();
	struct rng rng;

	rng_seed(&rng, 20240101, 0);
	for (u32 round = 0; round < 6000; round++) {
		u32 kind = round % 4, len = make_any(kind, img);
		struct boot_result res;
		struct x86_state s;
		struct file f;

		file_make(&f, img, mutate(&rng, img, len));
		if (boot(vm, &f, NULL, "x", &s, &res)) {
			refused++;
		} else {
			booted++;
			g_assert_cmphex(s.rip, >=, LAYOUT_KERNEL);
			g_assert_cmphex(s.rip, <, CHANNEL);
			g_assert_cmpuint(strnlen(res.version, sizeof(res.version)), <, sizeof(res.version));
		}
		close(f.fd);
		if (round % 500 == 499)
			check_untouched(vm);
	}
	check_untouched(vm);
	g_assert_cmpuint(booted, >, 500);
	g_assert_cmpuint(refused, >, 500);
	g_free(img);
	free_vm(vm);
}

/* In a child, since thousands of messages are nobody's reading. */
static void test_fuzz(void)
{
	if (g_test_subprocess()) {
		fuzz_body();
		return;
	}
	g_test_trap_subprocess(NULL, 300 * G_USEC_PER_SEC, 0);
	g_test_trap_assert_passed();
	g_test_trap_assert_stderr("*error: *");
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	for (u32 i = 0; i < ARRAY_SIZE(bad); i++) {
		char *path = g_strdup_printf("/loader/bad/%s", bad[i].name);

		g_test_add_data_func(path, &bad[i], test_bad);
		g_free(path);
	}
	g_test_add_func("/loader/requests", test_requests);
	g_test_add_func("/loader/fuzz", test_fuzz);
	return g_test_run();
}
