// SPDX-License-Identifier: GPL-2.0-only
/* Decoded code: look-up, the arena, invalidation. See block.h. */
#define _GNU_SOURCE
#include "soft/block.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"
#include "soft/decode.h"
#include "soft/soft-mem.h"
#include "soft/spin.h"

#define ARENA_BYTES	(192 * MIB)
/* After so many visits to dead blocks pointers to them are worth a search. */
#define DEAD_VISITS_MAX	4096u

struct soft_blocks {
	u8 *arena;
	size_t used;
	GPtrArray *blocks;		/* every block of the arena */
	GPtrArray *codes;		/* every struct soft_code, allocated one by one */
	u32 dead_visits;
	ZydisDecoder decoder[3];	/* by enum soft_mode */
};

/* A vCPU's own block for an instruction that crosses a page: it depends on two translations. */
struct soft_exec {
	struct soft_block *cross;	/* in the same allocation, behind this */
	struct soft_code code;
	u8 bytes[INSN_MAX + 1];
	u32 off, nr_bytes;
	u8 key;
	bool valid;
};

int soft_blocks_create(struct soft_vm *svm)
{
	struct soft_blocks *bs = g_new0(struct soft_blocks, 1);

	svm->blocks = bs;
	bs->blocks = g_ptr_array_new();
	bs->codes = g_ptr_array_new_with_free_func(g_free);
	ZydisDecoderInit(&bs->decoder[MODE_64], ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	ZydisDecoderInit(&bs->decoder[MODE_32], ZYDIS_MACHINE_MODE_LEGACY_32, ZYDIS_STACK_WIDTH_32);
	ZydisDecoderInit(&bs->decoder[MODE_16], ZYDIS_MACHINE_MODE_LEGACY_16, ZYDIS_STACK_WIDTH_16);
	bs->arena = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (bs->arena == MAP_FAILED) {
		int err = -errno;

		bs->arena = NULL;
		fb_err("soft: %llu MiB for decoded code: %s", (unsigned long long)(ARENA_BYTES / MIB), strerror(-err));
		return err;
	}
	/* Operations are read all over it; fewer host TLB misses, where the host has large pages to give. */
	madvise(bs->arena, ARENA_BYTES, MADV_HUGEPAGE);
	return 0;
}

void soft_blocks_destroy(struct soft_vm *svm)
{
	struct soft_blocks *bs = svm->blocks;

	if (!bs)
		return;
	if (bs->arena)
		munmap(bs->arena, ARENA_BYTES);
	g_ptr_array_unref(bs->blocks);
	g_ptr_array_unref(bs->codes);
	g_free(bs);
	svm->blocks = NULL;
}

/* Forget all decoded code. Only from soft_run(), when no block is being executed. */
static void soft_blocks_flush(struct soft_vm *svm)
{
	struct soft_blocks *bs = svm->blocks;
	u32 i;

	for (i = 0; i < bs->codes->len; i++) {
		struct soft_code *code = bs->codes->pdata[i];

		code->chunks = 0;
		code->page->flags &= ~SPAGE_CODE;
		memset(code->slot, 0, sizeof(code->slot));
	}
	g_ptr_array_set_size(bs->blocks, 0);
	bs->used = 0;
	bs->dead_visits = 0;
}

void soft_blocks_forget(struct soft_vm *svm)
{
	u32 i;

	soft_blocks_flush(svm);
	for (i = 0; i < svm->vm->topo.nr_cpus; i++) {
		struct soft_cpu *c = soft_cpu(svm->vm->vcpu[i]);
		struct soft_exec *exec = c->exec;

		c->link = NULL;
		if (exec)
			exec->valid = false;
	}
}

static struct soft_block *soft_block_alloc(struct soft_vm *svm, u32 nr)
{
	struct soft_blocks *bs = svm->blocks;
	size_t size = ALIGN_UP(offsetof(struct soft_block, op) + (nr + 1) * sizeof(struct soft_op), 64);
	struct soft_block *b;

	if (bs->used + size > ARENA_BYTES)
		return NULL;
	b = (struct soft_block *)(bs->arena + bs->used);
	bs->used += size;
	memset(b, 0, offsetof(struct soft_block, op));
	g_ptr_array_add(bs->blocks, b);
	return b;
}

/* --- the end of a block, and dead blocks --- */

/* Behind the last instruction, where that does not branch: on to the next block. */
static int op_fall(struct soft_cpu *c, const struct soft_op *op)
{
	struct soft_block *b = soft_block_of(op), *to = b->next[0];

	soft_retire(c, op);
	if (SOFT_CHAIN && likely(to != NULL) && likely(c->left > 0) && likely(op->imm < PAGE_SIZE))
		return to->op[0].fn(c, to->op);
	if (op->imm < PAGE_SIZE)
		c->link = &b->next[0];
	c->rip = c->gpr[GPR_PAGE] + op->imm - c->seg[SEG_CS].base;
	return SOFT_OK;
}

static int op_dead(struct soft_cpu *c, const struct soft_op *op)
{
	struct soft_blocks *bs = c->svm->blocks;
	u64 off = op->n == soft_block_of(op)->nr ? op->imm : op->pc;

	soft_retire(c, op);
	c->rip = c->gpr[GPR_PAGE] + off - c->seg[SEG_CS].base;
	if (op->n == 0)
		bs->dead_visits++;
	return SOFT_OK;
}

static void soft_block_kill(struct soft_vm *svm, struct soft_block *b)
{
	u32 i;

	b->dead = true;
	for (i = 0; i <= b->nr; i++)
		b->op[i].fn = op_dead;
}

/* Blocks that lead to dead ones forget it. */
static void soft_blocks_unlink_dead(struct soft_vm *svm)
{
	struct soft_blocks *bs = svm->blocks;
	u32 i, j;

	for (i = 0; i < bs->blocks->len; i++) {
		struct soft_block *b = bs->blocks->pdata[i];

		for (j = 0; j < 2; j++)
			if (b->next[j] && b->next[j]->dead)
				b->next[j] = NULL;
	}
	bs->dead_visits = 0;
}

void soft_code_written(struct soft_vm *svm, struct soft_page *page, u32 off, u32 len)
{
	struct soft_code *code = page->code;
	u64 touched = 0;
	u32 i;

	for (i = off / 64; i <= (off + len - 1) / 64; i++)
		touched |= BIT_ULL(i);
	if (!(code->chunks & touched))
		return;
	code->chunks = 0;
	for (i = 0; i < CODE_SLOTS; i++) {
		struct soft_block **at = &code->slot[i], *b;

		while ((b = *at)) {
			if (off < b->off + b->bytes && b->off < off + len) {
				soft_spin_wake_all(svm);
				*at = b->hash_next;
				soft_block_kill(svm, b);
				svm->blocks_dropped++;
				continue;
			}
			for (u32 k = b->off / 64; b->bytes && k <= (b->off + b->bytes - 1u) / 64; k++)
				code->chunks |= BIT_ULL(k);
			at = &b->hash_next;
		}
	}
	/* Data again, as when a program's page has been freed: writes need no look any more. */
	if (!code->chunks)
		page->flags &= ~SPAGE_CODE;
}

static struct soft_code *soft_code_get(struct soft_vm *svm, const struct soft_xlat *x)
{
	struct soft_blocks *bs = svm->blocks;
	struct soft_code *code = x->page->code;

	if (!code) {
		code = g_new0(struct soft_code, 1);
		code->page = x->page;
		code->gpa = ALIGN_DOWN(x->gpa, PAGE_SIZE);
		code->hva = x->hva - (x->gpa & (PAGE_SIZE - 1));
		x->page->code = code;
		g_ptr_array_add(bs->codes, code);
	}
	return code;
}

/* --- decoding --- */

static void soft_op_init(struct soft_op *op, u32 off, u32 n, u32 acc)
{
	memset(op, 0, sizeof(*op));
	op->base = op->index = GPR_ZERO;
	op->pc = off & 0xfff;
	op->n = (u8)n;
	op->acc = (u8)acc;
}

/*
 * Decode from off on into op[]. Stops before an instruction that does not lie in the
 * page as a whole (0 instructions: the first one does not).
 */
static u32 soft_decode_run(struct soft_vm *svm, const u8 *page, u32 off, u8 key, struct soft_op *op, u32 *bytes,
			   bool *quiet)
{
	const ZydisDecoder *decoder = &((struct soft_blocks *)svm->blocks)->decoder[key & 3];
	u32 max = key & BLOCK_SINGLE ? 1 : BLOCK_MAX, at = off, acc = 0, n = 0;
	bool end = false;

	*quiet = true;
	while (n < max && !end) {
		struct soft_insn in;

		soft_op_init(&op[n], at, n, acc);
		if (!soft_decode_insn(decoder, key & 3, page + at, MIN((u32)PAGE_SIZE - at, INSN_MAX), &op[n], &in))
			break;
		if (in.begins_block && n)
			break;
		at += op[n].len;
		acc += in.accesses;
		*quiet &= in.quiet;
		end = in.ends_block || at == PAGE_SIZE;
		n++;
	}
	soft_op_init(&op[n], at, n, acc);
	op[n].fn = op_fall;
	op[n].imm = at;
	*bytes = at - off;
	soft_decode_fuse(op, n);
	return n;
}

static struct soft_block *soft_block_make(struct soft_cpu *c, struct soft_code *code, u32 off, u8 key)
{
	struct soft_op op[BLOCK_MAX + 1];
	struct soft_vm *svm = c->svm;
	bool quiet;
	u32 bytes, nr = soft_decode_run(svm, code->hva, off, key, op, &bytes, &quiet), i;
	struct soft_block *b;

	if (!nr)
		return NULL;
	b = soft_block_alloc(svm, nr);
	if (!b) {
		soft_blocks_flush(svm);
		c->link = NULL;
		b = soft_block_alloc(svm, nr);
	}
	b->code = code;
	b->off = (u16)off;
	b->key = key;
	b->nr = (u8)nr;
	b->bytes = (u16)bytes;
	b->quiet = quiet;
	memcpy(b->op, op, (nr + 1) * sizeof(op[0]));
	if (!(code->page->flags & SPAGE_CODE)) {
		code->page->flags |= SPAGE_CODE;
		soft_page_is_code(svm, code->page);
	}
	b->hash_next = code->slot[soft_slot(off)];
	code->slot[soft_slot(off)] = b;
	for (i = off / 64; i <= (off + bytes - 1) / 64; i++)
		code->chunks |= BIT_ULL(i);
	svm->blocks_decoded++;
	return b;
}

static struct soft_exec *soft_exec_new(void)
{
	size_t head = ALIGN_UP(sizeof(struct soft_exec), 64);
	struct soft_exec *e = g_malloc0(head + sizeof(struct soft_block) + 2 * sizeof(struct soft_op));

	e->cross = (struct soft_block *)((u8 *)e + head);
	return e;
}

/* Nothing can be fetched from a device: reported, and the guest ends. */
static int soft_device_code(struct soft_cpu *c, gpa_t gpa)
{
	fb_err("soft: vCPU %u executes device memory at 0x%llx", c->vcpu->id, (unsigned long long)gpa);
	c->leave = RUN_SHUTDOWN;
	return SOFT_LEAVE;
}

/* The instruction at va crosses into the next page: fetch its bytes by both translations, and use a block of our own. */
static struct soft_block *soft_block_cross(struct soft_cpu *c, u64 va, const u8 *page, u32 off, u8 key, int *ret)
{
	struct soft_exec *e = c->exec;
	u32 first = (u32)PAGE_SIZE - off, nr;
	struct soft_xlat x;
	u8 bytes[INSN_MAX + 1] = { 0 };
	struct soft_insn in;

	memcpy(bytes, page + off, first);
	if (soft_translate(c, c->mode == MODE_64 ? va + first : (u32)(va + first), ACCESS_FETCH, false, &x))
		return NULL;
	if (!x.hva) {
		*ret = soft_device_code(c, x.gpa);
		return NULL;
	}
	memcpy(bytes + first, x.hva, INSN_MAX - first);
	if (!e)
		e = c->exec = soft_exec_new();
	if (e->valid && e->off == off && e->key == key && memcmp(bytes, e->bytes, e->nr_bytes) == 0)
		return e->cross;
	memcpy(e->bytes, bytes, INSN_MAX);
	soft_op_init(&e->cross->op[0], off, 0, 0);
	/* With INSN_MAX bytes it always comes to an end. */
	soft_decode_insn(&((struct soft_blocks *)c->svm->blocks)->decoder[key & 3], key & 3, bytes, INSN_MAX,
			 &e->cross->op[0], &in);
	nr = e->cross->op[0].len;
	soft_op_init(&e->cross->op[1], off, 1, in.accesses);
	e->cross->op[1].fn = op_fall;
	e->cross->op[1].imm = off + nr;
	e->off = off;
	e->key = key;
	e->nr_bytes = nr > 1 ? nr : INSN_MAX;	/* 1: none, by whichever of the bytes */
	e->valid = true;
	e->cross->nr = 1;
	e->cross->code = &e->code;		/* no page's: nothing is ever linked to it */
	return e->cross;
}

struct soft_block *soft_block_lookup(struct soft_cpu *c, bool single, int *ret)
{
	struct soft_blocks *bs = c->svm->blocks;
	u64 va = c->rip + c->seg[SEG_CS].base;
	u8 key = (u8)(c->mode | (single ? BLOCK_SINGLE : 0));
	struct soft_exec *e = c->exec;
	struct soft_block *b, **link = c->link;
	struct soft_code *code;
	struct soft_xsc *x;
	u32 off;

	c->link = NULL;
	/* The block of a crossing instruction is for one visit: the next may be of other bytes, or in another page. */
	if (e && (link == &e->cross->next[0] || link == &e->cross->next[1]))
		link = NULL;
	*ret = SOFT_FAULT;
	if (unlikely(c->mode != MODE_64)) {
		va = (u32)va;
		if (c->rip > c->seg[SEG_CS].limit) {
			c->fault = (struct soft_fault){ .vector = VEC_GP, .has_error = true };
			return NULL;
		}
	}
	off = va & (PAGE_SIZE - 1);
	x = &c->xsc[soft_xsc_slot(va)];
	if (likely(x->tag == va - off)) {
		x->used = 1;
		code = x->code;
	} else {
		struct soft_xlat xlat;

		if (soft_translate(c, va, ACCESS_FETCH, false, &xlat))
			return NULL;
		if (!xlat.hva) {
			*ret = soft_device_code(c, xlat.gpa);
			return NULL;
		}
		code = soft_code_get(c->svm, &xlat);
		x = &c->xsc[soft_xsc_slot(va)];
		x->tag = va - off;
		x->code = code;
		x->used = 1;
	}
	c->gpr[GPR_PAGE] = va - off;
	b = soft_code_find(code, off, key);
	if (unlikely(!b)) {
		c->link = link;
		b = soft_block_make(c, code, off, key);
		link = c->link;
		c->link = NULL;
		if (!b) {
			b = soft_block_cross(c, va, code->hva, off, key, ret);
			link = NULL;
			if (!b)
				return NULL;
		}
	}
	if (link && !single)
		*link = b;
	if (unlikely(bs->dead_visits > DEAD_VISITS_MAX))
		soft_blocks_unlink_dead(c->svm);
	return b;
}
