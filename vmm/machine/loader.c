// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "machine/bootparams.h"
#include "machine/image.h"
#include "machine/layout.h"

/* A regular file and its size. The descriptor, or -errno, reported. */
static int open_file(const char *path, const char *what, u64 *size)
{
	/* O_NONBLOCK: a FIFO given by mistake must not hang us. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	int ret;

	if (fd < 0 || fstat(fd, &st) < 0) {
		ret = -errno;
		fb_err("%s: cannot open the %s: %s", path, what, strerror(-ret));
		if (fd >= 0)
			close(fd);
		return ret;
	}
	if (!S_ISREG(st.st_mode)) {
		fb_err("%s: not a regular file; the %s must be one", path, what);
		close(fd);
		return -EINVAL;
	}
	if (!st.st_size) {
		fb_err("%s: an empty file; the %s must have a content", path, what);
		close(fd);
		return -ENOEXEC;
	}
	*size = (u64)st.st_size;
	return fd;
}

/* All of [off, off + len), or -errno, reported: the file may have shrunk meanwhile. */
static int read_file(const char *path, int fd, void *buf, u64 off, u64 len)
{
	u8 *p = buf;

	while (len) {
		ssize_t n = pread(fd, p, len, (off_t)off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			int ret = n ? -errno : -EIO;

			fb_err("%s: cannot read %" PRIu64 " bytes at %" PRIu64 ": %s", path, len, off,
			       n ? strerror(-ret) : "the file has become shorter");
			return ret;
		}
		p += n;
		off += (u64)n;
		len -= (u64)n;
	}
	return 0;
}

/* From a file into guest RAM, which the caller has checked to be there; fd < 0 clears instead. */
static int fill_ram(const struct memory *mem, const char *path, int fd, gpa_t gpa, u64 off, u64 len)
{
	while (len) {
		const struct memslot *slot = memory_slot(mem, gpa);
		u64 room, chunk;
		int ret = 0;

		if (!slot)
			return -EFAULT;
		room = slot->size - (gpa - slot->gpa);
		chunk = len < room ? len : room;
		if (fd < 0)
			memset(slot->hva + (gpa - slot->gpa), 0, chunk);
		else
			ret = read_file(path, fd, slot->hva + (gpa - slot->gpa), off, chunk);
		if (ret)
			return ret;
		gpa += chunk;
		off += chunk;
		len -= chunk;
	}
	return 0;
}

int image_place(const struct image *img, struct image_load *load, gpa_t gpa, u64 off, u64 file_size,
		u64 mem_size)
{
	int ret;

	fb_assert(file_size <= mem_size);
	if (gpa < LAYOUT_KERNEL || gpa > load->limit || mem_size > load->limit - gpa) {
		fb_err("%s: wants %" PRIu64 " bytes at %#" PRIx64 ", but this guest has room for a kernel from %#llx to %#" PRIx64 " only",
		       img->path, mem_size, gpa, LAYOUT_KERNEL, load->limit);
		return -EFBIG;
	}
	ret = fill_ram(&load->vm->mem, img->path, img->fd, gpa, off, file_size);
	ret = ret ?: fill_ram(&load->vm->mem, img->path, -1, gpa + file_size, 0,
			      mem_size - file_size);
	if (!ret && gpa + mem_size > load->end)
		load->end = gpa + mem_size;
	return ret;
}

static void image_close(struct image *img)
{
	g_free(img->data);
	img->data = NULL;
	if (img->fd >= 0)
		close(img->fd);
	img->fd = -1;
}

static int image_open(struct image *img, const char *path)
{
	int ret;

	memset(img, 0, sizeof(*img));
	img->path = path;
	img->fd = open_file(path, "kernel", &img->file_size);
	if (img->fd < 0)
		return img->fd;
	img->len = img->file_size < IMAGE_HEAD_MAX ? img->file_size : IMAGE_HEAD_MAX;
	img->data = g_malloc(img->len);
	ret = read_file(path, img->fd, img->data, 0, img->len);
	if (ret)
		image_close(img);
	return ret;
}

/* What a file that is no kernel looks like. */
static const char *describe(const struct image *img)
{
	static const struct {
		u32 off, len;
		const char *magic, *what;
	} known[] = {
		{ 0, 2, "\x1f\x8b", "gzip data; uncompress it, or give the bzImage" },
		{ 0, 6, "\xfd" "7zXZ\0", "xz data; uncompress it, or give the bzImage" },
		{ 0, 4, "\x28\xb5\x2f\xfd", "zstd data; uncompress it, or give the bzImage" },
		{ 0, 4, "\x02\x21\x4c\x18", "lz4 data; uncompress it, or give the bzImage" },
		{ 0, 3, "BZh", "bzip2 data; uncompress it, or give the bzImage" },
		{ 0, 4, "0707", "a cpio archive: an initramfs, which is the key initrd" },
		{ 0, 4, "QFI\xfb", "a qcow2 disk image" },
		{ 0, 8, "!<arch>\n", "an archive or a Debian package; give the image inside of it" },
		{ 0, 4, "\xed\xab\xee\xdb", "an RPM package; give the image inside of it" },
		{ 0, 4, "\x27\x05\x19\x56", "a U-Boot image; a bzImage is needed" },
		{ 56, 4, "ARM\x64", "a kernel for ARM; one for x86-64 is needed" },
		{ 0, 2, "#!", "a script" },
		{ 0, 2, "MZ", "an EFI or DOS program with no Linux header" },
		{ 510, 2, "\x55\xaa", "a boot sector or disk image" },
	};

	for (u32 i = 0; i < ARRAY_SIZE(known); i++)
		if (image_has(img, known[i].off, known[i].len) &&
		    !memcmp(img->data + known[i].off, known[i].magic, known[i].len))
			return known[i].what;
	return "no format known here";
}

static int identify(const struct image *img, struct boot_result *res)
{
	bool is64;
	int ret;

	memset(res, 0, sizeof(*res));
	if (bzimage_match(img)) {
		res->kind = IMAGE_BZIMAGE;
		return bzimage_check(img, res);
	}
	if (multiboot_match(img)) {
		res->kind = IMAGE_MULTIBOOT;
		return multiboot_check(img);
	}
	if (!elf_match(img)) {
		fb_err("%s: not a kernel: it looks like %s. What boots is a bzImage, an ELF vmlinux or a Multiboot image",
		       img->path, describe(img));
		return -ENOEXEC;
	}
	res->kind = IMAGE_ELF64;
	ret = elf_check(img, &is64);
	if (!ret && !is64) {
		fb_err("%s: a 32-bit ELF file with no Multiboot header in its first 8 KiB; a 64-bit vmlinux or a Multiboot image is needed",
		       img->path);
		return -ENOEXEC;
	}
	return ret;
}

int loader_identify(const char *path, struct boot_result *res)
{
	struct image img;
	int ret = image_open(&img, path);

	if (ret)
		return ret;
	ret = identify(&img, res);
	image_close(&img);
	return ret;
}

/* As high as it may go, so that the kernel below has room to unpack. */
static int load_initrd(const struct vm *vm, const char *path, const struct image_load *load,
		       gpa_t max, gpa_t *at, u64 *size)
{
	gpa_t top = max < load->limit ? ALIGN_DOWN(max + 1, PAGE_SIZE) : load->limit;
	int fd, ret;

	fd = open_file(path, "initrd", size);
	if (fd < 0)
		return fd;
	if (top < load->end || *size > top - ALIGN_UP(load->end, PAGE_SIZE)) {
		fb_err("%s: an initrd of %" PRIu64 " MiB does not fit between the kernel's end at %" PRIu64 " MiB and %" PRIu64 " MiB: give the guest more memory",
		       path, (*size >> 20) + 1, load->end >> 20, top >> 20);
		close(fd);
		return -EFBIG;
	}
	*at = ALIGN_DOWN(top - *size, PAGE_SIZE);
	ret = fill_ram(&vm->mem, path, fd, *at, 0, *size);
	close(fd);
	return ret;
}

static int boot_image(struct vm *vm, const struct boot_request *req, const struct image *img,
		      struct x86_state *state, struct boot_result *res)
{
	struct image_load load = {
		.vm = vm,
		.limit = req->channel ? req->channel : bootparams_low_end(&vm->mem),
	};
	gpa_t initrd = 0, initrd_max = UINT32_MAX;
	const u8 *header = NULL;
	u64 initrd_size = 0;
	u32 header_len = 0;
	int ret, gdt_limit;

	ret = identify(img, res);
	if (ret)
		return ret;
	if (res->kind == IMAGE_BZIMAGE)
		ret = bzimage_load(img, &load, &header, &header_len, &initrd_max);
	else if (res->kind == IMAGE_ELF64)
		ret = elf_load(img, &load);
	else
		ret = multiboot_load(img, &load);
	if (!ret && req->initrd)
		ret = load_initrd(vm, req->initrd, &load, initrd_max, &initrd, &initrd_size);
	if (ret)
		return ret;

	gdt_limit = bootparams_write_tables(vm);
	if (gdt_limit < 0)
		return gdt_limit;
	if (res->kind == IMAGE_MULTIBOOT) {
		x86_state_protected(state, (u32)load.entry, MULTIBOOT_BOOT_MAGIC,
				    (u32)LAYOUT_MULTIBOOT, LAYOUT_GDT, (u16)gdt_limit);
		return multiboot_write_info(vm, req, initrd, initrd_size);
	}
	x86_state_long(state, load.entry, LAYOUT_BOOT_PARAMS, LAYOUT_PAGE_TABLES, LAYOUT_GDT,
		       (u16)gdt_limit);
	return bootparams_write(vm, req, header, header_len, initrd, initrd_size);
}

int loader_boot(struct vm *vm, const struct boot_request *req, struct x86_state *state,
		struct boot_result *res)
{
	struct image img;
	int ret = image_open(&img, req->kernel);

	if (ret)
		return ret;
	ret = boot_image(vm, req, &img, state, res);
	image_close(&img);
	return ret;
}
