// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kernel images: sound ones land where the protocols say, and malformed ones are
 * refused with one message and nothing written outside the room for a kernel.
 * Images are made here, in a memfd that the loader opens by its /proc name.
 */
#define _GNU_SOURCE
#include <asm/bootparam.h>
#include <elf.h>
#include <errno.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/rng.h"
#include "machine/bootparams.h"
#include "machine/channel-abi.h"
#include "machine/layout.h"
#include "machine/loader.h"
#include "x86/cr.h"

#define RAM		(64 * MIB)
#define CHANNEL		(RAM - FAULTBED_CHANNEL_SIZE)
#define LOAD		0x1000000ull	/* the bzImage's and the vmlinux's address */
#define SETUP_BYTES	1024u		/* of the bzImage: one sector and the boot sector */
#define PAYLOAD_BYTES	8192u

struct file {
	int fd;
	char path[64];
};

static void file_make(struct file *f, const void *data, size_t len)
{
	f->fd = memfd_create("image", MFD_CLOEXEC);
	g_assert_cmpint(f->fd, >=, 0);
	g_assert_cmpint(pwrite(f->fd, data, len, 0), ==, (ssize_t)len);
	g_snprintf(f->path, sizeof(f->path), "/proc/self/fd/%d", f->fd);
}

static struct vm *make_vm(void)
{
	struct vm *vm = g_new0(struct vm, 1);

	g_assert_cmpint(memory_create(&vm->mem), ==, 0);
	/* Two nodes, so that images and the map of memory cross a slot. */
	g_assert_cmpint(memory_add(&vm->mem, 0, LOAD + PAGE_SIZE, 0), ==, 0);
	g_assert_cmpint(memory_add(&vm->mem, LOAD + PAGE_SIZE, RAM - LOAD - PAGE_SIZE, 1), ==, 0);
	g_assert_cmpint(memory_add(&vm->mem, LAYOUT_HIGH, MIB, 1), ==, 0);
	return vm;
}

static void free_vm(struct vm *vm)
{
	memory_destroy(&vm->mem);
	g_free(vm);
}

static void put(u8 *p, u64 v, u32 n)
{
	for (u32 i = 0; i < n; i++)
		p[i] = (u8)(v >> (8 * i));
}

static u32 make_bzimage(u8 *img)
{
	struct setup_header *h = (void *)(img + 0x1f1);
	u32 len = SETUP_BYTES + PAYLOAD_BYTES;

	memset(img, 0, SETUP_BYTES);
	for (u32 i = 0; i < PAYLOAD_BYTES; i++)
		img[SETUP_BYTES + i] = (u8)(i * 13 + 7);
	h->setup_sects = 1;
	h->syssize = PAYLOAD_BYTES / 16;
	h->boot_flag = 0xaa55;
	h->jump = 0x66eb;			/* the header ends at 0x268 */
	h->header = 0x53726448;
	h->version = 0x20f;
	h->kernel_version = 0x100;
	strcpy((char *)img + 0x300, "6.12.95 (a\x1b) #1");
	h->loadflags = LOADED_HIGH | CAN_USE_HEAP;
	h->relocatable_kernel = 1;
	h->kernel_alignment = 0x200000;
	h->xloadflags = XLF_KERNEL_64;
	h->cmdline_size = 2047;
	h->initrd_addr_max = 0x7fffffff;
	h->pref_address = LOAD;
	h->init_size = 4 << 20;
	return len;
}

/* Two segments with a gap; the second has bss. The entry is physical, as in a vmlinux. */
static u32 make_elf(u8 *img)
{
	Elf64_Ehdr *e = (void *)img;
	Elf64_Phdr *p = (void *)(img + sizeof(*e));

	memset(img, 0, 0x3000);
	memcpy(e->e_ident, ELFMAG, SELFMAG);
	e->e_ident[EI_CLASS] = ELFCLASS64;
	e->e_ident[EI_DATA] = ELFDATA2LSB;
	e->e_type = ET_EXEC;
	e->e_machine = EM_X86_64;
	e->e_entry = LOAD + 0x40;
	e->e_phoff = sizeof(*e);
	e->e_phentsize = sizeof(*p);
	e->e_phnum = 3;
	p[0] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_offset = 0x1000, .p_vaddr = 0xffffffff81000000,
			     .p_paddr = LOAD, .p_filesz = 0x1000, .p_memsz = 0x1000 };
	p[1] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_offset = 0x2000, .p_vaddr = 0xffffffff81200000,
			     .p_paddr = LOAD + 0x200000, .p_filesz = 0x800, .p_memsz = 0x5000 };
	p[2] = (Elf64_Phdr){ .p_type = PT_NOTE, .p_offset = UINT64_MAX, .p_filesz = UINT64_MAX };
	memset(img + 0x1000, 0xc1, 0x1000);
	memset(img + 0x2000, 0xc2, 0x1000);
	return 0x3000;
}

