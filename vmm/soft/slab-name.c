// SPDX-License-Identifier: GPL-2.0-only
/*
 * The way from an address to its cache is that of 6.12: struct page in the array of all, its head, a slab's type and
 * cache (mm/slab.h). Each step is checked, and a kernel that has it otherwise gets no names.
 */
#include "soft/slab-name.h"

#include <string.h>

#include "core/symbols.h"
#include "soft/soft-mem.h"

/* Where nokaslr leaves them (Documentation/arch/x86/x86_64/mm.rst). */
#define DIRECT_MAP	0xffff888000000000ull
#define DIRECT_MAP_END	0xffffc88000000000ull
#define VMEMMAP		0xffffea0000000000ull

/* struct page of 64 bytes, and struct slab, which it becomes. */
#define PAGE_STRUCT	64u
#define COMPOUND_HEAD	8u	/* bit 0: of a tail, the rest is its head's address */
#define SLAB_CACHE	8u
#define PAGE_TYPE	48u
#define TYPE_SLAB	0xf5u	/* PGTY_slab, in the highest byte */

/* struct kmem_cache, without lockdep: size, object_size. */
#define CACHE_SIZE	24u
#define CACHE_BYTES	256u
#define CACHE_OBJECT_MAX	(4u << 20)

static bool read_kernel(struct soft_cpu *c, u64 va, void *to, u64 len)
{
	return va >> 63 && soft_peek_bytes(c, va, to, len);
}

static bool read_name(struct soft_cpu *c, u64 va, char name[PROFILE_OBJECT_NAME])
{
	u32 i;

	for (i = 0; i < PROFILE_OBJECT_NAME - 1; i++) {
		if (!read_kernel(c, va + i, &name[i], 1))
			return false;
		if (!name[i])
			break;
		if (name[i] <= ' ' || name[i] >= 0x7f)
			return false;
	}
	memset(name + i, 0, PROFILE_OBJECT_NAME - i);
	return i;
}

/* Where a cache has its name: the cache of caches, to which kmem_cache points, is called so. 0: nowhere. */
static u32 find_name(struct soft_cpu *c)
{
	u64 at = symbols_address(c->svm->vm->symbols, "kmem_cache"), cache, text;
	char name[PROFILE_OBJECT_NAME];
	u32 off;

	if (!at || !read_kernel(c, at, &cache, sizeof(cache)))
		return 0;
	for (off = CACHE_SIZE; off < CACHE_BYTES; off += sizeof(u64))
		if (read_kernel(c, cache + off, &text, sizeof(text)) && read_name(c, text, name) &&
		    !strcmp(name, "kmem_cache"))
			return off;
	return 0;
}

static void slab_name(struct soft_cpu *c, u32 name_at, struct profile_line *l)
{
	u64 pfn = (l->va - DIRECT_MAP) / PAGE_SIZE, page = VMEMMAP + pfn * PAGE_STRUCT, head, cache, text, base;
	u32 type, size[2];

	if (!read_kernel(c, page + COMPOUND_HEAD, &head, sizeof(head)))
		return;
	head = head & 1 ? head - 1 : page;
	if (head > page || (head - VMEMMAP) % PAGE_STRUCT || !read_kernel(c, head + PAGE_TYPE, &type, sizeof(type)) ||
	    type >> 24 != TYPE_SLAB || !read_kernel(c, head + SLAB_CACHE, &cache, sizeof(cache)) ||
	    !read_kernel(c, cache + CACHE_SIZE, size, sizeof(size)) || !read_kernel(c, cache + name_at, &text, sizeof(text)))
		return;
	if (!size[1] || size[1] > size[0] || size[0] > CACHE_OBJECT_MAX)
		return;
	base = DIRECT_MAP + (head - VMEMMAP) / PAGE_STRUCT * PAGE_SIZE;
	l->offset = (u32)((l->va - base) % size[0]);
	if (!read_name(c, text, l->object))
		l->object[0] = '\0';
}

void slab_name_lines(struct soft_cpu *c, GArray *lines)
{
	u32 name_at = lines->len ? find_name(c) : 0, i;

	for (i = 0; name_at && i < lines->len; i++) {
		struct profile_line *l = &g_array_index(lines, struct profile_line, i);

		if (l->va >= DIRECT_MAP && l->va < DIRECT_MAP_END)
			slab_name(c, name_at, l);
	}
}
