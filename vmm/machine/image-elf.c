// SPDX-License-Identifier: GPL-2.0-only
/* ELF executables of both classes (System V ABI, chapters 4 and 5), by physical address. */
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "machine/image.h"

#define MAX_SEGMENTS	128u

struct segment {
	u32 type;
	u64 offset, vaddr, paddr, file_size, mem_size;
};

/* The header's fields that matter, of either class. */
struct header {
	bool is64;
	u16 type, machine, phentsize, phnum;
	u64 entry, phoff;
};

bool elf_match(const struct image *img)
{
	return image_has(img, 0, EI_NIDENT) && !memcmp(img->data, ELFMAG, SELFMAG);
}

static bool read_header(const struct image *img, struct header *h)
{
	const u8 *d = img->data;

	h->is64 = d[EI_CLASS] == ELFCLASS64;
	if (!image_has(img, 0, h->is64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr)))
		return false;
	h->type = image_le16(d + 16);
	h->machine = image_le16(d + 18);
	if (h->is64) {
		h->entry = image_le64(d + offsetof(Elf64_Ehdr, e_entry));
		h->phoff = image_le64(d + offsetof(Elf64_Ehdr, e_phoff));
		h->phentsize = image_le16(d + offsetof(Elf64_Ehdr, e_phentsize));
		h->phnum = image_le16(d + offsetof(Elf64_Ehdr, e_phnum));
	} else {
		h->entry = image_le32(d + offsetof(Elf32_Ehdr, e_entry));
		h->phoff = image_le32(d + offsetof(Elf32_Ehdr, e_phoff));
		h->phentsize = image_le16(d + offsetof(Elf32_Ehdr, e_phentsize));
		h->phnum = image_le16(d + offsetof(Elf32_Ehdr, e_phnum));
	}
	return true;
}

static void read_segment(const struct image *img, const struct header *h, u32 i,
			 struct segment *seg)
{
	const u8 *p = img->data + h->phoff + (u64)i * h->phentsize;

	seg->type = image_le32(p);
	if (h->is64) {
		seg->offset = image_le64(p + offsetof(Elf64_Phdr, p_offset));
		seg->vaddr = image_le64(p + offsetof(Elf64_Phdr, p_vaddr));
		seg->paddr = image_le64(p + offsetof(Elf64_Phdr, p_paddr));
		seg->file_size = image_le64(p + offsetof(Elf64_Phdr, p_filesz));
		seg->mem_size = image_le64(p + offsetof(Elf64_Phdr, p_memsz));
	} else {
		seg->offset = image_le32(p + offsetof(Elf32_Phdr, p_offset));
		seg->vaddr = image_le32(p + offsetof(Elf32_Phdr, p_vaddr));
		seg->paddr = image_le32(p + offsetof(Elf32_Phdr, p_paddr));
		seg->file_size = image_le32(p + offsetof(Elf32_Phdr, p_filesz));
		seg->mem_size = image_le32(p + offsetof(Elf32_Phdr, p_memsz));
	}
}

/* NULL, or what keeps the header from being that of a bootable executable. */
static const char *header_fault(const struct image *img, const struct header *h)
{
	u8 class = img->data[EI_CLASS];

	if ((class != ELFCLASS64 && class != ELFCLASS32) || img->data[EI_DATA] != ELFDATA2LSB)
		return "an ELF file of unknown class or byte order";
	if (h->machine != EM_X86_64 && h->machine != EM_386)
		return "an ELF file for another architecture; one for x86 is needed";
	if (h->type == ET_REL)
		return "an ELF object file, not yet linked";
	if (h->type == ET_CORE)
		return "an ELF core dump";
	if (h->type != ET_EXEC && h->type != ET_DYN)
		return "an ELF file that is no executable";
	if (h->phentsize != (h->is64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr)))
		return "an ELF file whose program headers have a wrong size";
	if (!h->phnum || h->phnum > MAX_SEGMENTS)
		return "an ELF file with no program headers, or too many";
	return NULL;
}

int elf_check(const struct image *img, bool *is64)
{
	const char *wrong;
	struct header h;

	if (!read_header(img, &h)) {
		fb_err("%s: an ELF file cut short: it ends within the header", img->path);
		return -ENOEXEC;
	}
	wrong = header_fault(img, &h);
	if (wrong) {
		fb_err("%s: %s", img->path, wrong);
		return -ENOEXEC;
	}
	*is64 = h.is64;
	return 0;
}

/* e_entry as a physical address: it is one already in a vmlinux, and virtual elsewhere. */
static bool translate_entry(const struct image *img, const struct header *h, gpa_t *entry)
{
	struct segment seg;

	for (u32 i = 0; i < h->phnum; i++) {
		read_segment(img, h, i, &seg);
		if (seg.type == PT_LOAD && h->entry >= seg.paddr &&
		    h->entry - seg.paddr < seg.mem_size) {
			*entry = h->entry;
			return true;
		}
	}
	for (u32 i = 0; i < h->phnum; i++) {
		read_segment(img, h, i, &seg);
		if (seg.type == PT_LOAD && h->entry >= seg.vaddr &&
		    h->entry - seg.vaddr < seg.mem_size) {
			*entry = seg.paddr + (h->entry - seg.vaddr);
			return true;
		}
	}
	return false;
}

int elf_load(const struct image *img, struct image_load *load)
{
	struct segment seg;
	struct header h;
	u32 loaded = 0;
	int ret;

	if (!read_header(img, &h) || header_fault(img, &h) ||
	    !image_has(img, h.phoff, (u64)h.phnum * h.phentsize)) {
		fb_err("%s: an ELF file cut short: its program headers are not in its first %u bytes",
		       img->path, IMAGE_HEAD_MAX);
		return -ENOEXEC;
	}
	for (u32 i = 0; i < h.phnum; i++) {
		read_segment(img, &h, i, &seg);
		if (seg.type == PT_INTERP) {
			fb_err("%s: a dynamically linked program, not a kernel", img->path);
			return -ENOEXEC;
		}
		if (seg.type != PT_LOAD || !seg.mem_size)
			continue;
		if (seg.file_size > seg.mem_size ||
		    !image_in_file(img, seg.offset, seg.file_size)) {
			fb_err("%s: an ELF file cut short or malformed: segment %u has %" PRIu64 " bytes at %" PRIu64 ", the file has %" PRIu64,
			       img->path, i, seg.file_size, seg.offset, img->file_size);
			return -ENOEXEC;
		}
		ret = image_place(img, load, seg.paddr, seg.offset, seg.file_size, seg.mem_size);
		if (ret)
			return ret;
		loaded++;
	}
	if (!loaded) {
		fb_err("%s: an ELF file with nothing to load", img->path);
		return -ENOEXEC;
	}
	if (!translate_entry(img, &h, &load->entry)) {
		fb_err("%s: an ELF file whose entry %#" PRIx64 " is in none of its segments", img->path,
		       h.entry);
		return -ENOEXEC;
	}
	return 0;
}