/* An ELF32 file with a Multiboot header at the start of its only segment. */
static u32 make_multiboot(u8 *img, u32 flags)
{
	Elf32_Ehdr *e = (void *)img;
	Elf32_Phdr *p = (void *)(img + sizeof(*e));

	memset(img, 0, 0x3000);
	memcpy(e->e_ident, ELFMAG, SELFMAG);
	e->e_ident[EI_CLASS] = ELFCLASS32;
	e->e_ident[EI_DATA] = ELFDATA2LSB;
	e->e_type = ET_EXEC;
	e->e_machine = EM_386;
	e->e_entry = 0x400010;
	e->e_phoff = sizeof(*e);
	e->e_phentsize = sizeof(*p);
	e->e_phnum = 1;
	*p = (Elf32_Phdr){ .p_type = PT_LOAD, .p_offset = 0x1000, .p_vaddr = 0x400000, .p_paddr = 0x400000,
			   .p_filesz = 0x1000, .p_memsz = 0x3000 };
	memset(img + 0x1000, 0xc3, 0x1000);
	put(img + 0x1000, 0x1badb002, 4);
	put(img + 0x1004, flags, 4);
	put(img + 0x1008, (u32)-(0x1badb002 + flags), 4);
	return 0x3000;
}

/* The "a.out kludge": address fields instead of a format. */
static u32 make_raw_multiboot(u8 *img)
{
	memset(img, 0xc4, 0x1000);
	put(img + 0x100, 0x1badb002, 4);
	put(img + 0x104, BIT(16), 4);
	put(img + 0x108, (u32)-(0x1badb002 + BIT(16)), 4);
	put(img + 0x10c, 0x300100, 4);		/* header_addr */
	put(img + 0x110, 0x300000, 4);		/* load_addr */
	put(img + 0x114, 0x300800, 4);		/* load_end_addr */
	put(img + 0x118, 0x302000, 4);		/* bss_end_addr */
	put(img + 0x11c, 0x300040, 4);		/* entry_addr */
	return 0x1000;
}

static int boot(struct vm *vm, const struct file *f, const struct file *initrd, const char *cmdline,
		struct x86_state *state, struct boot_result *res)
{
	static const u64 fdt[4] = { 0xedfe0dd0 };
	const struct boot_request req = {
		.kernel = f->path, .initrd = initrd ? initrd->path : NULL, .cmdline = cmdline,
		.fdt = fdt, .fdt_size = sizeof(fdt), .rsdp = LAYOUT_ACPI, .channel = CHANNEL,
	};

	return loader_boot(vm, &req, state, res);
}

static void check_zero_page(struct vm *vm, u64 initrd_size)
{
	const struct boot_params *bp = memory_hva(&vm->mem, LAYOUT_BOOT_PARAMS, PAGE_SIZE);
	const struct setup_data *sd = memory_hva(&vm->mem, LAYOUT_SETUP_DATA, PAGE_SIZE);
	gpa_t end = 0;

	g_assert_cmphex(bp->hdr.header, ==, 0x53726448);
	g_assert_cmphex(bp->hdr.type_of_loader, ==, 0xff);
	g_assert_cmphex(bp->hdr.loadflags & CAN_USE_HEAP, ==, 0);
	g_assert_cmphex(bp->sentinel, ==, 0);
	g_assert_cmphex(bp->acpi_rsdp_addr, ==, LAYOUT_ACPI);
	g_assert_cmphex(bp->hdr.cmd_line_ptr, ==, LAYOUT_CMDLINE);
	g_assert_cmpstr(memory_hva(&vm->mem, LAYOUT_CMDLINE, 256), ==, "console=ttyS0");
	g_assert_cmpuint(bp->hdr.ramdisk_size, ==, initrd_size);

	/* The device tree: 16 bytes of header keep it aligned to 8, as libfdt demands. */
	g_assert_cmphex(bp->hdr.setup_data, ==, LAYOUT_SETUP_DATA);
	g_assert_cmphex(bp->hdr.setup_data % 16, ==, 0);
	g_assert_cmpuint(sd->type, ==, SETUP_DTB);
	g_assert_cmpuint(sd->next, ==, 0);
	g_assert_cmpuint(sd->len, ==, 32);

	/* The map: RAM, EBDA and ACPI, RAM, channel, high RAM. Sorted and without gaps below the hole. */
	g_assert_cmpuint(bp->e820_entries, ==, 5);
	for (u32 i = 0; i < 4; i++) {
		g_assert_cmphex(bp->e820_table[i].addr, ==, end);
		g_assert_cmpuint(bp->e820_table[i].type, ==, i & 1 ? E820_RESERVED : E820_RAM);
		end = bp->e820_table[i].addr + bp->e820_table[i].size;
	}
	g_assert_cmphex(bp->e820_table[1].addr, ==, LAYOUT_EBDA);
	g_assert_cmphex(bp->e820_table[2].addr, ==, LAYOUT_KERNEL);
	g_assert_cmphex(bp->e820_table[3].addr, ==, CHANNEL);
	g_assert_cmphex(end, ==, RAM);
	g_assert_cmphex(bp->e820_table[4].addr, ==, LAYOUT_HIGH);
	g_assert_cmphex(bp->e820_table[4].size, ==, MIB);
}

