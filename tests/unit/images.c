// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <asm/bootparam.h>
#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "images.h"

void file_make(struct file *f, const void *data, size_t len)
{
	f->fd = memfd_create("image", MFD_CLOEXEC);
	g_assert_cmpint(f->fd, >=, 0);
	g_assert_cmpint(pwrite(f->fd, data, len, 0), ==, (ssize_t)len);
	g_snprintf(f->path, sizeof(f->path), "/proc/self/fd/%d", f->fd);
}

struct vm *make_vm(void)
{
	struct vm *vm = g_new0(struct vm, 1);

	g_assert_cmpint(memory_create(&vm->mem), ==, 0);
	/* Two nodes, so that images and the map of memory cross a slot. */
	g_assert_cmpint(memory_add(&vm->mem, 0, LOAD + PAGE_SIZE, 0), ==, 0);
	g_assert_cmpint(memory_add(&vm->mem, LOAD + PAGE_SIZE, RAM - LOAD - PAGE_SIZE, 1), ==, 0);
	g_assert_cmpint(memory_add(&vm->mem, LAYOUT_HIGH, MIB, 1), ==, 0);
	return vm;
}

void free_vm(struct vm *vm)
{
	memory_destroy(&vm->mem);
	g_free(vm);
}

void put(u8 *p, u64 v, u32 n)
{
	for (u32 i = 0; i < n; i++)
		p[i] = (u8)(v >> (8 * i));
}

u32 make_bzimage(u8 *img)
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

u32 make_elf(u8 *img)
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

u32 make_multiboot(u8 *img, u32 flags)
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

u32 make_raw_multiboot(u8 *img)
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

int boot(struct vm *vm, const struct file *f, const struct file *initrd, const char *cmdline,
	 struct x86_state *state, struct boot_result *res)
{
	static const u64 fdt[4] = { 0xedfe0dd0 };
	const struct boot_request req = {
		.kernel = f->path, .initrd = initrd ? initrd->path : NULL, .cmdline = cmdline,
		.fdt = fdt, .fdt_size = sizeof(fdt), .rsdp = LAYOUT_ACPI, .channel = CHANNEL,
	};

	return loader_boot(vm, &req, state, res);
}
