// SPDX-License-Identifier: GPL-2.0-only
/* Sound kernel images of every format land where the protocols say, and so does all around them. */
#define _GNU_SOURCE
#include <asm/bootparam.h>
#include <elf.h>
#include <string.h>
#include <unistd.h>

#include "images.h"
#include "machine/bootparams.h"
#include "x86/cr.h"

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
	u8 *img = g_malloc(IMAGE_BYTES), byte;
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
	u8 *img = g_malloc(IMAGE_BYTES), byte;
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
	g_test_add_func("/loader/e820", test_e820);
	return g_test_run();
}