/* Walk the boot page tables for an address. */
static u64 translate(struct vm *vm, u64 va)
{
	u64 table = LAYOUT_PAGE_TABLES, pte = 0;

	for (int shift = 39; shift >= 21; shift -= 9) {
		g_assert_cmpint(memory_read(&vm->mem, table + (va >> shift & 511) * 8, &pte, 8), ==, 0);
		g_assert_cmphex(pte & 3, ==, 3);
		table = pte & X86_PTE_ADDR;
	}
	g_assert_cmphex(pte & X86_PTE_PS, !=, 0);
	return table + (va & (2 * MIB - 1));
}

static void check_long_mode(struct vm *vm, const struct x86_state *s, u64 rip)
{
	u64 code64, data;

	g_assert_cmphex(s->rip, ==, rip);
	g_assert_cmphex(s->gpr[X86_RSI], ==, LAYOUT_BOOT_PARAMS);
	g_assert_cmphex(s->cr3, ==, LAYOUT_PAGE_TABLES);
	g_assert_cmphex(translate(vm, 0), ==, 0);
	g_assert_cmphex(translate(vm, rip), ==, rip);
	g_assert_cmphex(translate(vm, 4 * GIB - 1), ==, 4 * GIB - 1);
	/* The descriptors in memory are the ones the state has loaded. */
	g_assert_cmpuint(s->gdt.limit, >=, 0x18 + 7);
	memory_read(&vm->mem, s->gdt.base + s->cs.selector, &code64, 8);
	memory_read(&vm->mem, s->gdt.base + s->ds.selector, &data, 8);
	g_assert_cmphex((code64 >> 40 & 0xf0ff), ==, s->cs.attr);
	g_assert_cmphex((data >> 40 & 0xf0ff), ==, s->ds.attr);
}

static void test_bzimage(void)
{
	u8 img[SETUP_BYTES + PAYLOAD_BYTES], back[PAYLOAD_BYTES], ird[5000];
	struct vm *vm = make_vm();
	struct file f, initrd;
	struct boot_result res;
	struct x86_state s;
	const struct boot_params *bp;

	memset(ird, 0x77, sizeof(ird));
	file_make(&f, img, make_bzimage(img));
	file_make(&initrd, ird, sizeof(ird));
	g_assert_cmpint(loader_identify(f.path, &res), ==, 0);
	g_assert_cmpint(res.kind, ==, IMAGE_BZIMAGE);
	g_assert_cmpint(boot(vm, &f, &initrd, "console=ttyS0", &s, &res), ==, 0);
	g_assert_cmpstr(res.version, ==, "6.12.95 (a?) #1");
	check_long_mode(vm, &s, LOAD + 0x200);
	check_zero_page(vm, sizeof(ird));
	memory_read(&vm->mem, LOAD, back, sizeof(back));
	g_assert_cmpmem(back, sizeof(back), img + SETUP_BYTES, PAYLOAD_BYTES);

	/* The initrd: a page's start, right below the channel, clear of the kernel's init_size. */
	bp = memory_hva(&vm->mem, LAYOUT_BOOT_PARAMS, PAGE_SIZE);
	g_assert_cmphex(bp->hdr.ramdisk_image, ==, ALIGN_DOWN(CHANNEL - sizeof(ird), PAGE_SIZE));
	memory_read(&vm->mem, bp->hdr.ramdisk_image, back, sizeof(ird));
	g_assert_cmpmem(back, sizeof(ird), ird, sizeof(ird));
	g_assert_cmphex(bp->hdr.init_size, ==, 4 << 20);
	close(f.fd);
	close(initrd.fd);
	free_vm(vm);
}

static void test_elf(void)
{
	u8 *img = g_malloc(0x3000), byte;
	struct vm *vm = make_vm();
	struct boot_result res;
	struct x86_state s;
	struct file f;

	/* Bytes where the bss will be are cleared. */
	memory_write(&vm->mem, LOAD + 0x204fff, "\xee", 1);
	memory_write(&vm->mem, LOAD + 0x205000, "\xee", 1);
	file_make(&f, img, make_elf(img));
	g_assert_cmpint(boot(vm, &f, NULL, "console=ttyS0", &s, &res), ==, 0);
	g_assert_cmpint(res.kind, ==, IMAGE_ELF64);
	g_assert_cmpstr(res.version, ==, "");
	check_long_mode(vm, &s, LOAD + 0x40);
	check_zero_page(vm, 0);
	memory_read(&vm->mem, LOAD + 0xfff, &byte, 1);
	g_assert_cmphex(byte, ==, 0xc1);
	memory_read(&vm->mem, LOAD + 0x2007ff, &byte, 1);
	g_assert_cmphex(byte, ==, 0xc2);
	memory_read(&vm->mem, LOAD + 0x200800, &byte, 1);
	g_assert_cmphex(byte, ==, 0);
	memory_read(&vm->mem, LOAD + 0x204fff, &byte, 1);
	g_assert_cmphex(byte, ==, 0);
	memory_read(&vm->mem, LOAD + 0x205000, &byte, 1);
	g_assert_cmphex(byte, ==, 0xee);
	close(f.fd);

	/* A virtual entry is translated. */
	((Elf64_Ehdr *)(void *)img)->e_entry = 0xffffffff81200010;
	file_make(&f, img, 0x3000);
	g_assert_cmpint(boot(vm, &f, NULL, "", &s, &res), ==, 0);
	g_assert_cmphex(s.rip, ==, LOAD + 0x200010);
	close(f.fd);
	g_free(img);
	free_vm(vm);
}

static void check_multiboot_info(struct vm *vm, const struct file *f, u64 module_size)
{
	const u8 *info = memory_hva(&vm->mem, LAYOUT_MULTIBOOT, PAGE_SIZE);
	g_autofree char *base = g_path_get_basename(f->path);
	g_autofree char *line = g_strdup_printf("%s one two", base);
	u32 flags, mods, mmap_len, mmap_addr, word[6];

	memcpy(&flags, info, 4);
	g_assert_cmphex(flags & (BIT(0) | BIT(2) | BIT(3) | BIT(6)), ==,
			module_size ? BIT(0) | BIT(2) | BIT(3) | BIT(6) : BIT(0) | BIT(2) | BIT(6));
	memcpy(word, info + 4, 8);
	g_assert_cmpuint(word[0], ==, LAYOUT_EBDA / 1024);
	g_assert_cmpuint(word[1], ==, (CHANNEL - MIB) / 1024);
	memcpy(word, info + 16, 4);
	g_assert_cmpstr(memory_hva(&vm->mem, word[0], 256), ==, line);
	if (module_size) {
		memcpy(&mods, info + 24, 4);
		g_assert_cmpint(memory_read(&vm->mem, mods, word, 16), ==, 0);
		g_assert_cmphex(word[0] % PAGE_SIZE, ==, 0);
		g_assert_cmpuint(word[1] - word[0], ==, module_size);
		g_assert_cmphex(word[1], <=, CHANNEL);
	}
	memcpy(&mmap_len, info + 44, 4);
	memcpy(&mmap_addr, info + 48, 4);
	g_assert_cmpuint(mmap_len, ==, 5 * 24);
	/* The last entry: high RAM, with all 64 bits of its address. */
	g_assert_cmpint(memory_read(&vm->mem, mmap_addr + 4 * 24, word, 24), ==, 0);
	g_assert_cmpuint(word[0], ==, 20);
	g_assert_cmphex(word[1] | (u64)word[2] << 32, ==, LAYOUT_HIGH);
	g_assert_cmphex(word[3] | (u64)word[4] << 32, ==, MIB);
	g_assert_cmpuint(word[5], ==, 1);
}

static void test_multiboot(void)
{
	u8 *img = g_malloc(0x3000), byte;
	struct vm *vm = make_vm();
	struct boot_result res;
	struct x86_state s;
	struct file f, initrd;

	file_make(&initrd, "environment", 11);
	file_make(&f, img, make_multiboot(img, 3));
	g_assert_cmpint(boot(vm, &f, &initrd, "one two", &s, &res), ==, 0);
	g_assert_cmpint(res.kind, ==, IMAGE_MULTIBOOT);
	g_assert_cmphex(s.rip, ==, 0x400010);
	g_assert_cmphex(s.gpr[X86_RAX], ==, 0x2badb002);
	g_assert_cmphex(s.gpr[X86_RBX], ==, LAYOUT_MULTIBOOT);
	g_assert_cmphex(s.cr0 & (X86_CR0_PE | X86_CR0_PG), ==, X86_CR0_PE);
	check_multiboot_info(vm, &f, 11);
	memory_read(&vm->mem, 0x400fff, &byte, 1);
	g_assert_cmphex(byte, ==, 0xc3);
	close(f.fd);

	file_make(&f, img, make_raw_multiboot(img));
	g_assert_cmpint(boot(vm, &f, NULL, "one two", &s, &res), ==, 0);
	g_assert_cmphex(s.rip, ==, 0x300040);
	check_multiboot_info(vm, &f, 0);
	memory_read(&vm->mem, 0x3007ff, &byte, 1);
	g_assert_cmphex(byte, ==, 0xc4);
	memory_read(&vm->mem, 0x300800, &byte, 1);
	g_assert_cmphex(byte, ==, 0);
	close(f.fd);
	close(initrd.fd);
	g_free(img);
	free_vm(vm);
}

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
	u8 *img = g_malloc0(0x3000);
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
	u8 *img = g_malloc0(0x3000);
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

/* Holes: no channel, and RAM that ends within them. */
static void test_e820(void)
{
	struct e820_range r[BOOTPARAMS_MAX_E820];
	struct memory mem;
	u32 n;

	g_assert_cmpint(memory_create(&mem), ==, 0);
	g_assert_cmpuint(bootparams_e820(&mem, 0, r), ==, 0);
	g_assert_cmphex(bootparams_low_end(&mem), ==, 0);
	g_assert_cmpint(memory_add(&mem, LAYOUT_HIGH + GIB, GIB, 1), ==, 0);
	g_assert_cmpint(memory_add(&mem, 16 * MIB, 16 * MIB, 1), ==, 0);
	g_assert_cmpint(memory_add(&mem, LAYOUT_HIGH, GIB, 0), ==, 0);
	g_assert_cmpint(memory_add(&mem, 0, 16 * MIB, 0), ==, 0);
	g_assert_cmphex(bootparams_low_end(&mem), ==, 32 * MIB);

	/* In order of address whatever the order of adding; touching ranges are one. */
	n = bootparams_e820(&mem, 0, r);
	g_assert_cmpuint(n, ==, 4);
	g_assert_cmphex(r[0].size, ==, LAYOUT_EBDA);
	g_assert_cmphex(r[2].addr, ==, LAYOUT_KERNEL);
	g_assert_cmphex(r[2].size, ==, 31 * MIB);
	g_assert_cmphex(r[3].addr, ==, LAYOUT_HIGH);
	g_assert_cmphex(r[3].size, ==, 2 * GIB);

	/* A channel in the midst of RAM splits it. */
	n = bootparams_e820(&mem, 20 * MIB, r);
	g_assert_cmpuint(n, ==, 6);
	g_assert_cmpuint(r[3].type, ==, E820_RESERVED);
	g_assert_cmphex(r[3].addr, ==, 20 * MIB);
	g_assert_cmphex(r[4].addr, ==, 20 * MIB + FAULTBED_CHANNEL_SIZE);
	memory_destroy(&mem);

	g_assert_cmpint(memory_create(&mem), ==, 0);
	g_assert_cmpint(memory_add(&mem, 0, LAYOUT_LOW_END, 0), ==, 0);
	g_assert_cmphex(bootparams_low_end(&mem), ==, LAYOUT_LOW_END);
	memory_destroy(&mem);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/loader/bzimage", test_bzimage);
	g_test_add_func("/loader/elf", test_elf);
	g_test_add_func("/loader/multiboot", test_multiboot);
	g_test_add_func("/loader/requests", test_requests);
	for (u32 i = 0; i < ARRAY_SIZE(bad); i++) {
		char *path = g_strdup_printf("/loader/bad/%s", bad[i].name);

		g_test_add_data_func(path, &bad[i], test_bad);
		g_free(path);
	}
	g_test_add_func("/loader/e820", test_e820);
	g_test_add_func("/loader/fuzz", test_fuzz);
	return g_test_run();
}
